//===- StepBuilder.cpp - A planned program for the scheduler --------------===//
//
// First the order of the step: what runs in which body, and where. Then what
// each part waits for: dependences are traced back to the groups and the
// collectives that make a value; operations that cost nothing hand them on.
//
//===----------------------------------------------------------------------===//

#include "StepBuilder.h"
#include "shardc/Dialect/Shd/IR/CollectiveMatmul.h"
#include "shardc/Dialect/Shd/IR/RingAttention.h"
#include "shardc/Dialect/Shd/IR/Segments.h"
#include "shardc/Optimizer/Names.h"
#include "shardc/Schedule/Prices.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

class StepBuilder {
public:
  explicit StepBuilder(const CollectiveModel &model) : model(model) {
    result.repeats.emplace_back();
    result.step.numNetworks = model.numNetworks();
    result.step.slowdown = slowdownOf(model.machine());
  }

  PlannedStep build(ProgramOp program);

private:
  /// Operations that are costed together, in program order.
  struct Part {
    Operation *priced = nullptr;
    SmallVector<Operation *, 4> ops;
  };

  /// The sources of a value: the nearest collectives, groups and repeats that
  /// make it, not those behind collectives.
  struct Sources {
    SmallVector<unsigned, 2> collectives, groups, repeats;
    SmallVector<BlockArgument, 1> carried;
    /// Parts of buffers that are updated only later.
    SmallVector<PartOp, 1> older;
  };

  /// Where an operand comes from, seen from one body.
  struct Place {
    Step::Origin origin = Step::Origin::Ready;
    unsigned item = 0;

    void include(Place other) {
      if (std::pair(rank(), item) < std::pair(other.rank(), other.item))
        *this = other;
    }
    int rank() const {
      return origin == Step::Origin::Ready     ? 0
             : origin == Step::Origin::Carried ? 1
                                               : 2;
    }
  };

  void findParts(ProgramOp program);
  void visit(Block &block, unsigned body);
  void addCollective(Operation *op, unsigned body);
  void trace(Value value, bool throughRepeats, Sources &sources,
             llvm::DenseSet<Value> &seen) const;
  Sources sourcesOf(ValueRange values, bool throughRepeats) const;
  Place placeIn(unsigned body, const Sources &sources) const;
  Place placeAround(unsigned body, Sources sources) const;
  std::optional<Place> placeOf(unsigned body, unsigned inner,
                               unsigned item) const;
  unsigned producerOfCarried(BlockArgument argument, unsigned body) const;
  unsigned producerOf(Value value, unsigned body) const;
  std::optional<unsigned> producerOfOlder(PartOp part, unsigned body) const;
  void connectCollective(unsigned index);
  void connectToCollectives(unsigned index);
  void findLate(unsigned group);
  void connectGroup(unsigned group);
  void addPairs(unsigned group);
  void addRing(unsigned group);

  const CollectiveModel &model;
  PlannedStep result;
  SmallVector<Part> parts;
  llvm::DenseMap<Operation *, unsigned> partOf;
  std::vector<unsigned> partOfGroup;
  /// By part, once its group has been added.
  std::vector<int> groupOfPart;
  llvm::DenseMap<Operation *, unsigned> collectiveIndex, bodyIndex;
  /// By group: collectives in the middle of it (statistics), which start after
  /// it; who reads its results waits for them.
  std::vector<SmallVector<unsigned, 1>> late;
};

//===----------------------------------------------------------------------===//
// The order of the step
//===----------------------------------------------------------------------===//

/// Prologues that every user computes have no price: they are no part.
void StepBuilder::findParts(ProgramOp program) {
  llvm::MapVector<Attribute, Part> grouped;
  program->walk<WalkOrder::PreOrder>([&](Operation *op) {
    Attribute group = op->getAttr(kGroup);
    bool isPriced = op->hasAttr(kGroupCost);
    if (!group && isPriced)
      parts.push_back({op, {op}});
    if (!group)
      return;
    Part &part = grouped[group];
    part.ops.push_back(op);
    if (isPriced)
      part.priced = op;
  });
  for (auto &[group, part] : grouped)
    if (part.priced)
      parts.push_back(std::move(part));
  for (auto [i, part] : llvm::enumerate(parts))
    for (Operation *op : part.ops)
      partOf[op] = i;
  groupOfPart.assign(parts.size(), -1);
}

