//===- SpmdBase.td - The spmd dialect ---------------------*- tablegen -*-===//

#ifndef SHARDC_DIALECT_SPMD_IR_SPMDBASE_TD
#define SHARDC_DIALECT_SPMD_IR_SPMDBASE_TD

include "mlir/IR/OpBase.td"

def Spmd_Dialect : Dialect {
  let name = "spmd";
  let summary = "The program that every device of a mesh runs";
  let description = [{
    The `spmd` dialect holds the program of one device: tensors have the shapes
    that one device holds, and data moves between devices only through
    collectives over named axes. Whoever executes or exports a plan starts here.

    Computing operations and `repeat` are those of the `shd` dialect, on local
    tensors. Two discardable attributes say what they are a part of, a third what
    a ring moves:

    - `spmd.shards`: for each sharded index of the operation, its whole extent
      and the axes that split it (`#spmd.shard<"V" = 32000 over [X, Y]>`).
      Operations whose meaning depends on where an index begins (gathers,
      positions, causal masks, means) need it. No index and no axis stands there
      twice, but axes along which a part has travelled;
    - `spmd.global`: the type of the result as the global program has it, with
      its sharding;
    - `spmd.ring_of` on `spmd.ring_shift`: the collective in whose place the ring
      moves its chunks, `"all_gather"` or `"reduce_scatter"`.

    Attributes of `shd` that name values (`shd.name`, `shd.operand`,
    `shd.indices`, `shd.temporary`) are kept, and those that say what takes
    memory: fusion groups (`shd.group`, `shd.prologues`), and the collectives
    that make the stored form of a value (`shd.store`) or a copy of it for
    several readers (`shd.copy`).
  }];
  let cppNamespace = "::shardc::spmd";
  let dependentDialects = ["::shardc::shd::ShdDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
  }];
}

#endif // SHARDC_DIALECT_SPMD_IR_SPMDBASE_TD
