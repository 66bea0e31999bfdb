// RUN: shardc-opt %s --pass-pipeline='builtin.module(shd.program(shd-propagate))' | FileCheck %s

// Forwards from the input, backwards from the second weight; H is made on both.
// CHECK-LABEL: shd.program "both_ways"
shd.program "both_ways" mesh <[X = 4, Y = 4]> hardware <"tpu_v5e", [4, 4]> {
  // CHECK: %x = {{.*}}shd.result_pin = #shd.sharding<[{X}, {}]>
  %x = shd.declare input "x" ["B", "D"] {shd.result_pin = #shd.sharding<[{X}, {}]>} : tensor<64x32xbf16>
  // CHECK: %w1 = {{.*}}shd.result_pin = #shd.sharding<[{}, {Y}]>
  %w1 = shd.declare weight "w1" ["D", "F"] : tensor<32x128xbf16>
  // CHECK: %w2 = {{.*}}shd.result_pin = #shd.sharding<[{Y}, {}]>
  %w2 = shd.declare weight "w2" ["F", "D"] {shd.result_pin = #shd.sharding<[{Y}, {}]>} : tensor<128x32xbf16>
  // CHECK: shd.einsum{{.*}}shd.result_pin = #shd.sharding<[{X}, {Y}]>
  %h = shd.einsum(%x, %w1) <[B, D], [D, F] -> [B, F]> {shd.name = "h"} : (tensor<64x32xbf16>, tensor<32x128xbf16>) -> tensor<64x128xbf16>
  // A sum over a sharded index is not left partial.
  // CHECK: shd.einsum{{.*}}shd.result_pin = #shd.sharding<[{X}, {}]>
  %y = shd.einsum(%h, %w2) <[B, F], [F, D] -> [B, D]> {shd.name = "y"} : (tensor<64x128xbf16>, tensor<128x32xbf16>) -> tensor<64x32xbf16>
  shd.output "y" %y ["B", "D"] : tensor<64x32xbf16>
}

// What is pinned stays, an axis is used once in a tensor, and axes that do not
// divide an extent go no further.
// CHECK-LABEL: shd.program "limits"
shd.program "limits" mesh <[X = 4, Y = 4]> hardware <"tpu_v5e", [4, 4]> {
  // CHECK: %x = {{.*}}shd.result_pin = #shd.sharding<[{X}, {}]>
  %x = shd.declare input "x" ["B", "D"] {shd.result_pin = #shd.sharding<[{X}, {}]>} : tensor<64x32xbf16>
  // CHECK: %w = {{.*}}shd.result_pin = #shd.sharding<[{}, {X}]>
  %w = shd.declare weight "w" ["D", "F"] {shd.result_pin = #shd.sharding<[{}, {X}]>} : tensor<32x128xbf16>
  // B has X already, so F cannot.
  // CHECK: shd.einsum{{.*}}shd.result_pin = #shd.sharding<[{X}, {}]>
  %h = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> : (tensor<64x32xbf16>, tensor<32x128xbf16>) -> tensor<64x128xbf16>
  // CHECK: shd.elementwise relu{{.*}}shd.result_pin = #shd.sharding<[{Y}, {}]>
  %r = shd.elementwise relu(%h) <[B, F] -> [B, F]> {shd.result_pin = #shd.sharding<[{Y}, {}]>} : (tensor<64x128xbf16>) -> tensor<64x128xbf16>
  // A slice needs its index whole.
  // CHECK: shd.slice{{.*}}shd.result_pin = #shd.sharding<[{}, {}]>
  %s = shd.slice(%r) "B" [0, 6] into "C" <[B, F] -> [C, F]> : (tensor<64x128xbf16>) -> tensor<6x128xbf16>
  shd.output "s" %s ["C", "F"] : tensor<6x128xbf16>
}

// A carried value has one sharding, on entry, in the body and on exit.
// CHECK-LABEL: shd.program "carried"
shd.program "carried" mesh <[X = 4, Y = 4]> hardware <"tpu_v5e", [4, 4]> {
  %x = shd.declare input "x" ["B", "D"] {shd.result_pin = #shd.sharding<[{X}, {}]>} : tensor<64x32xbf16>
  // CHECK: shd.elementwise silu{{.*}}shd.result_pin = #shd.sharding<[{X}, {Y}]>
  %a = shd.elementwise silu(%x) <[B, D] -> [B, D]> : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
  // The sharding of a part is that of the tensor.
  // CHECK: %g = {{.*}}shd.result_pin = #shd.sharding<[{}, {Y}]>
  %gs = shd.declare weight "g" ["L", "D"] stacked 1 : tensor<3x32xbf16>
  // CHECK: shd.repeat{{.*}}shd.operand_pins = [#shd.sharding<[{X}, {Y}]>]
  %y = shd.repeat "L" = 3 (%a) : (tensor<64x32xbf16>) -> (tensor<64x32xbf16>) {
  ^bb0(%i: tensor<i32>, %c: tensor<64x32xbf16>):
    %g = shd.part %gs[%i] : tensor<3x32xbf16> -> tensor<32xbf16>
    // CHECK: shd.elementwise mul{{.*}}shd.result_pin = #shd.sharding<[{X}, {Y}]>
    %b = shd.elementwise mul(%c, %g) <[B, D], [D] -> [B, D]> {shd.result_pin = #shd.sharding<[{?}, {Y}]>} : (tensor<64x32xbf16>, tensor<32xbf16>) -> tensor<64x32xbf16>
    shd.yield %b : tensor<64x32xbf16>
  }
  shd.output "y" %y ["B", "D"] : tensor<64x32xbf16>
}

// Nothing said, nothing spread: closed and replicated.
// CHECK-LABEL: shd.program "nothing"
shd.program "nothing" mesh <[X = 4]> hardware <"h100", [4]> {
  // CHECK: %x = {{.*}}shd.result_pin = #shd.sharding<[{}]>
  %x = shd.declare input "x" ["B"] : tensor<64xbf16>
  // CHECK: shd.elementwise exp{{.*}}shd.result_pin = #shd.sharding<[{}]>
  %y = shd.elementwise exp(%x) <[B] -> [B]> : (tensor<64xbf16>) -> tensor<64xbf16>
  shd.output "y" %y ["B"] : tensor<64xbf16>
}

// Intermediate results inside a statement get no pin of their own.
// CHECK-LABEL: shd.program "temporary"
shd.program "temporary" mesh <[X = 4]> hardware <"h100", [4]> {
  %x = shd.declare input "x" ["B"] {shd.result_pin = #shd.sharding<[{X}]>} : tensor<64xbf16>
  // CHECK: shd.elementwise exp
  // CHECK-NOT: result_pin
  // CHECK-SAME: shd.temporary
  %t = shd.elementwise exp(%x) <[B] -> [B]> {shd.temporary} : (tensor<64xbf16>) -> tensor<64xbf16>
  // CHECK: shd.elementwise neg{{.*}}shd.result_pin = #shd.sharding<[{X}]>
  %y = shd.elementwise neg(%t) <[B] -> [B]> : (tensor<64xbf16>) -> tensor<64xbf16>
  shd.output "y" %y ["B"] : tensor<64xbf16>
}
