//===- Plans.h - What plans of a program take ------------------*- C++ -*-===//
//
// Plans that the optimizer picks and plans that a program spells out, and what
// each takes, counted in the explicit program.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TEST_UNIT_OPTIMIZER_PLANS_H
#define SHARDC_TEST_UNIT_OPTIMIZER_PLANS_H

#include "TestProgram.h"

namespace shardc::test {

inline constexpr int64_t kUnlimited = int64_t(1) << 50;

/// Times in picoseconds.
struct Placed {
  int64_t upper = 0, lower = 0, scheduled = 0;
  int64_t peak = 0;

  int64_t time(Objective objective) const {
    return objective == Objective::Lower       ? lower
           : objective == Objective::Scheduled ? scheduled
                                               : upper;
  }
};

/// What an explicit program takes, scheduled in so much memory.
Placed placedAs(shd::ProgramOp planned, int64_t memoryLimit = kUnlimited);

/// What a program takes whose pins say everything that can be written; nothing
/// if they contradict each other. The module is made explicit.
std::optional<Placed> evaluateAsWritten(TestProgram &program,
                                        mlir::ModuleOp module,
                                        int64_t memoryLimit = kUnlimited);

/// The same of what `--opt=propagate` gives.
std::optional<Placed> evaluatePropagated(TestProgram &program,
                                         mlir::ModuleOp module,
                                         int64_t memoryLimit = kUnlimited);

struct Picked {
  std::string status;
  int64_t value = 0, bound = 0;
  Placed placed;
};

/// Runs the whole optimizer; checks that what it says is what the explicit
/// program takes, and that its bound is none above that.
std::optional<Picked> optimize(TestProgram &program, int64_t memoryLimit,
                               Objective objective);

/// The environment's number, or `usual`.
unsigned setting(const char *name, unsigned usual);

} // namespace shardc::test

#endif // SHARDC_TEST_UNIT_OPTIMIZER_PLANS_H
