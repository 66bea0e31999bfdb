//===- NetworkTest.cpp - The network against the explicit program ---------===//
//
// For any legal assignment the network's entries sum to the explicit program's
// time to the picosecond, and its memory rows to the explicit program's memory
// at every point.
//
//===----------------------------------------------------------------------===//

#include "Assignments.h"
#include "Plans.h"
#include "RandomProgram.h"
#include "RandomPrograms.h"
#include "SmallPrograms.h"
#include "TrainingSteps.h"
#include "shardc/Optimizer/TimeRows.h"
#include "shardc/Schedule/ScheduledProgram.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace shardc;
using namespace shardc::test;
using solver::Label;

namespace {

/// How many assignments of each program.
unsigned numAssignments(unsigned usual) {
  return setting("SHARDC_TEST_ASSIGNMENTS", usual);
}

std::string describe(const PlanNetwork &network, ArrayRef<Label> assignment,
                     Mesh mesh) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (auto [value, variable] :
       llvm::zip(network.graph.values, network.values)) {
    const StoredLabel &label = variable.labels[assignment[variable.variable]];
    std::vector<std::string> names(variable.layouts[label.layout].rank(), "i");
    os << value.value.getLoc() << " begin " << value.begin << " first "
       << value.firstRead << " end " << value.end << ": "
       << toString(mesh, variable.layouts[label.layout], names);
    if (Label copy =
            variable.copies.empty() ? 0 : assignment[variable.copyVariable])
      os << " copy " << toString(mesh, variable.copies[copy - 1], names);
    if (label.inlined)
      os << " inlined";
    os << '\n';
  }
  return text;
}

/// Of a row alone, or of none.
RowWeights noWeights() {
  RowWeights weights;
  weights.device = weights.collectives = 0;
  return weights;
}

/// Chains of plans seen so far: no schedule of any plan is shorter than one, in
/// the order of the text or in any.
struct Chains {
  Chains(const PlanNetwork &network, const TimeRows &times, ChainOrders orders,
         bool matmulsOverlap = false)
      : times(times),
        finder(network.graph, network.linkEdges, {orders, matmulsOverlap}) {}

  static constexpr unsigned kMost = 40;
  const TimeRows &times;
  ChainFinder finder;
  std::vector<Chain> chains = {};

  void add(ArrayRef<Label> assignment) {
    for (bool withLoads : {false, true})
      for (Chain &chain : times.longestChains(finder, assignment, withLoads)) {
        if (chains.size() >= kMost || llvm::is_contained(chains, chain))
          continue;
        RowWeights weights = noWeights();
        weights.chain = chain;
        PartialProblem row = times.combine(weights, times.allLabels(), {});
        EXPECT_EQ(*evaluate(row.problem, *row.restrict(assignment)).cost +
                      row.constant,
                  times.lengthOf(chain, assignment));
        chains.push_back(std::move(chain));
      }
  }
  Picoseconds longest(ArrayRef<Label> assignment) const {
    Picoseconds longest = 0;
    for (const Chain &chain : chains)
      longest = std::max(longest, times.lengthOf(chain, assignment));
    return longest;
  }
};

/// The network's rows, each as a problem of its own.
struct PureRows {
  PartialProblem device, collectives;
  std::vector<PartialProblem> networks;

  PureRows(const TimeRows &times, unsigned numNetworks) {
    auto row = [&](const RowWeights &weights) {
      return times.combine(weights, times.allLabels(), {});
    };
    RowWeights weights = noWeights();
    weights.device = 1;
    device = row(weights);
    std::swap(weights.device, weights.collectives);
    collectives = row(weights);
    for (unsigned i = 0; i < numNetworks; ++i) {
      RowWeights weights = noWeights();
      weights.networks.resize(i + 1, 0);
      weights.networks[i] = 1;
      networks.push_back(row(weights));
    }
  }

  static Picoseconds of(const PartialProblem &row, ArrayRef<Label> assignment) {
    return evaluate(row.problem, *row.restrict(assignment)).cost.value_or(-1);
  }

