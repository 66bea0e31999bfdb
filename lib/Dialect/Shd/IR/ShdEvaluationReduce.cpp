//===- ShdEvaluationReduce.cpp - What reductions and losses compute -------===//
//
// Reductions, normalisations and cross entropy. What they need to know of all
// elements are statistics; without them as operands, an operation computes them
// in the same way, from what it holds.
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"
#include <cmath>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

using Operands = ArrayRef<const Tensor *>;
using Ranges = ArrayRef<FactorRange>;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

Type shd::statisticType(Operation *op, const Statistic &statistic) {
  return typeFromName(op->getContext(), statistic.elementType);
}

Tensor shd::makeStatistic(Operation *op, const IterationSpace &space,
                          unsigned number, double value) {
  SmallVector<int64_t> shape = llvm::map_to_vector(
      space.getRule().statistics[number].factors,
      [&](unsigned factor) { return space.getRule().factors[factor].extent; });
  Tensor tensor(statisticType(op, space.getRule().statistics[number]), shape);
  for (int64_t i = 0; i < tensor.getNumElements(); ++i)
    tensor.setReal(i, value);
  return tensor;
}

FailureOr<StatisticValues>
StatisticValues::get(StatisticsOpInterface op, const ShardingRule &rule,
                     Operands operands, Ranges ranges, PositionPolicy policy) {
  StatisticValues result;
  size_t numOperands = rule.operands.size();
  if (operands.size() > numOperands) {
    llvm::append_range(result.values, operands.drop_front(numOperands));
    return result;
  }
  SmallVector<const Tensor *> inputs = llvm::to_vector(operands);
  for (unsigned number = 0; number < rule.statistics.size(); ++number) {
    FailureOr<Tensor> value =
        op.evaluateStatistic(number, inputs, ranges, policy);
    if (failed(value))
      return failure();
    result.own.push_back(std::move(*value));
    result.values.push_back(&result.own.back());
    inputs.push_back(&result.own.back());
  }
  return result;
}

namespace {
/// Walks the elements of operand 0 for each element of a statistic.
class StatisticLoops {
public:
  using Offsets = Loop<2>::Offsets;

  StatisticLoops(const IterationSpace &space, unsigned number)
      : StatisticLoops(
            space, space.statisticFactors(number),
            {space.statisticStrides(number), space.operandStrides(0)}) {}

  /// Replaces each element of `statistic` by what `combine` makes of it and of
  /// the offsets of each element that it stands for.
  template <typename Combine>
  void run(Tensor &statistic, Combine combine) const {
    outer.run([&](const Offsets &at) {
      double value = statistic.getReal(at[0]);
      inner.run(
          at, [&](const Offsets &element) { value = combine(value, element); });
      statistic.setReal(at[0], value);
    });
  }

private:
  StatisticLoops(const IterationSpace &space, const FactorList &factors,
                 std::array<FactorStrides, 2> strides)
      : outer(space, factors, strides),
        inner(space, without(space.operandFactors(0), factors), strides) {}

  Loop<2> outer, inner;
};
} // namespace

/// Copies a statistic that is the result.
static Tensor copyStatistic(Operation *op, const IterationSpace &space,
                            unsigned number, const Tensor &statistic) {
  Tensor result = makeResult(op);
  Loop<2> loop(space, space.resultFactors(),
               {space.resultStrides(), space.statisticStrides(number)});
  loop.run([&](const Loop<2>::Offsets &at) {
    result.setReal(at[0], statistic.getReal(at[1]));
  });
  return result;
}

/// The maximum of operand 0 for each element of statistic `number`.
static Tensor maximumStatistic(Operation *op, const IterationSpace &space,
                               unsigned number, const Tensor &input) {
  Type type = statisticType(op, space.getRule().statistics[number]);
  Tensor result = makeStatistic(op, space, number, Tensor::lowest(type));
  StatisticLoops(space, number)
      .run(result, [&](double value, const Loop<2>::Offsets &at) {
        return maximum(value, input.getReal(at[1]));
      });
  return result;
}

