"""Runs the Python blocks of a page in order: ``python -m tests.support.doc_page PAGE``.

Blocks that begin with ``>>>`` are doctests; the others just have to run. All share their names,
among them ``jax``, ``jnp``, ``np`` and ``maxjax``.
"""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path

import numpy as np

import maxjax
import maxjax.numpy as jnp

BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# What a page takes for granted.
GIVEN = {"compiler.md": "f, args = (lambda x: jnp.sin(x) * 2), (jnp.ones(3),)"}


def blocks(text: str) -> list[tuple[int, str]]:
    """The Python blocks of a page, each with the line that it begins in."""
    return [(text.count("\n", 0, found.start(1)), found.group(1)) for found in BLOCK.finditer(text)]


def run(page: Path) -> int:
    """The number of failures, which are printed."""
    names = {"jax": maxjax, "jnp": jnp, "np": np, "maxjax": maxjax, "__name__": "__main__"}
    exec(GIVEN.get(page.name, ""), names)
    failures = 0
    for line, code in blocks(page.read_text()):
        if code.startswith(">>>"):
            example = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), line)
            result = doctest.DocTestRunner(optionflags=OPTIONS).run(example, clear_globs=False)
            failures += result.failed
            names.update(example.globs)
        else:
            exec(compile("\n" * line + code, str(page), "exec", dont_inherit=True), names)
    return failures


if __name__ == "__main__":
    sys.exit(min(run(Path(sys.argv[1])), 1))
