// RUN: shardc-opt %s --pass-pipeline='builtin.module(shd.program(shd-fusion-groups))' | FileCheck %s

// Group g is 2 g on its leader and 2 g + 1 on what follows.

// CHECK-LABEL: shd.program "feed_forward"
shd.program "feed_forward" mesh <[X = 4]> hardware <"h100", [4]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  %w = shd.declare weight "w" ["D", "F"] : tensor<32x128xbf16>
  %g = shd.declare weight "g" ["F"] : tensor<128xbf16>
  // CHECK: shd.einsum{{.*}} {shd.group = #shd.group<0>}
  %h = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> : (tensor<64x32xbf16>, tensor<32x128xbf16>) -> tensor<64x128xbf16>
  // An elementwise operation joins the group of its latest operand.
  // CHECK: shd.elementwise relu{{.*}} {shd.group = #shd.group<0, rest>}
  %r = shd.elementwise relu(%h) <[B, F] -> [B, F]> : (tensor<64x128xbf16>) -> tensor<64x128xbf16>
  // A row operation does not: tiles of a product hold no whole rows.
  // CHECK: shd.normalize rmsnorm{{.*}}shd.group = #shd.group<1, rest>
  %n = shd.normalize rmsnorm(%r, %g) over ["F"] <[B, F], [F] -> [B, F]> : (tensor<64x128xbf16>, tensor<128xbf16>) -> tensor<64x128xbf16>
  // It joins one of rows over the same index, of which it has some.
  // CHECK: shd.reduce sum{{.*}} {shd.group = #shd.group<1, rest>}
  %s = shd.reduce sum(%n) <[B, F] -> [B]> : (tensor<64x128xbf16>) -> tensor<64xbf16>
  // Its latest operand is the sum, not n.
  // CHECK: shd.elementwise mul{{.*}} {shd.group = #shd.group<1, rest>}
  %m = shd.elementwise mul(%n, %s) <[B, F], [B] -> [B, F]> : (tensor<64x128xbf16>, tensor<64xbf16>) -> tensor<64x128xbf16>
  shd.output "m" %m ["B", "F"] : tensor<64x128xbf16>
}

// CHECK-LABEL: shd.program "own_group"
shd.program "own_group" mesh <[X = 4]> hardware <"h100", [4]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  %t = shd.declare input "t" ["T"] : tensor<16xbf16>
  %w = shd.declare weight "w" ["D", "E"] : tensor<32x32xbf16>
  // What reads only declared tensors starts a group.
  // CHECK: shd.elementwise silu{{.*}} {shd.group = #shd.group<0, rest>}
  %a = shd.elementwise silu(%x) <[B, D] -> [B, D]> : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
  // An einsum always does.
  // CHECK: shd.einsum{{.*}} {shd.group = #shd.group<1>}
  %b = shd.einsum(%a, %w) <[B, D], [D, E] -> [B, E]> : (tensor<64x32xbf16>, tensor<32x32xbf16>) -> tensor<64x32xbf16>
  // An index that the group lacks: a group of its own.
  // CHECK: shd.elementwise add{{.*}} {shd.group = #shd.group<2, rest>}
  %c = shd.elementwise add(%b, %t) <[B, E], [T] -> [B, T, E]> : (tensor<64x32xbf16>, tensor<16xbf16>) -> tensor<64x16x32xbf16>
  // Which may hold what has fewer indices.
  // CHECK: shd.reduce max{{.*}} {shd.group = #shd.group<2, rest>}
  %d = shd.reduce max(%c) <[B, T, E] -> [B]> : (tensor<64x16x32xbf16>) -> tensor<64xbf16>
  // Views cost nothing and belong to no group; what reads them starts one.
  // CHECK: shd.split
  // CHECK-NOT: shd.group
  // CHECK: shd.elementwise exp{{.*}} {shd.group = #shd.group<3, rest>}
  %e = shd.split(%b) "E" into ["P", "Q"] <[B, E] -> [B, P, Q]> : (tensor<64x32xbf16>) -> tensor<64x8x4xbf16>
  %f = shd.elementwise exp(%e) <[B, P, Q] -> [B, P, Q]> : (tensor<64x8x4xbf16>) -> tensor<64x8x4xbf16>
  shd.output "d" %d ["B"] : tensor<64xbf16>
  shd.output "f" %f ["B", "P", "Q"] : tensor<64x8x4xbf16>
}

