# make demo and make test need python3 (3.11 or later), make and a package index; a second run starts at once.

PYTHON ?= python3
VENV ?= .venv
bin := $(VENV)/bin
pip := $(bin)/python -m pip --disable-pip-version-check -q
# the new core, in next/, has an environment of its own: both packages are called isodus
NEXT_VENV ?= next/.venv
next := $(abspath $(NEXT_VENV))/bin
peers := 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["bench"], sep="\n")'

.PHONY: demo test src-test next-test test-lowest test-wheel lint src-lint next-lint docs bench bench-here next-bench paper clean

demo: $(VENV)/.installed
	$(bin)/isodus demo

test: src-test next-test

lint: src-lint next-lint

# a process a core, each with one thread of BLAS: more get in the way of one another
src-test: $(VENV)/.installed-test
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(bin)/python -m pytest -n auto --dist worksteal

src-lint: $(VENV)/.installed-test
	$(bin)/ruff check .
	$(bin)/ruff format --check .
	$(bin)/mypy

# the first test asserts where isodus was imported from
next-test: $(NEXT_VENV)/.installed
	cd next && PYTHONPATH=src OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(next)/python -m pytest -n auto --dist worksteal \
	  tests/test_where.py tests src

next-lint: $(NEXT_VENV)/.installed
	cd next && $(next)/ruff check . && $(next)/ruff format --check . && $(next)/mypy

# the site, in docs/_build/html; it needs no network once the packages are there
docs: $(VENV)/.installed-docs
	$(bin)/sphinx-build -W --keep-going -b html docs docs/_build/html

# the tests on the oldest versions that pyproject.toml allows
test-lowest:
	$(MAKE) VENV=.venv-lowest PIP_CONSTRAINT=$(CURDIR)/tests/lowest.txt src-test

# what a user installs: the wheel in an empty environment, from elsewhere than this folder
test-wheel:
	rm -rf .venv-wheel
	@$(PYTHON) -m venv .venv-wheel
	@.venv-wheel/bin/python -m pip --disable-pip-version-check -q wheel --no-deps -w .venv-wheel/dist .
	@.venv-wheel/bin/python -m pip --disable-pip-version-check -q install .venv-wheel/dist/isodus-*.whl
	cd .venv-wheel && bin/isodus demo && bin/isodus --version

# everything that this machine can measure, against peers in an environment of their own; the first one writes tables
bench:
	$(MAKE) VENV=.venv-bench bench-here

# one that fails keeps no other from running
bench-here: $(VENV)/.installed-bench
	@failed=; for run in 'peers.py --write docs/benchmarks.md' paper_2d.py scaling.py basis.py paper_speed.py sampling.py mcmc.py \
	  generative.py structure_gaussian.py 'structure_samples.py --quick' structure_fourbody.py 'selection.py --quick' real_data.py \
	  'accuracy.py --quick' 'intervals.py --quick' 'phi4.py --sizes 4 8' streams.py 'stress.py --count 1000000' 'soak.py --fits 1000'; \
	do echo "== benchmarks/$$run"; $(bin)/python benchmarks/$$run || failed="$$failed $$run;"; done; \
	test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

# every script in next/benchmarks, in the order of their names; one that fails keeps no other from running
next-bench: $(NEXT_VENV)/.installed
	@cd next; failed=; for run in $(sort $(notdir $(wildcard next/benchmarks/*.py))); do \
	  echo "== next/benchmarks/$$run"; PYTHONPATH=src $(next)/python benchmarks/$$run || failed="$$failed $$run"; done; \
	test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

# the paper's experiments on the new core: one of the studies in next/paper, or all; standard ones write next/docs/paper.md
STUDY ?= all
SIZE ?= quick
paper: $(NEXT_VENV)/.installed
	cd next && PYTHONPATH=src OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(next)/python -m paper $(STUDY) --size $(SIZE)

clean:
	rm -rf .venv .venv-lowest .venv-wheel .venv-bench .hypothesis .pytest_cache .mypy_cache .ruff_cache docs/_build docs/auto_gallery docs/reference
	rm -rf next/.venv next/.hypothesis next/.pytest_cache next/.mypy_cache next/.ruff_cache

ifdef PIP_CONSTRAINT
export PIP_CONSTRAINT
endif

%/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("isodus needs Python 3.11 or later; this is " + sys.version.split()[0] + ". Set one: make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else 0'
	@echo "making a virtual environment in $*"
	@$(PYTHON) -m venv $*

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	@echo "installing isodus and what it needs into $(VENV); this takes a minute"
	@$(pip) install -e .
	@touch $@

# a peer that cannot be had here is left out, and the tables say so
$(VENV)/.installed-bench: pyproject.toml | $(VENV)/bin/python
	@echo 'installing isodus and its peers into $(VENV); this takes some minutes'
	@$(pip) install -e '.[bench,dask]' || { $(pip) install -e '.[dask]' && $(bin)/python -c $(peers) | while read peer; do \
	  $(pip) install "$$peer" || echo "left out: $$peer"; done; }
	@if command -v Rscript > /dev/null && ! Rscript -e 'library(huge)' > /dev/null 2>&1; then \
	  apt-get install -y --no-install-recommends r-cran-huge || echo "left out: R's huge (on Debian: r-cran-huge)"; fi
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-%: pyproject.toml | $(VENV)/bin/python
	@echo 'installing isodus and its tools ($*) into $(VENV); this takes a minute'
	@$(pip) install -e '.[$*]'
	@touch $@ $(VENV)/.installed

$(NEXT_VENV)/.installed: next/pyproject.toml | $(NEXT_VENV)/bin/python
	@echo 'installing the new core and its tests into $(NEXT_VENV); this takes a minute'
	@$(next)/python -m pip --disable-pip-version-check -q install -e 'next[test]'
	@touch $@
