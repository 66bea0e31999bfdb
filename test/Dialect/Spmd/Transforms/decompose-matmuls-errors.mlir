// RUN: shardc-opt %s --pass-pipeline='builtin.module(spmd.program(spmd-decompose-matmuls))' --split-input-file --verify-diagnostics

// Two dimensions are gathered at once.
spmd.program "p" mesh <[X = 2, Y = 2]> {
  %x = spmd.parameter input "x" ["B", "D"] of tensor<8x16xf32, #shd.sharding<[{X}, {Y}]>> : tensor<4x8xf32>
  %w = spmd.parameter weight "w" ["D", "F"] of tensor<16x32xf32> : tensor<16x32xf32>
  // expected-note @+1 {{the collective}}
  %g = spmd.all_gather %x over ["X", "Y"] of tensor<8x16xf32, #shd.sharding<[{X}, {Y}]>> to tensor<8x16xf32> {shd.ring = 0 : i64} : tensor<4x8xf32> -> tensor<8x16xf32>
  // expected-error @+1 {{the einsum and its collective cannot run in chunks around a ring}}
  %y = shd.einsum(%g, %w) <[B, D], [D, F] -> [B, F]> {shd.ring = 0 : i64} : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
}

// -----

// The last chunk is padded.
spmd.program "p" mesh <[X = 4]> {
  %x = spmd.parameter input "x" ["B", "D"] of tensor<7x16xf32, #shd.sharding<[{X}, {}]>> : tensor<2x16xf32>
  %w = spmd.parameter weight "w" ["D", "F"] of tensor<16x32xf32> : tensor<16x32xf32>
  // expected-note @+1 {{the collective}}
  %g = spmd.all_gather %x over ["X"] of tensor<7x16xf32, #shd.sharding<[{X}, {}]>> to tensor<7x16xf32> {shd.ring = 0 : i64} : tensor<2x16xf32> -> tensor<7x16xf32>
  // expected-error @+1 {{cannot run in chunks}}
  %y = shd.einsum(%g, %w) <[B, D], [D, F] -> [B, F]> {shd.ring = 0 : i64} : (tensor<7x16xf32>, tensor<16x32xf32>) -> tensor<7x32xf32>
}

// -----

// Another operation reads the gathered tensor first.
spmd.program "p" mesh <[X = 4]> {
  %x = spmd.parameter input "x" ["B", "D"] of tensor<8x16xf32, #shd.sharding<[{X}, {}]>> : tensor<2x16xf32>
  %w = spmd.parameter weight "w" ["D", "F"] of tensor<16x32xf32> : tensor<16x32xf32>
  // expected-note @+1 {{the collective}}
  %g = spmd.all_gather %x over ["X"] of tensor<8x16xf32, #shd.sharding<[{X}, {}]>> to tensor<8x16xf32> {shd.ring = 0 : i64} : tensor<2x16xf32> -> tensor<8x16xf32>
  shd.repeat "L" = 2() : () -> () {
  ^bb0(%i: tensor<i32>):
    %e = shd.elementwise exp(%g) <[B, D] -> [B, D]> : (tensor<8x16xf32>) -> tensor<8x16xf32>
    shd.yield
  }
  // expected-error @+1 {{cannot run in chunks}}
  %y = shd.einsum(%g, %w) <[B, D], [D, F] -> [B, F]> {shd.ring = 0 : i64} : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
}

// -----

// Both operands are the gathered tensor.
spmd.program "p" mesh <[X = 4]> {
  %x = spmd.parameter input "x" ["B", "D"] of tensor<8x16xf32, #shd.sharding<[{X}, {}]>> : tensor<2x16xf32>
  // expected-note @+1 {{the collective}}
  %g = spmd.all_gather %x over ["X"] of tensor<8x16xf32, #shd.sharding<[{X}, {}]>> to tensor<8x16xf32> {shd.ring = 0 : i64} : tensor<2x16xf32> -> tensor<8x16xf32>
  // expected-error @+1 {{cannot run in chunks}}
  %y = shd.einsum(%g, %g) <[B, D], [C, D] -> [B, C]> {shd.ring = 0 : i64} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x8xf32>
}

