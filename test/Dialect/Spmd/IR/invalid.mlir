// RUN: shardc-opt %s --split-input-file --verify-diagnostics

// P1
spmd.program "p" mesh <[X = 4]> {
  // expected-error @+1 {{the result must be 'tensor<2xf32>', a device's part of 'tensor<8xf32, #shd.sharding<[{X}]>>', but is 'tensor<8xf32>'}}
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32, #shd.sharding<[{X}]>> : tensor<8xf32>
}

// -----

// P1, the element type
spmd.program "p" mesh <[X = 4]> {
  // expected-error @+1 {{the result must be 'tensor<2xf32>', a device's part of 'tensor<8xf32, #shd.sharding<[{X}]>>', but is 'tensor<2xbf16>'}}
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32, #shd.sharding<[{X}]>> : tensor<2xbf16>
}

// -----

// P1, an axis that is not there
spmd.program "p" mesh <[X = 4]> {
  // expected-error @+1 {{the sharding names axis 'Y', which the mesh lacks}}
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32, #shd.sharding<[{Y}]>> : tensor<8xf32>
}

// -----

// P1, a program without a mesh
spmd.program "p" {
  // expected-error @+1 {{the sharding names axis 'X', which the mesh lacks}}
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32, #shd.sharding<[{X}]>> : tensor<8xf32>
}

// -----

// P2, an input
spmd.program "p" {
  // expected-error @+1 {{an input is not stacked}}
  %x = spmd.parameter input "x" ["L", "B"] of tensor<2x8xf32> stacked 1 : tensor<2x8xf32>
}

// -----

// P2, split
spmd.program "p" mesh <[X = 2]> {
  // expected-error @+1 {{is split along a dimension of the stack}}
  %x = spmd.parameter weight "x" ["L", "B"] of tensor<2x8xf32, #shd.sharding<[{X}, {}]>> stacked 1 : tensor<1x8xf32>
}

// -----

// P3
spmd.program "p" {
  // expected-error @+1 {{has 2 indices for a tensor of 1 dimensions}}
  %x = spmd.parameter input "x" ["B", "D"] of tensor<8xf32> : tensor<8xf32>
}

// -----

// P4
spmd.program "p" mesh <[X = 4]> {
  // expected-error @+1 {{'x' may not be stored as a partial sum}}
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32, #shd.sharding<[{}], partial = {X}>> : tensor<8xf32>
}

// -----

// P5
spmd.program "p" {
  // expected-error @+1 {{'x' needs the weight that it is of}}
  %x = spmd.parameter master "x" ["B"] of tensor<8xf32> : tensor<8xf32>
}

// -----

// O1
spmd.program "p" mesh <[X = 4]> {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32, #shd.sharding<[{X}]>> : tensor<2xf32>
  // expected-error @+1 {{the value must be 'tensor<8xf32>', a device's part of 'tensor<8xf32>', but is 'tensor<2xf32>'}}
  spmd.output "x" %x ["B"] of tensor<8xf32> : tensor<2xf32>
}

// -----

// O2
spmd.program "p" {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> : tensor<8xf32>
  // expected-error @+1 {{has 0 indices for a tensor of 1 dimensions}}
  spmd.output "x" %x [] of tensor<8xf32> : tensor<8xf32>
}

// -----

// U1
spmd.program "p" {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> : tensor<8xf32>
  // expected-error @+1 {{is of a tensor that is no parameter that is a state}}
  spmd.update %x = %x : tensor<8xf32>, tensor<8xf32>
}

// -----

// U1, the type
spmd.program "p" {
  %x = spmd.parameter state "x" ["B"] of tensor<8xf32> : tensor<8xf32>
  %y = spmd.parameter input "y" ["B"] of tensor<4xf32> : tensor<4xf32>
  // expected-error @+1 {{the part must have type 'tensor<8xf32>', but has 'tensor<4xf32>'}}
  spmd.update %x = %y : tensor<8xf32>, tensor<4xf32>
}

// -----

