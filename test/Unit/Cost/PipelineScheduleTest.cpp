//===- PipelineScheduleTest.cpp - When a pipeline's stages run ------------===//
//
// The simulation against the schedules' closed forms and figures of papers, and
// against a longest path over constraints that are written out here. Times are
// in units of no meaning, unless a test says otherwise.
//
//===----------------------------------------------------------------------===//

#include "shardc/Cost/PipelineSchedule.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <tuple>

using namespace shardc;

namespace {

constexpr PipelineOrder gpipe{PipelineOrder::GPipe, 1};
constexpr PipelineOrder oneFOneB{PipelineOrder::OneFOneB, 1};
constexpr PipelineOrder oneFOneB2{PipelineOrder::OneFOneB2, 1};
constexpr PipelineOrder zeroBubble{PipelineOrder::ZeroBubble, 1};
constexpr PipelineOrder zeroBubble2{PipelineOrder::ZeroBubble2, 1};

constexpr PipelineOrder interleaved(int64_t chunks) {
  return {PipelineOrder::Interleaved, chunks};
}

/// Every order that can run, with two and three chunks.
std::vector<PipelineOrder> legalOrders(int64_t stages, int64_t microbatches) {
  std::vector<PipelineOrder> orders;
  for (PipelineOrder order : {gpipe, oneFOneB, oneFOneB2, interleaved(2),
                              interleaved(3), zeroBubble, zeroBubble2})
    if (whyIllegal(order, stages, microbatches, stages * order.chunks).empty())
      orders.push_back(order);
  return orders;
}

/// Equal stages, free transfers.
Pipeline equalStages(PipelineOrder order, int64_t stages, int64_t microbatches,
                     PipelineWork work) {
  Pipeline pipeline;
  pipeline.order = order;
  pipeline.microbatches = microbatches;
  PipelineStage stage;
  stage.chunks.assign(order.chunks, work);
  pipeline.stages.assign(stages, stage);
  return pipeline;
}

/// F, B and W of all kinds: equal, one much longer than the others, none of one
/// kind.
const std::vector<PipelineWork> kWorks = {
    {1, 1, 1}, {10, 10, 10}, {3, 5, 4},  {3, 4, 5},  {7, 2, 1},
    {7, 1, 2}, {1, 9, 2},    {2, 9, 1},  {1, 2, 90}, {100, 1, 1},
    {5, 5, 0}, {5, 0, 5},    {4, 12, 4}, {6, 6, 3},  {8, 1, 8},
    {2, 3, 2}, {5, 2, 6},    {5, 2, 8},  {5, 2, 50}};

std::string toText(const std::vector<PipelineItem> &items) {
  std::string text;
  for (const PipelineItem &item : items) {
    text += (text.empty() ? "" : " ") + toString(item.kind).str() +
            std::to_string(item.microbatch);
    if (item.chunk != 0)
      text += std::string(item.chunk, '\'');
  }
  return text;
}

//===----------------------------------------------------------------------===//
// A longest path, apart from the library
//===----------------------------------------------------------------------===//

/// The constraints of a step as inequalities over starts, solved by repeating
/// them until nothing changes. Orders are written here once more, in the words
/// of their sources.
class Constraints {
public:
  Constraints(const Pipeline &pipeline, int steps = 1)
      : pipeline(pipeline), p(pipeline.stages.size()), m(pipeline.microbatches),
        v(pipeline.order.chunks) {
    for (int step = 0; step < steps; ++step)
      addStep(step);
    chain();
    solve();
  }

  /// F, B, W or X, B and W as one; of one step.
  using Item = std::tuple<char, int64_t, int64_t>;
  struct Node {
    int64_t time = 0, start = 0;
    std::vector<int> after;
    int64_t end() const { return start + time; }
  };

  int64_t makespan() const {
    int64_t last = 0;
    for (const Node &node : nodes)
      last = std::max(last, node.end());
    return last;
  }
  /// From first start to last end of one stage or link.
  int64_t longestSpan() const {
    int64_t longest = 0;
    auto span = [&](const std::vector<int> &chain) {
      if (!chain.empty())
        longest = std::max(longest, nodes[chain.back()].end() -
                                        nodes[chain.front()].start);
    };
    for (const auto &[stage, chain] : ofStage)
      span(chain);
    for (const auto &[link, chain] : ofLink)
      span(chain);
    return longest;
  }
  const Node &node(int64_t stage, Item item) const {
    return nodes[items.at({0, stage, item})];
  }
  const std::vector<int> &onStage(int64_t stage) const {
    return ofStage.at(stage);
  }
  size_t transferCount() const {
    size_t count = 0;
    for (const auto &[link, chain] : ofLink)
      count += chain.size();
    return count;
  }
  const Node &at(int index) const { return nodes[index]; }
  /// Kept from the end of F to the end of the last backward item.
  int64_t kept(int64_t stage) const;

private:
  std::vector<Item> orderOfStage(int64_t s) const;
  void addStep(int step);
  void chain();
  void solve();
  int add(int64_t time) {
    nodes.push_back({time, 0, {}});
    return nodes.size() - 1;
  }
  bool isSplit() const {
    return pipeline.order.kind == PipelineOrder::ZeroBubble ||
           pipeline.order.kind == PipelineOrder::ZeroBubble2;
  }

