//===- ShdExtents.cpp - What operations ask of extents --------------------===//
//
// Beyond their sharding rules, and how attributes that hold sizes or positions
// follow when extents change.
//
//===----------------------------------------------------------------------===//

#include "Factors.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;
using NewExtent = llvm::function_ref<int64_t(int64_t)>;

/// Extent of an index of an operand or result.
static int64_t extentOf(ArrayRef<StringRef> indices, Value value,
                        StringRef index) {
  return cast<RankedTensorType>(value.getType())
      .getDimSize(llvm::find(indices, index) - indices.begin());
}

//===----------------------------------------------------------------------===//
// Attention and positions
//===----------------------------------------------------------------------===//

/// A window that hides keys still hides some.
template <typename Op> static void resizeWindow(Op op, NewExtent newExtent) {
  if (!op.getWindow())
    return;
  int64_t keys =
      extentOf(op.getIndexing().getOperandIndices(AttentionOp::kKeyOperand),
               op.getK(), op.getKey());
  int64_t window = *op.getWindow(), resized = newExtent(keys);
  op.setWindow(window >= keys
                   ? resized
                   : std::min(window, std::max<int64_t>(resized / 2, 1)));
}

void ConstantOp::resizeAttributes(NewExtent newExtent) {
  if ((*this)->hasAttr(kExtent)) {
    auto extent = getValue().getValues<IntegerAttr>()[0];
    setValueAttr(DenseElementsAttr::get(
        getType(), Attribute(IntegerAttr::get(extent.getType(),
                                              newExtent(extent.getInt())))));
  }
  auto extents = (*this)->getAttrOfType<DenseI64ArrayAttr>(kInverseOf);
  if (!extents)
    return;
  SmallVector<int64_t> resized;
  for (int64_t extent : extents.asArrayRef())
    resized.push_back(newExtent(extent));
  setInverseOf(*this, resized);
}

void AttentionOp::resizeAttributes(NewExtent newExtent) {
  resizeWindow(*this, newExtent);
}

void AttentionGradOp::resizeAttributes(NewExtent newExtent) {
  resizeWindow(*this, newExtent);
}

/// Each element has one with which it pairs.
void RopeOp::collectExtentRules(ExtentRules &rules) {
  rules.even.push_back(
      extentOf(getIndexing().getOperandIndices(0), getInput(), getHead()));
}

//===----------------------------------------------------------------------===//
// Experts
//===----------------------------------------------------------------------===//

/// A token still picks k of more experts, where it did.
static void keepChoice(ExtentRules &rules, int64_t experts, int64_t k) {
  if (experts > 1)
    rules.distances.push_back({1, experts, std::min(k, experts - 1)});
}

void TopKOp::collectExtentRules(ExtentRules &rules) {
  keepChoice(
      rules,
      extentOf(getIndexing().getOperandIndices(0), getInput(), getOver()),
      getK());
}

template <typename Op>
static void collectExpertRules(Op op, ExtentRules &rules) {
  auto names = op.getIndexing().getOperandIndices(kPicksOperand);
  keepChoice(rules, extentOf(names, op.getPicks(), op.getExperts()), op.getK());
}

/// As many blocks as an index of their number has elements, if the experts can
/// be divided so; k experts fit into so many of them as the limit says.
template <typename Op> static void resizeBlocks(Op op, NewExtent newExtent) {
  if (!op.getBlocks())
    return;
  auto names = op.getIndexing().getOperandIndices(kPicksOperand);
  int64_t experts = newExtent(extentOf(names, op.getPicks(), op.getExperts()));
  int64_t blocks = newExtent(int64_t(*op.getBlocks()));
  if (experts % blocks != 0)
    blocks = 1;
  op.setBlocks(uint64_t(blocks));
  uint64_t least = llvm::divideCeil(op.getK(), uint64_t(experts / blocks));
  op.setLimit(std::clamp<uint64_t>(*op.getLimit(), least, blocks));
}

void DispatchOp::collectExtentRules(ExtentRules &rules) {
  collectExpertRules(*this, rules);
}

void DispatchOp::resizeAttributes(NewExtent newExtent) {
  resizeBlocks(*this, newExtent);
}

void CombineOp::collectExtentRules(ExtentRules &rules) {
  collectExpertRules(*this, rules);
}

void CombineOp::resizeAttributes(NewExtent newExtent) {
  resizeBlocks(*this, newExtent);
}

void CombineGradOp::collectExtentRules(ExtentRules &rules) {
  collectExpertRules(*this, rules);
}

void CombineGradOp::resizeAttributes(NewExtent newExtent) {
  resizeBlocks(*this, newExtent);
}

//===----------------------------------------------------------------------===//
// Layout of indices
//===----------------------------------------------------------------------===//

static int64_t slicedExtent(SliceOp op) {
  return extentOf(op.getIndexing().getOperandIndices(0), op.getInput(),
                  op.getWhole());
}

/// A range that neither begins nor ends with the whole has elements on both
/// sides.
void SliceOp::collectExtentRules(ExtentRules &rules) {
  int64_t whole = slicedExtent(*this);
  int64_t begin = getRange()[0], end = getRange()[1];
  if (end - begin < whole)
    rules.distances.push_back(
        {end - begin, whole, begin > 0 && end < whole ? 2 : 1});
}

/// A range at the start or the end of the whole stays there, one within it
/// stays within.
void SliceOp::resizeAttributes(NewExtent newExtent) {
  int64_t whole = slicedExtent(*this);
  int64_t begin = getRange()[0], end = getRange()[1];
  int64_t length = newExtent(end - begin);
  int64_t room = newExtent(whole) - length;
  int64_t resized = begin == 0 ? 0 : end == whole ? room : room / 2;
  // The derivative puts tensors of these extents before and behind the part.
  if (begin > 0 && end < whole &&
      newExtent(begin) + newExtent(whole - end) == room)
    resized = newExtent(begin);
  setRange({resized, resized + length});
}

void ConcatOp::collectExtentRules(ExtentRules &rules) {
  ExtentRules::Sum &sum = rules.sums.emplace_back();
  sum.whole =
      extentOf(getIndexing().getResultIndices(0), getResult(), getWhole());
  for (auto [i, part] :
       llvm::enumerate(getParts().getAsValueRange<StringAttr>()))
    sum.parts.push_back(
        extentOf(getIndexing().getOperandIndices(i), getInputs()[i], part));
}
