//===- RollLayers.h - Layers written out, as one repeat -------*- C++ -*-===//
//
// The reverse of unrolling, on the text of a program
// (docs/Language.md#10-layers-repetition-imports).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_FRONTEND_ROLLLAYERS_H
#define SHARDC_FRONTEND_ROLLLAYERS_H

#include "shardc/Frontend/Frontend.h"
#include <optional>
#include <string>
#include <vector>

namespace shardc {

/// Whether layers that are written out alike are read as one `repeat`.
enum class RollLayers {
  /// Where the search for a plan of each layer's own would be long.
  Auto,
  On,
  Off,
};

/// A program in which alike layers are written once.
struct RolledProgram {
  std::string text;
  /// How many layers each `repeat` holds that was made.
  std::vector<size_t> layers;
};

/// Reads runs of statements that differ only in the names of weights, states
/// and intermediate values as a `repeat`, the longest run first. Weights and
/// states that one layer alone uses become the body's. Nothing if no layers are
/// alike, if `how` keeps them, or if the text has errors. Settings that name a
/// value of a layer, and placements that differ, keep layers as they are.
/// `path` says where imports are looked for.
std::optional<RolledProgram> rollLayers(llvm::StringRef text,
                                        llvm::StringRef path,
                                        const Overrides &overrides,
                                        RollLayers how,
                                        mlir::MLIRContext *context);

} // namespace shardc

#endif // SHARDC_FRONTEND_ROLLLAYERS_H
