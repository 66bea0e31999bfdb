//===- Stages.h - The repeat with pipeline stages --------------*- C++ -*-===//
//
// `repeat L@pp { ... }`: found before anything is emitted, since no tensor lies
// on the axis of the stages.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_FRONTEND_STAGES_H
#define SHARDC_LIB_FRONTEND_STAGES_H

#include "Dims.h"
#include "MeshImport.h"
#include "Source.h"
#include "shardc/Frontend/Ast.h"

namespace shardc {

/// The orders of stages, for messages.
inline constexpr llvm::StringLiteral kOrderNames =
    "auto, gpipe, 1f1b, 1f1b(2), interleaved(v), zero_bubble or "
    "zero_bubble(2)";

/// True for `repeat L@pp`.
bool hasStages(const ast::RepeatStmt &repeat);

/// The repeat of the main file whose index lies on an axis; null if there is
/// none, or after an error, which has been reported.
const ast::RepeatStmt *findStages(SourceFiles &files,
                                  llvm::ArrayRef<ast::ItemPtr> main);

/// The repeat of the main file with the most iterations, of equal ones the
/// first: the layers of a program that places no repeat. Null if there is none.
const ast::RepeatStmt *findLayers(DimScope &dims,
                                  llvm::ArrayRef<ast::ItemPtr> main);

/// Takes the axis of the stages away from tensors; false after an error.
bool markStages(SourceFiles &files, const ast::Name &axis, ImportedMesh &mesh);

} // namespace shardc

#endif // SHARDC_LIB_FRONTEND_STAGES_H
