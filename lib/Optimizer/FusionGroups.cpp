//===- FusionGroups.cpp - Which operations fuse ----------------*- C++ -*-===//
//
// Fusion groups are fixed by dependences
// (docs/CostModel.md#2-one-operation-on-one-device): a light operation joins
// the group of its latest-produced operand if its indices are that group's or a
// subset of them; else it starts one. Row operations join no group whose kernel
// works on tiles, that of an einsum or attention.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shd/IR/Host.h"
#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "shardc/Optimizer/Graph.h"
#include "shardc/Optimizer/Names.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

/// Pinned axes of the strategy that a group's operations share: by index name.
using PinnedAxes = llvm::StringMap<AxisList>;

/// Pinned partial sums of a value: all of `must` and nothing outside of `may`.
struct PartialSums {
  AxisSet must = 0, may = ~AxisSet(0);

  bool restrict(PartialSums other) {
    must |= other.must;
    may &= other.may;
    return !(must & ~may);
  }
};

/// A row operation of a group.
struct RowOperation {
  Operation *op;
  /// The indices that it reads whole, sorted.
  llvm::SmallVector<StringRef, 2> rows;
};

struct GroupInfo {
  llvm::SmallVector<StringRef, 6> indices;
  /// The einsum or attention that leads it, whose tiles hold no whole rows.
  Operation *tiled = nullptr;
  llvm::SmallVector<RowOperation, 1> rowOps;
  /// The operations that share the group's strategy (all but the leader), what
  /// their pins say, and what they make by that.
  llvm::SmallVector<Operation *, 4> ops;
  PinnedAxes pinned;
  llvm::SmallDenseMap<Value, PartialSums> made;
  /// Groups whose values this one reads, and those that read its own.
  llvm::SmallVector<unsigned, 4> reads, readers;
  /// The last of the groups that it reads, directly or not, and itself.
  unsigned latestRead = 0;
  /// It ends before a repeat that needs a value of it, or with its pass.
  bool isOver = false;
};

class GroupAssigner {
public:
  GroupAssigner(const Mesh &mesh, RepeatOp microbatches)
      : mesh(mesh), microbatches(microbatches) {}
  void visit(Block &block);

private:
  void assign(Operation *op);
  bool join(Operation *op, unsigned group, ArrayRef<StringRef> indices);
  bool mayHoldRows(Operation *op, unsigned group) const;
  bool mayJoinTiles(Operation *op, const GroupInfo &group) const;
  bool isReadIn(unsigned group, Operation *op, Operation *joining) const;
  bool startsRows(Operation *cast) const;
  Operation *latestOperand(Operation *op) const;
  unsigned depthOf(Operation *op) const;
  void addRead(unsigned reader, unsigned group);
  void endGroupsReadBy(Operation *op);
  void endGroup(unsigned group);
  void endForwardPass();
  bool addPins(Operation *op, GroupInfo &group) const;
  bool addPin(ShardingAttr pin, ArrayRef<StringRef> names,
              PinnedAxes &known) const;
  bool addOperation(Operation *op, GroupInfo &group) const;
  void removeOperation(Operation *op, GroupInfo &group,
                       PinnedAxes pinned) const;
  bool addMade(Operation *op, GroupInfo &group) const;
  std::optional<PartialSums> readAs(OpOperand &use,
                                    const GroupInfo &group) const;
  PartialSums partialSums(ShardingAttr pin) const;
  AxisSet apartRows(PositionsOpInterface reader) const;
  PartialSums storedSums(Value value) const;
  bool readsTransitively(unsigned reader, unsigned group,
                         llvm::SmallDenseSet<unsigned> &seen) const;
  unsigned startGroup(ArrayRef<StringRef> indices);

  const Mesh &mesh;
  /// Those of a pipeline; null without stages.
  RepeatOp microbatches;
  std::vector<GroupInfo> groups;
  llvm::DenseMap<Operation *, unsigned> groupOf;
  /// Operations on the longest way from inputs, weights and carried values.
  llvm::DenseMap<Operation *, unsigned> depth;
  /// Operations that cost nothing and whose result a repeat reads.
  llvm::DenseSet<Operation *> readByRepeat;
};

bool isLeaderOp(Operation *op) {
  return cast<CostOpInterface>(op).getFusionKind() == FusionKind::Leader;
}

