// RUN: shardc-opt %s --pass-pipeline='builtin.module(shd.program(shd-insert-collectives))' | FileCheck %s

// One node of 8 GPUs, 450 GB/s each way, 3 us a level: a gather of V bytes over
// the 8 takes V * 7/8 / 450e9 s, at least 3 us * log2(8) = 9 us, and so does a
// reduce_scatter; an all_reduce takes twice as long.

// x is gathered before its use: V = 4096 * 8192 * 2 B = 67108864 B,
// 58720256 B / 450e9 B/s = 130.489 us. y is made as a partial sum over F and
// stored scattered over B: V = 4096 * 8192 * 2 B as well.
// CHECK-LABEL: shd.program "gather_and_scatter"
// CHECK-NOT: shd.result_pin
// CHECK-NOT: shd.operand_pins
// CHECK-NOT: shd.made
shd.program "gather_and_scatter" mesh <[X = 8]> hardware <"h100", [8]> {
  // CHECK: %x = shd.declare input "x" ["B", "D"] : tensor<4096x8192xbf16, #shd.sharding<[{X}, {}]>>
  %x = shd.declare input "x" ["B", "D"] {shd.result_pin = #shd.sharding<[{X}, {}]>} : tensor<4096x8192xbf16>
  %w1 = shd.declare weight "w1" ["D", "F"] {shd.result_pin = #shd.sharding<[{}, {X}]>} : tensor<8192x16384xbf16>
  %w2 = shd.declare weight "w2" ["F", "D"] {shd.result_pin = #shd.sharding<[{X}, {}]>} : tensor<16384x8192xbf16>
  // CHECK: %[[XG:.*]] = shd.all_gather %x over ["X"] cost <bytes = 6.7108864e+07, wire_bytes = 5.8720256e+07, bandwidth_s = 1.304894577777777{{[0-9]}}e-04, latency_s = 9.0{{[0-9]*}}e-06, networks = [gpu]>
  // CHECK-SAME: shd.indices = ["B", "D"], shd.operand = "x"
  // CHECK-SAME: tensor<4096x8192xbf16, #shd.sharding<[{X}, {}]>> -> tensor<4096x8192xbf16, #shd.sharding<[{}, {}]>>
  // CHECK: %[[H:.*]] = shd.einsum(%[[XG]], %w1)
  // CHECK-SAME: -> tensor<4096x16384xbf16, #shd.sharding<[{}, {X}]>>
  %h = shd.einsum(%x, %w1) <[B, D], [D, F] -> [B, F]> {shd.name = "h", shd.group = #shd.group<0>, shd.operand_pins = [#shd.sharding<[{}, {}]>, #shd.sharding<[{}, {X}]>], shd.made = #shd.sharding<[{}, {X}]>, shd.result_pin = #shd.sharding<[{}, {X}]>} : (tensor<4096x8192xbf16>, tensor<8192x16384xbf16>) -> tensor<4096x16384xbf16>
  // CHECK: %[[Y:.*]] = shd.einsum(%[[H]], %w2)
  // CHECK-SAME: -> tensor<4096x8192xbf16, #shd.sharding<[{}, {}], partial = {X}>>
  // CHECK: %[[YS:.*]] = shd.reduce_scatter %[[Y]] over ["X"] cost <bytes = 6.7108864e+07, wire_bytes = 5.8720256e+07, bandwidth_s = 1.304894577777777{{[0-9]}}e-04, latency_s = 9.0{{[0-9]*}}e-06, networks = [gpu]>
  // CHECK-SAME: shd.operand = "y", shd.store
  // CHECK-SAME: -> tensor<4096x8192xbf16, #shd.sharding<[{X}, {}]>>
  %y = shd.einsum(%h, %w2) <[B, F], [F, D] -> [B, D]> {shd.name = "y", shd.group = #shd.group<1>, shd.operand_pins = [#shd.sharding<[{}, {X}]>, #shd.sharding<[{X}, {}]>], shd.made = #shd.sharding<[{}, {}], partial = {X}>, shd.result_pin = #shd.sharding<[{X}, {}]>} : (tensor<4096x16384xbf16>, tensor<16384x8192xbf16>) -> tensor<4096x8192xbf16>
  // CHECK: shd.output "y" %[[YS]]
  shd.output "y" %y ["B", "D"] {shd.operand_pins = [#shd.sharding<[{X}, {}]>]} : tensor<4096x8192xbf16>
}

// The operations of one part of a group share a gather; another part makes its
// own. A copy is made once, for all who read it.
// CHECK-LABEL: shd.program "shared"
shd.program "shared" mesh <[X = 8]> hardware <"h100", [8]> {
  // CHECK: %x = shd.declare
  %x = shd.declare input "x" ["B"] {shd.result_pin = #shd.sharding<[{X}]>} : tensor<4096xbf16>
  // CHECK: %w = shd.declare
  %w = shd.declare weight "w" ["B"] {shd.result_pin = #shd.sharding<[{X}]>} : tensor<4096xbf16>
  // CHECK: %[[WG:.*]] = shd.all_gather %w over ["X"]
  // CHECK-SAME: shd.copy
  %wc = shd.reshard(%w) <[B] -> [B]> {shd.copy, shd.name = "w", shd.operand_pins = [#shd.sharding<[{X}]>], shd.result_pin = #shd.sharding<[{}]>} : (tensor<4096xbf16>) -> tensor<4096xbf16>
  // CHECK-NOT: shd.reshard
  // CHECK: %[[X1:.*]] = shd.all_gather %x over ["X"]
  // CHECK: %[[A:.*]] = shd.elementwise mul(%[[X1]], %[[WG]])
  %a = shd.elementwise mul(%x, %wc) <[B], [B] -> [B]> {shd.group = #shd.group<0, rest>, shd.operand_pins = [#shd.sharding<[{}]>, #shd.sharding<[{}]>], shd.made = #shd.sharding<[{}]>, shd.result_pin = #shd.sharding<[{}]>} : (tensor<4096xbf16>, tensor<4096xbf16>) -> tensor<4096xbf16>
  // CHECK-NEXT: %[[B:.*]] = shd.elementwise add(%[[A]], %[[X1]])
  %b = shd.elementwise add(%a, %x) <[B], [B] -> [B]> {shd.group = #shd.group<0, rest>, shd.operand_pins = [#shd.sharding<[{}]>, #shd.sharding<[{}]>], shd.made = #shd.sharding<[{}]>, shd.result_pin = #shd.sharding<[{}]>} : (tensor<4096xbf16>, tensor<4096xbf16>) -> tensor<4096xbf16>
  // CHECK-NEXT: %[[X2:.*]] = shd.all_gather %x over ["X"]
  // CHECK-NEXT: %[[C:.*]] = shd.elementwise sub(%[[X2]], %[[WG]])
  %c = shd.elementwise sub(%x, %wc) <[B], [B] -> [B]> {shd.group = #shd.group<1, rest>, shd.operand_pins = [#shd.sharding<[{}]>, #shd.sharding<[{}]>], shd.made = #shd.sharding<[{}]>, shd.result_pin = #shd.sharding<[{}]>} : (tensor<4096xbf16>, tensor<4096xbf16>) -> tensor<4096xbf16>
  shd.output "b" %b ["B"] {shd.operand_pins = [#shd.sharding<[{}]>]} : tensor<4096xbf16>
  // CHECK: %[[CS:.*]] = shd.all_slice %[[C]] over ["X"]
  // CHECK-NEXT: shd.output "c" %[[CS]]
  shd.output "c" %c ["B"] {shd.operand_pins = [#shd.sharding<[{X}]>]} : tensor<4096xbf16>
}

// Over a sharded index the softmax's devices agree on maxima, then on sums: f32
// for each of 512 rows, 2048 B, far below what the latency of 2 * 9 us allows.
// CHECK-LABEL: shd.program "statistics"
shd.program "statistics" mesh <[X = 8]> hardware <"h100", [8]> {
  %x = shd.declare input "x" ["B", "V"] {shd.result_pin = #shd.sharding<[{}, {X}]>} : tensor<512x4096xbf16>
  // CHECK: %[[M:.*]] = shd.statistic "max"(%x)
  // CHECK-SAME: -> tensor<512xf32, #shd.sharding<[{}], partial = {X}>>
  // CHECK: %[[MAX:.*]] = shd.all_reduce max %[[M]] over ["X"] cost <bytes = 2.048e+03, wire_bytes = 3.584e+03, bandwidth_s = {{[0-9.]*}}e-09, latency_s = 1.8{{[0-9]*}}e-05, networks = [gpu]>
  // CHECK-SAME: shd.indices = ["B"], shd.operand = "p.max"
  // CHECK: %[[S:.*]] = shd.statistic "sum_exp"(%x, %[[MAX]])
  // CHECK: %[[SUM:.*]] = shd.all_reduce %[[S]] over ["X"]
  // CHECK-SAME: shd.operand = "p.sum_exp"
  // CHECK: shd.normalize softmax(%x) over ["V"] <[B, V] -> [B, V]> stats(%[[MAX]], %[[SUM]]
  %p = shd.normalize softmax(%x) over ["V"] <[B, V] -> [B, V]> {shd.name = "p", shd.group = #shd.group<0, rest>, shd.operand_pins = [#shd.sharding<[{}, {X}]>], shd.made = #shd.sharding<[{}, {X}]>, shd.result_pin = #shd.sharding<[{}, {X}]>} : (tensor<512x4096xbf16>) -> tensor<512x4096xbf16>
  shd.output "p" %p ["B", "V"] {shd.operand_pins = [#shd.sharding<[{}, {X}]>]} : tensor<512x4096xbf16>
}

// Extreme elements have the operand's type; devices agree on the greatest (the
// least), and of an argmax then on the least index. 512 indices of int32.
// CHECK-LABEL: shd.program "extremes"
shd.program "extremes" mesh <[X = 8]> hardware <"h100", [8]> {
  %x = shd.declare input "x" ["B", "V"] {shd.result_pin = #shd.sharding<[{}, {X}]>} : tensor<512x4096xi8>
  // CHECK: %[[M:.*]] = shd.statistic "min"(%x)
  // CHECK-SAME: -> tensor<512xi8, #shd.sharding<[{{[{][}]}}], partial = {X}>>
  // CHECK: %[[MIN:.*]] = shd.all_reduce min %[[M]] over ["X"] cost <bytes = 5.12e+02,
  // CHECK: shd.reduce min(%x) <[B, V] -> [B]> stats(%[[MIN]]
  %a = shd.reduce min(%x) <[B, V] -> [B]> {shd.name = "a", shd.group = #shd.group<0, rest>, shd.operand_pins = [#shd.sharding<[{}, {X}]>], shd.made = #shd.sharding<[{}]>, shd.result_pin = #shd.sharding<[{}]>} : (tensor<512x4096xi8>) -> tensor<512xi8>
  // CHECK: %[[V:.*]] = shd.statistic "value"(%x)
  // CHECK: %[[MAX:.*]] = shd.all_reduce max %[[V]] over ["X"] cost <bytes = 5.12e+02,
  // CHECK: %[[I:.*]] = shd.statistic "index"(%x, %[[MAX]])
  // CHECK-SAME: -> tensor<512xi32, #shd.sharding<[{{[{][}]}}], partial = {X}>>
  // CHECK: %[[INDEX:.*]] = shd.all_reduce min %[[I]] over ["X"] cost <bytes = 2.048e+03,
  // CHECK: shd.reduce argmax(%x) <[B, V] -> [B]> stats(%[[MAX]], %[[INDEX]]
  %b = shd.reduce argmax(%x) <[B, V] -> [B]> {shd.name = "b", shd.group = #shd.group<0, rest>, shd.operand_pins = [#shd.sharding<[{}, {X}]>], shd.made = #shd.sharding<[{}]>, shd.result_pin = #shd.sharding<[{}]>} : (tensor<512x4096xi8>) -> tensor<512xi32>
  shd.output "a" %a ["B"] {shd.operand_pins = [#shd.sharding<[{}]>]} : tensor<512xi8>
  shd.output "b" %b ["B"] {shd.operand_pins = [#shd.sharding<[{}]>]} : tensor<512xi32>
}

// A carried value has one sharding: what comes in and what is yielded follow.
// CHECK-LABEL: shd.program "carried"
shd.program "carried" mesh <[X = 8]> hardware <"h100", [8]> {
  %x = shd.declare input "x" ["B"] {shd.result_pin = #shd.sharding<[{X}]>} : tensor<4096xbf16>
  // CHECK: %[[X:.*]] = shd.all_gather %x over ["X"]
  // CHECK: %[[R:.*]] = shd.repeat "L" = 3(%[[X]])
  // CHECK-SAME: (tensor<4096xbf16, #shd.sharding<[{}]>>) -> tensor<4096xbf16, #shd.sharding<[{}]>>
  %r = shd.repeat "L" = 3 (%x) {shd.operand_pins = [#shd.sharding<[{}]>]} : (tensor<4096xbf16>) -> (tensor<4096xbf16>) {
  ^bb0(%i: tensor<i32>, %c: tensor<4096xbf16>):
    // CHECK: ^bb0(%{{.*}}: tensor<i32>, %[[C:.*]]: tensor<4096xbf16, #shd.sharding<[{}]>>):
    // CHECK: %[[S:.*]] = shd.all_slice %[[C]] over ["X"]
    // CHECK: %[[E:.*]] = shd.elementwise exp(%[[S]])
    %e = shd.elementwise exp(%c) <[B] -> [B]> {shd.group = #shd.group<0, rest>, shd.operand_pins = [#shd.sharding<[{X}]>], shd.made = #shd.sharding<[{X}]>, shd.result_pin = #shd.sharding<[{X}]>} : (tensor<4096xbf16>) -> tensor<4096xbf16>
    // CHECK: %[[G:.*]] = shd.all_gather %[[E]] over ["X"]
    // CHECK: shd.yield %[[G]]
    shd.yield %e : tensor<4096xbf16> {shd.operand_pins = [#shd.sharding<[{}]>]}
  }
  // CHECK: shd.output "r" %[[R]]
  shd.output "r" %r ["B"] {shd.operand_pins = [#shd.sharding<[{}]>]} : tensor<4096xbf16>
}

// One device, and no mesh: types stay as they are.
// CHECK-LABEL: shd.program "alone"
shd.program "alone" hardware <"h100", []> {
  // CHECK: %x = shd.declare input "x" ["B"] : tensor<64xbf16>{{$}}
  %x = shd.declare input "x" ["B"] {shd.result_pin = #shd.sharding<[{}]>} : tensor<64xbf16>
  // CHECK: shd.elementwise exp(%x) {{.*}} : (tensor<64xbf16>) -> tensor<64xbf16>{{$}}
  %e = shd.elementwise exp(%x) <[B] -> [B]> {shd.group = #shd.group<0, rest>, shd.operand_pins = [#shd.sharding<[{}]>], shd.made = #shd.sharding<[{}]>, shd.result_pin = #shd.sharding<[{}]>} : (tensor<64xbf16>) -> tensor<64xbf16>
  shd.output "e" %e ["B"] {shd.operand_pins = [#shd.sharding<[{}]>]} : tensor<64xbf16>
}
