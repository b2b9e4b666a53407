"""Kinds of dtypes, and the errors of their promotion."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import dtypes as _public
from maxjax._base import dtypes as _base
from maxjax._base.dtypes import ExtendedDType as ExtendedDType
from maxjax._base.dtypes import extended as extended
from maxjax._base.dtypes import finfo as finfo
from maxjax._base.errors import TypePromotionError as TypePromotionError
from maxjax._higher_order.tangent_dtypes import PrimalTangentDType as PrimalTangentDType
from maxjax._higher_order.tangent_dtypes import primal_tangent_dtype as primal_tangent_dtype

DType = Any


def supports_inf(dtype: Any) -> bool:
    """Whether a dtype of numbers has infinities."""
    return bool(_base.is_inexact(_base.as_dtype(dtype)) and np.isinf(
        np.asarray(_base.extremes(dtype)[1], np.float64)))


def __getattr__(name: str) -> Any:
    return getattr(_public, name)
