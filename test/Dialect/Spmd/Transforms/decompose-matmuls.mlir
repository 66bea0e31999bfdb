// RUN: shardc-opt %s --pass-pipeline='builtin.module(spmd.program(spmd-decompose-matmuls))' | FileCheck %s --implicit-check-not=shd.ring --implicit-check-not=spmd.all_gather --implicit-check-not=spmd.reduce_scatter

// The gathered index is summed: products are added up. D is 16, 4 on each of 4
// devices; iteration i has the chunk that was i places further on.
// CHECK-LABEL: spmd.program "summed"
spmd.program "summed" mesh <[X = 4]> {
  %x = spmd.parameter input "x" ["B", "D"] of tensor<8x16xbf16, #shd.sharding<[{}, {X}]>> : tensor<8x4xbf16>
  %w = spmd.parameter weight "w" ["D", "F"] of tensor<16x32xbf16> : tensor<16x32xbf16>
  %g = spmd.all_gather %x over ["X"] of tensor<8x16xbf16, #shd.sharding<[{}, {X}]>> to tensor<8x16xbf16> {shd.indices = ["B", "D"], shd.operand = "x", shd.ring = 0 : i64} : tensor<8x4xbf16> -> tensor<8x16xbf16>
  // CHECK:      %[[Z:.*]] = shd.constant dense<0.000000e+00> : tensor<bf16>
  // CHECK-NEXT: %[[ZEROS:.*]] = shd.elementwise copy(%[[Z]]) <[] -> [B, F]> : (tensor<bf16>) -> tensor<8x32xbf16>
  // CHECK-NEXT: %[[LOOP:.*]]:2 = shd.repeat "ring" = 3(%x, %[[ZEROS]]) : (tensor<8x4xbf16>, tensor<8x32xbf16>) -> (tensor<8x4xbf16>, tensor<8x32xbf16>) {
  // CHECK-NEXT: ^bb0(%[[I:.*]]: tensor<i32>, %[[C:.*]]: tensor<8x4xbf16>, %[[SUM:.*]]: tensor<8x32xbf16>):
  // CHECK-NEXT:   %[[NEXT:.*]] = spmd.ring_shift %[[C]] over ["X"] {shd.indices = ["B", "D"], shd.operand = "x", spmd.ring_of = "all_gather"} : tensor<8x4xbf16>
  // CHECK-NEXT:   %[[AT:.*]] = spmd.ring_position %[[I]] plus 0 over ["X"]
  // CHECK-NEXT:   %[[W:.*]] = spmd.chunk %w[%[[AT]]] dim 0 : tensor<16x32xbf16> -> tensor<4x32xbf16>
  // CHECK-NEXT:   %[[P:.*]] = shd.einsum(%[[C]], %[[W]]) <[B, D], [D, F] -> [B, F]> {shd.group = #shd.group<0>, shd.name = "y"} : (tensor<8x4xbf16>, tensor<4x32xbf16>) -> tensor<8x32xbf16>
  // CHECK-NEXT:   %[[ADDED:.*]] = shd.elementwise add(%[[SUM]], %[[P]]) <[B, F], [B, F] -> [B, F]> {shd.group = #shd.group<0>}
  // CHECK-NEXT:   shd.yield %[[NEXT]], %[[ADDED]]
  // CHECK-NEXT: }
  // CHECK-NEXT: %[[ZERO:.*]] = shd.constant dense<0> : tensor<i32>
  // CHECK-NEXT: %[[LAST:.*]] = spmd.ring_position %[[ZERO]] plus 3 over ["X"]
  // CHECK-NEXT: %[[W3:.*]] = spmd.chunk %w[%[[LAST]]] dim 0
  // CHECK-NEXT: %[[P3:.*]] = shd.einsum(%[[LOOP]]#0, %[[W3]])
  // CHECK-NEXT: %[[Y:.*]] = shd.elementwise add(%[[LOOP]]#1, %[[P3]]) <[B, F], [B, F] -> [B, F]> {shd.group = #shd.group<0>, shd.name = "y", spmd.global = tensor<8x32xbf16, #shd.sharding<[{}, {}]>>} : (tensor<8x32xbf16>, tensor<8x32xbf16>) -> tensor<8x32xbf16>
  // CHECK-NEXT: spmd.output "y" %[[Y]]
  %y = shd.einsum(%g, %w) <[B, D], [D, F] -> [B, F]> {shd.group = #shd.group<0>, shd.name = "y", shd.ring = 0 : i64, spmd.global = tensor<8x32xbf16, #shd.sharding<[{}, {}]>>} : (tensor<8x16xbf16>, tensor<16x32xbf16>) -> tensor<8x32xbf16>
  spmd.output "y" %y ["B", "F"] of tensor<8x32xbf16> : tensor<8x32xbf16>
}

// The result keeps the gathered index, and it is the matmul's right operand:
// products are placed side by side. Shards of other indices stay, those of the
// chunks' go: B is 16, split over Y and X, 2 of 8 rows a chunk.
// CHECK-LABEL: spmd.program "kept"
spmd.program "kept" mesh <[X = 4, Y = 2]> {
  %w = spmd.parameter weight "w" ["F", "D"] of tensor<5x16xbf16, #shd.sharding<[{X}, {}]>> : tensor<2x16xbf16>
  %x = spmd.parameter input "x" ["D", "B"] of tensor<16x16xbf16, #shd.sharding<[{}, {Y, X}]>> : tensor<16x2xbf16>
  %g = spmd.all_gather %x over ["X"] of tensor<16x16xbf16, #shd.sharding<[{}, {Y, X}]>> to tensor<16x16xbf16, #shd.sharding<[{}, {Y}]>> {shd.ring = 7 : i64} : tensor<16x2xbf16> -> tensor<16x8xbf16>
  // CHECK:      %[[LOOP:.*]]:2 = shd.repeat "ring" = 3(%x, %{{.*}}) : (tensor<16x2xbf16>, tensor<8x2xbf16>)
  // CHECK:        spmd.ring_shift
  // CHECK-NEXT:   %[[AT:.*]] = spmd.ring_position %{{.*}} plus 0 over ["X"]
  // CHECK-NEXT:   %[[P:.*]] = shd.einsum(%w, %{{.*}}) <[F, D], [D, B] -> [B, F]> {spmd.shards = [#spmd.shard<"F" = 5 over [X]>]} : (tensor<2x16xbf16>, tensor<16x2xbf16>) -> tensor<2x2xbf16>
  // CHECK-NEXT:   %[[PLACED:.*]] = spmd.place %[[P]] into %{{.*}}[%[[AT]]] dim 0 : tensor<2x2xbf16> into tensor<8x2xbf16>
  // CHECK:      %[[LAST:.*]] = spmd.ring_position %{{.*}} plus 3 over ["X"]
  // CHECK-NEXT: %[[P3:.*]] = shd.einsum(%w, %[[LOOP]]#0)
  // CHECK-NEXT: %[[Y:.*]] = spmd.place %[[P3]] into %[[LOOP]]#1[%[[LAST]]] dim 0 {spmd.global = tensor<16x5xbf16, #shd.sharding<[{Y}, {X}]>>} : tensor<2x2xbf16> into tensor<8x2xbf16>
  // CHECK-NEXT: spmd.output "y" %[[Y]]
  %y = shd.einsum(%w, %g) <[F, D], [D, B] -> [B, F]> {shd.ring = 7 : i64, spmd.global = tensor<16x5xbf16, #shd.sharding<[{Y}, {X}]>>, spmd.shards = [#spmd.shard<"F" = 5 over [X]>, #spmd.shard<"B" = 16 over [Y]>]} : (tensor<2x16xbf16>, tensor<16x8xbf16>) -> tensor<8x2xbf16>
  spmd.output "y" %y ["B", "F"] of tensor<16x5xbf16, #shd.sharding<[{Y}, {X}]>> : tensor<8x2xbf16>
}

// An index of both operands and of the result: the other operand gives its
// chunk, too. Two axes make one ring, in the order in which they split it.
// CHECK-LABEL: spmd.program "batch"
spmd.program "batch" mesh <[X = 2, Y = 3]> {
  %x = spmd.parameter input "x" ["E", "D"] of tensor<12x8xf32, #shd.sharding<[{Y, X}, {}]>> : tensor<2x8xf32>
  %w = spmd.parameter weight "w" ["E", "D", "F"] of tensor<12x8x4xf32> : tensor<12x8x4xf32>
  %g = spmd.all_gather %x over ["X", "Y"] of tensor<12x8xf32, #shd.sharding<[{Y, X}, {}]>> to tensor<12x8xf32> {shd.ring = 0 : i64} : tensor<2x8xf32> -> tensor<12x8xf32>
  // CHECK:      shd.repeat "ring" = 5(
  // CHECK:        spmd.ring_shift %{{.*}} over ["Y", "X"] {spmd.ring_of = "all_gather"} : tensor<2x8xf32>
  // CHECK-NEXT:   %[[AT:.*]] = spmd.ring_position %{{.*}} plus 0 over ["Y", "X"]
  // CHECK-NEXT:   %[[W:.*]] = spmd.chunk %w[%[[AT]]] dim 0 : tensor<12x8x4xf32> -> tensor<2x8x4xf32>
  // CHECK-NEXT:   %[[P:.*]] = shd.einsum(%{{.*}}, %[[W]]) <[E, D], [E, D, F] -> [F, E]> : (tensor<2x8xf32>, tensor<2x8x4xf32>) -> tensor<4x2xf32>
  // CHECK-NEXT:   spmd.place %[[P]] into %{{.*}}[%[[AT]]] dim 1 : tensor<4x2xf32> into tensor<4x12xf32>
  %y = shd.einsum(%g, %w) <[E, D], [E, D, F] -> [F, E]> {shd.ring = 0 : i64} : (tensor<12x8xf32>, tensor<12x8x4xf32>) -> tensor<4x12xf32>
  spmd.output "y" %y ["F", "E"] of tensor<4x12xf32> : tensor<4x12xf32>
}

// Others read the gathered tensor later: the ring assembles it.
// CHECK-LABEL: spmd.program "shared"
spmd.program "shared" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["B", "D"] of tensor<8x16xf32, #shd.sharding<[{X}, {}]>> : tensor<4x16xf32>
  %w = spmd.parameter weight "w" ["D", "F"] of tensor<16x32xf32> : tensor<16x32xf32>
  %g = spmd.all_gather %x over ["X"] of tensor<8x16xf32, #shd.sharding<[{X}, {}]>> to tensor<8x16xf32, #shd.sharding<[{}, {}]>> {shd.operand = "x", shd.ring = 0 : i64} : tensor<4x16xf32> -> tensor<8x16xf32>
  // CHECK:      %[[ZEROS:.*]] = shd.elementwise copy(%{{.*}}) <[] -> [B, D]> : (tensor<f32>) -> tensor<8x16xf32>
  // CHECK:      %[[LOOP:.*]]:3 = shd.repeat "ring" = 1(%x, %{{.*}}, %[[ZEROS]])
  // CHECK-NEXT: ^bb0(%[[I:.*]]: tensor<i32>, %[[C:.*]]: tensor<4x16xf32>, %[[SUM:.*]]: tensor<8x32xf32>, %[[WHOLE:.*]]: tensor<8x16xf32>):
  // CHECK:        spmd.place %[[C]] into %[[WHOLE]][%{{.*}}] dim 0 : tensor<4x16xf32> into tensor<8x16xf32>
  // CHECK:        shd.yield %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x16xf32>, tensor<8x32xf32>, tensor<8x16xf32>
  // CHECK:      %[[G:.*]] = spmd.place %[[LOOP]]#0 into %[[LOOP]]#2[%{{.*}}] dim 0 {shd.operand = "x", spmd.global = tensor<8x16xf32, #shd.sharding<[{}, {}]>>}
  // CHECK-NEXT: %[[E:.*]] = shd.elementwise exp(%[[G]])
  %y = shd.einsum(%g, %w) <[B, D], [D, F] -> [B, F]> {shd.ring = 0 : i64} : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %e = shd.elementwise exp(%g) <[B, D] -> [B, D]> : (tensor<8x16xf32>) -> tensor<8x16xf32>
  // CHECK: spmd.output "e" %[[E]]
  spmd.output "y" %y ["B", "F"] of tensor<8x32xf32> : tensor<8x32xf32>
  spmd.output "e" %e ["B", "D"] of tensor<8x16xf32> : tensor<8x16xf32>
}

// A sum travels. F stays on 4 devices, 8 of 32 each; iteration i adds what this
// device has for the chunk of the device 2 + i places further on.
// CHECK-LABEL: spmd.program "scattered"
spmd.program "scattered" mesh <[X = 4]> {
  %x = spmd.parameter input "x" ["B", "D"] of tensor<8x16xbf16, #shd.sharding<[{}, {X}]>> : tensor<8x4xbf16>
  %w = spmd.parameter weight "w" ["D", "F"] of tensor<16x32xbf16, #shd.sharding<[{X}, {}]>> : tensor<4x32xbf16>
  %p = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> {shd.name = "y", shd.ring = 0 : i64, spmd.global = tensor<8x32xbf16, #shd.sharding<[{}, {}], partial = {X}>>, spmd.shards = [#spmd.shard<"D" = 16 over [X]>]} : (tensor<8x4xbf16>, tensor<4x32xbf16>) -> tensor<8x32xbf16>
  // CHECK:      %[[ZERO:.*]] = shd.constant dense<0> : tensor<i32>
  // CHECK-NEXT: %[[AT1:.*]] = spmd.ring_position %[[ZERO]] plus 1 over ["X"]
  // CHECK-NEXT: %[[W1:.*]] = spmd.chunk %w[%[[AT1]]] dim 1 : tensor<4x32xbf16> -> tensor<4x8xbf16>
  // CHECK-NEXT: %[[P1:.*]] = shd.einsum(%x, %[[W1]]) <[B, D], [D, F] -> [B, F]> {shd.name = "y", spmd.shards = [#spmd.shard<"D" = 16 over [X]>]} : (tensor<8x4xbf16>, tensor<4x8xbf16>) -> tensor<8x8xbf16>
  // CHECK-NEXT: %[[Y:.*]] = shd.repeat "ring" = 3(%[[P1]]) {spmd.global = tensor<8x32xbf16, #shd.sharding<[{}, {X}]>>} : (tensor<8x8xbf16>) -> tensor<8x8xbf16> {
  // CHECK-NEXT: ^bb0(%[[I:.*]]: tensor<i32>, %[[SUM:.*]]: tensor<8x8xbf16>):
  // CHECK-NEXT:   %[[MOVED:.*]] = spmd.ring_shift %[[SUM]] over ["X"] {shd.operand = "y", spmd.ring_of = "reduce_scatter"} : tensor<8x8xbf16>
  // CHECK-NEXT:   %[[AT:.*]] = spmd.ring_position %[[I]] plus 2 over ["X"]
  // CHECK-NEXT:   %[[W:.*]] = spmd.chunk %w[%[[AT]]] dim 1
  // CHECK-NEXT:   %[[P:.*]] = shd.einsum(%x, %[[W]])
  // CHECK-NEXT:   %[[ADDED:.*]] = shd.elementwise add(%[[MOVED]], %[[P]]) <[B, F], [B, F] -> [B, F]> : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  // CHECK-NEXT:   shd.yield %[[ADDED]]
  // CHECK-NEXT: }
  // CHECK-NEXT: spmd.output "y" %[[Y]]
  %y = spmd.reduce_scatter %p over ["X"] of tensor<8x32xbf16, #shd.sharding<[{}, {}], partial = {X}>> to tensor<8x32xbf16, #shd.sharding<[{}, {X}]>> {shd.operand = "y", shd.ring = 0 : i64} : tensor<8x32xbf16> -> tensor<8x8xbf16>
  spmd.output "y" %y ["B", "F"] of tensor<8x32xbf16, #shd.sharding<[{}, {X}]>> : tensor<8x8xbf16>
}

// What stands between the two runs on chunks, each operand cut where it has the
// index: s has it, t not, and the two paths from the matmul meet again.
// CHECK-LABEL: spmd.program "fused"
spmd.program "fused" mesh <[X = 2, Y = 2]> {
  %x = spmd.parameter input "x" ["B", "D"] of tensor<8x16xf32, #shd.sharding<[{}, {X}]>> : tensor<8x8xf32>
  %w = spmd.parameter weight "w" ["D", "F"] of tensor<16x32xf32, #shd.sharding<[{X}, {Y}]>> : tensor<8x16xf32>
  %s = spmd.parameter weight "s" ["F"] of tensor<32xf32, #shd.sharding<[{Y}]>> : tensor<16xf32>
  %t = spmd.parameter weight "t" ["B"] of tensor<8xf32> : tensor<8xf32>
  // CHECK:      %[[AT1:.*]] = spmd.ring_position %{{.*}} plus 1 over ["X"]
  // CHECK-NEXT: %[[W1:.*]] = spmd.chunk %w[%[[AT1]]] dim 1 : tensor<8x16xf32> -> tensor<8x8xf32>
  // CHECK-NEXT: %[[P1:.*]] = shd.einsum(%x, %[[W1]]) <[B, D], [D, F] -> [F, B]> {shd.group = #shd.group<0>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  // CHECK-NEXT: %[[S1:.*]] = spmd.chunk %s[%[[AT1]]] dim 0 : tensor<16xf32> -> tensor<8xf32>
  // CHECK-NEXT: %[[A1:.*]] = shd.elementwise mul(%[[P1]], %[[S1]]) <[G, B], [G] -> [B, G]>
  // CHECK-NEXT: %[[B1:.*]] = shd.elementwise mul(%[[A1]], %t) <[B, G], [B] -> [B, G]>
  // CHECK-NEXT: %[[C1:.*]] = shd.elementwise sub(%[[B1]], %[[P1]]) <[B, F], [F, B] -> [B, F]>
  // CHECK-NEXT: shd.repeat "ring" = 1(%[[C1]])
  // CHECK:        shd.elementwise add(%{{.*}}, %{{.*}}) <[B, F], [B, F] -> [B, F]> {shd.group = #shd.group<0>}
  %p = shd.einsum(%x, %w) <[B, D], [D, F] -> [F, B]> {shd.group = #shd.group<0>, shd.ring = 0 : i64} : (tensor<8x8xf32>, tensor<8x16xf32>) -> tensor<16x8xf32>
  %a = shd.elementwise mul(%p, %s) <[G, B], [G] -> [B, G]> {shd.group = #shd.group<0>} : (tensor<16x8xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  %b = shd.elementwise mul(%a, %t) <[B, G], [B] -> [B, G]> {shd.group = #shd.group<0>} : (tensor<8x16xf32>, tensor<8xf32>) -> tensor<8x16xf32>
  %c = shd.elementwise sub(%b, %p) <[B, F], [F, B] -> [B, F]> {shd.group = #shd.group<0>, spmd.shards = [#spmd.shard<"F" = 32 over [Y]>]} : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x16xf32>
  %y = spmd.reduce_scatter %c over ["X"] of tensor<8x32xf32, #shd.sharding<[{}, {Y}], partial = {X}>> to tensor<8x32xf32, #shd.sharding<[{}, {Y, X}]>> {shd.ring = 0 : i64} : tensor<8x16xf32> -> tensor<8x8xf32>
  spmd.output "y" %y ["B", "F"] of tensor<8x32xf32, #shd.sharding<[{}, {Y, X}]>> : tensor<8x8xf32>
}

// Two rings in a repeat, of which the second begins with what the first makes.
// CHECK-LABEL: spmd.program "repeat"
spmd.program "repeat" mesh <[X = 4]> {
  %x = spmd.parameter input "x" ["B", "D"] of tensor<8x16xf32, #shd.sharding<[{X}, {}]>> : tensor<2x16xf32>
  %w1s = spmd.parameter weight "w1" ["L", "D", "F"] of tensor<5x16x32xf32, #shd.sharding<[{}, {}, {X}]>> stacked 1 : tensor<5x16x8xf32>
  %w2s = spmd.parameter weight "w2" ["L", "F", "D"] of tensor<5x32x16xf32, #shd.sharding<[{}, {X}, {}]>> stacked 1 : tensor<5x8x16xf32>
  // CHECK: shd.repeat "L" = 5(%x)
  %r = shd.repeat "L" = 5(%x) : (tensor<2x16xf32>) -> tensor<2x16xf32> {
  ^bb0(%i: tensor<i32>, %c: tensor<2x16xf32>):
    // CHECK: %[[W2:.*]] = shd.part %w2[%L]
    %w1 = shd.part %w1s[%i] : tensor<5x16x8xf32> -> tensor<16x8xf32>
    %w2 = shd.part %w2s[%i] : tensor<5x8x16xf32> -> tensor<8x16xf32>
    // CHECK: %[[FIRST:.*]]:2 = shd.repeat "ring" = 3(
    // CHECK: shd.yield
    // CHECK: %[[H:.*]] = spmd.place
    // CHECK: shd.einsum(%{{.*}}, %[[W2]])
    // CHECK: %[[SECOND:.*]] = shd.repeat "ring" = 3(
    // CHECK: spmd.chunk %[[H]][%{{.*}}] dim 0 : tensor<8x8xf32> -> tensor<2x8xf32>
    // CHECK: shd.yield %[[SECOND]] : tensor<2x16xf32>
    %g = spmd.all_gather %c over ["X"] of tensor<8x16xf32, #shd.sharding<[{X}, {}]>> to tensor<8x16xf32> {shd.ring = 0 : i64} : tensor<2x16xf32> -> tensor<8x16xf32>
    %h = shd.einsum(%g, %w1) <[B, D], [D, F] -> [B, F]> {shd.ring = 0 : i64} : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
    %p = shd.einsum(%h, %w2) <[B, F], [F, D] -> [B, D]> {shd.ring = 1 : i64} : (tensor<8x8xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    %y = spmd.reduce_scatter %p over ["X"] of tensor<8x16xf32, #shd.sharding<[{}, {}], partial = {X}>> to tensor<8x16xf32, #shd.sharding<[{X}, {}]>> {shd.ring = 1 : i64} : tensor<8x16xf32> -> tensor<2x16xf32>
    shd.yield %y : tensor<2x16xf32>
  }
  spmd.output "r" %r ["B", "D"] of tensor<8x16xf32, #shd.sharding<[{X}, {}]>> : tensor<2x16xf32>
}
