#!/usr/bin/env bash
# Runs the benchmarks, all or those named; each prints its figures and writes benchmarks/results/NAME.json.
# usage: scripts/bench.sh [NAME...]
set -uo pipefail
cd "$(dirname "$0")/.."
failed=()

if [ $# -eq 0 ]; then
  for file in benchmarks/[a-z]*.py; do set -- "$@" "$(basename "$file" .py)"; done
fi
for name in "$@"; do
  echo "== benchmark $name"
  .venv/bin/python "benchmarks/$name.py" || failed+=("$name")
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "bench: failed: ${failed[*]}" >&2
  exit 1
fi
