"""The case table: the definition of a case, and the checks derived from one.

A family's module ``tests.cases.<family>`` defines ``CASES``, a list of ``Case``. The same function
runs on maxjax and on real JAX; every check compares the two, or two paths through maxjax.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import os
import pkgutil
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MAXJAX_COMPILE", "never")      # tier 1 has its own checks

import jax
import jax.numpy
import numpy as np

import maxjax
import maxjax.lax
import maxjax.numpy
from maxjax import _higher_order, _primitives
from maxjax._base.config import enable_x64
from maxjax._ir.check import check_jaxpr
from maxjax._ir.primitive import Primitive, registry
from maxjax._ir.runtime import installed
from maxjax._ir.staging import trace_to_jaxpr
from tests import ROOT, cases
from tests.support import quick_jax, tolerances

FLOAT0 = jax.dtypes.float0

# Most of a run's time is spent in XLA: the next run reuses what this one compiled.
jax.config.update("jax_compilation_cache_dir",
                  str(ROOT / ".pytest_cache" / "jax"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def all_primitives() -> dict[str, Primitive]:
    """The package's primitives by name, including those of modules loaded on demand."""
    for package in (_higher_order, _primitives):
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
    importlib.import_module("maxjax.experimental.checkify")
    return {name: primitive for name, primitive in registry.items()
            if not name.startswith("test_")}      # a test's own


def expanded() -> set[str]:
    """The primitives that represent several operations until they are compiled."""
    return {name for name, primitive in registry.items() if primitive.inner.expand is not None}


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """One row of a family's table.

    Attributes:
      name: unique in its family.
      fun: called as ``fun(j, *args)``, where ``j`` is ``maxjax`` or ``jax``; returns arrays or a
        pytree of them.
      args: NumPy arrays, or Python scalars (weakly typed).
      differentiable: jvp and vjp are compared with JAX's.
      smooth: finite differences and the adjoint identity hold at ``args`` (no ties, no edges, no
        NaN or infinity), and ``fun`` preserves float64.
      linear: ``fun`` is linear in its inexact arguments: the jvp must equal ``fun`` itself.
      vmappable: vmap is compared with a loop.
      jittable: ``fun`` can be traced.
      raises: both libraries must raise the same error, with the same message.
      x64: runs with 64-bit types.
      tolerance: a class of ``tolerances``.
      signed_zeros: the sign of a zero result matters.
      by_default: JAX's rounding matters, or where it overflows: XLA optimizes as by default.
      primitives: what the case exercises beyond what running it shows.
    """

    name: str
    fun: Callable[..., Any]
    args: tuple[Any, ...]
    differentiable: bool = True
    smooth: bool = True
    linear: bool = False
    vmappable: bool = True
    jittable: bool = True
    raises: bool = False
    x64: bool = False
    tolerance: str = "elementwise"
    signed_zeros: bool = True
    by_default: bool = False
    primitives: tuple[str, ...] = ()

    def seed(self) -> int:
        return zlib.crc32(self.name.encode())

    def on(self, library: Any) -> Callable[..., Any]:
        """The function with its library bound; arguments become the library's arrays first."""
        convert = jax.numpy.asarray if library is jax else installed.runtime.operand
        return lambda *args: self.fun(library, *map(convert, args))

    @contextlib.contextmanager
    def precision(self) -> Iterator[None]:
        with jax.enable_x64(self.x64), enable_x64(self.x64):
            yield


def is_inexact(dtype: Any) -> bool:
    return jax.numpy.issubdtype(dtype, np.inexact)


def random_like(rng: np.random.Generator, value: Any) -> Any:
    """A tangent or cotangent of ``value`` (anything with shape and dtype, or a Python scalar)."""
    if isinstance(value, (bool, int)):
        return np.zeros((), FLOAT0)
    if isinstance(value, (float, complex)):
        return type(value)(rng.normal())
    if not is_inexact(value.dtype):
        return np.zeros(value.shape, FLOAT0)
    noise = rng.normal(size=value.shape)
    if value.dtype.kind == "c":
        noise = noise + 1j * rng.normal(size=value.shape)
    return np.asarray(noise).astype(value.dtype)


def leaves(tree: Any) -> list[Any]:
    return jax.tree_util.tree_leaves(tree)


# --- the reference --------------------------------------------------------------------------------

