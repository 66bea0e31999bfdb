//===- RecordedPlan.h - A plan as a report has it -------------*- C++ -*-===//
//
// The facts of a plan that comparing plans and planning from one need: from a
// report that was just made, or from the JSON of an earlier one.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_QUESTIONS_RECORDEDPLAN_H
#define SHARDC_LIB_QUESTIONS_RECORDEDPLAN_H

#include "shardc/Report/Report.h"

namespace shardc {

struct RecordedOp {
  /// The name of an operation, or of the tensor that a collective moves.
  std::string name;
  /// `einsum + relu`, `all_gather X,Y`.
  std::string what;
  std::string loc;
  /// All runs of a step; of a collective also how long compute waits for it.
  Picoseconds total = 0, exposed = 0;
  bool isCollective = false;
};

struct RecordedPlan {
  std::string file, hardware, mesh, status;
  bool fits = true;
  Picoseconds upper = 0, scheduled = 0;
  int64_t peak = 0;
  std::vector<ReportTensor> tensors;
  std::vector<RecordedOp> ops;
};

RecordedPlan recordOf(const Report &report);

/// Reads the JSON of a report (schema shardc.cost/1); nothing if it is
/// something else, which `error` then says.
std::optional<RecordedPlan> readRecord(llvm::StringRef json,
                                       std::string &error);

} // namespace shardc

#endif // SHARDC_LIB_QUESTIONS_RECORDEDPLAN_H
