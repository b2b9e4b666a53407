"""Tests of one group run in one worker, and so do neighbours in a file."""

from __future__ import annotations

import types

import pytest

from tests.support import distribution


@pytest.mark.xdist_group("known")
def test_groups_are_known(request):
    """pytest-xdist knows a test's group by its id; else every worker would compile everything."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("tests are not distributed by groups")
    assert request.node.nodeid.endswith("@known")


class Worker:
    """What the scheduler knows of a worker process."""

    shutting_down = False

    def __init__(self, name):
        self.gateway, self.given = types.SimpleNamespace(id=name), []

    def send_runtest_some(self, places):
        self.given.append(places)

    def shutdown(self):
        self.shutting_down = True


class Config:
    """Options for two workers."""

    option = types.SimpleNamespace(loadscopereorder=True)

    def getvalue(self, name):
        return {"tx": ["popen"] * 2}[name]


NODEIDS = [*[f"a.py::test[{n}]" for n in range(40)], *[f"b.py::test[{n}]@few" for n in range(3)],
           "c.py::test[x@y]", *[f"d.py::test[{n}]@many" for n in range(20)]]


def scheduled():
    """The scheduler, and its workers with their first tests."""
    scheduler = distribution.Chunks(Config())
    workers = [Worker("one"), Worker("two")]
    for worker in workers:
        scheduler.add_node(worker)
    for worker in workers:
        scheduler.add_node_collection(worker, NODEIDS)
    scheduler.schedule()
    return scheduler, workers


def test_chunks_are_of_a_file_and_groups_are_whole():
    """Great groups come first, small ones last, and each test once."""
    scheduler, workers = scheduled()
    order, done = [], [0, 0]
    while scheduler.has_pending:
        for number, worker in enumerate(workers):
            if done[number] < len(worker.given):
                places = worker.given[done[number]]
                done[number] += 1
                order.append([NODEIDS[place] for place in places])
                for place in places:
                    scheduler.mark_test_complete(worker, place)
    assert [unit[0] for unit in order] == [NODEIDS[place] for place in (44, 0, 16, 32, 43, 40)]
    assert [len(unit) for unit in order] == [20, 16, 16, 8, 1, 3]
    assert all(worker.shutting_down for worker in workers)
    assert not any(scheduler.assigned_work.values()), "what is done is counted no more"


def test_what_a_lost_worker_had_is_given_to_others():
    scheduler, (lost, other) = scheduled()
    scheduler.mark_test_complete(lost, lost.given[0][0])
    assert scheduler.remove_node(lost) == NODEIDS[lost.given[0][1]]
    waiting = {nodeid for unit in scheduler.workqueue.values()
               for nodeid, done in unit.items() if not done}
    taken = {NODEIDS[place] for places in other.given for place in places}
    assert waiting | taken == {*NODEIDS} - {NODEIDS[lost.given[0][0]]}
