//===- PartialSumChecks.cpp - `{+X}` that nothing can make ----------------===//
//
// An operation makes a partial sum over an axis where it sums an index that may
// be placed there, or is linear in operands that are partial sums over it;
// moving a value never makes one. One walk in program order finds for each
// value the axes over which it may be one, and where the program asks for more.
//
//===----------------------------------------------------------------------===//

#include "PartialSumChecks.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

class PartialSumChecker {
public:
  PartialSumChecker(SourceFiles &files, llvm::ArrayRef<unsigned> buffers,
                    const Mesh &mesh)
      : files(files), buffers(buffers), mesh(mesh) {}

  void visit(Block &block);

private:
  void visit(ShardingRuleOpInterface op);
  AxisSet summedAxes(ShardingRuleOpInterface op, const ShardingRule &rule);
  AxisSet read(OpOperand &use);
  AxisSet stored(Operation *op, ShardingAttr pin, AxisSet made, int64_t offset);
  llvm::SMRange rangeAt(Operation *op, int64_t offset);
  llvm::SMRange rangeOfUse(OpOperand &use);
  std::string namesOf(AxisSet axes) const;

  SourceFiles &files;
  llvm::ArrayRef<unsigned> buffers;
  const Mesh &mesh;
  /// Axes over which a value may be a partial sum.
  llvm::DenseMap<Value, AxisSet> sums;
};

} // namespace

llvm::SMRange PartialSumChecker::rangeAt(Operation *op, int64_t offset) {
  auto file = op->getAttrOfType<IntegerAttr>(kFile);
  if (!file || offset < 0 || size_t(file.getInt()) >= buffers.size())
    return {};
  const char *start = files.getSourceMgr()
                          .getMemoryBuffer(buffers[file.getInt()])
                          ->getBufferStart();
  llvm::SMLoc loc = llvm::SMLoc::getFromPointer(start + offset);
  return {loc, loc};
}

llvm::SMRange PartialSumChecker::rangeOfUse(OpOperand &use) {
  auto uses = use.getOwner()->getAttrOfType<DenseI64ArrayAttr>(kUses);
  unsigned number = use.getOperandNumber();
  return uses && number < unsigned(uses.size())
             ? rangeAt(use.getOwner(), uses[number])
             : llvm::SMRange();
}

std::string PartialSumChecker::namesOf(AxisSet axes) const {
  std::string names;
  for (AxisIndex axis = 0; axis < mesh.size(); ++axis)
    if (axes & axisBit(axis))
      names += (names.empty() ? "" : ", ") + mesh.axes[axis].name;
  return names;
}

/// The axes of partial sums with which an operand is read.
AxisSet PartialSumChecker::read(OpOperand &use) {
  AxisSet held = sums.lookup(use.get());
  ShardingAttr pin = getOperandPin(use.getOwner(), use.getOperandNumber());
  if (!pin)
    return held;
  AxisSet asked = toLayout(mesh, pin).partial;
  if (AxisSet missing = asked & ~held) {
    llvm::SMRange range = rangeOfUse(use);
    if (range.isValid()) {
      auto diag = files.error(range) << "this value is not a partial sum over "
                                     << namesOf(missing);
      if (Operation *maker = use.get().getDefiningOp())
        diag.attachNote(maker->getLoc())
            << "its defining operation sums no index that may be sharded over "
            << namesOf(missing) << ", and reads no partial sum over it";
    }
    held |= missing;
  }
  return pin.isOpen() ? held : asked;
}

/// The axes that an index which the operation sums may be placed on.
AxisSet PartialSumChecker::summedAxes(ShardingRuleOpInterface op,
                                      const ShardingRule &rule) {
  AxisSet all = 0;
  for (auto [f, factor] : llvm::enumerate(rule.factors)) {
    if (factor.kind != FactorKind::Reduction &&
        factor.kind != FactorKind::StatisticReduction)
      continue;
    AxisSet axes = ~AxisSet(0);
    for (auto [i, map] : llvm::enumerate(rule.operands)) {
      ShardingAttr pin = getOperandPin(op, i);
      if (!pin)
        continue;
      Layout layout = toLayout(mesh, pin);
      for (auto [d, factors] : llvm::enumerate(map))
        if (llvm::is_contained(factors, f) && !pin.getDims()[d].getIsOpen())
          axes &= axisSet(layout.dims[d]);
    }
    all |= axes;
  }
  return all;
}

/// The axes of the partial sums of a value that is made with `made` and stored
/// as its pin says.
AxisSet PartialSumChecker::stored(Operation *op, ShardingAttr pin, AxisSet made,
                                  int64_t offset) {
  if (!pin)
    return made;
  AxisSet asked = toLayout(mesh, pin).partial;
  AxisSet missing = asked & ~made;
  if (llvm::SMRange range = rangeAt(op, offset); missing && range.isValid()) {
    auto diag = files.error(range)
                << "'" << getResultName(onlyResult(op))
                << "' cannot be a partial sum over " << namesOf(missing);
    diag.attachNote()
        << "its defining operation sums no index that is placed there, and "
           "reads no partial sum over it";
  }
  return pin.isOpen() ? made | asked : asked;
}

void PartialSumChecker::visit(ShardingRuleOpInterface op) {
  ShardingRule rule = op.getShardingRule();
  llvm::SmallVector<AxisSet, 4> operands;
  for (OpOperand &use : op->getOpOperands())
    operands.push_back(read(use));
  AxisSet made = summedAxes(op, rule);
  for (uint32_t set : rule.linearSets) {
    AxisSet passed = ~AxisSet(0);
    for (auto [i, held] : llvm::enumerate(operands))
      if (set & (1u << i))
        passed &= held;
    made |= passed;
  }
  auto def = op->getAttrOfType<IntegerAttr>(kDef);
  sums[onlyResult(op)] =
      stored(op, getResultPin(onlyResult(op)), made, def ? def.getInt() : -1);
}

void PartialSumChecker::visit(Block &block) {
  for (Operation &op : block) {
    if (auto repeat = dyn_cast<RepeatOp>(op)) {
      // One sharding for all iterations, so that the initial value has it.
      for (auto [init, argument, result] : llvm::zip(
               repeat.getInits(), repeat.getCarried(), repeat.getResults())) {
        auto sum = sums.lookup(init);
        sums[result] = sum;
        sums[argument] = sum;
      }
      visit(repeat.getBody().front());
    } else if (auto ruled = dyn_cast<ShardingRuleOpInterface>(op)) {
      visit(ruled);
    } else if (auto output = dyn_cast<OutputOp>(op)) {
      read(output->getOpOperand(0));
    }
  }
}

void shardc::checkPartialSums(SourceFiles &files,
                              llvm::ArrayRef<unsigned> buffers,
                              const Mesh &mesh, ProgramOp program) {
  PartialSumChecker(files, buffers, mesh).visit(program.getBody().front());
}
