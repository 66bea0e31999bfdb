//===- WaysOut.cpp - What would make a program fit in memory --------------===//
//
// Each way is taken as a user would: with other options, or with annotations
// taken back. What does not fit yet is tried with a larger change.
//
//===----------------------------------------------------------------------===//

#include "shardc/Questions/WaysOut.h"
#include "shardc/Frontend/Question.h"
#include "shardc/Optimizer/Names.h"
#include "shardc/Pipelines/Compilation.h"
#include "shardc/Questions/Evaluator.h"
#include "shardc/Questions/ProgramSource.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <map>
#include <numeric>
#include <set>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

/// Each way is tried with 2, 4 and 8 times as much.
static constexpr unsigned kMaxSteps = 3;
/// Dims that are halved, tensors that are opened by themselves.
static constexpr size_t kMaxDims = 2, kMaxOpened = 3;
/// Plans in all: so many for a program of one operation on no axis, a tenth for
/// each axis and each tenfold of operations; none of larger programs.
static constexpr double kMaxWork = 20'000, kMaxProgram = 100'000;
static constexpr int kLeastTrials = 2, kMostTrials = 12;

namespace {

/// One change that is to be tried.
struct Trial {
  std::string change;
  Variant variant = {};
  /// The tensor whose annotations are taken back, if it is one.
  std::string opened = {};
};

/// A way out, with ever larger changes.
struct Way {
  std::string kind;
  /// The variant of step 1, 2, ...; nothing if that is not possible.
  std::function<std::optional<Trial>(unsigned step)> trial;
  unsigned maxSteps = 1;
  /// Rank among those of its kind.
  unsigned rank = 0;
  /// Those that were tried, and what came of the last.
  unsigned steps = 0;
  std::optional<Report::WayOut> found;
  bool isOver = false;
};

class WayFinder {
public:
  WayFinder(const llvm::SourceMgr &sourceMgr, const Overrides &overrides,
            const PlanOptions &options, const Report &report, TrialOptions how);

  std::vector<Report::WayOut> run();

private:
  void addMeshes();
  void addDims();
  void addPins();
  void addPadding();
  void addChunks();
  void addSearch();
  void addLimit();
  void openSingly();

  void tryAll(unsigned steps);
  bool takeOutcome(Way &way, const Trial &trial, const Outcome &outcome);
  int countTrials() const;
  std::optional<Trial> firstMesh(unsigned step);
  std::optional<Trial> largerAxis(size_t axis, unsigned step);
  std::optional<Setting> largerMachine(size_t level, unsigned step);
  std::string hardwareText(llvm::ArrayRef<int64_t> shape, bool inFull) const;
  std::string meshText(size_t axis, int64_t size) const;
  const ProgramText *textWith(const Overrides &other);
  const llvm::SourceMgr &original;
  const Overrides &overrides;
  PlanOptions options;
  const Report &report;
  MLIRContext context;
  ScopedDiagnosticHandler silence;
  /// As written, and with other overrides.
  std::vector<std::unique_ptr<ProgramSource>> sources;
  const ProgramText *text = nullptr;
  std::optional<Program> program;
  std::vector<Way> ways;
  /// Tensors with annotations, those first that are largest at the peak.
  std::vector<std::string> pinned;
  int trialsLeft = 0;
  TrialRunner runner;
};

} // namespace

//===----------------------------------------------------------------------===//
// Annotations
//===----------------------------------------------------------------------===//

/// Calls `visit` with each annotated tensor, and a function that takes the
/// annotation back.
static void
visitPins(ProgramOp program,
          llvm::function_ref<void(Value, llvm::function_ref<void()>)> visit) {
  program->walk([&](Operation *op) {
    // The pin of a part is that of its whole.
    if (isa<PartOp>(op))
      return;
    for (Value result : op->getResults())
      if (getResultPin(result))
        visit(result, [&] { setResultPin(result, {}); });
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      if (getOperandPin(op, i))
        visit(op->getOperand(i), [&] { setOperandPin(op, i, {}); });
  });
}

