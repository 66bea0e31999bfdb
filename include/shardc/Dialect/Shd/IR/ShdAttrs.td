//===- ShdAttrs.td - Attributes of the shd dialect --------*- tablegen -*-===//

#ifndef SHARDC_DIALECT_SHD_IR_SHDATTRS_TD
#define SHARDC_DIALECT_SHD_IR_SHDATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/TensorEncoding.td"
include "shardc/Dialect/Shd/IR/ShdBase.td"
include "shardc/Dialect/Shd/IR/ShdEnums.td"

class Shd_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Shd_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

/// A double; uniquing needs a type with a hash.
class Shd_Real<string desc = "">
    : AttrOrTypeParameter<"::shardc::shd::Real", desc, "double">;

def Shd_MeshAxisAttr : Shd_Attr<"MeshAxis", "axis"> {
  let summary = "One named axis of the mesh";
  let description = [{
    `X = 4` or, bound to physical axes of the machine by the program's author,
    `X = 4 on (y, z)`. `pp = 4 stages`: its devices are the stages of a pipeline,
    and no tensor lies on it.

    **Constraints:**
    - (A1) The size is at least 1.
    - (A2) The name is not empty.
  }];
  let parameters = (ins StringRefParameter<"name">:$name, "int64_t":$size,
    OptionalArrayRefParameter<"::mlir::StringAttr">:$on,
    DefaultValuedParameter<"bool", "false">:$stages);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Shd_MeshAttr : Shd_Attr<"Mesh", "mesh"> {
  let summary = "The logical device mesh";
  let description = [{
    Named axes, the outermost first: `#shd.mesh<[X = 4, Y = 4]>`.

    **Constraints:**
    - (M1) Axis names are distinct.
    - (M2) There are at most 16 axes.
  }];
  let parameters = (ins OptionalArrayRefParameter<"MeshAxisAttr">:$axes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Shd_DimShardingAttr : Shd_Attr<"DimSharding", "dim"> {
  let summary = "The axes of one dimension, the major one first";
  let description = [{
    `{X, Y}`: split over X, then each part over Y. `{}`: not split. `{?}`: open,
    the compiler chooses (pins only).
  }];
  let parameters = (ins OptionalArrayRefParameter<"::mlir::StringAttr">:$axes,
    "bool":$isOpen);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Shd_ShardingAttr : Shd_Attr<"Sharding", "sharding",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "How a tensor lies on the mesh";
  let description = [{
    The axes of each dimension and the axes along which each device holds a
    partial sum (the book's `{U_X}`): `#shd.sharding<[{X, Y}, {} ]>`,
    `#shd.sharding<[{X}, {} ], partial = {Y}>`, `#shd.sharding<[{X}, {?} ]>`.
    As the encoding of a tensor's type it is closed; as a pin, dimensions may be
    open, and then the partial axes are open too unless written.

    **Constraints:**
    - (S1) One entry per dimension of the tensor.
    - (S2) An axis appears at most once, partial axes included.
    - (S3) Every axis is one of the mesh (checked by the operations).
    - (S4) As an encoding, no dimension is open (checked by the operations).
  }];
  let parameters = (ins OptionalArrayRefParameter<"DimShardingAttr">:$dims,
    OptionalArrayRefParameter<"::mlir::StringAttr">:$partial);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isOpen() const {
      return llvm::any_of(getDims(), [](DimShardingAttr d) { return d.getIsOpen(); });
    }
  }];
}

def Shd_IndexingAttr : Shd_Attr<"Indexing", "indexing"> {
  let summary = "The named index of each dimension of operands and results";
  let description = [{
    `<[B, D], [D, F] -> [B, F]>`: a list per operand, then a list per result. An
    index has one extent in the whole operation. Which indices are summed,
    broadcast, normalised or gathered follows from where they stand.

    **Constraints** (checked by the operations):
    - (I1) One list per operand and result, one index per dimension.
    - (I2) An index does not repeat within one list.
    - (I3) Dimensions with the same index have the same extent.
    - (I4) Scales (`f8E8M0FNU`) are no result but of casts and of operations that
      move elements.
  }];
  let parameters = (ins
    OptionalArrayRefParameter<"::mlir::ArrayAttr">:$operands,
    OptionalArrayRefParameter<"::mlir::ArrayAttr">:$results);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// Index names of one operand or result.
    llvm::SmallVector<llvm::StringRef, 4> getOperandIndices(unsigned i) const;
    llvm::SmallVector<llvm::StringRef, 4> getResultIndices(unsigned i) const;
  }];
}

