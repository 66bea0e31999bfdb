// RUN: shardc-opt %s --split-input-file --verify-diagnostics

// Extents are known and at least 1.
shd.program "p" {
  // expected-error @+1 {{must be tensor of an element type of the language with extents of at least 1, but got 'tensor<?xf32>'}}
  %x = shd.declare input "x" ["B"] : tensor<?xf32>
}

// -----

shd.program "p" {
  // expected-error @+1 {{must be tensor of an element type of the language with extents of at least 1, but got 'tensor<0xf32>'}}
  %x = shd.declare input "x" ["B"] : tensor<0xf32>
}

// -----

shd.program "p" {
  // expected-error @+1 {{must be tensor of an element type of the language with extents of at least 1, but got 'tensor<2xi64>'}}
  %x = shd.declare input "x" ["B"] : tensor<2xi64>
}

// -----

// D1
shd.program "p" {
  // expected-error @+1 {{has 2 indices for a tensor of 1 dimensions}}
  %x = shd.declare input "x" ["B", "D"] : tensor<8xf32>
}

// -----

// D2, an input
shd.program "p" {
  // expected-error @+1 {{an input is not stacked}}
  %x = shd.declare input "x" ["L", "B"] stacked 1 : tensor<2x8xf32>
}

// -----

// D2, too many dimensions
shd.program "p" {
  // expected-error @+1 {{is stacked along 3 dimensions, but has 2}}
  %x = shd.declare weight "x" ["L", "B"] stacked 3 : tensor<2x8xf32>
}

// -----

// D2, split
shd.program "p" mesh <[X = 2]> {
  // expected-error @+1 {{is split along a dimension of the stack}}
  %x = shd.declare weight "x" ["L", "B"] stacked 1 : tensor<2x8xf32, #shd.sharding<[{X}, {}]>>
}

// -----

// D3
shd.program "p" mesh <[X = 2]> {
  // expected-error @+1 {{'x' may not be stored as a partial sum}}
  %x = shd.declare input "x" ["B"] : tensor<8xf32, #shd.sharding<[{}], partial = {X}>>
}

// -----

// D3, no gradient
shd.program "p" mesh <[X = 2]> {
  // expected-error @+1 {{'x' may not be stored as a partial sum}}
  %x = shd.declare saved "x" ["B"] : tensor<8xf32, #shd.sharding<[{}], partial = {X}>>
}

// -----

// D4, of nothing
shd.program "p" {
  // expected-error @+1 {{'x' needs the weight that it is of}}
  %x = shd.declare master "x" ["B"] : tensor<8xf32>
}

// -----

// D4, of a weight
shd.program "p" {
  // expected-error @+1 {{'x' is not of a weight}}
  %x = shd.declare saved "x" ["B"] of "w" : tensor<8xf32>
}

// -----

// expected-error @+1 {{expects parent op 'shd.program'}}
%x = shd.declare input "x" ["B"] : tensor<8xf32>

// -----

// O1
shd.program "p" {
  %x = shd.declare input "x" ["B"] : tensor<8xf32>
  // expected-error @+1 {{has 0 indices for a tensor of 1 dimensions}}
  shd.output "x" %x [] : tensor<8xf32>
}

// -----

// Q1, no number of an iteration
shd.program "p" {
  %x = shd.declare weight "x" ["L", "B"] stacked 1 : tensor<2x8xf32>
  %i = shd.constant dense<0> : tensor<i32>
  // expected-error @+1 {{needs numbers of repeats inside of which the tensor is not made, the outermost first}}
  %y = shd.part %x[%i] : tensor<2x8xf32> -> tensor<8xf32>
}

// -----

// Q1, none at all
shd.program "p" {
  %x = shd.declare weight "x" ["L", "B"] stacked 1 : tensor<2x8xf32>
  // expected-error @+1 {{needs the number of an iteration}}
  %y = shd.part %x[] : tensor<2x8xf32> -> tensor<2x8xf32>
}

// -----

// Q1, the innermost first
shd.program "p" {
  %x = shd.declare weight "x" ["M", "L", "B"] stacked 2 : tensor<3x2x8xf32>
  shd.repeat "L" = 2() : () -> () {
  ^bb0(%i: tensor<i32>):
    shd.repeat "M" = 3() : () -> () {
    ^bb0(%j: tensor<i32>):
      // expected-error @+1 {{needs numbers of repeats inside of which the tensor is not made, the outermost first}}
      %y = shd.part %x[%j, %i] : tensor<3x2x8xf32> -> tensor<8xf32>
      shd.yield
    }
    shd.yield
  }
}

// -----

// Q2
shd.program "p" {
  %x = shd.declare weight "x" ["L", "B"] stacked 1 : tensor<3x8xf32>
  shd.repeat "L" = 2() : () -> () {
  ^bb0(%i: tensor<i32>):
    // expected-error @+1 {{the repeat of 'L' runs 2 times, but the tensor has 3 parts}}
    %y = shd.part %x[%i] : tensor<3x8xf32> -> tensor<8xf32>
    shd.yield
  }
}

// -----

// Q3, the type
shd.program "p" {
  %x = shd.declare weight "x" ["L", "B"] stacked 1 : tensor<2x8xf32>
  shd.repeat "L" = 2() : () -> () {
  ^bb0(%i: tensor<i32>):
    // expected-error @+1 {{the part must have type 'tensor<8xf32>', but has 'tensor<8xbf16>'}}
    %y = shd.part %x[%i] : tensor<2x8xf32> -> tensor<8xbf16>
    shd.yield
  }
}

// -----

// Q3, split
shd.program "p" mesh <[X = 2]> {
  %x = shd.declare weight "x" ["L", "B"] : tensor<2x8xf32, #shd.sharding<[{X}, {}]>>
  shd.repeat "L" = 2() : () -> () {
  ^bb0(%i: tensor<i32>):
    // expected-error @+1 {{the tensor is split along its parts}}
    %y = shd.part %x[%i] : tensor<2x8xf32, #shd.sharding<[{X}, {}]>> -> tensor<8xf32, #shd.sharding<[{}]>>
    shd.yield
  }
}

// -----

// More numbers than dimensions
shd.program "p" {
  %x = shd.declare weight "x" ["L"] stacked 1 : tensor<2xf32>
  shd.repeat "L" = 2() : () -> () {
  ^bb0(%i: tensor<i32>):
    shd.repeat "M" = 2() : () -> () {
    ^bb0(%j: tensor<i32>):
      // expected-error @+1 {{names 2 iterations, but the tensor has 1 dimensions}}
      %y = shd.part %x[%i, %j] : tensor<2xf32> -> tensor<f32>
      shd.yield
    }
    shd.yield
  }
}

// -----

// Q4
shd.program "p" {
  %x = shd.declare weight "x" ["B"] : tensor<8xf32>
  // expected-error @+1 {{needs the number of an iteration}}
  %y = shd.part %x[] : tensor<8xf32> -> tensor<8xf32>
}

// -----

// Q5, of what is not stacked
shd.program "p" {
  %x = shd.declare weight "x" ["L", "B"] : tensor<2x8xf32>
  shd.repeat "L" = 2() : () -> () {
  ^bb0(%i: tensor<i32>):
    // expected-error @+1 {{names 1 iterations, but the tensor is stacked along 0 dimensions}}
    %y = shd.part %x[%i] : tensor<2x8xf32> -> tensor<8xf32>
    shd.yield
  }
}

// -----

// Q5, along more dimensions than are named
shd.program "p" {
  %x = shd.declare weight "x" ["L", "B"] stacked 2 : tensor<2x8xf32>
  shd.repeat "L" = 2() : () -> () {
  ^bb0(%i: tensor<i32>):
    // expected-error @+1 {{names 1 iterations, but the tensor is stacked along 2 dimensions}}
    %y = shd.part %x[%i] : tensor<2x8xf32> -> tensor<8xf32>
    %z = shd.elementwise exp(%y) <[B] -> [B]> : (tensor<8xf32>) -> tensor<8xf32>
    shd.yield
  }
}

// -----

// Q5, a part of a part
shd.program "p" {
  %x = shd.declare state "x" ["M", "L", "B"] stacked 1 : tensor<2x3x8xf32>
  shd.repeat "M" = 2() : () -> () {
  ^bb0(%m: tensor<i32>):
    %y = shd.part %x[%m] : tensor<2x3x8xf32> -> tensor<3x8xf32>
    shd.repeat "L" = 3() : () -> () {
    ^bb0(%i: tensor<i32>):
      // expected-error @+1 {{names 2 iterations, but the tensor is stacked along 1 dimensions}}
      %z = shd.part %y[%i] : tensor<3x8xf32> -> tensor<8xf32>
      shd.yield
    }
    shd.yield
  }
}

// -----

