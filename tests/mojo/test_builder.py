"""The detached builder: it outlives processes, and nothing outlives it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from maxjax._base import config
from maxjax._max.artifacts import ArtifactCache
from maxjax._max.folder_locks import builder_lock
from maxjax._max.mojo import detached, toolchain
from maxjax._max.mojo.emitter import HEADER
from maxjax._max.mojo.pack_library import Pack
from maxjax._max.mojo.store import KernelStore, Libraries
from tests import ROOT
from tests.mojo.fake_compiler import SOURCES, forked, leftovers
from tests.support.waiting import alive

pytestmark = [
    pytest.mark.usefixtures("nearly_complete"),
    pytest.mark.xdist_group("mojo"),
    pytest.mark.skipif(sys.platform != "linux", reason="looked at with Linux's means")]

START = "assert detached.start(tiering.mojo.pack.libraries.cache)"
QUEUE = "tiering.mojo.store.request(SOURCES[:3], print)"


def run(cache: ArtifactCache, body: str, **environment: str) -> str:
    """What a script prints, run in a process of its own that may leave a builder."""
    script = ("from maxjax._max.mojo import detached\nfrom maxjax._runtime.tiering import tiering\n"
              "from tests.mojo.fake_compiler import SOURCES\n") + textwrap.dedent(body)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120,
        env={**os.environ, "MAXJAX_CACHE_DIR": str(cache.directory), "PYTHONPATH": str(ROOT),
             "MAXJAX_DETACHED_BUILDS": "1", **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def builders(cache: ArtifactCache) -> list[int]:
    """The builders that work for the folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"maxjax._max.mojo.builder" in (process / "cmdline").read_bytes() \
                    and f"MAXJAX_CACHE_DIR={cache.directory}".encode() in (
                        process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
        except OSError:
            continue
    return [pid for pid in found if alive(pid)]


def eventually(condition: Callable[[], object]) -> None:
    """Waits for what another process does, on a machine that may be busy."""
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


@pytest.fixture(autouse=True)
def ended(cache, compiler):
    """Whatever a test did, its builder and its compilers end with its folder."""
    yield
    shutil.rmtree(cache.directory, ignore_errors=True)
    eventually(lambda: not builders(cache))
    eventually(lambda: not any(map(alive, compiler.runs)))
    assert not cache.directory.exists()


@pytest.fixture
def gate(tmp_path, compiler) -> Path:
    """Compilers wait until this file is there."""
    compiler.does(f'until [ -e {tmp_path}/gate ]; do sleep 0.05; done\ncp "$library" "$out"')
    return tmp_path / "gate"


def is_complete(cache: ArtifactCache) -> bool:
    return not Pack(cache, prebuilt=None).missing()


def test_it_outlives_the_process_that_started_it_and_ends(cache, compiler, gate):
    run(cache, START)
    eventually(lambda: compiler.runs)
    (builder,) = builders(cache)
    assert os.getsid(builder) == builder and os.getpriority(os.PRIO_PROCESS, builder) == os.nice(0)
    assert {os.readlink(f"/proc/{builder}/fd/{number}") for number in range(3)} == {"/dev/null"}
    assert os.getpriority(os.PRIO_PROCESS, compiler.runs[0]) == os.nice(0)
    assert detached.works(cache) and not is_complete(cache)
    gate.touch()
    eventually(lambda: not alive(builder))
    assert is_complete(cache) and not detached.works(cache) and leftovers(cache) == []
    assert len(compiler.runs) == 3 and not any(map(alive, compiler.runs))


def test_what_a_process_had_queued_is_there_for_the_next(cache, compiler, gate):
    run(cache, QUEUE)
    eventually(lambda: builders(cache))
    gate.touch()
    eventually(lambda: not builders(cache))
    assert len(KernelStore(HEADER, ArtifactCache(cache.directory)).find(SOURCES)) == 3
    assert is_complete(cache) and cache.requests() == [] and leftovers(cache) == []


def test_a_process_uses_what_the_builder_has_built(cache, compiler):
    said = run(cache, """
        import time
        pack = tiering.mojo.pack
        print(pack.request_once(lambda error: print(error)), pack.request_once())
        deadline = time.monotonic() + 60
        while not pack.ready and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1)
        from maxjax._max.mojo.toolchain import _running
        print(pack.ready, len(_running))
        """)
    assert said.split() == ["True", "False", "None", "True", "0"]
    assert len(compiler.runs) == 3


def test_there_is_one_for_a_folder(cache, compiler, gate):
    scripts = [subprocess.Popen(
        [sys.executable, "-c", "from maxjax._runtime.tiering import tiering\n"
         "from maxjax._max.mojo import detached\n" + START],
        env={**os.environ, "MAXJAX_CACHE_DIR": str(cache.directory), "PYTHONPATH": str(ROOT),
             "MAXJAX_DETACHED_BUILDS": "1"}) for _ in range(3)]
    assert [script.wait(60) for script in scripts] == [0, 0, 0]
    eventually(lambda: compiler.runs)
    time.sleep(1)
    assert len(builders(cache)) == 1 and len(compiler.runs) <= 2


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_builder_that_is_killed_leaves_nothing_broken(cache, compiler, gate, how):
    run(cache, START)
    eventually(lambda: compiler.runs)
    (builder,) = builders(cache)
    os.kill(builder, how)
    eventually(lambda: not alive(builder) and not any(map(alive, compiler.runs)))
    eventually(lambda: not detached.works(cache))
    if how == signal.SIGTERM:
        assert leftovers(cache) == []
    gate.touch()
    run(cache, START)
    eventually(lambda: is_complete(cache) and not builders(cache))


def test_a_folder_that_is_removed_ends_it(cache, compiler, gate):
    run(cache, START)
    eventually(lambda: compiler.runs)
    (builder,) = builders(cache)
    shutil.rmtree(cache.directory)
    eventually(lambda: not alive(builder) and not any(map(alive, compiler.runs)))
    assert not cache.directory.exists()


@pytest.mark.parametrize("commands", [
    "echo 'LLVM ERROR: IO failure: No space left on device'; exit 1",
    "echo 'error: unable to find suitable c compiler'; exit 1"])
def test_it_ends_where_nothing_can_be_built(cache, compiler, commands):
    compiler.does(commands)
    run(cache, START)
    eventually(lambda: compiler.runs and not builders(cache))
    assert len(compiler.runs) <= 2 and leftovers(cache) == []


def test_it_ends_where_nothing_can_be_kept(tmp_path, compiler):
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", str(disk)],
            capture_output=True).returncode:
        pytest.skip("needs mount")
    full = ArtifactCache(disk)
    try:
        run(full, START)
        eventually(lambda: compiler.runs and not builders(full))
        assert len(compiler.runs) <= 2 and leftovers(full) == []
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_somebody_who_waits_builds_beside_it_and_nothing_twice(cache, compiler, gate):
    run(cache, START)
    eventually(lambda: compiler.runs)
    waiting = threading.Thread(target=Pack(cache, prebuilt=None).build)
    waiting.start()
    eventually(lambda: len(compiler.runs) > 1)
    gate.touch()
    waiting.join(120)
    eventually(lambda: not builders(cache))
    assert is_complete(cache) and len(compiler.runs) == 3 and leftovers(cache) == []


