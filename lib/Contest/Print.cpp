//===- Print.cpp - Answers as text and as JSON ----------------------------===//

#include "shardc/Contest/Solve.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace shardc::contest {

using solver::Status;

static const char *keyword(Status status) {
  switch (status) {
  case Status::Optimal:
    return "optimal";
  case Status::Feasible:
    return "feasible";
  case Status::Infeasible:
    return "infeasible";
  case Status::Unknown:
    return "unknown";
  }
  return "";
}

std::string toText(const Answer &answer) {
  std::string text;
  auto line = [&](const char *name, const std::string &value) {
    text += fmt::format("{:<7} {}\n", name, value);
  };
  std::string bound = answer.bound ? fmt::format("{}", *answer.bound) : "none";
  if (answer.choices.empty()) {
    line("status", answer.status == Status::Infeasible
                       ? "infeasible: proven, no choices fit"
                       : "none found: no plan that fits, nor a proof that "
                         "there is none");
    if (answer.status != Status::Infeasible)
      line("bound", bound);
    line("limit", fmt::format("{}", answer.limit));
    return text;
  }
  line("status", answer.status == Status::Optimal
                     ? "optimal: no plan that fits costs less"
                     : "feasible: see gap");
  line("cost", fmt::format("{}", answer.cost));
  line("bound", bound);
  line("gap",
       answer.bound ? fmt::format("{:.4f} %", 100 * answer.gap()) : "unknown");
  line("peak", fmt::format("{}", answer.peak));
  line("limit", fmt::format("{}", answer.limit));
  return text + fmt::format("[{}]\n", fmt::join(answer.choices, ", "));
}

std::string toJson(const Answer &answer, double seconds) {
  bool plan = !answer.choices.empty();
  auto value = [](bool known, const auto &number) {
    return known ? fmt::format("{}", number) : std::string("null");
  };
  return fmt::format(
      "{{\"schema\": \"shardc.solve/1\", \"status\": \"{}\", \"cost\": {}, "
      "\"bound\": {}, \"gap\": {}, \"peak\": {}, \"limit\": {}, \"seconds\": "
      "{:.3f}, \"choices\": {}}}\n",
      keyword(answer.status), value(plan, answer.cost),
      value(answer.bound.has_value(), answer.bound.value_or(0)),
      value(plan && answer.bound, answer.gap()), value(plan, answer.peak),
      answer.limit, seconds,
      plan ? fmt::format("[{}]", fmt::join(answer.choices, ", ")) : "null");
}

} // namespace shardc::contest
