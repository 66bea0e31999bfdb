//===- ShrinkTest.cpp - Programs small enough to run ----------------------===//
//
// Invariants of shrinking, on every model and on random programs, planned in
// every way. Cases worked by hand are in
// test/Dialect/Shd/Transforms/shrink.mlir.
//
//===----------------------------------------------------------------------===//

#include "shardc/Shrink/Shrink.h"
#include "RandomProgram.h"
#include "RandomPrograms.h"
#include "SmallPrograms.h"
#include "TestProgram.h"
#include "mlir/IR/Verifier.h"
#include "shardc/Pipelines/Compilation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace shardc;
using namespace shardc::test;

namespace {

constexpr OptMode kModes[] = {OptMode::None, OptMode::Propagate,
                              OptMode::Optimize};

/// A program as imported and as planned; false if it cannot be planned.
struct Pair {
  Pair(TestProgram &program, OptMode mode, bool allowPadding = false)
      : imported(program.clone()) {
    TestProgram::programOf(*imported).setAllowPadding(allowPadding);
    PlanOptions options;
    options.mode = mode;
    options.objective = Objective::Upper; // the quickest search
    Compilation compilation(imported->clone(), Compilation::Stage::Imported,
                            {options});
    isPlanned = succeeded(compilation.lower());
    planned = compilation.takeModule();
  }
  explicit operator bool() const { return isPlanned; }

  OwningOpRef<ModuleOp> imported, planned;
  bool isPlanned = false;
};

struct Dimension {
  int64_t extent = 1;
  /// Devices that it is split over.
  int64_t devices = 1;
  bool operator==(const Dimension &) const = default;
};

/// Every dimension of every value, in program order, without those of stacks,
/// which are as long as repeats run.
std::vector<Dimension> dimensionsOf(shd::ProgramOp program) {
  std::vector<Dimension> dimensions;
  Mesh mesh = shd::toMesh(program.getMeshAttr());
  auto add = [&](Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    shd::ShardingAttr sharding = shd::getSharding(type);
    Layout layout = sharding ? shd::toLayout(mesh, sharding)
                             : Layout::replicated(type.getRank());
    auto dims = llvm::zip_equal(type.getShape(), layout.dims);
    for (auto [extent, axes] : llvm::drop_begin(dims, shd::stackedDims(value)))
      dimensions.push_back({extent, mesh.groupSize(axes)});
  };
  program.getBody().walk([&](Operation *op) {
    for (Value result : op->getResults())
      add(result);
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments())
        add(argument);
  });
  return dimensions;
}

