//===- CanonicalOrder.h - An order that no text decides -------*- C++ -*-===//

#ifndef SHARDC_LIB_DIALECT_SHD_TRANSFORMS_CANONICALORDER_H
#define SHARDC_LIB_DIALECT_SHD_TRANSFORMS_CANONICALORDER_H

#include "shardc/Schedule/ListOrder.h"

namespace shardc::shd {

/// The place of each operation of a program in the canonical order of its
/// block: depth first from the operations that nothing reads, the shallow ones
/// first. It follows from dependences, kinds of operations and extents; names
/// and the order of independent statements do not matter, but for operations
/// that these do not tell apart, which are mostly twins. Declarations and
/// constants have no place. Linear in the program, but for sorting.
ListOrder canonicalOrder(ProgramOp program);

} // namespace shardc::shd

#endif // SHARDC_LIB_DIALECT_SHD_TRANSFORMS_CANONICALORDER_H
