//===- ContractionOrder.cpp - In which order to multiply ------------------===//

#include "ContractionOrder.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include <limits>
#include <tuple>
#include <vector>

using namespace shardc;

namespace {
constexpr unsigned kMaxExact = 10;
constexpr unsigned kMaxGreedy = 100;

/// FLOPs of one step on global extents.
double stepFlops(IndexBits all, bool sums, llvm::ArrayRef<int64_t> extents) {
  double flops = sums ? 2 : 1;
  for (; all; all &= all - 1)
    flops *= extents[llvm::countr_zero(all)];
  return flops;
}

/// Dynamic programming over sets of factors.
class ExactOrder {
public:
  ExactOrder(llvm::ArrayRef<IndexBits> factors, llvm::ArrayRef<int64_t> extents,
             IndexBits needed)
      : factors(factors), extents(extents), needed(needed),
        best(size_t(1) << factors.size()) {}

  llvm::SmallVector<ContractionStep> run() {
    for (unsigned set = 1; set < best.size(); ++set)
      solve(set);
    llvm::SmallVector<ContractionStep> steps;
    emit(best.size() - 1, steps);
    return steps;
  }

private:
  struct Entry {
    double flops = 0;
    IndexBits indices = 0;
    /// The right-hand part of the last step.
    unsigned right = 0;
  };

  void solve(unsigned set) {
    Entry &entry = best[set];
    if (llvm::has_single_bit(set)) {
      entry.indices = factors[llvm::countr_zero(set)];
      return;
    }
    IndexBits all = 0, outside = needed;
    for (unsigned i = 0; i < factors.size(); ++i)
      (set >> i & 1 ? all : outside) |= factors[i];
    entry.indices = all & outside;
    auto bestKey = std::tuple(std::numeric_limits<double>::infinity(), 0, 0u);
    unsigned low = set & -set;
    // The left part holds the leftmost factor; among equal splits the right
    // part is the smallest, then the rightmost.
    for (unsigned right = (set - 1) & set; right; right = (right - 1) & set) {
      if (right & low)
        continue;
      const Entry &a = best[set & ~right], &b = best[right];
      IndexBits both = a.indices | b.indices;
      double flops =
          a.flops + b.flops + stepFlops(both, (both & ~outside) != 0, extents);
      auto key = std::tuple(flops, llvm::popcount(right), ~right);
      if (entry.right && !(key < bestKey))
        continue;
      bestKey = key;
      entry.flops = flops;
      entry.right = right;
    }
  }

  unsigned emit(unsigned set, llvm::SmallVectorImpl<ContractionStep> &steps) {
    if (llvm::has_single_bit(set))
      return llvm::countr_zero(set);
    unsigned left = emit(set & ~best[set].right, steps);
    unsigned right = emit(best[set].right, steps);
    steps.push_back({left, right});
    return factors.size() + steps.size() - 1;
  }

  llvm::ArrayRef<IndexBits> factors;
  llvm::ArrayRef<int64_t> extents;
  IndexBits needed;
  std::vector<Entry> best;
};

/// Repeatedly the cheapest step (`cheapest`), or the leftmost.
llvm::SmallVector<ContractionStep>
stepwiseOrder(llvm::ArrayRef<IndexBits> factors,
              llvm::ArrayRef<int64_t> extents, IndexBits needed,
              bool cheapest) {
  llvm::SmallVector<ContractionStep> steps;
  std::vector<std::pair<unsigned, IndexBits>> live;
  // Number of live factors that have each index.
  std::vector<unsigned> carriers(64);
  auto count = [&](IndexBits bits, int delta) {
    for (; bits; bits &= bits - 1)
      carriers[llvm::countr_zero(bits)] += delta;
  };
  for (auto [i, bits] : llvm::enumerate(factors)) {
    live.push_back({i, bits});
    count(bits, 1);
  }
  /// Indices of `all` that are summed once `a` and `b` are multiplied.
  auto summed = [&](IndexBits a, IndexBits b) {
    IndexBits result = 0;
    for (IndexBits bits = (a | b) & ~needed; bits; bits &= bits - 1) {
      IndexBits bit = bits & -bits;
      unsigned here = ((a & bit) != 0) + ((b & bit) != 0);
      if (carriers[llvm::countr_zero(bit)] == here)
        result |= bit;
    }
    return result;
  };
  size_t done = 0;
  while (live.size() - done > 1) {
    size_t left = done, right = done + 1;
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = done; cheapest && i < live.size(); ++i)
      for (size_t j = i + 1; j < live.size(); ++j) {
        IndexBits a = live[i].second, b = live[j].second;
        double flops = stepFlops(a | b, summed(a, b) != 0, extents);
        if (flops < least)
          std::tie(left, right, least) = std::tuple(i, j, flops);
      }
    IndexBits a = live[left].second, b = live[right].second;
    IndexBits result = (a | b) & ~summed(a, b);
    steps.push_back({live[left].first, live[right].first});
    count(a, -1);
    count(b, -1);
    count(result, 1);
    std::pair<unsigned, IndexBits> product{factors.size() + steps.size() - 1,
                                           result};
    if (cheapest) {
      live[left] = product;
      live.erase(live.begin() + right);
    } else {
      live[++done] = product;
    }
  }
  return steps;
}
} // namespace

llvm::SmallVector<ContractionStep>
shardc::contractionOrder(llvm::ArrayRef<IndexBits> factors,
                         llvm::ArrayRef<int64_t> extents, IndexBits needed) {
  if (factors.size() <= kMaxExact)
    return ExactOrder(factors, extents, needed).run();
  return stepwiseOrder(factors, extents, needed, factors.size() <= kMaxGreedy);
}
