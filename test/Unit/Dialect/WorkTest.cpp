//===- WorkTest.cpp - FLOPs and bytes of operations -----------------------===//
//
// Work on one device from local extents, against
// docs/CostModel.md#2-one-operation-on-one-device.
//
//===----------------------------------------------------------------------===//

#include "Program.h"

using namespace shardc;
using namespace shardc::shd;

namespace {

/// Peaks in which int8 is twice as fast as bf16, and bf16 and f32 are alike.
Machine machine() {
  Machine machine;
  machine.flops["bf16"] = 1e12;
  machine.flops["int8"] = 2e12;
  return machine;
}

/// Work with local extents by factor name; others are whole.
template <typename Op>
OpWork workOf(Op op, std::map<std::string, int64_t> local = {}) {
  LocalExtents extents;
  for (const Factor &factor : op.getShardingRule().factors) {
    auto entry = local.find(factor.name);
    extents.extents.push_back(entry == local.end() ? factor.extent
                                                   : entry->second);
  }
  return op.getWork(extents, machine());
}

std::vector<double> operandBytes(const OpWork &work) {
  return {work.operandBytes.begin(), work.operandBytes.end()};
}

double resultBytes(const OpWork &work) {
  EXPECT_EQ(work.resultBytes.size(), 1u);
  return work.resultBytes.front();
}

using Bytes = std::vector<double>;

TEST(Work, Einsum) {
  Program program(R"(
    %a = shd.declare input "a" ["E", "B", "D"] : tensor<2x8x16xbf16>
    %b = shd.declare weight "b" ["E", "D", "F"] : tensor<2x16x32xi8>
    %c = shd.einsum(%a, %b) <[E, B, D], [E, D, F] -> [E, B, F]> : (tensor<2x8x16xbf16>, tensor<2x16x32xi8>) -> tensor<2x8x32xf32>)");
  auto einsum = program.get<EinsumOp>();
  // 2 * E 2 * B 8 * D 16 * F 32; the batch index E counts once.
  OpWork whole = workOf(einsum);
  EXPECT_EQ(whole.matrixFlops, 2. * 2 * 8 * 16 * 32);
  EXPECT_EQ(whole.vectorFlops, 0);
  // The wider of bf16 and int8.
  EXPECT_EQ(whole.computeType, "bf16");
  EXPECT_EQ(operandBytes(whole), (Bytes{2 * 8 * 16 * 2, 2 * 16 * 32 * 1}));
  EXPECT_EQ(resultBytes(whole), 2 * 8 * 32 * 4);
  // D over 4 devices: B and F whole.
  OpWork local = workOf(einsum, {{"D", 4}});
  EXPECT_EQ(local.matrixFlops, 2. * 2 * 8 * 4 * 32);
  EXPECT_EQ(operandBytes(local), (Bytes{2 * 8 * 4 * 2, 2 * 4 * 32 * 1}));
  EXPECT_EQ(resultBytes(local), 2 * 8 * 32 * 4);
  EXPECT_EQ(einsum.getFusionKind(), FusionKind::Leader);
}

TEST(Work, HugeExtentsDoNotOverflow) {
  // 2^40 * 2^40 FLOPs are more than 64 bits hold.
  Program program(R"(
    %a = shd.declare input "a" ["B", "D"] : tensor<1099511627776x2xi4>
    %b = shd.declare weight "b" ["D", "F"] : tensor<2x1099511627776xi4>
    %c = shd.einsum(%a, %b) <[B, D], [D, F] -> [B, F]> : (tensor<1099511627776x2xi4>, tensor<2x1099511627776xi4>) -> tensor<1099511627776x1099511627776xi4>)");
  OpWork work = workOf(program.get<EinsumOp>());
  EXPECT_EQ(work.matrixFlops, 0x1p82);
  // Half a byte each.
  EXPECT_EQ(operandBytes(work), (Bytes{0x1p40, 0x1p40}));
  EXPECT_EQ(resultBytes(work), 0x1p79);
}

TEST(Work, Elementwise) {
  Program program(R"(
    %a = shd.declare input "a" ["B", "D"] : tensor<8x16xbf16>
    %b = shd.declare weight "b" ["D"] : tensor<16xf32>
    %c = shd.elementwise mul(%a, %b) <[B, D], [D] -> [B, D]> : (tensor<8x16xbf16>, tensor<16xf32>) -> tensor<8x16xf32>)");
  auto mul = program.get<ElementwiseOp>();
  // One FLOP per element of the result: 2 of the 8 rows.
  OpWork work = workOf(mul, {{"B", 2}});
  EXPECT_EQ(work.vectorFlops, 2 * 16);
  EXPECT_EQ(work.matrixFlops, 0);
  EXPECT_EQ(operandBytes(work), (Bytes{2 * 16 * 2, 16 * 4}));
  EXPECT_EQ(resultBytes(work), 2 * 16 * 4);
  EXPECT_EQ(mul.getFusionKind(), FusionKind::Elementwise);
}

TEST(Work, CastsAndCopiesAreNotArithmetic) {
  Program cast(R"(
    %a = shd.declare input "a" ["B"] : tensor<8xi1>
    %c = shd.elementwise cast(%a) <[B] -> [B]> : (tensor<8xi1>) -> tensor<8xf32>)");
  OpWork work = workOf(cast.get<ElementwiseOp>());
  EXPECT_EQ(work.vectorFlops, 0);
  // A bool takes a byte.
  EXPECT_EQ(operandBytes(work), Bytes{8});
  EXPECT_EQ(resultBytes(work), 8 * 4);
  Program copy(R"(
    %a = shd.declare input "a" ["B"] : tensor<8xf32>
    %c = shd.elementwise copy(%a) <[B] -> [B, D]> : (tensor<8xf32>) -> tensor<8x4xf32>)");
  EXPECT_EQ(workOf(copy.get<ElementwiseOp>()).vectorFlops, 0);
  Program neg(R"(
    %a = shd.declare input "a" ["B"] : tensor<8xf32>
    %c = shd.elementwise neg(%a) <[B] -> [B]> : (tensor<8xf32>) -> tensor<8xf32>)");
  EXPECT_EQ(workOf(neg.get<ElementwiseOp>()).vectorFlops, 8);
}

TEST(Work, Reduce) {
  Program program(R"(
    %x = shd.declare input "x" ["B", "D"] : tensor<8x16xbf16>
    %y = shd.reduce sum(%x) <[B, D] -> [B]> : (tensor<8x16xbf16>) -> tensor<8xbf16>)");
  auto reduce = program.get<ReduceOp>();
  // One FLOP per input element: 8 * 4.
  OpWork work = workOf(reduce, {{"D", 4}});
  EXPECT_EQ(work.vectorFlops, 8 * 4);
  EXPECT_EQ(operandBytes(work), Bytes{8 * 4 * 2});
  EXPECT_EQ(resultBytes(work), 8 * 2);
  EXPECT_EQ(reduce.getFusionKind(), FusionKind::Reduction);
}

TEST(Work, StatisticsAreNotCounted) {
  Program program(R"(
    %x = shd.declare input "x" ["B", "D"] : tensor<8x16xbf16>
    %m = shd.declare input "m" ["B"] : tensor<8xbf16>
    %y = shd.reduce max(%x) <[B, D] -> [B]> stats(%m : tensor<8xbf16>) : (tensor<8x16xbf16>) -> tensor<8xbf16>)");
  EXPECT_EQ(operandBytes(workOf(program.get<ReduceOp>())), Bytes{8 * 16 * 2});
}

TEST(Work, NormalisationsAndLosses) {
  Program norm(R"(
    %x = shd.declare input "x" ["B", "D"] : tensor<8x16xbf16>
    %g = shd.declare weight "g" ["D"] : tensor<16xf32>
    %y = shd.normalize rmsnorm(%x, %g) over ["D"] <[B, D], [D] -> [B, D]> : (tensor<8x16xbf16>, tensor<16xf32>) -> tensor<8x16xbf16>)");
  // Five FLOPs per input element.
  OpWork work = workOf(norm.get<NormalizeOp>(), {{"B", 4}});
  EXPECT_EQ(work.vectorFlops, 5 * 4 * 16);
  EXPECT_EQ(operandBytes(work), (Bytes{4 * 16 * 2, 16 * 4}));
  EXPECT_EQ(resultBytes(work), 4 * 16 * 2);
  EXPECT_EQ(norm.get<NormalizeOp>().getFusionKind(), FusionKind::Reduction);
  Program loss(R"(
    %x = shd.declare input "x" ["B", "V"] : tensor<8x32xbf16>
    %l = shd.declare input "l" ["B"] : tensor<8xi32>
    %y = shd.cross_entropy(%x, %l) over "V" <[B, V], [B] -> [B]> : tensor<8x32xbf16>, tensor<8xi32> -> tensor<8xf32>)");
  work = workOf(loss.get<CrossEntropyOp>(), {{"V", 8}});
  EXPECT_EQ(work.vectorFlops, 5 * 8 * 8);
  EXPECT_EQ(operandBytes(work), (Bytes{8 * 8 * 2, 8 * 4}));
  EXPECT_EQ(resultBytes(work), 8 * 4);
  EXPECT_EQ(loss.get<CrossEntropyOp>().getFusionKind(), FusionKind::Reduction);
}

/// Attention of `queries` positions over `keys`, with 2 key heads of 3 query
/// heads each, batch 4 and head size 16.
std::string attention(int64_t queries, int64_t keys, llvm::StringRef query,
                      llvm::StringRef mask) {
  std::string q = "tensor<4x" + std::to_string(queries) + "x2x3x16xbf16>";
  std::string k = "tensor<4x" + std::to_string(keys) + "x2x16xbf16>";
  return ("%q = shd.declare input \"q\" [\"B\", \"T\", \"K\", \"G\", \"H\"] "
          ": " +
          q +
          "\n%k = shd.declare input \"k\" [\"B\", \"S\", \"K\", \"H\"] : " + k +
          "\n%v = shd.declare input \"v\" [\"B\", \"S\", \"K\", \"H\"] : " + k +
          "\n%o = shd.attention(%q, %k, %v) over \"H\", \"S\" " + query +
          " <[B, T, K, G, H], [B, S, K, H], [B, S, K, H] -> " +
          "[B, T, K, G, H]> " + mask + " : " + q + ", " + k + ", " + k +
          " -> " + q)
      .str();
}

TEST(Work, Attention) {
  Program program(attention(8, 32, "", ""));
  auto op = program.get<AttentionOp>();
  // 4 x batch 4 x query heads 2 * 3 x pairs 8 * 32 x H 16.
  OpWork work = workOf(op);
  EXPECT_EQ(work.matrixFlops, 4. * 4 * 6 * (8 * 32) * 16);
  EXPECT_EQ(work.vectorFlops, 0);
  EXPECT_EQ(work.computeType, "bf16");
  // q: B 4 T 8 K 2 G 3 H 16; k and v once per key head: B 4 S 32 K 2 H 16.
  EXPECT_EQ(operandBytes(work), (Bytes{4 * 8 * 6 * 16 * 2, 4 * 32 * 2 * 16 * 2,
                                       4 * 32 * 2 * 16 * 2}));
  EXPECT_EQ(resultBytes(work), 4 * 8 * 6 * 16 * 2);
  EXPECT_EQ(op.getFusionKind(), FusionKind::Leader);
}

TEST(Work, CausalAttention) {
  // T = S: half of the pairs.
  Program square(attention(32, 32, "query \"T\"", "causal"));
  EXPECT_EQ(workOf(square.get<AttentionOp>()).matrixFlops,
            4. * 4 * 6 * (32 * 32 / 2) * 16);
  // T = 8 of S = 32: S T (1 - T / 2S) = 256 * (1 - 1/8) = 224 pairs.
  Program prefix(attention(8, 32, "query \"T\"", "causal"));
  auto op = prefix.get<AttentionOp>();
  EXPECT_EQ(workOf(op).matrixFlops, 4. * 4 * 6 * 224 * 16);
  // The busiest device counts: the last 2 queries see 32 - 1 keys on average,
  // and all of the first 16.
  EXPECT_EQ(workOf(op, {{"T", 2}}).matrixFlops, 4. * 4 * 6 * (2 * 31) * 16);
  EXPECT_EQ(workOf(op, {{"T", 2}, {"S", 16}}).matrixFlops,
            4. * 4 * 6 * (2 * 16) * 16);
  // By device: queries at 24 to 26 and at 30 to 32, the first or last 16 keys.
  auto executed = [&](int64_t query, int64_t key) {
    std::vector<FactorRange> ranges;
    for (const Factor &factor : op.getShardingRule().factors)
      ranges.push_back({0, factor.extent, factor.extent});
    ranges[*op.getShardingRule().findFactor("T")] = {query, 2, 8};
    ranges[*op.getShardingRule().findFactor("S")] = {key, 16, 32};
    return op.getExecutedFlops(ranges);
  };
  EXPECT_EQ(executed(0, 0), 4. * 4 * 6 * (2 * 16) * 16);
  EXPECT_EQ(executed(0, 16), 4. * 4 * 6 * (2 * 9) * 16);
  EXPECT_EQ(executed(6, 16), 4. * 4 * 6 * (2 * 15) * 16);
  // One query: all 32 keys but half of one.
  Program decode(attention(1, 32, "query \"T\"", "causal"));
  EXPECT_EQ(workOf(decode.get<AttentionOp>()).matrixFlops,
            4. * 4 * 6 * 31.5 * 16);
}

TEST(Work, WindowedAttention) {
  // 24 keys for each of 8 queries, which see 24 to 32.
  Program wide(attention(8, 32, "query \"T\"", "causal window 24"));
  OpWork work = workOf(wide.get<AttentionOp>());
  EXPECT_EQ(work.matrixFlops, 4. * 4 * 6 * (8 * 24) * 16);
  // min(32, 24 + 8 - 1 = 31) positions of k and v.
  EXPECT_EQ(operandBytes(work), (Bytes{4 * 8 * 6 * 16 * 2, 4 * 31 * 2 * 16 * 2,
                                       4 * 31 * 2 * 16 * 2}));
  // 4 keys; 4 + 8 - 1 = 11 positions: all on the device with the last half of
  // S.
  Program narrow(attention(8, 32, "query \"T\"", "causal window 4"));
  work = workOf(narrow.get<AttentionOp>(), {{"S", 16}});
  EXPECT_EQ(work.matrixFlops, 4. * 4 * 6 * (8 * 4) * 16);
  EXPECT_EQ(operandBytes(work)[1], 4 * 11 * 2 * 16 * 2);
}

TEST(Work, AttentionWithSinkAndBias) {
  // Both are read once: N 4 and N 4 T 8 S 32 of 2 bytes. The matrix FLOPs are
  // those without: 4 x N x pairs x H.
  Program program(R"(
    %q = shd.declare input "q" ["T", "N", "H"] : tensor<8x4x16xbf16>
    %k = shd.declare input "k" ["S", "H"] : tensor<32x16xbf16>
    %s = shd.declare input "s" ["N"] : tensor<4xbf16>
    %b = shd.declare input "b" ["N", "T", "S"] : tensor<4x8x32xbf16>
    %o = shd.attention(%q, %k, %k sink %s bias %b) over "H", "S" <[T, N, H], [S, H], [S, H], [N], [N, T, S] -> [T, N, H]> : tensor<8x4x16xbf16>, tensor<32x16xbf16>, tensor<32x16xbf16> sink tensor<4xbf16> bias tensor<4x8x32xbf16> -> tensor<8x4x16xbf16>)");
  OpWork work = workOf(program.get<AttentionOp>());
  EXPECT_EQ(work.matrixFlops, 4. * 4 * (8 * 32) * 16);
  EXPECT_EQ(operandBytes(work)[3], 4 * 2);
  EXPECT_EQ(operandBytes(work)[4], 4 * 8 * 32 * 2);
}

TEST(Work, AttentionAtPositions) {
  // T is the index of the positions that k lacks: the pairs of the causal test.
  Program program(R"(
    %q = shd.declare input "q" ["B", "T", "H"] : tensor<4x8x16xbf16>
    %k = shd.declare input "k" ["B", "S", "H"] : tensor<4x32x16xi8>
    %v = shd.declare input "v" ["B", "S", "E"] : tensor<4x32x24xi8>
    %at = shd.declare input "at" ["B", "T"] : tensor<4x8xi32>
    %o = shd.attention(%q, %k, %v at %at) over "H", "S" <[B, T, H], [B, S, H], [B, S, E], [B, T] -> [B, T, E]> causal : tensor<4x8x16xbf16>, tensor<4x32x16xi8>, tensor<4x32x24xi8>, tensor<4x8xi32> -> tensor<4x8x24xbf16>)");
  OpWork work = workOf(program.get<AttentionOp>());
  // Scores 2 x 4 x 224 x 16, values 2 x 4 x 224 x 24.
  EXPECT_EQ(work.matrixFlops, 2. * 4 * 224 * 16 + 2. * 4 * 224 * 24);
  EXPECT_EQ(operandBytes(work),
            (Bytes{4 * 8 * 16 * 2, 4 * 32 * 16, 4 * 32 * 24, 4 * 8 * 4}));
  EXPECT_EQ(resultBytes(work), 4 * 8 * 24 * 2);
}

TEST(Work, AttentionOfOnePositionPerSequence) {
  // Positions have no index that k lacks: T = 1, so 31.5 pairs, and 3 + 1 - 1
  // positions of k.
  Program program(R"(
    %q = shd.declare input "q" ["B", "N", "H"] : tensor<4x2x16xbf16>
    %k = shd.declare input "k" ["B", "S", "H"] : tensor<4x32x16xbf16>
    %at = shd.declare input "at" ["B"] : tensor<4xi32>
    %o = shd.attention(%q, %k, %k at %at) over "H", "S" <[B, N, H], [B, S, H], [B, S, H], [B] -> [B, N, H]> causal window 3 : tensor<4x2x16xbf16>, tensor<4x32x16xbf16>, tensor<4x32x16xbf16>, tensor<4xi32> -> tensor<4x2x16xbf16>)");
  OpWork work = workOf(program.get<AttentionOp>());
  EXPECT_EQ(work.matrixFlops, 4. * 4 * 2 * 3 * 16);
  EXPECT_EQ(operandBytes(work)[1], 4 * 3 * 16 * 2);
}

TEST(Work, AttentionWithItsLogSumExp) {
  Program program(R"(
    %q = shd.declare input "q" ["T", "H"] : tensor<8x16xbf16>
    %k = shd.declare input "k" ["S", "H"] : tensor<32x16xbf16>
    %o, %l = shd.attention(%q, %k, %k) over "H", "S" <[T, H], [S, H], [S, H] -> [T, H], [T]> : tensor<8x16xbf16>, tensor<32x16xbf16>, tensor<32x16xbf16> -> tensor<8x16xbf16>, tensor<8xf32>)");
  OpWork work = workOf(program.get<AttentionOp>());
  EXPECT_EQ(Bytes(work.resultBytes.begin(), work.resultBytes.end()),
            (Bytes{8 * 16 * 2, 8 * 4}));
  EXPECT_FALSE(work.modelFlops);
}

TEST(Work, AttentionGrad) {
  Program program(R"(
    %q = shd.declare input "q" ["B", "T", "H"] : tensor<4x8x16xbf16>
    %k = shd.declare input "k" ["B", "S", "H"] : tensor<4x32x16xbf16>
    %v = shd.declare input "v" ["B", "S", "E"] : tensor<4x32x24xbf16>
    %o = shd.declare input "o" ["B", "T", "E"] : tensor<4x8x24xbf16>
    %l = shd.declare input "l" ["B", "T"] : tensor<4x8xf32>
    %dq, %dk, %dv = shd.attention_grad(%q, %k, %v, %o, %o, %l) over "H", "S" query "T" <[B, T, H], [B, S, H], [B, S, E], [B, T, E], [B, T, E], [B, T] -> [B, T, H], [B, S, H], [B, S, E]> causal window 4 : (tensor<4x8x16xbf16>, tensor<4x32x16xbf16>, tensor<4x32x24xbf16>, tensor<4x8x24xbf16>, tensor<4x8x24xbf16>, tensor<4x8xf32>) -> (tensor<4x8x16xbf16>, tensor<4x32x16xf32>, tensor<4x32x24xbf16>))");
  auto op = program.get<AttentionGradOp>();
  // Forward: 2 x batch 4 x 8 queries of 4 keys x (16 + 24).
  double forward = 2. * 4 * (8 * 4) * (16 + 24);
  OpWork work = workOf(op);
  EXPECT_EQ(work.matrixFlops, 2.5 * forward);
  EXPECT_EQ(*work.modelFlops, 2 * forward);
  EXPECT_EQ(work.computeType, "bf16");
  // 4 + 8 - 1 = 11 positions of k and v are read, and all are written.
  EXPECT_EQ(operandBytes(work),
            (Bytes{4 * 8 * 16 * 2, 4 * 11 * 16 * 2, 4 * 11 * 24 * 2,
                   4 * 8 * 24 * 2, 4 * 8 * 24 * 2, 4 * 8 * 4}));
  EXPECT_EQ(Bytes(work.resultBytes.begin(), work.resultBytes.end()),
            (Bytes{4 * 8 * 16 * 2, 4 * 32 * 16 * 4, 4 * 32 * 24 * 2}));
  EXPECT_EQ(op.getFusionKind(), FusionKind::Leader);
  // Half of T and half of S: the queries stand at the last 8 of 32 positions,
  // so the half of the keys that has position 16 on has all of their windows.
  EXPECT_EQ(workOf(op, {{"T", 4}, {"S", 16}}).matrixFlops, 2.5 * forward / 2);
}

TEST(Work, Rope) {
  Program program(R"(
    %x = shd.declare input "x" ["B", "T", "H"] : tensor<4x8x16xbf16>
    %p = shd.declare input "p" ["B"] : tensor<4xi32>
    %y = shd.rope(%x, %p) over "H" <[B, T, H], [B] -> [B, T, H]> : (tensor<4x8x16xbf16>, tensor<4xi32>) -> tensor<4x8x16xbf16>)");
  auto rope = program.get<RopeOp>();
  OpWork work = workOf(rope, {{"B", 2}});
  EXPECT_EQ(work.vectorFlops, 2 * 8 * 16);
  EXPECT_EQ(operandBytes(work), (Bytes{2 * 8 * 16 * 2, 2 * 4}));
  EXPECT_EQ(rope.getFusionKind(), FusionKind::Elementwise);
}

TEST(Work, GatherReadsRows) {
  Program program(R"(
    %emb = shd.declare weight "emb" ["V", "D"] : tensor<1024x16xbf16>
    %tok = shd.declare input "tok" ["B", "T"] : tensor<4x8xi32>
    %y = shd.gather(%emb, %tok) <[V, D], [B, T] -> [B, T, D]> at [0] : (tensor<1024x16xbf16>, tensor<4x8xi32>) -> tensor<4x8x16xbf16>)");
  auto gather = program.get<GatherOp>();
  // 4 * 8 rows of 16, not 1024.
  OpWork whole = workOf(gather);
  EXPECT_EQ(whole.vectorFlops, 0);
  EXPECT_EQ(whole.matrixFlops, 0);
  EXPECT_EQ(operandBytes(whole), (Bytes{4 * 8 * 16 * 2, 4 * 8 * 4}));
  EXPECT_EQ(resultBytes(whole), 4 * 8 * 16 * 2);
  // V over 4 devices: a quarter of the rows; the (partial) result is whole.
  OpWork local = workOf(gather, {{"V", 256}});
  EXPECT_EQ(operandBytes(local), (Bytes{4 * 8 * 16 * 2 / 4, 4 * 8 * 4}));
  EXPECT_EQ(resultBytes(local), 4 * 8 * 16 * 2);
  // D over 2 devices: half of each row.
  EXPECT_EQ(operandBytes(workOf(gather, {{"D", 8}})),
            (Bytes{4 * 8 * 8 * 2, 4 * 8 * 4}));
  EXPECT_EQ(gather.getFusionKind(), FusionKind::Leader);
}

TEST(Work, SelectingASliceIsFree) {
  Program program(R"(
    %w = shd.declare weight "w" ["L", "D"] : tensor<80x16xbf16>
    shd.repeat "L" = 80 () : () -> () {
    ^bb0(%i: tensor<i32>):
      %y = shd.gather(%w, %i) <[L, D], [] -> [D]> at [0] : (tensor<80x16xbf16>, tensor<i32>) -> tensor<16xbf16>
      shd.yield
    })");
  auto gather = program.get<GatherOp>();
  EXPECT_EQ(gather.getFusionKind(), FusionKind::Free);
  OpWork work = workOf(gather);
  EXPECT_EQ(operandBytes(work), (Bytes{0, 0}));
  EXPECT_EQ(resultBytes(work), 0);
}

/// A write of 4 rows of 16 f32 into a cache of 32 positions each.
std::string scatter(llvm::StringRef accumulate) {
  return (R"(
    %c = shd.declare state "c" ["B", "S", "D"] : tensor<4x32x16xf32>
    %u = shd.declare input "u" ["B", "D"] : tensor<4x16xf32>
    %p = shd.declare input "p" ["B"] : tensor<4xi32>
    %y = shd.scatter(%c, %u, %p) <[B, S, D], [B, D], [B] -> [B, S, D]> at [1] )" +
          accumulate +
          R"( : (tensor<4x32x16xf32>, tensor<4x16xf32>, tensor<4xi32>) -> tensor<4x32x16xf32>)")
      .str();
}

