#!/usr/bin/env bash
# Brings up to date what is generated in the documentation, or, with --check,
# fails and shows the difference if it is not: docs/Dialects from the .td files,
# the report in README.md, and docs/Book.md from test/Book.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ninja -C build --quiet shardc shardc-doc >build/doc.log
status=0
for page in build/docs/Dialects/*.md; do
  committed=docs/Dialects/$(basename "$page")
  if [ "${1:-}" = --check ]; then
    diff -u "$committed" "$page" || status=1
  else
    cp "$page" "$committed"
  fi
done
utils/readme-report.py "$@" || status=1
utils/book.py "${1:---write}" || status=1
if [ "$status" -ne 0 ]; then
  echo "error: generated documentation is not current; run utils/reference-pages.sh" >&2
fi
exit "$status"
