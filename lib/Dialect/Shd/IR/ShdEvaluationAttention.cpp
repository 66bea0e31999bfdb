//===- ShdEvaluationAttention.cpp - What attention and rope compute -------===//

#include "Evaluation.h"
#include "shardc/Dialect/Shd/IR/Order.h"
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
/// A query: its scores, minus infinity where keys are masked, that of its sink
/// (minus infinity without), and where its statistics, its first element, and
/// the first of its keys, values, biases and results stand.
struct Query {
  ArrayRef<double> scores;
  double sink = kMasked;
  int64_t statistic = 0, query = 0, key = 0, value = 0, bias = 0, result = 0;
};

/// The scores of each query with the keys that a device has.
class Attention {
public:
  Attention(AttentionOpInterface op, Operands operands, Ranges ranges);

  const IterationSpace &getSpace() const { return space; }

  /// `statistics` and `results` are the strides of tensors with an element for
  /// each query, and for each query and index of the values.
  void forEachQuery(const FactorStrides &statistics,
                    const FactorStrides &results,
                    llvm::function_ref<void(const Query &)> visit);

  /// `sum_i weights[i] v[i]` of the values of one query, for each element of
  /// the result that belongs to it.
  void combine(ArrayRef<double> weights, const Query &query, Tensor &result);

  /// Adds to the gradients of q, k, v and, as a fourth result, of the bias what
  /// one query contributes. `weights` are those of its keys; `output` is
  /// attention's result.
  void addGradients(ArrayRef<double> weights, const Query &query,
                    const Tensor &output, const Tensor &gradient,
                    MutableArrayRef<Tensor> results);

private:
  /// The indices that values have and scores lack.
  FactorList ownOfValues() const {
    FactorList ofValues =
        without(space.operandFactors(AttentionOp::kValueOperand), queryFactors);
    return without(ofValues, key);
  }

  /// Where the first elements of a query's operands stand.
  struct First {
    int64_t query, key, bias, keyAt;
  };
  void computeScores(const First &first, int64_t position);
  bool isMasked(int64_t key, int64_t position) const;

  IterationSpace space;
  unsigned head, key;
  FactorList queryFactors;
  std::vector<double> qStorage, kStorage, vStorage;
  ArrayRef<double> q, k, v;
  FactorStrides qStrides, kStrides, vStrides;
  const Tensor *at, *keyAt = nullptr, *bias = nullptr, *sink = nullptr;
  /// Strides in `at`, or along the index that counts positions.
  FactorStrides positions;
  FactorStrides keyAtStrides, biasStrides, sinkStrides;
  int64_t firstPosition = 0;
  /// The order of queries without positions of their own.
  PositionOrder queryOrder;
  /// The positions of keys that data do not place.
  SmallVector<int64_t> keyPositions;
  bool causal;
  std::optional<int64_t> window;
  double scale;
  std::optional<double> softcap;
  std::vector<double> scores;
};
} // namespace

static std::optional<double>
asDouble(const std::optional<llvm::APFloat> &real) {
  return real ? std::optional(real->convertToDouble()) : std::nullopt;
}

/// Without positions, the index along which they run counts.
static std::optional<unsigned> queryFactor(AttentionOpInterface op,
                                           const IterationSpace &space) {
  if (auto query = op.getQuery())
    return space.find(*query);
  return std::nullopt;
}

/// The positions of a part's elements, those of its halo first.
static SmallVector<int64_t> positionsOf(const PositionOrder &order,
                                        const FactorRange &range) {
  int64_t begin = range.offset + range.halo, end = range.offset + range.size;
  SmallVector<int64_t> positions;
  if (range.halo > 0)
    positions =
        order.haloPositions(begin, end, range.halo / order.numStretches());
  for (int64_t i = begin; i < end; ++i)
    positions.push_back(order.positionAt(i));
  return positions;
}

