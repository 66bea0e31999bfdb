//===- TestOps.td - Operations that only tests have -------*- tablegen -*-===//
//
// Operations of another dialect, with what the language's lack: passes know
// operations by their interfaces alone.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TEST_TESTOPS_TESTOPS_TD
#define SHARDC_TEST_TESTOPS_TESTOPS_TD

include "mlir/Interfaces/SideEffectInterfaces.td"
include "shardc/Dialect/Shd/IR/ShdAttrs.td"
include "shardc/Dialect/Shd/IR/ShdInterfaces.td"
include "shardc/Dialect/Shd/IR/ShdTypes.td"

def Test_Dialect : Dialect {
  let name = "test";
  let cppNamespace = "::shardc::test";
}

class Test_ComputeOp<string mnemonic>
    : Op<Test_Dialect, mnemonic,
         [Pure, Shd_IndexedTrait,
          DeclareOpInterfaceMethods<Shd_ShardingRuleOpInterface,
                                    ["getShardingRule"]>,
          DeclareOpInterfaceMethods<Shd_CostOpInterface>,
          DeclareOpInterfaceMethods<Shd_EvaluationOpInterface>]>;

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

#endif // SHARDC_TEST_TESTOPS_TESTOPS_TD
