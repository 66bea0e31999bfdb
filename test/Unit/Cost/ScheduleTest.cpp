//===- ScheduleTest.cpp - When a step's work runs -------------------------===//
//
// Small schedules by hand, and what must hold of every schedule. Times are
// picoseconds; networks are x (0) and y (1).
//
//===----------------------------------------------------------------------===//

#include "shardc/Cost/Schedule.h"
#include "gtest/gtest.h"
#include <numeric>
#include <random>

using namespace shardc;

namespace {

constexpr unsigned x = 0, y = 1;

/// A collective at the end of what `step` has so far.
unsigned addCollective(Step &step, unsigned body, Picoseconds time,
                       std::vector<unsigned> networks, Step::Origin origin,
                       unsigned producer = 0) {
  Step::Collective collective;
  collective.time = time;
  collective.networks.assign(networks.begin(), networks.end());
  collective.body = body;
  collective.position = step.bodies[body].items.size();
  collective.origin = origin;
  collective.producer = producer;
  step.collectives.push_back(collective);
  return step.collectives.size() - 1;
}

Schedule run(const Step &step, Overlap overlap = Overlap::Prefetch) {
  return schedule(step, std::vector<Overlap>(step.bodies.size(), overlap));
}

using Times = std::vector<Picoseconds>;

/// H = In * Win, Out = H * Wout with both weights gathered over x and the
/// result scattered over y.
Step feedForward() {
  Step step;
  step.numNetworks = 2;
  unsigned win = addCollective(step, 0, 10, {x}, Step::Origin::Ready);
  unsigned h = step.addGroup(0, 20);
  unsigned wout = addCollective(step, 0, 25, {x}, Step::Origin::Ready);
  unsigned out = step.addGroup(0, 30);
  addCollective(step, 0, 6, {y}, Step::Origin::Produced, /*producer=*/1);
  step.groups[h].waits = {win};
  step.groups[out].waits = {wout};
  return step;
}

TEST(ScheduleTest, gathersOverlapWithWhatDoesNotNeedThem) {
  // x: Win [0, 10), Wout [10, 35)
  // compute: H [10, 30), Out [35, 65)
  // y: Out [65, 71), the tail
  Schedule result = run(feedForward());
  EXPECT_EQ(result.device, 50);
  EXPECT_EQ(result.lower, 50); // x is busy for 35, y for 6
  EXPECT_EQ(result.upper, 91);
  EXPECT_EQ(result.scheduled, 71);
  EXPECT_EQ(result.exposed, (Times{10, 5, 6}));
}

TEST(ScheduleTest, hiddenCollectivesSlowKernelsDown) {
  // As above, 41 of collectives, 21 of them exposed; of the 20 that are hidden
  // a quarter is not for nothing. Wout is exposed for 5 and hidden for 20. With
  // perfect overlap all 41 are hidden: a quarter, rounded up, is 11.
  Step step = feedForward();
  step.slowdown = kSlowdownUnit / 4;
  Schedule result = run(step);
  EXPECT_EQ(result.device, 50);
  EXPECT_EQ(result.upper, 91);
  EXPECT_EQ(result.scheduled, 71 + 5);
  EXPECT_EQ(result.lower, 50 + 11);
  EXPECT_EQ(result.exposed, (Times{10, 5 + 5, 6}));
  EXPECT_EQ(scheduledTime(
                step, issuePoints(step, std::vector<Overlap>{Overlap::Ahead})),
            76);
  EXPECT_EQ(run(step, Overlap::Serial).scheduled, 91); // nothing is hidden
}

TEST(ScheduleTest, copiesToTheHostSlowNothingDown) {
  // Without Wout 16 of collectives are left, all exposed.
  Step step = feedForward();
  step.slowdown = kSlowdownUnit / 4;
  step.collectives[1].slowsKernels = false;
  Schedule result = run(step);
  EXPECT_EQ(result.scheduled, 71);
  EXPECT_EQ(result.lower, 50 + 16 / 4);
  EXPECT_EQ(result.exposed, (Times{10, 5, 6}));
}

TEST(ScheduleTest, waitsForTheHostHideNoCollective) {
  // Win [0, 10) and, to the host, 6 at the end are exposed, and of Wout 5; the
  // other 20 of Wout cost a quarter whatever the copy takes.
  Step step = feedForward();
  step.slowdown = kSlowdownUnit / 4;
  step.collectives[2].slowsKernels = false;
  for (Picoseconds copy : {6, 600}) {
    step.collectives[2].time = copy;
    Schedule result = run(step);
    EXPECT_EQ(result.scheduled, 65 + copy + 5);
    EXPECT_EQ(result.exposed, (Times{10, 5 + 5, copy}));
    std::vector<Overlap> overlap = {Overlap::Prefetch};
    EXPECT_EQ(scheduledTime(step, issuePoints(step, overlap)),
              result.scheduled);
  }
}

TEST(ScheduleTest, aheadStartsWithTheGroupBefore) {
  // Wout begins when H begins, at 10, which is when x is free anyway.
  EXPECT_EQ(run(feedForward(), Overlap::Ahead).scheduled, 71);
  // With Wout on y: at once it is [0, 25) and hidden until H ends at 30; ahead
  // [10, 35), 5 of them exposed.
  Step step = feedForward();
  step.collectives[1].networks = {y};
  EXPECT_EQ(run(step).scheduled, 10 + 20 + 30 + 6);
  EXPECT_EQ(run(step, Overlap::Ahead).scheduled, 10 + 20 + 5 + 30 + 6);
}

TEST(ScheduleTest, serialIsTheUpperBound) {
  Schedule result = run(feedForward(), Overlap::Serial);
  EXPECT_EQ(result.scheduled, result.upper);
  EXPECT_EQ(result.exposed, (Times{10, 25, 6}));
}

TEST(ScheduleTest, aNetworkRunsCollectivesInTheOrderOfIssue) {
  // a [0, 10) makes the operand of slow (x, 50) and quick (x and y, 5), b
  // [10, 30) reads neither, c needs quick: slow [10, 60), quick [60, 65), c
  // [65, 75). The compute stream waits from 30 on, for slow until 60.
  Step step;
  step.numNetworks = 2;
  step.addGroup(0, 10);
  addCollective(step, 0, 50, {x}, Step::Origin::Produced, 0);
  unsigned quick = addCollective(step, 0, 5, {x, y}, Step::Origin::Produced, 0);
  step.addGroup(0, 20);
  unsigned c = step.addGroup(0, 10);
  step.groups[c].waits = {quick};
  Schedule result = run(step);
  EXPECT_EQ(result.scheduled, 75);
  EXPECT_EQ(result.exposed, (Times{30, 5}));
}

TEST(ScheduleTest, anIterationEndsWhenItsAwaitedCollectivesHave) {
  // Of 3 iterations each, a and b take 10; x moves for 25 what a makes: [10,
  // 35), and the iteration ends 15 after b does. 3 * 35 in all.
  Step step;
  step.numNetworks = 1;
  unsigned body = step.addRepeat(0, 3);
  step.addGroup(body, 10);
  unsigned out = addCollective(step, body, 25, {x}, Step::Origin::Produced, 0);
  step.addGroup(body, 10);
  EXPECT_EQ(run(step).scheduled, 3 * 25 + 10); // beside the next iterations
  step.bodies[body].awaited = {out};
  Schedule result = run(step);
  EXPECT_EQ(result.scheduled, 3 * 35);
  EXPECT_EQ(result.exposed, (Times{3 * 15}));
}

TEST(ScheduleTest, collectivesOnOthersResultsWaitForThem) {
  // a [0, 10), reduce_scatter over x [10, 14), all_gather of that over y [14,
  // 21), b [21, 24).
  Step step;
  step.numNetworks = 2;
  step.addGroup(0, 10);
  unsigned reduce = addCollective(step, 0, 4, {x}, Step::Origin::Produced, 0);
  unsigned gather = addCollective(step, 0, 7, {y}, Step::Origin::Produced, 0);
  step.collectives[gather].after = {reduce};
  unsigned b = step.addGroup(0, 3);
  step.groups[b].waits = {gather};
  Schedule result = run(step);
  EXPECT_EQ(result.scheduled, 24);
  EXPECT_EQ(result.exposed, (Times{4, 7}));
}

/// A repeat whose two groups each gather their weight over x.
Step repeated(int64_t count, Picoseconds gather1, Picoseconds gather2,
              Picoseconds group1 = 20, Picoseconds group2 = 30) {
  Step step;
  step.numNetworks = 2;
  unsigned body = step.addRepeat(0, count);
  unsigned w1 = addCollective(step, body, gather1, {x}, Step::Origin::Ready);
  unsigned a = step.addGroup(body, group1);
  unsigned w2 = addCollective(step, body, gather2, {x}, Step::Origin::Ready);
  unsigned b = step.addGroup(body, group2);
  step.groups[a].waits = {w1};
  step.groups[b].waits = {w2};
  return step;
}

TEST(ScheduleTest, whatMovesTwoResultsIsIssuedBehindBoth) {
  // c needs the sum of what a makes and of a weight. Ahead, the weight is
  // gathered when b begins, and the sum cannot be issued before that.
  Step step;
  step.numNetworks = 2;
  step.addGroup(0, 10);
  unsigned gather = addCollective(step, 0, 4, {x}, Step::Origin::Ready, 0);
  unsigned sum = addCollective(step, 0, 7, {y}, Step::Origin::Produced, 0);
  step.collectives[sum].after = {gather};
  step.addGroup(0, 20);
  unsigned c = step.addGroup(0, 3);
  step.groups[c].waits = {sum};
  std::vector<IssuePoint> points = issuePoints(step, {Overlap::Ahead});
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].collective, gather);
  EXPECT_EQ(points[1].collective, sum);
  for (const IssuePoint &point : points) {
    EXPECT_EQ(point.slot, 2u);
    EXPECT_TRUE(point.atStart);
  }
  // a [0, 10), the gather [10, 14), the sum [14, 21), b [10, 30), c [30, 33).
  EXPECT_EQ(run(step, Overlap::Ahead).scheduled, 33);
}

