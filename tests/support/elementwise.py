"""The table of elementwise operations: what tests, compat and benchmarks need to know about each.

An operation's row determines its cases (``cases/elementwise.py``, ``cases/special.py``), the
accuracy required of its kernels (``graph/test_kernels.py``, ``mojo/test_native.py``) and of its
NumPy rule (``numpy/test_special_values.py``, ``runtime/test_processors.py``), its rows in compat
(``compat/tables/``), and its benchmarks (``benchmarks/special.py``,
``benchmarks/eager_million.py``).

Its primitives declare the dtypes it takes, its kernels, and whether it preserves zeros or may give
NaN; ``cases/test_elementwise.py`` checks that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.support import long_doubles

# --- what a row is made of ------------------------------------------------------------------------

Interval = tuple[float, float]
# The positions in a domain of the points at which derivatives are taken.
FRACTIONS = np.array([0.12, 0.32, 0.4, 0.56, 0.65, 0.78])
ANY, POSITIVE, UNIT = (-3.0, 3.0), (0.1, 5.0), (-0.9, 0.9)


@dataclass(frozen=True)
class Accuracy:
    """The permitted errors of a kernel of floats; half floats are correctly rounded.

    Attributes:
      single, double: units in the last place of float32 and of float64. Half a unit is correct
        rounding; None means that JAX's result is right to the bit.
      truth: in long doubles; None: JAX's of float64.
      absolute: an additional error permitted for float64, near zeros that result from cancellation.
      xla_bits: for float32 XLA's polynomial decides to the bit: random numbers are made with it.
      pack: for float32 in the pack, which sees more operands; by default the same.
      flushes: in the pack, a subnormal result may be zero, as XLA's is.
    """

    single: float
    double: float
    truth: Callable[..., np.ndarray] | None = None
    absolute: Callable[[np.ndarray], Any] | None = None
    xla_bits: bool = False
    pack: float | None = None
    flushes: bool = False

    @property
    def in_pack(self) -> float:
        if self.xla_bits:
            return 0.0
        return self.single if self.pack is None else self.pack


EXACT = Accuracy(0, 0)


@dataclass(frozen=True)
class Range:
    """A range of operands for measurements.

    Attributes:
      scale: "even", "log", or "signed": log, of both signs.
      whole: only integers; in their own dtype if it is int32.
      shuffled: in random order, so that each value is combined with all values of the other
        operands.
    """

    low: float
    high: float
    scale: str = "even"
    whole: str = ""
    shuffled: bool = False

    def points(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """About ``count`` of them, in float64."""
        if self.scale == "even":
            x = np.linspace(self.low, self.high, count)
        else:
            x = np.geomspace(self.low, self.high, count)
        if self.scale == "signed":
            x = np.concatenate([-x[::-1], x])
        x = np.floor(x) if self.whole else x
        return rng.permutation(x) if self.shuffled else x


def even(low: float, high: float) -> Range:
    return Range(low, high)


def powers(low: float, high: float) -> Range:
    return Range(low, high, "log")


def signed(low: float, high: float) -> Range:
    return Range(low, high, "signed")


def mixed(low: float, high: float) -> Range:
    return Range(low, high, shuffled=True)


def spread(low: float, high: float) -> Range:
    return Range(low, high, "log", shuffled=True)


ORDERS = Range(0, 5.99, whole="int32", shuffled=True)
COUNTS = Range(0, 18.99, whole="float", shuffled=True)


@dataclass(frozen=True)
class Operation:
    """A row of the table.

    Attributes:
      name: in its module.
      module: of ``jax``: "lax" or "scipy.special".
      primitives: those described by this row, by default the one with its name; none if others have
        rows.
      operands: their number.
      domain: for each operand (one for all of them) an interval in which the value and its
        derivatives, also JAX's, are accurate; None: its cases are written by hand.
      tolerance: the class of ``tolerances`` in the domain.
      in_plane: of complex numbers; by default as of real ones.
      at_edges: at NaN, infinities, zeros and numbers of every size; by default as in the domain.
      edges: False where JAX's values there are not a reference (compat omits its own).
      edge_derivatives: False where JAX's derivatives there are not.
      signed_zeros: False where NumPy and XLA choose differently between zeros of both signs.
      by_default: JAX's rounding matters, or where it overflows: XLA optimizes as by default.
      differentiable: in all of its operands.
      analytic: a holomorphic function, with complex operands; ``cuts``: with branches on the axes.
      static: arguments that follow the operands.
      kernel: the permitted errors of its kernels.
      units: for float32, the permitted error of the NumPy rule in units in the last place, over
        ``ranges``, each with a range for every operand, and over those that are ``endless``: JAX's
        loops do not end there. The reference is SciPy's float64 value.
    """

    name: str
    module: str = "lax"
    primitives: tuple[str, ...] | None = None
    operands: int = 1
    domain: tuple[Interval, ...] = ()
    tolerance: str = "elementwise"
    in_plane: str = ""
    at_edges: str = ""
    edges: bool = True
    edge_derivatives: bool = True
    signed_zeros: bool = True
    by_default: bool = False
    differentiable: bool = True
    analytic: bool = False
    cuts: bool = False
    static: tuple[Any, ...] = ()
    kernel: Accuracy | None = None
    units: float = 0.0
    ranges: tuple[tuple[Range, ...], ...] = ()
    endless: tuple[tuple[Range, ...], ...] = ()

    def __post_init__(self) -> None:
        fill = object.__setattr__
        if self.primitives is None:
            fill(self, "primitives", (self.name,))
        fill(self, "in_plane", self.in_plane or self.tolerance)
        fill(self, "at_edges", self.at_edges or self.tolerance)
        if len(self.domain) == 1:
            fill(self, "domain", self.domain * self.operands)

    def points(self) -> list[np.ndarray]:
        """Some points of each operand's domain."""
        return [low + (high - low) * FRACTIONS for low, high in self.domain]

    def measured(self, count: int, endless: bool = False) -> list[list[np.ndarray]]:
        """The operands, in float64 or int32, for each of the ranges."""
        ranges = self.ranges + self.endless * endless
        rng = np.random.default_rng(5)
        return [[points.astype(np.int32 if part.whole == "int32" else np.float64)
                 for part in parts for points in [part.points(count, rng)]]
                for parts in ranges]


