//===- TestDialect.h - Operations that no pass knows ----------*- C++ -*-===//

#ifndef SHARDC_TEST_LIB_TESTDIALECT_H
#define SHARDC_TEST_LIB_TESTDIALECT_H

#include "shardc/Dialect/Shd/IR/Shd.h"

#include "TestOpsDialect.h.inc"

#define GET_OP_CLASSES
#include "TestOps.h.inc"

#endif // SHARDC_TEST_LIB_TESTDIALECT_H
