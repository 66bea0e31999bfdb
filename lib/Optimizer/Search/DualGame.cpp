//===- DualGame.cpp - Weights of the best lower bound ---------------------===//

#include "DualGame.h"
#include "llvm/ADT/STLExtras.h"

using namespace shardc;
using llvm::ArrayRef;

/// Work units (table entries of a solver) for a number that a round reads: most
/// are read in order.
static constexpr double kReadWork = 0.25;

namespace {
/// The moves of both players so far. A round reads of each plan one number for
/// each row that it weighs by more than the least, and two more.
class Game {
public:
  Game(ArrayRef<const Candidate *> plans, ArrayRef<double> center,
       double radius);

  /// One player weighs the rows, the other picks a plan.
  void playRound();

  /// The mean of the plan that was picked last, over so many rounds.
  double meanAfter(unsigned rounds) const { return sums[picked] / rounds; }
  const Rows &weighedRows() const { return weighed; }
  double numbersRead() const { return read; }

private:
  void weigh(size_t row, double weight);

  /// The time of each plan in each row, row by row.
  std::vector<std::vector<double>> times;
  /// Weights that rows have in every round, what each plan takes then, and what
  /// these weights leave of one.
  Rows least;
  std::vector<double> leastSums;
  double open = 1;
  /// The most that each row may have besides.
  Rows most;
  /// How much each row was weighed, what the plans that were picked take in
  /// each row, and what each plan takes in the rows as they were weighed.
  Rows weighed, taken;
  std::vector<double> sums;
  size_t picked = 0;
  double read;
};
} // namespace

Game::Game(ArrayRef<const Candidate *> plans, ArrayRef<double> center,
           double radius)
    : leastSums(plans.size(), 0), weighed(center.size(), 0),
      taken(center.size(), 0), sums(plans.size(), 0),
      read(double(plans.size() * center.size())) {
  for (auto [row, each] : llvm::enumerate(center)) {
    std::vector<double> &ofRow = times.emplace_back();
    for (const Candidate *plan : plans)
      ofRow.push_back(plan->rows[row]);
    least.push_back(std::max(each - radius, 0.0));
    most.push_back(each + radius - least.back());
    open -= least.back();
    for (auto [sum, time] : llvm::zip_equal(leastSums, ofRow))
      sum += least.back() * time;
  }
}

void Game::weigh(size_t row, double weight) {
  weighed[row] += weight;
  for (auto [sum, time] : llvm::zip_equal(sums, times[row]))
    sum += weight * time;
  read += double(sums.size());
}

void Game::playRound() {
  for (auto [sum, each] : llvm::zip_equal(weighed, least))
    sum += each;
  for (auto [sum, each] : llvm::zip_equal(sums, leastSums))
    sum += each;
  // The rest goes to the rows that took most so far.
  auto all = llvm::seq<unsigned>(taken.size());
  llvm::SmallVector<unsigned> rows(all.begin(), all.end());
  llvm::stable_sort(
      rows, [&](unsigned a, unsigned b) { return taken[a] > taken[b]; });
  double left = open;
  for (unsigned row : rows) {
    if (left <= 0)
      break;
    double more = std::min(left, most[row]);
    if (more > 0)
      weigh(row, more);
    left -= more;
  }
  picked = llvm::min_element(sums) - sums.begin();
  for (auto [sum, ofRow] : llvm::zip_equal(taken, times))
    sum += ofRow[picked];
  read += double(2 * sums.size() + 8 * rows.size());
}

DualGame shardc::playDualGame(ArrayRef<const Candidate *> plans,
                              ArrayRef<double> center, double radius,
                              unsigned rounds) {
  Game game(plans, center, radius);
  DualGame best{Rows(center.size(), 0)};
  for (unsigned round = 1; round <= rounds; ++round) {
    game.playRound();
    double mean = game.meanAfter(round);
    if (mean <= best.mean)
      continue;
    best.mean = mean;
    for (auto [weight, sum] : llvm::zip_equal(best.weights, game.weighedRows()))
      weight = sum / round;
  }
  best.work = kReadWork * game.numbersRead();
  return best;
}
