// RUN: shardc-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

// A1
// expected-error @+1 {{axis 'X' must have a size of at least 1, but has 0}}
"test.op"() {a = #shd.mesh<[X = 0]>} : () -> ()

// -----

// A2
// expected-error @+1 {{a mesh axis must have a name}}
"test.op"() {a = #shd.axis<"" = 2>} : () -> ()

// -----

// M1
// expected-error @+1 {{axis 'X' appears twice in the mesh}}
"test.op"() {a = #shd.mesh<[X = 2, Y = 2, X = 4]>} : () -> ()

// -----

// M2
// expected-error @+1 {{a mesh may have at most 16 axes, but has 17}}
"test.op"() {a = #shd.mesh<[a = 1, b = 1, c = 1, d = 1, e = 1, f = 1, g = 1, h = 1, i = 1, j = 1, k = 1, l = 1, m = 1, n = 1, o = 1, p = 1, q = 1]>} : () -> ()

// -----

// expected-error @+1 {{expected valid keyword or string}}
"test.op"() {a = #shd.mesh<[4]>} : () -> ()

// -----

// expected-error @+1 {{expected '>'}}
"test.op"() {a = #shd.axis<pp = 4 layers>} : () -> ()

// -----

// S1 of a pipeline: a stage has no more than all layers
// expected-error @+1 {{a stage cannot hold 9 of the 8 layers of 'L'}}
"test.op"() {a = #shd.pipeline<axis = "pp", index = "L", layers = 8, held = 9, order = "1f1b">} : () -> ()

// -----

// S1 of a pipeline: at least one layer
// expected-error @+1 {{a stage cannot hold 0 of the 0 layers of 'L'}}
"test.op"() {a = #shd.pipeline<axis = "pp", index = "L", layers = 0, order = "1f1b">} : () -> ()

// -----

// expected-error @+1 {{a stage cannot hold -1 of the 8 layers of 'L'}}
"test.op"() {a = #shd.pipeline<axis = "pp", index = "L", layers = 8, held = -1, order = "1f1b">} : () -> ()

// -----

// S2, in one dimension
// expected-error @+1 {{axis 'X' appears twice in the sharding}}
"test.op"() {a = #shd.sharding<[{X, X}]>} : () -> ()

// -----

// S2, in two dimensions
// expected-error @+1 {{axis 'X' appears twice in the sharding}}
"test.op"() {a = #shd.sharding<[{X}, {Y, X}]>} : () -> ()

// -----

// S2, partial axes
// expected-error @+1 {{axis 'X' appears twice in the sharding}}
"test.op"() {a = #shd.sharding<[{X}], partial = {X}>} : () -> ()

// -----

// expected-error @+1 {{an open dimension may not name axes}}
"test.op"() {a = #shd.sharding<[{?, X}]>} : () -> ()

// -----

// S1
// expected-error @+1 {{the sharding has 1 dimensions, but the tensor has 2}}
"test.op"() {a = tensor<2x2xf32, #shd.sharding<[{}]>>} : () -> ()

// -----

// S4
// expected-error @+1 {{a tensor type's sharding may not have open dimensions}}
"test.op"() {a = tensor<2xf32, #shd.sharding<[{?}]>>} : () -> ()

// -----

shd.program "p" {
  %x = shd.declare input "x" ["B"] : tensor<8xf32>
  // expected-error @+1 {{'shd.result_pin' must be a sharding}}
  %y = shd.elementwise exp(%x) <[B] -> [B]> {shd.result_pin = 1 : i32} : (tensor<8xf32>) -> tensor<8xf32>
}

// -----

shd.program "p" {
  // expected-error @+1 {{'shd.result_pin' has 2 dimensions, but the tensor has 1}}
  %x = shd.declare input "x" ["B"] {shd.result_pin = #shd.sharding<[{}, {}]>} : tensor<8xf32>
}

// -----

shd.program "p" mesh <[X = 2]> {
  // expected-error @+1 {{'shd.result_pin' names axis 'Y', which the mesh lacks}}
  %x = shd.declare input "x" ["B"] {shd.result_pin = #shd.sharding<[{Y}]>} : tensor<8xf32>
}

// -----

shd.program "p" mesh <[X = 2]> {
  // expected-error @+1 {{'shd.result_pin' names axis 'Y', which the mesh lacks}}
  %x = shd.declare input "x" ["B"] {shd.result_pin = #shd.sharding<[{X}], partial = {Y}>} : tensor<8xf32>
}

// -----

shd.program "p" {
  %x = shd.declare input "x" ["B"] : tensor<8xf32>
  // expected-error @+1 {{'shd.result_pin' needs a result, but the operation has none}}
  shd.output "x" %x ["B"] {shd.result_pin = #shd.sharding<[{}]>} : tensor<8xf32>
}

// -----

shd.program "p" {
  %x = shd.declare input "x" ["B"] : tensor<8xf32>
  // expected-error @+1 {{'shd.operand_pins' must be a list of shardings and 'unit'}}
  shd.output "x" %x ["B"] {shd.operand_pins = [3 : i32]} : tensor<8xf32>
}

// -----

shd.program "p" {
  %x = shd.declare input "x" ["B"] : tensor<8xf32>
  // expected-error @+1 {{'shd.operand_pins' has 2 entries, but the operation has 1 operands}}
  shd.output "x" %x ["B"] {shd.operand_pins = [unit, unit]} : tensor<8xf32>
}

// -----

shd.program "p" {
  %x = shd.declare input "x" ["B"] : tensor<8xf32>
  // expected-error @+1 {{'shd.operand_pins' entry 0 has 0 dimensions, but the tensor has 1}}
  shd.output "x" %x ["B"] {shd.operand_pins = [#shd.sharding<[]>]} : tensor<8xf32>
}

// -----

shd.program "p" {
  // expected-error @+1 {{'shd.name' must be a string}}
  %x = shd.declare input "x" ["B"] {shd.name = 1 : i32} : tensor<8xf32>
}

// -----

shd.program "p" {
  // expected-error @+1 {{'shd.group' must be a part of a fusion group}}
  %x = shd.declare input "x" ["B"] {shd.group = 0 : i64} : tensor<8xf32>
}

// -----

shd.program "p" {
  // expected-error @+1 {{'shd.prologues' must be a list of parts of fusion groups}}
  %x = shd.declare input "x" ["B"] {shd.prologues = [1 : i64]} : tensor<8xf32>
}

// -----

// F1
// expected-error @+1 {{a fusion group must have a number of at least 0, but has -1}}
"test.op"() {a = #shd.group<-1>} : () -> ()

// -----

// expected-error @+2 {{expected one of [first, rest] for a part of a fusion group, got: middle}}
// expected-error @+1 {{failed to parse Shd_GroupAttr parameter 'part'}}
"test.op"() {a = #shd.group<0, middle>} : () -> ()

// -----

shd.program "p" {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x4xf32>
  %w = shd.declare weight "w" ["D"] : tensor<4xf32>
  // expected-error @+1 {{'shd.ring' must be an integer of at least 0}}
  %y = shd.einsum(%x, %w) <[B, D], [D] -> [B]> {shd.ring = "0"} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8xf32>
}

// -----

shd.program "p" {
  // expected-error @+1 {{'shd.ring' belongs to an einsum, attention, an all_gather or a reduce_scatter}}
  %x = shd.declare input "x" ["B"] {shd.ring = 0 : i64} : tensor<8xf32>
}

// -----

shd.program "p" {
  // expected-error @+1 {{'shd.in_flight' must be an integer of at least 1}}
  %x = shd.declare saved "x" ["B"] {shd.in_flight = 0 : i64} : tensor<8xf32>
}

// -----

shd.program "p" {
  // expected-error @+1 {{'shd.in_flight' must be an integer of at least 1}}
  %x = shd.declare saved "x" ["B"] {shd.in_flight = "4"} : tensor<8xf32>
}

// -----

shd.program "p" {
  // expected-error @+1 {{'shd.temporary' must be a unit attribute}}
  %x = shd.declare input "x" ["B"] {shd.temporary = true} : tensor<8xf32>
}

// -----

shd.program "p" {
  // expected-error @+1 {{'shd.group_cost' must be the price of a group}}
  %x = shd.declare input "x" ["B"] {shd.group_cost = 1.0 : f64} : tensor<8xf32>
}

// -----

shd.program "p" {
  // expected-error @+1 {{'shd.indices' must be a list of strings}}
  %x = shd.declare input "x" ["B"] {shd.indices = "B"} : tensor<8xf32>
}

// -----

// expected-error @+1 {{'shd.plan' must be a dictionary}}
shd.program "p" attributes {shd.plan = 1 : i32} {
}

// -----

shd.program "p" {
  // expected-error @+1 {{'shd.plan' belongs to a program}}
  %x = shd.declare input "x" ["B"] {shd.plan = {}} : tensor<8xf32>
}

// -----

// expected-error @+1 {{'shd.stored_as_read' must be a unit attribute}}
shd.program "p" attributes {shd.stored_as_read = 1 : i32} {
}

// -----

shd.program "p" {
  // expected-error @+1 {{'shd.stored_as_read' belongs to a program}}
  %x = shd.declare input "x" ["B"] {shd.stored_as_read} : tensor<8xf32>
}

// -----

shd.program "p" {
  // expected-error @+1 {{has an unknown attribute 'shd.colour'}}
  %x = shd.declare input "x" ["B"] {shd.colour} : tensor<8xf32>
}

// -----

shd.program "p" {
  // expected-error @+1 {{'shd.made' has 0 dimensions, but the tensor has 1}}
  %x = shd.declare input "x" ["B"] {shd.made = #shd.sharding<[]>} : tensor<8xf32>
}

// -----

shd.program "p" {
  // expected-error @+1 {{'shd.uses' must be a list of integers}}
  %x = shd.declare input "x" ["B"] {shd.uses = 1} : tensor<8xf32>
}

// -----

shd.program "p" {
  // expected-error @+1 {{'shd.segments' belongs to a repeat}}
  %x = shd.declare saved "x" ["B"] {shd.segments = array<i64: 4, 2>} : tensor<8xf32>
}

// -----

shd.program "p" {
  %x = shd.declare input "x" ["B"] : tensor<8xf32>
  // expected-error @+1 {{'shd.segments' must be two integers of at least 1, the second at most the first}}
  %y = shd.repeat "L" = 2(%x) {shd.segments = array<i64: 2, 4>} : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%i: tensor<i32>, %c: tensor<8xf32>):
    shd.yield %c : tensor<8xf32>
  }
}

// -----

shd.program "p" {
  %x = shd.declare input "x" ["B"] : tensor<8xf32>
  // expected-error @+1 {{runs a segment, so the repeat around it must run once for each}}
  %y = shd.repeat "L" = 2(%x) {shd.segments = array<i64: 4, 2>} : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%i: tensor<i32>, %c: tensor<8xf32>):
    shd.yield %c : tensor<8xf32>
  }
}

// -----

// Segments of 4 and 1 iterations: nothing would run of the last one.
shd.program "p" {
  %x = shd.declare input "x" ["B"] : tensor<8xf32>
  %y = shd.repeat "S" = 2(%x) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%i: tensor<i32>, %c: tensor<8xf32>):
    // expected-error @+1 {{runs 3 iterations of a segment of 4}}
    %z = shd.repeat "L" = 3(%c) {shd.segments = array<i64: 5, 4>} : (tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%j: tensor<i32>, %d: tensor<8xf32>):
      shd.yield %d : tensor<8xf32>
    }
    shd.yield %z : tensor<8xf32>
  }
}

// -----

// The weight is stacked along all iterations, not along those of a segment.
shd.program "p" {
  %x = shd.declare input "x" ["B"] : tensor<8xf32>
  %w = shd.declare weight "w" ["L", "B"] stacked 1 : tensor<2x8xf32>
  %y = shd.repeat "S" = 2(%x) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%i: tensor<i32>, %c: tensor<8xf32>):
    %z = shd.repeat "L" = 2(%c) {shd.segments = array<i64: 4, 2>} : (tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%j: tensor<i32>, %d: tensor<8xf32>):
      // expected-error @+1 {{the repeat of 'L' runs 4 times, but the tensor has 2 parts}}
      %p = shd.part %w[%j] : tensor<2x8xf32> -> tensor<8xf32>
      shd.yield %d : tensor<8xf32>
    }
    shd.yield %z : tensor<8xf32>
  }
}

// -----

shd.program "p" {
  // expected-error @+1 {{'shd.ahead' belongs to an update}}
  %x = shd.declare saved "x" ["B"] {shd.ahead} : tensor<8xf32>
}

// -----

shd.program "p" {
  // expected-error @+1 {{'shd.extent' belongs to a constant of an integer}}
  %x = shd.constant dense<8.0> : tensor<f32> {shd.extent}
}
