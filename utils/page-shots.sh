#!/usr/bin/env bash
# Makes the pictures of docs/Pictures.md: pages of --emit-html in a browser.
# Needs Debian's chromium-headless-shell (or chromium), and a build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

browser=$(command -v chromium-headless-shell || command -v chromium) || {
  echo "error: neither chromium-headless-shell nor chromium is installed" >&2
  exit 1
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p docs/images

# shot NAME HEIGHT SCHEME ARGUMENTS...: the page of one command; SCHEME is 1 for
# light, 0 for dark.
shot() {
  local name=$1 height=$2 scheme=$3
  shift 3
  build/bin/shardc "$@" --emit-html -o "$folder/page.html"
  "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars \
    --user-data-dir="$folder/profile" --window-size="1200,$height" \
    --blink-settings="preferredColorScheme=$scheme" \
    --screenshot="$PWD/docs/images/$name.png" "file://$folder/page.html" 2>"$folder/log" ||
    { cat "$folder/log" >&2; exit 1; }
}

shot page 2200 1 models/llama3-8b-train.shd
