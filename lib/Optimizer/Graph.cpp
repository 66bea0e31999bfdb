//===- Graph.cpp - A program as the optimizer sees it ----------*- C++ -*-===//

#include "shardc/Optimizer/Graph.h"
#include "shardc/Dialect/Shd/IR/Host.h"
#include "shardc/Dialect/Shd/IR/Segments.h"
#include "shardc/Dialect/Shd/IR/Views.h"
#include "shardc/Optimizer/Names.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

Value shardc::groupValue(Operation *leader) {
  return leader->getResults().front();
}

bool shardc::hasLayout(Value value) {
  if (isa_and_nonnull<ConstantOp>(value.getDefiningOp()))
    return false;
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getArgNumber() != 0;
  return true;
}

namespace {

class GraphBuilder {
public:
  Graph build(ProgramOp program);

private:
  void visit(Block &block);
  void visitRepeat(RepeatOp repeat);
  void visitCompute(Operation *op);
  llvm::SmallVector<Operation *> tensorsOf(Block &block) const;
  void declare(DeclareOp op);
  void addPart(PartOp op);
  unsigned addValue(Value value, GraphValue::Kind kind);
  unsigned chunkFor(Operation *op, CostOpInterface cost);
  void use(Value value, unsigned chunk, unsigned op, unsigned operand);
  void flow(OpOperand &operand, unsigned target, uint32_t point);
  void extendLiveRange(GraphValue &value, Operation *user, uint32_t point);
  Operation *outermostRepeat(Value value, Operation *user) const;
  uint32_t pointOfNeed(Value value, Operation *user, uint32_t point) const;
  void findBegins();
  void findBeginsOfGradients();
  void countPoints(Block &block);
  void finish();
  bool isPrologue(const Chunk &chunk) const;
  void extendPrologueInputs();
  std::optional<unsigned> viewedBy(Operation *op) const;
  void endViews();
  void extendViewed();
  unsigned declaredOf(unsigned index) const;
  void findPartsOfBuffers();
  bool isReplaced(const GraphValue &tensor, const GraphValue &by) const;
  bool isReplaced(unsigned declared, UpdateOp update,
                  const GraphValue &by) const;
  void findReplaced();

