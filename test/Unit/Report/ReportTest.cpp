//===- ReportTest.cpp - The facts of a planned program --------------------===//

#include "PlannedPrograms.h"
#include "gtest/gtest.h"
#include <nlohmann/json.hpp>

using namespace shardc;
using namespace shardc::test;
using Json = nlohmann::ordered_json;

namespace {

std::vector<std::string> keysOf(const Json &object) {
  std::vector<std::string> keys;
  for (const auto &[key, value] : object.items())
    keys.push_back(key);
  return keys;
}

Json toJson(const Report &report) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printJson(os, report);
  return Json::parse(text);
}

class FeedForwardTest : public testing::Test {
protected:
  void SetUp() override { ASSERT_TRUE(bool(planned)); }

  PlannedProgram planned{kFeedForward};
};

TEST_F(FeedForwardTest, totalsAreSumsOfPicoseconds) {
  Report report = planned.report();
  // To the picosecond: H and Out take 348829830 ps each, the all_gather
  // 559240533, the reduce_scatter 279620267.
  EXPECT_EQ(report.time.device, 697659660e-12);
  EXPECT_EQ(report.time.collectives, 838860800e-12);
  EXPECT_EQ(report.time.upper, 1536520460e-12);
  EXPECT_EQ(report.time.scheduled, report.time.upper);
  // max(device, x: 559.2 us, y: 279.6 us)
  EXPECT_EQ(report.time.lower, 697659660e-12);
  EXPECT_EQ(report.time.compute, 697659660e-12);
  // 2 x 81840080 ps
  EXPECT_EQ(report.time.hbm, 163680160e-12);
  EXPECT_EQ(report.time.bound, "compute");
  ASSERT_EQ(report.time.network.size(), 2u);
  EXPECT_EQ(report.time.network[0],
            (std::pair<std::string, double>("X", 559240533e-12)));
  EXPECT_EQ(report.time.physical[1],
            (std::pair<std::string, double>("y", 279620267e-12)));
}

TEST_F(FeedForwardTest, flopsAndTraffic) {
  Report report = planned.report();
  EXPECT_EQ(report.flops.device, 2 * 68719476736.0);
  // Two products of 8192 x 4096 x 16384, once for the whole mesh: 2^41 each,
  // 16 times what one device executes, since nothing is replicated.
  EXPECT_EQ(report.flops.model, 16 * 2 * 68719476736.0);
  // 137438953472 FLOP / 1.97e14 FLOP/s / 1.53652046 ms
  ASSERT_TRUE(report.flops.mfu);
  EXPECT_NEAR(*report.flops.mfu, 0.454052, 1e-6);
  EXPECT_NEAR(*report.flops.hfu, 0.454052, 1e-6);
  EXPECT_EQ(report.traffic.hbm, 2 * 67108864.0);
  EXPECT_EQ(report.traffic.network[0].second, 25165824.0);
  EXPECT_EQ(report.traffic.network[1].second, 12582912.0);
}

TEST_F(FeedForwardTest, operationsInProgramOrder) {
  Report report = planned.report();
  ASSERT_EQ(report.items.size(), 4u);
  const ReportItem &gather = report.items[0], &h = report.items[1];
  EXPECT_EQ(gather.kind, "all_gather");
  ASSERT_TRUE(gather.collective());
  EXPECT_EQ(gather.collective()->from, "[D@X, F@Y]");
  EXPECT_EQ(gather.collective()->to, "[D, F@Y]");
  EXPECT_EQ(gather.bound(), "bandwidth");
  EXPECT_EQ(gather.collective()->reason,
            "einsum 'H' reads 'Win' as [D, F@Y] but it is stored as "
            "[D@X, F@Y]");
  EXPECT_EQ(h.name, "H");
  EXPECT_EQ(h.kind, "einsum");
  EXPECT_EQ(h.loc, "ffn.shd:10:20");
  EXPECT_EQ(h.bound(), "compute");
  ASSERT_TRUE(h.compute());
  EXPECT_EQ(h.compute()->fused, std::vector<std::string>{"relu"});
  EXPECT_EQ(h.compute()->sharding, "[B@X, F@Y]");
  EXPECT_EQ(report.items[2].compute()->sharding, "[B@X, D]{+Y}");
  EXPECT_EQ(report.items[3].collective()->reason,
            "einsum 'Out' sums over F, which is sharded over Y: each device "
            "holds a partial sum");
}

