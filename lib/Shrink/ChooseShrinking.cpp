//===- ChooseShrinking.cpp - What the extents of a plan must keep ---------===//
//
// Collects what a planned program needs of its extents and mesh axes, and
// solves for small ones.
//
//===----------------------------------------------------------------------===//

#include "ExtentProblem.h"
#include "ShrunkAxes.h"
#include "shardc/Dialect/Shd/IR/Experts.h"
#include "shardc/Dialect/Shd/IR/Halo.h"
#include "shardc/Dialect/Shd/IR/Order.h"
#include "shardc/Dialect/Shd/IR/RingAttention.h"
#include "shardc/Dialect/Shd/IR/Segments.h"
#include "shardc/Reshard/Permutation.h"
#include "shardc/Shrink/Shrink.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

/// Devices up to which rings have three, so that their two ways differ: larger
/// meshes make programs too large to run.
static constexpr int64_t kDevicesForTwoWays = 8;

namespace {
/// The constraints of programs on their extents; extents of 1 stay and are left
/// out of all but `combinations`. The axes of all meshes are those of one, one
/// program's after the other's.
class ExtentUses {
public:
  explicit ExtentUses(llvm::ArrayRef<ProgramOp> programs);

  /// One for each program.
  std::vector<Shrinking> choose(const ShrinkOptions &options) const;

private:
  using Parts = SmallVector<int64_t, 3>;
  using Combination = std::pair<int64_t, Parts>;
  /// A class of indices in zigzag order: the parts that it is dealt to and
  /// the extents.
  struct DealtClass {
    int64_t parts = 1;
    std::set<int64_t> extents;
  };

  void visit(Operation *op);
  void visitType(Type type, unsigned stacked = 0);
  void visitMergedDims(ShardingRuleOpInterface op);
  void visitPositions(PositionsOpInterface op);
  void visitMergedDim(const ShardingRule &rule, const Strategy &strategy,
                      const DimFactors &dim);
  void visitRules(ExtentsOpInterface op);
  void visitPermute(CollectivePermuteOp op);
  void visitHalo(Operation *halo, Value part);
  void visitHalves(Operation *collective);
  std::map<int64_t, int64_t> smallHalos(const Mesh &shrunk,
                                        const Shrinking &shrinking) const;
  void visitExperts(ExpertsOpInterface op);
  void visitOrders(Operation *op);
  void visitSegments(RepeatOp repeat);
  std::optional<int64_t> countInSegments(int64_t count) const;
  bool segmentsFit(const ShrunkExtents &extents) const;
  int64_t dealtParts(const DealtClass &known, const Mesh &shrunk) const;
  void growSlots(ShrunkExtents &extents, ExtentProblem problem) const;
  void visitPosition(Value table, int64_t dim, Value position);
  void addCombination(std::set<Combination> &to, int64_t whole, Parts parts);
  std::optional<Layout> layoutOf(Value value) const;
  Layout layoutOf(ShardingAttr sharding) const;
  Mesh smallMesh(const ShrinkOptions &options, AxisSet kept) const;
  ExtentProblem problem(const Mesh &shrunk, const ShrinkOptions &options) const;

  Mesh mesh;
  /// Each program's mesh, and where it begins in `mesh`.
  std::vector<std::pair<Mesh, unsigned>> meshes;
  /// The program that is visited.
  size_t current = 0;
  /// The sets of axes that split an extent; empty: no axis does.
  std::map<int64_t, std::set<AxisSet>> placements;
  /// Extents that axes split down to one element, where axes of another index
  /// follow in the same dimension.
  std::set<std::pair<int64_t, AxisSet>> exhausted;
  std::set<Combination> products, sums;
  /// By how much one extent exceeds another.
  std::map<std::pair<int64_t, int64_t>, int64_t> distances;
  std::set<int64_t> even, counts, selectedByCount;
  /// Repeats in segments: how often they run where they are small.
  std::map<int64_t, int64_t> ofSegments;
  bool keepsSegments = false;
  EqualGroups equalGroups;
  /// Extents of which halves of a device's part go both ways around a ring, and
  /// the axes that split them.
  std::set<std::pair<int64_t, AxisSet>> halved;
  /// Those of such rings, and of halos from both neighbours.
  AxisSet twoWays = 0;
  /// By the rows of a halo, the extents along which they are exchanged, the
  /// axes of these, and the stretches that each part has.
  std::map<int64_t, std::set<std::tuple<int64_t, AxisSet, int64_t>>> halos;
  /// By the program and the class's number there.
  using DealtKey = std::pair<size_t, int64_t>;
  std::map<DealtKey, DealtClass> dealt;
  /// Slots that no run may lack, and the extents of a group's tokens.
  std::set<std::pair<int64_t, Parts>> enoughSlots;
};
} // namespace