  Graph graph;
  uint32_t nextPoint = 0;
  /// Operations in the program's order.
  llvm::DenseMap<Operation *, unsigned> order;
  /// The operation that ends each fusion group.
  llvm::DenseMap<int64_t, Operation *> lastOfGroup;
  llvm::DenseMap<Operation *, uint32_t> pointOf;
  llvm::DenseMap<int64_t, unsigned> restChunk;
  llvm::SmallVector<OutputOp, 4> outputs;
  /// By value that updates a buffer, the parts that are read of it from there.
  llvm::DenseMap<unsigned, llvm::SmallVector<unsigned, 1>> partsOfBuffers;
};

/// True if it is in a fusion group: it costs something, or is read through.
bool isCosted(Operation *op) {
  auto cost = dyn_cast<CostOpInterface>(op);
  return cost &&
         (cost.getFusionKind() != FusionKind::Free || op->hasAttr(kGroup));
}

bool isRest(Operation *op) {
  return isCosted(op) &&
         cast<CostOpInterface>(op).getFusionKind() != FusionKind::Leader;
}

/// Numbers points: one per fusion group, at its last operation, one per
/// operation outside groups, and one before and one after each repeat.
void GraphBuilder::countPoints(Block &block) {
  for (Operation &op : block)
    if (isCosted(&op))
      lastOfGroup[*fusionGroupOf(&op)] = &op;
  for (Operation &op : block) {
    if (auto repeat = dyn_cast<RepeatOp>(op)) {
      uint32_t entry = nextPoint++;
      countPoints(repeat.getBody().front());
      graph.repeatPoints[&op] = {entry, nextPoint++};
      continue;
    }
    if (!isa<CostOpInterface>(op) || op.hasAttr(kCopy))
      continue;
    if (!isCosted(&op) || lastOfGroup.lookup(*fusionGroupOf(&op)) == &op)
      pointOf[&op] = nextPoint++;
  }
}

unsigned GraphBuilder::addValue(Value value, GraphValue::Kind kind) {
  unsigned index = graph.values.size();
  GraphValue &info = graph.values.emplace_back();
  info.value = value;
  info.kind = kind;
  Operation *owner = value.getDefiningOp();
  info.count =
      owner ? executionCount(owner)
            : runsOfBody(cast<RepeatOp>(value.getParentBlock()->getParentOp()));
  graph.valueIndex[value] = index;
  return index;
}

/// The outermost repeat around a use that does not contain the definition.
Operation *GraphBuilder::outermostRepeat(Value value, Operation *user) const {
  Block *home = value.getParentBlock();
  Operation *outermost = nullptr;
  for (Operation *at = user; at && at->getBlock() != home;
       at = at->getParentOp())
    outermost = at->getParentOp();
  return outermost;
}

/// When a value has to be there for a user that runs at `point`.
uint32_t GraphBuilder::pointOfNeed(Value value, Operation *user,
                                   uint32_t point) const {
  Operation *repeat = outermostRepeat(value, user);
  return repeat ? graph.repeatPoints.lookup(repeat).first : point;
}

/// Extends the live range of a value to a use at `point`, or to the end of the
/// repeat in which it is.
void GraphBuilder::extendLiveRange(GraphValue &value, Operation *user,
                                   uint32_t point) {
  uint32_t first = point, last = point;
  if (Operation *repeat = outermostRepeat(value.value, user)) {
    std::tie(first, last) = graph.repeatPoints.lookup(repeat);
    value.usedDeeper = true;
  }
  value.end = std::max(value.end, last + 1);
  value.readEnd = std::max(value.readEnd, last + 1);
  value.firstRead = std::min(value.firstRead, first);
}

void GraphBuilder::use(Value operand, unsigned chunk, unsigned op,
                       unsigned number) {
  Value root = rootValue(operand);
  if (!hasLayout(root))
    return;
  GraphValue &value = graph.values[graph.valueIndex.lookup(root)];
  if (value.kind == GraphValue::Kind::Computed && value.chunk == chunk)
    return;
  value.uses.push_back({chunk, op, number, graph.chunks[chunk].point});
}

void GraphBuilder::flow(OpOperand &operand, unsigned target, uint32_t point) {
  Operation *at = operand.getOwner();
  GraphValue &value =
      graph.values[graph.valueIndex.lookup(rootValue(operand.get()))];
  value.flows.push_back(
      {target, executionCount(at), point, point + 1, &operand});
  extendLiveRange(value, at, point);
}

/// Only parts of the tensor are read.
bool isReadByParts(DeclareOp op) {
  return !isReadWhole(op) &&
         llvm::any_of(op->getUsers(), llvm::IsaPred<PartOp>);
}

/// The declared tensors that a block reads and the parts of stacked ones, in
/// the order of their first uses, so that it does not matter where they stand;
/// and those that it updates before anything reads a part.
llvm::SmallVector<Operation *> GraphBuilder::tensorsOf(Block &block) const {
  using Use = std::pair<unsigned, unsigned>;
  llvm::SmallVector<std::pair<Use, Operation *>> found;
  for (Operation &op : block) {
    if (auto update = dyn_cast<UpdateOp>(op);
        update && isReadByParts(update.getDeclaration()))
      found.push_back({Use(order.lookup(update), update->getNumOperands()),
                       update.getDeclaration()});
    auto declare = dyn_cast<DeclareOp>(op);
    if (!isa<PartOp>(op) && (!declare || isReadByParts(declare)))
      continue;
    Use first(~0u, 0);
    for (OpOperand &use : op.getResult(0).getUses())
      if (!isa<UpdateOp>(use.getOwner()))
        first = std::min(
            first, Use(order.lookup(use.getOwner()), use.getOperandNumber()));
    found.push_back({first, &op});
  }
  llvm::stable_sort(found, llvm::less_first());
  return llvm::map_to_vector(found,
                             [](const auto &pair) { return pair.second; });
}

void GraphBuilder::declare(DeclareOp op) {
  unsigned index = addValue(op.getResult(), GraphValue::Kind::Declared);
  GraphValue &value = graph.values[index];
  value.firstRead = nextPoint;
  if (op.getKind() != TensorKind::Input)
    value.end = nextPoint;
}

/// A stacked tensor of which only parts are read comes with the first of them.
void GraphBuilder::addPart(PartOp op) {
  Value source = op.getSource();
  if (!graph.valueIndex.contains(source))
    declare(source.getDefiningOp<DeclareOp>());
  unsigned index = addValue(op.getResult(), GraphValue::Kind::Part);
  graph.values[index].whole = graph.valueIndex.lookup(source);
  graph.values[index].firstRead = nextPoint;
}

unsigned GraphBuilder::chunkFor(Operation *op, CostOpInterface cost) {
  bool rest = isRest(op);
  if (rest) {
    auto it = restChunk.find(*fusionGroupOf(op));
    if (it != restChunk.end())
      return it->second;
  }
  unsigned index = graph.chunks.size();
  Chunk &chunk = graph.chunks.emplace_back();
  chunk.count = executionCount(op);
  if (isCosted(op)) {
    chunk.group = *fusionGroupOf(op);
    chunk.kind = rest ? Chunk::Kind::Rest : Chunk::Kind::Leader;
    chunk.view = cost.getFusionKind() == FusionKind::Free;
    chunk.point = pointOf.lookup(lastOfGroup.lookup(chunk.group));
    if (graph.groups.size() <= size_t(chunk.group))
      graph.groups.resize(chunk.group + 1, {-1, -1});
    (rest ? graph.groups[chunk.group].second
          : graph.groups[chunk.group].first) = index;
    if (rest)
      restChunk[chunk.group] = index;
  } else {
    chunk.point = pointOf.lookup(op);
  }
  return index;
}

void GraphBuilder::visitCompute(Operation *op) {
  unsigned index = chunkFor(op, cast<CostOpInterface>(op));
  Chunk &chunk = graph.chunks[index];
  unsigned number = chunk.ops.size();
  chunk.ops.push_back(op);
  graph.chunkOf[op] = index;
  IndexingAttr indexing = cast<ShardingRuleOpInterface>(op).getIndexing();
  for (unsigned i = 0; i < indexing.getOperands().size(); ++i)
    use(op->getOperand(i), index, number, i);
  for (Value result : op->getResults()) {
    GraphValue &value =
        graph.values[addValue(result, GraphValue::Kind::Computed)];
    value.chunk = index;
    value.op = number;
    value.begin = chunk.point;
    value.end = value.begin;
    value.firstRead = nextPoint;
    value.viewOf = viewedBy(op);
  }
  if (OpOperand *whole = inPlaceOperand(op)) {
    unsigned into = graph.valueIndex.lookup(rootValue(whole->get()));
    while (graph.values[into].kind == GraphValue::Kind::Part)
      into = graph.values[into].whole;
    auto declared = graph.values[into].value.getDefiningOp<DeclareOp>();
    graph.values[graph.valueIndex.lookup(onlyResult(op))].intoState =
        declared && declared.getKind() == TensorKind::State
            ? into
            : graph.values[into].intoState;
  }
}

void GraphBuilder::visitRepeat(RepeatOp repeat) {
  auto [entry, exit] = graph.repeatPoints.lookup(repeat);
  llvm::SmallVector<unsigned, 4> carried;
  for (auto [argument, init] :
       llvm::zip(repeat.getCarried(), repeat.getInitsMutable())) {
    unsigned index = addValue(argument, GraphValue::Kind::Carried);
    GraphValue &value = graph.values[index];
    value.begin = value.end = entry + 1;
    value.firstRead = nextPoint;
    carried.push_back(index);
    flow(init, index, entry);
  }
  visit(repeat.getBody().front());
  Operation *yield = repeat.getBody().front().getTerminator();
  for (auto [index, operand] : llvm::zip(carried, yield->getOpOperands()))
    flow(operand, index, exit);
  for (auto [index, result] : llvm::zip(carried, repeat.getResults())) {
    GraphValue &value =
        graph.values[addValue(result, GraphValue::Kind::Result)];
    value.carried = index;
    value.begin = value.end = exit + 1;
    value.firstRead = nextPoint;
  }
}

void GraphBuilder::visit(Block &block) {
  for (Operation *op : tensorsOf(block))
    if (auto part = dyn_cast<PartOp>(op))
      addPart(part);
    else if (!graph.valueIndex.contains(onlyResult(op)))
      declare(cast<DeclareOp>(op));
  for (Operation &op : block) {
    if (auto repeat = dyn_cast<RepeatOp>(op))
      visitRepeat(repeat);
    else if (isa<CostOpInterface>(op) && !op.hasAttr(kCopy))
      visitCompute(&op);
    else if (auto output = dyn_cast<OutputOp>(op))
      outputs.push_back(output);
    else if (auto update = dyn_cast<UpdateOp>(op)) {
      Value root = rootValue(update.getValue());
      flow(update.getValueMutable(), graph.valueIndex.lookup(update.getState()),
           graph.values[graph.valueIndex.lookup(root)].begin);
      // Its transfer ends before the iteration does.
      auto repeat = dyn_cast<RepeatOp>(update->getParentOp());
      if (repeat && copiesToHost(update))
        extendLiveRange(graph.values[graph.valueIndex.lookup(root)], update,
                        graph.repeatPoints.lookup(repeat).second);
    }
  }
}

/// A group of elementwise operations and casts that only einsums or attention
/// use is a prologue of each user, and so is a slice that only attention reads
/// (docs/CostModel.md#2-one-operation-on-one-device).
bool GraphBuilder::isPrologue(const Chunk &chunk) const {
  if (chunk.kind != Chunk::Kind::Rest || graph.groups[chunk.group].first >= 0)
    return false;
  Block *block = chunk.ops.front()->getBlock();
  auto readsPrologue = [&](const ChunkUse &use) {
    const Chunk &user = graph.chunks[use.chunk];
    return user.kind == Chunk::Kind::Leader &&
           cast<CostOpInterface>(user.ops.front()).readsPrologues() &&
           user.ops.front()->getBlock() == block;
  };
  unsigned used = 0;
  for (Operation *op : chunk.ops) {
    FusionKind kind = cast<CostOpInterface>(op).getFusionKind();
    if (kind != FusionKind::Elementwise && kind != FusionKind::Free)
      return false;
    for (Value result : op->getResults()) {
      const GraphValue &value = graph.values[graph.valueIndex.lookup(result)];
      if (!value.flows.empty() || !llvm::all_of(value.uses, readsPrologue))
        return false;
      used += !value.uses.empty();
    }
  }
  return used == 1;
}

/// Users of a prologue read its inputs, which therefore live on.
void GraphBuilder::extendPrologueInputs() {
  for (Chunk &chunk : graph.chunks)
    chunk.readEnd = chunk.point + 1;
  for (const GraphValue &value : graph.values)
    for (const ChunkUse &use : value.uses)
      if (value.kind == GraphValue::Kind::Computed) {
        Chunk &maker = graph.chunks[value.chunk];
        if (maker.prologue)
          maker.readEnd =
              std::max(maker.readEnd, graph.chunks[use.chunk].point + 1);
      }
  for (GraphValue &input : graph.values)
    for (size_t i = 0, size = input.uses.size(); i < size; ++i) {
      unsigned chunk = input.uses[i].chunk;
      if (!graph.chunks[chunk].prologue)
        continue;
      for (Operation *op : graph.chunks[chunk].ops)
        for (Value result : op->getResults())
          for (const ChunkUse &use :
               graph.values[graph.valueIndex.lookup(result)].uses)
            extendLiveRange(input, graph.chunks[use.chunk].ops[use.op],
                            graph.chunks[use.chunk].point);
    }
}

/// The tensor in whose buffer the result of an operation may lie.
std::optional<unsigned> GraphBuilder::viewedBy(Operation *op) const {
  OpOperand *viewed = viewedOperand(op);
  if (!viewed || !hasLayout(rootValue(viewed->get())))
    return std::nullopt;
  unsigned index = graph.valueIndex.lookup(rootValue(viewed->get()));
  const GraphValue &value = graph.values[index];
  bool isTensor = value.kind == GraphValue::Kind::Declared ||
                  value.kind == GraphValue::Kind::Part;
  if (isTensor)
    return keepsViews(value.value) ? std::optional(index) : std::nullopt;
  return value.viewOf;
}

/// What is written into a declared tensor lies in that.
void GraphBuilder::endViews() {
  for (GraphValue &value : graph.values)
    if (llvm::any_of(value.flows, [](const GraphValue::Flow &flow) {
          return isa<UpdateOp>(flow.operand->getOwner());
        }))
      value.viewOf = std::nullopt;
}

/// A tensor lives as long as what may lie in its buffer.
void GraphBuilder::extendViewed() {
  for (const GraphValue &view : graph.values) {
    if (!view.viewOf)
      continue;
    GraphValue &tensor = graph.values[*view.viewOf];
    Operation *repeat =
        outermostRepeat(tensor.value, view.value.getDefiningOp());
    uint32_t end =
        repeat ? graph.repeatPoints.lookup(repeat).second + 1 : view.end;
    tensor.end = std::max(tensor.end, end);
  }
}

/// Parts of a buffer are read when the value that they are has been made.
void GraphBuilder::findPartsOfBuffers() {
  for (auto [index, value] : llvm::enumerate(graph.values)) {
    auto part = value.value.getDefiningOp<PartOp>();
    UpdateOp update = part ? updateBefore(part) : UpdateOp();
    if (update && update->getBlock()->findAncestorOpInBlock(*part))
      partsOfBuffers[graph.valueIndex.lookup(rootValue(update.getValue()))]
          .push_back(index);
  }
}

/// A user may stand between an operation and the end of its group: then the
/// operation runs for it, and what makes its operands.
void GraphBuilder::findBegins() {
  std::vector<uint32_t> needed(graph.values.size(), UINT32_MAX);
  for (size_t i = graph.values.size(); i-- > 0;) {
    GraphValue &value = graph.values[i];
    auto beginOf = [&](size_t at) {
      const GraphValue &each = graph.values[at];
      uint32_t begin = std::min({each.begin, each.firstRead, needed[at]});
      if (auto parts = partsOfBuffers.find(at); parts != partsOfBuffers.end())
        for (unsigned part : parts->second)
          begin = std::min(begin,
                           pointOfNeed(each.value,
                                       graph.values[part].value.getDefiningOp(),
                                       graph.values[part].firstRead));
      return begin;
    };
    value.begin = beginOf(i);
    if (value.kind != GraphValue::Kind::Computed)
      continue;
    // An operation makes its results at once.
    for (Value result : value.value.getDefiningOp()->getResults())
      value.begin =
          std::min(value.begin, beginOf(graph.valueIndex.lookup(result)));
    const Chunk &chunk = graph.chunks[value.chunk];
    bool isUsed = !value.uses.empty() || !value.flows.empty();
    value.end = isUsed ? std::max(value.end, chunk.point + 1) : value.begin;
    for (GraphValue::Flow &flow : value.flows)
      if (graph.values[flow.target].kind == GraphValue::Kind::Declared) {
        flow.begin = value.begin; // a state is updated at once
        value.firstRead = std::min(value.firstRead, value.begin);
      }
    Operation *op = chunk.ops[value.op];
    for (Value operand : op->getOperands()) {
      auto it = graph.valueIndex.find(rootValue(operand));
      if (it == graph.valueIndex.end())
        continue;
      GraphValue &source = graph.values[it->second];
      uint32_t point = pointOfNeed(source.value, op, value.begin);
      needed[it->second] = std::min(needed[it->second], point);
      for (ChunkUse &use : source.uses)
        if (use.chunk == value.chunk && use.op == value.op) {
          use.point = value.begin;
          source.firstRead = std::min(source.firstRead, point);
        }
    }
  }
}

bool isGradient(Value value) {
  auto declared = value.getDefiningOp<DeclareOp>();
  return declared && declared.getKind() == TensorKind::Gradient;
}

/// The buffer of a gradient is there from its first update or read on
/// (docs/CostModel.md#6-memory-of-one-device). Flows have the points that
/// findBegins gave them.
void GraphBuilder::findBeginsOfGradients() {
  llvm::DenseMap<unsigned, uint32_t> firstUpdate;
  for (const GraphValue &value : graph.values)
    for (const GraphValue::Flow &flow : value.flows) {
      GraphValue &target = graph.values[flow.target];
      if (!isGradient(target.value))
        continue;
      uint32_t point =
          pointOfNeed(target.value, flow.operand->getOwner(), flow.begin);
      auto [first, isNew] = firstUpdate.try_emplace(flow.target, point);
      first->second = std::min(first->second, point);
    }
  for (auto [index, point] : firstUpdate) {
    GraphValue &gradient = graph.values[index];
    gradient.begin = std::min(point, gradient.firstRead);
  }
}

/// Only the rest of its own fusion group reads the value.
bool staysInGroup(const Graph &graph, const GraphValue &value) {
  return value.flows.empty() && !value.uses.empty() &&
         llvm::all_of(value.uses, [&](const ChunkUse &use) {
           return graph.chunks[use.chunk].group ==
                  graph.chunks[value.chunk].group;
         });
}

/// Nothing reads the value, as it is or in another layout.
bool isDead(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    return isCollective(user) && isDead(onlyResult(user));
  });
}

