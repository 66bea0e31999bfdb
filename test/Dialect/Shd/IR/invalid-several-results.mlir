// RUN: shardc-test-opt %s -split-input-file -verify-diagnostics

shd.program "p" {
  %x = shd.declare input "x" ["B", "D"] : tensor<4x8xf32>
  // expected-error @+1 {{'shd.result_pin' must be a list of shardings and 'unit'}}
  %y:2 = test.double_and_sum(%x) <[B, D] -> [B, D], [B]> {shd.result_pin = #shd.sharding<[{}, {?}]>} : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
}

// -----

shd.program "p" {
  %x = shd.declare input "x" ["B", "D"] : tensor<4x8xf32>
  // expected-error @+1 {{'shd.made' has 1 entries, but the operation has 2 results}}
  %y:2 = test.double_and_sum(%x) <[B, D] -> [B, D], [B]> {shd.made = [#shd.sharding<[{}, {?}]>]} : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
}

// -----

shd.program "p" {
  %x = shd.declare input "x" ["B", "D"] : tensor<4x8xf32>
  // expected-error @+1 {{'shd.result_pin' entry 1 has 2 dimensions, but the tensor has 1}}
  %y:2 = test.double_and_sum(%x) <[B, D] -> [B, D], [B]> {shd.result_pin = [unit, #shd.sharding<[{}, {?}]>]} : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
}

// -----

shd.program "p" {
  %x = shd.declare input "x" ["B", "D"] : tensor<4x8xf32>
  // expected-error @+1 {{'shd.name' must be a list of a string or 'unit' for each result}}
  %y:2 = test.double_and_sum(%x) <[B, D] -> [B, D], [B]> {shd.name = "y"} : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
}

// -----

spmd.program "p" mesh <[X = 2]> {
  %x = spmd.parameter input "x" ["B", "D"] of tensor<4x8xf32> : tensor<4x8xf32>
  // expected-error @+1 {{'spmd.global' must be the tensor type of each result}}
  %y:2 = test.double_and_sum(%x) <[B, D] -> [B, D], [B]> {spmd.global = tensor<4x8xf32>} : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
}
