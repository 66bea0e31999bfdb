//===- StepChoice.h - Microbatches and recomputation ----------*- C++ -*-===//
//
// The outer choices of a training step that its program leaves open,
// `microbatches = auto` and `remat = auto`, and the microbatches of a pipeline
// of inference.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_QUESTIONS_STEPCHOICE_H
#define SHARDC_QUESTIONS_STEPCHOICE_H

#include "shardc/Frontend/ProgramText.h"
#include "shardc/Questions/MeshChoice.h"

namespace shardc {

/// True if the program is trained or a pipeline, and microbatches or
/// recomputation are for the compiler to choose.
bool isStepOpen(shd::ProgramOp program);

struct StepChoice {
  StepForm form;
  /// The planned module of the choice, as bytecode.
  std::shared_ptr<const std::string> plan;
  /// The plan as its search knows it.
  std::vector<solver::Label> labels;
  /// Its report, as it is without the search.
  Report report;
  Report::StepSearch search;
  /// Work of its search: operations of the plans that it made, times ten for
  /// each axis of several devices.
  double work = 0;
};

/// Numbers of microbatches that are tried: all that divide the batch, but for
/// very large ones.
std::vector<int64_t> microbatchNumbers(int64_t batch);

/// The form that recomputes what these operations make, and keeps all else for
/// the backward pass.
StepForm recomputing(const ProgramText &text, llvm::ArrayRef<Setting> settings,
                     StepForm form,
                     llvm::function_ref<bool(shd::CostOpInterface)> again);

/// True of a layer norm and the like.
bool isNorm(shd::CostOpInterface op);

/// The form that keeps the results of products, of attention and the like for
/// the backward pass, and recomputes all else.
StepForm keepingProducts(const ProgramText &text,
                         llvm::ArrayRef<Setting> settings, StepForm form);

/// Plans the program with `settings` in several forms of its step and takes the
/// one of the least time that fits, or else that of the least memory. Nothing
/// if none has a plan.
std::optional<StepChoice> chooseStep(const ProgramText &text,
                                     llvm::ArrayRef<Setting> settings,
                                     const MeshChoiceOptions &options);

/// The same of the program in the main buffer of `sourceMgr`.
std::optional<StepChoice> chooseStep(const llvm::SourceMgr &sourceMgr,
                                     const Overrides &overrides,
                                     const MeshChoiceOptions &options);

/// Makes the report of the chosen plan tell of the choice: its bound is that of
/// all forms.
void addStepSearch(Report &report, Report::StepSearch search);

} // namespace shardc

#endif // SHARDC_QUESTIONS_STEPCHOICE_H
