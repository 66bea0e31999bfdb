// RUN: shardc-opt %s --pass-pipeline='builtin.module(shd.program(shd-fusion-groups,shd-optimize,shd-insert-collectives,shd-annotate-cost))' -split-input-file -verify-diagnostics

// expected-error @+2 {{no hardware is declared, so nothing can be priced}}
// expected-note @+1 {{declare one, such as 'hardware tpu_v5e[4, 4]', or pass --hardware}}
shd.program "no_hardware" mesh <[X = 4]> {
  %x = shd.declare input "x" ["B"] : tensor<64xbf16>
  shd.output "x" %x ["B"] : tensor<64xbf16>
}

// -----

// expected-error @+1 {{unknown hardware 'abacus'}}
shd.program "unknown_hardware" mesh <[X = 4]> hardware <"abacus", [4]> {
  %x = shd.declare input "x" ["B"] : tensor<64xbf16>
  shd.output "x" %x ["B"] : tensor<64xbf16>
}

// -----

// Both operands of a product place D, and differently.
shd.program "contradiction" mesh <[X = 2, Y = 4]> hardware <"h100", [8]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  %w = shd.declare weight "w" ["D", "F"] : tensor<32x128xbf16>
  // expected-error @+1 {{no strategy of this operation has the annotated layouts}}
  %h = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> {shd.operand_pins = [#shd.sharding<[{?}, {X}]>, #shd.sharding<[{Y}, {?}]>]} : (tensor<64x32xbf16>, tensor<32x128xbf16>) -> tensor<64x128xbf16>
  shd.output "h" %h ["B", "F"] : tensor<64x128xbf16>
}

// -----

// A partial sum goes through nothing that is not linear.
shd.program "not_linear" mesh <[X = 4]> hardware <"h100", [4]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  // expected-error @+1 {{no strategy of this operation has the annotated layouts}}
  %r = shd.elementwise relu(%x) <[B, D] -> [B, D]> {shd.operand_pins = [#shd.sharding<[{}, {}], partial = {X}>]} : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
  shd.output "r" %r ["B", "D"] : tensor<64x32xbf16>
}

// -----

// A whole value cannot become a partial sum.
// expected-error @+1 {{no plan has the annotated layouts}}
shd.program "no_such_reshard" mesh <[X = 4]> hardware <"h100", [4]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<64x32xbf16>
  %n = shd.elementwise neg(%x) <[B, D] -> [B, D]> {shd.operand_pins = [#shd.sharding<[{}, {}], partial = {X}>]} : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
  shd.output "n" %n ["B", "D"] : tensor<64x32xbf16>
}
