"""Operations of jax.lax on sliding windows: padding and convolutions."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._higher_order.composed import reduce_window_p, select_and_scatter_p
from maxjax._higher_order.constraints import with_out_sharding
from maxjax._ir.dimensions import constant_size, larger
from maxjax._ir.trace import Array
from maxjax._primitives.convolution import (
    ConvDimensionNumbers,
    conv_general_dilated_p,
    dilated,
    output_spatial,
)
from maxjax._primitives.layout import rev_p, transpose
from maxjax._primitives.window import (
    reduce_window_max_p,
    reduce_window_min_p,
    reduce_window_sum_p,
    select_and_gather_add_p,
    select_and_scatter_add_p,
)
from maxjax.lax._contraction import canonical_precision, check_not_narrower, dot_general
from maxjax.lax._operands import integers, same_dtypes_error
from maxjax.lax._operands import operand as as_operand

__all__ = [
    "ConvDimensionNumbers", "ConvGeneralDilatedDimensionNumbers", "conv", "conv_dimension_numbers",
    "conv_general_dilated", "conv_general_dilated_local", "conv_general_dilated_p",
    "conv_general_dilated_patches", "conv_general_permutations", "conv_general_shape_tuple",
    "conv_shape_tuple", "conv_transpose", "conv_transpose_shape_tuple", "conv_with_general_padding",
    "padtype_to_pads", "reduce_window_max_p", "reduce_window_min_p", "reduce_window_p",
    "reduce_window_sum_p", "select_and_gather_add_p", "select_and_scatter_add_p",
    "select_and_scatter_p",
]

ConvGeneralDilatedDimensionNumbers = tuple[str, str, str] | ConvDimensionNumbers | None


class PaddingType(enum.Enum):
    """How windows extend beyond the edges."""

    VALID = 1
    SAME = 2
    SAME_LOWER = 3


def padtype_to_pads(in_shape: Any, window_shape: Any, window_strides: Any,
                    padding: Any) -> list[tuple[int, int]]:
    """The padding before and after each dimension for a named mode.

    Args:
      in_shape: the sizes of the dimensions.
      window_shape: the sizes of the window.
      window_strides: the distances between windows.
      padding: "VALID" (none), "SAME" (as many windows as elements, divided by the stride; the
        larger half after) or "SAME_LOWER" (the larger half before).

    Returns:
      A list of pairs (before, after).

    Raises:
      RuntimeError: the name is unknown.

    See also: ``lax.conv_general_dilated``, ``lax.reduce_window``, ``lax.pad``.

    >>> lax.padtype_to_pads((5,), (2,), (1,), "SAME")
    [(0, 1)]
    """
    name = padding.name if isinstance(padding, PaddingType) else padding
    name = name.upper() if isinstance(name, str) else name
    if name == "VALID":
        return [(0, 0)] * len(in_shape)
    if name not in ("SAME", "SAME_LOWER"):
        raise RuntimeError("Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', "
                           f"got {padding}.")
    pads = []
    for size, width, stride in zip(in_shape, window_shape, window_strides, strict=True):
        count = -(-size // stride)
        total = larger(0, (count - 1) * stride + width - size)
        small, large = total // 2, total - total // 2
        pads.append((small, large) if name == "SAME" else (large, small))
    return [(constant_size(low), constant_size(high)) for low, high in pads]


# --- convolutions ---------------------------------------------------------------------------------

def conv_dimension_numbers(lhs_shape: Sequence[int], rhs_shape: Sequence[int],
                           dimension_numbers: Any) -> ConvDimensionNumbers:
    """Dimension numbers in their canonical form.

    Args:
      lhs_shape, rhs_shape: the shapes of input and window.
      dimension_numbers: None (batch, features, spatial...; for rhs output features, input
        features, spatial...), or three strings such as ("NHWC", "HWIO", "NHWC").

    Returns:
      A ``ConvDimensionNumbers``.

    Raises:
      TypeError: they do not fit the shapes.

    See also: ``lax.conv_general_dilated``, ``lax.ConvDimensionNumbers``.

    >>> lax.conv_dimension_numbers((1, 8, 2), (3, 2, 4), ("NHC", "HIO", "NHC")).rhs_spec
    (2, 1, 0)
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    rank = len(lhs_shape)
    if rank != len(rhs_shape):
        raise TypeError("convolution requires lhs and rhs ndim to be equal, got "
                        f"{rank} and {len(rhs_shape)}.")
    if dimension_numbers is None:
        return ConvDimensionNumbers(*[tuple(range(rank))] * 3)
    if not isinstance(dimension_numbers, (list, tuple)):
        raise TypeError("convolution dimension_numbers must be tuple/list or None, got "
                        f"{type(dimension_numbers)}.")
    if len(dimension_numbers) != 3:
        raise TypeError("convolution dimension_numbers list/tuple must be length 3, got "
                        f"{len(dimension_numbers)}.")
    if not all(isinstance(spec, str) for spec in dimension_numbers):
        raise TypeError("convolution dimension_numbers elements must be strings, got "
                        f"{tuple(map(type, dimension_numbers))}.")
    for number, spec in enumerate(dimension_numbers):
        if len(spec) != rank:
            raise TypeError(f"convolution dimension_numbers[{number}] must have len equal to the "
                            f"ndim of lhs and rhs, got {spec} for lhs and rhs shapes "
                            f"{tuple(lhs_shape)} and {tuple(rhs_shape)}.")
        if len(set(spec)) != rank:
            raise TypeError(f"convolution dimension_numbers[{number}] cannot have duplicate "
                            f"characters, got {spec}.")
    lhs, rhs, out = dimension_numbers
    spatial = [char for char in rhs if char not in "OI"]
    if not (set(lhs) - set("NC") == set(rhs) - set("OI") == set(out) - set("NC")):
        raise TypeError("convolution dimension_numbers elements must each have the same set of "
                        f"spatial characters, got {tuple(dimension_numbers)}.")
    return ConvDimensionNumbers(
        tuple(lhs.index(char) for char in ("N", "C", *spatial)),
        tuple(rhs.index(char) for char in ("O", "I", *spatial)),
        tuple(out.index(char) for char in ("N", "C", *spatial)))


