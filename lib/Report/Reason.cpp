//===- Reason.cpp - Why a collective is there -----------------------------===//
//
// Reductions are explained by what made their operand a partial sum (the sum
// over a sharded index), everything else by the next user, which reads the
// tensor in another layout than the one in which it is stored.
//
//===----------------------------------------------------------------------===//

#include "Collect.h"
#include "Names.h"
#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Dialect/Shd/IR/RingAttention.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

class Explainer {
public:
  Explainer(Operation *collective, const Mesh &mesh, const ProgramOrder &order)
      : collective(collective), mesh(mesh), order(order),
        input(collectiveInput(collective)), axes(collectiveAxes(collective)),
        operand(nameOfOperand()) {}

  std::string explain() const;

private:
  std::string nameOfOperand() const;
  std::string explainStatistic(StatisticOp statistic) const;
  std::string explainReduction() const;
  std::string explainMove() const;

  bool isReduction() const {
    return isa<AllReduceOp, ReduceScatterOp, HaloReduceOp>(collective);
  }
  AxisSet axisSetOfCollective() const;
  /// `[D@X, F]` of `value`, in the index names of `use`.
  std::string sharding(OpOperand &use, Value value) const;

  /// Uses of `value` by operations that are no collectives, also behind
  /// further collectives, in program order.
  SmallVector<OpOperand *, 4> readers(Value value) const;

  Operation *collective;
  const Mesh &mesh;
  const ProgramOrder &order;
  Value input;
  std::vector<std::string> axes;
  std::string operand;
};

std::string Explainer::nameOfOperand() const {
  auto name = collective->getAttrOfType<StringAttr>(kOperand);
  return name ? name.str() : valueName(input);
}

AxisSet Explainer::axisSetOfCollective() const {
  AxisSet set = 0;
  for (const std::string &axis : axes)
    if (std::optional<AxisIndex> index = mesh.find(axis))
      set |= axisBit(*index);
  return set;
}

std::string Explainer::sharding(OpOperand &use, Value value) const {
  return notation(mesh, explicitLayout(mesh, value.getType()),
                  operandIndexNames(use));
}

SmallVector<OpOperand *, 4> Explainer::readers(Value value) const {
  SmallVector<OpOperand *, 4> found;
  for (OpOperand &use : value.getUses()) {
    if (isCollective(use.getOwner()))
      found.append(readers(onlyResult(use.getOwner())));
    else
      found.push_back(&use);
  }
  auto position = [&](OpOperand *use) {
    return std::pair(order.lookup(use->getOwner()), use->getOperandNumber());
  };
  llvm::sort(found, [&](OpOperand *a, OpOperand *b) {
    return position(a) < position(b);
  });
  return found;
}

/// Walks back to the operation that made `value` a partial sum over `over`.
Operation *makerOfPartial(Value value, AxisSet over, const Mesh &mesh) {
  Operation *def = value.getDefiningOp();
  while (def) {
    auto carries = [&](Value from) {
      return isa<RankedTensorType>(from.getType()) &&
             (explicitLayout(mesh, from.getType()).partial & over);
    };
    auto partial = llvm::find_if(def->getOperands(), carries);
    if (partial == def->operand_end())
      return def;
    def = (*partial).getDefiningOp();
  }
  return nullptr;
}

/// Indices that the operation sums over and whose operands are sharded over
/// axes of `over`.
std::vector<std::string> summedIndices(ShardingRuleOpInterface op, AxisSet over,
                                       const Mesh &mesh) {
  IndexingAttr indexing = op.getIndexing();
  SmallVector<StringRef, 4> kept = indexing.getResultIndices(0);
  std::vector<std::string> summed;
  for (unsigned i = 0; i < indexing.getOperands().size(); ++i) {
    Layout layout = explicitLayout(mesh, op->getOperand(i).getType());
    for (auto [name, dimAxes] :
         llvm::zip_equal(indexing.getOperandIndices(i), layout.dims))
      if ((axisSet(dimAxes) & over) && !llvm::is_contained(kept, name) &&
          !llvm::is_contained(summed, name))
        summed.push_back(name.str());
  }
  return summed;
}

std::string quoted(llvm::StringRef name) { return "'" + name.str() + "'"; }

/// `softmax 'A'`.
std::string described(Operation *op) {
  return functionName(op).str() + " " + quoted(nameOf(op));
}

std::string Explainer::explainStatistic(StatisticOp statistic) const {
  Operation *user = nullptr;
  for (OpOperand *reader : readers(onlyResult(collective)))
    if (!user && !isa<StatisticOp>(reader->getOwner()))
      user = reader->getOwner();
  std::string text = "the devices along " + joinWords(axes) + " agree on the " +
                     statistic.getKind().str();
  return user ? text + " of " + described(user) +
                    ", one of whose indices is sharded over them"
              : text;
}

