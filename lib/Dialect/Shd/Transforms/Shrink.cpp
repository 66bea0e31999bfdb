//===- Shrink.cpp - shd-shrink ---------------------------------*- C++ -*-===//

#include "shardc/Shrink/Shrink.h"
#include "shardc/Dialect/Shd/Transforms/Passes.h"

namespace shardc::shd {
#define GEN_PASS_DEF_SHDSHRINK
#include "shardc/Dialect/Shd/Transforms/Passes.h.inc"

namespace {
struct ShrinkPass : impl::ShdShrinkBase<ShrinkPass> {
  using ShdShrinkBase::ShdShrinkBase;

  void runOnOperation() override {
    if (maxAxis < 2) {
      getOperation().emitError("mesh axes must have at least 2 devices, but ")
          << "max-axis is " << maxAxis.getValue();
      return signalPassFailure();
    }
    applyShrinking(getOperation(), chooseShrinking(getOperation(), {maxAxis}));
  }
};
} // namespace
} // namespace shardc::shd
