//===- DualGame.h - Weights of the best lower bound -----------*- C++ -*-===//
//
// The weights of rows under which the known plans bound best are the mixed
// strategy of a zero-sum game: one player weighs the rows, the other picks a
// plan of the least weighted mean. Fictitious play approaches them: each player
// in turn answers the average of what the other has played.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_OPTIMIZER_SEARCH_DUALGAME_H
#define SHARDC_LIB_OPTIMIZER_SEARCH_DUALGAME_H

#include "Candidates.h"

namespace shardc {

struct DualGame {
  /// Add up to one.
  Rows weights;
  /// The least mean of the plans under these weights; negative if nothing was
  /// played.
  double mean = -1;
  /// Work units: what a solver looks at in the same time.
  double work = 0;
};

/// Plays so many rounds for weights of which none is further from `center` than
/// `radius`.
DualGame playDualGame(llvm::ArrayRef<const Candidate *> plans,
                      llvm::ArrayRef<double> center, double radius,
                      unsigned rounds);

} // namespace shardc

#endif // SHARDC_LIB_OPTIMIZER_SEARCH_DUALGAME_H
