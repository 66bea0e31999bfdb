// RUN: shardc-opt %s --pass-pipeline='builtin.module(shd.program(shd-differentiate))' -split-input-file -verify-diagnostics | FileCheck %s

// The loss's own gradient is 1, the inverse of as many microbatches as there are.
// The gradient of a sum is broadcast; the weight's is a product with the input, in
// the type of gradients, and goes into a buffer.
// CHECK-LABEL: shd.program "linear"
shd.program "linear" training <loss = "loss", gradients = f32, lr = 1.0e-03 : f64, beta1 = 9.0e-01 : f64, beta2 = 9.99e-01 : f64, eps = 1.0e-08 : f64, decay = 1.0e-02 : f64, tokens = 1.0e+12 : f64> {
  // CHECK: %[[X:.*]] = shd.declare input "x"
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  // CHECK: shd.declare gradient "w.grad" ["D", "F"] of "w" : tensor<32x128xf32>
  %w = shd.declare weight "w" ["D", "F"] : tensor<32x128xbf16>
  %h = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> {shd.name = "h"} : (tensor<64x32xbf16>, tensor<32x128xbf16>) -> tensor<64x128xbf16>
  %loss = shd.reduce sum(%h) <[B, F] -> []> {shd.name = "loss"} : (tensor<64x128xbf16>) -> tensor<bf16>
  // CHECK: shd.output "loss"
  // CHECK-NEXT: %[[ONE:.*]] = shd.constant dense<1.0{{.*}}> : tensor<bf16>
  // CHECK-SAME: shd.inverse_of = array<i64>
  // CHECK-NEXT: %[[LOSS:.*]] = shd.elementwise copy(%[[ONE]]) <[] -> []> {{.*}}#shd<phase backward>
  // CHECK-NEXT: %[[H:.*]] = shd.elementwise copy(%[[LOSS]]) <[] -> [B, F]> {{.*}}#shd<phase backward>
  // CHECK-NEXT: %[[W:.*]] = shd.einsum(%[[H]], %[[X]]) <[B, F], [B, D] -> [D, F]> {{.*}} -> tensor<32x128xf32>
  // CHECK-NEXT: shd.update %{{.*}} = %[[W]] : tensor<32x128xf32>
  // CHECK-NEXT: }
  shd.output "loss" %loss [] : tensor<bf16>
}

// -----

// A repeat is differentiated by one in reverse. Its iterations find the carried
// value in a buffer and compute the cheap relu again.
// CHECK-LABEL: shd.program "layers"
shd.program "layers" training <loss = "loss", gradients = f32, lr = 1.0e-03 : f64, beta1 = 9.0e-01 : f64, beta2 = 9.99e-01 : f64, eps = 1.0e-08 : f64, decay = 1.0e-02 : f64, tokens = 1.0e+12 : f64> {
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  // CHECK: shd.declare gradient "w.grad" ["L", "E", "D"] stacked 1 of "w" : tensor<4x32x32xf32>
  %w = shd.declare weight "w" ["L", "E", "D"] stacked 1 : tensor<4x32x32xbf16>
  // CHECK: %[[HS:.*]] = shd.declare saved "h.saved" ["L", "B", "D"] stacked 1 : tensor<4x64x32xbf16>
  // CHECK: %[[XS:.*]] = shd.declare saved "{{.*}}.saved" ["L", "B", "{{[DE]}}"] stacked 1 : tensor<4x64x32xbf16>
  %y = shd.repeat "L" = 4(%x) : (tensor<64x32xbf16>) -> tensor<64x32xbf16> {
  ^bb0(%i: tensor<i32>, %c: tensor<64x32xbf16>):
    %p = shd.part %w[%i] : tensor<4x32x32xbf16> -> tensor<32x32xbf16>
    %h = shd.einsum(%c, %p) <[B, E], [E, D] -> [B, D]> {shd.name = "h"} : (tensor<64x32xbf16>, tensor<32x32xbf16>) -> tensor<64x32xbf16>
    %r = shd.elementwise relu(%h) <[B, D] -> [B, D]> {shd.name = "r"} : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
    // CHECK: shd.update %[[HS]]
    // CHECK: shd.update %[[XS]]
    // CHECK: shd.yield
    shd.yield %r : tensor<64x32xbf16>
  }
  %loss = shd.reduce sum(%y) <[B, D] -> []> {shd.name = "loss"} : (tensor<64x32xbf16>) -> tensor<bf16>
  // CHECK: shd.repeat "L" = 4 reverse(
  // CHECK: %[[H:.*]] = shd.part %[[HS]]
  // CHECK: shd.elementwise relu(%[[H]]) {{.*}}#shd<phase recompute>
  // CHECK: shd.update %{{.*}}[%{{.*}}] = %{{.*}} : tensor<4x32x32xf32>, tensor<32x32xf32>
  shd.output "loss" %loss [] : tensor<bf16>
}

