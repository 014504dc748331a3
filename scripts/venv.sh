#!/usr/bin/env bash
# Makes .venv and installs sets of packages into it; does nothing where that is done already.
# usage: scripts/venv.sh SET...    SET: cli (commands, embedded ClickHouse) | monitor (page) | trainer (torch) | torchrec | dev (tests, linters)
# PYTHON names the Python to use. A .venv that is broken, was moved, or is of another Python is made anew.
set -euo pipefail
cd "$(dirname "$0")/.."
ROOT=$(pwd -P)
VENV=.venv
LOG=$VENV/install.log

say() { printf '== %s\n' "$*"; }
die() { printf 'error: %s\n' "$1" >&2; shift; if [ $# -gt 0 ]; then printf '       %s\n' "$@" >&2; fi; exit 2; }
version() { "$1" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null; }
new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
  if [ -n "${PYTHON:-}" ]; then
    new_enough "$PYTHON" || die \
      "PYTHON=$PYTHON is not a Python 3.11 or newer (it says: $(version "$PYTHON" || echo nothing))"
    echo "$PYTHON"
    return
  fi
  local name
  for name in python3 python3.13 python3.12 python3.11 python3.14; do
    if new_enough "$name"; then echo "$name"; return; fi
  done
  die "no Python 3.11 or newer was found (python3 is: $(version python3 || echo missing))" \
    "Debian, Ubuntu: apt-get install python3 python3-venv    macOS: brew install python@3.13" \
    "or name one: make PYTHON=/path/to/python3.12 ..."
}

# Prints why .venv cannot be used; nothing if it can.
fault() {
  if [ ! -d $VENV ]; then echo "none is there yet"
  elif ! new_enough $VENV/bin/python || ! $VENV/bin/python -c 'import pip' >/dev/null 2>&1; then echo "it is broken"
  elif ! grep -qF "$ROOT/$VENV" $VENV/bin/activate; then echo "it was moved here from another folder"
  elif [ -n "${PYTHON:-}" ] && [ "$(version "$PYTHON")" != "$(version $VENV/bin/python)" ]; then
    echo "it is of Python $(version $VENV/bin/python), not of $PYTHON"
  fi
}

make_venv() {
  local python why=$1
  python=$(find_python)
  "$python" -c 'import venv, ensurepip' >/dev/null 2>&1 || die "$python has no venv module" \
    "Debian, Ubuntu: apt-get install python3-venv    or name another Python: make PYTHON=/path/to/python3.12 ..."
  say "making $VENV with Python $(version "$python") ($why)"
  rm -rf $VENV
  "$python" -m venv $VENV || die "could not make $ROOT/$VENV: see above (is the folder writable, the disk full?)"
}

explain_failure() {
  local about=$1
  tail -n 15 $LOG >&2
  if grep -qiE 'No space left|Errno 28' $LOG; then
    die "the disk is full: pip could not install $about" "free some space on the disk of $ROOT, then run make again"
  elif grep -qiE 'name resolution|connection|timed out|Max retries|unreachable|ProxyError|SSLError|from versions: none' $LOG; then
    die "pip could not reach its package index to install $about" \
      "check the network and pip's settings (proxy, mirror, certificates: $VENV/bin/pip config list), then run make again"
  elif grep -qiE 'No matching distribution|ResolutionImpossible' $LOG; then
    die "pip found no fitting version of a package of $about for Python $(version $VENV/bin/python) on $(uname -sm)" \
      "see CONTRIBUTING.md for what works where; PYTHON=... chooses another Python"
  fi
  die "pip could not install $about: see above, and $ROOT/$LOG"
}

# Runs a command with its output in the log, and shows now and then that it still lives.
quietly() {
  "$@" >>$LOG 2>&1 &
  local job=$! waited=0
  trap 'kill $job 2>/dev/null; echo "stopped" >&2; exit 130' INT TERM  # what runs behind a script ignores Ctrl-C
  while kill -0 $job 2>/dev/null; do
    sleep 1
    waited=$((waited + 1))
    if [ $((waited % 20)) -eq 0 ]; then echo "   ... $waited s"; fi
  done
  trap - INT TERM
  wait $job
}

# Sets about, cost, need_mb and extras for a set of packages.
describe() {
  case $1 in
    cli) extras=cli,sinks about="the commands and the embedded ClickHouse" cost="about 200 MB, a minute" need_mb=1500 ;;
    monitor)
      extras=monitor,sinks about="the page of the monitor and what reads a fleet" cost="about 200 MB, a minute" need_mb=1200 ;;
    dev) extras=dev about="the packages of tests and linters" cost="up to 250 MB, a minute" need_mb=1800 ;;
    trainer)
      extras=trainer about="torch" cost="about 100 MB, a minute" need_mb=1000
      if [ "$(uname -s)" = Linux ]; then cost="about 3 GB on Linux, 2 to 5 minutes" need_mb=8000; fi ;;
    torchrec) extras="" about="TorchRec" cost="about 30 MB" need_mb=300 ;;
    *) die "unknown set of packages: $1 (there are cli, monitor, trainer, torchrec and dev)" ;;
  esac
}

check_space() {
  local free_mb
  if [ -e "$VENV/.stamps/$1" ]; then return; fi
  free_mb=$(df -Pk . | awk 'NR == 2 {print int($4 / 1024)}')
  [ "$free_mb" -ge "$need_mb" ] || die "too little disk space for $about: $need_mb MB are needed in $ROOT, $free_mb are free"
}

install() {
  local stamp=$VENV/.stamps/$1 state
  state=$(cksum pyproject.toml constraints.txt)
  if [ "$1" = torchrec ]; then state=$(cksum scripts/torchrec.txt); fi
  if [ "$(cat "$stamp" 2>/dev/null)" = "$state" ]; then return; fi
  say "installing $about ($cost)"
  mkdir -p $VENV/.stamps $VENV/tmp
  : >$LOG
  # On this disk, for /tmp may be small; without build isolation, so that the pinned build backend makes the install.
  local pip=(env PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 TMPDIR="$ROOT/$VENV/tmp" $VENV/bin/python -m pip install)
  pip+=(-c constraints.txt)
  if [ "$1" = torchrec ]; then
    if [ "$(uname -s)" = Linux ]; then quietly "${pip[@]}" --no-deps -r scripts/torchrec.txt || explain_failure "$about"
    else say "there is no TorchRec for $(uname -s): the reference trainer does without"; fi
    rm -rf $VENV/tmp
    echo "$state" >"$stamp"
    return
  fi
  quietly "${pip[@]}" hatchling || explain_failure "$about"
  quietly "${pip[@]}" --no-build-isolation -e ".[$extras]" || explain_failure "$about"
  rm -rf $VENV/tmp
  echo "$state" >"$stamp"
  if [ "$1" = dev ]; then echo "$state" | tee $VENV/.stamps/cli >$VENV/.stamps/monitor; fi  # it holds all of both
}

for set in "$@"; do describe "$set"; check_space "$set"; done
why=$(fault)
if [ -n "$why" ]; then make_venv "$why"; fi
for set in "$@"; do describe "$set"; install "$set"; done
