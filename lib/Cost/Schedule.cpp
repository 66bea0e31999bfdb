//===- Schedule.cpp - When a step's work runs -----------------------------===//
//
// docs/CostModel.md#the-schedule. Every collective is issued at fixed places of
// the compute stream (IssuePoints.cpp); the simulation walks the stream once.
// Anything starts at the end of what it waited for, or when the compute stream
// reached it; so idle time is charged by walking back from one collective to
// the one that it waited for.
//
//===----------------------------------------------------------------------===//

#include "shardc/Cost/Schedule.h"
#include "shardc/Cost/Saturating.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace llvm;
using namespace shardc;

__extension__ typedef __int128 Int128;

/// The last simulated iterations of a long repeat, from which the others are
/// extrapolated.
static constexpr int64_t kMeasured = kSimulatedIterations / 2;

int64_t shardc::slowdownOf(const Machine &machine) {
  if (!machine.isCalibrated)
    return 0;
  double lost = 1 - valueOr(machine.calibration.overlap, 1);
  return std::llround(lost * double(kSlowdownUnit));
}

Picoseconds shardc::slowedByCollectives(int64_t slowdown, Picoseconds time,
                                        Picoseconds upper) {
  if (slowdown == 0 || upper <= time)
    return time;
  Int128 lost = Int128(upper - time) * slowdown;
  return saturatingAdd(time,
                       Picoseconds((lost + kSlowdownUnit - 1) / kSlowdownUnit));
}

int64_t Step::runs(unsigned body) const {
  if (body == 0)
    return bodies[0].count;
  const Body &inner = bodies[body];
  int64_t around = runs(inner.parent);
  return saturatingMultiply(around, inner.count) -
         around / bodies[inner.parent].count * inner.shortage;
}

unsigned Step::addRepeat(unsigned parent, int64_t count) {
  unsigned item = bodies[parent].items.size();
  unsigned body = bodies.size();
  Body &added = bodies.emplace_back();
  added.count = count;
  added.parent = parent;
  added.itemInParent = item;
  bodies[parent].items.push_back({Item::Repeat, body});
  return body;
}

unsigned Step::addGroup(unsigned body, Picoseconds time) {
  unsigned item = bodies[body].items.size();
  unsigned group = groups.size();
  groups.push_back({time, body, item, {}});
  bodies[body].items.push_back({Item::Group, group});
  return group;
}

Picoseconds shardc::ringTime(Picoseconds steps, Picoseconds moves,
                             int64_t devices) {
  auto last = Picoseconds((2 * Int128(steps) + devices) / (2 * devices));
  return std::max(steps, saturatingAdd(moves, last));
}

namespace {

/// max(a, b) + min(a, b) / N of a matmul and its collective, rounded to the
/// nearest.
Picoseconds pairTime(Picoseconds matmul, Picoseconds collective,
                     int64_t devices) {
  Int128 least = std::min(matmul, collective);
  return saturatingAdd(std::max(matmul, collective),
                       Picoseconds((2 * least + devices) / (2 * devices)));
}

//===----------------------------------------------------------------------===//
// Collective matmul
//===----------------------------------------------------------------------===//

/// Chooses which pairs run decomposed: those between whose two parts nothing
/// else would run; of one matmul the pair that saves most.
class PairSelector {
public:
  PairSelector(const Step &step, ArrayRef<IssuePoint> points)
      : step(step), uses(useRanges(step)), points(points),
        numPoints(step.collectives.size(), 0) {
    for (const IssuePoint &point : points)
      ++numPoints[point.collective];
  }

  std::vector<unsigned> select();

private:
  bool isAdjacent(const Step::Pair &pair) const;
  bool feedsAtOnce(const Step::Pair &pair) const;
  bool isTakenAtOnce(const Step::Pair &pair) const;
  Picoseconds saving(const Step::Pair &pair) const {
    Picoseconds matmul = step.groups[pair.group].time;
    Picoseconds collective = step.collectives[pair.collective].time;
    return saturatingAdd(matmul, collective) -
           pairTime(matmul, collective, pair.devices);
  }