  /// The explicit program's times are those of the rows.
  void check(const Schedule &schedule, ArrayRef<Label> assignment) const {
    EXPECT_EQ(of(device, assignment), schedule.device);
    EXPECT_EQ(of(collectives, assignment), schedule.upper - schedule.device);
    // The links to the host are no rows.
    ASSERT_LE(networks.size(), schedule.busy.size());
    for (auto [row, busy] : llvm::zip_first(networks, schedule.busy))
      EXPECT_EQ(of(row, assignment), busy);
  }
};

/// Plans of which neither a resource nor one of some chains takes longer than
/// the longest of one plan.
struct LimitedRows {
  std::vector<Chain> chains;
  Picoseconds limit;
  PartialProblem partial;

  static Picoseconds longest(const PureRows &rows, const TimeRows &times,
                             ArrayRef<Chain> chains,
                             ArrayRef<Label> assignment) {
    Picoseconds longest = rows.of(rows.device, assignment);
    for (const PartialProblem &row : rows.networks)
      longest = std::max(longest, rows.of(row, assignment));
    for (const Chain &chain : chains)
      longest = std::max(longest, times.lengthOf(chain, assignment));
    return longest;
  }

  LimitedRows(const PureRows &rows, const TimeRows &times,
              const std::vector<Chain> &some, ArrayRef<Label> assignment)
      : chains(some), limit(longest(rows, times, some, assignment)),
        partial(times.limitRows(RowWeights(), times.allLabels(), some,
                                {.each = limit})) {
    EXPECT_EQ(partial.problem.check(), std::nullopt);
  }

  /// Memory is plenty, so that only times can be too much.
  void check(const PureRows &rows, const TimeRows &times,
             ArrayRef<Label> assignment) const {
    solver::Evaluation now =
        evaluate(partial.problem, *partial.restrict(assignment));
    EXPECT_EQ(now.cost && now.fits,
              longest(rows, times, chains, assignment) <= limit);
  }
};

/// What must hold of the schedule of an explicit program that takes `upper` one
/// after the other, `longestChain` of it whatever overlaps.
Schedule checkSchedule(shd::ProgramOp planned, const CollectiveModel &model,
                       int64_t upper, Picoseconds longestChain) {
  MemoryProfile programOrder = profileMemory(planned);
  // What fits in program order fits as scheduled.
  ScheduledProgram tight = scheduleProgram(planned, model, programOrder.peak);
  EXPECT_LE(tight.memory.peak, programOrder.peak);
  ScheduledProgram free = scheduleProgram(planned, model, INT64_MAX);
  // Nor does more memory make it slower.
  EXPECT_LE(free.schedule.scheduled, tight.schedule.scheduled);
  EXPECT_EQ(tight.memoryCosts,
            tight.schedule.scheduled - free.schedule.scheduled);
  EXPECT_EQ(free.memoryCosts, 0);
  // At one point it may take less than program order: a copy that is made early
  // takes what it is made through then.
  EXPECT_EQ(free.memory.usage.size(), programOrder.usage.size());
  for (const ScheduledProgram *scheduled : {&tight, &free}) {
    const Schedule &schedule = scheduled->schedule;
    EXPECT_EQ(schedule.upper, upper);
    EXPECT_LE(schedule.lower, schedule.scheduled);
    EXPECT_LE(longestChain, schedule.scheduled);
    EXPECT_LE(schedule.scheduled, schedule.upper);
    Picoseconds sum = schedule.device;
    for (Picoseconds exposed : schedule.exposed)
      sum += exposed;
    EXPECT_EQ(sum, schedule.scheduled);
  }
  return free.schedule;
}

std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

/// Orders in which each assignment is scheduled, besides the text's.
constexpr unsigned kOrders = 3;

/// In whatever order it runs, a plan takes no less than each chain.
void checkOrders(PlannedNetwork &network, ArrayRef<Label> assignment,
                 Picoseconds longestChain) {
  for (uint64_t seed = 0; seed < kOrders; ++seed) {
    OwningOpRef<ModuleOp> lowered =
        network.lower(assignment, network.randomOrder(seed));
    ASSERT_TRUE(lowered);
    ScheduledProgram scheduled = scheduleProgram(
        TestProgram::programOf(*lowered), network.planning().model, INT64_MAX);
    EXPECT_LE(longestChain, scheduled.schedule.scheduled) << textOf(*lowered);
  }
}

