//===- InterpreterTest.cpp - Programs run on a mesh -----------------------===//
//
// Small programs of one device, written as text and worked by hand.
//
//===----------------------------------------------------------------------===//

#include "shardc/Reference/Interpreter.h"
#include "TestDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include <cmath>
#include <gtest/gtest.h>
#include <set>

using namespace mlir;
using namespace shardc;

namespace {

using Values = std::vector<double>;

Values valuesOf(const Tensor &tensor) {
  Values result;
  for (int64_t i = 0; i < tensor.getNumElements(); ++i)
    result.push_back(tensor.getReal(i));
  return result;
}

/// A value's parts on all devices.
using Parts = std::vector<Values>;

class InterpreterTest : public testing::Test {
protected:
  InterpreterTest() {
    context
        .loadDialect<shd::ShdDialect, spmd::SpmdDialect, test::TestDialect>();
    context.getDiagEngine().registerHandler([this](Diagnostic &message) {
      auto loc = dyn_cast<FileLineColLoc>(message.getLocation());
      errors += (loc ? std::to_string(loc.getLine()) + ": " : "") +
                message.str() + "\n";
    });
    context.printOpOnDiagnostic(false);
    options.declared = [this](const DeclaredTensor &declared) {
      Tensor tensor(declared.type);
      std::string name = declared.name.str();
      const Values &values = inputs.at(name);
      EXPECT_EQ(size_t(tensor.getNumElements()), values.size()) << name;
      for (auto [i, value] : llvm::enumerate(values))
        tensor.setReal(int64_t(i), value);
      return tensor;
    };
    options.observe = [this](const RunValue &value) {
      std::string key = shd::getResultName(value.value).str();
      if (key.empty())
        return;
      for (int64_t iteration : value.iterations)
        key += "." + std::to_string(iteration);
      observed[key] = partsOf(value.parts);
    };
  }

  static Parts partsOf(ArrayRef<TensorRef> parts) {
    Parts result;
    for (const TensorRef &part : parts)
      result.push_back(valuesOf(*part));
    return result;
  }

  /// Runs the only program of a module.
  template <typename Program = spmd::ProgramOp> bool run(StringRef text) {
    if (!parse(text))
      return false;
    return runParsed<Program>();
  }
  bool parse(StringRef text) {
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << errors;
    return bool(module);
  }
  template <typename Program = spmd::ProgramOp> bool runParsed() {
    FailureOr<RunResult> ran =
        interpret(*module->getOps<Program>().begin(), options);
    if (failed(ran))
      return false;
    result = std::move(*ran);
    return true;
  }

  /// The final of this name, `s.0.1` that of iterations 0 and 1.
  Parts final(StringRef name) {
    for (const RunResult::Final &final : result.finals) {
      std::string key = final.name;
      for (int64_t iteration : final.iterations)
        key += "." + std::to_string(iteration);
      if (key == name)
        return partsOf(final.parts);
    }
    ADD_FAILURE() << name.str() << " is not there";
    return {};
  }

  template <typename Op> Op get() {
    Op found;
    module->walk([&](Op op) { found = op; });
    return found;
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> module;
  RunOptions options;
  std::map<std::string, Values> inputs;
  std::map<std::string, Parts> observed;
  RunResult result;
  std::string errors;
};

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

constexpr StringLiteral kDot = R"(
spmd.program "dot" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["D"] of tensor<4xf32, #shd.sharding<[{X}]>> : tensor<2xf32>
  %w = spmd.parameter weight "w" ["D"] of tensor<4xf32, #shd.sharding<[{X}]>> : tensor<2xf32>
  %p = shd.einsum(%x, %w) <[D], [D] -> []> {shd.name = "p"} : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>
  %s = spmd.all_reduce %p over ["X"] of tensor<f32, #shd.sharding<[], partial = {X}>> to tensor<f32> : tensor<f32> -> tensor<f32>
  spmd.output "s" %s [] of tensor<f32> : tensor<f32>
})";

