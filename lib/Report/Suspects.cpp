//===- Suspects.cpp - What a plan seems to do in vain ---------------------===//

#include "shardc/Report/Suspects.h"
#include "Collect.h"
#include "Names.h"
#include "shardc/Dialect/Shd/IR/CalibratedPrices.h"
#include "shardc/Dialect/Shd/IR/Experts.h"
#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Dialect/Shd/IR/RingAttention.h"
#include "shardc/Optimizer/Graph.h"
#include "shardc/Optimizer/Names.h"
#include "shardc/Report/Seconds.h"
#include "shardc/Report/Units.h"
#include "shardc/Schedule/Prices.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

llvm::StringRef shardc::stringify(Suspect::Kind kind) {
  switch (kind) {
  case Suspect::Kind::GatheredThenSliced:
    return "gathered-then-sliced";
  case Suspect::Kind::ReducedThenSliced:
    return "reduced-then-sliced";
  case Suspect::Kind::GatheredTwice:
    return "gathered-twice";
  case Suspect::Kind::IdleAxis:
    return "idle-axis";
  case Suspect::Kind::ReplicatedWork:
    return "replicated-work";
  case Suspect::Kind::LatencyBound:
    return "latency-bound";
  case Suspect::Kind::Padding:
    return "padding";
  }
  llvm_unreachable("a kind of suspect");
}

namespace {

class SuspectFinder {
public:
  SuspectFinder(ProgramOp program, PlanningContext &context,
                const Report &report, double least)
      : program(program), context(context), mesh(context.mesh()),
        report(report), least(toPicoseconds(least * report.time.scheduled)) {}

  std::vector<Suspect> find();

private:
  void findIdleAxes();
  void findVainMove(Operation *op);
  void findRepeatedGathers(ArrayRef<Operation *> gathers);
  void findLatencyBound(Block &block);
  void findReplicatedWork(Operation *first, ArrayRef<Operation *> part);
  void findPadding();

  Picoseconds timeOf(Operation *collective) const;
  Picoseconds timeOfPart(Operation *first) const;
  Picoseconds reshardTime(Value value, const Layout &to, int64_t count) const;
  Picoseconds scheduledWith(ArrayRef<Operation *> moves, Operation *carrier,
                            const CollectiveCost &cost) const;
  std::string operandOf(Operation *collective) const;
  std::string written(Operation *collective, Value value) const;
  std::string axesText(AxisSet axes) const;
  AxisSet usedBy(ArrayRef<Operation *> ops) const;
  void addStoredPin(Suspect &suspect, Value value, const Layout &layout) const;
  void addSplits(Suspect &suspect, Operation *leader,
                 ArrayRef<Operation *> part, AxisSet unused) const;
  bool isLegal(Type type, const Layout &layout) const {
    return context.allowPadding || divides(mesh, tensorShape(type), layout);
  }
  void add(Suspect suspect) {
    if (suspect.cost >= std::max<Picoseconds>(least, 1))
      suspects.push_back(std::move(suspect));
  }

  ProgramOp program;
  PlanningContext &context;
  const Mesh &mesh;
  const Report &report;
  const Picoseconds least;
  AxisSet idle = 0;
  std::vector<Suspect> suspects;
};

} // namespace

//===----------------------------------------------------------------------===//
// Times and names
//===----------------------------------------------------------------------===//

Picoseconds SuspectFinder::timeOf(Operation *collective) const {
  return saturatingMultiply(
      toPicoseconds(collectivePrice(collective, context.model).seconds()),
      executionCount(collective));
}

Picoseconds SuspectFinder::timeOfPart(Operation *first) const {
  auto price = first->getAttrOfType<GroupCostAttr>(kGroupCost);
  return saturatingMultiply(toPicoseconds(groupPrice(price).seconds()),
                            executionCount(first));
}

/// The cheapest collectives that turn the value into another layout.
Picoseconds SuspectFinder::reshardTime(Value value, const Layout &to,
                                       int64_t count) const {
  const ReshardPlan *plan = context.planner.plan(
      movedShape(value), explicitLayout(mesh, value.getType()), to);
  return plan ? saturatingMultiply(plan->picoseconds, count) : 0;
}

std::string SuspectFinder::operandOf(Operation *collective) const {
  auto name = collective->getAttrOfType<StringAttr>(kOperand);
  return name ? name.str() : valueName(collectiveInput(collective));
}

std::string SuspectFinder::written(Operation *collective, Value value) const {
  return notation(mesh, explicitLayout(mesh, value.getType()),
                  collectiveIndices(collective));
}

