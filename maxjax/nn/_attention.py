"""Attention, and matrix products of narrow floats with a scale for each block."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax.nn._normalization import logsumexp, softmax
from maxjax.numpy._at_once import all_at_once
from maxjax.numpy._promotion import check_arraylike, promote_shapes


def _check(name: str, array: Array, shape: Sequence[int], dtype: Any) -> None:
    """Raises ValueError if a shape (-1 means any size) or a dtype differs."""
    if array.ndim != len(shape):
        raise ValueError(f"{name} ndim should be {len(shape)}, but got {array.ndim}")
    if any(want not in (-1, have) for want, have in zip(shape, array.shape)):
        raise ValueError(f"{name} shape should be {list(shape)}: but got {array.shape}")
    if array.dtype != dtype:
        raise ValueError(f"{name} dtype should be {dtype}, but got {array.dtype}")


def _scores(query: Array, key: Array, scale: float, bias: Any) -> Array:
    """How well each query fits each key, in float32: shape ``(B, N, T, S)``."""
    batch, length, heads, width = query.shape
    span, groups = key.shape[1:3]
    grouped = query.reshape(batch, length, groups, heads // groups, width)
    scores = jnp.einsum("btkgh,bskh->bkgts", grouped, key,
                        preferred_element_type=jnp.float32)
    scores = scores.reshape(batch, heads, length, span)
    scores = scores * jnp.array(scale, scores.dtype)
    if bias is None:
        return scores
    return jnp.add(*promote_shapes("", scores, jnp.asarray(bias).astype(scores.dtype)))


def dot_product_attention(query: Any, key: ArrayLike, value: Any, bias: Any = None,
                          mask: Any = None, *, scale: float | None = None, is_causal: bool = False,
                          query_seq_lengths: Any = None, key_value_seq_lengths: Any = None,
                          local_window_size: Any = None, implementation: str | None = None,
                          return_residual: bool = False) -> Any:
    """``softmax(query @ key.T * scale + bias) @ value`` for each head.

    Args:
      query: shape ``(B, T, N, H)``, or without the batch dimension.
      key, value: shape ``(B, S, K, H)``; ``N`` is a multiple of ``K``: each key head serves ``N /
        K`` query heads.
      bias: added to the scores; broadcasts to ``(B, N, T, S)``.
      mask: where False, a key is masked out; broadcasts to ``(B, N, T, S)``.
      scale: of the scores; ``1 / sqrt(H)`` if None.
      is_causal: a query attends to no later key.
      query_seq_lengths, key_value_seq_lengths: int32 of shape ``(B,)``: positions beyond are masked
        out.
      local_window_size: how many keys before and after itself a query attends to; an int for both.
      implementation: None or "xla".
      return_residual: also return the log-sum-exp of the scores, shape ``(B, T, N)``, which has no
        derivative.

    Returns:
      An array of the shape and dtype of ``query``; with ``return_residual`` a pair.

    Raises:
      ValueError: shapes or dtypes do not fit, or there is no such implementation.
      RuntimeError: the implementation is "cudnn".

    See also: ``nn.softmax``, ``jnp.einsum``.

    >>> x = jnp.arange(8.).reshape(1, 2, 2, 2)
    >>> jax.nn.dot_product_attention(x, x, x, is_causal=True)[0, :, 0]
    Array([[0., 1.],
           [4., 5.]], dtype=float32)
    """
    check_arraylike("dot_product_attention", query, key, value)
    given = query = jnp.asarray(query)
    key, value = jnp.asarray(key), jnp.asarray(value)
    if query.ndim == 3:
        query, key, value = (jnp.expand_dims(x, 0) for x in (query, key, value))
    if query.ndim != 4:
        raise ValueError(f"query ndim should be 4, but got {query.ndim}")
    batch, length, heads, width = query.shape
    if key.ndim != 4:
        raise ValueError(f"key ndim should be 4, but got {key.ndim}")
    span, groups = key.shape[1:3]
    _check("query", query, (key.shape[0], -1, -1, key.shape[3]), key.dtype)
    _check("value", value, key.shape, key.dtype)
    if heads % groups:
        raise ValueError(f"The number of query heads must be a multiple of key/value heads, but "
                         f"got {heads} vs {groups}")
    if mask is not None:
        if mask.dtype != dtypes.bool_:
            raise ValueError(f"mask dtype should be bool, but got {mask.dtype}")
        assert mask.ndim < 3 or mask.shape[-3] in (1, heads), (
            f"the heads of mask are {mask.shape[-3]}, of query {heads}")
    for name, lengths in (("query_seq_lengths", query_seq_lengths),
                          ("key_value_seq_lengths", key_value_seq_lengths)):
        if lengths is not None:
            _check(name, jnp.asarray(lengths), (batch,), dtypes.int32)
    if implementation == "cudnn":
        raise RuntimeError("cuDNN is not detected.")
    if implementation not in (None, "xla"):
        raise ValueError(f"Unsupported implementation option: {implementation}")
    if scale is None:
        scale = 1.0 / math.sqrt(width)
    scores = _scores(query, key, scale, bias)
    seen = None if mask is None else jnp.asarray(mask)
    for part in _visible(length, span, is_causal, local_window_size, query_seq_lengths,
                         key_value_seq_lengths):
        seen = part if seen is None else jnp.logical_and(seen, part)
    if seen is not None:
        lowest = np.array(-0.7 * float(np.finfo(np.float32).max), scores.dtype)
        scores = jnp.where(seen, scores, lowest)
    weights = softmax(scores, axis=-1).astype(value.dtype)
    if query_seq_lengths is not None:
        rows = jnp.arange(length)[None, None, :, None] < jnp.asarray(
            query_seq_lengths)[:, None, None, None]
        weights = jnp.where(rows, weights, jnp.zeros((), weights.dtype))
    weights = weights.reshape(batch, groups, heads // groups, length, span)
    result = jnp.einsum("bkgts,bskh->btkgh", weights, value).reshape(
        batch, length, heads, width).astype(given.dtype).reshape(given.shape)
    if not return_residual:
        return result
    residual = lax.stop_gradient(jnp.transpose(logsumexp(scores, axis=-1), (0, 2, 1)))
    return result, residual.reshape(given.shape[:-1]).astype(given.dtype)


def _visible(length: int, span: int, is_causal: bool, window: Any, query_lengths: Any,
             key_lengths: Any) -> list[Any]:
    """The keys that each condition admits: booleans that broadcast to (B, N, T, S)."""
    rows = jnp.arange(length)[:, None]
    columns = jnp.arange(span)[None, :]
    parts = []
    if is_causal:
        parts.append((rows >= columns)[None, None])
    if window is not None:
        before, after = (window, window) if isinstance(window, int) else window
        parts.append(((columns >= rows - before) & (columns <= rows + after))[None, None])
    if key_lengths is not None:
        parts.append(columns[None, None] < jnp.asarray(key_lengths)[:, None, None, None])
    if query_lengths is not None:
        parts.append(rows[None, None] < jnp.asarray(query_lengths)[:, None, None, None])
    return parts


# --- products with a scale for each block ---------------------------------------------------------

@dataclasses.dataclass
class BlockScaleConfig:
    """How an operand of ``scaled_dot_general`` is quantised, in blocks that share a scale."""

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any
    infer_only: bool


def get_scaled_dot_general_config(mode: str, global_scale: Any = None) -> BlockScaleConfig:
    """The quantisation "mxfp8" or "nvfp4".

    Raises:
      ValueError: there is no such mode.

    >>> jax.nn.get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    if mode == "nvfp4":
        one = jnp.ones((1,), jnp.float32)
        return BlockScaleConfig(mode, 16, dtypes.as_dtype("float4_e2m1fn").type,
                                dtypes.as_dtype("float8_e4m3fn").type,
                                one if global_scale is None else global_scale, False)
    if mode == "mxfp8":
        return BlockScaleConfig(mode, 32, dtypes.as_dtype("float8_e4m3fn").type,
                                dtypes.as_dtype("float8_e8m0fnu").type, None, False)
    raise ValueError(f"Unsupported mode: {mode}")


