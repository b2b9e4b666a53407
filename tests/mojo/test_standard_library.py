"""The small standard library gives the bits of MAX's, and MAX's compiles what it lacks."""

from __future__ import annotations

import ctypes
import logging
import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from tests import ROOT

pytest.importorskip("max.engine")

from maxjax._base import dtypes
from maxjax._base.dtypes import name_of
from maxjax._max.mojo import standard_library, toolchain, vector_operations
from maxjax._max.mojo.emitter import HEADER
from maxjax._max.mojo.structure import BOOL
from maxjax._max.mojo.toolchain import Pace, build_library
from maxjax._max.mojo.vector_operations import Operator
from tests.golden import kernels  # noqa: F401 (it has programs)
from tests.golden.programs import GOLDENS
from tests.mojo import pack_calls
from tests.support import mojo_programs
from tests.support.selection import extended_but

pytestmark = [
    pytest.mark.xdist_group("mojo"),
    pytest.mark.skipif(standard_library.why_not() is not None,
                       reason=f"{standard_library.why_not()}")]

LIBRARIES = ("small", "max")
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
KERNEL = ('@export("f")\ndef f(slots: Slots, args: Args) abi("C"):\n'
          "    var x = operand[DType.float32](slots, args, 0)\n"
          "    x.unsafe_store(0, {value})\n")


def build(library: str, source: str, folder: Path, monkeypatch) -> ctypes.CDLL:
    monkeypatch.setenv("MAXJAX_STANDARD_LIBRARY", library)
    output = folder / f"{library}.so"
    build_library(source, output, pace=Pace(urgent=True))
    assert (b"maxjax_launch" in output.read_bytes()) == (library == "small")
    return ctypes.CDLL(str(output), mode=os.RTLD_NOW | os.RTLD_LOCAL)


# --- the bits of all operations -------------------------------------------------------------------

def edges(dtype: np.dtype) -> np.ndarray:
    """Values of a dtype that are special to some operation, and random bits."""
    random = np.random.default_rng(zlib.crc32(name_of(dtype).encode()))
    if dtype == BOOL:
        return np.array([False, True] * 8)
    bits = random.integers(0, 256, 40 * dtype.itemsize, dtype=np.uint8).view(dtype)
    if dtype in dtypes.INTS:
        info = np.iinfo(dtype)
        near = [2**k + d for k in (1, 3, 5, 7, 15, 16, 24, 31, 32, 52, 53, 62, 63)
                for d in (-1, 0, 1)]
        signed = [0, 1, 2, 3, 5, 7, 10, info.min, info.min + 1, info.max, *near,
                  *[-x for x in near]]
        return np.concatenate([np.array([x for x in signed if info.min <= x <= info.max], dtype),
                               bits])
    info = dtypes.finfo(dtype)
    positive = [0., 0.25, 0.5, 0.75, 1., 1.5, 2., 2.5, 3., 3.5, 7., 10., 20., 88.8, 100., 709.9,
                127.5, 255.5, 1e-3, 1e-9, 1e4, 65519., 65520., 1e9, 2.**31, 2.**32, 2.**52, 2.**53,
                2.**63, 2.**64, 1e19, 1e30, 1e300, np.pi, np.pi / 2, 1e6 * np.pi, 2.**27 * 1.1,
                2.**-14, 2.**-24, 2.**-25, 2.**-25 * 1.01, np.inf, np.nan, float(info.max),
                float(info.tiny), float(info.smallest_subnormal)]
    with np.errstate(over="ignore"):
        values = np.array([*positive, *[-x for x in positive]], np.float64).astype(dtype)
    return np.concatenate([values, np.nextafter(values, np.ones((), dtype))
                           if dtype in (np.float32, np.float64) else values[:0], bits])


def arguments(operator: Operator) -> list[np.ndarray]:
    """All values with all, of one or two operands; many with many, of three."""
    each = [edges(dtype) for dtype in operator.operands]
    if len(each) == 3:
        random = np.random.default_rng(3)
        return [random.choice(values, 5000) for values in each]
    grid = np.meshgrid(*each, indexing="ij")
    return [np.ascontiguousarray(values.reshape(-1)) for values in grid]


