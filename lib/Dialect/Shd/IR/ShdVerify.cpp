//===- ShdVerify.cpp - What all operations of the dialect verify ----------===//
//
// Indexing, and shardings in types against the mesh and the sharding rule.
//
//===----------------------------------------------------------------------===//

#include "Factors.h"
#include "Verify.h"
#include "shardc/Dialect/Shd/IR/Places.h"
#include "llvm/ADT/SmallSet.h"
#include <map>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

#include "shardc/Dialect/Shd/IR/ShdInterfaces.cpp.inc"

std::string shd::describeOperand(unsigned number) {
  return ("operand " + Twine(number)).str();
}

std::string shd::describeResult(Operation *op, unsigned number) {
  if (op->getNumResults() == 1)
    return "the result";
  return ("result " + Twine(number)).str();
}

//===----------------------------------------------------------------------===//
// Indexing
//===----------------------------------------------------------------------===//

namespace {
/// One operand or result with its list of indices.
struct IndexedTensor {
  std::string description;
  ArrayAttr indices;
  RankedTensorType type;
};
} // namespace

/// I1, the number of lists; fills `tensors`.
static LogicalResult collectTensors(ShardingRuleOpInterface op,
                                    SmallVectorImpl<IndexedTensor> &tensors) {
  IndexingAttr indexing = op.getIndexing();
  unsigned numOperands = op->getNumOperands() - op.getStats().size();
  auto verifyCount = [&](StringRef what, size_t lists,
                         size_t values) -> LogicalResult {
    if (lists == values)
      return success();
    return op->emitOpError() << "has " << lists << " lists of indices for "
                             << values << " " << what;
  };
  if (failed(verifyCount("operands", indexing.getOperands().size(),
                         numOperands)) ||
      failed(verifyCount("results", indexing.getResults().size(),
                         op->getNumResults())))
    return failure();
  for (auto [i, indices] : llvm::enumerate(indexing.getOperands()))
    tensors.push_back({describeOperand(i), indices,
                       cast<RankedTensorType>(op->getOperand(i).getType())});
  for (auto [i, indices] : llvm::enumerate(indexing.getResults()))
    tensors.push_back({describeResult(op, i), indices,
                       cast<RankedTensorType>(op->getResult(i).getType())});
  return success();
}

/// I1, the number of indices, and I2.
static LogicalResult verifyList(Operation *op, const IndexedTensor &tensor) {
  // I1
  if (tensor.indices.size() != size_t(tensor.type.getRank()))
    return op->emitOpError()
           << tensor.description << " has " << tensor.type.getRank()
           << " dimensions, but " << tensor.indices.size() << " indices";
  // I2
  llvm::SmallSet<StringRef, 8> seen;
  for (StringRef index : tensor.indices.getAsValueRange<StringAttr>())
    if (!seen.insert(index).second)
      return emitErrorAt(op)
             << "index '" << index << "' repeats in " << tensor.description;
  return success();
}

/// I3
static LogicalResult verifyExtents(Operation *op,
                                   ArrayRef<IndexedTensor> tensors) {
  // By name, and whose it is.
  std::map<std::pair<StringRef, StringRef>,
           std::pair<const IndexedTensor *, int64_t>>
      first;
  for (auto [number, tensor] : llvm::enumerate(tensors))
    for (auto [index, extent] :
         llvm::zip_equal(tensor.indices.getAsValueRange<StringAttr>(),
                         tensor.type.getShape())) {
      auto [entry, isNew] = first.try_emplace(
          {index, ownerOfIndex(op, index, number)}, &tensor, extent);
      auto [other, expected] = entry->second;
      if (extent != expected)
        return emitErrorAt(op, int(number))
               << "index '" << index << "' has extent " << expected << " in "
               << other->description << " and " << extent << " in "
               << tensor.description;
    }
  return success();
}

bool shd::computesScales(Operation *op) {
  auto isOfScales = [](Type type) {
    return isScale(getElementTypeOrSelf(type));
  };
  if (!isa<ShardingRuleOpInterface>(op) ||
      llvm::none_of(op->getResultTypes(), isOfScales) ||
      isa<GatherOp, SplitOp, MergeOp, SliceOp, ConcatOp, ReshardOp>(op))
    return false;
  if (auto scatter = dyn_cast<ScatterOp>(op))
    return scatter.getAccumulate();
  auto elementwise = dyn_cast<ElementwiseOp>(op);
  return !elementwise ||
         !llvm::is_contained({Function::Cast, Function::Copy, Function::Where,
                              Function::StopGradient},
                             elementwise.getFunction());
}

