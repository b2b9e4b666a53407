"""Random keys of "rbg" and "unsafe_rbg" as their words, which StableHLO has elements for.

A key of threefry is an element of 64 bits. These have 128, which no element of StableHLO's that
may be cast has: a program with them is written again, with arrays of words, four in a last
dimension, and with XLA's ``rng_bit_generator`` for what draws from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.control_flow import bodies_of, with_bodies
from maxjax._ir.evaluate import apply_equation, eval_jaxpr
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, JaxprEqn, every_equation
from maxjax._ir.primitive import Primitive
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Shape
from maxjax._primitives.bit_generator import rng_bit_generator_p
from maxjax._primitives.comparison import xor_p
from maxjax._primitives.creation import full
from maxjax._primitives.generators import THREEFRY
from maxjax._primitives.joining import concatenate
from maxjax._primitives.layout import move_axis, reshape
from maxjax._primitives.random_bits import (
    random_bits_p,
    random_clone_p,
    random_fold_in_p,
    random_seed_p,
    random_split_p,
    random_unwrap_p,
    random_wrap_p,
)
from maxjax._primitives.random_rbg import STRIDE
from maxjax._primitives.slicing import slice_in_dim
from maxjax._primitives.threefry import unsigned
from maxjax._transforms.simplify import inline_calls

WORDS = 4
GENERATORS = ("rbg", "unsafe_rbg")


def with_words(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program on words of keys; the same one where it has no keys of these generators.

    Its arguments and results that are keys are arrays of words, too.
    """
    jaxpr = closed.jaxpr
    inner = [atom for eqn in every_equation(jaxpr) for atom in (*eqn.invars, *eqn.outvars)]
    if not _any_keys([*jaxpr.invars, *jaxpr.constvars, *inner]):
        return closed
    closed = inline_calls(closed)
    jaxpr = closed.jaxpr
    consts = [random_unwrap_p.bind(value) if _is_key(var.aval) else value
              for var, value in zip(jaxpr.constvars, closed.consts, strict=True)]
    traced = trace_to_jaxpr(lambda *xs: eval_jaxpr(jaxpr, consts, *xs, rule=_apply),
                            [_of_words(aval) for aval in closed.in_avals])
    return traced.with_facts(closed.facts)


def _is_key(aval: Any) -> bool:
    return dtypes.is_key(aval.dtype) and aval.dtype.impl in GENERATORS


def _any_keys(atoms: Iterable[Atom]) -> bool:
    return any(_is_key(atom.aval) for atom in atoms)


def _of_words(aval: ShapedArray) -> ShapedArray:
    return ShapedArray((*aval.shape, WORDS), dtypes.uint32) if _is_key(aval) else aval


def _apply(eqn: JaxprEqn, operands: Sequence[Array]) -> Sequence[Any]:
    primitive = eqn.primitive
    bodies = list(bodies_of(eqn))
    if bodies:
        found = primitive.bind(*operands, **with_bodies(eqn, [with_words(body) for body in bodies]))
        return found if primitive.multiple_results else (found,)
    if not _any_keys([*eqn.invars, *eqn.outvars]):
        return apply_equation(eqn, operands)
    rule = _RULES.get(primitive)
    if rule is not None:
        return (rule(eqn, *operands),)
    # What moves keys about moves each of their words alike.
    assert primitive.batch is not None
    results, axes = primitive.batch(
        WORDS, operands, [len(atom.aval.shape) if _is_key(atom.aval) else None
                          for atom in eqn.invars], **eqn.params)
    if not primitive.multiple_results:
        results, axes = (results,), (axes,)
    return [move_axis(x, axis, len(x.shape) - 1) for x, axis in zip(results, axes, strict=True)]


# --- what draws from keys -------------------------------------------------------------------------

def _is_unsafe(eqn: JaxprEqn) -> bool:
    atoms = [atom for atom in (*eqn.outvars, *eqn.invars) if _is_key(atom.aval)]
    return atoms[0].aval.dtype.impl == "unsafe_rbg"


def _draw(words: Array, shape: Shape, dtype: np.dtype) -> Array:
    """Bits for all keys, which the first one gives."""
    if 0 in (*words.shape, *shape):
        return full(shape, 0, dtype)
    flat = reshape(words, (int(np.prod(words.shape, dtype=np.int64)),))
    state, bits = rng_bit_generator_p.bind(
        slice_in_dim(flat, 0, WORDS, 0), shape=tuple(shape), dtype=dtype, algorithm=0,
        out_sharding=None)
    return bits


def _halves(words: Array) -> Array:
    """(..., 2) keys of threefry."""
    return random_wrap_p.bind(reshape(words, (*words.shape[:-1], 2, 2)), impl=THREEFRY)


def _joined(keys: Array, axis: int) -> Array:
    """Words of keys from those of threefry, two along an axis."""
    last = len(keys.shape)
    words = move_axis(random_unwrap_p.bind(keys), axis, last - 1)
    return reshape(words, (*words.shape[:-2], WORDS))


def _bits(eqn: JaxprEqn, words: Array) -> Array:
    return _draw(words, eqn.outvars[0].aval.shape, unsigned(eqn.params["bit_width"]))


def _seed(eqn: JaxprEqn, seeds: Array) -> Array:
    return _seeded(seeds)


def _seeded(seeds: Array) -> Array:
    half = random_unwrap_p.bind(random_seed_p.bind(seeds, impl=THREEFRY))
    return concatenate([half, half], len(half.shape) - 1)


def _split(eqn: JaxprEqn, words: Array) -> Array:
    batch, shape = words.shape[:-1], eqn.params["shape"]
    if not _is_unsafe(eqn):
        return _joined(random_split_p.bind(_halves(words), **eqn.params), len(batch))
    count = int(np.prod(shape, dtype=np.int64))
    rows = _draw(words, (*batch, STRIDE * count, WORDS), dtypes.uint32)
    kept = slice_in_dim(rows, 0, STRIDE * count, len(batch), STRIDE)
    return reshape(kept, (*batch, *shape, WORDS))


def _fold_in(eqn: JaxprEqn, words: Array, data: Array) -> Array:
    batch = words.shape[:-1]
    if not _is_unsafe(eqn):
        pair = [slice_in_dim(_halves(words), number, number + 1, len(batch)) for number in (0, 1)]
        new = [random_fold_in_p.bind(half, reshape(data, (*batch, 1))) for half in pair]
        return _joined(concatenate(new, len(batch)), len(batch))
    rows = _draw(_seeded(data), (*data.shape, STRIDE, WORDS), dtypes.uint32)
    last = slice_in_dim(rows, STRIDE - 1, STRIDE, len(data.shape))
    return xor_p.bind(words, reshape(last, (*data.shape, WORDS)))


_RULES: Mapping[Primitive, Callable[..., Any]] = {
    random_wrap_p: lambda eqn, words: words, random_unwrap_p: lambda eqn, words: words,
    random_clone_p: lambda eqn, words: words, random_bits_p: _bits, random_seed_p: _seed,
    random_split_p: _split, random_fold_in_p: _fold_in,
}
