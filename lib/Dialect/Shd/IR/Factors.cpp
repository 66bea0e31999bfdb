//===- Factors.cpp - Factors of an operation's dimensions -----------------===//

#include "Factors.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

static StringRef noOwner(StringRef, unsigned) { return ""; }

void FactorTable::collectExtents(ShardingRuleOpInterface op, OwnerOf ownerOf) {
  unsigned tensor = 0;
  auto collect = [&](ArrayAttr indices, Type type) {
    for (auto [name, extent] :
         llvm::zip_equal(indices.getAsValueRange<StringAttr>(),
                         cast<RankedTensorType>(type).getShape()))
      (ownerOf(name, tensor).empty() ? extents : secondExtents)
          .try_emplace(name, extent);
    ++tensor;
  };
  IndexingAttr indexing = op.getIndexing();
  for (auto [i, indices] : llvm::enumerate(indexing.getOperands()))
    collect(indices, op->getOperand(i).getType());
  for (auto [i, indices] : llvm::enumerate(indexing.getResults()))
    collect(indices, op->getResult(i).getType());
}

unsigned FactorTable::intern(StringRef name, StringRef of) {
  for (auto [number, entry] : llvm::enumerate(factors))
    if (entry.name == name && entry.of == of)
      return number;
  factors.push_back(
      {name, (of.empty() ? extents : secondExtents).lookup(name), of});
  return factors.size() - 1;
}

unsigned FactorTable::find(StringRef name) const {
  for (auto [number, entry] : llvm::enumerate(factors))
    if (entry.name == name && entry.of.empty())
      return number;
  llvm_unreachable("the operation lacks an index");
}

void FactorTable::build(IndexingAttr indexing, FactorsOf factorsOf) {
  unsigned tensor = 0;
  auto add = [&](ArrayAttr indices) {
    TensorFactors dims;
    for (StringRef name : indices.getAsValueRange<StringAttr>())
      dims.push_back(factorsOf(name, tensor));
    ++tensor;
    return dims;
  };
  for (ArrayAttr indices : indexing.getOperands())
    operandFactors.push_back(add(indices));
  for (ArrayAttr indices : indexing.getResults())
    resultFactors.push_back(add(indices));
}

FactorTable FactorTable::of(ShardingRuleOpInterface op) {
  FactorTable table;
  table.collectExtents(op, noOwner);
  table.build(op.getIndexing(), [&](StringRef name, unsigned) {
    return DimFactors{table.intern(name)};
  });
  return table;
}

FactorTable FactorTable::withParts(ShardingRuleOpInterface op, StringRef whole,
                                   ArrayAttr parts) {
  FactorTable table;
  table.collectExtents(op, noOwner);
  table.build(op.getIndexing(), [&](StringRef name, unsigned) {
    if (name != whole)
      return DimFactors{table.intern(name)};
    DimFactors factors;
    for (StringRef part : parts.getAsValueRange<StringAttr>())
      factors.push_back(table.intern(part));
    return factors;
  });
  return table;
}

FactorTable FactorTable::withSecond(ShardingRuleOpInterface op,
                                    OwnerOf ownerOf) {
  FactorTable table;
  table.collectExtents(op, ownerOf);
  table.build(op.getIndexing(), [&](StringRef name, unsigned tensor) {
    return DimFactors{table.intern(name, ownerOf(name, tensor))};
  });
  return table;
}

static StringRef ownerOfIndex(AttentionOpInterface op, StringRef name,
                              unsigned tensor) {
  bool isOfValues = name == op.getHead() && op.hasValues(tensor);
  return isOfValues ? StringRef(kOfValues) : "";
}

FactorTable FactorTable::withValues(AttentionOpInterface op) {
  return withSecond(cast<ShardingRuleOpInterface>(op.getOperation()),
                    [&](StringRef name, unsigned tensor) {
                      return ::ownerOfIndex(op, name, tensor);
                    });
}

