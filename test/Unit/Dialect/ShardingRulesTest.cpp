//===- ShardingRulesTest.cpp - Sharding rules of operations ---------------===//
//
// Each rule is compared with the one written by hand: factors with extents and
// kinds, the factors of each dimension, linear sets and statistics.
//
//===----------------------------------------------------------------------===//

#include "Program.h"

using namespace shardc;
using namespace shardc::shd;

namespace {

/// `B:8:parallel`, ... in order.
std::string factors(const ShardingRule &rule) {
  static constexpr const char *kinds[] = {"parallel", "reduction", "statistic",
                                          "statistic-reduction", "replicated"};
  std::string text;
  for (const Factor &factor : rule.factors)
    text += factor.name + ":" + std::to_string(factor.extent) + ":" +
            kinds[unsigned(factor.kind)] + " ";
  return text;
}

/// `0 1,2 | 3`: a group per tensor, with commas within a dimension.
std::string dims(llvm::ArrayRef<TensorFactors> tensors) {
  std::string text;
  for (const TensorFactors &tensor : tensors) {
    for (const DimFactors &dim : tensor) {
      for (auto [i, factor] : llvm::enumerate(dim))
        text += (i ? "," : "") + std::to_string(factor);
      text += " ";
    }
    text += "| ";
  }
  return text;
}

std::vector<uint32_t> linear(const ShardingRule &rule) {
  return {rule.linearSets.begin(), rule.linearSets.end()};
}

/// `max:max:f32: 0 1; `, ...: name, combination, element type, factors.
std::string statistics(const ShardingRule &rule) {
  static constexpr const char *combinations[] = {":sum:", ":max:", ":min:"};
  std::string text;
  for (const Statistic &statistic : rule.statistics) {
    text += statistic.name + combinations[unsigned(statistic.combination)] +
            statistic.elementType + ":";
    for (unsigned factor : statistic.factors)
      text += " " + std::to_string(factor);
    text += "; ";
  }
  return text;
}

template <typename Op> ShardingRule ruleOf(llvm::StringRef body) {
  return Program(body).get<Op>().getShardingRule();
}

TEST(ShardingRules, Einsum) {
  ShardingRule rule = ruleOf<EinsumOp>(R"(
    %a = shd.declare input "a" ["E", "B", "D"] : tensor<2x8x16xbf16>
    %b = shd.declare weight "b" ["E", "D", "F"] : tensor<2x16x32xbf16>
    %c = shd.einsum(%a, %b) <[E, B, D], [E, D, F] -> [B, E, F]> : (tensor<2x8x16xbf16>, tensor<2x16x32xbf16>) -> tensor<8x2x32xbf16>)");
  EXPECT_EQ(factors(rule),
            "E:2:parallel B:8:parallel D:16:reduction F:32:parallel ");
  EXPECT_EQ(dims(rule.operands), "0 1 2 | 0 2 3 | ");
  EXPECT_EQ(dims(rule.results), "1 0 3 | ");
  EXPECT_EQ(linear(rule), (std::vector<uint32_t>{0b01, 0b10}));
  EXPECT_EQ(statistics(rule), "");
}

/// The rule of an elementwise function of `count` bf16 vectors.
ShardingRule elementwiseRule(llvm::StringRef function, unsigned count,
                             llvm::StringRef resultType = "bf16") {
  std::string names, indices, types;
  for (unsigned i = 0; i < count; ++i) {
    bool condition = function == "where" && i == 0;
    names += std::string(i ? ", " : "") + (condition ? "%p" : "%x");
    indices += std::string(i ? ", " : "") + "[B]";
    types += std::string(i ? ", " : "") +
             (condition ? "tensor<8xi1>" : "tensor<8xbf16>");
  }
  return ruleOf<ElementwiseOp>(
      ("%x = shd.declare input \"x\" [\"B\"] : tensor<8xbf16>\n"
       "%p = shd.declare input \"p\" [\"B\"] : tensor<8xi1>\n"
       "%y = shd.elementwise " +
       function + "(" + names + ") <" + indices + " -> [B]> : (" + types +
       ") -> tensor<8x" + resultType + ">")
          .str());
}

TEST(ShardingRules, ElementwiseIsLinearWhereTheFunctionIs) {
  using Sets = std::vector<uint32_t>;
  // Sums pass partial sums through only together: f(a, b) of one partial term
  // and one whole term would count the whole term once per device.
  EXPECT_EQ(linear(elementwiseRule("add", 2)), Sets{0b11});
  EXPECT_EQ(linear(elementwiseRule("sub", 2)), Sets{0b11});
  EXPECT_EQ(linear(elementwiseRule("neg", 1)), Sets{0b1});
  EXPECT_EQ(linear(elementwiseRule("copy", 1)), Sets{0b1});
  // A product is linear in each factor.
  EXPECT_EQ(linear(elementwiseRule("mul", 2)), (Sets{0b01, 0b10}));
  EXPECT_EQ(linear(elementwiseRule("div", 2)), Sets{0b01});
  // Both branches together, the condition is not.
  EXPECT_EQ(linear(elementwiseRule("where", 3)), Sets{0b110});
  for (const char *function : {"relu", "silu", "exp", "square", "abs"})
    EXPECT_EQ(linear(elementwiseRule(function, 1)), Sets{}) << function;
  // Where a cast rounds, the sum of casts is not the cast of the sum.
  EXPECT_EQ(linear(elementwiseRule("cast", 1, "f32")), Sets{0b1});
  for (const char *type : {"f16", "f8E4M3FN", "i32"})
    EXPECT_EQ(linear(elementwiseRule("cast", 1, type)), Sets{}) << type;
  for (const char *function : {"maximum", "minimum"})
    EXPECT_EQ(linear(elementwiseRule(function, 2)), Sets{}) << function;
  EXPECT_EQ(linear(elementwiseRule("lt", 2, "i1")), Sets{});
}

TEST(ShardingRules, ElementwiseBroadcast) {
  ShardingRule rule = ruleOf<ElementwiseOp>(R"(
    %a = shd.declare input "a" ["B", "D"] : tensor<8x16xbf16>
    %b = shd.declare weight "b" ["D"] : tensor<16xbf16>
    %c = shd.elementwise add(%a, %b) <[B, D], [D] -> [D, B]> : (tensor<8x16xbf16>, tensor<16xbf16>) -> tensor<16x8xbf16>)");
  EXPECT_EQ(factors(rule), "B:8:parallel D:16:parallel ");
  EXPECT_EQ(dims(rule.operands), "0 1 | 1 | ");
  EXPECT_EQ(dims(rule.results), "1 0 | ");
  EXPECT_EQ(linear(rule), std::vector<uint32_t>{0b11});
}

TEST(ShardingRules, ConstantsAreNeverPartial) {
  constexpr llvm::StringLiteral program = R"(
    %a = shd.declare input "a" ["B"] : tensor<8xbf16>
    %c = shd.constant dense<2.0> : tensor<bf16>
    %y = shd.elementwise FUNCTION(%a, %c) <[B], [] -> [B]> : (tensor<8xbf16>, tensor<bf16>) -> tensor<8xbf16>)";
  auto ruleWith = [&](llvm::StringRef function) {
    std::string text = program.str();
    text.replace(text.find("FUNCTION"), 8, function.str());
    return ruleOf<ElementwiseOp>(text);
  };
  EXPECT_EQ(linear(ruleWith("add")), std::vector<uint32_t>{});
  EXPECT_EQ(linear(ruleWith("mul")), std::vector<uint32_t>{0b01});
}

