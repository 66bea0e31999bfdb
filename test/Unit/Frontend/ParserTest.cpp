//===- ParserTest.cpp - The AST of a text ---------------------------------===//
//
// Ranges and values of nodes, texts of options, and the limits of the parser.
// The shapes of trees are tested by test/Frontend/Syntax.
//
//===----------------------------------------------------------------------===//

#include "Parse.h"
#include "TestSource.h"
#include "shardc/Frontend/Frontend.h"
#include "gtest/gtest.h"

using namespace shardc;

static llvm::StringRef textOf(llvm::SMRange range) {
  return {
      range.Start.getPointer(),
      static_cast<size_t>(range.End.getPointer() - range.Start.getPointer())};
}

template <typename T> static const T &item(const ast::File &file, size_t i) {
  return llvm::cast<T>(*file.items[i]);
}

TEST(Parser, RangesAreBytesOfTheText) {
  TestSource source;
  unsigned id = source.add(
      "a.shd", "/* é漢😀 */ input In: bf16[B@(X, Y), D] // 漢\n"
               "y[B]{+Z} = f(g[I: 0..2 -> J](In[B, t[D]@X]), k=-1.5) * w\n"
               "repeat L@p save(q) { z = y }");
  auto file = parseFile(source.files, id);
  ASSERT_TRUE(file);
  ASSERT_EQ(file->items.size(), 3u);

  const auto &input = item<ast::TensorDecl>(*file, 0);
  EXPECT_EQ(textOf(input.range), "input In: bf16[B@(X, Y), D]");
  EXPECT_EQ(textOf(input.name.range), "In");
  EXPECT_EQ(textOf(input.type.range), "bf16");
  EXPECT_EQ(textOf(input.indices.range), "[B@(X, Y), D]");
  EXPECT_EQ(textOf(input.indices.indices[0].range), "B");
  EXPECT_EQ(textOf(input.indices.indices[0].placement->range), "@(X, Y)");
  EXPECT_EQ(textOf(input.indices.indices[0].placement->axes[1].range), "Y");

  const auto &assign = item<ast::AssignStmt>(*file, 1);
  EXPECT_EQ(textOf(assign.targets[0].indices->range), "[B]{+Z}");
  EXPECT_EQ(textOf(assign.targets[0].indices->partial->range), "{+Z}");
  EXPECT_EQ(textOf(assign.value->range),
            "f(g[I: 0..2 -> J](In[B, t[D]@X]), k=-1.5) * w");
  const ast::Expr &call = *assign.value->operands[0];
  EXPECT_EQ(textOf(call.range), "f(g[I: 0..2 -> J](In[B, t[D]@X]), k=-1.5)");
  EXPECT_EQ(textOf(call.nameRange), "f");
  EXPECT_EQ(textOf(call.arguments[1].range), "k=-1.5");
  EXPECT_EQ(textOf(call.arguments[1].nameRange), "k");
  EXPECT_EQ(textOf(call.arguments[1].value->range), "-1.5");
  const ast::Expr &slice = *call.arguments[0].value;
  EXPECT_EQ(textOf(slice.range), "g[I: 0..2 -> J](In[B, t[D]@X])");
  EXPECT_EQ(textOf(slice.functionIndices[0].range), "I: 0..2 -> J");
  EXPECT_EQ(textOf(slice.functionIndices[0].high->range), "2");
  const ast::Index &gather = slice.arguments[0].value->indices->indices[1];
  EXPECT_EQ(textOf(gather.range), "t[D]");
  EXPECT_EQ(textOf(gather.placement->range), "@X");

  const auto &repeat = item<ast::RepeatStmt>(*file, 2);
  EXPECT_EQ(textOf(repeat.range), "repeat L@p save(q) { z = y }");
  EXPECT_EQ(textOf(repeat.index.range), "L");
  EXPECT_EQ(textOf(repeat.body[0]->range), "z = y");
}

TEST(Parser, SettingsKeepTheirText) {
  TestSource source;
  unsigned id = source.add(
      "a.shd", "train { optimizer = adamw( moments = f32 )  x = 1 }");
  auto file = parseFile(source.files, id);
  ASSERT_TRUE(file);
  const ast::Setting &setting = item<ast::TrainBlock>(*file, 0).settings[0];
  ASSERT_EQ(setting.values.size(), 1u);
  const ast::SettingValue &value = setting.values.front();
  EXPECT_EQ(value.text, "adamw( moments = f32 )");
  EXPECT_EQ(textOf(value.range), value.text);
  EXPECT_EQ(value.function, "adamw");
  ASSERT_EQ(value.arguments.size(), 1u);
  EXPECT_EQ(value.arguments.front().name.text, "moments");
  EXPECT_EQ(value.arguments.front().value.text, "f32");
}

TEST(Parser, PublicEntryReports) {
  TestSource source;
  unsigned id = source.add("a.shd", "dim A = ;\n");
  EXPECT_FALSE(parseFile(source.sourceMgr, id, &source.context));
  EXPECT_EQ(source.errors,
            std::vector<std::string>{"1:9: unexpected character ';'"});
}

