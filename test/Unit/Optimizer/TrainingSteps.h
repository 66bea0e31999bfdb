//===- TrainingSteps.h - Small training steps -----------------*- C++ -*-===//
//
// Steps of a network of two layers, h = relu(h * w): forward, backward, and an
// update with momentum. In the textual form of the shd dialect: layouts are
// free.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TEST_UNIT_OPTIMIZER_TRAININGSTEPS_H
#define SHARDC_TEST_UNIT_OPTIMIZER_TRAININGSTEPS_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace shardc::test {

struct TrainingStep {
  const char *name;
  /// Microbatches, whose gradients are added up; 0: no repeat around.
  unsigned microbatches = 0;
  /// The update runs in the repeat of the backward pass.
  bool isFused = false;
  /// A weight behind the layers, which is not stacked.
  bool hasHead = false;
};

inline constexpr TrainingStep kTrainingSteps[] = {
    {"Plain"},
    {"Head", 0, false, true},
    {"Fused", 0, true},
    {"Microbatches", 2},
    {"MicrobatchesAndHead", 2, false, true},
};

namespace training {

inline constexpr llvm::StringLiteral kTensors = R"(
shd.program "step" mesh <[X = 2, Y = 2]> hardware <"tpu_v5e", [2, 2]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x4xbf16>
  %t = shd.declare input "t" ["B", "D"] : tensor<8x4xbf16>
  %w = shd.declare weight "w" ["L", "D", "E"] stacked 1 : tensor<2x4x4xf32>
  %g = shd.declare gradient "w_grad" ["L", "D", "E"] stacked 1 of "w" : tensor<2x4x4xf32>
  %m = shd.declare moment "w_m" ["L", "D", "E"] stacked 1 of "w" : tensor<2x4x4xf32>
  %hs = shd.declare saved "h" ["L", "B", "D"] stacked 1 : tensor<2x8x4xbf16>
  %us = shd.declare saved "u" ["L", "B", "E"] stacked 1 : tensor<2x8x4xbf16>
  %zero = shd.constant dense<0.0> : tensor<bf16>
  %beta = shd.constant dense<0.9> : tensor<f32>
  %lr = shd.constant dense<0.1> : tensor<f32>
)";

inline constexpr llvm::StringLiteral kHeadTensors = R"(
  %v = shd.declare weight "v" ["D", "F"] : tensor<4x4xf32>
  %gv = shd.declare gradient "v_grad" ["D", "F"] of "v" : tensor<4x4xf32>
  %mv = shd.declare moment "v_m" ["D", "F"] of "v" : tensor<4x4xf32>
)";

inline constexpr llvm::StringLiteral kForward = R"(
  %y = shd.repeat "L" = 2(%x) : (tensor<8x4xbf16>) -> tensor<8x4xbf16> {
  ^bb0(%i: tensor<i32>, %h: tensor<8x4xbf16>):
    shd.update %hs[%i] = %h : tensor<2x8x4xbf16>, tensor<8x4xbf16>
    %w_i = shd.part %w[%i] : tensor<2x4x4xf32> -> tensor<4x4xf32>
    %u = shd.einsum(%h, %w_i) <[B, D], [D, E] -> [B, E]> : (tensor<8x4xbf16>, tensor<4x4xf32>) -> tensor<8x4xbf16>
    shd.update %us[%i] = %u : tensor<2x8x4xbf16>, tensor<8x4xbf16>
    %r = shd.elementwise relu(%u) <[B, E] -> [B, E]> : (tensor<8x4xbf16>) -> tensor<8x4xbf16>
    shd.yield %r : tensor<8x4xbf16>
  }
)";

inline constexpr llvm::StringLiteral kLoss = R"(
  %e = shd.elementwise sub(%y, %t) <[B, D], [B, D] -> [B, D]> : (tensor<8x4xbf16>, tensor<8x4xbf16>) -> tensor<8x4xbf16>
)";

inline constexpr llvm::StringLiteral kHead = R"(
  %o = shd.einsum(%y, %v) <[B, D], [D, F] -> [B, F]> : (tensor<8x4xbf16>, tensor<4x4xf32>) -> tensor<8x4xbf16>
  %do = shd.elementwise sub(%o, %t) <[B, F], [B, F] -> [B, F]> : (tensor<8x4xbf16>, tensor<8x4xbf16>) -> tensor<8x4xbf16>
  %dv = shd.einsum(%y, %do) <[B, D], [B, F] -> [D, F]> : (tensor<8x4xbf16>, tensor<8x4xbf16>) -> tensor<4x4xf32>
  %e = shd.einsum(%do, %v) <[B, F], [D, F] -> [B, D]> : (tensor<8x4xbf16>, tensor<4x4xf32>) -> tensor<8x4xbf16>
)";

inline constexpr llvm::StringLiteral kHeadGradient = R"(
  shd.update %gv = %dv : tensor<4x4xf32>, tensor<4x4xf32>
)";

inline constexpr llvm::StringLiteral kHeadSum = R"(
  %gv_old = shd.part %gv[] : tensor<4x4xf32> -> tensor<4x4xf32>
  %gv_sum = shd.elementwise add(%gv_old, %dv) <[D, F], [D, F] -> [D, F]> : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  shd.update %gv = %gv_sum : tensor<4x4xf32>, tensor<4x4xf32>
)";