TEST(Work, ScatterWritesRows) {
  Program write(scatter(""));
  auto op = write.get<ScatterOp>();
  // The destination is not read; 2 of the 4 rows are written.
  OpWork work = workOf(op, {{"B", 2}});
  EXPECT_EQ(operandBytes(work), (Bytes{0, 2 * 16 * 4, 2 * 4}));
  EXPECT_EQ(resultBytes(work), 2 * 16 * 4);
  EXPECT_EQ(op.getFusionKind(), FusionKind::Leader);
  // S on 4 devices: each has a quarter of the rows.
  work = workOf(op, {{"S", 32 / 4}});
  EXPECT_EQ(operandBytes(work), (Bytes{0, 4 * 16 * 4, 4 * 4}));
  EXPECT_EQ(resultBytes(work), 4 * 16 * 4 / 4);
  // Adding reads the rows too.
  Program add(scatter("accumulate"));
  work = workOf(add.get<ScatterOp>(), {{"B", 2}});
  EXPECT_EQ(operandBytes(work), (Bytes{2 * 16 * 4, 2 * 16 * 4, 2 * 4}));
  EXPECT_EQ(resultBytes(work), 2 * 16 * 4);
}

TEST(Work, ScatterSumFillsAndAdds) {
  Program program(R"(
    %u = shd.declare input "u" ["B", "T", "D"] : tensor<4x8x16xbf16>
    %p = shd.declare input "p" ["B", "T"] : tensor<4x8xi32>
    %y = shd.scatter_sum(%u, %p) <[B, T, D], [B, T] -> [V, D]> at [0] : (tensor<4x8x16xbf16>, tensor<4x8xi32>) -> tensor<1024x16xf32>)");
  auto op = program.get<ScatterSumOp>();
  // 1024 rows are filled, 4 * 8 read, added to and written.
  OpWork work = workOf(op);
  EXPECT_EQ(work.vectorFlops, 4 * 8 * 16);
  EXPECT_EQ(operandBytes(work), (Bytes{4 * 8 * 16 * 2, 4 * 8 * 4}));
  EXPECT_EQ(resultBytes(work), (1024 + 2 * 4 * 8) * 16 * 4);
  EXPECT_EQ(op.getFusionKind(), FusionKind::Leader);
  // V on 4 devices: a quarter of the rows, and of the updates.
  work = workOf(op, {{"V", 256}});
  EXPECT_EQ(work.vectorFlops, 4 * 8 * 16 / 4);
  EXPECT_EQ(resultBytes(work), (256 + 2 * 4 * 8 / 4) * 16 * 4);
}

