//===- ComparePlans.cpp - Whether two programs are one plan ---------------===//
//
// Values are numbered: those that equal operations make of equal operands have
// one number, in both programs. The plans are the same if they have the same
// numbers equally often.
//
//===----------------------------------------------------------------------===//

#include "ComparePlans.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

using Numbers = llvm::StringMap<unsigned>;

/// The operations of a program with their numbers, in program order.
class NumberedProgram {
public:
  NumberedProgram(ProgramOp program, Numbers &numbers) : numbers(numbers) {
    program.getBody().walk<WalkOrder::PreOrder>(
        [&](Operation *op) { add(op); });
  }

  std::vector<std::pair<Operation *, unsigned>> operations;

private:
  void add(Operation *op);
  std::string keyOf(Operation *op);
  /// The number of `key` with something more said.
  unsigned numberOf(const llvm::Twine &key) {
    return numbers.try_emplace(key.str(), numbers.size()).first->second;
  }

  Numbers &numbers;
  llvm::DenseMap<Value, unsigned> values;
  /// Tensors that are declared, and repeats, are told apart by their order.
  llvm::DenseMap<Operation *, unsigned> order;
};

} // namespace

/// The operation without operands that the value comes from, whole or cut: each
/// device has it for nothing. Null for others.
static Operation *freeSource(Operation *op) {
  if (isa_and_nonnull<AllSliceOp>(op))
    return freeSource(op->getOperand(0).getDefiningOp());
  if (!op || op->getNumOperands() > 0)
    return nullptr;
  auto cost = dyn_cast<CostOpInterface>(op);
  bool isFree = cost && cost.getFusionKind() == FusionKind::Free;
  return isFree || isa<ConstantOp>(op) ? op : nullptr;
}

/// True for attributes that say what an operation computes or costs.
static bool matters(NamedAttribute attribute) {
  StringRef name = attribute.getName().getValue();
  return !name.starts_with("shd.") && name != "sym" && name != "indices";
}

/// An operation's kind, attributes and operands as one text.
std::string NumberedProgram::keyOf(Operation *op) {
  std::string key;
  llvm::raw_string_ostream os(key);
  Operation *source = freeSource(op), *what = source ? source : op;
  os << what->getName();
  for (NamedAttribute attribute : what->getAttrs())
    if (matters(attribute))
      os << ' ' << attribute.getName().getValue() << '='
         << attribute.getValue();
  if (!source)
    for (Value operand : op->getOperands())
      os << ' ' << values.lookup(operand);
  for (Type type : op->getResultTypes())
    os << ' ' << type;
  if (isa<DeclareOp, RepeatOp>(op))
    os << " the " << order.try_emplace(op, order.size()).first->second;
  return key;
}

void NumberedProgram::add(Operation *op) {
  // A reshard stands for the collectives around it.
  if (isa<ReshardOp>(op)) {
    values[onlyResult(op)] = values.lookup(op->getOperand(0));
    return;
  }
  std::string key = keyOf(op);
  for (OpResult result : op->getResults())
    values[result] =
        numberOf(key + " result " + llvm::Twine(result.getResultNumber()));
  for (Region &region : op->getRegions())
    for (BlockArgument argument : region.getArguments())
      values[argument] =
          numberOf(key + " argument " + llvm::Twine(argument.getArgNumber()));
  if (freeSource(op))
    return;
  llvm::raw_string_ostream os(key);
  if (Attribute cost = op->getAttr(kGroupCost))
    os << ' ' << cost;
  if (auto repeat = dyn_cast<RepeatOp>(op->getParentOp()))
    os << " in " << order.lookup(repeat);
  operations.push_back({op, numberOf(key)});
}

/// The first operation whose number does not occur as often in the other
/// program, or null.
static Operation *firstMissing(const NumberedProgram &program,
                               const NumberedProgram &other) {
  llvm::DenseMap<unsigned, int> left;
  for (auto [op, number] : other.operations)
    ++left[number];
  for (auto [op, number] : program.operations)
    if (left[number]-- <= 0)
      return op;
  return nullptr;
}

std::optional<PlanDifference> shardc::comparePlans(ProgramOp first,
                                                   ProgramOp second) {
  Numbers numbers;
  NumberedProgram a(first, numbers), b(second, numbers);
  PlanDifference difference{firstMissing(a, b), firstMissing(b, a)};
  if (!difference.in && !difference.other)
    return std::nullopt;
  return difference;
}
