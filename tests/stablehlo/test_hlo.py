"""HLO: XLA reads and runs the text that programs have in its own form, and agrees with tier 0."""

from __future__ import annotations

import numpy as np
import pytest
from jaxlib import _hlo, _jax

import maxjax
from maxjax._stablehlo.hlo import hlo_text
from maxjax.experimental.xla_metadata import set_xla_metadata
from tests.stablehlo.test_stablehlo import FAMILIES, check_family, parsed

COUNT = 6


def read_by_xla(stablehlo):
    """Bytecode of what XLA reads; None where the text has what XLA has no operation for."""
    parsed(stablehlo)
    text = hlo_text(stablehlo)
    if '"chlo.' in text or '"maxjax.' in text:
        _hlo.hlo_module_from_text(text)
        return None
    module = _hlo.hlo_module_from_text(text)
    return _jax.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())


@pytest.mark.parametrize("family", FAMILIES)
def test_families_give_what_tier_0_gives(family):
    check_family(family, COUNT, read_by_xla)


@pytest.mark.exhaustive
@pytest.mark.parametrize("family", FAMILIES)
def test_all_cases_give_what_tier_0_gives(family):
    check_family(family, None, read_by_xla)


def test_lines_say_scopes_and_metadata():
    """Loops, branches and calls are scopes; what a user says of an operation stands at its line."""
    @maxjax.jit
    def inner(x):
        return maxjax.numpy.sin(x)

    def function(x):
        with maxjax.named_scope("layer"):
            y = maxjax.lax.cond(x[0] > 0, inner, lambda x: -x, x)
        with set_xla_metadata(note="kept"):
            y = maxjax.lax.scan(lambda c, x: (c * x, c), y, x)[0]
        return maxjax.grad(lambda x: maxjax.checkpoint(inner)(x).sum())(y)

    lowered = maxjax.jit(function).lower(np.ones(3, np.float32))
    text = lowered.as_text("hlo", debug_info=True)
    assert _hlo.hlo_module_from_text(text)
    sine, negated, scanned, again = (
        next(line for line in text.splitlines() if word in line)
        for word in (" sine(", " negate(", " multiply(", " cosine("))
    assert 'op_name="jit(function)/layer/cond/branch_1_fun/jit(inner)/sin"' in sine
    assert 'op_name="jit(function)/layer/cond/branch_0_fun/neg"' in negated
    assert 'op_name="jit(function)/while/body/' in scanned and 'note="kept"' in scanned
    assert " opt-barrier(" in text
    assert "rematted_computation" in again and f'source_file="{__file__}"' in again
    assert "op_name" not in lowered.as_text("hlo")


def test_symbolic_sizes_have_no_hlo():
    size, = maxjax.export.symbolic_shape("n")
    lowered = maxjax.jit(lambda x: 2 * x).lower(maxjax.ShapeDtypeStruct((size,), np.float32))
    with pytest.raises(NotImplementedError, match="HLO has no symbolic sizes"):
        lowered.as_text("hlo")
    with pytest.raises(ValueError, match="Unknown dialect: mhlo"):
        lowered.as_text("mhlo")
