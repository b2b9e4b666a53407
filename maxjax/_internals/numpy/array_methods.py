"""The classes of ``x.at`` and ``x.at[index]``."""

from maxjax.numpy._at import IndexUpdateHelper as _IndexUpdateHelper
from maxjax.numpy._at import _IndexUpdateRef

__all__ = ["_IndexUpdateHelper", "_IndexUpdateRef"]
