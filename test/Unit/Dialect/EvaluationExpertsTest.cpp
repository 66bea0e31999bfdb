//===- EvaluationExpertsTest.cpp - Topk, dispatch and combine -------------===//

#include "Evaluated.h"
#include "shardc/Dialect/Shd/IR/Experts.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

TEST(EvaluationExperts, TopKOfEqualsTakesTheLower) {
  OpText text{"shd.topk(%0) over \"E\" k 2", {{"TE"}}, {"ET", "i1"}};
  // Of [3 1 3 2] the first and third, of [2 2 2 2] the first two, of
  // [-1 -9 -3 -2] the first and last; the result is [E, T].
  EXPECT_EQ(evaluate(text, {{"T", 3}, {"E", 4}},
                     {{3, 1, 3, 2, 2, 2, 2, 2, -1, -9, -3, -2}}),
            (Values{1, 1, 1, 0, 1, 0, 1, 0, 0, 0, 0, 1}));
}

// Token 0 picks expert 0, tokens 1 and 2 pick both; an expert has two slots, so
// expert 0 drops token 2.
const Extents small{{"T", 3}, {"E", 2}, {"C", 2}, {"D", 1}};
const Values picks{1, 0, 1, 1, 1, 1};
const Values weights{0.5, 9, 0.25, 2, 7, 4};

TEST(EvaluationExperts, Dispatch) {
  OpText text{"shd.dispatch(%0, %1) over \"E\", \"C\" k 2",
              {{"TD"}, {"TE", "i1"}},
              {"ECD"}};
  EXPECT_EQ(evaluate(text, small, {{1, 2, 3}, picks}), (Values{1, 2, 2, 3}));
  // Three slots: nothing is dropped, and expert 1 has an empty one.
  EXPECT_EQ(evaluate(text, {{"T", 3}, {"E", 2}, {"C", 3}, {"D", 1}},
                     {{1, 2, 3}, picks}),
            (Values{1, 2, 3, 2, 3, 0}));
  text.head = "shd.dispatch(%0, %1, %2) over \"E\", \"C\" k 2";
  text.operands.push_back({"TE"});
  // 1 / 2, 2 / 4; 2 x 2, 3 x 4.
  EXPECT_EQ(evaluate(text, small, {{1, 2, 3}, picks, weights}),
            (Values{0.5, 0.5, 4, 12}));
}

TEST(EvaluationExperts, GroupsAreRoutedApart) {
  // Two groups of two tokens, one slot: the first of each that picks.
  OpText text{"shd.dispatch(%0, %1) over \"E\", \"C\" k 1",
              {{"BTD"}, {"TBE", "i1"}},
              {"EBCD"}};
  Extents extents{{"B", 2}, {"T", 2}, {"E", 2}, {"C", 1}, {"D", 1}};
  // Tokens [B, T] = 1 2 / 3 4; picks [T, B, E]: 1 and 2 expert 0, 3 expert 1,
  // 4 expert 0.
  EXPECT_EQ(evaluate(text, extents, {{1, 2, 3, 4}, {1, 0, 0, 1, 1, 0, 1, 0}}),
            (Values{1, 4, 0, 3}));
}

TEST(EvaluationExperts, SeveralIndicesOfTokensRunInTheOrderOfThePicks) {
  // Without groups, [B, T] in row-major order: 1, 2, 3, 4 want one expert.
  OpText text{"shd.dispatch(%0, %1) over \"E\", \"C\" k 1",
              {{"TB"}, {"BTE", "i1"}},
              {"EC"}};
  Extents extents{{"B", 2}, {"T", 2}, {"E", 1}, {"C", 3}};
  EXPECT_EQ(evaluate(text, extents, {{1, 3, 2, 4}, {1, 1, 1, 1}}),
            (Values{1, 2, 3}));
}

TEST(EvaluationExperts, Combine) {
  OpText text{"shd.combine(%0, %1, %2) over \"E\", \"C\" k 2",
              {{"ECD"}, {"TE", "i1"}, {"TE"}},
              {"TD"}};
  // Expert 0 has 10 and 20 for tokens 0 and 1, expert 1 30 and 40 for 1 and 2:
  // 10 / 2; 20 / 4 + 30 x 2; 40 x 4.
  Values results{10, 20, 30, 40};
  EXPECT_EQ(evaluate(text, small, {results, picks, weights}),
            (Values{5, 65, 160}));
  text.head = "shd.combine(%0, %1) over \"E\", \"C\" k 2";
  text.operands.pop_back();
  EXPECT_EQ(evaluate(text, small, {results, picks}), (Values{10, 50, 40}));
}

TEST(EvaluationExperts, CombineGrad) {
  OpText text{"shd.combine_grad(%0, %1, %2) over \"E\", \"C\" k 2",
              {{"TD"}, {"TE", "i1"}, {"ECD"}},
              {"TE"}};
  // 1 x 10; 2 x 20, 2 x 30; 3 x 40, where tokens have slots.
  EXPECT_EQ(evaluate(text, small, {{1, 2, 3}, picks, {10, 20, 30, 40}}),
            (Values{10, 0, 40, 60, 0, 120}));
}

