// RUN: shardc-opt %s | shardc-opt | FileCheck %s
// RUN: shardc-opt %s --mlir-print-op-generic | shardc-opt | FileCheck %s

// Every operation, before planning: types carry no shardings.

// CHECK-LABEL: shd.program "empty"
// CHECK-SAME:  {
shd.program "empty" {
}

// CHECK-LABEL: shd.program "structure" mesh <[X = 4, Y = 4]>
// CHECK-SAME:  hardware <"tpu_v5e", [4, 4]> allow_padding
// CHECK-SAME:  attributes {shd.plan = {status = "optimal"}} {
shd.program "structure" mesh <[X = 4, Y = 4]> hardware <"tpu_v5e", [4, 4]> allow_padding attributes {shd.plan = {status = "optimal"}} {
  // CHECK-NEXT: %x = shd.declare input "x" ["B", "D"] : tensor<8x16xbf16>
  %x = shd.declare input "x" ["B", "D"] : tensor<8x16xbf16>
  // CHECK-NEXT: %c = shd.declare state "c" ["B"] {shd.result_pin = #shd.sharding<[{X}]>} : tensor<8xi8>
  %c = shd.declare state "c" ["B"] {shd.result_pin = #shd.sharding<[{X}]>} : tensor<8xi8>
  // CHECK-NEXT: shd.update %c = %c : tensor<8xi8>, tensor<8xi8>
  shd.update %c = %c : tensor<8xi8>, tensor<8xi8>
  // CHECK-NEXT: %g = shd.declare weight "g" ["L", "D"] stacked 1 : tensor<80x16xf32>
  %g = shd.declare weight "g" ["L", "D"] stacked 1 : tensor<80x16xf32>
  // CHECK-NEXT: %s = shd.declare state "s" ["L", "M", "D"] stacked 2 : tensor<80x2x16xf32>
  %state = shd.declare state "s" ["L", "M", "D"] stacked 2 : tensor<80x2x16xf32>
  // CHECK-NEXT: %[[ONE:.*]] = shd.constant dense<1.000000e+00> : tensor<bf16>
  %one = shd.constant dense<1.0> : tensor<bf16>
  // CHECK-NEXT: %x_0:2 = shd.repeat "L" = 80(%x, %[[ONE]]) : (tensor<8x16xbf16>, tensor<bf16>) -> (tensor<8x16xbf16>, tensor<bf16>) {
  %y:2 = shd.repeat "L" = 80(%x, %one) : (tensor<8x16xbf16>, tensor<bf16>) -> (tensor<8x16xbf16>, tensor<bf16>) {
  // CHECK-NEXT: ^bb0(%L: tensor<i32>, %x_1: tensor<8x16xbf16>, %[[IN:.*]]: tensor<bf16>):
  ^bb0(%i: tensor<i32>, %in: tensor<8x16xbf16>, %s: tensor<bf16>):
    // CHECK-NEXT: %g_2 = shd.part %g[%L] : tensor<80x16xf32> -> tensor<16xf32>
    %g_i = shd.part %g[%i] : tensor<80x16xf32> -> tensor<16xf32>
    // CHECK-NEXT: %s_3 = shd.part %s[%L] : tensor<80x2x16xf32> -> tensor<2x16xf32>
    %s_i = shd.part %state[%i] : tensor<80x2x16xf32> -> tensor<2x16xf32>
    // CHECK-NEXT: shd.repeat "M" = 2() : () -> () {
    shd.repeat "M" = 2() : () -> () {
    // CHECK-NEXT: ^bb0(%M: tensor<i32>):
    ^bb0(%j: tensor<i32>):
      // CHECK-NEXT: %s_4 = shd.part %s_3[%M] : tensor<2x16xf32> -> tensor<16xf32>
      %s_ij = shd.part %s_i[%j] : tensor<2x16xf32> -> tensor<16xf32>
      // CHECK-NEXT: shd.update %s[%L, %M] = %s_4 : tensor<80x2x16xf32>, tensor<16xf32>
      shd.update %state[%i, %j] = %s_ij : tensor<80x2x16xf32>, tensor<16xf32>
      shd.yield
    }
    // CHECK: shd.yield %x_1, %[[IN]] : tensor<8x16xbf16>, tensor<bf16>
    shd.yield %in, %s : tensor<8x16xbf16>, tensor<bf16>
  }
  // CHECK: shd.repeat "M" = 2 reverse() : () -> () {
  shd.repeat "M" = 2 reverse () : () -> () {
  // CHECK-NEXT: ^bb0(%M: tensor<i32>):
  ^bb0(%j: tensor<i32>):
    // CHECK-NEXT: shd.yield
    shd.yield
  }
  // CHECK: shd.output "y" %x_0#0 ["B", "D"] {shd.operand_pins = [#shd.sharding<[{?}, {}]>]} : tensor<8x16xbf16>
  shd.output "y" %y#0 ["B", "D"] {shd.operand_pins = [#shd.sharding<[{?}, {}]>]} : tensor<8x16xbf16>
}

// CHECK-LABEL: shd.program "buffers"
shd.program "buffers" mesh <[X = 2]> {
  %x = shd.declare input "x" ["B"] : tensor<8xf32>
  // CHECK: %g = shd.declare gradient "g" ["L", "B"] stacked 1 of "w" {shd.result_pin = #shd.sharding<[{}, {}], partial = {X}>} : tensor<2x8xf32>
  %g = shd.declare gradient "g" ["L", "B"] stacked 1 of "w" {shd.result_pin = #shd.sharding<[{}, {}], partial = {X}>} : tensor<2x8xf32>
  // CHECK-NEXT: %h = shd.declare saved "h" ["B"] : tensor<8xf32>
  %h = shd.declare saved "h" ["B"] : tensor<8xf32>
  // CHECK-NEXT: %m = shd.declare moment "m" ["B"] of "w" : tensor<8xf32>
  %m = shd.declare moment "m" ["B"] of "w" : tensor<8xf32>
  // CHECK-NEXT: %p = shd.declare master "p" ["B"] of "w" : tensor<8xf32>
  %p = shd.declare master "p" ["B"] of "w" : tensor<8xf32>
  shd.repeat "M" = 4() : () -> () {
  ^bb0(%n: tensor<i32>):
    // CHECK: shd.update %h = %x : tensor<8xf32>, tensor<8xf32>
    shd.update %h = %x : tensor<8xf32>, tensor<8xf32>
    shd.repeat "L" = 2() : () -> () {
    ^bb0(%i: tensor<i32>):
      // CHECK: %[[H:.*]] = shd.part %h[] : tensor<8xf32> -> tensor<8xf32>
      %h_i = shd.part %h[] : tensor<8xf32> -> tensor<8xf32>
      // CHECK-NEXT: shd.update %g[%L] = %[[H]] : tensor<2x8xf32>, tensor<8xf32>
      shd.update %g[%i] = %h_i : tensor<2x8xf32>, tensor<8xf32>
      shd.yield
    }
    shd.yield
  }
}

// CHECK-LABEL: shd.program "products"
shd.program "products" {
  %a = shd.declare input "a" ["B", "D"] : tensor<8x16xbf16>
  %b = shd.declare weight "b" ["D", "F"] : tensor<16x32xbf16>
  %p = shd.declare input "p" ["B", "F"] : tensor<8x32xi1>
  // CHECK: %h = shd.einsum(%a, %b) <[B, D], [D, F] -> [B, F]> {shd.group = #shd.group<0>, shd.name = "h"} : (tensor<8x16xbf16>, tensor<16x32xbf16>) -> tensor<8x32xf32>
  %h = shd.einsum(%a, %b) <[B, D], [D, F] -> [B, F]> {shd.name = "h", shd.group = #shd.group<0>} : (tensor<8x16xbf16>, tensor<16x32xbf16>) -> tensor<8x32xf32>
  // CHECK-NEXT: %[[SILU:.*]] = shd.elementwise silu(%h) <[B, F] -> [B, F]> {shd.temporary} : (tensor<8x32xf32>) -> tensor<8x32xf32>
  %s = shd.elementwise silu(%h) <[B, F] -> [B, F]> {shd.temporary} : (tensor<8x32xf32>) -> tensor<8x32xf32>
  // CHECK-NEXT: %[[WHERE:.*]] = shd.elementwise where(%p, %[[SILU]], %h) <[B, F], [B, F], [B, F] -> [B, F]>
  %w = shd.elementwise where(%p, %s, %h) <[B, F], [B, F], [B, F] -> [B, F]> : (tensor<8x32xi1>, tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  // CHECK-NEXT: %[[LT:.*]] = shd.elementwise lt(%[[WHERE]], %h) <[B, F], [B, F] -> [F, B]> : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<32x8xi1>
  %lt = shd.elementwise lt(%w, %h) <[B, F], [B, F] -> [F, B]> : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<32x8xi1>
  // CHECK-NEXT: %[[SUM:.*]] = shd.reduce sum(%[[WHERE]]) <[B, F] -> [B]> : (tensor<8x32xf32>) -> tensor<8xf32>
  %r = shd.reduce sum(%w) <[B, F] -> [B]> : (tensor<8x32xf32>) -> tensor<8xf32>
  // CHECK-NEXT: %[[MAX:.*]] = shd.reduce max(%[[WHERE]]) <[B, F] -> [B]> stats(%[[SUM]] : tensor<8xf32>) : (tensor<8x32xf32>) -> tensor<8xf32>
  %m = shd.reduce max(%w) <[B, F] -> [B]> stats(%r : tensor<8xf32>) : (tensor<8x32xf32>) -> tensor<8xf32>
  // CHECK-NEXT: %[[ARG:.*]] = shd.reduce argmax(%[[WHERE]]) <[B, F] -> [B]> : (tensor<8x32xf32>) -> tensor<8xi32>
  %arg = shd.reduce argmax(%w) <[B, F] -> [B]> : (tensor<8x32xf32>) -> tensor<8xi32>
}

// CHECK-LABEL: shd.program "normalisations"
shd.program "normalisations" {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x16xf32>
  %g = shd.declare weight "g" ["D"] : tensor<16xf32>
  %b = shd.declare weight "b" ["D"] : tensor<16xf32>
  %s = shd.declare input "s" ["B"] : tensor<8xf32>
  %l = shd.declare input "l" ["B"] : tensor<8xi32>
  // CHECK: shd.normalize softmax(%x) over ["D"] <[B, D] -> [B, D]> stats(%s, %s : tensor<8xf32>, tensor<8xf32>) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %0 = shd.normalize softmax(%x) over ["D"] <[B, D] -> [B, D]> stats(%s, %s : tensor<8xf32>, tensor<8xf32>) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  // CHECK-NEXT: shd.normalize logsumexp(%x) over ["D"] <[B, D] -> [B]> : (tensor<8x16xf32>) -> tensor<8xf32>
  %1 = shd.normalize logsumexp(%x) over ["D"] <[B, D] -> [B]> : (tensor<8x16xf32>) -> tensor<8xf32>
  // CHECK-NEXT: shd.normalize rmsnorm(%x, %g) over ["D"] <[B, D], [D] -> [B, D]> {eps = 1.000000e-05 : f64} :
  %2 = shd.normalize rmsnorm(%x, %g) over ["D"] <[B, D], [D] -> [B, D]> {eps = 1.0e-5 : f64} : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  // CHECK-NEXT: shd.normalize layernorm(%x, %g, %b) over ["B", "D"] <[B, D], [D], [D] -> [B, D]> :
  %3 = shd.normalize layernorm(%x, %g, %b) over ["B", "D"] <[B, D], [D], [D] -> [B, D]> : (tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  // CHECK-NEXT: shd.cross_entropy(%x, %l) over "D" <[B, D], [B] -> [B]> : tensor<8x16xf32>, tensor<8xi32> -> tensor<8xf32>
  %4 = shd.cross_entropy(%x, %l) over "D" <[B, D], [B] -> [B]> : tensor<8x16xf32>, tensor<8xi32> -> tensor<8xf32>
  // CHECK-NEXT: shd.cross_entropy(%x, %l) over "D" chunks 4 <[B, D], [B] -> [B]> : tensor<8x16xf32>, tensor<8xi32> -> tensor<8xf32>
  %c4 = shd.cross_entropy(%x, %l) over "D" chunks 4 <[B, D], [B] -> [B]> : tensor<8x16xf32>, tensor<8xi32> -> tensor<8xf32>
  // CHECK-NEXT: shd.cross_entropy(%x, %l) over "D" chunks all <[B, D], [B] -> [B]> : tensor<8x16xf32>, tensor<8xi32> -> tensor<8xf32>
  %ca = shd.cross_entropy(%x, %l) over "D" chunks all <[B, D], [B] -> [B]> : tensor<8x16xf32>, tensor<8xi32> -> tensor<8xf32>
  // CHECK-NEXT: shd.cross_entropy(%x, %l) over "D" <[B, D], [B] -> [B]> stats(%s, %s, %s : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) : tensor<8x16xf32>, tensor<8xi32> -> tensor<8xf32>
  %5 = shd.cross_entropy(%x, %l) over "D" <[B, D], [B] -> [B]> stats(%s, %s, %s : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) : tensor<8x16xf32>, tensor<8xi32> -> tensor<8xf32>
}

// CHECK-LABEL: shd.program "attention"
shd.program "attention" {
  %q = shd.declare input "q" ["B", "T", "N", "H"] : tensor<2x8x4x16xbf16>
  %k = shd.declare input "k" ["B", "S", "N", "H"] : tensor<2x8x4x16xbf16>
  %v = shd.declare input "v" ["B", "S", "N", "H"] : tensor<2x8x4x16xbf16>
  %at = shd.declare input "at" ["B", "T"] : tensor<2x8xi32>
  %s = shd.declare input "s" ["B", "T", "N"] : tensor<2x8x4xf32>
  // CHECK: shd.attention(%q, %k, %v) over "H", "S" <[B, T, N, H], [B, S, N, H], [B, S, N, H] -> [B, T, N, H]> : tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16> -> tensor<2x8x4x16xbf16>
  %0 = shd.attention(%q, %k, %v) over "H", "S" <[B, T, N, H], [B, S, N, H], [B, S, N, H] -> [B, T, N, H]> : tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16> -> tensor<2x8x4x16xbf16>
  // CHECK-NEXT: shd.attention(%q, %k, %v) over "H", "S" query "T" <[B, T, N, H], [B, S, N, H], [B, S, N, H] -> [B, T, N, H]> causal window 4 scale 1.250000e-01 softcap 5.000000e+01 stats(%s, %s : tensor<2x8x4xf32>, tensor<2x8x4xf32>) :
  %1 = shd.attention(%q, %k, %v) over "H", "S" query "T" <[B, T, N, H], [B, S, N, H], [B, S, N, H] -> [B, T, N, H]> causal window 4 scale 0.125 softcap 50.0 stats(%s, %s : tensor<2x8x4xf32>, tensor<2x8x4xf32>) : tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16> -> tensor<2x8x4x16xbf16>
  // CHECK-NEXT: shd.attention(%q, %k, %v at %at) over "H", "S" <[B, T, N, H], [B, S, N, H], [B, S, N, H], [B, T] -> [B, T, N, H]> causal : tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8xi32> -> tensor<2x8x4x16xbf16>
  %2 = shd.attention(%q, %k, %v at %at) over "H", "S" <[B, T, N, H], [B, S, N, H], [B, S, N, H], [B, T] -> [B, T, N, H]> causal : tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8xi32> -> tensor<2x8x4x16xbf16>
  // CHECK-NEXT: %{{.*}}:2 = shd.attention(%q, %k, %v) over "H", "S" <[B, T, N, H], [B, S, N, H], [B, S, N, H] -> [B, T, N, H], [B, N, T]> stats(%s, %s : tensor<2x8x4xf32>, tensor<2x8x4xf32>) : tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16> -> tensor<2x8x4x16xbf16>, tensor<2x4x8xf32>
  %5:2 = shd.attention(%q, %k, %v) over "H", "S" <[B, T, N, H], [B, S, N, H], [B, S, N, H] -> [B, T, N, H], [B, N, T]> stats(%s, %s : tensor<2x8x4xf32>, tensor<2x8x4xf32>) : tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16> -> tensor<2x8x4x16xbf16>, tensor<2x4x8xf32>
  // CHECK-NEXT: %{{.*}}:3 = shd.attention_grad(%q, %k, %v, %q, %q, %s) over "H", "S" query "T" <[B, T, N, H], [B, S, N, H], [B, S, N, H], [B, T, N, H], [B, T, N, H], [B, T, N] -> [B, T, N, H], [B, S, N, H], [B, S, N, H]> causal window 4 scale 1.250000e-01 softcap 5.000000e+01 : (tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4xf32>) -> (tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xf32>)
  %6:3 = shd.attention_grad(%q, %k, %v, %q, %q, %s) over "H", "S" query "T" <[B, T, N, H], [B, S, N, H], [B, S, N, H], [B, T, N, H], [B, T, N, H], [B, T, N] -> [B, T, N, H], [B, S, N, H], [B, S, N, H]> causal window 4 scale 0.125 softcap 50.0 : (tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4xf32>) -> (tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xf32>)
  // CHECK-NEXT: %{{.*}}:3 = shd.attention_grad(%q, %k, %v, %q, %q, %s at %at) over "H", "S" <[B, T, N, H], [B, S, N, H], [B, S, N, H], [B, T, N, H], [B, T, N, H], [B, T, N], [B, T] -> [B, T, N, H], [B, S, N, H], [B, S, N, H]> causal :
  %7:3 = shd.attention_grad(%q, %k, %v, %q, %q, %s at %at) over "H", "S" <[B, T, N, H], [B, S, N, H], [B, S, N, H], [B, T, N, H], [B, T, N, H], [B, T, N], [B, T] -> [B, T, N, H], [B, S, N, H], [B, S, N, H]> causal : (tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4xf32>, tensor<2x8xi32>) -> (tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>)
  %sink = shd.declare weight "sink" ["N"] : tensor<4xbf16>
  %bias = shd.declare weight "bias" ["N", "T", "S"] : tensor<4x8x8xbf16>
  // CHECK: shd.attention(%q, %k, %v sink %sink) over "H", "S" <[B, T, N, H], [B, S, N, H], [B, S, N, H], [N] -> [B, T, N, H]> : tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16> sink tensor<4xbf16> -> tensor<2x8x4x16xbf16>
  %9 = shd.attention(%q, %k, %v sink %sink) over "H", "S" <[B, T, N, H], [B, S, N, H], [B, S, N, H], [N] -> [B, T, N, H]> : tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16> sink tensor<4xbf16> -> tensor<2x8x4x16xbf16>
  // CHECK-NEXT: shd.attention(%q, %k, %v at %at sink %sink bias %bias) over "H", "S" <[B, T, N, H], [B, S, N, H], [B, S, N, H], [B, T], [N], [N, T, S] -> [B, T, N, H]> causal stats(%s, %s : tensor<2x8x4xf32>, tensor<2x8x4xf32>) : tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8xi32> sink tensor<4xbf16> bias tensor<4x8x8xbf16> -> tensor<2x8x4x16xbf16>
  %10 = shd.attention(%q, %k, %v at %at sink %sink bias %bias) over "H", "S" <[B, T, N, H], [B, S, N, H], [B, S, N, H], [B, T], [N], [N, T, S] -> [B, T, N, H]> causal stats(%s, %s : tensor<2x8x4xf32>, tensor<2x8x4xf32>) : tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8xi32> sink tensor<4xbf16> bias tensor<4x8x8xbf16> -> tensor<2x8x4x16xbf16>
  // CHECK-NEXT: %{{.*}}:4 = shd.attention_grad(%q, %k, %v, %q, %q, %s at %at bias %bias) over "H", "S" <[B, T, N, H], [B, S, N, H], [B, S, N, H], [B, T, N, H], [B, T, N, H], [B, T, N], [B, T], [N, T, S] -> [B, T, N, H], [B, S, N, H], [B, S, N, H], [N, T, S]> causal :
  %11:4 = shd.attention_grad(%q, %k, %v, %q, %q, %s at %at bias %bias) over "H", "S" <[B, T, N, H], [B, S, N, H], [B, S, N, H], [B, T, N, H], [B, T, N, H], [B, T, N], [B, T], [N, T, S] -> [B, T, N, H], [B, S, N, H], [B, S, N, H], [N, T, S]> causal : (tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4xf32>, tensor<2x8xi32>, tensor<4x8x8xbf16>) -> (tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<4x8x8xf32>)
  %keys = shd.declare input "keys" ["B", "S"] : tensor<2x8xi32>
  // CHECK: shd.attention(%q, %k, %v at %at key_at %keys sink %sink) over "H", "S" <[B, T, N, H], [B, S, N, H], [B, S, N, H], [B, T], [B, S], [N] -> [B, T, N, H]> causal window 4 : tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8xi32> key_at tensor<2x8xi32> sink tensor<4xbf16> -> tensor<2x8x4x16xbf16>
  %12 = shd.attention(%q, %k, %v at %at key_at %keys sink %sink) over "H", "S" <[B, T, N, H], [B, S, N, H], [B, S, N, H], [B, T], [B, S], [N] -> [B, T, N, H]> causal window 4 : tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8xi32> key_at tensor<2x8xi32> sink tensor<4xbf16> -> tensor<2x8x4x16xbf16>
  // CHECK-NEXT: %{{.*}}:3 = shd.attention_grad(%q, %k, %v, %q, %q, %s at %at key_at %keys) over "H", "S" <[B, T, N, H], [B, S, N, H], [B, S, N, H], [B, T, N, H], [B, T, N, H], [B, T, N], [B, T], [B, S] -> [B, T, N, H], [B, S, N, H], [B, S, N, H]> causal : (tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4xf32>, tensor<2x8xi32>, tensor<2x8xi32>) -> (tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>)
  %13:3 = shd.attention_grad(%q, %k, %v, %q, %q, %s at %at key_at %keys) over "H", "S" <[B, T, N, H], [B, S, N, H], [B, S, N, H], [B, T, N, H], [B, T, N, H], [B, T, N], [B, T], [B, S] -> [B, T, N, H], [B, S, N, H], [B, S, N, H]> causal : (tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4xf32>, tensor<2x8xi32>, tensor<2x8xi32>) -> (tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>)
  // CHECK-NEXT: shd.rope(%q) over "H" positions "T" <[B, T, N, H] -> [B, T, N, H]> : (tensor<2x8x4x16xbf16>) -> tensor<2x8x4x16xbf16>
  %3 = shd.rope(%q) over "H" positions "T" <[B, T, N, H] -> [B, T, N, H]> : (tensor<2x8x4x16xbf16>) -> tensor<2x8x4x16xbf16>
  // CHECK-NEXT: shd.rope(%q, %at) over "H" <[B, T, N, H], [B, T] -> [B, T, N, H]> {theta = 5.000000e+05 : f64} : (tensor<2x8x4x16xbf16>, tensor<2x8xi32>) -> tensor<2x8x4x16xbf16>
  %4 = shd.rope(%q, %at) over "H" <[B, T, N, H], [B, T] -> [B, T, N, H]> {theta = 500000.0 : f64} : (tensor<2x8x4x16xbf16>, tensor<2x8xi32>) -> tensor<2x8x4x16xbf16>
  // CHECK-NEXT: shd.rope(%q) over "H" positions "T" <[B, T, N, H] -> [B, T, N, H]> inverse :
  %8 = shd.rope(%q) over "H" positions "T" <[B, T, N, H] -> [B, T, N, H]> inverse : (tensor<2x8x4x16xbf16>) -> tensor<2x8x4x16xbf16>
}

// CHECK-LABEL: shd.program "positions"
shd.program "positions" {
  %emb = shd.declare weight "emb" ["V", "D"] : tensor<32x16xbf16>
  %tokens = shd.declare input "tokens" ["B", "T"] : tensor<2x8xi32>
  %kc = shd.declare state "kc" ["B", "S", "K"] : tensor<2x64x4xbf16>
  %k = shd.declare input "k" ["B", "K"] : tensor<2x4xbf16>
  %pos = shd.declare input "pos" ["B"] : tensor<2xi32>
  %zero = shd.constant dense<0> : tensor<i32>
  // CHECK: shd.gather(%emb, %tokens) <[V, D], [B, T] -> [B, T, D]> at [0] : (tensor<32x16xbf16>, tensor<2x8xi32>) -> tensor<2x8x16xbf16>
  %0 = shd.gather(%emb, %tokens) <[V, D], [B, T] -> [B, T, D]> at [0] : (tensor<32x16xbf16>, tensor<2x8xi32>) -> tensor<2x8x16xbf16>
  // CHECK-NEXT: shd.gather(%kc, %{{.*}}, %pos) <[B, S, K], [], [B] -> [B]> at [2, 1] :
  %1 = shd.gather(%kc, %zero, %pos) <[B, S, K], [], [B] -> [B]> at [2, 1] : (tensor<2x64x4xbf16>, tensor<i32>, tensor<2xi32>) -> tensor<2xbf16>
  // CHECK-NEXT: shd.scatter(%kc, %k, %pos) <[B, S, K], [B, K], [B] -> [B, S, K]> at [1] : (tensor<2x64x4xbf16>, tensor<2x4xbf16>, tensor<2xi32>) -> tensor<2x64x4xbf16>
  %2 = shd.scatter(%kc, %k, %pos) <[B, S, K], [B, K], [B] -> [B, S, K]> at [1] : (tensor<2x64x4xbf16>, tensor<2x4xbf16>, tensor<2xi32>) -> tensor<2x64x4xbf16>
  // CHECK-NEXT: shd.scatter(%kc, %k, %pos) <[B, S, K], [B, K], [B] -> [B, S, K]> at [1] accumulate : (tensor<2x64x4xbf16>, tensor<2x4xbf16>, tensor<2xi32>) -> tensor<2x64x4xbf16>
  %3 = shd.scatter(%kc, %k, %pos) <[B, S, K], [B, K], [B] -> [B, S, K]> at [1] accumulate : (tensor<2x64x4xbf16>, tensor<2x4xbf16>, tensor<2xi32>) -> tensor<2x64x4xbf16>
  // CHECK-NEXT: shd.scatter_sum(%k, %pos) <[B, K], [B] -> [S, K]> at [0] : (tensor<2x4xbf16>, tensor<2xi32>) -> tensor<64x4xbf16>
  %4 = shd.scatter_sum(%k, %pos) <[B, K], [B] -> [S, K]> at [0] : (tensor<2x4xbf16>, tensor<2xi32>) -> tensor<64x4xbf16>
}

// CHECK-LABEL: shd.program "experts"
shd.program "experts" {
  %x = shd.declare input "x" ["B", "T", "D"] : tensor<2x8x16xbf16>
  %g = shd.declare input "g" ["B", "T", "E"] : tensor<2x8x4xf32>
  // CHECK: shd.topk(%g) over "E" k 2 <[B, T, E] -> [B, T, E]> : (tensor<2x8x4xf32>) -> tensor<2x8x4xi1>
  %p = shd.topk(%g) over "E" k 2 <[B, T, E] -> [B, T, E]> : (tensor<2x8x4xf32>) -> tensor<2x8x4xi1>
  // CHECK-NEXT: shd.dispatch(%x, %{{.*}}) over "E", "C" k 2 <[B, T, D], [B, T, E] -> [E, B, C, D]> : (tensor<2x8x16xbf16>, tensor<2x8x4xi1>) -> tensor<4x2x5x16xbf16>
  %xe = shd.dispatch(%x, %p) over "E", "C" k 2 <[B, T, D], [B, T, E] -> [E, B, C, D]> : (tensor<2x8x16xbf16>, tensor<2x8x4xi1>) -> tensor<4x2x5x16xbf16>
  // CHECK-NEXT: shd.combine(%{{.*}}, %{{.*}}, %g) over "E", "C" k 2 blocks 2 limit 1 <[E, B, C, D], [B, T, E], [B, T, E] -> [B, T, D]> :
  %y = shd.combine(%xe, %p, %g) over "E", "C" k 2 blocks 2 limit 1 <[E, B, C, D], [B, T, E], [B, T, E] -> [B, T, D]> : (tensor<4x2x5x16xbf16>, tensor<2x8x4xi1>, tensor<2x8x4xf32>) -> tensor<2x8x16xbf16>
  // CHECK-NEXT: shd.combine_grad(%x, %{{.*}}, %{{.*}}) over "E", "C" k 2 dropless imbalance 1.250000e+00 <[B, T, D], [B, T, E], [E, B, C, D] -> [B, T, E]> :
  %w = shd.combine_grad(%x, %p, %xe) over "E", "C" k 2 dropless imbalance 1.25 <[B, T, D], [B, T, E], [E, B, C, D] -> [B, T, E]> : (tensor<2x8x16xbf16>, tensor<2x8x4xi1>, tensor<4x2x5x16xbf16>) -> tensor<2x8x4xf32>
}

// CHECK-LABEL: shd.program "indices"
shd.program "indices" {
  %x = shd.declare input "x" ["T", "D"] : tensor<8x12xbf16>
  // CHECK: shd.split(%x) "D" into ["A", "B"] <[T, D] -> [T, A, B]> : (tensor<8x12xbf16>) -> tensor<8x3x4xbf16>
  %0 = shd.split(%x) "D" into ["A", "B"] <[T, D] -> [T, A, B]> : (tensor<8x12xbf16>) -> tensor<8x3x4xbf16>
  // CHECK-NEXT: shd.merge(%{{.*}}) ["A", "B"] into "D" <[T, A, B] -> [T, D]> : (tensor<8x3x4xbf16>) -> tensor<8x12xbf16>
  %1 = shd.merge(%0) ["A", "B"] into "D" <[T, A, B] -> [T, D]> : (tensor<8x3x4xbf16>) -> tensor<8x12xbf16>
  // CHECK-NEXT: shd.slice(%x) "T" [2, 6] into "J" <[T, D] -> [J, D]> : (tensor<8x12xbf16>) -> tensor<4x12xbf16>
  %2 = shd.slice(%x) "T" [2, 6] into "J" <[T, D] -> [J, D]> : (tensor<8x12xbf16>) -> tensor<4x12xbf16>
  // CHECK-NEXT: shd.concat(%x, %{{.*}}) ["T", "J"] into "I" <[T, D], [J, D] -> [I, D]> : (tensor<8x12xbf16>, tensor<4x12xbf16>) -> tensor<12x12xbf16>
  %3 = shd.concat(%x, %2) ["T", "J"] into "I" <[T, D], [J, D] -> [I, D]> : (tensor<8x12xbf16>, tensor<4x12xbf16>) -> tensor<12x12xbf16>
  // CHECK-NEXT: shd.iota <-> [T]> : tensor<8xi32>
  %4 = shd.iota <-> [T]> : tensor<8xi32>
  // CHECK-NEXT: shd.reshard(%x) <[T, D] -> [T, D]> {shd.copy} : (tensor<8x12xbf16>) -> tensor<8x12xbf16>
  %5 = shd.reshard(%x) <[T, D] -> [T, D]> {shd.copy} : (tensor<8x12xbf16>) -> tensor<8x12xbf16>
}

// CHECK-LABEL: shd.program "optimizers"
shd.program "optimizers" {
  %g = shd.declare input "g" ["D"] : tensor<8xf32>
  %w = shd.declare input "w" ["D"] : tensor<8xf32>
  %m = shd.declare input "m" ["D"] : tensor<8xf32>
  %s = shd.declare input "s" [] : tensor<f32>
  // CHECK: shd.adamw(%g, %w, %m, %m, %s, %s) <[D], [D], [D], [D], [], [] -> [D], [D], [D]> lr 1.000000e-03 beta 9.000000e-01 5.000000e-01 eps 1.000000e-08 decay 0.000000e+00 :
  %0:3 = shd.adamw(%g, %w, %m, %m, %s, %s) <[D], [D], [D], [D], [], [] -> [D], [D], [D]> lr 0.001 beta 0.9 0.5 eps 1.0e-08 decay 0.0 : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  // CHECK-NEXT: shd.sgd(%g, %w) <[D], [D] -> [D]> lr 1.000000e-03 beta 9.000000e-01 decay 0.000000e+00 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = shd.sgd(%g, %w) <[D], [D] -> [D]> lr 0.001 beta 0.9 decay 0.0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  // CHECK-NEXT: shd.sgd(%g, %w) momentum(%m) scale(%s) <[D], [D], [D], [] -> [D], [D], [D]> lr 1.000000e-03 beta 9.000000e-01 decay 1.000000e-02 :
  %2:3 = shd.sgd(%g, %w) momentum(%m) scale(%s) <[D], [D], [D], [] -> [D], [D], [D]> lr 0.001 beta 0.9 decay 0.01 : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xbf16>)
}
