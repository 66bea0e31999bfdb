//===- Pins.h - The annotations of a program's text -----------*- C++ -*-===//
//
// Where a program says `@`, or could, in its own words: for questions that take
// annotations out or put others in.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_QUESTIONS_PINS_H
#define SHARDC_LIB_QUESTIONS_PINS_H

#include "shardc/Frontend/ProgramText.h"
#include "shardc/Questions/Variant.h"

namespace shardc {

/// The program's name of a tensor that can be annotated; empty: none.
std::string tensorName(mlir::Operation *op);

/// The value that a place is about.
mlir::Value valueAt(llvm::ArrayRef<mlir::Operation *> operations,
                    PinPlace place);

/// `[B@X, D]`, in the index names of the place.
std::string notationAt(llvm::ArrayRef<mlir::Operation *> operations,
                       const Mesh &mesh, PinPlace place, const Layout &layout);

/// `ffn.shd:7:8`: where the program's text has an annotation, or would.
std::string placeText(const ProgramText &text,
                      llvm::ArrayRef<mlir::Operation *> operations,
                      PinPlace place);

std::string placeText(const ProgramText &text, llvm::SMLoc place);

/// One annotation in the text: in a layer that is called several times it is
/// one of several operations.
struct WrittenPin {
  /// `In[B@X, D]`, and what it is of: `tensor`, `use` or `output`.
  std::string text, of, loc;
  std::vector<PinPlace> places;

  /// The program without it; a variant that watches nothing.
  Variant withoutIt() const;
};

/// Every annotation of the program, in its order.
std::vector<WrittenPin>
collectPins(const ProgramText &text, const Mesh &mesh,
            llvm::ArrayRef<mlir::Operation *> operations);

} // namespace shardc

#endif // SHARDC_LIB_QUESTIONS_PINS_H
