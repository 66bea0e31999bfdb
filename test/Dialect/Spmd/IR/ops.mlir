// RUN: shardc-opt %s | shardc-opt | FileCheck %s
// RUN: shardc-opt %s --mlir-print-op-generic | shardc-opt | FileCheck %s

// CHECK-LABEL: spmd.program "empty" {
spmd.program "empty" {
}

// CHECK-LABEL: spmd.program "structure" mesh <[X = 4, Y = 2]>
// CHECK-SAME:  attributes {note = "kept"} {
spmd.program "structure" mesh <[X = 4, Y = 2]> attributes {note = "kept"} {
  // CHECK-NEXT: %x = spmd.parameter input "x" ["B", "D"] of tensor<8x16xbf16, #shd.sharding<[{X}, {Y}]>> : tensor<2x8xbf16>
  %x = spmd.parameter input "x" ["B", "D"] of tensor<8x16xbf16, #shd.sharding<[{X}, {Y}]>> : tensor<2x8xbf16>
  // CHECK-NEXT: %c = spmd.parameter state "c" ["B"] of tensor<8xi8, #shd.sharding<[{}]>> : tensor<8xi8>
  %c = spmd.parameter state "c" ["B"] of tensor<8xi8, #shd.sharding<[{}]>> : tensor<8xi8>
  // CHECK-NEXT: spmd.update %c = %c : tensor<8xi8>, tensor<8xi8>
  spmd.update %c = %c : tensor<8xi8>, tensor<8xi8>
  // CHECK-NEXT: %g = spmd.parameter weight "g" ["L", "D"] of tensor<3x16xbf16, #shd.sharding<[{}, {Y}]>> stacked 1 : tensor<3x8xbf16>
  %gs = spmd.parameter weight "g" ["L", "D"] of tensor<3x16xbf16, #shd.sharding<[{}, {Y}]>> stacked 1 : tensor<3x8xbf16>
  // CHECK-NEXT: %m = spmd.parameter moment "m" of "g" ["L", "D"] of tensor<3x16xf32> stacked 1 : tensor<3x16xf32>
  %m = spmd.parameter moment "m" of "g" ["L", "D"] of tensor<3x16xf32> stacked 1 : tensor<3x16xf32>
  // CHECK-NEXT: %s = spmd.parameter state "s" ["L", "D"] of tensor<3x16xbf16, #shd.sharding<[{}, {Y}]>> stacked 1 : tensor<3x8xbf16>
  %ss = spmd.parameter state "s" ["L", "D"] of tensor<3x16xbf16, #shd.sharding<[{}, {Y}]>> stacked 1 : tensor<3x8xbf16>
  // CHECK-NEXT: %[[R:.*]] = shd.repeat "L" = 3(%x) : (tensor<2x8xbf16>) -> tensor<2x8xbf16> {
  %r = shd.repeat "L" = 3(%x) : (tensor<2x8xbf16>) -> tensor<2x8xbf16> {
  // CHECK-NEXT: ^bb0(%L: tensor<i32>, %[[IN:.*]]: tensor<2x8xbf16>):
  ^bb0(%i: tensor<i32>, %in: tensor<2x8xbf16>):
    // CHECK-NEXT: %[[G:.*]] = shd.part %g[%L] : tensor<3x8xbf16> -> tensor<8xbf16>
    %g = shd.part %gs[%i] : tensor<3x8xbf16> -> tensor<8xbf16>
    // CHECK-NEXT: spmd.update %s[%L] = %[[G]] : tensor<3x8xbf16>, tensor<8xbf16>
    spmd.update %ss[%i] = %g : tensor<3x8xbf16>, tensor<8xbf16>
    // CHECK-NEXT: %h = shd.elementwise mul(%[[IN]], %[[G]]) <[B, D], [D] -> [B, D]> {shd.name = "h", spmd.global = tensor<8x16xbf16, #shd.sharding<[{X}, {Y}]>>, spmd.shards = [#spmd.shard<"B" = 8 over [X]>, #spmd.shard<"D" = 16 over [Y]>]} : (tensor<2x8xbf16>, tensor<8xbf16>) -> tensor<2x8xbf16>
    %h = shd.elementwise mul(%in, %g) <[B, D], [D] -> [B, D]> {shd.name = "h", spmd.global = tensor<8x16xbf16, #shd.sharding<[{X}, {Y}]>>, spmd.shards = [#spmd.shard<"B" = 8 over [X]>, #spmd.shard<"D" = 16 over [Y]>]} : (tensor<2x8xbf16>, tensor<8xbf16>) -> tensor<2x8xbf16>
    shd.yield %h : tensor<2x8xbf16>
  }
  // CHECK: spmd.output "r" %[[R]] ["B", "D"] of tensor<8x16xbf16, #shd.sharding<[{X}, {Y}]>> : tensor<2x8xbf16>
  spmd.output "r" %r ["B", "D"] of tensor<8x16xbf16, #shd.sharding<[{X}, {Y}]>> : tensor<2x8xbf16>
}

// CHECK-LABEL: spmd.program "collectives"
spmd.program "collectives" mesh <[X = 4, Y = 2]> {
  %x = spmd.parameter input "x" ["B", "D"] of tensor<8x16xf32, #shd.sharding<[{X}, {Y}]>> : tensor<2x8xf32>
  // CHECK: spmd.all_gather %x over ["X"] of tensor<8x16xf32, #shd.sharding<[{X}, {Y}]>> to tensor<8x16xf32, #shd.sharding<[{}, {Y}]>> {shd.indices = ["B", "D"], shd.operand = "x"} : tensor<2x8xf32> -> tensor<8x8xf32>
  %ag = spmd.all_gather %x over ["X"] of tensor<8x16xf32, #shd.sharding<[{X}, {Y}]>> to tensor<8x16xf32, #shd.sharding<[{}, {Y}]>> {shd.operand = "x", shd.indices = ["B", "D"]} : tensor<2x8xf32> -> tensor<8x8xf32>
  // CHECK: spmd.all_slice %{{.*}} over ["X"] of tensor<8x16xf32, #shd.sharding<[{}, {Y}]>> to tensor<8x16xf32, #shd.sharding<[{}, {Y, X}]>> : tensor<8x8xf32> -> tensor<8x2xf32>
  %as = spmd.all_slice %ag over ["X"] of tensor<8x16xf32, #shd.sharding<[{}, {Y}]>> to tensor<8x16xf32, #shd.sharding<[{}, {Y, X}]>> : tensor<8x8xf32> -> tensor<8x2xf32>
  // CHECK: spmd.all_to_all %x over ["X"] of tensor<8x16xf32, #shd.sharding<[{X}, {Y}]>> to tensor<8x16xf32, #shd.sharding<[{}, {Y, X}]>> : tensor<2x8xf32> -> tensor<8x2xf32>
  %aa = spmd.all_to_all %x over ["X"] of tensor<8x16xf32, #shd.sharding<[{X}, {Y}]>> to tensor<8x16xf32, #shd.sharding<[{}, {Y, X}]>> : tensor<2x8xf32> -> tensor<8x2xf32>
  // CHECK: spmd.collective_permute %{{.*}} over ["X", "Y"] of tensor<8x16xf32, #shd.sharding<[{}, {Y, X}]>> to tensor<8x16xf32, #shd.sharding<[{}, {X, Y}]>> : tensor<8x2xf32> -> tensor<8x2xf32>
  %cp = spmd.collective_permute %as over ["X", "Y"] of tensor<8x16xf32, #shd.sharding<[{}, {Y, X}]>> to tensor<8x16xf32, #shd.sharding<[{}, {X, Y}]>> : tensor<8x2xf32> -> tensor<8x2xf32>
  // CHECK: %[[HALO:.*]] = spmd.halo_exchange %x dim 0 rows 2 over ["X"] of tensor<8x16xf32, #shd.sharding<[{X}, {Y}]>> to tensor<8x16xf32, #shd.sharding<[{}, {Y}]>> : tensor<2x8xf32> -> tensor<4x8xf32>
  %he = spmd.halo_exchange %x dim 0 rows 2 over ["X"] of tensor<8x16xf32, #shd.sharding<[{X}, {Y}]>> to tensor<8x16xf32, #shd.sharding<[{}, {Y}]>> : tensor<2x8xf32> -> tensor<4x8xf32>
  // CHECK: spmd.halo_reduce %[[HALO]] dim 0 rows 2 over ["X"] of tensor<8x16xf32, #shd.sharding<[{}, {Y}], partial = {X}>> to tensor<8x16xf32, #shd.sharding<[{X}, {Y}]>> : tensor<4x8xf32> -> tensor<2x8xf32>
  %hr = spmd.halo_reduce %he dim 0 rows 2 over ["X"] of tensor<8x16xf32, #shd.sharding<[{}, {Y}], partial = {X}>> to tensor<8x16xf32, #shd.sharding<[{X}, {Y}]>> : tensor<4x8xf32> -> tensor<2x8xf32>
  %p = shd.reduce sum(%x) <[B, D] -> [B]> {spmd.global = tensor<8xf32, #shd.sharding<[{X}], partial = {Y}>>, spmd.shards = [#spmd.shard<"B" = 8 over [X]>, #spmd.shard<"D" = 16 over [Y]>]} : (tensor<2x8xf32>) -> tensor<2xf32>
  // CHECK: spmd.reduce_scatter %{{.*}} over ["Y"] of tensor<8xf32, #shd.sharding<[{X}], partial = {Y}>> to tensor<8xf32, #shd.sharding<[{X, Y}]>> : tensor<2xf32> -> tensor<1xf32>
  %rs = spmd.reduce_scatter %p over ["Y"] of tensor<8xf32, #shd.sharding<[{X}], partial = {Y}>> to tensor<8xf32, #shd.sharding<[{X, Y}]>> : tensor<2xf32> -> tensor<1xf32>
  // CHECK: spmd.all_reduce %{{.*}} over ["Y"] of tensor<8xf32, #shd.sharding<[{X}], partial = {Y}>> to tensor<8xf32, #shd.sharding<[{X}]>> : tensor<2xf32> -> tensor<2xf32>
  %ar = spmd.all_reduce %p over ["Y"] of tensor<8xf32, #shd.sharding<[{X}], partial = {Y}>> to tensor<8xf32, #shd.sharding<[{X}]>> : tensor<2xf32> -> tensor<2xf32>
  %m = shd.statistic "max"(%x) {spmd.global = tensor<8xf32, #shd.sharding<[{X}], partial = {Y}>>} : (tensor<2x8xf32>) -> tensor<2xf32>
  // CHECK: spmd.all_reduce max %{{.*}} over ["Y"] of
  %max = spmd.all_reduce max %m over ["Y"] of tensor<8xf32, #shd.sharding<[{X}], partial = {Y}>> to tensor<8xf32, #shd.sharding<[{X}]>> : tensor<2xf32> -> tensor<2xf32>
}

// Axes of size 1, extents that axes do not divide, scalars, names that need
// quotes.
// CHECK-LABEL: spmd.program "corners"
spmd.program "corners" mesh <[X = 4, "1 Z" = 1]> {
  // CHECK: %x = spmd.parameter input "x" ["B"] of tensor<6xf32, #shd.sharding<[{X, "1 Z"}]>> : tensor<2xf32>
  %x = spmd.parameter input "x" ["B"] of tensor<6xf32, #shd.sharding<[{X, "1 Z"}]>> : tensor<2xf32>
  // CHECK: shd.elementwise exp(%x) <[B] -> [B]> {spmd.shards = [#spmd.shard<"B" = 6 over [X, "1 Z"]>]}
  %y = shd.elementwise exp(%x) <[B] -> [B]> {spmd.shards = [#spmd.shard<"B" = 6 over [X, "1 Z"]>]} : (tensor<2xf32>) -> tensor<2xf32>
  %s = shd.reduce sum(%y) <[B] -> []> {spmd.shards = [#spmd.shard<"B" = 6 over [X]>]} : (tensor<2xf32>) -> tensor<f32>
  // CHECK: spmd.all_reduce %{{.*}} over ["X"] of tensor<f32, #shd.sharding<[], partial = {X}>> to tensor<f32> : tensor<f32> -> tensor<f32>
  %t = spmd.all_reduce %s over ["X"] of tensor<f32, #shd.sharding<[], partial = {X}>> to tensor<f32> : tensor<f32> -> tensor<f32>
  // CHECK: spmd.output "t" %{{.*}} [] of tensor<f32> : tensor<f32>
  spmd.output "t" %t [] of tensor<f32> : tensor<f32>
}

// CHECK-LABEL: spmd.program "rings"
spmd.program "rings" mesh <[X = 4, Y = 2]> {
  %x = spmd.parameter input "x" ["B", "D"] of tensor<8x16xf32> : tensor<8x16xf32>
  %i = shd.constant dense<1> : tensor<i32>
  // CHECK: %[[N:.*]] = spmd.ring_position %{{.*}} plus 2 over ["Y", "X"]
  %n = spmd.ring_position %i plus 2 over ["Y", "X"]
  // CHECK-NEXT: %[[C:.*]] = spmd.chunk %x[%[[N]]] dim 1 : tensor<8x16xf32> -> tensor<8x2xf32>
  %c = spmd.chunk %x[%n] dim 1 : tensor<8x16xf32> -> tensor<8x2xf32>
  // CHECK-NEXT: %[[S:.*]] = spmd.ring_shift %[[C]] over ["Y", "X"] {shd.operand = "x", spmd.ring_of = "all_gather"} : tensor<8x2xf32>
  %s = spmd.ring_shift %c over ["Y", "X"] {shd.operand = "x", spmd.ring_of = "all_gather"} : tensor<8x2xf32>
  // CHECK-NEXT: spmd.ring_shift %[[C]] back over ["Y", "X"] : tensor<8x2xf32>
  %b = spmd.ring_shift %c back over ["Y", "X"] : tensor<8x2xf32>
  // CHECK-NEXT: spmd.place %[[S]] into %x[%[[N]]] dim 1 : tensor<8x2xf32> into tensor<8x16xf32>
  %p = spmd.place %s into %x[%n] dim 1 : tensor<8x2xf32> into tensor<8x16xf32>
}

// CHECK-LABEL: spmd.program "stages" mesh <[pp = 4 stages]> stages <[1, 2] of 4, layers "L" = 7, order "1f1b"> {
spmd.program "stages" mesh <[pp = 4 stages]> stages <[1, 2] of 4, layers "L" = 7, order "1f1b"> {
  // CHECK: %[[X:.*]] = spmd.receive forward 0 {shd.stage = #shd.stage<layers : forward>} : tensor<8xf32>
  %x = spmd.receive forward 0 {shd.stage = #shd.stage<layers : forward>} : tensor<8xf32>
  // CHECK: spmd.send %[[X]] backward 1 {shd.stage = #shd.stage<first last : weights partial>} : tensor<8xf32>
  spmd.send %x backward 1 {shd.stage = #shd.stage<first last : weights partial>} : tensor<8xf32>
  // CHECK: spmd.sum_stages %[[X]] 2 : tensor<8xf32>
  %s = spmd.sum_stages %x 2 : tensor<8xf32>
}
