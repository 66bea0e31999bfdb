// An operation of another dialect, with two results: passes know it by its
// interfaces.
// RUN: shardc-test-opt %s | FileCheck %s --check-prefix=PARSED
// RUN: shardc-test-opt %s --pass-pipeline='builtin.module(shd.program(shd-propagate))' | FileCheck %s --check-prefix=SPREAD
// RUN: shardc-test-opt %s --pass-pipeline='builtin.module(shd.program(shd-fusion-groups))' | FileCheck %s --check-prefix=GROUPS
// RUN: shardc-test-opt %s --pass-pipeline='builtin.module(shd.program(shd-fusion-groups,shd-optimize))' | FileCheck %s --check-prefix=PLAN
// RUN: shardc-test-opt %s --pass-pipeline='builtin.module(shd.program(shd-fusion-groups,shd-optimize,shd-insert-collectives,shd-annotate-cost))' | FileCheck %s
// RUN: shardc-test-opt %s --pass-pipeline='builtin.module(shd.program(shd-fusion-groups,shd-optimize,shd-insert-collectives,shd-annotate-cost),convert-shd-to-spmd)' | FileCheck %s --check-prefix=SPMD

// The columns of x are split over 8 devices. So are those of y; s is a partial
// sum on each device, which an all_reduce adds up, since s is stored whole.
// PARSED-LABEL: shd.program "leader"
// PARSED: test.double_and_sum(%x) <[B, D] -> [B, D], [B]> leader {shd.name = ["y", "s"], shd.result_pin = [unit, #shd.sharding<[{}]>]}
// SPREAD-LABEL: shd.program "leader"
// SPREAD: test.double_and_sum
// SPREAD-SAME: shd.result_pin = [#shd.sharding<[{}, {X}]>, #shd.sharding<[{}]>]
// PLAN-LABEL: shd.program "leader"
// PLAN: test.double_and_sum
// PLAN-SAME: shd.made = [#shd.sharding<[{}, {X}]>, #shd.sharding<[{}], partial = {X}>]
// PLAN-SAME: shd.operand_pins = [#shd.sharding<[{}, {X}]>]
// PLAN-SAME: shd.result_pin = [#shd.sharding<[{}, {X}]>, #shd.sharding<[{}]>]
// CHECK-LABEL: shd.program "leader"
// One device has 1024 columns: 2 FLOP for each of its 4096 * 1024 elements. It
// reads and writes these, 4 B each, and writes the 4096 sums: 33570816 B.
// CHECK: %[[Y:.*]], %[[P:.*]] = test.double_and_sum(%x)
// CHECK-SAME: shd.group_cost = #shd.group_cost<flops = 0.0{{[0-9e+]*}}, vector_flops = 8.388608e+06, hbm_bytes = 3.3570816e+07
// CHECK-SAME: -> (tensor<4096x8192xf32, #shd.sharding<[{}, {X}]>>, tensor<4096xf32, #shd.sharding<[{}], partial = {X}>>)
// CHECK: %[[S:.*]] = shd.all_reduce %[[P]] over ["X"]
// CHECK-SAME: shd.indices = ["B"], shd.operand = "s"
// CHECK: shd.output "y" %[[Y]]
// CHECK: shd.output "s" %[[S]]
// SPMD-LABEL: spmd.program "leader"
// SPMD: test.double_and_sum
// SPMD-SAME: shd.name = ["y", "s"]
// SPMD-SAME: spmd.global = [tensor<4096x8192xf32, #shd.sharding<[{}, {X}]>>, tensor<4096xf32, #shd.sharding<[{}], partial = {X}>>]
// SPMD-SAME: spmd.shards = [#spmd.shard<"D" = 8192 over [X]>]
// SPMD-SAME: (tensor<4096x1024xf32>) -> (tensor<4096x1024xf32>, tensor<4096xf32>)
shd.program "leader" mesh <[X = 8]> hardware <"h100", [8]> {
  %x = shd.declare input "x" ["B", "D"] {shd.result_pin = #shd.sharding<[{}, {X}]>} : tensor<4096x8192xf32>
  %y, %s = test.double_and_sum(%x) <[B, D] -> [B, D], [B]> leader {shd.name = ["y", "s"], shd.result_pin = [unit, #shd.sharding<[{}]>]} : (tensor<4096x8192xf32>) -> (tensor<4096x8192xf32>, tensor<4096xf32>)
  shd.output "y" %y ["B", "D"] {shd.operand_pins = [#shd.sharding<[{}, {X}]>]} : tensor<4096x8192xf32>
  shd.output "s" %s ["B"] {shd.operand_pins = [#shd.sharding<[{}]>]} : tensor<4096xf32>
}

// What reads the leader's first result joins its group; what reads another one
// does not, and so moves it for itself.
// GROUPS-LABEL: shd.program "groups"
// GROUPS: test.double_and_sum{{.*}} {shd.group = #shd.group<0>}
// GROUPS: shd.elementwise neg{{.*}} {shd.group = #shd.group<0, rest>}
// GROUPS: shd.elementwise exp{{.*}} {shd.group = #shd.group<1, rest>}
// GROUPS: shd.elementwise mul{{.*}} {shd.group = #shd.group<1, rest>}
// CHECK-LABEL: shd.program "groups"
// CHECK: shd.output "z"
shd.program "groups" mesh <[X = 8]> hardware <"h100", [8]> {
  %x = shd.declare input "x" ["B", "D"] {shd.result_pin = #shd.sharding<[{}, {X}]>} : tensor<4096x8192xf32>
  %y, %s = test.double_and_sum(%x) <[B, D] -> [B, D], [B]> leader : (tensor<4096x8192xf32>) -> (tensor<4096x8192xf32>, tensor<4096xf32>)
  %n = shd.elementwise neg(%y) <[B, D] -> [B, D]> : (tensor<4096x8192xf32>) -> tensor<4096x8192xf32>
  %e = shd.elementwise exp(%s) <[B] -> [B]> : (tensor<4096xf32>) -> tensor<4096xf32>
  %m = shd.elementwise mul(%e, %s) <[B], [B] -> [B]> : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xf32>
  shd.output "z" %n ["B", "D"] : tensor<4096x8192xf32>
  shd.output "m" %m ["B"] : tensor<4096xf32>
}

// A row operation behind a product starts a group: both results are of that,
// and each may leave it.
// GROUPS-LABEL: shd.program "behind"
// GROUPS: test.double_and_sum{{.*}} {shd.group = #shd.group<1, rest>}
// GROUPS: shd.elementwise div{{.*}} {shd.group = #shd.group<1, rest>}
// CHECK-LABEL: shd.program "behind"
// CHECK: test.double_and_sum
// CHECK-SAME: -> (tensor<4096x8192xf32, #shd.sharding<[{X}, {}]>>, tensor<4096xf32, #shd.sharding<[{X}]>>)
shd.program "behind" mesh <[X = 8]> hardware <"h100", [8]> {
  %a = shd.declare input "a" ["B", "D"] {shd.result_pin = #shd.sharding<[{X}, {}]>} : tensor<4096x8192xf32>
  %w = shd.declare weight "w" ["D", "F"] : tensor<8192x8192xf32>
  %h = shd.einsum(%a, %w) <[B, D], [D, F] -> [B, F]> : (tensor<4096x8192xf32>, tensor<8192x8192xf32>) -> tensor<4096x8192xf32>
  %y, %s = test.double_and_sum(%h) <[B, F] -> [B, F], [B]> : (tensor<4096x8192xf32>) -> (tensor<4096x8192xf32>, tensor<4096xf32>)
  %d = shd.elementwise div(%y, %s) <[B, F], [B] -> [B, F]> : (tensor<4096x8192xf32>, tensor<4096xf32>) -> tensor<4096x8192xf32>
  shd.output "d" %d ["B", "F"] : tensor<4096x8192xf32>
  shd.output "s" %s ["B"] : tensor<4096xf32>
}
