//===- BuildTest.cpp - Machines from hardware descriptions ----------------===//

#include "Descriptions.h"
#include <cmath>

using namespace shardc;

namespace {

Machine built(const HardwareDescription &description) {
  return value(buildMachine(description, nullptr));
}

MachineError buildError(const HardwareDescription &description) {
  return error(buildMachine(description, nullptr));
}

TEST(BuildTest, ReadsEveryField) {
  HardwareDescription tpu = tpuDescription();
  tpu.fields.push_back(
      quantity("flops.int8", 394e12, Quantity::FlopsPerSecond));
  tpu.fields.push_back(
      quantity("flops.vector", 4e12, Quantity::FlopsPerSecond));
  tpu.fields.push_back(quantity("vmem.capacity", 134217728, Quantity::Bytes));
  tpu.fields.push_back(
      quantity("vmem.bandwidth", 18e12, Quantity::BytesPerSecond));
  tpu.fields.push_back(
      quantity("host.bandwidth", 16e9, Quantity::BytesPerSecond));
  tpu.fields.push_back(quantity("host.capacity", 64e9, Quantity::Bytes));
  tpu.fields.push_back(
      quantity("host.memory.bandwidth", 25e9, Quantity::BytesPerSecond));
  tpu.fields.push_back(quantity("price", 1.2, Quantity::UsdPerHour));
  tpu.fields.push_back(word("overlap.collective_matmul", "true"));
  tpu.fields.push_back(word("overlap.ring_attention", "false"));
  Machine machine = built(tpu);
  EXPECT_EQ(machine.name, "tpu");
  EXPECT_EQ(machine.flops.at("bf16"), 197e12);
  EXPECT_EQ(machine.flops.at("int8"), 394e12);
  EXPECT_EQ(machine.vectorFlops, 4e12);
  EXPECT_EQ(machine.hbmCapacity, 16e9);
  EXPECT_EQ(machine.hbmBandwidth, 820e9);
  EXPECT_EQ(machine.vmemCapacity, 134217728);
  EXPECT_EQ(machine.vmemBandwidth, 18e12);
  EXPECT_EQ(machine.hostBandwidth, 16e9);
  EXPECT_EQ(machine.hostCapacity, 64e9);
  EXPECT_EQ(machine.hostMemoryBandwidth, 25e9);
  EXPECT_EQ(machine.usdPerHour, 1.2);
  EXPECT_TRUE(machine.collectiveMatmul);
  EXPECT_FALSE(machine.ringAttention);
  EXPECT_EQ(machine.maxShape, (llvm::SmallVector<int64_t, 4>{16, 16}));
  EXPECT_TRUE(machine.shape.empty());

  ASSERT_EQ(machine.networks.size(), 2u);
  const Network &ici = machine.networks[0];
  EXPECT_EQ(ici.kind, Network::Kind::Torus);
  EXPECT_EQ(ici.members, (llvm::SmallVector<std::string, 3>{"x", "y"}));
  EXPECT_EQ(ici.bandwidth, 45e9);
  EXPECT_EQ(ici.latency, 1e-6);
  EXPECT_EQ(ici.wrap, Network::WrapRule::Exactly);
  EXPECT_EQ(ici.wrapParameter, 16);
  const Network &dcn = machine.networks[1];
  EXPECT_EQ(dcn.kind, Network::Kind::Switch);
  EXPECT_EQ(dcn.bandwidth, 3.125e9);
  EXPECT_EQ(dcn.bandwidthPer, "chip");
  EXPECT_FALSE(dcn.inNetworkReduction);
}

TEST(BuildTest, AbsentFieldsAreUnknown) {
  Machine machine = built(gpuDescription());
  EXPECT_EQ(machine.vectorFlops, std::nullopt);
  EXPECT_EQ(machine.vmemCapacity, std::nullopt);
  EXPECT_EQ(machine.hostBandwidth, std::nullopt);
  EXPECT_EQ(machine.usdPerHour, std::nullopt);
  EXPECT_FALSE(machine.collectiveMatmul);
  EXPECT_TRUE(machine.ringAttention);
}

TEST(BuildTest, ReadsSwitchFields) {
  HardwareDescription gpu = gpuDescription();
  gpu.networks[1].fields.push_back(word("reduction", "true"));
  gpu.networks[1].fields.push_back(word("per", "gpu"));
  gpu.networks[2].fields.push_back(
      quantity("switch.bandwidth", 25.6e12, Quantity::BytesPerSecond));
  gpu.networks[2].fields.push_back(word("per", "leaf"));
  Machine machine = built(gpu);
  EXPECT_TRUE(machine.networks[1].inNetworkReduction);
  EXPECT_EQ(machine.networks[1].bandwidthPer, "gpu");
  EXPECT_EQ(machine.networks[2].switchBandwidth, 25.6e12);
  // Per its own member is what it is anyway.
  EXPECT_EQ(machine.networks[2].bandwidthPer, "");
}

TEST(BuildTest, FullMesh) {
  HardwareDescription gpu = gpuDescription();
  gpu.networks[0].kind = "mesh";
  EXPECT_EQ(built(gpu).networks[0].kind, Network::Kind::FullMesh);
}

//===----------------------------------------------------------------------===//
// Wrong fields
//===----------------------------------------------------------------------===//

struct BadField {
  const char *name;
  HardwareField field;
  const char *message;
  const char *note;
};

class BadMachineField : public testing::TestWithParam<BadField> {};

TEST_P(BadMachineField, IsAnErrorAtTheField) {
  HardwareDescription tpu = tpuDescription();
  tpu.fields.push_back(GetParam().field);
  tpu.fields.back().where = 77;
  MachineError found = buildError(tpu);
  EXPECT_EQ(found.where, 77u);
  EXPECT_EQ(found.message, GetParam().message);
  EXPECT_EQ(found.note, GetParam().note);
}

INSTANTIATE_TEST_SUITE_P(
    Fields, BadMachineField,
    testing::Values(
        BadField{"wrong_kind",
                 quantity("vmem.capacity", 1e9, Quantity::BytesPerSecond),
                 "field 'vmem.capacity' expects a size in B, found a bandwidth "
                 "in B/s",
                 ""},
        BadField{"no_unit", quantity("vmem.capacity", 1e9, Quantity::None),
                 "field 'vmem.capacity' expects a size in B, found a plain "
                 "number",
                 ""},
        BadField{"word_for_quantity", word("price", "none"),
                 "field 'price' expects a price in USD/h, found 'none'", ""},
        BadField{
            "zero", quantity("host.bandwidth", 0, Quantity::BytesPerSecond),
            "field 'host.bandwidth' expects 1 B/s to 1e+24 B/s, found 0 B/s",
            ""},
        BadField{"negative", quantity("price", -1, Quantity::UsdPerHour),
                 "field 'price' expects 0 USD/h to 1e+12 USD/h, found -1 USD/h",
                 ""},
        BadField{"not_finite",
                 quantity("flops.int8", HUGE_VAL, Quantity::FlopsPerSecond),
                 "field 'flops.int8' expects 1 FLOP/s to 1e+24 FLOP/s, found "
                 "inf FLOP/s",
                 ""},
        BadField{"absurd", quantity("vmem.capacity", 1e19, Quantity::Bytes),
                 "field 'vmem.capacity' expects 1 B to 1e+18 B, found 1e+19 B",
                 ""},
        BadField{"all_reserved",
                 quantity("hbm.reserved", 2e10, Quantity::Bytes),
                 "'hbm.reserved', 2e+10 B, leaves nothing of 'hbm.capacity', "
                 "1.6e+10 B",
                 ""},
        BadField{"twice", quantity("hbm.capacity", 1e9, Quantity::Bytes),
                 "field 'hbm.capacity' is given twice", ""},
        BadField{"misspelt", quantity("vmem.capcity", 1e9, Quantity::Bytes),
                 "unknown field 'vmem.capcity' of hardware 'tpu'",
                 "did you mean 'vmem.capacity'?"},
        BadField{"unknown_type",
                 quantity("flops.bf17", 1e12, Quantity::FlopsPerSecond),
                 "unknown field 'flops.bf17' of hardware 'tpu'",
                 "did you mean 'flops.bf16'?"},
        BadField{"flag", word("overlap.collective_matmul", "yes"),
                 "field 'overlap.collective_matmul' expects 'true' or 'false', "
                 "found 'yes'",
                 ""}),
    [](const testing::TestParamInfo<BadField> &info) {
      return info.param.name;
    });

class BadTorusField : public testing::TestWithParam<BadField> {};

TEST_P(BadTorusField, IsAnErrorAtTheField) {
  HardwareDescription tpu = tpuDescription();
  tpu.networks[0].fields[2] = GetParam().field;
  tpu.networks[0].fields[2].where = 78;
  MachineError found = buildError(tpu);
  EXPECT_EQ(found.where, 78u);
  EXPECT_EQ(found.message, GetParam().message);
  EXPECT_EQ(found.note, GetParam().note);
}

INSTANTIATE_TEST_SUITE_P(
    Fields, BadTorusField,
    testing::Values(
        BadField{"switch_field",
                 quantity("bandwidth", 1e9, Quantity::BytesPerSecond),
                 "unknown field 'bandwidth' of torus 'ici'",
                 "its fields are 'link.bandwidth', 'latency', 'wrap'"},
        BadField{"wrap_word", word("wrap", "some"),
                 "field 'wrap' expects an axis size, 'multiple(N)', 'all' or "
                 "'none', found 'some'",
                 ""},
        BadField{"wrap_fraction", quantity("wrap", 2.5, Quantity::None),
                 "field 'wrap' must have an integer of at least 1", ""},
        BadField{"wrap_multiple_of_zero", word("wrap", "multiple", {0}),
                 "field 'wrap' must have an integer of at least 1", ""},
        BadField{"wrap_unit", quantity("wrap", 16, Quantity::Bytes),
                 "field 'wrap' expects an axis size, 'multiple(N)', 'all' or "
                 "'none', found a size in B",
                 ""},
        BadField{"latency_kind",
                 quantity("latency", 1, Quantity::BytesPerSecond),
                 "field 'latency' is given twice", ""}),
    [](const testing::TestParamInfo<BadField> &info) {
      return info.param.name;
    });

TEST(BuildErrorTest, ShapeMaxFitsTheNetworks) {
  HardwareDescription tpu = tpuDescription();
  tpu.fields.back() = list("shape.max", {16}, 9);
  MachineError found = buildError(tpu);
  EXPECT_EQ(found.where, 9u);
  EXPECT_EQ(found.message, "field 'shape.max' has 1 extents, which do not "
                           "match the networks of 'tpu'");
  tpu.fields.back() = list("shape.max", {16, 0}, 9);
  EXPECT_EQ(buildError(tpu).message, "field 'shape.max' has an extent below 1");
}

TEST(BuildErrorTest, RequiredFields) {
  for (auto [index, message] :
       {std::pair(0, "hardware 'tpu' lacks a peak, such as 'flops.bf16'"),
        std::pair(1, "hardware 'tpu' lacks 'hbm.capacity'"),
        std::pair(2, "hardware 'tpu' lacks 'hbm.bandwidth'")}) {
    HardwareDescription tpu = tpuDescription();
    tpu.fields.erase(tpu.fields.begin() + index);
    MachineError found = buildError(tpu);
    EXPECT_EQ(found.where, 1u);
    EXPECT_EQ(found.message, message);
    EXPECT_EQ(found.note, "");
  }
}

TEST(BuildErrorTest, NetworksNeedABandwidth) {
  HardwareDescription tpu = tpuDescription();
  tpu.networks[0].fields.erase(tpu.networks[0].fields.begin());
  EXPECT_EQ(buildError(tpu).where, 2u);
  EXPECT_EQ(buildError(tpu).message, "torus 'ici' lacks 'link.bandwidth'");
  tpu = tpuDescription();
  tpu.networks[1].fields.erase(tpu.networks[1].fields.begin());
  EXPECT_EQ(buildError(tpu).where, 3u);
  EXPECT_EQ(buildError(tpu).message, "network 'dcn' lacks 'bandwidth'");
}

TEST(BuildErrorTest, NetworksNeedAKindAndMembers) {
  HardwareDescription tpu = tpuDescription();
  tpu.networks[1].kind = "";
  EXPECT_EQ(buildError(tpu).message, "network 'dcn' has no kind");
  tpu = tpuDescription();
  tpu.networks[0].members.clear();
  EXPECT_EQ(buildError(tpu).message, "torus 'ici' has no names for its axes");
  tpu = tpuDescription();
  tpu.networks[1].members = {"slice", "pod"};
  EXPECT_EQ(buildError(tpu).message,
            "network 'dcn' expects one name of what it joins, found 2");
}

TEST(BuildErrorTest, NamesAreUnique) {
  HardwareDescription tpu = tpuDescription();
  tpu.networks[1].members = {"x"};
  EXPECT_EQ(buildError(tpu).message,
            "network 'dcn' joins 'x', which another network joins already");
  tpu = tpuDescription();
  tpu.networks[1].name = "ici";
  EXPECT_EQ(buildError(tpu).where, 3u);
  EXPECT_EQ(buildError(tpu).message, "network 'ici' is given twice");
}

// A set of physical axes has 64 bits.
TEST(BuildErrorTest, NoMoreLevelsThanASetHolds) {
  HardwareDescription tpu = tpuDescription();
  tpu.fields.pop_back(); // shape.max
  tpu.networks[0].members.clear();
  for (unsigned axis = 0; axis < 63; ++axis)
    tpu.networks[0].members.push_back("a" + std::to_string(axis));
  EXPECT_EQ(built(tpu).networks.size(), 2u);
  tpu.networks[0].members.push_back("last");
  EXPECT_EQ(buildError(tpu).where, 3u);
  EXPECT_EQ(buildError(tpu).message,
            "the networks of 'tpu' have more than 64 axes and levels");
}

TEST(BuildErrorTest, PerNamesAFasterNetwork) {
  HardwareDescription gpu = gpuDescription();
  gpu.networks[1].fields.push_back(word("per", "leaf"));
  MachineError found = buildError(gpu);
  EXPECT_EQ(found.where, 2u);
  EXPECT_EQ(found.message, "network 'leaf' has its bandwidth per 'leaf', which "
                           "no faster network joins");
}

//===----------------------------------------------------------------------===//
// Overrides
//===----------------------------------------------------------------------===//

TEST(OverrideTest, ChangesOnlyWhatItGives) {
  Machine base = built(tpuDescription());
  HardwareDescription change;
  change.name = "tpu";
  change.fields = {quantity("hbm.capacity", 32e9, Quantity::Bytes)};
  change.networks = {
      {"ici", "", {}, {quantity("latency", 0, Quantity::Seconds)}, 5}};
  Machine machine = value(buildMachine(change, &base));
  EXPECT_EQ(machine.hbmCapacity, 32e9);
  EXPECT_EQ(machine.hbmBandwidth, 820e9);
  EXPECT_EQ(machine.networks[0].latency, 0);
  EXPECT_EQ(machine.networks[0].bandwidth, 45e9);
  EXPECT_EQ(machine.networks[0].wrapParameter, 16);
  EXPECT_EQ(machine.networks[1].bandwidth, 3.125e9);
}

TEST(OverrideTest, UnknownNetwork) {
  Machine base = built(tpuDescription());
  HardwareDescription change;
  change.name = "tpu";
  change.networks = {{"icy", "", {}, {}, 5}};
  MachineError found = error(buildMachine(change, &base));
  EXPECT_EQ(found.where, 5u);
  EXPECT_EQ(found.message, "unknown network 'icy' of 'tpu'");
  EXPECT_EQ(found.note, "did you mean 'ici'?");
}

TEST(OverrideTest, AddsASlowerNetwork) {
  Machine base = built(gpuDescription());
  HardwareDescription change;
  change.name = "h100";
  change.networks = {{"wan",
                      "switch",
                      {"site"},
                      {quantity("bandwidth", 1e12, Quantity::BytesPerSecond)},
                      5}};
  Machine machine = value(buildMachine(change, &base));
  ASSERT_EQ(machine.networks.size(), 4u);
  EXPECT_EQ(machine.networks[3].name, "wan");
}

} // namespace
