//===- ProgressLine.h - How far something is, on a terminal ---*- C++ -*-===//

#ifndef SHARDC_TERMINAL_PROGRESSLINE_H
#define SHARDC_TERMINAL_PROGRESSLINE_H

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace shardc {

/// One line on standard error that is written over: the seconds since it was
/// made, and what was shown last. It appears when half a second has passed and
/// goes with the object.
class ProgressLine {
public:
  /// Without `enabled` nothing is ever written.
  explicit ProgressLine(bool enabled);
  ~ProgressLine();

  /// True if standard error is a terminal.
  static bool isWanted();

  /// From any thread.
  void show(std::string what);
  /// The state of a search: the best plan, the bound, and the gap as a
  /// fraction.
  void show(const std::optional<std::string> &best,
            const std::optional<std::string> &bound, std::optional<double> gap);

private:
  void run();

  std::mutex mutex;
  std::condition_variable ended;
  std::string text;
  bool isOver = false;
  /// Writes; there is none unless enabled.
  std::thread writer;
};

} // namespace shardc

#endif // SHARDC_TERMINAL_PROGRESSLINE_H