TEST(ScheduleTest, weightsOfARepeatAreGatheredInTheIterationBefore) {
  // x: W1 [0, 10), W2 [10, 25)
  // first iteration: a [10, 30), b [30, 60); W1 of the next is issued at 30, W2
  // at 60: x: W1 [30, 40), W2 [60, 75)
  // second: a [60, 80), b [80, 110); third: a [110, 130), b [130, 160)
  Schedule result = run(repeated(3, 10, 15));
  EXPECT_EQ(result.device, 150);
  EXPECT_EQ(result.scheduled, 160);
  EXPECT_EQ(result.exposed, (Times{10, 0}));
}

TEST(ScheduleTest, withoutPrefetchGathersStartOneGroupAhead) {
  // W1 [0, 10), a [10, 30) and during it W2 [10, 25), b [30, 60) and during it
  // W1 [30, 40), ...: hidden as well
  EXPECT_EQ(run(repeated(3, 10, 15), Overlap::Ahead).scheduled, 160);
  // Gathers of 40 and 10 around groups of 20 and 30. Ahead: W1 is [0, 40), a
  // [40, 60), W2 [40, 50), b [60, 90), W1 [60, 100), a [100, 120): 10 more in
  // each further iteration.
  EXPECT_EQ(run(repeated(3, 40, 10), Overlap::Ahead).scheduled,
            90 + 2 * (10 + 50));
  // Prefetched: W1 [0, 40), W2 [40, 50), a [40, 60), b [60, 90); W1 [60, 100),
  // W2 [100, 110), a [100, 120): the same, as W1 cannot start before its use
  // ends.
  EXPECT_EQ(run(repeated(3, 40, 10)).scheduled, 90 + 2 * (10 + 50));
  // Four groups of 10, the first of which gathers 25. Prefetched during the
  // other three it is hidden; one group ahead 15 are exposed.
  Step step;
  step.numNetworks = 1;
  unsigned body = step.addRepeat(0, 3);
  unsigned w = addCollective(step, body, 25, {x}, Step::Origin::Ready);
  for (unsigned i = 0; i < 4; ++i)
    step.addGroup(body, 10);
  step.groups[0].waits = {w};
  EXPECT_EQ(run(step).scheduled, 25 + 3 * 40);
  EXPECT_EQ(run(step, Overlap::Ahead).scheduled, 25 + 3 * 40 + 2 * 15);
}

