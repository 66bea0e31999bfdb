//===- Order.cpp - The order of positions along an index ------------------===//

#include "shardc/Dialect/Shd/IR/Order.h"
#include "shardc/Dialect/Shd/IR/Experts.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

//===----------------------------------------------------------------------===//
// Zigzag order
//===----------------------------------------------------------------------===//

/// Stored chunks 2d and 2d + 1 are d and 2c - 1 - d.
int64_t PositionOrder::positionAt(int64_t stored) const {
  if (parts == 1)
    return stored;
  int64_t at = stored / chunk, within = stored % chunk;
  int64_t chunkOf = at % 2 == 0 ? at / 2 : 2 * parts - 1 - at / 2;
  return chunkOf * chunk + within;
}

int64_t PositionOrder::storedAt(int64_t position) const {
  if (parts == 1)
    return position;
  int64_t chunkOf = position / chunk, within = position % chunk;
  int64_t at =
      chunkOf < parts ? 2 * chunkOf : 2 * (2 * parts - 1 - chunkOf) + 1;
  return at * chunk + within;
}

SmallVector<PositionOrder::Stretch>
PositionOrder::stretches(int64_t begin, int64_t end) const {
  SmallVector<Stretch> result;
  while (begin < end) {
    int64_t next =
        parts == 1 ? end : std::min(end, (begin / chunk + 1) * chunk);
    int64_t first = positionAt(begin);
    result.push_back({first, first + next - begin});
    begin = next;
  }
  return result;
}

SmallVector<int64_t> PositionOrder::haloPositions(int64_t begin, int64_t end,
                                                  int64_t rows) const {
  SmallVector<Stretch> joined = stretches(begin, end);
  llvm::sort(joined, [](const Stretch &a, const Stretch &b) {
    return a.begin < b.begin;
  });
  SmallVector<int64_t> begins;
  for (auto [i, stretch] : llvm::enumerate(joined))
    if (i == 0 || joined[i - 1].end < stretch.begin)
      begins.push_back(stretch.begin);
  // Rows before position 0 stand for those of a stretch that is missing.
  begins.resize(numStretches(), 0);
  SmallVector<int64_t> positions;
  for (int64_t first : begins)
    for (int64_t row = first - rows; row < first; ++row)
      positions.push_back(row);
  return positions;
}

int64_t shd::dealtParts(Operation *op, StringRef index) {
  auto dealt = op->getAttrOfType<DictionaryAttr>(kDealt);
  auto entry =
      dealt ? dealt.getAs<DenseI64ArrayAttr>(index) : DenseI64ArrayAttr();
  return entry ? entry[1] : 1;
}

PositionOrder shd::positionOrder(Operation *op, StringRef index,
                                 int64_t extent) {
  return PositionOrder(extent, dealtParts(op, index));
}

SmallVector<PositionOrder> shd::positionOrders(Operation *op,
                                               ArrayRef<StringRef> indices,
                                               ArrayRef<int64_t> extents) {
  SmallVector<PositionOrder> orders;
  for (auto [index, extent] : llvm::zip_equal(indices, extents))
    orders.push_back(positionOrder(op, index, extent));
  return orders;
}

/// Each element of the result is the one at the place that `sourceOf` gives for
/// its own along each dimension.
static Tensor rearranged(const Tensor &tensor, ArrayRef<PositionOrder> orders,
                         int64_t (PositionOrder::*sourceOf)(int64_t place)
                             const) {
  Tensor result = tensor;
  auto shape = tensor.getShape();
  for (auto [dim, order] : llvm::enumerate(orders)) {
    if (order.numParts() == 1)
      continue;
    int64_t inner = 1;
    for (int64_t extent : shape.drop_front(dim + 1))
      inner *= extent;
    Tensor from = result;
    for (int64_t i = 0; i < result.getNumElements(); ++i) {
      int64_t at = i / inner % shape[dim];
      int64_t source = i + ((order.*sourceOf)(at)-at) * inner;
      if (result.isReal())
        result.setReal(i, from.getReal(source));
      else
        result.setInteger(i, from.getInteger(source));
    }
  }
  return result;
}

Tensor shd::stored(const Tensor &tensor, ArrayRef<PositionOrder> orders) {
  return rearranged(tensor, orders, &PositionOrder::positionAt);
}

Tensor shd::inProgramOrder(const Tensor &stored,
                           ArrayRef<PositionOrder> orders) {
  return rearranged(stored, orders, &PositionOrder::storedAt);
}

//===----------------------------------------------------------------------===//
// Obstacles
//===----------------------------------------------------------------------===//

static bool isNamed(const ShardingRule &rule, unsigned factor,
                    StringRef index) {
  return rule.findFactor(index) == factor;
}