void StepBuilder::addCollective(Operation *op, unsigned body) {
  CollectiveCost cost = collectivePrice(op, model);
  Step::Collective collective;
  collective.time = toPicoseconds(cost.seconds());
  collective.slowsKernels = !isHostTransfer(collectiveKind(op));
  collective.networks.assign(cost.occupies.begin(), cost.occupies.end());
  collective.body = body;
  collective.position = result.step.bodies[body].items.size();
  collectiveIndex[op] = result.step.collectives.size();
  // The operand stays on the device until then.
  if (isa<ToHostOp>(op))
    result.step.bodies[body].awaited.push_back(collectiveIndex[op]);
  result.step.collectives.push_back(std::move(collective));
  result.collectives.push_back(op);
}

void StepBuilder::visit(Block &block, unsigned body) {
  Step &step = result.step;
  for (Operation &op : block) {
    if (auto repeat = dyn_cast<RepeatOp>(op)) {
      unsigned inner = step.addRepeat(body, repeat.getCount());
      if (std::optional<Segments> segments = segmentsOf(repeat)) {
        step.bodies[inner].shortage = segments->shortage();
        step.bodies[inner].isFirstShort = segments->fromLast;
      }
      bodyIndex[&op] = inner;
      result.repeats.push_back(repeat);
      visit(repeat.getBody().front(), inner);
    } else if (isCollective(&op)) {
      addCollective(&op, body);
    } else if (auto it = partOf.find(&op);
               it != partOf.end() && parts[it->second].ops.back() == &op) {
      Operation *priced = parts[it->second].priced;
      GroupCost cost =
          groupPrice(priced->getAttrOfType<GroupCostAttr>(kGroupCost));
      groupOfPart[it->second] =
          step.addGroup(body, toPicoseconds(cost.seconds()));
      partOfGroup.push_back(it->second);
      result.groups.push_back(priced);
    }
  }
}

//===----------------------------------------------------------------------===//
// Dependences
//===----------------------------------------------------------------------===//

/// Results of repeats are what the last iteration yields; `throughRepeats`:
/// carried values are what they begin as and what iterations yield. A part of a
/// buffer is the value with which it was updated before.
void StepBuilder::trace(Value value, bool throughRepeats, Sources &sources,
                        llvm::DenseSet<Value> &seen) const {
  SmallVector<Value> stack = {value};
  while (!stack.empty()) {
    Value at = stack.pop_back_val();
    if (!seen.insert(at).second)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(at)) {
      if (argument.getArgNumber() == 0)
        continue;
      sources.carried.push_back(argument);
      if (!throughRepeats)
        continue;
      auto repeat = cast<RepeatOp>(argument.getOwner()->getParentOp());
      unsigned carried = argument.getArgNumber() - 1;
      stack.push_back(repeat.getInits()[carried]);
      stack.push_back(
          argument.getOwner()->getTerminator()->getOperand(carried));
      continue;
    }
    Operation *def = at.getDefiningOp();
    if (auto it = collectiveIndex.find(def); it != collectiveIndex.end()) {
      sources.collectives.push_back(it->second);
    } else if (auto it = partOf.find(def); it != partOf.end()) {
      sources.groups.push_back(groupOfPart[it->second]);
    } else if (auto repeat = dyn_cast<RepeatOp>(def)) {
      sources.repeats.push_back(bodyIndex.lookup(def));
      if (throughRepeats)
        stack.push_back(repeat.getBody().front().getTerminator()->getOperand(
            cast<OpResult>(at).getResultNumber()));
    } else if (auto part = dyn_cast<PartOp>(def)) {
      if (UpdateOp update = updateBefore(part)) {
        stack.push_back(update.getValue());
        if (auto repeat = dyn_cast<RepeatOp>(update->getParentOp()))
          sources.repeats.push_back(bodyIndex.lookup(repeat));
      } else if (declarationOf(part) && declarationOf(part).isBuffer()) {
        sources.older.push_back(part);
      }
    } else {
      stack.append(def->operand_begin(), def->operand_end());
    }
  }
}

StepBuilder::Sources StepBuilder::sourcesOf(ValueRange values,
                                            bool throughRepeats) const {
  Sources sources;
  llvm::DenseSet<Value> seen;
  for (Value value : values)
    trace(value, throughRepeats, sources, seen);
  return sources;
}

/// An item of `inner` as one of `body`; nothing if `inner` is not within it:
/// then it has run before.
std::optional<StepBuilder::Place>
StepBuilder::placeOf(unsigned body, unsigned inner, unsigned item) const {
  for (; inner != body; inner = result.step.bodies[inner].parent) {
    if (inner == 0)
      return std::nullopt;
    item = result.step.bodies[inner].itemInParent;
  }
  return Place{Step::Origin::Produced, item};
}

/// The item of `body` at whose end its next iteration may read `argument`.
unsigned StepBuilder::producerOfCarried(BlockArgument argument,
                                        unsigned body) const {
  return producerOf(argument.getOwner()->getTerminator()->getOperand(
                        argument.getArgNumber() - 1),
                    body);
}

