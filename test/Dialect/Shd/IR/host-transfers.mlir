// RUN: shardc-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// CHECK: shd.to_host %{{.*}} over [] : tensor<8xf32, #shd.sharding<[{X}]>>
// CHECK: shd.from_host %{{.*}} over [] : tensor<8xf32, #shd.sharding<[{X}]>>
shd.program "moves" mesh <[X = 2]> {
  %x = shd.declare weight "x" ["B"] : tensor<8xf32, #shd.sharding<[{X}]>>
  %y = shd.to_host %x over [] : tensor<8xf32, #shd.sharding<[{X}]>> -> tensor<8xf32, #shd.sharding<[{X}]>>
  %z = shd.from_host %x over [] : tensor<8xf32, #shd.sharding<[{X}]>> -> tensor<8xf32, #shd.sharding<[{X}]>>
}

// -----

shd.program "axes" mesh <[X = 2]> {
  %x = shd.declare weight "x" ["B"] : tensor<8xf32, #shd.sharding<[{X}]>>
  // expected-error @+1 {{'shd.to_host' op moves a device's own part: over no axes, in one layout}}
  %y = shd.to_host %x over ["X"] : tensor<8xf32, #shd.sharding<[{X}]>> -> tensor<8xf32, #shd.sharding<[{X}]>>
}

// -----

shd.program "layouts" mesh <[X = 2]> {
  %x = shd.declare weight "x" ["B"] : tensor<8xf32, #shd.sharding<[{X}]>>
  // expected-error @+1 {{'shd.from_host' op moves a device's own part: over no axes, in one layout}}
  %y = shd.from_host %x over [] : tensor<8xf32, #shd.sharding<[{X}]>> -> tensor<8xf32, #shd.sharding<[{}]>>
}
