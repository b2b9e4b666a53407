"""The site's search index: what is found first.

The theme's search looks for words that begin as the query does, and takes rare words for telling:
asked for 'sin' it would show `sinc` first. So each name of the reference gets a weight, which falls
with the number of names that it only extends, and grows with use.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from compat import surface

CHECK = Path(__file__).with_name("check_search.js")
# What an extension's rarer word may be worth, and the weights of names and of other sections.
FALL, NAMES, HEADINGS = 25.0, 1000.0, 0.02
MOST_USED = 200
_NUMPY = "jax.numpy."


def _depths(words: Iterable[str]) -> dict[str, int]:
    """How many of the words each one extends, one beyond the other, as `cosh` extends `cos`, and a
    method its class; those of one or two letters, which begin many others, are not counted."""
    depths: dict[str, int] = {}
    for word in sorted(set(words), key=len):
        shorter = [depths[word[:end]] for end in range(3, len(word)) if word[:end] in depths
                   and "." not in word[end + 1:]]
        depths[word] = 1 + max(shorter) if shorter else 0
    return depths


def weights(names: Iterable[str], use: Mapping[str, float]) -> dict[str, float]:
    """The weight of each dotted name.

    Args:
      use: how much names are used.
    """
    names = list(names)
    dotted = _depths(name.lower() for name in names)
    plain = _depths(name.rpartition(".")[2].lower() for name in names)
    found = {}
    for name in names:
        last = name.rpartition(".")[2].lower()
        # Among names with the same last word: the most used, then the one nearest to the top.
        often = 1 + math.log1p(use.get(name, 0.0)) / 2 - 0.02 * name.count(".")
        found[name] = NAMES * often / FALL ** max(plain[last], dotted[name.lower()])
    return found


def weigh(path: Path) -> None:
    """Writes the weights into an index, and what names are asked for by into their entries."""
    index = json.loads(path.read_text(encoding="utf-8"))
    in_reference = [entry for entry in index["docs"]
                    if entry["location"].startswith("reference/")]
    anchors = [entry["location"].partition("#")[2] for entry in in_reference]
    use = {name: found.weight for name, found in surface.names().items()}
    known = weights([anchor for anchor in anchors if "." in anchor], use)
    for entry, anchor in zip(in_reference, anchors, strict=True):
        entry["boost"] = known.get(anchor, NAMES if not anchor else HEADINGS)
        if anchor in known:
            # Words of a title count most: the name in each form that one types.
            last = anchor.rpartition(".")[2]
            forms = [last, f"jnp.{last}", anchor] if anchor.startswith(_NUMPY) else [last, anchor]
            entry["title"] = " \N{MIDDLE DOT} ".join(forms)
    path.write_text(json.dumps(index, separators=(",", ":")), encoding="utf-8")


def queries() -> list[tuple[str, str]]:
    """For each of the most used names: its dotted and its plain form, and the names that may be
    found first by it."""
    names = [name for name in surface.names() if "[" not in name]
    asked = []
    for name in names[:MOST_USED]:
        plain = name.rpartition(".")[2]
        asked += [(name, name), (plain, plain)]
        if name.startswith(_NUMPY):
            asked.append((f"jnp.{plain}", name))
    return asked


def check(site: Path) -> list[str]:
    """What the theme's search, run by Node, does not find first; nothing without Node."""
    node = shutil.which("node")
    if node is None:
        return []
    asked = queries()
    made = subprocess.run([node, str(CHECK), str(site)], input="\n".join(q for q, _ in asked),
                          text=True, capture_output=True, check=True)
    wrong = []
    for (query, wanted), place in zip(asked, made.stdout.splitlines(), strict=True):
        anchor = place.partition("#")[2] or place.removeprefix("reference/").removesuffix(".html")
        found = anchor if "." in query else anchor.rpartition(".")[2]
        if found.lower() != wanted.lower():      # the search does not tell capitals
            wrong.append(f"{query}: finds {place or 'nothing'}")
    return wrong
