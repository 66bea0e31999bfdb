//===- ScheduledProgram.cpp - A planned program in time -------------------===//
//
// Overlap takes memory: what is gathered early is held longer. And it takes the
// networks, so that what is gathered early may delay what is needed sooner. Of
// the ways to overlap, the fastest that fits is taken: neither more memory nor
// a faster network ever makes a step longer.
//
//===----------------------------------------------------------------------===//

#include "shardc/Schedule/ScheduledProgram.h"
#include "MemoryProfiler.h"
#include "StepBuilder.h"
#include "shardc/Dialect/Shd/IR/Segments.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

Operation *operationOf(const PlannedStep &planned, Step::Item item) {
  if (item.kind == Step::Item::Repeat)
    return planned.repeats[item.index];
  return planned.groups[item.index];
}

/// True if the kernel makes the operand of a collective: in a repeat its
/// initial value, or the value that an iteration of `next` yields.
bool isMadeBy(Operation *collective, std::optional<int64_t> kernel,
              RepeatOp next) {
  SmallVector<Value> values = {collective->getOperand(0)};
  while (!values.empty()) {
    Value value = values.pop_back_val();
    Operation *def = value.getDefiningOp();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      Block *block = argument.getOwner();
      auto repeat = cast<RepeatOp>(block->getParentOp());
      ValueRange made = repeat.getInits();
      if (repeat == next)
        made = block->getTerminator()->getOperands();
      if (argument.getArgNumber() > 0)
        values.push_back(made[argument.getArgNumber() - 1]);
    } else if (std::optional<int64_t> number = fusionGroupOf(def)) {
      if (number == kernel)
        return true;
    } else if (auto part = dyn_cast<PartOp>(def)) {
      if (UpdateOp update = updateBefore(part))
        values.push_back(update.getValue());
    } else if (!isa<RepeatOp>(def)) {
      values.append(def->operand_begin(), def->operand_end());
    }
  }
  return false;
}

/// Finds the kernels that collectives are issued behind or beside.
class IssuePlacer {
public:
  IssuePlacer(ProgramOp program, const PlannedStep &planned);

  RunSchedule run(ArrayRef<IssuePoint> points) const;

private:
  /// An item of a body, and the position of the last one of its kernel.
  struct Part {
    Operation *op;
    std::optional<int64_t> kernel;
    unsigned end;
  };

  void place(const IssuePoint &point, EarlyIssue &issue) const;

  ProgramOp program;
  const PlannedStep &planned;
  std::vector<std::vector<Part>> partsOf;
};

IssuePlacer::IssuePlacer(ProgramOp program, const PlannedStep &planned)
    : program(program), planned(planned) {
  for (const Step::Body &body : planned.step.bodies) {
    std::vector<Part> &parts = partsOf.emplace_back();
    llvm::DenseMap<int64_t, unsigned> ends;
    for (auto [position, item] : llvm::enumerate(body.items)) {
      Operation *op = operationOf(planned, item);
      parts.push_back({op, fusionGroupOf(op), unsigned(position)});
      if (parts.back().kernel)
        ends[*parts.back().kernel] = position;
    }
    for (Part &part : parts)
      if (part.kernel)
        part.end = ends[*part.kernel];
  }
}

/// Which kernel it is issued behind or beside: one that has run, and if one
/// that ends later makes what it moves, that one.
void IssuePlacer::place(const IssuePoint &point, EarlyIssue &issue) const {
  ArrayRef<Part> before = ArrayRef(partsOf[point.body]).take_front(point.slot);
  RepeatOp next = point.next ? planned.repeats[point.body] : RepeatOp();
  // Part of a kernel that goes on behind the point: it runs where that ends.
  auto isOpen = [&](const Part &part) { return part.end >= point.slot; };
  for (const Part &part : llvm::reverse(before))
    if (isOpen(part) && isMadeBy(issue.collective, part.kernel, next)) {
      issue.after = part.op;
      return;
    }
  issue.during = point.atStart || point.prefetch;
  // Behind or beside a kernel that ends later: when what ends before has.
  if (point.atStart || !point.next)
    while (!before.empty() && isOpen(before.back())) {
      before = before.drop_back();
      issue.during = false;
    }
  if (!before.empty())
    issue.after = before.back().op;
}

RunSchedule IssuePlacer::run(ArrayRef<IssuePoint> points) const {
  RunSchedule issues;
  for (const IssuePoint &point : points) {
    EarlyIssue issue;
    issue.collective = planned.collectives[point.collective];
    Operation *owner = program;
    if (RepeatOp repeat = planned.repeats[point.body])
      owner = repeat;
    issue.block = &owner->getRegion(0).front();
    issue.next = point.next;
    issue.blocks = point.blocks;
    place(point, issue);
    issues.push_back(issue);
  }
  return issues;
}

class OverlapChooser {
public:
  OverlapChooser(ProgramOp program, const PlannedStep &planned)
      : planned(planned), step(planned.step), issues(program, planned),
        profiler(program) {}

  /// Chooses the fastest overlap that fits: its schedule and its memory.
  void choose(int64_t limit, ScheduledProgram &result);

private:
  struct Choice {
    std::vector<Overlap> overlap;
    std::vector<IssuePoint> points;
    Picoseconds scheduled = 0;
  };
  /// One for all overlaps with the same issue points: that which overlaps most.
  std::vector<Choice> listChoices() const;
  /// The fastest first; of equal ones that which overlaps more.
  std::vector<Choice> choices() const;
  /// Compute waits for every collective: the least memory.
  Choice serialChoice() const;