  const Step &step;
  std::vector<UseRange> uses;
  ArrayRef<IssuePoint> points;
  std::vector<unsigned> numPoints;
};

/// It would be issued when its matmul is next, wherever it is issued.
bool PairSelector::feedsAtOnce(const Step::Pair &pair) const {
  const Step::Collective &collective = step.collectives[pair.collective];
  const Step::Group &group = step.groups[pair.group];
  if (collective.body != group.body)
    return false;
  switch (collective.origin) {
  case Step::Origin::Ready:
    return collective.body == 0 && group.item == 0;
  case Step::Origin::Produced:
    return collective.producer + 1 == group.item;
  case Step::Origin::Carried:
    return group.item == 0 &&
           collective.producer + 1 == step.bodies[collective.body].items.size();
  }
  llvm_unreachable("covered switch");
}

/// The next group waits for it, or it ends the step.
bool PairSelector::isTakenAtOnce(const Step::Pair &pair) const {
  const Step::Collective &collective = step.collectives[pair.collective];
  const Step::Group &group = step.groups[pair.group];
  const auto &items = step.bodies[group.body].items;
  if (collective.body != group.body ||
      collective.origin != Step::Origin::Produced ||
      collective.producer != group.item)
    return false;
  unsigned next = group.item + 1;
  if (next == items.size())
    return true;
  return items[next].kind == Step::Item::Group &&
         is_contained(step.groups[items[next].index].waits, pair.collective);
}

bool PairSelector::isAdjacent(const Step::Pair &pair) const {
  return pair.feeds ? feedsAtOnce(pair) : isTakenAtOnce(pair);
}

std::vector<unsigned> PairSelector::select() {
  std::vector<int> best(step.groups.size(), -1);
  for (auto [i, pair] : enumerate(step.pairs)) {
    if (!isAdjacent(pair) || saving(pair) == 0)
      continue;
    int &chosen = best[pair.group];
    if (chosen < 0 || saving(step.pairs[chosen]) < saving(pair))
      chosen = i;
  }
  std::vector<unsigned> selected;
  std::vector<bool> taken(step.collectives.size(), false);
  for (int pair : best) {
    if (pair < 0 || taken[step.pairs[pair].collective])
      continue;
    taken[step.pairs[pair].collective] = true;
    selected.push_back(pair);
  }
  return selected;
}

//===----------------------------------------------------------------------===//
// Simulation
//===----------------------------------------------------------------------===//

class Simulator {
public:
  Simulator(const Step &step, ArrayRef<IssuePoint> points,
            ArrayRef<unsigned> pairs, bool records);

  /// With a timeline and exposed times if the simulator records.
  Schedule run();

private:
  static constexpr int kNone = -1;

  /// One run of a collective.
  struct Run {
    unsigned collective = 0;
    Picoseconds start = 0, end = 0;
    /// The run at whose end it started, if it waited for one.
    int before = kNone;
    /// The repeat whose iterations before it were not simulated.
    int unseen = kNone;
  };

  /// How far a repeat has come.
  struct Mark {
    Picoseconds now = 0;
    std::vector<Picoseconds> ends;
    size_t charges = 0;
  };

  void runBody(unsigned body, int64_t iteration, bool isLast, bool shown);
  void awaitTransfers(unsigned body, bool isLast);
  void runRepeat(unsigned body, int64_t count, bool shown);
  void runGroup(unsigned group);
  void runPair(unsigned group, const Step::Pair &pair);
  void runRing(const Step::Ring &ring);
  void issue(const IssuePoint &point);
  int waitFor(unsigned collective, int waited, Picoseconds &start) const;
  int waitForNetworks(const Step::Collective &collective, int waited,
                      Picoseconds &start) const;
  int addRun(unsigned collective, Picoseconds start, Picoseconds end,
             int before);
  void show(bool isGroup, unsigned index, Picoseconds start, Picoseconds end);
  void charge(unsigned collective, Picoseconds time);
  void chargeIdle(Picoseconds from, Picoseconds to, int run);
  void chargeUnseen(const Run &run, Picoseconds time);
  void slowDown(Schedule &result, Picoseconds oneByOne) const;