// U1, another kind of declaration
shd.program "p" {
  %x = shd.declare input "x" ["B"] : tensor<8xf32>
  // expected-error @+1 {{is of a tensor that is no declared state}}
  shd.update %x = %x : tensor<8xf32>, tensor<8xf32>
}

// -----

// U1, what is computed
shd.program "p" {
  %x = shd.declare state "x" ["B"] : tensor<8xf32>
  %y = shd.elementwise exp(%x) <[B] -> [B]> : (tensor<8xf32>) -> tensor<8xf32>
  // expected-error @+1 {{is of a tensor that is no declared state}}
  shd.update %y = %x : tensor<8xf32>, tensor<8xf32>
}

// -----

// U1, type
shd.program "p" {
  %x = shd.declare state "x" ["B"] : tensor<8xf32>
  %y = shd.declare input "y" ["B"] : tensor<8xbf16>
  // expected-error @+1 {{the part must have type 'tensor<8xf32>', but has 'tensor<8xbf16>'}}
  shd.update %x = %y : tensor<8xf32>, tensor<8xbf16>
}

// -----

// U2, each iteration
shd.program "p" {
  %x = shd.declare state "x" ["B"] : tensor<8xf32>
  shd.repeat "L" = 2() : () -> () {
  ^bb0(%i: tensor<i32>):
    // expected-error @+1 {{state 'x' is updated in 1 repeats, but 0 are named}}
    shd.update %x = %x : tensor<8xf32>, tensor<8xf32>
    shd.yield
  }
}

// -----

// U2, a weight in a repeat whose number is not named
shd.program "p" {
  %x = shd.declare weight "x" ["L", "B"] stacked 1 : tensor<2x8xf32>
  %y = shd.declare input "y" ["B"] : tensor<8xf32>
  shd.repeat "M" = 4() : () -> () {
  ^bb0(%n: tensor<i32>):
    shd.repeat "L" = 2() : () -> () {
    ^bb0(%i: tensor<i32>):
      // expected-error @+1 {{state 'x' is updated in 2 repeats, but 1 are named}}
      shd.update %x[%i] = %y : tensor<2x8xf32>, tensor<8xf32>
      shd.yield
    }
    shd.yield
  }
}

// -----

// U2, a buffer
shd.program "p" {
  %x = shd.declare saved "x" ["B"] : tensor<8xf32>
  %y = shd.declare input "y" ["B"] : tensor<8xf32>
  // expected-error @+1 {{state 'x' is updated twice}}
  shd.update %x = %y : tensor<8xf32>, tensor<8xf32>
  shd.update %x = %y : tensor<8xf32>, tensor<8xf32>
}

// -----

// U2
shd.program "p" {
  %x = shd.declare state "x" ["B"] : tensor<8xf32>
  // expected-error @+1 {{state 'x' is updated twice}}
  shd.update %x = %x : tensor<8xf32>, tensor<8xf32>
  shd.update %x = %x : tensor<8xf32>, tensor<8xf32>
}

// -----

// R1
shd.program "p" {
  // expected-error @+1 {{must run at least once, but runs 0 times}}
  shd.repeat "L" = 0() : () -> () {
  ^bb0(%i: tensor<i32>):
    shd.yield
  }
}

// -----

// R2, block arguments
shd.program "p" {
  %x = shd.declare input "x" ["B"] : tensor<8xf32>
  // expected-error @+1 {{carries 1 values, but has 0 block arguments}}
  %y = shd.repeat "L" = 2(%x) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%i: tensor<i32>):
    shd.yield %x : tensor<8xf32>
  }
}

// -----

// R2, yielded values
shd.program "p" {
  %x = shd.declare input "x" ["B"] : tensor<8xf32>
  // expected-error @+1 {{carries 1 values, but has 0 yielded values}}
  %y = shd.repeat "L" = 2(%x) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%i: tensor<i32>, %c: tensor<8xf32>):
    shd.yield
  }
}

// -----

// R2, type
shd.program "p" {
  %x = shd.declare input "x" ["B"] : tensor<8xf32>
  // expected-error @+1 {{carried value 0 has type 'tensor<8xf32>', but among the results 'tensor<8xbf16>'}}
  %y = shd.repeat "L" = 2(%x) : (tensor<8xf32>) -> tensor<8xbf16> {
  ^bb0(%i: tensor<i32>, %c: tensor<8xf32>):
    shd.yield %c : tensor<8xf32>
  }
}

// -----

// R2, one sharding on entry and exit
shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["B"] : tensor<8xf32, #shd.sharding<[{X}]>>
  // expected-error @+1 {{carried value 0 has type 'tensor<8xf32, #shd.sharding<[{X}]>>', but among the yielded values 'tensor<8xf32, #shd.sharding<[{}]>>'}}
  %y = shd.repeat "L" = 2(%x) : (tensor<8xf32, #shd.sharding<[{X}]>>) -> tensor<8xf32, #shd.sharding<[{X}]>> {
  ^bb0(%i: tensor<i32>, %c: tensor<8xf32, #shd.sharding<[{X}]>>):
    %g = shd.all_gather %c over ["X"] : tensor<8xf32, #shd.sharding<[{X}]>> -> tensor<8xf32, #shd.sharding<[{}]>>
    shd.yield %g : tensor<8xf32, #shd.sharding<[{}]>>
  }
}

// -----

shd.program "p" {
  // expected-error @+1 {{must end in a 'shd.yield'}}
  shd.repeat "L" = 2() : () -> () {
  ^bb0(%i: tensor<i32>):
    %g = shd.constant dense<1.0> : tensor<f32>
  }
}

// -----

// R3
shd.program "p" {
  // expected-error @+1 {{must have the iteration's number, of type 'tensor<i32>', as first block argument}}
  shd.repeat "L" = 2() : () -> () {
  ^bb0(%i: tensor<f32>):
    shd.yield
  }
}

// -----

// Z1
shd.program "p" {
  // expected-error @+1 {{must be a scalar, but has 1 dimensions}}
  %c = shd.constant dense<1.0> : tensor<2xf32>
}

// -----

// I1, lists
shd.program "p" {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x16xf32>
  // expected-error @+1 {{has 1 lists of indices for 2 operands}}
  %y = shd.einsum(%x, %x) <[B, D] -> [B]> : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8xf32>
}

// -----

// I1, results
shd.program "p" {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x16xf32>
  // expected-error @+1 {{has 2 lists of indices for 1 results}}
  %y = shd.reduce sum(%x) <[B, D] -> [B], [D]> : (tensor<8x16xf32>) -> tensor<8xf32>
}

// -----

// I1, dimensions
shd.program "p" {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x16xf32>
  // expected-error @+1 {{operand 0 has 2 dimensions, but 1 indices}}
  %y = shd.reduce sum(%x) <[B] -> [B]> : (tensor<8x16xf32>) -> tensor<8xf32>
}

// -----

// I2
shd.program "p" {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x8xf32>
  // expected-error @+1 {{index 'B' repeats in operand 0}}
  %y = shd.reduce sum(%x) <[B, B] -> [B]> : (tensor<8x8xf32>) -> tensor<8xf32>
}

// -----

// I3
shd.program "p" {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x4096xf32>
  %w = shd.declare weight "w" ["D", "F"] : tensor<1024x32xf32>
  // expected-error @+1 {{index 'D' has extent 4096 in operand 0 and 1024 in operand 1}}
  %y = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> : (tensor<8x4096xf32>, tensor<1024x32xf32>) -> tensor<8x32xf32>
}

// -----

// I3, result
shd.program "p" {
  %x = shd.declare input "x" ["B"] : tensor<8xf32>
  // expected-error @+1 {{index 'B' has extent 8 in operand 0 and 4 in the result}}
  %y = shd.elementwise exp(%x) <[B] -> [B]> : (tensor<8xf32>) -> tensor<4xf32>
}

// -----

// I4
shd.program "p" {
  %s = shd.declare weight "s" ["B"] : tensor<8xf8E8M0FNU>
  // expected-error @+2 {{scales of f8e8m0 are read, moved and cast, not computed}}
  // expected-note @+1 {{cast them first, for example `bf16(...)`}}
  %y = shd.elementwise add(%s, %s) <[B], [B] -> [B]> : (tensor<8xf8E8M0FNU>, tensor<8xf8E8M0FNU>) -> tensor<8xf8E8M0FNU>
}

// -----

// I4, sums of what is scattered
shd.program "p" {
  %s = shd.declare weight "s" ["B", "D"] : tensor<8x4xf8E8M0FNU>
  %u = shd.declare input "u" ["D"] : tensor<4xf8E8M0FNU>
  %i = shd.declare input "i" [] : tensor<i32>
  // expected-error @+2 {{scales of f8e8m0 are read, moved and cast, not computed}}
  // expected-note @+1 {{cast them first, for example `bf16(...)`}}
  %y = shd.scatter(%s, %u, %i) <[B, D], [D], [] -> [B, D]> at [0] accumulate : (tensor<8x4xf8E8M0FNU>, tensor<4xf8E8M0FNU>, tensor<i32>) -> tensor<8x4xf8E8M0FNU>
}

