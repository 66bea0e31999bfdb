//===- Serving.h - The serve block ----------------------------*- C++ -*-===//

#ifndef SHARDC_LIB_FRONTEND_SERVING_H
#define SHARDC_LIB_FRONTEND_SERVING_H

#include "Dims.h"
#include "shardc/Dialect/Shd/IR/Serving.h"

namespace shardc {

/// What a `serve` block says, with the extents that `dims` gives its indices;
/// nothing after an error.
std::optional<shd::Serving> readServeBlock(SourceFiles &files,
                                           const ast::ServeBlock &block,
                                           DimScope &dims);

/// Checks the block against the imported program, and writes it and the phase,
/// if one is wanted, as its attributes.
void markServing(SourceFiles &files, const ast::ServeBlock &block,
                 const shd::Serving &serving,
                 std::optional<shd::ServingPhase> phase,
                 shd::ProgramOp program);

} // namespace shardc

#endif // SHARDC_LIB_FRONTEND_SERVING_H
