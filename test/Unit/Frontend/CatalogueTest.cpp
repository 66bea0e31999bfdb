//===- CatalogueTest.cpp - The embedded hardware files --------------------===//
//
// Every figure of the catalogue, copied from its source:
// docs/CostModel.md#8-where-a-machines-figures-come-from.
//
//===----------------------------------------------------------------------===//

#include "shardc/Frontend/CatalogueNotes.h"
#include "shardc/Frontend/Frontend.h"
#include "shardc/Machine/Rates.h"
#include "gtest/gtest.h"

using namespace shardc;

using Extents = llvm::SmallVector<int64_t, 4>;

TEST(Catalogue, Names) {
  EXPECT_EQ(
      catalogueNames(),
      (std::vector<std::string>{
          "a100",        "a100_40", "b200",       "b300",    "gb200_nvl72",
          "gb300_nvl72", "h100",    "h100_hbm2e", "h200",    "h800_sxm",
          "llama3_h100", "mi325x",  "tpu_v2",     "tpu_v3",  "tpu_v4p",
          "tpu_v5e",     "tpu_v5p", "tpu_v6e",    "tpu_v7x", "trainium2"}));
}

TEST(Catalogue, EveryFileDescribesItsMachine) {
  for (const std::string &name : catalogueNames()) {
    std::optional<Machine> machine = catalogueMachine(name);
    ASSERT_TRUE(machine) << name;
    EXPECT_EQ(machine->name, name);
    EXPECT_TRUE(machine->shape.empty()) << name;
    EXPECT_FALSE(machine->networks.empty()) << name;
  }
}

TEST(Catalogue, UnknownName) {
  EXPECT_FALSE(catalogueMachine("tpu"));
  EXPECT_FALSE(catalogueMachine(""));
}

namespace {
struct Tpu {
  const char *name;
  Extents maxShape;
  double hbm, hbmBandwidth, bf16;
  const char *eightBits;
  double eightBitPeak, link, dcn;
  std::optional<double> price;
  double host;
};
class Tpus : public testing::TestWithParam<Tpu> {};
} // namespace

