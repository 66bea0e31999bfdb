//===- RowPlan.h - Few numbers for the usage of many rows -----*- C++ -*-===//
//
// Private to the search over states. Rows on which all variables assigned so
// far agree have one usage; of rows on which all variables still to come agree
// only the one nearest to its capacity matters. So a few columns stand for all
// rows, and each variable moves their values in a way that can be planned.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_SOLVER_ROWPLAN_H
#define SHARDC_LIB_SOLVER_ROWPLAN_H

#include "shardc/Solver/Model.h"

namespace shardc::solver {

/// A value at or below 0 fits; this one can never exceed it again.
inline constexpr int64_t kNeverBinds = -kMaxTotal;

class RowPlan {
public:
  /// A pair usage that is decided when its second end is assigned.
  struct PairTerm {
    uint32_t profile = 0;
    const PairUsage *usage = nullptr;
    uint32_t other = 0; // the variable assigned before
    bool ownIsFirst = false;
    size_t columns = 0;

    int64_t bytes(Label own, Label others) const {
      return usage
          ->bytes[ownIsFirst ? own * columns + others : others * columns + own];
    }
  };
  /// Raises column `to` to the value of `from` plus `offset` plus what the
  /// variable uses in `profile`.
  struct Move {
    uint32_t from = 0, to = 0, profile = 0;
    int64_t offset = 0;
  };
  /// The effect of assigning one variable. Rows of one profile see the same
  /// usage of each of its labels; profile 0 is none.
  struct Step {
    size_t numProfiles = 1;
    std::vector<int64_t> own; // by label, then profile
    std::vector<PairTerm> pairs;
    std::vector<Move> moves;
    /// One per column after the step: a value at or below never binds later.
    std::vector<int64_t> thresholds;
  };

  /// `order` holds the variables by step, `rows` is ascending.
  RowPlan(const Model &model, llvm::ArrayRef<uint32_t> order,
          llvm::ArrayRef<uint32_t> rows);

  const Step &step(size_t index) const { return steps[index]; }
  /// Values before the first step: one column, or none if there are no rows.
  llvm::ArrayRef<int64_t> initial() const { return initialValues; }

private:
  /// Rows that are not told apart any more.
  struct Item {
    uint32_t row = 0; // any of them, position in `rows`
    uint32_t column = 0;
    int64_t slack = 0; // relative to the usage of its column's rows
    uint32_t profile = 0;
  };
  void planProfiles(llvm::ArrayRef<uint32_t> order);
  void planProfile(size_t step, uint32_t variable,
                   llvm::ArrayRef<uint32_t> stepOf);
  void planFutures();
  void planMoves(size_t step);
  void mergeEqual(size_t step);
  std::vector<bool> chooseCover(size_t step) const;

  const Model &model;
  llvm::ArrayRef<uint32_t> rows;
  std::vector<Step> steps;
  std::vector<int64_t> initialValues;
  std::vector<std::vector<uint32_t>> profiles; // of each row, by step
  std::vector<std::vector<uint32_t>> futures;  // class of each row, after step
  std::vector<std::vector<int64_t>> most;      // of each profile, by step
  std::vector<int64_t> rest;  // the most still to come, per row
  std::vector<Item> items;    // before the step being planned
  std::vector<int64_t> bases; // least slack of each column's items
};

} // namespace shardc::solver

#endif // SHARDC_LIB_SOLVER_ROWPLAN_H
