"""``python -m maxjax``: scripts run as under Python, with maxjax for jax."""

import importlib.util
import json
import os
import subprocess
import sys
import textwrap

import pytest

import maxjax
import maxjax.__main__
from maxjax.version import JAX_VERSION
from tests import ROOT


def python(*arguments, cwd, text=None):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MAXJAX_COMPILE": "never"}
    return subprocess.run([sys.executable, *arguments], cwd=cwd, env=environment, text=True,
                          input=text, capture_output=True, timeout=120)


def write(folder, text, name="script.py"):
    (folder / name).write_text(textwrap.dedent(text))
    return name


def test_imports_of_a_script_find_maxjax(tmp_path):
    script = write(tmp_path, """
        import sys
        import jax
        import jax.numpy as jnp
        from jax import grad, jit, lax, nn, random, tree_util
        from jax.tree_util import tree_map
        from jax import numpy as jnp2
        import jax.random, jax.nn, jax.lax
        from jax.nn import initializers, relu
        from jax.nn.initializers import glorot_normal
        import jaxlib, jax.version
        assert jnp is jnp2 is jax.numpy
        print(jax.__version__, jaxlib.__version__, jax.version.__version__)
        print(grad(lambda x: jnp.sum(jnp.sin(x) ** 2))(jnp.ones(3)).shape, jit(relu)(-1.0))
        print(random.normal(random.key(0), (2,)))
        print(jnp.__name__, jnp.__spec__.name, jax.jit is grad)
        print(any(name.startswith("jax._src") for name in sys.modules), "maxjax" in sys.modules)
        print(isinstance(jnp.ones(2), jax.Array), jax.config.jax_enable_x64)
        from jaxlib._jax import PjitFunction
        print(isinstance(jit(relu), PjitFunction), isinstance(relu, PjitFunction))
        """)
    result = python("-m", "maxjax", script, cwd=tmp_path)
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        " ".join([JAX_VERSION] * 3), "(3,) 0.0", "[1.6226422 2.0252647]",
        "maxjax.numpy maxjax.numpy False", "False True", "True False", "True False"]


SCRIPTS = {
    "arguments": "import sys\nprint(sys.argv, __name__, __file__, sys.path[0])\n"
                 "print(__package__, __doc__)",
    "main": "import __main__, sys\na = 1\n"
            "print(__main__.a, sys.modules['__main__'].__dict__ is globals())",
    "exit code": "import sys; print('x'); sys.exit(3)",
    "exit text": "raise SystemExit('no')",
    "error": "def f(x):\n    return 1 / x\n\nf(0)\n",
    "chain": "try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('b') from e\n",
    "syntax error": "x = (1\n",
    "docstring": "'''doc'''\nprint(__doc__)",
    "encoding": "# -*- coding: utf-8 -*-\nprint('\u00e4')",
    "pickle": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)",
    "assert": "assert False, 'reason'",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_as_python_does(name, tmp_path):
    script = write(tmp_path, SCRIPTS[name])
    plain = python(script, "a", "-b", cwd=tmp_path)
    ours = python("-m", "maxjax", script, "a", "-b", cwd=tmp_path)
    assert (ours.returncode, ours.stdout, ours.stderr) == (
        plain.returncode, plain.stdout, plain.stderr)


def test_names_are_looked_up_once(tmp_path):
    """Libraries read them in each call: ``jax.tree.map``, ``isinstance(x, jax.Array)``."""
    script = write(tmp_path, """
        import jax
        print("jit" in vars(jax), "profiler" in vars(jax))
        jax.jit, jax.Array, jax.tree.map, jax.profiler
        print([name in vars(jax) for name in ("jit", "Array", "tree", "profiler")])
        print(jax.jit is vars(jax)["jit"], jax.profiler.__name__)
        jax.jit = 3
        print(jax.jit)
        """)
    result = python("-m", "maxjax", script, cwd=tmp_path)
    assert result.stdout.splitlines() == [
        "False False", "[True, True, True, True]", "True maxjax.profiler", "3"], result.stderr


def test_dir_lists_what_is_imported_late(tmp_path):
    """In a fresh process: here most has been imported."""
    ours, theirs = (
        python("-c", f"import {library}; print(*dir({library}))", cwd=tmp_path).stdout.split()
        for library in ("maxjax", "jax"))
    lacking = {name for name in theirs if name[0] != "_"} - set(ours)
    assert not {name for name in lacking if hasattr(maxjax, name)}
    assert {"pmap", "scipy", "export"} <= set(ours)


