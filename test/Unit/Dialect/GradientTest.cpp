//===- GradientTest.cpp - Gradients against finite differences ------------===//
//
// One operation each: the operations that `buildGradient` makes are evaluated
// and compared with central differences of the forward operation, in doubles.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shd/IR/Gradient.h"
#include "Evaluated.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/SetVector.h"
#include <cmath>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

/// Gives every value as it is, and notes which ones are asked for.
class TestScope : public BackwardScope {
public:
  explicit TestScope(Type gradients) : gradients(gradients) {}

  bool isWanted(Value value) override {
    return isa<FloatType>(elementOf(value)) && !constant.contains(value);
  }
  Type gradientType(Value value) override {
    return gradients ? gradients : elementOf(value);
  }
  Value read(Value value, OpBuilder &) override {
    reads.insert(value);
    return value;
  }

  static Type elementOf(Value value) {
    return cast<RankedTensorType>(value.getType()).getElementType();
  }

  Type gradients;
  llvm::SmallPtrSet<Value, 4> constant;
  llvm::SetVector<Value> reads;
};

/// An operation, its gradient, and numbers to run both on.
class Gradient {
public:
  /// `gradients`: the type in which they are held, if not each operand's own;
  /// `constant`: operands without one.
  Gradient(const OpText &text, const Extents &extents,
           const std::vector<Values> &inputs, StringRef gradients = "",
           std::vector<unsigned> constant = {});

  /// Compares each operand's gradient of sum(results * result gradients).
  void compare();
  /// The element type of an operand's gradient, in the language's words.
  StringRef typeOf(unsigned operand) {
    return typeName(TestScope::elementOf(gradients[operand]));
  }
  /// True if the gradient reads an operand or a result of the forward
  /// operation.
  bool readsOperand(unsigned operand) const {
    return reads.contains(forward->getOperand(operand));
  }
  bool readsResult(unsigned result = 0) const {
    return reads.contains(forward->getResult(result));
  }
  /// How many operations of a kind the gradient has.
  template <typename Op> unsigned count() {
    unsigned found = 0;
    program.module->walk([&](Op op) { found += op != forward; });
    return found;
  }
  Values gradientOf(unsigned operand);

private:
  double loss(const std::vector<Values> &inputs);
  /// Runs the program, up to the forward operation or all of it.
  llvm::DenseMap<Value, Tensor> run(const std::vector<Values> &inputs,
                                    bool onlyForward);

  Program program;
  Operation *forward = nullptr;
  std::vector<Values> inputs;
  SmallVector<Value> declared, resultGradients;
  SmallVector<Value> gradients;
  llvm::SetVector<Value> reads;
};

Gradient::Gradient(const OpText &text, const Extents &extents,
                   const std::vector<Values> &inputs, StringRef gradientType,
                   std::vector<unsigned> constant)
    : program(text.program(extents)), inputs(inputs) {
  program.module->walk([&](GradientOpInterface op) { forward = op; });
  OpBuilder builder(&program.context);
  forward = cast<GradientOpInterface>(forward).prepareGradient(builder);
  auto indexed = cast<ShardingRuleOpInterface>(forward);
  program.module->walk([&](DeclareOp declare) { declared.push_back(declare); });
  builder.setInsertionPointAfter(forward);
  for (auto [i, result] : llvm::enumerate(forward->getResults())) {
    // The loss reads the operation's own results, not those for its derivative.
    if (i > text.otherResults.size()) {
      resultGradients.push_back({});
      continue;
    }
    resultGradients.push_back(DeclareOp::create(
        builder, forward->getLoc(), result.getType(), TensorKind::Input,
        "g" + std::to_string(i),
        builder.getStrArrayAttr(indexed.getIndexing().getResultIndices(i)),
        /*stacked=*/0, /*of=*/StringAttr()));
  }
  TestScope scope(typeFromName(&program.context, gradientType));
  for (unsigned operand : constant)
    scope.constant.insert(forward->getOperand(operand));
  GradientBuilder gradient(builder, indexed, resultGradients, scope);
  EXPECT_TRUE(
      succeeded(cast<GradientOpInterface>(forward).buildGradient(gradient)));
  gradients = llvm::to_vector(gradient.getGradients());
  reads = scope.reads;
  EXPECT_TRUE(succeeded(verify(*program.module)));
  for (auto [operand, gradient] :
       llvm::zip_equal(forward->getOperands(), gradients)) {
    EXPECT_EQ(gradient != nullptr, scope.isWanted(operand));
    if (!gradient)
      continue;
    auto type = cast<RankedTensorType>(operand.getType());
    EXPECT_EQ(gradient.getType(), type.clone(scope.gradientType(operand)));
  }
}

