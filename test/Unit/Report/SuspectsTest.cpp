//===- SuspectsTest.cpp - What a plan seems to do in vain -----------------===//
//
// Each kind of suspect in a plan that is written out, with prices that are
// easy to add up, and the same plan without what makes it one. Mesh axis Y does
// nothing in any of them but where it is said.
//
//===----------------------------------------------------------------------===//

#include "shardc/Report/Suspects.h"
#include "PlannedPrograms.h"
#include "gtest/gtest.h"

using namespace shardc;
using namespace shardc::test;
using Kind = Suspect::Kind;

static constexpr Picoseconds kMicrosecond = 1'000'000;

static const std::string kWhole = "[{}, {}]", kRows = "[{X}, {}]",
                         kColumns = "[{}, {X}]",
                         kSum = "[{}, {}], partial = {X}";

static std::string tensor(const std::string &layout, int rows = 4096) {
  return "tensor<" + std::to_string(rows) + "x4096xbf16, #shd.sharding<" +
         layout + ">>";
}

static std::string declare(const std::string &name, const std::string &layout,
                           int rows = 4096) {
  return "%" + name + " = shd.declare weight \"" + name +
         "\" [\"I\", \"J\"] : " + tensor(layout, rows) + "\n";
}

/// An einsum that takes 400 us.
static std::string einsum(const std::string &name, const std::string &a,
                          const std::string &b, const std::string &layoutA,
                          const std::string &layoutB, const std::string &layout,
                          int rows = 4096) {
  return "%" + name + " = shd.einsum(%" + a + ", %" + b +
         ") <[B, D], [D, F] -> [B, F]> {shd.name = \"" + name +
         "\", shd.group = #shd.group<0" + (name == "y" ? "" : ", rest") +
         ">, shd.group_cost = #shd.group_cost<flops = 1.0e9, vector_flops = "
         "0.0, hbm_bytes = 1.0e6, matrix_s = 4.0e-4, vector_s = 0.0, hbm_s = "
         "1.0e-5>} : (" +
         tensor(layoutA, rows) + ", " + tensor(layoutB) + ") -> " +
         tensor(layout, rows) + " loc(\"" + name + ".shd\":1:1)\n";
}

static std::string move(const std::string &result, const std::string &kind,
                        const std::string &of, const std::string &from,
                        const std::string &to, const std::string &seconds) {
  return "%" + result + " = shd." + kind + " %" + of + " over [\"X\"] " +
         (seconds.empty() ? ""
                          : "cost <bytes = 1024.0, wire_bytes = 1024.0, " +
                                seconds + ", networks = [\"x\"]>") +
         " {shd.operand = \"" + of +
         "\", shd.indices = [\"B\", \"F\"]} : " + tensor(from) + " -> " +
         tensor(to) + " loc(\"" + result + ".shd\":2:1)\n";
}

/// Collectives of 250 us, and some that take 6 us for their latency.
static const std::string kLong = "bandwidth_s = 2.5e-4, latency_s = 3.0e-6",
                         kShort = "bandwidth_s = 1.0e-8, latency_s = 6.0e-6";

static std::string output(const std::string &value, const std::string &layout) {
  return "shd.output \"" + value + "\" %" + value +
         " [\"B\", \"F\"] : " + tensor(layout) + "\n";
}

namespace {
/// Suspects of one kind in a plan.
struct Found {
  Found(const std::string &body, Kind kind, bool allowPadding = false,
        double least = 0.001)
      : planned(
            "shd.program \"p\" mesh <[X = 4, Y = 4]> hardware <\"tpu_v5e\", "
            "[4, 4]> " +
            std::string(allowPadding ? "allow_padding " : "") + "{\n" + body +
            "}\n") {
    EXPECT_TRUE(bool(planned));
    if (!planned)
      return;
    PlanningContext context(planned.model(), allowPadding);
    for (Suspect &suspect :
         findSuspects(planned.program(), context, planned.report(), least))
      if (suspect.kind == kind)
        suspects.push_back(std::move(suspect));
  }

  PlannedProgram planned;
  std::vector<Suspect> suspects;
};
} // namespace

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// y is made by rows, gathered, and read by rows.
static std::string slicedBody() {
  return declare("x", kRows) + declare("W", kWhole) +
         einsum("y", "x", "W", kRows, kWhole, kRows) +
         move("y0", "all_gather", "y", kRows, kWhole, kLong) +
         move("y1", "all_slice", "y0", kWhole, kRows, "") +
         einsum("z", "y1", "W", kRows, kWhole, kRows) + output("z", kRows);
}

