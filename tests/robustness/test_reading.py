"""However an array is read, what computing it raises is raised, and its value is there afterwards.

From Python 3.12 on NumPy reads arrays by the buffer protocol first, and drops the errors of that.
"""

from __future__ import annotations

import copy
import operator
import pickle
import sys

import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax._base.errors import JaxRuntimeError
from maxjax._ir.primitive import Primitive, registry
from maxjax._ir.rule_groups import Derivative, Host
from maxjax._runtime import array as array_module
from tests.support.raising import Raiser, Stop

X = np.array([3, 1, 2], np.int32)

# What the next evaluation raises.
errors: list[BaseException] = []


def fail(x):
    if errors:
        raise errors.pop()
    return x


@pytest.fixture(scope="module", autouse=True)
def failing():
    primitive = Primitive("test_unreadable", abstract=lambda x: x, evaluate=fail,
                          host=Host(reason="a test"),
                          derivative=Derivative(missing="a test"))
    yield primitive
    registry.pop("test_unreadable", None)


VECTORS = [
    np.asarray, np.array, repr, str, pickle.dumps, copy.deepcopy, lambda x: list(map(int, x)),
    lambda x: np.asarray(x, np.float64), lambda x: np.asarray([x, x]), lambda x: x.tolist(),
    lambda x: x.tobytes(), lambda x: x.item(1), lambda x: x.block_until_ready(),
    lambda x: x.__dlpack__(), lambda x: x.__array__(), lambda x: x.copy_to_host_async(),
    lambda x: X == np.asarray(x), lambda x: np.add(X, x), lambda x: np.equal(x, X),
    lambda x: bool((X == x).all()), lambda x: np.testing.assert_array_equal(x, X),
    lambda x: sum(map(int, x)), lambda x: bool(1 in x), lambda x: X[x % 3], np.sort, max,
    lambda x: f"{x}", maxjax.device_get, maxjax.block_until_ready,
    lambda x: (X + 0).__setitem__(slice(None), x), lambda x: np.full(3, x),
]
SCALARS = [
    float, int, bool, complex, operator.index, lambda x: x.item(),
    lambda x: f"{x:d}", format, str, lambda x: range(x), lambda x: [0, 1, 2, 3][x],
    lambda x: X.__getitem__(x - 3), lambda x: 3 if x else 4, lambda x: x > 2 and True,
    lambda x: x.tolist(), np.float32, lambda x: np.int32(x), lambda x: X.reshape(x, -1),
    lambda x: round(float(x)), lambda x: np.ones(3)[x - 3], lambda x: np.int32(3) == np.asarray(x),
    lambda x: divmod(7, int(x)), lambda x: "abc"[x - 3], lambda x: np.zeros(x), lambda x: b"a" * x,
]
if sys.version_info >= (3, 12):
    VECTORS += [memoryview, bytes, bytearray]


CASES = [pytest.param(kind, read, id=f"{kind.ndim} {number} {read.__name__}")
         for kind, reads in ((X, VECTORS), (X[0], SCALARS)) for number, read in enumerate(reads)]


@pytest.mark.parametrize("error", (KeyboardInterrupt, MemoryError, ValueError, TypeError,
                                   BufferError))
@pytest.mark.parametrize(("value", "read"), CASES)
def test_the_first_read_raises(value, read, error, failing):
    x = failing.bind(jnp.asarray(value))
    errors[:] = [error("once")]
    # Memory that is not there is an error of JAX's; Python and NumPy say a TypeError anew.
    expected = JaxRuntimeError if error is MemoryError else error
    with pytest.raises(expected, match=None if error in (MemoryError, TypeError) else "once"):
        read(x)
    assert not errors
    read(x)
    np.testing.assert_array_equal(np.asarray(x), value)
    assert x.tolist() == value.tolist()


@pytest.mark.parametrize("read", [operator.index, lambda x: [1, 2, 3, 4][x], *(
    [memoryview, bytes] if sys.version_info >= (3, 12) else [])])
@pytest.mark.parametrize("again", (np.asarray, int, lambda x: x.__array__(), lambda x: X[x - 3]))
def test_an_error_that_reached_its_caller_is_not_raised_again(read, again, failing):
    x = failing.bind(jnp.asarray(X[0]))
    errors[:] = [KeyboardInterrupt()] * 3
    for _ in range(3):      # the same instruction again
        with pytest.raises(KeyboardInterrupt):
            read(x)
    assert not errors
    again(x)
    read(x)


@pytest.mark.parametrize("read", (np.asarray, float, operator.index, lambda x: X[x - 3]))
def test_an_error_at_any_instruction(read):
    """But for the entry of what NumPy calls, which nothing can watch."""
    names = ("readable", "host", "dense", "_scalar", "__float__", "read_only", "_refuse_unreduced")

    def chosen(code):
        return code.co_filename == array_module.__file__ and code.co_name in names

    x = jnp.asarray(X[0])
    with Raiser(None, chosen) as counted:
        read(x + 0)
    for number in range(counted.count):
        value = x + 0
        with Raiser(number, chosen) as raiser, pytest.raises(Stop):
            read(value)
        assert raiser.where is not None
        assert int(value) == 3 and np.asarray(value) == 3
