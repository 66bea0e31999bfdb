//===- ShdEvaluationElementwise.cpp - What functions of elements compute --===//
//
// Integer results of integers are computed exactly, all others in double
// precision.
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

using Operands = ArrayRef<const Tensor *>;
using Ranges = ArrayRef<FactorRange>;

namespace {
/// The arguments of a function; those that it does not take are 0.
template <typename Number> using Arguments = std::array<Number, 3>;
} // namespace

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// The tanh form.
static double gelu(double x) {
  double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(inner));
}

/// The functions that integers have too, and comparisons.
template <typename Number>
static std::optional<Number> applyAny(Function function,
                                      const Arguments<Number> &args) {
  auto [a, b, c] = args;
  switch (function) {
  case Function::Add:
    return a + b;
  case Function::Sub:
    return a - b;
  case Function::Neg:
    return -a;
  case Function::Copy:
  case Function::Cast:
  case Function::StopGradient:
    return a;
  case Function::Mul:
    return a * b;
  case Function::Square:
    return a * a;
  case Function::Where:
    return a != 0 ? b : c;
  case Function::Eq:
    return a == b;
  case Function::Ne:
    return a != b;
  case Function::Lt:
    return a < b;
  case Function::Le:
    return a <= b;
  case Function::Gt:
    return a > b;
  case Function::Ge:
    return a >= b;
  default:
    return std::nullopt;
  }
}

static double applyReal(Function function, const Arguments<double> &args) {
  if (std::optional<double> value = applyAny(function, args))
    return *value;
  double x = args[0];
  switch (function) {
  case Function::Div:
    return x / args[1];
  case Function::Relu:
    return maximum(x, 0);
  case Function::Gelu:
    return gelu(x);
  case Function::Silu:
    return x * sigmoid(x);
  case Function::Sigmoid:
    return sigmoid(x);
  case Function::Tanh:
    return std::tanh(x);
  case Function::Exp:
    return std::exp(x);
  case Function::Log:
    return std::log(x);
  case Function::Sqrt:
    return std::sqrt(x);
  case Function::Rsqrt:
    return 1 / std::sqrt(x);
  case Function::Abs:
    return std::abs(x);
  case Function::Maximum:
    return maximum(x, args[1]);
  case Function::Minimum:
    return minimum(x, args[1]);
  default:
    llvm_unreachable("a new function");
  }
}

/// Null for functions of real numbers only.
static std::optional<int64_t> applyInteger(Function function,
                                           const Arguments<int64_t> &args) {
  if (std::optional<int64_t> value = applyAny(function, args))
    return value;
  int64_t x = args[0];
  switch (function) {
  case Function::Relu:
    return std::max<int64_t>(x, 0);
  case Function::Abs:
    return std::abs(x);
  case Function::Rem: { // rounds down; 0 of 0, as NumPy has it
    int64_t divisor = args[1];
    int64_t rest = divisor ? x % divisor : 0;
    return rest != 0 && (rest < 0) != (divisor < 0) ? rest + divisor : rest;
  }
  case Function::Maximum:
    return std::max(x, args[1]);
  case Function::Minimum:
    return std::min(x, args[1]);
  default:
    return std::nullopt;
  }
}

/// Types without an infinity saturate, as integers do.
static double castTo(Type type, double value) {
  if (!isa<FloatType>(type) || std::isnan(value))
    return value;
  return std::clamp(value, Tensor::lowest(type), Tensor::highest(type));
}

/// Calls `visit` with the offsets in the result and the three arguments.
template <typename Visit>
static void forEachElement(const IterationSpace &space, Visit visit) {
  auto strides = [&](unsigned operand) {
    return operand < space.getRule().operands.size()
               ? space.operandStrides(operand)
               : space.noStrides();
  };
  Loop<4> loop(space, space.resultFactors(),
               {space.resultStrides(), strides(0), strides(1), strides(2)});
  loop.run(visit);
}