// -----

// With every(2) six iterations are three segments. The buffer of the carried value
// has parts for the three beginnings and for one more iteration. Iterations read
// nothing but what they begin with, so the second one of a segment does not run
// again: the first one leaves what the second begins with.
// CHECK-LABEL: shd.program "segments"
shd.program "segments" training <loss = "loss", gradients = f32, lr = 1.0e-03 : f64, beta1 = 9.0e-01 : f64, beta2 = 9.99e-01 : f64, eps = 1.0e-08 : f64, decay = 1.0e-02 : f64, tokens = 1.0e+12 : f64, remat = every, every = 2> {
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  // CHECK: shd.declare gradient "w.grad" ["L", "E", "D"] stacked 1 of "w" : tensor<6x32x32xf32>
  %w = shd.declare weight "w" ["L", "E", "D"] stacked 1 : tensor<6x32x32xbf16>
  // CHECK: %[[XS:.*]] = shd.declare saved "x.saved" ["L.segment", "B", "{{[DE]}}"] stacked 1 : tensor<4x64x32xbf16>
  // CHECK: shd.repeat "L.segment" = 3(
  // CHECK-NEXT: ^bb0(%[[S:.*]]: tensor<i32>, %[[B:.*]]: tensor
  // CHECK-NEXT: shd.repeat "L" = 2(%[[B]]) {shd.segments = array<i64: 6, 2>}
  // CHECK: shd.update %[[XS]][%[[S]]] = %[[B]]
  %y = shd.repeat "L" = 6(%x) : (tensor<64x32xbf16>) -> tensor<64x32xbf16> {
  ^bb0(%i: tensor<i32>, %c: tensor<64x32xbf16>):
    %p = shd.part %w[%i] : tensor<6x32x32xbf16> -> tensor<32x32xbf16>
    %h = shd.einsum(%c, %p) <[B, E], [E, D] -> [B, D]> {shd.name = "h"} : (tensor<64x32xbf16>, tensor<32x32xbf16>) -> tensor<64x32xbf16>
    shd.yield %h : tensor<64x32xbf16>
  }
  %loss = shd.reduce sum(%y) <[B, D] -> []> {shd.name = "loss"} : (tensor<64x32xbf16>) -> tensor<bf16>
  // CHECK: shd.repeat "L.segment" = 3 reverse(
  // CHECK-NEXT: ^bb0(%[[R:.*]]: tensor<i32>
  // CHECK-NEXT: %[[FROM:.*]] = shd.part %[[XS]][%[[R]]]
  // CHECK-NEXT: shd.repeat "L" = 1(%[[FROM]]) {shd.segments = array<i64: 6, 2>}
  // CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<i32>
  // CHECK: %[[H:.*]] = shd.einsum{{.*}}#shd<phase recompute>
  // CHECK-NEXT: shd.update %[[XS]][%[[A]]] = %[[H]] {shd.ahead}
  // CHECK: shd.repeat "L" = 2 reverse(%{{.*}}) {shd.segments = array<i64: 6, 2>}
  // CHECK-NEXT: ^bb0(%[[J:.*]]: tensor<i32>
  // CHECK: shd.part %[[XS]][%[[J]]]
  // CHECK: shd.update %{{.*}}[%[[J]]] = %{{.*}} : tensor<6x32x32xf32>, tensor<32x32xf32>
  shd.output "loss" %loss [] : tensor<bf16>
}