TEST(ScheduleTest, thisIterationsCollectivesComeBeforeTheNextOnes) {
  // b waits for a's all_reduce (5), which is issued with the gather of the next
  // iteration's weight (100), after a: the all_reduce runs first.
  Step step;
  step.numNetworks = 1;
  unsigned body = step.addRepeat(0, 2);
  unsigned w = addCollective(step, body, 100, {x}, Step::Origin::Ready);
  unsigned a = step.addGroup(body, 10);
  unsigned reduce =
      addCollective(step, body, 5, {x}, Step::Origin::Produced, 0);
  unsigned b = step.addGroup(body, 20);
  step.groups[a].waits = {w};
  step.groups[b].waits = {reduce};
  // W [0, 100), a [100, 110), all_reduce [110, 115), b [115, 135), W [115,
  // 215), a [215, 225), all_reduce [225, 230), b [230, 250)
  EXPECT_EQ(run(step).scheduled, 250);
  EXPECT_EQ(run(step).exposed, (Times{100 + 80, 10}));
}

TEST(ScheduleTest, carriedValuesLinkIterations) {
  // Each iteration's group waits for the all_reduce of the one before; the
  // first one's operand is there. The last all_reduce is the tail.
  Step step;
  step.numNetworks = 1;
  unsigned body = step.addRepeat(0, 3);
  unsigned a = step.addGroup(body, 10);
  unsigned reduce =
      addCollective(step, body, 4, {x}, Step::Origin::Produced, 0);
  step.groups[a].waits = {reduce};
  Schedule result = run(step);
  EXPECT_EQ(result.scheduled, 42);
  EXPECT_EQ(result.exposed, (Times{12}));
  // A gather of the carried value itself, of 2: the first before the repeat,
  // the last one's result is not gathered.
  unsigned gather = addCollective(step, body, 2, {x}, Step::Origin::Carried, 0);
  step.collectives[gather].position = 0;
  step.collectives[gather].after = {reduce};
  step.groups[a].waits = {gather};
  EXPECT_EQ(run(step).scheduled, 3 * (2 + 10 + 4));
}

