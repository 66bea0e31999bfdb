//===- PlanSplit.cpp - Statements taken apart -----------------------------===//
//
// A statement in which something moves where the text has no place for an `@`
// becomes one statement for each of its operations, in program order. Arguments
// of layers keep their text where that says all.
//
//===----------------------------------------------------------------------===//

#include "PlanPrinter.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;
using ast::Expr;
using llvm::SMLoc;
using llvm::SMRange;

namespace shardc {

class StatementSplitter {
public:
  StatementSplitter(PlanPrinter &printer, PlanStatement &statement)
      : printer(printer), model(printer.model), statement(statement),
        frame(statement.frame), isExplicit(printer.isExplicit(statement)) {}

  void split(TextEdits &edits);

private:
  /// The right side, or an argument of a layer that is more than a name.
  struct Unit {
    const Expr *expr = nullptr;
    SMRange range;
    /// The call that it is an argument of; null for the right side.
    PlanFrame *call = nullptr;
    llvm::SmallVector<Operation *, 4> ops;
    bool kept = false;
    PlanPrinter::Requests requests;
  };

  void findUnits();
  void addArguments(const Expr &call, PlanFrame *frame);
  void assignOperations();
  Unit &unitAt(SMRange range);
  SMRange textOfOperation(Operation *op);
  PlanFrame *callOf(Value value) const;
  bool takes(PlanFrame *call, llvm::StringRef name) const;
  PlanFrame *passingCall(OpOperand &use) const;
  unsigned placeOf(PlanFrame *call);

  std::string freshName();
  void nameOperation(Operation *op);
  void chooseInlined();
  bool mayInline(Operation *op, Operation *next) const;
  OperandText nameOperand(OpOperand &use);
  /// Statements by twice the place in the program: what an operation makes is
  /// then stored and copied.
  using Lines = std::vector<std::pair<unsigned, std::string>>;
  void addLines(Operation *op, Lines &lines);
  std::string line(Operation *op);
  std::string move(Operation *op, llvm::StringRef target,
                   llvm::StringRef source, ShardingAttr from, ShardingAttr to);
  std::string left(Operation *op, bool &accumulates);
  std::string typeText(Operation *op) const;
  std::string callLine(PlanFrame *call);
  void editCalls(const Unit &unit, TextEdits &edits);
  void editUnit(Unit &unit, TextEdits &edits);
  bool isHoisted(PlanFrame *call) const { return callNames.count(call); }

  PlanPrinter &printer;
  const PlanModel &model;
  PlanStatement &statement;
  PlanFrame *frame;
  bool isExplicit;
  std::vector<Unit> units;
  llvm::DenseMap<Operation *, SMRange> ranges;
  llvm::DenseMap<Operation *, unsigned> unitOf;
  /// The name of an operation's value.
  llvm::DenseMap<Operation *, std::string> opNames;
  llvm::DenseMap<PlanFrame *, std::string> callNames;
  llvm::SmallPtrSet<Operation *, 4> inlined;
};

} // namespace shardc

static bool contains(SMRange outer, SMRange inner) {
  return outer.Start.getPointer() <= inner.Start.getPointer() &&
         inner.End.getPointer() <= outer.End.getPointer();
}

//===----------------------------------------------------------------------===//
// Parts of the statement
//===----------------------------------------------------------------------===//

void StatementSplitter::addArguments(const Expr &call, PlanFrame *callee) {
  for (const ast::Argument &argument : call.arguments) {
    if (argument.value->kind == Expr::Kind::Ref && !argument.value->indices)
      continue;
    Unit &unit = units.emplace_back();
    unit.expr = argument.value.get();
    unit.range = argument.value->range;
    unit.call = callee;
  }
}

void StatementSplitter::findUnits() {
  Unit &root = units.emplace_back();
  root.expr = statement.ast->value.get();
  root.range = statement.ast->range;
  for (PlanFrame *call : statement.calls)
    addArguments(*call->call, call);
}

/// The innermost part that has all of `range`.
StatementSplitter::Unit &StatementSplitter::unitAt(SMRange range) {
  Unit *best = &units.front();
  for (Unit &unit : units)
    if (contains(unit.range, range) && contains(best->range, unit.range))
      best = &unit;
  return *best;
}

