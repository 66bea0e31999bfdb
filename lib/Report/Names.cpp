//===- Names.cpp - Names and notation of a planned program ----------------===//

#include "Names.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

Value shardc::collectiveInput(Operation *op) {
  assert(isCollective(op));
  return op->getOperand(0);
}

std::vector<std::string> shardc::collectiveAxes(Operation *op) {
  ArrayAttr axes =
      llvm::TypeSwitch<Operation *, ArrayAttr>(op)
          .Case<AllGatherOp, AllSliceOp, AllToAllOp, ReduceScatterOp,
                AllReduceOp, CollectivePermuteOp, ToHostOp, FromHostOp,
                HaloExchangeOp, HaloReduceOp>(
              [](auto collective) { return collective.getAxes(); });
  std::vector<std::string> names;
  for (auto axis : axes.getAsRange<StringAttr>())
    names.push_back(axis.str());
  return names;
}

llvm::StringRef shardc::mnemonic(Operation *op) {
  return op->getName().stripDialect();
}

llvm::StringRef shardc::functionName(Operation *op) {
  auto computed = dyn_cast<ShardingRuleOpInterface>(op);
  return computed ? computed.getFunctionName() : mnemonic(op);
}

std::string shardc::nameOf(Operation *op) {
  if (op->getNumResults() > 0)
    if (StringRef name = getResultName(op->getResults().front()); !name.empty())
      return name.str();
  return llvm::TypeSwitch<Operation *, std::string>(op)
      .Case<DeclareOp, OutputOp, UpdateOp>(
          [](auto named) { return named.getSym().str(); })
      .Case([](PartOp part) { return valueName(part.getResult()); })
      .Case([](RepeatOp repeat) { return repeat.getIndex().str(); })
      .Default([](Operation *other) { return mnemonic(other).str(); });
}

static std::vector<std::string> strings(ArrayAttr names) {
  std::vector<std::string> result;
  for (auto name : names.getAsRange<StringAttr>())
    result.push_back(name.str());
  return result;
}

static std::vector<std::string> strings(ArrayRef<StringRef> names) {
  return std::vector<std::string>(names.begin(), names.end());
}

std::vector<std::string> shardc::collectiveIndices(Operation *op) {
  if (auto indices = op->getAttrOfType<ArrayAttr>(kIndices))
    return strings(indices);
  return operandIndexNames(op->getOpOperand(0));
}

std::vector<std::string> shardc::operandIndexNames(OpOperand &operand) {
  Operation *user = operand.getOwner();
  if (auto output = dyn_cast<OutputOp>(user))
    return strings(output.getIndices());
  if (auto ruled = dyn_cast<ShardingRuleOpInterface>(user);
      ruled &&
      operand.getOperandNumber() < ruled.getIndexing().getOperands().size())
    return strings(
        ruled.getIndexing().getOperandIndices(operand.getOperandNumber()));
  llvm::SmallVector<std::string, 4> names = indexNames(operand.get());
  return std::vector<std::string>(names.begin(), names.end());
}

std::string shardc::locationText(Location loc) {
  auto place = loc->findInstanceOf<FileLineColRange>();
  if (!place)
    return "";
  return (place.getFilename().getValue() + ":" + Twine(place.getStartLine()) +
          ":" + Twine(place.getStartColumn()))
      .str();
}

std::string shardc::joinWords(llvm::ArrayRef<std::string> words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0)
      text += i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}
