//===- NeverWorseTest.cpp - The optimizer against other plans -------------===//
//
// For each objective the plan that is picked is no worse than any
// hand-annotated variant of a model, than propagation, or than random legal
// plans.
//
//===----------------------------------------------------------------------===//

#include "Assignments.h"
#include "Plans.h"
#include "RandomPrograms.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace shardc;
using namespace shardc::test;

namespace {

constexpr Objective kObjectives[] = {Objective::Upper, Objective::Lower,
                                     Objective::Scheduled};

/// How many random plans of each program.
unsigned numPlans() { return setting("SHARDC_TEST_ASSIGNMENTS", 30); }

/// Explicit programs of random assignments; none if the program has no plan.
std::vector<OwningOpRef<ModuleOp>> drawPlans(TestProgram &program,
                                             unsigned count) {
  std::vector<OwningOpRef<ModuleOp>> plans;
  NetworkOptions options;
  options.memoryLimit = kUnlimited;
  PlannedNetwork network(program, options);
  if (!network)
    return plans;
  AssignmentSampler sampler(network.get(), /*seed=*/2);
  while (plans.size() < count) {
    std::optional<std::vector<solver::Label>> assignment = sampler.draw();
    if (!assignment)
      break;
    plans.push_back(network.lower(*assignment));
  }
  return plans;
}

/// The search for `lower` ends within a few parts in a million of its bound.
constexpr double kLowerSlack = 1e-6;

/// Nothing that fits in `limit` takes less than what is picked for it.
void expectNoWorse(TestProgram &program, int64_t limit,
                   llvm::ArrayRef<Placed> others) {
  for (Objective objective : kObjectives) {
    SCOPED_TRACE(std::string(objectiveName(objective)) + " within " +
                 std::to_string(limit));
    std::optional<Picked> picked = optimize(program, limit, objective);
    ASSERT_TRUE(picked);
    double slack = objective == Objective::Lower ? kLowerSlack : 0;
    for (const Placed &other : others)
      if (other.peak <= limit) {
        ASSERT_LE(picked->value, double(other.time(objective)) * (1 + slack));
        ASSERT_LE(picked->bound, other.time(objective));
      }
  }
}

/// Random plans, without a limit and with those that so many percent of them
/// fit in, or one.
unsigned
checkRandomPlans(llvm::function_ref<std::unique_ptr<TestProgram>()> makeProgram,
                 unsigned count, llvm::ArrayRef<unsigned> percents) {
  std::unique_ptr<TestProgram> drawn = makeProgram();
  std::vector<OwningOpRef<ModuleOp>> plans = drawPlans(*drawn, count);
  if (plans.empty())
    return 0;
  std::vector<Placed> free;
  for (const OwningOpRef<ModuleOp> &plan : plans)
    free.push_back(placedAs(TestProgram::programOf(*plan)));
  std::vector<int64_t> peaks;
  for (const Placed &placed : free)
    peaks.push_back(placed.peak);
  llvm::sort(peaks);
  std::unique_ptr<TestProgram> program = makeProgram();
  expectNoWorse(*program, kUnlimited, free);
  for (unsigned percent : percents) {
    int64_t limit = peaks[peaks.size() * percent / 100];
    std::vector<Placed> tight;
    for (const OwningOpRef<ModuleOp> &plan : plans)
      tight.push_back(placedAs(TestProgram::programOf(*plan), limit));
    expectNoWorse(*program, limit, tight);
  }
  return plans.size();
}

struct Model {
  const char *name;
  /// The same by hand; null if there is none.
  const char *variant;
};

class NeverWorse : public ::testing::TestWithParam<Model> {};

TEST_P(NeverWorse, ThanRandomPlans) {
  auto makeProgram = [] {
    return TestProgram::ofModel(std::string(GetParam().name) + ".shd");
  };
  EXPECT_EQ(checkRandomPlans(makeProgram, numPlans(), 50), numPlans());
}

TEST_P(NeverWorse, ThanByHandAndPropagated) {
  std::unique_ptr<TestProgram> program =
      TestProgram::ofModel(std::string(GetParam().name) + ".shd");
  ASSERT_TRUE(program && program->module());
  int64_t capacity = createContext(TestProgram::programOf(program->module()))
                         ->machine()
                         .hbmCapacity;
  // Without annotations everything is whole on every device.
  std::optional<Placed> whole = evaluatePropagated(*program, *program->clone());
  ASSERT_TRUE(whole);
  expectNoWorse(*program, kUnlimited, *whole);
  if (!GetParam().variant)
    return;
  std::unique_ptr<TestProgram> byHand =
      TestProgram::ofModel(std::string(GetParam().variant) + ".shd");
  ASSERT_TRUE(byHand && byHand->module());
  for (int64_t limit : {capacity, kUnlimited}) {
    std::optional<Placed> written =
        evaluateAsWritten(*byHand, *byHand->clone(), limit);
    std::optional<Placed> propagated =
        evaluatePropagated(*byHand, *byHand->clone(), limit);
    ASSERT_TRUE(written && propagated) << byHand->messages();
    std::vector<Placed> others = {*written, *propagated};
    // And with what is left open searched.
    for (Objective objective : kObjectives) {
      std::optional<Picked> searched = optimize(*byHand, limit, objective);
      ASSERT_TRUE(searched);
      others.push_back(searched->placed);
    }
    expectNoWorse(*program, limit, others);
  }
}

constexpr Model kModels[] = {{"ffn", "ffn-megatron"},
                             {"attention", "attention-tp"},
                             {"llama3-8b", nullptr},
                             {"llama3-70b", "llama3-70b-fsdp-tp"},
                             {"llama3-70b-decode", "llama3-70b-decode-tp"},
                             {"llama3-405b", nullptr},
                             {"gpt3-175b", "gpt3-175b-megatron"},
                             {"gemma2-27b", "gemma2-27b-fsdp"}};

INSTANTIATE_TEST_SUITE_P(Models, NeverWorse, ::testing::ValuesIn(kModels),
                         [](const auto &info) {
                           std::string name = info.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(NeverWorseRandomPrograms, ThanRandomPlans) {
  unsigned compared = 0, numPrograms = setting("SHARDC_TEST_PROGRAMS", 12);
  for (uint64_t seed = 0; seed < numPrograms; ++seed) {
    std::string text = randomProgram(seed);
    SCOPED_TRACE(text);
    // Annotations may contradict each other.
    compared +=
        checkRandomPlans([&] { return std::make_unique<TestProgram>(text); },
                         std::min(numPlans(), 40u), {0, 10, 50}) > 0;
    if (HasFatalFailure())
      return;
  }
  EXPECT_GT(compared, numPrograms * 8 / 10);
}

} // namespace
