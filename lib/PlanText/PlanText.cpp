//===- PlanText.cpp - A plan written into the program ---------------------===//
//
// Each statement keeps its text, with placements added, if the text has a place
// for everything that the plan says of it. Otherwise its operations are printed
// one by one (PlanSplit.cpp).
//
//===----------------------------------------------------------------------===//

#include "shardc/PlanText/PlanText.h"
#include "PlanPrinter.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;
using ast::Expr;
using llvm::SMLoc;
using llvm::SMRange;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Added statements
//===----------------------------------------------------------------------===//

/// A statement that only moves: written so that it moves where that takes less
/// memory, at the use if the result is the smaller, else at the store.
std::string PlanPrinter::moveStatement(const Move &move) {
  TensorShape shape = tensorShape(move.type);
  auto bytes = [&](ShardingAttr sharding) {
    return shape.localBytes(mesh, toLayout(mesh, sharding));
  };
  ShardingAttr read = bytes(move.to) <= bytes(move.from) ? move.to : move.from;
  return move.target + closedList(move.indices, move.to) + " = " + move.source +
         closedList(move.indices, read);
}

std::string PlanPrinter::copyStatement(const PlanCopy &copy,
                                       const FrameValue &source) {
  Value original = copy.op->getOperand(0);
  return moveStatement({copies.nameIn(copy.frame, copy.op), source.name,
                        source.indices, original.getType(),
                        getStoredPin(original),
                        getResultPin(onlyResult(copy.op))});
}

std::string PlanPrinter::rebindingStatement(PlanFrame *frame,
                                            const PlanRebinding &rebinding) {
  const FrameValue &value = rebinding.value;
  // A copy that nothing else reads has no statement; the value is read in its
  // layout instead.
  std::string source = copies.isWritten(rebinding.copy)
                           ? copies.nameIn(frame, rebinding.copy)
                           : value.name;
  return moveStatement({value.name, source, value.indices, rebinding.type,
                        rebinding.from, rebinding.to});
}

void PlanPrinter::insertBefore(TextEdits &edits, SMLoc loc,
                               llvm::ArrayRef<std::string> lines) {
  StringRef indent = indentOf(loc, model.bufferStart(loc));
  for (const std::string &line : lines)
    edits.insert(loc, line + "\n" + indent.str());
}

std::vector<std::string> PlanPrinter::copiesBefore(PlanFrame *frame,
                                                   const ast::Item *item) {
  std::vector<std::string> lines;
  for (const PlanCopy *copy : copies.before(frame, item))
    lines.push_back(copyStatement(*copy, copy->source));
  return lines;
}

//===----------------------------------------------------------------------===//
// References
//===----------------------------------------------------------------------===//

bool PlanPrinter::Request::add(ShardingAttr otherPin, Operation *otherCopy) {
  if (!pin) {
    pin = otherPin;
    copy = otherCopy;
    return true;
  }
  return pin == otherPin && copy == otherCopy;
}

/// The plan of an operand: its pin, and the copy that it reads.
std::pair<ShardingAttr, Operation *> PlanPrinter::wanted(OpOperand &use) {
  ShardingAttr pin = getOperandPin(use.getOwner(), use.getOperandNumber());
  Operation *def = use.get().getDefiningOp();
  return {pin, def && def->hasAttr(kCopy) ? def : nullptr};
}

/// True if nothing has to be said of an operand without a place in the text:
/// nothing moves, or the operation itself only moves it, whichever way is
/// cheapest.
bool PlanPrinter::movesFreely(OpOperand &use, ShardingAttr pin) const {
  return getStoredPin(use.get()) == pin ||
         (isa<ReshardOp>(use.getOwner()) &&
          copies.resultPin(use.getOwner()) == pin);
}

