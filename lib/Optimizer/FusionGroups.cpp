//===- FusionGroups.cpp - Which operations fuse ----------------*- C++ -*-===//
//
// Fusion groups are fixed by the program, in its order (cost-model.md section
// 2): a light operation joins the group of its latest-produced operand if its
// indices are that group's or a subset of them; else it starts one.
//
//===----------------------------------------------------------------------===//

#include "shardc/Optimizer/Graph.h"
#include "llvm/ADT/StringMap.h"
#include <algorithm>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

/// What pins say of indices: the axes of each, by name.
using PinnedAxes = llvm::StringMap<ArrayAttr>;

struct GroupInfo {
  llvm::SmallVector<StringRef, 6> indices;
  /// Pins of the operations that share the group's strategy (all but the
  /// leader).
  PinnedAxes pinned;
  /// Groups whose values this one reads.
  llvm::SmallVector<unsigned, 4> reads;
};

class GroupAssigner {
public:
  void visit(Block &block);

private:
  void assign(Operation *op);
  bool mayJoin(Operation *op, unsigned group,
               ArrayRef<StringRef> indices) const;
  bool takesPartialSums(Operation *op, unsigned group) const;
  bool readsTransitively(unsigned reader, unsigned group) const;
  unsigned startGroup(ArrayRef<StringRef> indices);

  std::vector<GroupInfo> groups;
  llvm::DenseMap<Operation *, unsigned> groupOf;
  llvm::DenseMap<Operation *, unsigned> position;
};

bool isLeaderOp(Operation *op) {
  return cast<CostOpInterface>(op).getFusionKind() == FusionKind::Leader;
}

/// Names of an operation's iteration space.
llvm::SmallVector<StringRef, 6> iterationIndices(Operation *op) {
  IndexingAttr indexing = cast<ShardingRuleOpInterface>(op).getIndexing();
  llvm::SmallVector<StringRef, 6> names;
  auto add = [&](ArrayRef<StringRef> list) {
    for (StringRef name : list)
      if (!llvm::is_contained(names, name))
        names.push_back(name);
  };
  for (unsigned i = 0; i < indexing.getOperands().size(); ++i)
    add(indexing.getOperandIndices(i));
  for (unsigned i = 0; i < indexing.getResults().size(); ++i)
    add(indexing.getResultIndices(i));
  return names;
}

/// Collects what the pins of `op` say; false if they disagree with `known`
/// (then `op` needs a strategy of its own).
bool addPins(Operation *op, PinnedAxes &known) {
  IndexingAttr indexing = cast<ShardingRuleOpInterface>(op).getIndexing();
  auto add = [&](ShardingAttr pin, ArrayRef<StringRef> names) {
    if (!pin)
      return true;
    for (auto [dim, name] : llvm::zip(pin.getDims(), names)) {
      if (dim.getIsOpen())
        continue;
      SmallVector<Attribute> axes(dim.getAxes().begin(), dim.getAxes().end());
      ArrayAttr list = ArrayAttr::get(op->getContext(), axes);
      if (known.try_emplace(name, list).first->second != list)
        return false;
    }
    return true;
  };
  for (unsigned i = 0; i < indexing.getOperands().size(); ++i)
    if (!add(getOperandPin(op, i), indexing.getOperandIndices(i)))
      return false;
  return add(getResultPin(op), indexing.getResultIndices(0));
}

unsigned GroupAssigner::startGroup(ArrayRef<StringRef> indices) {
  groups.emplace_back().indices.assign(indices.begin(), indices.end());
  return groups.size() - 1;
}

bool GroupAssigner::readsTransitively(unsigned reader, unsigned group) const {
  if (reader <= group)
    return reader == group;
  for (unsigned read : groups[reader].reads)
    if (readsTransitively(read, group))
      return true;
  return false;
}

/// What an operation of the group is pinned to make as a partial sum, `op` must
/// be able to take and hand on as such: nothing is resharded between operations
/// that share a strategy.
bool GroupAssigner::takesPartialSums(Operation *op, unsigned group) const {
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  for (unsigned i = 0; i < rule.operands.size(); ++i) {
    Operation *maker = op->getOperand(i).getDefiningOp();
    auto it = groupOf.find(maker);
    if (it == groupOf.end() || it->second != group || isLeaderOp(maker))
      continue;
    ShardingAttr made = getResultPin(maker);
    if (!made || made.getPartial().empty())
      continue;
    auto agrees = [&](ShardingAttr pin) {
      return !pin || (pin.isOpen() && pin.getPartial().empty()) ||
             std::is_permutation(
                 pin.getPartial().begin(), pin.getPartial().end(),
                 made.getPartial().begin(), made.getPartial().end());
    };
    bool linear = llvm::any_of(rule.linearSets,
                               [&](uint32_t set) { return set & (1u << i); });
    if (!linear || !agrees(getOperandPin(op, i)) || !agrees(getResultPin(op)))
      return false;
  }
  return true;
}

/// The group must cover the operation's indices, and must not have to run both
/// before and after another group.
bool GroupAssigner::mayJoin(Operation *op, unsigned group,
                            ArrayRef<StringRef> indices) const {
  if (!llvm::all_of(indices, [&](StringRef name) {
        return llvm::is_contained(groups[group].indices, name);
      }))
    return false;
  for (Value operand : op->getOperands()) {
    auto it = groupOf.find(operand.getDefiningOp());
    if (it != groupOf.end() && it->second > group &&
        readsTransitively(it->second, group))
      return false;
  }
  PinnedAxes pinned = groups[group].pinned;
  return takesPartialSums(op, group) && addPins(op, pinned);
}

void GroupAssigner::assign(Operation *op) {
  llvm::SmallVector<StringRef, 6> indices = iterationIndices(op);
  bool isLeader = isLeaderOp(op);
  std::optional<unsigned> group;
  if (!isLeader) {
    Operation *latest = nullptr;
    for (Value operand : op->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (def && def->getBlock() == op->getBlock() && !isa<ConstantOp>(def) &&
          (!latest || position.lookup(def) > position.lookup(latest)))
        latest = def;
    }
    auto it = groupOf.find(latest);
    if (latest && it != groupOf.end() && mayJoin(op, it->second, indices))
      group = it->second;
  }
  if (!group) {
    if (isLeader) {
      IndexingAttr indexing = cast<ShardingRuleOpInterface>(op).getIndexing();
      group = startGroup(indexing.getResultIndices(0));
    } else {
      group = startGroup(indices);
    }
  }
  for (Value operand : op->getOperands()) {
    auto it = groupOf.find(operand.getDefiningOp());
    if (it != groupOf.end() && it->second != *group &&
        !llvm::is_contained(groups[*group].reads, it->second))
      groups[*group].reads.push_back(it->second);
  }
  if (!isLeader)
    addPins(op, groups[*group].pinned);
  groupOf[op] = *group;
  op->setAttr(kGroup, Builder(op->getContext())
                          .getI64IntegerAttr(2 * *group + (isLeader ? 0 : 1)));
}

void GroupAssigner::visit(Block &block) {
  for (Operation &op : block) {
    position[&op] = position.size();
    if (auto cost = dyn_cast<CostOpInterface>(op);
        cost && cost.getFusionKind() != FusionKind::Free)
      assign(&op);
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        visit(inner);
  }
}

} // namespace

void shardc::assignFusionGroups(ProgramOp program) {
  GroupAssigner().visit(program.getBody().front());
}
