"""The language of the tables: inputs, cases, and families of cases. README.md shows it at work."""

from __future__ import annotations

import ast
import dataclasses
import functools
import itertools
import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tests.support.elementwise import Interval

MODES = ("eager", "jit", "grad", "vmap", "jvg")      # jvg: jit of vmap of grad
X64 = ("float64", "int64", "uint64", "complex128")
BATCH = 3


def dtype_of(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


def kind_of(name: str) -> str:
    """b, i, u, f, c, or O for what has no numbers."""
    if name in ("bool", "complex64", "complex128"):
        return name[0]
    if name.startswith(("uint", "int")):
        return name[0]
    return "f" if name.startswith(("float", "bfloat")) and name != "float0" else "O"


# --- inputs ---------------------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Input:
    """An array made anew, and always the same, from its name, dtype and shape.

    Attributes:
      make: called with a random generator and the dtype.
      dtype: None takes the dtype of the case.
      text: how it is shown.
      fixed: neither differentiated nor mapped.
      held: the NumPy array itself is passed, not the library's array.
      weak: a Python scalar, passed as it is.
      change: a view of the array that is passed in its place.
      remake: makes the same of another shape, where that makes sense.
    """

    make: Callable[[np.random.Generator, np.dtype], Any]
    dtype: str | None
    text: str
    fixed: bool = False
    held: bool = False
    weak: bool = False
    change: Callable[[np.ndarray], np.ndarray] | None = None
    remake: Callable[[tuple[int, ...]], Input] | None = None

    def generate(self, name: str, dtype: str, variant: int = 0) -> Any:
        if self.weak:
            return self.make(None, None)      # type: ignore[arg-type]
        rng = np.random.default_rng(zlib.crc32(f"{name}{variant}".encode()))
        chosen = dtype_of(self.dtype or dtype)
        with np.errstate(all="ignore"):
            value = np.asarray(self.make(rng, chosen)).astype(chosen)
        return value if self.change is None else self.change(value)

    def fix(self) -> Input:
        """Neither differentiated nor mapped."""
        return dataclasses.replace(self, fixed=True)

    def numpy(self) -> Input:
        """Passed as a NumPy array."""
        return dataclasses.replace(self, held=True, text=f"{self.text}.numpy()")

    def strided(self) -> Input:
        """A NumPy array of the same shape that is not contiguous: every axis runs backwards in
        steps of two, and the axes lie in reverse order."""
        def change(value: np.ndarray) -> np.ndarray:
            room = np.zeros(tuple(2 * n for n in value.shape[::-1]), value.dtype).T
            view = room[tuple(slice(None, None, -2) for _ in value.shape)]
            view[...] = value
            return view
        return dataclasses.replace(self, held=True, change=change, text=f"{self.text}.strided()")


def shaped(*shape: int, dtype: str | None = None, low: float = -3.0, high: float = 3.0,
           distinct: bool = False) -> Input:
    """Random values between ``low`` and ``high`` of any dtype; unsigned integers from 0 up.

    Args:
      distinct: no two elements are equal, and neighbours stand well apart (sorting, maxima).
    """
    def make(rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        kind = kind_of(dtype.name)
        if kind == "b":
            return rng.integers(0, 2, shape).astype(bool)
        if distinct:
            size = int(np.prod(shape))
            ranks = rng.permutation(size).reshape(shape)
            if kind in "iu":
                return ranks + (0 if kind == "u" else int(low))
            return low + (high - low) * (ranks + 0.5) / max(size, 1)
        if kind in "iu":
            return rng.integers(max(0, int(low)) if kind == "u" else int(low),
                                max(1, int(high) + 1), shape)
        values = rng.uniform(low, high, shape)
        return values + 1j * rng.uniform(low, high, shape) if kind == "c" else values
    extra = "" if (low, high) == (-3.0, 3.0) else f", low={low}, high={high}"
    extra += ", distinct" if distinct else ""

    def remake(shape: tuple[int, ...]) -> Input:
        return shaped(*shape, dtype=dtype, low=low, high=high, distinct=distinct)

    return Input(make, dtype, f"{dtype or ''}{list(shape)}{extra}", remake=remake)


def floats(*shape: int, **options: Any) -> Input:
    return shaped(*shape, **{"dtype": "float32", **options})


def ints(*shape: int, low: int = 0, high: int = 5, dtype: str = "int32") -> Input:
    """Random integers from ``low`` to ``high``, both included; indices and such."""
    return shaped(*shape, dtype=dtype, low=low, high=high)


def bools(*shape: int) -> Input:
    return shaped(*shape, dtype="bool")


def array(values: Any, dtype: str | None = None) -> Input:
    """These values, of the case's dtype if none is given."""
    return Input(lambda rng, dtype: np.array(values), dtype, f"{dtype or ''}{values}")


def scalar(value: bool | int | float | complex) -> Input:
    """A Python scalar, weakly typed: an argument, not a part of the expression."""
    return Input(lambda rng, dtype: value, "", repr(value), fixed=True, weak=True)


def special(dtype: str | None = None) -> Input:
    """NaN, infinities, both zeros, large and small numbers; the edges of an integer type."""
    def make(rng: np.random.Generator, dtype: np.dtype) -> Any:
        kind = kind_of(dtype.name)
        if kind == "b":
            return [True, False]
        if kind in "iu":
            edges = np.iinfo(dtype)
            return np.array([edges.min, edges.max, 0, 1, edges.max // 2 + 1, 7], dtype)
        real = np.empty(0, dtype).real.dtype if kind == "c" else dtype
        info: Any = ml_dtypes.finfo(real)
        values = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, float(info.max),
                  -float(info.max), float(info.eps), 1.5, -2.5]
        if kind == "c":
            return np.array([complex(a, b) for a, b in itertools.product(
                [0.0, -0.0, 1.0, -2.0, np.inf, np.nan], [0.0, -0.0, 1.5, -np.inf])])
        return values
    return Input(make, dtype, f"{dtype or ''} special values", fixed=True)


def identities(shape: tuple[int, ...]) -> np.ndarray:
    return np.broadcast_to(np.eye(*shape[-2:], dtype=bool), shape)


def matrix(*shape: int, dtype: str | None = None) -> Input:
    """Random and well-conditioned: square matrices have a dominant diagonal, all different. Of
    booleans, which random ones would be all true and singular, the identity."""
    def make(rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        if dtype == np.bool_:
            return identities(shape)
        values = rng.normal(size=shape)
        if kind_of(dtype.name) == "c":
            values = values + 1j * rng.normal(size=shape)
        n = min(shape[-2:])
        values[..., range(n), range(n)] += 3.0 + 1.3 * np.arange(n)
        return values
    return Input(make, dtype, f"{dtype or ''}{list(shape)}, well-conditioned")


def positive_definite(*shape: int, dtype: str | None = None) -> Input:
    """Random Hermitian positive definite matrices with eigenvalues well apart; of booleans, the
    identity."""
    def make(rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        if dtype == np.bool_:
            return identities(shape)
        values = rng.normal(size=shape)
        if kind_of(dtype.name) == "c":
            values = values + 1j * rng.normal(size=shape)
        q, _ = np.linalg.qr(values)
        scales = 1.0 + 1.3 * np.arange(shape[-1])
        return (q * scales) @ np.conj(np.swapaxes(q, -1, -2))
    return Input(make, dtype, f"{dtype or ''}{list(shape)}, positive definite")


def as_input(value: Any) -> Input:
    """Plain values are allowed in a table: a Python scalar, or anything that NumPy takes."""
    if isinstance(value, Input):
        return value
    if isinstance(value, (bool, int, float, complex)):
        return scalar(value)
    value = np.asarray(value)
    return array(value.tolist(), value.dtype.name)


# --- cases ----------------------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """An expression with its inputs, evaluated by both libraries in every mode that applies.

    Attributes:
      text: Python; statements may come before the expression that is the result. It sees ``f``
        (what the table's row names), ``jnp``, ``lax``, ``jax``, ``np`` and the inputs.
      inputs: by name; they are the arguments of jit, grad and vmap.
      dtype: of inputs that name none.
      modes: those it runs in.
      differentiable, mapped: names of inputs; None means all that can be.
      raises: False, True (both libraries raise in eager mode, errors of the same type), a string
        that both messages contain, or None: what JAX does decides.
      x64: with 64-bit types.
      tolerance: a class of tests/support/tolerances.py.
      signed_zeros: the sign of a zero counts.
      name: the table's row.
    """

    text: str
    inputs: dict[str, Input]
    dtype: str = "float32"
    modes: tuple[str, ...] = MODES
    differentiable: tuple[str, ...] | None = None
    mapped: tuple[str, ...] | None = None
    raises: bool | str | None = False
    x64: bool = False
    tolerance: str = "elementwise"
    signed_zeros: bool = True
    name: str = ""

    def of(self, name: str) -> Case:
        return dataclasses.replace(self, name=name)

    @functools.cached_property
    def code(self) -> tuple[Any, Any]:
        """The statements, compiled, or None, and the expression that is the result."""
        tree = ast.parse(self.text.strip())
        last = tree.body.pop()
        if not isinstance(last, ast.Expr):
            raise SyntaxError(f"{self.name}: {self.text!r} does not end in an expression")
        file = f"<{self.name}>"
        before = compile(tree, file, "exec") if tree.body else None
        return before, compile(ast.Expression(last.value), file, "eval")

    def values(self, variant: int = 0) -> dict[str, Any]:
        return {name: made.generate(name, self.dtype, variant)
                for name, made in self.inputs.items()}

    @property
    def shown(self) -> str:
        """The expression, with the row's own name in place of ``f``."""
        return re.sub(r"(?<![\w.\"'])f(?![\w\"'=])", short_name(self.name), self.text.strip())

    @property
    def title(self) -> str:
        """The expression and its inputs on one line."""
        inputs = ", ".join(
            f"{name}={made.text if made.dtype is not None else self.dtype + made.text}"
            for name, made in self.inputs.items())
        x64 = "x64" if self.x64 else ""
        return "; ".join(part for part in (self.shown, inputs, x64) if part)

    @functools.cached_property
    def key(self) -> str:
        """All that what JAX answers depends on, but for the inputs' values."""
        return "|".join(map(str, (self.title, self.modes, self.differentiable, self.mapped,
                                  self.raises, self.tolerance, self.signed_zeros)))


def short_name(name: str) -> str:
    for long, short in (("jax.numpy.", "jnp."), ("jax.lax.", "lax.")):
        if name.startswith(long):
            return short + name.removeprefix(long)
    return name


def _names(given: bool | str | None) -> tuple[str, ...] | None:
    """None and True: all that can be; False: none."""
    if given is None or given is True:
        return None
    return tuple(given.split()) if given else ()


def case(text: str, *, dtypes: str = "float32", modes: str | None = None,
         grad: bool | str | None = None, vmap: bool | str | None = None,
         raises: bool | str | None = False, x64: bool = False, tol: str = "elementwise",
         signed_zeros: bool = True, **inputs: Any) -> list[Case]:
    """A case, once for each of ``dtypes`` (names with blanks between).

    Args:
      text: see ``Case``.
      dtypes: for the inputs that name no dtype themselves.
      modes: "eager jit" and so on; all if left out, eager and jit if it has no inputs or raises.
      grad, vmap: False leaves the mode out; "x y" names the inputs to differentiate, to map.
      raises, x64, tol, signed_zeros: see ``Case``.
      **inputs: made by ``shaped`` and so on, or plain values.
    """
    made = {name: as_input(value) for name, value in inputs.items()}
    chosen = tuple(modes.split()) if modes else MODES
    if modes is None and (raises or not made):
        chosen = ("eager", "jit")
    differentiable, mapped = _names(grad), _names(vmap)
    chosen = tuple(mode for mode in chosen
                   if not (mode in ("grad", "jvg") and differentiable == ())
                   and not (mode in ("vmap", "jvg") and mapped == ()))
    return [Case(text, made, dtype, chosen, differentiable, mapped, raises,
                 x64 or dtype in X64, tol, signed_zeros)
            for dtype in dtypes.split()]


def cases(*texts: str, **options: Any) -> list[Case]:
    """Several expressions of the same inputs and options."""
    return [row for text in texts for row in case(text, **options)]


def check(*texts: str, x64: bool = False, raises: bool | str | None = False) -> list[Case]:
    """Plain Python, eager alone: constants, classes, printing, ``np.asarray(x)``.

    Arrays are compared as everywhere, Python numbers with their types, all else by ``repr``.
    """
    return [row for text in texts
            for row in case(text, modes="eager", x64=x64, raises=raises)]


def undecided(rows: Sequence[Case]) -> list[Case]:
    """The rows, where it is left to JAX whether they raise."""
    return [dataclasses.replace(row, raises=None) for row in rows]


# --- families -------------------------------------------------------------------------------------

DTYPES = "float32 bfloat16 float16 int32 int8 uint8 bool complex64"


def elementwise(count: int, domain: Interval | tuple[Interval, ...] = (-3.0, 3.0), *,
                dtypes: str = DTYPES, tol: str = "elementwise", complex_tol: str = "",
                grad: bool = True, call: str | None = None, edges: bool = True, x64: bool = True,
                promotes: bool = True, integers: tuple[int, int] | None = None,
                signed_zeros: bool = True) -> list[Case]:
    """A function of ``count`` arrays, element by element.

    Over the dtypes, 0-d, empty, size-one, high-rank, strided and broadcast operands, Python
    scalars, special values (``edges``), and float64 with x64 on. JAX decides which dtypes raise.

    Args:
      complex_tol: the tolerance of complex numbers, if it differs.
      domain: of floating and complex inputs, or of each of them; ``integers`` that of integers, if
        it differs.
      promotes: takes operands of different dtypes and shapes (jax.numpy does, jax.lax does not).
      call: instead of ``f(x, y, z)``.
    """
    names = "xyz"[:count]
    text = call or f"f({', '.join(names)})"
    intervals: Any = domain if isinstance(domain[0], tuple) else (domain,) * count
    limits: list[dict[str, Any]] = [{"low": low, "high": high} for low, high in intervals]
    whole = [{"low": integers[0], "high": integers[1]}] * count if integers else limits
    derivative = None if grad else False

    def row(*shapes: Sequence[int], modes: str | None = None, dtype: str = "float32",
            change: Callable[[Input], Input] = lambda made: made, **options: Any) -> list[Case]:
        bounds = whole if kind_of(dtype) in "iu" else limits
        made: dict[str, Any] = {
            name: change(shaped(*shape, **limit))
            for name, shape, limit in zip(names, itertools.cycle(shapes), bounds)}
        if modes is None and derivative is False:
            modes = "eager jit vmap"
        chosen = complex_tol or tol if kind_of(dtype) == "c" else tol
        return case(text, dtypes=dtype, modes=modes, tol=chosen, raises=None,
                    signed_zeros=signed_zeros, **made, **options)

    rows: list[Case] = []
    for dtype in dtypes.split():
        inexact = kind_of(dtype) in "fc"
        main = dtype in ("float32", "complex64")
        rows += row((2, 3), dtype=dtype, modes=None if main else
                    "eager jit grad" if inexact and grad else "eager jit")
    if "float32" in dtypes.split():
        rows += row((), modes=None if grad else "eager jit vmap")
        rows += row((0, 3), modes="eager jit vmap")
        rows += row((1, 2, 1, 2, 1, 2), modes="eager vmap")
        rows += row((3, 4), modes="eager jit", change=Input.strided)
        if edges and count == 1:
            rows += case(text, modes="eager jit", tol=tol, signed_zeros=signed_zeros,
                         x=special("float32"), raises=None)
        if count > 1 and promotes:
            rows += row((3, 1), (4,), (1, 1))
            scalars: dict[str, Any] = {
                name: scalar(0.375 * low + 0.625 * high)
                for name, (low, high) in zip(names[1:], intervals[1:])}
            rows += case(text, tol=tol, raises=None, x=floats(2, 3, **limits[0]), **scalars,
                         modes="eager jit grad" if grad else "eager jit")
            if {"int32", "bool"} <= set(dtypes.split()):
                mixed: dict[str, Any] = {
                    name: shaped(3, dtype=kind, **(whole if kind != "float32" else limits)[n])
                    for n, (name, kind) in enumerate(zip(names, ("int32", "float32", "bool")))}
                rows += case(text, tol=tol, raises=None, modes="eager jit", **mixed)
                others: dict[str, Any] = {name: scalar(2) for name in names[1:]}
                rows += case(text, tol=tol, raises=None, modes="eager jit",
                             x=shaped(3, dtype="int8", **whole[0]), **others)
        if edges and count == 2:
            grid = np.array(list(itertools.product(
                [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan], repeat=2)), np.float32)
            rows += case(text, modes="eager jit", tol=tol, raises=None, signed_zeros=signed_zeros,
                         x=_column(grid, 0), y=_column(grid, 1))
    if x64 and "float32" in dtypes.split():
        rows += row((2, 2), dtype="float64", modes="eager jit grad" if grad else "eager jit")
    return rows


def _column(grid: np.ndarray, number: int) -> Input:
    return Input(lambda rng, dtype: grid[:, number], "float32",
                 f"float32[{len(grid)}] pairs of special values ({number})", fixed=True)


def reduction(*, dtypes: str = DTYPES, tol: str = "accumulate", grad: bool = True,
              initial: bool = False, where: bool = False, keepdims: bool = True,
              tuples: bool = True, dtype: bool = False, empty: bool = True, x64: bool = True,
              low: float = -3.0, high: float = 3.0, distinct: bool = False) -> list[Case]:
    """``f(x, axis=..., keepdims=...)`` of jax.numpy.

    Args:
      initial, where, dtype, keepdims, tuples: it takes these arguments, tuples of axes.
      empty: try an empty axis.
      distinct: inputs without ties.
    """
    derivative = None if grad else False
    options: dict[str, Any] = {"low": low, "high": high, "distinct": distinct}
    full: dict[str, Any] = {"tol": tol, "grad": derivative, "raises": None}
    x = shaped(3, 4, **options)
    rows = cases("f(x)", "f(x, axis=0)", x=x, **full)
    rows += case("f(x, axis=-1)", x=x, modes="eager jit",
                 dtypes=" ".join(d for d in dtypes.split() if d != "float32"), **full)
    if "complex64" in dtypes.split():
        rows += case("f(x, axis=1)", x=x, dtypes="complex64",
                     **{**full, "modes": None if grad else "eager jit vmap"})
    if keepdims:
        rows += case("f(x, axis=1, keepdims=True)", x=x, **full)
    if tuples:
        rows += case("f(x, axis=(0, -1))", x=shaped(2, 3, 1, 2, **options), **full)
    rows += case("f(x)", x=shaped(**options), modes="eager jit", **full)
    rows += case("f(x, axis=2)", x=shaped(1, 2, 3, 1, 2, **options), modes="eager vmap", **full)
    rows += case("f(x, axis=0)", x=shaped(3, 4, **options).strided(), modes="eager jit", **full)
    if empty:
        rows += cases("f(x, axis=1)", "f(x)", x=shaped(3, 0, **options), modes="eager jit", **full)
    rows += case("f(x)", x=special("float32"), modes="eager jit", **full)
    mask: dict[str, Any] = {"mask": bools(3, 4).fix()}
    start = "1" if initial else None
    if initial:
        rows += case("f(x, axis=0, initial=1)", x=x, **full)
    if where:
        rest = f", initial={start}" if start else ""
        rows += case(f"f(x, axis=0, where=mask{rest})", x=x, **mask, **full)
    if dtype:
        rows += cases("f(x, axis=0, dtype='int32')", "f(x, dtype=jnp.float16)", x=x,
                      modes="eager jit", **full)
    rows += case("f(x, axis=5)", x=x, raises=True, modes="eager jit", tol=tol)
    if x64:
        rows += case("f(x, axis=0)", x=x, dtypes="float64 int64", modes="eager jit", **full)
    return rows


def constant(*texts: str) -> list[Case]:
    """A value that is not a function: itself, its type, and what it is in arithmetic."""
    return check("f", "type(f)", *texts)


def scalar_type(value: str = "1") -> list[Case]:
    """A dtype of jax.numpy: called, printed, and as a dtype."""
    return check(f"f({value})", "repr(f)", "jnp.dtype(f)", "f.dtype", "jnp.zeros(2, f)",
                 "f == jnp.dtype(f)", "jnp.issubdtype(f, jnp.number)", f"f([{value}, 0])",
                 "isinstance(f(1), jax.Array)", "f.__name__", "hash(f) == hash(f)",
                 "np.zeros(2, f).dtype")