static SMRange joined(SMRange a, SMRange b) {
  if (!a.isValid())
    return b;
  if (!b.isValid())
    return a;
  return {
      SMLoc::getFromPointer(
          std::min(a.Start.getPointer(), b.Start.getPointer())),
      SMLoc::getFromPointer(std::max(a.End.getPointer(), b.End.getPointer()))};
}

/// The references and calls that an operation's value comes from.
SMRange StatementSplitter::textOfOperation(Operation *op) {
  auto [it, inserted] = ranges.try_emplace(op);
  if (!inserted)
    return it->second;
  SMRange range;
  for (OpOperand &use : op->getOpOperands()) {
    Operation *def = use.get().getDefiningOp();
    if (def && def->hasAttr(kCopy))
      def = def->getOperand(0).getDefiningOp();
    if (SMLoc loc = model.useLoc(use); loc.isValid())
      range = joined(range, {loc, loc});
    else if (def && llvm::is_contained(statement.ops, def))
      range = joined(range, textOfOperation(def));
    else if (PlanFrame *call = callOf(use.get()))
      range = joined(range, call->call->range);
  }
  ranges[op] = range;
  return range;
}

/// The call of this statement in which a value was made, or null.
PlanFrame *StatementSplitter::callOf(Value value) const {
  Operation *def = value.getDefiningOp();
  while (def && def->hasAttr(kCopy))
    def = def->getOperand(0).getDefiningOp();
  if (auto repeat = dyn_cast_or_null<RepeatOp>(def)) {
    auto path = model.pathOf(repeat);
    for (PlanFrame *at = path ? path->back().frame : nullptr; at;
         at = at->parent)
      if (llvm::is_contained(statement.calls, at))
        return at;
    return nullptr;
  }
  if (!def || !def->hasAttr(kCall))
    return nullptr;
  for (PlanFrame *at = model.frameOf(def); at; at = at->parent)
    if (llvm::is_contained(statement.calls, at))
      return at;
  return nullptr;
}

/// True if a name is an argument of the call, or of one among its arguments.
bool StatementSplitter::takes(PlanFrame *call, llvm::StringRef name) const {
  return llvm::any_of(call->arguments, [&](const Expr *argument) {
    if (argument && argument->kind == Expr::Kind::Ref)
      return argument->name == name;
    return llvm::any_of(statement.calls, [&](PlanFrame *inner) {
      return inner->call == argument && takes(inner, name);
    });
  });
}

/// The call that hands on what it takes, as which `use` reads it, or null.
PlanFrame *StatementSplitter::passingCall(OpOperand &use) const {
  Operation *reader = use.getOwner();
  bool isValueSoFar =
      inPlaceOperand(reader) == &use ||
      (use.getOperandNumber() == 0 && statement.ast->accumulate &&
       !reader->hasAttr(kTemporary));
  std::optional<FrameValue> value = printer.copies.nameOf(frame, use.get());
  if (isValueSoFar || !value)
    return nullptr;
  for (PlanFrame *call : statement.calls)
    if (isHoisted(call) && takes(call, value->name))
      return call;
  return nullptr;
}

/// Twice the place in the program; that of a layer which computes nothing is
/// behind what its arguments are made by.
unsigned StatementSplitter::placeOf(PlanFrame *call) {
  if (unsigned first = model.firstPosition(call))
    return 2 * first;
  unsigned place = 0;
  for (const Unit &unit : units) {
    if (unit.call != call)
      continue;
    for (Operation *op : unit.ops)
      place = std::max(place, 2 * model.position(op) + 1);
    for (PlanFrame *inner : statement.calls)
      if (inner != call && contains(unit.range, inner->call->range))
        place = std::max(place, placeOf(inner) + 1);
  }
  return place;
}

void StatementSplitter::assignOperations() {
  for (Operation *op : statement.ops) {
    SMRange range = textOfOperation(op);
    Unit &unit = range.isValid() ? unitAt(range) : units.front();
    unit.ops.push_back(op);
    unitOf[op] = &unit - units.data();
  }
  for (Unit &unit : units)
    unit.kept = !isExplicit && printer.collect(unit.ops, unit.requests) &&
                printer.mayStandTogether(*unit.expr, unit.requests);
}

//===----------------------------------------------------------------------===//
// Operations as statements
//===----------------------------------------------------------------------===//

std::string StatementSplitter::typeText(Operation *op) const {
  if (hasNaturalType(op))
    return "";
  Type type = getElementTypeOrSelf(op->getResult(0).getType());
  return ": " + typeName(type).str();
}