TEST(ShardingRules, IterationNumbersAreNeverPartial) {
  ShardingRule rule = ruleOf<ElementwiseOp>(R"(
    %a = shd.declare input "a" ["B"] : tensor<8xi32>
    shd.repeat "L" = 2 () : () -> () {
    ^bb0(%i: tensor<i32>):
      %y = shd.elementwise sub(%a, %i) <[B], [] -> [B]> : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
      shd.yield
    })");
  EXPECT_EQ(linear(rule), std::vector<uint32_t>{});
}

ShardingRule reduceRule(llvm::StringRef kind, llvm::StringRef result) {
  return ruleOf<ReduceOp>(
      ("%x = shd.declare input \"x\" [\"B\", \"D\", \"S\"] : "
       "tensor<8x4x16xbf16>\n%y = shd.reduce " +
       kind + "(%x) <[B, D, S] -> [D]> : (tensor<8x4x16xbf16>) -> " + result)
          .str());
}

TEST(ShardingRules, ReductionsThatSum) {
  for (const char *kind : {"sum", "mean"}) {
    ShardingRule rule = reduceRule(kind, "tensor<4xbf16>");
    EXPECT_EQ(factors(rule), "B:8:reduction D:4:parallel S:16:reduction ");
    EXPECT_EQ(dims(rule.results), "1 | ");
    EXPECT_EQ(linear(rule), std::vector<uint32_t>{0b1});
    EXPECT_EQ(statistics(rule), "");
  }
}

