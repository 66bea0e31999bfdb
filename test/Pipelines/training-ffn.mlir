// A training step of a feed-forward block, derived with a pencil: with
// loss = sum(y^2) / (B D), dy = 2 y / (B D), where 2 / (8192 * 4096) = 5.96e-8;
// dWout = h dy, dh = dy Wout where h > 0, dWin = x dh, and W - 0.001 dW in f32. It
// has the FLOPs and the state of the step that a train block makes, and its time
// within 1 %. They are not one program: the train block's dy starts at the loss and
// becomes a prologue of its readers; here y's kernel writes it, and the peak is
// higher.
// RUN: shardc %s --objective=upper --emit-json > %t.hand
// RUN: shardc %S/Inputs/ffn-train.shd --objective=upper --emit-json > %t.made
// RUN: grep -E '"(device|model|weights)":' %t.hand > %t.1
// RUN: grep -E '"(device|model|weights)":' %t.made > %t.2
// RUN: diff %t.1 %t.2
// RUN: FileCheck %s < %t.hand
// RUN: FileCheck %s < %t.made
// The products take 5.498e12 / 8 / 989e12 = 694.8 us; SGD reads and writes 6 B for
// each of an eighth of 2 D F parameters, 100.7 MB in 30.0 us; the rest is for
// collectives and activations.
// CHECK: "upper_s": 0.00101
// Five products of 2 B D F: forward two, backward three; x has no gradient.
// CHECK: "model": 5497558138880
shd.program "ffn" mesh <[X = 8]> hardware <"h100", [8]> {
  %x = shd.declare input "x" ["B", "D"] : tensor<8192x4096xbf16>
  %win = shd.declare weight "Win" ["D", "F"] : tensor<4096x16384xbf16>
  %wout = shd.declare weight "Wout" ["F", "D"] : tensor<16384x4096xbf16>
  %gin = shd.declare gradient "gin" ["D", "F"] of "Win" : tensor<4096x16384xbf16>
  %gout = shd.declare gradient "gout" ["F", "D"] of "Wout" : tensor<16384x4096xbf16>
  %u = shd.einsum(%x, %win) <[B, D], [D, F] -> [B, F]> : (tensor<8192x4096xbf16>, tensor<4096x16384xbf16>) -> tensor<8192x16384xbf16>
  %h = shd.elementwise relu(%u) <[B, F] -> [B, F]> : (tensor<8192x16384xbf16>) -> tensor<8192x16384xbf16>
  %y = shd.einsum(%h, %wout) <[B, F], [F, D] -> [B, D]> : (tensor<8192x16384xbf16>, tensor<16384x4096xbf16>) -> tensor<8192x4096xbf16>
  %s = shd.elementwise square(%y) <[B, D] -> [B, D]> : (tensor<8192x4096xbf16>) -> tensor<8192x4096xbf16>
  %loss = shd.reduce mean(%s) <[B, D] -> []> : (tensor<8192x4096xbf16>) -> tensor<bf16>
  shd.output "loss" %loss [] : tensor<bf16>

  %c = shd.constant dense<5.960460e-08> : tensor<bf16>
  %dy = shd.elementwise mul(%y, %c) <[B, D], [] -> [B, D]> : (tensor<8192x4096xbf16>, tensor<bf16>) -> tensor<8192x4096xbf16>
  %dwout = shd.einsum(%h, %dy) <[B, F], [B, D] -> [F, D]> : (tensor<8192x16384xbf16>, tensor<8192x4096xbf16>) -> tensor<16384x4096xbf16>
  shd.update %gout = %dwout : tensor<16384x4096xbf16>, tensor<16384x4096xbf16>
  %dh = shd.einsum(%dy, %wout) <[B, D], [F, D] -> [B, F]> : (tensor<8192x4096xbf16>, tensor<16384x4096xbf16>) -> tensor<8192x16384xbf16>
  %zero = shd.constant dense<0.0> : tensor<bf16>
  %on = shd.elementwise gt(%h, %zero) <[B, F], [] -> [B, F]> : (tensor<8192x16384xbf16>, tensor<bf16>) -> tensor<8192x16384xi1>
  %du = shd.elementwise where(%on, %dh, %zero) <[B, F], [B, F], [] -> [B, F]> : (tensor<8192x16384xi1>, tensor<8192x16384xbf16>, tensor<bf16>) -> tensor<8192x16384xbf16>
  %dwin = shd.einsum(%x, %du) <[B, D], [B, F] -> [D, F]> : (tensor<8192x4096xbf16>, tensor<8192x16384xbf16>) -> tensor<4096x16384xbf16>
  shd.update %gin = %dwin : tensor<4096x16384xbf16>, tensor<4096x16384xbf16>

  %a = shd.part %gin[] : tensor<4096x16384xbf16> -> tensor<4096x16384xbf16>
  %a1 = shd.sgd(%a, %win) <[D, F], [D, F] -> [D, F]> lr 0.001 beta 0.0 decay 0.0 : (tensor<4096x16384xbf16>, tensor<4096x16384xbf16>) -> tensor<4096x16384xbf16>
  shd.update %win = %a1 : tensor<4096x16384xbf16>, tensor<4096x16384xbf16>
  %b = shd.part %gout[] : tensor<16384x4096xbf16> -> tensor<16384x4096xbf16>
  %b1 = shd.sgd(%b, %wout) <[F, D], [F, D] -> [F, D]> lr 0.001 beta 0.0 decay 0.0 : (tensor<16384x4096xbf16>, tensor<16384x4096xbf16>) -> tensor<16384x4096xbf16>
  shd.update %wout = %b1 : tensor<16384x4096xbf16>, tensor<16384x4096xbf16>
}
