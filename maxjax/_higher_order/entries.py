"""The traces of functions under jit, by signature."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes, pytree, source
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.shardings import Sharding
from maxjax._higher_order.dynamic import MAX_SIZES, Variant
from maxjax._higher_order.shape_struct import shape_structs
from maxjax._ir.jaxpr import ClosedJaxpr, derived
from maxjax._ir.liveness import read_inputs
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Value

# The most traces that touch array references: each keeps its references alive.
MAX_REF_ENTRIES = 32


class Entry:
    """The trace of one signature of a jitted function, and how it is called."""

    __slots__ = ("captured", "closed", "donated", "gives_float0", "is_leaf", "out_tree",
                 "touches_refs", "traced", "unusable")

    def __init__(self, closed: ClosedJaxpr, out_tree: PyTreeSpec, captured: list[Value],
                 donated: tuple[int, ...], keep_unused: bool, touches_refs: bool):
        self.traced = closed
        self.closed = _reading_all(closed) if keep_unused else closed
        self.out_tree = out_tree
        self.is_leaf = out_tree.is_leaf()
        self.captured = captured      # tracers of outer functions: the first operands
        self.gives_float0 = any(aval.dtype == dtypes.float0 for aval in closed.out_avals)
        self.touches_refs = touches_refs      # its arguments, or what it closes over
        # The donated leaves, and the types of those whose memory no result can take.
        self.donated, self.unusable = usable_donations(
            closed, donated, keep_unused) if donated else ((), [])

    def result_structs(self, shardings: Sequence[Sharding | None] | None = None) -> Any:
        """The shapes and dtypes of the results, as a pytree, and the shardings asked for."""
        # The new values of array references follow the function's own results.
        structs = shape_structs(self.closed.out_avals[:self.out_tree.num_leaves])
        if shardings is not None:
            structs = [struct if sharding is None else struct.update(sharding=sharding)
                       for struct, sharding in zip(structs, shardings, strict=True)]
        return pytree.unflatten(self.out_tree, structs)

    def warn_of_donations(self) -> None:
        """Warns once of donated memory that no result can take."""
        unusable, self.unusable = self.unusable, []
        if unusable:
            shown = ", ".join(aval.str_short() for aval in unusable)
            source.warn(
                f"Some donated buffers were not usable: {shown}.\nSee an explanation at "
                "https://docs.jax.dev/en/latest/201/jit.html#jax-201-buffer-donation.")


def float0_as_numpy(results: Sequence[Array]) -> list[Any]:
    """Results where those of float0, which hold nothing, are NumPy's arrays as outside of jit."""
    return [np.zeros(x.shape, dtypes.float0) if x.dtype == dtypes.float0 else x for x in results]


@derived
def _reading_all(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A copy of a program that runs where any of its operands is, whether it reads it or not."""
    return closed.with_facts(closed.facts._replace(keeps_inputs=True))


def usable_donations(closed: ClosedJaxpr, donated: Sequence[int], keep_unused: bool) -> tuple[
        tuple[int, ...], list[ShapedArray]]:
    """The donated inputs whose memory a result of as many bytes can take; the types of the others.

    Inputs that nothing reads are no part of the program, unless they are to be kept.
    """
    read = read_inputs(closed)
    room = Counter(aval.nbytes for aval in closed.out_avals)
    taken, unusable = [], []
    for position in donated:
        aval = closed.invars[position].aval
        if not read[position] and not keep_unused:
            continue
        if room[aval.nbytes]:
            room[aval.nbytes] -= 1
            taken.append(position)
        else:
            unusable.append(aval)
    return tuple(taken), unusable

# Traces by function: one that is jitted again is not traced again. A trace lives as long as its
# function, which is held weakly.
_traces: weakref.WeakKeyDictionary[Any, dict[Any, tuple[ClosedJaxpr, Any]]] = (
    weakref.WeakKeyDictionary())
_caches: weakref.WeakSet[EntryCache] = weakref.WeakSet()


class EntryCache:
    """The entries of one function under jit.

    An entry of arrays lives as long as the function under jit, its trace as long as the function
    itself. There are at most ``MAX_REF_ENTRIES`` entries that touch array references, and at most
    ``MAX_SIZES`` of dynamic sizes: the oldest goes first. An entry that captures tracers of outer
    functions is not cached: the tracers will be others next time.

    Attributes:
      by_signature: the entries, by (tree, types, static arguments, options) and what else
        distinguishes signatures.
      by_types: those of calls with arrays or numbers alone, by what the runtime says that
        determines their types, and by options, once more.
    """

    __slots__ = ("__weakref__", "_function", "_variants", "by_signature", "by_types")

    def __init__(self, function: Callable[..., PyTree],
                 variants: dict[Hashable, list[Variant]] | None):
        """Args:
          variants: the traces at dynamic sizes, which go with the entries; None where there are no
            such sizes.
        """
        self._function = function
        self._variants = variants
        self.by_signature: dict[Any, Entry] = {}
        self.by_types: dict[Any, Entry] = {}
        _caches.add(self)

    def __reduce__(self) -> Any:
        # Of a pickled function the process that reads it makes traces of its own.
        return EntryCache, (self._function, None if self._variants is None else {})

    def __len__(self) -> int:
        return len(self.by_signature)

    def values(self) -> Iterable[Entry]:
        return self.by_signature.values()

    @property
    def traces(self) -> dict[Any, tuple[ClosedJaxpr, Any]]:
        """The traces of the function, and the structures of their results, by signature."""
        try:
            return _traces.setdefault(self._function, {})
        except TypeError:      # unhashable, or it cannot be referred to weakly
            return {}

    def keep(self, key: Hashable, entry: Entry) -> None:
        """Keeps a new entry for its signature."""
        if entry.captured:
            return
        if entry.touches_refs:
            self._make_room(MAX_REF_ENTRIES, True)
        elif self._variants is not None:
            self._make_room(MAX_SIZES, False)
        self.by_signature[key] = entry

    def _make_room(self, most: int, touches_refs: bool) -> None:
        kept = [key for key, entry in self.by_signature.items()
                if entry.touches_refs == touches_refs]
        for key in kept[:max(len(kept) + 1 - most, 0)]:
            del self.by_signature[key]
            self.by_types.clear()

    def clear(self) -> None:
        """Forgets the function's traces, too."""
        self.traces.clear()
        self.by_signature.clear()
        self.by_types.clear()
        if self._variants is not None:
            self._variants.clear()


def forget_traces() -> None:
    """Makes all functions trace again."""
    _traces.clear()
    for cache in list(_caches):
        cache.clear()
