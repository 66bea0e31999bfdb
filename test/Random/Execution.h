//===- Execution.h - What must hold of plans that run ---------*- C++ -*-===//

#ifndef SHARDC_TEST_RANDOM_EXECUTION_H
#define SHARDC_TEST_RANDOM_EXECUTION_H

#include "Plans.h"

namespace shardc::test {

/// On the mesh as it is, the devices compute what the unsharded program does.
std::string sameValues(PlannedProgram &plan);

/// The same of the shrunk program.
std::string sameValuesShrunk(PlannedProgram &plan);

/// The gradients of a training step are those of finite differences, and its
/// loss is that of the program as written.
std::string sameGradients(PlannedProgram &plan);

/// The report prices, the device's program has and the devices execute the same
/// collectives: kind, axes, bytes and count.
std::string sameCollectives(PlannedProgram &plan);

/// Run in program order and in the report's schedule, each device takes as much
/// memory as is predicted, to the byte; and computes the same.
std::string samePeak(PlannedProgram &plan);

} // namespace shardc::test

#endif // SHARDC_TEST_RANDOM_EXECUTION_H
