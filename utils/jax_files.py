"""What the scripts that read files of shardc --emit-jax share: loading them.

Several files run in one process, which starts JAX once, with as many host
devices as any of them needs.
"""

import importlib.util
import os
import sys


def start(devices):
    """Before the first file is loaded: JAX on the CPU with `devices` devices."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = (
        os.environ.get("XLA_FLAGS", "")
        + f" --xla_force_host_platform_device_count={devices}"
    )


def load(path, *options):
    """The file as a module that was started with `options`."""
    arguments, sys.argv = sys.argv, [path, *options]
    try:
        spec = importlib.util.spec_from_file_location("exported", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.argv = arguments
