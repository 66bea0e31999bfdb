//===- Gradients.cpp - Gradients against finite differences ---------------===//
//
// Runs the loss of a training step with one weight moved in a random direction
// to both sides, and compares how it changes with what the gradient says. What
// `stop_gradient` and `topk` give stays as it is where no weight is moved.
// Where updates are fused no buffer holds a gradient: the operation of the
// update reads it.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shd/IR/Segments.h"
#include "shardc/Reference/Parts.h"
#include "shardc/Verify/Verify.h"
#include "llvm/Support/xxhash.h"
#include <map>
#include <random>

using namespace mlir;
using namespace shardc;

namespace {

/// Random directions tried for each weight.
constexpr unsigned kDirections = 2;

/// Steps, one after the other until one agrees. The first has the least
/// rounding; a shorter one is less likely to cross the corner of a relu or a
/// maximum. A wrong gradient agrees with none of them.
constexpr double kSteps[] = {0x1p-9, 0x1p-14, 0x1p-18};

/// Relative to the sum of the magnitudes of gradient times direction. The
/// extrapolated difference is off by h^4 times the fifth derivative: 1.5e-11
/// at the first step, and 1e5 times that in functions as steep as the softmax
/// of large logits. Gradients that are wrong by less than a millionth are not
/// noticed.
constexpr double kTolerance = 1e-6;

/// Rounding of a loss in doubles, relative to its size, for some hundred
/// operations; it is divided by the step.
constexpr double kRounding = 1e-14;

class GradientCheck {
public:
  GradientCheck(shd::ProgramOp step, const RunResult &executed,
                const RunOptions &options, uint64_t seed)
      : module(ModuleOp::create(step.getLoc())),
        loss(cast<shd::ProgramOp>(step->clone())), executed(executed),
        options(options), seed(seed), step(step) {
    module->push_back(loss);
    keepLossOnly();
  }

  FailureOr<Verification::Gradients> run();

private:
  /// The gradient of a part of a weight.
  struct Part {
    int64_t number;
    TensorRef values;
  };

  void keepLossOnly();
  LogicalResult findHeld();
  LogicalResult findGradients();
  LogicalResult observeFused();
  FailureOr<double> lossAt(StringRef weight, const Tensor &direction,
                           double distance);
  FailureOr<double> derivative(StringRef weight, const Tensor &direction,
                               double step);
  LogicalResult check(shd::DeclareOp weight, ArrayRef<Part> gradient,
                      unsigned number);
  Tensor randomDirection(shd::DeclareOp weight, unsigned number) const;

