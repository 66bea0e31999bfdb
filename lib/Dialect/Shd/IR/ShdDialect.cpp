//===- ShdDialect.cpp - The shd dialect and its helpers -------------------===//
//
// Registration, conversions between attributes and the plain structs of
// lib/Sharding, and verification of the dialect's discardable attributes.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "shardc/Dialect/Shd/IR/CollectiveMatmul.h"
#include "shardc/Dialect/Shd/IR/Gradient.h"
#include "shardc/Dialect/Shd/IR/Order.h"
#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "shardc/Dialect/Shd/IR/Segments.h"
#include "shardc/Dialect/Shd/IR/Serving.h"
#include "shardc/Dialect/Shd/IR/WorkOrder.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

#include "shardc/Dialect/Shd/IR/ShdDialect.cpp.inc"

void ShdDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "shardc/Dialect/Shd/IR/ShdOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Element types and shapes
//===----------------------------------------------------------------------===//

StringRef shd::typeName(Type elementType) {
  return llvm::TypeSwitch<Type, StringRef>(elementType)
      .Case([](Float64Type) { return "f64"; })
      .Case([](Float32Type) { return "f32"; })
      .Case([](FloatTF32Type) { return "tf32"; })
      .Case([](Float16Type) { return "f16"; })
      .Case([](BFloat16Type) { return "bf16"; })
      .Case([](Float8E4M3FNType) { return "f8e4m3"; })
      .Case([](Float8E5M2Type) { return "f8e5m2"; })
      .Case([](Float8E8M0FNUType) { return "f8e8m0"; })
      .Case([](Float4E2M1FNType) { return "f4e2m1"; })
      .Case([](IntegerType type) -> StringRef {
        if (type.isUnsigned())
          return type.getWidth() == 8 ? "uint8" : "";
        if (type.isSigned())
          return "";
        switch (type.getWidth()) {
        case 1:
          return "bool";
        case 4:
          return "int4";
        case 8:
          return "int8";
        case 16:
          return "int16";
        case 32:
          return "int32";
        default:
          return "";
        }
      })
      .Default([](Type) { return ""; });
}

Type shd::typeFromName(MLIRContext *context, StringRef name) {
  Builder builder(context);
  const Type types[] = {builder.getF64Type(),
                        builder.getF32Type(),
                        builder.getTF32Type(),
                        builder.getF16Type(),
                        builder.getBF16Type(),
                        builder.getType<Float8E4M3FNType>(),
                        builder.getType<Float8E5M2Type>(),
                        builder.getType<Float8E8M0FNUType>(),
                        builder.getType<Float4E2M1FNType>(),
                        builder.getI32Type(),
                        builder.getI16Type(),
                        builder.getI8Type(),
                        builder.getIntegerType(4),
                        builder.getIntegerType(8, /*isSigned=*/false),
                        builder.getI1Type()};
  for (Type type : types)
    if (typeName(type) == name)
      return type;
  return nullptr;
}

unsigned shd::elementBits(Type elementType) {
  return elementTypeBits(typeName(elementType));
}

bool shd::isScale(Type elementType) {
  return isa<Float8E8M0FNUType>(elementType);
}

bool shd::hasGradient(Type elementType) {
  return isa<FloatType>(elementType) && !isScale(elementType);
}

TensorShape shd::tensorShape(Type tensorType) {
  auto type = cast<RankedTensorType>(tensorType);
  TensorShape shape;
  llvm::append_range(shape.extents, type.getShape());
  shape.elementBits = elementBits(type.getElementType());
  return shape;
}

//===----------------------------------------------------------------------===//
// Meshes and layouts
//===----------------------------------------------------------------------===//

Mesh shd::toMesh(MeshAttr attr) {
  Mesh mesh;
  if (attr)
    for (MeshAxisAttr axis : attr.getAxes())
      mesh.axes.push_back(
          {axis.getName().str(), axis.getSize(), axis.getStages()});
  return mesh;
}

static AxisIndex axisIndex(const Mesh &mesh, StringAttr name) {
  std::optional<AxisIndex> axis = mesh.find(name);
  assert(axis && "the mesh lacks an axis");
  return *axis;
}

