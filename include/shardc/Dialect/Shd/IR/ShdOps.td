//===- ShdOps.td - Operations of the shd dialect ----------*- tablegen -*-===//

#ifndef SHARDC_DIALECT_SHD_IR_SHDOPS_TD
#define SHARDC_DIALECT_SHD_IR_SHDOPS_TD

include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "shardc/Dialect/Shd/IR/ShdAttrs.td"
include "shardc/Dialect/Shd/IR/ShdEnums.td"
include "shardc/Dialect/Shd/IR/ShdInterfaces.td"
include "shardc/Dialect/Shd/IR/ShdTypes.td"

// Enumeration attributes print a space before themselves: formats that begin
// with one suppress their own.
class Shd_Op<string mnemonic, list<Trait> traits = []>
    : Op<Shd_Dialect, mnemonic, traits>;

/// An operation whose results are printed under their names in the program.
class Shd_ValueOp<string mnemonic, list<Trait> traits = []>
    : Shd_Op<mnemonic, !listconcat(traits,
        [DeclareOpInterfaceMethods<OpAsmOpInterface,
                                   ["getAsmResultNames"]>])> {
  let extraClassDefinition = [{
    void $cppClass::getAsmResultNames(::mlir::OpAsmSetValueNameFn setName) {
      ::shardc::shd::detail::nameResults(getOperation(), setName);
    }
  }];
}

/// An operation that computes tensors from others by named indices; `rule`,
/// `cost` and `gradient` name what it answers otherwise than most operations.
class Shd_ComputeOp<string mnemonic, list<Trait> traits = [],
                    list<string> rule = [], list<string> cost = [],
                    list<string> gradient = []>
    : Shd_ValueOp<mnemonic, !listconcat(traits,
        [Pure, Shd_IndexedTrait,
         DeclareOpInterfaceMethods<Shd_ShardingRuleOpInterface,
                                   !listconcat(["getShardingRule"], rule)>,
         DeclareOpInterfaceMethods<Shd_CostOpInterface, cost>,
         DeclareOpInterfaceMethods<Shd_EvaluationOpInterface>,
         DeclareOpInterfaceMethods<Shd_GradientOpInterface, gradient>])> {
  let hasVerifier = 1;
}

/// One whose devices agree on statistics where normalised indices are split.
class Shd_StatisticsOp<string mnemonic, list<Trait> traits = [],
                       list<string> rule = [], list<string> cost = [],
                       list<string> gradient = []>
    : Shd_ComputeOp<mnemonic, !listconcat(traits,
        [DeclareOpInterfaceMethods<Shd_StatisticsOpInterface>]), rule, cost,
        gradient>;

//===----------------------------------------------------------------------===//
// Program structure
//===----------------------------------------------------------------------===//

def Shd_ProgramOp : Shd_Op<"program",
    [NoRegionArguments, SingleBlock, NoTerminator, IsolatedFromAbove]> {
  let summary = "A whole program on a mesh of a machine";
  let description = [{
    ```mlir
    shd.program "ffn" mesh <[X = 4, Y = 4]> hardware <"tpu_v5e", [4, 4]> { ... }
    ```
    Statements run in order. Without a mesh, the compiler has yet to choose one.
    With `allow_padding`, axes need not divide the extents that they split. A
    program with `training` becomes a step that trains its weights, one with a
    `pipeline` runs in stages.
  }];
  let arguments = (ins StrAttr:$sym, OptionalAttr<Shd_MeshAttr>:$mesh,
    OptionalAttr<Shd_HardwareAttr>:$hardware, UnitAttr:$allow_padding,
    OptionalAttr<Shd_TrainingAttr>:$training,
    OptionalAttr<Shd_PipelineAttr>:$pipeline);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{ $sym (`mesh` $mesh^)? (`hardware` $hardware^)?
    (`allow_padding` $allow_padding^)? (`training` $training^)?
    (`pipeline` $pipeline^)?
    attr-dict-with-keyword $body }];
}

def Shd_DeclareOp : Shd_ValueOp<"declare", [HasParent<"ProgramOp">]> {
  let summary = "An input, a weight, a state or a buffer";
  let description = [{
    `shd.declare weight "Win" [D, F] : tensor<4096x16384xbf16>`. A tensor of which
    each iteration of a repeat has a part is stacked with the index of the repeat
    in front (the outermost of nested repeats first):
    `shd.declare weight "Wq" [L, D, K] stacked 1 : tensor<80x4096x2048xbf16>`. All
    parts are there during the whole step; `shd.part` reads one.

    A `gradient` and what is `saved` for the backward pass are buffers: zeros at
    the beginning of a step, which writes them (`shd.update`) and then reads them
    (`shd.part`). A `moment` or `master` copy is the optimizer's state `of` a
    weight, a `gradient` that of the loss. With `shd.host` the tensor is in the
    host's memory.

    **Constraints:**
    - (D1) One index per dimension.
    - (D2) Inputs are not stacked, others along dimensions that they have and no
      axis splits.
    - (D3) Only a gradient is stored as a partial sum.
    - (D4) Gradients and master copies are of a weight, moments may be, others are
      of none.
  }];
  let arguments = (ins Shd_TensorKindAttr:$kind, StrAttr:$sym,
    StrArrayAttr:$indices, DefaultValuedOptionalAttr<I64Attr, "0">:$stacked,
    OptionalAttr<StrAttr>:$of);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ `` $kind $sym $indices (`stacked` $stacked^)?
    (`of` $of^)? attr-dict `:` type($result) }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    bool isBuffer() { return shardc::shd::isBuffer(getKind()); }
    /// True for a weight that is no scale of others.
    bool isParameter() {
      return getKind() == TensorKind::Weight &&
             !isScale(getType().getElementType());
    }
  }];
}

