//===- Apply.cpp - A plan as closed pins -----------------------*- C++ -*-===//
//
// Writes an assignment of the network into the program: every value and every
// use gets a closed pin, and values that are resharded once for several users
// get a copy.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "shardc/Optimizer/Names.h"
#include "shardc/Optimizer/Network.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

class PlanWriter {
public:
  PlanWriter(PlanningContext &context, const PlanNetwork &network,
             ArrayRef<solver::Label> assignment)
      : context(context), network(network), assignment(assignment) {}

  void write() {
    for (unsigned i = 0; i < network.graph.chunks.size(); ++i)
      pinChunk(i);
    for (unsigned i = 0; i < network.graph.values.size(); ++i)
      pinValue(i);
    for (unsigned i = 0; i < network.graph.values.size(); ++i)
      writeCopy(i);
  }

private:
  ShardingAttr sharding(const Layout &layout) {
    return toSharding(network.graph.values.front().value.getContext(),
                      context.mesh(), layout);
  }
  const StoredLabel &labelOf(unsigned value) const {
    const ValueVariable &variable = network.values[value];
    return variable.labels[assignment[variable.variable]];
  }
  Layout storedLayout(unsigned value) const {
    return network.values[value].layouts[labelOf(value).layout];
  }
  void pinChunk(unsigned index);
  void pinValue(unsigned index);
  void writeCopy(unsigned index);

  PlanningContext &context;
  const PlanNetwork &network;
  ArrayRef<solver::Label> assignment;
};

/// Pins what the chunk's operations consume, and what they make for each other.
void PlanWriter::pinChunk(unsigned index) {
  const Chunk &chunk = network.graph.chunks[index];
  const ChunkDomain &domain = network.domains[index];
  solver::Label label = assignment[network.chunkVariable[index]];
  for (auto [number, op] : llvm::enumerate(chunk.ops)) {
    for (auto [operand, layouts] : llvm::enumerate(domain.operands[number]))
      if (!layouts.empty())
        setOperandPin(op, operand, sharding(layouts[label]));
    for (OpResult result : op->getResults())
      setMade(
          result,
          sharding(domain.results[number][result.getResultNumber()][label]));
  }
}

/// Pins how a value is stored, and where it flows into a state, how that is.
void PlanWriter::pinValue(unsigned index) {
  const GraphValue &value = network.graph.values[index];
  Layout layout = storedLayout(index);
  ShardingAttr stored = sharding(layout);
  for (const GraphValue::Flow &flow : value.flows)
    if (isa<UpdateOp>(flow.operand->getOwner()))
      setOperandPin(
          flow.operand->getOwner(), flow.operand->getOperandNumber(),
          sharding(partLayout(storedLayout(flow.target), layout.rank())));
  if (value.kind == GraphValue::Kind::Carried) {
    auto argument = cast<BlockArgument>(value.value);
    Operation *repeat = argument.getOwner()->getParentOp();
    setOperandPin(repeat, argument.getArgNumber() - 1, stored);
    setOperandPin(argument.getOwner()->getTerminator(),
                  argument.getArgNumber() - 1, stored);
  } else if (value.kind != GraphValue::Kind::Result) {
    setResultPin(value.value, stored);
  }
}

void PlanWriter::writeCopy(unsigned index) {
  const ValueVariable &variable = network.values[index];
  if (variable.copies.empty())
    return;
  solver::Label label = assignment[variable.copyVariable];
  if (label == 0)
    return;
  // Also without readers: the network has paid for it.
  Operation *op = insertCopy(network.graph.values[index].value,
                             sharding(storedLayout(index)),
                             sharding(variable.copies[label - 1]));
  for (const ReadVariable &read : variable.reads)
    for (auto [operand, fromCopy] : llvm::zip_equal(
             read.operands, read.fromCopy[assignment[read.variable]]))
      if (fromCopy)
        operand->set(onlyResult(op));
}

} // namespace

/// The first operation of the value's own block that reads it (or contains one
/// that does).
static Operation *firstReader(Value value) {
  Block *block = value.getParentBlock();
  Operation *first = nullptr;
  for (Operation *user : value.getUsers()) {
    Operation *at = block->findAncestorOpInBlock(*user);
    if (at && (!first || at->isBeforeInBlock(first)))
      first = at;
  }
  return first;
}

Operation *shardc::insertCopy(Value value, ShardingAttr stored,
                              ShardingAttr layout) {
  OpBuilder builder(firstReader(value));
  SmallVector<Attribute> names;
  for (const std::string &name : indexNames(value))
    names.push_back(builder.getStringAttr(name));
  Operation *def = value.getDefiningOp();
  auto list = builder.getArrayAttr(names);
  auto copy = ReshardOp::create(
      builder, def ? def->getLoc() : value.getLoc(), value.getType(), value,
      IndexingAttr::get(builder.getContext(), {list}, {list}));
  copy->setAttr(kCopy, builder.getUnitAttr());
  copy->setAttr(kName, builder.getStringAttr(valueName(value)));
  setOperandPin(copy, 0, stored);
  setResultPin(copy.getResult(), layout);
  return copy;
}

void shardc::applyAssignment(PlanningContext &context,
                             const PlanNetwork &network,
                             ArrayRef<solver::Label> assignment) {
  if (!network.graph.values.empty())
    PlanWriter(context, network, assignment).write();
}

void shardc::removeCopies(ProgramOp program) {
  program.walk([](ReshardOp op) {
    if (!op->hasAttr(kCopy))
      return;
    op.getResult().replaceAllUsesWith(op.getInput());
    op.erase();
  });
}
