"""Checks that the docstrings of the most used functions say all that a reference has to.

    python -m tools.check_reference

The functions are those that come first in `compat/use.txt`, where names stand by how much they are
used. Each says what its parameters are (`Args:`), what it returns with shape and dtype
(`Returns:`), and which names belong beside it (`See also:`). No public name points to one that
does not exist.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

from compat import surface
from tools import reference

MOST_USED = 420
# Modules of programs that use arrays, without those of other libraries' authors.
MODULES = (
    "jax", "jax.numpy", "jax.numpy.linalg", "jax.numpy.fft", "jax.lax", "jax.lax.linalg", "jax.nn",
    "jax.nn.initializers", "jax.random", "jax.tree", "jax.tree_util", "jax.flatten_util", "jax.ops",
    "jax.image", "jax.dtypes", "jax.debug", "jax.sharding", "jax.ad_checkpoint", "jax.test_util",
    "jax.distributed", "jax.scipy.special", "jax.scipy.linalg", "jax.scipy.stats.norm",
)
_UNNAMED = ("self", "cls")


def names() -> Iterator[str]:
    """The most used functions: classes, dtypes and options describe themselves otherwise."""
    found = 0
    for name in surface.names():
        if surface.module_of(name) in MODULES and _is_function(name):
            yield name
            found += 1
            if found == MOST_USED:
                return


def _is_function(name: str) -> bool:
    try:
        value = reference.found(name)
    except AttributeError:
        return False
    kind = type(value).__name__
    return callable(value) and not inspect.isclass(value) and bool(reference.docstring(value)) and (
        kind not in ("_ScalarType", "Option", "_AnyPrimitive"))


def problems(name: str, value: Any) -> Iterator[str]:
    text = reference.docstring(value)
    sections = set(re.findall(r"^(Args|Returns|Raises):$", text, re.MULTILINE))
    missing = set(parameters(value)) - described(text)
    if missing:
        yield f"{name}: Args: nothing about {', '.join(sorted(missing))}"
    if "Returns" not in sections:
        yield f"{name}: no Returns:"
    if not reference.see_also(text):
        yield f"{name}: no See also:"
    yield from lost(name, value)


def lost(name: str, value: Any) -> Iterator[str]:
    """The names that a docstring points to and that do not exist."""
    for other in reference.see_also(reference.docstring(value)):
        if reference.resolved(other, surface.module_of(name)) is None:
            yield f"{name}: See also: there is no {other}"


def all_lost() -> Iterator[str]:
    """Those of all public names."""
    for name in surface.names():
        try:
            yield from lost(name, reference.found(name))
        except AttributeError:      # what maxjax does not have, and what only indexing reaches
            continue


def parameters(value: Any) -> list[str]:
    """The parameters that one passes; none where there is no signature."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return []
    if getattr(value, "nin", None) is not None:     # a ufunc, whose operands have no names
        return []
    return [name for name in signature.parameters
            if not name.startswith("_") and name not in _UNNAMED]


def described(text: str) -> set[str]:
    """The parameters in the section `Args:` of a docstring."""
    section = re.search(r"^Args:\n((?:  .*\n|\n(?=  ))*)", text + "\n", re.MULTILINE)
    lines = re.sub(r"\n {3,}", " ", section[1]) if section else ""
    entries = re.findall(r"^  ([\w*][\w*, ]*):", lines, re.MULTILINE)
    return {part.strip(" *") for entry in entries for part in entry.split(",")}


def main() -> None:
    found = [problem for name in names() for problem in problems(name, reference.found(name))]
    if found := [*found, *(problem for problem in all_lost() if problem not in found)]:
        raise SystemExit("\n".join(found))


if __name__ == "__main__":
    main()