/// Takes back what is said of a tensor; of all without a name.
static void openPins(ProgramOp program, StringRef name) {
  visitPins(program, [&](Value value, llvm::function_ref<void()> open) {
    if (name.empty() || valueName(value) == name)
      open();
  });
}

/// Tensors with annotations, the largest at the peak first, then those that are
/// not there.
static std::vector<std::string> pinnedTensors(ProgramOp program,
                                              const Report &report) {
  std::vector<std::string> names;
  std::set<std::string> rest;
  visitPins(program, [&](Value value, llvm::function_ref<void()>) {
    rest.insert(valueName(value));
  });
  for (const LiveTensor &tensor : report.memory.live)
    if (rest.erase(tensor.name))
      names.push_back(tensor.name);
  names.insert(names.end(), rest.begin(), rest.end());
  return names;
}

/// The program without what it says of a tensor; of all without a name.
static Variant withoutPins(const std::string &name) {
  Variant variant;
  variant.edit = [name](ProgramOp op) { openPins(op, name); };
  return variant;
}

static Trial openTrial(const std::string &name) {
  return {"without the @ of '" + name + "'", withoutPins(name), name};
}

void WayFinder::addPins() {
  if (options.mode != OptMode::Optimize)
    return; // what nothing is said of is whole there, or spread to
  pinned = pinnedTensors(*program->module->getOps<ProgramOp>().begin(), report);
  if (pinned.empty())
    return;
  Way &way = ways.emplace_back();
  way.kind = "pins";
  way.trial = [this](unsigned) {
    return pinned.size() == 1 ? openTrial(pinned[0])
                              : Trial{"without any @", withoutPins("")};
  };
}

