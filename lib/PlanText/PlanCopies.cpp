//===- PlanCopies.cpp - Statements that a plan adds -----------------------===//

#include "PlanCopies.h"
#include "PlanExpr.h"
#include "shardc/Frontend/TextEdits.h"
#include "shardc/Optimizer/Names.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;
using llvm::SMLoc;

//===----------------------------------------------------------------------===//
// Fresh names
//===----------------------------------------------------------------------===//

FreshNames::FreshNames(const PlanModel &model) {
  for (size_t i = 0; i < model.numFiles(); ++i) {
    llvm::StringRef text = textOf(model.fileRange(i));
    while (!text.empty()) {
      llvm::StringRef code = withoutComment(text);
      llvm::StringRef word =
          code.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
      if (!word.empty())
        used.insert(word.str());
      text = code.size() < text.size()
                 ? code
                 : text.drop_front(std::max<size_t>(1, word.size()));
    }
  }
}

bool FreshNames::take(PlanFrame *frame, const std::string &name) {
  return !used.count(name) && taken.insert({frame, name}).second;
}

std::string FreshNames::numbered(PlanFrame *frame, llvm::StringRef base) {
  for (unsigned i = 1;; ++i) {
    std::string name = (base + "_" + llvm::Twine(i)).str();
    if (take(frame, name))
      return name;
  }
}

std::string FreshNames::plain(PlanFrame *frame, llvm::StringRef base) {
  return take(frame, base.str()) ? base.str() : numbered(frame, base);
}

//===----------------------------------------------------------------------===//
// Stores
//===----------------------------------------------------------------------===//

ShardingAttr shardc::madeLayout(Operation *op) {
  ShardingAttr made = getMade(op->getResult(0));
  return made ? made : getResultPin(op->getResult(0));
}

ShardingAttr PlanCopies::resultPin(Operation *op) const {
  auto it = storedAs.find(op);
  return it == storedAs.end() ? getResultPin(op->getResult(0)) : it->second;
}

//===----------------------------------------------------------------------===//
// Names of values
//===----------------------------------------------------------------------===//

static std::vector<std::string> declaredIndices(Operation *op) {
  if (!introducedBy(op))
    return resultIndices(op);
  auto names = indexNames(op->getResult(0));
  return {names.begin(), names.end()};
}

/// The operation that gives a carried value its next one.
static Operation *rebindingOf(Value value) {
  while (true) {
    value = rootValue(value);
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getArgNumber() == 0)
        return nullptr;
      Value next = argument.getOwner()->getTerminator()->getOperand(
          argument.getArgNumber() - 1);
      if (next == value)
        return nullptr;
      value = next;
    } else if (auto repeat = value.getDefiningOp<RepeatOp>()) {
      value = repeat.getBody().front().getTerminator()->getOperand(
          cast<OpResult>(value).getResultNumber());
    } else {
      return value.getDefiningOp();
    }
  }
}

/// The operation that gave a carried value its first one.
static Operation *initializationOf(Value value) {
  while (true) {
    value = rootValue(value);
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getArgNumber() == 0)
        return nullptr;
      value = argument.getOwner()->getParentOp()->getOperand(
          argument.getArgNumber() - 1);
    } else if (auto repeat = value.getDefiningOp<RepeatOp>()) {
      value = repeat.getInits()[cast<OpResult>(value).getResultNumber()];
    } else {
      return value.getDefiningOp();
    }
  }
}

std::optional<FrameValue> PlanCopies::nameOf(PlanFrame *frame,
                                             Value value) const {
  auto defined = [&](Operation *op) -> std::optional<FrameValue> {
    if (!op || !model.defLoc(op).isValid())
      return std::nullopt;
    // Layers see the weights and states of the file, not its inputs.
    DeclareOp declared = introducedBy(op);
    bool shared = declared && declared.getKind() != TensorKind::Input &&
                  model.frameOf(op) == model.fileFrame();
    if (!shared && model.frameOf(op) != frame)
      return std::nullopt;
    return FrameValue{model.nameAt(model.defLoc(op)), declaredIndices(op)};
  };
  Operation *op = value.getDefiningOp();
  if (op && !isa<RepeatOp>(op)) {
    if (auto result = defined(op))
      return result;
    return readName(frame, value);
  }
  if (auto result = defined(rebindingOf(value)))
    return result;
  if (auto result = defined(initializationOf(value)))
    return result;
  return readName(frame, value);
}

