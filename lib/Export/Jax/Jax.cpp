//===- Jax.cpp - --emit-jax: the parts of the file ------------------------===//
//
// Tables of sizes, types and layouts, the helper functions that are called, the
// program of a device, the unsharded program, and a main that compares them.
// Functions are printed first: tables and helpers are what they need.
//
//===----------------------------------------------------------------------===//

#include "shardc/Export/Jax.h"
#include "Function.h"
#include "mlir/IR/BuiltinOps.h"
#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Dialect/Shd/IR/Host.h"
#include "shardc/Dialect/Shd/IR/Order.h"
#include "shardc/Dialect/Shd/IR/Segments.h"
#include "shardc/Optimizer/Names.h"
#include "shardc/Pipelines/Compilation.h"
#include "shardc/Reshard/Permutation.h"
#include "shardc/Shrink/Shrink.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::jax;

namespace {

/// A program in a module of its own, and its small form.
template <typename Program> struct Forms {
  OwningOpRef<ModuleOp> module, smallModule;
  Program full, small;
};

class Exporter {
public:
  Exporter(shd::ProgramOp unplanned, shd::ProgramOp planned)
      : unplanned(unplanned), planned(planned) {}

  LogicalResult run(raw_ostream &os);

private:
  LogicalResult prepare();
  LogicalResult checkSegments();
  LogicalResult checkMemory();
  LogicalResult checkDivisible();
  void nameParameters();
  void findBounds();
  void findLayouts(const FunctionPrinter &printer);

  std::string heading();
  std::string sizes() const;
  std::string types() const;
  std::string orderOf(Operation *op, ArrayRef<StringRef> indices,
                      ArrayRef<int64_t> extents,
                      ArrayRef<int64_t> smallExtents);
  std::string orders();
  std::string tensors();
  std::string specs();

  shd::ProgramOp unplanned, planned;
  Forms<shd::ProgramOp> global;
  Forms<spmd::ProgramOp> device;
  SmallVector<int64_t> smallAxes;
  PythonFile file;
  /// The index whose positions an integer input holds: a key of the table of
  /// sizes.
  llvm::StringMap<std::string> bounds;
  /// The layout of each named value of the unsharded program.
  SmallVector<std::pair<std::string, std::string>> layouts;
};

} // namespace

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

