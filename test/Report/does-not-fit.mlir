// RUN: not shardc %s --memory-limit 33MB 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=ERR <%t.err
// RUN: sh -c '"$0" "$@"; test $? = 3' shardc %s --memory-limit 33MB --emit-json | FileCheck %s --check-prefix=JSON
// RUN: shardc %s --memory-limit 33.7MB | FileCheck %s --check-prefix=FITS

// One device. The peak is at y, which reads w (4096 x 4096) and x (8 x 4096) and
// writes itself (8 x 4096), 2 B each: 33554432 + 2 * 65536 = 33685504 B. Of a
// limit of 33 MB, 685504 B are missing.

// CHECK:      does not fit: needs 33.7 MB per device, 686 kB more than --memory-limit allows
// CHECK-EMPTY:
// CHECK-NEXT: does-not-fit.mlir
// CHECK:      mesh none (one device)
// CHECK:      memory 33.7 MB of 33.0 MB (102.1 %) allowed per device
// CHECK:      Largest tensors at the peak
// CHECK-NEXT: weight w [D, F] 33.6 MB

// ERR:      p.shd:5:1: error: the plan does not fit in memory: 'y' needs 33.7 MB on every device, 686 kB more than the limit of 33.0 MB
// ERR:      p.shd:5:1: note: weight 'w' [D, F] takes 33.6 MB there

// JSON:      "memory": {
// JSON-NEXT:   "peak": 33685504,
// JSON-NEXT:   "capacity": 16000000000,
// JSON-NEXT:   "fits": false,
// JSON-NEXT:   "weights": 33554432,
// JSON-NEXT:   "gradients": 0,
// JSON-NEXT:   "optimizer": 0,
// JSON-NEXT:   "saved": 0,
// JSON-NEXT:   "states": 0,
// JSON-NEXT:   "inputs": 65536,
// JSON-NEXT:   "activations": 65536,
// JSON-NEXT:   "buffers": 0,
// JSON-NEXT:   "reserved": 0,
// JSON-NEXT:   "limit": 33000000,

// FITS-NOT: does not fit

shd.program "p" hardware <"tpu_v5e", []>
    attributes {shd.plan = {status = "fixed", objective = "upper"}} {
  %x = shd.declare input "x" ["B", "D"] : tensor<8x4096xbf16> loc("p.shd":3:8)
  %w = shd.declare weight "w" ["D", "F"] : tensor<4096x4096xbf16> loc("p.shd":4:8)
  %y = shd.einsum(%x, %w) <[B, D], [D, F] -> [B, F]>
    {shd.name = "y", shd.group = #shd.group<0>,
     shd.group_cost = #shd.group_cost<flops = 268435456.0, vector_flops = 0.0, hbm_bytes = 33685504.0, matrix_s = 1.362617e-6, vector_s = 0.0, hbm_s = 4.107988e-5>}
    : (tensor<8x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<8x4096xbf16> loc("p.shd":5:1)
  shd.output "y" %y ["B", "F"] : tensor<8x4096xbf16> loc("p.shd":6:8)
}
