//===- Passes.h - Conversions between dialects ----------------*- C++ -*-===//

#ifndef SHARDC_CONVERSION_PASSES_H
#define SHARDC_CONVERSION_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "shardc/Dialect/Spmd/IR/Spmd.h"

namespace shardc {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "shardc/Conversion/Passes.h.inc"

} // namespace shardc

#endif // SHARDC_CONVERSION_PASSES_H
