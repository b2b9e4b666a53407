"""What reads a variable, up to where, and what is needed for what, on one program:

    { lambda ; a:f32[3] b:f32[3] c:f32[3] d:f32[3]. let
        e:f32[3] = sin a
        f:f32[3] = mul e b
        g:f32[3] = cos c
        debug_print d
      in (f, e) }
"""

import numpy as np

import maxjax
from maxjax._ir import liveness


def program():
    def fun(a, b, c, d):
        e = maxjax.numpy.sin(a)
        f = e * b
        maxjax.numpy.cos(c)
        maxjax.debug.print("{}", d)
        return f, e
    return maxjax.make_jaxpr(fun)(*[np.ones(3, np.float32)] * 4)


def test_what_equations_read_and_when_last():
    closed = program()
    a, b, c, d = closed.invars
    sin, mul, *_ = closed.eqns
    e, = sin.outvars
    f, = mul.outvars
    assert list(liveness.read_variables(closed.eqns, closed.outvars)) == [a, e, b, c, d, f]
    assert liveness.read_inputs(closed) == [True] * 4
    assert liveness.last_uses(closed.jaxpr) == {a: 0, b: 1, c: 2, d: 3}


def test_what_results_need_is_kept_and_effects():
    closed = program()
    # What has effects is always needed.
    assert liveness.needed_inputs(closed.jaxpr, [True, False]) == [True, True, False, True]
    assert liveness.needed_inputs(closed.jaxpr, [False, True]) == [True, False, False, True]
    kept = liveness.eliminate_dead_code(closed)
    assert [eqn.primitive.name for eqn in kept.eqns] == ["sin", "mul", "debug_print"]
    assert liveness.read_inputs(kept) == [True, True, False, True]


def test_dependent():
    jaxpr = program().jaxpr
    assert liveness.dependent_outputs(jaxpr, [False, True, False, False]) == [True, False]
    assert liveness.dependent_outputs(jaxpr, [True, False, False, False]) == [True, True]
    assert liveness.dependent_outputs(jaxpr, [False, False, True, True]) == [False, False]


def test_dead_code_inside_calls():
    call = maxjax.checkpoint(lambda x: (maxjax.numpy.sin(x), maxjax.numpy.cos(x)))
    closed = maxjax.make_jaxpr(lambda x: call(x)[0])(1.0)
    outside, = liveness.eliminate_dead_code(closed, inside=False).eqns
    inside, = liveness.eliminate_dead_code(closed).eqns
    assert (len(outside.params["jaxpr"].eqns), len(inside.params["jaxpr"].eqns)) == (2, 1)
