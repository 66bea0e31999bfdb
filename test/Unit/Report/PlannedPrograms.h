//===- PlannedPrograms.h - Programs with explicit plans --------*- C++ -*-===//
//
// Hand-written planned programs for the report's tests, with the figures of
// their operations worked out by hand.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TEST_UNIT_REPORT_PLANNEDPROGRAMS_H
#define SHARDC_TEST_UNIT_REPORT_PLANNEDPROGRAMS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "shardc/Report/Report.h"

namespace shardc::test {

/// A 4 x 4 torus without wrap-around, with the figures of a TPU v5e.
inline Machine smallTorus() {
  Machine machine;
  machine.name = "tpu_v5e";
  machine.shape = {4, 4};
  machine.flops["bf16"] = 1.97e14;
  machine.hbmCapacity = 16e9;
  machine.hbmBandwidth = 8.2e11;
  machine.usdPerHour = 1.2;
  Network ici;
  ici.name = "ici";
  ici.kind = Network::Kind::Torus;
  ici.members = {"x", "y"};
  ici.bandwidth = 4.5e10;
  ici.latency = 1e-6;
  machine.networks.push_back(ici);
  return machine;
}

/// The model of `mesh`, whose axes are the torus's.
inline CollectiveModel modelOf(const Machine &machine, const Mesh &mesh) {
  llvm::SmallVector<AxisRequest> requests(mesh.size());
  auto bound = bindMesh(machine, mesh, requests, 0);
  assert(std::holds_alternative<MeshBinding>(bound));
  return CollectiveModel(machine, mesh, std::get<MeshBinding>(bound));
}

/// A planned program in memory.
class PlannedProgram {
public:
  explicit PlannedProgram(llvm::StringRef text) {
    context.loadDialect<shd::ShdDialect>();
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  }

  explicit operator bool() const { return bool(module); }
  shd::ProgramOp program() {
    return *module->getBody()->getOps<shd::ProgramOp>().begin();
  }
  mlir::Location unknown() { return mlir::UnknownLoc::get(&context); }

  CollectiveModel model() {
    Mesh mesh;
    if (shd::MeshAttr declared = program().getMeshAttr())
      mesh = shd::toMesh(declared);
    return modelOf(machine, mesh);
  }
  ScheduledProgram schedule() { return scheduleProgram(program(), model()); }
  Report report(const MemoryProfile &memory, ReportOptions options = {}) {
    ScheduledProgram scheduled = schedule();
    scheduled.memory = memory;
    return buildReport(program(), model(), scheduled, options);
  }
  Report report(ReportOptions options = {"test.shd", std::nullopt}) {
    return buildReport(program(), model(), schedule(), options);
  }

