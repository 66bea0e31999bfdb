//===- Text.cpp - The report for people -----------------------------------===//
//
// From the outcome to the detail: what runs where and how long it takes, the
// plan, what the time goes into, and what to look at first. ASCII only.
//
//===----------------------------------------------------------------------===//

#include "Collect.h"
#include "TimelineText.h"
#include "shardc/Report/Report.h"
#include "shardc/Report/Seconds.h"
#include "shardc/Report/Table.h"
#include "shardc/Report/Units.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <cmath>
#include <fmt/format.h>
#include <set>

using namespace shardc;

namespace {

using Column = Table::Column;

class TextPrinter {
public:
  TextPrinter(llvm::raw_ostream &os, const Report &report, bool colour)
      : os(os), report(report), colour(colour) {}

  void print();

private:
  void printProblem();
  void printHead();
  void printPlan();
  void printMeshes();
  void printRecipes(const Report::MeshSearch &search);
  void printFrontier(const Report::MeshSearch &search);
  void printItems();
  void printTime();
  void printPhases();
  void printOverlap();
  void printNetwork();
  void printRooflines();
  void printMemory();
  void printLargest();
  void printShortfall();
  void printAdvice();
  void printNotes();

  void heading(llvm::StringRef text);
  void fact(llvm::StringRef name, llvm::StringRef text);
  void wrappedFact(llvm::StringRef name, llvm::StringRef text);

  std::string hardwareText() const;
  std::string meshText() const;
  std::string fasterText() const;
  std::string planText() const;
  std::string stepText() const;
  std::string calibrationText() const;
  std::string imbalanceText() const;
  std::string examplesText() const;
  std::string tokensText() const;
  std::string parametersText() const;
  std::string expertsText() const;
  std::string memoryText() const;
  std::string moreMemoryText() const;
  std::string givenText() const;
  std::string priceText() const;
  std::string trainingText() const;
  std::string batchText() const;
  std::string hostText() const;
  std::string pipelineText() const;
  void printStages();
  std::string measuredText() const;
  void printSteps();
  std::string utilizationText() const;
  std::string share(double seconds) const;

  void addItem(Table &table, const ReportItem &item) const;
  void addRepeat(Table &table, int repeat) const;
  void addRepeats(Table &table, int from, int to) const;
  std::vector<bool> activationsToShow() const;
  std::vector<size_t> tensorsByKind() const;

  llvm::raw_ostream &os;
  const Report &report;
  const bool colour;
};

void TextPrinter::heading(llvm::StringRef text) {
  os << '\n';
  paint(os, text, Style::Bold, colour);
  os << '\n';
}

void TextPrinter::fact(llvm::StringRef name, llvm::StringRef text) {
  os.indent(2);
  os << llvm::left_justify(name, 12);
  os << truncate(text, kReportWidth - 14) << '\n';
}

/// A fact of several lines if need be.
void TextPrinter::wrappedFact(llvm::StringRef name, llvm::StringRef text) {
  constexpr size_t kWidth = kReportWidth - 14;
  while (text.size() > kWidth) {
    size_t end = text.rfind(' ', kWidth);
    if (end == llvm::StringRef::npos)
      break;
    fact(name, text.take_front(end));
    text = text.drop_front(end + 1);
    name = "";
  }
  fact(name, text);
}

std::string TextPrinter::share(double seconds) const {
  return report.time.scheduled > 0
             ? formatPercent(seconds / report.time.scheduled)
             : "";
}

//===----------------------------------------------------------------------===//
// At a glance
//===----------------------------------------------------------------------===//

std::string listText(llvm::ArrayRef<int64_t> values) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(values, stream);
  return text;
}

std::string TextPrinter::hardwareText() const {
  const Report::Hardware &hardware = report.hardware;
  std::string text = hardware.name;
  if (!hardware.shape.empty())
    text += "[" + listText(hardware.shape) + "]";
  text += ": " + plural(hardware.chips, "chip") +
          (hardware.chips == 1 ? ", " : ", each ");
  if (hardware.peakFlops)
    text += formatRate(*hardware.peakFlops, "FLOP/s") + " " +
            hardware.computeType + ", ";
  return text + formatBytes(double(report.memory.capacity)) + " HBM at " +
         formatRate(hardware.hbmBandwidth, "B/s");
}

/// `x`; `4 of x` if it is a part.
std::vector<std::string> partTexts(const Report::Axis &axis) {
  std::vector<std::string> texts;
  for (auto [name, part] : llvm::zip(axis.on, axis.parts))
    texts.push_back(part.size == part.whole
                        ? name
                        : std::to_string(part.size) + " of " + name);
  return texts;
}

std::string TextPrinter::meshText() const {
  if (report.mesh.empty())
    return "none (one device)";
  std::string text;
  for (const Report::Axis &axis : report.mesh) {
    text += (text.empty() ? "[" : ", ") + axis.name + "=" +
            std::to_string(axis.size);
    std::vector<std::string> parts = partTexts(axis);
    if (parts.size() == 1)
      text += " on " + parts.front();
    else if (parts.size() > 1)
      text += " on (" + llvm::join(parts, ", ") + ")";
  }
  text += "]";
  if (report.idleChips > 0)
    text += ", " + plural(report.idleChips, "chip") + " idle";
  if (report.meshSearch)
    text +=
        ", chosen of " + plural(report.meshSearch->meshes, "mesh", "meshes");
  return text;
}

std::string TextPrinter::fasterText() const {
  const Report::FasterBinding &faster = *report.fasterBinding;
  double saved = 1 - faster.scheduled / report.time.scheduled;
  return "with " + faster.mesh + " this plan takes " +
         formatTime(faster.scheduled) + ", " + formatPercent(saved) + " less";
}

/// A bound below half of the plan's time says little of the best plan.
static constexpr double kTellingGap = 1;

static std::string gapText(double gap) {
  return gap > kTellingGap ? "> " + formatPercent(kTellingGap)
                           : formatPercent(gap);
}

/// What the search of a step's forms decided: `microbatches and recomputation`.
static std::string openText(const Report::StepSearch &search,
                            llvm::StringRef which, llvm::StringRef what) {
  llvm::SmallVector<std::string> parts;
  if (search.isMicrobatchesOpen)
    parts.push_back((which + "microbatches").str());
  if (search.isRematOpen)
    parts.push_back((what + "recomputation").str());
  if (search.isOffloadOpen)
    parts.push_back((what + "offloading").str());
  return llvm::join(parts, " and ");
}

