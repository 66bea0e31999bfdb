//===- TestOps.td - Operations that no pass knows ----------*- tablegen -*-===//
//
// Operations of another dialect than shd that implement its interfaces, to test
// that planning needs no more.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TEST_LIB_TESTOPS_TD
#define SHARDC_TEST_LIB_TESTOPS_TD

include "mlir/Interfaces/SideEffectInterfaces.td"
include "shardc/Dialect/Shd/IR/ShdAttrs.td"
include "shardc/Dialect/Shd/IR/ShdInterfaces.td"
include "shardc/Dialect/Shd/IR/ShdTypes.td"

def Test_Dialect : Dialect {
  let name = "test";
  let summary = "Operations that only tests register";
  let cppNamespace = "::shardc::test";
}

class Test_ComputeOp<string mnemonic, list<Trait> traits = [],
                     list<string> cost = []>
    : Op<Test_Dialect, mnemonic, !listconcat(traits,
        [Pure, Shd_IndexedTrait,
         DeclareOpInterfaceMethods<Shd_ShardingRuleOpInterface,
                                   ["getShardingRule"]>,
         DeclareOpInterfaceMethods<Shd_CostOpInterface, cost>,
         DeclareOpInterfaceMethods<Shd_EvaluationOpInterface>])>;

def Test_ScaledOuterOp : Test_ComputeOp<"scaled_outer", [],
                                        ["readsPrologues"]> {
  let summary = "The outer product of two tensors, times a number";
  let description = [{
    `test.scaled_outer(%x, %y) by 0.5 <[B, I], [B, J] -> [B, I, J]> : ...`. It
    sums nothing, runs on the matrix units and computes what comes before it.
  }];
  let arguments = (ins Shd_Tensor:$lhs, Shd_Tensor:$rhs, F64Attr:$scale,
    Shd_IndexingAttr:$indexing);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ `(` operands `)` `by` $scale $indexing attr-dict `:`
    functional-type(operands, results) }];
}

def Test_ShareOp : Test_ComputeOp<"share",
    [DeclareOpInterfaceMethods<Shd_StatisticsOpInterface>]> {
  let summary = "Each element divided by the sum along an index";
  let description = [{
    `test.share(%x) over "D" <[B, D] -> [B, D]> : ...`. Where the index is
    split, the devices agree on the sum.
  }];
  let arguments = (ins Shd_Tensor:$input, Variadic<Shd_Tensor>:$stats,
    StrAttr:$over, Shd_IndexingAttr:$indexing);
  let results = (outs Shd_Tensor:$result);
  let assemblyFormat = [{ `(` $input `)` `over` $over $indexing
    (`stats` `(` $stats^ `:` type($stats) `)`)? attr-dict `:`
    functional-type($input, $result) }];
}

def Test_DoubleAndSumOp : Test_ComputeOp<"double_and_sum"> {
  let summary = "Twice each element, and the sums over some indices";
  let description = [{
    `test.double_and_sum(%x) <[B, D] -> [B, D], [B]> : ...`: two results, one of
    which is a partial sum where an index that the other keeps is split. With
    `leader`, it starts a fusion group; else it joins one.
  }];
  let arguments = (ins Shd_Tensor:$input, Shd_IndexingAttr:$indexing,
    UnitAttr:$leader);
  let results = (outs Shd_Tensor:$doubled, Shd_Tensor:$sum);
  let assemblyFormat = [{ `(` $input `)` $indexing (`leader` $leader^)? attr-dict
    `:` functional-type($input, results) }];
}

#endif // SHARDC_TEST_LIB_TESTOPS_TD
