//===- LayeredNetwork.h - Networks like those of transformers -*- C++ -*-===//
//
// Layers of matrix products on a mesh of two axes. A variable per operation
// (which index each axis splits), one per tensor (stored layout, and a copy in
// another layout or none); edges for what producers and readers need; memory
// of tensors from their definition to their last use.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TEST_UNIT_SOLVER_LAYEREDNETWORK_H
#define SHARDC_TEST_UNIT_SOLVER_LAYEREDNETWORK_H

#include "shardc/Solver/Problem.h"
#include <algorithm>
#include <array>
#include <map>

namespace shardc::solver::test {

/// An axis splits no dimension, or sums are still missing along it.
inline constexpr int kUnsplit = -1, kPartial = -2;

/// For each of the two axes the dimension that it splits.
using Layout = std::array<int, 2>;

struct LayerSizes {
  int64_t batch = 8, sequence = 2048, model = 4096, hidden = 14336;
  std::array<int64_t, 2> axes = {8, 4};
};

class LayeredNetwork {
public:
  explicit LayeredNetwork(unsigned layers, LayerSizes sizes = {})
      : sizes(sizes) {
    extent = {{'b', sizes.batch}, {'s', sizes.sequence}, {'t', sizes.sequence},
              {'d', sizes.model}, {'e', sizes.model},    {'f', sizes.hidden}};
    unsigned x = addTensor("bsd", 0);
    for (unsigned layer = 0; layer < layers; ++layer)
      x = addLayer(x);
    finish();
  }

  Problem problem;

private:
  struct Tensor {
    std::string dims;
    uint32_t begin = 0, firstUse = ~0u, end = 0;
    Variable variable = 0;
    bool isWeight = false;
  };
  struct Read {
    unsigned tensor;
    std::string indices;
  };
  struct Operation {
    std::string indices; // all
    std::vector<Read> reads;
    unsigned result;
    Variable variable = 0;
    uint32_t point = 0;
  };

  unsigned addTensor(std::string dims, uint32_t begin, bool isWeight = false) {
    tensors.push_back({std::move(dims), begin, ~0u, begin + 1, 0, isWeight});
    return tensors.size() - 1;
  }

  unsigned addWeight(std::string dims) {
    return addTensor(std::move(dims), 0, true);
  }

  unsigned addOperation(std::string indices, std::vector<Read> reads,
                        std::string result) {
    uint32_t point = operations.size();
    unsigned tensor = addTensor(std::move(result), point);
    for (const Read &read : reads) {
      Tensor &from = tensors[read.tensor];
      from.firstUse = std::min(from.firstUse, point);
      from.end = std::max(from.end, point + 1);
    }
    operations.push_back(
        {std::move(indices), std::move(reads), tensor, 0, point});
    return tensor;
  }

  unsigned addLayer(unsigned x) {
    unsigned n = addOperation("bsd", {{x, "bsd"}}, "bsd");
    unsigned q = product(n, "bsd", "de", "bse");
    unsigned k = product(n, "bsd", "de", "bse");
    unsigned v = product(n, "bsd", "de", "bse");
    unsigned o =
        addOperation("bste", {{q, "bse"}, {k, "bte"}, {v, "bte"}}, "bse");
    unsigned p = product(o, "bse", "ed", "bsd");
    unsigned y = addOperation("bsd", {{x, "bsd"}, {p, "bsd"}}, "bsd");
    unsigned m = addOperation("bsd", {{y, "bsd"}}, "bsd");
    unsigned u = product(m, "bsd", "df", "bsf");
    unsigned g = product(m, "bsd", "df", "bsf");
    unsigned h = addOperation("bsf", {{u, "bsf"}, {g, "bsf"}}, "bsf");
    unsigned d = product(h, "bsf", "fd", "bsd");
    return addOperation("bsd", {{y, "bsd"}, {d, "bsd"}}, "bsd");
  }

  unsigned product(unsigned operand, const std::string &dims,
                   const std::string &weight, const std::string &result) {
    std::string indices = dims;
    for (char c : weight)
      if (indices.find(c) == std::string::npos)
        indices += c;
    return addOperation(indices, {{operand, dims}, {addWeight(weight), weight}},
                        result);
  }

  //===--------------------------------------------------------------------===//
  // Layouts
  //===--------------------------------------------------------------------===//

  static std::vector<Layout> layouts(size_t dims) {
    std::vector<Layout> result;
    for (int a = -1; a < int(dims); ++a)
      for (int b = -1; b < int(dims); ++b)
        result.push_back({a, b});
    return result;
  }

  int64_t bytes(const std::string &dims, const Layout &layout) const {
    int64_t result = 2;
    for (char c : dims)
      result *= extent.at(c);
    for (int axis = 0; axis < 2; ++axis)
      if (layout[axis] >= 0)
        result /= sizes.axes[axis];
    return result;
  }

  /// Picoseconds of collectives from one layout to another.
  Cost reshard(const std::string &dims, Layout from, const Layout &to) const {
    Cost result = 0;
    for (int axis = 0; axis < 2; ++axis) {
      if (from[axis] == to[axis])
        continue;
      int64_t before = bytes(dims, from);
      bool wasPartial = from[axis] == kPartial, wasSplit = from[axis] >= 0;
      from[axis] = to[axis];
      int64_t after = bytes(dims, from);
      if (wasPartial)
        result += 1000000 + before * (to[axis] == kUnsplit ? 22 : 11);
      else if (wasSplit)
        result += 1000000 + (to[axis] == kUnsplit ? after * 11 : after * 3);
    }
    return result;
  }

