//===- Question.h - The texts of --sweep and --crossover ------*- C++ -*-===//
//
// The texts of --sweep and --crossover, checked against the program: which dim,
// mesh axis or machine takes which values.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_FRONTEND_QUESTION_H
#define SHARDC_FRONTEND_QUESTION_H

#include "shardc/Frontend/ProgramText.h"

namespace shardc {

/// No question is about more points; each is planned.
inline constexpr int64_t kMaxPoints = 10'000;

/// The values of one `--sweep`, in order: `B in 64, 128`, `B in 64..65536 * 2`,
/// `B in 64..4096 + 64`, `hardware in tpu_v5e[4, 4], h100[2, 8]`. The text
/// becomes a buffer of the program's source manager, named `--sweep`. Errors
/// point into it; nothing if there was one.
std::optional<std::vector<Setting>> readSweep(const ProgramText &program,
                                              mlir::MLIRContext *context,
                                              llvm::StringRef text);

/// Reports each of the machines that cannot be built in any shape: an unknown
/// name, a wrong field. False if there is one.
bool checkMachines(const ProgramText &program, mlir::MLIRContext *context,
                   llvm::ArrayRef<Setting> settings);

/// A machine in place of the program's, as after `hardware`; nothing if the
/// text is wrong.
std::optional<Setting> readMachine(const ProgramText &program,
                                   mlir::MLIRContext *context,
                                   llvm::StringRef text);

/// The values of `--crossover`.
struct CrossoverRange {
  Setting::Kind kind = Setting::Kind::Dim;
  std::string name;
  /// Every `step`-th from `low` to `high`, or else those listed, ascending.
  int64_t low = 1, high = 1, step = 1;
  std::vector<int64_t> listed;
  llvm::SMRange where;

  Setting at(int64_t value) const {
    return {kind, name, value, nullptr, where};
  }
};

/// The values of `--crossover`: as those of a sweep, but without machines, and
/// the step may be left out: `B in 1..1048576`. Otherwise as readSweep.
std::optional<CrossoverRange> readCrossover(const ProgramText &program,
                                            mlir::MLIRContext *context,
                                            llvm::StringRef text);

/// A number that the divisibility of the program's extents repeats with,
/// whatever is set: the product of the sizes of the mesh axes and of all
/// constant divisors in the arithmetic of dims, as far as it stays below 2^32.
int64_t divisibilityPeriod(const ProgramText &program,
                           mlir::MLIRContext *context);

/// The extent that the program and its overrides give a dim; nothing if that is
/// an error.
std::optional<int64_t> writtenExtent(const ProgramText &program,
                                     mlir::MLIRContext *context,
                                     llvm::StringRef dim);

} // namespace shardc

#endif // SHARDC_FRONTEND_QUESTION_H
