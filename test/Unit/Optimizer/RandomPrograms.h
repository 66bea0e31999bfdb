//===- RandomPrograms.h - Small random programs ---------------*- C++ -*-===//

#ifndef SHARDC_TEST_UNIT_OPTIMIZER_RANDOMPROGRAMS_H
#define SHARDC_TEST_UNIT_OPTIMIZER_RANDOMPROGRAMS_H

#include <cstdint>
#include <string>

namespace shardc::test {

/// A program of about ten statements: products, elementwise functions,
/// reductions, normalisations, casts of int8 weights and loops on shared
/// values, some of them annotated. The same on every platform.
std::string randomProgram(uint64_t seed);

} // namespace shardc::test

#endif // SHARDC_TEST_UNIT_OPTIMIZER_RANDOMPROGRAMS_H
