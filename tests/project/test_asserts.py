"""tools/check_asserts.py: no check is an assert, and every one is detected."""

import ast

import pytest

from tests import ROOT
from tools import check_asserts


def test_no_check_is_an_assert():
    assert check_asserts.check(ROOT) == []


@pytest.mark.parametrize("text", [
    "assert x.shape == shape", "assert x", "assert x is not None and x > 0", "assert x is None",
    "def f(x):\n    assert not status, 'it cannot be read'", "assert check(x)"])
def test_checks_are_found(text):
    assert list(check_asserts.checks(ast.parse(text)))


@pytest.mark.parametrize("text", [
    "assert x is not None", "assert isinstance(x, int), 'a message'",
    "assert x is not None and isinstance(x.y, (int, str))"])
def test_what_tells_a_type_is_fine(text):
    assert not list(check_asserts.checks(ast.parse(text)))
