//===- Place.cpp - shd-place -----------------------------------*- C++ -*-===//
//
// Layouts of the operations of a training step or a pipeline, as the program's
// text says them, become pins: of results how they are made and stored, of
// operands how they are read. Copies for several readers are inserted once the
// plan is solved, since a search decides about them itself.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shd/Transforms/Passes.h"
#include "shardc/Dialect/Shd/Transforms/StepLayouts.h"
#include "shardc/Optimizer/Graph.h"
#include "shardc/Optimizer/Network.h"
#include "shardc/Optimizer/StepNames.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace shardc::shd {
#define GEN_PASS_DEF_SHDPLACE
#include "shardc/Dialect/Shd/Transforms/Passes.h.inc"

namespace {

/// One record of `shd.layouts`.
struct StepLayout {
  explicit StepLayout(Attribute record)
      : record(cast<DictionaryAttr>(record)) {}

  StringRef name() const { return record.getAs<StringAttr>("name").getValue(); }
  bool isCopy() const { return record.contains("copy"); }
  size_t numResults() const { return record.getAs<ArrayAttr>("made").size(); }
  size_t numOperands() const { return record.getAs<ArrayAttr>("read").size(); }
  ShardingAttr made(size_t number) const { return pin("made", number); }
  ShardingAttr stored(size_t number) const { return pin("stored", number); }
  ShardingAttr read(size_t number) const { return pin("read", number); }
  StringRef operand(size_t number) const {
    auto names = record.getAs<ArrayAttr>("operands");
    return cast<StringAttr>(names[number]).getValue();
  }
  InFlightDiagnostic error() const {
    return emitError(Location(record.getAs<LocationAttr>("loc")));
  }

private:
  ShardingAttr pin(StringRef list, size_t number) const {
    return dyn_cast<ShardingAttr>(record.getAs<ArrayAttr>(list)[number]);
  }

  DictionaryAttr record;
};

std::vector<StepLayout> layoutsOf(ProgramOp program) {
  std::vector<StepLayout> layouts;
  if (auto records = program->getAttrOfType<ArrayAttr>(kLayouts))
    for (Attribute record : records)
      layouts.emplace_back(record);
  return layouts;
}

/// The operands that have layouts: no scalar constants, and no iteration's
/// number. A tensor that is written has its own.
SmallVector<OpOperand *> placedOperands(Operation *op) {
  SmallVector<OpOperand *> operands;
  if (auto update = dyn_cast<UpdateOp>(op))
    operands.push_back(&update.getValueMutable());
  else
    for (OpOperand &use : op->getOpOperands())
      if (hasLayout(use.get()))
        operands.push_back(&use);
  return operands;
}

class Placer {
public:
  explicit Placer(ProgramOp program)
      : program(program), names(program),
        mesh(program.getMeshAttr() ? toMesh(program.getMeshAttr()) : Mesh()) {}

  LogicalResult run();

private:
  LogicalResult place(const StepLayout &layout);
  LogicalResult placeResults(const StepLayout &layout, Operation *op);
  LogicalResult placeOperands(const StepLayout &layout, Operation *op);
  LogicalResult check(const StepLayout &layout, ShardingAttr pin, Value value);

