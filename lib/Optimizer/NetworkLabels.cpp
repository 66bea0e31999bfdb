//===- NetworkLabels.cpp - Some labels of a network -------------*- C++ -*-===//

#include "shardc/Optimizer/Network.h"
#include "llvm/ADT/STLExtras.h"

using namespace shardc;

/// The kept labels of a value, and the layouts that they use.
static NetworkLabels::OfValue selectStored(const ValueVariable &value,
                                           const std::vector<bool> &kept) {
  NetworkLabels::OfValue result;
  constexpr unsigned kUnused = ~0u;
  std::vector<unsigned> numbers(value.layouts.size(), kUnused);
  for (auto [label, isKept] : llvm::zip_equal(value.labels, kept))
    if (isKept)
      numbers[label.layout] = 0;
  for (auto [layout, number] : llvm::zip_equal(value.layouts, numbers))
    if (number != kUnused) {
      number = result.layouts.size();
      result.layouts.push_back(layout);
    }
  for (auto [label, isKept] : llvm::zip_equal(value.labels, kept))
    if (isKept) {
      result.labels.push_back(label);
      result.labels.back().layout = numbers[label.layout];
    }
  return result;
}

NetworkLabels shardc::selectLabels(const PlanNetwork &network,
                                   const solver::LabelSets &kept) {
  NetworkLabels result{network.domains, {}};
  for (auto [chunk, variable, domain] : llvm::zip_equal(
           network.graph.chunks, network.chunkVariable, result.domains)) {
    // Users may compute a prologue in ways that its own label is not.
    if (chunk.prologue)
      continue;
    std::vector<size_t> numbers;
    for (auto [label, isKept] : llvm::enumerate(kept[variable]))
      if (isKept)
        numbers.push_back(label);
    selectLabels(domain, numbers);
  }
  for (const ValueVariable &value : network.values) {
    NetworkLabels::OfValue &left = result.values.emplace_back();
    if (value.own)
      left = selectStored(value, kept[value.variable]);
    // Label 0 is no copy.
    for (auto [number, layout] : llvm::enumerate(value.copies))
      if (kept[value.copyVariable][number + 1])
        left.copies.push_back(layout);
  }
  return result;
}
