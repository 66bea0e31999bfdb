// RUN: shardc-opt %s --pass-pipeline='builtin.module(shd.program(shd-shrink))' | FileCheck %s
// RUN: shardc-opt %s --pass-pipeline='builtin.module(shd.program(shd-shrink{max-axis=3}))' | FileCheck %s --check-prefix=THREE
// RUN: not shardc-opt %s --pass-pipeline='builtin.module(shd.program(shd-shrink{max-axis=1}))' 2>&1 | FileCheck %s --check-prefix=ONE

// ONE: error: mesh axes must have at least 2 devices, but max-axis is 1

// 4096 is not split: 2. 8192 is split over X, and a device has 2 elements: 4.
// 16384 is split over Y, and larger: 6. With axes of 3: 4096 is 2, 8192 is 6
// (3 devices, 2 elements), 16384 is 9. Prices are gone.
// CHECK-LABEL: shd.program "feed_forward" mesh <[X = 2 on (x), Y = 2]> hardware <"tpu_v5e", [4, 4]> {
// THREE-LABEL: shd.program "feed_forward" mesh <[X = 3 on (x), Y = 3]>
shd.program "feed_forward" mesh <[X = 4 on (x), Y = 4]> hardware <"tpu_v5e", [4, 4]> attributes {shd.plan = {status = "optimal"}} {
  // CHECK: shd.declare input "x" ["B", "D"] : tensor<4x2xbf16, #shd.sharding<[{X}, {}]>>
  // THREE: shd.declare input "x" ["B", "D"] : tensor<6x2xbf16,
  %x = shd.declare input "x" ["B", "D"] : tensor<8192x4096xbf16, #shd.sharding<[{X}, {}]>>
  %w = shd.declare weight "w" ["D", "F"] : tensor<4096x16384xbf16, #shd.sharding<[{}, {Y}]>>
  // CHECK: shd.einsum{{.*}} {shd.group = #shd.group<0>} : (tensor<4x2xbf16, {{.*}}>, tensor<2x6xbf16, {{.*}}>) -> tensor<4x6xbf16,
  // THREE: shd.einsum{{.*}} -> tensor<6x9xbf16,
  %h = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]> {shd.group = #shd.group<0>, shd.group_cost = #shd.group_cost<flops = 1.0, vector_flops = 0.0, hbm_bytes = 1.0, matrix_s = 1.0, vector_s = 0.0, hbm_s = 1.0>} : (tensor<8192x4096xbf16, #shd.sharding<[{X}, {}]>>, tensor<4096x16384xbf16, #shd.sharding<[{}, {Y}]>>) -> tensor<8192x16384xbf16, #shd.sharding<[{X}, {Y}]>>
  // CHECK: shd.all_gather %{{.*}} over ["Y"] : tensor<4x6xbf16, {{.*}}> -> tensor<4x6xbf16,
  %g = shd.all_gather %h over ["Y"] cost <bytes = 1.0, wire_bytes = 1.0, bandwidth_s = 1.0, latency_s = 0.0, networks = [y]> : tensor<8192x16384xbf16, #shd.sharding<[{X}, {Y}]>> -> tensor<8192x16384xbf16, #shd.sharding<[{X}, {}]>>
  shd.output "g" %g ["B", "F"] : tensor<8192x16384xbf16, #shd.sharding<[{X}, {}]>>
}

// 8 is 2; 64 is 4, the next even number, since rope pairs elements.
// CHECK-LABEL: shd.program "rope" {
shd.program "rope" {
  %x = shd.declare input "x" ["T", "H"] : tensor<8x64xf32>
  // CHECK: shd.rope({{.*}}) -> tensor<2x4xf32>
  %y = shd.rope(%x) over "H" positions "T" <[T, H] -> [T, H]> : (tensor<8x64xf32>) -> tensor<8x64xf32>
  shd.output "y" %y ["T", "H"] : tensor<8x64xf32>
}

