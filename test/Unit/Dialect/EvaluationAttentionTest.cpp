//===- EvaluationAttentionTest.cpp - Attention and rope -------------------===//

#include "Evaluated.h"
#include <cmath>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

/// Indices without batch: `tail` begins behind the operands' indices.
OpText attention(const std::string &tail = "", const std::string &query = "") {
  return {"shd.attention(%0, %1, %2) over \"H\", \"S\" " + query,
          {{"TH"}, {"SH"}, {"SD"}},
          {"TD"},
          tail,
          /*bareTypes=*/true};
}

const std::string byT = "query \"T\"";
const double log2 = std::log(2.0), log3 = std::log(3.0);

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

TEST(EvaluationAttention, ByHand) {
  // Scores q k / sqrt 4 with q = [2 0 0 0]: log 1, log 2, log 3; weights 1/6,
  // 2/6 and 3/6 of values 6, 12 and 18: 1 + 4 + 9.
  Values q{2, 0, 0, 0};
  Values k{0, 9, 9, 9, log2, 9, 9, 9, log3, 9, 9, 9};
  expectNear(evaluate(attention(), {{"T", 1}, {"S", 3}, {"H", 4}, {"D", 2}},
                      {q, k, {6, 60, 12, 120, 18, 180}}),
             {14, 140});
}

TEST(EvaluationAttention, Scale) {
  // With scale 2: scores 2 log 1 and 2 log 3, so 1 and 9 of 10.
  expectNear(evaluate(attention("scale 2.0"),
                      {{"T", 1}, {"S", 2}, {"H", 1}, {"D", 1}},
                      {{1}, {0, log3}, {10, 20}}),
             {19});
}

TEST(EvaluationAttention, Softcap) {
  // 2 tanh(s / 2) of s = 2 log 3 is 2 * 0.8 = 1.6; of 0 it is 0.
  double weight = std::exp(1.6) / (1 + std::exp(1.6));
  expectNear(evaluate(attention("softcap 2.0"),
                      {{"T", 1}, {"S", 2}, {"H", 1}, {"D", 1}},
                      {{1}, {0, 2 * log3}, {0, 1}}),
             {weight});
}

/// All scores are 0, so each query has the mean of the keys that it sees, and
/// key s has the value 2^s.
Values seen(const OpText &text, int64_t queries, std::vector<Values> at = {}) {
  std::vector<Values> inputs{Values(queries, 0), {0, 0, 0, 0}, {1, 2, 4, 8}};
  inputs.insert(inputs.end(), at.begin(), at.end());
  return evaluate(text, {{"T", queries}, {"S", 4}, {"H", 1}, {"D", 1}}, inputs);
}

TEST(EvaluationAttention, Masks) {
  expectNear(seen(attention(), 2), {15.0 / 4, 15.0 / 4});
  expectNear(seen(attention("causal", byT), 4),
             {1, 3.0 / 2, 7.0 / 3, 15.0 / 4});
  // The last 2 keys up to the query's position.
  expectNear(seen(attention("causal window 2", byT), 4),
             {1, 3.0 / 2, 6.0 / 2, 12.0 / 2});
}

TEST(EvaluationAttention, Positions) {
  OpText text = attention("causal window 2");
  text.head = "shd.attention(%0, %1, %2 at %3) over \"H\", \"S\"";
  text.operands.push_back({"T", "i32"});
  // Position 4 sees key 3 alone, 9 none, and none means 0; so does -1.
  expectNear(seen(text, 5, {{3, 0, 4, 9, -1}}), {12.0 / 2, 1, 8, 0, 0});
}

TEST(EvaluationAttention, PositionsOfKeys) {
  OpText text = attention("causal window 3");
  text.head = "shd.attention(%0, %1, %2 at %3 key_at %4) over \"H\", \"S\"";
  text.operands.push_back({"T", "i32"});
  text.operands.push_back({"S", "i32", "", "key_at"});
  // A ring of four slots with positions 4, 5, 2, 3: at 5 the last three are 5,
  // 4 and 3, in slots 1, 0 and 3; at 3 they are 3 and 2.
  expectNear(seen(text, 2, {{5, 3}, {4, 5, 2, 3}}), {11.0 / 3, 12.0 / 2});
  // At 1 two slots are empty, although the window reaches them.
  expectNear(seen(text, 1, {{1}, {0, 1, -2, -1}}), {3.0 / 2});
  // Without positions of queries, theirs are 0, 1, ...
  text.head = "shd.attention(%0, %1, %2 key_at %3) over \"H\", \"S\" query "
              "\"T\"";
  text.operands.erase(text.operands.begin() + 3);
  expectNear(seen(text, 2, {{1, 0, 7, 7}}), {2, 3.0 / 2});
}