@dataclasses.dataclass
class Reference:
    """Real JAX's results: leaves of results, tangents, cotangents of the arguments."""

    outputs: list[Any]
    tangents: list[Any] = dataclasses.field(default_factory=list)        # of the arguments
    out_tangents: list[Any] = dataclasses.field(default_factory=list)
    cotangents: Any = None                   # of the result, as a pytree
    in_cotangents: list[Any] = dataclasses.field(default_factory=list)


@functools.lru_cache(maxsize=256)
def reference(case: Case) -> Reference:
    """All of JAX's results for a case, in one compilation."""
    fun = case.on(jax)
    jit = quick_jax.as_by_default if case.by_default else jax.jit
    rng = np.random.default_rng(case.seed())
    with case.precision():
        if not case.jittable:
            result = Reference(leaves(fun(*case.args)))
        elif not case.differentiable:
            result = Reference(leaves(jit(fun)(*case.args)))
        else:
            shapes = jax.eval_shape(fun, *case.args)
            tangents = [random_like(rng, arg) for arg in case.args]
            cotangents = jax.tree_util.tree_map(lambda s: random_like(rng, s), shapes)
            # float0 is not an argument of jit: those stay outside.
            moving = [i for i, t in enumerate(tangents) if getattr(t, "dtype", None) != FLOAT0]

            def everything(args, given):
                directions = list(tangents)
                for position, tangent in zip(moving, given, strict=True):
                    directions[position] = tangent
                outputs, out_tangents = jax.jvp(fun, tuple(args), tuple(directions))
                _, pullback = jax.vjp(fun, *args)
                in_cotangents = [x for x in pullback(cotangents) if x.dtype != FLOAT0]
                kept = [t for t in leaves(out_tangents) if t.dtype != FLOAT0]
                return leaves(outputs), kept, in_cotangents

            given = [tangents[i] for i in moving]
            outputs, out_tangents, in_cotangents = jit(everything)(list(case.args), given)
            result = Reference(outputs, tangents, out_tangents, cotangents, in_cotangents)
        jax.block_until_ready((result.outputs, result.out_tangents, result.in_cotangents))
    return result


# --- comparison -----------------------------------------------------------------------------------

def assert_same(actual: Any, expected: Any, kind: str, *, derivative: bool = False,
                signed_zeros: bool = True, weak: bool = True, what: str = "") -> None:
    """``actual`` (maxjax's) equals ``expected``: dtype, shape, weak_type; values within bounds."""
    assert actual.dtype == expected.dtype, f"{what}dtype {actual.dtype}, not {expected.dtype}"
    assert actual.shape == expected.shape, f"{what}shape {actual.shape}, not {expected.shape}"
    if weak and hasattr(expected, "weak_type") and hasattr(actual, "weak_type"):
        assert actual.weak_type == expected.weak_type, (
            f"{what}weak_type {actual.weak_type}, not {expected.weak_type}")
    if jax.dtypes.issubdtype(expected.dtype, jax.dtypes.extended):
        return
    if expected.dtype == FLOAT0:
        return
    assert_close(np.asarray(actual), np.asarray(expected), kind, derivative, signed_zeros, what)


def assert_close(actual: np.ndarray, expected: np.ndarray, kind: str, derivative: bool = False,
                 signed_zeros: bool = True, what: str = "") -> None:
    dtype = expected.dtype
    relative, absolute = tolerances.bounds(kind, dtype, derivative)
    if dtype.kind == "c":
        # A part with a NaN or an infinity is compared by itself, the rest as complex numbers.
        finite = np.isfinite(actual) & np.isfinite(expected)
        error = np.abs(actual[finite] - expected[finite])
        bound = relative * np.abs(expected[finite]) + absolute
        wrong = np.zeros(expected.shape, bool)
        wrong[finite] = error > bound
        for part in (np.real, np.imag):
            a, e = part(actual), part(expected)
            wrong |= ~finite & (np.isnan(a) != np.isnan(e)) | (
                ~finite & np.isinf(e) & ~np.isnan(a) & (a != e))
    elif not is_inexact(dtype):
        wrong = np.asarray(actual != expected)
    else:
        a, e = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
        with np.errstate(all="ignore"):
            wrong = np.asarray(~((np.abs(a - e) <= relative * np.abs(e) + absolute)
                                 | (a == e) | (np.isnan(a) & np.isnan(e))))
        if signed_zeros and not derivative:
            wrong |= (a == 0) & (e == 0) & (np.signbit(a) != np.signbit(e))
    if wrong.any():
        first = [tuple(index.tolist()) for index in np.argwhere(wrong)[:6]]
        lines = [f"  at {index}: {actual[index]!r}, not {expected[index]!r}" for index in first]
        raise AssertionError(
            f"{what}{int(wrong.sum())} of {wrong.size} elements differ ({kind}, {dtype})\n"
            + "\n".join(lines))


