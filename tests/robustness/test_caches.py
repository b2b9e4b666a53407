"""Cache folders: what killed processes leave, clocks that jump, folders of administrators, folders
that others can exchange."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from maxjax._max import artifacts
from maxjax._max.artifacts import ArtifactCache
from maxjax._max.folder_locks import fresh_name

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs signals and locks")

# A process that writes something into a cache, for as long as its input is open.
WRITER = """
import sys
from pathlib import Path
from maxjax._max.artifacts import ArtifactCache
from maxjax._max.folder_locks import fresh_name
cache = ArtifactCache(Path(sys.argv[1]))
cache.incoming(".so").write_bytes(bytes(1000))
folder = cache.directory / fresh_name("building", cache.directory)
folder.mkdir()
(folder / "library.o").write_bytes(bytes(1000))
print("written", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def writer(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "cache")],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "written\n"
    yield process
    process.kill()
    process.communicate()


def left(cache):
    return sorted(path.name.partition("-")[0] for path in cache.directory.iterdir())


def test_what_a_killed_process_leaves_goes_at_the_next_start(writer, tmp_path):
    cache = ArtifactCache(tmp_path / "cache")
    assert left(cache) == ["building", "incoming", "process"]
    writer.send_signal(signal.SIGKILL)
    writer.wait(20)
    assert left(ArtifactCache(tmp_path / "cache")) == []


def test_a_clock_that_jumps_takes_nothing_from_the_living(writer, tmp_path):
    cache = ArtifactCache(tmp_path / "cache")
    for path in cache.directory.iterdir():
        os.utime(path, (1, 1))
    source = cache.incoming(".so")
    source.write_bytes(b"native code")
    cache.store(b"key", source, suffix=".so")
    assert left(ArtifactCache(tmp_path / "cache")).count("building") == 1
    assert left(cache).count("incoming") == 1


def test_what_is_being_written_counts(writer, tmp_path):
    cache = ArtifactCache(tmp_path / "cache", max_bytes=3000)
    for number in range(4):
        source = cache.incoming(".so")
        source.write_bytes(bytes(400))
        assert cache.store(b"key %d" % number, source, suffix=".so") is not None
    total = sum(path.stat().st_size for path in cache.directory.rglob("*") if path.is_file())
    assert total <= 3000 and cache.lookup(b"key 0") is None and cache.lookup(b"key 3") is not None


def test_names_of_another_folder_have_no_number(tmp_path):
    assert len(fresh_name("building", tmp_path)) == len("building-") + 24


def test_a_read_only_cache_is_read(tmp_path, monkeypatch):
    folder = tmp_path / "prepared"
    cache = ArtifactCache(folder)
    source = cache.incoming(".so")
    source.write_bytes(b"native code")
    stored = cache.store(b"key", source, suffix=".so")
    folder.chmod(0o555)
    access = os.access
    # Root may write everywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and access(path, mode))
    monkeypatch.setattr(artifacts, "_create", refuse)
    user = ArtifactCache(folder)
    assert not user.usable and user.prepared == folder and user.directory != folder
    assert user.lookup(b"key") == stored and user.lookup(b"another") is None
    folder.chmod(0o757)
    assert ArtifactCache(folder).prepared is None
    folder.chmod(0o755)


def refuse(path):
    raise PermissionError(13, "Permission denied")


@pytest.mark.parametrize(("mode", "refused"), [
    (0o777, True), (0o757, True), (0o1777, False), (0o755, False), (0o700, False)])
def test_a_folder_that_others_can_exchange_is_refused(mode, refused, tmp_path):
    outer = tmp_path / "outer"
    (outer / "inner").mkdir(parents=True)
    outer.chmod(mode)
    for folder in (outer / "cache", outer / "inner" / "cache"):
        cache = ArtifactCache(folder)
        assert cache.usable is not refused
        assert not refused or "writable by other users" in cache.reason
    outer.chmod(0o700)
