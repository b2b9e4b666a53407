"""jax.extend.source_info_util: whose lines the equations of a jaxpr are said to come from."""

from __future__ import annotations

from maxjax._base import source
from maxjax._base.missing import explain_missing_names


def register_exclusion(path: str) -> None:
    """Code of this file, or below this folder, is none of the user's: equations and messages name
    the line that called it.

    >>> jax.extend.source_info_util.register_exclusion("my_library/")
    """
    source.exclude(path)


explain_missing_names(__name__)
