//===- WritePlan.cpp - Plans as text that is read back --------------------===//

#include "shardc/PlanText/WritePlan.h"
#include "ComparePlans.h"
#include "StatementOrder.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/IRMapping.h"
#include "shardc/Dialect/Shd/IR/Order.h"
#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "shardc/Dialect/Shd/IR/WorkOrder.h"
#include "shardc/Optimizer/Names.h"
#include "shardc/Pipelines/Compilation.h"
#include "shardc/PlanText/PlanText.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {
/// The plan that the text of a plan is read as.
struct ReadPlan {
  /// The plan made explicit; nothing if the text is refused.
  std::optional<Compilation> compilation;
  /// Why it is refused.
  std::string refusal;
};
} // namespace

/// Makes a plan explicit in the order of its text, whichever it runs in.
static LogicalResult lowerInText(Compilation &compilation) {
  compilation.program()->removeAttr(kWorkOrder);
  return compilation.lower();
}

/// A text that says everything, with a source manager of its own.
static std::optional<Compilation> importText(StringRef text,
                                             llvm::SourceMgr &sourceMgr,
                                             MLIRContext *context,
                                             const Overrides &overrides) {
  sourceMgr.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(text), {});
  Overrides alone;
  alone.allowPadding = overrides.allowPadding;
  alone.calibrated = overrides.calibrated;
  PlanOptions asWritten;
  asWritten.mode = OptMode::None;
  return Compilation::import(sourceMgr, context, alone, {asWritten});
}

static ReadPlan readPlan(StringRef text, MLIRContext *context,
                         const Overrides &overrides) {
  ReadPlan plan;
  ScopedDiagnosticHandler quiet(context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
        plan.refusal.empty())
      plan.refusal = diagnostic.str();
    return success();
  });
  llvm::SourceMgr sourceMgr;
  std::optional<Compilation> read =
      importText(text, sourceMgr, context, overrides);
  if (read && succeeded(read->plan()) && succeeded(lowerInText(*read)))
    plan.compilation = std::move(read);
  return plan;
}

/// `all_gather of 'W'`.
static std::string describe(Operation *op) {
  StringRef kind = op->getName().stripDialect();
  std::string name =
      op->getNumResults() > 0 ? valueName(op->getResults().front()) : "";
  if (auto output = dyn_cast<OutputOp>(op))
    name = output.getSym().str();
  else if (auto update = dyn_cast<UpdateOp>(op))
    name = update.getSym().str();
  return kind.str() + (name.empty() ? "" : " of '" + name + "'");
}

static InFlightDiagnostic emitNoText(Location loc) {
  return emitError(loc) << "this plan cannot be written as a program: ";
}

/// The operations of the plan whose text is to say more where it is read with
/// another `op`: those before and behind a collective, or the operation itself.
static SmallVector<Operation *> responsibleFor(Operation *op) {
  SmallVector<Operation *> result;
  if (!isCollective(op))
    return {op};
  if (Operation *maker = rootValue(onlyResult(op)).getDefiningOp())
    result.push_back(maker);
  for (Operation *user : op->getUsers())
    llvm::append_range(result, isCollective(user) ? responsibleFor(user)
                                                  : SmallVector{user});
  return result;
}

/// Texts of a training step that say more and more, before one says all.
static constexpr unsigned kMostRounds = 4;

namespace {
/// Writes a plan and says more of it until it is read back as it is.
class PlanWriter {
public:
  PlanWriter(ProgramOp planned, const Overrides &overrides,
             std::optional<int64_t> memoryLimit)
      : planned(planned), overrides(overrides), memoryLimit(memoryLimit) {}

  FailureOr<std::string> write(const Program &program,
                               llvm::SourceMgr &sourceMgr);

private:
  LogicalResult lower();
  bool sayMore(Operation *op);
  bool sayAll();
  LogicalResult report(const PlanDifference &difference);
  LogicalResult takeStages();
  LogicalResult checkStages(Compilation &read);
  bool isStep() { return planned.getTraining() || planned.getPipeline(); }
  std::string inOrder(std::string text);

