//===- Network.h - A program as a cost function network -------*- C++ -*-===//
//
// Builds the optimizer's problem from a program's graph
// (docs/Optimizer.md#2-the-problem) and writes an assignment of it back as
// closed pins. For any assignment the network's costs sum to the report's
// `upper_s` and its memory to the report's.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_OPTIMIZER_NETWORK_H
#define SHARDC_OPTIMIZER_NETWORK_H

#include "shardc/Optimizer/Chains.h"
#include "shardc/Optimizer/Domain.h"
#include "shardc/Optimizer/GroupCosts.h"
#include "shardc/Solver/Deadline.h"
#include "shardc/Solver/Problem.h"
#include <variant>

namespace shardc {

/// Weights of the network's costs: of device time and of the time of
/// collectives. With one for both, the costs add up to `upper_s`
/// (docs/CostModel.md#5-the-time-of-a-step).
struct Weights {
  int64_t device = 1, collectives = 1;
};

/// The busy time of one resource, the device or a physical network, by label.
/// In the order of the network's variables and edges; empty where it is never
/// busy.
struct ResourceTimes {
  std::vector<std::vector<solver::Cost>> variables, edges;
};

struct NetworkLabels;

/// How a value is stored in one plan.
struct ChosenStore {
  Layout layout;
  /// As in StoredLabel.
  bool inlined = false, resharded = false;

  bool operator==(const ChosenStore &other) const = default;
};

/// The labels of one plan, without a network.
struct PlanLabels {
  std::vector<ChunkChoice> chunks; // per chunk
  std::vector<ChosenStore> stored; // per graph value
  /// Per graph value, where it has a copy.
  std::vector<std::optional<Layout>> copies;
};

/// The labels of a network that has not all of them: those that place whole
/// blocks of axes, if there are blocks, and those of some plans. Without
/// blocks, also those that place one axis otherwise than the first plan does.
struct LabelChoice {
  AxisBlocks blocks;
  std::vector<PlanLabels> plans;
};

struct NetworkOptions {
  /// Layouts of named values are decided: no value is resharded once for
  /// several users, and operations use only axes that their tensors are placed
  /// on.
  bool fixed = false;
  /// Bytes per device; none: memory only decides between plans that cost the
  /// same.
  std::optional<int64_t> memoryLimit;
  Weights weights;
  /// Only these labels, which a network of the same program has on a mesh of
  /// the same sizes; they are not too many.
  const NetworkLabels *within = nullptr;
  /// Only these labels; null: all.
  const LabelChoice *choice = nullptr;
  /// Each user of a prologue's value may read it from HBM where it is stored,
  /// and need not compute it in place: no plan does so, but no plan on more
  /// devices takes less together than one device that may.
  bool readsAnyStored = false;
  /// The times of resources are wanted: PlanNetwork::resources.
  bool measureResources = false;
  /// The times of what chains consist of are wanted: PlanNetwork::links and
  /// linkEdges.
  bool measureLinks = false;
  /// Building ends with it.
  solver::Deadline deadline = {};
};

/// How a value is stored.
struct StoredLabel {
  unsigned layout = 0;  // index into ValueVariable::layouts
  bool inlined = false; // every user computes it: it is never stored
  /// For a prologue's value: collectives lead from its produced to its stored
  /// layout, so that users read it as stored.
  bool resharded = false;
};

/// The variable between a value that may have a copy and one of its users. Its
/// labels say which layouts the user reads, and which of them are made from the
/// copy.
struct ReadVariable {
  solver::Variable variable = 0;
  llvm::SmallVector<mlir::OpOperand *, 2> operands;
  /// [label][operand]: read from the copy.
  std::vector<llvm::SmallVector<bool, 2>> fromCopy;
};

/// The variables that decide a value's layouts.
struct ValueVariable {
  solver::Variable variable = 0;
  /// Distinct layouts, and for each label of the variable how the value lies.
  std::vector<Layout> layouts;
  std::vector<StoredLabel> labels;
  /// True if the variable is the value's own, false if it is the one of the
  /// chunk that makes it or of the carried value.
  bool own = false;
  /// Layouts that a copy may have; if there are any, label 0 of `copyVariable`
  /// is no copy and label 1 + i the i-th of them.
  std::vector<Layout> copies;
  solver::Variable copyVariable = 0;
  std::vector<ReadVariable> reads;
};

struct PlanNetwork {
  Graph graph;
  solver::Problem problem;
  std::vector<ChunkDomain> domains;            // per chunk
  std::vector<solver::Variable> chunkVariable; // per chunk
  std::vector<ValueVariable> values;           // per graph value
  /// The device's, then those of each physical network.
  std::vector<ResourceTimes> resources;
  LinkTimes links;
  LinkEdges linkEdges;
  /// Whatever takes so long is left out, since sums of it would be too large.
  std::optional<solver::Cost> beyond;
};

/// Some of a network's labels.
struct NetworkLabels {
  struct OfValue {
    std::vector<Layout> layouts;
    std::vector<StoredLabel> labels;
    std::vector<Layout> copies;
  };
  std::vector<ChunkDomain> domains; // per chunk
  /// Per graph value; of those that have no variable of their own, nothing.
  std::vector<OfValue> values;
};

/// The labels of operations, values and copies that are `kept`: a network of
/// them has all assignments that use no others, at the same costs.
NetworkLabels selectLabels(const PlanNetwork &network,
                           const solver::LabelSets &kept);

/// The labels that an assignment of a network gives its variables.
PlanLabels labelsOf(const PlanNetwork &network,
                    llvm::ArrayRef<solver::Label> assignment);

/// The labels of a network that a plan uses. Variables of reads keep all.
solver::LabelSets labelsIn(const PlanNetwork &network, const PlanLabels &plan);

/// Why there is no network.
enum class NoNetwork {
  /// Some operation has no strategy that its pins allow; an error was emitted.
  Contradiction,
  /// Mesh and tensors have too many axes and dimensions for its tables.
  TooWide,
  /// It has too many operations for them.
  TooLarge,
  /// The deadline expired.
  NoTime,
};

std::variant<PlanNetwork, NoNetwork>
buildNetwork(PlanningContext &context, shd::ProgramOp program,
             const NetworkOptions &options);

/// Inserts a copy of a value before its first reader, with which readers may
/// replace it.
mlir::Operation *insertCopy(mlir::Value value, shd::ShardingAttr stored,
                            shd::ShardingAttr layout);

/// Takes back the copies that applyAssignment() inserted, so that another
/// assignment can be applied: pins are written anew each time.
void removeCopies(shd::ProgramOp program);

/// Writes an assignment into the program: closed pins everywhere, and copies.
void applyAssignment(PlanningContext &context, const PlanNetwork &network,
                     llvm::ArrayRef<solver::Label> assignment);

} // namespace shardc

#endif // SHARDC_OPTIMIZER_NETWORK_H
