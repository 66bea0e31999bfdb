//===- TestOps.h - Operations that only tests have ------------*- C++ -*-===//

#ifndef SHARDC_TEST_TESTOPS_TESTOPS_H
#define SHARDC_TEST_TESTOPS_TESTOPS_H

#include "shardc/Dialect/Shd/IR/Shd.h"

#include "TestOpsDialect.h.inc"

#define GET_OP_CLASSES
#include "TestOps.h.inc"

#endif // SHARDC_TEST_TESTOPS_TESTOPS_H
