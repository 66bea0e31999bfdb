//===- PropertyTest.cpp - What holds of every report ----------------------===//
//
// Laws of docs/CostModel.md#5-the-time-of-a-step on random programs, planned as
// written and searched.
//
//===----------------------------------------------------------------------===//

#include "Planned.h"
#include "RandomProgram.h"
#include "RandomPrograms.h"
#include "ReportLaws.h"

using namespace shardc;
using namespace shardc::test;

namespace {

constexpr unsigned kPrograms = 40;
/// Times are sums of picoseconds, printed as seconds.
constexpr double kPicosecond = 1e-12;

/// Calls `check` on random programs that can be planned, with their seeds.
void onPrograms(
    OptMode mode,
    llvm::function_ref<void(const RandomProgram &, const Report &)> check) {
  unsigned planned = 0;
  for (unsigned seed = 1; seed <= kPrograms; ++seed) {
    RandomProgram program(seed);
    Planned result(program.text(), mode);
    if (!result)
      continue;
    ++planned;
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + program.text());
    check(program, *result.report);
  }
  // Placements that contradict each other are errors; most do not.
  EXPECT_GE(planned, kPrograms / 2);
}

void expectSum(double total, double sum) {
  EXPECT_NEAR(total, sum, std::max(kPicosecond, 1e-12 * total));
}

/// The cost of a step is the same, whatever the names and the order of its
/// parts.
void expectSameCost(const Report &a, const Report &b) {
  expectSum(a.time.upper, b.time.upper);
  expectSum(a.time.device, b.time.device);
  expectSum(a.time.collectives, b.time.collectives);
  EXPECT_NEAR(a.traffic.hbm, b.traffic.hbm, 1e-9 * a.traffic.hbm);
  EXPECT_NEAR(a.flops.device, b.flops.device, 1e-9 * a.flops.device);
  EXPECT_EQ(a.flops.model, b.flops.model);
}

/// True if the two run the same operations and collectives: other prices may
/// make another sequence of collectives the cheapest.
bool isSamePlan(const Report &a, const Report &b) {
  auto describe = [](const ReportItem &item) {
    const ReportCollective *moved = item.collective();
    return item.kind + " " + item.name + " " +
           (moved ? moved->operand + moved->from + moved->to
                  : item.compute()->sharding);
  };
  return llvm::equal(a.items, b.items,
                     [&](const ReportItem &one, const ReportItem &other) {
                       return describe(one) == describe(other);
                     });
}

void expectNoSlower(const Report &better, const Report &base) {
  // Each item rounds to a picosecond.
  double slack = kPicosecond * double(better.items.size() + base.items.size());
  EXPECT_LE(better.time.upper, base.time.upper + slack);
  if (!isSamePlan(better, base))
    return;
  EXPECT_LE(better.time.lower, base.time.lower + slack);
  EXPECT_LE(better.time.scheduled, base.time.scheduled + slack);
}

/// tpu_v5e: 197 TFLOP/s, 820 GB/s, 45 GB/s a link, 1 us a hop.
constexpr const char *kBetterMachines[] = {
    "flops.bf16 = 300 TFLOP/s flops.int8 = 600 TOP/s",
    "hbm.bandwidth = 1500 GB/s",
    "hbm.capacity = 64 GB",
    "network ici { link.bandwidth = 90 GB/s }",
    "network ici { latency = 0 us }",
    "network ici { wrap = all }",
};

} // namespace

TEST(Property, ReportsOfPlansAsWritten) {
  onPrograms(OptMode::None, [](const RandomProgram &, const Report &report) {
    EXPECT_EQ(brokenLaw(report), "");
  });
}

TEST(Property, ReportsOfSearchedPlans) {
  onPrograms(OptMode::Optimize,
             [](const RandomProgram &, const Report &report) {
               EXPECT_EQ(brokenLaw(report), "");
             });
}