TEST(ScheduleTest, whatWaitsForThisIterationIsNotIssuedInTheOneBefore) {
  // A sum (15, on y) of a carried value and of a weight that is gathered (2, on
  // x) when a (10) starts: it ends 17 later, and b (20) waits for it.
  Step step;
  step.numNetworks = 2;
  unsigned body = step.addRepeat(0, 3);
  step.addGroup(body, 10);
  unsigned gather = addCollective(step, body, 2, {x}, Step::Origin::Ready);
  unsigned sum = addCollective(step, body, 15, {y}, Step::Origin::Carried, 1);
  step.collectives[sum].after = step.collectives[sum].afterHere = {gather};
  unsigned b = step.addGroup(body, 20);
  step.groups[b].waits = {gather, sum};
  Schedule result = run(step, Overlap::Ahead);
  EXPECT_EQ(result.scheduled, 3 * (2 + 15 + 20));
  EXPECT_EQ(result.exposed, (Times{0, 3 * 7}));
}

TEST(ScheduleTest, aRepeatMayOnlyMoveValues) {
  // Each iteration gathers what the one before handed on, and a weight that
  // nothing uses: all on x, one after the other.
  Step step;
  step.numNetworks = 1;
  unsigned body = step.addRepeat(0, 3);
  addCollective(step, body, 4, {x}, Step::Origin::Carried);
  addCollective(step, body, 2, {x}, Step::Origin::Ready);
  for (Overlap how : {Overlap::Prefetch, Overlap::Ahead, Overlap::Serial})
    EXPECT_EQ(run(step, how).scheduled, 3 * (4 + 2));
}

TEST(ScheduleTest, longRepeatsGoOnAsTheyDid) {
  // As above: 10 to fill, then 50 an iteration.
  Schedule result = run(repeated(1000, 10, 15));
  EXPECT_EQ(result.scheduled, 10 + 1000 * 50);
  EXPECT_EQ(result.exposed, (Times{10, 0}));
  // Bound by the network: 100 an iteration. The first b waits until both
  // weights are there, at 100; then x never idles, and b follows the last.
  result = run(repeated(1000, 40, 60));
  EXPECT_EQ(result.scheduled, 1000 * 100 + 30);
  EXPECT_EQ(std::accumulate(result.exposed.begin(), result.exposed.end(),
                            Picoseconds(0)),
            result.scheduled - result.device);
}

TEST(ScheduleTest, nothingWaitsForReductionsButTheEnd) {
  // Reductions of 25 behind groups of 10, 100 times: compute ends at 1000, x at
  // 10 + 2500.
  Step step;
  step.numNetworks = 1;
  unsigned body = step.addRepeat(0, 100);
  step.addGroup(body, 10);
  addCollective(step, body, 25, {x}, Step::Origin::Produced, 0);
  Schedule result = run(step);
  EXPECT_EQ(result.scheduled, 10 + 2500);
  EXPECT_EQ(result.exposed, (Times{1510}));
}

