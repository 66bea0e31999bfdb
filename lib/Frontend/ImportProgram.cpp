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
#include "PartialSumChecks.h"
#include "Serving.h"
#include "Stages.h"
#include "mlir/IR/Verifier.h"
#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "shardc/Frontend/ProgramText.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

using namespace shardc;

//===----------------------------------------------------------------------===//
// Syntax
//===----------------------------------------------------------------------===//

/// The first declaration of a kind, or null.
template <typename Decl>
static const Decl *
findFirst(llvm::ArrayRef<std::unique_ptr<ast::File>> sources) {
  for (const std::unique_ptr<ast::File> &source : sources)
    for (const ast::ItemPtr &item : source->items)
      if (auto *decl = llvm::dyn_cast<Decl>(item.get()))
        return decl;
  return nullptr;
}

const ast::HardwareDecl *ProgramText::hardwareDecl() const {
  return hardware ? hardware.get() : findFirst<ast::HardwareDecl>(files);
}

const ast::MeshDecl *ProgramText::meshDecl() const {
  return mesh ? mesh.get() : findFirst<ast::MeshDecl>(files);
}

bool ProgramText::hasPipeline() const {
  return !stages.empty() ||
         llvm::any_of(files.front()->items, [](const ast::ItemPtr &item) {
           auto *repeat = llvm::dyn_cast<ast::RepeatStmt>(item.get());
           return repeat && hasStages(*repeat);
         });
}

bool ProgramText::hasTrainBlock() const {
  return findFirst<ast::TrainBlock>(files);
}

const ast::ServeBlock *ProgramText::serveBlock() const {
  return findFirst<ast::ServeBlock>(files);
}

const ast::PhaseMachine *ProgramText::machineOf(shd::ServingPhase phase) const {
  if (const ast::ServeBlock *block = serveBlock())
    for (const ast::PhaseMachine &machine : block->machines)
      if (machine.phase.text == shd::stringify(phase))
        return &machine;
  return nullptr;
}

/// Parses the texts of options; false after an error.
static bool readOverrides(SourceFiles &files, const Overrides &overrides,
                          ProgramText &text) {
  bool ok = true;
  if (overrides.hardware) {
    text.hardware = parseHardwareOverride(files, *overrides.hardware);
    ok &= text.hardware != nullptr;
  }
  if (overrides.mesh) {
    text.mesh = parseMeshOverride(files, *overrides.mesh);
    ok &= text.mesh != nullptr;
  }
  for (const std::string &dim : overrides.dims) {
    auto def = parseDimOverride(files, dim);
    ok &= def.has_value();
    if (def)
      text.dims.push_back(std::move(*def));
  }
  return ok;
}

/// Nothing after an error that leaves nothing to check.
static std::optional<ProgramText> readProgram(SourceFiles &files,
                                              const Overrides &overrides) {
  ProgramText text;
  text.sourceMgr = &files.getSourceMgr();
  text.allowPadding = overrides.allowPadding;
  text.calibrated = overrides.calibrated;
  text.step = overrides.step;
  text.roles = overrides.roles;
  text.stages = overrides.stages;
  text.phase = overrides.phase;
  text.files = parseProgram(files);
  if (text.files.empty())
    return std::nullopt;
  unsigned main = files.getSourceMgr().getMainFileID();
  for (unsigned i = 0; i < text.files.size(); ++i)
    text.buffers.push_back(main + i);
  if (!readOverrides(files, overrides, text))
    return std::nullopt;
  return text;
}

std::optional<ProgramText> shardc::readProgram(llvm::SourceMgr &sourceMgr,
                                               mlir::MLIRContext *context,
                                               const Overrides &overrides) {
  SourceFiles files(sourceMgr, context);
  std::optional<ProgramText> text = ::readProgram(files, overrides);
  return files.hadError() ? std::nullopt : std::move(text);
}

//===----------------------------------------------------------------------===//
// Import
//===----------------------------------------------------------------------===//

namespace {
/// Declarations of the whole program, gathered before anything is emitted.
class ProgramReader {
public:
  ProgramReader(SourceFiles &files, const ProgramText &text,
                llvm::ArrayRef<Setting> settings)
      : files(files), text(text), settings(settings), dims(files, nullptr) {}