llvm::DenseMap<Value, Tensor> Gradient::run(const std::vector<Values> &inputs,
                                            bool onlyForward) {
  llvm::DenseMap<Value, Tensor> values;
  auto set = [&](Value value, const Values &numbers) {
    Tensor tensor(cast<RankedTensorType>(value.getType()));
    for (auto [i, number] : llvm::enumerate(numbers))
      tensor.setReal(int64_t(i), number);
    values.try_emplace(value, std::move(tensor));
  };
  for (auto [value, numbers] : llvm::zip_equal(declared, inputs))
    set(value, numbers);
  for (auto [i, value] : llvm::enumerate(resultGradients)) {
    if (!value)
      continue;
    Values numbers;
    for (int64_t at = 0;
         at < cast<RankedTensorType>(value.getType()).getNumElements(); ++at)
      numbers.push_back(std::sin(double(3 * at + 1 + int64_t(i))));
    set(value, numbers);
  }
  for (Operation &op : *forward->getBlock()) {
    auto evaluated = dyn_cast<EvaluationOpInterface>(op);
    if (!evaluated)
      continue;
    std::vector<const Tensor *> operands;
    for (Value operand : op.getOperands())
      operands.push_back(&values.find(operand)->second);
    std::vector<FactorRange> ranges;
    if (auto ruled = dyn_cast<ShardingRuleOpInterface>(op))
      for (const Factor &factor : ruled.getShardingRule().factors)
        ranges.push_back({0, factor.extent, factor.extent});
    FailureOr<TensorList> results =
        evaluated.evaluate(operands, ranges, PositionPolicy::Error);
    if (failed(results)) {
      ADD_FAILURE() << "cannot evaluate " << op.getName().getStringRef().str();
      return values;
    }
    for (auto [value, result] : llvm::zip_equal(op.getResults(), *results))
      values.try_emplace(value, std::move(result));
    if (onlyForward && &op == forward)
      break;
  }
  return values;
}

double Gradient::loss(const std::vector<Values> &inputs) {
  llvm::DenseMap<Value, Tensor> values = run(inputs, /*onlyForward=*/true);
  double sum = 0;
  for (auto [result, gradient] :
       llvm::zip_equal(forward->getResults(), resultGradients)) {
    if (!gradient)
      continue;
    const Tensor &numbers = values.find(result)->second;
    const Tensor &weights = values.find(gradient)->second;
    for (int64_t at = 0; at < numbers.getNumElements(); ++at)
      sum += numbers.getReal(at) * weights.getReal(at);
  }
  return sum;
}

Values Gradient::gradientOf(unsigned operand) {
  llvm::DenseMap<Value, Tensor> values = run(inputs, /*onlyForward=*/false);
  return valuesOf(values.find(gradients[operand])->second);
}

void Gradient::compare() {
  llvm::DenseMap<Value, Tensor> values = run(inputs, /*onlyForward=*/false);
  constexpr double step = 1e-5;
  for (auto [i, value] : llvm::enumerate(gradients)) {
    if (!value)
      continue;
    auto found = values.find(value);
    ASSERT_NE(found, values.end());
    for (size_t at = 0; at < inputs[i].size(); ++at) {
      std::vector<Values> more = inputs, less = inputs;
      more[i][at] += step;
      less[i][at] -= step;
      double expected = (loss(more) - loss(less)) / (2 * step);
      EXPECT_NEAR(found->second.getReal(int64_t(at)), expected,
                  1e-7 * (1 + std::abs(expected)))
          << "operand " << i << ", element " << at;
    }
  }
}

std::vector<Values> inputsOf(const OpText &text, const Extents &extents) {
  std::vector<Values> inputs;
  for (auto [i, operand] : llvm::enumerate(text.operands))
    inputs.push_back(someValues(operand, extents, i + 1));
  return inputs;
}