/// 1 5 + 2 6 and 3 7 + 4 8. The one element is a piece of device 0: the other
/// sends it its summand and gets the sum.
TEST_F(InterpreterTest, PartialSums) {
  inputs = {{"x", {1, 2, 3, 4}}, {"w", {5, 6, 7, 8}}};
  ASSERT_TRUE(run(kDot)) << errors;
  EXPECT_EQ(observed["p"], (Parts{{17}, {53}}));
  EXPECT_EQ(final("s"), (Parts{{70}, {70}}));
  ASSERT_EQ(result.collectives.size(), 1u);
  const RunResult::Executed &reduce = result.collectives.front();
  EXPECT_EQ(reduce.op, get<spmd::AllReduceOp>().getOperation());
  EXPECT_EQ(reduce.runs, 1);
  EXPECT_EQ(reduce.traffic.bits, (std::vector<int64_t>{32, 32}));
  EXPECT_EQ(reduce.traffic.messages, (std::vector<int64_t>{1, 1}));
  EXPECT_FALSE(result.finals.front().isState());
}

/// Each device doubles its columns, and sums them.
TEST_F(InterpreterTest, SeveralResults) {
  constexpr StringLiteral text = R"(
spmd.program "two" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["B", "D"] of tensor<2x2xf32, #shd.sharding<[{}, {X}]>> : tensor<2x1xf32>
  %y:2 = test.double_and_sum(%x) <[B, D] -> [B, D], [B]> {shd.name = ["y", "p"],
      spmd.shards = [#spmd.shard<"D" = 2 over [X]>],
      spmd.global = [tensor<2x2xf32, #shd.sharding<[{}, {X}]>>, tensor<2xf32, #shd.sharding<[{}], partial = {X}>>]}
    : (tensor<2x1xf32>) -> (tensor<2x1xf32>, tensor<2xf32>)
  %s = spmd.all_reduce %y#1 over ["X"] of tensor<2xf32, #shd.sharding<[{}], partial = {X}>> to tensor<2xf32> : tensor<2xf32> -> tensor<2xf32>
  spmd.output "y" %y#0 ["B", "D"] of tensor<2x2xf32, #shd.sharding<[{}, {X}]>> : tensor<2x1xf32>
  spmd.output "s" %s ["B"] of tensor<2xf32> : tensor<2xf32>
})";
  inputs = {{"x", {1, 2, 3, 4}}};
  ASSERT_TRUE(run(text)) << errors;
  EXPECT_EQ(observed["y"], (Parts{{2, 6}, {4, 8}}));
  EXPECT_EQ(observed["p"], (Parts{{1, 3}, {2, 4}}));
  EXPECT_EQ(final("y"), (Parts{{2, 6}, {4, 8}}));
  EXPECT_EQ(final("s"), (Parts{{3, 7}, {3, 7}}));
}

/// 1 + 2^-8 lies between the bf16 numbers 1 and 1 + 2^-7, and rounds to even.
TEST_F(InterpreterTest, RoundsToDeclaredTypes) {
  constexpr StringLiteral text = R"(
spmd.program "add" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["D"] of tensor<2xbf16, #shd.sharding<[{X}]>> : tensor<1xbf16>
  %y = shd.elementwise add(%x, %x) <[D], [D] -> [D]> : (tensor<1xbf16>, tensor<1xbf16>) -> tensor<1xbf16>
  spmd.output "y" %y ["D"] of tensor<2xbf16, #shd.sharding<[{X}]>> : tensor<1xbf16>
})";
  inputs = {{"x", {1 + 0x1p-8, 1 + 0x3p-8}}};
  ASSERT_TRUE(run(text)) << errors;
  EXPECT_EQ(final("y"), (Parts{{2 + 0x1p-7}, {2 + 0x3p-7}}));
  options.roundToDeclared = true;
  ASSERT_TRUE(run(text)) << errors;
  EXPECT_EQ(final("y"), (Parts{{2}, {2 + 0x4p-7}}));
}

