//===- Candidates.cpp - Plans that a search has evaluated -----------------===//

#include "Candidates.h"
#include "shardc/Cost/Schedule.h"
#include "llvm/ADT/STLExtras.h"

using namespace shardc;
using llvm::ArrayRef;

/// Work units (table entries) that one evaluation counts as for each variable
/// of the network: what a solver looks at in the time that lowering and
/// scheduling a plan takes, 3 ms of a model of 80 variables.
static constexpr double kEvaluationWork = 5e4;

double shardc::weightedMean(ArrayRef<double> weights, ArrayRef<double> rows) {
  double sum = 0;
  for (auto [weight, row] : llvm::zip_equal(weights, rows))
    sum += weight * row;
  return sum;
}

Rows shardc::weighLongest(ArrayRef<double> rows) {
  Rows weights(rows.size(), 0);
  weights[llvm::max_element(rows) - rows.begin()] = 1;
  return weights;
}

Picoseconds Candidate::longestRow() const {
  return Picoseconds(*llvm::max_element(rows));
}

CandidatePool::Proposal
CandidatePool::propose(const std::vector<solver::Label> &assignment) {
  auto known = llvm::find_if(candidates, [&](const Candidate &candidate) {
    return candidate.assignment == assignment;
  });
  if (known != candidates.end())
    return {&*known, /*isNew=*/false};
  if (refused.count(assignment))
    return {};
  work.spend(kEvaluationWork * double(assignment.size()));
  std::optional<EvaluatedPlan> evaluated = evaluate(assignment);
  if (!evaluated) {
    refused.insert(assignment);
    return {};
  }
  return {&add(assignment, *evaluated), /*isNew=*/true};
}

/// The least time of a plan that takes `time` of a resource or chain.
double CandidatePool::rowOf(const Candidate &candidate,
                            Picoseconds time) const {
  return double(slowedByCollectives(options.slowdown, time, candidate.upper));
}

const Candidate &CandidatePool::add(std::vector<solver::Label> assignment,
                                    const EvaluatedPlan &evaluated) {
  Candidate &candidate = candidates.emplace_back();
  candidate.assignment = std::move(assignment);
  candidate.upper = evaluated.upper;
  for (Picoseconds time : evaluated.busy)
    candidate.rows.push_back(rowOf(candidate, time));
  for (const Chain &chain : rowsOfChains)
    candidate.rows.push_back(
        rowOf(candidate, times.lengthOf(chain, candidate.assignment)));
  candidate.value = objectiveTime(evaluated, options.objective);
  candidate.memoryCosts = evaluated.memoryCosts;
  if (capacity)
    candidate.missingBytes = evaluated.unlimitedPeak - *capacity;
  if (options.objective == Objective::Scheduled)
    addChains(candidate.assignment, /*withLoads=*/false);
  if (withNetworkWaits)
    addChains(candidate.assignment, /*withLoads=*/true);
  return candidate;
}

/// Adds the plan's longest chain to the rows, if it is not among them; with
/// loads, that chain over each network.
void CandidatePool::addChains(ArrayRef<solver::Label> assignment,
                              bool withLoads) {
  for (Chain &chain : times.longestChains(finder, assignment, withLoads)) {
    if (llvm::is_contained(rowsOfChains, chain))
      continue;
    for (Candidate &candidate : candidates)
      candidate.rows.push_back(
          rowOf(candidate, times.lengthOf(chain, candidate.assignment)));
    rowsOfChains.push_back(std::move(chain));
  }
}

void CandidatePool::addNetworkWaits() {
  withNetworkWaits = true;
  for (const Candidate &candidate : candidates)
    addChains(candidate.assignment, /*withLoads=*/true);
}

std::vector<const Candidate *>
CandidatePool::within(const solver::LabelSets &labels) const {
  auto isWithin = [&](const Candidate &candidate) {
    return llvm::all_of(llvm::zip_equal(labels, candidate.assignment),
                        [](const auto &pair) {
                          const auto &[flags, label] = pair;
                          return flags[label];
                        });
  };
  std::vector<const Candidate *> result;
  for (const Candidate &candidate : candidates)
    if (isWithin(candidate))
      result.push_back(&candidate);
  return result;
}

const Candidate &CandidatePool::incumbent() const {
  return *llvm::min_element(
      candidates, [](const Candidate &a, const Candidate &b) {
        return std::pair(a.value, a.upper) < std::pair(b.value, b.upper);
      });
}
