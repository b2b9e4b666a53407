"""Whatever a step of the host raises, at whichever instruction, ends the native program."""

from __future__ import annotations

import signal
import sys
import threading

import numpy as np
import pytest

from tests.support import mojo_programs
from tests.support.raising import Raiser, Stop

pytest.importorskip("max.engine")

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._max import host_step
from maxjax._max.mojo.check_plan import CheckedPlan
from maxjax._runtime.program import Program
from maxjax._transforms.tokens import order_steps

pytestmark = pytest.mark.xdist_group("mojo")

# In a loop over few elements, and in one of a tape.
SIZES = (8, 200)
STEPS = 3


def with_callback(x):
    return maxjax.pure_callback(
        lambda x: np.asarray(x) + np.float32(1), maxjax.ShapeDtypeStruct(x.shape, x.dtype), x)


def with_rule(x):
    return jnp.zeros_like(x) + lax.random_gamma_grad(jnp.abs(x) + 1, jnp.abs(x) + 1)


def with_effect(x):
    maxjax.debug.callback(lambda x: None, x)
    return x * 0.5 + 1


def in_loop(step, length=STEPS):
    return lambda x: lax.scan(lambda carry, _: (step(carry), None), x, None, length=length)[0]


def native(function, size):
    """A program as one native function on NumPy arrays."""
    x = np.linspace(-2, 2, size, dtype=np.float32)
    program = Program(maxjax.jit(function)._lookup((x,), {}).closed)
    jaxpr = order_steps(program.opened.jaxpr)
    executable = mojo_programs.without_kernels(CheckedPlan(jaxpr, 2), jaxpr)
    assert executable._host_steps
    return lambda: executable([*program.consts, x])[0]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("step", (with_callback, with_rule, with_effect))
def test_an_error_at_any_instruction(step, size, monkeypatch):
    run = native(in_loop(step), size)
    expected = run()
    hook = sys.unraisablehook

    def chosen(code):
        return code.co_filename == host_step.__file__ and "native_step" in code.co_qualname

    with Raiser(None, chosen) as counted:
        np.testing.assert_array_equal(run(), expected)
    assert counted.count > 5 * STEPS
    for number in range(counted.count):
        with Raiser(number, chosen) as raiser, pytest.raises(Stop):
            run()
        assert raiser.where is not None and sys.unraisablehook is hook, raiser.where
        np.testing.assert_array_equal(run(), expected, raiser.where)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("step", (with_callback, with_effect))
def test_what_a_signal_handler_raises(step, size):
    """The error is the handler's own, and no loop gives a result without it."""
    def handler(number, frame):
        raise Stop

    run = native(in_loop(step, 1 << 40), size)
    random = np.random.default_rng(0)
    previous = signal.signal(signal.SIGALRM, handler)
    try:
        for _ in range(40):
            with pytest.raises(Stop):
                signal.setitimer(signal.ITIMER_REAL, random.uniform(0.001, 0.02))
                run()
    finally:
        signal.signal(signal.SIGALRM, previous)


def test_an_error_in_another_thread():
    """Where Python cannot pass on what a step raised, the program ends by an error still."""
    run = native(in_loop(with_callback), SIZES[0])
    errors = []

    def chosen(code):
        return code.co_filename == host_step.__file__ and "native_step" in code.co_qualname

    def body():
        try:
            with Raiser(0, chosen):
                run()
        except BaseException as error:
            errors.append(error)
    thread = threading.Thread(target=body)
    hook, sys.unraisablehook = sys.unraisablehook, lambda unraisable: None
    try:
        thread.start()
        thread.join()
    finally:
        sys.unraisablehook = hook
    assert "nothing could catch" in str(errors[0])