  ProgramOp planned;
  const Overrides &overrides;
  std::optional<int64_t> memoryLimit;
  std::optional<Compilation> lowered;
  /// Operations of the plan, by what they are once it is explicit.
  llvm::DenseMap<Operation *, Operation *> plannedOf;
  ExplicitOps explicitOps;
};
} // namespace

LogicalResult PlanWriter::lower() {
  IRMapping mapping;
  lowered.emplace(
      cast<ModuleOp>(planned->getParentOfType<ModuleOp>()->clone(mapping)),
      Compilation::Stage::Planned);
  lowered->options().plan.memoryLimit = memoryLimit;
  for (auto [from, to] : mapping.getOperationMap())
    plannedOf[to] = from;
  return lowerInText(*lowered);
}

/// False if nothing more can be said.
bool PlanWriter::sayMore(Operation *op) {
  bool isMore = false;
  for (Operation *each : responsibleFor(op))
    if (Operation *from = plannedOf.lookup(each))
      isMore |= explicitOps.insert(from).second;
  return isMore;
}

/// False if all has been said.
bool PlanWriter::sayAll() {
  bool isMore = false;
  planned->walk(
      [&](Operation *op) { isMore |= explicitOps.insert(op).second; });
  return isMore;
}

LogicalResult PlanWriter::report(const PlanDifference &difference) {
  if (difference.in)
    return emitNoText(difference.in->getLoc())
           << "read back, its " << describe(difference.in)
           << " would be another";
  return emitNoText(planned.getLoc())
         << "read back, it would have another " << describe(difference.other);
}

/// The orders that the compiler chose, of indices that the program's inputs
/// have.
static std::string ordersText(ProgramOp explicitPlan) {
  auto written = explicitPlan->getAttrOfType<DictionaryAttr>(kOrders);
  auto classes = explicitPlan->getAttrOfType<ArrayAttr>(kOrderClasses);
  std::string text;
  auto isOfInput = [&](StringRef index) {
    return llvm::any_of(
        explicitPlan.getBody().getOps<DeclareOp>(), [&](DeclareOp declare) {
          auto dealt = declare->getAttrOfType<DictionaryAttr>(kDealt);
          return dealt && dealt.contains(index);
        });
  };
  for (Attribute record :
       classes ? classes.getValue() : ArrayRef<Attribute>()) {
    auto index = cast<DictionaryAttr>(record).getAs<StringAttr>("index");
    if (isOfInput(index) && !(written && written.contains(index)))
      text += "order " + index.str() + " = zigzag\n";
  }
  return text;
}

/// Runs the plan in its stages and writes down their order, which the search
/// leaves open.
LogicalResult PlanWriter::takeStages() {
  std::optional<PipelineAttr> pipeline = planned.getPipeline();
  if (!pipeline)
    return success();
  CompileOptions options;
  options.plan.memoryLimit = memoryLimit;
  Compilation compilation(planned->getParentOfType<ModuleOp>().clone(),
                          Compilation::Stage::Planned, options);
  const StagePlan *stages = compilation.stages();
  if (!stages)
    return failure();
  planned.setPipelineAttr(withOrder(*pipeline, toString(stages->order)));
  return success();
}

/// The stages of both plans, in the order of the text, have the same layers,
/// time and memory.
LogicalResult PlanWriter::checkStages(Compilation &read) {
  if (!planned.getPipeline())
    return success();
  read.options().plan.memoryLimit = memoryLimit;
  const StagePlan *ours = lowered->stages(), *theirs = read.stages();
  if (!ours || !theirs)
    return failure();
  StringRef other = ours->order != theirs->order ? "run in another order"
                    : layersOf(*ours) != layersOf(*theirs) ? "hold other layers"
                    : ours->scheduled != theirs->scheduled ? "take another time"
                    : ours->worstMemory().peak != theirs->worstMemory().peak
                        ? "have another peak of memory"
                        : "";
  if (other.empty())
    return success();
  PipelineAttr pipeline = *planned.getPipeline();
  RepeatOp layers = pipelineRepeats(planned, pipeline.getIndex()).forward;
  return emitNoText(layers.getLoc()) << "read back, its stages would " << other;
}

