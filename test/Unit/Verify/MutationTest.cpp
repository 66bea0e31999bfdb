//===- MutationTest.cpp - Verification notices what is wrong --------------===//
//
// A proof that cannot fail proves nothing. Programs of devices are broken, one
// at a time, as a defect of the compiler would, and verification must see it:
// by an error where it happens, or by a result that differs. What cannot be
// noticed because it changes no value is said where it is left out.
//
//===----------------------------------------------------------------------===//

#include "TestProgram.h"
#include "mlir/IR/Builders.h"
#include "shardc/Dialect/Shd/IR/Segments.h"
#include "shardc/Pipelines/Compilation.h"
#include "shardc/Shrink/Shrink.h"
#include "shardc/Verify/Verify.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace shardc;
using namespace shardc::test;

namespace {

/// A program, small, and that of its devices.
class Subject {
public:
  explicit Subject(StringRef text, bool shrink = true, bool inRings = false)
      : Subject(std::make_unique<TestProgram>(text), OptMode::None, shrink,
                inRings) {}
  explicit Subject(std::unique_ptr<TestProgram> program,
                   OptMode mode = OptMode::None, bool shrink = true,
                   bool inRings = false)
      : program(std::move(program)) {
    if (!this->program->module()) {
      ADD_FAILURE() << messages();
      return;
    }
    wholeModule = this->program->clone();
    PlanOptions options;
    options.mode = mode;
    Compilation compilation(wholeModule->clone(), Compilation::Stage::Imported,
                            {options});
    if (failed(compilation.lower())) {
      ADD_FAILURE() << messages();
      return;
    }
    if (inRings)
      EXPECT_TRUE(succeeded(compilation.markRings())) << messages();
    if (shrink) {
      Shrinking shrinking = chooseShrinking(compilation.program());
      applyShrinking(compilation.program(), shrinking);
      applyShrinking(whole(), shrinking);
    }
    EXPECT_TRUE(succeeded(compilation.convertToSpmd())) << messages();
    deviceModule = compilation.takeModule();
  }

  const std::string &messages() const { return program->messages(); }
  OwningOpRef<ModuleOp> device() { return deviceModule->clone(); }

  /// What verification says of a program of the devices; empty if it holds.
  std::string verify(ModuleOp device) {
    size_t before = messages().size();
    auto result =
        verifyPrograms(whole(), *device.getOps<spmd::ProgramOp>().begin());
    if (succeeded(result)) {
      if (result->holds)
        return "";
      emitDifferences(*result);
    }
    std::string said = messages().substr(before);
    EXPECT_NE(said, "");
    return said;
  }

private:
  shd::ProgramOp whole() { return TestProgram::programOf(*wholeModule); }