// U2, each iteration
spmd.program "p" {
  %x = spmd.parameter state "x" ["B"] of tensor<8xf32> : tensor<8xf32>
  shd.repeat "L" = 2() : () -> () {
  ^bb0(%i: tensor<i32>):
    // expected-error @+1 {{state 'x' is updated in 1 repeats, but 0 are named}}
    spmd.update %x = %x : tensor<8xf32>, tensor<8xf32>
    shd.yield
  }
}

// -----

// U2
spmd.program "p" {
  %x = spmd.parameter state "x" ["B"] of tensor<8xf32> : tensor<8xf32>
  // expected-error @+1 {{state 'x' is updated twice}}
  spmd.update %x = %x : tensor<8xf32>, tensor<8xf32>
  spmd.update %x = %x : tensor<8xf32>, tensor<8xf32>
}

// -----

// expected-error @+1 {{expects parent op 'spmd.program'}}
%x = spmd.parameter input "x" ["B"] of tensor<8xf32> : tensor<8xf32>

// -----

spmd.program "p" {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> : tensor<8xf32>
  shd.repeat "L" = 2() : () -> () {
  ^bb0(%i: tensor<i32>):
    // expected-error @+1 {{expects parent op 'spmd.program'}}
    spmd.output "x" %x ["B"] of tensor<8xf32> : tensor<8xf32>
    shd.yield
  }
}

// -----

spmd.program "p" mesh <[X = 4]> {
  // expected-error @+1 {{the result must be 'tensor<8xf32>', a device's part of 'tensor<8xf32>', but is 'tensor<8xf32, #shd.sharding<[{X}]>>'}}
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> : tensor<8xf32, #shd.sharding<[{X}]>>
}

// -----

// C1, shapes
spmd.program "p" mesh <[X = 4]> {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32, #shd.sharding<[{X}]>> : tensor<2xf32>
  // expected-error @+1 {{turns 'tensor<8xf32, #shd.sharding<[{X}]>>' into 'tensor<7xf32>', which differ in more than their shardings}}
  %y = spmd.all_gather %x over ["X"] of tensor<8xf32, #shd.sharding<[{X}]>> to tensor<7xf32> : tensor<2xf32> -> tensor<7xf32>
}

// -----

// C1, element types
spmd.program "p" mesh <[X = 4]> {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32, #shd.sharding<[{X}]>> : tensor<2xf32>
  // expected-error @+1 {{turns 'tensor<8xf32, #shd.sharding<[{X}]>>' into 'tensor<8xf16>', which differ in more than their shardings}}
  %y = spmd.all_slice %x over ["X"] of tensor<8xf32, #shd.sharding<[{X}]>> to tensor<8xf16> : tensor<2xf32> -> tensor<8xf16>
}

// -----

// C1, the operand
spmd.program "p" mesh <[X = 4]> {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32, #shd.sharding<[{X}]>> : tensor<2xf32>
  // expected-error @+1 {{the operand must be 'tensor<8xf32>', a device's part of 'tensor<8xf32>', but is 'tensor<2xf32>'}}
  %y = spmd.all_to_all %x over ["X"] of tensor<8xf32> to tensor<8xf32> : tensor<2xf32> -> tensor<8xf32>
}

// -----

// C1, the result
spmd.program "p" mesh <[X = 4]> {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32, #shd.sharding<[{X}]>> : tensor<2xf32>
  // expected-error @+1 {{the result must be 'tensor<8xf32>', a device's part of 'tensor<8xf32>', but is 'tensor<2xf32>'}}
  %y = spmd.collective_permute %x over ["X"] of tensor<8xf32, #shd.sharding<[{X}]>> to tensor<8xf32> : tensor<2xf32> -> tensor<2xf32>
}

// -----

// C2, all_gather: only what stands at the minor end
spmd.program "p" mesh <[X = 2, Y = 2]> {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32, #shd.sharding<[{X, Y}]>> : tensor<2xf32>
  // expected-error @+1 {{does not turn [0@(X, Y)] into [0@Y] over axes [X]}}
  %y = spmd.all_gather %x over ["X"] of tensor<8xf32, #shd.sharding<[{X, Y}]>> to tensor<8xf32, #shd.sharding<[{Y}]>> : tensor<2xf32> -> tensor<4xf32>
}

// -----

