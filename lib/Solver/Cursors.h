//===- Cursors.h - Walking tables over several variables ------*- C++ -*-===//
//
// Private to elimination: positions in the tables of a bucket while its loops
// step through the labels of the outer variables.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_SOLVER_CURSORS_H
#define SHARDC_LIB_SOLVER_CURSORS_H

#include "shardc/Solver/Arithmetic.h"
#include "llvm/ADT/SmallVector.h"

namespace shardc::solver {

/// A factor during the loop over its group's outer variables: where the entry
/// for the current labels of those variables starts.
struct Cursor {
  const Scaled *data = nullptr;
  size_t ownStride = 1; // of the bucket's variable
  llvm::SmallVector<size_t, 4>
      outerSteps; // per outer variable; 0: not in scope
};

/// Steps cursors through all labels of the outer variables, the last fastest.
class Odometer {
public:
  Odometer(llvm::ArrayRef<size_t> sizes, llvm::MutableArrayRef<Cursor> cursors)
      : sizes(sizes), cursors(cursors), labels(sizes.size(), 0) {}

  void next() {
    for (size_t d = sizes.size(); d-- > 0;) {
      if (++labels[d] < sizes[d]) {
        for (Cursor &cursor : cursors)
          cursor.data += cursor.outerSteps[d];
        return;
      }
      labels[d] = 0;
      for (Cursor &cursor : cursors)
        cursor.data -= cursor.outerSteps[d] * (sizes[d] - 1);
    }
  }

private:
  llvm::ArrayRef<size_t> sizes;
  llvm::MutableArrayRef<Cursor> cursors;
  llvm::SmallVector<size_t, 4> labels;
};

/// Factors of a group, apart by whether they vary along the inner variable.
struct Cursors {
  llvm::SmallVector<Cursor, 8> all; // those with rows first
  size_t numRows = 0;

  llvm::ArrayRef<Cursor> rows() const {
    return llvm::ArrayRef(all).take_front(numRows);
  }
  llvm::ArrayRef<Cursor> scalars() const {
    return llvm::ArrayRef(all).drop_front(numRows);
  }
};

/// Sum at label `own` of the factors that do not vary along the inner variable.
inline Scaled sumOfScalars(const Cursors &cursors, size_t own) {
  Scaled sum = 0;
  for (const Cursor &cursor : cursors.scalars())
    sum = addScaled(sum, cursor.data[own * cursor.ownStride]);
  return sum;
}

} // namespace shardc::solver

#endif // SHARDC_LIB_SOLVER_CURSORS_H
