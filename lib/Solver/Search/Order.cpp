//===- Order.cpp - A problem's variables in the order of time -------------===//

#include "Order.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>
#include <numeric>
#include <utility>

namespace shardc::solver::search {

namespace {
/// Places variables in time, first those that begin to use memory at a point of
/// their own, then from neighbour to neighbour.
class Placement {
public:
  explicit Placement(const Problem &problem)
      : neighbours(problem.variables.size()) {
    for (const Edge &edge : problem.edges) {
      neighbours[edge.first].push_back(edge.second);
      neighbours[edge.second].push_back(edge.first);
    }
    for (const VariableData &variable : problem.variables)
      begins.push_back(beginOf(variable));
    for (std::optional<uint32_t> begin : begins)
      places.push_back(begin && *begin > 0 ? std::optional(2.0 * *begin)
                                           : std::nullopt);
  }

  std::vector<std::optional<double>> run() {
    std::vector<Variable> last;
    for (Variable v = 0; v < places.size(); ++v)
      if (places[v])
        last.push_back(v);
    while (!last.empty())
      last = placeBeside(last);
    return std::move(places);
  }

private:
  static std::optional<uint32_t> beginOf(const VariableData &variable) {
    std::optional<uint32_t> begin;
    for (const std::vector<Usage> &usages : variable.usages)
      for (const Usage &usage : usages)
        if (usage.begin < usage.end)
          begin = std::min(begin.value_or(usage.begin), usage.begin);
    return begin;
  }

  /// Places the neighbours of those that were placed last.
  std::vector<Variable> placeBeside(const std::vector<Variable> &last) {
    std::vector<std::pair<Variable, double>> placed;
    for (Variable v : last)
      for (Variable other : neighbours[v])
        if (!places[other])
          placed.emplace_back(other, placeOf(other));
    std::vector<Variable> result;
    for (auto [v, place] : placed)
      if (!std::exchange(places[v], place))
        result.push_back(v);
    return result;
  }

  /// Beside its neighbours that have a place.
  double placeOf(Variable v) const {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    double first = infinity, last = -infinity;
    for (Variable other : neighbours[v])
      if (std::optional<double> place = places[other]) {
        first = std::min(first, *place);
        last = std::max(last, *place);
      }
    return begins[v] ? first - 0.5 : last + 0.5;
  }

  std::vector<std::vector<Variable>> neighbours;
  std::vector<std::optional<uint32_t>> begins;
  std::vector<std::optional<double>> places;
};
} // namespace

std::vector<Variable> orderByTime(const Problem &problem) {
  std::vector<std::optional<double>> places = Placement(problem).run();
  std::vector<Variable> order(problem.variables.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(
      order, [&](Variable a, Variable b) { return places[a] < places[b]; });
  return order;
}

Problem reordered(const Problem &problem, llvm::ArrayRef<Variable> order) {
  Problem result = problem;
  std::vector<VariableData> variables;
  std::vector<Variable> position(order.size());
  for (auto [index, variable] : llvm::enumerate(order)) {
    variables.push_back(std::move(result.variables[variable]));
    position[variable] = index;
  }
  result.variables = std::move(variables);
  for (Edge &edge : result.edges) {
    edge.first = position[edge.first];
    edge.second = position[edge.second];
  }
  return result;
}

} // namespace shardc::solver::search
