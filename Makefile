# Everything a person types. Python >= 3.11 is needed; Go >= 1.26 for the real control plane.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: test lint cluster lock crd
.DEFAULT_GOAL := test

test: lint
	$(BIN)/python -m pytest

lint: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

cluster: .venv/ready
	$(BIN)/python -m tests.controlplane

crd: .venv/ready
	$(BIN)/mcad crd > deploy/crds/workload.codeflare.dev_appwrappers.yaml
	cp deploy/crds/workload.codeflare.dev_appwrappers.yaml deploy/helm/mcad/files/crds/

.venv/ready: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --require-hashes --requirement requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

# Versions and hashes of everything that is installed, without the address of an index.
lock: .venv/ready
	$(BIN)/pip install --quiet pip-tools
	$(BIN)/pip-compile --quiet --extra dev --generate-hashes --allow-unsafe --strip-extras \
	  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-header \
	  --output-file requirements.lock pyproject.toml
