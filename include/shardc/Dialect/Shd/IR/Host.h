//===- Host.h - Tensors in the memory of the host -------------*- C++ -*-===//
//
// With `offload` the host keeps tensors of a training step (`shd.host` on their
// declarations): docs/Training.md#offloading. They take no memory of a device,
// and what reads or writes them crosses the link to the host.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHD_IR_HOST_H
#define SHARDC_DIALECT_SHD_IR_HOST_H

#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc::shd {

/// True of a tensor that the host has, and of its parts; in a device's program,
/// too.
bool isOnHost(mlir::Value value);

/// True of a buffer on the host for values that the forward pass saves, and of
/// its parts: each is copied there after it has been made, and back before it
/// is read, by transfers of their own. Other tensors on the host are read and
/// written there by the operations themselves.
bool isOffloadedSave(mlir::Value value);
/// True of an update that copies a value to the host.
bool copiesToHost(UpdateOp update);

/// True of a value that an operation reads from the host as it runs.
bool isReadOnHost(mlir::Value value);

/// True of a value that an update writes into a tensor on the host, perhaps in
/// another layout.
bool goesToHost(mlir::Value value);

/// True of values that no device holds: tensors on the host, and values that
/// are made for nothing but these.
bool takesNoDeviceMemory(mlir::Value value);

/// The machine has what the program's tensors on the host need; an error if
/// not.
mlir::LogicalResult checkHost(ProgramOp program, const Machine &machine);

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_IR_HOST_H
