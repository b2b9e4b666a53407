"""The artifact cache: stored artifacts come back, damaged or foreign ones never do."""

import errno
import multiprocessing
import os
import stat
import time
from pathlib import Path

import pytest

from maxjax._max import artifacts
from maxjax._max.artifacts import ArtifactCache, default_directory

KEY = b"program text\nmax 26.7.0\nlinux x86_64\x00"


@pytest.fixture
def cache(tmp_path: Path) -> ArtifactCache:
    return ArtifactCache(tmp_path / "cache", max_bytes=1 << 20)


def put(cache: ArtifactCache, key: bytes = KEY, content: bytes = b"native code") -> Path:
    source = cache.incoming()
    source.write_bytes(content)
    stored = cache.store(key, source)
    assert stored is not None and not source.exists()
    return stored


def again(cache: ArtifactCache) -> ArtifactCache:
    """A cache of the same folder as another process sees it: with no digest checked yet."""
    return ArtifactCache(cache.directory, cache.max_bytes)


def files(cache: ArtifactCache, suffix: str = "") -> list[Path]:
    return sorted(path for path in cache.directory.iterdir() if path.name.endswith(suffix)
                  and not path.name.startswith("process-"))


def test_what_is_stored_comes_back(cache):
    assert cache.lookup(KEY) is None
    stored = put(cache)
    assert cache.lookup(KEY) == stored == again(cache).lookup(KEY)
    assert stored.read_bytes() == b"native code"
    assert cache.lookup(KEY + b" ") is None
    assert cache.lookup(b"") is None


def test_a_file_from_elsewhere_is_moved_in(cache, tmp_path):
    source = tmp_path / "program.mef"
    source.write_bytes(b"code")
    assert cache.store(KEY, source).read_bytes() == b"code"
    assert not source.exists()


def test_a_later_artifact_of_the_same_key_replaces_the_former(cache):
    put(cache, content=b"one")
    put(cache, content=b"two")
    assert again(cache).lookup(KEY).read_bytes() == b"two"


def test_only_the_user_may_look(cache):
    put(cache)
    assert stat.S_IMODE(cache.directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in files(cache)} == {0o600}


def test_keys_with_one_hash_are_told_apart(cache, monkeypatch):
    put(cache)
    entry, artifact = files(cache, ".key")[0], files(cache, ".mef")[0]
    other = b"p" * len(KEY)
    name = artifacts.hashlib.sha256(other).hexdigest()
    os.rename(entry, cache.directory / f"{name}.key")
    os.rename(artifact, cache.directory / artifact.name.replace(artifact.name[:64], name))
    assert cache.lookup(other) is None


@pytest.mark.parametrize("content", [b"", b"native", b"native codE", b"native code and more"])
def test_a_damaged_artifact_is_removed(cache, content):
    put(cache).write_bytes(content)
    fresh = again(cache)
    assert fresh.lookup(KEY) is None
    assert files(fresh) == []
    put(fresh)
    assert fresh.lookup(KEY) is not None


def test_an_artifact_changed_under_a_running_process_is_checked_again(cache):
    stored = put(cache)
    assert cache.lookup(KEY) == stored
    stored.write_bytes(b"other codes")
    os.utime(stored, ns=(1, 1))
    assert cache.lookup(KEY) is None


@pytest.mark.parametrize("content", [
    b"", b"not json\n", b"[]\n", b"{}\n", b'{"format": 1, "digest": 3, "size": 1, "key_size": 0}\n',
    b'{"format": 1, "digest": "' + b"0" * 64 + b'", "size": 11, "key_size": 5}\nprog',
])
def test_a_damaged_entry_is_a_miss(cache, content):
    put(cache)
    files(cache, ".key")[0].write_bytes(content)
    assert again(cache).lookup(KEY) is None
    put(cache)
    assert again(cache).lookup(KEY) is not None


def test_an_entry_cut_short_is_removed(cache):
    put(cache)
    entry = files(cache, ".key")[0]
    entry.write_bytes(entry.read_bytes()[:-3])
    assert again(cache).lookup(KEY) is None
    assert not entry.exists()


def test_a_missing_artifact_is_a_miss(cache):
    put(cache).unlink()
    assert cache.lookup(KEY) is None
    assert files(cache) == []


@pytest.mark.parametrize("suffix", [".key", ".mef"])
def test_links_are_removed_and_not_followed(cache, tmp_path, suffix):
    put(cache)
    path = files(cache, suffix)[0]
    target = tmp_path / "target"
    os.rename(path, target)
    path.symlink_to(target)
    assert again(cache).lookup(KEY) is None
    assert not os.path.lexists(path) and target.exists()


@pytest.mark.parametrize("suffix", [".key", ".mef"])
def test_a_directory_or_a_fifo_in_a_files_place_is_a_miss(cache, suffix):
    put(cache)
    path = files(cache, suffix)[0]
    path.unlink()
    os.mkfifo(path)
    assert again(cache).lookup(KEY) is None
    put(cache)
    path.unlink(missing_ok=True)
    path.mkdir(exist_ok=True)
    assert again(cache).lookup(KEY) is None


