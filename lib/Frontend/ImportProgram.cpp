//===- ImportProgram.cpp - From text to a checked module ------------------===//
//
// The order of things: files, dims, machine, mesh, then tensors and statements.
//
//===----------------------------------------------------------------------===//

#include "HardwareImport.h"
#include "Importer.h"
#include "Imports.h"
#include "MeshImport.h"
#include "Parse.h"
#include "mlir/IR/Verifier.h"
#include "shardc/Frontend/Frontend.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

using namespace shardc;

namespace {
/// Syntax and declarations of the whole program, gathered before anything is
/// emitted.
class ProgramReader {
public:
  ProgramReader(SourceFiles &files, const Overrides &overrides)
      : files(files), overrides(overrides), dims(files, nullptr) {}

  /// False after an error that leaves nothing to go on with.
  bool readFiles();
  void readDims();
  void readMachine();
  /// False after an error: without a mesh every placement would be one more.
  bool readMesh();
  std::optional<Program> build();

private:
  /// The one declaration of a kind that there may be.
  template <typename Decl> const Decl *findOnly(llvm::StringRef what);
  void refuseUnsupported();
  llvm::SMRange startOfFile();

  SourceFiles &files;
  const Overrides &overrides;
  DimScope dims;
  Program program;
  std::vector<const ast::File *> sources;
  std::vector<unsigned> buffers;
  ImportedMesh mesh;
  std::unique_ptr<ast::HardwareDecl> hardwareOverride;
  std::unique_ptr<ast::MeshDecl> meshOverride;
  std::vector<ast::DimDef> dimOverrides;
  llvm::SMRange hardwareRange;
  bool machineFailed = false;
};
} // namespace

bool ProgramReader::readFiles() {
  program.files = parseProgram(files);
  if (program.files.empty())
    return false;
  unsigned main = files.getSourceMgr().getMainFileID();
  for (auto [i, file] : llvm::enumerate(program.files)) {
    sources.push_back(file.get());
    buffers.push_back(main + i);
  }
  bool ok = true;
  if (overrides.hardware) {
    hardwareOverride = parseHardwareOverride(files, *overrides.hardware);
    ok &= hardwareOverride != nullptr;
  }
  if (overrides.mesh) {
    meshOverride = parseMeshOverride(files, *overrides.mesh);
    ok &= meshOverride != nullptr;
  }
  for (const std::string &text : overrides.dims) {
    auto def = parseDimOverride(files, text);
    ok &= def.has_value();
    if (def)
      dimOverrides.push_back(std::move(*def));
  }
  return ok;
}

llvm::SMRange ProgramReader::startOfFile() {
  unsigned main = files.getSourceMgr().getMainFileID();
  llvm::SMLoc start = llvm::SMLoc::getFromPointer(
      files.getSourceMgr().getMemoryBuffer(main)->getBufferStart());
  return {start, start};
}

template <typename Decl>
const Decl *ProgramReader::findOnly(llvm::StringRef what) {
  const Decl *found = nullptr;
  for (const ast::File *source : sources)
    for (const ast::ItemPtr &item : source->items) {
      auto *decl = llvm::dyn_cast<Decl>(item.get());
      if (!decl)
        continue;
      if (found) {
        auto diag = files.error(decl->range)
                    << "a program has at most one `" << what << "`";
        diag.attachNote(files.location(found->range)) << "the first is here";
        continue;
      }
      found = decl;
    }
  return found;
}

void ProgramReader::readDims() {
  for (const ast::File *source : sources)
    for (const ast::ItemPtr &item : source->items)
      if (auto *decl = llvm::dyn_cast<ast::DimDecl>(item.get()))
        for (const ast::DimDef &def : decl->dims)
          dims.define(def);
  for (const ast::DimDef &def : dimOverrides)
    dims.replace(def);
  dims.evaluateAll();
}

void ProgramReader::readMachine() {
  const ast::HardwareDecl *decl = findOnly<ast::HardwareDecl>("hardware");
  if (hardwareOverride)
    decl = hardwareOverride.get();
  if (!decl)
    return;
  hardwareRange = decl->name.range;
  program.machine = importHardware(files, *decl, [&](const ast::DimExpr &expr) {
    return dims.evaluate(expr);
  });
  machineFailed = !program.machine;
}

bool ProgramReader::readMesh() {
  const ast::MeshDecl *decl = findOnly<ast::MeshDecl>("mesh");
  if (meshOverride)
    decl = meshOverride.get();
  auto imported = importMesh(
      files, dims, decl, program.machine ? &*program.machine : nullptr,
      hardwareRange.isValid() ? hardwareRange : startOfFile());
  if (!imported)
    return false;
  mesh = std::move(*imported);
  return true;
}

void ProgramReader::refuseUnsupported() {
  if (auto *train = findOnly<ast::TrainBlock>("train"))
    files.error(train->range) << "`train` is not supported yet";
  if (auto *serve = findOnly<ast::ServeBlock>("serve"))
    files.error(serve->range) << "`serve` is not supported yet";
}

std::optional<Program> ProgramReader::build() {
  mlir::MLIRContext *context = files.getContext();
  context->getOrLoadDialect<shd::ShdDialect>();
  readDims();
  readMachine();
  if (!readMesh())
    return std::nullopt;
  refuseUnsupported();

  mlir::OpBuilder builder(context);
  mlir::Location loc = files.location(startOfFile().Start);
  program.module = mlir::ModuleOp::create(loc);
  builder.setInsertionPointToStart(program.module->getBody());
  shd::HardwareAttr hardware;
  if (program.machine)
    hardware = shd::HardwareAttr::get(context, program.machine->name,
                                      program.machine->shape);
  llvm::StringRef path =
      mlir::cast<mlir::FileLineColLoc>(loc).getFilename().getValue();
  auto op = shd::ProgramOp::create(builder, loc, llvm::sys::path::stem(path),
                                   mesh.attr, hardware, overrides.allowPadding);
  op.getBody().emplaceBlock();
  ImportSettings settings{&mesh.mesh, overrides.allowPadding, buffers};
  Importer(files, dims, settings).importFiles(sources, op);
  if (files.hadError() || machineFailed ||
      mlir::failed(mlir::verify(*program.module)))
    return std::nullopt;
  program.mesh = std::move(mesh.mesh);
  program.binding = std::move(mesh.binding);
  return std::move(program);
}

std::optional<Program> shardc::importProgram(llvm::SourceMgr &sourceMgr,
                                             mlir::MLIRContext *context,
                                             const Overrides &overrides) {
  SourceFiles files(sourceMgr, context);
  ProgramReader reader(files, overrides);
  if (!reader.readFiles())
    return std::nullopt;
  return reader.build();
}
