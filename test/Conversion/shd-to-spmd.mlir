// RUN: shardc-opt %s --convert-shd-to-spmd | FileCheck %s --implicit-check-not=shd.group_cost --implicit-check-not=cost
// RUN: shardc-opt %s --convert-shd-to-spmd | shardc-opt --convert-shd-to-spmd | FileCheck %s --check-prefix=AGAIN

// AGAIN-NOT: shd.program
// AGAIN:     spmd.program "structure"

// What a device has of a tensor: 8 over X = 4 is 2, 16 over Y = 2 is 8, 32 over
// both is 4. Hardware, plan and prices stay behind; names stay.
// CHECK-LABEL: spmd.program "structure" mesh <[X = 4, Y = 2]> {
shd.program "structure" mesh <[X = 4, Y = 2]> hardware <"tpu_v5e", [4, 2]> attributes {shd.plan = {status = "optimal"}} {
  // CHECK-NEXT: %x = spmd.parameter input "x" ["B", "D"] of tensor<8x16xbf16, #shd.sharding<[{X}, {Y}]>> : tensor<2x8xbf16>
  %x = shd.declare input "x" ["B", "D"] {shd.def = 0 : i64} : tensor<8x16xbf16, #shd.sharding<[{X}, {Y}]>>
  // CHECK-NEXT: %w = spmd.parameter weight "w" ["D", "F"] of tensor<16x32xbf16, #shd.sharding<[{Y}, {}]>> : tensor<8x32xbf16>
  %w = shd.declare weight "w" ["D", "F"] : tensor<16x32xbf16, #shd.sharding<[{Y}, {}]>>
  // CHECK-NEXT: %c = spmd.parameter state "c" ["F"] of tensor<32xbf16, #shd.sharding<[{X, Y}]>> : tensor<4xbf16>
  %c = shd.declare state "c" ["F"] : tensor<32xbf16, #shd.sharding<[{X, Y}]>>
  // CHECK-NEXT: spmd.update %c = %c : tensor<4xbf16>, tensor<4xbf16>
  shd.update %c = %c : tensor<32xbf16, #shd.sharding<[{X, Y}]>>, tensor<32xbf16, #shd.sharding<[{X, Y}]>>
  // CHECK-NEXT: %[[ONE:.*]] = shd.constant dense<1.000000e+00> : tensor<bf16>
  %one = shd.constant dense<1.0> : tensor<bf16>
  // CHECK-NEXT: %y = shd.elementwise mul(%x, %[[ONE]]) <[B, D], [] -> [B, D]> {shd.group = #shd.group<1>, shd.name = "y", shd.temporary, spmd.global = tensor<8x16xbf16, #shd.sharding<[{X}, {Y}]>>, spmd.shards = [#spmd.shard<"B" = 8 over [X]>, #spmd.shard<"D" = 16 over [Y]>]} : (tensor<2x8xbf16>, tensor<bf16>) -> tensor<2x8xbf16>
  %y = shd.elementwise mul(%x, %one) <[B, D], [] -> [B, D]> {shd.name = "y", shd.temporary, shd.group = #shd.group<1>, shd.group_cost = #shd.group_cost<flops = 0.0, vector_flops = 0.0, hbm_bytes = 1.0e-01, matrix_s = 1.0, vector_s = 0.0, hbm_s = 2.5e-07>} : (tensor<8x16xbf16, #shd.sharding<[{X}, {Y}]>>, tensor<bf16>) -> tensor<8x16xbf16, #shd.sharding<[{X}, {Y}]>>
  // CHECK-NEXT: spmd.output "y" %y ["B", "D"] of tensor<8x16xbf16, #shd.sharding<[{X}, {Y}]>> : tensor<2x8xbf16>
  shd.output "y" %y ["B", "D"] : tensor<8x16xbf16, #shd.sharding<[{X}, {Y}]>>
}

// Each collective, with both global types. 32 over X is 8, 8 over Y is 4.
// CHECK-LABEL: spmd.program "collectives"
shd.program "collectives" mesh <[X = 4, Y = 2]> {
  %a = shd.declare input "a" ["B", "D"] : tensor<8x16xbf16, #shd.sharding<[{X}, {Y}]>>
  %b = shd.declare weight "b" ["D", "F"] : tensor<16x32xbf16, #shd.sharding<[{Y}, {}]>>
  // CHECK: %[[H:.*]] = shd.einsum(%a, %b) <[B, D], [D, F] -> [B, F]> {spmd.global = tensor<8x32xbf16, #shd.sharding<[{X}, {}], partial = {Y}>>, spmd.shards = [#spmd.shard<"B" = 8 over [X]>, #spmd.shard<"D" = 16 over [Y]>]} : (tensor<2x8xbf16>, tensor<8x32xbf16>) -> tensor<2x32xbf16>
  %h = shd.einsum(%a, %b) <[B, D], [D, F] -> [B, F]> : (tensor<8x16xbf16, #shd.sharding<[{X}, {Y}]>>, tensor<16x32xbf16, #shd.sharding<[{Y}, {}]>>) -> tensor<8x32xbf16, #shd.sharding<[{X}, {}], partial = {Y}>>
  // CHECK-NEXT: %[[N:.*]] = shd.elementwise neg(%[[H]]) <[B, F] -> [F, B]> {spmd.global = tensor<32x8xbf16, #shd.sharding<[{}, {X}], partial = {Y}>>, spmd.shards = [#spmd.shard<"B" = 8 over [X]>]} : (tensor<2x32xbf16>) -> tensor<32x2xbf16>
  %n = shd.elementwise neg(%h) <[B, F] -> [F, B]> : (tensor<8x32xbf16, #shd.sharding<[{X}, {}], partial = {Y}>>) -> tensor<32x8xbf16, #shd.sharding<[{}, {X}], partial = {Y}>>
  // CHECK-NEXT: %[[RS:.*]] = spmd.reduce_scatter %[[N]] over ["Y"] of tensor<32x8xbf16, #shd.sharding<[{}, {X}], partial = {Y}>> to tensor<32x8xbf16, #shd.sharding<[{Y}, {X}]>> {shd.indices = ["F", "B"], shd.operand = "n", shd.store} : tensor<32x2xbf16> -> tensor<16x2xbf16>
  %rs = shd.reduce_scatter %n over ["Y"] cost <bytes = 1024.0, wire_bytes = 512.0, bandwidth_s = 1.0e-08, latency_s = 1.0e-06, networks = [x, y]> {shd.operand = "n", shd.indices = ["F", "B"], shd.store} : tensor<32x8xbf16, #shd.sharding<[{}, {X}], partial = {Y}>> -> tensor<32x8xbf16, #shd.sharding<[{Y}, {X}]>>
  // CHECK-NEXT: spmd.all_reduce %[[N]] over ["Y"] of tensor<32x8xbf16, #shd.sharding<[{}, {X}], partial = {Y}>> to tensor<32x8xbf16, #shd.sharding<[{}, {X}]>> : tensor<32x2xbf16> -> tensor<32x2xbf16>
  %ar = shd.all_reduce %n over ["Y"] : tensor<32x8xbf16, #shd.sharding<[{}, {X}], partial = {Y}>> -> tensor<32x8xbf16, #shd.sharding<[{}, {X}]>>
  // CHECK-NEXT: %[[AG:.*]] = spmd.all_gather %[[RS]] over ["X", "Y"] of tensor<32x8xbf16, #shd.sharding<[{Y}, {X}]>> to tensor<32x8xbf16, #shd.sharding<[{}, {}]>> : tensor<16x2xbf16> -> tensor<32x8xbf16>
  %ag = shd.all_gather %rs over ["X", "Y"] : tensor<32x8xbf16, #shd.sharding<[{Y}, {X}]>> -> tensor<32x8xbf16, #shd.sharding<[{}, {}]>>
  // CHECK-NEXT: %[[AS:.*]] = spmd.all_slice %[[AG]] over ["Y"] of tensor<32x8xbf16, #shd.sharding<[{}, {}]>> to tensor<32x8xbf16, #shd.sharding<[{Y}, {}]>> : tensor<32x8xbf16> -> tensor<16x8xbf16>
  %as = shd.all_slice %ag over ["Y"] : tensor<32x8xbf16, #shd.sharding<[{}, {}]>> -> tensor<32x8xbf16, #shd.sharding<[{Y}, {}]>>
  // CHECK-NEXT: spmd.all_to_all %[[AS]] over ["Y"] of tensor<32x8xbf16, #shd.sharding<[{Y}, {}]>> to tensor<32x8xbf16, #shd.sharding<[{}, {Y}]>> : tensor<16x8xbf16> -> tensor<32x4xbf16>
  %aa = shd.all_to_all %as over ["Y"] : tensor<32x8xbf16, #shd.sharding<[{Y}, {}]>> -> tensor<32x8xbf16, #shd.sharding<[{}, {Y}]>>
  // CHECK-NEXT: %[[XY:.*]] = spmd.all_slice %[[AG]]
  %xy = shd.all_slice %ag over ["X", "Y"] : tensor<32x8xbf16, #shd.sharding<[{}, {}]>> -> tensor<32x8xbf16, #shd.sharding<[{}, {X, Y}]>>
  // CHECK-NEXT: %[[CP:.*]] = spmd.collective_permute %[[XY]] over ["X", "Y"] of tensor<32x8xbf16, #shd.sharding<[{}, {X, Y}]>> to tensor<32x8xbf16, #shd.sharding<[{}, {Y, X}]>> : tensor<32x1xbf16> -> tensor<32x1xbf16>
  %cp = shd.collective_permute %xy over ["X", "Y"] : tensor<32x8xbf16, #shd.sharding<[{}, {X, Y}]>> -> tensor<32x8xbf16, #shd.sharding<[{}, {Y, X}]>>
  // CHECK-NEXT: spmd.output "y" %[[CP]] ["F", "B"] of tensor<32x8xbf16, #shd.sharding<[{}, {Y, X}]>> : tensor<32x1xbf16>
  shd.output "y" %cp ["F", "B"] : tensor<32x8xbf16, #shd.sharding<[{}, {Y, X}]>>
}

// CHECK-LABEL: spmd.program "statistics"
shd.program "statistics" mesh <[X = 4]> {
  %x = shd.declare input "x" ["B", "S"] : tensor<8x16xf32, #shd.sharding<[{}, {X}]>>
  // CHECK: %[[M:.*]] = shd.statistic "max"(%x) {spmd.global = tensor<8xf32, #shd.sharding<[{}], partial = {X}>>} : (tensor<8x4xf32>) -> tensor<8xf32>
  %m = shd.statistic "max"(%x) : (tensor<8x16xf32, #shd.sharding<[{}, {X}]>>) -> tensor<8xf32, #shd.sharding<[{}], partial = {X}>>
  // CHECK-NEXT: %[[MAX:.*]] = spmd.all_reduce max %[[M]] over ["X"] of tensor<8xf32, #shd.sharding<[{}], partial = {X}>> to tensor<8xf32, #shd.sharding<[{}]>> : tensor<8xf32> -> tensor<8xf32>
  %max = shd.all_reduce max %m over ["X"] : tensor<8xf32, #shd.sharding<[{}], partial = {X}>> -> tensor<8xf32, #shd.sharding<[{}]>>
  // CHECK-NEXT: %[[S:.*]] = shd.statistic "sum_exp"(%x, %[[MAX]])
  %s = shd.statistic "sum_exp"(%x, %max) : (tensor<8x16xf32, #shd.sharding<[{}, {X}]>>, tensor<8xf32, #shd.sharding<[{}]>>) -> tensor<8xf32, #shd.sharding<[{}], partial = {X}>>
  // CHECK-NEXT: %[[SUM:.*]] = spmd.all_reduce %[[S]] over ["X"]
  %sum = shd.all_reduce %s over ["X"] : tensor<8xf32, #shd.sharding<[{}], partial = {X}>> -> tensor<8xf32, #shd.sharding<[{}]>>
  // CHECK-NEXT: shd.normalize softmax(%x) over ["S"] <[B, S] -> [B, S]> stats(%[[MAX]], %[[SUM]] : tensor<8xf32>, tensor<8xf32>) {spmd.global = tensor<8x16xf32, #shd.sharding<[{}, {X}]>>, spmd.shards = [#spmd.shard<"S" = 16 over [X]>]} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %y = shd.normalize softmax(%x) over ["S"] <[B, S] -> [B, S]> stats(%max, %sum : tensor<8xf32, #shd.sharding<[{}]>>, tensor<8xf32, #shd.sharding<[{}]>>) : (tensor<8x16xf32, #shd.sharding<[{}, {X}]>>) -> tensor<8x16xf32, #shd.sharding<[{}, {X}]>>
  // CHECK-NEXT: shd.reduce max(%x) <[B, S] -> [B]> stats(%[[MAX]] : tensor<8xf32>) {spmd.global = tensor<8xf32, #shd.sharding<[{}]>>, spmd.shards = [#spmd.shard<"S" = 16 over [X]>]} : (tensor<8x4xf32>) -> tensor<8xf32>
  %r = shd.reduce max(%x) <[B, S] -> [B]> stats(%max : tensor<8xf32, #shd.sharding<[{}]>>) : (tensor<8x16xf32, #shd.sharding<[{}, {X}]>>) -> tensor<8xf32, #shd.sharding<[{}]>>
}

// Carried values are local inside and outside; the iteration's number is the
// same everywhere; of stacked tensors, devices have parts of every iteration's.
// CHECK-LABEL: spmd.program "repeat"
shd.program "repeat" mesh <[X = 4]> {
  %x = shd.declare input "x" ["B"] : tensor<8xf32, #shd.sharding<[{X}]>>
  %z = shd.constant dense<0> : tensor<i32>
  // CHECK: %s = spmd.parameter state "s" ["L", "B"] of tensor<3x8xf32, #shd.sharding<[{}, {X}]>> stacked 1 : tensor<3x2xf32>
  %ss = shd.declare state "s" ["L", "B"] stacked 1 : tensor<3x8xf32, #shd.sharding<[{}, {X}]>>
  %hs = shd.declare weight "h" ["M", "D"] stacked 1 : tensor<2x16xf32, #shd.sharding<[{}, {X}]>>
  // CHECK: %x_0:2 = shd.repeat "L" = 3(%x, %{{.*}}) : (tensor<2xf32>, tensor<i32>) -> (tensor<2xf32>, tensor<i32>) {
  %r:2 = shd.repeat "L" = 3(%x, %z) : (tensor<8xf32, #shd.sharding<[{X}]>>, tensor<i32>) -> (tensor<8xf32, #shd.sharding<[{X}]>>, tensor<i32>) {
  // CHECK-NEXT: ^bb0(%[[I:.*]]: tensor<i32>, %[[C:.*]]: tensor<2xf32>, %[[N:.*]]: tensor<i32>):
  ^bb0(%i: tensor<i32>, %c: tensor<8xf32, #shd.sharding<[{X}]>>, %n: tensor<i32>):
    // CHECK-NEXT: %[[S:.*]] = shd.part %s[%[[I]]] {spmd.global = tensor<8xf32, #shd.sharding<[{X}]>>} : tensor<3x2xf32> -> tensor<2xf32>
    %s = shd.part %ss[%i] : tensor<3x8xf32, #shd.sharding<[{}, {X}]>> -> tensor<8xf32, #shd.sharding<[{X}]>>
    // CHECK-NEXT: %[[A:.*]] = shd.elementwise add(%[[C]], %[[S]]) <[B], [B] -> [B]>
    %a = shd.elementwise add(%c, %s) <[B], [B] -> [B]> : (tensor<8xf32, #shd.sharding<[{X}]>>, tensor<8xf32, #shd.sharding<[{X}]>>) -> tensor<8xf32, #shd.sharding<[{X}]>>
    // CHECK-NEXT: spmd.update %s[%[[I]]] = %[[A]] : tensor<3x2xf32>, tensor<2xf32>
    shd.update %ss[%i] = %a : tensor<3x8xf32, #shd.sharding<[{}, {X}]>>, tensor<8xf32, #shd.sharding<[{X}]>>
    // CHECK-NEXT: %[[M:.*]] = shd.elementwise add(%[[N]], %[[I]]) <[], [] -> []> : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %m = shd.elementwise add(%n, %i) <[], [] -> []> : (tensor<i32>, tensor<i32>) -> tensor<i32>
    // CHECK-NEXT: shd.yield %[[A]], %[[M]] : tensor<2xf32>, tensor<i32>
    shd.yield %a, %m : tensor<8xf32, #shd.sharding<[{X}]>>, tensor<i32>
  }
  // CHECK: shd.repeat "M" = 2 reverse() : () -> () {
  shd.repeat "M" = 2 reverse() : () -> () {
  ^bb0(%j: tensor<i32>):
    // CHECK: shd.part %h[%M] {spmd.global = tensor<16xf32, #shd.sharding<[{X}]>>} : tensor<2x4xf32> -> tensor<4xf32>
    %h = shd.part %hs[%j] : tensor<2x16xf32, #shd.sharding<[{}, {X}]>> -> tensor<16xf32, #shd.sharding<[{X}]>>
    shd.yield
  }
  // CHECK: spmd.output "r" %x_0#0 ["B"] of tensor<8xf32, #shd.sharding<[{X}]>> : tensor<2xf32>
  shd.output "r" %r#0 ["B"] : tensor<8xf32, #shd.sharding<[{X}]>>
}

// Extents are rounded up: 6 and 5 over X = 4 are 2 each, and the shard says of
// how many.
// CHECK-LABEL: spmd.program "padding"
shd.program "padding" mesh <[X = 4]> allow_padding {
  // CHECK-NEXT: %x = spmd.parameter input "x" ["B"] of tensor<6xf32, #shd.sharding<[{X}]>> : tensor<2xf32>
  %x = shd.declare input "x" ["B"] : tensor<6xf32, #shd.sharding<[{X}]>>
  // CHECK-NEXT: %[[Y:.*]] = shd.reduce sum(%x) <[B] -> []> {spmd.global = tensor<f32, #shd.sharding<[], partial = {X}>>, spmd.shards = [#spmd.shard<"B" = 6 over [X]>]} : (tensor<2xf32>) -> tensor<f32>
  %y = shd.reduce sum(%x) <[B] -> []> : (tensor<6xf32, #shd.sharding<[{X}]>>) -> tensor<f32, #shd.sharding<[], partial = {X}>>
  // CHECK-NEXT: %[[Z:.*]] = spmd.all_reduce %[[Y]] over ["X"] of tensor<f32, #shd.sharding<[], partial = {X}>> to tensor<f32> : tensor<f32> -> tensor<f32>
  %z = shd.all_reduce %y over ["X"] : tensor<f32, #shd.sharding<[], partial = {X}>> -> tensor<f32>
  // CHECK-NEXT: spmd.all_gather %x over ["X"] of tensor<6xf32, #shd.sharding<[{X}]>> to tensor<6xf32, #shd.sharding<[{}]>> : tensor<2xf32> -> tensor<6xf32>
  %g = shd.all_gather %x over ["X"] : tensor<6xf32, #shd.sharding<[{X}]>> -> tensor<6xf32, #shd.sharding<[{}]>>
  %p = shd.declare weight "p" ["D"] : tensor<5xf32, #shd.sharding<[{X}]>>
  // CHECK: shd.elementwise exp(%p) <[D] -> [D]> {spmd.global = tensor<5xf32, #shd.sharding<[{X}]>>, spmd.shards = [#spmd.shard<"D" = 5 over [X]>]} : (tensor<2xf32>) -> tensor<2xf32>
  %e = shd.elementwise exp(%p) <[D] -> [D]> : (tensor<5xf32, #shd.sharding<[{X}]>>) -> tensor<5xf32, #shd.sharding<[{X}]>>
}

// One device: everything is whole, and planning's attributes go here too.
// CHECK-LABEL: spmd.program "single" {
shd.program "single" {
  // CHECK-NEXT: %x = spmd.parameter input "x" ["B"] of tensor<6xf32> : tensor<6xf32>
  %x = shd.declare input "x" ["B"] : tensor<6xf32>
  // CHECK-NEXT: %y = shd.elementwise exp(%x) <[B] -> [B]> {shd.name = "y"} : (tensor<6xf32>) -> tensor<6xf32>
  %y = shd.elementwise exp(%x) <[B] -> [B]> {shd.name = "y", shd.def = 3 : i32} : (tensor<6xf32>) -> tensor<6xf32>
  // CHECK-NEXT: spmd.output "y" %y ["B"] of tensor<6xf32> : tensor<6xf32>
  shd.output "y" %y ["B"] : tensor<6xf32>
}

// Axes of size 1 split nothing, but stand in global types.
// CHECK-LABEL: spmd.program "unit" mesh <[X = 4, Y = 1]>
shd.program "unit" mesh <[X = 4, Y = 1]> {
  // CHECK-NEXT: %x = spmd.parameter input "x" ["B", "D"] of tensor<8x4xf32, #shd.sharding<[{X}, {Y}]>> : tensor<2x4xf32>
  %x = shd.declare input "x" ["B", "D"] : tensor<8x4xf32, #shd.sharding<[{X}, {Y}]>>
  // CHECK-NEXT: %[[E:.*]] = shd.elementwise exp(%x) <[B, D] -> [B, D]> {spmd.global = tensor<8x4xf32, #shd.sharding<[{X}, {}]>>, spmd.shards = [#spmd.shard<"B" = 8 over [X]>]} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %e = shd.elementwise exp(%x) <[B, D] -> [B, D]> : (tensor<8x4xf32, #shd.sharding<[{X}, {Y}]>>) -> tensor<8x4xf32, #shd.sharding<[{X}, {}]>>
}

// Marks of collective matmuls stay.
// CHECK-LABEL: spmd.program "ring"
shd.program "ring" mesh <[X = 4]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x16xf32, #shd.sharding<[{X}, {}]>>
  %w = shd.declare weight "w" ["D", "F"] : tensor<16x32xf32, #shd.sharding<[{}, {}]>>
  // CHECK: spmd.all_gather {{.*}}shd.ring = 0 : i64
  %g = shd.all_gather %x over ["X"] {shd.ring = 0 : i64} : tensor<8x16xf32, #shd.sharding<[{X}, {}]>> -> tensor<8x16xf32, #shd.sharding<[{}, {}]>>
  // CHECK: shd.einsum{{.*}}shd.ring = 0 : i64
  %y = shd.einsum(%g, %w) <[B, D], [D, F] -> [B, F]> {shd.ring = 0 : i64} : (tensor<8x16xf32, #shd.sharding<[{}, {}]>>, tensor<16x32xf32, #shd.sharding<[{}, {}]>>) -> tensor<8x32xf32, #shd.sharding<[{}, {}]>>
}

// A partial sum passes through what is linear in it: no index has the axis.
// CHECK-LABEL: spmd.program "linear"
shd.program "linear" mesh <[X = 4]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x16xf32, #shd.sharding<[{}, {X}]>>
  %w = shd.declare weight "w" ["B"] : tensor<8xf32, #shd.sharding<[{}]>>
  // CHECK: %[[S:.*]] = shd.reduce mean(%x) <[B, D] -> [B]> {spmd.global = tensor<8xf32, #shd.sharding<[{}], partial = {X}>>, spmd.shards = [#spmd.shard<"D" = 16 over [X]>]} : (tensor<8x4xf32>) -> tensor<8xf32>
  %s = shd.reduce mean(%x) <[B, D] -> [B]> : (tensor<8x16xf32, #shd.sharding<[{}, {X}]>>) -> tensor<8xf32, #shd.sharding<[{}], partial = {X}>>
  // CHECK-NEXT: shd.elementwise mul(%[[S]], %w) <[B], [B] -> [B]> {spmd.global = tensor<8xf32, #shd.sharding<[{}], partial = {X}>>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %m = shd.elementwise mul(%s, %w) <[B], [B] -> [B]> : (tensor<8xf32, #shd.sharding<[{}], partial = {X}>>, tensor<8xf32, #shd.sharding<[{}]>>) -> tensor<8xf32, #shd.sharding<[{}], partial = {X}>>
}

// Computing operations say where their indices are, those that no result has
// included.
// CHECK-LABEL: spmd.program "attention"
shd.program "attention" mesh <[X = 2, Y = 2]> {
  %q = shd.declare input "q" ["B", "T", "N", "H"] : tensor<2x8x4x16xbf16, #shd.sharding<[{}, {X}, {Y}, {}]>>
  %k = shd.declare input "k" ["B", "S", "N", "H"] : tensor<2x8x4x16xbf16, #shd.sharding<[{}, {}, {Y}, {}]>>
  %at = shd.declare input "at" ["B", "T"] : tensor<2x8xi32, #shd.sharding<[{}, {X}]>>
  // CHECK: shd.attention(%q, %k, %k) over "H", "S" query "T" <[B, T, N, H], [B, S, N, H], [B, S, N, H] -> [B, T, N, H]> causal window 4 scale 1.250000e-01 {{{.*}}spmd.shards = [#spmd.shard<"T" = 8 over [X]>, #spmd.shard<"N" = 4 over [Y]>]} : tensor<2x4x2x16xbf16>, tensor<2x8x2x16xbf16>, tensor<2x8x2x16xbf16> -> tensor<2x4x2x16xbf16>
  %0 = shd.attention(%q, %k, %k) over "H", "S" query "T" <[B, T, N, H], [B, S, N, H], [B, S, N, H] -> [B, T, N, H]> causal window 4 scale 0.125 : tensor<2x8x4x16xbf16, #shd.sharding<[{}, {X}, {Y}, {}]>>, tensor<2x8x4x16xbf16, #shd.sharding<[{}, {}, {Y}, {}]>>, tensor<2x8x4x16xbf16, #shd.sharding<[{}, {}, {Y}, {}]>> -> tensor<2x8x4x16xbf16, #shd.sharding<[{}, {X}, {Y}, {}]>>
  // CHECK-NEXT: shd.attention(%q, %k, %k at %at) over "H", "S"
  %1 = shd.attention(%q, %k, %k at %at) over "H", "S" <[B, T, N, H], [B, S, N, H], [B, S, N, H], [B, T] -> [B, T, N, H]> causal : tensor<2x8x4x16xbf16, #shd.sharding<[{}, {X}, {Y}, {}]>>, tensor<2x8x4x16xbf16, #shd.sharding<[{}, {}, {Y}, {}]>>, tensor<2x8x4x16xbf16, #shd.sharding<[{}, {}, {Y}, {}]>>, tensor<2x8xi32, #shd.sharding<[{}, {X}]>> -> tensor<2x8x4x16xbf16, #shd.sharding<[{}, {X}, {Y}, {}]>>
  // CHECK-NEXT: shd.rope(%q) over "H" positions "T" <[B, T, N, H] -> [B, T, N, H]> {{{.*}}spmd.shards = [#spmd.shard<"T" = 8 over [X]>, #spmd.shard<"N" = 4 over [Y]>]} : (tensor<2x4x2x16xbf16>) -> tensor<2x4x2x16xbf16>
  %3 = shd.rope(%q) over "H" positions "T" <[B, T, N, H] -> [B, T, N, H]> : (tensor<2x8x4x16xbf16, #shd.sharding<[{}, {X}, {Y}, {}]>>) -> tensor<2x8x4x16xbf16, #shd.sharding<[{}, {X}, {Y}, {}]>>
}

// CHECK-LABEL: spmd.program "positions"
shd.program "positions" mesh <[X = 4]> {
  %emb = shd.declare weight "emb" ["V", "D"] : tensor<32x16xbf16, #shd.sharding<[{X}, {}]>>
  %tokens = shd.declare input "tokens" ["B"] : tensor<2xi32, #shd.sharding<[{}]>>
  %kc = shd.declare state "kc" ["B", "S"] : tensor<2x64xbf16, #shd.sharding<[{}, {X}]>>
  %k = shd.declare input "k" ["B"] : tensor<2xbf16, #shd.sharding<[{}]>>
  // CHECK: shd.gather(%emb, %tokens) <[V, D], [B] -> [B, D]> at [0] {spmd.global = tensor<2x16xbf16, #shd.sharding<[{}, {}], partial = {X}>>, spmd.shards = [#spmd.shard<"V" = 32 over [X]>]} : (tensor<8x16xbf16>, tensor<2xi32>) -> tensor<2x16xbf16>
  %0 = shd.gather(%emb, %tokens) <[V, D], [B] -> [B, D]> at [0] : (tensor<32x16xbf16, #shd.sharding<[{X}, {}]>>, tensor<2xi32, #shd.sharding<[{}]>>) -> tensor<2x16xbf16, #shd.sharding<[{}, {}], partial = {X}>>
  // CHECK-NEXT: shd.scatter(%kc, %k, %tokens) <[B, S], [B], [B] -> [B, S]> at [1] accumulate {spmd.global = tensor<2x64xbf16, #shd.sharding<[{}, {X}]>>, spmd.shards = [#spmd.shard<"S" = 64 over [X]>]} : (tensor<2x16xbf16>, tensor<2xbf16>, tensor<2xi32>) -> tensor<2x16xbf16>
  %1 = shd.scatter(%kc, %k, %tokens) <[B, S], [B], [B] -> [B, S]> at [1] accumulate : (tensor<2x64xbf16, #shd.sharding<[{}, {X}]>>, tensor<2xbf16, #shd.sharding<[{}]>>, tensor<2xi32, #shd.sharding<[{}]>>) -> tensor<2x64xbf16, #shd.sharding<[{}, {X}]>>
  // CHECK-NEXT: shd.iota <-> [T]> {spmd.global = tensor<8xi32, #shd.sharding<[{X}]>>, spmd.shards = [#spmd.shard<"T" = 8 over [X]>]} : tensor<2xi32>
  %2 = shd.iota <-> [T]> : tensor<8xi32, #shd.sharding<[{X}]>>
  %logits = shd.declare input "logits" ["B", "V"] : tensor<8x32xbf16, #shd.sharding<[{X}, {}]>>
  %labels = shd.declare input "labels" ["B"] : tensor<8xi32, #shd.sharding<[{X}]>>
  // CHECK: shd.cross_entropy(%logits, %labels) over "V" <[B, V], [B] -> [B]> {spmd.global = tensor<8xf32, #shd.sharding<[{X}]>>, spmd.shards = [#spmd.shard<"B" = 8 over [X]>]} : tensor<2x32xbf16>, tensor<2xi32> -> tensor<2xf32>
  %3 = shd.cross_entropy(%logits, %labels) over "V" <[B, V], [B] -> [B]> : tensor<8x32xbf16, #shd.sharding<[{X}, {}]>>, tensor<8xi32, #shd.sharding<[{X}]>> -> tensor<8xf32, #shd.sharding<[{X}]>>
}

// The parts of a split index are shards of their own.
// CHECK-LABEL: spmd.program "indices"
shd.program "indices" mesh <[X = 4, Y = 2]> {
  %x = shd.declare input "x" ["D"] : tensor<32xf32, #shd.sharding<[{X, Y}]>>
  // CHECK: %[[S:.*]] = shd.split(%x) "D" into ["A", "B"] <[D] -> [A, B]> {spmd.global = tensor<4x8xf32, #shd.sharding<[{X}, {Y}]>>, spmd.shards = [#spmd.shard<"A" = 4 over [X]>, #spmd.shard<"B" = 8 over [Y]>]} : (tensor<4xf32>) -> tensor<1x4xf32>
  %y = shd.split(%x) "D" into ["A", "B"] <[D] -> [A, B]> : (tensor<32xf32, #shd.sharding<[{X, Y}]>>) -> tensor<4x8xf32, #shd.sharding<[{X}, {Y}]>>
  // CHECK-NEXT: shd.merge(%[[S]]) ["A", "B"] into "D" <[A, B] -> [D]> {spmd.global = tensor<32xf32, #shd.sharding<[{X, Y}]>>, spmd.shards = [#spmd.shard<"A" = 4 over [X]>, #spmd.shard<"B" = 8 over [Y]>]} : (tensor<1x4xf32>) -> tensor<4xf32>
  %z = shd.merge(%y) ["A", "B"] into "D" <[A, B] -> [D]> : (tensor<4x8xf32, #shd.sharding<[{X}, {Y}]>>) -> tensor<32xf32, #shd.sharding<[{X, Y}]>>
  %t = shd.declare input "t" ["I", "D"] : tensor<8x4xf32, #shd.sharding<[{}, {X}]>>
  // CHECK: %[[T:.*]] = shd.slice(%t) "I" [2, 6] into "J" <[I, D] -> [J, D]> {spmd.global = tensor<4x4xf32, #shd.sharding<[{}, {X}]>>, spmd.shards = [#spmd.shard<"D" = 4 over [X]>]} : (tensor<8x1xf32>) -> tensor<4x1xf32>
  %u = shd.slice(%t) "I" [2, 6] into "J" <[I, D] -> [J, D]> : (tensor<8x4xf32, #shd.sharding<[{}, {X}]>>) -> tensor<4x4xf32, #shd.sharding<[{}, {X}]>>
  // CHECK-NEXT: shd.concat(%t, %[[T]]) ["I", "J"] into "K" <[I, D], [J, D] -> [K, D]> {{.*}} : (tensor<8x1xf32>, tensor<4x1xf32>) -> tensor<12x1xf32>
  %v = shd.concat(%t, %u) ["I", "J"] into "K" <[I, D], [J, D] -> [K, D]> : (tensor<8x4xf32, #shd.sharding<[{}, {X}]>>, tensor<4x4xf32, #shd.sharding<[{}, {X}]>>) -> tensor<12x4xf32, #shd.sharding<[{}, {X}]>>
  // CHECK-NEXT: shd.reshard(%t) <[I, D] -> [I, D]> {{.*}} : (tensor<8x1xf32>) -> tensor<8x1xf32>
  %w = shd.reshard(%t) <[I, D] -> [I, D]> : (tensor<8x4xf32, #shd.sharding<[{}, {X}]>>) -> tensor<8x4xf32, #shd.sharding<[{}, {X}]>>
  %one = shd.constant dense<1.0> : tensor<f32>
  // CHECK: shd.elementwise copy(%{{.*}}) <[] -> [B]> {spmd.global = tensor<8xf32, #shd.sharding<[{X}]>>, spmd.shards = [#spmd.shard<"B" = 8 over [X]>]} : (tensor<f32>) -> tensor<2xf32>
  %o = shd.elementwise copy(%one) <[] -> [B]> : (tensor<f32>) -> tensor<8xf32, #shd.sharding<[{X}]>>
}
