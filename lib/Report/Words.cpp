//===- Words.cpp - The plan in the words people use -----------------------===//
//
// Data, sequence and tensor parallelism are indices on mesh axes: for each
// axis, what share of the matrix work has it on an index of the batch, of a
// sequence, or on another one; and for data parallelism, which kinds of tensors
// carry the axis too (ZeRO; docs/Training.md#words).
//
//===----------------------------------------------------------------------===//

#include "Collect.h"
#include "Experts.h"
#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Dialect/Shd/IR/Halo.h"
#include "shardc/Dialect/Shd/IR/Order.h"
#include "shardc/Dialect/Shd/IR/RingAttention.h"
#include "shardc/Dialect/Shd/IR/Segments.h"
#include "shardc/Optimizer/IndexClasses.h"
#include "shardc/Optimizer/Names.h"
#include "shardc/Report/Units.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

/// From this share of the bytes on a kind of tensor counts as split, and from
/// this one that is said with the share.
constexpr double kMost = 0.9, kWorthNaming = 0.1;

/// What an axis does in part of the matrix work.
struct AxisUse {
  double data = 0, sequence = 0, tensor = 0, none = 0;
  /// Elementwise work on sequences that carry the axis.
  bool splitsSequences = false;
  /// Attention whose keys travel around its devices.
  bool byRing = false;
  /// Attention whose keys come with halos from the devices before.
  bool byHalo = false;
  /// Attention on heads whose operands are split along sequences elsewhere.
  bool byAllToAll = false;
  double total() const { return data + sequence + tensor + none; }
  void addWork(const AxisUse &other) {
    data += other.data;
    sequence += other.sequence;
    tensor += other.tensor;
    none += other.none;
  }
};

class PlanInWords {
public:
  PlanInWords(ProgramOp program, const Mesh &mesh, const StagePlan *stages)
      : program(program), mesh(mesh), stages(stages), routes(program),
        uses(mesh.size()), expertUses(mesh.size()), classes(program) {
    addSequences();
  }

  PlanWords words();

private:
  void visit(Operation *op);
  void addSequences();
  AxisSet headsFromSequences(ShardingRuleOpInterface attention);
  std::string text();
  static std::string keysOf(const AxisUse &use);
  std::string axisText(AxisIndex axis);
  PlanWords::Role roleOf(AxisIndex axis);
  std::string expertsText();
  std::string zeroText(AxisIndex axis);
  std::string zeroTextInParts(AxisIndex axis);
  bool isOfExperts(StringRef index);
  double shareOf(AxisIndex axis, llvm::function_ref<bool(DeclareOp)> counts);
  double shareOf(TensorKind kind, AxisIndex axis);
  bool hasExperts(DeclareOp declare);
  double shareOfDenseWeights(AxisIndex axis);
  std::string denseText();
  std::string ordersText();
  std::string savedText();
  std::string updateText();
  std::string stagesText();

  ProgramOp program;
  const Mesh &mesh;
  /// Null without a pipeline.
  const StagePlan *stages;
  ExpertRoutes routes;
  std::vector<AxisUse> uses;
  /// As in Report.
  std::vector<std::pair<std::string, int64_t>> zigzag;
  /// Work on the slots of experts that an axis does not split.
  std::vector<AxisUse> expertUses;
  /// Seconds of work on slots, by the axes that split experts in it.
  std::map<AxisSet, double> expertWork;
  /// Those of most of the work.
  AxisSet expertAxes = 0;
  bool splitsExperts(AxisIndex axis) const {
    return (expertAxes & axisBit(axis)) != 0;
  }
  IndexClasses classes;
};

/// In a program with weights, an index of an input that no weight has, and
/// that is none of attention's heads or features, is a sequence, too: T of
/// `x[B, T, D]`.
void PlanInWords::addSequences() {
  llvm::StringSet<> others;
  bool hasWeights = false;
  auto addAll = [&](auto names) {
    for (StringRef name : names)
      others.insert(name);
  };
  for (auto declare : program.getBody().getOps<DeclareOp>())
    if (declare.getKind() == TensorKind::Weight) {
      hasWeights = true;
      addAll(declare.getIndices().getAsValueRange<StringAttr>());
    }
  program->walk([&](AttentionOpInterface op) {
    IndexingAttr indexing =
        cast<ShardingRuleOpInterface>(op.getOperation()).getIndexing();
    for (unsigned i = 0; i < indexing.getOperands().size(); ++i)
      addAll(indexing.getOperandIndices(i));
  });
  for (auto input : program.getBody().getOps<DeclareOp>())
    if (hasWeights && input.getKind() == TensorKind::Input)
      for (StringRef name : input.getIndices().getAsValueRange<StringAttr>())
        if (!classes.batch.contains(name) && !others.contains(name))
          classes.sequence.insert(name);
}

