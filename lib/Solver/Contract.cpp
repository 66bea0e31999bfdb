//===- Contract.cpp - Worklist over the steps of contraction --------------===//

#include "shardc/Solver/Contract.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc::solver {

namespace {
/// Visits nodes in rounds, by ascending index, until none has changed.
/// Dominance is looked for when nothing cheaper is left to do.
class Contraction {
public:
  Contraction(Network &network, const Deadline &deadline, Steps steps)
      : network(network), deadline(deadline), steps(steps),
        dirty(network.nodes.size(), true),
        comparable(network.nodes.size(), true), rows(network.slack.size()) {}

  void run() {
    do {
      do
        settle();
      while (steps == Steps::All && !network.noLabel && !deadline.expired() &&
             compareLabels());
      compressRows(network);
    } while (!network.infeasible() && !deadline.expired() &&
             (removeOversized(network, dirty) || markFreed()));
  }

private:
  void settle() {
    for (bool again = true; again;) {
      again = false;
      for (Variable node = 0; node < dirty.size(); ++node) {
        if (!dirty[node] || deadline.expired())
          continue;
        dirty[node] = false;
        comparable[node] = true;
        if (network.nodes[node].alive)
          visit(node);
        if (network.noLabel)
          return;
        again = true;
      }
    }
  }

  /// Removes dominated labels of all nodes that changed; true if any went.
  bool compareLabels() {
    bool any = false;
    for (Variable node = 0; node < comparable.size(); ++node) {
      if (!comparable[node] || deadline.expired())
        continue;
      comparable[node] = false;
      if (!network.nodes[node].alive || !removeDominated(network, node))
        continue;
      any = true;
      dirty[node] = true;
      markNeighbours(node);
    }
    return any;
  }

  void markNeighbours(Variable node) {
    for (LinkId link : network.nodes[node].links)
      dirty[network.links[link].other(node)] = true;
  }

  void visit(Variable node) {
    if (makeConsistent(network, node))
      markNeighbours(node);
    if (network.noLabel)
      return;
    // Taking the node out changes those that are its neighbours now.
    llvm::SmallVector<Variable, 8> neighbours;
    for (LinkId link : network.nodes[node].links)
      neighbours.push_back(network.links[link].other(node));
    bool changed = removeSeparableLinks(network, node);
    if (network.nodes[node].size() == 1) {
      fixNode(network, node);
      changed = true;
    } else if (mergeFunctional(network, node) ||
               (steps != Steps::KeepingAll && eliminateNode(network, node))) {
      changed = true;
    }
    if (!changed)
      return;
    for (Variable neighbour : neighbours)
      dirty[neighbour] = true;
    dirty[node] = network.nodes[node].alive;
  }

  /// Fewer rows hold back fewer nodes; true if any rows went.
  bool markFreed() {
    if (network.slack.size() == rows)
      return false;
    rows = network.slack.size();
    for (Variable node = 0; node < dirty.size(); ++node)
      dirty[node] = network.nodes[node].alive;
    return true;
  }

  Network &network;
  const Deadline &deadline;
  Steps steps;
  std::vector<bool> dirty;      // to be visited
  std::vector<bool> comparable; // changed since labels were compared
  size_t rows;
};
} // namespace

void contract(Network &network, const Deadline &deadline, Steps steps) {
  if (network.infeasible())
    return;
  compressRows(network);
  if (!network.infeasible())
    Contraction(network, deadline, steps).run();
}

} // namespace shardc::solver
