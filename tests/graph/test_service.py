"""The compile service and its worker process, with a stand-in for MAX in all tests but the last."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from maxjax._base.errors import CompileError
from maxjax._max import warning as warning_module
from maxjax._max.artifacts import ArtifactCache
from maxjax._max.graph.service import CompileService
from maxjax._max.graph.session import Executable, load
from maxjax._max.versions import cpu_target, versions
from tests import ROOT
from tests.support.waiting import alive, until

HERE = __name__
STAND_IN = {"compiler": f"{HERE}:stand_in"}


def no_builder(module, program, options):
    """Named as the builder: the stand-in compiler does not use one."""


def stand_in(program: str, builder, output: str, options: dict) -> dict[str, float]:
    """Obeys the words of the program, then writes it as the artifact."""
    for word in program.split():
        verb, _, value = word.partition("=")
        if verb == "sleep":
            time.sleep(float(value))
        elif verb == "await":
            while not os.path.exists(value):
                time.sleep(0.01)
        elif verb == "note":
            with open(value, "a") as file:
                file.write(f"{os.getpid()} ")
        elif verb == "print":
            print(value, flush=True)
        elif verb == "raise":
            raise ValueError(value)
        elif verb == "die":
            os.kill(os.getpid(), int(value))
        elif verb == "exit":
            os._exit(int(value))
        elif verb == "nothing":
            return {}
    Path(output).write_text(program)
    return {"compile": 0.5}


class Answers:
    """The arguments of a job's ``done``."""

    def __init__(self) -> None:
        self.calls: list[tuple[Path | None, str | None]] = []
        self.threads: list[str] = []

    def __call__(self, path: Path | None, error: str | None) -> None:
        self.calls.append((path, error))
        self.threads.append(threading.current_thread().name)


def nothing(path, error):
    pass


@pytest.fixture
def make(tmp_path):
    made = []

    def new(**settings) -> CompileService:
        service = CompileService(f"{HERE}:no_builder", ArtifactCache(tmp_path / "cache"), STAND_IN)
        for name, value in settings.items():
            setattr(service, name, value)
        made.append(service)
        return service

    yield new
    for service in made:
        service.shutdown()


