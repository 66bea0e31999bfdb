//===- FrameworkPlan.h - A plan in the terms of frameworks ----*- C++ -*-===//
//
// Degrees of parallelism and choices of a training step, read from its JSON
// report, and what of the plan degrees cannot say.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_PICTURES_FRAMEWORKPLAN_H
#define SHARDC_LIB_PICTURES_FRAMEWORKPLAN_H

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <string>
#include <vector>

namespace shardc {

/// A degree of parallelism, and its part on the innermost network.
struct Degree {
  int64_t all = 1, inner = 1;

  int64_t outer() const { return all / inner; }
  void multiply(Degree other) {
    all *= other.all;
    inner *= other.inner;
  }
};

struct FrameworkPlan {
  enum class Zero : uint8_t { None, Optimizer, Gradients, Weights };
  enum class Remat : uint8_t { None, Full, Some };

  std::string file, words;
  int64_t devices = 1;
  /// Axes of the batch whose weights, gradients or optimizer state are split,
  /// and those of replicas.
  Degree sharded, replicated;
  Degree tensor, context, experts, pipeline;
  /// The axes of `experts` that also split the batch.
  Degree batchOfExperts;
  Zero zero = Zero::None;
  bool splitsSequences = false;
  /// Of the weights of experts, beside the axes of `experts`.
  int64_t expertTensor = 1;
  bool hasExperts = false;

  /// Sequences of a step, and tokens of each.
  int64_t batch = 1, length = 1;
  int64_t microbatches = 1;
  /// Sequences of a microbatch of one data-parallel rank; 0 if that is no whole
  /// number.
  int64_t microbatchSize = 0;

  Remat remat = Remat::None;
  /// Layers of a checkpointed block.
  int64_t every = 1;
  std::string rematText;
  /// Kinds of operations that run again.
  bool recomputesAttention = false, recomputesNorms = false;
  /// The optimizer's state is on the host.
  bool offloads = false;
  std::vector<std::string> recomputedMatmuls, recomputedOthers;

  /// `1f1b`, ..., or `interleaved` with chunks.
  std::string schedule;
  int64_t chunks = 1;
  /// Of each stage, of each chunk.
  std::vector<std::vector<int64_t>> layers;

  /// Keys and values come to queries around a ring, along all context axes.
  bool rings = false;
  /// Sequences are in zigzag order; or causal attention is unbalanced.
  bool isBalanced = false, isUnbalanced = false;

  /// What no degree says of the plan, a sentence each.
  std::vector<std::string> differences;

  int64_t dataRanks() const { return sharded.all * replicated.all; }
  /// The results of products and of attention are kept, and no others.
  bool keepsProducts() const {
    return remat == Remat::Some && recomputesNorms && !recomputesAttention &&
           recomputedMatmuls.empty();
  }
  /// All chunks of all stages have as many layers as the first.
  bool splitsLayersEvenly() const;
};

/// From the report of one plan; an error if it is not that of a training step
/// on sequences of tokens.
llvm::Expected<FrameworkPlan>
readFrameworkPlan(const llvm::json::Object &report);

} // namespace shardc

#endif // SHARDC_LIB_PICTURES_FRAMEWORKPLAN_H