def _unary(name: str, domain: Interval = ANY, kernel: Accuracy | None = None,
           **options: Any) -> Operation:
    return Operation(name, domain=(domain,), kernel=kernel, **options)


def _function(name: str, single: float, double: float, truth: Callable[..., np.ndarray],
              domain: Interval = ANY, *, absolute: Callable[[np.ndarray], Any] | None = None,
              xla_bits: bool = False, pack: float | None = None, flushes: bool = False,
              **options: Any) -> Operation:
    """A function of one operand with a kernel that rounds."""
    accuracy = Accuracy(single, double, truth, absolute, xla_bits, pack, flushes)
    return _unary(name, domain, accuracy, **options)


def _binary(name: str, domain: tuple[Interval, ...] = (ANY,), **options: Any) -> Operation:
    return Operation(name, operands=2, domain=domain, **options)


def _relation(name: str, *primitives: str) -> Operation:
    return _binary(name, primitives=(name, *primitives), tolerance="exact", differentiable=False)


def _bitwise(name: str, primitive: str, operands: int = 2) -> Operation:
    return Operation(name, primitives=(primitive,), operands=operands, domain=(ANY,),
                     tolerance="exact", differentiable=False)


def _special(name: str, units: float, *ranges: Any, domain: Interval | None = (0.6, 4.0),
             **options: Any) -> Operation:
    """A function of ``jax.scipy.special``; a single range is that of its one operand."""
    regions = tuple(part if isinstance(part, tuple) else (part,) for part in ranges)
    return Operation(name, "scipy.special", operands=len(regions[0]) if regions else 1,
                     domain=(domain,) if domain else (), units=units, ranges=regions,
                     **{"tolerance": "loose", "primitives": (), **options})


# --- jax.lax --------------------------------------------------------------------------------------

ANALYTIC: dict[str, Any] = {"analytic": True}
CUTS: dict[str, Any] = {"analytic": True, "cuts": True}
# XLA's own is off by some ulp for large arguments.
LARGE_LOOSE: dict[str, Any] = {"at_edges": "loose"}


