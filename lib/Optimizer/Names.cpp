//===- Names.cpp - The user's names of values ------------------*- C++ -*-===//

#include "shardc/Optimizer/Names.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

Value shardc::rootValue(Value value) {
  while (Operation *def = value.getDefiningOp()) {
    if (!isCollective(def) && !def->hasAttr(kCopy))
      break;
    value = def->getOperand(0);
  }
  return value;
}

/// What a declaration or an operation has made of a value, and named: through
/// repeats, the initial value.
static OpResult namedValue(Value value) {
  while (true) {
    value = rootValue(value);
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto repeat = cast<RepeatOp>(argument.getOwner()->getParentOp());
      if (argument.getArgNumber() == 0)
        return {};
      value = repeat.getInits()[argument.getArgNumber() - 1];
    } else if (auto repeat = value.getDefiningOp<RepeatOp>()) {
      value = repeat.getInits()[cast<OpResult>(value).getResultNumber()];
    } else if (auto part = value.getDefiningOp<PartOp>()) {
      value = part.getSource();
    } else {
      return cast<OpResult>(value);
    }
  }
}

std::string shardc::valueName(Value value) {
  OpResult named = namedValue(value);
  if (!named)
    return "";
  if (auto declared = dyn_cast<DeclareOp>(named.getOwner()))
    return declared.getSym().str();
  return getResultName(named).str();
}

bool shardc::isNamedTensor(Operation *op) {
  return introducedBy(op) ||
         (isa<CostOpInterface>(op) && op->getNumResults() == 1 &&
          op->hasAttr(kName) && !op->hasAttr(kTemporary));
}

llvm::SmallVector<std::string, 4> shardc::indexNames(Value value) {
  llvm::SmallVector<std::string, 4> names;
  OpResult named = namedValue(value);
  if (!named)
    return names;
  if (auto declared = dyn_cast<DeclareOp>(named.getOwner()))
    for (StringRef name : declared.getIndices().getAsValueRange<StringAttr>())
      names.push_back(name.str());
  else if (auto compute = dyn_cast<ShardingRuleOpInterface>(named.getOwner()))
    for (StringRef name :
         compute.getIndexing().getResultIndices(named.getResultNumber()))
      names.push_back(name.str());
  // A part lacks the first indices of the stacked tensor.
  size_t rank = cast<RankedTensorType>(value.getType()).getRank();
  if (names.size() > rank)
    names.erase(names.begin(), names.end() - rank);
  return names;
}

std::string shardc::notation(const Mesh &mesh, const Layout &layout,
                             llvm::ArrayRef<std::string> names) {
  llvm::SmallVector<std::string, 4> all(names);
  all.resize(layout.rank(), "_");
  return toString(mesh, layout, all);
}
