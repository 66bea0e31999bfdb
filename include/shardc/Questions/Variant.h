//===- Variant.h - A program with something changed -----------*- C++ -*-===//
//
// The changes that a question makes to a program before planning it again:
// values of dims, its mesh and machine, its annotations, and how it is planned.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_QUESTIONS_VARIANT_H
#define SHARDC_QUESTIONS_VARIANT_H

#include "shardc/Frontend/ProgramText.h"
#include "shardc/Optimizer/Context.h"
#include "shardc/Optimizer/Options.h"
#include "shardc/Solver/Problem.h"
#include <functional>

namespace shardc {
struct Report;

/// Where a program can say `@`.
struct PinPlace {
  /// Position of the operation in the imported program, in program order.
  unsigned op = 0;
  /// The operand that it places; nothing: the only result.
  std::optional<unsigned> operand;

  bool operator==(const PinPlace &other) const = default;
};

/// Operations of a program in program order; `PinPlace::op` counts them.
std::vector<mlir::Operation *> operationsOf(shd::ProgramOp program);

/// The annotation there, or null.
shd::ShardingAttr pinAt(llvm::ArrayRef<mlir::Operation *> operations,
                        PinPlace place);
/// Says something else there, or nothing.
void setPinAt(llvm::ArrayRef<mlir::Operation *> operations, PinPlace place,
              shd::ShardingAttr pin);

/// A loss that writes the logits of a product, or a chunk of them at a time,
/// and reads them again: all but those of `chunks=all`.
struct UnfusedLoss {
  mlir::Operation *op = nullptr;
  /// Counted among the losses of the program.
  unsigned number = 0;
};
std::vector<UnfusedLoss>
unfusedLosses(llvm::ArrayRef<mlir::Operation *> operations);
/// The number of labels of a loss.
int64_t numLabels(mlir::Operation *loss);

/// The settings of a variant, in the order of the question.
using Point = std::vector<Setting>;

/// One change of a program, of any kind. Nothing changed: the program as it is
/// written, planned as the options say.
struct Variant {
  struct Pin {
    PinPlace place;
    /// The new annotation there; nothing: the plan is free.
    std::optional<Layout> layout;
  };
  /// Set in place of what the program and its overrides say.
  Point point = {};
  std::vector<Pin> pins = {};
  /// Changes the imported program in other ways.
  std::function<void(shd::ProgramOp)> edit = {};
  /// Another text of the program, in place of the runner's.
  const ProgramText *text = nullptr;
  /// Bytes per device, in place of those of the options.
  std::optional<int64_t> memoryLimit = {};
  /// Seconds of the search, in place of those of the options.
  std::optional<double> timeLimitSeconds = {};
  /// Part of the usual work of a search, in place of that of the options.
  std::optional<double> effort = {};
  /// A plan of the same program, with the same pins, to begin with
  /// (Outcome::labels); ignored where it is none of this one.
  std::vector<solver::Label> start = {};
  /// Ctrl-C does not end its search, which has little time and comes after it.
  bool ignoresInterrupt = false;
  /// How to choose, in place of what the options say.
  std::optional<OptMode> mode = {};
  /// The planned module is wanted: Outcome::plan.
  bool keepsPlan = false;
  /// Where the plan's layouts are wanted.
  std::vector<PinPlace> watched = {};
  /// Looks at the plan once it is explicit: `operations` are those of the
  /// program before that, in its order.
  std::function<void(shd::ProgramOp,
                     llvm::ArrayRef<mlir::Operation *> operations,
                     PlanningContext &, const Report &)>
      inspect = {};

  /// These losses in so many chunks.
  static Variant inChunks(llvm::ArrayRef<UnfusedLoss> losses, int64_t chunks);

  static Variant at(Point point) {
    Variant variant;
    variant.point = std::move(point);
    return variant;
  }
};

} // namespace shardc

#endif // SHARDC_QUESTIONS_VARIANT_H
