//===- GridInterpreter.h - Devices that run a program together -*- C++ -*-===//

#ifndef SHARDC_LIB_REFERENCE_GRIDINTERPRETER_H
#define SHARDC_LIB_REFERENCE_GRIDINTERPRETER_H

#include "PointRunner.h"
#include "shardc/Reference/Interpreter.h"
#include "llvm/ADT/MapVector.h"

namespace shardc {

/// Runs each operation on every device before the next one.
class Interpreter : protected OperationRunner {
public:
  Interpreter(Mesh mesh, const RunOptions &options)
      : devices(std::move(mesh)), options(options), memories(devices.size()) {}

  mlir::FailureOr<RunResult> run(mlir::Operation *program);

protected:
  /// By value and, as scheduled, iteration: the next one may have begun.
  using Key = std::pair<mlir::Value, int64_t>;
  using Memory = llvm::DenseMap<Key, TensorRef>;

  virtual Key keyOf(mlir::Value value,
                    llvm::ArrayRef<int64_t> iterations) const;
  mlir::LogicalResult runScheduled(spmd::ProgramOp program);
  mlir::LogicalResult run(mlir::Operation *op, const Iterations &at) override;
  bool holds(mlir::Value value, const Iterations &at) override;
  void drop(mlir::Value value, const Iterations &at) override;
  void hand(mlir::Value from, const Iterations &fromIterations, mlir::Value to,
            const Iterations &toIterations) override;
  void number(mlir::BlockArgument argument, const Iterations &at) override;
  DeviceBytes bytes(mlir::Value value, const Iterations &at) override;

  RunResult collect(mlir::Block &program);
  mlir::LogicalResult runBlock(mlir::Block &block);
  virtual mlir::LogicalResult runOperation(mlir::Operation *op);
  mlir::LogicalResult declare(mlir::Operation *op, DeclaredTensor tensor);
  mlir::FailureOr<int64_t> numberOfPart(mlir::Operation *op, mlir::Value stack,
                                        mlir::ValueRange at, unsigned device);
  mlir::LogicalResult takePart(shd::PartOp op);
  template <typename UpdateOp>
  mlir::LogicalResult write(UpdateOp op, shd::TensorKind kind,
                            mlir::Type global);
  mlir::LogicalResult finish(mlir::Operation *op, llvm::StringRef name,
                             std::optional<shd::TensorKind> kind,
                             mlir::Type global);
  virtual mlir::LogicalResult repeat(shd::RepeatOp op);
  mlir::LogicalResult compute(mlir::Operation *op);
  mlir::LogicalResult communicate(mlir::Operation *op);
  mlir::LogicalResult shift(spmd::RingShiftOp op);
  void count(mlir::Operation *op, const Traffic &traffic);
  mlir::FailureOr<std::vector<TensorRef>> readAll(mlir::Operation *op,
                                                  mlir::Value value);
  mlir::LogicalResult locate(spmd::RingPositionOp op);
  mlir::FailureOr<Box> partOfNumber(mlir::Operation *op,
                                    mlir::RankedTensorType whole,
                                    mlir::RankedTensorType part, int64_t dim,
                                    mlir::Value number, unsigned device);
  mlir::LogicalResult takeChunk(spmd::ChunkOp op);
  mlir::LogicalResult placeChunk(spmd::PlaceOp op);
  mlir::LogicalResult carry(mlir::Operation *op, mlir::ValueRange from,
                            mlir::ValueRange to);
  mlir::FailureOr<shd::TensorList> evaluate(mlir::Operation *op,
                                            unsigned device);
  void countWork(mlir::Operation *op);
  mlir::FailureOr<llvm::SmallVector<const Tensor *>>
  operands(mlir::Operation *op, unsigned device);
  TensorRef read(mlir::Operation *op, mlir::Value value, unsigned device);
  void define(mlir::Value value, std::vector<TensorRef> parts);
  llvm::ArrayRef<FactorRange> rangesOf(mlir::Operation *op, unsigned device);
  std::vector<llvm::SmallVector<FactorRange, 4>>
  computeRanges(mlir::Operation *op) const;

  Devices devices;
  const RunOptions &options;
  /// The memory of each device.
  std::vector<Memory> memories;
  /// Iterations of the repeats around the current operation.
  llvm::SmallVector<int64_t, 2> iterations;
  /// By operation and device.
  llvm::DenseMap<mlir::Operation *,
                 std::vector<llvm::SmallVector<FactorRange, 4>>>
      ranges;
  llvm::MapVector<mlir::Operation *, RunResult::Executed> executed;
  llvm::MapVector<mlir::Operation *, RunResult::Work> work;
  /// What was written last, by gradient and number of the part.
  llvm::MapVector<std::pair<mlir::Value, int64_t>, RunResult::Final> gradients;
  RunResult result;
};

} // namespace shardc

#endif // SHARDC_LIB_REFERENCE_GRIDINTERPRETER_H
