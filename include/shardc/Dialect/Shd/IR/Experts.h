//===- Experts.h - How picks send tokens to experts -----------*- C++ -*-===//
//
// The roles of the indices of dispatch, combine and its gradient, and what
// picks amount to.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHD_IR_EXPERTS_H
#define SHARDC_DIALECT_SHD_IR_EXPERTS_H

#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc::shd {

/// The operand that holds the picks.
inline constexpr unsigned kPicksOperand = 1;

struct ExpertIndices {
  using Names = llvm::SmallVector<llvm::StringRef, 4>;
  /// In the order of the picks, and of the tensor of tokens.
  Names groups, tokens, features;

  static ExpertIndices of(ExpertsOpInterface op);
};

/// The names of the indices of a tensor: operands first, then results.
llvm::SmallVector<llvm::StringRef, 4> indicesOf(ShardingRuleOpInterface op,
                                                unsigned tensor);

/// The extents of the picks of a program: how many experts, tokens of a group
/// and groups there are; and slots of each expert for a group.
struct ExpertExtents {
  int64_t experts = 1, tokens = 1, groups = 1, slots = 1;

  static ExpertExtents of(ExpertsOpInterface op);
};

/// The shape of a value that collectives move: of slots that dispatch makes, or
/// that only combine and its gradient read, with the blocks that picks keep to.
TensorShape movedShape(mlir::Value value);

/// Picks of whole tensors, and those for which an expert has no slot left.
struct PickCount {
  int64_t picks = 0, dropped = 0;
};
PickCount countPicks(ExpertsOpInterface op, const Tensor &picks);

/// True if experts of the program may drop picks: then tokens together are
/// another computation than one by one.
bool dropsPicks(ProgramOp program);

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_IR_EXPERTS_H
