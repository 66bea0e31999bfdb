//===- ShdInterfaces.td - What varies by operation --------*- tablegen -*-===//

#ifndef SHARDC_DIALECT_SHD_IR_SHDINTERFACES_TD
#define SHARDC_DIALECT_SHD_IR_SHDINTERFACES_TD

include "mlir/IR/OpBase.td"

/// Verifies I1 to I4 before anything else that the operation verifies.
def Shd_IndexedTrait : NativeOpTrait<"IndexedTrait"> {
  let cppNamespace = "::shardc::shd";
}

def Shd_ShardingRuleOpInterface : OpInterface<"ShardingRuleOpInterface"> {
  let cppNamespace = "::shardc::shd";
  let description = [{
    An operation that computes: its iteration space as named factors, and how
    they map to operands and results. Propagation, enumeration of strategies,
    partitioning and verification all go through it.
  }];
  let methods = [
    InterfaceMethod<"Factors, their kinds, and what each dimension maps to.",
      "::shardc::ShardingRule", "getShardingRule">,
    InterfaceMethod<"Index names of operands (without statistics) and results.",
      "::shardc::shd::IndexingAttr", "getIndexing">,
    InterfaceMethod<"What devices agreed on: the last operands, if any.",
      "::mlir::OperandRange", "getStats", (ins), "", [{
        return $_op.getOperation()->getOperands().take_back(0);
      }]>,
    InterfaceMethod<[{
      Index names of the elements that it writes, which are what its fusion
      group goes on with: the result's, unless it writes only a part of that.
    }], "::llvm::SmallVector<::llvm::StringRef, 4>", "getWrittenIndices", (ins),
      "", [{ return $_op.getIndexing().getResultIndices(0); }]>,
    InterfaceMethod<"The name of what it computes, for reports: `softmax`.",
      "::llvm::StringRef", "getFunctionName", (ins), "", [{
        return $_op.getOperation()->getName().stripDialect();
      }]>,
  ];
  // After the operation's own verifier, on which the sharding rule relies.
  let verify = [{ return ::shardc::shd::detail::verifyShardedOp($_op); }];
  let verifyWithRegions = 1;
}

def Shd_CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::shardc::shd";
  let description = [{
    FLOPs and bytes of an operation on one device, given the local extent of
    each factor of its sharding rule, and how it fuses
    (docs/CostModel.md#2-one-operation-on-one-device).
  }];
  let methods = [
    InterfaceMethod<"FLOPs, and bytes of operands (without statistics) and "
                    "results that it touches.",
      "::shardc::OpWork", "getWork",
      (ins "const ::shardc::LocalExtents &":$localExtents,
           "const ::shardc::Machine &":$machine)>,
    InterfaceMethod<[{
      FLOPs on the matrix units of the device that has these elements of each
      factor: as many as `getWork` says for the busiest one, which counts.
    }], "double", "getExecutedFlops",
      (ins "::llvm::ArrayRef<::shardc::FactorRange>":$ranges), "", [{
        return ::shardc::shd::detail::flopsOfSizes($_op, ranges);
      }]>,
    InterfaceMethod<"How it takes part in fusion.",
      "::shardc::shd::FusionKind", "getFusionKind">,
    InterfaceMethod<[{
      True if, as a leader, it can compute elementwise operations while it reads
      their inputs (a prologue), so that their results need no memory.
    }], "bool", "readsPrologues", (ins), "", [{ return false; }]>,
    InterfaceMethod<[{
      True if its kernel, as a leader, holds whole rows of its result, so that
      row operations behind it may join its group. Tiles of a product hold none.
    }], "bool", "holdsRows", (ins), "", [{ return false; }]>,
    InterfaceMethod<"True if it changes nothing but the type of its elements.",
      "bool", "isCast", (ins), "", [{ return false; }]>,
    InterfaceMethod<[{
      For a row operation, the number of chunks in which it runs together with
      the product that makes its operand: kNoChunks if it does not,
      kAllChunks if one kernel does both.
    }], "int64_t", "getRowChunks", (ins), "", [{ return kNoChunks; }]>,
    InterfaceMethod<[{
      True if it can run in chunks along any index that is not kept whole:
      parts of its operands give parts of its result or, along an index that the
      result lacks, terms of a sum. A leader that can do so may run as a
      collective matmul, and elementwise operations behind it may join.
    }], "bool", "runsInChunks", (ins), "", [{ return false; }]>,
    InterfaceMethod<[{
      The operand in whose memory the result is made, by writing a part of it;
      null if the result takes memory of its own.
    }], "::mlir::OpOperand *", "getInPlaceOperand", (ins), "", [{
      return nullptr;
    }]>,
  ];
}

