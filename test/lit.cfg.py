# -*- Python -*-
import os
import shutil
import subprocess
import sys

import lit.formats
from lit.llvm import llvm_config

config.name = "SHARDC"
config.test_format = lit.formats.ShTest()
config.suffixes = [".mlir", ".shd", ".test"]
config.excludes = ["Inputs", "CMakeLists.txt", "lit.cfg.py", "lit.site.cfg.py"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.shardc_obj_root, "test")

llvm_config.with_system_environment(["HOME", "TMP", "TEMP"])
llvm_config.use_default_substitutions()
config.substitutions.append(
    ("%models", os.path.join(config.shardc_src_root, "models"))
)
config.substitutions.append(("%utils", os.path.join(config.shardc_src_root, "utils")))
config.substitutions.append(("%python", "'{}'".format(sys.executable)))
# Asks a program of test/Book or test/Training its question, compares the answer.
# Without site packages Python starts in a third of the time.
config.substitutions.append(
    (
        "%book",
        "'{}' -I -S {}/utils/book.py --shardc {}/shardc".format(
            sys.executable, config.shardc_src_root, config.shardc_tools_dir
        ),
    )
)
config.substitutions.append(
    (
        "%random-programs",
        os.path.join(config.test_exec_root, "Random", "random-programs"),
    )
)
# Sanitizers are ten times slower: they do without what runs the same code once
# more, and with fewer random programs in each of the four tests.
config.substitutions.append(("%{full}", "true" if config.sanitizer else ""))
if config.sanitizer:
    config.available_features.add("sanitizer")
config.substitutions.append(("%random-count", "12" if config.sanitizer else "60"))
config.environment["FILECHECK_OPTS"] = "-enable-var-scope --dump-input=fail"

llvm_config.with_environment("PATH", config.llvm_tools_dir, append_path=True)
tool_dirs = [config.shardc_tools_dir, config.llvm_tools_dir]
llvm_config.add_tool_substitutions(
    ["shardc", "shardc-opt", "shardc-solve", "mlir-opt", "split-file"], tool_dirs
)
# shardc-opt with operations that no pass knows.
llvm_config.add_tool_substitutions(
    ["shardc-test-opt"], [os.path.join(config.test_exec_root, "lib")]
)

# Made by utils/jax-env.sh. Whole programs are slow to compile: the sanitizers'
# build folders do without.
jax = os.path.join(config.shardc_obj_root, "jax-env", "bin", "python")
if os.path.exists(jax):
    config.available_features.add("jax")
config.substitutions.append(("%jax-python", jax))
for name, script in [
    ("%jax-run", "jax_run.py"),
    ("%jax-hlo", "jax_hlo.py"),
    ("%jax-memory", "jax_memory.py"),
    ("%jax-time", "jax_time.py"),
    ("%xla-partitioner", "xla-partitioner.py"),
]:
    path = os.path.join(config.shardc_src_root, "utils", script)
    config.substitutions.append((name, "'{}' '{}'".format(jax, path)))

# Runs a program on tensors of files.
config.substitutions.append(
    (
        "%run-program",
        os.path.join(config.test_exec_root, "Run", "run-program"),
    )
)


def has_numpy(python):
    try:
        command = [python, "-c", "import numpy"]
        return subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


# Debian's python3-numpy, which setup.sh installs, or that of jax-env.
for python in [sys.executable, "/usr/bin/python3", jax]:
    if has_numpy(python):
        config.available_features.add("numpy")
        config.substitutions.append(("%numpy-python", "'{}'".format(python)))
        break

config.substitutions.append(
    ("%driver", os.path.join(config.shardc_tools_dir, "shardc"))
)
# Runs the script of the pages of --emit-html.
if shutil.which("node"):
    config.available_features.add("node")
# Opens these pages; Debian's package of either name, optional.
if shutil.which("chromium") or shutil.which("chromium-headless-shell"):
    config.available_features.add("chromium")

# Another solver, to compare with (utils/toulbar2.py).
if shutil.which("toulbar2"):
    config.available_features.add("toulbar2")
