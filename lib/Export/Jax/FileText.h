//===- FileText.h - Text that all exported files have -----------*- C++ -*-===//
//
// Private to lib/Export/Jax.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_EXPORT_JAX_FILETEXT_H
#define SHARDC_LIB_EXPORT_JAX_FILETEXT_H

#include "PythonFile.h"

namespace shardc::jax {

/// Keeps names of the module from values of its functions.
void reserveModuleNames(PythonNames &names);
/// How a file is run, in its first comment.
llvm::StringRef usage();
/// Imports and the command line's options, for a file with these helpers.
std::string optionsText(llvm::StringRef definitions);
/// Every index and other number: its value in both forms.
std::string sizeTable(const PythonFile &file);
/// Imports JAX with as many host devices as the expression `devices` says.
std::string startText(llvm::StringRef devices);
/// The element types that the file mentions so far.
std::string typeTable(PythonFile &file);
/// `random_array`, which makes an argument, and `difference`, which compares.
llvm::StringRef comparisonText();
/// The tolerance of `main`, in a line of its own.
llvm::StringRef toleranceText();

} // namespace shardc::jax

#endif // SHARDC_LIB_EXPORT_JAX_FILETEXT_H
