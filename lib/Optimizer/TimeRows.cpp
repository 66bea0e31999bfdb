//===- TimeRows.cpp - A network's times by resource -----------------------===//

#include "shardc/Optimizer/TimeRows.h"
#include "NetworkBuilder.h"
#include "shardc/Cost/Schedule.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace shardc;
using solver::Cost;
using solver::kForbidden;
using solver::Label;
using solver::LabelSets;
using solver::Variable;

//===----------------------------------------------------------------------===//
// Some labels
//===----------------------------------------------------------------------===//

std::vector<Label> PartialProblem::expand(ArrayRef<Label> assignment) const {
  std::vector<Label> result;
  for (auto [own, label] : llvm::zip_equal(labels, assignment))
    result.push_back(own[label]);
  return result;
}

std::optional<std::vector<Label>>
    PartialProblem::restrict(ArrayRef<Label> assignment) const {
  std::vector<Label> result;
  for (auto [own, label] : llvm::zip_equal(labels, assignment)) {
    auto found = llvm::lower_bound(own, label);
    if (found == own.end() || *found != label)
      return std::nullopt;
    result.push_back(found - own.begin());
  }
  return result;
}

void PartialProblem::raise(solver::LabelBounds &network,
                           const solver::LabelBounds &bounds,
                           int64_t parts) const {
  for (auto [raised, own, found] : llvm::zip_equal(network, labels, bounds))
    for (auto [label, bound] : llvm::zip_equal(own, found))
      raised[label] =
          std::max(raised[label],
                   bound >= kForbidden
                       ? kForbidden
                       : Cost(llvm::divideCeil(
                             std::max<Cost>(bound + constant, 0), parts)));
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

ArrayRef<Cost> TimeRows::edgeCosts(size_t edge) const {
  const solver::Problem &problem = network->problem;
  return problem.tables[problem.edges[edge].table].costs;
}

/// Sums of two terms less one of them; empty if nothing is left.
static std::vector<Cost> without(ArrayRef<Cost> sums, ArrayRef<Cost> part) {
  std::vector<Cost> result = sums.vec();
  if (!part.empty())
    for (auto [sum, cost] : llvm::zip_equal(result, part))
      if (sum != kForbidden)
        sum -= cost;
  return unlessZero(std::move(result));
}

TimeRows::TimeRows(const PlanNetwork &network) : network(&network) {
  for (auto [variable, part] :
       llvm::zip_equal(network.problem.variables, device().variables))
    collectives.variables.push_back(without(variable.costs, part));
  for (auto [index, part] : llvm::enumerate(device().edges))
    collectives.edges.push_back(without(edgeCosts(index), part));
  for (auto [number, row] : llvm::enumerate(networks()))
    if (llvm::none_of(networksOnce, [&, &row = row](unsigned earlier) {
          return networks()[earlier].edges == row.edges;
        }))
      networksOnce.push_back(number);
}

TimeRows::Terms TimeRows::termsOf(std::vector<Costs> ResourceTimes::*part,
                                  size_t index,
                                  const RowWeights &weights) const {
  Terms terms;
  auto add = [&](const ResourceTimes &row, int64_t weight, bool isLimited) {
    const Costs &costs = (row.*part)[index];
    if (costs.empty())
      return;
    if (weight != 0)
      terms.weighted.emplace_back(&costs, weight);
    if (isLimited)
      terms.limited.push_back(&costs);
  };
  add(device(), weights.device, true);
  add(collectives, weights.collectives, false);
  for (auto [number, row] : llvm::enumerate(networks()))
    add(row, number < weights.networks.size() ? weights.networks[number] : 0,
        true);
  return terms;
}

/// With the loads of chains.
TimeRows::Terms TimeRows::termsOfEdge(size_t index,
                                      const RowWeights &weights) const {
  Terms terms = termsOf(&ResourceTimes::edges, index, weights);
  terms.allowed = edgeCosts(index);
  for (auto [number, row] : llvm::enumerate(networks())) {
    auto load = weights.chain.loads.find({unsigned(number), unsigned(index)});
    if (load != weights.chain.loads.end() && !row.edges[index].empty())
      terms.weighted.emplace_back(&row.edges[index], load->second);
  }
  return terms;
}

Cost TimeRows::Terms::at(size_t entry, const RowLimits &limits) const {
  if (allowed[entry] == kForbidden)
    return kForbidden;
  for (const Costs *costs : limited)
    if ((*costs)[entry] > limits.each)
      return kForbidden;
  Cost total = 0;
  for (auto [costs, weight] : weighted)
    total = sum(total, scaled((*costs)[entry], weight));
  return limits.apply(total);
}

void TimeRows::forEachLink(
    const Chain &chain,
    llvm::function_ref<void(const LinkTime &, const LinkCost &)> call) const {
  auto visit = [&](const ChainLink &link, LinkCost cost) {
    if (auto found = network->links.find(link); found != network->links.end())
      call(found->second, cost);
  };
  for (auto [link, runs] : chain.links)
    visit(link, [runs = runs](Cost time) { return scaled(time, runs); });
  for (auto [link, runs] : chain.capped)
    visit(link.link, [runs = runs, most = link.most](Cost time) {
      return scaled(std::min(time, most), runs);
    });
}

PartialProblem TimeRows::combine(const RowWeights &weights,
                                 const LabelSets &labels,
                                 const RowLimits &given) const {
  const solver::Problem &whole = network->problem;
  PartialProblem result;
  result.constant = weights.chain.constant;
  RowLimits limits = given;
  if (limits.weighed < solver::kMaxTotal)
    limits.weighed -= result.constant;
  solver::Problem &problem = result.problem;
  problem.numPoints = whole.numPoints;
  problem.capacity = whole.capacity;
  problem.fixedUsage = whole.fixedUsage;
  for (auto [index, variable] : llvm::enumerate(whole.variables)) {
    std::vector<Label> &own = result.labels.emplace_back();
    solver::VariableData &data = problem.variables.emplace_back();
    data.name = variable.name;
    Terms terms = termsOf(&ResourceTimes::variables, index, weights);
    terms.allowed = variable.costs;
    for (Label label = 0; label < variable.costs.size(); ++label) {
      if (!labels[index][label])
        continue;
      own.push_back(label);
      data.costs.push_back(terms.at(label, limits));
      if (!variable.usages.empty())
        data.usages.push_back(variable.usages[label]);
    }
  }
  /// Calls with each entry of a table that is left, in order.
  auto eachEntry = [&](solver::Variable first, solver::Variable second,
                       auto call) {
    size_t columns = whole.variables[second].costs.size();
    for (Label row : result.labels[first])
      for (Label column : result.labels[second])
        call(row * columns + column);
  };
  auto addEdge = [&](solver::Variable first, solver::Variable second,
                     auto cost) {
    problem.edges.push_back(
        {first, second, solver::TableId(problem.tables.size())});
    solver::Table &table = problem.tables.emplace_back();
    table.rows = result.labels[first].size();
    table.columns = result.labels[second].size();
    table.costs.reserve(size_t(table.rows) * table.columns);
    eachEntry(first, second,
              [&](size_t entry) { table.costs.push_back(cost(entry)); });
  };
  for (auto [index, edge] : llvm::enumerate(whole.edges)) {
    Terms terms = termsOfEdge(index, weights);
    addEdge(edge.first, edge.second,
            [&](size_t entry) { return terms.at(entry, limits); });
  }
  for (const solver::EdgeUsage &usage : whole.edgeUsages) {
    solver::EdgeUsage &own = problem.edgeUsages.emplace_back();
    own.edge = usage.edge;
    own.begin = usage.begin;
    own.end = usage.end;
    const solver::Edge &edge = whole.edges[usage.edge];
    eachEntry(edge.first, edge.second,
              [&](size_t entry) { own.bytes.push_back(usage.bytes[entry]); });
  }
  forEachLink(weights.chain, [&](const LinkTime &time, const LinkCost &cost) {
    if (time.second)
      addEdge(time.first, *time.second, [&](size_t entry) {
        return limits.apply(cost(time.times[entry]));
      });
    else
      for (auto [total, label] : llvm::zip_equal(
               problem.variables[time.first].costs, result.labels[time.first]))
        total = limits.apply(sum(total, cost(time.times[label])));
  });
  return result;
}

Cost TimeRows::edgeCost(const Costs &costs, size_t edge,
                        ArrayRef<Label> assignment) const {
  if (costs.empty())
    return 0;
  const solver::Problem &problem = network->problem;
  auto [first, second, table] = problem.edges[edge];
  return costs[size_t(assignment[first]) * problem.tables[table].columns +
               assignment[second]];
}

Cost TimeRows::loadOf(ChainLoad load, ArrayRef<Label> assignment) const {
  return edgeCost(networks()[load.network].edges[load.edge], load.edge,
                  assignment);
}

std::vector<Chain> TimeRows::longestChains(const ChainFinder &finder,
                                           ArrayRef<Label> assignment,
                                           bool withLoads) const {
  auto load = [&](ChainLoad load) { return loadOf(load, assignment); };
  std::vector<Chain> chains = finder.longest(
      {network->links, assignment,
       withLoads ? ArrayRef(networksOnce) : ArrayRef<unsigned>(), load});
  // Loads that never occupy the network do not matter.
  for (Chain &chain : chains)
    std::erase_if(chain.loads, [&](const auto &each) {
      return networks()[each.first.network].edges[each.first.edge].empty();
    });
  return chains;
}

Cost TimeRows::lengthOf(const Chain &chain, ArrayRef<Label> assignment) const {
  auto load = [&](ChainLoad load) { return loadOf(load, assignment); };
  return shardc::lengthOf(chain,
                          {network->links, assignment, networksOnce, load});
}

LabelSets TimeRows::allLabels() const {
  LabelSets result;
  for (const solver::VariableData &variable : network->problem.variables)
    result.emplace_back(variable.costs.size(), true);
  return result;
}

bool TimeRows::isFree(solver::Variable variable) const {
  return device().variables[variable].empty() &&
         llvm::all_of(llvm::zip_equal(device().edges, network->problem.edges),
                      [&](const auto &pair) {
                        const auto &[costs, edge] = pair;
                        return costs.empty() || (edge.first != variable &&
                                                 edge.second != variable);
                      });
}

void TimeRows::addTimes(const ResourceTimes &row, std::vector<double> &times,
                        llvm::function_ref<double(const TimeOf &)> of) const {
  for (auto [index, costs] : llvm::enumerate(row.variables))
    if (!costs.empty())
      times[index] += of([&, index = index](ArrayRef<Label> assignment) {
        return costs[assignment[index]];
      });
  for (auto [index, edge] : llvm::enumerate(network->problem.edges)) {
    double time = of([&, index = index](ArrayRef<Label> assignment) {
      return edgeCost(row.edges[index], index, assignment);
    });
    times[edge.first] += time;
    times[edge.second] += time;
  }
}

std::vector<double> TimeRows::differences(ArrayRef<Label> a,
                                          ArrayRef<Label> b) const {
  std::vector<double> result(network->problem.variables.size(), 0);
  for (const ResourceTimes *row : {&device(), &collectives})
    addTimes(*row, result, [&](const TimeOf &time) {
      return std::abs(double(time(a) - time(b)));
    });
  return result;
}

std::vector<double>
TimeRows::collectiveTimes(ArrayRef<Label> assignment) const {
  std::vector<double> result(network->problem.variables.size(), 0);
  addTimes(collectives, result,
           [&](const TimeOf &time) { return double(time(assignment)); });
  return result;
}

std::vector<Cost> TimeRows::busyTimes(ArrayRef<Label> assignment) const {
  std::vector<Cost> times;
  for (const ResourceTimes &resource : network->resources) {
    Cost &time = times.emplace_back(0);
    for (auto [own, label] : llvm::zip_equal(resource.variables, assignment))
      time = sum(time, own.empty() ? 0 : own[label]);
    for (auto [index, costs] : llvm::enumerate(resource.edges))
      time = sum(time, edgeCost(costs, index, assignment));
  }
  return times;
}

std::vector<Cost> TimeRows::busyTimes(Variable variable,
                                      ArrayRef<Label> assignment) const {
  std::vector<Cost> times;
  for (const ResourceTimes &resource : network->resources) {
    const Costs &own = resource.variables[variable];
    times.push_back(own.empty() ? 0 : own[assignment[variable]]);
    for (auto [index, edge] : llvm::enumerate(network->problem.edges))
      if (edge.first == variable || edge.second == variable)
        times.back() = sum(times.back(),
                           edgeCost(resource.edges[index], index, assignment));
  }
  return times;
}

//===----------------------------------------------------------------------===//
// Limits
//===----------------------------------------------------------------------===//

namespace {
/// Adds points of memory that stand for times to a problem.
class TimePoints {
public:
  /// `whole` is the problem of all labels.
  TimePoints(PartialProblem &partial, const solver::Problem &whole,
             Picoseconds limit, Cost leastConstant);

  /// Opens one more point, which takes the times that follow and a constant,
  /// from `leastConstant` to 0.
  void open(Cost constant = 0);
  /// Adds times of labels of the whole variable.
  void takeAt(solver::Variable variable,
              llvm::function_ref<Cost(size_t label)> time);
  /// Adds times of pairs of labels of the whole variables, by entries of the
  /// whole table.
  void takeBetween(uint32_t edge, llvm::function_ref<Cost(size_t entry)> time);
  /// A new edge, without costs.
  uint32_t connect(solver::Variable first, solver::Variable second);

private:
  /// More than the limit is too much, however much.
  int64_t bytesOf(Cost time) const { return std::min(time, most + 1); }

  PartialProblem &partial;
  solver::Problem &problem;
  const solver::Problem &whole;
  /// The limit, and with it the largest constant.
  Picoseconds limit, most;
};
} // namespace

TimePoints::TimePoints(PartialProblem &partial, const solver::Problem &whole,
                       Picoseconds limit, Cost leastConstant)
    : partial(partial), problem(partial.problem), whole(whole), limit(limit),
      most(limit - leastConstant) {
  if (!problem.capacity) {
    // Memory does not matter, and from now on points do.
    problem.capacity = most;
    problem.numPoints = 0;
    problem.fixedUsage.clear();
    problem.edgeUsages.clear();
    for (solver::VariableData &variable : problem.variables)
      variable.usages.clear();
  }
  problem.fixedUsage.resize(problem.numPoints, 0);
  // One capacity for all: what is too much of it is in use already.
  if (int64_t more = most - *problem.capacity; more > 0) {
    *problem.capacity += more;
    for (int64_t &usage : problem.fixedUsage)
      usage += more;
  }
}

void TimePoints::open(Cost constant) {
  problem.fixedUsage.push_back(*problem.capacity - limit + constant);
  ++problem.numPoints;
}

void TimePoints::takeAt(solver::Variable variable,
                        llvm::function_ref<Cost(size_t label)> time) {
  solver::VariableData &data = problem.variables[variable];
  data.usages.resize(data.costs.size());
  for (auto [usages, label] :
       llvm::zip_equal(data.usages, partial.labels[variable]))
    if (int64_t bytes = bytesOf(time(label)); bytes > 0)
      usages.push_back({problem.numPoints - 1, problem.numPoints, bytes});
}

void TimePoints::takeBetween(uint32_t edge,
                             llvm::function_ref<Cost(size_t entry)> time) {
  auto [first, second, table] = problem.edges[edge];
  size_t columns = whole.variables[second].costs.size();
  solver::EdgeUsage usage;
  usage.edge = edge;
  usage.begin = problem.numPoints - 1;
  usage.end = problem.numPoints;
  for (Label row : partial.labels[first])
    for (Label column : partial.labels[second])
      usage.bytes.push_back(bytesOf(time(row * columns + column)));
  if (llvm::any_of(usage.bytes, [](int64_t bytes) { return bytes > 0; }))
    problem.edgeUsages.push_back(std::move(usage));
}

uint32_t TimePoints::connect(solver::Variable first, solver::Variable second) {
  problem.edges.push_back(
      {first, second, solver::TableId(problem.tables.size())});
  solver::Table &table = problem.tables.emplace_back();
  table.rows = partial.labels[first].size();
  table.columns = partial.labels[second].size();
  table.costs.assign(size_t(table.rows) * table.columns, 0);
  return problem.edges.size() - 1;
}

PartialProblem TimeRows::limitRows(const RowWeights &weights,
                                   const LabelSets &labels,
                                   ArrayRef<Chain> chains,
                                   const RowLimits &limits) const {
  PartialProblem result = combine(weights, labels, limits);
  // Times are in parts, so that none is rounded.
  const int64_t parts = limits.slowdown == 0 ? 1 : kSlowdownUnit;
  Cost leastConstant = 0;
  for (const Chain &chain : chains)
    leastConstant = std::min(leastConstant, chain.constant * parts);
  TimePoints points(result, network->problem, scaled(limits.each, parts),
                    leastConstant);
  auto isNever = [&](std::vector<Costs> ResourceTimes::*part, size_t index,
                     const Costs &own) {
    return own.empty() &&
           (limits.slowdown == 0 || ((device().*part)[index].empty() &&
                                     (collectives.*part)[index].empty()));
  };
  auto timeOf = [&](std::vector<Costs> ResourceTimes::*part, size_t index,
                    const Costs &own, size_t entry) {
    auto at = [&](const Costs &costs, int64_t weight) {
      return costs.empty() ? 0 : scaled(costs[entry], weight);
    };
    Cost time = at(own, parts - limits.slowdown);
    for (const ResourceTimes *row : {&device(), &collectives})
      time = sum(time, at((row->*part)[index], limits.slowdown));
    return time;
  };
  SmallVector<const ResourceTimes *, 4> resources = {&device()};
  for (const ResourceTimes &row : networks())
    resources.push_back(&row);
  for (const ResourceTimes *row : resources) {
    points.open();
    auto takeAll = [&](std::vector<Costs> ResourceTimes::*part, auto take) {
      for (auto [index, own] : llvm::enumerate(row->*part))
        if (!isNever(part, index, own))
          take(index, [&, index = index, &own = own](size_t entry) {
            return timeOf(part, index, own, entry);
          });
    };
    takeAll(&ResourceTimes::variables,
            [&](size_t variable, auto time) { points.takeAt(variable, time); });
    takeAll(&ResourceTimes::edges,
            [&](size_t edge, auto time) { points.takeBetween(edge, time); });
  }
  for (const Chain &chain : chains) {
    points.open(chain.constant * parts);
    forEachLink(chain, [&](const LinkTime &time, const LinkCost &cost) {
      auto timeOf = [&](size_t entry) {
        return scaled(cost(time.times[entry]), parts);
      };
      if (time.second)
        points.takeBetween(points.connect(time.first, *time.second), timeOf);
      else
        points.takeAt(time.first, timeOf);
    });
    for (auto &[load, times] : chain.loads) {
      const Costs &costs = networks()[load.network].edges[load.edge];
      if (!costs.empty())
        points.takeBetween(load.edge, [&, times = times](size_t entry) {
          return scaled(costs[entry], times * parts);
        });
    }
  }
  return result;
}