// The latest operand is the deepest one, wherever it stands.
// CHECK-LABEL: shd.program "depth"
shd.program "depth" mesh <[X = 4]> hardware <"h100", [4]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  %u = shd.declare input "u" ["B", "D"] : tensor<64x32xbf16>
  // CHECK: shd.elementwise exp{{.*}} {shd.group = #shd.group<0, rest>}
  %a = shd.elementwise exp(%x) <[B, D] -> [B, D]> : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
  // CHECK: shd.elementwise neg{{.*}} {shd.group = #shd.group<0, rest>}
  %b = shd.elementwise neg(%a) <[B, D] -> [B, D]> : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
  // CHECK: shd.elementwise tanh{{.*}} {shd.group = #shd.group<1, rest>}
  %c = shd.elementwise tanh(%u) <[B, D] -> [B, D]> : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
  // A declaration is not produced.
  %v = shd.declare input "v" ["B", "D"] : tensor<64x32xbf16>
  // CHECK: shd.elementwise mul{{.*}} {shd.group = #shd.group<0, rest>}
  %d = shd.elementwise mul(%b, %c) <[B, D], [B, D] -> [B, D]> : (tensor<64x32xbf16>, tensor<64x32xbf16>) -> tensor<64x32xbf16>
  // CHECK: shd.elementwise add{{.*}} {shd.group = #shd.group<0, rest>}
  %e = shd.elementwise add(%v, %d) <[B, D], [B, D] -> [B, D]> : (tensor<64x32xbf16>, tensor<64x32xbf16>) -> tensor<64x32xbf16>
  // Group 0 reads c's group, which cannot read it in turn.
  // CHECK: shd.elementwise sub{{.*}} {shd.group = #shd.group<2, rest>}
  %i = shd.elementwise sub(%c, %a) <[B, D], [B, D] -> [B, D]> : (tensor<64x32xbf16>, tensor<64x32xbf16>) -> tensor<64x32xbf16>
  // Of equally deep ones it is the leftmost.
  // CHECK: shd.elementwise silu{{.*}} {shd.group = #shd.group<3, rest>}
  %j = shd.elementwise silu(%v) <[B, D] -> [B, D]> : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
  // CHECK: shd.elementwise add{{.*}} {shd.group = #shd.group<1, rest>}
  %f = shd.elementwise add(%c, %j) <[B, D], [B, D] -> [B, D]> : (tensor<64x32xbf16>, tensor<64x32xbf16>) -> tensor<64x32xbf16>
  shd.output "i" %i ["B", "D"] : tensor<64x32xbf16>
  shd.output "e" %e ["B", "D"] : tensor<64x32xbf16>
  shd.output "f" %f ["B", "D"] : tensor<64x32xbf16>
}