def Shd_StatisticsOpInterface : OpInterface<"StatisticsOpInterface"> {
  let cppNamespace = "::shardc::shd";
  let description = [{
    An operation whose devices agree on statistics (those of its sharding rule)
    where the indices that it normalises are split, and which takes them as its
    last operands.
  }];
  let methods = [
    InterfaceMethod<"What devices agreed on, to set it.",
      "::mlir::MutableOperandRange", "getStatsMutable">,
    InterfaceMethod<[{
      What a device contributes to statistic `number` of the sharding rule;
      `operands` are the operands and then the statistics before it, on which
      the devices agree. `ranges` and errors are as for `evaluate`.
    }], "::mlir::FailureOr<::shardc::Tensor>", "evaluateStatistic",
      (ins "unsigned":$number,
           "::llvm::ArrayRef<const ::shardc::Tensor *>":$operands,
           "::llvm::ArrayRef<::shardc::FactorRange>":$ranges,
           "::shardc::PositionPolicy":$policy)>,
  ];
}

def Shd_PositionsOpInterface : OpInterface<"PositionsOpInterface"> {
  let cppNamespace = "::shardc::shd";
  let description = [{
    An operation that reads elements of its first operand at positions that its
    last operands hold, or writes them: in place, or in a tensor of its own.
  }];
  let methods = [
    InterfaceMethod<"The tensor whose elements the positions name: the first "
                    "operand, or the result.",
      "::mlir::Value", "getPositioned", (ins), "", [{
        return $_op.getOperation()->getOperand(0);
      }]>,
    InterfaceMethod<"The dimensions of that tensor that are selected.",
      "::llvm::ArrayRef<int64_t>", "getDims">,
    InterfaceMethod<"An operand of positions for each of `getDims`.",
      "::mlir::OperandRange", "getPositions">,
  ];
}

def Shd_AttentionOpInterface : OpInterface<"AttentionOpInterface"> {
  let cppNamespace = "::shardc::shd";
  let description = [{
    Attention and its gradient: the scores, and how they are masked.
  }];
  let methods = [
    InterfaceMethod<"", "::mlir::Value", "getQ">,
    InterfaceMethod<"", "::mlir::Value", "getK">,
    InterfaceMethod<"", "::mlir::Value", "getV">,
    InterfaceMethod<"Positions of queries, or null.", "::mlir::Value", "getAt">,
    InterfaceMethod<"The number of the operand that holds them.", "unsigned",
                    "getAtOperand">,
    InterfaceMethod<"Positions of keys, or null.", "::mlir::Value", "getKeyAt">,
    InterfaceMethod<"The number of the operand that holds them.", "unsigned",
                    "getKeyAtOperand">,
    InterfaceMethod<"Added to the scores, or null.", "::mlir::Value",
                    "getBias">,
    InterfaceMethod<"The number of the operand that holds it.", "unsigned",
                    "getBiasOperand">,
    InterfaceMethod<"The index that scores sum over.", "::llvm::StringRef",
                    "getHead">,
    InterfaceMethod<"", "::llvm::StringRef", "getKey">,
    InterfaceMethod<"", "::std::optional<::llvm::StringRef>", "getQuery">,
    InterfaceMethod<"", "bool", "getCausal">,
    InterfaceMethod<"", "::std::optional<uint64_t>", "getWindow">,
    InterfaceMethod<"", "::std::optional<::llvm::APFloat>", "getScale">,
    InterfaceMethod<"", "::std::optional<::llvm::APFloat>", "getSoftcap">,
    InterfaceMethod<[{
      True for a tensor (operands, then results) in which an index of `head`'s
      name is one of the values.
    }], "bool", "hasValues", (ins "unsigned":$tensor)>,
  ];
}

