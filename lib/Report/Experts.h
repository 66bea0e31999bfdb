//===- Experts.h - Experts of a planned program ----------------*- C++ -*-===//
//
// Private to lib/Report: which operations work on the slots of experts, and
// what of these the model needs.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_REPORT_EXPERTS_H
#define SHARDC_LIB_REPORT_EXPERTS_H

#include "shardc/Dialect/Shd/IR/Experts.h"
#include "shardc/Report/Report.h"
#include <string>
#include <vector>

namespace shardc {

/// A way in which a program dispatches tokens.
struct ExpertRoute {
  /// Names of the indices of experts and slots.
  std::string experts, slots;
  /// Those of groups of tokens.
  llvm::SmallVector<std::string, 2> groups;
  shd::ExpertExtents extents;
  int64_t k = 1;
  /// How often it runs in a step.
  double count = 0;

  /// Tokens times their picks, and slots, of all groups.
  double needed() const { return double(k) * extents.tokens * extents.groups; }
  double executed() const {
    return double(extents.experts) * extents.slots * extents.groups;
  }
  /// The capacity factor.
  double factor() const { return executed() / needed(); }
};

class ExpertRoutes {
public:
  explicit ExpertRoutes(shd::ProgramOp program);

  llvm::ArrayRef<ExpertRoute> all() const { return routes; }
  /// That whose slots the operation works on; null for others.
  const ExpertRoute *find(mlir::Operation *op) const;

private:
  std::vector<ExpertRoute> routes;
};

/// Fills `report.experts` and the active parameters.
void collectExperts(shd::ProgramOp program, const ExpertRoutes &routes,
                    const Mesh &mesh, Report &report);

} // namespace shardc

#endif // SHARDC_LIB_REPORT_EXPERTS_H
