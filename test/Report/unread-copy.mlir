// RUN: shardc %s --opt=none --emit-json | FileCheck %s
// z computes y itself, and nothing reads the copy of y, which is made all the same,
// of y as it is stored: at z, a device holds of x and y 4 x 8 numbers, of W 8 x 4, of
// z 4 x 4 and of the copy 16 x 8, 4 (3 * 32 + 16 + 128) B.
// CHECK: "peak": 960,
shd.program "test" mesh <[X = 4]> hardware <"h100", [4]> {
  %x = shd.declare input "x" ["B", "D"] {shd.result_pin = #shd.sharding<[{X}, {}]>} : tensor<16x8xf32>
  %W = shd.declare weight "W" ["D", "F"] {shd.result_pin = #shd.sharding<[{}, {}]>} : tensor<8x4xf32>
  %y = shd.elementwise relu(%x) <[B, D] -> [B, D]> {shd.name = "y", shd.result_pin = #shd.sharding<[{X}, {}]>} : (tensor<16x8xf32>) -> tensor<16x8xf32>
  %copy = shd.reshard(%y) <[B, D] -> [B, D]> {shd.copy, shd.name = "y", shd.operand_pins = [#shd.sharding<[{X}, {}]>], shd.result_pin = #shd.sharding<[{}, {}]>} : (tensor<16x8xf32>) -> tensor<16x8xf32>
  %z = shd.einsum(%y, %W) <[B, D], [D, F] -> [B, F]> {shd.name = "z", shd.operand_pins = [#shd.sharding<[{X}, {}]>, #shd.sharding<[{}, {}]>], shd.result_pin = #shd.sharding<[{X}, {}]>} : (tensor<16x8xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
  shd.output "z" %z ["B", "F"] : tensor<16x4xf32>
}