// -----

// E1
shd.program "p" {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x16xf32>
  // expected-error @+1 {{index 'E' of the result is not one of the operands'}}
  %y = shd.einsum(%x, %x) <[B, D], [B, D] -> [E]> : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8xf32>
}

// -----

// E2
shd.program "p" {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x16xf32>
  // expected-error @+1 {{sums no index; a product without one is elementwise}}
  %y = shd.einsum(%x, %x) <[B, D], [B, D] -> [B, D]> : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
}

// -----

// W1
shd.program "p" {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x16xf32>
  // expected-error @+1 {{index 'D' of operand 0 is not one of the result's}}
  %y = shd.elementwise exp(%x) <[B, D] -> [B]> : (tensor<8x16xf32>) -> tensor<8xf32>
}

// -----

// W2
shd.program "p" {
  %x = shd.declare input "x" ["B"] : tensor<8xf32>
  // expected-error @+1 {{'add' takes 2 operands, but has 1}}
  %y = shd.elementwise add(%x) <[B] -> [B]> : (tensor<8xf32>) -> tensor<8xf32>
}

// -----

// W3, comparison
shd.program "p" {
  %x = shd.declare input "x" ["B"] : tensor<8xf32>
  // expected-error @+1 {{'le' must give bool, but gives f32}}
  %y = shd.elementwise le(%x, %x) <[B], [B] -> [B]> : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
}

// -----

// W4
shd.program "p" {
  %x = shd.declare input "x" ["B"] : tensor<8xf32>
  // expected-error @+1 {{the operands of '%' must be integers, but are f32}}
  %y = shd.elementwise rem(%x, %x) <[B], [B] -> [B]> : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
}

// -----

// W3, condition
shd.program "p" {
  %x = shd.declare input "x" ["B"] : tensor<8xf32>
  // expected-error @+2 {{the condition of 'where' must be bool, but is f32}}
  // expected-note @+1 {{compare it, for example `x != 0`}}
  %y = shd.elementwise where(%x, %x, %x) <[B], [B], [B] -> [B]> : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
}

// -----

// X1
shd.program "p" {
  %x = shd.declare input "x" ["B"] : tensor<8xf32>
  // expected-error @+1 {{index 'D' of the result is not one of the argument's [B]}}
  %y = shd.reduce sum(%x) <[B] -> [D]> : (tensor<8xf32>) -> tensor<8xf32>
}

// -----

shd.program "p" {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x16xf32>
  // expected-error @+1 {{has 1 statistics, but needs 0}}
  %y = shd.reduce sum(%x) <[B, D] -> [B]> stats(%x : tensor<8x16xf32>) : (tensor<8x16xf32>) -> tensor<8xf32>
}

// -----

shd.program "p" {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x16xf32>
  // expected-error @+1 {{statistic 'max' must have extents [8], but has [8, 16]}}
  %y = shd.reduce max(%x) <[B, D] -> [B]> stats(%x : tensor<8x16xf32>) : (tensor<8x16xf32>) -> tensor<8xf32>
}

// -----

// N1
shd.program "p" {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x16xf32>
  // expected-error @+1 {{index 'E' is not one of the argument's [B, D]}}
  %y = shd.normalize softmax(%x) over ["E"] <[B, D] -> [B, D]> : (tensor<8x16xf32>) -> tensor<8x16xf32>
}

// -----

// N2
shd.program "p" {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x16xf32>
  // expected-error @+1 {{the result must have the indices [B, D], found [B]}}
  %y = shd.normalize softmax(%x) over ["D"] <[B, D] -> [B]> : (tensor<8x16xf32>) -> tensor<8xf32>
}

// -----

// N2, logsumexp
shd.program "p" {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x16xf32>
  // expected-error @+1 {{the result must have the indices [B], found [B, D]}}
  %y = shd.normalize logsumexp(%x) over ["D"] <[B, D] -> [B, D]> : (tensor<8x16xf32>) -> tensor<8x16xf32>
}

// -----

// N3
shd.program "p" {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x16xf32>
  // expected-error @+1 {{'softmax' takes 1 to 1 operands, but has 2}}
  %y = shd.normalize softmax(%x, %x) over ["D"] <[B, D], [B, D] -> [B, D]> : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
}

// -----

// N4
shd.program "p" {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x16xf32>
  %g = shd.declare weight "g" ["E"] : tensor<16xf32>
  // expected-error @+1 {{index 'E' of the scale is not one of the argument's [B, D]}}
  %y = shd.normalize rmsnorm(%x, %g) over ["D"] <[B, D], [E] -> [B, D]> : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
}

// -----

// L1
shd.program "p" {
  %x = shd.declare input "x" ["B", "V"] : tensor<8x16xf32>
  %l = shd.declare input "l" ["B"] : tensor<8xi32>
  // expected-error @+1 {{index 'W' is not one of the logits' [B, V]}}
  %y = shd.cross_entropy(%x, %l) over "W" <[B, V], [B] -> [B]> : tensor<8x16xf32>, tensor<8xi32> -> tensor<8xf32>
}

// -----

// L1, labels
shd.program "p" {
  %x = shd.declare input "x" ["B", "V"] : tensor<8x16xf32>
  %l = shd.declare input "l" ["B", "V"] : tensor<8x16xi32>
  // expected-error @+1 {{the labels must have the indices [B], found [B, V]}}
  %y = shd.cross_entropy(%x, %l) over "V" <[B, V], [B, V] -> [B]> : tensor<8x16xf32>, tensor<8x16xi32> -> tensor<8xf32>
}

// -----

// L2
shd.program "p" {
  %x = shd.declare input "x" ["B", "V"] : tensor<8x16xf32>
  %l = shd.declare input "l" ["B"] : tensor<8xf32>
  // expected-error @+1 {{labels must be integers, but are f32}}
  %y = shd.cross_entropy(%x, %l) over "V" <[B, V], [B] -> [B]> : tensor<8x16xf32>, tensor<8xf32> -> tensor<8xf32>
}

// -----

// L2, result
shd.program "p" {
  %x = shd.declare input "x" ["B", "V"] : tensor<8x16xf32>
  %l = shd.declare input "l" ["B"] : tensor<8xi32>
  // expected-error @+1 {{the result must have the indices [B], found []}}
  %y = shd.cross_entropy(%x, %l) over "V" <[B, V], [B] -> []> : tensor<8x16xf32>, tensor<8xi32> -> tensor<f32>
}

// -----

// L3
shd.program "p" {
  %x = shd.declare input "x" ["B", "V"] : tensor<8x16xf32>
  %l = shd.declare input "l" ["B"] : tensor<8xi32>
  // expected-error @+1 {{expects a positive number of chunks or 'all', got -2}}
  %y = shd.cross_entropy(%x, %l) over "V" chunks -2 <[B, V], [B] -> [B]> : tensor<8x16xf32>, tensor<8xi32> -> tensor<8xf32>
}

// -----

// T1, head
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<8x16xf32>
  // expected-error @+1 {{index 'G' is not one of q's}}
  %y = shd.attention(%q, %k, %k) over "G", "S" <[T, H], [S, H], [S, H] -> [T, H]> : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
}

// -----

// T1, head of k
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<8x16xf32>
  // expected-error @+1 {{index 'H' is not one of k's}}
  %y = shd.attention(%q, %k, %k) over "H", "S" <[T, H], [S, G], [S, H] -> [T, H]> : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
}

// -----

// T1, key
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<8x16xf32>
  // expected-error @+1 {{index 'S' is not one of v's}}
  %y = shd.attention(%q, %k, %k) over "H", "S" <[T, H], [S, H], [R, H] -> [T, H]> : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
}

// -----

// T1, key of q
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  // expected-error @+2 {{q has the index 'T' of the keys}}
  // expected-note @+1 {{give the keys an index of their own, for example `dim S = T`}}
  %y = shd.attention(%q, %q, %q) over "H", "T" <[T, H], [T, H], [T, H] -> [T, H]> : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
}

// -----

// T2, k
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["B", "S", "H"] : tensor<2x8x16xf32>
  // expected-error @+1 {{index 'B' of k is not one of q's}}
  %y = shd.attention(%q, %k, %k) over "H", "S" <[T, H], [B, S, H], [B, S, H] -> [T, B, H]> : tensor<8x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32> -> tensor<8x2x16xf32>
}

// -----

// T2, v
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<4x16xf32>
  %v = shd.declare input "v" ["S", "T"] : tensor<4x8xf32>
  // expected-error @+1 {{index 'T' of v is one of q's, but not of k's}}
  %y = shd.attention(%q, %k, %v) over "H", "S" <[T, H], [S, H], [S, T] -> [T]> : tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x8xf32> -> tensor<8xf32>
}