/// Two carried values take each other's places: 1 1, 1 2, 2 3, 3 5, 5 8, 8 13.
TEST_F(InterpreterTest, CarriedValues) {
  inputs = {{"x", {1, 1}}};
  ASSERT_TRUE(run(R"(
spmd.program "fibonacci" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["D"] of tensor<2xi32, #shd.sharding<[{X}]>> : tensor<1xi32>
  %r:2 = shd.repeat "L" = 5(%x, %x) : (tensor<1xi32>, tensor<1xi32>) -> (tensor<1xi32>, tensor<1xi32>) {
  ^bb0(%i: tensor<i32>, %p: tensor<1xi32>, %q: tensor<1xi32>):
    %n = shd.elementwise add(%p, %q) <[D], [D] -> [D]> {shd.name = "n"} : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
    shd.yield %q, %n : tensor<1xi32>, tensor<1xi32>
  }
  spmd.output "p" %r#0 ["D"] of tensor<2xi32, #shd.sharding<[{X}]>> : tensor<1xi32>
  spmd.output "q" %r#1 ["D"] of tensor<2xi32, #shd.sharding<[{X}]>> : tensor<1xi32>
})")) << errors;
  EXPECT_EQ(observed["n.0"], (Parts{{2}, {2}}));
  EXPECT_EQ(observed["n.4"], (Parts{{13}, {13}}));
  EXPECT_EQ(final("p"), (Parts{{8}, {8}}));
  EXPECT_EQ(final("q"), (Parts{{13}, {13}}));
}

/// Each iteration has a state of its own; collectives count their runs.
TEST_F(InterpreterTest, StatesOfIterations) {
  inputs = {{"s", {1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 1}}, {"t", {50, 60}}};
  ASSERT_TRUE(run(R"(
spmd.program "states" mesh <[X = 2]> {
  %t = spmd.parameter state "t" ["D"] of tensor<2xi32, #shd.sharding<[{X}]>> : tensor<1xi32>
  %ss = spmd.parameter state "s" ["L", "M", "D"] of tensor<2x3x2xi32, #shd.sharding<[{}, {}, {X}]>> stacked 2 : tensor<2x3x1xi32>
  spmd.update %t = %t : tensor<1xi32>, tensor<1xi32>
  shd.repeat "L" = 2() : () -> () {
  ^bb0(%l: tensor<i32>):
    shd.repeat "M" = 3() : () -> () {
    ^bb0(%m: tensor<i32>):
      %s = shd.part %ss[%l, %m] : tensor<2x3x1xi32> -> tensor<1xi32>
      %g = spmd.all_gather %s over ["X"] of tensor<2xi32, #shd.sharding<[{X}]>> to tensor<2xi32, #shd.sharding<[{}]>> {shd.name = "g"} : tensor<1xi32> -> tensor<2xi32>
      %a = shd.elementwise add(%s, %l) <[D], [] -> [D]> : (tensor<1xi32>, tensor<i32>) -> tensor<1xi32>
      %b = shd.elementwise mul(%a, %m) <[D], [] -> [D]> : (tensor<1xi32>, tensor<i32>) -> tensor<1xi32>
      spmd.update %ss[%l, %m] = %b : tensor<2x3x1xi32>, tensor<1xi32>
      shd.yield
    }
    shd.yield
  }
})")) << errors;
  EXPECT_EQ(result.finals.size(), 7u);
  EXPECT_TRUE(result.finals.front().isState());
  EXPECT_EQ(final("t"), (Parts{{50}, {60}}));
  // (s + l) m.
  EXPECT_EQ(final("s.0.0"), (Parts{{0}, {0}}));
  EXPECT_EQ(final("s.0.2"), (Parts{{10}, {12}}));
  EXPECT_EQ(final("s.1.1"), (Parts{{10}, {1}}));
  EXPECT_EQ(final("s.1.2"), (Parts{{4}, {4}}));
  EXPECT_EQ(observed["g.1.0"], (Parts{{7, 8}, {7, 8}}));
  ASSERT_EQ(result.collectives.size(), 1u);
  EXPECT_EQ(result.collectives.front().runs, 6);
  EXPECT_EQ(result.collectives.front().traffic.totalBits(), 6 * 2 * 32);
}

//===----------------------------------------------------------------------===//
// The dialect
//===----------------------------------------------------------------------===//

constexpr StringLiteral kRings = R"(
spmd.program "rings" mesh <[X = 2, Y = 2]> {
  %x = spmd.parameter input "x" ["D"] of tensor<8xi32, #shd.sharding<[{Y, X}]>> : tensor<2xi32>
  %w = spmd.parameter weight "w" ["E"] of tensor<4xi32> : tensor<4xi32>
  %i = shd.constant dense<1> : tensor<i32>
  %s = spmd.ring_shift %x over ["Y", "X"] {shd.name = "s"} : tensor<2xi32>
  %n = spmd.ring_position %i plus 2 over ["Y", "X"] {shd.name = "n"}
  %c = spmd.chunk %w[%n] dim 0 {shd.name = "c"} : tensor<4xi32> -> tensor<1xi32>
  %m = spmd.ring_position %i plus 0 over ["Y", "X"] {shd.name = "m"}
  %p = spmd.place %c into %w[%m] dim 0 {shd.name = "p"} : tensor<1xi32> into tensor<4xi32>
})";

