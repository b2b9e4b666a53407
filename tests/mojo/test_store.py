"""Native libraries: builds are found again, and failures never raise into programs."""

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

from maxjax._max import warning as warning_module
from maxjax._max.artifacts import ArtifactCache
from maxjax._max.folder_locks import claims
from maxjax._max.mojo import pack_library, store, toolchain
from maxjax._max.mojo.pack_library import Pack
from maxjax._max.mojo.store import KernelStore
from maxjax._max.mojo.toolchain import ToolchainError, build_library
from tests import ROOT
from tests.mojo.fake_compiler import SOURCES, apply, forked, leftovers, scaled
from tests.support.waiting import alive, until

pytestmark = [
    pytest.mark.xdist_group("mojo"),
    pytest.mark.skipif(sys.platform != "linux", reason="provoked with Linux's means")]

BAD = scaled(1).replace("unsafe_store", "no_such_method")


@pytest.fixture(autouse=True)
def one_build_at_a_time(monkeypatch):
    monkeypatch.setattr(KernelStore, "workers", 1)


@pytest.fixture(autouse=True)
def warned(monkeypatch):
    monkeypatch.setattr(warning_module, "_warned", False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


def said(warned) -> str:
    (only,) = warned
    return str(only.message)


def again(kernels: KernelStore) -> KernelStore:
    """A store of the same folder, as a new process would open it."""
    old = kernels.libraries.cache
    return KernelStore(kernels.header, ArtifactCache(old.directory, old.max_bytes))


def nothing(error) -> None:
    pass


# ---- the toolchain ----

@pytest.mark.parametrize("commands, kind, message", [
    ("echo 'a.mojo:1:2: error: no such thing'; echo 'mojo: error: failed'; exit 1", "rejected",
     "the Mojo compiler failed: no such thing"),
    ("kill -SEGV $$", "crashed", "the Mojo compiler was ended by SIGSEGV"),
    ("kill -KILL $$", "killed", "the Mojo compiler was ended by SIGKILL (out of memory?)"),
    ("echo oh; exit 3", "crashed", "the Mojo compiler ended with status 3: oh"),
    ("exit 4", "crashed", "the Mojo compiler ended with status 4: it printed nothing"),
    ("exit 0", "crashed", "the Mojo compiler wrote no library"),
    ("echo 'LLVM ERROR: IO failure: No space left on device'; exit 1", "disk",
     "no space left on device to build native code"),
    ("kill -XFSZ $$", "disk",
     "files may not be as large (ulimit -f) as building native code needs"),
    ("echo 'lld: error: failed to write output: File too large'; exit 1", "disk",
     "files may not be as large (ulimit -f) as building native code needs"),
    ("sleep 60", "timeout", "the Mojo compiler took more than 3 s"),
    ("sleep 60 & wait", "timeout", "the Mojo compiler took more than 3 s"),
    ("while :; do echo chatter; done", "timeout", "the Mojo compiler took more than 3 s"),
])
def test_a_failing_compiler(compiler, tmp_path, commands, kind, message):
    compiler.does(commands)
    with pytest.raises(ToolchainError) as caught:
        build_library("", tmp_path / "out.so", seconds=3 if kind == "timeout" else 30)
    assert (caught.value.kind, str(caught.value)) == (kind, message)
    assert len(caught.value.output) <= 1 << 18
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mojo", "note"]
    until(lambda: not any(map(alive, compiler.runs)))


def test_without_a_compiler(tmp_path, monkeypatch, compiler):
    compiler.path.unlink()
    with pytest.raises(ToolchainError, match="no Mojo compiler: there is none at ") as caught:
        build_library("", tmp_path / "out.so")
    assert caught.value.kind == "missing"
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ToolchainError, match="mojo-compiler is not installed"):
        build_library("", tmp_path / "out.so")
    monkeypatch.undo()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    with pytest.raises(ToolchainError, match="cannot be run"):
        build_library("", tmp_path / "out.so")