inline constexpr llvm::StringLiteral kBackward = R"(
  %dx = shd.repeat "L" = 2 reverse(%e) : (tensor<8x4xbf16>) -> tensor<8x4xbf16> {
  ^bb0(%k: tensor<i32>, %dy: tensor<8x4xbf16>):
    %u_k = shd.part %us[%k] : tensor<2x8x4xbf16> -> tensor<8x4xbf16>
    %h_k = shd.part %hs[%k] : tensor<2x8x4xbf16> -> tensor<8x4xbf16>
    %wb = shd.part %w[%k] : tensor<2x4x4xf32> -> tensor<4x4xf32>
    %on = shd.elementwise gt(%u_k, %zero) <[B, E], [] -> [B, E]> : (tensor<8x4xbf16>, tensor<bf16>) -> tensor<8x4xi1>
    %du = shd.elementwise where(%on, %dy, %zero) <[B, E], [B, E], [] -> [B, E]> : (tensor<8x4xi1>, tensor<8x4xbf16>, tensor<bf16>) -> tensor<8x4xbf16>
    %dw = shd.einsum(%h_k, %du) <[B, D], [B, E] -> [D, E]> : (tensor<8x4xbf16>, tensor<8x4xbf16>) -> tensor<4x4xf32>
    %dh = shd.einsum(%du, %wb) <[B, E], [D, E] -> [B, D]> : (tensor<8x4xbf16>, tensor<4x4xf32>) -> tensor<8x4xbf16>
)";

inline constexpr llvm::StringLiteral kGradient = R"(
    shd.update %g[%k] = %dw : tensor<2x4x4xf32>, tensor<4x4xf32>
)";

inline constexpr llvm::StringLiteral kSum = R"(
    %old = shd.part %g[%k] : tensor<2x4x4xf32> -> tensor<4x4xf32>
    %sum = shd.elementwise add(%old, %dw) <[D, E], [D, E] -> [D, E]> : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    shd.update %g[%k] = %sum : tensor<2x4x4xf32>, tensor<4x4xf32>
)";

inline constexpr llvm::StringLiteral kBackwardEnd = R"(
    shd.yield %dh : tensor<8x4xbf16>
  }
)";

inline constexpr llvm::StringLiteral kUpdateBegin = R"(
  shd.repeat "L" = 2() : () -> () {
  ^bb0(%k: tensor<i32>):
)";

inline constexpr llvm::StringLiteral kUpdate = R"(
    %g_k = shd.part %g[%k] : tensor<2x4x4xf32> -> tensor<4x4xf32>
    %m_k = shd.part %m[%k] : tensor<2x4x4xf32> -> tensor<4x4xf32>
    %w_k = shd.part %w[%k] : tensor<2x4x4xf32> -> tensor<4x4xf32>
    %m1 = shd.elementwise mul(%m_k, %beta) <[D, E], [] -> [D, E]> : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
    %m2 = shd.elementwise add(%m1, %g_k) <[D, E], [D, E] -> [D, E]> : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %d = shd.elementwise mul(%m2, %lr) <[D, E], [] -> [D, E]> : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
    %w2 = shd.elementwise sub(%w_k, %d) <[D, E], [D, E] -> [D, E]> : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    shd.update %m[%k] = %m2 : tensor<2x4x4xf32>, tensor<4x4xf32>
    shd.update %w[%k] = %w2 : tensor<2x4x4xf32>, tensor<4x4xf32>
)";

inline constexpr llvm::StringLiteral kHeadUpdate = R"(
  %gv_all = shd.part %gv[] : tensor<4x4xf32> -> tensor<4x4xf32>
  %mv1 = shd.elementwise mul(%mv, %beta) <[D, F], [] -> [D, F]> : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %mv2 = shd.elementwise add(%mv1, %gv_all) <[D, F], [D, F] -> [D, F]> : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %dv2 = shd.elementwise mul(%mv2, %lr) <[D, F], [] -> [D, F]> : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %v2 = shd.elementwise sub(%v, %dv2) <[D, F], [D, F] -> [D, F]> : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  shd.update %mv = %mv2 : tensor<4x4xf32>, tensor<4x4xf32>
  shd.update %v = %v2 : tensor<4x4xf32>, tensor<4x4xf32>
)";

} // namespace training

inline std::string textOf(const TrainingStep &step) {
  using namespace training;
  std::string text = kTensors.str();
  auto add = [&](llvm::StringRef part) { text += part; };
  if (step.hasHead)
    add(kHeadTensors);
  bool sums = step.microbatches > 0;
  if (sums)
    text += "shd.repeat \"M\" = " + std::to_string(step.microbatches) +
            "() : () -> () {\n^bb0(%n: tensor<i32>):\n";
  add(kForward);
  add(step.hasHead ? kHead : kLoss);
  if (step.hasHead)
    add(sums ? kHeadSum : kHeadGradient);
  add(kBackward);
  add(sums ? kSum : kGradient);
  if (step.isFused)
    add(kUpdate);
  add(kBackwardEnd);
  if (sums)
    add("shd.yield\n}\n");
  if (!step.isFused) {
    add(kUpdateBegin);
    add(kUpdate);
    add("shd.yield\n}\n");
  }
  if (step.hasHead)
    add(kHeadUpdate);
  add("}\n");
  return text;
}

} // namespace shardc::test

#endif // SHARDC_TEST_UNIT_OPTIMIZER_TRAININGSTEPS_H