def results(library: ctypes.CDLL, operator: Operator) -> bytes:
    """What the function gives of vectors and of single elements."""
    function = getattr(library, operator.function)
    function.argtypes, function.restype = [ctypes.c_void_p] * 4 + [ctypes.c_long], None
    xs = arguments(operator)
    stored = np.dtype(np.uint8) if operator.result == BOOL else operator.result
    found = np.zeros(len(xs[0]) + 128, stored)
    places = [x.ctypes.data for x in xs] + [0] * (3 - len(xs))
    function(found.ctypes.data, *places, len(xs[0]))
    singles = np.zeros((16, 1024), np.uint8)
    for k in range(min(16, len(xs[0]))):
        at = k * (len(xs[0]) // 16)
        function(singles[k].ctypes.data,
                 *[x[at:].ctypes.data for x in xs], *[0] * (3 - len(xs)), -1)
    return found[:len(xs[0])].tobytes() + singles[:, :stored.itemsize].tobytes()


def check_operations(operators: list[Operator], folder: Path, monkeypatch) -> None:
    source = vector_operations.HEAD + "".join(map(vector_operations._loop, operators))
    small, ours = (build(library, source, folder, monkeypatch) for library in LIBRARIES)
    differ = [operator.function for operator in operators
              if results(small, operator) != results(ours, operator)]
    assert not differ, f"{len(differ)} of {len(operators)} differ: {', '.join(differ)}"


def own_operators(dtype: np.dtype) -> list[Operator]:
    return [*{operator.function: operator
              for operator in vector_operations.operators(dtype)}.values()]


@needs_cc
def test_some_operations_give_the_same_bits(tmp_path, monkeypatch):
    some = ("exp", "pow", "div", "convert", "sin", "max", "eq", "shift_left", "round_half_even")
    operators = [operator for name in (np.float32, np.int32)
                 for operator in own_operators(np.dtype(name)) if operator.name in some]
    assert len(operators) > 20
    check_operations(operators, tmp_path, monkeypatch)


@needs_cc
@pytest.mark.extended
@pytest.mark.parametrize("dtype", vector_operations.dtypes_of_units(), ids=name_of)
def test_all_operations_give_the_same_bits(dtype, tmp_path, monkeypatch):
    check_operations(own_operators(dtype), tmp_path, monkeypatch)


# --- whole programs -------------------------------------------------------------------------------

RUN = """
import hashlib, sys
import numpy as np
import maxjax
from tests.golden import kernels
from tests.golden.programs import GOLDENS
from tests.mojo import pack_calls
from tests.support import mojo_programs
maxjax.config.update("compile", "always")
for name in sys.argv[1:]:
    golden, random = GOLDENS[name], np.random.default_rng(1)
    args = [random.standard_normal(x.shape).astype(x.dtype)
            if isinstance(x, np.ndarray) and x.dtype == np.float32 else x for x in golden.args]
    total = hashlib.sha256()
    for leaf in maxjax.tree.leaves(maxjax.jit(golden.function)(*args)):
        total.update(np.asarray(leaf).tobytes())
    print(name, total.hexdigest())
"""


def digests(library: str, names: list[str]) -> str:
    return subprocess.run(
        [sys.executable, "-c", RUN, *names], text=True, capture_output=True, check=True,
        timeout=900, cwd=ROOT, env={**os.environ, "MAXJAX_STANDARD_LIBRARY": library,
                                    "MAXJAX_BACKEND": "mojo", "PYTHONPATH": str(ROOT)}).stdout


def check_programs(names: list[str]) -> None:
    small, ours = (digests(library, names).splitlines() for library in LIBRARIES)
    assert len(small) == len(names) and small == ours


@needs_cc
def test_some_programs_give_the_same_bits():
    """Rows; test_all_programs_give_the_same_bits has columns, loops in registers, and others."""
    check_programs(["softmax.mojo"])


@needs_cc
@pytest.mark.extended
def test_all_programs_give_the_same_bits():
    check_programs([name for name in GOLDENS if name.endswith(".mojo")])


# --- the pack -------------------------------------------------------------------------------------

def test_all_of_the_pack_compiles_with_it():
    for unit in mojo_programs.pack().units:
        assert standard_library.applies(unit.source), unit.name
        assert b"maxjax_launch" in Path(unit.native._name).read_bytes(), unit.name


# Libraries whose functions run lists of calls or instructions: what they call are the others' and
# the operations above.
MACHINES = ("tape", "vector", "scalars", "collectives")


@pytest.mark.extended
def test_the_pack_gives_the_same_bits(tmp_path, monkeypatch):
    """The pack's own tests call each function of the pack as MAX's library compiles it, too."""
    units = [unit for unit in mojo_programs.pack().units
             if unit.name not in MACHINES and not unit.name.startswith("vector_")]
    with monkeypatch.context() as patch:
        patch.setenv("MAXJAX_STANDARD_LIBRARY", "max")
        for unit in units:
            build_library(unit.source, tmp_path / f"{unit.name}.so", pace=Pace(urgent=True))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0",
         *(f"tests/mojo/test_{name}.py"
           for name in ("pack", "pack_fourier", "pack_matmul", "pack_windows", "native",
                        "native_matrices")),
         "-k", "not test_within_bounds"],
        env={**os.environ, pack_calls.BESIDE: str(tmp_path)}, capture_output=True, text=True,
        cwd=ROOT, timeout=3000)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-2000:]}"
    called = set((tmp_path / "called").read_text().split())
    missed = {name for unit in units for name in unit.exports} - called
    assert missed == {"permutation_of_exchanges"}, missed     # of integers alone


