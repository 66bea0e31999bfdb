//===- MemoryTest.cpp - Memory predicted and measured ---------------------===//
//
// What a device takes at most is counted by hand, predicted from the program's
// graph and measured on a grid of devices that runs the schedule.
//
//===----------------------------------------------------------------------===//

#include "TestProgram.h"
#include "shardc/Pipelines/Compilation.h"
#include "shardc/Verify/Verify.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::test;

namespace {

/// What each device takes, predicted and measured, and how it overlaps.
struct Memory {
  int64_t predicted = -1, inOrder = -1;
  std::vector<int64_t> measured;
  std::vector<Overlap> overlap;
};

/// A planned program and its schedule.
class Subject {
public:
  explicit Subject(StringRef text, int64_t limit = int64_t(1) << 40,
                   OptMode mode = OptMode::None)
      : program(text) {
    if (!program.module())
      return;
    PlanOptions planOptions;
    planOptions.mode = mode;
    compilation.emplace(program.clone(), Compilation::Stage::Imported,
                        CompileOptions{planOptions});
    if (failed(compilation->lower()))
      return;
    // Whatever the plan was made for.
    compilation->options().plan.memoryLimit = limit;
    scheduled = compilation->schedule();
  }

  const std::string &messages() const { return program.messages(); }
  FailureOr<Verification> verify(const RunSchedule &schedule) {
    VerifyOptions options;
    options.shrink = false;
    options.schedule = &schedule;
    return verifyPlan(program.module(), compilation->module(), options);
  }
  Memory measure() {
    Memory result;
    if (!scheduled) {
      ADD_FAILURE() << messages();
      return result;
    }
    FailureOr<Verification> verification = verify(scheduled->issues);
    if (failed(verification)) {
      ADD_FAILURE() << messages();
      return result;
    }
    EXPECT_TRUE(verification->holds) << messages();
    result.predicted = scheduled->memory.peak;
    result.inOrder = verification->inOrder->predicted;
    result.measured = {verification->asScheduled->measured.begin(),
                       verification->asScheduled->measured.end()};
    result.overlap = scheduled->overlap;
    return result;
  }

  const ScheduledProgram *scheduled = nullptr;

private:
  TestProgram program;
  std::optional<Compilation> compilation;
};

Memory measure(StringRef text, int64_t limit = int64_t(1) << 40,
               OptMode mode = OptMode::None) {
  return Subject(text, limit, mode).measure();
}

void expectPeak(const Memory &memory, int64_t bytes) {
  EXPECT_EQ(memory.predicted, bytes);
  for (int64_t measured : memory.measured)
    EXPECT_EQ(measured, bytes);
}

/// Of each weight, a device holds 16 B for each iteration and 32 B as gathered;
/// x and h are 32 B.
constexpr const char *kLayers = R"(
hardware tpu_v5e[2, 2]
mesh [X=2, Y=2]
dim B = 8, D = 4, F = 8, L = 3
input x0: bf16[B@X, D]
x[B@X, D@()] = x0[B, D]
repeat L {
  weight Win:  bf16[D@X, F@Y]
  weight Wout: bf16[F@Y, D@X]
  h[B@X, F@Y] = relu(x[B@X, D@()] * Win[D@(), F@Y])
  x[B@X, D@()] = h[B@X, F@Y] * Wout[F@Y, D@()]
}
output x
)";

// While h is made: weights 3 * 32, x and h, Win as gathered, that of the next
// iteration and Wout.
TEST(MemoryTest, Prefetched) {
  Memory memory = measure(kLayers);
  ASSERT_EQ(memory.overlap[1], Overlap::Prefetch);
  expectPeak(memory, 96 + 64 + 3 * 32);
}

// Win and Wout.
TEST(MemoryTest, Ahead) {
  Memory memory = measure(kLayers, 96 + 64 + 2 * 32);
  ASSERT_EQ(memory.overlap[1], Overlap::Ahead);
  expectPeak(memory, 96 + 64 + 2 * 32);
}