std::string TextPrinter::planText() const {
  const Report::Plan &plan = report.plan;
  if (plan.status == "fixed")
    return plan.isPropagated ? "fixed: the propagated plan, nothing is searched"
                             : "fixed: taken as written, nothing is searched";
  if (plan.noneInTime)
    return "not known: the time ended before the search had a plan that fits";
  std::string objective = " (by " + plan.objective + " time)";
  if (report.meshSearch)
    objective = " on any mesh" + objective;
  if (const auto &search = report.stepSearch; search && search->hasOthers)
    objective = " with any " + openText(*search, "", "") + objective;
  if (plan.status == "optimal")
    return "optimal: no plan that fits is faster" + objective;
  if (plan.status != "feasible")
    return plan.status;
  std::string feasible = plan.searched == "around merged axes"
                             ? "feasible: searched around merged axes only; "
                             : "feasible: ";
  if (!plan.gap)
    return feasible + "how much slower than the best is not known" + objective;
  if (*plan.gap > kTellingGap)
    return feasible +
           "little is known of the best; proven is only that it takes at "
           "least " +
           formatTime(*plan.bound) + objective;
  return feasible + "at most " + formatPercent(*plan.gap) +
         " slower than the best" + objective;
}

std::string TextPrinter::stepText() const {
  const Report::Time &time = report.time;
  std::string text = formatTime(time.scheduled) + ", bound by " +
                     (time.bound == "hbm" ? "HBM" : time.bound);
  if (time.lower < time.upper)
    text += "; " + formatTime(time.lower) + " with perfect overlap, " +
            formatTime(time.upper) + " with none";
  return text;
}

/// Times at peak rates, and the figure that is least certain.
std::string TextPrinter::calibrationText() const {
  const Report::Calibration &calibration = *report.calibration;
  std::string text = "the step takes " +
                     formatTime(calibration.roofline.scheduled) +
                     " at peak rates";
  const Report::Calibration::Figure *worst = calibration.worst();
  if (!worst)
    return text;
  using Provenance = Report::Calibration::Provenance;
  switch (worst->provenance) {
  case Provenance::Measured:
    return text + "; all figures were measured on " + worst->machine;
  case Provenance::Borrowed:
    return text + "; '" + worst->name + "' is borrowed from " + worst->machine;
  case Provenance::Missing:
    return text + "; nobody measured '" + worst->name +
           "', so its roofline counts";
  }
  llvm_unreachable("a provenance");
}

/// `the busiest device executes 3.3 % more FLOPs than the mean, in 'o' 87.5 %
/// more`: the operation is the one that adds most.
std::string TextPrinter::imbalanceText() const {
  auto more = [](double imbalance) {
    return formatPercent(imbalance - 1) + " more";
  };
  const ReportItem *most = nullptr;
  double excess = 0;
  for (const ReportItem &item : report.items) {
    const ReportCompute *compute = item.compute();
    if (!compute)
      continue;
    double added = (compute->cost.matrixFlops - compute->meanMatrixFlops) *
                   double(item.count);
    if (added > excess) {
      excess = added;
      most = &item;
    }
  }
  std::string text = "the busiest device executes " +
                     more(report.flops.imbalance()) + " FLOPs than the mean";
  if (most)
    text += ", in '" + most->name + "' " + more(most->compute()->imbalance());
  return text;
}

std::string TextPrinter::examplesText() const {
  std::string text = formatDigits(*report.examples) + " a step";
  if (report.examplesPerSecond)
    text += ", " + formatScaled(*report.examplesPerSecond) + " per second";
  return text;
}

std::string TextPrinter::parametersText() const {
  std::string text = formatCount(report.parameters);
  if (report.parameters >= 1000)
    text += " (" + formatDigits(report.parameters) + ")";
  if (report.experts)
    text += ", " + formatCount(report.activeParameters) + " active (" +
            formatDigits(report.activeParameters) + ")";
  return text;
}

std::string TextPrinter::expertsText() const {
  auto rounded = [](double value) {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::format("%.3g", value);
    return text;
  };
  const Report::Experts &experts = *report.experts;
  std::string text = formatDigits(experts.total) + ", of which " +
                     formatDigits(experts.perToken) +
                     " for each token; capacity factor " +
                     rounded(experts.capacityFactor);
  if (experts.executedToModel != 1)
    text += ", they execute " + rounded(experts.executedToModel) +
            " times the model's FLOPs";
  // Few tokens leave some experts alone, which are priced as if they were read.
  constexpr double kAlmostAll = 0.99;
  double own = double(experts.total) / double(experts.devices);
  if (experts.touchedPerDevice < kAlmostAll * own)
    text += "; on average a device has tokens for " +
            rounded(experts.touchedPerDevice) + " of its " + rounded(own);
  return text;
}

std::string TextPrinter::tokensText() const {
  std::string text = formatDigits(*report.tokens) + " a step";
  if (report.tokensPerSecond)
    text += ", " + formatScaled(*report.tokensPerSecond) + " per second";
  if (report.flops.model > 0)
    text += ", " + formatRate(*report.flops.perToken, "FLOP") + " each";
  return text;
}

std::string TextPrinter::memoryText() const {
  const Report::Memory &memory = report.memory;
  std::string text = formatBytes(double(memory.peak)) + " of " +
                     formatBytes(double(memory.allowed()));
  if (memory.allowed() > 0)
    text += " (" +
            formatPercent(double(memory.peak) / double(memory.allowed())) + ")";
  if (memory.limit)
    text += " allowed";
  else if (memory.sharesCapacity())
    text += " usable";
  return text + " per device";
}

/// The worth of more memory.
std::string TextPrinter::moreMemoryText() const {
  double more = *report.memory.withMore;
  return "1 GiB more per chip would save " +
         formatTime(report.plan.value - more) + ": " + formatTime(more) +
         " of " + report.plan.objective + " time";
}

/// The time of a given plan, and what a new search gains.
std::string TextPrinter::givenText() const {
  const Report::Given &given = *report.given;
  std::string text = "with what '" + given.file + "' says ";
  text += given.value ? formatTime(*given.value) : "nothing fits";
  if (!given.reoptimised)
    return text + "; re-optimised, nothing fits";
  text += "; re-optimised " + formatTime(*given.reoptimised);
  std::optional<double> saves = given.saves();
  if (!saves)
    return text;
  return text + (*saves == 0  ? ", no less"
                 : *saves > 0 ? ", " + formatTime(*saves) + " less"
                              : ", " + formatTime(-*saves) + " more");
}

std::string TextPrinter::priceText() const {
  double step = *report.price.usd;
  std::string text = formatUsd(step) + " per step";
  if (report.time.scheduled > 0)
    text =
        formatUsd(step / report.time.scheduled * 3600) + " per hour, " + text;
  if (report.price.usdPerMillionTokens)
    text += ", " + formatUsd(*report.price.usdPerMillionTokens) +
            " per million tokens";
  return text;
}

