"""The signatures of Python functions, and what messages call their arguments."""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

from maxjax._base import pytree
from maxjax._base.pytree import PyTreeSpec

# Held weakly: a function takes what it closes over with it.
_signatures: weakref.WeakKeyDictionary[Any, inspect.Signature | None] = (
    weakref.WeakKeyDictionary())


# What a function's own attributes must be.
_KINDS = {"__name__": str, "__qualname__": str, "__annotations__": dict}


def signature_of(function: Callable[..., object]) -> inspect.Signature | None:
    """The signature of a function; None if it has none that is known."""
    try:
        return _signatures[function]
    except (KeyError, TypeError):      # new, or unhashable
        pass
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        signature = None
    try:
        _signatures[function] = signature
    except TypeError:
        pass
    return signature


def wraps(function: Callable[..., object], names: Sequence[str] = functools.WRAPPER_ASSIGNMENTS
          ) -> Callable[..., Any]:
    """``functools.wraps`` with those of the names that the callable has.

    What a function cannot have is left out: a name that is no text, annotations that are no
    dictionary, as those of objects whose class computes them. A partial is called as its function
    is.
    """
    if _is_bare_partial(function):
        return wraps(function.func, names)
    kept = [name for name in names if hasattr(function, name)
            and isinstance(getattr(function, name), _KINDS.get(name, object))]
    named = functools.wraps(function, assigned=kept)
    if "__name__" not in names or getattr(function, "__name__", None) is not None:
        return named

    def decorate(wrapper: Any) -> Any:
        wrapper = named(wrapper)
        wrapper.__name__ = wrapper.__qualname__ = UNNAMED
        return wrapper

    return decorate


UNNAMED = "<unnamed function>"


def _is_bare_partial(function: Callable[..., object]) -> TypeGuard[functools.partial[Any]]:
    return isinstance(function, functools.partial) and not hasattr(function, "__name__")


def fun_name(function: Callable[..., object]) -> str:
    """The function's name; that of a partial which has none is its function's.

    >>> fun_name(functools.partial(first_parameter))
    'first_parameter'
    """
    while _is_bare_partial(function):
        function = function.func
    name = getattr(function, "__name__", UNNAMED)
    return name if isinstance(name, str) else UNNAMED


def parameter_names(function: Callable[..., object]) -> list[str]:
    """The names of all parameters; none if they are not known."""
    signature = signature_of(function)
    return [] if signature is None else list(signature.parameters)


def first_parameter(function: Callable[..., object]) -> str:
    """The name of the first parameter; empty if it is not known."""
    return next(iter(parameter_names(function)), "")


def positional_names(signature: inspect.Signature) -> list[str]:
    """The names of the parameters that may be given by position."""
    return [p.name for p in signature.parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def argument_names(function: Callable[..., object], tree: PyTreeSpec,
                   positions: Sequence[int] | None = None) -> list[str]:
    """A name like ``params['w']`` for each leaf of ``(args, kwargs)``.

    Args:
      tree: the structure of ``(args, kwargs)``.
      positions: those of ``args`` among the function's parameters; all in order, if absent.
    """
    signature = signature_of(function)
    names = [] if signature is None else positional_names(signature)
    rest = next((p.name for p in signature.parameters.values()
                 if p.kind is p.VAR_POSITIONAL), None) if signature is not None else None

    def name_of(number: int) -> str:
        position = number if positions is None else positions[number]
        if position < len(names):
            return names[position]
        return f"args[{position}]" if rest is None else f"{rest}[{position - len(names)}]"

    return leaf_names(tree, name_of, lambda name: name)


def leaf_names(tree: PyTreeSpec, positional: Callable[[int], str],
               keyword: Callable[[str], str]) -> list[str]:
    """A name for each leaf of ``(args, kwargs)``: that of the argument, and the path in it.

    Args:
      tree: the structure of ``(args, kwargs)``.
      positional: names the argument at a position of ``args``.
      keyword: names the argument of a key of ``kwargs``.
    """
    with warnings.catch_warnings():     # a constructor's, which the user has not called
        warnings.simplefilter("ignore")
        args, kwargs = pytree.numbered(tree)
    named = [*((positional(number), value) for number, value in enumerate(args)),
             *((keyword(name), value) for name, value in kwargs.items())]
    # In the order of the leaves, which a constructor may have made something else of.
    return [name + pytree.path_string(path)
            for name, value in named for path in pytree.flatten_with_path(value)[0]]
