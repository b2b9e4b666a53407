"""The value of checkify's errors: a pytree of arrays, and the primitive that raises one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import pytree, threads
from maxjax._higher_order.calls import only_shown
from maxjax._ir.effects import Effect
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Effectful, Host, Outside, Printed
from maxjax._ir.trace import aval_of
from maxjax._ir.types import ShapedArray
from maxjax._primitives.rules import replicated_factors
from maxjax._transforms.batching import to_axis
from maxjax.experimental._checkify_errors import (
    BatchedError,
    ErrorCategory,
    JaxException,
    JaxRuntimeError,
)


class Kind(NamedTuple):
    """The key of checks that share a slot in an error: category and types of values."""

    category: ErrorCategory
    types: tuple[ShapedArray, ...]


class Cause:
    """A check in the program: how its values are turned into an exception."""

    __slots__ = ("build",)

    def __init__(self, build: Callable[[Sequence[Any]], JaxException]):
        self.build = build


class Place(NamedTuple):
    """The first failure of a kind: whether it occurred, the code of its cause, its values."""

    failed: Any
    code: Any
    values: list[Any]


Structure = tuple[tuple[Kind, ...], tuple[tuple[int, Cause], ...]]


class Error:
    """The failed checks; a pytree, so that it may be a result of ``jit`` or ``vmap``."""

    __slots__ = ("_causes", "_places")

    def __init__(self, places: dict[Kind, Place], causes: dict[int, Cause]):
        self._places = places
        self._causes = causes

    def get(self) -> str | None:
        """The message of the first check that failed; None if none did."""
        exception = self.get_exception()
        return None if exception is None else str(exception)

    def get_exception(self) -> JaxException | None:
        """The exception for the first check that failed; None if none did."""
        shapes = [np.shape(place.failed) for place in self._places.values()]
        if not any(shapes):
            return self._exception(())
        shape = np.broadcast_shapes(*shapes)
        found = ((index, self._spread(shape)._exception(index)) for index in np.ndindex(*shape))
        failed = {index: exception for index, exception in found if exception is not None}
        return BatchedError(failed) if failed else None

    def throw(self) -> None:
        """Raises JaxRuntimeError if a check failed; ``checkify`` handles it like ``check``."""
        report(self)

    def __repr__(self) -> str:
        return f"Error({self.get()})"

    def _exception(self, index: tuple[int, ...]) -> JaxException | None:
        """The exception of the first cause in program order, for one element of a batch."""
        failed = [(int(np.asarray(place.code)[index]), place) for place in self._places.values()
                  if np.asarray(place.failed)[index]]
        if not failed:
            return None
        code, place = min(failed, key=lambda pair: pair[0])
        return self._causes[code].build([x[index] if index else x for x in place.values])

    def _spread(self, shape: tuple[int, ...]) -> Error:
        """The checks as those of a batch: each failed in all of its elements, or in none."""
        def spread(kind: Kind, place: Place) -> Place:
            rank = np.ndim(place.failed)
            if rank == len(shape):
                return place
            failed, code = (jnp.broadcast_to(x, shape) for x in (place.failed, place.code))
            return Place(failed, code, [
                jnp.broadcast_to(x, (*shape, *aval.shape))
                for x, aval in zip(place.values, kind.types, strict=True)])

        return Error({kind: spread(kind, place) for kind, place in self._places.items()},
                     self._causes)

    # --- as flat values ---
    def leaves(self) -> list[Any]:
        return [x for place in self._places.values()
                for x in (place.failed, place.code, *place.values)]

    def structure(self) -> Structure:
        return tuple(self._places), tuple(self._causes.items())

    @staticmethod
    def of(structure: Structure, leaves: Iterable[Any]) -> Error:
        kinds, causes = structure
        given = iter(leaves)
        return Error({kind: Place(next(given), next(given), [next(given) for _ in kind.types])
                      for kind in kinds}, dict(causes))

    # --- with more in it ---
    def adding(self, kind: Kind, place: Place, causes: dict[int, Cause]) -> Error:
        """Adds a check; an earlier failure remains."""
        known = self._places.get(kind)
        if known is not None:
            def chosen(before: Any, now: Any) -> Any:
                failed = known.failed
                rank = max(np.ndim(before), np.ndim(now))
                return jnp.where(jnp.reshape(failed, (*np.shape(failed), *[1] * (
                    rank - np.ndim(failed)))), before, now)

            place = Place(known.failed | place.failed, chosen(known.code, place.code),
                          list(map(chosen, known.values, place.values)))
        return Error({**self._places, kind: place}, {**self._causes, **causes})

    def with_kinds(self, kinds: Iterable[Kind]) -> Error:
        """Adds slots for these kinds, without failures."""
        places = dict(self._places)
        for kind in kinds:
            if kind not in places:
                places[kind] = Place(jnp.zeros((), bool), jnp.full((), -1, np.int32), [
                    jnp.ones(aval.shape, aval.dtype) for aval in kind.types])
        return Error(places, self._causes)

    def renumbered(self) -> Error:
        """A copy of the checks with later codes than all others, as it is here that they run."""
        if not self._causes:
            return self
        first, last = min(self._causes), max(self._causes)
        later = _codes.reserve(last - first + 1) - first
        return Error({kind: place._replace(code=place.code + np.int32(later))
                      for kind, place in self._places.items()},
                     {code + later: cause for code, cause in self._causes.items()})

    def with_causes(self, structure: Structure) -> Error:
        return Error(self._places, {**self._causes, **dict(structure[1])})


pytree.register(Error, lambda error: (tuple(error.leaves()), error.structure()), Error.of)

init_error = Error({}, {})


class _Codes:
    """Numbers checks in the order in which they are traced, which is the program's."""

    def __init__(self) -> None:
        self._next = 1
        self._lock = threads.lock()

    def reserve(self, count: int = 1) -> int:
        """The first of this many numbers in a row."""
        with self._lock:
            first = self._next
            self._next += count
        return first


