//===- AnnotateCost.cpp - shd-annotate-cost --------------------*- C++ -*-===//

#include "shardc/Dialect/Shd/IR/CalibratedPrices.h"
#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Dialect/Shd/Transforms/MakeExplicit.h"
#include "shardc/Dialect/Shd/Transforms/Passes.h"
#include "shardc/Optimizer/Graph.h"
#include "shardc/Optimizer/GroupCosts.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace shardc::shd {
#define GEN_PASS_DEF_SHDANNOTATECOST
#include "shardc/Dialect/Shd/Transforms/Passes.h.inc"

namespace {

/// The operations of one fusion group, in program order.
struct FusionGroup {
  Operation *leader = nullptr;
  SmallVector<Operation *, 4> rest;
};

class GroupPricer {
public:
  GroupPricer(PlanningContext &context, ProgramOp program) : context(context) {
    findPrologues(program);
  }

  void price(const FusionGroup &group);

private:
  void findPrologues(ProgramOp program);
  void addPrologue(Operation *user, Attribute group);
  void add(Operation *op, PartWork &part) const;
  PartWork work(ArrayRef<Operation *> ops) const;
  GroupCost cost(ArrayRef<Operation *> ops, ArrayRef<Operation *> more,
                 ArrayRef<Operation *> inChunksWith = {}) const;
  void priceInChunks(const FusionGroup &group, int64_t chunks);
  void attach(ArrayRef<Operation *> ops, const GroupCost &cost) const;

  PlanningContext &context;
  /// Operations that an einsum or attention computes in place before it starts.
  llvm::DenseMap<Operation *, SmallVector<Operation *, 2>> prologues;
  /// Operations of prologues that no one else needs.
  llvm::DenseSet<Operation *> inlined;
};

/// A prologue is computed by each user that reads its value directly; it runs
/// by itself only if a collective moves it, or if it makes partial sums.
void GroupPricer::findPrologues(ProgramOp program) {
  Graph graph = buildGraph(program);
  for (const GraphValue &value : graph.values) {
    if (value.kind != GraphValue::Kind::Computed || value.uses.empty() ||
        !graph.chunks[value.chunk].prologue)
      continue;
    const auto &ops = graph.chunks[value.chunk].ops;
    ShardingAttr sharding = getSharding(value.value.getType());
    bool isPartial = sharding && !sharding.getPartial().empty();
    // A collective needs it, also one that makes a copy that nobody reads.
    bool everywhere =
        llvm::none_of(Value(value.value).getUsers(), isCollective);
    for (const ChunkUse &use : value.uses) {
      Operation *user = graph.chunks[use.chunk].ops[use.op];
      bool direct = user->getOperand(use.operand) == value.value && !isPartial;
      everywhere &= direct;
      if (!direct)
        continue;
      auto &list = prologues[user];
      if (llvm::is_contained(list, ops.front()))
        continue;
      list.append(ops.begin(), ops.end());
      addPrologue(user, ops.front()->getAttr(kGroup));
    }
    if (everywhere)
      inlined.insert(ops.begin(), ops.end());
  }
}

void GroupPricer::addPrologue(Operation *user, Attribute group) {
  SmallVector<Attribute> groups;
  if (auto known = user->getAttrOfType<ArrayAttr>(kPrologues))
    llvm::append_range(groups, known);
  groups.push_back(group);
  user->setAttr(kPrologues, ArrayAttr::get(user->getContext(), groups));
}

void GroupPricer::add(Operation *op, PartWork &part) const {
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  addOperation(context, op, rule, explicitStrategy(context.mesh(), op, rule),
               part);
}

PartWork GroupPricer::work(ArrayRef<Operation *> ops) const {
  PartWork part;
  for (Operation *op : ops) {
    for (Operation *before : prologues.lookup(op))
      add(before, part);
    add(op, part);
  }
  return part;
}

void GroupPricer::attach(ArrayRef<Operation *> ops,
                         const GroupCost &cost) const {
  MLIRContext *context = ops.front()->getContext();
  ops.front()->setAttr(
      kGroupCost,
      GroupCostAttr::get(context, cost.matrixFlops, cost.vectorFlops,
                         cost.hbmBytes, cost.matrixSeconds, cost.vectorSeconds,
                         cost.hbmSeconds, hostAttr(context, cost),
                         calibratedAttr(context, cost)));
}

/// True if a collective stands between the leader and the rest.
bool isSplit(const FusionGroup &group) {
  return llvm::any_of(group.rest, [&](Operation *op) {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      while (Operation *def = operand.getDefiningOp()) {
        if (!isCollective(def))
          return false;
        operand = def->getOperand(0);
        if (operand.getDefiningOp() == group.leader)
          return true;
      }
      return false;
    });
  });
}

