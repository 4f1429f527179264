# What people and the CI type. A target that needs Python sets up .venv first, and again only when
# pyproject.toml or constraints.txt changed. ARGS goes on: make train ARGS="steps=20 schedule=gpipe".
PYTHON ?= python3
VENV := .venv
ARGS :=

BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check --no-compile --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help train test check golden bench docs clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18

train: $(READY) ## train the default model on real text, about a minute
	@$(BIN)/python launch.py $(ARGS)

test: $(READY) ## run every test, under three minutes
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses=auto --maxprocesses=8 --dist=worksteal $(ARGS)

check: $(READY) ## formatting, lint, types, direction of imports
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet . && $(BIN)/mypy --no-error-summary && $(BIN)/python -m pytest -q tests/test_architecture.py

golden: $(READY) ## write the schedules in tests/goldens anew; review the difference
	@$(BIN)/python -m tests.goldens $(ARGS)

bench: $(READY) ## run every benchmark; set against the tables in their READMEs
	@for script in benchmarks/*/run.py; do $(BIN)/python $$script || exit 1; done

docs: $(READY) ## write the generated pages of docs/ anew
	@$(BIN)/python docs/generate.py

clean: ## remove .venv, caches and built packages; outputs/ and multirun/ stay
	@rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# An environment that was finished once is brought up to date in place; any other is made anew, so
# one that was interrupted half-way leaves nothing behind.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || { \
	  echo 'Python must be 3.11, 3.12 or 3.13, but $(PYTHON) is not. Say which: make PYTHON=python3.12'; exit 1; }
	@test -e $@ || { echo 'Setting up $(VENV), a few minutes the first time'; $(PYTHON) -m venv --clear $(VENV); }
	@rm -f $@
	@$(PIP) setuptools hatchling && $(PIP) --no-build-isolation --editable '.[dev]'
	@touch $@
