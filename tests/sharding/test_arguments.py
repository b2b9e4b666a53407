"""Every function with an argument for the result's placement uses it."""

from __future__ import annotations

import ast
from pathlib import Path

import maxjax

PLACES = ("device", "in_shardings", "out_sharding", "out_shardings", "sharding", "spmd_axis_name",
          "src")
# Functions that do not read such an argument, with the reason.
UNUSED = {
    "default_dtypes(device)": "all devices have the same dtypes",
    "dtypes(device)": "all devices have the same dtypes",
    "reshard(sharding)": "of HiType, which a subclass overrides",
    "bcoo_reshape(sharding)": "sparse arrays lie on one device",
    "bcoo_broadcast_in_dim(sharding)": "sparse arrays lie on one device",
    "bcoo_dot_general(out_sharding)": "sparse arrays lie on one device",
    "bcoo_conv_general_dilated(out_sharding)": "sparse arrays lie on one device",
    "bcsr_broadcast_in_dim(sharding)": "sparse arrays lie on one device",
    "bcsr_dot_general(out_sharding)": "sparse arrays lie on one device",
}
FILES = sorted(Path(maxjax.__file__).parent.rglob("*.py"))


def is_declared_only(node: ast.FunctionDef | ast.Lambda) -> bool:
    """Whether it is abstract, or a protocol's: its body is ``...``."""
    if not isinstance(node, ast.FunctionDef):
        return False
    is_abstract = any(isinstance(part, ast.Name) and part.id == "abstractmethod"
                      for part in node.decorator_list)
    last = node.body[-1]
    return is_abstract or isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant) \
        and last.value.value is ...


def unused(tree: ast.Module) -> list[str]:
    """Arguments with these names that a function's body does not use."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.Lambda)) or is_declared_only(node):
            continue
        body = node.body if isinstance(node.body, list) else [node.body]
        read = {name.id for part in body for name in ast.walk(part) if isinstance(name, ast.Name)}
        taken = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        found += [f"{getattr(node, 'name', 'lambda')}({argument.arg})" for argument in taken
                  if argument.arg in PLACES and argument.arg not in read]
    return found


def test_places_are_read():
    """A reason whose function now reads its argument must be removed."""
    assert {name for path in FILES for name in unused(ast.parse(path.read_text()))} == UNUSED.keys()


def test_finds_what_is_not_read():
    assert unused(ast.parse("def f(x, out_sharding=None): return x")) == ["f(out_sharding)"]
    assert not unused(ast.parse("@abstractmethod\ndef f(x, out_sharding=None): 'Says what.'"))
    assert not unused(ast.parse("def f(x, out_sharding=None): ..."))
