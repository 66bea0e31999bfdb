//===- Print.cpp - What verification found, for people --------------------===//

#include "shardc/Report/Table.h"
#include "shardc/Report/Units.h"
#include "shardc/Verify/Serving.h"
#include "shardc/Verify/Verify.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <map>

using namespace mlir;
using namespace shardc;

static std::string meshText(const Mesh &mesh) {
  std::string text = "[";
  for (const MeshAxis &axis : mesh.axes)
    text += (text.size() > 1 ? ", " : "") + axis.name + "=" +
            std::to_string(axis.size);
  return text + "]";
}

static std::string scientific(double value) {
  if (value == 0)
    return "0";
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.2g", value);
  return text;
}

/// A line of facts; pieces that do not fit go below the first.
static void printFact(raw_ostream &os, StringRef label,
                      ArrayRef<std::string> pieces) {
  constexpr size_t kIndent = 15;
  os << "  " << llvm::left_justify(label, kIndent - 2);
  size_t column = kIndent;
  for (const std::string &piece : pieces) {
    if (column > kIndent && column + 1 + piece.size() > kReportWidth) {
      os << '\n';
      os.indent(column = kIndent);
    }
    os << (column > kIndent ? " " : "") << piece;
    column += piece.size() + (column > kIndent);
  }
  os << '\n';
}

static void printSizes(raw_ostream &os, const Verification &verification) {
  if (verification.isOneStage)
    printFact(os, "one stage",
              {"a stage that has everything ran, one microbatch after the",
               "other: results, memory and gradients below are its own"});
  const Mesh &full = verification.fullMesh, &run = verification.mesh;
  if (!run.axes.empty())
    printFact(os, "mesh",
              meshText(run) +
                  (full == run ? "" : " in place of " + meshText(full)));
  SmallVector<std::string> dims;
  for (const Verification::Dim &dim : verification.dims)
    if (dim.extent != dim.full)
      dims.push_back(dim.name + "=" + std::to_string(dim.extent) + " (" +
                     formatDigits(dim.full) + "),");
  if (dims.empty())
    return;
  dims.back().back() = ';';
  dims.push_back("in brackets the program's");
  printFact(os, "dims", dims);
}

static void printNumbers(raw_ostream &os, const Verification &verification) {
  std::string tolerance = scientific(kVerifyTolerance);
  printFact(os, "numbers",
            verification.options.roundToDeclared
                ? "rounded to declared types; differences relative to the "
                  "largest magnitude are measured, not judged"
                : "doubles; results agree to " + tolerance +
                      " of the tensor's largest magnitude, integers exactly");
}

static void printResults(raw_ostream &os, const Verification &verification) {
  bool hasNaN = llvm::any_of(verification.results, [](const auto &result) {
    return result.notNumbers > 0;
  });
  os << "\n";
  std::vector<Table::Column> columns = {
      {}, {}, {Table::Column::Right}, {Table::Column::Right}};
  std::vector<std::string> heading = {"Result", "", "elements",
                                      "largest difference"};
  if (hasNaN) {
    columns.push_back({Table::Column::Right});
    heading.push_back("not compared: NaN");
  }
  Table table(columns, heading);
  for (const Verification::Result &result : verification.results) {
    std::vector<Cell> row = {result.kindName().str(), result.name,
                             formatDigits(result.elements),
                             scientific(result.largest.size)};
    if (hasNaN)
      row.push_back(formatDigits(result.notNumbers));
    table.addRow(std::move(row));
  }
  table.print(os, /*colour=*/false);
}

