//===- ChunkedLoss.cpp - Losses whose backward pass runs in chunks --------===//

#include "ChunkedLoss.h"
#include "shardc/Dialect/Shd/IR/Gradient.h"
#include "shardc/Optimizer/Names.h"
#include "llvm/ADT/DenseSet.h"
#include <cmath>
#include <numeric>

using namespace mlir;

namespace shardc::shd {

/// Chunks of `all`: the most, and how many times the least that is wanted.
static constexpr int64_t kMostChunksOfAll = 4096, kMostMore = 4;

namespace {

class ChunkFinder {
public:
  ChunkFinder(ProgramOp program, Operation *loss, int64_t microbatches)
      : program(program), loss(loss), microbatches(microbatches) {}

  std::optional<ChunkedLoss> find();

private:
  using Dims = llvm::DenseMap<Value, unsigned>;

  bool spreadDims(Operation *op);
  bool isBetween(Operation *op) const;
  int64_t axisSize(StringRef name);
  int64_t partsOfPins(const Dims &dims);
  bool mayHoldBatch(unsigned label);
  int64_t divisible(unsigned label);
  int64_t leastChunks();
  int64_t cut(int64_t chunks, ArrayRef<int64_t> divisible);
  void cutAll(ArrayRef<int64_t> divisible);

