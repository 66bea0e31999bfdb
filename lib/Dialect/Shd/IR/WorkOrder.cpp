//===- WorkOrder.cpp - The order in which a program runs ------------------===//

#include "shardc/Dialect/Shd/IR/WorkOrder.h"
#include "shardc/Dialect/Shd/IR/Views.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {
/// The accesses to one updated tensor so far, by position.
struct Accesses {
  std::optional<unsigned> update;
  SmallVector<unsigned, 4> reads;
};
} // namespace

/// The value whose buffer a value may lie in, or the value itself.
static Value viewedValue(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    OpOperand *viewed = viewedOperand(op);
    if (!viewed)
      break;
    value = viewed->get();
  }
  return value;
}

std::vector<SmallVector<unsigned, 4>> shd::dependencesIn(Block &block) {
  llvm::DenseMap<Operation *, unsigned> position;
  std::vector<SmallVector<unsigned, 4>> result;
  llvm::MapVector<DeclareOp, Accesses> accesses;
  // Looked up once: a declaration's uses may be many.
  llvm::DenseMap<DeclareOp, bool> isUpdated;
  // The tensor that some operation updates of which the value is one, a part or
  // a view.
  auto updatedTensor = [&](Value value) {
    DeclareOp declare = declarationOf(viewedValue(value));
    if (!declare)
      return DeclareOp();
    auto [known, isNew] = isUpdated.try_emplace(declare, false);
    if (isNew)
      known->second = bool(updateOf(declare));
    return known->second ? declare : DeclareOp();
  };
  for (Operation &op : block) {
    unsigned here = result.size();
    position[&op] = here;
    SmallVector<unsigned, 4> &before = result.emplace_back();
    llvm::MapVector<DeclareOp, bool> touched;
    op.walk([&](Operation *inner) {
      auto update = dyn_cast<UpdateOp>(inner);
      for (OpOperand &use : inner->getOpOperands()) {
        Operation *def = use.get().getDefiningOp();
        Operation *around = def ? block.findAncestorOpInBlock(*def) : nullptr;
        if (around && around != &op)
          before.push_back(position.lookup(around));
        if (DeclareOp tensor = updatedTensor(use.get()))
          touched[tensor] |= update && use == update.getStateMutable();
      }
    });
    for (auto [tensor, updates] : touched) {
      Accesses &known = accesses[tensor];
      if (known.update)
        before.push_back(*known.update);
      if (updates)
        before.append(known.reads);
      if (updates)
        known = {here, {}};
      else
        known.reads.push_back(here);
    }
    llvm::sort(before);
    before.erase(llvm::unique(before), before.end());
  }
  return result;
}

static bool isCopy(Operation *op) {
  return isa<ReshardOp>(op) && op->hasAttr(kCopy);
}

std::vector<Operation *> shd::orderedOperations(ProgramOp program) {
  std::vector<Operation *> result;
  program.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op != program && !isCopy(op))
      result.push_back(op);
  });
  return result;
}

/// Copies of a block that stand before an operation: of what it or one in it
/// reads.
static SmallVector<Operation *, 2> copiesBefore(Operation *op) {
  SmallVector<Operation *, 2> copies;
  auto add = [&](Operation *copy) {
    if (copy && isCopy(copy) && copy->getBlock() == op->getBlock())
      copies.push_back(copy);
  };
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands()) {
      add(operand.getDefiningOp());
      for (Operation *user : operand.getUsers())
        add(user);
    }
  });
  return copies;
}

/// Moves the operations of a block to its end, one after the other by rank.
static void sortBlock(Block &block,
                      const llvm::DenseMap<Operation *, unsigned> &ranks) {
  SmallVector<Operation *> sorted;
  llvm::SetVector<Operation *> copies;
  for (Operation &op : block)
    if (isCopy(&op))
      copies.insert(&op);
    else
      sorted.push_back(&op);
  llvm::sort(sorted, [&](Operation *a, Operation *b) {
    return ranks.lookup(a) < ranks.lookup(b);
  });
  for (Operation *op : sorted) {
    op->moveBefore(&block, block.end());
    for (Operation *copy : copiesBefore(op))
      if (copies.remove(copy))
        copy->moveBefore(op);
  }
  // Copies that nothing reads.
  for (Operation *copy : copies)
    if (Operation *made = copy->getOperand(0).getDefiningOp();
        made && made->getBlock() == &block)
      copy->moveAfter(made);
}

/// True if each operation of a block stands behind those that it depends on,
/// and all before the terminator.
static bool respects(Block &block,
                     const llvm::DenseMap<Operation *, unsigned> &ranks) {
  SmallVector<Operation *> operations =
      llvm::map_to_vector(block, [](Operation &op) { return &op; });
  std::vector<SmallVector<unsigned, 4>> before = dependencesIn(block);
  if (!operations.empty())
    llvm::append_range(before.back(),
                       llvm::seq<unsigned>(0, operations.size() - 1));
  for (auto [op, earlier] : llvm::zip_equal(operations, before))
    for (unsigned number : earlier)
      if (!isCopy(op) && !isCopy(operations[number]) &&
          ranks.lookup(operations[number]) >= ranks.lookup(op))
        return false;
  return true;
}

static llvm::DenseMap<Operation *, unsigned>
ranksOf(ArrayRef<Operation *> operations, ArrayRef<int64_t> order) {
  llvm::DenseMap<Operation *, unsigned> ranks;
  for (auto [rank, number] : llvm::enumerate(order))
    if (number >= 0 && size_t(number) < operations.size())
      ranks[operations[number]] = rank;
  return ranks;
}

void shd::moveInOrder(ProgramOp program, ArrayRef<int64_t> order) {
  if (order.empty())
    return;
  llvm::DenseMap<Operation *, unsigned> ranks =
      ranksOf(orderedOperations(program), order);
  sortBlock(program.getBody().front(), ranks);
  program.walk(
      [&](RepeatOp repeat) { sortBlock(repeat.getBody().front(), ranks); });
}

void shd::moveBack(ProgramOp program, ArrayRef<int64_t> order) {
  if (order.empty())
    return;
  std::vector<int64_t> places(order.size()), chosen;
  for (auto [place, number] : llvm::enumerate(order))
    places[number] = place;
  moveInOrder(program, places);
  for (int64_t place : workOrderOf(program))
    chosen.push_back(order[place]);
  if (chosen.empty())
    chosen = order;
  program->setAttr(kWorkOrder,
                   DenseI64ArrayAttr::get(program.getContext(), chosen));
}

ArrayRef<int64_t> shd::workOrderOf(ProgramOp program) {
  auto order = program->getAttrOfType<DenseI64ArrayAttr>(kWorkOrder);
  return order ? order.asArrayRef() : ArrayRef<int64_t>();
}

bool shd::isWorkOrder(ProgramOp program, ArrayRef<int64_t> order) {
  std::vector<Operation *> operations = orderedOperations(program);
  llvm::DenseMap<Operation *, unsigned> ranks = ranksOf(operations, order);
  if (order.size() != operations.size() || ranks.size() != order.size() ||
      !respects(program.getBody().front(), ranks))
    return false;
  return !program
              .walk([&](RepeatOp repeat) {
                return respects(repeat.getBody().front(), ranks)
                           ? WalkResult::advance()
                           : WalkResult::interrupt();
              })
              .wasInterrupted();
}
