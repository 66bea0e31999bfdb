// RUN: shardc-opt %s --pass-pipeline='builtin.module(shd.program(shd-stage))' -split-input-file -verify-diagnostics | FileCheck %s

// 7 layers on 4 stages: a stage holds at most ceil(7 / 4) = 2, and so many parts
// of what is stacked along L; what stands before and behind stays as it is, and
// so does what another repeat stacks.
// CHECK-LABEL: shd.program "uneven" mesh <[pp = 4 stages, X = 2]> pipeline <axis = "pp", index = "L", layers = 7, held = 2, order = "1f1b">
shd.program "uneven" mesh <[pp = 4 stages, X = 2]> pipeline <axis = "pp", index = "L", layers = 7, order = "1f1b"> {
  // CHECK: shd.declare input "x0" ["B", "D"] : tensor<8x4xbf16>
  // CHECK: shd.declare weight "w" ["L", "D"] stacked 1 : tensor<2x4xbf16>
  // CHECK: shd.declare weight "v" ["M", "D"] stacked 1 : tensor<3x4xbf16>
  %x0 = shd.declare input "x0" ["B", "D"] : tensor<8x4xbf16>
  %w = shd.declare weight "w" ["L", "D"] stacked 1 : tensor<7x4xbf16>
  %v = shd.declare weight "v" ["M", "D"] stacked 1 : tensor<3x4xbf16>
  // CHECK: shd.repeat "L" = 2(
  %x = shd.repeat "L" = 7(%x0) : (tensor<8x4xbf16>) -> tensor<8x4xbf16> {
  ^bb0(%l: tensor<i32>, %in: tensor<8x4xbf16>):
    // CHECK: shd.part {{.*}} : tensor<2x4xbf16> -> tensor<4xbf16>
    %part = shd.part %w[%l] : tensor<7x4xbf16> -> tensor<4xbf16>
    %out = shd.elementwise mul(%in, %part) <[B, D], [D] -> [B, D]> {shd.name = "x"} : (tensor<8x4xbf16>, tensor<4xbf16>) -> tensor<8x4xbf16>
    shd.yield %out : tensor<8x4xbf16>
  }
  // CHECK: shd.repeat "M" = 3(
  %y = shd.repeat "M" = 3(%x) : (tensor<8x4xbf16>) -> tensor<8x4xbf16> {
  ^bb0(%l: tensor<i32>, %in: tensor<8x4xbf16>):
    %part = shd.part %v[%l] : tensor<3x4xbf16> -> tensor<4xbf16>
    %out = shd.elementwise mul(%in, %part) <[B, D], [D] -> [B, D]> {shd.name = "y"} : (tensor<8x4xbf16>, tensor<4xbf16>) -> tensor<8x4xbf16>
    shd.yield %out : tensor<8x4xbf16>
  }
  shd.output "y" %y ["B", "D"] : tensor<8x4xbf16>
}

// -----

// As many layers as stages: one each.
// CHECK-LABEL: shd.program "one_each"
// CHECK-SAME: layers = 4, held = 1
shd.program "one_each" mesh <[pp = 4 stages]> pipeline <axis = "pp", index = "L", layers = 4, order = "auto"> {
  %x0 = shd.declare input "x0" ["B", "D"] : tensor<8x4xbf16>
  // CHECK: shd.repeat "L" = 1(
  %x = shd.repeat "L" = 4(%x0) : (tensor<8x4xbf16>) -> tensor<8x4xbf16> {
  ^bb0(%l: tensor<i32>, %in: tensor<8x4xbf16>):
    %out = shd.elementwise relu(%in) <[B, D] -> [B, D]> {shd.name = "x"} : (tensor<8x4xbf16>) -> tensor<8x4xbf16>
    shd.yield %out : tensor<8x4xbf16>
  }
  shd.output "x" %x ["B", "D"] : tensor<8x4xbf16>
}

// -----

