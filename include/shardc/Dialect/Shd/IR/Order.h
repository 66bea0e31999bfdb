//===- Order.h - The order of positions along an index --------*- C++ -*-===//
//
// Zigzag order balances causal attention: 2c chunks of an index are dealt to c
// equal parts, d and 2c - 1 - d to part d, so that every part has as many
// query-key pairs. An order is a matter of storage: positions stay those of the
// program, and operations that ask for positions map them
// (docs/CostModel.md#balanced-causal-attention).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHD_IR_ORDER_H
#define SHARDC_DIALECT_SHD_IR_ORDER_H

#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc::shd {

/// On the program: what its text says of indices, `zigzag` or `contiguous` by
/// name.
inline constexpr llvm::StringLiteral kOrders = "shd.orders";
/// On operations, declarations and outputs: for each of their indices in zigzag
/// order, the number of its class and of the parts that it is dealt to.
inline constexpr llvm::StringLiteral kDealt = "shd.dealt";
/// On the program: for each class of indices that causal attention runs along,
/// a dictionary with `index` (its name), `devices` (the parts it is dealt to,
/// 1: contiguous), `isWanted` (zigzag order would balance the plan) and
/// `obstacle`.
inline constexpr llvm::StringLiteral kOrderClasses = "shd.order_classes";
/// On causal attention: the class of its queries.
inline constexpr llvm::StringLiteral kOrderClass = "shd.order_class";

/// A chunk of an index in zigzag order has at least so many positions.
inline constexpr int64_t kLeastChunk = 128;

/// Zigzag order of `extent` positions, dealt to `parts`; with one part they
/// stay in order.
class PositionOrder {
public:
  PositionOrder() = default;
  PositionOrder(int64_t extent, int64_t parts)
      : extent(extent), parts(parts), chunk(extent / (2 * parts)) {
    assert(isDealt(extent, parts) && "an extent of two chunks for each part");
  }

  /// True if an extent may be dealt to so many parts.
  static bool isDealt(int64_t extent, int64_t parts) {
    return parts == 1 || extent % (2 * parts) == 0;
  }

  int64_t numParts() const { return parts; }
  /// The program's position of a stored element, and back.
  int64_t positionAt(int64_t stored) const;
  int64_t storedAt(int64_t position) const;

  /// A stretch of positions, which is stored contiguously.
  struct Stretch {
    int64_t begin = 0, end = 0;
  };
  /// The positions stored in [begin, end), in the order of storage.
  llvm::SmallVector<Stretch> stretches(int64_t begin, int64_t end) const;

  /// The most stretches of consecutive positions that the parts of devices
  /// have.
  int64_t numStretches() const { return stretchesOfPart(parts); }
  /// The positions that halos bring to what is stored in [begin, end), a part
  /// of whole chunks: `rows` before each of its stretches, the first one first.
  /// Below 0 are rows of no device: those before position 0, and those of a
  /// second stretch that the last part lacks.
  llvm::SmallVector<int64_t> haloPositions(int64_t begin, int64_t end,
                                           int64_t rows) const;

private:
  int64_t extent = 0, parts = 1, chunk = 0;
};

/// How many parts an index of an operation is dealt to: 1 in the program's
/// order.
int64_t dealtParts(mlir::Operation *op, llvm::StringRef index);
PositionOrder positionOrder(mlir::Operation *op, llvm::StringRef index,
                            int64_t extent);
/// The same for each of some indices: `extents` are theirs.
llvm::SmallVector<PositionOrder>
positionOrders(mlir::Operation *op, llvm::ArrayRef<llvm::StringRef> indices,
               llvm::ArrayRef<int64_t> extents);

/// The tensor as it is stored, its dimensions in these orders; and back.
Tensor stored(const Tensor &tensor, llvm::ArrayRef<PositionOrder> orders);
Tensor inProgramOrder(const Tensor &stored,
                      llvm::ArrayRef<PositionOrder> orders);

/// What stands in the way of storing an index of an operation's iteration space
/// in an order that is not the program's; empty if nothing does. `factor` is
/// one of its sharding rule.
std::string orderObstacle(ShardingRuleOpInterface op, const ShardingRule &rule,
                          unsigned factor);

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_IR_ORDER_H
