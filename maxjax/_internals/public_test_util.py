"""Checks of derivatives, and of values."""

from __future__ import annotations

from maxjax.test_util import check_close as check_close
from maxjax.test_util import check_grads as check_grads
from maxjax.test_util import check_jvp as check_jvp
from maxjax.test_util import check_vjp as check_vjp
