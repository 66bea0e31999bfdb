//===- FileText.cpp - Text that all exported files have -------------------===//

#include "FileText.h"
#include "llvm/ADT/StringSwitch.h"

using namespace shardc;
using namespace shardc::jax;
using llvm::SmallVector;
using llvm::StringLiteral;
using llvm::StringRef;

void jax::reserveModuleNames(PythonNames &names) {
  for (StringRef name : {"argparse",
                         "functools",
                         "itertools",
                         "math",
                         "os",
                         "sys",
                         "jax",
                         "jnp",
                         "lax",
                         "np",
                         "Mesh",
                         "NamedSharding",
                         "P",
                         "EXACT",
                         "FULL",
                         "MESH",
                         "size",
                         "TENSORS",
                         "SPECS",
                         "OUTPUTS",
                         "PARTIAL",
                         "STATES",
                         "HOST",
                         "LAYOUTS",
                         "FLOATS",
                         "device_program",
                         "reference",
                         "forward_program",
                         "TRAINED",
                         "arguments",
                         "on_mesh",
                         "HELD",
                         "ORDERS",
                         "OUTPUT_ORDERS",
                         "stored",
                         "in_order",
                         "difference",
                         "main",
                         "carried",
                         "step",
                         "f64",
                         "f32",
                         "tf32",
                         "f16",
                         "bf16",
                         "f8e4m3",
                         "f8e5m2",
                         "f8e8m0",
                         "f4e2m1",
                         "int32",
                         "int16",
                         "int8",
                         "int4",
                         "uint8",
                         "random_array",
                         "PREFILL",
                         "DECODE",
                         "PREFILL_TENSORS",
                         "PREFILL_SPECS",
                         "PREFILL_OUTPUTS",
                         "PREFILL_PARTIAL",
                         "PREFILL_STATES",
                         "PREFILL_LAYOUTS",
                         "PREFILL_ORDERS",
                         "PREFILL_OUTPUT_ORDERS",
                         "DECODE_TENSORS",
                         "DECODE_SPECS",
                         "DECODE_OUTPUTS",
                         "DECODE_PARTIAL",
                         "DECODE_STATES",
                         "DECODE_LAYOUTS",
                         "DECODE_ORDERS",
                         "DECODE_OUTPUT_ORDERS",
                         "PREFILL_MESH",
                         "DECODE_MESH",
                         "INPUTS",
                         "BATCH",
                         "SEQUENCE",
                         "OUTPUT_BATCH",
                         "OUTPUT_SEQUENCE",
                         "POSITION",
                         "SEQUENCES",
                         "PROMPT",
                         "LAST",
                         "STEPS",
                         "Phase",
                         "prefill_program",
                         "decode_program",
                         "prefill_reference",
                         "requests",
                         "share",
                         "rows",
                         "insert",
                         "token_by_token",
                         "after_prompts",
                         "PROMPT_BATCH",
                         "DECODE_BEGIN",
                         "DEVICES"})
    names.reserve(name);
  reserveHelperNames(names);
}

StringRef jax::usage() {
  return R"(    python3 FILE              runs a small form of the plan on host devices, and
                              compares it with the unsharded program
    python3 FILE --exact      the same with every float type as float64
    python3 FILE --full       the plan as it is, on the devices that there are
)";
}

static constexpr StringLiteral kOptions = R"(import math
import os
import sys

EXACT, FULL = "--exact" in sys.argv, "--full" in sys.argv
)";

std::string jax::optionsText(StringRef definitions) {
  std::string text;
  for (StringRef module : {"functools", "itertools"})
    if (definitions.contains(cat(module, ".")))
      text += cat("import ", module, "\n");
  return cat(text, kOptions, "\n");
}

std::string jax::sizeTable(const PythonFile &file) {
  std::string text =
      "# Every index: its extent in the program, and in a form of "
      "it that runs anywhere.\nsize = {\n";
  for (const SizeTable::Entry &entry : file.sizes.entries())
    text += cat("    ", quoted(entry.name), ": ",
                entry.full == entry.small
                    ? std::to_string(entry.full)
                    : cat(entry.full, " if FULL else ", entry.small),
                ",\n");
  return cat(text, "}\n");
}

static constexpr StringLiteral kStart = R"(
if not FULL:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("XLA_FLAGS", f"--xla_force_host_platform_device_count={)";

static constexpr StringLiteral kImports = R"(}")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

)";

std::string jax::startText(StringRef devices) {
  return cat(kStart, devices, kImports);
}

/// The dtype of an element type in JAX, which has no tf32.
static StringRef dtypeOf(StringRef type) {
  return llvm::StringSwitch<StringRef>(type)
      .Case("f64", "jnp.float64")
      .Cases({"f32", "tf32"}, "jnp.float32")
      .Case("f16", "jnp.float16")
      .Case("bf16", "jnp.bfloat16")
      .Case("f8e4m3", "jnp.float8_e4m3fn")
      .Case("f8e5m2", "jnp.float8_e5m2")
      .Case("f8e8m0", "jnp.float8_e8m0fnu")
      .Case("f4e2m1", "jnp.float4_e2m1fn")
      .Case("int32", "jnp.int32")
      .Case("int16", "jnp.int16")
      .Case("int8", "jnp.int8")
      .Case("int4", "jnp.int4")
      .Case("uint8", "jnp.uint8");
}

std::string jax::typeTable(PythonFile &file) {
  // Types that every file mentions.
  file.types.insert({"f32", "int32"});
  std::string text = "jax.config.update(\"jax_enable_x64\", ";
  text += file.types.count("f64") ? "True)\n" : "EXACT)\n";
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

StringRef jax::comparisonText() {
  return R"(def random_array(random, dtype, shape, bound):
    """A random argument; integers with a bound are positions below it."""
    if dtype == bool:
        value = random.integers(0, 2, shape)
    elif jnp.issubdtype(dtype, jnp.integer):
        low = 0 if bound or dtype == jnp.uint8 else -4
        value = random.integers(low, size[bound] if bound else 5, shape)
    elif dtype == jnp.float8_e8m0fnu:
        value = 2.0 ** random.integers(-2, 3, shape)
    else:
        value = random.standard_normal(shape) / 2
    return jnp.asarray(value).astype(dtype)


def difference(found, expected):
    """The largest difference, over the largest magnitude if that is above 1."""
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    equal = (found == expected) | (np.isnan(found) & np.isnan(expected))
    with np.errstate(invalid="ignore"):
        distance = np.where(equal, 0, np.abs(found - expected))
    largest = np.max(np.abs(expected), initial=1, where=np.isfinite(expected))
    return float(np.max(np.nan_to_num(distance, nan=np.inf), initial=0) / largest)


)";
}

StringRef jax::toleranceText() {
  return "    tolerance = 1e-9 if EXACT else max(1e-3, *(16 * "
         "float(jnp.finfo(dtype).eps) for dtype in FLOATS), 0)\n";
}