namespace {
/// The operations of a text that was written of a plan.
struct WrittenWork {
  /// By the plan's numbers.
  SmallVector<Operation *> ops;
  /// Copies that the text names: the plan's have no number.
  SmallVector<Operation *> copies;
};
} // namespace

/// Nothing if the text has other operations.
static std::optional<WrittenWork> matchWork(ProgramOp planned,
                                            ProgramOp written) {
  std::vector<Operation *> numbered = orderedOperations(planned);
  WrittenWork work;
  for (Operation *op : orderedOperations(written)) {
    size_t next = work.ops.size();
    if (next < numbered.size() && numbered[next]->getName() == op->getName())
      work.ops.push_back(op);
    else if (isa<ReshardOp>(op))
      work.copies.push_back(op);
    else
      return std::nullopt;
  }
  return work.ops.size() == numbered.size() ? std::optional(std::move(work))
                                            : std::nullopt;
}

/// The text in the order in which the plan runs, if it is still the same plan
/// then. The text of a training step has but its forward pass.
std::string PlanWriter::inOrder(std::string text) {
  if (planned.getTraining() || workOrderOf(planned).empty())
    return text;
  llvm::SourceMgr sourceMgr;
  // Its warnings have been emitted for the program itself.
  ScopedDiagnosticHandler quiet(planned.getContext(), [](Diagnostic &) {});
  std::optional<Compilation> written =
      importText(text, sourceMgr, planned.getContext(), overrides);
  if (!written)
    return text;
  std::optional<WrittenWork> work = matchWork(planned, written->program());
  if (!work)
    return text;
  SmallVector<Operation *> running;
  for (int64_t number : workOrderOf(planned))
    running.push_back(work->ops[number]);
  std::optional<std::string> moved =
      inRunningOrder(sourceMgr, written->program(), running, work->copies);
  if (!moved)
    return text;
  ReadPlan read = readPlan(*moved, planned.getContext(), overrides);
  bool isSame = read.compilation &&
                !comparePlans(lowered->program(), read.compilation->program());
  return isSame ? std::move(*moved) : text;
}

FailureOr<std::string> PlanWriter::write(const Program &program,
                                         llvm::SourceMgr &sourceMgr) {
  if (failed(takeStages()) || failed(lower()))
    return failure();
  for (unsigned rounds = 0;; rounds += isStep()) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    printPlan(stream, program, sourceMgr, planned, overrides, explicitOps);
    text += ordersText(lowered->program());
    ReadPlan read = readPlan(text, planned.getContext(), overrides);
    if (!read.compilation)
      return emitNoText(planned.getLoc())
             << "its text is refused: " << read.refusal;
    auto difference =
        comparePlans(lowered->program(), read.compilation->program());
    if (!difference && failed(checkStages(*read.compilation)))
      return failure();
    if (!difference)
      return inOrder(std::move(text));
    bool saysMore =
        difference->in && rounds < kMostRounds && sayMore(difference->in);
    if (!saysMore && (!isStep() || !sayAll()))
      return report(*difference);
  }
}

LogicalResult shardc::writePlan(llvm::raw_ostream &os, const Program &program,
                                llvm::SourceMgr &sourceMgr, ProgramOp planned,
                                const Overrides &overrides,
                                std::optional<int64_t> memoryLimit) {
  // The order of stages is written into a clone.
  Compilation clone(planned->getParentOfType<ModuleOp>().clone(),
                    Compilation::Stage::Planned);
  FailureOr<std::string> text =
      PlanWriter(clone.program(), overrides, memoryLimit)
          .write(program, sourceMgr);
  if (failed(text))
    return failure();
  os << *text;
  return success();
}
