// RUN: shardc-opt %s --pass-pipeline='builtin.module(shd.program(shd-annotate-cost))' | FileCheck %s

// H100: 9.89e14 bf16 FLOP/s, 3.35e13 vector FLOP/s, 3.35e12 B/s.

// One device has 512 rows. The einsum: 2 * 512 * 8192 * 16384 = 137438953472
// FLOP, 138.97 us. It reads x (512 x 8192) and w (8192 x 16384) and the group
// writes r (512 x 16384), 2 B each: 293601280 B, 87.64 us; h stays on the chip.
// The relu: one FLOP for each of 512 * 16384 = 8388608 elements, 0.25 us.
// CHECK-LABEL: shd.program "fused"
shd.program "fused" mesh <[X = 8]> hardware <"h100", [8]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<4096x8192xbf16, #shd.sharding<[{X}, {}]>>
  %w = shd.declare weight "w" ["D", "F"] : tensor<8192x16384xbf16, #shd.sharding<[{}, {}]>>
  // CHECK: shd.einsum{{.*}}shd.group = #shd.group<0>, shd.group_cost = #shd.group_cost<flops = 1.37438953472e+11, vector_flops = 8.388608e+06, hbm_bytes = 2.9360128e+08, matrix_s = 1.389675970394{{[0-9]*}}e-04, vector_s = 2.504062089552{{[0-9]*}}e-07, hbm_s = 8.764217313432{{[0-9]*}}e-05>
  %h = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> {shd.group = #shd.group<0>} : (tensor<4096x8192xbf16, #shd.sharding<[{X}, {}]>>, tensor<8192x16384xbf16, #shd.sharding<[{}, {}]>>) -> tensor<4096x16384xbf16, #shd.sharding<[{X}, {}]>>
  // What is costed with the leader has its number.
  // CHECK: shd.elementwise relu{{.*}} {shd.group = #shd.group<0>} :
  %r = shd.elementwise relu(%h) <[B, F] -> [B, F]> {shd.group = #shd.group<0, rest>} : (tensor<4096x16384xbf16, #shd.sharding<[{X}, {}]>>) -> tensor<4096x16384xbf16, #shd.sharding<[{X}, {}]>>
  shd.output "r" %r ["B", "F"] : tensor<4096x16384xbf16, #shd.sharding<[{X}, {}]>>
}

// A collective between leader and rest: each part by itself. The einsum sums
// over a sharded D: 2 * 4096 * 1024 * 16384 FLOP, as many as above; it reads
// x (4096 x 1024) and w (1024 x 16384), writes h (4096 x 16384): 8388608 +
// 33554432 + 134217728 = 176160768 B. The relu reads and writes 512 x 16384:
// 2 * 16777216 B, 10.02 us.
// CHECK-LABEL: shd.program "split"
shd.program "split" mesh <[X = 8]> hardware <"h100", [8]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<4096x8192xbf16, #shd.sharding<[{}, {X}]>>
  %w = shd.declare weight "w" ["D", "F"] : tensor<8192x16384xbf16, #shd.sharding<[{X}, {}]>>
  // CHECK: shd.einsum{{.*}}shd.group = #shd.group<0>, shd.group_cost = #shd.group_cost<flops = 1.37438953472e+11, vector_flops = 0.0{{[0-9e+]*}}, hbm_bytes = 1.76160768e+08,
  %h = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> {shd.group = #shd.group<0>} : (tensor<4096x8192xbf16, #shd.sharding<[{}, {X}]>>, tensor<8192x16384xbf16, #shd.sharding<[{X}, {}]>>) -> tensor<4096x16384xbf16, #shd.sharding<[{}, {}], partial = {X}>>
  %s = shd.reduce_scatter %h over ["X"] : tensor<4096x16384xbf16, #shd.sharding<[{}, {}], partial = {X}>> -> tensor<4096x16384xbf16, #shd.sharding<[{X}, {}]>>
  // CHECK: shd.elementwise relu{{.*}}shd.group = #shd.group<0, rest>, shd.group_cost = #shd.group_cost<flops = 0.0{{[0-9e+]*}}, vector_flops = 8.388608e+06, hbm_bytes = 3.3554432e+07, matrix_s = 0.0{{[0-9e+]*}}, vector_s = 2.504062089552{{[0-9]*}}e-07, hbm_s = 1.00162483582{{[0-9]*}}e-05>
  %r = shd.elementwise relu(%s) <[B, F] -> [B, F]> {shd.group = #shd.group<0, rest>} : (tensor<4096x16384xbf16, #shd.sharding<[{X}, {}]>>) -> tensor<4096x16384xbf16, #shd.sharding<[{X}, {}]>>
  shd.output "r" %r ["B", "F"] : tensor<4096x16384xbf16, #shd.sharding<[{X}, {}]>>
}

// The leader's value is read outside too, so it is written: x 8388608 B,
// w 268435456 B, h and r 16777216 B each.
// CHECK-LABEL: shd.program "read_outside"
shd.program "read_outside" mesh <[X = 8]> hardware <"h100", [8]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<4096x8192xbf16, #shd.sharding<[{X}, {}]>>
  %w = shd.declare weight "w" ["D", "F"] : tensor<8192x16384xbf16, #shd.sharding<[{}, {}]>>
  // CHECK: shd.einsum{{.*}}hbm_bytes = 3.10378496e+08,
  %h = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> {shd.group = #shd.group<0>} : (tensor<4096x8192xbf16, #shd.sharding<[{X}, {}]>>, tensor<8192x16384xbf16, #shd.sharding<[{}, {}]>>) -> tensor<4096x16384xbf16, #shd.sharding<[{X}, {}]>>
  %r = shd.elementwise relu(%h) <[B, F] -> [B, F]> {shd.group = #shd.group<0, rest>} : (tensor<4096x16384xbf16, #shd.sharding<[{X}, {}]>>) -> tensor<4096x16384xbf16, #shd.sharding<[{X}, {}]>>
  shd.output "h" %h ["B", "F"] : tensor<4096x16384xbf16, #shd.sharding<[{X}, {}]>>
  shd.output "r" %r ["B", "F"] : tensor<4096x16384xbf16, #shd.sharding<[{X}, {}]>>
}

// A group of casts that only einsums use is computed by each of them: it has no
// cost of its own, and both read the int8 weight, 8192 * 2048 B. They read x
// (64 x 8192) and write y (64 x 2048), 2 B each: 1048576 + 16777216 + 262144 =
// 18087936 B. A cast is no arithmetic.
// CHECK-LABEL: shd.program "prologue"
shd.program "prologue" mesh <[X = 8]> hardware <"h100", [8]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<64x8192xbf16, #shd.sharding<[{}, {}]>>
  %w = shd.declare weight "w" ["D", "F"] : tensor<8192x16384xi8, #shd.sharding<[{}, {X}]>>
  // CHECK: shd.elementwise cast{{.*}} {shd.group = #shd.group<0, rest>} :
  %c = shd.elementwise cast(%w) <[D, F] -> [D, F]> {shd.group = #shd.group<0, rest>} : (tensor<8192x16384xi8, #shd.sharding<[{}, {X}]>>) -> tensor<8192x16384xbf16, #shd.sharding<[{}, {X}]>>
  // CHECK: shd.einsum{{.*}}vector_flops = 0.0{{[0-9e+]*}}, hbm_bytes = 1.8087936e+07,
  %y = shd.einsum(%x, %c) <[B, D], [D, F] -> [B, F]> {shd.group = #shd.group<1>} : (tensor<64x8192xbf16, #shd.sharding<[{}, {}]>>, tensor<8192x16384xbf16, #shd.sharding<[{}, {X}]>>) -> tensor<64x16384xbf16, #shd.sharding<[{}, {X}]>>
  // CHECK: shd.einsum{{.*}}vector_flops = 0.0{{[0-9e+]*}}, hbm_bytes = 1.8087936e+07,
  %z = shd.einsum(%x, %c) <[B, D], [D, F] -> [B, F]> {shd.group = #shd.group<2>} : (tensor<64x8192xbf16, #shd.sharding<[{}, {}]>>, tensor<8192x16384xbf16, #shd.sharding<[{}, {X}]>>) -> tensor<64x16384xbf16, #shd.sharding<[{}, {X}]>>
  shd.output "y" %y ["B", "F"] : tensor<64x16384xbf16, #shd.sharding<[{}, {X}]>>
  shd.output "z" %z ["B", "F"] : tensor<64x16384xbf16, #shd.sharding<[{}, {X}]>>
}

// One of its users stands behind a collective: the cast runs by itself for that
// one, reading 16777216 B and writing twice that.
// CHECK-LABEL: shd.program "stored_prologue"
shd.program "stored_prologue" mesh <[X = 8]> hardware <"h100", [8]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<64x8192xbf16, #shd.sharding<[{}, {}]>>
  %w = shd.declare weight "w" ["D", "F"] : tensor<8192x16384xi8, #shd.sharding<[{}, {X}]>>
  // CHECK: shd.elementwise cast{{.*}}vector_flops = 0.0{{[0-9e+]*}}, hbm_bytes = 5.0331648e+07,
  %c = shd.elementwise cast(%w) <[D, F] -> [D, F]> {shd.group = #shd.group<0, rest>} : (tensor<8192x16384xi8, #shd.sharding<[{}, {X}]>>) -> tensor<8192x16384xbf16, #shd.sharding<[{}, {X}]>>
  // CHECK: shd.einsum{{.*}}vector_flops = 0.0{{[0-9e+]*}}, hbm_bytes = 1.8087936e+07,
  %y = shd.einsum(%x, %c) <[B, D], [D, F] -> [B, F]> {shd.group = #shd.group<1>} : (tensor<64x8192xbf16, #shd.sharding<[{}, {}]>>, tensor<8192x16384xbf16, #shd.sharding<[{}, {X}]>>) -> tensor<64x16384xbf16, #shd.sharding<[{}, {X}]>>
  %g = shd.all_gather %c over ["X"] : tensor<8192x16384xbf16, #shd.sharding<[{}, {X}]>> -> tensor<8192x16384xbf16, #shd.sharding<[{}, {}]>>
  // x, 8192 * 16384 bf16 and z (64 x 16384): 1048576 + 268435456 + 2097152 B.
  // CHECK: shd.einsum{{.*}}vector_flops = 0.0{{[0-9e+]*}}, hbm_bytes = 2.71581184e+08,
  %z = shd.einsum(%x, %g) <[B, D], [D, F] -> [B, F]> {shd.group = #shd.group<2>} : (tensor<64x8192xbf16, #shd.sharding<[{}, {}]>>, tensor<8192x16384xbf16, #shd.sharding<[{}, {}]>>) -> tensor<64x16384xbf16, #shd.sharding<[{}, {}]>>
  shd.output "y" %y ["B", "F"] : tensor<64x16384xbf16, #shd.sharding<[{}, {X}]>>
  shd.output "z" %z ["B", "F"] : tensor<64x16384xbf16, #shd.sharding<[{}, {}]>>
}