def test_the_command_of_a_virtual_environment_is_no_compiler(tmp_path, monkeypatch):
    """It calls the one of the wheel, which it would look for where the wheel's is gone."""
    site = tmp_path / "lib" / "python3" / "site-packages"
    command = tmp_path / "bin" / "mojo"
    for path in (site, command.parent):
        path.mkdir(parents=True)
    command.touch()
    monkeypatch.delenv("MODULAR_MOJO_MAX_DRIVER_PATH", raising=False)
    monkeypatch.setattr(toolchain, "compiler_folder", lambda: str(site))
    with pytest.raises(ToolchainError, match="no Mojo compiler: there is none at .*modular"):
        build_library("", tmp_path / "library.so")



def test_a_folder_that_takes_nothing(tmp_path, compiler):
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolchainError, match="no place to build native code") as caught:
        build_library("", tmp_path / "file" / "out.so")
    assert caught.value.kind == "disk" and compiler.runs == []


def test_what_the_compiler_is_given(compiler, tmp_path, monkeypatch):
    compiler.does(f'echo "$@" > {tmp_path}/arguments; cat "$source" > {tmp_path}/source\n'
                  f'nice > {tmp_path}/nice; (pwd; echo "$TMPDIR"; echo "$MODULAR_CACHE_DIR") '
                  f'> {tmp_path}/pwd\ncp "$library" "$out"')
    monkeypatch.setenv("MAXJAX_CPU_TARGET", "x86-64-v3")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    build_library("text", tmp_path / "out.so", include=[tmp_path], threads=2)
    arguments = (tmp_path / "arguments").read_text()
    flags = " ".join(toolchain.FLAGS)
    assert f"build --emit shared-lib {flags} -j 2 --target-cpu x86-64-v3 -I " in arguments
    assert (tmp_path / "source").read_text() == "text"
    assert int((tmp_path / "nice").read_text()) == os.nice(0)
    assert len({line.split("/cache")[0]
                for line in (tmp_path / "pwd").read_text().split()}) == 1
    assert (tmp_path / "out.so").exists() and not list(tmp_path.glob("building-*"))


def test_the_identity_tells_targets_apart(monkeypatch):
    native = toolchain.identity()
    toolchain.cpu_target.cache_clear()
    monkeypatch.setenv("MAXJAX_CPU_TARGET", "x86-64-v3")
    try:
        assert toolchain.identity() != native
    finally:
        toolchain.cpu_target.cache_clear()


# ---- kernels ----

def test_kernels_are_built_once_and_found_again(cache, compiler):
    kernels = KernelStore(cache=cache)
    assert kernels.find(SOURCES) == {}
    answers, threads = [], []
    job = kernels.request(SOURCES[:2], lambda error: (
        answers.append(error), threads.append(threading.current_thread().name)), label="two")
    assert kernels.wait(job) is None and answers == [None] and threads == ["maxjax-kernels"]
    found = kernels.find(SOURCES)
    assert list(found) == SOURCES[:2] and apply(found[SOURCES[0]]) == [0.0] * 4
    for fresh in (kernels, again(kernels)):
        assert fresh.build(SOURCES[:2]) is None
    assert len(compiler.runs) == 1 and leftovers(cache) == []
    waited = []
    slow = kernels.request(SOURCES[:3], nothing)
    assert kernels.wait(slow, waited.append) is None and len(compiler.runs) == 2
    assert KernelStore("# another header\n", cache).find(SOURCES) == {}


def test_looking_up_is_fast(cache, compiler):
    kernels = KernelStore(cache=cache)
    assert kernels.build(SOURCES) is None

    def best(prepare, times=20):
        seconds = []
        for _ in range(times):
            action = prepare()
            start = time.perf_counter()
            action()
            seconds.append(time.perf_counter() - start)
        return min(seconds)

    # Known kernels cost less than to read as many small files.
    files = [cache.directory / f"plain-{number}" for number in range(len(SOURCES))]
    for file in files:
        file.write_bytes(bytes(4096))
    assert len(kernels.find(SOURCES)) == 40
    known = best(lambda: lambda: kernels.find(SOURCES))
    reading = best(lambda: lambda: [hashlib.sha256(file.read_bytes()) for file in files])
    assert known < reading / 4


def test_many_kernels_go_into_several_libraries(cache, compiler):
    kernels = KernelStore(cache=cache, per_library=15)
    assert kernels.build(SOURCES) is None
    assert len(compiler.runs) == 3 == len(list(cache.directory.glob("*.so")))


