// RUN: shardc-opt %s --pass-pipeline='builtin.module(shd.program(shd-differentiate,shd-add-optimizer))' -split-input-file -verify-diagnostics | FileCheck %s

// A master copy and two moments in f32; the weight is written, not read.
// CHECK-LABEL: shd.program "adamw"
shd.program "adamw" training <loss = "loss", moments = f32, master = f32, gradients = f32, lr = 1.0e-03 : f64, beta1 = 9.0e-01 : f64, beta2 = 9.99e-01 : f64, eps = 1.0e-08 : f64, decay = 1.0e-02 : f64, tokens = 1.0e+12 : f64> {
  // CHECK: shd.declare moment "optimizer.step" [] : tensor<f32>
  // CHECK: shd.declare weight "w"
  // CHECK-DAG: shd.declare moment "w.m" ["D", "F"] of "w" : tensor<32x128xf32>
  // CHECK-DAG: shd.declare moment "w.v" ["D", "F"] of "w" : tensor<32x128xf32>
  // CHECK-DAG: shd.declare master "w.master" ["D", "F"] of "w" : tensor<32x128xf32>
  // CHECK: shd.update %w.grad
  // The logarithm of beta1 for runs in doubles.
  // CHECK: shd.constant dense<-0.105360515> : tensor<f32> {shd.exact = -0.10536051565782628 : f64}
  // CHECK: shd.adamw
  // CHECK-DAG: shd.update %w.master =
  // CHECK-DAG: shd.update %w.m =
  // CHECK-DAG: shd.update %w.v =
  // CHECK-DAG: shd.update %w =
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  %w = shd.declare weight "w" ["D", "F"] : tensor<32x128xbf16>
  %h = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> {shd.name = "h"} : (tensor<64x32xbf16>, tensor<32x128xbf16>) -> tensor<64x128xbf16>
  %loss = shd.reduce sum(%h) <[B, F] -> []> {shd.name = "loss"} : (tensor<64x128xbf16>) -> tensor<bf16>
  shd.output "loss" %loss [] : tensor<bf16>
}

// -----

// Without momentum or a master copy, only the weight is written. The norm scales
// gradients before.
// CHECK-LABEL: shd.program "sgd"
shd.program "sgd" training <loss = "loss", optimizer = sgd, gradients = f32, lr = 1.0e-03 : f64, beta1 = 9.0e-01 : f64, beta2 = 9.99e-01 : f64, eps = 1.0e-08 : f64, decay = 1.0e-02 : f64, clip = 1.0 : f64, tokens = 1.0e+12 : f64> {
  // CHECK-NOT: shd.declare moment
  // CHECK-NOT: shd.declare master
  // CHECK: shd.elementwise square({{.*}}#shd<phase update>
  // CHECK: shd.elementwise sqrt(
  // CHECK: %[[S:.*]] = shd.elementwise div(
  // CHECK: shd.sgd(%{{.*}}, %w) scale(%[[S]]) <[D, F], [D, F], [] -> [D, F]> lr 1.000000e-03 beta
  // CHECK: shd.update %w =
  // CHECK-NEXT: }
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  %w = shd.declare weight "w" ["D", "F"] : tensor<32x128xbf16>
  %h = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> {shd.name = "h"} : (tensor<64x32xbf16>, tensor<32x128xbf16>) -> tensor<64x128xbf16>
  %loss = shd.reduce sum(%h) <[B, F] -> []> {shd.name = "loss"} : (tensor<64x128xbf16>) -> tensor<bf16>
  shd.output "loss" %loss [] : tensor<bf16>
}

// -----

