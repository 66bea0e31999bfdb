//===- RingAttention.cpp - Attention that runs around a ring --------------===//

#include "shardc/Dialect/Shd/IR/RingAttention.h"
#include "Factors.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

SmallVector<unsigned, 2> shd::ringOperands(const ShardingRule &rule) {
  return tensorsWith(rule.operands, rule.ring->factor);
}

SmallVector<unsigned, 2> shd::ringResults(const ShardingRule &rule) {
  return tensorsWith(rule.results, rule.ring->factor);
}

bool shd::travels(Operation *collective) {
  return collective && collective->hasAttr(kTravels);
}

StringRef shd::halvedIndex(Operation *collective) {
  auto index = collective->getAttrOfType<StringAttr>(kTravels);
  return index ? index.getValue() : StringRef();
}

/// For collectives of either dialect.
static bool travelsAs(Operation *collective, StringRef kind) {
  return travels(collective) && collective->getName().stripDialect() == kind;
}

SmallVector<Operation *, 2> shd::ringGathers(Operation *op) {
  SmallVector<Operation *, 2> gathers;
  for (Value operand : op->getOperands())
    if (Operation *gather = operand.getDefiningOp();
        travelsAs(gather, "all_gather") && !llvm::is_contained(gathers, gather))
      gathers.push_back(gather);
  return gathers;
}

SmallVector<Operation *, 2> shd::ringScatters(Operation *op) {
  SmallVector<Operation *, 2> scatters;
  for (Value result : op->getResults())
    for (Operation *user : result.getUsers())
      if (travelsAs(user, "reduce_scatter"))
        scatters.push_back(user);
  return scatters;
}

SmallVector<Operation *, 4> shd::ringCollectives(Operation *op) {
  SmallVector<Operation *, 4> collectives(ringGathers(op));
  llvm::append_range(collectives, ringScatters(op));
  return collectives;
}

std::optional<AxisIndex> shd::ringAxis(const Mesh &mesh, Operation *op) {
  SmallVector<Operation *, 2> gathers = ringGathers(op);
  if (gathers.empty())
    return std::nullopt;
  auto axes = gathers.front()->getAttrOfType<ArrayAttr>("axes");
  return mesh.find(cast<StringAttr>(axes.getValue().front()).getValue());
}
