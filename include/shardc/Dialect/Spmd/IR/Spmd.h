//===- Spmd.h - The spmd dialect -------------------------------*- C++ -*-===//

#ifndef SHARDC_DIALECT_SPMD_IR_SPMD_H
#define SHARDC_DIALECT_SPMD_IR_SPMD_H

#include "shardc/Dialect/Shd/IR/Shd.h"

#include "shardc/Dialect/Spmd/IR/SpmdDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "shardc/Dialect/Spmd/IR/SpmdAttrs.h.inc"

namespace shardc::spmd {

/// Names of the dialect's discardable attributes.
inline constexpr llvm::StringLiteral kShards = "spmd.shards";
inline constexpr llvm::StringLiteral kGlobal = "spmd.global";

/// On a ring shift: the collective in whose place the ring moves its chunks.
inline constexpr llvm::StringLiteral kRingOf = "spmd.ring_of";

/// The part of a global tensor that one device holds: extents rounded up, no
/// encoding. A type without a sharding is whole on every device.
mlir::RankedTensorType localType(const Mesh &mesh, mlir::Type global);

/// The type with so many rows more along a dimension.
mlir::RankedTensorType withHalo(mlir::RankedTensorType type, int64_t dim,
                                int64_t rows);

/// The mesh of the program around `op`.
Mesh meshOf(mlir::Operation *op);

/// True for the operations that turn one sharding into another. Of those that
/// move data between devices, only ring shifts are none of them.
bool isCollective(mlir::Operation *op);
/// True for an operation that works on parts that travel around a ring: on
/// other ones in each iteration of the repeat around it.
bool stepsInEachIteration(mlir::Operation *op);
CollectiveKind collectiveKind(mlir::Operation *op);

/// `forward`, or `backward`: `custom<Direction>` of a format.
mlir::ParseResult parseDirection(mlir::OpAsmParser &parser,
                                 mlir::UnitAttr &backward);
void printDirection(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                    mlir::UnitAttr backward);

namespace detail {
/// Verifies that `local` is a device's part of `global`, whose sharding is
/// closed and of the mesh.
mlir::LogicalResult verifyPart(mlir::Operation *op, mlir::Type global,
                               mlir::Type local, llvm::StringRef what);
} // namespace detail

} // namespace shardc::spmd

#define GET_OP_CLASSES
#include "shardc/Dialect/Spmd/IR/SpmdOps.h.inc"

#endif // SHARDC_DIALECT_SPMD_IR_SPMD_H