// C2, all_slice: partial sums stay
spmd.program "p" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> : tensor<8xf32>
  // expected-error @+1 {{does not turn [0]{+X} into [0@X] over axes [X]}}
  %y = spmd.all_slice %x over ["X"] of tensor<8xf32, #shd.sharding<[{}], partial = {X}>> to tensor<8xf32, #shd.sharding<[{X}]>> : tensor<8xf32> -> tensor<4xf32>
}

// -----

// C2, all_to_all: an axis that only goes
spmd.program "p" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["B", "D"] of tensor<8x4xf32, #shd.sharding<[{X}, {}]>> : tensor<4x4xf32>
  // expected-error @+1 {{does not turn [0@X, 1] into [0, 1] over axes [X]}}
  %y = spmd.all_to_all %x over ["X"] of tensor<8x4xf32, #shd.sharding<[{X}, {}]>> to tensor<8x4xf32> : tensor<4x4xf32> -> tensor<8x4xf32>
}

// -----

// C2, reduce_scatter: nothing to add up
spmd.program "p" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> : tensor<8xf32>
  // expected-error @+1 {{does not turn [0] into [0@X] over axes [X]}}
  %y = spmd.reduce_scatter %x over ["X"] of tensor<8xf32> to tensor<8xf32, #shd.sharding<[{X}]>> : tensor<8xf32> -> tensor<4xf32>
}

// -----

// C2, all_reduce: nothing to add up
spmd.program "p" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> : tensor<8xf32>
  // expected-error @+1 {{does not turn [0] into [0] over axes [X]}}
  %y = spmd.all_reduce %x over ["X"] of tensor<8xf32> to tensor<8xf32> : tensor<8xf32> -> tensor<8xf32>
}

// -----

// Z5, the result
spmd.program "p" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32, #shd.sharding<[{X}]>> : tensor<4xf32>
  // expected-error @+1 {{the result must be 'tensor<6xf32>', but is 'tensor<8xf32>'}}
  %y = spmd.halo_exchange %x dim 0 rows 2 over ["X"] of tensor<8xf32, #shd.sharding<[{X}]>> to tensor<8xf32> : tensor<4xf32> -> tensor<8xf32>
}

// -----

// Z2
spmd.program "p" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32, #shd.sharding<[{X}]>> : tensor<4xf32>
  // expected-error @+1 {{takes 5 rows of a part of 4}}
  %y = spmd.halo_exchange %x dim 0 rows 5 over ["X"] of tensor<8xf32, #shd.sharding<[{X}]>> to tensor<8xf32> : tensor<4xf32> -> tensor<9xf32>
}

// -----

// Z5, the operand of a sum
spmd.program "p" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> : tensor<8xf32>
  // expected-error @+1 {{the operand must be 'tensor<5xf32>', but is 'tensor<8xf32>'}}
  %y = spmd.halo_reduce %x dim 0 rows 1 over ["X"] of tensor<8xf32, #shd.sharding<[{}], partial = {X}>> to tensor<8xf32, #shd.sharding<[{X}]>> : tensor<8xf32> -> tensor<4xf32>
}

// -----

// Z1
spmd.program "p" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32, #shd.sharding<[{X}]>> : tensor<4xf32>
  // expected-error @+1 {{which differ in more than their shardings}}
  %y = spmd.halo_exchange %x dim 0 rows 2 over ["X"] of tensor<8xf32, #shd.sharding<[{X}]>> to tensor<6xf32> : tensor<4xf32> -> tensor<6xf32>
}

// -----