TEST(ScheduleTest, collectiveMatmulOverlapsThePair) {
  // A gather of 12 over 4 devices feeds a matmul of 20: max(12, 20) + 12 / 4 =
  // 23 rather than 32. Its reduction of 8 would save less: 28 - (20 + 2).
  Step step;
  step.numNetworks = 2;
  unsigned before = step.addGroup(0, 5);
  unsigned gather =
      addCollective(step, 0, 12, {x}, Step::Origin::Produced, before);
  unsigned matmul = step.addGroup(0, 20);
  step.groups[matmul].waits = {gather};
  unsigned reduce = addCollective(step, 0, 8, {x}, Step::Origin::Produced, 1);
  Schedule plain = run(step);
  EXPECT_EQ(plain.scheduled, 5 + 12 + 20 + 8);
  step.pairs = {{matmul, gather, /*feeds=*/true, 4},
                {matmul, reduce, /*feeds=*/false, 4}};
  Schedule paired = run(step);
  EXPECT_EQ(paired.scheduled, 5 + 23 + 8);
  EXPECT_EQ(paired.matmuls, std::vector<unsigned>{0});
  EXPECT_EQ(paired.matmulsSave, 9);
  EXPECT_EQ(paired.exposed, (Times{3, 8}));
  // Where another group hides the gather, nothing is decomposed.
  Step hidden = feedForward();
  hidden.pairs = {{1, 1, /*feeds=*/true, 4}};
  EXPECT_TRUE(run(hidden).matmuls.empty());
}

TEST(ScheduleTest, chunksOfAPairSlowNothingDown) {
  // A gather of 12 over 4 devices feeds a matmul of 20: 23 in chunks, 3 of them
  // exposed, and a half of the 9 that are hidden costs nothing. Beside the
  // matmul, another gather of 8 is hidden behind the group before, which takes
  // 10 and loses a half of the 8: 10 + 23 + 4.
  Step step;
  step.numNetworks = 2;
  step.slowdown = kSlowdownUnit / 2;
  unsigned before = step.addGroup(0, 10);
  unsigned hidden = addCollective(step, 0, 8, {y}, Step::Origin::Ready, 0);
  unsigned gather =
      addCollective(step, 0, 12, {x}, Step::Origin::Produced, before);
  unsigned matmul = step.addGroup(0, 20);
  step.groups[matmul].waits = {hidden, gather};
  step.pairs = {{matmul, gather, /*feeds=*/true, 4}};
  Schedule result = run(step);
  EXPECT_EQ(result.matmuls, std::vector<unsigned>{0});
  EXPECT_EQ(result.scheduled, 10 + 23 + 4);
  EXPECT_EQ(result.exposed, (Times{4, 3}));
  EXPECT_EQ(
      scheduledTime(step,
                    issuePoints(step, std::vector<Overlap>{Overlap::Prefetch})),
      37);
}

TEST(ScheduleTest, aPairIsAsLongAsItsLongerPartAndAChunk) {
  // A gather of 50 feeds a matmul of 20 over 4: 50 + 20 / 4 = 55, and 35 of
  // them are not the matmul's.
  Step step;
  step.numNetworks = 1;
  unsigned gather = addCollective(step, 0, 50, {x}, Step::Origin::Ready);
  unsigned matmul = step.addGroup(0, 20);
  step.groups[matmul].waits = {gather};
  step.pairs = {{matmul, gather, /*feeds=*/true, 4}};
  Schedule result = run(step);
  EXPECT_EQ(result.scheduled, 55);
  EXPECT_EQ(result.exposed, (Times{35}));
}

