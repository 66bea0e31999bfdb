//===- Polish.cpp - Less memory at the same cost --------------------------===//

#include "Polish.h"
#include "shardc/Solver/Arithmetic.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc::solver {

namespace {
class Polisher {
public:
  Polisher(const Problem &problem, std::vector<Label> &assignment)
      : problem(problem), assignment(assignment),
        edgesOf(problem.variables.size()), usagesOf(problem.edges.size()) {
    for (auto [number, edge] : llvm::enumerate(problem.edges)) {
      edgesOf[edge.first].push_back(number);
      edgesOf[edge.second].push_back(number);
    }
    for (const EdgeUsage &usage : problem.edgeUsages)
      usagesOf[usage.edge].push_back(&usage);
    Evaluation now = evaluate(problem, assignment);
    usage = std::move(now.usage);
    peak = now.peak;
  }

  void run() {
    bool improved = true;
    for (unsigned sweep = 0; sweep < kMaxSweeps && improved; ++sweep) {
      improved = false;
      for (Variable v = 0; v < assignment.size(); ++v)
        improved |= improve(v);
    }
  }

private:
  static constexpr unsigned kMaxSweeps = 20;

  bool improve(Variable v) {
    const Label before = assignment[v];
    const Cost cost = costOf(v);
    Label best = before;
    Int128 least = volumeOf(v);
    for (Label label = 0; label < problem.variables[v].costs.size(); ++label) {
      if (label == before)
        continue;
      assignment[v] = label;
      Int128 volume = costOf(v) == cost ? volumeOf(v) : least;
      if (volume < least && fits(v, before, label)) {
        least = volume;
        best = label;
      }
    }
    assignment[v] = before;
    if (best == before)
      return false;
    move(v, before, best);
    return true;
  }

  /// Cost of the variable's label with its neighbours'.
  Cost costOf(Variable v) const {
    Cost sum = problem.variables[v].costs[assignment[v]];
    for (uint32_t number : edgesOf[v]) {
      const Edge &edge = problem.edges[number];
      sum = addCosts(sum, problem.tables[edge.table].at(
                              assignment[edge.first], assignment[edge.second]));
    }
    return sum;
  }

  /// Calls `visit` with each interval and its bytes.
  template <typename Visit> void forEachUsage(Variable v, Visit visit) const {
    if (const auto &own = problem.variables[v].usages; !own.empty())
      for (const Usage &each : own[assignment[v]])
        visit(each.begin, each.end, each.bytes);
    for (uint32_t number : edgesOf[v]) {
      const Edge &edge = problem.edges[number];
      size_t pair =
          size_t(assignment[edge.first]) * problem.tables[edge.table].columns +
          assignment[edge.second];
      for (const EdgeUsage *each : usagesOf[number])
        visit(each->begin, each->end, each->bytes[pair]);
    }
  }

  Int128 volumeOf(Variable v) const {
    Int128 volume = 0;
    forEachUsage(v, [&](uint32_t begin, uint32_t end, int64_t bytes) {
      volume += Int128(bytes) * (end - begin);
    });
    return volume;
  }

  void use(Variable v, Label label, int sign) {
    assignment[v] = label;
    forEachUsage(v, [&](uint32_t begin, uint32_t end, int64_t bytes) {
      for (uint32_t point = begin; point < end; ++point)
        usage[point] += sign * bytes;
    });
  }

  void move(Variable v, Label from, Label to) {
    use(v, from, -1);
    use(v, to, 1);
  }

  /// Leaves the assignment at `to`, usage as it was.
  bool fits(Variable v, Label from, Label to) {
    move(v, from, to);
    bool below =
        llvm::all_of(usage, [&](int64_t bytes) { return bytes <= peak; });
    move(v, to, from);
    assignment[v] = to;
    return below;
  }

  const Problem &problem;
  std::vector<Label> &assignment;
  std::vector<std::vector<uint32_t>> edgesOf;           // by variable
  std::vector<std::vector<const EdgeUsage *>> usagesOf; // by edge
  std::vector<int64_t> usage;                           // by point
  int64_t peak = 0;
};
} // namespace

void polish(const Problem &problem, std::vector<Label> &assignment) {
  Polisher(problem, assignment).run();
}

} // namespace shardc::solver
