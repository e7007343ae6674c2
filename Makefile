# Every target creates the virtual environment and installs what it needs first.
VENV ?= .venv
BIN := $(VENV)/bin
PYTHON ?= python3
WORKERS ?= 2
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check -e
# JaxMARL pins old versions of packages that the development tools need: it gets a separate environment.
ADAPTERS := $(VENV)/adapters

.PHONY: demo test test-slow test-exhaustive test-adapters campaign check format docs bench

$(BIN)/.made:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(BIN)/.installed: $(BIN)/.made pyproject.toml
	@echo "installing fp3o (about a minute) ..."
	$(INSTALL) .
	touch $@

$(BIN)/.installed-dev: $(BIN)/.made pyproject.toml
	@echo "installing fp3o and its development tools ..."
	$(INSTALL) '.[dev]'
	touch $@

$(ADAPTERS)/.installed: pyproject.toml
	@echo "installing fp3o with JaxMARL and Jumanji ..."
	$(PYTHON) -m venv $(ADAPTERS)
	$(ADAPTERS)/bin/pip install --quiet --disable-pip-version-check -e '.[jaxmarl,jumanji]' \
		'beartype>=0.20' 'hypothesis>=6.100' 'pytest>=8' 'pytest-xdist>=3.6'
	touch $@

demo: $(BIN)/.installed
	$(BIN)/fp3o train

# Tests that follow each other run in one process and share what it has compiled.
test: $(BIN)/.installed-dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-slow: $(BIN)/.installed-dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m 'slow and not exhaustive'

# Every combination, and long runs (an hour).
test-exhaustive: $(BIN)/.installed-dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m exhaustive

# The attacks on files, runs and processes at full length (hours); totals for docs/reliability.md.
campaign: $(BIN)/.installed-dev
	SHAPE_CHECKS=0 CAMPAIGN_TOTALS=campaign.json $(BIN)/python -m pytest -n $(WORKERS) -m campaign

test-adapters: $(ADAPTERS)/.installed
	$(ADAPTERS)/bin/python -m pytest -n $(WORKERS) -m '' \
		$(addprefix tests/envs/adapters/,test_jax_adapters.py test_jaxmarl.py test_jumanji.py)

check: $(BIN)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

format: $(BIN)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(BIN)/.installed-dev
	$(BIN)/mkdocs build --strict

bench: $(BIN)/.installed-dev
	$(BIN)/fp3o bench
