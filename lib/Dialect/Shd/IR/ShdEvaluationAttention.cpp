//===- ShdEvaluationAttention.cpp - What attention and rope compute -------===//

#include "Evaluation.h"
#include <cmath>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

using Operands = ArrayRef<const Tensor *>;
using Ranges = ArrayRef<FactorRange>;

static constexpr double kMasked = -std::numeric_limits<double>::infinity();

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {
/// A query: its scores, minus infinity where keys are masked, and where its
/// statistics and the first of its values and results stand.
struct Query {
  ArrayRef<double> scores;
  int64_t statistic = 0, value = 0, result = 0;
};

/// The scores of each query with the keys that a device has.
class Attention {
public:
  Attention(AttentionOp op, Operands operands, Ranges ranges);

  const IterationSpace &getSpace() const { return space; }

  void forEachQuery(llvm::function_ref<void(const Query &)> visit);

  /// `sum_i weights[i] v[i]` of the values of one query, for each element of
  /// the result that belongs to it.
  void combine(ArrayRef<double> weights, const Query &query, Tensor &result);

private:
  void computeScores(int64_t query, int64_t firstKey, int64_t position);
  bool isMasked(int64_t key, int64_t position) const;

  AttentionOp op;
  IterationSpace space;
  unsigned head, key;
  FactorList queryFactors;
  std::vector<double> qStorage, kStorage, vStorage;
  ArrayRef<double> q, k, v;
  FactorStrides qStrides, kStrides, vStrides;
  const Tensor *at;
  bool causal;
  std::optional<int64_t> window;
  double scale, softcap;
  std::vector<double> scores;
};
} // namespace

Attention::Attention(AttentionOp op, Operands operands, Ranges ranges)
    : op(op), space(op, ranges), head(space.find(op.getHead())),
      key(space.find(op.getKey())),
      queryFactors(
          without(space.operandFactors(AttentionOp::kQueryOperand), head)),
      q(asReals(*operands[AttentionOp::kQueryOperand], qStorage)),
      k(asReals(*operands[AttentionOp::kKeyOperand], kStorage)),
      v(asReals(*operands[AttentionOp::kValueOperand], vStorage)),
      qStrides(space.operandStrides(AttentionOp::kQueryOperand)),
      kStrides(space.operandStrides(AttentionOp::kKeyOperand)),
      vStrides(space.operandStrides(AttentionOp::kValueOperand)),
      at(op.getAt() ? operands[AttentionOp::kAtOperand] : nullptr),
      causal(op.getCausal()), window(op.getWindow()),
      scale(op.getScale()
                ? op.getScale()->convertToDouble()
                : 1 / std::sqrt(static_cast<double>(space.whole(head)))),
      softcap(op.getSoftcap() ? op.getSoftcap()->convertToDouble() : 0),
      scores(space.range(key).size) {}

/// Positions of keys and queries are those in the whole tensors.
bool Attention::isMasked(int64_t key, int64_t position) const {
  return causal && (key > position || (window && key <= position - *window));
}

void Attention::computeScores(int64_t query, int64_t firstKey,
                              int64_t position) {
  const FactorRange &keys = space.range(key);
  int64_t headSize = space.range(head).size;
  for (int64_t i = 0; i < keys.size; ++i) {
    if (isMasked(keys.offset + i, position)) {
      scores[i] = kMasked;
      continue;
    }
    int64_t atKey = firstKey + i * kStrides[key];
    double score = 0;
    for (int64_t h = 0; h < headSize; ++h)
      score += q[query + h * qStrides[head]] * k[atKey + h * kStrides[head]];
    score *= scale;
    scores[i] = op.getSoftcap() ? softcap * std::tanh(score / softcap) : score;
  }
}

void Attention::forEachQuery(llvm::function_ref<void(const Query &)> visit) {
  FactorStrides positions = space.noStrides();
  int64_t firstPosition = 0;
  if (at) {
    positions = space.operandStrides(AttentionOp::kAtOperand);
  } else if (auto query = op.getQuery()) {
    unsigned factor = space.find(*query);
    positions = space.counting(factor);
    firstPosition = space.range(factor).offset;
  }
  Loop<6> loop(space, queryFactors,
               {space.statisticStrides(0), space.resultStrides(), qStrides,
                kStrides, vStrides, positions});
  loop.run({0, 0, 0, 0, 0, firstPosition}, [&](const Loop<6>::Offsets &offset) {
    computeScores(offset[2], offset[3],
                  at ? at->getInteger(offset[5]) : offset[5]);
    visit({scores, offset[0], offset[4], offset[1]});
  });
}