/// True if `op` may stand inside `next`, which comes right after it, as what it
/// is in the statement.
bool StatementSplitter::mayInline(Operation *op, Operation *next) const {
  if (!op->hasAttr(kTemporary) || !op->hasOneUse() || !isCallShaped(op) ||
      !hasNaturalType(op) || arrangesIndices(op) || isExplicit ||
      unitOf.lookup(op) != unitOf.lookup(next))
    return false;
  if (!takesExpressions(next))
    return false;
  OpOperand &use = *op->getResult(0).getUses().begin();
  if (use.getOwner() != next)
    return false;
  auto [pin, copy] = printer.wanted(use);
  return !copy && pin == getStoredPin(op->getResult(0)) &&
         pin == madeLayout(op);
}

void StatementSplitter::chooseInlined() {
  llvm::SmallVector<Operation *, 8> hoisted;
  for (Operation *op : statement.ops)
    if (!units[unitOf.lookup(op)].kept)
      hoisted.push_back(op);
  for (size_t i = 0; i < hoisted.size(); ++i) {
    Operation *op = hoisted[i];
    bool callBetween = i + 1 < hoisted.size() &&
                       llvm::any_of(statement.calls, [&](PlanFrame *call) {
                         unsigned position = model.firstPosition(call);
                         return position > model.position(op) &&
                                position < model.position(hoisted[i + 1]);
                       });
    if (i + 1 < hoisted.size() && !callBetween && mayInline(op, hoisted[i + 1]))
      inlined.insert(op);
    else
      nameOperation(op);
  }
  for (PlanFrame *call : statement.calls) {
    Unit &unit = unitAt(call->call->range);
    // A call that is a whole argument by itself stays in the call around it.
    if (!unit.kept)
      callNames[call] = "";
  }
}

std::string StatementSplitter::freshName() {
  return printer.names.numbered(frame,
                                statement.ast->targets.front().name.text);
}

void StatementSplitter::nameOperation(Operation *op) {
  opNames[op] = op->hasAttr(kTemporary)
                    ? freshName()
                    : statement.ast->targets.front().name.text;
}

OperandText StatementSplitter::nameOperand(OpOperand &use) {
  Value value = use.get();
  Operation *def = value.getDefiningOp();
  if (def && def->hasAttr(kCopy))
    return {printer.copies.nameIn(frame, def)};
  if (SMLoc loc = model.useLoc(use); loc.isValid())
    return {model.nameAt(loc)};
  if (def && inlined.contains(def))
    return {printExpression(
                def, [&](OpOperand &inner) { return nameOperand(inner); }),
            false};
  if (auto it = opNames.find(def); it != opNames.end())
    return {it->second};
  if (auto argument = dyn_cast<BlockArgument>(value);
      argument && argument.getArgNumber() == 0)
    return {cast<RepeatOp>(argument.getOwner()->getParentOp()).getIndex().str(),
            false};
  if (PlanFrame *call = callOf(value); call && isHoisted(call))
    return {callNames[call]};
  if (PlanFrame *call = passingCall(use))
    return {callNames[call]};
  // The value so far of what is added to or written into.
  return {statement.ast->targets.front().name.text};
}

std::string StatementSplitter::left(Operation *op, bool &accumulates) {
  auto namer = [&](OpOperand &use) { return nameOperand(use); };
  ShardingAttr pin = isExplicit ? madeLayout(op) : printer.copies.resultPin(op);
  const ast::Target &target = statement.ast->targets.front();
  if (inPlaceOperand(op)) {
    accumulates = addsInPlace(op);
    return target.name.text + printGatheredList(op, pin, namer);
  }
  std::string text = opNames[op] + typeText(op);
  if (opNames[op] != target.name.text || !target.indices)
    return text + closedList(resultIndices(op), pin);
  TextEdits edits;
  editList(edits, *target.indices, pin);
  return text + edits.apply(target.indices->range);
}

std::string StatementSplitter::line(Operation *op) {
  bool accumulates = false;
  std::string text = left(op, accumulates);
  return text + (accumulates ? " += " : " = ") +
         printExpression(op, [&](OpOperand &use) { return nameOperand(use); });
}

std::string StatementSplitter::move(Operation *op, llvm::StringRef target,
                                    llvm::StringRef source, ShardingAttr from,
                                    ShardingAttr to) {
  return printer.moveStatement({target.str(), source.str(), resultIndices(op),
                                op->getResult(0).getType(), from, to});
}