def Shd_PartOp : Shd_ValueOp<"part", [Pure]> {
  let summary = "The part of a stacked tensor that belongs to an iteration";
  let description = [{
    `shd.part %Wq[%i] : tensor<80x4096x2048xbf16> -> tensor<4096x2048xbf16>`. A
    view: it costs nothing and takes no memory of its own, is stored as the
    tensor is, and reports call it by the tensor's name. Several parts of one
    tensor may be read, in several repeats. Of a buffer it is what the updates
    that run before it have left there; `shd.part %g[]` is all of one that is not
    stacked.

    **Constraints:**
    - (Q1) The numbers are those of different repeats around the operation, the
      outermost first, and the tensor is made outside of these.
    - (Q2) They run as often as the tensor's first dimensions are long: a repeat
      with `shd.segments`, all segments together. A buffer for the backward pass
      has parts for the iterations of one segment, or for the beginnings of all
      segments and the other iterations of one.
    - (Q3) The result is the rest of the tensor; no axis splits the first
      dimensions.
    - (Q4) Only of a buffer is all of it read.
    - (Q5) The numbers are as many as the declaration has stacked dimensions;
      fewer where only parts of the part are read.
  }];
  let arguments = (ins Shd_Tensor:$source, Variadic<Shd_Number>:$at);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ $source `[` $at `]` attr-dict `:` type($source) `->`
    type($result) }];
  let hasVerifier = 1;
}

def Shd_OutputOp : Shd_Op<"output", [HasParent<"ProgramOp">]> {
  let summary = "A value that leaves the program";
  let description = [{
    **Constraints:**
    - (O1) One index per dimension.
  }];
  let arguments = (ins StrAttr:$sym, Shd_Tensor:$value,
    StrArrayAttr:$indices);
  let assemblyFormat = "$sym $value $indices attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Shd_UpdateOp : Shd_Op<"update",
    [ParentOneOf<["ProgramOp", "RepeatOp"]>]> {
  let summary = "The value that a tensor has at the end of the step";
  let description = [{
    `shd.update %s = %s_2 : tensor<...>, tensor<...>`, and of a stacked tensor
    the part that an iteration writes: `shd.update %kc[%i] = %kc_2 : ...`. The
    value is stored as the tensor is. A buffer has it from there on.

    **Constraints:**
    - (U1) The tensor is declared and no input, and the value has the type of the
      part that it replaces, as in Q1 to Q3.
    - (U2) It is updated by one operation, in each iteration of the repeats whose
      numbers it names; others are around it only if it is a buffer. A second one
      may update a buffer for the backward pass where a segment runs again.
  }];
  let arguments = (ins Shd_Tensor:$value, Shd_Tensor:$state,
    Variadic<Shd_Number>:$at);
  let assemblyFormat = [{ $state (`[` $at^ `]`)? `=` $value attr-dict `:`
    type($state) `,` type($value) }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    DeclareOp getDeclaration() {
      return getState().getDefiningOp<DeclareOp>();
    }
    llvm::StringRef getSym() { return getDeclaration().getSym(); }
  }];
}

def Shd_RepeatOp : Shd_ValueOp<"repeat", [SingleBlock,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "Runs its body `count` times, carrying values";
  let description = [{
    ```mlir
    %y = shd.repeat "L" = 80 (%x) : (tensor<...>) -> (tensor<...>) {
    ^bb0(%i: tensor<i32>, %x_in: tensor<...>):
      ...
      shd.yield %x_out : tensor<...>
    }
    ```
    The first block argument is the iteration's number; the others are the
    carried values, each with one type and one sharding on entry and exit.
    Iterations run from number 0 on, or with `reverse` (`"L" = 80 reverse (%x)`)
    from the last number down to 0.

    A repeat with `shd.segments = array<i64: 80, 8>` runs one segment of 8 of 80
    iterations, that of the number which the repeat around it has; its own numbers
    go on from segment to segment. The last segment may be shorter. One iteration
    less than 8 may run: an update with `shd.ahead` then writes the part of the
    next iteration.

    **Constraints:**
    - (R1) The count is at least 1.
    - (R2) Carried operands, block arguments, yielded values and results agree
      in number and type.
    - (R3) The first block argument is a `tensor<i32>`.
  }];
  let arguments = (ins StrAttr:$index, I64Attr:$count, UnitAttr:$reverse,
    Variadic<Shd_Tensor>:$inits);
  let results = (outs Variadic<Shd_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{ $index `=` $count (`reverse` $reverse^)? `(` $inits
    `)` attr-dict `:` functional-type($inits, $results) $body }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    mlir::BlockArgument getIteration() { return getBody().getArgument(0); }
    llvm::ArrayRef<mlir::BlockArgument> getCarried() {
      return getBody().getArguments().drop_front();
    }
    /// The number of the iteration that runs behind `step` others.
    int64_t numberOf(int64_t step) {
      return getReverse() ? int64_t(getCount()) - 1 - step : step;
    }
  }];
}

def Shd_YieldOp : Shd_Op<"yield", [Terminator, Pure, HasParent<"RepeatOp">]> {
  let summary = "The carried values of the next iteration";
  let arguments = (ins Variadic<Shd_Tensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

//===----------------------------------------------------------------------===//
// Computation
//===----------------------------------------------------------------------===//

def Shd_ConstantOp : Shd_ValueOp<"constant",
    [Pure, ConstantLike, AllTypesMatch<["value", "result"]>,
     DeclareOpInterfaceMethods<Shd_ExtentsOpInterface, ["resizeAttributes"]>,
     DeclareOpInterfaceMethods<Shd_EvaluationOpInterface>]> {
  let summary = "A scalar; costs nothing and is on every device";
  let description = [{
    `shd.constant dense<1.0> : tensor<f32>`. The attribute `shd.inverse_of` says of
    which extents the value is one over the product, as a mean has it; doubles
    are then not rounded, and the value follows the extents. With `shd.extent` an
    integer is an extent, and follows it.

    **Constraints:**
    - (Z1) The value has no dimensions.
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = "$value attr-dict";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Shd_EinsumOp : Shd_ComputeOp<"einsum", [], [],
                                 ["readsPrologues", "runsInChunks"]> {
  let summary = "A product of two tensors that sums some index";
  let description = [{
    `shd.einsum(%in, %w) <[B, D], [D, F] -> [B, F]> : ...`. Indices that the
    result lacks are summed over.

    **Constraints:**
    - (E1) Every result index is one of an operand.
    - (E2) Some index is summed.
  }];
  let arguments = (ins Shd_Tensor:$lhs, Shd_Tensor:$rhs,
    Shd_IndexingAttr:$indexing);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ `(` operands `)` $indexing attr-dict `:`
    functional-type(operands, results) }];
}

def Shd_ElementwiseOp : Shd_ComputeOp<"elementwise", [], ["getFunctionName"],
                                      ["runsInChunks", "isCast"]> {
  let summary = "One function of each element; operands are broadcast by name";
  let description = [{
    `shd.elementwise silu(%g) <[B, F] -> [B, F]> : ...`. An operand that lacks
    an index of the result is broadcast along it. `cast` changes the element
    type, and passes partial sums on where that rounds nothing; `copy` broadcasts
    or reorders dimensions; `stop_gradient` is its operand, which gets no gradient
    from it. `rem` is the remainder of a division that rounds down: it has the
    divisor's sign, and is 0 where that is 0.

    **Constraints:**
    - (W1) Every index of an operand is one of the result.
    - (W2) The function has as many operands as it needs.
    - (W3) Comparisons give `i1`, and the condition of `where` is `i1`.
    - (W4) `rem` takes and gives integers.
  }];
  let arguments = (ins Shd_FunctionAttr:$function,
    Variadic<Shd_Tensor>:$inputs, Shd_IndexingAttr:$indexing);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ `` $function `(` $inputs `)` $indexing attr-dict `:`
    functional-type($inputs, $result) }];
}

def Shd_ReduceOp : Shd_StatisticsOp<"reduce", [], ["getFunctionName"]> {
  let summary = "Sum, mean, maximum, minimum or argmax over indices";
  let description = [{
    `shd.reduce max(%x) <[B, S] -> [B]> : ...`. Reduces the indices that the
    result lacks. Over a sharded index, `sum` and `mean` give partial sums; the
    others agree on their result at once (statistics).

    With statistics (`stats`), what the devices agreed on.

    **Constraints:**
    - (X1) The result's indices are some of the operand's.
  }];
  let arguments = (ins Shd_ReductionAttr:$kind, Shd_Tensor:$input,
    Variadic<Shd_Tensor>:$stats, Shd_IndexingAttr:$indexing);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ `` $kind `(` $input `)` $indexing
    (`stats` `(` $stats^ `:` type($stats) `)`)? attr-dict `:`
    functional-type($input, $result) }];
}

