//===- MemoryCurvePrint.cpp - Tables and JSON of memory curves ------------===//

#include "PlanFiguresPrint.h"
#include "shardc/Optimizer/Options.h"
#include "shardc/Questions/MemoryCurve.h"
#include "shardc/Report/Table.h"
#include "shardc/Report/Units.h"

using namespace shardc;

/// `*` for what is allowed, `+` for a GiB more.
static const char *markOf(const MemoryCurve &curve, int64_t limit) {
  return limit == curve.allowed                 ? "*"
         : limit == curve.allowed + kMoreMemory ? "+"
                                                : "";
}

static std::vector<Cell> rowOf(const MemoryCurve &curve,
                               const MemoryCurve::Point &point) {
  const PlanFigures &plan = point.plan, &now = curve.atAllowed().plan;
  std::vector<Cell> cells = {markOf(curve, point.limit),
                             formatBytes(double(point.limit))};
  if (!plan.fits) {
    cells.emplace_back("no plan fits: " + formatBytes(double(plan.excess())) +
                           " too much at '" + plan.peakName + "'",
                       Style::Red, /*runsOn=*/true);
    return cells;
  }
  cells.emplace_back(timeText(plan.value));
  cells.emplace_back(now.fits ? differenceText(plan.value - now.value) : "");
  cells.emplace_back(formatBytes(double(plan.peak)));
  cells.emplace_back(plan.status);
  return cells;
}

void shardc::printMemoryCurve(llvm::raw_ostream &os, const MemoryCurve &curve,
                              bool colour) {
  using Column = Table::Column;
  paint(os, truncate(curve.file + ": --memory-curve", kReportWidth),
        Style::Bold, colour);
  os << "\n\n";
  Table table({{Column::Left},
               {Column::Right},
               {Column::Right},
               {Column::Right},
               {Column::Right},
               {Column::Left}},
              {"", "memory", "step", "difference", "used", "plan"});
  for (const MemoryCurve::Point &point : curve.points)
    table.addRow(rowOf(curve, point));
  if (const auto &unlimited = curve.unlimited)
    table.addRow(
        {"", "no limit", timeText(unlimited->value),
         curve.atAllowed().plan.fits
             ? differenceText(unlimited->value - curve.atAllowed().plan.value)
             : "",
         formatBytes(double(unlimited->peak)), unlimited->status});
  table.print(os, colour);
  os << "\n  per device; * what is allowed, + 1 GiB more; step: "
     << curve.objective << " time\n";
}

void shardc::printMemoryCurveJson(llvm::raw_ostream &os,
                                  const MemoryCurve &curve) {
  Json object;
  object["schema"] = "shardc.memory-curve/1";
  object["file"] = curve.file;
  object["objective"] = curve.objective;
  object["allowed"] = curve.allowed;
  object["complete"] = curve.complete;
  Json points = Json::array();
  for (const MemoryCurve::Point &point : curve.points) {
    Json plan = toJson(point.plan);
    Json each;
    each["limit"] = point.limit;
    each.update(plan);
    points.push_back(std::move(each));
  }
  object["points"] = std::move(points);
  object["unlimited"] =
      curve.unlimited ? toJson(*curve.unlimited) : Json(nullptr);
  printJson(os, object);
}