/// True if an operation outside reads the value from HBM, through collectives
/// or not. Statistics are part of the operation that takes them.
bool isReadOutside(Value value,
                   llvm::function_ref<bool(Operation *)> isInside) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    return !isa<StatisticOp>(user) && !isInside(user) &&
           (!isCollective(user) || isReadOutside(onlyResult(user), isInside));
  });
}

GroupCost GroupPricer::cost(ArrayRef<Operation *> ops,
                            ArrayRef<Operation *> more,
                            ArrayRef<Operation *> inChunksWith) const {
  PartWork first = work(ops), second = work(more);
  if (!inChunksWith.empty())
    first = ops == inChunksWith
                ? inOwnChunks(std::move(first), ops)
                : inChunks(std::move(first), ops.front(), inChunksWith);
  auto isInside = [&](Operation *op) {
    return llvm::is_contained(ops, op) || llvm::is_contained(more, op);
  };
  auto needed = [&](Value value) {
    return isInside(value.getDefiningOp()) && isReadOutside(value, isInside);
  };
  return costParts(context.machine(), first, more.empty() ? nullptr : &second,
                   needed);
}

/// Both parts run for each chunk. The leader's result takes the memory of one
/// if nobody else reads it.
void GroupPricer::priceInChunks(const FusionGroup &group, int64_t chunks) {
  attach(group.leader, cost(group.leader, {}, group.rest));
  attach(group.rest, cost(group.rest, {}, group.rest));
  auto isInside = [&](Operation *op) {
    return llvm::is_contained(group.rest, op);
  };
  if (!isReadOutside(groupValue(group.leader), isInside))
    group.leader->setAttr(
        kChunks, Builder(group.leader->getContext()).getI64IntegerAttr(chunks));
}

bool isFree(Operation *op) {
  return cast<CostOpInterface>(op).getFusionKind() == FusionKind::Free;
}

void GroupPricer::price(const FusionGroup &group) {
  if (!group.leader) {
    if (inlined.contains(group.rest.front()))
      return;
    if (isFree(group.rest.front()))
      group.rest.front()->removeAttr(kGroup); // no kernel
    else
      attach(group.rest, cost(group.rest, {}));
    return;
  }
  if (group.rest.empty())
    return attach(group.leader, cost(group.leader, {}));
  bool isApart = isSplit(group);
  if (int64_t chunks = separateChunks(group.rest);
      chunks != kNoChunks && !isApart)
    return priceInChunks(group, chunks);
  if (isApart) {
    attach(group.leader, cost(group.leader, {}));
    attach(group.rest, cost(group.rest, {}));
    return;
  }
  attach(group.leader, cost(group.leader, group.rest));
  for (Operation *op : group.rest)
    op->setAttr(kGroup, group.leader->getAttr(kGroup));
}

struct AnnotateCostPass : impl::ShdAnnotateCostBase<AnnotateCostPass> {
  void runOnOperation() override {
    std::unique_ptr<PlanningContext> context = createContext(getOperation());
    if (!context || failed(annotateCost(*context, getOperation())))
      signalPassFailure();
  }
};

} // namespace

LogicalResult annotateCost(PlanningContext &context, ProgramOp program) {
  if (failed(checkFusionGroups(program)) || failed(checkExplicit(program)))
    return failure();
  llvm::MapVector<int64_t, FusionGroup> groups;
  program.walk<WalkOrder::PreOrder>([&](Operation *op) {
    std::optional<int64_t> number = fusionGroupOf(op);
    if (!number)
      return;
    FusionGroup &group = groups[*number];
    if (cast<CostOpInterface>(op).getFusionKind() == FusionKind::Leader)
      group.leader = op;
    else
      group.rest.push_back(op);
  });
  GroupPricer pricer(context, program);
  for (auto &[number, group] : groups)
    pricer.price(group);
  return success();
}

} // namespace shardc::shd
