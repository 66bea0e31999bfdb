//===- ShdWork.cpp - What each operation does on one device ---------------===//
//
// FLOPs and bytes from local extents:
// docs/CostModel.md#2-one-operation-on-one-device.
//
//===----------------------------------------------------------------------===//

#include "Factors.h"
#include "shardc/Cost/DealtPairs.h"
#include "shardc/Dialect/Shd/IR/Order.h"
#include "shardc/Dialect/Shd/IR/Serving.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {
/// An operation's tensors as one device sees them.
class LocalView {
public:
  LocalView(Operation *op, const FactorTable &table,
            ArrayRef<int64_t> localExtents)
      : op(op), table(table), localExtents(localExtents) {}

  double operandElements(unsigned operand) const {
    return elements(table.operands()[operand]);
  }
  double resultElements(unsigned result = 0) const {
    return elements(table.results()[result]);
  }

  /// Bytes of `elements` of an operand's (or a result's) type.
  double operandBytes(unsigned operand, double elements) const {
    return bytes(op->getOperand(operand).getType(), elements);
  }
  double resultBytes(double elements, unsigned result = 0) const {
    return bytes(op->getResult(result).getType(), elements);
  }

  /// Product of the local extents of all factors.
  double iterations() const {
    return llvm::accumulate(localExtents, 1.0, std::multiplies<double>());
  }
  double local(unsigned factor) const { return localExtents[factor]; }
  double global(unsigned factor) const {
    return table.entries()[factor].extent;
  }

  /// Work that touches every operand and result in full.
  OpWork work() const {
    OpWork work;
    for (unsigned i = 0; i < table.operands().size(); ++i)
      work.operandBytes.push_back(operandBytes(i, operandElements(i)));
    for (unsigned i = 0; i < table.results().size(); ++i)
      work.resultBytes.push_back(resultBytes(resultElements(i), i));
    return work;
  }

private:
  double elements(const TensorFactors &tensor) const {
    double product = 1;
    for (const DimFactors &dim : tensor)
      for (unsigned factor : dim)
        product *= local(factor);
    return product;
  }
  static double bytes(Type type, double elements) {
    return elements *
           elementBits(cast<RankedTensorType>(type).getElementType()) / 8.0;
  }

  Operation *op;
  const FactorTable &table;
  ArrayRef<int64_t> localExtents;
};
} // namespace

/// The compute type of a product of values.
static std::string computeTypeOf(const Machine &machine, ValueRange factors) {
  SmallVector<StringRef, 3> types;
  for (Value factor : factors)
    types.push_back(typeName(getElementTypeOrSelf(factor)));
  return computeType(machine, types);
}

double shd::detail::flopsOfSizes(Operation *op, ArrayRef<FactorRange> ranges) {
  LocalExtents sizes;
  for (const FactorRange &range : ranges)
    sizes.extents.push_back(range.size);
  return cast<CostOpInterface>(op).getWork(sizes, Machine()).matrixFlops;
}

/// The work of a view: nothing is moved.
static OpWork viewWork(ShardingRuleOpInterface op) {
  OpWork work;
  work.operandBytes.assign(op.getIndexing().getOperands().size(), 0);
  work.resultBytes.assign(1, 0);
  return work;
}

/// The work of an operation on the vector units that spends `flops` on each
/// element of operand 0.
static OpWork vectorWork(ShardingRuleOpInterface op,
                         ArrayRef<int64_t> localExtents, double flops) {
  FactorTable table = FactorTable::of(op);
  LocalView view(op, table, localExtents);
  OpWork work = view.work();
  work.vectorFlops = flops * view.operandElements(0);
  return work;
}

//===----------------------------------------------------------------------===//
// Products and elementwise operations
//===----------------------------------------------------------------------===//

OpWork EinsumOp::getWork(const LocalExtents &localExtents,
                         const Machine &machine) {
  FactorTable table = FactorTable::of(*this);
  LocalView view(*this, table, localExtents);
  OpWork work = view.work();
  work.matrixFlops = 2 * view.iterations();
  work.computeType = computeTypeOf(machine, {getLhs(), getRhs()});
  return work;
}

FusionKind EinsumOp::getFusionKind() { return FusionKind::Leader; }

bool EinsumOp::readsPrologues() { return true; }

bool EinsumOp::runsInChunks() { return true; }

