//===- Evaluation.h - Pieces of the operations' evaluation ------*- C++ -*-===//
//
// Private to lib/Dialect/Shd/IR: how the evaluation of an operation walks its
// tensors. Everything goes by the factors of the sharding rule, so that it is
// the same for a whole program and for the part of one device.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_DIALECT_SHD_IR_EVALUATION_H
#define SHARDC_LIB_DIALECT_SHD_IR_EVALUATION_H

#include "shardc/Dialect/Shd/IR/Shd.h"
#include <array>
#include <cmath>
#include <deque>

namespace shardc::shd {

/// How far one step along each factor moves in a tensor, in elements.
using FactorStrides = llvm::SmallVector<int64_t, 8>;
using FactorList = llvm::SmallVector<unsigned, 8>;

/// The iteration space of an operation and the part of it that is evaluated.
class IterationSpace {
public:
  IterationSpace(ShardingRuleOpInterface op,
                 llvm::ArrayRef<FactorRange> ranges);

  const ShardingRule &getRule() const { return rule; }
  const FactorRange &range(unsigned factor) const { return ranges[factor]; }
  /// The factor of an index; of two of one name, the one that is not of values.
  unsigned find(llvm::StringRef index) const;

  FactorStrides operandStrides(unsigned operand) const {
    return stridesOf(rule.operands[operand]);
  }
  FactorStrides resultStrides(unsigned result = 0) const {
    return stridesOf(rule.results[result]);
  }
  FactorStrides statisticStrides(unsigned number) const;
  /// Those of a tensor that is not there, or that has one element.
  FactorStrides noStrides() const {
    return FactorStrides(rule.factors.size(), 0);
  }
  /// Counts the steps along one factor.
  FactorStrides counting(unsigned factor) const;
  /// Those of a new row-major array over `factors`, without padding.
  FactorStrides packedStrides(llvm::ArrayRef<unsigned> factors) const;

  FactorList operandFactors(unsigned operand) const {
    return factorsOf(rule.operands[operand]);
  }
  FactorList resultFactors(unsigned result = 0) const {
    return factorsOf(rule.results[result]);
  }
  FactorList statisticFactors(unsigned number) const {
    return llvm::to_vector<8>(rule.statistics[number].factors);
  }
  /// The factors that are not in `factors`.
  FactorList othersThan(llvm::ArrayRef<unsigned> factors) const;

  /// How many elements `factors` have on this device, and everywhere.
  int64_t size(llvm::ArrayRef<unsigned> factors) const;
  int64_t whole(llvm::ArrayRef<unsigned> factors) const;

private:
  FactorStrides stridesOf(const TensorFactors &dims) const;
  static FactorList factorsOf(const TensorFactors &dims);

  ShardingRule rule;
  llvm::ArrayRef<FactorRange> ranges;
};

/// `list` without what is in `dropped`.
FactorList without(llvm::ArrayRef<unsigned> list,
                   llvm::ArrayRef<unsigned> dropped);

/// Walks N tensors together along some factors, the first outermost.
template <size_t N> class Loop {
public:
  using Offsets = std::array<int64_t, N>;

  Loop(const IterationSpace &space, llvm::ArrayRef<unsigned> factors,
       std::array<FactorStrides, N> strides) {
    for (unsigned factor : factors) {
      Dim &dim = dims.emplace_back();
      dim.size = space.range(factor).size;
      for (size_t i = 0; i < N; ++i)
        dim.strides[i] = strides[i][factor];
    }
  }

  /// Calls `visit` with the offsets of each element, in order.
  template <typename Visit>
  void run(const Offsets &start, Visit &&visit) const {
    walk(0, start, visit);
  }
  template <typename Visit> void run(Visit &&visit) const {
    walk(0, Offsets{}, visit);
  }

private:
  struct Dim {
    int64_t size = 1;
    Offsets strides{};
  };

  template <typename Visit>
  void walk(size_t depth, Offsets at, Visit &visit) const {
    if (depth == dims.size())
      return visit(at);
    const Dim &dim = dims[depth];
    bool isInnermost = depth + 1 == dims.size();
    for (int64_t step = 0; step < dim.size; ++step) {
      if (isInnermost)
        visit(at);
      else
        walk(depth + 1, at, visit);
      for (size_t i = 0; i < N; ++i)
        at[i] += dim.strides[i];
    }
  }

  llvm::SmallVector<Dim, 8> dims;
};

/// The element type of a statistic.
mlir::Type statisticType(mlir::Operation *op, const Statistic &statistic);
/// A tensor of the type of the operation's only result, or of one of several.
Tensor makeResult(mlir::Operation *op);
Tensor makeResult(mlir::Operation *op, unsigned number);
/// What an operation with one result computes.
inline TensorList oneResult(Tensor result) {
  TensorList results;
  results.push_back(std::move(result));
  return results;
}
/// A tensor for a statistic of the rule, full of `value`.
Tensor makeStatistic(mlir::Operation *op, const IterationSpace &space,
                     unsigned number, double value);

/// The elements as real numbers; a view of real tensors, a copy in `storage` of
/// others.
llvm::ArrayRef<double> asReals(const Tensor &tensor,
                               std::vector<double> &storage);

/// True if operands and result are integers, which are computed exactly.
bool isExact(llvm::ArrayRef<const Tensor *> operands, const Tensor &result);

/// The greater (smaller) of two numbers; NaN if one is NaN.
inline double maximum(double a, double b) {
  return a > b || std::isnan(a) ? a : b;
}
inline double minimum(double a, double b) {
  return a < b || std::isnan(a) ? a : b;
}

/// e^(x - greatest), 0 where x is minus infinity even if all are.
inline double expBelow(double x, double greatest) {
  return x == -std::numeric_limits<double>::infinity() ? 0
                                                       : std::exp(x - greatest);
}

/// The statistics of an operation.
class StatisticValues {
public:
  /// Those among `operands`, else what the operation itself contributes.
  static mlir::FailureOr<StatisticValues>
  get(StatisticsOpInterface op, const ShardingRule &rule,
      llvm::ArrayRef<const Tensor *> operands,
      llvm::ArrayRef<FactorRange> ranges, PositionPolicy policy);

  StatisticValues(StatisticValues &&) = default;

  const Tensor &operator[](unsigned number) const { return *values[number]; }

private:
  StatisticValues() = default;

  /// Keeps the addresses of its elements when it is moved.
  std::deque<Tensor> own;
  llvm::SmallVector<const Tensor *, 3> values;
};

/// The element of a factor of `whole` elements that a position names.
mlir::FailureOr<int64_t> resolvePosition(mlir::Operation *op, int64_t position,
                                         llvm::StringRef index, int64_t whole,
                                         PositionPolicy policy);

} // namespace shardc::shd

#endif // SHARDC_LIB_DIALECT_SHD_IR_EVALUATION_H