/// The run of all stages; each result agrees, or an error names it.
static void printStages(raw_ostream &os, const Verification &verification) {
  if (!verification.stages)
    return;
  const Verification::Stages &stages = *verification.stages;
  double largest = 0;
  for (const Verification::Result &result : stages.results)
    largest = std::max(largest, result.largest.size);
  auto layers = llvm::map_to_vector(
      stages.layers, [](int64_t each) { return std::to_string(each); });
  printFact(os, "pipeline",
            {plural(stages.number, "stage") + " of " +
                 llvm::join(layers, ", ") + " layers ran " +
                 plural(stages.microbatches, "microbatch", "microbatches") +
                 " in the",
             "order of " + stages.order + " and sent " +
                 plural(stages.messages, "tensor") + ":",
             stages.agree ? "they compute what the unsharded step computes,"
                          : "they do not compute what the unsharded step does,",
             formatDigits(int64_t(stages.results.size())) +
                 " results, largest difference " + scientific(largest)});
  if (stages.predicted.empty())
    return;
  auto list = [](ArrayRef<int64_t> bytes) {
    return llvm::join(
        llvm::map_range(bytes, [](int64_t each) { return formatDigits(each); }),
        ", ");
  };
  if (stages.measured.empty())
    return printFact(os, "stages",
                     "hold " + list(stages.predicted) +
                         " bytes at the peak by prediction: not measured where "
                         "gradients of weights have items of their own");
  printFact(os, "stages",
            "hold " + list(stages.measured) + " bytes at the peak" +
                (stages.memoryAgrees()
                     ? ", as predicted"
                     : "; predicted were " + list(stages.predicted)));
}

/// `all_gather`; `all_gather in chunks` where a ring moves chunks in its place.
static std::string kindOf(Operation *op) {
  if (!isa<spmd::RingShiftOp>(op))
    return stringify(spmd::collectiveKind(op)).str();
  auto of = op->getAttrOfType<StringAttr>(spmd::kRingOf);
  return of ? of.str() + " in chunks" : "ring_shift";
}

static void printCollectives(raw_ostream &os,
                             const Verification &verification) {
  if (verification.run.collectives.empty())
    return;
  os << "\n";
  Table table({{},
               {},
               {Table::Column::Right},
               {Table::Column::Right},
               {Table::Column::Right}},
              {"Collective", "over", "operations", "runs",
               "sent per device, all runs"});
  struct Row {
    int64_t operations = 0, runs = 0;
    double bytes = 0;
  };
  std::map<std::pair<std::string, std::string>, Row> rows;
  for (const RunResult::Executed &executed : verification.run.collectives) {
    std::string axes = llvm::join(executed.op->getAttrOfType<ArrayAttr>("axes")
                                      .getAsValueRange<StringAttr>(),
                                  ",");
    Row &row = rows[{kindOf(executed.op), axes}];
    ++row.operations;
    row.runs += executed.runs;
    row.bytes += double(executed.traffic.totalBits()) / 8 /
                 double(executed.traffic.bits.size());
  }
  for (auto &[key, row] : rows)
    table.addRow({key.first, key.second, formatDigits(row.operations),
                  formatDigits(row.runs), formatBytes(row.bytes)});
  table.print(os, /*colour=*/false);
}

static void printVerdict(raw_ostream &os, const Verification &verification) {
  int64_t devices = verification.mesh.numDevices();
  if (verification.options.roundToDeclared)
    return printFact(os, "measured",
                     plural(devices, "device") +
                         " and the unsharded program, as hardware rounds");
  bool differs = llvm::any_of(
      verification.results, [](const auto &result) { return result.differs; });
  StringRef computes = devices == 1
                           ? (differs ? "does not compute" : "computes")
                       : differs ? "do not compute"
                                 : "compute";
  printFact(os, verification.holds ? "verified" : "differs",
            plural(devices, "device") + " " + computes.str() +
                " what the unsharded program computes");
}

/// `12 B`, or both where program order and the schedule take different ones.
static std::string bytesOfBoth(int64_t inOrder, int64_t asScheduled,
                               StringRef where) {
  std::string text = formatDigits(inOrder) + " B" + where.str();
  return inOrder == asScheduled
             ? text
             : text + " in program order and " + formatDigits(asScheduled) +
                   " B as scheduled";
}

