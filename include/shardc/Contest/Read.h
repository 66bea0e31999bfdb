//===- Read.h - Problems of the auto-sharding contest ---------*- C++ -*-===//
//
// Reads the JSON of Google's contest on intra-operator parallelism, gzip too:
// nodes with an interval of program points, costs and usages, edges with cost
// tables, and one limit on memory.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_CONTEST_READ_H
#define SHARDC_CONTEST_READ_H

#include "shardc/Solver/Problem.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace shardc::contest {

/// A problem, or what is wrong with the file.
struct ReadResult {
  std::optional<solver::Problem> problem;
  std::string error;
};

/// Costs of at least this much mean that a choice is forbidden.
inline constexpr uint64_t kForbiddenCost = 1'000'000'000'000'000'000;

/// The bytes of a file, inflated if its first bytes are gzip's or its name ends
/// in .gz; an error otherwise, in `error`.
std::optional<std::string> loadFile(const std::string &path,
                                    std::string &error);

/// Parses the text of a problem. Parallel edges stay apart, edges from a node
/// to itself become costs of that node, points are numbered by the order of the
/// intervals' ends, and equal tables are shared.
ReadResult parseProblem(llvm::StringRef text);

} // namespace shardc::contest

#endif // SHARDC_CONTEST_READ_H
