//===- LinkSimulation.cpp - Collectives, link by link ---------------------===//

#include "LinkSimulation.h"
#include <algorithm>
#include <cmath>

using namespace shardc::test;

LinkSimulation::LinkSimulation(std::vector<Axis> theAxes)
    : axes(std::move(theAxes)) {
  for (const Axis &axis : axes)
    chips *= axis.size;
  loads.assign(chips * axes.size() * 2, 0);
  delivered.assign(chips, std::vector<double>(chips, 0));
}

int64_t LinkSimulation::coordinate(int64_t chip, unsigned axis) const {
  for (unsigned inner = axes.size(); --inner > axis;)
    chip /= axes[inner].size;
  return chip % axes[axis].size;
}

int64_t LinkSimulation::neighbour(int64_t chip, unsigned axis, bool up) const {
  int64_t stride = 1, size = axes[axis].size;
  for (unsigned inner = axis + 1; inner < axes.size(); ++inner)
    stride *= axes[inner].size;
  int64_t at = coordinate(chip, axis), to = at + (up ? 1 : -1);
  if (!axes[axis].isRing && (to < 0 || to == size))
    return -1;
  return chip + ((to + size) % size - at) * stride;
}

double &LinkSimulation::load(int64_t chip, unsigned axis, bool up) {
  return loads[(chip * axes.size() + axis) * 2 + up];
}

//===----------------------------------------------------------------------===//
// All-gather
//===----------------------------------------------------------------------===//

/// Each chip sends what it has to both neighbours, and passes on what came from
/// one side to the other side until everyone has it.
int64_t LinkSimulation::gatherAlong(unsigned axis, double fraction,
                                    Opposite opposite, Shares &shares) {
  int64_t size = axes[axis].size;
  int64_t steps = axes[axis].isRing ? size / 2 : size - 1;
  // Shares that arrived in the last step from below (1) and from above (0).
  Shares moving[2] = {shares, shares};
  for (int64_t step = 1; step <= steps; ++step) {
    bool meets = axes[axis].isRing && 2 * step == size;
    double part = meets && opposite == Opposite::Halves ? 0.5 : 1;
    for (bool up : {false, true}) {
      Shares arriving(chips, std::vector<double>(chips, 0));
      for (int64_t chip = 0; chip < chips; ++chip) {
        int64_t next = neighbour(chip, axis, up);
        if (next < 0)
          continue;
        for (int64_t shard = 0; shard < chips; ++shard) {
          double amount = moving[up][chip][shard] * part;
          load(chip, axis, up) += amount * fraction;
          arriving[next][shard] = amount;
        }
      }
      moving[up] = std::move(arriving);
    }
    for (int64_t chip = 0; chip < chips; ++chip)
      for (int64_t shard = 0; shard < chips; ++shard)
        shares[chip][shard] =
            std::min(1.0, shares[chip][shard] + moving[0][chip][shard] +
                              moving[1][chip][shard]);
  }
  return steps;
}

void LinkSimulation::allGather(const std::vector<unsigned> &order,
                               double fraction, Opposite opposite) {
  Shares shares(chips, std::vector<double>(chips, 0));
  for (int64_t chip = 0; chip < chips; ++chip)
    shares[chip][chip] = 1;
  int64_t steps = 0;
  for (unsigned axis : order)
    steps += gatherAlong(axis, fraction, opposite, shares);
  longest = std::max(longest, steps);
  for (int64_t chip = 0; chip < chips; ++chip)
    for (int64_t shard = 0; shard < chips; ++shard)
      delivered[chip][shard] += fraction * shares[chip][shard];
}

//===----------------------------------------------------------------------===//
// Reduce-scatter
//===----------------------------------------------------------------------===//

/// Sums travel towards the coordinate that they are for, the furthest first, so
/// that each chip adds its own before it passes a sum on.
int64_t LinkSimulation::scatterAlong(unsigned axis, double fraction,
                                     Opposite opposite, Shares &sums) {
  int64_t size = axes[axis].size;
  int64_t steps = axes[axis].isRing ? size / 2 : size - 1;
  for (int64_t step = steps; step >= 1; --step) {
    bool meets = axes[axis].isRing && 2 * step == size;
    Shares before = sums;
    for (int64_t chip = 0; chip < chips; ++chip) {
      for (int64_t shard = 0; shard < chips; ++shard) {
        if (before[chip][shard] == 0)
          continue;
        int64_t ahead = coordinate(shard, axis) - coordinate(chip, axis);
        for (bool up : {false, true}) {
          int64_t distance = up ? ahead : -ahead;
          if (axes[axis].isRing)
            distance = (distance + size) % size;
          if (distance != step)
            continue;
          // From the opposite chip a sum takes both ways: as halves, or whole
          // on each link, of which half is added.
          double part = meets ? 0.5 : 1;
          double bytes = meets && opposite == Opposite::Halves ? 0.5 : 1;
          load(chip, axis, up) += bytes * fraction;
          sums[neighbour(chip, axis, up)][shard] += before[chip][shard] * part;
          sums[chip][shard] -= before[chip][shard] * part;
        }
      }
    }
  }
  return steps;
}

