//===- Explain.cpp - Why a tensor has its sharding ------------------------===//

#include "shardc/Questions/Explain.h"
#include "OuterChoice.h"
#include "Pins.h"
#include "mlir/IR/Diagnostics.h"
#include "shardc/Optimizer/Domain.h"
#include "shardc/Optimizer/Names.h"
#include "shardc/Pipelines/Compilation.h"
#include "shardc/Report/Seconds.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

/// Parts of the time that is left for the plan of the program as it is written,
/// and for those with other shardings.
static constexpr double kShareOfWritten = 0.25, kShareOfAlternatives = 0.7;

//===----------------------------------------------------------------------===//
// Places in the program
//===----------------------------------------------------------------------===//

static std::string kindOf(Operation *op) {
  if (DeclareOp declared = introducedBy(op))
    return stringifyTensorKind(declared.getKind()).str();
  return isa<OutputOp>(op) ? "output" : "activation";
}

/// True if `name` is `wanted`, or that of one of its values: `x.2` for `x`.
static bool isCalled(StringRef name, StringRef wanted) {
  if (!name.consume_front(wanted))
    return false;
  return name.empty() || (name.consume_front(".") && !name.empty() &&
                          llvm::all_of(name, llvm::isDigit));
}

/// The name that was probably meant: in a layer (`y.h` for `h`), or misspelt.
static StringRef likelyName(StringRef wanted, ArrayRef<StringRef> names) {
  for (StringRef name : names)
    if (name.ends_with(("." + wanted).str()))
      return name;
  return nearestName(wanted, names, std::max<size_t>(1, wanted.size() / 2));
}

namespace {

/// A tensor of the name that was asked for, and the shardings it may have.
struct Target {
  PinPlace place;
  /// Its annotation, or null.
  ShardingAttr pin;
  std::vector<Layout> layouts;
};

/// A variant that is to be planned, and where its outcome goes.
struct Task {
  Variant variant;
  std::function<void(const Outcome &)> keep;
};

class Explainer {
public:
  Explainer(const ProgramText &text, Program &program, StringRef name,
            TrialRunner &runner)
      : text(text), mesh(program.mesh), name(name), runner(runner),
        op(*program.module->getOps<ProgramOp>().begin()),
        operations(operationsOf(op)) {}

  bool findTargets();
  Variant asWritten() const;
  void findPins() { pins = collectPins(text, mesh, operations); }
  void enumerateLayouts(ArrayRef<Layout> chosen);
  Explanation run(const Outcome &written);
  void emitUnknownName() const;

private:
  Operation *at(PinPlace place) const { return operations[place.op]; }
  Value valueAt(PinPlace place) const {
    return shardc::valueAt(operations, place);
  }
  std::string notation(PinPlace place, const Layout &layout) const {
    return notationAt(operations, mesh, place, layout);
  }

  ExplainedTensor describe(const Target &target, const Layout &chosen,
                           const Report &report) const;
  void planAll(std::vector<Task> tasks, double share);
  void addTasks(const Target &target, ExplainedTensor &tensor,
                const PlanFigures &plan, std::vector<Task> &tasks) const;
  void addUnlimited(const Target &target, ExplainedTensor &tensor,
                    std::vector<Task> &tasks) const;
  Variant forced(const Target &target, const Layout &layout,
                 bool unlimited) const;
  Variant withoutPin(const WrittenPin &pin) const;

  const ProgramText &text;
  const Mesh &mesh;
  StringRef name;
  TrialRunner &runner;
  ProgramOp op;
  std::vector<Operation *> operations;
  std::vector<Target> targets;
  std::vector<WrittenPin> pins;
};

} // namespace

bool Explainer::findTargets() {
  for (auto [number, each] : llvm::enumerate(operations)) {
    if (std::string found = tensorName(each);
        found.empty() || !isCalled(found, name))
      continue;
    PinPlace place{unsigned(number), std::nullopt};
    if (isa<OutputOp>(each))
      place.operand = 0;
    targets.push_back({place, pinAt(operations, place), {}});
  }
  return !targets.empty();
}