void Attention::combine(ArrayRef<double> weights, const Query &query,
                        Tensor &result) {
  FactorList ofValues =
      without(space.operandFactors(AttentionOp::kValueOperand), queryFactors);
  Loop<2> loop(space, without(ofValues, key),
               {space.resultStrides(), vStrides});
  loop.run({query.result, query.value}, [&](const Loop<2>::Offsets &offset) {
    double sum = 0;
    int64_t value = offset[1];
    for (double weight : weights) {
      if (weight != 0)
        sum += weight * v[value];
      value += vStrides[key];
    }
    result.setReal(offset[0], sum);
  });
}

FailureOr<Tensor> AttentionOp::evaluateStatistic(unsigned number,
                                                 Operands operands,
                                                 Ranges ranges,
                                                 PositionPolicy) {
  Attention attention(*this, operands, ranges);
  const IterationSpace &space = attention.getSpace();
  const Tensor *maxima =
      number == 0 ? nullptr : operands[space.getRule().operands.size()];
  Tensor result = makeStatistic(*this, space, number, maxima ? 0 : kMasked);
  attention.forEachQuery([&](const Query &query) {
    double value = result.getReal(query.statistic);
    for (double score : query.scores)
      value = maxima ? value + expBelow(score, maxima->getReal(query.statistic))
                     : maximum(value, score);
    result.setReal(query.statistic, value);
  });
  return result;
}

/// The part of the sum over keys that this device's keys make; 0 for a query
/// all of whose keys are masked.
FailureOr<TensorList> AttentionOp::evaluate(Operands operands, Ranges ranges,
                                            PositionPolicy policy) {
  Attention attention(*this, operands, ranges);
  FailureOr<StatisticValues> stats = StatisticValues::get(
      *this, attention.getSpace().getRule(), operands, ranges, policy);
  if (failed(stats))
    return failure();
  const Tensor &maxima = (*stats)[0], &sums = (*stats)[1];
  Tensor result = makeResult(*this);
  std::vector<double> weights;
  attention.forEachQuery([&](const Query &query) {
    double greatest = maxima.getReal(query.statistic);
    double sum = sums.getReal(query.statistic);
    if (sum == 0)
      return;
    weights.clear();
    for (double score : query.scores)
      weights.push_back(expBelow(score, greatest) / sum);
    attention.combine(weights, query, result);
  });
  return oneResult(std::move(result));
}

//===----------------------------------------------------------------------===//
// Rotary positions
//===----------------------------------------------------------------------===//

/// Elements i and i + H/2 of the head turn by position * theta^(-2 i / H).
FailureOr<TensorList> RopeOp::evaluate(Operands operands, Ranges ranges,
                                       PositionPolicy) {
  IterationSpace space(*this, ranges);
  unsigned head = space.find(getHead());
  FactorStrides positions = space.noStrides();
  int64_t firstPosition = 0;
  if (getAt()) {
    positions = space.operandStrides(1);
  } else {
    unsigned factor = space.find(*getPositions());
    positions = space.counting(factor);
    firstPosition = space.range(factor).offset;
  }
  int64_t size = space.range(head).size, half = size / 2;
  std::vector<double> frequencies;
  for (int64_t i = 0; i < half; ++i)
    frequencies.push_back(
        std::pow(getTheta().convertToDouble(),
                 -2.0 * static_cast<double>(i) / static_cast<double>(size)));
  FactorStrides from = space.operandStrides(0), to = space.resultStrides();
  const Tensor &input = *operands[0];
  Tensor result = makeResult(*this);
  Loop<3> loop(space, without(space.resultFactors(), head),
               {to, from, positions});
  loop.run({0, 0, firstPosition}, [&](const Loop<3>::Offsets &at) {
    auto position =
        static_cast<double>(getAt() ? operands[1]->getInteger(at[2]) : at[2]);
    for (int64_t i = 0; i < half; ++i) {
      double angle = (getInverse() ? -position : position) * frequencies[i];
      double x = input.getReal(at[1] + i * from[head]);
      double y = input.getReal(at[1] + (i + half) * from[head]);
      result.setReal(at[0] + i * to[head],
                     x * std::cos(angle) - y * std::sin(angle));
      result.setReal(at[0] + (i + half) * to[head],
                     y * std::cos(angle) + x * std::sin(angle));
    }
  });
  return oneResult(std::move(result));
}
