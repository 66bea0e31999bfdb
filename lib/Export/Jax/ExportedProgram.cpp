//===- ExportedProgram.cpp - Tables and functions of one plan -------------===//

#include "ExportedProgram.h"
#include "mlir/Pass/PassManager.h"
#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Dialect/Shd/IR/Host.h"
#include "shardc/Dialect/Shd/IR/Order.h"
#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "shardc/Dialect/Shd/IR/WorkOrder.h"
#include "shardc/Optimizer/Names.h"
#include "shardc/Pipelines/Pipelines.h"
#include "shardc/Reshard/Permutation.h"
#include "shardc/Shrink/Shrink.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::jax;

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// A copy of a program in a module of its own.
static OwningOpRef<ModuleOp> isolated(shd::ProgramOp program) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(program.getLoc());
  OpBuilder::atBlockEnd(module->getBody()).clone(*program);
  return module;
}

template <typename Program> static Program programOf(ModuleOp module) {
  return *module.getOps<Program>().begin();
}

template <typename Program>
void ExportedProgram::isolate(Forms<Program> &forms, Program program) {
  forms.module = isolated(program);
  forms.smallModule = isolated(program);
  forms.full = programOf<Program>(*forms.module);
  forms.small = programOf<Program>(*forms.smallModule);
}

/// Layers for which each stage has a place: chunks are as long as the longest.
static int64_t slotsOf(const PipelineShape &shape) {
  return shape.order.chunks * *llvm::max_element(shape.layers);
}

ExportedProgram::ExportedProgram(PythonFile &file, StringRef prefix,
                                 shd::ProgramOp unplanned,
                                 shd::ProgramOp planned, shd::ProgramOp forward,
                                 const StagePlan *stages)
    : file(file), prefix(prefix), unplanned(unplanned), planned(planned),
      stages(stages) {
  isolate(global, unplanned);
  for (shd::ProgramOp whole : {global.full, global.small})
    shd::moveInOrder(whole, shd::workOrderOf(planned));
  if (forward) {
    isolate(this->forward, forward);
    // No device holds a part of it, whatever its text says.
    for (shd::ProgramOp whole : {this->forward.full, this->forward.small})
      whole.removeMeshAttr();
  }
  device.module = isolated(planned);
  device.smallModule = isolated(planned);
  if (!stages)
    return;
  PipelineShape shape = shapeOf(*stages);
  file.chunks = shape.order.chunks;
  file.isUneven = !llvm::all_equal(shape.layers);
  shd::holdLayers(global.full, shape.numLayers());
  for (ModuleOp module : {*device.module, *device.smallModule}) {
    auto program = programOf<shd::ProgramOp>(module);
    shd::holdLayers(program, slotsOf(shape));
    markStages(program);
  }
}

shd::ProgramOp ExportedProgram::smallPlan() const {
  return programOf<shd::ProgramOp>(*device.smallModule);
}

/// A first stage, a last one and two between them, with chunks that differ.
static constexpr int64_t kMostStages = 4, kMostLayers = 3;

LogicalResult ExportedProgram::shrink() {
  ShrinkOptions options;
  if (stages) {
    smallShape = shrunkShape(*stages, kMostStages, kMostLayers);
    options.least[stages->microbatches] = smallShape.microbatches;
  }
  // The whole batch of a step in microbatches is in the forward program only.
  SmallVector<shd::ProgramOp> programs = {planned};
  if (forward.full)
    programs.push_back(forward.full);
  std::vector<Shrinking> all = chooseShrinking(programs, options);
  const Shrinking &shrinking = all.front();
  applyShrinking(smallWhole(), shrinking);
  applyShrinking(smallPlan(), shrinking);
  if (forward.small)
    applyShrinking(forward.small, all.back());
  if (!stages)
    return success();
  smallShape.microbatches = shrinking.count(stages->microbatches);
  if (std::string why =
          whyIllegal(smallShape.order, smallShape.stages,
                     smallShape.microbatches, smallShape.numLayers());
      !why.empty())
    return unplanned.emitError("the small form of the pipeline cannot run: ")
           << why;
  shd::holdStages(smallPlan(), smallShape.stages);
  shd::holdLayers(smallPlan(), slotsOf(smallShape));
  shd::holdLayers(smallWhole(), smallShape.numLayers());
  if (forward.small)
    shd::holdLayers(forward.small, smallShape.numLayers());
  return success();
}