TEST(ScheduleTest, aRingRunsWhatTravelsBesideItsGroup) {
  // Keys of 6 and values of 8 travel around 4 devices while attention takes 20:
  // max(20, 14 + 20 / 4) = 20. At 30 and 40 they take longer: 70 + 20 / 4 = 75,
  // of which 55 are waited for, in the proportion of 3 to 4.
  auto ringOf = [](Picoseconds keys, Picoseconds values) {
    Step step;
    step.numNetworks = 1;
    unsigned before = step.addGroup(0, 5);
    unsigned k = addCollective(step, 0, keys, {x}, Step::Origin::Produced, 0);
    unsigned v = addCollective(step, 0, values, {x}, Step::Origin::Ready);
    unsigned attention = step.addGroup(0, 20);
    step.groups[attention].waits = {k, v};
    step.rings = {{attention, {k, v}, 4}};
    EXPECT_EQ(before, 0u);
    return run(step);
  };
  Schedule hidden = ringOf(6, 8);
  EXPECT_EQ(hidden.scheduled, 5 + 20);
  EXPECT_EQ(hidden.exposed, (Times{0, 0}));
  EXPECT_EQ(hidden.upper, 5 + 20 + 14);
  Schedule bound = ringOf(30, 40);
  EXPECT_EQ(bound.scheduled, 5 + 75);
  EXPECT_EQ(bound.exposed, (Times{23, 32}));
  EXPECT_EQ(bound.lower, 70);
}

TEST(ScheduleTest, aRingWaitsForTheNetworkAndForWhatItMoves) {
  // A reshard of 10 makes the keys; another collective of 30 has the network,
  // issued before. The ring starts at 40, and takes max(8, 6 + 8 / 2) = 10.
  Step step;
  step.numNetworks = 1;
  unsigned reshard = addCollective(step, 0, 10, {x}, Step::Origin::Ready);
  unsigned other = addCollective(step, 0, 30, {x}, Step::Origin::Ready);
  unsigned keys = addCollective(step, 0, 6, {x}, Step::Origin::Ready);
  step.collectives[keys].after = {reshard};
  unsigned attention = step.addGroup(0, 8);
  step.groups[attention].waits = {keys};
  step.rings = {{attention, {keys}, 2}};
  Schedule result = run(step);
  EXPECT_EQ(result.scheduled, 40 + 10);
  EXPECT_EQ(result.exposed[reshard], 10);
  EXPECT_EQ(result.exposed[other], 30);
  EXPECT_EQ(result.exposed[keys], 2);
}

TEST(ScheduleTest, theTimelineShowsOneIteration) {
  Schedule result = run(repeated(1000, 10, 15));
  ASSERT_EQ(result.timeline.sections.size(), 1u);
  const Timeline::Section &section = result.timeline.sections[0];
  EXPECT_EQ(section.body, 1u);
  // The seventh of twelve: 10 + 6 * 50.
  EXPECT_EQ(section.iteration, 6);
  EXPECT_EQ(section.start, 310);
  EXPECT_EQ(section.end, 360);
}

//===----------------------------------------------------------------------===//
// Properties
//===----------------------------------------------------------------------===//

class RandomStep {
public:
  explicit RandomStep(uint64_t seed) : random(seed) {}

  Step make(int64_t longest) {
    Step step;
    step.numNetworks = 1 + draw(3);
    addItems(step, 0, longest, 2);
    step.slowdown = 20 * draw(3);
    for (Step::Collective &collective : step.collectives)
      collective.slowsKernels = draw(4) != 0;
    return step;
  }

  /// One repeat of groups and collectives, no pairs.
  Step makeRepeat(int64_t count) {
    Step step;
    step.numNetworks = 1 + draw(3);
    addItems(step, step.addRepeat(0, count), /*longest=*/1, /*depth=*/0);
    step.pairs.clear();
    return step;
  }

  Overlap overlap() { return Overlap(draw(3)); }
  unsigned draw(unsigned below) { return random() % below; }

private:
  void addItems(Step &step, unsigned body, int64_t longest, unsigned depth);
  void addMoves(Step &step, unsigned body);

  std::mt19937_64 random;
};

/// Up to two collectives before the next item of a body.
void RandomStep::addMoves(Step &step, unsigned body) {
  unsigned items = step.bodies[body].items.size();
  for (unsigned i = draw(3); i > 0; --i) {
    std::vector<unsigned> networks;
    for (unsigned network = 0; network < step.numNetworks; ++network)
      if (draw(2))
        networks.push_back(network);
    if (networks.empty())
      networks.push_back(draw(step.numNetworks));
    Step::Origin origin = items > 0 && draw(3)   ? Step::Origin::Produced
                          : body > 0 && !draw(4) ? Step::Origin::Carried
                                                 : Step::Origin::Ready;
    unsigned producer = origin == Step::Origin::Produced ? draw(items) : items;
    unsigned index =
        addCollective(step, body, draw(40), networks, origin, producer);
    if (index == 0 || draw(3) != 0)
      continue;
    const Step::Collective &earlier = step.collectives[index - 1];
    bool isAlike = earlier.origin == origin && earlier.producer == producer;
    bool isReady = earlier.origin == Step::Origin::Ready &&
                   origin == Step::Origin::Carried;
    if (earlier.body == body && (isAlike || isReady)) {
      step.collectives[index].after.push_back(index - 1);
      step.collectives[index].afterHere.push_back(index - 1);
    }
  }
}