def Shd_NormalizeOp : Shd_StatisticsOp<"normalize", [AttrSizedOperandSegments],
                                       ["getFunctionName"]> {
  let summary = "softmax, logsumexp, rmsnorm or layernorm over indices";
  let description = [{
    `shd.normalize rmsnorm(%x, %g) over [D] <[B, D], [D] -> [B, D]> : ...`.
    `rmsnorm` and `layernorm` may have a scale and a bias, which carry only
    normalised indices or indices of the input. `logsumexp` drops the indices.
    Computed in f32. Over a sharded index the devices agree on statistics.

    **Constraints:**
    - (N1) Every index in `over` is one of the input.
    - (N2) The result has the input's indices, without `over` for logsumexp.
    - (N3) Scale and bias belong to rmsnorm (scale) and layernorm only.
    - (N4) Their indices are some of the input's.
  }];
  let arguments = (ins Shd_NormalizationAttr:$kind,
    Variadic<Shd_Tensor>:$inputs, StrArrayAttr:$over,
    Variadic<Shd_Tensor>:$stats, Shd_IndexingAttr:$indexing,
    DefaultValuedAttr<F64Attr, "1e-6">:$eps);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ `` $kind `(` $inputs `)` `over` $over $indexing
    (`stats` `(` $stats^ `:` type($stats) `)`)? attr-dict `:`
    functional-type($inputs, $result) }];
}

def Shd_AttentionOp : Shd_StatisticsOp<"attention", [AttrSizedOperandSegments,
    Shd_AttentionOpInterface,
    DeclareOpInterfaceMethods<Shd_ExtentsOpInterface, ["resizeAttributes"]>],
    [], ["readsPrologues", "getExecutedFlops"], ["prepareGradient"]> {
  let summary = "Scaled dot-product attention that never writes its scores";
  let description = [{
    `shd.attention(%q, %k, %v at %p key_at %kp sink %s bias %b) over "H", "S" query "T" <...>
    causal : ...`.
    Scores are q . k over `head`, softmax over `key`, contracted with v. The
    result has q's indices without `head` and v's without `key`. `query` names
    the index along which query positions run (0, 1, ...) when `at` is absent
    and positions matter; `at` gives positions otherwise. `key_at` gives those of
    the keys, which are 0, 1, ... without; a key at a negative position is masked
    (an empty slot of a ring buffer). Where v has an index
    of `head`'s name, it is the result's, not the one that scores sum over.
    `bias` is added to the scaled and capped scores. `sink` is one more score of
    each query, of a key whose value is 0.

    A second result is each query's logsumexp of its scores (minus infinity where
    every key is masked), which `attention_grad` reads. Over a split key index
    the first result is a partial sum, the second is whole.

    **Constraints:**
    - (T1) `head` is an index of q and k; `key` of k and v and not of q.
    - (T2) k's other indices are q's; v's are k's or new ones.
    - (T3) A window is at least 1 and implies `causal`.
    - (T4) `query` is an index of q that k lacks; `at` holds integers and has
      indices of q. `causal` needs one of the two.
    - (T5) The result has the indices named above.
    - (T6) The logsumexp is f32 and has q's indices without `head`.
    - (T7) A sink holds floats and has indices of q without `head`.
    - (T8) A bias holds floats and has indices of q without `head`, and `key`.
    - (T9) `key_at` holds integers, has `key` and else indices of k without
      `head`, and needs `causal`.
  }];
  let arguments = (ins Shd_Tensor:$q, Shd_Tensor:$k,
    Shd_Tensor:$v, Optional<Shd_Tensor>:$at, Optional<Shd_Tensor>:$key_at,
    Optional<Shd_Tensor>:$sink, Optional<Shd_Tensor>:$bias,
    Variadic<Shd_Tensor>:$stats,
    Shd_IndexingAttr:$indexing,
    StrAttr:$head, StrAttr:$key, OptionalAttr<StrAttr>:$query,
    UnitAttr:$causal, OptionalAttr<I64Attr>:$window,
    OptionalAttr<F64Attr>:$scale, OptionalAttr<F64Attr>:$softcap);
  let results = (outs Shd_Tensor:$result, Optional<Shd_Tensor>:$logsumexp);
  let assemblyFormat = [{ `(` $q `,` $k `,` $v (`at` $at^)?
    (`key_at` $key_at^)? (`sink` $sink^)? (`bias` $bias^)? `)` `over` $head `,` $key
    (`query` $query^)? $indexing (`causal` $causal^)?
    (`window` $window^)? (`scale` $scale^)? (`softcap` $softcap^)?
    (`stats` `(` $stats^ `:` type($stats) `)`)? attr-dict `:`
    type($q) `,` type($k) `,` type($v) (`,` type($at)^)?
    (`key_at` type($key_at)^)? (`sink` type($sink)^)? (`bias` type($bias)^)? `->` type($result)
    (`,` type($logsumexp)^)? }];
  let extraClassDeclaration = [{
    /// Positions of operands; those that may be absent follow each other.
    static constexpr unsigned kQueryOperand = 0;
    static constexpr unsigned kKeyOperand = 1;
    static constexpr unsigned kValueOperand = 2;
    static constexpr unsigned kAtOperand = 3;
    unsigned getAtOperand() { return kAtOperand; }
    unsigned getKeyAtOperand() { return kAtOperand + (getAt() ? 1 : 0); }
    unsigned getSinkOperand() {
      return getKeyAtOperand() + (getKeyAt() ? 1 : 0);
    }
    unsigned getBiasOperand() { return getSinkOperand() + (getSink() ? 1 : 0); }
    bool hasValues(unsigned tensor) { return tensor >= kValueOperand; }
  }];
}