TEST(EvaluationAttention, GroupedQueriesAndAValueIndexNamedAsTheHead) {
  // Two query heads (G) share each key head (K); values have H of their own,
  // which the result has.
  OpText text{"shd.attention(%0, %1, %2) over \"H\", \"S\"",
              {{"TKGH"}, {"SKH"}, {"SKH"}},
              {"TKGH"},
              "scale 1.0",
              /*bareTypes=*/true};
  // One position, K = 1, G = 2, H = 2, S = 2. q = [1 0], [0 1];
  // k = [0 log 3], [log 2 0], so scores are (0, log 2) and (log 3, 0):
  // weights (1/3, 2/3) and (3/4, 1/4) of v = [12 0], [24 36].
  expectNear(evaluate(text, {{"T", 1}, {"K", 1}, {"G", 2}, {"H", 2}, {"S", 2}},
                      {{1, 0, 0, 1}, {0, log3, log2, 0}, {12, 0, 24, 36}}),
             {20, 24, 15, 9});
}

/// Attention of queries with two heads (N), with a sink, a bias, or both.
OpText withSinkAndBias(bool sink, bool bias, const std::string &tail) {
  std::vector<TensorText> operands{{"BTNH"}, {"BSH"}, {"SD"}};
  std::string more;
  if (sink) {
    more += " sink %3";
    operands.push_back({"N", "f64", "", "sink"});
  }
  if (bias) {
    more += " bias %" + std::to_string(operands.size());
    operands.push_back({"NTS", "f64", "", "bias"});
  }
  return {"shd.attention(%0, %1, %2" + more + ") over \"H\", \"S\" query \"T\"",
          operands,
          {"TNBD"},
          tail,
          /*bareTypes=*/true};
}

TEST(EvaluationAttention, Sink) {
  // Scores 0 and log 3 and a sink of log 4: e^s are 1, 3 and 4, so the values
  // have 1/8 and 3/8 of the weight; the sink's value is 0.
  OpText text = withSinkAndBias(true, false, "scale 1.0");
  text.otherResults = {{"TNB", "f32"}};
  Extents extents{{"B", 1}, {"T", 1}, {"N", 2}, {"H", 1}, {"S", 2}, {"D", 1}};
  // Of the second head it is log 12: 1/16 and 3/16.
  std::vector<Values> results = evaluateAll(
      text, extents, {{1, 1}, {0, log3}, {8, 16}, {2 * log2, 2 * log2 + log3}});
  ASSERT_EQ(results.size(), 2u);
  expectNear(results[0], {1 + 6, 0.5 + 3});
  expectNear(results[1], {3 * log2, 4 * log2});
}

TEST(EvaluationAttention, SinkOfAQueryThatSeesNoKey) {
  OpText text{"shd.attention(%0, %1, %2 at %3 sink %4) over \"H\", \"S\"",
              {{"TH"}, {"SH"}, {"SD"}, {"T", "i32"}, {"", "f64", "", "sink"}},
              {"TD"},
              "causal",
              /*bareTypes=*/true};
  text.otherResults = {{"T", "f32"}};
  std::vector<Values> results =
      evaluateAll(text, {{"T", 1}, {"S", 2}, {"H", 1}, {"D", 1}},
                  {{5}, {1, 2}, {3, 4}, {-1}, {7}});
  ASSERT_EQ(results.size(), 2u);
  expectNear(results[0], {0});
  expectNear(results[1], {7});
}

TEST(EvaluationAttention, Bias) {
  // Scores q k = 0 and log 3; head 0 adds log 3 and 0, so both weigh the same;
  // head 1 adds 0 and log 2: 1/7 and 6/7.
  OpText text = withSinkAndBias(false, true, "scale 1.0");
  Extents extents{{"B", 1}, {"T", 1}, {"N", 2}, {"H", 1}, {"S", 2}, {"D", 1}};
  expectNear(
      evaluate(text, extents, {{1, 1}, {0, log3}, {7, 14}, {log3, 0, 0, log2}}),
      {10.5, 13});
}