  ProgramOp program;
  Operation *loss;
  int64_t microbatches;
  ChunkedLoss found;
  llvm::SmallDenseSet<Operation *, 8> inside;
  /// By index of the labels.
  SmallVector<Dims> dims;
};

bool isLeader(Operation *op) {
  return cast<CostOpInterface>(op).getFusionKind() == FusionKind::Leader;
}

ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// Operands have an index of the labels where they have its factor; false if
/// one has it twice.
bool ChunkFinder::spreadDims(Operation *op) {
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  for (Dims &ofLabel : dims) {
    const auto &list = rule.results[0][ofLabel.lookup(op->getResult(0))];
    if (list.size() != 1)
      return false;
    for (auto [number, factors] : llvm::enumerate(rule.operands))
      for (auto [dim, each] : llvm::enumerate(factors))
        if (llvm::is_contained(each, list.front())) {
          auto known = ofLabel.try_emplace(op->getOperand(number), dim).first;
          if (each.size() != 1 || known->second != dim)
            return false;
        }
  }
  return true;
}

/// True for a product, and elementwise operations behind it, that only the loss
/// needs.
bool ChunkFinder::isBetween(Operation *op) const {
  auto cost = dyn_cast<CostOpInterface>(op);
  if (!cost || !cost.runsInChunks() || op->getNumResults() != 1 ||
      op->use_empty())
    return false;
  Value made = op->getResult(0);
  return shapeOf(made).size() > dims.size() &&
         llvm::all_of(dims,
                      [&](const Dims &each) { return each.contains(made); }) &&
         llvm::all_of(op->getUsers(), [&](Operation *user) {
           return inside.contains(user) && !isLeader(user);
         });
}

int64_t ChunkFinder::axisSize(StringRef name) {
  for (MeshAxisAttr axis : program.getMesh()->getAxes())
    if (axis.getName() == name)
      return axis.getSize();
  return 1;
}

/// The parts into which annotations split an index.
int64_t ChunkFinder::partsOfPins(const Dims &dims) {
  int64_t parts = 1;
  auto add = [&](ShardingAttr pin, Value value) {
    auto at = dims.find(value);
    if (!pin || at == dims.end())
      return;
    int64_t size = 1;
    for (StringAttr axis : pin.getDims()[at->second].getAxes())
      size *= axisSize(axis.getValue());
    parts = std::lcm(parts, size);
  };
  if (!program.getMesh())
    return parts;
  for (auto [value, at] : dims)
    add(getStoredPin(value), value);
  for (Operation *op : found.ops) {
    add(getResultPin(op->getResult(0)), op->getResult(0));
    for (OpOperand &operand : op->getOpOperands())
      add(getOperandPin(op, operand.getOperandNumber()), operand.get());
  }
  return parts;
}

/// True of the batch's index, and of one that no input has and that may be
/// merged from it.
bool ChunkFinder::mayHoldBatch(unsigned label) {
  auto names = indexNames(loss->getResult(0));
  StringAttr batch = program.getTraining()->getBatch();
  bool isOfInput = false;
  for (auto input : program.getBody().getOps<DeclareOp>()) {
    if (input.getKind() != TensorKind::Input)
      continue;
    for (auto [i, index] : llvm::enumerate(input.getIndices())) {
      if (cast<StringAttr>(index).getValue() != names[label])
        continue;
      isOfInput = true;
      if (batch ? index == batch : i == 0)
        return true;
    }
  }
  int64_t extent = batchExtent(program);
  return !isOfInput && extent > 0 &&
         shapeOf(loss->getResult(0))[label] % extent == 0;
}

/// The elements along an index of the labels that may be cut: of each device's
/// part, in each microbatch.
int64_t ChunkFinder::divisible(unsigned label) {
  int64_t extent = shapeOf(loss->getResult(0))[label];
  int64_t parts = partsOfPins(dims[label]);
  if (microbatches != 1 && mayHoldBatch(label))
    parts *= microbatches;
  return parts > 0 && extent % parts == 0 ? extent / parts : 1;
}

/// The chunks of `all`.
int64_t ChunkFinder::leastChunks() {
  int64_t devices = 1;
  if (std::optional<MeshAttr> mesh = program.getMesh())
    for (MeshAxisAttr axis : mesh->getAxes())
      devices *= axis.getSize();
  double made = 0, gradient = 0;
  for (Operation *op : found.ops) {
    if (!isLeader(op))
      continue;
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    made = std::max(made, double(type.getNumElements()) *
                              type.getElementTypeBitWidth() / 8);
    for (Value operand : op->getOperands())
      if (llvm::none_of(
              dims, [&](const Dims &each) { return each.contains(operand); }))
        gradient = std::max(
            gradient,
            4.0 * cast<RankedTensorType>(operand.getType()).getNumElements());
  }
  return gradient == 0 ? 1 : int64_t(std::ceil(made / gradient / devices));
}

/// Cuts the labels into `chunks`, one index if one divides by them; how many
/// there are.
int64_t ChunkFinder::cut(int64_t chunks, ArrayRef<int64_t> divisible) {
  found.cuts.clear();
  auto order = llvm::to_vector(llvm::seq<unsigned>(0, divisible.size()));
  llvm::stable_sort(order, [&](unsigned a, unsigned b) {
    bool isWhole = divisible[a] % chunks == 0;
    if (isWhole != (divisible[b] % chunks == 0))
      return isWhole;
    return divisible[a] > divisible[b];
  });
  auto names = indexNames(loss->getResult(0));
  int64_t made = 1;
  for (unsigned label : order) {
    int64_t count = std::gcd(chunks / made, divisible[label]);
    if (count == 1)
      continue;
    found.cuts.push_back({names[label], count, dims[label]});
    made *= count;
  }
  return made;
}

/// Cuts into the fewest chunks of `all` that divide the labels, or as many as
/// divide them below: chunks of single rows would read the weight for each.
void ChunkFinder::cutAll(ArrayRef<int64_t> divisible) {
  int64_t least = std::min(leastChunks(), kMostChunksOfAll);
  for (int64_t chunks = least; chunks <= kMostMore * least; ++chunks)
    if (cut(chunks, divisible) == chunks)
      return;
  for (int64_t chunks = least; cut(chunks, divisible) != chunks;)
    --chunks;
}

std::optional<ChunkedLoss> ChunkFinder::find() {
  auto cost = dyn_cast<CostOpInterface>(loss);
  if (!cost || cost.getRowChunks() == kNoChunks || loss->getNumResults() != 1)
    return std::nullopt;
  Value losses = loss->getResult(0);
  dims.resize(shapeOf(losses).size());
  for (auto [number, each] : llvm::enumerate(dims))
    each[losses] = number;
  for (Operation *op = loss; op; op = op->getPrevNode())
    if (op == loss || isBetween(op)) {
      if (!spreadDims(op))
        return std::nullopt;
      inside.insert(op);
      found.ops.insert(found.ops.begin(), op);
    }
  if (llvm::none_of(found.ops, isLeader))
    return std::nullopt;
  SmallVector<int64_t> extents;
  for (unsigned label = 0; label < dims.size(); ++label)
    extents.push_back(divisible(label));
  if (cost.getRowChunks() != kAllChunks) {
    cut(cost.getRowChunks(), extents);
  } else {
    cutAll(extents);
  }
  if (found.cuts.empty())
    return std::nullopt;
  return std::move(found);
}

} // namespace

std::optional<ChunkedLoss> findChunkedLoss(ProgramOp program, Operation *loss,
                                           int64_t microbatches) {
  return ChunkFinder(program, loss, microbatches).find();
}

} // namespace shardc::shd
