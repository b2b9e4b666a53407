"""Libraries for C: the same bits as compiled calls, from ctypes and from other languages."""

from __future__ import annotations

import ctypes
import itertools
import os
import platform
import re
import runpy
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("max.engine")

import maxjax
import maxjax.numpy as jnp
from maxjax import export, lax
from maxjax._base.config import enable_x64
from maxjax._base.errors import InternalError
from maxjax._max.mojo import c_header, c_library, standard_library
from maxjax._max.mojo.c_lapack import Lapack
from maxjax._max.mojo.elf import DataObject, Reference, needed
from maxjax._max.mojo.pack_library import make_portable
from maxjax._primitives import lapack
from maxjax._runtime.program import Program
from tests import ROOT
from tests.gen import exported_programs, loop_programs, mojo_random
from tests.support.c_libraries import (
    DTYPES,
    CLibrary,
    compiled,
    exported,
    leaves,
    run,
    same_bits,
)
from tests.support.selection import extended_but

pytestmark = pytest.mark.skipif(
    standard_library.why_not() is not None, reason=f"{standard_library.why_not()}")

X = exported_programs.X
KEY = np.array([1, 2], np.uint32)
PLAIN = {name: (lambda *args, f=program.function: f(maxjax, *args), *program.args)
         for name, program in exported_programs.PROGRAMS.items()
         if name in ("mlp", "cnn", "transformer", "rnn", "sort", "fft", "while")}
CASES: dict[str, tuple[Any, ...]] = PLAIN | {
    "rows": (lambda x, i: (x[i], x.at[i].add(1.), jnp.cumsum(x, 0), x[::-1]),
             X, np.array([3, -1, 0], np.int32)),
    "random": (lambda k: (maxjax.random.bits(k, (100,)), maxjax.random.gamma(k, 2., (5,)),
                          maxjax.random.permutation(k, 10)), KEY),
    "keys": (lambda k: (maxjax.random.split(k), maxjax.random.normal(k, (3,)), k),
             maxjax.random.key(3)),
    # Results that are arguments, constants, equal, or without elements.
    "given": (lambda x, y: (x, x, y + 1, y + 1, jnp.zeros((0, 3)), x.reshape(-1), np.ones(3)),
              X, np.float32(3)),
    "nothing": (lambda x: (), X),
    "constant": (lambda: jnp.arange(5) * 2,),
    "complex": (lambda z: (z * z + 1, abs(z), jnp.exp(z), z), (X + 1j * X).astype(np.complex64)),
    "while loop": (lambda n: lax.while_loop(
        lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 1.5 + s[0]), (0, 1.)), np.int32(17)),
    "stencil": (lambda x: lax.fori_loop(
        0, 10, lambda i, y: y.at[1:-1].set((y[:-2] + y[2:]) * 0.5), x),
                np.linspace(0, 1, 300, dtype=np.float32)),
    "branches": (lambda n, x: lax.switch(n, [jnp.sin, jnp.cos, jnp.tanh], x), np.int32(1), X),
    "masks": (lambda x: (x > 0, (x > 0).sum(), jnp.argmax(x, 1), jnp.where(x > 0, x, 0)), X),
    "short rows": (lambda x: (jnp.exp(x).sum(1), x * 2), np.ones((1000, 3), np.float32)),
    "shared by threads": (lambda x: (jnp.tanh(x @ x).sum(0), jnp.exp(x)),
                          np.linspace(0, 1, 90000, dtype=np.float32).reshape(300, 300)),
}


@pytest.mark.parametrize("name", extended_but(
    ["transformer", "fft", "rows", "complex", "given", "nothing", "constant", "while loop",
     "stencil", "branches", "masks"], CASES))
def test_results_are_those_of_compiled_calls(tmp_path, name):
    f, *args = CASES[name]
    library = exported(tmp_path, f, *args)
    given, want = leaves(args), compiled(f, *args)
    same_bits(library(*given), want)
    results = library.results()
    library.run_arrays(given, results)      # whose memory is that of the call before
    same_bits(results, want)


@pytest.mark.parametrize("dtype", extended_but(
    ["float32", "bfloat16", "complex64", "int8", "uint64"], [x for x in DTYPES if x != "bool"]))