def test_two_builds_run_side_by_side(cache, compiler):
    kernels = KernelStore(cache=cache)
    kernels.workers = 2
    assert kernels.build(SOURCES[:3]) is None
    assert len(compiler.runs) == 1      # too few to start the compiler twice
    # Each build ends only when it has seen the other begin.
    compiler.does(f"until [ $(wc -l < {compiler.note}) -ge 3 ]; do sleep 0.02; done\n"
                  'cp "$library" "$out"')
    kernels.libraries.build_seconds = 20
    assert kernels.build(SOURCES) is None
    assert len(compiler.runs) == 3
    assert apply(kernels.find(SOURCES)[SOURCES[39]]) == [39.0] * 4
    assert len(again(kernels).find(SOURCES)) == 40


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "remove", "link", "writable",
                                    "foreign"])
def test_a_damaged_library_is_built_again(cache, compiler, tmp_path, damage):
    kernels = KernelStore(cache=cache)
    assert kernels.build(SOURCES[:3]) is None
    (library,) = cache.directory.glob("*.so")
    content = bytearray(library.read_bytes())
    # A new file: the old one is mapped into this process.
    library.unlink()
    if damage == "flip":
        content[len(content) // 2] ^= 4
    if damage == "link":
        (tmp_path / "target").write_bytes(content)
        library.symlink_to(tmp_path / "target")
    elif damage != "remove":
        cut = {"truncate": len(content) // 2, "empty": 0}.get(damage, len(content))
        library.write_bytes(content[:cut])
        library.chmod(0o666 if damage == "writable" else 0o600)
    if damage == "foreign":
        if os.geteuid() != 0:
            pytest.skip("needs chown")
        os.chown(library, 12345, 12345)
    fresh = again(kernels)
    assert fresh.find(SOURCES) == {}
    assert fresh.build(SOURCES[:3]) is None and len(compiler.runs) == 2
    assert apply(fresh.find(SOURCES)[SOURCES[2]]) == [2.0] * 4


@pytest.mark.parametrize("content", ["", "\x7fELF", "not a library" * 100])
def test_a_compiler_that_writes_rubbish(cache, compiler, content):
    compiler.does(f"printf '{content}' > \"$out\"")
    kernels = KernelStore(cache=cache)
    assert kernels.build(SOURCES[:1]) is not None
    assert again(kernels).find(SOURCES) == {} and leftovers(cache) == []


def test_an_evicted_library_is_a_miss(compiler, prepared, tmp_path):
    keys = 2 * len(toolchain.identity()) + 2000
    cache = ArtifactCache(tmp_path / "cache", max_bytes=prepared.stat().st_size + keys)
    kernels = KernelStore(cache=cache)
    assert kernels.build(SOURCES[:1]) is None and kernels.build(SOURCES[1:2]) is None
    assert list(again(kernels).find(SOURCES)) == SOURCES[1:2]
    assert len(kernels.find(SOURCES)) == 2  # what is loaded stays


def test_use_of_a_kernel_keeps_its_library(cache, compiler):
    kernels = KernelStore(cache=cache)
    assert kernels.build(SOURCES[:1]) is None
    for entry in cache.directory.glob("*.key"):
        os.utime(entry, (1, 1))
    assert len(again(kernels).find(SOURCES)) == 1
    assert all(entry.stat().st_mtime > 1 for entry in cache.directory.glob("*.key"))


@pytest.mark.parametrize("how", ["writable", "file"])
def test_without_a_usable_folder_kernels_serve_this_process(tmp_path, compiler, warned, how,
                                                            monkeypatch):
    folder = tmp_path / "cache"
    if how == "writable":
        folder.mkdir()
        folder.chmod(0o777)
    else:
        folder.write_text("")
    monkeypatch.setenv("MAXJAX_CACHE_DIR", str(folder))
    kernels = KernelStore()
    assert kernels.build(SOURCES[:2]) is None and len(kernels.find(SOURCES)) == 2
    assert "not kept" in said(warned)
    assert KernelStore().find(SOURCES) == {}


def test_a_full_cache_disk(cache, compiler, warned, monkeypatch):
    monkeypatch.setattr(cache, "store", lambda *_, **__: None)
    kernels = KernelStore(cache=cache)
    assert kernels.build(SOURCES[:2]) is None
    assert apply(kernels.find(SOURCES)[SOURCES[1]]) == [1.0] * 4
    assert "is the disk full?" in said(warned) and leftovers(cache) == []


def test_a_really_full_disk(tmp_path, compiler):
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=16k,mode=700", "tmpfs", str(disk)],
            capture_output=True).returncode:
        pytest.skip("needs mount")
    try:
        kernels = KernelStore(cache=ArtifactCache(disk))
        assert kernels.build(SOURCES) is not None
        assert kernels.find(SOURCES) == {} and leftovers(kernels.libraries.cache) == []
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_without_a_compiler_all_fails_at_once(cache, compiler, warned):
    compiler.path.unlink()
    kernels = KernelStore(cache=cache)
    answers = []
    for _ in range(2):
        assert "no Mojo compiler" in kernels.wait(kernels.request(SOURCES, answers.append))
    assert len(answers) == 2 and "no Mojo compiler" in said(warned)


def test_a_crashing_compiler_is_not_tried_for_ever(cache, compiler, warned):
    compiler.does("kill -SEGV $$")
    kernels = KernelStore(cache=cache)
    for _ in range(3):
        assert "SIGSEGV" in kernels.build(SOURCES[:8])
    assert len(compiler.runs) == 7  # all, halves, quarters
    assert set(kernels.failures()) == set(SOURCES[:8]) and "SIGSEGV" in said(warned)


def test_a_kernel_that_crashes_the_compiler_spares_the_others(cache, compiler):
    bad = store.Kernel(SOURCES[5]).symbol
    compiler.does(f'grep -q {bad} "$source" && kill -SEGV $$; cp "$library" "$out"')
    kernels = KernelStore(cache=cache)
    assert "SIGSEGV" in kernels.build(SOURCES[:8])
    assert set(kernels.failures()) == set(SOURCES[4:6])
    assert set(kernels.find(SOURCES)) == {*SOURCES[:4], *SOURCES[6:8]}


def test_a_hanging_compiler(cache, compiler):
    compiler.does("sleep 60")
    kernels = KernelStore(cache=cache)
    kernels.libraries.build_seconds = 0.5
    assert "took more than 0.5 s" in kernels.build(SOURCES)
    assert len(compiler.runs) == 1


def test_a_kernel_in_error_spares_the_others(cache, warned):
    """With the real compiler: its message names the line, and so the kernel."""
    kernels = KernelStore(cache=cache)
    reason = kernels.build([SOURCES[0], BAD, SOURCES[1]])
    assert "no_such_method" in reason and "no_such_method" in said(warned)
    assert set(kernels.failures()) == {BAD}
    assert list(kernels.find([*SOURCES, BAD])) == SOURCES[:2]
    assert kernels.build(SOURCES[:2]) is None


def test_an_error_in_the_header_is_everyones(cache, compiler):
    compiler.does('echo "$source:1:6: error: unable to locate module"; exit 1')
    kernels = KernelStore(cache=cache)
    assert "unable to locate" in kernels.build(SOURCES)
    assert len(compiler.runs) == 1 and len(kernels.failures()) == 40


def test_a_kernel_that_exports_nothing(cache, compiler):
    kernels = KernelStore(cache=cache)
    assert "does not export KERNEL" in kernels.build([SOURCES[0], "comptime a = 1\n"])
    assert list(kernels.find(SOURCES)) == SOURCES[:1]


def test_who_waits_waits_for_nothing_else_and_callbacks_may_fail(cache, compiler, tmp_path):
    go = tmp_path / "go"
    compiler.does(f'grep -q "(i) [*] 1)" "$source" || until [ -e {go} ]; do sleep 0.02; done\n'
                  'cp "$library" "$out"')
    kernels = KernelStore(cache=cache)
    order = []

    def note(name):
        return lambda error: order.append(name)

    def fail(error):
        raise ValueError("a caller's mistake")

    jobs = [kernels.request(SOURCES[:1], fail)]
    until(lambda: jobs[0].started is not None)
    jobs += [kernels.request(SOURCES[i:i + 1], note(i), priority=i) for i in (1, 2, 3)]
    assert kernels.wait(jobs[1]) is None and not jobs[0].ready.is_set() and order == [1]
    go.touch()
    until(lambda: all(job.ready.is_set() for job in jobs))
    assert order == [1, 3, 2] and not any(job.error for job in jobs)
    assert len(compiler.runs) == 4 and leftovers(cache) == []


def test_in_the_background_one_build_runs_at_a_time(cache, compiler, tmp_path, monkeypatch):
    """The other processors are the program's."""
    monkeypatch.setattr(KernelStore, "workers", 2)
    compiler.does('cp "$library" "$out"')
    kernels = KernelStore(cache=cache)
    job = kernels.request(SOURCES[:6], nothing)
    until(job.ready.is_set)
    assert len(compiler.runs) == 1 and job.error is None
    assert kernels.build(SOURCES[6:12]) is None and len(compiler.runs) == 3


def test_a_callback_cannot_wait(cache, compiler):
    kernels = KernelStore(cache=cache)
    answers = []

    def done(error):
        answers.append(kernels.wait(kernels.request(SOURCES[1:2], nothing)))

    assert kernels.wait(kernels.request(SOURCES[:1], done)) is None
    assert "cannot wait" in answers[0]


# ---- several processes ----

SCRIPT = """
import sys
from pathlib import Path
from maxjax._max.artifacts import ArtifactCache
from maxjax._max.mojo.store import KernelStore
from tests.mojo.fake_compiler import SOURCES
kernels = KernelStore(cache=ArtifactCache(Path({cache!r})))
kernels.workers = 1
print("ready", flush=True)
{body}
"""


def start(cache: ArtifactCache, body: str) -> subprocess.Popen:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(
            cache=str(cache.directory), body=body)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout.readline() == "ready\n"
    return process


def test_two_processes_build_a_kernel_once(cache, compiler):
    compiler.does('sleep 1; cp "$library" "$out"')
    body = "print(kernels.build(SOURCES[{}]), len(kernels.find(SOURCES)))"
    processes = [start(cache, body.format(span)) for span in (":20", ":20", "10:30")]
    assert [process.communicate(timeout=300)[0] for process in processes] == ["None 20\n"] * 2 + [
        f"None {len(again(KernelStore(cache=cache)).find(SOURCES))}\n"]
    assert len(compiler.runs) <= 3 and leftovers(cache) == []
    identity = toolchain.identity().count("@export")
    # Each library's own entry holds all its kernels; no kernel is in two.
    assert sum(path.read_bytes().count(b"@export") - identity
               for path in cache.directory.glob("*.key")
               if b"\0library\0" in path.read_bytes()) == 30


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, None])
def test_a_process_that_ends_during_a_build(cache, compiler, how):
    compiler.does("sleep 60")
    body = "kernels.request(SOURCES, print)\n"
    process = start(cache, body + ("import time; time.sleep(60)" if how else "input()"))
    until(lambda: compiler.runs and alive(compiler.runs[0]), 30)
    if how:
        process.send_signal(how)
    else:
        process.stdin.write("\n")
        process.stdin.flush()
    process.wait(20)
    until(lambda: not alive(compiler.runs[0]), 5)
    compiler.does('cp "$library" "$out"')
    kernels = KernelStore(cache=cache)
    assert kernels.find(SOURCES) == {} and kernels.build(SOURCES) is None
    assert len(kernels.find(SOURCES)) == 40
    # What a killed process left has gone with the next look at the folder.
    left = [*cache.directory.glob("building-*"), *cache.directory.glob("process-*")]
    assert [path for path in left if path.name[8:24] != claims.number(cache.directory)] == []