void Explainer::emitUnknownName() const {
  std::vector<std::string> names;
  for (Operation *each : operations)
    if (std::string found = tensorName(each); !found.empty())
      names.push_back(std::move(found));
  std::vector<StringRef> candidates(names.begin(), names.end());
  InFlightDiagnostic diagnostic =
      emitError(UnknownLoc::get(op->getContext()))
      << "the program has no tensor and no operation '" << name << "'";
  if (StringRef likely = likelyName(name, candidates); !likely.empty())
    diagnostic << "; did you mean '" << likely << "'?";
}

/// All layouts without partial sums, what the operation can make, and what the
/// plan has. Takes the targets' own annotations out of the program.
void Explainer::enumerateLayouts(ArrayRef<Layout> chosen) {
  std::unique_ptr<PlanningContext> planning = createContext(op);
  for (Target &target : targets)
    setPinAt(operations, target.place, {});
  assignFusionGroups(op);
  Graph graph = buildGraph(op);
  for (auto [target, now] : llvm::zip_equal(targets, chosen)) {
    target.layouts = shardc::enumerateLayouts(
        mesh, tensorShape(valueAt(target.place).getType()),
        /*withPartial=*/false, planning->allowPadding);
    std::vector<Layout> more{now};
    auto chunk = graph.chunkOf.find(at(target.place));
    if (!target.place.operand && chunk != graph.chunkOf.end()) {
      const Chunk &maker = graph.chunks[chunk->second];
      const GraphValue &made =
          graph.values[graph.valueIndex.lookup(valueAt(target.place))];
      llvm::append_range(more, buildDomain(*planning, maker).layoutsOf(made));
      llvm::sort(more);
    }
    for (Layout &layout : more)
      if (!llvm::is_contained(target.layouts, layout))
        target.layouts.push_back(std::move(layout));
  }
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

Variant Explainer::asWritten() const {
  Variant variant;
  for (const Target &target : targets)
    variant.watched.push_back(target.place);
  return variant;
}

Variant Explainer::forced(const Target &target, const Layout &layout,
                          bool unlimited) const {
  Variant variant;
  variant.pins.push_back({target.place, layout});
  if (unlimited)
    variant.memoryLimit = kNoMemoryLimit;
  return variant;
}

Variant Explainer::withoutPin(const WrittenPin &pin) const {
  Variant variant = pin.withoutIt();
  variant.watched = asWritten().watched;
  return variant;
}

ExplainedTensor Explainer::describe(const Target &target, const Layout &chosen,
                                    const Report &report) const {
  Operation *maker = at(target.place);
  ExplainedTensor tensor;
  tensor.name = tensorName(maker);
  tensor.kind = kindOf(maker);
  tensor.sharding = notation(target.place, chosen);
  tensor.loc = locationText(maker->getLoc());
  for (const WrittenPin &pin : pins)
    if (llvm::is_contained(pin.places, target.place)) {
      tensor.pin = pin.text;
      tensor.pinLoc = pin.loc;
    }
  if (tensor.kind == "activation")
    for (const ReportItem &item : report.items)
      if (item.compute() && item.name == tensor.name && item.loc == tensor.loc)
        tensor.makers.push_back(item);
  if (tensor.kind == "weight") {
    for (const ReportTensor &each : report.tensors)
      if (each.of == tensor.name)
        tensor.companions.push_back(each);
    for (const ReportItem &item : report.items)
      if (item.collective() && item.total > 0 &&
          (item.collective()->operand == tensor.name + ".update" ||
           llvm::any_of(tensor.companions, [&](const ReportTensor &each) {
             return item.collective()->operand == each.name;
           })))
        tensor.moves.push_back(item);
  }
  for (const Layout &layout : target.layouts) {
    Alternative &alternative = tensor.alternatives.emplace_back();
    alternative.sharding = notation(target.place, layout);
    alternative.partial = layout.partial != 0;
    alternative.chosen = layout == chosen;
    alternative.forbidden = target.pin && !admits(mesh, target.pin, layout);
  }
  return tensor;
}

static void sortAlternatives(std::vector<Alternative> &alternatives) {
  auto rank = [](const Alternative &each) {
    int group = each.fits() ? 0 : each.plan ? 1 : 2;
    int64_t value = !each.plan        ? 0
                    : each.plan->fits ? each.plan->value
                                      : each.plan->excess();
    return std::tuple(group, value, !each.chosen, each.sharding.size(),
                      StringRef(each.sharding));
  };
  llvm::sort(alternatives, [&](const Alternative &a, const Alternative &b) {
    return rank(a) < rank(b);
  });
}

void Explainer::addTasks(const Target &target, ExplainedTensor &tensor,
                         const PlanFigures &plan,
                         std::vector<Task> &tasks) const {
  for (auto [alternative, layout] :
       llvm::zip_equal(tensor.alternatives, target.layouts)) {
    if (alternative.chosen) {
      alternative.plan = plan;
      continue;
    }
    tasks.push_back({forced(target, layout, /*unlimited=*/false),
                     [&alternative](const Outcome &outcome) {
                       if (outcome.report)
                         alternative.plan = figuresOf(*outcome.report);
                       else
                         std::tie(alternative.error, alternative.loc) =
                             std::tie(outcome.error, outcome.loc);
                     }});
  }
}

/// With all memory, where more than there is may change the plan.
void Explainer::addUnlimited(const Target &target, ExplainedTensor &tensor,
                             std::vector<Task> &tasks) const {
  for (auto [alternative, layout] :
       llvm::zip_equal(tensor.alternatives, target.layouts)) {
    if (alternative.chosen)
      continue;
    if (alternative.plan && alternative.plan->isRoomy()) {
      alternative.unlimited = alternative.plan->value;
      continue;
    }
    tasks.push_back({forced(target, layout, /*unlimited=*/true),
                     [&alternative](const Outcome &outcome) {
                       if (outcome.report)
                         alternative.unlimited =
                             figuresOf(*outcome.report).value;
                     }});
  }
}

void Explainer::planAll(std::vector<Task> tasks, double share) {
  std::vector<Variant> variants;
  for (Task &task : tasks)
    variants.push_back(std::move(task.variant));
  for (auto [task, outcome] :
       llvm::zip_equal(tasks, runner.plan(variants, share)))
    task.keep(outcome);
}

Explanation Explainer::run(const Outcome &written) {
  Explanation result;
  result.name = name.str();
  result.file = written.report->file;
  result.objective = written.report->plan.objective;
  result.plan = figuresOf(*written.report);

  std::vector<Task> tasks;
  Variant unlimited = asWritten();
  unlimited.memoryLimit = kNoMemoryLimit;
  tasks.push_back({std::move(unlimited), [&](const Outcome &outcome) {
                     if (outcome.report)
                       result.unlimited = figuresOf(*outcome.report);
                   }});
  for (auto [target, chosen] : llvm::zip_equal(targets, written.layouts))
    result.tensors.push_back(describe(target, chosen, *written.report));
  for (auto [target, tensor] : llvm::zip_equal(targets, result.tensors))
    addTasks(target, tensor, result.plan, tasks);
  for (const WrittenPin &pin : pins)
    result.pins.push_back({pin.text, pin.of, pin.loc, std::nullopt, {}});
  for (auto [pin, effect] : llvm::zip_equal(pins, result.pins))
    tasks.push_back({withoutPin(pin), [&](const Outcome &outcome) {
                       if (!outcome.report)
                         return;
                       effect.without = figuresOf(*outcome.report);
                       for (auto [target, layout] :
                            llvm::zip_equal(targets, outcome.layouts))
                         effect.shardings.push_back(
                             notation(target.place, layout));
                     }});
  planAll(std::move(tasks), kShareOfAlternatives);
  tasks.clear();
  for (auto [target, tensor] : llvm::zip_equal(targets, result.tensors))
    addUnlimited(target, tensor, tasks);
  planAll(std::move(tasks), 1);
  for (ExplainedTensor &tensor : result.tensors) {
    for (Alternative &alternative : tensor.alternatives)
      if (alternative.chosen && result.unlimited)
        alternative.unlimited = result.unlimited->value;
    // Partial sums that the operation could leave, but nothing could take.
    llvm::erase_if(tensor.alternatives, [](const Alternative &each) {
      return each.partial && !each.plan;
    });
    sortAlternatives(tensor.alternatives);
  }
  return result;
}

static Explanation explainChoice(const Report &report) {
  Explanation result;
  result.file = report.file;
  result.objective = report.plan.objective;
  result.plan = figuresOf(report);
  return result;
}

/// What the backward pass of a step keeps and computes again.
static Explanation explainRemat(const Report &report) {
  Explanation result = explainChoice(report);
  result.name = "remat";
  ExplainedRemat &remat = result.remat.emplace();
  remat.remat = report.training->remat;
  remat.microbatches = report.training->microbatches;
  remat.room = double(report.memory.allowed() - report.memory.peak);
  for (const ReportTensor &tensor : report.tensors)
    if (tensor.kind == "saved") {
      remat.kept.push_back(tensor);
      remat.keptBytes += tensor.localBytes;
    }
  Picoseconds again = 0;
  for (const ReportItem &item : report.items)
    if (item.phase == Phase::Recompute) {
      remat.again.push_back(item);
      again += item.total;
    }
  remat.againSeconds = toSeconds(again);
  llvm::stable_sort(remat.kept, [](const auto &a, const auto &b) {
    return a.localBytes > b.localBytes;
  });
  llvm::stable_sort(remat.again, [](const auto &a, const auto &b) {
    return a.total > b.total;
  });
  return result;
}

std::vector<const PinEffect *> Explanation::bindingPins() const {
  std::vector<const PinEffect *> binding;
  for (const PinEffect &pin : pins)
    if (pin.without && pin.without->fits &&
        (!plan.fits || pin.without->value < plan.value))
      binding.push_back(&pin);
  return binding;
}

std::optional<Picoseconds>
Explanation::memoryShare(const Alternative &alternative) const {
  if (!plan.fits || !unlimited || !alternative.fits() || !alternative.unlimited)
    return std::nullopt;
  return (alternative.plan->value - *alternative.unlimited) -
         (plan.value - unlimited->value);
}

std::variant<Explanation, NoExplanation>
shardc::explain(const ProgramText &text, MLIRContext *context, StringRef name,
                TrialRunner &runner) {
  auto *dialect = context->getOrLoadDialect<ShdDialect>();
  std::optional<Program> program;
  {
    // What is wrong with the program is for the compiler to say.
    ScopedDiagnosticHandler silence(context, [](Diagnostic &) {});
    program = importStep(text, context);
    if (!program)
      return NoExplanation::WrongProgram;
  }
  dialect->setMachineLoader(
      [machine = program->machine](HardwareAttr) { return machine; });
  Explainer explainer(text, *program, name, runner);
  bool isStep =
      (*program->module->getOps<ProgramOp>().begin()).getTraining().has_value();
  bool isTensor = explainer.findTargets();
  if (!isTensor && isStep && name == "remat") {
    Outcome outcome = runner.plan(Variant(), kShareOfWritten);
    if (!outcome.report)
      return NoExplanation::WrongProgram;
    Explanation remat = explainRemat(*outcome.report);
    remat.choices = OuterChoice(text, *program, name, runner).run(outcome);
    return remat;
  }
  if (OuterChoice choice(text, *program, name, runner);
      !isTensor && choice.exists()) {
    Outcome outcome = runner.plan(Variant(), kShareOfWritten);
    if (!outcome.report)
      return NoExplanation::WrongProgram;
    Explanation result = explainChoice(*outcome.report);
    result.name = name.str();
    result.choices = choice.run(outcome);
    return result;
  }
  if (!isTensor) {
    explainer.emitUnknownName();
    return NoExplanation::WrongQuestion;
  }
  Outcome written = runner.plan(explainer.asWritten(), kShareOfWritten);
  if (!written.report)
    return NoExplanation::WrongProgram;
  const Report::Plan &plan = written.report->plan;
  bool isPropagated = plan.isPropagated && plan.status == "fixed";
  bool isAroundMerged = plan.searched == "around merged axes";
  if (isPropagated || isAroundMerged ||
      (plan.status == "feasible" && !plan.bound)) {
    emitError(UnknownLoc::get(context))
        << (isAroundMerged
                ? "nothing to explain: on a mesh of so many axes only some "
                  "plans are searched, which is not supported yet"
            : isPropagated
                ? "nothing to explain: a program of so many operations is not "
                  "searched"
                : "nothing to explain: no plan was searched for, because the "
                  "--time-limit is too short");
    return NoExplanation::WrongQuestion;
  }
  explainer.findPins();
  explainer.enumerateLayouts(written.layouts);
  return explainer.run(written);
}
