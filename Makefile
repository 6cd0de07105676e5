# SPDX-License-Identifier: Apache-2.0
# `make` lists the targets. All targets except `lock` install locked dependencies with hashes.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory

# Allow compiled files: otherwise every process, each gateway included, compiles all modules again.
export PYTHONDONTWRITEBYTECODE :=

PYTHON ?= python3
PROCESSES ?= 4
VENV := .venv
BIN := $(VENV)/bin
ENVIRONMENT := $(VENV)/.installed-$(firstword $(shell cksum requirements/development.lock))
COMPILE := uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --quiet

.PHONY: help setup demo up test test-repository test-unit test-policies test-services test-generated test-servers test-engines test-chaos test-long test-events-faults test-trino test-keycloak test-azurite test-browser test-helm test-observability test-wheel test-pythons check check-console api-examples house docs model policies identity-attacks soak bench bench-peer bench-versions spec-diff lock wheel clean test-lakekeeper-client test-engine chart-policies sbom test-kubernetes policy-agreement-long reference-agreement-long test-worlds mutants

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | while IFS=$$'\t' read -r name what; do \
		printf "  \033[1m%-24s\033[0m %s\n" "$$name" "$$what"; done

setup: $(ENVIRONMENT) ## Install the environment and the embedded servers; the other targets run this first
	@$(BIN)/lakegate setup --with-spark

$(ENVIRONMENT): requirements/development.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Lakegate needs Python 3.11 or newer; name one: make PYTHON=python3.12 …" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
		echo "No virtual environment could be made; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "Installing the Python environment; about a minute the first time"
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-compile --require-hashes --no-deps -r requirements/development.lock || { \
		echo "The Python packages could not be installed. Is the package index reachable? pip's own settings apply." >&2; exit 1; }
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation --no-index -e .
	@rm -f $(VENV)/.installed-* && touch $@

demo: setup ## Run the example pipeline on real data, then show requests that are allowed and denied
	@$(BIN)/lakegate demo

up: setup ## Run the gateway and all services that it needs on this machine, until Ctrl-C
	@$(BIN)/lakegate up

check: setup ## Check format, lint, types, import contracts, policies, documentation and the console's types; run all checks, even after a failure
	@failed=0; run() { echo "--- $${*#$(BIN)/}"; "$$@" || { failed=1; echo "failed: $$*" >&2; }; }; \
	run $(BIN)/ruff format --check; \
	run $(BIN)/ruff check; \
	run $(BIN)/mypy --strict gateway lakegate tests; \
	run $(BIN)/lint-imports --no-cache; \
	run $(BIN)/lakegate policy check; \
	run $(BIN)/python -m tests.docs_site; \
	run $(BIN)/python -m tests.console.check; \
	exit $$failed

check-console: setup ## Check the types of the console's modules with TypeScript: needs Node 20, and is skipped without it
	@$(BIN)/python -m tests.console.check

api-examples: setup ## Record the examples of the OpenAPI documents from tests; make api-examples FILES=tests/contract/test_tags.py
	$(BIN)/python -m tests.api_examples $(FILES)

house: setup ## Measure the structure of the code: lines, sizes of modules, files of a change, minutes of the stages
	@$(BIN)/python -m tests.house

docs: setup ## Build the documentation as a site in build/docs/site; a broken link fails
	@$(BIN)/python -m tests.docs_site

model: setup ## Compile fga_model/ to the files that the gateway contains
	@$(BIN)/python -m gateway.fga.compile

policies: setup ## Check and test only the relationship model and the Rego policies
	@$(BIN)/python -m lakegate.local.policies

test: test-unit test-services ## Run the tests without a stack, then those on a running stack; make test PROCESSES=0 uses one process

test-repository: setup ## Test the suite itself, the documentation, and the figures of ARCHITECTURE.md
	$(BIN)/python -m tests.stages repository --processes $(PROCESSES)

test-unit: setup ## Run the tests that need no stack
	$(BIN)/python -m tests.stages unit --processes $(PROCESSES)

test-policies: setup ## Run the tests of the relationship model and the policies on OpenFGA and OPA, with mutants of both
	$(BIN)/python -m tests.stages policies --processes $(PROCESSES)

test-services: setup ## Run the tests on a running stack: PostgreSQL, OpenFGA, OPA, an object store, an identity provider
	$(BIN)/python -m tests.stages services --processes $(PROCESSES)

test-generated: setup ## Attacks, and generated or enumerated requests, on a running stack: fuzzing, the golden matrix, differential tests
	$(BIN)/python -m tests.stages generated --processes $(PROCESSES)

test-servers: setup ## Servers that start, restart, are restored or replaced: migrations, replicas, reconciliation
	@$(BIN)/python -m tests.support.servers.hdfs_servers
	@$(BIN)/python -m tests.support.servers.kafka_server
	$(BIN)/python -m tests.stages servers --processes $(PROCESSES)