def _check_groups(lhs: Array, rhs: Array, numbers: ConvDimensionNumbers, feature_groups: int,
                  batch_groups: int) -> None:
    name = "conv_general_dilated"
    lhs_spec, rhs_spec, _ = numbers
    for what, count in (("feature_group_count", feature_groups),
                        ("batch_group_count", batch_groups)):
        if count < 1:
            raise ValueError(f"{name} {what} must be a positive integer, got {count}.")
    features, batch = lhs.shape[lhs_spec[1]], lhs.shape[lhs_spec[0]]
    outputs, inputs = rhs.shape[rhs_spec[0]], rhs.shape[rhs_spec[1]]
    if features % feature_groups:
        raise ValueError(f"{name} feature_group_count must divide lhs feature dimension size, but "
                         f"{feature_groups} does not divide {features}.")
    if features // feature_groups != inputs:
        raise ValueError(f"{name} lhs feature dimension size divided by feature_group_count must "
                         f"equal the rhs input feature dimension size, but {features} // "
                         f"{feature_groups} != {inputs}.")
    if outputs % feature_groups:
        raise ValueError(f"{name} rhs output feature dimension size must be a multiple of "
                         f"feature_group_count, but {outputs} is not a multiple of "
                         f"{feature_groups}.")
    if batch % batch_groups:
        raise ValueError(f"{name} batch_group_count must divide lhs batch dimension size, but "
                         f"{batch_groups} does not divide {batch}.")
    if outputs % batch_groups:
        raise ValueError(f"{name} rhs output feature dimension size must be a multiple of "
                         f"batch_group_count, but {outputs} is not a multiple of {batch_groups}.")
    if feature_groups > 1 and batch_groups > 1:
        raise ValueError(f"At most one of batch_group_count and feature_group_count may be > 1, "
                         f"got batch_group_count={batch_groups} and "
                         f"feature_group_count={feature_groups}")


