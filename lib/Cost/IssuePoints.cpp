//===- IssuePoints.cpp - Where collectives are issued ---------------------===//
//
// The places of the compute stream at which each collective is issued, which
// depend on the program and on memory but not on times
// (docs/CostModel.md#the-schedule). What a repeat needs before its first
// iteration, the body around it issues, in the way in which it issues its own.
//
//===----------------------------------------------------------------------===//

#include "shardc/Cost/Schedule.h"
#include "llvm/ADT/STLExtras.h"
#include <map>
#include <tuple>

using namespace llvm;
using namespace shardc;

/// The item of `outer` in which the item of `body` lies; nothing if `body` is
/// not in it.
static std::optional<unsigned> itemWithin(const Step &step, unsigned outer,
                                          unsigned body, unsigned item) {
  while (body != outer) {
    if (body == 0)
      return std::nullopt;
    item = step.bodies[body].itemInParent;
    body = step.bodies[body].parent;
  }
  return item;
}

std::vector<UseRange> shardc::useRanges(const Step &step) {
  std::vector<std::optional<UseRange>> ranges(step.collectives.size());
  auto add = [&](unsigned collective, unsigned body, unsigned first,
                 unsigned last) {
    unsigned home = step.collectives[collective].body;
    std::optional<unsigned> from = itemWithin(step, home, body, first);
    std::optional<unsigned> to = itemWithin(step, home, body, last);
    if (!from)
      return;
    std::optional<UseRange> &range = ranges[collective];
    if (!range)
      range = {*from, *to};
    range->first = std::min(range->first, *from);
    range->last = std::max(range->last, *to);
  };
  for (const Step::Group &group : step.groups)
    for (unsigned collective : group.waits)
      add(collective, group.body, group.item, group.item);
  // A collective that moves a result on uses it where its own result is used.
  std::vector<UseRange> result(step.collectives.size());
  for (unsigned i = step.collectives.size(); i-- > 0;) {
    const Step::Collective &collective = step.collectives[i];
    unsigned items = step.bodies[collective.body].items.size();
    unsigned here = std::min(collective.position, items > 0 ? items - 1 : 0);
    result[i] = ranges[i].value_or(UseRange{here, here});
    for (unsigned earlier : collective.after)
      if (earlier < i)
        add(earlier, collective.body, result[i].first, result[i].last);
  }
  return result;
}

namespace {

class Issuer {
public:
  Issuer(const Step &step, ArrayRef<Overlap> overlap)
      : step(step), overlap(overlap), uses(useRanges(step)) {}

  std::vector<IssuePoint> place();

private:
  void placeCollective(unsigned index);
  void removeRings();
  bool waitsHere(const IssuePoint &point) const;
  void delay(IssuePoint &point, ArrayRef<unsigned> others) const;
  void delayAll();
  /// `level`: how many bodies lie between `body` and the collective's own.
  void placeReady(unsigned index, unsigned body, UseRange use, Overlap how,
                  unsigned level);
  void placeCarried(unsigned index, unsigned body, unsigned producer,
                    unsigned lastUse);
  /// A body may have no items at all.
  unsigned slotAfter(unsigned body, unsigned item) const {
    return std::min<unsigned>(item + 1, step.bodies[body].items.size());
  }
  /// Before the repeat `body`, in the body around it.
  void placeEntry(unsigned index, unsigned body, Overlap how, unsigned level);