  ProgramOp program;
  StepNames names;
  Mesh mesh;
  /// The value that the readers of a copy read.
  llvm::MapVector<StringRef, Value> copied;
};

/// A pin has the dimensions of its tensor and divides them.
LogicalResult Placer::check(const StepLayout &layout, ShardingAttr pin,
                            Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  if (!pin)
    return success();
  if (int64_t(pin.getDims().size()) != type.getRank())
    return layout.error() << "'" << layout.name() << "': expected "
                          << type.getRank() << " indices of '"
                          << names.nameOf(value) << "', found "
                          << pin.getDims().size();
  if (!program.getAllowPadding() &&
      !divides(mesh, tensorShape(type), toLayout(mesh, pin)))
    return layout.error() << "'" << layout.name()
                          << "': the axes of a layout do not divide '"
                          << names.nameOf(value) << "'";
  return success();
}

LogicalResult Placer::placeResults(const StepLayout &layout, Operation *op) {
  // Without results the name stands alone.
  if (isa<OutputOp, UpdateOp, YieldOp>(op))
    return success();
  if (layout.numResults() != op->getNumResults())
    return layout.error() << "'" << layout.name() << "' has "
                          << op->getNumResults() << " results, found "
                          << layout.numResults() << " layouts";
  for (OpResult result : op->getResults()) {
    unsigned number = result.getResultNumber();
    ShardingAttr made = layout.made(number), stored = layout.stored(number);
    if (failed(check(layout, made, result)) ||
        failed(check(layout, stored, result)))
      return failure();
    if (isa<RepeatOp>(op)) {
      setOperandPin(op, number, made);
      continue;
    }
    setResultPin(result, stored ? stored : made);
    if (!isa<DeclareOp>(op))
      setMade(result, made);
  }
  return success();
}

LogicalResult Placer::placeOperands(const StepLayout &layout, Operation *op) {
  // Tensors and carried values have their own layouts; what goes into one may
  // be a copy.
  bool handsOn = isa<UpdateOp, YieldOp, RepeatOp>(op);
  if (handsOn && layout.numOperands() == 0)
    return success();
  SmallVector<OpOperand *> operands = placedOperands(op);
  if (operands.size() != layout.numOperands())
    return layout.error() << "'" << layout.name() << "' reads "
                          << operands.size() << " tensors, found "
                          << layout.numOperands();
  for (auto [number, use] : llvm::enumerate(operands)) {
    StringRef found = layout.operand(number);
    std::string expected = names.nameOf(use->get());
    if (auto copy = copied.find(found); copy != copied.end()) {
      if (copy->second && copy->second != use->get())
        return layout.error()
               << "'" << layout.name() << "' reads '" << expected
               << "', but others read '" << found << "' as a copy of '"
               << names.nameOf(copy->second) << "'";
      copy->second = use->get();
    } else if (found != expected) {
      return layout.error() << "'" << layout.name() << "' reads '" << expected
                            << "', found '" << found << "'";
    }
    ShardingAttr read = layout.read(number);
    if (failed(check(layout, read, use->get())))
      return failure();
    if (!handsOn)
      setOperandPin(op, use->getOperandNumber(), read);
  }
  return success();
}

LogicalResult Placer::place(const StepLayout &layout) {
  Operation *op = names.find(layout.name());
  if (!op)
    return layout.error() << "no operation of the "
                          << (program.getTraining() ? "training step"
                                                    : "pipeline")
                          << " is called '" << layout.name() << "'";
  return failure(failed(placeResults(layout, op)) ||
                 failed(placeOperands(layout, op)));
}

LogicalResult Placer::run() {
  std::vector<StepLayout> layouts = layoutsOf(program);
  for (const StepLayout &layout : layouts)
    if (layout.isCopy() && !copied.insert({layout.name(), Value()}).second)
      return layout.error()
             << "two copies are called '" << layout.name() << "'";
  for (const StepLayout &layout : layouts)
    if (!layout.isCopy() && failed(place(layout)))
      return failure();
  for (const StepLayout &layout : layouts) {
    if (!layout.isCopy())
      continue;
    Value value = copied[layout.name()];
    if (!value)
      return layout.error()
             << "nothing reads the copy '" << layout.name() << "'";
    if (!layout.made(0))
      return layout.error()
             << "the copy '" << layout.name() << "' needs a layout";
    if (failed(check(layout, layout.made(0), value)))
      return failure();
  }
  return success();
}

struct PlacePass : impl::ShdPlaceBase<PlacePass> {
  void runOnOperation() override {
    if (getOperation()->hasAttr(kLayouts) &&
        failed(Placer(getOperation()).run()))
      signalPassFailure();
  }
};

} // namespace

bool hasPlacedCopies(ProgramOp program) {
  return llvm::any_of(layoutsOf(program),
                      [](const StepLayout &layout) { return layout.isCopy(); });
}

void insertPlacedCopies(ProgramOp program) {
  StepNames names(program);
  std::vector<StepLayout> layouts = layoutsOf(program);
  llvm::MapVector<StringRef, SmallVector<OpOperand *>> readers;
  for (const StepLayout &layout : layouts)
    if (layout.isCopy())
      readers.insert({layout.name(), {}});
  for (const StepLayout &layout : layouts) {
    if (layout.isCopy())
      continue;
    Operation *op = names.find(layout.name());
    if (layout.numOperands() == 0)
      continue;
    for (auto [number, use] : llvm::enumerate(placedOperands(op)))
      if (auto it = readers.find(layout.operand(number)); it != readers.end())
        it->second.push_back(use);
  }
  for (const StepLayout &layout : layouts) {
    if (!layout.isCopy())
      continue;
    ArrayRef<OpOperand *> uses = readers[layout.name()];
    Value value = uses.front()->get();
    Operation *copy = insertCopy(value, getStoredPin(value), layout.made(0));
    for (OpOperand *use : uses)
      use->set(onlyResult(copy));
  }
}

} // namespace shardc::shd
