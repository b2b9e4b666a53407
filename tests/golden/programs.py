"""Golden texts: each file has a line of prose on what to see, a program, and what is made of it.

A program is a function with a docstring, the prose, under a decorator that names its arguments;
what is made of it is the module's matter: jaxprs.py prints jaxprs, before and after a pass,
partitions.py how values are split over a mesh, kernels.py the Mojo text.

    python -m tests.golden [FILE ...]      # writes the files anew; read the difference
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
RENEW = "python -m tests.golden"


@dataclasses.dataclass(frozen=True)
class Golden:
    """A program and its text.

    Attributes:
      function: its docstring says what to see.
      args: what it is traced with.
      made: the text of what is made of the function and the arguments.
      suffix: of the file's name.
    """

    function: Callable[..., Any]
    args: Sequence[Any]
    made: Callable[..., str]
    suffix: str

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.function.__name__}.{self.suffix}"

    def text(self) -> str:
        prose = inspect.cleandoc(self.function.__doc__ or "").splitlines()
        program = [f"    {line}".rstrip() for line in source(self.function)]
        head = [f"# {line}".rstrip() for line in [*prose, "", *program]]
        return "\n".join(head) + "\n\n" + self.made(self.function, *self.args).rstrip("\n") + "\n"


GOLDENS: dict[str, Golden] = {}


def of(*shapes: Any) -> list[Any]:
    """Arguments: zeros of float32 for a shape, or what is not a shape as it is."""
    return [np.zeros(x, np.float32) if type(x) is tuple else x for x in shapes]


def golden(made: Callable[..., str], suffix: str, *shapes: Any) -> Callable[[Any], Any]:
    """Makes a golden text of the function below."""
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        new = Golden(function, of(*shapes), made, suffix)
        assert new.path.name not in GOLDENS, new.path.name
        GOLDENS[new.path.name] = new
        return function
    return add


def source(function: Callable[..., Any]) -> list[str]:
    """The lines of a function, without its decorators and its docstring."""
    text = textwrap.dedent(inspect.getsource(function))
    node, = ast.parse(text).body
    assert isinstance(node, ast.FunctionDef)
    docstring = node.body[0]
    lines = text.splitlines()
    return lines[node.lineno - 1:docstring.lineno - 1] + lines[docstring.end_lineno:]