@pytest.mark.parametrize("suffix", [".key", ".mef"])
def test_a_file_that_others_may_write_is_a_miss(cache, suffix):
    put(cache)
    files(cache, suffix)[0].chmod(0o666)
    assert again(cache).lookup(KEY) is None


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs chown")
@pytest.mark.parametrize("suffix", [".key", ".mef"])
def test_a_foreign_file_is_a_miss_and_stays(cache, suffix):
    put(cache)
    path = files(cache, suffix)[0]
    os.chown(path, 12345, 12345)
    assert again(cache).lookup(KEY) is None
    assert path.exists()
    put(cache)
    assert again(cache).lookup(KEY) is not None or suffix == ".mef"


def test_what_another_user_left_is_a_miss(cache, monkeypatch):
    put(cache)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert cache.lookup(KEY) is None
    assert len(files(cache)) == 2


def test_a_foreign_folder_is_not_used(tmp_path, monkeypatch):
    (tmp_path / "cache").mkdir()
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    cache = ArtifactCache(tmp_path / "cache")
    assert not cache.usable and "belongs to another user" in cache.reason
    assert cache.directory != tmp_path / "cache"


def check_fallback(cache: ArtifactCache, wanted: Path, why: str) -> None:
    assert not cache.usable and why in cache.reason
    assert cache.directory != wanted
    assert stat.S_IMODE(cache.directory.stat().st_mode) == 0o700
    put(cache)
    assert cache.lookup(KEY) is not None


def test_a_linked_folder_is_not_used(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "cache").symlink_to(tmp_path / "real")
    check_fallback(ArtifactCache(tmp_path / "cache"), tmp_path / "cache", "symbolic link")


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_may_write_is_not_used(tmp_path, mode):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(mode)
    check_fallback(ArtifactCache(tmp_path / "cache"), tmp_path / "cache", "writable by other users")


