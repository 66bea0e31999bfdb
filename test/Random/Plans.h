//===- Plans.h - Several plans of a program -------------------*- C++ -*-===//
//
// Subjects of checks of random programs: a program, a plan of it at every
// stage, and its report.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TEST_RANDOM_PLANS_H
#define SHARDC_TEST_RANDOM_PLANS_H

#include "RandomProgram.h"
#include "TestProgram.h"
#include "shardc/Pipelines/Compilation.h"
#include "shardc/Report/Report.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace shardc::test {

struct PlannedProgram {
  /// Owns the context of the modules and the machine.
  TestProgram &text;
  /// How `text` was read.
  const Overrides &overrides;
  /// `scheduled` or `upper`, the objective of the search; `propagate`, `none`;
  /// or `random` for random legal pins.
  std::string plan;
  /// As written, and with a closed pin on every value and use.
  mlir::OwningOpRef<mlir::ModuleOp> imported, planned;
  Compilation compilation;
  std::optional<Report> report = {};
  /// Of a program that is trained, what was differentiated.
  mlir::OwningOpRef<mlir::ModuleOp> forward = {};
  /// False if it cannot be written as a program.
  bool hasText = true;

  /// With shardings in types, collectives and costs.
  mlir::ModuleOp lowered() { return compilation.module(); }
  const CollectiveModel &model() { return compilation.planning()->model; }
};

/// Outcome of a program.
struct Outcome {
  /// Its text has errors.
  bool isRejected = false;
  /// Plans made, and those of which an error says that annotations forbid them.
  unsigned plans = 0, impossible = 0;
  /// A defect of shardc on the way: the plan and what was said.
  std::string failedPlan, failure;
  /// Diagnostics of a rejected program or an impossible plan.
  std::string messages;
};

/// Calls `check` on each plan that the program has, until it returns false.
Outcome onPlans(const std::string &text, const Overrides &overrides,
                uint64_t seed,
                llvm::function_ref<bool(PlannedProgram &)> check);

/// Plans the text in one of the modes, for comparison; null after an error.
std::unique_ptr<PlannedProgram> planText(TestProgram &text,
                                         const Overrides &overrides,
                                         const std::string &plan, uint64_t seed,
                                         std::string &failure);

} // namespace shardc::test

#endif // SHARDC_TEST_RANDOM_PLANS_H