def test_what_an_ending_process_no_longer_builds_is_not_warned_of(warned, monkeypatch):
    monkeypatch.setattr(toolchain, "_running", {})
    monkeypatch.setattr(toolchain, "_ending", False)
    toolchain._end_all()
    warning_module.warn_once("programs run without compiled kernels: the interpreter is ending")
    assert not warned


@pytest.mark.parametrize("number", ("KILL", "STOP"))
def test_a_compiler_that_somebody_ends_or_stops(cache, compiler, tmp_path, number):
    """What was killed is tried once more; what was stopped goes on."""
    once = tmp_path / "once"
    compiler.does(f'if [ ! -e {once} ]; then touch {once}; kill -{number} $$; fi\n'
                  'cp "$library" "$out"')
    kernels = KernelStore(cache=cache)
    assert kernels.build(SOURCES[:1]) is None
    assert kernels.find(SOURCES[:1]) and not kernels.failures()


def test_a_forked_child_builds_by_itself(cache, compiler):
    compiler.does('sleep 1; cp "$library" "$out"')
    kernels = KernelStore(cache=cache)
    jobs = [kernels.request(SOURCES[:1], nothing), kernels.request(SOURCES[1:2], nothing)]
    until(lambda: compiler.runs)
    assert forked(lambda: kernels.wait(jobs[1]) is None and len(kernels.find(SOURCES)) >= 1
                  and kernels.wait(jobs[0]) is None)
    assert [kernels.wait(job) for job in jobs] == [None, None]  # the parent's build went on
    assert forked(lambda: apply(kernels.find(SOURCES)[SOURCES[0]]) == [0.0] * 4
                  and kernels.build(SOURCES[2:3]) is None)
    assert len(compiler.runs) == 3