void compare(const OpText &text, const Extents &extents) {
  SCOPED_TRACE(text.head + " " + text.tail);
  Gradient(text, extents, inputsOf(text, extents)).compare();
}

//===----------------------------------------------------------------------===//
// Products and elementwise operations
//===----------------------------------------------------------------------===//

TEST(Gradients, Einsum) {
  Extents extents{{"B", 2}, {"D", 3}, {"F", 4}, {"E", 2}};
  auto einsum = [&](const char *lhs, const char *rhs, const char *result) {
    compare({"shd.einsum(%0, %1)", {{lhs}, {rhs}}, {result}}, extents);
  };
  einsum("BD", "DF", "BF");
  einsum("EBD", "EDF", "FEB");
  // Summed in one operand only: broadcast.
  einsum("BD", "DF", "B");
  einsum("BD", "EF", "BF");
  // Nothing left to sum in a gradient: a product of elements.
  einsum("BD", "DB", "B");
  einsum("D", "D", "");
}

TEST(Gradients, ElementwiseFunctions) {
  Extents extents{{"B", 3}, {"D", 4}};
  for (const char *function : {"neg", "copy", "cast", "relu", "gelu", "silu",
                               "sigmoid", "tanh", "exp", "square", "abs"})
    compare(
        {std::string("shd.elementwise ") + function + "(%0)", {{"BD"}}, {"BD"}},
        extents);
  Values positive;
  for (int i = 0; i < 12; ++i)
    positive.push_back(0.5 + i % 5);
  for (const char *function : {"log", "sqrt", "rsqrt"})
    Gradient(
        {std::string("shd.elementwise ") + function + "(%0)", {{"BD"}}, {"BD"}},
        extents, {positive})
        .compare();
  for (const char *function :
       {"add", "sub", "mul", "div", "maximum", "minimum"}) {
    std::string head = std::string("shd.elementwise ") + function + "(%0, %1)";
    compare({head, {{"BD"}, {"BD"}}, {"BD"}}, extents);
    // Broadcast along an index, and dimensions in another order.
    compare({head, {{"BD"}, {"D"}}, {"DB"}}, extents);
    compare({head, {{""}, {"DB"}}, {"BD"}}, extents);
  }
  compare({"shd.elementwise copy(%0)", {{"B"}}, {"DB"}}, extents);
}

TEST(Gradients, Where) {
  Extents extents{{"B", 3}, {"D", 2}};
  OpText text{"shd.elementwise where(%0, %1, %2)",
              {{"B", "i1"}, {"BD"}, {"D"}},
              {"BD"}};
  std::vector<Values> inputs = inputsOf(text, extents);
  inputs[0] = {1, 0, 1};
  Gradient(text, extents, inputs).compare();
}

TEST(Gradients, TiesShare) {
  Extents extents{{"B", 3}};
  // Gradients sin 1, sin 4, sin 7: a tie, the second, the first.
  OpText text{"shd.elementwise maximum(%0, %1)", {{"B"}, {"B"}}, {"B"}};
  Gradient maximum(text, extents, {{1, 2, 3}, {1, 5, 2}});
  expectNear(maximum.gradientOf(0), {std::sin(1.0) / 2, 0, std::sin(7.0)});
  expectNear(maximum.gradientOf(1), {std::sin(1.0) / 2, std::sin(4.0), 0});
  OpText greatest{"shd.reduce max(%0)", {{"B"}}, {""}};
  expectNear(Gradient(greatest, extents, {{4, 1, 4}}).gradientOf(0),
             {std::sin(1.0) / 2, 0, std::sin(1.0) / 2});
  // At 0, relu and abs have gradient 0.
  OpText relu{"shd.elementwise relu(%0)", {{"B"}}, {"B"}};
  expectNear(Gradient(relu, extents, {{0, 2, -1}}).gradientOf(0),
             {0, std::sin(4.0), 0});
  OpText abs{"shd.elementwise abs(%0)", {{"B"}}, {"B"}};
  expectNear(Gradient(abs, extents, {{0, 2, -1}}).gradientOf(0),
             {0, std::sin(4.0), -std::sin(7.0)});
}