/// True if all that is read of a declared tensor, or of a part, is read before
/// the value is made that replaces it, or by elementwise operations of the same
/// kernel.
bool GraphBuilder::isReplaced(const GraphValue &tensor,
                              const GraphValue &by) const {
  auto isBefore = [&](Operation *user, uint32_t point) {
    Operation *repeat = outermostRepeat(tensor.value, user);
    return (repeat ? graph.repeatPoints.lookup(repeat).second : point) <
           by.begin;
  };
  auto isInKernel = [&](const ChunkUse &use) {
    const Chunk &user = graph.chunks[use.chunk];
    Operation *op = user.ops[use.op];
    if (op == by.value.getDefiningOp() &&
        inPlaceOperand(op) == &op->getOpOperand(use.operand))
      return true;
    return user.kind == Chunk::Kind::Rest &&
           user.group == graph.chunks[by.chunk].group &&
           op->getBlock() == Value(tensor.value).getParentBlock() &&
           cast<CostOpInterface>(op).getFusionKind() == FusionKind::Elementwise;
  };
  return llvm::all_of(tensor.uses,
                      [&](const ChunkUse &use) {
                        const Chunk &user = graph.chunks[use.chunk];
                        return user.kind != Chunk::Kind::Output &&
                               (isBefore(user.ops[use.op], user.readEnd - 1) ||
                                isInKernel(use));
                      }) &&
         llvm::all_of(tensor.flows, [&](const GraphValue::Flow &flow) {
           Operation *user = flow.operand->getOwner();
           return !isa<UpdateOp>(user) && isBefore(user, flow.end - 1);
         });
}