/// Collects what the plan says of each reference of the operations; false if
/// something has no place in the text.
bool PlanPrinter::collect(llvm::ArrayRef<Operation *> ops, Requests &requests) {
  for (Operation *op : ops) {
    // A statistic, which the backward pass of a training step reads.
    if (isStep() && op->getNumResults() > 1)
      return false;
    if (op->hasAttr(kTemporary) &&
        madeLayout(op) != getResultPin(op->getResult(0)))
      return false;
    for (OpOperand &use : op->getOpOperands()) {
      auto [pin, copy] = wanted(use);
      if (!pin || isa_and_nonnull<ConstantOp>(use.get().getDefiningOp()))
        continue;
      // Copies of a step stand in lines of their own.
      if (copy && isStep())
        return false;
      SMLoc loc = model.useLoc(use);
      if (loc.isValid()) {
        Request &request = requests[loc.getPointer()];
        if (!request.add(pin, copy))
          return false;
        request.use = &use;
      } else if (copy || !movesFreely(use, pin)) {
        return false;
      }
    }
  }
  return true;
}

namespace {
/// Placements that stand together in one product or sum, where the language
/// asks them to agree.
struct PlacedTogether {
  std::map<std::string, DimShardingAttr> indices;
  /// Index of each axis; empty for a partial sum.
  std::map<std::string, std::string> axes;
  bool conflict = false;

  void add(ArrayRef<std::string> names, ShardingAttr pin) {
    for (auto [name, dim] : llvm::zip(names, pin.getDims())) {
      conflict |= indices.try_emplace(name, dim).first->second != dim;
      for (StringAttr axis : dim.getAxes())
        conflict |= axes.try_emplace(axis.str(), name).first->second != name;
    }
    for (StringAttr axis : pin.getPartial())
      conflict |= !axes.try_emplace(axis.str(), "").first->second.empty();
  }
};

enum class Chain { None, Sum, Product };
} // namespace

static Chain chainOf(const Expr &expr) {
  switch (expr.kind) {
  case Expr::Kind::Add:
  case Expr::Kind::Sub:
    return Chain::Sum;
  case Expr::Kind::Mul:
  case Expr::Kind::Div:
    return Chain::Product;
  default:
    return Chain::None;
  }
}

static const Expr &withoutSigns(const Expr &expr) {
  const Expr *inner = &expr;
  while (inner->kind == Expr::Kind::Paren || inner->kind == Expr::Kind::Negate)
    inner = inner->operands[0].get();
  return *inner;
}

/// True if the placements of every product and sum in the expression may stand
/// together.
bool PlanPrinter::mayStandTogether(const Expr &root, const Requests &requests) {
  bool ok = true;
  auto visit = [&](auto &self, const Expr &expr, Chain chain,
                   PlacedTogether *together) -> void {
    const Expr &inner = withoutSigns(expr);
    if (inner.kind == Expr::Kind::Ref) {
      auto it = requests.find(inner.range.Start.getPointer());
      if (together && it != requests.end())
        together->add(operandIndices(*it->second.use), it->second.pin);
    }
    Chain own = chainOf(inner);
    PlacedTogether fresh;
    PlacedTogether *next = own == Chain::None ? nullptr
                           : own == chain     ? together
                                              : &fresh;
    for (auto [i, operand] : llvm::enumerate(inner.operands)) {
      bool divisor = inner.kind == Expr::Kind::Div && i == 1;
      self(self, *operand, divisor ? Chain::None : own,
           divisor ? nullptr : next);
    }
    for (const ast::Argument &argument : inner.arguments)
      self(self, *argument.value, Chain::None, nullptr);
    ok &= !fresh.conflict;
  };
  visit(visit, root, Chain::None, nullptr);
  return ok;
}

