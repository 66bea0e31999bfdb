// Operations of another dialect (test/lib), which no pass knows, are planned,
// priced and lowered by what their interfaces say of them.

// RUN: shardc-test-opt %s --shd-plan | FileCheck %s --check-prefix=PLAN
// RUN: shardc-test-opt %s --shd-plan --convert-shd-to-spmd | FileCheck %s --check-prefix=SPMD
// RUN: not shardc-opt %s --shd-plan 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// UNKNOWN: error: Dialect `test' not found

// PLAN-LABEL: shd.program "outer"
// PLAN-SAME:  status = "optimal"
// SPMD-LABEL: spmd.program "outer"
shd.program "outer" mesh <[X = 4]> hardware <"h100", [4]> {
  %x = shd.declare input "x" ["B", "I"] {shd.result_pin = #shd.sharding<[{}, {}]>} : tensor<64x128xi8>
  %y = shd.declare weight "y" ["B", "J"] {shd.result_pin = #shd.sharding<[{}, {X}]>} : tensor<64x256xbf16>

  // A prologue of the product: it has no price of its own.
  // PLAN: %[[C:.*]] = shd.elementwise cast{{.*}} {shd.group = #shd.group<0, rest>} :
  %c = shd.elementwise cast(%x) <[B, I] -> [B, I]> : (tensor<64x128xi8>) -> tensor<64x128xbf16>

  // One device has 64 of J: 2 * 64 * 128 * 64 = 1048576 FLOP. The product reads
  // 64 * 128 B of x, 64 * 64 * 2 B of y and writes 64 * 128 * 64 * 2 B: 1064960 B.
  // PLAN: %[[O:.*]] = test.scaled_outer(%[[C]], %y) by 5.000000e-01 <[B, I], [B, J] -> [B, I, J]>
  // PLAN-SAME: shd.group = #shd.group<1>, shd.group_cost = #shd.group_cost<flops = 1.048576e+06, vector_flops = 0.0{{.*}}, hbm_bytes = 1.06496e+06,
  // PLAN-SAME: shd.prologues = [#shd.group<0, rest>]
  // PLAN-SAME: -> tensor<64x128x256xbf16, #shd.sharding<[{}, {}, {X}]>>
  // SPMD: test.scaled_outer{{.*}}spmd.shards = [#spmd.shard<"J" = 256 over [X]>]} : (tensor<64x128xbf16>, tensor<64x64xbf16>) -> tensor<64x128x64xbf16>
  %o = test.scaled_outer(%c, %y) by 5.0e-01 <[B, I], [B, J] -> [B, I, J]> : (tensor<64x128xbf16>, tensor<64x256xbf16>) -> tensor<64x128x256xbf16>

  // The share needs whole rows, so it is a kernel of its own, with as many FLOP
  // on the vector units; it reads and writes 2 * 1048576 B. J is split: the
  // devices agree on the sum, 64 * 128 * 4 B.
  // PLAN: %[[T:.*]] = shd.statistic "sum"(%[[O]])
  // PLAN: %[[SUM:.*]] = shd.all_reduce %[[T]] over ["X"] cost <bytes = 3.2768e+04,
  // PLAN: test.share(%[[O]]) over "J" <[B, I, J] -> [B, I, J]> stats(%[[SUM]] : tensor<64x128xf32, #shd.sharding<[{}, {}]>>) {shd.group = #shd.group<2, rest>, shd.group_cost = #shd.group_cost<flops = 0.0{{.*}}, vector_flops = 1.048576e+06, hbm_bytes = 2.097152e+06,
  // SPMD: spmd.all_reduce
  // SPMD: test.share{{.*}} -> tensor<64x128x64xbf16>
  %s = test.share(%o) over "J" <[B, I, J] -> [B, I, J]> {shd.operand_pins = [#shd.sharding<[{}, {}, {X}]>]} : (tensor<64x128x256xbf16>) -> tensor<64x128x256xbf16>
  // SPMD: spmd.output "s" %{{.*}} : tensor<64x128x64xbf16>
  shd.output "s" %s ["B", "I", "J"] {shd.operand_pins = [#shd.sharding<[{}, {}, {X}]>]} : tensor<64x128x256xbf16>
}