# --- which library, and why -----------------------------------------------------------------------

@pytest.fixture
def fresh(monkeypatch):
    """Nothing is known of what this process has prepared."""
    monkeypatch.setattr(standard_library, "_checked", {})
    monkeypatch.setattr(standard_library, "_broken", None)
    monkeypatch.delenv("MAXJAX_STANDARD_LIBRARY", raising=False)


def made(source: str, folder: Path) -> str:
    """Which library has compiled a text."""
    output = folder / f"out-{os.urandom(4).hex()}.so"
    build_library(source, output, pace=Pace(urgent=True))
    ctypes.CDLL(str(output))
    return "small" if b"maxjax_launch" in output.read_bytes() else "max"


@needs_cc
def test_what_it_lacks_is_compiled_by_the_other(fresh, tmp_path, caplog):
    caplog.set_level(logging.INFO, "maxjax")
    assert made(HEADER + KERNEL.format(value="Exp.elementwise[DType.float32, 1](1)"),
                tmp_path) == "small"
    assert not caplog.records
    assert made(HEADER + "from std.math import sin\n" + KERNEL.format(value="sin(Float32(1))"),
                tmp_path) == "max"
    assert "as the small one lacks something" in caplog.text and standard_library.why_not() is None
    # Of which it knows from the imports.
    assert made(HEADER + "from kernels.window_tensors import *\n" + KERNEL.format(value="1"),
                tmp_path) == "max"
    assert len(caplog.records) == 1


@needs_cc
def test_the_other_compiles_what_the_first_program_asks_for(fresh, tmp_path):
    """Beside what was prepared just before, of which the launch of a kernel is a declaration only:
    a library that had it could not be loaded."""
    text = (HEADER + "from std.math import sin\n" + KERNEL.format(value="sin(Float32(1))") + """

def nothing(slots: Slots, args: Args, begin: Int, end: Int):
    pass


@export("launched")
def launched(slots: Slots, args: Args) abi("C"):
    launch(nothing, slots, args, 0)
""")
    assert made(text, tmp_path) == "max"
    ctypes.CDLL(str(next(tmp_path.glob("*.so"))), mode=os.RTLD_NOW)


@needs_cc
def test_an_error_is_that_of_the_other(fresh, tmp_path):
    with pytest.raises(toolchain.ToolchainError, match="unknown declaration 'nothing'") as caught:
        made(HEADER + KERNEL.format(value="nothing"), tmp_path)
    assert caught.value.kind == "rejected" and toolchain.SOURCE_NAME in caught.value.output
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("building")] == []


@pytest.mark.parametrize("damage", extended_but(
    ["cut"], ["cut", "missing", "no manifest", "no stand-in", "a file"]))