def test_libraries_take_and_give_each_dtype(tmp_path, dtype):
    kind = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)

    def f(x, n):
        return x * n + x, x[::2], x.sum(), x > 3 if kind.kind != "c" else x == 3

    with enable_x64(True):
        args = np.arange(40).astype(kind), np.full((), 2, kind)
        library = exported(tmp_path, f, *args)
        same_bits(library(*args), compiled(f, *args))
    assert [x["dtype"] for x in library.manifest["arguments"]] == [dtype, dtype]


@pytest.mark.slow
@pytest.mark.parametrize("first, last", [
    (0, 6), *(pytest.param(*seeds, marks=pytest.mark.extended) for seeds in ((6, 12), (12, 24)))])
def test_random_programs(tmp_path, first, last):
    """Several together are one program, whose kernels are built at once."""
    programs, inputs = [], []
    with enable_x64(True):
        for structure in range(first, last):
            builder = mojo_random.Builder(structure, structure)
            closed = maxjax.make_jaxpr(builder.function)(*builder.inputs)
            try:
                c_library.planned(Program(closed).opened.jaxpr, 2)
            except c_library.Refused:
                continue
            programs.append(maxjax.extend.core.jaxpr_as_fun(closed))
            inputs.append(builder.inputs)
        assert len(programs) > (last - first) // 2

        def f(*groups):
            return [program(*group) for program, group in zip(programs, groups, strict=True)]

        library = exported(tmp_path, f, *inputs)
        given, want = leaves(inputs), compiled(f, *inputs)
    results = library.results()
    library.run_arrays(given, results)
    same_bits(results, want)


@pytest.mark.slow
@pytest.mark.parametrize("first, last", [
    (0, 5), *(pytest.param(*seeds, marks=pytest.mark.extended) for seeds in ((5, 10), (10, 20)))])
def test_random_loops(tmp_path, first, last):
    drawn = [loop_programs.Drawn(seed) for seed in range(first, last)]
    functions = [x.function(maxjax) for x in drawn]

    def f(*groups):
        return [function(*group) for function, group in zip(functions, groups, strict=True)]

    with enable_x64(True):
        inputs = [(*x.args, x.rows) for x in drawn]
        library = exported(tmp_path, f, *inputs)
        given, want = leaves(inputs), compiled(f, *inputs)
    results = library.results()
    library.run_arrays(given, results)
    same_bits(results, want)


def test_operations_of_ones_own(tmp_path):
    """Whose Mojo is compiled with MAX's standard library."""
    softclip = runpy.run_path(str(ROOT / "examples" / "custom_op.py"))["softclip"]

    def loss(w, x):
        return jnp.mean(softclip(jnp.tanh(x @ w) * 3, 2.0) ** 2)

    args = exported_programs.weights(3, 2), X
    library = exported(tmp_path, maxjax.value_and_grad(loss), *args)
    same_bits(library(*args), compiled(maxjax.value_and_grad(loss), *args))


def conversions(halves, bfloats, singles, doubles):
    return (halves.astype(jnp.float32), bfloats.astype(jnp.float32), singles.astype(jnp.float16),
            singles.astype(jnp.bfloat16), doubles.astype(jnp.float16), doubles.astype(jnp.bfloat16))


@pytest.mark.slow
@pytest.mark.extended
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the processors are others")
@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v2"])
def test_other_processors(tmp_path, target):
    """Which have no instructions for numbers of 16 bits: their conversions are exact, but for
    subnormal numbers that are taken for 0."""
    draw = np.random.default_rng(0)
    every = np.arange(1 << 16).astype(np.uint16)
    doubles = np.concatenate([draw.integers(0, 1 << 63, 40000).view(np.float64),
                              draw.normal(size=40000) * 10. ** draw.integers(-45, 40, 40000)])
    args = (every.view(np.float16), every.view(ml_dtypes.bfloat16),
            draw.integers(0, 1 << 32, 40000).astype(np.uint32).view(np.float32), doubles)
    with enable_x64(True), np.errstate(all="ignore"):
        library = exported(tmp_path, conversions, *args, target=target)
        results = library(*args)
        for ours, theirs in zip(results, conversions(*map(jnp.asarray, args)), strict=True):
            tiny = float(ml_dtypes.finfo(ours.dtype).tiny)
            np.testing.assert_array_equal(*(np.where(np.abs(x) <= tiny, 0, x) for x in (
                ours.astype(np.float64), np.float64(theirs))))
    assert library.manifest["needs"]["processor"] == target
    f, *args = CASES["mlp"]
    library = exported(tmp_path, f, *args, target=target, name="g")
    np.testing.assert_allclose(library(*leaves(args))[0], compiled(f, *args)[0], rtol=1e-5)


