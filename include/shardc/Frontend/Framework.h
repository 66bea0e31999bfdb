//===- Framework.h - Frameworks that run plans ----------------*- C++ -*-===//

#ifndef SHARDC_FRONTEND_FRAMEWORK_H
#define SHARDC_FRONTEND_FRAMEWORK_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/ErrorHandling.h"

namespace shardc {

enum class Framework { Megatron, Torchtitan, MaxText };

/// As its authors write it.
inline llvm::StringRef frameworkName(Framework framework) {
  switch (framework) {
  case Framework::Megatron:
    return "Megatron-LM";
  case Framework::Torchtitan:
    return "torchtitan";
  case Framework::MaxText:
    return "MaxText";
  }
  llvm_unreachable("a framework");
}

} // namespace shardc

#endif // SHARDC_FRONTEND_FRAMEWORK_H
