//===- OutputFile.h - Output that is complete or absent --------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_OUTPUTFILE_H
#define SHARDC_TOOLS_SHARDC_OUTPUTFILE_H

#include "llvm/Support/Error.h"

namespace shardc {

/// Writes `text` to the file `path`, or to standard output if that is `-`. A
/// file appears (or is replaced) only once it is complete.
llvm::Error writeOutput(llvm::StringRef path, llvm::StringRef text);

} // namespace shardc

#endif // SHARDC_TOOLS_SHARDC_OUTPUTFILE_H
