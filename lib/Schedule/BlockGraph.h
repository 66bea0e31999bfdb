//===- BlockGraph.h - The work of a block and what it waits for -*- C++ -*-===//
//
// A block of a program whose plan is explicit, for those who order its work:
// kernels, repeats, collectives and what costs nothing, with their times.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_SCHEDULE_BLOCKGRAPH_H
#define SHARDC_LIB_SCHEDULE_BLOCKGRAPH_H

#include "shardc/Cost/Collective.h"
#include "shardc/Dialect/Shd/IR/Shd.h"
#include "llvm/ADT/BitVector.h"

namespace shardc {

/// How long an iteration of each inner block takes.
using BlockTimes = llvm::DenseMap<mlir::Block *, Picoseconds>;

class BlockGraph {
public:
  BlockGraph(mlir::Block &block, const CollectiveModel &model,
             const BlockTimes &times);
  /// Without times and networks.
  explicit BlockGraph(mlir::Block &block);

  /// A kernel or a repeat, which occupies the compute stream; a collective; or
  /// what costs nothing.
  struct Node {
    enum Kind { Work, Collective, Free } kind = Free;
    llvm::SmallVector<mlir::Operation *, 1> ops;
    Picoseconds time = 0;
    llvm::SmallVector<unsigned, 2> networks;
    llvm::SmallVector<unsigned, 4> before, behind;
    /// Collectives in the middle of it (statistics), for which those wait that
    /// read it.
    llvm::SmallVector<unsigned, 1> late;
    /// It moves what is there before the block runs: a weight.
    bool isReady = false;
    /// From its end to that of the block, whatever else runs: of its own, and
    /// over all that waits for it. None if nothing does.
    std::optional<Picoseconds> ownTail, tail;
  };
  /// In program order.
  std::vector<Node> nodes;
  /// By node: all that it depends on.
  std::vector<llvm::BitVector> behindAll;
  unsigned numNetworks = 0;

  /// The block of the step, not that of a repeat.
  bool isStep() const { return ofStep; }
  /// The time of its kernels and repeats together.
  Picoseconds busy() const;
  /// When a collective has ended whose operand is there at `release`, behind
  /// all that its networks carry already.
  static Picoseconds carry(const Node &node, Picoseconds release,
                           std::vector<Picoseconds> &networkFree);

private:
  unsigned nodeOf(mlir::Operation &op);
  void addNodes();
  void connect(unsigned before, unsigned behind);
  void findReady();
  void findOwnTail(Node &node) const;
  void measureTails();
  Picoseconds carriedWait(mlir::Value yielded) const;
  Picoseconds prefetchWait(const Node &node) const;

  mlir::Block &block;
  /// Asked for in every simulation.
  bool ofStep = mlir::isa<shd::ProgramOp>(block.getParentOp());
  const CollectiveModel *model = nullptr;
  const BlockTimes *times = nullptr;
  llvm::DenseMap<mlir::Operation *, unsigned> numberOf;
  llvm::DenseMap<mlir::Attribute, unsigned> kernels;
};

} // namespace shardc

#endif // SHARDC_LIB_SCHEDULE_BLOCKGRAPH_H
