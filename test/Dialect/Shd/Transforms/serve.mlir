// RUN: shardc-opt %s -split-input-file -verify-diagnostics -shd-serve | FileCheck %s --enable-var-scope

// Prefill: positions are 0, 1, ..., so that the cache is what is written to it.
// CHECK-LABEL: shd.program "prefill"
// CHECK-NOT: declare input "pos"
// CHECK: %[[Q:.*]] = shd.rope(%{{.*}}) over "H" positions "T" <[B, T, H] -> [B, T, H]>
// CHECK: %[[KC:.*]] = shd.reshard(%[[Q]]) <[B, T, H] -> [B, T, H]> {shd.name = "kc"}
// CHECK: shd.attention(%[[Q]], %[[KC]], %[[KC]]) over "H", "S" query "T" <[B, T, H], [B, S, H], [B, S, H] -> [B, T, H]> causal
// CHECK: shd.update %{{.*}} = %[[KC]]
shd.program "prefill" mesh <[]> attributes {shd.serving = {batch = "B", sequence = "T", context = "S", position = "pos", prompt = 32 : i64}, shd.serving_phase = "prefill"} {
  %pos = shd.declare input "pos" ["B", "T"] : tensor<1x32xi32>
  %x = shd.declare input "x" ["B", "T", "H"] : tensor<1x32x16xbf16>
  %kc = shd.declare state "kc" ["B", "S", "H"] : tensor<1x32x16xbf16>
  %q = shd.rope(%x, %pos) over "H" <[B, T, H], [B, T] -> [B, T, H]> : (tensor<1x32x16xbf16>, tensor<1x32xi32>) -> tensor<1x32x16xbf16>
  %kc2 = shd.scatter(%kc, %q, %pos) <[B, S, H], [B, T, H], [B, T] -> [B, S, H]> at [1] {shd.name = "kc"} : (tensor<1x32x16xbf16>, tensor<1x32x16xbf16>, tensor<1x32xi32>) -> tensor<1x32x16xbf16>
  %o = shd.attention(%q, %kc2, %kc2 at %pos) over "H", "S" <[B, T, H], [B, S, H], [B, S, H], [B, T] -> [B, T, H]> causal : tensor<1x32x16xbf16>, tensor<1x32x16xbf16>, tensor<1x32x16xbf16>, tensor<1x32xi32> -> tensor<1x32x16xbf16>
  shd.update %kc = %kc2 : tensor<1x32x16xbf16>, tensor<1x32x16xbf16>
  shd.output "o" %o ["B", "T", "H"] : tensor<1x32x16xbf16>
}

// -----

// Whatever else reads positions counts them.
// CHECK-LABEL: shd.program "table"
// CHECK: %[[I:.*]] = shd.iota <-> [T]> {shd.temporary} : tensor<32xi32>
// CHECK: %[[P:.*]] = shd.elementwise copy(%[[I]]) <[T] -> [B, T]>
// CHECK: shd.gather(%{{.*}}, %[[P]])
shd.program "table" mesh <[]> attributes {shd.serving = {batch = "B", sequence = "T", context = "S", position = "pos", prompt = 32 : i64}, shd.serving_phase = "prefill"} {
  %pos = shd.declare input "pos" ["B", "T"] : tensor<1x32xi32>
  %e = shd.declare weight "E" ["P", "H"] : tensor<64x16xbf16>
  %x = shd.gather(%e, %pos) <[P, H], [B, T] -> [B, T, H]> at [0] : (tensor<64x16xbf16>, tensor<1x32xi32>) -> tensor<1x32x16xbf16>
  shd.output "x" %x ["B", "T", "H"] : tensor<1x32x16xbf16>
}

// -----

// Decode: on average over the 16 generated tokens a sequence has 40 + 17 / 2 of
// 64 positions, at most 44 of them in the window: 41, 42, 43 and 13 times 44,
// 698 / 16 / 64. The cast of the cache reads as much.
// CHECK-LABEL: shd.program "decode"
// CHECK: shd.elementwise cast({{.*}}) <[B, S, H] -> [B, S, H]> {shd.filled_keys = 0.7578125 : f64}
// CHECK: shd.attention({{.*}} {shd.filled_keys = 0.7578125 : f64}
// CHECK: shd.attention({{.*}} {shd.filled_keys = 0.681640625 : f64}
// CHECK: shd.attention({{.*}} causal :
shd.program "decode" mesh <[]> attributes {shd.serving = {batch = "B", sequence = "T", context = "S", position = "pos", prompt = 40 : i64, generate = 16 : i64, capacity = 64 : i64}, shd.serving_phase = "decode"} {
  %pos = shd.declare input "pos" ["B", "T"] : tensor<8x1xi32>
  %q = shd.declare input "q" ["B", "T", "H"] : tensor<8x1x16xbf16>
  %kc = shd.declare state "kc" ["B", "S", "H"] : tensor<8x64x16xi8>
  %m = shd.declare input "m" ["B", "S", "H"] : tensor<8x1x16xbf16>
  %k = shd.elementwise cast(%kc) <[B, S, H] -> [B, S, H]> : (tensor<8x64x16xi8>) -> tensor<8x64x16xbf16>
  %o = shd.attention(%q, %k, %k at %pos) over "H", "S" <[B, T, H], [B, S, H], [B, S, H], [B, T] -> [B, T, H]> causal : tensor<8x1x16xbf16>, tensor<8x64x16xbf16>, tensor<8x64x16xbf16>, tensor<8x1xi32> -> tensor<8x1x16xbf16>
  %w = shd.declare state "wc" ["B", "S", "H"] : tensor<8x64x16xbf16>
  %p = shd.attention(%q, %w, %w at %pos) over "H", "S" <[B, T, H], [B, S, H], [B, S, H], [B, T] -> [B, T, H]> causal window 44 : tensor<8x1x16xbf16>, tensor<8x64x16xbf16>, tensor<8x64x16xbf16>, tensor<8x1xi32> -> tensor<8x1x16xbf16>
  // Without positions of its own it is no attention over the cache.
  %r = shd.attention(%q, %m, %m) over "H", "S" query "T" <[B, T, H], [B, S, H], [B, S, H] -> [B, T, H]> causal : tensor<8x1x16xbf16>, tensor<8x1x16xbf16>, tensor<8x1x16xbf16> -> tensor<8x1x16xbf16>
  shd.output "o" %o ["B", "T", "H"] : tensor<8x1x16xbf16>
  shd.output "p" %p ["B", "T", "H"] : tensor<8x1x16xbf16>
  shd.output "r" %r ["B", "T", "H"] : tensor<8x1x16xbf16>
}

// -----

// expected-error @+1 {{'shd.serving_phase' needs 'shd.serving', which says what is served}}
shd.program "nothing" mesh <[]> attributes {shd.serving_phase = "decode"} {
}

// -----

// expected-error @+1 {{'shd.serving_phase' must be prefill or decode}}
shd.program "wrong" mesh <[]> attributes {shd.serving_phase = "train"} {
}
