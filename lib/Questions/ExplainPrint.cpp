//===- ExplainPrint.cpp - Tables and JSON of explanations -----------------===//

#include "PlanFiguresPrint.h"
#include "shardc/Questions/Explain.h"
#include "shardc/Report/Table.h"
#include "shardc/Report/Units.h"
#include "llvm/ADT/StringExtras.h"
#include <fmt/format.h>

using namespace shardc;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

/// Rows of a table; what is worse is counted.
static constexpr size_t kMostRows = 40;

/// `all_gather Y +280 us, all_reduce X,Y -3.00 us`.
static std::string collectivesText(const TimeParts &parts) {
  std::string text;
  for (const TimeParts::Collectives &each : parts.collectives)
    text += fmt::format("{}{}{}{} {}", text.empty() ? "" : ", ", each.kind,
                        each.axes.empty() ? "" : " ",
                        llvm::join(each.axes, ","), differenceText(each.time));
  return text;
}

static std::string statusText(const PlanFigures &plan) {
  if (!plan.fits)
    return "no plan fits";
  if (plan.status == "optimal")
    return "optimal";
  return plan.bound ? "at least " + timeText(*plan.bound) + " is proven"
                    : "nothing is proven";
}

/// Text in lines that are indented by `indent`; in the first, a label stands
/// there, after some blanks.
static void printLabelled(llvm::raw_ostream &os, size_t blanks, StringRef label,
                          Style style, StringRef text, size_t indent,
                          bool colour) {
  std::string lines;
  llvm::raw_string_ostream wrapped(lines);
  printWrapped(wrapped, text, indent);
  os.indent(blanks);
  paint(os, label, style, colour);
  os << StringRef(lines).drop_front(blanks + label.size());
}

static void printFact(llvm::raw_ostream &os, StringRef name, StringRef text,
                      bool colour) {
  printLabelled(os, 2, name, Style::Dim, text, 14, colour);
}

static std::string memoryText(const Explanation &explanation) {
  const PlanFigures &plan = explanation.plan;
  const auto &unlimited = explanation.unlimited;
  std::string text =
      fmt::format("{} of {} at '{}'", formatBytes(double(plan.peak)),
                  formatBytes(double(plan.allowed)), plan.peakName);
  if (!plan.fits || !unlimited)
    return text;
  if (unlimited->value >= plan.value)
    return text + "; no more of it would make the step shorter";
  return text +
         fmt::format("; it binds: without a limit {}, {} less, with {} at "
                     "'{}' ({})",
                     timeText(unlimited->value),
                     timeText(plan.value - unlimited->value),
                     formatBytes(double(unlimited->peak)), unlimited->peakName,
                     unlimited->peakLoc);
}

static std::string withoutText(const Explanation &explanation,
                               const PinEffect &pin) {
  const PlanFigures &plan = explanation.plan;
  std::string text =
      fmt::format("{} {} ({}): without it ", pin.of == "tensor" ? "" : pin.of,
                  pin.text, pin.loc);
  text = StringRef(text).ltrim().str();
  if (plan.fits)
    text += fmt::format("{}, {} less", timeText(pin.without->value),
                        timeText(plan.value - pin.without->value));
  else
    text += fmt::format("a plan fits, {}", timeText(pin.without->value));
  for (auto [tensor, then] :
       llvm::zip_equal(explanation.tensors, pin.shardings))
    if (tensor.sharding != then)
      text += fmt::format("; {} would be {}", tensor.name, then);
  return text;
}

static void printPins(llvm::raw_ostream &os, const Explanation &explanation,
                      bool colour) {
  if (explanation.pins.empty())
    return;
  std::vector<const PinEffect *> binding = explanation.bindingPins();
  if (binding.empty()) {
    printFact(os, "pins",
              "no @ of the program, taken out alone, would make the step "
              "shorter",
              colour);
    return;
  }
  StringRef name = "pins";
  for (const PinEffect *pin : binding) {
    printFact(os, name, withoutText(explanation, *pin), colour);
    name = "";
  }
}

