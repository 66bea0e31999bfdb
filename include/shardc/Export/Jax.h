//===- Jax.h - A plan as a JAX program -------------------------*- C++ -*-===//
//
// `--emit-jax`: a Python file that runs the program of every device under
// jax.shard_map and compares it with the unsharded program, of which JAX makes
// the step where it is trained. docs/Jax.md.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_EXPORT_JAX_H
#define SHARDC_EXPORT_JAX_H

#include "shardc/Schedule/StagePlan.h"
#include "shardc/Shrink/Shrink.h"

namespace shardc {

/// Prints `planned`, whose collectives are explicit, and `unplanned`, the same
/// program before any sharding decision. What JAX cannot do is an error at the
/// operation, and nothing is printed. A training step comes with `forward`, the
/// program that it was made of, if that is known; a program with a pipeline
/// comes with its stages.
llvm::LogicalResult exportJax(llvm::raw_ostream &os, shd::ProgramOp unplanned,
                              shd::ProgramOp planned,
                              shd::ProgramOp forward = {},
                              const StagePlan *stages = nullptr);

/// Prints prefill and decode of a program that serves, in one file that runs
/// one after the other, with the insertion of the caches between.
llvm::LogicalResult exportJaxServing(llvm::raw_ostream &os,
                                     const ServedPrograms &programs);

} // namespace shardc

#endif // SHARDC_EXPORT_JAX_H
