//===- RollLayers.cpp - Layers written out, as one repeat -----------------===//
//
// Writes the runs that LayerRuns.cpp finds as repeats.
//
//===----------------------------------------------------------------------===//

#include "shardc/Frontend/RollLayers.h"
#include "LayerRuns.h"
#include "mlir/IR/Diagnostics.h"
#include "shardc/Dialect/Shd/IR/Shd.h"
#include "shardc/Frontend/Frontend.h"
#include "shardc/Frontend/TextEdits.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include <map>

using namespace llvm;
using namespace shardc;

/// Operations that are searched as they are written: layers of a program with
/// more are rolled up by `auto`. Of a training step the forward pass is a third
/// (docs/Optimizer.md#layers-written-out).
static constexpr size_t kMostFree = 300;
/// Repeats that are made: the text is read again for each.
static constexpr size_t kMaxRepeats = 8;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

namespace {
/// Writes the text of a file with a run as a repeat.
class RolledWriter {
public:
  RolledWriter(StringRef text, const Lines &lines, const RolledRun &rolled)
      : text(text), lines(lines), rolled(rolled) {}

  std::string write() const;

private:
  std::string shortened(StringRef name) const;
  std::string line(const Line &line, ArrayRef<std::string> names) const;
  std::string repeat() const;
  std::string indexName() const;
  std::vector<SMRange> layers() const;
  void replaceLayers(TextEdits &edits) const;
  void rename(TextEdits &edits, size_t number) const;

  StringRef text;
  const Lines &lines;
  const RolledRun &rolled;
};
} // namespace

std::string RolledWriter::shortened(StringRef name) const {
  auto it = rolled.shorter.find(name);
  return it == rolled.shorter.end() ? name.str() : it->second;
}

/// A line with other names of tensors.
std::string RolledWriter::line(const Line &line,
                               ArrayRef<std::string> names) const {
  TextEdits edits;
  for (auto [reference, name] : zip_equal(line.references, names))
    edits.replace(rangeOf(reference.text), shortened(name));
  return edits.apply(line.item->range);
}

/// A name that the text does not have.
std::string RolledWriter::indexName() const {
  for (unsigned number = 1;; ++number) {
    std::string name = number == 1 ? "layers" : "layers" + utostr(number);
    if (!text.contains(name))
      return name;
  }
}

std::string RolledWriter::repeat() const {
  std::string index = indexName();
  std::string result = "dim " + index + " = " + utostr(rolled.run.count) +
                       "\nrepeat " + index + " {\n";
  for (const std::vector<size_t> &each : rolled.owned) {
    const ast::TensorDecl &tensor = *lines.declarations[each.front()];
    TextEdits edits;
    edits.replace(tensor.name.range, shortened(tensor.name.text));
    result += "  " + edits.apply(tensor.range) + "\n";
  }
  for (const auto &[offset, names] : enumerate(rolled.names)) {
    const Line &each = lines.lines[rolled.run.line(0, offset)];
    result += "  " + line(each, names) + "\n";
  }
  return result + "}";
}

/// Where the layers stand, with what is between them if that is white space or
/// comments alone.
std::vector<SMRange> RolledWriter::layers() const {
  std::vector<SMRange> ranges;
  for (const std::vector<size_t> &each : rolled.owned)
    for (size_t declaration : each)
      ranges.push_back(lines.declarations[declaration]->range);
  for (size_t number = rolled.run.first; number < rolled.run.end(); ++number)
    ranges.push_back(lines.lines[number].item->range);
  llvm::sort(ranges, [](SMRange a, SMRange b) {
    return a.Start.getPointer() < b.Start.getPointer();
  });
  std::vector<SMRange> joined;
  for (SMRange range : ranges) {
    const char *start = range.Start.getPointer();
    if (!joined.empty() &&
        skipSpace(joined.back().End.getPointer(), start) == start)
      joined.back().End = range.End;
    else
      joined.push_back(range);
  }
  return joined;
}

/// Takes the layers out, and puts the repeat where the first of them runs.
void RolledWriter::replaceLayers(TextEdits &edits) const {
  SMLoc first = lines.lines[rolled.run.first].item->range.Start;
  for (SMRange range : layers()) {
    bool hasFirst = range.Start.getPointer() <= first.getPointer() &&
                    first.getPointer() < range.End.getPointer();
    if (!hasFirst) {
      edits.erase(range);
      continue;
    }
    StringRef before =
        text.take_front(range.Start.getPointer() - text.data()).rtrim(" \t");
    bool startsLine = before.empty() || before.ends_with("\n");
    edits.replace({SMLoc::getFromPointer(before.end()), range.End},
                  (startsLine ? "" : "\n") + repeat());
  }
}