# --- LAPACK ---

MATRIX = (X[:3].T @ X[:3] + 3 * np.eye(3)).astype(np.float32)
FACTORS: dict[str, tuple[Any, ...]] = {
    "real": (lambda a: (jnp.linalg.cholesky(a), jnp.linalg.solve(a, a[0]), jnp.linalg.eigh(a),
                        jnp.linalg.svd(a), jnp.linalg.qr(a), jnp.linalg.eig(a)), MATRIX),
    "complex": (lambda a: (jnp.linalg.cholesky(a), jnp.linalg.inv(a), jnp.linalg.eigh(a),
                           maxjax.scipy.linalg.schur(a)), MATRIX.astype(np.complex64)),
    "stack": (lambda a: (jnp.linalg.cholesky(a), jnp.linalg.det(a)), np.stack([MATRIX] * 70)),
    "loop": (lambda a: lax.fori_loop(
        0, 3, lambda i, x: jnp.linalg.cholesky(x @ x.T + jnp.eye(3)), a), MATRIX),
    "short loop": (lambda a: lax.fori_loop(0, 3, lambda i, x: jnp.linalg.inv(x + jnp.eye(2)), a),
                   MATRIX[:2, :2].copy()),
}


@pytest.mark.parametrize("name", FACTORS)
def test_libraries_factor_matrices_with_lapack(tmp_path, name):
    f, *args = FACTORS[name]
    library = exported(tmp_path, f, *args)
    same_bits(library(*args), compiled(f, *args))
    companions = library.manifest["needs"]["go_along"]
    assert companions and all((tmp_path / companion).is_file() for companion in companions)
    assert companions[0] in library.manifest["needs"]["libraries"]


def test_lapack_in_a_process_without_scipy(tmp_path):
    f, a = FACTORS["loop"]
    exported(tmp_path, f, a)
    (tmp_path / "input").write_bytes(a.tobytes())
    said = run(tmp_path, sys.executable, "-I", "-S", "-c", """
import ctypes
a = (ctypes.c_float * 9).from_buffer_copy(open("input", "rb").read())
library = ctypes.CDLL("./libf.so")
out = (ctypes.c_float * 9)()
print(library.f(a, out), out[8])
""")
    code, value = said.split()
    assert code == "0" and np.float32(value) == np.asarray(compiled(f, a)[0])[2, 2]


def test_lapack_of_choice(tmp_path):
    f, a = FACTORS["loop"]
    files = export.library(f, a, path=tmp_path / "first", name="f")
    chosen = files.library.parent / CLibrary(files).manifest["needs"]["go_along"][0]
    other = exported(tmp_path / "second", f, a, lapack=chosen)
    assert other.manifest["needs"]["go_along"] == []
    assert chosen.name in other.manifest["needs"]["libraries"]
    assert len(list((tmp_path / "second").iterdir())) == 3


@pytest.mark.parametrize("name", ["nothing.so", "text.so", "libc.so.6"])
def test_what_is_no_lapack(tmp_path, name):
    (tmp_path / "text.so").write_text("no library")
    path = Path(name) if name == "libc.so.6" else tmp_path / name
    with pytest.raises(ValueError, match="has no routines of LAPACK"):
        export.library(FACTORS["loop"][0], MATRIX, path=tmp_path / "out", lapack=path, name="f")


def test_addresses_are_no_integers():
    """What has lost its name is no part of a library."""
    routines = Lapack(None)
    known = lapack.address("potrf", np.dtype(np.float32))
    assert [type(x) for x in routines.linked([known, 3])] == [Reference, int]
    with pytest.raises(InternalError, match="spotrf"):
        routines.linked([int(known)])


# --- sizes that are arguments ---

def test_symbolic_sizes(tmp_path):
    def f(x, w):
        return jnp.tanh(x @ w).sum(1), lax.scan(lambda c, r: (c + r, c.sum()), w[:, 0], x), \
            x.shape[0]

    batch, = export.symbolic_shape("batch", constraints=["batch >= 2", "batch <= 9"])
    weights = exported_programs.weights(3, 8)
    library = exported(tmp_path, f, maxjax.ShapeDtypeStruct((batch, 3), np.float32), weights)
    for size in (9, 2, 3, 8, 2):
        args = exported_programs.weights(size, 3, seed=size), weights
        same_bits(library(*args, sizes=(size,)), compiled(f, *args))
    arrays = [exported_programs.weights(4, 3), weights]
    for size, message in ((1, "2 <= batch <= 9"), (10, "2 <= batch <= 9"),
                          (5, r"argument 0, x, float32\[batch,3\]: the array has another shape")):
        with pytest.raises(RuntimeError, match=message):
            library.run_arrays(arrays, library.results((4,)), sizes=(size,))
    results = library.results((4,))
    library.run_arrays(arrays, results, sizes=(4,))
    same_bits(results, compiled(f, *arrays))


