// RUN: shardc-opt %s --pass-pipeline='builtin.module(shd.program(shd-canonical-order,shd-fusion-groups,shd-optimize,shd-text-order))' -split-input-file -verify-diagnostics | FileCheck %s

// The plan is made with c before b, which d reads, and no order is faster: the plan
// runs in that of the text.
// CHECK-LABEL: shd.program "moved"
// CHECK-NOT: shd.canonical_order
// CHECK-NOT: shd.work_order
// CHECK: shd.name = "b"
// CHECK-NEXT: shd.name = "d"
// CHECK-NEXT: shd.name = "c"
shd.program "moved" mesh <[X = 2]> hardware <"h100", [2]> {
  %x = shd.declare input "x" ["B"] : tensor<64xbf16>
  %y = shd.declare input "y" ["B"] : tensor<64xbf16>
  %b = shd.elementwise neg(%x) <[B] -> [B]> {shd.name = "b"} : (tensor<64xbf16>) -> tensor<64xbf16>
  %d = shd.elementwise neg(%b) <[B] -> [B]> {shd.name = "d"} : (tensor<64xbf16>) -> tensor<64xbf16>
  %c = shd.elementwise neg(%y) <[B] -> [B]> {shd.name = "c"} : (tensor<64xbf16>) -> tensor<64xbf16>
  shd.output "d" %d ["B"] : tensor<64xbf16>
  shd.output "c" %c ["B"] : tensor<64xbf16>
}

// -----

// expected-error @below {{'shd.canonical_order' is no order of the program's operations: expected the number of each once}}
shd.program "twice" mesh <[X = 2]> hardware <"h100", [2]> attributes {shd.canonical_order = array<i64: 0, 1, 1>} {
  %x = shd.declare input "x" ["B"] : tensor<64xbf16>
  %b = shd.elementwise neg(%x) <[B] -> [B]> {shd.name = "b"} : (tensor<64xbf16>) -> tensor<64xbf16>
  shd.output "b" %b ["B"] : tensor<64xbf16>
}