@pytest.fixture
def warned(monkeypatch):
    monkeypatch.setattr(warning_module, "_warned", False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


def noted(path: Path) -> list[int]:
    return [int(pid) for pid in path.read_text().split()] if path.exists() else []


def test_a_program_is_compiled_once_and_found_again(make, tmp_path):
    service, answers = make(), Answers()
    assert service.worker_pid is None
    program = f"note={tmp_path}/note print=chatter"
    job = service.submit(b"key", program, answers)
    path = service.wait(job, timeout=120)
    assert path.read_text() == program and job.phases == {"compile": 0.5}
    assert answers.calls == [(path, None)] and answers.threads == ["maxjax-compile"]
    assert noted(tmp_path / "note") == [service.worker_pid] != [os.getpid()]
    assert service.wait(service.submit(b"key", program, answers), timeout=120) == path
    assert make().cache.lookup(b"key") == path
    assert len(noted(tmp_path / "note")) == 1
    assert not list(service.cache.directory.glob("incoming-*"))
    assert not list(service.cache.directory.glob("*.lock"))


def test_one_key_is_one_job_and_the_urgent_goes_first(make, tmp_path):
    service, answers = make(), Answers()
    order = []
    first = service.submit(b"first", "sleep=0.3", nothing)
    until(lambda: first.started)
    for name, priority in ((b"low", 1.0), (b"high", 3.0), (b"middle", 2.0)):
        service.submit(name, "x", lambda path, error, name=name: order.append(name), priority)
    assert service.submit(b"low", "x", answers, 2.5) is service.submit(b"low", "x", answers)
    for job in service.pending():
        job.ready.wait(20)
    assert order == [b"high", b"low", b"middle"]
    assert len(answers.calls) == 2


def test_a_failing_program_says_why_and_is_not_tried_again(make, tmp_path):
    service, answers = make(), Answers()
    program = f"note={tmp_path}/note print=chatter raise=unlowerable"
    for _ in range(2):
        with pytest.raises(CompileError, match="ValueError: unlowerable"):
            service.wait(service.submit(b"key", program, answers), timeout=120)
    assert "chatter" in answers.calls[0][1] and "Traceback" in answers.calls[0][1]
    assert len(noted(tmp_path / "note")) == 1
    assert service.wait(service.submit(b"other", "fine", nothing), timeout=120).exists()
    with pytest.raises(CompileError, match="wrote no file"):
        service.wait(service.submit(b"none", "nothing", nothing), timeout=120)


@pytest.mark.parametrize("builder,options", [
    ("no_such_module:build", STAND_IN), (f"{HERE}:no_such_name", STAND_IN),
    (f"{HERE}:no_builder", {"compiler": "no_such_module:compile"})])
def test_without_a_compiler_all_jobs_fail_at_once(tmp_path, warned, builder, options):
    service = CompileService(builder, ArtifactCache(tmp_path / "cache"), options)
    try:
        for key in (b"one", b"two"):
            with pytest.raises(CompileError, match="cannot be imported"):
                service.wait(service.submit(key, "x", nothing), timeout=120)
        assert [str(warning.message)[:34] for warning in warned] == [
            "maxjax: programs stay interpreted:"]
    finally:
        service.shutdown()


def test_without_a_process_all_jobs_fail(make, monkeypatch, warned):
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    service = make()
    with pytest.raises(CompileError, match="no compile process"):
        service.wait(service.submit(b"key", "x", nothing), timeout=120)
    assert len(warned) == 1 and warned[0].category is RuntimeWarning


def test_a_killed_worker_is_replaced(make, tmp_path):
    service, note = make(), tmp_path / "note"
    job = service.submit(b"key", f"note={note} sleep=0.7", nothing)
    until(lambda: noted(note))
    os.kill(service.worker_pid, signal.SIGKILL)
    assert service.wait(job, timeout=120).exists()
    assert len(set(noted(note))) == 2
    assert not list(service.cache.directory.glob("incoming-*"))


@pytest.mark.parametrize("program,why", [
    ("print=chatter die=9", "SIGKILL"), ("print=chatter die=6", "SIGABRT"),
    ("print=chatter exit=3", "status 3")])
def test_a_worker_that_dies_twice_fails_the_job(make, tmp_path, warned, program, why):
    service, answers = make(), Answers()
    with pytest.raises(CompileError, match=why):
        job = service.submit(b"key", f"note={tmp_path}/note {program}", answers)
        service.wait(job, timeout=120)
    assert "chatter" in answers.calls[0][1] and len(noted(tmp_path / "note")) == 2
    assert len(warned) == 1
    assert service.wait(service.submit(b"other", "fine", nothing), timeout=120).exists()


def test_a_hung_compile_is_ended(make, warned):
    service = make(compile_seconds=0.5)
    with pytest.raises(CompileError, match="took more than"):
        service.wait(service.submit(b"key", "sleep=60", nothing), timeout=120)


def test_a_worker_retires(make, tmp_path):
    service, note = make(most_compiles=2), tmp_path / "note"
    for turn in range(4):
        service.wait(service.submit(b"%d" % turn, f"note={note} turn={turn}", nothing), timeout=120)
    first, second, third, fourth = noted(note)
    assert first == second != third == fourth
    until(lambda: not alive(first))
    greedy = make(most_bytes=1)
    greedy.wait(greedy.submit(b"key", f"note={note}", nothing), timeout=120)
    until(lambda: greedy.worker_pid is None)


def test_an_idle_worker_is_ended(make):
    service = make(idle_seconds=0.1)
    service.wait(service.submit(b"key", "x", nothing), timeout=120)
    until(lambda: service.worker_pid is None)
    assert service.wait(service.submit(b"other", "y", nothing), timeout=120).exists()


def test_a_callback_that_raises_harms_nobody(make, warned):
    service, answers = make(), Answers()

    def broken(path, error):
        raise KeyError("oops")

    job = service.submit(b"key", "sleep=0.1", broken)
    service.submit(b"key", "sleep=0.1", answers)
    assert service.wait(job, timeout=120).exists() and len(answers.calls) == 1


def test_an_interrupt_ends_the_wait_only(make, tmp_path):
    service, seconds = make(), []
    job = service.submit(b"key", f"await={tmp_path}/end", nothing)

    def progress(elapsed):
        seconds.append(elapsed)
        if elapsed > 0.3:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        service.wait(job, progress)
    assert len(seconds) >= 2
    with pytest.raises(TimeoutError):
        service.wait(job, timeout=0.05)
    (tmp_path / "end").touch()
    assert service.wait(job, timeout=120).exists()


def test_shutdown_is_quick_and_final(make, tmp_path):
    service, answers = make(), Answers()
    job = service.submit(b"key", f"note={tmp_path}/note sleep=60", nothing)
    until(lambda: noted(tmp_path / "note"))
    pid, start = service.worker_pid, time.monotonic()
    service.shutdown()
    assert time.monotonic() - start < 30 and not alive(pid)      # of 60
    with pytest.raises(CompileError, match="shut down"):
        service.wait(job)
    with pytest.raises(CompileError, match="shut down"):
        service.wait(service.submit(b"other", "x", answers))
    assert "shut down" in answers.calls[0][1]


def test_a_full_cache_still_serves_this_process(make, monkeypatch):
    service = make()
    monkeypatch.setattr(service.cache, "store", lambda key, artifact: None)
    path = service.wait(service.submit(b"key", "program", nothing), timeout=120)
    assert path.read_text() == "program"
    service.shutdown()
    assert not path.exists()


SCRIPT = """
import os, sys, time
from pathlib import Path
from maxjax._max.artifacts import ArtifactCache
from maxjax._max.graph.service import CompileService
service = CompileService("{module}:no_builder", ArtifactCache(Path({cache!r})), {options!r})
job = service.submit(b"key", {program!r}, lambda path, error: None)
{then}
"""


def other_process(tmp_path: Path, program: str, then: str) -> subprocess.Popen:
    text = SCRIPT.format(module=HERE, program=program, then=then,
                         cache=str(tmp_path / "cache"), options=STAND_IN)
    return subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True,
                            env={**os.environ, "PYTHONPATH": str(ROOT)})


