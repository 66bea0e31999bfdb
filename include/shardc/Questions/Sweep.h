//===- Sweep.h - The reports at many points -------------------*- C++ -*-===//
//
// `--sweep` (docs/CommandLine.md): every point of a grid is planned by itself.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_QUESTIONS_SWEEP_H
#define SHARDC_QUESTIONS_SWEEP_H

#include "shardc/Questions/TrialRunner.h"

namespace shardc {

/// All combinations of the values of its axes; the last axis varies fastest.
class Grid {
public:
  /// Each axis has a value.
  explicit Grid(std::vector<std::vector<Setting>> axes)
      : axes(std::move(axes)) {}

  /// Names of the axes.
  std::vector<std::string> names() const;
  /// The values of an axis.
  llvm::ArrayRef<Setting> values(size_t axis) const { return axes[axis]; }
  size_t numAxes() const { return axes.size(); }
  /// Number of points; at most `kMaxPoints` and one.
  size_t size() const;
  Point at(size_t index) const;

private:
  std::vector<std::vector<Setting>> axes;
};

enum class SweepFormat { Table, Csv, Json };

struct SweepRow {
  Point point;
  /// For a table and CSV, the report is without its tensors and items.
  Outcome outcome;
  /// The whole report as JSON.
  std::string json;
};

/// Plans every point.
std::vector<SweepRow> sweep(const Grid &grid, SweepFormat format,
                            TrialRunner &runner);

/// A line for each point, at most 120 columns.
void printSweepTable(llvm::raw_ostream &os, llvm::StringRef title,
                     llvm::ArrayRef<std::string> names,
                     llvm::ArrayRef<SweepRow> rows, bool colour);
struct Frontier;

/// A line for each point after a line of column names; full precision, in SI
/// units. With a frontier, whether it is on it and whether it is chosen.
void printSweepCsv(llvm::raw_ostream &os, llvm::ArrayRef<std::string> names,
                   llvm::ArrayRef<SweepRow> rows,
                   const Frontier *frontier = nullptr);
/// Schema shardc.sweep/1 of docs/CommandLine.md#sweeps.
void printSweepJson(llvm::raw_ostream &os, llvm::ArrayRef<SweepRow> rows,
                    const Frontier *frontier = nullptr);

} // namespace shardc

#endif // SHARDC_QUESTIONS_SWEEP_H
