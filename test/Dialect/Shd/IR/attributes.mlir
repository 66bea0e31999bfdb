// RUN: shardc-opt %s --split-input-file --allow-unregistered-dialect | shardc-opt --split-input-file --allow-unregistered-dialect | FileCheck %s

// CHECK: #shd.axis<X = 4 on (y, z)>
"test.op"() {a = #shd.axis<X = 4 on (y, z)>} : () -> ()

// -----

// CHECK: #shd.mesh<[X = 4, Y = 4 on (y, z)]>
// CHECK: #shd.mesh<[]>
"test.op"() {a = #shd.mesh<[X = 4, Y = 4 on (y, z)]>, b = #shd.mesh<[]>} : () -> ()

// -----

// The devices along pp are the stages of a pipeline.
// CHECK: a = #shd.mesh<[pp = 4 stages, X = 2]>, b = #shd.axis<pp = 4 stages on (y)>
"test.op"() {a = #shd.mesh<[pp = 4 stages, X = 2]>, b = #shd.axis<pp = 4 stages on (y)>} : () -> ()

// -----

// Before and after shd-stage.
// CHECK: a = #shd.pipeline<axis = "pp", index = "L", layers = 126, order = "interleaved(2)">, b = #shd.pipeline<axis = "pp", index = "L", layers = 126, held = 8, order = "1f1b">
"test.op"() {a = #shd.pipeline<axis = "pp", index = "L", layers = 126, order = "interleaved(2)">, b = #shd.pipeline<axis = "pp", index = "L", layers = 126, held = 8, order = "1f1b">} : () -> ()

// -----

// Names that are not identifiers of the IR are strings.
// CHECK: #shd.mesh<["a b" = 2]>
"test.op"() {a = #shd.mesh<["a b" = 2]>} : () -> ()

// -----

// CHECK: a = #shd.dim<{X, Y}>, b = #shd.dim<{}>, c = #shd.dim<{?}>
"test.op"() {a = #shd.dim<{X, Y}>, b = #shd.dim<{}>, c = #shd.dim<{?}>} : () -> ()

// -----

// CHECK: a = #shd.sharding<[{X, Y}, {}, {?}], partial = {Z}>, b = #shd.sharding<[]>
"test.op"() {a = #shd.sharding<[{X, Y}, {}, {?}], partial = {Z}>, b = #shd.sharding<[]>} : () -> ()

// -----

// CHECK: a = #shd.indexing<[B, D], [D, F] -> [B, F]>, b = #shd.indexing<-> [T]>, c = #shd.indexing<[] -> []>
"test.op"() {a = #shd.indexing<[B, D], [D, F] -> [B, F]>, b = #shd.indexing<-> [T]>, c = #shd.indexing<[] -> []>} : () -> ()

// -----

// CHECK: a = #shd.hardware<"h100", [4, 8]>, b = #shd.hardware<"tpu_v5e", []>
"test.op"() {a = #shd.hardware<"h100", [4, 8]>, b = #shd.hardware<"tpu_v5e", []>} : () -> ()

// -----

// Numbers read back exactly, so that equal prices are one attribute.
// CHECK: bytes = 3.0000000000000004e-01, wire_bytes = 3.0e+00, bandwidth_s = 0.0e+00, latency_s = 1.7976931348623157e+308, networks = []
"test.op"() {a = #shd.cost<bytes = 0.30000000000000004, wire_bytes = 3.0, bandwidth_s = 0.0, latency_s = 1.7976931348623157E+308, networks = []>} : () -> ()

// -----

// CHECK: #shd.group_cost<flops = 1.0e+12, vector_flops = 2.0e+00, hbm_bytes = 3.0e+00, matrix_s = 4.0e+00, vector_s = 5.0e+00, hbm_s = 6.0e+00>
"test.op"() {a = #shd.group_cost<flops = 1.0e+12, vector_flops = 2.0, hbm_bytes = 3.0, matrix_s = 4.0, vector_s = 5.0, hbm_s = 6.0>} : () -> ()

// -----

// CHECK: a = #shd<tensor_kind state>, b = #shd<function where>, c = #shd<reduction argmax>, d = #shd<normalization rmsnorm>
"test.op"() {a = #shd<tensor_kind state>, b = #shd<function where>, c = #shd<reduction argmax>, d = #shd<normalization rmsnorm>} : () -> ()
