//===- PlanModel.cpp - Which operations a piece of text became ------------===//
//
// Walks the text as the importer does (calls of layers are numbered alike) and
// sorts the operations into it by the places that they carry.
//
//===----------------------------------------------------------------------===//

#include "PlanModel.h"
#include "PlanEdits.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;
using ast::Expr;
using llvm::SMLoc;

PlanModel::PlanModel(const Program &program, llvm::SourceMgr &sourceMgr,
                     ProgramOp planned)
    : program(program), sourceMgr(sourceMgr) {
  for (const std::unique_ptr<ast::File> &file : program.files) {
    llvm::StringRef text = sourceMgr.getMemoryBuffer(file->buffer)->getBuffer();
    starts.push_back(text.begin());
    ranges.emplace_back(SMLoc::getFromPointer(text.begin()),
                        SMLoc::getFromPointer(text.end()));
    std::vector<size_t> &starts = lines.emplace_back(1, 0);
    for (size_t end = text.find('\n'); end != llvm::StringRef::npos;
         end = text.find('\n', end + 1))
      starts.push_back(end + 1);
  }
  for (const auto &file : program.files) {
    collectLayers(file->items);
    collectReferences(file->items);
  }
  frames.push_back(std::make_unique<PlanFrame>());
  frameByName[""] = frames.front().get();
  PlanPath path;
  walk(fileFrame(), program.files.front()->items, path);
  planned->walk<WalkOrder::PreOrder>([&](Operation *op) {
    positions[op] = positions.size();
    addOperation(op);
  });
}

//===----------------------------------------------------------------------===//
// The text
//===----------------------------------------------------------------------===//

void PlanModel::collectLayers(const Items &items) {
  for (const ast::ItemPtr &item : items) {
    if (auto *repeat = llvm::dyn_cast<ast::RepeatStmt>(item.get()))
      collectLayers(repeat->body);
    if (auto *layer = llvm::dyn_cast<ast::LayerDecl>(item.get())) {
      layers[layer->name.text] = layer;
      collectLayers(layer->body);
    }
  }
}

void PlanModel::collectReferences(const Expr &expr) {
  if (expr.kind == Expr::Kind::Ref)
    references[expr.range.Start.getPointer()] = &expr;
  if (expr.indices)
    collectReferences(*expr.indices);
  for (const ast::ExprPtr &operand : expr.operands)
    collectReferences(*operand);
  for (const ast::Argument &argument : expr.arguments)
    collectReferences(*argument.value);
}

void PlanModel::collectReferences(const ast::IndexList &list) {
  for (const ast::Index &index : list.indices)
    if (index.gather)
      collectReferences(*index.gather);
}

void PlanModel::collectReferences(const Items &items) {
  for (const ast::ItemPtr &item : items) {
    if (auto *repeat = llvm::dyn_cast<ast::RepeatStmt>(item.get()))
      collectReferences(repeat->body);
    else if (auto *layer = llvm::dyn_cast<ast::LayerDecl>(item.get()))
      collectReferences(layer->body);
    auto *assign = llvm::dyn_cast<ast::AssignStmt>(item.get());
    if (!assign)
      continue;
    collectReferences(*assign->value);
    for (const ast::Target &target : assign->targets)
      if (target.indices)
        collectReferences(*target.indices);
  }
}

void PlanModel::walk(PlanFrame *frame, const Items &items, PlanPath &path) {
  for (const ast::ItemPtr &item : items) {
    path.push_back({frame, item.get()});
    if (auto *repeat = llvm::dyn_cast<ast::RepeatStmt>(item.get())) {
      walk(frame, repeat->body, path);
    } else if (auto *assign = llvm::dyn_cast<ast::AssignStmt>(item.get())) {
      auto owned = std::make_unique<PlanStatement>();
      PlanStatement &statement = *owned;
      statement.frame = frame;
      statement.ast = assign;
      statement.path = path;
      statements[{frame, assign}] = std::move(owned);
      for (const ast::Target &target : assign->targets)
        byTarget[{frame, target.name.range.Start.getPointer()}] = &statement;
      walkCalls(statement, *assign->value);
    }
    path.pop_back();
  }
}