def test_several_symbolic_sizes(tmp_path):
    a, b = export.symbolic_shape("a, b", constraints=["b <= 4", "a <= b"])
    types = [maxjax.ShapeDtypeStruct(shape, np.float32) for shape in ((a,), (2 * b, a))]
    library = exported(tmp_path, lambda x, y: (y @ x, y.sum(0)), *types)
    for n, m in itertools.product(range(1, 5), range(1, 5)):
        args = exported_programs.weights(n), exported_programs.weights(2 * m, n)
        if n <= m:
            same_bits(library(*args, sizes=(n, m)), compiled(lambda x, y: (y @ x, y.sum(0)), *args))
        else:
            with pytest.raises(RuntimeError, match="the function is not for these sizes"):
                library(*args, sizes=(n, m))


@pytest.mark.parametrize("constraints, message", [
    ([], 'size b has no greatest value.*\\["b <= 64"'), (["b <= 100000"], "for 100000 sizes")])
def test_sizes_need_bounds(tmp_path, constraints, message):
    b, = export.symbolic_shape("b", constraints=constraints)
    with pytest.raises(NotImplementedError, match=message):
        export.library(lambda x: x + 1, maxjax.ShapeDtypeStruct((b,), np.float32),
                       path=tmp_path, name="f")


# --- what is refused ---

def _looped(f: Any) -> Any:
    return lambda x: lax.fori_loop(0, 3, lambda i, y: f(y), x)


@pytest.mark.parametrize("f, message", [
    (lambda x: lax.linalg.qr(x, pivoting=True), "qr: "),
    (_looped(lambda x: lax.linalg.qr(x, pivoting=True)[0]), "qr: "),
    (lambda x: maxjax.pure_callback(np.sin, x, x), "pure_callback"),
    (_looped(lambda x: (maxjax.debug.print("{}", x), x)[1]), "debug_print"),
    (lambda x: maxjax.scipy.special.gammainc(x, x), "igamma"),
    (_looped(lambda x: maxjax.scipy.special.gammainc(x, x)), "igamma"),
    (lambda x: x.astype(jnp.float8_e4m3fn), "float8_e4m3fn"),
], ids=["factor", "factor in a loop", "callback", "print in a loop", "special function",
        "special function in a loop", "dtype"])
def test_what_python_computes_is_refused_by_name(tmp_path, f, message):
    with pytest.raises(NotImplementedError, match=message):
        export.library(f, abs(X[:3]) + 1, path=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["sin", "int", "a b", "3x", "", "malloc", "new"])
def test_names_that_c_cannot_have(tmp_path, name):
    with pytest.raises(ValueError, match="`name` chooses another"):
        export.library(jnp.tanh, X, path=tmp_path, name=name)


@pytest.mark.parametrize("options, message", [
    ({"threads": 0}, "at least 1"), ({"target": "no-such-processor"}, "no-such-processor")])
def test_options_that_cannot_be(tmp_path, options, message):
    with pytest.raises(Exception, match=message):
        export.library(jnp.tanh, X, path=tmp_path, name="f", **options)


# --- what is exported ---

def test_functions_and_names(tmp_path):
    def step(params, x, *more, scale=1.0, **rest):
        return {"new value": params["w"] @ x * scale, "int": more[0] + rest["rest"]}

    files = export.library(maxjax.jit(step), {"w": X.T, "const": X}, X[:, 0], np.int32(3),
                           path=tmp_path / "made", scale=2.0, rest=np.int32(4))
    assert [path.name for path in files] == ["libstep.so", "step.h", "step.json"]
    library = CLibrary(files)
    assert [x["name"] for x in library.manifest["arguments"]] == [
        "params_const", "params_w", "x", "more_0", "rest", "scale"]
    assert [x["name"] for x in library.manifest["results"]] == ["result_int", "result_new_value"]
    assert library.manifest["arguments"][0]["in_python"] == "params['const']"
    results = library(*map(np.ascontiguousarray, (X, X.T, X[:, 0])), *map(np.asarray, (
        np.int32(3), np.int32(4), np.float32(2))))
    assert results[0] == 7