static void evaluateIntegers(Function function, const IterationSpace &space,
                             Operands operands, Tensor &result) {
  forEachElement(space, [&](const Loop<4>::Offsets &at) {
    Arguments<int64_t> args{};
    for (auto [i, operand] : llvm::enumerate(operands))
      args[i] = operand->getInteger(at[i + 1]);
    if (function == Function::Cast)
      result.setReal(at[0], static_cast<double>(args[0]));
    else
      result.setInteger(at[0], *applyInteger(function, args));
  });
}

static void evaluateReals(Function function, const IterationSpace &space,
                          Operands operands, Tensor &result) {
  Type type = result.getElementType();
  forEachElement(space, [&](const Loop<4>::Offsets &at) {
    Arguments<double> args{};
    for (auto [i, operand] : llvm::enumerate(operands))
      args[i] = operand->getReal(at[i + 1]);
    double value = applyReal(function, args);
    result.setReal(at[0],
                   function == Function::Cast ? castTo(type, value) : value);
  });
}

FailureOr<TensorList> ElementwiseOp::evaluate(Operands operands, Ranges ranges,
                                              PositionPolicy) {
  IterationSpace space(*this, ranges);
  Tensor result = makeResult(*this);
  bool exact = isExact(operands, result) &&
               applyInteger(getFunction(), Arguments<int64_t>{}).has_value();
  if (exact)
    evaluateIntegers(getFunction(), space, operands, result);
  else
    evaluateReals(getFunction(), space, operands, result);
  return oneResult(std::move(result));
}

FailureOr<TensorList> AdamWOp::evaluate(Operands operands, Ranges,
                                        PositionPolicy) {
  auto real = [](FloatAttr attribute) { return attribute.getValueAsDouble(); };
  double lr = real(getLrAttr()), decay = real(getDecayAttr());
  double beta1 = real(getBeta1Attr()), beta2 = real(getBeta2Attr());
  const Tensor &gradient = *operands[0], &weight = *operands[1];
  double c1 = operands[4]->getReal(0), c2 = operands[5]->getReal(0);
  double scale = getScale() ? operands[6]->getReal(0) : 1;
  TensorList results;
  for (unsigned i = 0; i < (*this)->getNumResults(); ++i)
    results.push_back(makeResult(*this, i));
  // All tensors have one shape.
  for (int64_t at = 0; at < gradient.getNumElements(); ++at) {
    double g = scale * gradient.getReal(at), p = weight.getReal(at);
    double m = beta1 * operands[2]->getReal(at) + (1 - beta1) * g;
    double v = beta2 * operands[3]->getReal(at) + (1 - beta2) * g * g;
    double direction = m / c1 / (std::sqrt(v / c2) + real(getEpsAttr()));
    p -= lr * (direction + decay * p);
    results[0].setReal(at, p);
    results[1].setReal(at, m);
    results[2].setReal(at, v);
    if (getRounded())
      results[3].setReal(at, p);
  }
  return results;
}

FailureOr<TensorList> SgdOp::evaluate(Operands operands, Ranges,
                                      PositionPolicy) {
  auto real = [](FloatAttr attribute) { return attribute.getValueAsDouble(); };
  double lr = real(getLrAttr()), beta = real(getBetaAttr());
  double decay = real(getDecayAttr());
  double scale = getScale() ? operands.back()->getReal(0) : 1;
  TensorList results;
  for (unsigned i = 0; i < (*this)->getNumResults(); ++i)
    results.push_back(makeResult(*this, i));
  // All tensors have one shape.
  for (int64_t at = 0; at < operands[0]->getNumElements(); ++at) {
    double p = operands[1]->getReal(at);
    double m = scale * operands[0]->getReal(at) + decay * p;
    if (getMomentum()) {
      m += beta * operands[2]->getReal(at);
      results[1].setReal(at, m);
    }
    p -= lr * m;
    results[0].setReal(at, p);
    if (getRounded())
      results.back().setReal(at, p);
  }
  return results;
}