  /// Can `needed` be sliced out of `stored` without communication?
  static bool offers(const Layout &stored, const Layout &needed) {
    for (int axis = 0; axis < 2; ++axis)
      if (stored[axis] != kUnsplit && stored[axis] != needed[axis])
        return false;
    return true;
  }

  /// The layout of a tensor of these dimensions when axes split indices.
  static Layout layoutOf(const std::string &dims, const std::string &indices,
                         const Layout &strategy, bool isResult) {
    Layout result;
    for (int axis = 0; axis < 2; ++axis) {
      result[axis] = kUnsplit;
      if (strategy[axis] < 0)
        continue;
      size_t at = dims.find(indices[strategy[axis]]);
      result[axis] = at != std::string::npos ? int(at)
                     : isResult              ? kPartial
                                             : kUnsplit;
    }
    return result;
  }

  //===--------------------------------------------------------------------===//
  // Variables and edges
  //===--------------------------------------------------------------------===//

  struct Choice {
    Layout stored;
    std::optional<Layout> copy;
  };

  static std::vector<Choice> choices(const std::string &dims) {
    std::vector<Choice> result;
    for (const Layout &stored : layouts(dims.size())) {
      result.push_back({stored, std::nullopt});
      for (const Layout &copy : layouts(dims.size()))
        if (!offers(stored, copy))
          result.push_back({stored, copy});
    }
    return result;
  }

  void addTensorVariable(Tensor &tensor) {
    VariableData variable;
    uint32_t end = tensor.isWeight ? problem.numPoints : tensor.end;
    for (const Choice &choice : choices(tensor.dims)) {
      std::vector<Usage> usages = {
          {tensor.begin, end, bytes(tensor.dims, choice.stored)}};
      Cost cost = 0;
      if (choice.copy) {
        uint32_t from = tensor.firstUse == ~0u ? tensor.begin : tensor.firstUse;
        usages.push_back({from, tensor.end, bytes(tensor.dims, *choice.copy)});
        cost = reshard(tensor.dims, choice.stored, *choice.copy);
      }
      variable.costs.push_back(cost);
      variable.usages.push_back(std::move(usages));
    }
    tensor.variable = problem.variables.size();
    problem.variables.push_back(std::move(variable));
  }

  void addOperationVariable(Operation &operation) {
    VariableData variable;
    int64_t flops = 2;
    for (char c : operation.indices)
      flops *= extent.at(c);
    for (const Layout &strategy : layouts(operation.indices.size())) {
      int64_t share = flops;
      bool allowed = true;
      for (int axis = 0; axis < 2; ++axis)
        if (strategy[axis] >= 0) {
          share /= sizes.axes[axis];
          // A softmax over this index has no partial result here.
          allowed &= operation.indices[strategy[axis]] != 't';
        }
      variable.costs.push_back(allowed ? share / 459 : kForbidden);
    }
    operation.variable = problem.variables.size();
    problem.variables.push_back(std::move(variable));
  }

  void addReadEdge(const Operation &operation, const Read &read) {
    const Tensor &tensor = tensors[read.tensor];
    Table table;
    for (const Choice &choice : choices(tensor.dims))
      for (const Layout &strategy : layouts(operation.indices.size())) {
        Layout needed =
            layoutOf(read.indices, operation.indices, strategy, false);
        bool offered = offers(choice.stored, needed) ||
                       (choice.copy && offers(*choice.copy, needed));
        table.costs.push_back(offered ? 0 : kForbidden);
      }
    addEdge(tensor.variable, operation.variable, std::move(table));
  }

  void addResultEdge(const Operation &operation) {
    const Tensor &tensor = tensors[operation.result];
    Table table;
    EdgeUsage buffers{0, operation.point, operation.point + 1, {}};
    for (const Choice &choice : choices(tensor.dims))
      for (const Layout &strategy : layouts(operation.indices.size())) {
        Layout made = layoutOf(tensor.dims, operation.indices, strategy, true);
        table.costs.push_back(reshard(tensor.dims, made, choice.stored));
        buffers.bytes.push_back(
            made == choice.stored ? 0 : bytes(tensor.dims, made));
      }
    buffers.edge =
        addEdge(tensor.variable, operation.variable, std::move(table));
    problem.edgeUsages.push_back(std::move(buffers));
  }

  uint32_t addEdge(Variable first, Variable second, Table table) {
    table.rows = problem.variables[first].costs.size();
    table.columns = problem.variables[second].costs.size();
    problem.tables.push_back(std::move(table));
    problem.edges.push_back(
        {first, second, static_cast<TableId>(problem.tables.size() - 1)});
    return problem.edges.size() - 1;
  }

  void finish() {
    problem.numPoints = operations.size();
    for (Operation &operation : operations)
      addOperationVariable(operation);
    for (Tensor &tensor : tensors)
      addTensorVariable(tensor);
    for (const Operation &operation : operations) {
      for (const Read &read : operation.reads)
        addReadEdge(operation, read);
      addResultEdge(operation);
    }
  }

  LayerSizes sizes;
  std::map<char, int64_t> extent;
  std::vector<Tensor> tensors;
  std::vector<Operation> operations;
};

} // namespace shardc::solver::test

#endif // SHARDC_TEST_UNIT_SOLVER_LAYEREDNETWORK_H