# ---- the pack ----

@pytest.fixture
def pack_sources(tmp_path) -> Path:
    folder = tmp_path / "pack"
    folder.mkdir()
    symbols = [store.Kernel(source).symbol for source in SOURCES]
    (folder / "tape.mojo").write_text(f'@export("{symbols[0]}")\ndef f() abi("C"):\n    pass\n')
    (folder / "arrays.mojo").write_text(
        f'@export\ndef {symbols[1]}() abi("C"):\n    pass\n\n'
        f'@export("{symbols[2]}", ABI="C")\ndef g():\n    pass\n')
    return folder


def test_the_pack_is_built_in_order_and_found_again(cache, compiler, pack_sources):
    symbols = [store.Kernel(source).symbol for source in SOURCES[:3]]
    pack = Pack(cache, pack_sources, prebuilt=None)
    assert {name: unit.name for name, unit in pack.names.items()} \
        == dict(zip(symbols, ("tape", "arrays", "arrays")))
    assert not pack.ready and pack.address(symbols[0]) is None
    answers, finished = [], threading.Event()
    pack.request(lambda error: (answers.append(error), finished.set()))
    assert finished.wait(20) and answers == [None] and pack.ready
    assert [apply(pack.address(name)) for name in symbols] == [[0.0] * 4, [1.0] * 4, [2.0] * 4]
    fresh = Pack(ArtifactCache(cache.directory), pack_sources, prebuilt=None)
    assert fresh.ready and fresh.build() is None and len(compiler.runs) == 2
    with pytest.raises(KeyError, match="has no function"):
        fresh.function("nonsense")
    (pack_sources / "tape.mojo").write_text((pack_sources / "tape.mojo").read_text() + "# new\n")
    changed = Pack(ArtifactCache(cache.directory), pack_sources, prebuilt=None)
    assert not changed.ready and changed.address(symbols[0]) is None
    assert changed.address(symbols[1]) is not None