LogicalResult shd::detail::verifyIndexing(Operation *op) {
  // Linear sets hold one bit per operand.
  constexpr unsigned maxOperands = 32;
  if (op->getNumOperands() > maxOperands)
    return op->emitError() << "an operation reads at most " << maxOperands
                           << " tensors, but this one reads "
                           << op->getNumOperands();
  SmallVector<IndexedTensor> tensors;
  if (failed(collectTensors(cast<ShardingRuleOpInterface>(op), tensors)))
    return failure();
  for (const IndexedTensor &tensor : tensors)
    if (failed(verifyList(op, tensor)))
      return failure();
  if (failed(verifyExtents(op, tensors)))
    return failure();
  // I4
  if (!computesScales(op))
    return success();
  InFlightDiagnostic error =
      emitErrorAt(op)
      << "scales of f8e8m0 are read, moved and cast, not computed";
  error.attachNote() << "cast them first, for example `bf16(...)`";
  return error;
}

//===----------------------------------------------------------------------===//
// Shardings in types
//===----------------------------------------------------------------------===//

MeshContext::MeshContext(Operation *op) {
  auto program = dyn_cast<ProgramOp>(op);
  if (!program)
    program = op->getParentOfType<ProgramOp>();
  if (!program)
    return;
  allowPadding = program.getAllowPadding();
  if (MeshAttr attr = program.getMeshAttr())
    mesh = toMesh(attr);
}

std::optional<Layout> shd::layoutOf(const Mesh &mesh, Type type) {
  if (ShardingAttr sharding = getSharding(type))
    return toLayout(mesh, sharding);
  if (cast<RankedTensorType>(type).getRank() == 0)
    return Layout::replicated(0);
  return std::nullopt;
}

static LogicalResult verifyAxes(Operation *op, const MeshContext &context,
                                StringRef what, ShardingAttr sharding) {
  if (!context.mesh)
    return op->emitOpError()
           << what << " has a sharding, but the program has no mesh";
  auto verifyList = [&](ArrayRef<StringAttr> axes) -> LogicalResult {
    for (StringAttr axis : axes)
      if (!context.mesh->find(axis))
        return op->emitOpError()
               << "the sharding of " << what << " names axis '"
               << axis.getValue() << "', which the mesh lacks";
    return success();
  };
  for (DimShardingAttr dim : sharding.getDims())
    if (failed(verifyList(dim.getAxes())))
      return failure();
  return verifyList(sharding.getPartial());
}

namespace {
/// A value of an operation, for messages.
struct DescribedType {
  std::string description;
  RankedTensorType type;
};
} // namespace

static SmallVector<DescribedType> describeTypes(Operation *op) {
  SmallVector<DescribedType> types;
  for (auto [i, type] : llvm::enumerate(op->getOperandTypes()))
    types.push_back({describeOperand(i), cast<RankedTensorType>(type)});
  for (auto [i, type] : llvm::enumerate(op->getResultTypes()))
    types.push_back({describeResult(op, i), cast<RankedTensorType>(type)});
  return types;
}

LogicalResult shd::verifyShardings(Operation *op) {
  MeshContext context(op);
  SmallVector<DescribedType> types = describeTypes(op);
  const DescribedType *sharded = nullptr, *plain = nullptr;
  for (const DescribedType &type : types) {
    if (ShardingAttr sharding = getSharding(type.type)) {
      if (failed(verifyAxes(op, context, type.description, sharding)))
        return failure();
      sharded = sharded ? sharded : &type;
    } else if (type.type.getRank() > 0) {
      plain = plain ? plain : &type;
    }
  }
  if (sharded && plain)
    return op->emitOpError() << sharded->description << " has a sharding, but "
                             << plain->description << " has none";
  return success();
}