  Mark mark(unsigned body) const;
  int usedRun(unsigned body, unsigned collective) const;
  void extrapolate(unsigned body, const Mark &half, int64_t more);
  void extrapolateCharges(const Mark &half, int64_t more);
  void extrapolateNetworks(unsigned body, ArrayRef<int> lastOnNetwork);
  std::pair<unsigned, unsigned> collectivesOf(unsigned body) const {
    return ranges[body];
  }
  void settle(Schedule &result) const;
  void showSection(unsigned body, int64_t iteration, Picoseconds start) {
    if (now > start)
      timeline.sections.push_back({body, iteration, start, now});
  }

  const Step &step;
  /// Keeps what ran when, and charges idle time to collectives.
  bool records;
  /// By body and slot.
  std::vector<std::vector<SmallVector<IssuePoint, 1>>> slots;
  /// By group: the pair that it runs in, or kNone.
  std::vector<int> pairOf;
  /// By group: the ring that it runs around, or kNone.
  std::vector<int> ringOf;
  /// Collectives in a body and its repeats: [first, second).
  std::vector<std::pair<unsigned, unsigned>> ranges;
  /// By collective: whether it slows down the kernels beside it. The chunks of
  /// a pair do not: copy engines move them.
  std::vector<bool> slows;
  /// Bodies in which a collective is issued for the next iteration.
  std::vector<SmallVector<unsigned, 1>> issuedAhead;