_codes = _Codes()


def failing(error: Error, failed: Any, category: ErrorCategory, values: Sequence[Any],
             build: Callable[[Sequence[Any]], JaxException]) -> Error:
    """``error`` with a check added that fails where ``failed`` is true."""
    code = _codes.reserve()
    # The same type in all loops and branches: never weak.
    values = [lax.convert_element_type(x, x.dtype) for x in map(jnp.asarray, values)]
    kind = Kind(category, tuple(aval_of(x) for x in values))
    place = Place(jnp.asarray(failed), jnp.full((), code, np.int32), values)
    return error.adding(kind, place, {code: Cause(build)})


class _CheckEffect(Effect):
    """Raises an error: only ``checkify`` can run it."""

    def check_runnable(self) -> None:
        raise ValueError(
            "Cannot abstractly evaluate a checkify.check which was not functionalized. This "
            "probably means you tried to stage (jit/scan/pmap/...) a `check` without "
            "functionalizing it through `checkify.checkify`.")


_check_effect = _CheckEffect("Check")


def _check_eager(operands: Sequence[Any], *, structure: Structure, debug: bool) -> list[Any]:
    exception = None if debug else Error.of(structure, operands).get_exception()
    if exception is not None:
        raise JaxRuntimeError(str(exception)) from exception
    return []


def _check_batch(size: int, operands: Sequence[Any], axes: Sequence[int | None], *,
                 structure: Structure, debug: bool) -> tuple[list[Any], list[Any]]:
    report(Error.of(structure, [
        to_axis(x, axis, 0, size) for x, axis in zip(operands, axes, strict=True)]), debug)
    return [], []


check_p = Primitive(
    "check",
    abstract=lambda *avals, **params: (),
    # Only debug checks get here, and they have no effect outside checkify.
    evaluate=lambda *values, **params: [],
    host=Host(reason="a check that nothing looks at"),
    outside=Outside(eager=_check_eager),
    effects=Effectful(
        # An error of no checks cannot be one.
        lambda structure, debug: frozenset({_check_effect} if structure[0] and not debug else ())),
    jvp=lambda primals, tangents, **params: (check_p.bind(*primals, **params), []),
    batch=_check_batch,
    factors=replicated_factors,
    multiple_results=True,
    cacheable=False,
    printed=Printed(only_shown("debug")),
)


def report(error: Error, debug: bool = False) -> None:
    if any(np.shape(place.failed) for place in error._places.values()):
        error = _last_of_batch(error)
    check_p.bind(*map(jnp.asarray, error.leaves()), structure=error.structure(), debug=debug)


def _last_of_batch(error: Error) -> Error:
    """For each kind, the last element of the batch that failed."""
    places = {}
    for kind, place in error._places.items():
        rank = len(np.shape(place.failed))
        failed = jnp.ravel(place.failed)
        index = failed.size - 1 - jnp.argmax(failed[::-1])
        places[kind] = Place(*pytree.map(
            lambda x, index=index, rank=rank: jnp.reshape(x, (-1, *x.shape[rank:]))[index],
            tuple(place)))
    return Error(places, error._causes)