// A halo of no elements
spmd.program "p" mesh <[X = 2]> {
  %q = spmd.parameter input "q" ["T", "H"] of tensor<8x4xf32, #shd.sharding<[{X}, {}]>> : tensor<4x4xf32>
  // expected-error @+1 {{a halo must have at least 1 element, but has 0}}
  %o = shd.attention(%q, %q, %q) over "H", "S" query "T" <[T, H], [S, H], [S, H] -> [T, H]> causal window 2 {spmd.shards = [#spmd.shard<"S" = 8 over [X] halo 0>]} : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
}

// -----

// C2, collective_permute: parts keep their size
spmd.program "p" mesh <[X = 2, Y = 2]> {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32, #shd.sharding<[{X}]>> : tensor<4xf32>
  // expected-error @+1 {{does not turn [0@X] into [0@(X, Y)] over axes [X, Y]}}
  %y = spmd.collective_permute %x over ["X", "Y"] of tensor<8xf32, #shd.sharding<[{X}]>> to tensor<8xf32, #shd.sharding<[{X, Y}]>> : tensor<4xf32> -> tensor<2xf32>
}

// -----

spmd.program "p" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32, #shd.sharding<[{X}]>> : tensor<4xf32>
  // expected-error @+1 {{axis 'Y' is not one of the mesh}}
  %y = spmd.all_gather %x over ["Y"] of tensor<8xf32, #shd.sharding<[{X}]>> to tensor<8xf32> : tensor<4xf32> -> tensor<8xf32>
}

// -----

spmd.program "p" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32, #shd.sharding<[{X}]>> : tensor<4xf32>
  // expected-error @+1 {{axis 'X' appears twice}}
  %y = spmd.all_gather %x over ["X", "X"] of tensor<8xf32, #shd.sharding<[{X}]>> to tensor<8xf32> : tensor<4xf32> -> tensor<8xf32>
}

// -----

// R1
spmd.program "p" mesh <[X = 2]> {
  %i = shd.constant dense<0> : tensor<i32>
  // expected-error @+1 {{a ring must have an axis}}
  %n = spmd.ring_position %i plus 0 over []
}

// -----

// R1, an axis that is not there
spmd.program "p" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> : tensor<8xf32>
  // expected-error @+1 {{axis 'Y' is not one of the mesh}}
  %s = spmd.ring_shift %x over ["X", "Y"] : tensor<8xf32>
}

// -----

// R1, an axis twice
spmd.program "p" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> : tensor<8xf32>
  // expected-error @+1 {{axis 'X' appears twice}}
  %s = spmd.ring_shift %x over ["X", "X"] : tensor<8xf32>
}

// -----

// R2
spmd.program "p" mesh <[X = 2]> {
  %i = shd.constant dense<0> : tensor<i32>
  // expected-error @+1 {{must add at least 0, but adds -1}}
  %n = spmd.ring_position %i plus -1 over ["X"]
}

// -----

spmd.program "p" mesh <[X = 2]> {
  // expected-note @+1 {{prior use here}}
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> : tensor<8xf32>
  // expected-error @+1 {{expects different type than prior uses: 'tensor<i32>' vs 'tensor<8xf32>'}}
  %n = spmd.ring_position %x plus 0 over ["X"]
}

// -----

// K1
spmd.program "p" {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> : tensor<8xf32>
  %i = shd.constant dense<0> : tensor<i32>
  // expected-error @+1 {{dimension 1 is not one of 'tensor<8xf32>'}}
  %c = spmd.chunk %x[%i] dim 1 : tensor<8xf32> -> tensor<4xf32>
}

// -----

// K2, the part does not divide
spmd.program "p" {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> : tensor<8xf32>
  %i = shd.constant dense<0> : tensor<i32>
  // expected-error @+1 {{'tensor<8xf32>' does not consist of parts 'tensor<3xf32>' along dimension 0}}
  %c = spmd.chunk %x[%i] dim 0 : tensor<8xf32> -> tensor<3xf32>
}

// -----

// K2, the element type
spmd.program "p" {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> : tensor<8xf32>
  %i = shd.constant dense<0> : tensor<i32>
  // expected-error @+1 {{'tensor<8xf32>' does not consist of parts 'tensor<4xf16>' along dimension 0}}
  %c = spmd.chunk %x[%i] dim 0 : tensor<8xf32> -> tensor<4xf16>
}

// -----

// K2, the rank
spmd.program "p" {
  %x = spmd.parameter input "x" ["B", "D"] of tensor<8x4xf32> : tensor<8x4xf32>
  %i = shd.constant dense<0> : tensor<i32>
  // expected-error @+1 {{'tensor<8x4xf32>' does not consist of parts 'tensor<8xf32>' along dimension 1}}
  %c = spmd.chunk %x[%i] dim 1 : tensor<8x4xf32> -> tensor<8xf32>
}

// -----

