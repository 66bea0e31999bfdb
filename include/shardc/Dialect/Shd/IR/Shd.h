//===- Shd.h - The shd dialect --------------------------------*- C++ -*-===//

#ifndef SHARDC_DIALECT_SHD_IR_SHD_H
#define SHARDC_DIALECT_SHD_IR_SHD_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "shardc/Cost/Collective.h"
#include "shardc/Cost/Operation.h"
#include "shardc/Sharding/ExtentRules.h"
#include "shardc/Sharding/ShardingRule.h"
#include "shardc/Tensor/Tensor.h"

#include <functional>

namespace shardc {
mlir::Value onlyResult(mlir::Operation *op);
} // namespace shardc

namespace shardc::shd {
class GradientBuilder;
class HardwareAttr;

/// A number that an attribute holds; uniqued by its bits.
struct Real {
  double value = 0;

  Real(double value) : value(value) {}
  operator double() const { return value; }
  uint64_t bits() const { return llvm::bit_cast<uint64_t>(value); }
  bool operator==(const Real &other) const { return bits() == other.bits(); }
};

inline llvm::hash_code hash_value(const Real &real) {
  return llvm::hash_value(real.bits());
}

/// Stages of a pipeline: the first one, which has what stands before the
/// layers; all, which have layers; the last one, which has what stands behind.
enum StageRole : uint8_t {
  NoRole = 0,
  FirstRole = 1,
  LayerRole = 2,
  LastRole = 4
};
using StageRoles = uint8_t;
constexpr StageRoles kAllRoles = FirstRole | LayerRole | LastRole;
} // namespace shardc::shd

#include "shardc/Dialect/Shd/IR/ShdDialect.h.inc"
#include "shardc/Dialect/Shd/IR/ShdEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "shardc/Dialect/Shd/IR/ShdAttrs.h.inc"

/// The result of an operation that has one, such as a collective.
inline mlir::Value shardc::onlyResult(mlir::Operation *op) {
  assert(op->getNumResults() == 1 && "the operation has one result");
  return op->getResult(0);
}

inline std::optional<shardc::Machine>
shardc::shd::ShdDialect::loadMachine(HardwareAttr hardware) const {
  return machineLoader ? machineLoader(hardware) : std::nullopt;
}

