//===- Print.cpp - What verification found, for people --------------------===//

#include "shardc/Report/Table.h"
#include "shardc/Report/Units.h"
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

static std::string plural(int64_t count, StringRef noun) {
  return formatDigits(count) + " " + noun.str() + (count == 1 ? "" : "s");
}

static void printSizes(raw_ostream &os, const Verification &verification) {
  const Mesh &full = verification.fullMesh, &run = verification.mesh;
  if (!run.axes.empty())
    os << "  mesh         " << meshText(run)
       << (full == run ? "" : " in place of " + meshText(full)) << "\n";
  SmallVector<std::string> dims;
  for (const Verification::Dim &dim : verification.dims)
    if (dim.extent != dim.full)
      dims.push_back(dim.name + "=" + std::to_string(dim.extent));
  if (!dims.empty())
    os << "  dims         " << llvm::join(dims, ", ")
       << " in place of the program's\n";
}

static void printResults(raw_ostream &os, const Verification &verification) {
  os << "\n";
  Table table({{}, {}, {Table::Column::Right}, {Table::Column::Right}},
              {"Result", "", "elements", "largest difference"});
  for (const Verification::Result &result : verification.results)
    table.addRow({result.isState ? "state" : "output", result.name,
                  formatDigits(result.elements),
                  scientific(result.largest.size)});
  table.print(os, /*colour=*/false);
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
              {"Collective", "over", "operations", "runs", "sent per device"});
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

static int64_t mostMemory(const Verification &verification) {
  return *llvm::max_element(verification.run.peak);
}

static StringRef verdict(const Verification &verification) {
  if (verification.options.roundToDeclared)
    return "measured     ";
  return verification.holds ? "verified     " : "differs      ";
}

void shardc::printVerification(raw_ostream &os,
                               const Verification &verification,
                               StringRef file) {
  int64_t devices = verification.mesh.numDevices();
  os << file << "\n  " << verdict(verification) << plural(devices, "device")
     << (verification.holds ? ""
         : devices == 1     ? " does not"
                            : " do not")
     << " compute" << (verification.holds && devices == 1 ? "s" : "")
     << " what the unsharded program computes\n";
  printSizes(os, verification);
  os << "  operations   " << formatDigits(verification.operations)
     << " on each device, "
     << plural(int64_t(verification.run.collectives.size()), "collective")
     << " between them\n";
  if (verification.predictedPeak)
    os << "  memory       " << formatDigits(mostMemory(verification))
       << " B at the peak on each device"
       << (mostMemory(verification) == *verification.predictedPeak
               ? ", as predicted"
               : "; predicted were " +
                     formatDigits(*verification.predictedPeak) + " B")
       << "\n";
  printResults(os, verification);
  printCollectives(os, verification);
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

void shardc::emitDifferences(const Verification &verification) {
  Devices devices(verification.mesh);
  for (auto [device, peak] : llvm::enumerate(verification.run.peak))
    if (peak != *verification.predictedPeak) {
      emitError(verification.module.get().getLoc())
          << "device " << devices.name(device) << " takes " << peak
          << " bytes at the peak; predicted were "
          << *verification.predictedPeak;
      break;
    }
  for (const Verification::Result &result : verification.results) {
    if (!result.differs)
      continue;
    auto error = emitError(result.loc)
                 << (result.isState ? "state" : "output") << " '" << result.name
                 << "' differs: " << describe(devices, result.largest);
    if (const auto &first = verification.first)
      error.attachNote(first->loc)
          << "the first operation whose result differs"
          << (first->name.empty() ? "" : " makes '" + first->name + "'") << ": "
          << describe(devices, first->difference);
  }
}
