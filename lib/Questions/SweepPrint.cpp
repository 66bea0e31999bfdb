//===- SweepPrint.cpp - Tables, CSV and JSON of sweeps --------------------===//
//
// A point without a plan that fits stays in its place, with the reason.
//
//===----------------------------------------------------------------------===//

#include "PlanFiguresPrint.h"
#include "SweepCells.h"
#include "shardc/Questions/Frontier.h"
#include "shardc/Report/Table.h"
#include "shardc/Report/Units.h"
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace shardc;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

static std::string percentOrNone(std::optional<double> fraction) {
  return fraction ? formatPercent(*fraction) : "-";
}

static std::vector<Cell> cellsOf(const Report &report) {
  const Report::Memory &memory = report.memory;
  bool good = report.fits();
  Style style = good ? Style::Plain : Style::Red;
  return {
      formatTime(report.time.scheduled),
      report.time.bound,
      percentOrNone(report.flops.mfu),
      formatTime(report.time.lower),
      formatTime(report.time.upper),
      {formatBytes(double(memory.peak)), style},
      {formatPercent(double(memory.peak) / double(memory.allowed())), style},
      {good ? "fits" : "does not fit", style},
      report.plan.status};
}

void shardc::printSweepTable(llvm::raw_ostream &os, StringRef title,
                             llvm::ArrayRef<std::string> names,
                             llvm::ArrayRef<SweepRow> rows, bool colour) {
  using Column = Table::Column;
  std::vector<Column> columns;
  std::vector<std::string> heading;
  auto add = [&](const char *name, Column column) {
    heading.push_back(name);
    columns.push_back(column);
  };
  for (const std::string &name : names) {
    bool isMachine = name == "hardware";
    add(name.c_str(), {isMachine ? Column::Left : Column::Right, 40, true});
  }
  for (const char *name : {"step", "bound", "MFU", "lower", "upper", "memory",
                           "of allowed", "", "plan"}) {
    bool isText = StringRef(name).empty() || StringRef(name) == "bound" ||
                  StringRef(name) == "plan";
    add(name, {isText ? Column::Left : Column::Right});
  }
  Table table(std::move(columns), std::move(heading));
  for (const SweepRow &row : rows) {
    std::vector<Cell> cells;
    for (const Setting &setting : row.point)
      cells.emplace_back(setting.valueText());
    if (row.outcome.report)
      llvm::append_range(cells, cellsOf(*row.outcome.report));
    else
      cells.emplace_back(
          (row.outcome.isUntried ? "not planned: " : "not legal: ") +
              row.outcome.error,
          Style::Yellow, /*runsOn=*/true);
    table.addRow(std::move(cells));
  }
  paint(os, truncate(title, kReportWidth), Style::Bold, colour);
  os << "\n\n";
  table.print(os, colour);
}

//===----------------------------------------------------------------------===//
// CSV
//===----------------------------------------------------------------------===//

std::string shardc::csvCell(StringRef text) {
  if (text.find_first_of(",\"\r\n") == StringRef::npos)
    return text.str();
  std::string result = "\"";
  for (char c : text) {
    result += c;
    if (c == '"')
      result += c;
  }
  return result + "\"";
}

/// The fewest digits that read back as the same number; nothing if unknown.
static std::string exact(std::optional<double> value) {
  if (!value || !std::isfinite(*value))
    return "";
  return fmt::format("{}", *value);
}

namespace {
/// Columns are named as the keys of the JSON report.
struct CsvColumn {
  const char *name;
  std::string (*cell)(const Report &);
};
} // namespace

static std::string truth(bool value) { return value ? "true" : "false"; }

