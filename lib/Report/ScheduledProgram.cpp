//===- ScheduledProgram.cpp - A planned program in time -------------------===//
//
// Overlap takes memory: what is gathered early is held longer. And it takes the
// networks, so that what is gathered early may delay what is needed sooner. Of
// the ways to overlap, the fastest that fits is taken: neither more memory nor
// a faster network ever makes a step longer.
//
//===----------------------------------------------------------------------===//

#include "shardc/Report/ScheduledProgram.h"
#include "MemoryProfiler.h"
#include "StepBuilder.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

/// Program points [first, second) of an item or a body.
using PointRange = std::pair<uint32_t, uint32_t>;

class OverlapChooser {
public:
  OverlapChooser(ProgramOp program, const PlannedStep &planned)
      : planned(planned), step(planned.step), profiler(program),
        uses(useRanges(step)) {}

  /// Chooses the fastest overlap that fits: its schedule and its memory.
  void choose(int64_t limit, ScheduledProgram &result);

private:
  struct Choice {
    std::vector<Overlap> overlap;
    Schedule schedule;
  };
  /// The fastest first; of equal ones that which overlaps more.
  std::vector<Choice> choices() const;
  bool isSerial(const Choice &choice) const;
  MemoryProfile profile(ArrayRef<Overlap> overlap);
  EarlyBuffers earlyBuffers(ArrayRef<Overlap> overlap) const;
  void addEarly(const IssuePoint &point, EarlyBuffer &buffer) const;
  uint32_t firstPoint(const IssuePoint &point) const;
  PointRange itemPoints(unsigned body, unsigned item) const;
  PointRange bodyPoints(unsigned body) const;

  const PlannedStep &planned;
  const Step &step;
  MemoryProfiler profiler;
  std::vector<UseRange> uses;
};

PointRange OverlapChooser::bodyPoints(unsigned body) const {
  const Graph &graph = profiler.programGraph();
  if (body == 0)
    return {0, graph.numPoints};
  auto [entry, exit] = graph.repeatPoints.lookup(planned.repeats[body]);
  return {entry + 1, exit};
}

PointRange OverlapChooser::itemPoints(unsigned body, unsigned item) const {
  const Graph &graph = profiler.programGraph();
  Step::Item described = step.bodies[body].items[item];
  if (described.kind == Step::Item::Repeat) {
    auto [entry, exit] =
        graph.repeatPoints.lookup(planned.repeats[described.index]);
    return {entry, exit + 1};
  }
  uint32_t point =
      graph.chunks[graph.chunkOf.lookup(planned.groups[described.index])].point;
  return {point, point + 1};
}

/// The first point at which what is issued there takes memory. What is
/// prefetched is there beside what the current iteration still uses.
uint32_t OverlapChooser::firstPoint(const IssuePoint &point) const {
  if (point.slot == 0)
    return bodyPoints(point.body).first;
  auto [first, end] = itemPoints(point.body, point.slot - 1);
  bool isPrefetch = point.next && step.collectives[point.collective].origin ==
                                      Step::Origin::Ready;
  return point.atStart || isPrefetch ? end - 1 : end;
}

void OverlapChooser::addEarly(const IssuePoint &point,
                              EarlyBuffer &buffer) const {
  uint32_t begin = firstPoint(point);
  const Step::Body &body = step.bodies[point.body];
  auto [bodyBegin, bodyEnd] = bodyPoints(point.body);
  if (point.next && body.count > 1)
    buffer.also.push_back({begin, bodyEnd});
  if (point.next)
    begin = bodyBegin;
  unsigned home = step.collectives[point.collective].body;
  if (home == point.body) {
    buffer.from = std::min(buffer.from, begin);
    return;
  }
  // For the first iteration of a repeat in this body.
  unsigned inner = home;
  while (step.bodies[inner].parent != point.body)
    inner = step.bodies[inner].parent;
  uint32_t entry =
      itemPoints(point.body, step.bodies[inner].itemInParent).first;
  buffer.also.push_back({begin, entry + 1});
}