/// The axes that an AllToAll moves from a sequence of an operand to its heads.
AxisSet PlanInWords::headsFromSequences(ShardingRuleOpInterface attention) {
  AxisSet moved = 0;
  IndexingAttr indexing = attention.getIndexing();
  for (unsigned i = 0; i < indexing.getOperands().size(); ++i) {
    auto exchange = attention->getOperand(i).getDefiningOp<AllToAllOp>();
    if (!exchange)
      continue;
    Layout before = explicitLayout(mesh, exchange.getInput().getType());
    Layout after = explicitLayout(mesh, exchange.getType());
    AxisSet fromSequence = 0, toHeads = 0;
    for (auto [name, from, to] : llvm::zip_equal(indexing.getOperandIndices(i),
                                                 before.dims, after.dims)) {
      if (classes.sequence.contains(name))
        fromSequence |= axisSet(from) & ~axisSet(to);
      else if (!classes.batch.contains(name))
        toHeads |= axisSet(to) & ~axisSet(from);
    }
    moved |= fromSequence & toHeads;
  }
  return moved;
}

void PlanInWords::visit(Operation *op) {
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  auto cost = op->getAttrOfType<GroupCostAttr>(kGroupCost);
  if (!ruled || !cost)
    return;
  // Axes of each index, in operands and results.
  llvm::StringMap<AxisSet> axes;
  IndexingAttr indexing = ruled.getIndexing();
  auto add = [&](ArrayRef<StringRef> names, Type type) {
    Layout layout = explicitLayout(mesh, type);
    for (auto [name, dim] : llvm::zip(names, layout.dims))
      axes[name] |= axisSet(dim);
  };
  for (unsigned i = 0; i < indexing.getOperands().size(); ++i)
    add(indexing.getOperandIndices(i), op->getOperand(i).getType());
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    add(indexing.getResultIndices(i), result.getType());
  if (std::optional<AxisIndex> ring = ringAxis(mesh, op))
    uses[*ring].byRing = true;
  if (HaloExchangeOp halo = haloOf(op))
    for (StringRef name : halo.getAxes().getAsValueRange<StringAttr>())
      uses[*mesh.find(name)].byHalo = true;
  AxisSet byAllToAll =
      isa<AttentionOpInterface>(op) ? headsFromSequences(ruled) : 0;
  double work = double(cost.getMatrixS()) * double(executionCount(op));
  const ExpertRoute *route = work > 0 ? routes.find(op) : nullptr;
  AxisSet ofExperts = route ? axes[route->experts] : 0;
  if (route)
    expertWork[ofExperts] += work;
  for (AxisIndex axis = 0; axis < mesh.size(); ++axis) {
    if (ofExperts & axisBit(axis))
      continue;
    bool onBatch = false, onSequence = false, onOther = false;
    for (const auto &entry : axes)
      if (entry.second & axisBit(axis))
        (classes.batch.contains(entry.first())      ? onBatch
         : classes.sequence.contains(entry.first()) ? onSequence
                                                    : onOther) = true;
    if (byAllToAll & axisBit(axis)) {
      onOther = false;
      onSequence = true;
      uses[axis].byAllToAll = true;
    }
    AxisUse &use = route ? expertUses[axis] : uses[axis];
    if (work == 0)
      use.splitsSequences |= onSequence;
    else
      (onOther      ? use.tensor
       : onBatch    ? use.data
       : onSequence ? use.sequence
                    : use.none) += work;
  }
}

bool PlanInWords::isOfExperts(StringRef index) {
  return llvm::any_of(
      routes.all(), [&](const auto &route) { return route.experts == index; });
}

bool PlanInWords::hasExperts(DeclareOp declare) {
  return llvm::any_of(declare.getIndices().getAsValueRange<StringAttr>(),
                      [&](StringRef name) { return isOfExperts(name); });
}

/// True if the axis splits a dimension of a tensor.
static bool isSplit(const Mesh &mesh, Type type, AxisIndex axis) {
  return llvm::any_of(explicitLayout(mesh, type).dims, [&](const auto &dim) {
    return llvm::is_contained(dim, axis);
  });
}

