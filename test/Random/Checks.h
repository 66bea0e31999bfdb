//===- Checks.h - What must hold of every plan ----------------*- C++ -*-===//
//
// A check takes a plan of a program at all its stages and says what is wrong
// with it. To add one: a function, and its line in `checks`.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TEST_RANDOM_CHECKS_H
#define SHARDC_TEST_RANDOM_CHECKS_H

#include "Plans.h"
#include "llvm/ADT/ArrayRef.h"

namespace shardc::test {

struct Check {
  /// As `--check` names it.
  const char *name;
  /// The compared facts, in half a sentence.
  const char *what;
  /// The first violation; empty if all holds.
  std::string (*run)(PlannedProgram &);
};

llvm::ArrayRef<Check> checks();

} // namespace shardc::test

#endif // SHARDC_TEST_RANDOM_CHECKS_H
