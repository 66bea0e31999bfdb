//===- Units.h - Figures for people ---------------------------*- C++ -*-===//
//
// Scales and rounds figures for the text report: three significant digits and a
// decimal prefix. 1 GB is 1e9 bytes (docs/CostModel.md#1-conventions).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_REPORT_UNITS_H
#define SHARDC_REPORT_UNITS_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace shardc {

/// `0`, `512`, `1.23 k`, `68.7 G`: three significant digits with k, M, G, T, P
/// or E. Whole numbers below 1000 are printed as they are.
std::string formatScaled(double value);

/// `1.23 ms`, `349 us`, `2.50 s`, `12.0 min`, `3.00 h`; `0 s` for nothing.
std::string formatTime(double seconds);

/// `512 B`, `16.0 GB`.
std::string formatBytes(double bytes);

/// `197 TFLOP/s`, `820 GB/s`: a rate of `unit`.
std::string formatRate(double perSecond, llvm::StringRef unit);

/// `28.3 %`; `<0.1 %` for more than nothing; `0 %`.
std::string formatPercent(double fraction);

/// `70.6 billion`, `135 million`, `512`.
std::string formatCount(int64_t count);

/// `70,553,706,496`.
std::string formatDigits(int64_t value);

/// `1 mesh`, `12 meshes`: digits and a noun, whose plural has an s if none is
/// given.
std::string plural(int64_t count, llvm::StringRef noun,
                   llvm::StringRef several = "");

/// `0.25 USD`, `5.21e-06 USD`.
std::string formatUsd(double usd);

/// Bytes from `80 GB`, `16GiB`, `1e9`: a number and, optionally, a decimal or
/// binary prefix and `B`. Nothing if malformed, negative or too large.
std::optional<int64_t> parseBytes(llvm::StringRef text);

/// Seconds from `1.5`, `2 s`, `350ms`, `3 us`, `5 ns`: a positive number and,
/// optionally, a unit. Nothing if malformed.
std::optional<double> parseSeconds(llvm::StringRef text);

/// From `0.002` or `0.002 USD`: positive. Nothing if malformed.
std::optional<double> parseUsd(llvm::StringRef text);

} // namespace shardc

#endif // SHARDC_REPORT_UNITS_H
