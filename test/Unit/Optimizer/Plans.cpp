//===- Plans.cpp - What plans of a program take ---------------------------===//

#include "Plans.h"
#include "Assignments.h"
#include "shardc/Schedule/Memory.h"
#include "shardc/Schedule/ScheduledProgram.h"
#include <cstdlib>
#include <gtest/gtest.h>

using namespace mlir;
using namespace shardc;
using namespace shardc::test;

Placed test::placedAs(shd::ProgramOp planned, int64_t memoryLimit) {
  std::unique_ptr<PlanningContext> context = createContext(planned);
  Schedule schedule =
      scheduleProgram(planned, context->model, memoryLimit).schedule;
  return {totalPicoseconds(planned), schedule.lower, schedule.scheduled,
          profileMemory(planned).peak};
}

/// After these passes the layouts are given; what they make of the program.
static std::optional<Placed>
evaluateFixed(TestProgram &program, ModuleOp module, int64_t memoryLimit,
              llvm::function_ref<void(OpPassManager &)> addPasses) {
  if (!program.run(module, [&](OpPassManager &manager) {
        addPasses(manager);
        manager.addPass(shd::createShdReplicateOpen());
        manager.addPass(shd::createShdFusionGroups());
        shd::ShdOptimizeOptions options;
        options.fixed = true;
        manager.addPass(shd::createShdOptimize(options));
        manager.addPass(shd::createShdInsertCollectives());
        manager.addPass(shd::createShdAnnotateCost());
      }))
    return std::nullopt;
  shd::ProgramOp planned = TestProgram::programOf(module);
  auto plan = planned->getAttrOfType<DictionaryAttr>(shd::kPlan);
  Placed placed = placedAs(planned, memoryLimit);
  EXPECT_EQ(plan.getAs<IntegerAttr>("value_ps").getInt(), placed.upper);
  return placed;
}

std::optional<Placed> test::evaluateAsWritten(TestProgram &program,
                                              ModuleOp module,
                                              int64_t memoryLimit) {
  return evaluateFixed(program, module, memoryLimit, [](OpPassManager &) {});
}

std::optional<Placed> test::evaluatePropagated(TestProgram &program,
                                               ModuleOp module,
                                               int64_t memoryLimit) {
  return evaluateFixed(program, module, memoryLimit,
                       [](OpPassManager &manager) {
                         manager.addPass(shd::createShdPropagate());
                       });
}

std::optional<Picked> test::optimize(TestProgram &program, int64_t memoryLimit,
                                     Objective objective) {
  OwningOpRef<ModuleOp> module = program.clone();
  if (!program.run(*module, [&](OpPassManager &manager) {
        manager.addPass(shd::createShdFusionGroups());
        shd::ShdOptimizeOptions options;
        options.memoryLimit = memoryLimit;
        options.objective = objective;
        manager.addPass(shd::createShdOptimize(options));
        manager.addPass(shd::createShdApplyOrder());
        manager.addPass(shd::createShdInsertCollectives());
        manager.addPass(shd::createShdAnnotateCost());
      })) {
    ADD_FAILURE() << program.messages();
    return std::nullopt;
  }
  shd::ProgramOp planned = TestProgram::programOf(*module);
  auto plan = planned->getAttrOfType<DictionaryAttr>(shd::kPlan);
  Picked picked;
  picked.status = plan.getAs<StringAttr>("status").str();
  picked.value = plan.getAs<IntegerAttr>("value_ps").getInt();
  picked.placed = placedAs(planned, memoryLimit);
  EXPECT_EQ(picked.value, picked.placed.time(objective));
  auto bound = plan.getAs<IntegerAttr>("bound_ps");
  if (!bound) {
    ADD_FAILURE() << "no plan fits in " << memoryLimit;
    return std::nullopt;
  }
  picked.bound = bound.getInt();
  EXPECT_LE(picked.bound, picked.value);
  EXPECT_LE(picked.placed.peak, memoryLimit);
  return picked;
}

unsigned test::setting(const char *name, unsigned usual) {
  unsigned count = usual;
  if (const char *wanted = std::getenv(name))
    if (llvm::StringRef(wanted).getAsInteger(10, count))
      ADD_FAILURE() << name << " is no number";
  return count;
}
