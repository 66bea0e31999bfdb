// Both passes of attention with queries and keys on axes, and a sum into rows.
shd.program "attention" mesh <[X = 2, Y = 4]> hardware <"h100", [8]> {
  %q = shd.declare input "q" ["B", "T", "K", "G", "H"] {shd.result_pin = #shd.sharding<[{}, {X}, {}, {}, {}]>} : tensor<4x16x4x2x8xf32>
  %k = shd.declare input "k" ["B", "S", "K", "H"] {shd.result_pin = #shd.sharding<[{}, {Y}, {}, {}]>} : tensor<4x16x4x8xf32>
  %v = shd.declare input "v" ["B", "S", "K", "H"] {shd.result_pin = #shd.sharding<[{}, {Y}, {}, {}]>} : tensor<4x16x4x8xf32>
  %g = shd.declare input "g" ["B", "T", "K", "G", "H"] {shd.result_pin = #shd.sharding<[{}, {X}, {}, {}, {}]>} : tensor<4x16x4x2x8xf32>
  %tokens = shd.declare input "tokens" ["B", "T"] : tensor<4x16xi32>
  %o, %l = shd.attention(%q, %k, %v) over "H", "S" query "T" <[B, T, K, G, H], [B, S, K, H], [B, S, K, H] -> [B, T, K, G, H], [B, T, K, G]> causal window 5 softcap 3.0 {shd.operand_pins = [#shd.sharding<[{}, {X}, {}, {}, {}]>, #shd.sharding<[{}, {Y}, {}, {}]>, #shd.sharding<[{}, {Y}, {}, {}]>]} : tensor<4x16x4x2x8xf32>, tensor<4x16x4x8xf32>, tensor<4x16x4x8xf32> -> tensor<4x16x4x2x8xf32>, tensor<4x16x4x2xf32>
  %dq, %dk, %dv = shd.attention_grad(%q, %k, %v, %o, %g, %l) over "H", "S" query "T" <[B, T, K, G, H], [B, S, K, H], [B, S, K, H], [B, T, K, G, H], [B, T, K, G, H], [B, T, K, G] -> [B, T, K, G, H], [B, S, K, H], [B, S, K, H]> causal window 5 softcap 3.0 {shd.operand_pins = [#shd.sharding<[{}, {X}, {}, {}, {}]>, #shd.sharding<[{}, {Y}, {}, {}]>, #shd.sharding<[{}, {Y}, {}, {}]>, #shd.sharding<[{}, {X}, {}, {}, {}]>, #shd.sharding<[{}, {X}, {}, {}, {}]>, #shd.sharding<[{}, {X}, {}, {}]>]} : (tensor<4x16x4x2x8xf32>, tensor<4x16x4x8xf32>, tensor<4x16x4x8xf32>, tensor<4x16x4x2x8xf32>, tensor<4x16x4x2x8xf32>, tensor<4x16x4x2xf32>) -> (tensor<4x16x4x2x8xf32>, tensor<4x16x4x8xf32>, tensor<4x16x4x8xf32>)
  %r = shd.rope(%dq) over "H" positions "T" <[B, T, K, G, H] -> [B, T, K, G, H]> inverse : (tensor<4x16x4x2x8xf32>) -> tensor<4x16x4x2x8xf32>
  %rows = shd.scatter_sum(%r, %tokens) <[B, T, K, G, H], [B, T] -> [V, K, G, H]> at [0] : (tensor<4x16x4x2x8xf32>, tensor<4x16xi32>) -> tensor<32x4x2x8xf32>
  shd.output "rows" %rows ["V", "K", "G", "H"] : tensor<32x4x2x8xf32>
  shd.output "dk" %dk ["B", "S", "K", "H"] : tensor<4x16x4x8xf32>
  shd.output "dv" %dv ["B", "S", "K", "H"] : tensor<4x16x4x8xf32>
  shd.output "l" %l ["B", "T", "K", "G"] : tensor<4x16x4x2xf32>
}
