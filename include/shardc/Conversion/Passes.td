//===- Passes.td - Conversions between dialects -----------*- tablegen -*-===//

#ifndef SHARDC_CONVERSION_PASSES_TD
#define SHARDC_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertShdToSpmd : Pass<"convert-shd-to-spmd", "::mlir::ModuleOp"> {
  let summary = "The program of one device, from a program with its plan";
  let description = [{
    Turns every tensor into the part that one device holds and the collectives
    into those of the `spmd` dialect, which name their groups by mesh axes.
    Computing operations stay what they are, on local tensors; `spmd.shards` says
    of which part of each sharded index. Prices are dropped.

    Needs explicit shardings and collectives: run it after
    `shd-insert-collectives`.
  }];
  let dependentDialects = ["::shardc::spmd::SpmdDialect"];
}

#endif // SHARDC_CONVERSION_PASSES_TD