TEST(Work, ExpertsMoveEachTensorOnce) {
  Program program(R"(
    %x = shd.declare input "x" ["B", "T", "D"] : tensor<2x8x16xbf16>
    %g = shd.declare input "g" ["B", "T", "E"] : tensor<2x8x4xf32>
    %p = shd.topk(%g) over "E" k 2 <[B, T, E] -> [B, T, E]> : (tensor<2x8x4xf32>) -> tensor<2x8x4xi1>
    %y = shd.dispatch(%x, %p) over "E", "C" k 2 <[B, T, D], [B, T, E] -> [E, B, C, D]> : (tensor<2x8x16xbf16>, tensor<2x8x4xi1>) -> tensor<4x2x5x16xbf16>
    %z = shd.combine(%y, %p, %g) over "E", "C" k 2 <[E, B, C, D], [B, T, E], [B, T, E] -> [B, T, D]> : (tensor<4x2x5x16xbf16>, tensor<2x8x4xi1>, tensor<2x8x4xf32>) -> tensor<2x8x16xbf16>)");
  // One FLOP for each score; a bool takes a byte.
  auto topk = program.get<TopKOp>();
  OpWork work = workOf(topk);
  EXPECT_EQ(work.vectorFlops, 2 * 8 * 4);
  EXPECT_EQ(operandBytes(work), (Bytes{2 * 8 * 4 * 4}));
  EXPECT_EQ(resultBytes(work), 2 * 8 * 4);
  EXPECT_EQ(topk.getFusionKind(), FusionKind::Reduction);
  auto dispatch = program.get<DispatchOp>();
  work = workOf(dispatch);
  EXPECT_EQ(work.matrixFlops + work.vectorFlops, 0);
  EXPECT_EQ(operandBytes(work), (Bytes{2 * 8 * 16 * 2, 2 * 8 * 4}));
  EXPECT_EQ(resultBytes(work), 4 * 2 * 5 * 16 * 2);
  EXPECT_EQ(dispatch.getFusionKind(), FusionKind::Leader);
  // E on 4 devices: a quarter of the slots, all of x and of the picks.
  work = workOf(dispatch, {{"E", 1}});
  EXPECT_EQ(operandBytes(work), (Bytes{2 * 8 * 16 * 2, 2 * 8 * 4}));
  EXPECT_EQ(resultBytes(work), 2 * 5 * 16 * 2);
  auto combine = program.get<CombineOp>();
  work = workOf(combine);
  EXPECT_EQ(work.matrixFlops + work.vectorFlops, 0);
  EXPECT_EQ(operandBytes(work),
            (Bytes{4 * 2 * 5 * 16 * 2, 2 * 8 * 4, 2 * 8 * 4 * 4}));
  EXPECT_EQ(resultBytes(work), 2 * 8 * 16 * 2);
}