def test_a_damaged_folder_is_prepared_again(fresh, tmp_path, monkeypatch, damage):
    source = HEADER + KERNEL.format(value="1")
    assert made(source, tmp_path) == "small"
    folder, = tmp_path.glob("library-*")
    if damage == "cut":
        (folder / "kernels.mojoc").write_bytes((folder / "kernels.mojoc").read_bytes()[:1000])
    elif damage == "missing":
        (folder / "std.mojoc").unlink()
    elif damage == "no manifest":
        (folder / "manifest.json").unlink()
    elif damage == "no stand-in":
        shutil.rmtree(folder / "stand-in")
        monkeypatch.setenv("PATH", str(tmp_path))
    else:
        shutil.rmtree(folder)
        folder.write_text("")
    monkeypatch.setattr(standard_library, "_checked", {})
    assert made(source, tmp_path) == "small"


def test_two_prepare_it_at_once(fresh, tmp_path, monkeypatch):
    """The one that comes second takes what the first has left."""
    prepare = standard_library._prepare

    def overtaken(made_in, *rest):
        prepare(made_in, *rest)
        digest = f"library-{next(iter(seen))}"
        shutil.copytree(made_in, tmp_path / digest)

    monkeypatch.setattr(standard_library, "_prepare", lambda *rest: (prepare(*rest)))
    source = HEADER + KERNEL.format(value="1")
    made(source, tmp_path)
    folder, = tmp_path.glob("library-*")
    seen = {folder.name.removeprefix("library-")}
    shutil.rmtree(folder)
    monkeypatch.setattr(standard_library, "_prepare", overtaken)
    monkeypatch.setattr(standard_library, "_checked", {})
    assert made(source, tmp_path) == "small" and [folder] == [*tmp_path.glob("library-*")]


@needs_cc
def test_a_library_that_cannot_be_prepared(fresh, tmp_path, monkeypatch, caplog):
    empty = tmp_path / "sources"
    for package in standard_library.PACKAGES:
        (empty / package).mkdir(parents=True)
        (empty / package / "__init__.mojo").write_text("no mojo\n")
    monkeypatch.setattr(standard_library, "SOURCES", empty)
    assert made(HEADER + KERNEL.format(value="1"), tmp_path) == "max"
    assert "from now on" in caplog.text and standard_library.why_not() is not None
    assert made(HEADER + KERNEL.format(value="2"), tmp_path) == "max"
    assert len(caplog.records) == 1


@pytest.mark.parametrize("choice, reason", [
    ("no linker", "linker is missing"), ("another compiler", "was not tried with"),
    ("MAX's", "chooses MAX's"), ("a driver", "names another compiler")])
def test_where_it_is_not_used(fresh, tmp_path, monkeypatch, choice, reason):
    used = toolchain.identity(HEADER)
    if choice == "no linker":
        monkeypatch.setattr(standard_library, "linker", lambda: None)
    elif choice == "another compiler":
        monkeypatch.setattr(standard_library, "versions", lambda: "max 27.1, mojo_compiler 1.3.0")
    elif choice == "MAX's":
        monkeypatch.setenv("MAXJAX_STANDARD_LIBRARY", "max")
    else:
        monkeypatch.setenv("MODULAR_MOJO_MAX_DRIVER_PATH", str(tmp_path / "mojo"))
    assert reason in standard_library.why_not()
    assert not standard_library.applies(HEADER) and toolchain.identity(HEADER) != used


def test_a_choice_that_is_none(fresh, monkeypatch):
    monkeypatch.setenv("MAXJAX_STANDARD_LIBRARY", "mine")
    with pytest.raises(ValueError, match="needs to be 'small' or 'max'"):
        standard_library.why_not()


def test_no_c_compiler_is_needed(fresh, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert made(HEADER + KERNEL.format(value="1"), tmp_path) == "small"


def test_nothing_in_a_cache_leads_out_of_it(fresh, tmp_path):
    """Whoever writes to all files of a cache, or copies them, reaches no file of MAX."""
    assert made(HEADER + KERNEL.format(value="1"), tmp_path) == "small"
    assert [path for path in tmp_path.rglob("*") if path.is_symlink()] == []
