"""Jobs that strangers connect to, from their start to their end: they notice nothing of it."""

from __future__ import annotations

import concurrent.futures
import contextlib
import socket
import threading
import time

import pytest

import maxjax as jax
from maxjax._distributed import addresses, secret
from maxjax._distributed.launcher import free_port
from maxjax._distributed.store import Client, Keeper
from tests.distributed.running import START, lines, run
from tests.distributed.strangers import KINDS, Siege, listeners, same_protocol

# Sums, a group of two, values by name; one second in all.
_JOB = START + r"""
import time
from jax.experimental import multihost_utils as mu
from maxjax._distributed.start import connection
import jax._src.distributed
i, count = jax.process_index(), jax.process_count()
def show(*what):
    sys.stdout.write(" ".join(map(str, ("*", i, *what))) + "\n")
    sys.stdout.flush()
mesh = jax.make_mesh((jax.device_count(),), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
x = jax.make_array_from_callback((count,), jax.NamedSharding(mesh, jax.P("x")),
                                 lambda index: np.ones(1, "f"))
step = jax.jit(lambda x: x * 0.5 + x.sum())
for _ in range(20):
    x = step(x)
    time.sleep(0.05)
show(float(x.sum()), mu.process_allgather(np.arange(3) + i).tolist())
if i < 2:
    group = connection.among((0, 1))
    show(group.all_reduce(np.arange(3000.), np.add, "pair").sum())
client = jax._src.distributed.global_state.client
client.key_value_set(f"of/{i}", str(i))
client.wait_at_barrier("written", 20000)
show(client.key_value_dir_get("of"))
jax.distributed.shutdown()
"""


def _timed(engine: str, siege: Siege, count: int = 3) -> tuple[list[str], float]:
    started = time.monotonic()
    printed = lines(run(engine, _JOB, count, 1, beside=siege.of))
    return printed, time.monotonic() - started


@pytest.fixture(scope="module")
def undisturbed():
    """What the job prints, how long it takes and what it sees when nobody comes."""
    siege = Siege((), 0)
    return *_timed("gloo", siege), siege


@pytest.mark.parametrize("kinds", [
    *(pytest.param((kind.__name__,), id=kind.__name__, marks=pytest.mark.extended)
      for kind in KINDS),
    pytest.param(tuple(kind.__name__ for kind in KINDS), id="all", marks=pytest.mark.slow)])
def test_strangers_disturb_no_job(kinds, undisturbed):
    expected, seconds, quiet = undisturbed
    siege = Siege(kinds, len(kinds[0]))
    printed, taken = _timed("gloo", siege)
    assert printed == expected
    assert siege.connections > 20
    # It cannot hang for any of the timeouts, which are of 10 s and more.
    assert taken < 2 * seconds + 8, (taken, seconds)
    for position, peaks in siege.peak.items():
        assert max(peaks.values()) < max(quiet.peak[position].values()) + 50_000, peaks


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["mpi"])
def test_strangers_disturb_no_values_by_mpi(engine, undisturbed):
    """At the sockets of processes that maxjax starts; MPI's own are MPI's."""
    script = _JOB.replace('show(float', 'time.sleep(0.5)\nshow(float').replace(
        "jax.distributed.shutdown()", "time.sleep(1)\njax.distributed.shutdown()")
    keyed = script.replace("client.key", """
if i == 0:
    place = client._place[:2]
    from tests.distributed import strangers
    import random
    kept = []
    for seed in range(20):
        for kind in strangers.KINDS:
            kind(place, random.Random(seed), kept)
client.key""", 1)
    assert lines(run(engine, keyed, 3, 1)) == undisturbed[0]


@pytest.mark.slow
def test_processes_listen_where_they_were_asked_to(undisturbed):
    *_, siege = undisturbed
    assert siege.places
    assert {address for address, _ in siege.places} == {"127.0.0.1"}


@pytest.mark.slow
@pytest.mark.parametrize("asked, at, expected", [
    ("127.0.0.2", None, {"127.0.0.2"}), ("127.0.0.1", "127.0.0.1", {"127.0.0.1"}),
    ("127.0.0.1", "localhost:PORT", {"127.0.0.1"}), ("127.0.0.1", "0.0.0.0", {"0.0.0.0"})])
