// RUN: shardc-opt %s --split-input-file --verify-diagnostics

shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["B"] : tensor<8xf32, #shd.sharding<[{X}]>>
  // expected-error @+1 {{axis 'Y' is not one of the mesh}}
  %y = shd.all_gather %x over ["Y"] : tensor<8xf32, #shd.sharding<[{X}]>> -> tensor<8xf32, #shd.sharding<[{}]>>
}

// -----

shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["B"] : tensor<8xf32, #shd.sharding<[{X}]>>
  // expected-error @+1 {{axis 'X' appears twice}}
  %y = shd.all_gather %x over ["X", "X"] : tensor<8xf32, #shd.sharding<[{X}]>> -> tensor<8xf32, #shd.sharding<[{}]>>
}

// -----

shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["B"] : tensor<8xf32>
  // expected-error @+1 {{needs shardings on its types}}
  %y = shd.all_gather %x over ["X"] : tensor<8xf32> -> tensor<8xf32>
}

// -----

shd.program "p" {
  %x = shd.declare input "x" [] : tensor<f32>
  // expected-error @+1 {{needs a mesh}}
  %y = shd.all_reduce %x over ["X"] : tensor<f32> -> tensor<f32>
}

// -----

shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["B"] : tensor<8xf32, #shd.sharding<[{X}]>>
  // expected-error @+1 {{requires the same shape for all operands and results}}
  %y = shd.all_gather %x over ["X"] : tensor<8xf32, #shd.sharding<[{X}]>> -> tensor<4xf32, #shd.sharding<[{}]>>
}

// -----

shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["B"] : tensor<8xf32, #shd.sharding<[{X}]>>
  // expected-error @+1 {{requires the same element type for all operands and results}}
  %y = shd.all_gather %x over ["X"] : tensor<8xf32, #shd.sharding<[{X}]>> -> tensor<8xbf16, #shd.sharding<[{}]>>
}

// -----

// Only the minor end can be gathered.
shd.program "p" mesh <[X = 2, Y = 2]> {
  %x = shd.declare input "x" ["B"] : tensor<8xf32, #shd.sharding<[{X, Y}]>>
  // expected-error @+1 {{does not turn [0@(X, Y)] into [0@Y] over axes [X]}}
  %y = shd.all_gather %x over ["X"] : tensor<8xf32, #shd.sharding<[{X, Y}]>> -> tensor<8xf32, #shd.sharding<[{Y}]>>
}

// -----

// Axes are those that go.
shd.program "p" mesh <[X = 2, Y = 2]> {
  %x = shd.declare input "x" ["B"] : tensor<8xf32, #shd.sharding<[{X, Y}]>>
  // expected-error @+1 {{does not turn [0@(X, Y)] into [0] over axes [X]}}
  %y = shd.all_gather %x over ["X"] : tensor<8xf32, #shd.sharding<[{X, Y}]>> -> tensor<8xf32, #shd.sharding<[{}]>>
}

// -----

shd.program "p" mesh <[X = 2, Y = 2]> {
  %x = shd.declare input "x" ["B"] : tensor<8xf32, #shd.sharding<[{X}]>>
  // expected-error @+1 {{does not turn [0@X] into [0@(Y, X)] over axes [Y]}}
  %y = shd.all_slice %x over ["Y"] : tensor<8xf32, #shd.sharding<[{X}]>> -> tensor<8xf32, #shd.sharding<[{Y, X}]>>
}

// -----

// Slicing does not resolve partial sums.
shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x4xf32, #shd.sharding<[{}, {X}]>>
  %s = shd.reduce sum(%x) <[B, D] -> [B]> : (tensor<8x4xf32, #shd.sharding<[{}, {X}]>>) -> tensor<8xf32, #shd.sharding<[{}], partial = {X}>>
  // expected-error @+1 {{does not turn [0]{+X} into [0@X] over axes [X]}}
  %y = shd.all_slice %s over ["X"] : tensor<8xf32, #shd.sharding<[{}], partial = {X}>> -> tensor<8xf32, #shd.sharding<[{X}]>>
}

// -----

