// RUN: shardc %s | FileCheck %s
// RUN: shardc %s --emit-json | FileCheck %s --check-prefix=JSON
// RUN: shardc %s --emit-spmd | FileCheck %s --check-prefix=SPMD
// RUN: shardc %s --emit-jax | FileCheck %s --check-prefix=JAX

// A training step with four microbatches as ZeRO-1: weights are whole, moments
// and master copies are split, gradients stay partial sums until the last
// microbatch has run. One reduce_scatter and one all_gather of each of the two
// layers: 3 us * log2(8) = 9 us, more than 4194304 B * 7/8 / 450e9 B/s = 8.2 us.
// CHECK:      gradient w_grad f32 [L, D, E]{+X} 2 x 1024 x 1024 8.39 MB 8.39 MB
// CHECK:      moment w_m f32 [L, D@X, E] 2 x 1024 x 1024 8.39 MB 1.05 MB
// CHECK:      saved h bf16 [L, B@X, D] 2 x 4096 x 1024 16.8 MB 2.10 MB
// CHECK:      repeat M x 4
// CHECK-NOT:  {{all_|reduce_}}
// CHECK:      repeat L x 2 {{.*}} 40.2 us
// CHECK:      w_grad reduce_scatter X D, {+X} -> D@X 2 8.39 MB 18.0 us
// CHECK:      w_2 all_gather X D@X -> D 2 4.19 MB 18.0 us

// While u is made, in the memory in which it is saved: the carried h and the
// next one are 1048576 B each.
// CHECK:      optimizer 3.15 MB
// CHECK-NEXT: saved 4.19 MB
// JSON:      "peak": 24117248,
// JSON:      "weights": 4194304,
// JSON-NEXT: "gradients": 8388608,
// JSON-NEXT: "optimizer": 3145728,
// JSON-NEXT: "saved": 4194304,
// JSON-NEXT: "states": 0,
// JSON-NEXT: "inputs": 2097152,
// JSON-NEXT: "activations": 2097152,
// JSON-NEXT: "buffers": 0,
// JSON:      "tensors": [
// JSON:      "kind": "saved",
// JSON-NEXT: "of": "u",
// JSON:      "kind": "gradient",
// JSON-NEXT: "of": "w",

// SPMD:      spmd.parameter gradient "w_grad" of "w" {{.*}} : tensor<2x1024x1024xf32>
// SPMD:      spmd.parameter moment "w_m" of "w" {{.*}} : tensor<2x128x1024xf32>
// SPMD:      spmd.update %w_grad[%{{.*}}] = %sum : tensor<2x1024x1024xf32>, tensor<1024x1024xf32>