/// The share of the bytes of these tensors that the axis splits.
double PlanInWords::shareOf(AxisIndex axis,
                            llvm::function_ref<bool(DeclareOp)> counts) {
  double split = 0, all = 0;
  for (auto declare : program.getBody().getOps<DeclareOp>()) {
    if (!counts(declare))
      continue;
    double bytes = tensorShape(declare.getType()).globalBytes();
    all += bytes;
    if (isSplit(mesh, declare.getType(), axis))
      split += bytes;
  }
  return all > 0 ? split / all : 0;
}

/// Experts that the axis splits do not count: every device has its own.
double PlanInWords::shareOf(TensorKind kind, AxisIndex axis) {
  return shareOf(axis, [&](DeclareOp declare) {
    auto dims =
        llvm::zip_equal(declare.getIndices().getAsValueRange<StringAttr>(),
                        explicitLayout(mesh, declare.getType()).dims);
    return declare.getKind() == kind && llvm::none_of(dims, [&](auto each) {
             const auto &[name, axes] = each;
             return llvm::is_contained(axes, axis) && isOfExperts(name);
           });
  });
}

double PlanInWords::shareOfDenseWeights(AxisIndex axis) {
  return shareOf(axis, [&](DeclareOp declare) {
    return declare.getKind() == TensorKind::Weight && !hasExperts(declare);
  });
}

/// Rajbhandari et al. (2020): what carries the data axis.
std::string PlanInWords::zeroText(AxisIndex axis) {
  bool trains = program.getTraining().has_value();
  if (shareOf(TensorKind::Weight, axis) >= kMost)
    return trains ? "ZeRO-3" : "weights gathered";
  if (!trains)
    return "";
  if (shareOf(TensorKind::Gradient, axis) >= kMost)
    return "ZeRO-2";
  bool splitsState = shareOf(TensorKind::Moment, axis) >= kMost ||
                     shareOf(TensorKind::Master, axis) >= kMost;
  return splitsState ? "ZeRO-1" : "";
}

/// True if a collective makes whole what the axis splits of a tensor, or of
/// what casts make of it.
static bool isGathered(const Mesh &mesh, Value value, AxisIndex axis) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (isa<PartOp>(user))
      return isGathered(mesh, user->getResult(0), axis);
    if (user->getNumOperands() != 1 || user->getNumResults() != 1)
      return false;
    Value result = user->getResult(0);
    return isCollective(user) ? isSplit(mesh, value.getType(), axis) &&
                                    !isSplit(mesh, result.getType(), axis)
                              : isGathered(mesh, result, axis);
  });
}

/// The same, and `ZeRO-3 for 40.0 %` where some of the weights are gathered.
std::string PlanInWords::zeroTextInParts(AxisIndex axis) {
  std::string all = zeroText(axis);
  if (all == "ZeRO-3" || !program.getTraining())
    return all;
  double bytes = 0, gathered = 0;
  for (auto declare : program.getBody().getOps<DeclareOp>()) {
    if (declare.getKind() != TensorKind::Weight)
      continue;
    double own = tensorShape(declare.getType()).globalBytes();
    bytes += own;
    gathered += isGathered(mesh, declare.getResult(), axis) ? own : 0;
  }
  if (gathered < kWorthNaming * bytes)
    return all;
  return all + (all.empty() ? "" : ", ") + "ZeRO-3 for " +
         formatPercent(gathered / bytes);
}

/// How keys and values come to attention along an axis.
std::string PlanInWords::keysOf(const AxisUse &use) {
  SmallVector<StringRef> ways;
  if (use.byRing)
    ways.push_back("ring");
  if (use.byHalo)
    ways.push_back("halo");
  if (use.byAllToAll)
    ways.push_back("all_to_all");
  return llvm::join(ways, " and ");
}

