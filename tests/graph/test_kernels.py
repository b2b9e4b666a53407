"""The Mojo kernels' numerics, compared with JAX through a shared library of the same structs."""

from __future__ import annotations

import ctypes
import importlib
import operator
import os
import pkgutil
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import jax.scipy.special
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from jax.extend.random import threefry2x32_p

from tests.support.elementwise import TABLE

pytest.importorskip("max.graph")

from max import driver, engine
from max.dtype import DType
from max.graph import DeviceRef, Graph, Module, TensorType, ops

from maxjax import _primitives
from maxjax._ir.primitive import registry
from maxjax._max.elementwise_kernels import CHEAP, KERNELS
from maxjax._max.graph import kernel_library
from maxjax._max.graph.kernel_library import BINARY, COMPARISON, MIXED, UNARY

pytestmark = pytest.mark.xdist_group("graph")

FLOATS = ("float16", "bfloat16", "float32", "float64")

# The row of each kernel, and how far it may be off.
ROWS = {kernel.name: row for row in TABLE for name in row.primitives
        for kernel in registry[name].compiled.kernels}
# Two kernels of one operation.
_JAX: dict[str, Callable[..., Any]] = {
    "round_half_away": lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
    "round_half_even": lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
}
_SPECIAL = (0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, -3, np.inf, -np.inf, np.nan, 1e4, -1e4, 88.0,
            -88, 89, -104, 709, 710, -745, -709, 10, -10, 22, 0.25, 1.5, 2.5, -1.5, -2.5, 4.7,
            100.25, -100.25)


def dtype_of(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


def jax_operation(name: str) -> Callable[..., Any]:
    row = ROWS[name]
    return _JAX.get(name) or getattr(operator.attrgetter(row.module)(jax), row.name)


@pytest.fixture(autouse=True)
def wide_types() -> Iterator[None]:
    with jax.enable_x64(True), np.errstate(all="ignore"):
        yield


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture(scope="module")
def library(cache: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(kernel_library.build_test_library(cache)))


def call(library: ctypes.CDLL, name: str, *operands: np.ndarray,
         result_dtype: np.dtype | None = None) -> np.ndarray:
    operands = tuple(np.ascontiguousarray(operand) for operand in operands)
    result = np.empty(operands[0].shape, result_dtype or operands[0].dtype)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*operands, result)]
    getattr(library, name)(*pointers, ctypes.c_int64(result.size))
    return result


def floats(dtype: np.dtype, count: int = 1000) -> np.ndarray:
    """Special values first, then random ones of every magnitude; no subnormals."""
    rng = np.random.default_rng(0)
    info = ml_dtypes.finfo(dtype)
    largest, smallest, step = float(info.max), float(info.tiny), float(info.eps)
    normal = rng.normal(size=count)
    values = np.concatenate([
        _SPECIAL,
        [largest, -largest, smallest, -smallest, step, 1 + step, 1 - step / 2, step / 2 - 1],
        normal, rng.permutation(normal) * 10, rng.uniform(-1, 1, count),
        normal * np.exp2(rng.uniform(-60, 60, count)),
        normal * np.exp2(rng.uniform(int(info.minexp), int(info.maxexp) - 3, count)),
        1 + normal * 0.01, rng.uniform(-750, 750, count)]).astype(dtype)
    return values[(np.abs(values.astype(np.float64)) >= smallest) | (values == 0)
                  | (values != values)]