Attention::Attention(AttentionOpInterface op, Operands operands, Ranges ranges)
    : space(cast<ShardingRuleOpInterface>(op.getOperation()), ranges),
      head(space.find(op.getHead())), key(space.find(op.getKey())),
      queryFactors(
          without(space.operandFactors(AttentionOp::kQueryOperand), head)),
      q(asReals(*operands[AttentionOp::kQueryOperand], qStorage)),
      k(asReals(*operands[AttentionOp::kKeyOperand], kStorage)),
      v(asReals(*operands[AttentionOp::kValueOperand], vStorage)),
      qStrides(space.operandStrides(AttentionOp::kQueryOperand)),
      kStrides(space.operandStrides(AttentionOp::kKeyOperand)),
      vStrides(space.operandStrides(AttentionOp::kValueOperand)),
      at(op.getAt() ? operands[op.getAtOperand()] : nullptr),
      positions(at ? space.operandStrides(op.getAtOperand())
                   : space.noStrides()),
      keyAtStrides(space.noStrides()), biasStrides(space.noStrides()),
      sinkStrides(space.noStrides()), causal(op.getCausal()),
      window(op.getWindow()),
      scale(
          asDouble(op.getScale())
              .value_or(1 / std::sqrt(static_cast<double>(space.whole(head))))),
      softcap(asDouble(op.getSoftcap())), scores(space.range(key).size) {
  if (std::optional<unsigned> query = queryFactor(op, space)) {
    positions = space.counting(*query);
    firstPosition = space.range(*query).offset;
    queryOrder = positionOrder(op, *op.getQuery(), space.whole(*query));
  }
  if (op.getKeyAt()) {
    keyAt = operands[op.getKeyAtOperand()];
    keyAtStrides = space.operandStrides(op.getKeyAtOperand());
  } else {
    keyPositions = positionsOf(positionOrder(op, op.getKey(), space.whole(key)),
                               space.range(key));
  }
  if (op.getBias()) {
    bias = operands[op.getBiasOperand()];
    biasStrides = space.operandStrides(op.getBiasOperand());
  }
  auto forward = dyn_cast<AttentionOp>(op.getOperation());
  if (forward && forward.getSink()) {
    sink = operands[forward.getSinkOperand()];
    sinkStrides = space.operandStrides(forward.getSinkOperand());
  }
}

/// Positions of keys and queries are those in the whole tensors; a negative one
/// is that of an empty slot.
bool Attention::isMasked(int64_t key, int64_t position) const {
  return causal &&
         (key < 0 || key > position || (window && key <= position - *window));
}

void Attention::computeScores(const First &first, int64_t position) {
  const FactorRange &keys = space.range(key);
  int64_t headSize = space.range(head).size;
  for (int64_t i = 0; i < keys.size; ++i) {
    int64_t keyPosition =
        keyAt ? keyAt->getInteger(first.keyAt + i * keyAtStrides[key])
              : keyPositions[i];
    if (isMasked(keyPosition, position)) {
      scores[i] = kMasked;
      continue;
    }
    int64_t atKey = first.key + i * kStrides[key];
    double score = 0;
    for (int64_t h = 0; h < headSize; ++h)
      score +=
          q[first.query + h * qStrides[head]] * k[atKey + h * kStrides[head]];
    score *= scale;
    scores[i] = softcap ? *softcap * std::tanh(score / *softcap) : score;
    if (bias)
      scores[i] += bias->getReal(first.bias + i * biasStrides[key]);
  }
}

void Attention::forEachQuery(const FactorStrides &statistics,
                             const FactorStrides &results,
                             llvm::function_ref<void(const Query &)> visit) {
  Loop<9> loop(space, queryFactors,
               {statistics, results, qStrides, kStrides, vStrides, positions,
                biasStrides, sinkStrides, keyAtStrides});
  Loop<9>::Offsets start{};
  start[5] = firstPosition;
  loop.run(start, [&](const Loop<9>::Offsets &offset) {
    computeScores({offset[2], offset[3], offset[6], offset[8]},
                  at ? at->getInteger(offset[5])
                     : queryOrder.positionAt(offset[5]));
    visit({scores, sink ? sink->getReal(offset[7]) : kMasked, offset[0],
           offset[2], offset[3], offset[4], offset[6], offset[1]});
  });
}

