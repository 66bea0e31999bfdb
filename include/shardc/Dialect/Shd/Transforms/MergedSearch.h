//===- MergedSearch.h - Plans on meshes of many axes ----------*- C++ -*-===//
//
// On four and more axes there are too many layouts to search all of them. A
// plan on a mesh in which neighbouring axes are merged is one on the whole mesh
// too; the best of these is improved by labels next to its own
// (docs/Optimizer.md#many-axes).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHD_TRANSFORMS_MERGEDSEARCH_H
#define SHARDC_DIALECT_SHD_TRANSFORMS_MERGEDSEARCH_H

#include "shardc/Dialect/Shd/Transforms/NetworkSearch.h"

namespace shardc::shd {

/// The best plan that was found: an assignment of the network that the program
/// has with these labels. Its bound is none of the program's.
struct MergedPlan {
  LabelChoice choice;
  SearchedPlan found;
};

/// Searches the plans of a program whose mesh has too many axes for a network
/// of all labels; the program stays as it is. Nothing if no merging of axes has
/// a plan with few enough labels, or time was up before there was one. The
/// search ends early where the plan takes little more than the bound.
std::optional<MergedPlan> searchMergedAxes(PlanningContext &context,
                                           ProgramOp program,
                                           const NetworkOptions &networkOptions,
                                           const NetworkSearchOptions &options,
                                           std::optional<solver::Cost> bound);

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_TRANSFORMS_MERGEDSEARCH_H
