//===- Rounds.h - Bound, search, fix, contract, again; branch -*- C++ -*-===//
//
// Private to the solver: rounds of bounding, searching and fixing, and where
// they leave a gap, branch and bound on the labels of one node after another.
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
  /// States of the widest search before branching, and of those in parts.
  size_t searchWidth = 1 << 10, branchWidth = 1 << 6;
  /// Any plan will do.
  bool stopAtPlan = false;
  /// A gap of this part of the cost is as good as none.
  double tolerance = 0;
  /// Only what costs less is of interest.
  Cost cutoff = kForbidden;
  Deadline deadline;
  /// Called whenever something improved.
  std::function<void(const SearchProgress &)> progress = {};
};

/// Looking at a state of a search takes as long as at so many table entries.
inline constexpr double kEntriesPerState = 6;

class Rounds {
public:
  Rounds(const Problem &problem, const Effort &effort);

  /// Starts with a plan that is known.
  void offer(const std::vector<Label> &assignment) {
    incumbent.offer(assignment);
  }
  /// Starts with prices of memory, per byte at each point.
  void startWith(const std::vector<double> &prices) {
    part.priceAt = prices;
    incumbent.setMultipliers(prices);
    hasPrices = true;
  }
  Solution run();
  /// Work done of that which `effort` allows.
  uint64_t searchWorkDone() const { return effort.searchWork - workLeft; }
  double dualWorkDone() const { return effort.dualWork - dualLeft; }
  /// In table entries.
  double workDone() const {
    return dualWorkDone() + kEntriesPerState * double(searchWorkDone());
  }

private:
  /// A part of the labels' combinations, and what is known of it.
  struct Part {
    Network network;
    Cost bound = -kForbidden;    // of assignments in it
    std::vector<double> priceAt; // of the last ascent, per byte at each point
    std::vector<bool> searched;  // points whose rows every search tracks
    bool isPruned = false;       // messages remove no more labels
  };
  /// Labels of a node for one half of a part; the rest is for the other.
  struct Split {
    Variable node = 0;
    std::vector<bool> half, rest;
  };

  bool runRound();
  bool pruneFirst(const Model &model, const Elimination &plan);
  bool runExact(Model &model, Elimination &elimination);
  bool runApproximate(bool thenExact);
  Guides makeGuides(const Model &model, const Elimination &plan,
                    const Prices &prices);
  void addRowGuides(const Elimination &plan, Guides &guides);
  bool searchAndPrune(Guides &guides, llvm::function_ref<LabelSets()> kept,
                      const Elimination *forRows = nullptr);
  void searchRows(const Guides &guides);
  bool addExceeded(const Model &model, llvm::ArrayRef<Label> labels);
  LabelSets keptByMarginals(const Guide &guide) const;
  bool prune(const Model &model, const LabelSets &kept);

  Prices ascend(Model &model, Elimination &elimination);
  Prices startPrices(unsigned shift) const;
  void keepPrices(const Prices &prices, unsigned shift);
  bool observe(const Model &model, llvm::ArrayRef<Label> labels, Cost bound);
  bool hasUpper() const;
  bool isDone() const;
  bool isGoodEnough() const;
  bool canSearch() const;

  void raiseBound(Cost bound);
  /// No assignment of the part is better than the incumbent.
  void closePart() { raiseBound(kForbidden); }

  void chooseSplit(const Guide &guide);
  void branch();
  void openHalves();
  void takeNextPart();

  const Problem &problem;
  Effort effort;
  Part part; // at hand
  Incumbent incumbent;
  /// The others, the least bound last.
  std::vector<Part> open;
  /// Least bound of parts that were given up.
  Cost givenUp = kForbidden;
  std::optional<Split> split;
  unsigned mergeShift;
  size_t width, maxWidth;          // of searches
  uint64_t workLeft, lastWork = 0; // of searches
  double dualLeft;
  bool hasPrices = false;
};

} // namespace shardc::solver

#endif // SHARDC_LIB_SOLVER_ROUNDS_H