/// Compares one assignment with its explicit program.
void checkAssignment(TestProgram &program, PlannedNetwork &network,
                     ArrayRef<Label> assignment, Chains &inText, Chains &inAny,
                     const PureRows &rows) {
  solver::Evaluation expected = evaluate(network.problem(), assignment);
  ASSERT_TRUE(expected.cost);
  OwningOpRef<ModuleOp> lowered = network.lower(assignment);
  auto explain = [&] {
    std::string text =
        describe(network.get(), assignment, network.planning().mesh());
    if (lowered)
      llvm::raw_string_ostream(text) << *lowered;
    return text;
  };
  ASSERT_TRUE(lowered) << program.messages() << explain();
  shd::ProgramOp planned = TestProgram::programOf(*lowered);
  ASSERT_EQ(totalPicoseconds(planned), *expected.cost) << explain();
  ASSERT_EQ(profileMemory(planned).usage, expected.usage) << explain();
  inText.add(assignment);
  inAny.add(assignment);
  bool hasUnread = network.hasUnreadCopy(assignment);
  Picoseconds longest = hasUnread ? 0 : inText.longest(assignment);
  if (!hasUnread)
    checkOrders(network, assignment, inAny.longest(assignment));
  rows.check(
      checkSchedule(planned, network.planning().model, *expected.cost, longest),
      assignment);
  ASSERT_FALSE(::testing::Test::HasFailure()) << explain();
}

/// How many operations an assignment runs around rings.
unsigned countRings(const PlanNetwork &network, ArrayRef<Label> assignment) {
  unsigned count = 0;
  for (auto [domain, variable] :
       llvm::zip_equal(network.domains, network.chunkVariable))
    for (const Strategy &strategy : domain.labels[assignment[variable]].ops)
      count += strategy.ring.has_value();
  return count;
}

/// Compares `count` assignments; false if the program has no plan. Adds to
/// `rings` how many operations they run around rings.
bool checkProgram(TestProgram &program, unsigned count,
                  unsigned *rings = nullptr) {
  NetworkOptions options;
  // Plenty; with a limit the network has memory.
  options.memoryLimit = int64_t(1) << 50;
  options.measureResources = options.measureLinks = true;
  PlannedNetwork network(program, options);
  if (!network)
    return false;
  EXPECT_EQ(network.problem().check(), std::nullopt);
  TimeRows times(network.get());
  PureRows rows(times, network.planning().model.physical().size());
  AssignmentSampler sampler(network.get(), /*seed=*/1);
  Chains inText(network.get(), times, ChainOrders::Text);
  Chains inAny(network.get(), times, ChainOrders::Any);
  std::optional<LimitedRows> limited;
  unsigned checked = 0;
  for (unsigned i = 0; i < 2 * count && checked < count; ++i) {
    std::optional<std::vector<Label>> assignment = sampler.draw();
    if (!assignment)
      return false;
    if (!network.isCanonical(*assignment))
      continue;
    ++checked;
    checkAssignment(program, network, *assignment, inText, inAny, rows);
    if (rings)
      *rings += countRings(network.get(), *assignment);
    if (!limited)
      limited.emplace(rows, times, inAny.chains, *assignment);
    limited->check(rows, times, *assignment);
    if (::testing::Test::HasFatalFailure())
      return false;
  }
  EXPECT_GT(checked, count / 2);
  return true;
}

class SmallProgramNetwork : public ::testing::TestWithParam<SmallProgram> {};

TEST_P(SmallProgramNetwork, SumsToTheExplicitProgram) {
  TestProgram program(GetParam().text);
  ASSERT_TRUE(program.module()) << program.messages();
  EXPECT_TRUE(checkProgram(program, numAssignments(200)));
}

INSTANTIATE_TEST_SUITE_P(Programs, SmallProgramNetwork,
                         ::testing::ValuesIn(kSmallPrograms),
                         [](const auto &info) { return info.param.name; });

class TrainingNetwork : public ::testing::TestWithParam<TrainingStep> {};

TEST_P(TrainingNetwork, SumsToTheExplicitProgram) {
  std::unique_ptr<TestProgram> program =
      TestProgram::ofModule(textOf(GetParam()));
  ASSERT_TRUE(program->module()) << program->messages();
  EXPECT_TRUE(checkProgram(*program, numAssignments(60)));
}

