"""Blocks of large results are reused, but never while anything refers to them."""

from __future__ import annotations

import os
import threading

import numpy as np

from maxjax._base import aligned
from maxjax._base.ownership import is_alone, kept_blocks
from maxjax._max.mojo.result_memory import ArenaMemory, ResultMemory

FLOAT = np.dtype(np.float32)


def empty(memory: ResultMemory, count: int) -> np.ndarray:
    return memory.empty((count,), FLOAT, 4 * count)


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_a_block_is_used_again_when_its_result_is_gone():
    memory = ResultMemory()
    first = empty(memory, 1000)
    place = address(first)
    second = empty(memory, 1000)
    assert address(second) != place
    del first
    third = memory.empty((10, 100), FLOAT, 4000)
    assert address(third) == place and third.shape == (10, 100) and third.flags.writeable
    assert memory.bytes == 8000


def test_views_keep_a_block():
    memory = ResultMemory()
    for view_of in (lambda x: x[5:7], lambda x: x.reshape(10, 100).T, lambda x: x.view(np.int32),
                    np.asarray, memoryview, lambda x: np.frombuffer(x, np.uint8),
                    lambda x: x.__dlpack__(), lambda x: iter(x)):
        first = empty(memory, 1000)
        view = view_of(first)
        place = address(first)
        del first
        assert address(empty(memory, 1000)) != place
        del view
        kept = [empty(memory, 1000) for _ in range(memory.bytes // 4000)]
        assert place in [address(x) for x in kept]
        del kept


def test_not_more_is_kept_than_allowed():
    memory = ResultMemory(kept_bytes=10_000)
    alive = [empty(memory, 1000) for _ in range(10)]
    assert memory.bytes <= 10_000
    assert len({address(x) for x in alive}) == 10
    empty(memory, 500)
    assert memory.bytes <= 10_000
    empty(memory, 5000)         # alone more than that
    assert memory.bytes <= 10_000


def test_blocks_begin_where_vectors_and_pages_do():
    memory = ResultMemory()
    kept = [empty(memory, count) for count in (1, 1000, 1000, 300_000)]
    assert all(address(x) % aligned.LINE == 0 for x in kept)
    large = [empty(memory, 1 << 20) for _ in range(2)]
    assert all(address(x) % aligned.PAGE == 0 for x in large)
    place = address(large[0])
    del large[0]
    assert address(empty(memory, 1 << 20)) == place


def test_copies_of_large_arrays_are_aligned():
    for x in (np.arange(100_000, dtype=np.int64), np.arange(1 << 20, dtype=np.float32)):
        for dtype in (x.dtype, np.dtype(np.int32)):
            copy = aligned.copied(x, dtype)
            assert copy.dtype == dtype and (copy == x).all() and copy.flags.writeable
            assert address(copy) % (aligned.LINE if copy.nbytes < 1 << 22 else aligned.PAGE) == 0
    x = np.asfortranarray(np.ones((500, 500)))
    copy = aligned.copied(x, x.dtype)
    assert copy.flags.f_contiguous and not np.shares_memory(copy, x)


def test_threads_never_share_a_block():
    memory = ResultMemory(kept_bytes=40_000)
    wrong = []

    def work(mark: int) -> None:
        for turn in range(3000):
            x = empty(memory, 1000 + turn % 3)
            x[:] = mark
            y = empty(memory, 1000)
            y[:] = -mark
            if not ((x == mark).all() and (y == -mark).all()):
                wrong.append(mark)
    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_fork_has_blocks_of_its_own():
    memory = ResultMemory()
    x = empty(memory, 1000)
    x[:] = 1
    child = os.fork()
    if child == 0:
        x[:] = 2
        del x
        y = empty(memory, 1000)
        y[:] = 3
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert (x == 1).all()


# --- arenas ---------------------------------------------------------------------------------------

def test_an_arena_serves_other_sizes():
    arenas = ArenaMemory()
    first = arenas.take(1 << 20)
    place = address(first)
    arenas.give_back(first)
    again = arenas.take(1000)
    assert address(again) == place and again.size >= 1 << 20
    larger = arenas.take(3 << 20)
    assert address(larger) != place and larger.size >= 3 << 20


def test_arenas_of_calls_at_the_same_time_are_apart():
    arenas = ArenaMemory()
    taken = [arenas.take(4096) for _ in range(10)]
    assert len({address(x) for x in taken}) == 10
    for block in taken:
        arenas.give_back(block)
    kept = {address(arenas.take(4096)) for _ in range(ArenaMemory.KEPT_BLOCKS)}
    assert kept == {address(x) for x in taken[:ArenaMemory.KEPT_BLOCKS]}


def test_a_smaller_arena_is_replaced():
    arenas = ArenaMemory()
    arenas.give_back(arenas.take(4096))
    large = arenas.take(1 << 20)
    arenas.give_back(large)
    assert arenas.take(4096) is large


def test_blocks_are_known_as_kept_while_they_are():
    memory = ResultMemory(kept_bytes=10_000)
    before = {*kept_blocks}
    results = [memory.empty((1000 * k,), np.dtype(np.uint8), 1000 * k) for k in (2, 3, 4)]
    assert {id(x.base) for x in results} == kept_blocks - before
    last = results[-1]
    del results
    assert is_alone(last)
    view = last[1:]
    assert not is_alone(last) and not is_alone(view)
    memory.empty((9000,), np.dtype(np.uint8), 9000)
    assert len(kept_blocks - before) == 1 and not is_alone(last)
    del view
    assert is_alone(last)
    del memory
    assert kept_blocks == before
