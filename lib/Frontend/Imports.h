//===- Imports.h - The main file and what it imports -----------*- C++ -*-===//
//
// `import "file.shd"`: paths relative to the importing file, each file once.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_FRONTEND_IMPORTS_H
#define SHARDC_LIB_FRONTEND_IMPORTS_H

#include "Source.h"
#include "shardc/Frontend/Ast.h"

namespace shardc {

/// Parses the main file of the source manager and all that it imports, the main
/// file first and the others in the order of their first import. Paths in the
/// main file are relative to the source manager's first include directory, or
/// to the file's own where it has none. Reports every error; empty if there was
/// one.
std::vector<std::unique_ptr<ast::File>> parseProgram(SourceFiles &files);

} // namespace shardc

#endif // SHARDC_LIB_FRONTEND_IMPORTS_H
