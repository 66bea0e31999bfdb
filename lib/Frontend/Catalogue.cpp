//===- Catalogue.cpp - The embedded hardware files ------------------------===//
//
// The texts of hardware/*.shd, parsed one at a time when a machine is asked
// for.
//
//===----------------------------------------------------------------------===//

#include "HardwareImport.h"
#include "Parse.h"
#include "shardc/Dialect/Shd/IR/Shd.h"
#include "shardc/Frontend/CatalogueNotes.h"
#include "shardc/Frontend/Frontend.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <mutex>

using namespace shardc;
using llvm::StringRef;

namespace {
struct Entry {
  StringRef name;
  StringRef text;
};

struct ParsedEntry {
  Machine machine;
  CatalogueNotes notes;
};
} // namespace

/// Sorted by name.
static constexpr Entry kEntries[] = {
#include "Catalogue.inc"
};

//===----------------------------------------------------------------------===//
// Notes
//===----------------------------------------------------------------------===//

/// The text of a comment line, or nothing if `line` is not one.
static std::optional<std::string> commentText(StringRef line) {
  line = line.trim();
  if (!line.consume_front("//"))
    return std::nullopt;
  return line.trim().str();
}

static void addSources(llvm::ArrayRef<ast::HardwareFieldDecl> fields,
                       StringRef prefix, StringRef text,
                       CatalogueNotes &notes) {
  for (const ast::HardwareFieldDecl &field : fields) {
    const char *end = field.value.range.End.getPointer();
    StringRef rest(end, text.end() - end);
    if (std::optional<std::string> source =
            commentText(rest.take_until([](char c) { return c == '\n'; })))
      notes.sources[(prefix + field.name.text).str()] = *source;
  }
}

static CatalogueNotes notesOf(const ast::HardwareDecl &decl, StringRef text) {
  CatalogueNotes notes;
  for (StringRef line : llvm::split(text, '\n')) {
    std::optional<std::string> comment = commentText(line);
    if (!comment)
      break;
    notes.about.push_back(*comment);
  }
  addSources(decl.fields, "", text, notes);
  for (const ast::NetworkDecl &network : decl.networks)
    addSources(network.fields, network.name.text + ".", text, notes);
  for (const ast::CalibrationDecl &calibration : decl.calibrations) {
    addSources(calibration.fields, "calibration.", text, notes);
    for (const ast::NetworkDecl &network : calibration.networks)
      addSources(network.fields, "calibration." + network.name.text + ".", text,
                 notes);
  }
  return notes;
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

/// Parses an entry, which is part of shardc: an error in it is one of shardc.
static ParsedEntry parseEntry(const Entry &entry) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  std::string errors;
  mlir::ScopedDiagnosticHandler handler(
      &context, [&](mlir::Diagnostic &diagnostic) {
        llvm::raw_string_ostream(errors) << diagnostic << "\n";
      });
  llvm::SourceMgr sourceMgr;
  unsigned id = sourceMgr.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBuffer(entry.text, entry.name), llvm::SMLoc());
  SourceFiles files(sourceMgr, &context);
  std::unique_ptr<ast::File> file = parseFile(files, id);
  std::optional<Machine> machine;
  CatalogueNotes notes;
  if (file && file->items.size() == 1)
    if (auto *decl = llvm::dyn_cast<ast::HardwareDecl>(file->items[0].get())) {
      machine = importMachine(files, *decl, nullptr);
      notes = notesOf(*decl, sourceMgr.getMemoryBuffer(id)->getBuffer());
    }
  if (!machine || machine->name != entry.name)
    llvm::report_fatal_error("hardware file '" + llvm::Twine(entry.name) +
                             "' does not describe its machine: " + errors);
  return {std::move(*machine), std::move(notes)};
}

/// The entry of a machine, or null if the name is not in the catalogue.
static const ParsedEntry *findEntry(StringRef name) {
  static std::mutex mutex;
  static std::map<StringRef, ParsedEntry> parsed;
  const Entry *entry =
      llvm::find_if(kEntries, [&](const Entry &e) { return e.name == name; });
  if (entry == std::end(kEntries))
    return nullptr;
  std::lock_guard<std::mutex> lock(mutex);
  auto it = parsed.find(entry->name);
  if (it == parsed.end())
    it = parsed.emplace(entry->name, parseEntry(*entry)).first;
  return &it->second;
}

std::vector<std::string> shardc::catalogueNames() {
  std::vector<std::string> names;
  for (const Entry &entry : kEntries)
    names.push_back(entry.name.str());
  return names;
}

/// The names under which makers sell machines that the catalogue calls
/// otherwise.
static StringRef nameOfProduct(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Cases({"v5lite", "v5litepod", "tpu_v5lite"}, "tpu_v5e")
      .Cases({"trillium", "tpu_trillium"}, "tpu_v6e")
      .Cases({"ironwood", "tpu_ironwood", "tpu7x"}, "tpu_v7x")
      .Case("trn2", "trainium2")
      .Default("");
}

std::string shardc::likelyHardware(StringRef name) {
  std::string small = name.lower();
  StringRef product = nameOfProduct(small);
  llvm::SmallVector<StringRef> same, longer, all;
  for (const Entry &entry : kEntries) {
    all.push_back(entry.name);
    if (entry.name.equals_insensitive(small) || entry.name == product ||
        (entry.name.starts_with("tpu_") && entry.name.drop_front(4) == small))
      same.push_back(entry.name);
    if (entry.name.starts_with_insensitive(small))
      longer.push_back(entry.name);
  }
  if (same.empty())
    same = longer;
  if (same.empty())
    same.push_back(nearestName(small, all));
  std::string text;
  for (auto [i, each] : llvm::enumerate(same)) {
    if (i > 0)
      text += i + 1 == same.size() ? " or " : ", ";
    text += ("'" + each + "'").str();
  }
  return text;
}

std::optional<Machine> shardc::catalogueMachine(StringRef name) {
  const ParsedEntry *entry = findEntry(name);
  return entry ? std::optional(entry->machine) : std::nullopt;
}

std::optional<CatalogueNotes> shardc::catalogueNotes(StringRef name) {
  const ParsedEntry *entry = findEntry(name);
  return entry ? std::optional(entry->notes) : std::nullopt;
}

/// The machine of the catalogue that a module names, in its shape.
static std::optional<Machine> machineOfModule(shd::HardwareAttr named) {
  std::optional<Machine> machine = catalogueMachine(named.getName());
  if (!machine)
    return std::nullopt;
  MachineOr<Machine> shaped =
      withShape(std::move(*machine), named.getShape(), /*where=*/0);
  if (auto *error = std::get_if<MachineError>(&shaped)) {
    emitError(mlir::UnknownLoc::get(named.getContext())) << error->message;
    return std::nullopt;
  }
  return std::get<Machine>(std::move(shaped));
}

void shardc::registerCatalogue(mlir::DialectRegistry &registry) {
  registry.addExtension(+[](mlir::MLIRContext *, shd::ShdDialect *dialect) {
    dialect->setMachineLoader(machineOfModule);
  });
}