void PlanModel::walkCalls(PlanStatement &statement, const Expr &expr) {
  if (expr.kind == Expr::Kind::Call && layers.contains(expr.name))
    return addCall(statement, expr);
  for (const ast::ExprPtr &operand : expr.operands)
    walkCalls(statement, *operand);
  for (const ast::Argument &argument : expr.arguments)
    walkCalls(statement, *argument.value);
  if (!expr.indices)
    return;
  for (const ast::Index &index : expr.indices->indices)
    if (index.gather)
      walkCalls(statement, *index.gather);
}

void PlanModel::addCall(PlanStatement &statement, const Expr &call) {
  PlanFrame *frame = frames.emplace_back(std::make_unique<PlanFrame>()).get();
  frame->layer = layers.lookup(call.name);
  frame->parent = statement.frame;
  frame->call = &call;
  frame->caller = &statement;
  std::string name = statement.frame->name.empty()
                         ? std::string()
                         : statement.frame->name + ".";
  name += statement.ast->targets.front().name.text;
  unsigned count = ++callCounts[name];
  frame->name = count == 1 ? name : name + "." + std::to_string(count);
  frameByName[frame->name] = frame;
  statement.calls.push_back(frame);
  // Arguments are evaluated in the order of the parameters.
  auto &values = frame->arguments;
  values.resize(frame->layer->parameters.size());
  size_t position = 0;
  for (const ast::Argument &argument : call.arguments) {
    size_t slot = position;
    if (argument.name.empty())
      ++position;
    else
      slot = llvm::find_if(frame->layer->parameters,
                           [&](const ast::Parameter &parameter) {
                             return parameter.name.text == argument.name;
                           }) -
             frame->layer->parameters.begin();
    if (slot < values.size())
      values[slot] = argument.value.get();
  }
  for (const Expr *value : values)
    if (value)
      walkCalls(statement, *value);
  PlanPath path = statement.path;
  walk(frame, frame->layer->body, path);
}

std::optional<size_t> PlanModel::imported(const ast::ImportDecl &import) const {
  for (size_t i = 1; i < program.files.size(); ++i)
    if (sourceMgr.getParentIncludeLoc(program.files[i]->buffer) ==
        import.pathRange.Start)
      return i;
  return std::nullopt;
}

const char *PlanModel::bufferStart(SMLoc loc) const {
  for (const llvm::SMRange &range : ranges)
    if (loc.getPointer() >= range.Start.getPointer() &&
        loc.getPointer() <= range.End.getPointer())
      return range.Start.getPointer();
  llvm_unreachable("a place outside of the program's files");
}

