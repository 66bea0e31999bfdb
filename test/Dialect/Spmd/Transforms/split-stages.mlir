// RUN: shardc-opt %s --spmd-split-stages='layers=1,2,2,1 order=gpipe' -split-input-file -verify-diagnostics | FileCheck %s

// The first stage has what stands before the layers, the last one what stands
// behind, and the sums over microbatches of that; the two between share a
// program.
// CHECK: spmd.program "p" mesh <[pp = 4 stages]> stages <[0] of 4, layers "L" = 1, order "gpipe"> {
// CHECK:   spmd.parameter input "x0"
// CHECK:   spmd.parameter weight "w" {{.*}} : tensor<1x4xf32>
// CHECK:   shd.repeat "microbatch" = 2() : () -> ()
// CHECK:     %[[FIRST:.*]] = shd.elementwise exp(
// CHECK:     %[[OUT:.*]] = shd.repeat "L" = 1(%[[FIRST]])
// CHECK:     spmd.send %[[OUT]] forward 0
// CHECK-NOT: shd.reduce
// CHECK: spmd.program "p" mesh <[pp = 4 stages]> stages <[1, 2] of 4, layers "L" = 2, order "gpipe"> {
// CHECK-NOT: input
// CHECK:   spmd.parameter weight "w" {{.*}} : tensor<2x4xf32>
// CHECK:   shd.repeat "microbatch" = 2() : () -> ()
// CHECK:     %[[IN:.*]] = spmd.receive forward 0
// CHECK-NEXT: %[[OUT:.*]] = shd.repeat "L" = 2(%[[IN]])
// CHECK:     spmd.send %[[OUT]] forward 0
// CHECK-NOT: shd.reduce
// CHECK: spmd.program "p" mesh <[pp = 4 stages]> stages <[3] of 4, layers "L" = 1, order "gpipe"> {
// CHECK:   shd.repeat "microbatch" = 2(%{{.*}}) : (tensor<f32>) -> tensor<f32>
// CHECK:     %[[IN:.*]] = spmd.receive forward 0
// CHECK-NEXT: %[[OUT:.*]] = shd.repeat "L" = 1(%[[IN]])
// CHECK-NOT: spmd.send
// CHECK:     shd.reduce sum(%[[OUT]])
// CHECK:   spmd.output "y"
spmd.program "p" mesh <[pp = 4 stages]> pipeline <axis = "pp", index = "L", layers = 6, held = 2, order = "gpipe"> {
  %x0 = spmd.parameter input "x0" ["B"] of tensor<4xf32> : tensor<4xf32>
  %w = spmd.parameter weight "w" ["L", "B"] of tensor<2x4xf32> stacked 1 : tensor<2x4xf32>
  %zero = shd.constant dense<0.0> : tensor<f32>
  %sum = shd.repeat "microbatch" = 2(%zero) : (tensor<f32>) -> tensor<f32> {
  ^bb0(%m: tensor<i32>, %before: tensor<f32>):
    %x = shd.elementwise exp(%x0) <[B] -> [B]> {shd.stage = #shd.stage<first : forward>} : (tensor<4xf32>) -> tensor<4xf32>
    %y = shd.repeat "L" = 2(%x) {shd.stage = #shd.stage<layers : forward>} : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%l: tensor<i32>, %in: tensor<4xf32>):
      %part = shd.part %w[%l] {shd.stage = #shd.stage<layers : forward>} : tensor<2x4xf32> -> tensor<4xf32>
      %out = shd.elementwise mul(%in, %part) <[B], [B] -> [B]> {shd.stage = #shd.stage<layers : forward>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      shd.yield %out : tensor<4xf32>
    }
    %z = shd.reduce sum(%y) <[B] -> []> {shd.stage = #shd.stage<last : forward>} : (tensor<4xf32>) -> tensor<f32>
    %after = shd.elementwise add(%before, %z) <[], [] -> []> {shd.stage = #shd.stage<last : forward>} : (tensor<f32>, tensor<f32>) -> tensor<f32>
    shd.yield %after : tensor<f32>
  }
  spmd.output "y" %sum [] of tensor<f32> {shd.stage = #shd.stage<last : update>} : tensor<f32>
}

// -----

// expected-error @+1 {{needs the number of layers of each virtual stage of 'pp'}}
spmd.program "p" mesh <[pp = 3 stages]> pipeline <axis = "pp", index = "L", layers = 6, held = 2, order = "gpipe"> {
}

// -----

// expected-error @+1 {{has no layers in a repeat over microbatches whose stages are marked}}
spmd.program "p" mesh <[pp = 2 stages]> pipeline <axis = "pp", index = "L", layers = 6, held = 2, order = "gpipe"> {
}

// -----

spmd.program "p" mesh <[pp = 4 stages]> pipeline <axis = "pp", index = "L", layers = 6, held = 2, order = "gpipe"> {
  %x0 = spmd.parameter input "x0" ["B"] of tensor<4xf32> : tensor<4xf32>
  shd.repeat "microbatch" = 2() : () -> () {
  ^bb0(%m: tensor<i32>):
    // expected-error @+1 {{'x' is made by one stage of the pipeline and read by another, which has only what the layers carry}}
    %x = shd.elementwise exp(%x0) <[B] -> [B]> {shd.name = "x", shd.stage = #shd.stage<first : forward>} : (tensor<4xf32>) -> tensor<4xf32>
    %y = shd.repeat "L" = 2(%x) {shd.stage = #shd.stage<layers : forward>} : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%l: tensor<i32>, %in: tensor<4xf32>):
      shd.yield %in : tensor<4xf32>
    }
    %z = shd.elementwise add(%x, %y) <[B], [B] -> [B]> {shd.stage = #shd.stage<last : forward>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    shd.yield
  }
}