static void printMemory(raw_ostream &os, const Verification &verification) {
  if (!verification.inOrder)
    return;
  const Verification::Memory &inOrder = *verification.inOrder,
                             &asScheduled = *verification.asScheduled;
  std::string text = bytesOfBoth(*llvm::max_element(inOrder.measured),
                                 *llvm::max_element(asScheduled.measured),
                                 " at the peak on each device");
  if (inOrder.agrees() && asScheduled.agrees())
    text += ", as predicted";
  else
    text += "; predicted were " +
            bytesOfBoth(inOrder.predicted, asScheduled.predicted, "");
  printFact(os, "memory", text);
}

static void printFlops(raw_ostream &os, const Verification &verification) {
  if (!verification.flops)
    return;
  const Verification::Flops &flops = *verification.flops;
  double most = *llvm::max_element(flops.executed);
  double least = *llvm::min_element(flops.executed);
  std::string text = formatScaled(most) + " on ";
  text += least == most ? "each device"
                        : "the busiest device, " + formatScaled(least) +
                              " on the least busy";
  printFact(os, "FLOPs",
            text + (flops.wrong ? "; not as predicted" : ", as predicted"));
}

static void printGradients(raw_ostream &os, const Verification &verification) {
  if (!verification.gradients)
    return;
  const Verification::Gradients &found = *verification.gradients;
  SmallVector<std::string> pieces;
  int64_t judged = found.directions - found.notFinite;
  pieces.push_back((found.wrong.empty()
                        ? "central differences of the loss agree in "
                        : "central differences of the loss disagree in " +
                              std::to_string(found.wrong.size()) + " of ") +
                   plural(judged, "direction") + ",");
  pieces.push_back("by " + scientific(found.largest) + " at most");
  if (found.notFinite > 0)
    pieces.push_back("(not finite in " + formatDigits(found.notFinite) +
                     " more)");
  printFact(os, "gradients", pieces);
  if (found.forwardLoss && !found.lossDiffers)
    printFact(os, "loss", std::string("that of the forward program"));
}

void shardc::printVerification(raw_ostream &os,
                               const Verification &verification,
                               StringRef file) {
  os << file << "\n";
  printVerdict(os, verification);
  printSizes(os, verification);
  printNumbers(os, verification);
  printFact(
      os, "operations",
      formatDigits(verification.operations) + " on each device, " +
          plural(int64_t(verification.run.collectives.size()), "collective") +
          " between them");
  printStages(os, verification);
  printMemory(os, verification);
  printFlops(os, verification);
  printGradients(os, verification);
  if (verification.picks)
    printFact(os, "experts",
              formatDigits(verification.picks->dropped) + " of " +
                  formatDigits(verification.picks->picks) +
                  " picks dropped for want of a slot");
  printResults(os, verification);
  printCollectives(os, verification);
}

/// The largest difference of any result.
static double largestOf(const Verification &verification) {
  double largest = 0;
  for (const Verification::Result &result : verification.results)
    largest = std::max(largest, result.largest.size);
  return largest;
}