  /// Dims, machine and mesh; false after an error that leaves nothing to go on
  /// with: without a mesh every placement would be one more.
  bool readSettings();
  bool hadError() const { return files.hadError() || machineFailed; }
  std::optional<Program> build();

private:
  void readDims();
  void defineDims(DimScope &dims);
  void readMachine();
  const ast::PhaseMachine *machineOfPhase() const;
  void checkNetworkBetween();
  bool readMesh();
  bool readStages();
  void noteAutoMesh(const ast::MeshDecl *decl);
  /// The one declaration of a kind that there may be.
  template <typename Decl> const Decl *findOnly(llvm::StringRef what);
  void findBlocks();
  void setPhase();
  void chooseStep(shd::ProgramOp program);
  void openBatch(shd::ProgramOp program);
  std::string batchIndex(shd::ProgramOp program, llvm::SMRange where);
  bool isSet(llvm::StringRef dim) const;
  void checkOffload(shd::ProgramOp program);
  llvm::SMRange startOfFile();

  SourceFiles &files;
  const ProgramText &text;
  llvm::ArrayRef<Setting> settings;
  DimScope dims;
  /// Definitions of the dims that are set.
  std::vector<ast::DimDef> dimSettings;
  /// What the `serve` block says; nothing without one, or after an error in it.
  const ast::ServeBlock *serveBlock = nullptr;
  std::optional<shd::Serving> serving;
  std::optional<shd::ServingPhase> servedPhase;
  Program program;
  ImportedMesh mesh;
  /// The repeat in pipeline stages, and their axis; null without stages.
  const ast::RepeatStmt *layers = nullptr;
  std::string stages;
  llvm::SMRange hardwareRange;
  bool machineFailed = false;
};
} // namespace

llvm::SMRange ProgramReader::startOfFile() {
  unsigned main = files.getSourceMgr().getMainFileID();
  llvm::SMLoc start = llvm::SMLoc::getFromPointer(
      files.getSourceMgr().getMemoryBuffer(main)->getBufferStart());
  return {start, start};
}

