// RUN: shardc %s | FileCheck %s
// RUN: shardc %s --emit-json | FileCheck %s --check-prefix=JSON
// RUN: shardc %s --emit-json -o %t.json && shardc %s --emit-json | cmp - %t.json

// A body that runs 3 times. One run of y: 2 * 4 * 16 * 64 = 8192 FLOP; reads x
// (4 x 16) and W (16 x 64), writes y (4 x 64), 2 B each: 2688 B, 3.278 ns. Its
// all_reduce over a line of 4 is bound by the latency of 2 * 3 hops, 6 us, and
// sends 2 * 3/4 of 512 B. Each iteration reads what the one before made, so
// nothing overlaps. Its integers are positions of no gather, so there are 4
// examples, of which 18.0 us take 222,101 a second.

// CHECK:      plan fixed: taken as written, nothing is searched
// CHECK-NEXT: step 18.0 us, bound by network
// CHECK:      examples 4 a step, 222 k per second
// CHECK:      price 19.2 USD per hour, {{.*}} USD per step
// CHECK:      weight W bf16 [L, J@X, K] 3 x 64 x 64 24.6 kB 6.14 kB
// CHECK:      Operations
// CHECK-NEXT: repeat L x 3 24.6 k 8.06 kB 18.0 us 18.0 us 100.0 %
// CHECK-NEXT: y einsum [B, K]{+X} 3 24.6 k 8.06 kB 9.83 ns HBM 0.1 %
// CHECK-NEXT: y all_reduce X {+X} -> {} 3 1.54 kB 18.0 us 18.0 us latency x 99.9 %
// CHECK-NEXT: y all_slice X K -> K@X 3 free
// CHECK-NEXT: total 24.6 k 8.06 kB 18.0 us 18.0 us 100.0 %
// CHECK:      over X 18.0 us 99.9 % 2.30 kB
// CHECK-NEXT: over Y 0 s 0 % 0 B
// CHECK:      1. all_reduce of 'y' over X: 18.0 us, 99.9 % of the step, 3 runs, bound by latency (loop.shd:7:3)
// CHECK-NEXT: einsum 'y' sums over J, which is sharded over X: each device holds a partial sum
// CHECK-NOT:  2.

// JSON:      "time": {
// JSON-NEXT:   "lower_s": 1.8e-05,
// JSON-NEXT:   "scheduled_s": 1.8009834e-05,
// JSON-NEXT:   "upper_s": 1.8009834e-05,
// JSON-NEXT:   "compute_s": 1.26e-10,
// JSON-NEXT:   "hbm_s": 9.834e-09,
// JSON-NEXT:   "network_s": {
// JSON-NEXT:     "X": 1.8e-05,
// JSON-NEXT:     "Y": 0
// JSON-NEXT:   },
// JSON-NEXT:   "physical_s": {
// JSON-NEXT:     "x": 1.8e-05,
// JSON-NEXT:     "y": 0
// JSON-NEXT:   },
// JSON-NEXT:   "bound": "network",
// JSON:      "flops": {
// JSON-NEXT:   "device": 24576,
// JSON-NEXT:   "model": 98304,
// JSON:      "network": {
// JSON-NEXT:   "X": 2304,
// JSON-NEXT:   "Y": 0
// JSON:      "plan": {
// JSON-NEXT:   "status": "fixed",
// JSON-NEXT:   "objective": "upper",
// JSON-NEXT:   "value_s": 1.8009834e-05,
// JSON-NEXT:   "bound_s": 1.8009834e-05,
// JSON-NEXT:   "gap": 0,
// JSON-NEXT:   "searched": "nothing",
// JSON-NEXT:   "search_s": null
// JSON-NEXT: },
// JSON-NEXT: "words": "tensor parallel 4 (X) x replicated 4 (Y)",
// JSON-NEXT: "parameters": {
// JSON-NEXT:   "total": 12288,
// JSON-NEXT:   "active": 12288,
// JSON-NEXT:   "active_without_embedding": 12288,
// JSON-NEXT:   "trained": 0
// JSON-NEXT: },
// JSON-NEXT: "experts": null,
// JSON-NEXT: "training": null,

shd.program "loop" mesh <[X = 4, Y = 4]> hardware <"tpu_v5e", [4, 4]>
    attributes {shd.plan = {status = "fixed", objective = "upper",
                            value_ps = 18009834 : i64, bound_ps = 18009834 : i64}} {
  %x = shd.declare input "x" ["B", "J"]
    : tensor<4x64xbf16, #shd.sharding<[{}, {X}]>> loc("loop.shd":3:8)
  %ids = shd.declare input "ids" ["B"]
    : tensor<4xi32, #shd.sharding<[{}]>> loc("loop.shd":4:8)
  %ws = shd.declare weight "W" ["L", "J", "K"] stacked 1
    : tensor<3x64x64xbf16, #shd.sharding<[{}, {X}, {}]>> loc("loop.shd":6:10)
  %y = shd.repeat "L" = 3 (%x)
    : (tensor<4x64xbf16, #shd.sharding<[{}, {X}]>>)
    -> (tensor<4x64xbf16, #shd.sharding<[{}, {X}]>>) {
  ^bb0(%i: tensor<i32>, %x_in: tensor<4x64xbf16, #shd.sharding<[{}, {X}]>>):
    %w = shd.part %ws[%i] : tensor<3x64x64xbf16, #shd.sharding<[{}, {X}, {}]>>
      -> tensor<64x64xbf16, #shd.sharding<[{X}, {}]>> loc("loop.shd":6:10)
    %p = shd.einsum(%x_in, %w) <[B, J], [J, K] -> [B, K]>
      {shd.name = "y", shd.group = #shd.group<0>,
       shd.group_cost = #shd.group_cost<flops = 8192.0, vector_flops = 0.0, hbm_bytes = 2688.0, matrix_s = 4.16e-11, vector_s = 0.0, hbm_s = 3.278e-9>}
      : (tensor<4x64xbf16, #shd.sharding<[{}, {X}]>>,
         tensor<64x64xbf16, #shd.sharding<[{X}, {}]>>)
      -> tensor<4x64xbf16, #shd.sharding<[{}, {}], partial = {X}>> loc("loop.shd":7:3)
    %r = shd.all_reduce %p over ["X"]
      cost <bytes = 512.0, wire_bytes = 768.0, bandwidth_s = 1.7066666666666666e-8, latency_s = 6.0e-6, networks = ["x"]>
      {shd.operand = "y", shd.indices = ["B", "K"], shd.store}
      : tensor<4x64xbf16, #shd.sharding<[{}, {}], partial = {X}>>
      -> tensor<4x64xbf16, #shd.sharding<[{}, {}]>> loc("loop.shd":7:3)
    %s = shd.all_slice %r over ["X"]
      {shd.operand = "y", shd.indices = ["B", "K"], shd.store}
      : tensor<4x64xbf16, #shd.sharding<[{}, {}]>>
      -> tensor<4x64xbf16, #shd.sharding<[{}, {X}]>> loc("loop.shd":7:3)
    shd.yield %s : tensor<4x64xbf16, #shd.sharding<[{}, {X}]>>
  }
  shd.output "y" %y ["B", "K"]
    : tensor<4x64xbf16, #shd.sharding<[{}, {X}]>> loc("loop.shd":9:8)
}