  const PlannedStep &planned;
  const Step &step;
  IssuePlacer issues;
  MemoryProfiler profiler;
};

/// True of a repeat over two segments of which one has a single iteration:
/// collectives for the next segment and for the next iteration are then never
/// there at the same time, which the memory of one iteration cannot tell.
static bool issuesNothingAhead(RepeatOp repeat) {
  if (!repeat)
    return false;
  return llvm::any_of(repeat.getBody().getOps<RepeatOp>(), [](RepeatOp inner) {
    std::optional<Segments> segments = segmentsOf(inner);
    return segments && segments->number() == 2 &&
           segments->length - segments->shortage() == 1;
  });
}

std::vector<OverlapChooser::Choice> OverlapChooser::listChoices() const {
  // Sets of bodies that may overlap differently: the step itself, the first
  // repeat with collectives, and all others together.
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
    for (auto [body, set] : llvm::enumerate(setOf))
      choice.overlap.push_back(issuesNothingAhead(planned.repeats[body])
                                   ? Overlap::Serial
                               : set ? Overlap(digits[*set])
                                     : Overlap::Prefetch);
    choice.points = issuePoints(step, choice.overlap);
    auto same = llvm::find_if(result, [&](const Choice &known) {
      return known.points == choice.points;
    });
    if (same == result.end())
      result.push_back(std::move(choice));
    else
      same->overlap = std::min(same->overlap, choice.overlap);
  }
  return result;
}

std::vector<OverlapChooser::Choice> OverlapChooser::choices() const {
  std::vector<Choice> result = listChoices();
  for (Choice &choice : result)
    choice.scheduled = scheduledTime(step, choice.points);
  // No two choices are the same, so that this is a strict order.
  llvm::sort(result, [](const Choice &a, const Choice &b) {
    return std::tie(a.scheduled, a.overlap) < std::tie(b.scheduled, b.overlap);
  });
  return result;
}

OverlapChooser::Choice OverlapChooser::serialChoice() const {
  Choice serial;
  serial.overlap.assign(step.bodies.size(), Overlap::Prefetch);
  for (const Step::Collective &collective : step.collectives)
    serial.overlap[collective.body] = Overlap::Serial;
  serial.points = issuePoints(step, serial.overlap);
  serial.scheduled = scheduledTime(step, serial.points);
  return serial;
}

void OverlapChooser::choose(int64_t limit, ScheduledProgram &result) {
  std::vector<Choice> all = choices();
  auto issue = [&](const Choice &choice) {
    result.issues = issues.run(choice.points);
    result.memory = profiler.profile(result.issues);
  };
  issue(all.front());
  result.unlimited = all.front().overlap;
  result.unlimitedPeak = result.memory.peak;
  const Choice *chosen = &all.front();
  for (const Choice &choice : llvm::drop_begin(all)) {
    if (result.memory.peak <= limit)
      break;
    chosen = &choice;
    issue(choice);
  }
  Choice serial;
  // A step that never fits is shown with its least memory.
  if (result.memory.peak > limit) {
    serial = serialChoice();
    chosen = &serial;
    issue(serial);
  }
  result.memoryCosts = chosen->scheduled - all.front().scheduled;
  result.schedule = schedule(step, chosen->points);
  result.overlap = chosen->overlap;
}

} // namespace

ScheduledProgram shardc::scheduleProgram(ProgramOp program,
                                         const CollectiveModel &model,
                                         std::optional<int64_t> memoryLimit) {
  PlannedStep planned = buildStep(program, model);
  ScheduledProgram result{
      {}, {{}, 0, 0, "", program.getLoc(), {}}, {}, {}, {}, {}, {}, {}, {}, 0,
      0};
  OverlapChooser(program, planned)
      .choose(memoryLimit.value_or(model.machine().usableMemory()), result);
  for (unsigned number : result.schedule.matmuls) {
    const Step::Pair &pair = planned.step.pairs[number];
    result.matmuls.push_back(
        {pair.group, pair.collective, planned.matmuls[number]});
  }
  for (auto [ring, op] : llvm::zip_equal(planned.step.rings, planned.rings))
    result.rings.push_back({ring.group, op, ring.collectives, ring.devices});
  result.groups = std::move(planned.groups);
  result.collectives = std::move(planned.collectives);
  return result;
}

void shardc::markRings(ProgramOp program, const ScheduledProgram &scheduled) {
  program->walk([](Operation *op) { op->removeAttr(kRing); });
  Builder builder(program.getContext());
  int64_t number = 0;
  for (const ScheduledProgram::Matmul &matmul : scheduled.matmuls) {
    Attribute mark = builder.getI64IntegerAttr(number++);
    matmul.op->setAttr(kRing, mark);
    scheduled.collectives[matmul.collective]->setAttr(kRing, mark);
  }
  for (const ScheduledProgram::Ring &ring : scheduled.rings) {
    Attribute mark = builder.getI64IntegerAttr(number++);
    ring.op->setAttr(kRing, mark);
    for (unsigned collective : ring.collectives)
      scheduled.collectives[collective]->setAttr(kRing, mark);
  }
}