OpWork ElementwiseOp::getWork(const LocalExtents &localExtents,
                              const Machine &machine) {
  FactorTable table = FactorTable::of(*this);
  LocalView view(*this, table, localExtents);
  OpWork work = view.work();
  bool isFree = getFunction() == Function::Copy ||
                getFunction() == Function::Cast ||
                getFunction() == Function::StopGradient;
  work.vectorFlops = isFree ? 0 : view.resultElements();
  if (double filled = filledKeys(*this); filled < 1) {
    for (double &bytes : work.operandBytes)
      bytes *= filled;
    for (double &bytes : work.resultBytes)
      bytes *= filled;
    work.vectorFlops *= filled;
  }
  return work;
}

FusionKind ElementwiseOp::getFusionKind() { return FusionKind::Elementwise; }

bool ElementwiseOp::isCast() { return getFunction() == Function::Cast; }

bool ElementwiseOp::runsInChunks() { return true; }

/// Arithmetic functions for each element.
static constexpr double kAdamWFlops = 16;

OpWork AdamWOp::getWork(const LocalExtents &localExtents,
                        const Machine &machine) {
  FactorTable table = FactorTable::of(*this);
  LocalView view(*this, table, localExtents);
  OpWork work = view.work();
  work.vectorFlops = kAdamWFlops * view.resultElements();
  return work;
}

FusionKind AdamWOp::getFusionKind() { return FusionKind::Elementwise; }

/// A product and a sum for the step, for the momentum and for the decay, and a
/// product for the scale.
OpWork SgdOp::getWork(const LocalExtents &localExtents,
                      const Machine &machine) {
  FactorTable table = FactorTable::of(*this);
  LocalView view(*this, table, localExtents);
  OpWork work = view.work();
  double flops = 2 + (getMomentum() ? 2 : 0) + (getScale() ? 1 : 0) +
                 (getDecay().convertToDouble() != 0 ? 2 : 0);
  work.vectorFlops = flops * view.resultElements();
  return work;
}

FusionKind SgdOp::getFusionKind() { return FusionKind::Elementwise; }

//===----------------------------------------------------------------------===//
// Reductions and normalisations
//===----------------------------------------------------------------------===//

/// FLOPs per input element of softmax, normalisations and losses.
static constexpr double kNormalizationFlops = 5;

OpWork ReduceOp::getWork(const LocalExtents &localExtents,
                         const Machine &machine) {
  return vectorWork(*this, localExtents, 1);
}

FusionKind ReduceOp::getFusionKind() { return FusionKind::Reduction; }

OpWork NormalizeOp::getWork(const LocalExtents &localExtents,
                            const Machine &machine) {
  return vectorWork(*this, localExtents, kNormalizationFlops);
}

FusionKind NormalizeOp::getFusionKind() { return FusionKind::Reduction; }

OpWork CrossEntropyOp::getWork(const LocalExtents &localExtents,
                               const Machine &machine) {
  return vectorWork(*this, localExtents, kNormalizationFlops);
}

FusionKind CrossEntropyOp::getFusionKind() { return FusionKind::Reduction; }

int64_t CrossEntropyOp::getRowChunks() { return int64_t(getChunks()); }

//===----------------------------------------------------------------------===//
// Attention and positions
//===----------------------------------------------------------------------===//

namespace {
/// Sizes of an attention on one device; where the mask matters, on all.
struct AttentionSizes {
  /// Product of q's extents without the query positions and the head index.
  double batch = 1;
  AttentionExtents extents;
  /// Lengths of the dot products of q with k and of scores with v.
  double head = 1, values = 1;

  double flopsOf(double pairs) const {
    return 2 * batch * pairs * (head + values);
  }
};
} // namespace

/// Factors along which query positions run: `query`, or those of the tensor of
/// positions that k lacks.
static DimFactors queryFactors(AttentionOpInterface op,
                               const FactorTable &table) {
  DimFactors queries;
  if (!op.getAt()) {
    if (auto query = op.getQuery())
      queries.push_back(table.find(*query));
    return queries;
  }
  for (const DimFactors &dim : table.operands()[op.getAtOperand()])
    for (unsigned factor : dim)
      if (!hasFactor(table.operands()[AttentionOp::kKeyOperand], factor))
        queries.push_back(factor);
  return queries;
}