/// The operation that makes an operand; of a part of a buffer, the one that
/// makes its value.
Operation *makerOf(Value operand) {
  if (auto part = operand.getDefiningOp<PartOp>())
    if (UpdateOp update = updateBefore(part))
      return rootValue(update.getValue()).getDefiningOp();
  return operand.getDefiningOp();
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

unsigned GroupAssigner::startGroup(ArrayRef<StringRef> indices) {
  GroupInfo &group = groups.emplace_back();
  group.indices.assign(indices.begin(), indices.end());
  group.latestRead = groups.size() - 1;
  return groups.size() - 1;
}

/// A group that other operations join later may read a younger one.
void GroupAssigner::addRead(unsigned reader, unsigned group) {
  if (reader == group || llvm::is_contained(groups[reader].reads, group))
    return;
  groups[reader].reads.push_back(group);
  groups[group].readers.push_back(reader);
  SmallVector<unsigned> changed = {reader};
  while (!changed.empty()) {
    GroupInfo &info = groups[changed.pop_back_val()];
    unsigned latest = info.latestRead;
    for (unsigned read : info.reads)
      latest = std::max(latest, groups[read].latestRead);
    if (latest == info.latestRead)
      continue;
    info.latestRead = latest;
    llvm::append_range(changed, info.readers);
  }
}

bool GroupAssigner::readsTransitively(
    unsigned reader, unsigned group,
    llvm::SmallDenseSet<unsigned> &seen) const {
  if (reader == group)
    return true;
  if (groups[reader].latestRead < group || !seen.insert(reader).second)
    return false;
  return llvm::any_of(groups[reader].reads, [&](unsigned read) {
    return readsTransitively(read, group, seen);
  });
}

//===----------------------------------------------------------------------===//
// Pins
//===----------------------------------------------------------------------===//

/// False if the pin contradicts what is known: another placement of an index,
/// or an axis that another index has.
bool GroupAssigner::addPin(ShardingAttr pin, ArrayRef<StringRef> names,
                           PinnedAxes &known) const {
  if (!pin)
    return true;
  Layout layout = toLayout(mesh, pin);
  for (auto [dim, name, axes] : llvm::zip(pin.getDims(), names, layout.dims)) {
    if (dim.getIsOpen())
      continue;
    auto [it, inserted] = known.try_emplace(name, axes);
    if (!inserted && it->second != axes)
      return false;
    for (const auto &other : known)
      if (inserted && other.first() != name &&
          (axisSet(other.second) & axisSet(axes)))
        return false;
  }
  return true;
}

/// Adds what pins say of the layouts in which the operation reads its operands.
/// Where its own result is stored says nothing yet: the result may move there.
/// Where another operation of the group has made an operand, that is read as it
/// is made and must be stored so.
bool GroupAssigner::addPins(Operation *op, GroupInfo &group) const {
  IndexingAttr indexing = cast<ShardingRuleOpInterface>(op).getIndexing();
  for (unsigned i = 0; i < indexing.getOperands().size(); ++i) {
    llvm::SmallVector<StringRef, 4> names = indexing.getOperandIndices(i);
    Value operand = op->getOperand(i);
    if (!addPin(getOperandPin(op, i), names, group.pinned) ||
        (group.made.count(operand) &&
         !addPin(getResultPin(operand), names, group.pinned)))
      return false;
  }
  return true;
}

PartialSums GroupAssigner::partialSums(ShardingAttr pin) const {
  PartialSums sums;
  if (!pin)
    return sums;
  sums.must = toLayout(mesh, pin).partial;
  if (!pin.isOpen())
    sums.may = sums.must;
  return sums;
}

/// The axes over which the rows of a table are pinned to lie: what is read at
/// positions is a partial sum over them.
AxisSet GroupAssigner::apartRows(PositionsOpInterface reader) const {
  AxisSet axes = 0;
  if (ShardingAttr pin = getOperandPin(reader, 0))
    for (int64_t dim : reader.getDims())
      axes |= axisSet(toLayout(mesh, pin).dims[dim]);
  return axes;
}

/// The partial sums with which a value from outside of the group can be read:
/// moving it adds none.
PartialSums GroupAssigner::storedSums(Value value) const {
  auto argument = dyn_cast<BlockArgument>(value);
  if (argument && argument.getArgNumber() == 0)
    return {};
  ShardingAttr pin = getStoredPin(value);
  PartialSums sums;
  sums.may = partialSums(pin).may;
  Operation *maker = value.getDefiningOp();
  auto group = groupOf.find(maker);
  if (DeclareOp declared = declarationOf(value);
      declared && declared.getKind() != TensorKind::Gradient)
    sums.may = 0;
  else if (maker && !pin && readsAtPositions(maker))
    sums.may = storedSums(maker->getOperand(0)).may |
               apartRows(cast<PositionsOpInterface>(maker));
  else if (maker && group != groupOf.end())
    if (auto made = groups[group->second].made.find(value);
        made != groups[group->second].made.end())
      sums.may &= made->second.may;
  return sums;
}

/// The partial sums that an operand is read with; nothing if pins contradict
/// each other.
std::optional<PartialSums> GroupAssigner::readAs(OpOperand &use,
                                                 const GroupInfo &group) const {
  PartialSums sums =
      partialSums(getOperandPin(use.getOwner(), use.getOperandNumber()));
  auto made = group.made.find(use.get());
  bool ok = made == group.made.end()
                ? sums.restrict(storedSums(use.get()))
                : sums.restrict(made->second) &&
                      sums.restrict(partialSums(getResultPin(made->first)));
  return ok ? std::optional(sums) : std::nullopt;
}

/// Works out the partial sums of what the operation makes; false if it cannot
/// take those of its operands, or an index that it needs whole is pinned to
/// axes.
bool GroupAssigner::addMade(Operation *op, GroupInfo &group) const {
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  AxisSet placed = 0;
  SmallVector<PartialSums, 1> results(rule.results.size(), {0, 0});
  for (auto [number, factor] : llvm::enumerate(rule.factors)) {
    auto pinned = group.pinned.find(factor.name);
    bool isPinned = pinned != group.pinned.end();
    AxisSet axes = isPinned ? axisSet(pinned->second) : 0;
    placed |= axes;
    if (factor.kind == FactorKind::Replicated && axes)
      return false;
    for (auto [i, result] : llvm::enumerate(results))
      if (leavesPartialSums(rule, number, i)) {
        result.must |= axes;
        result.may |= isPinned ? axes : ~AxisSet(0);
      }
  }
  for (PartialSums &result : results)
    result.may = (result.may & ~placed) | result.must;
  llvm::SmallVector<PartialSums, 3> operands;
  for (unsigned i = 0; i < rule.operands.size(); ++i) {
    std::optional<PartialSums> sums = readAs(op->getOpOperand(i), group);
    if (!sums)
      return false;
    operands.push_back(*sums);
  }
  for (AxisIndex axis = 0; axis < mesh.size(); ++axis) {
    AxisSet bit = axisBit(axis);
    uint32_t must = 0, may = 0;
    for (auto [i, sums] : llvm::enumerate(operands)) {
      must |= uint32_t(bool(sums.must & bit)) << i;
      may |= uint32_t(bool(sums.may & bit)) << i;
    }
    bool passes =
        !(placed & bit) && llvm::any_of(rule.linearSets, [&](uint32_t set) {
          return !(must & ~set) && !(set & ~may);
        });
    if (must && !passes)
      return false;
    for (auto [i, result] : llvm::enumerate(results))
      if (!rule.isComplete(i)) {
        result.must |= must ? bit : 0;
        result.may |= must || passes ? bit : 0;
      }
  }
  for (auto [value, result] : llvm::zip_equal(op->getResults(), results))
    group.made[value] = result;
  return true;
}

/// Adds the operation to those that share the group's strategy; false if no
/// strategy has what their pins ask for.
bool GroupAssigner::addOperation(Operation *op, GroupInfo &group) const {
  unsigned numPinned = group.pinned.size();
  group.ops.push_back(op);
  if (!addPins(op, group))
    return false;
  // A newly pinned index may change the results of the others.
  auto changed = llvm::ArrayRef(group.ops);
  if (group.pinned.size() == numPinned)
    changed = changed.take_back();
  return llvm::all_of(changed,
                      [&](Operation *each) { return addMade(each, group); });
}

/// Takes back the operation that was added last to a group with the pins
/// `pinned`.
void GroupAssigner::removeOperation(Operation *op, GroupInfo &group,
                                    PinnedAxes pinned) const {
  bool changed = group.pinned.size() != pinned.size();
  group.ops.pop_back();
  for (Value result : op->getResults())
    group.made.erase(result);
  group.pinned = std::move(pinned);
  if (changed)
    for (Operation *each : group.ops)
      addMade(each, group);
}

//===----------------------------------------------------------------------===//
// Row operations
//===----------------------------------------------------------------------===//

bool isRowOp(Operation *op) {
  auto cost = dyn_cast<CostOpInterface>(op);
  return cost && cost.getFusionKind() == FusionKind::Reduction;
}

int64_t rowChunks(Operation *op) {
  return isRowOp(op) ? cast<CostOpInterface>(op).getRowChunks() : kNoChunks;
}

bool isRowFactor(const Factor &factor) {
  return factor.kind == FactorKind::Replicated ||
         factor.kind == FactorKind::Reduction ||
         factor.kind == FactorKind::Statistic ||
         factor.kind == FactorKind::StatisticReduction;
}

/// The indices that a row operation reads whole.
SmallVector<StringRef, 2> rowsOf(Operation *op) {
  // The names live as long as the operation's attributes do.
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  SmallVector<StringRef, 2> rows;
  for (StringRef name : iterationIndices(op))
    if (std::optional<unsigned> factor = rule.findFactor(name))
      if (isRowFactor(rule.factors[*factor]))
        rows.push_back(name);
  llvm::sort(rows);
  return rows;
}

/// A reduction that tiles of rows can do in parts, one operation at the end: a
/// sum, a mean, a maximum.
bool isReduction(Operation *op) {
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  if (rule.statistics.size() > 1)
    return false;
  for (auto [number, factor] : llvm::enumerate(rule.factors))
    for (const TensorFactors &result : rule.results)
      if (isRowFactor(factor) && hasFactor(result, number))
        return false;
  return true;
}

/// True if the operation's results are read in the group, by an operation that
/// is in it or by `joining`.
bool GroupAssigner::isReadIn(unsigned group, Operation *op,
                             Operation *joining) const {
  return llvm::any_of(op->getUsers(), [&](Operation *user) {
    auto it = groupOf.find(user);
    return user == joining || (it != groupOf.end() && it->second == group);
  });
}

/// Behind a product, a row operation joins only if the program asks for it by
/// chunks; behind that, reductions of its results.
bool GroupAssigner::mayJoinTiles(Operation *op, const GroupInfo &group) const {
  if (group.rowOps.empty())
    return rowChunks(op) != kNoChunks &&
           cast<CostOpInterface>(group.tiled).runsInChunks();
  const RowOperation &first = group.rowOps.front();
  if (rowChunks(op) != kNoChunks)
    return rowChunks(op) == rowChunks(first.op) && rowsOf(op) == first.rows;
  return isReduction(op) && llvm::none_of(first.rows, [&](StringRef name) {
           return llvm::is_contained(iterationIndices(op), name);
         });
}

/// A group holds row operations over one set of indices, and reductions over
/// others that nobody in it reads.
bool GroupAssigner::mayHoldRows(Operation *op, unsigned number) const {
  const GroupInfo &group = groups[number];
  if (isRowOp(op) && group.tiled && !mayJoinTiles(op, group))
    return false;
  SmallVector<RowOperation, 2> rowOps(group.rowOps.begin(), group.rowOps.end());
  if (isRowOp(op))
    rowOps.push_back({op, rowsOf(op)});
  return rowOps.empty() || llvm::any_of(rowOps, [&](const RowOperation &kept) {
           return llvm::all_of(rowOps, [&](const RowOperation &other) {
             return other.rows == kept.rows ||
                    (isReduction(other.op) && !isReadIn(number, other.op, op));
           });
         });
}

/// A widening cast that only row operations read is theirs, so that they read
/// the narrow type, unless they are in the product's group themselves.
bool GroupAssigner::startsRows(Operation *op) const {
  auto cost = cast<CostOpInterface>(op);
  if (!cost.isCast() || op->use_empty() ||
      elementBits(getElementTypeOrSelf(onlyResult(op))) <=
          elementBits(getElementTypeOrSelf(op->getOperand(0))))
    return false;
  return llvm::all_of(op->getUsers(), isRowOp) &&
         llvm::any_of(op->getUsers(), [](Operation *user) {
           return rowChunks(user) == kNoChunks;
         });
}

/// The group has run, and so have those that it reads.
void GroupAssigner::endGroup(unsigned group) {
  if (std::exchange(groups[group].isOver, true))
    return;
  for (unsigned read : groups[group].reads)
    endGroup(read);
}

/// A repeat, or what is in it, reads the results of groups around it, or what
/// costs nothing to make of them: these groups must have run.
void GroupAssigner::endGroupsReadBy(Operation *op) {
  SmallVector<Operation *> stack = {op};
  while (!stack.empty()) {
    Operation *reader = stack.pop_back_val();
    SmallVector<Value> operands(reader->getOperands());
    if (isa<PartOp>(reader))
      operands = {reader->getResult(0)};
    for (Value operand : operands) {
      Operation *maker = makerOf(operand);
      if (!maker || (reader == op && !isa<RepeatOp>(op) &&
                     maker->getBlock() == op->getBlock()))
        continue;
      auto group = groupOf.find(maker);
      if (group != groupOf.end())
        endGroup(group->second);
      else if (isa<CostOpInterface>(maker) && readByRepeat.insert(maker).second)
        stack.push_back(maker);
    }
  }
}

/// Scalars, and what is added up from one iteration to the next, cost little
/// apart. In one kernel with the sum that they read, the sum could not be moved
/// before: over a sharded batch it would have to be made of gathered values.
static bool addsToWhole(Operation *op, const GroupInfo &group,
                        ArrayRef<StringRef> indices) {
  bool hasFewer = llvm::any_of(group.indices, [&](StringRef name) {
    return !llvm::is_contained(indices, name);
  });
  auto isCarried = [](Value operand) {
    auto part = operand.getDefiningOp<PartOp>();
    auto declare =
        part ? part.getSource().getDefiningOp<DeclareOp>() : DeclareOp();
    return isa<BlockArgument>(operand) || (declare && declare.isBuffer());
  };
  return hasFewer &&
         (indices.empty() || llvm::any_of(op->getOperands(), isCarried));
}

/// An addition of gradients that several leaders make of one value.
static bool addsProducts(Value value) {
  auto add = value.getDefiningOp<ElementwiseOp>();
  return add && add.getFunction() == Function::Add &&
         getPhase(add) == Phase::Backward &&
         llvm::all_of(add.getInputs(), [](Value operand) {
           Operation *maker = operand.getDefiningOp();
           return maker &&
                  ((isa<CostOpInterface>(maker) && isLeaderOp(maker)) ||
                   addsProducts(operand));
         });
}

static bool readsHost(Operation *op) {
  return llvm::any_of(op->getOperands(), isReadOnHost);
}

/// The group must cover the operation's indices, must not have to run both
/// before and after another group or a repeat, and pins must leave a strategy
/// to share. Of what the leader makes, the operation reads the first result
/// only: through one value the two become one kernel.
bool GroupAssigner::join(Operation *op, unsigned number,
                         ArrayRef<StringRef> indices) {
  GroupInfo &group = groups[number];
  // The host runs none of what stands before: it gets the results.
  if (addsToWhole(op, group, indices) ||
      (readsHost(op) && llvm::none_of(group.ops, readsHost)))
    return false;
  if (group.isOver || (group.tiled && startsRows(op)) ||
      !llvm::all_of(indices,
                    [&](StringRef name) {
                      return llvm::is_contained(group.indices, name);
                    }) ||
      !mayHoldRows(op, number))
    return false;
  llvm::SmallDenseSet<unsigned> seen;
  for (Value operand : op->getOperands()) {
    Operation *maker = makerOf(operand);
    auto it = groupOf.find(maker);
    if (it == groupOf.end())
      continue;
    // A buffer is written when a kernel ends. So does a sum of products: in one
    // kernel with what follows, which shares one strategy, each product would
    // have to be a whole sum; apart, the sum of partial sums is moved once.
    bool isApart = maker != operand.getDefiningOp() ||
                   (addsProducts(operand) && !addsProducts(op->getResult(0))) ||
                   (isLeaderOp(maker) && operand != groupValue(maker));
    if (it->second == number ? isApart
                             : readsTransitively(it->second, number, seen))
      return false;
  }
  PinnedAxes pinned = group.pinned;
  if (addOperation(op, group)) {
    if (isRowOp(op))
      group.rowOps.push_back({op, rowsOf(op)});
    return true;
  }
  removeOperation(op, group, std::move(pinned));
  return false;
}

/// Views cost nothing and are no deeper than what they show; a repeat is deeper
/// than all that it reads.
unsigned GroupAssigner::depthOf(Operation *op) const {
  unsigned deepest = 0;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (Operation *def = operand.getDefiningOp())
        deepest = std::max(deepest, depth.lookup(def));
  });
  auto cost = dyn_cast<CostOpInterface>(op);
  bool counts =
      isa<RepeatOp>(op) || (cost && cost.getFusionKind() != FusionKind::Free);
  return deepest + (counts ? 1 : 0);
}

