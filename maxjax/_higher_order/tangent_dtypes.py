"""Dtypes whose tangents are of a dtype that is asked for."""

from __future__ import annotations

import dataclasses
from typing import Any

from maxjax._base import dtypes
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import DTypeLike


class primal_tangent_dtype_scalar(dtypes.extended):
    """The abstract class of dtypes whose tangents are of a dtype that was asked for."""


class _PrimalTangentRules:
    allow_conversion = True

    @staticmethod
    def physical_element_aval(dtype: PrimalTangentDType) -> Any:
        return ShapedArray((), dtype.primal_dtype)

    @staticmethod
    def tangent_dtype(dtype: PrimalTangentDType) -> Any:
        return dtype.tangent_dtype


@dataclasses.dataclass(frozen=True)
class PrimalTangentDType(dtypes.ExtendedDType):
    """The dtype of numbers whose tangents are of another dtype, as of integers that have some."""

    name: str
    primal_dtype: Any
    tangent_dtype: Any
    _rules = _PrimalTangentRules
    type = primal_tangent_dtype_scalar

    def __repr__(self) -> str:
        return self.name


def primal_tangent_dtype(primal_dtype: DTypeLike, tangent_dtype: DTypeLike, name: str | None = None
                         ) -> PrimalTangentDType:
    """The dtype of numbers whose tangents, and so cotangents, are of another dtype.

    ``lax.convert_element_type`` makes such numbers of those of ``primal_dtype``, and back; there is
    no arithmetic of them: functions with derivative rules of their own take and give them.

    Args:
      name: how it prints.

    >>> dtype = jax.experimental.primal_tangent_dtype(jnp.int8, jnp.bfloat16)
    >>> dtype
    PrimalTangentDType{i8/bf16}
    >>> _, pullback = jax.vjp(lambda x: x[1:], jnp.arange(3, dtype=jnp.int8).astype(dtype))
    >>> pullback(jnp.ones(2, jnp.bfloat16))
    (Array([0, 1, 1], dtype=bfloat16),)
    """
    primal, tangent = map(dtypes.as_dtype, (primal_dtype, tangent_dtype))
    text = f"PrimalTangentDType{{{dtypes.short_name(primal)}/{dtypes.short_name(tangent)}}}"
    return PrimalTangentDType(name or text, primal, tangent)
