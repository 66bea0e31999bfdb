//===- Reshape.h - Layouts of a tensor and of its reshape -----*- C++ -*-===//

#ifndef SHARDC_SHARDING_RESHAPE_H
#define SHARDC_SHARDING_RESHAPE_H

#include "shardc/Sharding/Sharding.h"

namespace shardc {

/// True if every device has the same elements, in the same order, of a tensor
/// in one layout and of its row-major reshape in another.
bool areAlike(const Mesh &mesh, llvm::ArrayRef<int64_t> extents,
              const Layout &layout, llvm::ArrayRef<int64_t> reshaped,
              const Layout &other);

} // namespace shardc

#endif // SHARDC_SHARDING_RESHAPE_H
