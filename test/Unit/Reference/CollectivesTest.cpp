//===- CollectivesTest.cpp - Collectives between devices' memories --------===//
//
// Values are those of the tensor that the parts stand for; bytes those of
// docs/CostModel.md#4-collectives, for the N members of a group and V as it
// says there.
//
//===----------------------------------------------------------------------===//

#include "shardc/Reference/Collectives.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace shardc;

namespace {

constexpr AxisIndex X = 0, Y = 1, Z = 2;
using Dims = SmallVector<AxisList, 4>;
using Shape = SmallVector<int64_t, 4>;

Layout layout(Dims dims, AxisSet partial = 0) {
  return {std::move(dims), partial};
}

/// The results of a collective on a tensor 1, 2, 3, ...; partial sums of member
/// m of n are (m + 1) times that.
class CollectivesTest : public testing::Test {
protected:
  Devices devices{Mesh{{{"X", 2}, {"Y", 3}, {"Z", 2}}}};

  Collective collective(CollectiveKind kind, AxisList axes, Shape shape,
                        const Layout &from, const Layout &to) {
    Collective result;
    result.kind = kind;
    result.axes = std::move(axes);
    result.shape = std::move(shape);
    result.from = from;
    result.to = to;
    result.elementBits = type.getIntOrFloatBitWidth();
    for (auto [extent, list] : llvm::zip_equal(result.shape, to.dims))
      result.localShape.push_back(localExtent(devices.mesh(), extent, list));
    return result;
  }

  Tensor whole(ArrayRef<int64_t> shape, int64_t factor) {
    Tensor tensor(type, shape);
    for (int64_t i = 0; i < tensor.getNumElements(); ++i)
      tensor.setInteger(i, (i + 1) * factor);
    return tensor;
  }

  /// Where the device is among those that hold other summands.
  int64_t member(AxisSet partial, unsigned device) const {
    int64_t number = 0;
    for (auto [axis, at] : llvm::enumerate(devices.coordinates(device)))
      if (partial & axisBit(axis))
        number = number * devices.mesh().axes[axis].size + at;
    return number;
  }

  std::vector<TensorRef> partsOf(const Collective &run, const Layout &layout) {
    std::vector<TensorRef> result;
    for (unsigned device = 0; device < devices.size(); ++device) {
      Shape local;
      for (auto [extent, list] : llvm::zip_equal(run.shape, layout.dims))
        local.push_back(localExtent(devices.mesh(), extent, list));
      result.push_back(std::make_shared<const Tensor>(
          cut(whole(run.shape, member(layout.partial, device) + 1),
              partOf(devices, run.shape, layout, device), local)));
    }
    return result;
  }

  /// Runs on the parts of `from` and expects those of `to`: each `factor` times
  /// the tensor.
  void expectParts(const Collective &run, int64_t factor = 1) {
    std::vector<TensorRef> parts = partsOf(run, run.from);
    std::optional<std::string> problem =
        runCollective(devices, run, parts, traffic);
    ASSERT_EQ(problem, std::nullopt);
    for (unsigned device = 0; device < devices.size(); ++device)
      EXPECT_EQ(*parts[device],
                cut(whole(run.shape, factor),
                    partOf(devices, run.shape, run.to, device), run.localShape))
          << devices.name(device);
  }

  /// Every device sent this much.
  void expectBytes(double bytes, int64_t messages) {
    for (unsigned device = 0; device < devices.size(); ++device) {
      EXPECT_EQ(double(traffic.bits[device]) / 8, bytes)
          << devices.name(device);
      EXPECT_EQ(traffic.messages[device], messages) << devices.name(device);
    }
    traffic = Traffic(devices.size());
  }

  std::string problem(const Collective &run, std::vector<TensorRef> parts) {
    return runCollective(devices, run, parts, traffic).value_or("none");
  }