// -----

// T3, extent
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<8x16xf32>
  // expected-error @+1 {{'window' must be at least 1, but is 0}}
  %y = shd.attention(%q, %k, %k) over "H", "S" query "T" <[T, H], [S, H], [S, H] -> [T, H]> causal window 0 : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
}

// -----

// T3, causal
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<8x16xf32>
  // expected-error @+1 {{a window needs 'causal'}}
  %y = shd.attention(%q, %k, %k) over "H", "S" query "T" <[T, H], [S, H], [S, H] -> [T, H]> window 4 : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
}

// -----

// T4, query of q
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<8x16xf32>
  // expected-error @+1 {{index 'U' is not one of q's}}
  %y = shd.attention(%q, %k, %k) over "H", "S" query "U" <[T, H], [S, H], [S, H] -> [T, H]> causal : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
}

// -----

// T4, query of k
shd.program "p" {
  %q = shd.declare input "q" ["B", "T", "H"] : tensor<2x8x16xf32>
  %k = shd.declare input "k" ["B", "S", "H"] : tensor<2x8x16xf32>
  // expected-error @+1 {{index 'B', along which queries run, is one of k's}}
  %y = shd.attention(%q, %k, %k) over "H", "S" query "B" <[B, T, H], [B, S, H], [B, S, H] -> [B, T, H]> causal : tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32> -> tensor<2x8x16xf32>
}

// -----

// T4, causal
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<8x16xf32>
  // expected-error @+1 {{'causal' needs positions or the index along which they run}}
  %y = shd.attention(%q, %k, %k) over "H", "S" <[T, H], [S, H], [S, H] -> [T, H]> causal : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
}

// -----

// T4, both
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<8x16xf32>
  %at = shd.declare input "at" ["T"] : tensor<8xi32>
  // expected-error @+1 {{has both positions and the index 'T' along which they run}}
  %y = shd.attention(%q, %k, %k at %at) over "H", "S" query "T" <[T, H], [S, H], [S, H], [T] -> [T, H]> causal : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8xi32> -> tensor<8x16xf32>
}

// -----

// T4, integers
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<8x16xf32>
  %at = shd.declare input "at" ["T"] : tensor<8xf32>
  // expected-error @+1 {{positions must be integers, but are f32}}
  %y = shd.attention(%q, %k, %k at %at) over "H", "S" <[T, H], [S, H], [S, H], [T] -> [T, H]> causal : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8xf32> -> tensor<8x16xf32>
}

// -----

// T4, indices of positions
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<8x16xf32>
  %at = shd.declare input "at" ["S"] : tensor<8xi32>
  // expected-error @+1 {{index 'S' of the positions is not one of q's}}
  %y = shd.attention(%q, %k, %k at %at) over "H", "S" <[T, H], [S, H], [S, H], [S] -> [T, H]> causal : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8xi32> -> tensor<8x16xf32>
}

// -----

// T5
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<8x16xf32>
  // expected-error @+1 {{the result must have the indices [T, H], found [T]}}
  %y = shd.attention(%q, %k, %k) over "H", "S" <[T, H], [S, H], [S, H] -> [T]> : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8xf32>
}

// -----

// T7, element type
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<4x16xf32>
  %x = shd.declare input "x" ["T"] : tensor<8xi32>
  // expected-error @+1 {{'sink' expects floats, found int32}}
  %y = shd.attention(%q, %k, %k sink %x) over "H", "S" <[T, H], [S, H], [S, H], [T] -> [T, H]> : tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x16xf32> sink tensor<8xi32> -> tensor<8x16xf32>
}

// -----

// T7, indices
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<4x16xf32>
  %x = shd.declare input "x" ["S"] : tensor<4xf32>
  // expected-error @+1 {{index 'S' of 'sink' is not one of the queries' [T]}}
  %y = shd.attention(%q, %k, %k sink %x) over "H", "S" <[T, H], [S, H], [S, H], [S] -> [T, H]> : tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x16xf32> sink tensor<4xf32> -> tensor<8x16xf32>
}

// -----

// T9, causal
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<4x16xf32>
  %p = shd.declare input "p" ["S"] : tensor<4xi32>
  // expected-error @+1 {{'key_at' masks keys, which needs `causal=true`}}
  %y = shd.attention(%q, %k, %k key_at %p) over "H", "S" <[T, H], [S, H], [S, H], [S] -> [T, H]> : tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x16xf32> key_at tensor<4xi32> -> tensor<8x16xf32>
}

// -----

// T9, integers
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<4x16xf32>
  %p = shd.declare input "p" ["S"] : tensor<4xf32>
  // expected-error @+1 {{positions of keys must be integers, but are f32}}
  %y = shd.attention(%q, %k, %k key_at %p) over "H", "S" query "T" <[T, H], [S, H], [S, H], [S] -> [T, H]> causal : tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x16xf32> key_at tensor<4xf32> -> tensor<8x16xf32>
}

// -----

// T9, the keys' index
shd.program "p" {
  %q = shd.declare input "q" ["B", "T", "H"] : tensor<2x8x16xf32>
  %k = shd.declare input "k" ["B", "S", "H"] : tensor<2x4x16xf32>
  %p = shd.declare input "p" ["B"] : tensor<2xi32>
  // expected-error @+1 {{index 'S' is not one of key_at's [B]}}
  %y = shd.attention(%q, %k, %k key_at %p) over "H", "S" query "T" <[B, T, H], [B, S, H], [B, S, H], [B] -> [B, T, H]> causal : tensor<2x8x16xf32>, tensor<2x4x16xf32>, tensor<2x4x16xf32> key_at tensor<2xi32> -> tensor<2x8x16xf32>
}

// -----

// T9, indices of k
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<4x16xf32>
  %p = shd.declare input "p" ["T", "S"] : tensor<8x4xi32>
  // expected-error @+1 {{index 'T' of 'key_at' is not one of k's [S]}}
  %y = shd.attention(%q, %k, %k key_at %p) over "H", "S" query "T" <[T, H], [S, H], [S, H], [T, S] -> [T, H]> causal : tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x16xf32> key_at tensor<8x4xi32> -> tensor<8x16xf32>
}

// -----

// B1, positions of keys
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<4x16xf32>
  %l = shd.declare input "l" ["T"] : tensor<8xf32>
  %p = shd.declare input "p" ["S"] : tensor<4xi32>
  // expected-error @+1 {{'key_at' masks keys, which needs `causal=true`}}
  %y:3 = shd.attention_grad(%q, %k, %k, %q, %q, %l key_at %p) over "H", "S" <[T, H], [S, H], [S, H], [T, H], [T, H], [T], [S] -> [T, H], [S, H], [S, H]> : (tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8xf32>, tensor<4xi32>) -> (tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>)
}

// -----

// T8, element type
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<4x16xf32>
  %x = shd.declare input "x" ["T"] : tensor<8xi32>
  // expected-error @+1 {{'bias' expects floats, found int32}}
  %y = shd.attention(%q, %k, %k bias %x) over "H", "S" <[T, H], [S, H], [S, H], [T] -> [T, H]> : tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x16xf32> bias tensor<8xi32> -> tensor<8x16xf32>
}

// -----

// T8, indices
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<4x16xf32>
  %x = shd.declare input "x" ["S", "H"] : tensor<4x16xf32>
  // expected-error @+1 {{index 'H' of 'bias' is not one of the scores' [T, S]}}
  %y = shd.attention(%q, %k, %k bias %x) over "H", "S" <[T, H], [S, H], [S, H], [S, H] -> [T, H]> : tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x16xf32> bias tensor<4x16xf32> -> tensor<8x16xf32>
}

// -----

// B4, no bias
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<4x16xf32>
  %l = shd.declare input "l" ["T"] : tensor<8xf32>
  %b = shd.declare input "b" ["T", "S"] : tensor<8x4xf32>
  // expected-error @+1 {{has the gradient of a bias, but no bias}}
  %y:4 = shd.attention_grad(%q, %k, %k, %q, %q, %l) over "H", "S" <[T, H], [S, H], [S, H], [T, H], [T, H], [T] -> [T, H], [S, H], [S, H], [T, S]> : (tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8xf32>) -> (tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<8x4xf32>)
}

// -----

// B4, indices
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<4x16xf32>
  %l = shd.declare input "l" ["T"] : tensor<8xf32>
  %b = shd.declare input "b" ["T", "S"] : tensor<8x4xf32>
  // expected-error @+1 {{result 3 must have the indices [T, S], in this order, found [S, T]}}
  %y:4 = shd.attention_grad(%q, %k, %k, %q, %q, %l bias %b) over "H", "S" <[T, H], [S, H], [S, H], [T, H], [T, H], [T], [T, S] -> [T, H], [S, H], [S, H], [S, T]> : (tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8xf32>, tensor<8x4xf32>) -> (tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x8xf32>)
}

