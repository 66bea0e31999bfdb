// RUN: shardc-opt %s --pass-pipeline='builtin.module(shd.program(shd-fusion-groups,shd-optimize))' | FileCheck %s

// H100: 9.89e14 bf16 FLOP/s. Whatever index is sharded, one device has an eighth
// of 2 * 4096 * 8192 * 16384 FLOP: 137438953472 / 9.89e14 s = 138967597 ps, more
// than any HBM traffic here takes, and nothing has to move: no plan is cheaper.
// CHECK-LABEL: shd.program "one_product"
// CHECK-SAME: shd.plan = {bound_ps = 138967597 : i64, objective = "upper", status = "optimal", value_ps = 138967597 : i64}
shd.program "one_product" mesh <[X = 8]> hardware <"h100", [8]> {
  // Rows are given; the weight must then be whole, and the result follows.
  // CHECK: %x = {{.*}}shd.result_pin = #shd.sharding<[{X}, {}]>
  %x = shd.declare input "x" ["B", "D"] {shd.result_pin = #shd.sharding<[{X}, {?}]>} : tensor<4096x8192xbf16>
  // CHECK: %w = {{.*}}shd.result_pin = #shd.sharding<[{}, {}]>
  %w = shd.declare weight "w" ["D", "F"] : tensor<8192x16384xbf16>
  // CHECK: shd.einsum{{.*}}shd.made = #shd.sharding<[{X}, {}]>
  // CHECK-SAME: shd.operand_pins = [#shd.sharding<[{X}, {}]>, #shd.sharding<[{}, {}]>]
  // CHECK-SAME: shd.result_pin = #shd.sharding<[{X}, {}]>
  %y = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> : (tensor<4096x8192xbf16>, tensor<8192x16384xbf16>) -> tensor<4096x16384xbf16>
  // CHECK: shd.output "y"{{.*}}shd.operand_pins = [#shd.sharding<[{X}, {}]>]
  shd.output "y" %y ["B", "F"] : tensor<4096x16384xbf16>
}

// A limit that leaves no room for the whole weight, 8192 * 16384 * 2 B: the plan
// says that it does not fit.
// RUN: shardc-opt %s --pass-pipeline='builtin.module(shd.program(shd-fusion-groups,shd-optimize{memory-limit=1000}))' | FileCheck %s --check-prefix=TIGHT
// TIGHT-LABEL: shd.program "one_product"
// TIGHT-SAME: status = "infeasible"

// As written: y is replicated, since nothing is said of it, and therefore
// gathered: 4096 * 16384 * 2 B * 7/8 / 450e9 s = 260978916 ps more.
// RUN: shardc-opt %s --pass-pipeline='builtin.module(shd.program(shd-replicate-open,shd-fusion-groups,shd-optimize{fixed=true}))' | FileCheck %s --check-prefix=FIXED
// FIXED-LABEL: shd.program "one_product"
// FIXED-SAME: status = "fixed", value_ps = 399946513 : i64

// A weight that two products read whole is gathered once: V = 4096 * 8192 * 2 B,
// V * 7/8 / 450e9 s = 130489458 ps. One device has 65536 / 8 rows: a product is
// 2 * 8192 * 4096 * 8192 FLOP, 549755813888 / 9.89e14 s = 555870388 ps, each.
// CHECK-LABEL: shd.program "copy"
// CHECK-SAME: value_ps = 1242230234 : i64
shd.program "copy" mesh <[X = 8]> hardware <"h100", [8]> {
  %x = shd.declare input "x" ["B", "D"] {shd.result_pin = #shd.sharding<[{X}, {}]>} : tensor<65536x4096xbf16>
  %u = shd.declare input "u" ["B", "D"] {shd.result_pin = #shd.sharding<[{X}, {}]>} : tensor<65536x4096xbf16>
  %w = shd.declare weight "w" ["D", "F"] {shd.result_pin = #shd.sharding<[{X}, {}]>} : tensor<4096x8192xbf16>
  // CHECK: %[[COPY:.*]] = shd.reshard(%w){{.*}}shd.copy, {{.*}}shd.operand_pins = [#shd.sharding<[{X}, {}]>], shd.result_pin = #shd.sharding<[{}, {}]>
  // CHECK: shd.einsum(%x, %[[COPY]])
  %y = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> : (tensor<65536x4096xbf16>, tensor<4096x8192xbf16>) -> tensor<65536x8192xbf16>
  // CHECK: shd.einsum(%u, %[[COPY]])
  %z = shd.einsum(%u, %w) <[B, D], [D, F] -> [B, F]> : (tensor<65536x4096xbf16>, tensor<4096x8192xbf16>) -> tensor<65536x8192xbf16>
  shd.output "y" %y ["B", "F"] : tensor<65536x8192xbf16>
  shd.output "z" %z ["B", "F"] : tensor<65536x8192xbf16>
}

// What the rest of a group and others read of its leader is moved once, before
// it is stored: the partial sum h, 64 * 64 * 2 B, is all-reduced, which takes its
// latency, 2 * 3 us * log2(4) = 12 us. The product reads two parts of 64 * 2^18 *
// 2 B and writes 8192 B: 67117056 B / 3.35e12 B/s = 20034942 ps. relu reads and
// writes 8192 B: 4891 ps. Moved for each of its readers h costs 12 us more.
// CHECK-LABEL: shd.program "read_by_its_group"
// CHECK-SAME: status = "optimal", value_ps = 32039833 : i64
shd.program "read_by_its_group" mesh <[X = 4]> hardware <"h100", [4]> {
  %x = shd.declare input "x" ["B", "D"] {shd.result_pin = #shd.sharding<[{}, {X}]>} : tensor<64x1048576xbf16>
  %w = shd.declare weight "w" ["D", "F"] {shd.result_pin = #shd.sharding<[{X}, {}]>} : tensor<1048576x64xbf16>
  // CHECK: shd.einsum{{.*}}shd.made = #shd.sharding<[{}, {}], partial = {X}>
  // CHECK-SAME: shd.result_pin = #shd.sharding<[{}, {}]>
  %h = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> : (tensor<64x1048576xbf16>, tensor<1048576x64xbf16>) -> tensor<64x64xbf16>
  %y = shd.elementwise relu(%h) <[B, F] -> [B, F]> : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
  shd.output "h" %h ["B", "F"] {shd.operand_pins = [#shd.sharding<[{}, {}]>]} : tensor<64x64xbf16>
  shd.output "y" %y ["B", "F"] {shd.operand_pins = [#shd.sharding<[{}, {}]>]} : tensor<64x64xbf16>
}

// One stacked weight that two repeats read, the second in reverse: one layout,
// and as many gathers as parts are read. A part is 8192 * 8192 * 2 B =
// 134217728 B, whose gather takes 260978916 ps as above; a product is
// 2 * 4096 * 8192 * 8192 FLOP / 8, half of that of one_product: 69483799 ps.
// 6 * (260978916 + 69483799) = 1982776290 ps.
// CHECK-LABEL: shd.program "two_repeats"
// CHECK-SAME: value_ps = 1982776290 : i64
shd.program "two_repeats" mesh <[X = 8]> hardware <"h100", [8]> {
  %x = shd.declare input "x" ["B", "D"] {shd.result_pin = #shd.sharding<[{X}, {}]>} : tensor<4096x8192xbf16>
  // CHECK: %w = shd.declare weight "w" ["L", "D", "F"] stacked 1 {shd.result_pin = #shd.sharding<[{}, {X}, {}]>}
  %w = shd.declare weight "w" ["L", "D", "F"] stacked 1 {shd.result_pin = #shd.sharding<[{}, {X}, {}]>} : tensor<3x8192x8192xbf16>
  %y = shd.repeat "L" = 3(%x) {shd.operand_pins = [#shd.sharding<[{X}, {}]>]} : (tensor<4096x8192xbf16>) -> tensor<4096x8192xbf16> {
  ^bb0(%i: tensor<i32>, %c: tensor<4096x8192xbf16>):
    %w_i = shd.part %w[%i] : tensor<3x8192x8192xbf16> -> tensor<8192x8192xbf16>
    %d = shd.einsum(%c, %w_i) <[B, D], [D, F] -> [B, F]> {shd.operand_pins = [unit, #shd.sharding<[{}, {}]>]} : (tensor<4096x8192xbf16>, tensor<8192x8192xbf16>) -> tensor<4096x8192xbf16>
    shd.yield %d : tensor<4096x8192xbf16>
  }
  %z = shd.repeat "L" = 3 reverse(%y) {shd.operand_pins = [#shd.sharding<[{X}, {}]>]} : (tensor<4096x8192xbf16>) -> tensor<4096x8192xbf16> {
  ^bb0(%i: tensor<i32>, %c: tensor<4096x8192xbf16>):
    %w_i = shd.part %w[%i] : tensor<3x8192x8192xbf16> -> tensor<8192x8192xbf16>
    %d = shd.einsum(%c, %w_i) <[B, F], [D, F] -> [B, D]> {shd.operand_pins = [unit, #shd.sharding<[{}, {}]>]} : (tensor<4096x8192xbf16>, tensor<8192x8192xbf16>) -> tensor<4096x8192xbf16>
    shd.yield %d : tensor<4096x8192xbf16>
  }
  shd.output "z" %z ["B", "D"] {shd.operand_pins = [#shd.sharding<[{X}, {}]>]} : tensor<4096x8192xbf16>
}

// Little effort is an effort: one product is still solved to the end.
// RUN: shardc-opt %s --pass-pipeline='builtin.module(shd.program(shd-fusion-groups,shd-optimize{objective=scheduled effort=0.05}))' | FileCheck %s --check-prefix=LITTLE
// LITTLE-LABEL: shd.program "one_product"
// LITTLE-SAME: status = "optimal", value_ps = 138967597 : i64