TEST(EvaluationAttention, BiasBehindTheSoftcap) {
  // 2 tanh(2 log 3 / 2) = 1.6, and then 0.4 more.
  double weight = std::exp(2.0) / (1 + std::exp(2.0));
  OpText text{"shd.attention(%0, %1, %2 bias %3) over \"H\", \"S\"",
              {{"TH"}, {"SH"}, {"SD"}, {"S", "f64", "", "bias"}},
              {"TD"},
              "softcap 2.0",
              /*bareTypes=*/true};
  expectNear(evaluate(text, {{"T", 1}, {"S", 2}, {"H", 1}, {"D", 1}},
                      {{1}, {0, 2 * log3}, {0, 1}, {0, 0.4}}),
             {weight});
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

std::vector<Values> inputsOf(const OpText &text, const Extents &extents) {
  std::vector<Values> inputs;
  for (auto [i, operand] : llvm::enumerate(text.operands))
    inputs.push_back(someValues(operand, extents, i + 1));
  return inputs;
}

TEST(EvaluationAttention, InParts) {
  Extents extents{{"B", 2}, {"T", 5}, {"K", 3}, {"G", 2}, {"H", 4}, {"S", 7}};
  std::vector<std::map<std::string, int64_t>> cases{
      {{"K", 2}},
      {{"T", 2}},
      {{"S", 2}},
      {{"S", 4}, {"B", 2}},
      {{"T", 4}, {"S", 3}, {"G", 2}},
      {{"S", 5}}};
  for (const char *tail :
       {"", "causal", "causal window 3", "causal window 2 softcap 1.5"}) {
    OpText text{"shd.attention(%0, %1, %2) over \"H\", \"S\" query \"T\"",
                {{"BTKGH"}, {"BSKH"}, {"BSKH"}},
                {"TBKGH"},
                tail,
                /*bareTypes=*/true};
    for (auto &parts : cases)
      expectPartsMakeWhole(text, extents, inputsOf(text, extents), parts);
  }
}

TEST(EvaluationAttention, PositionsOfKeysInParts) {
  Extents extents{{"B", 2}, {"T", 3}, {"H", 2}, {"S", 5}};
  OpText text{
      "shd.attention(%0, %1, %2 at %3 key_at %4) over \"H\", \"S\"",
      {{"BTH"}, {"BSH"}, {"BSH"}, {"BT", "i32"}, {"BS", "i32", "", "key_at"}},
      {"BTH"},
      "causal window 4",
      /*bareTypes=*/true};
  std::vector<Values> inputs = inputsOf(text, extents);
  inputs[3] = {5, 6, 7, 1, 2, 3};
  inputs[4] = {5, 6, 7, 3, 4, 0, 1, 2, 3, -1};
  for (const std::map<std::string, int64_t> &parts :
       std::vector<std::map<std::string, int64_t>>{
           {{"S", 2}}, {{"B", 2}, {"S", 5}}, {{"T", 3}, {"S", 3}}})
    expectPartsMakeWhole(text, extents, inputs, parts);
}

TEST(EvaluationAttention, SinkAndBiasInParts) {
  Extents extents{{"B", 2}, {"T", 5}, {"N", 4}, {"H", 3}, {"S", 5}, {"D", 2}};
  for (bool sink : {false, true})
    for (bool bias : {false, true})
      for (const char *tail : {"", "causal", "causal window 2 softcap 1.5"}) {
        OpText text = withSinkAndBias(sink, bias, tail);
        text.otherResults = {{"NTB", "f32"}};
        for (const std::map<std::string, int64_t> &parts :
             std::vector<std::map<std::string, int64_t>>{
                 {{"N", 2}},
                 {{"T", 2}},
                 {{"S", 3}},
                 {{"S", 4}, {"T", 2}},
                 {{"B", 2}, {"N", 4}, {"S", 2}}})
          expectPartsMakeWhole(text, extents, inputsOf(text, extents), parts);
      }
}

TEST(EvaluationAttention, ValuesInParts) {
  OpText text = attention("causal", byT);
  Extents extents{{"T", 5}, {"H", 2}, {"S", 5}, {"D", 3}};
  expectPartsMakeWhole(text, extents, inputsOf(text, extents),
                       {{"D", 2}, {"S", 2}, {"T", 2}});
}

TEST(EvaluationAttention, PositionsInParts) {
  OpText text = attention("causal window 2");
  text.head = "shd.attention(%0, %1, %2 at %3) over \"H\", \"S\"";
  text.operands.push_back({"T", "i32"});
  Extents extents{{"T", 5}, {"H", 2}, {"S", 6}, {"D", 3}};
  std::vector<Values> inputs = inputsOf(text, extents);
  // Position 20 sees no key on any device.
  inputs[3] = {5, 0, 20, 3, 6};
  expectPartsMakeWhole(text, extents, inputs, {{"S", 4}, {"T", 2}});
}

//===----------------------------------------------------------------------===//
// Logsumexp and gradients
//===----------------------------------------------------------------------===//

TEST(EvaluationAttention, LogSumExp) {
  // Scores of query 0: 0; of query 1: log 1 and log 3.
  OpText text = attention("causal scale 1.0", byT);
  text.otherResults = {{"T", "f32"}};
  std::vector<Values> results =
      evaluateAll(text, {{"T", 2}, {"S", 2}, {"H", 1}, {"D", 1}},
                  {{1, 1}, {0, log3}, {4, 8}});
  ASSERT_EQ(results.size(), 2u);
  expectNear(results[0], {4, 7});
  expectNear(results[1], {0, 2 * log2});
}

TEST(EvaluationAttention, LogSumExpInParts) {
  Extents extents{{"T", 5}, {"N", 2}, {"H", 2}, {"S", 6}, {"D", 3}};
  OpText text{"shd.attention(%0, %1, %2 at %3) over \"H\", \"S\"",
              {{"TNH"}, {"SH"}, {"SD"}, {"T", "i32"}},
              {"NTD"},
              "causal window 2 softcap 1.5",
              /*bareTypes=*/true};
  text.otherResults = {{"NT", "f32"}};
  std::vector<Values> inputs = inputsOf(text, extents);
  // The third sees no key.
  inputs[3] = {5, 0, 20, 3, 6};
  expectPartsMakeWhole(text, extents, inputs, {{"S", 4}, {"T", 2}});
  expectPartsMakeWhole(text, extents, inputs, {{"D", 2}, {"N", 2}, {"S", 2}});
}

OpText attentionGrad(const std::vector<TensorText> &operands,
                     const std::string &query, const std::string &tail) {
  OpText text{"shd.attention_grad(%0, %1, %2, %3, %4, %5" +
                  std::string(operands.size() > 6 ? " at %6" : "") +
                  ") over \"H\", \"S\" " + query,
              operands, operands[0], tail};
  text.otherResults = {operands[1], operands[2]};
  return text;
}

TEST(EvaluationAttention, GradientByHand) {
  // Scores log 1 and log 3, so weights 1/4 and 3/4 of values 4 and 8: o = 7.
  // With g = 2: v' = 1/2, 3/2; the weights' gradients are 8 and 16, less g o =
  // 14: the scores' 1/4 (-6) and 3/4 2. q' = sum s' k, k' = s' q.
  OpText text = attentionGrad(
      {{"TH"}, {"SH"}, {"SD"}, {"TD"}, {"TD"}, {"T", "f32"}}, "", "scale 1.0");
  std::vector<Values> results =
      evaluateAll(text, {{"T", 1}, {"S", 2}, {"H", 1}, {"D", 1}},
                  {{1}, {0, log3}, {4, 8}, {7}, {2}, {2 * log2}});
  ASSERT_EQ(results.size(), 3u);
  expectNear(results[0], {1.5 * log3});
  expectNear(results[1], {-1.5, 1.5});
  expectNear(results[2], {0.5, 1.5});
}

OpText biasedGrad(const std::string &tail) {
  OpText text{
      "shd.attention_grad(%0, %1, %2, %3, %4, %5 bias %6) over \"H\", "
      "\"S\" query \"T\"",
      {{"BTNH"}, {"BSH"}, {"SD"}, {"TNBD"}, {"TNBD"}, {"NTB", "f32"}, {"NTS"}},
      {"BTNH"},
      tail};
  text.otherResults = {{"BSH"}, {"SD"}, {"NTS"}};
  return text;
}

TEST(EvaluationAttention, GradientOfTheBiasByHand) {
  // As in GradientByHand, with scores 0 + log 1 and 0 + log 3 of the bias: its
  // gradient is that of the scores, -3/2 and 3/2. All keys are 0.
  std::vector<Values> results =
      evaluateAll(biasedGrad("scale 1.0"),
                  {{"B", 1}, {"T", 1}, {"N", 1}, {"S", 2}, {"H", 1}, {"D", 1}},
                  {{1}, {0, 0}, {4, 8}, {7}, {2}, {2 * log2}, {0, log3}});
  ASSERT_EQ(results.size(), 4u);
  expectNear(results[0], {0});
  expectNear(results[1], {-1.5, 1.5});
  expectNear(results[3], {-1.5, 1.5});
}

TEST(EvaluationAttention, GradientOfTheBiasInParts) {
  Extents extents{{"B", 2}, {"T", 5}, {"N", 4}, {"H", 3}, {"S", 5}, {"D", 2}};
  for (const char *tail : {"", "causal window 2 softcap 1.5"}) {
    OpText text = biasedGrad(tail);
    for (const std::map<std::string, int64_t> &parts :
         std::vector<std::map<std::string, int64_t>>{
             {{"N", 2}},
             {{"T", 2}},
             {{"S", 3}},
             {{"B", 2}},
             {{"B", 2}, {"N", 2}, {"S", 2}, {"T", 2}}})
      expectPartsMakeWhole(text, extents, inputsOf(text, extents), parts);
  }
}

TEST(EvaluationAttention, GradientInParts) {
  Extents extents{{"B", 2}, {"T", 5}, {"K", 3}, {"G", 2},
                  {"H", 4}, {"S", 7}, {"D", 2}};
  std::vector<std::map<std::string, int64_t>> cases{
      {{"K", 2}},
      {{"T", 2}},
      {{"S", 2}},
      {{"S", 4}, {"B", 2}},
      {{"T", 4}, {"S", 3}, {"G", 2}}};
  for (const char *tail :
       {"", "causal", "causal window 3", "causal window 2 softcap 1.5"}) {
    // Numbers that belong together are not needed.
    OpText text = attentionGrad(
        {{"BTKGH"}, {"BSKH"}, {"BSKH"}, {"TBKGH"}, {"TBKGH"}, {"KBTG", "f32"}},
        "query \"T\"", tail);
    std::vector<Values> inputs = inputsOf(text, extents);
    for (auto &parts : cases)
      expectPartsMakeWhole(text, extents, inputs, parts);
  }
  // Values without an index of the keys, and positions.
  OpText text = attentionGrad(
      {{"TKH"}, {"SKH"}, {"SD"}, {"TKD"}, {"TKD"}, {"TK", "f32"}, {"T", "i32"}},
      "", "causal window 2");
  std::vector<Values> inputs = inputsOf(text, extents);
  inputs[6] = {5, 0, 20, 3, 6};
  expectPartsMakeWhole(text, extents, inputs, {{"S", 4}, {"T", 2}, {"K", 3}});
}

//===----------------------------------------------------------------------===//
// Rope
//===----------------------------------------------------------------------===//

const OpText rope{"shd.rope(%0) over \"H\" positions \"T\"", {{"TH"}}, {"TH"}};

TEST(EvaluationRope, ByHand) {
  // Frequencies 1 and 10000^(-1/2) = 0.01; (x, y) turns to
  // (x cos - y sin, y cos + x sin). Position 0 turns nothing.
  expectNear(evaluate(rope, {{"T", 2}, {"H", 4}}, {{1, 2, 3, 4, 1, 2, 3, 4}}),
             {1, 2, 3, 4, std::cos(1.0) - 3 * std::sin(1.0),
              2 * std::cos(0.01) - 4 * std::sin(0.01),
              3 * std::cos(1.0) + std::sin(1.0),
              4 * std::cos(0.01) + 2 * std::sin(0.01)});
}

TEST(EvaluationRope, ThetaAndPositions) {
  // theta = 4, frequencies 1 and 1/2; position 7.
  OpText text{"shd.rope(%0, %1) over \"H\"",
              {{"BH"}, {"B", "i32"}},
              {"HB"},
              "{theta = 4.0}"};
  expectNear(evaluate(text, {{"B", 1}, {"H", 4}}, {{1, 1, 0, 0}, {7}}),
             {std::cos(7.0), std::cos(3.5), std::sin(7.0), std::sin(3.5)});
}

TEST(EvaluationRope, InParts) {
  Extents extents{{"T", 7}, {"H", 4}, {"B", 5}};
  expectPartsMakeWhole(rope, extents, {someValues({"TH"}, extents, 1)},
                       {{"T", 3}});
  OpText text{"shd.rope(%0, %1) over \"H\"", {{"BH"}, {"B", "i32"}}, {"HB"}};
  expectPartsMakeWhole(text, extents,
                       {someValues({"BH"}, extents, 2), {5, 0, 2, 9, 4}},
                       {{"B", 2}});
}

} // namespace
