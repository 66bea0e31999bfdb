//===- StepNames.cpp - Names of a training step's operations --------------===//

#include "shardc/Optimizer/StepNames.h"
#include "shardc/Optimizer/Names.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

static std::string baseName(Operation *op) {
  if (auto declare = dyn_cast<DeclareOp>(op))
    return declare.getSym().str();
  if (auto output = dyn_cast<OutputOp>(op))
    return (output.getSym() + ".output").str();
  if (auto update = dyn_cast<UpdateOp>(op))
    return (update.getSym() + ".stored").str();
  if (isa<YieldOp>(op))
    return (cast<RepeatOp>(op->getParentOp()).getIndex() + ".next").str();
  if (auto repeat = dyn_cast<RepeatOp>(op))
    return repeat.getIndex().str();
  StringRef name = getResultName(op->getResult(0));
  return (name.empty() ? op->getName().stripDialect() : name).str();
}

static bool isNamed(Operation *op) {
  return !op->hasAttr(kCopy) &&
         (isa<OutputOp, UpdateOp, RepeatOp>(op) ||
          (isa<YieldOp>(op) && isa<RepeatOp>(op->getParentOp())) ||
          (isa<ShardingRuleOpInterface>(op) && op->getNumResults() > 0));
}

StepNames::StepNames(ProgramOp program) {
  // Numbers must not depend on where tensors are declared.
  for (auto declare : program.getBody().getOps<DeclareOp>())
    take(baseName(declare), declare);
  program->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!isa<DeclareOp>(op) && isNamed(op))
      take(baseName(op), op);
  });
}

std::string StepNames::take(StringRef base, Operation *op) {
  std::string name = base.str();
  for (unsigned number = 2; !operations.try_emplace(name, op).second; ++number)
    name = (base + "." + Twine(number)).str();
  if (op)
    names[op] = name;
  return name;
}

std::string StepNames::nameOf(Value value) const {
  value = rootValue(value);
  Operation *op = value.getDefiningOp();
  if (op && !isa<RepeatOp>(op))
    if (StringRef name = nameOf(op); !name.empty())
      return name.str();
  return valueName(value);
}