// -----

// Iterations read r, too, so both of a segment run again and keep it. The last of
// five iterations is a segment by itself.
// CHECK-LABEL: shd.program "segments-keep"
shd.program "segments-keep" training <loss = "loss", gradients = f32, lr = 1.0e-03 : f64, beta1 = 9.0e-01 : f64, beta2 = 9.99e-01 : f64, eps = 1.0e-08 : f64, decay = 1.0e-02 : f64, tokens = 1.0e+12 : f64, remat = every, every = 2> {
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  %w = shd.declare weight "w" ["L", "E", "D"] stacked 1 : tensor<5x32x32xbf16>
  // CHECK: shd.declare saved "x.saved" {{.*}} : tensor<4x64x32xbf16>
  // CHECK: shd.declare saved "r.saved" ["L.segment", "B", "D"] stacked 1 : tensor<2x64x32xbf16>
  %y = shd.repeat "L" = 5(%x) : (tensor<64x32xbf16>) -> tensor<64x32xbf16> {
  ^bb0(%i: tensor<i32>, %c: tensor<64x32xbf16>):
    %p = shd.part %w[%i] : tensor<5x32x32xbf16> -> tensor<32x32xbf16>
    %h = shd.einsum(%c, %p) <[B, E], [E, D] -> [B, D]> {shd.name = "h"} : (tensor<64x32xbf16>, tensor<32x32xbf16>) -> tensor<64x32xbf16>
    %r = shd.elementwise tanh(%h) <[B, D] -> [B, D]> {shd.name = "r"} : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
    shd.yield %r : tensor<64x32xbf16>
  }
  %loss = shd.reduce sum(%y) <[B, D] -> []> {shd.name = "loss"} : (tensor<64x32xbf16>) -> tensor<bf16>
  // CHECK: shd.repeat "L.segment" = 3 reverse(
  // CHECK: shd.repeat "L" = 2({{.*}}{shd.segments = array<i64: 5, 2>}
  // CHECK-NOT: shd.ahead
  // CHECK: shd.repeat "L" = 2 reverse(
  shd.output "loss" %loss [] : tensor<bf16>
}

// -----

// A frozen weight has no gradient.
// CHECK-LABEL: shd.program "frozen"
// CHECK-NOT: "a.grad" ["
// CHECK: shd.declare gradient "b.grad"
shd.program "frozen" training <loss = "loss", gradients = f32, lr = 1.0e-03 : f64, beta1 = 9.0e-01 : f64, beta2 = 9.99e-01 : f64, eps = 1.0e-08 : f64, decay = 1.0e-02 : f64, tokens = 1.0e+12 : f64, frozen = ["a*"]> {
  %a = shd.declare weight "a" ["B"] : tensor<64xbf16>
  %b = shd.declare weight "b" ["B"] : tensor<64xbf16>
  %c = shd.elementwise mul(%a, %b) <[B], [B] -> [B]> {shd.name = "c"} : (tensor<64xbf16>, tensor<64xbf16>) -> tensor<64xbf16>
  %loss = shd.reduce sum(%c) <[B] -> []> {shd.name = "loss"} : (tensor<64xbf16>) -> tensor<bf16>
  shd.output "loss" %loss [] : tensor<bf16>
}

// -----