  std::unique_ptr<TestProgram> program;
  OwningOpRef<ModuleOp> wholeModule, deviceModule;
};

std::unique_ptr<TestProgram> model(StringRef name) {
  auto program = TestProgram::ofModel(name);
  EXPECT_TRUE(program) << name.str();
  return program;
}

//===----------------------------------------------------------------------===//
// What is done to one operation
//===----------------------------------------------------------------------===//

/// Breaks an operation; false if it is not one of those that this breaks.
using Break = std::function<bool(Operation *)>;

struct Mutation {
  std::string name;
  Break apply;
};

/// The type with two mesh axes in each other's place; null if that splits its
/// dimensions as before.
Type withAxesExchanged(Type type, StringRef first, StringRef second) {
  auto tensor = cast<RankedTensorType>(type);
  shd::ShardingAttr sharding = shd::getSharding(tensor);
  if (!sharding)
    return nullptr;
  MLIRContext *context = type.getContext();
  auto exchanged = [&](ArrayRef<StringAttr> axes) {
    return llvm::map_to_vector(axes, [&](StringAttr axis) {
      return axis == first    ? StringAttr::get(context, second)
             : axis == second ? StringAttr::get(context, first)
                              : axis;
    });
  };
  SmallVector<shd::DimShardingAttr> dims;
  for (shd::DimShardingAttr dim : sharding.getDims())
    dims.push_back(shd::DimShardingAttr::get(context, exchanged(dim.getAxes()),
                                             dim.getIsOpen()));
  if (ArrayRef(dims) == sharding.getDims())
    return nullptr;
  return RankedTensorType::get(
      tensor.getShape(), tensor.getElementType(),
      shd::ShardingAttr::get(context, dims, exchanged(sharding.getPartial())));
}

Break exchangeAxes(const std::string &attribute, const std::string &first,
                   const std::string &second) {
  return [=](Operation *op) {
    auto type = op->getAttrOfType<TypeAttr>(attribute);
    if (!type)
      return false;
    Type changed = withAxesExchanged(type.getValue(), first, second);
    if (changed)
      op->setAttr(attribute, TypeAttr::get(changed));
    return bool(changed);
  };
}

/// Its users take what it was to move.
bool drop(Operation *op) {
  if (op->getOperand(0).getType() != op->getResult(0).getType())
    return false;
  op->getResult(0).replaceAllUsesWith(op->getOperand(0));
  op->erase();
  return true;
}

/// Each device keeps its part of its own summand.
bool doNotSum(Operation *op) {
  auto scatter = dyn_cast<spmd::ReduceScatterOp>(op);
  if (!scatter)
    return false;
  OpBuilder builder(op);
  auto slice = spmd::AllSliceOp::create(
      builder, op->getLoc(), scatter.getType(), scatter.getInput(),
      scatter.getAxes(), scatter.getFrom(), scatter.getTo());
  op->getResult(0).replaceAllUsesWith(slice);
  op->erase();
  return true;
}

bool leaveOutAnAxis(Operation *op) {
  auto axes = op->getAttrOfType<ArrayAttr>("axes");
  op->setAttr("axes",
              ArrayAttr::get(op->getContext(), axes.getValue().drop_back()));
  return true;
}

Break combineBy(shd::Combination combination) {
  return [=](Operation *op) {
    auto reduce = dyn_cast<spmd::AllReduceOp>(op);
    if (!reduce || reduce.getCombination() == combination)
      return false;
    reduce.setCombination(combination);
    return true;
  };
}

template <typename... Ops> Break of(Break apply) {
  return [=](Operation *op) { return isa<Ops...>(op) && apply(op); };
}

/// Everything that may go wrong with a collective over axes of this mesh. Left
/// out is what the collective does not depend on: an all_reduce on where the
/// parts lie, an all_slice and a collective_permute on the list of axes, which
/// follows from the shardings.
std::vector<Mutation> collectiveMutations(const Mesh &mesh) {
  std::vector<Mutation> result = {
      {"left out",
       of<spmd::AllReduceOp, spmd::CollectivePermuteOp, spmd::AllToAllOp>(
           drop)},
      {"not summed", doNotSum},
      {"over an axis less",
       of<spmd::AllGatherOp, spmd::AllReduceOp, spmd::ReduceScatterOp,
          spmd::AllToAllOp>(leaveOutAnAxis)},
      {"the sum in place of the largest", combineBy(shd::Combination::Sum)},
      {"the largest in place of the sum", combineBy(shd::Combination::Max)}};
  for (AxisIndex first = 0; first < mesh.size(); ++first)
    for (AxisIndex second = first + 1; second < mesh.size(); ++second)
      if (mesh.axes[first].size == mesh.axes[second].size)
        for (const char *attribute : {"from", "to"}) {
          const std::string &a = mesh.axes[first].name,
                            &b = mesh.axes[second].name;
          result.push_back(
              {std::string(attribute) + " with " + a + " and " + b +
                   " exchanged",
               of<spmd::AllGatherOp, spmd::AllSliceOp, spmd::AllToAllOp,
                  spmd::ReduceScatterOp, spmd::CollectivePermuteOp>(
                   exchangeAxes(attribute, a, b))});
        }
  return result;
}

/// True for the all_reduce of the maximum that a softmax, a logsumexp or a loss
/// is computed relative to. Any number that all devices agree on does, so sum
/// or minimum in its place change nothing; to leave it out does.
bool isShift(Operation *op) {
  auto statistic = op->getOperand(0).getDefiningOp<shd::StatisticOp>();
  return statistic && statistic.getKind() == "max" &&
         llvm::any_of(op->getUsers(), [](Operation *user) {
           return isa<shd::StatisticOp>(user);
         });
}

/// Where each operation of a kind stands among all, in program order.
template <typename Keep>
std::vector<unsigned> numbersOf(ModuleOp module, Keep keep) {
  std::vector<unsigned> result;
  unsigned number = 0;
  module.walk([&](Operation *op) {
    if (keep(op))
      result.push_back(number);
    ++number;
  });
  return result;
}

Operation *operation(ModuleOp module, unsigned wanted) {
  Operation *found = nullptr;
  unsigned number = 0;
  module.walk([&](Operation *op) {
    if (number++ == wanted)
      found = op;
  });
  return found;
}

/// Breaks each operation that `keep` keeps in each way that applies; returns in
/// how many.
template <typename Keep>
unsigned expectNoticed(Subject &subject, Keep keep,
                       const std::vector<Mutation> &mutations) {
  OwningOpRef<ModuleOp> device = subject.device();
  EXPECT_EQ(subject.verify(*device), "");
  unsigned count = 0;
  for (unsigned number : numbersOf(*device, keep))
    for (const Mutation &mutation : mutations) {
      OwningOpRef<ModuleOp> broken = subject.device();
      Operation *op = operation(*broken, number);
      std::string text;
      llvm::raw_string_ostream(text) << *op;
      bool isMaximum = StringRef(mutation.name).starts_with("the ");
      if ((isMaximum && isShift(op)) || !mutation.apply(op))
        continue;
      ++count;
      EXPECT_NE(subject.verify(*broken), "") << mutation.name << ": " << text;
    }
  return count;
}

unsigned expectCollectivesNoticed(Subject &subject) {
  OwningOpRef<ModuleOp> device = subject.device();
  Mesh mesh =
      shd::toMesh((*device->getOps<spmd::ProgramOp>().begin()).getMeshAttr());
  return expectNoticed(subject, spmd::isCollective, collectiveMutations(mesh));
}

//===----------------------------------------------------------------------===//
// Every collective of models
//===----------------------------------------------------------------------===//

TEST(Mutations, CollectivesOfAFeedForwardBlock) {
  Subject subject(model("ffn-megatron.shd"));
  EXPECT_GE(expectCollectivesNoticed(subject), 3u);
}

TEST(Mutations, CollectivesOfAttention) {
  Subject subject(model("attention-tp.shd"), OptMode::Optimize);
  EXPECT_GE(expectCollectivesNoticed(subject), 4u);
}

TEST(Mutations, CollectivesOfMatmuls) {
  Subject subject(model("matmul-cases.shd"));
  EXPECT_GE(expectCollectivesNoticed(subject), 4u);
}

TEST(Mutations, CollectivesOfDecoding) {
  Subject subject(model("llama3-70b-decode-tp.shd"));
  EXPECT_GE(expectCollectivesNoticed(subject), 20u);
}

TEST(Mutations, CollectivesOfPipelinedWeights) {
  Subject subject(model("gpt3-175b-megatron.shd"));
  EXPECT_GE(expectCollectivesNoticed(subject), 10u);
}

//===----------------------------------------------------------------------===//
// Collectives of small programs
//===----------------------------------------------------------------------===//

constexpr StringLiteral kThreeAxes = R"(
hardware tpu_v5p[2, 2, 2]
mesh [X=2, Y=2, Z=2]
dim B = 4096, D = 1024, F = 8192
input x: f32[B@X, D@(Y, Z)]
weight W: f32[D@(Y, Z), F]
h[B@X, F] = relu(x[B@X, D@(Y, Z)] * W[D@(Y, Z), F])
g[B@(X, Y), F@Z] = h[B, F]
t[B@(Y, X), F@Z] = g[B@(X, Y), F@Z]
u[B@Y, F@(Z, X)] = t[B@(Y, X), F@Z]
v[B@(), F@(X, Z, Y)] = u[B@Y, F@(Z, X)]
output u
output v
)";