std::string PlanInWords::axisText(AxisIndex axis) {
  const AxisUse &use = uses[axis];
  std::string name = mesh.axes[axis].name;
  std::string size = std::to_string(mesh.axes[axis].size);
  std::string tensor =
      use.splitsSequences ? "tensor and sequence parallel" : "tensor parallel";
  const std::pair<double, std::string> parts[] = {
      {use.data, "data parallel"},
      {use.sequence, "context parallel"},
      {use.tensor, tensor},
      {use.none, "replicated"}};
  auto wayText = [&](bool isSequence) {
    std::string keys = keysOf(use);
    return isSequence && !keys.empty() ? " by " + keys : "";
  };
  constexpr double kAll = 0.99, kSome = 0.01;
  if (use.total() == 0)
    return "no matrix work on " + name;
  for (const auto &[work, words] : parts)
    if (work >= kAll * use.total()) {
      std::string zero = work == use.data ? zeroTextInParts(axis) : "";
      return words + " " + size + wayText(work == use.sequence) + " (" + name +
             (zero.empty() ? "" : ": " + zero) + ")";
    }
  SmallVector<std::string> list;
  for (const auto &[work, words] : parts)
    if (work >= kSome * use.total())
      list.push_back(formatPercent(work / use.total()) + " " + words +
                     wayText(work == use.sequence));
  std::string zero = zeroText(axis);
  return "mixed " + size + " (" + name + ": " + llvm::join(list, ", ") +
         (zero.empty() ? "" : "; " + zero) + ")";
}

/// The largest part of the work; `mostly` unless that is all of it.
PlanWords::Role PlanInWords::roleOf(AxisIndex axis) {
  bool onExperts = splitsExperts(axis);
  if (mesh.axes[axis].isStages)
    return {"pipeline", "", onExperts, ""};
  const AxisUse &use = uses[axis];
  if (use.total() == 0)
    return {"none", "", onExperts, ""};
  const std::pair<double, StringRef> parts[] = {
      {use.data, "data"},
      {use.sequence, "context"},
      {use.tensor, use.splitsSequences ? "tensor and sequence" : "tensor"},
      {use.none, "replicated"}};
  const auto &[work, role] = *llvm::max_element(
      parts, [](const auto &a, const auto &b) { return a.first < b.first; });
  constexpr double kAll = 0.99;
  bool isMixed = work < kAll * use.total();
  return {(isMixed ? "mostly " : "") + role.str(),
          role == "data" ? zeroText(axis) : "", onExperts, keysOf(use)};
}

/// `experts over 8 (Y)`: the axes that have most of their work on them.
std::string PlanInWords::expertsText() {
  int64_t size = 1;
  SmallVector<std::string> names;
  for (AxisIndex axis = 0; axis < mesh.size(); ++axis)
    if (splitsExperts(axis)) {
      size *= mesh.axes[axis].size;
      names.push_back(mesh.axes[axis].name);
    }
  return size == 1 ? ""
                   : "experts over " + std::to_string(size) + " (" +
                         llvm::join(names, ", ") + ")" + denseText();
}

/// `, dense weights FSDP over 512`: where more devices share the weights that
/// are not the experts' than replicate those of an expert, the axes of data
/// parallelism that do not split experts.
std::string PlanInWords::denseText() {
  int64_t shared = 1, replicas = 1;
  for (AxisIndex axis = 0; axis < mesh.size(); ++axis) {
    if (mesh.axes[axis].isStages || roleOf(axis).role != "data")
      continue;
    if (shareOfDenseWeights(axis) >= kMost)
      shared *= mesh.axes[axis].size;
    if (!splitsExperts(axis))
      replicas *= mesh.axes[axis].size;
  }
  if (shared <= replicas)
    return "";
  return ", dense weights " +
         std::string(program.getTraining() ? "FSDP" : "gathered") + " over " +
         std::to_string(shared);
}

/// The order of the indices along which the plan shards causal attention.
std::string PlanInWords::ordersText() {
  auto classes = program->getAttrOfType<ArrayAttr>(kOrderClasses);
  auto orders = program->getAttrOfType<DictionaryAttr>(kOrders);
  std::string text;
  for (Attribute record :
       classes ? classes.getValue() : ArrayRef<Attribute>()) {
    auto order = cast<DictionaryAttr>(record);
    std::string index = order.getAs<StringAttr>("index").str();
    int64_t parts = order.getAs<IntegerAttr>("devices").getInt();
    if (parts > 1) {
      zigzag.push_back({index, parts});
      text += "; " + index + " in zigzag order over " + std::to_string(parts) +
              ": of " + std::to_string(2 * parts) +
              " chunks part d has d and " + std::to_string(2 * parts - 1) +
              " - d";
    } else if (order.getAs<BoolAttr>("isWanted").getValue())
      text += "; " + index +
              " contiguous, which leaves causal attention unbalanced: " +
              order.getAs<StringAttr>("obstacle").str();
    else if (auto asked =
                 orders ? orders.getAs<StringAttr>(index) : StringAttr();
             asked && asked.getValue() == "zigzag")
      text += "; " + index +
              " contiguous, since the plan splits no causal attention along it";
  }
  return text;
}