/// The sum of e^(x - maximum) for each element of statistic `number`, which has
/// the layout of the maxima.
static Tensor sumExpStatistic(Operation *op, const IterationSpace &space,
                              unsigned number, const Tensor &input,
                              const Tensor &maxima) {
  Tensor result = makeStatistic(op, space, number, 0);
  StatisticLoops(space, number)
      .run(result, [&](double value, const Loop<2>::Offsets &at) {
        return value + expBelow(input.getReal(at[1]), maxima.getReal(at[0]));
      });
  return result;
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// The sum; of a mean, the part of it that the elements on this device make.
static Tensor evaluateSum(ReduceOp op, const IterationSpace &space,
                          const Tensor &input) {
  Tensor result = makeResult(op);
  FactorList kept = space.resultFactors(), summed = space.othersThan(kept);
  FactorStrides inputStrides = space.operandStrides(0);
  Loop<2> outer(space, kept, {space.resultStrides(), inputStrides});
  Loop<1> inner(space, summed, {inputStrides});
  double divisor = op.getKind() == Reduction::Mean
                       ? static_cast<double>(space.whole(summed))
                       : 1;
  bool exact = isExact(&input, result) && op.getKind() == Reduction::Sum;
  outer.run([&](const Loop<2>::Offsets &at) {
    if (exact) {
      int64_t sum = 0;
      inner.run({at[1]}, [&](const Loop<1>::Offsets &element) {
        sum += input.getInteger(element[0]);
      });
      return result.setInteger(at[0], sum);
    }
    double sum = 0;
    inner.run({at[1]}, [&](const Loop<1>::Offsets &element) {
      sum += input.getReal(element[0]);
    });
    result.setReal(at[0], sum / divisor);
  });
  return result;
}

static Tensor minimumStatistic(Operation *op, const IterationSpace &space,
                               const Tensor &input) {
  Tensor result =
      makeStatistic(op, space, 0, Tensor::highest(input.getElementType()));
  StatisticLoops(space, 0).run(result,
                               [&](double value, const Loop<2>::Offsets &at) {
                                 return minimum(value, input.getReal(at[1]));
                               });
  return result;
}

/// The position of the first element, in row-major order of the whole, that
/// equals the maximum; where there is none, the greatest integer.
static Tensor indexStatistic(Operation *op, const IterationSpace &space,
                             const Tensor &input, const Tensor &maxima) {
  constexpr unsigned number = 1;
  FactorList kept = space.statisticFactors(number);
  FactorList reduced = without(space.operandFactors(0), kept);
  FactorStrides ordinals = space.noStrides();
  int64_t stride = 1, first = 0;
  for (unsigned factor : llvm::reverse(reduced)) {
    ordinals[factor] = stride;
    first += stride * space.range(factor).offset;
    stride *= space.range(factor).whole;
  }
  FactorStrides inputStrides = space.operandStrides(0);
  Loop<2> outer(space, kept, {space.statisticStrides(number), inputStrides});
  Loop<2> inner(space, reduced, {inputStrides, ordinals});
  Type type = statisticType(op, space.getRule().statistics[number]);
  Tensor result = makeStatistic(op, space, number, Tensor::highest(type));
  outer.run([&](const Loop<2>::Offsets &at) {
    double greatest = maxima.getReal(at[0]);
    inner.run({at[1], first}, [&](const Loop<2>::Offsets &element) {
      double value = input.getReal(element[0]);
      bool equal =
          value == greatest || (std::isnan(value) && std::isnan(greatest));
      if (equal && element[1] < result.getInteger(at[0]))
        result.setInteger(at[0], element[1]);
    });
  });
  return result;
}

FailureOr<TensorList> ReduceOp::evaluate(Operands operands, Ranges ranges,
                                         PositionPolicy policy) {
  IterationSpace space(*this, ranges);
  const ShardingRule &rule = space.getRule();
  if (rule.statistics.empty())
    return oneResult(evaluateSum(*this, space, *operands[0]));
  FailureOr<StatisticValues> stats =
      StatisticValues::get(*this, rule, operands, ranges, policy);
  if (failed(stats))
    return failure();
  unsigned last = rule.statistics.size() - 1;
  return oneResult(copyStatistic(*this, space, last, (*stats)[last]));
}

FailureOr<Tensor> ReduceOp::evaluateStatistic(unsigned number,
                                              Operands operands, Ranges ranges,
                                              PositionPolicy) {
  IterationSpace space(*this, ranges);
  const Tensor &input = *operands[0];
  if (number == 1)
    return indexStatistic(*this, space, input, *operands[1]);
  if (getKind() == Reduction::Min)
    return minimumStatistic(*this, space, input);
  return maximumStatistic(*this, space, number, input);
}

//===----------------------------------------------------------------------===//
// Normalisations
//===----------------------------------------------------------------------===//

/// The sum of all elements, or of their squares.
static Tensor powerStatistic(Operation *op, const IterationSpace &space,
                             unsigned number, const Tensor &input,
                             bool square) {
  Tensor result = makeStatistic(op, space, number, 0);
  StatisticLoops(space, number)
      .run(result, [&](double value, const Loop<2>::Offsets &at) {
        double x = input.getReal(at[1]);
        return value + (square ? x * x : x);
      });
  return result;
}

FailureOr<Tensor> NormalizeOp::evaluateStatistic(unsigned number,
                                                 Operands operands,
                                                 Ranges ranges,
                                                 PositionPolicy) {
  IterationSpace space(*this, ranges);
  const Tensor &input = *operands[0];
  switch (getKind()) {
  case Normalization::Softmax:
  case Normalization::LogSumExp:
    if (number == 0)
      return maximumStatistic(*this, space, number, input);
    return sumExpStatistic(*this, space, number, input, *operands[1]);
  case Normalization::RmsNorm:
    return powerStatistic(*this, space, number, input, /*square=*/true);
  case Normalization::LayerNorm:
    return powerStatistic(*this, space, number, input, number == 1);
  }
  llvm_unreachable("a new normalisation");
}

/// Nothing but minus infinities: no weights, so no NaN.
static double softmax(double x, double greatest, double sumExp) {
  return sumExp == 0 ? 0 : expBelow(x, greatest) / sumExp;
}

static double logSumExp(double greatest, double sumExp) {
  return sumExp == 0 ? -kInfinity : greatest + std::log(sumExp);
}

/// Scales `x` by its root mean square, or its distance from the mean by the
/// standard deviation; all elements together number `count`.
static double normalized(double x, double mean, double meanSquare, double eps) {
  double variance = std::max(meanSquare - mean * mean, 0.0);
  return (x - mean) / std::sqrt(variance + eps);
}

/// The value without scale and bias.
static double normalize(NormalizeOp op, double x, double count,
                        const StatisticValues &stats, int64_t at) {
  double eps = op.getEps().convertToDouble();
  switch (op.getKind()) {
  case Normalization::Softmax:
    return softmax(x, stats[0].getReal(at), stats[1].getReal(at));
  case Normalization::LogSumExp:
    return logSumExp(stats[0].getReal(at), stats[1].getReal(at));
  case Normalization::RmsNorm:
    return normalized(x, 0, stats[0].getReal(at) / count, eps);
  case Normalization::LayerNorm:
    return normalized(x, stats[0].getReal(at) / count,
                      stats[1].getReal(at) / count, eps);
  }
  llvm_unreachable("a new normalisation");
}

FailureOr<TensorList> NormalizeOp::evaluate(Operands operands, Ranges ranges,
                                            PositionPolicy policy) {
  IterationSpace space(*this, ranges);
  FailureOr<StatisticValues> stats =
      StatisticValues::get(*this, space.getRule(), operands, ranges, policy);
  if (failed(stats))
    return failure();
  const Tensor *scale = getInputs().size() > 1 ? operands[1] : nullptr;
  const Tensor *bias = getInputs().size() > 2 ? operands[2] : nullptr;
  auto over =
      llvm::map_to_vector<8>(getOver().getAsValueRange<StringAttr>(),
                             [&](StringRef name) { return space.find(name); });
  auto count = static_cast<double>(space.whole(over));
  Tensor result = makeResult(*this);
  Loop<5> loop(space, space.resultFactors(),
               {space.resultStrides(), space.operandStrides(0),
                space.statisticStrides(0),
                scale ? space.operandStrides(1) : space.noStrides(),
                bias ? space.operandStrides(2) : space.noStrides()});
  loop.run([&](const Loop<5>::Offsets &at) {
    double x = operands[0]->getReal(at[1]);
    double value = normalize(*this, x, count, *stats, at[2]);
    if (scale)
      value *= scale->getReal(at[3]);
    if (bias)
      value += bias->getReal(at[4]);
    result.setReal(at[0], value);
  });
  return oneResult(std::move(result));
}

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

/// The logit at the label, 0 where another device has it.
static FailureOr<Tensor> pickedStatistic(CrossEntropyOp op,
                                         const IterationSpace &space,
                                         unsigned number, const Tensor &logits,
                                         const Tensor &labels,
                                         PositionPolicy policy) {
  unsigned classes = space.find(op.getClasses());
  const FactorRange &range = space.range(classes);
  int64_t step = space.operandStrides(0)[classes];
  Tensor result = makeStatistic(op, space, number, 0);
  Loop<3> loop(space, space.statisticFactors(number),
               {space.statisticStrides(number), space.operandStrides(0),
                space.operandStrides(1)});
  bool ok = true;
  loop.run([&](const Loop<3>::Offsets &at) {
    if (!ok)
      return;
    FailureOr<int64_t> label = resolvePosition(
        op, labels.getInteger(at[2]), op.getClasses(), range.whole, policy);
    ok = succeeded(label);
    if (!ok)
      return;
    int64_t local = *label - range.offset;
    if (local >= 0 && local < range.size)
      result.setReal(at[0], logits.getReal(at[1] + local * step));
  });
  if (!ok)
    return failure();
  return result;
}

FailureOr<Tensor> CrossEntropyOp::evaluateStatistic(unsigned number,
                                                    Operands operands,
                                                    Ranges ranges,
                                                    PositionPolicy policy) {
  IterationSpace space(*this, ranges);
  const Tensor &logits = *operands[0];
  switch (number) {
  case 0:
    return maximumStatistic(*this, space, number, logits);
  case 1:
    return sumExpStatistic(*this, space, number, logits, *operands[2]);
  default:
    return pickedStatistic(*this, space, number, logits, *operands[1], policy);
  }
}

FailureOr<TensorList> CrossEntropyOp::evaluate(Operands operands, Ranges ranges,
                                               PositionPolicy policy) {
  IterationSpace space(*this, ranges);
  FailureOr<StatisticValues> stats =
      StatisticValues::get(*this, space.getRule(), operands, ranges, policy);
  if (failed(stats))
    return failure();
  Tensor result = makeResult(*this);
  Loop<2> loop(space, space.resultFactors(),
               {space.resultStrides(), space.statisticStrides(0)});
  loop.run([&](const Loop<2>::Offsets &at) {
    double logSum =
        logSumExp((*stats)[0].getReal(at[1]), (*stats)[1].getReal(at[1]));
    result.setReal(at[0], logSum - (*stats)[2].getReal(at[1]));
  });
  return oneResult(std::move(result));
}
