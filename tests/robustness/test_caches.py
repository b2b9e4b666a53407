"""Cache folders: what killed processes leave, clocks that jump, folders of administrators, folders
that others can exchange."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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
    writer.wait(120)
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


def as_another_user(folder, then):
    """What a process of a user of no rights says of a folder."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            os.write(write, repr(then(ArtifactCache(folder))).encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read) as said:
        text = said.read()
    os.waitpid(child, 0)
    return text


@pytest.mark.skipif(not hasattr(os, "fork") or os.geteuid() != 0, reason="becomes another user")
@pytest.mark.parametrize(("mode", "is_read"), [(0o755, True), (0o700, False), (0o711, False)])
def test_who_may_read_the_folder_reads_what_was_prepared(mode, is_read):
    with tempfile.TemporaryDirectory() as outer:
        os.chmod(outer, 0o755)
        folder = Path(outer) / "cache"
        folder.mkdir(mode)
        cache = ArtifactCache(folder)
        for key in (b"pack", b"own"):
            source = cache.incoming(".so")
            source.write_bytes(b"native code " + key)
            cache.store(key, source, suffix=".so")
        keys = {name: hashlib.sha256(name).hexdigest() for name in (b"pack", b"own")}
        looks = lambda user: [user.lookup(b"pack") is not None, user.lookup(b"own") is not None]
        assert as_another_user(folder, looks) == "[False, False]"
        assert cache.open_to_readers([b"pack", b"nothing"]) is is_read
        assert as_another_user(folder, looks) == str([is_read, False])
        if is_read:
            assert as_another_user(folder, ArtifactCache.unreadable) == "2"
        modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
        assert modes[f"{keys[b'own']}.key"] == 0o600
        assert modes[f"{keys[b'pack']}.key"] == (0o644 if is_read else 0o600)
        assert cache.lookup(b"pack") is not None and cache.lookup(b"own") is not None


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


@pytest.mark.parametrize("way", ["link", "link of a link", "relative link", "up and down"])
def test_a_link_does_not_hide_such_a_folder(way, tmp_path):
    """What is checked is all that the path leads through, as homes often link to a shared disk."""
    disk, home = tmp_path / "disk", tmp_path / "home"
    (disk / "mine").mkdir(parents=True)
    home.mkdir()
    link = home / "caches"
    if way == "link of a link":
        (home / "first").symlink_to(disk / "mine")
        link.symlink_to(home / "first")
    elif way == "relative link":
        link.symlink_to("../disk/mine")
    elif way == "link":
        link.symlink_to(disk / "mine")
    folder = disk / "mine" / ".." / "mine" / "cache" if way == "up and down" else link / "cache"
    assert ArtifactCache(folder).usable
    disk.chmod(0o777)
    cache = ArtifactCache(folder)
    assert not cache.usable and f"{disk}, in which" in cache.reason
    disk.chmod(0o700)


@pytest.mark.skipif(os.geteuid() != 0, reason="makes another user's files")
def test_a_link_of_another_user_is_refused(tmp_path):
    """He can make it lead elsewhere, also where a sticky folder keeps his hands off the others'."""
    (tmp_path / "mine").mkdir(mode=0o700)
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "link").symlink_to(tmp_path / "mine")
    assert ArtifactCache(shared / "link" / "cache").usable
    os.chown(shared / "link", 65534, 65534, follow_symlinks=False)
    cache = ArtifactCache(shared / "link" / "cache")
    assert not cache.usable and "belongs to another user" in cache.reason


def test_links_in_a_circle(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert not ArtifactCache(tmp_path / "a" / "cache").usable


# --- what stands in the place of a file -----------------------------------------------------------
def link(path, elsewhere):
    path.unlink()
    path.symlink_to(elsewhere)


def pipe(path, elsewhere):
    path.unlink()
    os.mkfifo(path)


def folder(path, elsewhere):
    path.unlink()
    path.mkdir()


def writable(path, elsewhere):
    path.chmod(0o666)


def of_another(path, elsewhere):
    if os.geteuid() != 0:
        pytest.skip("makes another user's files")
    os.chown(path, 65534, 65534)


def endless(path, elsewhere):
    """A file of holes alone, of more bytes than there is memory."""
    os.truncate(path, 1 << 40)


@pytest.mark.parametrize("which", ["entry", "artifact"])
@pytest.mark.parametrize("kind", [link, pipe, folder, writable, of_another, endless])
def test_what_is_no_file_of_this_user_is_a_miss(kind, which, tmp_path):
    cache = ArtifactCache(tmp_path / "cache")
    source = cache.incoming(".so")
    source.write_bytes(b"native code")
    artifact = cache.store(b"key", source, suffix=".so")
    entry = cache.directory / f"{hashlib.sha256(b'key').hexdigest()}.key"
    elsewhere = tmp_path / "elsewhere"
    path = artifact if which == "artifact" else entry
    elsewhere.write_bytes(path.read_bytes())
    kind(path, elsewhere)
    started = time.monotonic()
    assert ArtifactCache(tmp_path / "cache").lookup(b"key") is None
    assert cache.lookup(b"key") is None     # also by who has seen it before
    assert time.monotonic() - started < 60      # it neither waits for a writer nor reads it all
    assert elsewhere.exists()
