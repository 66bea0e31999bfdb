//===- ShardingRule.cpp - Factors and strategies of operations ------------===//
//
// Layouts that a strategy implies, strategies that layouts imply, and the
// enumeration of both.
//
//===----------------------------------------------------------------------===//

#include "shardc/Sharding/ShardingRule.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include <cassert>

using namespace shardc;

std::optional<unsigned> ShardingRule::findFactor(llvm::StringRef name) const {
  for (auto [position, factor] : llvm::enumerate(factors))
    if (factor.name == name)
      return position;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// From a strategy to layouts
//===----------------------------------------------------------------------===//

bool shardc::hasFactor(const TensorFactors &tensor, unsigned factor) {
  return llvm::any_of(tensor, [&](const DimFactors &dim) {
    return llvm::is_contained(dim, factor);
  });
}

bool shardc::leavesPartialSums(const ShardingRule &rule, unsigned factor,
                               unsigned result) {
  FactorKind kind = rule.factors[factor].kind;
  bool isSummed =
      kind == FactorKind::Reduction || kind == FactorKind::StatisticReduction;
  return isSummed && !rule.isComplete(result) &&
         !hasFactor(rule.results[result], factor);
}

static bool needsStatistics(FactorKind kind) {
  return kind == FactorKind::Statistic ||
         kind == FactorKind::StatisticReduction;
}

/// The axes of each dimension; no partial sums.
static Layout placeDims(const TensorFactors &tensor, const Strategy &strategy) {
  Layout layout = Layout::replicated(tensor.size());
  for (auto [list, factors] : llvm::zip_equal(layout.dims, tensor))
    for (unsigned factor : factors)
      list.append(strategy.factorAxes[factor]);
  return layout;
}

/// Places what travels around the strategy's ring: it is in parts along the
/// ring's axis.
static void placeRing(const ShardingRule &rule, const Strategy &strategy,
                      const TensorFactors &tensor, Layout &layout) {
  if (!strategy.ring)
    return;
  for (auto [list, factors] : llvm::zip_equal(layout.dims, tensor))
    if (llvm::is_contained(factors, rule.ring->factor)) {
      list.push_back(*strategy.ring);
      layout.partial &= ~axisBit(*strategy.ring);
    }
}

/// Places what comes with halos, or sums of which rows go back: it is in parts
/// along the axes on which its readers are.
static void placeHalo(const ShardingRule &rule, const Strategy &strategy,
                      const TensorFactors &tensor, Layout &layout) {
  if (!strategy.halo)
    return;
  for (auto [list, factors] : llvm::zip_equal(layout.dims, tensor))
    if (llvm::is_contained(factors, rule.halo->factor)) {
      list = strategy.factorAxes[rule.halo->along];
      layout.partial &= ~axisSet(list);
    }
}

Layout shardc::operandLayout(const ShardingRule &rule, const Strategy &strategy,
                             unsigned operand) {
  const TensorFactors &tensor = rule.operands[operand];
  Layout layout = placeDims(tensor, strategy);
  placeRing(rule, strategy, tensor, layout);
  placeHalo(rule, strategy, tensor, layout);
  for (auto [axis, set] : strategy.passThrough)
    if (rule.linearSets[set] & (uint32_t(1) << operand))
      layout.partial |= axisBit(axis);
  return layout;
}

Layout shardc::resultLayout(const ShardingRule &rule, const Strategy &strategy,
                            unsigned result) {
  Layout layout = placeDims(rule.results[result], strategy);
  if (rule.isComplete(result))
    return layout;
  for (unsigned factor = 0; factor < rule.factors.size(); ++factor)
    if (leavesPartialSums(rule, factor, result))
      layout.partial |= axisSet(strategy.factorAxes[factor]);
  for (auto [axis, set] : strategy.passThrough)
    layout.partial |= axisBit(axis);
  placeRing(rule, strategy, rule.results[result], layout);
  placeHalo(rule, strategy, rule.results[result], layout);
  return layout;
}

AxisList shardc::statisticAxes(const ShardingRule &rule,
                               const Strategy &strategy) {
  AxisList axes;
  for (auto [factor, list] : llvm::zip_equal(rule.factors, strategy.factorAxes))
    if (needsStatistics(factor.kind))
      axes.append(list);
  llvm::sort(axes);
  return axes;
}

LocalExtents shardc::localExtents(const Mesh &mesh, const ShardingRule &rule,
                                  const Strategy &strategy) {
  LocalExtents local;
  for (auto [factor, axes] :
       llvm::zip_equal(rule.factors, strategy.factorAxes)) {
    local.extents.push_back(localExtent(mesh, factor.extent, axes));
    auto &cuts = local.cuts.emplace_back();
    for (AxisIndex axis : axes)
      cuts.push_back(mesh.axes[axis].size);
  }
  return local;
}

LocalExtents shardc::wholeExtents(const ShardingRule &rule) {
  LocalExtents whole;
  for (const Factor &factor : rule.factors)
    whole.extents.push_back(factor.extent);
  return whole;
}

/// A factor that shares a dimension with others stays whole.
static bool isAlone(const TensorFactors &tensor, unsigned factor) {
  return llvm::none_of(tensor, [&](const DimFactors &dim) {
    return dim.size() > 1 && llvm::is_contained(dim, factor);
  });
}

AxisList shardc::ringAxes(const Mesh &mesh, const ShardingRule &rule,
                          const Strategy &strategy) {
  AxisList axes;
  auto isAloneHere = [&](const TensorFactors &tensor) {
    return isAlone(tensor, rule.ring->factor);
  };
  if (!rule.ring || !strategy.factorAxes[rule.ring->factor].empty() ||
      !llvm::all_of(rule.operands, isAloneHere) ||
      !llvm::all_of(rule.results, isAloneHere))
    return axes;
  int64_t extent = rule.factors[rule.ring->factor].extent;
  for (unsigned along : rule.ring->along)
    for (AxisIndex axis : strategy.factorAxes[along])
      if (mesh.axes[axis].size > 1 && extent % mesh.axes[axis].size == 0)
        axes.push_back(axis);
  llvm::sort(axes);
  return axes;
}

bool shardc::mayReadHalos(const Mesh &mesh, const ShardingRule &rule,
                          const Strategy &strategy) {
  if (!rule.halo || !strategy.factorAxes[rule.halo->factor].empty())
    return false;
  auto isAloneHere = [&](const TensorFactors &tensor) {
    return isAlone(tensor, rule.halo->factor) &&
           isAlone(tensor, rule.halo->along);
  };
  int64_t extent = rule.factors[rule.halo->factor].extent;
  int64_t parts = mesh.groupSize(strategy.factorAxes[rule.halo->along]);
  return parts > 1 && extent % parts == 0 &&
         (rule.halo->dealt == 1 || rule.halo->dealt % parts == 0) &&
         rule.halo->rows <= extent / parts / rule.halo->stretches() &&
         llvm::all_of(rule.operands, isAloneHere) &&
         llvm::all_of(rule.results, isAloneHere);
}

//===----------------------------------------------------------------------===//
// Legality
//===----------------------------------------------------------------------===//

static std::string axisNames(const Mesh &mesh, llvm::ArrayRef<AxisIndex> axes) {
  return llvm::join(llvm::map_range(axes,
                                    [&](AxisIndex axis) {
                                      return "'" + mesh.axes[axis].name + "'";
                                    }),
                    ", ");
}

/// Visits the dimensions of all operands and results that merge factors, until
/// `visit` returns an error.
static std::optional<std::string> visitMergedDims(
    const ShardingRule &rule,
    llvm::function_ref<std::optional<std::string>(const DimFactors &)> visit) {
  auto visitTensors = [&](llvm::ArrayRef<TensorFactors> tensors) {
    std::optional<std::string> error;
    for (const TensorFactors &tensor : tensors)
      for (const DimFactors &dim : tensor)
        if (dim.size() > 1 && !error)
          error = visit(dim);
    return error;
  };
  if (auto error = visitTensors(rule.operands))
    return error;
  return visitTensors(rule.results);
}

/// Devices hold contiguous parts of a merged dimension: a factor may be split
/// only where the factors before it are down to one element, and evenly, since
/// padding in the middle of a dimension would shift what follows.
static std::optional<std::string> checkMergedDim(const Mesh &mesh,
                                                 const ShardingRule &rule,
                                                 const Strategy &strategy,
                                                 const DimFactors &dim) {
  const Factor *whole = nullptr;
  for (unsigned position : dim) {
    const Factor &factor = rule.factors[position];
    int64_t group = mesh.groupSize(strategy.factorAxes[position]);
    if (group > 1 && whole)
      return ("index '" + llvm::Twine(factor.name) +
              "' is sharded, but index '" + whole->name +
              "' before it in the same dimension is not down to one element "
              "on each device")
          .str();
    if (factor.extent % group != 0)
      return ("extent " + llvm::Twine(factor.extent) + " of index '" +
              factor.name +
              "', which shares a dimension with other indices, is not "
              "divisible by " +
              llvm::Twine(group))
          .str();
    if (group != factor.extent && !whole)
      whole = &factor;
  }
  return std::nullopt;
}

static std::optional<std::string> checkFactor(const Mesh &mesh,
                                              const Factor &factor,
                                              const AxisList &axes,
                                              bool allowPadding) {
  int64_t group = mesh.groupSize(axes);
  if (group == 1)
    return std::nullopt;
  if (factor.kind == FactorKind::Replicated)
    return ("index '" + llvm::Twine(factor.name) +
            "' must be whole on every device, but is placed on axis " +
            axisNames(mesh, axes))
        .str();
  if (!allowPadding && factor.extent % group != 0)
    return ("extent " + llvm::Twine(factor.extent) + " of index '" +
            factor.name + "' is not divisible by " + llvm::Twine(group) +
            ", the size of axis " + axisNames(mesh, axes))
        .str();
  return std::nullopt;
}

/// An axis is on one factor or carries partial sums of one set, once.
static std::optional<std::string> checkAxesOnce(const Mesh &mesh,
                                                const Strategy &strategy) {
  AxisSet used = 0;
  std::optional<std::string> error;
  auto use = [&](AxisIndex axis) {
    if ((used & axisBit(axis)) && !error)
      error = "axis '" + mesh.axes[axis].name + "' is used twice";
    used |= axisBit(axis);
  };
  for (const AxisList &list : strategy.factorAxes)
    llvm::for_each(list, use);
  for (auto [axis, set] : strategy.passThrough)
    use(axis);
  return error;
}

std::optional<std::string> shardc::checkStrategy(const Mesh &mesh,
                                                 const ShardingRule &rule,
                                                 const Strategy &strategy,
                                                 bool allowPadding) {
  assert(strategy.factorAxes.size() == rule.factors.size() &&
         "a strategy of another operation");
  if (auto error = checkAxesOnce(mesh, strategy))
    return error;
  for (auto [factor, axes] : llvm::zip_equal(rule.factors, strategy.factorAxes))
    if (auto error = checkFactor(mesh, factor, axes, allowPadding))
      return error;
  return visitMergedDims(rule, [&](const DimFactors &dim) {
    return checkMergedDim(mesh, rule, strategy, dim);
  });
}

//===----------------------------------------------------------------------===//
// Enumeration
//===----------------------------------------------------------------------===//

AxisBlocks shardc::separateAxes(const Mesh &mesh) {
  AxisBlocks axes;
  for (unsigned axis = 0; axis < mesh.size(); ++axis)
    if (mesh.axes[axis].size > 1 && !mesh.axes[axis].isStages)
      axes.push_back({AxisIndex(axis)});
  return axes;
}

/// Adds the ways of making `left` more blocks of `axes` to what `made` has.
static void addMergings(llvm::ArrayRef<AxisList> axes, unsigned left,
                        AxisBlocks &made, std::vector<AxisBlocks> &all) {
  if (left == 0) {
    if (axes.empty())
      all.push_back(made);
    return;
  }
  made.emplace_back();
  for (size_t taken = 1; taken + left <= axes.size() + 1; ++taken) {
    made.back().append(axes[taken - 1]);
    addMergings(axes.drop_front(taken), left - 1, made, all);
  }
  made.pop_back();
}

std::vector<AxisBlocks> shardc::mergeNeighbours(const AxisBlocks &axes,
                                                unsigned blocks) {
  std::vector<AxisBlocks> all;
  AxisBlocks made;
  addMergings(axes, blocks, made, all);
  return all;
}

/// Calls `visit` with `block` inserted at each place of `list` that is not
/// within another one of `blocks`, from the minor end to the major one, and
/// restores `list`. Inserting one block after the other makes every order of
/// every subset once.
static void forEachInsertion(AxisList &list, llvm::ArrayRef<AxisIndex> block,
                             llvm::ArrayRef<AxisList> blocks,
                             llvm::function_ref<void()> visit) {
  auto isWithin = [&](size_t place) {
    return place > 0 && place < list.size() &&
           llvm::any_of(
               blocks,
               [&](const AxisList &other) {
                 const auto *at = llvm::find(other, list[place - 1]);
                 return at != other.end() && at + 1 != other.end() &&
                        at[1] == list[place];
               });
  };
  for (size_t place = list.size() + 1; place-- > 0;) {
    if (isWithin(place))
      continue;
    list.insert(list.begin() + place, block.begin(), block.end());
    visit();
    list.erase(list.begin() + place, list.begin() + place + block.size());
  }
}

/// Calls `visit` with `axis` inserted at each place of `list`.
static void forEachInsertion(AxisList &list, AxisIndex axis,
                             llvm::function_ref<void()> visit) {
  forEachInsertion(list, {axis}, {}, visit);
}

namespace {
/// Depth-first over the blocks; each is idle, on a factor, or passes through.
class StrategyEnumerator {
public:
  StrategyEnumerator(const Mesh &mesh, const ShardingRule &rule,
                     const AxisBlocks &blocks, bool allowPadding)
      : mesh(mesh), rule(rule), allowPadding(allowPadding), blocks(blocks) {
    current.factorAxes.resize(rule.factors.size());
  }

  std::vector<Strategy> run() {
    place(0);
    return std::move(strategies);
  }

private:
  void place(unsigned position) {
    if (position == blocks.size()) {
      if (!checkStrategy(mesh, rule, current, allowPadding))
        strategies.push_back(current);
      return;
    }
    const AxisList &block = blocks[position];
    place(position + 1);
    for (auto [factor, list] :
         llvm::zip_equal(rule.factors, current.factorAxes))
      if (mayTake(factor, list, block))
        forEachInsertion(list, block, blocks, [&] { place(position + 1); });
    for (unsigned set = 0; set < rule.linearSets.size(); ++set) {
      size_t before = current.passThrough.size();
      for (AxisIndex axis : block)
        current.passThrough.push_back({axis, set});
      place(position + 1);
      current.passThrough.truncate(before);
    }
  }

  bool mayTake(const Factor &factor, const AxisList &list,
               const AxisList &block) const {
    if (factor.kind == FactorKind::Replicated)
      return false;
    int64_t group = mesh.groupSize(axisSet(list) | axisSet(block));
    return allowPadding || factor.extent % group == 0;
  }

  const Mesh &mesh;
  const ShardingRule &rule;
  bool allowPadding;
  const AxisBlocks &blocks;
  Strategy current;
  std::vector<Strategy> strategies;
};

/// Depth-first over the blocks; each is idle, on a dimension, or partial.
class LayoutEnumerator {
public:
  LayoutEnumerator(const Mesh &mesh, const TensorShape &shape, bool withPartial,
                   const AxisBlocks &blocks, bool allowPadding)
      : mesh(mesh), shape(shape), withPartial(withPartial),
        allowPadding(allowPadding), blocks(blocks),
        current(Layout::replicated(shape.rank())) {}

  std::vector<Layout> run() {
    place(0);
    return std::move(layouts);
  }

private:
  void place(unsigned position) {
    if (position == blocks.size()) {
      layouts.push_back(current);
      return;
    }
    const AxisList &block = blocks[position];
    place(position + 1);
    for (auto [extent, list] : llvm::zip_equal(shape.extents, current.dims)) {
      int64_t group = mesh.groupSize(axisSet(list) | axisSet(block));
      if (allowPadding || extent % group == 0)
        forEachInsertion(list, block, blocks, [&] { place(position + 1); });
    }
    if (!withPartial)
      return;
    current.partial |= axisSet(block);
    place(position + 1);
    current.partial &= ~axisSet(block);
  }

  const Mesh &mesh;
  const TensorShape &shape;
  bool withPartial;
  bool allowPadding;
  const AxisBlocks &blocks;
  Layout current;
  std::vector<Layout> layouts;
};
} // namespace

double shardc::countPlacements(size_t axes, unsigned dims) {
  double total = 1, ways = 1;
  for (size_t placed = 0; placed < axes; ++placed) {
    ways *= double(axes - placed) * (dims + placed) / (placed + 1);
    total += ways;
  }
  return total;
}

std::vector<Strategy> shardc::enumerateStrategies(const Mesh &mesh,
                                                  const ShardingRule &rule,
                                                  const AxisBlocks &blocks,
                                                  bool allowPadding) {
  return StrategyEnumerator(mesh, rule, blocks, allowPadding).run();
}

std::vector<Layout> shardc::enumerateLayouts(const Mesh &mesh,
                                             const TensorShape &shape,
                                             bool withPartial,
                                             const AxisBlocks &blocks,
                                             bool allowPadding) {
  return LayoutEnumerator(mesh, shape, withPartial, blocks, allowPadding).run();
}

std::vector<Strategy> shardc::neighbourStrategies(const Mesh &mesh,
                                                  const ShardingRule &rule,
                                                  const Strategy &strategy,
                                                  bool allowPadding) {
  std::vector<Strategy> neighbours;
  Strategy moved;
  auto add = [&] {
    llvm::sort(moved.passThrough);
    if (!(moved == strategy) && !checkStrategy(mesh, rule, moved, allowPadding))
      neighbours.push_back(moved);
  };
  for (const AxisList &block : separateAxes(mesh)) {
    AxisIndex axis = block.front();
    Strategy without = strategy;
    for (AxisList &list : without.factorAxes)
      llvm::erase(list, axis);
    llvm::erase_if(without.passThrough,
                   [&](auto passed) { return passed.first == axis; });
    moved = without;
    add();
    for (AxisList &list : moved.factorAxes)
      forEachInsertion(list, axis, add);
    for (unsigned set = 0; set < rule.linearSets.size(); ++set) {
      moved = without;
      moved.passThrough.push_back({axis, set});
      add();
    }
  }
  return neighbours;
}

std::vector<Layout> shardc::neighbourLayouts(const Mesh &mesh,
                                             const TensorShape &shape,
                                             const Layout &layout,
                                             bool withPartial,
                                             bool allowPadding) {
  std::vector<Layout> neighbours;
  Layout moved;
  auto add = [&] {
    if (!(moved == layout) && (allowPadding || divides(mesh, shape, moved)))
      neighbours.push_back(moved);
  };
  for (const AxisList &block : separateAxes(mesh)) {
    AxisIndex axis = block.front();
    moved = layout;
    for (AxisList &list : moved.dims)
      llvm::erase(list, axis);
    moved.partial &= ~axisBit(axis);
    add();
    for (AxisList &list : moved.dims)
      forEachInsertion(list, axis, add);
    if (!withPartial)
      continue;
    moved.partial |= axisBit(axis);
    add();
  }
  return neighbours;
}

//===----------------------------------------------------------------------===//
// From layouts to a strategy
//===----------------------------------------------------------------------===//

namespace {
/// Gathers what layouts say of each factor; the first error stops it.
class StrategyInference {
public:
  StrategyInference(const Mesh &mesh, const ShardingRule &rule)
      : mesh(mesh), rule(rule), placed(rule.factors.size()) {}

  bool addOperand(const TensorFactors &tensor, const Layout &layout);
  bool addPartialSums(llvm::ArrayRef<std::optional<Layout>> operands);
  void addResult(const TensorFactors &tensor, const Layout &layout);

  Strategy take();
  std::string error;

private:
  bool fail(const llvm::Twine &message) {
    error = message.str();
    return false;
  }
  bool splitDim(const DimFactors &dim, llvm::ArrayRef<AxisIndex> axes,
                llvm::SmallVectorImpl<AxisList> &parts);
  bool placeFactor(unsigned factor, const AxisList &axes);
  bool samePlacement(const AxisList &a, const AxisList &b) const;

  const Mesh &mesh;
  const ShardingRule &rule;
  llvm::SmallVector<std::optional<AxisList>, 6> placed;
  llvm::SmallVector<std::pair<AxisIndex, unsigned>, 1> passThrough;
  /// Axes that a factor or a partial sum has.
  AxisSet used = 0;
};
} // namespace

/// Divides the axes of a merged dimension among its factors: each takes axes
/// until it is down to one element, the last one takes the rest.
bool StrategyInference::splitDim(const DimFactors &dim,
                                 llvm::ArrayRef<AxisIndex> axes,
                                 llvm::SmallVectorImpl<AxisList> &parts) {
  if (dim.empty())
    return mesh.groupSize(axes) == 1 ||
           fail("a dimension without an index must be whole on every device, "
                "but is placed on axis " +
                axisNames(mesh, axes));
  for (unsigned position : llvm::ArrayRef(dim).drop_back()) {
    const Factor &factor = rule.factors[position];
    int64_t left = factor.extent;
    AxisList &part = parts.emplace_back();
    while (left > 1 && !axes.empty()) {
      int64_t size = mesh.axes[axes.front()].size;
      if (left % size != 0)
        return fail("index '" + llvm::Twine(factor.name) +
                    "' of a dimension that is merged or split has " +
                    llvm::Twine(left) + " elements left, which axis '" +
                    mesh.axes[axes.front()].name + "' of size " +
                    llvm::Twine(size) + " does not divide");
      left /= size;
      part.push_back(axes.front());
      axes = axes.drop_front();
    }
  }
  parts.emplace_back(axes.begin(), axes.end());
  return true;
}

/// Equal but for axes of size 1, which change nothing.
bool StrategyInference::samePlacement(const AxisList &a,
                                      const AxisList &b) const {
  auto matters = [&](AxisIndex axis) { return mesh.axes[axis].size > 1; };
  return llvm::equal(llvm::make_filter_range(a, matters),
                     llvm::make_filter_range(b, matters));
}

bool StrategyInference::placeFactor(unsigned factor, const AxisList &axes) {
  if (placed[factor])
    return samePlacement(*placed[factor], axes) ||
           fail("operands place index '" +
                llvm::Twine(rule.factors[factor].name) + "' differently");
  for (AxisIndex axis : axes) {
    if (used & axisBit(axis))
      return fail("axis '" + llvm::Twine(mesh.axes[axis].name) +
                  "' places index '" + rule.factors[factor].name +
                  "' and another index");
    used |= axisBit(axis);
  }
  placed[factor] = axes;
  return true;
}

bool StrategyInference::addOperand(const TensorFactors &tensor,
                                   const Layout &layout) {
  for (auto [dim, axes] : llvm::zip_equal(tensor, layout.dims)) {
    llvm::SmallVector<AxisList, 2> parts;
    if (!splitDim(dim, axes, parts))
      return false;
    for (auto [factor, part] : llvm::zip_equal(dim, parts))
      if (!placeFactor(factor, part))
        return false;
  }
  return true;
}

bool StrategyInference::addPartialSums(
    llvm::ArrayRef<std::optional<Layout>> operands) {
  uint32_t known = 0;
  for (auto [position, layout] : llvm::enumerate(operands))
    if (layout)
      known |= uint32_t(1) << position;
  for (unsigned axis = 0; axis < mesh.size(); ++axis) {
    uint32_t partial = 0;
    for (auto [position, layout] : llvm::enumerate(operands))
      if (layout && (layout->partial & axisBit(axis)))
        partial |= uint32_t(1) << position;
    if (partial == 0)
      continue;
    const auto *set = llvm::find_if(rule.linearSets, [&](uint32_t candidate) {
      return (candidate & known) == partial;
    });
    if (set == rule.linearSets.end())
      return fail("the operation is not linear in the operands that hold "
                  "partial sums over axis '" +
                  llvm::Twine(mesh.axes[axis].name) + "'");
    if (used & axisBit(axis))
      return fail("axis '" + llvm::Twine(mesh.axes[axis].name) +
                  "' places an index of one operand and holds partial sums of "
                  "another");
    used |= axisBit(axis);
    passThrough.push_back(
        {axis, static_cast<unsigned>(set - rule.linearSets.begin())});
  }
  return true;
}

/// A result speaks only for factors about which no operand does, and only as
/// far as its axes are free: the rest is a reshard of the result.
void StrategyInference::addResult(const TensorFactors &tensor,
                                  const Layout &layout) {
  for (auto [dim, axes] : llvm::zip_equal(tensor, layout.dims)) {
    llvm::SmallVector<AxisList, 2> parts;
    if (!splitDim(dim, axes, parts)) {
      error.clear();
      continue;
    }
    for (auto [factor, part] : llvm::zip_equal(dim, parts)) {
      if (placed[factor] || (used & axisSet(part)))
        continue;
      placed[factor] = part;
      used |= axisSet(part);
    }
  }
}

Strategy StrategyInference::take() {
  Strategy strategy;
  for (std::optional<AxisList> &axes : placed)
    strategy.factorAxes.push_back(axes ? std::move(*axes) : AxisList());
  strategy.passThrough = std::move(passThrough);
  return strategy;
}

std::optional<Strategy>
shardc::inferStrategy(const Mesh &mesh, const ShardingRule &rule,
                      llvm::ArrayRef<std::optional<Layout>> operands,
                      llvm::ArrayRef<std::optional<Layout>> results,
                      std::string *why) {
  StrategyInference inference(mesh, rule);
  auto addOperands = [&] {
    for (auto [tensor, layout] : llvm::zip_equal(rule.operands, operands))
      if (layout && !inference.addOperand(tensor, *layout))
        return false;
    return inference.addPartialSums(operands);
  };
  if (!addOperands()) {
    if (why)
      *why = std::move(inference.error);
    return std::nullopt;
  }
  for (auto [tensor, layout] : llvm::zip_equal(rule.results, results))
    if (layout)
      inference.addResult(tensor, *layout);
  return inference.take();
}