/// The devices (0, 0), (0, 1), (1, 0), (1, 1) stand at places 0, 2, 1, 3 of the
/// ring and hold elements 2 p and 2 p + 1 of x; each gets those of place p + 1.
TEST_F(InterpreterTest, Rings) {
  inputs = {{"x", {0, 1, 2, 3, 4, 5, 6, 7}}, {"w", {10, 11, 12, 13}}};
  ASSERT_TRUE(run(kRings)) << errors;
  EXPECT_EQ(observed["s"], (Parts{{2, 3}, {6, 7}, {4, 5}, {0, 1}}));
  // p + 1 + 2 and p + 1, modulo 4.
  EXPECT_EQ(observed["n"], (Parts{{3}, {1}, {0}, {2}}));
  EXPECT_EQ(observed["m"], (Parts{{1}, {3}, {2}, {0}}));
  EXPECT_EQ(observed["c"], (Parts{{13}, {11}, {10}, {12}}));
  EXPECT_EQ(observed["p"], (Parts{{10, 13, 12, 13},
                                  {10, 11, 12, 11},
                                  {10, 11, 10, 13},
                                  {12, 11, 12, 13}}));
  ASSERT_EQ(result.collectives.size(), 1u);
  EXPECT_EQ(result.collectives.front().traffic.bits,
            (std::vector<int64_t>{64, 64, 64, 64}));
}

