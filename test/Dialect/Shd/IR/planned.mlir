// RUN: shardc-opt %s | shardc-opt | FileCheck %s
// RUN: shardc-opt %s --mlir-print-op-generic | shardc-opt | FileCheck %s

// Planned programs: types carry shardings, and communication is explicit.

// CHECK-LABEL: shd.program "matmul"
shd.program "matmul" mesh <[X = 4, Y = 2]> hardware <"tpu_v5e", [4, 2]> {
  // CHECK: %a = shd.declare input "a" ["B", "D"] : tensor<8x16xbf16, #shd.sharding<[{X}, {Y}]>>
  %a = shd.declare input "a" ["B", "D"] : tensor<8x16xbf16, #shd.sharding<[{X}, {Y}]>>
  %b = shd.declare weight "b" ["D", "F"] : tensor<16x32xbf16, #shd.sharding<[{Y}, {}]>>
  %h = shd.einsum(%a, %b) <[B, D], [D, F] -> [B, F]> {shd.group = #shd.group<1>, shd.group_cost = #shd.group_cost<flops = 4.096e+03, vector_flops = 0.0, hbm_bytes = 1.0e-01, matrix_s = 1.0, vector_s = 0.0, hbm_s = 2.5e-07>} : (tensor<8x16xbf16, #shd.sharding<[{X}, {Y}]>>, tensor<16x32xbf16, #shd.sharding<[{Y}, {}]>>) -> tensor<8x32xbf16, #shd.sharding<[{X}, {}], partial = {Y}>>
  // CHECK: shd.group_cost = #shd.group_cost<flops = 4.096e+03, vector_flops = 0.0e+00, hbm_bytes = 1.0e-01, matrix_s = 1.0e+00, vector_s = 0.0e+00, hbm_s = 2.5e-07>
  // CHECK-SAME: partial = {Y}
  // A sum over a sharded index stays partial through linear operations.
  %n = shd.elementwise neg(%h) <[B, F] -> [F, B]> : (tensor<8x32xbf16, #shd.sharding<[{X}, {}], partial = {Y}>>) -> tensor<32x8xbf16, #shd.sharding<[{}, {X}], partial = {Y}>>
  // CHECK: shd.reduce_scatter %{{.*}} over ["Y"] {shd.indices = ["F", "B"], shd.operand = "n", shd.store} : tensor<32x8xbf16, #shd.sharding<[{}, {X}], partial = {Y}>> -> tensor<32x8xbf16, #shd.sharding<[{Y}, {X}]>>
  %rs = shd.reduce_scatter %n over ["Y"] {shd.operand = "n", shd.indices = ["F", "B"], shd.store} : tensor<32x8xbf16, #shd.sharding<[{}, {X}], partial = {Y}>> -> tensor<32x8xbf16, #shd.sharding<[{Y}, {X}]>>
  // CHECK: shd.all_reduce %{{.*}} over ["Y"] cost <bytes = 1.024e+03, wire_bytes = 5.12e+02, bandwidth_s = 1.2345678901234567e-08, latency_s = 1.0e-06, networks = [x, y]> :
  %ar = shd.all_reduce %n over ["Y"] cost <bytes = 1024.0, wire_bytes = 512.0, bandwidth_s = 1.2345678901234567e-08, latency_s = 1.0e-06, networks = [x, y]> : tensor<32x8xbf16, #shd.sharding<[{}, {X}], partial = {Y}>> -> tensor<32x8xbf16, #shd.sharding<[{}, {X}]>>
  // CHECK: shd.all_gather %{{.*}} over ["X", "Y"] : tensor<32x8xbf16, #shd.sharding<[{Y}, {X}]>> -> tensor<32x8xbf16, #shd.sharding<[{}, {}]>>
  %ag = shd.all_gather %rs over ["X", "Y"] : tensor<32x8xbf16, #shd.sharding<[{Y}, {X}]>> -> tensor<32x8xbf16, #shd.sharding<[{}, {}]>>
  // CHECK: shd.all_slice %{{.*}} over ["Y"] : tensor<32x8xbf16, #shd.sharding<[{}, {}]>> -> tensor<32x8xbf16, #shd.sharding<[{Y}, {}]>>
  %as = shd.all_slice %ag over ["Y"] : tensor<32x8xbf16, #shd.sharding<[{}, {}]>> -> tensor<32x8xbf16, #shd.sharding<[{Y}, {}]>>
  // CHECK: shd.all_to_all %{{.*}} over ["Y"] : tensor<32x8xbf16, #shd.sharding<[{Y}, {}]>> -> tensor<32x8xbf16, #shd.sharding<[{}, {Y}]>>
  %aa = shd.all_to_all %as over ["Y"] : tensor<32x8xbf16, #shd.sharding<[{Y}, {}]>> -> tensor<32x8xbf16, #shd.sharding<[{}, {Y}]>>
  // Axis order changes which device holds which part, not the parts' shapes.
  %xy = shd.all_slice %ag over ["X", "Y"] : tensor<32x8xbf16, #shd.sharding<[{}, {}]>> -> tensor<32x8xbf16, #shd.sharding<[{}, {X, Y}]>>
  // CHECK: shd.collective_permute %{{.*}} over ["X", "Y"] : tensor<32x8xbf16, #shd.sharding<[{}, {X, Y}]>> -> tensor<32x8xbf16, #shd.sharding<[{}, {Y, X}]>>
  %cp = shd.collective_permute %xy over ["X", "Y"] : tensor<32x8xbf16, #shd.sharding<[{}, {X, Y}]>> -> tensor<32x8xbf16, #shd.sharding<[{}, {Y, X}]>>
  // CHECK: %[[HALO:.*]] = shd.halo_exchange %{{.*}} dim 0 rows 8 over ["Y"] : tensor<32x8xbf16, #shd.sharding<[{Y}, {}]>> -> tensor<32x8xbf16, #shd.sharding<[{}, {}]>>
  %he = shd.halo_exchange %as dim 0 rows 8 over ["Y"] : tensor<32x8xbf16, #shd.sharding<[{Y}, {}]>> -> tensor<32x8xbf16, #shd.sharding<[{}, {}]>>
  shd.output "y" %cp ["F", "B"] : tensor<32x8xbf16, #shd.sharding<[{}, {Y, X}]>>
}

// Devices agree on the maxima before the softmax over a sharded index.
// CHECK-LABEL: shd.program "statistics"
shd.program "statistics" mesh <[X = 4]> {
  %x = shd.declare input "x" ["B", "S"] : tensor<8x16xf32, #shd.sharding<[{}, {X}]>>
  // CHECK: shd.statistic "max"(%x) : (tensor<8x16xf32, #shd.sharding<[{}, {X}]>>) -> tensor<8xf32, #shd.sharding<[{}], partial = {X}>>
  %m = shd.statistic "max"(%x) : (tensor<8x16xf32, #shd.sharding<[{}, {X}]>>) -> tensor<8xf32, #shd.sharding<[{}], partial = {X}>>
  // CHECK: shd.all_reduce max %{{.*}} over ["X"] :
  %max = shd.all_reduce max %m over ["X"] : tensor<8xf32, #shd.sharding<[{}], partial = {X}>> -> tensor<8xf32, #shd.sharding<[{}]>>
  %s = shd.statistic "sum_exp"(%x, %max) : (tensor<8x16xf32, #shd.sharding<[{}, {X}]>>, tensor<8xf32, #shd.sharding<[{}]>>) -> tensor<8xf32, #shd.sharding<[{}], partial = {X}>>
  %sum = shd.all_reduce %s over ["X"] : tensor<8xf32, #shd.sharding<[{}], partial = {X}>> -> tensor<8xf32, #shd.sharding<[{}]>>
  // CHECK: shd.normalize softmax
  %y = shd.normalize softmax(%x) over ["S"] <[B, S] -> [B, S]> stats(%max, %sum : tensor<8xf32, #shd.sharding<[{}]>>, tensor<8xf32, #shd.sharding<[{}]>>) : (tensor<8x16xf32, #shd.sharding<[{}, {X}]>>) -> tensor<8x16xf32, #shd.sharding<[{}, {X}]>>
}

// Of equal maxima the first wins, so devices take the least of their indices.
// CHECK-LABEL: shd.program "argmax"
shd.program "argmax" mesh <[X = 4]> {
  %x = shd.declare input "x" ["B", "S"] : tensor<8x16xbf16, #shd.sharding<[{}, {X}]>>
  %v = shd.statistic "value"(%x) : (tensor<8x16xbf16, #shd.sharding<[{}, {X}]>>) -> tensor<8xbf16, #shd.sharding<[{}], partial = {X}>>
  %max = shd.all_reduce max %v over ["X"] : tensor<8xbf16, #shd.sharding<[{}], partial = {X}>> -> tensor<8xbf16, #shd.sharding<[{}]>>
  %i = shd.statistic "index"(%x, %max) : (tensor<8x16xbf16, #shd.sharding<[{}, {X}]>>, tensor<8xbf16, #shd.sharding<[{}]>>) -> tensor<8xi32, #shd.sharding<[{}], partial = {X}>>
  // CHECK: shd.all_reduce min %{{.*}} over ["X"] :
  %min = shd.all_reduce min %i over ["X"] : tensor<8xi32, #shd.sharding<[{}], partial = {X}>> -> tensor<8xi32, #shd.sharding<[{}]>>
  // CHECK: shd.reduce argmax
  %y = shd.reduce argmax(%x) <[B, S] -> [B]> stats(%max, %min : tensor<8xbf16, #shd.sharding<[{}]>>, tensor<8xi32, #shd.sharding<[{}]>>) : (tensor<8x16xbf16, #shd.sharding<[{}, {X}]>>) -> tensor<8xi32, #shd.sharding<[{}]>>
}

// A result's sharding may place what no operand has, and scalars may be plain.
// CHECK-LABEL: shd.program "scalars"
shd.program "scalars" mesh <[X = 4, Y = 1]> {
  %one = shd.constant dense<1.0> : tensor<f32>
  // CHECK: shd.elementwise copy
  %ones = shd.elementwise copy(%one) <[] -> [B]> : (tensor<f32>) -> tensor<8xf32, #shd.sharding<[{X}]>>
  // CHECK: shd.reduce sum
  %s = shd.reduce sum(%ones) <[B] -> []> : (tensor<8xf32, #shd.sharding<[{X}]>>) -> tensor<f32, #shd.sharding<[], partial = {X}>>
  // CHECK: shd.all_reduce %{{.*}} : tensor<f32, #shd.sharding<[], partial = {X}>> -> tensor<f32>
  %t = shd.all_reduce %s over ["X"] : tensor<f32, #shd.sharding<[], partial = {X}>> -> tensor<f32>
  // CHECK: shd.iota <-> [B]> : tensor<8xi32, #shd.sharding<[{X}]>>
  %i = shd.iota <-> [B]> : tensor<8xi32, #shd.sharding<[{X}]>>
  // Axes of size 1 change nothing.
  // CHECK: shd.elementwise add
  %z = shd.elementwise add(%ones, %t) <[B], [] -> [B]> : (tensor<8xf32, #shd.sharding<[{X}]>>, tensor<f32>) -> tensor<8xf32, #shd.sharding<[{X, Y}]>>
}

// A split dimension takes its axes from the major part.
// CHECK-LABEL: shd.program "split"
shd.program "split" mesh <[X = 4, Y = 2]> {
  %x = shd.declare input "x" ["D"] : tensor<32xf32, #shd.sharding<[{X, Y}]>>
  // CHECK: shd.split
  %y = shd.split(%x) "D" into ["A", "B"] <[D] -> [A, B]> : (tensor<32xf32, #shd.sharding<[{X, Y}]>>) -> tensor<4x8xf32, #shd.sharding<[{X}, {Y}]>>
  // CHECK: shd.merge
  %z = shd.merge(%y) ["A", "B"] into "D" <[A, B] -> [D]> : (tensor<4x8xf32, #shd.sharding<[{X}, {Y}]>>) -> tensor<32xf32, #shd.sharding<[{X, Y}]>>
}

// CHECK-LABEL: shd.program "padding"
shd.program "padding" mesh <[X = 4]> allow_padding {
  // CHECK: shd.declare
  %x = shd.declare input "x" ["B"] : tensor<6xf32, #shd.sharding<[{X}]>>
  // CHECK: shd.elementwise
  %y = shd.elementwise exp(%x) <[B] -> [B]> : (tensor<6xf32, #shd.sharding<[{X}]>>) -> tensor<6xf32, #shd.sharding<[{X}]>>
}