Layout shd::toLayout(const Mesh &mesh, ShardingAttr sharding) {
  Layout layout = Layout::replicated(sharding.getDims().size());
  auto matters = [&](AxisIndex axis) { return mesh.axes[axis].size > 1; };
  for (auto [list, dim] : llvm::zip_equal(layout.dims, sharding.getDims()))
    for (StringAttr name : dim.getAxes())
      if (AxisIndex axis = axisIndex(mesh, name); matters(axis))
        list.push_back(axis);
  for (StringAttr name : sharding.getPartial())
    if (AxisIndex axis = axisIndex(mesh, name); matters(axis))
      layout.partial |= axisBit(axis);
  return layout;
}

ShardingAttr shd::toSharding(MLIRContext *context, const Mesh &mesh,
                             const Layout &layout) {
  auto name = [&](AxisIndex axis) {
    return StringAttr::get(context, mesh.axes[axis].name);
  };
  SmallVector<DimShardingAttr> dims;
  for (const AxisList &list : layout.dims)
    dims.push_back(DimShardingAttr::get(
        context, llvm::map_to_vector(list, name), /*isOpen=*/false));
  SmallVector<StringAttr> partial;
  for (unsigned axis = 0; axis < mesh.size(); ++axis)
    if (layout.partial & axisBit(axis))
      partial.push_back(name(axis));
  // A set: the same for meshes that differ in the order of their axes.
  llvm::sort(partial, [](StringAttr a, StringAttr b) {
    return a.getValue() < b.getValue();
  });
  return ShardingAttr::get(context, dims, partial);
}

bool shd::admits(const Mesh &mesh, ShardingAttr pin, const Layout &layout) {
  if (pin.getDims().size() != layout.rank())
    return false;
  Layout wanted = toLayout(mesh, pin);
  for (auto [dim, list, given] :
       llvm::zip_equal(pin.getDims(), wanted.dims, layout.dims))
    if (!dim.getIsOpen() && list != given)
      return false;
  // Partial axes of an open pin are open unless it names some.
  return (pin.isOpen() && wanted.partial == 0) ||
         wanted.partial == layout.partial;
}

ShardingAttr shd::getSharding(Type tensorType) {
  return dyn_cast_or_null<ShardingAttr>(
      cast<RankedTensorType>(tensorType).getEncoding());
}

RankedTensorType shd::withSharding(Type tensorType, ShardingAttr sharding) {
  return cast<RankedTensorType>(tensorType).cloneWithEncoding(sharding);
}

//===----------------------------------------------------------------------===//
// Pins
//===----------------------------------------------------------------------===//

static ShardingAttr withoutFirst(ShardingAttr pin, unsigned dims) {
  return pin ? ShardingAttr::get(pin.getContext(),
                                 pin.getDims().drop_front(dims),
                                 pin.getPartial())
             : pin;
}

static ShardingAttr withFirst(ShardingAttr pin, unsigned dims) {
  if (!pin)
    return pin;
  auto whole = DimShardingAttr::get(pin.getContext(), {}, /*isOpen=*/false);
  SmallVector<DimShardingAttr> all(dims, whole);
  llvm::append_range(all, pin.getDims());
  return ShardingAttr::get(pin.getContext(), all, pin.getPartial());
}

Attribute shd::getResultAttr(Value result, StringRef name) {
  auto typed = cast<OpResult>(result);
  Attribute value = typed.getOwner()->getAttr(name);
  if (!value || typed.getOwner()->getNumResults() == 1)
    return value;
  auto list = dyn_cast<ArrayAttr>(value);
  if (!list || typed.getResultNumber() >= list.size())
    return {}; // the verifier refuses it
  Attribute entry = list[typed.getResultNumber()];
  return isa<UnitAttr>(entry) ? Attribute() : entry;
}

/// `list` with another entry, `unit` for null; null if nothing else is left.
static ArrayAttr withEntry(MLIRContext *context, ArrayAttr list, size_t size,
                           size_t position, Attribute value) {
  Attribute nothing = UnitAttr::get(context);
  SmallVector<Attribute> entries(size, nothing);
  if (list)
    llvm::copy(list.getValue().take_front(size), entries.begin());
  entries[position] = value ? value : nothing;
  return llvm::all_of(entries, llvm::IsaPred<UnitAttr>)
             ? nullptr
             : ArrayAttr::get(context, entries);
}

