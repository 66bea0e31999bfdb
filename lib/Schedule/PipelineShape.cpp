//===- PipelineShape.cpp - Which stages a pipeline has --------------------===//

#include "shardc/Schedule/PipelineShape.h"
#include <numeric>

using namespace shardc;

int64_t PipelineShape::numLayers() const {
  return std::accumulate(layers.begin(), layers.end(), int64_t(0));
}

PipelineShape shardc::shapeOf(const StagePlan &plan) {
  return {plan.order, int64_t(plan.stages.size()), plan.microbatches,
          layersOf(plan)};
}

/// As many microbatches as fill the stages and one more, if the order can run
/// them.
static int64_t fewMicrobatches(const PipelineShape &shape,
                               int64_t microbatches) {
  for (int64_t number = std::min(microbatches, shape.stages + 1);
       number < microbatches; ++number)
    if (whyIllegal(shape.order, shape.stages, number, shape.numLayers())
            .empty())
      return number;
  return microbatches;
}

PipelineShape shardc::shrunkShape(const StagePlan &plan, int64_t stages,
                                  int64_t layers) {
  PipelineShape full = shapeOf(plan);
  PipelineShape small{full.order, std::min(full.stages, stages), 1, {}};
  int64_t least = *llvm::min_element(full.layers);
  for (int64_t chunk = 0; chunk < full.order.chunks; ++chunk)
    for (int64_t stage = 0; stage < small.stages; ++stage) {
      int64_t from = stage + 1 == small.stages ? full.stages - 1 : stage;
      int64_t held = full.layers[chunk * full.stages + from];
      small.layers.push_back(std::min(held - least + 1, layers));
    }
  small.microbatches = fewMicrobatches(small, full.microbatches);
  return small;
}
