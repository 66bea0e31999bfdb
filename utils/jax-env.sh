#!/usr/bin/env bash
# Makes build/jax-env, a Python environment with the JAX that the tests of
# test/Jax run on (CPU only). Optional: without it they are unsupported. Does
# nothing if the environment is there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. utils/common.sh

version=0.10.2
env=build/jax-env
if [ "$("$env/bin/python" -c 'import jax; print(jax.__version__)' 2>/dev/null)" = "$version" ]; then
  exit
fi
mkdir -p build
quietly build/jax-env.log python3 -m venv --clear "$env"
quietly build/jax-env.log "$env/bin/pip" install --disable-pip-version-check "jax==$version"
