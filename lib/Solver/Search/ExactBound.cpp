//===- ExactBound.cpp - A proof in integers -------------------------------===//
//
// Any messages m leave the cost of every assignment as it is when the cost of
// node u becomes theta_u + sum of messages to u, and that of the pair (u, w)
// becomes M - m_wu - m_uw. In the pass forward, u lends each of its pairs with
// later nodes an equal share of what its labels cost more than its best label,
// and m_uw is chosen so that pair and share together are never negative. Then
// the least costs of the nodes sum to a bound, whatever was rounded. The pass
// back does the same with earlier nodes. When it comes to u, the nodes after u
// have lent backwards and those before it forwards, so that their least costs
// and the cost of label i sum to a bound on all assignments with that label.
//
//===----------------------------------------------------------------------===//

#include "ExactBound.h"
#include "shardc/Solver/Arithmetic.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc::solver::search {

/// Costs are multiplied by 2^kShift; prices and messages are rounded to these.
static constexpr unsigned kShift = 32;

namespace {
class Prover {
public:
  Prover(const Graph &graph, const DualPoint &point)
      : graph(graph), messages(graph.messageEntries), rest(graph.maxLabels),
        belief(graph.maxLabels) {
    for (auto [message, value] : llvm::zip_equal(messages, point.messages))
      message = scaled(double(value));
    setPrices(point.prices);
  }

  Proof run(std::optional<int64_t> cost) {
    // least[u]: the least costs of the nodes before u, in the pass forward.
    std::vector<Int128> least(graph.size() + 1, offset);
    for (uint32_t u = 0; u < graph.size(); ++u)
      least[u + 1] = least[u] + visit(u, /*forward=*/true);
    Proof proof;
    if (cost)
      proof.excluded.assign(graph.costs.size(), false);
    Int128 after = 0;
    for (uint32_t u = graph.size(); u-- > 0;) {
      Int128 low = visit(u, /*forward=*/false);
      if (cost)
        for (uint32_t i = 0; i < graph.labels(u); ++i)
          proof.excluded[graph.firstLabel[u] + i] =
              total(least[u] + low + belief[i] + after) > *cost;
      after += low;
    }
    Int128 bound = total(std::max(least.back(), offset + after));
    proof.bound = static_cast<int64_t>(
        std::clamp<Int128>(bound, std::numeric_limits<int64_t>::min(),
                           std::numeric_limits<int64_t>::max()));
    return proof;
  }

private:
  static Int128 scaled(double value) {
    // Far beyond every cost; what is rounded here weakens the bound at most.
    double limit = 0x1p80;
    return Int128(
        std::clamp(value * double(uint64_t(1) << kShift), -limit, limit));
  }

  Int128 total(Int128 sum) const {
    return graph.constant + ceilShift(sum, kShift);
  }

  void setPrices(const Prices &prices) {
    std::vector<Int128> before(prices.size() + 1, 0);
    for (size_t row = 0; row < prices.size(); ++row) {
      Int128 price = std::max(Int128(0), scaled(prices[row]));
      // Bytes are below 2^61: prices above this would overflow with them.
      price = std::min(price, Int128(1) << 58);
      before[row + 1] = before[row] + price;
      offset -= price * graph.slack[row];
    }
    priced.resize(graph.costs.size());
    for (uint32_t label = 0; label < priced.size(); ++label) {
      priced[label] = Int128(graph.costs[label]) << kShift;
      for (const Usage &usage : graph.usagesOf(label))
        priced[label] +=
            (before[usage.end] - before[usage.begin]) * usage.bytes;
    }
  }

  /// Lends to the pairs with later or earlier nodes; returns the node's least
  /// cost and leaves in `belief` what its labels cost more than that.
  Int128 visit(uint32_t node, bool forward) {
    uint32_t size = graph.labels(node);
    llvm::ArrayRef<Arc> arcs = graph.arcsOf(node);
    for (uint32_t i = 0; i < size; ++i)
      belief[i] = priced[graph.firstLabel[node] + i];
    for (const Arc &arc : arcs)
      for (uint32_t i = 0; i < size; ++i)
        belief[i] += messages[arc.incoming + i];
    Int128 low = *std::min_element(belief.begin(), belief.begin() + size);
    for (uint32_t i = 0; i < size; ++i)
      belief[i] -= low;
    int64_t earlier = llvm::count_if(
        arcs, [node](const Arc &arc) { return arc.other < node; });
    int64_t later = arcs.size() - earlier;
    for (const Arc &arc :
         forward ? arcs.drop_front(earlier) : arcs.take_front(earlier))
      send(arc, size, std::max(earlier, later));
    return low;
  }

  void send(const Arc &arc, uint32_t size, int64_t parts) {
    uint32_t columns = graph.labels(arc.other);
    Int128 *out = messages.data() + arc.outgoing;
    for (uint32_t i = 0; i < size; ++i) {
      Int128 base = belief[i] / parts - messages[arc.incoming + i];
      const int64_t *row = graph.exactRow(arc, i);
      for (uint32_t j = 0; j < columns; ++j) {
        Int128 sum = base + (Int128(row[j]) << kShift);
        if (i == 0 || sum < out[j])
          out[j] = sum;
      }
    }
  }

  const Graph &graph;
  std::vector<Int128> messages, rest, belief, priced;
  Int128 offset = 0; // less what the available memory is worth
};
} // namespace

Proof prove(const Graph &graph, const DualPoint &point,
            std::optional<int64_t> cost) {
  return Prover(graph, point).run(cost);
}

} // namespace shardc::solver::search