def test_two_processes_compile_a_key_once(make, tmp_path):
    service, note = make(), tmp_path / "note"
    program = f"note={note} sleep=0.7"
    with other_process(tmp_path, program, "print(service.wait(job))") as other:
        path = service.wait(service.submit(b"key", program, nothing), timeout=120)
        assert other.communicate(timeout=120)[0].strip() == str(path)
    assert len(noted(note)) == 1


def test_a_dead_process_leaves_its_key_and_no_worker(make, tmp_path):
    note, mine = tmp_path / "note", tmp_path / "mine"
    with other_process(tmp_path, f"note={note} sleep=60", "time.sleep(60)") as other:
        until(lambda: noted(note))
        service = make()
        job = service.submit(b"key", f"note={mine}", nothing)
        time.sleep(0.3)
        assert not noted(mine)
        other.kill()
    assert service.wait(job, timeout=120).exists() and noted(mine)
    (worker,) = noted(note)
    until(lambda: not alive(worker))


def test_the_worker_outlives_no_parent_though_forks_hold_its_pipe(tmp_path):
    note = tmp_path / "note"
    then = f"""
while not Path({str(note)!r}).exists() or not Path({str(note)!r}).read_text(): time.sleep(0.01)
child = os.fork()
if child == 0:
    os.close(1)
    time.sleep(60)
    os._exit(0)
print(child, flush=True)
time.sleep(60)
"""
    with other_process(tmp_path, f"note={note} sleep=60", then) as other:
        child = int(other.stdout.readline())
        other.kill()
    until(lambda: not alive(noted(note)[0]))
    os.kill(child, signal.SIGKILL)


def test_a_program_ends_at_once_in_mid_compile(tmp_path):
    note = tmp_path / "note"
    then = f"""
while not Path({str(note)!r}).exists() or not Path({str(note)!r}).read_text(): time.sleep(0.01)
"""
    with other_process(tmp_path, f"note={note} sleep=60", then) as other:
        assert other.wait(50) == 0      # of which the compile sleeps 60
    until(lambda: not alive(noted(note)[0]))


def test_a_forked_child_starts_afresh(make, tmp_path):
    service, note = make(), tmp_path / "note"
    service.wait(service.submit(b"one", f"note={note}", nothing), timeout=120)
    job = service.submit(b"two", f"note={note} sleep=0.5", nothing)
    until(lambda: len(noted(note)) == 2)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(120)
            mine = service.wait(service.submit(b"three", f"note={note}", nothing), timeout=100)
            code = 0 if mine.exists() and service.wait(job, timeout=100).exists() else 2
            service.shutdown()
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert service.wait(job, timeout=120).exists()
    pids = noted(note)
    assert len(pids) == 3 and pids[0] == pids[1] != pids[2]  # "two" was compiled by the parent only
    assert alive(service.worker_pid)


