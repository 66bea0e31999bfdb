//===- ServingTest.cpp - Prefill, then decoding ---------------------------===//
//
// The phases of a program that serves are the same computation: prefill leaves
// what decode steps from position 0 on would have left, and decoding goes on
// from there.
//
//===----------------------------------------------------------------------===//

#include "TestProgram.h"
#include "shardc/Reference/Interpreter.h"
#include <cmath>
#include <gtest/gtest.h>
#include <map>

using namespace mlir;
using namespace shardc;

namespace {

/// Two layers; learned positions, rope, and a window of 3 in one attention.
constexpr char kText[] = R"(
  dim B = 2, T = 1, S = 8, P = 8, V = 11, L = 2, D = 8, K = 2, G = 2, H = 4
  input tokens: int32[B, T]
  input pos: int32[B, T]
  weight E: f32[V, D]
  weight Ep: f32[P, D]
  weight Wout: f32[D, V]
  x[B, T, D] = E[tokens[B, T], D] + Ep[pos[B, T], D]
  repeat L {
    state kc: f32[B, S, K, H]
    state vc: f32[B, K, S, H]
    weight Wq: f32[D, K, G, H]
    weight Wk: f32[D, K, H]
    weight Wv: f32[D, K, H]
    weight Wo: f32[K, G, H, D]
    q[B, T, K, G, H] = rope[H](x[B, T, D] * Wq[D, K, G, H], at=pos)
    kc[B, pos[B, T], K, H] = rope[H](x[B, T, D] * Wk[D, K, H], at=pos)
    vc[B, K, pos[B, T], H] = x[B, T, D] * Wv[D, K, H]
    o[B, T, K, G, H] = attention[H, S](q, kc, vc, causal=true, at=pos)
    w[B, T, K, G, H] = attention[H, S](q, kc, vc, window=3, at=pos)
    x[B, T, D] += (o + w) * Wo[K, G, H, D]
  }
  last[B, D] = x[B, T - 1, D]
  logits[B, V] = last[B, D] * Wout[D, V]
  output logits
  serve { batch = B  sequence = T  context = S  position = pos
          prompt = 5  generate = 3  prompt_batch = 2 }
)";

constexpr int64_t kSequences = 2, kPrompt = 5, kLayers = 2, kCache = 8;

/// The token of a sequence at a position.
int64_t tokenAt(int64_t sequence, int64_t position) {
  return (3 + 5 * sequence + 7 * position * position) % 11;
}

/// A phase of the program, ready to run.
class Phase {
public:
  explicit Phase(shd::ServingPhase phase) : program(kText, overrides(phase)) {
    if (!program.module() ||
        !program.run(program.module(), [](OpPassManager &manager) {
          manager.addPass(shd::createShdServe());
        }))
      ADD_FAILURE() << program.messages();
  }

  /// States by name, whole.
  std::map<std::string, Tensor> states;
  Tensor logits;

  /// Runs the tokens from `position` on.
  void run(int64_t position) {
    RunOptions options;
    options.declared = [&](const DeclaredTensor &declared) {
      return valueOf(declared, position);
    };
    auto op = *program.module().getOps<shd::ProgramOp>().begin();
    FailureOr<RunResult> result = interpret(op, options);
    ASSERT_TRUE(succeeded(result)) << program.messages();
    for (const RunResult::Final &final : result->finals) {
      if (!final.isState())
        logits = *final.parts[0];
      else
        keep(final);
    }
  }

private:
  static Overrides overrides(shd::ServingPhase phase) {
    Overrides result;
    result.phase = phase;
    return result;
  }

  Tensor valueOf(const DeclaredTensor &declared, int64_t position) {
    Tensor tensor(declared.type);
    ArrayRef<int64_t> shape = declared.type.getShape();
    if (declared.kind == shd::TensorKind::State) {
      auto known = states.find(declared.name.str());
      return known == states.end() ? tensor : known->second;
    }
    for (int64_t i = 0; i < tensor.getNumElements(); ++i) {
      if (declared.kind == shd::TensorKind::Weight)
        tensor.setReal(i, std::sin(double(i * 37 + declared.name.size() * 11 +
                                          declared.name.back())));
      else if (declared.name == "pos")
        tensor.setInteger(i, position + i % shape[1]);
      else
        tensor.setInteger(i, tokenAt(i / shape[1], position + i % shape[1]));
    }
    return tensor;
  }

  /// Puts the part of a layer into the whole state.
  void keep(const RunResult::Final &final) {
    const Tensor &part = *final.parts[0];
    SmallVector<int64_t> shape{kLayers};
    llvm::append_range(shape, part.getShape());
    Tensor &whole = states[final.name];
    if (whole.getNumElements() == 0)
      whole = Tensor(part.getElementType(), shape);
    int64_t first = final.iterations[0] * part.getNumElements();
    for (int64_t i = 0; i < part.getNumElements(); ++i)
      whole.setReal(first + i, part.getReal(i));
  }

  test::TestProgram program;
};

/// The first positions of a cache, which are `dim`, within a longer one.
Tensor inserted(const Tensor &cache, unsigned dim) {
  SmallVector<int64_t> shape(cache.getShape());
  int64_t inner = 1, length = shape[dim];
  for (int64_t extent : ArrayRef(shape).drop_front(dim + 1))
    inner *= extent;
  shape[dim] = kCache;
  Tensor result(cache.getElementType(), shape);
  for (int64_t i = 0; i < cache.getNumElements(); ++i) {
    int64_t outer = i / (inner * length);
    result.setReal(outer * inner * kCache + i % (inner * length),
                   cache.getReal(i));
  }
  return result;
}

void expectEqual(const Tensor &a, const Tensor &b, StringRef what) {
  ASSERT_EQ(a.getNumElements(), b.getNumElements()) << what.str();
  for (int64_t i = 0; i < a.getNumElements(); ++i)
    ASSERT_NEAR(a.getReal(i), b.getReal(i), 1e-9) << what.str() << " " << i;
}

TEST(Serving, PrefillIsDecodingFromTheBeginning) {
  Phase prefill(shd::ServingPhase::Prefill);
  prefill.run(0);
  Phase steps(shd::ServingPhase::Decode);
  for (int64_t position = 0; position < kPrompt; ++position)
    steps.run(position);
  expectEqual(prefill.logits, steps.logits, "logits");
  expectEqual(inserted(prefill.states["kc"], 2), steps.states["kc"], "kc");
  expectEqual(inserted(prefill.states["vc"], 3), steps.states["vc"], "vc");
}

TEST(Serving, DecodingGoesOnFromPrefill) {
  Phase prefill(shd::ServingPhase::Prefill);
  prefill.run(0);
  Phase served(shd::ServingPhase::Decode), steps(shd::ServingPhase::Decode);
  served.states["kc"] = inserted(prefill.states["kc"], 2);
  served.states["vc"] = inserted(prefill.states["vc"], 3);
  for (int64_t position = 0; position < kCache; ++position) {
    steps.run(position);
    if (position < kPrompt)
      continue;
    served.run(position);
    expectEqual(served.logits, steps.logits, "logits");
  }
}

} // namespace