TEST(Suspects, GatheredThenSliced) {
  Found found(slicedBody(), Kind::GatheredThenSliced);
  ASSERT_EQ(found.suspects.size(), 1u);
  const Suspect &suspect = found.suspects.front();
  EXPECT_EQ(suspect.text,
            "all_gather of 'y' over X makes [B, F], of which only "
            "[B@X, F] is read");
  EXPECT_EQ(suspect.loc, "y0.shd:2:1");
  EXPECT_EQ(suspect.cost, 250 * kMicrosecond);
  EXPECT_EQ(suspect.saves, 250 * kMicrosecond);
}

TEST(Suspects, WhatIsReadWholeIsGatheredForThat) {
  Found found(slicedBody() + output("y0", kWhole), Kind::GatheredThenSliced);
  EXPECT_TRUE(found.suspects.empty());
}

/// Of a sum over X, only rows are read: the all_reduce is given 1000 us. In its
/// place, each device along Y takes a quarter, a reduce_scatter of which moves
/// 3/4 of 8388608 B over a line of 4.5e10 B/s, and an all_gather over Y brings
/// as much back: 139.81 us each.
static std::string reducedBody() {
  return declare("x", kColumns) + declare("W", kRows) + declare("V", kWhole) +
         einsum("y", "x", "W", kColumns, kRows, kSum) +
         move("y0", "all_reduce", "y", kSum, kWhole,
              "bandwidth_s = 1.0e-3, latency_s = 6.0e-6") +
         move("y1", "all_slice", "y0", kWhole, kRows, "") +
         einsum("z", "y1", "V", kRows, kWhole, kRows) + output("z", kRows);
}

TEST(Suspects, ReducedThenSliced) {
  Found found(reducedBody(), Kind::ReducedThenSliced);
  ASSERT_EQ(found.suspects.size(), 1u);
  const Suspect &suspect = found.suspects.front();
  EXPECT_EQ(suspect.cost, 1000 * kMicrosecond);
  EXPECT_NEAR(double(suspect.saves) / 1e6,
              1000 - 2 * 8388608 * 0.75 / 4.5e10 * 1e6, 1e-3);
  ASSERT_EQ(suspect.pins.size(), 1u);
  EXPECT_TRUE(
      Found(reducedBody() + output("y0", kWhole), Kind::ReducedThenSliced)
          .suspects.empty());
}

static std::string gatheredBody(bool twice) {
  std::string second = twice ? "x1" : "x0";
  return declare("x", kRows) + declare("W", kWhole) +
         move("x0", "all_gather", "x", kRows, kWhole, kLong) +
         einsum("y", "x0", "W", kWhole, kWhole, kWhole) +
         (twice ? move("x1", "all_gather", "x", kRows, kWhole, kLong) : "") +
         einsum("z", second, "W", kWhole, kWhole, kWhole) +
         output("y", kWhole) + output("z", kWhole);
}

TEST(Suspects, GatheredTwice) {
  Found found(gatheredBody(true), Kind::GatheredTwice);
  ASSERT_EQ(found.suspects.size(), 1u);
  const Suspect &suspect = found.suspects.front();
  EXPECT_EQ(suspect.cost, 500 * kMicrosecond);
  EXPECT_EQ(suspect.saves, 250 * kMicrosecond);
  ASSERT_TRUE(suspect.copy.has_value());
  EXPECT_EQ(suspect.copy->readers.size(), 2u);
  EXPECT_TRUE(Found(gatheredBody(false), Kind::GatheredTwice).suspects.empty());
}

static std::string sumsBody(const std::string &first, const std::string &second,
                            const std::string &to) {
  return declare("x", kColumns) + declare("W", kRows) +
         einsum("y", "x", "W", kColumns, kRows, kSum) +
         move("y0", "all_reduce", "y", kSum, kWhole, first) +
         einsum("z", "x", "W", kColumns, kRows, kSum) +
         move("z0", to == kWhole ? "all_reduce" : "reduce_scatter", "z", kSum,
              to, second) +
         output("y0", kWhole) + output("z0", to);
}

/// Two sums of 6 us each: one of both their bytes, which cross 2 * 3 hops of 1
/// us, takes 6 us.
TEST(Suspects, LatencyBound) {
  Found found(sumsBody(kShort, kShort, kWhole), Kind::LatencyBound, false,
              /*least=*/1e-6);
  ASSERT_EQ(found.suspects.size(), 1u);
  const Suspect &suspect = found.suspects.front();
  EXPECT_EQ(suspect.text, "all_reduce of 'y' and 'z' over X, each bound by "
                          "latency, could be one");
  EXPECT_EQ(suspect.cost, 12 * kMicrosecond);
  EXPECT_EQ(suspect.saves, 6 * kMicrosecond);
}

