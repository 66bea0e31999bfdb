#!/usr/bin/env python3
"""Runs files of shardc --emit-jax one after the other in one process.

    build/jax-env/bin/python utils/jax_run.py [--exact] [--full] FILE.py...

The options are those of the files. Ends with status 1 if a file's results
differ.
"""

import os
import sys
import traceback

import jax_files


def main():
    options = [word for word in sys.argv[1:] if word.startswith("--")]
    files = [word for word in sys.argv[1:] if not word.startswith("--")]
    # Compiling takes most of the time.
    os.environ["XLA_FLAGS"] = (
        "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    )
    jax_files.start(devices=16)
    failures = 0
    for path in files:
        print(f"== {path}")
        try:
            jax_files.load(path, *options).main()
        except SystemExit as end:
            print(end)
            failures += 1
        except Exception:
            traceback.print_exc(file=sys.stdout)
            failures += 1
    if failures:
        sys.exit(f"error: {failures} of {len(files)} files failed")


if __name__ == "__main__":
    main()