void PlanPrinter::editReferences(PlanFrame *frame, const Requests &requests,
                                 TextEdits &edits) {
  for (const auto &[pointer, request] : requests) {
    const Expr *reference = model.reference(SMLoc::getFromPointer(pointer));
    if (!reference)
      continue;
    if (request.copy)
      edits.replace(reference->nameRange, copies.nameIn(frame, request.copy));
    if (reference->indices)
      editList(edits, *reference->indices, request.pin);
    else
      edits.insert(reference->nameRange.End,
                   closedList(operandIndices(*request.use), request.pin));
  }
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

/// Adds the placement of the value that a name on the left gets. What a layer
/// returns has its placement in the layer.
void PlanPrinter::editTarget(PlanFrame *frame, const ast::Target &target,
                             TextEdits &edits) {
  Operation *op = model.definition(frame, target.name.range.Start);
  ShardingAttr pin = op ? copies.resultPin(op) : ShardingAttr();
  if (!pin)
    return;
  if (target.indices)
    editList(edits, *target.indices, pin);
  else
    edits.insert(target.name.range.End, closedList(resultIndices(op), pin));
}

/// A parameter's own list says how the argument is stored there; where it is to
/// be said, the argument's list how it comes.
void PlanPrinter::editArgument(PlanFrame *callee, const Expr &argument,
                               OpOperand &use, TextEdits &edits) {
  auto [pin, copy] = wanted(use);
  if (copy)
    edits.replace(argument.nameRange, copies.nameIn(callee->parent, copy));
  if (!pin || !explicitOps.contains(use.getOwner()))
    return;
  if (argument.indices)
    editList(edits, *argument.indices, pin);
  else
    edits.insert(argument.nameRange.End, closedList(operandIndices(use), pin));
}

/// Renames the call to the layer's copy with its plan and hands it the copies
/// that its parameters and the layer read.
void PlanPrinter::editCall(PlanFrame *callee, TextEdits &edits) {
  std::string name = variantName(callee);
  const Expr &call = *callee->call;
  if (name != call.name)
    edits.replace(call.nameRange, name);
  for (auto [i, argument] : llvm::enumerate(callee->arguments))
    if (Operation *parameter = model.bareParameter(callee, i))
      editArgument(callee, *argument, parameter->getOpOperand(0), edits);
  std::string arguments;
  for (Operation *copy : copies.parameters(callee))
    arguments += ", " + copies.nameIn(callee, copy) + "=" +
                 copies.nameIn(callee->parent, copy);
  if (!arguments.empty() && !call.arguments.empty())
    edits.insert(call.arguments.back().range.End, arguments);
}

bool PlanPrinter::isExplicit(const PlanStatement &statement) const {
  return llvm::any_of(statement.ops,
                      [&](Operation *op) { return explicitOps.contains(op); });
}

void PlanPrinter::printStatement(PlanStatement &statement, TextEdits &edits) {
  Requests requests;
  bool kept = !isExplicit(statement) && collect(statement.ops, requests) &&
              mayStandTogether(*statement.ast->value, requests);
  if (isStep()) {
    if (kept)
      placed.insert_range(statement.ops);
  } else if (!kept && statement.ast->targets.size() == 1) {
    return splitStatement(statement, edits);
  }
  insertBefore(edits, statement.ast->range.Start,
               copiesBefore(statement.frame, statement.ast));
  bool isInLines = isStep() && !kept;
  if (!isInLines)
    editReferences(statement.frame, requests, edits);
  for (PlanFrame *callee : statement.calls)
    editCall(callee, edits);
  if (!isInLines)
    for (const ast::Target &target : statement.ast->targets)
      editTarget(statement.frame, target, edits);
}

//===----------------------------------------------------------------------===//
// Items
//===----------------------------------------------------------------------===//

void PlanPrinter::printRepeat(PlanFrame *frame, const ast::RepeatStmt &repeat,
                              TextEdits &edits) {
  std::vector<std::string> lines = copiesBefore(frame, &repeat);
  for (const PlanRebinding &rebinding : copies.rebindingsBefore(frame, &repeat))
    lines.push_back(rebindingStatement(frame, rebinding));
  insertBefore(edits, repeat.range.Start, lines);
  if (!frame->layer)
    printStages(repeat, edits);
  printItems(frame, repeat.body, edits);
  printEnd(frame, &repeat, repeat.range, edits);
}

/// Statements at the end of a body, before its closing brace.
void PlanPrinter::printEnd(PlanFrame *frame, const ast::Item *body,
                           SMRange range, TextEdits &edits) {
  auto rebindings = copies.rebindingsAtEnd(frame, body);
  if (rebindings.empty())
    return;
  SMLoc brace = SMLoc::getFromPointer(range.End.getPointer() - 1);
  StringRef indent = indentOf(brace, model.bufferStart(brace));
  bool ownLine = brace.getPointer() == indent.end();
  for (const PlanRebinding &rebinding : rebindings)
    edits.insert(brace, (ownLine ? "  " : "") +
                            rebindingStatement(frame, rebinding) +
                            (ownLine ? "\n" + indent.str() : " "));
}

void PlanPrinter::printTensor(PlanFrame *frame, const ast::TensorDecl &tensor,
                              TextEdits &edits) {
  Operation *op = model.definition(frame, tensor.name.range.Start);
  ShardingAttr pin = op ? getResultPin(op->getResult(0)) : ShardingAttr();
  // A weight of which a training step reads parts by their numbers is declared
  // whole.
  size_t rank = tensor.indices.indices.size();
  if (pin && pin.getDims().size() < rank)
    pin = getResultPin(declarationOf(op->getResult(0)).getResult());
  if (!pin)
    return;
  // A state of which each microbatch of a pipeline has a part.
  if (size_t inFront = pin.getDims().size() - rank)
    pin = ShardingAttr::get(pin.getContext(), pin.getDims().drop_front(inFront),
                            pin.getPartial());
  editList(edits, tensor.indices, pin);
  placed.insert(declarationOf(op->getResult(0)));
}

void PlanPrinter::printOutput(const ast::OutputDecl &decl, TextEdits &edits) {
  OutputOp output = model.output(decl);
  ShardingAttr pin = output ? getOperandPin(output, 0) : ShardingAttr();
  if (!pin)
    return;
  // Copies of a step stand in lines of their own.
  if (isStep() && wanted(output->getOpOperand(0)).second)
    return;
  if (isStep() && pin.getPartial().empty())
    placed.insert(output);
  if (Operation *copy = copies.copyThatLeaves(output))
    edits.replace(decl.name.range, copies.nameIn(model.fileFrame(), copy));
  // An output's list cannot say that it is a partial sum; an open one takes the
  // layout that the value has.
  if (!pin.getPartial().empty())
    return;
  if (decl.indices)
    editList(edits, *decl.indices, pin);
  else if (!pin.getDims().empty())
    edits.insert(decl.name.range.End,
                 closedList(operandIndices(output->getOpOperand(0)), pin));
}

void PlanPrinter::printItems(PlanFrame *frame,
                             const std::vector<ast::ItemPtr> &items,
                             TextEdits &edits) {
  for (const ast::ItemPtr &item : items) {
    switch (item->kind) {
    case ast::Item::Kind::Tensor:
      printTensor(frame, llvm::cast<ast::TensorDecl>(*item), edits);
      break;
    case ast::Item::Kind::Output:
      printOutput(llvm::cast<ast::OutputDecl>(*item), edits);
      break;
    case ast::Item::Kind::Repeat:
      printRepeat(frame, llvm::cast<ast::RepeatStmt>(*item), edits);
      break;
    case ast::Item::Kind::Assign:
      if (PlanStatement *statement = model.statement(frame, item.get()))
        printStatement(*statement, edits);
      break;
    case ast::Item::Kind::Layer:
      if (!frame->layer)
        layerItems.push_back(llvm::cast<ast::LayerDecl>(item.get()));
      break;
    case ast::Item::Kind::Import:
      printImport(llvm::cast<ast::ImportDecl>(*item), edits);
      break;
    case ast::Item::Kind::Hardware:
      printHardware(*item, edits);
      break;
    case ast::Item::Kind::Mesh:
      printMesh(llvm::cast<ast::MeshDecl>(*item), edits);
      break;
    case ast::Item::Kind::Dim:
      printDims(llvm::cast<ast::DimDecl>(*item), edits);
      break;
    case ast::Item::Kind::Train:
      trainBlock = llvm::cast<ast::TrainBlock>(item.get());
      break;
    case ast::Item::Kind::Order:
    case ast::Item::Kind::Layout:
    case ast::Item::Kind::Serve:
    case ast::Item::Kind::Broken:
      break;
    }
  }
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

/// The name of the layer with the plan of this call. Calls with the same plan
/// share one; the first plan keeps the layer's own name.
std::string PlanPrinter::variantName(PlanFrame *frame) {
  auto known = variantNames.find(frame);
  if (known != variantNames.end())
    return known->second;
  const ast::LayerDecl &layer = *frame->layer;
  TextEdits edits;
  for (const ast::Parameter &parameter : layer.parameters)
    if (Operation *op = model.definition(frame, parameter.name.range.Start))
      editList(edits, parameter.indices, getResultPin(onlyResult(op)));
  for (const PlanCopies::Returned &returned : copies.returned(frame))
    edits.replace(returned.result->range, copies.nameIn(frame, returned.copy));
  printItems(frame, layer.body, edits);
  printEnd(frame, nullptr, layer.range, edits);
  addParameters(frame, edits);
  Variant variant;
  variant.head = edits.apply({layer.range.Start, layer.name.range.Start});
  variant.tail = edits.apply({layer.name.range.End, layer.range.End});
  std::vector<Variant> &variants = layerVariants[&layer];
  for (const Variant &other : variants)
    if (other.tail == variant.tail)
      return variantNames[frame] = other.name;
  variant.name =
      variants.empty() ? layer.name.text : names.numbered(layer.name.text);
  variants.push_back(variant);
  return variantNames[frame] = variant.name;
}

/// Copies that the layer takes from its caller.
void PlanPrinter::addParameters(PlanFrame *frame, TextEdits &edits) {
  auto added = copies.parameters(frame);
  if (added.empty() || frame->layer->parameters.empty())
    return;
  const ast::Parameter &last = frame->layer->parameters.back();
  SMLoc end = last.indices.range.End;
  if (last.isDim) {
    const char *limit = frame->layer->range.End.getPointer();
    const char *at = skipSpace(last.name.range.End.getPointer(), limit);
    at = skipSpace(at + 1, limit); // after the colon
    end = SMLoc::getFromPointer(at + StringRef("dim").size());
  }
  std::string text;
  for (Operation *copy : added)
    text += ", " + copies.parameterText(frame, copy);
  edits.insert(end, text);
}

/// Replaces a layer's declaration by its copies.
void PlanPrinter::printLayers(TextEdits &edits) {
  for (const ast::LayerDecl *layer : layerItems) {
    auto it = layerVariants.find(layer);
    if (it == layerVariants.end())
      continue; // never called
    StringRef indent =
        indentOf(layer->range.Start, model.bufferStart(layer->range.Start));
    std::string text;
    for (const Variant &variant : it->second) {
      if (!text.empty())
        text += "\n" + indent.str();
      text += variant.head + variant.name + variant.tail;
    }
    edits.replace(layer->range, text);
  }
  layerItems.clear();
}

//===----------------------------------------------------------------------===//
// What the command line and other files say
//===----------------------------------------------------------------------===//

void PlanPrinter::printImport(const ast::ImportDecl &import, TextEdits &edits) {
  std::optional<size_t> file = model.imported(import);
  if (!file) {
    edits.erase(import.range);
    return;
  }
  std::string text = printFile(*file);
  edits.replace(import.range, "// from " + import.path + ":\n" +
                                  StringRef(text).rtrim().str());
}

void PlanPrinter::printHardware(const ast::Item &item, TextEdits &edits) {
  hasHardware = true;
  if (overrides.hardware)
    edits.replace(item.range, "hardware " + *overrides.hardware);
}

/// `mesh [X=4, Y=4]` of the program as it was planned.
std::string PlanPrinter::meshText() {
  if (overrides.mesh && StringRef(*overrides.mesh).trim().starts_with("["))
    return "mesh " + StringRef(*overrides.mesh).trim().str();
  std::string axes;
  if (MeshAttr mesh = planned.getMeshAttr())
    for (MeshAxisAttr axis : mesh.getAxes()) {
      axes += (axes.empty() ? "" : ", ") + axis.getName().str() + "=" +
              std::to_string(axis.getSize());
      SmallVector<StringRef> on;
      for (StringAttr name : axis.getOn())
        on.push_back(name.getValue());
      if (on.size() == 1)
        axes += " on " + on.front().str();
      else if (!on.empty())
        axes += " on (" + llvm::join(on, ", ") + ")";
    }
  return axes.empty() ? "" : "mesh [" + axes + "]";
}

void PlanPrinter::printMesh(const ast::MeshDecl &mesh, TextEdits &edits) {
  hasMesh = true;
  std::string text = meshText();
  if ((overrides.mesh || mesh.isAuto) && !text.empty())
    edits.replace(mesh.range, text);
}

void PlanPrinter::printDims(const ast::DimDecl &dims, TextEdits &edits) {
  for (const ast::DimDef &def : dims.dims)
    for (const std::string &text : overrides.dims) {
      auto [name, value] = StringRef(text).split('=');
      if (name.trim() == def.name.text)
        edits.replace(def.value->range, value.trim());
    }
}

/// Declarations that the text lacks and the command line gave.
void PlanPrinter::addDeclarations(SMLoc loc, TextEdits &edits) {
  if (!hasMesh && overrides.mesh)
    if (std::string text = meshText(); !text.empty())
      edits.insert(loc, text + "\n");
  if (!hasHardware && overrides.hardware)
    edits.insert(loc, "hardware " + *overrides.hardware + "\n");
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

std::string PlanPrinter::printFile(size_t index) {
  TextEdits edits;
  const std::vector<ast::ItemPtr> &items = model.file(index).items;
  std::vector<const ast::LayerDecl *> outer;
  std::swap(outer, layerItems);
  printItems(model.fileFrame(), items, edits);
  // Layers of imported files are known once the main file's calls are.
  if (index == 0) {
    std::string end;
    for (const PlanRebinding &rebinding :
         copies.rebindingsAtEnd(model.fileFrame(), nullptr))
      end += "\n" + rebindingStatement(model.fileFrame(), rebinding);
    if (!end.empty())
      edits.insert(items.back()->range.End, end);
    addDeclarations(items.front()->range.Start, edits);
    if (trainBlock)
      printTrain(edits);
    else if (isStep())
      printLayouts(items, edits);
  }
  printLayers(edits);
  std::swap(outer, layerItems);
  return edits.apply(model.fileRange(index));
}

PlanPrinter::PlanPrinter(const Program &program, llvm::SourceMgr &sourceMgr,
                         ProgramOp planned, const Overrides &overrides,
                         const ExplicitOps &explicitOps)
    : program(program), overrides(overrides), explicitOps(explicitOps),
      planned(planned),
      mesh(planned.getMeshAttr() ? toMesh(planned.getMeshAttr()) : Mesh()),
      model(program, sourceMgr, planned), names(model),
      copies(model, names, planned) {}

std::string PlanPrinter::print() {
  // Layers are printed with the plans of their calls, wherever those stand.
  for (const auto &frame : model.allFrames())
    if (frame->layer)
      variantName(frame.get());
  return printFile(0);
}

void shardc::printPlan(llvm::raw_ostream &os, const Program &program,
                       llvm::SourceMgr &sourceMgr, ProgramOp planned,
                       const Overrides &overrides,
                       const ExplicitOps &explicitOps) {
  os << PlanPrinter(program, sourceMgr, planned, overrides, explicitOps)
            .print();
}