/// A sum over two axes, slices, a permute, exchanges over one, two and three.
TEST(Mutations, CollectivesOverThreeAxes) {
  Subject subject(kThreeAxes);
  EXPECT_GE(expectCollectivesNoticed(subject), 10u);
}

constexpr StringLiteral kMaxima = R"(
hardware tpu_v5e[2, 2]
mesh [X=2, Y=2]
dim B = 8, V = 12
input x: f32[B@X, V@Y]
input labels: int32[B@X]
m[B@X] = max[V](x[B@X, V@Y])
n[B@X] = min[V](x[B@X, V@Y])
s[B@X, V@Y] = softmax[V](x[B@X, V@Y])
e[B@X] = cross_entropy[V](x[B@X, V@Y], labels)
a[B@X] = argmax[V](x[B@X, V@Y])
output m
output n
output s
output e
output a
)";

/// Statistics combined by sum, maximum and minimum. x lies between -1 and 1, so
/// sums of maxima differ from maxima.
TEST(Mutations, CollectivesOfStatistics) {
  Subject subject(kMaxima);
  EXPECT_GE(expectCollectivesNoticed(subject), 15u);
}

/// What isShift() leaves out really changes nothing.
TEST(Mutations, AnyShiftOfASoftmaxDoes) {
  Subject subject(R"(
hardware tpu_v5e[2, 1]
mesh [X=2]
dim V = 12
input x: f32[V@X]
s[V@X] = softmax[V](x[V@X])
output s
)");
  OwningOpRef<ModuleOp> device = subject.device();
  unsigned shifts = 0;
  device->walk([&](spmd::AllReduceOp op) {
    if (!isShift(op))
      return;
    op.setCombination(shd::Combination::Min);
    ++shifts;
  });
  EXPECT_EQ(shifts, 1u);
  EXPECT_EQ(subject.verify(*device), "");
}

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

/// Changes how keys that travel have come.
Break changeSteps(int64_t more, bool keepsEach) {
  return [=](Operation *op) {
    auto shards = op->getAttrOfType<ArrayAttr>(spmd::kShards);
    if (!shards)
      return false;
    bool changes = false;
    SmallVector<Attribute> changed;
    for (auto shard : shards.getAsRange<spmd::ShardAttr>()) {
      bool isMeant = shard.hasTravelled() && (more || shard.getEachIteration());
      changes |= isMeant;
      changed.push_back(
          isMeant ? spmd::ShardAttr::get(op->getContext(), shard.getName(),
                                         shard.getExtent(), shard.getAxes(),
                                         shard.getStep() + more,
                                         shard.getEachIteration() && keepsEach,
                                         shard.getHalo(), shard.getBack())
                  : shard);
    }
    op->setAttr(spmd::kShards, ArrayAttr::get(op->getContext(), changed));
    return changes;
  };
}

