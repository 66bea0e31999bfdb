//===- DualGame.cpp - Weights of the best lower bound ---------------------===//

#include "DualGame.h"
#include "llvm/ADT/STLExtras.h"

using namespace shardc;
using llvm::ArrayRef;

/// The weights that count most of `taken`, none of them further from `center`
/// than `radius`.
static Rows heaviest(ArrayRef<double> taken, ArrayRef<double> center,
                     double radius) {
  Rows weights;
  double left = 1;
  for (double each : center) {
    weights.push_back(std::max(each - radius, 0.0));
    left -= weights.back();
  }
  auto all = llvm::seq<unsigned>(taken.size());
  llvm::SmallVector<unsigned> rows(all.begin(), all.end());
  llvm::stable_sort(
      rows, [&](unsigned a, unsigned b) { return taken[a] > taken[b]; });
  for (unsigned row : rows) {
    double more = std::min(left, center[row] + radius - weights[row]);
    weights[row] += more;
    left -= more;
  }
  return weights;
}

DualGame shardc::playDualGame(ArrayRef<const Candidate *> plans,
                              ArrayRef<double> center, double radius,
                              unsigned rounds) {
  // How much each row was weighed, what the plans that were picked take in
  // each row, and what each plan takes in the rows as they were weighed.
  Rows weighed(center.size(), 0), taken(center.size(), 0);
  std::vector<double> sums(plans.size(), 0);
  DualGame best{Rows(center.size(), 0), -1};
  for (unsigned round = 1; round <= rounds; ++round) {
    Rows weights = heaviest(taken, center, radius);
    for (auto [sum, weight] : llvm::zip_equal(weighed, weights))
      sum += weight;
    for (auto [sum, plan] : llvm::zip_equal(sums, plans))
      sum += weightedMean(weights, plan->rows);
    size_t answer = llvm::min_element(sums) - sums.begin();
    for (auto [sum, each] : llvm::zip_equal(taken, plans[answer]->rows))
      sum += each;
    double mean = sums[answer] / round;
    if (mean <= best.mean)
      continue;
    best.mean = mean;
    for (auto [weight, sum] : llvm::zip_equal(best.weights, weighed))
      weight = sum / round;
  }
  return best;
}
