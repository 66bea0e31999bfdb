//===- Program.h - Programs for the tests of the shd dialect ----*- C++ -*-===//

#ifndef SHARDC_TEST_UNIT_DIALECT_PROGRAM_H
#define SHARDC_TEST_UNIT_DIALECT_PROGRAM_H

#include "TestDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "shardc/Dialect/Shd/IR/Shd.h"
#include <gtest/gtest.h>

namespace shardc::shd {

/// A parsed program that owns its context.
class Program {
public:
  /// `body` stands between the braces of a `shd.program`.
  explicit Program(llvm::StringRef body, llvm::StringRef header = "") {
    context.loadDialect<ShdDialect, test::TestDialect>();
    std::string text =
        ("shd.program \"test\" " + header + " {\n" + body + "\n}\n").str();
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
  }

  /// The only operation of its kind.
  template <typename Op> Op get() {
    Op found;
    module->walk([&](Op op) {
      EXPECT_FALSE(found) << "more than one operation of the kind";
      found = op;
    });
    EXPECT_TRUE(found);
    return found;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace shardc::shd

#endif // SHARDC_TEST_UNIT_DIALECT_PROGRAM_H