shd.program "not_a_scalar" training <loss = "loss", gradients = f32, lr = 1.0e-03 : f64, beta1 = 9.0e-01 : f64, beta2 = 9.99e-01 : f64, eps = 1.0e-08 : f64, decay = 1.0e-02 : f64, tokens = 1.0e+12 : f64> {
  %w = shd.declare weight "w" ["B"] : tensor<64xbf16>
  // expected-error @+1 {{the loss 'loss' must be a scalar of real numbers, but is bf16 with 1 dimensions}}
  shd.output "loss" %w ["B"] : tensor<64xbf16>
}

// -----

// expected-error @+1 {{no output is called 'cost', the loss}}
shd.program "no_loss" training <loss = "cost", gradients = f32, lr = 1.0e-03 : f64, beta1 = 9.0e-01 : f64, beta2 = 9.99e-01 : f64, eps = 1.0e-08 : f64, decay = 1.0e-02 : f64, tokens = 1.0e+12 : f64> {
  %w = shd.declare weight "w" ["B"] : tensor<64xbf16>
  shd.output "w" %w ["B"] : tensor<64xbf16>
}

// -----

shd.program "no_weight" training <loss = "loss", gradients = f32, lr = 1.0e-03 : f64, beta1 = 9.0e-01 : f64, beta2 = 9.99e-01 : f64, eps = 1.0e-08 : f64, decay = 1.0e-02 : f64, tokens = 1.0e+12 : f64> {
  %x = shd.declare input "x" ["B"] : tensor<64xbf16>
  %w = shd.declare weight "w" ["B"] : tensor<64xbf16>
  %loss = shd.reduce sum(%x) <[B] -> []> {shd.name = "loss"} : (tensor<64xbf16>) -> tensor<bf16>
  // expected-error @+1 {{the loss 'loss' depends on no weight that is trained}}
  shd.output "loss" %loss [] : tensor<bf16>
}

// -----

shd.program "updates_a_state" training <loss = "loss", gradients = f32, lr = 1.0e-03 : f64, beta1 = 9.0e-01 : f64, beta2 = 9.99e-01 : f64, eps = 1.0e-08 : f64, decay = 1.0e-02 : f64, tokens = 1.0e+12 : f64> {
  %s = shd.declare state "s" ["B"] : tensor<64xbf16>
  %w = shd.declare weight "w" ["B"] : tensor<64xbf16>
  %a = shd.elementwise add(%s, %w) <[B], [B] -> [B]> {shd.name = "s"} : (tensor<64xbf16>, tensor<64xbf16>) -> tensor<64xbf16>
  // expected-error @+1 {{the state 's' is updated, which a training step cannot}}
  shd.update %s = %a : tensor<64xbf16>, tensor<64xbf16>
  %loss = shd.reduce sum(%a) <[B] -> []> {shd.name = "loss"} : (tensor<64xbf16>) -> tensor<bf16>
  shd.output "loss" %loss [] : tensor<bf16>
}

// -----

// The gradient of attention has no derivative of its own.
shd.program "no_derivative" training <loss = "loss", gradients = f32, lr = 1.0e-03 : f64, beta1 = 9.0e-01 : f64, beta2 = 9.99e-01 : f64, eps = 1.0e-08 : f64, decay = 1.0e-02 : f64, tokens = 1.0e+12 : f64> {
  %q = shd.declare weight "q" ["B", "T", "H"] : tensor<2x8x4xbf16>
  %k = shd.declare weight "k" ["B", "S", "H"] : tensor<2x8x4xbf16>
  %v = shd.declare weight "v" ["B", "S", "H"] : tensor<2x8x4xbf16>
  %l = shd.declare input "l" ["B", "T"] : tensor<2x8xf32>
  // expected-error @+1 {{has no derivative}}
  %g, %dk, %dv = shd.attention_grad(%q, %k, %v, %q, %q, %l) over "H", "S" query "T" <[B, T, H], [B, S, H], [B, S, H], [B, T, H], [B, T, H], [B, T] -> [B, T, H], [B, S, H], [B, S, H]> : (tensor<2x8x4xbf16>, tensor<2x8x4xbf16>, tensor<2x8x4xbf16>, tensor<2x8x4xbf16>, tensor<2x8x4xbf16>, tensor<2x8xf32>) -> (tensor<2x8x4xbf16>, tensor<2x8x4xbf16>, tensor<2x8x4xbf16>)
  %loss = shd.reduce sum(%g) <[B, T, H] -> []> {shd.name = "loss"} : (tensor<2x8x4xbf16>) -> tensor<bf16>
  shd.output "loss" %loss [] : tensor<bf16>
}

