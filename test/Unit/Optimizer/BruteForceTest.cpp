//===- BruteForceTest.cpp - The optimizer against enumeration -------------===//
//
// What the optimizer picks is at most the cost of every hand-annotated variant
// of a small program, and the least cost over all labels of its network.
//
//===----------------------------------------------------------------------===//

#include "Assignments.h"
#include "Plans.h"
#include "RandomPrograms.h"
#include "shardc/Solver/Solve.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace shardc;
using namespace shardc::test;

namespace {

//===----------------------------------------------------------------------===//
// Hand-annotated variants
//===----------------------------------------------------------------------===//

/// Every placement of a tensor on the mesh, written down without the compiler's
/// own enumeration: each axis is on a dimension, carries a partial sum, or is
/// idle; axes on one dimension in both orders.
std::vector<shd::ShardingAttr> placements(MLIRContext *context,
                                          const Mesh &mesh,
                                          ArrayRef<int64_t> extents,
                                          bool mayBePartial) {
  std::vector<Layout> layouts = {Layout::replicated(extents.size())};
  for (AxisIndex axis = 0; axis < mesh.size(); ++axis) {
    std::vector<Layout> more = layouts;
    for (const Layout &layout : layouts) {
      for (unsigned d = 0; d < extents.size(); ++d)
        for (unsigned at = 0; at <= layout.dims[d].size(); ++at) {
          Layout placed = layout;
          placed.dims[d].insert(placed.dims[d].begin() + at, axis);
          int64_t parts = 1;
          for (AxisIndex used : placed.dims[d])
            parts *= mesh.axes[used].size;
          if (extents[d] % parts == 0)
            more.push_back(placed);
        }
      if (mayBePartial) {
        Layout partial = layout;
        partial.partial |= axisBit(axis);
        more.push_back(partial);
      }
    }
    layouts = std::move(more);
  }
  std::vector<shd::ShardingAttr> shardings;
  for (const Layout &layout : layouts)
    shardings.push_back(shd::toSharding(context, mesh, layout));
  return shardings;
}

/// The operations whose result has a name that can be annotated, in order.
std::vector<Operation *> namedTensors(ModuleOp module) {
  std::vector<Operation *> ops;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    bool computed =
        isa<shd::ShardingRuleOpInterface>(op) && !op->hasAttr(shd::kTemporary);
    if (shd::introducedBy(op) || computed)
      ops.push_back(op);
  });
  return ops;
}

/// An input is whole, and what leaves is unless the program says otherwise.
bool mayBePartial(Operation *op) {
  return !shd::introducedBy(op) &&
         llvm::none_of(op->getUsers(), [](Operation *user) {
           return isa<shd::OutputOp>(user);
         });
}

/// Calls `visit` with the price of every legal choice of placements, or of
/// `samples` random choices where there are more.
void forEachVariant(TestProgram &program, unsigned samples,
                    llvm::function_ref<void(const Placed &)> visit) {
  ModuleOp original = program.module();
  MLIRContext *context = original.getContext();
  Mesh mesh = shd::toMesh(TestProgram::programOf(original).getMeshAttr());
  std::vector<std::vector<shd::ShardingAttr>> choices;
  double total = 1;
  for (Operation *op : namedTensors(original)) {
    auto type = cast<RankedTensorType>(onlyResult(op).getType());
    choices.push_back(
        placements(context, mesh, type.getShape(), mayBePartial(op)));
    total *= choices.back().size();
  }
  std::mt19937_64 random(7);
  std::vector<size_t> index(choices.size(), 0);
  bool all = total <= samples;
  for (unsigned number = 0; number < (all ? total : samples); ++number) {
    size_t rest = number;
    for (auto [position, list] : llvm::zip(index, choices)) {
      position = all ? rest % list.size() : random() % list.size();
      rest /= list.size();
    }
    OwningOpRef<ModuleOp> variant = program.clone();
    for (auto [op, position, list] :
         llvm::zip(namedTensors(*variant), index, choices))
      shd::setResultPin(onlyResult(op), list[position]);
    if (std::optional<Placed> placed = evaluateAsWritten(program, *variant))
      visit(*placed);
  }
}