INSTANTIATE_TEST_SUITE_P(Steps, TrainingNetwork,
                         ::testing::ValuesIn(kTrainingSteps),
                         [](const auto &info) { return info.param.name; });

/// Two axes of queries, around either of which keys and values travel; keys
/// that are values too, behind a prologue; layers; a training step, in which
/// gradients travel.
constexpr const char *kRings[] = {R"(
hardware h100[8] { price = 1 USD/h }
mesh [X=4, Y=2]
dim T = 1024, S = T, K = 2, G = 2, H = 16
input q: bf16[T, K, G, H]
input k: bf16[T, K, H]
input v: bf16[T, K, H]
o[T@?, K, G, H] = attention[H, S](q[T@?, K, G, H], k[S@?, K, H], v[S@?, K, H], causal=true)
y[T, K, G, H] = silu(o[T, K, G, H])
output y
)",
                                  R"(
order T = contiguous
hardware tpu_v5e[4, 4]
mesh [X=4, Y=4]
dim T = 64, S = T, K = 4, H = 16
input x: bf16[T, K, H]
k[T, K, H] = silu(x[T, K, H])
o[T, K, H] = attention[H, S](x[T, K, H], k[S, K, H], k[S, K, H])
output o
)",
                                  R"(
hardware h100[2, 4]
mesh [X=2, Y=4]
dim T = 64, S = T, K = 4, H = 16, D = 32, L = 3
input tokens: bf16[T, D]
x[T, D] = silu(tokens[T, D])
repeat L {
  weight Wq: bf16[D, K, H]
  weight Wk: bf16[D, K, H]
  weight Wo: bf16[K, H, D]
  q[T, K, H] = x[T, D] * Wq[D, K, H]
  k[T, K, H] = x[T, D] * Wk[D, K, H]
  o[T, K, H] = attention[H, S](q[T, K, H], k[S, K, H], k[S, K, H], causal=true)
  x[T, D] = x[T, D] + o[T, K, H] * Wo[K, H, D]
}
output x
)",
                                  R"(
hardware h100[2, 4]
mesh [X=2, Y=4]
dim T = 64, S = T, K = 2, G = 2, H = 16, D = 32
input x: bf16[T, D]
weight Wq: bf16[D, K, G, H]
weight Wk: bf16[D, K, H]
q[T, K, G, H] = x[T, D] * Wq[D, K, G, H]
k[T, K, H] = x[T, D] * Wk[D, K, H]
o[T, K, G, H] = attention[H, S](q[T, K, G, H], k[S, K, H], k[S, K, H], causal=true)
loss[] = mean[T, K, G, H](o[T, K, G, H] * o[T, K, G, H])
train { loss = loss  microbatches = 1 }
)"};

TEST(RingNetwork, SumsToTheExplicitProgram) {
  for (const char *text : kRings) {
    SCOPED_TRACE(text);
    TestProgram program(text);
    ASSERT_TRUE(program.module()) << program.messages();
    unsigned rings = 0;
    EXPECT_TRUE(checkProgram(program, numAssignments(80), &rings));
    EXPECT_GT(rings, 5u);
  }
}

TEST(RandomProgramNetwork, SumsToTheExplicitProgram) {
  const unsigned programs = setting("SHARDC_TEST_PROGRAMS", 50);
  unsigned checked = 0;
  for (uint64_t seed = 0; seed < programs; ++seed) {
    std::string text = randomProgram(seed);
    SCOPED_TRACE(text);
    Overrides overrides;
    overrides.calibrated = seed % 3 == 2;
    TestProgram program(text, overrides);
    ASSERT_TRUE(program.module()) << program.messages();
    // Annotations may contradict each other.
    checked += checkProgram(program, numAssignments(20));
    if (HasFatalFailure())
      return;
  }
  EXPECT_GT(checked, programs * 9 / 10);
}

