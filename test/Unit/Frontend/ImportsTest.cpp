//===- ImportsTest.cpp - Files that import files --------------------------===//
//
// Order, repeats, cycles and failures of `import`, in a temporary folder.
//
//===----------------------------------------------------------------------===//

#include "Imports.h"
#include "TestSource.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"

using namespace shardc;

namespace {
class Imports : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("shardc", folder));
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  std::string pathOf(llvm::StringRef name) {
    llvm::SmallString<128> path = folder;
    llvm::sys::path::append(path, name);
    return path.str().str();
  }
  void write(llvm::StringRef name, llvm::StringRef text) {
    std::string path = pathOf(name);
    ASSERT_FALSE(
        llvm::sys::fs::create_directories(llvm::sys::path::parent_path(path)));
    std::error_code error;
    llvm::raw_fd_ostream os(path, error);
    ASSERT_FALSE(error);
    os << text;
  }
  /// Parses from `main.shd`; the first dim of each file.
  std::vector<std::string> dims() {
    std::string main = pathOf("main.shd");
    auto buffer = llvm::MemoryBuffer::getFile(main);
    EXPECT_TRUE(bool(buffer));
    source.sourceMgr.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
    std::vector<std::string> result;
    for (const auto &file : parseProgram(source.files))
      for (const ast::ItemPtr &item : file->items)
        if (auto *decl = llvm::dyn_cast<ast::DimDecl>(item.get()))
          result.push_back(decl->dims[0].name.text);
    return result;
  }

  llvm::SmallString<128> folder;
  TestSource source;
};
using Strings = std::vector<std::string>;
} // namespace

// Main first; each file once, however its path is written; paths relative to
// the importing file.
TEST_F(Imports, OrderAndRepeats) {
  write("main.shd", "import \"lib/a.shd\" import \"b.shd\" dim Main = 1\n"
                    "import \"lib/../lib/a.shd\"");
  write("lib/a.shd", "dim A = 1 import \"c.shd\" import \"../b.shd\"");
  write("lib/c.shd", "dim C = 1 layer f() -> () {} weight w: f32[C]\n"
                     "hardware h100[8]");
  write("b.shd", "import \"lib/c.shd\" dim B = 1");
  EXPECT_EQ(dims(), (Strings{"Main", "A", "C", "B"}));
  EXPECT_EQ(source.errors, Strings());
}

TEST_F(Imports, AbsolutePaths) {
  write("a.shd", "dim A = 1");
  write("main.shd", "import \"" + pathOf("a.shd") + "\"");
  EXPECT_EQ(dims(), Strings{"A"});
}

TEST_F(Imports, IncludeDirectoryReplacesTheMainFiles) {
  write("lib/a.shd", "dim A = 1 import \"b.shd\"");
  write("lib/b.shd", "dim B = 1");
  write("main.shd", "import \"a.shd\"");
  source.sourceMgr.setIncludeDirs({pathOf("lib")});
  EXPECT_EQ(dims(), (Strings{"A", "B"}));
}

TEST_F(Imports, CyclesAreNamed) {
  write("main.shd", "dim M = 1\nimport \"a.shd\"");
  write("a.shd", "import \"lib/b.shd\"");
  write("lib/b.shd", "dim B = 1\n  import \"../a.shd\"");
  EXPECT_EQ(dims(), Strings());
  EXPECT_EQ(source.errors,
            Strings{"2:10: import cycle: 'a.shd' imports 'b.shd' imports "
                    "'a.shd'"});
}

TEST_F(Imports, OfItself) {
  write("main.shd", "import \"main.shd\"");
  EXPECT_EQ(dims(), Strings());
  EXPECT_EQ(source.errors,
            Strings{"1:8: import cycle: 'main.shd' imports 'main.shd'"});
}

TEST_F(Imports, EveryFailureIsReported) {
  write("main.shd", "import \"none.shd\"\nimport \"lib\"\nimport \"bad.shd\"\n"
                    "import \"\"\nimport \"input.shd\"");
  write("lib/a.shd", "dim A = 1");
  write("bad.shd", "dim = 1");
  write("input.shd", "dim D = 1\n input x: f32[D]");
  EXPECT_EQ(dims(), Strings());
  EXPECT_EQ(source.errors,
            (Strings{"1:8: cannot import 'none.shd': No such file or directory",
                     "2:8: cannot import 'lib': it is not a regular file",
                     "1:5: expected the name of a dim before '='",
                     "4:8: cannot import '': it is not a regular file",
                     "2:2: an imported file may hold only 'dim', 'layer', "
                     "'hardware', 'weight' and 'import', found 'input'"}));
}

// Everything that an imported file may not hold, one each.
TEST_F(Imports, RefusedItems) {
  for (llvm::StringRef text :
       {"input x: f32[]", "state x: f32[]", "output x", "mesh auto",
        "train { a = b }", "serve { a = b }", "repeat L { x = y }", "x = y"}) {
    TestSource fresh;
    write("a.shd", text);
    fresh.sourceMgr.setIncludeDirs({folder.str().str()});
    fresh.add("main.shd", "import \"a.shd\"");
    EXPECT_TRUE(parseProgram(fresh.files).empty());
    ASSERT_EQ(fresh.errors.size(), 1u) << text.str();
    EXPECT_TRUE(llvm::StringRef(fresh.errors[0])
                    .starts_with("1:1: an imported file may hold only"));
  }
}

// A chain of files, each importing the next, ends with an error, not with the
// stack.
TEST_F(Imports, ChainsAreBounded) {
  for (int i = 0; i < 300; ++i)
    write("f" + std::to_string(i) + ".shd",
          "import \"f" + std::to_string(i + 1) + ".shd\"");
  write("f300.shd", "dim A = 1");
  write("main.shd", "import \"f0.shd\"");
  EXPECT_EQ(dims(), Strings());
  ASSERT_EQ(source.errors.size(), 1u);
  EXPECT_NE(source.errors[0].find("imports nest deeper than 100 files"),
            std::string::npos);
}
