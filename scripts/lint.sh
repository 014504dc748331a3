#!/usr/bin/env bash
# Every check of the code, all of them even if one fails; the exit status tells whether all passed.
set -uo pipefail
cd "$(dirname "$0")/.."
BIN=.venv/bin
failed=()

check() {
  local name=$1
  shift
  echo "== $name"
  "$@" || failed+=("$name")
}

check "ruff check" $BIN/ruff check .
check "ruff format" $BIN/ruff format --check .
if [ ! -d .mypy_cache ]; then echo "   (mypy takes a minute or two the first time)"; fi
check "mypy" $BIN/mypy
check "import-linter" $BIN/lint-imports --no-logo
check "JSON Schemas" $BIN/python -m ettwatch_schemas.jsonschema --check
if [ ${#failed[@]} -gt 0 ]; then
  echo "lint: failed: ${failed[*]}" >&2
  exit 1
fi
echo "lint: all passed"