/// Chains of some assignments of a training step, and schedules of all; how
/// many there were.
unsigned checkChains(TestProgram &program, unsigned count) {
  NetworkOptions options;
  options.memoryLimit = kUnlimited;
  options.measureResources = options.measureLinks = true;
  PlannedNetwork network(program, options);
  if (!network)
    return 0;
  TimeRows times(network.get());
  AssignmentSampler sampler(network.get(), /*seed=*/1);
  bool matmulsOverlap = network.planning().model.machine().collectiveMatmul;
  Chains inText(network.get(), times, ChainOrders::Text, matmulsOverlap);
  Chains inAny(network.get(), times, ChainOrders::Any, matmulsOverlap);
  unsigned checked = 0;
  for (unsigned i = 0; i < 4 * count && checked < count; ++i) {
    // Not every draw of a large program ends in a plan.
    std::optional<std::vector<Label>> assignment = sampler.draw();
    if (!assignment || !network.isCanonical(*assignment) ||
        network.hasUnreadCopy(*assignment))
      continue;
    ++checked;
    inText.add(*assignment);
    inAny.add(*assignment);
    checkOrders(network, *assignment, inAny.longest(*assignment));
    OwningOpRef<ModuleOp> lowered = network.lower(*assignment);
    EXPECT_TRUE(lowered) << program.messages();
    if (!lowered)
      break;
    ScheduledProgram scheduled = scheduleProgram(
        TestProgram::programOf(*lowered), network.planning().model, INT64_MAX);
    EXPECT_LE(inText.longest(*assignment), scheduled.schedule.scheduled);
  }
  return checked;
}

class TrainedModel : public ::testing::TestWithParam<const char *> {};

TEST_P(TrainedModel, TakesAsLongAsEachChain) {
  std::unique_ptr<TestProgram> program =
      TestProgram::ofModel(std::string(GetParam()) + ".shd");
  ASSERT_TRUE(program && program->module());
  ASSERT_TRUE(program->makeStep()) << program->messages();
  EXPECT_GT(checkChains(*program, numAssignments(15)), 0u);
}

/// Every other machine runs collective matmuls, every third is calibrated.
TEST(RandomTrainedProgram, TakesAsLongAsEachChain) {
  const unsigned programs = setting("SHARDC_TEST_PROGRAMS", 24);
  RandomProgramOptions options;
  options.trained = 100;
  options.padding = false;
  unsigned checked = 0;
  for (uint64_t seed = 0; seed < programs; ++seed) {
    std::string text = makeRandomProgram(seed, options).text;
    if (size_t machine = text.find("{ flops");
        seed % 2 == 1 && machine != std::string::npos)
      text.insert(machine + 1, " overlap.collective_matmul = true\n ");
    SCOPED_TRACE(text);
    Overrides overrides;
    overrides.calibrated = seed % 3 == 2;
    TestProgram program(text, overrides);
    // Annotations of some programs contradict, others cannot be trained.
    if (program.module() && program.makeStep())
      checked += checkChains(program, numAssignments(10)) > 0;
    if (HasFailure())
      return;
  }
  EXPECT_GT(checked, programs / 3);
}

class ModelNetwork : public ::testing::TestWithParam<const char *> {};

TEST_P(ModelNetwork, SumsToTheExplicitProgram) {
  std::unique_ptr<TestProgram> program =
      TestProgram::ofModel(std::string(GetParam()) + ".shd");
  ASSERT_TRUE(program && program->module());
  EXPECT_TRUE(checkProgram(*program, numAssignments(30)));
}

std::string testName(const char *model) {
  std::string name = model;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

constexpr const char *kTrained[] = {"llama3-8b-fsdp", "llama3-8b-lora",
                                    "vit-l16-train"};

INSTANTIATE_TEST_SUITE_P(Models, TrainedModel, ::testing::ValuesIn(kTrained),
                         [](const auto &info) { return testName(info.param); });

constexpr const char *kModels[] = {"ffn",
                                   "ffn-megatron",
                                   "matmul-cases",
                                   "attention",
                                   "attention-tp",
                                   "llama3-8b",
                                   "llama3-70b",
                                   "llama3-70b-fsdp-tp",
                                   "llama3-405b",
                                   "gpt3-175b",
                                   "gpt3-175b-megatron",
                                   "gemma2-27b",
                                   "gemma2-27b-fsdp",
                                   "llama3-70b-decode",
                                   "llama3-70b-decode-tp"};

INSTANTIATE_TEST_SUITE_P(Models, ModelNetwork, ::testing::ValuesIn(kModels),
                         [](const auto &info) { return testName(info.param); });

} // namespace
