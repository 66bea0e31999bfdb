//===- Solve.h - Answers to problems of the contest -----------*- C++ -*-===//

#ifndef SHARDC_CONTEST_SOLVE_H
#define SHARDC_CONTEST_SOLVE_H

#include "shardc/Solver/Search.h"

namespace shardc::contest {

/// An assignment with its exact cost and a bound that no plan undercuts, which
/// may both exceed 64 bits.
struct Answer {
  solver::Status status = solver::Status::Unknown;
  /// Empty if no plan was found.
  std::vector<solver::Label> choices;
  solver::Wide cost = 0;
  std::optional<solver::Wide> bound;
  int64_t peak = 0, limit = 0;

  /// How much more than the bound the plan costs, in parts of its cost.
  double gap() const;
};

/// A message about a sum of the problem that overflows, or nothing.
std::optional<std::string> checkSums(const solver::Problem &problem);

/// The problem has passed checkSums(). Costs that sum to more than the solver
/// adds up exactly are divided by a power of two for the search; plan and bound
/// are true of the problem as it is. The assignment is checked against
/// `problem`.
Answer solve(const solver::Problem &problem,
             const solver::SearchOptions &options);

/// The answer for people, whose last line is the list of choices, or as JSON.
std::string toText(const Answer &answer);
std::string toJson(const Answer &answer, double seconds);

} // namespace shardc::contest

#endif // SHARDC_CONTEST_SOLVE_H