//===----------------------------------------------------------------------===//
// Reading the program
//===----------------------------------------------------------------------===//

ExtentUses::ExtentUses(llvm::ArrayRef<ProgramOp> programs) {
  for (ProgramOp program : programs) {
    current = meshes.size();
    Mesh own = toMesh(program.getMeshAttr());
    meshes.push_back({own, unsigned(mesh.size())});
    llvm::append_range(mesh.axes, own.axes);
    program.getBody().walk([&](Operation *op) { visit(op); });
  }
}

/// Over the axes of all programs.
Layout ExtentUses::layoutOf(ShardingAttr sharding) const {
  const auto &[own, first] = meshes[current];
  Layout layout = toLayout(own, sharding);
  for (AxisList &axes : layout.dims)
    for (AxisIndex &axis : axes)
      axis += first;
  layout.partial <<= first;
  return layout;
}

/// Null if the value has dimensions, but no sharding.
std::optional<Layout> ExtentUses::layoutOf(Value value) const {
  if (ShardingAttr sharding = getSharding(value.getType()))
    return layoutOf(sharding);
  if (cast<RankedTensorType>(value.getType()).getRank() == 0)
    return Layout::replicated(0);
  return std::nullopt;
}

/// Without the dimensions of a stack, which are as long as repeats run.
void ExtentUses::visitType(Type type, unsigned stacked) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return;
  ShardingAttr sharding = getSharding(tensor);
  Layout layout =
      sharding ? layoutOf(sharding) : Layout::replicated(tensor.getRank());
  for (auto [extent, axes] : llvm::drop_begin(
           llvm::zip_equal(tensor.getShape(), layout.dims), stacked)) {
    if (extent == 1)
      continue;
    std::set<AxisSet> &known = placements[extent];
    if (!axes.empty())
      known.insert(axisSet(axes));
  }
}

void ExtentUses::addCombination(std::set<Combination> &to, int64_t whole,
                                Parts parts) {
  // One part is the whole, and so is the only part of a product that counts.
  bool isTrivial = parts.size() < 2 || llvm::is_contained(parts, whole);
  if (isTrivial)
    return;
  llvm::sort(parts);
  to.insert({whole, parts});
}

/// A device's part of a merged dimension is contiguous: where an index is split
/// although one before it in the same dimension is split too, that one is down
/// to one element, and must be afterwards.
void ExtentUses::visitMergedDim(const ShardingRule &rule,
                                const Strategy &strategy,
                                const DimFactors &dim) {
  Parts parts;
  int64_t whole = 1;
  for (unsigned factor : dim) {
    parts.push_back(rule.factors[factor].extent);
    whole *= parts.back();
  }
  addCombination(products, whole, parts);
  bool isLaterSplit = false;
  for (unsigned factor : llvm::reverse(dim)) {
    AxisSet axes = axisSet(strategy.factorAxes[factor]);
    if (isLaterSplit && axes != 0)
      exhausted.insert({rule.factors[factor].extent, axes});
    isLaterSplit |= axes != 0;
  }
}

static bool hasMergedDims(const ShardingRule &rule) {
  auto isMerged = [](const TensorFactors &tensor) {
    return llvm::any_of(tensor,
                        [](const DimFactors &dim) { return dim.size() > 1; });
  };
  return llvm::any_of(rule.operands, isMerged) ||
         llvm::any_of(rule.results, isMerged);
}

void ExtentUses::visitMergedDims(ShardingRuleOpInterface op) {
  ShardingRule rule = op.getShardingRule();
  if (!hasMergedDims(rule))
    return;
  SmallVector<std::optional<Layout>> operands, results;
  for (unsigned i = 0; i < rule.operands.size(); ++i)
    operands.push_back(layoutOf(op->getOperand(i)));
  for (Value result : op->getResults())
    results.push_back(layoutOf(result));
  std::optional<Strategy> strategy =
      inferStrategy(mesh, rule, operands, results);
  assert(strategy && "an operation that verifies has a strategy");
  for (const auto &tensors :
       {ArrayRef<TensorFactors>(rule.operands), ArrayRef(rule.results)})
    for (const TensorFactors &tensor : tensors)
      for (const DimFactors &dim : tensor)
        if (dim.size() > 1)
          visitMergedDim(rule, *strategy, dim);
}