/// The declared tensor that a value is, or is a part or a view of; else itself.
unsigned GraphBuilder::declaredOf(unsigned index) const {
  index = graph.values[index].viewOf.value_or(index);
  while (graph.values[index].kind == GraphValue::Kind::Part)
    index = graph.values[index].whole;
  return index;
}

/// A part of a buffer that stands behind the update is not the old one.
bool GraphBuilder::isReplaced(unsigned declared, UpdateOp update,
                              const GraphValue &by) const {
  return llvm::all_of(llvm::enumerate(graph.values), [&](const auto &each) {
    const GraphValue &tensor = each.value();
    auto part = Value(tensor.value).getDefiningOp<PartOp>();
    return declaredOf(each.index()) != declared ||
           (part && updateBefore(part)) || isReplaced(tensor, by);
  });
}

/// A value that replaces a declared tensor or a part of it is made there if
/// nothing else needs the old one: the state of an optimizer, a buffer.
void GraphBuilder::findReplaced() {
  for (GraphValue &value : graph.values) {
    if (value.kind != GraphValue::Kind::Computed)
      continue;
    for (const GraphValue::Flow &flow : value.flows) {
      auto update = dyn_cast<UpdateOp>(flow.operand->getOwner());
      if (!value.intoState && update &&
          update->getBlock() == value.value.getParentBlock() &&
          isReplaced(flow.target, update, value))
        value.intoState = flow.target;
    }
  }
}