// -----

// A weight that iterations read by their numbers is stacked, and so is its
// gradient; one that they read otherwise too is not.
// CHECK-LABEL: shd.program "by_number"
shd.program "by_number" training <loss = "loss", gradients = f32, lr = 1.0e-03 : f64, beta1 = 9.0e-01 : f64, beta2 = 9.99e-01 : f64, eps = 1.0e-08 : f64, decay = 1.0e-02 : f64, remat = full, tokens = 1.0e+12 : f64> {
  // CHECK: shd.declare weight "w" ["L", "E", "D"] stacked 1
  // CHECK: shd.declare gradient "w.grad" ["L", "E", "D"] stacked 1 of "w" : tensor<4x32x32xf32>
  // CHECK: shd.declare gradient "v.grad" ["L", "D"] of "v" : tensor<4x32xf32>
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  %w = shd.declare weight "w" ["L", "E", "D"] : tensor<4x32x32xbf16>
  %v = shd.declare weight "v" ["L", "D"] : tensor<4x32xbf16>
  %y = shd.repeat "L" = 4(%x) : (tensor<64x32xbf16>) -> tensor<64x32xbf16> {
  ^bb0(%i: tensor<i32>, %c: tensor<64x32xbf16>):
    // CHECK: shd.part %{{.*}}[%{{.*}}] : tensor<4x32x32xbf16> -> tensor<32x32xbf16>
    // CHECK: shd.gather(
    %p = shd.gather(%w, %i) <[L, E, D], [] -> [E, D]> at [0] {shd.name = "h", shd.temporary} : (tensor<4x32x32xbf16>, tensor<i32>) -> tensor<32x32xbf16>
    %h = shd.einsum(%c, %p) <[B, E], [E, D] -> [B, D]> {shd.name = "h"} : (tensor<64x32xbf16>, tensor<32x32xbf16>) -> tensor<64x32xbf16>
    %q = shd.gather(%v, %i) <[L, D], [] -> [D]> at [0] {shd.name = "r", shd.temporary} : (tensor<4x32xbf16>, tensor<i32>) -> tensor<32xbf16>
    %r = shd.elementwise mul(%h, %q) <[B, D], [D] -> [B, D]> {shd.name = "r"} : (tensor<64x32xbf16>, tensor<32xbf16>) -> tensor<64x32xbf16>
    shd.yield %r : tensor<64x32xbf16>
  }
  %u = shd.elementwise mul(%y, %v) <[B, D], [L, D] -> [L, B, D]> {shd.name = "u"} : (tensor<64x32xbf16>, tensor<4x32xbf16>) -> tensor<4x64x32xbf16>
  %loss = shd.reduce sum(%u) <[L, B, D] -> []> {shd.name = "loss"} : (tensor<4x64x32xbf16>) -> tensor<bf16>
  // CHECK: shd.repeat "L" = 4 reverse(
  // CHECK-DAG: shd.scatter_sum({{.*}} -> tensor<4x32xf32>
  // CHECK-DAG: shd.update %{{.*}}[%{{.*}}] = %{{.*}} : tensor<4x32x32xf32>, tensor<32x32xf32>
  shd.output "loss" %loss [] : tensor<bf16>
}

// -----