// CHECK-LABEL: shd.program "rows"
shd.program "rows" mesh <[X = 4]> hardware <"h100", [4]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  %t = shd.declare input "t" ["B"] : tensor<64xi32>
  %w = shd.declare weight "w" ["D", "F"] : tensor<32x128xbf16>
  %e = shd.declare weight "e" ["V", "F"] : tensor<16x128xbf16>
  // A row operation joins the group of a gather.
  // CHECK: shd.gather{{.*}} {shd.group = #shd.group<0>}
  %g = shd.gather(%e, %t) <[V, F], [B] -> [B, F]> at [0] : (tensor<16x128xbf16>, tensor<64xi32>) -> tensor<64x128xbf16>
  // CHECK: shd.normalize rmsnorm{{.*}}shd.group = #shd.group<0, rest>
  %n = shd.normalize rmsnorm(%g) over ["F"] <[B, F] -> [B, F]> : (tensor<64x128xbf16>) -> tensor<64x128xbf16>
  // CHECK: shd.einsum{{.*}} {shd.group = #shd.group<1>}
  %h = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> : (tensor<64x32xbf16>, tensor<32x128xbf16>) -> tensor<64x128xbf16>
  // A widening cast that only row operations read is theirs; of one that others
  // read too, the product writes the wide type.
  // CHECK: shd.elementwise cast{{.*}} {shd.group = #shd.group<2, rest>}
  %c = shd.elementwise cast(%h) <[B, F] -> [B, F]> : (tensor<64x128xbf16>) -> tensor<64x128xf32>
  // CHECK: shd.normalize softmax{{.*}}shd.group = #shd.group<2, rest>
  %s = shd.normalize softmax(%c) over ["F"] <[B, F] -> [B, F]> : (tensor<64x128xf32>) -> tensor<64x128xf32>
  // CHECK: shd.elementwise cast{{.*}} {shd.group = #shd.group<1, rest>}
  %k = shd.elementwise cast(%h) <[B, F] -> [B, F]> : (tensor<64x128xbf16>) -> tensor<64x128xf32>
  // CHECK: shd.elementwise exp{{.*}} {shd.group = #shd.group<1, rest>}
  %l = shd.elementwise exp(%k) <[B, F] -> [B, F]> : (tensor<64x128xf32>) -> tensor<64x128xf32>
  // CHECK: shd.reduce max{{.*}} {shd.group = #shd.group<3, rest>}
  %m = shd.reduce max(%k) <[B, F] -> [B]> : (tensor<64x128xf32>) -> tensor<64xf32>
  // A reduction over other indices joins if nobody in the group reads it: the
  // last one does not, for it reads that.
  // CHECK: shd.reduce sum{{.*}} {shd.group = #shd.group<2, rest>}
  %q = shd.reduce sum(%s) <[B, F] -> [F]> : (tensor<64x128xf32>) -> tensor<128xf32>
  // CHECK: shd.elementwise mul{{.*}} {shd.group = #shd.group<4, rest>}
  %r = shd.elementwise mul(%s, %q) <[B, F], [F] -> [B, F]> : (tensor<64x128xf32>, tensor<128xf32>) -> tensor<64x128xf32>
  // No row operation over others that is more than a reduction does.
  // CHECK: shd.normalize softmax{{.*}}shd.group = #shd.group<5, rest>
  %p = shd.normalize softmax(%n) over ["B"] <[B, F] -> [B, F]> : (tensor<64x128xbf16>) -> tensor<64x128xbf16>
  shd.output "l" %l ["B", "F"] : tensor<64x128xf32>
  shd.output "m" %m ["B"] : tensor<64xf32>
  shd.output "r" %r ["B", "F"] : tensor<64x128xf32>
  shd.output "p" %p ["B", "F"] : tensor<64x128xbf16>
}

