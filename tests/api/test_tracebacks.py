"""Tracebacks of errors: JAX's frames of the user's code, and no others."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import textwrap
import traceback
import weakref

import jax
import pytest

import maxjax
from maxjax import numpy as jnp
from maxjax._base.errors import UnfilteredStackTrace
from maxjax._base.tracebacks import NOTE, boundary, shorten
from tests import ROOT
from tests.support.selection import extended_but

HERE = __file__


def fails(x):
    raise ValueError("mine")


def scanned(j):
    def body(carry, x):
        fails(x)
    return j.lax.scan(body, 0., j.numpy.ones(3))


def ruled(j):
    function = j.custom_jvp(lambda x: x)
    function.defjvp(lambda primals, tangents: fails(primals))
    return j.grad(function)(1.)


def nested(j):
    inner = j.jit(lambda x: j.vmap(fails)(x))
    return j.jit(lambda x: j.jacrev(lambda x: inner(x))(x))(j.numpy.ones(3))


def mismatched(j):
    return j.numpy.ones(3) + j.numpy.ones(4)


def caught(j):
    @j.jit
    def outer(x):
        try:
            return j.jit(fails)(x)
        except ValueError as error:
            raise TypeError("outer") from error
    return outer(1.)


CASES = {
    "jit": lambda j: j.jit(fails)(1.),
    "vmap": lambda j: j.vmap(fails)(j.numpy.ones(3)),
    "grad": lambda j: j.grad(fails)(1.),
    "jvp": lambda j: j.jvp(fails, (1.,), (1.,)),
    "vjp": lambda j: j.vjp(fails, 1.),
    "linearize": lambda j: j.linearize(fails, 1.),
    "hessian": lambda j: j.hessian(fails)(1.),
    "checkpoint": lambda j: j.checkpoint(fails)(1.),
    "while_loop": lambda j: j.lax.while_loop(lambda c: True, fails, 0),
    "fori_loop": lambda j: j.lax.fori_loop(0, 3, lambda i, c: fails(c), 0),
    "cond": lambda j: j.lax.cond(True, fails, lambda x: x, 1.),
    "switch": lambda j: j.lax.switch(0, [fails, fails], 1.),
    "map": lambda j: j.lax.map(fails, j.numpy.ones(3)),
    "eval_shape": lambda j: j.eval_shape(fails, 1.),
    "make_jaxpr": lambda j: j.make_jaxpr(fails)(1.),
    "lower": lambda j: j.jit(fails).lower(1.),
    "gradient of a vector": lambda j: j.grad(lambda x: x)(j.numpy.ones(3)),
    "sizes": lambda j: j.vmap(lambda x, y: x)(j.numpy.ones(3), j.numpy.ones(4)),
    **{function.__name__: function for function in (scanned, ruled, nested, caught)},
}


MODES = ("remove_frames", "quiet_remove_frames", "tracebackhide", "off")


def raised(function, j, mode):
    """The error of a function, and the names of its frames; None for other files' frames."""
    before = j.config.jax_traceback_filtering
    j.config.update("jax_traceback_filtering", mode)
    try:
        with pytest.raises((ValueError, TypeError)) as info:
            function(j)
    finally:
        j.config.update("jax_traceback_filtering", before)
    error = info.value
    hidden = mode == "tracebackhide"
    return error, [(frame.f_code.co_name, line) if frame.f_code.co_filename == HERE else None
                   for frame, line in traceback.walk_tb(error.__traceback__)
                   if not (hidden and "__tracebackhide__" in frame.f_locals)]


@pytest.mark.parametrize("mode", MODES[:3])
@pytest.mark.parametrize("name", CASES)
def test_frames_are_those_of_jax(name, mode):
    ours, our_frames = raised(CASES[name], maxjax, mode)
    theirs, their_frames = raised(CASES[name], jax, mode)
    # Frames of libraries that JAX calls stay in its tracebacks.
    assert our_frames == [frame for frame in their_frames if frame is not None]
    assert type(ours) is type(theirs)
    assert getattr(ours, "__notes__", None) == getattr(theirs, "__notes__", None)
    assert type(ours.__cause__).__name__ == type(theirs.__cause__).__name__
    if mode == "remove_frames":
        assert str(ours.__cause__) == str(theirs.__cause__)


def test_the_whole_traceback_is_that_of_the_cause():
    error, _ = raised(nested, maxjax, "remove_frames")
    assert isinstance(error.__cause__, UnfilteredStackTrace)
    files = [frame.filename for frame in traceback.extract_tb(error.__cause__.__traceback__)]
    assert any("maxjax" in file for file in files if file != HERE)


def test_off_leaves_all_frames():
    error, found = raised(nested, maxjax, "off")
    assert None in found and error.__cause__ is None and not hasattr(error, "__notes__")


def test_operators_end_in_the_users_line():
    _, found = raised(mismatched, maxjax, "quiet_remove_frames")
    assert None not in found


def test_an_error_that_the_function_handles_keeps_its_cause():
    error, _ = raised(caught, maxjax, "quiet_remove_frames")
    assert str(error.__cause__) == "mine"


def test_ipython_hides_frames(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", type("IPython", (), {
        "get_ipython": staticmethod(lambda: object())}))
    error, _ = raised(nested, maxjax, "auto")
    assert not hasattr(error, "__notes__")
    assert any("__tracebackhide__" in frame.f_locals
               for frame, _ in traceback.walk_tb(error.__traceback__))