/// Where the program fits without any annotation, perhaps one is enough.
void WayFinder::openSingly() {
  bool fits = llvm::any_of(ways, [](const Way &way) {
    return way.kind == "pins" && way.found && way.found->fits;
  });
  if (!fits || pinned.size() == 1)
    return;
  for (const std::string &name :
       llvm::ArrayRef(pinned).take_front(kMaxOpened)) {
    Way &way = ways.emplace_back();
    way.kind = "pins";
    way.trial = [name](unsigned) { return openTrial(name); };
  }
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

/// The program's text with other overrides; null if they are not legal.
const ProgramText *WayFinder::textWith(const Overrides &other) {
  auto source = std::make_unique<ProgramSource>(original, &context, other);
  if (!source->text || !checkSettings(*source->text, &context, {}))
    return nullptr;
  sources.push_back(std::move(source));
  return &*sources.back()->text;
}

void WayFinder::addSearch() {
  if (options.mode == OptMode::Optimize)
    return;
  Way &way = ways.emplace_back();
  way.kind = "search";
  way.trial = [](unsigned) {
    Variant searched;
    searched.mode = OptMode::Optimize;
    return Trial{"--opt=optimize", searched};
  };
}

/// The plan at hand is of least memory; with that much there are faster ones.
void WayFinder::addLimit() {
  if (options.mode != OptMode::Optimize)
    return;
  Way &way = ways.emplace_back();
  way.kind = "limit";
  way.trial = [this](unsigned) {
    Variant enough;
    enough.memoryLimit = report.memory.peak;
    return Trial{"--memory-limit " + std::to_string(report.memory.peak),
                 enough};
  };
}

void WayFinder::addPadding() {
  if (overrides.allowPadding || options.mode != OptMode::Optimize ||
      !report.undivided())
    return;
  Way &way = ways.emplace_back();
  way.kind = "padding";
  way.trial = [this](unsigned) -> std::optional<Trial> {
    Overrides padded = overrides;
    padded.allowPadding = true;
    Variant variant;
    variant.text = textWith(padded);
    if (!variant.text)
      return std::nullopt;
    return Trial{"--allow-padding", variant};
  };
}

/// Logits take a part of their memory where product and loss run in chunks, and
/// none in one kernel, which is a way of its own: it needs such a kernel.
void WayFinder::addChunks() {
  std::vector<Operation *> operations =
      operationsOf(*program->module->getOps<ProgramOp>().begin());
  std::vector<UnfusedLoss> losses = unfusedLosses(operations);
  if (losses.empty())
    return;
  auto trialOf = [](llvm::ArrayRef<UnfusedLoss> losses, int64_t chunks) {
    std::string text = chunks == kAllChunks ? "all" : std::to_string(chunks);
    return Trial{"cross_entropy(..., chunks=" + text + ")",
                 Variant::inChunks(losses, chunks)};
  };
  auto add = [this](std::vector<Trial> trials) {
    if (trials.empty())
      return;
    Way &way = ways.emplace_back();
    way.kind = "chunks";
    way.maxSteps = trials.size();
    way.trial = [trials](unsigned step) { return trials[step - 1]; };
  };
  std::vector<Trial> trials;
  for (int64_t chunks : {8, 64}) {
    std::vector<UnfusedLoss> fewer;
    for (const UnfusedLoss &loss : losses)
      if (cast<CrossEntropyOp>(loss.op).getRowChunks() < chunks)
        fewer.push_back(loss);
    bool divides = llvm::all_of(fewer, [&](const UnfusedLoss &loss) {
      return numLabels(loss.op) % chunks == 0;
    });
    if (!fewer.empty() && divides)
      trials.push_back(trialOf(fewer, chunks));
  }
  add(std::move(trials));
  add({trialOf(losses, kAllChunks)});
}

//===----------------------------------------------------------------------===//
// Smaller inputs
//===----------------------------------------------------------------------===//

/// Indices of inputs and states that no weight has: what arrives in a step.
static std::vector<std::string> batchDims(ProgramOp program) {
  std::set<StringRef> ofWeights;
  std::vector<std::string> names;
  auto indicesOf = [](DeclareOp op) {
    llvm::SmallVector<StringRef> names(
        op.getIndices().getAsValueRange<StringAttr>());
    names.erase(names.begin(), names.begin() + op.getStacked());
    return names;
  };
  program->walk([&](DeclareOp op) {
    if (op.getKind() == TensorKind::Weight)
      for (StringRef index : indicesOf(op))
        ofWeights.insert(index);
  });
  program->walk([&](DeclareOp op) {
    if (op.getKind() != TensorKind::Weight)
      for (StringRef index : indicesOf(op))
        if (!ofWeights.contains(index) && !llvm::is_contained(names, index))
          names.push_back(index.str());
  });
  return names;
}

void WayFinder::addDims() {
  std::vector<std::string> names =
      batchDims(*program->module->getOps<ProgramOp>().begin());
  size_t added = 0;
  for (const std::string &name : names) {
    std::optional<int64_t> extent = writtenExtent(*text, &context, name);
    if (!extent || *extent % 2 != 0 || added++ == kMaxDims)
      continue;
    Way &way = ways.emplace_back();
    way.kind = "dim";
    way.maxSteps = kMaxSteps;
    way.trial = [name, extent = *extent](unsigned step) {
      if (extent % (int64_t(1) << step) != 0)
        return std::optional<Trial>();
      int64_t smaller = extent >> step;
      Setting setting{Setting::Kind::Dim, name, smaller, nullptr, {}};
      return std::optional(
          Trial{"--dim " + name + "=" + std::to_string(smaller),
                Variant::at({std::move(setting)})});
    };
  }
}

//===----------------------------------------------------------------------===//
// More devices
//===----------------------------------------------------------------------===//

/// A machine as after `hardware`, with this shape; its fields too, or `{...}`.
std::string WayFinder::hardwareText(llvm::ArrayRef<int64_t> shape,
                                    bool inFull) const {
  const ast::HardwareDecl &decl = *text->hardwareDecl();
  std::string named = shapeToString(decl.name.text, shape);
  if (!decl.hasBody)
    return named;
  if (!inFull)
    return named + " {...}";
  const char *start = decl.shape.empty()
                          ? decl.name.range.End.getPointer()
                          : decl.shape.back()->range.End.getPointer();
  StringRef rest(start, decl.range.End.getPointer() - start);
  return named + " " +
         rest.drop_front(std::min(rest.find('{'), rest.size())).str();
}

/// As after `mesh`, with another size of one axis.
std::string WayFinder::meshText(size_t axis, int64_t size) const {
  const ast::MeshDecl &decl = *text->meshDecl();
  std::vector<std::string> axes;
  for (auto [i, each] : llvm::enumerate(decl.axes)) {
    int64_t number = i == axis ? size : report.mesh[i].size;
    std::string text = each.name.text + "=" + std::to_string(number);
    std::vector<std::string> on;
    for (const ast::Name &name : each.on)
      on.push_back(name.text);
    if (on.size() == 1)
      text += " on " + on.front();
    else if (!on.empty())
      text += " on (" + llvm::join(on, ", ") + ")";
    axes.push_back(std::move(text));
  }
  return "[" + llvm::join(axes, ", ") + "]";
}

std::optional<Setting> WayFinder::largerMachine(size_t level, unsigned step) {
  std::vector<int64_t> shape = report.hardware.shape;
  shape[level] <<= step;
  return readMachine(*text, &context, hardwareText(shape, /*inFull=*/true));
}

/// A mesh axis twice as long for each step: on idle chips, or on a machine that
/// is as much larger where the axis lies, or else elsewhere.
std::optional<Trial> WayFinder::largerAxis(size_t axis, unsigned step) {
  const Report::Axis &old = report.mesh[axis];
  Setting larger{Setting::Kind::Axis, old.name, old.size << step, nullptr, {}};
  std::string mesh = "--mesh '" + meshText(axis, larger.number) + "'";
  if (checkSettings(*text, &context, larger))
    return Trial{mesh, Variant::at({larger})};
  std::vector<size_t> levels;
  for (bool here : {true, false})
    for (auto [i, level] : llvm::enumerate(report.hardware.levels))
      if (llvm::is_contained(old.on, level.name) == here &&
          i < report.hardware.shape.size())
        levels.push_back(i);
  for (size_t level : levels) {
    std::optional<Setting> machine = largerMachine(level, step);
    if (!machine)
      continue;
    Point point = {*machine, larger};
    if (!checkSettings(*text, &context, point))
      continue;
    std::vector<int64_t> shape = report.hardware.shape;
    shape[level] <<= step;
    return Trial{"--hardware '" + hardwareText(shape, /*inFull=*/false) + "' " +
                     mesh,
                 Variant::at(std::move(point))};
  }
  return std::nullopt;
}

/// The first mesh for a program on one device.
std::optional<Trial> WayFinder::firstMesh(unsigned step) {
  int64_t devices = int64_t(1) << step;
  std::vector<int64_t> shape = {devices};
  // A torus has a number for each of its axes.
  for (; shape.size() <= 3; shape.push_back(1)) {
    Overrides more = overrides;
    more.hardware = hardwareText(shape, /*inFull=*/true);
    more.mesh = "[X=" + std::to_string(devices) + "]";
    Variant variant;
    variant.text = textWith(more);
    if (variant.text)
      return Trial{"--hardware '" + hardwareText(shape, /*inFull=*/false) +
                       "' --mesh '" + *more.mesh + "'",
                   variant};
  }
  return std::nullopt;
}

void WayFinder::addMeshes() {
  const ast::MeshDecl *mesh = text->meshDecl();
  if (!text->hardwareDecl() || (mesh && mesh->isAuto))
    return;
  auto add = [&](auto trial) {
    Way &way = ways.emplace_back();
    way.kind = "mesh";
    way.maxSteps = kMaxSteps;
    way.trial = trial;
  };
  if (!mesh && report.hardware.chips == 1)
    add([this](unsigned step) { return firstMesh(step); });
  for (size_t axis = 0; mesh && axis < mesh->axes.size(); ++axis)
    add([this, axis](unsigned step) { return largerAxis(axis, step); });
}

//===----------------------------------------------------------------------===//
// Trying
//===----------------------------------------------------------------------===//

WayFinder::WayFinder(const llvm::SourceMgr &sourceMgr,
                     const Overrides &overrides, const PlanOptions &options,
                     const Report &report, TrialOptions how)
    : original(sourceMgr), overrides(overrides), options(options),
      report(report), context(MLIRContext::Threading::DISABLED),
      silence(&context, [](Diagnostic &) {}),
      runner(
          [this] {
            return std::make_unique<Evaluator>(*text, this->options,
                                               this->report.file);
          },
          how) {
  this->options.objective = Objective::Upper;
}

int WayFinder::countTrials() const {
  size_t axes = llvm::count_if(
      report.mesh, [](const Report::Axis &axis) { return axis.size > 1; });
  size_t operations = llvm::count_if(
      report.items, [](const ReportItem &item) { return item.compute(); });
  double size = double(operations + 1) * std::pow(10.0, double(axes));
  if (size > kMaxProgram)
    return 0;
  return std::clamp(int(kMaxWork / size), kLeastTrials, kMostTrials);
}

/// The new sharding of a tensor whose annotation was taken out.
static std::string openedText(const std::string &name, const Report &found) {
  for (const ReportTensor &tensor : found.tensors)
    if (tensor.name == name)
      return ": " + name + tensor.sharding;
  return "";
}

/// What came of the last step of a way; false if it leads no further.
bool WayFinder::takeOutcome(Way &way, const Trial &trial,
                            const Outcome &outcome) {
  if (!outcome.report)
    return false;
  const Report &found = *outcome.report;
  bool fits = found.memory.fits && found.plan.status != "infeasible";
  // A larger change that takes no less memory is no better.
  if (way.found && !fits && found.memory.peak >= way.found->peak)
    return false;
  way.found = {way.kind,
               trial.change + openedText(trial.opened, found),
               fits,
               found.plan.status,
               found.memory.peak,
               found.memory.allowed(),
               found.time.scheduled};
  return !fits && way.steps < way.maxSteps;
}

/// Takes every way its next step, unless it is over or has taken so many.
void WayFinder::tryAll(unsigned steps) {
  std::vector<Way *> taken;
  std::vector<Trial> trials;
  std::vector<Variant> variants;
  for (Way &way : ways) {
    if (way.isOver || way.steps >= steps || trialsLeft == 0)
      continue;
    std::optional<Trial> trial = way.trial(++way.steps);
    way.isOver = !trial;
    if (!trial)
      continue;
    --trialsLeft;
    taken.push_back(&way);
    variants.push_back(trial->variant);
    trials.push_back(std::move(*trial));
  }
  for (auto [way, trial, outcome] :
       llvm::zip_equal(taken, trials, runner.plan(variants)))
    way->isOver = !takeOutcome(*way, trial, outcome);
}

std::vector<Report::WayOut> WayFinder::run() {
  sources.push_back(
      std::make_unique<ProgramSource>(original, &context, overrides));
  if (!sources.back()->text)
    return {};
  text = &*sources.back()->text;
  program = importStep(*text, &context);
  trialsLeft = countTrials();
  if (!program || trialsLeft == 0)
    return {};
  addSearch();
  addMeshes();
  addDims();
  addPins();
  addPadding();
  addChunks();
  addLimit();
  // Where few can be tried, one of each kind.
  std::map<StringRef, unsigned> ofKind;
  for (Way &way : ways)
    way.rank = ofKind[way.kind]++;
  llvm::stable_sort(ways,
                    [](const Way &a, const Way &b) { return a.rank < b.rank; });
  tryAll(1);
  openSingly();
  for (unsigned steps = 1; steps <= kMaxSteps; ++steps)
    tryAll(steps);
  // A limit is the user's to raise, unless the machine has no more.
  bool hasMore = report.memory.peak <= report.memory.usable();
  std::vector<StringRef> kinds = {"search", "pins", "padding",
                                  "chunks", "dim",  "mesh"};
  kinds.insert(hasMore ? kinds.begin() + 4 : kinds.end(), "limit");
  std::vector<Report::WayOut> result;
  for (bool fits : {true, false})
    for (StringRef kind : kinds)
      for (Way &way : ways)
        if (way.found && way.found->fits == fits && way.kind == kind)
          result.push_back(std::move(*way.found));
  return result;
}

std::vector<Report::WayOut>
shardc::findWaysOut(const llvm::SourceMgr &sourceMgr,
                    const Overrides &overrides, const PlanOptions &options,
                    const Report &report, const TrialOptions &how) {
  return WayFinder(sourceMgr, overrides, options, report, how).run();
}