TEST(Parser, StopsAfterTwentyErrors) {
  TestSource source;
  std::string text;
  for (int i = 0; i < 30; ++i)
    text += "dim = 1\n";
  EXPECT_FALSE(parseFile(source.files, source.add("a.shd", text)));
  ASSERT_EQ(source.errors.size(), 21u);
  EXPECT_EQ(source.errors[19], "20:5: expected the name of a dim before '='");
  EXPECT_EQ(source.errors[20],
            "21:1: too many errors; the rest of the file is not checked");
}

// 200 levels are fine, of each kind and together.
TEST(Parser, NestsAsDeepAsItSays) {
  TestSource source;
  std::string open(200, '('), close(200, ')'), minuses(200, '-');
  std::string blocks;
  for (int i = 0; i < 199; ++i)
    blocks += "repeat L {";
  unsigned id = source.add("a.shd", "x = " + open + "a" + close +
                                        "\ny = " + minuses + "a\n" + blocks +
                                        "z = (a)" + std::string(199, '}'));
  EXPECT_TRUE(parseFile(source.files, id));
  EXPECT_TRUE(source.errors.empty());
}

// A sum of 1000 terms is 999 operations high, and its leaf one.
TEST(Parser, SumsAsLongAsItSays) {
  auto sum = [](int terms) {
    std::string text = "x = a";
    for (int i = 1; i < terms; ++i)
      text += " + a";
    return text;
  };
  TestSource source;
  EXPECT_TRUE(parseFile(source.files, source.add("a.shd", sum(1000))));
  EXPECT_TRUE(source.errors.empty());
  auto broken = parseFile(source.files, source.add("b.shd", sum(1001)));
  ASSERT_TRUE(broken);
  EXPECT_EQ(item<ast::BrokenItem>(*broken, 0).targets.front().name.text, "x");
  ASSERT_EQ(source.errors.size(), 1u);
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

TEST(ParseOverrides, Hardware) {
  TestSource source;
  auto decl = parseHardwareOverride(source.files, "tpu_v5p[8, 2 * 4]");
  ASSERT_TRUE(decl);
  EXPECT_EQ(decl->name.text, "tpu_v5p");
  ASSERT_EQ(decl->shape.size(), 2u);
  EXPECT_EQ(decl->shape[0]->integer, 8);
  EXPECT_EQ(decl->shape[1]->kind, ast::DimExpr::Kind::Mul);
  auto bare = parseHardwareOverride(source.files, " h100 ");
  ASSERT_TRUE(bare);
  EXPECT_FALSE(bare->hasShape);
}

TEST(ParseOverrides, Mesh) {
  TestSource source;
  auto decl = parseMeshOverride(source.files, "[X=8, Y=4 on (y, z)]");
  ASSERT_TRUE(decl);
  ASSERT_EQ(decl->axes.size(), 2u);
  EXPECT_EQ(decl->axes[1].size->integer, 4);
  ASSERT_EQ(decl->axes[1].on.size(), 2u);
  EXPECT_EQ(decl->axes[1].on[0].text, "y");
  auto chosen = parseMeshOverride(source.files, "auto");
  ASSERT_TRUE(chosen);
  EXPECT_TRUE(chosen->isAuto);
}

TEST(ParseOverrides, Dim) {
  TestSource source;
  auto def = parseDimOverride(source.files, "B=64");
  ASSERT_TRUE(def);
  EXPECT_EQ(def->name.text, "B");
  EXPECT_EQ(def->value->integer, 64);
}

TEST(ParseOverrides, ErrorsNameTheOption) {
  TestSource source;
  source.add("main.shd", "x = y");
  EXPECT_FALSE(parseHardwareOverride(source.files, "tpu_v5p[8"));
  EXPECT_FALSE(parseMeshOverride(source.files, "[X=8] Y"));
  EXPECT_FALSE(parseDimOverride(source.files, ""));
  EXPECT_FALSE(parseDimOverride(source.files, "B"));
  EXPECT_FALSE(parseDimOverride(source.files, "B=99999999999999999999"));
  EXPECT_FALSE(parseDimOverride(source.files, "B=\xff"));
  EXPECT_EQ(source.errors,
            (std::vector<std::string>{
                "1:10: expected ',' or ']' before the end of the text",
                "1:7: unexpected 'Y'",
                "1:1: expected the name of a dim before the end of the text",
                "1:2: expected '=' before the end of the text",
                "1:3: integer does not fit in 64 bits",
                "1:3: the text is not valid UTF-8"}));
  // Buffers are found by name, so each has its own.
  std::vector<std::string> names;
  for (unsigned id = 2; id <= source.sourceMgr.getNumBuffers(); ++id)
    names.push_back(
        source.sourceMgr.getMemoryBuffer(id)->getBufferIdentifier().str());
  EXPECT_EQ(names,
            (std::vector<std::string>{"--hardware", "--mesh", "--dim",
                                      "--dim #2", "--dim #3", "--dim #4"}));
}
