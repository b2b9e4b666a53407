"""Calls like one before: found by what has to be the same, without flattening pytrees.

The leaves of nested tuples, lists and dictionaries are read by a function that is generated for
their structure, and gives None where arguments have another:

    def read(args, kwargs):
        if len(args) != 2 or kwargs:
            return None
        v0, v1, = args
        if v0.__class__ is not dict or len(v0) != 2:
            return None
        v2, v3, = get0(v0)
        return (v2, v3, v1,), key
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from maxjax._base import config, pytree
from maxjax._base.canonical_specs import canonical
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._higher_order.static_arguments import Static
from maxjax._ir.runtime import installed

# With the key of the structure, and of the static arguments.
Read = Callable[[tuple[PyTree, ...], dict[str, PyTree]],
                tuple[tuple[Any, ...], tuple[object, ...]] | None]
T = TypeVar("T")
# The most structures of one function, and the most calls that are remembered.
MAX_STRUCTURES = 8
MAX_REPEATS = 4096
# After so many calls alike a reader is generated for their structure, which takes as long as to
# flatten it some fifty times; and for no longer ones.
_FEW = 8
_MOST_LEAVES = 4096


class Repeats(Generic[T]):
    """What runs calls, by the structure and types of their arguments.

    Args:
      by_place: it also depends on where arrays have been put.
    """

    __slots__ = ("_by_place", "_counts", "_has_flat", "_known", "_last", "_reads")

    def __init__(self, by_place: bool):
        self._by_place = by_place
        self.clear()

    def clear(self) -> None:
        # By types, options and the reader's key, which is None where there are no pytrees. The last
        # one is found without a hash.
        self._known: dict[Any, T] = {}
        self._last: tuple[Any, ...] = (None, None, None, None)
        self._has_flat = False      # whether some are without pytrees and static arguments
        self._reads: list[Read] = []
        # How often each has run something with pytrees; -1: no reader can read those.
        self._counts: dict[T, int] = {}

    def find(self, args: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> tuple[
            T, Sequence[Any]] | None:
        """What runs such a call, and its operands; None where there has been none like it."""
        runtime = installed.runtime
        types_of = runtime.placed_types if self._by_place else runtime.array_types
        if self._has_flat and not kwargs:
            types = types_of(args)
            if types is not None:
                state, last = config.trace_state(), self._last
                if last[1] is state and last[2] is None and last[0] == types:
                    return last[3], args
                known = self._look_up(types, state, None)
                if known is not None:
                    return known, args
        for read in self._reads:
            try:
                found = read(args, kwargs)
                if found is not None:
                    leaves, key = found
                    types = types_of(leaves)
                    if types is not None:
                        state, last = config.trace_state(), self._last
                        # The key is compared by hashes too: a static object's may have changed.
                        if (last[1] is state and len(key) == 1 and last[2] == key
                                and last[0] == types):
                            return last[3], leaves
                        known = self._look_up(types, state, key)
                        if known is not None:
                            return known, leaves
            except Exception:      # another structure, or what comparing the user's objects raises
                continue
        return None

    def _look_up(self, types: object, state: object, key: object) -> T | None:
        known = self._known.get((types, state, key))
        if known is not None:
            self._last = types, state, key, known
        return known

    def keep(self, args: tuple[PyTree, ...], kwargs: dict[str, PyTree], leaves: Sequence[object],
             tree: PyTreeSpec, static: Static | None, known: T) -> None:
        """Notes what has run a call with these leaves, in this order."""
        count = self._counts.get(known, 0)
        if count < 0:
            return
        is_flat = static is None and not kwargs and len(args) == len(leaves) and all(
            map(operator.is_, args, leaves))
        if not is_flat and count < _FEW:
            if len(self._counts) >= MAX_REPEATS:
                self.clear()
            self._counts[known] = count + 1
            return
        runtime = installed.runtime
        types = (runtime.placed_types if self._by_place else runtime.array_types)(leaves)
        if types is None:
            return
        if len(self._known) >= MAX_REPEATS:
            self.clear()
        if is_flat:
            self._known[types, config.trace_state(), None] = known
            self._has_flat = True
        elif not self._keep(types, args, kwargs, leaves, known):
            read = reader(tree, static) if len(self._reads) < MAX_STRUCTURES else None
            if read is not None:
                self._reads.append(read)
            if read is None or not self._keep(types, args, kwargs, leaves, known):
                self._counts[known] = -1

    def _keep(self, types: object, args: tuple[PyTree, ...], kwargs: dict[str, PyTree],
              leaves: Sequence[object], known: T) -> bool:
        """Notes a call under the key that its structure's reader gives; False: there is none."""
        for read in self._reads:
            try:
                found = read(args, kwargs)
            except Exception:      # as in `find`
                continue
            if found is not None and len(found[0]) == len(leaves) and all(
                    map(operator.is_, found[0], leaves)):
                self._known[types, config.trace_state(), found[1]] = known
                return True
        return False


