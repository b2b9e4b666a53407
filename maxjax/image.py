"""jax.image: resizing of images by interpolation."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._base.missing import explain_missing_names
from maxjax._higher_order.jit_function import make_jit
from maxjax._ir.dimensions import is_dimension
from maxjax._ir.trace import Array
from maxjax.lax import Precision
from maxjax.lax._operands import canonical_axis
from maxjax.numpy._promotion import canonical_shape

explain_missing_names(__name__)


class ResizeMethod(enum.Enum):
    """The kernel by which pixels are interpolated.

    >>> jax.image.ResizeMethod.from_string("bilinear")
    <ResizeMethod.LINEAR: 1>
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method with a name: "linear", "cubic" and so on.

        Raises:
          ValueError: there is no such method.
        """
        found = _NAMES.get(s)
        if found is None:
            raise ValueError(f'Unknown resize method "{s}"')
        return found


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    "linear": ResizeMethod.LINEAR, "bilinear": ResizeMethod.LINEAR,
    "trilinear": ResizeMethod.LINEAR, "triangle": ResizeMethod.LINEAR,
    "lanczos3": ResizeMethod.LANCZOS3, "lanczos5": ResizeMethod.LANCZOS5,
    "cubic": ResizeMethod.CUBIC, "bicubic": ResizeMethod.CUBIC, "tricubic": ResizeMethod.CUBIC,
    "cubic-pytorch": ResizeMethod.CUBIC_PYTORCH, "bicubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "area": ResizeMethod.AREA,
}


# --- kernels: the weight of a pixel at distance x >= 0 --------------------------------------------

def _triangle(x: Array) -> Array:
    return jnp.maximum(0, 1 - x)


def _cubic(a: float) -> Callable[[Array], Array]:
    """Keys' kernel: two cubics, with slope ``a`` at 1."""
    def kernel(x: Array) -> Array:
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return jnp.where(x >= 2, 0, jnp.where(x >= 1, far, near))

    return kernel


def _lanczos(radius: int) -> Callable[[Array], Array]:
    """sinc(x) sinc(x / radius)."""
    def kernel(x: Array) -> Array:
        product = radius * jnp.sin(np.pi * x) * jnp.sin(np.pi * x / radius)
        square = jnp.where(x > 1e-3, np.pi ** 2 * x ** 2, 1)
        return jnp.where(x > radius, 0, jnp.where(x > 1e-3, product / square, 1))

    return kernel


# From whether an image is antialiased to the kernel.
_KERNELS: dict[ResizeMethod, Callable[[bool], Callable[[Array], Array]]] = {
    ResizeMethod.LINEAR: lambda antialias: _triangle,
    ResizeMethod.LANCZOS3: lambda antialias: _lanczos(3),
    ResizeMethod.LANCZOS5: lambda antialias: _lanczos(5),
    ResizeMethod.CUBIC: lambda antialias: _cubic(-0.5),
    ResizeMethod.CUBIC_PYTORCH: lambda antialias: _cubic(-0.5 if antialias else -0.75),
}


# --- resampling -----------------------------------------------------------------------------------

def _weights(before: int, after: int, scale: Any, translation: Any, method: ResizeMethod,
             antialias: bool, dtype: Any) -> Array:
    """The matrix (before, after) that resamples an axis.

    The new pixel ``i`` covers the old ones from ``(i - translation) / scale`` on. Where an image
    shrinks, antialiasing widens the kernel by the same factor.
    """
    dtype = dtypes.float32 if jnp.finfo(dtype).bits < 32 else dtype
    inverse = 1.0 / scale
    if method == ResizeMethod.AREA:
        start = jnp.arange(after, dtype=dtype)[None] * inverse - translation * inverse
        pixels = jnp.arange(before, dtype=dtype)[:, None]
        weights = jnp.maximum(
            jnp.minimum(pixels + 1, start + inverse) - jnp.maximum(pixels, start), 0)
        return _normalized(weights)
    width = jnp.maximum(inverse, 1.0) if antialias else 1.0
    centres = (jnp.arange(after, dtype=dtype) + 0.5) * inverse - translation * inverse - 0.5
    beyond = method == ResizeMethod.CUBIC_PYTORCH and not antialias
    extra = 2 if beyond and before else 0
    pixels = jnp.arange(-extra, before + extra, dtype=dtype)
    distance = jnp.abs(centres[None, :] - pixels[:, None])
    weights = _KERNELS[method](antialias)(distance / jnp.asarray(width, dtype))
    if extra:       # the image is extended by its last pixels
        first, last = weights[:extra + 1].sum(0), weights[before + extra - 1:].sum(0)
        inner = weights[extra + 1:before + extra - 1]
        weights = (jnp.vstack([first, inner, last]) if before > 1
                   else weights.sum(0, keepdims=True))
    else:
        weights = _normalized(weights)
    inside = (centres >= -0.5) & (centres <= before - 0.5)
    return jnp.where(inside[None, :], weights, 0)


def _normalized(weights: Array) -> Array:
    """Weights scaled to sum 1, or 0 where their sum is almost zero."""
    total = jnp.sum(weights, axis=0, keepdims=True)
    usable = jnp.abs(total) > 1000.0 * float(np.finfo(np.float32).eps)
    return jnp.where(usable, weights / jnp.where(total != 0, total, 1), 0)


def _resample(image: Array, matrices: dict[int, Array], precision: Any) -> Array:
    """The product with a matrix along each of some axes."""
    for axis in sorted(matrices):
        matrix = matrices[axis].astype(image.dtype)
        image = jnp.moveaxis(
            jnp.tensordot(image, matrix, axes=((axis,), (0,)), precision=precision), -1, axis)
    return image


