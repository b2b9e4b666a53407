"""jax.extend.ifrt_programs: programs of XLA's runtime IFRT, which maxjax does not have."""

from __future__ import annotations

from typing import NoReturn


class _Programs:
    """What JAX's module of that name is used for: each use says that there is none."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"maxjax has no IFRT programs ({name}): its programs run on MAX, not on XLA's runtime")


ifrt_programs = _Programs()
