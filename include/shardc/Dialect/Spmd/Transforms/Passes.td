//===- Passes.td - Passes over the spmd dialect -----------*- tablegen -*-===//

#ifndef SHARDC_DIALECT_SPMD_TRANSFORMS_PASSES_TD
#define SHARDC_DIALECT_SPMD_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def SpmdDecomposeMatmuls
    : Pass<"spmd-decompose-matmuls", "::shardc::spmd::ProgramOp"> {
  let summary = "Runs marked matmuls in chunks around a ring";
  let description = [{
    An einsum and an all_gather of one of its operands, or a reduce_scatter of its
    result, that share a `shd.ring` number become a loop over N - 1 of the N
    devices of the collective, and one more chunk beside it. In each iteration
    chunks move one place along the ring (`spmd.ring_shift`) while the device
    computes with one that it has:

    - all_gather: the chunk of the operand travels. At place p, iteration i has
      chunk (p + i) mod N. Where the einsum sums over the gathered index, it takes
      the same chunk of the other operand, and the products are added up; where
      the result keeps the index, they are placed side by side.
    - reduce_scatter: a sum travels. At place p, iteration i adds to it what this
      device has for chunk (p + 2 + i) mod N, after the first, p + 1, which needs
      none: the sum for chunk p arrives at place p. Elementwise operations
      between the two run on chunks.

    A device sends N - 1 chunks, as many bytes as for the collective. Sums are
    rounded after each chunk, as those of the collective may be.

    Run it after `convert-shd-to-spmd`. A mark on what cannot run so is an error.
  }];
  let dependentDialects = ["::shardc::shd::ShdDialect"];
}

#endif // SHARDC_DIALECT_SPMD_TRANSFORMS_PASSES_TD
