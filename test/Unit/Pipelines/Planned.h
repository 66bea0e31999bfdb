//===- Planned.h - Programs and their reports -----------------*- C++ -*-===//

#ifndef SHARDC_TEST_UNIT_PIPELINES_PLANNED_H
#define SHARDC_TEST_UNIT_PIPELINES_PLANNED_H

#include "TestProgram.h"
#include "shardc/Pipelines/FasterBinding.h"
#include "shardc/Pipelines/Pipelines.h"
#include <gtest/gtest.h>

namespace shardc::test {

/// A program on its way to a report, as the driver takes it.
class Planned {
public:
  explicit Planned(llvm::StringRef text, OptMode mode = OptMode::Optimize,
                   Objective objective = Objective::Upper)
      : program(text) {
    mlir::ModuleOp module = program.module();
    if (!module) {
      ADD_FAILURE() << program.messages() << text.str();
      return;
    }
    PlanOptions options;
    options.mode = mode;
    options.objective = objective;
    mlir::PassManager plan(module->getContext());
    buildPlanPipeline(plan, options);
    if (failed(plan.run(module)))
      return;
    planned = module.clone();
    mlir::PassManager lower(module->getContext());
    buildLoweringPipeline(lower);
    if (failed(lower.run(module)))
      return;
    context = createContext(TestProgram::programOf(module));
    if (context)
      report = buildReport(
          TestProgram::programOf(module), context->model,
          scheduleProgram(TestProgram::programOf(module), context->model), {});
  }

  /// A program that cannot be planned as written has no report.
  explicit operator bool() const { return report.has_value(); }

  std::optional<Report::FasterBinding> fasterBinding() {
    return findFasterBinding(*planned, TestProgram::programOf(program.module()),
                             context->model, *report, {});
  }

  TestProgram program;
  mlir::OwningOpRef<mlir::ModuleOp> planned;
  std::unique_ptr<PlanningContext> context;
  std::optional<Report> report;
};

} // namespace shardc::test

#endif // SHARDC_TEST_UNIT_PIPELINES_PLANNED_H
