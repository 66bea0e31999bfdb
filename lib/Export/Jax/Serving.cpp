//===- Serving.cpp - --emit-jax of a program that serves ------------------===//
//
// Both phases in one file: the devices prefill prompts, the caches go into
// decode's layout, and the devices decode. The unsharded decode program takes
// the tokens one by one.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shd/IR/Serving.h"
#include "ExportedProgram.h"
#include "FileText.h"
#include "shardc/Dialect/Shd/IR/Experts.h"
#include "shardc/Export/Jax.h"
#include "shardc/Shrink/Shrink.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::jax;

namespace {

/// Tensors by name with the number of a dimension.
using DimTable = std::vector<std::pair<std::string, unsigned>>;

class ServingExporter {
public:
  explicit ServingExporter(const ServedPrograms &programs)
      : prefill(file, "PREFILL_", programs.prefillWhole, programs.prefillPlan),
        decode(file, "DECODE_", programs.decodeWhole, programs.decodePlan),
        whole(programs.decodeWhole),
        serving(*shd::Serving::of(programs.decodeWhole)) {}

  LogicalResult run(raw_ostream &os);

private:
  LogicalResult prepare();
  std::string heading();
  std::string dimensions();
  std::string numbers();

  PythonFile file;
  ExportedProgram prefill, decode;
  shd::ProgramOp whole;
  shd::Serving serving;
  ServedExtents small;
};

} // namespace

LogicalResult ServingExporter::prepare() {
  if (shd::dropsPicks(whole))
    return whole.emitError(
        "--emit-jax of prefill and decode together expects experts with "
        "`dropless`: others may drop other picks of a prompt than of its "
        "tokens one by one; --phase=prefill or --phase=decode exports one");
  if (failed(prefill.check()) || failed(decode.check()))
    return failure();
  FailureOr<ServedExtents> extents =
      shrinkServed({prefill.smallWhole(), prefill.smallPlan(),
                    decode.smallWhole(), decode.smallPlan()});
  if (failed(extents) || failed(prefill.convert()) || failed(decode.convert()))
    return failure();
  small = *extents;
  reserveModuleNames(file.names);
  decode.nameParameters();
  prefill.nameParameters();
  return success();
}