static void setOrRemove(Operation *op, StringRef name, Attribute value) {
  if (value)
    op->setAttr(name, value);
  else
    op->removeAttr(name);
}

void shd::setResultAttr(Value result, StringRef name, Attribute value) {
  auto typed = cast<OpResult>(result);
  Operation *op = typed.getOwner();
  if (op->getNumResults() != 1)
    value = withEntry(op->getContext(), op->getAttrOfType<ArrayAttr>(name),
                      op->getNumResults(), typed.getResultNumber(), value);
  setOrRemove(op, name, value);
}

ShardingAttr shd::getResultPin(Value result) {
  if (auto part = result.getDefiningOp<PartOp>())
    return withoutFirst(getStoredPin(part.getSource()), part.getAt().size());
  return dyn_cast_or_null<ShardingAttr>(getResultAttr(result, kResultPin));
}

ShardingAttr shd::getMade(Value result) {
  return dyn_cast_or_null<ShardingAttr>(getResultAttr(result, kMade));
}

Phase shd::getPhase(Operation *op) {
  auto phase = op->getAttrOfType<PhaseAttr>(kPhase);
  return phase ? phase.getValue() : Phase::Forward;
}

void shd::setPhase(Operation *op, Phase phase) {
  op->setAttr(kPhase, PhaseAttr::get(op->getContext(), phase));
}

StringRef shd::getResultName(Value result) {
  auto name = dyn_cast_or_null<StringAttr>(getResultAttr(result, kName));
  return name ? name.getValue() : StringRef();
}

ShardingAttr shd::getOperandPin(Operation *op, unsigned operand) {
  auto pins = op->getAttrOfType<ArrayAttr>(kOperandPins);
  return pins ? dyn_cast<ShardingAttr>(pins[operand]) : nullptr;
}

void shd::setResultPin(Value result, ShardingAttr pin) {
  if (auto part = result.getDefiningOp<PartOp>())
    return setResultPin(part.getSource(), withFirst(pin, part.getAt().size()));
  setResultAttr(result, kResultPin, pin);
}

void shd::setMade(Value result, ShardingAttr layout) {
  setResultAttr(result, kMade, layout);
}

ShardingAttr shd::getStoredPin(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getArgNumber() == 0
               ? ShardingAttr()
               : getOperandPin(argument.getOwner()->getParentOp(),
                               argument.getArgNumber() - 1);
  if (auto repeat = value.getDefiningOp<RepeatOp>())
    return getOperandPin(repeat, cast<OpResult>(value).getResultNumber());
  return getResultPin(value);
}

void shd::setOperandPin(Operation *op, unsigned operand, ShardingAttr pin) {
  setOrRemove(op, kOperandPins,
              withEntry(op->getContext(),
                        op->getAttrOfType<ArrayAttr>(kOperandPins),
                        op->getNumOperands(), operand, pin));
}

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

void shd::removeSourceAttributes(Operation *op) {
  for (StringRef name : {kFile, kDef, kUses, kCall})
    op->removeAttr(name);
}

bool shd::isCollective(Operation *op) {
  return isa<AllGatherOp, AllSliceOp, AllToAllOp, ReduceScatterOp, AllReduceOp,
             CollectivePermuteOp, ToHostOp, FromHostOp, HaloExchangeOp,
             HaloReduceOp>(op);
}

