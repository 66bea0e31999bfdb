//===- Jax.h - A plan as a JAX program -------------------------*- C++ -*-===//
//
// `--emit-jax`: a Python file that runs the program of every device under
// jax.shard_map and compares it with the unsharded program. docs/Jax.md.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_EXPORT_JAX_H
#define SHARDC_EXPORT_JAX_H

#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc {

/// Prints `planned`, whose collectives are explicit, and `unplanned`, the same
/// program before any sharding decision. What JAX cannot do is an error at the
/// operation, and nothing is printed.
llvm::LogicalResult exportJax(llvm::raw_ostream &os, shd::ProgramOp unplanned,
                              shd::ProgramOp planned);

} // namespace shardc

#endif // SHARDC_EXPORT_JAX_H