template <typename Decl>
const Decl *ProgramReader::findOnly(llvm::StringRef what) {
  const Decl *found = nullptr;
  for (const std::unique_ptr<ast::File> &source : text.files)
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

/// A definition by a number.
static ast::DimDef numberDef(llvm::StringRef name, int64_t number,
                             llvm::SMRange where) {
  auto value = std::make_unique<ast::DimExpr>();
  value->range = where;
  value->integer = number;
  return {{name.str(), where}, std::move(value)};
}

/// Defines the dims of the program, with those that are overridden or set.
void ProgramReader::defineDims(DimScope &dims) {
  for (const std::unique_ptr<ast::File> &source : text.files)
    for (const ast::ItemPtr &item : source->items)
      if (auto *decl = llvm::dyn_cast<ast::DimDecl>(item.get()))
        for (const ast::DimDef &def : decl->dims)
          dims.define(def);
  for (const ast::DimDef &def : text.dims)
    dims.replace(def);
  for (const ast::DimDef &def : dimSettings)
    dims.replace(def);
}

void ProgramReader::readDims() {
  for (const Setting &setting : settings)
    if (setting.kind == Setting::Kind::Dim)
      dimSettings.push_back(
          numberDef(setting.name, setting.number, setting.where));
  findBlocks();
  defineDims(dims);
  setPhase();
  dims.evaluateAll();
}

/// Gives the indices of a program that serves the extents of a phase.
void ProgramReader::setPhase() {
  std::optional<shd::ServingPhase> phase = text.phase;
  for (const Setting &setting : settings)
    if (setting.kind == Setting::Kind::Phase)
      phase = setting.phase;
  if (!serveBlock) {
    if (phase && !files.hadError())
      files.error(startOfFile())
          << "the program has no `serve` block, so that it has no phases";
    return;
  }
  if (!phase) {
    serving = readServeBlock(files, *serveBlock, dims);
    return;
  }
  // What the block says is that of the program as it is written.
  DimScope written(files, nullptr);
  defineDims(written);
  serving = readServeBlock(files, *serveBlock, written);
  if (!serving)
    return;
  size_t first = dimSettings.size();
  for (const auto &[name, extent] : serving->extentsOf(*phase))
    dimSettings.push_back(numberDef(name, extent, serveBlock->range));
  for (const ast::DimDef &def : llvm::ArrayRef(dimSettings).drop_front(first))
    dims.replace(def);
  servedPhase = phase;
}

void ProgramReader::readMachine() {
  const ast::HardwareDecl *decl = findOnly<ast::HardwareDecl>("hardware");
  if (const ast::PhaseMachine *own = machineOfPhase())
    decl = own->hardware.get();
  if (text.hardware)
    decl = text.hardware.get();
  for (const Setting &setting : settings)
    if (setting.kind == Setting::Kind::Hardware)
      decl = setting.machine.get();
  if (!decl)
    return;
  hardwareRange = decl->name.range;
  program.machine = importHardware(files, *decl, [&](const ast::DimExpr &expr) {
    return dims.evaluate(expr);
  });
  machineFailed = !program.machine ||
                  (text.calibrated &&
                   !calibrateHardware(files, hardwareRange, *program.machine));
  checkNetworkBetween();
}

/// The machine of the phase that the program becomes, if it has one of its own.
const ast::PhaseMachine *ProgramReader::machineOfPhase() const {
  return servedPhase ? text.machineOf(*servedPhase) : nullptr;
}

/// Caches go from one machine to the other over the network of both.
void ProgramReader::checkNetworkBetween() {
  bool hasNone = program.machine && program.machine->numChips() == 1;
  if (!serving || !serving->separate || !hasNone)
    return;
  const ast::PhaseMachine *own = machineOfPhase();
  // Without a phase the machines of the block are not looked at.
  if (!own && !servedPhase && !serveBlock->machines.empty())
    return;
  llvm::SMRange where = own ? own->range : serveBlock->range;
  for (const ast::Setting &setting : serveBlock->settings)
    if (!own && setting.name.text == "separate")
      where = setting.name.range;
  auto diag = files.error(where)
              << "separate machines need a network between them, but '"
              << program.machine->name << "' of one chip has none";
  diag.attachNote() << "a machine of several chips, such as '"
                    << program.machine->name << "[8]', has one";
}

bool ProgramReader::readMesh() {
  const ast::MeshDecl *decl = findOnly<ast::MeshDecl>("mesh");
  // Any mesh of a machine of its own, unless one is written.
  ast::MeshDecl any;
  if (const ast::PhaseMachine *own = machineOfPhase()) {
    any.isAuto = true;
    any.range = own->range;
    decl = own->mesh ? own->mesh.get() : &any;
  }
  if (text.mesh)
    decl = text.mesh.get();
  for (const Setting &setting : settings)
    if (setting.kind == Setting::Kind::Mesh)
      decl = setting.mesh.get();
  auto sizeOf = [&](const ast::MeshAxisDecl &axis) -> std::optional<int64_t> {
    for (const Setting &setting : settings)
      if (setting.kind == Setting::Kind::Axis && setting.name == axis.name.text)
        return setting.number;
    return dims.evaluate(*axis.size);
  };
  auto imported = importMesh(files, sizeOf, decl,
                             program.machine ? &*program.machine : nullptr);
  if (!imported)
    return false;
  mesh = std::move(*imported);
  noteAutoMesh(decl);
  return readStages();
}

/// Finds the repeat in stages: the one that the program places, or else the
/// layers where the mesh has an axis for stages.
bool ProgramReader::readStages() {
  const std::vector<ast::ItemPtr> &items = text.files.front()->items;
  layers = findStages(files, items);
  ast::Name axis{text.stages, startOfFile()};
  for (const Setting &setting : settings)
    if (setting.kind == Setting::Kind::Mesh)
      axis.text = setting.stages;
  if (layers)
    axis = layers->placement->axes.front();
  else if (!axis.text.empty())
    layers = findLayers(dims, items);
  if (!layers)
    return true;
  if (text.serveBlock())
    files.error(axis.range)
        << "pipeline stages of a program with `serve` are not supported yet";
  if (text.hasTrainBlock() && layers->microbatches)
    files.error(layers->microbatches->range)
        << "the microbatches of a program that is trained are those of its "
           "`train` block: `microbatches = ...`";
  if (text.hasTrainBlock() && layers->schedule)
    files.error(layers->schedule->range)
        << "the schedule of a program that is trained is that of its `train` "
           "block: `schedule = ...`";
  stages = axis.text;
  return markStages(files, axis, mesh);
}

void ProgramReader::noteAutoMesh(const ast::MeshDecl *decl) {
  if ((decl && !decl->isAuto) || !program.machine ||
      program.machine->numChips() == 1)
    return;
  program.autoMesh.emplace();
  program.autoMesh->where = decl ? decl->range : hardwareRange;
  if (decl)
    for (const ast::Name &name : decl->autoNames)
      program.autoMesh->names.push_back(name.text);
}

Setting shardc::meshSetting(const BoundMesh &mesh, llvm::SMRange where) {
  std::string stages;
  auto decl = std::make_shared<ast::MeshDecl>();
  decl->range = where;
  for (auto [axis, on] : llvm::zip_equal(mesh.mesh.axes, mesh.on)) {
    ast::MeshAxisDecl &written = decl->axes.emplace_back();
    written.name = {axis.name, where};
    if (axis.isStages)
      stages = axis.name;
    written.size = std::make_unique<ast::DimExpr>();
    written.size->range = where;
    written.size->integer = axis.size;
    for (const std::string &name : on)
      written.on.push_back({name, where});
  }
  Setting setting{Setting::Kind::Mesh, "mesh", 0, nullptr, where};
  setting.mesh = std::move(decl);
  setting.stages = std::move(stages);
  return setting;
}

Setting shardc::phaseSetting(shd::ServingPhase phase) {
  Setting setting{Setting::Kind::Phase, "phase", 0, nullptr, {}};
  setting.phase = phase;
  return setting;
}

Setting shardc::chunksSetting(unsigned loss, int64_t chunks) {
  Setting setting{Setting::Kind::Chunks, "chunks", chunks, nullptr, {}};
  setting.loss = loss;
  return setting;
}

Setting shardc::stepSetting(StepForm form) {
  Setting setting{Setting::Kind::Step, "step", 0, nullptr, {}};
  setting.step = std::move(form);
  return setting;
}

Setting shardc::rolesSetting(AxisRoles roles) {
  Setting setting{Setting::Kind::Roles, "roles", 0, nullptr, {}};
  setting.roles = std::move(roles);
  return setting;
}

bool ProgramReader::readSettings() {
  files.getContext()->getOrLoadDialect<shd::ShdDialect>();
  readDims();
  readMachine();
  return readMesh();
}

void ProgramReader::findBlocks() {
  auto *train = findOnly<ast::TrainBlock>("train");
  serveBlock = findOnly<ast::ServeBlock>("serve");
  if (!serveBlock || !train)
    return;
  files.error(serveBlock->range) << "`train` and `serve` exclude each other";
  serveBlock = nullptr;
}

/// Makes the outer choices of a program that is trained or runs in stages.
static void choose(shd::ProgramOp program, const StepForm &form) {
  std::optional<shd::PipelineAttr> pipeline = program.getPipeline();
  if (form.microbatches)
    program->removeAttr(shd::kMicrobatchesAt);
  if (std::optional<shd::TrainingAttr> training = program.getTraining())
    program.setTrainingAttr(withStep(*training, form));
  else if (pipeline && form.microbatches)
    shd::setMicrobatches(program, *form.microbatches);
  if (pipeline && form.schedule)
    program.setPipelineAttr(withOrder(*pipeline, *form.schedule));
}

/// Takes the outer choices of options and settings.
void ProgramReader::chooseStep(shd::ProgramOp program) {
  if (text.step)
    choose(program, *text.step);
  for (const Setting &setting : settings)
    if (setting.kind == Setting::Kind::Step)
      choose(program, setting.step);
}

/// The index of the batch that `batch = auto` is written for: the first one of
/// every input. Empty after an error.
std::string ProgramReader::batchIndex(shd::ProgramOp op, llvm::SMRange where) {
  llvm::StringRef index;
  for (auto declare : op.getBody().getOps<shd::DeclareOp>()) {
    if (declare.getKind() != shd::TensorKind::Input)
      continue;
    mlir::ArrayAttr indices = declare.getIndices();
    llvm::StringRef first =
        indices.empty() ? llvm::StringRef()
                        : mlir::cast<mlir::StringAttr>(indices[0]).getValue();
    if (index.empty())
      index = first;
    if (!first.empty() && first == index)
      continue;
    auto error = files.error(where)
                 << "`batch = auto` needs an index of the batch, which every "
                    "input has first";
    error.attachNote(declare.getLoc())
        << "input '" << declare.getSym() << "' has "
        << (first.empty() ? std::string("no index") : "'" + first.str() + "'");
    return "";
  }
  if (index.empty())
    files.error(where) << "`batch = auto` needs an input, whose first index is "
                          "that of the batch";
  return index.str();
}

/// True if an option or a setting says how large a dim is.
bool ProgramReader::isSet(llvm::StringRef dim) const {
  auto isNamed = [&](const ast::DimDef &def) { return def.name.text == dim; };
  return llvm::any_of(text.dims, isNamed) || llvm::any_of(dimSettings, isNamed);
}

/// `batch = auto`: of several microbatches there is no largest batch, so that
/// the step has one unless it says how many.
void ProgramReader::openBatch(shd::ProgramOp op) {
  std::optional<shd::TrainingAttr> training = op.getTraining();
  const auto *block = findFirst<ast::TrainBlock>(text.files);
  if (!training || !block)
    return;
  for (const ast::Setting &setting : block->settings) {
    if (setting.name.text != "batch" ||
        !isAutoBatch(setting.values.front(), dims))
      continue;
    llvm::SMRange where = setting.values.front().range;
    std::string index = batchIndex(op, where);
    if (training->getMicrobatches() == 0) {
      StepForm one;
      one.microbatches = 1;
      op.setTrainingAttr(withStep(*training, one));
      if (op.getPipeline())
        files.error(where) << "`batch = auto` needs a number of microbatches "
                              "in a pipeline: of more of them any batch fits";
    }
    if (!index.empty() && !isSet(index))
      program.autoBatch = Program::AutoBatch{index, where};
  }
}

/// Where the train block says what the host keeps: the setting, or a placing.
static llvm::SMRange offloadRange(const ast::TrainBlock &block) {
  for (const ast::Setting &setting : block.settings)
    if (setting.name.text == "offload" && setting.values.front().text != "none")
      return setting.values.front().range;
  for (const ast::Placing &placing : block.placings)
    if (placing.what.text == "offload")
      return placing.what.range;
  return block.range;
}

/// Offloading needs a link to the host, and one stage.
void ProgramReader::checkOffload(shd::ProgramOp op) {
  std::optional<shd::TrainingAttr> training = op.getTraining();
  if (!training)
    return;
  shd::Offload offload = training->getOffload();
  bool isSet = offload == shd::Offload::Optimizer ||
               offload == shd::Offload::Activations;
  if (!isSet && !training->getOffloaded())
    return;
  bool hasLink = !program.machine || program.machine->hostBandwidth;
  if (hasLink && !op.getPipeline())
    return;
  std::string what =
      isSet ? ("`offload = " + stringifyOffload(offload) + "`").str()
            : "`offload` of a value";
  auto error = files.error(offloadRange(*findOnly<ast::TrainBlock>("train")))
               << what;
  if (hasLink)
    error << " is not supported yet with pipeline stages";
  else
    error << " needs a link to the host, but hardware '"
          << program.machine->name << "' states no `host.bandwidth`";
}

std::optional<Program> ProgramReader::build() {
  mlir::MLIRContext *context = files.getContext();
  if (!readSettings())
    return std::nullopt;

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
                                   mesh.attr, hardware, text.allowPadding,
                                   /*training=*/shd::TrainingAttr(),
                                   /*pipeline=*/shd::PipelineAttr());
  op.getBody().emplaceBlock();
  ImportSettings settings{&mesh.mesh, text.allowPadding, text.buffers, layers,
                          stages};
  std::vector<const ast::File *> sources;
  for (const std::unique_ptr<ast::File> &file : text.files)
    sources.push_back(file.get());
  Importer(files, dims, settings).importFiles(sources, op);
  openBatch(op);
  chooseStep(op);
  checkOffload(op);
  if (serving && !hadError())
    markServing(files, *serveBlock, *serving, servedPhase, op);
  if (!hadError())
    checkPartialSums(files, text.buffers, mesh.mesh, op);
  if (hadError() || mlir::failed(mlir::verify(*program.module)))
    return std::nullopt;
  program.mesh = std::move(mesh.mesh);
  program.binding = std::move(mesh.binding);
  return std::move(program);
}