/// Attention in four steps around a ring, over positions in the program's
/// order: the masks depend on whose keys are there.
TEST(Mutations, StepsOfARing) {
  Subject subject(R"(
order T = contiguous
hardware h100[4]
mesh [X=4]
dim T = 16, S = T, K = 2, H = 4
input q: f32[T@X, K, H]
input k: f32[T@X, K, H]
input v: f32[T@X, K, H]
o[T@X, K, H] = attention[H, S](q[T@X, K, H], k[S@X, K, H], v[S@X, K, H], causal=true)
output o
)",
                  /*shrink=*/false, /*inRings=*/true);
  auto isOfRing = [](Operation *op) {
    return isa<spmd::RingShiftOp, shd::AttentionOp, shd::ElementwiseOp>(op);
  };
  auto turnInto = [](shd::Function from, shd::Function to) {
    return [=](Operation *op) {
      auto elementwise = dyn_cast<shd::ElementwiseOp>(op);
      if (!elementwise || elementwise.getFunction() != from)
        return false;
      elementwise.setFunction(to);
      return true;
    };
  };
  std::vector<Mutation> mutations = {
      {"keys of the next device", changeSteps(1, true)},
      {"the own keys in each step", changeSteps(0, false)},
      {"does not move on", of<spmd::RingShiftOp>(drop)},
      {"a sum for a difference",
       turnInto(shd::Function::Sub, shd::Function::Add)},
      {"a difference for a sum",
       turnInto(shd::Function::Add, shd::Function::Sub)},
      {"a product for a quotient",
       turnInto(shd::Function::Div, shd::Function::Mul)},
  };
  EXPECT_GE(expectNoticed(subject, isOfRing, mutations), 15u);
}

/// Its gradient in four steps: sums of the gradients of keys and values travel
/// home. Matrix units are slow, so that rings are the fastest.
TEST(Mutations, StepsOfAGradientsRing) {
  auto program = std::make_unique<TestProgram>(R"(
order T = contiguous
hardware h100[4] { flops.bf16 = 1 GFLOP/s  flops.f32 = 1 GFLOP/s }
mesh [X=4]
dim T = 16, S = T, K = 3, H = 4, D = 5
input x: f32[T@X, D]
weight Wq: f32[D, K, H]
weight Wk: f32[D, K, H]
weight Wv: f32[D, K, H]
q[T@X, K, H] = x[T, D] * Wq[D, K, H]
k[T@X, K, H] = x[T, D] * Wk[D, K, H]
v[T@X, K, H] = x[T, D] * Wv[D, K, H]
o[T@X, K, H] = attention[H, S](q[T@X, K, H], k[S@X, K, H], v[S@X, K, H], causal=true)
loss[] = mean[T, K, H](o[T, K, H] * o[T, K, H])
train { loss = loss  microbatches = 1 }
)");
  ASSERT_TRUE(program->module() && program->makeStep()) << program->messages();
  Subject subject(std::move(program), OptMode::Optimize, /*shrink=*/false,
                  /*inRings=*/true);
  // The ring's own: its results are summed behind the loop.
  auto isOfRing = [](Operation *op) {
    auto loop = dyn_cast_or_null<shd::RepeatOp>(op->getParentOp());
    return loop && llvm::any_of(loop.getOps<shd::AttentionGradOp>(),
                                [](auto) { return true; });
  };
  std::vector<Mutation> mutations = {
      {"keys of the next device", changeSteps(1, true)},
      {"one part of the keys in all steps", changeSteps(0, false)},
      {"does not move on", of<spmd::RingShiftOp>(drop)},
      {"a difference for a sum",
       [](Operation *op) {
         auto elementwise = dyn_cast<shd::ElementwiseOp>(op);
         if (!elementwise || elementwise.getFunction() != shd::Function::Add)
           return false;
         elementwise.setFunction(shd::Function::Sub);
         return true;
       }},
  };
  // Two changes of steps, four that do not move on, three sums.
  EXPECT_GE(expectNoticed(subject, isOfRing, mutations), 9u);
}

//===----------------------------------------------------------------------===//
// Halos
//===----------------------------------------------------------------------===//

ArrayAttr reversed(ArrayAttr list) {
  return ArrayAttr::get(list.getContext(),
                        llvm::to_vector(llvm::reverse(list.getValue())));
}

/// The rows of the part before come from, or go to, another device.
bool reverseAxes(Operation *op) {
  op->setAttr("axes", reversed(op->getAttrOfType<ArrayAttr>("axes")));
  return true;
}

/// Keys with a halo are taken for those of another device.
bool reverseHalos(Operation *op) {
  auto shards = op->getAttrOfType<ArrayAttr>(spmd::kShards);
  if (!shards)
    return false;
  bool changes = false;
  SmallVector<Attribute> changed;
  for (auto shard : shards.getAsRange<spmd::ShardAttr>()) {
    changes |= shard.getHalo() > 0;
    changed.push_back(shard.getHalo() > 0
                          ? spmd::ShardAttr::get(
                                op->getContext(), shard.getName(),
                                shard.getExtent(),
                                llvm::to_vector(llvm::reverse(shard.getAxes())),
                                shard.getStep(), shard.getEachIteration(),
                                shard.getHalo(), shard.getBack())
                          : shard);
  }
  op->setAttr(spmd::kShards, ArrayAttr::get(op->getContext(), changed));
  return changes;
}