def test_who_asks_while_a_thread_loads_the_pack_waits_for_it(
        cache, compiler, pack_sources, monkeypatch):
    Pack(cache, pack_sources, prebuilt=None).build()
    pack = Pack(ArtifactCache(cache.directory), pack_sources, prebuilt=None)
    load, loading, go_on = pack.libraries.load, threading.Event(), threading.Event()

    def slowly(key):
        loading.set()
        go_on.wait(30)
        return load(key)

    monkeypatch.setattr(pack.libraries, "load", slowly)
    name = next(iter(pack.names))
    found = []
    asking = [threading.Thread(target=lambda: found.append(pack.address(name))) for _ in range(2)]
    asking[0].start()
    assert loading.wait(30)
    asking[1].start()
    time.sleep(0.05)
    go_on.set()
    for thread in asking:
        thread.join()
    assert len(found) == 2 and None not in found


def test_a_file_of_the_pack_that_fails_spares_the_others(cache, compiler, pack_sources, warned):
    compiler.does('grep -q ABI= "$source" && { echo "x: error: no ABI"; exit 1; }\n'
                  'cp "$library" "$out"')
    pack = Pack(cache, pack_sources, prebuilt=None)
    for _ in range(2):
        assert pack.build() == "arrays: the Mojo compiler failed: no ABI"
    assert len(compiler.runs) == 2 and not pack.ready and "pack/arrays.mojo" in said(warned)
    assert pack.address(store.Kernel(SOURCES[0]).symbol) is not None
    with pytest.raises(KeyError, match="is not built"):
        pack.function(store.Kernel(SOURCES[1]).symbol)


