//===- Parse.h - From text to the AST -------------------------*- C++ -*-===//
//
// The parser's interface to the rest of the front end. Syntax errors are
// reported through `files`; for an option's text the result is then null.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_FRONTEND_PARSE_H
#define SHARDC_LIB_FRONTEND_PARSE_H

#include "Source.h"
#include "shardc/Frontend/Ast.h"
#include "llvm/ADT/StringRef.h"

namespace shardc {

/// Parses one buffer of the source manager. Null after an error that leaves no
/// file to check; errors in single statements leave BrokenItems.
std::unique_ptr<ast::File> parseFile(SourceFiles &files, unsigned bufferId);

/// The text of `--hardware`: what follows `hardware` in a file. The text
/// becomes a buffer named `--hardware`, and so for the other two.
std::unique_ptr<ast::HardwareDecl> parseHardwareOverride(SourceFiles &files,
                                                         llvm::StringRef text);

/// The text of `--mesh`: what follows `mesh` in a file.
std::unique_ptr<ast::MeshDecl> parseMeshOverride(SourceFiles &files,
                                                 llvm::StringRef text);

/// The text of `--dim`: one definition.
std::optional<ast::DimDef> parseDimOverride(SourceFiles &files,
                                            llvm::StringRef text);

/// The text of `option`, --sweep or --crossover.
std::unique_ptr<ast::Question>
parseQuestion(SourceFiles &files, llvm::StringRef option, llvm::StringRef text);

} // namespace shardc

#endif // SHARDC_LIB_FRONTEND_PARSE_H