CollectiveKind shd::collectiveKind(Operation *op) {
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

OpOperand *shd::inPlaceOperand(Operation *op) {
  auto cost = dyn_cast<CostOpInterface>(op);
  return cost ? cost.getInPlaceOperand() : nullptr;
}

bool shd::readsAtPositions(Operation *op) {
  auto positions = dyn_cast<PositionsOpInterface>(op);
  return positions && !inPlaceOperand(op) &&
         positions.getPositioned() == op->getOperand(0);
}

std::optional<int64_t> shd::fusionGroupOf(Operation *op) {
  auto group = op->getAttrOfType<GroupAttr>(kGroup);
  return group ? std::optional(group.getNumber()) : std::nullopt;
}

int64_t shd::executionCount(Operation *op) {
  auto repeat = op->getParentOfType<RepeatOp>();
  return repeat ? runsOfBody(repeat) : 1;
}

/// The name under which reports show a value; empty for temporaries without
/// one. A carried value keeps the name with which it enters its repeat.
static StringRef valueName(Value value) {
  auto carriedInit = [](RepeatOp repeat, unsigned carried) {
    return carried < repeat.getInits().size()
               ? valueName(repeat.getInits()[carried])
               : StringRef();
  };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto repeat = dyn_cast<RepeatOp>(argument.getOwner()->getParentOp());
    if (!repeat)
      return {};
    unsigned number = argument.getArgNumber();
    return number == 0 ? repeat.getIndex() : carriedInit(repeat, number - 1);
  }
  Operation *op = value.getDefiningOp();
  if (auto repeat = dyn_cast<RepeatOp>(op))
    return carriedInit(repeat, cast<OpResult>(value).getResultNumber());
  if (auto part = dyn_cast<PartOp>(op))
    return valueName(part.getSource());
  // Declared tensors are named by their symbols, in the spmd dialect too.
  if (auto symbol = op->getAttrOfType<StringAttr>("sym"))
    return symbol;
  if (StringRef name = getResultName(value); !name.empty())
    return name;
  if (auto name = op->getAttrOfType<StringAttr>(kOperand))
    return name;
  return {};
}

static void nameValues(ValueRange values, OpAsmSetValueNameFn setName) {
  for (Value value : values)
    if (StringRef name = valueName(value); !name.empty())
      setName(value, name);
}

void shd::detail::nameResults(Operation *op, OpAsmSetValueNameFn setName) {
  nameValues(op->getResults(), setName);
}

void RepeatOp::getAsmBlockArgumentNames(Region &region,
                                        OpAsmSetValueNameFn setName) {
  if (!region.empty())
    nameValues(region.front().getArguments(), setName);
}

//===----------------------------------------------------------------------===//
// Discardable attributes
//===----------------------------------------------------------------------===//

/// S1 and, in a program, S3, of a pin for a value of type `type`.
static LogicalResult verifyPin(Operation *op, Twine what, ShardingAttr pin,
                               Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return op->emitOpError() << what << " applies only to tensors";
  // S1
  if (pin.getDims().size() != size_t(tensor.getRank()))
    return op->emitOpError()
           << what << " has " << pin.getDims().size()
           << " dimensions, but the tensor has " << tensor.getRank();
  auto program = op->getParentOfType<ProgramOp>();
  if (!program)
    return success();
  // S3
  Mesh mesh = toMesh(program.getMeshAttr());
  auto verifyAxes = [&](ArrayRef<StringAttr> axes) -> LogicalResult {
    for (StringAttr axis : axes)
      if (!mesh.find(axis))
        return op->emitOpError() << what << " names axis '" << axis.getValue()
                                 << "', which the mesh lacks";
    return success();
  };
  for (DimShardingAttr dim : pin.getDims())
    if (failed(verifyAxes(dim.getAxes())))
      return failure();
  return verifyAxes(pin.getPartial());
}

/// A pin, or nothing, for each of some values: operands or results.
static LogicalResult verifyPins(Operation *op, StringRef name, Attribute value,
                                TypeRange types, StringRef values) {
  auto pins = dyn_cast<ArrayAttr>(value);
  if (!pins || !llvm::all_of(pins, llvm::IsaPred<ShardingAttr, UnitAttr>))
    return op->emitOpError()
           << "'" << name << "' must be a list of shardings and 'unit'";
  if (pins.size() != types.size())
    return op->emitOpError()
           << "'" << name << "' has " << pins.size()
           << " entries, but the operation has " << types.size() << values;
  for (auto [position, entry, type] : llvm::enumerate(pins, types))
    if (auto pin = dyn_cast<ShardingAttr>(entry))
      if (failed(verifyPin(op, "'" + Twine(name) + "' entry " + Twine(position),
                           pin, type)))
        return failure();
  return success();
}

/// `shd.result_pin` and `shd.made`.
static LogicalResult verifyResultPin(Operation *op, StringRef name,
                                     Attribute value) {
  if (op->getNumResults() > 1)
    return verifyPins(op, name, value, op->getResultTypes(), " results");
  auto pin = dyn_cast<ShardingAttr>(value);
  if (!pin)
    return op->emitOpError() << "'" << name << "' must be a sharding";
  if (op->getNumResults() == 0)
    return op->emitOpError()
           << "'" << name << "' needs a result, but the operation has none";
  return verifyPin(op, "'" + Twine(name) + "'", pin, onlyResult(op).getType());
}

