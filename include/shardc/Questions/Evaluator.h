//===- Evaluator.h - Plans and prices variants of a program ---*- C++ -*-===//

#ifndef SHARDC_QUESTIONS_EVALUATOR_H
#define SHARDC_QUESTIONS_EVALUATOR_H

#include "shardc/Optimizer/Context.h"
#include "shardc/Optimizer/Options.h"
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

protected:
  const ProgramText &text;
  PlanOptions options;
  std::string file;
  mlir::MLIRContext context;

private:
  std::optional<Report> report(const Variant &variant,
                               std::vector<Layout> &layouts);
  std::optional<Report> reportOnBestMesh(Variant variant,
                                         std::vector<Layout> &layouts,
                                         const Program &probe);
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
  SharedTables *tables = nullptr;
  Place place;
};

} // namespace shardc

#endif // SHARDC_QUESTIONS_EVALUATOR_H