// -----

// T6, element type
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<8x16xf32>
  // expected-error @+1 {{the logsumexp must be f32, but is bf16}}
  %y, %l = shd.attention(%q, %k, %k) over "H", "S" <[T, H], [S, H], [S, H] -> [T, H], [T]> : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>, tensor<8xbf16>
}

// -----

// T6, indices
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<8x16xf32>
  // expected-error @+1 {{the logsumexp must have the indices [T], found [S]}}
  %y, %l = shd.attention(%q, %k, %k) over "H", "S" <[T, H], [S, H], [S, H] -> [T, H], [S]> : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>, tensor<8xf32>
}

// -----

// B1, as T1
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<4x16xf32>
  %o = shd.declare input "o" ["T", "E"] : tensor<8x2xf32>
  %v = shd.declare input "v" ["S", "E"] : tensor<4x2xf32>
  %l = shd.declare input "l" ["T"] : tensor<8xf32>
  // expected-error @+1 {{index 'S' is not one of k's}}
  %y:3 = shd.attention_grad(%q, %k, %v, %o, %o, %l) over "H", "S" <[T, H], [G, H], [S, E], [T, E], [T, E], [T] -> [T, H], [G, H], [S, E]> : (tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x2xf32>, tensor<8x2xf32>, tensor<8x2xf32>, tensor<8xf32>) -> (tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x2xf32>)
}

// -----

// B1, as T3
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<4x16xf32>
  %o = shd.declare input "o" ["T", "E"] : tensor<8x2xf32>
  %v = shd.declare input "v" ["S", "E"] : tensor<4x2xf32>
  %l = shd.declare input "l" ["T"] : tensor<8xf32>
  // expected-error @+1 {{a window needs 'causal'}}
  %y:3 = shd.attention_grad(%q, %k, %v, %o, %o, %l) over "H", "S" <[T, H], [S, H], [S, E], [T, E], [T, E], [T] -> [T, H], [S, H], [S, E]> window 2 : (tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x2xf32>, tensor<8x2xf32>, tensor<8x2xf32>, tensor<8xf32>) -> (tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x2xf32>)
}

// -----

// B2, output
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<4x16xf32>
  %o = shd.declare input "o" ["T", "E"] : tensor<8x2xf32>
  %v = shd.declare input "v" ["S", "E"] : tensor<4x2xf32>
  %l = shd.declare input "l" ["T"] : tensor<8xf32>
  // expected-error @+1 {{operand 3 must have the indices [T, E], found [S, E]}}
  %y:3 = shd.attention_grad(%q, %k, %v, %v, %o, %l) over "H", "S" <[T, H], [S, H], [S, E], [S, E], [T, E], [T] -> [T, H], [S, H], [S, E]> : (tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<8x2xf32>, tensor<8xf32>) -> (tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x2xf32>)
}

// -----

// B2, order of the gradient
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<4x16xf32>
  %o = shd.declare input "o" ["T", "E"] : tensor<8x2xf32>
  %v = shd.declare input "v" ["S", "E"] : tensor<4x2xf32>
  %g = shd.declare input "g" ["E", "T"] : tensor<2x8xf32>
  %l = shd.declare input "l" ["T"] : tensor<8xf32>
  // expected-error @+1 {{operand 4 must have the indices [T, E], in this order, found [E, T]}}
  %y:3 = shd.attention_grad(%q, %k, %v, %o, %g, %l) over "H", "S" <[T, H], [S, H], [S, E], [T, E], [E, T], [T] -> [T, H], [S, H], [S, E]> : (tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x2xf32>, tensor<8x2xf32>, tensor<2x8xf32>, tensor<8xf32>) -> (tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x2xf32>)
}

// -----

// B2, logsumexp
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<4x16xf32>
  %o = shd.declare input "o" ["T", "E"] : tensor<8x2xf32>
  %v = shd.declare input "v" ["S", "E"] : tensor<4x2xf32>
  %l = shd.declare input "l" ["S"] : tensor<4xf32>
  // expected-error @+1 {{the logsumexp must have the indices [T], found [S]}}
  %y:3 = shd.attention_grad(%q, %k, %v, %o, %o, %l) over "H", "S" <[T, H], [S, H], [S, E], [T, E], [T, E], [S] -> [T, H], [S, H], [S, E]> : (tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x2xf32>, tensor<8x2xf32>, tensor<8x2xf32>, tensor<4xf32>) -> (tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x2xf32>)
}

// -----

// B3
shd.program "p" {
  %q = shd.declare input "q" ["T", "H"] : tensor<8x16xf32>
  %k = shd.declare input "k" ["S", "H"] : tensor<4x16xf32>
  %o = shd.declare input "o" ["T", "E"] : tensor<8x2xf32>
  %v = shd.declare input "v" ["S", "E"] : tensor<4x2xf32>
  %l = shd.declare input "l" ["T"] : tensor<8xf32>
  // expected-error @+1 {{result 1 must have the indices [S, H], in this order, found [H, S]}}
  %y:3 = shd.attention_grad(%q, %k, %v, %o, %o, %l) over "H", "S" <[T, H], [S, H], [S, E], [T, E], [T, E], [T] -> [T, H], [H, S], [S, E]> : (tensor<8x16xf32>, tensor<4x16xf32>, tensor<4x2xf32>, tensor<8x2xf32>, tensor<8x2xf32>, tensor<8xf32>) -> (tensor<8x16xf32>, tensor<16x4xf32>, tensor<4x2xf32>)
}

// -----

// G1, count
shd.program "p" {
  %x = shd.declare weight "x" ["V", "D"] : tensor<8x16xf32>
  %p = shd.declare input "p" ["B"] : tensor<4xi32>
  // expected-error @+1 {{has 2 dimensions for 1 tensors of positions}}
  %y = shd.gather(%x, %p) <[V, D], [B] -> [B]> at [0, 1] : (tensor<8x16xf32>, tensor<4xi32>) -> tensor<4xf32>
}

// -----

// G1, none
shd.program "p" {
  %x = shd.declare weight "x" ["V", "D"] : tensor<8x16xf32>
  // expected-error @+1 {{needs positions}}
  %y = shd.gather(%x) <[V, D] -> [V, D]> at [] : (tensor<8x16xf32>) -> tensor<8x16xf32>
}

// -----

// G1, dimension
shd.program "p" {
  %x = shd.declare weight "x" ["V", "D"] : tensor<8x16xf32>
  %p = shd.declare input "p" ["B"] : tensor<4xi32>
  // expected-error @+1 {{dimension 2 is not one of the 2 of operand 0}}
  %y = shd.gather(%x, %p) <[V, D], [B] -> [B, D]> at [2] : (tensor<8x16xf32>, tensor<4xi32>) -> tensor<4x16xf32>
}

// -----

// G1, twice
shd.program "p" {
  %x = shd.declare weight "x" ["V", "D"] : tensor<8x16xf32>
  %p = shd.declare input "p" ["B"] : tensor<4xi32>
  // expected-error @+1 {{dimension 0 appears twice}}
  %y = shd.gather(%x, %p, %p) <[V, D], [B], [B] -> [B, D]> at [0, 0] : (tensor<8x16xf32>, tensor<4xi32>, tensor<4xi32>) -> tensor<4x16xf32>
}

// -----

// G1, integers
shd.program "p" {
  %x = shd.declare weight "x" ["V", "D"] : tensor<8x16xf32>
  %p = shd.declare input "p" ["B"] : tensor<4xi1>
  // expected-error @+1 {{positions must be integers, but are bool}}
  %y = shd.gather(%x, %p) <[V, D], [B] -> [B, D]> at [0] : (tensor<8x16xf32>, tensor<4xi1>) -> tensor<4x16xf32>
}

// -----

// G2, the gathered index
shd.program "p" {
  %x = shd.declare weight "x" ["V", "D"] : tensor<8x16xf32>
  %p = shd.declare input "p" ["V"] : tensor<8xi32>
  // expected-error @+1 {{index 'V', which positions replace, is also one of the positions'}}
  %y = shd.gather(%x, %p) <[V, D], [V] -> [V, D]> at [0] : (tensor<8x16xf32>, tensor<8xi32>) -> tensor<8x16xf32>
}

// -----

// G2, result
shd.program "p" {
  %x = shd.declare weight "x" ["V", "D"] : tensor<8x16xf32>
  %p = shd.declare input "p" ["B"] : tensor<4xi32>
  // expected-error @+1 {{the result must have the indices [D, B], found [B]}}
  %y = shd.gather(%x, %p) <[V, D], [B] -> [B]> at [0] : (tensor<8x16xf32>, tensor<4xi32>) -> tensor<4xf32>
}

// -----