EarlyBuffers OverlapChooser::earlyBuffers(ArrayRef<Overlap> overlap) const {
  EarlyBuffers buffers;
  for (const IssuePoint &point : issuePoints(step, overlap))
    if (!point.blocks)
      addEarly(point, buffers[planned.collectives[point.collective]]);
  return buffers;
}

MemoryProfile OverlapChooser::profile(ArrayRef<Overlap> overlap) {
  EarlyBuffers buffers = earlyBuffers(overlap);
  return profiler.profile(&buffers);
}

std::vector<OverlapChooser::Choice> OverlapChooser::choices() const {
  // What may differ: the step itself, the first repeat with collectives, and
  // all others together.
  constexpr unsigned kMostSets = 3;
  std::vector<std::optional<unsigned>> setOf(step.bodies.size());
  unsigned numSets = 0;
  for (const Step::Collective &collective : step.collectives)
    if (std::optional<unsigned> &set = setOf[collective.body]; !set)
      set = numSets < kMostSets ? numSets++ : kMostSets - 1;
  unsigned numChoices = 1;
  for (unsigned set = 0; set < numSets; ++set)
    numChoices *= 3;
  std::vector<Choice> result;
  for (unsigned number = 0; number < numChoices; ++number) {
    Choice choice;
    unsigned digits[kMostSets] = {number % 3, number / 3 % 3, number / 9};
    for (const std::optional<unsigned> &set : setOf)
      choice.overlap.push_back(set ? Overlap(digits[*set]) : Overlap::Prefetch);
    choice.schedule = schedule(step, choice.overlap);
    result.push_back(std::move(choice));
  }
  llvm::stable_sort(result, [](const Choice &a, const Choice &b) {
    return a.schedule.scheduled < b.schedule.scheduled;
  });
  return result;
}

bool OverlapChooser::isSerial(const Choice &choice) const {
  return llvm::all_of(step.collectives, [&](const Step::Collective &each) {
    return choice.overlap[each.body] == Overlap::Serial;
  });
}

void OverlapChooser::choose(int64_t limit, ScheduledProgram &result) {
  std::vector<Choice> all = choices();
  Picoseconds least = all.front().schedule.scheduled;
  result.unlimited = all.front().overlap;
  auto take = [&](Choice &choice) {
    result.overlap = std::move(choice.overlap);
    result.schedule = std::move(choice.schedule);
    result.memoryCosts = result.schedule.scheduled - least;
  };
  for (Choice &choice : all) {
    result.memory = profile(choice.overlap);
    if (result.memory.peak <= limit)
      return take(choice);
  }
  // What does not fit at all is shown as it takes least.
  Choice &serial = *llvm::find_if(
      all, [&](const Choice &choice) { return isSerial(choice); });
  result.memory = profile(serial.overlap);
  take(serial);
}

} // namespace

ScheduledProgram shardc::scheduleProgram(ProgramOp program,
                                         const CollectiveModel &model,
                                         std::optional<int64_t> memoryLimit) {
  PlannedStep planned = buildStep(program, model);
  ScheduledProgram result{
      {}, {{}, 0, 0, "", program.getLoc(), {}}, {}, {}, {}, {}, {}, 0};
  OverlapChooser(program, planned)
      .choose(memoryLimit.value_or(int64_t(model.machine().hbmCapacity)),
              result);
  for (unsigned number : result.schedule.matmuls) {
    const Step::Pair &pair = planned.step.pairs[number];
    result.matmuls.push_back(
        {pair.group, pair.collective, planned.matmuls[number]});
  }
  result.groups = std::move(planned.groups);
  result.collectives = std::move(planned.collectives);
  return result;
}

void shardc::markCollectiveMatmuls(ProgramOp program,
                                   const ScheduledProgram &scheduled) {
  program->walk([](Operation *op) { op->removeAttr(kRing); });
  Builder builder(program.getContext());
  for (auto [number, matmul] : llvm::enumerate(scheduled.matmuls)) {
    Attribute mark = builder.getI64IntegerAttr(int64_t(number));
    matmul.einsum->setAttr(kRing, mark);
    scheduled.collectives[matmul.collective]->setAttr(kRing, mark);
  }
}