/// A function reads what its derivative needs and no more.
TEST(Gradients, ReadLittle) {
  Extents extents{{"B", 3}, {"D", 4}};
  auto unary = [&](const std::string &head) {
    OpText text{head, {{"BD"}}, {"BD"}};
    return Gradient(text, extents, inputsOf(text, extents));
  };
  for (const char *function : {"relu", "sigmoid", "tanh", "exp"}) {
    Gradient gradient =
        unary(std::string("shd.elementwise ") + function + "(%0)");
    EXPECT_FALSE(gradient.readsOperand(0)) << function;
    EXPECT_TRUE(gradient.readsResult()) << function;
  }
  for (const char *function : {"gelu", "silu", "square"}) {
    Gradient gradient =
        unary(std::string("shd.elementwise ") + function + "(%0)");
    EXPECT_TRUE(gradient.readsOperand(0)) << function;
    EXPECT_FALSE(gradient.readsResult()) << function;
  }
  Gradient softmax = unary("shd.normalize softmax(%0) over [\"D\"]");
  EXPECT_FALSE(softmax.readsOperand(0));
  EXPECT_TRUE(softmax.readsResult());
  Gradient rmsnorm = unary("shd.normalize rmsnorm(%0) over [\"D\"]");
  EXPECT_TRUE(rmsnorm.readsOperand(0));
  EXPECT_FALSE(rmsnorm.readsResult());
  OpText add{"shd.elementwise add(%0, %1)", {{"B"}, {"B"}}, {"B"}};
  Gradient sum(add, extents, inputsOf(add, extents));
  EXPECT_FALSE(sum.readsOperand(0) || sum.readsOperand(1) || sum.readsResult());
  // The factor of a constant is not read.
  OpText mul{"shd.elementwise mul(%0, %1)", {{"B"}, {"B"}}, {"B"}};
  Gradient product(mul, extents, inputsOf(mul, extents), "", {0});
  EXPECT_TRUE(product.readsOperand(0));
  EXPECT_FALSE(product.readsOperand(1));
  OpText bias{"shd.normalize layernorm(%0, %1, %2) over [\"D\"]",
              {{"BD"}, {"D"}, {"D"}},
              {"BD"}};
  Gradient ofBias(bias, extents, inputsOf(bias, extents), {}, {0, 1});
  EXPECT_FALSE(ofBias.readsOperand(0) || ofBias.readsOperand(1));
}

/// The gradient of a bf16 activation is bf16; with f32 weights and gradients
/// in f32, what is between them has the wider type.
TEST(Gradients, ElementTypes) {
  Extents extents{{"B", 3}, {"D", 4}};
  OpText einsum{
      "shd.einsum(%0, %1)", {{"BD", "bf16"}, {"D", "bf16"}}, {"B", "bf16"}};
  Gradient own(einsum, extents, inputsOf(einsum, extents));
  EXPECT_EQ(own.typeOf(0), "bf16");
  own.compare();
  // Sums of products come out in the type in which gradients are held.
  Gradient held(einsum, extents, inputsOf(einsum, extents), "f32");
  EXPECT_EQ(held.typeOf(1), "f32");
  EXPECT_EQ(held.count<ElementwiseOp>(), 1u);
  held.compare();
  OpText rmsnorm{"shd.normalize rmsnorm(%0, %1) over [\"D\"]",
                 {{"BD", "bf16"}, {"D", "f32"}},
                 {"BD", "bf16"}};
  Gradient normalized(rmsnorm, extents, inputsOf(rmsnorm, extents));
  EXPECT_EQ(normalized.typeOf(0), "bf16");
  normalized.compare();
  OpText mul{"shd.elementwise mul(%0, %1)",
             {{"BD", "bf16"}, {"D", "f32"}},
             {"BD", "f32"}};
  Gradient mixed(mul, extents, inputsOf(mul, extents));
  EXPECT_EQ(mixed.typeOf(0), "bf16");
  EXPECT_EQ(mixed.typeOf(1), "f32");
  // g * x is f32 before it is summed, so that only x's gradient is cast.
  EXPECT_EQ(mixed.count<ElementwiseOp>(), 3u);
  mixed.compare();
}

//===----------------------------------------------------------------------===//
// Reductions, normalisations, losses
//===----------------------------------------------------------------------===//