// G2, element type
shd.program "p" {
  %x = shd.declare weight "x" ["V", "D"] : tensor<8x16xf32>
  %p = shd.declare input "p" ["B"] : tensor<4xi32>
  // expected-error @+1 {{operand 0 has element type f32, but the result has bf16}}
  %y = shd.gather(%x, %p) <[V, D], [B] -> [B, D]> at [0] : (tensor<8x16xf32>, tensor<4xi32>) -> tensor<4x16xbf16>
}

// -----

// C1, update
shd.program "p" {
  %c = shd.declare state "c" ["B", "S"] : tensor<4x8xf32>
  %u = shd.declare input "u" ["S"] : tensor<8xf32>
  %p = shd.declare input "p" ["B"] : tensor<4xi32>
  // expected-error @+1 {{operand 1 must have the indices [B], found [S]}}
  %y = shd.scatter(%c, %u, %p) <[B, S], [S], [B] -> [B, S]> at [1] : (tensor<4x8xf32>, tensor<8xf32>, tensor<4xi32>) -> tensor<4x8xf32>
}

// -----

// C1, positions
shd.program "p" {
  %c = shd.declare state "c" ["B", "S"] : tensor<4x8xf32>
  %u = shd.declare input "u" ["B"] : tensor<4xf32>
  %p = shd.declare input "p" ["B"] : tensor<4xf32>
  // expected-error @+1 {{positions must be integers, but are f32}}
  %y = shd.scatter(%c, %u, %p) <[B, S], [B], [B] -> [B, S]> at [1] : (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x8xf32>
}

// -----

// C1, element type
shd.program "p" {
  %c = shd.declare state "c" ["B", "S"] : tensor<4x8xbf16>
  %u = shd.declare input "u" ["B"] : tensor<4xf32>
  %p = shd.declare input "p" ["B"] : tensor<4xi32>
  // expected-error @+1 {{operand 1 has element type f32, but the result has bf16}}
  %y = shd.scatter(%c, %u, %p) <[B, S], [B], [B] -> [B, S]> at [1] : (tensor<4x8xbf16>, tensor<4xf32>, tensor<4xi32>) -> tensor<4x8xbf16>
}

// -----

// C2
shd.program "p" {
  %c = shd.declare state "c" ["B", "S"] : tensor<4x8xf32>
  %u = shd.declare input "u" ["B"] : tensor<4xf32>
  %p = shd.declare input "p" ["B"] : tensor<4xi32>
  // expected-error @+1 {{the result must have the indices [B, S] of operand 0, found [S, B]}}
  %y = shd.scatter(%c, %u, %p) <[B, S], [B], [B] -> [S, B]> at [1] : (tensor<4x8xf32>, tensor<4xf32>, tensor<4xi32>) -> tensor<8x4xf32>
}

// -----

// Y1
shd.program "p" {
  %u = shd.declare input "u" ["B", "D"] : tensor<4x16xf32>
  %p = shd.declare input "p" ["B"] : tensor<4xi32>
  // expected-error @+1 {{dimension 2 is not one of the 2 of the result}}
  %y = shd.scatter_sum(%u, %p) <[B, D], [B] -> [V, D]> at [2] : (tensor<4x16xf32>, tensor<4xi32>) -> tensor<8x16xf32>
}

// -----

// Y1, integers
shd.program "p" {
  %u = shd.declare input "u" ["B", "D"] : tensor<4x16xf32>
  %p = shd.declare input "p" ["B"] : tensor<4xf32>
  // expected-error @+1 {{positions must be integers, but are f32}}
  %y = shd.scatter_sum(%u, %p) <[B, D], [B] -> [V, D]> at [0] : (tensor<4x16xf32>, tensor<4xf32>) -> tensor<8x16xf32>
}

// -----

// Y2
shd.program "p" {
  %u = shd.declare input "u" ["D"] : tensor<16xf32>
  %p = shd.declare input "p" ["B"] : tensor<4xi32>
  // expected-error @+1 {{operand 0 must have the indices [D, B], found [D]}}
  %y = shd.scatter_sum(%u, %p) <[D], [B] -> [V, D]> at [0] : (tensor<16xf32>, tensor<4xi32>) -> tensor<8x16xf32>
}

// -----

// A1
shd.program "p" {
  %x = shd.declare input "x" ["T", "E"] : tensor<8x4xf32>
  // expected-error @+1 {{index 'D' is not one of the argument's [T, E]}}
  %y = shd.topk(%x) over "D" k 2 <[T, E] -> [T, E]> : (tensor<8x4xf32>) -> tensor<8x4xi1>
}

// -----

// A1, k
shd.program "p" {
  %x = shd.declare input "x" ["T", "E"] : tensor<8x4xf32>
  // expected-error @+1 {{k is 5, but must be from 1 to 4, the extent of 'E'}}
  %y = shd.topk(%x) over "E" k 5 <[T, E] -> [T, E]> : (tensor<8x4xf32>) -> tensor<8x4xi1>
}

// -----

// A2
shd.program "p" {
  %x = shd.declare input "x" ["T", "E"] : tensor<8x4xf32>
  // expected-error @+1 {{the result must be bool, but is f32}}
  %y = shd.topk(%x) over "E" k 2 <[T, E] -> [T, E]> : (tensor<8x4xf32>) -> tensor<8x4xf32>
}

// -----

// G3
shd.program "p" {
  %x = shd.declare input "x" ["T", "D"] : tensor<8x16xf32>
  %p = shd.declare input "p" ["T", "E"] : tensor<8x4xi32>
  // expected-error @+2 {{picks must be bool, but are int32}}
  // expected-note @+1 {{compare them, for example `p != 0`, or pick the k largest by `topk`}}
  %y = shd.dispatch(%x, %p) over "E", "C" k 2 <[T, D], [T, E] -> [E, C, D]> : (tensor<8x16xf32>, tensor<8x4xi32>) -> tensor<4x5x16xf32>
}

// -----

// G3, experts
shd.program "p" {
  %x = shd.declare input "x" ["T", "D"] : tensor<8x16xf32>
  %p = shd.declare input "p" ["T", "E"] : tensor<8x4xi1>
  // expected-error @+1 {{index 'F' is not one of the picks' [T, E]}}
  %y = shd.dispatch(%x, %p) over "F", "C" k 2 <[T, D], [T, E] -> [E, C, D]> : (tensor<8x16xf32>, tensor<8x4xi1>) -> tensor<4x5x16xf32>
}

// -----

// G3, tokens
shd.program "p" {
  %x = shd.declare input "x" ["T", "D"] : tensor<8x16xf32>
  %p = shd.declare input "p" ["S", "E"] : tensor<8x4xi1>
  // expected-error @+1 {{index 'S' of the picks is not one of the tokens' [T, D]}}
  %y = shd.dispatch(%x, %p) over "E", "C" k 2 <[T, D], [S, E] -> [E, C, D]> : (tensor<8x16xf32>, tensor<8x4xi1>) -> tensor<4x5x16xf32>
}

// -----

// G3, x
shd.program "p" {
  %x = shd.declare input "x" ["T", "D"] : tensor<8x16xf32>
  %p = shd.declare input "p" ["T", "E"] : tensor<8x4xi1>
  // expected-error @+1 {{index 'D' of the slots is one of the tokens, too}}
  %y = shd.dispatch(%x, %p) over "E", "D" k 2 <[T, D], [T, E] -> [E, D]> : (tensor<8x16xf32>, tensor<8x4xi1>) -> tensor<4x16xf32>
}

// -----

// G3, extents
shd.program "p" {
  %x = shd.declare input "x" ["T", "D"] : tensor<8x16xf32>
  %p = shd.declare input "p" ["T", "E"] : tensor<6x4xi1>
  // expected-error @+1 {{index 'T' has extent 8 in the tokens, but 6 in the picks}}
  %y = shd.dispatch(%x, %p) over "E", "C" k 2 <[T, D], [T, E] -> [E, C, D]> : (tensor<8x16xf32>, tensor<6x4xi1>) -> tensor<4x5x16xf32>
}

// -----

// G4
shd.program "p" {
  %x = shd.declare input "x" ["T", "D"] : tensor<8x16xf32>
  %p = shd.declare input "p" ["T", "E"] : tensor<8x4xi1>
  // expected-error @+1 {{the slots must have the indices [E, C, D], found [E, D]}}
  %y = shd.dispatch(%x, %p) over "E", "C" k 2 <[T, D], [T, E] -> [E, D]> : (tensor<8x16xf32>, tensor<8x4xi1>) -> tensor<4x16xf32>
}

// -----

// G4, weights
shd.program "p" {
  %x = shd.declare input "x" ["T", "D"] : tensor<8x16xf32>
  %p = shd.declare input "p" ["T", "E"] : tensor<8x4xi1>
  %w = shd.declare input "w" ["T"] : tensor<8xf32>
  // expected-error @+1 {{the weights must have the indices [T, E], found [T]}}
  %y = shd.dispatch(%x, %p, %w) over "E", "C" k 2 <[T, D], [T, E], [T] -> [E, C, D]> : (tensor<8x16xf32>, tensor<8x4xi1>, tensor<8xf32>) -> tensor<4x5x16xf32>
}

// -----

// G5
shd.program "p" {
  %x = shd.declare input "x" ["T", "D"] : tensor<8x16xf32>
  %p = shd.declare input "p" ["T", "E"] : tensor<8x4xi1>
  // expected-error @+1 {{k is 5, but must be from 1 to 4, the extent of 'E'}}
  %y = shd.dispatch(%x, %p) over "E", "C" k 5 <[T, D], [T, E] -> [E, C, D]> : (tensor<8x16xf32>, tensor<8x4xi1>) -> tensor<4x5x16xf32>
}

// -----

// G5, blocks
shd.program "p" {
  %x = shd.declare input "x" ["T", "D"] : tensor<8x16xf32>
  %p = shd.declare input "p" ["T", "E"] : tensor<8x4xi1>
  // expected-error @+1 {{'blocks' is 3, which does not divide the 4 of 'E'}}
  %y = shd.dispatch(%x, %p) over "E", "C" k 2 blocks 3 limit 1 <[T, D], [T, E] -> [E, C, D]> : (tensor<8x16xf32>, tensor<8x4xi1>) -> tensor<4x5x16xf32>
}

// -----

// G5, limit
shd.program "p" {
  %x = shd.declare input "x" ["T", "D"] : tensor<8x16xf32>
  %p = shd.declare input "p" ["T", "E"] : tensor<8x4xi1>
  // expected-error @+1 {{'limit' is 3, but must be from 1 to 2, the number of blocks}}
  %y = shd.dispatch(%x, %p) over "E", "C" k 2 blocks 2 limit 3 <[T, D], [T, E] -> [E, C, D]> : (tensor<8x16xf32>, tensor<8x4xi1>) -> tensor<4x5x16xf32>
}

// -----

// G5, too few experts in so many blocks
shd.program "p" {
  %x = shd.declare input "x" ["T", "D"] : tensor<8x16xf32>
  %p = shd.declare input "p" ["T", "E"] : tensor<8x4xi1>
  // expected-error @+1 {{k is 3, but only 2 of 'E' are in 1 of 2 blocks}}
  %y = shd.dispatch(%x, %p) over "E", "C" k 3 blocks 2 limit 1 <[T, D], [T, E] -> [E, C, D]> : (tensor<8x16xf32>, tensor<8x4xi1>) -> tensor<4x5x16xf32>
}

// -----

// G6
shd.program "p" {
  %x = shd.declare input "x" ["T", "D"] : tensor<8x16xf32>
  %p = shd.declare input "p" ["T", "E"] : tensor<8x4xi1>
  // expected-error @+2 {{'imbalance' needs 'dropless=true'}}
  // expected-note @+1 {{without it every slot of 'C' is executed, and the surplus is dropped}}
  %y = shd.dispatch(%x, %p) over "E", "C" k 2 imbalance 1.25 <[T, D], [T, E] -> [E, C, D]> : (tensor<8x16xf32>, tensor<8x4xi1>) -> tensor<4x5x16xf32>
}

// -----

// G6, less than 1
shd.program "p" {
  %x = shd.declare input "x" ["T", "D"] : tensor<8x16xf32>
  %p = shd.declare input "p" ["T", "E"] : tensor<8x4xi1>
  // expected-error @+1 {{'imbalance' must be at least 1, but is 0.50}}
  %y = shd.dispatch(%x, %p) over "E", "C" k 2 dropless imbalance 0.5 <[T, D], [T, E] -> [E, C, D]> : (tensor<8x16xf32>, tensor<8x4xi1>) -> tensor<4x5x16xf32>
}

// -----

// P1
shd.program "p" {
  %x = shd.declare input "x" ["T", "H"] : tensor<8x16xf32>
  // expected-error @+1 {{index 'G' is not one of the argument's [T, H]}}
  %y = shd.rope(%x) over "G" positions "T" <[T, H] -> [T, H]> : (tensor<8x16xf32>) -> tensor<8x16xf32>
}

// -----

// P1, even
shd.program "p" {
  %x = shd.declare input "x" ["T", "H"] : tensor<8x15xf32>
  // expected-error @+1 {{'rope' pairs the elements of 'H', so its extent must be even, but is 15}}
  %y = shd.rope(%x) over "H" positions "T" <[T, H] -> [T, H]> : (tensor<8x15xf32>) -> tensor<8x15xf32>
}

// -----

// P2, neither
shd.program "p" {
  %x = shd.declare input "x" ["T", "H"] : tensor<8x16xf32>
  // expected-error @+1 {{'rope' takes positions either along an index, `rope[T, H](x)`, or from a tensor, `rope[H](x, at=p)`}}
  %y = shd.rope(%x) over "H" <[T, H] -> [T, H]> : (tensor<8x16xf32>) -> tensor<8x16xf32>
}

// -----

// P2, both
shd.program "p" {
  %x = shd.declare input "x" ["T", "H"] : tensor<8x16xf32>
  %p = shd.declare input "p" ["T"] : tensor<8xi32>
  // expected-error @+1 {{'rope' takes positions either along an index, `rope[T, H](x)`, or from a tensor, `rope[H](x, at=p)`}}
  %y = shd.rope(%x, %p) over "H" positions "T" <[T, H], [T] -> [T, H]> : (tensor<8x16xf32>, tensor<8xi32>) -> tensor<8x16xf32>
}

// -----

// P2, index
shd.program "p" {
  %x = shd.declare input "x" ["T", "H"] : tensor<8x16xf32>
  // expected-error @+1 {{index 'S' is not one of the argument's [T, H]}}
  %y = shd.rope(%x) over "H" positions "S" <[T, H] -> [T, H]> : (tensor<8x16xf32>) -> tensor<8x16xf32>
}

// -----

// P2, indices of positions
shd.program "p" {
  %x = shd.declare input "x" ["T", "H"] : tensor<8x16xf32>
  %p = shd.declare input "p" ["H"] : tensor<16xi32>
  // expected-error @+1 {{index 'H' of the positions is not one of the argument's [T]}}
  %y = shd.rope(%x, %p) over "H" <[T, H], [H] -> [T, H]> : (tensor<8x16xf32>, tensor<16xi32>) -> tensor<8x16xf32>
}

// -----

// P2, integers
shd.program "p" {
  %x = shd.declare input "x" ["T", "H"] : tensor<8x16xf32>
  %p = shd.declare input "p" ["T"] : tensor<8xf32>
  // expected-error @+1 {{positions must be integers, but are f32}}
  %y = shd.rope(%x, %p) over "H" <[T, H], [T] -> [T, H]> : (tensor<8x16xf32>, tensor<8xf32>) -> tensor<8x16xf32>
}

// -----

// P3
shd.program "p" {
  %x = shd.declare input "x" ["T", "H"] : tensor<8x16xf32>
  // expected-error @+1 {{the result must have the indices [T, H], found [T]}}
  %y = shd.rope(%x) over "H" positions "T" <[T, H] -> [T]> : (tensor<8x16xf32>) -> tensor<8xf32>
}

// -----

// K1
shd.program "p" {
  %x = shd.declare input "x" ["D"] : tensor<12xf32>
  // expected-error @+1 {{the extents of [A, B] multiply to 15, but 'D' has extent 12}}
  %y = shd.split(%x) "D" into ["A", "B"] <[D] -> [A, B]> : (tensor<12xf32>) -> tensor<3x5xf32>
}

// -----

// K1, overflow: 2^62 * 4 is 0 in 64 bits
shd.program "p" {
  %x = shd.declare input "x" ["D"] : tensor<12xf32>
  // expected-error @+1 {{the extents of [A, B] multiply to more than fits, but 'D' has extent 12}}
  %y = shd.split(%x) "D" into ["A", "B"] <[D] -> [A, B]> : (tensor<12xf32>) -> tensor<4611686018427387904x4xf32>
}

// -----

// K2, whole
shd.program "p" {
  %x = shd.declare input "x" ["D"] : tensor<12xf32>
  // expected-error @+1 {{index 'E' is not one of the argument's [D]}}
  %y = shd.split(%x) "E" into ["A", "B"] <[D] -> [A, B]> : (tensor<12xf32>) -> tensor<3x4xf32>
}

// -----

// K2, parts
shd.program "p" {
  %x = shd.declare input "x" ["D"] : tensor<12xf32>
  // expected-error @+1 {{index 'C' of the parts is not one of the result's}}
  %y = shd.split(%x) "D" into ["A", "C"] <[D] -> [A, B]> : (tensor<12xf32>) -> tensor<3x4xf32>
}

// -----

// K2, twice
shd.program "p" {
  %x = shd.declare input "x" ["D"] : tensor<9xf32>
  // expected-error @+1 {{part 'A' appears twice}}
  %y = shd.split(%x) "D" into ["A", "A"] <[D] -> [A]> : (tensor<9xf32>) -> tensor<3xf32>
}

// -----

// K2, none
shd.program "p" {
  %x = shd.declare input "x" ["D"] : tensor<1xf32>
  // expected-error @+1 {{needs at least one part}}
  %y = shd.split(%x) "D" into [] <[D] -> []> : (tensor<1xf32>) -> tensor<f32>
}

// -----

// K2, other indices
shd.program "p" {
  %x = shd.declare input "x" ["T", "D"] : tensor<2x12xf32>
  // expected-error @+1 {{the result must have the indices [T, A, B], found [A, B]}}
  %y = shd.split(%x) "D" into ["A", "B"] <[T, D] -> [A, B]> : (tensor<2x12xf32>) -> tensor<3x4xf32>
}

// -----

shd.program "p" {
  %x = shd.declare input "x" ["D"] : tensor<12xf32>
  // expected-error @+1 {{operand 0 has element type f32, but the result has bf16}}
  %y = shd.split(%x) "D" into ["A", "B"] <[D] -> [A, B]> : (tensor<12xf32>) -> tensor<3x4xbf16>
}

// -----

// M1
shd.program "p" {
  %x = shd.declare input "x" ["A", "B"] : tensor<3x5xf32>
  // expected-error @+1 {{the extents of [A, B] multiply to 15, but 'D' has extent 12}}
  %y = shd.merge(%x) ["A", "B"] into "D" <[A, B] -> [D]> : (tensor<3x5xf32>) -> tensor<12xf32>
}

// -----

// M2
shd.program "p" {
  %x = shd.declare input "x" ["A", "B"] : tensor<3x4xf32>
  // expected-error @+1 {{the result must have the indices [B, D], found [D]}}
  %y = shd.merge(%x) ["A"] into "D" <[A, B] -> [D]> : (tensor<3x4xf32>) -> tensor<12xf32>
}

// -----

// S1, in the whole
shd.program "p" {
  %x = shd.declare input "x" ["I"] : tensor<8xf32>
  // expected-error @+1 {{the range 4..9 is empty or outside of 'I', whose extent is 8}}
  %y = shd.slice(%x) "I" [4, 9] into "J" <[I] -> [J]> : (tensor<8xf32>) -> tensor<5xf32>
}

// -----

// S1, extent of the part
shd.program "p" {
  %x = shd.declare input "x" ["I"] : tensor<8xf32>
  // expected-error @+1 {{the range 2..6 has 4 elements, but 'J' has extent 5}}
  %y = shd.slice(%x) "I" [2, 6] into "J" <[I] -> [J]> : (tensor<8xf32>) -> tensor<5xf32>
}

// -----

// S1, bounds
shd.program "p" {
  %x = shd.declare input "x" ["I"] : tensor<8xf32>
  // expected-error @+1 {{a range must have 2 bounds, but has 1}}
  %y = shd.slice(%x) "I" [2] into "J" <[I] -> [J]> : (tensor<8xf32>) -> tensor<5xf32>
}

// -----

// S2
shd.program "p" {
  %x = shd.declare input "x" ["I", "D"] : tensor<8x2xf32>
  // expected-error @+1 {{the result must have the indices [D, J], found [J]}}
  %y = shd.slice(%x) "I" [2, 6] into "J" <[I, D] -> [J]> : (tensor<8x2xf32>) -> tensor<4xf32>
}

// -----

// J1, count
shd.program "p" {
  %x = shd.declare input "x" ["I"] : tensor<8xf32>
  // expected-error @+1 {{has 1 parts for 2 operands}}
  %y = shd.concat(%x, %x) ["I"] into "J" <[I], [I] -> [J]> : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
}

// -----

// J1, extents
shd.program "p" {
  %x = shd.declare input "x" ["I"] : tensor<8xf32>
  // expected-error @+1 {{the extents of [I, I] add up to 16, but 'J' has extent 15}}
  %y = shd.concat(%x, %x) ["I", "I"] into "J" <[I], [I] -> [J]> : (tensor<8xf32>, tensor<8xf32>) -> tensor<15xf32>
}

// -----

// J2, part
shd.program "p" {
  %x = shd.declare input "x" ["I"] : tensor<8xf32>
  // expected-error @+1 {{index 'K' is not one of operand 1's}}
  %y = shd.concat(%x, %x) ["I", "K"] into "J" <[I], [I] -> [J]> : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
}

// -----

// J2, other indices
shd.program "p" {
  %x = shd.declare input "x" ["I", "D"] : tensor<8x2xf32>
  // expected-error @+1 {{operand 0 must have the indices [I], found [I, D]}}
  %y = shd.concat(%x, %x) ["I", "I"] into "J" <[I, D], [I, D] -> [J]> : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<16xf32>
}

// -----

// V1
shd.program "p" {
  // expected-error @+1 {{must have one dimension, but has 2}}
  %y = shd.iota <-> [I, J]> : tensor<8x2xi32>
}

// -----

// V1, integers
shd.program "p" {
  // expected-error @+1 {{elements must be integers, but are f32}}
  %y = shd.iota <-> [I]> : tensor<8xf32>
}

// -----

// H1
shd.program "p" {
  %x = shd.declare input "x" ["I", "J"] : tensor<8x2xf32>
  // expected-error @+1 {{the result must have the indices [I, J] of operand 0, found [J, I]}}
  %y = shd.reshard(%x) <[I, J] -> [J, I]> : (tensor<8x2xf32>) -> tensor<2x8xf32>
}

// -----

// Linear sets have a bit per operand.
shd.program "p" {
  %x = shd.declare input "x" ["I"] : tensor<1xf32>
  // expected-error @+1 {{an operation reads at most 32 tensors, but this one reads 33}}
  %y = shd.concat(%x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x) ["I", "I", "I", "I", "I", "I", "I", "I", "I", "I", "I", "I", "I", "I", "I", "I", "I", "I", "I", "I", "I", "I", "I", "I", "I", "I", "I", "I", "I", "I", "I", "I", "I"] into "J" <[I], [I], [I], [I], [I], [I], [I], [I], [I], [I], [I], [I], [I], [I], [I], [I], [I], [I], [I], [I], [I], [I], [I], [I], [I], [I], [I], [I], [I], [I], [I], [I], [I] -> [J]> : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<33xf32>
}

// -----

// An operation that has no sharding rule, since it does not verify.
shd.program "p" mesh <[X = 2]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x8xf32>
  // expected-error @+1 {{operand 0 has 2 dimensions, but 1 indices}}
  %y = shd.elementwise exp(%x) <[B] -> [B, D]> {shd.dealt = {B = array<i64: 0, 2>}} : (tensor<8x8xf32>) -> tensor<8x8xf32>
}