def Shd_HardwareAttr : Shd_Attr<"Hardware", "hardware"> {
  let summary = "The machine: a name and a physical shape";
  let description = [{ `#shd.hardware<"tpu_v5e", [4, 4]>`. The machine's figures
    are not in the IR: passes take them from the compilation's context. }];
  let parameters = (ins StringRefParameter<"name">:$name,
    OptionalArrayRefParameter<"int64_t">:$shape);
  let hasCustomAssemblyFormat = 1;
}

def Shd_CollectiveCostAttr : Shd_Attr<"CollectiveCost", "cost"> {
  let summary = "Price of one run of a collective on one device";
  let description = [{ Bytes (V of the cost model), bytes sent by one device,
    seconds of the bandwidth and latency terms, the physical axes whose
    networks it occupies, and those of the network that sets its time if these
    are fewer. On a calibrated machine, `calibrated_s` has the seconds of the
    fixed, the bandwidth and the ramp term, which add up. }];
  let parameters = (ins Shd_Real<>:$bytes, Shd_Real<>:$wire_bytes,
    Shd_Real<>:$bandwidth_s, Shd_Real<>:$latency_s,
    OptionalArrayRefParameter<"::mlir::StringAttr">:$networks,
    OptionalArrayRefParameter<"::mlir::StringAttr">:$bound_by,
    OptionalParameter<"::mlir::DenseF64ArrayAttr">:$calibrated_s);
  let hasCustomAssemblyFormat = 1;
}

def Shd_GroupAttr : Shd_Attr<"Group", "group"> {
  let summary = "A part of a fusion group";
  let description = [{
    `#shd.group<3>` is the first part of fusion group 3: its leader and, once
    costs are annotated, all that is costed with it. `#shd.group<3, rest>` is
    what follows the leader and is costed apart, or all of a group without one.

    **Constraints:**
    - (F1) The number is at least 0.
  }];
  let parameters = (ins "int64_t":$number,
    DefaultValuedParameter<"::shardc::shd::GroupPart",
                           "::shardc::shd::GroupPart::First">:$part);
  let assemblyFormat = "`<` $number (`,` $part^)? `>`";
  let genVerifyDecl = 1;
}

def Shd_GroupCostAttr : Shd_Attr<"GroupCost", "group_cost"> {
  let summary = "Price of one run of a fusion group (or part) on one device";
  let description = [{ FLOPs, HBM bytes and seconds at peak rates. On a
    calibrated machine, `calibrated_s` has the seconds of compute, of HBM and of
    kernels beside their work. `host` has the bytes to the host and from it, those
    that the host's memory moves, and the seconds of each. }];
  let parameters = (ins Shd_Real<>:$flops, Shd_Real<>:$vector_flops,
    Shd_Real<>:$hbm_bytes, Shd_Real<>:$matrix_s, Shd_Real<>:$vector_s,
    Shd_Real<>:$hbm_s,
    OptionalParameter<"::mlir::DenseF64ArrayAttr">:$host,
    OptionalParameter<"::mlir::DenseF64ArrayAttr">:$calibrated_s);
  let hasCustomAssemblyFormat = 1;
}

/// Names in brackets, behind which other fields may follow.
def Shd_NamesParameter : OptionalArrayRefParameter<"::mlir::StringAttr"> {
  let parser = "parseNameList($_parser)";
  let printer = "printNameList($_printer, $_self)";
}

def Shd_TrainingAttr : Shd_Attr<"Training", "training"> {
  let summary = "How the program is trained";
  let description = [{
    The `train` block of a program: the output that is the loss, and how
    `shd-differentiate`, `shd-add-optimizer` and `shd-microbatch` make a training
    step of it. `moments` and `master` are absent where the optimizer keeps none,
    `reduce` where gradients are sent in the type in which they accumulate,
    `batch` where the first index of the inputs is the batch. 0 microbatches and
    `remat = auto` leave the choice to the search. `save` names what is saved, and
    nothing else is; it and the other pins map names to shardings or `unit`.
    `recomputed` names values that are recomputed although `remat` keeps them:
    `q`, or `q#2` for the second value of that name in the program's order.
    `offload` says what the host's memory holds, and `auto` leaves that to the
    search; `offloaded` names values of repeats that are saved there. With `fused`, a weight is updated where its gradient is made.

    **Constraints:**
    - (B1) Element types are of real numbers.
    - (B2) `microbatches` and `every` are at least 0, `tokens` is positive.
  }];
  let parameters = (ins StringRefParameter<"">:$loss,
    DefaultValuedParameter<"::shardc::shd::Optimizer",
                           "::shardc::shd::Optimizer::AdamW">:$optimizer,
    OptionalParameter<"::mlir::Type">:$moments,
    OptionalParameter<"::mlir::Type">:$master,
    "::mlir::Type":$gradients, OptionalParameter<"::mlir::Type">:$reduce,
    "::mlir::FloatAttr":$lr, "::mlir::FloatAttr":$beta1,
    "::mlir::FloatAttr":$beta2, "::mlir::FloatAttr":$eps,
    "::mlir::FloatAttr":$decay, OptionalParameter<"::mlir::FloatAttr">:$clip,
    OptionalParameter<"::mlir::StringAttr">:$batch,
    DefaultValuedParameter<"int64_t", "0">:$microbatches,
    DefaultValuedParameter<"::shardc::shd::Remat",
                           "::shardc::shd::Remat::Auto">:$remat,
    DefaultValuedParameter<"int64_t", "0">:$every,
    "::mlir::FloatAttr":$tokens,
    Shd_NamesParameter:$frozen,
    OptionalParameter<"::mlir::DictionaryAttr">:$save,
    OptionalParameter<"::mlir::DictionaryAttr">:$gradient_pins,
    OptionalParameter<"::mlir::DictionaryAttr">:$moment_pins,
    OptionalParameter<"::mlir::DictionaryAttr">:$master_pins,
    Shd_NamesParameter:$recomputed,
    DefaultValuedParameter<"::shardc::shd::Offload",
                           "::shardc::shd::Offload::None">:$offload,
    OptionalParameter<"::mlir::DictionaryAttr">:$offloaded,
    DefaultValuedParameter<"bool", "false">:$fused);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Shd_PipelineAttr : Shd_Attr<"Pipeline", "pipeline"> {
  let summary = "Pipeline stages along the index of a repeat";
  let description = [{
    `repeat L@pp`: the devices along the mesh axis `axis` are stages, each of which
    has consecutive iterations of the repeat over `index`, `layers` in all. Before
    `shd-stage`, `held` is 0 and the repeat runs all of them. After it, the program
    is that of one stage which holds `held` layers, the most of any, and has what
    stands before and behind the repeat, too: what the first and the last stage
    have. `order` is the schedule, as the `train` block writes it.

    **Constraints:**
    - (S1) There is at least one layer, and no stage holds more than all.
  }];
  let parameters = (ins StringRefParameter<"the mesh axis">:$axis,
    StringRefParameter<"the repeat's index">:$index, "int64_t":$layers,
    DefaultValuedParameter<"int64_t", "0">:$held,
    StringRefParameter<"the schedule">:$order);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Shd_StageAttr : Shd_Attr<"Stage", "stage"> {
  let summary = "The stages of a pipeline that run an operation, and when";
  let description = [{
    `#shd.stage<first layers : forward>`. `first`, `layers` and `last` are roles
    of stages: the first stage has what stands before the layers, every stage
    has layers, the last one has what stands behind them. The pass is `forward`
    (F), `backward` (B: gradients of activations), `weights` (W: gradients of
    weights), or `update` for what runs once in a step, outside the repeat over
    microbatches. With `partial` the sum over all stages of what they have is
    the value.

    **Constraints:**
    - (G1) At least one stage has the operation.
  }];
  let parameters = (ins "unsigned":$roles, "::shardc::shd::StagePass":$pass,
    DefaultValuedParameter<"bool", "false">:$partial);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // SHARDC_DIALECT_SHD_IR_SHDATTRS_TD
