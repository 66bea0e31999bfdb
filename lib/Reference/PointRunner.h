//===- PointRunner.h - Runs a device's program in its schedule -*- C++ -*-===//
//
// Goes through the points of a program, makes what each needs, issues
// collectives where the schedule does, and has the devices drop every array
// after its last use; with an account of what they hold:
// docs/CostModel.md#6-memory-of-one-device. Nothing here knows what the report
// predicts.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_REFERENCE_POINTRUNNER_H
#define SHARDC_LIB_REFERENCE_POINTRUNNER_H

#include "MemoryMeter.h"
#include "RunOrder.h"
#include "llvm/ADT/StringSet.h"

namespace shardc {

/// Numbers of the iterations of the repeats around an operation, the outermost
/// first.
using Iterations = llvm::SmallVector<int64_t, 2>;

/// The devices, which run one operation at a time and hold what they make,
/// separately for each iteration.
class OperationRunner {
public:
  virtual ~OperationRunner() = default;
  virtual mlir::LogicalResult run(mlir::Operation *op,
                                  const Iterations &iterations) = 0;
  virtual bool holds(mlir::Value value, const Iterations &iterations) = 0;
  virtual void drop(mlir::Value value, const Iterations &iterations) = 0;
  /// `to` becomes what `from` is.
  virtual void hand(mlir::Value from, const Iterations &fromIterations,
                    mlir::Value to, const Iterations &toIterations) = 0;
  /// Sets the number of the iteration, an argument of the body.
  virtual void number(mlir::BlockArgument argument,
                      const Iterations &iterations) = 0;
  virtual DeviceBytes bytes(mlir::Value value,
                            const Iterations &iterations) = 0;
};

class PointRunner {
public:
  PointRunner(OperationRunner &devices, unsigned numDevices,
              spmd::ProgramOp program, llvm::ArrayRef<EarlyIssue> issues,
              MemoryMeter &meter)
      : devices(devices), program(program), order(program, issues),
        meter(meter), numDevices(numDevices) {}

  mlir::LogicalResult run();

  /// From now on devices hold what is declared.
  void holdParameters();

  /// A pipeline's stage runs up to its microbatches, then their forward passes
  /// and all else of them in the order of a schedule, leaves them, and then
  /// runs the rest.
  mlir::LogicalResult runBefore(shd::RepeatOp microbatches);
  mlir::LogicalResult runPass(shd::RepeatOp microbatches, int64_t number,
                              bool isForward);
  mlir::LogicalResult leave(shd::RepeatOp microbatches);
  mlir::LogicalResult runAfter(shd::RepeatOp microbatches);
  /// Bytes of the saved values of a microbatch.
  int64_t savedBytes();
  /// Tensors of these names are there already, because of another program; adds
  /// its own. Those of layers are each program's.
  void shareTensors(llvm::StringSet<> &names) { shared = &names; }

private:
  /// A sequence of collectives: what it has made last, and what it takes.
  struct Sequence {
    DeviceBytes current, taken;
  };

  mlir::LogicalResult runBody(mlir::Block &block, const Iterations &at);
  mlir::LogicalResult runPoint(const RunPoint &point, const Iterations &at);
  mlir::LogicalResult enter(const RunPoint &point, const Iterations &at);
  mlir::LogicalResult runRepeat(shd::RepeatOp repeat, const Iterations &at);
  void begin(shd::RepeatOp repeat, const Iterations &at);
  void holdCarried(mlir::BlockArgument argument, const Iterations &at);
  mlir::LogicalResult issue(const EarlyIssue &issue, Iterations at);
  mlir::LogicalResult issueAll(llvm::ArrayRef<EarlyIssue> issues,
                               const Iterations &at);
  void dropScratch(mlir::Operation *op, const Iterations &at);
  void endPoint(const RunPoint &point, const Iterations &at);
  void endPoint(llvm::ArrayRef<mlir::Operation *> ops,
                llvm::ArrayRef<mlir::Value> last, const Iterations &at);

  void endIteration(mlir::Block &block, const Iterations &at);

  mlir::LogicalResult markRun(mlir::Operation *op, const Iterations &at);
  mlir::LogicalResult need(mlir::Value value, Iterations at);
  mlir::LogicalResult needAll(mlir::Operation *op, const Iterations &at);
  mlir::LogicalResult bringArgument(mlir::BlockArgument argument,
                                    const Iterations &at);
  mlir::LogicalResult readTensor(mlir::Value tensor, const Iterations &at);
  mlir::LogicalResult readForStates(mlir::Operation *op, const Iterations &at);
  mlir::LogicalResult compute(mlir::Operation *op, const Iterations &at);
  mlir::LogicalResult computeBefore(mlir::Operation *op, const Iterations &at);
  mlir::LogicalResult store(mlir::Value tensor, const Iterations &at);
  bool worksInPlace(mlir::Value tensor, mlir::Value stored) const;
  mlir::LogicalResult communicate(mlir::Operation *op, const Iterations &at);
  void takeMemory(mlir::Operation *collective, const Iterations &at);
  DeviceBytes bytesOfRing(mlir::Operation *gather, const Iterations &at);
  DeviceBytes bytesOf(spmd::ParameterOp parameter) const;
  bool isShared(mlir::Operation *op);
  void holdResident(spmd::ParameterOp parameter);
  void dropCopy(mlir::Value tensor, const Iterations &at);
  void dropTensor(mlir::Value tensor, const Iterations &at);
  void dropForms(mlir::Value value, const Iterations &at);

  OperationRunner &devices;
  spmd::ProgramOp program;
  RunOrder order;
  MemoryMeter &meter;
  unsigned numDevices;
  llvm::StringSet<> *shared = nullptr;
  /// The collective that is being issued, if compute does not wait for it.
  mlir::Operation *issued = nullptr;
  llvm::DenseMap<MemoryMeter::Key, Sequence> sequences;
  /// Results of sequences of collectives, by the operation after which they are
  /// freed.
  llvm::DenseMap<MemoryMeter::Key,
                 llvm::SmallVector<std::pair<mlir::Value, Iterations>, 2>>
      scratchOf;
  /// Copies of which only the copy itself stays when the current point ends.
  llvm::SmallVector<std::pair<MemoryMeter::Key, DeviceBytes>, 2> copies;
  /// Memory of collectives that store a tensor, by tensor, until something
  /// reads it; and those of the current point, with whether compute waits.
  llvm::DenseMap<MemoryMeter::Key, MemoryMeter::Key> storing;
  struct Storing {
    MemoryMeter::Key tensor, sequence;
    bool blocks = false;
  };
  llvm::SmallVector<Storing, 2> storingNow;
  /// Tensors that something has read, in which iteration.
  llvm::DenseSet<MemoryMeter::Key> read, hasRun;
  /// Updates that have been made, in which iteration.
  llvm::DenseSet<std::pair<mlir::Operation *, int64_t>> updated;
};

/// The bytes of an array.
int64_t bytesOf(mlir::RankedTensorType type);

/// Numbers the iterations of the repeats around `block`.
int64_t linearIteration(mlir::Block *block, llvm::ArrayRef<int64_t> iterations);

} // namespace shardc

#endif // SHARDC_LIB_REFERENCE_POINTRUNNER_H