/// `shd.name`: a string, or one for each of several results.
static LogicalResult verifyName(Operation *op, Attribute value) {
  if (op->getNumResults() <= 1)
    return isa<StringAttr>(value)
               ? success()
               : op->emitOpError() << "'" << kName << "' must be a string";
  auto names = dyn_cast<ArrayAttr>(value);
  if (names && names.size() == op->getNumResults() &&
      llvm::all_of(names, llvm::IsaPred<StringAttr, UnitAttr>))
    return success();
  return op->emitOpError() << "'" << kName
                           << "' must be a list of a string or 'unit' for "
                           << "each result";
}

static bool isRingNumber(Attribute value) {
  auto number = dyn_cast<IntegerAttr>(value);
  return number && number.getType().isSignlessInteger() &&
         !number.getValue().isNegative();
}

static bool isChunkNumber(Attribute value) {
  auto number = dyn_cast<IntegerAttr>(value);
  return number && number.getType().isSignlessInteger() &&
         number.getValue().isStrictlyPositive();
}

static bool isExtents(Attribute value) {
  auto extents = dyn_cast<DenseI64ArrayAttr>(value);
  return extents && llvm::all_of(extents.asArrayRef(),
                                 [](int64_t extent) { return extent > 0; });
}

static bool isGroupList(Attribute attr) {
  auto list = dyn_cast<ArrayAttr>(attr);
  return list && llvm::all_of(list, llvm::IsaPred<GroupAttr>);
}

static bool isNameList(Attribute value) {
  auto names = dyn_cast<ArrayAttr>(value);
  return names && llvm::all_of(names, llvm::IsaPred<StringAttr>);
}

static bool isPhaseName(Attribute value) {
  auto name = dyn_cast<StringAttr>(value);
  return name && (name == stringify(ServingPhase::Prefill) ||
                  name == stringify(ServingPhase::Decode));
}

static bool isShare(Attribute value) {
  auto share = dyn_cast<FloatAttr>(value);
  return share && share.getValueAsDouble() > 0 && share.getValueAsDouble() <= 1;
}

static bool isWrittenOrder(NamedAttribute entry) {
  auto order = dyn_cast<StringAttr>(entry.getValue());
  return order && (order == "zigzag" || order == "contiguous");
}

static bool areWrittenOrders(Attribute value) {
  auto orders = dyn_cast<DictionaryAttr>(value);
  return orders && llvm::all_of(orders, isWrittenOrder);
}

static bool isOrderClass(Attribute value) {
  auto entries = dyn_cast<DictionaryAttr>(value);
  return entries && entries.getAs<StringAttr>("index") &&
         entries.getAs<IntegerAttr>("devices") &&
         entries.getAs<BoolAttr>("isWanted") &&
         entries.getAs<StringAttr>("obstacle");
}

static bool areOrderClasses(Attribute value) {
  auto classes = dyn_cast<ArrayAttr>(value);
  return classes && llvm::all_of(classes, isOrderClass);
}

static bool isDealtIndex(NamedAttribute entry) {
  auto numbers = dyn_cast<DenseI64ArrayAttr>(entry.getValue());
  return numbers && numbers.size() == 2 && numbers[0] >= 0 && numbers[1] > 0;
}

static bool isDealtList(Attribute value) {
  auto entries = dyn_cast<DictionaryAttr>(value);
  return entries && llvm::all_of(entries, isDealtIndex);
}

static bool areSegments(Attribute value) {
  auto numbers = dyn_cast<DenseI64ArrayAttr>(value);
  return numbers && numbers.size() == 2 && numbers[1] >= 1 &&
         numbers[1] <= numbers[0];
}

/// Lists of layouts of the operation's results and operands.
static bool isStepLayout(Attribute value) {
  auto record = dyn_cast<DictionaryAttr>(value);
  if (!record || !record.getAs<StringAttr>("name") ||
      !record.getAs<LocationAttr>("loc"))
    return false;
  auto list = [&](StringRef name) { return record.getAs<ArrayAttr>(name); };
  for (StringRef name : {"made", "stored", "read"})
    if (!list(name) ||
        !llvm::all_of(list(name), llvm::IsaPred<ShardingAttr, UnitAttr>))
      return false;
  return list("operands") &&
         llvm::all_of(list("operands"), llvm::IsaPred<StringAttr>) &&
         list("made").size() == list("stored").size() &&
         list("operands").size() == list("read").size();
}

