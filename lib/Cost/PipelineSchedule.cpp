//===- PipelineSchedule.cpp - When a pipeline's stages run ----------------===//
//
// The orders of the schedules, and their simulation: every stage runs on until
// it needs an input that has not been sent, and goes on when it has. An item's
// times do not depend on which stage the simulation turns to first.
//
//===----------------------------------------------------------------------===//

#include "shardc/Cost/PipelineSchedule.h"
#include "shardc/Cost/Saturating.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cassert>

using namespace shardc;

//===----------------------------------------------------------------------===//
// Orders
//===----------------------------------------------------------------------===//

namespace {

/// The orders, as data. Stage s of p warms up with some forwards; then, for
/// each microbatch i: the backward pass of i, the weights' gradients of an
/// earlier one if they are apart, and the forward pass that comes next. With
/// `depth` d, d (p - s) - (d - 1) forwards are in flight, and W waits for d s
/// microbatches; with depth 0, all forwards are.
struct OrderRule {
  PipelineOrder::Kind kind;
  llvm::StringLiteral name;
  int64_t depth;
  bool isSplit;
};

constexpr OrderRule kRules[] = {
    {PipelineOrder::GPipe, "gpipe", 0, false},
    {PipelineOrder::OneFOneB, "1f1b", 1, false},
    {PipelineOrder::OneFOneB2, "1f1b(2)", 2, false},
    {PipelineOrder::Interleaved, "interleaved", 1, false},
    {PipelineOrder::ZeroBubble, "zero_bubble", 1, true},
    {PipelineOrder::ZeroBubble2, "zero_bubble(2)", 2, true},
};

const OrderRule &ruleOf(PipelineOrder order) {
  const OrderRule &rule = kRules[order.kind];
  assert(rule.kind == order.kind && "rules stand in the order of the kinds");
  return rule;
}

/// Forwards before the first backward item.
int64_t warmUp(PipelineOrder order, int64_t stage, int64_t stages,
               int64_t microbatches) {
  int64_t behind = stages - 1 - stage;
  if (order.kind == PipelineOrder::Interleaved)
    return std::min(microbatches * order.chunks,
                    2 * behind + (order.chunks - 1) * stages);
  int64_t depth = ruleOf(order).depth;
  return depth == 0 ? microbatches : std::min(microbatches, depth * behind + 1);
}

/// Microbatches whose B runs before W of the first: 0 where both are one.
int64_t weightsDelay(PipelineOrder order, int64_t stage) {
  const OrderRule &rule = ruleOf(order);
  return rule.isSplit ? rule.depth * stage : 0;
}

/// The k-th forward of an interleaved order, or its k-th backward item: groups
/// of as many microbatches as stages go through the chunks in turn.
PipelineItem interleavedItem(PipelineItem::Kind kind, int64_t k, int64_t stages,
                             int64_t chunks) {
  int64_t perGroup = stages * chunks;
  int64_t chunk = k % perGroup / stages;
  int64_t microbatch = stages * (k / perGroup) + k % stages;
  return {kind, microbatch,
          kind == PipelineItem::F ? chunk : chunks - 1 - chunk};
}

std::vector<PipelineItem> interleavedItems(PipelineOrder order, int64_t stage,
                                           int64_t stages,
                                           int64_t microbatches) {
  int64_t count = microbatches * order.chunks;
  int64_t warm = warmUp(order, stage, stages, microbatches);
  std::vector<PipelineItem> items;
  items.reserve(2 * count);
  auto add = [&](PipelineItem::Kind kind, int64_t k) {
    if (k < count)
      items.push_back(interleavedItem(kind, k, stages, order.chunks));
  };
  for (int64_t k = 0; k < warm; ++k)
    add(PipelineItem::F, k);
  for (int64_t k = 0; k < count; ++k) {
    add(PipelineItem::F, warm + k);
    add(PipelineItem::BW, k);
  }
  return items;
}

std::vector<PipelineItem> plainItems(PipelineOrder order, int64_t stage,
                                     int64_t stages, int64_t microbatches) {
  bool isSplit = ruleOf(order).isSplit;
  int64_t warm = warmUp(order, stage, stages, microbatches);
  int64_t delay = weightsDelay(order, stage);
  std::vector<PipelineItem> items;
  items.reserve((isSplit ? 3 : 2) * microbatches);
  auto add = [&](PipelineItem::Kind kind, int64_t microbatch) {
    if (microbatch >= 0 && microbatch < microbatches)
      items.push_back({kind, microbatch, 0});
  };
  for (int64_t i = 0; i < warm; ++i)
    add(PipelineItem::F, i);
  for (int64_t i = 0; i < microbatches; ++i) {
    add(isSplit ? PipelineItem::B : PipelineItem::BW, i);
    if (isSplit)
      add(PipelineItem::W, i - delay);
    add(PipelineItem::F, i + warm);
  }
  if (isSplit)
    for (int64_t i = std::max<int64_t>(0, microbatches - delay);
         i < microbatches; ++i)
      add(PipelineItem::W, i);
  return items;
}

} // namespace

