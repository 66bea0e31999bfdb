//===- Compare.cpp - Parts of a tensor against the whole ------------------===//

#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Verify/Verify.h"

using namespace mlir;
using namespace shardc;

/// A device's part with its partial sums added up.
static Tensor resolved(const Devices &devices, const Layout &layout,
                       ArrayRef<TensorRef> parts, unsigned device) {
  AxisList partial;
  for (unsigned axis = 0; axis < devices.mesh().size(); ++axis)
    if (layout.partial & axisBit(axis))
      partial.push_back(axis);
  Tensor sum = *parts[device];
  Box all = wholeBox(sum.getShape());
  for (unsigned member : devices.group(device, partial))
    if (member != device)
      addBox(*parts[member], all, sum, all, all);
  return sum;
}

/// The largest magnitude of a tensor's finite elements, but at least 1.
static double scaleOf(const Tensor &tensor) {
  double scale = 1;
  for (double value : tensor.getReals())
    if (std::isfinite(value))
      scale = std::max(scale, std::abs(value));
  return scale;
}

static double distance(const Tensor &tensor, double expected, double found,
                       double scale) {
  if (expected == found || (std::isnan(expected) && std::isnan(found)))
    return 0;
  if (!tensor.isReal())
    return 1;
  double difference = std::abs(expected - found) / scale;
  return std::isfinite(difference) ? difference
                                   : std::numeric_limits<double>::infinity();
}

Difference shardc::compare(const Devices &devices, RankedTensorType global,
                           const Tensor &expected, ArrayRef<TensorRef> parts) {
  Layout layout = shd::explicitLayout(devices.mesh(), global);
  double scale = scaleOf(expected);
  Difference largest;
  for (unsigned device = 0; device < devices.size(); ++device) {
    Box part = partOf(devices, global.getShape(), layout, device);
    Tensor found = resolved(devices, layout, parts, device);
    SmallVector<int64_t, 4> sizes;
    for (const FactorRange &range : part)
      sizes.push_back(range.size);
    Tensor dense(expected.getElementType(), sizes);
    Tensor actual(expected.getElementType(), sizes);
    copyBox(expected, wholeBox(expected.getShape()), dense, part, part);
    copyBox(found, part, actual, part, part);
    for (int64_t i = 0; i < dense.getNumElements(); ++i) {
      double size = distance(dense, dense.getReal(i), actual.getReal(i), scale);
      if (size <= largest.size)
        continue;
      largest = {size, {}, device, dense.getReal(i), actual.getReal(i)};
      int64_t rest = i;
      for (unsigned dim = sizes.size(); dim-- > 0; rest /= sizes[dim])
        largest.element.insert(largest.element.begin(),
                               part[dim].offset + rest % sizes[dim]);
    }
  }
  return largest;
}