// -----

// A pin of a program without a mesh.
shd.program "p" {
  // expected-error @+1 {{'shd.result_pin' names axis 'X', which the mesh lacks}}
  %x = shd.declare input "x" ["B"] {shd.result_pin = #shd.sharding<[{X}]>} : tensor<64xbf16>
}

// -----

// O2
shd.program "p" {
  %g = shd.declare input "g" ["D"] : tensor<8xf32>
  %s = shd.declare input "s" [] : tensor<f32>
  // expected-error @+1 {{operand 4 must have the indices of a scalar}}
  %0:3 = shd.adamw(%g, %g, %g, %g, %g, %s) <[D], [D], [D], [D], [D], [] -> [D], [D], [D]> lr 0.001 beta 0.9 0.999 eps 1.0e-08 decay 0.0 : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
}

// -----

// O3
shd.program "p" {
  %g = shd.declare input "g" ["D"] : tensor<8xf32>
  %w = shd.declare input "w" ["F"] : tensor<8xf32>
  // expected-error @+1 {{operand 1 must have the indices of operand 0}}
  %0 = shd.sgd(%g, %w) <[D], [F] -> [D]> lr 0.001 beta 0.9 decay 0.0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
}

// -----

// O3
shd.program "p" {
  %g = shd.declare input "g" ["D"] : tensor<8xf32>
  // expected-error @+1 {{operand 2 must have the indices of a scalar}}
  %0 = shd.sgd(%g, %g) scale(%g) <[D], [D], [D] -> [D]> lr 0.001 beta 0.9 decay 0.0 : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
}

// -----

// O4
shd.program "p" {
  %g = shd.declare input "g" ["D"] : tensor<8xf32>
  // expected-error @+1 {{the number of results is 1, but must be 2 or 3}}
  %0 = shd.sgd(%g, %g) momentum(%g) <[D], [D], [D] -> [D]> lr 0.001 beta 0.9 decay 0.0 : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
}
