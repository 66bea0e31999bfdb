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

PlanLabels shardc::labelsOf(const PlanNetwork &network,
                            llvm::ArrayRef<solver::Label> assignment) {
  PlanLabels plan;
  for (auto [chunk, variable, domain] : llvm::zip_equal(
           network.graph.chunks, network.chunkVariable, network.domains)) {
    solver::Label label = assignment[variable];
    ChunkChoice &choice = plan.chunks.emplace_back();
    choice.strategy = domain.labels[label];
    if (chunk.kind == Chunk::Kind::Output)
      choice.output = domain.operands[0][0][label];
  }
  for (const ValueVariable &value : network.values) {
    const StoredLabel &stored = value.labels[assignment[value.variable]];
    plan.stored.push_back(
        {value.layouts[stored.layout], stored.inlined, stored.resharded});
    std::optional<Layout> &copy = plan.copies.emplace_back();
    if (!value.copies.empty())
      if (solver::Label label = assignment[value.copyVariable])
        copy = value.copies[label - 1];
  }
  return plan;
}

/// The same operations run in the same way, with the same operands in place.
static bool isSame(const ChunkStrategy &a, const ChunkStrategy &b) {
  return a.ops == b.ops && a.inlined == b.inlined &&
         a.leaderRead == b.leaderRead;
}

solver::LabelSets shardc::labelsIn(const PlanNetwork &network,
                                   const PlanLabels &plan) {
  solver::LabelSets sets;
  for (const solver::VariableData &variable : network.problem.variables)
    sets.emplace_back(variable.costs.size(), true);
  for (auto [chunk, variable, domain, choice] :
       llvm::zip_equal(network.graph.chunks, network.chunkVariable,
                       network.domains, plan.chunks))
    for (auto [label, strategy] : llvm::enumerate(domain.labels))
      sets[variable][label] =
          chunk.kind == Chunk::Kind::Output
              ? domain.operands[0][0][label] == choice.output
              : isSame(strategy, choice.strategy);
  for (auto [value, stored, copy] :
       llvm::zip_equal(network.values, plan.stored, plan.copies)) {
    if (value.own)
      for (auto [number, label] : llvm::enumerate(value.labels))
        sets[value.variable][number] =
            stored == ChosenStore{value.layouts[label.layout], label.inlined,
                                  label.resharded};
    if (value.copies.empty())
      continue;
    std::vector<bool> &copies = sets[value.copyVariable];
    copies[0] = !copy;
    for (auto [number, layout] : llvm::enumerate(value.copies))
      copies[number + 1] = copy && *copy == layout;
  }
  return sets;
}
