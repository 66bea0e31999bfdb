// RUN: shardc-opt %s --convert-shd-to-spmd --split-input-file --verify-diagnostics

shd.program "p" mesh <[X = 2]> {
  // expected-error @+1 {{the plan is not explicit; run shd-insert-collectives first}}
  %x = shd.declare input "x" ["B"] {shd.result_pin = #shd.sharding<[{X}]>} : tensor<8xf32>
}

// -----

shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["B"] : tensor<8xf32, #shd.sharding<[{X}]>>
  // expected-error @+1 {{the plan is not explicit; run shd-insert-collectives first}}
  shd.output "x" %x ["B"] {shd.operand_pins = [#shd.sharding<[{}]>]} : tensor<8xf32, #shd.sharding<[{X}]>>
}

// -----

// There is a mesh, but nothing says how values lie on it.
shd.program "p" mesh <[X = 2]> {
  // expected-error @+1 {{the plan is not explicit; run shd-insert-collectives first}}
  %x = shd.declare input "x" ["B"] : tensor<8xf32>
}

// -----

shd.program "p" mesh <[X = 2]> {
  %x = shd.declare weight "x" ["L", "B"] stacked 1 : tensor<2x8xf32, #shd.sharding<[{}, {X}]>>
  shd.repeat "L" = 2() : () -> () {
  ^bb0(%i: tensor<i32>):
    %y = shd.part %x[%i] : tensor<2x8xf32, #shd.sharding<[{}, {X}]>> -> tensor<8xf32, #shd.sharding<[{X}]>>
    // expected-error @+1 {{the plan is not explicit; run shd-insert-collectives first}}
    %z = shd.elementwise exp(%y) <[B] -> [B]> : (tensor<8xf32, #shd.sharding<[{X}]>>) -> tensor<8xf32>
    shd.yield
  }
}
