"""Where only kernels run, MAX's libraries are not loaded, and its compiler is all that is used."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("max.engine")

from maxjax._max.mojo import standard_library
from tests import ROOT
from tests.support import mojo_programs

pytestmark = [
    pytest.mark.xdist_group("mojo"),
    pytest.mark.skipif(standard_library.why_not() is not None,
                       reason=f"{standard_library.why_not()}")]

# Prints how a program ran, and which libraries are loaded.
PROGRAM = """
import resource, sys
mode, limit = sys.argv[1], int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
import numpy as np
import maxjax
import maxjax.numpy as jnp
maxjax.config.update("compile", mode)
def products(a, b):     # of which the pack has all
    return jnp.sort(a @ b, axis=0)
def kernels(a, b):
    return jnp.tanh(products(a, b)) * 2 + b.sum(0)
f = maxjax.jit(kernels if mode == "always" else products)
x = np.random.default_rng(1).random((200, 200), np.float32)
expected = np.sort(x @ x, axis=0)
if mode == "always":
    expected = np.tanh(expected) * 2 + x.sum(0)
np.testing.assert_allclose(f(x, x), expected, rtol=1e-5)
print(maxjax.debug.explain(f, x, x))
assert "max" not in sys.modules
with open("/proc/self/maps") as maps:
    print(*{line.split()[-1] for line in maps if ".so" in line}, sep="\\n")
"""


def run(mode: str, limit: int, **environment: str) -> str:
    # Importing MAX, as this process has, sets variables that name its folder.
    inherited = {name: value for name, value in os.environ.items()
                 if not name.startswith("MODULAR_")}
    done = subprocess.run(
        [sys.executable, "-S", "-c", PROGRAM, mode, str(limit)], text=True, capture_output=True,
        timeout=900, env={**inherited, "MAXJAX_DETACHED_BUILDS": "0", **environment}, cwd="/")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert "1 on MAX" in done.stdout, done.stdout
    loaded = [line for line in done.stdout.splitlines() if line.startswith("/")]
    assert not [path for path in loaded if "/modular/" in path or "/max/" in path], loaded
    return done.stdout


def here() -> str:
    """The packages of this environment."""
    return os.pathsep.join([str(ROOT), *(path for path in sys.path if path)])


def test_memory_may_be_limited():
    """MAX's own libraries reserve a gigabyte when they are loaded, and abort a process that has
    less."""
    built = mojo_programs.pack()
    said = run("auto", 900 << 20, PYTHONPATH=here())
    assert f"{built.libraries.cache.directory}" in said


@pytest.mark.extended
def test_the_compiler_is_enough(tmp_path):
    """In an environment that has the package `mojo-compiler`, but neither `max` nor Mojo's standard
    library, and no C compiler on the path."""
    site = tmp_path / "site"
    site.mkdir()
    link(site, "mojo-compiler")
    for name in ("ml_dtypes", "numpy", "opt_einsum", "optree", "rich", "scipy", "threadpoolctl",
                 "markdown-it-py", "mdurl", "pygments", "typing_extensions"):
        link(site, name)
    said = run("always", 0, PYTHONPATH=os.pathsep.join([str(ROOT), str(site)]), PATH="/nowhere",
               MAXJAX_CACHE_DIR=str(tmp_path / "cache"))
    assert f"{tmp_path / 'cache'}" in said and ": compiled, " in said


def link(site: Path, distribution: str) -> None:
    """Puts links to a distribution's files into a folder of packages."""
    found = importlib.metadata.distribution(distribution)
    for file in found.files or ():
        place = site / file
        if ".." in file.parts or file.suffix == ".pyc" or not found.locate_file(file).exists():
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if file.parts[0] == "mojo" or file.parts[0].endswith(".dist-info"):
            shutil.copy(str(found.locate_file(file)), place)    # which look for what is beside them
        else:
            place.symlink_to(str(found.locate_file(file)))