TEST(Suspects, CollectivesThatCannotBeOne) {
  auto isSuspect = [](const std::string &body) {
    return !Found(body, Kind::LatencyBound, false, 1e-6).suspects.empty();
  };
  EXPECT_FALSE(isSuspect(sumsBody(kShort, kLong, kWhole)));
  EXPECT_FALSE(isSuspect(sumsBody(kShort, kShort, kRows)));
  // The second needs the first.
  EXPECT_FALSE(isSuspect(declare("x", kColumns) + declare("W", kRows) +
                         einsum("y", "x", "W", kColumns, kRows, kSum) +
                         move("y0", "all_reduce", "y", kSum, kWhole, kShort) +
                         move("y1", "all_slice", "y0", kWhole, kColumns, "") +
                         einsum("z", "y1", "W", kColumns, kRows, kSum) +
                         move("z0", "all_reduce", "z", kSum, kWhole, kShort) +
                         output("z0", kWhole)));
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

TEST(Suspects, IdleAxis) {
  Found found(slicedBody(), Kind::IdleAxis);
  ASSERT_EQ(found.suspects.size(), 1u);
  EXPECT_EQ(found.suspects.front().name, "Y");
  EXPECT_EQ(found.suspects.front().cost, 0);
  Found used(slicedBody() + declare("U", "[{}, {Y}]"), Kind::IdleAxis);
  EXPECT_TRUE(used.suspects.empty());
}

/// Of 400 us, four devices along X do the same; Y, which is idle, is no part of
/// it.
TEST(Suspects, ReplicatedWork) {
  std::string operands =
      declare("x", kWhole) + declare("W", kWhole) + declare("u", kRows);
  Found found(operands + einsum("y", "x", "W", kWhole, kWhole, kWhole) +
                  output("y", kWhole),
              Kind::ReplicatedWork);
  ASSERT_EQ(found.suspects.size(), 1u);
  const Suspect &suspect = found.suspects.front();
  EXPECT_EQ(suspect.text, "einsum 'y' is computed 4 times: all devices along X "
                          "do the same");
  EXPECT_EQ(suspect.cost, 400 * kMicrosecond);
  EXPECT_EQ(suspect.saves, 300 * kMicrosecond);
  // The result by rows or columns, or both operands along D.
  ASSERT_EQ(suspect.pins.size(), 3u);
  EXPECT_EQ(suspect.pins[0].size(), 1u);
  EXPECT_EQ(suspect.pins[2].size(), 2u);
  EXPECT_TRUE(Found(slicedBody(), Kind::ReplicatedWork).suspects.empty());
}

static std::string rowsBody(int rows) {
  return declare("x", kRows, rows) + declare("W", kWhole) +
         einsum("y", "x", "W", kRows, kWhole, kRows, rows);
}

/// 10 rows on 4 devices are 12, of which 2 are for nothing: 400 us * 2/12.
TEST(Suspects, Padding) {
  Found found(rowsBody(10), Kind::Padding, /*allowPadding=*/true);
  ASSERT_EQ(found.suspects.size(), 1u);
  const Suspect &suspect = found.suspects.front();
  EXPECT_EQ(suspect.text, "index B of 10 is padded to 12, most in 'y'");
  EXPECT_EQ(suspect.padded, 12);
  EXPECT_NEAR(double(suspect.cost) / 1e6, 400.0 / 6, 1e-5);
  EXPECT_TRUE(Found(rowsBody(12), Kind::Padding, true).suspects.empty());
  EXPECT_TRUE(Found(rowsBody(12), Kind::Padding, false).suspects.empty());
}

//===----------------------------------------------------------------------===//
// What is worth saying
//===----------------------------------------------------------------------===//

/// 250 us of 400 + 250 + 400.
TEST(Suspects, WhatTakesLittleIsNotSaid) {
  EXPECT_EQ(Found(slicedBody(), Kind::GatheredThenSliced, false, 0.23)
                .suspects.size(),
            1u);
  EXPECT_TRUE(Found(slicedBody(), Kind::GatheredThenSliced, false, 0.24)
                  .suspects.empty());
}

/// Of an optimal plan only what no search avoids.
TEST(Suspects, NotesOfOptimalPlans) {
  Found found(slicedBody(), Kind::IdleAxis);
  PlanningContext context(found.planned.model(), /*allowPadding=*/false);
  Report report = found.planned.report();
  auto kinds = [&](const char *status) {
    report.plan.status = status;
    std::vector<std::string> kinds;
    for (const Report::Note &note :
         findNotes(found.planned.program(), context, report))
      kinds.push_back(note.kind);
    return kinds;
  };
  EXPECT_EQ(kinds("fixed"),
            (std::vector<std::string>{"idle-axis", "gathered-then-sliced"}));
  EXPECT_EQ(kinds("optimal"), (std::vector<std::string>{"idle-axis"}));
}
