//===- Verify.h - Proof of a plan by execution ----------------*- C++ -*-===//
//
// Runs a program whole and, by its plan, on every device of a mesh, and
// compares the results.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_VERIFY_VERIFY_H
#define SHARDC_VERIFY_VERIFY_H

#include "shardc/Dialect/Shd/IR/Experts.h"
#include "shardc/Reference/Interpreter.h"

namespace shardc {
class Compilation;

/// A larger difference of doubles is not one of the order of sums.
inline constexpr double kVerifyTolerance = 1e-9;

struct VerifyOptions {
  /// Make extents, mesh and repeats small first.
  bool shrink = true;
  /// Round every value to its element type. The order of sums then matters, and
  /// differences are measured instead of judged.
  bool roundToDeclared = false;
  /// Run the planned program, whose operations these are, in program order and
  /// so, and measure the memory that each takes; null: nothing is measured.
  const RunSchedule *schedule = nullptr;
  /// Of a training step: compare its gradients with finite differences of the
  /// loss.
  bool gradients = false;
  /// The program that was differentiated, whose loss is the step's; may be
  /// null.
  mlir::ModuleOp forward = {};
  /// Seed of the random inputs.
  uint64_t seed = 1;
};

/// The element in which a device's result is farthest from what it should be.
struct Difference {
  /// For real numbers relative to the largest magnitude of the tensor, but at
  /// least to 1; for integers 1 for any difference.
  double size = 0;
  llvm::SmallVector<int64_t, 4> element;
  unsigned device = 0;
  double expected = 0, found = 0;
};

struct Verification {
  VerifyOptions options;
  /// Of a pipeline: the account of memory, FLOPs and gradients is that of a
  /// stage that has everything, which ran one microbatch after the other.
  bool isOneStage = false;
  /// The program's, and that on which it ran.
  Mesh fullMesh, mesh;
  /// An index of a declared tensor or a repeat.
  struct Dim {
    std::string name;
    int64_t full = 1, extent = 1;
  };
  std::vector<Dim> dims;

  /// An output, or a declared tensor that the step writes.
  struct Result {
    std::string name;
    /// The declared tensor's; nothing for an output.
    std::optional<shd::TensorKind> kind;
    mlir::Location loc;
    /// Elements of all iterations; those that are NaN prove nothing.
    int64_t elements = 0, notNumbers = 0;
    /// The largest difference in all iterations.
    Difference largest;
    /// By more than the order of sums explains.
    bool differs = false;

    bool isState() const { return kind.has_value(); }
    llvm::StringRef kindName() const {
      return kind ? shd::stringifyTensorKind(*kind) : "output";
    }
  };
  std::vector<Result> results;
  /// Operations run on each device, collectives aside.
  int64_t operations = 0;
  RunResult run;
  /// The most that each device takes: what the report's account of memory
  /// says, and what was measured.
  struct Memory {
    int64_t predicted = 0;
    llvm::SmallVector<int64_t, 4> measured;