/// The operand that is produced last, by dependences: the deepest, of equally
/// deep ones the leftmost.
Operation *GroupAssigner::latestOperand(Operation *op) const {
  Operation *latest = nullptr;
  for (Value operand : op->getOperands()) {
    Operation *def = operand.getDefiningOp();
    if (def && def->getBlock() == op->getBlock() &&
        !isa<ConstantOp, PartOp>(def) &&
        (!latest || depth.lookup(def) > depth.lookup(latest)))
      latest = def;
  }
  return latest;
}

/// The declared tensor that a value is, perhaps after writes into it; or null.
static DeclareOp writtenTensor(Value value) {
  while (Operation *maker = value.getDefiningOp()) {
    OpOperand *into = inPlaceOperand(maker);
    if (!into)
      break;
    value = rootValue(into->get());
  }
  return declarationOf(value);
}

/// True if something behind an operation writes into the state that it reads.
static bool isOverwritten(Operation *op) {
  DeclareOp state = writtenTensor(op->getOperand(0));
  for (Operation *next = op->getNextNode(); next && state;
       next = next->getNextNode())
    if (OpOperand *into = inPlaceOperand(next))
      if (writtenTensor(into->get()) == state)
        return true;
  return false;
}

/// A slice that only attention reads has a group of its own, as a prologue:
/// attention reads the tensor that it cuts, of keys and values once.
static bool isReadThrough(Operation *op) {
  return isa<SliceOp>(op) && !op->use_empty() && !isOverwritten(op) &&
         llvm::all_of(op->getUsers(), [&](Operation *user) {
           return isa<AttentionOpInterface>(user) &&
                  user->getBlock() == op->getBlock();
         });
}