def test_an_unwritable_folder_is_not_used(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    wanted = tmp_path / "file" / "cache"
    check_fallback(ArtifactCache(wanted), wanted, "not writable")
    check_fallback(ArtifactCache(tmp_path / "file"), tmp_path / "file", "not writable")
    create = artifacts._create

    def read_only(path: Path) -> int:
        if path.parent.name == "read-only":
            raise OSError(errno.EROFS, "Read-only file system")
        return create(path)

    monkeypatch.setattr(artifacts, "_create", read_only)
    wanted = tmp_path / "read-only"
    check_fallback(ArtifactCache(wanted), wanted, "Read-only file system")


def test_without_any_folder_all_is_missed(tmp_path, monkeypatch):
    monkeypatch.setattr(artifacts.tempfile, "mkdtemp", lambda prefix: os.mkdir("/dev/null/x"))
    (tmp_path / "file").write_text("")
    cache = ArtifactCache(tmp_path / "file" / "cache")
    source = tmp_path / "program.mef"
    source.write_bytes(b"code")
    assert cache.store(KEY, source) is None and source.exists()
    assert cache.lookup(KEY) is None
    assert cache.key_lock(KEY).acquire()
    cache.clear()


class FullDisk:
    """Wraps the files being written: the disk is full after a number of bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, room: int):
        self.room = room
        self.open = open
        monkeypatch.setattr("builtins.open", self)

    def __call__(self, file, mode="r", *arguments, **options):
        opened = self.open(file, mode, *arguments, **options)
        if "w" not in mode:
            return opened
        write = opened.raw.write if hasattr(opened, "raw") else opened.write
        disk = self

        class Writer:
            def write(self, data):
                disk.room -= len(data)
                if disk.room < 0:
                    raise OSError(errno.ENOSPC, "No space left on device")
                return write(data)

            def __enter__(self):
                return self

            def __exit__(self, *_):
                opened.close()

        return Writer()


@pytest.mark.parametrize("room", [0, 5, 20])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_full_disk_leaves_no_rubbish(cache, tmp_path, monkeypatch, room, elsewhere):
    put(cache, b"earlier")
    before = files(cache)
    source = tmp_path / "program.mef" if elsewhere else cache.incoming()
    source.write_bytes(b"native code")
    with monkeypatch.context() as patch:
        FullDisk(patch, room)
        assert cache.store(KEY, source) is None
    assert source.read_bytes() == b"native code"
    assert [path for path in files(cache) if path != source] == before
    assert cache.lookup(KEY) is None and cache.lookup(b"earlier") is not None


@pytest.mark.parametrize("failing", [0, 1])
def test_a_failed_rename_leaves_no_rubbish(cache, monkeypatch, failing):
    replace, calls = os.replace, []

    def fail(source, target):
        calls.append(target)
        if len(calls) == failing + 1:
            raise OSError(errno.EIO, "Input/output error")
        replace(source, target)

    source = cache.incoming()
    source.write_bytes(b"native code")
    monkeypatch.setattr(os, "replace", fail)
    assert cache.store(KEY, source) is None
    assert files(cache) == [source] and source.read_bytes() == b"native code"


def test_storing_nothing_is_a_failure(cache, tmp_path):
    assert cache.store(KEY, tmp_path / "missing.mef") is None
    (tmp_path / "link.mef").symlink_to(tmp_path / "missing.mef")
    assert cache.store(KEY, tmp_path / "link.mef") is None
    assert files(cache) == []


def test_the_longest_unused_goes_first(tmp_path):
    cache = ArtifactCache(tmp_path / "cache", max_bytes=4000)
    keys = [b"first", b"second", b"third"]
    for age, key in zip((300, 200, 100), keys):
        put(cache, key, key * (1000 // len(key)))
        entry = cache.directory / f"{artifacts.hashlib.sha256(key).hexdigest()}.key"
        os.utime(entry, (time.time() - age,) * 2)
    assert cache.lookup(b"first") is not None  # and so used again
    put(cache, b"fourth", bytes(1000))
    held = {key: cache.lookup(key) is not None for key in [*keys, b"fourth"]}
    assert held == {b"first": True, b"second": False, b"third": True, b"fourth": True}
    assert cache.size()[0] == 3 and cache.size()[1] <= 4000


def test_what_was_just_stored_outlives_any_bound(tmp_path):
    cache = ArtifactCache(tmp_path / "cache", max_bytes=10)
    put(cache, b"first", bytes(100))
    stored = put(cache, b"second", bytes(100))
    assert stored.exists() and cache.lookup(b"second") == stored
    assert cache.lookup(b"first") is None


def test_what_killed_processes_left_is_swept(cache):
    old = time.time() - 2 * artifacts._INCOMING_LIFETIME
    orphan = "a" * 64
    names = ["incoming-00ff", "incoming-00ff.mef", f"{orphan}-{'b' * 32}.mef", f"{orphan}.lock",
             "notes.txt"]
    for name in names:
        path = cache.directory / name
        path.write_bytes(b"x")
        os.utime(path, (old, old))
    (cache.directory / "incoming-0011.mef").write_bytes(b"being written")
    put(cache)
    left = {path.name for path in files(cache)}
    assert left & set(names) == {"notes.txt"} and "incoming-0011.mef" in left


def test_clear_and_discard(cache):
    put(cache)
    put(cache, b"other")
    (cache.directory / "notes.txt").write_text("the user's")
    cache.discard(KEY)
    assert cache.lookup(KEY) is None and cache.lookup(b"other") is not None
    cache.clear()
    assert [path.name for path in files(cache)] == ["notes.txt"]
    assert cache.lookup(b"other") is None


def store_many(directory: Path, mark: int, failures) -> None:
    cache = ArtifactCache(directory, max_bytes=1 << 20)
    for turn in range(60):
        content = bytes([mark]) * (1000 + turn)
        source = cache.incoming()
        source.write_bytes(content)
        if cache.store(KEY, source) is None:
            failures.put("not stored")
        found = ArtifactCache(directory, max_bytes=1 << 20).lookup(KEY)
        content = found.read_bytes() if found is not None else b""
        if not content or content != content[:1] * len(content):
            failures.put(f"torn: {content[:10]!r}")


def test_two_processes_store_the_same_key(tmp_path):
    context = multiprocessing.get_context("fork")
    failures = context.SimpleQueue()
    processes = [context.Process(target=store_many, args=(tmp_path / "cache", mark, failures))
                 for mark in (1, 2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(30)
        assert process.exitcode == 0
    assert failures.empty()
    assert ArtifactCache(tmp_path / "cache").lookup(KEY) is not None


def test_the_lock_excludes_and_is_freed_by_death(cache):
    lock, other = cache.key_lock(KEY), cache.key_lock(b"other")
    assert lock.acquire() and other.acquire()
    assert not cache.key_lock(KEY).acquire()
    other.release()
    lock.release()
    assert not lock.path.exists() and not other.path.exists()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, b"held" if lock.acquire() else b"free")
        time.sleep(30)
        os._exit(0)
    try:
        assert os.read(reading, 4) == b"held"
        assert not lock.acquire()
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert lock.acquire()
    lock.release()


def test_the_default_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("MAXJAX_CACHE_DIR", str(tmp_path / "chosen"))
    assert default_directory() == tmp_path / "chosen"
    imported_in = Path.cwd()
    monkeypatch.setenv("MAXJAX_CACHE_DIR", "chosen")
    monkeypatch.chdir(tmp_path)
    assert default_directory() == imported_in / "chosen"
    monkeypatch.delenv("MAXJAX_CACHE_DIR")
    monkeypatch.setattr(artifacts.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_directory() == tmp_path / "maxjax"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_directory() == tmp_path / ".cache" / "maxjax"
    monkeypatch.setattr(artifacts.sys, "platform", "darwin")
    assert default_directory() == tmp_path / "Library" / "Caches" / "maxjax"


def test_the_default_bound(monkeypatch, tmp_path):
    assert ArtifactCache(tmp_path / "cache").max_bytes == 2 << 30
    monkeypatch.setenv("MAXJAX_CACHE_MAX_BYTES", "12345")
    assert ArtifactCache(tmp_path / "cache").max_bytes == 12345
