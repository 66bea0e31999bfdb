//===- MeshesTest.cpp - The meshes that a machine can have ----------------===//

#include "shardc/Machine/Meshes.h"
#include "Descriptions.h"

using namespace shardc;

namespace {

using Texts = std::vector<std::string>;

Texts textsOf(const Machine &machine, const MeshNames &names = {}) {
  Texts texts;
  for (const MeshFamily &family : enumerateMeshes(machine, names))
    for (const NamedBinding &binding : family.bindings)
      texts.push_back(toString(boundMesh(family, binding, names.areAlike)));
  return texts;
}

/// 8 = 4 x 2 = 2 x 2 x 2. Four on y leaves x for two; else four are on x and
/// half of y, the outer or the inner one (the last axis is inside).
TEST(MeshesTest, OfATorus) {
  EXPECT_EQ(textsOf(shaped(tpuDescription(), {2, 4})),
            (Texts{"[X=8 on (x, y)]", "[X=4 on (x, y), Y=2 on y]",
                   "[X=4 on y, Y=2 on x]", "[X=2 on y, Y=4 on (y, x)]",
                   "[X=2 on x, Y=2 on y, Z=2 on y]"}));
}

/// Halves of a switch are alike, wherever they begin.
TEST(MeshesTest, OfSwitches) {
  EXPECT_EQ(textsOf(shaped(gpuDescription(), {2, 4})).size(), 4u);
}

/// x and y may be exchanged: 4 x 4 lies in one way on whole axes, 16 in one.
TEST(MeshesTest, LikeAxesAreExchanged) {
  Texts texts = textsOf(shaped(tpuDescription(), {4, 4}));
  EXPECT_EQ(llvm::count(texts, "[X=4 on y, Y=4 on x]") +
                llvm::count(texts, "[X=4 on x, Y=4 on y]"),
            1);
  EXPECT_EQ(texts.front(), "[X=16 on (x, y)]");
}

/// Names that are told apart take sizes in all orders, 1 among them.
TEST(MeshesTest, NamesThatDiffer) {
  MeshNames alike{{"data", "model"}, true}, apart{{"data", "model"}, false};
  Machine machine = shaped(tpuDescription(), {1, 2});
  EXPECT_EQ(textsOf(machine, alike), (Texts{"[data=2 on y, model=1]"}));
  EXPECT_EQ(textsOf(machine, apart),
            (Texts{"[data=2 on y, model=1]", "[data=1, model=2 on y]"}));
}

TEST(MeshesTest, OneChip) {
  Machine machine = shaped(tpuDescription(), {1, 1});
  EXPECT_EQ(textsOf(machine), (Texts{"[]"}));
}

/// A program that writes the mesh down gets it.
TEST(MeshesTest, ReadBack) {
  for (const Machine &machine :
       {shaped(tpuDescription(), {4, 8}), shaped(gpuDescription(), {4, 8})})
    for (const MeshFamily &family : enumerateMeshes(machine, {}))
      for (const NamedBinding &each : family.bindings) {
        BoundMesh mesh = boundMesh(family, each, /*renamed=*/true);
        llvm::SmallVector<AxisRequest, 4> requests;
        for (const auto &on : mesh.on)
          requests.push_back({on, 0});
        MeshBinding bound = value(bindMesh(machine, mesh.mesh, requests, 0));
        for (auto [position, axis] : llvm::enumerate(each.order))
          EXPECT_EQ(bound.parts[position], each.binding.parts[axis])
              << toString(mesh);
        EXPECT_EQ(bound.idleChips, 0);
      }
}

} // namespace
