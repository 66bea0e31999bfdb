#!/usr/bin/env bash
# Installs what shardc needs on Debian 12, builds it into build/, and shows the
# cost of LLaMA-3 70B. May be run again at any time. Optional, for the tests of
# --emit-html in a browser: apt-get install nodejs chromium-headless-shell.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. utils/common.sh

mapfile -t missing < <(missing_packages)
if [ "${#missing[@]}" -gt 0 ]; then
  if ! is_debian_12; then
    echo "error: this script installs packages on Debian 12 only; missing here: ${missing[*]}" >&2
    exit 1
  fi
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "error: neither root nor sudo to install: ${missing[*]}" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  mkdir -p build
  quietly build/apt.log "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update
  quietly build/apt.log "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${missing[@]}"
fi

configure_and_build release build
build/bin/shardc models/llama3-70b.shd --emit-cost
