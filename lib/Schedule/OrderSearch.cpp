//===- OrderSearch.cpp - Local search for a faster order ------------------===//

#include "OrderSearch.h"
#include "shardc/Cost/Saturating.h"
#include "llvm/ADT/STLExtras.h"
#include <random>

using namespace shardc;
using llvm::ArrayRef;

/// Nodes that one search visits, and the most moves between two simulations.
static constexpr size_t kVisits = 40000;
static constexpr unsigned kMostMoves = 3;
/// Draws in a row that find nothing faster, for each pair of a piece of work
/// and its place, before a search ends. A third of the draws is one move: each
/// single move comes about five times.
static constexpr size_t kIdleDraws = 15;

OrderSearch::OrderSearch(const BlockGraph &graph) : graph(graph) {
  for (auto [number, node] : llvm::enumerate(graph.nodes))
    hasGathers |= isIssuedByReader(number) &&
                  node.kind == BlockGraph::Node::Collective && node.time > 0;
}

//===----------------------------------------------------------------------===//
// Simulation
//===----------------------------------------------------------------------===//

void OrderSearch::reset() {
  missing.clear();
  for (const BlockGraph::Node &node : graph.nodes)
    missing.push_back(node.before.size());
  release.assign(graph.nodes.size(), 0);
  networkFree.assign(graph.numNetworks, 0);
  isIssued.assign(graph.nodes.size(), false);
  now = length = 0;
}

/// Hands the end of a node on to those behind it.
void OrderSearch::finish(unsigned number, Picoseconds end) {
  const BlockGraph::Node &node = graph.nodes[number];
  if (node.ownTail)
    length = std::max(length, saturatingAdd(end, *node.ownTail));
  for (unsigned behind : node.behind) {
    release[behind] = std::max(release[behind], end);
    if (--missing[behind] == 0)
      start(behind);
  }
}

/// Networks run collectives in the order in which these are issued.
void OrderSearch::start(unsigned number) {
  const BlockGraph::Node &node = graph.nodes[number];
  if (node.kind == BlockGraph::Node::Work ||
      (isIssuedByReader(number) && !isIssued[number]))
    return;
  Picoseconds end = release[number];
  if (node.kind == BlockGraph::Node::Collective &&
      (!node.isReady || graph.isStep()))
    end = BlockGraph::carry(node, end, networkFree);
  finish(number, end);
}

/// Issues what a node reads that is there before the step, and has not been
/// issued.
void OrderSearch::issueFor(unsigned number, Picoseconds time) {
  for (unsigned earlier : graph.nodes[number].before) {
    if (graph.nodes[earlier].kind == BlockGraph::Node::Work ||
        isIssued[earlier])
      continue;
    issueFor(earlier, time);
    isIssued[earlier] = true;
    if (!isIssuedByReader(earlier))
      continue;
    assert(missing[earlier] == 0 && "all that it reads has been issued");
    release[earlier] = std::max(release[earlier], time);
    start(earlier);
  }
}

Picoseconds OrderSearch::lengthOf(ArrayRef<unsigned> order, Gathers gathers) {
  reset();
  for (unsigned number = 0; number < graph.nodes.size(); ++number)
    if (graph.nodes[number].before.empty())
      start(number);
  if (gathers == Gathers::AtOnce)
    for (unsigned number : order)
      issueFor(number, 0);
  else if (!order.empty())
    issueFor(order.front(), 0);
  for (auto [position, number] : llvm::enumerate(order)) {
    Picoseconds begin = std::max(now, release[number]);
    if (gathers == Gathers::Ahead && position + 1 < order.size())
      issueFor(order[position + 1], begin);
    now = saturatingAdd(begin, graph.nodes[number].time);
    finish(number, now);
  }
  return length;
}

Picoseconds OrderSearch::lengthOf(ArrayRef<unsigned> order) {
  Picoseconds atOnce = lengthOf(order, Gathers::AtOnce);
  return hasGathers ? std::min(atOnce, lengthOf(order, Gathers::Ahead))
                    : atOnce;
}

//===----------------------------------------------------------------------===//
// Local search
//===----------------------------------------------------------------------===//

/// No order takes less.
Picoseconds OrderSearch::leastLength() const {
  Picoseconds least = graph.busy();
  for (auto [number, node] : llvm::enumerate(graph.nodes))
    if (node.tail && !node.isReady)
      least = std::max(least, saturatingAdd(node.time, *node.tail));
  return least;
}

/// Moves the work at `from` to one of the places between what it depends on and
/// what depends on it. False if there is only one.
bool OrderSearch::moveOne(std::vector<unsigned> &order, unsigned from,
                          unsigned random) const {
  unsigned number = order[from];
  unsigned first = from, last = from;
  while (first > 0 && !graph.behindAll[number].test(order[first - 1]))
    --first;
  while (last + 1 < order.size() &&
         !graph.behindAll[order[last + 1]].test(number))
    ++last;
  if (first == last)
    return false;
  unsigned to = first + random % (last - first);
  to += to >= from;
  auto at = order.begin();
  if (to < from)
    std::rotate(at + to, at + from, at + from + 1);
  else
    std::rotate(at + from, at + from + 1, at + to + 1);
  return true;
}

std::vector<unsigned> OrderSearch::improve(std::vector<unsigned> order) {
  if (order.size() < 2)
    return order;
  Picoseconds best = lengthOf(order), least = leastLength();
  std::minstd_rand random;
  size_t idle = 0, mostIdle = kIdleDraws * order.size() * order.size();
  for (size_t visits = 0; visits < kVisits && idle < mostIdle && best > least;
       visits += graph.nodes.size(), ++idle) {
    std::vector<unsigned> other = order;
    bool isMoved = false;
    for (unsigned moves = 1 + random() % kMostMoves; moves > 0; --moves) {
      unsigned from = random() % order.size();
      isMoved |= moveOne(other, from, random());
    }
    if (!isMoved)
      continue;
    // Equal ones too, to get across plateaus.
    if (Picoseconds length = lengthOf(other); length <= best) {
      if (length < best)
        idle = 0;
      best = length;
      order = std::move(other);
    }
  }
  return order;
}