static bool areStepLayouts(Attribute value) {
  auto layouts = dyn_cast<ArrayAttr>(value);
  return layouts && llvm::all_of(layouts, isStepLayout);
}

template <typename T> static bool isKind(Attribute value) {
  return isa<T>(value);
}

namespace {
/// A discardable attribute whose form alone matters.
struct AttributeForm {
  StringRef name;
  bool (*matches)(Attribute);
  StringRef form;
};
} // namespace

static const AttributeForm attributeForms[] = {
    {kTemporary, isKind<UnitAttr>, "a unit attribute"},
    {kPhase, isKind<PhaseAttr>, "a phase"},
    {kStage, isKind<StageAttr>, "the stages and the pass of an operation"},
    {kInFlight, isChunkNumber, "an integer of at least 1"},
    {kSegments, areSegments,
     "two integers of at least 1, the second at most "
     "the first"},
    {kAhead, isKind<UnitAttr>, "a unit attribute"},
    {kHost, isKind<UnitAttr>, "a unit attribute"},
    {kSent, isKind<UnitAttr>, "a unit attribute"},
    {kMicrobatches, isChunkNumber, "an integer of at least 1"},
    {kMicrobatchesAt, isKind<LocationAttr>, "a location"},
    {kGroup, isKind<GroupAttr>, "a part of a fusion group"},
    {kGroupCost, isKind<GroupCostAttr>, "the price of a group"},
    {kPrologues, isGroupList, "a list of parts of fusion groups"},
    {kCopy, isKind<UnitAttr>, "a unit attribute"},
    {kStore, isKind<UnitAttr>, "a unit attribute"},
    {kRing, isRingNumber, "an integer of at least 0"},
    {kTravels,
     [](Attribute attribute) { return isa<UnitAttr, StringAttr>(attribute); },
     "a unit attribute or the name of an index"},
    {kChunks, isChunkNumber, "an integer of at least 1"},
    {kOperand, isKind<StringAttr>, "a string"},
    {kIndices, isNameList, "a list of strings"},
    {kEqualLayers, isKind<UnitAttr>, "a unit attribute"},
    {kStoredAsRead, isKind<UnitAttr>, "a unit attribute"},
    {kPlan, isKind<DictionaryAttr>, "a dictionary"},
    {kWorkOrder, isKind<DenseI64ArrayAttr>, "a list of integers"},
    {kCanonicalOrder, isKind<DenseI64ArrayAttr>, "a list of integers"},
    {kLayouts, areStepLayouts, "a list of layouts of operations"},
    {kOrders, areWrittenOrders, "'zigzag' or 'contiguous' for each index"},
    {kOrderClasses, areOrderClasses, "a list of classes of indices"},
    {kOrderClass, isRingNumber, "an integer of at least 0"},
    {kDealt, isDealtList, "a class and a number of parts for each index"},
    {kFile, isKind<IntegerAttr>, "an integer"},
    {kDef, isKind<IntegerAttr>, "an integer"},
    {kUses, isKind<DenseI64ArrayAttr>, "a list of integers"},
    {kInverseOf, isExtents, "a list of extents"},
    {kExtent, isKind<UnitAttr>, "a unit attribute"},
    {kExact, isKind<FloatAttr>, "a number"},
    {kCall, isKind<StringAttr>, "a string"},
    {kServing, isKind<DictionaryAttr>, "a dictionary"},
    {kServingPhase, isPhaseName, "prefill or decode"},
    {kFilledKeys, isShare, "a number above 0 and at most 1"},
};

static bool isRealConstant(Operation *op) {
  auto constant = dyn_cast<ConstantOp>(op);
  return constant && isa<FloatType>(constant.getType().getElementType());
}

static bool isIntegerConstant(Operation *op) {
  auto constant = dyn_cast<ConstantOp>(op);
  return constant && isa<IntegerType>(constant.getType().getElementType());
}

/// Collectives of the spmd dialect keep the mark of a ring.
static bool mayBelongToRing(Operation *op) {
  return mayBecomeRing(op) || isa<AttentionOpInterface>(op) ||
         llvm::is_contained({"all_gather", "reduce_scatter"},
                            op->getName().stripDialect());
}