// A loss in chunks is behind its product, with a soft cap and a cast between
// them, and the mean of the losses behind it.
// CHECK-LABEL: shd.program "chunks"
shd.program "chunks" mesh <[X = 4]> hardware <"h100", [4]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  %t = shd.declare input "t" ["B"] : tensor<64xi32>
  %w = shd.declare weight "w" ["D", "V"] : tensor<32x128xbf16>
  // CHECK: shd.einsum{{.*}} {shd.group = #shd.group<0>}
  %h = shd.einsum(%x, %w) <[B, D], [D, V] -> [B, V]> : (tensor<64x32xbf16>, tensor<32x128xbf16>) -> tensor<64x128xbf16>
  // CHECK: shd.elementwise tanh{{.*}} {shd.group = #shd.group<0, rest>}
  %a = shd.elementwise tanh(%h) <[B, V] -> [B, V]> : (tensor<64x128xbf16>) -> tensor<64x128xbf16>
  // CHECK: shd.elementwise cast{{.*}} {shd.group = #shd.group<0, rest>}
  %c = shd.elementwise cast(%a) <[B, V] -> [B, V]> : (tensor<64x128xbf16>) -> tensor<64x128xf32>
  // CHECK: shd.cross_entropy{{.*}} chunks 8 {{.*}}{shd.group = #shd.group<0, rest>}
  %l = shd.cross_entropy(%c, %t) over "V" chunks 8 <[B, V], [B] -> [B]> : tensor<64x128xf32>, tensor<64xi32> -> tensor<64xf32>
  // CHECK: shd.reduce mean{{.*}} {shd.group = #shd.group<0, rest>}
  %m = shd.reduce mean(%l) <[B] -> []> : (tensor<64xf32>) -> tensor<f32>
  // Other row operations read the logits from HBM.
  // CHECK: shd.normalize logsumexp{{.*}}shd.group = #shd.group<1, rest>
  %n = shd.normalize logsumexp(%a) over ["V"] <[B, V] -> [B]> : (tensor<64x128xbf16>) -> tensor<64xbf16>
  shd.output "m" %m [] : tensor<f32>
  shd.output "n" %n ["B"] : tensor<64xbf16>
}

// A body does not fuse with what is outside.
// CHECK-LABEL: shd.program "blocks"
shd.program "blocks" mesh <[X = 4]> hardware <"h100", [4]> {
  %x = shd.declare input "x" ["B"] : tensor<64xbf16>
  // CHECK: shd.elementwise exp{{.*}} {shd.group = #shd.group<0, rest>}
  %a = shd.elementwise exp(%x) <[B] -> [B]> : (tensor<64xbf16>) -> tensor<64xbf16>
  %y = shd.repeat "L" = 3 (%a) : (tensor<64xbf16>) -> (tensor<64xbf16>) {
  ^bb0(%i: tensor<i32>, %c: tensor<64xbf16>):
    // CHECK: shd.elementwise add{{.*}} {shd.group = #shd.group<1, rest>}
    %b = shd.elementwise add(%c, %a) <[B], [B] -> [B]> : (tensor<64xbf16>, tensor<64xbf16>) -> tensor<64xbf16>
    shd.yield %b : tensor<64xbf16>
  }
  // CHECK: shd.elementwise tanh{{.*}} {shd.group = #shd.group<2, rest>}
  %z = shd.elementwise tanh(%y) <[B] -> [B]> : (tensor<64xbf16>) -> tensor<64xbf16>
  shd.output "z" %z ["B"] : tensor<64xbf16>
}