static AttentionSizes attentionSizes(AttentionOpInterface op,
                                     const FactorTable &table,
                                     const LocalView &view) {
  AttentionSizes sizes;
  unsigned head = table.find(op.getHead()), key = table.find(op.getKey());
  const TensorFactors &q = table.operands()[AttentionOp::kQueryOperand];
  DimFactors queries = queryFactors(op, table);
  for (unsigned factor : queries) {
    sizes.extents.globalQueries *= view.global(factor);
    sizes.extents.localQueries *= view.local(factor);
  }
  for (const DimFactors &dim : q)
    for (unsigned factor : dim)
      if (factor != head && !llvm::is_contained(queries, factor))
        sizes.batch *= view.local(factor);
  for (const DimFactors &dim : table.operands()[AttentionOp::kValueOperand])
    for (unsigned factor : dim)
      if (factor != key && !hasFactor(q, factor))
        sizes.values *= view.local(factor);
  sizes.head = view.local(head);
  sizes.extents.globalKeys = view.global(key);
  sizes.extents.localKeys = view.local(key);
  return sizes;
}

/// Sizes of the axes that cut the query positions; none where several factors
/// are they.
static ArrayRef<int64_t> queryCuts(AttentionOpInterface op,
                                   const FactorTable &table,
                                   const LocalExtents &localExtents) {
  DimFactors queries = queryFactors(op, table);
  return queries.size() == 1 ? localExtents.cutsOf(queries.front())
                             : ArrayRef<int64_t>();
}

/// The pairs of the busiest device.
static double busiestPairs(AttentionOpInterface op,
                           const AttentionSizes &sizes) {
  int64_t parts =
      op.getCausal() && op.getQuery() ? dealtParts(op, *op.getQuery()) : 1;
  if (parts > 1)
    return dealtAttentionPairs(sizes.extents, parts, op.getWindow());
  return busiestAttentionPairs(sizes.extents, op.getCausal(), op.getWindow());
}

/// The work of the forward operation: every operand and result once, of keys
/// and values the positions that some query reads.
static OpWork attentionWork(AttentionOpInterface op,
                            const LocalExtents &localExtents) {
  FactorTable table = FactorTable::withValues(op);
  LocalView view(op, table, localExtents);
  AttentionSizes sizes = attentionSizes(op, table, view);
  llvm::append_range(sizes.extents.queryCuts,
                     queryCuts(op, table, localExtents));
  llvm::append_range(sizes.extents.keyCuts,
                     localExtents.cutsOf(table.find(op.getKey())));
  OpWork work = view.work();
  work.isAttention = true;
  // A cache of which a part holds tokens, dealt evenly to the devices.
  if (op->hasAttr(kFilledKeys)) {
    double filled = filledKeys(op);
    work.matrixFlops =
        sizes.flopsOf(filled * double(sizes.extents.localQueries) *
                      double(sizes.extents.localKeys));
    work.operandBytes[AttentionOp::kKeyOperand] *= filled;
    work.operandBytes[AttentionOp::kValueOperand] *= filled;
    if (op.getBias() && hasFactor(table.operands()[op.getBiasOperand()],
                                  table.find(op.getKey())))
      work.operandBytes[op.getBiasOperand()] *= filled;
    if (op.getKeyAt())
      work.operandBytes[op.getKeyAtOperand()] *= filled;
    return work;
  }
  work.matrixFlops = sizes.flopsOf(busiestPairs(op, sizes));
  // The positions that some query of the device reads, within its window.
  if (std::optional<uint64_t> window = op.getWindow()) {
    int64_t dealt = op.getQuery() ? dealtParts(op, *op.getQuery()) : 1;
    double reach = double(stretchesOfPart(dealt)) * (double(*window) - 1) +
                   sizes.extents.localQueries;
    double read = std::min(1.0, reach / sizes.extents.localKeys);
    work.operandBytes[AttentionOp::kKeyOperand] *= read;
    work.operandBytes[AttentionOp::kValueOperand] *= read;
  }
  return work;
}

OpWork AttentionOp::getWork(const LocalExtents &localExtents,
                            const Machine &machine) {
  OpWork work = attentionWork(*this, localExtents);
  work.computeType = computeTypeOf(machine, {getQ(), getK(), getV()});
  return work;
}

/// The pairs of queries and keys in zigzag order.
static double dealtPairs(AttentionOpInterface op, const FactorRange &queries,
                         const FactorRange &keys) {
  auto stretches = [&](StringRef index, const FactorRange &range) {
    return positionOrder(op, index, range.whole)
        .stretches(range.offset, range.offset + range.size);
  };
  double pairs = 0;
  for (auto query : stretches(*op.getQuery(), queries))
    for (auto key : stretches(op.getKey(), keys))
      pairs += maskedPairs(double(query.begin), double(query.end),
                           double(key.begin), double(key.end), op.getWindow());
  return pairs;
}

