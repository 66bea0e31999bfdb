//===- SpmdDialect.cpp - The spmd dialect and its helpers -----------------===//

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Dialect/Spmd/IR/Spmd.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::spmd;

#include "shardc/Dialect/Spmd/IR/SpmdDialect.cpp.inc"

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

/// `X, Y`: bare words.
static ParseResult parseAxisNames(AsmParser &parser,
                                  SmallVectorImpl<StringAttr> &axes) {
  return parser.parseCommaSeparatedList([&]() -> ParseResult {
    std::string name;
    if (parser.parseKeywordOrString(&name))
      return failure();
    axes.push_back(parser.getBuilder().getStringAttr(name));
    return success();
  });
}

static void printAxisNames(AsmPrinter &printer, ArrayRef<StringAttr> axes) {
  llvm::interleaveComma(axes, printer, [&](StringAttr axis) {
    printer.printKeywordOrString(axis);
  });
}

/// ` step 3`, ` step 0 each` or ` halo 127`.
static ParseResult parseRingStep(AsmParser &parser, int64_t &step,
                                 bool &eachIteration, bool &back,
                                 int64_t &halo) {
  step = -1;
  eachIteration = back = false;
  halo = 0;
  if (succeeded(parser.parseOptionalKeyword("halo"))) {
    llvm::SMLoc at = parser.getCurrentLocation();
    if (failed(parser.parseInteger(halo)))
      return failure();
    if (halo < 1)
      return parser.emitError(at)
             << "a halo must have at least 1 element, but has " << halo;
    return success();
  }
  if (failed(parser.parseOptionalKeyword("step")))
    return success();
  llvm::SMLoc at = parser.getCurrentLocation();
  if (failed(parser.parseInteger(step)))
    return failure();
  if (step < 0)
    return parser.emitError(at) << "a step must be at least 0, but is " << step;
  eachIteration = succeeded(parser.parseOptionalKeyword("each"));
  back = succeeded(parser.parseOptionalKeyword("back"));
  return success();
}

static void printRingStep(AsmPrinter &printer, int64_t step, bool eachIteration,
                          bool back, int64_t halo) {
  if (halo > 0)
    printer << " halo " << halo;
  if (step < 0)
    return;
  printer << " step " << step;
  if (eachIteration)
    printer << " each";
  if (back)
    printer << " back";
}

#define GET_ATTRDEF_CLASSES
#include "shardc/Dialect/Spmd/IR/SpmdAttrs.cpp.inc"

LogicalResult ShardAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                StringRef name, int64_t extent,
                                ArrayRef<StringAttr>, int64_t, bool, int64_t,
                                bool) {
  // H1
  if (extent >= 1)
    return success();
  return emitError() << "an index must have an extent of at least 1, but '"
                     << name << "' has " << extent;
}

LogicalResult
StageProgramAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                         ArrayRef<int64_t> numbers, int64_t of, StringRef index,
                         int64_t layers, StringRef) {
  // T1
  auto isStage = [&](int64_t number) { return number >= 0 && number < of; };
  if (numbers.empty() || !llvm::all_of(numbers, isStage))
    return emitError() << "a program must be of virtual stages from 0 to "
                       << of - 1;
  if (layers < 1)
    return emitError() << "a stage must hold at least one layer of '" << index
                       << "', but holds " << layers;
  return success();
}

void SpmdDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "shardc/Dialect/Spmd/IR/SpmdAttrs.cpp.inc"
      >();
}

void SpmdDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "shardc/Dialect/Spmd/IR/SpmdOps.cpp.inc"
      >();
}

/// An index of the operation, of which a device has as much as its tensors say.
static LogicalResult verifyShard(Operation *op, const Mesh &mesh,
                                 const ShardingRule &rule, ShardAttr shard) {
  std::optional<unsigned> factor = rule.findFactor(shard.getName());
  if (!factor)
    return op->emitOpError() << "'" << kShards << "' names '" << shard.getName()
                             << "', which is not an index of the operation";
  AxisList axes;
  for (StringAttr name : shard.getAxes()) {
    std::optional<AxisIndex> axis = mesh.find(name);
    if (!axis)
      return op->emitOpError() << "'" << kShards << "' names axis '"
                               << name.getValue() << "', which the mesh lacks";
    axes.push_back(*axis);
  }
  if (shard.getEachIteration() && !isa<shd::RepeatOp>(op->getParentOp()))
    return op->emitOpError() << "index '" << shard.getName()
                             << "' takes a step in each iteration, but no "
                             << "repeat is around the operation";
  int64_t found = rule.factors[*factor].extent;
  int64_t expected =
      localExtent(mesh, shard.getExtent(), axes) + shard.getHalo();
  if (found != expected)
    return op->emitOpError() << "index '" << shard.getName() << "' must have "
                             << expected << " of " << shard.getExtent()
                             << " elements on a device, but has " << found;
  return success();
}

/// No index and no axis stands in the list twice, but axes along which a part
/// has travelled or has a halo.
static LogicalResult verifyOnce(Operation *op, ArrayAttr list) {
  llvm::SmallSet<StringRef, 8> indices, axes;
  for (ShardAttr shard : list.getAsRange<ShardAttr>()) {
    if (!indices.insert(shard.getName()).second)
      return op->emitOpError()
             << "'" << kShards << "' names '" << shard.getName() << "' twice";
    if (shard.hasTravelled() || shard.getHalo() > 0)
      continue;
    for (StringAttr axis : shard.getAxes())
      if (!axes.insert(axis).second)
        return op->emitOpError() << "'" << kShards << "' names axis '"
                                 << axis.getValue() << "' twice";
  }
  return success();
}

