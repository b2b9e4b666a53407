"""Kinds of dtypes, and the errors of their promotion."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from maxjax import dtypes as _public
from maxjax._base import dtypes as _base
from maxjax._base.dtypes import ExtendedDType as ExtendedDType
from maxjax._base.dtypes import extended as extended
from maxjax._base.dtypes import finfo as finfo
from maxjax._base.errors import TypePromotionError as TypePromotionError
from maxjax._ir.types import ShapedArray as _ShapedArray

DType = Any


class primal_tangent_dtype_scalar(extended):
    """The abstract class of dtypes whose tangents are of a dtype that was asked for."""


class _PrimalTangentRules:
    allow_conversion = True

    @staticmethod
    def physical_element_aval(dtype: PrimalTangentDType) -> Any:
        return _ShapedArray((), dtype.primal_dtype)

    @staticmethod
    def tangent_dtype(dtype: PrimalTangentDType) -> Any:
        return dtype.tangent_dtype


@dataclasses.dataclass(frozen=True)
class PrimalTangentDType(ExtendedDType):
    """The dtype of numbers whose tangents are of another dtype, as of integers that have some."""

    name: str
    primal_dtype: Any
    tangent_dtype: Any
    _rules = _PrimalTangentRules
    type = primal_tangent_dtype_scalar

    def __repr__(self) -> str:
        return self.name


def primal_tangent_dtype(primal_dtype: Any, tangent_dtype: Any, name: str | None = None
                         ) -> PrimalTangentDType:
    """That dtype; by ``lax.convert_element_type`` from and to the dtype of its numbers."""
    primal, tangent = map(_base.as_dtype, (primal_dtype, tangent_dtype))
    text = f"PrimalTangentDType{{{_base.short_name(primal)}/{_base.short_name(tangent)}}}"
    return PrimalTangentDType(name or text, primal, tangent)


def supports_inf(dtype: Any) -> bool:
    """Whether a dtype of numbers has infinities."""
    return bool(_base.is_inexact(_base.as_dtype(dtype)) and np.isinf(
        np.asarray(_base.extremes(dtype)[1], np.float64)))


def __getattr__(name: str) -> Any:
    return getattr(_public, name)
