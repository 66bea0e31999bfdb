//===- Planned.h - Programs and their reports -----------------*- C++ -*-===//

#ifndef SHARDC_TEST_UNIT_PIPELINES_PLANNED_H
#define SHARDC_TEST_UNIT_PIPELINES_PLANNED_H

#include "TestProgram.h"
#include "shardc/Pipelines/Compilation.h"
#include "shardc/Report/Report.h"
#include <gtest/gtest.h>

namespace shardc::test {

/// A program on its way to a report, as the driver takes it.
class Planned {
public:
  explicit Planned(llvm::StringRef text, OptMode mode = OptMode::Optimize,
                   Objective objective = Objective::Upper)
      : program(text) {
    if (!program.module()) {
      ADD_FAILURE() << program.messages() << text.str();
      return;
    }
    PlanOptions options;
    options.mode = mode;
    options.objective = objective;
    compilation.emplace(program.clone(), Compilation::Stage::Imported,
                        CompileOptions{options});
    if (failed(compilation->plan()))
      return;
    planned = compilation->clone();
    report = buildReport(*compilation, {});
  }

  /// A program that cannot be planned as written has no report.
  explicit operator bool() const { return report.has_value(); }

  TestProgram program;
  std::optional<Compilation> compilation;
  /// Before it was made explicit.
  mlir::OwningOpRef<mlir::ModuleOp> planned;
  std::optional<Report> report;
};

} // namespace shardc::test

#endif // SHARDC_TEST_UNIT_PIPELINES_PLANNED_H
