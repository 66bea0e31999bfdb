//===- Factors.h - Factors of an operation's dimensions ---------*- C++ -*-===//
//
// Private to lib/Dialect/Shd/IR: numbers the indices of an operation and says
// which of them each dimension maps to. Sharding rules and work share it; it
// makes no strings, since work is computed once per strategy.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_DIALECT_SHD_IR_FACTORS_H
#define SHARDC_LIB_DIALECT_SHD_IR_FACTORS_H

#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc::shd {

/// The iteration space of an operation that verifies, in order of first
/// appearance: operands first, then results. Statistics are not part of it.
class FactorTable {
public:
  struct Entry {
    llvm::StringRef name;
    int64_t extent = 1;
    /// True for the one of two indices of a name that only values and result
    /// have.
    bool ofValues = false;
  };

  /// One factor per index.
  static FactorTable of(ShardingRuleOpInterface op);
  /// Dimensions named `whole` consist of `parts`, which other tensors have.
  static FactorTable withParts(ShardingRuleOpInterface op,
                               llvm::StringRef whole, mlir::ArrayAttr parts);
  /// The index `head` of values and result is another than that of queries and
  /// keys.
  static FactorTable withValues(AttentionOpInterface op);

  llvm::ArrayRef<Entry> entries() const { return factors; }
  llvm::ArrayRef<TensorFactors> operands() const { return operandFactors; }
  llvm::ArrayRef<TensorFactors> results() const { return resultFactors; }

  /// The factor of an index; of two of one name, the one that is not of values.
  unsigned find(llvm::StringRef name) const;

private:
  using FactorsOf =
      llvm::function_ref<DimFactors(llvm::StringRef name, unsigned tensor)>;
  void build(IndexingAttr indexing, FactorsOf factorsOf);
  /// The number of a factor, made anew if it is not there.
  unsigned intern(llvm::StringRef name, bool ofValues = false);
  void collectExtents(ShardingRuleOpInterface op);

  /// Extents of all indices in the indexing.
  llvm::SmallDenseMap<llvm::StringRef, int64_t, 8> extents;
  /// Extent of the index of values that has the name of `head`.
  int64_t valueExtent = 1;
  llvm::SmallVector<Entry, 6> factors;
  llvm::SmallVector<TensorFactors, 3> operandFactors;
  llvm::SmallVector<TensorFactors, 1> resultFactors;
};

/// True for an index of attention's values and result (tensors are numbered
/// operands first) that only has the name of the index that scores sum over.
bool isIndexOfValues(mlir::Operation *op, llvm::StringRef name,
                     unsigned tensor);

} // namespace shardc::shd

#endif // SHARDC_LIB_DIALECT_SHD_IR_FACTORS_H
