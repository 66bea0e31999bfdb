//===- HelpersTest.cpp - Conversions, pins and names ----------------------===//

#include "Program.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

struct ElementTypeCase {
  const char *name;
  const char *type;
  unsigned bits;
};

class ElementTypes : public testing::TestWithParam<ElementTypeCase> {};

TEST_P(ElementTypes, HaveNamesAndWidths) {
  MLIRContext context;
  Type type = parseType(GetParam().type, &context);
  ASSERT_TRUE(type);
  EXPECT_EQ(typeName(type), GetParam().name);
  EXPECT_EQ(typeFromName(&context, GetParam().name), type);
  EXPECT_EQ(elementBits(type), GetParam().bits);
}

// docs/Language.md#7-element-types, widths of docs/CostModel.md#1-conventions.
INSTANTIATE_TEST_SUITE_P(
    Language, ElementTypes,
    testing::Values(
        ElementTypeCase{"f64", "f64", 64}, ElementTypeCase{"f32", "f32", 32},
        ElementTypeCase{"tf32", "tf32", 32}, ElementTypeCase{"f16", "f16", 16},
        ElementTypeCase{"bf16", "bf16", 16},
        ElementTypeCase{"f8e4m3", "f8E4M3FN", 8},
        ElementTypeCase{"f8e5m2", "f8E5M2", 8},
        ElementTypeCase{"f8e8m0", "f8E8M0FNU", 8},
        ElementTypeCase{"f4e2m1", "f4E2M1FN", 4},
        ElementTypeCase{"int32", "i32", 32},
        ElementTypeCase{"int16", "i16", 16}, ElementTypeCase{"int8", "i8", 8},
        ElementTypeCase{"int4", "i4", 4}, ElementTypeCase{"uint8", "ui8", 8},
        ElementTypeCase{"bool", "i1", 8}),
    [](const auto &info) { return std::string(info.param.name); });

TEST(Helpers, Scales) {
  MLIRContext context;
  EXPECT_TRUE(isScale(typeFromName(&context, "f8e8m0")));
  EXPECT_FALSE(hasGradient(typeFromName(&context, "f8e8m0")));
  EXPECT_FALSE(isScale(typeFromName(&context, "f8e5m2")));
  EXPECT_TRUE(hasGradient(typeFromName(&context, "f8e5m2")));
  EXPECT_FALSE(hasGradient(typeFromName(&context, "int8")));
}

TEST(Helpers, TypesThatTheLanguageLacks) {
  MLIRContext context;
  EXPECT_EQ(typeName(parseType("i64", &context)), "");
  EXPECT_EQ(typeName(parseType("si8", &context)), "");
  EXPECT_EQ(typeName(parseType("ui16", &context)), "");
  EXPECT_FALSE(typeFromName(&context, "int64"));
  EXPECT_FALSE(typeFromName(&context, ""));
}

class ShardingHelpers : public testing::Test {
protected:
  ShardingHelpers() { context.loadDialect<ShdDialect>(); }

  ShardingAttr sharding(StringRef text) {
    return cast<ShardingAttr>(
        parseAttribute(("#shd.sharding" + text).str(), &context));
  }

  MLIRContext context;
  Mesh mesh{{{"X", 4}, {"Y", 2}, {"Z", 2}}};
};

TEST_F(ShardingHelpers, LayoutsThereAndBack) {
  auto attr = sharding("<[{Y, X}, {}], partial = {Z}>");
  Layout layout = toLayout(mesh, attr);
  // X, Y, Z are axes 0, 1, 2.
  EXPECT_EQ(layout.dims[0], (AxisList{1, 0}));
  EXPECT_TRUE(layout.dims[1].empty());
  EXPECT_EQ(layout.partial, axisBit(2));
  EXPECT_EQ(toSharding(&context, mesh, layout), attr);
  // Open dimensions count as not sharded.
  EXPECT_EQ(toLayout(mesh, sharding("<[{?}]>")), Layout::replicated(1));
}

TEST_F(ShardingHelpers, PartialAxesAreASet) {
  // The same axes in another order: X is axis 0 here, axis 1 there.
  Mesh other{{{"Y", 2}, {"X", 4}}};
  auto attr = sharding("<[{}], partial = {X, Y}>");
  EXPECT_EQ(toSharding(&context, mesh, toLayout(mesh, attr)), attr);
  EXPECT_EQ(toSharding(&context, other, toLayout(other, attr)), attr);
}

TEST_F(ShardingHelpers, Meshes) {
  auto attr = cast<MeshAttr>(
      parseAttribute("#shd.mesh<[X = 4 on (x), Y = 2, Z = 2]>", &context));
  EXPECT_EQ(toMesh(attr), mesh);
  EXPECT_EQ(toMesh(nullptr), Mesh());
}

