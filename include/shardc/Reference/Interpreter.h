//===- Interpreter.h - Runs programs, whole or on a mesh ------*- C++ -*-===//
//
// The reference semantics of programs: a whole program runs on one device that
// holds everything, the program of one device on a grid of them. Both go
// through the same evaluation of operations.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_REFERENCE_INTERPRETER_H
#define SHARDC_REFERENCE_INTERPRETER_H

#include "shardc/Dialect/Spmd/IR/Spmd.h"
#include "shardc/Reference/Collectives.h"
#include "shardc/Schedule/RunSchedule.h"
#include <functional>

namespace shardc {

/// A tensor that a program declares, and of how many repeats the indices stand
/// in front.
struct DeclaredTensor {
  llvm::StringRef name;
  shd::TensorKind kind;
  unsigned stacked;
  mlir::RankedTensorType type;
};

/// A result of one operation in one iteration: one array per device.
struct RunValue {
  mlir::OpResult value;
  llvm::ArrayRef<int64_t> iterations;
  llvm::ArrayRef<TensorRef> parts;
};

struct RunOptions {
  PositionPolicy positions = PositionPolicy::Error;
  /// Round every value to its element type, as hardware does; otherwise real
  /// numbers are doubles.
  bool roundToDeclared = false;
  /// The whole of a declared tensor that is no buffer.
  std::function<Tensor(const DeclaredTensor &)> declared;
  /// Run groups as kernels and collectives when they are issued, and measure
  /// the memory that this takes; null for program order without a measurement.
  /// Only for programs of one device.
  const RunSchedule *schedule = nullptr;
  /// Sees the operands of every operation on the first device, before it runs;
  /// may be null.
  std::function<void(mlir::Operation *, llvm::ArrayRef<const Tensor *>)>
      observeOperands;
  /// Sees every value of an operation as soon as it is there; may be null.
  std::function<void(const RunValue &)> observe;
  /// What a result of a program of one device is in an iteration, in place of
  /// what its operation computes; null, or null for a value, for that.
  std::function<TensorRef(mlir::OpResult, llvm::ArrayRef<int64_t>)> held;
};

struct RunResult {
  /// An output, or a declared tensor at the end of the step: a state of the
  /// program or of the optimizer, a weight or a gradient.
  struct Final {
    mlir::Operation *op = nullptr;
    std::string name;
    /// The declared tensor's; nothing for an output.
    std::optional<shd::TensorKind> kind;
    /// How many iterations of each repeat around it ran before; the number of
    /// the part of a gradient.
    llvm::SmallVector<int64_t, 2> iterations;
    mlir::Location loc;
    /// The whole tensor's type, with its sharding.
    mlir::RankedTensorType global;
    /// One array per device.
    std::vector<TensorRef> parts;

    bool isState() const { return kind.has_value(); }
  };
  std::vector<Final> finals;

  /// A collective that ran, all its runs together; in program order.
  struct Executed {
    mlir::Operation *op = nullptr;
    int64_t runs = 0;
    Traffic traffic;
  };
  std::vector<Executed> collectives;

  /// An operation that used the matrix units: FLOPs of each device, all runs
  /// together; in program order.
  struct Work {
    mlir::Operation *op = nullptr;
    llvm::SmallVector<double, 4> flops;
  };
  std::vector<Work> work;

  /// The most bytes that each device held at once, if measured.
  llvm::SmallVector<int64_t, 4> peak;
  /// Tensors that stages of a pipeline sent each other.
  int64_t messages = 0;
};

/// Runs a program without shardings on one device. Errors are emitted where
/// they happen.
mlir::FailureOr<RunResult> interpret(shd::ProgramOp program,
                                     const RunOptions &options);

/// Runs the program of one device on every device of its mesh, each with a
/// memory of its own.
mlir::FailureOr<RunResult> interpret(spmd::ProgramOp program,
                                     const RunOptions &options);

/// The most bytes that a device of each stage of a pipeline holds, if the
/// stages run the items of the schedule in their order, and each in program
/// order. Nothing where the gradients of weights are items of their own: when
/// arrays are needed for the last time is not known then.
mlir::FailureOr<std::optional<std::vector<int64_t>>>
measureStages(llvm::ArrayRef<spmd::ProgramOp> programs);

/// Runs all stages of a pipeline, each on devices of its own, in the order of
/// its schedule: the programs that spmd-split-stages made of one. Declared
/// tensors are those of all layers. Of what several stages write, each one's is
/// among the results.
mlir::FailureOr<RunResult>
interpretStages(llvm::ArrayRef<spmd::ProgramOp> programs,
                const RunOptions &options);

} // namespace shardc

#endif // SHARDC_REFERENCE_INTERPRETER_H