static const CsvColumn kCsvColumns[] = {
    {"hardware.chips",
     [](const Report &r) { return std::to_string(r.hardware.chips); }},
    {"time.scheduled_s",
     [](const Report &r) { return exact(r.time.scheduled); }},
    {"time.lower_s", [](const Report &r) { return exact(r.time.lower); }},
    {"time.upper_s", [](const Report &r) { return exact(r.time.upper); }},
    {"time.bound", [](const Report &r) { return r.time.bound; }},
    {"time.compute_s", [](const Report &r) { return exact(r.time.compute); }},
    {"time.hbm_s", [](const Report &r) { return exact(r.time.hbm); }},
    {"time.device_s", [](const Report &r) { return exact(r.time.device); }},
    {"time.collectives_s",
     [](const Report &r) { return exact(r.time.collectives); }},
    {"flops.device", [](const Report &r) { return exact(r.flops.device); }},
    {"flops.model", [](const Report &r) { return exact(r.flops.model); }},
    {"flops.mfu", [](const Report &r) { return exact(r.flops.mfu); }},
    {"flops.hfu", [](const Report &r) { return exact(r.flops.hfu); }},
    {"traffic.hbm", [](const Report &r) { return exact(r.traffic.hbm); }},
    {"price.usd", [](const Report &r) { return exact(r.price.usd); }},
    {"price.usd_per_million_tokens",
     [](const Report &r) { return exact(r.price.usdPerMillionTokens); }},
    {"memory.peak",
     [](const Report &r) { return std::to_string(r.memory.peak); }},
    {"memory.capacity",
     [](const Report &r) { return std::to_string(r.memory.capacity); }},
    {"memory.fits", [](const Report &r) { return truth(r.memory.fits); }},
    {"plan.status", [](const Report &r) { return r.plan.status; }},
    {"plan.value_s", [](const Report &r) { return exact(r.plan.value); }},
    {"plan.bound_s", [](const Report &r) { return exact(r.plan.bound); }},
    {"plan.gap", [](const Report &r) { return exact(r.plan.gap); }},
    {"mesh", [](const Report &r) { return r.chosenMesh(); }},
};

void shardc::printSweepCsv(llvm::raw_ostream &os,
                           llvm::ArrayRef<std::string> names,
                           llvm::ArrayRef<SweepRow> rows,
                           const Frontier *frontier) {
  for (const std::string &name : names)
    os << csvCell(name) << ',';
  for (const CsvColumn &column : kCsvColumns)
    os << column.name << ',';
  if (frontier)
    os << "frontier,chosen,";
  os << "error\n";
  for (auto [i, row] : llvm::enumerate(rows)) {
    for (const Setting &setting : row.point)
      os << csvCell(setting.valueText()) << ',';
    for (const CsvColumn &column : kCsvColumns) {
      if (row.outcome.report)
        os << csvCell(column.cell(*row.outcome.report));
      os << ',';
    }
    if (frontier)
      os << truth(frontier->has(i)) << ',' << truth(frontier->chosen == i)
         << ',';
    os << csvCell(row.outcome.error) << '\n';
  }
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

using Json = nlohmann::ordered_json;

static std::string dump(const Json &json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false,
                   Json::error_handler_t::replace);
}

Json shardc::setOf(const Point &point) {
  Json object = Json::object();
  for (const Setting &setting : point)
    if (setting.machine)
      object[setting.name] = setting.valueText();
    else
      object[setting.name] = setting.number;
  return object;
}

/// The text of an object with each line but the first further to the right; a
/// string in JSON is on one line.
static void printIndented(llvm::raw_ostream &os, StringRef text,
                          size_t indent) {
  text = text.rtrim('\n');
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    os << line;
    text = rest;
    if (!text.empty())
      os << '\n' << std::string(indent, ' ');
  }
}

static void printPoint(llvm::raw_ostream &os, const SweepRow &row) {
  os << "    {\n      \"set\": " << dump(setOf(row.point))
     << ",\n      \"report\": ";
  if (row.outcome.report)
    printIndented(os, row.json, 6);
  else
    os << "null";
  if (!row.outcome.error.empty())
    os << ",\n      \"error\": " << dump(row.outcome.error)
       << ",\n      \"loc\": " << dump(row.outcome.loc);
  os << "\n    }";
}

static Json jsonOf(const Frontier &frontier) {
  Json object;
  object["target_time_s"] = orNull(frontier.targets.seconds);
  object["target_price_usd"] = orNull(frontier.targets.usd);
  object["points"] = Json(frontier.rows);
  object["chosen"] = orNull(frontier.chosen);
  object["nearest"] = orNull(frontier.nearest);
  return object;
}

void shardc::printSweepJson(llvm::raw_ostream &os,
                            llvm::ArrayRef<SweepRow> rows,
                            const Frontier *frontier) {
  os << "{\n  \"schema\": \"shardc.sweep/1\",\n  \"points\": [";
  StringRef separator = "\n";
  for (const SweepRow &row : rows) {
    os << separator;
    printPoint(os, row);
    separator = ",\n";
  }
  os << "\n  ]";
  if (frontier)
    os << ",\n  \"frontier\": " << dump(jsonOf(*frontier));
  os << "\n}\n";
}