/// The item of `body` that makes a value, or its last one.
unsigned StepBuilder::producerOf(Value value, unsigned body) const {
  Place place;
  Sources sources = sourcesOf(rootValue(value), /*throughRepeats=*/false);
  for (unsigned group : sources.groups) {
    const Step::Group &made = result.step.groups[group];
    place.include(placeOf(body, made.body, made.item).value_or(Place()));
  }
  for (unsigned repeat : sources.repeats) {
    const Step::Body &made = result.step.bodies[repeat];
    place.include(
        placeOf(body, made.parent, made.itemInParent).value_or(Place()));
  }
  unsigned items = result.step.bodies[body].items.size();
  return place.origin == Step::Origin::Produced ? place.item
                                                : std::max(items, 1u) - 1;
}

/// True if each iteration of the repeat has a part of its own.
static bool isOwn(PartOp part, UpdateOp update, RepeatOp repeat) {
  Value number = repeat.getIteration();
  bool isNamed = llvm::is_contained(update.getAt(), number);
  for (; part; part = part.getSource().getDefiningOp<PartOp>())
    if (llvm::is_contained(part.getAt(), number))
      return isNamed;
  return false;
}

/// The item of `body` at whose end its next iteration may read a part that is
/// updated later; nothing if it is no iteration of `body` that hands it on.
std::optional<unsigned> StepBuilder::producerOfOlder(PartOp part,
                                                     unsigned body) const {
  RepeatOp repeat = result.repeats[body];
  UpdateOp update = updateOf(declarationOf(part));
  if (!repeat || !update || !repeat->isAncestor(update) ||
      isOwn(part, update, repeat))
    return std::nullopt;
  Operation *at = repeat.getBody().front().findAncestorOpInBlock(*update);
  if (auto inner = dyn_cast<RepeatOp>(at))
    return result.step.bodies[bodyIndex.lookup(inner)].itemInParent;
  return producerOf(update.getValue(), body);
}

StepBuilder::Place StepBuilder::placeIn(unsigned body,
                                        const Sources &sources) const {
  const Step &step = result.step;
  Place place;
  for (unsigned group : sources.groups)
    place.include(
        placeOf(body, step.groups[group].body, step.groups[group].item)
            .value_or(Place()));
  for (unsigned repeat : sources.repeats)
    place.include(placeOf(body, step.bodies[repeat].parent,
                          step.bodies[repeat].itemInParent)
                      .value_or(Place()));
  for (unsigned index : sources.collectives) {
    const Step::Collective &earlier = step.collectives[index];
    if (earlier.body == body)
      place.include({earlier.origin, earlier.producer});
    else if (placeOf(body, earlier.body, 0))
      place.include(*placeOf(body, earlier.body, 0));
  }
  for (BlockArgument argument : sources.carried) {
    Operation *repeat = argument.getOwner()->getParentOp();
    if (bodyIndex.lookup(repeat) == body)
      place.include({Step::Origin::Carried, producerOfCarried(argument, body)});
  }
  for (PartOp part : sources.older)
    if (std::optional<unsigned> item = producerOfOlder(part, body))
      place.include({Step::Origin::Carried, *item});
  return place;
}

/// The same for a body around that of the collective: those in between that
/// make its operand may move out of their repeats like itself.
StepBuilder::Place StepBuilder::placeAround(unsigned body,
                                            Sources sources) const {
  Place moved;
  llvm::erase_if(sources.collectives, [&](unsigned index) {
    const Step::Collective &earlier = result.step.collectives[index];
    unsigned level = 0, at = earlier.body;
    for (; at != body && at != 0; at = result.step.bodies[at].parent)
      ++level;
    if (at != body || level == 0)
      return false;
    if (level <= earlier.around.size()) {
      const auto &source = earlier.around[level - 1];
      moved.include({source.origin, source.producer});
    }
    return true;
  });
  Place place = placeIn(body, sources);
  place.include(moved);
  return place;
}

void StepBuilder::connectCollective(unsigned index) {
  Step::Collective &collective = result.step.collectives[index];
  ValueRange operand = result.collectives[index]->getOperands().take_front(1);
  Sources sources = sourcesOf(operand, /*throughRepeats=*/false);
  Place place = placeIn(collective.body, sources);
  collective.origin = place.origin;
  collective.producer = place.item;
  for (unsigned body = collective.body;
       place.origin == Step::Origin::Ready && body != 0;) {
    body = result.step.bodies[body].parent;
    place = placeAround(body, sources);
    collective.around.push_back({place.origin, place.item});
  }
}

