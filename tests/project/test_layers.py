"""tools/check_layers.py: the package follows its layers, and every violation is detected."""

import textwrap

import pytest

from tests import ROOT
from tools import check_layers


def problems_of(folder, files, late_imports=None):
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
    found = check_layers.check(folder, late_imports or {})
    return [(problem.path, problem.line, problem.message) for problem in found]


def test_the_package_keeps_to_its_layers():
    assert [str(problem) for problem in check_layers.check(ROOT)] == []


def test_imports_down_are_fine(tmp_path):
    files = {
        "maxjax/__init__.py": "from maxjax import numpy\nfrom maxjax._runtime.array import Array",
        "maxjax/numpy/__init__.py": "from maxjax.numpy.linalg import norm\nimport numpy as np",
        "maxjax/numpy/linalg.py": "from maxjax._primitives import linalg",
        "maxjax/_runtime/array.py": "from .._ir.types import Var\nfrom . import pending\nimport os",
        "maxjax/_runtime/pending.py": "",
        "maxjax/_primitives/linalg.py": "import optree, ml_dtypes",
        "maxjax/_ir/types.py": "from dataclasses import dataclass",
    }
    assert problems_of(tmp_path, files) == []


@pytest.mark.parametrize(
    "path, text, line, words",
    [
        ("_ir/a.py", "import os\nfrom maxjax._runtime.array import Array", 2, "comes after _ir"),
        ("_ir/a.py", "from .._runtime import array", 1, "comes after _ir"),
        ("_ir/a.py", "import maxjax.numpy", 1, "public modules comes after _ir"),
        ("_ir/a.py", "from maxjax import numpy", 1, "public modules comes after _ir"),
        ("_primitives/a.py", "from maxjax._transforms.jvp import x", 1, "comes after"),
        ("_runtime/a.py", "import max", 1, "only maxjax/_max may"),
        ("numpy.py", "from max.graph import ops", 1, "only maxjax/_max may"),
        ("_max/a.py", "import jax", 1, "imports jax"),
        ("numpy.py", "from jaxlib.xla_client import x", 1, "imports jaxlib"),
        ("numpy.py", "try:\n    import jax.numpy\nexcept ImportError:\n    pass", 2, "imports jax"),
        ("numpy.py", "import torch", 1, "does not depend on"),
        ("numpy.py", "from scipy import special", 1, "bring it in lazily"),
        ("_higher/a.py", "", 1, "is no room of the design"),
        ("_ir/a.py", "def f():\n    import os", 2, "inside f()"),
        ("_ir/a.py", "class A:\n    def f(self):\n        from . import b", 3, "inside f()"),
        ("_ir/a.py", "import importlib\nf = lambda: importlib.import_module('os')", 2, "inside <"),
        ("_ir/a.py", "from importlib import import_module as m\nx = __import__('jax')", 2, "jax"),
        ("lax.py", "from ._base import lazy\nx = lazy.LazyModule('scipy.fft')", 2, "LazyModule()"),
        ("_ir/a.py", "def __getattr__(name):\n    import os", 2, "inside __getattr__()"),
        ("_ir/a.py", "import threading\nx = threading.Lock()", 2, "uses threading.Lock"),
        ("_ir/a.py", "import threading as t\ndef f():\n    t.Event()", 3, "threading.Event"),
        ("_max/a.py", "from threading import Thread, RLock", 1, "uses threading.RLock"),
        ("_max/a.py", "import queue\nx = queue.SimpleQueue()", 2, "uses queue.SimpleQueue"),
        ("_max/a.py", "from concurrent.futures import ThreadPoolExecutor", 1, "concurrent.futures"),
        ("a.py", "import functools\nclass A:\n    @functools.cached_property\n"
                 "    def f(self): pass", 3, "uses functools.cached_property"),
        ("a.py", "import os\nos.register_at_fork(before=print)", 2, "uses os.register_at_fork"),
        ("a.py", "now = [False]\ndef f():\n    now[0] = True", 3, "in the list now"),
        ("a.py", "hook: list = []\ndef f():\n    return hook[0]()", 3, "in the list hook"),
        ("a.py", "def f():\n    n = [0]\n    def g(): n[0] += 1", 3, "in the list n"),
        ("a.py", "from ._ir import x\nx[0] = 1", 2, "in the list x"),
        ("a.py", "from maxjax import _ir\n_ir.x[0] = 1", 2, "in the list _ir.x"),
    ],
)
def test_a_breach_is_seen(tmp_path, path, text, line, words):
    ((found_path, found_line, message),) = problems_of(tmp_path, {f"maxjax/{path}": text})
    assert (found_path, found_line) == (f"maxjax/{path}", line)
    assert words in message


def test_an_import_inside_a_function_also_keeps_to_the_order(tmp_path):
    text = "def f():\n    from maxjax import numpy"
    messages = [message for _, _, message in problems_of(tmp_path, {"maxjax/_ir/a.py": text})]
    assert len(messages) == 2 and any("comes after" in message for message in messages)


def test_what_does_not_count(tmp_path):
    files = {
        "maxjax/_ir/a.py": """
            from typing import TYPE_CHECKING
            if TYPE_CHECKING:
                from maxjax._runtime.array import Array
            else:
                import os
            """,
        "maxjax/lax.py": "def __getattr__(name):\n    from maxjax._ir import a",
        "maxjax/_max/graph/session.py": "def session():\n    from max import engine",
        "maxjax/_base/lazy.py": "scipy_fft = LazyModule('scipy.fft')",
        "maxjax/_base/lists.py": """
            import sys
            sys.path[0] = "."
            calls = []
            names = ["a", "b"]
            def first(values):
                found = []
                found.append(names[0])
                found[0] = values[0]
                return calls[0], [call(found[0]) for call in calls]
            """,
    }
    exceptions = {"maxjax/_max/graph/session.py": "slow", "maxjax/_base/lazy.py": "rarely needed"}
    assert problems_of(tmp_path, files, exceptions) == []


def test_an_exception_that_is_not_needed_is_reported(tmp_path):
    path = "maxjax/_max/graph/session.py"
    ((_, _, message),) = problems_of(tmp_path, {path: "import os"}, {path: "slow to import"})
    assert "LATE_IMPORTS" in message


def test_a_circle_is_reported_once(tmp_path):
    files = {
        "maxjax/_ir/a.py": "from maxjax._ir import b",
        "maxjax/_ir/b.py": "import os\nfrom maxjax._ir.c import x",
        "maxjax/_ir/c.py": "from . import a",
        "maxjax/_ir/d.py": "from . import a",
    }
    found = problems_of(tmp_path, files)
    message = "import one another: maxjax._ir.a, maxjax._ir.b, maxjax._ir.c"
    assert found == [("maxjax/_ir/a.py", 1, message)]


def test_the_exit_code(tmp_path, capsys):
    (tmp_path / "maxjax").mkdir()
    assert check_layers.main([str(tmp_path)]) == 0
    (tmp_path / "maxjax" / "numpy.py").write_text("import jax")
    assert check_layers.main([str(tmp_path)]) == 1
    assert "maxjax/numpy.py:1" in capsys.readouterr().out
