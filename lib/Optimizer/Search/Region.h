//===- Region.h - Labels that better plans are made of --------*- C++ -*-===//

#ifndef SHARDC_LIB_OPTIMIZER_SEARCH_REGION_H
#define SHARDC_LIB_OPTIMIZER_SEARCH_REGION_H

#include "Candidates.h"
#include "shardc/Solver/LabelBounds.h"
#include <limits>

namespace shardc {

/// A part of the search space, and what is proven of it.
struct Region {
  /// All plans of the region that are better than the incumbent use only these.
  solver::LabelSets labels;
  /// Picoseconds that better plans with each label take at least; empty: not
  /// known.
  solver::LabelBounds labelBounds = {};
  /// Picoseconds that better plans take at least.
  solver::Cost bound = 0;
  /// The same of the plans outside, in other parts of the search space.
  solver::Cost outside = solver::kMaxTotal;
  /// Weights of rows that gave the bound, and how far from them better ones are
  /// looked for.
  Rows weights = {};
  double radius = 1;
  /// From the incumbent to the bound of the weights with which labels were last
  /// pruned.
  double prunedGap = std::numeric_limits<double>::infinity();
  /// With which messages last bounded labels, and the plans that were of
  /// interest: the same again would bound nothing more.
  Rows boundedWeights = {};
  Picoseconds boundedBelow = 0;
};

} // namespace shardc

#endif // SHARDC_LIB_OPTIMIZER_SEARCH_REGION_H