def _check_preferred(own: Any, preferred: Any) -> None:
    """Raises if a convolution of ``own`` cannot return ``preferred``."""
    if dtypes.is_bool(own):
        return
    kinds = [dtypes.is_integer(preferred), dtypes.is_floating(preferred)]
    fits = (any(kinds) if dtypes.is_integer(own) else kinds[1] if dtypes.is_floating(own)
            else dtypes.is_complex(preferred))
    if not fits:
        raise TypeError(
            "Input type is incompatible with `preferred_element_type`. The compatible combinations "
            "of (input_type, preferred_element_type) are (integral, integral), (integral, "
            f"floating), (floating, floating), (complex, complex); got ({own}, {preferred}).")
    if kinds[0] and dtypes.is_signed(own) and not dtypes.is_signed(preferred):
        raise TypeError("`preferred_element_type` must have the same signedness as the original "
                        f"type, got {preferred} for {own}.")
    check_not_narrower(own, preferred)


def conv_general_dilated(
        lhs: Any, rhs: Any, window_strides: Sequence[int],
        padding: str | Sequence[tuple[int, int]], lhs_dilation: Sequence[int] | None = None,
        rhs_dilation: Sequence[int] | None = None, dimension_numbers: Any = None,
        feature_group_count: int = 1, batch_group_count: int = 1, precision: Any = None,
        preferred_element_type: Any = None, out_sharding: Any = None) -> Array:
    """Convolution of any rank.

    Args:
      lhs: the input, of rank n + 2.
      rhs: the window, of rank n + 2.
      window_strides: n integers.
      padding: "SAME", "VALID" or "SAME_LOWER", or n pairs (before, after).
      lhs_dilation: n integers: the distance between elements of lhs.
      rhs_dilation: the same for rhs.
      dimension_numbers: see ``conv_dimension_numbers``.
      feature_group_count: the number of groups of features, convolved separately.
      batch_group_count: the same for the batch.
      precision: of products on accelerators.
      preferred_element_type: the dtype of the result and of the accumulation.
      out_sharding: the result's sharding along Explicit axes of a mesh.

    Returns:
      An array of rank n + 2, with dimensions in the order of ``dimension_numbers``: by default
      (batch, features, ...), of the operands' dtype or ``preferred_element_type``.

    Raises:
      TypeError, ValueError: shapes, dtypes or parameters do not fit.

    See also: ``lax.conv``, ``lax.conv_with_general_padding``, ``lax.conv_transpose``,
    ``lax.conv_dimension_numbers``, ``lax.reduce_window``.

    >>> x = jnp.arange(6.).reshape(1, 6, 1)
    >>> lax.conv_general_dilated(x, jnp.ones((2, 1, 1)), (2,), "VALID",
    ...                          dimension_numbers=("NHC", "HIO", "NHC")).ravel()
    Array([1., 5., 9.], dtype=float32)
    """
    name = "conv_general_dilated"
    if out_sharding is not None:
        return with_out_sharding(
            conv_general_dilated, out_sharding, lhs, rhs, window_strides, padding, lhs_dilation,
            rhs_dilation, dimension_numbers, feature_group_count, batch_group_count, precision,
            preferred_element_type)
    x, y = as_operand(lhs, name), as_operand(rhs, name, 1)
    if isinstance(dimension_numbers, ConvDimensionNumbers) and x.ndim != y.ndim:
        raise ValueError(f"{name} lhs and rhs must have the same number of dimensions, but got "
                         f"{x.shape} and {y.shape}.")
    numbers = conv_dimension_numbers(x.shape, y.shape, dimension_numbers)
    rank = x.ndim - 2
    spatial = tuple(x.shape[dim] for dim in numbers.lhs_spec[2:])
    window = tuple(y.shape[dim] for dim in numbers.rhs_spec[2:])
    strides = integers(window_strides)
    dilation = (1,) * rank if lhs_dilation is None else integers(lhs_dilation)
    window_dilation = (1,) * rank if rhs_dilation is None else integers(rhs_dilation)
    for what, values in (("window_strides", strides), ("lhs_dilation", dilation),
                         ("rhs_dilation", window_dilation)):
        if len(values) != rank:
            raise ValueError(f"{name} window and {what} must have the same number of dimensions, "
                             f"but got {rank} and {len(values)}")
        if any(value < 1 for value in values):
            if what == "rhs_dilation" and isinstance(padding, str):
                raise TypeError(f"All dilations must be positive, got {values}.")
            raise ValueError(f"{name} {what} must have every element be strictly positive, got "
                             f"{values}.")
    if isinstance(padding, (str, PaddingType)) and any(d != 1 for d in dilation):
        raise ValueError(
            "String padding is not implemented for transposed convolution using this op. "
            "Please either exactly specify the required padding or use conv_transpose.")
    effective = [dilated(width, d) for width, d in zip(window, window_dilation, strict=True)]
    pads = _explicit_padding(name, padding, spatial, effective, strides)
    if x.dtype != y.dtype:
        raise same_dtypes_error(name, [x.aval, y.aval])
    if len(pads) != rank:
        raise TypeError(f"Wrong number of explicit pads for convolution: expected {rank}, got "
                        f"{len(pads)}.")
    _check_groups(x, y, numbers, feature_group_count, batch_group_count)
    if preferred_element_type is not None:
        preferred_element_type = dtypes.canonical(preferred_element_type)
        _check_preferred(x.dtype, preferred_element_type)
    return conv_general_dilated_p.bind(
        x, y, window_strides=strides, padding=pads, lhs_dilation=dilation,
        rhs_dilation=window_dilation, dimension_numbers=numbers,
        feature_group_count=int(feature_group_count), batch_group_count=int(batch_group_count),
        precision=canonical_precision(precision), preferred_element_type=preferred_element_type)