static void printHead(llvm::raw_ostream &os, const Explanation &explanation,
                      bool colour) {
  const PlanFigures &plan = explanation.plan;
  paint(os,
        truncate(explanation.file + ": --explain " + explanation.name,
                 kReportWidth),
        Style::Bold, colour);
  os << '\n';
  printFact(os, "plan",
            timeText(plan.value) + " of " + explanation.objective + " time, " +
                statusText(plan),
            colour);
  printFact(os, "memory", memoryText(explanation), colour);
  printPins(os, explanation, colour);
}

static std::string makersText(const ExplainedTensor &tensor) {
  std::string text;
  for (const ReportItem &item : tensor.makers) {
    const ReportCompute &compute = *item.compute();
    text += text.empty() ? ", made by " : " and ";
    text += compute.function;
    for (const std::string &fused : compute.fused)
      text += " + " + fused;
    text += " " + compute.sharding;
  }
  return text;
}

namespace {
class AlternativeTable {
public:
  AlternativeTable(const Explanation &explanation,
                   const ExplainedTensor &tensor)
      : explanation(explanation), tensor(tensor),
        hasMemory(llvm::any_of(tensor.alternatives, [&](const auto &each) {
          return explanation.memoryShare(each).value_or(0) != 0;
        })) {}

  void print(llvm::raw_ostream &os, bool colour) const;

private:
  Table makeTable() const;
  std::vector<Cell> row(const Alternative &alternative) const;
  void addFigures(const PlanFigures &plan, const Alternative &alternative,
                  std::vector<Cell> &cells) const;

  const Explanation &explanation;
  const ExplainedTensor &tensor;
  bool hasMemory;
};
} // namespace

Table AlternativeTable::makeTable() const {
  using Column = Table::Column;
  std::vector<Column> columns = {{Column::Left, 48, true}, {Column::Right},
                                 {Column::Right},          {Column::Right},
                                 {Column::Right},          {Column::Right}};
  std::vector<std::string> heading = {"sharding", "step", "difference",
                                      "compute",  "HBM",  "collectives"};
  if (hasMemory) {
    columns.push_back({Column::Right});
    heading.emplace_back("for memory");
  }
  columns.push_back({Column::Left, kReportWidth, true});
  heading.emplace_back("which");
  return Table(std::move(columns), std::move(heading));
}

void AlternativeTable::addFigures(const PlanFigures &plan,
                                  const Alternative &alternative,
                                  std::vector<Cell> &cells) const {
  if (!explanation.plan.fits) {
    cells.emplace_back("fits");
    return;
  }
  TimeParts parts = plan.parts.minus(explanation.plan.parts);
  cells.emplace_back(differenceText(plan.value - explanation.plan.value));
  cells.emplace_back(differenceText(parts.compute));
  cells.emplace_back(differenceText(parts.hbm));
  cells.emplace_back(differenceText(parts.allCollectives()));
  if (hasMemory)
    cells.emplace_back(
        differenceText(explanation.memoryShare(alternative).value_or(0)));
  cells.emplace_back(collectivesText(parts));
}

std::vector<Cell> AlternativeTable::row(const Alternative &alternative) const {
  const char *mark = alternative.chosen      ? "* "
                     : alternative.forbidden ? "@ "
                                             : "  ";
  Style style = alternative.chosen ? Style::Bold : Style::Plain;
  std::vector<Cell> cells = {{mark + alternative.sharding, style}};
  if (!alternative.plan) {
    cells.emplace_back("no plan: " + alternative.error, Style::Yellow,
                       /*runsOn=*/true);
    return cells;
  }
  const PlanFigures &plan = *alternative.plan;
  if (!plan.fits) {
    cells.emplace_back(fmt::format("does not fit: {} at '{}', {} too much",
                                   formatBytes(double(plan.peak)),
                                   plan.peakName,
                                   formatBytes(double(plan.excess()))),
                       Style::Red, /*runsOn=*/true);
    return cells;
  }
  cells.emplace_back(timeText(plan.value));
  addFigures(plan, alternative, cells);
  return cells;
}

