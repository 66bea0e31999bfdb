//===- Serving.h - Prefill, then decoding, by execution -------*- C++ -*-===//
//
// The phases of a program that serves are one computation: decode steps go on
// from the caches that prefill leaves.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_VERIFY_SERVING_H
#define SHARDC_VERIFY_SERVING_H

#include "shardc/Shrink/Shrink.h"
#include "shardc/Verify/Verify.h"

namespace shardc {

/// A phase as `shd-serve` made it, and its plan with every collective explicit.
struct ServedPhase {
  mlir::ModuleOp imported, planned;
};

/// Both plans one after the other, against the unsharded decode program, which
/// takes the tokens of the prompts one by one and then those that follow. The
/// extents are those of the small programs.
struct ServedRuns : ServedExtents {
  /// Results of all prefills: caches, and the outputs of the last position.
  Verification prefill;
  /// Results of all decode steps.
  Verification decode;
  /// Lines that say why nothing ran; empty if it did.
  std::vector<std::string> notRun;

  bool holds() const { return prefill.holds && decode.holds; }
};

/// Runs prefill of small prompts, inserts its caches into those of decode, and
/// runs decode steps. Failure if something cannot be run, which is reported.
mlir::FailureOr<ServedRuns> verifyServing(ServedPhase prefill,
                                          ServedPhase decode,
                                          const VerifyOptions &options = {});

/// Emits an error for each result that differs.
void emitDifferences(const ServedRuns &runs);

/// For people: what was run and what came out.
void printServedRuns(llvm::raw_ostream &os, const ServedRuns &runs,
                     llvm::StringRef file);

} // namespace shardc

#endif // SHARDC_VERIFY_SERVING_H
