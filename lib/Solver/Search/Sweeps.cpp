//===- Sweeps.cpp - Sequential tree-reweighted message passing ------------===//

#include "Sweeps.h"
#include "Kernels.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc::solver::search {

std::vector<double> priceLabels(const Graph &graph, const Prices &prices) {
  std::vector<double> before(prices.size() + 1, 0);
  for (size_t row = 0; row < prices.size(); ++row)
    before[row + 1] = before[row] + prices[row];
  std::vector<double> result(graph.costs.size(), 0);
  for (uint32_t label = 0; label < result.size(); ++label)
    for (const Usage &usage : graph.usagesOf(label))
      result[label] +=
          double(usage.bytes) * (before[usage.end] - before[usage.begin]);
  return result;
}

Sweeps::Sweeps(const Graph &graph)
    : messages(graph.messageEntries, 0), graph(graph),
      priced(graph.firstPadded.back(), kPad), belief(padded(graph.maxLabels)),
      rest(padded(graph.maxLabels)) {
  setPrices(Prices(graph.slack.size(), 0));
  for (uint32_t u = 0; u < graph.size(); ++u)
    earlier.push_back(llvm::count_if(
        graph.arcsOf(u), [u](const Arc &arc) { return arc.other < u; }));
}

void Sweeps::setPrices(const Prices &prices) {
  std::vector<double> memory = priceLabels(graph, prices);
  for (uint32_t u = 0; u < graph.size(); ++u)
    for (uint32_t i = 0; i < graph.labels(u); ++i) {
      uint32_t label = graph.firstLabel[u] + i;
      priced[graph.firstPadded[u] + i] =
          static_cast<float>(memory[label] + double(graph.costs[label]));
    }
}

double Sweeps::visit(uint32_t node, bool forward) {
  llvm::ArrayRef<Arc> arcs = graph.arcsOf(node);
  uint32_t size = graph.labels(node);
  double sum = collectMessages(
      belief.data(), priced.data() + graph.firstPadded[node],
      arcs.empty() ? nullptr : messages.data() + arcs.front().incoming,
      arcs.size(), padded(size));
  size_t before = earlier[node], after = arcs.size() - before;
  float share = 1.0f / float(std::max<size_t>({before, after, 1}));
  for (const Arc &arc :
       forward ? arcs.drop_front(before) : arcs.take_front(before))
    sum += sendMessage(messages.data() + arc.outgoing, belief.data(),
                       messages.data() + arc.incoming, share, rest.data(),
                       graph.tables[arc.table].rounded[arc.side].data(), size,
                       padded(graph.labels(arc.other)));
  return sum;
}

double Sweeps::forward() {
  double bound = 0;
  for (uint32_t u = 0; u < graph.size(); ++u)
    bound += visit(u, /*forward=*/true);
  return bound;
}

double Sweeps::backward() {
  double bound = 0;
  for (uint32_t u = graph.size(); u-- > 0;)
    bound += visit(u, /*forward=*/false);
  return bound;
}

Labels Sweeps::decode() const {
  Labels labels(graph.size(), 0);
  std::vector<float> costs(padded(graph.maxLabels));
  for (uint32_t u = 0; u < graph.size(); ++u) {
    size_t size = graph.labels(u);
    const float *own = priced.data() + graph.firstPadded[u];
    std::copy(own, own + size, costs.begin());
    for (const Arc &arc : graph.arcsOf(u)) {
      if (arc.other > u) {
        addTo(costs.data(), messages.data() + arc.incoming, size);
        continue;
      }
      addTo(costs.data(), graph.roundedColumn(arc, labels[arc.other]), size);
    }
    labels[u] =
        std::min_element(costs.begin(), costs.begin() + size) - costs.begin();
  }
  return labels;
}

} // namespace shardc::solver::search
