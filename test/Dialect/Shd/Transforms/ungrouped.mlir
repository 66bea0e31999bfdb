// Passes that need fusion groups say so.

// RUN: shardc-opt %s --pass-pipeline='builtin.module(shd.program(shd-optimize))' -split-input-file -verify-diagnostics
// RUN: shardc-opt %s --pass-pipeline='builtin.module(shd.program(shd-annotate-cost))' -split-input-file -verify-diagnostics

shd.program "no_group" mesh <[X = 4]> hardware <"h100", [4]> {
  %x = shd.declare input "x" ["B"] : tensor<64xbf16>
  // expected-error @+1 {{has no fusion group; run shd-fusion-groups first}}
  %y = shd.elementwise exp(%x) <[B] -> [B]> : (tensor<64xbf16>) -> tensor<64xbf16>
  shd.output "y" %y ["B"] : tensor<64xbf16>
}

// -----

shd.program "no_price" mesh <[X = 4]> hardware <"h100", [4]> {
  // expected-error @+1 {{has a fusion group, but nothing to price}}
  %x = shd.declare input "x" ["B"] {shd.group = #shd.group<0>} : tensor<64xbf16>
  shd.output "x" %x ["B"] : tensor<64xbf16>
}