@pytest.mark.parametrize("start", [[], ["-m", "maxjax"]])
def test_uncaught_errors_show_the_users_lines_alone(tmp_path, start):
    script = tmp_path / "script.py"
    name = "jax" if start else "maxjax"
    script.write_text(f"import {name}.numpy as jnp\njnp.stack([jnp.ones(2), jnp.ones(3)])\n")
    shown = subprocess.run([sys.executable, *start, str(script)], capture_output=True, text=True,
                           check=False).stderr
    assert shown.count("  File ") == 1 and f'File "{script}", line 2' in shown
    assert NOTE in shown


# Scripts and what each run by Python or in a session shows: its error's name, and lines of its own.
SHOWN = {
    "a traced bool": ("""
        @jax.jit
        def f(x):
            return 1 if x > 0 else 2
        f(1.0)
        """, "TracerBoolConversionError", (4, 3)),
    "nan": ("""
        jax.config.update("jax_debug_nans", True)
        @jax.jit
        def f(x):
            return jnp.log(x) * 2
        f(jnp.array(-1.0))
        """, "FloatingPointError", (5, 4)),
    "a key's second use": ("""
        jax.config.update("jax_debug_key_reuse", True)
        def first(key):
            return jax.random.normal(key)
        key = jax.random.key(0)
        first(key)
        jax.random.uniform(key)
        """, "KeyReuseError", (5, 3, 6)),
    "an operator": ("""
        jnp.ones(3) + jnp.ones(4)
        """, "TypeError", (1,)),
    "a method": ("""
        jnp.zeros(3).reshape(7)
        """, "TypeError", (1,)),
}


def script(name, imports):
    code, error, lines = SHOWN[name]
    return imports + textwrap.dedent(code), error, [line + 1 for line in lines]


def run(tmp_path, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(tmp_path / "ipython")}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True,
                          cwd=tmp_path, env=environment, timeout=120, check=False)


@pytest.mark.parametrize("name", extended_but(["nan", "an operator"], SHOWN))
def test_uncaught_errors_are_named_as_in_jax_and_noted_once(tmp_path, name):
    code, error, lines = script(name, "import jax, jax.numpy as jnp")
    (tmp_path / "script.py").write_text(code)
    shown = [run(tmp_path, *start, "script.py").stderr for start in (["-m", "maxjax"], [])]
    ours, theirs = ([line for line in text.splitlines() if error in line and line[0] != " "]
                    for text in shown)
    assert ours == theirs and len(ours) > 0
    assert [int(line) for line in re.findall(r'script.py", line (\d+)', shown[0])] == lines
    assert shown[0].count("  File ") == len(lines)
    assert shown[0].count(NOTE) == 1 and "During handling" not in shown[0]


@pytest.mark.parametrize("name", extended_but(["a method", "a traced bool"], SHOWN))
def test_sessions_show_no_frame_of_maxjax(tmp_path, name):
    code, error, lines = script(name, "import maxjax as jax, maxjax.numpy as jnp")
    (tmp_path / "cell.py").write_text(code)
    (tmp_path / "session.py").write_text(
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance(colors='nocolor')\n"
        "shell.run_cell(open('cell.py').read())\n")
    shown = run(tmp_path, "session.py").stdout
    assert error in shown and os.path.join(ROOT, "maxjax") not in shown
    assert [int(line) for line in re.findall(r"^-+> (\d+) ", shown, re.MULTILINE)] == lines


def test_the_note_is_on_an_error_once():
    @boundary
    def handed_on():
        try:
            maxjax.jit(fails)(1.)
        except ValueError as error:
            shorten(error)
            raise

    with pytest.raises(ValueError) as info:
        handed_on()
    assert info.value.__notes__ == [NOTE]


def test_the_first_use_of_a_key_keeps_no_values():
    class Held:
        pass

    def first(key, held):
        return maxjax.random.normal(key)

    with maxjax.debug_key_reuse(True):
        held, key = Held(), maxjax.random.key(0)
        seen = weakref.ref(held)
        first(key, held)
        del held
        assert seen() is None
        with pytest.raises(maxjax.errors.KeyReuseError) as info:
            maxjax.random.uniform(key)
    places = traceback.extract_tb(info.value.__cause__.__traceback__)
    assert places[-1].name == "first" and places[-1].line == "return maxjax.random.normal(key)"


def test_frames_of_libraries_that_maxjax_calls_are_not_shown():
    with pytest.raises(ValueError) as info:
        jnp.einsum("ij,jk->ik", jnp.ones((2, 3)), jnp.ones((2, 3)))
    assert traceback.extract_tb(info.value.__traceback__)[-1].filename == HERE


@pytest.mark.parametrize("mode", MODES)
def test_errors_that_were_handled_leave_no_cycles(mode):
    """What the frames hold is freed without the garbage collector."""
    class Held:
        pass

    def failing(held):
        boundary(fails)(1.0)

    held = Held()
    seen = weakref.ref(held)
    before = maxjax.config.jax_traceback_filtering
    maxjax.config.update("jax_traceback_filtering", mode)
    gc.collect()
    gc.disable()
    try:
        try:
            boundary(failing)(held)
        except ValueError:
            pass
        del held
        assert seen() is None
    finally:
        gc.enable()
        maxjax.config.update("jax_traceback_filtering", before)