def assert_all_same(actual: Any, expected: list[Any], kind: str, **options: Any) -> None:
    values = leaves(actual)
    assert len(values) == len(expected), f"{len(values)} results, not {len(expected)}"
    what = options.pop("what", "")
    for number, (a, e) in enumerate(zip(values, expected, strict=True)):
        assert_same(a, e, kind, what=f"{what}[{number}] " if len(expected) > 1 else what, **options)


def with_parts(values: list[Any]) -> list[np.ndarray]:
    """Real float64 vectors: complex numbers as pairs, integers dropped."""
    parts = []
    for value in values:
        dtype = getattr(value, "dtype", None) or np.asarray(value).dtype
        if dtype == FLOAT0 or not is_inexact(dtype):
            continue
        value = np.asarray(value)
        if value.dtype.kind == "c":
            parts += [np.real(value).astype(np.float64), np.imag(value).astype(np.float64)]
        else:
            parts.append(value.astype(np.float64))
    return parts


def inner(xs: list[Any], ys: list[Any]) -> tuple[float, float]:
    """The inner product of two lists of arrays, and the sum of its terms' magnitudes."""
    products = [x * y for x, y in zip(with_parts(xs), with_parts(ys), strict=True)]
    return (float(sum([np.sum(p) for p in products])),
            float(sum([np.sum(np.abs(p)) for p in products])))


# --- the checks -----------------------------------------------------------------------------------

_KINDS = re.compile(r"(?<=are subtypes of )[\w, ]+")
_NUMPY_INTEGER = re.compile(r"np\.int\d+\((-?\d+)\)")


def stable(message: str) -> str:
    """A message without what changes from run to run in JAX's: the kinds of accepted dtypes
    are those of a set, in any order; and parameters are the first equal ones that JAX has seen, so
    that a 1 is written as a NumPy integer where an earlier call had that."""
    message = _NUMPY_INTEGER.sub(r"\1", message)
    return _KINDS.sub(lambda found: ", ".join(sorted(found[0].split(", "))), message)


def check_raises(case: Case) -> None:
    errors = []
    for library in (jax, maxjax):
        with case.precision():
            try:
                case.on(library)(*case.args)
            except Exception as error:
                errors.append(error)
            else:
                raise AssertionError(f"{library.__name__} raises nothing")
    expected, actual = errors
    assert type(actual).__name__ == type(expected).__name__, (
        f"{type(actual).__name__}: {actual}\nnot {type(expected).__name__}: {expected}")
    assert stable(str(actual)) == stable(str(expected)), f"{actual}\nnot {expected}"


def check_value(case: Case) -> None:
    expected = reference(case).outputs
    with case.precision():
        actual = case.on(maxjax)(*case.args)
        assert_all_same(actual, expected, case.tolerance, signed_zeros=case.signed_zeros)


def check_jit(case: Case) -> None:
    expected = reference(case).outputs
    with case.precision():
        compiled = maxjax.jit(case.on(maxjax))
        for _ in range(2):      # traced, then found
            assert_all_same(compiled(*case.args), expected, case.tolerance,
                            signed_zeros=case.signed_zeros)


def check_jvp(case: Case) -> None:
    known = reference(case)
    with case.precision():
        outputs, out_tangents = maxjax.jvp(
            case.on(maxjax), tuple(case.args), tuple(known.tangents))
        assert_all_same(outputs, known.outputs, case.tolerance, weak=False,
                        signed_zeros=case.signed_zeros)
        kept = [t for t in leaves(out_tangents) if t.dtype != FLOAT0]
        assert_all_same(kept, known.out_tangents, case.tolerance, derivative=True, weak=False)
        if case.linear:
            images = [x for x in leaves(case.on(maxjax)(*(
                arg if getattr(t, "dtype", None) == FLOAT0 else t
                for arg, t in zip(case.args, known.tangents, strict=True))))
                if is_inexact(x.dtype)]
            assert_all_same(kept, images, case.tolerance, derivative=True, weak=False)