// One dimension may not both lose and gain axes.
shd.program "p" mesh <[X = 2, Y = 2]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x4xf32, #shd.sharding<[{X}, {Y}]>>
  // expected-error @+1 {{does not turn [0@X, 1@Y] into [0@Y, 1@X] over axes [X, Y]}}
  %y = shd.all_to_all %x over ["X", "Y"] : tensor<8x4xf32, #shd.sharding<[{X}, {Y}]>> -> tensor<8x4xf32, #shd.sharding<[{Y}, {X}]>>
}

// -----

// An axis that is lost without being gained.
shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x4xf32, #shd.sharding<[{X}, {}]>>
  // expected-error @+1 {{does not turn [0@X, 1] into [0, 1] over axes [X]}}
  %y = shd.all_to_all %x over ["X"] : tensor<8x4xf32, #shd.sharding<[{X}, {}]>> -> tensor<8x4xf32, #shd.sharding<[{}, {}]>>
}

// -----

// Partial axes must reappear in a dimension.
shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x4xf32, #shd.sharding<[{}, {X}]>>
  %s = shd.reduce sum(%x) <[B, D] -> [B]> : (tensor<8x4xf32, #shd.sharding<[{}, {X}]>>) -> tensor<8xf32, #shd.sharding<[{}], partial = {X}>>
  // expected-error @+1 {{does not turn [0]{+X} into [0] over axes [X]}}
  %y = shd.reduce_scatter %s over ["X"] : tensor<8xf32, #shd.sharding<[{}], partial = {X}>> -> tensor<8xf32, #shd.sharding<[{}]>>
}

// -----

shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x4xf32, #shd.sharding<[{}, {X}]>>
  %s = shd.reduce sum(%x) <[B, D] -> [B]> : (tensor<8x4xf32, #shd.sharding<[{}, {X}]>>) -> tensor<8xf32, #shd.sharding<[{}], partial = {X}>>
  // expected-error @+1 {{does not turn [0]{+X} into [0@X] over axes [X]}}
  %y = shd.all_reduce %s over ["X"] : tensor<8xf32, #shd.sharding<[{}], partial = {X}>> -> tensor<8xf32, #shd.sharding<[{X}]>>
}

// -----

// A permutation keeps the shapes of the parts.
shd.program "p" mesh <[X = 2, Y = 4]> {
  %x = shd.declare input "x" ["B"] : tensor<8xf32, #shd.sharding<[{X}]>>
  // expected-error @+1 {{does not turn [0@X] into [0@Y] over axes [X, Y]}}
  %y = shd.collective_permute %x over ["X", "Y"] : tensor<8xf32, #shd.sharding<[{X}]>> -> tensor<8xf32, #shd.sharding<[{Y}]>>
}

// -----

// A permutation moves parts along axes that split the tensor.
shd.program "p" mesh <[X = 2, Y = 2, Z = 2]> {
  %x = shd.declare input "x" ["B"] : tensor<8xf32, #shd.sharding<[{X, Y}]>>
  // expected-error @+1 {{does not turn [0@(X, Y)] into [0@(Y, X)] over axes [Z]}}
  %y = shd.collective_permute %x over ["Z"] : tensor<8xf32, #shd.sharding<[{X, Y}]>> -> tensor<8xf32, #shd.sharding<[{Y, X}]>>
}

// -----

// Z1
shd.program "p" mesh <[X = 2, Y = 2]> {
  %x = shd.declare input "x" ["B"] : tensor<8xf32, #shd.sharding<[{X, Y}]>>
  // expected-error @+1 {{must be over all axes of dimension 0, in their order}}
  %y = shd.halo_exchange %x dim 0 rows 1 over ["Y", "X"] : tensor<8xf32, #shd.sharding<[{X, Y}]>> -> tensor<8xf32, #shd.sharding<[{}]>>
}

// -----

// Z1, the dimension
shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["B"] : tensor<8xf32, #shd.sharding<[{X}]>>
  // expected-error @+1 {{dimension 1 is not one of 1}}
  %y = shd.halo_exchange %x dim 1 rows 1 over ["X"] : tensor<8xf32, #shd.sharding<[{X}]>> -> tensor<8xf32, #shd.sharding<[{}]>>
}