def reader(tree: PyTreeSpec, static: Static | None) -> Read | None:
    """Reads the leaves of arguments of one structure; None if it has other nodes than tuples, named
    ones among them, lists, dictionaries and None.

    Args:
      tree: that of the arguments that are not static.
      static: the static ones.
    """
    if tree.num_leaves > _MOST_LEAVES:
        return None
    writer = _Writer()
    args, kwargs = canonical(tree).children()
    places = [] if static is None else [place for place, _, _ in static.values]
    count = args.num_children if static is None else static.num_positional
    named = [*kwargs.entries(), *(place for place in places if isinstance(place, str))]
    writer.lines.append(f"if len(args) != {count} or "
                        f"{f'len(kwargs) != {len(named)}' if named else 'kwargs'}: return None")
    positional = writer.new(count)
    writer.unpack(positional, "args")
    keywords = dict(zip(named, writer.new(len(named)), strict=True))
    writer.lines += [f"{variable} = kwargs[{name!r}]" for name, variable in keywords.items()]
    dynamic = [variable for n, variable in enumerate(positional) if n not in places]
    for variable, node in zip([*dynamic, *(keywords[name] for name in kwargs.entries())],
                              [*args.children(), *kwargs.children()], strict=True):
        if not writer.read(variable, node):
            return None
    fixed = [positional[place] if isinstance(place, int) else keywords[place] for place in places]
    key = "".join(f"{variable}.__class__, {variable}, " for variable in fixed)
    return writer.function(f"(key, {key})")


class _Writer:
    """The lines of a reader."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._leaves: list[str] = []
        self._names: dict[str, Any] = {"key": object()}
        self._count = 0

    def new(self, count: int) -> list[str]:
        """Fresh variables."""
        self._count += count
        return [f"v{number}" for number in range(self._count - count, self._count)]

    def unpack(self, variables: Sequence[str], source: str) -> None:
        if variables:
            self.lines.append(f"{', '.join(variables)}, = {source}")

    def read(self, variable: str, node: PyTreeSpec) -> bool:
        """Reads the leaves of a node that a variable holds; False if it is of another kind."""
        if node.is_leaf():
            self._leaves.append(variable)
            return True
        if node.type is type(None):
            self.lines.append(f"if {variable} is not None: return None")
            return True
        is_named = pytree.is_named_tuple(node)
        if not is_named and node.type not in (tuple, list, dict):
            return False
        kind = f"kind{len(self._names)}"
        self._names[kind] = node.type
        children = node.children()
        self.lines.append(f"if {variable}.__class__ is not {kind} or "
                          f"len({variable}) != {len(children)}: return None")
        variables = self.new(len(children))
        if node.type is dict:
            get = f"get{len(self._names)}"
            entries = node.entries()
            if len(entries) > 1:
                self._names[get] = operator.itemgetter(*entries)
                variable = f"{get}({variable})"
            elif entries:
                self._names[get] = entries[0]
                variable = f"({variable}[{get}],)"
        self.unpack(variables, variable)
        return all(map(self.read, variables, children))

    def function(self, key: str) -> Read:
        source = "\n    ".join(["def read(args, kwargs):", *self.lines,
                                f"return ({''.join(f'{x}, ' for x in self._leaves)}), {key}"])
        exec(compile(source, "<a reader of arguments>", "exec"), self._names)
        return self._names["read"]