// Loops, casts of weights and partial sums, on the levels of an H100.
TEST(Property, ReportsOfProgramsWithLoops) {
  for (unsigned seed = 1; seed <= kPrograms; ++seed) {
    std::string text = randomProgram(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    Planned planned(text);
    if (!planned)
      continue; // placements may contradict each other
    EXPECT_EQ(brokenLaw(*planned.report), "");
    llvm::StringRef rest(text);
    ASSERT_TRUE(rest.consume_front("hardware h100[8]"));
    // 3.35 TB/s, 450 GB/s.
    for (const char *better : {"hbm.bandwidth = 5 TB/s",
                               "network nvlink { bandwidth = 900 GB/s }"}) {
      SCOPED_TRACE(better);
      Planned other("hardware h100[8] { " + std::string(better) + " }" +
                    rest.str());
      ASSERT_TRUE(other);
      expectNoSlower(*other.report, *planned.report);
    }
  }
}

TEST(Property, NamesChangeNothing) {
  for (OptMode mode : {OptMode::None, OptMode::Optimize})
    onPrograms(mode, [&](const RandomProgram &program, const Report &report) {
      Writing renamed;
      renamed.prefix = "zz_";
      Planned other(program.text(renamed), mode);
      ASSERT_TRUE(other);
      expectSameCost(report, *other.report);
      EXPECT_EQ(report.time.lower, other.report->time.lower);
      EXPECT_EQ(report.time.scheduled, other.report->time.scheduled);
      EXPECT_EQ(report.memory.peak, other.report->memory.peak);
    });
}

TEST(Property, OrderOfStatementsChangesNothing) {
  onPrograms(OptMode::None,
             [](const RandomProgram &program, const Report &report) {
               Writing shuffled;
               shuffled.orderSeed = 17;
               Planned other(program.text(shuffled), OptMode::None);
               ASSERT_TRUE(other);
               expectSameCost(report, *other.report);
               expectSum(report.time.lower, other.report->time.lower);
             });
}

// The first of equally cheap sequences of collectives, in the order of the
// axes, is taken, so that one network may be busier.
TEST(Property, AxesOfASymmetricTorusAreAlike) {
  for (OptMode mode : {OptMode::None, OptMode::Optimize})
    onPrograms(mode, [&](const RandomProgram &program, const Report &report) {
      Writing swapped;
      swapped.mesh = {{1, 4}, {0, 4}};
      Planned other(program.text(swapped), mode);
      ASSERT_TRUE(other);
      if (mode == OptMode::None)
        expectSameCost(report, *other.report);
      else
        expectSum(report.time.upper, other.report->time.upper);
    });
}

TEST(Property, ABetterMachineIsNoSlower) {
  for (OptMode mode : {OptMode::None, OptMode::Optimize})
    onPrograms(mode, [&](const RandomProgram &program, const Report &report) {
      for (const char *better : kBetterMachines) {
        SCOPED_TRACE(better);
        Writing writing;
        writing.hardware += " { " + std::string(better) + " }";
        Planned other(program.text(writing), mode);
        ASSERT_TRUE(other);
        expectNoSlower(*other.report, report);
      }
    });
}

TEST(Property, AnAxisOfSizeOneIsFree) {
  onPrograms(OptMode::None, [](const RandomProgram &program, const Report &) {
    // Both axes of one: no collectives. One of them: none over it alone.
    Writing alone, one;
    alone.mesh = {{0, 1}, {1, 1}};
    one.mesh = {{0, 1}, {1, 4}};
    Planned device(program.text(alone), OptMode::None);
    ASSERT_TRUE(device);
    EXPECT_EQ(device.report->time.collectives, 0);
    EXPECT_EQ(device.report->time.upper, device.report->time.device);
    Planned line(program.text(one), OptMode::None);
    ASSERT_TRUE(line);
    for (const auto &[axes, seconds] : line.report->time.network)
      if (axes == "X")
        EXPECT_EQ(seconds, 0);
  });
}