@pytest.fixture
def shipped(tmp_path, compiler, pack_sources, monkeypatch) -> Path:
    monkeypatch.setattr(pack_library, "SOURCES", pack_sources)
    folder = tmp_path / "prebuilt"
    with monkeypatch.context() as patch:
        patch.setattr(Pack.__init__, "__defaults__", (None, pack_sources, None))
        assert pack_library.main([str(folder), "--target-cpu", "x86-64"]) == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "arrays.so", "manifest.json", "tape.so"]
    return folder


def test_a_shipped_pack_serves_until_the_native_one(cache, compiler, pack_sources, shipped):
    pack = Pack(cache, pack_sources, shipped)
    symbols = list(pack.names)
    assert pack.ready and apply(pack.address(symbols[2])) == [2.0] * 4
    before = pack.address(symbols[2])
    assert pack.build() is None and len(compiler.runs) == 4
    assert pack.address(symbols[2]) != before and apply(before) == [2.0] * 4


@pytest.mark.parametrize("damage", ["manifest", "versions", "cpu", "library", "writable folder",
                                    "writable file", "foreign", "missing"])
def test_a_shipped_pack_that_cannot_be_trusted(cache, pack_sources, shipped, damage, monkeypatch):
    manifest, library = shipped / "manifest.json", shipped / "tape.so"
    if damage == "manifest":
        manifest.write_text(manifest.read_text()[:-20])
    elif damage == "versions":
        manifest.write_text(manifest.read_text().replace("max ", "max 1"))
    elif damage == "cpu":
        monkeypatch.setattr(pack_library, "_processor_flags", lambda: {"sse2"})
        manifest.write_text(manifest.read_text().replace('"x86-64"', '"x86-64-v3"'))
    elif damage == "library":
        library.write_bytes(library.read_bytes()[:-1] + b"x")
    elif damage == "writable folder":
        shipped.chmod(0o775)
    elif damage == "writable file":
        library.chmod(0o666)
    elif damage == "foreign":
        if os.geteuid() != 0:
            pytest.skip("needs chown")
        os.chown(library, 12345, 12345)
    else:
        library.unlink()
    pack = Pack(cache, pack_sources, shipped)
    assert pack.address(store.Kernel(SOURCES[0]).symbol) is None and not pack.ready


@pytest.mark.extended
def test_a_portable_library_names_no_folder(tmp_path):
    output = tmp_path / "out.so"
    build_library("from kernels.calling import *\nfrom max.algorithm import parallelize\n\n"
                  '@export("f")\ndef f(slots: Slots, args: Args) abi("C"):\n'
                  "    var x = operand[DType.float32](slots, args, 0)\n"
                  "    def work(t: Int) {var x}:\n        x.unsafe_store(t, 1)\n"
                  "    parallelize(work, integer(args, 2))\n", output)
    assert b"/modular/lib" in output.read_bytes()
    needs = pack_library.make_portable(output)
    assert any("AsyncRT" in name for name in needs)
    assert b"/modular/lib" not in output.read_bytes()
    loads = ("import ctypes, sys\nfrom maxjax._max.mojo import pack_library\n"
             "pack_library._preload(sys.argv[2:])\nctypes.CDLL(sys.argv[1]).f\nprint('loaded')")
    run = subprocess.run([sys.executable, "-c", loads, str(output), *needs],
                         capture_output=True, text=True, cwd=ROOT)
    assert run.stdout == "loaded\n", run.stderr
