//===- Evaluator.h - Plans and prices variants of a program ---*- C++ -*-===//

#ifndef SHARDC_QUESTIONS_EVALUATOR_H
#define SHARDC_QUESTIONS_EVALUATOR_H

#include "shardc/Optimizer/Context.h"
#include "shardc/Optimizer/Options.h"
#include "shardc/Optimizer/SearchStart.h"
#include "shardc/Questions/MeshChoice.h"
#include "shardc/Questions/TrialRunner.h"

namespace shardc {

/// Takes one variant of a program after the other through the whole compiler,
/// in a context of its own. What the compiler has to say of a variant is kept,
/// never printed.
class Evaluator : public TrialPlanner {
public:
  /// `file` is what reports call the program.
  Evaluator(const ProgramText &text, const PlanOptions &options,
            std::string file);

  Outcome plan(const Variant &variant) override;
  bool isLegal(const Point &point) override;
  /// Ends searches soon after the flag, if there is one, becomes true.
  void stopAt(const std::atomic<bool> *flag) { interrupted = flag; }
  /// Plans training steps that leave choices open in a form that is quick to
  /// find, in place of the best.
  void takeQuickSteps() { choosesSteps = false; }
  void takeFullSteps() { choosesSteps = true; }
  /// Where choices are open, takes the first ones with a plan that fits, in
  /// place of the best.
  void seekFit() { seeksFit = true; }

protected:
  const ProgramText &text;
  PlanOptions options;
  std::string file;
  mlir::MLIRContext context;

private:
  std::optional<Report> report(const Variant &variant, Outcome &outcome);
  std::optional<Report> reportOnBestMesh(Variant variant, Outcome &outcome,
                                         const Program &probe);
  std::optional<Report> reportOnLargestBatch(Variant variant, Outcome &outcome,
                                             const Program &probe);
  std::optional<Report> reportBestStep(Variant variant, Outcome &outcome);
  MeshChoiceOptions choiceOptions(const Variant &variant) const;
  /// The flag that ends its search early, or null.
  const std::atomic<bool> *flagOf(const Variant &variant) const {
    return variant.ignoresInterrupt ? nullptr : interrupted;
  }
  /// When its search ends, from now on.
  solver::Deadline deadlineOf(const Variant &variant) const;
  void shareTables(const Program &program, const Variant &variant);
  const ProgramText &textOf(const Variant &variant) const {
    return variant.text ? *variant.text : text;
  }

  /// The machine, mesh and binding of the shared tables.
  struct Place {
    const ast::HardwareDecl *machine = nullptr;
    llvm::SmallVector<int64_t, 4> shape;
    Mesh mesh;
    decltype(MeshBinding::parts) binding;

    bool operator==(const Place &other) const = default;
  };
  const std::atomic<bool> *interrupted = nullptr;
  bool choosesSteps = true;
  bool seeksFit = false;
  /// The choices of the step of the variant at hand, if they are made.
  std::shared_ptr<const StepChoice> knownStep = nullptr;
  SharedTables *tables = nullptr;
  SearchStart *search = nullptr;
  Place place;
};

} // namespace shardc

#endif // SHARDC_QUESTIONS_EVALUATOR_H
