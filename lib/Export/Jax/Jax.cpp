//===- Jax.cpp - --emit-jax: the parts of the file ------------------------===//
//
// Tables of sizes, types and layouts, the helper functions that are called, the
// program of a device, the unsharded program, and a main that compares them. A
// training step is compared with what JAX makes of the program that is trained.
// Functions are printed first: tables and helpers are what they need.
//
//===----------------------------------------------------------------------===//

#include "shardc/Export/Jax.h"
#include "ExportedProgram.h"
#include "FileText.h"
#include "StepReference.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::jax;

static StringRef referenceWords(shd::ProgramOp program, bool isByJax) {
  if (isByJax)
    return "forward_program is the program that is trained, without\n"
           "shardings, and reference its step by jax.value_and_grad.";
  if (program.getTraining())
    return "reference is the step without shardings, as shardc differentiated\n"
           "it: shardc read the text of the step, which has no forward "
           "program.";
  return "reference is the program without shardings.";
}

static std::string heading(shd::ProgramOp plan, const ExportedProgram &program,
                           bool isByJax) {
  return cat("\"\"\"", plan.getSym(), " on a mesh of ", program.meshWords(),
             ". Written by shardc --emit-jax.\n\n", usage(), R"(
SPECS and OUTPUTS are the plan's layouts, device_program is what every device
runs, )",
             referenceWords(plan, isByJax), "\n\"\"\"\n");
}

static constexpr StringLiteral kDealing = R"(

def stored(values):
    """Arguments, in the order of TENSORS, as the plan stores them."""
    dealt = []
    for name, value in zip(TENSORS, values):
        for dim, order in ORDERS.get(name, {}).items():
            value = jnp.take(value, order(), dim, mode="clip")
        dealt.append(value)
    return dealt


def in_order(results, orders):
    """Outputs or states in the program's order."""
    for name in results:
        for dim, order in orders.get(name, {}).items():
            at = np.asarray(order())
            results[name] = jnp.take(results[name], np.argsort(at)[np.sum(at < 0) :], dim)
    return results

)";

static constexpr StringLiteral kArguments = R"(def arguments(seed=0):
    """Random inputs, weights and states, in the order of TENSORS."""
    random = np.random.default_rng(seed)
    values = {
        name: random_array(random, dtype, [size[index] for index in indices], bound)
        for name, (dtype, indices, bound) in TENSORS.items()
    }
)";

static constexpr StringLiteral kFooter = R"(def on_mesh(mesh):
    """The program of all devices, and the shardings of its arguments."""
    specs = tuple(SPECS[name] for name in TENSORS)
    results = (OUTPUTS, {name: SPECS[name] for name in STATES})
    run = jax.shard_map(device_program, mesh=mesh, in_specs=specs, out_specs=results, check_vma=False)
    return jax.jit(run), tuple(NamedSharding(mesh, spec) for spec in specs)


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
)";

static constexpr StringLiteral kReport = R"(    worst = 0
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

/// Results are in the memory of the host as soon as XLA makes them.
static constexpr StringLiteral kPlaced =
    R"(    kinds = {name: "pinned_host" if name in HOST and has_host() else None for name in TENSORS}
    shardings = {
        name: NamedSharding(mesh, SPECS[name], memory_kind=kind) for name, kind in kinds.items()
    }
    placed = (
        {name: NamedSharding(mesh, spec) for name, spec in OUTPUTS.items()},
        {name: shardings[name] for name in STATES},
    )
    return jax.jit(run, out_shardings=placed), tuple(shardings.values())
)";

/// With `deals`, arguments are dealt, and results put in order; with
/// `offloads`, the host has some of both.
static std::string footer(bool deals, bool offloads) {
  std::string text = cat(kFooter, toleranceText(), kReport);
  auto replace = [&](StringRef from, StringRef to) {
    size_t at = text.find(from.str());
    assert(at != std::string::npos && "the footer has another text");
    text.replace(at, from.size(), to.str());
  };
  if (offloads)
    replace(
        "    return jax.jit(run), tuple(NamedSharding(mesh, spec) for spec in "
        "specs)\n",
        kPlaced);
  if (!deals)
    return text;
  replace("jax.device_put(values,", "jax.device_put(stored(values),");
  replace("    expected_outputs,",
          "    outputs, states = in_order(outputs, OUTPUT_ORDERS), "
          "in_order(states, ORDERS)\n    expected_outputs,");
  return text;
}

/// Random arguments; the optimizer is in a `state` that it can be in.
static std::string argumentsText(StringRef state) {
  return cat(kArguments, state, "    return list(values.values())\n\n\n");
}

LogicalResult shardc::exportJax(raw_ostream &os, shd::ProgramOp unplanned,
                                shd::ProgramOp planned, shd::ProgramOp forward,
                                const StagePlan *stages) {
  PythonFile file;
  if (!unplanned.getTraining())
    forward = {};
  ExportedProgram program(file, "", unplanned, planned, forward, stages);
  if (failed(program.check()) || failed(program.shrink()))
    return failure();
  if (failed(program.convert()))
    return failure();
  reserveModuleNames(file.names);
  program.nameParameters();
  // Names of indices first stand for the extents of what is declared.
  std::string declared = program.tensors();
  std::string functions;
  llvm::raw_string_ostream functionsOs(functions);
  StringRef whole = forward ? "forward_program" : "reference";
  if (failed(program.printFunctions(functionsOs, "device_program", whole)))
    return failure();
  std::string tables = cat(declared, program.specs(whole)), state;
  if (unplanned.getTraining()) {
    StepReference reference(file, program.whole());
    tables += reference.table();
    state = reference.possibleState();
    if (forward)
      functions += reference.function();
  }
  std::string dealing =
      program.hasOrders() ? cat(program.orders(), kDealing) : "";
  std::string definitions = helperDefinitions(file.helpers);
  os << heading(planned, program, bool(forward)) << optionsText(definitions)
     << sizeTable(file) << "MESH = " << program.mesh() << "\n"
     << program.layersTable() << startText("math.prod(MESH.values())")
     << typeTable(file) << "\n"
     << tables << "\n"
     << definitions << "\n"
     << functions << dealing << argumentsText(state) << comparisonText()
     << footer(!dealing.empty(), !program.onHost().empty());
  return success();
}
