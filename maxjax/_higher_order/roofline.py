"""What a program computes and moves, counted on its jaxpr as JAX's ``roofline`` counts.

The counts are of arithmetic and bytes of memory as if every operation were run by itself
("unfused") and of matrix products alone, of the bytes between devices of a torus and the steps that
they take, and of the values that are alive at a time. Bodies of loops are counted once; ``while``
and branches not at all, and neither are operations that JAX has no rule for.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import logging
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from maxjax._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Params, Var, subjaxprs
from maxjax._ir.primitive import Primitive
from maxjax._ir.types import ShapedArray
from maxjax._primitives.gather_plan import GatherScatterMode

# --- what is given and found ----------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, kw_only=True)
class RooflineShape:
    """The type of a value, for rules.

    >>> shape = jax.experimental.roofline.RooflineShape.from_aval(jax.typeof(jnp.ones((2, 3))))
    >>> shape.size, shape.bytes
    (6, 24)
    """

    shape: tuple[int, ...]
    dtype: Any

    @classmethod
    def from_aval(cls, aval: object) -> RooflineShape:
        """That of a type.

        Raises:
          TypeError: it is not the type of an array.
        """
        if not isinstance(aval, ShapedArray):
            raise TypeError(f"Expected ShapedArray, got {type(aval)}.")
        return cls(shape=aval.shape, dtype=aval.dtype)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.size * self.dtype.itemsize

    @classmethod
    def total_bytes(cls, avals: Sequence[object]) -> int:
        """The bytes of values of those types."""
        return sum(cls.from_aval(aval).bytes for aval in avals)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RooflineResult:
    """What a program costs.

    Attributes:
      flops, hbm_bytes: of matrix products.
      unfused_flops, unfused_hbm_bytes: of all operations, each by itself.
      ici_bytes, ici_latency: between devices, for each axis of the mesh.
      peak_hbm_bytes: of the values that are alive at a time.

    >>> result = jax.experimental.roofline.RooflineResult
    >>> (result(flops=2, peak_hbm_bytes=8) + result(flops=3, peak_hbm_bytes=4)).peak_hbm_bytes
    8
    """

    flops: int = 0
    unfused_flops: int = 0
    ici_bytes: dict[str, int] = dataclasses.field(default_factory=dict)
    ici_latency: dict[str, int] = dataclasses.field(default_factory=dict)
    hbm_bytes: int = 0
    peak_hbm_bytes: int = 0
    unfused_hbm_bytes: int = 0

    @classmethod
    def zeros(cls) -> RooflineResult:
        """The cost of nothing."""
        return cls()

    def __add__(self, other: RooflineResult) -> RooflineResult:
        def both(mine: dict[str, int], others: dict[str, int]) -> dict[str, int]:
            return {name: mine.get(name, 0) + others.get(name, 0) for name in {**mine, **others}}

        return RooflineResult(
            flops=self.flops + other.flops,
            unfused_flops=self.unfused_flops + other.unfused_flops,
            ici_bytes=both(self.ici_bytes, other.ici_bytes),
            ici_latency=both(self.ici_latency, other.ici_latency),
            hbm_bytes=self.hbm_bytes + other.hbm_bytes,
            peak_hbm_bytes=max(self.peak_hbm_bytes, other.peak_hbm_bytes),
            unfused_hbm_bytes=self.unfused_hbm_bytes + other.unfused_hbm_bytes)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RooflineRuleContext:
    """The circumstances of an operation, for rules.

    Attributes:
      name_stack: of the function that is counted.
      primitive, avals_in, avals_out: what is applied, and the types of operands and results.
      jaxpr_eqn_ctx: None.
      mesh: over which collectives go; None: none.
      pin_lhs_in_vmem, pin_rhs_in_vmem: as ``roofline`` was asked.

    >>> primitive = jax.extend.core.Primitive("probed")
    >>> _ = primitive.def_abstract_eval(lambda x: x)
    >>> @jax.experimental.roofline.register_roofline(primitive)
    ... def rule(context, shape):
    ...     print(context.primitive, context.mesh, shape.bytes)
    ...     return jax.experimental.roofline.RooflineResult()
    >>> _ = jax.experimental.roofline.roofline(primitive.bind)(jnp.ones(3))
    probed None 12
    """

    name_stack: Any
    primitive: Primitive
    avals_in: Sequence[Any]
    avals_out: Sequence[Any]
    jaxpr_eqn_ctx: Any
    mesh: Any
    pin_lhs_in_vmem: bool
    pin_rhs_in_vmem: bool


Rule = Callable[..., RooflineResult]
_registered: dict[Primitive, Rule] = {}


def register_roofline(prim: Primitive) -> Callable[[Rule], Rule]:
    """Decorates the rule of a primitive: ``rule(context, *shapes, **params)`` gives the cost of an
    application.

    >>> primitive = jax.extend.core.Primitive("counted")
    >>> _ = primitive.def_abstract_eval(lambda x: x)
    >>> @jax.experimental.roofline.register_roofline(primitive)
    ... def rule(context, shape):
    ...     return jax.experimental.roofline.RooflineResult(flops=2 * shape.size)
    >>> jax.experimental.roofline.roofline(primitive.bind)(jnp.ones(3))[1].flops
    6
    """
    def register(rule: Rule) -> Rule:
        _registered[prim] = rule
        return rule

    return register


def register_standard_roofline(prim: Primitive) -> None:
    """Lets a primitive cost nothing.

    >>> primitive = jax.extend.core.Primitive("free")
    >>> _ = primitive.def_abstract_eval(lambda x: x)
    >>> jax.experimental.roofline.register_standard_roofline(primitive)
    >>> jax.experimental.roofline.roofline(primitive.bind)(jnp.ones(3))[1].unfused_flops
    0
    """
    _registered[prim] = lambda context, *shapes, **params: RooflineResult()


# --- operations by themselves ---------------------------------------------------------------------

_ELEMENTWISE = frozenset((
    "abs acos asin atan bessel_i0e bessel_i1e cbrt ceil conj cos cosh digamma erf erf_inv erfc exp "
    "exp2 expm1 floor imag integer_pow is_finite lgamma log log1p logistic neg not real round "
    "rsqrt sign sin sinh sqrt square tan add sub mul div rem max min eq ne ge gt le lt "
    "and or xor").split())
_CUMULATIVE = {"cumsum": 1, "cumprod": 1, "cummax": 1, "cummin": 1, "cumlogsumexp": 2}
# Calls of jaxprs, which are gone into.
_CALLS = frozenset(("jit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call",
                    "remat2", "scan", "composite", "reduce", "reduce_window", "shard_map"))


def _unfused(flops: int, *avals: ShapedArray) -> RooflineResult:
    return RooflineResult(unfused_flops=int(flops),
                          unfused_hbm_bytes=RooflineShape.total_bytes(avals))


def _operation(eqn: JaxprEqn, ins: list[ShapedArray], outs: list[ShapedArray],
               context: RooflineRuleContext) -> RooflineResult:
    """The cost of an equation that calls no jaxpr."""
    name, params = eqn.primitive.name, eqn.params
    if name in _ELEMENTWISE:
        return _unfused(outs[0].size, *ins, *outs)
    if name in _CUMULATIVE:
        return _unfused(_CUMULATIVE[name] * ins[0].shape[params["axis"]], *ins, *outs)
    if name == "select_n":
        return _unfused(outs[0].size, ins[0], *outs)
    if name == "reduce_sum":
        return _unfused(ins[0].size - outs[0].size, *ins, *outs)
    if name == "dot_general":
        return _matrix_product(eqn, ins, outs, context)
    if name == "conv_general_dilated":
        return _unfused(int(eqn.primitive.flops_of(ins, outs, params)), *ins, *outs)
    if name == "gather":
        fills = params["mode"] is GatherScatterMode.FILL_OR_DROP
        return _unfused(4 * ins[1].size + outs[0].size if fills else 0, outs[0], outs[0], ins[1])
    if name.startswith("scatter"):
        updates = ins[2]
        return _unfused(0 if name == "scatter" else updates.size, ins[1], *[updates] * 3)
    if name in ("pure_callback", "io_callback"):
        return _unfused(0, *ins, *outs)
    if name in _COLLECTIVES:
        return _between_devices(name, ins[0], params, context)
    return RooflineResult()


def _matrix_product(eqn: JaxprEqn, ins: list[ShapedArray], outs: list[ShapedArray],
                    context: RooflineRuleContext) -> RooflineResult:
    flops = int(eqn.primitive.flops_of(ins, outs, eqn.params))
    moved = 0
    if not context.pin_lhs_in_vmem:
        moved += RooflineShape.total_bytes([ins[0], *outs])
    if not context.pin_rhs_in_vmem:
        moved += RooflineShape.total_bytes([ins[1]])
    return RooflineResult(flops=flops, unfused_flops=flops, hbm_bytes=moved,
                          unfused_hbm_bytes=moved)


# --- between devices ------------------------------------------------------------------------------
# The devices along the axes are a torus. Rings along all axes carry a part of the data each.


def _ring(part: int, sizes: list[int]) -> tuple[int, int]:
    """Bytes and steps for each device to get ``part`` bytes from all others."""
    return part // len(sizes) * (math.prod(sizes) - 1), max(sizes) * len(sizes)


def _all_gather(operand: ShapedArray, sizes: list[int], params: Params) -> tuple[int, int]:
    return _ring(RooflineShape.total_bytes([operand]), sizes)


def _reduce_scatter(operand: ShapedArray, sizes: list[int], params: Params) -> tuple[int, int]:
    return _ring(RooflineShape.total_bytes([operand]) // math.prod(sizes), sizes)


def _psum(operand: ShapedArray, sizes: list[int], params: Params) -> tuple[int, int]:
    moved, steps = _reduce_scatter(operand, sizes, params)
    return 2 * moved, 2 * steps


def _extreme(operand: ShapedArray, sizes: list[int], params: Params) -> tuple[int, int]:
    return _ring(operand.dtype.itemsize, sizes)


def _all_to_all(operand: ShapedArray, sizes: list[int], params: Params) -> tuple[int, int]:
    """Half of the data cross the middle of the torus, whose rings are open where an axis is of two
    devices."""
    count = math.prod(sizes)
    links = (2 if min(sizes) > 2 else 1) * count // max(sizes)
    return (int(RooflineShape.total_bytes([operand]) * count / (2 * links)),
            int(sum(size / 2 for size in sizes)))


def _ppermute(operand: ShapedArray, sizes: list[int], params: Params) -> tuple[int, int]:
    """The most that goes over one link, along the axes one after the other, the short way round."""
    load: collections.Counter[Any] = collections.Counter()
    longest = 0
    for source, target in params["perm"]:
        here, there = [list(map(int, np.unravel_index(n, sizes))) for n in (source, target)]
        hops = 0
        for axis, size in enumerate(sizes):
            ahead = (there[axis] - here[axis]) % size
            step = 1 if 2 * ahead <= size else -1
            while here[axis] != there[axis]:
                before = tuple(here)
                here[axis] = (here[axis] + step) % size
                load[frozenset((before, tuple(here)))] += 1
                hops += 1
        longest = max(longest, hops)
    return max(load.values(), default=0) * RooflineShape.total_bytes([operand]), longest


_COLLECTIVES: dict[str, Callable[[ShapedArray, list[int], Any], tuple[int, int]]] = {
    "all_gather": _all_gather, "reduce_scatter": _reduce_scatter, "psum_invariant": _psum,
    "pmax": _extreme, "pmin": _extreme, "all_to_all": _all_to_all, "ppermute": _ppermute,
}


def _between_devices(name: str, operand: ShapedArray, params: Params, context: RooflineRuleContext
                     ) -> RooflineResult:
    given = params["axes"] if "axes" in params else params["axis_name"]
    names = given if isinstance(given, (tuple, list)) else (given,)
    assert context.mesh is not None, "a collective has a cost over a mesh"
    sizes = [context.mesh.shape[axis] for axis in names]
    moved, steps = (0, 0) if math.prod(sizes) == 1 else _COLLECTIVES[name](operand, sizes, params)
    return RooflineResult(ici_bytes=dict.fromkeys(names, moved),
                          ici_latency=dict.fromkeys(names, steps))


# --- programs -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Counting:
    """How programs are counted: the circumstances that all operations share."""

    name: str
    mesh: Any
    pin_lhs_in_vmem: bool
    pin_rhs_in_vmem: bool

    def program(self, closed: ClosedJaxpr | Jaxpr) -> RooflineResult:
        jaxpr = closed.jaxpr
        last = {atom: number for number, eqn in enumerate(jaxpr.eqns) for atom in eqn.invars
                if not isinstance(atom, Literal)}
        last.update((atom, len(jaxpr.eqns)) for atom in jaxpr.outvars
                    if not isinstance(atom, Literal))
        alive = _bytes(var for var in (*jaxpr.constvars, *jaxpr.invars) if var in last)
        total = RooflineResult(peak_hbm_bytes=alive)
        for number, eqn in enumerate(jaxpr.eqns):
            # As JAX counts, an operand that stands twice is let go twice.
            alive -= _bytes(atom for atom in eqn.invars
                            if not isinstance(atom, Literal) and last[atom] == number)
            alive += _bytes(var for var in eqn.outvars if var in last)
            total += self.equation(eqn)
            total += RooflineResult(peak_hbm_bytes=alive)
        return total

    def equation(self, eqn: JaxprEqn) -> RooflineResult:
        ins, outs = [atom.aval for atom in eqn.invars], [var.aval for var in eqn.outvars]
        context = RooflineRuleContext(
            name_stack=f"roofline({self.name})", primitive=eqn.primitive, avals_in=ins,
            avals_out=outs, jaxpr_eqn_ctx=eqn.ctx, mesh=self.mesh,
            pin_lhs_in_vmem=self.pin_lhs_in_vmem, pin_rhs_in_vmem=self.pin_rhs_in_vmem)
        rule = _registered.get(eqn.primitive)
        if rule is not None:
            return rule(context, *map(RooflineShape.from_aval, ins), **eqn.params)
        if eqn.primitive.is_own:
            logging.getLogger("absl").warning(
                "No roofline rule for %s, skipping...", eqn.primitive.name)
            return RooflineResult()
        inner = list(itertools.islice(subjaxprs(eqn.params), 1)) if (
            eqn.primitive.name in _CALLS) else []
        return self.program(inner[0]) if inner else _operation(eqn, ins, outs, context)


def _bytes(variables: Iterable[Atom]) -> int:
    return RooflineShape.total_bytes([var.aval for var in variables if isinstance(var, Var)])
