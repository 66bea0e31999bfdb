// RUN: shardc-opt %s --pass-pipeline='builtin.module(shd.program(shd-differentiate,shd-microbatch))' -split-input-file -verify-diagnostics | FileCheck %s

// The batch splits with the microbatch minor; each part adds its gradient to
// the buffer's and a part of the mean to the loss.
// CHECK-LABEL: shd.program "mean"
shd.program "mean" training <loss = "loss", gradients = f32, lr = 1.0e-03 : f64, beta1 = 9.0e-01 : f64, beta2 = 9.99e-01 : f64, eps = 1.0e-08 : f64, decay = 1.0e-02 : f64, microbatches = 4, tokens = 1.0e+12 : f64> {
  // CHECK: %[[G:.*]] = shd.declare gradient "w.grad"
  // CHECK: %[[S:.*]] = shd.split(%{{.*}}) "B.all" into ["B", "microbatch"] {{.*}} -> tensor<16x4x32xbf16>
  // CHECK: shd.repeat "microbatch" = 4(
  // CHECK: shd.gather(%[[S]], %{{.*}}) {{.*}} at [1] {{.*}} -> tensor<16x32xbf16>
  // CHECK: shd.einsum{{.*}} -> tensor<16x128xbf16>
  // CHECK: %[[OLD:.*]] = shd.part %[[G]][]
  // CHECK: %[[SUM:.*]] = shd.elementwise add(%[[OLD]], %
  // CHECK: shd.update %[[G]] = %[[SUM]]
  // The loss adds up in f32 and is rounded once.
  // CHECK: %[[PART:.*]] = shd.elementwise cast(%{{.*}}) <[] -> []> {{.*}} : (tensor<bf16>) -> tensor<f32>
  // CHECK: %[[M:.*]] = shd.constant dense<2.500000e-01> : tensor<f32>
  // CHECK: %[[SHARE:.*]] = shd.elementwise mul(%[[PART]], %[[M]])
  // CHECK: %[[LOSS:.*]] = shd.elementwise add(%{{.*}}, %[[SHARE]])
  // CHECK: shd.yield %[[LOSS]] : tensor<f32>
  // CHECK: %[[TOTAL:.*]] = shd.elementwise cast(%{{.*}}) <[] -> []> {{.*}} : (tensor<f32>) -> tensor<bf16>
  // CHECK: shd.output "loss" %[[TOTAL]]
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  %w = shd.declare weight "w" ["D", "F"] : tensor<32x128xbf16>
  %h = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> {shd.name = "h"} : (tensor<64x32xbf16>, tensor<32x128xbf16>) -> tensor<64x128xbf16>
  %loss = shd.reduce mean(%h) <[B, F] -> []> {shd.name = "loss"} : (tensor<64x128xbf16>) -> tensor<bf16>
  shd.output "loss" %loss [] : tensor<bf16>
}

// -----

shd.program "does_not_divide" training <loss = "loss", gradients = f32, lr = 1.0e-03 : f64, beta1 = 9.0e-01 : f64, beta2 = 9.99e-01 : f64, eps = 1.0e-08 : f64, decay = 1.0e-02 : f64, microbatches = 5, tokens = 1.0e+12 : f64> {
  // expected-error @+1 {{5 microbatches do not divide B = 64}}
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  %w = shd.declare weight "w" ["D", "F"] : tensor<32x128xbf16>
  %h = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> {shd.name = "h"} : (tensor<64x32xbf16>, tensor<32x128xbf16>) -> tensor<64x128xbf16>
  %loss = shd.reduce mean(%h) <[B, F] -> []> {shd.name = "loss"} : (tensor<64x128xbf16>) -> tensor<bf16>
  shd.output "loss" %loss [] : tensor<bf16>
}

// -----