/// True if extents of the program are products or sums of others, or numbers of
/// iterations: these need not keep their order.
bool relatesExtents(shd::ProgramOp program) {
  return program
      .walk([](Operation *op) {
        return isa<shd::SplitOp, shd::MergeOp, shd::ConcatOp, shd::GatherOp>(op)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

void expectSameDivisions(ArrayRef<Dimension> before, ArrayRef<Dimension> after,
                         bool isOrdered) {
  ASSERT_EQ(before.size(), after.size());
  std::map<int64_t, int64_t> map;
  for (auto [large, small] : llvm::zip_equal(before, after)) {
    EXPECT_LE(small.extent, large.extent);
    EXPECT_EQ(large.extent == 1, small.extent == 1);
    EXPECT_EQ(large.devices == 1, small.devices == 1);
    EXPECT_EQ(large.extent % large.devices == 0,
              small.extent % small.devices == 0);
    if (isOrdered && large.extent > large.devices)
      EXPECT_GT(small.extent, small.devices);
    auto [entry, isNew] = map.try_emplace(large.extent, small.extent);
    EXPECT_EQ(entry->second, small.extent) << large.extent << " has two values";
  }
  if (!isOrdered)
    return;
  int64_t previous = 0;
  for (auto [large, small] : map) {
    EXPECT_GT(small, previous) << large << " is not in order";
    previous = small;
  }
}

bool growsSlots(shd::ProgramOp program) {
  return program
      ->walk([](shd::ExpertsOpInterface op) {
        return op.getDropless() ? WalkResult::interrupt()
                                : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Shrinks both programs; what they must keep, they keep.
void expectShrinks(Pair &pair) {
  shd::ProgramOp imported = TestProgram::programOf(*pair.imported);
  shd::ProgramOp planned = TestProgram::programOf(*pair.planned);
  std::vector<Dimension> before = dimensionsOf(planned);
  bool isOrdered = !relatesExtents(planned);
  Shrinking shrinking = chooseShrinking(planned);
  applyShrinking(imported, shrinking);
  applyShrinking(planned, shrinking);
  EXPECT_TRUE(succeeded(verify(*pair.imported)));
  EXPECT_TRUE(succeeded(verify(*pair.planned)));
  // Slots without drops grow to what one expert may need, whatever they were.
  if (growsSlots(planned))
    return;
  std::vector<Dimension> after = dimensionsOf(planned);
  expectSameDivisions(before, after, isOrdered);
  // Small programs stay as they are.
  applyShrinking(planned, chooseShrinking(planned));
  EXPECT_EQ(dimensionsOf(planned), after);
}

/// Steps whose search takes long. No gradient in them is placed.
constexpr llvm::StringLiteral kLargeSteps[] = {
    "deepseek-v3-train.shd", "gemma2-27b-train.shd", "gpt-oss-120b-train.shd",
    "llama3-405b-128k.shd"};

TEST(Shrink, EveryModelInEveryMode) {
  unsigned models = 0;
  for (const char *folder : {"", "book/"}) {
    std::error_code error;
    std::set<std::string> names;
    for (llvm::sys::fs::directory_iterator
             file(Twine(SHARDC_MODELS_DIR "/") + folder, error),
         end;
         file != end && !error; file.increment(error))
      if (llvm::sys::path::extension(file->path()) == ".shd")
        names.insert(folder + llvm::sys::path::filename(file->path()).str());
    for (const std::string &name : names)
      for (OptMode mode : kModes) {
        SCOPED_TRACE(name + " mode " + std::to_string(int(mode)));
        auto program = TestProgram::ofModel(name);
        ASSERT_TRUE(program && program->module());
        // A gradient that is placed as a partial sum needs a search.
        bool isTrained = (*program->module().getOps<shd::ProgramOp>().begin())
                             .getTraining()
                             .has_value();
        bool isLarge = llvm::is_contained(kLargeSteps, name);
        if (isTrained &&
            mode != (isLarge ? OptMode::Propagate : OptMode::Optimize))
          continue;
        Pair pair(*program, mode);
        ASSERT_TRUE(pair) << program->messages();
        expectShrinks(pair);
        ++models;
      }
  }
  EXPECT_GT(models, 0u);
}

TEST(Shrink, SmallProgramsInEveryMode) {
  for (const SmallProgram &small : kSmallPrograms)
    for (OptMode mode : kModes) {
      SCOPED_TRACE(small.name);
      TestProgram program(small.text);
      Pair pair(program, mode);
      if (pair)
        expectShrinks(pair);
      else
        EXPECT_NE(mode, OptMode::Optimize) << program.messages();
    }
}

constexpr unsigned kPrograms = 60;

TEST(Shrink, RandomPlacements) {
  unsigned planned = 0;
  for (unsigned seed = 1; seed <= kPrograms; ++seed)
    for (OptMode mode : kModes) {
      Writing writing;
      // Meshes of 16 chips: 4 x 4, 2 x 8 and 8 x 2.
      if (seed % 3 != 0)
        writing.mesh = {{0, seed % 3 == 1 ? 2 : 8}, {1, seed % 3 == 1 ? 8 : 2}};
      std::string text = RandomProgram(seed).text(writing);
      SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
      TestProgram program(text);
      ASSERT_TRUE(program.module()) << program.messages();
      Pair pair(program, mode);
      if (!pair)
        continue;
      ++planned;
      expectShrinks(pair);
    }
  // Placements that contradict each other are errors; most do not.
  EXPECT_GE(planned, 3 * kPrograms / 2);
}

TEST(Shrink, RandomLoops) {
  unsigned planned = 0;
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    std::string text = randomProgram(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    TestProgram program(text);
    ASSERT_TRUE(program.module()) << program.messages();
    Pair pair(program, OptMode::Optimize);
    if (!pair)
      continue;
    ++planned;
    expectShrinks(pair);
  }
  EXPECT_GE(planned, kPrograms / 2);
}

/// The program without placements, and with extents that 4 devices divide
/// sometimes.
std::string unevenText(std::string text) {
  for (size_t at; (at = text.find("@(")) != std::string::npos;)
    text.erase(at, text.find(')', at) + 1 - at);
  const std::pair<const char *, const char *> extents[] = {
      {"= 64\n", "= 61\n"}, {"= 256\n", "= 250\n"}, {"= 1024\n", "= 1023\n"}};
  for (auto [even, uneven] : extents)
    for (size_t at; (at = text.find(even)) != std::string::npos;)
      text.replace(at, strlen(even), uneven);
  return text;
}

TEST(Shrink, Padding) {
  for (unsigned seed = 1; seed <= kPrograms; ++seed) {
    std::string text = unevenText(RandomProgram(seed).text());
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    TestProgram program(text);
    ASSERT_TRUE(program.module()) << program.messages();
    Pair pair(program, OptMode::Optimize, /*allowPadding=*/true);
    ASSERT_TRUE(pair) << program.messages();
    expectShrinks(pair);
  }
}

/// Points of the iteration spaces of all operations that compute, each as often
/// as it runs: at least the multiply-adds of the products.
int64_t workOf(shd::ProgramOp program) {
  int64_t work = 0;
  program.walk([&](shd::ShardingRuleOpInterface op) {
    int64_t points = shd::executionCount(op);
    for (const Factor &factor : op.getShardingRule().factors)
      points *= factor.extent;
    work += points;
  });
  return work;
}

TEST(Shrink, LargeModelsRunInASecond) {
  for (const char *name : {"llama3-70b.shd", "llama3-405b.shd"}) {
    auto program = TestProgram::ofModel(name);
    Pair pair(*program, OptMode::Optimize);
    ASSERT_TRUE(pair) << program->messages();
    shd::ProgramOp imported = TestProgram::programOf(*pair.imported);
    applyShrinking(imported,
                   chooseShrinking(TestProgram::programOf(*pair.planned)));
    EXPECT_LT(workOf(imported), 1'000'000) << name;
    RecordProperty(name, workOf(imported));
  }
}

} // namespace
