//===- ImportTest.cpp - Where imported operations come from ---------------===//
//
// Locations, and the attributes that lead from operations back to the text,
// which --emit-mlir does not print.
//
//===----------------------------------------------------------------------===//

#include "TestSource.h"
#include "shardc/Dialect/Shd/IR/Shd.h"
#include "shardc/Frontend/Frontend.h"
#include "gtest/gtest.h"

using namespace shardc;

namespace {
class Import : public testing::Test {
protected:
  /// Imports `text`; errors fail the test.
  void import(llvm::StringRef newText) {
    text = newText;
    source.add("main.shd", text);
    program = importProgram(source.sourceMgr, &source.context, Overrides());
    ASSERT_TRUE(program.has_value())
        << (source.errors.empty() ? "" : source.errors.front());
  }
  /// The operations with `shd.name = name`, in order.
  std::vector<mlir::Operation *> named(llvm::StringRef name) {
    std::vector<mlir::Operation *> result;
    program->module->walk<mlir::WalkOrder::PreOrder>([&](mlir::Operation *op) {
      auto attr = op->getAttrOfType<mlir::StringAttr>(shd::kName);
      if (attr && attr == name)
        result.push_back(op);
    });
    return result;
  }
  mlir::Operation *declared(llvm::StringRef name) {
    mlir::Operation *result = nullptr;
    program->module->walk([&](shd::DeclareOp op) {
      if (op.getSym() == name)
        result = op;
    });
    return result;
  }
  int64_t def(mlir::Operation *op) {
    auto attr = op->getAttrOfType<mlir::IntegerAttr>(shd::kDef);
    return attr ? attr.getInt() : -1;
  }
  std::vector<int64_t> uses(mlir::Operation *op) {
    auto attr = op->getAttrOfType<mlir::DenseI64ArrayAttr>(shd::kUses);
    return attr.asArrayRef().vec();
  }
  std::string call(mlir::Operation *op) {
    return op->getAttrOfType<mlir::StringAttr>(shd::kCall).str();
  }
  /// Byte offset of the first occurrence of `part`.
  int64_t at(llvm::StringRef part) { return text.find(part); }

  TestSource source;
  std::string text;
  std::optional<Program> program;
};
} // namespace

TEST_F(Import, PositionsOfDefinitionsAndUses) {
  import("dim B = 8, D = 16\n"
         "input x: bf16[B, D]\n"
         "weight w: bf16[D]\n"
         "  y[B, D] = relu(x[B, D] * w[D]) + 1\n"
         "output y\n");
  EXPECT_EQ(def(declared("x")), at("x: bf16"));
  EXPECT_EQ(def(declared("w")), at("w: bf16"));
  std::vector<mlir::Operation *> ops = named("y");
  // mul, relu, the constant, add.
  ASSERT_EQ(ops.size(), 4u);
  EXPECT_EQ(uses(ops[0]), (std::vector<int64_t>{at("x[B, D] *"), at("w[D])")}));
  EXPECT_EQ(uses(ops[1]), (std::vector<int64_t>{-1}));
  EXPECT_EQ(uses(ops[3]), (std::vector<int64_t>{-1, -1}));
  for (mlir::Operation *op : llvm::ArrayRef(ops).drop_back()) {
    EXPECT_TRUE(op->hasAttr(shd::kTemporary));
    EXPECT_EQ(def(op), -1);
  }
  EXPECT_FALSE(ops[3]->hasAttr(shd::kTemporary));
  EXPECT_EQ(def(ops[3]), at("y[B, D] ="));
  program->module->walk([&](shd::OutputOp op) {
    EXPECT_EQ(uses(op), (std::vector<int64_t>{at("y\n")}));
  });
}

TEST_F(Import, LocationsAreThoseOfTheLeftSide) {
  import("dim B = 8\n"
         "input x: bf16[B]\n"
         "z = x   y = relu(x *\n"
         "    x)\n");
  for (mlir::Operation *op : named("y")) {
    auto loc = mlir::dyn_cast<mlir::FileLineColLoc>(op->getLoc());
    ASSERT_TRUE(loc);
    EXPECT_EQ(loc.getLine(), 3u);
    EXPECT_EQ(loc.getColumn(), 9u);
  }
  auto loc = mlir::dyn_cast<mlir::FileLineColLoc>(declared("x")->getLoc());
  ASSERT_TRUE(loc);
  EXPECT_EQ(loc.getLine(), 2u);
  EXPECT_EQ(loc.getColumn(), 7u);
}

TEST_F(Import, CallsOfOneLayerShareOffsetsAndDifferByPath) {
  import("dim B = 8\n"
         "input x: bf16[B]\n"
         "layer inner(a: bf16[B]) -> (r) { r = a * a }\n"
         "layer outer(a: bf16[B]) -> (r) { h = inner(a)  r = inner(h) }\n"
         "y = outer(x)\n"
         "y = outer(y)\n");
  // The names of r in the calls of inner in the first and second call of outer.
  std::vector<std::pair<const char *, const char *>> expected = {
      {"y.h.r", "y.h"},
      {"y.r.r", "y.r"},
      {"y.h.r.2", "y.2.h"},
      {"y.r.r.2", "y.2.r"}};
  for (auto [name, path] : expected) {
    std::vector<mlir::Operation *> ops = named(name);
    ASSERT_EQ(ops.size(), 1u) << name;
    EXPECT_EQ(call(ops[0]), path);
    EXPECT_EQ(def(ops[0]), at("r = a * a"));
  }
}

TEST_F(Import, EveryIndependentErrorIsReported) {
  source.add("main.shd", "dim B = 8, D = 1 / 2\n"
                         "input x: bf16[B]\n"
                         "input d: bf16[D]\n"
                         "a = d * x\n"
                         "b = nothing\n"
                         "c = b + x[B, B]\n"
                         "x = c\n");
  EXPECT_FALSE(importProgram(source.sourceMgr, &source.context, Overrides()));
  // Nothing about a, nor about the sum with b.
  EXPECT_EQ(source.errors, (std::vector<std::string>{
                               "1:16: 1 is not divisible by 2",
                               "5:5: unknown tensor 'nothing'",
                               "6:9: 'x' has 1 index [B], but the list has 2"
                               " | 2:7: it is defined here",
                               "7:1: 'x' is an input and cannot be assigned"
                               " | 2:7: it is declared here"}));
}