  MLIRContext context;
  Builder builder{&context};
  Type type = builder.getF32Type();
  Traffic traffic{devices.size()};
};

//===----------------------------------------------------------------------===//
// Each kind on one axis, on two, on three
//===----------------------------------------------------------------------===//

/// V (N - 1) / N, one message to each other member.
TEST_F(CollectivesTest, AllGather) {
  auto kind = CollectiveKind::AllGather;
  // V = 6 x 4 B, N = 3.
  expectParts(collective(kind, {Y}, {6}, layout({{Y}}), layout({{}})));
  expectBytes(24.0 * 2 / 3, 2);
  // V = 12 x 4 B, N = 6; X is the major axis.
  expectParts(collective(kind, {X, Y}, {12}, layout({{X, Y}}), layout({{}})));
  expectBytes(48.0 * 5 / 6, 5);
  expectParts(collective(kind, {X, Y}, {12}, layout({{Y, X}}), layout({{}})));
  expectBytes(48.0 * 5 / 6, 5);
  // Several dimensions at once: V = 4 x 6 x 4 B, N = 12.
  expectParts(collective(kind, {X, Y, Z}, {4, 6}, layout({{X, Z}, {Y}}),
                         layout({{}, {}})));
  expectBytes(96.0 * 11 / 12, 11);
  // Only the minor axis: a group has half of the tensor, V = 6 x 4 B, N = 3.
  expectParts(collective(kind, {Y}, {12}, layout({{X, Y}}), layout({{X}})));
  expectBytes(24.0 * 2 / 3, 2);
  // Partial sums stay partial.
  Collective partial = collective(kind, {Y}, {6}, layout({{Y}}, axisBit(X)),
                                  layout({{}}, axisBit(X)));
  std::vector<TensorRef> parts = partsOf(partial, partial.from);
  EXPECT_EQ(runCollective(devices, partial, parts, traffic), std::nullopt);
  EXPECT_EQ(*parts.front(), whole({6}, 1));
  EXPECT_EQ(*parts.back(), whole({6}, 2));
}

/// V (N - 1) / N, V the unreduced array of a device. 1 + ... + N times the
/// tensor.
TEST_F(CollectivesTest, ReduceScatter) {
  auto kind = CollectiveKind::ReduceScatter;
  expectParts(
      collective(kind, {Y}, {6}, layout({{}}, axisBit(Y)), layout({{Y}})),
      1 + 2 + 3);
  expectBytes(24.0 * 2 / 3, 2);
  // Into two dimensions; a group has the rows of one Z: V = 2 x 6 x 4 B, N = 6.
  expectParts(collective(kind, {X, Y}, {4, 6},
                         layout({{Z}, {}}, axisBit(X) | axisBit(Y)),
                         layout({{Z, X}, {Y}})),
              21);
  expectBytes(48.0 * 5 / 6, 5);
  expectParts(collective(kind, {X, Y, Z}, {12},
                         layout({{}}, axisBit(X) | axisBit(Y) | axisBit(Z)),
                         layout({{Z, Y, X}})),
              78);
  expectBytes(48.0 * 11 / 12, 11);
}

/// 2 V (N - 1) / N: a reduce_scatter and an all_gather.
TEST_F(CollectivesTest, AllReduce) {
  auto kind = CollectiveKind::AllReduce;
  expectParts(
      collective(kind, {Y}, {6}, layout({{}}, axisBit(Y)), layout({{}})), 6);
  expectBytes(2 * 24.0 * 2 / 3, 2 * 2);
  expectParts(collective(kind, {X, Y}, {2, 6},
                         layout({{Z}, {}}, axisBit(X) | axisBit(Y)),
                         layout({{Z}, {}})),
              21);
  expectBytes(2 * 24.0 * 5 / 6, 2 * 5);
  expectParts(collective(kind, {X, Y, Z}, {12},
                         layout({{}}, axisBit(X) | axisBit(Y) | axisBit(Z)),
                         layout({{}})),
              78);
  expectBytes(2 * 48.0 * 11 / 12, 2 * 11);
}

/// V (N - 1) / N^2 with V the array of the whole group.
TEST_F(CollectivesTest, AllToAll) {
  auto kind = CollectiveKind::AllToAll;
  expectParts(
      collective(kind, {Y}, {6, 6}, layout({{Y}, {}}), layout({{}, {Y}})));
  expectBytes(144.0 * 2 / 9, 2);
  expectParts(collective(kind, {X, Y}, {6, 6}, layout({{X, Y}, {}}),
                         layout({{}, {X, Y}})));
  expectBytes(144.0 * 5 / 36, 5);
  // The major axis changes too: another part goes to each device, as many
  // bytes.
  expectParts(collective(kind, {X, Y}, {6, 6}, layout({{X, Y}, {}}),
                         layout({{}, {Y, X}})));
  expectBytes(144.0 * 5 / 36, 5);
  expectParts(collective(kind, {X, Y, Z}, {12, 12}, layout({{X, Y, Z}, {}}),
                         layout({{}, {X, Y, Z}})));
  expectBytes(576.0 * 11 / 144, 11);
  // Between three dimensions: X and Y leave the first for one each.
  expectParts(collective(kind, {X, Y}, {6, 2, 3}, layout({{X, Y}, {}, {}}),
                         layout({{}, {X}, {Y}})));
  expectBytes(144.0 * 5 / 36, 5);
}

TEST_F(CollectivesTest, AllSliceSendsNothing) {
  auto kind = CollectiveKind::AllSlice;
  expectParts(collective(kind, {Y}, {6}, layout({{X}}), layout({{X, Y}})));
  expectBytes(0, 0);
  expectParts(collective(kind, {X, Y, Z}, {4, 3}, layout({{}, {}}),
                         layout({{Z, X}, {Y}})));
  expectBytes(0, 0);
}

//===----------------------------------------------------------------------===//
// Permutes
//===----------------------------------------------------------------------===//

/// Device (x, z) has element 2 x + z and needs 2 z + x: (0, 1) and (1, 0) send
/// each other their 4 B, for each of the 3 devices along Y.
TEST_F(CollectivesTest, PermuteSwapsAxes) {
  expectParts(collective(CollectiveKind::CollectivePermute, {X, Z}, {4},
                         layout({{X, Z}}), layout({{Z, X}})));
  for (unsigned device = 0; device < devices.size(); ++device) {
    SmallVector<int64_t, 4> at = devices.coordinates(device);
    EXPECT_EQ(traffic.bits[device], at[X] != at[Z] ? 32 : 0);
    EXPECT_EQ(traffic.messages[device], at[X] != at[Z] ? 1 : 0);
  }
}

/// From X to Z with replicas: (x, z) has half x and takes half z, from the
/// device (z, x), so that every device sends to one: 2 x 4 B, unless it is its
/// own.
TEST_F(CollectivesTest, PermuteWithReplicas) {
  expectParts(collective(CollectiveKind::CollectivePermute, {X, Z}, {4},
                         layout({{X}}), layout({{Z}})));
  for (unsigned device = 0; device < devices.size(); ++device) {
    SmallVector<int64_t, 4> at = devices.coordinates(device);
    EXPECT_EQ(traffic.bits[device], at[X] != at[Z] ? 64 : 0);
  }
}

/// Axes of 2 and 3 against one list of 6: part 3 x + y becomes part 2 y + x.
/// 3 x + y = 2 y' + x': device (1, 0), with part 3, gets part 1, from (0, 1).
TEST_F(CollectivesTest, PermuteOfUnequalAxes) {
  Collective run = collective(CollectiveKind::CollectivePermute, {X, Y}, {6},
                              layout({{X, Y}}), layout({{Y, X}}));
  expectParts(run);
  // Parts 0 and 5 stay; every other device sends one.
  EXPECT_EQ(traffic.totalBits(), 2 * 4 * 32);
  EXPECT_EQ(traffic.mostBits(), 32);
}

//===----------------------------------------------------------------------===//
// Uneven parts
//===----------------------------------------------------------------------===//

/// 5 elements over Y = 3 are 2, 2 and 1; padding is not sent.
TEST_F(CollectivesTest, UnevenGather) {
  expectParts(collective(CollectiveKind::AllGather, {Y}, {5}, layout({{Y}}),
                         layout({{}})));
  const int64_t sent[] = {2 * 2 * 32, 2 * 2 * 32, 2 * 1 * 32};
  for (unsigned device = 0; device < devices.size(); ++device)
    EXPECT_EQ(traffic.bits[device], sent[devices.coordinates(device)[Y]]);
}

/// Nested: 7 over (X, Y) are 2, 2, 0 and 2, 1, 0; nothing is no message.
TEST_F(CollectivesTest, NestedUnevenGather) {
  expectParts(collective(CollectiveKind::AllGather, {X, Y}, {7},
                         layout({{X, Y}}), layout({{}})));
  const int64_t elements[2][3] = {{2, 2, 0}, {2, 1, 0}};
  for (unsigned device = 0; device < devices.size(); ++device) {
    SmallVector<int64_t, 4> at = devices.coordinates(device);
    EXPECT_EQ(traffic.bits[device], 5 * 32 * elements[at[X]][at[Y]]);
    EXPECT_EQ(traffic.messages[device], elements[at[X]][at[Y]] ? 5 : 0);
  }
}

TEST_F(CollectivesTest, UnevenReduceScatterAndAllToAll) {
  expectParts(collective(CollectiveKind::ReduceScatter, {Y}, {5},
                         layout({{}}, axisBit(Y)), layout({{Y}})),
              6);
  // Device y keeps what it has of 2, 2, 1 and sends the others' summands.
  const int64_t sent[] = {3 * 32, 3 * 32, 4 * 32};
  for (unsigned device = 0; device < devices.size(); ++device)
    EXPECT_EQ(traffic.bits[device], sent[devices.coordinates(device)[Y]]);
  expectParts(collective(CollectiveKind::AllToAll, {Y}, {5, 4},
                         layout({{Y}, {}}), layout({{}, {Y}})));
  expectParts(collective(CollectiveKind::AllSlice, {Y}, {5}, layout({{}}),
                         layout({{Y}})));
}

/// 5 elements in pieces of 2, 2 and 1: the owner of p elements gets them from
/// two others and sends the sum to two. A device sends the 5 - p summands of
/// others and 2 p sums.
TEST_F(CollectivesTest, UnevenAllReduce) {
  expectParts(collective(CollectiveKind::AllReduce, {Y}, {5},
                         layout({{}}, axisBit(Y)), layout({{}})),
              6);
  const int64_t sent[] = {(3 + 4) * 32, (3 + 4) * 32, (4 + 2) * 32};
  for (unsigned device = 0; device < devices.size(); ++device)
    EXPECT_EQ(traffic.bits[device], sent[devices.coordinates(device)[Y]]);
}

//===----------------------------------------------------------------------===//
// Combinations and types
//===----------------------------------------------------------------------===//

TEST_F(CollectivesTest, MaximumAndMinimum) {
  Collective run = collective(CollectiveKind::AllReduce, {Y}, {6},
                              layout({{}}, axisBit(Y)), layout({{}}));
  run.combination = shd::Combination::Max;
  expectParts(run, 3);
  run.combination = shd::Combination::Min;
  expectParts(run, 1);
}

/// Sums of int8 wrap: 6 x 40 = 240 is -16.
TEST_F(CollectivesTest, IntegersWrap) {
  type = builder.getI8Type();
  expectParts(collective(CollectiveKind::AllReduce, {Y}, {40},
                         layout({{}}, axisBit(Y)), layout({{}})),
              6);
  EXPECT_EQ(Tensor::wrap(type, 240), -16);
}

/// 6 elements of int4 in V are 3 B.
TEST_F(CollectivesTest, HalfBytes) {
  type = builder.getIntegerType(4);
  expectParts(collective(CollectiveKind::AllGather, {Y}, {6}, layout({{Y}}),
                         layout({{}})));
  expectBytes(3.0 * 2 / 3, 2);
}

TEST_F(CollectivesTest, TrafficAddsUp) {
  Traffic once(2), total(2);
  once.messages = {1, 2};
  once.bits = {8, 32};
  total.add(once);
  total.add(once);
  EXPECT_EQ(total.messages, (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(total.totalBits(), 80);
  EXPECT_EQ(total.mostBits(), 64);
}

//===----------------------------------------------------------------------===//
// What cannot be
//===----------------------------------------------------------------------===//

/// The other half of the tensor is with X = 1.
TEST_F(CollectivesTest, GroupLacksElements) {
  Collective run = collective(CollectiveKind::AllGather, {Y}, {12},
                              layout({{X, Y}}), layout({{}}));
  EXPECT_EQ(problem(run, partsOf(run, run.from)),
            "device (X=0, Y=0, Z=0) needs 6 elements that its group does not "
            "have");
}

/// Z holds replicas: two members bring the first half, nobody the second.
TEST_F(CollectivesTest, GroupHasElementsTwice) {
  Collective run = collective(CollectiveKind::AllGather, {Z}, {4},
                              layout({{X}}), layout({{}}));
  EXPECT_EQ(problem(run, partsOf(run, run.from)),
            "device (X=0, Y=0, Z=0) gets 2 elements of its group twice");
}

/// A device cannot keep elements that it does not hold.
TEST_F(CollectivesTest, SliceOfWhatIsNotThere) {
  Collective run = collective(CollectiveKind::AllSlice, {Y}, {6}, layout({{X}}),
                              layout({{Y}}));
  // Device (0, 0) keeps [0, 2) of its [0, 3); (0, 1) needs [2, 4).
  EXPECT_EQ(problem(run, partsOf(run, run.from)),
            "device (X=0, Y=1, Z=0) needs 1 element that its group does not "
            "have");
}

/// All of Y = 0, 1, 2 have the half of their X only.
TEST_F(CollectivesTest, SummandsThatAreNotThere) {
  Collective run = collective(CollectiveKind::ReduceScatter, {Y}, {12},
                              layout({{X}}, axisBit(Y)), layout({{Y}}));
  // Device (0, 1) is to add up [4, 8) and has [0, 6).
  EXPECT_EQ(problem(run, partsOf(run, run.from)),
            "device (X=0, Y=1, Z=0) needs summands that device (X=0, Y=0, Z=0) "
            "does not have");
}

TEST_F(CollectivesTest, DevicesDisagree) {
  Collective run = collective(CollectiveKind::AllReduce, {Y}, {6},
                              layout({{}}, axisBit(Y)), layout({{}}));
  std::vector<TensorRef> parts = partsOf(run, run.from);
  parts[4] = std::make_shared<const Tensor>(Tensor(type, {5}));
  EXPECT_EQ(problem(run, parts), "devices (X=0, Y=0, Z=0) and (X=0, Y=2, Z=0) "
                                 "bring arrays of different types");
  parts[4] = std::make_shared<const Tensor>(Tensor(builder.getF64Type(), {6}));
  EXPECT_EQ(problem(run, parts), "devices (X=0, Y=0, Z=0) and (X=0, Y=2, Z=0) "
                                 "bring arrays of different types");
}

/// A problem leaves the parts as they were.
TEST_F(CollectivesTest, NothingMovesAfterAProblem) {
  Collective run = collective(CollectiveKind::AllGather, {Y}, {12},
                              layout({{X, Y}}), layout({{}}));
  std::vector<TensorRef> parts = partsOf(run, run.from), before = parts;
  EXPECT_TRUE(runCollective(devices, run, parts, traffic));
  EXPECT_EQ(parts, before);
}

} // namespace
