//===- ConfigProgram.h - A program in place of a config -------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_CONFIGPROGRAM_H
#define SHARDC_TOOLS_SHARDC_CONFIGPROGRAM_H

#include "shardc/Import/Import.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>

namespace shardc {

/// The program of a checkpoint's config, in a buffer whose name says that its
/// lines are those of `--emit-program`; null after errors, which are printed
/// where the config has them.
std::unique_ptr<llvm::MemoryBuffer>
programOfConfig(std::unique_ptr<llvm::MemoryBuffer> config,
                const import::ImportOptions &options);

} // namespace shardc

#endif // SHARDC_TOOLS_SHARDC_CONFIGPROGRAM_H