std::string SuspectFinder::axesText(AxisSet axes) const {
  std::vector<std::string> names;
  for (AxisIndex axis = 0; axis < mesh.size(); ++axis)
    if (axes & axisBit(axis))
      names.push_back(mesh.axes[axis].name);
  return joinWords(names);
}

/// Axes on which the operations' tensors are split or are partial sums.
AxisSet SuspectFinder::usedBy(ArrayRef<Operation *> ops) const {
  AxisSet used = 0;
  auto include = [&](Value value) {
    if (isa<RankedTensorType>(value.getType()))
      used |= explicitLayout(mesh, value.getType()).used();
  };
  for (Operation *op : ops) {
    llvm::for_each(op->getOperands(), include);
    llvm::for_each(op->getResults(), include);
  }
  return used;
}

/// The layout, for what made the value behind its collectives.
void SuspectFinder::addStoredPin(Suspect &suspect, Value value,
                                 const Layout &layout) const {
  Operation *maker = rootValue(value).getDefiningOp();
  if (maker && isNamedTensor(maker))
    suspect.pins.push_back({{maker, std::nullopt, layout}});
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// A gather or an all_reduce of which every reader takes a slice only.
void SuspectFinder::findVainMove(Operation *op) {
  auto reduce = dyn_cast<AllReduceOp>(op);
  if (!isa<AllGatherOp>(op) && !reduce)
    return;
  Value from = collectiveInput(op), whole = onlyResult(op);
  if (whole.use_empty() ||
      !llvm::all_of(whole.getUsers(), llvm::IsaPred<AllSliceOp>))
    return;
  Suspect suspect;
  suspect.kind = reduce ? Suspect::Kind::ReducedThenSliced
                        : Suspect::Kind::GatheredThenSliced;
  suspect.cost = suspect.saves = timeOf(op);
  suspect.loc = locationText(op->getLoc());
  Layout made = explicitLayout(mesh, from.getType());
  if (made.partial == 0)
    addStoredPin(suspect, from, made);
  std::vector<std::string> taken;
  std::vector<Operation *> slices(whole.getUsers().begin(),
                                  whole.getUsers().end());
  // Uses are listed last first.
  for (Operation *slice : llvm::reverse(slices)) {
    Value part = onlyResult(slice);
    Layout layout = explicitLayout(mesh, part.getType());
    std::string text = written(slice, part);
    if (llvm::is_contained(taken, text))
      continue;
    taken.push_back(text);
    suspect.saves -= reshardTime(from, layout, executionCount(slice));
    if (layout != made)
      addStoredPin(suspect, from, layout);
  }
  suspect.text = stringify(collectiveKind(op)).str() + " of '" + operandOf(op) +
                 "' over " + llvm::join(collectiveAxes(op), ",") + " makes " +
                 written(op, whole) + ", of which only " + joinWords(taken) +
                 " is read";
  add(std::move(suspect));
}

/// The same gathers of one value, which one could make for all.
void SuspectFinder::findRepeatedGathers(ArrayRef<Operation *> gathers) {
  std::vector<std::vector<Operation *>> alike;
  for (Operation *op : gathers) {
    auto known = llvm::find_if(alike, [&](const auto &list) {
      return collectiveInput(list.front()) == collectiveInput(op) &&
             onlyResult(list.front()).getType() == onlyResult(op).getType() &&
             list.front()->getBlock() == op->getBlock();
    });
    if (known == alike.end())
      alike.push_back({op});
    else
      known->push_back(op);
  }
  for (const std::vector<Operation *> &list : alike) {
    if (list.size() < 2)
      continue;
    Operation *first = list.front();
    Value whole = onlyResult(first);
    Layout layout = explicitLayout(mesh, whole.getType());
    Suspect suspect;
    suspect.kind = Suspect::Kind::GatheredTwice;
    suspect.loc = locationText(list[1]->getLoc());
    Suspect::Copy copy{rootValue(whole).getDefiningOp(), layout, {}};
    for (Operation *op : list) {
      suspect.cost = saturatingAdd(suspect.cost, timeOf(op));
      for (OpOperand &use : onlyResult(op).getUses())
        copy.readers.push_back(&use);
    }
    suspect.saves = suspect.cost - timeOf(first);
    suspect.text = "'" + operandOf(first) + "' is gathered over " +
                   llvm::join(collectiveAxes(first), ",") + " " +
                   std::to_string(list.size()) + " times, from " +
                   written(first, collectiveInput(first)) + " to " +
                   written(first, whole);
    // Declared tensors arrive as the program says.
    if (isa_and_nonnull<DeclareOp, PartOp>(copy.of)) {
      if (llvm::none_of(copy.readers, [](OpOperand *use) {
            return isCollective(use->getOwner());
          }))
        suspect.copy = std::move(copy);
    } else {
      addStoredPin(suspect, whole, layout);
    }
    add(std::move(suspect));
  }
}

namespace {
/// Collectives that may run together: when the first of them does, if all
/// operands are there, or else with the last, if no result is read before.
struct Bundle {
  SmallVector<Operation *, 4> moves;
  double bytes = 0;
  bool withFirst = true, withLast = true;

  bool add(Operation *op, double more);
  /// The one that moves what all of them do.
  Operation *carrier() const {
    return withFirst ? moves.front() : moves.back();
  }
};
} // namespace

/// True if one collective can do the work of two.
static bool areAlike(Operation *a, Operation *b) {
  auto key = [](Operation *op) {
    auto reduce = dyn_cast<AllReduceOp>(op);
    return std::tuple(collectiveKind(op), collectiveAxes(op),
                      typeName(getElementTypeOrSelf(onlyResult(op))),
                      reduce ? int(reduce.getCombination()) : -1);
  };
  return key(a) == key(b);
}

bool Bundle::add(Operation *op, double more) {
  bool first = withFirst, last = withLast;
  if (!moves.empty()) {
    if (!areAlike(moves.front(), op))
      return false;
    Operation *maker = collectiveInput(op).getDefiningOp();
    first &= !maker || maker->getBlock() != op->getBlock() ||
             maker->isBeforeInBlock(moves.front());
    last &= llvm::none_of(moves, [&](Operation *move) {
      return llvm::any_of(move->getUsers(), [&](Operation *user) {
        Operation *at = op->getBlock()->findAncestorOpInBlock(*user);
        return at && (at == op || at->isBeforeInBlock(op));
      });
    });
    if (!first && !last)
      return false;
  }
  moves.push_back(op);
  bytes += more;
  withFirst = first;
  withLast = last;
  return true;
}

/// The step's time, as scheduled, if one of the collectives moved what all of
/// them do for `cost`, and the others were free.
Picoseconds SuspectFinder::scheduledWith(ArrayRef<Operation *> moves,
                                         Operation *carrier,
                                         const CollectiveCost &cost) const {
  std::vector<CollectiveCostAttr> before;
  for (Operation *op : moves) {
    auto price = op->getAttrOfType<CollectiveCostAttr>("cost");
    before.push_back(price);
    CollectiveCost now = op == carrier ? cost : CollectiveCost();
    op->setAttr("cost", CollectiveCostAttr::get(
                            op->getContext(), now.bytes, now.wireBytes,
                            now.bandwidthSeconds, now.latencySeconds,
                            price.getNetworks(), price.getBoundBy(),
                            calibratedAttr(op->getContext(), now)));
  }
  ScheduledProgram scheduled =
      scheduleProgram(program, context.model, report.memory.limit);
  for (auto [op, price] : llvm::zip_equal(moves, before))
    op->setAttr("cost", price);
  return scheduled.schedule.scheduled;
}

void SuspectFinder::findLatencyBound(Block &block) {
  std::vector<Bundle> bundles;
  for (Operation &op : block) {
    if (!isCollective(&op) || isa<CollectivePermuteOp, AllSliceOp>(op) ||
        isOfHalo(collectiveKind(&op)) || isHostTransfer(collectiveKind(&op)) ||
        travels(&op))
      continue;
    CollectiveCost cost = collectivePrice(&op, context.model);
    if (!cost.latencyBound())
      continue;
    if (llvm::none_of(bundles, [&](Bundle &bundle) {
          return bundle.add(&op, cost.bytes);
        }))
      bundles.emplace_back().add(&op, cost.bytes);
  }
  for (const Bundle &bundle : bundles) {
    if (bundle.moves.size() < 2)
      continue;
    Operation *first = bundle.moves.front();
    AxisList axes;
    for (const std::string &name : collectiveAxes(first))
      axes.push_back(*mesh.find(name));
    CollectiveCost merged =
        context.model.cost(collectiveKind(first), axes, bundle.bytes);
    Suspect suspect;
    suspect.kind = Suspect::Kind::LatencyBound;
    suspect.loc = locationText(first->getLoc());
    std::vector<std::string> names;
    for (Operation *op : bundle.moves) {
      suspect.cost = saturatingAdd(suspect.cost, timeOf(op));
      names.push_back("'" + operandOf(op) + "'");
    }
    suspect.saves =
        suspect.cost - saturatingMultiply(toPicoseconds(merged.seconds()),
                                          executionCount(first));
    if (suspect.cost < least || suspect.saves <= 0)
      continue;
    suspect.scheduledSaves =
        toPicoseconds(report.time.scheduled) -
        scheduledWith(bundle.moves, bundle.carrier(), merged);
    suspect.text = stringify(collectiveKind(first)).str() + " of " +
                   joinWords(names) + " over " +
                   llvm::join(collectiveAxes(first), ",") +
                   ", each bound by latency, could be one";
    add(std::move(suspect));
  }
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

void SuspectFinder::findIdleAxes() {
  std::vector<Operation *> all;
  program->walk([&](Operation *op) {
    if (op != program)
      all.push_back(op);
  });
  AxisSet used = usedBy(all);
  for (AxisIndex axis = 0; axis < mesh.size(); ++axis) {
    if (mesh.axes[axis].size == 1 || mesh.axes[axis].isStages ||
        (used & axisBit(axis)))
      continue;
    idle |= axisBit(axis);
    Suspect suspect;
    suspect.kind = Suspect::Kind::IdleAxis;
    suspect.name = mesh.axes[axis].name;
    suspect.text = "axis " + suspect.name + "=" +
                   std::to_string(mesh.axes[axis].size) +
                   " does nothing: no tensor is split over it";
    suspect.loc = locationText(program->getLoc());
    suspects.push_back(std::move(suspect));
  }
}

/// The shardings that split the work over one of the unused axes: along an
/// index of the result, or along one that is summed over.
void SuspectFinder::addSplits(Suspect &suspect, Operation *leader,
                              ArrayRef<Operation *> part,
                              AxisSet unused) const {
  auto named = llvm::find_if(llvm::reverse(part), isNamedTensor);
  auto ruled = dyn_cast<ShardingRuleOpInterface>(leader);
  for (AxisIndex axis = 0; axis < mesh.size(); ++axis) {
    if (!(unused & axisBit(axis)))
      continue;
    auto split = [&](Value value, unsigned dim) {
      Layout layout = explicitLayout(mesh, value.getType());
      layout.partial = 0;
      layout.dims[dim].push_back(axis);
      return layout;
    };
    if (named != llvm::reverse(part).end()) {
      Value result = (*named)->getResult(0);
      unsigned rank = cast<RankedTensorType>(result.getType()).getRank();
      for (unsigned dim = 0; dim < rank; ++dim)
        if (Layout layout = split(result, dim);
            isLegal(result.getType(), layout))
          suspect.pins.push_back({{*named, std::nullopt, layout}});
    }
    if (!ruled)
      continue;
    IndexingAttr indexing = ruled.getIndexing();
    llvm::MapVector<StringRef, std::vector<Suspect::Pin>> summed;
    for (unsigned i = 0; i < indexing.getOperands().size(); ++i)
      for (auto [dim, name] : llvm::enumerate(indexing.getOperandIndices(i))) {
        Value operand = leader->getOperand(i);
        if (llvm::is_contained(indexing.getResultIndices(0), name) ||
            !hasLayout(operand))
          continue;
        if (Layout layout = split(operand, dim);
            isLegal(operand.getType(), layout))
          summed[name].push_back({leader, i, layout});
      }
    for (auto &[name, pins] : summed)
      suspect.pins.push_back(std::move(pins));
  }
}

void SuspectFinder::findReplicatedWork(Operation *first,
                                       ArrayRef<Operation *> part) {
  AxisSet used = usedBy(part) | idle, unused = 0;
  for (AxisIndex axis = 0; axis < mesh.size(); ++axis)
    // Stages have different layers.
    if (mesh.axes[axis].size > 1 && !mesh.axes[axis].isStages &&
        !(used & axisBit(axis)))
      unused |= axisBit(axis);
  if (unused == 0)
    return;
  int64_t times = mesh.groupSize(unused);
  Operation *leader = leaderOf(part);
  Suspect suspect;
  suspect.kind = Suspect::Kind::ReplicatedWork;
  suspect.cost = timeOfPart(first);
  suspect.saves = suspect.cost - suspect.cost / times;
  suspect.loc = locationText(leader->getLoc());
  suspect.text = functionName(leader).str() + " '" + nameOf(leader) +
                 "' is computed " + std::to_string(times) +
                 " times: all devices along " + axesText(unused) +
                 " do the same";
  if (suspect.saves < least)
    return;
  addSplits(suspect, leader, part, unused);
  add(std::move(suspect));
}

/// Indices that are rounded up, each with the time of the operations that
/// compute on what is not there.
void SuspectFinder::findPadding() {
  struct Index {
    int64_t extent = 0, padded = 0;
    Picoseconds wasted = 0, most = 0;
    Operation *worst = nullptr;
  };
  llvm::MapVector<StringRef, Index> indices;
  program->walk<WalkOrder::PreOrder>([&](Operation *op) {
    auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
    auto price = op->getAttrOfType<GroupCostAttr>(kGroupCost);
    if (!ruled || !price)
      return;
    IndexingAttr indexing = ruled.getIndexing();
    llvm::MapVector<StringRef, std::pair<int64_t, int64_t>> of;
    auto include = [&](Value value, ArrayRef<StringRef> names) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (!type)
        return;
      for (auto [name, extent, axes] :
           llvm::zip(names, type.getShape(), explicitLayout(mesh, type).dims)) {
        int64_t padded =
            localExtent(mesh, extent, axes) * mesh.groupSize(ArrayRef(axes));
        if (padded > of[name].second)
          of[name] = {extent, padded};
      }
    };
    for (unsigned i = 0; i < indexing.getOperands().size(); ++i)
      include(op->getOperand(i), indexing.getOperandIndices(i));
    for (OpResult result : op->getResults())
      include(result, indexing.getResultIndices(result.getResultNumber()));
    for (auto &[name, extents] : of) {
      auto [extent, padded] = extents;
      if (padded <= extent)
        continue;
      Index &index = indices[name];
      auto wasted = Picoseconds(double(timeOfPart(op)) *
                                double(padded - extent) / double(padded));
      index.extent = extent;
      index.padded = std::max(index.padded, padded);
      index.wasted = saturatingAdd(index.wasted, wasted);
      if (!index.worst || wasted > index.most)
        index.worst = op, index.most = wasted;
    }
  });
  for (auto &[name, index] : indices) {
    Suspect suspect;
    suspect.kind = Suspect::Kind::Padding;
    suspect.name = name.str();
    suspect.padded = index.padded;
    suspect.cost = suspect.saves = index.wasted;
    suspect.loc = locationText(index.worst->getLoc());
    suspect.text = "index " + suspect.name + " of " +
                   formatDigits(index.extent) + " is padded to " +
                   formatDigits(index.padded) + ", most in '" +
                   nameOf(index.worst) + "'";
    add(std::move(suspect));
  }
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

std::vector<Suspect> SuspectFinder::find() {
  findIdleAxes();
  llvm::MapVector<Attribute, SmallVector<Operation *, 4>> parts;
  std::vector<Operation *> gathers;
  program->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (Attribute group = op->getAttr(kGroup))
      parts[group].push_back(op);
    if (isa<AllGatherOp>(op) && !travels(op))
      gathers.push_back(op);
  });
  program->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op->hasAttr(kGroupCost)) {
      Attribute group = op->getAttr(kGroup);
      findReplicatedWork(op, group ? ArrayRef<Operation *>(parts[group])
                                   : ArrayRef<Operation *>(op));
    } else if (isCollective(op)) {
      findVainMove(op);
    }
  });
  findRepeatedGathers(gathers);
  findLatencyBound(program.getBody().front());
  program->walk<WalkOrder::PreOrder>(
      [&](RepeatOp repeat) { findLatencyBound(repeat.getBody().front()); });
  if (context.allowPadding)
    findPadding();
  return std::move(suspects);
}

std::vector<Suspect> shardc::findSuspects(ProgramOp program,
                                          PlanningContext &context,
                                          const Report &report, double least) {
  return SuspectFinder(program, context, report, least).find();
}

std::vector<Report::Note> shardc::findNotes(ProgramOp program,
                                            PlanningContext &context,
                                            const Report &report) {
  constexpr double kWorthANote = 0.01;
  auto isSearched = [](Suspect::Kind kind) {
    return kind != Suspect::Kind::LatencyBound &&
           kind != Suspect::Kind::Padding && kind != Suspect::Kind::IdleAxis;
  };
  std::vector<Report::Note> notes;
  for (const Suspect &suspect :
       findSuspects(program, context, report, kWorthANote)) {
    if (report.plan.status == "optimal" && isSearched(suspect.kind))
      continue;
    Picoseconds saves = suspect.scheduledSaves.value_or(suspect.saves);
    bool isFree = suspect.kind == Suspect::Kind::IdleAxis;
    if (!isFree && toSeconds(saves) < kWorthANote * report.time.scheduled)
      continue;
    notes.push_back({stringify(suspect.kind).str(), suspect.text, suspect.loc,
                     suspect.cost, saves});
  }
  return notes;
}