// G may be split after K in one dimension only while K is down to one element:
// K is 2, for the 2 devices of X. G has 2 of 8 elements on a device of Y: 4.
// Their product is 8.
// CHECK-LABEL: shd.program "merge" mesh <[X = 2, Y = 2]> {
shd.program "merge" mesh <[X = 4, Y = 4]> {
  %x = shd.declare input "x" ["K", "G"] : tensor<4x8xf32, #shd.sharding<[{X}, {Y}]>>
  // CHECK: shd.merge({{.*}} : (tensor<2x4xf32, {{.*}}>) -> tensor<8xf32, #shd.sharding<[{X, Y}]>>
  %y = shd.merge(%x) ["K", "G"] into "D" <[K, G] -> [D]> : (tensor<4x8xf32, #shd.sharding<[{X}, {Y}]>>) -> tensor<32xf32, #shd.sharding<[{X, Y}]>>
  shd.output "y" %y ["D"] : tensor<32xf32, #shd.sharding<[{X, Y}]>>
}

// As before K must be 2 if X is, but it is split over Y and Z too, 4 devices:
// X stays as it is. K is 4, G over W 6 and their product 24.
// CHECK-LABEL: shd.program "kept_axis" mesh <[X = 4, Y = 2, Z = 2, W = 2]> {
shd.program "kept_axis" mesh <[X = 4, Y = 2, Z = 2, W = 3]> {
  %x = shd.declare input "x" ["K", "G"] : tensor<4x9xf32, #shd.sharding<[{X}, {W}]>>
  // CHECK: shd.merge({{.*}} : (tensor<4x6xf32, {{.*}}>) -> tensor<24xf32,
  %y = shd.merge(%x) ["K", "G"] into "D" <[K, G] -> [D]> : (tensor<4x9xf32, #shd.sharding<[{X}, {W}]>>) -> tensor<36xf32, #shd.sharding<[{X, W}]>>
  %z = shd.declare input "z" ["K"] : tensor<4xf32, #shd.sharding<[{Y, Z}]>>
  shd.output "y" %y ["D"] : tensor<36xf32, #shd.sharding<[{X, W}]>>
  shd.output "z" %z ["K"] : tensor<4xf32, #shd.sharding<[{Y, Z}]>>
}

// 6 is 2, 8 is 3, 10 is 4, and 6 + 10 = 16 is 2 + 4.
// CHECK-LABEL: shd.program "concat" {
shd.program "concat" {
  %x = shd.declare input "x" ["I", "D"] : tensor<6x8xf32>
  %y = shd.declare input "y" ["J", "D"] : tensor<10x8xf32>
  // CHECK: shd.concat({{.*}} : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<6x3xf32>
  %z = shd.concat(%x, %y) ["I", "J"] into "K" <[I, D], [J, D] -> [K, D]> : (tensor<6x8xf32>, tensor<10x8xf32>) -> tensor<16x8xf32>
  shd.output "z" %z ["K", "D"] : tensor<16x8xf32>
}

// 4 is 2; 12 is 4, for the range that leaves elements at both ends.
// CHECK-LABEL: shd.program "slice" {
shd.program "slice" {
  %x = shd.declare input "x" ["I"] : tensor<12xf32>
  // CHECK: shd.slice(%x) "I" [0, 2] into "J"
  %a = shd.slice(%x) "I" [0, 4] into "J" <[I] -> [J]> : (tensor<12xf32>) -> tensor<4xf32>
  // CHECK: shd.slice(%x) "I" [1, 3] into "J"
  %b = shd.slice(%x) "I" [5, 9] into "J" <[I] -> [J]> : (tensor<12xf32>) -> tensor<4xf32>
  // CHECK: shd.slice(%x) "I" [2, 4] into "J"
  %c = shd.slice(%x) "I" [8, 12] into "J" <[I] -> [J]> : (tensor<12xf32>) -> tensor<4xf32>
  // CHECK: shd.slice(%x) "I" [0, 4] into "M"
  %d = shd.slice(%x) "I" [0, 12] into "M" <[I] -> [M]> : (tensor<12xf32>) -> tensor<12xf32>
  shd.output "a" %a ["J"] : tensor<4xf32>
  shd.output "b" %b ["J"] : tensor<4xf32>
  shd.output "c" %c ["J"] : tensor<4xf32>
  shd.output "d" %d ["M"] : tensor<12xf32>
}

// 16 is 2; 64 is split over X, 4. A window of some keys is one of 2, a window
// of all keys or more one of all.
// CHECK-LABEL: shd.program "window" mesh <[X = 2]> {
shd.program "window" mesh <[X = 4]> {
  %q = shd.declare input "q" ["T", "H"] : tensor<64x16xf32, #shd.sharding<[{X}, {}]>>
  %k = shd.declare input "k" ["S", "H"] : tensor<64x16xf32, #shd.sharding<[{}, {}]>>
  // CHECK: shd.attention{{.*}} window 2 : tensor<4x2xf32,
  %a = shd.attention(%q, %k, %k) over "H", "S" query "T" <[T, H], [S, H], [S, H] -> [T, H]> causal window 48 : tensor<64x16xf32, #shd.sharding<[{X}, {}]>>, tensor<64x16xf32, #shd.sharding<[{}, {}]>>, tensor<64x16xf32, #shd.sharding<[{}, {}]>> -> tensor<64x16xf32, #shd.sharding<[{X}, {}]>>
  // CHECK: shd.attention{{.*}} window 1 : tensor<4x2xf32,
  %b = shd.attention(%q, %k, %k) over "H", "S" query "T" <[T, H], [S, H], [S, H] -> [T, H]> causal window 1 : tensor<64x16xf32, #shd.sharding<[{X}, {}]>>, tensor<64x16xf32, #shd.sharding<[{}, {}]>>, tensor<64x16xf32, #shd.sharding<[{}, {}]>> -> tensor<64x16xf32, #shd.sharding<[{X}, {}]>>
  // CHECK: shd.attention{{.*}} window 4 : tensor<4x2xf32,
  %c = shd.attention(%q, %k, %k) over "H", "S" query "T" <[T, H], [S, H], [S, H] -> [T, H]> causal window 100 : tensor<64x16xf32, #shd.sharding<[{X}, {}]>>, tensor<64x16xf32, #shd.sharding<[{}, {}]>>, tensor<64x16xf32, #shd.sharding<[{}, {}]>> -> tensor<64x16xf32, #shd.sharding<[{X}, {}]>>
  %l = shd.declare input "l" ["T"] : tensor<64xf32, #shd.sharding<[{X}]>>
  // CHECK: shd.attention_grad{{.*}} window 2 : (tensor<4x2xf32,
  %d:3 = shd.attention_grad(%q, %k, %k, %q, %q, %l) over "H", "S" query "T" <[T, H], [S, H], [S, H], [T, H], [T, H], [T] -> [T, H], [S, H], [S, H]> causal window 48 : (tensor<64x16xf32, #shd.sharding<[{X}, {}]>>, tensor<64x16xf32, #shd.sharding<[{}, {}]>>, tensor<64x16xf32, #shd.sharding<[{}, {}]>>, tensor<64x16xf32, #shd.sharding<[{X}, {}]>>, tensor<64x16xf32, #shd.sharding<[{X}, {}]>>, tensor<64xf32, #shd.sharding<[{X}]>>) -> (tensor<64x16xf32, #shd.sharding<[{X}, {}]>>, tensor<64x16xf32, #shd.sharding<[{}, {}], partial = {X}>>, tensor<64x16xf32, #shd.sharding<[{}, {}], partial = {X}>>)
  shd.output "a" %a ["T", "H"] : tensor<64x16xf32, #shd.sharding<[{X}, {}]>>
  shd.output "b" %b ["T", "H"] : tensor<64x16xf32, #shd.sharding<[{X}, {}]>>
  shd.output "c" %c ["T", "H"] : tensor<64x16xf32, #shd.sharding<[{X}, {}]>>
}

// The stacked weights have one part for each of 2 iterations; 8 differs from
// it: 3. The other count is no extent, although 8 is one, and 1 stays.
// CHECK-LABEL: shd.program "stacked" {
shd.program "stacked" {
  %x = shd.declare input "x" ["D", "U"] : tensor<8x1xf32>
  // CHECK: shd.declare weight "Ws" ["L", "D", "U"] : tensor<2x3x1xf32>
  %ws = shd.declare weight "Ws" ["L", "D", "U"] : tensor<5x8x1xf32>
  // CHECK: shd.repeat "L" = 2(
  %y = shd.repeat "L" = 5 (%x) : (tensor<8x1xf32>) -> tensor<8x1xf32> {
  ^bb0(%i: tensor<i32>, %c: tensor<8x1xf32>):
    %w = shd.gather(%ws, %i) <[L, D, U], [] -> [D, U]> at [0] : (tensor<5x8x1xf32>, tensor<i32>) -> tensor<8x1xf32>
    // CHECK: shd.repeat "M" = 2(
    %d = shd.repeat "M" = 8 (%c) : (tensor<8x1xf32>) -> tensor<8x1xf32> {
    ^bb1(%j: tensor<i32>, %e: tensor<8x1xf32>):
      // CHECK: shd.elementwise mul({{.*}}) -> tensor<3x1xf32>
      %p = shd.elementwise mul(%e, %w) <[D, U], [D, U] -> [D, U]> : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
      shd.yield %p : tensor<8x1xf32>
    }
    shd.yield %d : tensor<8x1xf32>
  }
  shd.output "y" %y ["D", "U"] : tensor<8x1xf32>
}

// Each of 2 iterations adds to a row of its own.
// CHECK-LABEL: shd.program "rows" {
shd.program "rows" {
  %x = shd.declare input "x" ["D"] : tensor<8xf32>
  %zero = shd.constant dense<0.0> : tensor<f32>
  %z = shd.elementwise copy(%zero) <[] -> [L, D]> : (tensor<f32>) -> tensor<5x8xf32>
  // CHECK: shd.repeat "L" = 2(
  %y = shd.repeat "L" = 5 (%z) : (tensor<5x8xf32>) -> tensor<5x8xf32> {
  ^bb0(%i: tensor<i32>, %c: tensor<5x8xf32>):
    // CHECK: shd.scatter_sum({{.*}}) -> tensor<2x3xf32>
    %r = shd.scatter_sum(%x, %i) <[D], [] -> [L, D]> at [0] : (tensor<8xf32>, tensor<i32>) -> tensor<5x8xf32>
    %s = shd.elementwise add(%c, %r) <[L, D], [L, D] -> [L, D]> : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
    shd.yield %s : tensor<5x8xf32>
  }
  shd.output "y" %y ["L", "D"] : tensor<5x8xf32>
}

// Of 3 x 2 experts a token still picks 4, now in 3 blocks of 3 at most. All 7
// tokens may pick one expert, which drops none: 7 slots.
// CHECK-LABEL: shd.program "experts" {
shd.program "experts" {
  %x = shd.declare input "x" ["T", "D"] : tensor<96x16xf32>
  %s = shd.declare input "s" ["T", "E"] : tensor<96x32xf32>
  // CHECK: shd.split({{.*}}) -> tensor<7x3x2xf32>
  %b = shd.split(%s) "E" into ["P", "M"] <[T, E] -> [T, P, M]> : (tensor<96x32xf32>) -> tensor<96x8x4xf32>
  // CHECK: shd.topk({{.*}}) over "E" k 4 {{.*}} -> tensor<7x6xi1>
  %p = shd.topk(%s) over "E" k 4 <[T, E] -> [T, E]> : (tensor<96x32xf32>) -> tensor<96x32xi1>
  // CHECK: shd.dispatch({{.*}}) over "E", "C" k 4 blocks 3 limit 3 dropless {{.*}} -> tensor<6x7x5xf32>
  %y = shd.dispatch(%x, %p) over "E", "C" k 4 blocks 8 limit 3 dropless <[T, D], [T, E] -> [E, C, D]> : (tensor<96x16xf32>, tensor<96x32xi1>) -> tensor<32x12x16xf32>
  shd.output "b" %b ["T", "P", "M"] : tensor<96x8x4xf32>
  shd.output "y" %y ["E", "C", "D"] : tensor<32x12x16xf32>
}

// Where X takes the place of Y and Z, it must be as large as both together: the
// least such mesh has 4, 2 and 2. 24 has 2 elements on 4 devices.
// CHECK-LABEL: shd.program "permute" mesh <[X = 4, Y = 2, Z = 2, W = 2]> {
shd.program "permute" mesh <[X = 6, Y = 3, Z = 2, W = 6]> {
  // CHECK: shd.declare input "x" ["B"] : tensor<8xf32, #shd.sharding<[{X}]>>
  %x = shd.declare input "x" ["B"] : tensor<24xf32, #shd.sharding<[{X}]>>
  // CHECK: shd.collective_permute
  %y = shd.collective_permute %x over ["X", "Y", "Z"] : tensor<24xf32, #shd.sharding<[{X}]>> -> tensor<24xf32, #shd.sharding<[{Y, Z}]>>
  shd.output "y" %y ["B"] : tensor<24xf32, #shd.sharding<[{Y, Z}]>>
}

// What axes do not divide stays undivided: 10 on 4 devices is 3 on 2, and 12
// on 4 devices 4 on 2.
// CHECK-LABEL: shd.program "padded" mesh <[X = 2]> allow_padding {
shd.program "padded" mesh <[X = 4]> allow_padding {
  // CHECK: tensor<3xf32, #shd.sharding<[{X}]>>
  %x = shd.declare input "x" ["B"] : tensor<10xf32, #shd.sharding<[{X}]>>
  // CHECK: tensor<4xf32, #shd.sharding<[{X}]>>
  %y = shd.declare input "y" ["D"] : tensor<12xf32, #shd.sharding<[{X}]>>
  shd.output "x" %x ["B"] : tensor<10xf32, #shd.sharding<[{X}]>>
  shd.output "y" %y ["D"] : tensor<12xf32, #shd.sharding<[{X}]>>
}