void AlternativeTable::print(llvm::raw_ostream &os, bool colour) const {
  os << '\n';
  std::string label = tensor.name + ":";
  printLabelled(os, 0, label, Style::Bold,
                tensor.kind + " " + tensor.sharding + makersText(tensor) +
                    " (" + tensor.loc + ")",
                label.size() + 1, colour);
  if (!tensor.pin.empty())
    printWrapped(os,
                 fmt::format("the program says {} ({}), which forbids what is "
                             "marked @",
                             tensor.pin, tensor.pinLoc),
                 2);
  for (const ReportTensor &each : tensor.companions)
    printWrapped(os,
                 fmt::format("{} {} {} {}, {} on a device", each.kind,
                             each.name, each.dtype, each.sharding,
                             formatBytes(each.localBytes)),
                 2);
  for (const ReportItem &item : tensor.moves)
    printWrapped(os,
                 fmt::format("{} of {} over {}: {}, {} of them", item.kind,
                             item.collective()->operand,
                             llvm::join(item.collective()->axes, ","),
                             formatTime(item.seconds), item.count),
                 2);
  os << '\n';
  Table table = makeTable();
  size_t shown = 0;
  for (const Alternative &alternative : tensor.alternatives) {
    bool isFirst = shown < kMostRows;
    if (isFirst || alternative.chosen)
      table.addRow(row(alternative));
    shown += isFirst;
  }
  table.print(os, colour);
  if (size_t hidden = tensor.alternatives.size() - shown)
    os << "  and " << hidden << " more, which --emit-json lists\n";
}

/// The rows of a list that are worth showing.
static constexpr size_t kMostOfStep = 12;

static void printRemat(llvm::raw_ostream &os, const Explanation &explanation,
                       const ExplainedRemat &remat, bool colour) {
  const PlanFigures &plan = explanation.plan;
  paint(os, truncate(explanation.file + ": --explain remat", kReportWidth),
        Style::Bold, colour);
  os << '\n';
  printFact(os, "plan",
            timeText(plan.value) + " of " + explanation.objective + " time, " +
                statusText(plan),
            colour);
  printFact(os, "memory",
            formatBytes(double(plan.peak)) + " of " +
                formatBytes(double(plan.allowed)) + " at '" + plan.peakName +
                "'" +
                (plan.fits ? ", " + formatBytes(remat.room) + " are free" : ""),
            colour);
  printFact(os, "remat",
            remat.remat + ", " +
                plural(remat.microbatches, "microbatch", "microbatches"),
            colour);
  printFact(os, "kept",
            remat.kept.empty() ? "nothing in a repeat"
                               : formatBytes(remat.keptBytes) + " on a device",
            colour);
  for (const ReportTensor &each :
       llvm::ArrayRef(remat.kept)
           .take_front(std::min(remat.kept.size(), kMostOfStep)))
    printFact(os, "",
              fmt::format("{} {}, {} ({})",
                          each.of.empty() ? each.name : each.of, each.sharding,
                          formatBytes(each.localBytes), each.loc),
              colour);
  printFact(os, "again",
            remat.again.empty()
                ? "nothing: the backward pass finds all that it reads"
                : formatTime(remat.againSeconds) + " of operations and "
                                                   "collectives",
            colour);
  for (const ReportItem &item :
       llvm::ArrayRef(remat.again)
           .take_front(std::min(remat.again.size(), kMostOfStep)))
    printFact(os, "",
              fmt::format("{} {}, {} ({})", item.name, item.kind,
                          timeText(item.total), item.loc),
              colour);
}

namespace {
/// The columns beside the value itself.
struct ChoiceColumns {
  bool microbatches = false, schedule = false, bubble = false;
};
} // namespace

static ChoiceColumns columnsOf(const Explanation &explanation) {
  ChoiceColumns columns;
  columns.bubble =
      llvm::any_of(explanation.choices, [](const ChoiceValue &value) {
        return value.bubble.has_value();
      });
  columns.schedule = columns.bubble && explanation.name != "schedule";
  columns.microbatches = explanation.name != "microbatches";
  return columns;
}

static std::vector<Cell> choiceRow(const Explanation &explanation,
                                   const ChoiceValue &value,
                                   ChoiceColumns columns) {
  std::vector<Cell> cells = {{(value.chosen ? "* " : "  ") + value.value,
                              value.chosen ? Style::Bold : Style::Plain}};
  if (!value.plan) {
    cells.emplace_back("no plan: " + value.error, Style::Yellow,
                       /*runsOn=*/true);
    return cells;
  }
  const PlanFigures &plan = *value.plan;
  bool compares = plan.fits && explanation.plan.fits && !value.chosen;
  cells.emplace_back(timeText(plan.value));
  cells.emplace_back(
      compares ? differenceText(plan.value - explanation.plan.value) : "");
  if (columns.microbatches)
    cells.emplace_back(std::to_string(value.microbatches));
  if (columns.schedule)
    cells.emplace_back(value.schedule);
  if (columns.bubble)
    cells.emplace_back(value.bubble ? formatPercent(*value.bubble) : "");
  cells.emplace_back(formatBytes(double(plan.peak)));
  if (!plan.fits)
    cells.emplace_back(formatBytes(double(plan.excess())) + " too much",
                       Style::Red);
  return cells;
}

