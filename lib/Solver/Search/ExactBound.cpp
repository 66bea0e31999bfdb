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
#include "llvm/ADT/STLExtras.h"

namespace shardc::solver::search {

static Int128 scaled(double value) {
  // Far beyond every cost; what is rounded here weakens the bound at most.
  double limit = 0x1p80;
  return Int128(std::clamp(value * double(uint64_t(1) << ExactCosts::kShift),
                           -limit, limit));
}

ExactCosts::ExactCosts(const Graph &graph, const DualPoint &point)
    : graph(graph), messages(graph.messageEntries) {
  for (auto [message, value] : llvm::zip_equal(messages, point.messages))
    message = scaled(double(value));
  std::vector<Int128> before(point.prices.size() + 1, 0);
  for (size_t row = 0; row < point.prices.size(); ++row) {
    Int128 price = std::max(Int128(0), scaled(point.prices[row]));
    // Bytes are below 2^61: prices above this would overflow with them.
    price = std::min(price, Int128(1) << 58);
    before[row + 1] = before[row] + price;
    offset -= price * graph.slack[row];
  }
  priced.resize(graph.costs.size());
  for (uint32_t label = 0; label < priced.size(); ++label) {
    priced[label] = Int128(graph.costs[label]) << kShift;
    for (const Usage &usage : graph.usagesOf(label))
      priced[label] += (before[usage.end] - before[usage.begin]) * usage.bytes;
  }
}

void ExactCosts::send(const Arc &arc, const Int128 *belief, int64_t parts,
                      uint32_t from, uint32_t to) {
  uint32_t columns = graph.labels(arc.other);
  Int128 *out = messages.data() + arc.outgoing;
  for (uint32_t i = from; i < to; ++i) {
    Int128 base = belief[i] / parts - messages[arc.incoming + i];
    const int64_t *row = graph.exactRow(arc, i);
    for (uint32_t j = 0; j < columns; ++j) {
      Int128 sum = base + (Int128(row[j]) << kShift);
      if (i == from || sum < out[j])
        out[j] = sum;
    }
  }
}

Prover::Prover(const Graph &graph, const DualPoint &point)
    : costs(graph, point), belief(graph.maxLabels) {}

Proof Prover::run(std::optional<int64_t> cost) {
  const Graph &graph = costs.graph;
  // least[u]: the least costs of the nodes before u, in the pass forward.
  std::vector<Int128> least(graph.size() + 1, costs.offset);
  for (uint32_t u = 0; u < graph.size(); ++u)
    least[u + 1] = least[u] + visit(u, /*forward=*/true);
  Proof proof;
  if (cost)
    proof.excluded.assign(graph.costs.size(), false);
  lows.resize(graph.size());
  Int128 after = 0;
  for (uint32_t u = graph.size(); u-- > 0;) {
    lows[u] = visit(u, /*forward=*/false);
    if (cost)
      for (uint32_t i = 0; i < graph.labels(u); ++i)
        proof.excluded[graph.firstLabel[u] + i] =
            costs.total(least[u] + lows[u] + belief[i] + after) > *cost;
    after += lows[u];
  }
  sum = costs.offset + after;
  Int128 bound = costs.total(std::max(least.back(), sum));
  proof.bound = static_cast<int64_t>(
      std::clamp<Int128>(bound, std::numeric_limits<int64_t>::min(),
                         std::numeric_limits<int64_t>::max()));
  return proof;
}

/// Lends to the pairs with later or earlier nodes; returns the node's least
/// cost and leaves in `belief` what its labels cost more than that.
Int128 Prover::visit(uint32_t node, bool forward) {
  const Graph &graph = costs.graph;
  uint32_t size = graph.labels(node);
  llvm::ArrayRef<Arc> arcs = graph.arcsOf(node);
  for (uint32_t i = 0; i < size; ++i)
    belief[i] = costs.priced[graph.firstLabel[node] + i];
  for (const Arc &arc : arcs)
    for (uint32_t i = 0; i < size; ++i)
      belief[i] += costs.messages[arc.incoming + i];
  Int128 low = *std::min_element(belief.begin(), belief.begin() + size);
  for (uint32_t i = 0; i < size; ++i)
    belief[i] -= low;
  int64_t earlier =
      llvm::count_if(arcs, [node](const Arc &arc) { return arc.other < node; });
  int64_t later = arcs.size() - earlier;
  for (const Arc &arc :
       forward ? arcs.drop_front(earlier) : arcs.take_front(earlier))
    costs.send(arc, belief.data(), std::max(earlier, later), 0, size);
  return low;
}

Proof prove(const Graph &graph, const DualPoint &point,
            std::optional<int64_t> cost) {
  return Prover(graph, point).run(cost);
}

} // namespace shardc::solver::search
