"""jax.scipy.sparse."""

from __future__ import annotations

from maxjax.scipy.sparse import linalg as linalg