  const Pipeline &pipeline;
  int64_t p, m, v;
  std::vector<Node> nodes;
  std::map<std::tuple<int, int64_t, Item>, int> items;
  std::map<int64_t, std::vector<int>> ofStage;
  std::map<std::pair<int64_t, int64_t>, std::vector<int>> ofLink;
};

std::vector<Constraints::Item> Constraints::orderOfStage(int64_t s) const {
  std::vector<Item> order;
  if (pipeline.order.kind == PipelineOrder::Interleaved) {
    // Narayanan et al. 2021, figure 4: forwards in groups of p microbatches
    // through chunk 0, then the same group through chunk 1, ...
    std::vector<Item> forwards, backwards;
    for (int64_t group = 0; group < m / p; ++group)
      for (int64_t c = 0; c < v; ++c)
        for (int64_t i = 0; i < p; ++i) {
          forwards.push_back({'F', group * p + i, c});
          backwards.push_back({'X', group * p + i, v - 1 - c});
        }
    size_t next = 0;
    size_t warm = std::min(m * v, 2 * (p - 1 - s) + (v - 1) * p);
    while (next < warm)
      order.push_back(forwards[next++]);
    for (const Item &backward : backwards) {
      if (next < forwards.size())
        order.push_back(forwards[next++]);
      order.push_back(backward);
    }
  } else {
    int64_t warm = 0, delay = 0;
    switch (pipeline.order.kind) {
    case PipelineOrder::GPipe:
      warm = m;
      break;
    case PipelineOrder::OneFOneB:
      warm = p - s;
      break;
    case PipelineOrder::OneFOneB2:
      warm = 2 * (p - s) - 1;
      break;
    case PipelineOrder::ZeroBubble:
      warm = p - s;
      delay = s;
      break;
    default:
      warm = 2 * p - 1 - 2 * s;
      delay = 2 * s;
    }
    int64_t f = 0, w = 0;
    while (f < std::min(m, warm))
      order.push_back({'F', f++, 0});
    for (int64_t b = 0; b < m; ++b) {
      order.push_back({isSplit() ? 'B' : 'X', b, 0});
      if (isSplit() && b >= delay)
        order.push_back({'W', w++, 0});
      if (f < m)
        order.push_back({'F', f++, 0});
    }
    while (isSplit() && w < m)
      order.push_back({'W', w++, 0});
  }
  if (!pipeline.isTraining)
    order.erase(std::remove_if(
                    order.begin(), order.end(),
                    [](const Item &item) { return std::get<0>(item) != 'F'; }),
                order.end());
  return order;
}

void Constraints::addStep(int step) {
  std::map<std::pair<int64_t, Item>, int> sent;
  for (int64_t s = 0; s < p; ++s)
    for (const Item &item : orderOfStage(s)) {
      auto [kind, i, c] = item;
      const PipelineWork &work = pipeline.stages[s].chunks[c];
      int index = add(kind == 'F'   ? work.forward
                      : kind == 'B' ? work.backward
                      : kind == 'W' ? work.weights
                                    : work.backward + work.weights);
      items[{step, s, item}] = index;
      ofStage[s].push_back(index);
      // The neighbour that receives, a chunk further where the stages wrap.
      bool leaves = kind == 'F' ? (s < p - 1 || c < v - 1)
                                : kind != 'W' && (s > 0 || c > 0);
      if (!leaves)
        continue;
      int64_t to = ((kind == 'F' ? s + 1 : s - 1) + p) % p;
      int transfer = add(to == s       ? 0
                         : kind == 'F' ? pipeline.forwardTransfer
                                       : pipeline.backwardTransfer);
      nodes[transfer].after.push_back(index);
      sent[{s, item}] = transfer;
      if (to != s)
        ofLink[{s, to}].push_back(transfer);
    }
  char backward = isSplit() ? 'B' : 'X';
  for (int64_t s = 0; s < p; ++s)
    for (const Item &item : orderOfStage(s)) {
      auto [kind, i, c] = item;
      std::vector<int> &after = nodes[items[{step, s, item}]].after;
      if (kind == 'F') {
        if (s > 0)
          after.push_back(sent.at({s - 1, {'F', i, c}}));
        else if (c > 0)
          after.push_back(sent.at({p - 1, {'F', i, c - 1}}));
      } else if (kind == 'W') {
        after.push_back(items.at({step, s, {'B', i, c}}));
      } else {
        after.push_back(items.at({step, s, {'F', i, c}}));
        if (s < p - 1)
          after.push_back(sent.at({s + 1, {backward, i, c}}));
        else if (c < v - 1)
          after.push_back(sent.at({0, {backward, i, c + 1}}));
      }
    }
}

/// One item of a stage, and one transfer of a link, after the other.
void Constraints::chain() {
  auto chainUp = [&](const std::vector<int> &chain) {
    for (size_t i = 1; i < chain.size(); ++i)
      nodes[chain[i]].after.push_back(chain[i - 1]);
  };
  for (const auto &[stage, chain] : ofStage)
    chainUp(chain);
  for (const auto &[link, chain] : ofLink)
    chainUp(chain);
}

void Constraints::solve() {
  size_t rounds = 0;
  for (bool changed = true; changed;) {
    changed = false;
    // A path has at most as many constraints as there are nodes; more rounds
    // mean a cycle, which no order may have.
    ASSERT_LE(rounds++, nodes.size()) << "the orders deadlock";
    for (Node &node : nodes)
      for (int before : node.after)
        if (nodes[before].end() > node.start) {
          node.start = nodes[before].end();
          changed = true;
        }
  }
}

int64_t Constraints::kept(int64_t stage) const {
  std::map<std::pair<int64_t, int64_t>, std::pair<int64_t, int64_t>> spans;
  for (const auto &[key, index] : items) {
    auto [step, s, item] = key;
    auto [kind, i, c] = item;
    if (step != 0 || s != stage)
      continue;
    std::pair<int64_t, int64_t> &span = spans[{i, c}];
    if (kind == 'F')
      span.first = nodes[index].end();
    else
      span.second = std::max(span.second, nodes[index].end());
  }
  int64_t most = 0;
  for (const auto &[which, span] : spans) {
    int64_t now = 0;
    for (const auto &[other, range] : spans)
      now += range.first <= span.first && span.first < range.second;
    most = std::max(most, now);
  }
  return most;
}

//===----------------------------------------------------------------------===//
// Orders
//===----------------------------------------------------------------------===//

TEST(PipelineScheduleTest, readsAndWritesOrders) {
  for (const char *text : {"gpipe", "1f1b", "1f1b(2)", "interleaved(4)",
                           "zero_bubble", "zero_bubble(2)"}) {
    std::optional<PipelineOrder> order = parsePipelineOrder(text);
    ASSERT_TRUE(order) << text;
    EXPECT_EQ(toString(*order), text);
    EXPECT_EQ(order->chunks, llvm::StringRef(text) == "interleaved(4)" ? 4 : 1);
  }
  EXPECT_EQ(parsePipelineOrder("1f1b")->kind, PipelineOrder::OneFOneB);
  EXPECT_EQ(parsePipelineOrder("zero_bubble(2)")->kind,
            PipelineOrder::ZeroBubble2);
  for (const char *text :
       {"", "auto", "1f1b(3)", "1f1b(1)", "gpipe(2)", "interleaved",
        "interleaved()", "interleaved(-2)", "interleaved(2", "interleaved(x)",
        "interleaved(99999999999999999999)", "zero_bubble(3)", "1F1B"})
    EXPECT_FALSE(parsePipelineOrder(text)) << text;
}

TEST(PipelineScheduleTest, saysWhyAnOrderIsIllegal) {
  EXPECT_EQ(whyIllegal(oneFOneB, 4, 1, 4), "");
  EXPECT_EQ(whyIllegal(interleaved(2), 4, 8, 8), "");
  EXPECT_EQ(whyIllegal(oneFOneB, 0, 1, 4),
            "a pipeline needs at least 1 stage, found 0");
  EXPECT_EQ(whyIllegal(oneFOneB, 4, 0, 4),
            "a pipeline needs at least 1 microbatch, found 0");
  EXPECT_EQ(whyIllegal(oneFOneB, 16, 8, 12),
            "a pipeline of 16 stages needs at least 16 layers, found 12");
  EXPECT_EQ(whyIllegal(interleaved(1), 4, 8, 8),
            "interleaved(1) needs at least 2 chunks of layers on each stage");
  EXPECT_EQ(whyIllegal(interleaved(2), 4, 6, 8),
            "interleaved(2) needs a number of microbatches that the 4 stages "
            "divide, found 6");
  EXPECT_EQ(whyIllegal(interleaved(8), 16, 32, 126),
            "interleaved(8) on 16 stages needs at least 128 layers, found 126");
  EXPECT_NE(whyIllegal(interleaved(INT64_MAX), 4, 8, 8), "");
}

TEST(PipelineScheduleTest, ordersByHand) {
  auto text = [](PipelineOrder order, int64_t stage, int64_t stages,
                 int64_t microbatches, bool isTraining = true) {
    return toText(orderOf(order, stage, stages, microbatches, isTraining));
  };
  EXPECT_EQ(text(gpipe, 0, 3, 2), "F0 F1 BW0 BW1");
  // w = min(4, 3 - 1) = 2.
  EXPECT_EQ(text(oneFOneB, 1, 3, 4), "F0 F1 BW0 F2 BW1 F3 BW2 BW3");
  // w = min(4, 2 (3 - 1) - 1) = 3.
  EXPECT_EQ(text(oneFOneB2, 1, 3, 4), "F0 F1 F2 BW0 F3 BW1 BW2 BW3");
  // w = 3 - 1 = 2, and W waits for one microbatch more.
  EXPECT_EQ(text(zeroBubble, 1, 3, 4), "F0 F1 B0 F2 B1 W0 F3 B2 W1 B3 W2 W3");
  // w = 2 * 3 - 1 - 2 = 3, and W waits for two.
  EXPECT_EQ(text(zeroBubble2, 1, 3, 4), "F0 F1 F2 B0 F3 B1 B2 W0 B3 W1 W2 W3");
  // All W wait where there are fewer microbatches than they wait for.
  EXPECT_EQ(text(zeroBubble, 3, 4, 2), "F0 B0 F1 B1 W0 W1");
  // Groups of two microbatches through chunk 0, then through chunk 1 (marked
  // '), backwards the other way round; 2 (2 - 1) + (2 - 1) 2 = 4 warm up.
  EXPECT_EQ(text(interleaved(2), 0, 2, 4),
            "F0 F1 F0' F1' F2 BW0' F3 BW1' F2' BW0 F3' BW1 BW2' BW3' BW2 BW3");
  EXPECT_EQ(text(interleaved(2), 1, 2, 2, false), "F0 F1 F0' F1'");
  EXPECT_EQ(text(zeroBubble2, 1, 3, 4, false), "F0 F1 F2 F3");
}

TEST(PipelineScheduleTest, ordersAreCompleteAndLegal) {
  for (int64_t p = 1; p <= 9; ++p)
    for (int64_t m = 1; m <= 9; ++m)
      for (PipelineOrder order : legalOrders(p, m)) {
        SCOPED_TRACE(toString(order) + " p=" + std::to_string(p) +
                     " m=" + std::to_string(m));
        bool isSplit = order.kind == PipelineOrder::ZeroBubble ||
                       order.kind == PipelineOrder::ZeroBubble2;
        for (int64_t s = 0; s < p; ++s) {
          std::set<std::tuple<int, int64_t, int64_t>> done;
          for (PipelineItem item : orderOf(order, s, p, m, true)) {
            EXPECT_TRUE(item.microbatch >= 0 && item.microbatch < m);
            EXPECT_TRUE(item.chunk >= 0 && item.chunk < order.chunks);
            PipelineItem::Kind needs = item.kind == PipelineItem::W
                                           ? PipelineItem::B
                                           : PipelineItem::F;
            if (item.kind != PipelineItem::F)
              EXPECT_TRUE(done.count({needs, item.microbatch, item.chunk}));
            EXPECT_TRUE(
                done.insert({item.kind, item.microbatch, item.chunk}).second);
          }
          EXPECT_EQ(int64_t(done.size()), (isSplit ? 3 : 2) * m * order.chunks);
          EXPECT_EQ(int64_t(orderOf(order, s, p, m, false).size()),
                    m * order.chunks);
        }
        // All of them run: no stage waits for ever.
        Pipeline pipeline = equalStages(order, p, m, {1, 1, 1});
        EXPECT_EQ(int64_t(simulate(pipeline, true).events.size()),
                  (isSplit ? 3 : 2) * p * m * order.chunks);
      }
}

//===----------------------------------------------------------------------===//
// Closed forms
//===----------------------------------------------------------------------===//

/// Equal stages over ranges of stages, microbatches and durations.
void forEqualStages(PipelineOrder order,
                    llvm::function_ref<void(const Pipeline &, PipelineWork,
                                            int64_t p, int64_t m)>
                        check) {
  for (int64_t p = 1; p <= 9; ++p)
    for (int64_t m = 1; m <= 20; ++m)
      for (PipelineWork work : kWorks)
        if (whyIllegal(order, p, m, p * order.chunks).empty()) {
          SCOPED_TRACE(toString(order) + " p=" + std::to_string(p) +
                       " m=" + std::to_string(m) +
                       " F=" + std::to_string(work.forward) +
                       " B=" + std::to_string(work.backward) +
                       " W=" + std::to_string(work.weights));
          check(equalStages(order, p, m, work), work, p, m);
        }
}

TEST(PipelineScheduleTest, gpipeAnd1F1BTakeTheSame) {
  // (m + p - 1) t: the last stage starts after p - 1 forwards, works for m t,
  // and p - 1 backwards follow.
  for (PipelineOrder order : {gpipe, oneFOneB, oneFOneB2})
    forEqualStages(order, [&](const Pipeline &pipeline, PipelineWork work,
                              int64_t p, int64_t m) {
      PipelineRun run = simulate(pipeline);
      int64_t t = work.forward + work.backward + work.weights;
      EXPECT_EQ(run.step, (m + p - 1) * t);
      EXPECT_EQ(run.makespan, (m + p - 1) * t);
      EXPECT_EQ(run.pipeline, run.step);
      EXPECT_NEAR(run.bubble, (p - 1.) / (m + p - 1.), 1e-12);
      for (int64_t s = 0; s < p; ++s) {
        EXPECT_EQ(run.stages[s].busy, m * t);
        EXPECT_EQ(run.stages[s].kept, order == gpipe ? m
                                      : order == oneFOneB
                                          ? std::min(m, p - s)
                                          : std::min(m, 2 * (p - s) - 1));
      }
    });
}

TEST(PipelineScheduleTest, interleavedDividesTheBubble) {
  // m t + (p - 1) t / v, where a chunk takes t / v.
  for (int64_t v : {2, 3, 5})
    forEqualStages(interleaved(v), [&](const Pipeline &pipeline,
                                       PipelineWork work, int64_t p,
                                       int64_t m) {
      PipelineRun run = simulate(pipeline);
      int64_t chunk = work.forward + work.backward + work.weights;
      EXPECT_EQ(run.step, m * v * chunk + (p - 1) * chunk);
      EXPECT_EQ(run.makespan, run.step);
      // min(m, p + (p - 1 - 2 s) / v) stages' activations, times v in chunks'.
      for (int64_t s = 0; s < p; ++s)
        EXPECT_EQ(run.stages[s].kept, std::min(m * v, p * v + (p - 1 - 2 * s)));
    });
}

TEST(PipelineScheduleTest, zeroBubbleFillsWithWeights) {
  // From standstill m t + (p - 1) (F + B) - min(p - 1, m - 1) min(B, W), if
  // min(B, W) <= F.
  forEqualStages(zeroBubble, [](const Pipeline &pipeline, PipelineWork work,
                                int64_t p, int64_t m) {
    auto [f, b, w] = work;
    PipelineRun run = simulate(pipeline);
    // min(m, p - s) wait for B, the others for W.
    for (int64_t s = 0; s < p; ++s) {
      EXPECT_EQ(run.stages[s].kept, std::min(m, p));
      std::vector<PipelineItem> items = orderOf(zeroBubble, s, p, m, true);
      EXPECT_EQ(peakKept(items, {{1, 0}}), std::min(m, p - s));
    }
    if (std::min(b, w) > f)
      return;
    int64_t t = f + b + w, fills = std::min(p - 1, m - 1);
    EXPECT_EQ(run.makespan, m * t + (p - 1) * (f + b) - fills * std::min(b, w));
    // Where W is longer than B, later stages end later, as they began later,
    // and the first one's time is the step, less than the makespan. It has
    // min(m, p) F to do until the first gradient comes after p F and p - 1 B;
    // and all that the last stage does before its last B, all F and B but only
    // max(0, m - p) W, stands between p - 1 F and p - 1 B, with one W at the
    // end.
    int64_t waits = m * t + (p - std::min(m, p)) * f + (p - 1) * b;
    int64_t trip =
        (m + p - 1) * (f + b) + (std::max<int64_t>(0, m - p) + 1) * w;
    EXPECT_EQ(run.step, std::max(waits, trip));
    // Otherwise it is the makespan.
    if (w <= b)
      EXPECT_EQ(run.step, run.makespan);
  });
}

TEST(PipelineScheduleTest, zeroBubble2HasNoneInASteadySequence) {
  // From standstill m t + (p - 1) max(F, F + B - 2 W); from one step to the
  // next m t + max(0, (p - 1) (F + B - 2 W)), if m >= 2 p - 1 and
  // min(B, W) <= F.
  forEqualStages(zeroBubble2, [](const Pipeline &pipeline, PipelineWork work,
                                 int64_t p, int64_t m) {
    auto [f, b, w] = work;
    PipelineRun run = simulate(pipeline);
    for (int64_t s = 0; s < p; ++s)
      EXPECT_EQ(run.stages[s].kept, std::min(m, 2 * p - 1));
    if (std::min(b, w) > f || m < 2 * p - 1)
      return;
    int64_t t = f + b + w;
    EXPECT_EQ(run.makespan, m * t + (p - 1) * std::max(f, f + b - 2 * w));
    EXPECT_EQ(run.step,
              m * t + std::max<int64_t>(0, (p - 1) * (f + b - 2 * w)));
    Pipeline waiting = pipeline;
    waiting.stagesWait = true;
    EXPECT_EQ(simulate(waiting).step, run.makespan);
  });
}

//===----------------------------------------------------------------------===//
// Figures of papers
//===----------------------------------------------------------------------===//

double efficiency(PipelineOrder order, int64_t stages, int64_t microbatches,
                  PipelineWork work = {1, 1, 1}) {
  return 1 - simulate(equalStages(order, stages, microbatches, work)).bubble;
}

/// The bubble over the time without one.
double bubbleOverIdeal(PipelineOrder order, int64_t stages,
                       int64_t microbatches) {
  double bubble =
      simulate(equalStages(order, stages, microbatches, {1, 1, 1})).bubble;
  return bubble / (1 - bubble);
}

TEST(PipelineScheduleTest, fourStages) {
  // One microbatch: 4 steps of 3 units on 4 stages, each busy for one. Four:
  // 4 + 3 steps, each stage busy for 4 of 7.
  for (PipelineOrder order : {gpipe, oneFOneB}) {
    EXPECT_DOUBLE_EQ(efficiency(order, 4, 1), 1. / 4);
    EXPECT_DOUBLE_EQ(efficiency(order, 4, 4), 4. / 7);
  }
  // Narayanan et al. 2021, figure 4: 4 stages, 8 microbatches, BW twice as long
  // as F, two chunks: (p - 1) t / v = 3 * 6 / 2 = 9 instead of 18 units.
  EXPECT_EQ(simulate(equalStages(oneFOneB, 4, 8, {2, 2, 2})).step, 48 + 18);
  EXPECT_EQ(simulate(equalStages(interleaved(2), 4, 8, {1, 1, 1})).step,
            48 + 9);
  // Qi et al. 2023: 4 stages, 8 microbatches. F = B = W = 1: 1F1B leaves
  // (p - 1) 3 = 9 units, ZB-H1 a third of it, (p - 1) (F + B - W), ZB-H2 none.
  EXPECT_EQ(simulate(equalStages(oneFOneB, 4, 8, {1, 1, 1})).step, 24 + 9);
  EXPECT_EQ(simulate(equalStages(zeroBubble, 4, 8, {1, 1, 1})).step, 24 + 3);
  EXPECT_EQ(simulate(equalStages(zeroBubble2, 4, 8, {1, 1, 1})).step, 24);
  // Unequal: 8 stages, 24 microbatches, F 18, B 17, W 9. ZB-H1 adds
  // 7 (18 + 17 - 9) = 182 to 24 * 44 = 1056, ZB-H2 7 (18 + 17 - 2 * 9) = 119.
  EXPECT_EQ(simulate(equalStages(zeroBubble, 8, 24, {18, 17, 9})).step,
            1056 + 182);
  EXPECT_EQ(simulate(equalStages(zeroBubble2, 8, 24, {18, 17, 9})).step,
            1056 + 119);
}

TEST(PipelineScheduleTest, publishedBubbles) {
  // GPT-3 175B as in Korthikanti et al. 2022, table 3: 8 stages, 64
  // microbatches, v = 3: (p - 1) / (v m).
  EXPECT_NEAR(bubbleOverIdeal(interleaved(3), 8, 64), 7. / (3 * 64), 1e-9);
  // Their model of 1 T parameters: 64 stages, 512 microbatches:
  // m / (m + p - 1).
  EXPECT_NEAR(efficiency(oneFOneB, 64, 512), 512. / 575, 1e-9);
  // Llama 3 405B on 16 stages: 32 sequences, then 8 chunks, then 16 sequences.
  EXPECT_NEAR(efficiency(oneFOneB, 16, 32), 32. / 47, 1e-9);
  EXPECT_NEAR(bubbleOverIdeal(interleaved(8), 16, 32), 15. / 256, 1e-9);
  EXPECT_NEAR(bubbleOverIdeal(interleaved(8), 16, 16), 15. / 128, 1e-9);
  // DeepSeek-V3, table 2: 16 stages, F = 1, B and W together 2: (p - 1) 3 = 45,
  // with any number of microbatches.
  for (int64_t m : {1, 20, 60})
    EXPECT_EQ(simulate(equalStages(oneFOneB, 16, m, {1, 1, 1})).step - 3 * m,
              45);
}

TEST(PipelineScheduleTest, publishedMemory) {
  // Microbatches that the first of 8 stages keeps, of 64: m, p, 2 p - 1.
  EXPECT_EQ(simulate(equalStages(gpipe, 8, 64, {1, 1, 1})).stages[0].kept, 64);
  EXPECT_EQ(simulate(equalStages(oneFOneB, 8, 64, {1, 1, 1})).stages[0].kept,
            8);
  EXPECT_EQ(simulate(equalStages(zeroBubble2, 8, 64, {1, 1, 1})).stages[0].kept,
            15);
}

TEST(PipelineScheduleTest, longSequencesLeaveABubbleToZeroBubble) {
  // A layer of Llama 3 405B, sequences of 131072: d FLOPs a token in matmuls, a
  // in attention, whose backward pass is 2.5 times as long and has no W:
  // (F + B - W) / t = (d + 3.5 a) / (3 d + 3.5 a) = 0.6267 of t on each stage.
  int64_t d = 2 * (2 * 16384LL * 128 * 136 + 3 * 16384LL * 53248);
  int64_t a = 2 * 131072LL * 16384;
  PipelineWork work{d + a, d + 5 * a / 2, d};
  PipelineRun run = simulate(equalStages(zeroBubble, 8, 32, work));
  double t = work.total();
  EXPECT_NEAR((run.step - 32 * t) / 7 / t, (d + 3.5 * a) / (3. * d + 3.5 * a),
              1e-9);
  EXPECT_NEAR((run.step - 32 * t) / 7 / t, 0.6267190569744597, 1e-6);
}

TEST(PipelineScheduleTest, unevenLayersOfLlama3) {
  // 126 layers on 16 stages, 32 microbatches, a layer's F 1 and BW 2. Were
  // every stage as slow as 8 layers, 47 * 24: an efficiency of
  // 126 * 3 * 32 / (16 * 47 * 24) = 0.6702.
  Pipeline pipeline = equalStages(oneFOneB, 16, 32, {8, 8, 8});
  EXPECT_EQ(simulate(pipeline).step, 47 * 24);
  // With 7 on the first and last stage the second to last, 14, is the
  // bottleneck. F before it: 7 + 13 * 8 = 111. Its own work: 32 * 24 = 768.
  // It waits for the first gradient: F0 and F1 end at 127, F0 and BW0 of the
  // last stage, 21 after F0, at 140: 13. Further rounds through the last stage,
  // 8 + 21 + 16 for two microbatches, are hidden. BW31 waits for 21 after F31,
  // of which BW30 fills 16: 5. BW before it: 222.
  for (PipelineStage *stage :
       {&pipeline.stages.front(), &pipeline.stages.back()})
    stage->chunks[0] = {7, 7, 7};
  EXPECT_EQ(simulate(pipeline).step, 111 + 768 + 13 + 5 + 222);
}

//===----------------------------------------------------------------------===//
// Transfers, updates, memory
//===----------------------------------------------------------------------===//

TEST(PipelineScheduleTest, transfersByHand) {
  // Two stages, two microbatches, F 10, BW 20, transfers of 5 forward and 15
  // backward.
  // Stage 0: F0 [0, 10), F1 [10, 20), BW0 when its gradient has come.
  // Forward: 0 in [10, 15), 1 in [20, 25).
  // Stage 1: F0 [15, 25), BW0 [25, 45), F1 [45, 55), BW1 [55, 75).
  // Backward: 0 in [45, 60), 1 in [75, 90).
  // Stage 0: BW0 [60, 80), BW1 [90, 110).
  Pipeline pipeline = equalStages(oneFOneB, 2, 2, {10, 12, 8});
  pipeline.forwardTransfer = 5;
  pipeline.backwardTransfer = 15;
  PipelineRun run = simulate(pipeline, /*withEvents=*/true);
  EXPECT_EQ(run.step, 110);
  EXPECT_EQ(run.stages[1].start, 15);
  EXPECT_EQ(run.stages[1].end, 75);
  EXPECT_EQ(run.stages[0].busy, 60);
  EXPECT_DOUBLE_EQ(run.bubble, 1 - 60. / 110);
  ASSERT_EQ(run.transfers.size(), 4u);
  EXPECT_EQ(run.transfers[1].start, 20);
  EXPECT_EQ(run.transfers[1].from, 0u);
  EXPECT_EQ(run.transfers[1].to, 1u);
  EXPECT_EQ(run.transfers[3].from, 1u);
  EXPECT_EQ(run.transfers[3].end, 90);
}

TEST(PipelineScheduleTest, transfersOfALinkQueue) {
  // 1e9 bytes in 8 microbatches over 400e9 bytes a second between 4 stages that
  // do nothing else: 312.5 us each, 8 of them on each link one after the other
  // and two more hops, 10 * 312.5 us.
  Pipeline pipeline = equalStages(gpipe, 4, 8, {0, 0, 0});
  pipeline.isTraining = false;
  pipeline.forwardTransfer = 312'500'000;
  PipelineRun run = simulate(pipeline);
  EXPECT_EQ(run.makespan, 3'125'000'000);
  // The next batch may follow after 8, while the last hops of this one run.
  EXPECT_EQ(run.step, 2'500'000'000);
  EXPECT_EQ(lowerBounds(pipeline).step, run.step);
}

TEST(PipelineScheduleTest, wrappedTransfersShareTheLinkOfTwoStages) {
  // Interleaved on two stages, F 1, BW 2 a chunk, transfers of 10: gradients
  // and wrapped activations leave stage 1 for stage 0 over one link. Chunk 1 is
  // marked '.
  // Stage 0: F0 [0, 1), F1 [1, 2). Forward: F0 [1, 11), F1 [11, 21).
  // Stage 1: F0 [11, 12), F1 [21, 22). Wrapped: F0 [12, 22), F1 [22, 32).
  // Stage 0: F0' [22, 23), F1' [32, 33), F2 [33, 34). Forward: F0' [23, 33),
  // F1' [33, 43), F2 [43, 53).
  // Stage 1: F0' [33, 34), BW0' [34, 36), F1' [43, 44), BW1' [44, 46),
  // F2 [53, 54). Back: BW0' [36, 46), BW1' [46, 56), then F2 [56, 66).
  Pipeline pipeline = equalStages(interleaved(2), 2, 4, {1, 1, 1});
  pipeline.forwardTransfer = pipeline.backwardTransfer = 10;
  PipelineRun run = simulate(pipeline, /*withEvents=*/true);
  std::vector<PipelineTransfer> back;
  for (const PipelineTransfer &transfer : run.transfers)
    if (transfer.from == 1)
      back.push_back(transfer);
  // Four wrapped activations, eight gradients.
  ASSERT_EQ(back.size(), 12u);
  int64_t starts[] = {12, 22, 36, 46, 56};
  for (size_t i = 0; i < std::size(starts); ++i)
    EXPECT_EQ(back[i].start, starts[i]);
  EXPECT_TRUE(back[4].item == (PipelineItem{PipelineItem::F, 2, 0}));
}

TEST(PipelineScheduleTest, moreForwardsInFlightHideTransfers) {
  // 8 stages, 32 microbatches, transfers of t / 15. 1F1B: the first stage has 8
  // microbatches in flight, and goes on with the 9th when the first is back,
  // after 8 t and 14 transfers. Thus 4 rounds, of whose last the other 7
  // microbatches follow: the k-th ends k t + 2 (k - 1) transfers after the
  // first, since stage p - k waits for its gradient. 39 t + 56 + 12 transfers,
  // 11.6 % more than 39 t.
  Pipeline pipeline = equalStages(oneFOneB, 8, 32, {5, 5, 5});
  pipeline.forwardTransfer = pipeline.backwardTransfer = 1;
  EXPECT_EQ(simulate(pipeline).step, 39 * 15 + 68);
  // With 15 in flight only the way to the last stage and back is left, 2.4 %.
  pipeline.order = oneFOneB2;
  EXPECT_EQ(simulate(pipeline).step, 39 * 15 + 14);
}

TEST(PipelineScheduleTest, updatesFollowTheLastItem) {
  // Two stages, one microbatch, F 1, BW 2: stage 0 in [0, 1) and [4, 6), stage
  // 1 in [1, 4). Reductions of 10 and 5, updates of 2 and 3.
  Pipeline pipeline = equalStages(oneFOneB, 2, 1, {1, 1, 1});
  pipeline.stages[0].reduce = 10;
  pipeline.stages[0].update = 2;
  pipeline.stages[1].reduce = 5;
  pipeline.stages[1].update = 3;
  // Stage 0 ends at 6 + 12 = 18, stage 1 at 4 + 8 = 12.
  PipelineRun run = simulate(pipeline);
  EXPECT_EQ(run.makespan, 18);
  EXPECT_EQ(run.step, 18);
  EXPECT_EQ(run.pipeline, 6);
  EXPECT_EQ(run.stages[1].updateStart, 9);
  EXPECT_EQ(run.stages[1].updateEnd, 12);
  EXPECT_DOUBLE_EQ(run.bubble, 0.5);
  // Together: reductions end at 16 and 9, the longest update at 16 + 3.
  pipeline.stagesWait = true;
  run = simulate(pipeline);
  EXPECT_EQ(run.step, 19);
  EXPECT_EQ(run.stages[1].updateStart, 16);
  EXPECT_EQ(run.pipeline, 6);
  // A stage that begins late has the time until then for its update: from 1 to
  // 1 + 3 + 14 = 18 is 17, where the makespan is 18.
  pipeline.stagesWait = false;
  pipeline.stages[0].reduce = pipeline.stages[0].update = 0;
  pipeline.stages[1].reduce = 14;
  pipeline.stages[1].update = 0;
  run = simulate(pipeline);
  EXPECT_EQ(run.makespan, 18);
  EXPECT_EQ(run.step, 17);
}

TEST(PipelineScheduleTest, keepsLessBetweenBAndW) {
  // ZB-H1, the second of 3 stages: F0 F1 B0 F2 B1 W0 F3 B2 W1 B3 W2 W3. With 10
  // until B and 4 until W: 20 after F1; F2: 0 waits for W, 1 and 2 for B, 24;
  // F3: 1 waits for W, 2 and 3 for B, 24.
  std::vector<PipelineItem> items = orderOf(zeroBubble, 1, 3, 4, true);
  EXPECT_EQ(peakKept(items, {{10, 4}}), 24);
  EXPECT_EQ(peakKept(items, {{1, 1}}), 3);
  // Chunks of their own sizes: F0 F1 F0' F1' and then the backward pass.
  items = orderOf(interleaved(2), 0, 2, 2, true);
  EXPECT_EQ(peakKept(items, {{10, 0}, {3, 0}}), 26);
  // Inference keeps nothing.
  EXPECT_EQ(peakKept(orderOf(gpipe, 0, 2, 2, false), {{10, 0}}), 0);
  EXPECT_EQ(peakKept(orderOf(gpipe, 0, 2, 2, true), {{INT64_MAX, 0}}),
            INT64_MAX);
}

TEST(PipelineScheduleTest, timesSaturate) {
  for (PipelineOrder order : legalOrders(4, 8)) {
    Pipeline pipeline =
        equalStages(order, 4, 8, {INT64_MAX / 2, INT64_MAX / 2, INT64_MAX / 2});
    pipeline.forwardTransfer = pipeline.backwardTransfer = INT64_MAX;
    pipeline.stages[0].update = INT64_MAX;
    PipelineRun run = simulate(pipeline);
    EXPECT_EQ(run.makespan, INT64_MAX);
    EXPECT_EQ(run.step, INT64_MAX);
    EXPECT_EQ(lowerBounds(pipeline).makespan, INT64_MAX);
  }
}

TEST(PipelineScheduleTest, runsLargePipelines) {
  // 64 stages, 512 microbatches, 8 chunks: 512 * 24 + 63 * 3.
  PipelineRun run = simulate(equalStages(interleaved(8), 64, 512, {1, 1, 1}));
  EXPECT_EQ(run.step, 512 * 24 + 63 * 3);
}

//===----------------------------------------------------------------------===//
// Random pipelines
//===----------------------------------------------------------------------===//

struct Random {
  std::mt19937 generator;
  explicit Random(unsigned seed) : generator(seed) {}
  int64_t upTo(int64_t most) { return generator() % (most + 1); }
  int64_t between(int64_t least, int64_t most) {
    return least + upTo(most - least);
  }
};

/// Uneven stages and transfers, as long as no item takes no time.
Pipeline randomPipeline(Random &random) {
  int64_t p = random.between(1, 6), m = random.between(1, 9);
  if (random.upTo(1))
    m = p * random.between(1, 3);
  std::vector<PipelineOrder> orders = legalOrders(p, m);
  Pipeline pipeline;
  pipeline.order = orders[random.upTo(orders.size() - 1)];
  pipeline.microbatches = m;
  pipeline.isTraining = random.upTo(4) != 0;
  pipeline.stagesWait = random.upTo(3) == 0;
  int64_t slowest = random.between(1, 30);
  for (int64_t s = 0; s < p; ++s) {
    PipelineStage stage;
    for (int64_t c = 0; c < pipeline.order.chunks; ++c)
      stage.chunks.push_back({random.between(1, slowest),
                              random.between(1, slowest),
                              random.between(1, slowest)});
    stage.reduce = random.upTo(40);
    stage.update = random.upTo(40);
    pipeline.stages.push_back(stage);
  }
  if (random.upTo(3) != 0) {
    pipeline.forwardTransfer = random.upTo(2 * slowest);
    pipeline.backwardTransfer = random.upTo(2 * slowest);
  }
  return pipeline;
}

std::string describe(const Pipeline &pipeline) {
  std::string text = toString(pipeline.order) +
                     " p=" + std::to_string(pipeline.stages.size()) +
                     " m=" + std::to_string(pipeline.microbatches) +
                     (pipeline.isTraining ? " training" : " inference");
  return text;
}

TEST(PipelineScheduleTest, isTheLongestPath) {
  Random random(1);
  for (int trial = 0; trial < 1500; ++trial) {
    Pipeline pipeline = randomPipeline(random);
    SCOPED_TRACE(describe(pipeline));
    Constraints expected(pipeline);
    PipelineRun run = simulate(pipeline, /*withEvents=*/true);

    // Every item and transfer, stage by stage.
    size_t index = 0;
    for (int64_t s = 0; s < int64_t(pipeline.stages.size()); ++s) {
      for (int node : expected.onStage(s)) {
        ASSERT_LT(index, run.events.size());
        const PipelineEvent &event = run.events[index++];
        EXPECT_EQ(int64_t(event.stage), s);
        EXPECT_EQ(event.start, expected.at(node).start);
        EXPECT_EQ(event.end, expected.at(node).end());
        char kind = event.item.kind == PipelineItem::BW
                        ? 'X'
                        : toString(event.item.kind).front();
        EXPECT_EQ(
            &expected.node(s, {kind, event.item.microbatch, event.item.chunk}),
            &expected.at(node));
      }
      EXPECT_EQ(run.stages[s].start,
                expected.at(expected.onStage(s).front()).start);
      EXPECT_EQ(run.stages[s].end,
                expected.at(expected.onStage(s).back()).end());
      EXPECT_EQ(run.stages[s].kept, pipeline.isTraining ? expected.kept(s) : 0);
    }
    EXPECT_EQ(index, run.events.size());
    EXPECT_EQ(run.transfers.size(), expected.transferCount());

    // Without what runs once, the step is the longest of the chains.
    Pipeline bare = pipeline;
    for (PipelineStage &stage : bare.stages)
      stage.reduce = stage.update = 0;
    EXPECT_EQ(simulate(bare).makespan, expected.makespan());
    EXPECT_EQ(simulate(bare).step, pipeline.stagesWait
                                       ? expected.makespan()
                                       : expected.longestSpan());
    EXPECT_EQ(run.pipeline, simulate(bare).step);
    // With it, by definition.
    int64_t reduced = 0, end = 0, period = run.pipeline;
    for (auto [state, stage] : llvm::zip(run.stages, pipeline.stages))
      reduced = std::max(reduced, state.end + stage.reduce);
    for (auto [state, stage] : llvm::zip(run.stages, pipeline.stages)) {
      int64_t start = pipeline.stagesWait ? reduced : state.end + stage.reduce;
      EXPECT_EQ(state.updateStart, start);
      EXPECT_EQ(state.updateEnd, start + stage.update);
      end = std::max(end, state.updateEnd);
      period = std::max(period, state.updateEnd - state.start);
    }
    EXPECT_EQ(run.makespan, end);
    EXPECT_EQ(run.step, pipeline.stagesWait ? end : period);
  }
}

TEST(PipelineScheduleTest, stepsFollowEachOtherByTheStep) {
  // Steps one after the other, each stage as early as it can: none takes longer
  // than one step more than the one before, none less than the bound.
  Random random(2);
  for (int trial = 0; trial < 300; ++trial) {
    Pipeline pipeline = randomPipeline(random);
    for (PipelineStage &stage : pipeline.stages)
      stage.reduce = stage.update = 0;
    pipeline.stagesWait = false;
    SCOPED_TRACE(describe(pipeline));
    PipelineRun run = simulate(pipeline);
    int steps = 4;
    int64_t all = Constraints(pipeline, steps).makespan();
    EXPECT_LE(all, run.makespan + (steps - 1) * run.step);
    EXPECT_GE(all, steps * lowerBounds(pipeline).step);
  }
}

TEST(PipelineScheduleTest, boundsHold) {
  Random random(3);
  for (int trial = 0; trial < 20000; ++trial) {
    Pipeline pipeline = randomPipeline(random);
    SCOPED_TRACE(describe(pipeline));
    PipelineRun run = simulate(pipeline);
    PipelineBounds bounds = lowerBounds(pipeline);
    EXPECT_LE(bounds.step, run.step);
    EXPECT_LE(bounds.makespan, run.makespan);
    EXPECT_LE(bounds.pipeline, run.pipeline);
    // Never below the rows of each stage: what comes before, and its own work.
    int64_t filled = 0;
    for (const PipelineStage &stage : pipeline.stages) {
      int64_t t = 0;
      for (const PipelineWork &work : stage.chunks)
        t += work.forward +
             (pipeline.isTraining ? work.backward + work.weights : 0);
      EXPECT_GE(bounds.makespan, filled + pipeline.microbatches * t);
      EXPECT_GE(bounds.step, pipeline.microbatches * t);
      filled += stage.chunks.front().forward;
    }
  }
}

TEST(PipelineScheduleTest, boundsAreExactForEqualStages) {
  for (PipelineOrder order : {gpipe, oneFOneB, interleaved(2), interleaved(3)})
    forEqualStages(order, [](const Pipeline &pipeline, PipelineWork, int64_t,
                             int64_t) {
      EXPECT_EQ(lowerBounds(pipeline).step, simulate(pipeline).step);
      EXPECT_EQ(lowerBounds(pipeline).makespan, simulate(pipeline).makespan);
    });
  forEqualStages(zeroBubble, [](const Pipeline &pipeline, PipelineWork work,
                                int64_t, int64_t) {
    if (work.weights <= std::min(work.forward, work.backward))
      EXPECT_EQ(lowerBounds(pipeline).step, simulate(pipeline).step);
  });
}

TEST(PipelineScheduleTest, shorterItemsNeverLengthenTheMakespan) {
  Random random(4);
  for (int trial = 0; trial < 3000; ++trial) {
    Pipeline pipeline = randomPipeline(random);
    SCOPED_TRACE(describe(pipeline));
    Picoseconds before = simulate(pipeline).makespan;
    PipelineStage &stage =
        pipeline.stages[random.upTo(pipeline.stages.size() - 1)];
    PipelineWork &work = stage.chunks[random.upTo(stage.chunks.size() - 1)];
    for (Picoseconds *time :
         {&work.forward, &work.backward, &work.weights, &stage.reduce,
          &stage.update, &pipeline.forwardTransfer, &pipeline.backwardTransfer})
      if (random.upTo(1))
        *time = random.upTo(*time);
    EXPECT_LE(simulate(pipeline).makespan, before);
  }
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

using Layers = std::vector<llvm::SmallVector<int64_t, 1>>;

std::vector<int64_t> perStage(const Layers &layers) {
  std::vector<int64_t> sums;
  for (const auto &chunks : layers)
    sums.push_back(std::accumulate(chunks.begin(), chunks.end(), int64_t(0)));
  return sums;
}

TEST(PipelineScheduleTest, layersOfLlama3) {
  // 405B: the unembedding is V D = 128256 * 16384 parameters of matmuls beside
  // a layer's 2 D H (N + K) + 3 D F: 0.66 of one. 14 stages of 8 layers and two
  // of 7 are 126; with 8 on any of the two, a stage in the middle would have 7
  // and the slowest would be no faster.
  std::vector<int64_t> expected(16, 8);
  expected.front() = expected.back() = 7;
  EXPECT_EQ(perStage(layersOfStages({126, 1000, 10, 659}, 16)), expected);
  // Without embeddings it is a tie, and first and last hold fewer.
  EXPECT_EQ(perStage(layersOfStages({126, 1000, 0, 0}, 16)), expected);
  // One layer less is the first stage's, one more goes to the last stage.
  expected.front() = 7;
  expected.back() = 8;
  EXPECT_EQ(perStage(layersOfStages({127, 1000, 0, 0}, 16)), expected);
}

TEST(PipelineScheduleTest, layersBesideALongEpilogue) {
  // LLaMA-3 8B: the unembedding is 2.41 layers, so 32 layers on 4 stages are
  // 34.41, 8.6 a stage. Nobody does better than 9 whole layers: below, 8 + 8 +
  // 8 + 6 (8.41) are 30.
  EXPECT_EQ(perStage(layersOfStages({32, 1000, 0, 2409}, 4)),
            std::vector<int64_t>({8, 9, 9, 6}));
  // An epilogue of more than all layers: the last stage has the least it may.
  EXPECT_EQ(perStage(layersOfStages({32, 10, 0, 1000}, 4)),
            std::vector<int64_t>({10, 11, 10, 1}));
  EXPECT_EQ(perStage(layersOfStages({5, 10, 7, 7}, 1)),
            std::vector<int64_t>({5}));
  // Layers that take no time are spread.
  EXPECT_EQ(perStage(layersOfStages({8, 0, 0, 0}, 4)),
            std::vector<int64_t>({2, 2, 2, 2}));
}

TEST(PipelineScheduleTest, layersOfChunks) {
  // 14 layers on 2 stages of 3 chunks, an epilogue of 2 layers: 8 and 6 + 2.
  // Stage 0: 2 2 2 and two more, not in its first chunk. Stage 1: chunks of 6
  // and 2 for the epilogue, 8 / 3: 3, 2 and 1 + 2.
  Layers layers = layersOfStages({14, 10, 0, 20}, 2, 3);
  EXPECT_EQ(perStage(layers), std::vector<int64_t>({8, 6}));
  EXPECT_EQ(layers[0], (llvm::SmallVector<int64_t, 1>{2, 3, 3}));
  EXPECT_EQ(layers[1], (llvm::SmallVector<int64_t, 1>{2, 3, 1}));
}

/// The best of all splits of `layers` over as many places as `others`: slowest
/// place first, then the documented preferences.
std::vector<int64_t> bestSplit(int64_t layers, int64_t layer, int64_t least,
                               const std::vector<int64_t> &others) {
  std::vector<int64_t> split(others.size()), best;
  std::vector<int64_t> bestKey;
  std::function<void(size_t, int64_t)> visit = [&](size_t place,
                                                   int64_t remaining) {
    if (place + 1 == others.size()) {
      split[place] = remaining;
      std::vector<int64_t> key;
      for (size_t i = 0; i < others.size(); ++i)
        key.push_back(others[i] + split[i] * layer);
      std::sort(key.rbegin(), key.rend());
      key.push_back(split.front());
      key.push_back(split.back());
      for (int64_t count : split)
        key.push_back(-count);
      if (best.empty() || key < bestKey) {
        best = split;
        bestKey = key;
      }
      return;
    }
    int64_t behind = least * (others.size() - place - 1);
    for (int64_t count = least; remaining - count >= behind; ++count) {
      split[place] = count;
      visit(place + 1, remaining - count);
    }
  };
  visit(0, layers);
  return best;
}

TEST(PipelineScheduleTest, layersAreTheBestOfAll) {
  Random random(5);
  for (int trial = 0; trial < 2000; ++trial) {
    int64_t p = random.between(1, 5), v = random.between(1, 3);
    PipelineLayers layers;
    layers.layers = p * v + random.upTo(10);
    layers.layer = random.between(1, 10);
    layers.prologue = random.upTo(3) ? random.upTo(30) : 0;
    layers.epilogue = random.upTo(3) ? random.upTo(60) : 0;
    SCOPED_TRACE(std::to_string(layers.layers) + " layers of " +
                 std::to_string(layers.layer) + " on " + std::to_string(p) +
                 " stages of " + std::to_string(v) + " chunks, prologue " +
                 std::to_string(layers.prologue) + ", epilogue " +
                 std::to_string(layers.epilogue));
    Layers found = layersOfStages(layers, p, v);
    std::vector<int64_t> others(p, 0);
    others.front() += layers.prologue;
    others.back() += layers.epilogue;
    EXPECT_EQ(perStage(found),
              bestSplit(layers.layers, layers.layer, v, others));
    for (int64_t s = 0; s < p; ++s) {
      std::vector<int64_t> ofChunks(v, 0);
      if (s == 0)
        ofChunks.front() += layers.prologue;
      if (s == p - 1)
        ofChunks.back() += layers.epilogue;
      EXPECT_EQ(std::vector<int64_t>(found[s].begin(), found[s].end()),
                bestSplit(perStage(found)[s], layers.layer, 1, ofChunks));
    }
  }
}

} // namespace