static LogicalResult verifyShards(Operation *op, Attribute value) {
  auto computes = dyn_cast<shd::ShardingRuleOpInterface>(op);
  if (!computes)
    return op->emitOpError()
           << "'" << kShards << "' belongs to an operation that computes";
  auto list = dyn_cast<ArrayAttr>(value);
  if (!list || !llvm::all_of(list, llvm::IsaPred<ShardAttr>))
    return op->emitOpError() << "'" << kShards << "' must be a list of shards";
  // MLIR verifies attributes first, and only what verifies has a rule.
  if (failed(op->getName().verifyInvariants(op)))
    return failure();
  Mesh mesh = meshOf(op);
  ShardingRule rule = computes.getShardingRule();
  for (ShardAttr shard : list.getAsRange<ShardAttr>())
    if (failed(verifyShard(op, mesh, rule, shard)))
      return failure();
  return verifyOnce(op, list);
}

/// The type of the whole tensor of which each result is a part.
static LogicalResult verifyGlobal(Operation *op, Attribute value) {
  auto list = dyn_cast<ArrayAttr>(value);
  bool isList = op->getNumResults() > 1 && list;
  ArrayRef<Attribute> entries = isList ? list.getValue() : ArrayRef(value);
  auto isValid = [&](Attribute entry) {
    auto type = dyn_cast<TypeAttr>(entry);
    return (type && isa<RankedTensorType>(type.getValue())) ||
           (isList && isa<UnitAttr>(entry));
  };
  if (entries.size() != op->getNumResults() || !llvm::all_of(entries, isValid))
    return op->emitOpError()
           << "'" << kGlobal << "' must be the tensor type of each result";
  for (auto [i, entry, result] : llvm::enumerate(entries, op->getResults())) {
    std::string what =
        isList ? ("result " + Twine(i)).str() : std::string("the result");
    if (auto type = dyn_cast<TypeAttr>(entry))
      if (failed(spmd::detail::verifyPart(op, type.getValue(), result.getType(),
                                          what)))
        return failure();
  }
  return success();
}

LogicalResult SpmdDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (!op->getParentOfType<ProgramOp>())
    return op->emitOpError()
           << "'" << name << "' belongs to an operation of an spmd.program";
  if (name == kShards)
    return verifyShards(op, attribute.getValue());
  if (name == kRingOf) {
    if (isa<RingShiftOp>(op) && isa<StringAttr>(attribute.getValue()))
      return success();
    return op->emitOpError() << "'" << name << "' must be a string on a ring "
                             << "shift";
  }
  if (name != kGlobal)
    return op->emitOpError() << "has an unknown attribute '" << name << "'";
  return verifyGlobal(op, attribute.getValue());
}

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

Mesh spmd::meshOf(Operation *op) {
  auto program = dyn_cast<ProgramOp>(op);
  if (!program)
    program = op->getParentOfType<ProgramOp>();
  return program ? shd::toMesh(program.getMeshAttr()) : Mesh();
}

RankedTensorType spmd::localType(const Mesh &mesh, Type global) {
  auto type = cast<RankedTensorType>(global);
  Layout layout = shd::explicitLayout(mesh, type);
  SmallVector<int64_t> extents;
  for (auto [extent, axes] : llvm::zip_equal(type.getShape(), layout.dims))
    extents.push_back(localExtent(mesh, extent, axes));
  return RankedTensorType::get(extents, type.getElementType());
}

RankedTensorType spmd::withHalo(RankedTensorType type, int64_t dim,
                                int64_t rows) {
  SmallVector<int64_t> extents(type.getShape());
  extents[dim] += rows;
  return RankedTensorType::get(extents, type.getElementType());
}

bool spmd::stepsInEachIteration(Operation *op) {
  auto shards = op->getAttrOfType<ArrayAttr>(kShards);
  return shards &&
         llvm::any_of(shards.getAsRange<ShardAttr>(),
                      [](ShardAttr shard) { return shard.getEachIteration(); });
}

bool spmd::isCollective(Operation *op) {
  return isa<AllGatherOp, AllSliceOp, AllToAllOp, ReduceScatterOp, AllReduceOp,
             CollectivePermuteOp, ToHostOp, FromHostOp, HaloExchangeOp,
             HaloReduceOp>(op);
}

CollectiveKind spmd::collectiveKind(Operation *op) {
  return llvm::TypeSwitch<Operation *, CollectiveKind>(op)
      .Case<AllGatherOp>([](auto) { return CollectiveKind::AllGather; })
      .Case<AllSliceOp>([](auto) { return CollectiveKind::AllSlice; })
      .Case<AllToAllOp>([](auto) { return CollectiveKind::AllToAll; })
      .Case<ReduceScatterOp>([](auto) { return CollectiveKind::ReduceScatter; })
      .Case<AllReduceOp>([](auto) { return CollectiveKind::AllReduce; })
      .Case<CollectivePermuteOp>(
          [](auto) { return CollectiveKind::CollectivePermute; })
      .Case<ToHostOp>([](auto) { return CollectiveKind::ToHost; })
      .Case<FromHostOp>([](auto) { return CollectiveKind::FromHost; })
      .Case<HaloExchangeOp>([](auto) { return CollectiveKind::HaloExchange; })
      .Case<HaloReduceOp>([](auto) { return CollectiveKind::HaloReduce; })
      .Default([](Operation *) -> CollectiveKind {
        llvm_unreachable("not a collective");
      });
}
