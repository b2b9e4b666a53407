"""Promotion of arguments to one dtype, and of their shapes."""

from __future__ import annotations

from typing import Any

from maxjax._base import dtypes
from maxjax.numpy import _promotion
from maxjax.numpy._promotion import check_arraylike as check_arraylike
from maxjax.numpy._promotion import promote_args as promote_args
from maxjax.numpy._promotion import promote_args_inexact as promote_args_inexact
from maxjax.numpy._promotion import promote_shapes as promote_shapes


def promote_dtypes(*args: Any) -> list[Any]:
    """The arguments in one dtype."""
    return _promotion.promote_dtypes("promote_dtypes", *args)


def promote_dtypes_inexact(*args: Any) -> list[Any]:
    """The arguments in one floating or complex dtype."""
    return _promotion.promote_inexact("promote_dtypes_inexact", *args)


def promote_dtypes_complex(*args: Any) -> list[Any]:
    """The arguments in one complex dtype."""
    inexact = promote_dtypes_inexact(*args)
    return [_promotion.cast(x, dtypes.complex_dtype(x.dtype)) for x in inexact]
