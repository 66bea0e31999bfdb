// The gradient of attention executes 2.5 x the forward FLOPs, 2 x of which are
// the model's: it computes the scores again.
//
// RUN: shardc %s --emit-json | FileCheck %s

// Forward 4 x T 1024 x S 1024 x H 128 = 536,870,912 FLOPs, without a mask; the
// gradient 1,342,177,280, or 1,073,741,824 of the model.
// CHECK: "flops": {
// CHECK:   "device": 1879048192
// CHECK:   "model": 1610612736
shd.program "p" mesh <[X = 1]> hardware <"tpu_v5e", [1, 1]> {
  %q = shd.declare input "q" ["T", "H"] : tensor<1024x128xbf16>
  %k = shd.declare input "k" ["S", "H"] : tensor<1024x128xbf16>
  %g = shd.declare input "g" ["T", "H"] : tensor<1024x128xbf16>
  %o, %l = shd.attention(%q, %k, %k) over "H", "S" <[T, H], [S, H], [S, H] -> [T, H], [T]> : tensor<1024x128xbf16>, tensor<1024x128xbf16>, tensor<1024x128xbf16> -> tensor<1024x128xbf16>, tensor<1024xf32>
  %dq, %dk, %dv = shd.attention_grad(%q, %k, %k, %o, %g, %l) over "H", "S" <[T, H], [S, H], [S, H], [T, H], [T, H], [T] -> [T, H], [S, H], [S, H]> : (tensor<1024x128xbf16>, tensor<1024x128xbf16>, tensor<1024x128xbf16>, tensor<1024x128xbf16>, tensor<1024x128xbf16>, tensor<1024xf32>) -> (tensor<1024x128xbf16>, tensor<1024x128xbf16>, tensor<1024x128xbf16>)
  shd.output "dq" %dq ["T", "H"] : tensor<1024x128xbf16>
  shd.output "dk" %dk ["S", "H"] : tensor<1024x128xbf16>
  shd.output "dv" %dv ["S", "H"] : tensor<1024x128xbf16>
}
