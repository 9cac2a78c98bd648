# Every target sets up what it needs on a machine with python3 (3.11 to 3.13), make and the package registries.

.DEFAULT_GOAL := help
.PHONY: help demo test check bench eval lint types imports format

export UV_PROJECT_ENVIRONMENT ?= .venv
export UV_PYTHON_DOWNLOADS := never
# A machine may offer several interpreters under version managers that uv does not know: take any of them that fits.
PYTHON := $(shell sh tools/find_python.sh)
UV := .uv/bin/uv
RUN := $(UV) run --frozen --python $(PYTHON)

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(UV):
	@test -n "$(PYTHON)" || { echo "cragside needs Python 3.11, 3.12 or 3.13; none was found." >&2; exit 1; }
	@sh tools/install_uv.sh $(PYTHON) .uv

demo: $(UV) ## index the shipped corpus and run a prompt down each route
	@$(RUN) --no-dev cragside demo

test: $(UV) ## every test that needs no server, under four minutes from scratch
	@$(RUN) pytest -m "not real_ollama and not real_searxng" $(ARGS)

check: $(UV) lint types imports ## what CI runs: lint, types, imports, every test, on each Python that is present
	@$(RUN) pytest $(ARGS)
	@UV=$(UV) sh tools/test_other_pythons.sh $(PYTHON)

lint: $(UV)
	@$(RUN) ruff check
	@$(RUN) ruff format --check

types: $(UV)
	@$(RUN) mypy

imports: $(UV)
	@$(RUN) lint-imports

format: $(UV) ## put the code in shape
	@$(RUN) ruff check --fix
	@$(RUN) ruff format

bench: $(UV) ## speed and memory side by side with peers, as ratios of one run
	@for name in embedded enrich passthrough scale; do $(RUN) python -m benchmarks.$$name || exit 1; done

eval: $(UV) ## answer quality on CLAP-NQ; CLAPNQ_DIR names its folder
	@$(RUN) python evals/clapnq.py --data "$(CLAPNQ_DIR)"
