// Names are in brackets, so that other fields may follow.
// RUN: shardc-opt %s | shardc-opt | FileCheck %s
// RUN: shardc-opt %s --emit-bytecode | shardc-opt | FileCheck %s

// CHECK: frozen = [a, "b*"], save = {x}, recomputed = [y], fused = true>
shd.program "names" training <loss = "loss", gradients = f32, lr = 1.0e-03 : f64, beta1 = 9.0e-01 : f64, beta2 = 9.99e-01 : f64, eps = 1.0e-08 : f64, decay = 1.0e-02 : f64, tokens = 1.0e+12 : f64, frozen = ["a", "b*"], save = {x}, recomputed = ["y"], fused = true> {
}
