"""tools/check_blocks.py: primitives' blocks are closed, and every violation is detected."""

import ast

import pytest

from tests import ROOT
from tools import check_blocks

NAMES = {"sin", "cos", "reshape", "mul"}


def test_the_blocks_are_closed():
    assert check_blocks.check(ROOT) == []


def test_primitives_are_found():
    found = check_blocks.primitive_names(ROOT)
    assert {"sin", "dot_general", "scan", "jit", "scatter-add"} <= found


def test_every_excuse_is_needed():
    names = check_blocks.primitive_names(ROOT)
    for path in check_blocks.EXCUSED:
        assert list(check_blocks.tables(ast.parse((ROOT / path).read_text()), names)), path


@pytest.mark.parametrize("text", [
    "x = eqn.primitive.name == 'sin'",
    "x = primitive.name in ('sin', 'cos')",
    "x = rules[eqn.primitive.name]",
    "x = rules.get(primitive.name)",
    "def f(eqn):\n name = eqn.primitive.name\n return name == 'sin'",
    "def f(eqn):\n name, params = eqn.primitive.name, eqn.params\n return rules[name]",
    "def f(eqn):\n name: str = eqn.primitive.name\n return rules.get(name)",
    "def f(eqn):\n if (name := eqn.primitive.name) and name in RULES: pass",
    "x = (name := eqn.primitive.name) == 'sin'",
])
def test_comparisons_are_seen(text):
    assert list(check_blocks.comparisons(ast.parse(text)))


@pytest.mark.parametrize("text", [
    "RULES = {'sin': 1, 'cos': 2, 'mul': 3, 'other': 4}",
    "RULES: dict = {'sin': 1, 'cos': 2, 'mul': 3}",
    "MOVES = frozenset(('sin', 'cos', 'reshape'))",
    "MOVES = ['sin', 'cos', 'reshape']",
    "MOVES = 'sin cos reshape other'.split()",
    "RULES = dict.fromkeys(('sin', 'cos', 'reshape'), 1)",
])
def test_tables_are_seen(text):
    assert list(check_blocks.tables(ast.parse(text), NAMES))


@pytest.mark.parametrize("text", [
    "x = primitive.name", "x = option.name == 'sin'", "print(eqn.primitive.name)",
    "def f(eqn):\n name = eqn.primitive.name\ndef g(name):\n return name == 'sin'",
    "def f(eqn):\n name, params = eqn.primitive.name, eqn.params\n return params == 'sin'",
    "WORDS = ['sin', 'cos', 'one', 'two', 'three']", "__all__ = ['sin', 'cos', 'mul']",
])
def test_what_is_no_breach(text):
    tree = ast.parse(text)
    assert not list(check_blocks.comparisons(tree)) + list(check_blocks.tables(tree, NAMES))