// L1
spmd.program "p" {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> : tensor<8xf32>
  %i = shd.constant dense<0> : tensor<i32>
  // expected-error @+1 {{dimension -1 is not one of 'tensor<8xf32>'}}
  %c = spmd.place %x into %x[%i] dim -1 : tensor<8xf32> into tensor<8xf32>
}

// -----

// L2
spmd.program "p" {
  %x = spmd.parameter input "x" ["B", "D"] of tensor<8x4xf32> : tensor<8x4xf32>
  %y = spmd.parameter input "y" ["B", "D"] of tensor<4x2xf32> : tensor<4x2xf32>
  %i = shd.constant dense<0> : tensor<i32>
  // expected-error @+1 {{'tensor<8x4xf32>' does not consist of parts 'tensor<4x2xf32>' along dimension 0}}
  %c = spmd.place %y into %x[%i] dim 0 : tensor<4x2xf32> into tensor<8x4xf32>
}

// -----

// Attributes

spmd.program "p" mesh <[X = 2]> {
  // expected-error @+1 {{'spmd.shards' belongs to an operation that computes}}
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> {spmd.shards = []} : tensor<8xf32>
}

// -----

spmd.program "p" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> : tensor<8xf32>
  // expected-error @+1 {{'spmd.shards' must be a list of shards}}
  %y = shd.elementwise exp(%x) <[B] -> [B]> {spmd.shards = ["B"]} : (tensor<8xf32>) -> tensor<8xf32>
}

// -----

