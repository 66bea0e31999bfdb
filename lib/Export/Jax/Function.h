//===- Function.h - A program as a Python function --------------*- C++ -*-===//
//
// Private to lib/Export/Jax: prints the statements of a program, the unsharded
// one or that of a device. Operations that compute are the same in both.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_EXPORT_JAX_FUNCTION_H
#define SHARDC_LIB_EXPORT_JAX_FUNCTION_H

#include "PythonFile.h"
#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "shardc/Dialect/Spmd/IR/Spmd.h"

namespace shardc::jax {

/// An input, a weight or a state of a program or its optimizer.
struct Parameter {
  mlir::Operation *op = nullptr;
  shd::TensorKind kind;
  std::string name;
  llvm::SmallVector<llvm::StringRef, 4> indices;
  mlir::RankedTensorType global;
};

/// All parameters of a block, in order, but for those that the program updates:
/// these come by name in their places. Buffers are arrays of its own.
llvm::SmallVector<Parameter> parametersOf(const PythonFile &file,
                                          mlir::Block &block);

/// The index names of an operation's dimensions, and how much of an index a
/// device has.
/// `zigzag("B", 4)`: the positions of an index of an operation, whose extent
/// has this key, in the order in which they are stored; empty if that is the
/// program's.
std::string zigzag(PythonFile &file, mlir::Operation *op, llvm::StringRef index,
                   llvm::StringRef key);

class IndexedOp {
public:
  IndexedOp(PythonFile &file, shd::ShardingRuleOpInterface op)
      : file(file), op(op) {}

  using Names = llvm::SmallVector<llvm::StringRef, 4>;
  Names operand(unsigned number) const {
    return op.getIndexing().getOperandIndices(number);
  }
  Names result(unsigned number = 0) const {
    return op.getIndexing().getResultIndices(number);
  }

  bool isSharded(llvm::StringRef index) const {
    return shardOf(index) != nullptr;
  }
  /// `size["B"]`
  std::string whole(llvm::StringRef index) const;
  /// `part("B", "X")`: how much of it a device has.
  std::string part(llvm::StringRef index) const;
  /// `start("B", "X")`: the first that a device has.
  std::string start(llvm::StringRef index) const;
  /// `positions("B", "X")`: those that a device has.
  std::string positions(llvm::StringRef index) const;
  /// `ring_positions(step, "B", "X")`: those that come by on a ring.
  std::string positionsAt(const std::string &step, llvm::StringRef index) const;
  /// `halo_positions(size["halo"], "B", "X")`: those that it has, and the
  /// elements of a halo before them, of which `rows` are before each stretch of
  /// positions.
  std::string positionsWithHalo(const std::string &rows,
                                llvm::StringRef index) const;
  /// `(part("B", "X"), size["D"])`
  std::string shape(llvm::ArrayRef<llvm::StringRef> indices) const;
  /// The whole extent in the program and in its small form.
  std::pair<int64_t, int64_t> extents(llvm::StringRef index) const;

  /// `zigzag("B", 4)`: the positions of its elements, in the order in which
  /// they are stored; empty if that is the program's.
  std::string order(llvm::StringRef index) const;

  /// Null for an index that no axis splits.
  spmd::ShardAttr shardOf(llvm::StringRef index) const;

private:
  std::string key(llvm::StringRef index) const;
  /// `"B", "X"`
  std::string arguments(llvm::StringRef index) const;

  PythonFile &file;
  // Methods of interfaces are not const.
  mutable shd::ShardingRuleOpInterface op;
};

class FunctionPrinter {
public:
  FunctionPrinter(PythonFile &file, llvm::raw_ostream &os)
      : file(file), os(os), names(file.names) {}

  /// Prints the body of `name` with its parameters as arguments.
  llvm::LogicalResult print(llvm::StringRef name, llvm::StringRef comment,
                            mlir::Block &program);
  /// The Python name of a value that was printed.
  std::string nameOf(mlir::Value value) const {
    return expressions.lookup(value);
  }

private:
  using Names = IndexedOp::Names;

