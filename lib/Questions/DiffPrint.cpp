//===- DiffPrint.cpp - Two plans side by side, printed --------------------===//

#include "PlanFiguresPrint.h"
#include "shardc/Questions/Diff.h"
#include "shardc/Report/Table.h"
#include "shardc/Report/Units.h"

using namespace shardc;
using Column = Table::Column;

static std::string bytesDifference(int64_t bytes) {
  if (bytes == 0)
    return "-";
  return (bytes < 0 ? "-" : "+") + formatBytes(double(std::abs(bytes)));
}

static std::string statusText(const DiffSide &side) {
  return side.fits ? side.status : "does not fit";
}

static void printSides(llvm::raw_ostream &os, const Diff &diff, bool colour) {
  const DiffSide &a = diff.a, &b = diff.b;
  paint(os, truncate("A: " + a.file + ", B: " + b.file, kReportWidth),
        Style::Bold, colour);
  os << "\n\n";
  Table table({{}, {}, {}, {Column::Right}}, {"", "A", "B", "difference"});
  table.addRow({"step, " + diff.objective + " time", timeText(a.value),
                timeText(b.value), differenceText(b.value - a.value)});
  table.addRow({"memory per device", formatBytes(double(a.peak)),
                formatBytes(double(b.peak)), bytesDifference(b.peak - a.peak)});
  table.addRow({"plan", statusText(a), statusText(b)});
  if (a.hardware != b.hardware)
    table.addRow({"hardware", a.hardware, b.hardware});
  if (a.mesh != b.mesh)
    table.addRow({"mesh", a.mesh, b.mesh});
  table.print(os, colour);
}

static std::string shardingText(const DiffTensor &tensor,
                                const DiffTensor::Side &side) {
  if (side.name.empty())
    return "(none)";
  return side.name == tensor.name ? side.sharding : side.name + side.sharding;
}

static void printMoved(llvm::raw_ostream &os, const Diff &diff, bool colour) {
  os << '\n';
  Table table({{},
               {Column::Left, 30},
               {Column::Left, kReportWidth, /*flexible=*/true},
               {Column::Left, kReportWidth, /*flexible=*/true}},
              {"Moved", "", "A", "B"});
  for (const DiffTensor &tensor : diff.moved)
    table.addRow({tensor.kind, tensor.name, shardingText(tensor, tensor.a),
                  shardingText(tensor, tensor.b)});
  table.print(os, colour);
  os << "  " << formatDigits(int64_t(diff.unmoved))
     << (diff.unmoved == 1 ? " tensor lies where it was"
                           : " tensors lie where they were")
     << "\n";
}

static void printCosts(llvm::raw_ostream &os, const Diff &diff, bool colour) {
  os << '\n';
  Table table({{Column::Left, 30},
               {Column::Left, kReportWidth, /*flexible=*/true},
               {Column::Right},
               {Column::Right},
               {Column::Right}},
              {"What it costs", "", "A", "B", "difference"});
  Picoseconds sameA = 0, sameB = 0;
  size_t same = 0;
  for (const DiffCost &cost : diff.costs) {
    if (cost.difference() == 0) {
      ++same;
      sameA += cost.a;
      sameB += cost.b;
      continue;
    }
    table.addRow({cost.name, cost.what, timeText(cost.a), timeText(cost.b),
                  differenceText(cost.difference())});
  }
  if (same > 0)
    table.addRow({formatDigits(int64_t(same)) + " as before", "",
                  timeText(sameA), timeText(sameB), "-"});
  table.addRow({Cell("total", Style::Bold), "", timeText(diff.a.value),
                timeText(diff.b.value),
                differenceText(diff.b.value - diff.a.value)});
  table.print(os, colour);
  if (diff.objective == "scheduled")
    os << "  of collectives what is exposed\n";
}

void shardc::printDiff(llvm::raw_ostream &os, const Diff &diff, bool colour) {
  printSides(os, diff, colour);
  printMoved(os, diff, colour);
  printCosts(os, diff, colour);
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

static Json sideJson(const DiffSide &side) {
  return {{"file", side.file}, {"hardware", side.hardware},
          {"mesh", side.mesh}, {"status", side.status},
          {"fits", side.fits}, {"value_s", jsonSeconds(side.value)},
          {"peak", side.peak}};
}

static Json tensorJson(const DiffTensor::Side &side) {
  if (side.name.empty())
    return nullptr;
  return {{"name", side.name}, {"sharding", side.sharding}, {"loc", side.loc}};
}

void shardc::printDiffJson(llvm::raw_ostream &os, const Diff &diff) {
  Json moved = Json::array(), costs = Json::array();
  for (const DiffTensor &tensor : diff.moved)
    moved.push_back({{"name", tensor.name},
                     {"kind", tensor.kind},
                     {"a", tensorJson(tensor.a)},
                     {"b", tensorJson(tensor.b)}});
  for (const DiffCost &cost : diff.costs)
    costs.push_back({{"name", textOrNull(cost.name)},
                     {"what", cost.what},
                     {"collective", cost.isCollective},
                     {"a_s", jsonSeconds(cost.a)},
                     {"b_s", jsonSeconds(cost.b)},
                     {"difference_s", jsonSeconds(cost.difference())},
                     {"a_loc", textOrNull(cost.locA)},
                     {"b_loc", textOrNull(cost.locB)}});
  Json object;
  object["schema"] = "shardc.diff/1";
  object["objective"] = diff.objective;
  object["a"] = sideJson(diff.a);
  object["b"] = sideJson(diff.b);
  object["difference_s"] = jsonSeconds(diff.b.value - diff.a.value);
  object["moved"] = std::move(moved);
  object["unmoved"] = diff.unmoved;
  object["costs"] = std::move(costs);
  printJson(os, object);
}
