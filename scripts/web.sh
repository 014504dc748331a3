#!/usr/bin/env bash
# Builds the page of the monitor anew from monitor/web. With --check it builds beside, and fails where that differs from
# what is committed. Needs Node 20 or newer with npm; the packages come from the lock file.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v npm >/dev/null || { echo "web.sh: npm is not installed; install Node 20 or newer" >&2; exit 2; }
built=monitor/ettwatch_monitor/web/static
into=$PWD/$built
if [[ "${1:-}" == --check ]]; then
  into=$(mktemp -d)
  trap 'rm -rf "$into"' EXIT
elif [[ $# -gt 0 ]]; then
  echo "web.sh: unknown argument $1; write --check or nothing" >&2
  exit 2
fi

types=monitor/web/src/types.ts
made=$(.venv/bin/python scripts/web_types.py)
if [[ "$into" == "$PWD/$built" ]]; then
  printf '%s\n' "$made" >"$types"
elif ! diff -u "$types" <(printf '%s\n' "$made"); then
  echo "web.sh: $types differs from the shapes of the API; run scripts/web.sh" >&2
  exit 1
fi

(cd monitor/web && npm ci --ignore-scripts --no-audit --no-fund --silent && npm run --silent check && npm run --silent build -- "$into")

if [[ "$into" != "$PWD/$built" ]] && ! diff -rq "$built" "$into"; then
  echo "web.sh: what is committed in $built is not what its sources give; run scripts/web.sh" >&2
  exit 1
fi
