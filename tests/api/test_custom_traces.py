"""Traces of users' own, subclasses of jax.core.Trace, against JAX's."""

from __future__ import annotations

import jax.extend.core  # noqa: F401 (the cases of JAX use it)
import numpy as np
import pytest

import maxjax
import maxjax.core
import maxjax.extend.core
from tests.support.against_jax import agree

X = np.array([0.3, -0.7, 1.1], np.float32)


def listed(j, function, *args):
    """The result of a function and the operations that a trace of its own was given, in turn."""
    core, seen = j.extend.core, []

    class Seen(j.core.Tracer):
        def __init__(self, trace, value):
            super().__init__(trace, j.typeof(value))
            self.value = value

        def full_lower(self):
            return self

    class Listing(j.core.Trace):
        def __init__(self, parent, tag):
            super().__init__()
            self.parent, self.tag = parent, tag

        def value_of(self, x):
            return x.value if isinstance(x, Seen) and x._trace.tag is self.tag else x

        def process_primitive(self, primitive, tracers, params):
            avals = [j.typeof(tracer) for tracer in tracers]
            seen.append((str(primitive), [str(aval) for aval in avals]))
            found = primitive.bind_with_trace(
                self.parent, [self.value_of(x) for x in tracers], avals, params)
            assert isinstance(found, list) == primitive.multiple_results
            return j.tree.map(lambda value: Seen(self, value), found)

        def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
            return self.process_call(primitive, fun, tracers, symbolic_zeros)

        def process_custom_vjp_call(self, primitive, fun, fwd, bwd, tracers, out_trees,
                                    symbolic_zeros):
            return self.process_call(primitive, fun, tracers, symbolic_zeros)

        def process_call(self, primitive, fun, tracers, symbolic_zeros):
            seen.append((str(primitive), fun.__name__, len(tracers), symbolic_zeros))
            with core.set_current_trace(self):
                return fun.call_wrapped(*tracers)

    with core.take_current_trace() as parent:
        trace = Listing(parent, core.TraceTag())
        with core.set_current_trace(trace):
            found = function(*[Seen(trace, x) for x in args])
        return j.tree.map(trace.value_of, found), seen


def with_jvp(j):
    @j.custom_jvp
    def sine(x):
        return j.lax.sin(x)

    sine.defjvp(lambda primals, tangents: (sine(*primals), tangents[0]))
    return sine


def with_vjp(j):
    @j.custom_vjp
    def cosine(x):
        return j.lax.cos(x)

    cosine.defvjp(lambda x: (cosine(x), None), lambda _, ct: (ct,))
    return cosine


FUNCTIONS = {
    "one result": lambda j: j.lax.sin,
    "several results": lambda j: lambda x: j.lax.top_k(x, 2),
    "in turn": lambda j: lambda x: j.lax.cos(j.lax.sin(x)),
    "jit": lambda j: j.jit(lambda x: (j.lax.sin(x), x)),
    "custom_jvp": with_jvp,
    "custom_vjp": with_vjp,
    "scan": lambda j: lambda x: j.lax.scan(lambda c, y: (j.lax.sin(c), y), x[0], x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_operations_of_a_trace(name):
    agree(lambda j: listed(j, FUNCTIONS[name](j), j.numpy.asarray(X)))


@pytest.mark.parametrize("transform", ["jit", "vmap", "make_jaxpr"])
def test_under_transformations(transform):
    def run(j):
        def function(x):
            found, seen = listed(j, lambda y: j.lax.cos(j.lax.sin(y)), x)
            assert [name for name, _ in seen] == ["sin", "cos"]
            return found

        found = getattr(j, transform)(function)(X)
        return str(found) if transform == "make_jaxpr" else found

    agree(run)


@pytest.mark.parametrize("wrapped", [with_jvp, with_vjp])
def test_rules_of_staged_functions_are_seen(wrapped):
    def run(j):
        closed = j.make_jaxpr(wrapped(j))(X)
        _, seen = listed(j, j.extend.core.jaxpr_as_fun(closed), j.numpy.asarray(X))
        return [entry[0] for entry in seen]

    agree(run)


def test_what_a_trace_must_define():
    class Bare(maxjax.core.Trace):
        pass

    for function in (maxjax.lax.sin, with_jvp(maxjax), with_vjp(maxjax)):
        with maxjax.extend.core.set_current_trace(Bare()), pytest.raises(NotImplementedError):
            function(X)


def test_operations_passed_on():
    def run(j):
        class Passing(j.core.Trace):
            def process_primitive(self, primitive, tracers, params):
                return self.parent.process_primitive(primitive, tracers, params)

        trace, x = Passing(), j.numpy.asarray(X)
        with j.extend.core.take_current_trace() as trace.parent:
            assert isinstance(trace.parent, j.core.Trace)
            with j.extend.core.set_current_trace(trace):
                return j.lax.sin(x)

    agree(run)


def test_trace_tags_compare_as_in_jax():
    agree(lambda j: [j.extend.core.TraceTag() == j.extend.core.TraceTag(),
                     j.extend.core.TraceTag() == 1])
