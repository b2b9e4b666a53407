"""The primitive that calls a jaxpr: ``jit``."""

from __future__ import annotations

from maxjax._ir.interpret import interpreter
from maxjax._ir.primitive import Primitive
from maxjax._ir.refs import read_all, write_back
from maxjax._primitives.rules import call_factors, is_linear
from maxjax._transforms.batching import batch_jaxpr
from maxjax._transforms.jvp import jvp_jaxpr
from maxjax._transforms.linearize import linearize_jaxpr
from maxjax._transforms.transpose import transpose_with_refs


def _jit_jvp(primals, tangents, *, jaxpr, name):
    nonzero = tuple(tangent is not None for tangent in tangents)
    both, out_nonzero = jvp_jaxpr(jaxpr, nonzero)
    results = jit_p.bind(*primals, *(t for t in tangents if t is not None), jaxpr=both, name=name)
    count = len(jaxpr.out_avals)
    given = iter(results[count:])
    return results[:count], [next(given) if is_nonzero else None for is_nonzero in out_nonzero]


def _jit_linearize(trace, primals, tangents, *, jaxpr, name):
    nonzero = tuple(tangent is not None for tangent in tangents)
    forward, linear, out_nonzero = linearize_jaxpr(jaxpr, nonzero)
    results = jit_p.bind(*primals, jaxpr=forward, name=name)
    count = len(jaxpr.out_avals)
    outs, residuals = results[:count], results[count:]
    if not any(out_nonzero):
        return outs, [None] * count
    given = iter(jit_p.bind(
        *residuals, *(t for t in tangents if t is not None), jaxpr=linear, name=name))
    return outs, [next(given) if is_nonzero else None for is_nonzero in out_nonzero]


def _jit_transpose(cotangents, *operands, jaxpr, name):
    linear = tuple(map(is_linear, operands))
    given = tuple(cotangent is not None for cotangent in cotangents)
    transposed, nonzero = transpose_with_refs(jaxpr, linear, given)
    uses = transposed.refs
    results = iter(write_back(uses, jit_p.bind(
        *(x for x, is_lin in zip(operands, linear, strict=True) if not is_lin),
        *(ct for ct in cotangents if ct is not None), *read_all(uses), jaxpr=transposed,
        name=name)))
    flags = iter(nonzero)
    return [(next(results) if next(flags) else None) if is_lin else None for is_lin in linear]


def _jit_batch(size, operands, axes, *, jaxpr, name):
    batched, out_batched = batch_jaxpr(jaxpr, size, tuple(axes))
    results = jit_p.bind(*operands, jaxpr=batched, name=name)
    return results, [0 if is_batched else None for is_batched in out_batched]


jit_p = Primitive(
    "jit",
    abstract=lambda *avals, jaxpr, name: tuple(jaxpr.out_avals),
    bodies=lambda *avals, jaxpr, name: [(jaxpr, avals, None)],
    evaluate=lambda *values, jaxpr, name: interpreter(jaxpr)(*values),
    lower=lambda ctx, *values, jaxpr, name: ctx.lower_closed(jaxpr, values),
    jvp=_jit_jvp,
    linearize=_jit_linearize,
    transpose=_jit_transpose,
    batch=_jit_batch,
    factors=call_factors,
    multiple_results=True,
    cacheable=False,
    calls="jaxpr",
    names_inputs=True,
    shown=lambda params: {
        name: value for name, value in params.items()
        if not (name == "donated_invars" and not any(value))
        and not (name in ("inline", "keep_unused") and not value)},
)
