//===- Remat.h - How a step's recomputation is written ---------*- C++ -*-===//

#ifndef SHARDC_LIB_FRONTEND_REMAT_H
#define SHARDC_LIB_FRONTEND_REMAT_H

#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc {

struct RematLevel {
  shd::Remat remat = shd::Remat::Auto;
  /// The k of `every(k)`; 0 for others.
  int64_t every = 0;
};

/// `auto`, `none`, `full` or `every(4)`; nothing for another text.
std::optional<RematLevel> parseRemat(llvm::StringRef text);

} // namespace shardc

#endif // SHARDC_LIB_FRONTEND_REMAT_H