std::string shardc::toString(PipelineOrder order) {
  std::string text = ruleOf(order).name.str();
  if (order.kind == PipelineOrder::Interleaved)
    text += "(" + std::to_string(order.chunks) + ")";
  return text;
}

std::optional<PipelineOrder> shardc::parsePipelineOrder(llvm::StringRef text) {
  for (const OrderRule &rule : kRules) {
    if (rule.kind != PipelineOrder::Interleaved) {
      if (text == rule.name)
        return PipelineOrder{rule.kind, 1};
      continue;
    }
    llvm::StringRef chunks = text;
    int64_t count = 0;
    if (chunks.consume_front(rule.name) && chunks.consume_front("(") &&
        chunks.consume_back(")") && llvm::all_of(chunks, llvm::isDigit) &&
        !chunks.getAsInteger(10, count))
      return PipelineOrder{rule.kind, count};
  }
  return std::nullopt;
}

std::string shardc::whyIllegal(PipelineOrder order, int64_t stages,
                               int64_t microbatches, int64_t layers) {
  std::string name = toString(order);
  auto number = [](int64_t value) { return std::to_string(value); };
  if (stages < 1)
    return "a pipeline needs at least 1 stage, found " + number(stages);
  if (microbatches < 1)
    return "a pipeline needs at least 1 microbatch, found " +
           number(microbatches);
  if (layers < stages)
    return "a pipeline of " + number(stages) + " stages needs at least " +
           number(stages) + " layers, found " + number(layers);
  if (order.kind != PipelineOrder::Interleaved)
    return "";
  if (order.chunks < 2)
    return name + " needs at least 2 chunks of layers on each stage";
  if (microbatches % stages != 0)
    return name + " needs a number of microbatches that the " + number(stages) +
           " stages divide, found " + number(microbatches);
  int64_t needed = saturatingMultiply(stages, order.chunks);
  if (layers < needed)
    return name + " on " + number(stages) + " stages needs at least " +
           number(needed) + " layers, found " + number(layers);
  return "";
}

llvm::StringRef shardc::toString(PipelineItem::Kind kind) {
  switch (kind) {
  case PipelineItem::F:
    return "F";
  case PipelineItem::B:
    return "B";
  case PipelineItem::W:
    return "W";
  case PipelineItem::BW:
    return "BW";
  }
  llvm_unreachable("unknown kind of item");
}

std::vector<PipelineItem> shardc::orderOf(PipelineOrder order, int64_t stage,
                                          int64_t stages, int64_t microbatches,
                                          bool isTraining) {
  std::vector<PipelineItem> items =
      order.kind == PipelineOrder::Interleaved
          ? interleavedItems(order, stage, stages, microbatches)
          : plainItems(order, stage, stages, microbatches);
  if (!isTraining)
    llvm::erase_if(items, [](const PipelineItem &item) {
      return item.kind != PipelineItem::F;
    });
  return items;
}

//===----------------------------------------------------------------------===//
// Durations
//===----------------------------------------------------------------------===//

Picoseconds PipelineWork::total() const {
  return saturatingAdd(forward, saturatingAdd(backward, weights));
}