def check_vjp(case: Case) -> None:
    """The transposed function under jit, and plain, against JAX's."""
    known = reference(case)
    with case.precision():
        for fun in (case.on(maxjax), maxjax.jit(case.on(maxjax))):
            pullback: Any = maxjax.vjp(fun, *case.args)[1]
            check_jaxpr(pullback.linear)
            actual = [x for x in pullback(known.cotangents) if x.dtype != FLOAT0]
            assert_all_same(
                actual, known.in_cotangents, case.tolerance, derivative=True, weak=False)


def check_adjoint(case: Case) -> None:
    """<Jv, w> == <v, J^T w>, with the convention that J^T does not conjugate."""
    known = reference(case)
    with case.precision():
        fun = case.on(maxjax)
        _, out_tangents = maxjax.jvp(fun, tuple(case.args), tuple(known.tangents))
        _, pullback = maxjax.vjp(fun, *case.args)
        in_cotangents = pullback(known.cotangents)
    def conjugate(xs):
        return [np.conj(np.asarray(x)) if getattr(x, "dtype", np.dtype(float)).kind == "c" else x
                for x in xs]
    left, left_size = inner(leaves(out_tangents), conjugate(leaves(known.cotangents)))
    right, right_size = inner(list(known.tangents), conjugate(in_cotangents))
    if not (np.isfinite(left) and np.isfinite(right)):
        return
    unit = max([tolerances.epsilon(np.asarray(x).dtype) for x in leaves(known.outputs)
                if is_inexact(x.dtype)] + [np.finfo(np.float32).eps])
    bound = 64 * unit * max(left_size, right_size) + 1e-30
    assert abs(left - right) <= bound, f"<Jv, w> = {left}, <v, JTw> = {right}"


def check_finite_differences(case: Case) -> None:
    """The jvp in float64 against central differences."""
    rng = np.random.default_rng(case.seed() + 1)
    step = tolerances.FINITE_DIFFERENCE_STEP
    with jax.enable_x64(True), enable_x64(True):
        args = tuple(widened(arg) for arg in case.args)
        tangents = tuple(random_like(rng, arg) for arg in args)
        fun = case.on(maxjax)

        def moved(scale: float) -> list[Any]:
            return with_parts(leaves(fun(*(
                arg if getattr(t, "dtype", None) == FLOAT0 else arg + scale * t
                for arg, t in zip(args, tangents, strict=True)))))

        difference = [(after - before) / (2 * step)
                      for after, before in zip(moved(step), moved(-step), strict=True)]
        _, out_tangents = maxjax.jvp(fun, args, tangents)
        for actual, expected in zip(with_parts(leaves(out_tangents)), difference, strict=True):
            np.testing.assert_allclose(
                actual, expected, rtol=tolerances.FINITE_DIFFERENCE_RELATIVE,
                atol=(tolerances.FINITE_DIFFERENCE_ABSOLUTE
                      * max(1.0, np.abs(expected).max(initial=0))))


def widened(arg: Any) -> Any:
    if isinstance(arg, (bool, int, float, complex)) or not is_inexact(arg.dtype):
        return arg
    return arg.astype(np.complex128 if arg.dtype.kind == "c" else np.float64)


def stacked(arg: Any) -> np.ndarray:
    """Three values like ``arg``, along a new first axis: itself, reversed, shuffled."""
    arg = np.asarray(arg)
    if not arg.ndim:
        kin = arg * np.asarray(0.75, arg.dtype) if is_inexact(arg.dtype) else arg
        return np.stack([arg, np.asarray(kin), arg])
    flipped = np.flip(arg)
    rolled = np.roll(arg, 1, axis=-1)
    return np.stack([arg, flipped, rolled])


