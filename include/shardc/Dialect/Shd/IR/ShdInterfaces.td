//===- ShdInterfaces.td - What varies by operation --------*- tablegen -*-===//

#ifndef SHARDC_DIALECT_SHD_IR_SHDINTERFACES_TD
#define SHARDC_DIALECT_SHD_IR_SHDINTERFACES_TD

include "mlir/IR/OpBase.td"

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
      (ins "::llvm::ArrayRef<int64_t>":$localExtents,
           "const ::shardc::Machine &":$machine)>,
    InterfaceMethod<"How it takes part in fusion.",
      "::shardc::shd::FusionKind", "getFusionKind">,
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
      The value of the operation's result, of its shape and element type;
      `operands` are all operands, statistics last. Without statistics the
      operation computes them from what it holds.
    }], "::mlir::FailureOr<::shardc::Tensor>", "evaluate",
      (ins "::llvm::ArrayRef<const ::shardc::Tensor *>":$operands,
           "::llvm::ArrayRef<::shardc::FactorRange>":$ranges,
           "::shardc::PositionPolicy":$policy)>,
    InterfaceMethod<[{
      What a device contributes to statistic `number` of the sharding rule;
      `operands` are the operands and then the statistics before it, on which
      the devices agree. Only for operations whose rule has statistics.
    }], "::mlir::FailureOr<::shardc::Tensor>", "evaluateStatistic",
      (ins "unsigned":$number,
           "::llvm::ArrayRef<const ::shardc::Tensor *>":$operands,
           "::llvm::ArrayRef<::shardc::FactorRange>":$ranges,
           "::shardc::PositionPolicy":$policy), "", [{
        llvm_unreachable("the operation has no statistics");
      }]>,
  ];
}

#endif // SHARDC_DIALECT_SHD_IR_SHDINTERFACES_TD
