//===- RunSize.cpp - What running a program takes -------------------------===//
//
// An operation goes through every combination of its indices, once for each
// device and iteration of the repeats around it. Sums are in double: they may
// be beyond 64 bits.
//
//===----------------------------------------------------------------------===//

#include "shardc/Verify/RunSize.h"
#include "shardc/Dialect/Spmd/IR/Spmd.h"

using namespace mlir;
using namespace shardc;

namespace {

/// Steps of an operation however small its tensors are.
constexpr double kOverhead = 1000;

/// Goes through a program in its order and adds up.
class SizeCheck {
public:
  SizeCheck(double devices, const RunLimits &limits)
      : devices(devices), limits(limits) {}

  LogicalResult check(Block &block, double runs);

private:
  LogicalResult add(Operation *op, double runs);
  LogicalResult fail(Operation *op, StringRef what, double limit) const;

  double devices;
  const RunLimits &limits;
  double steps = 0, elements = 0;
};

double elementsOf(Type type) {
  double elements = 1;
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    for (int64_t extent : tensor.getShape())
      elements *= double(extent);
  return elements;
}

/// True if only one of the operation's tensors has the index, and whole, as the
/// parts of a concatenation: they are gone through one after the other.
bool standsAlone(const ShardingRule &rule, unsigned factor) {
  auto has = [&](const auto &dims) {
    return llvm::any_of(
        dims, [&](const auto &dim) { return llvm::is_contained(dim, factor); });
  };
  return rule.factors[factor].kind == FactorKind::Replicated &&
         llvm::count_if(rule.operands, has) +
                 llvm::count_if(rule.results, has) ==
             1;
}

/// The types of the operands that an operation reads as a whole, without
/// stacked tensors of which it reads or writes a part.
TypeRange movedTypes(Operation *op) {
  TypeRange types = op->getOperandTypes();
  if (isa<shd::PartOp>(op))
    return {};
  if (isa<shd::UpdateOp, spmd::UpdateOp>(op))
    return types.take_front(1);
  return types;
}

/// Combinations of the operation's indices; elements of the tensors that others
/// read and make.
double stepsOf(Operation *op) {
  double most = 1;
  for (Type type : movedTypes(op))
    most = std::max(most, elementsOf(type));
  for (Type type : op->getResultTypes())
    most = std::max(most, elementsOf(type));
  auto interface = dyn_cast<shd::ShardingRuleOpInterface>(op);
  if (!interface)
    return most;
  ShardingRule rule = interface.getShardingRule();
  // Scores and weighted sums go through pairs of positions one after the other.
  if (isa<shd::AttentionOpInterface>(op))
    return std::max(most, cast<shd::CostOpInterface>(op)
                              .getWork(wholeExtents(rule), Machine())
                              .matrixFlops);
  double combinations = 1;
  for (auto [i, factor] : llvm::enumerate(rule.factors))
    if (!standsAlone(rule, i))
      combinations *= double(factor.extent);
  return std::max(most, combinations);
}

} // namespace

LogicalResult SizeCheck::fail(Operation *op, StringRef what,
                              double limit) const {
  return op->emitError() << "to run the program on "
                         << static_cast<uint64_t>(devices)
                         << (devices == 1 ? " device" : " devices")
                         << " takes more than " << static_cast<uint64_t>(limit)
                         << " " << what << ", even with dimensions shrunk";
}

LogicalResult SizeCheck::add(Operation *op, double runs) {
  steps += (stepsOf(op) + kOverhead) * runs * devices;
  if (steps > limits.steps)
    return fail(op, "steps", limits.steps);
  for (Type type : op->getResultTypes())
    elements += elementsOf(type) * devices;
  // Outputs and states are kept for every iteration.
  if (op->getNumResults() == 0)
    for (Type type : movedTypes(op))
      elements += elementsOf(type) * runs * devices;
  if (elements > limits.elements)
    return fail(op, "elements of memory", limits.elements);
  return success();
}

LogicalResult SizeCheck::check(Block &block, double runs) {
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>())
      continue;
    if (failed(add(&op, runs)))
      return failure();
    if (auto repeat = dyn_cast<shd::RepeatOp>(op))
      if (failed(check(repeat.getBody().front(),
                       runs * double(repeat.getCount()))))
        return failure();
  }
  return success();
}

LogicalResult shardc::checkRunSize(Operation *program, double devices,
                                   const RunLimits &limits) {
  return SizeCheck(devices, limits)
      .check(program->getRegion(0).front(), /*runs=*/1);
}

bool shardc::isRunnable(Operation *program, double devices,
                        const RunLimits &limits) {
  ScopedDiagnosticHandler silence(program->getContext(),
                                  [](Diagnostic &) { return success(); });
  return succeeded(checkRunSize(program, devices, limits));
}
