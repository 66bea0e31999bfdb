//===- ShdEvaluationExperts.cpp - What dispatch and combine compute -------===//

#include "Evaluation.h"
#include "Factors.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

using Operands = ArrayRef<const Tensor *>;
using Ranges = ArrayRef<FactorRange>;

//===----------------------------------------------------------------------===//
// Top k
//===----------------------------------------------------------------------===//

/// The numbers of the k largest of some elements: of equal ones the lower; what
/// is not a number counts as the largest, as in JAX.
static SmallVector<int64_t> largest(ArrayRef<double> elements, uint64_t k) {
  auto numbers = llvm::to_vector(llvm::seq<int64_t>(elements.size()));
  auto key = [&](int64_t number) {
    double element = elements[number];
    return std::isnan(element) ? std::pair(1, 0.0) : std::pair(0, element);
  };
  llvm::sort(numbers, [&](int64_t a, int64_t b) {
    return key(a) != key(b) ? key(a) > key(b) : a < b;
  });
  numbers.truncate(k);
  return numbers;
}

FailureOr<TensorList> TopKOp::evaluate(Operands operands, Ranges ranges,
                                       PositionPolicy) {
  IterationSpace space(*this, ranges);
  Tensor result = makeResult(*this);
  unsigned over = space.find(getOver());
  FactorStrides from = space.operandStrides(0), to = space.resultStrides();
  Loop<2> loop(space, space.othersThan(over), {from, to});
  SmallVector<double> elements(space.range(over).size);
  loop.run([&](const Loop<2>::Offsets &at) {
    for (auto [i, element] : llvm::enumerate(elements))
      element = operands[0]->getReal(at[0] + int64_t(i) * from[over]);
    for (int64_t number : largest(elements, getK()))
      result.setInteger(at[1] + number * to[over], 1);
  });
  return oneResult(std::move(result));
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

namespace {
/// Walks the picks of a device's groups: which of its tokens has which of its
/// slots.
class Routing {
public:
  Routing(ExpertsOpInterface op, Operands operands, Ranges ranges)
      : op(op), space(cast<ShardingRuleOpInterface>(op.getOperation()), ranges),
        picks(*operands[kPicksOperand]), indices(ExpertIndices::of(op)) {
    collectTokens();
  }

  const IterationSpace &getSpace() const { return space; }
  FactorList features() const { return factors(indices.features); }
  /// The strides of a tensor: operands first, then the result.
  FactorStrides strides(unsigned tensor) const {
    return tensor < op->getNumOperands()
               ? space.operandStrides(tensor)
               : space.resultStrides(tensor - op->getNumOperands());
  }

  /// Calls `visit` with the offsets, in the tensors of `strides`, of each token
  /// and expert that meet in a slot; all on this device.
  template <size_t N, typename Visit>
  LogicalResult run(std::array<FactorStrides, N> strides, Visit visit) const;

private:
  /// A token of a group: where its picks are, and along each index of tokens
  /// where it is here; nothing if another device has it.
  struct Token {
    int64_t picks = 0;
    std::optional<SmallVector<int64_t, 2>> here;
  };

  FactorList factors(ArrayRef<StringRef> names) const {
    FactorList list;
    for (StringRef name : names)
      list.push_back(space.find(name));
    return list;
  }
  unsigned ofPicks(StringRef name) const {
    return space.find((name + " of " + kOfPicks).str());
  }
  void collectTokens();
  LogicalResult checkPicks(int64_t at) const;
  LogicalResult refuseTokens(int64_t slots) const;

  // Methods of interfaces are not const.
  mutable ExpertsOpInterface op;
  IterationSpace space;
  const Tensor &picks;
  ExpertIndices indices;
  std::vector<Token> tokens;
};
} // namespace

/// All tokens of a group, in row-major order.
void Routing::collectTokens() {
  FactorStrides strides = space.operandStrides(kPicksOperand);
  tokens.push_back({0, SmallVector<int64_t, 2>()});
  for (StringRef name : indices.tokens) {
    const FactorRange &here = space.range(space.find(name));
    unsigned factor = ofPicks(name);
    std::vector<Token> longer;
    for (const Token &token : tokens)
      for (int64_t i = 0; i < space.range(factor).size; ++i) {
        Token &next = longer.emplace_back(token);
        next.picks += i * strides[factor];
        int64_t local = i - here.offset;
        if (local < 0 || local >= here.size)
          next.here.reset();
        else if (next.here)
          next.here->push_back(local);
      }
    tokens = std::move(longer);
  }
}

/// The picks of a token, which begin at `at`, are no more than they may be.
LogicalResult Routing::checkPicks(int64_t at) const {
  unsigned factor = ofPicks(op.getExperts());
  int64_t step = space.operandStrides(kPicksOperand)[factor];
  int64_t experts = space.range(factor).whole;
  int64_t blocks = op.getBlocks().value_or(1), size = experts / blocks;
  uint64_t picked = 0, touched = 0;
  for (int64_t block = 0; block < blocks; ++block) {
    uint64_t before = picked;
    for (int64_t i = 0; i < size; ++i)
      picked += picks.getInteger(at + (block * size + i) * step) != 0;
    touched += picked > before;
  }
  if (picked > op.getK())
    return op->emitOpError() << "a token picks " << picked << " of index '"
                             << op.getExperts() << "', but k is " << op.getK();
  if (op.getLimit() && touched > *op.getLimit())
    return op->emitOpError()
           << "the picks of a token lie in " << touched << " of " << blocks
           << " blocks of index '" << op.getExperts() << "', but the limit is "
           << *op.getLimit();
  return success();
}

/// The program is right, but not for these picks, which --verify makes up.
LogicalResult Routing::refuseTokens(int64_t slots) const {
  InFlightDiagnostic error =
      op->emitError() << "cannot run `dropless=true` with " << op.getSlots()
                      << " = " << slots << ": more than " << slots
                      << " of a group's tokens pick the same of index '"
                      << op.getExperts() << "'";
  if (slots == 1)
    error.attachNote()
        << "--verify runs small programs on random picks, with as "
           "many slots as these may need, but leaves extents of "
           "1 as they are: it can run this with "
        << op.getSlots() << " of at least 2";
  return error;
}

template <size_t N, typename Visit>
LogicalResult Routing::run(std::array<FactorStrides, N> strides,
                           Visit visit) const {
  unsigned expert = space.find(op.getExperts());
  unsigned slotFactor = space.find(op.getSlots());
  const FactorRange &experts = space.range(expert);
  const FactorRange &slots = space.range(slotFactor);
  int64_t pickStep =
      space.operandStrides(kPicksOperand)[ofPicks(op.getExperts())];
  FactorList tokenFactors = factors(indices.tokens);
  std::array<FactorStrides, N + 1> all;
  std::copy(strides.begin(), strides.end(), all.begin());
  all[N] = space.operandStrides(kPicksOperand);
  LogicalResult ok = success();
  Loop<N + 1> groups(space, factors(indices.groups), all);
  groups.run([&](const typename Loop<N + 1>::Offsets &group) {
    for (const Token &token : tokens)
      if (succeeded(ok))
        ok = checkPicks(group[N] + token.picks);
    if (failed(ok))
      return;
    for (int64_t e = 0; e < experts.size; ++e) {
      int64_t slot = -1, pick = (experts.offset + e) * pickStep;
      for (const Token &token : tokens) {
        if (!picks.getInteger(group[N] + token.picks + pick))
          continue;
        ++slot;
        if (slot >= slots.whole && op.getDropless()) {
          ok = refuseTokens(slots.whole);
          return;
        }
        int64_t local = slot - slots.offset;
        if (!token.here || local < 0 || local >= slots.size)
          continue;
        std::array<int64_t, N> at;
        for (size_t i = 0; i < N; ++i) {
          at[i] = group[i] + e * strides[i][expert] +
                  local * strides[i][slotFactor];
          for (auto [factor, here] : llvm::zip_equal(tokenFactors, *token.here))
            at[i] += here * strides[i][factor];
        }
        visit(at);
      }
    }
  });
  return ok;
}

//===----------------------------------------------------------------------===//
// Dispatch, combine and its gradient
//===----------------------------------------------------------------------===//

/// Adds, along the features, to the result's elements the product of the other
/// two tensors'.
static FailureOr<TensorList> addProducts(ExpertsOpInterface op,
                                         Operands operands, Ranges ranges) {
  Routing routing(op, operands, ranges);
  const IterationSpace &space = routing.getSpace();
  constexpr unsigned kTensors = 3;
  std::array<FactorStrides, kTensors> strides;
  SmallVector<unsigned, kTensors> read;
  Tensor result = makeResult(op);
  unsigned resultNumber = op->getNumOperands();
  strides[0] = routing.strides(resultNumber);
  auto add = [&](unsigned number) {
    if (number == resultNumber)
      return;
    read.push_back(number);
    strides[read.size()] = routing.strides(number);
  };
  add(op.getTokensTensor());
  add(op.getSlotsTensor());
  if (std::optional<unsigned> weights = op.getWeightsTensor())
    add(*weights);
  if (read.size() < 2)
    strides[2] = space.noStrides();
  Loop<kTensors> features(space, routing.features(), strides);
  LogicalResult done =
      routing.run(strides, [&](const std::array<int64_t, kTensors> &start) {
        features.run(start, [&](const Loop<kTensors>::Offsets &at) {
          double product = operands[read[0]]->getReal(at[1]);
          if (read.size() > 1)
            product *= operands[read[1]]->getReal(at[2]);
          result.setReal(at[0], result.getReal(at[0]) + product);
        });
      });
  if (failed(done))
    return failure();
  return oneResult(std::move(result));
}

FailureOr<TensorList> DispatchOp::evaluate(Operands operands, Ranges ranges,
                                           PositionPolicy) {
  return addProducts(*this, operands, ranges);
}

FailureOr<TensorList> CombineOp::evaluate(Operands operands, Ranges ranges,
                                          PositionPolicy) {
  return addProducts(*this, operands, ranges);
}

FailureOr<TensorList> CombineGradOp::evaluate(Operands operands, Ranges ranges,
                                              PositionPolicy) {
  return addProducts(*this, operands, ranges);
}
