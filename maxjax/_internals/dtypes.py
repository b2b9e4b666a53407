"""Kinds of dtypes, and the errors of their promotion."""

from typing import Any

from maxjax import dtypes as _public
from maxjax._base.dtypes import extended as extended
from maxjax._base.dtypes import finfo as finfo
from maxjax._base.errors import TypePromotionError as TypePromotionError

DType = Any


class ExtendedDType:
    """The base of dtypes that libraries define; maxjax has no arrays of these."""


def __getattr__(name: str) -> Any:
    return getattr(_public, name)
