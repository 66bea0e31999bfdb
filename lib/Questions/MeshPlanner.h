//===- MeshPlanner.h - Bounds of a program on many meshes -----*- C++ -*-===//

#ifndef SHARDC_LIB_QUESTIONS_MESHPLANNER_H
#define SHARDC_LIB_QUESTIONS_MESHPLANNER_H

#include "shardc/Optimizer/Network.h"
#include "shardc/Questions/Evaluator.h"
#include "shardc/Solver/Deadline.h"
#include "shardc/Solver/Solve.h"

namespace shardc {

/// Names of the axes of a program with `mesh auto`.
MeshNames meshNames(const Program &program);

/// A planning task for a mesh.
struct MeshTask {
  const MeshFamily *family = nullptr;
  /// Bindings of the family. For several, prices are the least of any of them:
  /// no plan on one of them costs less.
  llvm::ArrayRef<NamedBinding> bindings;
  /// Only plans that cost less are of interest.
  solver::Cost cutoff = solver::kMaxTotal;
  /// Prices of memory to start with.
  std::vector<double> multipliers;
  /// Labels that hold all plans of interest, if they are known.
  const NetworkLabels *within = nullptr;
  /// The device's time alone, in place of `upper`.
  bool deviceOnly = false;
};

struct MeshBound {
  /// Why the program cannot be placed on the mesh.
  std::string error;
  /// The mesh is too wide to search.
  bool isUnknown = false;
  /// Nothing that fits costs less than the cutoff.
  bool isRuledOut = false;
  /// No plan that fits costs less.
  solver::Cost bound = 0;
  /// Cost of the best plan found, if one is below the cutoff.
  std::optional<solver::Cost> cost;
  std::vector<double> multipliers;
  /// All that plans below the cutoff can use, where that was looked for.
  std::shared_ptr<const NetworkLabels> labels;
};

/// Plans in full as any evaluator, and bounds without that.
class MeshPlanner : public Evaluator {
public:
  using Evaluator::Evaluator;

  /// Ends early at the deadline, with the bound by then.
  MeshBound bound(llvm::ArrayRef<Setting> settings, const MeshTask &task,
                  const solver::Deadline &deadline);
};

} // namespace shardc

#endif // SHARDC_LIB_QUESTIONS_MESHPLANNER_H
