// RUN: shardc-opt %s --split-input-file --verify-diagnostics

// Shardings in types against the mesh and the sharding rules.

shd.program "p" {
  // expected-error @+1 {{the result has a sharding, but the program has no mesh}}
  %x = shd.declare input "x" ["B"] : tensor<8xf32, #shd.sharding<[{}]>>
}

// -----

// S3
shd.program "p" mesh <[X = 2]> {
  // expected-error @+1 {{the sharding of the result names axis 'Y', which the mesh lacks}}
  %x = shd.declare input "x" ["B"] : tensor<8xf32, #shd.sharding<[{Y}]>>
}

// -----

// S3, partial axes
shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["B"] : tensor<8xf32, #shd.sharding<[{X}]>>
  // expected-error @+1 {{the sharding of the result names axis 'Z', which the mesh lacks}}
  %s = shd.statistic "max"(%x) : (tensor<8xf32, #shd.sharding<[{X}]>>) -> tensor<f32, #shd.sharding<[], partial = {Z}>>
}

// -----

// All types carry shardings, or none.
shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["B"] : tensor<8xf32, #shd.sharding<[{X}]>>
  // expected-error @+1 {{operand 0 has a sharding, but the result has none}}
  %y = shd.elementwise exp(%x) <[B] -> [B]> : (tensor<8xf32, #shd.sharding<[{X}]>>) -> tensor<8xf32>
}

// -----

shd.program "p" mesh <[X = 4]> {
  // expected-error @+1 {{dimension 0 of the result has extent 6, which its axes of total size 4 do not divide}}
  %x = shd.declare input "x" ["B"] : tensor<6xf32, #shd.sharding<[{X}]>>
}

// -----

// Operands place an index differently.
shd.program "p" mesh <[X = 2, Y = 2]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x16xf32, #shd.sharding<[{}, {X}]>>
  %w = shd.declare weight "w" ["D", "F"] : tensor<16x32xf32, #shd.sharding<[{Y}, {}]>>
  // expected-error @+1 {{operands place index 'D' differently}}
  %y = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> : (tensor<8x16xf32, #shd.sharding<[{}, {X}]>>, tensor<16x32xf32, #shd.sharding<[{Y}, {}]>>) -> tensor<8x32xf32, #shd.sharding<[{}, {}]>>
}

// -----

// An axis on two indices.
shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x16xf32, #shd.sharding<[{X}, {}]>>
  %w = shd.declare weight "w" ["D", "F"] : tensor<16x32xf32, #shd.sharding<[{}, {X}]>>
  // expected-error @+1 {{axis 'X' places index 'F' and another index}}
  %y = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> : (tensor<8x16xf32, #shd.sharding<[{X}, {}]>>, tensor<16x32xf32, #shd.sharding<[{}, {X}]>>) -> tensor<8x32xf32, #shd.sharding<[{X}, {}]>>
}

// -----

// A sum over a sharded index is partial.
shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x16xf32, #shd.sharding<[{}, {X}]>>
  %w = shd.declare weight "w" ["D", "F"] : tensor<16x32xf32, #shd.sharding<[{X}, {}]>>
  // expected-error @+1 {{the result has sharding [B, F], but the operation gives it [B, F]{+X}}}
  %y = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> : (tensor<8x16xf32, #shd.sharding<[{}, {X}]>>, tensor<16x32xf32, #shd.sharding<[{X}, {}]>>) -> tensor<8x32xf32, #shd.sharding<[{}, {}]>>
}

// -----

// The result does not get a partial sum from nowhere.
shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["B"] : tensor<8xf32, #shd.sharding<[{}]>>
  // expected-error @+1 {{the result has sharding [B]{+X}, but the operation gives it [B]}}
  %y = shd.elementwise neg(%x) <[B] -> [B]> : (tensor<8xf32, #shd.sharding<[{}]>>) -> tensor<8xf32, #shd.sharding<[{}], partial = {X}>>
}

// -----

