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
  shd.repeat "L" = 2() : () -> () {
  ^bb0(%i: tensor<i32>):
    // expected-error @+1 {{the plan is not explicit; run shd-insert-collectives first}}
    %x = shd.iota <-> [B]> : tensor<8xi32>
    shd.yield
  }
}
