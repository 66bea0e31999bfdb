//===- Evaluator.h - Plans and prices a program at points -----*- C++ -*-===//

#ifndef SHARDC_QUESTIONS_EVALUATOR_H
#define SHARDC_QUESTIONS_EVALUATOR_H

#include "shardc/Optimizer/Context.h"
#include "shardc/Optimizer/Options.h"
#include "shardc/Questions/Workers.h"

namespace shardc {

/// Takes a program through the whole compiler at one point after the other, in
/// a context and with pipelines of its own. What the compiler has to say of a
/// point is kept, never printed.
class Evaluator : public PointPlanner {
public:
  /// `file` is what reports call the program.
  Evaluator(const ProgramText &text, const PlanOptions &options,
            std::string file);

  Outcome plan(const Point &point) override;
  Outcome plan(const Variant &variant) override;
  Outcome plan(const Point &point, const Variant &variant);
  bool isLegal(const Point &point) override;

protected:
  const ProgramText &text;
  PlanOptions options;
  std::string file;
  mlir::MLIRContext context;

private:
  std::optional<Report> report(const Point &point, const Variant &variant,
                               std::vector<Layout> &layouts);
  std::optional<Report> reportOnBestMesh(Point point, const Variant &variant,
                                         std::vector<Layout> &layouts,
                                         const Program &probe);
  void shareTables(const Program &program, const Point &point);

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
