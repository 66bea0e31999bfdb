//===- WriteOrder.cpp - The order of all operations -----------*- C++ -*-===//

#include "WriteOrder.h"
#include "shardc/Dialect/Shd/IR/WorkOrder.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

/// Writes the order of a program.
class OrderWriter {
public:
  OrderWriter(ProgramOp program, const ListOrder &ranks,
              llvm::function_ref<Operation *(Operation *)> rankedAs)
      : ranks(ranks), rankedAs(rankedAs) {
    for (auto [number, op] : llvm::enumerate(orderedOperations(program)))
      numbers[op] = number;
    write(program.getBody().front());
  }

  std::vector<int64_t> order;

private:
  std::optional<unsigned> rankOf(Operation *op) const;
  void write(Block &block);

  const ListOrder &ranks;
  llvm::function_ref<Operation *(Operation *)> rankedAs;
  llvm::DenseMap<Operation *, int64_t> numbers;
};

/// The operations of one block.
class BlockWriter {
public:
  BlockWriter(Block &block, std::vector<std::optional<unsigned>> ranks)
      : before(dependencesIn(block)), ranks(std::move(ranks)),
        isWritten(before.size(), false) {
    writeDeclarations(block);
  }

  /// Positions in the new order.
  SmallVector<unsigned> run();

private:
  void writeDeclarations(Block &block);
  void write(unsigned position);
  void writeSinks();
  bool isDue(unsigned position) const;

  std::vector<SmallVector<unsigned, 4>> before;
  std::vector<std::optional<unsigned>> ranks;
  std::vector<bool> isWritten;
  SmallVector<unsigned> sinks, result;
};

} // namespace

void BlockWriter::write(unsigned position) {
  if (isWritten[position])
    return;
  isWritten[position] = true;
  for (unsigned earlier : before[position])
    write(earlier);
  result.push_back(position);
}

/// The first part of a buffer waits for the work that updates the buffer.
void BlockWriter::writeDeclarations(Block &block) {
  auto isThere = [&](unsigned earlier) { return isWritten[earlier]; };
  for (auto [position, op] : llvm::enumerate(block))
    if (isa<DeclareOp, ConstantOp>(op) ||
        (introducedBy(&op) && llvm::all_of(before[position], isThere)))
      write(position);
}

/// All the work that it depends on has been written.
bool BlockWriter::isDue(unsigned position) const {
  return llvm::all_of(before[position], [&](unsigned earlier) {
    return isWritten[earlier] || (!ranks[earlier] && isDue(earlier));
  });
}

void BlockWriter::writeSinks() {
  llvm::erase_if(sinks, [&](unsigned position) {
    if (!isDue(position))
      return false;
    write(position);
    return true;
  });
}

SmallVector<unsigned> BlockWriter::run() {
  // A program may have no statements.
  if (before.empty())
    return {};
  unsigned last = before.size() - 1;
  std::vector<bool> isRead(before.size(), false);
  for (unsigned position : llvm::reverse(llvm::seq(0u, last + 1)))
    if (ranks[position] || isRead[position])
      for (unsigned earlier : before[position])
        isRead[earlier] = true;
  SmallVector<unsigned> work;
  for (unsigned position = 0; position < last; ++position)
    if (ranks[position])
      work.push_back(position);
    else if (!isRead[position] && !isWritten[position])
      sinks.push_back(position);
  llvm::stable_sort(
      work, [&](unsigned a, unsigned b) { return *ranks[a] < *ranks[b]; });
  for (unsigned position : work) {
    write(position);
    writeSinks();
  }
  for (unsigned position = 0; position <= last; ++position)
    write(position);
  return std::move(result);
}

std::optional<unsigned> OrderWriter::rankOf(Operation *op) const {
  auto rank = ranks.find(rankedAs(op));
  return rank == ranks.end() ? std::nullopt : std::optional(rank->second);
}

void OrderWriter::write(Block &block) {
  SmallVector<Operation *> ops;
  std::vector<std::optional<unsigned>> ranks;
  for (Operation &op : block) {
    ops.push_back(&op);
    ranks.push_back(rankOf(&op));
  }
  for (unsigned position : BlockWriter(block, std::move(ranks)).run()) {
    Operation *op = ops[position];
    // Copies have no number.
    if (auto number = numbers.find(op); number != numbers.end())
      order.push_back(number->second);
    if (auto repeat = dyn_cast<RepeatOp>(op))
      write(repeat.getBody().front());
  }
}

std::vector<int64_t>
shd::writeOrder(ProgramOp program, const ListOrder &ranks,
                llvm::function_ref<Operation *(Operation *)> rankedAs) {
  return OrderWriter(program, ranks, rankedAs).order;
}
