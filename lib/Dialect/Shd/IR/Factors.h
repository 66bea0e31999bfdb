//===- Factors.h - Factors of an operation's dimensions ---------*- C++ -*-===//
//
// Private to lib/Dialect/Shd/IR: numbers the indices of an operation and says
// which of them each dimension maps to. Sharding rules and work share it; it
// makes no strings, since work is computed once per strategy.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_DIALECT_SHD_IR_FACTORS_H
#define SHARDC_LIB_DIALECT_SHD_IR_FACTORS_H

#include "shardc/Dialect/Shd/IR/Experts.h"

namespace shardc::shd {

/// The iteration space of an operation that verifies, in order of first
/// appearance: operands first, then results. Statistics are not part of it.
class FactorTable {
public:
  struct Entry {
    llvm::StringRef name;
    int64_t extent = 1;
    /// Of two indices of a name, the tensors that the second belongs to, as
    /// `kOfValues` says; empty for the first.
    llvm::StringRef of;
  };

  /// One factor per index.
  static FactorTable of(ShardingRuleOpInterface op);
  /// Dimensions named `whole` consist of `parts`, which other tensors have.
  static FactorTable withParts(ShardingRuleOpInterface op,
                               llvm::StringRef whole, mlir::ArrayAttr parts);
  /// The index `head` of values and result is another than that of queries and
  /// keys.
  static FactorTable withValues(AttentionOpInterface op);
  /// The experts and the tokens of picks are others than those of the tensors
  /// that move.
  static FactorTable withPicks(ExpertsOpInterface op);

  llvm::ArrayRef<Entry> entries() const { return factors; }
  llvm::ArrayRef<TensorFactors> operands() const { return operandFactors; }
  llvm::ArrayRef<TensorFactors> results() const { return resultFactors; }

  /// The factor of an index; of two of one name, the first.
  unsigned find(llvm::StringRef name) const;

private:
  using FactorsOf =
      llvm::function_ref<DimFactors(llvm::StringRef name, unsigned tensor)>;
  void build(IndexingAttr indexing, FactorsOf factorsOf);
  /// The number of a factor, made anew if it is not there.
  unsigned intern(llvm::StringRef name, llvm::StringRef of = "");
  /// Whose an index of a tensor is, if it is the second of its name.
  using OwnerOf = llvm::function_ref<llvm::StringRef(llvm::StringRef name,
                                                     unsigned tensor)>;
  void collectExtents(ShardingRuleOpInterface op, OwnerOf ownerOf);
  static FactorTable withSecond(ShardingRuleOpInterface op, OwnerOf ownerOf);

  /// Extents of all indices in the indexing, and of the second ones of a name.
  llvm::SmallDenseMap<llvm::StringRef, int64_t, 8> extents, secondExtents;
  llvm::SmallVector<Entry, 6> factors;
  llvm::SmallVector<TensorFactors, 3> operandFactors;
  llvm::SmallVector<TensorFactors, 1> resultFactors;
};

/// Whose the second of two indices of a name is.
inline constexpr llvm::StringLiteral kOfValues = "values", kOfPicks = "picks";

/// Whose an index of a tensor (operands first, then results) is, if it only has
/// the name of another: attention's values and result have an index of their
/// own by the name of the one that scores sum over, picks have experts and
/// tokens of their own. Empty for others.
llvm::StringRef ownerOfIndex(mlir::Operation *op, llvm::StringRef name,
                             unsigned tensor);

/// The numbers of the tensors that have the factor.
inline llvm::SmallVector<unsigned, 2>
tensorsWith(llvm::ArrayRef<TensorFactors> tensors, unsigned factor) {
  llvm::SmallVector<unsigned, 2> numbers;
  for (auto [number, tensor] : llvm::enumerate(tensors))
    if (hasFactor(tensor, factor))
      numbers.push_back(number);
  return numbers;
}

} // namespace shardc::shd

#endif // SHARDC_LIB_DIALECT_SHD_IR_FACTORS_H