// -----

// Z1, the movement
shd.program "p" mesh <[X = 2, Y = 2]> {
  %x = shd.declare input "x" ["B"] : tensor<8xf32, #shd.sharding<[{X, Y}]>>
  // expected-error @+1 {{does not turn [0@(X, Y)] into [0@X] over axes [X]}}
  %y = shd.halo_exchange %x dim 0 rows 1 over ["X"] : tensor<8xf32, #shd.sharding<[{X, Y}]>> -> tensor<8xf32, #shd.sharding<[{X}]>>
}

// -----

// Z2
shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["B"] : tensor<8xf32, #shd.sharding<[{X}]>>
  // expected-error @+1 {{takes 5 rows of a part of 4}}
  %y = shd.halo_exchange %x dim 0 rows 5 over ["X"] : tensor<8xf32, #shd.sharding<[{X}]>> -> tensor<8xf32, #shd.sharding<[{}]>>
}

// -----

// Z3
shd.program "p" mesh <[X = 2]> allow_padding {
  %x = shd.declare input "x" ["B"] : tensor<7xf32, #shd.sharding<[{X}]>>
  // expected-error @+1 {{needs even parts, but 2 devices share 7 rows}}
  %y = shd.halo_exchange %x dim 0 rows 1 over ["X"] : tensor<7xf32, #shd.sharding<[{X}]>> -> tensor<7xf32, #shd.sharding<[{}]>>
}

// -----

// Z2, in zigzag order
shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["B"] : tensor<8xf32, #shd.sharding<[{X}]>>
  // expected-error @+1 {{takes 3 rows of a chunk of 2}}
  %y = shd.halo_exchange %x dim 0 rows 3 over ["X"] {shd.dealt = {B = array<i64: 0, 2>}, shd.indices = ["B"]} : tensor<8xf32, #shd.sharding<[{X}]>> -> tensor<8xf32, #shd.sharding<[{}]>>
}

// -----

// Z4, the devices
shd.program "p" mesh <[X = 4]> {
  %x = shd.declare input "x" ["B"] : tensor<16xf32, #shd.sharding<[{X}]>>
  // expected-error @+1 {{needs whole pairs of chunks, but 4 devices share 16 rows dealt to 2}}
  %y = shd.halo_exchange %x dim 0 rows 1 over ["X"] {shd.dealt = {B = array<i64: 0, 2>}, shd.indices = ["B"]} : tensor<16xf32, #shd.sharding<[{X}]>> -> tensor<16xf32, #shd.sharding<[{}]>>
}

// -----

// Z4, the chunks; indices that lack the dimension are no order.
shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["B"] : tensor<6xf32, #shd.sharding<[{X}]>>
  %z = shd.halo_exchange %x dim 0 rows 3 over ["X"] {shd.dealt = {B = array<i64: 0, 2>}, shd.indices = []} : tensor<6xf32, #shd.sharding<[{X}]>> -> tensor<6xf32, #shd.sharding<[{}]>>
  // expected-error @+1 {{needs whole pairs of chunks, but 2 devices share 6 rows dealt to 2}}
  %y = shd.halo_exchange %x dim 0 rows 1 over ["X"] {shd.dealt = {B = array<i64: 0, 2>}, shd.indices = ["B"]} : tensor<6xf32, #shd.sharding<[{X}]>> -> tensor<6xf32, #shd.sharding<[{}]>>
}

// -----

// Z1, a sum
shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["B"] : tensor<8xf32, #shd.sharding<[{}]>>
  // expected-error @+1 {{does not turn [0] into [0@X] over axes [X]}}
  %y = shd.halo_reduce %x dim 0 rows 1 over ["X"] : tensor<8xf32, #shd.sharding<[{}]>> -> tensor<8xf32, #shd.sharding<[{X}]>>
}

// -----

shd.program "p" {
  %x = shd.declare input "x" ["B"] : tensor<8xf32>
  // expected-error @+1 {{needs a mesh}}
  %y = shd.halo_exchange %x dim 0 rows 1 over ["X"] : tensor<8xf32> -> tensor<8xf32>
}
