//===- CrossoverPrint.cpp - Crossovers as a table and as JSON -------------===//

#include "PlanFiguresPrint.h"
#include "shardc/Questions/Crossover.h"
#include "shardc/Report/Table.h"
#include "shardc/Report/Units.h"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace shardc;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// For people
//===----------------------------------------------------------------------===//

/// The subject of a change, in words.
static std::string subjectOf(const Change &change) {
  if (change.what == "time.bound")
    return "the step is bound by";
  if (change.what == "memory.fits")
    return "the plan fits in memory";
  if (change.what == "plan" || change.what == "parallelism")
    return change.what;
  const PlanState::Op &op = change.op;
  return op.kind + " of '" + (op.operand.empty() ? op.name : op.operand) +
         "' is bound by";
}

static std::string stateInWords(const Crossovers &result) {
  const PlanState &state = result.firstState;
  return fmt::format("at {} = {} the step is bound by {}{}, and the plan {}",
                     result.name, *result.first,
                     state.bound == "hbm" ? "HBM" : state.bound,
                     state.bound == "network" ? "s" : "",
                     state.fits ? "fits" : "does not fit in memory");
}

static std::string truthInWords(const std::string &value) {
  return value == "true" ? "yes" : value == "false" ? "no" : value;
}

/// Says which values were not planned.
static void printGaps(llvm::raw_ostream &os, const Crossovers &result) {
  if (!result.complete)
    printWrapped(os,
                 fmt::format("{} of {} values were planned: a state that "
                             "appears and disappears between two of them is "
                             "not in this list",
                             formatDigits(result.planned),
                             formatDigits(result.values)),
                 2);
  if (!result.alternates) {
    for (auto [from, to] : result.unresolved)
      printWrapped(os,
                   fmt::format("there are more changes between {} and {}",
                               formatDigits(from), formatDigits(to)),
                   2);
    return;
  }
  if (result.unresolved.empty())
    return;
  std::string ranges;
  for (auto [from, to] : result.unresolved)
    ranges += fmt::format("{}{} to {}", ranges.empty() ? "" : ", ",
                          formatDigits(from), formatDigits(to));
  printWrapped(
      os,
      fmt::format("the plan alternates with {}, as where it depends "
                  "on its divisors. Not every value was planned from {}",
                  result.name, ranges),
      2);
}

void shardc::printCrossoverTable(llvm::raw_ostream &os, StringRef file,
                                 const Crossovers &result, bool colour) {
  std::string title = fmt::format(
      "{}: what changes for {} from {} to {}", file.str(), result.name,
      formatDigits(result.low), formatDigits(result.high));
  paint(os, truncate(title, kReportWidth), Style::Bold, colour);
  os << '\n';
  if (!result.first) {
    printWrapped(os,
                 "no value is legal" +
                     (result.error.empty() ? "" : ": " + result.error),
                 2);
    return;
  }
  printWrapped(os, stateInWords(result), 2);
  if (!result.changes.empty()) {
    using Column = Table::Column;
    Table table({{Column::Right},
                 {Column::Left, 44, true},
                 {Column::Left, kReportWidth, true},
                 {Column::Left, kReportWidth, true}},
                {result.name, "what", "before",
                 result.complete ? "from there on" : "at this value"});
    std::optional<int64_t> previous;
    for (const Change &change : result.changes) {
      bool again = previous == change.at;
      previous = change.at;
      table.addRow({again ? "" : formatDigits(change.at), subjectOf(change),
                    truthInWords(change.from), truthInWords(change.to)});
    }
    os << '\n';
    table.print(os, colour);
  } else if (result.unresolved.empty()) {
    printWrapped(os, "nothing changes up to " + formatDigits(*result.last), 2);
  }
  printGaps(os, result);
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

using Json = nlohmann::ordered_json;

static Json jsonOf(const Change &change) {
  Json object = {{"at", change.at},
                 {"before", change.before},
                 {"what", change.what},
                 {"op", nullptr}};
  if (change.what == "op.bound") {
    object["op"] = change.op.name;
    object["kind"] = change.op.kind;
    object["loc"] = change.op.loc;
    if (!change.op.operand.empty())
      object["operand"] = change.op.operand;
  }
  auto truth = [](const std::string &value) -> Json { return value == "true"; };
  bool isTruth = change.what == "memory.fits";
  object["from"] = isTruth ? truth(change.from) : Json(change.from);
  object["to"] = isTruth ? truth(change.to) : Json(change.to);
  return object;
}

void shardc::printCrossoverJson(llvm::raw_ostream &os,
                                const Crossovers &result) {
  Json changes = Json::array(), unresolved = Json::array();
  for (const Change &change : result.changes)
    changes.push_back(jsonOf(change));
  for (auto [from, to] : result.unresolved)
    unresolved.push_back({from, to});
  Json object;
  object["schema"] = "shardc.crossover/1";
  object["name"] = result.name;
  object["first"] = orNull(result.first);
  object["last"] = orNull(result.last);
  object["complete"] = result.complete;
  object["planned"] = result.planned;
  object["values"] = result.values;
  object["alternates"] = result.alternates;
  object["changes"] = std::move(changes);
  object["unresolved"] = std::move(unresolved);
  if (!result.first)
    object["error"] = result.error;
  os << object.dump(/*indent=*/2, ' ', /*ensure_ascii=*/false,
                    Json::error_handler_t::replace)
     << '\n';
}
