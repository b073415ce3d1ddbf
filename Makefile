# make demo: install and fit a tree on data that ships with the package.
# make test: install and run every check. Both need Python 3.11 or later, make and git.
# make test-gpu: all tests on a machine with a GPU, with the packages that are there.
# make test-oldest: run the tests with the lowest versions that pyproject.toml allows. Needs Python 3.11 itself.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
OLDEST := .venv-oldest

.PHONY: demo test test-gpu test-oldest lint format clean

demo: $(INSTALLED)
	$(BIN)/tartree demo --out demo-output

test: lint
	$(BIN)/pytest -n 2 --dist worksteal

# Nothing is installed: the machine may have no network. Tests whose packages are missing are skipped.
test-gpu:
	$(PYTHON) -c 'import sys, torch; sys.exit(None if torch.cuda.is_available() else "torch finds no GPU here")'
	PYTHONPATH="$(CURDIR)/src" $(PYTHON) tests/parallel.py

# Old packages warn about the newer ones that they depend on: only warnings of other kinds are errors here.
test-oldest: $(OLDEST)/.installed
	$(OLDEST)/bin/pytest -n 2 --dist worksteal -W ignore::DeprecationWarning -W ignore::FutureWarning

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The stamp makes a second run start at once: nothing is installed while these two files stay as they are.
$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

$(OLDEST)/.installed: pyproject.toml constraints.txt .ci/lowest_versions.py
	test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	$(PYTHON) .ci/lowest_versions.py > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/python -m pip install --quiet --only-binary :all: --constraint $(OLDEST)/constraints.txt --editable ".[dev]"
	touch $@

clean:
	rm -rf .venv $(OLDEST) demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis
