"""Random custom_jvp rules that compute value and tangent in one, for either library.

A program is a tree of steps of one value, and of what they stand in: calls, branches, loops,
checkpoints, derivatives, other custom rules, shards. ``value`` computes it plainly. ``pair``
computes the value and its tangent together, each node by one application that takes and gives both:
the rule of ``with_rule``. Reverse mode has to tell the known values from the tangents in there.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

Tree = tuple[Any, ...]
Pair = Callable[[Any, Any], tuple[Any, Any]]

X = np.array([0.3, 0.7, 1.1, 0.4], np.float32)
WEIGHTS = np.array([0.9, 1.1, 0.7], np.float32)


# --- steps ----------------------------------------------------------------------------------------

STEPS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sin": (lambda j, p: j.numpy.sin(p), lambda j, p: j.numpy.cos(p)),
    "square": (lambda j, p: p * p, lambda j, p: 2 * p),
    "decay": (lambda j, p: j.numpy.exp(-p), lambda j, p: -j.numpy.exp(-p)),
    "shrink": (lambda j, p: 0.5 * p + 0.25, lambda j, p: 0.5),
}


def halved(j: Any, p: Any) -> Any:
    """An eighth of a value, by a loop that has no reverse mode of its own."""
    @j.custom_jvp
    def function(p: Any) -> Any:
        return j.lax.while_loop(
            lambda c: c[1] < 3, lambda c: (0.5 * c[0], c[1] + 1), (p, 0))[0]

    function.defjvp(lambda primals, tangents: (function(*primals), tangents[0] / 8))
    return function(p)


# --- what steps stand in --------------------------------------------------------------------------
# The value of a node of one child, and the pair of it: of the child's pair, and the child.


def scanned_value(j: Any, f: Callable[[Any], Any], p: Any) -> Any:
    total = p
    for weight in WEIGHTS:
        total = total + 0.1 * p
        p = f(p * weight)
    return p + total


def scanned(j: Any, g: Pair, child: Tree) -> Pair:
    def pair(p: Any, t: Any) -> Any:
        (p2, t2), (ps, ts) = j.lax.scan(
            lambda c, w: (g(c[0] * w, c[1] * w), c), (p, t), WEIGHTS)
        return p2 + p + 0.1 * ps.sum(0), t2 + t + 0.1 * ts.sum(0)
    return pair


def with_counter(j: Any, g: Pair, child: Tree) -> Pair:
    """A loop whose counter is known, and whose carries change places."""
    def pair(p: Any, t: Any) -> Any:
        t, _, p = j.lax.fori_loop(
            0, 2, lambda i, c: (lambda p, t: (t, c[1] + i, p))(*g(c[2], c[0])), (t, 0, p))
        return p, t
    return pair


def nested_rule(j: Any, g: Pair, child: Tree) -> Pair:
    inner = with_rule(j, child)
    return lambda p, t: j.jvp(inner, (p,), (t,))


def rule_of_both(j: Any, g: Pair, child: Tree) -> Pair:
    both = j.custom_jvp(g)
    both.defjvp(lambda primals, tangents: j.jvp(g, primals, tangents))
    return both


def sharded(j: Any, g: Pair, child: Tree) -> Pair:
    spec = j.sharding.PartitionSpec("i")
    devices = j.devices()[:2]
    mesh = j.make_mesh((len(devices),), ("i",), axis_types=(j.sharding.AxisType.Auto,),
                       devices=devices)
    return j.shard_map(g, mesh=mesh, in_specs=(spec, spec), out_specs=(spec, spec))


def mapped(j: Any, g: Pair, child: Tree) -> Pair:
    def pair(p: Any, t: Any) -> Any:
        p, t = j.vmap(g)(p[None], t[None])
        return p[0], t[0]
    return pair


PAIRS: dict[str, Callable[[Any, Pair, Tree], Pair]] = {
    "jit": lambda j, g, child: j.jit(g),
    "jit of tangents": lambda j, g, child: lambda p, t: j.jit(lambda t: g(p, t))(t),
    "jit with more": lambda j, g, child: lambda p, t: j.jit(
        lambda p, t: (2 * t, *g(p, t)[::-1], j.numpy.cos(p)))(p, t)[2:0:-1],
    "checkpoint": lambda j, g, child: j.checkpoint(g),
    "checkpoint of dots": lambda j, g, child: j.checkpoint(
        g, policy=j.checkpoint_policies.dots_saveable),
    "jvp": lambda j, g, child: lambda p, t: j.jvp(j.jit(lambda p: value(j, child, p)), (p,), (t,)),
    "counter": with_counter,
    "scan": scanned,
    "custom_jvp": nested_rule,
    "custom_jvp of both": rule_of_both,
    "shard_map": sharded,
    "vmap": mapped,
}

VALUES: dict[str, Callable[[Any, Callable[[Any], Any], Any], Any]] = {
    "counter": lambda j, f, p: f(f(p)),
    "scan": scanned_value,
}


def is_first(j: Any, p: Any) -> Any:
    return p[0] > 0.5


def value(j: Any, tree: Tree, p: Any) -> Any:
    """What a program computes, without anything of a higher order."""
    kind, *children = tree
    if kind in STEPS:
        return STEPS[kind][0](j, p)
    if kind == "known loop":
        return 0.125 * p
    if kind == "then":
        return value(j, children[1], value(j, children[0], p))
    if kind == "cond":
        first, second = (value(j, child, p) for child in children)
        return j.numpy.where(is_first(j, p), first, second)
    return VALUES.get(kind, lambda j, f, p: f(p))(j, lambda p: value(j, children[0], p), p)


def pair(j: Any, tree: Tree) -> Pair:
    """What gives a program's value and tangent together."""
    kind, *children = tree
    if kind in STEPS:
        function, derivative = STEPS[kind]
        return lambda p, t: (function(j, p), derivative(j, p) * t)
    if kind == "known loop":
        return lambda p, t: (halved(j, p), t / 8)
    pairs = [pair(j, child) for child in children]
    if kind == "then":
        return lambda p, t: pairs[1](*pairs[0](p, t))
    if kind == "cond":
        return lambda p, t: j.lax.cond(is_first(j, p), *pairs, p, t)
    return PAIRS[kind](j, pairs[0], children[0])


