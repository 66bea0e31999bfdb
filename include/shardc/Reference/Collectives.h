//===- Collectives.h - Collectives between devices' memories --*- C++ -*-===//
//
// Data moves from device to device in messages only, and every message is
// counted. docs/CostModel.md#4-collectives says how many bytes these should be.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_REFERENCE_COLLECTIVES_H
#define SHARDC_REFERENCE_COLLECTIVES_H

#include "shardc/Dialect/Shd/IR/Order.h"
#include "shardc/Reference/Parts.h"
#include <memory>
#include <vector>

namespace shardc {

/// One device's value; values never change.
using TensorRef = std::shared_ptr<const Tensor>;

/// Messages that devices sent, and the bits in them.
struct Traffic {
  std::vector<int64_t> messages, bits;

  explicit Traffic(unsigned devices) : messages(devices, 0), bits(devices, 0) {}
  void add(const Traffic &other);
  int64_t totalBits() const;
  /// Bits sent by the device that sends most.
  int64_t mostBits() const;
};

struct Collective {
  CollectiveKind kind = CollectiveKind::AllGather;
  AxisList axes;
  /// How an all_reduce combines summands.
  shd::Combination combination = shd::Combination::Sum;
  /// The global tensor, how it lies before and after.
  llvm::SmallVector<int64_t, 4> shape;
  Layout from, to;
  unsigned elementBits = 0;
  /// A halo_exchange's or halo_reduce's dimension, its rows before each stretch
  /// of positions, and the order in which these are stored.
  int64_t haloDim = 0, haloRows = 0;
  shd::PositionOrder haloOrder;
  /// The shape of a device's result.
  llvm::SmallVector<int64_t, 4> localShape;
};

/// Runs a collective: `parts` has one array per device and is replaced by what
/// each has afterwards. Null, or what is wrong: a device needs what nobody in
/// its group has, or devices do not agree.
std::optional<std::string> runCollective(const Devices &devices,
                                         const Collective &collective,
                                         std::vector<TensorRef> &parts,
                                         Traffic &traffic);

} // namespace shardc

#endif // SHARDC_REFERENCE_COLLECTIVES_H
