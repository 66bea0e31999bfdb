//===- Pins.cpp - The annotations of a program's text ---------------------===//

#include "Pins.h"
#include "shardc/Optimizer/Names.h"
#include "shardc/Report/Report.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

std::string shardc::tensorName(Operation *op) {
  if (DeclareOp declared = introducedBy(op))
    return declared.getSym().str();
  if (auto output = dyn_cast<OutputOp>(op))
    return output.getSym().str();
  return isNamedTensor(op) ? getResultName(onlyResult(op)).str() : "";
}

Value shardc::valueAt(ArrayRef<Operation *> operations, PinPlace place) {
  Operation *op = operations[place.op];
  return place.operand ? op->getOperand(*place.operand) : onlyResult(op);
}

static SmallVector<std::string, 4> indicesAt(ArrayRef<Operation *> operations,
                                             PinPlace place) {
  Operation *user = operations[place.op];
  if (!place.operand)
    return indexNames(onlyResult(user));
  SmallVector<StringRef> names;
  if (auto output = dyn_cast<OutputOp>(user))
    llvm::append_range(names,
                       output.getIndices().getAsValueRange<StringAttr>());
  else if (auto ruled = dyn_cast<ShardingRuleOpInterface>(user))
    llvm::append_range(names,
                       ruled.getIndexing().getOperandIndices(*place.operand));
  else
    return indexNames(user->getOperand(*place.operand));
  return {names.begin(), names.end()};
}

std::string shardc::notationAt(ArrayRef<Operation *> operations,
                               const Mesh &mesh, PinPlace place,
                               const Layout &layout) {
  SmallVector<std::string, 4> names = indicesAt(operations, place);
  names.resize(layout.rank(), "_");
  return toString(mesh, layout, names);
}

/// As the program says it.
static std::string pinText(ArrayRef<Operation *> operations, const Mesh &mesh,
                           PinPlace place, ShardingAttr pin) {
  SmallVector<std::string, 4> names = indicesAt(operations, place);
  names.resize(pin.getDims().size(), "_");
  for (auto [dim, name] : llvm::zip_equal(pin.getDims(), names))
    if (dim.getIsOpen())
      name += "@?";
  return toString(mesh, toLayout(mesh, pin), names);
}

std::string shardc::placeText(const ProgramText &text, llvm::SMLoc place) {
  unsigned id = text.sourceMgr->FindBufferContainingLoc(place);
  auto [line, column] = text.sourceMgr->getLineAndColumn(place, id);
  return (text.sourceMgr->getMemoryBuffer(id)->getBufferIdentifier() + ":" +
          Twine(line) + ":" + Twine(column))
      .str();
}

static std::optional<std::string> textAt(const ProgramText &text, Operation *op,
                                         int64_t offset) {
  auto file = op->getAttrOfType<IntegerAttr>(kFile);
  if (!file || offset < 0 || size_t(file.getInt()) >= text.buffers.size())
    return std::nullopt;
  const llvm::MemoryBuffer *buffer =
      text.sourceMgr->getMemoryBuffer(text.buffers[file.getInt()]);
  return placeText(
      text, llvm::SMLoc::getFromPointer(buffer->getBufferStart() + offset));
}

std::string shardc::placeText(const ProgramText &text,
                              ArrayRef<Operation *> operations,
                              PinPlace place) {
  Operation *op = operations[place.op];
  auto uses = op->getAttrOfType<DenseI64ArrayAttr>(kUses);
  if (place.operand && uses && *place.operand < unsigned(uses.size()))
    if (std::optional<std::string> found =
            textAt(text, op, uses[*place.operand]))
      return *found;
  return locationText(op->getLoc());
}

Variant WrittenPin::withoutIt() const {
  Variant variant;
  for (PinPlace place : places)
    variant.pins.push_back({place, std::nullopt});
  return variant;
}

static void addPin(const ProgramText &text, const Mesh &mesh,
                   ArrayRef<Operation *> operations, PinPlace place,
                   std::vector<WrittenPin> &pins) {
  Operation *op = operations[place.op];
  ShardingAttr pin = pinAt(operations, place);
  bool isElsewhere = isa<DeclareOp, PartOp>(op) && !introducedBy(op);
  if (!pin || isElsewhere)
    return;
  std::string loc = placeText(text, operations, place);
  auto known = llvm::find_if(
      pins, [&](const WrittenPin &other) { return other.loc == loc; });
  if (known == pins.end()) {
    std::string named = place.operand && !isa<OutputOp>(op)
                            ? valueName(valueAt(operations, place))
                            : tensorName(op);
    std::string of = isa<OutputOp>(op) ? "output"
                     : place.operand   ? "use"
                                       : "tensor";
    known =
        pins.insert(pins.end(), {named + pinText(operations, mesh, place, pin),
                                 of,
                                 std::move(loc),
                                 {}});
  }
  known->places.push_back(place);
}

std::vector<WrittenPin> shardc::collectPins(const ProgramText &text,
                                            const Mesh &mesh,
                                            ArrayRef<Operation *> operations) {
  std::vector<WrittenPin> pins;
  for (auto [number, each] : llvm::enumerate(operations)) {
    addPin(text, mesh, operations, {unsigned(number), std::nullopt}, pins);
    for (unsigned operand = 0; operand < each->getNumOperands(); ++operand)
      addPin(text, mesh, operations, {unsigned(number), operand}, pins);
  }
  return pins;
}
