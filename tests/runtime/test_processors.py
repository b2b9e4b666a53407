"""A program's results do not depend on the processor.

With AVX-512, and with AVX2, NumPy uses routines whose last digits differ from those of the others.
These tests disable them in other processes; ``docs/numerics.md`` says what may change then.
"""

import ast
import functools
import json
import os
import subprocess
import sys

import numpy as np
import numpy._core._multiarray_umath as numpy_features
import pytest

from maxjax._primitives import elementary
from tests import ROOT
from tests.support.elementwise import LAX
from tests.support.neighbours import NAMES

SOURCE = ROOT / "maxjax"

# Features of this processor for which NumPy has routines, the most advanced first.
FEATURES = [name for name in numpy_features.__cpu_dispatch__
            if numpy_features.__cpu_features__[name]]
AVX512 = [name for name in FEATURES if name.startswith(("AVX512", "X86_V4"))]

# Files whose tests compare tier 0's numbers with JAX's, true values or printed output.
FILES = """project/test_doctests numpy/test_random_ulps numpy/test_random numpy/test_special_values
    recorded/test_recorded project/test_compat_scripts cases/test_cases numpy/test_nn
    numpy/test_numpy api/test_libraries""".split()


def run(arguments, **environment):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True,
                          cwd=ROOT, env={**os.environ, **environment})


@functools.cache
def bits(disabled):
    done = run(["-m", "tests.runtime.processor_bits"], NPY_DISABLE_CPU_FEATURES=disabled)
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


# Our names for NumPy's functions, which are their own reference.
OURS = {row.kernel.truth.__name__: row.name for row in LAX.values()
        if row.kernel is not None and isinstance(row.kernel.truth, np.ufunc)
        and hasattr(elementary, row.name)}
SPECIAL = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-320, -1e-320, 1e-300, -1e-300,
                    1e300, -1e300, 0.5, -0.5, 2, -3, 709.9, -745.2, 2.0**28, 2.0**29, -2.0**40])


@pytest.mark.parametrize("name", [name for name in NAMES if name != "float_power"])
def test_elementary_functions_beside_the_truth(name):
    """float32 is rounded once; float64 is within 2 ulp, with the special values of the standard."""
    function, truth = getattr(elementary, OURS.get(name, name)), getattr(np, name)
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.standard_normal(4000) * np.exp2(rng.uniform(-30, 8, 4000)),
                        1 + rng.uniform(-1, 1, 2000) * np.exp2(rng.uniform(-40, 0, 2000))])
    for points in (x, SPECIAL):
        operands = [part.ravel() for part in np.meshgrid(points[-60:], points[-60:])] if (
            truth.nin == 2) else [points]
        with np.errstate(all="ignore"):
            single = [part.astype(np.float32) for part in operands]
            exact = truth(*single, dtype=np.longdouble).astype(np.float32)
            np.testing.assert_array_equal(function(*single), exact)
            exact = truth(*operands, dtype=np.longdouble)
            double, result = exact.astype(np.float64), function(*operands)
            off = np.abs(result - exact) / np.spacing(np.abs(double))
        inside = np.isfinite(double)
        np.testing.assert_array_equal(result[~inside], double[~inside])
        np.testing.assert_array_equal(np.signbit(result[inside]), np.signbit(double[inside]))
        assert np.max(off[inside]) <= 2


# Functions of complex numbers, which NumPy computes with the C library on every processor.
OF_COMPLEX = {
    "_primitives/complex_values.py": {"log", "expm1", "power", "arcsin", "arccos", "arccosh",
                                      "arcsinh", "arctan", "arctanh"},
    "_primitives/transcendental.py": {"log"},
    # Of long doubles, which NumPy has from the C library on every processor.
    "_primitives/fourier.py": {"cos", "sin"},
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
                *[f"tests/{name}.py" for name in FILES]], **environment)
    assert done.returncode == 0, done.stdout[-4000:]


@pytest.mark.exhaustive
@pytest.mark.parametrize("disabled", [AVX512, FEATURES], ids=["avx512", "all"])
def test_nothing_hangs_on_the_processor(disabled):
    passes(NPY_DISABLE_CPU_FEATURES=" ".join(disabled))


@pytest.mark.exhaustive
@pytest.mark.parametrize("way", ["1", "-1"], ids=["up", "down"])
def test_nothing_hangs_on_the_last_place(way):
    passes("-p", "tests.support.neighbours", NEIGHBOURS=way)
