//===- TreeDescent.h - Better labels, tree by tree ------------*- C++ -*-===//
//
// Private to the solver: local search whose moves are exact. Of a random
// induced forest all labels are chosen at once by dynamic programming, given
// those of the other variables (docs/Solver.md#plans).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_SOLVER_TREEDESCENT_H
#define SHARDC_LIB_SOLVER_TREEDESCENT_H

#include "shardc/Solver/Model.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <random>

namespace shardc::solver {

class TreeDescent {
public:
  /// Costs of the model must stay below 2^50 in all.
  explicit TreeDescent(const Model &model);

  /// Lowers the priced cost of `labels`; forbidden pairs count as very
  /// expensive, so that labels to start from may use some. Forests are drawn
  /// until several in a row change nothing.
  void improve(std::vector<Label> &labels);

  /// Solves so many small trees at the model's prices, until their tables have
  /// `maxEntries`; `accept` decides of each change whether it stays.
  void improveLocally(std::vector<Label> &labels, unsigned trees,
                      double maxEntries,
                      llvm::function_ref<bool(llvm::ArrayRef<Label>)> accept);

private:
  /// A tree's variables follow each other, each after its parent.
  struct Member {
    uint32_t variable = 0;
    int parent = -1; // position in the forest
    uint32_t pair = 0;
  };

  std::vector<Member> drawForest();
  std::vector<Member> drawTree();
  bool solveForest(llvm::ArrayRef<Member> forest, std::vector<Label> &labels);
  void sumOwnCosts(llvm::ArrayRef<Member> forest, llvm::ArrayRef<Label> labels);
  llvm::MutableArrayRef<Scaled> costsOf(size_t position) {
    return llvm::MutableArrayRef(costs).slice(
        begins[position], begins[position + 1] - begins[position]);
  }

  /// A variable's pair, without a look at the pair.
  struct Neighbour {
    uint32_t variable = 0, pair = 0;
  };
  llvm::ArrayRef<Neighbour> neighboursOf(uint32_t variable) const {
    return llvm::ArrayRef(neighbours)
        .slice(firstNeighbours[variable],
               firstNeighbours[variable + 1] - firstNeighbours[variable]);
  }

  const Model &model;
  std::vector<Neighbour> neighbours;
  std::vector<uint32_t> firstNeighbours;
  /// Not seeded by anything: the same labels in, the same labels out.
  std::minstd_rand random;
  std::vector<bool> inForest;
  /// Costs of the labels of a forest's variables, one after the other, and
  /// where those of each begin.
  std::vector<Scaled> costs;
  std::vector<size_t> begins;
};

} // namespace shardc::solver

#endif // SHARDC_LIB_SOLVER_TREEDESCENT_H
