"""Elementwise operations and generated kernels as code for a GPU, compiled without one."""

from __future__ import annotations

import pytest

from tests.support import mojo_programs

pytest.importorskip("max.engine")

from maxjax._base.dtypes import name_of
from maxjax._max.mojo.vector_operations import dtypes_of_units, operators
from tests.support import device_code

FAMILIES = mojo_programs.tables()
TOGETHER = 48
# With tables, costly ones, integers, halves and doubles.
SOME = ("vector_sin_float32", "vector_erf_inv_float32", "vector_lgamma_float32", "vector_div_int32",
        "vector_add_bfloat16", "vector_tanh_float64")

pytestmark = pytest.mark.xdist_group("mojo")


def check(texts: dict[str, str], allowed: frozenset[str] = frozenset()) -> None:
    failures = []
    items = list(texts.items())
    for begin in range(0, len(items), TOGETHER):
        batch = items[begin:begin + TOGETHER]
        failures += device_code.problems(device_code.compiled(dict(batch)), allowed)
    assert not failures, "\n".join(failures)


def forms_of(family: str) -> list:
    return [*dict.fromkeys(
        kernel for item in mojo_programs.family(FAMILIES[family]) for kernel in item.kernels)]


# What allocates memory, as no operation may.
GROWS = """
def grows(x: Pointer[Int, MutAnyOrigin], n: Int):
    var found = List[Int](length=n, fill=x[])
    for i in range(n):
        found[i] = x[] * i
    for i in range(n):
        x.unsafe_store(found[i], found[n - i])
"""


def test_some_operators_are_code_for_a_device():
    """A sample of the operations; what is no code for a device is told."""
    chosen = [x for dtype in dtypes_of_units() for x in operators(dtype) if x.function in SOME]
    assert len(chosen) == len(SOME)
    found, = device_code.problems(device_code.compiled(
        {**device_code.of_operators(chosen), "grows": GROWS}))
    assert found.startswith("grows") and "malloc" in found
    assert device_code.problems({"x": f".target {device_code.TARGET}\n"})


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", [name_of(x) for x in dtypes_of_units()])
def test_all_operations(dtype):
    kind, = (x for x in dtypes_of_units() if name_of(x) == dtype)
    check(device_code.of_operators(operators(kind)))


@pytest.mark.exhaustive
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_generated_kernels(family):
    check(device_code.of_forms(forms_of(family)), device_code.RUNTIME)
