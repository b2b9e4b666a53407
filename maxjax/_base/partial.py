"""Partial functions whose arguments are leaves of pytrees."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from maxjax._base import pytree
from maxjax._base.pytree import PyTree


class Partial(functools.partial):
    """``functools.partial`` whose arguments are leaves; the function is structure.

    Args:
      func: the function; functions that compare unequal make other structures, so that ``jit``
        traces anew.
      args, kw: its first arguments, pytrees.

    Returns:
      A function of the other arguments, which passes through ``jit``, ``vmap`` and ``scan``.

    See also: ``jax.tree_util.register_pytree_node``, ``jax.tree.leaves``, ``jax.vjp``.

    >>> jax.tree_util.tree_leaves(jax.tree_util.Partial(max, 1, key=2))
    [1, 2]
    """

    __module__ = "maxjax.tree_util"

    def __new__(cls, func: Callable[..., object], *args: PyTree, **kw: PyTree) -> Partial:
        # functools would unpack the arguments of a partial, and make leaves of them.
        if isinstance(func, functools.partial):
            func = _HashableCallableShim(func)
        return super().__new__(cls, func, *args, **kw)


class _HashableCallableShim:
    """A partial function that is compared, and hashed, as it itself."""

    def __init__(self, function: functools.partial):
        self.function = function

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> Any:
        return self.function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        # Not before there is a function: copying and unpickling look for methods first.
        if name == "function":
            raise AttributeError(name)
        return getattr(self.function, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _HashableCallableShim, (self.function,)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _HashableCallableShim):
            other = other.function
        return bool(self.function == other)

    def __hash__(self) -> int:
        return hash(self.function)

    def __repr__(self) -> str:
        return f"_HashableCallableShim({self.function!r})"


pytree.register(
    Partial, lambda partial: ((partial.args, partial.keywords), partial.func),
    lambda func, children: Partial(func, *children[0], **children[1]))
