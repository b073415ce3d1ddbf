# make demo: install and fit a tree on data that ships with the package.
# make test: install and run every check. Both need Python 3.11 or later, make and git.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: demo test lint format clean

demo: $(INSTALLED)
	$(BIN)/tartree demo --out demo-output

test: lint
	$(BIN)/pytest -n 2 --dist worksteal

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

clean:
	rm -rf .venv demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis
