"""jax.experimental.compilation_cache.compilation_cache: whether compiled programs are kept.

maxjax always caches compiled programs, in the folder that MAXJAX_CACHE_DIR names.
"""

from __future__ import annotations

from maxjax._base.config import config
from maxjax._base.missing import explain_missing_names


def set_cache_dir(path: str) -> None:
    """Sets ``jax_compilation_cache_dir``, which warns once that it has no effect: see
    MAXJAX_CACHE_DIR.

    >>> set_cache_dir("my_cache")
    >>> jax.config.jax_compilation_cache_dir
    'my_cache'
    >>> jax.config.update("jax_compilation_cache_dir", None)
    """
    config.update("jax_compilation_cache_dir", path)


def reset_cache() -> None:
    """Resets the cache's state: does nothing here.

    >>> reset_cache()
    """


explain_missing_names(__name__)
