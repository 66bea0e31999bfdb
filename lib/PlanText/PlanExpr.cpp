//===- PlanExpr.cpp - Operations as expressions of the language -----------===//

#include "PlanExpr.h"
#include "PlanEdits.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include <charconv>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

//===----------------------------------------------------------------------===//
// Names and numbers
//===----------------------------------------------------------------------===//

static std::vector<std::string> toStrings(ArrayRef<StringRef> names) {
  return std::vector<std::string>(names.begin(), names.end());
}

std::vector<std::string> shardc::operandIndices(OpOperand &operand) {
  Operation *op = operand.getOwner();
  if (auto output = dyn_cast<OutputOp>(op)) {
    std::vector<std::string> names;
    for (StringRef name : output.getIndices().getAsValueRange<StringAttr>())
      names.push_back(name.str());
    return names;
  }
  return toStrings(
      cast<ShardingRuleOpInterface>(op).getIndexing().getOperandIndices(
          operand.getOperandNumber()));
}

std::vector<std::string> shardc::resultIndices(Operation *op) {
  return toStrings(
      cast<ShardingRuleOpInterface>(op).getIndexing().getResultIndices(0));
}

/// A real number with digits on both sides of the point, or an exponent.
static std::string realText(double value) {
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  char buffer[64];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  (void)error;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos)
    text += ".0";
  return text;
}

static std::string constantText(ConstantOp op) {
  auto value = cast<DenseElementsAttr>(op.getValue());
  if (isa<FloatType>(value.getElementType())) {
    llvm::APFloat number = value.getSplatValue<llvm::APFloat>();
    bool inexact = false;
    number.convert(llvm::APFloat::IEEEdouble(),
                   llvm::APFloat::rmNearestTiesToEven, &inexact);
    return realText(number.convertToDouble());
  }
  llvm::APInt number = value.getSplatValue<llvm::APInt>();
  bool isUnsigned = value.getElementType().isInteger(1) ||
                    value.getElementType().isUnsignedInteger();
  return llvm::toString(number, 10, /*Signed=*/!isUnsigned);
}