/// Turns an explicit plan into the program of a device.
static LogicalResult convert(OwningOpRef<ModuleOp> &module) {
  Compilation compilation(std::move(module), Compilation::Stage::Explicit);
  LogicalResult converted = compilation.convertToSpmd();
  module = compilation.takeModule();
  return converted;
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

LogicalResult Exporter::checkSegments() {
  WalkResult result = planned->walk([](shd::RepeatOp repeat) {
    if (!shd::segmentsOf(repeat))
      return WalkResult::advance();
    repeat.emitError("--emit-jax does not express the segments of "
                     "`remat = every(k)` yet; use `remat = full`");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// All tensors of the exported program are on the devices.
LogicalResult Exporter::checkMemory() {
  WalkResult result = planned->walk([](shd::DeclareOp declare) {
    if (!shd::isOnHost(declare.getResult()))
      return WalkResult::advance();
    declare.emitError("--emit-jax does not express `offload` yet");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// shard_map wants parts of one size.
LogicalResult Exporter::checkDivisible() {
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

LogicalResult Exporter::prepare() {
  if (unplanned->hasAttr(shd::kPlan))
    return unplanned.emitError("--emit-jax expects a program without a plan, "
                               "found one that has it: the "
                               "unsharded program is no longer there");
  if (planned.getPipeline())
    return unplanned.emitError("--emit-jax does not express a pipeline's "
                               "stages yet");
  file.mesh = shd::toMesh(planned.getMeshAttr());
  if (failed(checkSegments()) || failed(checkMemory()) ||
      failed(checkDivisible()))
    return failure();
  Shrinking shrinking = chooseShrinking(planned);
  smallAxes = shrinking.axes;
  global.module = isolated(unplanned);
  global.smallModule = isolated(unplanned);
  global.full = programOf<shd::ProgramOp>(*global.module);
  global.small = programOf<shd::ProgramOp>(*global.smallModule);
  applyShrinking(global.small, shrinking);
  device.module = isolated(planned);
  device.smallModule = isolated(planned);
  applyShrinking(programOf<shd::ProgramOp>(*device.smallModule), shrinking);
  if (failed(convert(device.module)) || failed(convert(device.smallModule)))
    return failure();
  device.full = programOf<spmd::ProgramOp>(*device.module);
  device.small = programOf<spmd::ProgramOp>(*device.smallModule);
  pair(file, global.full, global.small);
  pair(file, device.full, device.small);
  return success();
}

void Exporter::nameParameters() {
  for (StringRef name :
       {"argparse",  "functools",     "itertools",  "math",   "os",
        "sys",       "jax",           "jnp",        "lax",    "np",
        "Mesh",      "NamedSharding", "P",          "EXACT",  "FULL",
        "MESH",      "size",          "TENSORS",    "SPECS",  "OUTPUTS",
        "PARTIAL",   "STATES",        "LAYOUTS",    "FLOATS", "device_program",
        "reference", "arguments",     "on_mesh",    "ORDERS", "OUTPUT_ORDERS",
        "stored",    "in_order",      "difference", "main",   "carried",
        "step",      "f64",           "f32",        "tf32",   "f16",
        "bf16",      "f8e4m3",        "f8e5m2",     "f4e2m1", "int32",
        "int16",     "int8",          "int4",       "uint8"})
    file.names.reserve(name);
  reserveHelperNames(file.names);
  global.full->walk([&](shd::DeclareOp op) {
    file.parameters[op.getSym()] = file.names.make(op.getSym());
  });
}

/// Inputs hold positions of what they index; of several, the smallest.
void Exporter::findBounds() {
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
  global.full->walk([&](Operation *op) {
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
  });
}

void Exporter::findLayouts(const FunctionPrinter &printer) {
  auto valuesOf = [](Operation *program) {
    SmallVector<Operation *> values;
    program->walk<WalkOrder::PreOrder>(
        [&](shd::ShardingRuleOpInterface op) { values.push_back(op); });
    return values;
  };
  SmallVector<Operation *> before = valuesOf(global.full);
  SmallVector<Operation *> after = valuesOf(planned);
  for (auto [op, placed] : llvm::zip_equal(before, after)) {
    if (op->hasAttr(shd::kTemporary))
      continue;
    for (auto [value, made] :
         llvm::zip_equal(op->getResults(), placed->getResults())) {
      Type type = shd::storedValue(made).getType();
      if (shd::explicitLayout(file.mesh, type).partial == 0)
        layouts.push_back({printer.nameOf(value), file.partitionSpec(type)});
    }
  }
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

static std::string meshText(const Mesh &mesh, ArrayRef<int64_t> sizes) {
  std::string text;
  for (auto [axis, size] : llvm::zip_equal(mesh.axes, sizes))
    text += cat(text.empty() ? "" : ", ", quoted(axis.name), ": ", size);
  return cat("{", text, "}");
}

std::string Exporter::heading() {
  std::string mesh;
  for (const MeshAxis &axis : file.mesh.axes)
    mesh += cat(mesh.empty() ? "" : ", ", axis.name, " = ", axis.size);
  return cat("\"\"\"", planned.getSym(), " on a mesh of ",
             mesh.empty() ? std::string("one device") : mesh,
             R"(. Written by shardc --emit-jax.

    python3 FILE              runs a small form of the plan on host devices, and
                              compares it with the unsharded program
    python3 FILE --exact      the same with every float type as float64
    python3 FILE --full       the plan as it is, on the devices that there are

SPECS and OUTPUTS are the plan's layouts, device_program is what every device
runs, reference is the program without shardings.
"""
)");
}

std::string Exporter::sizes() const {
  std::string text =
      "# Every index: its extent in the program, and in a form of "
      "it that runs anywhere.\nsize = {\n";
  for (const SizeTable::Entry &entry : file.sizes.entries())
    text += cat("    ", quoted(entry.name), ": ",
                entry.full == entry.small
                    ? std::to_string(entry.full)
                    : cat(entry.full, " if FULL else ", entry.small),
                ",\n");
  SmallVector<int64_t> full;
  for (const MeshAxis &axis : file.mesh.axes)
    full.push_back(axis.size);
  std::string mesh = meshText(file.mesh, full);
  std::string small = meshText(file.mesh, smallAxes);
  return cat(text, "}\nMESH = ", mesh,
             mesh == small ? std::string() : cat(" if FULL else ", small),
             "\n");
}

static constexpr StringLiteral kDealing = R"(

def stored(values):
    """Arguments, in the order of TENSORS, as the plan stores them."""
    dealt = []
    for name, value in zip(TENSORS, values):
        for dim, order in ORDERS.get(name, {}).items():
            value = jnp.take(value, order(), dim)
        dealt.append(value)
    return dealt


def in_order(results, orders):
    """Outputs or states in the program's order."""
    for name in results:
        for dim, order in orders.get(name, {}).items():
            results[name] = jnp.take(results[name], jnp.argsort(order()), dim)
    return results

)";

/// The dtype of an element type in JAX, which has no tf32.
static StringRef dtypeOf(StringRef type) {
  return llvm::StringSwitch<StringRef>(type)
      .Case("f64", "jnp.float64")
      .Cases({"f32", "tf32"}, "jnp.float32")
      .Case("f16", "jnp.float16")
      .Case("bf16", "jnp.bfloat16")
      .Case("f8e4m3", "jnp.float8_e4m3fn")
      .Case("f8e5m2", "jnp.float8_e5m2")
      .Case("f4e2m1", "jnp.float4_e2m1fn")
      .Case("int32", "jnp.int32")
      .Case("int16", "jnp.int16")
      .Case("int8", "jnp.int8")
      .Case("int4", "jnp.int4")
      .Case("uint8", "jnp.uint8");
}

/// The dimensions of a tensor that are dealt, with their orders.
std::string Exporter::orderOf(Operation *op, ArrayRef<StringRef> indices,
                              ArrayRef<int64_t> extents,
                              ArrayRef<int64_t> smallExtents) {
  std::string text;
  for (auto [dim, index] : llvm::enumerate(indices)) {
    std::string order =
        zigzag(file, op, index,
               file.sizes.key(index, extents[dim], smallExtents[dim]));
    if (!order.empty())
      text += cat(text.empty() ? "" : ", ", dim, ": lambda: ", order);
  }
  return text;
}

/// Tables of what is stored in zigzag order, and functions that deal it;
/// nothing if nothing is.
std::string Exporter::orders() {
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
  if (tensors.empty() && outputs.empty())
    return "";
  return cat("# Dimensions that are stored in zigzag order.\nORDERS = {\n",
             tensors, "}\nOUTPUT_ORDERS = {\n", outputs, "}\n", kDealing);
}

std::string Exporter::types() const {
  std::string text;
  SmallVector<std::string> floats;
  for (StringRef type : file.types) {
    bool isFloat = dtypeOf(type).contains("float");
    if (isFloat)
      floats.push_back(type.str());
    text += cat(type, " = ",
                isFloat ? cat("jnp.float64 if EXACT else ", dtypeOf(type))
                        : dtypeOf(type).str(),
                "\n");
  }
  return cat(text, "FLOATS = ", pythonTuple(floats), "\n");
}

std::string Exporter::tensors() {
  std::string text =
      "# Inputs, weights and states: element type, indices, and for integers "
      "that\n"
      "# are positions, of what. Those of a repeat have its index in front.\n"
      "TENSORS = {\n";
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

std::string Exporter::specs() {
  std::string text = "# How the plan stores them: jax.device_put(Win, "
                     "NamedSharding(mesh, SPECS[\"Win\"])).\nSPECS = {\n";
  for (const Parameter &parameter :
       parametersOf(file, device.full.getBody().front()))
    text += cat("    ", quoted(parameter.name), ": ",
                file.partitionSpec(parameter.global), ",  # ",
                shd::stringifyTensorKind(parameter.kind), " [",
                llvm::join(parameter.indices, ", "), "]\n");
  text += "}\nOUTPUTS = {\n";
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
  text += cat("}\nPARTIAL = [", partial, "]\n");
  SmallVector<std::string> states;
  device.full->walk([&](spmd::UpdateOp update) {
    if (shd::isBuffer(update.getParameter().getKind()))
      return;
    states.push_back(quoted(file.parameters.lookup(update.getSym())));
  });
  text += cat("STATES = [", commas(states), "]\n");
  text += "# The layouts of the values of `reference` that the program names.\n"
          "LAYOUTS = {\n";
  for (const auto &[name, spec] : layouts)
    text += cat("    ", quoted(name), ": ", spec, ",\n");
  return cat(text, "}\n");
}

static constexpr StringLiteral kOptions = R"(import math
import os
import sys

EXACT, FULL = "--exact" in sys.argv, "--full" in sys.argv
)";

static constexpr StringLiteral kStart = R"(
if not FULL:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("XLA_FLAGS", f"--xla_force_host_platform_device_count={math.prod(MESH.values())}")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

)";

static constexpr StringLiteral kFooter = R"(def arguments(seed=0):
    """Random inputs, weights and states, in the order of TENSORS."""
    random = np.random.default_rng(seed)
    values = []
    for dtype, indices, bound in TENSORS.values():
        shape = [size[index] for index in indices]
        if dtype == bool:
            value = random.integers(0, 2, shape)
        elif jnp.issubdtype(dtype, jnp.integer):
            low = 0 if bound or dtype == jnp.uint8 else -4
            value = random.integers(low, size[bound] if bound else 5, shape)
        else:
            value = random.standard_normal(shape) / 2
        values.append(jnp.asarray(value).astype(dtype))
    return values


def on_mesh(mesh):
    """The program of all devices, and the shardings of its arguments."""
    specs = tuple(SPECS[name] for name in TENSORS)
    results = (OUTPUTS, {name: SPECS[name] for name in STATES})
    run = jax.shard_map(device_program, mesh=mesh, in_specs=specs, out_specs=results, check_vma=False)
    return jax.jit(run), tuple(NamedSharding(mesh, spec) for spec in specs)


def difference(found, expected):
    """The largest difference, over the largest magnitude if that is above 1."""
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    equal = (found == expected) | (np.isnan(found) & np.isnan(expected))
    with np.errstate(invalid="ignore"):
        distance = np.where(equal, 0, np.abs(found - expected))
    largest = np.max(np.abs(expected), initial=1, where=np.isfinite(expected))
    return float(np.max(np.nan_to_num(distance, nan=np.inf), initial=0) / largest)


def main():
    devices = math.prod(MESH.values())
    if jax.device_count() < devices:
        sys.exit(f"error: expected {devices} devices, found {jax.device_count()}; XLA_FLAGS is set")
    mesh = Mesh(np.array(jax.devices()[:devices]).reshape(tuple(MESH.values())), tuple(MESH))
    values = arguments()
    run, shardings = on_mesh(mesh)
    outputs, states = run(*jax.device_put(values, list(shardings)))
    outputs = {name: value.sum(0) if name in PARTIAL else value for name, value in outputs.items()}
    expected_outputs, expected_states = jax.jit(reference)(*values)
    tolerance = 1e-9 if EXACT else max(1e-3, *(16 * float(jnp.finfo(dtype).eps) for dtype in FLOATS), 0)
    worst = 0
    for results, expected in ((outputs, expected_outputs), (states, expected_states)):
        for name, value in results.items():
            found = difference(value, expected[name])
            worst = max(worst, found)
            print(f"{name}: largest difference {found:.3g}")
    if not worst <= tolerance:
        sys.exit(f"error: expected differences of at most {tolerance:.3g}")
    print(f"ok: {devices} devices")


if __name__ == "__main__":
    main()
)";

/// With `deals`, arguments are dealt, and results put in order.
static std::string footer(bool deals) {
  std::string text = kFooter.str();
  if (!deals)
    return text;
  auto replace = [&](StringRef from, StringRef to) {
    size_t at = text.find(from.str());
    assert(at != std::string::npos && "the footer has another text");
    text.replace(at, from.size(), to.str());
  };
  replace("jax.device_put(values,", "jax.device_put(stored(values),");
  replace("    expected_outputs,",
          "    outputs, states = in_order(outputs, OUTPUT_ORDERS), "
          "in_order(states, ORDERS)\n    expected_outputs,");
  return text;
}

LogicalResult Exporter::run(raw_ostream &os) {
  if (failed(prepare()))
    return failure();
  nameParameters();
  findBounds();
  // Names of indices first stand for the extents of what is declared.
  std::string declared = tensors();
  std::string functions;
  llvm::raw_string_ostream functionsOs(functions);
  FunctionPrinter devicePrinter(file, functionsOs);
  if (failed(devicePrinter.print("device_program", "What every device runs.",
                                 device.full.getBody().front())))
    return failure();
  FunctionPrinter referencePrinter(file, functionsOs);
  if (failed(referencePrinter.print("reference",
                                    "The program without shardings.",
                                    global.full.getBody().front())))
    return failure();
  findLayouts(referencePrinter);
  // Types that every file mentions.
  file.types.insert({"f32", "int32"});
  std::string tables = cat(declared, specs());
  std::string exact = "jax.config.update(\"jax_enable_x64\", EXACT)\n";
  if (file.types.count("f64"))
    exact = "jax.config.update(\"jax_enable_x64\", True)\n";
  std::string dealing = orders();
  std::string definitions = helperDefinitions(file.helpers);
  os << heading();
  for (StringRef module : {"functools", "itertools"})
    if (StringRef(definitions).contains(cat(module, ".")))
      os << "import " << module << "\n";
  os << kOptions << "\n"
     << sizes() << kStart << exact << types() << "\n"
     << tables << "\n"
     << definitions << "\n"
     << functions << dealing << footer(!dealing.empty());
  return success();
}

LogicalResult shardc::exportJax(raw_ostream &os, shd::ProgramOp unplanned,
                                shd::ProgramOp planned) {
  return Exporter(unplanned, planned).run(os);
}