def with_rule(j: Any, tree: Tree) -> Callable[[Any], Any]:
    """A program, with the rule that computes value and tangent together."""
    function = j.custom_jvp(lambda x: value(j, tree, x))
    rule = pair(j, tree)
    function.defjvp(lambda primals, tangents: rule(*primals, *tangents))
    return function


def random_tree(rng: random.Random, depth: int, shards: bool = True) -> Tree:
    """A program of steps in up to ``depth`` levels.

    Args:
      shards: whether there may be a shard_map: there is none in another, or in what maps or loops.
    """
    if depth == 0:
        return (rng.choice([*STEPS, "known loop"]),)
    kind = rng.choice([*PAIRS, "then", "then", "cond"])
    if kind == "shard_map" and not shards:
        kind = "jit"
    if kind == "then":
        return (kind, random_tree(rng, depth - 1, shards), random_tree(rng, depth - 1, shards))
    if kind == "cond":      # of the first element, which each shard has another of
        return (kind, random_tree(rng, depth - 1, False), random_tree(rng, depth - 1, False))
    child = random_tree(rng, depth - 1, shards and kind in ("jit", "jit of tangents"))
    return (kind, without_branches(child) if kind == "shard_map" else child)


def without_branches(tree: Tree) -> Tree:
    kind, *children = tree
    return without_branches(children[0]) if kind == "cond" else (
        kind, *map(without_branches, children))


# --- derivatives ----------------------------------------------------------------------------------


def reverse(j: Any, f: Callable[[Any], Any]) -> dict[str, Callable[[Any], Any]]:
    """Functions of a vector that take derivatives of ``f`` by reverse mode."""
    np_ = j.numpy

    def total(x: Any) -> Any:
        return (f(x) * np_.arange(1.0, 5.0)).sum()

    def pulled(x: Any) -> Any:
        out, pull = j.vjp(f, x)
        return out, pull(np_.cos(x))

    def linear(x: Any) -> Any:
        out, push = j.linearize(f, x)
        return out, push(np_.cos(x)), push(x)

    return {
        "grad": j.grad(total),
        "with aux": j.value_and_grad(lambda x: (total(x), f(x)), has_aux=True),
        "vjp": pulled,
        "linearize": linear,
        "of a batch": lambda x: j.vmap(j.grad(total))(np_.stack([x, 0.5 * x])),
        "by checkpoint": j.grad(lambda x: j.checkpoint(lambda y: total(y) * x[0])(2 * x)),
        "closed over": j.grad(lambda x: (j.jit(lambda y: f(x) * y)(x * x)).sum()),
        "scanned": j.grad(lambda x: j.lax.scan(
            lambda c, w: (f(c * w), None), x, WEIGHTS)[0].sum()),
        "second": j.grad(lambda x: (j.grad(total)(x) * x).sum()),
        "forward over reverse": lambda x: j.jvp(j.grad(total), (x,), (np_.sin(x),)),
    }


def forward(j: Any, f: Callable[[Any], Any], x: Any) -> Any:
    return j.jvp(f, (x,), (j.numpy.cos(x),))
