// RUN: shardc-opt %s --shd-canonical-order --split-input-file | FileCheck %s

// Depth first from what nothing reads, the shallow first: c is behind one
// operation, d, which reads b, behind two. Declarations stay in front.
// CHECK-LABEL: shd.program "outputs"
// CHECK-SAME: shd.canonical_order = array<i64: 0, 2, 4, 1, 3, 5, 6>
// CHECK-NEXT: shd.declare input "x"
// CHECK-NEXT: shd.declare input "y"
// CHECK-NEXT: shd.name = "c"
// CHECK-NEXT: shd.name = "b"
// CHECK-NEXT: shd.name = "d"
shd.program "outputs" mesh <[X = 2]> hardware <"h100", [2]> {
  %x = shd.declare input "x" ["B"] : tensor<64xbf16>
  %b = shd.elementwise neg(%x) <[B] -> [B]> {shd.name = "b"} : (tensor<64xbf16>) -> tensor<64xbf16>
  %y = shd.declare input "y" ["B"] : tensor<64xbf16>
  %d = shd.elementwise neg(%b) <[B] -> [B]> {shd.name = "d"} : (tensor<64xbf16>) -> tensor<64xbf16>
  %c = shd.elementwise neg(%y) <[B] -> [B]> {shd.name = "c"} : (tensor<64xbf16>) -> tensor<64xbf16>
  shd.output "d" %d ["B"] : tensor<64xbf16>
  shd.output "c" %c ["B"] : tensor<64xbf16>
}

// -----

// The same in the canonical order: nothing moves, and nothing is said.
// CHECK-LABEL: shd.program "same"
// CHECK-NOT: shd.canonical_order
// CHECK: shd.name = "c"
// CHECK-NEXT: shd.name = "b"
// CHECK-NEXT: shd.name = "d"
shd.program "same" mesh <[X = 2]> hardware <"h100", [2]> {
  %x = shd.declare input "x" ["B"] : tensor<64xbf16>
  %y = shd.declare input "y" ["B"] : tensor<64xbf16>
  %c = shd.elementwise neg(%y) <[B] -> [B]> {shd.name = "c"} : (tensor<64xbf16>) -> tensor<64xbf16>
  %b = shd.elementwise neg(%x) <[B] -> [B]> {shd.name = "b"} : (tensor<64xbf16>) -> tensor<64xbf16>
  %d = shd.elementwise neg(%b) <[B] -> [B]> {shd.name = "d"} : (tensor<64xbf16>) -> tensor<64xbf16>
  shd.output "d" %d ["B"] : tensor<64xbf16>
  shd.output "c" %c ["B"] : tensor<64xbf16>
}

// -----

// Carried values have no order: those of 64 and of 32 elements change places in the
// second program, and the bodies of both have the same order.
// CHECK-LABEL: shd.program "carried"
// CHECK: shd.repeat
// CHECK: shd.name = "u"
// CHECK-NEXT: shd.name = "v"
// CHECK-NEXT: shd.yield
shd.program "carried" mesh <[X = 2]> hardware <"h100", [2]> {
  %x = shd.declare input "x" ["B"] : tensor<64xbf16>
  %y = shd.declare input "y" ["C"] : tensor<32xbf16>
  %p, %q = shd.repeat "L" = 4(%x, %y) : (tensor<64xbf16>, tensor<32xbf16>) -> (tensor<64xbf16>, tensor<32xbf16>) {
  ^bb0(%L: tensor<i32>, %r: tensor<64xbf16>, %s: tensor<32xbf16>):
    %v = shd.elementwise neg(%r) <[B] -> [B]> {shd.name = "v"} : (tensor<64xbf16>) -> tensor<64xbf16>
    %u = shd.elementwise neg(%s) <[C] -> [C]> {shd.name = "u"} : (tensor<32xbf16>) -> tensor<32xbf16>
    shd.yield %v, %u : tensor<64xbf16>, tensor<32xbf16>
  }
  shd.output "p" %p ["B"] : tensor<64xbf16>
  shd.output "q" %q ["C"] : tensor<32xbf16>
}

// -----

// CHECK-LABEL: shd.program "carried_otherwise"
// CHECK: shd.repeat
// CHECK: shd.name = "u"
// CHECK-NEXT: shd.name = "v"
// CHECK-NEXT: shd.yield
shd.program "carried_otherwise" mesh <[X = 2]> hardware <"h100", [2]> {
  %x = shd.declare input "x" ["B"] : tensor<64xbf16>
  %y = shd.declare input "y" ["C"] : tensor<32xbf16>
  %q, %p = shd.repeat "L" = 4(%y, %x) : (tensor<32xbf16>, tensor<64xbf16>) -> (tensor<32xbf16>, tensor<64xbf16>) {
  ^bb0(%L: tensor<i32>, %s: tensor<32xbf16>, %r: tensor<64xbf16>):
    %u = shd.elementwise neg(%s) <[C] -> [C]> {shd.name = "u"} : (tensor<32xbf16>) -> tensor<32xbf16>
    %v = shd.elementwise neg(%r) <[B] -> [B]> {shd.name = "v"} : (tensor<64xbf16>) -> tensor<64xbf16>
    shd.yield %u, %v : tensor<32xbf16>, tensor<64xbf16>
  }
  shd.output "q" %q ["C"] : tensor<32xbf16>
  shd.output "p" %p ["B"] : tensor<64xbf16>
}
