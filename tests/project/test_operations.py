"""The operations of backends that lowerings use."""

import ast

import pytest

from maxjax._max.lowering import Lowering
from maxjax._max.operations import LoweringError, Operations
from maxjax._stablehlo.emitter import Emitter
from tests import ROOT

# Where lowerings for all backends stand.
FOLDERS = ("_primitives", "_higher_order", "_sharding", "extend")


def test_lowerings_use_what_is_declared():
    """Rules that a builder takes as they come have a context that type checkers know nothing of."""
    used = {(path.name, node.attr)
            for folder in FOLDERS for path in (ROOT / "maxjax" / folder).rglob("*.py")
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            and node.value.id == "ctx"}
    assert len(used) > 100
    assert not {(name, operation) for name, operation in used if not hasattr(Lowering, operation)}


def test_a_backend_has_all_operations_or_is_none():
    incomplete = type("Incomplete", (Emitter,), {"reverse": Operations.reverse})
    with pytest.raises(TypeError, match="reverse"):
        incomplete({})


def test_what_a_backend_lacks_fails_to_lower():
    with pytest.raises(LoweringError, match="the Emitter has no operation pair"):
        Emitter({}).pair(None, None)