void GraphBuilder::finish() {
  for (GraphValue &value : graph.values)
    for (const ChunkUse &use : value.uses) {
      const Chunk &user = graph.chunks[use.chunk];
      if (user.kind != Chunk::Kind::Output)
        extendLiveRange(value, user.ops[use.op], user.point);
      else
        value.end = value.readEnd = nextPoint;
      value.firstRead = std::min(value.firstRead, user.point);
    }
  for (GraphValue &value : graph.values)
    if (auto declared = value.value.getDefiningOp<DeclareOp>();
        declared && declared.getKind() != TensorKind::Input)
      value.end = nextPoint;
  findPartsOfBuffers();
  findBegins();
  findBeginsOfGradients();
  for (GraphValue &value : graph.values)
    // It is made all the same, with the other results of its operation.
    if (value.kind == GraphValue::Kind::Computed && isDead(value.value))
      value.end = std::max(value.begin, graph.chunks[value.chunk].point) + 1;
  for (GraphValue &value : graph.values)
    if (value.intoState && staysInGroup(graph, value))
      value.intoState = std::nullopt; // it never becomes the state's
  for (Chunk &chunk : graph.chunks)
    chunk.prologue = isPrologue(chunk);
  extendPrologueInputs();
  endViews();
  extendViewed();
  findReplaced();
  graph.numPoints = nextPoint;
}