static ShardingAttr replicated(Type type) {
  MLIRContext *context = type.getContext();
  SmallVector<DimShardingAttr> dims(cast<RankedTensorType>(type).getRank(),
                                    DimShardingAttr::get(context, {}, false));
  return ShardingAttr::get(context, dims, {});
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

namespace {

class ExpressionPrinter {
public:
  ExpressionPrinter(Operation *op, OperandNamer namer) : op(op), namer(namer) {}

  std::string print();
  std::string operand(unsigned number);
  std::string gatheredList(ShardingAttr pin);

private:
  std::string operands(unsigned first, unsigned last);
  std::string elementwise(ElementwiseOp elementwise);
  std::string normalize(NormalizeOp normalize);
  std::string attention(AttentionOp attention);
  std::string rope(RopeOp rope);
  template <typename Op> std::string experts(Op op);

  Operation *op;
  OperandNamer namer;
};

} // namespace

std::string ExpressionPrinter::operand(unsigned number) {
  OpOperand &use = op->getOpOperand(number);
  if (auto constant = use.get().getDefiningOp<ConstantOp>())
    return constantText(constant);
  OperandText text = namer(use);
  if (!text.isName)
    return text.text;
  ShardingAttr pin = getOperandPin(op, number);
  return text.text + closedList(operandIndices(use),
                                pin ? pin : replicated(use.get().getType()));
}

std::string ExpressionPrinter::operands(unsigned first, unsigned last) {
  std::string text;
  for (unsigned i = first; i < last; ++i)
    text += (i > first ? ", " : "") + operand(i);
  return text;
}

/// `[B@X, pos[B], D]`: the dimensions of operand 0; positions are the last
/// operands.
std::string ExpressionPrinter::gatheredList(ShardingAttr pin) {
  ArrayRef<int64_t> dims = cast<PositionsOpInterface>(op).getDims();
  std::vector<std::string> entries = operandIndices(op->getOpOperand(0));
  unsigned first = op->getNumOperands() - dims.size();
  for (auto [i, dim] : llvm::enumerate(dims))
    entries[dim] = operand(first + i);
  return closedList(entries, pin);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// `a + b`, or nothing if the function is written as a call.
static StringRef infix(Function function) {
  switch (function) {
  case Function::Add:
    return " + ";
  case Function::Sub:
    return " - ";
  case Function::Mul:
    return " * ";
  case Function::Div:
    return " / ";
  case Function::Rem:
    return " % ";
  case Function::Eq:
    return " == ";
  case Function::Ne:
    return " != ";
  case Function::Lt:
    return " < ";
  case Function::Le:
    return " <= ";
  case Function::Gt:
    return " > ";
  case Function::Ge:
    return " >= ";
  default:
    return "";
  }
}

std::string ExpressionPrinter::elementwise(ElementwiseOp elementwise) {
  Function function = elementwise.getFunction();
  if (StringRef sign = infix(function); !sign.empty())
    return operand(0) + sign.str() + operand(1);
  if (function == Function::Neg)
    return "-" + operand(0);
  if (function == Function::Copy)
    return operand(0);
  StringRef name =
      function == Function::Cast
          ? typeName(elementwise.getResult().getType().getElementType())
          : stringifyFunction(function);
  return name.str() + "(" + operands(0, op->getNumOperands()) + ")";
}

/// `[H, S]` of a function.
static std::string brackets(ArrayRef<StringRef> names) {
  return "[" + llvm::join(names, ", ") + "]";
}

static SmallVector<StringRef> strings(ArrayAttr names) {
  return llvm::to_vector(names.getAsValueRange<StringAttr>());
}

/// `(A, B)`.
static std::string group(ArrayAttr names) {
  return "(" + llvm::join(strings(names), ", ") + ")";
}

std::string ExpressionPrinter::normalize(NormalizeOp normalize) {
  NormalizationAttr kind = normalize.getKindAttr();
  std::string text = stringifyNormalization(kind.getValue()).str() +
                     brackets(strings(normalize.getOver())) + "(" +
                     operands(0, normalize.getInputs().size());
  bool hasEps = kind.getValue() == Normalization::RmsNorm ||
                kind.getValue() == Normalization::LayerNorm;
  if (hasEps)
    text += ", eps=" + realText(normalize.getEps().convertToDouble());
  return text + ")";
}

std::string ExpressionPrinter::attention(AttentionOp attention) {
  std::string text = "attention" +
                     brackets({attention.getHead(), attention.getKey()}) + "(" +
                     operands(0, 3);
  if (attention.getCausal())
    text += ", causal=true";
  if (attention.getWindow())
    text += ", window=" + std::to_string(*attention.getWindow());
  if (attention.getAt())
    text += ", at=" + operand(attention.getAtOperand());
  if (attention.getScale())
    text += ", scale=" + realText(attention.getScale()->convertToDouble());
  if (attention.getSoftcap())
    text += ", softcap=" + realText(attention.getSoftcap()->convertToDouble());
  if (attention.getSink())
    text += ", sink=" + operand(attention.getSinkOperand());
  if (attention.getBias())
    text += ", bias=" + operand(attention.getBiasOperand());
  if (attention.getKeyAt())
    text += ", key_at=" + operand(attention.getKeyAtOperand());
  return text + ")";
}

/// `, chunks=8`; nothing without chunks.
static std::string chunksText(CrossEntropyOp loss) {
  switch (int64_t chunks = loss.getRowChunks()) {
  case kNoChunks:
    return "";
  case kAllChunks:
    return ", chunks=all";
  default:
    return ", chunks=" + std::to_string(chunks);
  }
}

std::string ExpressionPrinter::rope(RopeOp rope) {
  SmallVector<StringRef> names;
  if (rope.getPositions())
    names.push_back(*rope.getPositions());
  names.push_back(rope.getHead());
  std::string text = "rope" + brackets(names) + "(" + operand(0);
  if (rope.getAt())
    text += ", at=" + operand(1);
  return text + ", theta=" + realText(rope.getTheta().convertToDouble()) + ")";
}

template <typename Op> std::string ExpressionPrinter::experts(Op experts) {
  std::string text = op->getName().stripDialect().str() +
                     brackets({experts.getExperts(), experts.getSlots()}) +
                     "(" + operands(0, op->getNumOperands()) +
                     ", k=" + std::to_string(experts.getK());
  if (experts.getBlocks())
    text += ", blocks=" + std::to_string(*experts.getBlocks()) +
            ", limit=" + std::to_string(*experts.getLimit());
  if (experts.getDropless())
    text += ", dropless=true";
  if (experts.getImbalance())
    text +=
        ", imbalance=" + realText(experts.getImbalance()->convertToDouble());
  return text + ")";
}

std::string ExpressionPrinter::print() {
  return llvm::TypeSwitch<Operation *, std::string>(op)
      .Case([&](EinsumOp) { return operand(0) + " * " + operand(1); })
      .Case([&](ElementwiseOp e) { return elementwise(e); })
      .Case([&](ReduceOp reduce) {
        SmallVector<StringRef> over;
        IndexingAttr indexing = reduce.getIndexing();
        for (StringRef name : indexing.getOperandIndices(0))
          if (!llvm::is_contained(indexing.getResultIndices(0), name))
            over.push_back(name);
        return stringifyReduction(reduce.getKind()).str() + brackets(over) +
               "(" + operand(0) + ")";
      })
      .Case([&](NormalizeOp n) { return normalize(n); })
      .Case([&](AttentionOp a) { return attention(a); })
      .Case([&](GatherOp gather) {
        OperandText table = namer(op->getOpOperand(0));
        ShardingAttr pin = getOperandPin(op, 0);
        return table.text +
               gatheredList(pin ? pin
                                : replicated(gather.getTable().getType()));
      })
      .Case([&](ScatterOp) { return operand(1); })
      .Case([&](RopeOp r) { return rope(r); })
      .Case([&](CrossEntropyOp loss) {
        return "cross_entropy" + brackets(loss.getClasses()) + "(" +
               operands(0, 2) + chunksText(loss) + ")";
      })
      .Case([&](TopKOp topk) {
        return "topk" + brackets(topk.getOver()) + "(" + operand(0) +
               ", k=" + std::to_string(topk.getK()) + ")";
      })
      .Case<DispatchOp, CombineOp>([&](auto op) { return experts(op); })
      .Case([&](SplitOp split) {
        return "split[" + split.getWhole().str() + " -> " +
               group(split.getParts()) + "](" + operand(0) + ")";
      })
      .Case([&](MergeOp merge) {
        return "merge[" + group(merge.getParts()) + " -> " +
               merge.getWhole().str() + "](" + operand(0) + ")";
      })
      .Case([&](SliceOp slice) {
        ArrayRef<int64_t> range = slice.getRange();
        return "slice[" + slice.getWhole().str() + ": " +
               std::to_string(range[0]) + ".." + std::to_string(range[1]) +
               " -> " + slice.getPart().str() + "](" + operand(0) + ")";
      })
      .Case([&](ConcatOp concat) {
        return "concat[" + group(concat.getParts()) + " -> " +
               concat.getWhole().str() + "](" +
               operands(0, op->getNumOperands()) + ")";
      })
      .Case([&](IotaOp) { return "iota[" + resultIndices(op).front() + "]"; })
      .Case([&](ReshardOp) { return operand(0); });
}

std::string shardc::printExpression(Operation *op, OperandNamer namer) {
  return ExpressionPrinter(op, namer).print();
}

std::string shardc::printGatheredList(Operation *op, ShardingAttr pin,
                                      OperandNamer namer) {
  return ExpressionPrinter(op, namer).gatheredList(pin);
}

bool shardc::isCallShaped(Operation *op) {
  if (auto elementwise = dyn_cast<ElementwiseOp>(op))
    return infix(elementwise.getFunction()).empty() &&
           elementwise.getFunction() != Function::Neg &&
           elementwise.getFunction() != Function::Copy;
  return isa<ReduceOp, NormalizeOp, AttentionOp, RopeOp, CrossEntropyOp, TopKOp,
             DispatchOp, CombineOp, SplitOp, MergeOp, SliceOp, ConcatOp,
             IotaOp>(op);
}

bool shardc::takesExpressions(Operation *op) {
  auto elementwise = dyn_cast<ElementwiseOp>(op);
  bool isCopy = elementwise && elementwise.getFunction() == Function::Copy;
  return !isCopy && !isa<ReshardOp, PositionsOpInterface>(op);
}

bool shardc::arrangesIndices(Operation *op) {
  std::vector<std::string> read;
  for (OpOperand &use : op->getOpOperands())
    for (const std::string &name : operandIndices(use))
      if (!llvm::is_contained(read, name))
        read.push_back(name);
  return isa<ElementwiseOp>(op) && resultIndices(op) != read;
}

bool shardc::addsInPlace(Operation *op) {
  auto scatter = dyn_cast<ScatterOp>(op);
  return scatter && scatter.getAccumulate();
}

bool shardc::hasNaturalType(Operation *op) {
  if (auto elementwise = dyn_cast<ElementwiseOp>(op)) {
    Function function = elementwise.getFunction();
    if (function == Function::Cast ||
        (function >= Function::Eq && function <= Function::Ge))
      return true;
  }
  if (isa<IotaOp, TopKOp>(op))
    return true;
  if (auto reduce = dyn_cast<ReduceOp>(op);
      reduce && reduce.getKind() == Reduction::ArgMax)
    return true;
  Type type = getElementTypeOrSelf(op->getResult(0).getType());
  bool isWhere = isa<ElementwiseOp>(op) &&
                 cast<ElementwiseOp>(op).getFunction() == Function::Where;
  unsigned first = isWhere ? 1 : 0;
  unsigned last = op->getNumOperands();
  if (isa<GatherOp, AttentionOp, RopeOp, CrossEntropyOp>(op))
    last = 1; // positions and labels are integers
  for (unsigned i = first; i < last; ++i)
    if (!op->getOperand(i).getDefiningOp<ConstantOp>() &&
        getElementTypeOrSelf(op->getOperand(i).getType()) != type)
      return false;
  return true;
}