def integers(dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of special and of random integers; some of the second operands small."""
    rng = np.random.default_rng(0)
    info = np.iinfo(dtype)
    special = np.array([value for value in (0, 1, 2, 3, 5, 7, 8, 31, 32, 33, 63, 64, -1, -2, -8,
                                            info.min, info.min + 1, info.max, info.max - 1)
                        if info.min <= value <= info.max], dtype)
    x, y = (grid.ravel() for grid in np.meshgrid(special, special))
    first, second = rng.integers(info.min, info.max, (2, 1000), dtype, endpoint=True)
    return (np.concatenate([x, first, first]),
            np.concatenate([y, second, (second % dtype.type(37)).astype(dtype)]))


def pairs(dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    values = floats(dtype, 300)
    special = values[:42]
    rng = np.random.default_rng(1)
    x, y = (grid.ravel() for grid in np.meshgrid(special, special))
    moderate = (rng.normal(size=len(values)) * 20).astype(dtype)
    return (np.concatenate([x, values, values]),
            np.concatenate([y, rng.permutation(values), moderate]))


def assert_same(got: np.ndarray, expected: np.ndarray, *operands: np.ndarray) -> None:
    """Equal, or both NaN; the signs of zeros included."""
    same = (got == expected) | ((got != got) & (expected != expected))
    if got.dtype.kind == "f" or got.dtype.kind == "V":
        zeros = (got == 0) & (expected == 0)
        same &= ~zeros | (np.signbit(got) == np.signbit(expected))
    bad = np.flatnonzero(~same)[:5]
    assert not bad.size, [(*(operand[i] for operand in operands), got[i], expected[i])
                          for i in bad]


def check_floats(library: ctypes.CDLL, name: str, dtype_name: str, *operands: np.ndarray) -> None:
    dtype = dtype_of(dtype_name)
    accuracy = ROWS[name].kernel
    assert accuracy is not None
    info = ml_dtypes.finfo(dtype)
    smallest = float(info.tiny)
    got = call(library, f"{name}_{dtype_name}", *operands)
    with np.errstate(all="ignore"):
        in_jax = np.asarray(jax.jit(jax_operation(name))(*operands))
        # JAX decides what is NaN, infinite or a signed zero. Its CPU code flushes subnormals, and
        # where it overflows within rounding of the largest number, so may we.
        wide, wide_in_jax = got.astype(np.float64), in_jax.astype(np.float64)
    tiny = (np.abs(wide) <= 4 * smallest) & (np.abs(wide_in_jax) <= 4 * smallest)
    settled = ~np.isfinite(wide_in_jax) | (wide_in_jax == 0) & (wide == 0)
    if not accuracy.double:
        settled = np.ones_like(settled)
    exact = settled & ~(tiny & ((wide != 0) | (wide_in_jax != 0)))
    overflowed = np.isinf(wide_in_jax) & (np.abs(wide) > float(info.max) * 0.999)
    where = np.flatnonzero(exact & ~overflowed)
    assert_same(got[where], in_jax[where], *(operand[where] for operand in operands))

    if accuracy.xla_bits and dtype == np.float32:
        reference = in_jax.astype(np.float64)
    elif accuracy.truth is None:
        reference = np.asarray(jax_operation(name)(*(x.astype(np.float64) for x in operands)))
    else:
        reference = accuracy.truth(*(operand.astype(np.longdouble) for operand in operands))
    rounded = reference.astype(dtype).astype(np.float64)
    magnitude = np.maximum(np.abs(rounded), smallest)
    unit = np.exp2(np.floor(np.log2(magnitude)) - int(info.nmant))
    error = np.abs(wide - reference) / unit
    allowed: Any = {2: 0.51, 4: accuracy.single, 8: accuracy.double}[dtype.itemsize]
    if dtype == np.float64 and accuracy.absolute is not None:
        allowed = allowed + accuracy.absolute(operands[0]) / unit
    checked = ~exact & ~tiny & np.isfinite(rounded) & np.isfinite(wide_in_jax)
    bad = np.flatnonzero(checked & ~(error <= allowed))[:5]
    assert not bad.size, [(*(operand[i] for operand in operands), got[i], reference[i], error[i])
                          for i in bad]


def test_kernels_and_structs_are_the_same() -> None:
    """Each `Kernel` of a primitive has its elementwise struct, and vice versa."""
    structs = {}
    for file in sorted(kernel_library.SOURCES.glob("*.mojo")):
        for name, struct in re.findall(
                r'register\("maxjax_(\w+)"\)\nstruct (\w+)\(Elementwise', file.read_text()):
            structs[name] = struct
    assert structs == {name: kernel.struct for name, kernel in KERNELS.items()}


def test_no_primitive_is_left_out() -> None:
    """The kernels of every module of primitives are in the table, each once, and what is cheap."""
    for module in pkgutil.iter_modules(_primitives.__path__):
        importlib.import_module(f"{_primitives.__name__}.{module.name}")
    kernels = [kernel for primitive in registry.values() for kernel in primitive.compiled.kernels]
    assert sorted(kernel.name for kernel in kernels) == sorted(KERNELS)
    for primitive in registry.values():
        names = {kernel.name for kernel in primitive.compiled.kernels} or {primitive.name}
        assert names <= CHEAP if primitive.compiled.cheap else not names & CHEAP, primitive


def test_kernels_of_floats_have_their_bounds() -> None:
    of_floats = {name for name, kinds in {**UNARY, **BINARY}.items() if "float32" in kinds}
    bounded = {name for name, row in ROWS.items() if row.kernel is not None}
    assert sorted(of_floats - bounded) == []
    assert sorted(bounded - of_floats) == []


@pytest.mark.extended
@pytest.mark.parametrize("name", UNARY)
def test_unary_kernels_agree_with_jax(library: ctypes.CDLL, name: str) -> None:
    for dtype_name in UNARY[name]:
        dtype = dtype_of(dtype_name)
        if dtype_name in FLOATS:
            check_floats(library, name, dtype_name, floats(dtype))
            continue
        x = np.array([False, True]) if dtype == np.bool_ else integers(dtype)[0]
        if name == "abs" and np.issubdtype(dtype, np.unsignedinteger):
            expected = x
        else:
            expected = np.asarray(jax_operation(name)(x))
        assert_same(call(library, f"{name}_{dtype_name}", x), expected, x)


@pytest.mark.extended
@pytest.mark.parametrize("name", BINARY)
def test_binary_kernels_agree_with_jax(library: ctypes.CDLL, name: str) -> None:
    for dtype_name in BINARY[name]:
        dtype = dtype_of(dtype_name)
        if dtype_name in FLOATS:
            check_floats(library, name, dtype_name, *pairs(dtype))
            continue
        bits = np.array([[0, 0, 1, 1], [0, 1, 0, 1]], np.bool_)
        x, y = bits if dtype == np.bool_ else integers(dtype)
        expected = np.asarray(jax_operation(name)(x, y))
        assert_same(call(library, f"{name}_{dtype_name}", x, y), expected, x, y)


@pytest.mark.extended
@pytest.mark.parametrize("name", COMPARISON)
def test_comparison(library: ctypes.CDLL, name: str) -> None:
    for dtype_name in COMPARISON[name]:
        dtype = dtype_of(dtype_name)
        if dtype == np.bool_:
            x, y = np.array([[0, 0, 1, 1], [0, 1, 0, 1]], np.bool_)
        else:
            x, y = integers(dtype) if dtype.kind in "iu" else pairs(dtype)
        got = call(library, f"{name}_{dtype_name}", x, y, result_dtype=np.dtype(np.bool_))
        assert_same(got, np.asarray(jax_operation(name)(x, y)), x, y)


def operand_of(dtype: np.dtype) -> np.ndarray:
    if dtype == np.bool_:
        return np.array([False, True])
    return integers(dtype)[0] if dtype.kind in "iu" else floats(dtype)


@pytest.mark.extended
@pytest.mark.parametrize("source", (*FLOATS, "bool", *UNARY["clz"]))
def test_conversions_agree_with_jax(library: ctypes.CDLL, source: str) -> None:
    x = operand_of(dtype_of(source))
    for target in (target for origin, target in MIXED["convert"] if origin == source):
        dtype = dtype_of(target)
        got = call(library, f"convert_{source}_{target}", x, result_dtype=dtype)
        expected = np.asarray(lax.convert_element_type(jnp.asarray(x), dtype))
        if target in FLOATS:       # JAX flushes subnormal results
            smallest = float(ml_dtypes.finfo(dtype).tiny)
            kept = ~(np.abs(got.astype(np.float64)) < smallest) | (x == 0)
            assert_same(got[kept], expected[kept], x[kept])
        else:
            assert_same(got, expected, x)


@pytest.mark.extended
@pytest.mark.parametrize("source", FLOATS)
def test_is_finite(library: ctypes.CDLL, source: str) -> None:
    x = floats(dtype_of(source))
    got = call(library, f"is_finite_{source}_bool", x, result_dtype=np.dtype(bool))
    assert_same(got, np.asarray(lax.is_finite(x)), x)


@pytest.mark.extended
def test_bitcasts_keep_all_bytes(library: ctypes.CDLL) -> None:
    for source, target in MIXED["bitcast"]:
        x = operand_of(dtype_of(source))
        got = call(library, f"bitcast_{source}_{target}", x, result_dtype=dtype_of(target))
        assert got.tobytes() == x.tobytes(), (source, target)


def test_package_is_built_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = cache / "package"
    path = kernel_library.package_path(directory)
    before = path.stat().st_mtime_ns
    assert path.suffix == ".mojoc"
    assert directory.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(kernel_library, "subprocess_run_mojo", None)     # no compiler may run
    assert kernel_library.package_path(directory) == path
    assert path.stat().st_mtime_ns == before
    assert list(directory.iterdir()) == [path]


def test_compiler_errors_are_shown(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = cache / "broken" / "kernels"
    sources.mkdir(parents=True)
    (sources / "__init__.mojo").write_text("def broken(:\n")
    monkeypatch.setattr(kernel_library, "SOURCES", sources)
    with pytest.raises(kernel_library.KernelBuildError, match="__init__.mojo:1"):
        kernel_library.package_path(cache / "broken" / "out")


CPU = DeviceRef.CPU()


class GraphCases:
    """One MAX module of single-kernel graphs, each with JAX's result."""

    def __init__(self, package: Path) -> None:
        self.package = package
        self.module = Module()
        self.cases: list[tuple[str, list[np.ndarray], list[np.ndarray], float]] = []

    def add(self, name: str, operands: list[np.ndarray], expected: list[Any],
            tolerance: float = 0, **parameters: Any) -> None:
        arrays = [np.asarray(value) for value in expected]

        def kind(array: np.ndarray) -> TensorType:
            return TensorType(getattr(DType, array.dtype.name), array.shape, CPU)

        with Graph(f"case{len(self.cases)}", input_types=[kind(x) for x in operands],
                   module=self.module, custom_extensions=[self.package]) as graph:
            results = ops.custom(f"maxjax_{name}", CPU, [v.tensor for v in graph.inputs],
                                 [kind(array) for array in arrays], parameters=parameters or None)
            graph.output(*(result.tensor for result in results))
        self.cases.append((name, operands, arrays, tolerance))

    def buffer(self, array: np.ndarray) -> driver.Buffer:
        array = np.ascontiguousarray(array)
        if array.dtype == np.bool_:
            return driver.Buffer.from_numpy(array.view(np.uint8)).view(DType.bool)
        return driver.Buffer.from_numpy(array)

    def check(self) -> None:
        session = engine.InferenceSession(devices=[driver.CPU()])
        compiled = session.compile(self.module, custom_extensions=[self.package])
        models = session.init_all(compiled)
        for number, (name, operands, expected, tolerance) in enumerate(self.cases):
            buffers = [self.buffer(x) for x in operands]
            results = models[f"case{number}"].execute(*buffers)
            for result, wanted in zip(results, expected, strict=True):
                np.testing.assert_allclose(
                    np.asarray(result.to_numpy(), wanted.dtype), wanted, rtol=tolerance,
                    atol=tolerance, err_msg=f"{name} {[x.shape for x in operands]}")


@pytest.mark.extended
@pytest.mark.slow
def test_in_graphs(cache: Path) -> None:
    rng = np.random.default_rng(0)
    cases = GraphCases(kernel_library.package_path(cache))
    x = rng.normal(size=(5, 7)).astype(np.float32)
    x[0, :3] = np.nan, np.inf, -0.0
    cases.add("tanh", [x], [jnp.tanh(x)], 1e-6)
    cases.add("max", [x, x[::-1].copy()], [lax.max(x, x[::-1])])
    cases.add("is_finite", [x], [lax.is_finite(x)])
    cases.add("ne", [x, x[::-1].copy()], [x != x[::-1]])
    cases.add("lt", [x > 0, x[::-1] > 0], [(x > 0) < (x[::-1] > 0)])
    cases.add("convert", [x], [lax.convert_element_type(jnp.asarray(x), np.int32)])
    for shape in ((1, 30000, 1), (3, 37, 83)):
        x = rng.normal(size=shape).astype(np.float32)
        x[-1, 0, -1] = np.nan
        outer, count, inner = shape
        cases.add("reduce_sum", [x], [jnp.sum(x, 1)], 2e-5)
        cases.add("reduce_max", [x], [np.max(x, 1)])
        cases.add("argmax", [x], [jnp.argmax(x, 1).astype(np.int32)])
        cases.add("argmin", [x], [jnp.argmin(x, 1).astype(np.int32)])
        for reverse in (False, True):
            cases.add("cumlogsumexp", [x], [lax.cumlogsumexp(x, 1, reverse)], 2e-5,
                      reverse=reverse)
        rows = x.reshape(outer, -1)
        cases.add("argsort", [rows], [jnp.argsort(rows, 1).astype(np.int32)])
        cases.add("transpose", [x.reshape(*shape, 1)],
                  [x.transpose(0, 2, 1).reshape(outer, inner, count, 1)])
    flags = rng.random((4, 50, 3)) > 0.1
    cases.add("reduce_min", [flags], [flags.all(1)])
    cases.add("argmin", [flags], [jnp.argmin(flags, 1).astype(np.int32)])
    words = rng.integers(0, 2**32, (2, 1001), np.uint32)
    key = words[:, :1]
    hashed = threefry2x32_p.bind(*(jnp.broadcast_to(word, (1001,)) for word in key), *words)
    cases.add("threefry2x32", [key[0], key[1], words[0], words[1]], list(hashed))
    cases.check()
