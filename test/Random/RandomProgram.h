//===- RandomProgram.h - Random programs over the whole language -*- C++
//-*-===//
//
// Texts of .shd programs for tests: the same for a seed on every platform.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TEST_RANDOM_RANDOMPROGRAM_H
#define SHARDC_TEST_RANDOM_RANDOMPROGRAM_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace shardc::test {

/// Kinds of programs to generate.
struct RandomProgramOptions {
  /// `tpu_v5e[4, 4]`; a machine that fits the mesh where it is empty.
  std::string hardware;
  /// Sizes of the axes X, Y, Z, W; a random mesh where it is empty.
  std::vector<int64_t> mesh;
  /// Every extent is a multiple of this.
  int64_t extentUnit = 1;
  /// Statements at top level.
  unsigned minStatements = 2, maxStatements = 7;
  /// Elements of a tensor, and of the indices of one product, at most.
  int64_t maxElements = 2048, maxWork = 20000;
  /// Percentage of references, left sides and declarations that are annotated.
  unsigned annotated = 25;
  /// Only products, sums, elementwise functions, reductions, normalisations,
  /// casts of weights and repeats: programs with small search spaces.
  bool simple = false;
  /// Percentage of programs that are trained.
  unsigned trained = 0;
  /// Percentage of programs that end with experts.
  unsigned experts = 12;
  /// Some programs need --allow-padding.
  bool padding = true;
};

struct RandomProgram {
  std::string text;
  /// Must be read with --allow-padding.
  bool allowPadding = false;
  /// How often each feature of the language was written.
  std::map<std::string, unsigned> features;
};

/// Most of the programs can be planned; an annotation may contradict another.
/// Values stay of moderate size, and where a rounding error could flip a
/// comparison, a cast to integers or an argmax, nothing that was summed in
/// floating point stands.
RandomProgram makeRandomProgram(uint64_t seed,
                                const RandomProgramOptions &options = {});

} // namespace shardc::test

#endif // SHARDC_TEST_RANDOM_RANDOMPROGRAM_H