Picoseconds PipelineStage::perMicrobatch() const {
  Picoseconds sum = 0;
  for (const PipelineWork &work : chunks)
    sum = saturatingAdd(sum, work.total());
  return sum;
}

/// The time of an item of this kind.
static Picoseconds timeOf(PipelineItem::Kind kind, const PipelineWork &work) {
  switch (kind) {
  case PipelineItem::F:
    return work.forward;
  case PipelineItem::B:
    return work.backward;
  case PipelineItem::W:
    return work.weights;
  case PipelineItem::BW:
    return saturatingAdd(work.backward, work.weights);
  }
  llvm_unreachable("unknown kind of item");
}

/// One microbatch's time on a stage: without training, its forwards.
static Picoseconds perMicrobatch(const Pipeline &pipeline,
                                 const PipelineStage &stage) {
  if (pipeline.isTraining)
    return stage.perMicrobatch();
  Picoseconds sum = 0;
  for (const PipelineWork &work : stage.chunks)
    sum = saturatingAdd(sum, work.forward);
  return sum;
}

//===----------------------------------------------------------------------===//
// Simulation
//===----------------------------------------------------------------------===//

namespace {

class Simulation {
public:
  Simulation(const Pipeline &pipeline, bool withEvents)
      : pipeline(pipeline), withEvents(withEvents),
        numStages(pipeline.stages.size()),
        numVirtual(numStages * pipeline.order.chunks) {}

  PipelineRun run();

private:
  /// One direction between two stages.
  struct Link {
    std::optional<Picoseconds> start;
    Picoseconds end = 0;
  };
  static constexpr Picoseconds kNotSent = -1;

  void prepare();
  void runStage(unsigned stage);
  void runItem(unsigned stage, PipelineItem item);
  void send(unsigned stage, PipelineItem item, Picoseconds ready);
  Picoseconds transfer(unsigned from, unsigned to, PipelineItem item,
                       Picoseconds ready);
  Picoseconds &inputOf(unsigned virtualStage, PipelineItem item);
  unsigned virtualOf(unsigned stage, PipelineItem item) const {
    return item.chunk * numStages + stage;
  }
  void finish();
  void runUpdates();
  Picoseconds longestSpan() const;

  const Pipeline &pipeline;
  bool withEvents;
  unsigned numStages, numVirtual;
  PipelineRun result;

  std::vector<std::vector<PipelineItem>> orders;
  /// Each stage's next item, and whether it waits for the input of it.
  std::vector<size_t> next;
  std::vector<bool> waits;
  /// Stages that can go on.
  std::vector<unsigned> runnable;
  /// When the input of each F, and of each B or BW, arrives: by microbatch and
  /// virtual stage.
  std::vector<Picoseconds> activations, gradients;
  /// From each stage to the next one and to the one before, the last one being
  /// before the first. Between two stages both are one link.
  std::vector<Link> links;
  std::vector<std::vector<PipelineEvent>> events;
  std::vector<std::vector<PipelineTransfer>> transfers;
};

} // namespace

void Simulation::prepare() {
  for (unsigned stage = 0; stage != numStages; ++stage) {
    assert(int64_t(pipeline.stages[stage].chunks.size()) ==
               pipeline.order.chunks &&
           "a stage needs an entry for each of its chunks");
    orders.push_back(orderOf(pipeline.order, stage, numStages,
                             pipeline.microbatches, pipeline.isTraining));
  }
  next.assign(numStages, 0);
  waits.assign(numStages, false);
  links.resize(2 * numStages);
  events.resize(numStages);
  transfers.resize(numStages);
  result.stages.resize(numStages);
  activations.assign(size_t(numVirtual) * pipeline.microbatches, kNotSent);
  if (pipeline.isTraining)
    gradients = activations;
}

Picoseconds &Simulation::inputOf(unsigned virtualStage, PipelineItem item) {
  std::vector<Picoseconds> &inputs =
      item.kind == PipelineItem::F ? activations : gradients;
  return inputs[size_t(item.microbatch) * numVirtual + virtualStage];
}

