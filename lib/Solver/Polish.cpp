//===- Polish.cpp - Less memory at the same cost --------------------------===//

#include "shardc/Solver/Polish.h"
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

  void run(bool withChains) {
    bool improved = true;
    for (unsigned sweep = 0; sweep < kMaxSweeps && improved; ++sweep) {
      improved = false;
      for (Variable v = 0; v < assignment.size(); ++v)
        improved |= improve(v);
      if (!improved && withChains)
        for (Variable v : byVolume())
          improved |= improveChain(v);
    }
  }

private:
  static constexpr unsigned kMaxSweeps = 20;
  /// Variables of a chain, at most, and labels that the chains from one
  /// variable and all chains may look at.
  static constexpr size_t kMaxChain = 8, kMaxLooks = 5'000,
                          kMaxLooksInAll = 500'000;

  /// The variables that use memory, those that use most first.
  llvm::SmallVector<Variable> byVolume() const {
    std::vector<std::pair<Int128, Variable>> order;
    for (Variable v = 0; v < assignment.size(); ++v)
      if (Int128 volume = volumeOf(v); volume > 0)
        order.emplace_back(-volume, v);
    llvm::sort(order);
    return llvm::to_vector(llvm::make_second_range(order));
  }

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

  struct Link {
    Variable variable;
    Label before;
  };

  /// Gives a variable a label that costs more with its neighbours, these labels
  /// that mend it, and so on: views of one tensor, say, which are all whole or
  /// all sharded. Short chains come first, for there are many long ones.
  bool improveChain(Variable v) {
    looks = std::min(kMaxLooks, looksLeft);
    looksLeft -= looks;
    bool improved = false;
    isCut = true;
    for (longest = 2; longest <= kMaxChain && looks > 0 && isCut && !improved;
         ++longest) {
      chain.clear();
      isCut = false;
      improved = follow(v);
    }
    looksLeft += looks;
    return improved;
  }

  /// Extends the chain by a variable; true, with its labels left in place, if
  /// the chain then costs what it did and uses less memory.
  bool follow(Variable v) {
    const Label before = assignment[v];
    chain.push_back({v, before});
    const std::vector<Cost> &own = problem.variables[v].costs;
    for (Label label = 0; label < own.size() && looks > 0; ++label) {
      --looks;
      if (label == before || own[label] != own[before])
        continue;
      assignment[v] = label;
      if (agrees(v) && closes())
        return true;
    }
    assignment[v] = before;
    chain.pop_back();
    return false;
  }

  /// The variable's pairs with others of the chain cost what they did.
  bool agrees(Variable v) const {
    return llvm::all_of(edgesOf[v], [&](uint32_t number) {
      return !inChain(otherOf(number, v)) || isAsBefore(number);
    });
  }

  /// True if all pairs of the chain cost what they did, or if it goes on so.
  bool closes() {
    for (const Link &link : chain)
      for (uint32_t number : edgesOf[link.variable])
        if (!isAsBefore(number)) {
          isCut |= chain.size() >= longest;
          return chain.size() < longest &&
                 follow(otherOf(number, link.variable));
        }
    return usesLess();
  }

  Variable otherOf(uint32_t number, Variable v) const {
    const Edge &edge = problem.edges[number];
    return edge.first == v ? edge.second : edge.first;
  }

  bool inChain(Variable v) const {
    return llvm::any_of(chain,
                        [&](const Link &link) { return link.variable == v; });
  }

  bool isAsBefore(uint32_t number) const {
    const Edge &edge = problem.edges[number];
    const Table &table = problem.tables[edge.table];
    return table.at(assignment[edge.first], assignment[edge.second]) ==
           table.at(labelBefore(edge.first), labelBefore(edge.second));
  }

  /// What the variable had before the chain.
  Label labelBefore(Variable v) const {
    for (const Link &link : chain)
      if (link.variable == v)
        return link.before;
    return assignment[v];
  }

  /// Keeps the chain's labels if they use less memory and no point more than
  /// the peak.
  bool usesLess() {
    // Each variable in turn, with those before it changed.
    exchangeLabels();
    Int128 change = 0;
    for (Link &link : chain) {
      change -= volumeOf(link.variable);
      std::swap(assignment[link.variable], link.before);
      change += volumeOf(link.variable);
    }
    return change < 0 && staysBelowPeak();
  }

  /// True if no point has more than the peak once usages are those of the
  /// chain's labels; they then are.
  bool staysBelowPeak() {
    moveUsages();
    if (llvm::all_of(usage, [&](int64_t bytes) { return bytes <= peak; }))
      return true;
    exchangeLabels();
    moveUsages();
    exchangeLabels();
    return false;
  }

  /// Changes usages from those of the labels before to those of the chain's.
  void moveUsages() {
    exchangeLabels();
    for (Link &link : chain) {
      Label after = link.before;
      link.before = assignment[link.variable];
      move(link.variable, link.before, after);
    }
  }

  /// Variables get the labels that their links keep, and the other way round.
  void exchangeLabels() {
    for (Link &link : chain)
      std::swap(assignment[link.variable], link.before);
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
  std::vector<Link> chain;
  /// Variables of a chain at most, and whether that ended some.
  size_t longest = kMaxChain;
  bool isCut = false;
  size_t looks = 0, looksLeft = kMaxLooksInAll;
};
} // namespace

void polish(const Problem &problem, std::vector<Label> &assignment) {
  Polisher(problem, assignment).run(/*withChains=*/false);
}

void polishChains(const Problem &problem, std::vector<Label> &assignment) {
  Polisher(problem, assignment).run(/*withChains=*/true);
}

} // namespace shardc::solver
