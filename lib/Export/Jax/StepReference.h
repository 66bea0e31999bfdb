//===- StepReference.h - A training step by JAX's derivative ----*- C++ -*-===//
//
// Private to lib/Export/Jax: the reference of a training step. JAX
// differentiates the program that the step was made of, and the update is
// written here from the `train` block: neither shd-differentiate nor
// shd-add-optimizer has a part in it.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_EXPORT_JAX_STEPREFERENCE_H
#define SHARDC_LIB_EXPORT_JAX_STEPREFERENCE_H

#include "PythonFile.h"

namespace shardc::jax {

class StepReference {
public:
  /// `step` is the unsharded one, whose tensors have names in the file.
  StepReference(PythonFile &file, shd::ProgramOp step);

  /// `TRAINED`: the weights that the step updates, and what the optimizer has
  /// of each.
  std::string table() const;
  /// `reference`, which calls `forward_program`.
  std::string function();
  /// Statements that make random `values` a state that the optimizer can be
  /// in.
  std::string possibleState() const;

private:
  /// A weight, the tensor that is updated (its master copy, if it has one), and
  /// the optimizer's moments in the order in which an update takes them.
  struct Trained {
    shd::DeclareOp weight, stored;
    llvm::SmallVector<shd::DeclareOp, 2> moments;
  };

  void findTrained(shd::ProgramOp step);
  std::string nameOf(shd::DeclareOp tensor) const;
  /// `old["optimizer_step"]`, of the number of steps.
  std::string counter(llvm::StringRef values) const;
  std::string conversions(const std::string &gradient);
  std::string update();

  PythonFile &file;
  shd::TrainingAttr training;
  llvm::SmallVector<Trained> all;
  /// The number of steps so far; null if the optimizer needs none.
  shd::DeclareOp steps;
};

} // namespace shardc::jax

#endif // SHARDC_LIB_EXPORT_JAX_STEPREFERENCE_H