/// Sends over the link between two stages, and returns when it has arrived.
Picoseconds Simulation::transfer(unsigned from, unsigned to, PipelineItem item,
                                 Picoseconds ready) {
  if (from == to)
    return ready;
  Link &link = links[2 * from + (to == (from + 1) % numStages ? 0 : 1)];
  Picoseconds start = std::max(ready, link.end);
  if (!link.start)
    link.start = start;
  link.end = saturatingAdd(start, item.kind == PipelineItem::F
                                      ? pipeline.forwardTransfer
                                      : pipeline.backwardTransfer);
  if (withEvents)
    transfers[from].push_back({from, to, item, start, link.end});
  return link.end;
}

/// Sends an item's output to the virtual stage that needs it, if one does.
void Simulation::send(unsigned stage, PipelineItem item, Picoseconds ready) {
  bool isForward = item.kind == PipelineItem::F;
  unsigned from = virtualOf(stage, item);
  if (item.kind == PipelineItem::W || from == (isForward ? numVirtual - 1 : 0))
    return;
  unsigned to = isForward ? from + 1 : from - 1;
  unsigned receiver = to % numStages;
  inputOf(to, item) = transfer(stage, receiver, item, ready);
  if (waits[receiver]) {
    waits[receiver] = false;
    runnable.push_back(receiver);
  }
}

void Simulation::runItem(unsigned stage, PipelineItem item) {
  PipelineRun::Stage &state = result.stages[stage];
  unsigned place = virtualOf(stage, item);
  // The program's input and the loss are there; the loss of a microbatch
  // comes from an earlier item of the same stage.
  bool needsInput = item.kind == PipelineItem::F   ? place != 0
                    : item.kind == PipelineItem::W ? false
                                                   : place != numVirtual - 1;
  Picoseconds start =
      needsInput ? std::max(state.end, inputOf(place, item)) : state.end;
  Picoseconds time =
      timeOf(item.kind, pipeline.stages[stage].chunks[item.chunk]);
  if (next[stage] == 0)
    state.start = start;
  state.end = saturatingAdd(start, time);
  state.busy = saturatingAdd(state.busy, time);
  if (withEvents)
    events[stage].push_back({stage, item, start, state.end});
  send(stage, item, state.end);
}

/// Runs a stage until it ends or its next item's input has not been sent.
void Simulation::runStage(unsigned stage) {
  const std::vector<PipelineItem> &items = orders[stage];
  for (; next[stage] != items.size(); ++next[stage]) {
    PipelineItem item = items[next[stage]];
    unsigned place = virtualOf(stage, item);
    bool isFirst = item.kind == PipelineItem::W ||
                   place == (item.kind == PipelineItem::F ? 0 : numVirtual - 1);
    if (!isFirst && inputOf(place, item) == kNotSent) {
      waits[stage] = true;
      return;
    }
    runItem(stage, item);
  }
}

/// The longest time from first start to end of a stage's items or of a link.
Picoseconds Simulation::longestSpan() const {
  Picoseconds longest = 0;
  for (const PipelineRun::Stage &stage : result.stages)
    longest = std::max(longest, stage.end - stage.start);
  for (const Link &link : links)
    longest = std::max(longest, link.end - link.start.value_or(0));
  return longest;
}

/// Reductions after each stage's last item, then updates.
void Simulation::runUpdates() {
  Picoseconds reduced = 0;
  for (auto [state, stage] : llvm::zip(result.stages, pipeline.stages)) {
    state.updateStart = saturatingAdd(state.end, stage.reduce);
    reduced = std::max(reduced, state.updateStart);
  }
  for (auto [state, stage] : llvm::zip(result.stages, pipeline.stages)) {
    if (pipeline.stagesWait)
      state.updateStart = reduced;
    state.updateEnd = saturatingAdd(state.updateStart, stage.update);
    result.makespan = std::max(result.makespan, state.updateEnd);
  }
}

