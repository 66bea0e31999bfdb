//===- SpmdOps.td - Operations of the spmd dialect --------*- tablegen -*-===//

#ifndef SHARDC_DIALECT_SPMD_IR_SPMDOPS_TD
#define SHARDC_DIALECT_SPMD_IR_SPMDOPS_TD

include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "shardc/Dialect/Shd/IR/ShdAttrs.td"
include "shardc/Dialect/Shd/IR/ShdEnums.td"
include "shardc/Dialect/Shd/IR/ShdTypes.td"
include "shardc/Dialect/Spmd/IR/SpmdAttrs.td"

class Spmd_Op<string mnemonic, list<Trait> traits = []>
    : Op<Spmd_Dialect, mnemonic, traits>;

/// An operation whose results are printed under their names in the program.
class Spmd_ValueOp<string mnemonic, list<Trait> traits = []>
    : Spmd_Op<mnemonic, !listconcat(traits,
        [DeclareOpInterfaceMethods<OpAsmOpInterface,
                                   ["getAsmResultNames"]>])> {
  let extraClassDefinition = [{
    void $cppClass::getAsmResultNames(::mlir::OpAsmSetValueNameFn setName) {
      ::shardc::shd::detail::nameResults(getOperation(), setName);
    }
  }];
}

/// A global tensor with its sharding, `tensor<64x128xbf16, #shd.sharding<...>>`.
def Spmd_GlobalType : TypeAttrOf<Shd_Tensor>;

//===----------------------------------------------------------------------===//
// Program structure
//===----------------------------------------------------------------------===//

def Spmd_ProgramOp : Spmd_Op<"program",
    [NoRegionArguments, SingleBlock, NoTerminator, IsolatedFromAbove]> {
  let summary = "The program of each device of a mesh";
  let description = [{
    ```mlir
    spmd.program "ffn" mesh <[X = 4, Y = 4]> { ... }
    ```
    Every device runs it on tensors of its own, in order. Devices are numbered by
    their coordinates on the mesh, the last axis innermost.

    With `pipeline`, it is the program of a stage that has everything. With
    `stages`, after `spmd-split-stages`, it is that of the devices of those
    stages, and the module has one program for each kind of stage.
  }];
  let arguments = (ins StrAttr:$sym, OptionalAttr<Shd_MeshAttr>:$mesh,
    OptionalAttr<Shd_PipelineAttr>:$pipeline,
    OptionalAttr<Spmd_StageProgramAttr>:$stages);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym (`mesh` $mesh^)? (`pipeline` $pipeline^)? (`stages` $stages^)?
    attr-dict-with-keyword $body
  }];
}

def Spmd_ParameterOp : Spmd_ValueOp<"parameter", [HasParent<"ProgramOp">]> {
  let summary = "This device's part of an input, a weight, a state or a buffer";
  let description = [{
    `spmd.parameter weight "W" ["D", "F"] of
    tensor<64x128xbf16, #shd.sharding<[{X}, {} ]>> : tensor<16x128xbf16>`.
    `stacked` as in `shd.declare`; `shd.part` reads the part of an iteration.
    A gradient, a moment or a master copy names the weight that it is of:
    `spmd.parameter moment "W_m" of "W" ["D", "F"] of ...`.

    **Constraints:**
    - (P1) The type is that of a part of the global tensor.
    - (P2) Inputs are not stacked, others along dimensions that they have and no
      axis splits.
    - (P3) One index per dimension.
    - (P4) Only a gradient is stored as a partial sum.
    - (P5) Gradients and master copies are of a weight, moments may be, others are
      of none.
  }];
  let arguments = (ins Shd_TensorKindAttr:$kind, StrAttr:$sym,
    StrArrayAttr:$indices, Spmd_GlobalType:$global,
    DefaultValuedOptionalAttr<I64Attr, "0">:$stacked,
    OptionalAttr<StrAttr>:$of);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{
    `` $kind $sym (`of` $of^)? $indices `of` $global (`stacked` $stacked^)? attr-dict `:`
    type($result)
  }];
  let hasVerifier = 1;
}

def Spmd_OutputOp : Spmd_Op<"output", [HasParent<"ProgramOp">]> {
  let summary = "This device's part of a value that leaves the program";
  let description = [{
    **Constraints:**
    - (O1) The type is that of a part of the global tensor.
    - (O2) One index per dimension.
  }];
  let arguments = (ins StrAttr:$sym, Shd_Tensor:$value, StrArrayAttr:$indices,
    Spmd_GlobalType:$global);
  let assemblyFormat = [{
    $sym $value $indices `of` $global attr-dict `:` type($value)
  }];
  let hasVerifier = 1;
}

