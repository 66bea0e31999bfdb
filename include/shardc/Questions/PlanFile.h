//===- PlanFile.h - Planning from a plan that is there --------*- C++ -*-===//
//
// `--plan` (docs/CommandLine.md): what a plan, as the text of --emit-plan or
// the JSON of a report, says of a program's tensors becomes annotations of the
// program. Tensors are found by their names.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_QUESTIONS_PLANFILE_H
#define SHARDC_QUESTIONS_PLANFILE_H

#include "shardc/Pipelines/Compilation.h"
#include "shardc/Report/Report.h"
#include <set>

namespace shardc {

/// One sharding that a plan states.
struct PlannedSharding {
  enum class Of { Tensor, Use, Output };
  Of of = Of::Tensor;
  /// The tensor; of a use what is read, and what reads it as which operand.
  std::string name, reader;
  unsigned operand = 0;
  /// The how manieth of that name.
  unsigned ordinal = 0;
  /// Axes of each dimension, and of partial sums.
  std::vector<std::vector<std::string>> dims;
  std::vector<std::string> partial;
};

struct PlanFile {
  /// As on the command line.
  std::string file;
  std::vector<PlannedSharding> shardings;
  /// All its tensors, without those of statements that only move one: plans add
  /// such statements.
  std::set<std::string> names;
};

/// Reads the JSON of a report; nothing, and why in `error`, if it is not one.
std::optional<PlanFile> readPlanJson(llvm::StringRef json, std::string file,
                                     std::string &error);

/// Reads a program with every annotation, as --emit-plan prints it.
PlanFile readPlanProgram(shd::ProgramOp plan, std::string file);

/// The error in a glob, or nothing.
std::optional<std::string> globError(llvm::StringRef text);

/// Says in the program what the plan says, in place of what the program says
/// there; not of what is called like one of the globs `freed`. What the plan
/// names and the program lacks, or the other way round, is warned of; what
/// cannot hold (an axis that the mesh lacks, one that does not divide, another
/// rank), and a glob that fits nothing, is an error.
llvm::LogicalResult applyPlanFile(shd::ProgramOp program, const PlanFile &plan,
                                  llvm::ArrayRef<std::string> freed);

/// How the search uses a plan file: as annotations, or as its start.
enum class PlanFileUse { Pins, Start };

/// Plans an imported program with what the file says, and without; keeps the
/// first as pins, and as a start the faster one, with what is proven of the
/// other. Nothing after an error.
std::optional<Report::Given> planWithFile(Compilation &compilation,
                                          const PlanFile &file, PlanFileUse use,
                                          llvm::ArrayRef<std::string> freed);

} // namespace shardc

#endif // SHARDC_QUESTIONS_PLANFILE_H
