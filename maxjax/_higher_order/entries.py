"""The traces of functions under jit, by signature."""

from __future__ import annotations

import operator
import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from maxjax._base import dtypes, pytree, source
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.shardings import Sharding
from maxjax._higher_order.dynamic import MAX_SIZES, Variant
from maxjax._higher_order.jit_sharded import Shardings, check_devices
from maxjax._higher_order.repeats import Repeats
from maxjax._higher_order.shape_struct import shape_structs
from maxjax._ir.jaxpr import ClosedJaxpr, derived
from maxjax._ir.liveness import read_inputs
from maxjax._ir.runtime import Call, installed
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Value

# The most traces that touch array references: each keeps its references alive.
MAX_REF_ENTRIES = 32


class Trace(NamedTuple):
    """What tracing a function gives.

    Attributes:
      closed: the jaxpr. The new values of array references follow the function's own results.
      out_tree: the structure of the results.
      captured: tracers of outer functions, which are the first operands.
    """

    closed: ClosedJaxpr
    out_tree: PyTreeSpec
    captured: Sequence[Value] = ()


class Entry:
    """The trace of one signature of a jitted function, and all that is decided of its calls.

    Attributes:
      closed, out_tree, captured: those of the trace.
      call: how the runtime calls it.
      asked: the shardings of the function's own results (None: any); None: nothing is asked for.
      layouts: the layouts of those, None for any; None: nothing is asked for.
      touches_refs: its arguments, or what it closes over, are array references.
      finish: makes the function's result of the program's results.
    """

    __slots__ = ("_unusable", "asked", "call", "captured", "closed", "finish", "layouts",
                 "out_tree", "touches_refs")

    def __init__(self, trace: Trace, donated: tuple[int, ...], keep_unused: bool,
                 touches_refs: bool, shardings: Shardings | None):
        """
        Raises:
          ValueError: what is asked for does not fit the results.
        """
        self.closed, self.out_tree, self.captured = trace
        if keep_unused:
            self.closed = _reading_all(self.closed)
        closed, count = self.closed, self.out_tree.num_leaves
        self.touches_refs = touches_refs
        self.asked = self.layouts = None
        if shardings is not None:
            own = closed.out_avals[:count]
            self.asked = shardings.of_results(own, self.out_tree)
            self.layouts = shardings.layouts_of_results(own, self.out_tree)
        # The types of donated operands whose memory no result can take.
        used, self._unusable = usable_donations(
            trace.closed, donated, keep_unused) if donated else ((), [])
        self.call = Call(closed, used, None if self.asked is None else (
            *self.asked, *[None] * (len(closed.out_avals) - count)))
        self.finish = self._finish()

    def run(self, operands: Sequence[Value]) -> Any:
        """The function's result, outside of transformations, for operands of its types."""
        return self.finish(installed.runtime.call(self.call, operands))

    def _finish(self) -> Callable[[Sequence[Any]], Any]:
        tree = self.out_tree
        if self.layouts is not None or any(
                aval.dtype == dtypes.float0 for aval in self.closed.out_avals):
            return lambda results: tree.unflatten(self._converted(results))
        if tree.is_leaf():
            return operator.itemgetter(0)
        if tree.type is tuple and all(child.is_leaf() for child in tree.children()):
            return tuple
        return tree.unflatten

    def _converted(self, results: Sequence[Array]) -> list[Any]:
        """Results in the layouts asked for, which are only checked within programs; those of
        float0, which hold nothing, are NumPy's arrays outside of jit."""
        layouts = self.layouts or [None] * len(results)
        return [np.zeros(x.shape, dtypes.float0) if x.dtype == dtypes.float0 else
                x if layout is None else installed.runtime.lay_out(x, layout)
                for x, layout in zip(results, layouts, strict=True)]

    def result_structs(self, shardings: Sequence[Sharding | None] | None = None) -> Any:
        """The shapes and dtypes of the results, as a pytree, and the shardings asked for."""
        structs = shape_structs(self.closed.out_avals[:self.out_tree.num_leaves])
        if shardings is not None:
            structs = [struct if sharding is None else struct.update(sharding=sharding)
                       for struct, sharding in zip(structs, shardings, strict=True)]
        return pytree.unflatten(self.out_tree, structs)

    def check_use(self) -> None:
        """Warns once, before it runs or is lowered, of donated memory that no result can take.

        Raises:
          ValueError: results are to be on different devices.
        """
        check_devices(self.asked or ())
        unusable, self._unusable = self._unusable, []
        if unusable:
            shown = ", ".join(aval.str_short() for aval in unusable)
            source.warn(
                f"Some donated buffers were not usable: {shown}.\nSee an explanation at "
                "https://docs.jax.dev/en/latest/201/jit.html#jax-201-buffer-donation.")


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
_traces: weakref.WeakKeyDictionary[Any, dict[Any, Trace]] = weakref.WeakKeyDictionary()
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
      repeats: those that have been called, once more.
    """

    __slots__ = ("__weakref__", "_by_place", "_function", "_variants", "by_signature", "repeats")

    def __init__(self, function: Callable[..., PyTree],
                 variants: dict[Hashable, list[Variant]] | None, by_place: bool):
        """Args:
          variants: the traces at dynamic sizes, which go with the entries; None where there are no
            such sizes.
          by_place: whether a call also depends on where its arguments have been put.
        """
        self._function = function
        self._variants = variants
        self._by_place = by_place
        self.by_signature: dict[Any, Entry] = {}
        self.repeats: Repeats[Entry] = Repeats(by_place)
        _caches.add(self)

    def __reduce__(self) -> Any:
        # Traces are not pickled: the process that reads the function makes its own.
        return EntryCache, (self._function, None if self._variants is None else {}, self._by_place)

    def __len__(self) -> int:
        return len(self.by_signature)

    def values(self) -> Iterable[Entry]:
        return self.by_signature.values()

    @property
    def traces(self) -> dict[Any, Trace]:
        """The traces of the function, by signature."""
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
            self.repeats.clear()

    def clear(self) -> None:
        """Forgets the function's traces, too."""
        self.traces.clear()
        self.by_signature.clear()
        self.repeats.clear()
        if self._variants is not None:
            self._variants.clear()


def forget_traces() -> None:
    """Makes all functions trace again."""
    _traces.clear()
    for cache in list(_caches):
        cache.clear()