/// Every value of an outer choice, planned again.
static void printChoices(llvm::raw_ostream &os, const Explanation &explanation,
                         bool colour) {
  using Column = Table::Column;
  ChoiceColumns shown = columnsOf(explanation);
  std::vector<Column> columns;
  std::vector<std::string> heading;
  auto add = [&](bool isShown, std::string name, Column column) {
    if (!isShown)
      return;
    columns.push_back(column);
    heading.push_back(std::move(name));
  };
  add(true, explanation.name, {Column::Left, 48, /*flexible=*/true});
  add(true, "step", {Column::Right});
  add(true, "difference", {Column::Right});
  add(shown.microbatches, "microbatches", {Column::Right});
  add(shown.schedule, "schedule", {Column::Left});
  add(shown.bubble, "bubble", {Column::Right});
  add(true, "memory", {Column::Right});
  add(true, "", {Column::Left});
  Table table(std::move(columns), std::move(heading));
  for (const ChoiceValue &value : explanation.choices)
    table.addRow(choiceRow(explanation, value, shown));
  os << '\n';
  table.print(os, colour);
  if (explanation.choices.size() == 1) {
    os << "\n  * the plan's; the program can have no other value\n";
    return;
  }
  os << "\n  * the plan's; every other one was set and the program planned "
        "again, all else as open as it is there\n";
}

