//===- FrameworkProgram.h - A program as a framework runs it --*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_FRAMEWORKPROGRAM_H
#define SHARDC_TOOLS_SHARDC_FRAMEWORKPROGRAM_H

#include "shardc/Frontend/Frontend.h"
#include "llvm/Support/SourceMgr.h"

namespace shardc {

/// `--from-config`: gives the program in the main buffer of `program` the mesh,
/// the roles of axes and the form of the step that the framework's options in
/// `path` mean. False after errors, which were printed.
bool applyFrameworkFile(llvm::StringRef path, llvm::SourceMgr &program,
                        Overrides &overrides);

} // namespace shardc

#endif // SHARDC_TOOLS_SHARDC_FRAMEWORKPROGRAM_H
