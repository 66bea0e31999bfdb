//===- Chains.h - Work that waits for each other --------------*- C++ -*-===//
//
// A chain is a part of a step's work that no schedule can overlap: groups that
// the compute stream runs one after the other, and between two of them the
// collectives on which the second waits for the first
// (docs/Optimizer.md#3-what-is-proven), or what one physical network carries
// between the two. It is made of links and of loads, each of which has a cost
// of its own in the network.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_OPTIMIZER_CHAINS_H
#define SHARDC_OPTIMIZER_CHAINS_H

#include "shardc/Optimizer/Graph.h"
#include "shardc/Solver/Problem.h"
#include <map>
#include <memory>

namespace shardc {

/// One term of the network's costs.
struct ChainLink {
  enum class Kind {
    Group,      // a fusion group: index into Graph::groups
    Statistics, // the statistics of a chunk
    Store,      // of a value: from how it is made to how it is stored
    Read,       // of a value, by a chunk
    Flow,       // of a value into another one: a carried value
    Copy,       // of a value, for its readers
  };
  Kind kind = Kind::Group;
  unsigned first = 0, second = 0;

  friend auto operator<=>(const ChainLink &, const ChainLink &) = default;
};

/// The time for which the collectives of an edge occupy a physical network in a
/// step.
struct ChainLoad {
  unsigned network = 0, edge = 0;

  friend auto operator<=>(const ChainLoad &, const ChainLoad &) = default;
};

/// A link of which no more than so many picoseconds count.
struct CappedLink {
  ChainLink link;
  solver::Cost most = 0;

  friend auto operator<=>(const CappedLink &, const CappedLink &) = default;
};

/// Its links and loads, and how often each counts: a link for each of its runs
/// in a step.
struct Chain {
  std::map<ChainLink, int64_t> links;
  std::map<ChainLoad, int64_t> loads;
  /// Where any of n items may be the next, the least of their waits counts, or
  /// of their work. At most c of it are a sum: what each takes up to c, less
  /// (n - 1) c, which is part of the constant (not above 0).
  std::map<CappedLink, int64_t> capped;
  solver::Cost constant = 0;

  friend bool operator==(const Chain &, const Chain &) = default;
};

/// How long one run of a link takes, in picoseconds, by the labels of one or
/// two variables. A read takes no longer than that, from wherever it reads.
struct LinkTime {
  solver::Variable first = 0;
  /// None if the link depends on the first alone.
  std::optional<solver::Variable> second;
  /// Row-major, so many labels of the second.
  unsigned columns = 1;
  std::vector<solver::Cost> times;

  solver::Cost of(llvm::ArrayRef<solver::Label> assignment) const {
    return times[size_t(assignment[first]) * columns +
                 (second ? assignment[*second] : 0)];
  }
};
using LinkTimes = std::map<ChainLink, LinkTime>;

/// An edge whose costs are collectives of a link, and how often these run in a
/// step.
struct LinkEdge {
  unsigned edge = 0;
  int64_t count = 1;
};
using LinkEdges = std::map<ChainLink, llvm::SmallVector<LinkEdge, 2>>;

/// Orders of independent statements in which a chain is as long.
enum class ChainOrders {
  /// The order of the text.
  Text,
  /// All orders that dependences allow.
  Any,
};

struct ChainRules {
  ChainOrders orders = ChainOrders::Any;
  /// Collectives next to einsums may run at the same time, so that none of them
  /// is on a chain.
  bool matmulsOverlap = false;
};

/// The times of a plan that chains are made of.
struct ChainTimes {
  const LinkTimes &links;
  llvm::ArrayRef<solver::Label> assignment;
  /// Physical networks that chains wait for, ascending.
  llvm::ArrayRef<unsigned> networks;
  llvm::function_ref<solver::Cost(ChainLoad)> loadOf;
};

class ChainBodies;

class ChainFinder {
public:
  ChainFinder(const Graph &graph, const LinkEdges &edges, ChainRules rules);
  ~ChainFinder();

  /// The longest chain of a plan; if it waits for networks, then the same with
  /// each network for all of these: plans that differ in which axis carries
  /// what have one of them.
  std::vector<Chain> longest(const ChainTimes &times) const;

private:
  std::unique_ptr<const ChainBodies> bodies;
};

/// True if some of the work reads a buffer that other work has updated, as an
/// optimizer does with gradients. What networks then carry behind the one and
/// before the end of the other only chains with waits count.
bool readsUpdatedBuffers(const Graph &graph);

/// The length of a chain under a plan: its links and loads, in picoseconds.
solver::Cost lengthOf(const Chain &chain, const ChainTimes &times);

} // namespace shardc

#endif // SHARDC_OPTIMIZER_CHAINS_H