TEST(EvaluationExperts, MorePicksThanK) {
  OpText text{"shd.dispatch(%0, %1) over \"E\", \"C\" k 1",
              {{"TD"}, {"TE", "i1"}},
              {"ECD"}};
  EXPECT_EQ(errorOf(text, small, {{1, 2, 3}, picks}),
            "'shd.dispatch' op a token picks 2 of index 'E', but k is 1");
  text.operands.front() = {"ECD"};
  text.result = {"TD"};
  text.head = "shd.combine(%0, %1) over \"E\", \"C\" k 1";
  EXPECT_EQ(errorOf(text, small, {{1, 2, 3, 4}, picks}),
            "'shd.combine' op a token picks 2 of index 'E', but k is 1");
}

TEST(EvaluationExperts, PicksInMoreBlocksThanTheLimit) {
  OpText text{"shd.dispatch(%0, %1) over \"E\", \"C\" k 2 blocks 2 limit 1",
              {{"TD"}, {"TE", "i1"}},
              {"ECD"}};
  Extents extents{{"T", 1}, {"E", 4}, {"C", 1}, {"D", 1}};
  EXPECT_EQ(evaluate(text, extents, {{5}, {0, 0, 1, 1}}), (Values{0, 0, 5, 5}));
  EXPECT_EQ(errorOf(text, extents, {{5}, {0, 1, 1, 0}}),
            "'shd.dispatch' op the picks of a token lie in 2 of 2 blocks of "
            "index 'E', but the limit is 1");
}

TEST(EvaluationExperts, DroplessNeedsItsSlots) {
  OpText text{"shd.dispatch(%0, %1) over \"E\", \"C\" k 2 dropless",
              {{"TD"}, {"TE", "i1"}},
              {"ECD"}};
  EXPECT_EQ(errorOf(text, small, {{1, 2, 3}, picks}),
            "cannot run `dropless=true` with C = 2: more than 2 of a group's "
            "tokens pick the same of index 'E'");
}

TEST(EvaluationExperts, CountsPicks) {
  // In two groups of three tokens and two slots: three picks of expert 0 in the
  // first, of expert 1 in the second; one of each is dropped.
  Program program(R"(
    %x = shd.declare input "x" ["B", "T", "D"] : tensor<2x3x1xf32>
    %p = shd.declare input "p" ["B", "T", "E"] : tensor<2x3x2xi1>
    %y = shd.dispatch(%x, %p) over "E", "C" k 2 <[B, T, D], [B, T, E] -> [E, B, C, D]> : (tensor<2x3x1xf32>, tensor<2x3x2xi1>) -> tensor<2x2x2x1xf32>)");
  auto op = program.get<DispatchOp>();
  Tensor picked(cast<RankedTensorType>(op.getPicks().getType()));
  for (int element : {0, 2, 4, 5, 7, 9, 11})
    picked.setInteger(element, 1);
  PickCount count = countPicks(op, picked);
  EXPECT_EQ(count.picks, 7);
  EXPECT_EQ(count.dropped, 2);
  ExpertExtents extents = ExpertExtents::of(op);
  EXPECT_EQ(extents.experts, 2);
  EXPECT_EQ(extents.tokens, 3);
  EXPECT_EQ(extents.groups, 2);
  EXPECT_EQ(extents.slots, 2);
}

TEST(EvaluationExperts, InParts) {
  Extents extents{{"B", 2}, {"T", 5}, {"E", 3}, {"C", 3}, {"D", 2}};
  Values chosen;
  for (int token = 0; token < 2 * 5; ++token)
    for (int expert = 0; expert < 3; ++expert)
      chosen.push_back((token * 7 + 2) % 3 != expert);
  TensorText tokens{"BTD"}, slots{"EBCD"}, scores{"BTE"},
      picked{"BTE", "i1", "TE"};
  const OpText texts[] = {
      {"shd.dispatch(%0, %1) over \"E\", \"C\" k 2", {tokens, picked}, slots},
      {"shd.dispatch(%0, %1, %2) over \"E\", \"C\" k 2",
       {tokens, picked, scores},
       slots},
      {"shd.combine(%0, %1, %2) over \"E\", \"C\" k 2",
       {slots, picked, scores},
       tokens},
      {"shd.combine_grad(%0, %1, %2) over \"E\", \"C\" k 2",
       {tokens, picked, slots},
       scores}};
  for (const OpText &text : texts) {
    std::vector<Values> inputs;
    for (auto [i, operand] : llvm::enumerate(text.operands))
      inputs.push_back(i == 1 ? chosen : someValues(operand, extents, i + 1));
    for (std::map<std::string, int64_t> parts :
         {std::map<std::string, int64_t>{{"T", 2}},
          {{"E", 2}},
          {{"C", 3}},
          {{"B", 2}, {"D", 2}},
          {{"T", 3}, {"E", 3}, {"C", 2}}})
      expectPartsMakeWhole(text, extents, inputs, parts);
  }
}

} // namespace