/// Queries without positions of their own, and those that data place, count as
/// at the last positions of the keys.
static double executedFlops(AttentionOpInterface op,
                            ArrayRef<FactorRange> ranges) {
  FactorTable table = FactorTable::withValues(op);
  SmallVector<int64_t, 6> sizesOf;
  for (const FactorRange &range : ranges)
    sizesOf.push_back(range.size);
  AttentionSizes sizes =
      attentionSizes(op, table, LocalView(op, table, sizesOf));
  if (op->hasAttr(kFilledKeys))
    return sizes.flopsOf(filledKeys(op) * double(sizes.extents.localQueries) *
                         double(sizes.extents.localKeys));
  // Of several factors the positions run along the first as the major one.
  double first = 0, queries = 1, allQueries = 1;
  for (unsigned factor : queryFactors(op, table)) {
    first =
        first * double(ranges[factor].whole) + double(ranges[factor].offset);
    queries *= double(ranges[factor].size);
    allQueries *= double(ranges[factor].whole);
  }
  const FactorRange &keys = ranges[table.find(op.getKey())];
  bool isMasked = op.getCausal() || op.getWindow();
  double whole = double(keys.whole);
  if (!isMasked || allQueries > whole)
    return sizes.flopsOf(
        attentionPairs(allQueries, whole, op.getCausal(), op.getWindow()) *
        (queries / allQueries) * (double(keys.size) / whole));
  if (op.getQuery() && dealtParts(op, *op.getQuery()) > 1)
    return sizes.flopsOf(
        dealtPairs(op, ranges[table.find(*op.getQuery())], keys));
  first += whole - allQueries;
  return sizes.flopsOf(maskedPairs(first, first + queries, double(keys.offset),
                                   double(keys.offset + keys.size),
                                   op.getWindow()));
}

double AttentionOp::getExecutedFlops(ArrayRef<FactorRange> ranges) {
  return executedFlops(*this, ranges);
}

FusionKind AttentionOp::getFusionKind() { return FusionKind::Leader; }

bool AttentionOp::readsPrologues() { return true; }

/// FLOPs of the gradient for each of attention's.
static constexpr double kAttentionGradient = 2.5;

/// Four products as large as the forward operation's two (weights with the
/// gradient, the gradient with values, scores' gradients with keys and with
/// queries), and the scores again.
OpWork AttentionGradOp::getWork(const LocalExtents &localExtents,
                                const Machine &machine) {
  OpWork work = attentionWork(*this, localExtents);
  work.modelFlops = 2 * work.matrixFlops;
  work.matrixFlops *= kAttentionGradient;
  work.computeType =
      computeTypeOf(machine, {getQ(), getK(), getV(), getGradient()});
  return work;
}

double AttentionGradOp::getExecutedFlops(ArrayRef<FactorRange> ranges) {
  return kAttentionGradient * executedFlops(*this, ranges);
}

FusionKind AttentionGradOp::getFusionKind() { return FusionKind::Leader; }

bool AttentionGradOp::readsPrologues() { return true; }

OpWork RopeOp::getWork(const LocalExtents &localExtents,
                       const Machine &machine) {
  return vectorWork(*this, localExtents, 1);
}

FusionKind RopeOp::getFusionKind() { return FusionKind::Elementwise; }

//===----------------------------------------------------------------------===//
// Gather and scatter
//===----------------------------------------------------------------------===//

/// A slice selected by numbers is where the table is.
static bool isView(GatherOp op) {
  return llvm::all_of(op.getPositions(), [](Value positions) {
    return cast<RankedTensorType>(positions.getType()).getRank() == 0;
  });
}

/// The part of the elements at some positions that a device has, where the
/// dimensions that the positions count along are sharded.
static double shareOfPositions(const TensorFactors &tensor,
                               const LocalView &view, ArrayRef<int64_t> dims) {
  double share = 1;
  for (int64_t dim : dims) {
    unsigned factor = tensor[dim].front();
    share *= view.local(factor) / view.global(factor);
  }
  return share;
}

/// Reads the elements that it gathers, of them those that the device has.
OpWork GatherOp::getWork(const LocalExtents &localExtents,
                         const Machine &machine) {
  if (isView(*this))
    return viewWork(*this);
  FactorTable table = FactorTable::of(*this);
  LocalView view(*this, table, localExtents);
  double elements = view.resultElements() *
                    shareOfPositions(table.operands().front(), view, getDims());
  OpWork work = view.work();
  work.operandBytes.front() = view.operandBytes(0, elements);
  return work;
}