def Shd_AttentionGradOp : Shd_ComputeOp<"attention_grad",
    [AttrSizedOperandSegments, Shd_AttentionOpInterface,
     DeclareOpInterfaceMethods<Shd_ExtentsOpInterface, ["resizeAttributes"]>],
    [], ["readsPrologues", "getExecutedFlops"]> {
  let summary = "The gradients of attention's queries, keys, values and bias";
  let description = [{
    `shd.attention_grad(%q, %k, %v, %o, %do, %lse) over "H", "S" query "T" <...>
    causal : (...) -> (...)`: gradients of q, k and v from the result of
    `shd.attention`, the gradient of that and its logsumexp; with the same
    attributes. The scores are computed again, and never written. Over a split
    key index the gradient of q is a partial sum; over a split index of q that k
    (v) lacks, that of k (v). With a bias, a fourth result may be its gradient.
    Sinks are in the logsumexp; their gradient needs no scores.

    **Constraints:**
    - (B1) q, k, v, positions and attributes are as those of attention (T1 to T4,
      T9).
    - (B2) The fourth and fifth operand have the indices of attention's result
      (T5) in one order, the sixth is its logsumexp (T6).
    - (B3) The results have the indices of q, k, v and bias, in their order.
    - (B4) The bias is as that of attention (T8); only with it is there a fourth
      result.
  }];
  let arguments = (ins Shd_Tensor:$q, Shd_Tensor:$k, Shd_Tensor:$v,
    Shd_Tensor:$output, Shd_Tensor:$gradient, Shd_Tensor:$logsumexp,
    Optional<Shd_Tensor>:$at, Optional<Shd_Tensor>:$key_at,
    Optional<Shd_Tensor>:$bias, Shd_IndexingAttr:$indexing,
    StrAttr:$head, StrAttr:$key, OptionalAttr<StrAttr>:$query,
    UnitAttr:$causal, OptionalAttr<I64Attr>:$window,
    OptionalAttr<F64Attr>:$scale, OptionalAttr<F64Attr>:$softcap);
  let results = (outs Shd_Tensor:$dq, Shd_Tensor:$dk, Shd_Tensor:$dv,
    Optional<Shd_Tensor>:$dbias);
  let assemblyFormat = [{ `(` $q `,` $k `,` $v `,` $output `,` $gradient `,`
    $logsumexp (`at` $at^)? (`key_at` $key_at^)? (`bias` $bias^)? `)` `over` $head `,` $key
    (`query` $query^)? $indexing
    (`causal` $causal^)? (`window` $window^)? (`scale` $scale^)?
    (`softcap` $softcap^)? attr-dict `:` functional-type(operands, results) }];
  let extraClassDeclaration = [{
    /// Positions of operands; those that may be absent follow each other.
    static constexpr unsigned kQueryOperand = 0;
    static constexpr unsigned kKeyOperand = 1;
    static constexpr unsigned kValueOperand = 2;
    static constexpr unsigned kOutputOperand = 3;
    static constexpr unsigned kGradientOperand = 4;
    static constexpr unsigned kLogSumExpOperand = 5;
    static constexpr unsigned kAtOperand = 6;
    /// Positions of results.
    static constexpr unsigned kValueResult = 2;
    static constexpr unsigned kBiasResult = 3;
    unsigned getAtOperand() { return kAtOperand; }
    unsigned getKeyAtOperand() { return kAtOperand + (getAt() ? 1 : 0); }
    unsigned getBiasOperand() {
      return getKeyAtOperand() + (getKeyAt() ? 1 : 0);
    }
    bool hasValues(unsigned tensor) {
      unsigned operands = (*this)->getNumOperands();
      return tensor < operands ? tensor >= kValueOperand
                               : tensor == operands + kValueResult;
    }
  }];
}

def Shd_GatherOp : Shd_ComputeOp<"gather",
    [DeclareOpInterfaceMethods<Shd_PositionsOpInterface>], [], ["holdsRows"]> {
  let summary = "Reads elements at positions given by integer tensors";
  let description = [{
    `shd.gather(%emb, %tokens) <[V, D], [B, T] -> [B, T, D]> at [0] : ...`:
    dimension `positions[i]` of the first operand is read where operand i + 1
    says; the index it has in `indexing` is not one of the result. An index that
    stands in both the table and a position tensor means the same element.
    A scalar position (the iteration's number, a constant) selects one slice.

    **Constraints:**
    - (G1) One gathered dimension per position tensor, integer tensors.
    - (G2) The result has the table's remaining indices and the positions'.
  }];
  let arguments = (ins Shd_Tensor:$table,
    Variadic<Shd_Tensor>:$positions, Shd_IndexingAttr:$indexing,
    DenseI64ArrayAttr:$dims);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ `(` operands `)` $indexing `at` $dims attr-dict `:`
    functional-type(operands, results) }];
}

