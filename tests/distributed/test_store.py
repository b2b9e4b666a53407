"""What libraries ask of JAX's coordination service: values by name, and barriers, as in JAX."""

from __future__ import annotations

import threading

import pytest

import maxjax as jax
from maxjax._distributed.store import Client, Keeper
from tests.distributed.running import ENGINES, START, lines, run

_VALUES = START + r"""
import jax._src.distributed
state = jax._src.distributed.global_state
client, i = state.client, jax.process_index()
def show(name, ask):
    try:
        found = ask()
    except Exception as error:
        found = type(error).__name__ + " " + str(error).partition(":")[0]
    sys.stdout.write(f"* {i} {name} {found!r}\n")
    sys.stdout.flush()
show("state", lambda: (state.process_id, state.num_processes))
client.key_value_set(f"dir/{i}", f"of {i}")
show("other", lambda: client.blocking_key_value_get(f"dir/{1 - i}", 20000))
client.wait_at_barrier("written", 20000)
show("all", lambda: sorted(client.key_value_dir_get("dir")))
show("again", lambda: client.key_value_set(f"dir/{i}", "x"))
show("allowed", lambda: client.key_value_set(f"mine/{i}/a", "x", allow_overwrite=True))
show("absent", lambda: client.key_value_try_get("absent"))
show("late", lambda: client.blocking_key_value_get("absent", 100))
show("bytes", lambda: (client.key_value_set_bytes(f"bytes {i}", b"\xff\x00"),
                       client.key_value_try_get_bytes(f"bytes {i}")))
show("count", lambda: client.key_value_increment(f"count {i}", 3))
show("count", lambda: client.key_value_increment(f"count {i}", 4))
show("counted", lambda: client.key_value_try_get(f"count {i}"))
show("delete", lambda: client.key_value_delete(f"mine/{i}"))
show("deleted", lambda: client.key_value_dir_get(f"mine/{i}"))
show("barrier again", lambda: client.wait_at_barrier("written", 20000))
show("barrier of one", lambda: client.wait_at_barrier(f"only {i}", 20000, process_ids=[i]))
jax.distributed.shutdown()
show("left", lambda: state.client)
"""


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_values_as_in_jax(engine):
    assert lines(run(engine, _VALUES)) == lines(run("jax", _VALUES))


@pytest.fixture
def clients():
    keeper = Keeper("127.0.0.1", 2)
    yield [Client(keeper.place, number) for number in range(2)]
    keeper.close()


def test_a_thread_that_waits_keeps_no_other_from_asking(clients):
    found = []
    thread = threading.Thread(
        target=lambda: found.append(clients[0].blocking_key_value_get("late", 20000)))
    thread.start()
    clients[0].key_value_set("late", "here")
    thread.join()
    assert found == ["here"]


def test_a_barrier_names_who_has_not_come(clients):
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"DEADLINE_EXCEEDED: .*processes \[1\]"):
        clients[0].wait_at_barrier("lonely", 50)
    with pytest.raises(jax.errors.JaxRuntimeError, match="INVALID_ARGUMENT"):
        clients[0].wait_at_barrier("strangers", 50, [0, 2])
    # Once all have come, those that wait pass, though one gave up before.
    thread = threading.Thread(target=lambda: clients[1].wait_at_barrier("lonely", 20000))
    thread.start()
    clients[0].wait_at_barrier("lonely", 20000)
    thread.join()


def test_a_barrier_does_not_wait_for_a_process_that_has_ended(clients):
    clients[1].key_value_set("key", "value")
    clients[1]._kept.close()
    clients[1]._own.connection.close()
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"UNAVAILABLE: .*\[1\] have ended"):
        clients[0].wait_at_barrier("lonely", 20000)


def test_another_key_is_turned_away(clients):
    stranger = Client((*clients[0]._place[:2], b"another"), 1)
    with pytest.raises(jax.errors.JaxRuntimeError, match="UNAVAILABLE"):
        stranger.key_value_set("key", "value")