TEST_F(FeedForwardTest, tensorsAsStored) {
  Report report = planned.report();
  // In, Win, Wout, H and the output: the value Out, once its partial sums are
  // scattered, is what leaves the program.
  ASSERT_EQ(report.tensors.size(), 5u);
  const ReportTensor &win = report.tensors[1], &h = report.tensors[3];
  EXPECT_EQ(win.kind, "weight");
  EXPECT_EQ(win.sharding, "[D@X, F@Y]");
  EXPECT_EQ(win.loc, "ffn.shd:7:8");
  EXPECT_EQ(win.globalBytes, 4096 * 16384 * 2.0);
  EXPECT_EQ(win.localBytes, 1024 * 4096 * 2.0);
  EXPECT_EQ(h.name, "H");
  EXPECT_EQ(h.kind, "activation");
  EXPECT_EQ(report.tensors[4].kind, "output");
  EXPECT_EQ(report.tensors[4].sharding, "[B@X, D@Y]");
  EXPECT_EQ(report.parameters, 2 * 4096 * 16384);
}

TEST_F(FeedForwardTest, planAndPrice) {
  Report report = planned.report();
  EXPECT_EQ(report.plan.status, "feasible");
  EXPECT_EQ(report.plan.value, 1500e-12);
  ASSERT_TRUE(report.plan.gap);
  EXPECT_DOUBLE_EQ(*report.plan.gap, 0.25); // (1500 - 1200) / 1200
  // 16 chips x 1.2 USD/h x 1.53652046 ms
  ASSERT_TRUE(report.price.usd);
  EXPECT_DOUBLE_EQ(*report.price.usd, 16 * 1.2 * 1.53652046e-3 / 3600);
  EXPECT_FALSE(report.price.usdPerMillionTokens); // no integer input
}

TEST_F(FeedForwardTest, memoryAgainstCapacityAndLimit) {
  MemoryProfile memory{{10, 30, 20},
                       30,
                       1,
                       "H",
                       planned.unknown(),
                       {{"Win", MemoryKind::Weight, 20, "[D@X, F@Y]"},
                        {"H", MemoryKind::Activation, 10, "[B@X, F@Y]"}}};
  Report report = planned.report(memory, {"ffn.shd", std::nullopt});
  EXPECT_TRUE(report.memory.fits);
  EXPECT_EQ(report.memory.capacity, 16000000000);

  Report limited = planned.report(memory, {"ffn.shd", 29});
  EXPECT_FALSE(limited.memory.fits);
  EXPECT_TRUE(planned.report(memory, {"ffn.shd", 30}).memory.fits);
  std::vector<std::string> messages;
  mlir::ScopedDiagnosticHandler handler(
      planned.unknown().getContext(), [&](mlir::Diagnostic &diagnostic) {
        messages.push_back(diagnostic.str());
        for (mlir::Diagnostic &note : diagnostic.getNotes())
          messages.push_back(note.str());
      });
  EXPECT_TRUE(llvm::succeeded(checkFits(report, planned.unknown())));
  EXPECT_TRUE(messages.empty());
  EXPECT_TRUE(llvm::failed(checkFits(limited, planned.unknown())));
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[0], "the plan does not fit in memory: 'H' needs 30 B on "
                         "every device, 1 B more than the limit of 29 B");
  EXPECT_EQ(messages[1], "weight 'Win' [D@X, F@Y] takes 20 B there");
}

