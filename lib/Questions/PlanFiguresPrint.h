//===- PlanFiguresPrint.h - Times and plans in tables and JSON -*- C++ -*-===//

#ifndef SHARDC_LIB_QUESTIONS_PLANFIGURESPRINT_H
#define SHARDC_LIB_QUESTIONS_PLANFIGURESPRINT_H

#include "shardc/Questions/PlanFigures.h"
#include <nlohmann/json.hpp>

namespace shardc {

std::string timeText(Picoseconds time);
/// `+3.10 ms`, `-12.0 us`, or `-` for no difference.
std::string differenceText(Picoseconds time);

using Json = nlohmann::ordered_json;

/// Null if there is none.
Json textOrNull(const std::string &text);
template <typename T> Json orNull(const std::optional<T> &value) {
  return value ? Json(*value) : Json(nullptr);
}
/// In seconds; null if there is none.
Json jsonSeconds(std::optional<Picoseconds> time);
Json toJson(const TimeParts &parts);
Json toJson(const PlanFigures &plan);
/// Null if there is none.
Json toJson(const std::optional<PlanFigures> &plan);

/// As all reports are printed.
void printJson(llvm::raw_ostream &os, const Json &object);

} // namespace shardc

#endif // SHARDC_LIB_QUESTIONS_PLANFIGURESPRINT_H
