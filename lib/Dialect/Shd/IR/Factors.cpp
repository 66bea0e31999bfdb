//===- Factors.cpp - Factors of an operation's dimensions -----------------===//

#include "Factors.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

void FactorTable::collectExtents(ShardingRuleOpInterface op) {
  auto collect = [&](ArrayAttr indices, Type type) {
    for (auto [name, extent] :
         llvm::zip_equal(indices.getAsValueRange<StringAttr>(),
                         cast<RankedTensorType>(type).getShape()))
      extents.try_emplace(name, extent);
  };
  IndexingAttr indexing = op.getIndexing();
  for (auto [i, indices] : llvm::enumerate(indexing.getOperands()))
    collect(indices, op->getOperand(i).getType());
  for (auto [i, indices] : llvm::enumerate(indexing.getResults()))
    collect(indices, op->getResult(i).getType());
}

unsigned FactorTable::intern(StringRef name, bool ofValues) {
  for (auto [number, entry] : llvm::enumerate(factors))
    if (entry.name == name && entry.ofValues == ofValues)
      return number;
  factors.push_back(
      {name, ofValues ? valueExtent : extents.lookup(name), ofValues});
  return factors.size() - 1;
}

unsigned FactorTable::find(StringRef name) const {
  for (auto [number, entry] : llvm::enumerate(factors))
    if (entry.name == name && !entry.ofValues)
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
  table.collectExtents(op);
  table.build(op.getIndexing(), [&](StringRef name, unsigned) {
    return DimFactors{table.intern(name)};
  });
  return table;
}

FactorTable FactorTable::withParts(ShardingRuleOpInterface op, StringRef whole,
                                   ArrayAttr parts) {
  FactorTable table;
  table.collectExtents(op);
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

bool shd::isIndexOfValues(Operation *op, StringRef name, unsigned tensor) {
  auto attention = dyn_cast<AttentionOpInterface>(op);
  return attention && name == attention.getHead() &&
         attention.hasValues(tensor);
}

FactorTable FactorTable::withValues(AttentionOpInterface op) {
  auto indexed = cast<ShardingRuleOpInterface>(op.getOperation());
  FactorTable table;
  table.collectExtents(indexed);
  IndexingAttr indexing = indexed.getIndexing();
  for (auto [name, extent] :
       llvm::zip_equal(indexing.getOperandIndices(AttentionOp::kValueOperand),
                       cast<RankedTensorType>(op.getV().getType()).getShape()))
    if (name == op.getHead())
      table.valueExtent = extent;
  table.build(indexing, [&](StringRef name, unsigned tensor) {
    return DimFactors{table.intern(name, isIndexOfValues(op, name, tensor))};
  });
  return table;
}