void shardc::printServedRuns(raw_ostream &os, const ServedRuns &runs,
                             StringRef file) {
  os << file << "\n";
  if (!runs.notRun.empty())
    return printFact(os, "not run", runs.notRun);
  printFact(os,
            runs.prefill.options.roundToDeclared ? "measured"
            : runs.holds()                       ? "verified"
                                                 : "differs",
            {std::string("prefill, insertion and ") +
                 plural(runs.steps, "decode step"),
             std::string(runs.holds() ? "compute" : "do not compute") +
                 " what the unsharded program computes token by token"});
  printFact(os, "requests",
            {plural(runs.sequences, "sequence") + " with " +
                 plural(runs.prompt, "prompt token") + ",",
             plural(runs.promptBatch, "prompt") + " per prefill,",
             "in caches of " + plural(runs.capacity, "position")});
  for (auto [label, part] :
       {std::pair<StringRef, const Verification &>("prefill", runs.prefill),
        {"decode", runs.decode}})
    printFact(
        os, label,
        {plural(part.mesh.numDevices(), "device") + ",",
         formatDigits(int64_t(part.results.size())) + " outputs and states,",
         "largest difference " + scientific(largestOf(part))});
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// `element [0, 3] is 0.5 on device (X=1) and 0.25 in the unsharded program`.
static std::string describe(const Devices &devices,
                            const Difference &difference) {
  std::string element =
      difference.element.empty()
          ? "it"
          : "element [" +
                llvm::join(llvm::map_range(
                               difference.element,
                               [](int64_t i) { return std::to_string(i); }),
                           ", ") +
                "]";
  std::string text;
  llvm::raw_string_ostream(text)
      << element << " is " << llvm::format("%.6g", difference.found)
      << " on device " << devices.name(difference.device) << " and "
      << llvm::format("%.6g", difference.expected)
      << " in the unsharded program";
  return text;
}

static std::string exactText(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.12g", value);
  return text;
}

static std::string scientific6(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.6g", value);
  return text;
}

static void emitStageMemory(const Verification::Stages &stages, Location loc) {
  for (auto [stage, measured] : llvm::enumerate(stages.measured))
    if (measured != stages.predicted[stage])
      emitError(loc) << "a device of stage " << stage << " of " << stages.number
                     << " takes " << measured
                     << " bytes at the peak in program order; predicted were "
                     << stages.predicted[stage];
}

void shardc::emitDifferences(const ServedRuns &runs) {
  for (auto [phase, part] :
       {std::pair<StringRef, const Verification &>("after prefill",
                                                   runs.prefill),
        {"of decoding from prefill's caches", runs.decode}})
    for (const Verification::Result &result : part.results)
      if (result.differs)
        emitError(result.loc)
            << result.kindName() << " '" << result.name << "' " << phase
            << " differs from the program run token by token: "
            << describe(Devices(part.mesh), result.largest);
}

void shardc::emitDifferences(const Verification &verification) {
  Devices devices(verification.mesh);
  auto emitMemory = [&](const std::optional<Verification::Memory> &memory,
                        StringRef how) {
    if (!memory || memory->agrees())
      return;
    const auto *peak = llvm::find_if(memory->measured, [&](int64_t bytes) {
      return bytes != memory->predicted;
    });
    emitError(verification.module.get().getLoc())
        << "device " << devices.name(peak - memory->measured.begin())
        << " takes " << *peak << " bytes at the peak " << how
        << "; predicted were " << memory->predicted;
  };
  emitMemory(verification.inOrder, "in program order");
  emitMemory(verification.asScheduled, "as scheduled");
  if (verification.flops && verification.flops->wrong) {
    const Verification::Flops::Wrong &wrong = *verification.flops->wrong;
    emitError(wrong.loc) << "the busiest device executes "
                         << exactText(wrong.executed)
                         << " FLOPs; predicted were "
                         << exactText(wrong.predicted);
  }
  if (const auto &found = verification.gradients) {
    for (const auto &wrong : found->wrong)
      emitError(wrong.loc)
          << "gradient of '" << wrong.weight
          << "' differs: along a random direction the loss changes by "
          << scientific6(wrong.difference) << ", and by the gradient "
          << scientific6(wrong.derivative);
    if (found->lossDiffers)
      emitError(verification.module.get().getLoc())
          << "the loss of the step is " << scientific6(found->loss)
          << ", and of the forward program "
          << scientific6(*found->forwardLoss);
  }
  if (verification.stages)
    emitStageMemory(*verification.stages, verification.module.get().getLoc());
  if (verification.stages)
    for (const Verification::Result &result : verification.stages->results)
      if (result.differs)
        emitError(result.loc)
            << result.kindName() << " '" << result.name
            << "' of the pipeline's stages differs: "
            << describe(Devices(verification.stages->mesh), result.largest);
  for (const Verification::Result &result : verification.results) {
    if (!result.differs)
      continue;
    auto error = emitError(result.loc)
                 << result.kindName() << " '" << result.name
                 << "' differs: " << describe(devices, result.largest);
    if (const auto &first = verification.first)
      error.attachNote(first->loc)
          << "the first operation whose result differs is the " << first->kind
          << (first->name.empty()   ? ""
              : first->isCollective ? " of '" + first->name + "'"
                                    : " that makes '" + first->name + "'")
          << ": " << describe(devices, first->difference);
  }
}
