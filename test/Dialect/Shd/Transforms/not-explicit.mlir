// RUN: shardc-opt %s --pass-pipeline='builtin.module(shd.program(shd-annotate-cost))' -split-input-file -verify-diagnostics

shd.program "open" mesh <[X = 4]> hardware <"h100", [4]> {
  // expected-error @+1 {{the plan is not explicit; run shd-insert-collectives first}}
  %x = shd.declare input "x" ["B"] : tensor<64xbf16>
  %y = shd.elementwise exp(%x) <[B] -> [B]> {shd.group = #shd.group<0, rest>} : (tensor<64xbf16>) -> tensor<64xbf16>
  shd.output "y" %y ["B"] : tensor<64xbf16>
}

// -----

// On one device there is nothing to say.
shd.program "whole" hardware <"h100", []> {
  %x = shd.declare input "x" ["B"] : tensor<64xbf16>
  %y = shd.elementwise exp(%x) <[B] -> [B]> {shd.group = #shd.group<0, rest>} : (tensor<64xbf16>) -> tensor<64xbf16>
  shd.output "y" %y ["B"] : tensor<64xbf16>
}
