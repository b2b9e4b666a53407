"""The table of elementwise operations: it is whole, and primitives are as JAX takes them to be."""

from __future__ import annotations

import operator

import jax
import jax.scipy.special
import numpy as np
import pytest
from jax._src import checkify
from jax.experimental.sparse import transform

import maxjax._primitives.all
import maxjax.lax
from maxjax._ir.primitive import registry
from maxjax._primitives.rules import elementwise_factors
from tests.support import elementwise
from tests.support.elementwise import TABLE

PRIMITIVES = sorted(name for name, primitive in registry.items()
                    if primitive.factors is elementwise_factors)
ROWS = {name: [row for row in TABLE if name in row.primitives] for name in PRIMITIVES}
# JAX's own lists.
KEEP_ZERO = {primitive.name for primitive in (*transform._zero_preserving_unary_primitives,
                                              *transform._zero_preserving_linear_unary_primitives)}
# Division has a check of its own there.
MAY_GIVE_NAN = {"div", *(primitive.name for primitive in checkify.nan_primitives)}


@pytest.mark.parametrize("name", PRIMITIVES)
def test_primitive_has_its_row(name: str) -> None:
    assert len(ROWS[name]) == 1, f"{len(ROWS[name])} rows of {name} in {elementwise.__file__}"


def test_rows_are_of_elementwise_primitives() -> None:
    assert {name for row in TABLE for name in row.primitives} == set(PRIMITIVES)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.module}.{row.name}")
def test_row_is_whole(row) -> None:
    kernels = [kernel for name in row.primitives for kernel in registry[name].compiled.kernels
               if kernel.results is None and np.dtype(np.float32) in kernel.dtypes]
    assert bool(kernels) == (row.kernel is not None), "kernel: how far it may be off"
    assert bool(row.ranges) == bool(row.units), "units: how far the NumPy rule may be off"
    if row.module == "scipy.special" and kernels:
        assert row.ranges, "ranges: where it is measured"
    assert len(row.domain) in (0, row.operands)
    assert callable(operator.attrgetter(f"{row.module}.{row.name}")(jax))


@pytest.mark.parametrize("name", PRIMITIVES)
def test_zeros_and_nan_as_in_jax(name: str) -> None:
    primitive = registry[name]
    assert primitive.values.may_give_nan == (name in MAY_GIVE_NAN)
    if name in KEEP_ZERO:
        assert primitive.values.keeps_zero
    for row in ROWS[name]:
        values = primitive.values
        if values.keeps_zero and row.domain and np.dtype(np.float32) in values.accepts:
            assert getattr(maxjax.lax, row.name)(np.float32(0)) == 0
