// RUN: shardc-opt %s --pass-pipeline='builtin.module(shd.program(shd-replicate-open))' | FileCheck %s

// Every named value gets a closed pin; what is said stays.
// CHECK-LABEL: shd.program "named"
shd.program "named" mesh <[X = 4, Y = 4]> hardware <"tpu_v5e", [4, 4]> {
  // CHECK: %x = {{.*}}shd.result_pin = #shd.sharding<[{}, {}]>
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  // CHECK: %w = {{.*}}shd.result_pin = #shd.sharding<[{X}, {}]>
  %w = shd.declare weight "w" ["D", "F"] {shd.result_pin = #shd.sharding<[{X}, {?}]>} : tensor<32x128xbf16>
  // CHECK: shd.einsum{{.*}} {shd.temporary}
  %t = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> {shd.temporary} : (tensor<64x32xbf16>, tensor<32x128xbf16>) -> tensor<64x128xbf16>
  // CHECK: shd.elementwise neg{{.*}}shd.result_pin = #shd.sharding<[{}, {Y}], partial = {X}>
  %n = shd.elementwise neg(%t) <[B, F] -> [B, F]> {shd.result_pin = #shd.sharding<[{?}, {Y}], partial = {X}>} : (tensor<64x128xbf16>) -> tensor<64x128xbf16>
  // What an operation consumes stays open.
  // CHECK: shd.elementwise relu{{.*}}shd.operand_pins = [#shd.sharding<[{X}, {?}]>], shd.result_pin = #shd.sharding<[{}, {}]>
  %r = shd.elementwise relu(%n) <[B, F] -> [B, F]> {shd.operand_pins = [#shd.sharding<[{X}, {?}]>]} : (tensor<64x128xbf16>) -> tensor<64x128xbf16>
  shd.output "r" %r ["B", "F"] : tensor<64x128xbf16>
}

// A carried value has one sharding: what is said of its rebinding goes first,
// then what is said of its initial value; with nothing said it is replicated.
// CHECK-LABEL: shd.program "carried"
shd.program "carried" mesh <[X = 4, Y = 4]> hardware <"tpu_v5e", [4, 4]> {
  %x = shd.declare input "x" ["B"] : tensor<64xbf16>
  // CHECK: shd.elementwise exp{{.*}}shd.result_pin = #shd.sharding<[{X}]>
  %a = shd.elementwise exp(%x) <[B] -> [B]> {shd.result_pin = #shd.sharding<[{X}]>} : (tensor<64xbf16>) -> tensor<64xbf16>
  // CHECK: shd.elementwise tanh{{.*}}shd.result_pin = #shd.sharding<[{Y}]>
  %b = shd.elementwise tanh(%x) <[B] -> [B]> {shd.result_pin = #shd.sharding<[{Y}]>} : (tensor<64xbf16>) -> tensor<64xbf16>
  // CHECK: shd.elementwise neg{{.*}}shd.result_pin = #shd.sharding<[{}]>
  %c = shd.elementwise neg(%x) <[B] -> [B]> : (tensor<64xbf16>) -> tensor<64xbf16>
  // CHECK: shd.repeat "L"{{.*}}shd.operand_pins = [#shd.sharding<[{Y}]>, #shd.sharding<[{Y}]>, #shd.sharding<[{}]>]
  %r:3 = shd.repeat "L" = 3 (%a, %b, %c) : (tensor<64xbf16>, tensor<64xbf16>, tensor<64xbf16>) -> (tensor<64xbf16>, tensor<64xbf16>, tensor<64xbf16>) {
  ^bb0(%i: tensor<i32>, %p: tensor<64xbf16>, %q: tensor<64xbf16>, %s: tensor<64xbf16>):
    // CHECK: shd.elementwise square{{.*}}shd.result_pin = #shd.sharding<[{Y}]>
    %d = shd.elementwise square(%p) <[B] -> [B]> {shd.result_pin = #shd.sharding<[{Y}]>} : (tensor<64xbf16>) -> tensor<64xbf16>
    // A rebinding of which nothing is said follows what it rebinds.
    // CHECK: shd.elementwise abs{{.*}}shd.result_pin = #shd.sharding<[{Y}]>
    %e = shd.elementwise abs(%q) <[B] -> [B]> : (tensor<64xbf16>) -> tensor<64xbf16>
    // CHECK: shd.elementwise sqrt{{.*}}shd.result_pin = #shd.sharding<[{}]>
    %f = shd.elementwise sqrt(%s) <[B] -> [B]> : (tensor<64xbf16>) -> tensor<64xbf16>
    shd.yield %d, %e, %f : tensor<64xbf16>, tensor<64xbf16>, tensor<64xbf16>
  }
  shd.output "r" %r#0 ["B"] : tensor<64xbf16>
}

// Nested repeats carry it through.
// CHECK-LABEL: shd.program "nested"
shd.program "nested" mesh <[X = 4]> hardware <"h100", [4]> {
  %x = shd.declare input "x" ["B"] : tensor<64xbf16>
  %a = shd.elementwise exp(%x) <[B] -> [B]> {shd.result_pin = #shd.sharding<[{X}]>} : (tensor<64xbf16>) -> tensor<64xbf16>
  // CHECK: shd.repeat "M"{{.*}}shd.operand_pins = [#shd.sharding<[{X}]>]
  %y = shd.repeat "M" = 2 (%a) : (tensor<64xbf16>) -> (tensor<64xbf16>) {
  ^bb0(%i: tensor<i32>, %p: tensor<64xbf16>):
    // CHECK: shd.repeat "L"{{.*}}shd.operand_pins = [#shd.sharding<[{X}]>]
    %z = shd.repeat "L" = 3 (%p) : (tensor<64xbf16>) -> (tensor<64xbf16>) {
    ^bb0(%j: tensor<i32>, %q: tensor<64xbf16>):
      // CHECK: shd.elementwise neg{{.*}}shd.result_pin = #shd.sharding<[{X}]>
      %n = shd.elementwise neg(%q) <[B] -> [B]> : (tensor<64xbf16>) -> tensor<64xbf16>
      shd.yield %n : tensor<64xbf16>
    }
    shd.yield %z : tensor<64xbf16>
  }
  shd.output "y" %y ["B"] : tensor<64xbf16>
}
