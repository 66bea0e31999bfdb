//===- Frontier.h - Time against price ------------------------*- C++ -*-===//
//
// `--target-time` and `--target-price` (docs/CommandLine.md): of the points of
// a sweep, those that no other one beats in both time and price of a step, and
// the one that is wanted.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_QUESTIONS_FRONTIER_H
#define SHARDC_QUESTIONS_FRONTIER_H

#include "shardc/Questions/Sweep.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {

/// Upper limits on the scheduled time and on the price of a step.
struct Targets {
  std::optional<double> seconds, usd;

  bool any() const { return seconds || usd; }
};

struct Frontier {
  Targets targets;
  /// Rows that no other one beats in both; faster ones first, which are dearer.
  /// Only the first of equal rows.
  std::vector<size_t> rows;
  /// How many other rows one of these beats, have no price, and do not fit or
  /// are not legal.
  size_t beaten = 0, unpriced = 0, unfit = 0;
  /// The cheapest that takes no longer than the target; if there is only one
  /// for the price, the fastest. Nothing if no row meets the targets.
  std::optional<size_t> chosen;
  /// Then the one that misses them by the smallest factor, if there are rows.
  std::optional<size_t> nearest;

  bool has(size_t row) const { return llvm::is_contained(rows, row); }
};

Frontier findFrontier(llvm::ArrayRef<SweepRow> rows, const Targets &targets);

/// The rows of the frontier, and which one is wanted.
void printFrontier(llvm::raw_ostream &os, llvm::ArrayRef<std::string> names,
                   llvm::ArrayRef<SweepRow> rows, const Frontier &frontier,
                   bool colour);
/// Why none is: `no point of the sweep does a step within 1.00 s; the nearest
/// is ...`.
std::string missText(llvm::ArrayRef<SweepRow> rows, const Frontier &frontier);

} // namespace shardc

#endif // SHARDC_QUESTIONS_FRONTIER_H