  OwningOpRef<ModuleOp> module;
  /// Computes the loss and nothing else.
  shd::ProgramOp loss;
  const RunResult &executed;
  RunOptions options;
  uint64_t seed;
  shd::ProgramOp step;
  /// By the weight's name.
  llvm::StringMap<SmallVector<Part>> gradients;
  /// The results of `stop_gradient` and `topk` in each iteration.
  std::map<std::pair<Operation *, std::vector<int64_t>>, TensorRef> held;
  /// The largest magnitude of the loss so far.
  double size = 1;
  Verification::Gradients found;
};

/// Without updates of weights and optimizer, and what only these read.
void GradientCheck::keepLossOnly() {
  auto isUnused = [](Operation *op) {
    return llvm::all_of(op->getResults(),
                        [](Value result) { return result.use_empty(); });
  };
  SmallVector<shd::UpdateOp> updates;
  loss.walk([&](shd::UpdateOp update) { updates.push_back(update); });
  for (shd::UpdateOp update : updates)
    if (update.getDeclaration().getKind() != shd::TensorKind::State)
      update.erase();
  for (bool changed = true; changed;) {
    changed = false;
    SmallVector<Operation *> unused;
    loss.getBody().walk([&](Operation *op) {
      if (isa<shd::DeclareOp, shd::OutputOp, shd::UpdateOp, shd::YieldOp>(op) ||
          !isUnused(op))
        return;
      bool hasEffect = false;
      op->walk([&](Operation *inner) {
        hasEffect |= isa<shd::OutputOp, shd::UpdateOp>(inner);
      });
      if (!hasEffect)
        unused.push_back(op);
    });
    // Those inside of a repeat come before it.
    for (Operation *op : unused) {
      op->erase();
      changed = true;
    }
  }
}

/// True of an operation without a derivative whose results may change with the
/// weights. Picks do where two values are close, and the loss jumps there.
static bool stopsGradient(Operation *op) {
  auto elementwise = dyn_cast<shd::ElementwiseOp>(op);
  return isa<shd::TopKOp>(op) ||
         (elementwise &&
          elementwise.getFunction() == shd::Function::StopGradient);
}

/// Runs the loss as it is, and notes what does not change with the weights.
LogicalResult GradientCheck::findHeld() {
  WalkResult stops = loss.walk([](Operation *op) {
    return stopsGradient(op) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (!stops.wasInterrupted())
    return success();
  RunOptions observed = options;
  observed.observe = [&](const RunValue &run) {
    if (stopsGradient(run.value.getOwner()))
      held[{run.value.getOwner(), run.iterations.vec()}] = run.parts.front();
  };
  if (failed(interpret(loss, observed)))
    return failure();
  options.held = [&](OpResult value, ArrayRef<int64_t> iterations) {
    auto it = held.find({value.getOwner(), iterations.vec()});
    return it == held.end() ? TensorRef() : it->second;
  };
  return success();
}

/// The weight that an operation of an optimizer updates; null for another one.
static shd::DeclareOp updatedWeight(Operation *op) {
  if (isa<shd::AdamWOp, shd::SgdOp>(op))
    for (Operation *user : op->getUsers())
      if (auto update = dyn_cast<shd::UpdateOp>(user))
        if (update.getDeclaration().getKind() == shd::TensorKind::Weight)
          return update.getDeclaration();
  return nullptr;
}

/// The number of a weight's part that an operation updates which runs in these
/// iterations of the repeats around it. The weight is stacked along all of
/// them.
static int64_t partNumber(Operation *op, shd::DeclareOp weight,
                          ArrayRef<int64_t> iterations) {
  SmallVector<shd::RepeatOp> around;
  for (auto repeat = op->getParentOfType<shd::RepeatOp>(); repeat;
       repeat = repeat->getParentOfType<shd::RepeatOp>())
    around.push_back(repeat);
  assert(around.size() == weight.getStacked() &&
         "no segments, no microbatches");
  int64_t number = 0;
  for (auto [depth, repeat] : llvm::enumerate(llvm::reverse(around)))
    number = number * weight.getType().getDimSize(depth) +
             shd::numberWithin(repeat, iterations.take_front(depth),
                               iterations[depth]);
  return number;
}

/// Runs the step once more, and notes the gradients that updates read.
LogicalResult GradientCheck::observeFused() {
  RunOptions observed = options;
  Operation *reader = nullptr;
  TensorRef gradient;
  observed.observeOperands = [&](Operation *op,
                                 ArrayRef<const Tensor *> operands) {
    if (!updatedWeight(op))
      return;
    reader = op;
    gradient = std::make_shared<const Tensor>(*operands.front());
  };
  observed.observe = [&](const RunValue &run) {
    if (run.value.getOwner() != reader)
      return;
    shd::DeclareOp weight = updatedWeight(std::exchange(reader, nullptr));
    gradients[weight.getSym()].push_back(
        {partNumber(run.value.getOwner(), weight, run.iterations), gradient});
  };
  return success(succeeded(interpret(step, observed)));
}

LogicalResult GradientCheck::findGradients() {
  for (const RunResult::Final &final : executed.finals)
    if (final.kind == shd::TensorKind::Gradient)
      gradients[*cast<shd::UpdateOp>(final.op).getDeclaration().getOf()]
          .push_back({final.iterations.front(), final.parts.front()});
  return step.getTraining()->getFused() ? observeFused() : success();
}

FailureOr<double> GradientCheck::lossAt(StringRef weight,
                                        const Tensor &direction,
                                        double distance) {
  RunOptions moved = options;
  moved.declared = [&](const DeclaredTensor &declared) {
    Tensor tensor = options.declared(declared);
    if (declared.name == weight)
      for (int64_t i = 0; i < tensor.getNumElements(); ++i)
        tensor.setReal(i, tensor.getReal(i) + distance * direction.getReal(i));
    return tensor;
  };
  FailureOr<RunResult> run = interpret(loss, moved);
  if (failed(run))
    return failure();
  for (const RunResult::Final &final : run->finals)
    if (!final.kind && final.name == loss.getTraining()->getLoss()) {
      double value = final.parts.front()->getReal(0);
      if (std::isfinite(value))
        size = std::max(size, std::abs(value));
      return value;
    }
  return loss.emitError("does not compute the loss");
}

/// Central differences, extrapolated from a step and half of it.
FailureOr<double> GradientCheck::derivative(StringRef weight,
                                            const Tensor &direction,
                                            double step) {
  double slopes[2];
  for (double &slope : slopes) {
    FailureOr<double> after = lossAt(weight, direction, step);
    FailureOr<double> before = lossAt(weight, direction, -step);
    if (failed(after) || failed(before))
      return failure();
    slope = (*after - *before) / (2 * step);
    step /= 2;
  }
  return (4 * slopes[1] - slopes[0]) / 3;
}

Tensor GradientCheck::randomDirection(shd::DeclareOp weight,
                                      unsigned number) const {
  Tensor direction(weight.getType());
  std::mt19937_64 random(llvm::xxh3_64bits(weight.getSym()) ^ seed ^
                         (uint64_t(number) << 32));
  for (int64_t i = 0; i < direction.getNumElements(); ++i)
    direction.setReal(i, double(int64_t(random() >> 11)) * 0x1p-52 - 1);
  return direction;
}

LogicalResult GradientCheck::check(shd::DeclareOp weight,
                                   ArrayRef<Part> gradient, unsigned number) {
  Tensor direction = randomDirection(weight, number);
  double expected = 0, scale = 0;
  auto type = shd::partType(weight.getType(), weight.getStacked());
  for (const Part &each : gradient) {
    Tensor part = partOfStack(direction, each.number, type);
    const Tensor &values = *each.values;
    for (int64_t i = 0; i < values.getNumElements(); ++i) {
      expected += values.getReal(i) * part.getReal(i);
      scale += std::abs(values.getReal(i) * part.getReal(i));
    }
  }
  ++found.directions;
  double closest = std::numeric_limits<double>::infinity(), at = 0;
  for (double step : kSteps) {
    FailureOr<double> slope = derivative(weight.getSym(), direction, step);
    if (failed(slope))
      return failure();
    if (!std::isfinite(*slope)) {
      ++found.notFinite;
      return success();
    }
    double difference = std::abs(*slope - expected);
    double allowed = kTolerance * scale + kRounding * size / step;
    if (difference <= allowed) {
      found.largest =
          std::max(found.largest, kTolerance * difference / allowed);
      return success();
    }
    if (!(difference / allowed >= closest)) {
      closest = difference / allowed;
      at = *slope;
    }
  }
  found.largest = std::max(found.largest, kTolerance * closest);
  found.wrong.push_back({weight.getSym().str(), weight.getLoc(), at, expected});
  return success();
}

FailureOr<Verification::Gradients> GradientCheck::run() {
  if (failed(findHeld()) || failed(findGradients()))
    return failure();
  for (auto weight : loss.getBody().getOps<shd::DeclareOp>())
    if (auto it = gradients.find(weight.getSym());
        it != gradients.end() && weight.getKind() == shd::TensorKind::Weight)
      for (unsigned number = 0; number < kDirections; ++number)
        if (failed(check(weight, it->second, number)))
          return failure();
  return std::move(found);
}

} // namespace

FailureOr<Verification::Gradients>
shardc::checkGradients(shd::ProgramOp step, const RunResult &executed,
                       const RunOptions &options, uint64_t seed) {
  return GradientCheck(step, executed, options, seed).run();
}
