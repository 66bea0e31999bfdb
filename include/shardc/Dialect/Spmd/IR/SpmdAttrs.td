//===- SpmdAttrs.td - Attributes of the spmd dialect ------*- tablegen -*-===//

#ifndef SHARDC_DIALECT_SPMD_IR_SPMDATTRS_TD
#define SHARDC_DIALECT_SPMD_IR_SPMDATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "shardc/Dialect/Spmd/IR/SpmdBase.td"

def Spmd_ShardAttr : AttrDef<Spmd_Dialect, "Shard"> {
  let mnemonic = "shard";
  let summary = "An index of an operation of which a device has a part";
  let description = [{
    `#spmd.shard<"V" = 32000 over [X, Y]>`: the whole extent, and the axes that
    split it, the major one first.

    **Constraints:**
    - (H1) The extent is at least 1.
  }];
  let parameters = (ins StringRefParameter<"name">:$name, "int64_t":$extent,
    ArrayRefParameter<"::mlir::StringAttr">:$axes);
  let assemblyFormat = [{
    `<` $name `=` $extent `over` ` ` `[` custom<AxisNames>($axes) `]` `>`
  }];
  let genVerifyDecl = 1;
}

#endif // SHARDC_DIALECT_SPMD_IR_SPMDATTRS_TD