def Shd_ExpertsOpInterface : OpInterface<"ExpertsOpInterface"> {
  let cppNamespace = "::shardc::shd";
  let description = [{
    Dispatch, combine and its gradient: how picks send tokens to the slots of
    experts (docs/Language.md#8-functions). One operand or result has tokens
    (groups, tokens, features), one slots (groups, experts, slots, features).
  }];
  let methods = [
    InterfaceMethod<"True where a token goes to an expert: operand 1.",
                    "::mlir::Value", "getPicks">,
    InterfaceMethod<"The index of experts.", "::llvm::StringRef", "getExperts">,
    InterfaceMethod<"The index of an expert's slots for a group of tokens.",
                    "::llvm::StringRef", "getSlots">,
    InterfaceMethod<"How many experts a token picks at most.", "uint64_t",
                    "getK">,
    InterfaceMethod<"Equal blocks of experts, and in how many of them a "
                    "token's picks lie at most.",
                    "::std::optional<uint64_t>", "getBlocks">,
    InterfaceMethod<"", "::std::optional<uint64_t>", "getLimit">,
    InterfaceMethod<"True if no token may be dropped.", "bool", "getDropless">,
    InterfaceMethod<"The number (operands, then results) of the tensor of "
                    "tokens, of that of slots, and of the weights if any.",
                    "unsigned", "getTokensTensor">,
    InterfaceMethod<"", "unsigned", "getSlotsTensor">,
    InterfaceMethod<"", "::std::optional<unsigned>", "getWeightsTensor">,
  ];
}

def Shd_EvaluationOpInterface : OpInterface<"EvaluationOpInterface"> {
  let cppNamespace = "::shardc::shd";
  let description = [{
    What an operation computes, in double precision and exact integers. One
    definition for the whole program and for the part of one device: `ranges`
    says, for each factor of the sharding rule in its order, which elements the
    arrays hold (all of them in a whole program; `ranges` is empty for an
    operation without a rule). Over a factor of kind `reduction` (and
    `statistic-reduction`), the results of the parts add up to the whole's.
    Errors are emitted at the operation.
  }];
  let methods = [
    InterfaceMethod<[{
      The values of the operation's results, of their shapes and element types;
      `operands` are all operands, statistics last. Without statistics the
      operation computes them from what it holds.
    }], "::mlir::FailureOr<::shardc::shd::TensorList>", "evaluate",
      (ins "::llvm::ArrayRef<const ::shardc::Tensor *>":$operands,
           "::llvm::ArrayRef<::shardc::FactorRange>":$ranges,
           "::shardc::PositionPolicy":$policy)>,
  ];
}

def Shd_ExtentsOpInterface : OpInterface<"ExtentsOpInterface"> {
  let cppNamespace = "::shardc::shd";
  let description = [{
    An operation whose extents must keep more than its sharding rule says, or
    whose attributes hold sizes or positions along an index. Tools that make a
    program small (`docs/Verification.md`) ask it; types are rewritten by them.
  }];
  let methods = [
    InterfaceMethod<"Adds what its extents must keep.",
      "void", "collectExtentRules", (ins "::shardc::ExtentRules &":$rules), "",
      [{ return; }]>,
    InterfaceMethod<[{
      Rewrites attributes for types in which each extent will be `newExtent` of
      what it still is.
    }], "void", "resizeAttributes",
      (ins "::llvm::function_ref<int64_t(int64_t)>":$newExtent), "", [{ return; }]>,
  ];
}

def Shd_GradientOpInterface : OpInterface<"GradientOpInterface"> {
  let cppNamespace = "::shardc::shd";
  let description = [{
    The derivative of an operation, for `shd-differentiate`: builds, from the
    gradients of its results, those of the operands that need one
    (docs/Training.md#gradients). Operands of integers never need one.
  }];
  let methods = [
    InterfaceMethod<[{
      Makes the operation give, as further results, what its derivative reads;
      called once before the derivative is built. Replaces the operation if
      need be, and returns the one that stands there afterwards.
    }], "::mlir::Operation *", "prepareGradient",
      (ins "::mlir::OpBuilder &":$builder), "", [{
        return $_op.getOperation();
      }]>,
    InterfaceMethod<"Gives `builder` the gradient of each operand that it "
                    "wants; fails with an error at the operation.",
      "::llvm::LogicalResult", "buildGradient",
      (ins "::shardc::shd::GradientBuilder &":$builder)>,
  ];
}

#endif // SHARDC_DIALECT_SHD_IR_SHDINTERFACES_TD
