//===- Levels.h - Levels that a machine could have ------------*- C++ -*-===//
//
// Shared by the checks of shapes and by mesh bindings.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_MACHINE_LEVELS_H
#define SHARDC_LIB_MACHINE_LEVELS_H

#include "shardc/Machine/Machine.h"

namespace shardc {

/// Every torus axis and switched level that the machine's networks have,
/// outermost first, of size 1: physicalAxes() is the inner part that the shape
/// mentions.
llvm::SmallVector<PhysicalAxis, 4> allLevels(const Machine &machine);

int64_t largestDivisorUpTo(int64_t number, int64_t limit);

} // namespace shardc

#endif // SHARDC_LIB_MACHINE_LEVELS_H
