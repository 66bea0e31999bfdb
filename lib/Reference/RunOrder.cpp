//===- RunOrder.cpp - When a device's operations run ----------------------===//

#include "RunOrder.h"
#include "shardc/Dialect/Shd/IR/Host.h"
#include "shardc/Dialect/Shd/IR/Views.h"

using namespace mlir;
using namespace shardc;

//===----------------------------------------------------------------------===//
// Forms of a tensor
//===----------------------------------------------------------------------===//

static bool isCollective(Operation *op) { return op && spmd::isCollective(op); }

OperandRange RunOrder::read(Operation *op) {
  return op->getOperands().take_front(
      isa<spmd::UpdateOp>(op) ? 1 : op->getNumOperands());
}

Value RunOrder::tensorOf(Value value) {
  while (isCollective(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

Value RunOrder::storedForm(Value tensor) {
  auto isStore = [](Operation *user) { return user->hasAttr(shd::kStore); };
  for (auto user = llvm::find_if(tensor.getUsers(), isStore);
       user != tensor.getUsers().end();
       user = llvm::find_if(tensor.getUsers(), isStore))
    tensor = onlyResult(*user);
  return tensor;
}

Value RunOrder::endOfSequence(Value value) {
  while (value.hasOneUse() && isCollective(*value.getUsers().begin()) &&
         !value.getDefiningOp()->hasAttr(shd::kCopy))
    value = onlyResult(*value.getUsers().begin());
  return value;
}

Value RunOrder::copyOf(Value stored) {
  for (Operation *user : stored.getUsers()) {
    if (!isCollective(user))
      continue;
    Value end = endOfSequence(onlyResult(user));
    if (end.getDefiningOp()->hasAttr(shd::kCopy))
      return end;
  }
  return {};
}

/// Scalars that every device knows, and what is computed within the operation
/// that takes it.
static bool takesMemory(Value tensor) {
  if (auto argument = dyn_cast<BlockArgument>(tensor))
    return argument.getArgNumber() != 0;
  return !isa<shd::ConstantOp, shd::StatisticOp>(tensor.getDefiningOp());
}

//===----------------------------------------------------------------------===//
// Points
//===----------------------------------------------------------------------===//

void RunOrder::addPoint(Block &block, RunPoint::Kind kind,
                        ArrayRef<Operation *> ops) {
  std::vector<RunPoint> &points = bodies[&block].points;
  for (Operation *op : ops)
    pointOf[op] = points.size();
  RunPoint &point = points.emplace_back();
  point.kind = kind;
  point.ops.assign(ops.begin(), ops.end());
}

void RunOrder::addOutputs(Block &block) {
  for (auto output : block.getOps<spmd::OutputOp>())
    addPoint(block, RunPoint::Kind::Operations, {output});
}

void RunOrder::arrange(Block &block) {
  bodies.try_emplace(&block);
  llvm::DenseMap<int64_t, Operation *> lastOf;
  llvm::DenseMap<int64_t, SmallVector<Operation *, 4>> group;
  for (Operation &op : block)
    if (std::optional<int64_t> number = shd::fusionGroupOf(&op))
      lastOf[*number] = &op;
  for (Operation &op : block) {
    if (auto repeat = dyn_cast<shd::RepeatOp>(op)) {
      addPoint(block, RunPoint::Kind::Entry, {repeat});
      addPoint(block, RunPoint::Kind::Exit, {repeat});
      arrange(repeat.getBody().front());
    } else if (std::optional<int64_t> number = shd::fusionGroupOf(&op)) {
      group[*number].push_back(&op);
      if (lastOf.lookup(*number) == &op)
        addPoint(block, RunPoint::Kind::Operations, group[*number]);
    } else if (isa<shd::ShardingRuleOpInterface, spmd::SendOp, spmd::ReceiveOp,
                   spmd::SumStagesOp>(op)) {
      addPoint(block, RunPoint::Kind::Operations, {&op});
    }
  }
  if (isa<spmd::ProgramOp>(block.getParentOp()))
    addOutputs(block);
}

void RunOrder::addIssue(const EarlyIssue &issue) {
  Block *home = issue.collective->getBlock();
  if (issue.blocks) {
    // In program order compute waits where it reads; but what one iteration
    // issues for the next is there before the first one begins.
    if (issue.block != home)
      bodies[home].first.push_back(issue);
    return;
  }
  early.insert(issue.collective);
  RunBody &body = bodies[issue.block];
  if (!issue.after) {
    body.before.push_back(issue);
    return;
  }
  RunPoint &point = body.points[pointOf.lookup(issue.after)];
  (issue.during ? point.during : point.after).push_back(issue);
}

//===----------------------------------------------------------------------===//
// How long tensors are needed
//===----------------------------------------------------------------------===//

void RunOrder::extend(Value tensor, unsigned point) {
  auto [it, isNew] = reads.try_emplace(tensor, point);
  it->second = std::max(it->second, point);
}

/// A repeat needs what its body reads until it ends, what it begins with only
/// then.
unsigned RunOrder::pointOfRead(Value tensor, Operation *reader,
                               bool atEntry) const {
  Block *home = tensor.getParentBlock();
  Operation *at = home->findAncestorOpInBlock(*reader);
  if (isa<shd::YieldOp>(at))
    return body(*home).points.size();
  unsigned point = pointOf.lookup(at);
  return at == reader && atEntry ? point - 1 : point;
}

/// Reading a view needs the tensor whose buffer it may lie in.
void RunOrder::read(Value tensor, Operation *reader, bool atEntry) {
  if (!takesMemory(tensor))
    return;
  extend(tensor, pointOfRead(tensor, reader, atEntry));
  if (Value viewed = viewedBy(tensor))
    viewReads[viewed] =
        std::max(viewReads[viewed], pointOfRead(viewed, reader, atEntry));
  Block *home = tensor.getParentBlock();
  Operation *at = home->findAncestorOpInBlock(*reader);
  if (at == reader || isa<shd::YieldOp>(at))
    return;
  auto &brought = bodies[home].points[pointOf.lookup(at) - 1].brought;
  if (!llvm::is_contained(brought, tensor))
    brought.push_back(tensor);
}

bool RunOrder::staysOnChip(Value tensor) const {
  if (inlined.contains(tensor))
    return true;
  Attribute group = tensor.getDefiningOp()->getAttr(shd::kGroup);
  return group && !tensor.use_empty() &&
         llvm::all_of(tensor.getUsers(), [&](Operation *user) {
           return isa<shd::StatisticOp>(user) ||
                  user->getAttr(shd::kGroup) == group;
         });
}

/// Who reads the value, as it is or in another form.
static void addReaders(Value value, SmallVectorImpl<Operation *> &readers) {
  for (Operation *user : value.getUsers())
    if (spmd::isCollective(user))
      addReaders(onlyResult(user), readers);
    else if (!isa<shd::StatisticOp>(user))
      readers.push_back(user);
}

Value RunOrder::viewedBy(Value tensor) {
  Value viewed = tensor;
  for (Operation *maker = viewed.getDefiningOp(); maker;
       maker = viewed.getDefiningOp()) {
    OpOperand *operand = shd::viewedOperand(maker);
    if (!operand)
      break;
    viewed = tensorOf(operand->get());
  }
  if (viewed == tensor || !shd::keepsViews(viewed))
    return {};
  SmallVector<Operation *> readers;
  addReaders(tensor, readers);
  bool isWritten = llvm::any_of(readers, llvm::IsaPred<spmd::UpdateOp>);
  return isWritten ? Value() : viewed; // it lies in what it is written into
}

bool RunOrder::staysInGroup(Value tensor) const {
  std::optional<int64_t> group = shd::fusionGroupOf(tensor.getDefiningOp());
  SmallVector<Operation *> readers;
  addReaders(tensor, readers);
  return group && !readers.empty() &&
         llvm::all_of(readers, [&](Operation *reader) {
           return shd::fusionGroupOf(reader) == group;
         });
}

static bool isElementwise(Operation *op) {
  auto cost = dyn_cast<shd::CostOpInterface>(op);
  return cost && cost.getFusionKind() == shd::FusionKind::Elementwise;
}

/// Elementwise, or a view that attention reads through.
static bool mayBePrologue(Operation *op) {
  auto cost = dyn_cast<shd::CostOpInterface>(op);
  return isElementwise(op) ||
         (cost && cost.getFusionKind() == shd::FusionKind::Free &&
          op->hasAttr(shd::kGroup));
}

static bool readsPrologues(Operation *op) {
  auto cost = dyn_cast<shd::CostOpInterface>(op);
  return cost && cost.readsPrologues();
}

/// The operations that alone read the result of a point of elementwise
/// operations: they may compute it themselves, from its inputs.
static SmallVector<Operation *> prologueReaders(const RunPoint &point) {
  SmallVector<Operation *> readers;
  unsigned results = 0;
  for (Operation *op : point.ops) {
    if (!mayBePrologue(op))
      return {};
    for (Value result : op->getResults()) {
      SmallVector<Operation *> outside;
      addReaders(result, outside);
      llvm::erase_if(outside, [&](Operation *reader) {
        return llvm::is_contained(point.ops, reader);
      });
      results += !outside.empty();
      for (Operation *reader : outside) {
        if (!readsPrologues(reader) || reader->getBlock() != op->getBlock())
          return {};
        readers.push_back(reader);
      }
    }
  }
  return results == 1 ? readers : SmallVector<Operation *>();
}

void RunOrder::findPrologues(Block &block) {
  for (const RunPoint &point : bodies[&block].points) {
    SmallVector<Operation *> readers = prologueReaders(point);
    if (readers.empty())
      continue;
    Operation *last = *llvm::max_element(readers, [&](auto *a, auto *b) {
      return pointOf.lookup(a) < pointOf.lookup(b);
    });
    Attribute group = point.ops.front()->getAttr(shd::kGroup);
    bool isInlined = true;
    for (Operation *op : point.ops) {
      inputsUntil[op] = last;
      for (Value operand : op->getOperands())
        if (!llvm::is_contained(point.ops, operand.getDefiningOp()))
          read(tensorOf(operand), last, /*atEntry=*/false);
      for (Operation *user : op->getUsers()) {
        auto groups = user->getAttrOfType<ArrayAttr>(shd::kPrologues);
        isInlined &= isa<shd::StatisticOp>(user) ||
                     llvm::is_contained(point.ops, user) ||
                     (groups && llvm::is_contained(groups, group));
      }
    }
    if (isInlined)
      for (Operation *op : point.ops)
        inlined.insert(op->result_begin(), op->result_end());
  }
}

/// The buffer of a gradient is there when the repeat begins that updates it.
void RunOrder::placeGradient(spmd::UpdateOp update) {
  spmd::ParameterOp parameter = update.getParameter();
  Block *home = parameter->getBlock();
  if (parameter.getKind() != shd::TensorKind::Gradient ||
      update->getBlock() == home)
    return;
  auto repeat = cast<shd::RepeatOp>(home->findAncestorOpInBlock(*update));
  bodies[home].points[pointOf.lookup(repeat) - 1].gradients.push_back(
      parameter);
}

/// A state is updated as soon as its new value is there.
void RunOrder::placeUpdate(spmd::UpdateOp update) {
  Value tensor = tensorOf(update.getValue());
  Operation *maker = tensor.getDefiningOp();
  Block *block = update->getBlock();
  bool isHere = tensor.getParentBlock() == block;
  // A transfer to the host ends before the iteration does.
  if (isHere && shd::isOffloadedSave(update.getState()))
    extend(tensor, bodies[block].points.size());
  if (isHere && isa_and_nonnull<shd::ShardingRuleOpInterface>(maker)) {
    updates[tensor].push_back(update);
    inputsUntil[update] = maker;
    return extend(tensor, pointOf.lookup(maker));
  }
  unsigned point = isHere && isa_and_nonnull<shd::RepeatOp>(maker)
                       ? pointOf.lookup(maker) + 1
                       : 0;
  if (point == bodies[block].points.size())
    addPoint(*block, RunPoint::Kind::Operations, {});
  bodies[block].points[point].updates.push_back(update);
  pointOf[update] = point;
  read(tensor, update, false);
}

void RunOrder::findReads(Block &block) {
  for (Operation &op : block) {
    if (spmd::isCollective(&op) || isa<shd::StatisticOp>(op))
      continue;
    if (auto update = dyn_cast<spmd::UpdateOp>(op)) {
      placeGradient(update);
      placeUpdate(update);
      continue;
    }
    if (auto repeat = dyn_cast<shd::RepeatOp>(op))
      findReads(repeat.getBody().front());
    for (Value operand : op.getOperands()) {
      read(tensorOf(operand), &op, isa<shd::RepeatOp>(op));
      if (!isa<spmd::OutputOp>(op))
        continue;
      leaves.insert(tensorOf(operand));
      if (Value viewed = viewedBy(tensorOf(operand)))
        viewReads[viewed] = UINT_MAX; // stays, but a copy of it does not
    }
  }
  // Results that nothing reads are computed all the same.
  for (auto [number, point] : llvm::enumerate(bodies[&block].points))
    if (point.kind == RunPoint::Kind::Operations)
      for (Operation *op : point.ops)
        for (Value result : op->getResults()) {
          if (!reads.contains(result))
            bodies[&block].unread.push_back(result);
          extend(result, number);
        }
  findPrologues(block);
}

static bool isOfBuffer(spmd::ParameterOp parameter) {
  return parameter && shd::isBuffer(parameter.getKind());
}

/// Buffers stay: something may write them after the last reader.
void RunOrder::placeLast() {
  program->walk<WalkOrder::PreOrder>([&](Operation *op) {
    auto place = [&](Value tensor) {
      auto it = reads.find(tensor);
      if (it == reads.end() || leaves.contains(tensor) ||
          isOfBuffer(tensor.getDefiningOp<spmd::ParameterOp>()))
        return;
      RunBody &body = bodies[tensor.getParentBlock()];
      unsigned end = std::max(it->second, viewReads.lookup(tensor));
      if (it->second < end)
        body.points[it->second].onlyViewed.push_back(tensor);
      if (end < body.points.size())
        body.points[end].last.push_back(tensor);
      else
        body.last.push_back(tensor);
    };
    llvm::for_each(op->getResults(), place);
    for (Region &region : op->getRegions())
      llvm::for_each(region.getArguments(), place);
  });
}

ArrayRef<spmd::UpdateOp> RunOrder::updatesWith(Value tensor) const {
  auto it = updates.find(tensor);
  return it == updates.end() ? ArrayRef<spmd::UpdateOp>() : it->second;
}

//===----------------------------------------------------------------------===//
// Tensors that are updated
//===----------------------------------------------------------------------===//

/// The part of the tensor itself that a part of a part is taken of.
static shd::PartOp outermostPart(shd::PartOp part) {
  while (auto outer = part.getSource().getDefiningOp<shd::PartOp>())
    part = outer;
  return part;
}

/// The update of the buffer that stands before a part of it, or null.
static spmd::UpdateOp earlierUpdate(shd::PartOp part) {
  part = outermostPart(part);
  auto parameter = part.getSource().getDefiningOp<spmd::ParameterOp>();
  if (!isOfBuffer(parameter))
    return {};
  spmd::UpdateOp last;
  for (OpOperand &use : parameter->getUses())
    if (auto update = dyn_cast<spmd::UpdateOp>(use.getOwner());
        update && use == update.getStateMutable() &&
        shd::standsBefore(update, part) &&
        (!last || shd::standsBefore(last, update)))
      last = update;
  return last;
}

SmallVector<shd::PartOp, 1> RunOrder::partsBefore(spmd::UpdateOp update) {
  SmallVector<shd::PartOp, 1> parts;
  for (Operation *user : update.getState().getUsers())
    if (auto part = dyn_cast<shd::PartOp>(user);
        part && part->getBlock()->findAncestorOpInBlock(*update) &&
        shd::standsBefore(part, update) && !earlierUpdate(part))
      parts.push_back(part);
  return parts;
}

spmd::UpdateOp RunOrder::updateOf(shd::PartOp part) {
  spmd::UpdateOp update = earlierUpdate(part);
  return update && update->getBlock()->findAncestorOpInBlock(*part)
             ? update
             : spmd::UpdateOp();
}

/// The point at which an operation runs: its own, or that of an operation
/// before the end of its group that needs what it makes.
unsigned RunOrder::firstPoint(Operation *op) const {
  unsigned first = pointOf.lookup(op);
  SmallVector<Operation *> readers;
  for (Value result : op->getResults())
    addReaders(result, readers);
  for (Operation *reader : readers) {
    Operation *at = op->getBlock()->findAncestorOpInBlock(*reader);
    if (isa<shd::YieldOp, spmd::UpdateOp>(at))
      continue;
    if (isa<shd::RepeatOp>(at))
      first = std::min(first, pointOf.lookup(at) - 1);
    else if (isa<shd::ShardingRuleOpInterface>(at))
      first = std::min(first, firstPoint(at));
  }
  return first;
}

/// True if `reader` has read the tensor, or the part of it that `part` takes,
/// when `maker` runs.
bool RunOrder::isReadBefore(Operation *reader, Operation *part,
                            Operation *maker) const {
  Block *common = part->getBlock();
  while (!common->findAncestorOpInBlock(*maker))
    common = common->getParentOp()->getBlock();
  Operation *at = common->findAncestorOpInBlock(*reader);
  Operation *made = common->findAncestorOpInBlock(*maker);
  if (isa<shd::YieldOp, spmd::UpdateOp>(at))
    return false;
  unsigned read = pointOf.lookup(inputsEndWith(at));
  if (at == reader && isa<shd::RepeatOp>(at))
    --read;
  return read < (made == maker ? firstPoint(maker) : pointOf.lookup(made));
}

bool RunOrder::replaces(spmd::UpdateOp update, Value tensor) const {
  Operation *maker = tensor.getDefiningOp();
  std::optional<int64_t> group = shd::fusionGroupOf(maker);
  SmallVector<Value> views = {update.getState()};
  while (!views.empty()) {
    Value view = views.pop_back_val();
    Operation *part = view.getDefiningOp();
    SmallVector<Operation *> readers;
    addReaders(view, readers);
    for (Operation *reader : readers) {
      if (auto inner = dyn_cast<shd::PartOp>(reader)) {
        if (!earlierUpdate(inner))
          views.push_back(inner);
        continue;
      }
      if (auto other = dyn_cast<spmd::UpdateOp>(reader);
          other && other.getState() == view)
        continue;
      for (Value result : reader->getResults())
        if (viewedBy(result))
          views.push_back(result);
      OpOperand *inPlace = shd::inPlaceOperand(reader);
      bool isInKernel =
          (reader == maker && inPlace && tensorOf(inPlace->get()) == view) ||
          (group && shd::fusionGroupOf(reader) == group &&
           isElementwise(reader) && reader->getBlock() == part->getBlock());
      if (!isInKernel && !isReadBefore(reader, part, maker))
        return false;
    }
  }
  return true;
}

RunOrder::RunOrder(spmd::ProgramOp program, ArrayRef<EarlyIssue> issues)
    : program(program) {
  Block &block = program.getBody().front();
  arrange(block);
  findReads(block);
  placeLast();
  llvm::for_each(issues, [&](const EarlyIssue &issue) { addIssue(issue); });
}
