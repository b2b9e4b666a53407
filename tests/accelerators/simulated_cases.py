"""Every case table's programs on a simulated accelerator; run by ``test_simulated``.

The stand-in for the compiler interprets, so what is tested is that each value is where its reader
is: pieces, host steps between them, constants and results. It rounds as the host does, but where
complex values go in parts.
"""

from __future__ import annotations

import pytest

import maxjax as jax
from maxjax._runtime import on_device
from tests.accelerators.stand_in import compiled_at_once, gpu  # noqa: F401  (a fixture)
from tests.support import harness

CASES = [
    pytest.param(case, id=f"{family}-{case.name}")
    for family, cases in harness.families().items() if not isinstance(cases, Exception)
    for case in cases if case.jittable and not case.raises]


@pytest.mark.parametrize("case", CASES)
def test_a_case_gives_there_what_it_gives_on_the_host(case, compiled_at_once):  # noqa: F811
    with case.precision():
        operands = [jax.numpy.asarray(arg) for arg in case.args]
        there = [jax.device_put(operand, gpu()) for operand in operands]
        function = jax.jit(case.on(jax))
        ours = jax.tree.leaves(function(*there))
        with jax.default_device(jax.devices("cpu")[0]):
            expected = jax.tree.leaves(jax.jit(case.on(jax))(*operands))
        program = on_device.explained(function._lookup(tuple(there), {}).closed, there)
        if any(x.devices() == {gpu()} for x in ours):       # else it reads no argument
            assert program.state in ("compiled", "host"), program.reason
        for x, y in zip(ours, expected, strict=True):
            assert x.aval == y.aval
            there, here = x.host(), y.host()
            assert there.dtype == here.dtype
            harness.assert_close(there, here, case.tolerance, signed_zeros=case.signed_zeros,
                                 what=f"{program} ")
