//===- Dive.cpp - New labels for whole regions ----------------------------===//

#include "Dive.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc::solver::search {

/// Passes each way before the first node is fixed, and after each round.
static constexpr unsigned kFirstSweeps = 8, kSweeps = 2;

Dive::Dive(const Graph &graph)
    : graph(graph), position(graph.size(), kOutside),
      messages(graph.messageEntries), belief(padded(graph.maxLabels)),
      rest(padded(graph.maxLabels)) {}

void Dive::chooseRegion(uint32_t root, size_t size) {
  for (uint32_t node : region)
    position[node] = kOutside;
  region.assign(1, root);
  position[root] = 0;
  for (size_t head = 0; head < region.size() && region.size() < size; ++head)
    for (const Arc &arc : graph.arcsOf(region[head])) {
      if (region.size() == size)
        break;
      if (position[arc.other] == kOutside) {
        position[arc.other] = 0;
        region.push_back(arc.other);
      }
    }
  llvm::sort(region);
  for (auto [index, node] : llvm::enumerate(region))
    position[node] = index;
}

void Dive::load(const State &state, const std::vector<double> &priced,
                double share) {
  size_t count = region.size();
  open.resize(std::max(open.size(), count));
  offsets.assign(1, 0);
  unfixed.clear();
  for (uint32_t k = 0; k < count; ++k) {
    offsets.push_back(offsets.back() + padded(graph.labels(region[k])));
    unfixed.push_back(k);
  }
  costs.assign(offsets.back(), kPad);
  margins.assign(count, 0);
  chosen.assign(count, 0);
  std::vector<int64_t> exact(graph.maxLabels);
  for (uint32_t k = 0; k < count; ++k) {
    uint32_t node = region[k], size = graph.labels(node);
    std::copy_n(state.costs(node), size, exact.begin());
    open[k].clear();
    for (const Arc &arc : graph.arcsOf(node)) {
      if (position[arc.other] == kOutside)
        continue;
      open[k].push_back(&arc);
      const int64_t *column = graph.exactColumn(arc, state.labels()[arc.other]);
      for (uint32_t i = 0; i < size; ++i)
        exact[i] -= column[i];
      std::fill_n(messages.begin() + arc.incoming, padded(size), 0.0f);
    }
    int64_t least = *std::min_element(exact.begin(), exact.begin() + size);
    for (uint32_t i = 0; i < size; ++i)
      costs[offsets[k] + i] =
          static_cast<float>(double(exact[i] - least) +
                             share * priced[graph.firstLabel[node] + i]);
  }
}

void Dive::visit(uint32_t k, bool forward) {
  uint32_t node = region[k], size = graph.labels(node), stride = padded(size);
  std::copy_n(costs.begin() + offsets[k], stride, belief.begin());
  size_t before = 0;
  for (const Arc *arc : open[k]) {
    addTo(belief.data(), messages.data() + arc->incoming, stride);
    before += arc->other < node;
  }
  auto lowest = std::min_element(belief.begin(), belief.begin() + size);
  float low = *lowest, next = std::numeric_limits<float>::infinity();
  chosen[k] = lowest - belief.begin();
  for (uint32_t i = 0; i < size; ++i) {
    if (i != chosen[k])
      next = std::min(next, belief[i]);
    belief[i] -= low;
  }
  margins[k] = next - low;
  size_t parts = std::max<size_t>({before, open[k].size() - before, 1});
  for (const Arc *arc : open[k]) {
    if ((arc->other > node) != forward)
      continue;
    uint32_t columns = padded(graph.labels(arc->other));
    sendMessage(messages.data() + arc->outgoing, belief.data(),
                messages.data() + arc->incoming, 1.0f / float(parts),
                rest.data(), graph.tables[arc->table].rounded[arc->side].data(),
                size, columns);
    work += size_t(size) * columns;
  }
}

void Dive::pass(bool forward) {
  if (forward)
    for (uint32_t k : unfixed)
      visit(k, true);
  else
    for (uint32_t k : llvm::reverse(unfixed))
      visit(k, false);
}

void Dive::fix(uint32_t k) {
  for (const Arc *arc : open[k]) {
    uint32_t other = position[arc->other];
    addTo(costs.data() + offsets[other], graph.roundedRow(*arc, chosen[k]),
          padded(graph.labels(arc->other)));
    llvm::erase_if(open[other],
                   [&](const Arc *back) { return back->link == arc->link; });
  }
  open[k].clear();
}

void Dive::fixClearest(double fraction) {
  size_t count = std::clamp<size_t>(size_t(fraction * double(region.size())), 1,
                                    unfixed.size());
  std::vector<uint32_t> order = unfixed;
  std::nth_element(order.begin(), order.begin() + (count - 1), order.end(),
                   [&](uint32_t a, uint32_t b) {
                     return margins[a] != margins[b] ? margins[a] > margins[b]
                                                     : a < b;
                   });
  order.resize(count);
  llvm::sort(order);
  for (uint32_t k : order) {
    // Neighbours fixed before it in this round count already.
    const float *own = costs.data() + offsets[k];
    std::copy_n(own, graph.labels(region[k]), belief.begin());
    for (const Arc *arc : open[k])
      addTo(belief.data(), messages.data() + arc->incoming,
            graph.labels(region[k]));
    chosen[k] = std::min_element(belief.begin(),
                                 belief.begin() + graph.labels(region[k])) -
                belief.begin();
    fix(k);
  }
  std::vector<uint32_t> left;
  std::set_difference(unfixed.begin(), unfixed.end(), order.begin(),
                      order.end(), std::back_inserter(left));
  unfixed = std::move(left);
}

void Dive::run(const State &state, const std::vector<double> &priced,
               double share, double fraction) {
  load(state, priced, share);
  for (unsigned sweeps = kFirstSweeps; !unfixed.empty(); sweeps = kSweeps) {
    for (unsigned i = 0; i < sweeps; ++i) {
      pass(true);
      pass(false);
    }
    fixClearest(fraction);
  }
}

} // namespace shardc::solver::search
