//===- Passes.h - Passes over the shd dialect -----------------*- C++ -*-===//

#ifndef SHARDC_DIALECT_SHD_TRANSFORMS_PASSES_H
#define SHARDC_DIALECT_SHD_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"
#include "shardc/Dialect/Shd/IR/Shd.h"
#include "shardc/Optimizer/Options.h"

namespace shardc::shd {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "shardc/Dialect/Shd/Transforms/Passes.h.inc"

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_TRANSFORMS_PASSES_H
