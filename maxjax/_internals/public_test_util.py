"""Checks of derivatives, and of values."""

from __future__ import annotations

from typing import Any

from maxjax.test_util import _assert_close
from maxjax.test_util import check_grads as check_grads
from maxjax.test_util import check_jvp as check_jvp
from maxjax.test_util import check_vjp as check_vjp


def check_close(xs: Any, ys: Any, atol: Any = None, rtol: Any = None, err_msg: str = "") -> None:
    """Compares pytrees of arrays, by default to the precision of their dtypes.

    Raises:
      AssertionError: they differ.
    """
    _assert_close(ys, xs, atol, rtol, err_msg)
