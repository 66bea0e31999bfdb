//===- FasterBinding.cpp - Where else a mesh would better lie -------------===//
//
// The plan's collectives are priced under every other binding of the mesh;
// where that promises a shorter step, the plan is made explicit again under the
// best ones, with the sequences of collectives that are the cheapest there, and
// scheduled.
//
//===----------------------------------------------------------------------===//

#include "shardc/Questions/FasterBinding.h"
#include "shardc/Dialect/Shd/IR/Experts.h"
#include "shardc/Dialect/Shd/IR/Halo.h"
#include "shardc/Dialect/Shd/IR/RingAttention.h"
#include "shardc/Machine/Bindings.h"
#include "shardc/Optimizer/Halos.h"
#include "shardc/Optimizer/Rings.h"
#include "shardc/Reshard/PermuteCost.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

/// Bindings that are priced; fewer of meshes with many axes, since the terms of
/// every set of axes are computed for each, and where permutes route the
/// messages of many devices.
static constexpr size_t kMostBindings = 1000;
static constexpr size_t kMostAxisSets = 16384;
static constexpr size_t kMostMessages = 1 << 20;
/// How many of them are tried in full.
static constexpr size_t kMostTrials = 2;
/// Shorter steps than this part of the present one are not worth a note.
static constexpr double kWorthwhile = 0.999;

namespace {

/// Equal collectives of a plan.
struct Move {
  CollectiveKind kind;
  AxisList axes;
  double bytes = 0;
  /// The layouts of a permute, and of an all_to_all of experts' slots.
  Layout from, to;
  std::optional<RoutedBlocks> routed = std::nullopt;
  int64_t count = 0;
  bool travels = false, isHalved = false;
  /// The stretches of positions before which a halo has rows.
  int64_t stretches = 1;

  bool isLike(const Move &other) const {
    return kind == other.kind && axes == other.axes && bytes == other.bytes &&
           from == other.from && to == other.to && routed == other.routed &&
           travels == other.travels && isHalved == other.isHalved &&
           stretches == other.stretches;
  }
  bool isPermute() const { return kind == CollectiveKind::CollectivePermute; }
};

} // namespace

static std::optional<Move> moveOf(Operation *op, const Mesh &mesh) {
  auto price = op->getAttrOfType<CollectiveCostAttr>("cost");
  if (!price || price.getBytes() == 0)
    return std::nullopt;
  Move move{.kind = collectiveKind(op), .bytes = price.getBytes()};
  for (StringAttr name :
       op->getAttrOfType<ArrayAttr>("axes").getAsRange<StringAttr>())
    move.axes.push_back(*mesh.find(name.getValue()));
  move.travels = shd::travels(op);
  move.isHalved = move.travels && !halvedIndex(op).empty();
  if (isOfHalo(move.kind)) {
    move.stretches = stretchesOfPart(haloDealt(op));
    // Devices between others receive both ways; the bytes are those of one.
    if (mesh.groupSize(ArrayRef(move.axes)) > 2)
      move.bytes /= double(move.stretches);
  }
  if (move.kind == CollectiveKind::AllToAll)
    move.routed = movedShape(op->getOperand(0)).routed;
  if (move.isPermute() || move.routed) {
    auto layoutOf = [&](Value value) {
      return toLayout(mesh, getSharding(value.getType()));
    };
    move.from = layoutOf(op->getOperand(0));
    move.to = layoutOf(onlyResult(op));
  }
  return move;
}

/// The collectives of a plan; permutes, which take longest to price, last.
static std::vector<Move> movesOf(ProgramOp program, const Mesh &mesh) {
  std::vector<Move> moves, permutes;
  program->walk([&](Operation *op) {
    // The link to the host is the same in any binding.
    if (!isCollective(op) || isHostTransfer(collectiveKind(op)))
      return;
    std::optional<Move> move = moveOf(op, mesh);
    if (!move)
      return;
    std::vector<Move> &list = move->isPermute() ? permutes : moves;
    auto known = llvm::find_if(
        list, [&](const Move &other) { return other.isLike(*move); });
    if (known == list.end())
      known = list.insert(known, std::move(*move));
    known->count += executionCount(op);
  });
  llvm::append_range(moves, permutes);
  return moves;
}

static CollectiveCost exchangeCost(const CollectiveModel &model,
                                   const Move &move) {
  const AxisList *experts =
      move.routed ? routedAxes(*move.routed, move.from, move.to) : nullptr;
  return experts
             ? model.slotsCost(move.axes, move.bytes, *experts, *move.routed)
             : model.cost(move.kind, move.axes, move.bytes);
}

