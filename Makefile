# SPDX-License-Identifier: Apache-2.0
# `make` shows what there is. Everything but `lock` works from locked, hashed dependencies.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory

# Without compiled files every process of a run, each gateway too, compiles the whole tree again.
export PYTHONDONTWRITEBYTECODE :=

PYTHON ?= python3
PROCESSES ?= 4
VENV := .venv
BIN := $(VENV)/bin
ENVIRONMENT := $(VENV)/.installed-$(firstword $(shell cksum requirements.lock))
COMPILE := uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --quiet

.PHONY: help setup demo up test test-unit test-services test-generated test-servers test-engines test-chaos test-long test-trino test-keycloak test-browser test-helm test-wheel test-pythons check house docs model policies identity-attacks soak bench spec-diff lock wheel clean

help: ## Show this
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | while IFS=$$'\t' read -r name what; do \
		printf '  \033[1m%-13s\033[0m %s\n' "$$name" "$$what"; done

setup: $(ENVIRONMENT) ## Install everything that is needed, once; the other targets do it by themselves
	@$(BIN)/lakegate setup --with-spark

$(ENVIRONMENT): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Lakegate needs Python 3.11 or newer; name one: make PYTHON=python3.12 …" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
		echo "No virtual environment could be made; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "Installing the Python environment; about a minute the first time"
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --require-hashes --no-deps -r requirements.lock || { \
		echo "The Python packages could not be installed. Is the package index reachable? pip's own settings apply." >&2; exit 1; }
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation --no-index -e .
	@rm -f $(VENV)/.installed-* && touch $@

demo: setup ## Run the pipeline on real data through the door, then show that the door is real
	@$(BIN)/lakegate demo

up: setup ## Run the whole stack on this machine until Ctrl-C
	@$(BIN)/lakegate up

check: setup ## Format, lint, types, room contracts, form of the policies, documentation; all of them, even after a failure
	@failed=0; run() { echo "--- $${*#$(BIN)/}"; "$$@" || { failed=1; echo "failed: $$*" >&2; }; }; \
	run $(BIN)/ruff format --check; \
	run $(BIN)/ruff check; \
	run $(BIN)/mypy --strict gateway tests; \
	run $(BIN)/lint-imports --no-cache; \
	run $(BIN)/lakegate policy check; \
	run $(BIN)/python -m tests.docs_site; \
	exit $$failed

house: setup ## Measure the structure of the code: lines, sizes of modules, files of a change, minutes of the stages
	@$(BIN)/python -m tests.house

docs: setup ## Build the documentation as a site in build/docs/site; a broken link fails
	@$(BIN)/python -m tests.docs_site

model: setup ## Compile fga_model/ to what the gateway ships with
	@$(BIN)/python -m gateway.fga.compile

policies: setup ## Check and test the relationship model and the Rego policies alone
	@$(BIN)/python -m gateway.embedded.policies

test: test-unit test-services ## The tests without a stack, then those on a running one; make test PROCESSES=0 for one at a time

test-unit: setup ## The tests that need no stack
	$(BIN)/python -m tests.stages unit --processes $(PROCESSES)

test-services: setup ## The tests on a running stack: PostgreSQL, OpenFGA, OPA, an object store, an identity provider
	$(BIN)/python -m tests.stages services --processes $(PROCESSES)

test-generated: setup ## Generated and enumerated requests on a running stack: fuzzing, the golden matrix, differential tests
	$(BIN)/python -m tests.stages generated --processes $(PROCESSES)

test-servers: setup ## Servers that start, restart, are restored or replaced: migrations, replicas, reconciliation
	$(BIN)/python -m tests.stages servers --processes $(PROCESSES)

test-engines: setup ## Spark, PyIceberg and DuckDB on a running stack
	$(BIN)/python -m tests.stages engines --processes $(PROCESSES)

test-chaos: setup ## Kills, outages, races, metadata bombs and clocks
	$(BIN)/python -m tests.stages chaos

test-long: setup ## The tests that take minutes, and all drawn ones with another seed; make test-long SEED=5 repeats one
	$(BIN)/python -m tests.long_run $(if $(SEED),--seed $(SEED)) $(if $(FAILED),--failed) $(if $(MINUTES),--minutes $(MINUTES))

test-trino: setup ## Statements of several people on a real Trino: fetches 800 MB once, needs Java 24 and Maven
	LAKEGATE_TEST_TRINO=1 $(BIN)/python -m pytest --timeout 1200 tests/e2e/test_trino.py tests/e2e/test_trino_agreement.py tests/e2e/test_trino_columns.py tests/e2e/test_trino_caches.py

test-keycloak: setup ## Logins, groups and changing keys on a real Keycloak: fetches 180 MB once, needs Maven and Java 17 or 21
	LAKEGATE_TEST_KEYCLOAK=1 $(BIN)/python -m pytest tests/e2e/test_keycloak.py

test-wheel: setup ## Build the wheel, install it in an empty environment and run the stack from it
	LAKEGATE_TEST_WHEEL=1 $(BIN)/python -m pytest --timeout 1200 tests/e2e/test_wheel.py

test-pythons: setup ## tests/unit and tests/access on other versions of Python; make test-pythons VERSIONS="3.12 3.13"
	$(BIN)/python -m tests.pythons $(or $(VERSIONS),3.11 3.12 3.13 3.14)

test-browser: setup ## The pages people sign in on in a real browser: needs Chromium and its driver
	LAKEGATE_TEST_BROWSER=1 $(BIN)/python -m pytest tests/e2e/test_browser.py

test-helm: setup ## Render the chart and hold it against Kubernetes' schemas: builds Helm once, five minutes
	LAKEGATE_TEST_HELM=1 $(BIN)/python -m pytest tests/e2e/test_helm.py

soak: setup ## One abusive principal beside ten normal ones for 20 minutes; make soak MINUTES=3 for less
	$(BIN)/python -m tests.security.soak --minutes $(or $(MINUTES),20)

identity-attacks: setup ## Try everything an attacker can try about identity, and print what was refused
	@$(BIN)/python -m tests.security.identity_attacks

bench: setup ## Measure, each figure next to a floor of the same run
	$(BIN)/python -m tests.bench
	$(BIN)/python -m tests.bench.bridge

spec-diff: setup ## Compare our OpenAPI document with the protocol's published one: make spec-diff FILE=...
	$(BIN)/python -m tests.spec_diff $(FILE)

lock: ## Resolve the dependencies anew (needs uv)
	$(COMPILE) --upgrade --extra embedded pyproject.toml requirements.in -o requirements.lock
	$(COMPILE) --upgrade pyproject.toml -c requirements.lock -o requirements-serve.lock
	$(COMPILE) --upgrade --extra embedded pyproject.toml -c requirements.lock -o requirements-embedded.lock
	$(COMPILE) --upgrade requirements-build.in -c requirements.lock -o requirements-build.lock
	$(COMPILE) --upgrade requirements-login.in -c requirements.lock -o requirements-login.lock
	$(COMPILE) --upgrade requirements-idp.in -o requirements-idp.lock
	$(COMPILE) --upgrade requirements-helm.in -o requirements-helm.lock
	$(COMPILE) --upgrade requirements-go.in -o requirements-go.lock

wheel: setup ## Build the source archive and the wheel in dist/
	$(BIN)/python -m build --no-isolation

clean: ## Remove what was made in this checkout; the cache in the home directory stays
	rm -rf $(VENV) .lakegate build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
