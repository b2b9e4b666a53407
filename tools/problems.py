"""What the tools that check maxjax's source have in common: where it is, and how they report."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def report(arguments: Sequence[str] | None, text: str | None,
           check: Callable[[Path], Iterable[object]], fine: str) -> int:
    """Runs a tool: prints the problems that it finds.

    Args:
      arguments: of the command line; None: those of the process.
      text: of the tool's module, of which the first paragraph describes it.
      check: gives the problems of the project in a folder.
      fine: what is said where there are none.

    Returns:
      The exit status: 1 if there are problems.
    """
    parser = argparse.ArgumentParser(description=(text or "").partition("\n\n")[0])
    parser.add_argument("root", nargs="?", type=Path, default=ROOT, help="holds maxjax/")
    root = parser.parse_args(arguments).root
    if not (root / "maxjax").is_dir():
        parser.error(f"there is no maxjax/ in {root}")
    problems = list(check(root))
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems" if problems else f"maxjax/: {fine}")
    return 1 if problems else 0
