//===- Sweep.cpp - The reports at many points -----------------------------===//

#include "shardc/Questions/Sweep.h"
#include "shardc/Frontend/Question.h"
#include "llvm/Support/raw_ostream.h"

using namespace shardc;

std::vector<std::string> Grid::names() const {
  std::vector<std::string> result;
  for (const std::vector<Setting> &axis : axes)
    result.push_back(axis.front().name);
  return result;
}

size_t Grid::size() const {
  constexpr size_t most = kMaxPoints + 1;
  size_t size = 1;
  for (const std::vector<Setting> &axis : axes)
    size = std::min(most, size * std::min(most, axis.size()));
  return size;
}

Point Grid::at(size_t index) const {
  Point point;
  for (const std::vector<Setting> &axis : llvm::reverse(axes)) {
    point.push_back(axis[index % axis.size()]);
    index /= axis.size();
  }
  std::reverse(point.begin(), point.end());
  return point;
}

/// Drops what a line about a point does not tell, so that many fit in memory.
static void dropDetail(Report &report) {
  report.tensors.clear();
  report.items.clear();
  report.repeats.clear();
  report.memory.live.clear();
}

std::vector<SweepRow> shardc::sweep(const Grid &grid, SweepFormat format,
                                    TrialRunner &runner) {
  std::vector<SweepRow> rows(grid.size());
  auto variantOf = [&](size_t i) {
    rows[i].point = grid.at(i);
    return Variant::at(rows[i].point);
  };
  runner.plan(rows.size(), variantOf, [&](size_t i, Outcome outcome) {
    SweepRow &row = rows[i];
    row.outcome = std::move(outcome);
    if (!row.outcome.report)
      return;
    if (format == SweepFormat::Json) {
      llvm::raw_string_ostream os(row.json);
      printJson(os, *row.outcome.report);
    }
    dropDetail(*row.outcome.report);
  });
  return rows;
}