/// The name of the value in references of a frame. A parameter's indices are
/// those of its declaration.
std::optional<FrameValue> PlanCopies::readName(PlanFrame *frame,
                                               Value value) const {
  auto named = [&](Value read) -> std::optional<FrameValue> {
    for (OpOperand &use : read.getUses()) {
      Operation *reader = use.getOwner();
      SMLoc loc = model.useLoc(use);
      if (!loc.isValid() || model.frameOf(reader) != frame ||
          readsAtPositions(reader))
        continue;
      FrameValue result{model.nameAt(loc), operandIndices(use)};
      if (!frame->layer)
        return result;
      for (const ast::Parameter &parameter : frame->layer->parameters) {
        if (parameter.name.text != result.name || parameter.isDim)
          continue;
        result.indices.clear();
        for (const ast::Index &index : parameter.indices.indices)
          result.indices.push_back(index.name);
      }
      return result;
    }
    return std::nullopt;
  };
  if (auto result = named(value))
    return result;
  for (Operation *user : value.getUsers())
    if (user->hasAttr(kCopy))
      if (auto result = named(onlyResult(user)))
        return result;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

PlanCopies::PlanCopies(const PlanModel &model, FreshNames &names,
                       ProgramOp planned)
    : model(model), names(names) {
  // Statements that a training step would differentiate, and a pipeline split,
  // too; lines of their own say the same (PlanStep.cpp).
  if (planned.getTraining() || planned.getPipeline())
    return;
  planned->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op->hasAttr(kCopy))
      place(op);
  });
  planned->walk<WalkOrder::PreOrder>([&](Operation *op) { placeFlows(op); });
}

static Operation *stateOf(UpdateOp update) {
  return introducerOf(update.getDeclaration());
}

/// The items around a reader, it included; for a parameter, those around the
/// call; for what flows on, the items around the end of its block.
std::optional<PlanPath> PlanCopies::readerPath(OpOperand &use) const {
  Operation *op = use.getOwner();
  if (model.isParameter(op))
    return model.frameOf(op)->caller->path;
  if (PlanStatement *statement = model.statementOf(op))
    return statement->path;
  if (auto repeat = dyn_cast<RepeatOp>(op))
    return model.pathOf(repeat);
  if (auto update = dyn_cast<UpdateOp>(op))
    return endOfState(update);
  if (auto repeat = dyn_cast<RepeatOp>(op->getParentOp()))
    return model.pathOf(repeat);
  return isa<OutputOp>(op) ? std::optional(PlanPath()) : std::nullopt;
}

/// The items around the end of the text that declares a state.
std::optional<PlanPath> PlanCopies::endOfState(UpdateOp update) const {
  PlanFrame *frame = model.frameOf(stateOf(update));
  if (auto repeat = dyn_cast<RepeatOp>(update->getParentOp())) {
    auto path = model.pathOf(repeat);
    if (!path || path->back().frame == frame)
      return path;
  }
  return frame->layer ? frame->caller->path : PlanPath();
}

static unsigned numRepeats(llvm::ArrayRef<PlanPlace> path) {
  return llvm::count_if(path, [](const PlanPlace &place) {
    return llvm::isa<ast::RepeatStmt>(place.item);
  });
}

static unsigned numRepeatsAround(Operation *op) {
  unsigned count = 0;
  while ((op = op->getParentOp()))
    count += isa<RepeatOp>(op);
  return count;
}

/// The latest of the reader's operands if that is not the copied value: the
/// reader fuses with what made it, and a copy made later would change that.
Operation *PlanCopies::latestOther(OpOperand &use) const {
  Operation *reader = use.getOwner();
  auto cost = dyn_cast<CostOpInterface>(reader);
  if (!cost || cost.getFusionKind() == FusionKind::Leader ||
      cost.getFusionKind() == FusionKind::Free)
    return nullptr;
  Operation *source = rootValue(use.get()).getDefiningOp();
  Operation *latest = nullptr;
  for (Value operand : reader->getOperands()) {
    Operation *def = rootValue(operand).getDefiningOp();
    if (def && def->getBlock() == reader->getBlock() &&
        !isa<ConstantOp, PartOp>(def) &&
        (!latest || model.position(def) > model.position(latest)))
      latest = def;
  }
  return latest == source ? nullptr : latest;
}