TEST(Gradients, Reduce) {
  Extents extents{{"B", 3}, {"D", 4}, {"E", 2}};
  for (const char *kind : {"sum", "mean", "max", "min"}) {
    std::string head = std::string("shd.reduce ") + kind + "(%0)";
    compare({head, {{"BDE"}}, {"EB"}}, extents);
    compare({head, {{"BD"}}, {""}}, extents);
  }
}

TEST(Gradients, Normalize) {
  Extents extents{{"B", 3}, {"D", 4}, {"E", 2}};
  auto normalize = [&](const std::string &kind, const std::string &over,
                       std::vector<TensorText> operands,
                       const std::string &result) {
    std::string names = "%0";
    for (size_t i = 1; i < operands.size(); ++i)
      names += ", %" + std::to_string(i);
    compare({"shd.normalize " + kind + "(" + names + ") over " + over,
             std::move(operands),
             {result}},
            extents);
  };
  normalize("softmax", "[\"D\"]", {{"BD"}}, "BD");
  normalize("softmax", "[\"D\", \"E\"]", {{"DBE"}}, "BED");
  normalize("logsumexp", "[\"D\"]", {{"BDE"}}, "EB");
  normalize("logsumexp", "[\"D\", \"B\"]", {{"BD"}}, "");
  for (const char *kind : {"rmsnorm", "layernorm"}) {
    normalize(kind, "[\"D\"]", {{"BD"}}, "BD");
    normalize(kind, "[\"D\"]", {{"BD"}, {"D"}}, "DB");
    // A scale with an index that is not normalised, and one with fewer.
    normalize(kind, "[\"D\"]", {{"BDE"}, {"DB"}}, "BDE");
    normalize(kind, "[\"D\", \"E\"]", {{"BDE"}, {"E"}}, "BDE");
  }
  normalize("layernorm", "[\"D\"]", {{"BD"}, {"D"}, {"D"}}, "BD");
  normalize("layernorm", "[\"D\"]", {{"BDE"}, {"EB"}, {"BD"}}, "EDB");
}

TEST(Gradients, CrossEntropy) {
  Extents extents{{"B", 3}, {"T", 2}, {"V", 5}};
  OpText text{"shd.cross_entropy(%0, %1) over \"V\"",
              {{"BVT"}, {"TB", "i32"}},
              {"BT"},
              "",
              /*bareTypes=*/true};
  std::vector<Values> inputs = inputsOf(text, extents);
  inputs[1] = {4, 0, 2, 2, 3, 1};
  Gradient(text, extents, inputs).compare();
  // Labels of another type than that of positions.
  text.operands[1].type = "ui8";
  Gradient(text, extents, inputs).compare();
}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

/// Tails that use every attribute; with positions, the tail alone.
TEST(Gradients, Attention) {
  Extents extents{{"B", 2}, {"T", 3}, {"K", 2}, {"G", 2},
                  {"H", 2}, {"S", 4}, {"D", 3}};
  for (const char *tail :
       {"", "causal", "causal window 2", "scale 0.7", "causal softcap 1.5"})
    for (bool ownIndex : {false, true})
      compare({"shd.attention(%0, %1, %2) over \"H\", \"S\" query \"T\"",
               {{"BTKGH"}, {"BSKH"}, {ownIndex ? "SBKD" : "BSKH"}},
               {ownIndex ? "BKGTD" : "BTKGH"},
               tail,
               /*bareTypes=*/true},
              extents);
  // Values that lack an index of the keys, and one without indices of its own.
  compare({"shd.attention(%0, %1, %2) over \"H\", \"S\"",
           {{"TKGH"}, {"KSH"}, {"SD"}},
           {"TKGD"},
           "",
           /*bareTypes=*/true},
          extents);
  compare({"shd.attention(%0, %1, %2) over \"H\", \"S\"",
           {{"TH"}, {"SH"}, {"S"}},
           {"T"},
           "",
           /*bareTypes=*/true},
          extents);
  OpText text{"shd.attention(%0, %1, %2 at %3) over \"H\", \"S\"",
              {{"BTH"}, {"SH"}, {"SD"}, {"T", "i32"}},
              {"BTD"},
              "causal window 2",
              /*bareTypes=*/true};
  std::vector<Values> inputs = inputsOf(text, extents);
  // The last sees no key.
  inputs[3] = {3, 0, 9};
  Gradient positions(text, extents, inputs);
  positions.compare();
  EXPECT_EQ(positions.count<AttentionGradOp>(), 1u);
  // A ring of four slots, one of them empty.
  OpText ring{
      "shd.attention(%0, %1, %2 at %3 key_at %4) over \"H\", \"S\"",
      {{"BTH"}, {"SH"}, {"SD"}, {"T", "i32"}, {"S", "i32", "", "key_at"}},
      {"BTD"},
      "causal window 2",
      /*bareTypes=*/true};
  std::vector<Values> slots = inputsOf(ring, extents);
  slots[3] = {4, 5, 9};
  slots[4] = {4, 5, -1, 3};
  Gradient(ring, extents, slots).compare();
  // Only keys need a gradient: one operation still.
  Gradient ofKeys(text, extents, inputs, "f32", {0, 2});
  ofKeys.compare();
  EXPECT_EQ(ofKeys.typeOf(1), "f32");
}

