"""``python -m maxjax --version``, ``--doctor`` and ``--prepare``."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading

import jax
import numpy as np
import pytest

import maxjax
from maxjax._max.artifacts import ArtifactCache
from maxjax._max.mojo import crew, standard_library
from maxjax._max.mojo.pack_library import Pack
from maxjax._runtime.tiering import tiering
from tests import ROOT
from tests.mojo.fake_compiler import DRIVER, leftovers

pytestmark = [
    pytest.mark.xdist_group("mojo"),
    pytest.mark.skipif(sys.platform != "linux", reason="provoked with Linux's means")]


def run(option: str, cache: ArtifactCache, **environment: str) -> tuple[int, str]:
    """The exit status of ``python -m maxjax`` with an option, and what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "maxjax", option], text=True, timeout=120,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "MAXJAX_CACHE_DIR": str(cache.directory), "PYTHONPATH": str(ROOT),
             **environment})
    return done.returncode, done.stdout


def test_version_names_what_is_installed(cache):
    status, said = run("--version", cache)
    assert status == 0 and len(said.splitlines()) == 1
    for word in (f"maxjax {maxjax.__version__}", f"JAX {jax.__version__}",
                 f"NumPy {np.__version__}", "max 26.7"):
        assert word in said


def test_the_pack_is_prepared(cache, compiler, nearly_complete):
    status, said = run("--doctor", cache)
    assert status == 0 and "BROKEN" not in said, said
    many = len(Pack(cache).units)
    assert f"{many - 3} of {many} libraries are there" in said
    status, said = run("--prepare", cache)
    first, second, third, built, ready = said.splitlines()
    assert status == 0 and {line.split()[0] for line in (first, second, third)} == {
        "1/3", "2/3", "3/3"}, said
    assert f"built 3 of {many} libraries" in built and str(cache.directory) in ready
    assert len(compiler.runs) == 3
    status, said = run("--prepare", cache)
    assert status == 0 and said.splitlines() == [ready] and len(compiler.runs) == 3
    status, said = run("--doctor", cache)
    assert status == 0 and f"all {many} libraries: {many} in {cache.directory}" in said
    assert leftovers(cache) == []


def test_progress_on_a_terminal(cache, compiler, nearly_complete):
    compiler.does('sleep 1; cp "$library" "$out"')
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "maxjax", "--prepare"], stdout=theirs, stderr=theirs,
        env={**os.environ, "MAXJAX_CACHE_DIR": str(cache.directory), "PYTHONPATH": str(ROOT)})
    os.close(theirs)
    said = bytearray()

    def listen() -> None:
        try:
            while chunk := os.read(ours, 4096):
                said.extend(chunk)
        except OSError:     # the terminal is closed
            pass

    listener = threading.Thread(target=listen)
    listener.start()
    assert process.wait(120) == 0
    listener.join(60)
    os.close(ours)
    assert b"building the kernel pack: 0 of 3 libraries" in said
    assert b"the kernel pack is ready" in said


@pytest.mark.parametrize("how, what, remedy", [
    ("linker", "BROKEN compiler  no C compiler", "install a C compiler"),
    ("compiler", "BROKEN compiler  no Mojo compiler", "pip install max"),
    ("cache", "BROKEN cache", "MAXJAX_CACHE_DIR names another folder")])
def test_what_is_broken(cache, compiler, nearly_complete, tmp_path, how, what, remedy):
    broken = {"linker": {"PATH": str(tmp_path)}, "compiler": {DRIVER: str(tmp_path / "none")},
              "cache": {"MAXJAX_CACHE_DIR": f"{compiler.path}/cache"}}[how]
    status, said = run("--doctor", cache, **broken)
    assert status == 1 and what in said and remedy in said, said
    status, said = run("--prepare", cache, **broken)
    assert status == 1 and len(said.splitlines()) <= 2 and "kernel pack" in said, said


class _PackThatIsMissing:
    """What tiering asks of a pack of which seven of 27 libraries are there."""

    units, requested, estimate = range(27), False, staticmethod(Pack.estimate)

    def missing(self):
        return range(20)

    def request_once(self, done):
        self.requested = True
        return True


def test_the_first_request_of_the_pack_is_said_once(monkeypatch, caplog):
    monkeypatch.setattr(crew, "cores", lambda: 2)
    monkeypatch.setattr(standard_library, "why_not", lambda: "it is not known")
    monkeypatch.setattr(tiering.mojo, "pack", _PackThatIsMissing())
    for _ in range(2):
        tiering._request_pack()
    (record,) = caplog.records
    assert record.name == "maxjax" and record.getMessage() == (
        "building the kernel library in the background, once on this machine: 7 of 27 parts are "
        "there, the rest takes about a minute. Your program goes on, on NumPy meanwhile")


def test_estimates_are_in_words(monkeypatch):
    monkeypatch.setattr(crew, "cores", lambda: 1)
    for why, words in (("it is not known", ["about a minute", "about 3 minutes"]),
                       (None, ["less than a minute", "less than a minute"])):
        monkeypatch.setattr(standard_library, "why_not", lambda why=why: why)
        assert [Pack.estimate(count) for count in (1, 9, 27)] == ["less than a minute", *words]
