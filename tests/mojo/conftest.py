"""Fixtures of the tests that build libraries, and of those that call native functions."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from maxjax._base import native
from maxjax._base.config import compile_mode
from maxjax._max.artifacts import ArtifactCache
from maxjax._max.mojo.pack_library import Pack
from maxjax._max.mojo.store import KernelStore
from maxjax._runtime.native_functions import functions as installed
from tests.mojo.fake_compiler import SOURCES, Compiler, apply
from tests.mojo.native_calls import Calls
from tests.support import mojo_programs


@pytest.fixture(scope="session")
def prepared(tmp_path_factory) -> Path:
    """A real library of all kernels, built once."""
    fresh = KernelStore(cache=ArtifactCache(tmp_path_factory.mktemp("real") / "cache"))
    fresh.workers = 1
    assert fresh.build(SOURCES) is None
    assert apply(fresh.find(SOURCES)[SOURCES[3]]) == [3.0] * 4
    return next(fresh.libraries.cache.directory.glob("*.so"))


@pytest.fixture(scope="session")
def own_pack() -> None:
    """Nothing is left to build for this process's own cache, where a false compiler must not."""
    mojo_programs.pack()


@pytest.fixture
def compiler(tmp_path, tmp_path_factory, prepared, own_pack, monkeypatch) -> Compiler:
    if shutil.which("cc") is None:      # which is looked for, and is never called
        folder = tmp_path_factory.mktemp("cc")
        (folder / "cc").symlink_to(sys.executable)
        monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return Compiler(tmp_path, prepared, monkeypatch)


@pytest.fixture
def cache(tmp_path) -> ArtifactCache:
    return ArtifactCache(tmp_path / "cache")


@pytest.fixture
def nearly_complete(cache, prepared) -> None:
    """All of the pack but three libraries is in the cache: something stands for it."""
    for unit in Pack(cache, prebuilt=None).units[3:]:
        output = cache.incoming(".so")
        shutil.copy(prepared, output)
        assert cache.store(unit.key, output, suffix=".so") is not None


@pytest.fixture
def restored():
    yield
    native.install(installed)


@pytest.fixture(scope="module")
def provider() -> Calls:
    return Calls()


@pytest.fixture
def calls(provider, monkeypatch, restored):
    """Native functions from the first element on, and from there on threads."""
    monkeypatch.setattr(native, "FEWEST", 1)
    monkeypatch.setattr(native, "COLUMNS", 2)
    monkeypatch.setattr(native, "WIDE_COLUMNS", 2)
    monkeypatch.setattr(native, "SET_WIDTHS", range(2, 100))
    monkeypatch.setattr(native, "LEAST", {
        kind: dict.fromkeys(table, 0) for kind, table in native.LEAST.items()})
    monkeypatch.setattr(native, "PARALLEL", 1000)
    provider.names.clear()
    native.install(provider)
    with compile_mode("auto"):
        yield provider.names