void Attention::combine(ArrayRef<double> weights, const Query &query,
                        Tensor &result) {
  Loop<2> loop(space, ownOfValues(), {space.resultStrides(), vStrides});
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

/// With weights p: v' = p g; the weights' p' = g . v; the scores' p (p' - g .
/// o), as softmax's gradient has it, since sum p p' = g . o.
void Attention::addGradients(ArrayRef<double> weights, const Query &query,
                             const Tensor &output, const Tensor &gradient,
                             MutableArrayRef<Tensor> results) {
  Tensor &dq = results[0], &dk = results[1], &dv = results[2];
  auto add = [](Tensor &to, int64_t at, double value) {
    to.setReal(at, to.getReal(at) + value);
  };
  std::vector<double> slopes(weights.size(), 0);
  double mean = 0;
  // The gradient lies as the output does, those of operands as these.
  Loop<2> own(
      space, ownOfValues(),
      {space.operandStrides(AttentionGradOp::kOutputOperand), vStrides});
  own.run({query.result, query.value}, [&](const Loop<2>::Offsets &at) {
    double g = gradient.getReal(at[0]);
    mean += g * output.getReal(at[0]);
    int64_t value = at[1];
    for (auto [weight, slope] : llvm::zip_equal(weights, slopes)) {
      slope += g * v[value];
      add(dv, value, weight * g);
      value += vStrides[key];
    }
  });
  for (auto [i, weight] : llvm::enumerate(weights)) {
    if (weight == 0)
      continue;
    double slope = weight * (slopes[i] - mean);
    int64_t atBias = query.bias + static_cast<int64_t>(i) * biasStrides[key];
    if (results.size() > AttentionGradOp::kBiasResult)
      add(results[AttentionGradOp::kBiasResult], atBias, slope);
    slope *= scale;
    if (softcap) {
      double capped = query.scores[i] - (bias ? bias->getReal(atBias) : 0);
      double tanh = capped / *softcap;
      slope *= 1 - tanh * tanh;
    }
    int64_t atQuery = query.query;
    int64_t atKey = query.key + static_cast<int64_t>(i) * kStrides[key];
    for (int64_t h = 0; h < space.range(head).size; ++h) {
      add(dq, atQuery, slope * k[atKey]);
      add(dk, atKey, slope * q[atQuery]);
      atQuery += qStrides[head];
      atKey += kStrides[head];
    }
  }
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
  attention.forEachQuery(
      space.statisticStrides(0), space.noStrides(), [&](const Query &query) {
        double value = result.getReal(query.statistic);
        if (!maxima) // the sum over keys leaves the sink out: it is added once
          value = maximum(value, query.sink);
        for (double score : query.scores)
          value =
              maxima ? value + expBelow(score, maxima->getReal(query.statistic))
                     : maximum(value, score);
        result.setReal(query.statistic, value);
      });
  return result;
}

/// The logsumexp of each query's scores.
static Tensor logSumExps(AttentionOp op, const IterationSpace &space,
                         const Tensor &maxima, const Tensor &sums) {
  constexpr unsigned number = 1;
  Tensor result = makeResult(op, number);
  Loop<2> loop(space, space.resultFactors(number),
               {space.resultStrides(number), space.statisticStrides(0)});
  loop.run([&](const Loop<2>::Offsets &at) {
    double sum = sums.getReal(at[1]);
    result.setReal(at[0],
                   sum == 0 ? kMasked : maxima.getReal(at[1]) + std::log(sum));
  });
  return result;
}

/// The part of the sum over keys that this device's keys make; 0 for a query
/// all of whose keys are masked.
FailureOr<TensorList> AttentionOp::evaluate(Operands operands, Ranges ranges,
                                            PositionPolicy policy) {
  Attention attention(*this, operands, ranges);
  const IterationSpace &space = attention.getSpace();
  FailureOr<StatisticValues> stats =
      StatisticValues::get(*this, space.getRule(), operands, ranges, policy);
  if (failed(stats))
    return failure();
  const Tensor &maxima = (*stats)[0], &sums = (*stats)[1];
  // With the sinks, which belong to no device's keys.
  Tensor allSums = sums;
  Tensor result = makeResult(*this, 0);
  std::vector<double> weights;
  attention.forEachQuery(space.statisticStrides(0), space.resultStrides(),
                         [&](const Query &query) {
                           double greatest = maxima.getReal(query.statistic);
                           double sum = sums.getReal(query.statistic) +
                                        expBelow(query.sink, greatest);
                           allSums.setReal(query.statistic, sum);
                           if (sum == 0)
                             return;
                           weights.clear();
                           for (double score : query.scores)
                             weights.push_back(expBelow(score, greatest) / sum);
                           attention.combine(weights, query, result);
                         });
  TensorList results = oneResult(std::move(result));
  if (getLogsumexp())
    results.push_back(logSumExps(*this, space, maxima, allSums));
  return results;
}

/// Sums over the keys (of dq) and queries (of dk and dv) that this device has.
FailureOr<TensorList> AttentionGradOp::evaluate(Operands operands,
                                                Ranges ranges, PositionPolicy) {
  Attention attention(*this, operands, ranges);
  const IterationSpace &space = attention.getSpace();
  const Tensor &logSumExps = *operands[kLogSumExpOperand];
  TensorList results;
  for (unsigned i = 0; i < getNumResults(); ++i)
    results.push_back(makeResult(*this, i));
  std::vector<double> weights;
  attention.forEachQuery(
      space.operandStrides(kLogSumExpOperand),
      space.operandStrides(kOutputOperand), [&](const Query &query) {
        weights.clear();
        for (double score : query.scores)
          weights.push_back(
              expBelow(score, logSumExps.getReal(query.statistic)));
        attention.addGradients(weights, query, *operands[kOutputOperand],
                               *operands[kGradientOperand], results);
      });
  return results;
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
  PositionOrder order;
  if (getAt()) {
    positions = space.operandStrides(1);
  } else {
    unsigned factor = space.find(*getPositions());
    positions = space.counting(factor);
    firstPosition = space.range(factor).offset;
    order = positionOrder(*this, *getPositions(), space.whole(factor));
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
    auto position = static_cast<double>(getAt() ? operands[1]->getInteger(at[2])
                                                : order.positionAt(at[2]));
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
