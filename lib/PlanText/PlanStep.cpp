//===- PlanStep.cpp - The plan of a training step or a pipeline -----------===//
//
// Fields of the train block with the choices that were made, and at its end how
// every operation runs that no statement of the program's text places: those of
// the backward pass and of the update, and forward operations whose statement
// has no place for all that the plan says of them. A pipeline that is not
// trained has its choices behind its `repeat`, and the rest at the file's end.
//
//===----------------------------------------------------------------------===//

#include "PlanPrinter.h"
#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "shardc/Optimizer/Graph.h"
#include "shardc/Optimizer/Names.h"
#include "shardc/Optimizer/StepNames.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;
using llvm::SMLoc;

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

/// Behind the brackets that close after `loc`, in the text before `end`: those
/// around an expression are not in its range.
static SMLoc afterBrackets(SMLoc loc, SMLoc end) {
  const char *behind = loc.getPointer();
  for (const char *at = skipSpace(behind, end.getPointer()); *at == ')';
       at = skipSpace(behind, end.getPointer()))
    behind = at + 1;
  return SMLoc::getFromPointer(behind);
}

/// Sets a field of the block where it stands, or at the block's end.
void PlanPrinter::setTrainField(StringRef name, StringRef value,
                                TextEdits &edits) {
  for (const ast::Setting &setting : trainBlock->settings)
    if (setting.name.text == name) {
      if (setting.values.front().text != value)
        edits.replace(setting.values.front().range, value);
      return;
    }
  newFields.push_back((name + " = " + value).str());
}

void PlanPrinter::setTrainFields(TextEdits &edits) {
  TrainingAttr training = *planned.getTraining();
  if (training.getMicrobatches() > 0)
    setTrainField("microbatches", std::to_string(training.getMicrobatches()),
                  edits);
  if (!training.getSave()) {
    std::string remat =
        training.getRemat() == Remat::Every
            ? "every(" + std::to_string(training.getEvery()) + ")"
            : stringifyRemat(training.getRemat()).str();
    setTrainField("remat", remat, edits);
  }
  if (training.getOffload() != Offload::Auto)
    setTrainField("offload", stringifyOffload(training.getOffload()), edits);
  if (training.getFused())
    setTrainField("update", "fused", edits);
  if (auto pipeline = planned.getPipeline())
    setTrainField("schedule", pipeline->getOrder(), edits);
}

