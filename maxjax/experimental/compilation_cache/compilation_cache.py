"""jax.experimental.compilation_cache.compilation_cache.

What maxjax compiles is always kept, in the folder that MAXJAX_CACHE_DIR names.
"""

from __future__ import annotations

from maxjax._base.config import config
from maxjax._base.missing import explain_missing_names


def set_cache_dir(path: str) -> None:
    """Sets ``jax_compilation_cache_dir``, which tells once that it has no effect: see
    MAXJAX_CACHE_DIR.

    >>> set_cache_dir("my_cache")
    >>> jax.config.jax_compilation_cache_dir
    'my_cache'
    >>> jax.config.update("jax_compilation_cache_dir", None)
    """
    config.update("jax_compilation_cache_dir", path)


def reset_cache() -> None:
    """Forgets that a folder was looked at: there is nothing to forget.

    >>> reset_cache()
    """


explain_missing_names(__name__)