//===----------------------------------------------------------------------===//
// What the optimizer picks
//===----------------------------------------------------------------------===//

/// One statement or a few, on meshes so small that all annotations can be
/// tried.
struct TinyProgram {
  const char *name;
  const char *text;
};

constexpr TinyProgram kTinyPrograms[] = {
    // Compute-bound, one axis.
    {"feed_forward", R"(
hardware tpu_v5e[4, 1]
mesh [X=4]
dim B = 2048, D = 1024, F = 4096
input x: bf16[B, D]
weight W1: bf16[D, F]
weight W2: bf16[F, D]
H[B, F] = relu(x[B, D] * W1[D, F])
y[B, D] = H[B, F] * W2[F, D]
output y
)"},
    // So small a batch that weights dominate.
    {"small_batch", R"(
hardware h100[4]
mesh [X=4]
dim B = 4, D = 4096, F = 8192
input x: bf16[B, D]
weight W1: int8[D, F]
weight W2: bf16[F, D]
H[B, F] = gelu(x[B, D] * bf16(W1[D, F]))
y[B, D] = H[B, F] * W2[F, D]
output y
)"},
    // Two axes, one product.
    {"product", R"(
hardware tpu_v5e[2, 2]
mesh [X=2, Y=2]
dim B = 512, D = 256, F = 1024
input x: bf16[B, D]
weight W: bf16[D, F]
y[B, F] = x[B, D] * W[D, F]
output y
)"},
    // A normalised index that may be sharded.
    {"softmax", R"(
hardware tpu_v5e[4, 1]
mesh [X=4]
dim B = 64, D = 512, V = 32768
input x: bf16[B, D]
weight W: bf16[D, V]
logits[B, V] = x[B, D] * W[D, V]
p[B, V] = softmax[V](logits)
output p
)"},
    // A table whose rows may be anywhere.
    {"embedding", R"(
hardware tpu_v5e[4, 1]
mesh [X=4]
dim B = 4096, D = 512, V = 32768
input t: int32[B]
weight E: bf16[V, D]
x[B, D] = E[t[B], D]
y[B, V] = x[B, D] * E[V, D]
output y
)"},
    // A loop with a carried value.
    {"loop", R"(
hardware tpu_v5e[4, 1]
mesh [X=4]
dim B = 1024, D = 1024, F = 2048, L = 3
input x0: bf16[B, D]
x[B, D] = x0[B, D] + x0[B, D]
repeat L {
  weight W1: bf16[D, F]
  weight W2: bf16[F, D]
  h[B, F] = relu(x[B, D] * W1[D, F])
  x[B, D] += h[B, F] * W2[F, D]
}
output x
)"},
    // One value, three readers.
    {"readers", R"(
hardware tpu_v5e[4, 1]
mesh [X=4]
dim B = 1024, D = 512, F = 2048
input x: bf16[B, D]
weight W1: bf16[D, F]
weight W2: bf16[D, F]
a[B, F] = x[B, D] * W1[D, F]
b[B, F] = relu(a[B, F]) * (x[B, D] * W2[D, F])
output a
output b
)"},
    // A partial sum that its own group reads, and others.
    {"shared_sum", R"(
hardware tpu_v5e[4, 1]
mesh [X=4]
dim B = 64, D = 65536, F = 64
input x: bf16[B, D@X]
weight W: bf16[D@X, F]
h[B, F] = x[B, D] * W[D, F]
y[B, F] = relu(h[B, F])
output h[B@(), F@()]
output y[B@(), F@()]
)"},
};

class BruteForce : public ::testing::TestWithParam<TinyProgram> {};