/// Once it is known which collectives are late.
void StepBuilder::connectToCollectives(unsigned index) {
  Step::Collective &collective = result.step.collectives[index];
  ValueRange operand = result.collectives[index]->getOperands().take_front(1);
  collective.afterHere.append(
      sourcesOf(operand, /*throughRepeats=*/false).collectives);
  Sources sources = sourcesOf(operand, /*throughRepeats=*/true);
  collective.after.append(sources.collectives);
  for (unsigned maker : sources.groups)
    for (unsigned earlier : late[maker])
      if (earlier < index && !llvm::is_contained(collective.after, earlier))
        collective.after.push_back(earlier);
}

void StepBuilder::findLate(unsigned index) {
  const Step::Group &group = result.step.groups[index];
  for (Operation *op : parts[partOfGroup[index]].ops)
    for (unsigned feeder :
         sourcesOf(op->getOperands(), /*throughRepeats=*/false).collectives) {
      const Step::Collective &collective = result.step.collectives[feeder];
      if (collective.body == group.body &&
          collective.origin == Step::Origin::Produced &&
          collective.producer >= group.item)
        late[index].push_back(feeder);
    }
}

void StepBuilder::connectGroup(unsigned index) {
  Step::Group &group = result.step.groups[index];
  llvm::SmallDenseSet<unsigned, 8> waits;
  auto wait = [&](unsigned collective) {
    if (!llvm::is_contained(late[index], collective) &&
        waits.insert(collective).second)
      group.waits.push_back(collective);
  };
  for (Operation *op : parts[partOfGroup[index]].ops) {
    Sources sources = sourcesOf(op->getOperands(), /*throughRepeats=*/true);
    llvm::for_each(sources.collectives, wait);
    for (unsigned maker : sources.groups)
      if (maker != index)
        llvm::for_each(late[maker], wait);
  }
}

//===----------------------------------------------------------------------===//
// Collective matmul
//===----------------------------------------------------------------------===//

/// Prices as collective matmuls exactly the pairs that can run around a ring.
void StepBuilder::addPairs(unsigned index) {
  const Part &part = parts[partOfGroup[index]];
  const auto *found = llvm::find_if(part.ops, mayBecomeRing);
  if (found == part.ops.end())
    return;
  auto matmul = cast<ShardingRuleOpInterface>(*found);
  auto add = [&](Operation *collective, bool feeds) {
    unsigned number = collectiveIndex.lookup(collective);
    if (result.step.collectives[number].time == 0)
      return;
    std::optional<CollectiveMatmul> ring =
        matchCollectiveMatmul(model.mesh(), matmul, movementOf(collective));
    if (!ring)
      return;
    int64_t devices = model.mesh().groupSize(ArrayRef(ring->axes));
    result.step.pairs.push_back({index, number, feeds, devices});
    result.matmuls.push_back(matmul);
  };
  for (Value operand : matmul->getOperands())
    if (auto gather = operand.getDefiningOp<AllGatherOp>())
      add(gather, /*feeds=*/true);
  for (Operation *op : part.ops)
    for (Operation *user : op->getUsers())
      if (isa<ReduceScatterOp>(user))
        add(user, /*feeds=*/false);
}

/// Attention that the plan runs around a ring.
void StepBuilder::addRing(unsigned index) {
  const Mesh &mesh = model.mesh();
  for (Operation *op : parts[partOfGroup[index]].ops) {
    std::optional<AxisIndex> axis = ringAxis(mesh, op);
    if (!axis)
      continue;
    Step::Ring ring{index, {}, mesh.axes[*axis].size};
    for (Operation *collective : ringCollectives(op))
      ring.collectives.push_back(collectiveIndex.lookup(collective));
    result.step.rings.push_back(std::move(ring));
    result.rings.push_back(op);
  }
}

PlannedStep StepBuilder::build(ProgramOp program) {
  findParts(program);
  visit(program.getBody().front(), 0);
  for (unsigned i = 0; i < result.collectives.size(); ++i)
    connectCollective(i);
  late.resize(result.groups.size());
  for (unsigned i = 0; i < result.groups.size(); ++i)
    findLate(i);
  for (unsigned i = 0; i < result.collectives.size(); ++i)
    connectToCollectives(i);
  for (unsigned i = 0; i < result.groups.size(); ++i) {
    connectGroup(i);
    addRing(i);
    if (model.machine().collectiveMatmul)
      addPairs(i);
  }
  return std::move(result);
}

} // namespace

PlannedStep shardc::buildStep(ProgramOp program, const CollectiveModel &model) {
  return StepBuilder(model).build(program);
}
