"""Samplers by rejection: gamma and Poisson variates. Each is a loop of unknown length on the host.

Gamma: G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables", one key for
each element. Poisson: D. E. Knuth's method below 10, W. Hörmann's transformed rejection above.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes, native
from maxjax._base.lazy import scipy_special
from maxjax._ir.contract import FLAG, INTEGER_DTYPE, takes
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Host, Printed
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import BatchAxis
from maxjax._primitives import elementary, fitting, xla_float32
from maxjax._primitives.arithmetic import add, div, max_p, mul, neg, sub
from maxjax._primitives.broadcasting import broadcast_leading
from maxjax._primitives.comparison import eq_p, ge_p, lt_p, not_p, or_p, select
from maxjax._primitives.convert import convert, convert_element_type
from maxjax._primitives.creation import full
from maxjax._primitives.generators import THREEFRY
from maxjax._primitives.incomplete import random_gamma_grad_p
from maxjax._primitives.layout import move_axis
from maxjax._primitives.random_bits import random_split_p, without_layout
from maxjax._primitives.rules import replicated_factors, scalar_like
from maxjax._primitives.threefry import random_bits, split_keys
from maxjax._primitives.transcendental import exp, log, log1p_p, pow_p
from maxjax._primitives.widths import widened

if TYPE_CHECKING:
    from maxjax._max.lowering import Lowering

# The work of one variate, in elements of an array, by which the number of threads is chosen.
_NATIVE_WORK = 256
_HOST = "a rejection loop whose length depends on the numbers drawn"


# --- uniform and normal variates of NumPy arrays of keys ------------------------------------------

def _uniform(keys: np.ndarray, shape: tuple[int, ...], dtype: np.dtype, partitionable: bool
             ) -> np.ndarray:
    """In [0, 1), of shape ``keys.shape + shape``."""
    width = dtype.itemsize * 8
    mantissa = dtypes.finfo(dtype).nmant
    unsigned = np.dtype(f"uint{width}")
    random_width = 8 if mantissa < 8 else width
    bits = random_bits(keys, math.prod(shape), random_width, partitionable).astype(unsigned)
    one = np.ones((), dtype).view(unsigned)
    floats = ((bits >> unsigned.type(random_width - mantissa)) | one).view(dtype) - dtype.type(1)
    return floats.reshape((*np.shape(keys), *shape))


def _normal(keys: np.ndarray, dtype: np.dtype, partitionable: bool) -> np.ndarray:
    low = np.nextafter(dtype.type(-1), dtype.type(0))
    span = dtype.type(1) - low
    values = np.maximum(low, _uniform(keys, (), dtype, partitionable) * span + low)
    return dtype.type(np.sqrt(2)) * _as_xla(values, xla_float32.erf_inv, scipy_special.erfinv)


def _as_xla(x: np.ndarray, narrow: Callable[[np.ndarray], np.ndarray],
            wide: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """A function in float32, rounded to the dtype of ``x``; another one in float64."""
    return wide(x) if x.dtype == np.float64 else narrow(x.astype(np.float32)).astype(x.dtype)


def _log(x: np.ndarray) -> np.ndarray:
    return _as_xla(x, xla_float32.log, elementary.log)


def _log1p(x: np.ndarray) -> np.ndarray:
    return _as_xla(x, xla_float32.log1p, elementary.log1p)


_power = widened(elementary.power)


def _fused(x: np.ndarray, y: np.ndarray, z: np.generic) -> np.ndarray:
    return xla_float32.fused(x, y, z) if x.dtype == np.float32 else x * y + z


# --- gamma ----------------------------------------------------------------------------------------

def _gamma(keys: np.ndarray, alpha: np.ndarray, log_space: bool,
           partitionable: bool) -> np.ndarray:
    """One variate for each key; 1-D."""
    dtype = alpha.dtype
    one = dtype.type(1)
    boosted = alpha < one      # by Gamma(a) = Gamma(a + 1) * U ** (1 / a)
    d = np.where(boosted, alpha + one, alpha) - dtype.type(1 / 3)
    cube, uniform = _native_cubes(keys, alpha, partitionable) or _cubes(
        keys, alpha, d, partitionable)
    if log_space:
        logarithms = _log1p(-uniform)
        boost = np.where(~boosted | (logarithms == 0), dtype.type(0), logarithms * (one / alpha))
        return (_log(d) + _log(cube) + boost).astype(dtype)
    boost = np.where(boosted, _power(one - uniform, one / alpha), one)
    return (d * cube * boost).astype(dtype)


def _native_cubes(keys: np.ndarray, alpha: np.ndarray, partitionable: bool
                  ) -> tuple[np.ndarray, np.ndarray] | None:
    """``_cubes`` by the native function, if it is there for these."""
    if _not_native(keys.dtype, alpha.dtype, partitionable):
        return None
    function = native.find("gamma_cubes", alpha.dtype, alpha.size)
    if function is None:
        return None
    cube, uniform = np.empty_like(alpha), np.empty_like(alpha)
    function((np.ascontiguousarray(keys), alpha, cube, uniform), (alpha.size,),
             _NATIVE_WORK * alpha.size)
    return cube, uniform


def _cubes(keys: np.ndarray, alpha: np.ndarray, d: np.ndarray, partitionable: bool
           ) -> tuple[np.ndarray, np.ndarray]:
    """The cubes that the loop accepts, and a uniform number for each."""
    dtype = alpha.dtype
    one, third = dtype.type(1), dtype.type(1 / 3)
    c = third / np.sqrt(d)
    if dtype == np.float16:     # XLA's quotient is a product with the reciprocal
        c = third * (1 / np.sqrt(d.astype(np.float32))).astype(dtype)
    pair = split_keys(keys, 2, partitionable)
    keys, boost_keys = pair[:, 0], pair[:, 1]
    cube = np.ones_like(alpha)
    active = np.arange(alpha.size)
    while active.size:
        three = split_keys(keys[active], 3, partitionable)
        keys[active] = three[:, 0]
        x, v = _positive(three[:, 1], c[active], dtype, partitionable)
        u = _uniform(three[:, 2], (), dtype, partitionable)
        squared = x * x
        cubed = v * v * v
        cube[active] = cubed
        again = (u >= one - dtype.type(0.0331) * (squared * squared)) & (
            _log(u) >= squared * dtype.type(0.5)
            + d[active] * ((one - cubed) + _log(cubed)))
        active = active[again]
    return cube, _uniform(boost_keys, (), dtype, partitionable)


def _positive(keys: np.ndarray, c: np.ndarray, dtype: np.dtype, partitionable: bool
              ) -> tuple[np.ndarray, np.ndarray]:
    """Normal variates x for which ``1 + x * c`` is positive, and that number."""
    keys = keys.copy()
    x, v = np.zeros_like(c), -np.ones_like(c)
    active = np.arange(c.size)
    while active.size:
        pair = split_keys(keys[active], 2, partitionable)
        keys[active] = pair[:, 0]
        x[active] = _normal(pair[:, 1], dtype, partitionable)
        v[active] = _fused(x[active], c[active], dtype.type(1))
        active = active[v[active] <= 0]
    return x, v


def _gamma_evaluate(keys: np.ndarray, alpha: np.ndarray, *, log_space: bool, partitionable: bool
                    ) -> np.ndarray:
    alpha = np.asarray(alpha)
    keys = np.asarray(keys)
    per_key = math.prod(alpha.shape[keys.ndim:])
    each = split_keys(keys, per_key, partitionable).reshape(-1)
    flat = np.ascontiguousarray(alpha).reshape(-1)
    if each.dtype == np.uint64 or not each.size:
        values = _gamma(each, flat, log_space, partitionable)
    else:       # of a batch of such keys, the first draws for all
        values = np.concatenate([_gamma(each[i:i + 1], flat[i:i + 1], log_space, partitionable)
                                 for i in range(each.size)])
    return values.reshape(alpha.shape)


def _not_native(keys: object, dtype: object, partitionable: bool) -> str | None:
    """Why the native function cannot draw; None if it can. Keys by either of their dtypes."""
    if dtype == np.float32 and partitionable and keys in (THREEFRY.dtype, THREEFRY.dtype.physical):
        return None
    return _HOST


def _drawn_on_host(keys: ShapedArray, x: ShapedArray, *, partitionable: bool, **params: object
                   ) -> str | None:
    return _not_native(keys.dtype, x.dtype, partitionable) or (
        None if x.size else "it has no elements")


def _gamma_lower(ctx: Lowering, keys: object, alpha: object, *, log_space: bool, partitionable: bool
                 ) -> Any:
    shape = ctx.shape(alpha)
    per_key = shape[len(ctx.shape(keys)):]
    each = ctx.rule_of(random_split_p)(ctx, keys, shape=per_key, partitionable=True)
    flat = (math.prod(shape),)
    alpha = ctx.reshape(alpha, flat)
    cube, uniform = ctx.gamma_cubes(ctx.reshape(each, flat), alpha)
    return ctx.reshape(ctx.decompose(
        functools.partial(_gamma_of_cubes, log_space=log_space), alpha, cube, uniform), shape)


def _gamma_of_cubes(alpha: Array, cube: Array, uniform: Array, *, log_space: bool) -> Array:
    one, zero = np.float32(1), np.float32(0)
    boosted = lt_p.bind(alpha, one)
    d = sub(select(boosted, alpha, add(alpha, one)), np.float32(1 / 3))
    ones, zeros = full(alpha.shape, 1, alpha.dtype), full(alpha.shape, 0, alpha.dtype)
    if log_space:
        logarithms = log1p_p.bind(neg(uniform))
        plain = or_p.bind(not_p.bind(boosted), eq_p.bind(logarithms, zero))
        boost = select(plain, mul(logarithms, div(one, alpha)), zeros)
        return add(add(log(d), log(cube)), boost)
    boost = select(boosted, ones, pow_p.bind(sub(one, uniform), div(one, alpha)))
    return mul(mul(d, cube), boost)


def _gamma_jvp(primals: Sequence[Array], tangents: Sequence[Array | None], *, log_space: bool,
               partitionable: bool) -> Any:
    keys, alpha = primals
    out = random_gamma_p.bind(keys, alpha, log_space=log_space, partitionable=partitionable)
    if tangents[1] is None:
        return out, None
    samples = out
    if log_space:      # the sample's own logarithm does not underflow
        tiny = scalar_like(dtypes.finfo(out.dtype).tiny, out.dtype)
        samples = max_p.bind(exp(out), tiny)
    slope = random_gamma_grad_p.bind(alpha, samples)
    return out, mul(tangents[1], div(slope, samples) if log_space else slope)


def _leading_batch(primitive: Callable[[], Primitive]) -> Any:
    def batch(size: int, operands: Sequence[Array], axes: Sequence[BatchAxis], **params: object
              ) -> tuple[Any, int]:
        moved = [broadcast_leading(x, size) if axis is None else move_axis(x, axis, 0)
                 for x, axis in zip(operands, axes, strict=True)]
        return primitive().bind(*moved, **params), 0
    return batch


random_gamma_p = Primitive(
    "random_gamma",
    contract=takes(
        2, fitting.keys(), fitting.leading,
        fitting.of_dtypes("of floats", dtypes.is_floating, 1), log_space=FLAG, partitionable=FLAG),
    printed=Printed(without_layout),
    abstract=lambda keys, alpha, **params: ShapedArray(alpha.shape, alpha.dtype),
    evaluate=_gamma_evaluate,
    lower=_gamma_lower,
    host=Host(reason="MAX has no such sampler", condition=_drawn_on_host),
    jvp=_gamma_jvp,
    batch=_leading_batch(lambda: random_gamma_p),
    factors=replicated_factors,
)


# --- Poisson --------------------------------------------------------------------------------------

def _knuth(key: Any, lam: np.ndarray, partitionable: bool) -> np.ndarray:
    count = np.zeros(lam.shape, np.int32)
    log_product = np.zeros_like(lam)
    while (going := log_product > -lam).any():
        key, subkey = split_keys(key, 2, partitionable)
        count = np.where(going, count + 1, count)
        log_product = log_product + _log(_uniform(subkey, lam.shape, lam.dtype, partitionable))
    return count - 1


def _transformed_rejection(key: np.ndarray, lam: np.ndarray, partitionable: bool) -> np.ndarray:
    def real(value: float) -> Any:
        return lam.dtype.type(value)

    log_lam = _log(lam)
    b = real(0.931) + real(2.53) * np.sqrt(lam)
    a = real(-0.059) + real(0.02483) * b
    inverse_alpha = real(1.1239) + real(1.1328) / (b - real(3.4))
    bound = real(0.9277) - real(3.6224) / (b - real(2))
    result = np.full_like(lam, -1)
    accepted = np.zeros(lam.shape, bool)
    while not accepted.all():
        key, first, second = split_keys(key, 3, partitionable)
        u = _uniform(first, lam.shape, lam.dtype, partitionable) - real(0.5)
        v = _uniform(second, lam.shape, lam.dtype, partitionable)
        shifted = real(0.5) - np.abs(u)
        k = np.floor((real(2) * a / shifted + b) * u + lam + real(0.43))
        s = _log(v * inverse_alpha / (a / (shifted * shifted) + b))
        t = -lam + k * log_lam - scipy_special.gammaln(k + real(1))
        quickly = (shifted >= real(0.07)) & (v <= bound)
        refused = (k < 0) | ((shifted < real(0.013)) & (v > shifted))
        accept = quickly | (~refused & (s <= t))
        result = np.where(accept, k, result)
        accepted |= accept
    return result


def _poisson_evaluate(keys: np.ndarray, lam: np.ndarray, *, dtype: np.dtype, partitionable: bool
                      ) -> np.ndarray:
    keys, lam = np.asarray(keys), np.asarray(lam)
    drawn = _native_counts(keys, lam, partitionable)
    if drawn is not None:
        by_product, by_rejection = drawn
        counts = np.where(lam >= 10, convert(by_rejection, dtype), by_product.astype(dtype))
        return np.where(lam == 0, 0, counts).astype(dtype)
    results = [_poisson(key, part, dtype, partitionable) for key, part in zip(
        keys.reshape(-1), lam.reshape((keys.size, *lam.shape[keys.ndim:])), strict=True)]
    return np.stack(results).reshape(lam.shape) if results else np.zeros(lam.shape, dtype)


def _native_counts(keys: np.ndarray, lam: np.ndarray, partitionable: bool
                   ) -> tuple[np.ndarray, np.ndarray] | None:
    """Counts by Knuth's method and by rejection, by the native function if it is there for these.
    """
    if not lam.size or _not_native(keys.dtype, lam.dtype, partitionable):
        return None
    function = native.find("poisson_counts", lam.dtype, lam.size)
    if function is None:
        return None
    counts, rejected = np.empty(lam.shape, np.int32), np.empty(lam.shape, lam.dtype)
    function((np.ascontiguousarray(keys), np.ascontiguousarray(lam), counts, rejected),
             (keys.size, lam.size // keys.size), _NATIVE_WORK * lam.size)
    return counts, rejected


def _poisson_lower(ctx: Lowering, keys: object, lam: object, *, dtype: np.dtype, partitionable: bool
                   ) -> Any:
    by_product, by_rejection = ctx.poisson_counts(keys, lam)

    def chosen(lam: Array, by_product: Array, by_rejection: Array) -> Array:
        counts = select(ge_p.bind(lam, np.float32(10)), convert_element_type(by_product, dtype),
                        convert_element_type(by_rejection, dtype))
        return select(eq_p.bind(lam, np.float32(0)), counts, full(lam.shape, 0, dtype))
    return ctx.decompose(chosen, lam, by_product, by_rejection)


def _poisson(key: np.ndarray, lam: np.ndarray, dtype: np.dtype, partitionable: bool) -> np.ndarray:
    small = np.isnan(lam) | (lam < 10)
    by_product = _knuth(key, np.where(small, lam, lam.dtype.type(0)), partitionable)
    if small.all():
        return np.where(lam == 0, 0, by_product).astype(dtype)
    by_rejection = _transformed_rejection(
        key, np.where(small, lam.dtype.type(1e5), lam), partitionable)
    counts = np.where(small, by_product.astype(dtype), convert(by_rejection, dtype))
    return np.where(lam == 0, 0, counts).astype(dtype)


random_poisson_p = Primitive(
    "random_poisson",
    contract=takes(
        2, fitting.keys(), fitting.leading,
        fitting.of_dtypes("of floats", dtypes.is_floating, 1), dtype=INTEGER_DTYPE,
        partitionable=FLAG),
    printed=Printed(without_layout),
    abstract=lambda keys, lam, *, dtype, **params: ShapedArray(lam.shape, dtype),
    evaluate=_poisson_evaluate,
    lower=_poisson_lower,
    host=Host(reason="MAX has no such sampler", condition=_drawn_on_host),
    jvp=lambda primals, tangents, **params: (random_poisson_p.bind(*primals, **params), None),
    batch=_leading_batch(lambda: random_poisson_p),
    factors=replicated_factors,
)
