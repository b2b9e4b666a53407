"""Programs as texts, and cut in pieces: every case, and random ones."""

from __future__ import annotations

import functools
import json

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maxjax
import maxjax.numpy as jnp
from maxjax._higher_order.composed import HIDDEN
from maxjax._ir.check import check_jaxpr
from maxjax._ir.interpret import interpreter
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.runtime import installed
from maxjax._ir.serialize import decode, dumps, encode
from maxjax._runtime.compiled import CompiledProgram
from maxjax._runtime.program import Program
from maxjax._transforms.partition import host_reason, partition
from maxjax._transforms.simplify import simplify
from tests.runtime.test_tiers import Model
from tests.support import harness
from tests.transforms import test_compositions as compositions

X = np.array([0.5, -1.25, 2.0], np.float32)


def traced_cases():
    for family, cases in harness.families().items():
        if isinstance(cases, Exception):
            continue
        for case in cases:
            if case.jittable and not case.raises:
                yield pytest.param(case, id=f"{family}-{case.name}")


TRACED = list(traced_cases())


@functools.cache
def closed_of(case):
    operands = [installed.runtime.operand(arg) for arg in case.args]
    return maxjax.jit(case.on(maxjax))._lookup(tuple(operands), {}).closed, [
        operand.host() for operand in operands]


def same(one, two):
    one, two = np.asarray(one), np.asarray(two)
    assert one.dtype == two.dtype and one.shape == two.shape
    assert np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(two).tobytes()


def run(program_jaxpr, values):
    with np.errstate(all="ignore"):
        return interpreter(ClosedJaxpr(program_jaxpr))(*values)


@pytest.mark.parametrize("case", TRACED)
def test_text_round_trip(case):
    with case.precision():
        closed, values = closed_of(case)
        check_jaxpr(closed)
        # Rules and reducers in Python have no text; simplifying inlines the calls.
        inlined = any(eqn.primitive.inner.calls == HIDDEN for eqn in closed.jaxpr.eqns)
        whole = [] if inlined or "custom_jvp_call" in str(closed) else [closed.jaxpr]
        for jaxpr in (*whole, simplify(closed).jaxpr):
            text = dumps(encode(jaxpr))
            again = decode(json.loads(text))
            check_jaxpr(again)
            assert dumps(encode(again)) == text
            assert again.in_avals == jaxpr.in_avals
        program = Program(closed)
        text = dumps(encode(program.opened.jaxpr))
        operands = [*program.consts, *values]
        for a, b in zip(run(decode(json.loads(text)), operands),
                        run(program.opened.jaxpr, operands), strict=True):
            same(a, b)


@pytest.mark.parametrize("case", TRACED)
def test_pieces_give_what_the_whole_gives(case):
    with case.precision():
        closed, values = closed_of(case)
        program = Program(closed)
        check_pieces(program, values, seed=case.seed())


def check_pieces(program, values, seed, host=None):
    jaxpr = program.opened.jaxpr
    values = [*program.consts, *values]
    whole = run(jaxpr, values)
    rng = np.random.default_rng(seed)
    for probability in (0.0, 0.3, 0.6, 1.0) if host is None else (None,):
        if host is None:
            chosen = {id(eqn) for eqn in jaxpr.eqns if rng.random() < probability}
        else:
            chosen = {id(eqn) for eqn, on_host in zip(jaxpr.eqns, host) if on_host}
        pieces = partition(jaxpr, lambda eqn, c=chosen: "by lot" if id(eqn) in c else None)
        check_cut(jaxpr, pieces, chosen)
        models = {n: Model(encode(piece.jaxpr)) for n, piece in enumerate(pieces)
                  if not piece.on_host}
        results = CompiledProgram(jaxpr, pieces, models)(values)
        for a, b in zip(results, whole, strict=True):
            same(a, b)


def check_cut(jaxpr, pieces, chosen):
    """Each equation is in one piece of its kind; a piece's inputs come before it."""
    known = set(jaxpr.invars)
    count = 0
    for piece in pieces:
        assert known.issuperset(piece.inputs)
        check_jaxpr(piece.jaxpr)
        known.update(piece.outputs)
        count += len(piece.jaxpr.eqns)
        assert all((id(eqn) in chosen) == piece.on_host for eqn in piece.jaxpr.eqns)
        assert bool(piece.reasons) == piece.on_host
    assert count == len(jaxpr.eqns)
    for one, two in zip(pieces, pieces[1:]):
        assert one.on_host != two.on_host, "two pieces of one kind in a row"


def longer(x, y):
    hidden = jnp.tanh(x @ y + 1)
    total, rows = jnp.sum(hidden), jnp.max(hidden, axis=1)
    return {"a": hidden * total, "b": (rows[::-1] / (1 + total), x), "c": jnp.cumsum(rows) - 2.0}


@functools.cache
def longer_program():
    gradient = maxjax.grad(lambda x, y: sum(
        jnp.sum(leaf) for leaf in jax.tree_util.tree_leaves(longer(x, y))))
    fun = maxjax.jit(lambda x, y: (longer(x, y), gradient(x, y), x))
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    y = np.linspace(1, -2, 6, dtype=np.float32).reshape(3, 2)
    return Program(fun._lookup((x, y), {}).closed), [x, y]


@settings(max_examples=60)
@given(st.lists(st.booleans(), min_size=60, max_size=60))
def test_any_cut_gives_what_the_whole_gives(host):
    program, values = longer_program()
    assert len(program.opened.jaxpr.eqns) <= 60
    check_pieces(program, values, 0, host)


@settings(max_examples=40, phases=compositions.PHASES)
@given(compositions.SEEDS)
def test_random_programs_survive_their_text_and_their_cuts(seed):
    steps, stack, args = compositions.case(seed + (1 << 41))
    jitted = maxjax.jit(compositions.transformed(maxjax, steps, stack))
    program = Program(jitted._lookup(args, {}).closed)
    text = dumps(encode(program.opened.jaxpr))
    again = decode(json.loads(text))
    check_jaxpr(again)
    assert dumps(encode(again)) == text
    check_pieces(program, list(args), seed)


def test_host_reasons():
    closed = maxjax.jit(lambda x: jnp.fft_missing(x) if hasattr(jnp, "fft_missing") else (
        x.astype(jnp.complex64) * 2).real + 1)._lookup((X,), {}).closed
    reasons = [host_reason(eqn) for eqn in simplify(closed).eqns]
    assert any(reason and "complex64" in reason for reason in reasons)
    assert reasons[-1] is None