TEST(ShardingRules, ReductionsThatCompare) {
  for (std::string kind : {"max", "min"}) {
    ShardingRule rule = reduceRule(kind, "tensor<4xbf16>");
    EXPECT_EQ(factors(rule), "B:8:statistic D:4:parallel S:16:statistic ");
    EXPECT_EQ(linear(rule), std::vector<uint32_t>{});
    EXPECT_EQ(statistics(rule), kind + ":" + kind + ":bf16: 1; ");
  }
  EXPECT_EQ(statistics(reduceRule("argmax", "tensor<4xi32>")),
            "value:max:bf16: 1; index:min:int32: 1; ");
}

/// A normalisation of a bf16 tensor over its last index.
ShardingRule normalizeRule(llvm::StringRef kind) {
  bool drops = kind == "logsumexp";
  return ruleOf<NormalizeOp>(
      ("%x = shd.declare input \"x\" [\"B\", \"T\", \"D\"] : "
       "tensor<8x4x16xbf16>\n%y = shd.normalize " +
       kind + "(%x) over [\"D\"] <[B, T, D] -> " +
       (drops ? "[B, T]" : "[B, T, D]") +
       "> : (tensor<8x4x16xbf16>) -> tensor<" + (drops ? "8x4" : "8x4x16") +
       "xbf16>")
          .str());
}

TEST(ShardingRules, Normalisations) {
  ShardingRule rule = normalizeRule("softmax");
  EXPECT_EQ(factors(rule), "B:8:parallel T:4:parallel D:16:statistic ");
  EXPECT_EQ(dims(rule.results), "0 1 2 | ");
  EXPECT_EQ(linear(rule), std::vector<uint32_t>{});
  // Computed in f32, with the input's other indices.
  EXPECT_EQ(statistics(rule), "max:max:f32: 0 1; sum_exp:sum:f32: 0 1; ");
  EXPECT_EQ(dims(normalizeRule("logsumexp").results), "0 1 | ");
  EXPECT_EQ(statistics(normalizeRule("logsumexp")),
            "max:max:f32: 0 1; sum_exp:sum:f32: 0 1; ");
  EXPECT_EQ(statistics(normalizeRule("rmsnorm")), "sum_square:sum:f32: 0 1; ");
  EXPECT_EQ(statistics(normalizeRule("layernorm")),
            "sum:sum:f32: 0 1; sum_square:sum:f32: 0 1; ");
}

TEST(ShardingRules, NormalisationScale) {
  ShardingRule rule = ruleOf<NormalizeOp>(R"(
    %x = shd.declare input "x" ["B", "D"] : tensor<8x16xbf16>
    %g = shd.declare weight "g" ["D"] : tensor<16xbf16>
    %y = shd.normalize rmsnorm(%x, %g) over ["D"] <[B, D], [D] -> [B, D]> : (tensor<8x16xbf16>, tensor<16xbf16>) -> tensor<8x16xbf16>)");
  EXPECT_EQ(dims(rule.operands), "0 1 | 1 | ");
  EXPECT_EQ(statistics(rule), "sum_square:sum:f32: 0; ");
}

TEST(ShardingRules, CrossEntropy) {
  ShardingRule rule = ruleOf<CrossEntropyOp>(R"(
    %x = shd.declare input "x" ["B", "V"] : tensor<8x32xbf16>
    %l = shd.declare input "l" ["B"] : tensor<8xi32>
    %y = shd.cross_entropy(%x, %l) over "V" <[B, V], [B] -> [B]> : tensor<8x32xbf16>, tensor<8xi32> -> tensor<8xf32>)");
  EXPECT_EQ(factors(rule), "B:8:parallel V:32:statistic ");
  EXPECT_EQ(linear(rule), std::vector<uint32_t>{});
  EXPECT_EQ(statistics(rule),
            "max:max:f32: 0; sum_exp:sum:f32: 0; picked:sum:f32: 0; ");
}

