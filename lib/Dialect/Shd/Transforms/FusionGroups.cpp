//===- FusionGroups.cpp - shd-fusion-groups --------------------*- C++ -*-===//

#include "shardc/Dialect/Shd/Transforms/Passes.h"
#include "shardc/Optimizer/Graph.h"

namespace shardc::shd {
#define GEN_PASS_DEF_SHDFUSIONGROUPS
#include "shardc/Dialect/Shd/Transforms/Passes.h.inc"

namespace {
struct FusionGroupsPass : impl::ShdFusionGroupsBase<FusionGroupsPass> {
  void runOnOperation() override { assignFusionGroups(getOperation()); }
};
} // namespace
} // namespace shardc::shd
