//===- CollectiveMatmul.cpp - Matmuls that run around a ring --------------===//

#include "shardc/Dialect/Shd/IR/CollectiveMatmul.h"
#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

Movement shd::movementOf(Operation *collective) {
  return {collective, collectiveKind(collective),
          cast<RankedTensorType>(collective->getOperand(0).getType()),
          cast<RankedTensorType>(onlyResult(collective).getType())};
}

bool shd::mayBecomeRing(Operation *op) {
  auto cost = dyn_cast<CostOpInterface>(op);
  return cost && cost.getFusionKind() == FusionKind::Leader &&
         cost.runsInChunks();
}

std::optional<unsigned> shd::movedOperand(Operation *matmul,
                                          Operation *collective) {
  std::optional<unsigned> found;
  for (OpOperand &operand : matmul->getOpOperands()) {
    if (operand.get() != onlyResult(collective))
      continue;
    if (found)
      return std::nullopt;
    found = operand.getOperandNumber();
  }
  return found;
}

namespace {

class Matcher {
public:
  Matcher(const Mesh &mesh, ShardingRuleOpInterface matmul,
          const Movement &moved)
      : mesh(mesh), matmul(matmul), moved(moved) {}

  std::optional<CollectiveMatmul> match();

private:
  bool findRing();
  bool matchGather();
  bool matchScatter();
  bool collectChain();
  bool cutChain();

  const Mesh &mesh;
  ShardingRuleOpInterface matmul;
  const Movement &moved;
  /// The dimension of the chunks in the tensor that moves.
  unsigned dim = 0;
  /// The operations from the matmul to a reduce_scatter, the matmul included.
  llvm::SetVector<Operation *> chain;
  CollectiveMatmul result;
};

} // namespace

/// The dimension with an index.
static std::optional<unsigned> dimOf(ArrayRef<StringRef> indices,
                                     StringRef index) {
  const auto *it = llvm::find(indices, index);
  if (it == indices.end())
    return std::nullopt;
  return it - indices.begin();
}

static IndexingAttr indexingOf(Operation *op) {
  return cast<ShardingRuleOpInterface>(op).getIndexing();
}

/// One dimension has axes more on the side where the tensor is in parts; they
/// divide it evenly, so that every chunk is full.
bool Matcher::findRing() {
  bool isGather = moved.kind == CollectiveKind::AllGather;
  Layout parts = explicitLayout(mesh, isGather ? moved.from : moved.to);
  Layout whole = explicitLayout(mesh, isGather ? moved.to : moved.from);
  for (auto [i, fine, coarse] : llvm::enumerate(parts.dims, whole.dims)) {
    if (fine.size() == coarse.size())
      continue;
    if (!result.axes.empty() ||
        moved.from.getDimSize(i) % mesh.groupSize(fine) != 0)
      return false;
    dim = i;
    result.axes.append(fine.begin() + coarse.size(), fine.end());
  }
  return !result.axes.empty();
}

/// Where the ring runs, the matmul's place, nobody has read the result yet.
bool Matcher::matchGather() {
  Value gathered = onlyResult(moved.op);
  std::optional<unsigned> operand = movedOperand(matmul, moved.op);
  if (!operand || moved.op->getBlock() != matmul->getBlock())
    return false;
  for (Operation *user : gathered.getUsers()) {
    Operation *here = matmul->getBlock()->findAncestorOpInBlock(*user);
    if (here != matmul && here->isBeforeInBlock(matmul))
      return false;
  }
  StringRef index = matmul.getIndexing().getOperandIndices(*operand)[dim];
  result.parts.push_back({matmul, StringAttr::get(matmul.getContext(), index)});
  return true;
}

/// Everything that reads the matmul's result, directly or not, up to the
/// collective.
bool Matcher::collectChain() {
  Attribute group = matmul->getAttr(kGroup);
  auto mayJoin = [&](Operation *op) {
    auto cost = dyn_cast<CostOpInterface>(op);
    return cost && cost.runsInChunks() &&
           cost.getFusionKind() == FusionKind::Elementwise && group &&
           op->getAttr(kGroup) == group && op->getBlock() == matmul->getBlock();
  };
  chain.insert(matmul);
  for (unsigned i = 0; i < chain.size(); ++i)
    for (Operation *user : chain[i]->getUsers()) {
      if (user == moved.op)
        continue;
      if (!mayJoin(user))
        return false;
      chain.insert(user);
    }
  return moved.op->getBlock() == matmul->getBlock() &&
         chain.contains(moved.op->getOperand(0).getDefiningOp());
}

/// Follows the dimension of the chunks back from the collective: each operation
/// makes a chunk from one chunk of what it takes from the chain.
bool Matcher::cutChain() {
  SmallVector<Operation *> order = chain.takeVector();
  llvm::sort(order,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  llvm::SmallDenseMap<Operation *, unsigned> cut;
  cut[moved.op->getOperand(0).getDefiningOp()] = dim;
  for (Operation *op : llvm::reverse(order)) {
    auto own = cut.find(op);
    if (own == cut.end())
      return false;
    IndexingAttr indexing = indexingOf(op);
    StringRef index = indexing.getResultIndices(0)[own->second];
    result.parts.push_back({op, StringAttr::get(op->getContext(), index)});
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      Operation *maker = operand.getDefiningOp();
      if (!llvm::is_contained(order, maker))
        continue;
      std::optional<unsigned> at = dimOf(indexing.getOperandIndices(i), index);
      if (!at || cut.try_emplace(maker, *at).first->second != *at)
        return false;
    }
  }
  std::reverse(result.parts.begin(), result.parts.end());
  return true;
}

bool Matcher::matchScatter() { return collectChain() && cutChain(); }

std::optional<CollectiveMatmul> Matcher::match() {
  bool matches = false;
  if (moved.kind == CollectiveKind::AllGather)
    matches = findRing() && matchGather();
  else if (moved.kind == CollectiveKind::ReduceScatter)
    matches = findRing() && matchScatter();
  if (!matches)
    return std::nullopt;
  return std::move(result);
}

std::optional<CollectiveMatmul>
shd::matchCollectiveMatmul(const Mesh &mesh, ShardingRuleOpInterface matmul,
                           const Movement &moved) {
  return Matcher(mesh, matmul, moved).match();
}