/// Attention with a window along two axes, and its gradient: of so many tokens
/// that halos are the fastest there, too, and then made small. `other` is what
/// it is multiplied with.
void expectHalosNoticed(const std::string &other) {
  auto program = std::make_unique<TestProgram>(R"(
hardware h100[4]
mesh [X=2, Y=2]
dim T = 65536, S = T, K = 3, H = 128, D = 256
input x: f32[T@(X, Y), D]
weight Wq: f32[D, K, H]
weight Wk: f32[D, K, H]
weight Wv: f32[D, K, H]
q[T@(X, Y), K, H] = x[T, D] * Wq[D, K, H]
k[T@(X, Y), K, H] = x[T, D] * Wk[D, K, H]
v[T@(X, Y), K, H] = x[T, D] * Wv[D, K, H]
o[T@(X, Y), K, H] = attention[H, S](q[T@(X, Y), K, H], k[S@(X, Y), K, H], v[S@(X, Y), K, H], window=128)
p[T@(X, Y), K, H] = )" + other + R"(
loss[] = mean[T, K, H](o[T, K, H] * p[T, K, H])
train { loss = loss  microbatches = 1 }
)");
  ASSERT_TRUE(program->module() && program->makeStep()) << program->messages();
  Subject subject(std::move(program), OptMode::Optimize);
  auto isOfHalo = [](Operation *op) {
    return isa<spmd::HaloExchangeOp, spmd::HaloReduceOp, shd::AttentionOp,
               shd::AttentionGradOp>(op);
  };
  std::vector<Mutation> mutations = {
      {"axes in another order",
       of<spmd::HaloExchangeOp, spmd::HaloReduceOp>(reverseAxes)},
      {"keys at other positions",
       of<shd::AttentionOp, shd::AttentionGradOp>(reverseHalos)},
  };
  // K and V once or twice, dK and dV, and two operations.
  EXPECT_GE(expectNoticed(subject, isOfHalo, mutations), 6u);
}

TEST(Mutations, Halos) { expectHalosNoticed("o[T, K, H]"); }

/// Beside attention without a window T is in zigzag order.
TEST(Mutations, HalosInZigzagOrder) {
  expectHalosNoticed("attention[H, S](q[T@(X, Y), K, H], k[S, K, H], "
                     "v[S, K, H], causal=true)");
}

//===----------------------------------------------------------------------===//
// Which part a device has
//===----------------------------------------------------------------------===//

/// The device takes its part of the index for the whole of it.
Break forget(StringRef index) {
  return [name = index.str()](Operation *op) {
    auto shards = op->getAttrOfType<ArrayAttr>(spmd::kShards);
    if (!shards)
      return false;
    SmallVector<Attribute> kept;
    for (auto shard : shards.getAsRange<spmd::ShardAttr>())
      if (shard.getName() != name)
        kept.push_back(shard);
    op->setAttr(spmd::kShards, ArrayAttr::get(op->getContext(), kept));
    return kept.size() < shards.size();
  };
}

/// The index is split over X as it is over Y, and the other way round.
Break moveShard(StringRef index) {
  return [name = index.str()](Operation *op) {
    auto shards = op->getAttrOfType<ArrayAttr>(spmd::kShards);
    if (!shards)
      return false;
    bool changes = false;
    SmallVector<Attribute> changed;
    for (auto shard : shards.getAsRange<spmd::ShardAttr>()) {
      SmallVector<StringAttr> axes;
      for (StringAttr axis : shard.getAxes())
        axes.push_back(StringAttr::get(op->getContext(),
                                       axis.getValue() == "X" ? "Y" : "X"));
      bool isMeant = shard.getName() == name;
      changes |= isMeant;
      changed.push_back(isMeant ? spmd::ShardAttr::get(op->getContext(), name,
                                                       shard.getExtent(), axes)
                                : shard);
    }
    op->setAttr(spmd::kShards, ArrayAttr::get(op->getContext(), changed));
    return changes;
  };
}

struct PartCase {
  const char *name;
  /// The operation whose meaning depends on where the index begins.
  const char *op, *index;
  const char *text;
  /// False if only the length of the whole index matters.
  bool dependsOnPlace = true;
};