TEST_F(ShardingHelpers, Admission) {
  Layout xy = toLayout(mesh, sharding("<[{X}, {Y}]>"));
  Layout partial = toLayout(mesh, sharding("<[{X}, {Y}], partial = {Z}>"));
  // A closed pin admits itself alone.
  EXPECT_TRUE(admits(mesh, sharding("<[{X}, {Y}]>"), xy));
  EXPECT_FALSE(admits(mesh, sharding("<[{X}, {Y}]>"), partial));
  EXPECT_FALSE(admits(mesh, sharding("<[{X}, {}]>"), xy));
  EXPECT_FALSE(admits(mesh, sharding("<[{X}]>"), xy));
  // An open dimension may have any axes, and partial sums then too.
  EXPECT_TRUE(admits(mesh, sharding("<[{X}, {?}]>"), xy));
  EXPECT_TRUE(admits(mesh, sharding("<[{X}, {?}]>"), partial));
  EXPECT_FALSE(admits(mesh, sharding("<[{}, {?}]>"), xy));
  // Unless the pin says which.
  EXPECT_TRUE(admits(mesh, sharding("<[{?}, {?}], partial = {Z}>"), partial));
  EXPECT_FALSE(admits(mesh, sharding("<[{?}, {?}], partial = {Z}>"), xy));
}

TEST_F(ShardingHelpers, Encodings) {
  Type plain = parseType("tensor<4x8xbf16>", &context);
  EXPECT_FALSE(getSharding(plain));
  auto attr = sharding("<[{X}, {}]>");
  Type sharded = withSharding(plain, attr);
  EXPECT_EQ(getSharding(sharded), attr);
  EXPECT_EQ(withSharding(sharded, nullptr), plain);
  EXPECT_EQ(tensorShape(sharded), (TensorShape{{4, 8}, 16}));
}

TEST(Helpers, Pins) {
  Program program(R"(
    %x = shd.declare input "x" ["B"] : tensor<8xf32>
    %y = shd.elementwise add(%x, %x) <[B], [B] -> [B]> : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>)");
  Operation *add = program.get<ElementwiseOp>();
  auto pin = ShardingAttr::get(
      &program.context,
      {DimShardingAttr::get(&program.context, {}, /*isOpen=*/true)}, {});
  Value result = onlyResult(add);
  EXPECT_FALSE(getResultPin(result));
  EXPECT_FALSE(getOperandPin(add, 1));
  setOperandPin(add, 1, pin);
  EXPECT_FALSE(getOperandPin(add, 0));
  EXPECT_EQ(getOperandPin(add, 1), pin);
  setOperandPin(add, 1, nullptr);
  EXPECT_FALSE(add->hasAttr(kOperandPins));
  setResultPin(result, pin);
  EXPECT_EQ(getResultPin(result), pin);
  EXPECT_EQ(add->getAttr(kResultPin), pin);
  setResultPin(result, nullptr);
  EXPECT_FALSE(add->hasAttr(kResultPin));
}

TEST(Helpers, ExecutionCount) {
  Program program(R"(
    shd.repeat "L" = 80 () : () -> () {
    ^bb0(%l: tensor<i32>):
      shd.repeat "M" = 3 () : () -> () {
      ^bb1(%m: tensor<i32>):
        %y = shd.iota <-> [T]> : tensor<4xi32>
        shd.yield
      }
      shd.yield
    })");
  auto iota = program.get<IotaOp>();
  EXPECT_EQ(executionCount(iota), 240);
  EXPECT_EQ(executionCount(iota->getParentOp()), 80);
  EXPECT_EQ(executionCount(program.get<ProgramOp>()), 1);
}

TEST(Helpers, ExecutionCountSaturates) {
  // 2^62 * 4 does not fit.
  Program program(R"(
    shd.repeat "L" = 4611686018427387904 () : () -> () {
    ^bb0(%l: tensor<i32>):
      shd.repeat "M" = 4 () : () -> () {
      ^bb1(%m: tensor<i32>):
        %y = shd.iota <-> [T]> : tensor<4xi32>
        shd.yield
      }
      shd.yield
    })");
  EXPECT_EQ(executionCount(program.get<IotaOp>()),
            std::numeric_limits<int64_t>::max());
}

TEST(Helpers, Machines) {
  MLIRContext context;
  auto *dialect = context.getOrLoadDialect<ShdDialect>();
  auto hardware = HardwareAttr::get(&context, "pod", {4, 4});
  EXPECT_FALSE(dialect->loadMachine(hardware));
  dialect->setMachineLoader(
      [](HardwareAttr hardware) -> std::optional<Machine> {
        Machine machine;
        machine.name = hardware.getName().str();
        return machine;
      });
  EXPECT_EQ(dialect->loadMachine(hardware)->name, "pod");
}

} // namespace