def test_the_address_to_listen_at(asked, at, expected):
    port = free_port()
    variables = {} if at is None else {
        "JAX_COORDINATOR_BIND_ADDRESS": at.replace("PORT", str(port))}
    siege = Siege((), 0)
    lines(run("gloo", _JOB, 2, 1, beside=siege.of, address=f"{asked}:{port}", **variables))
    assert {address for address, number in siege.places if number == port} == expected
    assert {address for address, number in siege.places if number != port} <= {asked, "127.0.0.1"}


# In so many attempts somebody connects as soon as Gloo listens, and says the number of each pair.
_BETWEEN = START.replace("import jax, numpy as np", r"""
import jax, numpy as np
import contextlib, socket, struct
from maxjax._distributed.listener import Listener
from maxjax._distributed import gloo
gloo._MOST_NUMBERS = 1      # somebody guesses right
hearing, attempts, kept = Listener.hearing, [], []
@contextlib.contextmanager
def taken(self):
    attempts.append(1)
    with hearing(self):
        for found in self._found if len(attempts) <= {attempts} else ():
            for number in range(8):
                kept.append(socket.create_connection(found.getsockname()))
                kept[-1].sendall(struct.pack("<q", number) + {said})
        yield
Listener.hearing = taken
""") + r"""
from jax.experimental import multihost_utils as mu
sys.stdout.write("* fine %s %s\n" % (mu.process_allgather(np.arange(2)).tolist(), len(attempts)))
jax.distributed.shutdown()
"""


@pytest.mark.slow
@pytest.mark.parametrize("attempts, said", [
    (1, 'b""'), (2, 'os.urandom(4000)'),
    pytest.param(99, 'os.urandom(40)', marks=pytest.mark.extended)])
def test_who_takes_the_place_of_a_process_is_found_out(attempts, said):
    results = run("gloo", _BETWEEN.replace("{attempts}", str(attempts)).replace("{said}", said),
                  2, 1, MAXJAX_COLLECTIVE_TIMEOUT="20")
    if attempts < 4:
        assert lines(results) == [f"* fine [[0, 1], [0, 1]] {attempts + 1}"] * 2
        return
    for result in results:
        assert result.returncode == 1, result
        assert "UNAVAILABLE: process" in result.stderr
        assert "or a stranger came between" in result.stderr


# For as long as a group forms somebody connects as fast as he can.
_FLOODED = START.replace("import jax, numpy as np", r"""
import jax, numpy as np
import contextlib, itertools, random, socket, struct, threading
from maxjax._distributed.listener import Listener
hearing, attempts, kept, said = Listener.hearing, [], [], itertools.count()
def flood(place, over):
    while not over.is_set():
        with contextlib.suppress(OSError):
            made = socket.socket()
            made.settimeout(0.05)
            made.connect(place)
            kept.append(made)
            made.send(random.choice((b"", b"a", os.urandom(4000), struct.pack("<q", next(said)))))
        del kept[:-500]
@contextlib.contextmanager
def flooded(self):
    attempts.append(1)
    over = threading.Event()
    with hearing(self):
        threads = [threading.Thread(target=flood, args=(found.getsockname(), over))
                   for found in self._found]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()
            for thread in threads:
                thread.join()
Listener.hearing = flooded
""") + r"""
from jax.experimental import multihost_utils as mu
sys.stdout.write("* fine %s %s\n" % (mu.process_allgather(np.arange(2)).tolist(), len(attempts)))
jax.distributed.shutdown()
"""


@pytest.mark.slow
def test_a_flood_while_a_group_forms():
    """Its numbers are not those of the pairs, which begin anywhere."""
    assert lines(run("gloo", _FLOODED, 2, 1)) == ["* fine [[0, 1], [0, 1]] 1"] * 2


# --- the store ---
KEY = b"0" * 32


@pytest.fixture
def keeper():
    made = Keeper("127.0.0.1", 2, key=KEY)
    yield made
    made.close()


def test_both_sides_of_the_handshake_mean_the_same():
    assert same_protocol()


def test_a_recorded_handshake_is_worth_nothing(keeper):
    """What one process said, and what it asked for, said again by another."""
    recorded = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as relay:
        def record() -> None:
            near, _ = relay.accept()
            far = socket.create_connection(keeper.place[:2])
            threading.Thread(target=_pass_on, args=(far, near, bytearray()), daemon=True).start()
            _pass_on(near, far, recorded)

        for _ in range(2):      # the client keeps one and asks by another
            threading.Thread(target=record, daemon=True).start()
        client = Client((*relay.getsockname(), KEY), 1)
        client.key_value_set("said", "once")
    assert b"once" in recorded
    client.key_value_delete("said")
    for _ in range(3):
        with socket.create_connection(keeper.place[:2]) as made:
            made.sendall(recorded)
            made.settimeout(20)
            answer = b"".join(iter(lambda made=made: _or_nothing(made), b""))
        assert answer[40:] in (b"", bytes(32))
    with pytest.raises(jax.errors.JaxRuntimeError, match="NOT_FOUND"):
        client.key_value_try_get("said")


