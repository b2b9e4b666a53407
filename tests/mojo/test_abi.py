"""What Python and Mojo agree on is one table, and a change of it builds anew what depends on it."""

from __future__ import annotations

import re
import shutil

import pytest

pytest.importorskip("max.engine")

from maxjax._max import kernel_digest
from maxjax._max.mojo import (
    abi,
    executable,
    pack_exports,
    standard_library,
    toolchain,
    vector_operations,
)
from maxjax._max.mojo.emitter import HEADER
from maxjax._max.mojo.layout import KernelLayout
from maxjax._max.mojo.pack_library import SOURCES, Pack

KERNEL = f"{HEADER}\n"
DEFINED = re.compile(r"^comptime (\w+) = ", re.MULTILINE)


@pytest.fixture(scope="module", autouse=True)
def written_once():
    """The texts of the vector machine's operations, in which no constant is: they are long."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("units", "singles_text"):
            text = getattr(vector_operations, name)()
            patch.setattr(vector_operations, name, lambda text=text: text)
        yield


def texts() -> dict[str, str]:
    return {unit.name: unit.source for unit in Pack(prebuilt=None).units}


def file_of(unit: str) -> str:
    return (SOURCES / f"{unit}.mojo").read_text(encoding="utf-8")


def test_kernels_have_what_the_table_says():
    text = (kernel_digest.PACKAGE / "abi.mojo").read_text(encoding="utf-8")
    assert text == abi.kernels(), "run `python -m tools.write_abi`"


@pytest.mark.parametrize("operands", (0, 1, 2, 7))
def test_positions_of_a_kernels_integers(operands):
    layout, table = KernelLayout(operands), abi.KERNELS
    names = ("threads", "items", "length", "pieces", "rows")
    assert layout.place(operands) == table["PLACE"] * operands
    for name in names:
        assert getattr(layout, name) == table["PLACE"] * operands + table[f"AT_{name.upper()}"]
    assert layout.stride(0) == table["PLACE"] * operands + table["AT_STRIDES"]


@pytest.mark.parametrize("layout, read", (
    (abi.ArrayObject(), True),
    (abi.ArrayObject(data=32), False),
    (abi.ArrayObject(flags=68), False),
    (abi.ArrayObject(32, 80), False),       # as in free-threaded Python
    (abi.ArrayObject(flags=1 << 40), False)))
def test_arrays_of_another_layout_are_not_read(layout, read, monkeypatch):
    assert executable._reads_arrays(layout) == read
    monkeypatch.setattr(executable, "ArrayObject", lambda: layout)
    if read:
        executable.runner(0)
    else:
        with pytest.raises(RuntimeError, match="laid out in another way in this interpreter"):
            executable.runner(0)


@pytest.mark.parametrize("unit", abi.PACK)
def test_a_file_of_the_pack_has_no_constant_of_the_table_itself(unit):
    assert not {*DEFINED.findall(file_of(unit))} & abi.PACK[unit].keys()


@pytest.mark.parametrize("unit, opcodes", (
    ("vector", abi.VECTOR_OPCODES), ("scalars", abi.SCALAR_OPCODES)))
def test_a_machine_knows_all_opcodes(unit, opcodes):
    """The last one may be what is left."""
    compared = {*re.findall(r"kind == (\w+):", file_of(unit))}
    names = {name.upper() for name in opcodes}
    assert compared <= names | abi.PACK[unit].keys() and len(names - compared) <= 1


@pytest.mark.parametrize("unit", pack_exports.FAMILIES)
def test_what_the_table_exports_no_file_exports_itself(unit):
    families = pack_exports.FAMILIES[unit]
    names = [name for family in families for name in family.calls]
    assert len(names) == len({*names})
    own, text = file_of(unit), texts()[unit]
    for name in names:
        assert f"def {name}(" not in own
        assert text.count(f'@export("{name}")\n') == 1


@pytest.mark.parametrize("unit", abi.PACK)
def test_a_constant_of_one_file_changes_the_digest_of_that_library_alone(unit, monkeypatch):
    before = {name: toolchain.identity(text) + text for name, text in texts().items()}
    name = next(name for name, value in abi.PACK[unit].items() if isinstance(value, int))
    monkeypatch.setitem(abi.PACK[unit], name, 77)
    after = {name: toolchain.identity(text) + text for name, text in texts().items()}
    assert {name for name in before if before[name] != after[name]} == {unit}


def _forget() -> None:
    for function in (kernel_digest.kernels, kernel_digest._digest_of, kernel_digest._file,
                     standard_library._digest, standard_library._parts,
                     standard_library._has_all_of):
        function.cache_clear()


@pytest.mark.parametrize("library", ("small", "max"))
def test_a_limit_changes_the_digest_of_all_that_reads_it(library, tmp_path, monkeypatch):
    """With MAX's library of all that imports it, directly or not; the small one is one package of
    all kernels, whose change builds all of them anew."""
    monkeypatch.setenv("MAXJAX_STANDARD_LIBRARY", library)
    aside = "from kernels.trigonometric import sin_cos\n"
    assert "abi" in kernel_digest.reached(KERNEL) and "abi" not in kernel_digest.reached(aside)
    before = {text: toolchain.identity(text) for text in (*texts().values(), KERNEL)}
    alone = kernel_digest.kernels(aside)
    shutil.copytree(kernel_digest.PACKAGE, tmp_path / "kernels")
    monkeypatch.setitem(abi.KERNELS, "MOST_DIMENSIONS", 15)
    (tmp_path / "kernels" / "abi.mojo").write_text(abi.kernels(), encoding="utf-8")
    try:
        with monkeypatch.context() as patch:
            patch.setattr(kernel_digest, "PACKAGE", tmp_path / "kernels")
            _forget()
            assert all(toolchain.identity(text) != identity for text, identity in before.items())
            assert kernel_digest.kernels(aside) == alone
    finally:
        _forget()
    assert all(toolchain.identity(text) == identity for text, identity in before.items())