std::vector<PlanCopies::Reader> PlanCopies::readersOf(Operation *op) const {
  std::vector<Reader> readers;
  for (OpOperand &use : onlyResult(op).getUses()) {
    auto path = readerPath(use);
    if (!path)
      continue;
    readers.push_back({*path, model.position(use.getOwner())});
    if (Operation *other = latestOther(use))
      if (PlanStatement *statement = model.statementOf(other);
          statement && model.position(other) < model.position(op))
        readers.push_back({statement->path, model.position(other)});
  }
  // A copy that nobody reads stands where the optimizer put it.
  if (readers.empty())
    for (Operation *next = op->getNextNode(); next; next = next->getNextNode())
      if (PlanStatement *statement = model.statementOf(next)) {
        readers.push_back({statement->path, model.position(next)});
        break;
      }
  llvm::stable_sort(readers, [](const Reader &a, const Reader &b) {
    return a.position < b.position;
  });
  return readers;
}

/// Before item `depth` of the first reader's path.
void PlanCopies::addCopy(Operation *op, const PlanPath &path, size_t depth,
                         const std::optional<FrameValue> &source) {
  auto copy = std::make_unique<PlanCopy>();
  copy->op = op;
  copy->frame = path[depth].frame;
  copy->anchor = path[depth].item;
  if (source)
    copy->source = *source;
  copiesBefore[{copy->frame, copy->anchor}].push_back(copy.get());
  copies[op] = std::move(copy);
}

static bool isWithin(llvm::ArrayRef<PlanPlace> path,
                     llvm::ArrayRef<PlanPlace> around) {
  return path.size() >= around.size() &&
         path.take_front(around.size()) == around;
}

/// A layer that reads a copy of what it returns returns the copy, if that is
/// what is read behind it.
bool PlanCopies::placeReturned(Operation *op, llvm::ArrayRef<Reader> readers) {
  Value value = op->getOperand(0);
  Operation *maker = value.getDefiningOp();
  PlanStatement *statement = maker ? model.statementOf(maker) : nullptr;
  if (!statement)
    return false;
  const PlanPath &path = readers.front().path;
  size_t depth = 0, end = std::min(path.size(), statement->path.size());
  while (depth < end && path[depth] == statement->path[depth])
    ++depth;
  if (depth == end || !path[depth].frame->layer)
    return false;
  auto around = llvm::ArrayRef(path).take_front(depth);
  auto isInside = [&](llvm::ArrayRef<PlanPlace> other) {
    return isWithin(other, around);
  };
  bool staysInside = llvm::all_of(
      readers, [&](const Reader &reader) { return isInside(reader.path); });
  if (staysInside || numRepeats(around) != numRepeatsAround(op))
    return false;
  for (OpOperand &use : value.getUses())
    if (auto other = readerPath(use);
        use.getOwner() != op && other && !isInside(*other))
      return false;
  PlanFrame *frame = path[depth].frame;
  auto source = nameOf(frame, value);
  if (!source)
    return false;
  for (const ast::Name &result : frame->layer->results)
    if (result.text == source->name) {
      addCopy(op, path, depth, source);
      copiesReturned[frame].push_back({&result, op});
      return true;
    }
  return false;
}

void PlanCopies::place(Operation *op) {
  std::vector<Reader> readers = readersOf(op);
  if (readers.empty() || placeReturned(op, readers))
    return;
  const PlanPath &path = readers.front().path;
  for (size_t depth = path.size(); depth-- > 0;) {
    auto around = llvm::ArrayRef(path).take_front(depth);
    bool common = llvm::all_of(readers, [&](const Reader &reader) {
      return isWithin(reader.path, around);
    });
    PlanFrame *frame = path[depth].frame;
    if (!common || numRepeats(around) != numRepeatsAround(op))
      continue;
    auto source = nameOf(frame, op->getOperand(0));
    PlanStatement *own =
        op->getOperand(0).getDefiningOp()
            ? model.statementOf(op->getOperand(0).getDefiningOp())
            : nullptr;
    bool fromTemporary =
        own && own->frame == frame && own->ast == path[depth].item;
    if (source || fromTemporary)
      return addCopy(op, path, depth, source);
  }
}