void ExtentUses::visitRules(ExtentsOpInterface op) {
  ExtentRules rules;
  op.collectExtentRules(rules);
  even.insert(rules.even.begin(), rules.even.end());
  for (const ExtentRules::Sum &sum : rules.sums)
    addCombination(sums, sum.whole, sum.parts);
  for (const ExtentRules::Distance &each : rules.distances) {
    int64_t &distance = distances[{each.part, each.whole}];
    distance = std::max(distance, each.least);
  }
}

/// Parts keep their sizes, so axes that take each other's places split alike,
/// in a dimension and in each of the exchanges that it falls into.
void ExtentUses::visitPermute(CollectivePermuteOp op) {
  std::optional<Layout> from = layoutOf(op.getInput());
  std::optional<Layout> to = layoutOf(op.getResult());
  auto equate = [&](ArrayRef<AxisIndex> before, ArrayRef<AxisIndex> after) {
    AxisSet common = axisSet(before) & axisSet(after);
    if (AxisSet left = axisSet(before) & ~common)
      equalGroups.insert({left, axisSet(after) & ~common});
  };
  for (auto [before, after] : llvm::zip_equal(from->dims, to->dims))
    equate(before, after);
  reshard::Permutation permutation(mesh, *from, *to);
  for (const auto &[before, after] : permutation.exchanged())
    equate(before, after);
}

void ExtentUses::visitHalo(Operation *halo, Value part) {
  int64_t rows = halo->getAttrOfType<IntegerAttr>("rows").getInt();
  int64_t dim = halo->getAttrOfType<IntegerAttr>("dim").getInt();
  AxisSet axes = axisSet(ArrayRef(layoutOf(part)->dims[dim]));
  int64_t stretches = haloRows(halo) / rows;
  halos[rows].insert({cast<RankedTensorType>(part.getType()).getDimSize(dim),
                      axes, stretches});
  if (stretches > 1)
    twoWays |= axes;
}

/// A half of what travels is a slice of a device's part.
void ExtentUses::visitHalves(Operation *collective) {
  StringRef index = halvedIndex(collective);
  if (index.empty())
    return;
  Value part = collective->getOperand(0);
  std::optional<Layout> layout = layoutOf(part);
  auto names = collective->getAttrOfType<ArrayAttr>(kIndices);
  for (auto [dim, name] : llvm::enumerate(names.getAsValueRange<StringAttr>()))
    if (name == index)
      halved.insert({cast<RankedTensorType>(part.getType()).getDimSize(dim),
                     axisSet(layout->dims[dim])});
  const auto &[own, first] = meshes[current];
  for (StringAttr axis :
       collective->getAttrOfType<ArrayAttr>("axes").getAsRange<StringAttr>())
    twoWays |= axisBit(*own.find(axis.getValue()) + first);
}

/// Rows that are a whole stretch of positions stay one, others become less than
/// one where small ones have more than one row.
std::map<int64_t, int64_t>
ExtentUses::smallHalos(const Mesh &shrunk, const Shrinking &shrinking) const {
  std::map<int64_t, int64_t> small;
  for (const auto &[rows, uses] : halos) {
    int64_t &least = small.try_emplace(rows, rows).first->second;
    for (const auto &[extent, axes, stretches] : uses) {
      int64_t most =
          shrinking.extent(extent) / shrunk.groupSize(axes) / stretches;
      bool isWhole = rows == extent / mesh.groupSize(axes) / stretches;
      least = std::min(least, isWhole ? most : std::max<int64_t>(most - 1, 1));
    }
  }
  return small;
}

/// Tensors stacked along a repeated index and read (or written) at the
/// iteration's number.
void ExtentUses::visitPosition(Value table, int64_t dim, Value position) {
  auto number = dyn_cast<BlockArgument>(position);
  if (!number || number.getArgNumber() != 0)
    return;
  auto repeat = dyn_cast<RepeatOp>(number.getOwner()->getParentOp());
  int64_t extent = cast<RankedTensorType>(table.getType()).getDimSize(dim);
  if (repeat && int64_t(repeat.getCount()) == extent)
    selectedByCount.insert(extent);
}

/// Without drops, slots are those of the mean load; a run takes as many as one
/// expert may need.
void ExtentUses::visitExperts(ExpertsOpInterface op) {
  if (!op.getDropless())
    return;
  ExpertIndices indices = ExpertIndices::of(op);
  auto names = indicesOf(cast<ShardingRuleOpInterface>(op.getOperation()),
                         kPicksOperand);
  Parts tokens;
  for (auto [name, extent] : llvm::zip_equal(
           names, cast<RankedTensorType>(op.getPicks().getType()).getShape()))
    if (llvm::is_contained(indices.tokens, name))
      tokens.push_back(extent);
  enoughSlots.insert({ExpertExtents::of(op).slots, tokens});
}

/// After all other extents are known: where others depend on the slots' extent,
/// all are chosen again.
void ExtentUses::growSlots(ShrunkExtents &extents,
                           ExtentProblem problem) const {
  auto numberOf = [&](int64_t original) -> std::optional<unsigned> {
    for (auto [i, extent] : llvm::enumerate(problem.extents))
      if (extent.original == original)
        return i;
    return std::nullopt;
  };
  bool isRelated = false;
  for (const auto &[slots, tokens] : enoughSlots) {
    std::optional<unsigned> number = numberOf(slots);
    int64_t needed = 1;
    for (int64_t extent : tokens)
      if (std::optional<unsigned> token = numberOf(extent))
        needed *= extents.values[*token];
    if (!number || extents.values[*number] >= needed)
      continue;
    ShrinkableExtent &limits = problem.extents[*number];
    limits.least = llvm::divideCeil(needed, limits.step) * limits.step;
    limits.most = std::max(limits.most, limits.least);
    extents.values[*number] = limits.least;
    isRelated |=
        llvm::any_of(problem.combinations, [&](const ExtentCombination &each) {
          return each.whole == *number ||
                 llvm::is_contained(each.parts, *number);
        });
  }
  if (isRelated)
    extents = solve(problem);
}

void ExtentUses::visitPositions(PositionsOpInterface op) {
  for (auto [dim, position] : llvm::zip_equal(op.getDims(), op.getPositions()))
    visitPosition(op.getPositioned(), dim, position);
}

void ExtentUses::visitOrders(Operation *op) {
  auto entries = op->getAttrOfType<DictionaryAttr>(kDealt);
  if (!entries)
    return;
  auto note = [&](StringRef index, int64_t extent) {
    auto entry = entries.getAs<DenseI64ArrayAttr>(index);
    if (!entry)
      return;
    DealtClass &known = dealt[{current, entry[0]}];
    known.parts = entry[1];
    known.extents.insert(extent);
  };
  if (auto computes = dyn_cast<ShardingRuleOpInterface>(op))
    for (const Factor &factor : computes.getShardingRule().factors)
      note(factor.name, factor.extent);
  else if (auto declare = dyn_cast<DeclareOp>(op))
    for (auto [name, extent] :
         llvm::zip_equal(declare.getIndices().getAsValueRange<StringAttr>(),
                         declare.getType().getShape()))
      note(name, extent);
}

/// Two segments of two iterations; three where the last one is shorter, and of
/// three iterations where that one has several: each then issues collectives
/// for the next one as before. Where one number would become several ones, all
/// stay.
void ExtentUses::visitSegments(RepeatOp repeat) {
  std::optional<Segments> segments = segmentsOf(repeat);
  if (!segments)
    return;
  bool isUneven = segments->shortage() > 0;
  int64_t rest = segments->length - segments->shortage();
  Segments small = *segments;
  small.length =
      std::min<int64_t>(segments->length, isUneven && rest > 1 ? 3 : 2);
  small.total =
      std::min<int64_t>(segments->number(), isUneven ? 3 : 2) * small.length -
      (isUneven ? 1 : 0);
  auto become = [&](int64_t count, int64_t shrunk) {
    counts.insert(count);
    keepsSegments |=
        ofSegments.try_emplace(count, shrunk).first->second != shrunk;
  };
  become(segments->total, small.total);
  become(segments->length, small.length);
  become(segments->number(), small.number());
  become(segments->partsOfCarried(), small.partsOfCarried());
  become(repeat.getCount(), small.length - small.left);
}

/// Nothing for repeats that do not run in segments.
std::optional<int64_t> ExtentUses::countInSegments(int64_t count) const {
  auto known = ofSegments.find(count);
  if (known == ofSegments.end())
    return std::nullopt;
  return keepsSegments ? count : known->second;
}

/// Parts of a class on the small mesh: as few as attention is balanced with.
int64_t ExtentUses::dealtParts(const DealtClass &known,
                               const Mesh &shrunk) const {
  int64_t parts = 1;
  for (int64_t extent : known.extents)
    if (auto axes = placements.find(extent); axes != placements.end())
      for (AxisSet set : axes->second)
        if (known.parts % mesh.groupSize(set) == 0)
          parts = std::lcm(parts, shrunk.groupSize(set));
  return parts;
}

void ExtentUses::visit(Operation *op) {
  visitOrders(op);
  for (Value result : op->getResults()) {
    visitType(result.getType(), stackedDims(result));
    if (stackedDims(result) > 0 && isReadWhole(result))
      for (int64_t count : cast<RankedTensorType>(result.getType())
                               .getShape()
                               .take_front(stackedDims(result)))
        selectedByCount.insert(count);
  }
  for (Region &region : op->getRegions())
    for (Type type : region.getArgumentTypes())
      visitType(type);
  if (auto repeat = dyn_cast<RepeatOp>(op)) {
    counts.insert(repeat.getCount());
    visitSegments(repeat);
  }
  if (auto permute = dyn_cast<CollectivePermuteOp>(op))
    visitPermute(permute);
  if (auto halo = dyn_cast<HaloExchangeOp>(op))
    visitHalo(halo, halo.getInput());
  if (auto halo = dyn_cast<HaloReduceOp>(op))
    visitHalo(halo, halo.getResult());
  visitHalves(op);
  if (auto computed = dyn_cast<ShardingRuleOpInterface>(op))
    visitMergedDims(computed);
  if (auto ruled = dyn_cast<ExtentsOpInterface>(op))
    visitRules(ruled);
  if (auto experts = dyn_cast<ExpertsOpInterface>(op))
    visitExperts(experts);
  if (auto positioned = dyn_cast<PositionsOpInterface>(op))
    visitPositions(positioned);
}

//===----------------------------------------------------------------------===//
// Solving
//===----------------------------------------------------------------------===//

/// Adds the constraints of the axes that split an extent.
static void addPlacement(ShrinkableExtent &extent, const Mesh &mesh,
                         const Mesh &shrunk, AxisSet axes) {
  int64_t before = mesh.groupSize(axes), after = shrunk.groupSize(axes);
  bool isDivided = extent.original % before == 0;
  extent.axes |= axes;
  if (isDivided)
    extent.divideBy(after);
  else
    extent.uneven.push_back(after);
  if (extent.original > before)
    extent.preferred =
        std::max(extent.preferred, isDivided ? 2 * after : after + 1);
}

ExtentProblem ExtentUses::problem(const Mesh &shrunk,
                                  const ShrinkOptions &options) const {
  ExtentProblem problem;
  problem.prefersOrder = options.keepsOrder;
  std::map<int64_t, unsigned> numbers;
  for (const auto &[original, axes] : placements) {
    numbers[original] = problem.extents.size();
    ShrinkableExtent &extent = problem.extents.emplace_back(original);
    extent.isCount = selectedByCount.count(original);
    for (AxisSet set : axes)
      addPlacement(extent, mesh, shrunk, set);
    if (auto least = options.least.find(original); least != options.least.end())
      extent.least = std::max(extent.least, least->second);
    if (extent.isCount)
      extent.preferred = extent.least;
    if (std::optional<int64_t> count = countInSegments(original);
        count && extent.isCount)
      extent.fixTo(*count);
    if (even.count(original))
      extent.divideBy(2);
  }
  for (const auto &[key, known] : dealt)
    for (int64_t extent : known.extents)
      if (auto it = numbers.find(extent); it != numbers.end())
        problem.extents[it->second].divideBy(2 * dealtParts(known, shrunk));
  for (auto [extent, axes] : halved)
    problem.extents[numbers[extent]].divideBy(2 * shrunk.groupSize(axes));
  // A stretch of two rows may have a halo of one.
  for (const auto &[rows, uses] : halos)
    for (const auto &[extent, axes, stretches] : uses)
      if (stretches > 1 && rows * stretches < extent / mesh.groupSize(axes))
        problem.extents[numbers[extent]].divideBy(2 * stretches *
                                                  shrunk.groupSize(axes));
  for (auto [extent, axes] : exhausted)
    problem.extents[numbers[extent]].fixTo(shrunk.groupSize(axes));
  auto addCombinations = [&](const std::set<Combination> &from,
                             ExtentCombination::Kind kind) {
    for (const auto &[whole, parts] : from) {
      ExtentCombination &combination =
          problem.combinations.emplace_back(kind, numbers[whole]);
      for (int64_t part : parts) {
        if (part == 1)
          ++combination.ones;
        else
          combination.parts.push_back(numbers[part]);
      }
    }
  };
  addCombinations(products, ExtentCombination::Kind::Product);
  addCombinations(sums, ExtentCombination::Kind::Sum);
  auto wanted = distances;
  for (auto [pair, least] : options.distances)
    if (numbers.count(pair.second) &&
        (pair.first == 1 || numbers.count(pair.first)))
      wanted[pair] = std::max(wanted[pair], least);
  for (auto [pair, least] : wanted) {
    auto [smaller, larger] = pair;
    if (smaller == 1)
      problem.extents[numbers[larger]].least =
          std::max<int64_t>(problem.extents[numbers[larger]].least, 1 + least);
    else
      problem.distances.push_back({numbers[smaller], numbers[larger], least});
  }
  return problem;
}