constexpr PartCase kPartCases[] = {
    {"table", "shd.gather", "V", R"(
input tokens: int32[B@()]
weight E: f32[V@X, D@()]
x[B@(), D@()] = E[tokens[B]@X, D]
output x
)"},
    {"cache", "shd.scatter", "S", R"(
input pos: int32[B@()]
input k: f32[B@(), D@()]
state c: f32[B@(), S@X, D@()]
c[B, pos[B]@X, D] = k[B, D]
)"},
    {"positions", "shd.rope", "S", R"(
input k: f32[S@X, D@()]
r[S@X, D@()] = rope[S, D](k)
output r
)"},
    {"causal queries", "shd.attention", "T", R"(
input q: f32[B@(), T@X, D@()]
input k: f32[B@(), S@(), D@()]
input v: f32[B@(), S@(), D@()]
o[B@(), T@X, D@()] = attention[D, S](q, k, v, causal=true)
output o
)"},
    {"causal keys", "shd.attention", "S", R"(
input q: f32[B@(), T@(), D@()]
input k: f32[B@(), S@X, D@()]
input v: f32[B@(), S@X, D@()]
o[B@(), T@(), D@()] = attention[D, S](q, k[B, S@X, D], v[B, S@X, D], causal=true)
output o
)"},
    {"labels", "shd.cross_entropy", "V", R"(
input x: f32[B@(), V@X]
input labels: int32[B@()]
e[B@()] = cross_entropy[V](x[B, V@X], labels)
output e
)"},
    {"a mean", "shd.reduce", "V", R"(
input x: f32[B@(), V@X]
m[B@()] = mean[V](x[B, V@X])
output m
)",
     false},
    {"an argmax", "shd.reduce", "V", R"(
input x: f32[B@(), V@X]
m[B@()] = argmax[V](x[B, V@X])
output m
)"},
    {"a norm", "shd.normalize", "V", R"(
input x: f32[B@(), V@X]
m[B@(), V@X] = rmsnorm[V](x[B, V@X])
output m
)",
     false},
};

/// In full size: of few elements, the largest may be in the first part by
/// chance, for one.
class Shards : public testing::TestWithParam<PartCase> {};

TEST_P(Shards, AreNoticed) {
  Subject subject(("hardware tpu_v5e[2, 2]\nmesh [X=2, Y=2]\n"
                   "dim B = 8, D = 6, S = 12, T = S, V = 16\n" +
                   StringRef(GetParam().text))
                      .str(),
                  /*shrink=*/false);
  auto isMeant = [](Operation *op) {
    return op->getName().getStringRef() == GetParam().op;
  };
  StringRef index = GetParam().index;
  std::vector<Mutation> mutations = {
      {"the part taken for the whole", forget(index)}};
  if (GetParam().dependsOnPlace)
    mutations.push_back({"another part", moveShard(index)});
  EXPECT_GE(expectNoticed(subject, isMeant, mutations), mutations.size());
}

