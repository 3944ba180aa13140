# Bare `make` lists what there is. Everything happens inside .venv; nothing else on the machine changes.
PYTHON ?= python3
BIN := .venv/bin
.DEFAULT_GOAL := help

.PHONY: help
help:  ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "amux needs Python 3.11 or newer: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv .venv

.venv/installed: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/tested: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

.PHONY: install demo test lint types lowest check bench soak snapshots prices completions sample readme
install: .venv/installed  ## make .venv and install amux into it

demo: .venv/installed  ## show amux on the sample sessions that come with it
	$(BIN)/amux --demo sessions list
	$(BIN)/amux --demo sessions search webhook retry
	$(BIN)/amux --demo cost report

test: .venv/tested  ## run every test
	$(BIN)/python -m pytest

lint: .venv/tested  ## ruff: format and all rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: .venv/tested  ## mypy --strict
	$(BIN)/mypy

lowest: .venv/installed  ## try the lowest versions of what amux needs
	$(BIN)/python tests/tools/lowest.py

check: lint types test lowest  ## what CI runs

bench: .venv/tested  ## measure the budgets and print them as a table
	$(BIN)/python tests/bench/run.py

snapshots: .venv/tested  ## rewrite the expected output; read the diff before you commit it
	$(BIN)/python -m pytest --snapshot-update tests/test_cli.py tests/test_schema.py

soak: .venv/tested  ## the long form of the tests that try to break it
	AMUX_SOAK=1 $(BIN)/python -m pytest tests/hard

prices: .venv/tested  ## make amux/prices.json from the installed genai-prices
	$(BIN)/python tests/tools/make_prices.py

completions: .venv/tested  ## write the shells' completions from the command line itself
	$(BIN)/python tests/tools/make_completions.py

sample: .venv/tested  ## write the sample sessions of --demo
	$(BIN)/python tests/tools/make_demo.py

readme: .venv/tested  ## run the README's commands and put their output and the picture into it
	$(BIN)/python tests/tools/make_readme.py