def Spmd_UpdateOp : Spmd_Op<"update",
    [ParentOneOf<["ProgramOp", "::shardc::shd::RepeatOp"]>]> {
  let summary = "This device's part of a state at the end of the step";
  let description = [{
    `spmd.update %kc[%i] = %kc_2 : ...`, as `shd.update`.

    **Constraints:**
    - (U1) The tensor is a parameter that is no input, and the value has the type
      of the part that it replaces.
    - (U2) It is updated by one operation, in each iteration of the repeats whose
      numbers it names; others are around it only if it is a buffer.
  }];
  let arguments = (ins Shd_Tensor:$value, Shd_Tensor:$state,
    Variadic<Shd_Number>:$at);
  let assemblyFormat = [{ $state (`[` $at^ `]`)? `=` $value attr-dict `:`
    type($state) `,` type($value) }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ParameterOp getParameter() {
      return getState().getDefiningOp<ParameterOp>();
    }
    llvm::StringRef getSym() { return getParameter().getSym(); }
  }];
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// `%y = spmd.all_gather %x over ["X"] of G1 to G2 : L1 -> L2`: the devices that
/// differ only in their coordinates on the axes form a group; each gives its
/// part of the global tensor G1 and gets its part of G2.
class Spmd_CollectiveOp<string mnemonic, string text, string semantics>
    : Spmd_ValueOp<mnemonic, [Pure]> {
  let summary = text;
  let description = [{
    Devices that differ only on `axes` form a group. Each gives its part of the
    global tensor `from` and gets its part of `to`.
  }] # semantics # [{

    **Constraints:**
    - (C1) Operand and result are parts of `from` and `to`, which differ in their
      shardings only.
    - (C2) The collective turns the one sharding into the other.
  }];
  let arguments = (ins Shd_Tensor:$input, StrArrayAttr:$axes,
    Spmd_GlobalType:$from, Spmd_GlobalType:$to);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ $input `over` $axes `of` $from `to` $to attr-dict `:`
    type($input) `->` type($result) }];
  let hasVerifier = 1;
}

def Spmd_AllGatherOp : Spmd_CollectiveOp<"all_gather",
  "Joins the parts of a group", [{
    The parts are joined along the dimensions at whose minor ends the axes stand.
  }]>;
def Spmd_AllSliceOp : Spmd_CollectiveOp<"all_slice",
  "Keeps this device's part; no data moves", [{
    Of what every device of the group has, each keeps a part.
  }]>;
def Spmd_AllToAllOp : Spmd_CollectiveOp<"all_to_all",
  "Joins parts along some dimensions and splits others", [{
    Axes leave the minor ends of dimensions for those of others.
  }]>;
def Spmd_ReduceScatterOp : Spmd_CollectiveOp<"reduce_scatter",
  "Adds up the tensors of a group; each device keeps a part", [{
    Partial sums over the axes are added; the axes split the sum.
  }]>;
def Spmd_CollectivePermuteOp : Spmd_CollectiveOp<"collective_permute",
  "Every device sends its part to one device", [{
    The parts stay as they are; which device has which follows the shardings. Axes
    that only `to` has are coordinates of replicas in `from`: a device takes what
    it needs from the one whose idle coordinates are its own.
  }]>;

def Spmd_ToHostOp : Spmd_CollectiveOp<"to_host",
  "Copies this device's part into the memory of its host", [{
    The axes are none: a device moves its own part.
  }]>;
def Spmd_FromHostOp : Spmd_CollectiveOp<"from_host",
  "Copies this device's part from the memory of its host", [{
    The axes are none: a device moves its own part.
  }]>;

def Spmd_HaloExchangeOp : Spmd_ValueOp<"halo_exchange", [Pure]> {
  let summary = "Joins the last rows of the part before with a device's own";
  let description = [{
    `spmd.halo_exchange %k dim 1 rows 127 over ["X"] of G1 to G2 : L1 -> L2`:
    devices that differ only on `axes` form a line. Each gets the last rows,
    along the dimension, of the part of the device before it, and has them in
    front of its own; the first one has zeros there. In zigzag order
    (`shd.dealt`) they are those before the first of a part's two stretches of
    positions; as many before the second one follow, from the device behind, and
    the last device has zeros for them.

    **Constraints:**
    - (Z1) `from` has the axes on the dimension, in their order, and `to` none;
      they are alike otherwise.
    - (Z2) There is at least one row, and no more than a part has; in zigzag
      order than half of it.
    - (Z3) The axes divide the dimension.
    - (Z4) In zigzag order their devices divide the parts that it is dealt to,
      of two chunks each.
    - (Z5) The operand is a part of `from`, and the result has so many rows more,
      in zigzag order twice as many.
  }];
  let arguments = (ins Shd_Tensor:$input, I64Attr:$dim, I64Attr:$rows,
    StrArrayAttr:$axes, Spmd_GlobalType:$from, Spmd_GlobalType:$to);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ $input `dim` $dim `rows` $rows `over` $axes `of` $from
    `to` $to attr-dict `:` type($input) `->` type($result) }];
  let hasVerifier = 1;
}

