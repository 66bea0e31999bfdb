//===- RecipeChoice.h - How to train on all chips -------------*- C++ -*-===//

#ifndef SHARDC_LIB_QUESTIONS_RECIPECHOICE_H
#define SHARDC_LIB_QUESTIONS_RECIPECHOICE_H

#include "shardc/Questions/MeshChoice.h"

namespace shardc {

/// chooseMesh() for a program that is trained: the mesh is chosen together with
/// pipeline stages, microbatches, schedule and recomputation, as far as the
/// program leaves them open.
std::optional<MeshChoice> chooseRecipe(const ProgramText &text,
                                       llvm::ArrayRef<Setting> settings,
                                       const Program &probe,
                                       const MeshChoiceOptions &options,
                                       std::string &error);

} // namespace shardc

#endif // SHARDC_LIB_QUESTIONS_RECIPECHOICE_H