// Win alone.
TEST(MemoryTest, Serial) {
  Memory memory = measure(kLayers, 96 + 64 + 32);
  ASSERT_EQ(memory.overlap[1], Overlap::Serial);
  expectPeak(memory, 96 + 64 + 32);
}

//===----------------------------------------------------------------------===//
// What a repeat gathers of values made around it
//===----------------------------------------------------------------------===//

/// w0 and w are 16 B, w as gathered, v, x0, x and h 32 B.
constexpr const char *kAround = R"(
hardware tpu_v5e[2, 2]
mesh [X=2, Y=2]
dim B = 8, D = 4, E = 4, L = 3
input x0: bf16[B@X, D@()]
input w0: bf16[D@X, E@()]
input v: bf16[E@(), D@()]
x[B@X, D@()] = x0[B, D]
w[D@X, E@()] = relu(w0[D, E])
repeat L {
  h[B@X, E@()] = x[B, D] * w[D@(), E]
  x[B@X, D@()] = h[B, E] * v[E, D]
}
output x
)";

// While h is made: w, v, x and h, w as gathered and for the next iteration.
TEST(MemoryTest, GatheredAroundARepeat) {
  Memory memory = measure(kAround);
  ASSERT_EQ(memory.overlap[1], Overlap::Prefetch);
  expectPeak(memory, 16 + 32 + 32 + 32 + 2 * 32);
}

TEST(MemoryTest, IssuedBeforeItsOperand) {
  Subject subject(kAround);
  ASSERT_TRUE(subject.scheduled) << subject.messages();
  RunSchedule schedule = subject.scheduled->issues;
  for (EarlyIssue &issue : schedule)
    if (!issue.next)
      issue.after = nullptr;
  EXPECT_TRUE(failed(subject.verify(schedule)));
  EXPECT_NE(subject.messages().find("is issued before its operand has been "
                                    "made"),
            std::string::npos)
      << subject.messages();
}

//===----------------------------------------------------------------------===//
// The end of a repeat
//===----------------------------------------------------------------------===//

/// The layers of kLayers, and behind them a weight V of 4 x 16 in bf16, 64 B,
/// of 128 B as gathered; z is 32 B.
constexpr const char *kAfterLayers = R"(
hardware tpu_v5e[2, 2]
mesh [X=2, Y=2]
dim B = 8, D = 4, F = 8, E = 16, L = 3
input x0: bf16[B@X, D]
weight V: bf16[D@Y, E@()]
x[B@X, D@()] = x0[B, D]
repeat L {
  weight Win:  bf16[D@X, F@Y]
  weight Wout: bf16[F@Y, D@X]
  h[B@X, F@Y] = relu(x[B@X, D@()] * Win[D@(), F@Y])
  x[B@X, D@()] = h[B@X, F@Y] * Wout[F@Y, D@()]
}
z[E@()] = mean[D](V[D@(), E@()])
output x
output z
)";

// While h is made, as above, with both forms of V.
TEST(MemoryTest, GatheredBeforeARepeat) {
  expectPeak(measure(kAfterLayers), 96 + 64 + 3 * 32 + 64 + 128);
}

// V is gathered when the last iteration ends, which gathers nothing for another
// one: at z the weights, x, V as gathered and z.
TEST(MemoryTest, GatheredWhenARepeatEnds) {
  Memory memory = measure(kAfterLayers, 400);
  ASSERT_EQ(memory.overlap[0], Overlap::Ahead);
  ASSERT_EQ(memory.overlap[1], Overlap::Prefetch);
  expectPeak(memory, 96 + 64 + 32 + 128 + 32);
}

//===----------------------------------------------------------------------===//
// How long operands are needed
//===----------------------------------------------------------------------===//

// The products compute w from q, 32 B, which is there until the second has run:
// beside b, 32 B, and both results, 64 B each. w takes nothing.
TEST(MemoryTest, InputOfAPrologue) {
  expectPeak(measure(R"(
hardware tpu_v5e[2, 1]
mesh [X=2]
dim B = 8, D = 4, F = 8
input a: bf16[B@X, D]
input b: bf16[B@X, D]
input q: int8[D@(), F@()]
w[D@(), F@()] = bf16(q)
y[B@X, F@()] = a * w
z[B@X, F@()] = b * w
output y
output z
)"),
             32 + 32 + 2 * 64);
}