TEST_P(BruteForce, NoAnnotationIsCheaper) {
  TestProgram program(GetParam().text);
  ASSERT_TRUE(program.module()) << program.messages();
  std::vector<Placed> variants;
  forEachVariant(program, 3000,
                 [&](const Placed &placed) { variants.push_back(placed); });
  ASSERT_FALSE(variants.empty());
  auto least = [&](int64_t limit) {
    std::optional<int64_t> cost;
    for (const Placed &placed : variants)
      if (placed.peak <= limit && (!cost || placed.upper < *cost))
        cost = placed.upper;
    return cost;
  };
  int64_t smallest = variants.front().peak, largest = smallest;
  for (const Placed &placed : variants) {
    smallest = std::min(smallest, placed.peak);
    largest = std::max(largest, placed.peak);
  }
  // Without a limit, and with ever tighter ones down to the least that any
  // annotation needs.
  for (int64_t limit : {largest, (largest + smallest) / 2,
                        smallest + (largest - smallest) / 8, smallest}) {
    std::optional<Picked> picked = optimize(program, limit, Objective::Upper);
    ASSERT_TRUE(picked);
    EXPECT_LE(picked->placed.peak, limit);
    EXPECT_EQ(picked->status, "optimal");
    EXPECT_LE(picked->value, *least(limit)) << "limit " << limit;
  }
}