def _explicit_padding(name: str, padding: Any, spatial: Sequence[int], window: Sequence[int],
                      strides: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """The padding as pairs of sizes, also where it is given by name."""
    if isinstance(padding, (str, PaddingType)):
        return tuple(padtype_to_pads(spatial, window, strides, padding))
    try:
        return tuple([(constant_size(low), constant_size(high)) for low, high in padding])
    except TypeError:
        raise ValueError(f"padding argument to {name} should be a string or a sequence of "
                         f"(low, high) pairs, got {padding}") from None


def conv(lhs: Any, rhs: Any, window_strides: Sequence[int], padding: str, precision: Any = None,
         preferred_element_type: Any = None) -> Array:
    """Convolution of (batch, features, spatial...) with (out features, features, spatial...).

    >>> x = jnp.arange(5.).reshape(1, 1, 5)
    >>> lax.conv(x, jnp.ones((1, 1, 2)), (1,), "VALID")
    Array([[[1., 3., 5., 7.]]], dtype=float32)
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, precision=precision,
                                preferred_element_type=preferred_element_type)


def conv_with_general_padding(lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any,
                              lhs_dilation: Sequence[int] | None,
                              rhs_dilation: Sequence[int] | None, precision: Any = None,
                              preferred_element_type: Any = None) -> Array:
    """``conv`` with padding and dilations of any kind.

    >>> x = jnp.arange(3.).reshape(1, 1, 3)
    >>> lax.conv_with_general_padding(x, jnp.ones((1, 1, 2)), (1,), [(1, 0)], None, None).ravel()
    Array([0., 1., 3.], dtype=float32)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, precision=precision,
        preferred_element_type=preferred_element_type)