INSTANTIATE_TEST_SUITE_P(Verify, Shards, testing::ValuesIn(kPartCases),
                         [](const auto &info) {
                           std::string name = info.param.name;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

constexpr StringLiteral kStructure = R"(
hardware tpu_v5e[2, 2]
mesh [X=2, Y=2]
dim B = 8, D = 8, L = 3
input x: f32[B@X, D@Y]
a[B@X, D@Y] = x[B, D] + 1.0
b[B@X, D@Y] = x[B, D] * 2.0
repeat L {
  state s: f32[B@X, D@Y]
  c[B@X, D@Y] = a[B, D] - 0.5 * b[B, D]
  b = a + s
  a = c
  s = b / 2.0
}
output a
output b
)";

template <typename Op> bool isOp(Operation *op) { return isa<Op>(op); }

bool swapOperands(Operation *op) {
  Value first = op->getOperand(0), second = op->getOperand(1);
  if (first == second || first.getType() != second.getType())
    return false;
  op->setOperands(0, 2, {second, first});
  return true;
}

TEST(Mutations, CarriedValuesInEachOthersPlaces) {
  Subject subject(kStructure);
  EXPECT_EQ(
      expectNoticed(subject, isOp<shd::YieldOp>, {{"swapped", swapOperands}}),
      1u);
  EXPECT_EQ(expectNoticed(subject, isOp<shd::RepeatOp>,
                          {{"swapped at the start", swapOperands}}),
            1u);
}

TEST(Mutations, StatesAndOutputsThatAreMissing) {
  Subject subject(kStructure);
  const std::pair<Break, const char *> cases[] = {
      {isOp<spmd::UpdateOp>, "state 's' is not made by"},
      {isOp<spmd::OutputOp>, "output 'a' is not made by"}};
  for (const auto &[keep, what] : cases) {
    OwningOpRef<ModuleOp> broken = subject.device();
    operation(*broken, numbersOf(*broken, keep).front())->erase();
    std::string said = subject.verify(*broken);
    EXPECT_NE(said.find(what), std::string::npos) << said;
  }
}

TEST(Mutations, ValuesThatAreOthers) {
  Subject subject(kStructure);
  // The state's old value; another output's.
  EXPECT_EQ(expectNoticed(subject, isOp<spmd::UpdateOp>,
                          {{"the value before",
                            [](Operation *op) {
                              auto update = cast<spmd::UpdateOp>(op);
                              for (Operation *user :
                                   update.getState().getUsers())
                                if (auto part = dyn_cast<shd::PartOp>(user))
                                  update.getValueMutable().set(part);
                              return true;
                            }}}),
            1u);
  EXPECT_EQ(expectNoticed(subject, isOp<spmd::OutputOp>,
                          {{"the other result",
                            [](Operation *op) {
                              auto result = cast<OpResult>(op->getOperand(0));
                              op->setOperand(0,
                                             result.getOwner()->getResult(
                                                 1 - result.getResultNumber()));
                              return true;
                            }}}),
            2u);
}

TEST(Mutations, PartsOfOtherIterations) {
  Subject subject(kStructure);
  EXPECT_EQ(expectNoticed(subject, isOp<shd::PartOp>,
                          {{"the first part",
                            [](Operation *op) {
                              OpBuilder builder(op);
                              auto type = RankedTensorType::get(
                                  {}, builder.getI32Type());
                              auto first = shd::ConstantOp::create(
                                  builder, op->getLoc(), type,
                                  DenseElementsAttr::get(type, int32_t(0)));
                              cast<shd::PartOp>(op).getAtMutable().assign(
                                  first.getResult());
                              return true;
                            }}}),
            1u);
}

TEST(Mutations, IterationsThatAreMissing) {
  Subject subject(kStructure);
  OwningOpRef<ModuleOp> broken = subject.device();
  broken->walk([](shd::RepeatOp op) { op.setCount(op.getCount() - 1); });
  EXPECT_NE(subject.verify(*broken), "");
}

/// Parameters cut along the other axis; the global type of every value is still
/// what it was.
TEST(Mutations, PartsOfParameters) {
  Subject subject(kStructure);
  EXPECT_EQ(
      expectNoticed(subject, isOp<spmd::ParameterOp>,
                    {{"cut otherwise", exchangeAxes("global", "X", "Y")}}),
      2u);
}

/// b / a in place of a / b.
TEST(Mutations, OperandsInEachOthersPlaces) {
  Subject subject(R"(
hardware tpu_v5e[2, 1]
mesh [X=2]
dim B = 8
input a: f32[B@X]
input b: f32[B@X]
c[B@X] = a / b
output c
)");
  EXPECT_EQ(expectNoticed(subject, isOp<shd::ElementwiseOp>,
                          {{"swapped", swapOperands}}),
            1u);
}

//===----------------------------------------------------------------------===//
// What is said
//===----------------------------------------------------------------------===//

constexpr StringLiteral kFeedForward = R"(hardware tpu_v5e[2, 1]
mesh [X=2]
dim B = 4, D = 6, F = 8
input x: f32[B@(), D@X]
weight W: f32[D@X, F@()]
h[B@(), F@()] = x[B, D@X] * W[D@X, F]
y[B@(), F@()] = relu(h)
z[B@(), F@()] = y + y
output z
)";

/// The output, with an element and a device, and the first operation that went
/// wrong: not y + y, which makes it, but relu, which takes partial sums.
TEST(Mutations, TheFirstOperationIsNamed) {
  Subject subject(kFeedForward);
  OwningOpRef<ModuleOp> broken = subject.device();
  SmallVector<spmd::AllReduceOp> sums;
  broken->walk([&](spmd::AllReduceOp op) { sums.push_back(op); });
  ASSERT_EQ(sums.size(), 1u);
  drop(sums.front());
  std::string said = subject.verify(*broken);
  StringRef text = said;
  auto [error, note] = text.split('\n');
  EXPECT_TRUE(error.contains("output 'z' differs: element [")) << said;
  EXPECT_TRUE(error.contains("on device (X=")) << said;
  EXPECT_TRUE(error.contains("in the unsharded program")) << said;
  EXPECT_TRUE(note.contains("the first operation whose result differs is the "
                            "elementwise that makes 'y': element ["))
      << said;
}

/// A collective may be the first: the all_reduce takes the larger summand.
TEST(Mutations, TheFirstCollectiveIsNamed) {
  Subject subject(kFeedForward);
  OwningOpRef<ModuleOp> broken = subject.device();
  broken->walk(
      [](spmd::AllReduceOp op) { op.setCombination(shd::Combination::Max); });
  std::string said = subject.verify(*broken);
  EXPECT_NE(said.find("the first operation whose result differs is the "
                      "all_reduce of 'h': element ["),
            std::string::npos)
      << said;
}

//===----------------------------------------------------------------------===//
// Training steps
//===----------------------------------------------------------------------===//

constexpr StringLiteral kTraining = R"(
hardware tpu_v5e[2, 1]
mesh [X=2]
dim B = 8, D = 4, F = 6, L = LAYERS
input x: f32[B@X, D@()]
h: f32[B, D] = x[B@X, D]
repeat L {
  weight W: f32[D@(), F@()]
  weight V: f32[F@(), D@()]
  u[B@X, F] = tanh(h[B@X, D] * W[D, F])
  h[B@X, D] += u[B@X, F] * V[F, D]
}
loss[] = mean[B, D](square(h))
train {
  loss = loss
  microbatches = 2
  remat = REMAT
  optimizer = OPTIMIZER
}
)";

