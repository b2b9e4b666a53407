"""Which groups of devices each process has a like part of, and how processes meet."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from maxjax._distributed.communicator import combined
from maxjax._distributed.gloo import in_rounds
from maxjax._sharding.device_collectives import Layout, layout_of


def groups_along(mesh, axes):
    """The groups that a collective over some axes of an array of positions connects."""
    moved = np.moveaxis(mesh, axes, range(mesh.ndim - len(axes), mesh.ndim))
    size = int(np.prod([mesh.shape[axis] for axis in axes]))
    return tuple(sorted(map(tuple, moved.reshape(-1, size).tolist())))


PLANE = np.arange(4).reshape(2, 2)


@pytest.mark.parametrize("mesh, axes, owners, layout", [
    (np.arange(4), (0,), (0, 0, 1, 1), Layout((0, 1), ((0, 1),), 1, 2, False)),
    (np.arange(2), (0,), (3, 5), Layout((3, 5), ((0, 1),), 1, 1, False)),
    (PLANE, (0,), (0, 0, 1, 1), Layout((0, 1), ((0, 1),), 2, 1, False)),
    (PLANE, (1,), (0, 1, 0, 1), Layout((0, 1), ((0, 1),), 2, 1, False)),
    (PLANE, (1,), (0, 0, 1, 1), None),       # each group is one process's
    (PLANE, (0, 1), (0, 1, 0, 1), None),     # in the group's order the processes take turns
    (PLANE, (0,), (0, 1, 2, 3), Layout((0, 1, 2, 3), ((0, 2), (1, 3)), 1, 1, False)),
    (np.arange(4), (0,), (0, 1, 1, 1), None),
    (np.arange(2), (0,), (1, 0), None),
    (np.arange(8).reshape(4, 2), (0,), (0,) * 4 + (1,) * 4,
     Layout((0, 1), ((0, 1),), 2, 2, True))])
def test_layouts_of_groups_over_owners(mesh, axes, owners, layout):
    assert layout_of(groups_along(mesh, axes), owners) == layout


def test_rows_of_a_layout_are_those_of_the_groups():
    layout = Layout((0, 1), ((0, 1),), 2, 3, True)
    x = np.arange(6).reshape(6, 1)
    grouped = np.asarray(layout.grouped(x))
    assert grouped[:, :, 0].tolist() == [[0, 2, 4], [1, 3, 5]]
    back, axis = layout.of_devices(grouped)
    assert axis == 0 and np.array_equal(back, x)
    spread, axis = layout.for_all(np.array([[7], [8]]))
    assert axis == 0 and np.asarray(spread)[:, 0].tolist() == [7, 8, 7, 8, 7, 8]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "bool", "complex64"])
def test_values_are_combined_in_order_and_in_place(dtype):
    stacked = (np.arange(12).reshape(3, 4) % 3).astype(dtype)
    for function in (np.add, np.maximum):
        expected = function(function(stacked[0], stacked[1]), stacked[2])
        result = np.empty(4, dtype)
        assert combined(stacked, function, result) is result
        assert np.array_equal(result, expected) and result.dtype == expected.dtype
        assert np.array_equal(combined(stacked, function), expected)
        assert combined(stacked[:, 0], function) == expected[0]
        assert np.array_equal(combined(stacked[:1], function), stacked[0])


def test_lanes_of_a_round_are_of_different_processes():
    lanes = [lane for lane in itertools.product(range(4), repeat=2) if lane[0] != lane[1]]
    taken = in_rounds(lanes)
    assert sorted(taken) == lanes
    assert not set(taken[0]) & set(taken[1])
