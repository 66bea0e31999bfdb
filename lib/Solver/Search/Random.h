//===- Random.h - Random numbers that are the same everywhere -*- C++ -*-===//

#ifndef SHARDC_SOLVER_SEARCH_RANDOM_H
#define SHARDC_SOLVER_SEARCH_RANDOM_H

#include <cmath>
#include <cstdint>

namespace shardc::solver::search {

/// Vigna's splitmix64: a counter through a mixing function.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}

  uint64_t bits() {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  /// In [0, bound); bound at least 1 and below 2^32.
  uint32_t below(uint32_t bound) { return ((bits() >> 32) * bound) >> 32; }

  /// In [0, 1).
  double unit() { return (bits() >> 11) * 0x1p-53; }

  /// In (0, 1].
  double positive() { return 1 - unit(); }

  bool chance(double probability) { return unit() < probability; }

  /// Logarithms are uniform in [low, high].
  double logUniform(double low, double high) {
    return low * std::pow(high / low, unit());
  }

private:
  uint64_t state;
};

} // namespace shardc::solver::search

#endif // SHARDC_SOLVER_SEARCH_RANDOM_H