def _pass_on(source: socket.socket, target: socket.socket, record: bytearray) -> None:
    while data := _or_nothing(source):
        record += data
        target.sendall(data)


def _or_nothing(source: socket.socket) -> bytes:
    try:
        return source.recv(1 << 16)
    except ConnectionError:
        return b""


def test_who_does_not_speak_is_dropped_and_many_keep_nobody_out(keeper):
    kept = [socket.create_connection(keeper.place[:2]) for _ in range(400)]
    client = Client(keeper.place, 0)
    client.key_value_set("key", "value")
    assert client.key_value_try_get("key") == "value"
    kept[-1].settimeout(30)
    while kept[-1].recv(100):       # ends within the seconds of a handshake
        pass
    for each in kept:
        each.close()


def test_a_listener_that_does_not_prove_itself_is_told_nothing(keeper):
    """What a process sends to a stranger that listens in the place of process 0."""
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        heard = []

        def listen() -> None:
            made, _ = stranger.accept()
            made.sendall(b"maxjax-1" + bytes(32))
            heard.append(made.recv(1 << 16))
            made.sendall(bytes(32))
            heard.append(_or_nothing(made))
            made.close()

        thread = threading.Thread(target=listen)
        thread.start()
        with pytest.raises(jax.errors.JaxRuntimeError, match="PERMISSION_DENIED: .*another secret"):
            Client((*stranger.getsockname(), KEY), 1).join(2, 20)
        thread.join()
    assert [len(said) for said in heard] == [68, 0]


def test_a_listener_that_speaks_slowly_is_given_up(monkeypatch):
    """However it divides what it says: the time is one of the whole handshake."""
    monkeypatch.setattr("maxjax._distributed.store._HANDSHAKE_SECONDS", 1.0)
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        def listen() -> None:
            made, _ = stranger.accept()
            for byte in b"maxjax-1" + bytes(64):
                if ended.wait(0.3):
                    break
                with contextlib.suppress(OSError):
                    made.sendall(bytes([byte]))
            made.close()

        thread = threading.Thread(target=listen)
        thread.start()
        started = time.monotonic()
        with pytest.raises(jax.errors.JaxRuntimeError, match="process 0 does not answer"):
            Client((*stranger.getsockname(), KEY), 1).join(2, 0.5)
        assert time.monotonic() - started < 15      # of twenty
        ended.set()
        thread.join()


def test_a_message_of_a_process_is_bounded(keeper, monkeypatch):
    client = Client(keeper.place, 0)
    client.key_value_set("key", "value")
    client._own.connection.sendall((1 << 60).to_bytes(8, "little"))
    assert client._own.connection.recv(1) == b""
    monkeypatch.setattr("maxjax._distributed.store.MOST_MESSAGE_BYTES", 100)
    with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED"):
        client.key_value_set("key", "x" * 100)


def test_who_is_missing_at_the_start_is_named():
    with pytest.raises(jax.errors.JaxRuntimeError, match="process 0 does not answer"):
        Client(("127.0.0.1", free_port(), KEY), 1).join(2, 0.2)
    keeper = Keeper("127.0.0.1", 3, key=KEY)
    said = []

    def join(number: int) -> None:
        try:
            Client(keeper.place, number).join(3, 0.5 if number == 0 else 20)
        except jax.errors.JaxRuntimeError as error:
            said.append(str(error))

    threads = [threading.Thread(target=join, args=(number,)) for number in (0, 2)]
    for thread in threads:
        thread.start()
    with pytest.raises(jax.errors.JaxRuntimeError, match="PERMISSION_DENIED"):
        Client((*keeper.place[:2], b"another"), 1).join(3, 20)
    with pytest.raises(jax.errors.JaxRuntimeError, match="INVALID_ARGUMENT: process 1 was started"):
        Client(keeper.place, 1).join(4, 20)
    for thread in threads:
        thread.join()
    keeper.close()
    assert said == ["DEADLINE_EXCEEDED: process 1 has ended; 1 from 127.0.0.1 did not have the "
                    "job's secret"] * 2 or said == [
        "DEADLINE_EXCEEDED: process 1 has not come; 1 from 127.0.0.1 did not have the job's "
        "secret"] * 2


