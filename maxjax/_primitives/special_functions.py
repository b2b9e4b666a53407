"""Special functions that only jax.scipy.special has, by SciPy; those without a kernel on the host.

They have no derivatives here: jax.scipy.special gives these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base.dtypes import FLOATS
from maxjax._base.lazy import scipy_special
from maxjax._base.native import FEWEST
from maxjax._ir.contract import takes
from maxjax._ir.rule_groups import Host
from maxjax._ir.typing import HostValue
from maxjax._primitives import elementary, fitting
from maxjax._primitives.builders import elementwise
from maxjax._primitives.kernels import Kernel
from maxjax._primitives.special import HOST, rounding_of_square
from maxjax._primitives.widths import FLOATING, INEXACT, accepted, vectorized, widened

if TYPE_CHECKING:
    from maxjax._primitives.widths import Accepted

NO_RULE = "jax.scipy.special gives the derivative"


def _quietly(function: Callable[..., HostValue],
             out_dtype: Callable[[np.dtype], np.dtype] | None = None) -> Callable[..., Any]:
    """``function`` without warnings, its result in the operands' dtype or ``out_dtype`` of that."""
    def evaluate(*arrays: np.ndarray) -> Any:
        with np.errstate(all="ignore"):
            result = np.asarray(function(*arrays))
        dtype = arrays[0].dtype if out_dtype is None else out_dtype(arrays[0].dtype)
        return result.astype(dtype, copy=False)

    return evaluate


def _host(name: str, function: Callable[..., HostValue], accepts: Accepted = FLOATING,
          out_dtype: Callable[[np.dtype], np.dtype] | None = None, operands: int = 1) -> Any:
    return elementwise(
        name, contract=takes(operands, fitting.NO_KEYS), accepts=accepts,
        evaluate=widened(_quietly(function, out_dtype)), out_dtype=out_dtype,
        host=Host(reason=HOST), no_derivative=NO_RULE)


def _named(name: str) -> Callable[..., Any]:
    return lambda *arrays: getattr(scipy_special, name)(*arrays)


def _exact(name: str) -> Callable[..., Any]:
    """In float64: SciPy's own float32 loop would round more than once."""
    return lambda *arrays: getattr(scipy_special, name)(
        *[array.astype(np.float64) for array in arrays])


gamma_p = _host("gamma", _exact("gamma"))
gamma_complex_p = _host("gamma_complex", _named("gamma"), INEXACT)
loggamma_complex_p = _host("loggamma_complex", _named("loggamma"), INEXACT)
expi_p = _host("expi", _exact("expi"))
expn_p = _host("expn", lambda n, x: np.where(
    n == np.floor(n), scipy_special.expn(np.maximum(np.floor(n), 0).astype(np.int64),
                                         x.astype(np.float64)), np.nan), operands=2)
spence_p = _host("spence", _exact("spence"))
fresnel_s_p = _host("fresnel_s", lambda x: scipy_special.fresnel(x.astype(np.float64))[0])
fresnel_c_p = _host("fresnel_c", lambda x: scipy_special.fresnel(x.astype(np.float64))[1])
sine_integral_p = _host("sine_integral", lambda x: scipy_special.sici(x.astype(np.float64))[0])


def _cosine_integral(x: np.ndarray) -> Any:
    # JAX's is of the absolute value, too; SciPy has no real value for negative arguments.
    return scipy_special.sici(np.abs(x.astype(np.float64)))[1]


cosine_integral_p = _host("cosine_integral", _cosine_integral)
hyp1f1_p = _host("hyp1f1", _exact("hyp1f1"), operands=3)
hyp2f1_p = _host("hyp2f1", _exact("hyp2f1"), operands=4)
dawsn_p = _host("dawsn", _exact("dawsn"))


def _erfcx(x: np.ndarray) -> Any:
    x = x.astype(np.float64)
    value = scipy_special.erfcx(x)
    # SciPy's is 2 exp(x**2), less little, for negative x, and magnifies the rounding of the square.
    return np.where((x < -1) & (value < np.inf), value + value * rounding_of_square(x), value)