/// The operation's statement; of an explicit one, how the tensor that a scatter
/// writes into is read and how the result is made are statements too.
void StatementSplitter::addLines(Operation *op, Lines &lines) {
  unsigned place = 2 * model.position(op);
  if (!isExplicit)
    return lines.push_back({place, line(op)});
  std::string &name = opNames[op], stored = name;
  OpOperand *whole = inPlaceOperand(op);
  ShardingAttr made = madeLayout(op), kept = printer.copies.resultPin(op);
  if (whole) {
    ShardingAttr read = getOperandPin(op, whole->getOperandNumber()),
                 before = getStoredPin(whole->get());
    if (read && before && read != before)
      lines.push_back(
          {place, move(op, name, nameOperand(*whole).text, before, read)});
  } else if (made != kept) {
    name = freshName();
  }
  lines.push_back({place, line(op)});
  if (made != kept)
    lines.push_back({place + 1, move(op, stored, name, made, kept)});
  name = stored;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// Edits of the calls whose text stays inside the part, and of arguments that
/// have been taken out of it.
void StatementSplitter::editCalls(const Unit &unit, TextEdits &edits) {
  for (PlanFrame *call : statement.calls)
    if (contains(unit.range, call->call->range) &&
        &unitAt(call->call->range) == &unit && !isHoisted(call)) {
      printer.editCall(call, edits);
      for (Unit &argument : units)
        if (argument.call == call)
          editUnit(argument, edits);
    }
}

void StatementSplitter::editUnit(Unit &unit, TextEdits &edits) {
  if (unit.kept) {
    printer.editReferences(frame, unit.requests, edits);
    return editCalls(unit, edits);
  }
  // The last of the operations has the argument's value.
  if (!unit.ops.empty())
    edits.replace(unit.range, opNames[unit.ops.back()]);
}

std::string StatementSplitter::callLine(PlanFrame *call) {
  TextEdits edits;
  printer.editCall(call, edits);
  for (Unit &argument : units)
    if (argument.call == call)
      editUnit(argument, edits);
  callNames[call] =
      printer.names.numbered(frame, statement.ast->targets.front().name.text);
  return callNames[call] + " = " + edits.apply(call->call->range);
}

//===----------------------------------------------------------------------===//
// The statement
//===----------------------------------------------------------------------===//

void StatementSplitter::split(TextEdits &edits) {
  findUnits();
  assignOperations();
  chooseInlined();
  Lines calls, lines;
  llvm::SmallVector<std::pair<unsigned, PlanFrame *>, 2> hoisted;
  for (PlanFrame *call : statement.calls)
    if (isHoisted(call))
      hoisted.push_back({placeOf(call), call});
  llvm::stable_sort(hoisted, llvm::less_first());
  // Inner calls come first and are named before what uses them.
  for (auto [position, call] : hoisted)
    calls.push_back({position, callLine(call)});
  for (Operation *op : statement.ops)
    if (!units[unitOf.lookup(op)].kept && !inlined.contains(op))
      addLines(op, lines);
  llvm::append_range(lines, calls);
  std::vector<std::string> before;
  for (const PlanCopy *copy : printer.copies.before(frame, statement.ast)) {
    Operation *source = copy->op->getOperand(0).getDefiningOp();
    auto own = opNames.find(source);
    if (own == opNames.end())
      before.push_back(printer.copyStatement(*copy, copy->source));
    else
      lines.push_back(
          {2 * model.position(source) + 1,
           printer.copyStatement(*copy, {own->second, resultIndices(source)})});
  }
  Unit &root = units.front();
  llvm::stable_sort(lines, llvm::less_first());
  for (auto &[position, text] : lines)
    before.push_back(text);
  SMRange range = statement.ast->range;
  if (root.kept) {
    printer.insertBefore(edits, range.Start, before);
    editUnit(root, edits);
    printer.editTarget(frame, statement.ast->targets.front(), edits);
    return;
  }
  std::string text;
  llvm::StringRef indent =
      indentOf(range.Start, model.bufferStart(range.Start));
  for (const std::string &comment : commentsIn(range))
    text += comment + "\n" + indent.str();
  for (auto [i, each] : llvm::enumerate(before))
    text += (i ? "\n" + indent.str() : "") + each;
  edits.replace(range, text);
}

void PlanPrinter::splitStatement(PlanStatement &statement, TextEdits &edits) {
  StatementSplitter(*this, statement).split(edits);
}
