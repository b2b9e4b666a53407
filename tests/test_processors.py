"""What a program computes does not hang on the processor.

With AVX-512, and with AVX2, NumPy takes other routines than without, whose last digits differ.
These tests switch them off in other processes; ``docs/numerics.md`` says what may change then.
"""

import ast
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy._core._multiarray_umath as numpy_features
import pytest
from neighbours import NAMES

TESTS = Path(__file__).resolve().parent
SOURCE = TESTS.parent / "maxjax"

# Features of this processor that NumPy has routines for, the greatest first.
FEATURES = [name for name in numpy_features.__cpu_dispatch__
            if numpy_features.__cpu_features__[name]]
AVX512 = [name for name in FEATURES if name.startswith(("AVX512", "X86_V4"))]

# Files whose tests hold numbers of tier 0 against JAX's, the truth or what is printed.
FILES = """test_doctests test_random_ulps test_random test_special_values test_semantics
    test_compat_scripts test_cases test_nn test_numpy test_libraries""".split()


def run(arguments, **environment):
    paths = os.pathsep.join([str(TESTS.parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True,
                          cwd=TESTS, env={**os.environ, "PYTHONPATH": paths, **environment})


@functools.cache
def bits(disabled):
    done = run(["processor_bits.py"], NPY_DISABLE_CPU_FEATURES=disabled)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def differing(disabled):
    if not disabled:
        pytest.skip("NumPy has no such routines for this processor")
    plain, other = bits(""), bits(" ".join(disabled))
    assert len(plain) > 700
    return [name for name in plain if plain[name] != other[name]]


def test_without_avx512():
    assert differing(AVX512) == []


def test_without_vector_instructions():
    """Real numbers up to float32; wider ones and complex numbers may differ in the last place."""
    wide = ("float64", "complex")
    assert [name for name in differing(FEATURES) if not any(kind in name for kind in wide)] == []


# Functions of complex numbers, which NumPy computes with the C library on every processor.
OF_COMPLEX = {
    "_primitives/complex_values.py": {"log", "expm1", "power", "arcsin", "arccos", "arccosh",
                                      "arcsinh", "arctan", "arctanh"},
    "_primitives/transcendental.py": {"log"},
    "scipy/fft.py": {"exp"},
    "scipy/linalg/_matrices.py": {"exp"},
}


def test_numpys_functions_are_taken_in_one_place():
    found = {}
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        if not any(f"np.{name}" in text for name in NAMES):
            continue
        for node in ast.walk(ast.parse(text)):
            if (isinstance(node, ast.Attribute) and node.attr in NAMES
                    and isinstance(node.value, ast.Name) and node.value.id == "np"):
                found.setdefault(path.relative_to(SOURCE).as_posix(), set()).add(node.attr)
    assert found.pop("_primitives/elementary.py") == set(NAMES)
    assert found == OF_COMPLEX


def passes(*options, **environment):
    done = run(["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *options,
                *[f"{name}.py" for name in FILES]], **environment)
    assert done.returncode == 0, done.stdout[-4000:]


@pytest.mark.exhaustive
@pytest.mark.parametrize("disabled", [AVX512, FEATURES], ids=["avx512", "all"])
def test_nothing_hangs_on_the_processor(disabled):
    passes(NPY_DISABLE_CPU_FEATURES=" ".join(disabled))


@pytest.mark.exhaustive
@pytest.mark.parametrize("way", ["1", "-1"], ids=["up", "down"])
def test_nothing_hangs_on_the_last_place(way):
    passes("-p", "neighbours", NEIGHBOURS=way)
