//===- PlanFiguresPrint.cpp - Times and plans in tables and JSON ----------===//

#include "PlanFiguresPrint.h"
#include "shardc/Report/Seconds.h"
#include "shardc/Report/Units.h"

using namespace shardc;

std::string shardc::timeText(Picoseconds time) {
  return formatTime(toSeconds(time));
}

std::string shardc::differenceText(Picoseconds time) {
  if (time == 0)
    return "-";
  return (time < 0 ? "-" : "+") + timeText(std::abs(time));
}

Json shardc::textOrNull(const std::string &text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json shardc::jsonSeconds(std::optional<Picoseconds> time) {
  return time ? Json(toSeconds(*time)) : Json(nullptr);
}

Json shardc::toJson(const TimeParts &parts) {
  Json collectives = Json::array();
  for (const TimeParts::Collectives &each : parts.collectives)
    collectives.push_back({{"kind", each.kind},
                           {"axes", Json(each.axes)},
                           {"time_s", jsonSeconds(each.time)}});
  return {{"compute_s", jsonSeconds(parts.compute)},
          {"hbm_s", jsonSeconds(parts.hbm)},
          {"collectives_s", jsonSeconds(parts.allCollectives())},
          {"collectives", std::move(collectives)}};
}

Json shardc::toJson(const PlanFigures &plan) {
  Json object;
  object["status"] = plan.status;
  object["fits"] = plan.fits;
  object["value_s"] = jsonSeconds(plan.value);
  object["bound_s"] = jsonSeconds(plan.bound);
  object["lower_s"] = jsonSeconds(plan.lower);
  object["scheduled_s"] = jsonSeconds(plan.scheduled);
  object["upper_s"] = jsonSeconds(plan.upper);
  object["memory"] = {{"peak", plan.peak},
                      {"allowed", plan.allowed},
                      {"excess", std::max<int64_t>(0, plan.excess())},
                      {"at", {{"name", plan.peakName}, {"loc", plan.peakLoc}}}};
  object["parts"] = toJson(plan.parts);
  return object;
}

Json shardc::toJson(const std::optional<PlanFigures> &plan) {
  return plan ? toJson(*plan) : Json(nullptr);
}

void shardc::printJson(llvm::raw_ostream &os, const Json &object) {
  os << object.dump(/*indent=*/2, ' ', /*ensure_ascii=*/false,
                    Json::error_handler_t::replace)
     << '\n';
}