  /// The compute stream is busy until `now`; its last group began at
  /// `lastStart`.
  Picoseconds now = 0, lastStart = 0;
  std::vector<Run> runs;
  /// By collective: its latest run and the one before, or kNone.
  std::vector<int> latest, previous;
  /// By network.
  std::vector<int> lastOn;
  std::vector<Picoseconds> exposed;
  std::vector<std::pair<unsigned, Picoseconds>> charges;
  Timeline timeline;
};

/// Waits for copies by engines of their own do not count as hidden, so that
/// charges decide how long the step takes.
static bool needsCharges(const Step &step, ArrayRef<unsigned> pairs) {
  return step.slowdown > 0 &&
         (!pairs.empty() ||
          any_of(step.collectives, [](const Step::Collective &collective) {
            return !collective.slowsKernels;
          }));
}

Simulator::Simulator(const Step &step, ArrayRef<IssuePoint> points,
                     ArrayRef<unsigned> pairs, bool records)
    : step(step), records(records || needsCharges(step, pairs)),
      pairOf(step.groups.size(), kNone), ringOf(step.groups.size(), kNone),
      ranges(step.bodies.size(), {step.collectives.size(), 0}),
      issuedAhead(step.collectives.size()),
      latest(step.collectives.size(), kNone),
      previous(step.collectives.size(), kNone), lastOn(step.numNetworks, kNone),
      exposed(step.collectives.size(), 0) {
  std::vector<bool> isPaired(step.collectives.size(), false);
  for (unsigned pair : pairs) {
    pairOf[step.pairs[pair].group] = pair;
    isPaired[step.pairs[pair].collective] = true;
  }
  for (auto [paired, collective] : zip(isPaired, step.collectives))
    slows.push_back(collective.slowsKernels && !paired);
  for (auto [number, ring] : enumerate(step.rings))
    ringOf[ring.group] = int(number);
  for (const Step::Body &body : step.bodies)
    slots.emplace_back(body.items.size() + 1);
  for (const IssuePoint &point : points) {
    if (isPaired[point.collective])
      continue;
    slots[point.body][point.slot].push_back(point);
    if (point.next)
      issuedAhead[point.collective].push_back(point.body);
  }
  for (auto [i, collective] : enumerate(step.collectives))
    for (unsigned body = collective.body;; body = step.bodies[body].parent) {
      auto &[begin, end] = ranges[body];
      begin = std::min<unsigned>(begin, i);
      end = std::max<unsigned>(end, i + 1);
      if (body == 0)
        break;
    }
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

void Simulator::show(bool isGroup, unsigned index, Picoseconds start,
                     Picoseconds end) {
  if (records && end > start)
    timeline.events.push_back({isGroup, index, start, end});
}

int Simulator::addRun(unsigned collective, Picoseconds start, Picoseconds end,
                      int before) {
  int run = runs.size();
  runs.push_back({collective, start, end, before, kNone});
  previous[collective] = latest[collective];
  latest[collective] = run;
  for (unsigned network : step.collectives[collective].networks)
    lastOn[network] = run;
  show(/*isGroup=*/false, collective, start, end);
  return run;
}

/// Delays `start` to the end of the latest run of `collective`; returns the run
/// that was waited for, `waited` if that was longer.
int Simulator::waitFor(unsigned collective, int waited,
                       Picoseconds &start) const {
  int run = latest[collective];
  if (run == kNone || runs[run].end <= start)
    return waited;
  start = runs[run].end;
  return run;
}

int Simulator::waitForNetworks(const Step::Collective &collective, int waited,
                               Picoseconds &start) const {
  for (unsigned earlier : collective.after)
    waited = waitFor(earlier, waited, start);
  for (unsigned network : collective.networks)
    if (int run = lastOn[network]; run != kNone && runs[run].end > start) {
      start = runs[run].end;
      waited = run;
    }
  return waited;
}

void Simulator::issue(const IssuePoint &point) {
  const Step::Collective &collective = step.collectives[point.collective];
  Picoseconds start = point.atStart ? lastStart : now;
  int before = waitForNetworks(collective, kNone, start);
  int run = addRun(point.collective, start,
                   saturatingAdd(start, collective.time), before);
  if (point.blocks && runs[run].end > now) {
    chargeIdle(now, runs[run].end, run);
    now = runs[run].end;
  }
}

void Simulator::runGroup(unsigned index) {
  const Step::Group &group = step.groups[index];
  if (pairOf[index] != kNone)
    return runPair(index, step.pairs[pairOf[index]]);
  if (ringOf[index] != kNone)
    return runRing(step.rings[ringOf[index]]);
  Picoseconds start = now;
  int waited = kNone;
  for (unsigned collective : group.waits)
    waited = waitFor(collective, waited, start);
  if (waited != kNone)
    chargeIdle(now, start, waited);
  lastStart = start;
  now = saturatingAdd(start, group.time);
  show(/*isGroup=*/true, index, start, now);
}

/// Both occupy the compute stream and the networks for the pair's time; what is
/// beyond the matmul's own is charged to the collective.
void Simulator::runPair(unsigned index, const Step::Pair &pair) {
  const Step::Group &group = step.groups[index];
  const Step::Collective &collective = step.collectives[pair.collective];
  Picoseconds start = now;
  int waited = kNone;
  for (unsigned other : group.waits)
    if (other != pair.collective)
      waited = waitFor(other, waited, start);
  waited = waitForNetworks(collective, waited, start);
  if (waited != kNone)
    chargeIdle(now, start, waited);
  Picoseconds time = pairTime(group.time, collective.time, pair.devices);
  lastStart = start;
  now = saturatingAdd(start, time);
  addRun(pair.collective, start, now, waited);
  charge(pair.collective, time - group.time);
  show(/*isGroup=*/true, index, start, now);
}

/// As a pair; what travels is shown one after the other, and has its share of
/// the time beyond the group's own.
void Simulator::runRing(const Step::Ring &ring) {
  const Step::Group &group = step.groups[ring.group];
  Picoseconds start = now, moves = 0;
  int waited = kNone;
  for (unsigned other : group.waits)
    if (!is_contained(ring.collectives, other))
      waited = waitFor(other, waited, start);
  for (unsigned collective : ring.collectives) {
    waited = waitForNetworks(step.collectives[collective], waited, start);
    moves = saturatingAdd(moves, step.collectives[collective].time);
  }
  if (waited != kNone)
    chargeIdle(now, start, waited);
  Picoseconds time = ringTime(group.time, moves, ring.devices);
  lastStart = start;
  now = saturatingAdd(start, time);
  Picoseconds done = 0, before = start, charged = 0;
  for (unsigned collective : ring.collectives) {
    done = saturatingAdd(done, step.collectives[collective].time);
    auto share = [&](Picoseconds all) {
      return moves == 0 ? all : Picoseconds(Int128(all) * done / moves);
    };
    Picoseconds end = start + share(time);
    addRun(collective, before, end, waited);
    charge(collective, share(time - group.time) - charged);
    charged = share(time - group.time);
    before = end;
  }
  show(/*isGroup=*/true, ring.group, start, now);
}

void Simulator::runBody(unsigned body, int64_t iteration, bool isLast,
                        bool shown) {
  const std::vector<Step::Item> &items = step.bodies[body].items;
  Picoseconds sectionStart = now;
  for (size_t slot = 0; slot <= items.size(); ++slot) {
    for (const IssuePoint &point : slots[body][slot])
      if (!point.next || !isLast)
        issue(point);
    if (slot == items.size())
      break;
    if (items[slot].kind == Step::Item::Group) {
      runGroup(items[slot].index);
      continue;
    }
    if (shown)
      showSection(body, iteration, sectionStart);
    const Step::Body &inner = step.bodies[items[slot].index];
    bool isShort = inner.isFirstShort ? iteration == 0 : isLast;
    runRepeat(items[slot].index, inner.count - (isShort ? inner.shortage : 0),
              shown);
    sectionStart = now;
  }
  awaitTransfers(body, isLast);
  if (shown)
    showSection(body, iteration, sectionStart);
}

/// The compute stream ends an iteration when the collectives have ended that
/// must.
void Simulator::awaitTransfers(unsigned body, bool isLast) {
  for (unsigned collective : step.bodies[body].awaited) {
    bool isNext = !isLast && is_contained(issuedAhead[collective], body);
    int run = isNext ? previous[collective] : latest[collective];
    if (run == kNone || runs[run].end <= now)
      continue;
    chargeIdle(now, runs[run].end, run);
    now = runs[run].end;
  }
}

void Simulator::runRepeat(unsigned body, int64_t count, bool shown) {
  int64_t simulated = std::min(count, kSimulatedIterations);
  // One in the middle, where the way in and the way out do not show.
  int64_t toShow = simulated / 2;
  Mark half;
  for (int64_t i = 0; i < simulated; ++i) {
    runBody(body, i, i + 1 == count, shown && i == toShow);
    if (i + 1 == kSimulatedIterations - kMeasured &&
        count > kSimulatedIterations)
      half = mark(body);
  }
  if (count > kSimulatedIterations)
    extrapolate(body, half, count - kSimulatedIterations);
}

//===----------------------------------------------------------------------===//
// Iterations that are not simulated
//===----------------------------------------------------------------------===//

/// The run of the iteration that just ended, not one for the next iteration.
int Simulator::usedRun(unsigned body, unsigned collective) const {
  return is_contained(issuedAhead[collective], body) ? previous[collective]
                                                     : latest[collective];
}

Simulator::Mark Simulator::mark(unsigned body) const {
  auto [begin, end] = collectivesOf(body);
  Mark result{now, {}, charges.size()};
  for (unsigned i = begin; i < end; ++i) {
    int run = usedRun(body, i);
    result.ends.push_back(run == kNone ? 0 : runs[run].end);
  }
  return result;
}

/// The growth over `more` iterations if the measured ones added `to` - `from`.
static Picoseconds growth(Picoseconds from, Picoseconds to, int64_t more) {
  Int128 grown = Int128(more) * (to - from) / kMeasured;
  return Picoseconds(std::min<Int128>(grown, INT64_MAX));
}

void Simulator::extrapolate(unsigned body, const Mark &half, int64_t more) {
  Picoseconds shift = growth(half.now, now, more);
  extrapolateCharges(half, more);
  now = saturatingAdd(now, shift);
  lastStart = saturatingAdd(lastStart, shift);
  auto [begin, end] = collectivesOf(body);
  std::vector<int> last(step.numNetworks, kNone);
  for (unsigned i = begin; i < end; ++i) {
    int used = usedRun(body, i);
    if (used == kNone)
      continue;
    Run run = runs[used];
    Picoseconds by = growth(half.ends[i - begin], run.end, more);
    run.start = saturatingAdd(run.start, by);
    run.end = saturatingAdd(run.end, by);
    run.before = kNone;
    run.unseen = body;
    latest[i] = runs.size();
    runs.push_back(run);
    show(/*isGroup=*/false, i, run.start, run.end);
    for (unsigned network : step.collectives[i].networks)
      if (last[network] == kNone || runs[last[network]].end < run.end)
        last[network] = latest[i];
  }
  extrapolateNetworks(body, last);
}

/// Collectives issued for an iteration that does not come are forgotten.
void Simulator::extrapolateNetworks(unsigned body,
                                    ArrayRef<int> lastOnNetwork) {
  auto [begin, end] = collectivesOf(body);
  for (auto [current, shifted] : zip_equal(lastOn, lastOnNetwork)) {
    if (shifted == kNone)
      continue;
    unsigned owner = runs[current].collective;
    bool isOurs = begin <= owner && owner < end;
    if (isOurs || runs[current].end < runs[shifted].end)
      current = shifted;
  }
}

/// The compute stream's idle time grows as it did, each collective's share of
/// it too.
void Simulator::extrapolateCharges(const Mark &half, int64_t more) {
  MapVector<unsigned, Picoseconds> measured;
  Picoseconds total = 0;
  for (auto [collective, time] : drop_begin(charges, half.charges)) {
    total = saturatingAdd(total, time);
    Picoseconds &sum = measured[collective];
    sum = saturatingAdd(sum, time);
  }
  Picoseconds rest = growth(0, total, more);
  for (auto [collective, time] : measured) {
    Picoseconds share = growth(0, time, more);
    charge(collective, share);
    rest -= share;
  }
  // The remainder of rounding.
  if (rest > 0)
    charge(measured.front().first, rest);
}

//===----------------------------------------------------------------------===//
// Exposed time
//===----------------------------------------------------------------------===//

void Simulator::charge(unsigned collective, Picoseconds time) {
  if (time == 0 || !records)
    return;
  exposed[collective] = saturatingAdd(exposed[collective], time);
  charges.push_back({collective, time});
}

/// Charges [from, to) to what ran then on the stream that leads to the end of
/// `run` at `to`.
void Simulator::chargeIdle(Picoseconds from, Picoseconds to, int run) {
  if (!records)
    return;
  while (true) {
    const Run &running = runs[run];
    Picoseconds start = std::max(from, std::min(to, running.start));
    charge(running.collective, to - start);
    to = start;
    if (to == from)
      return;
    if (running.before == kNone)
      return chargeUnseen(running, to - from);
    run = running.before;
  }
}

/// Charges time before `run` in iterations that were not simulated to the
/// repeat's collectives on its networks, in proportion to how long they run.
void Simulator::chargeUnseen(const Run &run, Picoseconds time) {
  if (run.unseen == kNone)
    return charge(run.collective, time);
  auto [begin, end] = collectivesOf(run.unseen);
  const auto &networks = step.collectives[run.collective].networks;
  SmallVector<std::pair<unsigned, Int128>> shares;
  Int128 total = 0;
  for (unsigned i = begin; i < end; ++i) {
    const Step::Collective &collective = step.collectives[i];
    if (none_of(collective.networks, [&](unsigned network) {
          return is_contained(networks, network);
        }))
      continue;
    Int128 share = Int128(collective.time) * step.runs(collective.body);
    shares.push_back({i, share});
    total += share;
  }
  Picoseconds rest = time;
  for (auto [collective, share] : shares) {
    // In 2^-20ths, so that the product stays small.
    Int128 part = total == 0 ? 0 : Int128(time) * ((share << 20) / total) >> 20;
    charge(collective, Picoseconds(part));
    rest -= Picoseconds(part);
  }
  charge(run.collective, rest);
}

/// Makes charges add up to the schedule, none above its collective's own time.
/// Only extrapolation and rounding ask for changes.
void Simulator::settle(Schedule &result) const {
  Int128 missing = result.scheduled - result.device;
  std::vector<Picoseconds> own;
  for (auto [collective, charged] :
       zip_equal(step.collectives, result.exposed)) {
    own.push_back(
        saturatingMultiply(collective.time, step.runs(collective.body)));
    charged = std::min(charged, own.back());
    missing -= charged;
  }
  for (auto [charged, most] : zip_equal(result.exposed, own)) {
    Int128 change = missing > 0 ? std::min<Int128>(missing, most - charged)
                                : -std::min<Int128>(-missing, charged);
    charged += Picoseconds(change);
    missing -= change;
  }
}

/// Adds what hidden collectives cost compute, and charges it to them.
/// `oneByOne` is the time of groups and of the collectives that slow these
/// down.
void Simulator::slowDown(Schedule &result, Picoseconds oneByOne) const {
  result.lower = slowedByCollectives(step.slowdown, result.lower, oneByOne);
  Picoseconds all = oneByOne;
  for (auto [slowing, waited] : zip(slows, result.exposed))
    if (!slowing)
      all = saturatingAdd(all, waited);
  result.scheduled = slowedByCollectives(step.slowdown, result.scheduled, all);
  // Rounded as their sum is.
  Int128 lost = 0, charged = 0;
  for (auto [collective, slowing, waited] :
       zip(step.collectives, slows, result.exposed)) {
    if (!slowing)
      continue;
    Picoseconds own =
        saturatingMultiply(collective.time, step.runs(collective.body));
    lost += Int128(own - waited) * step.slowdown;
    Int128 rounded = (lost + kSlowdownUnit - 1) / kSlowdownUnit;
    waited += Picoseconds(rounded - charged);
    charged = rounded;
  }
}

Schedule Simulator::run() {
  runBody(0, 0, /*isLast=*/true, /*shown=*/records);
  Schedule result;
  int last = kNone;
  for (int run : latest)
    if (run != kNone && (last == kNone || runs[run].end > runs[last].end))
      last = run;
  result.scheduled = now;
  if (last != kNone && runs[last].end > now) {
    result.scheduled = runs[last].end;
    chargeIdle(now, runs[last].end, last);
    if (records) {
      if (timeline.sections.empty() || timeline.sections.back().body != 0)
        timeline.sections.push_back({0, 0, now, now});
      timeline.sections.back().end = runs[last].end;
    }
  }
  for (const Step::Group &group : step.groups)
    result.device = saturatingAdd(
        result.device, saturatingMultiply(group.time, step.runs(group.body)));
  std::vector<Picoseconds> busy(step.numNetworks, 0);
  result.upper = result.device;
  // Without copies by engines of their own, which slow nothing down.
  Picoseconds oneByOne = result.device;
  for (auto [collective, slowing] : zip(step.collectives, slows)) {
    Picoseconds total =
        saturatingMultiply(collective.time, step.runs(collective.body));
    result.upper = saturatingAdd(result.upper, total);
    if (slowing)
      oneByOne = saturatingAdd(oneByOne, total);
    for (unsigned network : collective.networks)
      busy[network] = saturatingAdd(busy[network], total);
  }
  result.lower = result.device;
  for (Picoseconds time : busy)
    result.lower = std::max(result.lower, time);
  result.busy = std::move(busy);
  // Extrapolation and rounding may lead beyond.
  result.scheduled = std::clamp(result.scheduled, result.lower, result.upper);
  if (records) {
    result.exposed = std::move(exposed);
    settle(result);
  }
  slowDown(result, oneByOne);
  if (!records)
    return result;
  result.timeline = std::move(timeline);
  return result;
}

} // namespace

static Schedule simulate(const Step &step, ArrayRef<IssuePoint> points,
                         bool records) {
  Schedule plain = Simulator(step, points, {}, records).run();
  if (step.pairs.empty())
    return plain;
  std::vector<unsigned> pairs = PairSelector(step, points).select();
  if (pairs.empty())
    return plain;
  Schedule paired = Simulator(step, points, pairs, records).run();
  if (paired.scheduled >= plain.scheduled)
    return plain;
  paired.matmuls = std::move(pairs);
  paired.matmulsSave = plain.scheduled - paired.scheduled;
  return paired;
}

Schedule shardc::schedule(const Step &step, ArrayRef<IssuePoint> points) {
  return simulate(step, points, /*records=*/true);
}

Schedule shardc::schedule(const Step &step, ArrayRef<Overlap> overlap) {
  return schedule(step, issuePoints(step, overlap));
}

Picoseconds shardc::scheduledTime(const Step &step,
                                  ArrayRef<IssuePoint> points) {
  return simulate(step, points, /*records=*/false).scheduled;
}