/// Indices in zigzag order are of a class of the program and have two chunks
/// for each part.
static LogicalResult verifyDealt(Operation *op, DictionaryAttr dealt) {
  auto program = op->getParentOfType<ProgramOp>();
  auto computes = dyn_cast<ShardingRuleOpInterface>(op);
  if (!program || !computes)
    return success();
  // MLIR verifies attributes first, and only what verifies has a rule.
  if (failed(op->getName().verifyInvariants(op)))
    return failure();
  auto classes = program->getAttrOfType<ArrayAttr>(kOrderClasses);
  ShardingRule rule = computes.getShardingRule();
  for (NamedAttribute entry : dealt) {
    auto numbers = cast<DenseI64ArrayAttr>(entry.getValue());
    if (!classes || numbers[0] >= int64_t(classes.size()))
      return op->emitOpError() << "'" << kDealt << "' names class "
                               << numbers[0] << ", which the program lacks";
    std::optional<unsigned> factor = rule.findFactor(entry.getName());
    if (factor &&
        !PositionOrder::isDealt(rule.factors[*factor].extent, numbers[1]))
      return op->emitOpError()
             << "index '" << entry.getName().getValue() << "' has extent "
             << rule.factors[*factor].extent << ", expected a multiple of "
             << 2 * numbers[1] << " for zigzag order";
  }
  return success();
}

/// A repeat around it runs once for each segment.
static LogicalResult verifySegments(RepeatOp repeat) {
  auto around = dyn_cast<RepeatOp>(repeat->getParentOp());
  std::optional<Segments> segments = segmentsOf(repeat);
  if (!segments || int64_t(around.getCount()) != segments->number())
    return repeat.emitOpError()
           << "runs a segment, so the repeat around it must run once for each";
  if (segments->left < 0 || segments->left > 1 ||
      segments->iterations(segments->number() - 1) < 1)
    return repeat.emitOpError()
           << "runs " << repeat.getCount() << " iterations of a segment of "
           << segments->length;
  return success();
}

LogicalResult ShdDialect::verifyOperationAttribute(Operation *op,
                                                   NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  if (name == kResultPin || name == kMade)
    return verifyResultPin(op, name, value);
  if (name == kOperandPins)
    return verifyPins(op, name, value, op->getOperandTypes(), " operands");
  if (name == kName)
    return verifyName(op, value);
  if (llvm::is_contained({kPlan, kWorkOrder, kCanonicalOrder, kLayouts,
                          kEqualLayers, kMicrobatchesAt, kStoredAsRead, kOrders,
                          kOrderClasses},
                         name) &&
      !isa<ProgramOp>(op))
    return op->emitOpError() << "'" << name << "' belongs to a program";
  if ((name == kInverseOf || name == kExact) && !isRealConstant(op))
    return op->emitOpError()
           << "'" << name << "' belongs to a constant of a real number";
  if (name == kExtent && !isIntegerConstant(op))
    return op->emitOpError()
           << "'" << name << "' belongs to a constant of an integer";
  if (name == kSegments && !isa<RepeatOp>(op))
    return op->emitOpError() << "'" << kSegments << "' belongs to a repeat";
  if (name == kAhead && op->getName().stripDialect() != "update")
    return op->emitOpError() << "'" << kAhead << "' belongs to an update";
  if (name == kHost && !llvm::is_contained({"declare", "parameter"},
                                           op->getName().stripDialect()))
    return op->emitOpError() << "'" << kHost << "' belongs to a declaration";
  if (name == kRing && !mayBelongToRing(op))
    return op->emitOpError() << "'" << kRing << "' belongs to an einsum, "
                             << "attention, an all_gather or a reduce_scatter";
  for (const AttributeForm &form : attributeForms) {
    if (form.name != name)
      continue;
    if (!form.matches(value))
      return op->emitOpError() << "'" << name << "' must be " << form.form;
    if (name == kSegments)
      return verifySegments(cast<RepeatOp>(op));
    return name == kDealt ? verifyDealt(op, cast<DictionaryAttr>(value))
                          : success();
  }
  return op->emitOpError() << "has an unknown attribute '" << name << "'";
}