def scaled_matmul(lhs: Any, rhs: Any, lhs_scales: Any, rhs_scales: Any,
                  preferred_element_type: Any = np.float32) -> Array:
    """``(lhs * lhs_scales) @ (rhs * rhs_scales).T`` for each batch, a scale for each block.

    JAX supports it only on GPUs; here it is a product of float32.

    Args:
      lhs, rhs: shapes ``(B, M, K)`` and ``(B, N, K)``.
      lhs_scales, rhs_scales: shapes ``(B, M, K / block)`` and ``(B, N, K / block)``.

    Raises:
      ValueError: the shapes do not fit.

    >>> x, scales = jnp.ones((1, 2, 4)), jnp.full((1, 2, 2), 0.5)
    >>> jax.nn.scaled_matmul(x, x, scales, scales)
    Array([[[1., 1.],
            [1., 1.]]], dtype=float32)
    """
    if not all(x.ndim == 3 for x in (lhs, rhs, lhs_scales, rhs_scales)):
        raise ValueError("scaled_matmul requires all inputs to be 3-dimensional arrays")
    if lhs.shape[0] != rhs.shape[0] or lhs.shape[2] != rhs.shape[2]:
        raise ValueError(
            "scaled_matmul requires inputs a and b to have matching batch (B) and contract (K) "
            f"dimensions, but got shapes {lhs.shape} and {rhs.shape}")
    for x, scales in ((lhs, lhs_scales), (rhs, rhs_scales)):
        if x.shape[:2] != scales.shape[:2] or not scales.shape[2] or x.shape[2] % scales.shape[2]:
            raise ValueError(f"scales of shape {scales.shape} do not fit the shape {x.shape}")

    def scaled(x: Any, scales: Any) -> Array:
        wide = jnp.asarray(scales).astype(jnp.float32)
        return x.astype(jnp.float32) * jnp.repeat(wide, x.shape[2] // scales.shape[2], axis=2)

    product = jnp.einsum("bmk,bnk->bmn", scaled(lhs, lhs_scales), scaled(rhs, rhs_scales))
    return product.astype(preferred_element_type)


def scaled_dot_general(lhs: Any, rhs: Any, dimension_numbers: Any,
                       preferred_element_type: Any = np.float32, configs: Any = None,
                       implementation: str | None = None) -> Array:
    """``lax.dot_general``; with ``configs``, which JAX supports only on GPUs, of quantised
    operands.

    Raises:
      NotImplementedError: ``configs`` are given: no processor here supports such products.

    >>> x = jnp.ones((2, 3))
    >>> jax.nn.scaled_dot_general(x, x, (((1,), (1,)), ((), ())))
    Array([[3., 3.],
           [3., 3.]], dtype=float32)
    """
    if configs is not None:
        raise NotImplementedError("scaled_dot_general with configs runs on GPUs alone: leave "
                                  "configs out, or quantise and use scaled_matmul")
    return lax.dot_general(lhs, rhs, dimension_numbers,
                           preferred_element_type=preferred_element_type)


all_at_once(globals(), "get_scaled_dot_general_config")
