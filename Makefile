# Each target sets up what it needs by itself: .venv, and in it the packages pinned in constraints.txt.
# PYTHON=...   the Python to make .venv with (3.11 or newer; default: the first of python3, python3.13, ... that fits)
# WORKERS=N    test processes (default 2)
# ARGS="..."   more arguments for the program behind the target, e.g. make test ARGS="tests/schemas -k time"
SHELL := /bin/bash
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help web demo demo-lite demo-fleet test lint format bench soak clean constraints

PYTHON ?=
WORKERS ?= 2
ARGS ?=
BIN := .venv/bin
export PYTHON

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## a real two-rank PyTorch job that trains, dies and recovers, and where its time went (about 2 minutes after the install)
	@scripts/venv.sh cli trainer
	@$(BIN)/ettwatch demo $(ARGS)

demo-lite: ## the same report from a recorded run: no torch, under a minute after the install
	@scripts/venv.sh cli
	@$(BIN)/ettwatch demo --lite $(ARGS)

demo-fleet: ## a simulated fleet of some days, and its page on 127.0.0.1:9467 until Ctrl-C
	@scripts/venv.sh cli monitor
	@$(BIN)/ettwatch monitor --demo $(ARGS)

test: ## every test that this machine can run
	@scripts/venv.sh dev trainer torchrec
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --no-skips $(ARGS)

lint: ## ruff, mypy, the arrows between the packages, JSON Schemas up to date
	@scripts/venv.sh dev trainer torchrec
	@scripts/lint.sh

format: ## let ruff put the code into shape
	@scripts/venv.sh dev
	@$(BIN)/ruff check --fix-only --quiet . && $(BIN)/ruff format .

web: ## build the page of the monitor anew from monitor/web (needs Node 20 and npm)
	@scripts/venv.sh dev trainer
	@scripts/web.sh $(ARGS)

bench: ## every benchmark; the results go to benchmarks/results/
	@scripts/venv.sh dev trainer torchrec
	@scripts/bench.sh $(ARGS)

soak: ## the property tests with many more examples, each fault of the pipeline on 2,000 jobs, and the benchmarks (hours)
	@scripts/venv.sh dev trainer torchrec
	@$(BIN)/python -m pytest -q -n $(WORKERS) --timeout 3600 --hypothesis-profile soak -m "soak or not soak" $(ARGS)
	@$(BIN)/python scripts/faults.py
	@scripts/bench.sh

constraints: ## pin anew, in constraints.txt, the packages that .venv holds
	@scripts/venv.sh dev trainer
	@$(BIN)/python scripts/constraints.py $(ARGS)

clean: ## remove .venv, caches and builds (the data in .ettwatch stays)
	@rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo "removed .venv, caches and builds"
