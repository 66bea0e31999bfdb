//===- Imports.cpp - The main file and what it imports --------------------===//
//
// Depth first, with the chain of files being imported as the stack. Files are
// told apart by their identity, not by how a path is written.
//
//===----------------------------------------------------------------------===//

#include "Imports.h"
#include "Parse.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Casting.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include <set>

using namespace shardc;
using llvm::StringRef;

namespace {

class ImportFollower {
public:
  explicit ImportFollower(SourceFiles &files) : files(files) {}

  std::vector<std::unique_ptr<ast::File>> run();

private:
  /// A file whose imports are being followed.
  struct Open {
    /// Nothing if the text is in no file (standard input).
    std::optional<llvm::sys::fs::UniqueID> id;
    std::string path;
    std::string directory;
  };

  static constexpr unsigned maxDepth = 100;

  bool parse(unsigned buffer);
  void follow(const ast::ImportDecl &import);
  void reportCycle(const ast::ImportDecl &import, llvm::ArrayRef<Open> cycle);
  void checkItems(const ast::File &file);

  SourceFiles &files;
  std::vector<std::unique_ptr<ast::File>> result;
  std::vector<Open> open;
  /// A file or a part of one is missing: nothing else can be checked.
  bool incomplete = false;
  std::set<llvm::sys::fs::UniqueID> seen;
};

} // namespace

static std::optional<llvm::sys::fs::UniqueID> idOf(StringRef path) {
  llvm::sys::fs::UniqueID id;
  if (llvm::sys::fs::getUniqueID(path, id))
    return std::nullopt;
  return id;
}

std::vector<std::unique_ptr<ast::File>> ImportFollower::run() {
  llvm::SourceMgr &sourceMgr = files.getSourceMgr();
  unsigned main = sourceMgr.getMainFileID();
  StringRef path = sourceMgr.getMemoryBuffer(main)->getBufferIdentifier();
  llvm::ArrayRef<std::string> directories = sourceMgr.getIncludeDirs();
  open.push_back({idOf(path), path.str(),
                  directories.empty() ? llvm::sys::path::parent_path(path).str()
                                      : directories.front()});
  parse(main);
  if (incomplete)
    result.clear();
  return std::move(result);
}

/// Parses the innermost open file, then what it imports.
bool ImportFollower::parse(unsigned buffer) {
  std::unique_ptr<ast::File> file = parseFile(files, buffer);
  if (!file) {
    incomplete = true;
    return false;
  }
  file->buffer = buffer;
  const ast::File &parsed = *file;
  result.push_back(std::move(file));
  for (const ast::ItemPtr &item : parsed.items)
    if (auto *import = llvm::dyn_cast<ast::ImportDecl>(item.get()))
      follow(*import);
  return true;
}

void ImportFollower::follow(const ast::ImportDecl &import) {
  llvm::SmallString<128> path(import.path);
  if (!llvm::sys::path::is_absolute(path)) {
    path = open.back().directory;
    llvm::sys::path::append(path, import.path);
  }
  auto fail = [&](const llvm::Twine &why) {
    incomplete = true;
    files.error(import.pathRange)
        << "cannot import '" << import.path << "': " << why;
  };
  llvm::sys::fs::file_status status;
  if (std::error_code error = llvm::sys::fs::status(path, status))
    return fail(error.message());
  if (status.type() != llvm::sys::fs::file_type::regular_file)
    return fail("it is not a regular file");
  llvm::sys::fs::UniqueID id = status.getUniqueID();
  auto isSame = [&](const Open &each) { return each.id == id; };
  auto again = llvm::find_if(open, isSame);
  if (again != open.end())
    return reportCycle(import,
                       llvm::ArrayRef(open).drop_front(again - open.begin()));
  if (!seen.insert(id).second)
    return;
  if (open.size() > maxDepth)
    return fail("imports nest deeper than " + llvm::Twine(maxDepth) + " files");
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/true);
  if (!buffer)
    return fail(buffer.getError().message());
  unsigned bufferId = files.getSourceMgr().AddNewSourceBuffer(
      std::move(*buffer), import.pathRange.Start);
  open.push_back(
      {id, path.str().str(), llvm::sys::path::parent_path(path).str()});
  size_t index = result.size();
  if (parse(bufferId))
    checkItems(*result[index]);
  open.pop_back();
}

/// Names the files of a cycle, the first of which `import` imports again.
void ImportFollower::reportCycle(const ast::ImportDecl &import,
                                 llvm::ArrayRef<Open> cycle) {
  incomplete = true;
  mlir::InFlightDiagnostic diagnostic = files.error(import.pathRange)
                                        << "import cycle: ";
  for (const Open &each : cycle)
    diagnostic << "'" << llvm::sys::path::filename(each.path) << "' imports ";
  diagnostic << "'" << llvm::sys::path::filename(cycle.front().path) << "'";
}

/// The word in errors for an item that an imported file may not hold; empty if
/// it may.
static StringRef refused(const ast::Item &item) {
  switch (item.kind) {
  case ast::Item::Kind::Import:
  case ast::Item::Kind::Hardware:
  case ast::Item::Kind::Dim:
  case ast::Item::Kind::Layer:
  case ast::Item::Kind::Broken:
    return "";
  case ast::Item::Kind::Tensor:
    switch (llvm::cast<ast::TensorDecl>(item).tensorKind) {
    case ast::TensorDecl::TensorKind::Weight:
      return "";
    case ast::TensorDecl::TensorKind::Input:
      return "'input'";
    case ast::TensorDecl::TensorKind::State:
      return "'state'";
    }
    llvm_unreachable("a kind of tensor");
  case ast::Item::Kind::Order:
    return "'order'";
  case ast::Item::Kind::Mesh:
    return "'mesh'";
  case ast::Item::Kind::Output:
    return "'output'";
  case ast::Item::Kind::Train:
    return "'train'";
  case ast::Item::Kind::Serve:
    return "'serve'";
  case ast::Item::Kind::Layout:
    return "a layout";
  case ast::Item::Kind::Repeat:
    return "'repeat'";
  case ast::Item::Kind::Assign:
    return "a statement";
  }
  llvm_unreachable("a kind of item");
}

/// Reports the first item that an imported file may not hold.
void ImportFollower::checkItems(const ast::File &file) {
  for (const ast::ItemPtr &item : file.items) {
    StringRef what = refused(*item);
    if (what.empty())
      continue;
    incomplete = true;
    files.error(item->range)
        << "an imported file may hold only 'dim', 'layer', "
           "'hardware', 'weight' and 'import', found "
        << what;
    return;
  }
}

std::vector<std::unique_ptr<ast::File>>
shardc::parseProgram(SourceFiles &files) {
  return ImportFollower(files).run();
}
