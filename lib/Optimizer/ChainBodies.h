//===- ChainBodies.h - What waits for what in a body ----------*- C++ -*-===//
//
// The parts of a program that chains are made of, whatever the plan: the items
// of each body, in which order they may run, by which collectives one waits for
// another, and when networks carry what.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_OPTIMIZER_CHAINBODIES_H
#define SHARDC_LIB_OPTIMIZER_CHAINBODIES_H

#include "shardc/Optimizer/Chains.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseSet.h"

namespace shardc {

using ChainLinks = llvm::SmallVector<ChainLink, 6>;

/// A group, or a repeat: `body`; or the end of a body, which takes no time.
struct ChainItem {
  uint32_t point = 0;
  int group = -1;
  mlir::Block *body = nullptr;
};

/// A way from an item of a body to one that waits for it.
struct ChainRoute {
  /// None: from the beginning of the step.
  std::optional<unsigned> from;
  /// From the iteration before.
  bool isCarried = false;
  ChainLinks links = {};
};

/// All items that run between two others, whatever the order: behind `from`
/// (-1: the beginning of the body) and before the one that has the gap. One of
/// `first` runs first, and one of `last` last.
struct ChainGap {
  int from = -1;
  llvm::SmallVector<unsigned, 8> work;
  llvm::SmallVector<unsigned, 4> first, last;
};

/// When something runs: once an item has ended, or if it is made within the
/// item, once that has begun (-1: the beginning of the body); and before
/// another item begins, or ends.
struct ChainWindow {
  int first = -1;
  bool isWithinFirst = false;
  unsigned last = 0;
  bool endsWithLast = false;

  std::pair<int, bool> begin() const { return {first, isWithinFirst}; }
  std::pair<unsigned, bool> end() const { return {last, endsWithLast}; }
};

/// An edge whose collectives run in a window, once in each iteration.
struct ChainEdge {
  unsigned edge = 0;
  ChainWindow window;
};

struct ChainBody {
  /// Iterations each time it runs, and runs of an iteration in a step.
  int64_t count = 1, runs = 1;
  /// In the order of the text.
  std::vector<ChainItem> items;
  /// By item: those that have ended in every order when it begins, those that
  /// have when it ends, the ways to it, and the gaps before it.
  std::vector<llvm::BitVector> before, beforeEnd;
  std::vector<std::vector<ChainRoute>> routes;
  /// Ways to the second part of a group, which ends with it.
  std::vector<std::vector<ChainRoute>> restRoutes;
  std::vector<std::vector<ChainGap>> gaps;
  std::vector<ChainEdge> edges;
  /// Items before which none need run, and the one before which all others do.
  llvm::SmallVector<unsigned, 4> first;
  std::optional<unsigned> last;

  bool isBefore(int a, unsigned b) const {
    return a < 0 || before[b].test(unsigned(a));
  }
  /// A window that begins at `b` begins no earlier than `a` ends.
  bool beginsAfter(int a, std::pair<int, bool> b) const {
    return a < 0 || (b.first >= 0 && ((a == b.first && !b.second) ||
                                      isBefore(a, unsigned(b.first))));
  }
  bool endsBefore(std::pair<unsigned, bool> a,
                  std::pair<unsigned, bool> b) const {
    return a.first == b.first ? a.second <= b.second
                              : isBefore(int(a.first), b.first);
  }
  bool isWithin(const ChainWindow &inner, int from,
                std::pair<unsigned, bool> end) const {
    return beginsAfter(from, inner.begin()) && endsBefore(inner.end(), end);
  }
};

class ChainBodies {
public:
  ChainBodies(const Graph &graph, const LinkEdges &edges, ChainRules rules);

  const Graph &graph;
  const ChainRules rules;
  /// In program order, a repeat's body after the body around it.
  llvm::MapVector<mlir::Block *, ChainBody> bodies;

  const ChainBody &bodyOf(mlir::Block *block) const {
    return bodies.find(block)->second;
  }
  /// The links of a group's own: what stands between its parts too, if nothing
  /// else does.
  ChainLinks linksOf(int group) const;

private:
  friend class ChainBodiesBuilder;
  /// Groups of two parts between which nothing else runs, as far as the rules
  /// know.
  llvm::SmallDenseSet<int> connected;
};

} // namespace shardc

#endif // SHARDC_LIB_OPTIMIZER_CHAINBODIES_H