TEST(Work, Concat) {
  Program program(R"(
    %x = shd.declare input "x" ["I", "D"] : tensor<8x16xbf16>
    %z = shd.declare input "z" ["J", "D"] : tensor<4x16xbf16>
    %y = shd.concat(%x, %z) ["I", "J"] into "K" <[I, D], [J, D] -> [K, D]> : (tensor<8x16xbf16>, tensor<4x16xbf16>) -> tensor<12x16xbf16>)");
  auto concat = program.get<ConcatOp>();
  OpWork work = workOf(concat, {{"D", 4}});
  EXPECT_EQ(work.vectorFlops, 0);
  EXPECT_EQ(operandBytes(work), (Bytes{8 * 4 * 2, 4 * 4 * 2}));
  EXPECT_EQ(resultBytes(work), 12 * 4 * 2);
  EXPECT_EQ(concat.getFusionKind(), FusionKind::Elementwise);
}

TEST(Work, ViewsAreFree) {
  Program program(R"(
    %x = shd.declare input "x" ["D"] : tensor<12xbf16>
    %0 = shd.split(%x) "D" into ["A", "B"] <[D] -> [A, B]> : (tensor<12xbf16>) -> tensor<3x4xbf16>
    %1 = shd.merge(%0) ["A", "B"] into "D" <[A, B] -> [D]> : (tensor<3x4xbf16>) -> tensor<12xbf16>
    %2 = shd.slice(%1) "D" [0, 4] into "E" <[D] -> [E]> : (tensor<12xbf16>) -> tensor<4xbf16>
    %3 = shd.reshard(%2) <[E] -> [E]> : (tensor<4xbf16>) -> tensor<4xbf16>
    %4 = shd.iota <-> [E]> : tensor<4xi32>)");
  unsigned count = 0;
  program.module->walk([&](CostOpInterface op) {
    ++count;
    EXPECT_EQ(op.getFusionKind(), FusionKind::Free);
    ShardingRule rule = mlir::cast<ShardingRuleOpInterface>(op.getOperation())
                            .getShardingRule();
    OpWork work = op.getWork(wholeExtents(rule), machine());
    EXPECT_EQ(work.matrixFlops + work.vectorFlops, 0);
    EXPECT_EQ(operandBytes(work), Bytes(op->getNumOperands(), 0));
    EXPECT_EQ(resultBytes(work), 0);
  });
  EXPECT_EQ(count, 5u);
}

} // namespace