Graph GraphBuilder::build(ProgramOp program) {
  Block &body = program.getBody().front();
  program->walk<WalkOrder::PreOrder>(
      [&](Operation *op) { order.try_emplace(op, order.size()); });
  countPoints(body);
  // Outputs leave at the end, in the order of their declarations.
  llvm::SmallVector<uint32_t, 4> outputPoints;
  for (OutputOp output : body.getOps<OutputOp>()) {
    (void)output;
    outputPoints.push_back(nextPoint++);
  }
  // A state that a repeat updates is stored as the state is right after it.
  for (auto [repeat, points] : graph.repeatPoints)
    if (points.second + 1 == nextPoint) {
      ++nextPoint;
      break;
    }
  visit(body);
  for (auto [output, point] : llvm::zip(outputs, outputPoints)) {
    unsigned index = graph.chunks.size();
    Chunk &chunk = graph.chunks.emplace_back();
    chunk.kind = Chunk::Kind::Output;
    chunk.ops.push_back(output);
    chunk.point = point;
    graph.chunkOf[output] = index;
    use(output.getValue(), index, 0, 0);
  }
  finish();
  return std::move(graph);
}

} // namespace

LogicalResult shardc::checkFusionGroups(ProgramOp program) {
  WalkResult result = program->walk<WalkOrder::PreOrder>([](Operation *op) {
    bool isGrouped = op->hasAttr(kGroup);
    if (isCosted(op) && !isGrouped)
      op->emitError("has no fusion group; run shd-fusion-groups first");
    else if (isGrouped && !isa<CostOpInterface>(op))
      op->emitError("has a fusion group, but nothing to price");
    else
      return WalkResult::advance();
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

Graph shardc::buildGraph(ProgramOp program) {
  return GraphBuilder().build(program);
}
