//===- LegalValues.h - The values that a crossover looks at ---*- C++ -*-===//
//
// Which values of a range are legal, found without asking for each of them.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_QUESTIONS_LEGALVALUES_H
#define SHARDC_QUESTIONS_LEGALVALUES_H

#include "shardc/Frontend/Question.h"
#include "shardc/Questions/TrialRunner.h"

namespace shardc {

/// Values in ascending order: a list, or every `step`-th of a range.
class LegalValues {
public:
  LegalValues() = default;
  explicit LegalValues(std::vector<int64_t> values)
      : listed(std::move(values)) {}
  /// The values of [low, high] that differ from `anchor` by a multiple of
  /// `step`. Those that differ by a multiple of `period`, or of a divisor of it
  /// that `step` divides, are rounder than others.
  LegalValues(int64_t low, int64_t high, int64_t anchor, int64_t step,
              int64_t period);

  /// The values are written one by one.
  bool isList() const { return !listed.empty(); }
  bool empty() const { return size() == 0; }
  int64_t size() const;
  int64_t first() const { return listed.empty() ? low : listed.front(); }
  int64_t last() const { return listed.empty() ? high : listed.back(); }
  /// The step of a range, 1 for listed values.
  int64_t getStep() const { return step; }
  int64_t getPeriod() const { return steps.front(); }

  /// A value between `a` and `b`, which are two values: a round one near the
  /// middle; nothing if they are neighbours.
  std::optional<int64_t> between(int64_t a, int64_t b) const;
  /// All values if they are `most` at most, else the first, the last, and about
  /// `perOctave` for each doubling.
  std::vector<int64_t> samples(int64_t most, int64_t perOctave) const;

private:
  /// A value of [a, b], the roundest and of these the one nearest to `target`.
  std::optional<int64_t> roundest(int64_t a, int64_t b, int64_t target) const;

  std::vector<int64_t> listed;
  int64_t low = 1, high = 0, anchor = 0, step = 1;
  /// From `period` to `step`, each a divisor of the one before.
  std::vector<int64_t> steps{1};
};

/// The legal values of a range. A list of all of them if the range is short, or
/// is of the sizes of a mesh axis; else a progression: extents are multiples
/// and sums of a dim, so those that some numbers divide are evenly spaced.
/// Single values of it may be illegal for other reasons.
LegalValues findLegalValues(const ProgramText &program,
                            mlir::MLIRContext *context,
                            const CrossoverRange &range, TrialRunner &runner);

} // namespace shardc

#endif // SHARDC_QUESTIONS_LEGALVALUES_H