def Shd_ScatterOp : Shd_ComputeOp<"scatter",
    [DeclareOpInterfaceMethods<Shd_PositionsOpInterface>],
    ["getWrittenIndices"], ["holdsRows", "getInPlaceOperand"]> {
  let summary = "Writes elements at positions given by integer tensors";
  let description = [{
    `shd.scatter(%kc, %k, %pos) <[B, S, K, H], [B, K, H], [B] -> [B, S, K, H]>
    at [1] : ...`: a copy of the first operand with the second's elements at the
    positions (`accumulate`: added). Works in place.

    **Constraints:**
    - (C1) As for gather, the update in place of the result.
    - (C2) The result has the type and indices of the first operand.
  }];
  let arguments = (ins Shd_Tensor:$destination, Shd_Tensor:$update,
    Variadic<Shd_Tensor>:$positions, Shd_IndexingAttr:$indexing,
    DenseI64ArrayAttr:$dims, UnitAttr:$accumulate);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ `(` operands `)` $indexing `at` $dims
    (`accumulate` $accumulate^)? attr-dict `:` functional-type(operands, results) }];
}

def Shd_ScatterSumOp : Shd_ComputeOp<"scatter_sum",
    [DeclareOpInterfaceMethods<Shd_PositionsOpInterface, ["getPositioned"]>],
    [], ["holdsRows"]> {
  let summary = "Adds elements at positions given by integer tensors to zeros";
  let description = [{
    `shd.scatter_sum(%g, %tokens) <[B, T, D], [B, T] -> [V, D]> at [0] : ...`:
    the gradient of a gather. Each element of the first operand is added to the
    element of the result that `positions[i]` names in dimension `dims[i]`;
    elements that nothing is added to are 0. Over indices that the result lacks
    it is a reduction. Sums are of the result's element type.

    **Constraints:**
    - (Y1) One dimension of the result per position tensor, integer tensors.
    - (Y2) The first operand has the result's other indices and the positions'.
  }];
  let arguments = (ins Shd_Tensor:$update,
    Variadic<Shd_Tensor>:$positions, Shd_IndexingAttr:$indexing,
    DenseI64ArrayAttr:$dims);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ `(` operands `)` $indexing `at` $dims attr-dict `:`
    functional-type(operands, results) }];
}

def Shd_RopeOp : Shd_ComputeOp<"rope",
    [DeclareOpInterfaceMethods<Shd_ExtentsOpInterface,
                               ["collectExtentRules"]>]> {
  let summary = "Rotary position embedding";
  let description = [{
    `shd.rope(%q) over "H" positions "T" <[B, T, N, H] -> [B, T, N, H]> : ...`,
    or with a tensor of positions: `shd.rope(%q, %pos) over "H" <...>`. Element
    i of `head` pairs with i + size / 2, so that index stays whole.

    **Constraints:**
    - (P1) `head` is an index of the input with an even extent.
    - (P2) Either `positions` names an index of the input or a tensor of
      integers is given, whose indices are some of the input's.
    - (P3) The result has the input's indices.
  }];
  let arguments = (ins Shd_Tensor:$input, Optional<Shd_Tensor>:$at,
    Shd_IndexingAttr:$indexing, StrAttr:$head, OptionalAttr<StrAttr>:$positions,
    DefaultValuedAttr<F64Attr, "10000.0">:$theta, UnitAttr:$inverse);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ `(` operands `)` `over` $head (`positions` $positions^)?
    $indexing (`inverse` $inverse^)? attr-dict `:` functional-type(operands, results) }];
}

def Shd_CrossEntropyOp : Shd_StatisticsOp<"cross_entropy", [], [],
                                          ["getRowChunks"]> {
  let summary = "One loss per label";
  let description = [{
    `shd.cross_entropy(%logits, %labels) over "V" <[B, V], [B] -> [B]> : ...`.
    Computed in f32. `over "V" chunks 8` runs the product that makes the logits
    and the loss in eight chunks of the labels, `chunks all` both in one kernel
    (docs/CostModel.md#2-one-operation-on-one-device); the values are the same.

    **Constraints:**
    - (L1) `classes` is an index of the logits and not of the labels.
    - (L2) Labels are integers with the result's indices, the logits' others.
    - (L3) `chunks` is 0 (none), positive, or -1 (`all`).
  }];
  let arguments = (ins Shd_Tensor:$logits, Shd_Tensor:$labels,
    Variadic<Shd_Tensor>:$stats, Shd_IndexingAttr:$indexing,
    StrAttr:$classes, DefaultValuedAttr<I64Attr, "kNoChunks">:$chunks);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ `(` $logits `,` $labels `)` `over` $classes
    custom<RowChunks>($chunks) $indexing
    (`stats` `(` $stats^ `:` type($stats) `)`)? attr-dict `:` type($logits) `,`
    type($labels) `->` type($result) }];
}

def Shd_AdamWOp : Shd_ComputeOp<"adamw"> {
  let summary = "One step of AdamW for one tensor";
  let description = [{
    `%p, %m, %v, %w = shd.adamw(%g, %master, %m0, %v0, %c1, %c2) <...> lr 0.001
    beta 0.9 0.999 eps 1e-8 decay 0.01 : ...` (Loshchilov and Hutter, 2019),
    computed in f32:

    ```
    m = beta1 m0 + (1 - beta1) g      v = beta2 v0 + (1 - beta2) g^2
    p = p0 - lr (m / c1 / (sqrt(v / c2) + eps) + decay p0)
    ```

    `c1` and `c2` are 1 - beta^t at step t. A seventh operand scales the gradient
    first. The results are p and, in their own types, both moments; a fourth, if
    it is there, is p rounded to another type.

    **Constraints:**
    - (O2) Gradient, weight and moments have one shape and the same indices, and
      so have the results; the other operands are scalars.
  }];
  let arguments = (ins Shd_Tensor:$gradient, Shd_Tensor:$weight, Shd_Tensor:$m,
    Shd_Tensor:$v, Shd_Tensor:$correction1, Shd_Tensor:$correction2,
    Optional<Shd_Tensor>:$scale, Shd_IndexingAttr:$indexing, F64Attr:$lr,
    F64Attr:$beta1, F64Attr:$beta2, F64Attr:$eps, F64Attr:$decay);
  let results = (outs Shd_Tensor:$updated, Shd_Tensor:$new_m,
    Shd_Tensor:$new_v, Optional<Shd_Tensor>:$rounded);
  let assemblyFormat = [{ `(` operands `)` $indexing `lr` $lr `beta` $beta1
    $beta2 `eps` $eps `decay` $decay attr-dict `:` functional-type(operands, results) }];
}

