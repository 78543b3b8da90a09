# make demo    set up, then train a small translator on built-in text, score it and translate with it
# make check   check what has changed: style, types, and the tests of modules that differ from main, in under a minute;
#              installs nothing
# make test    set up with the tools for tests, then check style, types, and all tests but the slow ones: 7 minutes
# make test-slow            the tests that are marked `slow`: long trainings, many processes, compilers, benchmarks
# make coverage             branch coverage of the tests of make test, with a floor (pyproject.toml)
# make test-portable        the tests on every kind of processor, with and without a compiler: under 30 minutes
# make test-portable-short  the same in three minutes
# make wasm-check  compile the C decoder to WebAssembly, and compare it with the committed module
# make setup   only set up: .venv with the package in it
# make docs    build the book, in English into build/docs and in Korean into build/docs/ko; a warning is an error;
#              the first time it trains the demo, which some pages embed
# make pages   run every page and notebook of the book whole (some minutes)
# make notebooks  run all notebooks from a fresh install of the extra `notebooks` (some minutes)
# make benchmarks-check  run the benchmarks beside their peers on a tiny size, JoeyNMT and Eole from PyPI too
# make gpu-check  check manyheads on the GPU of this machine against its CPU, and measure speed and memory
# make dist    build wheels and source archives, and try manyheads in an empty environment
# Another Python: make demo PYTHON=python3.12

PYTHON ?= python3
VENV := .venv
IN_VENV := $(VENV)/bin/python
PIP := $(IN_VENV) -m pip --disable-pip-version-check --quiet install --no-compile
# pip compiles on one core only
COMPILE := $(IN_VENV) -W ignore -m compileall -q -j 0 $(VENV)/lib >/dev/null || true
PYTEST := $(IN_VENV) -m pytest -n auto --maxprocesses 4 --dist loadfile
# Hundreds of processes import the same modules, and pytest compiles its own form of the tests.
unexport PYTHONDONTWRITEBYTECODE
READY := $(VENV)/.ready
PROJECTS := pyproject.toml packages/transformer-doctor/pyproject.toml
READY_FOR_TESTS := $(VENV)/.ready-for-tests

.PHONY: setup demo test test-slow coverage check test-portable test-portable-short wasm-check docs pages notebooks benchmarks-check gpu-check dist browser emulators clean

setup: $(READY)

demo: $(READY)
	$(VENV)/bin/manyheads demo

check:
	@[ -e $(READY_FOR_TESTS) ] || { \
		echo "error: nothing is set up in $(VENV). Once: make test, or make $(READY_FOR_TESTS)"; exit 2; }
	$(IN_VENV) -m ruff format --check
	$(IN_VENV) -m ruff check
	$(IN_VENV) -m mypy
	$(IN_VENV) -m tests.changed

test: $(READY_FOR_TESTS) browser
	$(IN_VENV) -m ruff check
	$(IN_VENV) -m ruff format --check
	$(IN_VENV) -m mypy
	$(PYTEST) -m "not slow"
	$(IN_VENV) -m tests.docs.korean

# worksteal: one file holds a third of these tests' time
test-slow: $(READY_FOR_TESTS)
	$(PYTEST) --dist worksteal -m slow

coverage: $(READY_FOR_TESTS) browser
	$(PYTEST) -m "not slow" --cov

test-portable: $(READY_FOR_TESTS) browser emulators
	$(IN_VENV) -m tests.portable

test-portable-short: $(READY_FOR_TESTS) emulators
	$(IN_VENV) -m tests.portable --short

# The bytes are those of Debian bookworm's clang-14: without it the check is left out (exit code 2), and says so.
wasm-check: $(READY_FOR_TESTS) emulators
	@$(IN_VENV) -m tools.wasm --check || { \
		[ $$? = 2 ] && echo "Whether engine.wasm is what the C code compiles to was not checked."; }

docs: $(READY_FOR_TESTS)
	$(IN_VENV) -m sphinx -W --keep-going -q docs build/docs
	$(IN_VENV) -m sphinx -W --keep-going -q -t ko -c docs docs/ko build/docs/ko
	$(IN_VENV) -m tools.demo_page build/docs/demo-de-en.html