/// Every operation of the dialect is in a program that runs.
TEST_F(InterpreterTest, EveryOperationRuns) {
  constexpr StringLiteral collectives = R"(
spmd.program "collectives" mesh <[X = 2]> {
  %x = spmd.parameter state "x" ["D", "E"] of tensor<2x2xi32, #shd.sharding<[{X}, {}]>> : tensor<1x2xi32>
  %a = spmd.all_to_all %x over ["X"] of tensor<2x2xi32, #shd.sharding<[{X}, {}]>> to tensor<2x2xi32, #shd.sharding<[{}, {X}]>> : tensor<1x2xi32> -> tensor<2x1xi32>
  %g = spmd.all_gather %a over ["X"] of tensor<2x2xi32, #shd.sharding<[{}, {X}]>> to tensor<2x2xi32> : tensor<2x1xi32> -> tensor<2x2xi32>
  %s = spmd.all_slice %g over ["X"] of tensor<2x2xi32> to tensor<2x2xi32, #shd.sharding<[{X}, {}]>> : tensor<2x2xi32> -> tensor<1x2xi32>
  %p = spmd.collective_permute %s over ["X"] of tensor<2x2xi32, #shd.sharding<[{X}, {}]>> to tensor<2x2xi32, #shd.sharding<[{X}, {}]>> : tensor<1x2xi32> -> tensor<1x2xi32>
  %r = shd.reduce sum(%a) <[D, E] -> [D]> : (tensor<2x1xi32>) -> tensor<2xi32>
  %t = spmd.reduce_scatter %r over ["X"] of tensor<2xi32, #shd.sharding<[{}], partial = {X}>> to tensor<2xi32, #shd.sharding<[{X}]>> : tensor<2xi32> -> tensor<1xi32>
  spmd.update %x = %p : tensor<1x2xi32>, tensor<1x2xi32>
})";
  inputs = {{"x", {1, 2, 3, 4, 5, 6, 7, 8}}, {"w", {5, 6, 7, 8}}};
  std::set<StringRef> ran;
  for (StringRef text : {kDot, collectives, kRings}) {
    inputs["x"].resize(text == StringRef(kRings) ? 8 : 4);
    ASSERT_TRUE(run(text)) << errors;
    module->walk(
        [&](Operation *op) { ran.insert(op->getName().getStringRef()); });
  }
  for (RegisteredOperationName name :
       context.getRegisteredOperationsByDialect("spmd"))
    EXPECT_TRUE(ran.count(name.getStringRef()))
        << name.getStringRef().str() << " is in no program that runs";
}