TEST(ShardingRules, AttentionSeparatesTheValuesHeadIndex) {
  // Grouped queries: K key heads serve G queries each. The result's H is v's.
  ShardingRule rule = ruleOf<AttentionOp>(R"(
    %q = shd.declare input "q" ["B", "T", "K", "G", "H"] : tensor<2x8x4x3x16xbf16>
    %k = shd.declare input "k" ["B", "S", "K", "H"] : tensor<2x32x4x16xbf16>
    %v = shd.declare input "v" ["B", "S", "K", "H"] : tensor<2x32x4x16xbf16>
    %at = shd.declare input "at" ["B", "T"] : tensor<2x8xi32>
    %o = shd.attention(%q, %k, %v at %at) over "H", "S" <[B, T, K, G, H], [B, S, K, H], [B, S, K, H], [B, T] -> [B, T, K, G, H]> causal : tensor<2x8x4x3x16xbf16>, tensor<2x32x4x16xbf16>, tensor<2x32x4x16xbf16>, tensor<2x8xi32> -> tensor<2x8x4x3x16xbf16>)");
  EXPECT_EQ(factors(rule), "B:2:parallel T:8:parallel K:4:parallel "
                           "G:3:parallel H:16:replicated "
                           "S:32:statistic-reduction H of values:16:parallel ");
  EXPECT_EQ(dims(rule.operands), "0 1 2 3 4 | 0 5 2 4 | 0 5 2 6 | 0 1 | ");
  EXPECT_EQ(dims(rule.results), "0 1 2 3 6 | ");
  EXPECT_EQ(linear(rule), std::vector<uint32_t>{0b100});
  EXPECT_EQ(statistics(rule),
            "max:max:f32: 0 1 2 3; sum_exp:sum:f32: 0 1 2 3; ");
}

TEST(ShardingRules, AttentionWithAnIndexOfValuesOnly) {
  ShardingRule rule = ruleOf<AttentionOp>(R"(
    %q = shd.declare input "q" ["T", "H"] : tensor<8x16xbf16>
    %k = shd.declare input "k" ["S", "H"] : tensor<32x16xbf16>
    %v = shd.declare input "v" ["S", "E"] : tensor<32x24xbf16>
    %o = shd.attention(%q, %k, %v) over "H", "S" <[T, H], [S, H], [S, E] -> [T, E]> : tensor<8x16xbf16>, tensor<32x16xbf16>, tensor<32x24xbf16> -> tensor<8x24xbf16>)");
  EXPECT_EQ(factors(rule), "T:8:parallel H:16:replicated "
                           "S:32:statistic-reduction E:24:parallel ");
}

TEST(ShardingRules, AttentionWithItsLogSumExp) {
  // Over S the result is a partial sum; the logsumexp is what devices agreed
  // on.
  ShardingRule rule = ruleOf<AttentionOp>(R"(
    %q = shd.declare input "q" ["T", "H"] : tensor<8x16xbf16>
    %k = shd.declare input "k" ["S", "H"] : tensor<32x16xbf16>
    %v = shd.declare input "v" ["S", "E"] : tensor<32x24xbf16>
    %o, %l = shd.attention(%q, %k, %v) over "H", "S" <[T, H], [S, H], [S, E] -> [T, E], [T]> : tensor<8x16xbf16>, tensor<32x16xbf16>, tensor<32x24xbf16> -> tensor<8x24xbf16>, tensor<8xf32>)");
  EXPECT_EQ(dims(rule.results), "0 3 | 0 | ");
  Strategy strategy;
  strategy.factorAxes = {{}, {}, {0}, {}};
  EXPECT_EQ(resultLayout(rule, strategy, 0), (Layout{{{}, {}}, 1}));
  EXPECT_EQ(resultLayout(rule, strategy, 1), (Layout{{{}}, 0}));
  // Values that are a partial sum make another, and leave the scores alone.
  Strategy passing;
  passing.factorAxes = {{}, {}, {}, {}};
  passing.passThrough = {{0, 0}};
  EXPECT_EQ(resultLayout(rule, passing, 0), (Layout{{{}, {}}, 1}));
  EXPECT_EQ(resultLayout(rule, passing, 1), (Layout{{{}}, 0}));
}

