//===- Rounds.h - Bound, search, fix, contract, again ---------*- C++ -*-===//
//
// Private to the solver: the sequence of steps of optimizer.md section 3.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_SOLVER_ROUNDS_H
#define SHARDC_LIB_SOLVER_ROUNDS_H

#include "Incumbent.h"
#include "shardc/Solver/Deadline.h"
#include "shardc/Solver/Network.h"
#include "shardc/Solver/StateSearch.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace shardc::solver {

struct Effort {
  /// Work of all searches together; some hundred million a second.
  uint64_t searchWork = 400'000'000;
  /// Entries of tables that all ascents of prices together look at; some
  /// billion a second.
  double dualWork = 1e10;
  /// Any plan will do.
  bool stopAtPlan = false;
  Deadline deadline;
};

class Rounds {
public:
  /// Labels by variable that may stay.
  using Kept = std::vector<std::vector<bool>>;

  Rounds(const Problem &problem, const Effort &effort);

  /// Starts with a plan that is known.
  void offer(const std::vector<Label> &assignment) {
    incumbent.offer(assignment);
  }
  Solution run();
  /// Of what `effort` allows.
  uint64_t searchWorkDone() const { return effort.searchWork - workLeft; }
  double dualWorkDone() const { return effort.dualWork - dualLeft; }

private:
  bool runRound();
  bool runExact(Model &model, Elimination &elimination);
  bool runApproximate();
  Guides makeGuides(const Model &model, const Elimination &plan,
                    const Prices &prices);
  bool searchAndPrune(const Guides &guides, llvm::function_ref<Kept()> kept);
  void searchRows(const Guides &guides);
  bool addExceeded(const Model &model, llvm::ArrayRef<Label> labels);
  Kept keptByMarginals(const Guide &guide) const;
  bool prune(const Model &model, const Kept &kept);

  Prices ascend(Model &model, Elimination &elimination);
  Prices startPrices(unsigned shift) const;
  void keepPrices(const Prices &prices, unsigned shift);
  bool observe(const Model &model, llvm::ArrayRef<Label> labels, Cost bound);
  bool isDone() const;
  bool canSearch() const;

  const Problem &problem;
  Effort effort;
  Network network;
  Incumbent incumbent;
  size_t width;
  uint64_t workLeft, lastWork = 0; // of searches
  double dualLeft;
  std::vector<double> priceAt; // of the last round, per byte at each point
  bool hasPrices = false;
  std::vector<bool> searched; // points whose rows every search tracks
};

} // namespace shardc::solver

#endif // SHARDC_LIB_SOLVER_ROUNDS_H