    bool agrees() const {
      return llvm::all_of(measured,
                          [&](int64_t bytes) { return bytes == predicted; });
    }
  };
  /// In program order and as scheduled, if they were measured.
  std::optional<Memory> inOrder, asScheduled;
  /// FLOPs on the matrix units, all runs of all operations together: those of
  /// the busiest device for each operation, as the report has them, and those
  /// that each device executed.
  struct Flops {
    double predicted = 0;
    llvm::SmallVector<double, 4> executed;
    /// The first operation whose busiest device executed others, if any.
    struct Wrong {
      mlir::Location loc;
      double predicted = 0, executed = 0;
    };
    std::optional<Wrong> wrong;
  };
  /// If they were counted.
  std::optional<Flops> flops;
  /// Gradients of the unsharded step against finite differences of its loss.
  struct Gradients {
    /// Directions tried; where the loss is not finite nothing is proven.
    int64_t directions = 0, notFinite = 0;
    /// The largest difference, relative to the sum of magnitudes (and to what
    /// the rounding of the loss explains).
    double largest = 0;
    struct Wrong {
      std::string weight;
      mlir::Location loc;
      /// How the loss changes along the direction, and what the gradient says.
      double difference, derivative;
    };
    std::vector<Wrong> wrong;
    /// The loss of the step and of the forward program, if that was run.
    double loss = 0;
    std::optional<double> forwardLoss;
    bool lossDiffers = false;
  };
  std::optional<Gradients> gradients;
  /// All stages of a pipeline, in the order of the schedule, against the
  /// unsharded step with the layers of all stages.
  struct Stages {
    int64_t number = 1, microbatches = 1;
    /// The devices of one stage.
    Mesh mesh;
    std::string order;
    /// Of each virtual stage.
    llvm::SmallVector<int64_t> layers;
    /// Tensors that stages sent each other.
    int64_t messages = 0;
    std::vector<Result> results;
    /// The most bytes that a device of each stage holds, in program order: what
    /// the account of memory says, and what was measured; empty where the
    /// gradients of weights have a place of their own in the schedule.
    std::vector<int64_t> predicted, measured;
    /// No result differs.
    bool agree = true;

    bool memoryAgrees() const {
      return measured.empty() || measured == predicted;
    }
    bool holds() const { return agree && memoryAgrees(); }
  };
  std::optional<Stages> stages;
  /// Picks of experts in the unsharded forward pass, and those dropped for want
  /// of a slot; nothing without experts.
  std::optional<shd::PickCount> picks;
  /// No result differs, nor do memory, FLOPs and gradients.
  bool holds = true;
  /// The first operation or collective whose result differs, if one does.
  struct First {
    bool isCollective = false;
    /// `all_reduce`, and the value that it makes or moves.
    std::string kind, name;
    mlir::Location loc;
    Difference difference;
  };
  std::optional<First> first;
  /// The program that ran on each device, if it was made for this.
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// Verifies `planned`, a program with every collective explicit, against
/// `imported`, the same program before planning. Both are left as they are.
/// Failure if one of them cannot be run, which is reported.
mlir::FailureOr<Verification> verifyPlan(mlir::ModuleOp imported,
                                         mlir::ModuleOp planned,
                                         const VerifyOptions &options = {});

/// The same of a compilation, as it is scheduled and with its collective
/// matmuls, in place of the schedule of the options.
mlir::FailureOr<Verification> verifyPlan(mlir::ModuleOp imported,
                                         Compilation &compilation,
                                         VerifyOptions options = {});

/// Verifies the program of each device against the whole one, both as they
/// are.
mlir::FailureOr<Verification> verifyPrograms(shd::ProgramOp whole,
                                             spmd::ProgramOp device,
                                             const VerifyOptions &options = {});

/// Emits an error for each result that differs, with the first operation whose
/// result does, and one for a device that takes other memory than predicted.
void emitDifferences(const Verification &verification);

/// For people: what was run and what came out.
void printVerification(llvm::raw_ostream &os, const Verification &verification,
                       llvm::StringRef file);

/// The same for programs: schema shardc.verify/1 of docs/CommandLine.md.
void printVerificationJson(llvm::raw_ostream &os,
                           const Verification &verification,
                           llvm::StringRef file);

/// Compares the gradients that a training step wrote with central differences
/// of its loss in random directions of each weight.
mlir::FailureOr<Verification::Gradients>
checkGradients(shd::ProgramOp step, const RunResult &executed,
               const RunOptions &options, uint64_t seed);

/// How far `parts` of a tensor of type `global` are from `expected`.
Difference compare(const Devices &devices, mlir::RankedTensorType global,
                   const Tensor &expected, llvm::ArrayRef<TensorRef> parts);

} // namespace shardc

#endif // SHARDC_VERIFY_VERIFY_H