TEST(ShardingRules, AttentionWithSinkAndBias) {
  ShardingRule rule = ruleOf<AttentionOp>(R"(
    %q = shd.declare input "q" ["T", "N", "H"] : tensor<8x4x16xbf16>
    %k = shd.declare input "k" ["S", "H"] : tensor<32x16xbf16>
    %s = shd.declare input "s" ["N"] : tensor<4xbf16>
    %b = shd.declare input "b" ["N", "T", "S"] : tensor<4x8x32xbf16>
    %o = shd.attention(%q, %k, %k sink %s bias %b) over "H", "S" <[T, N, H], [S, H], [S, H], [N], [N, T, S] -> [T, N, H]> : tensor<8x4x16xbf16>, tensor<32x16xbf16>, tensor<32x16xbf16> sink tensor<4xbf16> bias tensor<4x8x32xbf16> -> tensor<8x4x16xbf16>)");
  EXPECT_EQ(factors(rule), "T:8:parallel N:4:parallel H:16:replicated "
                           "S:32:statistic-reduction H of values:16:parallel ");
  EXPECT_EQ(dims(rule.operands), "0 1 2 | 3 2 | 3 4 | 1 | 1 0 3 | ");
  EXPECT_EQ(linear(rule), std::vector<uint32_t>{0b100});
}

TEST(ShardingRules, AttentionGradOfABias) {
  // The batch is summed: a split of it makes the bias's gradient a partial sum.
  ShardingRule rule = ruleOf<AttentionGradOp>(R"(
    %q = shd.declare input "q" ["B", "T", "H"] : tensor<2x8x16xbf16>
    %k = shd.declare input "k" ["B", "S", "H"] : tensor<2x32x16xbf16>
    %l = shd.declare input "l" ["B", "T"] : tensor<2x8xf32>
    %b = shd.declare input "b" ["T", "S"] : tensor<8x32xbf16>
    %g:4 = shd.attention_grad(%q, %k, %k, %q, %q, %l bias %b) over "H", "S" <[B, T, H], [B, S, H], [B, S, H], [B, T, H], [B, T, H], [B, T], [T, S] -> [B, T, H], [B, S, H], [B, S, H], [T, S]> : (tensor<2x8x16xbf16>, tensor<2x32x16xbf16>, tensor<2x32x16xbf16>, tensor<2x8x16xbf16>, tensor<2x8x16xbf16>, tensor<2x8xf32>, tensor<8x32xbf16>) -> (tensor<2x8x16xbf16>, tensor<2x32x16xbf16>, tensor<2x32x16xbf16>, tensor<8x32xf32>))");
  Strategy strategy;
  strategy.factorAxes = {{0}, {}, {}, {1}, {}};
  ASSERT_EQ(rule.factors[3].name, "S");
  EXPECT_EQ(resultLayout(rule, strategy, 0).partial, AxisSet(2));
  EXPECT_EQ(resultLayout(rule, strategy, 1).partial, AxisSet(0));
  EXPECT_EQ(resultLayout(rule, strategy, 3).partial, AxisSet(1));
}

TEST(ShardingRules, AttentionGrad) {
  ShardingRule rule = ruleOf<AttentionGradOp>(R"(
    %q = shd.declare input "q" ["B", "T", "K", "G", "H"] : tensor<2x8x4x3x16xbf16>
    %k = shd.declare input "k" ["B", "S", "K", "H"] : tensor<2x32x4x16xbf16>
    %v = shd.declare input "v" ["B", "S", "K", "H"] : tensor<2x32x4x16xbf16>
    %l = shd.declare input "l" ["B", "T", "K", "G"] : tensor<2x8x4x3xf32>
    %dq, %dk, %dv = shd.attention_grad(%q, %k, %v, %q, %q, %l) over "H", "S" query "T" <[B, T, K, G, H], [B, S, K, H], [B, S, K, H], [B, T, K, G, H], [B, T, K, G, H], [B, T, K, G] -> [B, T, K, G, H], [B, S, K, H], [B, S, K, H]> causal : (tensor<2x8x4x3x16xbf16>, tensor<2x32x4x16xbf16>, tensor<2x32x4x16xbf16>, tensor<2x8x4x3x16xbf16>, tensor<2x8x4x3x16xbf16>, tensor<2x8x4x3xf32>) -> (tensor<2x8x4x3x16xbf16>, tensor<2x32x4x16xbf16>, tensor<2x32x4x16xbf16>))");
  EXPECT_EQ(factors(rule), "B:2:parallel T:8:reduction K:4:parallel "
                           "G:3:reduction H:16:replicated "
                           "S:32:reduction H of values:16:replicated ");
  EXPECT_EQ(dims(rule.operands), "0 1 2 3 4 | 0 5 2 4 | 0 5 2 6 | 0 1 2 3 6 | "
                                 "0 1 2 3 6 | 0 1 2 3 | ");
  EXPECT_EQ(dims(rule.results), "0 1 2 3 4 | 0 5 2 4 | 0 5 2 6 | ");
  EXPECT_EQ(linear(rule), std::vector<uint32_t>{0b10000});
  EXPECT_EQ(statistics(rule), "");
  // T on the first axis, S on the second.
  Strategy strategy;
  strategy.factorAxes = {{}, {0}, {}, {}, {}, {1}, {}};
  EXPECT_EQ(resultLayout(rule, strategy, 0).partial, AxisSet(2));
  EXPECT_EQ(resultLayout(rule, strategy, 1).partial, AxisSet(1));
  EXPECT_EQ(resultLayout(rule, strategy, 2).partial, AxisSet(1));
}