test-engines: setup ## Test Spark, PyIceberg and DuckDB on a running stack
	$(BIN)/python -m tests.stages engines

test-chaos: setup ## Test killed processes, outages, races, metadata bombs and wrong clocks
	$(BIN)/python -m tests.stages chaos

test-long: setup ## Run the long tests, and all Hypothesis tests with a new seed; make test-long SEED=5 repeats a seed
	$(BIN)/python -m tests.long_run $(if $(SEED),--seed $(SEED)) $(if $(FAILED),--failed) $(if $(MINUTES),--minutes $(MINUTES))

policy-agreement-long: setup ## Compare a million random filters and masks of each engine with a reference interpreter: needs hours for Spark
	$(BIN)/python -m tests.policy_agreement_run $(ENGINES) $(if $(TOTAL),--total $(TOTAL)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED))

reference-agreement-long: setup ## Compare 10,000 random commits and 2,000 views and documents with the Java library, in minutes: needs Java 17 or 21
	$(BIN)/python -m tests.reference_judge.run $(if $(SEED),--seed $(SEED))

test-worlds: setup ## Compare the reasons of decisions in 100,000 random worlds with OpenFGA and with brute force: needs half an hour
	$(BIN)/python -m tests.provenance_run $(if $(WORLDS),--total $(WORLDS)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED))

mutants: setup ## Count how many of 300 mutants of gateway/ the tests without a stack kill: needs an hour
	$(BIN)/python -m tests.mutants $(or $(NAME),now) --anew $(if $(ROOT),--root $(ROOT)) $(if $(SEED),--seed $(SEED))

test-events-faults: setup ## Make 100,000 changes whose events go to NATS and Kafka while processes are killed and networks cut: needs Maven once
	$(BIN)/python -m tests.event_faults $(if $(SEED),--seed $(SEED)) $(if $(EVENTS),--events $(EVENTS))

test-trino: setup ## Run statements of several users on a real Trino: downloads 800 MB once, needs Java 24 and Maven
	LAKEGATE_TEST_TRINO=1 $(BIN)/python -m pytest --timeout 1200 tests/e2e/test_trino.py tests/e2e/test_trino_agreement.py tests/e2e/test_trino_columns.py tests/e2e/test_trino_policy_agreement.py tests/e2e/test_trino_caches.py tests/e2e/test_trino_restrictions.py tests/e2e/test_trino_data_policies.py tests/e2e/test_trino_one_policy.py tests/e2e/test_trino_engine_probe.py tests/e2e/test_trino_engine_trust.py tests/e2e/test_trino_denials.py tests/e2e/test_trino_up.py

test-engine: setup ## Test one real engine and record the result; make test-engine ENGINE=flink. docs/engines.md lists the engines
	$(BIN)/python -m tests.e2e.engines $(ENGINE)

test-keycloak: setup ## Test logins, groups and key rotation on a real Keycloak: downloads 180 MB once, needs Maven and Java 17 or 21
	LAKEGATE_TEST_KEYCLOAK=1 $(BIN)/python -m pytest tests/e2e/test_keycloak.py

test-azurite: setup ## Test warehouses in Azure storage on an emulator: downloads 365 MB once, needs npm and Node 20 or newer
	LAKEGATE_TEST_AZURITE=1 $(BIN)/python -m pytest --timeout 1200 tests/integration/test_adls_warehouses.py

test-wheel: setup ## Build the wheel, install it in an empty environment and run the stack from it
	LAKEGATE_TEST_WHEEL=1 $(BIN)/python -m pytest --timeout 1200 tests/e2e/test_wheel.py

test-pythons: setup ## Run tests/unit and tests/access on other versions of Python; make test-pythons VERSIONS="3.12 3.13"
	$(BIN)/python -m tests.pythons $(or $(VERSIONS),3.11 3.12 3.13 3.14)

test-browser: setup ## Test the login pages in a real browser: needs Chromium and its driver
	LAKEGATE_TEST_BROWSER=1 $(BIN)/python -m pytest tests/e2e/test_browser.py tests/e2e/test_console*.py

test-lakekeeper-client: setup ## Test Lakekeeper's Python client on a running stack: downloads 200 MB once
	LAKEGATE_TEST_LAKEKEEPER_CLIENT=1 $(BIN)/python -m pytest --timeout 1200 tests/e2e/test_pylakekeeper.py

test-helm: setup ## Render the Helm chart and validate it against Kubernetes' schemas: builds Helm once, in five minutes
	LAKEGATE_TEST_HELM=1 $(BIN)/python -m pytest tests/e2e/test_helm.py

chart-policies: ## Copy the policies into the Helm chart
	rm -rf deploy/helm/policies
	mkdir -p deploy/helm/policies
	cd policies && find . -type f ! -name '*_test.rego' ! -name README.md ! -path './schemas/*' -exec cp --parents {} ../deploy/helm/policies/ \;