void RandomStep::addItems(Step &step, unsigned body, int64_t longest,
                          unsigned depth) {
  unsigned items = 1 + draw(5);
  for (unsigned i = 0; i < items; ++i) {
    unsigned firstMove = step.collectives.size();
    addMoves(step, body);
    if (depth > 0 && draw(4) == 0) {
      unsigned inner = step.addRepeat(body, 1 + draw(longest));
      addItems(step, inner, longest, depth - 1);
      continue;
    }
    unsigned group = step.addGroup(body, draw(50));
    for (unsigned move = firstMove; move < step.collectives.size(); ++move)
      if (draw(3))
        step.groups[group].waits.push_back(move);
    if (!step.collectives.empty() && draw(2))
      step.groups[group].waits.push_back(draw(step.collectives.size()));
    for (unsigned move : step.groups[group].waits)
      if (draw(2))
        step.pairs.push_back({group, move, /*feeds=*/true, 2 + draw(6)});
  }
  // What is carried is made within the body.
  for (Step::Collective &collective : step.collectives)
    if (collective.body == body && collective.origin == Step::Origin::Carried)
      collective.producer = std::min(collective.producer, items - 1);
}

void expectConsistent(const Step &step, const Schedule &result) {
  EXPECT_LE(result.lower, result.scheduled);
  EXPECT_LE(result.scheduled, result.upper);
  EXPECT_LE(result.upper, Picoseconds(1 + step.numNetworks) * result.lower);
  Picoseconds sum = result.device;
  for (auto [exposed, collective] :
       llvm::zip_equal(result.exposed, step.collectives)) {
    EXPECT_GE(exposed, 0);
    EXPECT_LE(exposed, collective.time * step.runs(collective.body));
    sum += exposed;
  }
  EXPECT_EQ(sum, result.scheduled);
}

TEST(ScheduleProperties, boundsAndExposedTimeAddUp) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    RandomStep random(seed);
    Step step = random.make(/*longest=*/40);
    std::vector<Overlap> overlap;
    for (size_t i = 0; i < step.bodies.size(); ++i)
      overlap.push_back(random.overlap());
    SCOPED_TRACE(seed);
    Schedule result = schedule(step, overlap);
    expectConsistent(step, result);
    Schedule again = schedule(step, overlap);
    EXPECT_EQ(result.scheduled, again.scheduled);
    EXPECT_EQ(result.exposed, again.exposed);
    EXPECT_EQ(result.scheduled,
              scheduledTime(step, issuePoints(step, overlap)));
    if (testing::Test::HasFailure())
      return;
  }
}

TEST(ScheduleProperties, fasterNetworksAndOperationsNeverHurt) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    RandomStep random(seed);
    Step step = random.make(/*longest=*/12);
    std::vector<Overlap> overlap;
    for (size_t i = 0; i < step.bodies.size(); ++i)
      overlap.push_back(random.overlap());
    Picoseconds before = schedule(step, overlap).scheduled;
    for (Step::Collective &collective : step.collectives)
      collective.time -= random.draw(collective.time + 1);
    Picoseconds after = schedule(step, overlap).scheduled;
    EXPECT_LE(after, before) << seed;
    for (Step::Group &group : step.groups)
      group.time -= random.draw(group.time + 1);
    EXPECT_LE(schedule(step, overlap).scheduled, after) << seed;
    if (testing::Test::HasFailure())
      return;
  }
}