TEST(ShardingRules, AttentionGradOfValuesThatHeadsShare) {
  // Every K has the same values: their gradient sums over it.
  ShardingRule rule = ruleOf<AttentionGradOp>(R"(
    %q = shd.declare input "q" ["T", "K", "H"] : tensor<8x4x16xbf16>
    %k = shd.declare input "k" ["S", "K", "H"] : tensor<32x4x16xbf16>
    %v = shd.declare input "v" ["S", "E"] : tensor<32x24xbf16>
    %o = shd.declare input "o" ["T", "K", "E"] : tensor<8x4x24xbf16>
    %l = shd.declare input "l" ["T", "K"] : tensor<8x4xf32>
    %dq, %dk, %dv = shd.attention_grad(%q, %k, %v, %o, %o, %l) over "H", "S" <[T, K, H], [S, K, H], [S, E], [T, K, E], [T, K, E], [T, K] -> [T, K, H], [S, K, H], [S, E]> : (tensor<8x4x16xbf16>, tensor<32x4x16xbf16>, tensor<32x24xbf16>, tensor<8x4x24xbf16>, tensor<8x4x24xbf16>, tensor<8x4xf32>) -> (tensor<8x4x16xbf16>, tensor<32x4x16xbf16>, tensor<32x24xbf16>))");
  EXPECT_EQ(factors(rule), "T:8:reduction K:4:reduction H:16:replicated "
                           "S:32:reduction E:24:replicated ");
}

TEST(ShardingRules, ScatterSum) {
  // Rows on an axis: a device adds to those that it has. B and T sum.
  ShardingRule rule = ruleOf<ScatterSumOp>(R"(
    %x = shd.declare input "x" ["B", "T", "D"] : tensor<2x8x16xbf16>
    %at = shd.declare input "at" ["B", "T"] : tensor<2x8xi32>
    %y = shd.scatter_sum(%x, %at) <[B, T, D], [B, T] -> [V, D]> at [0] : (tensor<2x8x16xbf16>, tensor<2x8xi32>) -> tensor<32x16xbf16>)");
  EXPECT_EQ(factors(rule),
            "B:2:reduction T:8:reduction D:16:parallel V:32:parallel ");
  EXPECT_EQ(dims(rule.results), "3 2 | ");
  EXPECT_EQ(linear(rule), std::vector<uint32_t>{0b1});
}

TEST(ShardingRules, TopK) {
  ShardingRule rule = ruleOf<TopKOp>(R"(
    %x = shd.declare input "x" ["T", "E"] : tensor<8x4xf32>
    %y = shd.topk(%x) over "E" k 2 <[T, E] -> [T, E]> : (tensor<8x4xf32>) -> tensor<8x4xi1>)");
  EXPECT_EQ(factors(rule), "T:8:parallel E:4:replicated ");
  EXPECT_TRUE(linear(rule).empty());
}

