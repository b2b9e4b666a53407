# Each target makes the environment it needs: a fresh machine needs Python and make.
# Tests need what real JAX needs, 3.12; maxjax itself 3.11. The first that is new enough is taken of
# this one, those on the PATH, and those of pyenv; test-lowest and test-wheel take the oldest.
PYTHON ?=
venv = python=$$(sh tools/find_python.sh $(1) "$(PYTHON)" $(2)) && "$$python" -m venv
DEMO_VENV ?= .venv-demo
TEST_VENV ?= .venv-test
# Two cores, and a third process for where the others wait. The tests that have MAX compile are one
# xdist group, those that have Mojo compile another: each compiles once, and being among the
# greatest groups they start early.
PYTEST_OPTIONS ?= -q -n 3 --dist loadgroup --durations=20
# What is run with the lowest versions of the dependencies.
LOWEST_VENV ?= .venv-lowest
LOWEST_TESTS = tests/numpy/test_numpy.py tests/numpy/test_random.py \
  tests/transforms/test_transforms.py tests/api/test_tree.py
# JAX's repository, for its tests, and which of its files; empty means all.
JAX ?=
FILES ?=
# Libraries on top of JAX, for their tests, and which of their suites; empty means all.
DOCS_VENV ?= .venv-docs
LIBRARIES_VENV ?= .venv-libraries
SUITES ?=
# Where a wheel is put.
WHEEL_DIR ?= dist

.PHONY: none demo test test-extended test-lowest compat docs jax-tests libraries library-scripts accelerator bench wheel test-wheel sdist test-sdist lint clean

demo: $(DEMO_VENV)/.ready
	$(DEMO_VENV)/bin/python examples/digits.py --wait

test: $(TEST_VENV)/.ready
	$(TEST_VENV)/bin/python -m pytest $(PYTEST_OPTIONS) -m 'not extended and not exhaustive'

# What takes long and shorter tests check in part; the same cache spares them the pack.
test-extended: $(TEST_VENV)/.ready
	$(TEST_VENV)/bin/python -m pytest $(PYTEST_OPTIONS) -m 'extended and not exhaustive'

test-lowest: $(LOWEST_VENV)/.ready
	$(LOWEST_VENV)/bin/python -m pytest -q -n 2 -p no:cacheprovider $(LOWEST_TESTS)

# maxjax against real JAX, all of it: about an hour on two cores, and it goes on where it was.
compat: $(TEST_VENV)/.ready
	$(TEST_VENV)/bin/python -m compat $(COMPAT_OPTIONS)

# JAX's own tests on maxjax, from a checkout of the release that is followed, and the examples of its docstrings:
#   make jax-tests JAX=../jax
jax-tests: $(TEST_VENV)/.ready
	@test -n "$(JAX)" || { echo 'usage: make jax-tests JAX=CHECKOUT [FILES="api_test ..."]'; exit 2; }
	$(TEST_VENV)/bin/python -m compat.jax_tests $(JAX) $(FILES) $(JAX_TESTS_OPTIONS)
	$(if $(FILES),,$(TEST_VENV)/bin/python -m compat.jax_tests --docstrings)

# The tests of libraries on top of JAX, on JAX and on maxjax, into docs/libraries.md:
#   make libraries SUITES="optax chex"
libraries: $(LIBRARIES_VENV)/.ready
	$(LIBRARIES_VENV)/bin/python -m compat.libraries $(SUITES) $(LIBRARIES_OPTIONS)

# The scripts that use them, interpreted and compiled.
library-scripts: $(LIBRARIES_VENV)/.ready
	$(LIBRARIES_VENV)/bin/python -m compat.scripts_runner --libraries --interpreted
	$(LIBRARIES_VENV)/bin/python -m compat.scripts_runner --libraries --compiled

# The site, in build/site; a link to what is not there fails. Tests run the pages' code.
docs: $(TEST_VENV)/.ready $(DOCS_VENV)/.ready
	$(TEST_VENV)/bin/python -m tools.build_docs --mkdocs $(DOCS_VENV)/bin/mkdocs