def _near_zeros_of_digamma(x: np.ndarray) -> np.ndarray:
    return 5e-15 * (1 + np.abs(x) * (x < 0))


def _near_zeros_of_lgamma(x: np.ndarray) -> np.ndarray:
    return np.where(x < 0, 2e-13, 4e-15)


_LAX = [
    _unary("neg", kernel=EXACT, tolerance="exact"),
    _unary("sign", kernel=EXACT),
    _unary("abs", kernel=EXACT),
    _unary("floor", kernel=EXACT, tolerance="exact"),
    _unary("ceil", kernel=EXACT, tolerance="exact"),
    _unary("round", kernel=EXACT, tolerance="exact"),
    _unary("is_finite", tolerance="exact", differentiable=False),
    _unary("square", **ANALYTIC),
    _unary("one_minus_square", **ANALYTIC),
    _unary("reciprocal", (0.5, 3.0), primitives=(), **ANALYTIC),
    _function("exp", 1, 1.5, np.exp, flushes=True, **ANALYTIC),
    _function("exp2", 1, 1.5, np.exp2, **ANALYTIC, **LARGE_LOOSE),
    _function("expm1", 1.5, 2, np.expm1, **ANALYTIC),
    _function("log", 1, 1, np.log, POSITIVE, **ANALYTIC),
    _function("log2", 1.5, 2, np.log2, POSITIVE, **ANALYTIC),
    _function("log1p", 1, 1, np.log1p, (-0.9, 5.0), **CUTS),
    _function("logistic", 2, 2, long_doubles.logistic, pack=2.5, flushes=True, **ANALYTIC),
    _function("sin", 0.51, 2, np.sin, **ANALYTIC),
    _function("cos", 0.51, 2, np.cos, **ANALYTIC),
    _function("tan", 0.51, 3, np.tan, (-1.4, 1.4), **ANALYTIC),
    _function("asin", 0.51, 2, np.arcsin, UNIT, **CUTS),
    _function("acos", 0.51, 2, np.arccos, UNIT, **CUTS),
    _function("atan", 2, 2, np.arctan, **CUTS),
    _function("sinh", 2, 3, np.sinh, **ANALYTIC, **LARGE_LOOSE),
    _function("cosh", 2, 2, np.cosh, **ANALYTIC, **LARGE_LOOSE),
    _function("tanh", 2, 3, np.tanh, (-1.0, 1.0), **ANALYTIC, **LARGE_LOOSE),
    _function("asinh", 2, 2.5, np.arcsinh, **CUTS),
    _function("acosh", 2.5, 3, np.arccosh, (1.1, 5.0), **CUTS),
    _function("atanh", 2, 2, np.arctanh, UNIT, **CUTS),
    _function("sqrt", 0.5, 0.5, np.sqrt, POSITIVE, **ANALYTIC),
    _function("rsqrt", 1.5, 1.5, long_doubles.rsqrt, POSITIVE, **ANALYTIC),
    _function("cbrt", 0.51, 0.51, np.cbrt, by_default=True),
    _function("erf", 1.5, 3, long_doubles.erf),
    _function("erfc", 2.5, 4, long_doubles.erfc, tolerance="loose"),
    _function("erf_inv", 2, 4, long_doubles.erf_inv, UNIT, tolerance="loose", xla_bits=True),
    # The derivative of digamma in XLA, polygamma, is wrong at infinity and between the poles; that
    # of bessel_i1e is 1/2 at NaN.
    _function("lgamma", 0.51, 6, long_doubles.lgamma, (0.5, 5.0), tolerance="loose",
              absolute=_near_zeros_of_lgamma),
    _function("digamma", 0.51, 6, long_doubles.digamma, (0.5, 5.0), tolerance="loose",
              absolute=_near_zeros_of_digamma, edge_derivatives=False),
    _function("bessel_i0e", 2.5, 3, long_doubles.bessel_i0e, tolerance="loose"),
    _function("bessel_i1e", 2.5, 4, long_doubles.bessel_i1e, tolerance="loose",
              edge_derivatives=False),

    _binary("add", primitives=("add", "add_any", "multiply_add"), tolerance="exact"),
    _binary("sub", tolerance="exact"),
    _binary("mul", tolerance="exact", in_plane="elementwise"),
    _binary("div", (ANY, (0.5, 3.0)), kernel=Accuracy(0.5, 0.5)),
    _binary("rem", (ANY, (0.5, 3.0)), kernel=EXACT, tolerance="exact"),
    # Of equal zeros NumPy returns the second, XLA the one with the preferred sign.
    _binary("max", kernel=EXACT, tolerance="exact", signed_zeros=False),
    _binary("min", kernel=EXACT, tolerance="exact", signed_zeros=False),
    _binary("pow", ((0.5, 3.0), ANY), kernel=Accuracy(0.51, 1.5, np.power), tolerance="loose"),
    _binary("atan2", kernel=Accuracy(0.51, 2, np.arctan2)),
    _binary("nextafter", kernel=EXACT, tolerance="exact", differentiable=False),
    _binary("complex", tolerance="exact"),
    _relation("eq", "eq_to"), _relation("ne"), _relation("lt", "lt_to"), _relation("le", "le_to"),
    _relation("gt"), _relation("ge"),
    _bitwise("bitwise_and", "and"), _bitwise("bitwise_or", "or"), _bitwise("bitwise_xor", "xor"),
    _bitwise("bitwise_not", "not", 1), _bitwise("population_count", "population_count", 1),
    _bitwise("clz", "clz", 1),
    *[_bitwise(name, name) for name in (
        "shift_left", "shift_right_logical", "shift_right_arithmetic", "mulhi")],
    *[_unary(name, tolerance="exact") for name in ("real", "imag", "conj")],

    _binary("igamma", ((0.5, 4.0),), tolerance="iterative", edges=False),
    _binary("igammac", ((0.5, 4.0),), tolerance="iterative", edges=False),
    _binary("igamma_grad_a", ((0.5, 4.0),), tolerance="iterative", edges=False,
            differentiable=False),
    _binary("zeta", ((1.5, 4.0),), tolerance="loose", edges=False, differentiable=False),
    Operation("random_gamma_grad", operands=2, tolerance="iterative", differentiable=False),
    Operation("polygamma", operands=2, tolerance="loose"),
    Operation("betainc", primitives=("regularized_incomplete_beta",), operands=3,
              tolerance="iterative"),
    Operation("clamp", operands=3, tolerance="exact"),
    Operation("select_n", operands=3, tolerance="exact"),
    Operation("integer_pow", tolerance="loose"),
    Operation("polynomial", operands=2, tolerance="loose"),
    Operation("reduce_precision", tolerance="exact"),
    Operation("convert_element_type", tolerance="exact"),
    Operation("stop_gradient", tolerance="exact"),
]