// Buffers are carried through the loops; what the step ends with are the weight
// and what the optimizer keeps.
// JAX:       STATES = ["w_m", "w_v", "w_master", "w"]
// JAX:       def device_program(x, t, w, w_m, w_master, w_v):
// JAX:         w_grad = jnp.zeros((size["L"], size["D"], size["E"]), f32)
// JAX-NEXT:    h = jnp.zeros((size["L"], part("B", "X"), size["D"]), bf16)
// JAX:           (h_2, u_2, w_grad_2) = carried
// JAX:             h_4 = h_3.at[L].set(x_2)
// JAX:             sum_2 = w_grad_3[L_2] + dw
// JAX-NEXT:        w_grad_4 = w_grad_3.at[L_2].set(sum_2)
// JAX:         (h_7, u_7, w_grad_6), () = lax.scan(repeat_M, (h, u, w_grad), (), length=size["M"])
// JAX:           w_grad_sum = lax.psum_scatter(w_grad_6, "X"
shd.program "zero1" mesh <[X = 8]> hardware <"h100", [8]> {
  %x = shd.declare input "x" ["B", "D"] {shd.result_pin = #shd.sharding<[{X}, {}]>} : tensor<4096x1024xbf16>
  %t = shd.declare input "t" ["B", "D"] {shd.result_pin = #shd.sharding<[{X}, {}]>} : tensor<4096x1024xbf16>
  %w = shd.declare weight "w" ["L", "D", "E"] stacked 1 {shd.result_pin = #shd.sharding<[{}, {}, {}]>} : tensor<2x1024x1024xbf16>
  %g = shd.declare gradient "w_grad" ["L", "D", "E"] stacked 1 of "w" {shd.result_pin = #shd.sharding<[{}, {}, {}], partial = {X}>} : tensor<2x1024x1024xf32>
  %m = shd.declare moment "w_m" ["L", "D", "E"] stacked 1 of "w" {shd.result_pin = #shd.sharding<[{}, {X}, {}]>} : tensor<2x1024x1024xf32>
  %v = shd.declare moment "w_v" ["L", "D", "E"] stacked 1 of "w" {shd.result_pin = #shd.sharding<[{}, {X}, {}]>} : tensor<2x1024x1024xf32>
  %p = shd.declare master "w_master" ["L", "D", "E"] stacked 1 of "w" {shd.result_pin = #shd.sharding<[{}, {X}, {}]>} : tensor<2x1024x1024xf32>
  %xs = shd.declare saved "h" ["L", "B", "D"] stacked 1 {shd.result_pin = #shd.sharding<[{}, {X}, {}]>} : tensor<2x4096x1024xbf16>
  %us = shd.declare saved "u" ["L", "B", "D"] stacked 1 {shd.result_pin = #shd.sharding<[{}, {X}, {}]>} : tensor<2x4096x1024xbf16>
  %b1 = shd.constant dense<0.9> : tensor<f32>
  %a1 = shd.constant dense<0.1> : tensor<f32>
  %b2 = shd.constant dense<0.99> : tensor<f32>
  %a2 = shd.constant dense<0.01> : tensor<f32>
  %eps = shd.constant dense<1.0e-3> : tensor<f32>
  %lr = shd.constant dense<1.0e-2> : tensor<f32>
  %zero = shd.constant dense<0.0> : tensor<bf16>
  shd.repeat "M" = 4() : () -> () {
  ^bb0(%n: tensor<i32>):
    %y = shd.repeat "L" = 2(%x) : (tensor<4096x1024xbf16>) -> tensor<4096x1024xbf16> {
    ^bb0(%i: tensor<i32>, %h: tensor<4096x1024xbf16>):
      shd.update %xs[%i] = %h : tensor<2x4096x1024xbf16>, tensor<4096x1024xbf16>
      %w_i = shd.part %w[%i] : tensor<2x1024x1024xbf16> -> tensor<1024x1024xbf16>
      %u = shd.einsum(%h, %w_i) <[B, D], [D, E] -> [B, E]> {shd.name = "u"} : (tensor<4096x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<4096x1024xbf16>
      shd.update %us[%i] = %u : tensor<2x4096x1024xbf16>, tensor<4096x1024xbf16>
      %r = shd.elementwise relu(%u) <[B, E] -> [B, E]> {shd.name = "h"} : (tensor<4096x1024xbf16>) -> tensor<4096x1024xbf16>
      shd.yield %r : tensor<4096x1024xbf16>
    }
    %e = shd.elementwise sub(%y, %t) <[B, D], [B, D] -> [B, D]> {shd.name = "e"} : (tensor<4096x1024xbf16>, tensor<4096x1024xbf16>) -> tensor<4096x1024xbf16>
    %dx = shd.repeat "L" = 2 reverse(%e) : (tensor<4096x1024xbf16>) -> tensor<4096x1024xbf16> {
    ^bb0(%j: tensor<i32>, %dy: tensor<4096x1024xbf16>):
      %u_j = shd.part %us[%j] : tensor<2x4096x1024xbf16> -> tensor<4096x1024xbf16>
      %h_j = shd.part %xs[%j] : tensor<2x4096x1024xbf16> -> tensor<4096x1024xbf16>
      %w_j = shd.part %w[%j] : tensor<2x1024x1024xbf16> -> tensor<1024x1024xbf16>
      %old = shd.part %g[%j] : tensor<2x1024x1024xf32> -> tensor<1024x1024xf32>
      %on = shd.elementwise gt(%u_j, %zero) <[B, E], [] -> [B, E]> : (tensor<4096x1024xbf16>, tensor<bf16>) -> tensor<4096x1024xi1>
      %du = shd.elementwise where(%on, %dy, %zero) <[B, E], [B, E], [] -> [B, E]> {shd.name = "du"} : (tensor<4096x1024xi1>, tensor<4096x1024xbf16>, tensor<bf16>) -> tensor<4096x1024xbf16>
      %dw = shd.einsum(%h_j, %du) <[B, D], [B, E] -> [D, E]> {shd.name = "dw"} : (tensor<4096x1024xbf16>, tensor<4096x1024xbf16>) -> tensor<1024x1024xf32>
      %sum = shd.elementwise add(%old, %dw) <[D, E], [D, E] -> [D, E]> {shd.name = "sum"} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
      shd.update %g[%j] = %sum : tensor<2x1024x1024xf32>, tensor<1024x1024xf32>
      %dh = shd.einsum(%du, %w_j) <[B, E], [D, E] -> [B, D]> {shd.name = "dh"} : (tensor<4096x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<4096x1024xbf16>
      shd.yield %dh : tensor<4096x1024xbf16>
    }
    shd.yield
  }
  shd.repeat "L" = 2() : () -> () {
  ^bb0(%k: tensor<i32>):
    %g_k = shd.part %g[%k] : tensor<2x1024x1024xf32> -> tensor<1024x1024xf32>
    %m_k = shd.part %m[%k] : tensor<2x1024x1024xf32> -> tensor<1024x1024xf32>
    %v_k = shd.part %v[%k] : tensor<2x1024x1024xf32> -> tensor<1024x1024xf32>
    %p_k = shd.part %p[%k] : tensor<2x1024x1024xf32> -> tensor<1024x1024xf32>
    %m_a = shd.elementwise mul(%m_k, %b1) <[D, E], [] -> [D, E]> {shd.temporary} : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024x1024xf32>
    %m_b = shd.elementwise mul(%g_k, %a1) <[D, E], [] -> [D, E]> {shd.temporary} : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024x1024xf32>
    %m_2 = shd.elementwise add(%m_a, %m_b) <[D, E], [D, E] -> [D, E]> {shd.name = "m_2"} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    %v_a = shd.elementwise mul(%v_k, %b2) <[D, E], [] -> [D, E]> {shd.temporary} : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024x1024xf32>
    %g_q = shd.elementwise square(%g_k) <[D, E] -> [D, E]> {shd.temporary} : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    %v_b = shd.elementwise mul(%g_q, %a2) <[D, E], [] -> [D, E]> {shd.temporary} : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024x1024xf32>
    %v_2 = shd.elementwise add(%v_a, %v_b) <[D, E], [D, E] -> [D, E]> {shd.name = "v_2"} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    %v_r = shd.elementwise sqrt(%v_2) <[D, E] -> [D, E]> {shd.temporary} : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    %v_e = shd.elementwise add(%v_r, %eps) <[D, E], [] -> [D, E]> {shd.temporary} : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024x1024xf32>
    %q = shd.elementwise div(%m_2, %v_e) <[D, E], [D, E] -> [D, E]> {shd.temporary} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    %q_l = shd.elementwise mul(%q, %lr) <[D, E], [] -> [D, E]> {shd.temporary} : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024x1024xf32>
    %p_2 = shd.elementwise sub(%p_k, %q_l) <[D, E], [D, E] -> [D, E]> {shd.name = "p_2"} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    %w_2 = shd.elementwise cast(%p_2) <[D, E] -> [D, E]> {shd.name = "w_2"} : (tensor<1024x1024xf32>) -> tensor<1024x1024xbf16>
    shd.update %m[%k] = %m_2 : tensor<2x1024x1024xf32>, tensor<1024x1024xf32>
    shd.update %v[%k] = %v_2 : tensor<2x1024x1024xf32>, tensor<1024x1024xf32>
    shd.update %p[%k] = %p_2 : tensor<2x1024x1024xf32>, tensor<1024x1024xf32>
    shd.update %w[%k] = %w_2 : tensor<2x1024x1024xbf16>, tensor<1024x1024xbf16>
    shd.yield
  }
}