SmallVector<StringRef, 4> shd::indicesOf(ShardingRuleOpInterface op,
                                         unsigned tensor) {
  unsigned operands = op->getNumOperands();
  return tensor < operands
             ? op.getIndexing().getOperandIndices(tensor)
             : op.getIndexing().getResultIndices(tensor - operands);
}

ExpertIndices ExpertIndices::of(ExpertsOpInterface op) {
  auto indexed = cast<ShardingRuleOpInterface>(op.getOperation());
  Names picked = indicesOf(indexed, kPicksOperand);
  Names slots = indicesOf(indexed, op.getSlotsTensor());
  ExpertIndices indices;
  for (StringRef name : picked)
    if (name != op.getExperts())
      (llvm::is_contained(slots, name) ? indices.groups : indices.tokens)
          .push_back(name);
  for (StringRef name : indicesOf(indexed, op.getTokensTensor()))
    if (!llvm::is_contained(picked, name))
      indices.features.push_back(name);
  return indices;
}

static StringRef ownerOfIndex(const ExpertIndices &indices, StringRef name,
                              unsigned tensor) {
  bool isOfPicks =
      tensor == kPicksOperand && !llvm::is_contained(indices.groups, name);
  return isOfPicks ? StringRef(kOfPicks) : "";
}

FactorTable FactorTable::withPicks(ExpertsOpInterface op) {
  ExpertIndices indices = ExpertIndices::of(op);
  return withSecond(cast<ShardingRuleOpInterface>(op.getOperation()),
                    [&](StringRef name, unsigned tensor) {
                      return ::ownerOfIndex(indices, name, tensor);
                    });
}

StringRef shd::ownerOfIndex(Operation *op, StringRef name, unsigned tensor) {
  if (auto attention = dyn_cast<AttentionOpInterface>(op))
    return ::ownerOfIndex(attention, name, tensor);
  if (auto experts = dyn_cast<ExpertsOpInterface>(op))
    return ::ownerOfIndex(ExpertIndices::of(experts), name, tensor);
  return "";
}

ExpertExtents ExpertExtents::of(ExpertsOpInterface op) {
  auto indexed = cast<ShardingRuleOpInterface>(op.getOperation());
  ExpertIndices indices = ExpertIndices::of(op);
  ExpertExtents extents;
  for (auto [name, extent] : llvm::zip_equal(
           indicesOf(indexed, kPicksOperand),
           cast<RankedTensorType>(op.getPicks().getType()).getShape()))
    (name == op.getExperts()                    ? extents.experts
     : llvm::is_contained(indices.groups, name) ? extents.groups
                                                : extents.tokens) *= extent;
  unsigned slots = op.getSlotsTensor(), operands = op->getNumOperands();
  Type type = slots < operands ? op->getOperand(slots).getType()
                               : op->getResult(slots - operands).getType();
  for (auto [name, extent] : llvm::zip_equal(
           indicesOf(indexed, slots), cast<RankedTensorType>(type).getShape()))
    if (name == op.getSlots())
      extents.slots = extent;
  return extents;
}

PickCount shd::countPicks(ExpertsOpInterface op, const Tensor &picks) {
  auto indexed = cast<ShardingRuleOpInterface>(op.getOperation());
  auto names = indicesOf(indexed, kPicksOperand);
  ExpertIndices indices = ExpertIndices::of(op);
  ArrayRef<int64_t> shape =
      cast<RankedTensorType>(op.getPicks().getType()).getShape();
  // The expert and group of each element, and how many picked before.
  ExpertExtents extents = ExpertExtents::of(op);
  std::vector<int64_t> load(extents.experts * extents.groups);
  for (int64_t element = 0; element < picks.getNumElements(); ++element) {
    if (!picks.getInteger(element))
      continue;
    int64_t rest = element, place = 0, stride = 1;
    for (auto [name, extent] : llvm::reverse(llvm::zip_equal(names, shape))) {
      if (!llvm::is_contained(indices.tokens, name)) {
        place += rest % extent * stride;
        stride *= extent;
      }
      rest /= extent;
    }
    ++load[place];
  }
  PickCount count;
  for (int64_t each : load) {
    count.picks += each;
    count.dropped += std::max<int64_t>(0, each - extents.slots);
  }
  return count;
}