# --- jax.scipy.special ----------------------------------------------------------------------------

WIDE = signed(1e-30, 1e4)
LEFT = even(-19.9, -1e-3)
SIZES = powers(1e-3, 50)
P = spread(1e-3, 50)

_SPECIAL = [
    _special("gammaln", 1, powers(1e-30, 1e30), LEFT),
    _special("loggamma", 1, SIZES, primitives=("loggamma_complex",)),
    _special("gamma", 1, powers(1e-30, 34), LEFT, primitives=("gamma", "gamma_complex"),
             domain=(-3.7, 4.0)),
    _special("gammasgn", 0),
    _special("digamma", 1, powers(1e-20, 1e20), LEFT),
    _special("polygamma", 2, (ORDERS, spread(0.05, 100)), domain=None),
    _special("zeta", 1, (spread(1.05, 20), spread(0.1, 50)), domain=(1.6, 4.0),
             differentiable=False),
    _special("multigammaln", 2, even(4.0, 50.0), static=(2,), domain=None),
    _special("beta", 1, (P, P)),
    _special("betaln", 1, (P, P)),
    _special("poch", 1, (P, spread(1e-3, 15)), domain=(0.6, 3.0)),
    _special("comb", 1, (COUNTS, COUNTS), (spread(10, 50), spread(1e-3, 10)), domain=None),
    _special("factorial", 2, even(0, 33.5)),
    _special("betainc", 1, (spread(0.1, 20), spread(0.1, 20), mixed(0, 1)), domain=None),
    _special("gammainc", 1, (spread(0.01, 100), spread(0.01, 100))),
    _special("gammaincc", 1, (spread(0.01, 100), spread(0.01, 100))),
    _special("erf", 1, WIDE),
    _special("erfc", 1, signed(1e-10, 9)),
    # XLA's polynomial, from which JAX's normal variates are computed.
    _special("erfinv", 6, even(-0.999, 0.999), domain=UNIT),
    _special("erfcinv", 4, powers(1e-30, 1), even(1, 1.999), domain=(0.1, 1.9)),
    _special("erfcx", 1, signed(1e-10, 9), primitives=("erfcx",), domain=ANY,
             kernel=Accuracy(0.51, 3, long_doubles.erfcx)),
    _special("dawsn", 1, WIDE, primitives=("dawsn",), domain=ANY),
    _special("ndtr", 2, even(-12, 6), domain=(-4.0, 4.0)),
    _special("ndtri", 1, powers(1e-30, 0.5), even(0.5, 1 - 1e-6), primitives=("ndtri",),
             domain=(0.1, 0.9), kernel=Accuracy(0.51, 6, long_doubles.ndtri)),
    _special("log_ndtr", 1, signed(1e-10, 1e4), primitives=("log_ndtr",), domain=(-4.0, 4.0),
             kernel=Accuracy(0.51, 5, long_doubles.log_ndtr)),
    _special("owens_t", 1, (mixed(-5, 5), mixed(-5, 5)), primitives=("owens_t",), domain=ANY),
    _special("fresnel", 1, powers(1e-10, 1e3), primitives=("fresnel_s", "fresnel_c"), domain=ANY),
    _special("expit", 3, signed(1e-10, 80)),
    _special("logit", 3, even(1e-3, 0.999), domain=(0.1, 0.9)),
    _special("entr", 2, powers(1e-30, 1e30)),
    _special("rel_entr", 3, (even(1e-3, 1), even(1e-3, 1.003)), (P, P)),
    _special("kl_div", 1, (P, P)),
    _special("xlogy", 2, (mixed(-5, 5), spread(1e-10, 1e10))),
    _special("xlog1py", 2, (mixed(-5, 5), spread(1e-10, 1e10))),
    _special("boxcox", 1, (spread(0.01, 100), mixed(-3, 3))),
    _special("boxcox1p", 1, (spread(0.01, 100), mixed(-3, 3))),
    _special("i0", 4, signed(1e-10, 80)),
    _special("i0e", 1, WIDE),
    _special("i1", 4, signed(1e-10, 80)),
    _special("i1e", 1, WIDE),
    _special("exp1", 1, powers(1e-3, 80), endless=((powers(1e-20, 1e-3),),), domain=(0.5, 4.0)),
    _special("expi", 1, signed(1e-3, 80), endless=((signed(1e-20, 1e-3),),), primitives=("expi",),
             domain=(0.5, 4.0)),
    _special("expn", 1, (ORDERS, spread(0.01, 50)), primitives=("expn",), domain=None),
    _special("sici", 1, powers(1e-10, 1e3), primitives=("sine_integral", "cosine_integral"),
             domain=ANY),
    _special("spence", 1, powers(1e-10, 1e10), primitives=("spence",), domain=(0.3, 4.0)),
    _special("hyp1f1", 1, (spread(0.1, 10), spread(0.1, 10), mixed(-10, 10)),
             primitives=("hyp1f1", "hyp1f1_da", "hyp1f1_db"), domain=None),
    _special("hyp2f1", 1, (spread(0.1, 5), spread(0.1, 5), spread(0.1, 5), mixed(-0.9, 0.9)),
             primitives=("hyp2f1", "hyp2f1_da", "hyp2f1_db", "hyp2f1_dc"), domain=None),
    # Of complex operands, and of all orders at once.
    Operation("wofz", "scipy.special"),
    Operation("bessel_jn", "scipy.special", primitives=("bessel_jv",)),
]

TABLE: tuple[Operation, ...] = (*_LAX, *_SPECIAL)


def of(module: str) -> dict[str, Operation]:
    """The rows of a module of ``jax``, by name."""
    return {row.name: row for row in TABLE if row.module == module}


LAX, SPECIAL = of("lax"), of("scipy.special")