LogicalResult shd::verifyValueTypes(Operation *op) {
  if (failed(verifyShardings(op)))
    return failure();
  MeshContext context(op);
  if (!context.mesh || context.allowPadding)
    return success();
  for (const DescribedType &type : describeTypes(op)) {
    ShardingAttr sharding = getSharding(type.type);
    if (!sharding)
      continue;
    Layout layout = toLayout(*context.mesh, sharding);
    for (auto [dim, axes] : llvm::enumerate(layout.dims)) {
      int64_t extent = type.type.getDimSize(dim);
      int64_t group = context.mesh->groupSize(axes);
      if (extent % group != 0)
        return op->emitOpError()
               << "dimension " << dim << " of " << type.description
               << " has extent " << extent << ", which its axes of total size "
               << group << " do not divide";
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Shardings against the rule
//===----------------------------------------------------------------------===//

/// Axes of size 1 change nothing.
static Layout withoutUnitAxes(const Mesh &mesh, Layout layout) {
  auto isUnit = [&](AxisIndex axis) { return mesh.axes[axis].size == 1; };
  for (AxisList &list : layout.dims)
    llvm::erase_if(list, isUnit);
  for (unsigned axis = 0; axis < mesh.size(); ++axis)
    if (isUnit(axis))
      layout.partial &= ~axisBit(axis);
  return layout;
}

static std::string print(const Mesh &mesh, const Layout &layout,
                         ArrayRef<StringRef> names) {
  return toString(mesh, layout, llvm::map_to_vector(names, [](StringRef name) {
                    return name.str();
                  }));
}

static LogicalResult verifyLayout(Operation *op, const Mesh &mesh,
                                  StringRef what, ArrayRef<StringRef> names,
                                  const Layout &found, const Layout &expected) {
  if (withoutUnitAxes(mesh, found) == withoutUnitAxes(mesh, expected))
    return success();
  return op->emitOpError() << what << " has sharding "
                           << print(mesh, found, names)
                           << ", but the operation gives it "
                           << print(mesh, expected, names);
}

/// Statistics operands: none, or as many as the rule has, of the extents of
/// their factors.
static LogicalResult verifyStatistics(ShardingRuleOpInterface op,
                                      const ShardingRule &rule) {
  OperandRange stats = op.getStats();
  if (stats.empty())
    return success();
  if (stats.size() != rule.statistics.size())
    return op->emitOpError()
           << "has " << stats.size() << " statistics, but needs "
           << rule.statistics.size();
  for (auto [operand, statistic] : llvm::zip_equal(stats, rule.statistics)) {
    SmallVector<int64_t> shape =
        llvm::map_to_vector(statistic.factors, [&](unsigned factor) {
          return rule.factors[factor].extent;
        });
    auto type = cast<RankedTensorType>(operand.getType());
    if (type.getShape() != ArrayRef(shape))
      return op->emitOpError()
             << "statistic '" << statistic.name << "' must have extents ["
             << shape << "], but has [" << type.getShape() << "]";
  }
  return success();
}

/// Statistics are laid out as the strategy places their factors; a normalised
/// index that is split needs them.
static LogicalResult verifyStatisticLayouts(ShardingRuleOpInterface op,
                                            const Mesh &mesh,
                                            const ShardingRule &rule,
                                            const Strategy &strategy) {
  OperandRange stats = op.getStats();
  bool needed = mesh.groupSize(axisSet(statisticAxes(rule, strategy))) > 1;
  if (needed && stats.empty())
    return op->emitOpError() << "places a normalised index on axes, but has "
                             << "no statistics";
  for (auto [operand, statistic] : llvm::zip(stats, rule.statistics)) {
    Layout expected = Layout::replicated(statistic.factors.size());
    SmallVector<StringRef> names;
    for (auto [list, factor] :
         llvm::zip_equal(expected.dims, statistic.factors)) {
      list = strategy.factorAxes[factor];
      names.push_back(rule.factors[factor].name);
    }
    if (failed(verifyLayout(op, mesh, "statistic '" + statistic.name + "'",
                            names, *layoutOf(mesh, operand.getType()),
                            expected)))
      return failure();
  }
  return success();
}

/// All operands and results have layouts: they must follow one strategy.
static LogicalResult verifyStrategy(ShardingRuleOpInterface op,
                                    const MeshContext &context,
                                    const ShardingRule &rule) {
  const Mesh &mesh = *context.mesh;
  SmallVector<std::optional<Layout>> operands, results;
  for (unsigned i = 0; i < rule.operands.size(); ++i)
    operands.push_back(layoutOf(mesh, op->getOperand(i).getType()));
  for (Type type : op->getResultTypes())
    results.push_back(layoutOf(mesh, type));
  std::string why;
  std::optional<Strategy> strategy =
      inferStrategy(mesh, rule, operands, results, &why);
  if (!strategy)
    return op->emitOpError() << why;
  if (auto error = checkStrategy(mesh, rule, *strategy, context.allowPadding))
    return op->emitOpError() << *error;
  IndexingAttr indexing = op.getIndexing();
  for (auto [i, layout] : llvm::enumerate(results))
    if (failed(verifyLayout(op, mesh, describeResult(op, i),
                            indexing.getResultIndices(i), *layout,
                            resultLayout(rule, *strategy, i))))
      return failure();
  return verifyStatisticLayouts(op, mesh, rule, *strategy);
}

LogicalResult shd::detail::verifyShardedOp(Operation *op) {
  if (failed(verifyShardings(op)))
    return failure();
  auto sharded = cast<ShardingRuleOpInterface>(op);
  ShardingRule rule = sharded.getShardingRule();
  if (failed(verifyStatistics(sharded, rule)))
    return failure();
  auto isSharded = [](Type type) { return getSharding(type) != nullptr; };
  if (!llvm::any_of(op->getOperandTypes(), isSharded) &&
      !llvm::any_of(op->getResultTypes(), isSharded))
    return success();
  return verifyStrategy(sharded, MeshContext(op), rule);
}