spmd.program "p" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> : tensor<8xf32>
  // expected-error @+1 {{'spmd.shards' names 'D', which is not an index of the operation}}
  %y = shd.elementwise exp(%x) <[B] -> [B]> {spmd.shards = [#spmd.shard<"D" = 16 over [X]>]} : (tensor<8xf32>) -> tensor<8xf32>
}

// -----

spmd.program "p" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> : tensor<8xf32>
  // expected-error @+1 {{'spmd.shards' names axis 'Y', which the mesh lacks}}
  %y = shd.elementwise exp(%x) <[B] -> [B]> {spmd.shards = [#spmd.shard<"B" = 16 over [Y]>]} : (tensor<8xf32>) -> tensor<8xf32>
}

// -----

spmd.program "p" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> : tensor<8xf32>
  // expected-error @+1 {{index 'B' must have 9 of 18 elements on a device, but has 8}}
  %y = shd.elementwise exp(%x) <[B] -> [B]> {spmd.shards = [#spmd.shard<"B" = 18 over [X]>]} : (tensor<8xf32>) -> tensor<8xf32>
}

// -----

spmd.program "p" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> : tensor<8xf32>
  // expected-error @+1 {{'spmd.shards' names 'B' twice}}
  %y = shd.elementwise exp(%x) <[B] -> [B]> {spmd.shards = [#spmd.shard<"B" = 16 over [X]>, #spmd.shard<"B" = 16 over [X]>]} : (tensor<8xf32>) -> tensor<8xf32>
}

// -----

spmd.program "p" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["B", "D"] of tensor<8x8xf32> : tensor<8x8xf32>
  // expected-error @+1 {{'spmd.shards' names axis 'X' twice}}
  %y = shd.elementwise exp(%x) <[B, D] -> [B, D]> {spmd.shards = [#spmd.shard<"B" = 16 over [X]>, #spmd.shard<"D" = 16 over [X]>]} : (tensor<8x8xf32>) -> tensor<8x8xf32>
}

// -----

spmd.program "p" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> : tensor<8xf32>
  // expected-error @+1 {{'spmd.global' must be the tensor type of each result}}
  %y = shd.elementwise exp(%x) <[B] -> [B]> {spmd.global = i32} : (tensor<8xf32>) -> tensor<8xf32>
}

// -----

spmd.program "p" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> : tensor<8xf32>
  // expected-error @+1 {{'spmd.global' must be the tensor type of each result}}
  spmd.output "x" %x ["B"] of tensor<8xf32> {spmd.global = tensor<8xf32>} : tensor<8xf32>
}

// -----

spmd.program "p" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> : tensor<8xf32>
  // expected-error @+1 {{the result must be 'tensor<4xf32>', a device's part of 'tensor<8xf32, #shd.sharding<[{X}]>>', but is 'tensor<8xf32>'}}
  %y = shd.elementwise exp(%x) <[B] -> [B]> {spmd.global = tensor<8xf32, #shd.sharding<[{X}]>>} : (tensor<8xf32>) -> tensor<8xf32>
}

// -----

spmd.program "p" mesh <[X = 2]> {
  // expected-error @+1 {{has an unknown attribute 'spmd.shrads'}}
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> {spmd.shrads = []} : tensor<8xf32>
}

// -----

spmd.program "p" mesh <[X = 2]> {
  // expected-error @+1 {{'spmd.ring_of' must be a string on a ring shift}}
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> {spmd.ring_of = "all_gather"} : tensor<8xf32>
}

// -----

spmd.program "p" mesh <[X = 2]> {
  // expected-error @+1 {{'shd.ring' belongs to an einsum, attention, an all_gather or a reduce_scatter}}
  %x = spmd.parameter input "x" ["B"] of tensor<8xf32> {shd.ring = 0 : i64} : tensor<8xf32>
}

// -----

shd.program "p" {
  // expected-error @+1 {{'spmd.shards' belongs to an operation of an spmd.program}}
  %x = shd.declare input "x" ["B"] {spmd.shards = []} : tensor<8xf32>
}

// -----

// expected-error @+1 {{an index must have an extent of at least 1, but 'B' has 0}}
module attributes {a = #spmd.shard<"B" = 0 over [X]>} {}

// -----

// expected-error @+1 {{expected valid keyword or string}}
module attributes {a = #spmd.shard<"B" = 2 over [4]>} {}

// -----

spmd.program "p" mesh <[pp = 2 stages]> {
  // expected-error @+1 {{attribute 'number' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  %x = spmd.receive forward -1 : tensor<8xf32>
}

// -----

// T1
// expected-error @+1 {{a program must be of virtual stages from 0 to 3}}
module attributes {a = #spmd.stages<[4] of 4, layers "L" = 1, order "1f1b">} {}

// -----

// expected-error @+1 {{a stage must hold at least one layer of 'L', but holds 0}}
module attributes {a = #spmd.stages<[0] of 4, layers "L" = 0, order "1f1b">} {}

// -----

// G1
// expected-error @+1 {{at least one stage must have an operation}}
module attributes {a = #shd.stage< : forward>} {}

// -----

spmd.program "p" mesh <[X = 4]> {
  %q = spmd.parameter input "q" ["T", "H"] of tensor<8x4xf32> : tensor<8x4xf32>
  %k = spmd.parameter input "k" ["S", "H"] of tensor<8x4xf32, #shd.sharding<[{X}, {}]>> : tensor<2x4xf32>
  // expected-error @+1 {{index 'S' takes a step in each iteration, but no repeat is around the operation}}
  %o = shd.attention(%q, %k, %k) over "H", "S" <[T, H], [S, H], [S, H] -> [T, H]> {spmd.shards = [#spmd.shard<"S" = 8 over [X] step 0 each>]} : tensor<8x4xf32>, tensor<2x4xf32>, tensor<2x4xf32> -> tensor<8x4xf32>
}

// -----

spmd.program "p" mesh <[X = 4]> {
  %x = spmd.parameter input "x" ["T"] of tensor<8xf32, #shd.sharding<[{X}]>> : tensor<2xf32>
  // expected-error @+1 {{a step must be at least 0, but is -1}}
  %y = shd.elementwise exp(%x) <[T] -> [T]> {spmd.shards = [#spmd.shard<"T" = 8 over [X] step -1>]} : (tensor<2xf32>) -> tensor<2xf32>
}

// -----

// An operation that has no sharding rule, since it does not verify.
spmd.program "p" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["B", "D"] of tensor<8x8xf32> : tensor<8x8xf32>
  // expected-error @+1 {{operand 0 has 2 dimensions, but 1 indices}}
  %y = shd.elementwise exp(%x) <[B] -> [B, D]> {spmd.shards = [#spmd.shard<"B" = 16 over [X]>]} : (tensor<8x8xf32>) -> tensor<8x8xf32>
}
