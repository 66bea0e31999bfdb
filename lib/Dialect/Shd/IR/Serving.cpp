//===- Serving.cpp - Prefill and decode of one program --------------------===//

#include "shardc/Dialect/Shd/IR/Serving.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

StringRef shd::stringify(ServingPhase phase) {
  return phase == ServingPhase::Prefill ? "prefill" : "decode";
}

DictionaryAttr Serving::toAttr(MLIRContext *context) const {
  Builder builder(context);
  NamedAttrList list;
  list.set("batch", builder.getStringAttr(batch));
  list.set("sequence", builder.getStringAttr(sequence));
  list.set("context", builder.getStringAttr(this->context));
  list.set("position", builder.getStringAttr(position));
  list.set("sequences", builder.getI64IntegerAttr(sequences));
  list.set("capacity", builder.getI64IntegerAttr(capacity));
  list.set("prompt", builder.getI64IntegerAttr(prompt));
  list.set("generate", builder.getI64IntegerAttr(generate));
  list.set("prompt_batch", builder.getI64IntegerAttr(promptBatch));
  list.set("separate", builder.getBoolAttr(separate));
  return list.getDictionary(context);
}

Serving Serving::of(DictionaryAttr attr) {
  auto text = [&](StringRef name) {
    auto found = attr.getAs<StringAttr>(name);
    return found ? found.str() : std::string();
  };
  auto number = [&](StringRef name) {
    auto found = attr.getAs<IntegerAttr>(name);
    return found ? found.getInt() : 1;
  };
  Serving serving;
  serving.batch = text("batch");
  serving.sequence = text("sequence");
  serving.context = text("context");
  serving.position = text("position");
  serving.sequences = number("sequences");
  serving.capacity = number("capacity");
  serving.prompt = number("prompt");
  serving.generate = number("generate");
  serving.promptBatch = number("prompt_batch");
  auto separate = attr.getAs<BoolAttr>("separate");
  serving.separate = separate && separate.getValue();
  return serving;
}

std::optional<Serving> Serving::of(ProgramOp program) {
  auto attr = program->getAttrOfType<DictionaryAttr>(kServing);
  return attr ? std::optional(of(attr)) : std::nullopt;
}

SmallVector<std::pair<std::string, int64_t>, 3>
Serving::extentsOf(ServingPhase phase) const {
  if (phase == ServingPhase::Prefill)
    return {{batch, promptBatch}, {sequence, prompt}, {context, prompt}};
  return {{batch, sequences}, {sequence, 1}, {context, capacity}};
}

/// The token generated as the i-th sees itself, those before it and the prompt.
double Serving::lastKeys(std::optional<int64_t> window) const {
  double keys = double(prompt) + double(generate);
  return window ? std::min(keys, double(*window)) : keys;
}

/// The mean of min(window, prompt + i) over i = 1 .. generate: the first
/// `below` tokens see fewer keys than the window has.
double Serving::meanKeys(std::optional<int64_t> window) const {
  int64_t below = generate;
  if (window)
    below = std::clamp<int64_t>(*window - prompt, 0, generate);
  double sum =
      double(below) * double(prompt) + double(below) * double(below + 1) / 2;
  if (window)
    sum += double(generate - below) * double(*window);
  return sum / double(generate);
}

std::optional<ServingPhase> shd::servingPhase(ProgramOp program) {
  auto attr = program->getAttrOfType<StringAttr>(kServingPhase);
  if (!attr)
    return std::nullopt;
  return attr == stringify(ServingPhase::Prefill) ? ServingPhase::Prefill
                                                  : ServingPhase::Decode;
}

double shd::filledKeys(Operation *op) {
  auto share = op->getAttrOfType<FloatAttr>(kFilledKeys);
  return share ? share.getValueAsDouble() : 1;
}

/// Marks the elementwise operations that make `value` of a cache.
static void markReaders(Value value, FloatAttr share) {
  auto maker = value.getDefiningOp<ElementwiseOp>();
  if (!maker)
    return;
  maker->setAttr(kFilledKeys, share);
  for (Value operand : maker->getOperands())
    if (cast<RankedTensorType>(operand.getType()).getRank() ==
        cast<RankedTensorType>(value.getType()).getRank())
      markReaders(operand, share);
}

void shd::setFilledKeys(ProgramOp program, const Serving &serving, bool last) {
  Builder builder(program.getContext());
  program->walk([&](AttentionOp op) {
    if (!op.getAt() || !(op.getCausal() || op.getWindow()))
      return;
    auto names = op.getIndexing().getOperandIndices(AttentionOp::kKeyOperand);
    size_t dim = llvm::find(names, op.getKey()) - names.begin();
    auto keyType = cast<RankedTensorType>(op.getK().getType());
    double extent = double(keyType.getDimSize(dim));
    std::optional<int64_t> window;
    if (op.getWindow())
      window = int64_t(*op.getWindow());
    double keys = last ? serving.lastKeys(window) : serving.meanKeys(window);
    FloatAttr share = builder.getF64FloatAttr(std::min(1.0, keys / extent));
    op->setAttr(kFilledKeys, share);
    markReaders(op.getK(), share);
    markReaders(op.getV(), share);
  });
}
