//===- EvaluatorTest.cpp - Plans of little effort, and from known ones ----===//

#include "shardc/Questions/Evaluator.h"
#include "shardc/Questions/ProgramSource.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace shardc;

namespace {

/// Plans a model with a part of the usual effort.
class Planner {
public:
  explicit Planner(const std::string &model) {
    auto buffer = llvm::MemoryBuffer::getFile(
        std::string(SHARDC_MODELS_DIR) + "/" + model + ".shd", /*IsText=*/true);
    EXPECT_TRUE(bool(buffer));
    sourceMgr.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
    source.emplace(sourceMgr, &context, Overrides());
    EXPECT_TRUE(source->text);
  }

  Outcome plan(double effort, std::vector<solver::Label> start = {}) {
    Evaluator evaluator(*source->text, PlanOptions(), "");
    Variant variant;
    variant.effort = effort;
    variant.start = std::move(start);
    Outcome outcome = evaluator.plan(variant);
    EXPECT_TRUE(outcome.report);
    EXPECT_FALSE(outcome.labels.empty());
    return outcome;
  }

private:
  MLIRContext context{MLIRContext::Threading::DISABLED};
  llvm::SourceMgr sourceMgr;
  std::optional<ProgramSource> source;
};

/// Next to no work: the plan of the least `upper`.
constexpr double kNone = 1e-9;

// A search that begins with a plan finds none that is slower, however little it
// does by itself; and a bound of little effort is a bound.
TEST(Evaluator, BeginsWithAKnownPlan) {
  Planner planner("llama3-70b-decode");
  Outcome best = planner.plan(1), little = planner.plan(kNone);
  const Report::Plan &known = best.report->plan;
  EXPECT_GT(little.report->plan.value, known.value);
  const Report::Plan quick = planner.plan(kQuickEffort).report->plan;
  ASSERT_TRUE(quick.bound);
  EXPECT_LE(*quick.bound, known.value);
  // Neither search begins with the other's plan.
  EXPECT_GE(quick.value, 0.98 * known.value);
  Outcome again = planner.plan(kNone, best.labels);
  EXPECT_EQ(again.report->plan.value, known.value);
}

// Labels of another network are no plan of this one.
TEST(Evaluator, IgnoresAPlanOfAnotherProgram) {
  Planner planner("matmul-cases");
  double value = planner.plan(kNone).report->plan.value;
  for (std::vector<solver::Label> start :
       {std::vector<solver::Label>{1}, std::vector<solver::Label>(1000, 9999)})
    EXPECT_EQ(planner.plan(kNone, start).report->plan.value, value);
}

} // namespace
