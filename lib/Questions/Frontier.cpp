//===- Frontier.cpp - Time against price ----------------------------------===//

#include "shardc/Questions/Frontier.h"
#include "shardc/Report/Table.h"
#include "shardc/Report/Units.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace shardc;

//===----------------------------------------------------------------------===//
// The frontier
//===----------------------------------------------------------------------===//

static double timeOf(const SweepRow &row) {
  return row.outcome.report->time.scheduled;
}
static double priceOf(const SweepRow &row) {
  return *row.outcome.report->price.usd;
}

/// By what factor a row misses the targets; at most 1 if it does not.
static double excess(const SweepRow &row, const Targets &targets) {
  double factor = 0;
  if (targets.seconds)
    factor = std::max(factor, timeOf(row) / *targets.seconds);
  if (targets.usd)
    factor = std::max(factor, priceOf(row) / *targets.usd);
  return factor;
}

/// Picks a row of the frontier, which goes from fast to cheap.
static void choose(Frontier &frontier, llvm::ArrayRef<SweepRow> rows) {
  double least = HUGE_VAL;
  for (size_t row : frontier.rows) {
    double factor = excess(rows[row], frontier.targets);
    if (factor <= 1 && (frontier.targets.seconds || !frontier.chosen))
      frontier.chosen = row;
    if (factor < least) {
      least = factor;
      frontier.nearest = row;
    }
  }
  if (frontier.chosen)
    frontier.nearest.reset();
}

Frontier shardc::findFrontier(llvm::ArrayRef<SweepRow> rows,
                              const Targets &targets) {
  Frontier result;
  result.targets = targets;
  std::vector<size_t> priced;
  for (auto [i, row] : llvm::enumerate(rows)) {
    const std::optional<Report> &report = row.outcome.report;
    if (!report || !report->fits())
      ++result.unfit;
    else if (!report->price.usd)
      ++result.unpriced;
    else
      priced.push_back(i);
  }
  llvm::stable_sort(priced, [&](size_t a, size_t b) {
    return std::pair(timeOf(rows[a]), priceOf(rows[a])) <
           std::pair(timeOf(rows[b]), priceOf(rows[b]));
  });
  // Earlier rows are no slower.
  for (size_t row : priced) {
    if (result.rows.empty() ||
        priceOf(rows[row]) < priceOf(rows[result.rows.back()]))
      result.rows.push_back(row);
    else
      ++result.beaten;
  }
  choose(result, rows);
  return result;
}

//===----------------------------------------------------------------------===//
// Print
//===----------------------------------------------------------------------===//

static std::string targetText(const Targets &targets) {
  std::string text;
  if (targets.seconds)
    text = "within " + formatTime(*targets.seconds);
  if (targets.usd)
    text += (text.empty() ? "for at most " : " for at most ") +
            formatUsd(*targets.usd);
  return text;
}

static std::string pointText(const SweepRow &row) {
  std::vector<std::string> parts;
  for (const Setting &setting : row.point)
    parts.push_back(setting.machine ? setting.valueText()
                                    : setting.name + "=" + setting.valueText());
  return llvm::join(parts, ", ");
}

std::string shardc::missText(llvm::ArrayRef<SweepRow> rows,
                             const Frontier &frontier) {
  std::string text =
      "no point of the sweep does a step " + targetText(frontier.targets);
  if (!frontier.nearest)
    return text + (frontier.unpriced > 0 ? ": none that fits has a price"
                                         : ": none fits in memory");
  const SweepRow &nearest = rows[*frontier.nearest];
  return text + "; the nearest is " + pointText(nearest) + " with " +
         formatTime(timeOf(nearest)) + " and " + formatUsd(priceOf(nearest));
}

/// `left out: 2 points that one of these beats, 1 without a price`.
static std::string leftOutText(const Frontier &frontier) {
  std::vector<std::string> parts;
  if (frontier.beaten > 0)
    parts.push_back(plural(int64_t(frontier.beaten), "point") +
                    " no faster and no cheaper than one of these");
  if (frontier.unpriced > 0)
    parts.push_back(plural(int64_t(frontier.unpriced), "point") +
                    " without a price");
  if (frontier.unfit > 0)
    parts.push_back(plural(int64_t(frontier.unfit), "point") +
                    " not legal or too large for the memory");
  return parts.empty() ? "" : "left out: " + llvm::join(parts, ", ");
}

void shardc::printFrontier(llvm::raw_ostream &os,
                           llvm::ArrayRef<std::string> names,
                           llvm::ArrayRef<SweepRow> rows,
                           const Frontier &frontier, bool colour) {
  using Column = Table::Column;
  bool choosesMesh = llvm::any_of(frontier.rows, [&](size_t row) {
    return rows[row].outcome.report->meshSearch.has_value();
  });
  std::vector<Column> columns(names.size(), {Column::Left, 60});
  std::vector<std::string> heading(names.begin(), names.end());
  auto add = [&](const char *name, Column column) {
    heading.push_back(name);
    columns.push_back(column);
  };
  add("step", {Column::Right});
  add("per hour", {Column::Right});
  add("per step", {Column::Right});
  if (choosesMesh)
    add("mesh", {Column::Left, kReportWidth, /*flexible=*/true});
  add("", {});
  Table table(std::move(columns), std::move(heading));
  std::string wanted =
      (frontier.targets.seconds ? "the cheapest " : "the fastest ") +
      targetText(frontier.targets);
  for (size_t i : frontier.rows) {
    std::vector<Cell> cells;
    for (const Setting &setting : rows[i].point)
      cells.emplace_back(setting.valueText());
    double seconds = timeOf(rows[i]), usd = priceOf(rows[i]);
    cells.emplace_back(formatTime(seconds));
    cells.emplace_back(seconds > 0 ? formatUsd(usd / seconds * 3600) : "");
    cells.emplace_back(formatUsd(usd));
    if (choosesMesh)
      cells.emplace_back(rows[i].outcome.report->chosenMesh());
    cells.emplace_back(i == frontier.chosen ? wanted : "", Style::Bold);
    table.addRow(std::move(cells));
  }
  os << '\n';
  paint(os, "Time against price of a step", Style::Bold, colour);
  os << '\n';
  if (!frontier.rows.empty())
    table.print(os, colour);
  if (std::string text = leftOutText(frontier); !text.empty())
    printWrapped(os, text, 2);
  if (!frontier.chosen)
    printWrapped(os, missText(rows, frontier), 2);
}