erfcx_p = elementwise(
    "erfcx", accepts=FLOATING,
    evaluate=widened(vectorized("erfcx", _quietly(_erfcx), FEWEST)),
    kernels=(Kernel("erfcx", FLOATS),),
    no_derivative=NO_RULE)


def _normal(name: str) -> Any:
    """With a kernel of float32 and float64: ``jax.scipy.special`` refuses other operands."""
    wide = accepted("float32 float64")
    return elementwise(
        name, accepts=wide, evaluate=vectorized(name, _quietly(_exact(name)), 4096),
        kernels=(Kernel(name, tuple(wide)),), no_derivative=NO_RULE)


ndtri_p = _normal("ndtri")
log_ndtr_p = _normal("log_ndtr")
owens_t_p = _host("owens_t", _exact("owens_t"), operands=2)
wofz_p = _host("wofz", lambda z: scipy_special.wofz(z.astype(np.complex128)), INEXACT)
bessel_jv_p = _host("bessel_jv", _exact("jv"), operands=2)


# --- derivatives of hypergeometric functions by their parameters ----------------------------------
#
# With t_n the n-th term of the series, t_(n+1) = t_n r_n(parameters), and so its derivatives in
# the parameters: t'_(n+1) = t'_n r_n + t_n r'_n.

_TERMS = 20_000


def _series(numerators: Sequence[np.ndarray], denominator: np.ndarray, x: np.ndarray) -> list[Any]:
    """The derivatives of the series in each numerator parameter, then in the denominator's."""
    numerators = [np.asarray(value, np.float64) for value in numerators]
    shape = np.broadcast_shapes(*(value.shape for value in numerators), denominator.shape, x.shape)
    term = np.ones(shape)
    slopes = [np.zeros(shape) for _ in range(len(numerators) + 1)]
    totals = [np.zeros(shape) for _ in slopes]
    for n in range(_TERMS):
        factors = [value + n for value in numerators]
        below = denominator + n
        scale = x / (below * (n + 1))
        ratio = np.prod(np.broadcast_arrays(*factors, np.ones(shape)), axis=0) * scale
        for i in range(len(numerators)):
            others = [factor for j, factor in enumerate(factors) if j != i]
            rest = np.prod(np.broadcast_arrays(*others, np.ones(shape)), axis=0) * scale
            slopes[i] = slopes[i] * ratio + term * rest
        slopes[-1] = (slopes[-1] - term / below) * ratio
        term = term * ratio
        for i, slope in enumerate(slopes):
            totals[i] = totals[i] + slope
        small = [np.abs(slope) <= 1e-17 * np.abs(total) + 1e-300
                 for slope, total in zip(slopes, totals)]
        if n > 8 and all((part | ~np.isfinite(total)).all() for part, total in zip(small, totals)):
            break
    return totals


def _hyp1f1_slope(number: int) -> Callable[..., Any]:
    def slope(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> Any:
        a, b, x = (value.astype(np.float64) for value in np.broadcast_arrays(a, b, x))
        # Kummer: F(a, b, x) = e**x F(b - a, b, -x), whose terms agree in sign.
        mirrored = x < 0
        by_a, by_b = _series([np.where(mirrored, b - a, a)], b, np.abs(x))
        factor = np.where(mirrored, elementary.exp(np.minimum(x, 0)), 1)
        if number == 0:
            return factor * np.where(mirrored, -by_a, by_a)
        return factor * np.where(mirrored, by_a + by_b, by_b)

    return slope


def _hyp2f1_slope(number: int) -> Callable[..., Any]:
    def slope(a: np.ndarray, b: np.ndarray, c: np.ndarray, x: np.ndarray) -> Any:
        a, b, c, x = (value.astype(np.float64) for value in np.broadcast_arrays(a, b, c, x))
        inside = np.abs(x) < 1
        value = _series([a, b], c, np.where(inside, x, 0))[number]
        return np.where(inside, value, np.nan)

    return slope


hyp1f1_slopes = [_host(f"hyp1f1_d{name}", _hyp1f1_slope(i), operands=3)
                 for i, name in enumerate("ab")]
hyp2f1_slopes = [_host(f"hyp2f1_d{name}", _hyp2f1_slope(i), operands=4)
                 for i, name in enumerate("abc")]
