//===- Domain.h - Strategies of a chunk -----------------------*- C++ -*-===//
//
// The labels of a chunk's variable: assignments of mesh axes to the indices of
// its operations, which fix the layout of everything it reads and makes.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_OPTIMIZER_DOMAIN_H
#define SHARDC_OPTIMIZER_DOMAIN_H

#include "shardc/Optimizer/Context.h"
#include "shardc/Optimizer/Graph.h"
#include "shardc/Optimizer/Neighbours.h"

namespace shardc {

/// How the rest of a fusion group reads what its leader makes, where that may
/// be stored otherwise.
enum class LeaderRead : uint8_t {
  /// Follows from the layouts.
  Any,
  /// As it is made and stored: the two are one kernel.
  Fused,
  /// As it is stored, but not made.
  Stored,
  /// In another layout than it is stored in.
  Resharded,
};

/// One label of a chunk.
struct ChunkStrategy {
  /// One per operation of the chunk (empty for outputs).
  llvm::SmallVector<Strategy, 1> ops;
  /// Operands of a leader (one bit each) that it computes itself from the
  /// inputs of their prologue.
  uint32_t inlined = 0;
  LeaderRead leaderRead = LeaderRead::Any;
};

struct ChunkDomain {
  std::vector<ChunkStrategy> labels;
  /// [operation][result][label]: the layout that the label produces.
  std::vector<std::vector<std::vector<Layout>>> results;
  /// [operation][operand][label]: the layout that the label consumes; empty for
  /// operands without a layout.
  std::vector<std::vector<std::vector<Layout>>> operands;

  /// By label, the layouts in which a value of the chunk is made.
  const std::vector<Layout> &layoutsOf(const GraphValue &value) const {
    return results[value.op][value.result()];
  }
};

/// Doubles the labels of a leader for each operand in `operands`: with the
/// operand read from HBM, and computed in place by its prologue.
void addInlining(ChunkDomain &domain, llvm::ArrayRef<unsigned> operands);

/// Replaces each label of the rest of a group by one for each way in which it
/// can read its leader's value, its `uses` of which are operations and their
/// operands.
void addLeaderReads(ChunkDomain &domain,
                    llvm::ArrayRef<std::pair<unsigned, unsigned>> uses);

/// Replaces the labels by some of them, each as often as it is listed.
void selectLabels(ChunkDomain &domain, llvm::ArrayRef<size_t> numbers);

/// The operands that travel around a leader's ring or come with a halo, one bit
/// each: they are in HBM.
uint32_t movedOperands(const ShardingRule &rule, const Strategy &strategy);

/// Removes labels of a leader that computes these itself.
void removeInlinedMoves(ChunkDomain &domain, const ShardingRule &rule);

/// Labels of `chunk` that its pins allow, in a fixed order; with `neighbours`,
/// those on axes that the operations' tensors bring. Empty if the pins
/// contradict each other.
ChunkDomain buildDomain(const PlanningContext &context, const Chunk &chunk,
                        const NeighbourAxes *neighbours = nullptr);

/// One label without its domain.
struct ChunkChoice {
  /// Its variants, such as operands computed in place, do not count.
  ChunkStrategy strategy;
  /// The layout in which an output's value leaves; its strategy says nothing.
  Layout output;
};

/// The labels that place blocks of axes as one, and those that these choices
/// are.
ChunkDomain buildDomain(const PlanningContext &context, const Chunk &chunk,
                        const AxisBlocks &blocks,
                        llvm::ArrayRef<ChunkChoice> choices);

/// The labels that these choices are, and those that place one axis otherwise
/// than the first of them does.
ChunkDomain buildDomainAround(const PlanningContext &context,
                              const Chunk &chunk,
                              llvm::ArrayRef<ChunkChoice> choices);

/// All-reduces of one run of an operation whose statistics are sharded, in
/// order: the statistic and its price.
struct StatisticCost {
  const Statistic *statistic;
  AxisList axes;
  CollectiveCost cost;
};
llvm::SmallVector<StatisticCost, 3> statisticCosts(const CollectiveModel &model,
                                                   const ShardingRule &rule,
                                                   const Strategy &strategy);

} // namespace shardc

#endif // SHARDC_OPTIMIZER_DOMAIN_H
