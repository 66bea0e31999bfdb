//===- AnnotateCost.cpp - shd-annotate-cost --------------------*- C++ -*-===//

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
  Strategy strategyOf(Operation *op, const ShardingRule &rule) const;
  void add(Operation *op, PartWork &part) const;
  PartWork work(ArrayRef<Operation *> ops) const;
  void attach(ArrayRef<Operation *> ops, const GroupCost &cost) const;

  PlanningContext &context;
  /// Operations that an einsum or attention computes in place before it starts.
  llvm::DenseMap<Operation *, SmallVector<Operation *, 2>> prologues;
  /// Operations of prologues that no one else needs.
  llvm::DenseSet<Operation *> inlined;
};

/// A prologue is computed by each user that reads its value directly; it runs
/// by itself only if a collective stands between it and some user, or if it
/// makes partial sums.
void GroupPricer::findPrologues(ProgramOp program) {
  Graph graph = buildGraph(program);
  for (const GraphValue &value : graph.values) {
    if (value.kind != GraphValue::Kind::Computed || value.uses.empty() ||
        !graph.chunks[value.chunk].prologue)
      continue;
    const auto &ops = graph.chunks[value.chunk].ops;
    ShardingAttr sharding = getSharding(value.value.getType());
    bool isPartial = sharding && !sharding.getPartial().empty();
    bool everywhere = true;
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

Strategy GroupPricer::strategyOf(Operation *op,
                                 const ShardingRule &rule) const {
  SmallVector<std::optional<Layout>> operands, results;
  auto layoutOf = [&](Value value) -> std::optional<Layout> {
    if (!hasLayout(value))
      return std::nullopt;
    return explicitLayout(context.mesh(), value.getType());
  };
  for (unsigned i = 0; i < rule.operands.size(); ++i)
    operands.push_back(layoutOf(op->getOperand(i)));
  for (Value result : op->getResults())
    results.push_back(layoutOf(result));
  std::optional<Strategy> strategy =
      inferStrategy(context.mesh(), rule, operands, results);
  assert(strategy && "the verifier has checked the operation's shardings");
  return *strategy;
}

void GroupPricer::add(Operation *op, PartWork &part) const {
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  addOperation(context, op, rule, strategyOf(op, rule), part);
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
  ops.front()->setAttr(kGroupCost,
                       GroupCostAttr::get(ops.front()->getContext(),
                                          cost.matrixFlops, cost.vectorFlops,
                                          cost.hbmBytes, cost.matrixSeconds,
                                          cost.vectorSeconds, cost.hbmSeconds));
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

void GroupPricer::price(const FusionGroup &group) {
  auto cost = [&](ArrayRef<Operation *> ops, ArrayRef<Operation *> more) {
    PartWork first = work(ops), second = work(more);
    auto isInside = [&](Operation *op) {
      return llvm::is_contained(ops, op) || llvm::is_contained(more, op);
    };
    auto needed = [&](Value value) {
      return isInside(value.getDefiningOp()) && isReadOutside(value, isInside);
    };
    return costParts(context.machine(), first, more.empty() ? nullptr : &second,
                     needed);
  };
  if (!group.leader) {
    if (!inlined.contains(group.rest.front()))
      attach(group.rest, cost(group.rest, {}));
    return;
  }
  if (group.rest.empty())
    return attach(group.leader, cost(group.leader, {}));
  if (isSplit(group)) {
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