def test_exported_functions(tmp_path):
    made = export.export(maxjax.jit(lambda x: jnp.tanh(x) + 1))(X)
    library = exported(tmp_path, export.deserialize(made.serialize()))
    same_bits(library(X), compiled(lambda x: jnp.tanh(x) + 1, X))
    theirs = export.deserialize(made.serialize(format="jax"))
    same_bits(exported(tmp_path, theirs, name="g")(X), compiled(theirs.call, X))
    with pytest.raises(ValueError, match="no arguments to give"):
        export.library(made, X, path=tmp_path)


def test_it_needs_the_c_library_alone(tmp_path):
    files = export.library(PLAIN["mlp"][0], *PLAIN["mlp"][1:], path=tmp_path, name="f")
    assert make_portable(files.library) == []
    library = CLibrary(files)
    assert set(library.manifest["needs"]["libraries"]) <= {"libc.so.6", "libm.so.6"}
    size = files.library.stat().st_size
    assert library.manifest["bytes_of_library"] == size < 2_000_000
    content = files.library.read_bytes()
    assert str(tmp_path).encode() not in content and os.path.expanduser("~").encode() not in content


def test_many_arrays_are_no_parameters(tmp_path):
    args = [np.full(3, n, np.float32) for n in range(101)]
    library = exported(tmp_path, lambda *xs: sum(xs), *args)
    assert library.function is None and "Too many arrays" in (tmp_path / "f.h").read_text()
    results = library.results()
    library.run_arrays(args, results)
    same_bits(results, compiled(lambda *xs: sum(xs), *args))


# --- arrays that are wrong ---

@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> CLibrary:
    return exported(tmp_path_factory.mktemp("pair"), lambda x, n: (x * 2, x.sum() + n),
                    X, np.int32(2))


@pytest.mark.parametrize("arguments, results, message", [
    ([X, np.int32(1)], [np.empty((5, 4), "f4"), np.empty((), "f4")],
     r"result 0, result_0, float32\[5,3\]: the array has another shape"),
    ([X, np.ones(1, "i4")], None, r"argument 1, n, int32\[\]: the array has another shape"),
    ([X, np.uint32(1)], None, r"argument 1, n, int32\[\]: the array has another dtype"),
    ([X], None, "there must be 2 arguments and 2 results"),
    ([X, np.int32(1)], [], "there must be 2 arguments and 2 results"),
])
def test_types_are_checked(pair, arguments, results, message):
    with pytest.raises(RuntimeError, match=message):
        pair.run_arrays([*map(np.asarray, arguments)],
                        pair.results() if results is None else results)


def test_addresses_are_checked(pair):
    x, n, results = X, np.full((), 3, np.int32), pair.results()
    memory = np.zeros(200, np.uint8)

    def code(*arrays: Any) -> str:
        return pair.error(pair.function(*[
            ctypes.c_void_p(None if array is None else array.ctypes.data)
            for array in arrays])).decode()

    assert code(x, n, *results) == "no error"
    assert "argument 0, x, float32[5,3]: there is no array" in code(None, n, *results)
    assert "result 1, result_1, float32[]: there is no array" in code(x, n, results[0], None)
    assert "argument 0, x, float32[5,3]: its address" in code(memory[1:], n, *results)
    for shared in (x, results[1], results[0].reshape(-1)[14:], n):
        assert "shares memory" in code(x, n, results[0], shared) or shared is results[1]
    assert "shares memory" in code(x, n, x, results[1])
    assert [pair.error(number).decode() for number in (-1, 7, 10**9)] == [
        "there is no error of this number"] * 3


# --- threads ---