# On this machine's accelerator, ten minutes at most, into build/accelerator.md.
accelerator: $(TEST_VENV)/.ready
	$(TEST_VENV)/bin/python -m tools.try_accelerator

bench: $(TEST_VENV)/.ready
	$(TEST_VENV)/bin/python -m benchmarks

# With the kernel pack inside, for x86-64-v3: two minutes on two cores; built anew where a file that
# is in it has changed.
wheel: $(WHEEL_DIR)/.wheel

IN_WHEEL = tools/build_wheel.py pyproject.toml README.md LICENSE NOTICE \
  $(shell find maxjax -name '*.py' -o -name '*.pyi' -o -name '*.mojo' -o -name py.typed)
$(WHEEL_DIR)/.wheel: $(IN_WHEEL) $(if $(wildcard $(WHEEL_DIR)/maxjax-*-manylinux_*.whl),,none) \
    | $(TEST_VENV)/.ready
	rm -f $(WHEEL_DIR)/maxjax-*-manylinux_*.whl
	$(TEST_VENV)/bin/python tools/build_wheel.py --output $(WHEEL_DIR)
	touch $@

# In a fresh environment of the oldest Python that maxjax takes, where nothing can be compiled.
test-wheel: wheel
	python=$$(sh tools/find_python.sh 11 "$(PYTHON)" oldest) && \
	  "$$python" tools/try_wheel.py $(WHEEL_DIR)/maxjax-*-manylinux_*.whl

# The source distribution, and the wheel that builds the pack on first use, made of it.
sdist: $(TEST_VENV)/.ready
	rm -f $(WHEEL_DIR)/maxjax-*.tar.gz $(WHEEL_DIR)/maxjax-*-none-any.whl
	$(TEST_VENV)/bin/python -m build --outdir $(WHEEL_DIR) .

# In a fresh environment, by the command `maxjax`.
test-sdist: sdist
	$(TEST_VENV)/bin/python tools/try_sdist.py $(WHEEL_DIR)

lint: $(TEST_VENV)/.ready
	$(TEST_VENV)/bin/python -m ruff check .
	$(TEST_VENV)/bin/python -m mypy
	$(TEST_VENV)/bin/python -m tools.check_layers
	$(TEST_VENV)/bin/python -m tools.check_blocks
	$(TEST_VENV)/bin/python -m tools.check_asserts
	$(TEST_VENV)/bin/python -m tools.check_ratchet
	$(TEST_VENV)/bin/python -m tools.check_reference

$(DEMO_VENV)/.ready: pyproject.toml
	$(call venv,11) $(DEMO_VENV)
	$(DEMO_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[demo]'
	touch $@

$(TEST_VENV)/.ready: pyproject.toml
	$(call venv,12) $(TEST_VENV)
	$(TEST_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	$(TEST_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps 'xoscar>=0.7'
	touch $@

$(LOWEST_VENV)/.ready: pyproject.toml constraints-lowest.txt
	$(call venv,12,oldest) $(LOWEST_VENV)
	$(LOWEST_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
	  --constraint constraints-lowest.txt --editable '.[test]'
	touch $@

$(DOCS_VENV)/.ready: docs/requirements.txt
	$(call venv,12) $(DOCS_VENV)
	$(DOCS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
	  --requirement docs/requirements.txt
	touch $@

$(LIBRARIES_VENV)/.ready: pyproject.toml compat/libraries/requirements.txt
	$(call venv,12) $(LIBRARIES_VENV)
	$(LIBRARIES_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
	  --requirement compat/libraries/requirements.txt --editable '.[test]'
	$(LIBRARIES_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps 'xoscar>=0.7'
	touch $@

none:

clean:
	rm -rf $(DEMO_VENV) $(TEST_VENV) $(LOWEST_VENV) $(LIBRARIES_VENV) $(DOCS_VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache
