//===- LayoutSearchTest.cpp - Plans against exhaustive search -------------===//
//
// An independent search: it generates the moves of each layout from their
// definitions (the planner recognises them between pairs of layouts), relaxes
// all of them until nothing changes, and lists every cheapest sequence.
//
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "shardc/Reshard/Reshard.h"
#include "shardc/Sharding/ShardingRule.h"
#include "gtest/gtest.h"
#include <cmath>
#include <functional>
#include <limits>
#include <map>

using namespace shardc;
using namespace shardc::test;

namespace {

using Kind = CollectiveKind;

struct OracleMove {
  Kind kind;
  AxisSet axes;
  Layout to;
  double seconds;
};

AxisList sortedList(AxisSet axes) {
  AxisList list;
  for (AxisIndex axis = 0; axis < kMaxMeshAxes; ++axis)
    if (axes & axisBit(axis))
      list.push_back(axis);
  return list;
}

/// Moves of one layout, by definition.
class MoveGenerator {
public:
  MoveGenerator(const CollectiveModel &model, const TensorShape &shape)
      : model(model), mesh(model.mesh()), shape(shape),
        layouts(enumerateLayouts(mesh, shape, /*withPartial=*/true)) {}

  std::vector<OracleMove> run(const Layout &layout) {
    from = layout;
    moves.clear();
    dropSuffixes(0, layout, 0);
    AxisSet idle = 0;
    for (unsigned axis = 0; axis < mesh.size(); ++axis)
      if (!(layout.used() & axisBit(axis)))
        idle |= axisBit(axis);
    forEachSubset(idle, [&](AxisSet axes) {
      append(layout, axes, ~0u,
             [&](const Layout &to) { add(Kind::AllSlice, axes, to, 0); });
    });
    forEachSubset(layout.partial, [&](AxisSet axes) { resolve(axes); });
    permute();
    return std::move(moves);
  }

private:
  void add(Kind kind, AxisSet axes, const Layout &to, double bytes) {
    double seconds = 0;
    if (kind != Kind::AllSlice)
      seconds = model.cost(kind, sortedList(axes), bytes).seconds();
    moves.push_back({kind, axes, to, seconds});
  }

  template <typename Fn> void forEachSubset(AxisSet axes, Fn visit) {
    for (AxisSet subset = axes; subset != 0; subset = (subset - 1) & axes)
      visit(subset);
  }

  /// Every way to append all of `axes` to dimensions of `dims` that divides.
  void append(const Layout &at, AxisSet axes, unsigned dims,
              std::function<void(const Layout &)> visit) {
    if (axes == 0)
      return visit(at);
    for (AxisIndex axis : sortedList(axes))
      for (unsigned dim = 0; dim < shape.rank(); ++dim) {
        Layout next = at;
        next.dims[dim].push_back(axis);
        if ((dims & (1u << dim)) &&
            shape.extents[dim] % mesh.groupSize(next.dims[dim]) == 0)
          append(next, axes & ~axisBit(axis), dims, visit);
      }
  }

  /// Gathers and exchanges: dimensions before `dim` have lost what they lose.
  void dropSuffixes(unsigned dim, Layout at, AxisSet dropped) {
    if (dim == shape.rank()) {
      if (dropped == 0)
        return;
      add(Kind::AllGather, dropped, at, shape.localBytes(mesh, at));
      unsigned kept = 0;
      for (unsigned other = 0; other < shape.rank(); ++other)
        if (at.dims[other].size() == from.dims[other].size())
          kept |= 1u << other;
      double bytes = mesh.groupSize(dropped) * shape.localBytes(mesh, from);
      append(at, dropped, kept, [&](const Layout &to) {
        add(Kind::AllToAll, dropped, to, bytes);
      });
      return;
    }
    dropSuffixes(dim + 1, at, dropped);
    while (!at.dims[dim].empty()) {
      dropped |= axisBit(at.dims[dim].pop_back_val());
      dropSuffixes(dim + 1, at, dropped);
    }
  }

  void resolve(AxisSet axes) {
    Layout reduced = from;
    reduced.partial &= ~axes;
    double bytes = shape.localBytes(mesh, from);
    add(Kind::AllReduce, axes, reduced, bytes);
    append(reduced, axes, ~0u, [&](const Layout &to) {
      add(Kind::ReduceScatter, axes, to, bytes);
    });
  }

  void permute() {
    for (const Layout &to : layouts)
      if (to != from && to.partial == from.partial && sameParts(to))
        addPermute(to);
  }

  bool sameParts(const Layout &to) const {
    for (unsigned dim = 0; dim < shape.rank(); ++dim)
      if (mesh.groupSize(from.dims[dim]) != mesh.groupSize(to.dims[dim]))
        return false;
    return true;
  }

  /// The number of the part of each dimension that a device holds.
  std::vector<int64_t> partsOf(const Layout &layout,
                               llvm::ArrayRef<int64_t> device) const {
    std::vector<int64_t> parts;
    for (const AxisList &list : layout.dims) {
      int64_t part = 0;
      for (AxisIndex axis : list)
        part = part * mesh.axes[axis].size + device[axis];
      parts.push_back(part);
    }
    return parts;
  }

  void forEachDevice(std::function<void(llvm::ArrayRef<int64_t>)> visit) const {
    for (int64_t number = 0; number < mesh.numDevices(); ++number) {
      llvm::SmallVector<int64_t, 4> device(mesh.size());
      int64_t left = number;
      for (unsigned axis = mesh.size(); axis-- > 0;) {
        device[axis] = left % mesh.axes[axis].size;
        left /= mesh.axes[axis].size;
      }
      visit(device);
    }
  }

  /// A source holds the part; axes that neither layout places keep their
  /// coordinates; one that only `to` places has at the source the coordinate
  /// that the destination has on the one that only `from` places.
  bool isSource(const Layout &to, llvm::ArrayRef<int64_t> source,
                llvm::ArrayRef<int64_t> destination) const {
    if (partsOf(from, source) != partsOf(to, destination))
      return false;
    AxisSet lost = from.sharded() & ~to.sharded();
    AxisSet gained = to.sharded() & ~from.sharded();
    for (auto [fresh, old] : llvm::zip(sortedList(gained), sortedList(lost)))
      if (source[fresh] != destination[old])
        return false;
    for (unsigned axis = 0; axis < mesh.size(); ++axis)
      if (!((from.sharded() | to.sharded()) & axisBit(axis)) &&
          source[axis] != destination[axis])
        return false;
    return true;
  }

  void addPermute(const Layout &to) {
    AxisSet moved = 0;
    auto findSource = [&](llvm::ArrayRef<int64_t> destination,
                          llvm::MutableArrayRef<int64_t> source) {
      unsigned found = 0;
      forEachDevice([&](llvm::ArrayRef<int64_t> device) {
        if (!isSource(to, device, destination))
          return;
        llvm::copy(device, source.begin());
        ++found;
      });
      EXPECT_EQ(found, 1u);
      for (unsigned axis = 0; axis < mesh.size(); ++axis)
        if (source[axis] != destination[axis])
          moved |= axisBit(axis);
    };
    forEachDevice([&](llvm::ArrayRef<int64_t> destination) {
      llvm::SmallVector<int64_t, 4> source(mesh.size());
      findSource(destination, source);
    });
    CollectiveCost cost = model.permuteCost(
        sortedList(moved), shape.localBytes(mesh, from), findSource);
    moves.push_back({Kind::CollectivePermute, moved, to, cost.seconds()});
  }

  const CollectiveModel &model;
  const Mesh &mesh;
  const TensorShape &shape;
  std::vector<Layout> layouts;
  Layout from;
  std::vector<OracleMove> moves;
};

/// Cheapest times between all layouts, by relaxing until nothing changes.
class Oracle {
public:
  Oracle(const CollectiveModel &model, const TensorShape &shape)
      : layouts(enumerateLayouts(model.mesh(), shape, /*withPartial=*/true)) {
    MoveGenerator generator(model, shape);
    for (const Layout &layout : layouts)
      moves[layout] = generator.run(layout);
  }

  /// Seconds from `from` to everything that it reaches.
  std::map<Layout, double> distances(const Layout &from) const {
    std::map<Layout, double> best = {{from, 0}};
    for (bool isChanged = true; isChanged;) {
      isChanged = false;
      for (const Layout &layout : layouts) {
        auto known = best.find(layout);
        if (known == best.end())
          continue;
        double start = known->second;
        for (const OracleMove &move : moves.at(layout)) {
          auto [entry, isNew] = best.try_emplace(move.to, INFINITY);
          if (start + move.seconds < entry->second - 1e-18) {
            entry->second = start + move.seconds;
            isChanged = true;
          }
        }
      }
    }
    return best;
  }

  using Sequence = std::pair<std::vector<Kind>, std::vector<AxisList>>;

  /// The first of all sequences of at most `steps` moves in at most `seconds`,
  /// by length, kinds, then axes.
  std::optional<Sequence> first(const Layout &from, const Layout &to,
                                unsigned steps, double seconds) const {
    for (unsigned length = 0; length <= steps; ++length) {
      std::optional<Sequence> best;
      Sequence current;
      extend(from, to, length, seconds, current, best);
      if (best)
        return best;
    }
    return std::nullopt;
  }

  std::vector<Layout> layouts;

private:
  void extend(const Layout &at, const Layout &to, unsigned steps,
              double seconds, Sequence &current,
              std::optional<Sequence> &best) const {
    if (steps == 0) {
      if (at == to && (!best || current < *best))
        best = current;
      return;
    }
    for (const OracleMove &move : moves.at(at)) {
      if (move.seconds > seconds || (steps == 1 && move.to != to))
        continue;
      current.first.push_back(move.kind);
      current.second.push_back(sortedList(move.axes));
      extend(move.to, to, steps - 1, seconds - move.seconds, current, best);
      current.first.pop_back();
      current.second.pop_back();
    }
  }

