//===- Evaluated.h - Operations run as a whole and in parts -----*- C++ -*-===//
//
// Runs one operation on numbers, as a whole or split over devices by hand:
// every device has the parts of the operands that its ranges say, with garbage
// in the padding, and a program of its own with local extents.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TEST_UNIT_DIALECT_EVALUATED_H
#define SHARDC_TEST_UNIT_DIALECT_EVALUATED_H

#include "Program.h"
#include <map>

namespace shardc::shd {

using Values = std::vector<double>;
using Extents = std::map<std::string, int64_t>;

/// A tensor of named indices, one letter each (`BTD`), and an element type.
struct TensorText {
  std::string indices;
  std::string type = "f64";
  /// Those of its indices that every device has whole, although others of their
  /// names are split.
  std::string whole = {};
  /// The word in front of its type, in place of a comma, in bare types.
  std::string word = {};
};

/// One operation: `head <indexing> tail : types`, operands named %0, %1, ...
struct OpText {
  std::string head;
  std::vector<TensorText> operands;
  TensorText result;
  std::string tail = {};
  /// Types are printed as `a, b -> c, d`, not as `(a, b) -> (c, d)`.
  bool bareTypes = false;
  /// Indices that others make together.
  std::map<std::string, std::string> merged = {};
  /// Results after the first.
  std::vector<TensorText> otherResults = {};

  /// The program with these extents (merged ones follow).
  std::string program(const Extents &extents) const;
};

/// A parsed operation, ready to be evaluated.
class Evaluated {
public:
  Evaluated(const OpText &text, const Extents &extents);

  EvaluationOpInterface op() { return found; }
  const ShardingRule &rule() const { return theRule; }
  /// Every factor whole.
  std::vector<FactorRange> wholeRanges() const;
  /// Operand `number` with these elements in row-major order.
  Tensor operand(unsigned number, const Values &values);
  /// Messages of errors.
  const std::string &errors() const { return said; }

  mlir::FailureOr<TensorList>
  run(llvm::ArrayRef<Tensor> operands, llvm::ArrayRef<FactorRange> ranges,
      PositionPolicy policy = PositionPolicy::Error);

private:
  Program program;
  EvaluationOpInterface found;
  ShardingRule theRule;
  std::string said;
  mlir::ScopedDiagnosticHandler handler;
};

Values valuesOf(const Tensor &tensor);

/// The results of the whole operation, in row-major order.
std::vector<Values> evaluateAll(const OpText &text, const Extents &extents,
                                const std::vector<Values> &inputs,
                                PositionPolicy policy = PositionPolicy::Error);

/// Of an operation with one result.
Values evaluate(const OpText &text, const Extents &extents,
                const std::vector<Values> &inputs,
                PositionPolicy policy = PositionPolicy::Error);

/// The error of the whole operation.
std::string errorOf(const OpText &text, const Extents &extents,
                    const std::vector<Values> &inputs);

/// Numbers between -2 and 2 that repeat after a long while.
Values someValues(const TensorText &text, const Extents &extents,
                  unsigned seed);

/// Splits indices into parts of equal size, the last ones padded, runs each
/// part, and expects their combination to be the result of the whole. Devices
/// agree on statistics first.
void expectPartsMakeWhole(const OpText &text, const Extents &extents,
                          const std::vector<Values> &inputs,
                          const std::map<std::string, int64_t> &parts,
                          PositionPolicy policy = PositionPolicy::Error);

inline void expectNear(const Values &found, const Values &expected,
                       double tolerance = 1e-12) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i] != expected[i])
      EXPECT_NEAR(found[i], expected[i], tolerance) << "element " << i;
}

} // namespace shardc::shd

#endif // SHARDC_TEST_UNIT_DIALECT_EVALUATED_H
