//===- Deadline.h - An optional limit of wall-clock time ------*- C++ -*-===//

#ifndef SHARDC_SOLVER_DEADLINE_H
#define SHARDC_SOLVER_DEADLINE_H

#include <chrono>
#include <optional>

namespace shardc::solver {

/// Without one only the deterministic work limits apply.
class Deadline {
public:
  Deadline() = default;
  explicit Deadline(double seconds)
      : end(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double>(seconds))) {}

  bool expired() const { return end && Clock::now() >= *end; }
  /// Not negative; nothing without one.
  std::optional<double> secondsLeft() const {
    if (!end)
      return std::nullopt;
    std::chrono::duration<double> left = *end - Clock::now();
    return left.count() > 0 ? left.count() : 0;
  }

private:
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> end;
};

} // namespace shardc::solver

#endif // SHARDC_SOLVER_DEADLINE_H
