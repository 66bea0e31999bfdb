//===- MeshChoice.h - The mesh that `mesh auto` chooses -------*- C++ -*-===//

#ifndef SHARDC_QUESTIONS_MESHCHOICE_H
#define SHARDC_QUESTIONS_MESHCHOICE_H

#include "shardc/Frontend/Framework.h"
#include "shardc/Frontend/ProgramText.h"
#include "shardc/Optimizer/Options.h"
#include "shardc/Report/Report.h"
#include "shardc/Solver/Deadline.h"
#include "shardc/Solver/Solve.h"
#include <atomic>

namespace shardc {

class ChoiceAhead;
struct StepChoice;

struct MeshChoice {
  /// The mesh that replaces `mesh auto` on import.
  Setting setting;
  /// The same for the command line: `[X=4 on x, Y=8 on (y, z)]`.
  std::string text;
  Report::MeshSearch search;
  /// The meshes of `search.best` as settings, in its order.
  std::vector<Setting> settings = {};
  /// The choices of a training step there, if they were made with the mesh.
  std::shared_ptr<const StepChoice> step = {};
  /// The roles of its axes, where the choice is one of a framework's plans.
  std::optional<AxisRoles> roles = {};
};

struct MeshChoiceOptions {
  PlanOptions plan;
  /// Only plans of a training step that the framework expresses: then the roles
  /// of axes are chosen, too, those of a given mesh as well.
  std::optional<Framework> framework = {};
  /// Makes the choice among a framework's plans beside the one among all plans,
  /// and gives it to whoever asks for that framework next.
  ChoiceAhead *ahead = nullptr;
  /// The name of the program in reports.
  std::string file;
  unsigned jobs = 1;
  bool showProgress = false;
  /// Ends the search, if there is one: the best mesh so far is taken.
  const std::atomic<bool> *interrupted = nullptr;
  bool isInterrupted() const { return interrupted && *interrupted; }
  /// The first form of a training step that fits will do.
  bool takesFirstForm = false;
  /// Any plan that fits will do: forms of a step that keep the least come
  /// first.
  bool seeksFit = false;
  /// Share of the usual work: less leaves out meshes of many axes.
  double workShare = 1;
  /// Work of the plans of a training step's forms (StepChoice::work), in place
  /// of the default.
  std::optional<double> stepWork = {};
  /// The choice of a search before, whose plan need not be made again.
  std::shared_ptr<const StepChoice> known = {};
  /// A plan of the only form of a step to begin with.
  std::vector<solver::Label> start = {};
};

/// Plans the program with `settings` on meshes of its machine (Meshes.h) and
/// takes the one of the least time that fits; of equal ones the one of fewest
/// axes. A mesh is left as soon as a bound shows that it is no better. `probe`
/// is the program, imported with the settings, which has `mesh auto`. Nothing
/// if no mesh is legal, for the reason in `error`.
std::optional<MeshChoice> chooseMesh(const ProgramText &text,
                                     llvm::ArrayRef<Setting> settings,
                                     const Program &probe,
                                     const MeshChoiceOptions &options,
                                     std::string &error);

/// The same for the program in the main buffer of `sourceMgr`, without a word
/// about errors in its text.
std::optional<MeshChoice> chooseMesh(const llvm::SourceMgr &sourceMgr,
                                     const Overrides &overrides,
                                     const MeshChoiceOptions &options,
                                     std::string &error);

/// How long the choice of a mesh may take where its plan is searched again by
/// the deadline.
std::optional<double> timeToChoose(const solver::Deadline &deadline);

/// Imports the program in the main buffer of `sourceMgr`; where it means `batch
/// = auto` or `mesh auto`, with the batch and on the mesh that are chosen,
/// which `overrides` then name and `batch` and `search` tell of. `step` gets
/// the choices of a training step that were made with the mesh. Nothing after
/// an error.
std::optional<Program>
importOnBestMesh(llvm::SourceMgr &sourceMgr, mlir::MLIRContext *context,
                 Overrides &overrides, const MeshChoiceOptions &options,
                 std::optional<Report::BatchSearch> &batch,
                 std::optional<Report::MeshSearch> &search,
                 std::shared_ptr<const StepChoice> &step);

/// Makes the report of the plan on the chosen mesh tell of the choice: its
/// bound is that of all meshes.
void addMeshSearch(Report &report, Report::MeshSearch search);

} // namespace shardc

#endif // SHARDC_QUESTIONS_MESHCHOICE_H