TEST(ShardingRules, Dispatch) {
  // Tokens of x sum; those of the picks are others, and whole, as experts are.
  ShardingRule rule = ruleOf<DispatchOp>(R"(
    %x = shd.declare input "x" ["B", "T", "D"] : tensor<2x8x16xbf16>
    %p = shd.declare input "p" ["B", "T", "E"] : tensor<2x8x4xi1>
    %y = shd.dispatch(%x, %p) over "E", "C" k 2 <[B, T, D], [B, T, E] -> [E, B, C, D]> : (tensor<2x8x16xbf16>, tensor<2x8x4xi1>) -> tensor<4x2x4x16xbf16>)");
  EXPECT_EQ(factors(rule),
            "B:2:parallel T:8:reduction D:16:parallel T of picks:8:replicated "
            "E of picks:4:replicated E:4:parallel C:4:parallel ");
  EXPECT_EQ(dims(rule.operands), "0 1 2 | 0 3 4 | ");
  EXPECT_EQ(dims(rule.results), "5 0 6 2 | ");
  EXPECT_EQ(linear(rule), std::vector<uint32_t>{0b1});
}

TEST(ShardingRules, Combine) {
  // Over experts and slots it sums; linear in results and in weights.
  ShardingRule rule = ruleOf<CombineOp>(R"(
    %y = shd.declare input "y" ["E", "B", "C", "D"] : tensor<4x2x4x16xbf16>
    %p = shd.declare input "p" ["B", "T", "E"] : tensor<2x8x4xi1>
    %w = shd.declare input "w" ["B", "T", "E"] : tensor<2x8x4xbf16>
    %z = shd.combine(%y, %p, %w) over "E", "C" k 2 <[E, B, C, D], [B, T, E], [B, T, E] -> [B, T, D]> : (tensor<4x2x4x16xbf16>, tensor<2x8x4xi1>, tensor<2x8x4xbf16>) -> tensor<2x8x16xbf16>)");
  EXPECT_EQ(factors(rule),
            "E:4:reduction B:2:parallel C:4:reduction D:16:parallel T of "
            "picks:8:replicated E of picks:4:replicated T:8:parallel ");
  EXPECT_EQ(dims(rule.operands), "0 1 2 3 | 1 4 5 | 1 6 0 | ");
  EXPECT_EQ(dims(rule.results), "1 6 3 | ");
  EXPECT_EQ(linear(rule), (std::vector<uint32_t>{0b1, 0b100}));
}

TEST(ShardingRules, Rope) {
  ShardingRule rule = ruleOf<RopeOp>(R"(
    %x = shd.declare input "x" ["T", "H"] : tensor<8x16xbf16>
    %y = shd.rope(%x) over "H" positions "T" <[T, H] -> [T, H]> : (tensor<8x16xbf16>) -> tensor<8x16xbf16>)");
  EXPECT_EQ(factors(rule), "T:8:parallel H:16:replicated ");
  EXPECT_EQ(linear(rule), std::vector<uint32_t>{0b1});
}

TEST(ShardingRules, Gather) {
  // x[B, idx[B, T], D]: B is one index of both, S is read.
  ShardingRule rule = ruleOf<GatherOp>(R"(
    %x = shd.declare input "x" ["B", "S", "D"] : tensor<2x32x16xbf16>
    %idx = shd.declare input "idx" ["B", "T"] : tensor<2x8xi32>
    %y = shd.gather(%x, %idx) <[B, S, D], [B, T] -> [B, T, D]> at [1] : (tensor<2x32x16xbf16>, tensor<2x8xi32>) -> tensor<2x8x16xbf16>)");
  EXPECT_EQ(factors(rule),
            "B:2:parallel S:32:reduction D:16:parallel T:8:parallel ");
  EXPECT_EQ(dims(rule.operands), "0 1 2 | 0 3 | ");
  EXPECT_EQ(dims(rule.results), "0 3 2 | ");
  EXPECT_EQ(linear(rule), std::vector<uint32_t>{0b1});
}

TEST(ShardingRules, Scatter) {
  // c[B, pos[T], D] = u[B, T, D]: every device needs all T rows, for any of
  // them may fall into its part of S.
  ShardingRule rule = ruleOf<ScatterOp>(R"(
    %c = shd.declare state "c" ["B", "S", "D"] : tensor<2x32x16xbf16>
    %u = shd.declare input "u" ["B", "T", "D"] : tensor<2x8x16xbf16>
    %p = shd.declare input "p" ["T"] : tensor<8xi32>
    %y = shd.scatter(%c, %u, %p) <[B, S, D], [B, T, D], [T] -> [B, S, D]> at [1] : (tensor<2x32x16xbf16>, tensor<2x8x16xbf16>, tensor<8xi32>) -> tensor<2x32x16xbf16>)");
  EXPECT_EQ(factors(rule),
            "B:2:parallel S:32:parallel D:16:parallel T:8:replicated ");
  EXPECT_EQ(dims(rule.operands), "0 1 2 | 0 3 2 | 3 | ");
  EXPECT_EQ(dims(rule.results), "0 1 2 | ");
  // where(written, update, destination) is linear in both together.
  EXPECT_EQ(linear(rule), std::vector<uint32_t>{0b011});
}