def test_script_in_another_folder(tmp_path):
    (tmp_path / "inner").mkdir()
    write(tmp_path, "value = 5", "inner/neighbour.py")
    script = write(
        tmp_path, "import neighbour, sys; print(neighbour.value, sys.argv)", "inner/s.py")
    results = [python(*start, script, cwd=tmp_path) for start in ((), ("-m", "maxjax"))]
    assert results[0].stdout == results[1].stdout != ""


def test_code_and_module(tmp_path):
    write(tmp_path, "import sys; print(__name__, __package__, sys.argv[1:], __spec__.name)",
          "tool.py")
    for arguments in (("-c", "import sys; print(sys.argv, __name__, repr(sys.path[0]))", "x"),
                      ("-m", "tool", "x"), ("-c", "1/0")):
        plain = python(*arguments, cwd=tmp_path)
        ours = python("-m", "maxjax", *arguments, cwd=tmp_path)
        assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout)
        if arguments[0] == "-c":
            assert ours.stderr == plain.stderr


def test_from_standard_input(tmp_path):
    result = python("-m", "maxjax", "-", cwd=tmp_path, text="import jax; print(jax.__name__)")
    assert result.stdout == "jax\n"


def test_a_missing_script(tmp_path):
    plain, ours = (python(*start, "nowhere.py", cwd=tmp_path) for start in ((), ("-m", "maxjax")))
    assert (ours.returncode, ours.stderr) == (plain.returncode, plain.stderr)


@pytest.mark.parametrize("code, words", [
    ("import jax.nothing", "No module named 'jax.nothing' (maxjax does not have it yet)"),
    ("import jax; jax.nothing", "module 'jax' has no attribute 'nothing'"),
    ("import jax.numpy as jnp; jnp.nothing", "has no attribute 'nothing'"),
    ("from jax import nothing", "cannot import name 'nothing'"),
    ("import jax._src.nothing", "what popular libraries use"),
    ("from jax._src.lib.mlir.dialects import hlo", "maxjax emits no MLIR"),
    ("from jax.interpreters import mlir; mlir.ir_constant", "maxjax emits no MLIR"),
    ("import jax.experimental.pallas.mosaic_gpu", "written in Mojo"),
    ("import jaxlib.mlir", "there is no jaxlib"),
])
def test_what_is_not_there(code, words, tmp_path):
    result = python("-m", "maxjax", "-c", code, cwd=tmp_path)
    assert result.returncode == 1 and words in result.stderr


def test_usage_is_shown_and_wrong_options_are_refused(tmp_path):
    help_text = python("-m", "maxjax", "--help", cwd=tmp_path)
    assert help_text.returncode == 0 and "SCRIPT" in help_text.stdout
    wrong = python("-m", "maxjax", "--wrong", cwd=tmp_path)
    assert wrong.returncode == 2 and wrong.stderr.startswith("unknown option --wrong\nusage: ")
    surplus = python("-m", "maxjax", "-V", "now", cwd=tmp_path)
    assert surplus.returncode == 2 and "-V takes no arguments, got now" in surplus.stderr


def test_without_a_script_the_program_is_read(tmp_path):
    result = python("-m", "maxjax", cwd=tmp_path, text="import jax; print(jax.jit.__module__)")
    assert (result.returncode, result.stdout[:6]) == (0, "maxjax")


def test_the_interpreter_goes_on_where_the_script_ended(tmp_path):
    write(tmp_path, "import jax.numpy as jnp\nx = jnp.ones(2)\nraise SystemExit(3)")
    result = python("-m", "maxjax", "-i", "script.py", cwd=tmp_path, text="x + 1\n1 / 0\nx - 1\n")
    assert "Array([2., 2.], dtype=float32)" in result.stdout
    assert "Array([0., 0.], dtype=float32)" in result.stdout
    assert "ZeroDivisionError" in result.stderr


def test_an_interpreter(tmp_path):
    result = python("-m", "maxjax", "-i", cwd=tmp_path, text="import jax\njax.__name__, __name__\n")
    assert result.stdout == "('jax', '__main__')\n" and f"JAX {JAX_VERSION}" in result.stderr


@pytest.mark.parametrize("arguments", [
    ["-m", "nopkg"], ["-m", "nopkg.x"], ["-m", "json.nothing"], ["-m", "folder"], ["folder"],
    ["missing.py"], ["folder/missing.py"]], ids=" ".join)
