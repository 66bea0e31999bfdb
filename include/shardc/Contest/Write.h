//===- Write.h - Problems in the contest's format -------------*- C++ -*-===//
//
// Writes a network as the contest's JSON, where a node uses memory over one
// interval and only nodes do. What a label uses over other intervals, and what
// a pair uses, become nodes of their own, whose strategies follow from others.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_CONTEST_WRITE_H
#define SHARDC_CONTEST_WRITE_H

#include "shardc/Solver/Problem.h"
#include "llvm/Support/raw_ostream.h"

namespace shardc::contest {

/// Writes `problem`, which has passed check() and has a capacity, under a name.
/// Its assignments and those of what is written correspond one to one, with the
/// same cost and the same memory at each point; the problem's variables are the
/// first nodes. Returns what the format cannot express, or nothing.
std::optional<std::string> writeProblem(llvm::raw_ostream &os,
                                        const solver::Problem &problem,
                                        llvm::StringRef name);

} // namespace shardc::contest

#endif // SHARDC_CONTEST_WRITE_H
