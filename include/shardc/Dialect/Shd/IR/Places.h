//===- Places.h - Where the parts of an operation stand --------*- C++ -*-===//
//
// The verifiers hold the typing rules of operations. The importer has them run
// on each operation that it makes, whose location then also says where its
// operands and attributes stand in the program, so that a broken rule is
// reported there.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHD_IR_PLACES_H
#define SHARDC_DIALECT_SHD_IR_PLACES_H

#include "mlir/IR/Operation.h"

namespace shardc::shd {

/// An operand of an operation by its number, an attribute by its name, or the
/// whole operation.
struct OpPart {
  OpPart() = default;
  OpPart(int operand) : name(std::to_string(operand)) {}
  OpPart(const char *attribute) : name(attribute) {}
  std::string name;
};

/// Where a part of an operation stands.
struct PartPlace {
  OpPart part;
  mlir::Location place;
};

/// Verifies what holds of the operation by itself. Errors are reported at the
/// place of the part that they are about, or at `whole`.
mlir::LogicalResult verifyAt(mlir::Operation *op, mlir::Location whole,
                             llvm::ArrayRef<PartPlace> places);

/// An error of a verifier about a part of the operation: inside of `verifyAt`
/// at that part's place, else at the operation, which it names.
mlir::InFlightDiagnostic emitErrorAt(mlir::Operation *op,
                                     const OpPart &part = {});

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_IR_PLACES_H
