"""The arguments of a function under jit that are chosen by position or name: static, or donated."""

from __future__ import annotations

import operator
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from maxjax._base import pytree
from maxjax._base.canonical_specs import canonical
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.signatures import positional_names, signature_of


class Static(NamedTuple):
    """The static arguments of a call, as a part of the key of its trace.

    Attributes:
      num_positional: how many positional arguments there are, static ones included.
      values: (position or name, class, value) of each static one.
    """

    num_positional: int
    values: tuple[tuple[int | str, type, Any], ...]


class Selection(NamedTuple):
    """Arguments by position, which may count from the end, and by name."""

    positions: tuple[int, ...]
    names: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.positions or self.names)

    def among(self, count: int) -> set[int]:
        """The positions, given the number of positional arguments."""
        return {n if n >= 0 else n + count for n in self.positions}

    def leaves(self, tree: PyTreeSpec, static: Static | None) -> tuple[int, ...]:
        """The numbers of the selected leaves of ``tree``, that of the dynamic arguments."""
        # From the structure alone: classes of the user's may take nothing but arrays.
        args, kwargs = canonical(tree).children()
        positions = self.among(args.num_children if static is None else static.num_positional)
        selected = [*(position in positions for position in dynamic_positions(tree, static)),
                    *(name in self.names for name in kwargs.entries())]
        chosen: list[int] = []
        start = 0
        for value, flag in zip([*args.children(), *kwargs.children()], selected, strict=True):
            if flag:
                chosen.extend(range(start, start + value.num_leaves))
            start += value.num_leaves
        return tuple(chosen)


def split(selection: Selection, args: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> tuple[
        list[Any], Any, Static]:
    """Leaves and tree of the dynamic arguments, and the static ones.

    Raises:
      ValueError: a static one is not hashable.
    """
    static: list[tuple[int | str, type, Any]] = []
    positions = selection.among(len(args))
    dynamic_args = []
    for position, value in enumerate(args):
        if position in positions:
            static.append((position, type(value), _hashable(value)))
        else:
            dynamic_args.append(value)
    dynamic_kwargs = {}
    for name, value in kwargs.items():
        if name in selection.names:
            static.append((name, type(value), _hashable(value)))
        else:
            dynamic_kwargs[name] = value
    static.sort(key=lambda item: str(item[0]))
    leaves, tree = pytree.flatten((tuple(dynamic_args), dynamic_kwargs))
    return leaves, tree, Static(len(args), tuple(static))


def check_hashable(*values: object) -> None:
    """Raises ValueError for the first value that cannot be hashed."""
    for value in values:
        _hashable(value)


def _hashable(value: object) -> Any:
    try:
        hash(value)
    except TypeError as error:
        raise ValueError(
            "Non-hashable static arguments are not supported. An error occurred while trying to "
            f"hash an object of type {type(value)}, {value}. The error was:\nTypeError: {error}\n"
        ) from None
    return value


def _from_the_user(error: Exception) -> str:
    """The error's traceback from the user's own method on."""
    first = None if error.__traceback__ is None else error.__traceback__.tb_next
    return "".join(traceback.format_exception(type(error), error, first, chain=False))


def check_comparable(static: Static | None, others: Iterable[Static | None]) -> None:
    """Raises ValueError where static arguments cannot be compared with those of an earlier call."""
    for other in others:
        if static is None or other is None or len(static.values) != len(other.values):
            continue
        for (_, kind, value), (_, other_kind, other_value) in zip(
                static.values, other.values, strict=True):
            try:
                _ = kind is other_kind and bool(value == other_value)
            except Exception as error:      # whatever the user's class raises
                raise ValueError(
                    "static arguments should be comparable using __eq__.The following error was "
                    f"raised when comparing two objects of types {kind} and {other_kind}. The "
                    f"error was:\n{_from_the_user(error)}") from None


def dynamic_positions(tree: PyTreeSpec, static: Static | None) -> list[int]:
    """The original positions of the positional arguments in ``tree``, of ``(args, kwargs)``."""
    if static is None:
        return list(range(canonical(tree).children()[0].num_children))
    fixed = {position for position, _, _ in static.values}
    return [position for position in range(static.num_positional) if position not in fixed]


def merge(args: tuple[PyTree, ...], kwargs: dict[str, PyTree], static: Static | None) -> tuple[
        tuple[Any, ...], dict[str, Any]]:
    """The arguments with the static ones back at their places."""
    if static is None:
        return args, kwargs
    kwargs = dict(kwargs)
    fixed: dict[int, Any] = {}
    for place, _, value in static.values:
        if isinstance(place, int):
            fixed[place] = value
        else:
            kwargs[place] = value
    given = iter(args)
    return tuple([fixed[position] if position in fixed else next(given)
                  for position in range(static.num_positional)]), kwargs


# --- what the user names --------------------------------------------------------------------------


def select(function: Callable[..., PyTree], argnums: int | Sequence[int] | None,
           argnames: str | Iterable[str] | None, kind: str) -> Selection:
    """The selection by ``{kind}_argnums`` and ``{kind}_argnames``: where only the numbers are given
    their names are chosen too, and the other way round.

    Raises:
      ValueError: the function does not take such arguments.
    """
    numbers = tuple(map(operator.index, _as_tuple(argnums, int)))
    names = _as_tuple(argnames, str)
    signature = signature_of(function)
    if signature is None:
        if names:
            raise ValueError(f"Getting the signature of function {function} failed. Pass "
                             f"{kind}_argnums instead of {kind}_argnames.")
        return Selection(numbers, frozenset(names))
    parameters = list(signature.parameters.values())
    positional = positional_names(signature)
    by_name = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    refused = {p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL)}
    if refused & set(names):
        raise ValueError(
            f"Jitted function has invalid argnames {refused & set(names)} in {kind}_argnames. "
            "These are positional-only")
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    takes_more = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    unknown = {name for name in names if name not in by_name}
    if unknown and not takes_any:
        raise ValueError(
            f"Jitted function has invalid argnames {unknown} in {kind}_argnames. Function does not "
            "take these args.")
    outside = [n for n in numbers if not -len(positional) <= n < len(positional)]
    if outside and not takes_more:
        raise ValueError(
            f"Jitted function has {kind}_argnums={numbers}, but only accepts {len(positional)} "
            "positional arguments.")
    all_numbers, all_names = list(numbers), list(names)
    if argnames is None:
        all_names.extend(positional[n] for n in numbers
                         if -len(positional) <= n < len(positional) and positional[n] in by_name)
    if argnums is None:
        all_numbers.extend(positional.index(name) for name in names if name in positional)
    return Selection(tuple(all_numbers), frozenset(all_names))


def _as_tuple(value: Any, kind: type) -> tuple[Any, ...]:
    if value is None:
        return ()
    if isinstance(value, kind) or (kind is int and isinstance(value, str)):
        return (value,)
    return tuple(value)