// -----

// The einsum stands in another body.
spmd.program "p" mesh <[X = 4]> {
  %x = spmd.parameter input "x" ["B", "D"] of tensor<8x16xf32, #shd.sharding<[{X}, {}]>> : tensor<2x16xf32>
  %w = spmd.parameter weight "w" ["D", "F"] of tensor<16x32xf32> : tensor<16x32xf32>
  // expected-note @+1 {{the collective}}
  %g = spmd.all_gather %x over ["X"] of tensor<8x16xf32, #shd.sharding<[{X}, {}]>> to tensor<8x16xf32> {shd.ring = 0 : i64} : tensor<2x16xf32> -> tensor<8x16xf32>
  shd.repeat "L" = 2() : () -> () {
  ^bb0(%i: tensor<i32>):
    // expected-error @+1 {{cannot run in chunks}}
    %y = shd.einsum(%g, %w) <[B, D], [D, F] -> [B, F]> {shd.ring = 0 : i64} : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
    shd.yield
  }
}

// -----

// The sum is read before it is scattered.
spmd.program "p" mesh <[X = 4]> {
  %x = spmd.parameter input "x" ["B", "D"] of tensor<8x16xf32, #shd.sharding<[{}, {X}]>> : tensor<8x4xf32>
  %w = spmd.parameter weight "w" ["D", "F"] of tensor<16x32xf32, #shd.sharding<[{X}, {}]>> : tensor<4x32xf32>
  // expected-error @+1 {{cannot run in chunks}}
  %p = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> {shd.ring = 0 : i64} : (tensor<8x4xf32>, tensor<4x32xf32>) -> tensor<8x32xf32>
  // expected-note @+1 {{the collective}}
  %y = spmd.reduce_scatter %p over ["X"] of tensor<8x32xf32, #shd.sharding<[{}, {}], partial = {X}>> to tensor<8x32xf32, #shd.sharding<[{X}, {}]>> {shd.ring = 0 : i64} : tensor<8x32xf32> -> tensor<2x32xf32>
  %z = spmd.all_reduce %p over ["X"] of tensor<8x32xf32, #shd.sharding<[{}, {}], partial = {X}>> to tensor<8x32xf32> : tensor<8x32xf32> -> tensor<8x32xf32>
}

// -----