def test_a_child_of_one_who_builds_holds_nothing(cache):
    libraries, key = Libraries(cache), b"a key"
    with libraries.locked([key]):
        assert forked(lambda: not libraries._held and cache.key_lock(key).is_held())
    assert not cache.key_lock(key).is_held() and leftovers(cache) == []


def test_where_there_is_none(cache, compiler, monkeypatch, tmp_path):
    with config.detached_builds(False):
        assert not detached.start(cache)
    (tmp_path / "file").write_text("")
    with config.detached_builds(True), monkeypatch.context() as patch:
        patch.setenv("MAXJAX_CACHE_DIR", str(tmp_path / "file"))
        assert not detached.start(ArtifactCache())
        patch.setattr(sys, "executable", str(tmp_path / "no-python"))
        assert not detached.start(cache)
        patch.setattr(toolchain, "_LINKER", "no-such-linker")
        assert not detached.start(cache) and not detached.works(cache)
    run(cache, QUEUE, MAXJAX_DETACHED_BUILDS="0")
    run(cache, QUEUE, MAXJAX_DETACHED_BUILDS="", CI="true")
    assert not builders(cache) and cache.requests() == [] and not detached.works(cache)


def test_requests_are_bounded_and_checked(cache):
    texts = [f"text {number}" for number in range(1000)]
    request = detached.Request.of("header", texts)
    assert [kernel.source for kernel in request.kernels] == texts[:detached.MOST_KERNELS]
    (only,) = detached.Request.of("header", ["x" * detached.MOST_TEXT, "y"]).kernels
    assert only.source == "x" * detached.MOST_TEXT
    assert detached.Request.read(request.content) == request
    for damaged in (b"", request.content[:-1], b"[1, 2, [3]]", b'["a", "b", ["c"]]', b"{}",
                    b"\xff"):
        assert detached.Request.read(damaged) is None
    for number in range(40):
        assert cache.leave_request(str(number).encode())
    kept = cache.requests()
    assert len(kept) == 16 and cache.take_request(kept[-1]) == b"39"
    kept[0].chmod(0o666)
    assert cache.take_request(kept[0]) is None and len(cache.requests()) == 14
    cache.clear()
    assert cache.requests() == []


def test_damaged_requests_do_not_stop_it(cache, compiler):
    for content in (b"", b"[1, 2, 3]", detached.Request("another", HEADER, ()).content,
                    detached.Request.of(HEADER, SOURCES[:1]).content):
        assert cache.leave_request(content)
    run(cache, START)
    eventually(lambda: not builders(cache) and not cache.requests())
    assert len(KernelStore(HEADER, ArtifactCache(cache.directory)).find(SOURCES)) == 1


def test_the_lock_can_be_looked_at(cache):
    lock = builder_lock(cache.directory)
    assert not lock.is_held() and lock.acquire()
    assert lock.is_held() and lock.is_current() and detached.works(cache)
    lock.path.unlink()
    assert not lock.is_current()
    other = builder_lock(cache.directory)
    assert other.acquire()
    lock.release()      # it leaves the other's file alone
    assert other.is_current() and other.is_held()
    other.release()
    assert leftovers(cache) == []


@pytest.mark.parametrize("written", [True, False])
def test_it_writes_bytecode_where_the_program_does(tmp_path, monkeypatch, written):
    started = []

    def refuse(command, **_):
        started.append(command)
        raise OSError("no process is started here")

    monkeypatch.setattr(sys, "dont_write_bytecode", not written)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert not detached._start(ArtifactCache(tmp_path), 0)
    assert ("-B" in started[0]) is not written
