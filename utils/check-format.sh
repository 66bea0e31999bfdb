#!/usr/bin/env bash
# Fails if a C++ file of the repository is not as clang-format would have it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cpp' |
  xargs -0 --no-run-if-empty clang-format-22 --dry-run --Werror