std::string ServingExporter::heading() {
  return cat("\"\"\"", whole.getSym(), ", prefill on a mesh of ",
             prefill.meshWords(), ", decode on one of ", decode.meshWords(),
             ". Written by\nshardc --emit-jax.\n\n", usage(), R"(
It prefills the prompts, inserts their caches into those of decode, and decodes
a few tokens. PREFILL_SPECS, DECODE_SPECS and the tables beside them are the
plans' layouts, prefill_program and decode_program are what every device runs,
reference is decode without shardings: it takes the tokens one by one.
"""
)");
}

static std::string dimTable(StringRef name, const DimTable &entries) {
  SmallVector<std::string> items;
  for (const auto &[tensor, dim] : entries)
    items.push_back(cat(quoted(tensor), ": ", dim));
  return cat(name, " = {", commas(items), "}\n");
}

/// Where tensors have the index of the sequences and that of their tokens.
std::string ServingExporter::dimensions() {
  DimTable batch, sequence, outputBatch, outputSequence;
  auto add = [](DimTable &table, const std::string &name,
                ArrayRef<StringRef> indices, StringRef index) {
    const auto *at = llvm::find(indices, index);
    if (at != indices.end())
      table.push_back({name, unsigned(at - indices.begin())});
  };
  for (const Parameter &parameter : decode.parameters()) {
    if (parameter.kind == shd::TensorKind::Weight)
      continue;
    add(batch, parameter.name, parameter.indices, serving.batch);
    if (parameter.kind == shd::TensorKind::Input)
      add(sequence, parameter.name, parameter.indices, serving.sequence);
  }
  for (spmd::OutputOp output : decode.outputs()) {
    SmallVector<StringRef> indices(
        output.getIndices().getAsValueRange<StringAttr>());
    add(outputBatch, output.getSym().str(), indices, serving.batch);
    add(outputSequence, output.getSym().str(), indices, serving.sequence);
  }
  return cat("# The dimensions of the sequences that decode together, and of "
             "their tokens.\n",
             dimTable("BATCH", batch), dimTable("SEQUENCE", sequence),
             dimTable("OUTPUT_BATCH", outputBatch),
             dimTable("OUTPUT_SEQUENCE", outputSequence));
}

std::string ServingExporter::numbers() {
  auto number = [&](StringRef name, int64_t full, int64_t smallNumber) {
    return file.sizes.number(name, full, smallNumber);
  };
  // The last position is a number of the program, which wraps in a small one.
  int64_t last = serving.prompt - 1;
  return cat(
      "POSITION = ", quoted(file.parameters.lookup(serving.position)),
      "\nSEQUENCES = ", number("sequences", serving.sequences, small.sequences),
      "\nPROMPT_BATCH = ",
      number("prompt_batch", serving.promptBatch, small.promptBatch),
      "\nPROMPT = ", number("prompt", serving.prompt, small.prompt),
      "\nLAST = ", number("last", last, last % small.prompt),
      "\nSTEPS = ", small.steps, "\n");
}

static constexpr StringLiteral kRequests = R"(def requests(seed=0):
    """Inputs of all requests at all positions, weights, and caches before anything is written."""
    random = np.random.default_rng(seed)
    values = {}
    for name, (dtype, indices, bound) in DECODE_TENSORS.items():
        shape = [size[index] for index in indices]
        if name in SEQUENCE:
            shape[SEQUENCE[name]] = PROMPT + STEPS
        values[name] = random_array(random, dtype, shape, bound)
        if name == POSITION:
            places = jnp.arange(PROMPT + STEPS, dtype=dtype)
            values[name] = jnp.broadcast_to(places if SEQUENCE[name] else places[:, None], shape)
    return values


def rows(first, count):
    """Sequences from `first` on; after the last one the first ones again."""
    return (first + jnp.arange(count)) % SEQUENCES


def share(name, value, tensors, first, position):
    """The part of a tensor that a program takes: sequences from `first` on, at positions from `position` on."""
    shape = [size[index] for index in tensors[name][1]]
    if name in SEQUENCE:
        value = lax.dynamic_slice_in_dim(value, position, shape[SEQUENCE[name]], SEQUENCE[name])
    if name in BATCH and shape[BATCH[name]] != SEQUENCES:
        value = jnp.take(value, rows(first, shape[BATCH[name]]), BATCH[name])
    return value[tuple(slice(extent) for extent in shape)]


def insert(caches, made, first):
    """The caches of a prefill become the first positions of those of decode."""
    result = dict(caches)
    for name, part in made.items():
        at = [slice(extent) for extent in part.shape]
        if name in BATCH:
            at[BATCH[name]] = rows(first, part.shape[BATCH[name]])
        result[name] = caches[name].at[tuple(at)].set(part)
    return result


class Phase:
    """A plan on its devices."""

    def __init__(self, program, axes, devices, tables):
        self.tensors, self.specs, outputs, self.partial, states, self.orders, self.output_orders = tables
        self.mesh = Mesh(np.array(devices[: math.prod(axes.values())]).reshape(tuple(axes.values())), tuple(axes))
        specs = tuple(self.specs[name] for name in self.tensors)
        results = (outputs, {name: self.specs[name] for name in states})
        self.program = jax.jit(
            jax.shard_map(program, mesh=self.mesh, in_specs=specs, out_specs=results, check_vma=False)
        )

    def sharding(self, name):
        return NamedSharding(self.mesh, self.specs[name])

    def run(self, values, first, position):
        """Outputs and states, for sequences from `first` on at positions from `position` on."""
        arguments = []
        for name in self.tensors:
            value = share(name, values[name], self.tensors, first, position)
            for dim, order in self.orders.get(name, {}).items():
                value = jnp.take(value, order(), dim)
            arguments.append(jax.device_put(value, self.sharding(name)))
        outputs, states = self.program(*arguments)
        for results, orders in ((outputs, self.output_orders), (states, self.orders)):
            for name in results:
                for dim, order in orders.get(name, {}).items():
                    results[name] = jnp.take(results[name], jnp.argsort(order()), dim)
        return {name: value.sum(0) if name in self.partial else value for name, value in outputs.items()}, states

    def put(self, name, value):
        """A cache of prefill in decode's layout; dimensions that its axes do not divide are whole."""
        axes = [
            axes if axes and extent % math.prod(self.mesh.shape[axis] for axis in np.atleast_1d(axes)) == 0 else None
            for axes, extent in zip(self.specs[name], value.shape)
        ]
        return jax.device_put(value, NamedSharding(self.mesh, P(*axes)))


def token_by_token(values):
    """Outputs and states of the program without shardings, at one position after the other."""
    program, known, results = jax.jit(reference), dict(values), []
    for position in range(PROMPT + STEPS):
        outputs, states = program(
            *(share(name, known[name], DECODE_TENSORS, 0, position) for name in DECODE_TENSORS)
        )
        known.update(states)
        results.append((outputs, states))
    return results


def after_prompts(expected, found, first):
    """The results that a prefill of the sequences from `first` on should have."""
    outputs, states = {}, {}
    for name in found[0]:
        made = [each[name] for each, _ in expected[:PROMPT]]
        value = jnp.concatenate(made, OUTPUT_SEQUENCE[name]) if name in OUTPUT_SEQUENCE else made[LAST]
        at = OUTPUT_BATCH.get(name)
        outputs[name] = value if at is None else jnp.take(value, rows(first, PROMPT_BATCH), at)
    for name in found[1]:
        states[name] = share(name, expected[PROMPT - 1][1][name], PREFILL_TENSORS, first, 0)
    return outputs, states


def main():
    if jax.device_count() < DEVICES:
        sys.exit(f"error: expected {DEVICES} devices, found {jax.device_count()}; XLA_FLAGS is set")
    prefill = Phase(prefill_program, PREFILL_MESH, jax.devices(), PREFILL)
    decode = Phase(decode_program, DECODE_MESH, jax.devices()[DECODE_BEGIN:], DECODE)
    values = requests()
    expected = token_by_token(values)
    worst = {}

    def check(phase, found, wanted):
        for results, right in zip(found, wanted):
            for name, value in results.items():
                key = f"{phase} {name}"
                worst[key] = max(worst.get(key, 0), difference(value, right[name]))

    shardings = {name: decode.sharding(name) for name in DECODE_STATES}
    caches = {name: jax.device_put(values[name], shardings[name]) for name in DECODE_STATES}
    place = jax.jit(insert, out_shardings=shardings)
    for first in range(0, SEQUENCES, PROMPT_BATCH):
        found = prefill.run(values, first, 0)
        check("prefill", found, after_prompts(expected, found, first))
        made = {name: decode.put(name, value) for name, value in found[1].items()}
        caches = place(caches, made, first)
    for position in range(PROMPT, PROMPT + STEPS):
        found = decode.run(values | caches, 0, position)
        check("decode", found, expected[position])
        caches = found[1]
)";

static constexpr StringLiteral kReport =
    R"(    for name, found in worst.items():
        print(f"{name}: largest difference {found:.3g}")
    if not max(worst.values()) <= tolerance:
        sys.exit(f"error: expected differences of at most {tolerance:.3g}")
    print(f"ok: {DEVICES} devices, {SEQUENCES} prompts of {PROMPT} tokens, {STEPS} decode steps")


if __name__ == "__main__":
    main()
)";

