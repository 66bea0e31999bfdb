//===- ShardingRule.h - Factors and strategies of operations --*- C++ -*-===//
//
// The shardings that an operation allows: its iteration space as named factors,
// how they map to the dimensions of operands and results, and what sharding
// each implies. Propagation, enumeration of strategies and partitioning all go
// through it. No MLIR. See Shardy's sharding rules and How to Scale Your Model,
// chapter 3.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SHARDING_SHARDINGRULE_H
#define SHARDC_SHARDING_SHARDINGRULE_H

#include "shardc/Sharding/Sharding.h"
#include <functional>
#include <vector>

namespace shardc {

/// The effect of placing a factor on an axis.
enum class FactorKind : uint8_t {
  /// Every device computes its part; nothing to communicate.
  Parallel,
  /// The factor is summed over: results that lack it become partial sums.
  Reduction,
  /// The factor is normalised over: devices agree on statistics (all_reduce of
  /// each `Statistic`), the result is complete.
  Statistic,
  /// As Statistic, and the results are partial sums too (attention over keys).
  StatisticReduction,
  /// Must be whole on every device.
  Replicated,
};

/// One index of an operation's iteration space.
struct Factor {
  std::string name;
  int64_t extent = 1;
  FactorKind kind = FactorKind::Parallel;
};

/// A value that devices must agree on when a Statistic factor is sharded: an
/// all_reduce of a tensor that has the listed factors.
struct Statistic {
  /// How the devices combine their contributions.
  enum class Combination : uint8_t { Sum, Max, Min };

  /// The statistic's name in the IR: `max`, `sum`, `sum_exp`, `sum_square`, ...
  std::string name;
  Combination combination = Combination::Sum;
  /// In the language's words.
  std::string elementType = "f32";
  llvm::SmallVector<unsigned, 4> factors;
};

/// Factors of one dimension, the major one first (more than one only where
/// indices are merged or split).
using DimFactors = llvm::SmallVector<unsigned, 1>;
using TensorFactors = llvm::SmallVector<DimFactors, 4>;

/// An operation that may run in chunks around a ring: where a `along` factor is
/// on an axis, parts of `factor` may travel around the devices of that axis:
/// the operands that have it need not be whole, and sums that have it are added
/// up on their way.
struct RingRule {
  llvm::SmallVector<unsigned, 2> along;
  unsigned factor = 0;
};

/// The stretches of consecutive positions that a device has of an index dealt
/// to so many parts: two in zigzag order, in the program's order, of 1, one.
constexpr int64_t stretchesOfPart(int64_t dealt) { return dealt > 1 ? 2 : 1; }

/// An operation each element of whose `along` factor needs that of `factor` at
/// the same position and `rows` before it, at most: where `along` is on axes,
/// the operands that have `factor` may be in parts on the same axes, each with
/// the last rows of the part before (a halo). Both factors have one extent. In
/// zigzag order, dealt to `dealt` parts, a device's positions are two
/// stretches, and there are rows before each.
struct HaloRule {
  unsigned along = 0;
  unsigned factor = 0;
  int64_t rows = 0;
  int64_t dealt = 1;

  int64_t stretches() const { return stretchesOfPart(dealt); }
};

struct ShardingRule {
  llvm::SmallVector<Factor, 6> factors;
  llvm::SmallVector<TensorFactors, 3> operands;
  llvm::SmallVector<TensorFactors, 1> results;
  /// Sets of operands (bit per operand) in which the operation is linear
  /// jointly: if exactly these are partial sums over an axis, so are the
  /// results. A product has one set per factor, a sum one set of all terms.
  llvm::SmallVector<uint32_t, 2> linearSets;
  llvm::SmallVector<Statistic, 2> statistics;
  /// Results (bit per result) that are no partial sums where others are: made
  /// of statistics and of operands that are in no linear set.
  uint32_t completeResults = 0;
  std::optional<RingRule> ring;
  std::optional<HaloRule> halo;

  bool isComplete(unsigned result) const {
    return completeResults & (uint32_t(1) << result);
  }
  std::optional<unsigned> findFactor(llvm::StringRef name) const;
};

/// One way to run an operation: the axes of each factor, and for axes that no
/// factor has, the set of operands (index into `linearSets`) that are partial
/// sums over it.
struct Strategy {
  llvm::SmallVector<AxisList, 6> factorAxes;
  llvm::SmallVector<std::pair<AxisIndex, unsigned>, 1> passThrough;
  /// The axis around which the rule's ring runs, one that a factor of
  /// `RingRule::along` is on: operands come, and sums leave, in parts along it.
  std::optional<AxisIndex> ring = std::nullopt;
  /// The operands with the factor of the rule's halo come in parts along the
  /// axes of `HaloRule::along`.
  bool halo = false;