namespace shardc::shd {

/// True for tensors that the step writes before it reads them.
inline bool isBuffer(TensorKind kind) {
  return kind == TensorKind::Gradient || kind == TensorKind::Saved;
}

/// The tensors that an operation computes, one for each of its results.
using TensorList = llvm::SmallVector<Tensor, 1>;

/// How an operation takes part in fusion
/// (docs/CostModel.md#2-one-operation-on-one-device).
enum class FusionKind : uint8_t {
  /// Always starts a group: einsum, attention, gather, scatter.
  Leader,
  /// Joins a group; alone it may be a prologue of einsums and attention.
  Elementwise,
  /// Row operations, which read whole rows: reductions, normalisations, losses.
  /// They join a group whose kernel holds rows.
  Reduction,
  /// Costs nothing and belongs to no group: views, iota, reshard.
  Free,
};

/// Chunks of a row operation and the product that makes its operand
/// (CostOpInterface::getRowChunks): each in kernels of its own, or both in one.
inline constexpr int64_t kNoChunks = 0, kAllChunks = -1;

/// The chunks in which a row operation among those behind a leader runs with
/// it, each in kernels of their own; kNoChunks if all run as one kernel.
int64_t separateChunks(llvm::ArrayRef<mlir::Operation *> rest);
/// The part of a value's bytes that are there at once: of one made in chunks
/// (kChunks), one of them.
int64_t bytesOfChunk(mlir::Value value, int64_t bytes);
/// Of how many microbatches a device keeps a buffer at once; 1 for others.
int64_t inFlight(mlir::Value value);

/// ` chunks 8`, ` chunks all`, or nothing: `custom<RowChunks>` of a format.
mlir::ParseResult parseRowChunks(mlir::OpAsmParser &parser,
                                 mlir::IntegerAttr &chunks);
void printRowChunks(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                    mlir::IntegerAttr chunks);

/// ` max`, ` min`, or nothing for a sum: `custom<Combination>` of a format.
mlir::ParseResult parseCombination(mlir::OpAsmParser &parser,
                                   CombinationAttr &combination);
void printCombination(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                      CombinationAttr combination);

/// On the program of a training step or a pipeline: how its operations run
/// (StepLayouts.h), as the program's text says.
inline constexpr llvm::StringLiteral kLayouts = "shd.layouts";

/// On a program: computed values are stored as they are made or as one of their
/// readers reads them, in no other layout.
inline constexpr llvm::StringLiteral kStoredAsRead = "shd.stored_as_read";

/// Names of the dialect's discardable attributes. `kResultPin`, `kMade` and
/// `kName` say something of each result: of one result the attribute itself, of
/// several a list with `unit` for nothing (getResultAttr).
inline constexpr llvm::StringLiteral kResultPin = "shd.result_pin";
inline constexpr llvm::StringLiteral kOperandPins = "shd.operand_pins";
/// The layout that the plan lets an operation make, before it is stored.
inline constexpr llvm::StringLiteral kMade = "shd.made";
inline constexpr llvm::StringLiteral kName = "shd.name";
inline constexpr llvm::StringLiteral kTemporary = "shd.temporary";
/// The schedule of a pipeline that the compiler chooses.
inline constexpr llvm::StringLiteral kAutoOrder = "auto";
/// On a buffer: of how many microbatches a device keeps it at once.
inline constexpr llvm::StringLiteral kInFlight = "shd.in_flight";
/// On a constant: the extents of whose product it is the inverse.
inline constexpr llvm::StringLiteral kInverseOf = "shd.inverse_of";
/// On a constant of an integer: it is an extent.
inline constexpr llvm::StringLiteral kExtent = "shd.extent";
/// The part of a fusion group that an operation is in (GroupAttr); once costs
/// are annotated, operations of the same part are costed together.
inline constexpr llvm::StringLiteral kGroup = "shd.group";
/// On a leader, once costs are annotated: it and the row operation behind it
/// run in so many chunks, and its result takes that part of its memory.
inline constexpr llvm::StringLiteral kChunks = "shd.chunks";
/// Marks a copy that the optimizer makes once for several users.
inline constexpr llvm::StringLiteral kCopy = "shd.copy";
/// Marks the last collective between an operation's result and the layout in
/// which its value is stored.
inline constexpr llvm::StringLiteral kStore = "shd.store";
/// On a declaration: the tensor is in the host's memory.
inline constexpr llvm::StringLiteral kHost = "shd.host";
/// The phase of a training step that an operation belongs to; without, the
/// forward pass.
inline constexpr llvm::StringLiteral kPhase = "shd.phase";
/// In the program of a stage that has everything: the stages that run an
/// operation, and when (StageAttr).
inline constexpr llvm::StringLiteral kStage = "shd.stage";
/// On collectives: the name of the tensor that moves, and of its indices.
inline constexpr llvm::StringLiteral kOperand = "shd.operand";
inline constexpr llvm::StringLiteral kIndices = "shd.indices";
/// On a matmul and the collective beside it that run as a collective matmul: a
/// number that the two share.
inline constexpr llvm::StringLiteral kRing = "shd.ring";
/// Marks an all_gather or a reduce_scatter that stands for parts that travel
/// around a ring while attention runs (RingAttention.h); where their halves go
/// both ways, with the name of the index of which each has a half.
inline constexpr llvm::StringLiteral kTravels = "shd.travels";
/// On the program: status, objective, value_ps and bound_ps of the plan.
inline constexpr llvm::StringLiteral kPlan = "shd.plan";
/// On the program: the order in which the plan runs its operations
/// (WorkOrder.h), where that is not the order of the text.
inline constexpr llvm::StringLiteral kWorkOrder = "shd.work_order";
/// The group's price, on the first operation of each separately costed part.
inline constexpr llvm::StringLiteral kGroupCost = "shd.group_cost";
/// The parts (values of shd.group) of elementwise operations that an operation
/// computes itself while it reads their inputs.
inline constexpr llvm::StringLiteral kPrologues = "shd.prologues";
/// Where in the program's text an operation comes from, for printing plans:
/// the file (index into Program::files), the byte offset of the name that it
/// defines, the byte offset of each operand's reference (-1: none), and the
/// path of the layer call (`y.h`; empty at file level).
inline constexpr llvm::StringLiteral kFile = "shd.file";
inline constexpr llvm::StringLiteral kDef = "shd.def";
inline constexpr llvm::StringLiteral kUses = "shd.uses";
inline constexpr llvm::StringLiteral kCall = "shd.call";

/// The language's name of an element type (`bf16`, `int8`, `f8e4m3`), and back;
/// empty / null for types that the language lacks.
llvm::StringRef typeName(mlir::Type elementType);
mlir::Type typeFromName(mlir::MLIRContext *context, llvm::StringRef name);
/// Bits of one element (bool counts 8, int4 and f4 count 4).
unsigned elementBits(mlir::Type elementType);
/// True for f8e8m0: powers of two by which blocks of other elements are scaled.
bool isScale(mlir::Type elementType);
/// True for real numbers that are no scales.
bool hasGradient(mlir::Type elementType);
/// Extents and element width; encodings are ignored.
TensorShape tensorShape(mlir::Type tensorType);

/// Conversions between attributes and the plain structs of lib/Sharding. Axes
/// that the mesh lacks must have been refused by the verifier.
Mesh toMesh(MeshAttr mesh);
/// Closed layout of `sharding` (open dimensions count as not sharded). Axes of
/// size 1 change nothing and are left out.
Layout toLayout(const Mesh &mesh, ShardingAttr sharding);
ShardingAttr toSharding(mlir::MLIRContext *context, const Mesh &mesh,
                        const Layout &layout);
/// True if `layout` is one that the pin allows.
bool admits(const Mesh &mesh, ShardingAttr pin, const Layout &layout);

/// The sharding in a tensor type's encoding, or null.
ShardingAttr getSharding(mlir::Type tensorType);
mlir::RankedTensorType withSharding(mlir::Type tensorType,
                                    ShardingAttr sharding);

/// The entry of an attribute for one result of an operation, or null.
mlir::Attribute getResultAttr(mlir::Value result, llvm::StringRef name);
void setResultAttr(mlir::Value result, llvm::StringRef name,
                   mlir::Attribute value);

/// Pins of a result and of an operand (null: nothing said). The pin of a part
/// is that of the stacked tensor, and the other way around.
ShardingAttr getResultPin(mlir::Value result);
ShardingAttr getOperandPin(mlir::Operation *op, unsigned operand);
void setResultPin(mlir::Value result, ShardingAttr pin);
void setOperandPin(mlir::Operation *op, unsigned operand, ShardingAttr pin);

/// The pin of a stored value, whatever makes it; that of a carried value is on
/// the repeat. Null: nothing.
ShardingAttr getStoredPin(mlir::Value value);

/// The layout that the plan lets an operation make, before it is stored.
ShardingAttr getMade(mlir::Value result);
void setMade(mlir::Value result, ShardingAttr layout);

Phase getPhase(mlir::Operation *op);
void setPhase(mlir::Operation *op, Phase phase);

/// The program's name of what an operation that computes makes; empty without.
llvm::StringRef getResultName(mlir::Value result);

/// Drops what only `--emit-plan` needs: where in the program's text an
/// operation and its operands stand.
void removeSourceAttributes(mlir::Operation *op);

/// True for the explicit collectives (and not for shd.reshard).
bool isCollective(mlir::Operation *op);
CollectiveKind collectiveKind(mlir::Operation *op);

/// The number of the operation's fusion group, whichever part it is in.
std::optional<int64_t> fusionGroupOf(mlir::Operation *op);

/// Product of the counts of the repeats around `op`.
int64_t executionCount(mlir::Operation *op);

/// The last `rank` dimensions: of a part, where the stacked tensor lies so.
Layout partLayout(const Layout &layout, unsigned rank);
/// The type without its first `dims` dimensions; partial sums stay.
mlir::RankedTensorType partType(mlir::Type stacked, unsigned dims);

namespace detail {
/// Verifies indexing (I1 to I3), and I4.
mlir::LogicalResult verifyIndexing(mlir::Operation *op);
/// Verifies that the iterations with the numbers `at` have a part of `stacked`
/// of type `part` (Q1 to Q3).
mlir::LogicalResult verifyPartOf(mlir::Operation *op, mlir::Value stacked,
                                 mlir::ValueRange at, mlir::Type part);
/// Verifies that a tensor can be stacked along its first dimensions.
mlir::LogicalResult verifyStacked(mlir::Operation *op, int64_t dims,
                                  mlir::RankedTensorType type, bool isInput);
/// Verifies that what belongs to a weight names it, and nothing else does.
mlir::LogicalResult verifyOfWeight(mlir::Operation *op, TensorKind kind,
                                   llvm::StringRef name, bool isOf);
/// Verifies that each iteration around an update writes a part of its own, and
/// nothing else updates the state.
mlir::LogicalResult verifyUpdatedOnce(mlir::Operation *op, bool isBuffer,
                                      mlir::OpOperand &state,
                                      mlir::ValueRange at,
                                      llvm::StringRef name);
/// Verifies, if types carry shardings, that they name axes of the mesh and
/// follow the operation's sharding rule.
mlir::LogicalResult verifyShardedOp(mlir::Operation *op);

/// FLOPs on the matrix units if every device's work depends on the sizes of its
/// parts alone.
double flopsOfSizes(mlir::Operation *op, llvm::ArrayRef<FactorRange> ranges);
/// Verifies that a collective over the named axes turns `from` into `to`.
mlir::LogicalResult verifyMovement(mlir::Operation *op, const Mesh &mesh,
                                   CollectiveKind kind, const Layout &from,
                                   const Layout &to, mlir::ArrayAttr axisNames);
/// Verifies a halo_exchange or halo_reduce of `rows` rows of a tensor of this
/// shape.
mlir::LogicalResult
verifyHalo(mlir::Operation *op, const Mesh &mesh, CollectiveKind kind,
           llvm::ArrayRef<int64_t> shape, const Layout &from, const Layout &to,
           int64_t dim, int64_t rows, mlir::ArrayAttr axisNames);
/// Names results as the program does, for printing.
void nameResults(mlir::Operation *op, mlir::OpAsmSetValueNameFn setName);
} // namespace detail

/// An operation whose dimensions have named indices.
template <typename ConcreteOp>
class IndexedTrait : public mlir::OpTrait::TraitBase<ConcreteOp, IndexedTrait> {
public:
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) {
    return detail::verifyIndexing(op);
  }
};

} // namespace shardc::shd

