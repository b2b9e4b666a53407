"""Real JAX, imported whole and out of sight: ``import jax`` does not find it afterwards."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import sys
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import maxjax

# The tests' own helpers, which the tests are executed with.
HELPERS = ("jax._src.test_util", "jax._src.public_test_util",
           "jax._src.internal_test_util.lax_test_util",
           "jax._src.internal_test_util.test_harnesses", "jax.experimental.sparse.test_util")

# Private modules; below them are others.
PRIVATE = ("jax._src", "jax.experimental.sparse._lowerings")


def is_jax(name: str) -> bool:
    return name.partition(".")[0] == "jax"


def _public(part: str) -> bool:
    return not part.startswith("_")


def public_modules() -> list[str]:
    """maxjax's public modules as tails: "" for maxjax itself, "numpy.linalg"."""
    tails = [info.name.removeprefix("maxjax.")
             for info in pkgutil.walk_packages(maxjax.__path__, "maxjax.")]
    return ["", *(tail for tail in tails if all(map(_public, tail.split("."))))]


class Reference:
    """Real JAX's modules, kept outside of ``sys.modules``.

    Attributes:
      modules: all that are imported, by name.
      counterparts: by the identity of a public object of JAX's, maxjax's of that name.
    """

    def __init__(self) -> None:
        self.modules: dict[str, ModuleType] = {}
        self.counterparts: dict[int, Any] = {}
        self._kept: list[Any] = []      # an identity is one only as long as its object lives
        self._depth = 0
        with warnings.catch_warnings(), self.visible():
            warnings.simplefilter("ignore")
            importlib.import_module("jax")
            # The flags are maxjax's to define; JAX's helpers ask for them when they are imported.
            states: Any = importlib.import_module("jax._src.config")
            states.parse_flags_with_absl = states.config.parse_flags_with_absl = lambda: None
            # Modules that re-export others' names come last: what a name is called first counts.
            for tail in sorted(public_modules(), key=lambda tail: (
                    tail.startswith(("core", "extend", "interpreters")), tail.count("."), tail)):
                self._pair(tail)

    @property
    def is_visible(self) -> bool:
        return self._depth > 0

    @contextlib.contextmanager
    def visible(self) -> Iterator[None]:
        """Meanwhile ``jax`` in ``sys.modules`` is the real one."""
        hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if is_jax(name)}
        sys.modules.update(self.modules)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            for name in [name for name in sys.modules if is_jax(name)]:
                self.modules[name] = sys.modules.pop(name)
            sys.modules.update(hidden)

    def module(self, name: str) -> ModuleType:
        """The real module of that name.

        Raises:
          ImportError: there is none.
        """
        if name not in self.modules:
            with self.visible():
                importlib.import_module(name)
        return self.modules[name]

    def _pair(self, tail: str) -> None:
        """Notes which of maxjax's objects stand for the real ones of a public module."""
        dot = "." if tail else ""
        ours = importlib.import_module(f"maxjax{dot}{tail}")
        try:
            theirs = importlib.import_module(f"jax{dot}{tail}")
        except ImportError:
            return
        # `dir` does not list what a module gives with a warning, as deprecated.
        deprecated = getattr(theirs, "_deprecations", {})
        for name in filter(_public, [*dir(theirs), *deprecated]):
            with contextlib.suppress(AttributeError):
                self._pair_objects(getattr(theirs, name), getattr(ours, name))

    def _pair_objects(self, theirs: Any, ours: Any) -> None:
        home = str(getattr(theirs, "__module__", "")).partition(".")[0]
        if home in ("jax", "jaxlib") and not isinstance(theirs, (tuple, str, int)):
            self._kept.append(theirs)
            self.counterparts.setdefault(id(theirs), ours)
