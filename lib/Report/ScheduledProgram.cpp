//===- ScheduledProgram.cpp - A planned program in time -------------------===//
//
// Overlap takes memory: what is gathered early is held longer. Every body
// overlaps as much as fits beside what the others do; lifetimes depend on where
// collectives are issued, not on when they run, so that a faster network never
// changes the choice.
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

  /// As much overlap as fits, and the memory that it takes.
  std::pair<std::vector<Overlap>, MemoryProfile> choose(int64_t limit);

private:
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

std::pair<std::vector<Overlap>, MemoryProfile>
OverlapChooser::choose(int64_t limit) {
  std::vector<Overlap> overlap(step.bodies.size(), Overlap::Prefetch);
  MemoryProfile memory = profile(overlap);
  if (memory.peak <= limit || step.collectives.empty())
    return {std::move(overlap), std::move(memory)};
  for (const Step::Collective &collective : step.collectives)
    overlap[collective.body] = Overlap::Serial;
  memory = profile(overlap);
  // Repeats first: what they gain counts for every iteration.
  for (unsigned i = 1; i <= step.bodies.size() && memory.peak <= limit; ++i) {
    unsigned body = i % step.bodies.size();
    if (overlap[body] != Overlap::Serial)
      continue;
    for (Overlap how : {Overlap::Prefetch, Overlap::Ahead}) {
      overlap[body] = how;
      MemoryProfile with = profile(overlap);
      if (with.peak <= limit) {
        memory = std::move(with);
        break;
      }
      overlap[body] = Overlap::Serial;
    }
  }
  return {std::move(overlap), std::move(memory)};
}

} // namespace

ScheduledProgram shardc::scheduleProgram(ProgramOp program,
                                         const CollectiveModel &model,
                                         std::optional<int64_t> memoryLimit) {
  PlannedStep planned = buildStep(program, model);
  ScheduledProgram result{
      {}, {{}, 0, 0, "", program.getLoc(), {}}, {}, {}, {}, {}, 0};
  std::tie(result.overlap, result.memory) =
      OverlapChooser(program, planned)
          .choose(memoryLimit.value_or(int64_t(model.machine().hbmCapacity)));
  result.schedule = schedule(planned.step, result.overlap);
  std::vector<Overlap> unlimited(result.overlap.size(), Overlap::Prefetch);
  if (result.overlap != unlimited)
    result.memoryCosts =
        result.schedule.scheduled - schedule(planned.step, unlimited).scheduled;
  for (unsigned pair : result.schedule.matmuls)
    result.matmuls.push_back(
        {planned.step.pairs[pair].group, planned.step.pairs[pair].collective});
  result.groups = std::move(planned.groups);
  result.collectives = std::move(planned.collectives);
  return result;
}
