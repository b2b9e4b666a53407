"""A pytest plugin for tests of another state of JAX than the installed one.

What a test file imports from JAX and is not there fails where it is used, not where it is imported:
the other tests of the file run.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from compat.jax_tests.reference import is_jax

_import = builtins.__import__


class Missing:
    """Stands for an object that the installed JAX does not have."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *args: object, **kwargs: object) -> Any:
        raise NotImplementedError(f"the installed JAX has no {self._name}")

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(f"the installed JAX has no {self._name}")


def _with_missing(name: str, globals: Mapping[str, object] | None = None,
                  locals: Mapping[str, object] | None = None,
                  fromlist: Sequence[str] | None = (), level: int = 0) -> ModuleType:
    module = _import(name, globals, locals, fromlist, level)
    if level == 0 and is_jax(name) and str((globals or {}).get("__file__")).endswith("_test.py"):
        for part in fromlist or ():
            if not hasattr(module, part):
                setattr(module, part, Missing(f"{name}.{part}"))
    return module


builtins.__import__ = _with_missing