bool shd::dropsPicks(ProgramOp program) {
  return program
      ->walk([](ExpertsOpInterface op) {
        return op.getDropless() ? WalkResult::advance()
                                : WalkResult::interrupt();
      })
      .wasInterrupted();
}

/// Blocks of experts by which fewer copies of a token go than it has slots.
static std::optional<RoutedBlocks> routedBlocks(ExpertsOpInterface op) {
  if (!op.getLimit() || *op.getLimit() >= op.getK())
    return std::nullopt;
  auto slots = indicesOf(cast<ShardingRuleOpInterface>(op.getOperation()),
                         op.getSlotsTensor());
  const auto *experts = llvm::find(slots, op.getExperts());
  return RoutedBlocks{unsigned(experts - slots.begin()),
                      int64_t(*op.getBlocks()),
                      double(*op.getLimit()) / double(op.getK())};
}

/// True for an operation that hands the elements of its operand on: a
/// collective, a cast, a copy, a view.
static bool handsOn(Operation *op) {
  if (isCollective(op) || isa<SplitOp, MergeOp, SliceOp>(op))
    return true;
  auto elementwise = dyn_cast<ElementwiseOp>(op);
  return elementwise && (elementwise.getFunction() == Function::Cast ||
                         elementwise.getFunction() == Function::Copy);
}

/// The blocks of what such an operation makes, from those of its operand, or
/// the other way round; none if it changes the index of experts.
static std::optional<RoutedBlocks>
throughOp(Operation *op, std::optional<RoutedBlocks> blocks, bool isBack) {
  if (!blocks || isCollective(op))
    return blocks;
  auto indexed = cast<ShardingRuleOpInterface>(op);
  auto from = indicesOf(indexed, isBack ? 1 : 0),
       to = indicesOf(indexed, isBack ? 0 : 1);
  const auto *same = llvm::find(to, from[blocks->dim]);
  if (same == to.end())
    return std::nullopt;
  blocks->dim = same - to.begin();
  return blocks;
}

/// The blocks of the operation that makes these slots.
static std::optional<RoutedBlocks> blocksOfMaker(Value value) {
  Operation *maker = value.getDefiningOp();
  if (!maker)
    return std::nullopt;
  if (handsOn(maker))
    return throughOp(maker, blocksOfMaker(maker->getOperand(0)),
                     /*isBack=*/false);
  auto experts = dyn_cast<ExpertsOpInterface>(maker);
  if (experts && experts.getSlotsTensor() >= maker->getNumOperands())
    return routedBlocks(experts);
  return std::nullopt;
}

static std::optional<RoutedBlocks> blocksOfReaders(Value value);

/// The blocks that a reader sums or routes slots by; none if it needs them all.
static std::optional<RoutedBlocks> blocksOfReader(OpOperand &use) {
  Operation *user = use.getOwner();
  if (auto experts = dyn_cast<ExpertsOpInterface>(user);
      experts && experts.getSlotsTensor() == use.getOperandNumber())
    return routedBlocks(experts);
  return handsOn(user) ? throughOp(user, blocksOfReaders(user->getResult(0)),
                                   /*isBack=*/true)
                       : std::nullopt;
}

/// The blocks of all readers, but for what keeps the value as it is.
static std::optional<RoutedBlocks> blocksOfReaders(Value value) {
  std::optional<RoutedBlocks> blocks;
  for (OpOperand &use : value.getUses()) {
    if (isa<YieldOp, UpdateOp>(use.getOwner()))
      continue;
    std::optional<RoutedBlocks> own = blocksOfReader(use);
    if (!own || (blocks && *blocks != *own))
      return std::nullopt;
    blocks = own;
  }
  return blocks;
}

TensorShape shd::movedShape(Value value) {
  TensorShape shape = tensorShape(value.getType());
  shape.routed = blocksOfMaker(value);
  if (!shape.routed)
    shape.routed = blocksOfReaders(value);
  return shape;
}