/// The bound is below every annotation's time, the plan's time is not above
/// any, and it is what `upper` finds or better.
TEST_P(BruteForce, NoAnnotationIsFasterWithOverlap) {
  TestProgram program(GetParam().text);
  ASSERT_TRUE(program.module()) << program.messages();
  std::vector<Placed> variants;
  forEachVariant(program, 3000,
                 [&](const Placed &placed) { variants.push_back(placed); });
  std::optional<Picked> upper = optimize(program, kUnlimited, Objective::Upper);
  ASSERT_TRUE(upper);
  for (Objective objective : {Objective::Lower, Objective::Scheduled}) {
    std::optional<Picked> picked = optimize(program, kUnlimited, objective);
    ASSERT_TRUE(picked);
    EXPECT_LE(picked->value, upper->placed.time(objective));
    for (const Placed &placed : variants) {
      ASSERT_LE(picked->bound, placed.time(objective));
      ASSERT_LE(picked->value, placed.time(objective))
          << (objective == Objective::Lower ? "lower" : "scheduled");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, BruteForce, ::testing::ValuesIn(kTinyPrograms),
                         [](const auto &info) { return info.param.name; });

TEST(FeedForwardModel, NoAnnotationIsCheaper) {
  std::unique_ptr<TestProgram> program = TestProgram::ofModel("ffn.shd");
  ASSERT_TRUE(program && program->module());
  std::optional<Picked> picked =
      optimize(*program, kUnlimited, Objective::Upper);
  ASSERT_TRUE(picked);
  unsigned tried = 0;
  forEachVariant(*program, 1500, [&](const Placed &placed) {
    ++tried;
    EXPECT_LE(picked->value, placed.upper);
  });
  EXPECT_GT(tried, 500u);
  // Megatron's sharding by hand: models/ffn-megatron.shd.
  std::unique_ptr<TestProgram> byHand =
      TestProgram::ofModel("ffn-megatron.shd");
  ASSERT_TRUE(byHand && byHand->module());
  std::optional<Placed> megatron = evaluateAsWritten(*byHand, byHand->module());
  ASSERT_TRUE(megatron) << byHand->messages();
  EXPECT_LE(picked->value, megatron->upper);
}

/// The fusion group of each operation, in program order.
std::vector<Attribute> fusionGroups(TestProgram &program, bool asWritten) {
  OwningOpRef<ModuleOp> module = program.clone();
  EXPECT_TRUE(program.run(*module, [&](OpPassManager &manager) {
    if (asWritten)
      manager.addPass(shd::createShdReplicateOpen());
    manager.addPass(shd::createShdFusionGroups());
  }));
  std::vector<Attribute> groups;
  module->walk<WalkOrder::PreOrder>(
      [&](Operation *op) { groups.push_back(op->getAttr(shd::kGroup)); });
  return groups;
}

TEST(RandomPrograms, AreNoDearerThanAsWritten) {
  unsigned compared = 0, programs = setting("SHARDC_TEST_PROGRAMS", 50);
  for (uint64_t seed = 0; seed < programs; ++seed) {
    std::string text = randomProgram(seed);
    SCOPED_TRACE(text);
    TestProgram program(text);
    ASSERT_TRUE(program.module()) << program.messages();
    // What is said of two operations may keep them from fusing: then the plan
    // as written is of another program.
    if (fusionGroups(program, true) != fusionGroups(program, false))
      continue;
    OwningOpRef<ModuleOp> written = program.clone();
    std::optional<Placed> placed = evaluateAsWritten(program, *written);
    // Annotations may contradict each other.
    if (!placed)
      continue;
    std::optional<Picked> picked =
        optimize(program, kUnlimited, Objective::Upper);
    ASSERT_TRUE(picked);
    EXPECT_LE(picked->value, placed->upper);
    ++compared;
  }
  EXPECT_GT(compared, programs * 2 / 5);
}

//===----------------------------------------------------------------------===//
// All labels
//===----------------------------------------------------------------------===//

/// The least cost of all assignments that fit, by depth-first search without
/// bounds; nothing if none does.
class Exhaustive {
public:
  explicit Exhaustive(const solver::Problem &problem)
      : problem(problem), labels(problem.variables.size(), 0) {}

  std::optional<int64_t> least() {
    visit(0);
    return best;
  }

private:
  void visit(solver::Variable variable) {
    if (variable == labels.size()) {
      solver::Evaluation now = evaluate(problem, labels);
      if (now.cost && now.fits && (!best || *now.cost < *best))
        best = now.cost;
      return;
    }
    const auto &costs = problem.variables[variable].costs;
    for (solver::Label label = 0; label < costs.size(); ++label) {
      labels[variable] = label;
      if (costs[label] != solver::kForbidden && isAllowed(variable))
        visit(variable + 1);
    }
  }

  bool isAllowed(solver::Variable variable) const {
    for (const solver::Edge &edge : problem.edges)
      if (std::max(edge.first, edge.second) == variable &&
          problem.tables[edge.table].at(
              labels[edge.first], labels[edge.second]) == solver::kForbidden)
        return false;
    return true;
  }

  const solver::Problem &problem;
  std::vector<solver::Label> labels;
  std::optional<int64_t> best;
};

constexpr TinyProgram kExhaustible[] = {
    {"product", R"(
hardware tpu_v5e[2, 2]
mesh [X=2, Y=2]
dim B = 512, D = 256, F = 1024
input x: bf16[B, D]
weight W: bf16[D, F]
y[B, F] = x[B, D] * W[D, F]
output y
)"},
    {"two_products", R"(
hardware tpu_v5e[4, 1]
mesh [X=4]
dim B = 1024, D = 512, F = 2048
input x: bf16[B, D]
weight W1: bf16[D, F]
weight W2: bf16[F, D]
H[B, F] = x[B, D] * W1[D, F]
y[B, D] = H[B, F] * W2[F, D]
output y
)"},
    {"prologue", R"(
hardware h100[4]
mesh [X=4]
dim B = 8, D = 1024, F = 2048
input x: bf16[B, D]
weight W: int8[D, F]
y[B, F] = relu(x[B, D] * bf16(W[D, F]))
output y
)"},
};

class Exhausted : public ::testing::TestWithParam<TinyProgram> {};

TEST_P(Exhausted, IsTheLeastOfAllAssignments) {
  TestProgram program(GetParam().text);
  ASSERT_TRUE(program.module()) << program.messages();
  int64_t unlimited = int64_t(1) << 50;
  std::optional<Picked> free = optimize(program, unlimited, Objective::Upper);
  ASSERT_TRUE(free);
  for (int64_t limit :
       {unlimited, free->placed.peak - 1, free->placed.peak / 2}) {
    TestProgram copy(GetParam().text);
    NetworkOptions options;
    options.memoryLimit = limit;
    PlannedNetwork network(copy, options);
    ASSERT_TRUE(network);
    std::optional<int64_t> least = Exhaustive(network.problem()).least();
    solver::Solution solution = solver::solve(network.problem());
    EXPECT_EQ(solution.status,
              least ? solver::Status::Optimal : solver::Status::Infeasible);
    if (least)
      EXPECT_EQ(solution.cost, *least) << "limit " << limit;
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, Exhausted, ::testing::ValuesIn(kExhaustible),
                         [](const auto &info) { return info.param.name; });

} // namespace
