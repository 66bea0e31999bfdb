//===- Passes.h - Passes over the spmd dialect ----------------*- C++ -*-===//

#ifndef SHARDC_DIALECT_SPMD_TRANSFORMS_PASSES_H
#define SHARDC_DIALECT_SPMD_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"
#include "shardc/Dialect/Spmd/IR/Spmd.h"

namespace shardc::spmd {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "shardc/Dialect/Spmd/Transforms/Passes.h.inc"

} // namespace shardc::spmd

#endif // SHARDC_DIALECT_SPMD_TRANSFORMS_PASSES_H