FusionKind GatherOp::getFusionKind() {
  return isView(*this) ? FusionKind::Free : FusionKind::Leader;
}

bool GatherOp::holdsRows() { return true; }

/// Writes, in place, the elements that the update names, of them those that the
/// device has; adding reads them too.
OpWork ScatterOp::getWork(const LocalExtents &localExtents,
                          const Machine &machine) {
  FactorTable table = FactorTable::of(*this);
  LocalView view(*this, table, localExtents);
  constexpr unsigned update = 1;
  double elements = view.operandElements(update) *
                    shareOfPositions(table.operands().front(), view, getDims());
  OpWork work = view.work();
  work.operandBytes.front() =
      getAccumulate() ? view.operandBytes(0, elements) : 0;
  work.resultBytes.front() = view.resultBytes(elements);
  return work;
}

FusionKind ScatterOp::getFusionKind() { return FusionKind::Leader; }

bool ScatterOp::holdsRows() { return true; }

OpOperand *ScatterOp::getInPlaceOperand() { return &getDestinationMutable(); }

/// Fills the result with zeros, then reads and writes the elements that it adds
/// to, of them those that the device has.
OpWork ScatterSumOp::getWork(const LocalExtents &localExtents,
                             const Machine &machine) {
  FactorTable table = FactorTable::of(*this);
  LocalView view(*this, table, localExtents);
  double elements = view.operandElements(0) *
                    shareOfPositions(table.results().front(), view, getDims());
  OpWork work = view.work();
  work.vectorFlops = elements;
  work.resultBytes.front() =
      view.resultBytes(view.resultElements() + 2 * elements);
  return work;
}

FusionKind ScatterSumOp::getFusionKind() { return FusionKind::Leader; }

bool ScatterSumOp::holdsRows() { return true; }

//===----------------------------------------------------------------------===//
// Experts
//===----------------------------------------------------------------------===//

OpWork TopKOp::getWork(const LocalExtents &localExtents, const Machine &) {
  return vectorWork(*this, localExtents, 1);
}

FusionKind TopKOp::getFusionKind() { return FusionKind::Reduction; }

/// Every operand and result once.
static OpWork expertsWork(ExpertsOpInterface op,
                          ArrayRef<int64_t> localExtents) {
  FactorTable table = FactorTable::withPicks(op);
  return LocalView(op, table, localExtents).work();
}

OpWork DispatchOp::getWork(const LocalExtents &localExtents, const Machine &) {
  return expertsWork(*this, localExtents);
}

FusionKind DispatchOp::getFusionKind() { return FusionKind::Leader; }

bool DispatchOp::holdsRows() { return true; }

OpWork CombineOp::getWork(const LocalExtents &localExtents, const Machine &) {
  return expertsWork(*this, localExtents);
}

FusionKind CombineOp::getFusionKind() { return FusionKind::Leader; }

bool CombineOp::holdsRows() { return true; }

OpWork CombineGradOp::getWork(const LocalExtents &localExtents,
                              const Machine &) {
  return expertsWork(*this, localExtents);
}

FusionKind CombineGradOp::getFusionKind() { return FusionKind::Leader; }

bool CombineGradOp::holdsRows() { return true; }

//===----------------------------------------------------------------------===//
// Layout of indices
//===----------------------------------------------------------------------===//

OpWork ConcatOp::getWork(const LocalExtents &localExtents,
                         const Machine &machine) {
  return vectorWork(*this, localExtents, 0);
}

FusionKind ConcatOp::getFusionKind() { return FusionKind::Elementwise; }

OpWork SplitOp::getWork(const LocalExtents &, const Machine &) {
  return viewWork(*this);
}

FusionKind SplitOp::getFusionKind() { return FusionKind::Free; }

OpWork MergeOp::getWork(const LocalExtents &, const Machine &) {
  return viewWork(*this);
}

FusionKind MergeOp::getFusionKind() { return FusionKind::Free; }

OpWork SliceOp::getWork(const LocalExtents &, const Machine &) {
  return viewWork(*this);
}

FusionKind SliceOp::getFusionKind() { return FusionKind::Free; }

OpWork IotaOp::getWork(const LocalExtents &, const Machine &) {
  return viewWork(*this);
}

FusionKind IotaOp::getFusionKind() { return FusionKind::Free; }

OpWork ReshardOp::getWork(const LocalExtents &, const Machine &) {
  return viewWork(*this);
}

FusionKind ReshardOp::getFusionKind() { return FusionKind::Free; }
