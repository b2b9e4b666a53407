"""What a program computes and moves, counted on its jaxpr as JAX's ``roofline`` counts.

The counts are of arithmetic and bytes of memory as if every operation were run by itself
("unfused") and of matrix products alone, of the bytes between devices of a torus and the steps that
they take, and of the values that are alive at a time. Bodies of loops are counted once; ``while``
and branches not at all, and neither are operations that JAX has no rule for.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from maxjax._ir.costs import Links
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, subjaxprs
from maxjax._ir.liveness import variables
from maxjax._ir.primitive import Primitive
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Params

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


def _operation(eqn: JaxprEqn, ins: list[ShapedArray], outs: list[ShapedArray],
               context: RooflineRuleContext) -> RooflineResult:
    """The cost of an equation that calls no jaxpr."""
    cost = eqn.primitive.cost.roofline
    if cost is None:
        return RooflineResult()
    if cost.multiplies:
        return _matrix_product(eqn, ins, outs, context)
    if cost.links is not None:
        return _between_devices(cost.links, ins[0], eqn.params, context)
    if cost.flops is None:
        return RooflineResult()
    moved = [*ins, *outs] if cost.moved is None else cost.moved(ins, outs)
    return RooflineResult(unfused_flops=int(cost.flops(ins, outs, eqn.params)),
                          unfused_hbm_bytes=RooflineShape.total_bytes(moved))


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


def _between_devices(links: Links, operand: ShapedArray, params: Params,
                     context: RooflineRuleContext) -> RooflineResult:
    given = params["axes"] if "axes" in params else params["axis_name"]
    names = given if isinstance(given, (tuple, list)) else (given,)
    assert context.mesh is not None, "a collective has a cost over a mesh"
    sizes = [context.mesh.shape[axis] for axis in names]
    moved, steps = (0, 0) if math.prod(sizes) == 1 else links(operand, sizes, params)
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
        cost = eqn.primitive.cost.roofline
        inner = next(iter(subjaxprs(eqn.params)), None) if cost and cost.enters else None
        return self.program(inner) if inner is not None else _operation(eqn, ins, outs, context)


def _bytes(atoms: Iterable[Atom]) -> int:
    return RooflineShape.total_bytes([var.aval for var in variables(atoms)])