// Every chunk would need the whole product.
spmd.program "p" mesh <[X = 4]> {
  %x = spmd.parameter input "x" ["B", "D"] of tensor<8x16xf32, #shd.sharding<[{}, {X}]>> : tensor<8x4xf32>
  %w = spmd.parameter weight "w" ["D"] of tensor<16xf32, #shd.sharding<[{X}]>> : tensor<4xf32>
  %v = spmd.parameter weight "v" ["F"] of tensor<32xf32> : tensor<32xf32>
  // expected-error @+1 {{cannot run in chunks}}
  %p = shd.einsum(%x, %w) <[B, D], [D] -> [B]> {shd.group = #shd.group<0>, shd.ring = 0 : i64} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %q = shd.elementwise mul(%p, %v) <[B], [F] -> [B, F]> {shd.group = #shd.group<0>} : (tensor<8xf32>, tensor<32xf32>) -> tensor<8x32xf32>
  // expected-note @+1 {{the collective}}
  %y = spmd.reduce_scatter %q over ["X"] of tensor<8x32xf32, #shd.sharding<[{}, {}], partial = {X}>> to tensor<8x32xf32, #shd.sharding<[{}, {X}]>> {shd.ring = 0 : i64} : tensor<8x32xf32> -> tensor<8x8xf32>
}

// -----

// Another group reads the product.
spmd.program "p" mesh <[X = 4]> {
  %x = spmd.parameter input "x" ["B", "D"] of tensor<8x16xf32, #shd.sharding<[{}, {X}]>> : tensor<8x4xf32>
  %w = spmd.parameter weight "w" ["D", "F"] of tensor<16x32xf32, #shd.sharding<[{X}, {}]>> : tensor<4x32xf32>
  // expected-error @+1 {{cannot run in chunks}}
  %p = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> {shd.group = #shd.group<0>, shd.ring = 0 : i64} : (tensor<8x4xf32>, tensor<4x32xf32>) -> tensor<8x32xf32>
  %n = shd.elementwise neg(%p) <[B, F] -> [B, F]> {shd.group = #shd.group<1>} : (tensor<8x32xf32>) -> tensor<8x32xf32>
  // expected-note @+1 {{the collective}}
  %y = spmd.reduce_scatter %n over ["X"] of tensor<8x32xf32, #shd.sharding<[{}, {}], partial = {X}>> to tensor<8x32xf32, #shd.sharding<[{X}, {}]>> {shd.ring = 0 : i64} : tensor<8x32xf32> -> tensor<2x32xf32>
}

// -----

spmd.program "p" mesh <[X = 4]> {
  %x = spmd.parameter input "x" ["B", "D"] of tensor<8x16xf32> : tensor<8x16xf32>
  %w = spmd.parameter weight "w" ["D", "F"] of tensor<16x32xf32> : tensor<16x32xf32>
  // expected-error @+1 {{'shd.ring' must mark one einsum and one collective, but marks 1 and 0}}
  %p = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> {shd.ring = 0 : i64} : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
}

// -----

spmd.program "p" mesh <[X = 4]> {
  %x = spmd.parameter input "x" ["B", "D"] of tensor<8x16xf32, #shd.sharding<[{X}, {}]>> : tensor<2x16xf32>
  // expected-error @+1 {{'shd.ring' must mark one einsum and one collective, but marks 0 and 2}}
  %g = spmd.all_gather %x over ["X"] of tensor<8x16xf32, #shd.sharding<[{X}, {}]>> to tensor<8x16xf32> {shd.ring = 0 : i64} : tensor<2x16xf32> -> tensor<8x16xf32>
  %h = spmd.all_gather %x over ["X"] of tensor<8x16xf32, #shd.sharding<[{X}, {}]>> to tensor<8x16xf32> {shd.ring = 0 : i64} : tensor<2x16xf32> -> tensor<8x16xf32>
}

// -----

// The last part of the keys is padded.
spmd.program "p" mesh <[X = 4]> {
  %q = spmd.parameter input "q" ["T", "H"] of tensor<8x4xf32, #shd.sharding<[{X}, {}]>> : tensor<2x4xf32>
  %k = spmd.parameter input "k" ["S", "H"] of tensor<7x4xf32, #shd.sharding<[{X}, {}]>> : tensor<2x4xf32>
  // expected-note @+1 {{the collective}}
  %g = spmd.all_gather %k over ["X"] of tensor<7x4xf32, #shd.sharding<[{X}, {}]>> to tensor<7x4xf32> {shd.ring = 0 : i64} : tensor<2x4xf32> -> tensor<7x4xf32>
  // expected-error @+1 {{the attention and its collectives cannot run in chunks around a ring}}
  %o = shd.attention(%q, %g, %g) over "H", "S" <[T, H], [S, H], [S, H] -> [T, H]> {shd.ring = 0 : i64} : tensor<2x4xf32>, tensor<7x4xf32>, tensor<7x4xf32> -> tensor<2x4xf32>
}

// -----

// Heads are gathered, not keys.
spmd.program "p" mesh <[X = 4]> {
  %q = spmd.parameter input "q" ["T", "N", "H"] of tensor<8x4x4xf32, #shd.sharding<[{X}, {}, {}]>> : tensor<2x4x4xf32>
  %k = spmd.parameter input "k" ["S", "N", "H"] of tensor<8x4x4xf32, #shd.sharding<[{}, {X}, {}]>> : tensor<8x1x4xf32>
  // expected-note @+1 {{the collective}}
  %g = spmd.all_gather %k over ["X"] of tensor<8x4x4xf32, #shd.sharding<[{}, {X}, {}]>> to tensor<8x4x4xf32> {shd.ring = 0 : i64} : tensor<8x1x4xf32> -> tensor<8x4x4xf32>
  // expected-error @+1 {{cannot run in chunks}}
  %o = shd.attention(%q, %g, %g) over "H", "S" <[T, N, H], [S, N, H], [S, N, H] -> [T, N, H]> {shd.ring = 0 : i64} : tensor<2x4x4xf32>, tensor<8x4x4xf32>, tensor<8x4x4xf32> -> tensor<2x4x4xf32>
}

// -----

// Another operation reads the gathered keys.
spmd.program "p" mesh <[X = 4]> {
  %q = spmd.parameter input "q" ["T", "H"] of tensor<8x4xf32, #shd.sharding<[{X}, {}]>> : tensor<2x4xf32>
  %k = spmd.parameter input "k" ["S", "H"] of tensor<8x4xf32, #shd.sharding<[{X}, {}]>> : tensor<2x4xf32>
  // expected-note @+1 {{the collective}}
  %g = spmd.all_gather %k over ["X"] of tensor<8x4xf32, #shd.sharding<[{X}, {}]>> to tensor<8x4xf32> {shd.ring = 0 : i64} : tensor<2x4xf32> -> tensor<8x4xf32>
  // expected-error @+1 {{cannot run in chunks}}
  %o = shd.attention(%q, %g, %g) over "H", "S" <[T, H], [S, H], [S, H] -> [T, H]> {shd.ring = 0 : i64} : tensor<2x4xf32>, tensor<8x4xf32>, tensor<8x4xf32> -> tensor<2x4xf32>
  spmd.output "g" %g ["S", "H"] of tensor<8x4xf32> : tensor<8x4xf32>
}

// -----

// A mark of attention without what travels.
spmd.program "p" mesh <[X = 4]> {
  %q = spmd.parameter input "q" ["T", "H"] of tensor<8x4xf32, #shd.sharding<[{X}, {}]>> : tensor<2x4xf32>
  %k = spmd.parameter input "k" ["S", "H"] of tensor<8x4xf32> : tensor<8x4xf32>
  // expected-error @+1 {{'shd.ring' must mark one attention and the collectives of its keys and values}}
  %o = shd.attention(%q, %k, %k) over "H", "S" <[T, H], [S, H], [S, H] -> [T, H]> {shd.ring = 0 : i64} : tensor<2x4xf32>, tensor<8x4xf32>, tensor<8x4xf32> -> tensor<2x4xf32>
}

// -----

// The gradient of the values is not scattered: it has no way home.
spmd.program "p" mesh <[X = 4]> {
  %q = spmd.parameter input "q" ["T", "H"] of tensor<8x4xf32, #shd.sharding<[{X}, {}]>> : tensor<2x4xf32>
  %k = spmd.parameter input "k" ["S", "H"] of tensor<8x4xf32, #shd.sharding<[{X}, {}]>> : tensor<2x4xf32>
  %l = spmd.parameter input "l" ["T"] of tensor<8xf32, #shd.sharding<[{X}]>> : tensor<2xf32>
  // expected-note @+1 {{the collective}}
  %g = spmd.all_gather %k over ["X"] of tensor<8x4xf32, #shd.sharding<[{X}, {}]>> to tensor<8x4xf32> {shd.ring = 0 : i64} : tensor<2x4xf32> -> tensor<8x4xf32>
  // expected-error @+1 {{cannot run in chunks}}
  %dq, %dk, %dv = shd.attention_grad(%q, %g, %g, %q, %q, %l) over "H", "S" <[T, H], [S, H], [S, H], [T, H], [T, H], [T] -> [T, H], [S, H], [S, H]> {shd.ring = 0 : i64} : (tensor<2x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2xf32>) -> (tensor<2x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
  %s = spmd.reduce_scatter %dk over ["X"] of tensor<8x4xf32, #shd.sharding<[{}, {}], partial = {X}>> to tensor<8x4xf32, #shd.sharding<[{X}, {}]>> {shd.ring = 0 : i64} : tensor<8x4xf32> -> tensor<2x4xf32>
  spmd.output "s" %s ["S", "H"] of tensor<8x4xf32, #shd.sharding<[{X}, {}]>> : tensor<2x4xf32>
}