std::string TextPrinter::utilizationText() const {
  const Report::Flops &flops = report.flops;
  std::string text =
      formatPercent(*flops.mfu) + ", HFU " + formatPercent(*flops.hfu);
  if (report.training && flops.mfuFullAttention != flops.mfu)
    text += "; MFU " + formatPercent(*flops.mfuFullAttention) +
            " counting all of causal attention's scores";
  return text;
}

/// What the time of `--measured-step` amounts to.
std::string TextPrinter::measuredText() const {
  const Report::Measured &measured = *report.measured;
  std::string text = formatTime(measured.step);
  if (measured.mfu) {
    text += ": MFU " + formatPercent(*measured.mfu) + ", HFU " +
            formatPercent(*measured.hfu);
    if (report.training && measured.mfuFullAttention != measured.mfu)
      text += "; MFU " + formatPercent(*measured.mfuFullAttention) +
              " counting all of causal attention's scores";
  }
  if (measured.tokensPerSecond)
    text +=
        "; " + formatScaled(*measured.tokensPerSecond) + " tokens per second";
  if (measured.examplesPerSecond)
    text += "; " + formatScaled(*measured.examplesPerSecond) +
            " examples per second";
  if (std::max(measured.mfu.value_or(0), measured.hfu.value_or(0)) > 1)
    text += "; faster than the machine's peak allows: the time, the machine or "
            "the program is not what ran";
  return text;
}

/// How it trains, and what all of the tokens take.
/// `8, 8, 7 layers`; `2 x 8, 7`.
static std::string layersText(const Report::Stages &stages) {
  llvm::SmallVector<std::pair<int64_t, int64_t>> runs;
  for (const Report::Stages::Stage &stage : stages.stages)
    if (!runs.empty() && runs.back().second == stage.numLayers())
      ++runs.back().first;
    else
      runs.push_back({1, stage.numLayers()});
  std::string text;
  for (auto [times, layers] : runs) {
    text += text.empty() ? "" : ", ";
    if (times > 1)
      text += std::to_string(times) + " x ";
    text += std::to_string(layers);
  }
  return text;
}

/// Forward passes have an order of their own only where stages hold chunks.
static std::string forwardText(const Report::Stages &stages) {
  std::string text = plural(stages.microbatches, "microbatch", "microbatches") +
                     ", forward only";
  bool hasChunks = stages.stages.front().layers.size() > 1;
  return hasChunks ? text + ", " + stages.order : text;
}

std::string TextPrinter::pipelineText() const {
  const Report::Stages &stages = *report.stages;
  std::string text =
      plural(stages.stages.size(), "stage", "stages") + " on " + stages.axis +
      " of " + layersText(stages) + " layers; " +
      (report.training ? "schedule " + stages.order : forwardText(stages)) +
      ", bubble " + formatPercent(stages.bubble);
  if (stages.transfer > 0)
    text += "; " + formatBytes(stages.transferBytes) +
            " to the next stage take " + formatTime(stages.transfer);
  return text;
}

std::string TextPrinter::batchText() const {
  const Report::BatchSearch &batch = *report.batchSearch;
  bool isWhole = batch.perChip == std::floor(batch.perChip);
  std::string text = batch.dim + "=" + formatDigits(batch.size) + ", " +
                     (isWhole ? formatDigits(int64_t(batch.perChip))
                              : formatScaled(batch.perChip)) +
                     " on each chip";
  if (!batch.fits)
    return text + ": none that was tried fits";
  text += batch.isCut ? ": the largest that was tried and fits"
                      : ": the largest that fits";
  if (batch.tooLarge)
    text += "; " + formatDigits(*batch.tooLarge) + " do not";
  return text;
}

std::string TextPrinter::trainingText() const {
  const Report::Training &training = *report.training;
  std::string text =
      plural(training.microbatches, "microbatch", "microbatches") + ", remat " +
      training.remat;
  if (training.every > 0)
    text += "(" + std::to_string(training.every) + ")";
  if (training.isFused)
    text += ", update fused";
  if (!training.seconds)
    return text;
  constexpr double kSecondsPerDay = 86400;
  text += "; " + formatScaled(training.tokens) + " tokens take " +
          formatScaled(*training.seconds / kSecondsPerDay) + " days";
  if (training.usd)
    text += " and " + formatUsd(*training.usd);
  return text;
}

/// Memory of the host, and what crosses its link.
std::string TextPrinter::hostText() const {
  const Report::Host &host = *report.host;
  std::string text = formatBytes(double(host.memory));
  if (host.capacity)
    text += " of " + formatBytes(double(*host.capacity));
  return text + " per device; the link carries " +
         formatBytes(host.step.outBytes) + " out (" +
         formatTime(host.step.outSeconds) + ") and " +
         formatBytes(host.step.inBytes) + " in (" +
         formatTime(host.step.inSeconds) + ") at once";
}

void TextPrinter::printProblem() {
  const Report::Memory &memory = report.memory;
  if (const auto &host = report.host; host && !host->fits()) {
    paint(os, "does not fit: ", Style::Red, colour);
    os << "needs " << formatBytes(double(host->memory))
       << " of the host's memory per device, "
       << formatBytes(double(host->memory - *host->capacity))
       << " more than it has\n\n";
  }
  if (memory.peak <= memory.allowed())
    return;
  paint(os, "does not fit: ", Style::Red, colour);
  os << "needs " << formatBytes(double(memory.peak)) << " per device, "
     << formatBytes(double(memory.peak - memory.allowed())) << " more than "
     << (memory.limit ? "--memory-limit allows" : "it has")
     << memory.reservedText() << "\n\n";
}

