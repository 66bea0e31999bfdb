// RUN: shardc-opt %s --pass-pipeline='builtin.module(shd.program(shd-apply-order))' -split-input-file -verify-diagnostics | FileCheck %s

// k, number 4, goes before q, number 3, and its output, number 6, with it; the
// copy of x, which has no number, before its reader.
// CHECK-LABEL: shd.program "moved"
shd.program "moved" attributes {shd.work_order = array<i64: 0, 1, 2, 4, 6, 3, 5, 7>} {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x4xbf16>
  %w = shd.declare weight "w" ["D", "F"] : tensor<4x4xbf16>
  %v = shd.declare weight "v" ["D", "F"] : tensor<4x4xbf16>
  // CHECK: %[[COPY:[a-z0-9_]+]] = shd.reshard(%x)
  // CHECK-NEXT: %[[K:[a-z0-9_]+]] = shd.einsum(%[[COPY]], %v)
  // CHECK-NEXT: shd.output "k" %[[K]]
  // CHECK-NEXT: %[[Q:[a-z0-9_]+]] = shd.einsum(%x, %w)
  // CHECK-NEXT: shd.output "q" %[[Q]]
  %q = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
  %copy = shd.reshard(%x) <[B, D] -> [B, D]> {shd.copy, shd.name = "x"} : (tensor<8x4xbf16>) -> tensor<8x4xbf16>
  %k = shd.einsum(%copy, %v) <[B, D], [D, F] -> [B, F]> : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
  shd.output "q" %q ["B", "F"] : tensor<8x4xbf16>
  shd.output "k" %k ["B", "F"] : tensor<8x4xbf16>
  shd.output "x" %x ["B", "D"] : tensor<8x4xbf16>
}

// -----

// expected-error @below {{'shd.work_order' is no order of the program's operations: expected the number of each once, behind those of what it reads}}
shd.program "before_what_it_reads" attributes {shd.work_order = array<i64: 0, 2, 1, 3>} {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x4xbf16>
  %y = shd.elementwise relu(%x) <[B, D] -> [B, D]> : (tensor<8x4xbf16>) -> tensor<8x4xbf16>
  shd.output "y" %y ["B", "D"] : tensor<8x4xbf16>
}

// -----

// expected-error @below {{'shd.work_order' is no order of the program's operations}}
shd.program "twice" attributes {shd.work_order = array<i64: 0, 1, 1>} {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x4xbf16>
  shd.output "x" %x ["B", "D"] : tensor<8x4xbf16>
}