def Spmd_HaloReduceOp : Spmd_ValueOp<"halo_reduce", [Pure]> {
  let summary = "Adds up the summands of the rows of each part";
  let description = [{
    `spmd.halo_reduce %dk dim 1 rows 127 over ["X"] of G1 to G2 : L1 -> L2`:
    devices that differ only on `axes` form a line. Each has summands for the
    rows of its part and, in front of them, for the last rows of the part of the
    device before it. It gives these to that device, and adds to the last ones
    of its own part what the device behind it has. In zigzag order the rows
    before a part's second stretch of positions go to the device behind.

    **Constraints:**
    - (Z1) `from` is a partial sum over the axes, and `to` has them on the
      dimension, in their order; they are alike otherwise.
    - (Z2) to (Z4) as of `spmd.halo_exchange`.
    - (Z5) The result is a part of `to`, and the operand has so many rows more,
      in zigzag order twice as many.
  }];
  let arguments = (ins Shd_Tensor:$input, I64Attr:$dim, I64Attr:$rows,
    StrArrayAttr:$axes, Spmd_GlobalType:$from, Spmd_GlobalType:$to);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ $input `dim` $dim `rows` $rows `over` $axes `of` $from
    `to` $to attr-dict `:` type($input) `->` type($result) }];
  let hasVerifier = 1;
}

def Spmd_AllReduceOp : Spmd_ValueOp<"all_reduce", [Pure]> {
  let summary = "Adds up (or takes the maximum or minimum of) a group's tensors";
  let description = [{
    Devices that differ only on `axes` form a group; each gets the
    elementwise sum, or with `max` or `min` the elementwise maximum or
    minimum.

    **Constraints:**
    - (C1) Operand and result are parts of `from` and `to`, which differ in their
      shardings only.
    - (C2) The collective turns the one sharding into the other: the axes are
      partial in `from`.
  }];
  let arguments = (ins Shd_Tensor:$input, StrArrayAttr:$axes, DefaultValuedAttr<Shd_CombinationAttr,
                      "::shardc::shd::Combination::Sum">:$combination,
    Spmd_GlobalType:$from, Spmd_GlobalType:$to);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ `` custom<Combination>($combination) $input `over` $axes `of` $from `to` $to
    attr-dict `:` type($input) `->` type($result) }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Pipelines
//===----------------------------------------------------------------------===//

def Spmd_SendOp : Spmd_Op<"send", [MemoryEffects<[MemWrite]>]> {
  let summary = "Gives a tensor to the next stage, or to the one before";
  let description = [{
    `spmd.send %x forward 0 : tensor<4x8xbf16>`: each device gives its tensor to
    the one of the next virtual stage that has the same other coordinates;
    `backward`, to that of the virtual stage before. The number tells apart what
    one pass sends. A `spmd.receive` of the same microbatch, direction and number
    takes it.

    **Constraints:**
    - (Q1) The number is at least 0.
  }];
  let arguments = (ins Shd_Tensor:$value, UnitAttr:$backward,
    ConfinedAttr<I64Attr, [IntNonNegative]>:$number);
  let assemblyFormat = [{ $value custom<Direction>($backward) $number attr-dict `:`
    type($value) }];
}

def Spmd_ReceiveOp : Spmd_ValueOp<"receive", [MemoryEffects<[MemRead]>]> {
  let summary = "Takes the tensor that the stage before, or behind, has sent";
  let description = [{
    `%x = spmd.receive forward 0 : tensor<4x8xbf16>` waits for what the virtual
    stage before has sent `forward` under this number for the same microbatch;
    `backward`, for what the one behind has.

    **Constraints:**
    - (Q1) The number is at least 0.
  }];
  let arguments = (ins UnitAttr:$backward,
    ConfinedAttr<I64Attr, [IntNonNegative]>:$number);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ custom<Direction>($backward) $number attr-dict `:`
    type($result) }];
}