def test_what_is_not_there_is_said_in_one_line(tmp_path, arguments):
    (tmp_path / "folder").mkdir()
    ours, plain = (python(*start, *arguments, cwd=tmp_path) for start in (["-m", "maxjax"], []))
    assert (ours.returncode, ours.stderr) == (plain.returncode, plain.stderr) and plain.returncode
    assert len(ours.stderr.splitlines()) == 1


def test_what_a_module_lacks_itself_is_a_traceback(tmp_path):
    (tmp_path / "folder").mkdir()
    write(tmp_path, "import nopkg\n", "folder/__main__.py")
    for arguments in (["folder"], ["-m", "folder"]):
        said = python("-m", "maxjax", *arguments, cwd=tmp_path).stderr
        assert said.startswith("Traceback") and "No module named 'nopkg'" in said


def test_an_interrupted_preparation_ends_quietly(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("maxjax._runtime.installation.prepare", interrupted)
    assert maxjax.__main__._look_after("--prepare", []) == 130
    assert capsys.readouterr().err == "\ninterrupted; the libraries that are built are kept\n"


def test_the_command_is_the_module(tmp_path):
    code = "import sys; from maxjax.__main__ import command; sys.argv[1:] = {}; command()"
    for arguments in (["script.py", "a"], ["--version"], ["-V"], ["-c", "print(6)"],
                      ["-m", "script", "b"]):
        write(tmp_path, "import sys, jax; print(sys.argv, sys.path[0], jax.__name__)")
        plain = python("-m", "maxjax", *arguments, cwd=tmp_path)
        ours = python("-c", code.format(arguments), cwd=tmp_path)
        assert (ours.returncode, ours.stdout) == (0, plain.stdout) != (0, "")


def test_dir_has_no_private_names(tmp_path):
    """Nor those of modules that maxjax imports for itself; all others are JAX's."""
    names = python("-c", "import maxjax, jax; print(*dir(maxjax)); print(*dir(jax))",
                   cwd=tmp_path).stdout.splitlines()
    ours, theirs = (set(line.split()) for line in names)
    assert [name for name in ours if name[0] == "_" and not name.endswith("__")] == []
    public = {name for name in ours - theirs if name[0] != "_"}
    # Modules of JAX that it does not import itself.
    assert public == {"ad_checkpoint", "example_libraries", "extend", "flatten_util", "test_util"}
    code = "import maxjax.numpy as m; print([n for n in dir(m) if n[0] == '_' != n[1]])"
    assert python("-c", code, cwd=tmp_path).stdout == "[]\n"


# Each warns once.
WARNING = [
    "jnp.zeros(3, 'float64')", "jnp.ones(3).astype('float64')", "jnp.asarray([1.], 'float64')",
    "jnp.arange(3, dtype='int64')", "jnp.sum(jnp.ones(2), dtype='float64')", "jnp.float64(3)",
    "jax.random.normal(jax.random.key(0), (2,), dtype='float64')",
    "jax.nn.initializers.ones(jax.random.key(0), (2,), 'float64')",
    "jax.jit(lambda x: x.astype('float64'))(1.)", "jnp.ones(3, int).at[0].set(1.5)",
    "jax.jit(lambda x: x.sum(), donate_argnums=0)(jnp.ones(3))",
]


@pytest.mark.parametrize("code", WARNING)
def test_warnings_point_at_the_users_line(code):
    with pytest.warns(Warning) as records:
        exec(compile(f"\n\n{code}", "user.py", "exec"), {"jax": maxjax, "jnp": maxjax.numpy})
    assert [(record.filename, record.lineno) for record in records] == [("user.py", 3)]


def test_a_kernel_for_jupyter(tmp_path):
    if importlib.util.find_spec("ipykernel") is None:
        result = python("-m", "maxjax", "--install-kernel", cwd=tmp_path)
        assert result.returncode == 1 and "maxjax[notebook]" in result.stderr
        return
    folder = tmp_path / "share" / "jupyter" / "kernels" / "maxjax"
    result = python("-m", "maxjax", "--install-kernel", "--prefix", str(tmp_path), cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, f"the kernel 'maxjax' is in {folder}\n")
    spec = json.loads((folder / "kernel.json").read_text())
    assert spec["argv"][1:5] == ["-m", "maxjax", "-m", "ipykernel_launcher"]
    assert python("-m", "maxjax", "--install-kernel", "x", cwd=tmp_path).returncode == 2
