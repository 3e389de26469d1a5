# Everything a person types. Python >= 3.11 is needed; Go >= 1.26 for the real control plane.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check

# Modules are compiled once, also where the environment of a container forbids to keep that.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-all suite soak lint mutants browser cluster golden lock crd docs release
.DEFAULT_GOAL := test

demo: .venv/runtime
	@echo "Starting the demo: $(BIN)/python -m mcad demo"
	@$(BIN)/python -m mcad demo

# Linters beside the tests: a part of the suite waits for servers.
test: .venv/ready
	$(MAKE) --jobs 2 lint suite CHOSEN="not slow"

# The rest: most tests on a real control plane, and what takes long.
test-all: .venv/ready
	$(MAKE) suite CHOSEN=slow

# Five files of tests at a time, each with the control plane of its own; tests/conftest.py orders
# them. A file stays whole, because its tests share what it started.
WORKERS ?= 5
suite: .venv/ready
	@# The first time, before all workers rewrite the assertions of every module.
	@test -d tests/__pycache__ || $(BIN)/python -m pytest --collect-only --quiet >/dev/null
	MAKEFLAGS= $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile \
	  --no-loadscope-reorder $(if $(CHOSEN),-m "$(CHOSEN)")

# Every fault at every write, every seed, the default clocks: what a push draws representatives of,
# or makes faster. An hour.
soak: .venv/ready
	MCAD_SOAK=1 $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile \
	  --no-loadscope-reorder tests/faults tests/autoscaler tests/histories tests/core/test_histories.py \
	  tests/core/preemption tests/clusters tests/e2e/running/test_left_alone.py tests/cli/test_suspended.py

lint: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.style

# Builds with one fault each: every one of them has to turn a test red. ONLY=attempts for a part.
mutants: .venv/ready
	$(BIN)/python -m tests.mutants $(ONLY)

# The page of `mcad ui` in a real browser: needs Chromium (`apt-get install chromium`).
# MCAD_PICTURES=1 also renews the pictures in docs/.
browser: .venv/ready
	MCAD_BROWSER=1 $(BIN)/python -m pytest tests/ui

cluster: .venv/ready
	$(BIN)/python -m tests.controlplane

# What the embedded cluster is compared with, from the real one: after a step to another Kubernetes.
golden: .venv/ready
	$(BIN)/python -m tests.golden

crd: .venv/ready
	$(BIN)/mcad crd appwrappers > deploy/crds/workload.codeflare.dev_appwrappers.yaml
	$(BIN)/mcad crd quotasubtrees > deploy/crds/quota.codeflare.dev_quotasubtrees.yaml
	$(BIN)/mcad crd dispatchpauses > deploy/crds/workload.codeflare.dev_dispatchpauses.yaml
	cp deploy/crds/*.yaml deploy/helm/mcad/files/crds/

# The site of the documents in build/site, with every link checked. Needs npm, for mermaid alone.
docs: .venv/docs build/mermaid.min.js
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

.venv/docs: .venv/ready requirements-docs.lock
	@sh deploy/install-locked.sh $(BIN)/pip requirements-docs.lock
	@touch $@

# Draws the diagrams; the site serves it itself, because the theme would load it from elsewhere.
MERMAID := 11.17.2
MERMAID_SHA256 := 581ed7d74bd9048d0e3a91363927d72ef22942d7722546b27f7cc29e35390eb8
build/mermaid.min.js: Makefile
	@command -v npm > /dev/null || { echo "error: make docs needs npm; install Node.js" >&2; exit 2; }
	mkdir -p build
	npm pack --silent --pack-destination build mermaid@$(MERMAID)
	tar -xzmf build/mermaid-$(MERMAID).tgz -C build --strip-components 2 package/dist/mermaid.min.js
	rm build/mermaid-$(MERMAID).tgz
	echo "$(MERMAID_SHA256)  $@" | sha256sum --check --quiet || { rm $@; exit 1; }

# Wheel, CRDs, chart, image, SBOM and checksums in dist/, from the tag vVERSION. ARGS as
# `deploy/release.py --help` has them: ARGS="--image ghcr.io/me/mcad --push".
release: .venv/ready
	@test -n "$(VERSION)" || { echo "error: make release VERSION=0.2.0" >&2; exit 2; }
	$(BIN)/python deploy/release.py $(VERSION) $(ARGS)

# What runs, without what develops: `make demo` should not wait for compilers and linters. With
# `. .venv/bin/activate` mcad is a command then, as pages type it.
.venv/runtime: requirements-demo.lock
	@echo "Making .venv with $(PYTHON)..."
	@$(PYTHON) -m venv .venv
	@echo "Installing $$(grep -c == $<) packages into it; this takes about a minute, once..."
	@sh deploy/install-locked.sh $(BIN)/pip $< --no-compile
	@printf '%s\n' '#!$(CURDIR)/$(BIN)/python' 'import sys' 'sys.path.insert(0, "$(CURDIR)")' \
	  'from mcad.cli.start import main' 'main()' > $(BIN)/mcad && chmod +x $(BIN)/mcad
	@touch $@

.venv/ready: .venv/runtime requirements-dev.lock pyproject.toml
	@echo "Installing what develops and tests..."
	@sh deploy/install-locked.sh $(BIN)/pip requirements-dev.lock
	$(PIP) --no-deps --no-build-isolation --editable .
	touch $@

# Versions and hashes of everything that is installed, without the address of an index.
COMPILE := $(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras \
  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-header
lock: .venv/ready
	$(PIP) pip-tools
	$(COMPILE) --extra ui --output-file requirements.lock pyproject.toml
	$(COMPILE) --extra demo --constraint requirements.lock --output-file requirements-demo.lock \
	  pyproject.toml
	$(COMPILE) --extra demo --extra dev --constraint requirements-demo.lock \
	  --output-file requirements-dev.lock pyproject.toml
	$(COMPILE) --extra docs --constraint requirements-dev.lock --output-file requirements-docs.lock \
	  pyproject.toml
	$(COMPILE) --build-deps-for wheel --only-build-deps --constraint requirements-dev.lock \
	  --output-file deploy/build.lock pyproject.toml
	$(COMPILE) --output-file deploy/release.lock deploy/release.in
