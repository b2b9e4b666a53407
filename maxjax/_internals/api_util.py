"""The names of jax.api_util, and arguments by number and by name."""

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from maxjax import api_util as _public
from maxjax._higher_order.static_arguments import select


def infer_argnums_and_argnames(sig: inspect.Signature, argnums: int | Sequence[int] | None,
                               argnames: str | Iterable[str] | None
                               ) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The positions and the names of arguments of which either the ones or the others are given."""
    def function(*args: Any, **kwargs: Any) -> None:
        pass

    function.__signature__ = sig      # type: ignore[attr-defined]
    chosen = select(function, argnums, argnames, "static")
    known = [name for name in sig.parameters if name in chosen.names]
    given = (argnames,) if isinstance(argnames, str) else tuple(argnames or ())
    return chosen.positions, (*known, *(name for name in given if name not in known))


def __getattr__(name: str) -> Any:
    return getattr(_public, name)
