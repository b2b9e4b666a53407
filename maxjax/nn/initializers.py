"""jax.nn.initializers: functions (key, shape, dtype) that return initial parameters."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from maxjax import numpy as jnp
from maxjax import random
from maxjax._base import dtypes
from maxjax._ir.trace import Array


class Initializer(Protocol):
    """What the functions of this module return, as a type.

    >>> def weights(init: jax.nn.initializers.Initializer, key):
    ...     return init(key, (2, 3), jnp.float32)
    >>> weights(jax.nn.initializers.ones, jax.random.key(0)).shape
    (2, 3)
    """

    def __call__(self, key: Array, shape: Any, dtype: Any = None, out_sharding: Any = None
                 ) -> Array: ...


_Axes = int | Sequence[int]


def _dtype(dtype: Any, default: Any = None) -> Any:
    chosen = default if dtype is None else dtype
    if chosen is None:
        return dtypes.canonical(dtypes.float64)
    return dtypes.argument(chosen, "initializer")


def _refuse(out_sharding: Any, name: str) -> None:
    if out_sharding is not None:
        raise NotImplementedError(
            f"the initializer `{name}` takes no out_sharding, got {out_sharding}: use "
            "`jax.sharding.reshard` on its result")


def zeros(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
    """Zeros.

    Args:
      key: not used.
      shape: of the result.
      dtype: None: the default float.
      out_sharding: how the result lies over a mesh with Explicit axes.

    Returns:
      An array of that shape.

    See also: ``initializers.zeros``, ``initializers.ones``, ``initializers.constant``.

    >>> jax.nn.initializers.zeros(jax.random.key(0), (2,))
    Array([0., 0.], dtype=float32)
    """
    return jnp.zeros(shape, _dtype(dtype), out_sharding=out_sharding)


def ones(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
    """Ones.

    Args:
      key: not used.
      shape: of the result.
      dtype: None: the default float.
      out_sharding: how the result lies over a mesh with Explicit axes.

    Returns:
      An array of that shape.

    See also: ``initializers.zeros``, ``initializers.ones``, ``initializers.constant``.

    >>> jax.nn.initializers.ones(jax.random.key(0), (2,))
    Array([1., 1.], dtype=float32)
    """
    return jnp.ones(shape, _dtype(dtype), out_sharding=out_sharding)


def constant(value: Any, dtype: Any = None) -> Initializer:
    """An initializer that returns ``value`` everywhere.

    Args:
      value: a number, or an array that broadcasts.
      dtype: of the result, unless it is given at the call; None: the default float.

    Returns:
      A function ``(key, shape, dtype) -> array``.

    See also: ``initializers.zeros``, ``initializers.ones``.

    >>> jax.nn.initializers.constant(0.5)(jax.random.key(0), (2,))
    Array([0.5, 0.5], dtype=float32)
    """
    default = dtype

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
        return jnp.full(shape, value, _dtype(dtype, default), out_sharding=out_sharding)

    return init


def uniform(scale: Any = 1e-2, dtype: Any = None) -> Initializer:
    """An initializer, uniform in ``[0, scale)``.

    Args:
      scale: the upper bound.
      dtype: of the result, unless it is given at the call; None: the default float.

    Returns:
      A function ``(key, shape, dtype) -> array``.

    See also: ``initializers.normal``, ``initializers.variance_scaling``, ``jax.random.uniform``.

    >>> jax.nn.initializers.uniform(0.1)(jax.random.key(0), (2,))
    Array([0.0947667 , 0.09785799], dtype=float32)
    """
    default = dtype

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
        kind = _dtype(dtype, default)
        values = random.uniform(key, shape, kind, out_sharding=out_sharding)
        return values * jnp.array(scale, kind)

    return init


def normal(stddev: Any = 1e-2, dtype: Any = None) -> Initializer:
    """An initializer, normal with the given deviation.

    Args:
      stddev: the standard deviation; the mean is 0.
      dtype: of the result, unless it is given at the call; None: the default float.

    Returns:
      A function ``(key, shape, dtype) -> array``.

    Raises:
      ValueError: at a call, the dtype is neither floating nor complex.

    See also: ``initializers.uniform``, ``initializers.truncated_normal``, ``jax.random.normal``.

    >>> jax.nn.initializers.normal(0.1)(jax.random.key(0), (2,))
    Array([0.16226421, 0.20252648], dtype=float32)
    """
    default = dtype

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
        kind = _dtype(dtype, default)
        values = random.normal(key, shape, kind, out_sharding=out_sharding)
        return values * jnp.array(stddev, kind)

    return init


def truncated_normal(stddev: Any = 1e-2, dtype: Any = None, lower: Any = -2.0,
                     upper: Any = 2.0) -> Initializer:
    """An initializer, normal between ``lower`` and ``upper`` and then scaled by ``stddev``.

    >>> jax.nn.initializers.truncated_normal(0.1)(jax.random.key(0), (2,))
    Array([0.14559592, 0.17147487], dtype=float32)
    """
    default = dtype

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
        kind = _dtype(dtype, default)
        values = random.truncated_normal(
            key, lower, upper, shape, kind, out_sharding=out_sharding)
        return values * jnp.array(stddev, kind)

    return init


def _as_tuple(axes: _Axes) -> tuple[int, ...]:
    return (axes,) if isinstance(axes, int) else tuple(axes)


def _fans(shape: Sequence[int], in_axis: _Axes, out_axis: _Axes,
          batch_axis: _Axes) -> tuple[float, float]:
    """The numbers of inputs and outputs of each unit."""
    if len(shape) <= 1 and in_axis == -2:
        raise ValueError(f"Can't compute input and output sizes of a {len(shape)}-dimensional "
                         "weights tensor with default in_axis. Must be at least 2D or specify "
                         "in_axis explicitly.")
    inside = math.prod(shape[axis] for axis in _as_tuple(in_axis))
    outside = math.prod(shape[axis] for axis in _as_tuple(out_axis))
    batch = math.prod(shape[axis] for axis in _as_tuple(batch_axis))
    receptive = math.prod(shape) / inside / outside / batch
    return inside * receptive, outside * receptive


def _complex_uniform(key: Any, shape: Any, dtype: Any, out_sharding: Any) -> Any:
    """Uniform on the unit disc, of variance 1/2."""
    first, second = random.split(key)
    real = dtypes.real_dtype(dtype)
    squares = random.uniform(first, shape, real, out_sharding=out_sharding)
    turns = random.uniform(second, shape, real, out_sharding=out_sharding)
    radius = jnp.sqrt(squares).astype(dtype)
    angle = (2 * np.pi * turns).astype(dtype)
    return radius * jnp.exp(1j * angle)


def _complex_truncated_normal(key: Any, upper: Any, shape: Any, dtype: Any,
                              out_sharding: Any) -> Any:
    """Normal on the complex plane, within a radius."""
    first, second = random.split(key)
    real = dtypes.real_dtype(dtype)
    top = jnp.array(upper, real)
    parts = random.uniform(first, shape, real, out_sharding=out_sharding)
    turns = random.uniform(second, shape, real, out_sharding=out_sharding)
    inside = (1 - jnp.exp(-(top ** 2))) * parts
    radius = jnp.sqrt(-jnp.log(1 - inside)).astype(dtype)
    angle = (2 * np.pi * turns).astype(dtype)
    return radius * jnp.exp(1j * angle)


def variance_scaling(scale: Any, mode: str, distribution: str, in_axis: _Axes = -2,
                     out_axis: _Axes = -1, batch_axis: _Axes = (),
                     dtype: Any = None) -> Initializer:
    """An initializer of variance ``scale / n``.

    Args:
      scale: a positive number.
      mode: what ``n`` is: "fan_in", "fan_out", "fan_avg" or "fan_geo_avg".
      distribution: "truncated_normal", "normal" or "uniform".
      in_axis, out_axis, batch_axis: the axes of inputs, of outputs and of neither.
      dtype: of the result, unless it is given at the call; None: the default float.

    Returns:
      A function ``(key, shape, dtype) -> array``.

    Raises:
      ValueError: there is no such mode or distribution; the shape has fewer than 2 dimensions.

    See also: ``initializers.lecun_normal``, ``initializers.glorot_normal``,
    ``initializers.he_normal``.

    >>> jax.nn.initializers.variance_scaling(1.0, 'fan_in', 'normal')(jax.random.key(0), (2, 2))
    Array([[ 1.1473813 ,  1.4320784 ],
           [-0.30659756, -0.05559086]], dtype=float32)
    """
    default = dtype

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
        kind = _dtype(dtype, default)
        shape = tuple(shape)
        fan_in, fan_out = _fans(shape, in_axis, out_axis, batch_axis)
        if mode == "fan_in":
            denominator = fan_in
        elif mode == "fan_out":
            denominator = fan_out
        elif mode == "fan_avg":
            denominator = (fan_in + fan_out) / 2
        elif mode == "fan_geo_avg":
            denominator = (fan_in * fan_out) ** 0.5
        else:
            raise ValueError(f"invalid mode for variance scaling initializer: {mode}")
        variance = jnp.array(scale / denominator, kind)
        is_complex = dtypes.is_complex(kind)
        if distribution == "truncated_normal":
            if is_complex:
                # The standard deviation of the truncated distribution.
                deviation = jnp.sqrt(variance) / jnp.array(0.95311164380491208, kind)
                values = _complex_truncated_normal(key, 2, shape, kind, out_sharding)
                return values * deviation
            deviation = jnp.sqrt(variance) / jnp.array(0.87962566103423978, kind)
            values = random.truncated_normal(key, -2, 2, shape, kind, out_sharding=out_sharding)
            return values * deviation
        if distribution == "normal":
            values = random.normal(key, shape, kind, out_sharding=out_sharding)
            return values * jnp.sqrt(variance)
        if distribution == "uniform":
            if is_complex:
                values = _complex_uniform(key, shape, kind, out_sharding)
                return values * jnp.sqrt(2 * variance)
            values = random.uniform(key, shape, kind, -1, out_sharding=out_sharding)
            return values * jnp.sqrt(3 * variance)
        raise ValueError(
            f"invalid distribution for variance scaling initializer: {distribution}")

    return init


def _scaling(scale: float, mode: str, distribution: str, doc: str) -> Callable[..., Initializer]:
    def make(in_axis: _Axes = -2, out_axis: _Axes = -1, batch_axis: _Axes = (),
             dtype: Any = None) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__doc__ = doc
    return make


glorot_uniform = _scaling(1.0, "fan_avg", "uniform", "Glorot's (Xavier's) uniform initializer.")
glorot_normal = _scaling(
    1.0, "fan_avg", "truncated_normal", "Glorot's (Xavier's) normal initializer.")
lecun_uniform = _scaling(1.0, "fan_in", "uniform", "LeCun's uniform initializer.")
lecun_normal = _scaling(1.0, "fan_in", "truncated_normal", "LeCun's normal initializer.")
he_uniform = _scaling(2.0, "fan_in", "uniform", "He's (Kaiming's) uniform initializer.")
he_normal = _scaling(2.0, "fan_in", "truncated_normal", "He's (Kaiming's) normal initializer.")
_VARIANCES = {"glorot": "2 / (fan_in + fan_out)", "lecun": "1 / fan_in", "he": "2 / fan_in"}
_SCALINGS = ("variance_scaling", "lecun_normal", "lecun_uniform", "glorot_normal",
             "glorot_uniform", "he_normal", "he_uniform")


def _others(name: str) -> str:
    names = ", ".join(f"``{other}``" for other in _SCALINGS if other != name)
    return textwrap.fill(names, 84).replace("\n", "\n    ")


for _name, _function in list(globals().items()):
    if _name.endswith(("_uniform", "_normal")) and getattr(
            _function, "__name__", "") == "make":
        _function.__name__ = _function.__qualname__ = _name
        _function.__doc__ += f"""

    As ``variance_scaling``, of the variance ``{_VARIANCES[_name.partition("_")[0]]}``.

    Args:
      in_axis, out_axis, batch_axis: the axes of inputs, of outputs and of neither; by default
        inputs are last but one, outputs last.
      dtype: of the result, unless it is given at the call; None: the default float.

    Returns:
      A function ``(key, shape, dtype) -> array``.

    Raises:
      ValueError: at a call, the shape has fewer than two dimensions, or the dtype is no float or
        complex one.

    See also: {_others(_name)}.

    >>> jax.nn.initializers.{_name}()(jax.random.key(0), (2, 3)).shape
    (2, 3)
    """
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


def orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """An initializer of matrices with orthogonal columns (or rows, where those are fewer).

    >>> q = jax.nn.initializers.orthogonal()(jax.random.key(0), (3, 2))
    >>> jnp.allclose(q.T @ q, jnp.eye(2), atol=1e-6)
    Array(True, dtype=bool)
    """
    default = dtype

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
        _refuse(out_sharding, "orthogonal")
        kind = _dtype(dtype, default)
        shape = tuple(shape)
        if len(shape) < 2:
            raise ValueError("orthogonal initializer requires at least a 2D shape")
        columns = shape[column_axis]
        rows = math.prod(shape) // columns if columns else math.prod(
            size for axis, size in enumerate(shape) if axis != column_axis % len(shape))
        wide = (columns, rows) if rows < columns else (rows, columns)
        values = random.normal(key, wide, kind)
        factor, triangle = jnp.linalg.qr(values)
        factor = factor * jnp.expand_dims(jnp.sign(jnp.diagonal(triangle)), 0)
        if rows < columns:
            factor = factor.T
        rest = [size for axis, size in enumerate(shape) if axis != column_axis % len(shape)]
        factor = jnp.moveaxis(factor.reshape(*rest, columns), -1, column_axis)
        return jnp.array(scale, kind) * factor

    return init


def delta_orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """An initializer of convolution kernels that are orthogonal at their centre, zero elsewhere.

    >>> kernel = jax.nn.initializers.delta_orthogonal()(jax.random.key(0), (3, 2, 2))
    >>> jnp.abs(kernel).sum((1, 2)) > 0
    Array([False,  True, False], dtype=bool)
    """
    default = dtype

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
        _refuse(out_sharding, "delta_orthogonal")
        kind = _dtype(dtype, default)
        shape = tuple(shape)
        if len(shape) not in (3, 4, 5):
            raise ValueError("Delta orthogonal initializer requires a 3D, 4D, or 5D shape.")
        if shape[-1] < shape[-2]:
            raise ValueError("`fan_in` must be less or equal than `fan_out`. ")
        matrix = orthogonal(scale, column_axis, kind)(key, shape[-2:])
        centre = tuple((size - 1) // 2 for size in shape[:-2])
        return jnp.zeros(shape, kind).at[centre].set(matrix)

    return init