def test_two_processes_with_one_number_are_told(keeper):
    first = threading.Thread(target=lambda: pytest.raises(
        jax.errors.JaxRuntimeError, Client(keeper.place, 1).join, 2, 2))
    first.start()
    time.sleep(0.2)
    with pytest.raises(jax.errors.JaxRuntimeError, match="ALREADY_EXISTS: another process has"):
        Client(keeper.place, 1).join(2, 0.5)
    first.join()


# --- the secret ---
def test_secrets_and_where_they_come_from(tmp_path):
    own = {"XDG_CONFIG_HOME": str(tmp_path)}
    key = secret.job_key(own)
    path = tmp_path / "maxjax" / "job_secret"
    assert secret.job_key(own) == key and path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    given = {**own, "MAXJAX_JOB_SECRET": "a secret of the user's"}
    assert secret.job_key(given) not in (key, secret.job_key({**own, "MAXJAX_JOB_SECRET": "none"}))
    named = tmp_path / "named"
    named.write_text("a secret of the user's\n")
    named.chmod(0o600)
    by_file = {**own, "MAXJAX_JOB_SECRET_FILE": str(named)}
    assert secret.job_key(by_file) == secret.job_key(given)
    named.chmod(0o644)
    with pytest.raises(ValueError, match="can be read by all users"):
        secret.job_key(by_file)
    with pytest.raises(ValueError, match="has 5 characters, and needs 16 or more"):
        secret.job_key({**own, "MAXJAX_JOB_SECRET": "short"})


def test_reports_of_the_environment_keep_the_secret(monkeypatch):
    monkeypatch.setenv("MAXJAX_JOB_SECRET", "a secret of the user's")
    shown = jax.print_environment_info(return_string=True)
    assert "MAXJAX_JOB_SECRET=(22 characters)" in shown and "a secret" not in shown


def test_a_secret_that_others_can_read_is_not_taken(tmp_path, monkeypatch):
    """Nor is there another that processes could not know of, where it lies."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "elsewhere"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "elsewhere").mkdir()
    own = {"XDG_CONFIG_HOME": str(tmp_path)}
    key = secret.job_key(own)
    (tmp_path / "maxjax" / "job_secret").chmod(0o644)
    with pytest.raises(ValueError, match="this user alone can read"):
        secret.job_key(own)
    (tmp_path / "maxjax" / "job_secret").chmod(0o600)
    assert secret.job_key(own) == key


def test_all_that_need_a_secret_at_once_have_the_same(tmp_path):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        keys = pool.map(lambda _: secret.job_key({"XDG_CONFIG_HOME": str(tmp_path)}), range(8))
    assert len(set(keys)) == 1


@pytest.mark.slow
def test_another_secret_is_an_error_that_says_what_to_set():
    script = 'import os, sys\nif sys.argv[3] == "1": os.environ["MAXJAX_JOB_SECRET"] = "x" * 20\n' \
        + START.replace("int(sys.argv[3]))", "int(sys.argv[3]), initialization_timeout=4)")
    for number, result in enumerate(run("gloo", script)):
        assert result.returncode == 1
        assert f"process {number} did not meet all 2 processes at localhost:" in result.stderr
        assert "Set MAXJAX_JOB_SECRET to the same text in all processes" in result.stderr


# --- addresses ---
@pytest.mark.parametrize("text, port, expected", [
    ("localhost:1", None, ("localhost", 1)), ("[::1]:2", None, ("::1", 2)),
    ("127.0.0.1", 3, ("127.0.0.1", 3)), ("127.0.0.1:4", 3, ("127.0.0.1", 4)),
    ("::", 3, ("::", 3)), ("[::]:5", 3, ("::", 5)), ("[::1]", 3, ("::1", 3)),
    ("host", 3, ("host", 3)), ("host", None, None), ("host:x", 3, None), ("host:65536", 3, None)])
def test_addresses(text, port, expected):
    if expected is None:
        with pytest.raises(ValueError, match="address must be 'host:port'"):
            addresses.host_and_port(text, "address", port)
    else:
        assert addresses.host_and_port(text, "address", port) == expected


def test_localhost_is_this_machine_alone_and_other_names_are_not():
    assert addresses.resolved("localhost") == "127.0.0.1"
    assert addresses.resolved("127.0.0.2") == "127.0.0.2"
    assert listeners(0) == {}
