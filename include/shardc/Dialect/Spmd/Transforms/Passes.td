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

    Attention and the all_gathers of its keys and values that share a number
    become a loop in which these travel. In each iteration, attention to the keys
    that are here gives a result in f32 and a logsumexp, and elementwise
    operations merge them with those of the iterations before. At place p,
    iteration i has the keys of place (p + i) mod N (`step` of `#spmd.shard`);
    the last ones are attended to behind the loop.

    The gradient of attention, with reduce_scatters of the gradients of keys and
    values beside the all_gathers, becomes a step with the own keys and a loop.
    Iteration i shifts keys, so that place p has those of place
    (p + i + 1) mod N, adds to the sums that came with them, and shifts these;
    behind the loop they are home, where the own step's share is added.

    Run it after `convert-shd-to-spmd`. A mark on what cannot run so is an error.
  }];
  let dependentDialects = ["::shardc::shd::ShdDialect"];
}

def SpmdSplitStages : Pass<"spmd-split-stages", "::mlir::ModuleOp"> {
  let summary = "One program for each kind of pipeline stage";
  let description = [{
    The program of a stage that has everything becomes those of its stages. The
    first one has what stands before the layers, the last one what stands behind
    them, each as many layers as `layers` says. Activations and their gradients
    move in `spmd.send` and `spmd.receive`. The gradients of a weight that the
    first and the last stage have are added up (`spmd.sum_stages`), and so is
    the norm of all gradients.

    Virtual stages with the same operations and as many layers share a program.
    `layers` lists the virtual stages in the order in which a microbatch visits
    them.

    Run it after `convert-shd-to-spmd`, on operations with `shd.stage`. A value
    that one stage makes and another one reads, other than what layers carry, is
    an error.
  }];
  let options = [
    ListOption<"layers", "layers", "int64_t",
               "Layers of each virtual stage">,
    Option<"order", "order", "std::string", "\"1f1b\"",
           "The schedule, as the train block writes it">];
  let dependentDialects = ["::shardc::shd::ShdDialect"];
}

#endif // SHARDC_DIALECT_SPMD_TRANSFORMS_PASSES_TD
