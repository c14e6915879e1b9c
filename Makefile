# The commands of the project. Each makes the environment it needs under .venv, again when pyproject.toml has changed.

PYTHON ?= python3
VENV ?= .venv
PYTEST ?= -n 2
# Texts that the names of the rows contain which `make test-thirdparty` runs; all, if there are none.
ROWS ?=

# Where `make docs-serve` listens.
PORT ?= 8000

# The torch of `make test-interop`, for which a build for CPUs is enough: a requirement, a file or options of pip.
TORCH ?= torch==2.13.0

# What `make test-matrix` pins: the lower ends of the dependencies in pyproject.toml, and the newest JAX.
OLDEST := jax==0.10.0 jaxlib==0.10.0 numpy==2.0.* scipy==1.17.* optree==0.14.0
NEWEST := jax==0.12.*
PYTHON_OLDEST ?= $(call interpreter,3.11)
PYTHON_NEWEST ?= $(or $(call interpreter,3.14),$(call interpreter,3.13))

EXAMPLES := $(filter-out examples/datasets.py,$(wildcard examples/*.py)) examples/numpy_gallery examples/torch_side_by_side/compare.py

in-venv := $(VENV)/bin/python -m

# The tests start some fifty processes, each of which would compile the library from its source otherwise.
unexport PYTHONDONTWRITEBYTECODE

.NOTPARALLEL:

.PHONY: demo examples test test-all lint pytest docs docs-serve test-docs planted-faults test-matrix test-thirdparty thirdparty test-interop interop test-torch against-torch test-gpu on-gpu bench dist demo-wheel clean help

demo: $(VENV)/with-library  ## fit NIST's regression problems with exact derivatives (what plain `make` does)
	$(VENV)/bin/python examples/nist_regression.py

examples: $(VENV)/with-examples  ## train networks on real data, and the other examples
	@set -e; for example in $(EXAMPLES); do echo "== $$example"; $(VENV)/bin/python $$example; done

test: lint pytest  ## lint, type checks and tests

test-all:  ## the long suite: make test with whole tables, 10,000 random programs and dense interrupts
	$(MAKE) test PYTEST="$(PYTEST) --all"

lint: $(VENV)/with-test
	$(in-venv) ruff check .
	$(in-venv) ruff format --check .
	$(in-venv) mypy
	$(in-venv) basedpyright --project tests/typed_project --pythonpath $(VENV)/bin/python

pytest: $(VENV)/with-test
	$(in-venv) pytest $(PYTEST)

docs: $(VENV)/with-docs  ## build the documentation site, in docs/_build/html
	$(in-venv) sphinx -W --keep-going -q -b html -d docs/_build/doctrees docs docs/_build/html
	@echo "The site is docs/_build/html/index.html; make docs-serve shows it."

docs-serve: docs  ## the site on http://127.0.0.1:8000
	$(in-venv) http.server --bind 127.0.0.1 --directory docs/_build/html $(PORT)

test-docs: docs $(VENV)/with-test  ## the site in a headless Chromium, where there is one
	$(in-venv) pytest -q tests/test_site.py tests/test_site_browser.py --all

planted-faults: $(VENV)/with-test  ## whether the tests find mistakes that are planted in the library
	$(VENV)/bin/python tests/planted_faults.py

test-matrix:  ## the tests with the oldest and with the newest Python and JAX that are supported
	$(MAKE) pytest VENV=.venv-oldest PYTHON="$(or $(PYTHON_OLDEST),$(error Python 3.11 is not here: set PYTHON_OLDEST))" PINS="$(OLDEST)"
	$(MAKE) pytest VENV=.venv-newest PYTHON="$(or $(PYTHON_NEWEST),$(error neither Python 3.14 nor 3.13 is here: set PYTHON_NEWEST))" PINS="$(NEWEST)"

test-thirdparty:  ## functions of published packages, which it installs, in every mode
	$(MAKE) thirdparty VENV=.venv-thirdparty

thirdparty: $(VENV)/with-test $(VENV)/with-thirdparty
	$(VENV)/bin/python -m pytest -q tests/test_holders.py
	PYTHONPATH=tests $(in-venv) thirdparty $(ROWS)

test-interop:  ## functions with torch and other libraries inside, and ftrans inside of theirs, and ONNX
	$(MAKE) interop VENV=.venv-interop PINS="$(TORCH)"

interop: $(VENV)/with-test $(VENV)/with-interop $(VENV)/with-onnx
	$(in-venv) pytest -q tests/test_torch_interop.py tests/test_nn_optim_torch.py tests/test_torch_distributions.py tests/test_pretrained_torch.py tests/test_onnx.py tests/test_holders.py tests/test_recipes.py tests/test_nn_callbacks.py tests/test_nn_data.py tests/test_docs.py

test-torch:  ## layers, functions, optimizers and distributions against torch itself, and the list of its names
	$(MAKE) against-torch VENV=.venv-interop PINS="$(TORCH)"

against-torch: $(VENV)/with-test $(VENV)/with-interop
	$(in-venv) pytest -q $(shell grep -l 'importorskip("torch")' tests/test_*.py)

test-gpu:  ## the sample table and the benchmarks on a GPU, where there is one
	@if nvidia-smi -L 2>/dev/null; then $(MAKE) on-gpu VENV=.venv-gpu; else echo "There is no NVIDIA GPU here: nothing was run."; fi

on-gpu: $(VENV)/with-gpu $(VENV)/with-test $(VENV)/with-bench
	$(VENV)/bin/python tests/gpu.py
	$(in-venv) benchmarks --device gpu

bench: $(VENV)/with-bench  ## the benchmarks, side by side with what one would use instead
	$(in-venv) benchmarks

dist: $(VENV)/with-dist  ## the wheel and the sdist, in dist/, and whether they have what they should
	rm -rf dist
	$(in-venv) build --outdir dist .
	$(in-venv) twine check --strict dist/*
	$(VENV)/bin/python tests/wheel.py dist

demo-wheel: dist  ## README's tour and the demo in an environment with nothing but the wheel
	$(call make-environment,.venv-wheel)
	.venv-wheel/bin/python -m pip --quiet --disable-pip-version-check install dist/*.whl
	.venv-wheel/bin/python -P tests/wheel.py tour
	.venv-wheel/bin/python -P -m ftrans doctor
	.venv-wheel/bin/python -P examples/nist_regression.py

clean:  ## remove environments and caches
	rm -rf dist .venv .venv-* .pytest_cache .mypy_cache .ruff_cache docs/_build docs/reference/generated

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*  ## /make \1\t/p' Makefile | expand -t 20

$(VENV)/made: pyproject.toml
	$(call make-environment,$(VENV))
	@touch $@

$(VENV)/with-library: $(VENV)/made
	$(in-venv) pip --quiet --disable-pip-version-check install --editable . $(PINS)
	@touch $@

# One stamp for each extra of pyproject.toml.
$(VENV)/with-%: $(VENV)/made
	$(in-venv) pip --quiet --disable-pip-version-check install --editable '.[$*]' $(PINS)
	@touch $@

# Where Debian's Python comes without ensurepip, its own pip puts the environment's in place.
make-environment = $(PYTHON) -m venv --clear $(1) || \
  { $(PYTHON) -m venv --clear --without-pip $(1) && $(PYTHON) -m pip --quiet --python $(1)/bin/python install pip; }

# A Python of the given version: on the path, from pyenv (whose shims need to be told which), or from uv.
python-that-runs = $(shell PYENV_VERSION=$(1) python$(1) -c 'import sys; print(sys.executable)' 2>/dev/null)
interpreter = $(or $(python-that-runs),$(shell uv python find $(1) 2>/dev/null))