def Shd_SgdOp : Shd_ComputeOp<"sgd", [AttrSizedOperandSegments]> {
  let summary = "One step of stochastic gradient descent for one tensor";
  let description = [{
    `%p, %m, %w = shd.sgd(%g, %master) momentum(%m0) scale(%s) <...> lr 0.1 beta
    0.9 decay 0.0 : ...` (Sutskever and others, 2013, as PyTorch has it), computed
    in f32:

    ```
    m = beta m0 + s g + decay p0      p = p0 - lr m
    ```

    Without a momentum, `beta m0` is 0 and m is not kept; without a scale, s is 1.
    The results are p, then m in its own type if there is a momentum, then, if it
    is there, p rounded to another type.

    **Constraints:**
    - (O3) Gradient, weight and momentum have one shape and the same indices, and
      so have the results; the scale is a scalar.
    - (O4) There are one or two results, and one more with a momentum.
  }];
  let arguments = (ins Shd_Tensor:$gradient, Shd_Tensor:$weight,
    Optional<Shd_Tensor>:$momentum, Optional<Shd_Tensor>:$scale,
    Shd_IndexingAttr:$indexing, F64Attr:$lr, F64Attr:$beta, F64Attr:$decay);
  let results = (outs Shd_Tensor:$updated, Variadic<Shd_Tensor>:$others);
  let assemblyFormat = [{ `(` $gradient `,` $weight `)`
    (`momentum` `(` $momentum^ `)`)? (`scale` `(` $scale^ `)`)? $indexing `lr` $lr `beta` $beta `decay` $decay
    attr-dict `:` functional-type(operands, results) }];
  let extraClassDeclaration = [{
    /// The momentum after the step; null where none is kept.
    ::mlir::Value getNewMomentum() {
      return getMomentum() ? ::mlir::Value(getOthers().front()) : nullptr;
    }
    /// The weight in another type than the one that the step is made in; null
    /// where there is none.
    ::mlir::Value getRounded() {
      return getOthers().size() > (getMomentum() ? 1u : 0u)
                 ? ::mlir::Value(getOthers().back())
                 : nullptr;
    }
  }];
}

//===----------------------------------------------------------------------===//
// Experts
//===----------------------------------------------------------------------===//

def Shd_TopKOp : Shd_ComputeOp<"topk",
    [DeclareOpInterfaceMethods<Shd_ExtentsOpInterface,
                               ["collectExtentRules"]>]> {
  let summary = "True at the largest elements along an index";
  let description = [{
    `shd.topk(%g) over "E" k 2 <[B, T, E] -> [B, T, E]> : (tensor<8x16x4xf32>) ->
    tensor<8x16x4xi1>`: of equal elements the lower ones. It has no gradient, and
    needs the index whole.

    **Constraints:**
    - (A1) `over` is an index of the operand; k is at least 1 and at most its
      extent.
    - (A2) The result is of `i1` and has the operand's indices.
  }];
  let arguments = (ins Shd_Tensor:$input, Shd_IndexingAttr:$indexing,
    StrAttr:$over, I64Attr:$k);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ `(` $input `)` `over` $over `k` $k $indexing attr-dict
    `:` functional-type($input, $result) }];
}

/// One that moves tokens to the slots of experts or back; `k`, `blocks` and
/// `limit` say what picks may be.
class Shd_ExpertsOp<string mnemonic>
    : Shd_ComputeOp<mnemonic, [Shd_ExpertsOpInterface,
        DeclareOpInterfaceMethods<Shd_ExtentsOpInterface,
            ["collectExtentRules", "resizeAttributes"]>], [], ["holdsRows"]> {
  dag attributes = (ins Shd_IndexingAttr:$indexing, StrAttr:$experts,
    StrAttr:$slots, I64Attr:$k, OptionalAttr<I64Attr>:$blocks,
    OptionalAttr<I64Attr>:$limit, UnitAttr:$dropless,
    OptionalAttr<F64Attr>:$imbalance);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ `(` operands `)` `over` $experts `,` $slots `k` $k
    (`blocks` $blocks^ `limit` $limit)? (`dropless` $dropless^)?
    (`imbalance` $imbalance^)? $indexing attr-dict `:`
    functional-type(operands, results) }];
}

def Shd_DispatchOp : Shd_ExpertsOp<"dispatch"> {
  let summary = "Puts tokens into the slots of the experts that they pick";
  let description = [{
    `shd.dispatch(%x, %p) over "E", "C" k 2 <[B, T, D], [B, T, E] -> [E, B, C,
    D]> : ...`. Indices that x shares with the result and the picks are groups,
    those of x and the picks that the result lacks are a group's tokens, the others
    of x are features. A group's tokens take the slots of an expert in order; the
    surplus is dropped, empty slots are 0. With weights (`<[B, T, D], [B, T, E], [B,
    T, E] -> ...>`) each token is multiplied by its own.

    Where experts or slots are split, each device fills its own; where tokens
    are, the result is a partial sum. Picks are whole but for the groups.

    **Constraints:**
    - (G3) Picks are of `i1`, with the groups, the tokens and `experts`, which x
      lacks; x has the groups, the tokens and features.
    - (G4) The slots' side has `experts`, the groups, `slots` and the features;
      weights have the indices of the picks.
    - (G5) k is at least 1 and at most the extent of `experts`; `blocks` divide
      it, and `limit` is at least 1 and at most `blocks`; so many blocks have at
      least k experts.
    - (G6) `imbalance` is at least 1 and stands only with `dropless`.
  }];
  let arguments = !con((ins Shd_Tensor:$input, Shd_Tensor:$picks,
    Optional<Shd_Tensor>:$weights), attributes);
  let extraClassDeclaration = [{
    unsigned getTokensTensor() { return 0; }
    unsigned getSlotsTensor() { return getNumOperands(); }
    std::optional<unsigned> getWeightsTensor() {
      return getWeights() ? std::optional(2u) : std::nullopt;
    }
  }];
}