#include "shardc/Dialect/Shd/IR/ShdInterfaces.h.inc"

namespace shardc::shd {

/// True if an operation has a result of scales, though it neither casts nor
/// moves elements (I4).
bool computesScales(mlir::Operation *op);
/// CostOpInterface::getInPlaceOperand of any operation.
mlir::OpOperand *inPlaceOperand(mlir::Operation *op);
/// True for an operation that reads elements of its first operand at positions
/// (and does not write there).
bool readsAtPositions(mlir::Operation *op);

/// A rule with one parallel factor for each index of the operation's indexing,
/// in order of first appearance, operands first; operations start from it.
ShardingRule parallelRule(ShardingRuleOpInterface op);

} // namespace shardc::shd

#define GET_OP_CLASSES
#include "shardc/Dialect/Shd/IR/ShdOps.h.inc"

namespace shardc::shd {

/// The first dimensions of a value that stand for iterations.
unsigned stackedDims(mlir::Value value);
/// Something reads more of a stacked value than a part.
bool isReadWhole(mlir::Value value);

/// The tensor of which a value is a part, or the value itself.
mlir::Value wholeOf(mlir::Value value);

/// The declaration that an operation introduces where it stands: its own, or if
/// it reads the first part of a stacked tensor, that tensor's. Null for others:
/// with it each declared tensor is met once, where the program's text has it.
DeclareOp introducedBy(mlir::Operation *op);

/// The operation that introduces a declared tensor: it reads the first part, or
/// if nothing does, it is the declaration.
mlir::Operation *introducerOf(DeclareOp declare);

/// The declared tensor that a value is, or is a part of; or null.
DeclareOp declarationOf(mlir::Value value);

/// True if `a` stands before `b` in the text of the program, perhaps in other
/// repeats; neither is in the other.
bool standsBefore(mlir::Operation *a, mlir::Operation *b);

/// The operation that updates a declared tensor, or null.
UpdateOp updateOf(DeclareOp declare);

/// The update whose value a part of a buffer is in the same iteration of the
/// repeats around both: the one that stands before the part; or null.
UpdateOp updateBefore(PartOp part);

/// One over the product of extents, which a constant then is (kInverseOf).
double inverseOf(llvm::ArrayRef<int64_t> extents);
void setInverseOf(ConstantOp op, llvm::ArrayRef<int64_t> extents);

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_IR_SHD_H
