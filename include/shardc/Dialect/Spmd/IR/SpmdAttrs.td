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

    `#spmd.shard<"S" = 4096 over [X] step 3>`: the part has travelled; on the
    ring of `spmd.ring_position` it is that of the device 3 places further on.
    With `step 0 each`, inside a `repeat`, one more place further on in each
    iteration of it. With `step 3 back` the part is that of the device 3 places
    before.

    `#spmd.shard<"S" = 4096 over [X] halo 127>`: the part, and in front of it the
    127 elements before. The first device has no elements there, but zeros at
    negative positions. In zigzag order half of them are before each of two
    stretches of positions.

    **Constraints:**
    - (H1) The extent is at least 1.
  }];
  let parameters = (ins StringRefParameter<"name">:$name, "int64_t":$extent,
    ArrayRefParameter<"::mlir::StringAttr">:$axes,
    DefaultValuedParameter<"int64_t", "-1">:$step,
    DefaultValuedParameter<"bool", "false">:$eachIteration,
    DefaultValuedParameter<"int64_t", "0">:$halo,
    DefaultValuedParameter<"bool", "false">:$back);
  let assemblyFormat = [{
    `<` $name `=` $extent `over` ` ` `[` custom<AxisNames>($axes) `]` ``
    custom<RingStep>($step, $eachIteration, $back, $halo) `>`
  }];
  let builders = [AttrBuilder<(ins "::llvm::StringRef":$name,
      "int64_t":$extent, "::llvm::ArrayRef<::mlir::StringAttr>":$axes), [{
    return $_get($_ctxt, name, extent, axes, -1, false, 0, false);
  }]>];
  let extraClassDeclaration = [{
    bool hasTravelled() const { return getStep() >= 0; }
  }];
  let genVerifyDecl = 1;
}

def Spmd_StageProgramAttr : AttrDef<Spmd_Dialect, "StageProgram"> {
  let mnemonic = "stages";
  let summary = "The stages of a pipeline that run a program";
  let description = [{
    `<[1, 2] of 4, layers "L" = 7, order "1f1b">`: the program of virtual stages 1
    and 2 of 4, each of which holds 7 layers. With p stages, virtual stage n is
    chunk n / p of stage n mod p. Each microbatch visits the virtual stages in
    their order.

    A stage does not run the repeat over microbatches from end to end: in the
    items of `order` it runs, of one iteration, the operations whose
    `shd.stage` names the item's pass.

    **Constraints:**
    - (T1) There is at least one stage and one layer, and no stage is beyond the
      last one.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$numbers, "int64_t":$of,
    StringRefParameter<"the repeat's index">:$index, "int64_t":$layers,
    StringRefParameter<"the schedule">:$order);
  let assemblyFormat = [{
    `<` `[` $numbers `]` `of` $of `,` `layers` $index `=` $layers `,` `order`
    $order `>`
  }];
  let genVerifyDecl = 1;
}

#endif // SHARDC_DIALECT_SPMD_IR_SPMDATTRS_TD