  // Function.cpp
  void line(const std::string &text);
  llvm::LogicalResult printBlock(mlir::Block &block);
  llvm::LogicalResult printOp(mlir::Operation *op);
  /// Zeros of the extents that a device has.
  void printBuffer(mlir::Operation *op, mlir::RankedTensorType global,
                   mlir::ArrayAttr indices);
  template <typename UpdateOp> void printUpdate(UpdateOp update);
  std::string outputValue(mlir::Operation *output);
  /// True of a tensor that the host of this device has, and of its parts.
  bool isOnHost(mlir::Value value) const;
  /// Prints an operation with what it reads on the host copied from there.
  llvm::LogicalResult
  printReadingHost(mlir::Operation *op,
                   llvm::function_ref<llvm::LogicalResult()> print);
  /// `x[L]` and `x.at[L].set(part)`: the part of a stack that numbers name, and
  /// the stack with another one.
  std::string partOf(mlir::Value stack, const std::string &name,
                     const std::string &numbers);
  void addUnits(mlir::Value stack, llvm::SmallVector<std::string> &extents);
  std::string withPart(mlir::Value stack, const std::string &name,
                       const std::string &numbers, const std::string &part);
  /// Gives a value its expression, in a statement of its own.
  void define(mlir::Value value, const std::string &expression,
              llvm::StringRef suffix = "");
  /// The value as an array; constants become arrays.
  std::string array(mlir::Value value);
  /// A constant as a scalar: one of extents is computed from these.
  std::string scalar(shd::ConstantOp op);

  // Operations.cpp
  llvm::LogicalResult printCompute(shd::ShardingRuleOpInterface op);
  llvm::LogicalResult printStatistic(shd::StatisticOp op);
  void compute(shd::EinsumOp op);
  void compute(shd::ElementwiseOp op);
  void compute(shd::ReduceOp op);
  std::string argMax(shd::ReduceOp op);
  void compute(shd::NormalizeOp op);
  std::string normalizedWhole(shd::NormalizeOp op, const std::string &x,
                              const std::string &axes);
  std::string normalizedParts(shd::NormalizeOp op, const std::string &x,
                              llvm::ArrayRef<std::string> stats);
  void compute(shd::AttentionOp op);
  void compute(shd::AttentionGradOp op);
  std::string inF32(mlir::Value value);
  void store(mlir::Value value, const std::string &expression);
  void compute(shd::AdamWOp op);
  void compute(shd::SgdOp op);
  void compute(shd::CrossEntropyOp op);
  void compute(shd::GatherOp op);
  void compute(shd::ScatterOp op);
  void compute(shd::ScatterSumOp op);
  /// Where positions name the elements that a scatter writes or adds to.
  struct Places {
    std::string subscript;
    /// One expression for each dimension.
    llvm::SmallVector<std::string> dims;
    /// ` mode="drop"`, with a comma before, where a device has but a part.
    std::string mode;
    /// The positions' indices that the written tensor lacks.
    Names repeated;
  };
  /// Of a tensor of `written` indices; broadcast to a tensor of `update` ones.
  Places placesOf(const IndexedOp &indexed, shd::PositionsOpInterface op,
                  const Names &written, const Names &update);
  void compute(shd::RopeOp op);
  void compute(shd::TopKOp op);
  void compute(shd::DispatchOp op);
  void compute(shd::CombineOp op);
  void compute(shd::CombineGradOp op);
  /// Which of this device's tokens has which of its slots, 1 or 0 in `type`;
  /// `indices` are the picks', then the slots'.
  std::string slotsOf(const IndexedOp &indexed, shd::ExpertsOpInterface op,
                      mlir::Type type, Names &indices);
  template <typename Op> void computeExperts(Op op);
  void compute(shd::SplitOp op);
  void compute(shd::MergeOp op);
  void compute(shd::SliceOp op);
  void compute(shd::ConcatOp op);
  void compute(shd::IotaOp op);
  void compute(shd::ReshardOp op);
  /// The scores of an attention, computed once for its statistics and itself.
  std::string scores(shd::AttentionOpInterface op);
  std::string sinkOf(shd::AttentionOp op, const IndexedOp &indexed);
  std::string keyPositions(shd::AttentionOpInterface op);
  /// Positions along an index of a tensor: known to be in range, or taken
  /// modulo the extent.
  std::string programPosition(const IndexedOp &indexed, mlir::Value value,
                              llvm::StringRef index);
  /// Where elements at such positions are stored.
  std::string position(const IndexedOp &indexed, mlir::Value value,
                       llvm::StringRef index);
  /// True if the values are positions of the index by themselves: the inputs
  /// that `main` makes, and numbers of iterations.
  bool isInRange(const IndexedOp &indexed, mlir::Value value,
                 llvm::StringRef index) const;

  /// `expression` of element type `from` as `to`.
  std::string convert(const std::string &expression, mlir::Type from,
                      mlir::Type to);
  /// In f32, or f64 if it is that already.
  std::string inFloat(mlir::Value value);
  /// Stores what was computed in `from` as the operation's result.
  void defineAs(mlir::Value value, const std::string &expression,
                mlir::Type from);