TEST_F(FeedForwardTest, jsonFollowsTheSchema) {
  Json json = toJson(planned.report());
  std::vector<std::string> top = {"schema",  "file",  "hardware", "mesh",
                                  "time",    "flops", "price",    "memory",
                                  "traffic", "plan"};
  std::vector<std::string> keys = keysOf(json);
  keys.resize(top.size());
  EXPECT_EQ(keys, top);
  EXPECT_EQ(json["schema"], "shardc.cost/1");
  EXPECT_EQ(
      json["hardware"],
      Json::parse(R"({"name": "tpu_v5e", "shape": [4, 4], "chips": 16})"));
  EXPECT_EQ(json["mesh"]["axes"][1]["size"], 4);
  EXPECT_EQ(json["time"]["network_s"]["Y"], 279620267e-12);
  EXPECT_TRUE(json["price"]["usd_per_million_tokens"].is_null());
  EXPECT_TRUE(json["plan"]["search_s"].is_null());
  // Whole numbers are integers.
  EXPECT_TRUE(json["flops"]["model"].is_number_integer());
  EXPECT_EQ(json["flops"]["model"], 2199023255552);
  std::vector<std::string> opKeys = {
      "name",      "kind",  "loc",    "count", "flops",     "hbm_bytes",
      "compute_s", "hbm_s", "time_s", "bound", "intensity", "sharding"};
  keys = keysOf(json["ops"][1]);
  keys.resize(opKeys.size());
  EXPECT_EQ(keys, opKeys);
  // 68719476736 / 67108864
  EXPECT_EQ(json["ops"][1]["intensity"], 1024);
  std::vector<std::string> collectiveKeys = {
      "name",   "kind",  "axes",       "operand",   "loc",
      "count",  "bytes", "wire_bytes", "latency_s", "bandwidth_s",
      "time_s", "bound", "from",       "to",        "exposed_s"};
  keys = keysOf(json["ops"][0]);
  keys.resize(collectiveKeys.size());
  EXPECT_EQ(keys, collectiveKeys);
  std::vector<std::string> tensorKeys = {
      "name",    "kind",         "dtype",       "dims",
      "partial", "global_bytes", "local_bytes", "loc"};
  keys = keysOf(json["tensors"][0]);
  keys.resize(tensorKeys.size());
  EXPECT_EQ(keys, tensorKeys);
  EXPECT_EQ(json["tensors"][0]["dims"],
            Json::parse(R"([{"index": "B", "size": 8192, "axes": ["X"]},
                            {"index": "D", "size": 4096, "axes": []}])"));
}

class RepeatTest : public testing::Test {
protected:
  void SetUp() override { ASSERT_TRUE(bool(planned)); }

  PlannedProgram planned{kRepeated};
};

TEST_F(RepeatTest, bodiesCountTheirRuns) {
  Report report = planned.report();
  ASSERT_EQ(report.items.size(), 3u);
  ASSERT_EQ(report.repeats.size(), 1u);
  EXPECT_EQ(report.repeats[0].index, "L");
  for (const ReportItem &item : report.items) {
    EXPECT_EQ(item.count, 3);
    EXPECT_EQ(item.repeat, 0);
  }
  // 3 x (3278 ps + 6 us)
  EXPECT_EQ(report.time.upper, 18009834e-12);
  EXPECT_EQ(report.items[1].bound(), "latency");
  // The busiest network, 3 x 6 us, exceeds the device's 9834 ps.
  EXPECT_EQ(report.time.lower, 18e-6);
  EXPECT_EQ(report.time.bound, "network");
  EXPECT_EQ(report.flops.device, 3 * 8192.0);
  EXPECT_EQ(report.traffic.network[0].second, 3 * 768.0);
  // all_slice is listed and free.
  EXPECT_EQ(report.items[2].kind, "all_slice");
  EXPECT_EQ(report.items[2].total, 0);
}

TEST_F(RepeatTest, weightsAreStoredPerIteration) {
  Report report = planned.report();
  ASSERT_EQ(report.tensors.size(), 5u); // x, ids, W, y of the body, output y
  const ReportTensor &w = report.tensors[2];
  EXPECT_EQ(w.sharding, "[L, J@X, K]");
  ASSERT_EQ(w.dims.size(), 3u);
  EXPECT_EQ(w.dims[0].index, "L");
  EXPECT_EQ(w.dims[0].size, 3);
  EXPECT_TRUE(w.dims[0].axes.empty());
  EXPECT_EQ(w.globalBytes, 3 * 64 * 64 * 2.0);
  EXPECT_EQ(w.localBytes, 3 * 16 * 64 * 2.0);
  EXPECT_EQ(report.parameters, 3 * 64 * 64);
  // The body's y as its users see it: after the collectives that store it.
  EXPECT_EQ(report.tensors[3].sharding, "[B, K@X]");
}

TEST_F(RepeatTest, withoutARecordThePlanIsFixed) {
  Report report = planned.report();
  EXPECT_EQ(report.plan.status, "fixed");
  EXPECT_EQ(report.plan.value, report.time.upper);
  EXPECT_EQ(report.plan.gap, 0);
  // 16 x 1.2 USD/h for 18.009834 us buys 4 examples: no gather reads the
  // integers, which are therefore no tokens.
  ASSERT_TRUE(report.price.usd);
  EXPECT_DOUBLE_EQ(*report.price.usd, 16 * 1.2 * 18009834e-12 / 3600);
  EXPECT_FALSE(report.price.usdPerMillionTokens);
  EXPECT_EQ(report.examples, 4);
}

} // namespace
