//===- Graph.h - A program as the optimizer sees it -----------*- C++ -*-===//
//
// Chunks (operations that share one strategy), the values between them, and the
// program points at which memory is counted. A fusion group is a leading
// einsum, attention, gather or scatter (one chunk) and what follows it
// (another); docs/CostModel.md#2-one-operation-on-one-device,
// docs/Optimizer.md#2-the-problem.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_OPTIMIZER_GRAPH_H
#define SHARDC_OPTIMIZER_GRAPH_H

#include "shardc/Dialect/Shd/IR/Shd.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

namespace shardc {

/// Assigns `shd.group` to every costed operation of `program`, in program
/// order.
void assignFusionGroups(shd::ProgramOp program);

/// Operations that share one strategy, or a sink.
struct Chunk {
  enum class Kind {
    Leader, // one einsum, attention, gather or scatter
    Rest,   // the other operations of a fusion group
    Free,   // a view, iota or reshard: costs nothing
    Output, // shd.output
  };
  Kind kind = Kind::Free;
  llvm::SmallVector<mlir::Operation *, 2> ops;
  /// Fusion group; -1 for Free and Output.
  int64_t group = -1;
  /// How often it runs in a step.
  int64_t count = 1;
  /// Program point; leader and rest of a group have one together.
  uint32_t point = 0;
  /// The point up to which its operands live (excluded).
  uint32_t readEnd = 0;
  /// True for a group of elementwise operations that only einsums and attention
  /// use: they read its inputs and it never runs by itself unless a collective
  /// stands between.
  bool prologue = false;
  /// True for a slice that only attention reads: a prologue that costs nothing
  /// where it is not read through.
  bool view = false;

  bool isFree() const { return kind == Kind::Free || view; }
};

/// A use of a value from outside the chunk that uses it.
struct ChunkUse {
  unsigned chunk = 0;
  /// Index into Chunk::ops and the operand's number.
  unsigned op = 0, operand = 0;
  /// When the operation runs: before its chunk's point if something reads its
  /// result earlier.
  uint32_t point = 0;
};

/// A tensor that crosses from one chunk to others, or is declared or carried.
struct GraphValue {
  mlir::Value value;
  enum class Kind {
    Declared, // shd.declare
    Part,     // shd.part
    Computed, // made by a chunk
    Carried,  // block argument of a repeat
    Result,   // result of a repeat
  };
  Kind kind = Kind::Computed;
  /// Computed: the chunk and the operation in it.
  unsigned chunk = 0, op = 0;
  /// Computed: which result of the operation it is.
  unsigned result() const {
    return llvm::cast<mlir::OpResult>(value).getResultNumber();
  }
  llvm::SmallVector<ChunkUse, 2> uses;
  /// Values into which it flows unchanged: carried values (as the initial or
  /// the yielded one) and states (their value at the end of the step).
  struct Flow {
    unsigned target = 0; // index into Graph::values
    int64_t count = 1;
    /// Program points [begin, end) during which it does.
    uint32_t begin = 0, end = 0;
    mlir::OpOperand *operand = nullptr;
  };
  llvm::SmallVector<Flow, 1> flows;
  /// Result: the carried value whose sharding it has.
  unsigned carried = 0;
  /// Part: the stacked value that it is a view of.
  unsigned whole = 0;
  int64_t count = 1;
  /// Program points [begin, end) during which its memory is in use; copies live
  /// [firstRead, readEnd).
  uint32_t begin = 0, end = 0, firstRead = 0, readEnd = 0;
  /// The declared tensor that a scatter writes or that the value replaces, when
  /// nothing reads the old one any more (index into Graph::values): stored as
  /// that is, the value takes no memory of its own.
  std::optional<unsigned> intoState;
  /// The declared tensor, or the part of one, of which the value has the same
  /// elements (index into Graph::values): stored alike, it lies in the tensor's
  /// buffer.
  std::optional<unsigned> viewOf;
  /// Used inside a repeat that it is defined outside of.
  bool usedDeeper = false;
};

struct Graph {
  std::vector<Chunk> chunks;      // in program order
  std::vector<GraphValue> values; // in program order of their definitions
  llvm::DenseMap<mlir::Value, unsigned> valueIndex;
  llvm::DenseMap<mlir::Operation *, unsigned> chunkOf;
  /// Chunks of each group: the leader (or none: -1) and the rest (or none: -1).
  std::vector<std::pair<int, int>> groups;
  uint32_t numPoints = 0;
  /// Points before and after the body of each repeat.
  llvm::DenseMap<mlir::Operation *, std::pair<uint32_t, uint32_t>> repeatPoints;
};

/// Success if every operation to price is in a fusion group, and none that has
/// no price; else an error.
llvm::LogicalResult checkFusionGroups(shd::ProgramOp program);

/// Builds the graph of a program that has fusion groups and no collectives yet.
Graph buildGraph(shd::ProgramOp program);

/// The result of a fusion group's leader that the rest of the group reads: its
/// first. Readers of another result are in another group.
mlir::Value groupValue(mlir::Operation *leader);

/// Layouts are per value: true if the operand has one (scalar constants and the
/// iteration's number are on every device and have none).
bool hasLayout(mlir::Value value);

} // namespace shardc

#endif // SHARDC_OPTIMIZER_GRAPH_H