std::unique_ptr<TestProgram> trainingStep(StringRef optimizer,
                                          StringRef layers = "2",
                                          StringRef remat = "none") {
  std::string text = kTraining.str();
  auto replace = [&](StringRef name, StringRef by) {
    text.replace(text.find(name), name.size(), by.str());
  };
  replace("LAYERS", layers);
  replace("REMAT", remat);
  replace("OPTIMIZER", optimizer);
  auto program = std::make_unique<TestProgram>(text);
  EXPECT_TRUE(program->module() && program->makeStep()) << program->messages();
  return program;
}

bool writes(Operation *op, shd::TensorKind kind) {
  auto update = dyn_cast<spmd::UpdateOp>(op);
  return update && update.getParameter().getKind() == kind;
}

/// A gradient that has only its last microbatch.
bool doNotAccumulate(Operation *op) {
  if (!writes(op, shd::TensorKind::Gradient))
    return false;
  auto sum = op->getOperand(0).getDefiningOp<shd::ElementwiseOp>();
  while (sum && sum.getFunction() != shd::Function::Add)
    sum = sum->getOperand(0).getDefiningOp<shd::ElementwiseOp>();
  if (!sum)
    return false;
  for (OpOperand &operand : sum->getOpOperands())
    if (!operand.get().getDefiningOp<shd::PartOp>() &&
        operand.get().getType() == op->getOperand(0).getType()) {
      op->setOperand(0, operand.get());
      return true;
    }
  return false;
}

bool leaveOut(Operation *op) {
  op->erase();
  return true;
}

/// A part of a saved value, in the iteration that runs first in reverse order.
bool takeOtherIteration(Operation *op) {
  auto part = dyn_cast<shd::PartOp>(op);
  if (!part || part.getAt().empty())
    return false;
  auto parameter = part.getSource().getDefiningOp<spmd::ParameterOp>();
  if (!parameter || parameter.getKind() != shd::TensorKind::Saved)
    return false;
  OpBuilder builder(op);
  auto type = cast<RankedTensorType>(part.getAt().back().getType());
  Value zero = shd::ConstantOp::create(
      builder, op->getLoc(), type,
      DenseElementsAttr::get(type, Attribute(builder.getI32IntegerAttr(0))));
  op->setOperand(op->getNumOperands() - 1, zero);
  return true;
}

TEST(Mutations, TrainingSteps) {
  for (StringRef optimizer : {"adamw", "sgd"}) {
    Subject subject(trainingStep(optimizer));
    auto isAny = [](Operation *op) {
      return isa<spmd::UpdateOp, shd::PartOp>(op);
    };
    EXPECT_EQ(
        expectNoticed(subject, isAny, {{"not accumulated", doNotAccumulate}}),
        2u);
    EXPECT_GE(expectNoticed(subject, isAny,
                            {{"of another iteration", takeOtherIteration}}),
              2u);
    unsigned moments = optimizer == "adamw" ? 5 : 2;
    auto isWritten = [](shd::TensorKind kind) {
      return [kind](Operation *op) { return writes(op, kind); };
    };
    std::vector<Mutation> mutations = {{"not written", leaveOut}};
    EXPECT_EQ(
        expectNoticed(subject, isWritten(shd::TensorKind::Moment), mutations),
        moments);
    EXPECT_EQ(
        expectNoticed(subject, isWritten(shd::TensorKind::Weight), mutations),
        2u);
    EXPECT_GE(
        expectNoticed(subject, isWritten(shd::TensorKind::Saved), mutations),
        2u);
  }
}

/// Segments of 2, 2 and 1 iterations: h at the beginning of each and u of each
/// iteration that runs again are written and read.
TEST(Mutations, SegmentsOfATrainingStep) {
  Subject subject(trainingStep("sgd", "5", "every(2)"));
  auto isPart = [](Operation *op) { return isa<shd::PartOp>(op); };
  EXPECT_GE(expectNoticed(subject, isPart,
                          {{"of another iteration", takeOtherIteration}}),
            3u);
  auto isSaved = [](Operation *op) {
    return writes(op, shd::TensorKind::Saved);
  };
  EXPECT_GE(expectNoticed(subject, isSaved, {{"not written", leaveOut}}), 3u);
  auto isOfSegment = [](Operation *op) {
    auto repeat = dyn_cast<shd::RepeatOp>(op);
    return repeat && shd::segmentsOf(repeat);
  };
  auto runOneLess = [](Operation *op) {
    auto repeat = cast<shd::RepeatOp>(op);
    repeat.setCount(repeat.getCount() - 1);
    return true;
  };
  // In the forward pass, where it runs again, and in the backward pass.
  EXPECT_EQ(
      expectNoticed(subject, isOfSegment, {{"one iteration less", runOneLess}}),
      3u);
}

TEST(Mutations, CollectivesOfATrainingStep) {
  Subject subject(trainingStep("adamw"));
  EXPECT_GE(expectCollectivesNoticed(subject), 2u);
}

} // namespace
