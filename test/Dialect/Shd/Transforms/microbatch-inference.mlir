// RUN: shardc-opt %s --split-input-file --pass-pipeline='builtin.module(shd.program(shd-stage, shd-microbatch))' --verify-diagnostics | FileCheck %s

// Of 8 rows, microbatch m of 2 has the rows m, m + 2, ... A layer's state and the
// output have a part for each microbatch; a sum over the batch is carried.
// CHECK-LABEL: shd.program "inference"
// CHECK: %x0 = shd.declare input "x0" ["B", "D"] : tensor<8x4xf32>
// CHECK: %c = shd.declare state "c" ["microbatch", "L", "B", "D"] stacked 2 : tensor<2x3x4x4xf32>
// CHECK: %[[ALL:.*]] = shd.split(%x0) "B.all" into ["B", "microbatch"] {{.*}} -> tensor<4x2x4xf32>
// CHECK: %y = shd.declare state "y" ["microbatch", "B", "D"] stacked 1 : tensor<2x4x4xf32>
// CHECK: %[[SUM:.*]] = shd.repeat "microbatch" = 2(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: ^bb0(%[[M:.*]]: tensor<i32>, %[[BEFORE:.*]]: tensor<4xf32>):
// CHECK: shd.gather(%[[ALL]], %[[M]]) {{.*}} at [1] {{.*}} -> tensor<4x4xf32>
// CHECK: %[[X:.*]] = shd.repeat "L" = 3({{.*}}) : (tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK-NEXT: ^bb0(%[[L:.*]]: tensor<i32>, %{{.*}}: tensor<4x4xf32>):
// CHECK: shd.part %c[%[[M]], %[[L]]] : tensor<2x3x4x4xf32> -> tensor<4x4xf32>
// CHECK: shd.update %c[%[[M]], %[[L]]] =
// CHECK: %[[PART:.*]] = shd.reduce sum(%[[X]])
// CHECK: %[[NEXT:.*]] = shd.elementwise add(%[[BEFORE]], %[[PART]])
// CHECK: shd.update %y[%[[M]]] = %[[X]] : tensor<2x4x4xf32>, tensor<4x4xf32>
// CHECK: shd.yield %[[NEXT]]
// CHECK: shd.output "s" %[[SUM]]
// CHECK-NOT: shd.output
shd.program "inference" mesh <[pp = 2 stages]> pipeline <axis = "pp", index = "L", layers = 6, order = "auto"> attributes {shd.microbatches = 2 : i64} {
  %x0 = shd.declare input "x0" ["B", "D"] : tensor<8x4xf32>
  %c = shd.declare state "c" ["L", "B", "D"] stacked 1 : tensor<6x8x4xf32>
  %x = shd.repeat "L" = 6(%x0) : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%i: tensor<i32>, %x_in: tensor<8x4xf32>):
    %c_in = shd.part %c[%i] : tensor<6x8x4xf32> -> tensor<8x4xf32>
    %x_out = shd.elementwise add(%x_in, %c_in) <[B, D], [B, D] -> [B, D]> {shd.name = "x"} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    shd.update %c[%i] = %x_out : tensor<6x8x4xf32>, tensor<8x4xf32>
    shd.yield %x_out : tensor<8x4xf32>
  }
  %s = shd.reduce sum(%x) <[B, D] -> [D]> {shd.name = "s"} : (tensor<8x4xf32>) -> tensor<4xf32>
  shd.output "y" %x ["B", "D"] : tensor<8x4xf32>
  shd.output "s" %s ["D"] : tensor<4xf32>
}

// -----

// The square of a sum over the batch is no sum of the microbatches'.
shd.program "square" mesh <[pp = 2 stages]> pipeline <axis = "pp", index = "L", layers = 2, order = "auto"> attributes {shd.microbatches = 2 : i64} {
  %x0 = shd.declare input "x0" ["B"] : tensor<8xf32>
  %x = shd.repeat "L" = 2(%x0) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%i: tensor<i32>, %x_in: tensor<8xf32>):
    shd.yield %x_in : tensor<8xf32>
  }
  %s = shd.reduce sum(%x) <[B] -> []> {shd.name = "s"} : (tensor<8xf32>) -> tensor<f32>
  // expected-error @+1 {{'t' is not linear in a sum over the batch, which microbatches need; use microbatches = 1}}
  %t = shd.elementwise square(%s) <[] -> []> {shd.name = "t"} : (tensor<f32>) -> tensor<f32>
  shd.output "t" %t [] : tensor<f32>
}
