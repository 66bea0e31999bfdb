// RUN: shardc-opt %s --pass-pipeline='builtin.module(shd.program(shd-insert-collectives))' -split-input-file -verify-diagnostics

shd.program "no_plan" mesh <[X = 4]> hardware <"h100", [4]> {
  %x = shd.declare input "x" ["B"] {shd.result_pin = #shd.sharding<[{X}]>} : tensor<64xbf16>
  // expected-error @+1 {{has no plan; run shd-optimize first}}
  %y = shd.elementwise exp(%x) <[B] -> [B]> : (tensor<64xbf16>) -> tensor<64xbf16>
  shd.output "y" %y ["B"] : tensor<64xbf16>
}

// -----

shd.program "no_carried_plan" mesh <[X = 4]> hardware <"h100", [4]> {
  %x = shd.declare input "x" ["B"] {shd.result_pin = #shd.sharding<[{X}]>} : tensor<64xbf16>
  // expected-error @+1 {{has no plan; run shd-optimize first}}
  %r = shd.repeat "L" = 3 (%x) : (tensor<64xbf16>) -> (tensor<64xbf16>) {
  ^bb0(%i: tensor<i32>, %c: tensor<64xbf16>):
    shd.yield %c : tensor<64xbf16>
  }
  shd.output "r" %r ["B"] : tensor<64xbf16>
}

// -----

// Operands that place an index differently have no strategy.
shd.program "operands_disagree" mesh <[X = 2, Y = 4]> hardware <"h100", [8]> {
  %x = shd.declare input "x" ["B"] {shd.result_pin = #shd.sharding<[{X}]>} : tensor<64xbf16>
  %y = shd.declare input "y" ["B"] {shd.result_pin = #shd.sharding<[{Y}]>} : tensor<64xbf16>
  // expected-error @+1 {{operands place index 'B' differently}}
  %z = shd.elementwise add(%x, %y) <[B], [B] -> [B]> {shd.operand_pins = [#shd.sharding<[{X}]>, #shd.sharding<[{Y}]>], shd.result_pin = #shd.sharding<[{X}]>} : (tensor<64xbf16>, tensor<64xbf16>) -> tensor<64xbf16>
  shd.output "z" %z ["B"] : tensor<64xbf16>
}

// -----

// expected-error @+2 {{no hardware is declared, so nothing can be priced}}
// expected-note @+1 {{declare one, such as 'hardware tpu_v5e[4, 4]', or pass --hardware}}
shd.program "no_hardware" mesh <[X = 4]> {
  %x = shd.declare input "x" ["B"] {shd.result_pin = #shd.sharding<[{X}]>} : tensor<64xbf16>
  shd.output "x" %x ["B"] {shd.operand_pins = [#shd.sharding<[{}]>]} : tensor<64xbf16>
}

// -----

shd.program "explicit" mesh <[X = 4]> hardware <"h100", [4]> {
  %x = shd.declare input "x" ["B"] : tensor<64xbf16, #shd.sharding<[{X}]>>
  // expected-error @+1 {{has been inserted before; the plan is explicit}}
  %y = shd.all_gather %x over ["X"] : tensor<64xbf16, #shd.sharding<[{X}]>> -> tensor<64xbf16, #shd.sharding<[{}]>>
  shd.output "y" %y ["B"] : tensor<64xbf16, #shd.sharding<[{}]>>
}

// -----

shd.program "uneven" mesh <[X = 4]> hardware <"h100", [4]> {
  // expected-error @+1 {{the plan's axes do not divide the extents of the result, whose sharding is #shd.sharding<[{X}]>}}
  %x = shd.declare input "x" ["B"] {shd.result_pin = #shd.sharding<[{X}]>} : tensor<6xbf16>
  shd.output "x" %x ["B"] {shd.operand_pins = [#shd.sharding<[{X}]>]} : tensor<6xbf16>
}

// -----

shd.program "padded" mesh <[X = 4]> hardware <"h100", [4]> allow_padding {
  %x = shd.declare input "x" ["B"] {shd.result_pin = #shd.sharding<[{X}]>} : tensor<6xbf16>
  shd.output "x" %x ["B"] {shd.operand_pins = [#shd.sharding<[{X}]>]} : tensor<6xbf16>
}

// -----

shd.program "no_declared_plan" mesh <[X = 4]> hardware <"h100", [4]> {
  // expected-error @+1 {{has no plan; run shd-optimize first}}
  %x = shd.declare input "x" ["B"] : tensor<64xbf16>
  shd.output "x" %x ["B"] {shd.operand_pins = [#shd.sharding<[{X}]>]} : tensor<64xbf16>
}