  bool operator==(const Strategy &other) const = default;
};

/// True if some dimension of `tensor` maps to `factor`.
bool hasFactor(const TensorFactors &tensor, unsigned factor);
/// True if sharding `factor` makes partial sums of result `result`.
bool leavesPartialSums(const ShardingRule &rule, unsigned factor,
                       unsigned result);

/// Axes around which the operation may run as a ring under a strategy without
/// one, in mesh order: they divide the factor that travels, which no axis has.
AxisList ringAxes(const Mesh &mesh, const ShardingRule &rule,
                  const Strategy &strategy);

/// True if operands of the operation may come with halos under a strategy
/// without one: the axes of `HaloRule::along` divide the factor, which no axis
/// has, into stretches of at least as many rows as come before each.
bool mayReadHalos(const Mesh &mesh, const ShardingRule &rule,
                  const Strategy &strategy);

/// The layout in which the strategy consumes operand `operand`.
Layout operandLayout(const ShardingRule &rule, const Strategy &strategy,
                     unsigned operand);
/// The layout in which the strategy produces result `result`, partial sums
/// included.
Layout resultLayout(const ShardingRule &rule, const Strategy &strategy,
                    unsigned result);
/// Axes over which the statistics are all-reduced.
AxisList statisticAxes(const ShardingRule &rule, const Strategy &strategy);
/// The part of an iteration space that one device has.
struct LocalExtents {
  /// Extent of each factor, rounded up.
  llvm::SmallVector<int64_t, 6> extents;
  /// For each factor the sizes of its axes, which cut it one after another, the
  /// major one first. No lists at all if every factor is whole.
  llvm::SmallVector<llvm::SmallVector<int64_t, 3>, 6> cuts;

  operator llvm::ArrayRef<int64_t>() const { return extents; }
  int64_t operator[](unsigned factor) const { return extents[factor]; }
  /// Sizes of the axes of a factor.
  llvm::ArrayRef<int64_t> cutsOf(unsigned factor) const {
    return cuts.empty() ? llvm::ArrayRef<int64_t>() : cuts[factor];
  }
};

LocalExtents localExtents(const Mesh &mesh, const ShardingRule &rule,
                          const Strategy &strategy);
/// The iteration space of an operation on one device.
LocalExtents wholeExtents(const ShardingRule &rule);
/// Null if the strategy is legal, else why not (for verifiers): divisibility,
/// must-replicate factors, minor factors of a merged dimension sharded while a
/// major one is not down to one element per device.
/// `allowPadding` drops the divisibility requirement.
std::optional<std::string> checkStrategy(const Mesh &mesh,
                                         const ShardingRule &rule,
                                         const Strategy &strategy,
                                         bool allowPadding = false);

/// Axes that are placed as one, the major one first.
using AxisBlocks = std::vector<AxisList>;

/// Each axis on which tensors may lie and that changes anything by itself, in
/// mesh order.
AxisBlocks separateAxes(const Mesh &mesh);

/// All ways of making so many blocks of `axes`, each of neighbours, in a fixed
/// order: first those with the fewest axes in the first blocks.
std::vector<AxisBlocks> mergeNeighbours(const AxisBlocks &axes,
                                        unsigned blocks);

/// Ways of placing so many axes on so many dimensions, in all orders, some axes
/// on none: what enumerateStrategies() or enumerateLayouts() gives where
/// extents allow all and no sum is partial.
double countPlacements(size_t axes, unsigned dims);

/// Every legal strategy, in a fixed order, the fully replicated one first:
/// each block is idle, on one factor (all orders of blocks on one factor), or
/// carries a partial sum through a linear set.
std::vector<Strategy> enumerateStrategies(const Mesh &mesh,
                                          const ShardingRule &rule,
                                          const AxisBlocks &blocks,
                                          bool allowPadding);
inline std::vector<Strategy> enumerateStrategies(const Mesh &mesh,
                                                 const ShardingRule &rule,
                                                 bool allowPadding = false) {
  return enumerateStrategies(mesh, rule, separateAxes(mesh), allowPadding);
}

/// Every layout of a tensor whose dimensions the mesh divides, in a fixed
/// order, the replicated one first; with partial sums if `withPartial`.
std::vector<Layout> enumerateLayouts(const Mesh &mesh, const TensorShape &shape,
                                     bool withPartial, const AxisBlocks &blocks,
                                     bool allowPadding);
inline std::vector<Layout> enumerateLayouts(const Mesh &mesh,
                                            const TensorShape &shape,
                                            bool withPartial,
                                            bool allowPadding = false) {
  return enumerateLayouts(mesh, shape, withPartial, separateAxes(mesh),
                          allowPadding);
}

/// The legal strategies in which one axis is placed otherwise than in
/// `strategy`: idle, elsewhere on a factor, or passed through.
std::vector<Strategy> neighbourStrategies(const Mesh &mesh,
                                          const ShardingRule &rule,
                                          const Strategy &strategy,
                                          bool allowPadding = false);

/// The layouts in which one axis is placed otherwise than in `layout`.
std::vector<Layout> neighbourLayouts(const Mesh &mesh, const TensorShape &shape,
                                     const Layout &layout, bool withPartial,
                                     bool allowPadding = false);

/// The strategy that consumes these operand layouts; factors about which no
/// operand says anything are placed as the results say, as far as the axes are
/// free. Absent layouts say nothing. Null with the reason in `why` if operands
/// place a factor differently, use an axis twice, or hold partial sums in which
/// the operation is not linear. Undoes operandLayout and resultLayout; does not
/// check legality (checkStrategy does).
std::optional<Strategy>
inferStrategy(const Mesh &mesh, const ShardingRule &rule,
              llvm::ArrayRef<std::optional<Layout>> operands,
              llvm::ArrayRef<std::optional<Layout>> results,
              std::string *why = nullptr);

} // namespace shardc

#endif // SHARDC_SHARDING_SHARDINGRULE_H
