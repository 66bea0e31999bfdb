//===- Schedule.h - When a step's work runs -------------------*- C++ -*-===//
//
// The deterministic schedule of docs/CostModel.md#the-schedule, over a plain
// description of the step: fusion groups on one compute stream, collectives on
// the physical networks that they occupy. The order in which a network runs its
// collectives follows from the program and never from times, so the length of
// the schedule is a longest path: a faster network never makes it longer.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_COST_SCHEDULE_H
#define SHARDC_COST_SCHEDULE_H

#include "shardc/Cost/Collective.h"

namespace shardc {

/// Iterations of a long repeat that are simulated.
inline constexpr int64_t kSimulatedIterations = 12;

/// Slowdowns, the share of their time that hidden collectives cost compute, are
/// whole numbers of this part, so that sums over a plan are exact.
inline constexpr int64_t kSlowdownUnit = 64;
int64_t slowdownOf(const Machine &machine);

/// time + slowdown / kSlowdownUnit * (upper - time), rounded up: what a step
/// takes whose schedule takes `time` if collectives slow no kernel down, and
/// `upper` without overlap. Grows with both.
Picoseconds slowedByCollectives(int64_t slowdown, Picoseconds time,
                                Picoseconds upper);

/// The step of one device. Groups and collectives are numbered in program
/// order; so are bodies, an outer one before those in it.
struct Step {
  /// One entry of the compute stream, which runs them one after the other.
  struct Item {
    enum Kind : uint8_t { Group, Repeat } kind = Group;
    /// Into `groups` or `bodies`.
    unsigned index = 0;
  };

  /// The step itself (the first) or what a `repeat` runs.
  struct Body {
    int64_t count = 1;
    /// For the body of a repeat: the body around it, and the repeat's item
    /// there.
    unsigned parent = 0, itemInParent = 0;
    /// Iterations fewer in one iteration of the body around it: the last one,
    /// or the first.
    int64_t shortage = 0;
    bool isFirstShort = false;
    std::vector<Item> items;
    /// Collectives that end before an iteration does.
    llvm::SmallVector<unsigned, 0> awaited;
  };

  struct Group {
    Picoseconds time = 0;
    /// Where it stands: an item of a body.
    unsigned body = 0, item = 0;
    /// Collectives whose results it reads.
    llvm::SmallVector<unsigned, 2> waits;
  };

  /// Where the operand of a collective comes from, seen from one body.
  enum class Origin : uint8_t {
    /// It is there before the step (a weight): nothing need run first.
    Ready,
    /// An item of the same body makes it.
    Produced,
    /// The previous iteration makes it, in the first one it comes from outside.
    Carried,
  };

  struct Collective {
    Picoseconds time = 0;
    /// Takes processors and bandwidth from kernels that run beside it. Copies
    /// over the link to the host do not: engines of their own make them.
    bool slowsKernels = true;
    /// Physical networks, all of which it occupies from start to end.
    llvm::SmallVector<unsigned, 4> networks;
    /// Collectives whose results it moves on.
    llvm::SmallVector<unsigned, 1> after;
    /// The subset of `after` in its own iteration: not results of an earlier
    /// one.
    llvm::SmallVector<unsigned, 1> afterHere;
    /// It stands in `body`, before the item `position`.
    unsigned body = 0, position = 0;
    Origin origin = Origin::Ready;
    /// The item that makes its operand; of a carried one, in the iteration
    /// before.
    unsigned producer = 0;
    /// For a ready collective, the same in the bodies around its own, the
    /// innermost first: up to the one that makes or carries the operand.
    struct Source {
      Origin origin = Origin::Ready;
      unsigned producer = 0;
    };
    llvm::SmallVector<Source, 1> around;
  };

  /// A matmul and the collective, over `devices`, that makes an operand of it
  /// (`feeds`) or takes its result: both may run in overlapped chunks.
  struct Pair {
    unsigned group = 0, collective = 0;
    bool feeds = false;
    int64_t devices = 1;
  };

  /// A group and what travels around a ring of `devices` while it runs, which
  /// always run together.
  struct Ring {
    unsigned group = 0;
    llvm::SmallVector<unsigned, 2> collectives;
    int64_t devices = 1;
  };