// In each iteration both products compute w from q, of which a device has 16 B
// for each of two iterations; as gathered, 32 B, it is there until the second
// has run, and that of the next iteration, too. x is 32 B, y 64 B, Wy 64 B.
TEST(MemoryTest, InputOfAPrologueInARepeat) {
  Memory memory = measure(R"(
hardware tpu_v5e[2, 1]
mesh [X=2]
dim B = 8, D = 4, F = 8, L = 2
input x0: bf16[B@X, D]
input V: bf16[F@(), D@()]
x[B@X, D@()] = x0[B, D]
repeat L {
  weight q: int8[D@X, F@()]
  w[D@(), F@()] = bf16(q[D@(), F@()])
  y[B@X, F@()] = x[B, D] * w[D, F]
  z[B@X, D@()] = y[B, F] * V[F, D]
  u[B@X, F@()] = z[B, D] * w[D, F]
  x[B@X, D@()] = u[B, F] * V[F, D]
}
output x
)");
  ASSERT_EQ(memory.overlap[1], Overlap::Prefetch);
  // While u is made: q, V, z, u and q as gathered; at its end or before for the
  // next iteration, in which y is made beside x.
  expectPeak(memory, 2 * 16 + 64 + 32 + 64 + 2 * 32);
}

// The kernel of h and r runs before k, which reads h and stands between them:
// while k is made h, r and k are there, and the weights, 64 and 256 B.
TEST(MemoryTest, KernelBeforeItsReader) {
  expectPeak(measure(R"(
hardware tpu_v5e[2, 1]
mesh [X=2]
dim B = 8, D = 4, F = 8, E = 16
input a: bf16[B@X, D]
weight W: bf16[D, F]
weight V: bf16[F, E]
h[B@X, F@()] = a[B, D] * W[D, F]
k[B@X, E@()] = h[B, F] * V[F, E]
r[B@X, F@()] = relu(h)
output k
output r
)"),
             64 + 256 + 64 + 64 + 128);
}

//===----------------------------------------------------------------------===//
// What nothing reads
//===----------------------------------------------------------------------===//

/// a and b are 32 B, W 64 B, V 512 B; d is 64 B as made and 128 B as stored, y
/// 512 B.
constexpr const char *kUnread = R"(
hardware tpu_v5e[2, 1]
mesh [X=2]
dim B = 8, D = 4, F = 8, E = 64
input a: bf16[B@X, D]
input b: bf16[B@X, D]
weight W: bf16[D, F]
weight V: bf16[D, E]
d[B@(), F@()] = a[B, D] * W[D, F]
y[B@X, E@()] = b[B, D] * V[D, E]
output y
)";

// It is gathered while y is made, whenever that ends: what it is made from
// stays.
TEST(MemoryTest, UnreadAndGathered) {
  expectPeak(measure(kUnread), 64 + 512 + 32 + 512 + 64);
}

// In program order both forms of d are there while it is made only, and then y
// takes more.
TEST(MemoryTest, UnreadInProgramOrder) {
  EXPECT_EQ(measure(kUnread).inOrder, 64 + 512 + 32 + 512);
}

//===----------------------------------------------------------------------===//
// Scatters into states
//===----------------------------------------------------------------------===//

/// s is 64 B on each device; W is 128 B and y 256 B.
std::string writtenState(StringRef stored) {
  return (R"(
hardware tpu_v5e[2, 1]
mesh [X=2]
dim F = 8, T = 4, E = 8
state s: f32[F@X, T]
input at: int32[]
input u: f32[F@X]
weight W: f32[T, E]
s[)" + stored +
          R"(, at[]] = u[F]
y[F@(), E@()] = s[F@(), T@()] * W[T, E]
output y
)")
      .str();
}

