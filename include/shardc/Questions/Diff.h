//===- Diff.h - Two plans side by side ------------------------*- C++ -*-===//
//
// `--diff` (docs/CommandLine.md): which tensors lie otherwise, and which
// operations and collectives the difference in time is made of. Tensors are
// matched by their names, and those without a counterpart by where they stand
// among the others.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_QUESTIONS_DIFF_H
#define SHARDC_QUESTIONS_DIFF_H

#include "shardc/Optimizer/Options.h"
#include "shardc/Report/Report.h"

namespace shardc {

struct RecordedPlan;

/// Figures of one of the two plans.
struct DiffSide {
  std::string file, hardware, mesh, status;
  bool fits = true;
  Picoseconds value = 0;
  int64_t peak = 0;
};

/// A tensor of one or both plans; what a plan lacks is empty.
struct DiffTensor {
  std::string name, kind;
  struct Side {
    /// Another name than the one above where it is matched by its place.
    std::string name, sharding, loc;
  } a, b;
};

/// Everything of one kind that is done for one tensor.
struct DiffCost {
  std::string name, what;
  bool isCollective = false;
  Picoseconds a = 0, b = 0;
  std::string locA, locB;

  Picoseconds difference() const { return b - a; }
};

struct Diff {
  std::string objective;
  DiffSide a, b;
  /// Tensors that lie otherwise, or that one of the plans lacks.
  std::vector<DiffTensor> moved;
  /// How many do not.
  size_t unmoved = 0;
  /// All of them, those with the largest difference first: their sums are the
  /// values of the two plans.
  std::vector<DiffCost> costs;
};

/// One of the two inputs: a report that was just made, or the JSON of one.
class DiffInput {
public:
  explicit DiffInput(const Report &report);
  ~DiffInput();
  DiffInput(DiffInput &&other);

  /// Nothing if it is no such JSON, which `error` then says; `file` is what the
  /// diff calls it.
  static std::optional<DiffInput>
  fromJson(llvm::StringRef json, std::string file, std::string &error);

  const RecordedPlan &get() const { return *plan; }

private:
  DiffInput() = default;
  std::unique_ptr<RecordedPlan> plan;
};

/// `objective` is that by which the times are compared: not `lower`, which is
/// not the sum of what operations take.
Diff diff(const DiffInput &a, const DiffInput &b, Objective objective);

void printDiff(llvm::raw_ostream &os, const Diff &diff, bool colour);
/// Schema shardc.diff/1 of docs/CommandLine.md.
void printDiffJson(llvm::raw_ostream &os, const Diff &diff);

} // namespace shardc

#endif // SHARDC_QUESTIONS_DIFF_H