// A program that is staged stays as it is, and so does one without a pipeline.
// CHECK-LABEL: shd.program "staged"
// CHECK-SAME: layers = 7, held = 2
// CHECK: shd.repeat "L" = 2(
shd.program "staged" mesh <[pp = 4 stages]> pipeline <axis = "pp", index = "L", layers = 7, held = 2, order = "auto"> {
  %x0 = shd.declare input "x0" ["B", "D"] : tensor<8x4xbf16>
  %x = shd.repeat "L" = 2(%x0) : (tensor<8x4xbf16>) -> tensor<8x4xbf16> {
  ^bb0(%l: tensor<i32>, %in: tensor<8x4xbf16>):
    %out = shd.elementwise relu(%in) <[B, D] -> [B, D]> {shd.name = "x"} : (tensor<8x4xbf16>) -> tensor<8x4xbf16>
    shd.yield %out : tensor<8x4xbf16>
  }
}

// -----

// CHECK-LABEL: shd.program "none"
// CHECK: shd.repeat "L" = 7(
shd.program "none" mesh <[X = 4]> {
  %x0 = shd.declare input "x0" ["B", "D"] : tensor<8x4xbf16>
  %x = shd.repeat "L" = 7(%x0) : (tensor<8x4xbf16>) -> tensor<8x4xbf16> {
  ^bb0(%l: tensor<i32>, %in: tensor<8x4xbf16>):
    %out = shd.elementwise relu(%in) <[B, D] -> [B, D]> {shd.name = "x"} : (tensor<8x4xbf16>) -> tensor<8x4xbf16>
    shd.yield %out : tensor<8x4xbf16>
  }
}

// -----

shd.program "too_few_layers" mesh <[pp = 4 stages]> pipeline <axis = "pp", index = "L", layers = 3, order = "auto"> {
  %x0 = shd.declare input "x0" ["B", "D"] : tensor<8x4xbf16>
  // expected-error @+1 {{'L' has 3 layers, fewer than the 4 stages of 'pp'}}
  %x = shd.repeat "L" = 3(%x0) : (tensor<8x4xbf16>) -> tensor<8x4xbf16> {
  ^bb0(%l: tensor<i32>, %in: tensor<8x4xbf16>):
    %out = shd.elementwise relu(%in) <[B, D] -> [B, D]> {shd.name = "x"} : (tensor<8x4xbf16>) -> tensor<8x4xbf16>
    shd.yield %out : tensor<8x4xbf16>
  }
}

// -----

// expected-error @+1 {{the mesh has no axis 'pp' for the stages}}
shd.program "no_axis" mesh <[X = 4]> pipeline <axis = "pp", index = "L", layers = 4, order = "auto"> {
  %x0 = shd.declare input "x0" ["B", "D"] : tensor<8x4xbf16>
  %x = shd.repeat "L" = 4(%x0) : (tensor<8x4xbf16>) -> tensor<8x4xbf16> {
  ^bb0(%l: tensor<i32>, %in: tensor<8x4xbf16>):
    shd.yield %in : tensor<8x4xbf16>
  }
}

// -----

// expected-error @+1 {{no repeat over 'L', which the pipeline runs in stages}}
shd.program "no_repeat" mesh <[pp = 4 stages]> pipeline <axis = "pp", index = "L", layers = 4, order = "auto"> {
  %x0 = shd.declare input "x0" ["B", "D"] : tensor<8x4xbf16>
}

// -----

// A layer that depends on its number cannot be one of any stage.
shd.program "number" mesh <[pp = 2 stages]> pipeline <axis = "pp", index = "L", layers = 4, order = "auto"> {
  %x0 = shd.declare input "x0" ["B", "D"] : tensor<8x4xi32>
  %x = shd.repeat "L" = 4(%x0) : (tensor<8x4xi32>) -> tensor<8x4xi32> {
  ^bb0(%l: tensor<i32>, %in: tensor<8x4xi32>):
    // expected-error @+1 {{reads the number of the layer 'L', which differs from stage to stage; in a pipeline it may only select the layer's own weights and states}}
    %out = shd.elementwise add(%in, %l) <[B, D], [] -> [B, D]> {shd.name = "x"} : (tensor<8x4xi32>, tensor<i32>) -> tensor<8x4xi32>
    shd.yield %out : tensor<8x4xi32>
  }
}

// -----