void Simulation::finish() {
  runUpdates();
  Picoseconds slowest = 0;
  std::vector<PipelineKept> one(pipeline.order.chunks, {1, 1});
  for (unsigned stage = 0; stage != numStages; ++stage) {
    slowest =
        std::max(slowest, perMicrobatch(pipeline, pipeline.stages[stage]));
    result.stages[stage].kept = peakKept(orders[stage], one);
    result.pipeline = std::max(result.pipeline, result.stages[stage].end);
  }
  result.step = result.makespan;
  if (!pipeline.stagesWait) {
    result.pipeline = result.step = longestSpan();
    for (const PipelineRun::Stage &stage : result.stages)
      result.step = std::max(result.step, stage.updateEnd - stage.start);
  }
  if (result.pipeline > 0) {
    double work = saturatingMultiply(pipeline.microbatches, slowest);
    result.bubble = std::max(0., 1 - work / result.pipeline);
  }
  for (const std::vector<PipelineEvent> &ofStage : events)
    llvm::append_range(result.events, ofStage);
  for (const std::vector<PipelineTransfer> &ofStage : transfers)
    llvm::append_range(result.transfers, ofStage);
}

PipelineRun Simulation::run() {
  prepare();
  for (unsigned stage = numStages; stage-- != 0;)
    runnable.push_back(stage);
  while (!runnable.empty()) {
    unsigned stage = runnable.back();
    runnable.pop_back();
    runStage(stage);
  }
  assert(llvm::none_of(waits, [](bool waits) { return waits; }) &&
         "the order of a stage waits for an item that never runs");
  finish();
  return std::move(result);
}

PipelineRun shardc::simulate(const Pipeline &pipeline, bool withEvents) {
  return Simulation(pipeline, withEvents).run();
}

std::vector<int64_t> shardc::keptAt(llvm::ArrayRef<PipelineItem> items,
                                    llvm::ArrayRef<PipelineKept> chunks) {
  // Sums of one kind are counted, so that what is freed is what was added, even
  // where a sum saturates.
  struct Count {
    int64_t backward = 0, weights = 0;
  };
  llvm::SmallVector<Count, 8> counts(chunks.size());
  auto sum = [&] {
    int64_t kept = 0;
    for (auto [count, chunk] : llvm::zip(counts, chunks)) {
      kept = saturatingAdd(
          kept, saturatingMultiply(count.backward, chunk.untilBackward));
      kept = saturatingAdd(
          kept, saturatingMultiply(count.weights, chunk.untilWeights));
    }
    return kept;
  };
  std::vector<int64_t> kept(items.size(), 0);
  bool isTraining = llvm::any_of(items, [](const PipelineItem &item) {
    return item.kind != PipelineItem::F;
  });
  if (!isTraining)
    return kept;
  for (auto [item, now] : llvm::zip_equal(items, kept)) {
    Count &count = counts[item.chunk];
    switch (item.kind) {
    case PipelineItem::F:
      ++count.backward;
      now = sum();
      break;
    case PipelineItem::B:
      --count.backward;
      ++count.weights;
      now = sum();
      break;
    case PipelineItem::BW:
      now = sum();
      --count.backward;
      break;
    case PipelineItem::W:
      now = sum();
      --count.weights;
      break;
    }
  }
  return kept;
}

int64_t shardc::peakKept(llvm::ArrayRef<PipelineItem> items,
                         llvm::ArrayRef<PipelineKept> chunks) {
  std::vector<int64_t> kept = keptAt(items, chunks);
  return kept.empty() ? 0 : *llvm::max_element(kept);
}

//===----------------------------------------------------------------------===//
// Lower bounds
//===----------------------------------------------------------------------===//

namespace {

/// Rows of stages in turn. The first item of each stage is F of microbatch 0 in
/// chunk 0, its last B that of the last microbatch in chunk 0, in every order:
/// from the first start of a stage, a later stage fills, does all that it does
/// before its last B, and drains.
class Bounds {
public:
  explicit Bounds(const Pipeline &pipeline)
      : pipeline(pipeline), numStages(pipeline.stages.size()),
        ends(numStages, 0), spans(numStages, 0) {}

  PipelineBounds run();

private:
  void boundTraining();
  void boundInference();
  Picoseconds transfersOfLink() const;
  Picoseconds hop(Picoseconds time) const { return numStages == 1 ? 0 : time; }
  Picoseconds forwardHop() const { return hop(pipeline.forwardTransfer); }
  Picoseconds backwardHop() const { return hop(pipeline.backwardTransfer); }

