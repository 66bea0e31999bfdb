//===- Deadline.h - An optional limit of wall-clock time ------*- C++ -*-===//

#ifndef SHARDC_SOLVER_DEADLINE_H
#define SHARDC_SOLVER_DEADLINE_H

#include <atomic>
#include <chrono>
#include <optional>

namespace shardc::solver {

/// Without one only the deterministic work limits apply.
class Deadline {
public:
  Deadline() = default;
  explicit Deadline(double seconds)
      : end(Clock::now() +
            std::chrono::duration_cast<Clock::duration>(
                std::chrono::duration<double>(std::min(seconds, kMost)))) {}
  /// Expires when `flag`, if there is one, becomes true as well.
  Deadline(std::optional<double> seconds, const std::atomic<bool> *flag)
      : flag(flag) {
    if (seconds)
      end = Deadline(*seconds).end;
  }

  bool expired() const {
    return (flag && flag->load(std::memory_order_relaxed)) ||
           (end && Clock::now() >= *end);
  }

  /// The flag at which it expires, or null.
  const std::atomic<bool> *interruption() const { return flag; }

  /// Seconds that are left, not below 0, if there is a limit.
  std::optional<double> remaining() const {
    if (!end)
      return std::nullopt;
    return std::max(0.0,
                    std::chrono::duration<double>(*end - Clock::now()).count());
  }

  /// This part of the time that is left.
  Deadline part(double share) const {
    std::optional<double> left = remaining();
    return Deadline(left ? std::optional(share * *left) : std::nullopt, flag);
  }

private:
  using Clock = std::chrono::steady_clock;
  /// Seconds that a clock counts, 30 years: none waits longer.
  static constexpr double kMost = 1e9;
  std::optional<Clock::time_point> end;
  const std::atomic<bool> *flag = nullptr;
};

} // namespace shardc::solver

#endif // SHARDC_SOLVER_DEADLINE_H