def check_vmap(case: Case) -> None:
    """vmap against a loop: all arguments mapped (first and last axis), and each one alone."""
    count = len(case.args)
    fun = case.on(maxjax)
    with case.precision():
        args = [np.asarray(installed.runtime.operand(arg)) for arg in case.args]
        plans: list[tuple[int | None, ...]] = [tuple(0 for _ in args)]
        plans.append(tuple(np.ndim(arg) for arg in args))
        if count > 1:
            plans += [tuple(0 if i == n else None for i in range(count)) for n in range(count)]
        for plan in plans:
            values = [arg if axis is None else stacked(arg)
                      for arg, axis in zip(args, plan, strict=True)]
            loop = [leaves(fun(*(v if axis is None else v[i]
                                 for v, axis in zip(values, plan, strict=True))))
                    for i in range(3)]
            moved = [v if axis is None else np.moveaxis(v, 0, axis)
                     for v, axis in zip(values, plan, strict=True)]
            plain = maxjax.vmap(fun, in_axes=plan)
            for mapped in (plain, maxjax.jit(plain)):
                actual = leaves(mapped(*moved))
                for number, result in enumerate(actual):
                    expected = np.stack([np.asarray(outputs[number]) for outputs in loop])
                    assert_same(result, expected, case.tolerance, weak=False,
                                signed_zeros=case.signed_zeros,
                                what=f"in_axes={plan} [{number}] ")


def check_vmap_of_gradient(case: Case) -> None:
    """vmap of the pullback against a loop."""
    known = reference(case)
    fun = case.on(maxjax)

    def gradient(*args: Any) -> list[Any]:
        _, pullback = maxjax.vjp(fun, *args)
        return [x for x in pullback(known.cotangents) if x.dtype != FLOAT0]

    with case.precision():
        values = [stacked(np.asarray(installed.runtime.operand(arg))) for arg in case.args]
        mapped = maxjax.vmap(gradient)(*values)
        loop = [gradient(*(v[i] for v in values)) for i in range(3)]
        for number, result in enumerate(mapped):
            expected = np.stack([np.asarray(outputs[number]) for outputs in loop])
            assert_same(result, expected, case.tolerance, derivative=True, weak=False,
                        what=f"[{number}] ")


# --- the tables -----------------------------------------------------------------------------------

def families() -> dict[str, list[Case] | Exception]:
    """The cases of each family; the error if a family's file cannot be imported."""
    found: dict[str, list[Case] | Exception] = {}
    for module in pkgutil.iter_modules(cases.__path__):
        family = module.name
        if family.startswith("test_"):
            continue
        try:
            found[family] = importlib.import_module(f"{cases.__name__}.{family}").CASES
        except Exception as error:
            found[family] = error
    return found


def primitives_of(function: Callable[..., Any], args: Sequence[Any]) -> set[str]:
    """The names of the primitives in the jaxpr of a function of arrays, inner jaxprs included."""
    operands = [installed.runtime.operand(arg) for arg in args]
    closed = trace_to_jaxpr(lambda *xs: leaves(function(*xs)), [x.aval for x in operands], "a case")
    names: set[str] = set()
    pending: list[Any] = [closed.jaxpr]
    while pending:
        for eqn in pending.pop().eqns:
            names.add(eqn.primitive.name)
            for value in eqn.params.values():
                for inner_jaxpr in value if isinstance(value, (tuple, list)) else (value,):
                    inner_jaxpr = getattr(inner_jaxpr, "jaxpr", inner_jaxpr)
                    if hasattr(inner_jaxpr, "eqns"):
                        pending.append(inner_jaxpr)
    return names


def exercised(case: Case, derivatives: bool) -> set[str]:
    """The primitives that a case reaches, directly or in its jvp and vjp."""
    names = set(case.primitives)
    if case.raises or not case.jittable:
        return names
    rng = np.random.default_rng(0)
    with case.precision():
        fun = case.on(maxjax)
        if not derivatives:
            return names | primitives_of(fun, case.args)
        tangents = tuple([random_like(rng, arg) for arg in case.args])
        if not case.differentiable or all(
                getattr(t, "dtype", None) == FLOAT0 for t in tangents):
            return names

        def both(*args: Any) -> Any:
            _, out_tangents = maxjax.jvp(fun, args, tangents)
            outputs, pullback = maxjax.vjp(fun, *args)
            cotangents = maxjax.tree.map(lambda x: random_like(rng, x), outputs)
            return [x for x in leaves((out_tangents, pullback(cotangents)))
                    if x.dtype != FLOAT0]

        return names | primitives_of(both, case.args)