std::string Explainer::explainReduction() const {
  Operation *maker = makerOfPartial(input, axisSetOfCollective(), mesh);
  std::string over = joinWords(axes);
  if (auto halo = dyn_cast<HaloReduceOp>(collective))
    return described(maker) + " adds to " + std::to_string(halo.getRows()) +
           " rows of " + quoted(operand) + " before its own along " +
           collectiveIndices(halo)[halo.getDim()] + " over " + over;
  if (travels(collective))
    return described(maker) + " adds to a part of " + quoted(operand) +
           " in each step around a ring over " + over;
  if (auto ruled = dyn_cast_or_null<ShardingRuleOpInterface>(maker)) {
    std::vector<std::string> summed =
        summedIndices(ruled, axisSetOfCollective(), mesh);
    std::string sharded = summed.size() > 1 ? ", which are sharded over "
                                            : ", which is sharded over ";
    if (readsAtPositions(maker) && !summed.empty())
      return described(maker) + " reads along " + joinWords(summed) + sharded +
             over + ": each device has only its rows";
    if (!summed.empty())
      return described(maker) + " sums over " + joinWords(summed) + sharded +
             over + ": each device holds a partial sum";
  }
  return quoted(operand) + " is a partial sum over " + over;
}

/// Those that read the same layout as the first.
SmallVector<OpOperand *, 4> readersAlike(ArrayRef<OpOperand *> readers,
                                         const Mesh &mesh) {
  auto layout = [&](OpOperand *use) {
    return explicitLayout(mesh, use->get().getType());
  };
  SmallVector<OpOperand *, 4> alike;
  for (OpOperand *reader : readers)
    if (layout(reader) == layout(readers.front()))
      alike.push_back(reader);
  return alike;
}

/// `einsum 'q', einsum 'k' and 2 more`, and whether it is one operation.
std::pair<std::string, bool> namesOf(ArrayRef<OpOperand *> readers) {
  std::vector<std::string> names;
  for (OpOperand *reader : readers)
    if (std::string name = described(reader->getOwner());
        !llvm::is_contained(names, name))
      names.push_back(std::move(name));
  constexpr size_t kMost = 3;
  bool single = names.size() == 1;
  if (names.size() > kMost) {
    size_t more = names.size() - kMost + 1;
    names.resize(kMost - 1);
    names.push_back(std::to_string(more) + " more");
  }
  return {joinWords(names), single};
}

std::string Explainer::explainMove() const {
  bool isStore = collective->hasAttr(kStore);
  Value origin = input;
  for (Operation *def = origin.getDefiningOp();
       def && isCollective(def) && def->hasAttr(kStore) == isStore;
       def = origin.getDefiningOp())
    origin = collectiveInput(def);
  if (isStore) {
    std::vector<std::string> names = collectiveIndices(collective);
    auto written = [&](Value value) {
      return notation(mesh, explicitLayout(mesh, value.getType()), names);
    };
    return quoted(operand) + " is made as " + written(origin) +
           " but stored as " + written(storedValue(origin));
  }
  SmallVector<OpOperand *, 4> uses = readers(onlyResult(collective));
  if (uses.empty())
    return "nothing reads " + quoted(operand) + " in this layout";
  OpOperand &first = *uses.front();
  Operation *user = first.getOwner();
  std::string wanted = sharding(first, first.get());
  std::string given = sharding(first, origin);
  if (isa<OutputOp>(user))
    return "output " + quoted(nameOf(user)) + " leaves as " + wanted +
           " but is made as " + given;
  if (auto update = dyn_cast<UpdateOp>(user))
    return "state " + quoted(update.getSym()) + " is stored as " + wanted +
           " but its new value is made as " + given;
  if (isa<RepeatOp, YieldOp>(user))
    return quoted(operand) + " is carried between iterations as " + wanted +
           " but is made as " + given;
  auto [names, single] = namesOf(readersAlike(uses, mesh));
  if (travels(collective))
    return names + " attends to a part of " + quoted(operand) +
           " in each step around a ring over " + llvm::join(axes, ",");
  if (auto halo = dyn_cast<HaloExchangeOp>(collective))
    return names + (single ? " reads " : " read ") +
           std::to_string(halo.getRows()) + " rows of " + quoted(operand) +
           " before its own along " + collectiveIndices(halo)[halo.getDim()] +
           " over " + llvm::join(axes, ",");
  return names + (single ? " reads " : " read ") + quoted(operand) + " as " +
         wanted + " but it is stored as " + given;
}

std::string Explainer::explain() const {
  if (isa<ToHostOp>(collective))
    return quoted(operand) + " is kept on the host for the backward pass";
  if (isa<FromHostOp>(collective))
    return "the backward pass reads " + quoted(operand) +
           ", which is kept on the host";
  if (auto statistic = input.getDefiningOp<StatisticOp>())
    return explainStatistic(statistic);
  return isReduction() ? explainReduction() : explainMove();
}

} // namespace

std::string shardc::collectiveReason(Operation *collective, const Mesh &mesh,
                                     const ProgramOrder &order) {
  return Explainer(collective, mesh, order).explain();
}
