//===- FrameworkFile.h - A plan from a framework's options ----*- C++ -*-===//
//
// `--from-config` (docs/Frameworks.md#reading-options): the options that
// --emit-config prints, read back as a mesh, the roles of its axes and the form
// of a training step.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_PICTURES_FRAMEWORKFILE_H
#define SHARDC_PICTURES_FRAMEWORKFILE_H

#include "shardc/Frontend/AxisRoles.h"
#include "shardc/Frontend/Framework.h"
#include <map>
#include <optional>

namespace shardc {

/// A message about the byte of a file at `offset`.
struct FileMessage {
  std::string text;
  size_t offset = 0;
};

/// The options of a file, by name.
struct FrameworkFile {
  struct Value {
    std::string text;
    size_t offset = 0;
  };

  Framework framework = Framework::Megatron;
  std::map<std::string, Value> options;
  /// Names that planning does not read, in the file's order: those that change
  /// nothing, and those whose choice is the search's.
  std::vector<std::string> ignored, open;
  std::vector<FileMessage> errors;
};

FrameworkFile readFrameworkFile(llvm::StringRef text);

/// The program that a file is to be a plan of.
struct PlannedStep {
  int64_t chips = 1, batch = 1, length = 1, layers = 1;
};

/// The plan of a file.
struct FrameworkSetup {
  /// `[pp=4, dp=8, tp=2]`, and the axis of stages if there is one.
  std::string mesh, stages;
  AxisRoles roles;
  int64_t microbatches = 1;
  /// `none`, `full`, `every(2)` or `products`, which keeps the results of
  /// products and of attention alone; empty: the program's.
  std::string remat;
  /// With `none`: attention and norms run again all the same.
  bool recomputesAttention = false, recomputesNorms = false;
  /// The order of the stages; empty without stages.
  std::string schedule;
  bool offloads = false;
};

/// Nothing if options contradict each other or the step, which `file.errors`
/// then says.
std::optional<FrameworkSetup> planOfFile(FrameworkFile &file,
                                         const PlannedStep &step);

} // namespace shardc

#endif // SHARDC_PICTURES_FRAMEWORKFILE_H