/// Masks compare positions of queries with those of keys; both orders must be
/// known.
static std::string obstacleOf(AttentionOpInterface op, const ShardingRule &rule,
                              unsigned factor) {
  bool isMasked = op.getCausal() || op.getWindow();
  bool isKey = isNamed(rule, factor, op.getKey());
  bool isQuery = op.getQuery() && isNamed(rule, factor, *op.getQuery());
  if (isNamed(rule, factor, op.getHead()))
    return "attention sums over it";
  if (!isMasked)
    return "";
  if (op.getKeyAt() && (isKey || isQuery))
    return "`key_at=` gives the positions of attention's keys";
  if (op.getAt())
    return isKey ? "`at=` gives the positions of attention's queries" : "";
  return "";
}

static bool isPositioned(PositionsOpInterface op, const TensorFactors &tensor,
                         unsigned factor) {
  return llvm::any_of(op.getDims(), [&](int64_t dim) {
    return llvm::is_contained(tensor[dim], factor);
  });
}

/// Where some are dropped, tokens that come first take the slots. Else another
/// order changes only which slot a token has; shd-order-indices looks for what
/// tells slots apart.
static std::string obstacleOf(ExpertsOpInterface op, const ShardingRule &rule,
                              unsigned factor) {
  if (op.getDropless())
    return "";
  ExpertIndices indices = ExpertIndices::of(op);
  bool isToken = llvm::any_of(indices.tokens, [&](StringRef index) {
    return rule.factors[factor].name == index;
  });
  return isToken ? "dispatch fills slots in its order, and drops tokens" : "";
}

std::string shd::orderObstacle(ShardingRuleOpInterface op,
                               const ShardingRule &rule, unsigned factor) {
  Operation *any = op;
  auto named = [&](StringRef index, const char *why) -> std::string {
    return isNamed(rule, factor, index) ? why : "";
  };
  auto hasFactorHere = [&](const DimFactors &dim) {
    return is_contained(dim, factor);
  };
  return llvm::TypeSwitch<Operation *, std::string>(any)
      .Case<EinsumOp, ElementwiseOp, NormalizeOp, AdamWOp, SgdOp, SplitOp,
            MergeOp, ReshardOp, IotaOp>([](auto) { return ""; })
      .Case<AttentionOp, AttentionGradOp>([&](auto typed) {
        return obstacleOf(cast<AttentionOpInterface>(any), rule, factor);
      })
      .Case([&](ReduceOp typed) -> std::string {
        bool isReduced = llvm::none_of(rule.results.front(), hasFactorHere);
        bool picks = typed.getFunctionName() == "argmax" ||
                     typed.getFunctionName() == "argmin";
        return isReduced && picks
                   ? typed.getFunctionName().str() + " runs along it"
                   : "";
      })
      .Case([&](RopeOp typed) {
        return named(typed.getHead(), "rope turns along it");
      })
      .Case([&](TopKOp typed) {
        return named(typed.getOver(), "topk chooses along it");
      })
      .Case([&](CrossEntropyOp typed) {
        return named(typed.getClasses(), "labels name elements of it");
      })
      // Positions that a gather reads are mapped.
      .Case([](GatherOp) { return ""; })
      .Case([&](ScatterOp typed) -> std::string {
        if (isPositioned(typed, rule.operands.front(), factor))
          return "a scatter writes along it";
        bool isWritten = llvm::any_of(rule.operands.front(), hasFactorHere);
        return isWritten || typed.getAccumulate()
                   ? ""
                   : "a scatter writes its elements to positions that may be "
                     "equal, where the last one stays";
      })
      .Case([&](ScatterSumOp typed) -> std::string {
        return isPositioned(typed, rule.results.front(), factor)
                   ? "a sum into rows writes along it"
                   : "";
      })
      .Case([&](SliceOp typed) -> std::string {
        return isNamed(rule, factor, typed.getWhole()) ||
                       isNamed(rule, factor, typed.getPart())
                   ? "a slice cuts it"
                   : "";
      })
      .Case([&](ConcatOp typed) -> std::string {
        bool isPart = llvm::any_of(
            typed.getParts().getAsValueRange<StringAttr>(),
            [&](StringRef part) { return isNamed(rule, factor, part); });
        return isPart || isNamed(rule, factor, typed.getWhole())
                   ? "a concat joins along it"
                   : "";
      })
      .Case<DispatchOp, CombineOp, CombineGradOp>([&](auto typed) {
        return obstacleOf(cast<ExpertsOpInterface>(any), rule, factor);
      })
      .Default([&](Operation *) {
        return "'" + op.getFunctionName().str() + "' may depend on positions";
      });
}