  const Step &step;
  ArrayRef<Overlap> overlap;
  std::vector<UseRange> uses;
  std::vector<IssuePoint> points;
  /// Where those are issued that compute does not wait for: by collective, body
  /// and whether it is for the next iteration.
  std::map<std::tuple<unsigned, unsigned, bool>, IssuePoint> placed;
};

void Issuer::placeEntry(unsigned index, unsigned body, Overlap how,
                        unsigned level) {
  const Step::Body &repeat = step.bodies[body];
  unsigned item = repeat.itemInParent;
  const Step::Collective &collective = step.collectives[index];
  Step::Collective::Source source;
  if (level < collective.around.size())
    source = collective.around[level];
  Overlap around = std::max(how, overlap[repeat.parent]);
  if (around == Overlap::Serial || source.origin == Step::Origin::Ready)
    return placeReady(index, repeat.parent, {item, item}, around, level + 1);
  if (source.origin == Step::Origin::Produced)
    points.push_back({index, repeat.parent, source.producer + 1});
  else
    placeCarried(index, repeat.parent, source.producer, item);
}

/// A collective whose operand an iteration makes for the next one.
void Issuer::placeCarried(unsigned index, unsigned body, unsigned producer,
                          unsigned lastUse) {
  assert(body != 0 && "only repeats carry values");
  points.push_back({index, body, slotAfter(body, std::max(producer, lastUse)),
                    /*atStart=*/false, /*next=*/true});
  points.push_back({index, step.bodies[body].parent,
                    step.bodies[body].itemInParent, /*atStart=*/false,
                    /*next=*/false,
                    overlap[step.bodies[body].parent] == Overlap::Serial});
}

/// A collective whose operand is there before the body runs; items `use` of the
/// body need it.
void Issuer::placeReady(unsigned index, unsigned body, UseRange use,
                        Overlap how, unsigned level) {
  if (how == Overlap::Serial) {
    points.push_back({index, body, use.first, false, false, /*blocks=*/true});
    return;
  }
  bool isFirst = use.first == 0;
  if (body == 0 && (how == Overlap::Prefetch || isFirst)) {
    points.push_back({index, body, /*slot=*/0});
    return;
  }
  if (how == Overlap::Ahead && !isFirst) {
    points.push_back({index, body, use.first, /*atStart=*/true});
    return;
  }
  if (how == Overlap::Prefetch)
    points.push_back({index, body, slotAfter(body, use.last), /*atStart=*/false,
                      /*next=*/true, /*blocks=*/false, /*prefetch=*/true});
  else
    points.push_back({index, body, unsigned(step.bodies[body].items.size()),
                      /*atStart=*/true, /*next=*/true});
  placeEntry(index, body, how, level);
}

void Issuer::placeCollective(unsigned index) {
  const Step::Collective &collective = step.collectives[index];
  unsigned body = collective.body;
  if (overlap[body] == Overlap::Serial) {
    points.push_back({index, body, collective.position, false, false,
                      /*blocks=*/true});
    return;
  }
  switch (collective.origin) {
  case Step::Origin::Ready:
    return placeReady(index, body, uses[index], overlap[body], /*level=*/0);
  case Step::Origin::Produced:
    points.push_back({index, body, collective.producer + 1});
    return;
  case Step::Origin::Carried:
    return placeCarried(index, body, collective.producer, uses[index].last);
  }
}

/// Others that it moves on are issued in the iteration that needs them.
bool Issuer::waitsHere(const IssuePoint &point) const {
  if (!point.next)
    return false;
  const Step::Collective &collective = step.collectives[point.collective];
  return any_of(collective.afterHere, [&](unsigned other) {
    return placed.count({other, point.body, false}) &&
           !placed.count({other, point.body, true});
  });
}

void Issuer::delay(IssuePoint &point, ArrayRef<unsigned> others) const {
  for (unsigned other : others) {
    auto it = placed.find({other, point.body, point.next});
    if (it == placed.end())
      continue;
    const IssuePoint &last = it->second;
    if (std::pair(point.slot, !point.atStart) >=
        std::pair(last.slot, !last.atStart))
      continue;
    point.slot = last.slot;
    point.atStart = last.atStart;
    point.prefetch = last.prefetch;
  }
}

/// A collective that consumes other collectives, as a sum of statistics does
/// for several operands, is issued after the last of them, if need be in the
/// iteration that needs it: then no body around that issues it.
void Issuer::delayAll() {
  std::vector<IssuePoint> delayed;
  std::optional<unsigned> done;
  for (IssuePoint point : points) {
    const Step::Collective &collective = step.collectives[point.collective];
    if (point.collective == done)
      continue;
    if (waitsHere(point)) {
      done = point.collective;
      point = {point.collective, point.body, /*slot=*/0};
      delay(point, collective.afterHere);
    } else if (!point.blocks) {
      delay(point, collective.after);
    }
    if (!point.blocks)
      placed[{point.collective, point.body, point.next}] = point;
    delayed.push_back(point);
  }
  points = std::move(delayed);
}

/// A ring's collectives run beside its group, wherever that is.
void Issuer::removeRings() {
  for (const Step::Ring &ring : step.rings)
    erase_if(points, [&](const IssuePoint &point) {
      return is_contained(ring.collectives, point.collective);
    });
}

std::vector<IssuePoint> Issuer::place() {
  for (unsigned i = 0; i < step.collectives.size(); ++i)
    placeCollective(i);
  delayAll();
  removeRings();
  // Collectives for this iteration come before those for the next one.
  llvm::sort(points, [](const IssuePoint &a, const IssuePoint &b) {
    return std::tuple(a.body, a.slot, !a.atStart, a.next, a.collective) <
           std::tuple(b.body, b.slot, !b.atStart, b.next, b.collective);
  });
  return std::move(points);
}

} // namespace

std::vector<IssuePoint> shardc::issuePoints(const Step &step,
                                            ArrayRef<Overlap> overlap) {
  assert(overlap.size() == step.bodies.size() && "one entry per body");
  return Issuer(step, overlap).place();
}