llvm::ArrayRef<const PlanCopy *>
PlanCopies::before(PlanFrame *frame, const ast::Item *item) const {
  auto it = copiesBefore.find({frame, item});
  return it == copiesBefore.end() ? llvm::ArrayRef<const PlanCopy *>()
                                  : it->second;
}

static bool isBelow(PlanFrame *frame, PlanFrame *above) {
  while (frame && frame != above)
    frame = frame->parent;
  return frame;
}

bool PlanCopies::isReturnedTo(PlanFrame *frame, Operation *op) const {
  auto it = copies.find(op);
  return it != copies.end() && it->second->frame != frame &&
         isBelow(it->second->frame, frame);
}

std::string PlanCopies::nameIn(PlanFrame *frame, Operation *op) {
  if (isReturnedTo(frame, op))
    if (auto returned = nameOf(frame, op->getOperand(0)))
      return returned->name;
  auto [it, inserted] = copyNames.try_emplace({frame, op});
  if (!inserted)
    return it->second;
  auto found = copies.find(op);
  const PlanCopy *copy = found == copies.end() ? nullptr : found->second.get();
  std::string base = copy && !copy->source.name.empty()
                         ? copy->source.name
                         : valueName(onlyResult(op));
  llvm::replace(base, '.', '_');
  it->second = names.plain(frame, base + "_copy");
  if (copy && copy->frame != frame && frame->parent) {
    copyParameters[frame].push_back(op);
    std::string result = it->second;
    nameIn(frame->parent, op);
    return result;
  }
  return it->second;
}

llvm::ArrayRef<Operation *> PlanCopies::parameters(PlanFrame *frame) const {
  auto it = copyParameters.find(frame);
  return it == copyParameters.end() ? llvm::ArrayRef<Operation *>()
                                    : it->second;
}

llvm::ArrayRef<PlanCopies::Returned>
PlanCopies::returned(PlanFrame *frame) const {
  auto it = copiesReturned.find(frame);
  return it == copiesReturned.end() ? llvm::ArrayRef<Returned>() : it->second;
}

std::string PlanCopies::parameterText(PlanFrame *frame, Operation *op) {
  std::vector<std::string> indices = copies[op]->source.indices;
  for (OpOperand &use : onlyResult(op).getUses())
    if (model.statementOf(use.getOwner()) &&
        model.frameOf(use.getOwner()) == frame &&
        !readsAtPositions(use.getOwner())) {
      indices = operandIndices(use);
      break;
    }
  auto type = cast<RankedTensorType>(onlyResult(op).getType());
  return nameIn(frame, op) + ": " + typeName(type.getElementType()).str() +
         "[" + llvm::join(indices, ", ") + "]";
}

//===----------------------------------------------------------------------===//
// Values that go on
//===----------------------------------------------------------------------===//

void PlanCopies::placeFlows(Operation *op) {
  if (auto repeat = dyn_cast<RepeatOp>(op))
    placeRepeat(repeat);
  else if (auto update = dyn_cast<UpdateOp>(op))
    placeState(update);
  else if (auto output = dyn_cast<OutputOp>(op))
    placeOutput(output);
}

static Operation *copyOf(Value value) {
  Operation *def = value.getDefiningOp();
  return def && def->hasAttr(kCopy) ? def : nullptr;
}

/// Stores a value at once as it is carried on, if its author has not placed it,
/// it does not move to where the plan stores it and nothing else reads it.
bool PlanCopies::storeAs(Value value, ShardingAttr carried) {
  Operation *op = value.getDefiningOp();
  PlanStatement *statement = op ? model.statementOf(op) : nullptr;
  if (!statement || !value.hasOneUse() || inPlaceOperand(op) ||
      madeLayout(op) != getResultPin(value))
    return false;
  for (const ast::Target &target : statement->ast->targets) {
    if (target.name.range.Start != model.defLoc(op))
      continue;
    if (target.indices && target.indices->hasPlacement())
      return false;
    storedAs[op] = carried;
    return true;
  }
  return false;
}

/// True if a list cannot say that a value has the layout: that of a scalar has
/// no index whose placement would close it.
static bool isUnwritten(ShardingAttr pin) {
  return pin.getDims().empty() && pin.getPartial().empty();
}

