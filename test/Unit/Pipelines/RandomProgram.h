//===- RandomProgram.h - Random programs that can be rewritten -*- C++ -*-===//
//
// Programs of products, elementwise operations, reductions and normalisations
// on random placements, that can be written with other names, in another order
// and for another machine.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TEST_UNIT_PIPELINES_RANDOMPROGRAM_H
#define SHARDC_TEST_UNIT_PIPELINES_RANDOMPROGRAM_H

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace shardc::test {

/// How a random program is written down.
struct Writing {
  std::string hardware = "tpu_v5e[4, 4]";
  /// Sizes of the mesh axes, in the program's order.
  std::vector<std::pair<unsigned, int64_t>> mesh = {{0, 4}, {1, 4}};
  /// Before every name.
  std::string prefix;
  /// Statements that do not depend on each other in another order.
  unsigned orderSeed = 0;
};

class RandomProgram {
public:
  explicit RandomProgram(unsigned seed);

  std::string text(const Writing &writing = {}) const;

private:
  struct Index {
    unsigned dim;
    /// Mesh axes that it is placed on, where something is placed.
    std::vector<unsigned> axes;
  };
  struct Value {
    const char *kind = nullptr; // `input`, `weight`; null for a statement
    const char *type = "bf16";
    std::vector<Index> indices;
    bool isPlaced = false;
    /// The operation of a statement on other values.
    enum class Operation { Product, Sum, Function, Reduce, Normalize };
    Operation operation = Operation::Product;
    const char *function = "";
    std::vector<unsigned> operands;
    unsigned along = 0; // the dim of a reduction or normalisation
    bool isUsed = false;
  };

  unsigned pick(unsigned count) { return random() % count; }
  bool chance(unsigned percent) { return pick(100) < percent; }
  std::vector<unsigned> pickDims(unsigned count);
  void declare(const char *kind);
  void addStatement();
  bool addProduct(Value &value);
  bool addSum(Value &value);
  void place(Value &value);
  std::vector<unsigned> dimsOf(unsigned value) const;
  std::vector<unsigned> order(unsigned seed) const;
  std::string statement(unsigned value, const Writing &writing) const;
  std::string list(const Value &value, const Writing &writing,
                   bool isPlaced) const;

  std::mt19937 random;
  std::vector<int64_t> extents;
  std::vector<Value> values;
};

} // namespace shardc::test

#endif // SHARDC_TEST_UNIT_PIPELINES_RANDOMPROGRAM_H