def _transposed_padding(width: int, stride: int, padding: str) -> tuple[int, int]:
    """The padding for which a transposed convolution restores the forward one's size."""
    if padding == "SAME":
        total = width + stride - 2
        before = width - 1 if stride > width - 1 else -(-total // 2)
    elif padding == "VALID":
        total = width + stride - 2 + max(width - stride, 0)
        before = width - 1
    else:
        raise ValueError("Padding mode must be `SAME` or `VALID`.")
    return before, total - before


def conv_transpose(lhs: Any, rhs: Any, strides: Sequence[int], padding: Any,
                   rhs_dilation: Sequence[int] | None = None, dimension_numbers: Any = None,
                   transpose_kernel: bool = False, precision: Any = None,
                   preferred_element_type: Any = None,
                   use_consistent_padding: bool = False) -> Array:
    """The transpose of a convolution with strides ("deconvolution"), which enlarges.

    Args:
      lhs, rhs: as for ``conv_general_dilated``; by default channels are last.
      strides: of the transposed convolution.
      padding: "SAME", "VALID" or n pairs.
      rhs_dilation: as for ``conv_general_dilated``.
      dimension_numbers: see ``conv_dimension_numbers``.
      transpose_kernel: flips the window and exchanges its features, which makes this the
        gradient of the convolution with the same window.
      precision: of the products on accelerators, ``None`` or a ``lax.Precision``; two for the two
        operands.
      preferred_element_type: the dtype of accumulation and of the result; None: the promoted one.
      use_consistent_padding: explicit padding refers to the forward convolution.

    Returns:
      An array of rank n + 2; with "SAME" each size times its stride.

    Raises:
      TypeError, ValueError, RuntimeError: shapes or parameters do not fit.

    See also: ``lax.conv_general_dilated``, ``lax.conv``.

    >>> x = jnp.arange(3.).reshape(1, 3, 1)
    >>> lax.conv_transpose(x, jnp.ones((2, 1, 1)), (2,), "SAME").ravel()
    Array([0., 0., 1., 1., 2., 2.], dtype=float32)
    """
    x, y = as_operand(lhs, "conv_transpose"), as_operand(rhs, "conv_transpose", 1)
    rank = x.ndim - 2
    if dimension_numbers is None:
        if not 1 <= rank <= 3:
            raise ValueError("No 4+ dimensional dimension_number defaults.")
        space = "DHW"[3 - rank:] if rank != 2 else "HW"
        if rank == 1:
            space = "H"
        dimension_numbers = (f"N{space}C", f"{space}IO", f"N{space}C")
    numbers = conv_dimension_numbers(x.shape, y.shape, dimension_numbers)
    spatial_dims = numbers.rhs_spec[2:]
    window = [y.shape[dim] for dim in spatial_dims]
    dilation = (1,) * rank if rhs_dilation is None else integers(rhs_dilation)
    effective = [dilated(width, d) for width, d in zip(window, dilation, strict=True)]
    if isinstance(padding, str) and padding in ("SAME", "VALID"):
        pads: Any = [_transposed_padding(width, stride, padding)
                     for width, stride in zip(effective, strides, strict=True)]
    elif use_consistent_padding and not isinstance(padding, str):
        pads = [(width - 1 - low, width - 1 - high)
                for width, (low, high) in zip(effective, padding, strict=True)]
    else:
        pads = padding
    if transpose_kernel:
        y = rev_p.bind(y, dimensions=spatial_dims)
        order = list(range(y.ndim))
        out, into = numbers.rhs_spec[:2]
        order[out], order[into] = into, out
        y = transpose(y, tuple(order))
    return conv_general_dilated(
        x, y, (1,) * rank, pads, strides, dilation, numbers, precision=precision,
        preferred_element_type=preferred_element_type)


def conv_general_dilated_patches(
        lhs: Any, filter_shape: Sequence[int], window_strides: Sequence[int], padding: Any,
        lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None,
        dimension_numbers: Any = None, precision: Any = None,
        preferred_element_type: Any = None) -> Array:
    """The windows themselves, flattened into the features: (features, window...) at each position.

    It is a convolution of each feature with all one-hot windows.

    Args:
      lhs: the input, of rank n + 2.
      filter_shape: the window's sizes, n integers.
      window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers: as for
        ``conv_general_dilated``.
      precision: of the products on accelerators, ``None`` or a ``lax.Precision``; two for the two
        operands.
      preferred_element_type: the dtype of accumulation and of the result; None: the promoted one.

    Returns:
      An array of rank n + 2, with as many features as a window has elements of all features.

    Raises:
      TypeError, ValueError, RuntimeError: shapes or parameters do not fit.

    See also: ``lax.conv_general_dilated``, ``lax.conv_general_dilated_local``,
    ``lax.reduce_window``.

    >>> x = jnp.arange(4.).reshape(1, 1, 4)
    >>> lax.conv_general_dilated_patches(x, (2,), (1,), "VALID")
    Array([[[0., 1., 2.],
            [1., 2., 3.]]], dtype=float32)
    """
    x = as_operand(lhs, "conv_general_dilated_patches")
    window = integers(filter_shape)
    numbers = conv_dimension_numbers(x.shape, (1, 1, *window), dimension_numbers)
    features, places = x.shape[numbers.lhs_spec[1]], int(np.prod(window))
    units = np.eye(places, dtype=x.dtype).reshape(places, 1, *window)
    units = np.tile(units, (features, *(1,) * (len(window) + 1)))
    rhs = units.transpose(np.argsort(numbers.rhs_spec))
    return conv_general_dilated(
        x, rhs, window_strides, padding, lhs_dilation, rhs_dilation, numbers,
        feature_group_count=features, precision=precision,
        preferred_element_type=preferred_element_type)


def conv_general_dilated_local(
        lhs: Any, rhs: Any, window_strides: Sequence[int],
        padding: str | Sequence[tuple[int, int]], filter_shape: Sequence[int],
        lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None,
        dimension_numbers: Any = None, precision: Any = None) -> Array:
    """A convolution with a separate window at each position of the result.

    Args:
      lhs: as for ``conv_general_dilated``.
      rhs: its spatial sizes are those of the result, and its input features (features, window...)
        in the order of ``conv_general_dilated_patches``.
      window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, precision: as for
        ``conv_general_dilated``.
      filter_shape: the spatial sizes of a window.

    >>> x, kernels = jnp.arange(4.).reshape(1, 1, 4), jnp.ones((1, 2, 3))
    >>> lax.conv_general_dilated_local(x, kernels, (1,), "VALID", (2,))
    Array([[[1., 3., 5.]]], dtype=float32)
    """
    name = "conv_general_dilated_local"
    x, y = as_operand(lhs, name), as_operand(rhs, name, 1)
    numbers = conv_dimension_numbers(x.shape, y.shape, dimension_numbers)
    patches = conv_general_dilated_patches(
        x, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, numbers, precision)
    _, rhs_spec, out_spec = numbers
    # (spatial..., batch, out features) -> the result's order.
    out = dot_general(patches, y, (((out_spec[1],), (rhs_spec[1],)),
                                   (out_spec[2:], rhs_spec[2:])), precision)
    order = [0] * x.ndim
    for place, dim in enumerate((*out_spec[2:], *out_spec[:2])):
        order[dim] = place
    return transpose(out, tuple(order))


# --- shapes ---------------------------------------------------------------------------------------

def conv_shape_tuple(lhs_shape: Sequence[int], rhs_shape: Sequence[int], strides: Sequence[int],
                     pads: Any, batch_group_count: int = 1) -> tuple[Any, ...]:
    """The shape of a convolution, all shapes as (batch or out features, features, spatial...).

    Raises:
      TypeError: ``pads`` does not have a pair for each spatial dimension.

    >>> lax.conv_shape_tuple((1, 2, 8), (4, 2, 3), (1,), [(0, 0)])[:2]
    (1, 4)
    """
    if isinstance(pads, (str, PaddingType)):
        pads = padtype_to_pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    if len(pads) != len(lhs_shape) - 2:
        raise TypeError("Wrong number of explicit pads for convolution: expected "
                        f"{len(lhs_shape) - 2}, got {len(pads)}.")
    ones = (1,) * len(pads)
    spatial = output_spatial(lhs_shape[2:], rhs_shape[2:], strides, pads, ones, ones)
    return (lhs_shape[0] // batch_group_count, rhs_shape[0],
            *(np.int64(size) for size in spatial))


def conv_general_permutations(dimension_numbers: Any) -> tuple[tuple[int, ...], ...]:
    """The positions of (N, C), (O, I), (N, C) and the spatial dimensions in three strings.

    Raises:
      TypeError: a string lacks one of these letters, or the spatial ones differ.

    >>> lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    lhs, rhs, out = dimension_numbers
    for number, (spec, letters) in enumerate(((lhs, "NC"), (rhs, "OI"), (out, "NC"))):
        if any(list(spec).count(letter) != 1 for letter in letters):
            raise TypeError(f"convolution dimension_numbers[{number}] must contain the characters "
                            f"'{letters[0]}' and '{letters[1]}' exactly once, got {spec}.")
        if len(set(spec)) != len(spec):
            raise TypeError(f"convolution dimension_numbers[{number}] cannot have duplicate "
                            f"characters, got {spec}.")
    if not (set(lhs) - set("NC") == set(rhs) - set("OI") == set(out) - set("NC")):
        raise TypeError("convolution dimension_numbers elements must each have the same set of "
                        f"spatial characters, got {dimension_numbers}.")
    spatial = [char for char in rhs if char not in "OI"]
    return tuple(tuple(spec.index(char) for char in (*letters, *spatial))
                 for spec, letters in ((lhs, "NC"), (rhs, "OI"), (out, "NC")))


def _permuted_shape(lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any,
                    shape_of: Callable[[Any, Any], Sequence[int]]) -> tuple[Any, ...]:
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    shape = shape_of(tuple(lhs_shape[dim] for dim in lhs), tuple(rhs_shape[dim] for dim in rhs))
    return tuple(np.int64(shape[place]) for place in np.argsort(out))


def conv_general_shape_tuple(lhs_shape: Sequence[int], rhs_shape: Sequence[int],
                             window_strides: Sequence[int], padding: Any,
                             dimension_numbers: Any) -> tuple[Any, ...]:
    """The shape of a convolution with dimension numbers given as three strings.

    >>> numbers = ("NHC", "HIO", "NHC")
    >>> tuple(map(int, lax.conv_general_shape_tuple((1, 8, 2), (3, 2, 4), (1,), "SAME", numbers)))
    (1, 8, 4)
    """
    return _permuted_shape(lhs_shape, rhs_shape, dimension_numbers,
                           lambda lhs, rhs: conv_shape_tuple(lhs, rhs, window_strides, padding))


def conv_transpose_shape_tuple(lhs_shape: Sequence[int], rhs_shape: Sequence[int],
                               window_strides: Sequence[int], padding: Any,
                               dimension_numbers: Any) -> tuple[int, ...]:
    """The shape of a transposed convolution: the one that strides turned into ``lhs_shape``.

    >>> numbers = ("NHC", "HIO", "NHC")
    >>> tuple(map(int, lax.conv_transpose_shape_tuple(
    ...     (1, 8, 2), (3, 2, 4), (2,), "SAME", numbers)))
    (1, 16, 4)
    """
    def shape_of(lhs: Sequence[int], rhs: Sequence[int]) -> Sequence[int]:
        if isinstance(padding, str):
            pads = [_transposed_padding(width, stride, padding)
                    for width, stride in zip(rhs[2:], window_strides, strict=True)]
        else:
            pads = padding
        ones = (1,) * len(pads)
        return (lhs[0], rhs[0], *output_spatial(
            lhs[2:], rhs[2:], ones, pads, window_strides, ones))

    return _permuted_shape(lhs_shape, rhs_shape, dimension_numbers, shape_of)