  const Pipeline &pipeline;
  int64_t numStages;
  /// The last end of each stage's items, and the time from first start to it.
  std::vector<Picoseconds> ends, spans;
};

} // namespace

void Bounds::boundTraining() {
  bool isSplit = ruleOf(pipeline.order).isSplit;
  Picoseconds drained = 0;
  for (int64_t stage = numStages; stage-- != 0;) {
    const PipelineStage &current = pipeline.stages[stage];
    const PipelineWork &work = current.chunks.front();
    int64_t last = isSplit ? std::min(pipeline.microbatches,
                                      weightsDelay(pipeline.order, stage) + 1)
                           : 0;
    // Up to the end of the last B: all items but the W behind it, or the way
    // to the next stage and back.
    Picoseconds sum = saturatingMultiply(
        pipeline.microbatches, saturatingAdd(work.forward, work.backward));
    if (isSplit)
      sum = saturatingAdd(
          sum, saturatingMultiply(pipeline.microbatches - last, work.weights));
    else
      sum = saturatingMultiply(pipeline.microbatches, current.perMicrobatch());
    if (stage + 1 != numStages) {
      drained =
          saturatingAdd(drained, saturatingAdd(work.forward, forwardHop()));
      drained = saturatingAdd(
          drained,
          saturatingAdd(
              backwardHop(),
              timeOf(isSplit ? PipelineItem::B : PipelineItem::BW, work)));
    }
    drained = std::max(drained, sum);
    spans[stage] =
        saturatingAdd(drained, saturatingMultiply(last, work.weights));
  }
  Picoseconds filled = 0;
  for (int64_t stage = 0; stage != numStages; ++stage) {
    ends[stage] = saturatingAdd(filled, spans[stage]);
    filled = saturatingAdd(
        filled, saturatingAdd(pipeline.stages[stage].chunks.front().forward,
                              forwardHop()));
  }
}

void Bounds::boundInference() {
  Picoseconds filled = 0, passed = 0;
  for (int64_t stage = 0; stage != numStages; ++stage) {
    const PipelineStage &current = pipeline.stages[stage];
    spans[stage] = saturatingMultiply(pipeline.microbatches,
                                      perMicrobatch(pipeline, current));
    if (stage != 0)
      passed = saturatingAdd(
          passed, saturatingAdd(forwardHop(), current.chunks.back().forward));
    passed = std::max(passed, saturatingAdd(filled, spans[stage]));
    ends[stage] = passed;
    filled = saturatingAdd(
        filled, saturatingAdd(current.chunks.front().forward, forwardHop()));
  }
}

/// All transfers of the link between two stages, in the slower direction.
Picoseconds Bounds::transfersOfLink() const {
  Picoseconds time = forwardHop();
  if (pipeline.isTraining)
    time = std::max(time, backwardHop());
  return saturatingMultiply(
      time, saturatingMultiply(pipeline.microbatches, pipeline.order.chunks));
}

PipelineBounds Bounds::run() {
  pipeline.isTraining ? boundTraining() : boundInference();
  PipelineBounds bounds;
  bounds.pipeline = transfersOfLink();
  bounds.step = bounds.makespan = bounds.pipeline;
  Picoseconds reduced = 0, update = 0;
  for (int64_t stage = 0; stage != numStages; ++stage) {
    const PipelineStage &current = pipeline.stages[stage];
    Picoseconds tail = saturatingAdd(current.reduce, current.update);
    bounds.pipeline = std::max(
        bounds.pipeline, pipeline.stagesWait ? ends[stage] : spans[stage]);
    bounds.makespan =
        std::max(bounds.makespan, saturatingAdd(ends[stage], tail));
    bounds.step = std::max(bounds.step, saturatingAdd(spans[stage], tail));
    reduced = std::max(reduced, saturatingAdd(ends[stage], current.reduce));
    update = std::max(update, current.update);
  }
  if (pipeline.stagesWait)
    bounds.step = bounds.makespan =
        std::max(bounds.makespan, saturatingAdd(reduced, update));
  return bounds;
}

