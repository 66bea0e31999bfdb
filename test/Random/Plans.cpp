//===- Plans.cpp - Several plans of a program -----------------------------===//

#include "Plans.h"
#include "Assignments.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::test;

/// Verifiers speak of operations, errors of programs do not.
static bool isDefect(const std::string &messages) {
  return messages.find("'shd.") != std::string::npos;
}

/// Random pins that together make a plan; false if there is none.
static bool pinAtRandom(TestProgram &text, uint64_t seed) {
  NetworkOptions options;
  options.memoryLimit = int64_t(1) << 50;
  PlannedNetwork network(text, options);
  if (!network)
    return false;
  AssignmentSampler sampler(network.get(), seed);
  std::optional<std::vector<solver::Label>> assignment = sampler.draw();
  if (assignment)
    network.apply(*assignment);
  return assignment.has_value();
}

static PlanOptions optionsOf(const std::string &how) {
  PlanOptions options;
  options.mode = how == "none"        ? OptMode::None
                 : how == "propagate" ? OptMode::Propagate
                                      : OptMode::Optimize;
  if (how == "upper")
    options.objective = Objective::Upper;
  return options;
}

/// The text planned; nothing if it cannot be.
static std::optional<Compilation> plan(TestProgram &text,
                                       const std::string &how, uint64_t seed) {
  bool isRandom = how == "random";
  if (isRandom && !pinAtRandom(text, seed))
    return std::nullopt;
  Compilation compilation(text.clone(),
                          isRandom ? Compilation::Stage::Planned
                                   : Compilation::Stage::Imported,
                          {optionsOf(how)});
  if (failed(compilation.plan()))
    return std::nullopt;
  return compilation;
}

std::unique_ptr<PlannedProgram>
test::planText(TestProgram &text, const Overrides &overrides,
               const std::string &how, uint64_t seed, std::string &failure) {
  OwningOpRef<ModuleOp> forward = text.clone();
  if (!text.makeStep()) {
    if (isDefect(text.messages()))
      failure = text.messages();
    return nullptr;
  }
  OwningOpRef<ModuleOp> imported = text.clone();
  std::optional<Compilation> compilation = plan(text, how, seed);
  if (!compilation) {
    if (isDefect(text.messages()))
      failure = text.messages();
    return nullptr;
  }
  std::unique_ptr<PlannedProgram> result(
      new PlannedProgram{text, overrides, how, std::move(imported),
                         compilation->clone(), std::move(*compilation)});
  Compilation &explicitPlan = result->compilation;
  if (failed(verify(explicitPlan.module())) || failed(explicitPlan.lower())) {
    failure = "a plan that cannot be made explicit\n" + text.messages();
    return nullptr;
  }
  result->forward = std::move(forward);
  result->report = buildReport(explicitPlan, {});
  return result;
}

Outcome test::onPlans(const std::string &text, const Overrides &overrides,
                      uint64_t seed,
                      llvm::function_ref<bool(PlannedProgram &)> check) {
  Outcome outcome;
  for (const char *how :
       {"scheduled", "upper", "propagate", "none", "random"}) {
    TestProgram program(text, overrides);
    outcome.failedPlan = how;
    if (!program.module()) {
      outcome.isRejected = true;
      outcome.messages = program.messages();
      if (isDefect(program.messages()))
        outcome.failure = program.messages();
      return outcome;
    }
    if (failed(verify(program.module()))) {
      outcome.failure = program.messages();
      return outcome;
    }
    std::unique_ptr<PlannedProgram> planned =
        planText(program, overrides, how, seed, outcome.failure);
    if (!outcome.failure.empty())
      return outcome;
    if (!planned) {
      ++outcome.impossible;
      outcome.messages = program.messages();
      continue;
    }
    ++outcome.plans;
    if (!check(*planned))
      return outcome;
  }
  return outcome;
}