// What is written into s is s. While y is made: s, W, y and s as gathered, 128
// B.
TEST(MemoryTest, ScatterInPlace) {
  expectPeak(measure(writtenState("F@X")), 64 + 128 + 256 + 128);
}

// Stored whole it is a tensor beside s, 128 B.
TEST(MemoryTest, ScatterStoredOtherwise) {
  expectPeak(measure(writtenState("F@()")), 64 + 128 + 256 + 128);
}

// The same, read by two products. As gathered for each of them, in turn, s is
// there once, and as stored it is until the second has run: beside both
// results.
TEST(MemoryTest, ScatterReadTwice) {
  std::string second = R"(
z[F@(), E@()] = s[F@(), T@()] * W[T, E]
output z
)";
  expectPeak(measure(writtenState("F@()") + second), 64 + 128 + 2 * 256 + 128);
}

//===----------------------------------------------------------------------===//
// Copies that something reads early
//===----------------------------------------------------------------------===//

/// v is 16 B on each device and 32 B as gathered, of which y and w share a copy
/// of 8 B; a and x are 32 B, w is 8 B as made, 32 B as gathered and 16 B as
/// stored, as is z, and y 4 B.
constexpr const char *kSharedCopy = R"(
hardware tpu_v5e[2, 4]
mesh [X=2, Y=4]
dim F = 8
input a: f32[F@()]
input v: f32[F@X]
x[F@()] = relu(a[F@()])
y[] = v[F@Y] * x[F@Y]
w[F@X] = v[F@Y]
z[F@X] = exp(w[F@X])
output x
output y
output z
)";

// w costs nothing and is made while y is, for z: the copy has been made before,
// but what it is made from stays until that point ends. Then there are x, v, y,
// gathered v and the copy, w and its gathered and stored forms.
TEST(MemoryTest, CopyReadEarly) {
  Memory memory = measure(kSharedCopy, 140, OptMode::Optimize);
  ASSERT_EQ(memory.overlap[0], Overlap::Ahead);
  expectPeak(memory, 32 + 16 + 4 + 32 + 8 + 32 + 16);
}

//===----------------------------------------------------------------------===//
// What is issued beside a kernel that ends later
//===----------------------------------------------------------------------===//

/// s and z are one kernel, priced in two parts and run behind the repeat. On
/// each device V is 2048 B, Win 1024, W2 4096, Wout 512 and 1024 as gathered; u
/// is 32, k 16; x is 256, y 2048, g and h 1024.
constexpr const char *kAroundKernel = R"(
hardware tpu_v5e[2, 1]
mesh [X=2]
dim B = 8, C = 1, D = 8, E = 32, F = 32, G = 64, T = 4, L = 1
input x0: f32[B@(), D@()]
weight V: f32[D@(), G@()]
input u: f32[B@(), C@()]
input k: f32[C@(), T@()]
x[B@(), D@()] = x0[B, D]
y[B@(), G@()] = x0[B, D] * V[D, G]
s[B@(), T@()] = u[B, C] * k[C, T]
repeat L {
  weight Win: f32[D@(), E@()]
  weight W2: f32[E@(), F@()]
  weight Wout: f32[F@X, D@()]
  g[B@(), E@()] = x[B, D] * Win[D, E]
  h[B@(), F@()] = g[B, E] * W2[E, F]
  x[B@(), D@()] = h[B, F] * Wout[F@(), D]
}
z[T@(), B@X] = s[B@X, T]
output x
output z
)";

// Wout may not be gathered while y is made, but when it has been: it is there
// beside the weights, u, k, g and h.
TEST(MemoryTest, IssuedBesideAKernelThatEndsLater) {
  int64_t most = 2048 + 1024 + 4096 + 512 + 32 + 16 + 3 * 1024;
  Memory memory = measure(kAroundKernel, most);
  ASSERT_EQ(memory.overlap[0], Overlap::Ahead);
  expectPeak(memory, most);
}

