// RUN: shardc-opt %s --pass-pipeline='builtin.module(shd.program(shd-fusion-groups,shd-optimize,shd-insert-collectives,shd-annotate-cost))' -o %t.mlir
// RUN: shardc %t.mlir | FileCheck %s

// A weight that two repeats read, the second in reverse, is there once: its 3
// parts of 8192 x 8192 x 2 B are 403 MB, an eighth of that on each device. A part
// is gathered whole for each iteration of both repeats: 134 MB.
// CHECK: weight w bf16 [L, D@X, F] 3 x 8192 x 8192 403 MB 50.3 MB
// CHECK-NOT: weight w
// CHECK: repeat L x 3
// CHECK-NEXT: w all_gather X D@X -> D 3 {{.*}} 783 us
// CHECK: repeat L x 3
// CHECK-NEXT: w all_gather X D@X -> D 3 {{.*}} 783 us
shd.program "two_repeats" mesh <[X = 8]> hardware <"h100", [8]> {
  %x = shd.declare input "x" ["B", "D"] {shd.result_pin = #shd.sharding<[{X}, {}]>} : tensor<4096x8192xbf16>
  %w = shd.declare weight "w" ["L", "D", "F"] stacked 1 {shd.result_pin = #shd.sharding<[{}, {X}, {}]>} : tensor<3x8192x8192xbf16>
  %y = shd.repeat "L" = 3(%x) {shd.operand_pins = [#shd.sharding<[{X}, {}]>]} : (tensor<4096x8192xbf16>) -> tensor<4096x8192xbf16> {
  ^bb0(%i: tensor<i32>, %c: tensor<4096x8192xbf16>):
    %w_i = shd.part %w[%i] : tensor<3x8192x8192xbf16> -> tensor<8192x8192xbf16>
    %d = shd.einsum(%c, %w_i) <[B, D], [D, F] -> [B, F]> {shd.name = "y", shd.operand_pins = [unit, #shd.sharding<[{}, {}]>]} : (tensor<4096x8192xbf16>, tensor<8192x8192xbf16>) -> tensor<4096x8192xbf16>
    shd.yield %d : tensor<4096x8192xbf16>
  }
  %z = shd.repeat "L" = 3 reverse(%y) {shd.operand_pins = [#shd.sharding<[{X}, {}]>]} : (tensor<4096x8192xbf16>) -> tensor<4096x8192xbf16> {
  ^bb0(%i: tensor<i32>, %c: tensor<4096x8192xbf16>):
    %w_i = shd.part %w[%i] : tensor<3x8192x8192xbf16> -> tensor<8192x8192xbf16>
    %d = shd.einsum(%c, %w_i) <[B, F], [D, F] -> [B, D]> {shd.name = "z", shd.operand_pins = [unit, #shd.sharding<[{}, {}]>]} : (tensor<4096x8192xbf16>, tensor<8192x8192xbf16>) -> tensor<4096x8192xbf16>
    shd.yield %d : tensor<4096x8192xbf16>
  }
  shd.output "z" %z ["B", "D"] {shd.operand_pins = [#shd.sharding<[{X}, {}]>]} : tensor<4096x8192xbf16>
}