// 0: the table has no figure.
TEST_P(Tpus, HaveTheTablesFigures) {
  const Tpu &tpu = GetParam();
  std::optional<Machine> machine = catalogueMachine(tpu.name);
  ASSERT_TRUE(machine);
  EXPECT_EQ(Extents(machine->maxShape), tpu.maxShape);
  EXPECT_DOUBLE_EQ(machine->hbmCapacity, tpu.hbm);
  EXPECT_DOUBLE_EQ(machine->hbmBandwidth, tpu.hbmBandwidth);
  EXPECT_DOUBLE_EQ(machine->flops.at("bf16"), tpu.bf16);
  if (tpu.eightBitPeak != 0)
    EXPECT_DOUBLE_EQ(machine->flops.at(tpu.eightBits), tpu.eightBitPeak);
  EXPECT_EQ(machine->usdPerHour, tpu.price);
  ASSERT_TRUE(machine->hostBandwidth);
  EXPECT_DOUBLE_EQ(*machine->hostBandwidth, tpu.host);
  // VMEM: 128 MiB at 22 times HBM's bandwidth.
  EXPECT_EQ(machine->vmemCapacity, 134217728.0);
  ASSERT_TRUE(machine->vmemBandwidth);
  EXPECT_NEAR(*machine->vmemBandwidth / tpu.hbmBandwidth, 22, 0.5);

  const Network &ici = machine->networks[0];
  EXPECT_EQ(ici.kind, Network::Kind::Torus);
  EXPECT_EQ(ici.members.size(), tpu.maxShape.size());
  EXPECT_DOUBLE_EQ(ici.bandwidth, tpu.link);
  EXPECT_DOUBLE_EQ(ici.latency, 1e-6);
  ASSERT_EQ(machine->networks.size(), tpu.dcn == 0 ? 1u : 2u);
  if (tpu.dcn == 0)
    return;
  const Network &dcn = machine->networks[1];
  EXPECT_EQ(dcn.kind, Network::Kind::Switch);
  EXPECT_DOUBLE_EQ(dcn.bandwidth, tpu.dcn);
  EXPECT_EQ(dcn.bandwidthPer, "chip");
  EXPECT_DOUBLE_EQ(dcn.latency, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Tpus,
                         testing::Values(Tpu{"tpu_v2",
                                             {16, 16},
                                             16e9,
                                             7.0e11,
                                             4.6e13,
                                             "int8",
                                             0,
                                             6.0e10,
                                             0,
                                             {},
                                             1.6e10},
                                         Tpu{"tpu_v3",
                                             {32, 32},
                                             32e9,
                                             9.0e11,
                                             1.4e14,
                                             "int8",
                                             1.4e14,
                                             1.0e11,
                                             0,
                                             {},
                                             1.6e10},
                                         Tpu{"tpu_v4p",
                                             {16, 16, 16},
                                             32e9,
                                             1.2e12,
                                             2.75e14,
                                             "int8",
                                             2.75e14,
                                             4.5e10,
                                             0,
                                             {},
                                             1.6e10},
                                         Tpu{"tpu_v5p",
                                             {16, 20, 28},
                                             96e9,
                                             2.8e12,
                                             4.59e14,
                                             "int8",
                                             9.18e14,
                                             9e10,
                                             6.25e9,
                                             4.2,
                                             1.6e10},
                                         Tpu{"tpu_v5e",
                                             {16, 16},
                                             16e9,
                                             8.2e11,
                                             1.97e14,
                                             "int8",
                                             3.94e14,
                                             4.5e10,
                                             3.125e9,
                                             1.2,
                                             1.6e10},
                                         Tpu{"tpu_v6e",
                                             {16, 16},
                                             32e9,
                                             1.6e12,
                                             9.20e14,
                                             "int8",
                                             1.84e15,
                                             9e10,
                                             12.5e9,
                                             {},
                                             3.2e10},
                                         Tpu{"tpu_v7x",
                                             {16, 16, 576},
                                             192e9,
                                             7.4e12,
                                             2.30e15,
                                             "f8e4m3",
                                             4.61e15,
                                             9e10,
                                             12.5e9,
                                             {},
                                             1.6e10}),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

namespace {
struct Gpu {
  const char *name;
  double hbm, hbmBandwidth, bf16;
  const char *eightBits;
  double eightBitPeak, fourBitPeak, egress;
  int64_t node;
  double nodeEgress;
  std::optional<double> price;
};
class Gpus : public testing::TestWithParam<Gpu> {};
} // namespace

TEST_P(Gpus, HaveTheTablesFigures) {
  const Gpu &gpu = GetParam();
  std::optional<Machine> machine = catalogueMachine(gpu.name);
  ASSERT_TRUE(machine);
  EXPECT_DOUBLE_EQ(machine->hbmCapacity, gpu.hbm);
  EXPECT_DOUBLE_EQ(machine->hbmBandwidth, gpu.hbmBandwidth);
  EXPECT_DOUBLE_EQ(machine->flops.at("bf16"), gpu.bf16);
  EXPECT_DOUBLE_EQ(machine->flops.at(gpu.eightBits), gpu.eightBitPeak);
  // f8 and int8 share a column; the A100 has no f8.
  EXPECT_DOUBLE_EQ(machine->flops.at("int8"), gpu.eightBitPeak);
  EXPECT_EQ(machine->flops.count("f4e2m1"), gpu.fourBitPeak != 0);
  if (gpu.fourBitPeak != 0)
    EXPECT_DOUBLE_EQ(machine->flops.at("f4e2m1"), gpu.fourBitPeak);
  EXPECT_EQ(machine->usdPerHour, gpu.price);
  ASSERT_GE(machine->networks.size(), 2u);
  const Network &inside = machine->networks[0];
  bool isFullMesh = std::string(gpu.name) == "mi325x";
  EXPECT_EQ(inside.kind,
            isFullMesh ? Network::Kind::FullMesh : Network::Kind::Switch);
  EXPECT_DOUBLE_EQ(inside.bandwidth, gpu.egress);
  EXPECT_DOUBLE_EQ(inside.latency, 3e-6);
  ASSERT_FALSE(machine->maxShape.empty());
  EXPECT_EQ(machine->maxShape.back(), gpu.node);
  const Network &above = machine->networks[1];
  EXPECT_DOUBLE_EQ(above.bandwidth, gpu.nodeEgress);
  EXPECT_TRUE(above.bandwidthPer.empty());
  EXPECT_DOUBLE_EQ(above.latency, 8e-6);
}

INSTANTIATE_TEST_SUITE_P(
    Catalogue, Gpus,
    testing::Values(Gpu{"a100",
                        80e9,
                        2.0e12,
                        3.12e14,
                        "int8",
                        6.24e14,
                        0,
                        300e9,
                        8,
                        200e9,
                        {}},
                    Gpu{"h100", 80e9, 3.35e12, 9.89e14, "f8e4m3", 1.979e15, 0,
                        450e9, 8, 400e9, 10.8},
                    Gpu{"h200", 141e9, 4.8e12, 9.89e14, "f8e4m3", 1.979e15, 0,
                        450e9, 8, 400e9, 10.0},
                    Gpu{"b200", 192e9, 8.0e12, 2.25e15, "f8e4m3", 4.5e15,
                        9.0e15, 900e9, 8, 400e9, 14.24},
                    Gpu{"gb200_nvl72",
                        192e9,
                        8.0e12,
                        2.5e15,
                        "f8e4m3",
                        5.0e15,
                        1.0e16,
                        900e9,
                        72,
                        3600e9,
                        {}},
                    Gpu{"mi325x",
                        256e9,
                        6.0e12,
                        1.307e15,
                        "f8e4m3",
                        2.61e15,
                        0,
                        448e9,
                        8,
                        400e9,
                        {}},
                    Gpu{"trainium2",
                        96e9,
                        2.9e12,
                        6.67e14,
                        "f8e4m3",
                        1.299e15,
                        0,
                        1.28e12,
                        64,
                        1.6e12,
                        {}}),
    [](const auto &info) { return std::string(info.param.name); });

TEST(Catalogue, WrapRules) {
  auto wrap = [](const char *name) {
    const Network network = catalogueMachine(name)->networks[0];
    return std::pair(network.wrap, network.wrapParameter);
  };
  using Rule = Network::WrapRule;
  for (const char *name : {"tpu_v2", "tpu_v5e", "tpu_v6e"})
    EXPECT_EQ(wrap(name), std::pair(Rule::Exactly, int64_t(16))) << name;
  EXPECT_EQ(wrap("tpu_v3"), std::pair(Rule::Exactly, int64_t(32)));
  for (const char *name : {"tpu_v4p", "tpu_v5p", "tpu_v7x"})
    EXPECT_EQ(wrap(name), std::pair(Rule::MultipleOf, int64_t(4))) << name;
}

// Every figure that a machine states names its source beside it.
TEST(Catalogue, EveryFigureHasASource) {
  for (const std::string &name : catalogueNames()) {
    Machine machine = *catalogueMachine(name);
    CatalogueNotes notes = *catalogueNotes(name);
    EXPECT_FALSE(notes.about.empty()) << name;
    std::vector<std::string> fields = {"hbm.capacity", "hbm.bandwidth",
                                       "shape.max"};
    for (const auto &[type, rate] : machine.flops)
      fields.push_back("flops." + type);
    auto addIf = [&](bool isStated, const char *field) {
      if (isStated)
        fields.push_back(field);
    };
    addIf(machine.hbmReserved > 0, "hbm.reserved");
    addIf(machine.vectorFlops.has_value(), "flops.vector");
    addIf(machine.vmemCapacity.has_value(), "vmem.capacity");
    addIf(machine.vmemBandwidth.has_value(), "vmem.bandwidth");
    addIf(machine.hostBandwidth.has_value(), "host.bandwidth");
    addIf(machine.usdPerHour.has_value(), "price");
    for (const Network &network : machine.networks) {
      bool isTorus = network.kind == Network::Kind::Torus;
      fields.push_back(network.name +
                       (isTorus ? ".link.bandwidth" : ".bandwidth"));
      fields.push_back(network.name + ".latency");
      if (isTorus)
        fields.push_back(network.name + ".wrap");
    }
    const Calibration &calibration = machine.calibration;
    addIf(calibration.matmul.has_value(), "calibration.matmul");
    addIf(calibration.attention.has_value(), "calibration.attention");
    addIf(calibration.hbm.has_value(), "calibration.hbm");
    addIf(calibration.overhead.has_value(), "calibration.overhead");
    addIf(calibration.kernels.has_value(), "calibration.kernels");
    addIf(calibration.step.has_value(), "calibration.step");
    addIf(calibration.overlap.has_value(), "calibration.overlap");
    addIf(!calibration.like.empty(), "calibration.like");
    for (const Network &network : machine.networks) {
      std::string prefix = "calibration." + network.name + ".";
      const NetworkCalibration &own = network.calibration;
      for (auto [field, figure] :
           {std::pair("base", &own.base), std::pair("latency", &own.latency),
            std::pair("bandwidth", &own.bandwidth),
            std::pair("ramp", &own.ramp),
            std::pair("reduction.min", &own.reductionMin)})
        if (*figure)
          fields.push_back(prefix + field);
    }
    for (const std::string &field : fields)
      EXPECT_FALSE(notes.source(field).empty()) << name << ": " << field;
    // And nothing is said of fields that are not there.
    EXPECT_EQ(notes.sources.size(), fields.size()) << name;
  }
}

TEST(Catalogue, NotesOfAFile) {
  CatalogueNotes notes = *catalogueNotes("tpu_v5p");
  EXPECT_EQ(notes.about.front(),
            "TPU v5p: a 3D torus of chips, slices joined by the data-centre "
            "network.");
  EXPECT_EQ(notes.source("hbm.bandwidth"), "[2]");
  EXPECT_EQ(notes.source("dcn.bandwidth"), "25 GB/s a host of 4 chips [2]");
  EXPECT_EQ(notes.source("dcn.per"), "");
  EXPECT_FALSE(catalogueNotes("tpu"));
}

// The book's critical intensities: v5e 240 FLOP/B of HBM (RL-03), H100 295
// (RL-12); v5p 459e12 / 1.8e11 = 2550 on one axis of the torus and 459e12 /
// 6.25e9 = 73440 between slices; H100 2198 in the node (GP-29), B200 2250e12 /
// 900e9 = 2500 (GP-38).
TEST(Catalogue, CriticalIntensities) {
  auto shaped = [](const char *name, Extents shape) {
    Machine machine = *catalogueMachine(name);
    machine.shape = shape;
    return machine;
  };
  EXPECT_NEAR(*hbmIntensity(shaped("tpu_v5e", {}), "bf16"), 240.24, 0.01);
  EXPECT_NEAR(*hbmIntensity(shaped("tpu_v5e", {}), "int8"), 480.49, 0.01);
  EXPECT_NEAR(*hbmIntensity(shaped("h100", {}), "bf16"), 295.22, 0.01);
  Machine v5p = shaped("tpu_v5p", {2, 16, 16, 16});
  EXPECT_NEAR(*networkIntensity(v5p, "bf16", 0), 2550, 1e-6);
  EXPECT_NEAR(*networkIntensity(v5p, "bf16", 1), 73440, 1e-6);
  EXPECT_NEAR(*networkIntensity(shaped("h100", {8}), "bf16", 0), 2197.78, 0.01);
  EXPECT_NEAR(*networkIntensity(shaped("b200", {8}), "bf16", 0), 2500, 1e-6);
}

// 459 TFLOP/s is half of 918; v5p's vector units, and those of the GPUs.
TEST(Catalogue, VectorUnits) {
  auto vector = [](const char *name) {
    return catalogueMachine(name)->vectorFlops;
  };
  EXPECT_EQ(vector("tpu_v5p"), 1.4e13);
  EXPECT_EQ(vector("h100"), 3.35e13);
  EXPECT_EQ(vector("h200"), 3.35e13);
  EXPECT_EQ(vector("a100"), 9.7e12);
  EXPECT_EQ(vector("b200"), 4e13);
  EXPECT_EQ(vector("tpu_v5e"), std::nullopt);
  EXPECT_EQ(vector("mi325x"), std::nullopt);
}

TEST(Catalogue, SuperPodAboveTheNode) {
  std::optional<Machine> h100 = catalogueMachine("h100");
  ASSERT_EQ(h100->networks.size(), 3u);
  EXPECT_EQ(Extents(h100->maxShape), (Extents{4, 32, 8}));
  EXPECT_DOUBLE_EQ(h100->networks[2].bandwidth, 12.8e12); // a leaf's
  EXPECT_DOUBLE_EQ(h100->networks[2].latency, 8e-6);
}

// 16 GPUs a rack in two nodes, 192 racks a pod, 8 pods: 24,576 GPUs.
TEST(Catalogue, Llama3Cluster) {
  std::optional<Machine> machine = catalogueMachine("llama3_h100");
  EXPECT_EQ(Extents(machine->maxShape), (Extents{8, 192, 2, 8}));
  EXPECT_DOUBLE_EQ(machine->flops.at("bf16"), 9.89e14); // an H100's
  EXPECT_DOUBLE_EQ(machine->flops.at("f8e4m3"), 1.979e15);
  EXPECT_DOUBLE_EQ(machine->hbmCapacity, 80e9);
  EXPECT_DOUBLE_EQ(machine->hbmBandwidth, 3.35e12);
  EXPECT_EQ(machine->vectorFlops, 3.35e13);
  ASSERT_EQ(machine->networks.size(), 4u);
  EXPECT_DOUBLE_EQ(machine->networks[0].bandwidth, 450e9);
  EXPECT_DOUBLE_EQ(machine->networks[2].bandwidth, 50e9);
  EXPECT_EQ(machine->networks[2].bandwidthPer, "gpu");
  EXPECT_DOUBLE_EQ(machine->networks[0].latency, 3e-6);
  for (unsigned level : {1, 2, 3})
    EXPECT_DOUBLE_EQ(machine->networks[level].latency, 8e-6);
  EXPECT_DOUBLE_EQ(machine->networks[1].bandwidth, 50e9);
  EXPECT_EQ(machine->networks[1].bandwidthPer, "gpu");
  EXPECT_DOUBLE_EQ(machine->networks[3].bandwidth, 7.1e9);
  EXPECT_EQ(machine->networks[3].bandwidthPer, "gpu");
}
