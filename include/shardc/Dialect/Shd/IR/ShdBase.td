//===- ShdBase.td - The shd dialect -----------------------*- tablegen -*-===//

#ifndef SHARDC_DIALECT_SHD_IR_SHDBASE_TD
#define SHARDC_DIALECT_SHD_IR_SHDBASE_TD

include "mlir/IR/OpBase.td"

def Shd_Dialect : Dialect {
  let name = "shd";
  let summary = "Tensor programs on a mesh of devices, seen globally";
  let description = [{
    The `shd` dialect holds a whole tensor program in einsum notation, with the
    full shape of every tensor. A tensor's type carries its sharding as an
    encoding once a plan has been chosen; before that, types are plain and what
    the program's author wrote with `@` stands in *pins*:

    - `shd.result_pin` on the operation that makes a value: how it is stored;
    - `shd.operand_pins`, one entry per operand (a sharding, or `unit` for
      nothing said): the layout that the operation consumes at this use.

    What is said of the result of an operation is, where it has several results,
    a list with an entry for each, or `unit`: `shd.result_pin`, `shd.name` and
    `shd.made`.

    Other discardable attributes:

    - `shd.name`: the name that reports use (the statement's left side);
    - `shd.temporary`: the value is an intermediate result inside a statement;
    - `shd.group`: the part of a fusion group that the operation is in
      (`shd-fusion-groups`); after `shd-annotate-cost`, operations of the same
      part are costed together, and the first of them carries `shd.group_cost`;
    - `shd.prologues`: the parts of elementwise operations that an operation
      computes itself while it reads their inputs;
    - `shd.made`: the layout in which the plan lets an operation make its result,
      where that may differ from the one in which the value is stored;
    - `shd.copy`, `shd.store`: a copy made once for several users, and the last
      collective before the layout in which a value is stored;
    - `shd.operand`, `shd.indices` on a collective: the name of the tensor that
      it moves and the names of its indices;
    - `shd.ring` on an einsum and on the all_gather or reduce_scatter beside it
      that the schedule runs as a collective matmul: a number that the two share
      and no others; on attention, or its gradient, and the collectives that
      stand for what travels while it runs, likewise;
    - `shd.travels` on an all_gather of keys or values, or a reduce_scatter of
      their gradients, that stands for parts that travel around a ring while
      attention runs, and has their price;
    - `shd.plan` on the program: status, objective, value and bound of the plan;
    - `shd.file`, `shd.def`, `shd.uses`, `shd.call`: where in the program's text
      an operation comes from, for printing plans.

    Any other attribute of this name space is refused.
  }];
  let cppNamespace = "::shardc::shd";
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();

    /// Finds the figures of the machine that a program names; tools set it
    /// (the catalogue is embedded in the front end). Null: unknown machine.
    using MachineLoader = std::function<std::optional<::shardc::Machine>(
        ::shardc::shd::HardwareAttr)>;
    void setMachineLoader(MachineLoader loader) { machineLoader = loader; }
    std::optional<::shardc::Machine> loadMachine(HardwareAttr hardware) const;

  private:
    MachineLoader machineLoader;
  public:
  }];
}

#endif // SHARDC_DIALECT_SHD_IR_SHDBASE_TD