shd.program "not_linear" training <loss = "loss", gradients = f32, lr = 1.0e-03 : f64, beta1 = 9.0e-01 : f64, beta2 = 9.99e-01 : f64, eps = 1.0e-08 : f64, decay = 1.0e-02 : f64, microbatches = 4, tokens = 1.0e+12 : f64> {
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  %w = shd.declare weight "w" ["D", "F"] : tensor<32x128xbf16>
  %h = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> {shd.name = "h"} : (tensor<64x32xbf16>, tensor<32x128xbf16>) -> tensor<64x128xbf16>
  %s = shd.reduce mean(%h) <[B, F] -> []> {shd.name = "s"} : (tensor<64x128xbf16>) -> tensor<bf16>
  // expected-error @+1 {{'loss' is not linear in a sum over the batch, which microbatches need; use microbatches = 1}}
  %loss = shd.elementwise square(%s) <[] -> []> {shd.name = "loss"} : (tensor<bf16>) -> tensor<bf16>
  shd.output "loss" %loss [] : tensor<bf16>
}

// -----

// In-batch negatives: every example is compared with every other.
shd.program "two_dimensions" training <loss = "loss", gradients = f32, lr = 1.0e-03 : f64, beta1 = 9.0e-01 : f64, beta2 = 9.99e-01 : f64, eps = 1.0e-08 : f64, decay = 1.0e-02 : f64, microbatches = 4, tokens = 1.0e+12 : f64> {
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  %w = shd.declare weight "w" ["D", "F"] : tensor<32x128xbf16>
  %h = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> {shd.name = "h"} : (tensor<64x32xbf16>, tensor<32x128xbf16>) -> tensor<64x128xbf16>
  // expected-error @+1 {{'s' has the batch in two dimensions, so that its parts depend on each other; use microbatches = 1}}
  %s = shd.einsum(%h, %h) <[B, F], [C, F] -> [B, C]> {shd.name = "s"} : (tensor<64x128xbf16>, tensor<64x128xbf16>) -> tensor<64x64xbf16>
  %loss = shd.reduce mean(%s) <[B, C] -> []> {shd.name = "loss"} : (tensor<64x64xbf16>) -> tensor<bf16>
  shd.output "loss" %loss [] : tensor<bf16>
}

// -----

shd.program "whole_batch" training <loss = "loss", gradients = f32, lr = 1.0e-03 : f64, beta1 = 9.0e-01 : f64, beta2 = 9.99e-01 : f64, eps = 1.0e-08 : f64, decay = 1.0e-02 : f64, microbatches = 4, tokens = 1.0e+12 : f64> {
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  %w = shd.declare weight "w" ["D", "F"] : tensor<32x128xbf16>
  %h = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> {shd.name = "h"} : (tensor<64x32xbf16>, tensor<32x128xbf16>) -> tensor<64x128xbf16>
  // expected-error @+1 {{'s' needs all of 'B' at once, which is the batch; use microbatches = 1}}
  %s = shd.normalize softmax(%h) over ["B"] <[B, F] -> [B, F]> {shd.name = "s"} : (tensor<64x128xbf16>) -> tensor<64x128xbf16>
  %loss = shd.reduce mean(%s) <[B, F] -> []> {shd.name = "loss"} : (tensor<64x128xbf16>) -> tensor<bf16>
  shd.output "loss" %loss [] : tensor<bf16>
}

// -----

shd.program "no_batch" training <loss = "loss", gradients = f32, lr = 1.0e-03 : f64, beta1 = 9.0e-01 : f64, beta2 = 9.99e-01 : f64, eps = 1.0e-08 : f64, decay = 1.0e-02 : f64, microbatches = 4, tokens = 1.0e+12 : f64> {
  %m = shd.declare input "m" ["F"] : tensor<128xbf16>
  // expected-error @+1 {{microbatches need the index of the batch, which is not the first of every input; give the train block a `batch = NAME`}}
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  %w = shd.declare weight "w" ["D", "F"] : tensor<32x128xbf16>
  %h = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> {shd.name = "h"} : (tensor<64x32xbf16>, tensor<32x128xbf16>) -> tensor<64x128xbf16>
  %n = shd.elementwise mul(%h, %m) <[B, F], [F] -> [B, F]> {shd.name = "n"} : (tensor<64x128xbf16>, tensor<128xbf16>) -> tensor<64x128xbf16>
  %loss = shd.reduce mean(%n) <[B, F] -> []> {shd.name = "loss"} : (tensor<64x128xbf16>) -> tensor<bf16>
  shd.output "loss" %loss [] : tensor<bf16>
}