std::optional<Program> shardc::importProgram(const ProgramText &text,
                                             mlir::MLIRContext *context,
                                             llvm::ArrayRef<Setting> settings) {
  SourceFiles files(*text.sourceMgr, context);
  return ProgramReader(files, text, settings).build();
}

std::optional<Program> shardc::importProgram(llvm::SourceMgr &sourceMgr,
                                             mlir::MLIRContext *context,
                                             const Overrides &overrides) {
  SourceFiles files(sourceMgr, context);
  std::optional<ProgramText> text = ::readProgram(files, overrides);
  if (!text)
    return std::nullopt;
  std::optional<Program> program = importProgram(*text, context);
  if (files.hadError() || !program)
    return std::nullopt;
  program->files = std::move(text->files);
  return program;
}

bool shardc::checkSettings(const ProgramText &text, mlir::MLIRContext *context,
                           llvm::ArrayRef<Setting> settings) {
  mlir::ScopedDiagnosticHandler silence(context, [](mlir::Diagnostic &) {});
  SourceFiles files(*text.sourceMgr, context);
  ProgramReader reader(files, text, settings);
  return reader.readSettings() && !reader.hadError();
}

bool shardc::checkOverrides(llvm::SourceMgr &sourceMgr,
                            mlir::MLIRContext *context,
                            const Overrides &overrides) {
  SourceFiles files(sourceMgr, context);
  ProgramText text;
  return readOverrides(files, overrides, text);
}