TEST(Gradients, AttentionWithSinkAndBias) {
  Extents extents{{"B", 2}, {"T", 3}, {"N", 2}, {"H", 2}, {"S", 3}, {"D", 2}};
  for (const char *tail : {"", "causal", "causal window 2 softcap 1.5"}) {
    OpText both{"shd.attention(%0, %1, %2 sink %3 bias %4) over \"H\", \"S\" "
                "query \"T\"",
                {{"BTNH"},
                 {"BSH"},
                 {"SD"},
                 {"N", "f64", "", "sink"},
                 {"NTS", "f64", "", "bias"}},
                {"TNBD"},
                tail,
                /*bareTypes=*/true};
    compare(both, extents);
    // Without a gradient of the bias there is none among the results.
    Gradient ofOthers(both, extents, inputsOf(both, extents), "", {4});
    ofOthers.compare();
    // The sink alone needs no scores.
    Gradient ofSink(both, extents, inputsOf(both, extents), "", {0, 1, 2, 4});
    ofSink.compare();
    EXPECT_EQ(ofSink.count<AttentionGradOp>(), 0u);
  }
  // A sink for each query, a bias for all, and positions in front of both.
  OpText text{"shd.attention(%0, %1, %2 at %3 sink %4 bias %5) over \"H\", "
              "\"S\"",
              {{"BTH"},
               {"SH"},
               {"SD"},
               {"T", "i32"},
               {"TB", "f64", "", "sink"},
               {"S", "f64", "", "bias"}},
              {"BTD"},
              "causal",
              /*bareTypes=*/true};
  std::vector<Values> inputs = inputsOf(text, extents);
  inputs[3] = {2, 0, -1}; // the last sees no key
  Gradient(text, extents, inputs).compare();
}

/// The operation in attention's place says the same of its first result.
TEST(Gradients, PrepareAttention) {
  Program program(R"(
    %q = shd.declare input "q" ["T", "N", "H"] : tensor<8x2x16xbf16>
    %k = shd.declare input "k" ["S", "N", "H"] : tensor<4x2x16xbf16>
    %o = shd.attention(%q, %k, %k) over "H", "S" <[T, N, H], [S, N, H], [S, N, H] -> [N, T, H]> {shd.name = "o", shd.def = 7} : tensor<8x2x16xbf16>, tensor<4x2x16xbf16>, tensor<4x2x16xbf16> -> tensor<2x8x16xbf16>
    shd.output "o" %o ["N", "T", "H"] : tensor<2x8x16xbf16>)");
  OpBuilder builder(&program.context);
  program.get<AttentionOp>().prepareGradient(builder);
  auto op = program.get<AttentionOp>();
  EXPECT_TRUE(succeeded(verify(*program.module)));
  EXPECT_EQ(program.get<OutputOp>().getValue(), op.getResult());
  EXPECT_EQ(op.getLogsumexp().getType(),
            RankedTensorType::get({8, 2}, builder.getF32Type()));
  EXPECT_EQ(getResultName(op.getResult()), "o");
  EXPECT_EQ(getResultName(op.getLogsumexp()), "o.logsumexp");
  EXPECT_TRUE(op->hasAttr(kDef));
  EXPECT_EQ(op.prepareGradient(builder), op.getOperation());
}