def Shd_CombineOp : Shd_ExpertsOp<"combine"> {
  let summary = "Brings the results of experts back to their tokens";
  let description = [{
    `shd.combine(%ye, %p, %w) over "E", "C" k 2 <[E, B, C, D], [B, T, E], [B, T,
    E] -> [B, T, D]> : ...`: each token's sum over the experts that it picks, each
    times its weight (without weights: once); nothing for an expert that dropped
    it. Over split experts and slots it is a partial sum.

    **Constraints:** as for dispatch (G3 to G6), with the result in place of x.
  }];
  let arguments = !con((ins Shd_Tensor:$input, Shd_Tensor:$picks,
    Optional<Shd_Tensor>:$weights), attributes);
  let extraClassDeclaration = [{
    unsigned getTokensTensor() { return getNumOperands(); }
    unsigned getSlotsTensor() { return 0; }
    std::optional<unsigned> getWeightsTensor() {
      return getWeights() ? std::optional(2u) : std::nullopt;
    }
  }];
}

def Shd_CombineGradOp : Shd_ExpertsOp<"combine_grad"> {
  let summary = "The gradient of the weights of a combine";
  let description = [{
    `shd.combine_grad(%dy, %p, %ye) over "E", "C" k 2 <[B, T, D], [B, T, E], [E,
    B, C, D] -> [B, T, E]> : ...`: the product of each token's gradient with the
    result of each expert that it picks, summed over the features; 0 elsewhere.

    **Constraints:** as for dispatch (G3 to G6), with the result as the weights.
  }];
  let arguments = !con((ins Shd_Tensor:$gradient, Shd_Tensor:$picks,
    Shd_Tensor:$input), attributes);
  let extraClassDeclaration = [{
    unsigned getTokensTensor() { return 0; }
    unsigned getSlotsTensor() { return 2; }
    std::optional<unsigned> getWeightsTensor() { return getNumOperands(); }
  }];
}

//===----------------------------------------------------------------------===//
// Layout of indices
//===----------------------------------------------------------------------===//

def Shd_SplitOp : Shd_ComputeOp<"split"> {
  let summary = "One index becomes several, the first the major one";
  let description = [{
    `shd.split(%x) "D" into ["A", "B"] <[T, D] -> [T, A, B]> : ...`.

    **Constraints:**
    - (K1) The extents of the parts multiply to the whole's.
    - (K2) The result has the parts in place of the whole.
  }];
  let arguments = (ins Shd_Tensor:$input, StrAttr:$whole,
    StrArrayAttr:$parts, Shd_IndexingAttr:$indexing);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ `(` $input `)` $whole `into` $parts $indexing attr-dict
    `:` functional-type($input, $result) }];
}

def Shd_MergeOp : Shd_ComputeOp<"merge"> {
  let summary = "Several indices become one, the first the major one";
  let description = [{
    `shd.merge(%x) ["A", "B"] into "D" <[T, A, B] -> [T, D]> : ...`.

    **Constraints:**
    - (M1) The extents of the parts multiply to the whole's.
    - (M2) The result has the whole in place of the parts.
  }];
  let arguments = (ins Shd_Tensor:$input, StrArrayAttr:$parts,
    StrAttr:$whole, Shd_IndexingAttr:$indexing);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ `(` $input `)` $parts `into` $whole $indexing attr-dict
    `:` functional-type($input, $result) }];
}

def Shd_SliceOp : Shd_ComputeOp<"slice",
    [DeclareOpInterfaceMethods<Shd_ExtentsOpInterface,
                               ["collectExtentRules", "resizeAttributes"]>]> {
  let summary = "A range of one index, under another name";
  let description = [{
    `shd.slice(%x) "I" [2, 6] into "J" <[I, D] -> [J, D]> : ...`; the end is
    excluded.

    **Constraints:**
    - (S1) The range lies in the whole and has the extent of the part.
    - (S2) The result has the part in place of the whole.
  }];
  let arguments = (ins Shd_Tensor:$input, StrAttr:$whole,
    DenseI64ArrayAttr:$range, StrAttr:$part, Shd_IndexingAttr:$indexing);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ `(` $input `)` $whole $range `into` $part $indexing
    attr-dict `:` functional-type($input, $result) }];
}

def Shd_ConcatOp : Shd_ComputeOp<"concat",
    [DeclareOpInterfaceMethods<Shd_ExtentsOpInterface,
                               ["collectExtentRules"]>]> {
  let summary = "Tensors one after the other along an index";
  let description = [{
    `shd.concat(%x, %y) ["I1", "I2"] into "I" <[I1, D], [I2, D] -> [I, D]>`.

    **Constraints:**
    - (J1) One part per operand; their extents add up to the whole's.
    - (J2) Each operand has its part in place of the result's whole.
  }];
  let arguments = (ins Variadic<Shd_Tensor>:$inputs, StrArrayAttr:$parts,
    StrAttr:$whole, Shd_IndexingAttr:$indexing);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ `(` $inputs `)` $parts `into` $whole $indexing
    attr-dict `:` functional-type($inputs, $result) }];
}

def Shd_IotaOp : Shd_ComputeOp<"iota"> {
  let summary = "0, 1, 2, ... along an index";
  let description = [{
    `shd.iota <-> [T]> : tensor<16xi32>`.

    **Constraints:**
    - (V1) The result has one dimension, of integers.
  }];
  let arguments = (ins Shd_IndexingAttr:$indexing);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = "$indexing attr-dict `:` type($result)";
}

def Shd_ReshardOp : Shd_ComputeOp<"reshard"> {
  let summary = "The same value, possibly in another layout";
  let description = [{
    A statement that only renames or reshards (`A2[I, J@X] = A[I@X, J]`), or a
    copy that the optimizer makes once for several users. Before
    `shd-insert-collectives` its layouts are pins; that pass replaces it by the
    cheapest sequence of collectives. Costs nothing itself.

    **Constraints:**
    - (H1) The result has the input's indices, in their order.
  }];
  let arguments = (ins Shd_Tensor:$input, Shd_IndexingAttr:$indexing);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ `(` $input `)` $indexing attr-dict `:`
    functional-type($input, $result) }];
}

//===----------------------------------------------------------------------===//
// Explicit communication (after shd-insert-collectives)
//===----------------------------------------------------------------------===//

