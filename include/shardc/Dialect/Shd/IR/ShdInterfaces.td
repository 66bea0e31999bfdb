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
    What an operation does on one device, given the local extent of each factor
    of its sharding rule, and how it fuses (cost-model.md section 2).
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

#endif // SHARDC_DIALECT_SHD_IR_SHDINTERFACES_TD
