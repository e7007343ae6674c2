# One command each; the first one run also makes the virtual environment.
VENV ?= .venv
BIN := $(VENV)/bin
PYTHON ?= python3
WORKERS ?= 2

.PHONY: check format test demo bench

$(BIN)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

check: $(BIN)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

format: $(BIN)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: $(BIN)/.installed
	$(BIN)/python -m pytest -n $(WORKERS)

demo: $(BIN)/.installed
	$(BIN)/python examples/quickstart.py

bench: $(BIN)/.installed
	$(BIN)/python benchmarks/update.py