// What a repeat begins with, or reads through a view, has been made before it
// runs: behind it nothing joins that group any more.
// CHECK-LABEL: shd.program "over"
shd.program "over" mesh <[X = 4]> hardware <"h100", [4]> {
  %x = shd.declare input "x" ["B"] : tensor<64xbf16>
  %y = shd.declare input "y" ["B"] : tensor<64xbf16>
  %u = shd.declare input "u" ["B"] : tensor<64xbf16>
  // CHECK: shd.elementwise exp{{.*}} {shd.group = #shd.group<0, rest>}
  %a = shd.elementwise exp(%x) <[B] -> [B]> : (tensor<64xbf16>) -> tensor<64xbf16>
  // CHECK: shd.elementwise silu{{.*}} {shd.group = #shd.group<1, rest>}
  %b = shd.elementwise silu(%y) <[B] -> [B]> : (tensor<64xbf16>) -> tensor<64xbf16>
  // CHECK: shd.elementwise sqrt{{.*}} {shd.group = #shd.group<2, rest>}
  %d = shd.elementwise sqrt(%u) <[B] -> [B]> : (tensor<64xbf16>) -> tensor<64xbf16>
  %v = shd.split(%b) "B" into ["P", "Q"] <[B] -> [P, Q]> : (tensor<64xbf16>) -> tensor<8x8xbf16>
  %r = shd.repeat "L" = 3 (%a) : (tensor<64xbf16>) -> (tensor<64xbf16>) {
  ^bb0(%i: tensor<i32>, %c: tensor<64xbf16>):
    // CHECK: shd.elementwise mul{{.*}} {shd.group = #shd.group<3, rest>}
    %m = shd.elementwise mul(%v, %v) <[P, Q], [P, Q] -> [P, Q]> : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
    shd.yield %c : tensor<64xbf16>
  }
  // CHECK: shd.elementwise neg{{.*}} {shd.group = #shd.group<4, rest>}
  %e = shd.elementwise neg(%a) <[B] -> [B]> : (tensor<64xbf16>) -> tensor<64xbf16>
  // CHECK: shd.elementwise neg{{.*}} {shd.group = #shd.group<5, rest>}
  %f = shd.elementwise neg(%b) <[B] -> [B]> : (tensor<64xbf16>) -> tensor<64xbf16>
  // The repeat does not read this one.
  // CHECK: shd.elementwise neg{{.*}} {shd.group = #shd.group<2, rest>}
  %g = shd.elementwise neg(%d) <[B] -> [B]> : (tensor<64xbf16>) -> tensor<64xbf16>
  shd.output "e" %e ["B"] : tensor<64xbf16>
  shd.output "f" %f ["B"] : tensor<64xbf16>
  shd.output "g" %g ["B"] : tensor<64xbf16>
}

// So has what the groups have read that the repeat reads.
// CHECK-LABEL: shd.program "over_through_a_product"
shd.program "over_through_a_product" mesh <[X = 4]> hardware <"h100", [4]> {
  %x = shd.declare input "x" ["B", "C"] : tensor<64x32xbf16>
  %w = shd.declare weight "w" ["C", "D"] : tensor<32x32xbf16>
  // CHECK: shd.elementwise exp{{.*}} {shd.group = #shd.group<0, rest>}
  %a = shd.elementwise exp(%x) <[B, C] -> [B, C]> : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
  // CHECK: shd.einsum{{.*}} {shd.group = #shd.group<1>}
  %p = shd.einsum(%a, %w) <[B, C], [C, D] -> [B, D]> : (tensor<64x32xbf16>, tensor<32x32xbf16>) -> tensor<64x32xbf16>
  %r = shd.repeat "L" = 3 (%p) : (tensor<64x32xbf16>) -> (tensor<64x32xbf16>) {
  ^bb0(%i: tensor<i32>, %c: tensor<64x32xbf16>):
    shd.yield %c : tensor<64x32xbf16>
  }
  // CHECK: shd.elementwise neg{{.*}} {shd.group = #shd.group<2, rest>}
  %e = shd.elementwise neg(%a) <[B, C] -> [B, C]> : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
  shd.output "e" %e ["B", "C"] : tensor<64x32xbf16>
  shd.output "r" %r ["B", "D"] : tensor<64x32xbf16>
}

// Pins that place an index differently keep operations apart: of their operands,
// and of results that others of the group read. What is only stored otherwise
// stays. The leader has a strategy of its own.
// CHECK-LABEL: shd.program "pins"
shd.program "pins" mesh <[X = 4, Y = 2]> hardware <"h100", [2, 4]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  %w = shd.declare weight "w" ["D", "F"] : tensor<32x128xbf16>
  // CHECK: shd.einsum{{.*}}shd.group = #shd.group<0>
  %h = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> {shd.result_pin = #shd.sharding<[{Y}, {}]>} : (tensor<64x32xbf16>, tensor<32x128xbf16>) -> tensor<64x128xbf16>
  // CHECK: shd.elementwise relu{{.*}}shd.group = #shd.group<0, rest>
  %a = shd.elementwise relu(%h) <[B, F] -> [B, F]> {shd.result_pin = #shd.sharding<[{X}, {?}]>} : (tensor<64x128xbf16>) -> tensor<64x128xbf16>
  // CHECK: shd.elementwise exp{{.*}}shd.group = #shd.group<0, rest>
  %b = shd.elementwise exp(%a) <[B, F] -> [B, F]> {shd.result_pin = #shd.sharding<[{?}, {Y}]>} : (tensor<64x128xbf16>) -> tensor<64x128xbf16>
  // CHECK: shd.elementwise neg{{.*}}shd.group = #shd.group<0, rest>
  %c = shd.elementwise neg(%b) <[B, F] -> [B, F]> {shd.result_pin = #shd.sharding<[{X}, {}]>} : (tensor<64x128xbf16>) -> tensor<64x128xbf16>
  // CHECK: shd.elementwise tanh{{.*}}shd.group = #shd.group<1, rest>
  %d = shd.elementwise tanh(%c) <[B, F] -> [B, F]> : (tensor<64x128xbf16>) -> tensor<64x128xbf16>
  shd.output "d" %d ["B", "F"] : tensor<64x128xbf16>
}

// A group must not have to run both before and after another: z reads w, which
// reads y, so it cannot join the group of y and v.
// CHECK-LABEL: shd.program "order"
shd.program "order" mesh <[X = 4]> hardware <"h100", [4]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  %u = shd.declare weight "u" ["D", "E"] : tensor<32x32xbf16>
  %p = shd.declare input "p" ["B"] : tensor<64xbf16>
  // CHECK: shd.elementwise exp{{.*}} {shd.group = #shd.group<0, rest>}
  %y = shd.elementwise exp(%x) <[B, D] -> [B, D]> : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
  // CHECK: shd.einsum{{.*}} {shd.group = #shd.group<1>}
  %w = shd.einsum(%y, %u) <[B, D], [D, E] -> [B, E]> : (tensor<64x32xbf16>, tensor<32x32xbf16>) -> tensor<64x32xbf16>
  // CHECK: shd.elementwise tanh{{.*}} {shd.group = #shd.group<0, rest>}
  %v = shd.elementwise tanh(%y) <[B, D] -> [B, D]> : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
  // The latest operand is v, of group 0, but w's group runs after that.
  // CHECK: shd.elementwise add{{.*}} {shd.group = #shd.group<2, rest>}
  %z = shd.elementwise add(%w, %v) <[B, D], [B, D] -> [B, D]> : (tensor<64x32xbf16>, tensor<64x32xbf16>) -> tensor<64x32xbf16>
  shd.output "z" %z ["B", "D"] : tensor<64x32xbf16>
}

// What is pinned as a partial sum joins only what hands it on as one.
// CHECK-LABEL: shd.program "partial_pins"
shd.program "partial_pins" mesh <[X = 4]> hardware <"h100", [4]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  %w = shd.declare weight "w" ["D", "F"] : tensor<32x128xbf16>
  // CHECK: shd.einsum{{.*}}shd.group = #shd.group<0>
  %h = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> {shd.result_pin = #shd.sharding<[{}, {}], partial = {X}>} : (tensor<64x32xbf16>, tensor<32x128xbf16>) -> tensor<64x128xbf16>
  // CHECK: shd.elementwise add{{.*}}shd.group = #shd.group<0, rest>
  %a = shd.elementwise add(%h, %h) <[B, F], [B, F] -> [B, F]> {shd.result_pin = #shd.sharding<[{}, {}], partial = {X}>} : (tensor<64x128xbf16>, tensor<64x128xbf16>) -> tensor<64x128xbf16>
  // CHECK: shd.elementwise neg{{.*}}shd.group = #shd.group<0, rest>
  %n = shd.elementwise neg(%a) <[B, F] -> [B, F]> {shd.result_pin = #shd.sharding<[{}, {}], partial = {X}>} : (tensor<64x128xbf16>) -> tensor<64x128xbf16>
  // Not linear.
  // CHECK: shd.elementwise relu{{.*}}shd.group = #shd.group<1, rest>
  %r = shd.elementwise relu(%n) <[B, F] -> [B, F]> : (tensor<64x128xbf16>) -> tensor<64x128xbf16>
  // Linear, and added up when it is stored.
  // CHECK: shd.elementwise neg{{.*}}shd.group = #shd.group<0, rest>
  %m = shd.elementwise neg(%n) <[B, F] -> [B, F]> {shd.result_pin = #shd.sharding<[{}, {}]>} : (tensor<64x128xbf16>) -> tensor<64x128xbf16>
  shd.output "r" %r ["B", "F"] : tensor<64x128xbf16>
  shd.output "m" %m ["B", "F"] : tensor<64x128xbf16>
}

// What follows a scatter has the indices of what that writes, its update's.
// CHECK-LABEL: shd.program "scatter"
shd.program "scatter" mesh <[X = 4]> hardware <"h100", [4]> {
  %c = shd.declare state "c" ["B", "S"] : tensor<64x32xi8>
  %u = shd.declare input "u" ["B"] : tensor<64xi8>
  %p = shd.declare input "p" ["B"] : tensor<64xi32>
  // CHECK: shd.scatter{{.*}} {shd.group = #shd.group<0>}
  %d = shd.scatter(%c, %u, %p) <[B, S], [B], [B] -> [B, S]> at [1] : (tensor<64x32xi8>, tensor<64xi8>, tensor<64xi32>) -> tensor<64x32xi8>
  // CHECK: shd.elementwise cast{{.*}} {shd.group = #shd.group<1, rest>}
  %e = shd.elementwise cast(%d) <[B, S] -> [B, S]> : (tensor<64x32xi8>) -> tensor<64x32xbf16>
  shd.output "e" %e ["B", "S"] : tensor<64x32xbf16>
}

// Arithmetic on scalars starts a group: the sum before it may stay partial.
// CHECK-LABEL: shd.program "scalars"
shd.program "scalars" mesh <[X = 4]> hardware <"h100", [4]> {
  %x = shd.declare input "x" ["B"] : tensor<64xf32>
  %a = shd.declare input "a" [] : tensor<f32>
  // CHECK: shd.elementwise square{{.*}}shd.group = #shd.group<0, rest>
  %s = shd.elementwise square(%x) <[B] -> [B]> : (tensor<64xf32>) -> tensor<64xf32>
  // CHECK: shd.reduce{{.*}}shd.group = #shd.group<0, rest>
  %r = shd.reduce sum(%s) <[B] -> []> : (tensor<64xf32>) -> tensor<f32>
  // CHECK: shd.elementwise add{{.*}}shd.group = #shd.group<1, rest>
  %b = shd.elementwise add(%a, %r) <[], [] -> []> : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // CHECK: shd.elementwise sqrt{{.*}}shd.group = #shd.group<1, rest>
  %c = shd.elementwise sqrt(%b) <[] -> []> : (tensor<f32>) -> tensor<f32>
  shd.output "c" %c [] : tensor<f32>
}

// What is added to a buffer starts a group where a sum is less than the group;
// the statistic of each row does not.
// CHECK-LABEL: shd.program "accumulates"
shd.program "accumulates" mesh <[X = 4]> hardware <"h100", [4]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xf32>
  %w = shd.declare weight "w" ["D"] : tensor<32xf32>
  %g = shd.declare gradient "w.grad" ["D"] of "w" : tensor<32xf32>
  // CHECK: shd.elementwise mul{{.*}}shd.group = #shd.group<0, rest>
  %m = shd.elementwise mul(%x, %w) <[B, D], [D] -> [B, D]> : (tensor<64x32xf32>, tensor<32xf32>) -> tensor<64x32xf32>
  // CHECK: shd.reduce mean{{.*}}shd.group = #shd.group<0, rest>
  %s = shd.reduce mean(%m) <[B, D] -> [B]> : (tensor<64x32xf32>) -> tensor<64xf32>
  // CHECK: shd.elementwise rsqrt{{.*}}shd.group = #shd.group<0, rest>
  %t = shd.elementwise rsqrt(%s) <[B] -> [B]> : (tensor<64xf32>) -> tensor<64xf32>
  // CHECK: shd.elementwise mul{{.*}}shd.group = #shd.group<0, rest>
  %n = shd.elementwise mul(%m, %t) <[B, D], [B] -> [B, D]> : (tensor<64x32xf32>, tensor<64xf32>) -> tensor<64x32xf32>
  // CHECK: shd.reduce sum{{.*}}shd.group = #shd.group<0, rest>
  %r = shd.reduce sum(%n) <[B, D] -> [D]> : (tensor<64x32xf32>) -> tensor<32xf32>
  %p = shd.part %g[] : tensor<32xf32> -> tensor<32xf32>
  // CHECK: shd.elementwise add{{.*}}shd.group = #shd.group<1, rest>
  %a = shd.elementwise add(%p, %r) <[D], [D] -> [D]> : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
  shd.update %g = %a : tensor<32xf32>, tensor<32xf32>
}

// The gradients that three products give one value add up in the kernel of one
// of them, which ends there: partial sums are added before they are reduced, and
// what follows shares no strategy with them.
// CHECK-LABEL: shd.program "adds_products"
shd.program "adds_products" mesh <[X = 4]> hardware <"h100", [4]> {
  %g = shd.declare input "g" ["B", "F"] : tensor<64x128xbf16>
  %r = shd.declare input "r" ["B", "D"] : tensor<64x32xbf16>
  %w = shd.declare weight "w" ["D", "F"] : tensor<32x128xbf16>
  // CHECK-COUNT-3: shd.einsum
  %q = shd.einsum(%g, %w) <[B, F], [D, F] -> [B, D]> {shd.phase = #shd<phase backward>} : (tensor<64x128xbf16>, tensor<32x128xbf16>) -> tensor<64x32xbf16>
  %k = shd.einsum(%g, %w) <[B, F], [D, F] -> [B, D]> {shd.phase = #shd<phase backward>} : (tensor<64x128xbf16>, tensor<32x128xbf16>) -> tensor<64x32xbf16>
  %v = shd.einsum(%g, %w) <[B, F], [D, F] -> [B, D]> {shd.phase = #shd<phase backward>} : (tensor<64x128xbf16>, tensor<32x128xbf16>) -> tensor<64x32xbf16>
  // CHECK: shd.elementwise add{{.*}}shd.group = #shd.group<0, rest>
  %a = shd.elementwise add(%q, %k) <[B, D], [B, D] -> [B, D]> {shd.phase = #shd<phase backward>} : (tensor<64x32xbf16>, tensor<64x32xbf16>) -> tensor<64x32xbf16>
  // CHECK: shd.elementwise add{{.*}}shd.group = #shd.group<0, rest>
  %b = shd.elementwise add(%a, %v) <[B, D], [B, D] -> [B, D]> {shd.phase = #shd<phase backward>} : (tensor<64x32xbf16>, tensor<64x32xbf16>) -> tensor<64x32xbf16>
  // CHECK: shd.elementwise add{{.*}}shd.group = #shd.group<3, rest>
  %c = shd.elementwise add(%b, %r) <[B, D], [B, D] -> [B, D]> {shd.phase = #shd<phase backward>} : (tensor<64x32xbf16>, tensor<64x32xbf16>) -> tensor<64x32xbf16>
  // CHECK: shd.elementwise square{{.*}}shd.group = #shd.group<3, rest>
  %s = shd.elementwise square(%c) <[B, D] -> [B, D]> {shd.phase = #shd<phase backward>} : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
  shd.output "s" %s ["B", "D"] : tensor<64x32xbf16>
}