TEST(Gradients, AttentionThatWasNotPrepared) {
  Program program(R"(
    %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
    %k = shd.declare input "k" ["S", "H"] : tensor<4x16xf32>
    %o = shd.attention(%q, %k, %k) over "H", "S" <[T, H], [S, H], [S, H] -> [T, H]> : tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x16xf32> -> tensor<8x16xf32>)");
  std::string said;
  ScopedDiagnosticHandler handler(&program.context, [&](Diagnostic &error) {
    said = error.str();
    return success();
  });
  auto op = program.get<AttentionOp>();
  OpBuilder builder(&program.context);
  TestScope scope({});
  GradientBuilder gradient(builder,
                           cast<ShardingRuleOpInterface>(op.getOperation()),
                           op->getResults(), scope);
  EXPECT_TRUE(failed(op.buildGradient(gradient)));
  EXPECT_EQ(said, "'shd.attention' op needs its logsumexp as a result to have "
                  "a derivative");
}

TEST(Gradients, Rope) {
  Extents extents{{"B", 2}, {"T", 3}, {"H", 4}};
  for (const char *tail : {"", "inverse"})
    compare(
        {"shd.rope(%0) over \"H\" positions \"T\"", {{"BTH"}}, {"THB"}, tail},
        extents);
  OpText text{"shd.rope(%0, %1) over \"H\"",
              {{"BTH"}, {"B", "i32"}},
              {"BTH"},
              "{theta = 100.0}"};
  std::vector<Values> inputs = inputsOf(text, extents);
  inputs[1] = {7, 2};
  Gradient(text, extents, inputs).compare();
}

TEST(Gradients, Gather) {
  Extents extents{{"B", 2}, {"T", 3}, {"V", 4}, {"W", 3}, {"D", 2}};
  OpText text{"shd.gather(%0, %1)", {{"VD"}, {"BT", "i32"}}, {"BDT"}, "at [0]"};
  Values positions{3, 0, 3, 3, 2, 0};
  Gradient rows(text, extents, {someValues({"VD"}, extents, 1), positions});
  rows.compare();
  EXPECT_EQ(rows.count<ScatterSumOp>(), 1u);
  EXPECT_FALSE(rows.readsOperand(0));
  // An index that the table shares with the positions, and two positions.
  text = {"shd.gather(%0, %1, %2)",
          {{"VBWD"}, {"BT", "i32"}, {"T", "i32"}},
          {"BTD"},
          "at [0, 2]"};
  Gradient(text, extents,
           {someValues({"VBWD"}, extents, 1), positions, {2, 2, 0}})
      .compare();
  // A number: one slice.
  text = {"shd.gather(%0, %1)", {{"VD"}, {"", "i32"}}, {"D"}, "at [0]"};
  Gradient(text, extents, {someValues({"VD"}, extents, 1), {2}}).compare();
}

TEST(Gradients, Scatter) {
  Extents extents{{"B", 2}, {"T", 3}, {"S", 4}, {"K", 2}};
  for (const char *tail : {"at [1]", "at [1] accumulate"}) {
    // One row for each B.
    OpText text{"shd.scatter(%0, %1, %2)",
                {{"BSK"}, {"BK"}, {"B", "i32"}},
                {"BSK"},
                tail};
    std::vector<Values> inputs = inputsOf(text, extents);
    inputs[2] = {3, 0};
    Gradient(text, extents, inputs).compare();
    // Rows that meet: the last one stays.
    text.operands = {{"BSK"}, {"TKB"}, {"BT", "i32"}};
    inputs = inputsOf(text, extents);
    inputs[2] = {3, 1, 3, 2, 2, 2};
    Gradient(text, extents, inputs).compare();
    // A number.
    text.operands = {{"BSK"}, {"BK"}, {"", "i32"}};
    inputs = inputsOf(text, extents);
    inputs[2] = {1};
    Gradient(text, extents, inputs).compare();
  }
  // All update indices replace one dimension.
  OpText text{"shd.scatter(%0, %1, %2)",
              {{"SK"}, {"KTB"}, {"TB", "i32"}},
              {"SK"},
              "at [0]"};
  std::vector<Values> inputs = inputsOf(text, extents);
  inputs[2] = {3, 1, 3, 3, 0, 1};
  Gradient(text, extents, inputs).compare();
}

