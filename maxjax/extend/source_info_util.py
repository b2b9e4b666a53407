"""jax.extend.source_info_util: which code counts as the user's in equations' locations."""

from __future__ import annotations

from maxjax._base import source
from maxjax._base.missing import explain_missing_names


def register_exclusion(path: str) -> None:
    """Excludes code of this file, or below this folder, from the user's: equations and messages
    name the line that called it.

    >>> jax.extend.source_info_util.register_exclusion("my_library/")
    """
    source.exclude(path)


explain_missing_names(__name__)