shd.program "twice" mesh <[pp = 2 stages]> pipeline <axis = "pp", index = "L", layers = 4, order = "auto"> {
  %x0 = shd.declare input "x0" ["B", "D"] : tensor<8x4xbf16>
  %x = shd.repeat "L" = 4(%x0) : (tensor<8x4xbf16>) -> tensor<8x4xbf16> {
  ^bb0(%l: tensor<i32>, %in: tensor<8x4xbf16>):
    shd.yield %in : tensor<8x4xbf16>
  }
  // expected-error @+1 {{another repeat over 'L' than that of the pipeline; give it an index of its own}}
  %y = shd.repeat "L" = 4(%x) : (tensor<8x4xbf16>) -> tensor<8x4xbf16> {
  ^bb0(%l: tensor<i32>, %in: tensor<8x4xbf16>):
    shd.yield %in : tensor<8x4xbf16>
  }
}

// -----

shd.program "inside" mesh <[pp = 2 stages]> pipeline <axis = "pp", index = "L", layers = 4, order = "auto"> {
  %x0 = shd.declare input "x0" ["B", "D"] : tensor<8x4xbf16>
  %x = shd.repeat "M" = 2(%x0) : (tensor<8x4xbf16>) -> tensor<8x4xbf16> {
  ^bb0(%m: tensor<i32>, %outer: tensor<8x4xbf16>):
    // expected-error @+1 {{another repeat over 'L' than that of the pipeline}}
    %y = shd.repeat "L" = 4(%outer) : (tensor<8x4xbf16>) -> tensor<8x4xbf16> {
    ^bb0(%l: tensor<i32>, %in: tensor<8x4xbf16>):
      shd.yield %in : tensor<8x4xbf16>
    }
    shd.yield %y : tensor<8x4xbf16>
  }
}

// -----

shd.program "empty" mesh <[pp = 2 stages]> pipeline <axis = "pp", index = "L", layers = 4, order = "auto"> {
  // expected-error @+1 {{the layers 'L' hand nothing from one stage of the pipeline to the next}}
  shd.repeat "L" = 4() : () -> () {
  ^bb0(%l: tensor<i32>):
    shd.yield
  }
}

// -----

shd.program "outside" mesh <[pp = 2 stages]> pipeline <axis = "pp", index = "L", layers = 4, order = "auto"> {
  %x0 = shd.declare input "x0" ["B", "D"] : tensor<8x4xbf16>
  %y = shd.elementwise relu(%x0) <[B, D] -> [B, D]> {shd.name = "y"} : (tensor<8x4xbf16>) -> tensor<8x4xbf16>
  %x = shd.repeat "L" = 4(%x0) : (tensor<8x4xbf16>) -> tensor<8x4xbf16> {
  ^bb0(%l: tensor<i32>, %in: tensor<8x4xbf16>):
    // expected-error @+1 {{reads 'y', which only the first stage has; in a pipeline layers have weights of their own and carry the rest from one to the next}}
    %out = shd.elementwise mul(%in, %y) <[B, D], [B, D] -> [B, D]> {shd.name = "x"} : (tensor<8x4xbf16>, tensor<8x4xbf16>) -> tensor<8x4xbf16>
    shd.yield %out : tensor<8x4xbf16>
  }
}

// -----

shd.program "shared" mesh <[pp = 2 stages]> pipeline <axis = "pp", index = "L", layers = 4, order = "auto"> {
  %x0 = shd.declare input "x0" ["B", "D"] : tensor<8x4xbf16>
  %w = shd.declare weight "w" ["D"] : tensor<4xbf16>
  %x = shd.repeat "L" = 4(%x0) : (tensor<8x4xbf16>) -> tensor<8x4xbf16> {
  ^bb0(%l: tensor<i32>, %in: tensor<8x4xbf16>):
    // expected-error @+1 {{reads 'w', which the layers of all stages would share}}
    %out = shd.elementwise mul(%in, %w) <[B, D], [D] -> [B, D]> {shd.name = "x"} : (tensor<8x4xbf16>, tensor<4xbf16>) -> tensor<8x4xbf16>
    shd.yield %out : tensor<8x4xbf16>
  }
}
