"""Where maxjax differs on purpose: the rows of known_differences.toml, linked to cases."""

from __future__ import annotations

import dataclasses
import fnmatch
import functools
import tomllib
from typing import Any

from compat import ROOT
from compat.spec import Case


@dataclasses.dataclass(frozen=True)
class Pattern:
    """Cases that are expected to differ, in these modes and tiers.

    Attributes:
      what: the row's title.
      name: of the public name; ``*`` stands for anything.
      case: a part of the case's title; ``*`` stands for anything.
      modes, tiers: separated by blanks; empty means all.
    """

    what: str
    name: str
    case: str = ""
    modes: str = ""
    tiers: str = ""

    def names(self, name: str) -> bool:
        return fnmatch.fnmatchcase(name, self.name.replace("[", "[[]"))

    def matches(self, case: Case, mode: str, tier: str) -> bool:
        return (self.names(case.name)
                and (not self.modes or mode in self.modes.split())
                and (not self.tiers or tier in self.tiers.split())
                and fnmatch.fnmatchcase(case.title, f"*{self.case.replace('[', '[[]')}*"))


@dataclasses.dataclass(frozen=True)
class Difference:
    what: str
    maxjax: str
    jax: str
    reason: str
    cases: tuple[Pattern, ...]


def parse(rows: list[dict[str, Any]]) -> list[Difference]:
    return [Difference(row["what"], row["maxjax"], row["jax"], row["reason"],
                       tuple(Pattern(row["what"], **fields) for fields in row.get("cases", [])))
            for row in rows]


@functools.cache
def differences() -> list[Difference]:
    with open(ROOT / "compat" / "known_differences.toml", "rb") as stream:
        return parse(tomllib.load(stream)["difference"])


def expected(case: Case, mode: str, tier: str) -> Pattern | None:
    """The pattern that expects a case to differ."""
    for row in differences():
        for pattern in row.cases:
            if pattern.matches(case, mode, tier):
                return pattern
    return None