/// h and w are one kernel, priced in two parts and run behind u. On each device
/// V is 2048 B, W and a 256, c 16 and 32 as gathered, z and u 32; y is 2048, h
/// 128 and as moved too, w 16.
constexpr const char *kReadByKernel = R"(
hardware tpu_v5e[2, 1]
mesh [X=2]
dim F = 8, D = 8, T = 8, E = 64
input a: f32[F@(), D@()]
input z: f32[F@()]
weight V: f32[D@(), E@()]
weight W: f32[D@(), T@()]
weight c: int32[F@X]
y[F@(), E@()] = a[F, D] * V[D, E]
h[F@X, T@()] = a[F@X, D] * W[D, T]
l[F@()] = cross_entropy[T](h[F@(), T@X], c[F@()])
u[F@()] = exp(z[F])
w: f16[F@()] = l[F]
output u
output w
)";

// While y is made there are the weights and inputs. c is gathered while u is
// made, but the maxima of h, which are issued with it, are there when the
// kernel has run.
TEST(MemoryTest, IssuedBesideAnotherKernelThanTheirs) {
  int64_t most = 2048 + 256 + 16 + 256 + 32 + 2048;
  Memory memory = measure(kReadByKernel, most);
  ASSERT_EQ(memory.overlap, std::vector({Overlap::Ahead}));
  expectPeak(memory, most);
}

//===----------------------------------------------------------------------===//
// Statistics of what is moved at different times
//===----------------------------------------------------------------------===//

/// On each device V is 2048 B, each of the three g 8 and 16 as gathered, a 256
/// and b 32; y is 2048, u 32, x 64 and 128 as gathered.
constexpr const char *kCarriedStatistic = R"(
hardware tpu_v5e[2, 2]
mesh [X=2, Y=2]
dim B = 8, F = 8, D = 8, E = 64, L = 3
input x0: f32[B@Y, F@X]
input a: f32[B@(), D@()]
input b: f32[B@()]
weight V: f32[D@(), E@()]
x[B@Y, F@X] = x0[B, F]
repeat L {
  weight g: f32[F@(X, Y)]
  y[B@(), E@()] = a[B, D] * V[D, E]
  u[B@()] = exp(b[B])
  x[B@Y, F@X] = rmsnorm[F](x[B@(), F@X], g[F@X])
}
output x
)";

// x is gathered for the next iteration; its statistics also wait for g, which
// is gathered while u is made. While y is made there are the weights, a, b,
// both forms of x and y.
TEST(MemoryTest, StatisticWaitsForThisIteration) {
  int64_t most = 2048 + 3 * 8 + 256 + 32 + 64 + 128 + 2048;
  Memory memory = measure(kCarriedStatistic, most);
  ASSERT_EQ(memory.overlap, std::vector({Overlap::Prefetch, Overlap::Ahead}));
  expectPeak(memory, most);
}

//===----------------------------------------------------------------------===//
// States that are moved early
//===----------------------------------------------------------------------===//

/// s is 256 B on each device, half of it 128 B; V is 256 B, W 2048 B, h 128 B
/// and y 1024 B.
constexpr const char *kMovedState = R"(
hardware tpu_v5e[2, 1]
mesh [X=2]
dim D = 8, K = 8, B = 4, C = 8, E = 64
input a: f32[B@(), C@()]
weight V: f32[C@(), K@()]
weight W: f32[K@(), E@()]
state s: f32[D@(), K@()]
h[B@(), K@()] = a[B, C] * V[C, K]
y[B@(), E@()] = h[B, K] * W[K, E]
s[D@(), K@()] = s[D@X, K]
output y
)";

// The half is gathered from the beginning on; compute does not wait for it
// until the statement is reached. While y is made there are the weights, both
// forms of what s becomes, s, h and y.
TEST(MemoryTest, StateGatheredEarly) {
  Memory memory = measure(kMovedState);
  ASSERT_EQ(memory.overlap[0], Overlap::Prefetch);
  expectPeak(memory, 256 + 2048 + 256 + 128 + 256 + 128 + 1024);
}

} // namespace