  std::map<Layout, std::vector<OracleMove>> moves;
};

struct Case {
  const char *name;
  CollectiveModel (*model)();
  TensorShape shape;
};

void PrintTo(const Case &testCase, std::ostream *os) { *os << testCase.name; }

class LayoutSearch : public testing::TestWithParam<Case> {};
/// Machines of two axes: on three there are too many sequences to list.
class SequenceSearch : public LayoutSearch {};

double seconds(const ReshardPlan &plan) {
  double sum = 0;
  for (const ReshardStep &step : plan.steps)
    sum += step.cost.seconds();
  return sum;
}

/// Sums of equal parts may differ by a few units in the last place.
double tolerance(double seconds) { return 1e-14 + 1e-12 * seconds; }

TEST_P(LayoutSearch, EveryPlanIsCheapest) {
  CollectiveModel model = GetParam().model();
  const TensorShape &shape = GetParam().shape;
  Oracle oracle(model, shape);
  ReshardPlanner planner(model);
  for (const Layout &from : oracle.layouts) {
    std::map<Layout, double> best = oracle.distances(from);
    for (const Layout &to : oracle.layouts) {
      const ReshardPlan *plan = planner.plan(shape, from, to);
      auto expected = best.find(to);
      ASSERT_EQ(plan != nullptr, expected != best.end());
      if (!plan)
        continue;
      EXPECT_EQ(priceOf(planner, shape, from, to), plan->picoseconds);
      ASSERT_NEAR(seconds(*plan), expected->second,
                  tolerance(expected->second));
    }
  }
}

/// Searched from its target, a plan is the same as from its source.
TEST_P(LayoutSearch, PricesToOneLayoutAreThoseOfPlans) {
  CollectiveModel model = GetParam().model();
  const TensorShape &shape = GetParam().shape;
  ReshardPlanner planner(model), plans(model);
  std::vector<Layout> layouts =
      enumerateLayouts(model.mesh(), shape, /*withPartial=*/true);
  for (const Layout &to : layouts) {
    auto prices = planner.prices(shape, layouts, {to});
    for (auto [from, price] : llvm::zip_equal(layouts, prices)) {
      const ReshardPlan *plan = plans.plan(shape, from, to);
      ASSERT_EQ(price.has_value(), plan != nullptr);
      if (!plan)
        continue;
      ReshardMemory memory;
      for (const ReshardStep &step : plan->steps)
        memory.add(step.kind, wholeBytes(step.fromBytes),
                   wholeBytes(step.toBytes));
      EXPECT_EQ(price->picoseconds, plan->picoseconds);
      EXPECT_EQ(price->memory.extraBytes(), memory.extraBytes());
      EXPECT_EQ(price->memory.storeExtraBytes(), memory.storeExtraBytes());
    }
  }
}

TEST_P(SequenceSearch, TiesAreBrokenByStepsKindsAndAxes) {
  CollectiveModel model = GetParam().model();
  const TensorShape &shape = GetParam().shape;
  Oracle oracle(model, shape);
  ReshardPlanner planner(model);
  for (const Layout &from : oracle.layouts) {
    for (const Layout &to : oracle.layouts) {
      const ReshardPlan *plan = planner.plan(shape, from, to);
      if (!plan)
        continue;
      Oracle::Sequence sequence;
      for (const ReshardStep &step : plan->steps) {
        sequence.first.push_back(step.kind);
        sequence.second.push_back(step.axes);
      }
      double limit = seconds(*plan) + tolerance(seconds(*plan));
      EXPECT_EQ(sequence, oracle.first(from, to, plan->steps.size(), limit));
    }
  }
}

TEST_P(LayoutSearch, TriangleInequality) {
  CollectiveModel model = GetParam().model();
  const TensorShape &shape = GetParam().shape;
  ReshardPlanner planner(model);
  std::vector<Layout> layouts =
      enumerateLayouts(model.mesh(), shape, /*withPartial=*/true);
  constexpr double kNone = std::numeric_limits<double>::infinity();
  auto price = [&](unsigned from, unsigned to) -> double {
    std::optional<Picoseconds> price =
        priceOf(planner, shape, layouts[from], layouts[to]);
    return price ? static_cast<double>(*price) : kNone;
  };
  std::vector<std::vector<double>> prices(layouts.size());
  for (unsigned from = 0; from < layouts.size(); ++from)
    for (unsigned to = 0; to < layouts.size(); ++to)
      prices[from].push_back(price(from, to));
  // Prices are sums of rounded steps: half a picosecond each.
  for (unsigned a = 0; a < layouts.size(); ++a)
    for (unsigned b = 0; b < layouts.size(); ++b)
      for (unsigned c = 0; c < layouts.size(); ++c)
        ASSERT_LE(prices[a][c], prices[a][b] + prices[b][c] + 4);
}

/// A layout of the mesh in which the axes 1 and 2 are one.
Layout split(const Layout &merged) {
  constexpr AxisIndex kFirst = 1, kSecond = 2, kLast = 3;
  Layout layout = Layout::replicated(merged.rank());
  for (auto [list, axes] : llvm::zip_equal(layout.dims, merged.dims))
    for (AxisIndex axis : axes) {
      if (axis == 1)
        list.append({kFirst, kSecond});
      else
        list.push_back(axis == 0 ? 0 : kLast);
    }
  for (auto [axis, parts] : {std::pair(0, AxisSet(1)), std::pair(1, AxisSet(6)),
                             std::pair(2, AxisSet(8))})
    if (merged.partial & axisBit(axis))
      layout.partial |= parts;
  return layout;
}

/// Four axes, and three of which one is the second and third of them: all
/// layouts on the three, and the same on the four.
struct MergedAxes {
  MergedAxes() {
    for (const Layout &layout : layouts)
      whole.push_back(split(layout));
  }

