//===- Rings.cpp - Work and traffic of attention around a ring ------------===//

#include "shardc/Optimizer/Rings.h"
#include "shardc/Dialect/Shd/IR/RingAttention.h"
#include "shardc/Reshard/ReshardMemory.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

/// So many permutes, of which a tensor is a part.
static CollectiveCost shareOf(CollectiveCost permute, double times,
                              double part) {
  double factor = times * part;
  permute.bytes *= factor;
  permute.wireBytes *= factor;
  permute.bandwidthSeconds *= factor;
  permute.latencySeconds *= factor;
  if (permute.calibrated) {
    permute.calibrated->fixedSeconds *= factor;
    permute.calibrated->bandwidthSeconds *= factor;
    permute.calibrated->rampSeconds *= factor;
  }
  return permute;
}

CollectiveCost shardc::ringShiftCost(const CollectiveModel &model,
                                     AxisIndex axis, double bytes,
                                     bool bothWays) {
  int64_t devices = model.mesh().axes[axis].size;
  CollectiveCost cost = model.permuteCost(
      {axis}, bothWays ? bytes / 2 : bytes,
      [&](ArrayRef<int64_t> destination, MutableArrayRef<int64_t> source) {
        source[axis] = (destination[axis] + 1) % devices;
      });
  // The halves take links of their own.
  if (bothWays) {
    cost.bytes *= 2;
    cost.wireBytes *= 2;
  }
  return cost;
}

/// Whether an index is in every tensor of which there are parts in each step:
/// alone in a dimension, so that halves are slices.
static bool isCutEverywhere(const ShardingRule &rule, unsigned factor) {
  auto isCut = [&](const TensorFactors &tensor) {
    return llvm::count_if(tensor, [&](const DimFactors &dim) {
             return llvm::is_contained(dim, factor) && dim.size() == 1;
           }) == 1;
  };
  return llvm::all_of(rule.operands, isCut) &&
         llvm::all_of(rule.results, isCut);
}

/// Whether what is read as several operands has the index in one dimension.
static bool isCutAlike(Operation *op, const ShardingRule &rule,
                       unsigned factor) {
  auto dimOf = [&](unsigned operand) {
    const TensorFactors &tensor = rule.operands[operand];
    return llvm::find_if(tensor,
                         [&](const DimFactors &dim) {
                           return llvm::is_contained(dim, factor);
                         }) -
           tensor.begin();
  };
  SmallVector<unsigned, 2> operands = ringOperands(rule);
  return llvm::all_of(operands, [&](unsigned a) {
    return llvm::all_of(operands, [&](unsigned b) {
      return op->getOperand(a) != op->getOperand(b) || dimOf(a) == dimOf(b);
    });
  });
}

/// The factor along which each part that travels is cut into halves that go
/// both ways around the ring: the last index that all of it has, as the queries
/// do, and of which a device has an even number. Nothing where the axis has no
/// two ways.
static std::optional<unsigned> halvedFactor(const CollectiveModel &model,
                                            Operation *op,
                                            const ShardingRule &rule,
                                            const Strategy &strategy) {
  if (!strategy.ring || !model.hasTwoWays(*strategy.ring))
    return std::nullopt;
  SmallVector<int64_t, 6> extents =
      localExtents(model.mesh(), rule, strategy).extents;
  for (unsigned factor = rule.factors.size(); factor-- > 0;) {
    int64_t whole = rule.factors[factor].extent;
    if (factor == rule.ring->factor ||
        llvm::is_contained(rule.ring->along, factor) ||
        !isCutEverywhere(rule, factor) || !isCutAlike(op, rule, factor))
      continue;
    if (extents[factor] % 2 == 0 && whole % extents[factor] == 0)
      return factor;
  }
  return std::nullopt;
}

SmallVector<RingMove, 4> shardc::ringMoves(const CollectiveModel &model,
                                           Operation *op,
                                           const ShardingRule &rule,
                                           const Strategy &strategy) {
  SmallVector<RingMove, 4> moves;
  if (!strategy.ring)
    return moves;
  // A value that is read twice in one layout travels once.
  auto travelsAlready = [&](unsigned operand, const Layout &layout) {
    return llvm::any_of(moves, [&](const RingMove &move) {
      return op->getOperand(move.number) == op->getOperand(operand) &&
             operandLayout(rule, strategy, move.number) == layout;
    });
  };
  double bytes = 0;
  auto add = [&](unsigned number, bool isResult, Type type,
                 const Layout &layout) {
    moves.push_back({number,
                     isResult,
                     tensorShape(type).localBytes(model.mesh(), layout),
                     {},
                     {}});
    bytes += moves.back().bytes;
  };
  for (unsigned operand : ringOperands(rule)) {
    Layout layout = operandLayout(rule, strategy, operand);
    if (!travelsAlready(operand, layout))
      add(operand, /*isResult=*/false, op->getOperand(operand).getType(),
          layout);
  }
  for (unsigned result : ringResults(rule))
    add(result, /*isResult=*/true, op->getResult(result).getType(),
        resultLayout(rule, strategy, result));
  std::optional<unsigned> halved = halvedFactor(model, op, rule, strategy);
  CollectiveCost permute =
      ringShiftCost(model, *strategy.ring, bytes, halved.has_value());
  auto times = double(model.mesh().axes[*strategy.ring].size - 1);
  for (RingMove &move : moves) {
    move.cost = shareOf(permute, times, move.bytes / bytes);
    if (halved)
      move.halved = rule.factors[*halved].name;
  }
  return moves;
}

int64_t shardc::ringBufferBytes(double partBytes) {
  return 2 * wholeBytes(partBytes);
}

double shardc::ringSumBytes(const ShardingRule &rule,
                            ArrayRef<int64_t> localExtents) {
  double bytes = 4;
  for (const DimFactors &dim : rule.results.front())
    for (unsigned factor : dim)
      bytes *= double(localExtents[factor]);
  return bytes;
}

double shardc::ringTraffic(const Mesh &mesh, const ShardingRule &rule,
                           const Strategy &strategy,
                           ArrayRef<double> operandBytes,
                           ArrayRef<double> resultBytes) {
  if (!strategy.ring)
    return 0;
  auto steps = double(mesh.axes[*strategy.ring].size);
  double bytes =
      2 * steps * ringSumBytes(rule, localExtents(mesh, rule, strategy));
  for (auto [tensor, read] : llvm::zip(rule.operands, operandBytes))
    if (!hasFactor(tensor, rule.ring->factor))
      bytes += (steps - 1) * read;
  for (unsigned result : ringResults(rule))
    bytes += (steps - 1) / steps * resultBytes[result];
  return bytes;
}
