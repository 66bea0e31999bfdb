//===- Framework.h - Frameworks that run plans ----------------*- C++ -*-===//

#ifndef SHARDC_FRONTEND_FRAMEWORK_H
#define SHARDC_FRONTEND_FRAMEWORK_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/ErrorHandling.h"

namespace shardc {

enum class Framework { Megatron, Torchtitan, MaxText };

/// The one of three that is the framework's.
template <typename T>
const T &pickFor(Framework framework, const T &megatron, const T &torchtitan,
                 const T &maxText) {
  switch (framework) {
  case Framework::Megatron:
    return megatron;
  case Framework::Torchtitan:
    return torchtitan;
  case Framework::MaxText:
    return maxText;
  }
  llvm_unreachable("a framework");
}

/// As its authors write it.
inline llvm::StringRef frameworkName(Framework framework) {
  return pickFor<llvm::StringRef>(framework, "Megatron-LM", "torchtitan",
                                  "MaxText");
}

} // namespace shardc

#endif // SHARDC_FRONTEND_FRAMEWORK_H