// Nothing is differentiated behind stop_gradient: b b c has a derivative by c
// only.
// CHECK-LABEL: shd.program "stop"
// CHECK-NOT: "b.grad" ["
// CHECK: shd.declare gradient "c.grad"
shd.program "stop" training <loss = "loss", gradients = f32, lr = 1.0e-03 : f64, beta1 = 9.0e-01 : f64, beta2 = 9.99e-01 : f64, eps = 1.0e-08 : f64, decay = 1.0e-02 : f64, tokens = 1.0e+12 : f64> {
  %b = shd.declare weight "b" ["B"] : tensor<64xbf16>
  %c = shd.declare weight "c" ["B"] : tensor<64xbf16>
  %s = shd.elementwise square(%b) <[B] -> [B]> {shd.name = "s", shd.temporary} : (tensor<64xbf16>) -> tensor<64xbf16>
  // CHECK: %[[T:.*]] = shd.elementwise stop_gradient(
  %t = shd.elementwise stop_gradient(%s) <[B] -> [B]> {shd.name = "s"} : (tensor<64xbf16>) -> tensor<64xbf16>
  %m = shd.elementwise mul(%t, %c) <[B], [B] -> [B]> {shd.name = "m"} : (tensor<64xbf16>, tensor<64xbf16>) -> tensor<64xbf16>
  %loss = shd.reduce sum(%m) <[B] -> []> {shd.name = "loss"} : (tensor<64xbf16>) -> tensor<bf16>
  // CHECK: %[[G:.*]] = shd.elementwise mul(%{{.*}}, %[[T]]) {{.*}}#shd<phase backward>
  shd.output "loss" %loss [] : tensor<bf16>
}

// -----

// Gradients of one value have its indices, whatever its readers call them, and
// products add up first.
// CHECK-LABEL: shd.program "names"
// CHECK: %[[P:.*]] = shd.einsum({{.*}}-> [T, D]> {shd.name = "x.grad"
// CHECK: shd.elementwise add({{.*}}) <[T, D], [T, D] -> [T, D]>
// CHECK-NOT: -> [S, D]>
// CHECK: shd.elementwise add({{.*}}) <[T, D], [T, D] -> [T, D]>
// CHECK-NEXT: shd.update
shd.program "names" training <loss = "loss", gradients = f32, lr = 1.0e-03 : f64, beta1 = 9.0e-01 : f64, beta2 = 9.99e-01 : f64, eps = 1.0e-08 : f64, decay = 1.0e-02 : f64, tokens = 1.0e+12 : f64, frozen = ["w"]> {
  %x = shd.declare weight "x" ["T", "D"] : tensor<64x32xbf16>
  %w = shd.declare weight "w" ["D", "F"] : tensor<32x128xbf16>
  %k = shd.einsum(%x, %w) <[S, D], [D, F] -> [S, F]> {shd.name = "k"} : (tensor<64x32xbf16>, tensor<32x128xbf16>) -> tensor<64x128xbf16>
  %q = shd.einsum(%x, %w) <[T, D], [D, F] -> [T, F]> {shd.name = "q"} : (tensor<64x32xbf16>, tensor<32x128xbf16>) -> tensor<64x128xbf16>
  %a = shd.reduce sum(%x) <[T, D] -> []> {shd.name = "a"} : (tensor<64x32xbf16>) -> tensor<bf16>
  %b = shd.reduce sum(%k) <[S, F] -> []> {shd.name = "b"} : (tensor<64x128xbf16>) -> tensor<bf16>
  %c = shd.reduce sum(%q) <[T, F] -> []> {shd.name = "c"} : (tensor<64x128xbf16>) -> tensor<bf16>
  %d = shd.elementwise add(%a, %b) <[], [] -> []> {shd.name = "d"} : (tensor<bf16>, tensor<bf16>) -> tensor<bf16>
  %loss = shd.elementwise add(%c, %d) <[], [] -> []> {shd.name = "loss"} : (tensor<bf16>, tensor<bf16>) -> tensor<bf16>
  shd.output "loss" %loss [] : tensor<bf16>
}