TEST(ShardingRules, SplitAndMerge) {
  ShardingRule split = ruleOf<SplitOp>(R"(
    %x = shd.declare input "x" ["T", "D"] : tensor<8x12xbf16>
    %y = shd.split(%x) "D" into ["A", "B"] <[T, D] -> [T, A, B]> : (tensor<8x12xbf16>) -> tensor<8x3x4xbf16>)");
  EXPECT_EQ(factors(split), "T:8:parallel A:3:parallel B:4:parallel ");
  EXPECT_EQ(dims(split.operands), "0 1,2 | ");
  EXPECT_EQ(dims(split.results), "0 1 2 | ");
  EXPECT_EQ(linear(split), std::vector<uint32_t>{0b1});
  // The parts need not stand in their order, nor next to each other.
  ShardingRule merge = ruleOf<MergeOp>(R"(
    %x = shd.declare input "x" ["B", "T", "A"] : tensor<4x8x3xbf16>
    %y = shd.merge(%x) ["A", "B"] into "D" <[B, T, A] -> [T, D]> : (tensor<4x8x3xbf16>) -> tensor<8x12xbf16>)");
  EXPECT_EQ(factors(merge), "B:4:parallel T:8:parallel A:3:parallel ");
  EXPECT_EQ(dims(merge.operands), "0 1 2 | ");
  EXPECT_EQ(dims(merge.results), "1 2,0 | ");
  EXPECT_EQ(linear(merge), std::vector<uint32_t>{0b1});
}

TEST(ShardingRules, SliceAndConcat) {
  ShardingRule slice = ruleOf<SliceOp>(R"(
    %x = shd.declare input "x" ["I", "D"] : tensor<8x16xbf16>
    %y = shd.slice(%x) "I" [2, 6] into "J" <[I, D] -> [J, D]> : (tensor<8x16xbf16>) -> tensor<4x16xbf16>)");
  EXPECT_EQ(factors(slice), "I:8:replicated D:16:parallel J:4:replicated ");
  EXPECT_EQ(linear(slice), std::vector<uint32_t>{0b1});
  ShardingRule concat = ruleOf<ConcatOp>(R"(
    %x = shd.declare input "x" ["I", "D"] : tensor<8x16xbf16>
    %z = shd.declare input "z" ["J", "D"] : tensor<4x16xbf16>
    %y = shd.concat(%x, %z) ["I", "J"] into "K" <[I, D], [J, D] -> [K, D]> : (tensor<8x16xbf16>, tensor<4x16xbf16>) -> tensor<12x16xbf16>)");
  EXPECT_EQ(factors(concat),
            "I:8:replicated D:16:parallel J:4:replicated K:12:replicated ");
  EXPECT_EQ(dims(concat.results), "3 1 | ");
  EXPECT_EQ(linear(concat), std::vector<uint32_t>{0b11});
}

TEST(ShardingRules, IotaAndReshard) {
  ShardingRule iota = ruleOf<IotaOp>("%y = shd.iota <-> [T]> : tensor<16xi32>");
  EXPECT_EQ(factors(iota), "T:16:parallel ");
  EXPECT_EQ(dims(iota.results), "0 | ");
  EXPECT_EQ(linear(iota), std::vector<uint32_t>{});
  ShardingRule reshard = ruleOf<ReshardOp>(R"(
    %x = shd.declare input "x" ["I", "D"] : tensor<8x16xbf16>
    %y = shd.reshard(%x) <[I, D] -> [I, D]> : (tensor<8x16xbf16>) -> tensor<8x16xbf16>)");
  EXPECT_EQ(factors(reshard), "I:8:parallel D:16:parallel ");
  EXPECT_EQ(linear(reshard), std::vector<uint32_t>{0b1});
}

} // namespace