/// A repeat of groups and collectives, every iteration of it, as a longest path
/// through all of them: collectives in the order of (the group after whose end
/// they are issued, not before those whose results they move; iteration;
/// number).
Picoseconds simulateInFull(const Step &step) {
  const Step::Body &body = step.bodies[1];
  const auto numGroups = int64_t(body.items.size());
  std::vector<UseRange> uses = useRanges(step);
  struct Run {
    int64_t position, iteration;
    unsigned collective;
    bool operator<(const Run &other) const {
      return std::tie(position, iteration, collective) <
             std::tie(other.position, other.iteration, other.collective);
    }
  };
  std::vector<Run> runs;
  for (int64_t i = 0; i < body.count; ++i) {
    std::vector<int64_t> positions;
    for (unsigned c = 0; c < step.collectives.size(); ++c) {
      const Step::Collective &collective = step.collectives[c];
      int64_t after = uses[c].last;
      if (collective.origin == Step::Origin::Carried)
        after = std::max<int64_t>(after, collective.producer);
      int64_t position = i == 0 ? -1 : (i - 1) * numGroups + after;
      if (collective.origin == Step::Origin::Produced)
        position = i * numGroups + collective.producer;
      for (unsigned earlier : collective.after)
        position = std::max(position, positions[earlier]);
      positions.push_back(position);
      runs.push_back({position, i, c});
    }
  }
  std::sort(runs.begin(), runs.end());

  std::vector<Picoseconds> free(step.numNetworks, 0),
      ends(step.collectives.size(), 0);
  Picoseconds now = 0, latest = 0;
  auto next = runs.begin();
  for (int64_t position = -1; position < body.count * numGroups; ++position) {
    if (position >= 0) {
      const Step::Group &group =
          step.groups[body.items[position % numGroups].index];
      for (unsigned collective : group.waits)
        now = std::max(now, ends[collective]);
      now += group.time;
    }
    for (; next != runs.end() && next->position == position; ++next) {
      const Step::Collective &collective = step.collectives[next->collective];
      Picoseconds start = now;
      for (unsigned earlier : collective.after)
        start = std::max(start, ends[earlier]);
      for (unsigned network : collective.networks)
        start = std::max(start, free[network]);
      Picoseconds end = start + collective.time;
      for (unsigned network : collective.networks)
        free[network] = end;
      ends[next->collective] = end;
      latest = std::max(latest, end);
    }
  }
  return std::max(now, latest);
}

TEST(ScheduleTest, oneIterationHasAShorterRepeat) {
  // Ten iterations as segments of 4, 4 and 2, each followed by a group. An
  // iteration's collective runs before the next one: 10 (5 + 2) + 3 * 7.
  for (bool isFirst : {false, true}) {
    Step step;
    step.numNetworks = 1;
    unsigned segments = step.addRepeat(0, 3);
    unsigned inner = step.addRepeat(segments, 4);
    step.bodies[inner].shortage = 2;
    step.bodies[inner].isFirstShort = isFirst;
    step.addGroup(inner, 5);
    addCollective(step, inner, 2, {x}, Step::Origin::Produced, 0);
    step.addGroup(segments, 7);
    EXPECT_EQ(step.runs(inner), 10);
    EXPECT_EQ(run(step, Overlap::Serial).device, 71);
    EXPECT_EQ(run(step, Overlap::Serial).scheduled, 91);
    // Beyond the iterations that are simulated: 19 of 4, one of 2.
    step.bodies[segments].count = 20;
    EXPECT_EQ(run(step, Overlap::Serial).scheduled, 78 * 7 + 20 * 7);
  }
}

TEST(ScheduleProperties, repeatsAreAsIfSimulatedInFull) {
  unsigned exact = 0, all = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    RandomStep random(seed);
    Step step = random.makeRepeat(1 + int64_t(seed % 12));
    EXPECT_EQ(run(step).scheduled, simulateInFull(step)) << seed;
    if (testing::Test::HasFailure())
      return;
    // Longer ones are extrapolated: exact where the seventh iteration and those
    // after it take equally long.
    step.bodies[1].count = 13 + int64_t(seed % 100);
    double full = double(simulateInFull(step));
    double scheduled = double(run(step).scheduled);
    EXPECT_NEAR(scheduled, full, 0.02 * full + 1) << seed;
    ++all;
    exact += scheduled == full;
  }
  EXPECT_GT(exact, all * 9 / 10);
}

TEST(ScheduleProperties, serialScheduleIsTheSum) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    RandomStep random(seed);
    Step step = random.make(/*longest=*/30);
    step.pairs.clear();
    Schedule result = run(step, Overlap::Serial);
    EXPECT_EQ(result.scheduled, result.upper) << seed;
  }
}

} // namespace
