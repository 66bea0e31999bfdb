//===- BindingsTest.cpp - The bindings that a program may ask for ---------===//

#include "shardc/Machine/Bindings.h"
#include "Descriptions.h"
#include <set>

using namespace shardc;

namespace {

Mesh meshOf(llvm::ArrayRef<int64_t> sizes) {
  Mesh mesh;
  for (int64_t size : sizes)
    mesh.axes.push_back({std::string(1, "XYZUVW"[mesh.size()]), size});
  return mesh;
}

std::vector<std::string> textsOf(const Machine &machine,
                                 llvm::ArrayRef<int64_t> sizes,
                                 size_t limit = 1000) {
  Mesh mesh = meshOf(sizes);
  std::vector<std::string> texts;
  for (const NamedBinding &each : enumerateBindings(machine, mesh, limit))
    texts.push_back(toString(mesh, each));
  llvm::sort(texts);
  return texts;
}

Machine cube(llvm::ArrayRef<int64_t> shape) {
  HardwareDescription tpu = tpuDescription();
  tpu.fields.pop_back();
  tpu.networks[0].members = {"x", "y", "z"};
  return shaped(tpu, shape);
}

using Texts = std::vector<std::string>;

/// A binding that a program asks for by its text must be the one enumerated.
void expectReadsBack(const Machine &machine, llvm::ArrayRef<int64_t> sizes) {
  Mesh mesh = meshOf(sizes);
  std::set<std::string> texts;
  for (const NamedBinding &each : enumerateBindings(machine, mesh, 1000)) {
    std::string text = toString(mesh, each);
    EXPECT_TRUE(texts.insert(text).second) << text << " twice";
    Mesh written;
    llvm::SmallVector<AxisRequest, 4> requests;
    for (AxisIndex axis : each.order) {
      written.axes.push_back(mesh.axes[axis]);
      requests.push_back({each.on[axis], 0});
    }
    MeshBinding bound = value(bindMesh(machine, written, requests, 0));
    for (auto [position, axis] : llvm::enumerate(each.order))
      EXPECT_EQ(bound.parts[position], each.binding.parts[axis]) << text;
    EXPECT_EQ(bound.idleChips, each.binding.idleChips);
  }
  EXPECT_FALSE(texts.empty());
}

TEST(BindingsTest, ReadBackAsTheyAre) {
  expectReadsBack(shaped(tpuDescription(), {4, 8}), {4, 8});
  expectReadsBack(shaped(tpuDescription(), {16, 16}), {4, 8, 8});
  expectReadsBack(shaped(tpuDescription(), {2, 4, 4}), {4, 8});
  expectReadsBack(cube({4, 8, 16}), {16, 32});
  expectReadsBack(cube({2, 4, 4, 8}), {8, 4, 2});
  expectReadsBack(shaped(gpuDescription(), {2, 4, 8}), {8, 8});
  expectReadsBack(shaped(gpuDescription(), {2, 8}), {3, 2, 1});
}

// X = 4 on y leaves Y x. On x, one of the two is inside: Y if it takes y first,
// else X, and then Y may take the rest of x before or after y.
TEST(BindingsTest, AllThatAreLegal) {
  EXPECT_EQ(
      textsOf(shaped(tpuDescription(), {8, 4}), {4, 8}),
      Texts({"mesh [X=4 on x, Y=8 on (x, y)]", "mesh [X=4 on y, Y=8 on x]",
             "mesh [Y=8 on (x, y), X=4 on x]",
             "mesh [Y=8 on (y, x), X=4 on x]"}));
}

// The axes of a square are alike: which of them X takes makes no difference.
TEST(BindingsTest, LikeAxesOnce) {
  EXPECT_EQ(textsOf(shaped(tpuDescription(), {4, 4}), {4, 4}).size(), 1u);
  EXPECT_EQ(textsOf(cube({4, 4, 4}), {4, 16}).size(), 1u);
  // Levels are not: GPUs of a node and nodes.
  EXPECT_EQ(textsOf(shaped(gpuDescription(), {8, 8}), {8, 8}),
            Texts({"mesh [X=8 on gpu, Y=8 on node]",
                   "mesh [X=8 on node, Y=8 on gpu]"}));
}

// "Axes that name one physical axis split it, the first outermost."
TEST(BindingsTest, PartsOfOneAxisInBothOrders) {
  Machine ring = shaped(tpuDescription(), {16, 1});
  EXPECT_EQ(textsOf(ring, {2, 8}),
            Texts({"mesh [X=2 on x, Y=8 on x]", "mesh [Y=8 on x, X=2 on x]"}));
}

TEST(BindingsTest, AxesOfOneHaveNoPlace) {
  EXPECT_EQ(textsOf(shaped(tpuDescription(), {4, 1}), {1, 4}),
            Texts({"mesh [X=1, Y=4 on x]"}));
  EXPECT_EQ(textsOf(shaped(tpuDescription(), {}), {1}), Texts({"mesh [X=1]"}));
}

// Fewer devices than chips: the rest idle.
TEST(BindingsTest, PartOfTheMachine) {
  Machine machine = shaped(gpuDescription(), {2, 8});
  std::vector<NamedBinding> found = enumerateBindings(machine, meshOf({2}), 9);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].binding.idleChips, 14);
}

TEST(BindingsTest, NoMoreThanTheLimit) {
  EXPECT_EQ(textsOf(cube({2, 4, 8, 16}), {2, 4, 8, 16}, 7).size(), 7u);
  // Many small axes end too.
  EXPECT_LE(textsOf(cube({64, 64, 64}), {2, 2, 2, 2, 2, 2}).size(), 1000u);
}

} // namespace
