// Operations of another dialect (test/lib) that no pass knows are planned,
// priced and lowered by what their interfaces say of them.

// RUN: shardc-test-opt %s --shd-plan | FileCheck %s --check-prefix=PLAN
// RUN: shardc-test-opt %s --shd-plan --convert-shd-to-spmd | FileCheck %s --check-prefix=SPMD
// RUN: not shardc-opt %s --shd-plan 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// UNKNOWN: error: {{.*}}'test'

// PLAN-LABEL: shd.program "outer"
// SPMD-LABEL: spmd.program "outer"
shd.program "outer" mesh <[X = 4]> hardware <"tpu_v5e", [4]> {
  %x = shd.declare input "x" ["B", "I"] {shd.result_pin = #shd.sharding<[{}, {}]>} : tensor<64x128xi8>
  %y = shd.declare weight "y" ["B", "J"] {shd.result_pin = #shd.sharding<[{}, {X}]>} : tensor<64x256xbf16>
  %c = shd.elementwise cast(%x) <[B, I] -> [B, I]> : (tensor<64x128xi8>) -> tensor<64x128xbf16>
  %o = test.scaled_outer(%c, %y) by 5.0e-01 <[B, I], [B, J] -> [B, I, J]> : (tensor<64x128xbf16>, tensor<64x256xbf16>) -> tensor<64x128x256xbf16>
  %s = test.share(%o) over "J" <[B, I, J] -> [B, I, J]> : (tensor<64x128x256xbf16>) -> tensor<64x128x256xbf16>
  shd.output "s" %s ["B", "I", "J"] {shd.operand_pins = [#shd.sharding<[{}, {}, {X}]>]} : tensor<64x128x256xbf16>
}