std::string PlanModel::nameAt(SMLoc loc) const {
  const char *begin = loc.getPointer(), *end = begin;
  while (llvm::isAlnum(*end) || *end == '_')
    ++end;
  return std::string(begin, end);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

SMLoc PlanModel::locOf(Operation *op, int64_t offset) const {
  auto file = op->getAttrOfType<IntegerAttr>(kFile);
  if (!file || offset < 0 || size_t(file.getInt()) >= starts.size())
    return SMLoc();
  return SMLoc::getFromPointer(starts[file.getInt()] + offset);
}

SMLoc PlanModel::defLoc(Operation *op) const {
  auto def = op->getAttrOfType<IntegerAttr>(kDef);
  return def ? locOf(op, def.getInt()) : SMLoc();
}

SMLoc PlanModel::useLoc(OpOperand &operand) const {
  auto uses = operand.getOwner()->getAttrOfType<DenseI64ArrayAttr>(kUses);
  unsigned number = operand.getOperandNumber();
  return uses && number < unsigned(uses.size())
             ? locOf(operand.getOwner(), uses[number])
             : SMLoc();
}

/// The place of an operation's own location, which is that of its statement's
/// first target.
SMLoc PlanModel::sourceLoc(Operation *op) const {
  auto file = op->getAttrOfType<IntegerAttr>(kFile);
  auto loc = op->getLoc()->findInstanceOf<FileLineColLoc>();
  if (!file || !loc || size_t(file.getInt()) >= starts.size() ||
      loc.getLine() == 0 || loc.getLine() > lines[file.getInt()].size())
    return SMLoc();
  return SMLoc::getFromPointer(starts[file.getInt()] +
                               lines[file.getInt()][loc.getLine() - 1] +
                               loc.getColumn() - 1);
}

PlanFrame *PlanModel::frameOf(Operation *op) const {
  auto call = op->getAttrOfType<StringAttr>(kCall);
  return frameByName.lookup(call ? call.getValue() : "");
}

void PlanModel::addOperation(Operation *op) {
  if (auto output = dyn_cast<OutputOp>(op)) {
    outputs[useLoc(op->getOpOperand(0)).getPointer()] = op;
    return;
  }
  if (!op->hasAttr(kCall) || op->hasAttr(kCopy))
    return;
  PlanFrame *frame = frameOf(op);
  for (PlanFrame *at = frame; at && at->layer; at = at->parent)
    firstPositions.try_emplace(at, position(op));
  if (SMLoc def = defLoc(op); def.isValid())
    definitions[{frame, def.getPointer()}] = op;
  auto it = byTarget.find({frame, sourceLoc(op).getPointer()});
  if (it == byTarget.end())
    return;
  statementOfOp[op] = it->second;
  if (!isa<ConstantOp>(op))
    it->second->ops.push_back(op);
  addRepeats(op, *it->second);
}

/// The repeats around an operation are those around its statement.
void PlanModel::addRepeats(Operation *op, const PlanStatement &statement) {
  Operation *around = op->getParentOp();
  for (size_t i = statement.path.size(); i-- > 0;) {
    if (!llvm::isa<ast::RepeatStmt>(statement.path[i].item))
      continue;
    auto repeat = dyn_cast_or_null<RepeatOp>(around);
    if (!repeat || repeatPaths.count(around))
      return;
    repeatPaths[around] =
        PlanPath(llvm::ArrayRef(statement.path).take_front(i + 1));
    repeats[{statement.path[i].frame, statement.path[i].item}] = around;
    around = around->getParentOp();
  }
}

PlanStatement *PlanModel::statement(PlanFrame *frame,
                                    const ast::Item *item) const {
  auto it = statements.find({frame, item});
  return it == statements.end() ? nullptr : it->second.get();
}

Operation *PlanModel::definition(PlanFrame *frame, SMLoc loc) const {
  auto it = definitions.find({frame, loc.getPointer()});
  return it == definitions.end() ? nullptr : it->second;
}

bool PlanModel::isParameter(Operation *op) const {
  PlanFrame *frame = frameOf(op);
  return frame && frame->layer &&
         llvm::any_of(frame->layer->parameters,
                      [&](const ast::Parameter &parameter) {
                        return parameter.name.range.Start == defLoc(op);
                      });
}

Operation *PlanModel::bareParameter(PlanFrame *call, unsigned parameter) const {
  const Expr *argument = call->arguments[parameter];
  if (!argument || argument->kind != Expr::Kind::Ref)
    return nullptr;
  if (const auto &list = argument->indices;
      list && (list->hasPlacement() ||
               llvm::any_of(list->indices, [](const ast::Index &index) {
                 return index.gather != nullptr;
               })))
    return nullptr;
  return definition(call, call->layer->parameters[parameter].name.range.Start);
}

std::optional<PlanPath> PlanModel::pathOf(RepeatOp repeat) const {
  auto it = repeatPaths.find(repeat);
  if (it == repeatPaths.end())
    return std::nullopt;
  return it->second;
}

RepeatOp PlanModel::repeatAt(PlanFrame *frame, const ast::Item *item) const {
  auto it = repeats.find({frame, item});
  return it == repeats.end() ? RepeatOp() : cast<RepeatOp>(it->second);
}

OutputOp PlanModel::output(const ast::OutputDecl &decl) const {
  return dyn_cast_or_null<OutputOp>(
      outputs.lookup(decl.name.range.Start.getPointer()));
}
