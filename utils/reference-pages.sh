#!/usr/bin/env bash
# Brings the generated pages of docs/Dialects up to date with the .td files, or,
# with --check, fails and shows the difference if they are not.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ninja -C build --quiet shardc-doc
status=0
for page in build/docs/Dialects/*.md; do
  committed=docs/Dialects/$(basename "$page")
  if [ "${1:-}" = --check ]; then
    diff -u "$committed" "$page" || status=1
  else
    cp "$page" "$committed"
  fi
done
if [ "$status" -ne 0 ]; then
  echo "error: docs/Dialects is not current; run utils/reference-pages.sh" >&2
fi
exit "$status"