PipelineBounds shardc::lowerBounds(const Pipeline &pipeline) {
  return Bounds(pipeline).run();
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

namespace {

/// Layers over places that have something else to do, at least `least` on each.
/// Places are in order of preference where times are equal.
class LayerSplit {
public:
  LayerSplit(int64_t layers, Picoseconds layer, int64_t least,
             llvm::ArrayRef<Picoseconds> others)
      : layers(layers), layer(std::max<Picoseconds>(1, layer)), least(least),
        others(others) {}

  std::vector<int64_t> run() const;

private:
  /// The most layers that a place finishes within `time`, but not fewer than
  /// it must hold.
  int64_t within(size_t place, Picoseconds time) const {
    return std::max(least, (time - others[place]) / layer);
  }
  int64_t allWithin(Picoseconds time) const {
    int64_t sum = 0;
    for (size_t place = 0; place != others.size(); ++place)
      sum = saturatingAdd(sum, within(place, time));
    return sum;
  }
  Picoseconds bottleneck() const;

  int64_t layers;
  Picoseconds layer;
  int64_t least;
  llvm::ArrayRef<Picoseconds> others;
};

} // namespace

/// The least time in which the places together finish all layers: by bisection.
Picoseconds LayerSplit::bottleneck() const {
  Picoseconds low = 0;
  Picoseconds high = saturatingAdd(saturatingMultiply(layers, layer),
                                   *llvm::max_element(others));
  while (low < high) {
    Picoseconds middle = low + (high - low) / 2;
    if (allWithin(middle) >= layers)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/// Within a picosecond less than the bottleneck too few layers are done, so all
/// of these are placed; each that remains goes where it ends at the bottleneck.
std::vector<int64_t> LayerSplit::run() const {
  Picoseconds time = bottleneck();
  std::vector<int64_t> split(others.size());
  int64_t remaining = layers - allWithin(time - 1);
  for (size_t place = 0; place != others.size(); ++place) {
    split[place] = within(place, time - 1);
    if (remaining > 0 && within(place, time) > split[place]) {
      ++split[place];
      --remaining;
    }
  }
  return split;
}

/// Splits over places in their order; of equal ones the first holds fewest,
/// then the last.
static std::vector<int64_t> splitLayers(int64_t layers, Picoseconds layer,
                                        int64_t least,
                                        llvm::ArrayRef<Picoseconds> others) {
  // By preference: the middle, the last, the first.
  size_t count = others.size();
  std::vector<Picoseconds> rotated(count);
  for (size_t place = 0; place != count; ++place)
    rotated[place] = others[(place + 1) % count];
  std::vector<int64_t> split = LayerSplit(layers, layer, least, rotated).run();
  std::vector<int64_t> result(count);
  for (size_t place = 0; place != count; ++place)
    result[(place + 1) % count] = split[place];
  return result;
}

std::vector<llvm::SmallVector<int64_t, 1>>
shardc::layersOfStages(const PipelineLayers &layers, int64_t stages,
                       int64_t chunks) {
  assert(stages >= 1 && chunks >= 1 &&
         layers.layers >= saturatingMultiply(stages, chunks) &&
         "each chunk needs a layer");
  std::vector<Picoseconds> others(stages, 0);
  others.front() = layers.prologue;
  others.back() = saturatingAdd(others.back(), layers.epilogue);
  std::vector<int64_t> ofStages =
      splitLayers(layers.layers, layers.layer, chunks, others);

  std::vector<llvm::SmallVector<int64_t, 1>> result;
  for (int64_t stage = 0; stage != stages; ++stage) {
    std::vector<Picoseconds> ofChunks(chunks, 0);
    if (stage == 0)
      ofChunks.front() = layers.prologue;
    if (stage == stages - 1)
      ofChunks.back() = saturatingAdd(ofChunks.back(), layers.epilogue);
    std::vector<int64_t> split =
        splitLayers(ofStages[stage], layers.layer, 1, ofChunks);
    result.emplace_back(split.begin(), split.end());
  }
  return result;
}