void LinkSimulation::reduceScatter(const std::vector<unsigned> &order,
                                   double fraction, Opposite opposite) {
  Shares sums(chips, std::vector<double>(chips, 1));
  int64_t steps = 0;
  for (unsigned axis : order)
    steps += scatterAlong(axis, fraction, opposite, sums);
  longest = std::max(longest, steps);
  // Every chip's contribution is a chips-th of the sum.
  for (int64_t chip = 0; chip < chips; ++chip)
    for (int64_t shard = 0; shard < chips; ++shard)
      delivered[chip][shard] += shard == chip
                                    ? fraction * sums[chip][chip] / chips
                                    : fraction * (1 - sums[chip][shard]);
}

//===----------------------------------------------------------------------===//
// All-to-all
//===----------------------------------------------------------------------===//

void LinkSimulation::walk(const Message &message, int64_t at, unsigned axis,
                          bool up) {
  int64_t target = coordinate(message.to, axis);
  while (coordinate(at, axis) != target) {
    load(at, axis, up) += message.amount;
    at = neighbour(at, axis, up);
  }
  send(message, at, axis + 1);
}

void LinkSimulation::send(const Message &message, int64_t at, unsigned axis) {
  if (axis == axes.size()) {
    delivered[at][message.from] += message.amount;
    return;
  }
  int64_t size = axes[axis].size;
  int64_t ahead = coordinate(message.to, axis) - coordinate(at, axis);
  if (!axes[axis].isRing)
    return walk(message, at, axis, ahead > 0);
  int64_t upward = (ahead + size) % size;
  if (2 * upward != size)
    return walk(message, at, axis, 2 * upward < size);
  Message half{message.from, message.to, message.amount / 2};
  walk(half, at, axis, true);
  walk(half, at, axis, false);
}

void LinkSimulation::allToAll() {
  for (int64_t from = 0; from < chips; ++from)
    for (int64_t to = 0; to < chips; ++to)
      send({from, to, 1}, from, 0);
  longest = 0;
  for (const Axis &axis : axes)
    longest += axis.isRing ? axis.size / 2 : axis.size - 1;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

bool LinkSimulation::isComplete() const {
  for (const std::vector<double> &shards : delivered)
    for (double share : shards)
      if (std::abs(share - 1) > 1e-9)
        return false;
  return true;
}

double LinkSimulation::busiest() const {
  return *std::max_element(loads.begin(), loads.end());
}

double LinkSimulation::busiest(unsigned axis) const {
  double most = 0;
  for (int64_t chip = 0; chip < chips; ++chip)
    for (unsigned up : {0, 1})
      most = std::max(most, loads[(chip * axes.size() + axis) * 2 + up]);
  return most;
}

//===----------------------------------------------------------------------===//
// Balance
//===----------------------------------------------------------------------===//

/// Solves a square system by elimination with row exchanges.
static std::vector<double> solve(std::vector<std::vector<double>> rows) {
  size_t n = rows.size();
  for (size_t column = 0; column < n; ++column) {
    auto pivot = std::max_element(
        rows.begin() + column, rows.end(), [&](const auto &a, const auto &b) {
          return std::abs(a[column]) < std::abs(b[column]);
        });
    std::swap(rows[column], *pivot);
    for (size_t row = 0; row < n; ++row) {
      if (row == column)
        continue;
      double factor = rows[row][column] / rows[column][column];
      for (size_t i = column; i <= n; ++i)
        rows[row][i] -= factor * rows[column][i];
    }
  }
  std::vector<double> solution;
  for (size_t row = 0; row < n; ++row)
    solution.push_back(rows[row][n] / rows[row][row]);
  return solution;
}

BalancedOrders
shardc::test::balancedOrders(const std::vector<LinkSimulation::Axis> &axes) {
  size_t n = axes.size();
  BalancedOrders result;
  // Unknowns: the fraction of each order, and the load of every axis. One
  // equation for each axis, and that the fractions add up to one.
  std::vector<std::vector<double>> rows(n + 1, std::vector<double>(n + 2, 0));
  for (size_t first = 0; first < n; ++first) {
    std::vector<unsigned> order;
    for (size_t i = 0; i < n; ++i)
      order.push_back((first + i) % n);
    LinkSimulation alone(axes);
    alone.allGather(order, 1, LinkSimulation::Opposite::Halves);
    for (size_t axis = 0; axis < n; ++axis)
      rows[axis][first] = alone.busiest(axis);
    rows[n][first] = 1;
    result.orders.push_back(std::move(order));
  }
  for (size_t axis = 0; axis < n; ++axis)
    rows[axis][n] = -1;
  rows[n][n + 1] = 1;
  result.fractions = solve(std::move(rows));
  result.fractions.resize(n);
  return result;
}