def _check_shape(image: Any, shape: Sequence[int]) -> tuple[int, ...]:
    shape = tuple(shape)
    if len(shape) != image.ndim:
        raise ValueError("shape must have length equal to the number of dimensions of x;  "
                         f"{shape} vs {image.shape}")
    return shape


def _inexact(image: Any) -> Array:
    image = jnp.asarray(image)
    if dtypes.is_inexact(image.dtype):
        return image
    return image.astype(dtypes.common(image.dtype, dtypes.float32))


def _method(method: str | ResizeMethod) -> ResizeMethod:
    return ResizeMethod.from_string(method) if isinstance(method, str) else method


def scale_and_translate(image: Any, shape: Sequence[int], spatial_dims: Sequence[int],
                        scale: Any, translation: Any, method: str | ResizeMethod,
                        antialias: bool = True, precision: Any = Precision.HIGHEST) -> Array:
    """Scales and translates an image; outside the image the result is 0.

    The point ``x`` of the image moves to ``x * scale + translation``; the centre of the first pixel
    is at 1/2.

    Args:
      image: an array of any rank.
      shape: of the result; differs from ``image``'s only in ``spatial_dims``.
      spatial_dims: the axes along which ``scale`` and ``translation`` (arrays with one number per
        axis) apply.
      scale: a factor for each axis.
      translation: a distance for each axis.
      method: a kernel, see ``ResizeMethod``; not "nearest".
      antialias: widen the kernel where the image shrinks.
      precision: of the products.

    Returns:
      An array of a floating dtype. Differentiable in ``image``, ``scale`` and ``translation``.

    Raises:
      ValueError: the length of ``shape`` is not the rank; the method is "nearest".

    See also: ``image.resize``, ``image.ResizeMethod``.

    >>> x = jnp.arange(6.).reshape(2, 3)
    >>> jax.image.scale_and_translate(x, (2, 6), (1,), jnp.array([2.]), jnp.array([0.]), "linear")
    Array([[0.  , 0.25, 0.75, 1.25, 1.75, 2.  ],
           [3.  , 3.25, 3.75, 4.25, 4.75, 5.  ]], dtype=float32)
    """
    shape = _check_shape(image, shape)
    method = _method(method)
    if method == ResizeMethod.NEAREST:
        raise ValueError("Nearest neighbor resampling is not currently supported for "
                         "scale_and_translate.")
    assert len(scale) == len(spatial_dims) == len(translation)
    image = _inexact(image)
    scale, translation = jnp.asarray(scale), jnp.asarray(translation)
    matrices = {}
    for number, dim in enumerate(spatial_dims):
        axis = canonical_axis(dim, image.ndim)
        matrices[axis] = _weights(image.shape[axis], shape[axis], scale[number],
                                  translation[number], method, antialias,
                                  dtypes.real_dtype(image.dtype))
    return _resample(image, matrices, precision)


def _nearest(image: Array, shape: tuple[int, ...]) -> Array:
    for axis, (before, after) in enumerate(zip(image.shape, shape)):
        if before != after:
            numbers: Any = jnp if is_dimension(before) or is_dimension(after) else np
            source = numbers.floor((numbers.arange(after, dtype=np.float32) + np.float32(0.5))
                                   * numbers.float32(before) / numbers.float32(after)).astype(
                                       np.int32)
            image = jnp.take(image, source, axis=axis)
    return image


def resize(image: Any, shape: Sequence[int], method: str | ResizeMethod, antialias: bool = True,
           precision: Any = Precision.HIGHEST) -> Array:
    """One or more images, resized.

    Args:
      image: an array of any rank.
      shape: of the result, as long as ``image.shape``; axes of the same size are unchanged.
      method: "nearest", "linear" (also "bilinear" ...), "cubic", "lanczos3", "lanczos5", or a
        ``ResizeMethod``.
      antialias: widen the kernel where the image shrinks; ignored by "nearest".
      precision: of the products.

    Returns:
      An array of ``image``'s dtype for "nearest", of a floating one otherwise. Differentiable.

    Raises:
      ValueError: the length of ``shape`` is not the rank, or there is no such method.

    See also: ``image.scale_and_translate``, ``image.ResizeMethod``.

    >>> jax.image.resize(jnp.array([[0., 1.], [2., 3.]]), (2, 4), "linear")
    Array([[0.  , 0.25, 0.75, 1.  ],
           [2.  , 2.25, 2.75, 3.  ]], dtype=float32)
    >>> jax.image.resize(jnp.array([1, 2, 3]), (5,), "nearest")
    Array([1, 1, 2, 3, 3], dtype=int32)
    """
    return _resize(image, canonical_shape(shape), _method(method), antialias, precision)


def _resize_traced(image: Any, shape: tuple[int, ...], method: ResizeMethod, antialias: bool,
                   precision: Any) -> Array:
    shape = _check_shape(image, shape)
    if method == ResizeMethod.NEAREST:
        return _nearest(jnp.asarray(image), shape)
    image = _inexact(image)
    dtype = dtypes.real_dtype(image.dtype)
    matrices = {}
    for axis, (before, after) in enumerate(zip(image.shape, shape)):
        if before == after:
            continue
        wide = np.promote_types(np.float32, dtype) if dtype.itemsize >= 4 else np.float32
        ratio = after / before      # an array where a size is symbolic
        scale = ratio.astype(wide) if isinstance(ratio, jnp.ndarray) else lax.full(
            (), np.array(ratio, wide))
        matrices[axis] = _weights(before, after, scale, 0.0, method, antialias,
                                  dtype)
    return _resample(image, matrices, precision)


_resize_traced.__name__ = _resize_traced.__qualname__ = "_resize"
_resize = make_jit(_resize_traced,
                   static_argnames=("shape", "method", "antialias", "precision"))