  CollectiveModel four = nodeModel({2, 2, 2, 2}), three = nodeModel({2, 4, 2});
  TensorShape shape{{4096, 1024, 64}, 16};
  std::vector<Layout> layouts =
      enumerateLayouts(three.mesh(), shape, /*withPartial=*/true);
  std::vector<Layout> whole;
};

/// On four axes a tensor of three dimensions has 685 layouts: axes that stay
/// together move together, and cost no more than if they were one. Where two
/// pairs of neighbours could be the one, as on the way from [B@(A0, A1, A2)] to
/// [T@(A0, A1, A2)], the first is, and a sequence that splits it is missed.
TEST(ManyAxes, MergedAxesCostNoMore) {
  MergedAxes mesh;
  ReshardPlanner planner(mesh.four), merged(mesh.three);
  auto prices = planner.prices(mesh.shape, mesh.whole, mesh.whole);
  auto expected = merged.prices(mesh.shape, mesh.layouts, mesh.layouts);
  ASSERT_EQ(prices.size(), expected.size());
  size_t dearer = 0;
  for (auto [price, most] : llvm::zip_equal(prices, expected)) {
    ASSERT_EQ(price.has_value(), most.has_value());
    if (!price || price->picoseconds <= most->picoseconds)
      continue;
    ++dearer;
    EXPECT_LE(double(price->picoseconds), 1.1 * double(most->picoseconds));
  }
  EXPECT_LE(dearer * 1000, prices.size());
}

/// With A1 and A2 as a block, prices are those of the mesh on which they are
/// one axis; a target that divides the block has the price of its plan, or a
/// lower one.
TEST(ManyAxes, BlocksArePricedAsOneAxis) {
  MergedAxes mesh;
  const AxisBlocks blocks = {{0}, {1, 2}, {3}};
  ReshardPlanner planner(mesh.four), merged(mesh.three);
  auto prices = planner.prices(mesh.shape, mesh.whole, mesh.whole, blocks);
  auto expected = merged.prices(mesh.shape, mesh.layouts, mesh.layouts);
  ASSERT_EQ(prices.size(), expected.size());
  for (auto [price, same] : llvm::zip_equal(prices, expected)) {
    ASSERT_EQ(price.has_value(), same.has_value());
    if (price)
      EXPECT_EQ(price->picoseconds, same->picoseconds);
  }

  Layout ring = Layout::replicated(mesh.shape.rank());
  ring.dims[1] = {2};
  auto toRing = planner.prices(mesh.shape, mesh.whole, {ring}, blocks);
  for (auto [from, price] : llvm::zip_equal(mesh.whole, toRing)) {
    ASSERT_TRUE(price);
    EXPECT_LE(price->picoseconds,
              planner.plan(mesh.shape, from, ring)->picoseconds);
  }
}

/// Planned by itself, each pair costs what the matrix says, and its plan leads
/// there.
void checkPairs(const CollectiveModel &model, const TensorShape &shape,
                llvm::ArrayRef<Layout> layouts) {
  ReshardPlanner planner(model), plans(model);
  auto prices = planner.prices(shape, layouts, layouts);
  for (auto [i, from] : llvm::enumerate(layouts))
    for (auto [j, to] : llvm::enumerate(layouts)) {
      const ReshardPlan *plan = plans.plan(shape, from, to);
      const auto &price = prices[i * layouts.size() + j];
      ASSERT_EQ(plan != nullptr, price.has_value());
      if (!plan || from == to)
        continue;
      EXPECT_EQ(plan->picoseconds, price->picoseconds);
      EXPECT_EQ(plan->steps.front().from, from);
      EXPECT_EQ(plan->steps.back().to, to);
    }
}

TEST(ManyAxes, PricesAreThoseOfPlans) {
  // Every 23rd layout of four axes, partial sums included; those around one of
  // five axes on four dimensions.
  CollectiveModel four = nodeModel({2, 2, 2, 2});
  TensorShape shape{{4096, 1024, 64}, 16};
  std::vector<Layout> all =
      enumerateLayouts(four.mesh(), shape, /*withPartial=*/true);
  std::vector<Layout> some;
  constexpr size_t kEvery = 23;
  for (size_t i = 0; i < all.size(); i += kEvery)
    some.push_back(all[i]);
  checkPairs(four, shape, some);

  CollectiveModel five = nodeModel({2, 2, 2, 2, 2});
  TensorShape wide{{64, 64, 64, 64}, 16};
  Layout first = Layout::replicated(wide.rank());
  first.dims[0] = {0, 1};
  first.dims[1] = {2};
  first.dims[3] = {4, 3};
  std::vector<Layout> around =
      neighbourLayouts(five.mesh(), wide, first, /*withPartial=*/true);
  around.push_back(first);
  checkPairs(five, wide, around);
}

CollectiveModel wrapped4x4x4() { return torusModel({4, 4, 4}, true); }
CollectiveModel unwrapped4x4() { return torusModel({4, 4}, false); }
CollectiveModel unwrapped2x4() { return torusModel({2, 4}, false); }
CollectiveModel node2x2x2() { return nodeModel({2, 2, 2}); }
CollectiveModel cluster() { return clusterModel(4, 8); }

/// Every term of a calibrated time, none in proportion to another.
CollectiveModel calibrated(const CollectiveModel &model) {
  Machine machine = model.machine();
  double scale = 1;
  for (Network &network : machine.networks) {
    network.calibration.base = CalibratedFigure{4e-6 * scale, ""};
    network.calibration.latency = CalibratedFigure{1.5e-6 * scale, ""};
    network.calibration.bandwidth = CalibratedFigure{0.7 / scale, ""};
    network.calibration.ramp = CalibratedFigure{6e-9, ""};
    scale += 0.5;
  }
  machine.isCalibrated = true;
  return {machine, model.mesh(), model.binding()};
}
CollectiveModel calibrated4x4() { return calibrated(unwrapped4x4()); }
CollectiveModel calibratedCluster() { return calibrated(cluster()); }

std::string nameOf(const testing::TestParamInfo<Case> &info) {
  return info.param.name;
}

const Case kTwoAxes[] = {
    {"Unwrapped4x4", unwrapped4x4, {{4096, 1024, 64}, 16}},
    {"Unwrapped4x4Latency", unwrapped4x4, {{64, 64}, 16}},
    {"Unwrapped4x4Indivisible", unwrapped4x4, {{4096, 12}, 16}},
    {"Unwrapped2x4", unwrapped2x4, {{4096, 4096}, 4}},
    {"Cluster", cluster, {{4096, 4096, 8}, 16}},
    {"Calibrated4x4", calibrated4x4, {{4096, 1024, 64}, 16}},
    {"Calibrated4x4Small", calibrated4x4, {{64, 64}, 16}},
    {"CalibratedCluster", calibratedCluster, {{4096, 4096, 8}, 16}},
};
const Case kThreeAxes[] = {
    {"Wrapped4x4x4", wrapped4x4x4, {{256, 256}, 16}},
    {"Wrapped4x4x4Large", wrapped4x4x4, {{16384, 16384}, 16}},
    {"Node2x2x2", node2x2x2, {{8192, 4096}, 32}},
};

INSTANTIATE_TEST_SUITE_P(TwoAxes, LayoutSearch, testing::ValuesIn(kTwoAxes),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(ThreeAxes, LayoutSearch, testing::ValuesIn(kThreeAxes),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(TwoAxes, SequenceSearch, testing::ValuesIn(kTwoAxes),
                         nameOf);

} // namespace