test-kubernetes: setup ## Install and upgrade the Helm chart on a Kubernetes API server: builds it once, in up to half an hour
	$(BIN)/python -m tests.kubernetes

test-observability: setup ## Check the alert rules, their tests and the dashboard with promtool: builds it once, in minutes
	LAKEGATE_TEST_PROMTOOL=1 $(BIN)/python -m pytest tests/e2e/test_promtool.py

soak: setup ## Run one abusive and ten normal principals for 20 minutes; make soak MINUTES=3 runs 3 minutes
	$(BIN)/python -m tests.security.soak --minutes $(or $(MINUTES),20)

identity-attacks: setup ## Send attacks on authentication to a stack, and print each refusal
	@$(BIN)/python -m tests.security.identity_attacks

bench: setup ## Measure the performance, each figure next to a floor of the same run
	$(BIN)/python -m tests.bench
	$(BIN)/python -m tests.bench.bridge
	$(BIN)/python -m tests.bench.data_policies
	$(BIN)/python -m tests.bench.reader
	$(BIN)/python -m tests.bench.answers

# Variables of the command line are also in the environment of the recipe: a token is not printed.
bench-peer: setup ## Compare with another Iceberg REST catalog: make bench-peer TARGET=http://127.0.0.1:8181/catalog
	@$(BIN)/python -m tests.bench.peer

bench-versions: setup ## Fail if requests cost more CPU than recorded; with BASE=../older, compare with that version too
	@$(BIN)/python -m tests.bench.growth
	$(if $(BASE),@$(BIN)/python -m tests.bench.versions $(OPTIONS) $(BASE))

spec-diff: setup ## Compare our OpenAPI document with the protocol's published one: make spec-diff FILE=...
	$(BIN)/python -m tests.spec_diff $(FILE)

lock: ## Update the lock files of the dependencies (needs uv)
	$(COMPILE) --upgrade --extra embedded pyproject.toml requirements/development.in -o requirements/development.lock
	$(COMPILE) --upgrade pyproject.toml -c requirements/development.lock -o requirements/serve.lock
	$(COMPILE) --upgrade --extra embedded pyproject.toml -c requirements/development.lock -o requirements/embedded.lock
	$(COMPILE) --upgrade requirements/build.in -c requirements/development.lock -o requirements/build.lock
	$(COMPILE) --upgrade requirements/login.in -c requirements/development.lock -o requirements/login.lock
	$(COMPILE) --upgrade requirements/servers.in -c requirements/development.lock -o requirements/servers.lock
	$(COMPILE) --upgrade requirements/idp.in -o requirements/idp.lock
	$(COMPILE) --upgrade requirements/helm.in -o requirements/helm.lock
	$(COMPILE) --upgrade requirements/go.in -o requirements/go.lock
	$(COMPILE) --upgrade tests/locks/pylakekeeper.in -o tests/locks/pylakekeeper.lock
	$(COMPILE) --upgrade tests/locks/mutants.in -o tests/locks/mutants.lock
	$(COMPILE) --upgrade requirements/sbom.in -o requirements/sbom.lock

sbom: setup ## Write dist/sbom.cdx.json, the list of the components of the serving image (CycloneDX), and validate it
	rm -rf build/sbom && mkdir -p build/sbom dist
	$(PYTHON) -m venv build/sbom/image && $(PYTHON) -m venv build/sbom/backend && $(PYTHON) -m venv build/sbom/tool
	build/sbom/image/bin/pip install --quiet --require-hashes --no-deps --only-binary :all: -r requirements/serve.lock
	build/sbom/backend/bin/pip install --quiet --require-hashes --no-deps --only-binary :all: -r requirements/build.lock
	build/sbom/tool/bin/pip install --quiet --require-hashes --no-deps --only-binary :all: -r requirements/sbom.lock
	build/sbom/backend/bin/pip wheel --quiet --no-deps --no-index --no-build-isolation --wheel-dir build/sbom/wheel .
	build/sbom/image/bin/pip install --quiet --no-deps --no-index build/sbom/wheel/lakegate-*.whl
	build/sbom/image/bin/pip uninstall --quiet --yes pip setuptools
	build/sbom/tool/bin/cyclonedx-py environment build/sbom/image/bin/python --pyproject pyproject.toml --output-reproducible \
	  --output-format JSON --output-file dist/sbom.cdx.json --validate
	$(BIN)/python -m tests.console.sbom dist/sbom.cdx.json
	rm -rf build/sbom

wheel: setup ## Build the source archive and the wheel in dist/
	$(BIN)/python -m build --no-isolation

clean: ## Remove the generated files of this checkout; the cache in the home directory stays
	rm -rf $(VENV) .lakegate build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