/// True of a buffer that only a segment that runs again writes.
static bool isOfSegment(DeclareOp declare) {
  return llvm::all_of(declare->getUsers(), [](Operation *user) {
    auto around = dyn_cast<RepeatOp>(user->getParentOp());
    return !isa<UpdateOp>(user) || (around && segmentsOf(around));
  });
}

std::string PlanInWords::savedText() {
  SmallVector<std::string> names;
  int64_t length = 0;
  program->walk([&](RepeatOp repeat) {
    if (std::optional<Segments> segments = segmentsOf(repeat))
      length = std::max(length, segments->length);
  });
  for (auto declare : program.getBody().getOps<DeclareOp>()) {
    if (declare.getKind() != TensorKind::Saved || isOfSegment(declare))
      continue;
    StringRef name = declare.getSym();
    name = name.take_front(name.rfind(".saved"));
    if (!llvm::is_contained(names, name))
      names.push_back(name.str());
  }
  bool recomputes = false;
  program->walk(
      [&](Operation *op) { recomputes |= getPhase(op) == Phase::Recompute; });
  if (names.empty())
    return "";
  llvm::sort(names);
  std::string keeps = "; keeps " + llvm::join(names, ", ");
  if (length > 0)
    return keeps + " every " + std::to_string(length) +
           " iterations, which run again together";
  return keeps + (recomputes ? ", recomputes the rest" : "");
}

/// Where and when weights are updated, if not on the devices at the end.
std::string PlanInWords::updateText() {
  std::optional<TrainingAttr> training = program.getTraining();
  if (!training)
    return "";
  std::string text;
  if (training->getOffload() == Offload::Optimizer)
    text += "; optimizer state on the host";
  if (training->getOffload() == Offload::Activations)
    text += "; saved activations on the host";
  else if (DictionaryAttr names = training->getOffloaded())
    text += "; " +
            llvm::join(llvm::map_range(names,
                                       [](NamedAttribute name) {
                                         return name.getName().str();
                                       }),
                       ", ") +
            " saved on the host";
  if (training->getFused())
    text += "; each weight updated right after its gradient";
  return text;
}

std::string PlanInWords::stagesText() {
  // Forward passes alone have an order only where stages hold chunks.
  bool hasOrder = program.getTraining() || stages->order.chunks > 1;
  return plural(stages->stages.size(), "pipeline stage") + " (" +
         program.getPipeline()->getAxis().str() + ", " +
         (hasOrder ? toString(stages->order) + ", " : "") +
         plural(stages->microbatches, "microbatch", "microbatches") + ")";
}

std::string PlanInWords::text() {
  SmallVector<std::string> parts;
  for (AxisIndex axis = 0; axis < mesh.size(); ++axis)
    if (mesh.axes[axis].size > 1 && !mesh.axes[axis].isStages &&
        !(uses[axis].total() == 0 && splitsExperts(axis)))
      parts.push_back(axisText(axis));
  if (std::string experts = expertsText(); !experts.empty())
    parts.push_back(experts);
  if (stages)
    parts.push_back(stagesText());
  std::string text = parts.empty() ? "one device" : llvm::join(parts, " x ");
  if (std::optional<TrainingAttr> training = program.getTraining();
      training && training->getMicrobatches() > 1 && !stages)
    text +=
        " x " + std::to_string(training->getMicrobatches()) + " microbatches";
  return text + ordersText() + savedText() + updateText();
}

PlanWords PlanInWords::words() {
  program->walk([&](Operation *op) { visit(op); });
  if (!expertWork.empty())
    expertAxes =
        llvm::max_element(expertWork, [](const auto &a, const auto &b) {
          return a.second < b.second;
        })->first;
  // Where only experts have matrix work, theirs counts.
  for (AxisIndex axis = 0; axis < mesh.size(); ++axis)
    if (uses[axis].total() == 0 && !splitsExperts(axis))
      uses[axis].addWork(expertUses[axis]);
  PlanWords words{text(), {}, {}};
  words.zigzag = std::move(zigzag);
  for (AxisIndex axis = 0; axis < mesh.size(); ++axis)
    words.roles.push_back(roleOf(axis));
  return words;
}

} // namespace

PlanWords shardc::planInWords(ProgramOp program, const Mesh &mesh,
                              const StagePlan *stages) {
  return PlanInWords(program, mesh, stages).words();
}
