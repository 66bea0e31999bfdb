//===- RunOrder.h - When a device's operations run ------------*- C++ -*-===//
//
// The points of a device's program: fusion groups, each one kernel, in the
// order in which they end, and what is issued between them. And how long its
// tensors are needed. docs/CostModel.md#the-schedule and
// docs/CostModel.md#6-memory-of-one-device.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_REFERENCE_RUNORDER_H
#define SHARDC_LIB_REFERENCE_RUNORDER_H

#include "shardc/Reference/Interpreter.h"
#include "llvm/ADT/DenseSet.h"

namespace shardc {

/// One step of the run: the operations of a fusion group, an operation that is
/// in none, an output, or the beginning or the end of a repeat.
struct RunPoint {
  enum class Kind : uint8_t { Operations, Entry, Exit } kind = Kind::Operations;
  llvm::SmallVector<mlir::Operation *, 4> ops;
  /// Collectives issued while it runs, and when it has ended.
  llvm::SmallVector<EarlyIssue, 2> during, after;
  /// Tensors that nothing needs later, and those of which only views are read
  /// later, which need no copy.
  llvm::SmallVector<mlir::Value, 4> last, onlyViewed;
  /// For a repeat's beginning: tensors of the block that its body reads.
  llvm::SmallVector<mlir::Value, 4> brought;
  /// And the gradients that its body updates.
  llvm::SmallVector<spmd::ParameterOp, 1> gradients;
  /// Updates of states with what has been there before.
  llvm::SmallVector<mlir::Operation *, 1> updates;
};

/// The program, or the body of a repeat.
struct RunBody {
  std::vector<RunPoint> points;
  /// Collectives issued before the first point; of the first iteration only.
  llvm::SmallVector<EarlyIssue, 2> before, first;
  /// Tensors that nothing reads after the end of an iteration, and those that
  /// nothing reads at all.
  llvm::SmallVector<mlir::Value, 4> last, unread;
};

class RunOrder {
public:
  RunOrder(spmd::ProgramOp program, llvm::ArrayRef<EarlyIssue> issues);

  const RunBody &body(mlir::Block &block) const {
    return bodies.find(&block)->second;
  }
  /// The operands that an operation reads: of a state that it updates, nothing.
  static mlir::OperandRange read(mlir::Operation *op);
  /// The tensor of which a value is a form: what it was before any collective.
  static mlir::Value tensorOf(mlir::Value value);
  /// The parameter, or the part of one, of which the value has the same
  /// elements and in whose buffer it lies if it is stored alike; or null.
  static mlir::Value viewedBy(mlir::Value tensor);
  /// The form in which a tensor is stored, and the copy made of it for several
  /// readers or null.
  static mlir::Value storedForm(mlir::Value tensor);
  static mlir::Value copyOf(mlir::Value stored);
  /// The last form in a sequence of collectives of which `value` is one.
  static mlir::Value endOfSequence(mlir::Value value);

  bool isRead(mlir::Value tensor) const { return reads.contains(tensor); }
  /// Its group reads it in the same kernel, or each of its readers computes it.
  bool staysOnChip(mlir::Value tensor) const;
  /// Only the rest of its group reads it, in whatever form.
  bool staysInGroup(mlir::Value tensor) const;
  /// Its readers compute it.
  bool isInlined(mlir::Value tensor) const { return inlined.contains(tensor); }
  /// Updates of states that happen when their value is made.
  llvm::ArrayRef<spmd::UpdateOp> updatesWith(mlir::Value tensor) const;
  /// The parts of a buffer that are read in the block of an update, or around
  /// it, as they were before.
  static llvm::SmallVector<shd::PartOp, 1> partsBefore(spmd::UpdateOp update);
  /// The update that gives a part of a buffer its value, in the block of the
  /// part or around it; or null.
  static spmd::UpdateOp updateOf(shd::PartOp part);
  /// True if nothing but the kernel that makes `tensor`, element by element,
  /// reads from then on what `update` replaces by it.
  bool replaces(spmd::UpdateOp update, mlir::Value tensor) const;
  const RunPoint &entryOf(shd::RepeatOp repeat) const {
    return body(*repeat->getBlock()).points[pointOf.lookup(repeat) - 1];
  }
  const RunPoint &exitOf(shd::RepeatOp repeat) const {
    return body(*repeat->getBlock()).points[pointOf.lookup(repeat)];
  }
  /// The operation that, when it has run, ends the need of `op` for what it
  /// reads: itself, or the last reader that may compute it.
  mlir::Operation *inputsEndWith(mlir::Operation *op) const {
    auto it = inputsUntil.find(op);
    return it == inputsUntil.end() ? op : it->second;
  }
  /// Compute does not wait for the collective when it is issued.
  bool isEarly(mlir::Operation *collective) const {
    return early.contains(collective);
  }

private:
  void arrange(mlir::Block &block);
  void addPoint(mlir::Block &block, RunPoint::Kind kind,
                llvm::ArrayRef<mlir::Operation *> ops);
  void addOutputs(mlir::Block &block);
  void findReads(mlir::Block &block);
  unsigned pointOfRead(mlir::Value tensor, mlir::Operation *reader,
                       bool atEntry) const;
  void read(mlir::Value tensor, mlir::Operation *reader, bool atEntry);
  void placeGradient(spmd::UpdateOp update);
  void placeUpdate(spmd::UpdateOp update);
  unsigned firstPoint(mlir::Operation *op) const;
  bool isReadBefore(mlir::Operation *reader, mlir::Operation *part,
                    mlir::Operation *maker) const;
  void extend(mlir::Value tensor, unsigned point);
  void addIssue(const EarlyIssue &issue);
  void findPrologues(mlir::Block &block);
  void placeLast();

  spmd::ProgramOp program;
  llvm::DenseMap<mlir::Block *, RunBody> bodies;
  /// The point of an operation in its block; of a repeat its end.
  llvm::DenseMap<mlir::Operation *, unsigned> pointOf;
  /// By tensor, the last point of its block that reads it, or a view of it.
  llvm::DenseMap<mlir::Value, unsigned> reads, viewReads;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<spmd::UpdateOp, 1>> updates;
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> inputsUntil;
  llvm::DenseSet<mlir::Value> leaves, inlined;
  llvm::DenseSet<mlir::Operation *> early;
};

} // namespace shardc

#endif // SHARDC_LIB_REFERENCE_RUNORDER_H