/// Gives a line that is no layer the names of what the repeat carries.
void RolledWriter::rename(TextEdits &edits, size_t number) const {
  bool isBehind = number >= rolled.run.end();
  for (const TensorReference &reference : lines.lines[number].references) {
    auto it = rolled.renamed.find(reference.text);
    bool isRenamed = isBehind && it != rolled.renamed.end();
    std::string name =
        shortened(isRenamed ? StringRef(it->second) : reference.text);
    if (name != reference.text)
      edits.replace(rangeOf(reference.text), name);
  }
}

std::string RolledWriter::write() const {
  TextEdits edits;
  replaceLayers(edits);
  for (size_t number = 0; number < lines.lines.size(); ++number)
    if (number < rolled.run.first || number >= rolled.run.end())
      rename(edits, number);
  return edits.apply(rangeOf(text));
}

/// The run of layers that saves most as a repeat.
static std::optional<RolledRun> longestRun(const Lines &lines,
                                           bool shortensNames) {
  for (const LayerRun &run : findRuns(lines))
    if (std::optional<RolledRun> rolled = rollRun(lines, run, shortensNames))
      return rolled;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

namespace {
/// The work and the storage of a program, counted.
struct Work {
  /// How often each kind of operation runs, by its types; elements of what is
  /// stored.
  std::map<std::string, uint64_t> inAll;
  /// Operations of a step, those of a repeat once.
  size_t operations = 0;
};
} // namespace

static Work workOf(mlir::ModuleOp module) {
  Work work;
  module.walk([&](mlir::Operation *op) {
    std::string key = op->getName().getStringRef().str();
    raw_string_ostream stream(key);
    if (auto declare = dyn_cast<shd::DeclareOp>(op)) {
      auto type = cast<mlir::RankedTensorType>(declare.getType());
      stream << ' ' << type.getElementType();
      work.inAll[key] += type.getNumElements();
    } else if (!isa<mlir::ModuleOp, shd::ProgramOp, shd::RepeatOp, shd::YieldOp,
                    shd::PartOp>(op)) {
      for (mlir::Type type : op->getResultTypes())
        stream << ' ' << type;
      if (auto update = dyn_cast<shd::UpdateOp>(op))
        stream << ' ' << update.getValue().getType();
      work.inAll[key] += shd::executionCount(op);
      ++work.operations;
    }
  });
  return work;
}

static std::optional<Work> importedWork(StringRef text, StringRef path,
                                        const Overrides &overrides,
                                        mlir::MLIRContext *context) {
  SourceMgr sourceMgr;
  sourceMgr.setIncludeDirs({sys::path::parent_path(path).str()});
  sourceMgr.AddNewSourceBuffer(MemoryBuffer::getMemBuffer(text, path), {});
  std::optional<Program> program = importProgram(sourceMgr, context, overrides);
  if (!program)
    return std::nullopt;
  Work work = workOf(*program->module);
  if ((*program->module->getOps<shd::ProgramOp>().begin()).getTraining())
    work.operations *= 3;
  return work;
}

/// The text with all its layers rolled up; nothing if that is no program.
static std::optional<RolledProgram> rollAll(StringRef text, StringRef path,
                                            bool shortensNames,
                                            mlir::MLIRContext *context) {
  RolledProgram program{text.str(), {}};
  while (program.layers.size() < kMaxRepeats) {
    SourceMgr sourceMgr;
    unsigned buffer = sourceMgr.AddNewSourceBuffer(
        MemoryBuffer::getMemBuffer(program.text, path), {});
    std::unique_ptr<ast::File> file = parseFile(sourceMgr, buffer, context);
    if (!file)
      return std::nullopt;
    Lines lines(*file, program.text);
    std::optional<RolledRun> run = longestRun(lines, shortensNames);
    if (!run)
      break;
    program.text = RolledWriter(program.text, lines, *run).write();
    program.layers.push_back(run->run.count);
  }
  return program;
}

std::optional<RolledProgram> shardc::rollLayers(StringRef text, StringRef path,
                                                const Overrides &overrides,
                                                RollLayers how,
                                                mlir::MLIRContext *context) {
  if (how == RollLayers::Off)
    return std::nullopt;
  // Whoever reads the program reports what is wrong with it.
  mlir::ScopedDiagnosticHandler silent(context, [](mlir::Diagnostic &) {});
  std::optional<Work> written = importedWork(text, path, overrides, context);
  if (!written || (how == RollLayers::Auto && written->operations <= kMostFree))
    return std::nullopt;
  // Shorter names may be words of the language.
  for (bool shortensNames : {true, false}) {
    std::optional<RolledProgram> program =
        rollAll(text, path, shortensNames, context);
    if (program && program->layers.empty())
      return std::nullopt;
    if (!program)
      continue;
    // A value that is carried over keeps its type; of one that changes it with
    // the first layer a repeat would be another program.
    std::optional<Work> rolled =
        importedWork(program->text, path, overrides, context);
    if (rolled && rolled->inAll == written->inAll)
      return program;
  }
  return std::nullopt;
}
