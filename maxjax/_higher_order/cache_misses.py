"""``jax_explain_cache_misses``: why a function under jit is traced, in words."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from maxjax._base import config, pytree
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.source import current_line, unwrapped
from maxjax._higher_order.static_arguments import Static

logger = logging.getLogger("maxjax")

# Where the functions that an explanation has called new are defined.
_seen_lines: set[str] = set()


def explain(function: Callable[..., PyTree], key: tuple[Any, ...], known: Iterable[tuple[Any, ...]],
            names: Sequence[str]) -> None:
    """Logs why there is no trace of a function for a signature.

    Args:
      key: the types, the tree, the static arguments and the options' values, in this order.
      known: the keys that there are traces for.
      names: of the arguments' leaves.
    """
    lines = [f"TRACING CACHE MISS at {_place()}:"]
    plain = unwrapped(function)
    code = getattr(plain, "__code__", None)
    name = getattr(plain, "__name__", type(plain).__name__)
    where = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else "an unknown place"
    closest = min((list(_changes(key, other, names)) for other in known),
                  key=len, default=None)
    if closest is None:
        lines += ["  never seen function:", f"    {name} id={id(plain)} defined at {where}"]
        if where in _seen_lines:
            lines += ["  but seen another function defined on the same line; maybe the function is",
                      "  being re-defined repeatedly, preventing caching?"]
        _seen_lines.add(where)
    else:
        lines += [f"  for {name} defined at {where}",
                  "  all previously seen cache keys differ. For the closest previous key:",
                  *(f"  {line}" for line in closest)]
    logger.warning("%s", "\n".join(lines))


def _place() -> str:
    line = current_line()
    return "an unknown place" if line is None else line.with_column()


def _changes(key: tuple[Any, ...], other: tuple[Any, ...], names: Sequence[str]) -> Iterator[str]:
    types, tree, static, options = key[:4]
    other_types, other_tree, other_static, other_options = other[:4]
    if tree != other_tree:
        yield "different input pytree:"
        for path, now, before, why in tree_differences(tree, other_tree):
            yield f"* at {path}, now {now} and before {before}, so {why}"
    if static != other_static:
        yield "different static arguments:"
        yield f"* now {_static_text(static)} and before {_static_text(other_static)}"
    if tree == other_tree and types != other_types:
        yield "different input types:"
        for name, now, before in zip(names, types, other_types, strict=True):
            if now != before:
                yield f"* at {name}, {_type_change(now, before)}"
    changed = config.trace_state_changes(options, other_options)
    if changed or key[4:] != other[4:]:
        yield "Tracing context doesn't match, e.g. due to config or context manager."
        for name, now, before in changed:
            yield f"* {name} differs: now {now} and before {before}"


def _static_text(static: Static | None) -> str:
    if static is None or not static[1]:
        return "none"
    return ", ".join(f"{place}={value!r}" for place, _, value in static[1])


def _type_change(now: object, before: object) -> str:
    texts = [aval.str_short(True) if hasattr(aval, "str_short") else str(aval)
             for aval in (now, before)]
    if texts[0] != texts[1]:
        return f"now {texts[0]} and before {texts[1]}"
    weak = [f"{text}{{weak_type={getattr(aval, 'weak_type', False)}}}"
            for text, aval in zip(texts, (now, before), strict=True)]
    return (f"now {weak[0]} and before {weak[1]}, so weak types differ (see "
            "https://docs.jax.dev/en/latest/101/type_promotion.html#weak-types)")


# --- structures that differ -----------------------------------------------------------------------

def tree_differences(expected: PyTreeSpec, found: PyTreeSpec
                     ) -> Iterator[tuple[str, str, str, str]]:
    """Where two structures of ``(args, kwargs)`` differ: (path, one, the other, why)."""
    trees = [pytree.unflatten(spec, [0] * spec.num_leaves) for spec in (expected, found)]
    for name, one, two in zip(("args", "kwargs"), *trees, strict=True):
        yield from _differences(one, two, name)


def _differences(one: PyTree, two: PyTree, path: str) -> Iterator[tuple[str, str, str, str]]:
    first, second = pytree.one_level(one), pytree.one_level(two)
    if first is None and second is None:
        return
    if first is None or second is None or type(one) is not type(two):
        texts = ["pytree leaf" if node is None else f"{type(tree)}"
                 for node, tree in ((first, one), (second, two))]
        yield path, texts[0], texts[1], "their Python types differ"
        return
    count, other_count = len(first.children), len(second.children)
    kind = type(one)
    if count != other_count:
        if kind in (tuple, list):
            yield (path, f"{kind.__name__} of length {count}",
                   f"{kind.__name__} of length {other_count}", "the lengths do not match")
            return
        why = "the numbers of children do not match"
        if kind is dict:
            why += f", with the symmetric difference of key sets: {set(one) ^ set(two)}"
        yield path, f"{kind} with {count} child", f"{kind} with {other_count} child", why
        return
    if first.metadata != second.metadata:
        yield (path, f"{kind} with pytree metadata {first.metadata}",
               f"{kind} with pytree metadata {second.metadata}",
               "the pytree node metadata does not match")
        return
    for key, child, other in zip(first.keys, first.children, second.children, strict=True):
        yield from _differences(child, other, f"{path}{key}")