void shardc::printExplanation(llvm::raw_ostream &os,
                              const Explanation &explanation, bool colour) {
  if (explanation.remat)
    printRemat(os, explanation, *explanation.remat, colour);
  else
    printHead(os, explanation, colour);
  if (!explanation.choices.empty())
    return printChoices(os, explanation, colour);
  for (const ExplainedTensor &tensor : explanation.tensors)
    AlternativeTable(explanation, tensor).print(os, colour);
  os << "\n  * the plan's; every other one was forced and the program planned "
        "again; differences are to the plan\n";
  if (explanation.objective == "lower")
    os << "  lower time is not the sum of its parts: compute and networks work "
          "at the same time\n";
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

static Json alternativeJson(const Explanation &explanation,
                            const Alternative &alternative) {
  Json object;
  object["sharding"] = alternative.sharding;
  object["chosen"] = alternative.chosen;
  object["forbidden"] = alternative.forbidden;
  object["fits"] = alternative.fits();
  object["difference_s"] = nullptr;
  object["difference"] = nullptr;
  if (alternative.fits() && explanation.plan.fits) {
    const PlanFigures &plan = *alternative.plan;
    object["difference_s"] = jsonSeconds(plan.value - explanation.plan.value);
    object["difference"] = toJson(plan.parts.minus(explanation.plan.parts));
  }
  object["memory_s"] = jsonSeconds(explanation.memoryShare(alternative));
  object["unlimited_s"] = jsonSeconds(alternative.unlimited);
  object["plan"] = toJson(alternative.plan);
  object["error"] = textOrNull(alternative.error);
  object["loc"] = textOrNull(alternative.loc);
  return object;
}

static Json tensorJson(const Explanation &explanation,
                       const ExplainedTensor &tensor) {
  Json object;
  object["name"] = tensor.name;
  object["kind"] = tensor.kind;
  object["sharding"] = tensor.sharding;
  object["loc"] = tensor.loc;
  object["pin"] = nullptr;
  if (!tensor.pin.empty())
    object["pin"] = {{"text", tensor.pin}, {"loc", tensor.pinLoc}};
  Json makers = Json::array();
  for (const ReportItem &item : tensor.makers)
    makers.push_back({{"kind", item.kind},
                      {"function", item.compute()->function},
                      {"fused", Json(item.compute()->fused)},
                      {"sharding", item.compute()->sharding},
                      {"bound", item.bound().str()},
                      {"count", item.count},
                      {"time_s", item.seconds}});
  object["makers"] = std::move(makers);
  Json companions = Json::array(), moves = Json::array();
  for (const ReportTensor &each : tensor.companions)
    companions.push_back({{"name", each.name},
                          {"kind", each.kind},
                          {"dtype", each.dtype},
                          {"sharding", each.sharding},
                          {"local_bytes", each.localBytes}});
  for (const ReportItem &item : tensor.moves)
    moves.push_back({{"operand", item.collective()->operand},
                     {"kind", item.kind},
                     {"axes", Json(item.collective()->axes)},
                     {"count", item.count},
                     {"time_s", item.seconds}});
  Json alternatives = Json::array();
  for (const Alternative &alternative : tensor.alternatives)
    alternatives.push_back(alternativeJson(explanation, alternative));
  object["alternatives"] = std::move(alternatives);
  object["companions"] = std::move(companions);
  object["moves"] = std::move(moves);
  return object;
}

static Json pinJson(const Explanation &explanation, const PinEffect &pin) {
  bool binds = llvm::is_contained(explanation.bindingPins(), &pin);
  Json object;
  object["text"] = pin.text;
  object["of"] = pin.of;
  object["loc"] = pin.loc;
  object["binds"] = binds;
  object["saves_s"] = nullptr;
  if (pin.without && pin.without->fits && explanation.plan.fits)
    object["saves_s"] =
        jsonSeconds(explanation.plan.value - pin.without->value);
  object["shardings"] = Json(pin.shardings);
  object["without"] = toJson(pin.without);
  return object;
}

static Json choiceJson(const Explanation &explanation,
                       const ChoiceValue &value) {
  bool compares = value.fits() && explanation.plan.fits;
  Json object;
  object["value"] = value.value;
  object["chosen"] = value.chosen;
  object["fits"] = value.fits();
  object["difference_s"] =
      compares ? jsonSeconds(value.plan->value - explanation.plan.value)
               : Json(nullptr);
  object["microbatches"] =
      value.plan ? Json(value.microbatches) : Json(nullptr);
  object["schedule"] = textOrNull(value.schedule);
  object["bubble"] = value.bubble ? Json(*value.bubble) : Json(nullptr);
  object["plan"] = toJson(value.plan);
  object["error"] = textOrNull(value.plan ? "" : value.error);
  return object;
}

static Json rematJson(const ExplainedRemat &remat) {
  Json kept = Json::array(), again = Json::array();
  for (const ReportTensor &each : remat.kept)
    kept.push_back({{"name", each.name},
                    {"sharding", each.sharding},
                    {"local_bytes", each.localBytes},
                    {"loc", each.loc}});
  for (const ReportItem &item : remat.again)
    again.push_back({{"name", item.name},
                     {"kind", item.kind},
                     {"count", item.count},
                     {"time_s", item.seconds},
                     {"loc", item.loc}});
  Json object;
  object["remat"] = remat.remat;
  object["microbatches"] = remat.microbatches;
  object["kept_bytes"] = remat.keptBytes;
  object["kept"] = std::move(kept);
  object["again_s"] = remat.againSeconds;
  object["again"] = std::move(again);
  object["room"] = remat.room;
  return object;
}

void shardc::printExplanationJson(llvm::raw_ostream &os,
                                  const Explanation &explanation) {
  Json object;
  object["schema"] = "shardc.explain/1";
  object["file"] = explanation.file;
  object["name"] = explanation.name;
  object["objective"] = explanation.objective;
  object["complete"] = explanation.complete;
  object["plan"] = toJson(explanation.plan);
  object["unlimited"] = toJson(explanation.unlimited);
  Json tensors = Json::array(), pins = Json::array();
  for (const ExplainedTensor &tensor : explanation.tensors)
    tensors.push_back(tensorJson(explanation, tensor));
  for (const PinEffect &pin : explanation.pins)
    pins.push_back(pinJson(explanation, pin));
  object["tensors"] = std::move(tensors);
  object["pins"] = std::move(pins);
  object["remat"] =
      explanation.remat ? rematJson(*explanation.remat) : Json(nullptr);
  object["choices"] = Json::array();
  for (const ChoiceValue &value : explanation.choices)
    object["choices"].push_back(choiceJson(explanation, value));
  printJson(os, object);
}