/// `repeat L@pp microbatches(8) schedule(gpipe)`: where the repeat is the
/// pipeline's, its axis, and without training its choices.
void PlanPrinter::printStages(const ast::RepeatStmt &repeat, TextEdits &edits) {
  std::optional<PipelineAttr> pipeline = planned.getPipeline();
  if (!pipeline || pipeline->getIndex() != repeat.index.text)
    return;
  SMLoc head =
      repeat.placement ? repeat.placement->range.End : repeat.index.range.End;
  if (!repeat.placement)
    edits.insert(head, ("@" + pipeline->getAxis()).str());
  if (planned.getTraining())
    return;
  std::string count = std::to_string(
      pipelineRepeats(planned, pipeline->getIndex()).microbatches.getCount());
  if (repeat.microbatches)
    edits.replace(repeat.microbatches->range, count);
  else
    edits.insert(head, " microbatches(" + count + ")");
  SMLoc behind = head;
  if (repeat.microbatches)
    behind = afterBrackets(repeat.microbatches->range.End, repeat.range.End);
  if (repeat.schedule)
    edits.replace(repeat.schedule->range, pipeline->getOrder());
  else
    edits.insert(behind, (" schedule(" + pipeline->getOrder() + ")").str());
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

namespace {

/// Writes `gradient`, `moments`, `master`, `layout` and `copy`.
class StepLines {
public:
  /// `written`: the program that the step was made of; `block`: null without
  /// training.
  StepLines(ProgramOp planned, ProgramOp written, const ast::TrainBlock *block)
      : planned(planned), written(written), block(block), names(planned) {}

  void addBuffers();
  void addOperations(llvm::function_ref<bool(Operation *)> isPlaced);

  std::vector<std::string> lines;

private:
  std::string list(ArrayRef<std::string> indices, ShardingAttr pin) const;
  bool isWritten(StringRef what, StringRef weight) const;
  unsigned writtenStacked(StringRef weight);
  void addBuffer(StringRef what, StringRef weight, ArrayRef<DeclareOp> ofKind);
  std::string resultText(OpResult result) const;
  std::string operandText(OpOperand &use);
  void addCopies();
  void add(Operation *op);

  ProgramOp planned, written;
  const ast::TrainBlock *block;
  StepNames names;
  llvm::DenseMap<Operation *, std::string> copyNames;
  /// Buffers that `gradient`, `moments` and `master` place.
  llvm::DenseSet<Operation *> buffers;
};

} // namespace

static std::string quoted(StringRef name) { return ("\"" + name + "\"").str(); }

/// Indices of a step have names such as `B.all`, which are no words.
std::string StepLines::list(ArrayRef<std::string> indices,
                            ShardingAttr pin) const {
  std::vector<std::string> words(indices.begin(), indices.end());
  for (std::string &word : words)
    for (char &c : word)
      if (!llvm::isAlnum(c))
        c = '_';
  for (size_t i = 0; i < words.size(); ++i)
    if (words[i].empty() || llvm::isDigit(words[i].front()))
      words[i] = "i" + words[i];
  while (words.size() < pin.getDims().size())
    words.push_back("i" + std::to_string(words.size()));
  return closedList(words, pin);
}

/// True if the block has such a placing of the weight, which says what the
/// program's author wants: the plan's own words stand beside it.
bool StepLines::isWritten(StringRef what, StringRef weight) const {
  return block &&
         llvm::any_of(block->placings, [&](const ast::Placing &placing) {
           return placing.what.text == what && ast::isOfWeight(placing, weight);
         });
}

/// The dimensions of a weight that stand for the iterations of repeats around
/// its declaration; one that iterations read by their numbers is declared
/// whole.
unsigned StepLines::writtenStacked(StringRef weight) {
  for (auto declare : written.getBody().getOps<DeclareOp>())
    if (declare.getSym() == weight)
      return declare.getStacked();
  return 0;
}

/// `moments W[D@X, F]`, where both moments lie so.
void StepLines::addBuffer(StringRef what, StringRef weight,
                          ArrayRef<DeclareOp> ofKind) {
  if (!written || ofKind.empty() || isWritten(what, weight))
    return;
  DeclareOp first = ofKind.front();
  ShardingAttr pin = getResultPin(first.getResult());
  if (!pin || pin.getDims().empty() ||
      llvm::any_of(ofKind, [&](DeclareOp declare) {
        return getResultPin(declare.getResult()) != pin;
      }))
    return;
  unsigned stacked = writtenStacked(weight);
  auto part = ShardingAttr::get(
      pin.getContext(), pin.getDims().drop_front(stacked), pin.getPartial());
  if (part.getDims().empty())
    return;
  auto indices = indexNames(first.getResult());
  lines.push_back((what + " " + quoted(weight) +
                   list(ArrayRef(indices).drop_front(stacked), part))
                      .str());
  buffers.insert_range(ofKind);
}

void StepLines::addBuffers() {
  llvm::MapVector<std::pair<StringRef, StringRef>, SmallVector<DeclareOp, 2>>
      kinds;
  for (auto declare : planned.getBody().getOps<DeclareOp>()) {
    std::optional<StringRef> of = declare.getOf();
    if (!of)
      continue;
    StringRef what = declare.getKind() == TensorKind::Gradient ? "gradient"
                     : declare.getKind() == TensorKind::Moment ? "moments"
                     : declare.getKind() == TensorKind::Master ? "master"
                                                               : "";
    if (!what.empty())
      kinds[{what, *of}].push_back(declare);
  }
  for (auto &[key, declares] : kinds)
    addBuffer(key.first, key.second, declares);
}

/// `"W.grad"[F@X, D]{+Y} -> [F@(X, Y), D]`.
std::string StepLines::resultText(OpResult result) const {
  Operation *op = result.getOwner();
  ShardingAttr stored = getStoredPin(result), made = stored;
  if (!isa<DeclareOp, RepeatOp>(op))
    if (ShardingAttr first = getMade(result))
      made = first;
  std::string text = quoted(names.nameOf(op));
  if (!made || !stored)
    return text;
  auto indices = indexNames(result);
  text += list(indices, made);
  return made == stored ? text : text + " -> " + list(indices, stored);
}

/// An update reads a value, and names the tensor that it writes.
static bool isRead(OpOperand &use) {
  return hasLayout(use.get()) &&
         (!isa<UpdateOp>(use.getOwner()) || use.getOperandNumber() == 0);
}

/// Tensors and carried values have their own layouts: what goes into one says
/// only which copies it reads.
static bool onlyHandsOn(Operation *op) {
  return isa<UpdateOp, YieldOp, RepeatOp>(op);
}

static bool readsCopy(Operation *op) {
  return llvm::any_of(op->getOperands(), [](Value operand) {
    Operation *def = operand.getDefiningOp();
    return def && def->hasAttr(kCopy);
  });
}

std::string StepLines::operandText(OpOperand &use) {
  Operation *def = use.get().getDefiningOp();
  std::string text = def && def->hasAttr(kCopy)
                         ? quoted(copyNames.lookup(def))
                         : quoted(names.nameOf(use.get()));
  Operation *op = use.getOwner();
  ShardingAttr pin = onlyHandsOn(op)
                         ? ShardingAttr()
                         : getOperandPin(op, use.getOperandNumber());
  return pin ? text + list(indexNames(use.get()), pin) : text;
}

/// In program order, in which those with the same first reader are made.
void StepLines::addCopies() {
  planned->walk<WalkOrder::PreOrder>([&](ReshardOp copy) {
    if (!copy->hasAttr(kCopy))
      return;
    std::string name = names.take(names.nameOf(copy.getInput()) + ".copy");
    copyNames[copy] = name;
    lines.push_back(
        "copy " + quoted(name) +
        list(indexNames(copy.getInput()), getResultPin(copy.getResult())));
  });
}

void StepLines::add(Operation *op) {
  std::string text = "layout ";
  if (op->getNumResults() == 0)
    text += quoted(names.nameOf(op));
  for (OpResult result : op->getResults())
    text += (result.getResultNumber() ? ", " : "") + resultText(result);
  StringRef separator = " = ";
  if (!onlyHandsOn(op) || readsCopy(op))
    for (OpOperand &use : op->getOpOperands())
      if (isRead(use)) {
        text += separator;
        text += operandText(use);
        separator = ", ";
      }
  lines.push_back(text);
}

static bool isOpen(ShardingAttr pin) {
  return !pin || (pin.getDims().empty() && pin.getPartial().empty());
}

/// True if nothing can be said: all are scalars on every device.
static bool isTrivial(Operation *op) {
  bool isRepeat = isa<RepeatOp>(op);
  if (onlyHandsOn(op) && readsCopy(op))
    return false;
  if (isa<UpdateOp, YieldOp>(op))
    return true;
  for (OpResult result : op->getResults())
    if (!isOpen(getStoredPin(result)) ||
        (!isRepeat && !isa<DeclareOp>(op) && !isOpen(getMade(result))))
      return false;
  if (!isRepeat)
    for (OpOperand &use : op->getOpOperands())
      if (!isOpen(getOperandPin(op, use.getOperandNumber())) ||
          !isOpen(getStoredPin(use.get())))
        return false;
  return true;
}

void StepLines::addOperations(llvm::function_ref<bool(Operation *)> isPlaced) {
  SmallVector<Operation *> all;
  for (const auto &[op, name] : names.all())
    if (!isPlaced(op) && !buffers.contains(op) && !isTrivial(op))
      all.push_back(op);
  addCopies();
  for (Operation *op : all)
    add(op);
}

//===----------------------------------------------------------------------===//
// The block
//===----------------------------------------------------------------------===//

std::vector<std::string> PlanPrinter::stepLines() {
  ProgramOp written;
  if (ModuleOp forward = program.forward.get())
    written = *forward.getOps<ProgramOp>().begin();
  StepLines step(planned, written, trainBlock);
  std::optional<TrainingAttr> training = planned.getTraining();
  for (StringAttr name :
       training ? training->getRecomputed() : ArrayRef<StringAttr>())
    if (!llvm::any_of(trainBlock->placings, [&](const ast::Placing &placing) {
          return placing.what.text == "recompute" &&
                 placing.tensor.name.text == name;
        }))
      step.lines.push_back("recompute " + quoted(name));
  step.addBuffers();
  step.addOperations([&](Operation *op) { return placed.contains(op); });
  return std::move(step.lines);
}

void PlanPrinter::printTrain(TextEdits &edits) {
  setTrainFields(edits);
  // The plan's own layouts take the place of those that the text has.
  for (const ast::StepLayout &layout : trainBlock->layouts)
    edits.eraseLine(layout.range, model.bufferStart(layout.range.Start));
  std::vector<std::string> lines = std::move(newFields);
  llvm::append_range(lines, stepLines());
  SMLoc brace = SMLoc::getFromPointer(trainBlock->range.End.getPointer() - 1);
  std::string indent =
      indentOf(trainBlock->range.Start, model.bufferStart(brace)).str();
  std::string text;
  for (const std::string &line : lines)
    text += "\n" + indent + "  " + line;
  if (!text.empty())
    edits.insert(brace, text + "\n" + indent);
}

/// The lines of a pipeline that is not trained stand behind its last item.
void PlanPrinter::printLayouts(const std::vector<ast::ItemPtr> &items,
                               TextEdits &edits) {
  SMLoc end = items.front()->range.Start;
  for (const ast::ItemPtr &item : items) {
    if (item->kind == ast::Item::Kind::Layout)
      edits.eraseLine(item->range, model.bufferStart(item->range.Start));
    else
      end = item->range.End;
  }
  for (const std::string &line : stepLines())
    edits.insert(end, "\n" + line);
}