void GroupAssigner::assign(Operation *op) {
  llvm::SmallVector<StringRef, 6> indices = iterationIndices(op);
  bool isLeader = isLeaderOp(op);
  // Free operations that come here are those that are read through.
  bool isView = cast<CostOpInterface>(op).getFusionKind() == FusionKind::Free;
  std::optional<unsigned> group;
  if (!isLeader && !isView) {
    auto it = groupOf.find(latestOperand(op));
    if (it != groupOf.end() && join(op, it->second, indices))
      group = it->second;
  }
  if (!group && isLeader) {
    group = startGroup(cast<ShardingRuleOpInterface>(op).getWrittenIndices());
    if (!cast<CostOpInterface>(op).holdsRows())
      groups[*group].tiled = op;
  } else if (!group) {
    // Pins of one operation that contradict each other are reported where its
    // strategies are enumerated.
    group = startGroup(indices);
    addOperation(op, groups[*group]);
    if (isRowOp(op))
      groups[*group].rowOps.push_back({op, rowsOf(op)});
    groups[*group].isOver = isView;
  }
  for (Value operand : op->getOperands())
    if (auto it = groupOf.find(makerOf(operand)); it != groupOf.end())
      addRead(*group, it->second);
  groupOf[op] = *group;
  op->setAttr(kGroup,
              GroupAttr::get(op->getContext(), *group,
                             isLeader ? GroupPart::First : GroupPart::Rest));
}

/// A stage runs the forward pass of a microbatch long before the others: no
/// kernel belongs to both.
void GroupAssigner::endForwardPass() {
  for (GroupInfo &group : groups)
    group.isOver = true;
}

void GroupAssigner::visit(Block &block) {
  bool isForward = block.getParentOp() == microbatches;
  for (Operation &op : block) {
    if (isForward && getPhase(&op) != Phase::Forward) {
      endForwardPass();
      isForward = false;
    }
    endGroupsReadBy(&op);
    if (auto cost = dyn_cast<CostOpInterface>(op);
        cost &&
        (cost.getFusionKind() != FusionKind::Free || isReadThrough(&op)))
      assign(&op);
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        visit(inner);
    depth[&op] = depthOf(&op);
  }
}

} // namespace

void shardc::assignFusionGroups(ProgramOp program) {
  Mesh mesh = program.getMeshAttr() ? toMesh(program.getMeshAttr()) : Mesh();
  RepeatOp microbatches;
  if (std::optional<PipelineAttr> pipeline = program.getPipeline())
    microbatches = pipelineRepeats(program, pipeline->getIndex()).microbatches;
  GroupAssigner(mesh, microbatches).visit(program.getBody().front());
}
