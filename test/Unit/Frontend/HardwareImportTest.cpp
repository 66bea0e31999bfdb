//===- HardwareImportTest.cpp - Hardware declarations ---------------------===//
//
// Units, overrides, shapes and where errors point. What fields mean is tested
// by MachineTests.
//
//===----------------------------------------------------------------------===//

#include "HardwareImport.h"
#include "Parse.h"
#include "TestSource.h"
#include "gtest/gtest.h"

using namespace shardc;

namespace {
class HardwareImport : public testing::Test {
protected:
  std::optional<Machine> import(llvm::StringRef text) {
    auto file = parseFile(source.files, source.add("a.shd", text));
    EXPECT_TRUE(file);
    auto integer = [](const ast::DimExpr &e) -> std::optional<int64_t> {
      if (e.kind != ast::DimExpr::Kind::Integer)
        return std::nullopt;
      return e.integer;
    };
    return importHardware(
        source.files, llvm::cast<ast::HardwareDecl>(*file->items[0]), integer);
  }
  TestSource source;
};
} // namespace

// Prefixes: k M G T P are powers of 1000, Ki Mi Gi Ti powers of 1024.
TEST_F(HardwareImport, Units) {
  auto machine =
      import("hardware new {\n"
             "  flops.bf16 = 2 PFLOP/s  flops.int8 = 394 TOP/s\n"
             "  flops.vector = 1_500 GFLOP/s\n"
             "  hbm.capacity = 16 GiB  hbm.bandwidth = 8.2e11 B/s\n"
             "  vmem.capacity = 128 MiB  vmem.bandwidth = 3 kB/s\n"
             "  host.bandwidth = 2 TiB/s  price = 1.25 USD/h\n"
             "  network a switch[n] { bandwidth = 5 MB/s latency = 10 us }\n"
             "  network b switch[m] { bandwidth = 5 KiB/s latency = 3 ms }\n"
             "  network c switch[l] { bandwidth = 5 B/s latency = 7 ns }\n"
             "  network d switch[k] { bandwidth = 5 B/s latency = 2 s }\n"
             "}");
  ASSERT_TRUE(machine);
  EXPECT_EQ(machine->flops.at("bf16"), 2e15);
  EXPECT_EQ(machine->flops.at("int8"), 394e12);
  EXPECT_EQ(machine->vectorFlops, 1500e9);
  EXPECT_EQ(machine->hbmCapacity, 17179869184.0); // 16 * 2^30
  EXPECT_EQ(machine->hbmBandwidth, 8.2e11);
  EXPECT_EQ(machine->vmemCapacity, 134217728.0); // 2^27
  EXPECT_EQ(machine->vmemBandwidth, 3000.0);
  EXPECT_EQ(machine->hostBandwidth, 2199023255552.0); // 2^41
  EXPECT_EQ(machine->usdPerHour, 1.25);
  ASSERT_EQ(machine->networks.size(), 4u);
  EXPECT_EQ(machine->networks[0].bandwidth, 5e6);
  EXPECT_EQ(machine->networks[0].latency, 1e-5);
  EXPECT_EQ(machine->networks[1].bandwidth, 5120.0);
  EXPECT_EQ(machine->networks[1].latency, 3e-3);
  EXPECT_EQ(machine->networks[2].latency, 7e-9);
  EXPECT_EQ(machine->networks[3].latency, 2.0);
}

TEST_F(HardwareImport, UnknownUnits) {
  for (llvm::StringRef unit :
       {"FLOPS", "kUSD/h", "kus", "KB", "mB", "EB", "b", "B/h", "Kis"}) {
    source.errors.clear();
    EXPECT_FALSE(
        import(("hardware tpu_v5e { hbm.capacity = 1 " + unit + " }").str()));
    ASSERT_EQ(source.errors.size(), 1u) << unit.str();
    EXPECT_TRUE(
        llvm::StringRef(source.errors[0])
            .starts_with(
                ("1:35: unknown unit '" + unit + "' | 1:35: units are").str()))
        << source.errors[0];
  }
}

// A unit of another quantity is refused at the field.
TEST_F(HardwareImport, WrongQuantity) {
  EXPECT_FALSE(import("hardware tpu_v5e {\n  hbm.capacity = 16 GB/s\n}"));
  ASSERT_EQ(source.errors.size(), 1u);
  EXPECT_EQ(source.errors[0], "2:3: field 'hbm.capacity' expects a size in B, "
                              "found a bandwidth in B/s");
}

TEST_F(HardwareImport, CatalogueWithShape) {
  auto machine = import("hardware tpu_v5e[4, 8]");
  ASSERT_TRUE(machine);
  EXPECT_EQ(machine->name, "tpu_v5e");
  EXPECT_EQ(machine->numChips(), 32);
  auto chip = import("hardware tpu_v5e");
  ASSERT_TRUE(chip);
  EXPECT_EQ(chip->numChips(), 1);
}

// 820 GB/s of the catalogue stays, 45 GB/s becomes 50.
TEST_F(HardwareImport, OverridesOnlyWhatItGives) {
  auto machine = import("hardware tpu_v5e[4, 4] {\n"
                        "  hbm.capacity = 32 GB\n"
                        "  network ici { link.bandwidth = 50 GB/s }\n}");
  ASSERT_TRUE(machine);
  EXPECT_EQ(machine->hbmCapacity, 32e9);
  EXPECT_EQ(machine->hbmBandwidth, 820e9);
  ASSERT_FALSE(machine->networks.empty());
  EXPECT_EQ(machine->networks[0].bandwidth, 50e9);
  EXPECT_EQ(machine->networks[0].latency, 1e-6);
  EXPECT_EQ(machine->networks[0].wrapParameter, 16);
}

TEST_F(HardwareImport, UnknownName) {
  EXPECT_FALSE(import("hardware tpu_v5pp[4]"));
  EXPECT_EQ(source.errors,
            std::vector<std::string>{
                "1:10: unknown hardware 'tpu_v5pp' | 1:10: did you mean "
                "'tpu_v5p'? --list-hardware prints the catalogue"});
}

TEST_F(HardwareImport, NewMachineThatLacksAField) {
  EXPECT_FALSE(import("hardware tpu_v5pp[4] {\n  price = 1 USD/h\n}"));
  ASSERT_EQ(source.errors.size(), 1u);
  llvm::StringRef error = source.errors[0];
  EXPECT_TRUE(error.starts_with("1:10: hardware 'tpu_v5pp' lacks a peak"));
  EXPECT_TRUE(error.contains("the nearest name is 'tpu_v5p'")) << error.str();
}

TEST_F(HardwareImport, ShapeErrorsPointAtTheShape) {
  EXPECT_FALSE(import("hardware tpu_v5e[4, 4, 4, 4]"));
  ASSERT_EQ(source.errors.size(), 1u);
  EXPECT_TRUE(llvm::StringRef(source.errors[0]).starts_with("1:18: "))
      << source.errors[0];
}