/// Seconds of all moves, or any number of at least `enough` if they take that
/// long.
static double priceMoves(const CollectiveModel &model, ArrayRef<Move> moves,
                         double enough) {
  double seconds = 0;
  for (const Move &move : moves) {
    if (seconds >= enough)
      break;
    // What travels around a ring is priced by the bytes of all steps.
    CollectiveCost cost =
        move.travels ? ringShiftCost(model, move.axes.front(), move.bytes,
                                     move.isHalved &&
                                         model.hasTwoWays(move.axes.front()))
        : isOfHalo(move.kind)
            ? haloCost(model, move.axes, move.bytes, move.stretches)
        : move.isPermute() ? permuteCost(model, move.from, move.to, move.bytes)
                           : exchangeCost(model, move);
    seconds += cost.seconds() * double(move.count);
  }
  return seconds;
}

/// The bindings under which the moves take least, the best first.
static std::vector<NamedBinding> rankBindings(const CollectiveModel &model,
                                              ArrayRef<Move> moves) {
  struct Candidate {
    double seconds;
    NamedBinding binding;
  };
  const Machine &machine = model.machine();
  const Mesh &mesh = model.mesh();
  double most = kWorthwhile * priceMoves(model, moves, HUGE_VAL);
  std::vector<Candidate> best;
  size_t limit = std::min(kMostBindings, kMostAxisSets >> mesh.size());
  size_t messages =
      mesh.numDevices() *
      llvm::count_if(moves, [](const Move &m) { return m.isPermute(); });
  if (messages > 0)
    limit = std::min(limit, kMostMessages / messages);
  for (NamedBinding &each : enumerateBindings(machine, mesh, limit)) {
    CollectiveModel other(machine, mesh, each.binding);
    double seconds = priceMoves(other, moves, most);
    if (seconds >= most)
      continue;
    // Behind those that are as good: the search's order decides.
    auto after = llvm::find_if(best, [&](const Candidate &candidate) {
      return candidate.seconds > seconds;
    });
    best.insert(after, {seconds, std::move(each)});
    if (best.size() < kMostTrials)
      continue;
    best.resize(kMostTrials);
    most = best.back().seconds;
  }
  std::vector<NamedBinding> bindings;
  for (Candidate &candidate : best)
    bindings.push_back(std::move(candidate.binding));
  return bindings;
}

/// The mesh of a program, bound as a program would ask for it.
static MeshAttr meshAttr(MLIRContext *context, const Mesh &mesh,
                         const NamedBinding &binding) {
  SmallVector<MeshAxisAttr> axes;
  for (AxisIndex axis : binding.order) {
    SmallVector<StringAttr> on;
    for (const std::string &name : binding.on[axis])
      on.push_back(StringAttr::get(context, name));
    axes.push_back(MeshAxisAttr::get(context, mesh.axes[axis].name,
                                     mesh.axes[axis].size, on,
                                     mesh.axes[axis].isStages));
  }
  return MeshAttr::get(context, axes);
}

/// The step's time of a plan under another binding; nothing if it does not fit
/// in memory there.
static std::optional<double> timeUnder(ModuleOp planned, const Mesh &mesh,
                                       const NamedBinding &binding,
                                       const PlanOptions &plan) {
  Compilation compilation(planned.clone(), Compilation::Stage::Planned, {plan});
  ProgramOp program = compilation.program();
  program.setMeshAttr(meshAttr(program.getContext(), mesh, binding));
  std::optional<Report> report = buildReport(compilation, {});
  return report && report->memory.fits ? std::optional(report->time.scheduled)
                                       : std::nullopt;
}

std::optional<Report::FasterBinding>
shardc::findFasterBinding(ModuleOp planned, Compilation &compilation,
                          const Report &report) {
  const CollectiveModel &model = compilation.planning()->model;
  const Mesh &mesh = model.mesh();
  std::vector<Move> moves = movesOf(compilation.program(), mesh);
  if (moves.empty())
    return std::nullopt;
  for (const NamedBinding &binding : rankBindings(model, moves)) {
    std::optional<double> seconds =
        timeUnder(planned, mesh, binding, compilation.options().plan);
    if (seconds && *seconds < kWorthwhile * report.time.scheduled)
      return Report::FasterBinding{toString(mesh, binding), *seconds};
  }
  return std::nullopt;
}