@pytest.mark.parametrize("helpers", [0, 2])
def test_calls_from_threads(tmp_path, helpers):
    """More at once than frames are kept, with helpers of the library and without."""
    f = CASES["shared by threads"][0]
    library = exported(tmp_path, f, CASES["shared by threads"][1], threads=3)
    inputs = [np.random.default_rng(n).random((300, 300), np.float32) for n in range(8)]
    want = [library(x) for x in inputs]
    if helpers:
        assert library.native.f_threads(1 + helpers) == 1 + helpers
        assert library.native.f_threads(1) == 1 + helpers
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(15):
                same_bits(library(inputs[number]), want[number])
                if number == 0:
                    library.release()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_forked_child_calls_the_library(tmp_path):
    """A child has none of its parent's threads, and may start its own."""
    f, x = CASES["shared by threads"]
    exported(tmp_path, f, x, threads=3)
    (tmp_path / "input").write_bytes(x.tobytes())
    said = run(tmp_path, sys.executable, "-I", "-S", "-W", "ignore", "-c", """
import ctypes, os
library = ctypes.CDLL("./libf.so")
x = (ctypes.c_float * 90000).from_buffer_copy(open("input", "rb").read())

def called():
    sums, y = (ctypes.c_float * 300)(), (ctypes.c_float * 90000)()
    assert library.f(x, sums, y) == 0
    return bytes(sums) + bytes(y)

want = called()
assert library.f_threads(3) == 3 and called() == want
child = os.fork()
if not child:
    good = called() == want and library.f_threads(2) == 2
    os._exit(0 if good and all(called() == want for _ in range(20)) else 1)
print(os.waitpid(child, 0)[1], called() == want)
""")
    assert said.split() == ["0", "True"]


def test_a_library_without_threads(tmp_path):
    library = exported(tmp_path, *CASES["mlp"], threads=1)
    assert library.native.f_threads(4) == 1
    assert library.manifest["most_threads"] == 1


# --- the parts ---

def test_two_libraries_in_a_process(tmp_path):
    """They are apart, also where all may see what they export."""
    mode = ctypes.RTLD_GLOBAL
    made = [export.library(lambda x, n=n: jnp.tanh(x @ x) * n, np.ones((3, 3), np.float32),
                           path=tmp_path, name=f"f{n}") for n in (2, 3)]
    loaded = [ctypes.CDLL(str(files.library), mode=mode) for files in made]
    x, y = np.eye(3, dtype=np.float32), np.empty((3, 3), np.float32)
    for n, library in zip((2, 3), loaded, strict=True):
        assert library[f"f{n}"](ctypes.c_void_p(x.ctypes.data),
                                ctypes.c_void_p(y.ctypes.data)) == 0
        same_bits([y], compiled(lambda x, n=n: jnp.tanh(x @ x) * n, x))


# --- the parts ---

def test_numbers_of_dtypes(tmp_path):
    """Those of the header are those that callers were compiled with."""
    export.library(jnp.tanh, X, path=tmp_path, name="f")
    found = re.findall(r"MAXJAX_(\w+) = (\d+)", (tmp_path / "f.h").read_text())
    assert [(name.lower(), int(number)) for name, number in found] == [
        (name, number) for number, name in enumerate(DTYPES)]


@pytest.mark.parametrize("names, expected", [
    (["x", "x", "int", "3", "a['b'].c", "", "b*2"],
     ["x", "x_2", "int_2", "x3", "a_b_c", "x_3", "b_2"])])
def test_identifiers(names, expected):
    assert c_header.identifiers(names) == expected


@pytest.mark.parametrize("machine, emulation", [
    ("x86_64", "elf_x86_64"), ("aarch64", "aarch64linux")])
def test_objects_are_linked(tmp_path, machine, emulation):
    data = DataObject(machine)
    assert data.constant(b"abc") is data.constant(b"abc")
    words = data.words([7, data.constant(b"abc"), data.cells(2), Reference("there")])
    data.accessor("here", words)
    (tmp_path / "data.o").write_bytes(data.written())
    linker = standard_library.linker()
    assert linker is not None
    command = [linker, "-flavor", "gnu", "-m", emulation, "-shared", "-o", "data.so", "data.o"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert needed(tmp_path / "data.so") == (None, [])
    done = subprocess.run([*command, "-z", "defs"], cwd=tmp_path, capture_output=True, text=True,
                          check=False)
    assert "undefined symbol: there" in done.stderr
    if machine == platform.machine():
        data.accessor("there", words)
        (tmp_path / "data.o").write_bytes(data.written())
        subprocess.run(command, cwd=tmp_path, check=True)
        library = ctypes.CDLL(str(tmp_path / "data.so"))
        for function in (library.here, library.there):
            function.restype = ctypes.POINTER(ctypes.c_int64)
        found = library.here()
        assert (found[0], ctypes.string_at(found[1], 3)) == (7, b"abc")
        assert ctypes.string_at(found[2], 16) == bytes(16)
        assert found[3] == ctypes.cast(library.there, ctypes.c_void_p).value


def test_objects_of_other_processors():
    with pytest.raises(ValueError, match="riscv64"):
        DataObject("riscv64")
