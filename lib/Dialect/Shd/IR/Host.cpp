//===- Host.cpp - Tensors in the memory of the host -----------------------===//

#include "shardc/Dialect/Shd/IR/Host.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

bool shd::isOnHost(Value value) {
  Operation *maker = wholeOf(value).getDefiningOp();
  return maker && maker->hasAttr(kHost);
}

bool shd::isOffloadedSave(Value value) {
  if (!isOnHost(value))
    return false;
  Operation *maker = wholeOf(value).getDefiningOp();
  auto kind = maker->getAttrOfType<TensorKindAttr>("kind");
  return kind && kind.getValue() == TensorKind::Saved;
}

bool shd::copiesToHost(UpdateOp update) {
  return isOffloadedSave(update.getState());
}

bool shd::isReadOnHost(Value value) {
  return isOnHost(value) && !isOffloadedSave(value);
}

/// An update of a tensor on the host, in the program or in that of a device;
/// its operands are the value, then the tensor.
static bool updatesHost(Operation *op) {
  return op->getName().stripDialect() == "update" &&
         isReadOnHost(op->getOperand(1));
}

bool shd::goesToHost(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return updatesHost(user) ||
           (isCollective(user) && goesToHost(onlyResult(user)));
  });
}

bool shd::takesNoDeviceMemory(Value value) {
  return isOnHost(value) ||
         (!value.use_empty() && llvm::all_of(value.getUsers(), updatesHost));
}

LogicalResult shd::checkHost(ProgramOp program, const Machine &machine) {
  if (machine.hostBandwidth)
    return success();
  for (auto declare : program.getBody().getOps<DeclareOp>())
    if (declare->hasAttr(kHost))
      return declare.emitError()
             << "'" << declare.getSym() << "' is on the host, but hardware '"
             << machine.name << "' has no link to one (`host.bandwidth`)";
  return success();
}