pages: $(READY_FOR_TESTS)
	$(IN_VENV) -m tests.docs.pages docs/tutorial/*.md docs/explanation/*.md docs/howto/from-your-tutorial.md
	$(IN_VENV) -m tests.docs.notebooks notebooks/*.ipynb

notebooks:
	$(PYTHON) -m tests.docs.notebooks --install notebooks/*.ipynb notebooks/ko/*.ipynb

benchmarks-check: $(READY_FOR_TESTS)
	$(IN_VENV) benchmarks/peers/check.py

gpu-check: $(READY)
	$(IN_VENV) benchmarks/gpu_check.py

dist: $(IN_VENV)
	PYTHON=$(IN_VENV) .ci/release

# The browsers of the tests of the page. Without Chromium they are skipped, or fail where MANYHEADS_TESTS_NEED_BROWSER is
# set (.ci/run); without Firefox one test is skipped.
browser:
	@have() { for name; do command -v "$$name" >/dev/null && return; done; return 1; }; missing=""; \
	have chromium chromium-browser google-chrome google-chrome-stable chrome || missing="chromium"; \
	have firefox firefox-esr || missing="$$missing firefox-esr"; \
	[ "$$missing" ] || exit 0; \
	command -v apt-get >/dev/null || { echo "Not installed:" $$missing". The tests in it are skipped."; exit 0; }; \
	[ "$$(id -u)" = 0 ] && become="" || become="sudo -n"; \
	$$become apt-get -qq update >/dev/null 2>&1; \
	for name in $$missing; do \
		echo "Installing $$name, in which the page is tested."; \
		$$become apt-get -qq install --no-install-recommends -y "$$name" >/dev/null 2>&1 \
			|| echo "$$name cannot be installed: its tests are skipped. By hand: sudo apt install $$name"; \
	done

# What other processors are emulated with, and compilers for them and for WebAssembly. Without it their rows are not
# run, and say so.
emulators:
	@for name in qemu-x86_64 qemu-aarch64 aarch64-linux-gnu-gcc clang wasm-ld; do \
		command -v $$name >/dev/null || missing=1; done; \
	[ -e /usr/lib/wasm32-wasi/libc.a ] || missing=1; [ "$$missing" ] || exit 0; \
	command -v apt-get >/dev/null || { echo "No QEMU and compilers here: some processors are not tested."; exit 0; }; \
	[ "$$(id -u)" = 0 ] && become="" || become="sudo -n"; \
	echo "Installing qemu-user and compilers, with which other processors are tested."; \
	{ $$become apt-get -qq update && $$become apt-get -qq install --no-install-recommends -y \
		qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc libc6-dev clang lld wasi-libc; } >/dev/null 2>&1 \
		|| echo "They cannot be installed. By hand: sudo apt install qemu-user gcc-aarch64-linux-gnu" \
			"libc6-dev-arm64-cross clang lld wasi-libc"

clean:
	rm -rf $(VENV)

$(IN_VENV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "error: Python 3.11 or newer is needed, and $(PYTHON) is older or missing." \
			"Name another one: make PYTHON=python3.12"; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "error: $(PYTHON) cannot make virtual environments." \
			"On Debian and Ubuntu: sudo apt install python3-venv"; exit 2; }
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)

# torch first and alone: with exactly this version pip finds the build that is meant for this machine
$(READY): $(IN_VENV) constraints.txt $(PROJECTS)
	@echo "Installing into $(VENV); the first time this takes a minute or two."
	@$(PIP) "$$(grep '^torch==' constraints.txt)"
	@$(PIP) --constraint constraints.txt --editable packages/transformer-doctor --editable .
	@$(COMPILE)
	@touch $@

# In one go, not on top of $(READY): pip chooses versions and builds the package once. What is there already is
# compiled while pip fetches the rest. The names are those of [dependency-groups] of pyproject.toml; older pips know no
# --group. Of argostranslate the tests use one module, which imports nothing else.
$(READY_FOR_TESTS): $(IN_VENV) constraints.txt $(PROJECTS)
	@echo "Installing into $(VENV), with the tools for tests; the first time this takes a minute or two."
	@$(PIP) "$$(grep '^torch==' constraints.txt)"
	@{ $(COMPILE); } & \
		$(PIP) --constraint constraints.txt --editable packages/transformer-doctor --editable ".[all]" $$($(IN_VENV) -c \
			'import re, tomllib; groups = tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]; \
			print(*(re.match(r"[\w.-]+", name)[0] for group in groups.values() for name in group if isinstance(name, str)))'); \
		installed=$$?; wait; exit $$installed
	@$(PIP) --no-deps "$$(grep '^argostranslate==' constraints.txt)"
	@$(COMPILE)
	@touch $(READY) $@