  Machine machine = smallTorus();

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// The feed-forward block of docs/Language.md#1-a-first-program with Win
/// gathered over X (FSDP) and the sum over F scattered over Y. For 16 chips, B
/// = 8192, D = 4096, F = 16384:
///
///   all_gather X of Win: V = 4096 * 4096 * 2 B = 33554432 B, wire 3/4 of it;
///     a line of 4: V * 3/4 / 4.5e10 B/s = 559.24 us, latency 3 hops = 3 us
///   H: 2 * 2048 * 4096 * 4096 = 68719476736 FLOP, 348.83 us; reads
///     In (2048 x 4096) and Win (4096 x 4096), writes H (2048 x 4096), 2 B
///     each: 67108864 B, 81.84 us
///   Out: as H: 2 * 2048 * 4096 * 4096 FLOP; reads H and Wout (4096 x 4096),
///     writes Out (2048 x 4096)
///   reduce_scatter Y of Out: V = 2048 * 4096 * 2 B = 16777216 B, 279.62 us
inline constexpr llvm::StringLiteral kFeedForward = R"mlir(
#t = loc("ffn.shd":1:1)
shd.program "ffn" mesh <[X = 4, Y = 4]> hardware <"tpu_v5e", [4, 4]>
    attributes {shd.plan = {status = "feasible", objective = "upper",
                            value_ps = 1500 : i64, bound_ps = 1200 : i64}} {
  %in = shd.declare input "In" ["B", "D"]
    : tensor<8192x4096xbf16, #shd.sharding<[{X}, {}]>> loc("ffn.shd":6:8)
  %win = shd.declare weight "Win" ["D", "F"]
    : tensor<4096x16384xbf16, #shd.sharding<[{X}, {Y}]>> loc("ffn.shd":7:8)
  %wout = shd.declare weight "Wout" ["F", "D"]
    : tensor<16384x4096xbf16, #shd.sharding<[{Y}, {}]>> loc("ffn.shd":8:8)
  %win_x = shd.all_gather %win over ["X"]
    cost <bytes = 33554432.0, wire_bytes = 25165824.0, bandwidth_s = 5.5924053333333333e-4, latency_s = 3.0e-6, networks = ["x"]>
    {shd.operand = "Win", shd.indices = ["D", "F"]}
    : tensor<4096x16384xbf16, #shd.sharding<[{X}, {Y}]>>
    -> tensor<4096x16384xbf16, #shd.sharding<[{}, {Y}]>> loc("ffn.shd":10:1)
  %h0 = shd.einsum(%in, %win_x) <[B, D], [D, F] -> [B, F]>
    {shd.name = "H", shd.temporary, shd.group = #shd.group<0>,
     shd.group_cost = #shd.group_cost<flops = 68719476736.0, vector_flops = 0.0, hbm_bytes = 67108864.0, matrix_s = 3.4882983e-4, vector_s = 0.0, hbm_s = 8.184008e-5>}
    : (tensor<8192x4096xbf16, #shd.sharding<[{X}, {}]>>,
       tensor<4096x16384xbf16, #shd.sharding<[{}, {Y}]>>)
    -> tensor<8192x16384xbf16, #shd.sharding<[{X}, {Y}]>> loc("ffn.shd":10:20)
  %h = shd.elementwise relu(%h0) <[B, F] -> [B, F]>
    {shd.name = "H", shd.group = #shd.group<0>}
    : (tensor<8192x16384xbf16, #shd.sharding<[{X}, {Y}]>>)
    -> tensor<8192x16384xbf16, #shd.sharding<[{X}, {Y}]>> loc("ffn.shd":10:1)
  %out = shd.einsum(%h, %wout) <[B, F], [F, D] -> [B, D]>
    {shd.name = "Out", shd.group = #shd.group<0, rest>,
     shd.group_cost = #shd.group_cost<flops = 68719476736.0, vector_flops = 0.0, hbm_bytes = 67108864.0, matrix_s = 3.4882983e-4, vector_s = 0.0, hbm_s = 8.184008e-5>}
    : (tensor<8192x16384xbf16, #shd.sharding<[{X}, {Y}]>>,
       tensor<16384x4096xbf16, #shd.sharding<[{Y}, {}]>>)
    -> tensor<8192x4096xbf16, #shd.sharding<[{X}, {}], partial = {Y}>> loc("ffn.shd":11:1)
  %out_y = shd.reduce_scatter %out over ["Y"]
    cost <bytes = 16777216.0, wire_bytes = 12582912.0, bandwidth_s = 2.7962026666666667e-4, latency_s = 3.0e-6, networks = ["y"]>
    {shd.operand = "Out", shd.indices = ["B", "D"], shd.store}
    : tensor<8192x4096xbf16, #shd.sharding<[{X}, {}], partial = {Y}>>
    -> tensor<8192x4096xbf16, #shd.sharding<[{X}, {Y}]>> loc("ffn.shd":11:1)
  shd.output "Out" %out_y ["B", "D"]
    : tensor<8192x4096xbf16, #shd.sharding<[{X}, {Y}]>> loc("ffn.shd":12:8)
}
)mlir";

/// A carried sum over 3 iterations; everything in it is small, so its
/// all_reduce is bound by latency:
///
///   y: 2 * 4 * 16 * 64 FLOP on one device (B 4, J 64 / 4, K 64); reads x (4 x
///   16)
///     and W (16 x 64), writes y (4 x 64), 2 B each: 2688 B, 3278 ps
///   all_reduce X of y over 3 runs, 6 us each
inline constexpr llvm::StringLiteral kRepeated = R"mlir(
shd.program "loop" mesh <[X = 4, Y = 4]> hardware <"tpu_v5e", [4, 4]> {
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
)mlir";

} // namespace shardc::test

#endif // SHARDC_TEST_UNIT_REPORT_PLANNEDPROGRAMS_H