def Spmd_SumStagesOp : Spmd_ValueOp<"sum_stages",
    [HasParent<"ProgramOp">, MemoryEffects<[MemWrite]>,
     AllTypesMatch<["input", "result"]>]> {
  let summary = "Adds up what the stages of a pipeline have";
  let description = [{
    `spmd.sum_stages %x 0 : tensor<f32>`: all virtual stages whose program has
    this number give a tensor, and each gets the sum: the gradient of a weight
    that the first and the last stage have, or the norm of all gradients.
    Devices with the same other coordinates form a group.

    **Constraints:**
    - (Q1) The number is at least 0.
  }];
  let arguments = (ins Shd_Tensor:$input,
    ConfinedAttr<I64Attr, [IntNonNegative]>:$number);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = "$input $number attr-dict `:` type($result)";
}

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

/// The type of a repeat's iteration number.
def Spmd_Number : Type<
    CPred<"$_self == ::mlir::RankedTensorType::get({}, "
          "::mlir::IntegerType::get($_self.getContext(), 32))">,
    "tensor<i32>", "::mlir::RankedTensorType">,
  BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getI32Type())">;

def Spmd_RingPositionOp : Spmd_ValueOp<"ring_position", [Pure]> {
  let summary = "The number of the chunk that this device works on";
  let description = [{
    `spmd.ring_position %i plus 1 over ["X", "Y"]`. The devices that
    differ only in their coordinates on `axes` form a ring of N. A device's place
    p on it is the row-major number of those coordinates, the first axis the
    major one. The result is (p + iteration + plus) mod N.

    **Constraints:**
    - (R1) The axes are of the mesh, at least one and each once.
    - (R2) What is added is at least 0.
  }];
  let arguments = (ins Spmd_Number:$iteration, I64Attr:$plus,
    StrArrayAttr:$axes);
  let results = (outs Spmd_Number:$result);
  let assemblyFormat = "$iteration `plus` $plus `over` $axes attr-dict";
  let hasVerifier = 1;
}

def Spmd_RingShiftOp : Spmd_ValueOp<"ring_shift",
    [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "Every device sends its tensor to a neighbour on a ring";
  let description = [{
    `spmd.ring_shift %x over ["X", "Y"] : tensor<4x8xbf16>`. On the ring of
    `spmd.ring_position`, the device at place p gives its tensor to the one at
    place (p - 1) mod N and gets that of the one at place (p + 1) mod N. With
    `spmd.ring_shift %x back` tensors go the other way, to place (p + 1) mod N.
    Each device sends the bytes of one tensor.

    **Constraints:**
    - (R1) The axes are of the mesh, at least one and each once.
  }];
  let arguments = (ins Shd_Tensor:$input, StrArrayAttr:$axes, UnitAttr:$back);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat =
      "$input (`back` $back^)? `over` $axes attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Spmd_ChunkOp : Spmd_ValueOp<"chunk", [Pure]> {
  let summary = "One of the equal parts of a local tensor";
  let description = [{
    `spmd.chunk %x[%n] dim 0 : tensor<16x8xf32> -> tensor<4x8xf32>`. Along the
    dimension the operand consists of parts with the extent e of the result; the
    result is part n, the elements [n e, (n + 1) e). No data moves between
    devices. A number for which there is no part is an error at run time.

    **Constraints:**
    - (K1) The dimension is one of the operand's.
    - (K2) The result has the operand's element type and extents, but along the
      dimension one that divides the operand's.
  }];
  let arguments = (ins Shd_Tensor:$input, Spmd_Number:$number, I64Attr:$dim);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ $input `[` $number `]` `dim` $dim attr-dict `:`
    type($input) `->` type($result) }];
  let hasVerifier = 1;
}

def Spmd_PlaceOp : Spmd_ValueOp<"place",
    [Pure, AllTypesMatch<["whole", "result"]>]> {
  let summary = "A local tensor with one of its equal parts replaced";
  let description = [{
    `spmd.place %c into %x[%n] dim 0 : tensor<4x8xf32> into tensor<16x8xf32>`:
    `whole`, with the chunk in place of part n, the elements [n e, (n + 1) e)
    along the dimension, where e is the chunk's extent. Works in place. A number
    for which there is no part is an error at run time.

    **Constraints:**
    - (L1) The dimension is one of the whole's.
    - (L2) The chunk has the whole's element type and extents, but along the
      dimension one that divides the whole's.
  }];
  let arguments = (ins Shd_Tensor:$chunk, Shd_Tensor:$whole,
    Spmd_Number:$number, I64Attr:$dim);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ $chunk `into` $whole `[` $number `]` `dim` $dim
    attr-dict `:` type($chunk) `into` type($whole) }];
  let hasVerifier = 1;
}

#endif // SHARDC_DIALECT_SPMD_IR_SPMDOPS_TD