  std::vector<Body> bodies = std::vector<Body>(1);
  std::vector<Group> groups;
  std::vector<Collective> collectives;
  /// Candidates for collective matmul, by group; empty where it is off.
  std::vector<Pair> pairs;
  std::vector<Ring> rings;
  unsigned numNetworks = 0;
  /// The share of their time that hidden collectives cost compute, in parts of
  /// kSlowdownUnit.
  int64_t slowdown = 0;

  /// How often a body runs in a step.
  int64_t runs(unsigned body) const;

  /// Appends a repeat to `parent` and returns its body.
  unsigned addRepeat(unsigned parent, int64_t count);
  /// Appends a group to `body` and returns its number.
  unsigned addGroup(unsigned body, Picoseconds time);
};

/// max(a, b + a / N): of N steps that take a together, the last waits for the
/// last of the permutes between them, which take b.
Picoseconds ringTime(Picoseconds steps, Picoseconds moves, int64_t devices);

/// How early the collectives of one body may start, as memory allows.
enum class Overlap : uint8_t {
  /// As soon as their operands are there; a weight of a repeat is gathered
  /// after its use in the iteration before.
  Prefetch,
  /// As above, but weights when the group before their use starts.
  Ahead,
  /// Compute and collectives one after the other, in program order.
  Serial,
};

/// Where the compute stream issues a collective: before the item `slot` of a
/// body.
struct IssuePoint {
  unsigned collective = 0, body = 0, slot = 0;
  /// When the group before starts, rather than when it ends.
  bool atStart = false;
  /// For the next iteration of the body; the last one issues nothing.
  bool next = false;
  /// Compute waits until it has ended.
  bool blocks = false;
  /// For the next iteration, after the last use in this one.
  bool prefetch = false;

  bool operator==(const IssuePoint &other) const = default;
};

/// First and last item of its own body that needs a collective's result; its
/// position there if none does.
struct UseRange {
  unsigned first = 0, last = 0;
};
std::vector<UseRange> useRanges(const Step &step);

/// Where every collective is issued, ordered by body and slot and, within one,
/// by the order of issue. `overlap` has one entry per body.
std::vector<IssuePoint> issuePoints(const Step &step,
                                    llvm::ArrayRef<Overlap> overlap);

/// Start and end of all that ran.
struct Timeline {
  struct Event {
    bool isGroup = false;
    unsigned index = 0;
    Picoseconds start = 0, end = 0;
  };
  /// A stretch of one iteration of a body without the repeats in it; of each
  /// repeat, one iteration.
  struct Section {
    unsigned body = 0;
    /// Counted from 0.
    int64_t iteration = 0;
    Picoseconds start = 0, end = 0;
  };
  std::vector<Event> events;
  std::vector<Section> sections;
};

struct Schedule {
  Picoseconds device = 0, lower = 0, scheduled = 0, upper = 0;
  /// How long each physical network is busy. `lower` is the longest of these
  /// and of `device`, slowed as `scheduled` is.
  std::vector<Picoseconds> busy;
  /// For each collective, how long the compute stream waits for it, all runs of
  /// a step together: scheduled = device + their sum.
  std::vector<Picoseconds> exposed;
  /// Which pairs run as collective matmuls (into Step::pairs), and how much
  /// longer the step would take without.
  std::vector<unsigned> matmuls;
  Picoseconds matmulsSave = 0;
  Timeline timeline;
};

/// Runs the step. A repeat is simulated for at most 12 iterations; each further
/// one adds to every stream the mean growth of the last 6. Linear in the size
/// of the step, and in 12 for each level of nested repeats.
Schedule schedule(const Step &step, llvm::ArrayRef<IssuePoint> points);
/// The same with the issue points of `overlap`.
Schedule schedule(const Step &step, llvm::ArrayRef<Overlap> overlap);
/// Schedule::scheduled, without a timeline and exposed times.
Picoseconds scheduledTime(const Step &step, llvm::ArrayRef<IssuePoint> points);

} // namespace shardc

#endif // SHARDC_COST_SCHEDULE_H