void TextPrinter::printHead() {
  paint(os, truncate(report.file, kReportWidth), Style::Bold, colour);
  os << '\n';
  fact("hardware", hardwareText());
  fact("mesh", meshText());
  if (report.fasterBinding)
    fact("note", fasterText());
  fact("parameters", parametersText());
  if (report.experts)
    wrappedFact("experts", expertsText());
  wrappedFact("in words", report.words);
  wrappedFact("plan", planText());
  if (const auto &search = report.stepSearch; search && search->hasOthers &&
                                              search->ownGap &&
                                              *search->ownGap <= kTellingGap)
    fact("", "at most " + gapText(*search->ownGap) + " slower for " +
                 openText(*search, "these ", "this "));
  if (report.given)
    fact("", givenText());
  fact("step", stepText());
  if (report.calibration)
    wrappedFact("calibrated", calibrationText());
  if (report.flops.mfu && report.flops.model > 0)
    fact("MFU", utilizationText());
  if (report.flops.imbalance() > kLeastImbalance)
    fact("imbalance", imbalanceText());
  if (report.measured)
    wrappedFact("measured", measuredText());
  if (report.tokens)
    fact("tokens", tokensText());
  if (report.examples)
    fact("examples", examplesText());
  if (report.training)
    fact("training", trainingText());
  if (report.batchSearch)
    wrappedFact("batch", batchText());
  if (report.stages)
    wrappedFact("pipeline", pipelineText());
  fact("memory", memoryText());
  if (report.memory.withMore)
    fact("", moreMemoryText());
  if (report.host)
    wrappedFact("host", hostText());
  if (report.price.usd)
    fact("price", priceText());
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

/// More activations than this are not listed.
constexpr size_t kMostActivations = 16;

/// Which tensors to list: all but the smaller ones of many activations.
std::vector<bool> TextPrinter::activationsToShow() const {
  std::vector<size_t> activations;
  for (auto [i, tensor] : llvm::enumerate(report.tensors))
    if (tensor.kind == "activation")
      activations.push_back(i);
  llvm::sort(activations, [&](size_t a, size_t b) {
    return std::pair(-report.tensors[a].localBytes, a) <
           std::pair(-report.tensors[b].localBytes, b);
  });
  std::vector<bool> show(report.tensors.size(), true);
  for (size_t i : llvm::drop_begin(
           activations, std::min(kMostActivations, activations.size())))
    show[i] = false;
  return show;
}

/// Indices of the tensors, what is declared before what is computed.
std::vector<size_t> TextPrinter::tensorsByKind() const {
  std::vector<size_t> order;
  for (llvm::StringRef kind :
       {"input", "weight", "gradient", "master", "moment", "saved", "state",
        "activation", "output"})
    for (auto [i, tensor] : llvm::enumerate(report.tensors))
      if (tensor.kind == kind)
        order.push_back(i);
  return order;
}

void TextPrinter::printPlan() {
  Table table({{},
               {Column::Left, 28},
               {},
               {Column::Left, kReportWidth, /*flexible=*/true},
               {Column::Left, 28},
               {Column::Right},
               {Column::Right}},
              {"Plan", "", "", "", "shape", "global", "per device"});
  std::vector<bool> show = activationsToShow();
  for (size_t i : tensorsByKind()) {
    if (!show[i])
      continue;
    const ReportTensor &tensor = report.tensors[i];
    std::vector<std::string> sizes;
    for (const ReportTensor::Dim &dim : tensor.dims)
      sizes.push_back(std::to_string(dim.size));
    table.addRow({tensor.kind + (tensor.isOnHost ? " (host)" : ""), tensor.name,
                  tensor.dtype, tensor.sharding,
                  sizes.empty() ? "scalar" : llvm::join(sizes, " x "),
                  formatBytes(tensor.globalBytes),
                  formatBytes(tensor.localBytes)});
  }
  os << '\n';
  table.print(os, colour);
  if (size_t hidden = llvm::count(show, false)) {
    os.indent(2);
    paint(os,
          "and " + plural(int64_t(hidden), "smaller activation") +
              " (--emit-json lists all)",
          Style::Dim, colour);
    os << '\n';
  }
}

//===----------------------------------------------------------------------===//
// Operations and collectives
//===----------------------------------------------------------------------===//

/// The entries of `[B@(X, Y), D]{+Z}`, without the partial sums.
std::vector<std::string> entriesOf(llvm::StringRef sharding,
                                   llvm::StringRef &partial) {
  std::vector<std::string> entries;
  size_t close = sharding.find(']');
  partial = sharding.drop_front(std::min(close + 1, sharding.size()));
  llvm::StringRef list = sharding.substr(1, close - 1);
  size_t begin = 0, depth = 0;
  for (size_t i = 0; i <= list.size() && !list.empty(); ++i) {
    if (i < list.size() && list[i] == '(')
      ++depth;
    if (i < list.size() && list[i] == ')')
      --depth;
    if (i == list.size() || (list[i] == ',' && depth == 0)) {
      entries.push_back(list.slice(begin, i).trim().str());
      begin = i + 1;
    }
  }
  return entries;
}

/// The dimensions that differ between two shardings: `B, N@X -> B@X, N`; the
/// sharding, if none do.
std::string changedEntries(const ReportCollective &moved) {
  llvm::StringRef partialFrom, partialTo;
  std::vector<std::string> from, to;
  auto entries = llvm::zip_equal(entriesOf(moved.from, partialFrom),
                                 entriesOf(moved.to, partialTo));
  for (const auto &[before, after] : entries)
    if (before != after) {
      from.push_back(before);
      to.push_back(after);
    }
  if (partialFrom != partialTo) {
    from.push_back(partialFrom.str());
    to.push_back(partialTo.str());
  }
  if (from.empty())
    return moved.to; // a transfer to the host or back
  llvm::erase_if(from, [](const std::string &text) { return text.empty(); });
  llvm::erase_if(to, [](const std::string &text) { return text.empty(); });
  if (to.empty())
    to.push_back("{}");
  return llvm::join(from, ", ") + " -> " + llvm::join(to, ", ");
}

/// `einsum + silu, mul`; `cast + einsum` if the einsum casts what it reads.
std::string functionsOf(const ReportCompute &compute) {
  return functionsText(compute.prologue, compute.function, compute.fused);
}

int depthOf(const Report &report, int repeat) {
  int depth = 0;
  for (; repeat >= 0; repeat = report.repeats[repeat].parent)
    ++depth;
  return depth;
}

bool isWithin(const Report &report, int repeat, int outer) {
  for (; repeat >= 0; repeat = report.repeats[repeat].parent)
    if (repeat == outer)
      return true;
  return outer < 0;
}

/// `compute`, `HBM`; of a collective `bandwidth x`: the term and the network.
Cell boundCell(const ReportItem &item) {
  if (const ReportCollective *moved = item.collective())
    return {item.bound().str() + " " + moved->network, Style::Yellow};
  return item.bound() == "hbm" ? "HBM" : item.bound().str();
}

void TextPrinter::addItem(Table &table, const ReportItem &item) const {
  std::string indent(2 * depthOf(report, item.repeat), ' ');
  double runs = double(item.count), time = toSeconds(item.total);
  if (const ReportCollective *moved = item.collective()) {
    bool free = item.total == 0;
    double exposed = toSeconds(moved->exposed);
    table.addRow(
        {indent + moved->operand,
         {item.kind + " " + llvm::join(moved->axes, ","),
          free ? Style::Dim : Style::Yellow},
         changedEntries(*moved),
         formatDigits(item.count),
         "",
         moved->cost.bytes > 0 ? formatBytes(runs * moved->cost.bytes) : "",
         free ? "free" : formatTime(time),
         free ? "" : formatTime(exposed),
         free ? Cell() : boundCell(item),
         free ? "" : share(exposed)});
    return;
  }
  const ReportCompute &compute = *item.compute();
  table.addRow({indent + item.name, functionsOf(compute), compute.sharding,
                formatDigits(item.count),
                compute.flops() > 0 ? formatScaled(runs * compute.flops()) : "",
                formatBytes(runs * compute.cost.hbmBytes), formatTime(time), "",
                boundCell(item), share(time)});
}

/// The heading of a repeat, with the sums of its body.
void TextPrinter::addRepeat(Table &table, int repeat) const {
  const Report::Repeat &described = report.repeats[repeat];
  double flops = 0, bytes = 0, time = 0, exposed = 0, device = 0;
  for (const ReportItem &item : report.items) {
    if (!isWithin(report, item.repeat, repeat))
      continue;
    time += toSeconds(item.total);
    if (const ReportCompute *compute = item.compute()) {
      flops += compute->flops() * double(item.count);
      bytes += compute->cost.hbmBytes * double(item.count);
      device += toSeconds(item.total);
    } else {
      exposed += toSeconds(item.collective()->exposed);
    }
  }
  std::string indent(2 * (depthOf(report, repeat) - 1), ' ');
  auto bold = [](std::string text) {
    return Cell(std::move(text), Style::Bold);
  };
  table.addRow({bold(indent + "repeat " + described.index + " x " +
                     formatDigits(described.count)),
                {},
                {},
                {},
                bold(flops > 0 ? formatScaled(flops) : ""),
                bold(formatBytes(bytes)),
                bold(formatTime(time)),
                bold(formatTime(exposed)),
                {},
                bold(share(device + exposed))});
}

/// Headings of the repeats that lie between the one of the last row and the one
/// of the next.
void TextPrinter::addRepeats(Table &table, int from, int to) const {
  if (to < 0 || isWithin(report, from, to))
    return;
  addRepeats(table, from, report.repeats[to].parent);
  addRepeat(table, to);
}

void TextPrinter::printItems() {
  if (report.items.empty())
    return;
  Table table({{Column::Left, 30},
               {Column::Left, 30, /*flexible=*/true},
               {Column::Left, kReportWidth, /*flexible=*/true},
               {Column::Right},
               {Column::Right},
               {Column::Right},
               {Column::Right},
               {Column::Right},
               {},
               {Column::Right}},
              {"Operations", "", "sharding", "count", "FLOPs", "bytes", "time",
               "exposed", "bound", "share"});
  int repeat = -1;
  for (const ReportItem &item : report.items) {
    addRepeats(table, repeat, item.repeat);
    repeat = item.repeat;
    addItem(table, item);
  }
  double flops = 0;
  double sum = 0;
  for (const ReportItem &item : report.items) {
    sum += toSeconds(item.total);
    if (const ReportCompute *compute = item.compute())
      flops += compute->flops() * double(item.count);
  }
  // A pipeline's step is not the sum of what its stages do.
  double time = report.stages ? sum : report.time.upper;
  auto bold = [](std::string text) {
    return Cell(std::move(text), Style::Bold);
  };
  table.addRow({bold("total"),
                {},
                {},
                {},
                bold(formatScaled(flops)),
                bold(formatBytes(report.traffic.hbm)),
                bold(formatTime(time)),
                bold(formatTime(report.time.exposed)),
                {},
                bold(share(report.stages ? time : report.time.scheduled))});
  os << '\n';
  table.print(os, colour);
  os.indent(2);
  std::string whose =
      report.stages ? "all runs of a step on a device that has what the first "
                      "stage has, so many layers, and what the last one has"
                    : "all runs of a step on one device";
  paint(os,
        whose +
            "; bytes: HBM traffic, of a collective what it moves; exposed: "
            "compute waits for it" +
            (slowsKernels(report) ? ", or runs slower beside it" : ""),
        Style::Dim, colour);
  os << '\n';
  os.indent(2);
  paint(os,
        std::string("not counted: ") +
            (report.calibration ? "" : "the launch of kernels, ") +
            "the host's work at each step, reading inputs, writing "
            "checkpoints",
        Style::Dim, colour);
  os << '\n';
}

//===----------------------------------------------------------------------===//
// Totals
//===----------------------------------------------------------------------===//

void TextPrinter::printTime() {
  const Report::Time &time = report.time;
  Table table({{}, {Column::Right}, {Column::Right}, {}}, {"Time of a step"});
  auto add = [&](const char *name, double seconds, std::string what = "") {
    table.addRow({name, formatTime(seconds), share(seconds), std::move(what)});
  };
  add("compute-bound operations", time.computeBound);
  add("HBM-bound operations", time.hbmBound);
  if (report.host)
    add("host-bound operations", time.hostBound, "the host's link or memory");
  add("exposed collectives", time.exposed,
      time.collectives > 0
          ? (slowsKernels(report) ? "compute waits or runs slower beside them; "
                                    "collectives take "
                                  : "compute waits; collectives take ") +
                formatTime(time.collectives)
          : "");
  if (report.stages)
    add("pipeline", report.stages->pipeline, "stages wait for each other");
  add("scheduled", time.scheduled, "the sum of these");
  add("lower", time.lower,
      "perfect overlap: the operations or the busiest network");
  add("upper", time.upper, "operations and collectives one after the other");
  os << '\n';
  table.print(os, colour);
  printPhases();
  printOverlap();
}

/// The same time by the phases of a training step.
void TextPrinter::printPhases() {
  if (!report.training)
    return;
  const Report::Training &training = *report.training;
  Table table({{}, {Column::Right}, {Column::Right}, {}},
              {"Phases of the step"});
  auto add = [&](const char *name, double seconds, std::string what = "") {
    table.addRow({name, formatTime(seconds), share(seconds), std::move(what)});
  };
  add("forward", training.forward);
  add("backward", training.backward);
  add("recomputation", training.recompute);
  add("update", training.update);
  add("exposed collectives", report.time.exposed);
  if (report.stages)
    add("pipeline", report.stages->pipeline,
        "stages wait for each other; this is the slowest one's time");
  os << '\n';
  table.print(os, colour);
}

/// Overlap that was given up for memory, and collective matmuls.
void TextPrinter::printOverlap() {
  const Report::Overlap &overlap = report.overlap;
  for (const Report::Overlap::GivenUp &body : overlap.givenUp) {
    std::string place = body.repeat < 0
                            ? "outside repeats"
                            : "in repeat " + report.repeats[body.repeat].index;
    printWrapped(os,
                 body.instead == Overlap::Ahead
                     ? "no memory to prefetch " + place +
                           ": weights are gathered while the group before "
                           "their use runs"
                     : "no memory to overlap " + place +
                           ": collectives and operations take turns",
                 2);
  }
  if (overlap.memoryCosts > 0)
    printWrapped(os,
                 "with more memory the step would take " +
                     formatTime(report.time.scheduled - overlap.memoryCosts) +
                     ", " + formatTime(overlap.memoryCosts) + " less",
                 2);
  if (overlap.matmuls > 0)
    printWrapped(os,
                 plural(overlap.matmuls, "collective matmul") + " " +
                     (overlap.matmuls == 1 ? "saves " : "save ") +
                     formatTime(overlap.matmulsSave),
                 2);
  if (overlap.rings > 0)
    printWrapped(os,
                 plural(overlap.rings, "attention") + " " +
                     (overlap.rings == 1 ? "runs" : "run") +
                     " in steps around a ring, between which keys and values "
                     "travel" +
                     (overlap.gradientRings > 0 ? ", and their gradients" : ""),
                 2);
}

/// True if every mesh axis is one physical axis with the same time, so that the
/// physical axes tell nothing new.
bool physicalIsObvious(const Report &report) {
  if (report.time.network.size() != report.mesh.size())
    return false;
  std::set<std::string> seen;
  for (auto [axis, time] : llvm::zip_equal(report.mesh, report.time.network)) {
    if (axis.on.size() > 1)
      return false;
    if (!axis.on.empty() && !seen.insert(axis.on.front()).second)
      return false;
  }
  return true;
}

void TextPrinter::printNetwork() {
  if (report.mesh.empty())
    return;
  Table table({{}, {Column::Right}, {Column::Right}, {Column::Right}},
              {"Network", "time", "share", "sent per device"});
  for (auto [axis, sent] :
       llvm::zip_equal(report.time.network, report.traffic.network)) {
    std::string name = axis.first;
    table.addRow({"over " + name, formatTime(axis.second), share(axis.second),
                  formatBytes(sent.second)});
  }
  if (!physicalIsObvious(report))
    for (const auto &[axis, seconds] : report.time.physical)
      table.addRow({"physical " + axis, formatTime(seconds), share(seconds)});
  os << '\n';
  table.print(os, colour);
}

/// The step, then the operations that take longest.
void TextPrinter::printRooflines() {
  if (report.rooflines.empty())
    return;
  Table table({{Column::Left, 30},
               {Column::Left, 40},
               {Column::Right},
               {Column::Right},
               {Column::Right}},
              {"Rooflines", "", "FLOP/B", "critical", "ratio"});
  auto add = [&](std::string what, std::string over,
                 std::optional<double> intensity, double critical) {
    table.addRow({std::move(what), std::move(over),
                  intensity ? formatScaled(*intensity) : "",
                  formatScaled(critical),
                  intensity ? formatScaled(*intensity / critical) : ""});
  };
  for (const Report::Roofline &roofline : report.rooflines)
    if (roofline.intensity)
      add("the step",
          roofline.over == "hbm" ? "HBM" : "network " + roofline.over,
          roofline.intensity, roofline.critical);
  std::vector<const ReportItem *> items;
  for (const ReportItem &item : report.items)
    if (item.compute() && item.compute()->criticalIntensity())
      items.push_back(&item);
  llvm::sort(items, [](const ReportItem *a, const ReportItem *b) {
    return std::pair(-a->total, a) < std::pair(-b->total, b);
  });
  constexpr size_t kMost = 8;
  for (const ReportItem *item : llvm::ArrayRef(items).take_front(kMost))
    add(item->name, functionsOf(*item->compute()) + ", HBM",
        item->compute()->intensity(), *item->compute()->criticalIntensity());
  os << '\n';
  table.print(os, colour);
}

/// All gradients on a device; 0 with a pipeline, whose stages have their own.
static int64_t gradientBytes(const Report &report) {
  if (report.stages)
    return 0;
  double bytes = 0;
  for (const ReportTensor &tensor : report.tensors)
    if (tensor.kind == "gradient" && !tensor.isOnHost)
      bytes += tensor.localBytes;
  return int64_t(bytes);
}

void TextPrinter::printMemory() {
  const Report::Memory &memory = report.memory;
  Table table({{},
               {Column::Right},
               {Column::Right},
               {Column::Left, kReportWidth, /*flexible=*/true}},
              {"Memory of a device"});
  auto add = [&](const char *name, int64_t bytes, std::string note = "") {
    double allowed = double(memory.allowed());
    table.addRow({name, formatBytes(double(bytes)),
                  allowed > 0 ? formatPercent(double(bytes) / allowed) : "",
                  std::move(note)});
  };
  std::pair<const char *, int64_t> kinds[] = {
      {"weights", memory.weights},
      {"gradients", memory.gradients},
      {"optimizer", memory.optimizer},
      {"saved", memory.saved},
      {"states", memory.states},
      {"inputs", memory.inputs},
      {"activations", memory.activations},
      {"communication buffers", memory.buffers}};
  int64_t gradients = gradientBytes(report);
  for (auto [name, bytes] : kinds) {
    // Some are made after the peak.
    bool isPart = llvm::StringRef(name) == "gradients" && bytes < gradients;
    if (bytes > 0 || isPart)
      add(name, bytes,
          isPart ? "of " + formatBytes(double(gradients)) + " in all" : "");
  }
  std::string place =
      memory.peakName.empty() ? "" : "in '" + memory.peakName + "'";
  if (!memory.peakLoc.empty())
    place += " (" + memory.peakLoc + ")";
  add("peak", memory.peak, place);
  if (memory.sharesCapacity())
    add("usable", memory.allowed(),
        formatBytes(double(memory.reserved)) + " of " +
            formatBytes(double(memory.capacity)) + " are reserved");
  else
    add(memory.limit ? "limit" : "capacity", memory.allowed());
  os << '\n';
  table.print(os, colour);
  printLargest();
}

void TextPrinter::printLargest() {
  if (report.memory.live.empty())
    return;
  const size_t kMost = report.memory.fits ? 6 : 10;
  Table table({{},
               {Column::Left, 40},
               {Column::Left, kReportWidth, /*flexible=*/true},
               {Column::Right}},
              {"Largest tensors at the peak"});
  for (const LiveTensor &tensor :
       llvm::ArrayRef(report.memory.live).take_front(kMost))
    table.addRow({stringify(tensor.kind).str(), tensor.name, tensor.sharding,
                  formatBytes(double(tensor.bytes))});
  int64_t rest = report.memory.peak;
  for (const LiveTensor &tensor :
       llvm::ArrayRef(report.memory.live).take_front(kMost))
    rest -= tensor.bytes;
  if (report.memory.live.size() > kMost)
    table.addRow({plural(report.memory.live.size() - kMost, "other"), "", "",
                  formatBytes(double(rest))});
  os << '\n';
  table.print(os, colour);
}

/// The least limit and what was tried so that the program fits.
void TextPrinter::printShortfall() {
  if (!report.shortfall)
    return;
  const Report::Shortfall &shortfall = *report.shortfall;
  os << '\n';
  printWrapped(os, leastLimitText(report), 2);
  if (shortfall.waysOut.empty())
    return;
  Table table({{Column::Left, kReportWidth, /*flexible=*/true},
               {},
               {Column::Right},
               {Column::Right},
               {Column::Right}},
              {"Ways out, each planned", "", "memory", "of allowed", "step"});
  for (const Report::WayOut &way : shortfall.waysOut)
    table.addRow({way.change,
                  way.fits ? Cell("fits") : Cell("does not fit", Style::Red),
                  formatBytes(double(way.peak)),
                  formatPercent(double(way.peak) / double(way.allowed)),
                  way.fits ? formatTime(way.scheduled) : ""});
  os << '\n';
  table.print(os, colour);
}

//===----------------------------------------------------------------------===//
// Meshes
//===----------------------------------------------------------------------===//

/// The bound of a mesh that was not planned in full.
std::string meshBoundText(const Report::MeshSearch::Candidate &mesh) {
  return mesh.bound ? "at least " + formatTime(*mesh.bound) : "not tried";
}

/// How many there are, and what is known of those that are not shown.
std::string searchedText(const Report::MeshSearch &search) {
  std::string text = plural(search.ruledOut, "other") + " proven no faster";
  if (search.open > 0)
    text += ", " + formatDigits(search.open) + " not";
  if (search.impossible > 0)
    text += ", " + formatDigits(search.impossible) + " without a plan";
  if (search.isInterrupted)
    text += "; incomplete: interrupted";
  else if (search.isCut)
    text += "; incomplete: the time ran out";
  return "of " + plural(search.meshes, "mesh", "meshes") + ", " + text;
}

/// The chosen recipe of a training step and the best few others.
void TextPrinter::printRecipes(const Report::MeshSearch &search) {
  Table table({{Column::Left, kReportWidth, /*flexible=*/true},
               {Column::Right},
               {},
               {},
               {Column::Right},
               {Column::Right},
               {Column::Right},
               {Column::Right},
               {Column::Right},
               {}},
              {"Recipes", "m", "schedule", "remat", "step", "memory", "MFU",
               "bubble", "gap", ""});
  for (auto [i, each] : llvm::enumerate(search.best)) {
    llvm::StringRef status = search.statusOf(i, report.plan.value);
    Cell note(status == "planned" ? "" : status.str());
    if (!each.plan) {
      table.addRow({each.mesh, "", "", "", "", "", "", "", "", note});
      continue;
    }
    const auto &plan = *each.plan;
    const auto &step = *each.recipe;
    if (!plan.fits)
      note = Cell(i == 0 ? "chosen, does not fit" : "does not fit", Style::Red);
    table.addRow({each.mesh, std::to_string(step.microbatches), step.schedule,
                  llvm::StringRef(step.remat).split(" (").first.str(),
                  formatTime(plan.scheduled), formatBytes(double(plan.peak)),
                  step.mfu ? formatPercent(*step.mfu) : "",
                  step.bubble ? formatPercent(*step.bubble) : "",
                  plan.status == "optimal" ? "0 %"
                  : plan.gap               ? gapText(*plan.gap)
                                           : "",
                  note});
  }
  os << '\n';
  table.print(os, colour);
  printWrapped(os, searchedText(search), 2);
  if (!search.note.empty())
    printWrapped(os, search.note, 2);
  printFrontier(search);
}

/// Steps of the planned recipes that take the least memory for their time.
void TextPrinter::printFrontier(const Report::MeshSearch &search) {
  if (search.frontier.size() < 2)
    return;
  Table table({{Column::Left, kReportWidth, /*flexible=*/true},
               {Column::Right},
               {},
               {Column::Right},
               {Column::Right}},
              {"Time against memory", "m", "remat", "step", "memory"});
  for (const Report::MeshSearch::Tradeoff &each : search.frontier)
    table.addRow({each.mesh, std::to_string(each.microbatches),
                  llvm::StringRef(each.remat).split(" (").first.str(),
                  formatTime(each.scheduled),
                  formatBytes(double(each.memory))});
  os << '\n';
  table.print(os, colour);
}

/// The chosen mesh and the best few others.
void TextPrinter::printMeshes() {
  if (!report.meshSearch)
    return;
  const Report::MeshSearch &search = *report.meshSearch;
  if (search.ofRecipes)
    return printRecipes(search);
  Table table({{Column::Left, kReportWidth, /*flexible=*/true},
               {Column::Right},
               {Column::Right},
               {Column::Right},
               {Column::Right},
               {}},
              {"Meshes", report.plan.objective, "step", "memory", "gap", ""});
  for (auto [i, mesh] : llvm::enumerate(search.best)) {
    Cell note(i == 0 ? "chosen" : "");
    if (!mesh.plan) {
      table.addRow({mesh.mesh, meshBoundText(mesh), "", "", "", note});
      continue;
    }
    const auto &plan = *mesh.plan;
    if (!plan.fits)
      note = Cell(i == 0 ? "chosen, does not fit" : "does not fit", Style::Red);
    table.addRow({mesh.mesh, formatTime(plan.value), formatTime(plan.scheduled),
                  formatBytes(double(plan.peak)),
                  plan.status == "optimal" ? "0 %"
                  : plan.gap               ? gapText(*plan.gap)
                                           : "",
                  note});
  }
  os << '\n';
  table.print(os, colour);
  printWrapped(os, searchedText(search), 2);
}

//===----------------------------------------------------------------------===//
// Pipeline stages
//===----------------------------------------------------------------------===//

/// Each stage, and the schedules that were tried.
void TextPrinter::printStages() {
  if (!report.stages)
    return;
  const Report::Stages &stages = *report.stages;
  bool trains = report.training.has_value();
  std::vector<Column> columns(trains ? 6 : 5, {Column::Right});
  columns.push_back({});
  std::vector<std::string> names = {"Stage", "layers", "work"};
  if (trains)
    llvm::append_values(names, "in flight", "saved");
  else
    names.push_back("states");
  llvm::append_values(names, "memory", "");
  Table table(std::move(columns), std::move(names));
  for (auto [number, stage] : llvm::enumerate(stages.stages)) {
    llvm::SmallVector<std::string> chunks;
    for (int64_t layers : stage.layers)
      chunks.push_back(std::to_string(layers));
    std::string note = number == stages.slowest ? "slowest" : "";
    if (number == stages.fullest)
      note += note.empty() ? "fullest" : ", fullest";
    std::vector<Cell> row = {std::to_string(number), llvm::join(chunks, "+"),
                             formatTime(stage.time)};
    if (trains)
      row.push_back(std::to_string(stage.kept));
    row.push_back(formatBytes(double(trains ? stage.saved : stage.states)));
    row.push_back(formatBytes(double(stage.memory)));
    row.push_back(note);
    table.addRow(std::move(row));
  }
  os << '\n';
  table.print(os, colour);
  if (stages.tried.size() < 2)
    return;
  Table orders({{}, {Column::Right}, {Column::Right}, {}},
               {"Schedule", "step", "memory", ""});
  for (auto [number, tried] : llvm::enumerate(stages.tried)) {
    Cell note(number == 0 ? "chosen" : "");
    if (!tried.fits)
      note = Cell(number == 0 ? "chosen, does not fit" : "does not fit",
                  Style::Red);
    orders.addRow({tried.order, formatTime(tried.step),
                   formatBytes(double(tried.memory)), note});
  }
  os << '\n';
  orders.print(os, colour);
}

//===----------------------------------------------------------------------===//
// Forms of a training step
//===----------------------------------------------------------------------===//

/// The chosen microbatches and recomputation, and the best few others.
void TextPrinter::printSteps() {
  if (!report.stepSearch)
    return;
  const Report::StepSearch &search = *report.stepSearch;
  // Inference recomputes nothing.
  std::string remat = report.training ? "remat" : "";
  std::vector<Column> columns = {
      {Column::Right}, {Column::Left, kReportWidth, /*flexible=*/true}};
  std::vector<std::string> heads = {"Microbatches", remat};
  if (search.isOffloadOpen) {
    columns.push_back({});
    heads.push_back("offload");
  }
  for (const char *figure : {"step", "memory", "gap"}) {
    columns.push_back({Column::Right});
    heads.push_back(figure);
  }
  columns.push_back({});
  heads.push_back("");
  Table table(std::move(columns), std::move(heads));
  for (const Report::StepSearch::Variant &variant : search.variants) {
    Cell note(variant.status == "planned" ? "" : variant.status);
    if (variant.memory && !variant.fits)
      note = Cell(variant.status == "chosen" ? "chosen, does not fit"
                                             : "does not fit",
                  Style::Red);
    std::vector<Cell> row = {std::to_string(variant.microbatches),
                             variant.remat +
                                 (variant.isFused ? ", update fused" : "")};
    if (search.isOffloadOpen)
      row.emplace_back(variant.offload);
    row.emplace_back(variant.scheduled ? formatTime(*variant.scheduled) : "");
    row.emplace_back(variant.memory ? formatBytes(double(*variant.memory))
                                    : "");
    row.emplace_back(variant.gap ? gapText(*variant.gap) : "");
    row.push_back(note);
    table.addRow(std::move(row));
  }
  os << '\n';
  table.print(os, colour);
  if (!search.note.empty())
    printWrapped(os, search.note, 2);
}

//===----------------------------------------------------------------------===//
// Advice
//===----------------------------------------------------------------------===//

/// The collectives for which compute waits longest and why they are there; less
/// than a hundredth of the step is not worth a look.
void TextPrinter::printAdvice() {
  constexpr double kWorthALook = 0.01;
  std::vector<const ReportItem *> collectives;
  for (const ReportItem &item : report.items)
    if (item.collective() && item.collective()->exposed > 0 &&
        toSeconds(item.collective()->exposed) >=
            kWorthALook * report.time.scheduled)
      collectives.push_back(&item);
  if (collectives.empty())
    return;
  // Equally long ones in program order, which is that of their addresses.
  llvm::sort(collectives, [](const ReportItem *a, const ReportItem *b) {
    return std::pair(-a->collective()->exposed, a) <
           std::pair(-b->collective()->exposed, b);
  });
  constexpr size_t kMost = 3;
  heading("Look at first");
  for (auto [i, item] :
       llvm::enumerate(llvm::ArrayRef(collectives).take_front(kMost))) {
    const ReportCollective &moved = *item->collective();
    double exposed = toSeconds(moved.exposed);
    std::string text =
        std::to_string(i + 1) + ". " + item->kind + " of '" + moved.operand +
        "'" +
        (moved.axes.empty() ? "" : " over " + llvm::join(moved.axes, ",")) +
        ": " + formatTime(exposed) + ", " + share(exposed) + " of the step";
    if (moved.exposed < item->total)
      text += ", of " + formatTime(toSeconds(item->total));
    if (item->count > 1)
      text += ", " + formatDigits(item->count) + " runs";
    if (!moved.matmul.empty())
      text += ", a collective matmul with '" + moved.matmul + "'";
    if (!moved.ringAttention.empty())
      text += ", in steps around the ring of attention '" +
              moved.ringAttention + "'";
    text += item->bound() == "latency" ? ", bound by latency" : "";
    if (!item->loc.empty())
      text += " (" + item->loc + ")";
    printWrapped(os, text, 2);
    printWrapped(os, moved.reason, 5);
  }
}

/// Work that the plan seems to do in vain.
void TextPrinter::printNotes() {
  if (report.notes.empty())
    return;
  heading("Lint (priced, not planned again: --lint tries what helps)");
  for (const Report::Note &note : report.notes) {
    std::string text = "- " + note.text;
    if (note.cost > 0)
      text += ": " + formatTime(toSeconds(note.cost));
    if (note.saves > 0)
      text += ", " + formatTime(toSeconds(note.saves)) + " less without";
    if (!note.loc.empty())
      text += " (" + note.loc + ")";
    printWrapped(os, text, 2);
  }
}

void TextPrinter::print() {
  printProblem();
  printHead();
  printPlan();
  printStages();
  printSteps();
  printMeshes();
  printItems();
  printTime();
  printNetwork();
  printRooflines();
  printTimeline(os, report, colour);
  printMemory();
  printShortfall();
  printAdvice();
  printNotes();
}

} // namespace

void shardc::printText(llvm::raw_ostream &os, const Report &report,
                       bool colour) {
  TextPrinter(os, report, colour).print();
}
