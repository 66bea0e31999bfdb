//===- Reshard.h - Cheapest sequence of collectives -----------*- C++ -*-===//
//
// Turns one layout of a tensor into another by the cheapest sequence of
// all_gather, all_slice, all_to_all, reduce_scatter, all_reduce and
// collective_permute (docs/CostModel.md#3-shardings). One planner serves the
// optimizer's prices and the pass that emits collectives: what is priced is
// what is emitted. Pure and memoised; the same for every objective.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RESHARD_RESHARD_H
#define SHARDC_RESHARD_RESHARD_H

#include "shardc/Reshard/ReshardMemory.h"
#include "shardc/Sharding/ShardingRule.h"
#include <memory>

namespace shardc {

struct ReshardStep {
  CollectiveKind kind;
  /// Axes acted on, in mesh order.
  AxisList axes;
  Layout from, to;
  CollectiveCost cost;
  /// On one device.
  double fromBytes = 0, toBytes = 0;
};

struct ReshardPlan {
  llvm::SmallVector<ReshardStep, 2> steps;
  /// Sum of the steps' rounded times.
  Picoseconds picoseconds = 0;
  double wireBytes = 0;
  /// Most bytes alive on one device while it runs, its operand and its result
  /// included (all_reduce works in place).
  double peakBytes = 0;
};

/// The price of a plan, without its steps.
struct ReshardPrice {
  Picoseconds picoseconds = 0;
  /// For how long it occupies each physical network; empty: none.
  llvm::SmallVector<Picoseconds, 4> occupied;
  ReshardMemory memory;
};

/// Tables that planners of one model share, whatever the sizes of their
/// tensors: which collective turns one layout into another, and how
/// permutations load the links. For one thread at a time.
struct ReshardTables;

/// A shortest path over the layouts of a tensor, one collective an edge. On a
/// mesh of more than three axes on which a tensor has more than a few hundred
/// layouts, axes that stay together move together, as far as that many layouts
/// ask for it. Where there are more than `kMaxLayouts` layouts, the path keeps
/// to those that use axes of `from` and `to` and as many others as fit; beyond
/// that, the major axes that both layouts share stay; if even that is too many,
/// everything is gathered and sliced.
class ReshardPlanner {
public:
  static constexpr unsigned kMaxLayouts = 12000;

  /// `tables` are those of a planner of an equal model, or null.
  explicit ReshardPlanner(const CollectiveModel &model,
                          std::shared_ptr<ReshardTables> tables = nullptr);
  ~ReshardPlanner();

  const CollectiveModel &model() const { return theModel; }
  const std::shared_ptr<ReshardTables> &tables() const;

  /// The cheapest sequence from `from` to `to`: least time, then the fewest
  /// steps, then the order of CollectiveKind, then axis order. Times that
  /// differ by a few femtoseconds count as equal, so that rounding never
  /// prefers two collectives to one. Null if there is none: `to` has partial
  /// sums that `from` lacks. The reference stays valid for the planner's life.
  const ReshardPlan *plan(const TensorShape &shape, const Layout &from,
                          const Layout &to);

  /// Prices of plan(shape, from[i], to[j]) at i * to.size() + j; nothing where
  /// there is no plan. One search serves all targets of a source. Of many axes
  /// and layouts that keep blocks of them together, prices are those of a mesh
  /// on which each block is one axis: a sequence that divides a block may cost
  /// less.
  std::vector<std::optional<ReshardPrice>>
  prices(const TensorShape &shape, llvm::ArrayRef<Layout> from,
         llvm::ArrayRef<Layout> to, const AxisBlocks &blocks = {});

private:
  struct Cache;
  const CollectiveModel &theModel;
  std::unique_ptr<Cache> cache;
};

} // namespace shardc

#endif // SHARDC_RESHARD_RESHARD_H