// Not linear.
shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x16xf32, #shd.sharding<[{}, {X}]>>
  %s = shd.reduce sum(%x) <[B, D] -> [B]> : (tensor<8x16xf32, #shd.sharding<[{}, {X}]>>) -> tensor<8xf32, #shd.sharding<[{}], partial = {X}>>
  // expected-error @+1 {{the operation is not linear in the operands that hold partial sums over axis 'X'}}
  %y = shd.elementwise relu(%s) <[B] -> [B]> : (tensor<8xf32, #shd.sharding<[{}], partial = {X}>>) -> tensor<8xf32, #shd.sharding<[{}], partial = {X}>>
}

// -----

// A sum with a term that is not partial: the constant would count twice.
shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x16xf32, #shd.sharding<[{}, {X}]>>
  %one = shd.constant dense<1.0> : tensor<f32>
  %s = shd.reduce sum(%x) <[B, D] -> [B]> : (tensor<8x16xf32, #shd.sharding<[{}, {X}]>>) -> tensor<8xf32, #shd.sharding<[{}], partial = {X}>>
  // expected-error @+1 {{the operation is not linear in the operands that hold partial sums over axis 'X'}}
  %y = shd.elementwise add(%s, %one) <[B], [] -> [B]> : (tensor<8xf32, #shd.sharding<[{}], partial = {X}>>, tensor<f32>) -> tensor<8xf32, #shd.sharding<[{}], partial = {X}>>
}

// -----

// Devices must agree on statistics.
shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x16xf32, #shd.sharding<[{}, {X}]>>
  // expected-error @+1 {{places a normalised index on axes, but has no statistics}}
  %y = shd.normalize softmax(%x) over ["D"] <[B, D] -> [B, D]> : (tensor<8x16xf32, #shd.sharding<[{}, {X}]>>) -> tensor<8x16xf32, #shd.sharding<[{}, {X}]>>
}

// -----

// Statistics are laid out as the other indices are.
shd.program "p" mesh <[X = 2, Y = 2]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x16xf32, #shd.sharding<[{Y}, {X}]>>
  %s = shd.declare input "s" ["B"] : tensor<8xf32, #shd.sharding<[{}]>>
  // expected-error @+1 {{statistic 'sum_square' has sharding [B], but the operation gives it [B@Y]}}
  %y = shd.normalize rmsnorm(%x) over ["D"] <[B, D] -> [B, D]> stats(%s : tensor<8xf32, #shd.sharding<[{}]>>) : (tensor<8x16xf32, #shd.sharding<[{Y}, {X}]>>) -> tensor<8x16xf32, #shd.sharding<[{Y}, {X}]>>
}

// -----

// The head index is whole on every device.
shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["T", "H"] : tensor<8x16xf32, #shd.sharding<[{}, {X}]>>
  // expected-error @+1 {{index 'H' must be whole on every device, but is placed on axis 'X'}}
  %y = shd.rope(%x) over "H" positions "T" <[T, H] -> [T, H]> : (tensor<8x16xf32, #shd.sharding<[{}, {X}]>>) -> tensor<8x16xf32, #shd.sharding<[{}, {X}]>>
}

// -----

// Divisibility, of an index.
shd.program "p" mesh <[X = 4]> {
  %one = shd.constant dense<1.0> : tensor<f32>
  // expected-error @+1 {{extent 6 of index 'B' is not divisible by 4, the size of axis 'X'}}
  %y = shd.elementwise copy(%one) <[] -> [B]> : (tensor<f32>) -> tensor<6xf32, #shd.sharding<[{X}]>>
}

// -----

// A split dimension's minor part is split only once the major one is not.
shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["A", "B"] : tensor<4x8xf32, #shd.sharding<[{}, {X}]>>
  // expected-error @+1 {{index 'B' is sharded, but index 'A' before it in the same dimension is not down to one element on each device}}
  %y = shd.merge(%x) ["A", "B"] into "D" <[A, B] -> [D]> : (tensor<4x8xf32, #shd.sharding<[{}, {X}]>>) -> tensor<32xf32, #shd.sharding<[{X}]>>
}
