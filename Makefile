# Every target installs its dependencies on a machine with python3 (3.11 to 3.13), make and the package registries.

.DEFAULT_GOAL := help

# These are variables of a pipeline. On the command line they would change nothing, and another shape would be deployed.
NOT_HERE := $(strip $(foreach name,FILE KNOWLEDGE,$(if $(filter command line,$(origin $(name))),$(name))))
ifneq ($(NOT_HERE),)
$(error make has no variable $(NOT_HERE): say ARGS="-c file=FILE.toml" or ARGS="-c knowledge=FOLDER")
endif
# Folders and messages are those of ENV.
ifneq ($(filter env=%,$(ARGS)),)
$(error ARGS names another environment: say ENV=$(patsubst env=%,%,$(filter env=%,$(ARGS))))
endif
.PHONY: console-parts screenshots help demo hosts npm-package test check code test-browser test-cloud test-packages test-slow test-python wheel bench attacks eval peers lint types imports licences docs format sbom layers choice artifacts credentials bootstrap synth diff engine sam drift pipeline smoke left deploy destroy e2e test-services sam-e2e up down test-containers

export UV_PROJECT_ENVIRONMENT ?= .venv
export UV_PYTHON_DOWNLOADS := never
# Where this is set, each of the tests' processes compiles the modules that it imports, with pytest's assertions.
unexport PYTHONDONTWRITEBYTECODE
# Version managers that uv does not know may provide several interpreters: use any suitable one.
PYTHON := $(shell sh tools/find_python.sh)
UV := .uv/bin/uv
RUN := $(UV) run --frozen --python $(PYTHON)
INFRA := $(RUN) --group infra
CHECKED := $(INFRA) --group browser
# From npm, checked against the lockfile's hashes.
CDK_PROGRAM := build/cdk-cli/node_modules/aws-cdk/bin/cdk
CDK := $(INFRA) node $(CDK_PROGRAM)
# Each release pins hundreds of packages, so it stays apart from the project's.
SAM = SAM_CLI_TELEMETRY=0 $(abspath $(UV)) tool run --python $(PYTHON) --from aws-sam-cli==1.170.0
ENV ?= dev
ARCH ?= x86_64
PYTHON_VERSION ?= 3.12
# The CDK's app and command line use these to select what to deploy.
CONTEXT = -c env=$(ENV) $(ARGS)
DEMO_CORPUS := layers/core/python/cragside/entrypoints/samples/corpus
DEMO_STORE := build/knowledge/demo
# A baked store depends on the documents, the program and its libraries.
DEMO_SOURCES := $(wildcard $(DEMO_CORPUS)/*) $(shell find layers/core/python -name '*.py' -o -name '*.json') uv.lock
# The held-out half is for final figures alone.
HALF ?= tuning
# `make e2e` fails if the emulator is unavailable; E2E=optional skips it.
E2E ?= required
# The same for tests of real servers and `make test-services`.
SERVERS ?= required
# And for tests of the compose file in a container engine.
CONTAINERS ?= required
COMPOSE := docker compose --file docker-compose.local.yml
# What depends on the interpreter: every module's import, annotations that are read, parsers, SQLite, sockets, signals, forks.
INTERPRETER := $(addprefix tests/unit/,test_every_module.py test_hostile_texts.py test_long_texts.py cli/test_interrupts.py \
  composition crag documents entrypoints http/test_http_app.py http/test_openapi.py lightrag/test_sqlite_store.py local proxy)
# The longest first: two run at a time. tests/conftest.py says which tests are in which stage.
STAGES := test-services test-slow test-cloud test test-browser test-packages test-python code
# The tests of a file run in one process, because they share servers and stores. Files run in an order in which the
# slowest are not last.
PARALLEL := -n logical --dist loadfile --no-loadscope-reorder --durations=10 --durations-min=1

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 15

$(UV): tools/uv.txt
	@test -n "$(PYTHON)" || { echo "cragside needs Python 3.11, 3.12 or 3.13; none was found." >&2; exit 1; }
	@sh tools/install_uv.sh $(PYTHON) .uv
	@touch $(UV)

$(CDK_PROGRAM): tools/cdk/package-lock.json | $(UV)
	@mkdir -p build/cdk-cli
	@cp tools/cdk/package.json tools/cdk/package-lock.json build/cdk-cli
	@$(INFRA) npm ci --silent --ignore-scripts --no-audit --no-fund --prefix build/cdk-cli
	@touch $@

demo: $(UV) ## index the included corpus and run prompts through each route
	@$(RUN) --no-dev cragside demo

test: $(UV) ## run the tests that need no server and are not slow, on all processors
	@$(RUN) pytest $(PARALLEL) -m "stage(name='test')" $(ARGS) $(if $(filter tests/%,$(ARGS)),,tests/unit tests/contract)

check: $(UV) ## run what CI runs, two stages at a time: lint, types, imports, licences, docs, every test, and a second Python
	@$(CHECKED) true # two stages must not install into the environment at once
	@sh tools/check.sh $(STAGES)

code: lint types imports licences docs ## check the code and its pages without a test

test-services: $(UV) ## run the tests that need PostgreSQL, Neo4j, Redis, Ollama or SearXNG, and those of hosts
	@SERVERS=$(SERVERS) $(CHECKED) pytest $(PARALLEL) -m "stage(name='test-services')" $(ARGS)

test-browser: $(UV) ## run the tests of the console in Chromium
	@$(CHECKED) pytest $(PARALLEL) -m "stage(name='test-browser')" $(ARGS)

test-cloud: $(UV) ## build the layers, deploy into an emulator of AWS, and test both
	@$(INFRA) pytest $(PARALLEL) -m "stage(name='test-cloud')" $(ARGS)

test-packages: $(UV) ## run the guides, the wheel and generated clients, which install packages
	@$(INFRA) pytest $(PARALLEL) -m "stage(name='test-packages')" $(ARGS)

test-slow: $(UV) ## run the tests of infrastructure, those of several processes, and those of thousands of inputs
	@$(INFRA) pytest $(PARALLEL) -m "stage(name='test-slow')" $(ARGS)

test-python: $(UV) ## run what depends on the interpreter, on the newest other Python that is installed
	@UV=$(UV) sh tools/test_newest_python.sh $(PYTHON) $(PARALLEL) -m "interpreter or stage(name='test')" $(ARGS) $(INTERPRETER)

wheel: $(UV) ## build dist/cragside-*.whl, which `uv tool install` and pipx install
	@rm -f dist/cragside-*.whl
	@$(UV) build --quiet --wheel --python $(PYTHON) --out-dir dist
	@ls dist/cragside-*.whl

lint: $(UV)
	@$(RUN) ruff check
	@$(RUN) ruff format --check
	@$(RUN) zizmor --offline --quiet --no-progress .github

types: $(UV)
	@$(INFRA) mypy

imports: $(UV)
	@$(RUN) lint-imports

licences: $(UV)
	@$(CHECKED) python -m tools.licences

docs: $(UV) ## compare the pages with the code that they describe
	@$(RUN) python -m tools.docs

format: $(UV) ## format the code
	@$(RUN) ruff check --fix
	@$(RUN) ruff format

bench: $(UV) ## compare speed and memory with other programs, as ratios of one run
	@for name in embedded enrich indexing limits passthrough scale coldstart; do $(RUN) python -m benchmarks.$$name || exit 1; done

attacks: $(UV) ## run the attack tests, and write their counts to docs/security.md
	@$(RUN) python -m tools.attack_table

hosts: $(UV) ## ask with the libraries of the hosts, and write what works to README.md
	@$(INFRA) python -m tools.host_table

npm-package: $(UV) ## build the npm package in build/npm
	@mkdir -p build/npm
	@$(INFRA) python -m tools.npm_package build/npm

eval: $(UV) ## measure the evidence for everyday questions; CLAP-NQ too if CLAPNQ_DIR is set
	@$(RUN) python evals/everyday.py --half $(HALF)
	@$(RUN) python evals/changes.py --half $(if $(filter held-out,$(HALF)),held-out,development)
	@[ -z "$(CLAPNQ_DIR)" ] || $(RUN) python evals/clapnq.py --data "$(CLAPNQ_DIR)"

peers: $(UV) ## compare the evidence for everyday questions with that of plain BM25 and of LightRAG's server
	@$(RUN) python evals/peers.py --half $(HALF)

console-parts: $(UV) ## fetch and bundle what the console takes from other projects
	@$(INFRA) python -m tools.vendor_console

screenshots: $(UV) ## take the pictures of docs/console.md anew
	@SCREENSHOTS=1 $(CHECKED) pytest tests/console/test_screenshots.py $(ARGS)

layers: $(UV) ## build the Lambda layers for ARCH and PYTHON_VERSION, test them with a question, list their sizes
	@$(RUN) python -m layers.lightrag.build --arch $(ARCH) --python $(PYTHON_VERSION) --canary --sizes

sbom: $(UV) ## write the wheel and its bill of materials (CycloneDX) to dist; `make layers` writes those of the layers
	@$(UV) build --quiet --python $(PYTHON) --wheel --out-dir dist
	@$(RUN) python -m tools.bill dist

# What cannot be deployed is refused before anything is built. The file says what the layers are built for.
choice: $(UV)
	@mkdir -p build && $(RUN) python -m infra.choice $(CONTEXT) > build/choice

$(DEMO_STORE)/baked.json: $(DEMO_SOURCES) | choice
	@rm -rf $(DEMO_STORE)
	@$(RUN) cragside bake $(DEMO_CORPUS) --out $(DEMO_STORE)

artifacts: choice $(DEMO_STORE)/baked.json # the files that ENV deploys: layers for its runtime, and the demo's knowledge
	@$(RUN) python -m layers.lightrag.build $$(cat build/choice)

bootstrap: $(CDK_PROGRAM) ## prepare an account for the CDK, once: ARGS=aws://ACCOUNT/REGION
	@$(CDK) bootstrap --app "" $(ARGS)

synth: artifacts ## write the CloudFormation templates of ENV (dev, staging, prod, or any name with ARGS="-c like=dev") to build/cdk
	@rm -f build/cdk/$(ENV)/cragside-*.json
	@$(INFRA) python -m infra.app $(CONTEXT) --out build/cdk/$(ENV)
	@ls build/cdk/$(ENV)/cragside-$(ENV)-*.template.json

# Whoever has no credentials hears it before anything is built.
credentials: $(UV)
	@$(RUN) python -m infra.preflight $(CONTEXT)

diff: credentials artifacts $(CDK_PROGRAM) ## show what deploying ENV would change
	@$(CDK) diff $(CONTEXT)

# Whoever has no container engine hears it before anything is built.
engine: $(UV)
	@$(SAM) python infra/engine.py

sam: engine synth ## serve the function of ENV in a container on loopback, with the databases of `make up`; needs Docker
	@$(RUN) python -m infra.local build/cdk/$(ENV) --out build/sam/$(ENV)
	@cd build/sam/$(ENV) && $(SAM) sam local start-api $$(cat arguments)

drift: credentials artifacts $(CDK_PROGRAM) ## compare what is deployed with its templates; fails if somebody changed it by hand
	@$(CDK) drift --fail $(CONTEXT)

pipeline: $(CDK_PROGRAM) ## deploy the roles of a pipeline for ENV: REPOSITORY=github:OWNER/NAME or gitlab:GROUP/PROJECT
	@$(CDK) deploy --app "python -m infra.pipeline" --output build/cdk/pipeline -c repository=$(REPOSITORY) $(CONTEXT)

smoke: $(UV) ## ask what is deployed a question, and check that the answer is cited; ARGS='--question "..."' asks another
	@$(RUN) python -m infra.smoke $(CONTEXT)

# Stacks that the arguments do not name would stay, and cost money.
left: $(UV)
	@$(RUN) python -m infra.preflight --stacks $(CONTEXT)

deploy: left artifacts $(CDK_PROGRAM) ## deploy ENV with your AWS credentials
	@$(CDK) deploy --all $(CONTEXT)

destroy: CONTEXT = -c env=$(ENV) -c destroying=true $(ARGS)
destroy: left $(CDK_PROGRAM) ## destroy the stacks of ENV; builds nothing
	@$(CDK) destroy --all $(CONTEXT)

e2e: $(UV) ## deploy dev into an AWS emulator, call it, destroy it
	@E2E=$(E2E) $(INFRA) pytest tests/e2e -m e2e -s $(ARGS)

up: ## start the whole stack in containers: docker-compose.local.yml, with the secrets of .env
	@$(COMPOSE) up --detach --build --wait

down: ## end the stack and keep its data
	@$(COMPOSE) --profile "*" down

test-containers: $(UV) ## bring the compose file up in a container engine and test it; takes minutes, not part of `make check`
	@CONTAINERS=$(CONTAINERS) $(RUN) pytest tests/containers --ignore-glob "*/test_sam*" -m containers -s $(ARGS)

sam-e2e: $(UV) ## serve the function with `sam local` in a container engine and ask it; takes minutes, not part of `make check`
	@CONTAINERS=$(CONTAINERS) $(INFRA) pytest tests/containers/test_sam.py tests/containers/test_sam_databases.py -m containers -s $(ARGS)