/// The last iteration runs first: ((0 * 2 + 7) * 2 + 6) * 2 + 5 = 45, where
/// forwards it were ((0 * 2 + 5) * 2 + 6) * 2 + 7 = 39.
TEST_F(InterpreterTest, ReverseRepeats) {
  inputs = {{"w", {5, 6, 7}}};
  ASSERT_TRUE(run(R"(
spmd.program "reverse" {
  %w = spmd.parameter weight "w" ["L"] of tensor<3xi32> stacked 1 : tensor<3xi32>
  %zero = shd.constant dense<0> : tensor<i32>
  %two = shd.constant dense<2> : tensor<i32>
  %y = shd.repeat "L" = 3 reverse(%zero) : (tensor<i32>) -> tensor<i32> {
  ^bb0(%l: tensor<i32>, %c: tensor<i32>):
    %p = shd.part %w[%l] : tensor<3xi32> -> tensor<i32>
    %d = shd.elementwise mul(%c, %two) <[], [] -> []> : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %e = shd.elementwise add(%d, %p) <[], [] -> []> : (tensor<i32>, tensor<i32>) -> tensor<i32>
    shd.yield %e : tensor<i32>
  }
  spmd.output "y" %y [] of tensor<i32> : tensor<i32>
})")) << errors;
  EXPECT_EQ(final("y"), (Parts{{45}}));
}

/// Softmax of 0 and log 3, twice: exponentials sum to 1 + 3 on each device and
/// to 8 on both.
TEST_F(InterpreterTest, Statistics) {
  inputs = {{"x", {0, std::log(3), 0, std::log(3)}}};
  ASSERT_TRUE(run(R"(
spmd.program "softmax" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["S"] of tensor<4xf32, #shd.sharding<[{X}]>> : tensor<2xf32>
  %m = shd.statistic "max"(%x) {shd.name = "m"} : (tensor<2xf32>) -> tensor<f32>
  %max = spmd.all_reduce max %m over ["X"] of tensor<f32, #shd.sharding<[], partial = {X}>> to tensor<f32> : tensor<f32> -> tensor<f32>
  %s = shd.statistic "sum_exp"(%x, %max) {shd.name = "s"} : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
  %sum = spmd.all_reduce %s over ["X"] of tensor<f32, #shd.sharding<[], partial = {X}>> to tensor<f32> : tensor<f32> -> tensor<f32>
  %y = shd.normalize softmax(%x) over ["S"] <[S] -> [S]> stats(%max, %sum : tensor<f32>, tensor<f32>) {spmd.shards = [#spmd.shard<"S" = 4 over [X]>]} : (tensor<2xf32>) -> tensor<2xf32>
  spmd.output "y" %y ["S"] of tensor<4xf32, #shd.sharding<[{X}]>> : tensor<2xf32>
})")) << errors;
  EXPECT_EQ(observed["m"], (Parts{{std::log(3)}, {std::log(3)}}));
  // 1 / 3 + 1.
  ASSERT_EQ(observed["s"].size(), 2u);
  EXPECT_NEAR(observed["s"][0][0], 4.0 / 3, 1e-12);
  for (const Values &part : final("y")) {
    EXPECT_NEAR(part[0], 1.0 / 8, 1e-12);
    EXPECT_NEAR(part[1], 3.0 / 8, 1e-12);
  }
}

/// Rows 0 1 2 of a table are with X = 0, 3 4 5 with X = 1; who lacks a row
/// gives 0. The shard says where a part begins.
TEST_F(InterpreterTest, ShardsSayWhereAPartBegins) {
  inputs = {{"t", {10, 11, 12, 13, 14, 15}}, {"p", {4, 1}}};
  ASSERT_TRUE(run(R"(
spmd.program "lookup" mesh <[X = 2]> {
  %t = spmd.parameter weight "t" ["V"] of tensor<6xf32, #shd.sharding<[{X}]>> : tensor<3xf32>
  %p = spmd.parameter input "p" ["B"] of tensor<2xi32, #shd.sharding<[{}]>> : tensor<2xi32>
  %y = shd.gather(%t, %p) <[V], [B] -> [B]> at [0] {shd.name = "y", spmd.shards = [#spmd.shard<"V" = 6 over [X]>]} : (tensor<3xf32>, tensor<2xi32>) -> tensor<2xf32>
  %s = spmd.all_reduce %y over ["X"] of tensor<2xf32, #shd.sharding<[{}], partial = {X}>> to tensor<2xf32, #shd.sharding<[{}]>> : tensor<2xf32> -> tensor<2xf32>
  spmd.output "y" %s ["B"] of tensor<2xf32, #shd.sharding<[{}]>> : tensor<2xf32>
})")) << errors;
  EXPECT_EQ(observed["y"], (Parts{{0, 11}, {14, 0}}));
  EXPECT_EQ(final("y"), (Parts{{14, 11}, {14, 11}}));
}

TEST_F(InterpreterTest, WholePrograms) {
  inputs = {{"x", {1, 2}}};
  ASSERT_TRUE(run<shd::ProgramOp>(R"(
shd.program "whole" {
  %x = shd.declare state "x" ["D"] : tensor<2xf32>
  %y = shd.elementwise add(%x, %x) <[D], [D] -> [D]> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  shd.update %x = %y : tensor<2xf32>, tensor<2xf32>
  shd.output "y" %y ["D"] : tensor<2xf32>
})")) << errors;
  ASSERT_EQ(result.finals.size(), 2u);
  EXPECT_EQ(final("x"), (Parts{{2, 4}}));
  EXPECT_EQ(final("y"), (Parts{{2, 4}}));
  EXPECT_TRUE(result.collectives.empty());
}

//===----------------------------------------------------------------------===//
// Errors, with the line of the operation
//===----------------------------------------------------------------------===//

TEST_F(InterpreterTest, OperandThatIsNotThere) {
  inputs = {{"x", {1, 2, 3, 4}}, {"w", {5, 6, 7, 8}}};
  ASSERT_TRUE(parse(kDot));
  auto reduce = get<spmd::AllReduceOp>();
  reduce->moveBefore(reduce.getInput().getDefiningOp());
  EXPECT_FALSE(runParsed());
  EXPECT_EQ(errors, "6: device (X=0) does not hold an operand\n");
  errors.clear();
  ASSERT_TRUE(parse(kDot));
  auto dot = get<shd::EinsumOp>();
  dot->moveBefore(dot->getOperand(1).getDefiningOp());
  EXPECT_FALSE(runParsed());
  EXPECT_EQ(errors, "5: device (X=0) does not hold an operand\n");
}

TEST_F(InterpreterTest, OperationThatCannotBeRun) {
  inputs = {{"x", {1, 2}}};
  EXPECT_FALSE(run(R"(
spmd.program "cast" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["D"] of tensor<2xf32, #shd.sharding<[{X}]>> : tensor<1xf32>
  %y = builtin.unrealized_conversion_cast %x : tensor<1xf32> to tensor<1xf32>
})"));
  EXPECT_EQ(errors, "4: 'builtin.unrealized_conversion_cast' cannot be run\n");
}

TEST_F(InterpreterTest, StatisticOfNothing) {
  inputs = {{"x", {1, 2}}};
  EXPECT_FALSE(run(R"(
spmd.program "statistic" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["S"] of tensor<2xf32, #shd.sharding<[{X}]>> : tensor<1xf32>
  %m = shd.statistic "max"(%x) : (tensor<1xf32>) -> tensor<f32>
})"));
  EXPECT_EQ(errors, "4: no operation takes this statistic\n");
}

/// Axes that do not do what the types say: the group lacks the other half.
TEST_F(InterpreterTest, CollectiveThatCannotBe) {
  inputs = {{"x", {1, 2}}};
  ASSERT_TRUE(parse(R"(
spmd.program "gather" mesh <[X = 2, Y = 2]> {
  %x = spmd.parameter input "x" ["D"] of tensor<2xf32, #shd.sharding<[{X}]>> : tensor<1xf32>
  %y = spmd.all_gather %x over ["X"] of tensor<2xf32, #shd.sharding<[{X}]>> to tensor<2xf32, #shd.sharding<[{}]>> : tensor<1xf32> -> tensor<2xf32>
})"));
  get<spmd::AllGatherOp>().setAxesAttr(Builder(&context).getStrArrayAttr({}));
  EXPECT_FALSE(runParsed());
  EXPECT_EQ(errors, "4: device (X=0, Y=0) needs 1 element that its group does "
                    "not have\n");
}

/// Position 7 of 4, on the whole index of a table that is split.
TEST_F(InterpreterTest, PositionsOutOfRange) {
  constexpr StringLiteral text = R"(
spmd.program "lookup" mesh <[X = 2]> {
  %t = spmd.parameter weight "t" ["V"] of tensor<4xf32, #shd.sharding<[{X}]>> : tensor<2xf32>
  %p = spmd.parameter input "p" ["B"] of tensor<2xi32, #shd.sharding<[{}]>> : tensor<2xi32>
  %y = shd.gather(%t, %p) <[V], [B] -> [B]> at [0] {shd.name = "y", spmd.shards = [#spmd.shard<"V" = 4 over [X]>]} : (tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>
})";
  inputs = {{"t", {10, 11, 12, 13}}, {"p", {1, 7}}};
  EXPECT_FALSE(run(text));
  EXPECT_TRUE(StringRef(errors).starts_with("5: ")) << errors;
  EXPECT_NE(errors.find("position 7 is not in index 'V'"), std::string::npos)
      << errors;
  // 7 is 3 modulo 4, element 1 of the second part.
  options.positions = PositionPolicy::Wrap;
  ASSERT_TRUE(run(text)) << errors;
  EXPECT_EQ(observed["y"], (Parts{{11, 0}, {0, 13}}));
}

} // namespace