/// The text gives a carried value the layout of its rebinding; one that an
/// inner repeat makes, and one whose rebinding cannot say it, that of its
/// initial value.
void PlanCopies::placeRepeat(RepeatOp repeat) {
  auto path = model.pathOf(repeat);
  if (!path)
    return;
  PlanPlace place = path->back();
  Operation *yield = repeat.getBody().front().getTerminator();
  for (auto [i, init] : llvm::enumerate(repeat.getInits())) {
    Value next = yield->getOperand(i);
    ShardingAttr carried = getOperandPin(repeat, i);
    auto value = nameOf(place.frame, repeat.getResult(i));
    if (!value || !carried)
      continue;
    bool derived = !next.getDefiningOp() || next.getDefiningOp<RepeatOp>();
    bool fromInit = derived || isUnwritten(carried);
    bool differs = getStoredPin(init) != carried;
    if (copyOf(init) || (fromInit && differs && !storeAs(init, carried)))
      repeatEntries[{place.frame, place.item}].push_back(
          {*value, init.getType(), getStoredPin(init), carried, copyOf(init)});
    bool moves = !derived && getStoredPin(next) != carried;
    if (copyOf(next) || (moves && !storeAs(next, carried)))
      ends[{place.frame, place.item}].push_back(
          {*value, next.getType(), getStoredPin(next), carried, copyOf(next)});
  }
}

/// The repeat in the items of a frame whose body declares a tensor at `loc`, or
/// null.
static const ast::Item *declaringRepeat(const std::vector<ast::ItemPtr> &items,
                                        SMLoc loc) {
  for (const ast::ItemPtr &item : items)
    if (auto *repeat = llvm::dyn_cast<ast::RepeatStmt>(item.get())) {
      for (const ast::ItemPtr &inner : repeat->body)
        if (auto *tensor = llvm::dyn_cast<ast::TensorDecl>(inner.get());
            tensor && tensor->name.range.Start == loc)
          return repeat;
      if (const ast::Item *found = declaringRepeat(repeat->body, loc))
        return found;
    }
  return nullptr;
}

void PlanCopies::placeState(UpdateOp update) {
  Operation *copy = copyOf(update.getValue());
  if (!copy)
    return;
  Operation *state = stateOf(update);
  PlanFrame *frame = model.frameOf(state);
  SMLoc loc = model.defLoc(state);
  const ast::Item *around = declaringRepeat(
      frame->layer ? frame->layer->body : model.file(0).items, loc);
  ends[{frame, around}].push_back({{model.nameAt(loc), declaredIndices(state)},
                                   state->getResult(0).getType(),
                                   getStoredPin(onlyResult(copy)),
                                   getOperandPin(update, 0),
                                   copy});
}

Operation *PlanCopies::copyThatLeaves(OutputOp output) const {
  Operation *copy = copyOf(output.getValue());
  auto declared =
      copy ? copy->getOperand(0).getDefiningOp<DeclareOp>() : DeclareOp();
  bool assignable = !declared || declared.getKind() == TensorKind::State;
  return assignable ? nullptr : copy;
}

/// The list of a scalar cannot be closed, so that its parts are added before it
/// leaves.
void PlanCopies::placeOutput(OutputOp output) {
  if (copyThatLeaves(output))
    return;
  Operation *copy = copyOf(output.getValue());
  SMLoc loc = model.useLoc(output->getOpOperand(0));
  ShardingAttr pin = getOperandPin(output, 0);
  ShardingAttr stored = getStoredPin(output.getValue());
  if (!loc.isValid() || !pin || !stored ||
      (copy && pin == stored && isReturnedTo(model.fileFrame(), copy)))
    return;
  if (copy || (pin.getDims().empty() && pin != stored))
    ends[{model.fileFrame(), nullptr}].push_back(
        {{model.nameAt(loc), operandIndices(output->getOpOperand(0))},
         output.getValue().getType(),
         stored,
         pin,
         copy});
}

llvm::ArrayRef<PlanRebinding>
PlanCopies::rebindingsBefore(PlanFrame *frame, const ast::Item *item) const {
  auto it = repeatEntries.find({frame, item});
  if (it == repeatEntries.end())
    return {};
  return it->second;
}

llvm::ArrayRef<PlanRebinding>
PlanCopies::rebindingsAtEnd(PlanFrame *frame, const ast::Item *repeat) const {
  auto it = ends.find({frame, repeat});
  if (it == ends.end())
    return {};
  return it->second;
}
