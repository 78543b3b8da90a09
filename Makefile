# make demo       set up, then train a small translator on built-in text, score it and translate with it
# make setup      only set up: .venv with manyheads in it
# make check      style, types, and the tests of modules that differ from main, in under a minute; installs nothing
# make test       set up with the tools for tests, then style, types, and all tests but the slow ones: 10 minutes
# make test-slow  the tests that are marked `slow`: long trainings, many processes, compilers
# make docs       the book, in English in build/docs and in Korean in build/docs/ko; a warning is an error; the first time
#                 it trains the demo, which some pages embed. REPOSITORY=https://github.com/OWNER/NAME, a public copy,
#                 adds links that open the notebooks in Colab and Binder
# Everything else is a command of its own: CONTRIBUTING.md lists them. Another Python: make demo PYTHON=python3.12

PYTHON ?= python3
VENV := .venv
IN_VENV := $(VENV)/bin/python
PIP := $(IN_VENV) -m pip --disable-pip-version-check --quiet install --no-compile
# pip compiles on one core only. Left out is half of all that hardly anything imports; an import compiles it too.
RARE := tests?|testing|_inductor|_vendor|transformers|openai|pandas|matplotlib|fontTools|debugpy|mypyc?|networkx|onnx\w*
COMPILE := $(IN_VENV) -W ignore -m compileall -q -j 0 -x '/($(RARE))/' $(VENV)/lib >/dev/null || true
UV := $(IN_VENV) -m uv pip install --quiet --no-deps --python $(IN_VENV) --torch-backend=auto
# The tests of `make test`; .ci/run gives the slow ones to the same processes, which then import everything once.
TESTS := not slow
# A process more than cores, four at most, as many tests wait for a server or a browser. worksteal: few files hold most
# of the time, and no process is idle at the end.
PYTEST = $(IN_VENV) -m pytest -n $(shell $(PYTHON) -c 'import os; print(min(4, 1 + (os.cpu_count() or 1)))') --dist worksteal
# Hundreds of processes import the same modules, and pytest compiles its own form of the tests.
unexport PYTHONDONTWRITEBYTECODE
READY := $(VENV)/.ready
READY_FOR_TESTS := $(VENV)/.ready-for-tests
PUBLIC_COPY := $(if $(REPOSITORY),-D repository=$(REPOSITORY))
PACKAGES := --editable packages/bitext --editable packages/transformer-doctor
PROJECTS := constraints.txt pyproject.toml packages/bitext/pyproject.toml packages/transformer-doctor/pyproject.toml

.PHONY: demo setup check test test-slow docs

demo: $(READY)
	$(VENV)/bin/manyheads demo

setup: $(READY)

check:
	@[ -e $(READY_FOR_TESTS) ] || { \
		echo "error: nothing is set up in $(VENV). Once: make test, or make $(READY_FOR_TESTS)"; exit 2; }
	$(IN_VENV) -m ruff format --check
	$(IN_VENV) -m ruff check
	$(IN_VENV) -m mypy
	$(IN_VENV) -m tools.changed

test: $(READY_FOR_TESTS)
	@.ci/install browsers
	$(IN_VENV) -m ruff check
	$(IN_VENV) -m ruff format --check
	$(IN_VENV) -m mypy
	$(PYTEST) -m "$(TESTS)"
	$(IN_VENV) -m tools.korean

test-slow: $(READY_FOR_TESTS)
	$(PYTEST) -m "slow and not weekly"

docs: $(READY_FOR_TESTS)
	$(IN_VENV) -m sphinx -W --keep-going -q $(PUBLIC_COPY) docs build/docs
	$(IN_VENV) -m sphinx -W --keep-going -q -t ko $(PUBLIC_COPY) -c docs docs/ko build/docs/ko
	$(IN_VENV) -m tools.demo_page build/docs/demo-de-en.html

$(IN_VENV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "error: Python 3.11 or newer is needed, and $(PYTHON) is older or missing." \
			"Name another one: make PYTHON=python3.12"; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "error: $(PYTHON) cannot make virtual environments." \
			"On Debian and Ubuntu: sudo apt install python3-venv"; exit 2; }
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)

# torch first and alone, in the build for this machine. For Linux PyPI has the one with CUDA; uv looks for a GPU, and takes
# the build from PyTorch's index, if this answers within ten seconds. What torch needs follows with all the rest.
define INSTALL_TORCH
@torch=$$(grep '^torch==' constraints.txt); \
	if [ "$$(uname)" = Linux ] && $(PIP) --constraint constraints.txt uv \
		&& UV_HTTP_RETRIES=0 timeout 10 $(UV) --dry-run $$torch 2>/dev/null && $(UV) $$torch; then exit; fi; \
	[ "$$(uname)" != Linux ] || echo "PyTorch's index does not answer, so pip installs torch." \
		"PyPI's contains CUDA: 3 GB to download, 5 GB on the disk."; \
	$(PIP) $$torch
endef

$(READY): $(IN_VENV) $(PROJECTS)
	@echo "Installing into $(VENV); the first time this takes a minute or two."
	$(INSTALL_TORCH)
	@$(PIP) --constraint constraints.txt $(PACKAGES) --editable ".[train]"
	@$(COMPILE)
	@touch $@

# In one go, not on top of $(READY): pip chooses versions and builds the package once. What is there already is
# compiled while pip fetches the rest. pip knows --group since version 25.1. Of argostranslate the tests use one module,
# which imports nothing else.
$(READY_FOR_TESTS): $(IN_VENV) $(PROJECTS)
	@echo "Installing into $(VENV), with the tools for tests; the first time this takes a minute or two."
	@$(PIP) "pip>=25.1"
	$(INSTALL_TORCH)
	@{ $(COMPILE); } & \
		$(PIP) --constraint constraints.txt $(PACKAGES) --editable . --group dev; \
		installed=$$?; wait; exit $$installed
	@$(PIP) --no-deps "$$(grep '^argostranslate==' constraints.txt)"
	@$(COMPILE)
	@touch $(READY) $@
