# Needs Python 3.11 or later and make; everything else goes into .venv.

PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
BIN := .venv/bin
READY := .venv/ready
LEARN := .venv/learn
# In collection order, so that the process with Ray, which takes the longest, starts first.
SPREAD := -q -n logical --maxprocesses 4 --dist loadgroup --no-loadscope-reorder --durations 20

.PHONY: quickstart test test-all format docs check dist setup clean

quickstart: $(READY)  ## play the first scenario
	$(BIN)/raydp-sim run scenarios/quickstart.yaml

# The processes share the cores: a second thread of BLAS would only wait, spinning.
test test-all: export OPENBLAS_NUM_THREADS = 1

test: check  ## every gate, as in CI
	$(BIN)/python -m pytest $(SPREAD) -m "not long"

test-all: check  ## also what is too slow for CI
	$(BIN)/python -m pytest $(SPREAD)

check: $(READY) $(LEARN)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY)  ## print the field reference anew
	$(BIN)/raydp-sim schema --markdown > docs/fields.md

dist: $(READY)  ## the wheel that cluster/ installs
	rm -rf dist
	$(BIN)/python -m pip wheel -q --no-deps -w dist .

setup: $(READY) $(LEARN)

# Made anew only when what it depends on changes.
$(READY): pyproject.toml constraints.txt setup.py $(wildcard raydp_sim/kernels/source/*)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or later is needed; give its path as make PYTHON=..."; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q -c constraints.txt -e ".[dev]"
	@touch $(READY)

# PyTorch, which tests compare models with; a first scenario should not wait for it. Built for CPUs,
# where the package index has such a build.
$(LEARN): $(READY)
	$(BIN)/python -m pip install -q -c constraints.txt -e ".[learn]"
	@touch $(LEARN)

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
