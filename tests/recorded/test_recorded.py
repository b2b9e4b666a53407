"""Every recorded line gives in maxjax what it gave in JAX, or what is recorded beside a reason."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest

from tests.recorded import outcomes
from tests.recorded.outcomes import NAMES
from tests.support.harness import stable

LINES = {name: outcomes.read(name) for name in NAMES}

# What maxjax prints differently everywhere, on purpose.
SPELLINGS = (
    ("jaxlib._jax.ArrayImpl", "maxjax._runtime.array.ArrayImpl"),
    ("unhashable type: 'maxjax._runtime.array.ArrayImpl'", "unhashable type: 'ArrayImpl'"),
    ("jax._src.core.ShapedArray", "maxjax._ir.types.ShapedArray"),
    ("<class 'jax.ShapeDtypeStruct'>", "<class 'maxjax.ShapeDtypeStruct'>"),
)
NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:e[-+]?\d+)?")

by_maxjax = functools.cache(functools.partial(outcomes.outcomes, "maxjax"))


# What versions of Python word in their own ways: keys of dictionaries, ordered dictionaries,
# functions inside comprehensions, subclasses of functools.partial, properties without setters.
WORDINGS = tuple((re.compile(pattern), words) for pattern, words in (
    (r"cannot use '[\w.]+' as a (?:dict key|set element) \((unhashable type: '\w+')\)", r"\1"),
    (r"OrderedDict\(\[(.*?)\]\)", lambda found: "OrderedDict({" + re.sub(
        r"\(('\w+'), ([^()]*)\)", r"\1: \2", found.group(1)) + "})"),
    (r"<listcomp>\.", ""),
    (r"(?:max)?jax\.tree_util\.(Partial\()", r"\1"),
    (r"property '' of", "property of"), (r"jaxlib\._jax\.ffi\.Buffer", "Buffer")))


def worded(text: str) -> str:
    """A text in the same words, whichever Python gave it."""
    for pattern, words in WORDINGS:
        text = pattern.sub(words, text)
    return text


def same(expected: str, actual: str, spelled: bool = True) -> bool:
    """Equal text, but for the rounding of floats and the blanks that line them up."""
    for theirs, ours in SPELLINGS if spelled else ():
        expected = expected.replace(theirs, ours)
    expected, actual = map(stable, (worded(expected), worded(actual)))
    if expected == actual:
        return True
    # JAX's invitation to its bug tracker gives way to a hint.
    start, asked, _ = expected.partition(" Please file a")
    if asked:
        return actual.startswith(start.rstrip("."))
    numbers = [NUMBER.findall(text) for text in (expected, actual)]
    expected, actual = (NUMBER.sub("#", "".join(text.split())) for text in (expected, actual))
    return numbers[0] != numbers[1] and expected == actual and all(
        theirs == mine or ("." in theirs and np.isclose(float(theirs), float(mine), 3e-6, 1e-7))
        for theirs, mine in zip(*numbers, strict=True))


def in_group(name: str, *more: object, **options: object) -> object:
    """A file's tests stand together in one worker, which runs the file once."""
    return pytest.param(name, *more, marks=pytest.mark.xdist_group(f"recorded-{name}"), **options)


@pytest.mark.parametrize("name, number", [
    in_group(name, number, id=f"{name} {number}: {line.code[:60]}")
    for name, lines in LINES.items() for number, line in enumerate(lines)
    if not line.statement or line.jax])
def test_a_line_gives_what_was_recorded(name, number):
    line, actual = LINES[name][number], by_maxjax(name)[number]
    expected = line.here if line.reason else line.jax
    assert same(expected, actual), f"{line.code}\n  recorded: {expected}\n  maxjax: {actual}"
    assert not (line.reason and same(line.jax, actual)), (
        f"{line.code} gives what it gives in JAX: take out 'differs: {line.reason}'")


@pytest.mark.parametrize("name", [in_group(name) for name in NAMES])
def test_statements_run(name):
    """Those without an outcome of JAX's raise nothing."""
    wrong = {line.code: actual for line, actual in zip(LINES[name], by_maxjax(name), strict=True)
             if line.statement and not line.jax and actual}
    assert not wrong


@pytest.mark.parametrize("name", NAMES)
def test_files_are_as_they_are_written(name, tmp_path, monkeypatch):
    before = (outcomes.FOLDER / f"{name}.txt").read_text()
    monkeypatch.setattr(outcomes, "FOLDER", tmp_path)
    outcomes.write(name, LINES[name])
    assert (tmp_path / f"{name}.txt").read_text() == before


@pytest.mark.exhaustive       # a minute or two; what JAX gives changes with its version alone
@pytest.mark.parametrize("name", NAMES)
def test_the_outcomes_are_jaxs(name):
    given = outcomes.outcomes("jax", name)
    wrong = {line.code: text for line, text in zip(LINES[name], given, strict=True)
             if not same(line.jax, text, spelled=False)}
    assert not wrong