TEST(Gradients, ScatterSum) {
  Extents extents{{"B", 2}, {"T", 3}, {"V", 4}, {"D", 2}};
  OpText text{
      "shd.scatter_sum(%0, %1)", {{"DBT"}, {"BT", "i32"}}, {"VD"}, "at [0]"};
  Gradient(text, extents, {someValues({"DBT"}, extents, 1), {3, 0, 3, 3, 2, 0}})
      .compare();
}

//===----------------------------------------------------------------------===//
// Experts
//===----------------------------------------------------------------------===//

TEST(Gradients, Experts) {
  // Six tokens of two groups; of the second, three want expert 2: one is
  // dropped.
  Extents extents{{"B", 2}, {"T", 3}, {"E", 3}, {"C", 2}, {"D", 2}};
  Values picks{1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 1, 0, 0, 1};
  TensorText tokens{"BTD"}, slots{"EBCD"}, scores{"BTE"}, picked{"BTE", "i1"};
  auto compareExperts = [&](const OpText &text) {
    std::vector<Values> inputs = inputsOf(text, extents);
    inputs[1] = picks;
    Gradient gradient(text, extents, inputs);
    gradient.compare();
    EXPECT_TRUE(gradient.readsOperand(1));
  };
  compareExperts(
      {"shd.dispatch(%0, %1) over \"E\", \"C\" k 2", {tokens, picked}, slots});
  compareExperts({"shd.dispatch(%0, %1, %2) over \"E\", \"C\" k 2",
                  {tokens, picked, scores},
                  slots});
  compareExperts(
      {"shd.combine(%0, %1) over \"E\", \"C\" k 2", {slots, picked}, tokens});
  compareExperts({"shd.combine(%0, %1, %2) over \"E\", \"C\" k 2",
                  {slots, picked, scores},
                  tokens});
  compareExperts({"shd.combine_grad(%0, %1, %2) over \"E\", \"C\" k 2",
                  {tokens, picked, slots},
                  scores});
}

TEST(Gradients, TopKHasNone) {
  OpText text{"shd.topk(%0) over \"E\" k 1", {{"TE"}}, {"TE", "i1"}};
  Program program(text.program({{"T", 2}, {"E", 3}}));
  auto op = program.get<TopKOp>();
  OpBuilder builder(&program.context);
  TestScope scope({});
  GradientBuilder gradient(builder,
                           cast<ShardingRuleOpInterface>(op.getOperation()),
                           op->getResults(), scope);
  EXPECT_TRUE(succeeded(op.buildGradient(gradient)));
  EXPECT_FALSE(gradient.getGradients()[0]);
}

//===----------------------------------------------------------------------===//
// Layout of indices
//===----------------------------------------------------------------------===//

TEST(Gradients, Layout) {
  Extents extents{{"A", 2}, {"B", 3}, {"D", 6}, {"T", 2},
                  {"J", 3}, {"I", 2}, {"K", 5}, {"W", 6}};
  OpText split{"shd.split(%0) \"D\" into [\"A\", \"B\"]", {{"TD"}}, {"TAB"}};
  split.merged = {{"D", "AB"}};
  compare(split, extents);
  OpText merge{"shd.merge(%0) [\"A\", \"B\"] into \"D\"", {{"TAB"}}, {"TD"}};
  merge.merged = {{"D", "AB"}};
  compare(merge, extents);
  for (const char *range : {"[0, 3]", "[2, 5]", "[3, 6]"})
    compare({std::string("shd.slice(%0) \"D\" ") + range + " into \"J\"",
             {{"TD"}},
             {"TJ"}},
            extents);
  OpText all{"shd.slice(%0) \"D\" [0, 6] into \"W\"", {{"DT"}}, {"WT"}};
  compare(all, extents);
  Gradient renamed(all, extents, inputsOf(all, extents));
  EXPECT_EQ(renamed.count<ConcatOp>(), 0u);
  compare({"shd.concat(%0, %1) [\"I\", \"J\"] into \"K\"",
           {{"TI"}, {"JT"}},
           {"TK"}},
          extents);
  compare({"shd.reshard(%0)", {{"TD"}}, {"TD"}}, extents);
}

} // namespace
