//===- Verify.h - Pieces of the operations' verifiers -----------*- C++ -*-===//
//
// Private to lib/Dialect/Shd/IR.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_DIALECT_SHD_IR_VERIFY_H
#define SHARDC_LIB_DIALECT_SHD_IR_VERIFY_H

#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc::shd {

/// The mesh and the padding policy of the program around an operation.
struct MeshContext {
  std::optional<Mesh> mesh;
  bool allowPadding = false;

  explicit MeshContext(mlir::Operation *op);
};

/// `operand 1`, or `the result` where there is one.
std::string describeOperand(unsigned number);
std::string describeResult(mlir::Operation *op, unsigned number);

/// Layout that a type's sharding describes; replicated for a scalar without
/// one. Null for other types without a sharding.
std::optional<Layout> layoutOf(const Mesh &mesh, mlir::Type type);

/// Verifies that all or none of the types of operands and results (scalars
/// aside) carry a sharding, and that shardings name axes of the mesh.
mlir::LogicalResult verifyShardings(mlir::Operation *op);

/// As verifyShardings, for operations without a sharding rule: axes must also
/// divide the extents, unless the program allows padding.
mlir::LogicalResult verifyValueTypes(mlir::Operation *op);

} // namespace shardc::shd

#endif // SHARDC_LIB_DIALECT_SHD_IR_VERIFY_H
