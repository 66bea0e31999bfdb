//===- Elimination.h - Bucket elimination and its tables ------*- C++ -*-===//
//
// Takes the variables of a model out one by one: each leaves a table (message)
// of its least cost over the labels of the neighbours it had. Exact where the
// tables fit; where one would be too large its bucket is split into
// mini-buckets, and the result is a lower bound (Dechter and Rish, 2003).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SOLVER_ELIMINATION_H
#define SHARDC_SOLVER_ELIMINATION_H

#include "shardc/Solver/Model.h"

namespace shardc::solver {

struct Cursor;
struct Cursors;

struct EliminationLimits {
  /// Entries of a message, and of a bucket's table with its own variable.
  double messageEntries = 1.6e7, bucketEntries = 3e8;
};

/// An order in which the variables of `model` should be eliminated: the better
/// of least cluster size first and least fill first.
std::vector<uint32_t> eliminationOrder(const Model &model,
                                       const EliminationLimits &limits);

class Elimination {
public:
  /// Plans the tables; structure and domains of models passed to run() must be
  /// those of `model`.
  Elimination(const Model &model, std::vector<uint32_t> order,
              const EliminationLimits &limits);

  /// No bucket was split, so bounds and decoded labels are optimal.
  bool isExact() const { return exact; }
  /// Additions of one run.
  double work() const { return totalWork; }
  /// Entries of all messages.
  double entries() const { return totalEntries; }
  llvm::ArrayRef<uint32_t> order() const { return elimination; }
  uint32_t positionOf(uint32_t variable) const { return position[variable]; }

  /// Fills all tables and returns the least priced sum, or a lower bound.
  Int128 run(const Model &model);

  /// Labels by greedy choice in reverse order; optimal if exact. Ties go to the
  /// lowest label.
  std::vector<Label> decode() const;

  /// Variables, all eliminated after `variable`, on whose labels its cost to go
  /// depends.
  llvm::ArrayRef<uint32_t> separator(uint32_t variable) const {
    return separators[variable];
  }

  /// For labels of all variables eliminated after `variable`: how much each of
  /// its own labels raises the bound. Not negative; saturated.
  void increases(uint32_t variable, llvm::ArrayRef<Label> labels,
                 std::vector<Scaled> &result) const;

  /// After run(), exact only: for each variable and label the least priced sum
  /// of any assignment that uses it, less the least of all.
  std::vector<std::vector<Scaled>> minMarginals() const;
  /// The labels of which that is at most `room`.
  LabelSets labelsWithin(Int128 room) const;

private:
  enum class FactorKind { Unary, Pair, Message };
  /// A table over variables in order of elimination, the bucket's own first.
  struct Factor {
    FactorKind kind = FactorKind::Unary;
    uint32_t index = 0;
    bool transposed = false;
    llvm::SmallVector<uint32_t, 4> scope;
    llvm::SmallVector<size_t, 4> strides;
  };
  /// One mini-bucket and the message that it leaves.
  struct Group {
    uint32_t variable = 0;
    llvm::SmallVector<uint32_t, 4> scope; // without `variable`
    llvm::SmallVector<Factor, 4> factors;
    size_t entries = 1;

    /// The innermost loop runs over the last variable of the scope, the loops
    /// around it over the others.
    llvm::ArrayRef<uint32_t> outer() const {
      return llvm::ArrayRef(scope).take_front(scope.empty() ? 0
                                                            : scope.size() - 1);
    }
    bool varies(const Factor &factor) const {
      return factor.scope.size() > 1 && factor.scope.back() == scope.back();
    }
  };

  Factor makeFactor(FactorKind kind, uint32_t index, bool transposed,
                    llvm::ArrayRef<uint32_t> scope) const;
  void planBucket(uint32_t variable, std::vector<Factor> factors,
                  const EliminationLimits &limits);
  double unionSize(const Group &group, const Factor &factor) const;
  const Scaled *dataOf(const Factor &factor) const;
  Cursor makeCursor(const Group &group, const Factor &factor) const;
  Cursors makeCursors(const Group &group) const;
  llvm::SmallVector<size_t, 4> outerSizes(const Group &group) const;
  void passDown(size_t index, std::vector<std::vector<Scaled>> &down,
                std::vector<Scaled> &marginals) const;
  void runGroup(size_t index);
  size_t offsetOf(const Factor &factor, llvm::ArrayRef<Label> labels) const;

  std::vector<uint32_t> elimination; // variables in order
  std::vector<uint32_t> position;    // in that order
  std::vector<uint32_t> sizes;       // labels of each variable
  std::vector<Group> groups;
  std::vector<llvm::SmallVector<uint32_t, 2>> groupsOf;
  std::vector<std::vector<uint32_t>> separators;
  std::vector<std::vector<Scaled>> messages; // by group
  const Model *model = nullptr;              // of the last run
  bool exact = true;
  double totalWork = 0, totalEntries = 0;
};

} // namespace shardc::solver

#endif // SHARDC_SOLVER_ELIMINATION_H