def Shd_StatisticOp : Shd_ValueOp<"statistic", [Pure]> {
  let summary = "What one device contributes to a statistic";
  let description = [{
    `shd.statistic "max"(%x) : ...`: the local value of a statistic of the
    operation that follows, from its operands and the statistics before it; an
    all_reduce makes it agree. Its work is counted with that operation.

    | of | statistics, in order |
    |---|---|
    | `reduce` | `max` (largest element), `min` (least); of argmax `value` (largest element) and `index` (least index of an element that is `value`; without one the largest `i32`) |
    | softmax, logsumexp | `max`, `sum_exp` (sum of e^(x - max)) |
    | rmsnorm | `sum_square` |
    | layernorm | `sum`, `sum_square` (of the elements, not of their distances from the mean) |
    | attention | `max`, `sum_exp` of the scores of keys that are not masked |
    | cross_entropy | `max`, `sum_exp`, `picked` (the logit at the label, 0 on a device that lacks it) |

    Over no elements at all, a largest element is the least value of the type, a
    least one the largest. Those of `reduce` have the operand's type, `index`
    is `i32`, the others are `f32`.
  }];
  let arguments = (ins StrAttr:$kind, Variadic<Shd_Tensor>:$inputs);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = "$kind `(` $inputs `)` attr-dict `:` functional-type($inputs, $result)";
  let hasVerifier = 1;
}

class Shd_CollectiveOp<string mnemonic, string text>
    : Shd_ValueOp<mnemonic, [Pure, SameOperandsAndResultShape,
                             SameOperandsAndResultElementType]> {
  let summary = text;
  let arguments = (ins Shd_Tensor:$input, StrArrayAttr:$axes,
    OptionalAttr<Shd_CollectiveCostAttr>:$cost);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ $input `over` $axes (`cost` $cost^)? attr-dict `:`
    type($input) `->` type($result) }];
  let hasVerifier = 1;
}

def Shd_AllGatherOp : Shd_CollectiveOp<"all_gather",
    "Removes axes from the minor ends of dimensions">;
def Shd_AllSliceOp : Shd_CollectiveOp<"all_slice",
    "Adds axes at the minor ends of dimensions; free">;
def Shd_AllToAllOp : Shd_CollectiveOp<"all_to_all",
    "Moves axes from minor ends of dimensions to those of others">;
def Shd_ReduceScatterOp : Shd_CollectiveOp<"reduce_scatter",
    "Resolves partial sums into minor ends of dimensions">;
def Shd_CollectivePermuteOp : Shd_CollectiveOp<"collective_permute",
    "Changes which device holds which part; local shapes stay">;

def Shd_HaloExchangeOp : Shd_ValueOp<"halo_exchange",
    [Pure, SameOperandsAndResultShape, SameOperandsAndResultElementType]> {
  let summary = "Brings each device the last rows of the part before its own";
  let description = [{
    `shd.halo_exchange %k dim 1 rows 127 over ["X"] : A -> B`: each device of a
    group gets the last 127 rows, along dimension 1, of the part of the device
    before it, and has them in front of its own. It stands for an all_gather
    before an operation that reads no other rows, attention with a window:
    `B` has the dimension whole, as the operation's sharding rule wants it,
    but on a device there are the rows of its part and those before.

    With `shd.dealt` for the dimension's index, a part is two stretches of
    positions in zigzag order. In front of it are so many rows before the first
    one, from the device before, and as many before the second one, from the
    device behind.

    **Constraints:**
    - (Z1) `A` has the axes on the dimension, in their order, and `B` none.
    - (Z2) There is at least one row, and no more than a part has; in zigzag
      order than half of it.
    - (Z3) The axes divide the dimension.
    - (Z4) In zigzag order their devices divide the parts that it is dealt to,
      of two chunks each.
  }];
  let arguments = (ins Shd_Tensor:$input, I64Attr:$dim, I64Attr:$rows,
    StrArrayAttr:$axes, OptionalAttr<Shd_CollectiveCostAttr>:$cost);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ $input `dim` $dim `rows` $rows `over` $axes
    (`cost` $cost^)? attr-dict `:` type($input) `->` type($result) }];
  let hasVerifier = 1;
}

def Shd_HaloReduceOp : Shd_ValueOp<"halo_reduce",
    [Pure, SameOperandsAndResultShape, SameOperandsAndResultElementType]> {
  let summary = "Adds up what devices have of the rows of each other";
  let description = [{
    `shd.halo_reduce %dk dim 1 rows 127 over ["X"] : A -> B`, of gradients of
    what came by `shd.halo_exchange`: each device has summands for the rows of
    its part and for the last 127 before it, gives those to the device before,
    and adds what it gets to its own. It stands for a reduce_scatter. In zigzag
    order those before the second stretch go to the device behind.

    **Constraints:**
    - (Z1) `A` is a partial sum over the axes and has none on the dimension, and
      `B` has them there, in their order.
    - (Z2) to (Z4) as of `shd.halo_exchange`.
  }];
  let arguments = (ins Shd_Tensor:$input, I64Attr:$dim, I64Attr:$rows,
    StrArrayAttr:$axes, OptionalAttr<Shd_CollectiveCostAttr>:$cost);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ $input `dim` $dim `rows` $rows `over` $axes
    (`cost` $cost^)? attr-dict `:` type($input) `->` type($result) }];
  let hasVerifier = 1;
}

/// Transfers over the link to the host (docs/Training.md#offloading). They are
/// collectives of one device: over no axes, and the layout stays.
def Shd_ToHostOp : Shd_CollectiveOp<"to_host",
    "Copies each device's part into the memory of its host">;
def Shd_FromHostOp : Shd_CollectiveOp<"from_host",
    "Copies each device's part from the memory of its host">;

def Shd_AllReduceOp : Shd_ValueOp<"all_reduce", [Pure,
    SameOperandsAndResultShape, SameOperandsAndResultElementType]> {
  let summary = "Resolves partial sums (or maxima, minima) on every device";
  let description = [{
    `shd.all_reduce %y over ["X"] : ...` adds. With `max` or `min`, of a
    statistic: the operand's type then has the axes as partial, whatever the
    combination.
  }];
  let arguments = (ins Shd_Tensor:$input, StrArrayAttr:$axes,
    DefaultValuedAttr<Shd_CombinationAttr,
                      "::shardc::shd::Combination::Sum">:$combination,
    OptionalAttr<Shd_CollectiveCostAttr>:$cost);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ `` custom<Combination>($combination) $input `over` $axes
    (`cost` $cost^)? attr-dict `:` type($input) `->` type($result) }];
  let hasVerifier = 1;
}

#endif // SHARDC_DIALECT_SHD_IR_SHDOPS_TD
