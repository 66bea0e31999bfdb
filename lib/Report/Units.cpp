//===- Units.cpp - Figures for people -------------------------------------===//

#include "shardc/Report/Units.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>
#include <fmt/format.h>

using namespace shardc;

namespace {

struct Scale {
  double factor;
  const char *unit;
};

/// Three significant digits of a value in [0, 1000).
std::string threeDigits(double value) {
  if (value >= 99.95)
    return fmt::format("{:.0f}", value);
  if (value >= 9.995)
    return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

/// `value` in the largest unit of which it holds at least one, after rounding
/// to three digits; `scales` ascends.
std::string inLargestUnit(double value, llvm::ArrayRef<Scale> scales) {
  const Scale *chosen = &scales.front();
  for (const Scale &scale : scales)
    if (value >= 0.9995 * scale.factor)
      chosen = &scale;
  return threeDigits(value / chosen->factor) + chosen->unit;
}

constexpr Scale kDecimal[] = {{1, ""},     {1e3, " k"},  {1e6, " M"},
                              {1e9, " G"}, {1e12, " T"}, {1e15, " P"},
                              {1e18, " E"}};
constexpr Scale kTimes[] = {{1e-12, " ps"}, {1e-9, " ns"}, {1e-6, " us"},
                            {1e-3, " ms"},  {1, " s"},     {60, " min"},
                            {3600, " h"},   {86400, " d"}};
constexpr Scale kCounts[] = {{1, ""},
                             {1e3, " thousand"},
                             {1e6, " million"},
                             {1e9, " billion"},
                             {1e12, " trillion"}};

bool isSmallInteger(double value) {
  return value < 1000 && value == std::floor(value);
}

} // namespace

std::string shardc::formatScaled(double value) {
  if (isSmallInteger(value))
    return fmt::format("{:.0f}", value);
  return inLargestUnit(value, kDecimal);
}

std::string shardc::formatTime(double seconds) {
  if (seconds == 0)
    return "0 s";
  return inLargestUnit(seconds, kTimes);
}

std::string shardc::formatBytes(double bytes) { return formatRate(bytes, "B"); }

std::string shardc::formatRate(double perSecond, llvm::StringRef unit) {
  std::string scaled = formatScaled(perSecond);
  // `197 T` + `FLOP/s` join; a bare number needs a space.
  bool prefixed = llvm::isAlpha(scaled.back());
  return scaled + (prefixed ? "" : " ") + unit.str();
}

std::string shardc::formatPercent(double fraction) {
  double percent = 100 * fraction;
  if (percent == 0)
    return "0 %";
  if (percent < 0.05)
    return "<0.1 %";
  return fmt::format("{:.1f} %", percent);
}

std::string shardc::formatCount(int64_t count) {
  if (isSmallInteger(double(count)))
    return std::to_string(count);
  return inLargestUnit(double(count), kCounts);
}

std::string shardc::formatDigits(int64_t value) {
  std::string digits = std::to_string(value);
  int64_t first = value < 0 ? 1 : 0;
  for (int64_t at = int64_t(digits.size()) - 3; at > first; at -= 3)
    digits.insert(at, ",");
  return digits;
}

std::string shardc::plural(int64_t count, llvm::StringRef noun,
                           llvm::StringRef several) {
  std::string text = formatDigits(count) + " ";
  if (count == 1)
    return text + noun.str();
  return text + (several.empty() ? noun.str() + "s" : several.str());
}

std::string shardc::formatUsd(double usd) {
  return (usd < 1000 ? fmt::format("{:.3g}", usd) : formatScaled(usd)) + " USD";
}

std::optional<int64_t> shardc::parseBytes(llvm::StringRef text) {
  text = text.trim();
  auto isDigitOrPoint = [](char c) { return llvm::isDigit(c) || c == '.'; };
  size_t end = text.find_if_not(isDigitOrPoint);
  llvm::StringRef exponentText = text.drop_front(std::min(end, text.size()));
  if (exponentText.consume_front_insensitive("e")) {
    if (!exponentText.consume_front("+"))
      exponentText.consume_front("-");
    if (exponentText.empty() || !llvm::isDigit(exponentText.front()))
      return std::nullopt;
    exponentText = exponentText.drop_while(llvm::isDigit);
    end = text.size() - exponentText.size();
  }
  llvm::StringRef number = text.take_front(end);
  llvm::StringRef unit = text.drop_front(number.size()).ltrim();
  double value = 0;
  if (number.empty() || number.getAsDouble(value))
    return std::nullopt;

  unit.consume_back("B");
  double base = unit.consume_back("i") ? 1024 : 1000;
  if (base == 1024 && unit.empty())
    return std::nullopt;
  size_t exponent = 0;
  if (!unit.empty()) {
    size_t prefix = llvm::StringRef("kMGTP").find(unit == "K" ? "k" : unit);
    if (unit.size() != 1 || prefix == llvm::StringRef::npos)
      return std::nullopt;
    exponent = prefix + 1;
  }
  double bytes = std::round(value * std::pow(base, double(exponent)));
  if (!(bytes < 9.2e18))
    return std::nullopt;
  return int64_t(bytes);
}

/// A positive number and the unit behind it.
static std::optional<std::pair<double, llvm::StringRef>>
splitUnit(llvm::StringRef text) {
  text = text.trim();
  size_t end = text.size();
  while (end > 0 && llvm::isAlpha(text[end - 1]))
    --end;
  double value = 0;
  if (text.take_front(end).rtrim().getAsDouble(value) ||
      !std::isfinite(value) || value <= 0)
    return std::nullopt;
  return std::pair(value, text.drop_front(end));
}

std::optional<double> shardc::parseSeconds(llvm::StringRef text) {
  auto split = splitUnit(text);
  if (!split)
    return std::nullopt;
  auto [value, unit] = *split;
  auto perSecond = llvm::StringSwitch<std::optional<double>>(unit)
                       .Cases({"", "s"}, 1)
                       .Case("ms", 1e3)
                       .Case("us", 1e6)
                       .Case("ns", 1e9)
                       .Default(std::nullopt);
  return perSecond ? std::optional(value / *perSecond) : std::nullopt;
}

std::optional<double> shardc::parseUsd(llvm::StringRef text) {
  auto split = splitUnit(text);
  if (!split || (!split->second.empty() && split->second != "USD"))
    return std::nullopt;
  return split->first;
}
