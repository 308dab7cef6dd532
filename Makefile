# crumb-nb. `make help` lists the targets. Everything happens inside $(VENV); no target needs root.
PYTHON  ?= python3
VENV    ?= .venv
TORCH   ?= torch==2.13.0
# real data are meant to be used: with DATA the profile is local, unless it is named
PROFILE ?= $(if $(DATA),local,mini)
DATA    ?=
SYSTEMS ?=
IDS     ?=
JOBS    ?= 2
ARGS    ?=

BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help paper check test lab docs bench readme export mini-data lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '\nvariables: DATA=folder  PROFILE=mini|local|hub (local if DATA is given, else mini)  SYSTEMS="bm25 dense …"  IDS="artifact …"  JOBS=2  PYTHON=python3.12\n'

# The environment: made once, and again only when what it is made of has changed.
$(STAMP): requirements.lock settings.ini setup.py pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if (3, 11) <= v < (3, 14) else f"Python 3.11, 3.12 or 3.13 is needed, this is {v.major}.{v.minor}; try: make PYTHON=python3.12 …")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) (about 2.5 GB on disk; the pinned torch first)"
	@$(BIN)/python -m pip install --quiet $(TORCH)
	@$(BIN)/python -m pip install --quiet -r requirements.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

paper: $(STAMP) ## regenerate every table, figure and the report of PROFILE into figures/PROFILE/
	@$(BIN)/crumb-nb paper $(IDS) --profile $(PROFILE) --jobs $(JOBS) $(if $(DATA),--data "$(DATA)") $(if $(SYSTEMS),--systems "$(SYSTEMS)") --keep-going $(ARGS)

check: $(STAMP) ## compare every artifact of PROFILE with the expected values of its manifest
	@$(BIN)/crumb-nb paper $(IDS) --profile $(PROFILE) --jobs $(JOBS) $(if $(DATA),--data "$(DATA)") --check $(ARGS)

test: $(STAMP) ## run everything that CI runs: the mini profile from nothing, then all tests
	@rm -rf build/mini build/.work build/cache
	@CRUMB_NB_CACHE="$(CURDIR)/build/cache" $(BIN)/crumb-nb paper --profile mini --jobs $(JOBS) --out build --check
	@HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-ci} $(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(ARGS)

lab: $(STAMP) ## open JupyterLab on the notebooks
	@$(BIN)/jupyter lab --notebook-dir nbs nbs/start.ipynb

docs: $(STAMP) ## render notebooks and API pages to _docs/
	@$(BIN)/crumb-nb docs --out _docs

bench: $(STAMP) ## measure speed and memory against the named peers, write figures/bench/
	@$(BIN)/python -m tests.bench $(ARGS)

readme: $(STAMP) ## make README.md from nbs/index.ipynb
	@$(BIN)/python .ci/readme.py

export: $(STAMP) ## clean the notebooks and export the modules
	@$(BIN)/nbdev_clean && $(BIN)/nbdev_export

mini-data: $(STAMP) ## rebuild the passage corpora of the embedded collections from their documents
	@$(BIN)/python -c "from crumb_nb.chunkers.build_mini import build_mini; build_mini()"

lock: ## write requirements.lock anew from settings.ini, in an environment of its own
	@$(PYTHON) .ci/lock.py "$(TORCH)"

clean: ## remove the environment, caches and everything regenerated that is not committed
	@rm -rf $(VENV) _docs build dist *.egg-info .pytest_cache .hypothesis .cache figures/local figures/hub figures/.work