/// Axes that are smaller than they were.
static AxisSet smallerAxes(const Mesh &mesh, const Mesh &shrunk) {
  AxisSet axes = 0;
  for (unsigned axis = 0; axis < mesh.size(); ++axis)
    if (shrunk.axes[axis].size < mesh.axes[axis].size)
      axes |= axisBit(axis);
  return axes;
}

/// With axes of which the two ways differ, where that takes few devices.
Mesh ExtentUses::smallMesh(const ShrinkOptions &options, AxisSet kept) const {
  Mesh small = shrinkAxes(mesh, equalGroups, options.maxAxis, kept, twoWays);
  return small.numDevices() <= kDevicesForTwoWays
             ? small
             : shrinkAxes(mesh, equalGroups, options.maxAxis, kept);
}

/// Numbers of iterations that are extents, too, became those of the segments.
bool ExtentUses::segmentsFit(const ShrunkExtents &extents) const {
  return llvm::all_of(
      llvm::zip_equal(placements, extents.values), [&](const auto &entry) {
        const auto &[use, value] = entry;
        std::optional<int64_t> count = countInSegments(use.first);
        return !count || !selectedByCount.count(use.first) || *count == value;
      });
}

/// Where an extent cannot be what the segments of a repeat need, these stay.
std::vector<Shrinking> ExtentUses::choose(const ShrinkOptions &options) const {
  AxisSet kept = 0;
  Mesh shrunk = smallMesh(options, kept);
  ShrunkExtents extents = solve(problem(shrunk, options));
  // Keeping axes keeps extents legal: with all of them, any program is.
  while (AxisSet unmet = extents.unmetAxes & smallerAxes(mesh, shrunk)) {
    kept |= axisBit(llvm::countr_zero(unmet));
    shrunk = smallMesh(options, kept);
    extents = solve(problem(shrunk, options));
  }
  if (!keepsSegments && !segmentsFit(extents)) {
    ExtentUses others = *this;
    others.keepsSegments = true;
    return others.choose(options);
  }
  growSlots(extents, problem(shrunk, options));
  Shrinking shrinking;
  for (const auto &[use, value] : llvm::zip_equal(placements, extents.values))
    shrinking.extents[use.first] = value;
  for (int64_t count : counts) {
    int64_t small = std::min<int64_t>(count, 2);
    shrinking.counts[count] = selectedByCount.count(count)
                                  ? shrinking.extent(count)
                                  : countInSegments(count).value_or(small);
  }
  shrinking.halos = smallHalos(shrunk, shrinking);
  std::vector<Shrinking> all(meshes.size(), shrinking);
  for (const auto &[key, known] : dealt)
    all[key.first].dealt[key.second] = dealtParts(known, shrunk);
  for (auto [each, place] : llvm::zip_equal(all, meshes))
    for (const MeshAxis &axis :
         llvm::ArrayRef(shrunk.axes).slice(place.second, place.first.size()))
      each.axes.push_back(axis.size);
  return all;
}

Shrinking shardc::chooseShrinking(ProgramOp planned,
                                  const ShrinkOptions &options) {
  return chooseShrinking(llvm::ArrayRef(planned), options).front();
}

std::vector<Shrinking>
shardc::chooseShrinking(llvm::ArrayRef<ProgramOp> planned,
                        const ShrinkOptions &options) {
  assert(options.maxAxis >= 2 && "collectives need axes of at least 2 devices");
  return ExtentUses(planned).choose(options);
}
