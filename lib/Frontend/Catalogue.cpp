//===- Catalogue.cpp - The embedded hardware files ------------------------===//
//
// The texts of hardware/*.shd, parsed one at a time when a machine is asked
// for.
//
//===----------------------------------------------------------------------===//

#include "HardwareImport.h"
#include "Parse.h"
#include "shardc/Dialect/Shd/IR/Shd.h"
#include "shardc/Frontend/Frontend.h"
#include "llvm/ADT/STLExtras.h"
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
} // namespace

/// Sorted by name.
static constexpr Entry kEntries[] = {
#include "Catalogue.inc"
};

/// Parses an entry, which is part of shardc: an error in it is one of shardc.
static Machine parseEntry(const Entry &entry) {
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
  if (file && file->items.size() == 1)
    if (auto *decl = llvm::dyn_cast<ast::HardwareDecl>(file->items[0].get()))
      machine = importMachine(files, *decl, nullptr);
  if (!machine || machine->name != entry.name)
    llvm::report_fatal_error("hardware file '" + llvm::Twine(entry.name) +
                             "' does not describe its machine: " + errors);
  return std::move(*machine);
}

std::vector<std::string> shardc::catalogueNames() {
  std::vector<std::string> names;
  for (const Entry &entry : kEntries)
    names.push_back(entry.name.str());
  return names;
}

std::optional<Machine> shardc::catalogueMachine(StringRef name) {
  static std::mutex mutex;
  static std::map<StringRef, Machine> parsed;
  const Entry *entry =
      llvm::find_if(kEntries, [&](const Entry &e) { return e.name == name; });
  if (entry == std::end(kEntries))
    return std::nullopt;
  std::lock_guard<std::mutex> lock(mutex);
  auto it = parsed.find(entry->name);
  if (it == parsed.end())
    it = parsed.emplace(entry->name, parseEntry(*entry)).first;
  return it->second;
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