/// The tables of a phase, as `Phase` takes them apart.
static std::string tablesOf(StringRef phase) {
  SmallVector<std::string> names;
  for (StringRef name : {"TENSORS", "SPECS", "OUTPUTS", "PARTIAL", "STATES",
                         "ORDERS", "OUTPUT_ORDERS"})
    names.push_back(cat(phase, "_", name));
  return cat(phase, " = ", pythonTuple(names), "\n");
}

LogicalResult ServingExporter::run(raw_ostream &os) {
  if (failed(prepare()))
    return failure();
  // Names of indices first stand for the extents of what decode declares.
  std::string tables = decode.tensors();
  tables += prefill.tensors();
  std::string functions;
  llvm::raw_string_ostream functionsOs(functions);
  if (failed(prefill.printFunctions(functionsOs, "prefill_program",
                                    "prefill_reference")) ||
      failed(decode.printFunctions(functionsOs, "decode_program", "reference")))
    return failure();
  tables += prefill.specs("prefill_reference");
  tables += decode.specs("reference");
  tables += prefill.orders();
  tables += decode.orders();
  tables += tablesOf("PREFILL") + tablesOf("DECODE");
  tables += dimensions();
  tables += numbers();
  std::string definitions = helperDefinitions(file.helpers);
  os << heading() << optionsText(definitions) << sizeTable(file)
     << "PREFILL_MESH = " << prefill.mesh()
     << "\nDECODE_MESH = " << decode.mesh() << "\n"
     << "# The first device of decode, and how many there are.\n"
     << "DECODE_BEGIN = "
     << (serving.separate ? "math.prod(PREFILL_MESH.values())" : "0")
     << "\nDEVICES = max(math.prod(PREFILL_MESH.values()), DECODE_BEGIN + "
        "math.prod(DECODE_MESH.values()))\n"
     << startText("DEVICES") << typeTable(file) << "\n"
     << tables << "\n"
     << definitions << "\n"
     << functions << comparisonText() << kRequests << toleranceText()
     << kReport;
  return success();
}

LogicalResult shardc::exportJaxServing(raw_ostream &os,
                                       const ServedPrograms &programs) {
  return ServingExporter(programs).run(os);
}