/// Turns an explicit plan into the program of a device, which has everything.
static LogicalResult convertToDevice(ModuleOp module) {
  PassManager manager(module.getContext());
  buildSpmdPipeline(manager);
  return manager.run(module);
}

/// Operations of two programs that differ in extents only, one by one.
static void pair(PythonFile &file, Operation *full, Operation *small) {
  SmallVector<Operation *> inFull, inSmall;
  full->walk<WalkOrder::PreOrder>([&](Operation *op) { inFull.push_back(op); });
  small->walk<WalkOrder::PreOrder>(
      [&](Operation *op) { inSmall.push_back(op); });
  for (auto [op, counterpart] : llvm::zip_equal(inFull, inSmall)) {
    file.small[op] = counterpart;
    // A small operation is its own small form.
    file.small[counterpart] = counterpart;
  }
}

/// shard_map wants parts of one size.
LogicalResult ExportedProgram::checkDivisible() {
  auto check = [&](Value value) -> LogicalResult {
    auto type = cast<RankedTensorType>(value.getType());
    Layout layout = shd::explicitLayout(file.mesh, type);
    SmallVector<std::string, 4> names = indexNames(value);
    names.resize(type.getRank());
    for (auto [axes, extent, index] :
         llvm::zip_equal(layout.dims, type.getShape(), names))
      if (int64_t devices = file.mesh.groupSize(axes); extent % devices != 0)
        return emitError(value.getLoc(),
                         "--emit-jax expects axes that divide the extents that "
                         "they split, found ")
               << index << " = " << extent << " of '" << valueName(value)
               << "' on " << devices << " devices";
    return success();
  };
  WalkResult result = planned->walk([&](Operation *op) {
    for (Value value : op->getResults())
      if (isa<RankedTensorType>(value.getType()) && failed(check(value)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// A value goes from one stage to another only as one that layers carry.
LogicalResult ExportedProgram::checkStages() {
  OwningOpRef<ModuleOp> split = device.module->clone();
  PassManager manager(split->getContext());
  buildSpmdPipeline(manager, layersOf(*stages), toString(stages->order));
  return manager.run(*split);
}

LogicalResult ExportedProgram::check() {
  if (unplanned->hasAttr(shd::kPlan))
    return unplanned.emitError("--emit-jax expects a program without a plan, "
                               "found one that has it: the "
                               "unsharded program is no longer there");
  axes = shd::toMesh(planned.getMeshAttr());
  enter();
  return success(succeeded(checkDivisible()) &&
                 (!stages || succeeded(checkStages())));
}

LogicalResult ExportedProgram::convert() {
  smallAxes = shd::toMesh(smallPlan().getMeshAttr());
  if (failed(convertToDevice(*device.module)) ||
      failed(convertToDevice(*device.smallModule)))
    return failure();
  device.full = programOf<spmd::ProgramOp>(*device.module);
  device.small = programOf<spmd::ProgramOp>(*device.smallModule);
  pair(file, global.full, global.small);
  if (forward.full)
    pair(file, forward.full, forward.small);
  pair(file, device.full, device.small);
  return success();
}

void ExportedProgram::nameParameters() {
  global.full->walk([&](shd::DeclareOp op) {
    auto [known, isNew] = file.parameters.try_emplace(op.getSym());
    if (isNew)
      known->second = file.names.make(op.getSym());
  });
}

SmallVector<Parameter> ExportedProgram::parameters() {
  return parametersOf(file, global.full.getBody().front());
}

SmallVector<spmd::OutputOp> ExportedProgram::outputs() {
  return llvm::to_vector(
      device.full.getBody().front().getOps<spmd::OutputOp>());
}

/// Inputs hold positions of what they index; of several, the smallest.
void ExportedProgram::findBounds() {
  llvm::StringMap<int64_t> least;
  auto note = [&](shd::ShardingRuleOpInterface op, Value value,
                  StringRef index) {
    auto declare = rootOf(value).getDefiningOp<shd::DeclareOp>();
    if (!declare)
      return;
    auto [full, small] = IndexedOp(file, op).extents(index);
    auto [known, isNew] = least.try_emplace(declare.getSym(), small);
    if (!isNew && known->second <= small)
      return;
    known->second = small;
    bounds[declare.getSym()] = file.sizes.key(index, full, small);
  };
  auto visit = [&](Operation *op) {
    if (auto positioned = dyn_cast<shd::PositionsOpInterface>(op)) {
      auto typed = cast<shd::ShardingRuleOpInterface>(op);
      shd::IndexingAttr indexing = typed.getIndexing();
      bool isOperand = positioned.getPositioned() == op->getOperand(0);
      IndexedOp::Names names = isOperand ? indexing.getOperandIndices(0)
                                         : indexing.getResultIndices(0);
      for (auto [value, dim] :
           llvm::zip_equal(positioned.getPositions(), positioned.getDims()))
        note(typed, value, names[dim]);
    }
    if (auto loss = dyn_cast<shd::CrossEntropyOp>(op))
      note(loss, loss.getLabels(), loss.getClasses());
    if (auto attention = dyn_cast<shd::AttentionOpInterface>(op))
      if (attention.getAt() && !attention.getKeyAt())
        note(cast<shd::ShardingRuleOpInterface>(op), attention.getAt(),
             attention.getKey());
  };
  global.full->walk(visit);
  // Microbatches take parts of inputs, which hide what they hold.
  if (forward.full)
    forward.full->walk(visit);
}

/// The layout in which the plan stores a value of the unsharded program.
void ExportedProgram::noteLayout(const FunctionPrinter &printer, Value value,
                                 Value placed) {
  Type type = shd::storedValue(placed).getType();
  if (shd::explicitLayout(file.mesh, type).partial == 0)
    layouts.push_back({printer.nameOf(value), file.partitionSpec(type)});
}

void ExportedProgram::findLayouts(const FunctionPrinter &printer) {
  auto valuesOf = [](Operation *program) {
    SmallVector<Operation *> values;
    program->walk<WalkOrder::PreOrder>(
        [&](shd::ShardingRuleOpInterface op) { values.push_back(op); });
    return values;
  };
  SmallVector<Operation *> before = valuesOf(global.full);
  SmallVector<Operation *> after = valuesOf(planned);
  for (auto [op, placed] : llvm::zip_equal(before, after))
    if (!op->hasAttr(shd::kTemporary))
      for (auto [value, made] :
           llvm::zip_equal(op->getResults(), placed->getResults()))
        noteLayout(printer, value, made);
}

/// Values of the forward program are those of the step's forward pass of the
/// same names; recomputed ones come later.
void ExportedProgram::findForwardLayouts(const FunctionPrinter &printer) {
  llvm::StringMap<Value> inStep;
  auto visit = [](Operation *program,
                  llvm::function_ref<void(StringRef, Value)> note) {
    program->walk([&](shd::ShardingRuleOpInterface op) {
      if (!op->hasAttr(shd::kTemporary) &&
          shd::getPhase(op) == shd::Phase::Forward)
        for (Value value : op->getResults())
          if (StringRef name = shd::getResultName(value); !name.empty())
            note(name, value);
    });
  };
  visit(planned,
        [&](StringRef name, Value value) { inStep.try_emplace(name, value); });
  visit(forward.full, [&](StringRef name, Value value) {
    if (Value made = inStep.lookup(name))
      noteLayout(printer, value, made);
  });
}

LogicalResult ExportedProgram::printFunctions(raw_ostream &os,
                                              StringRef deviceName,
                                              StringRef whole) {
  enter();
  FunctionPrinter devicePrinter(file, os);
  if (failed(devicePrinter.print(deviceName, "What every device runs.",
                                 device.full.getBody().front())))
    return failure();
  shd::ProgramOp program = forward.full ? forward.full : global.full;
  FunctionPrinter wholePrinter(file, os);
  if (failed(wholePrinter.print(whole, "The program without shardings.",
                                program.getBody().front())))
    return failure();
  if (forward.full)
    findForwardLayouts(wholePrinter);
  else
    findLayouts(wholePrinter);
  return success();
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

static std::string meshText(const Mesh &mesh) {
  std::string text;
  for (const MeshAxis &axis : mesh.axes)
    text += cat(text.empty() ? "" : ", ", quoted(axis.name), ": ", axis.size);
  return cat("{", text, "}");
}

std::string ExportedProgram::mesh() const {
  std::string full = meshText(axes), small = meshText(smallAxes);
  return full == small ? full : cat(full, " if FULL else ", small);
}

std::string ExportedProgram::layersTable() const {
  if (file.chunks == 1 && !file.isUneven)
    return "";
  auto rows = [](const PipelineShape &shape) {
    SmallVector<std::string> ofStages;
    for (int64_t stage = 0; stage < shape.stages; ++stage) {
      SmallVector<std::string> ofChunks;
      for (int64_t chunk = 0; chunk < shape.order.chunks; ++chunk)
        ofChunks.push_back(
            std::to_string(shape.layers[chunk * shape.stages + stage]));
      ofStages.push_back(cat("[", commas(ofChunks), "]"));
    }
    return cat("[", commas(ofStages), "]");
  };
  std::string full = rows(shapeOf(*stages)), small = rows(smallShape);
  return cat("# By stage and chunk, how many layers it has.\nHELD = ", full,
             full == small ? "" : cat(" if FULL else ", small), "\n");
}

std::string ExportedProgram::meshWords() const {
  std::string text;
  for (const MeshAxis &axis : axes.axes)
    text += cat(text.empty() ? "" : ", ", axis.name, " = ", axis.size);
  return text.empty() ? "one device" : text;
}

/// The dimension of a tensor that counts the layers of a pipeline.
std::optional<unsigned> ExportedProgram::layersDimOf(Operation *op) {
  std::optional<shd::PipelineAttr> pipeline = planned.getPipeline();
  auto parameter = dyn_cast<spmd::ParameterOp>(op);
  if (!pipeline || !parameter)
    return std::nullopt;
  return shd::layersDim(parameter.getIndices(), parameter.getStacked(),
                        pipeline->getIndex());
}

/// The dimensions of a tensor that are dealt, with their orders.
std::string ExportedProgram::orderOf(Operation *op, ArrayRef<StringRef> indices,
                                     ArrayRef<int64_t> extents,
                                     ArrayRef<int64_t> smallExtents) {
  std::string text;
  std::optional<unsigned> layers = layersDimOf(op);
  for (auto [dim, index] : llvm::enumerate(indices)) {
    std::string order =
        layers != dim
            ? zigzag(file, op, index,
                     file.sizes.key(index, extents[dim], smallExtents[dim]))
        : file.chunks > 1 || file.isUneven
            ? cat(file.helper("layer_slots"), "()")
            : "";
    if (!order.empty())
      text += cat(text.empty() ? "" : ", ", dim, ": lambda: ", order);
  }
  return text;
}

std::pair<std::string, std::string> ExportedProgram::orderEntries() {
  enter();
  auto entry = [](StringRef name, const std::string &order) {
    return order.empty() ? "" : cat("    ", quoted(name), ": {", order, "},\n");
  };
  auto shapeOf = [](TypeAttr type) {
    return cast<RankedTensorType>(type.getValue()).getShape();
  };
  std::string tensors, outputs;
  for (const Parameter &parameter :
       parametersOf(file, device.full.getBody().front())) {
    auto small = cast<spmd::ParameterOp>(file.small.lookup(parameter.op));
    tensors += entry(parameter.name, orderOf(parameter.op, parameter.indices,
                                             parameter.global.getShape(),
                                             shapeOf(small.getGlobalAttr())));
  }
  for (auto output : device.full.getBody().front().getOps<spmd::OutputOp>()) {
    auto small = cast<spmd::OutputOp>(file.small.lookup(output));
    SmallVector<StringRef> indices(
        output.getIndices().getAsValueRange<StringAttr>());
    outputs += entry(output.getSym(),
                     orderOf(output, indices, shapeOf(output.getGlobalAttr()),
                             shapeOf(small.getGlobalAttr())));
  }
  return {tensors, outputs};
}

bool ExportedProgram::hasOrders() {
  auto [tensors, outputs] = orderEntries();
  return !tensors.empty() || !outputs.empty();
}

std::string ExportedProgram::orders() {
  auto [tensors, outputs] = orderEntries();
  return cat(
      "# Dimensions that are stored in another order than the program's.\n",
      table("ORDERS"), " = {\n", tensors, "}\n", table("OUTPUT_ORDERS"),
      " = {\n", outputs, "}\n");
}

std::string ExportedProgram::tensors() {
  enter();
  findBounds();
  std::string text = cat(
      "# Inputs, weights and states: element type, indices, and for integers "
      "that\n"
      "# are positions, of what. Those of a repeat have its index in front.\n",
      table("TENSORS"), " = {\n");
  for (const Parameter &parameter :
       parametersOf(file, global.full.getBody().front())) {
    auto small = cast<shd::DeclareOp>(file.small.lookup(parameter.op));
    SmallVector<std::string> keys;
    for (auto [index, extent, smallExtent] :
         llvm::zip_equal(parameter.indices, parameter.global.getShape(),
                         small.getType().getShape()))
      keys.push_back(quoted(file.sizes.key(index, extent, smallExtent)));
    auto declare = cast<shd::DeclareOp>(parameter.op);
    std::string bound = bounds.lookup(declare.getSym());
    text += cat("    ", quoted(parameter.name), ": (",
                file.type(parameter.global.getElementType()), ", ",
                pythonTuple(keys), ", ", bound.empty() ? "None" : quoted(bound),
                "),\n");
  }
  return cat(text, "}\n");
}

/// The parts of a tensor of layers are those of the stages, too.
std::string ExportedProgram::specOf(const Parameter &parameter) {
  SmallVector<std::string> dims = file.partitionedDims(parameter.global);
  if (std::optional<unsigned> dim = layersDimOf(parameter.op))
    dims[*dim] = quoted(planned.getPipeline()->getAxis());
  return cat("P(", commas(dims), ")");
}

SmallVector<std::string> ExportedProgram::onHost() {
  SmallVector<std::string> names;
  for (const Parameter &parameter :
       parametersOf(file, device.full.getBody().front()))
    if (parameter.op->hasAttr(shd::kHost))
      names.push_back(quoted(parameter.name));
  return names;
}

std::string ExportedProgram::specs(StringRef whole) {
  enter();
  std::string text = cat(
      "# How the plan stores them: jax.device_put(Win, NamedSharding(mesh, ",
      table("SPECS"), "[\"Win\"])).\n", table("SPECS"), " = {\n");
  for (const Parameter &parameter :
       parametersOf(file, device.full.getBody().front()))
    text += cat("    ", quoted(parameter.name), ": ", specOf(parameter),
                ",  # ", shd::stringifyTensorKind(parameter.kind), " [",
                llvm::join(parameter.indices, ", "), "]\n");
  text += cat("}\n", table("OUTPUTS"), " = {\n");
  std::string partial;
  for (auto output : device.full.getBody().front().getOps<spmd::OutputOp>()) {
    Layout layout = shd::explicitLayout(file.mesh, output.getGlobal());
    std::string spec = file.partitionSpec(output.getGlobal());
    if (layout.partial) {
      AxisList axes = reshard::axisList(layout.partial);
      StringRef dims = StringRef(spec).drop_front(2);
      spec = cat("P(", file.axisTuple(axes), dims == ")" ? "" : ", ", dims);
      partial += cat(partial.empty() ? "" : ", ", quoted(output.getSym()));
    }
    SmallVector<std::string> indices;
    for (StringRef index : output.getIndices().getAsValueRange<StringAttr>())
      indices.push_back(index.str());
    text += cat(
        "    ", quoted(output.getSym()), ": ", spec, ",  # [", commas(indices),
        "]", layout.partial ? ", a partial sum for each device in front" : "",
        "\n");
  }
  text += cat("}\n", table("PARTIAL"), " = [", partial, "]\n");
  SmallVector<std::string> states;
  device.full->walk([&](spmd::UpdateOp update) {
    if (shd::isBuffer(update.getParameter().getKind()))
      return;
    states.push_back(quoted(file.parameters.lookup(update.getSym())));
  });
  text += cat(table("STATES"), " = [", commas(states), "]\n");
  if (SmallVector<std::string> onHost = this->onHost(); !onHost.empty()) {
    file.helper("has_host");
    text +=
        cat("# In the memory of the host, if the devices have such memory.\n",
            table("HOST"), " = [", commas(onHost), "]\n");
  }
  text += cat("# The layouts of the values of `", whole,
              "` that the program names.\n", table("LAYOUTS"), " = {\n");
  for (const auto &[name, spec] : layouts)
    text += cat("    ", quoted(name), ": ", spec, ",\n");
  return cat(text, "}\n");
}