  // Repeats.cpp
  class RepeatPrinter;
  /// The repeat, from initial values that are these or its own.
  llvm::LogicalResult printRepeat(shd::RepeatOp repeat,
                                  llvm::ArrayRef<std::string> from = {});
  /// `size["L"]`: how often a repeat runs; of one in segments, in this one.
  std::string iterationsOf(shd::RepeatOp repeat);
  void printPart(shd::PartOp part);
  /// `L, M`: the numbers of a stack's part, but for the first `known`; with
  /// `isAhead` the part is the next iteration's.
  std::string partNumbers(mlir::Value stack, mlir::ValueRange at, size_t known,
                          bool isAhead = false);
  std::string partNumber(mlir::Value stack, unsigned dim, mlir::Value iteration,
                         bool isAhead);

  // Stages.cpp
  class PassPrinter;
  void beginStages(spmd::ProgramOp program);
  llvm::LogicalResult printStaged(mlir::Operation *op);
  llvm::LogicalResult printLayers(shd::RepeatOp layers);
  llvm::LogicalResult printPipeline();
  bool isLayersOfMicrobatch(shd::RepeatOp repeat) const {
    return stages && repeat &&
           (repeat == stages->repeats.forward ||
            repeat == stages->repeats.backward);
  }
  bool isLayers(mlir::Operation *op) const;
  std::string isOneOf(shd::StageRoles roles) const;
  shd::StageRoles ownerOf(mlir::Value value) const;
  std::optional<unsigned> layersDim(spmd::ParameterOp parameter) const;
  std::string localShape(mlir::Value value);
  std::string onAllStages(const std::string &value, shd::StageRoles roles,
                          bool adds);

  // Collectives.cpp
  llvm::LogicalResult printCollective(mlir::Operation *op);
  void ring(spmd::RingPositionOp op);
  void ring(spmd::RingShiftOp op);
  void ring(spmd::ChunkOp op);
  void ring(spmd::PlaceOp op);

  PythonFile &file;
  llvm::raw_ostream &os;
  PythonNames names;
  unsigned indent = 1;
  /// It is the program of a device, not the unsharded one.
  bool isOfDevice = false;
  llvm::DenseMap<mlir::Value, std::string> expressions;
  /// How many stacks on the host are of a type, and the dimensions of extent 1
  /// that each has at the end.
  llvm::DenseMap<mlir::Type, unsigned> stacksOnHost;
  llvm::DenseMap<mlir::Value, unsigned> units;
  llvm::DenseMap<mlir::Operation *, std::string> scoresOf;
  using NamedExpression = std::pair<std::string, std::string>;
  llvm::SmallVector<NamedExpression> outputs;
  /// States that the block being printed has updated.
  llvm::SmallVector<NamedExpression> updates;
  /// Stacked tensors whose names stand for the parts of some iterations, with
  /// the numbers of these.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value, 2>> narrowed;
  /// Names of how many iterations a segment has, by the repeat over segments,
  /// where the last one has fewer.
  llvm::DenseMap<mlir::Operation *, std::string> inSegment;
  /// In the program of a pipeline's stages.
  struct Stages {
    shd::PipelineRepeats repeats;
    /// The index of the layers, and the axis as Python's text.
    std::string index, axis;
    /// Names of this device's stage and of the number of the last one.
    std::string number, last;
    /// In the pass that is printed, the names of what the stage has received
    /// and of the chunk, if there are several; and how many layers it has, if
    /// others have more.
    llvm::SmallVector<std::string> received;
    std::string chunk, held;
    /// In such layers, the name of what says if the chunk has this one.
    std::string exists;
  };
  std::optional<Stages> stages;
};

/// The name of a value in the program, for people.
std::string wantedName(mlir::Value value);
/// True of an update of a buffer.
bool isOfBuffer(mlir::Operation *op);
/// The name of a carried value, after the expression of its initial value.
std::string carriedName(llvm::StringRef init);

/// `expression` with its dimensions, named `from`, so that it broadcasts to a
/// tensor of `to`.
std::string aligned(const std::string &expression,
                    llvm::ArrayRef<llvm::StringRef> from,
                    llvm::ArrayRef<llvm::StringRef> to);
/// `expression` with its dimensions in another order.
std::string transposed(const std::string &expression,
                       llvm::ArrayRef<llvm::StringRef> from,
                       llvm::ArrayRef<llvm::StringRef> to);
/// The value that `value` is a copy of.
mlir::Value rootOf(mlir::Value value);
/// The text of a constant's value.
std::string literal(shd::ConstantOp op);

} // namespace shardc::jax

#endif // SHARDC_LIB_EXPORT_JAX_FUNCTION_H