// With momentum and a master copy one operation has three results.
// CHECK-LABEL: shd.program "momentum"
shd.program "momentum" training <loss = "loss", optimizer = sgd, moments = f32, master = f32, gradients = f32, lr = 1.0e-03 : f64, beta1 = 9.0e-01 : f64, beta2 = 9.99e-01 : f64, eps = 1.0e-08 : f64, decay = 0.0 : f64, tokens = 1.0e+12 : f64> {
  // CHECK-DAG: shd.declare moment "w.momentum" ["D", "F"] of "w" : tensor<32x128xf32>
  // CHECK-DAG: shd.declare master "w.master" ["D", "F"] of "w" : tensor<32x128xf32>
  // CHECK: shd.sgd(%{{.*}}, %w.master) momentum(%w.momentum) <[D, F], [D, F], [D, F] -> [D, F], [D, F], [D, F]> {{.*}} -> (tensor<32x128xf32>, tensor<32x128xf32>, tensor<32x128xbf16>)
  // CHECK-DAG: shd.update %w.master =
  // CHECK-DAG: shd.update %w.momentum =
  // CHECK-DAG: shd.update %w =
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  %w = shd.declare weight "w" ["D", "F"] : tensor<32x128xbf16>
  %h = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> {shd.name = "h"} : (tensor<64x32xbf16>, tensor<32x128xbf16>) -> tensor<64x128xbf16>
  %loss = shd.reduce sum(%h) <[B, F] -> []> {shd.name = "loss"} : (tensor<64x128xbf16>) -> tensor<bf16>
  shd.output "loss" %loss [] : tensor<bf16>
}

// -----

// The state is on the host; the number of the step is not.
// CHECK-LABEL: shd.program "offload"
shd.program "offload" training <loss = "loss", moments = f32, master = f32, gradients = f32, lr = 1.0e-03 : f64, beta1 = 9.0e-01 : f64, beta2 = 9.99e-01 : f64, eps = 1.0e-08 : f64, decay = 1.0e-02 : f64, tokens = 1.0e+12 : f64, offload = optimizer> {
  // CHECK: shd.declare moment "optimizer.step" [] : tensor<f32>
  // CHECK-DAG: shd.declare moment "w.m" ["D", "F"] of "w" {shd.host}
  // CHECK-DAG: shd.declare moment "w.v" ["D", "F"] of "w" {shd.host}
  // CHECK-DAG: shd.declare master "w.master" ["D", "F"] of "w" {shd.host}
  // CHECK-DAG: shd.declare gradient "w.grad" ["D", "F"] of "w" :
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  %w = shd.declare weight "w" ["D", "F"] : tensor<32x128xbf16>
  %h = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> {shd.name = "h"} : (tensor<64x32xbf16>, tensor<32x128xbf16>) -> tensor<64x128xbf16>
  %loss = shd.reduce sum(%h) <[B, F] -> []> {shd.name = "loss"} : (tensor<64x128xbf16>) -> tensor<bf16>
  shd.output "loss" %loss [] : tensor<bf16>
}

// -----

// No buffer holds the gradient: each iteration of the backward pass updates its
// part, in the type in which the gradient is sent.
// CHECK-LABEL: shd.program "fused"
shd.program "fused" training <loss = "loss", moments = f32, gradients = f32, reduce = bf16, lr = 1.0e-03 : f64, beta1 = 9.0e-01 : f64, beta2 = 9.99e-01 : f64, eps = 1.0e-08 : f64, decay = 1.0e-02 : f64, microbatches = 1, remat = full, tokens = 1.0e+12 : f64, fused = true> {
  // CHECK-NOT: declare gradient
  // CHECK: shd.repeat "L" = 4 reverse
  // CHECK: shd.elementwise cast({{.*}} -> tensor<32x32xbf16>
  // CHECK: shd.adamw(
  // CHECK: shd.update %w[%{{.*}}] =
  // CHECK: shd.yield
  // CHECK-NOT: shd.adamw
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  %w = shd.declare weight "w" ["L", "D", "E"] stacked 1 : tensor<4x32x32xbf16>
  %y = shd.repeat "L" = 4 (%x) : (tensor<64x32xbf16>) -> (tensor<64x32xbf16>) {
  ^bb0(%i: tensor<i32>, %x_in: tensor<64x32xbf16>):
    %p = shd.part %w[%i] : tensor<4x32x32xbf16> -> tensor<32x32xbf16>
    %h = shd.einsum(%x_in, %p) <[B, D], [D, E] -> [B, E]> {shd.name = "h"} : (tensor<64x32xbf16>, tensor<32x32xbf16>) -> tensor<64x32xbf16>
    shd.yield %h : tensor<64x32xbf16>
  }
  %loss = shd.reduce sum(%y) <[B, D] -> []> {shd.name = "loss"} : (tensor<64x32xbf16>) -> tensor<bf16>
  shd.output "loss" %loss [] : tensor<bf16>
}
