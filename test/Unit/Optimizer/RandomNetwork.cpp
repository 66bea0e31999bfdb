//===- RandomNetwork.cpp - Small networks without a program ---------------===//

#include "RandomNetwork.h"
#include "shardc/Cost/Schedule.h"
#include "llvm/ADT/STLExtras.h"
#include <random>

using namespace shardc;
using namespace shardc::test;
using solver::Cost;
using solver::Label;

static constexpr unsigned kVariables = 6, kLabels = 3, kNetworks = 2;

RandomNetwork::RandomNetwork(uint64_t seed, int64_t slowdown)
    : slowdown(slowdown) {
  std::mt19937_64 random(seed);
  auto below = [&](uint64_t limit) { return int64_t(random() % limit); };
  solver::Problem &problem = network.problem;
  network.resources.resize(1 + kNetworks);
  ResourceTimes &device = network.resources.front();
  problem.numPoints = 2;
  if (seed % 2)
    problem.capacity = 60;
  for (unsigned v = 0; v < kVariables; ++v) {
    network.chunkVariable.push_back(v);
    solver::VariableData &variable = problem.variables.emplace_back();
    for (Label label = 0; label < kLabels; ++label) {
      variable.costs.push_back(100 + below(900));
      uint32_t begin = uint32_t(below(2));
      variable.usages.push_back({{begin, begin + 1, 1 + below(20)}});
    }
    device.variables.push_back(variable.costs);
    for (ResourceTimes &row : llvm::drop_begin(network.resources))
      row.variables.emplace_back();
  }
  auto connect = [&](solver::Variable first, solver::Variable second) {
    problem.edges.push_back(
        {first, second, solver::TableId(problem.tables.size())});
    solver::Table &table = problem.tables.emplace_back();
    table.rows = table.columns = kLabels;
    std::vector<std::vector<Cost>> parts(
        kNetworks, std::vector<Cost>(kLabels * kLabels, 0));
    for (size_t entry = 0; entry < kLabels * kLabels; ++entry) {
      Cost time = below(1000);
      parts[below(kNetworks)][entry] = time;
      // The diagonal is allowed, so that there is a plan without a limit.
      bool isForbidden = entry % (kLabels + 1) != 0 && below(8) == 0;
      table.costs.push_back(isForbidden ? solver::kForbidden : time);
    }
    device.edges.emplace_back();
    for (auto [row, part] :
         llvm::zip_equal(llvm::drop_begin(network.resources), parts))
      row.edges.push_back(part);
  };
  for (solver::Variable v = 1; v < kVariables; ++v)
    connect(v - 1, v);
  connect(0, kVariables - 1);
}

bool RandomNetwork::isPlan(llvm::ArrayRef<Label> assignment) const {
  solver::Evaluation evaluated = solver::evaluate(network.problem, assignment);
  return evaluated.cost && evaluated.fits;
}

std::vector<std::vector<Label>> RandomNetwork::plans() const {
  std::vector<std::vector<Label>> plans;
  std::vector<Label> assignment(kVariables, 0);
  while (true) {
    if (isPlan(assignment))
      plans.push_back(assignment);
    unsigned v = 0;
    while (v < kVariables && ++assignment[v] == kLabels)
      assignment[v++] = 0;
    if (v == kVariables)
      return plans;
  }
}

EvaluatedPlan RandomNetwork::schedule(llvm::ArrayRef<Label> assignment) const {
  EvaluatedPlan plan;
  uint64_t hash = 0;
  for (Label label : assignment)
    hash = hash * 31 + label + 1;
  for (const ResourceTimes &row : network.resources) {
    Picoseconds busy = 0;
    for (auto [costs, label] : llvm::zip_equal(row.variables, assignment))
      busy += costs.empty() ? 0 : costs[label];
    for (auto [costs, edge] : llvm::zip_equal(row.edges, network.problem.edges))
      busy += costs.empty() ? 0
                            : costs[assignment[edge.first] * kLabels +
                                    assignment[edge.second]];
    plan.busy.push_back(busy);
    plan.upper += busy;
  }
  plan.lower = *llvm::max_element(plan.busy);
  plan.scheduled =
      plan.lower + (plan.upper - plan.lower) * Picoseconds(hash % 4) / 8;
  for (Picoseconds *time : {&plan.lower, &plan.scheduled})
    *time = slowedByCollectives(slowdown, *time, plan.upper);
  plan.memoryCosts = plan.scheduled - plan.lower;
  plan.unlimitedPeak = 70;
  return plan;
}

Picoseconds RandomNetwork::time(Objective objective,
                                llvm::ArrayRef<Label> assignment) const {
  EvaluatedPlan plan = schedule(assignment);
  return objective == Objective::Lower ? plan.lower : plan.scheduled;
}

Picoseconds RandomNetwork::optimum(Objective objective) const {
  Picoseconds least = std::numeric_limits<Picoseconds>::max();
  for (const std::vector<Label> &plan : plans())
    least = std::min(least, time(objective, plan));
  return least;
}