def test_warns_once(warned):
    warning_module.warn_once("no reason")
    warning_module.warn_once("another")
    assert [str(warning.message) for warning in warned] == [
        "maxjax: no reason"]


def test_warnings_as_errors_stay_inside(monkeypatch):
    monkeypatch.setattr(warning_module, "_warned", False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warning_module.warn_once("no reason")


# ---- with MAX ----

def build_kinds(module, program: str, options: dict) -> None:
    """A graph that shows how each kind of input and output travels; runs in the worker."""
    from max.dtype import DType
    from max.graph import DeviceRef, Graph, TensorType, ops

    cpu = DeviceRef.CPU()
    kinds = [(DType.bool, ()), (DType.bfloat16, (4,)), (DType.float32, (64, 256)),
             (DType.float32, (0, 3)), (DType.int32, ())]
    with Graph(program, input_types=[TensorType(*kind, cpu) for kind in kinds],
               module=module) as graph:
        flag, half, single, empty, integer = [value.tensor for value in graph.inputs]
        doubled = single + single
        graph.output(ops.logical_not(flag), half + half, doubled, empty, integer, single[2:],
                     ops.reshape(single, (256, 64)), doubled)


@pytest.mark.slow
@pytest.mark.xdist_group("graph")
@pytest.mark.extended
def test_max_compiles_and_runs(tmp_path):
    service = CompileService(f"{HERE}:build_kinds", ArtifactCache(tmp_path / "cache"))
    try:
        job = service.submit(b"kinds" + versions().encode() + cpu_target().encode(), "kinds",
                             nothing)
        path = service.wait(job)
    finally:
        service.shutdown()
    assert set(job.phases) == {"import", "session", "build", "compile", "export"}
    run = Executable(load(path)["kinds"])
    rng = np.random.default_rng(0)
    wide = rng.random((64, 512), np.float32)
    arguments = [np.array(True), np.array([1, -0.0, np.nan, np.inf], ml_dtypes.bfloat16),
                 wide[:, :256].copy(), np.zeros((0, 3), np.float32), np.array(-7, np.int32)]

    def check(flag, half, single, empty, integer):
        before = single.tobytes()
        got = run([flag, half, single, empty, integer])
        expected = [~flag, half + half, single + single, empty, integer, single[2:],
                    single.reshape(256, 64), single + single]
        for one, other in zip(got, expected):
            assert type(one) is np.ndarray and one.dtype == other.dtype
            if one.dtype == ml_dtypes.bfloat16:  # whose NaN NumPy's assertion does not know
                one, other = one.astype(np.float32), other.astype(np.float32)
            np.testing.assert_array_equal(one, other)
        for index, one in enumerate(got):  # every result is its own memory
            for other in [*got[index + 1:], single, half, integer]:
                assert not np.shares_memory(one, other)
        assert single.tobytes() == before

    check(*arguments)
    for array in arguments:
        array.flags.writeable = False
    check(*arguments)
    check(*arguments[:2], wide[:, ::2], *arguments[3:])
    bytes_ = np.zeros(4 * 64 * 256 + 1, np.uint8)
    misaligned = bytes_[1:].view(np.float32).reshape(64, 256)
    misaligned[:] = 3
    check(*arguments[:2], misaligned, *arguments[3:])
    check(*arguments[:2], np.broadcast_to(np.float32(2), (64, 256)), *arguments[3:])
    for wrong in (arguments[:4], [np.array(1), *arguments[1:]],
                  [arguments[0], np.zeros(4, np.uint16), *arguments[2:]],
                  [*arguments[:2], np.zeros((64, 255), np.float32), *arguments[3:]]):
        with pytest.raises(ValueError):
            run(wrong)
    kept = run(arguments)[2]
    del run
    np.testing.assert_array_equal(kept, arguments[2] * 2)
    # MAX's threads do not survive a fork: the child gets an error instead of hanging.
    run = Executable(load(path)["kinds"])
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            run(arguments)
        except RuntimeError as error:
            os._exit(0 if "forked" in str(error) else 2)
        os._exit(3)
    assert os.waitpid(child, 0)[1] == 0
