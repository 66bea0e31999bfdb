//===- TrainingTest.cpp - Training steps on a grid of devices -------------===//
//
// Whatever the layouts are, the devices end with the weights and moments of the
// whole step, and take the memory that is predicted.
//
//===----------------------------------------------------------------------===//

#include "Assignments.h"
#include "Plans.h"
#include "TrainingSteps.h"
#include "shardc/Schedule/ScheduledProgram.h"
#include "shardc/Verify/Verify.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace shardc;
using namespace shardc::test;
using solver::Label;

namespace {

class TrainingVerify : public ::testing::TestWithParam<TrainingStep> {
protected:
  void checkRun(TestProgram &program, ModuleOp planned,
                const CollectiveModel &model, int64_t memory, bool shrink);
};

/// Runs an explicit program in the schedule that fits so much memory.
void TrainingVerify::checkRun(TestProgram &program, ModuleOp planned,
                              const CollectiveModel &model, int64_t memory,
                              bool shrink) {
  ScheduledProgram scheduled =
      scheduleProgram(TestProgram::programOf(planned), model, memory);
  VerifyOptions options;
  options.shrink = shrink;
  options.schedule = &scheduled.issues;
  FailureOr<Verification> result =
      verifyPlan(program.module(), planned, options);
  ASSERT_TRUE(succeeded(result)) << program.messages();
  for (const Verification::Result &each : result->results)
    EXPECT_FALSE(each.differs) << each.name;
  // Weights, moments and gradients.
  EXPECT_EQ(result->results.size(), GetParam().hasHead ? 6u : 3u);
  for (const auto &account : {result->inOrder, result->asScheduled})
    for (int64_t measured : account->measured)
      EXPECT_EQ(measured, account->predicted);
}

TEST_P(TrainingVerify, EveryPlanMakesTheSameWeights) {
  std::unique_ptr<TestProgram> program =
      TestProgram::ofModule(textOf(GetParam()));
  ASSERT_TRUE(program->module()) << program->messages();
  NetworkOptions options;
  options.memoryLimit = int64_t(1) << 50;
  PlannedNetwork network(*program, options);
  ASSERT_TRUE(bool(network)) << program->messages();
  AssignmentSampler sampler(network.get(), /*seed=*/1);
  for (unsigned i = 0, count = setting("SHARDC_TEST_ASSIGNMENTS", 100);
       i < count; ++i) {
    std::optional<std::vector<Label>> assignment = sampler.draw();
    ASSERT_TRUE(assignment);
    OwningOpRef<ModuleOp> lowered = network.lower(*assignment);
    ASSERT_TRUE(lowered) << program->messages();
    for (int64_t memory : {int64_t(0), INT64_MAX})
      checkRun(*program, *lowered, network.planning().model, memory,
               /*shrink=*/i % 4 == 3);
    if (HasFailure()) {
      std::string text;
      llvm::raw_string_ostream(text) << *lowered;
      FAIL() << text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Steps, TrainingVerify,
                         ::testing::ValuesIn(kTrainingSteps),
                         [](const auto &info) { return info.param.name; });

//===----------------------------------------------------------------------===//
// Microbatches
//===----------------------------------------------------------------------===//

/// Numbers from 0 to 1 that depend on the tensor's name and the element.
Tensor numbers(const DeclaredTensor &declared) {
  Tensor tensor(declared.type);
  uint64_t state = 1;
  for (char c : declared.name)
    state = state * 31 + uint64_t(c);
  for (int64_t i = 0; i < tensor.getNumElements(); ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    if (tensor.isReal())
      tensor.setReal(i, double(state >> 11) * 0x1p-53);
    else
      tensor.setInteger(i, int64_t(state >> 61));
  }
  return tensor;
}

/// What an unsharded step leaves, by name and iteration.
std::map<std::pair<std::string, std::vector<int64_t>>, std::vector<double>>
resultsOf(const std::string &text) {
  TestProgram program(text);
  EXPECT_TRUE(program.module() && program.makeStep()) << program.messages();
  RunOptions options;
  options.positions = PositionPolicy::Wrap;
  options.declared = numbers;
  FailureOr<RunResult> run =
      interpret(TestProgram::programOf(program.module()), options);
  EXPECT_TRUE(succeeded(run)) << program.messages();
  std::map<std::pair<std::string, std::vector<int64_t>>, std::vector<double>>
      results;
  for (const RunResult::Final &final : run->finals)
    results[{final.name, std::vector<int64_t>(final.iterations.begin(),
                                              final.iterations.end())}] =
        std::vector<double>(final.parts.front()->getReals());
  return results;
}

/// The result of a step does not depend on the number of microbatches: losses
/// that are sums and means over the batch, with factors and summands that the
/// batch does not enter, which count once.
TEST(Microbatches, DoNotChangeTheStep) {
  for (StringRef loss :
       {"mean[B, T](cross_entropy[V](z, labels))",
        "sum[B, T](cross_entropy[V](z, labels))",
        "mean[B](sum[T, D](square(h)))",
        "mean[B, T](cross_entropy[V](z, labels)) + 0.1 * sum[D, V](square(W))",
        "mean[B, T](cross_entropy[V](z, labels)) * mean[D, V](square(W))"}) {
    auto textOf = [&](int microbatches) {
      return "hardware tpu_v5e[1, 1]\nmesh [X=1]\n"
             "dim B = 8, T = 3, V = 8, D = 4, D2 = 6, L = 2\n"
             "input tokens: int32[B, T]\ninput labels: int32[B, T]\n"
             "weight E: f32[V, D]\nweight W: f32[D, V]\n"
             "h[B, T, D] = E[tokens[B, T], D]\n"
             "repeat L {\n"
             "  weight U: f32[D, D2]\n"
             "  u[B, T, D2] = tanh(h[B, T, D] * U[D, D2])\n"
             "  weight Y: f32[D2, D]\n"
             "  h[B, T, D] += u[B, T, D2] * Y[D2, D]\n"
             "}\n"
             "z[B, T, V] = h[B, T, D] * W[D, V]\n"
             "loss[] = " +
             loss.str() +
             "\ntrain {\n  loss = loss\n  clip = 0.5\n  microbatches = " +
             std::to_string(microbatches) + "\n}\n";
    };
    auto whole = resultsOf(textOf(1));
    EXPECT_GE(whole.size(), 20u);
    for (int count : {2, 4}) {
      auto parts = resultsOf(textOf(count));
      for (const auto &[key, expected] : whole) {
        auto found = parts.find(key);
        ASSERT_TRUE(found != parts.end()) << key.first;
        ASSERT_EQ(found->second.size(), expected.size());
        for (size_t i = 0; i < expected.size(); ++i)
          EXPECT_NEAR(found->second[i], expected[i],
                      1e-12 * std::max(1.0, std::abs(expected[i])))
              << loss.str() << ": " << key.first << ", " << count
              << " microbatches";
      }
      EXPECT_EQ(parts.size(), whole.size());
    }
  }
}

//===----------------------------------------------------------------------===//
// Gradients against differences
//===----------------------------------------------------------------------===//

/// Steps with two layers, whose updates are fused or follow the backward pass.
std::string smallStep(StringRef optimizer, StringRef update) {
  return ("hardware tpu_v5e[1, 1]\nmesh [X=1]\ndim B = 4, E = 3, D = 3, L = 2\n"
          "input x0: f32[B, E]\nweight V: f32[E, D]\n"
          "x[B, D] = x0[B, E] * V[E, D]\n"
          "repeat L {\n  weight W: f32[D]\n"
          "  x[B, D] = tanh(x[B, D] * W[D])\n}\n"
          "loss[] = mean[B, D](square(x))\n"
          "train {\n  loss = loss\n  optimizer = " +
          optimizer + "\n  update = " + update +
          "\n  microbatches = 1\n  remat = none\n}\n")
      .str();
}

/// Exchanges what a weight's gradient is for twice of it. Returns false for
/// another operation than one that writes or reads a gradient.
bool doubleGradient(Operation *op) {
  if (auto update = dyn_cast<shd::UpdateOp>(op)) {
    if (update.getDeclaration().getKind() != shd::TensorKind::Gradient)
      return false;
  } else if (!isa<shd::AdamWOp, shd::SgdOp>(op) ||
             op->getOperand(0).getDefiningOp<shd::PartOp>() ||
             op->getOperand(0).getDefiningOp<shd::DeclareOp>()) {
    return false;
  }
  OpBuilder builder(op);
  Value gradient = op->getOperand(0);
  bool isVector = cast<RankedTensorType>(gradient.getType()).getRank() == 1;
  ArrayAttr indices = isVector ? builder.getStrArrayAttr({"D"})
                               : builder.getStrArrayAttr({"E", "D"});
  auto twice = shd::ElementwiseOp::create(
      builder, op->getLoc(), gradient.getType(), shd::Function::Add,
      ValueRange{gradient, gradient},
      shd::IndexingAttr::get(op->getContext(), {indices, indices}, indices));
  op->setOperand(0, twice.getResult());
  return true;
}

TEST(Gradients, WrongOnesAreNoticed) {
  for (StringRef optimizer : {"adamw", "sgd"})
    for (StringRef update : {"fused", "auto"}) {
      TestProgram program(smallStep(optimizer, update));
      ASSERT_TRUE(program.module() && program.makeStep()) << program.messages();
      shd::ProgramOp step = TestProgram::programOf(program.module());
      RunOptions options;
      options.declared = numbers;
      auto wrong = [&] {
        FailureOr<RunResult> run = interpret(step, options);
        EXPECT_TRUE(succeeded(run)) << program.messages();
        FailureOr<Verification::Gradients> found =
            checkGradients(step, *run, options, /*seed=*/1);
        EXPECT_TRUE(succeeded(found)) << program.messages();
        EXPECT_EQ(found->directions, 4u);
        return found->wrong.size();
      };
      EXPECT_EQ(wrong(), 0u) << optimizer.str() << ", " << update.str();
      SmallVector<Operation *> all;
      step.walk([&](Operation *op) { all.push_back(op); });
      unsigned doubled = 0;
      for (Operation *op : all)
        doubled += doubleGradient(op);
      EXPECT_EQ(doubled, 2u);
      // Two directions of both weights.
      EXPECT_EQ(wrong(), 4u) << optimizer.str() << ", " << update.str();
    }
}

} // namespace
