//===- ServingTest.cpp - Prefill, then decoding, in two plans -------------===//
//
// A phase that is wrong in both of its programs agrees with itself; only the
// other phase, which goes on from its caches, shows it.
//
//===----------------------------------------------------------------------===//

#include "shardc/Verify/Serving.h"
#include "shardc/Pipelines/Compilation.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace shardc;
using shd::ServingPhase;

namespace {

/// Two layers with rope and a window; decode takes four sequences, a prefill
/// two. `PLACE` stands for where the caches lie.
constexpr char kText[] = R"(
  hardware tpu_v5e[2, 2]
  mesh [X=2, Y=2]
  dim B = 4, T = 1, S = 16, V = 12, L = 2, D = 8, K = 2, G = 2, H = 4
  input tokens: int32[B, T]
  input pos: int32[B, T]
  weight E: f32[V, D]
  weight Wout: f32[D, V]
  x[B, T, D] = E[tokens[B, T], D]
  repeat L {
    state kc: f32[PLACE]
    state vc: f32[PLACE]
    weight Wq: f32[D, K@X, G, H]
    weight Wk: f32[D, K@X, H]
    weight Wo: f32[K@X, G, H, D]
    q[B, T, K, G, H] = rope[H](x[B, T, D] * Wq[D, K, G, H], at=pos)
    kc[B, pos[B, T], K, H] = rope[H](x[B, T, D] * Wk[D, K, H], at=pos)
    vc[B, pos[B, T], K, H] = x[B, T, D] * Wk[D, K, H]
    o[B, T, K, G, H] = attention[H, S](q, kc, vc, causal=true, at=pos)
    w[B, T, K, G, H] = attention[H, S](q, kc, vc, window=3, at=pos)
    x[B, T, D] += (o + w) * Wo[K, G, H, D]
  }
  last[B, D] = x[B, T - 1, D]
  logits[B, V] = last[B, D] * Wout[D, V]
  output logits
  serve { batch = B  sequence = T  context = S  position = pos
          prompt = 8  generate = 8  prompt_batch = 2 }
)";

/// Both phases with plans as annotated.
class Served {
public:
  /// Where the caches of prefill and of decode lie.
  Served(StringRef prefillCaches, StringRef decodeCaches)
      : context(MLIRContext::Threading::DISABLED),
        handler(&context, [this](Diagnostic &diagnostic) {
          messages += diagnostic.str() + "\n";
        }) {
    make(ServingPhase::Prefill, prefillCaches);
    make(ServingPhase::Decode, decodeCaches);
  }

  /// Changes both programs of a phase alike.
  void change(ServingPhase phase, llvm::function_ref<void(ModuleOp)> edit) {
    edit(*imported[size_t(phase)]);
    edit(*planned[size_t(phase)]);
  }

  bool holdsAlone(ServingPhase phase) {
    FailureOr<Verification> result =
        verifyPlan(*imported[size_t(phase)], *planned[size_t(phase)]);
    EXPECT_TRUE(succeeded(result)) << messages;
    return succeeded(result) && result->holds;
  }

  ServedRuns run(bool shrink = true) {
    VerifyOptions how;
    how.shrink = shrink;
    FailureOr<ServedRuns> result = verifyServing(
        {*imported[0], *planned[0]}, {*imported[1], *planned[1]}, how);
    EXPECT_TRUE(succeeded(result)) << messages;
    return succeeded(result) ? std::move(*result) : ServedRuns();
  }

  std::string messages;

private:
  void make(ServingPhase phase, StringRef caches) {
    std::string text = kText;
    for (size_t at; (at = text.find("PLACE")) != std::string::npos;)
      text.replace(at, 5, caches.str());
    llvm::SourceMgr sourceMgr;
    sourceMgr.AddNewSourceBuffer(
        llvm::MemoryBuffer::getMemBufferCopy(text, "serve.shd"), {});
    Overrides overrides;
    overrides.phase = phase;
    std::optional<Program> program = importStep(sourceMgr, &context, overrides);
    ASSERT_TRUE(program) << messages;
    PlanOptions asWritten;
    asWritten.mode = OptMode::None;
    Compilation compilation(std::move(*program), {asWritten});
    imported[size_t(phase)] = compilation.clone();
    ASSERT_TRUE(succeeded(compilation.lower())) << messages;
    planned[size_t(phase)] = compilation.takeModule();
  }

  MLIRContext context;
  ScopedDiagnosticHandler handler;
  OwningOpRef<ModuleOp> imported[2], planned[2];
};

TEST(ServedRuns, CachesMoveBetweenLayouts) {
  Served served("B@Y, S, K@X, H", "B@Y, S@X, K, H");
  ServedRuns runs = served.run();
  EXPECT_TRUE(runs.holds()) << served.messages;
  EXPECT_EQ(runs.steps, 3);
  // Two caches of two layers and the logits, in all runs.
  EXPECT_EQ(runs.prefill.results.size(), 3u);
  EXPECT_EQ(runs.decode.results.size(), 3u);
  EXPECT_GE(runs.capacity, runs.prompt + runs.steps);
}

/// As written: two prefills of two prompts of 8 tokens.
TEST(ServedRuns, RunInFullSize) {
  Served served("B, S, K@X, H", "B@(X, Y), S, K, H");
  ServedRuns runs = served.run(/*shrink=*/false);
  EXPECT_TRUE(runs.holds()) << served.messages;
  EXPECT_EQ(runs.sequences, 4);
  EXPECT_EQ(runs.promptBatch, 2);
  EXPECT_EQ(runs.prompt, 8);
  // 4 sequences x 8 positions x 2 x 4 elements, of two layers.
  auto cache = llvm::find_if(
      runs.prefill.results,
      [](const Verification::Result &result) { return result.name == "kc"; });
  ASSERT_NE(cache, runs.prefill.results.end());
  EXPECT_EQ(cache->elements, 4 * 8 * 2 * 4 * 2);
}

TEST(ServedRuns, PrefillThatLeavesOtherKeysIsSeen) {
  Served served("B@Y, S, K@X, H", "B@Y, S, K@X, H");
  served.change(ServingPhase::Prefill, [](ModuleOp module) {
    module.walk([](shd::RopeOp op) { op.setTheta(APFloat(100.0)); });
  });
  EXPECT_TRUE(served.holdsAlone(ServingPhase::Prefill));
  ServedRuns runs = served.run();
  EXPECT_FALSE(runs.prefill.holds);
  emitDifferences(runs);
  EXPECT_NE(served.messages.find("after prefill differs from the program run "
                                 "token by token"),
            std::string::npos)
      << served.messages;
}

} // namespace
