//===- ShdTypes.td - Types of operands and results --------*- tablegen -*-===//

#ifndef SHARDC_DIALECT_SHD_IR_SHDTYPES_TD
#define SHARDC_DIALECT_SHD_IR_SHDTYPES_TD

include "mlir/IR/CommonTypeConstraints.td"

/// Tensors of the language: every extent is known and at least 1.
def Shd_Tensor : ConfinedType<
    StaticShapeTensorOf<[F64, F32, TF32, F16, BF16, F8E4M3FN, F8E5M2,
                         F8E8M0FNU, F4E2M1FN, I32, I16, I8, I<4>, UI8, I1]>,
    [CPred<"::llvm::all_of(::llvm::cast<::mlir::RankedTensorType>($_self)"
           ".getShape(), [](int64_t extent) { return extent > 0; })">],
    "tensor of an element type of the language with extents of at least 1",
    "::mlir::RankedTensorType">;

/// The number of an iteration.
def Shd_Number
    : Type<CPred<"$_self == ::mlir::RankedTensorType::get({}, "
                 "::mlir::IntegerType::get($_self.getContext(), 32))">,
           "number of an iteration", "::mlir::RankedTensorType">,
      BuildableType<"::mlir::RankedTensorType::get({}, "
                    "$_builder.getI32Type())">;

#endif // SHARDC_DIALECT_SHD_IR_SHDTYPES_TD
