"""jax.experimental.roofline: what a program computes and moves, counted on its jaxpr."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maxjax._base.missing import explain_missing_names
from maxjax._base.signatures import fun_name, wraps
from maxjax._higher_order.api import make_jaxpr
from maxjax._higher_order.roofline import Counting
from maxjax._higher_order.roofline import RooflineResult as RooflineResult
from maxjax._higher_order.roofline import RooflineRuleContext as RooflineRuleContext
from maxjax._higher_order.roofline import RooflineShape as RooflineShape
from maxjax._higher_order.roofline import register_roofline as register_roofline
from maxjax._higher_order.roofline import register_standard_roofline as register_standard_roofline
from maxjax._ir.liveness import eliminate_dead_code
from maxjax._sharding.shard_map import shard_map_p
from maxjax._sharding.shard_map_api import shard_map

explain_missing_names(__name__, {
    "roofline_and_grad": (
        "jax.experimental.roofline.roofline_and_grad is not there: count the function that jax.vjp "
        "or jax.grad gives with roofline")})


def roofline(f: Callable[..., Any], mesh: Any = None, in_specs: Any = None, out_specs: Any = None,
             *, pin_lhs_in_vmem: bool = False, pin_rhs_in_vmem: bool = False, vjp: bool = False,
             print_jaxpr: bool = False) -> Callable[..., tuple[Any, RooflineResult]]:
    """A function that gives the types of the results of ``f``, and what ``f`` costs.

    Args:
      f: a function of arrays; it is traced, and not run.
      mesh, in_specs, out_specs: ``f`` is the body of a ``shard_map``, and the costs are of one
        device.
      pin_lhs_in_vmem, pin_rhs_in_vmem: matrix products do not read these operands from memory
        (nor, where the left one is pinned, write the result).
      vjp: not supported.
      print_jaxpr: prints what is counted.

    Raises:
      NotImplementedError: ``vjp``: count the function that ``jax.vjp`` or ``jax.grad`` gives.

    >>> _, result = jax.experimental.roofline.roofline(jnp.dot)(jnp.ones((4, 5)), jnp.ones((5, 6)))
    >>> result.flops, result.hbm_bytes
    (240, 296)
    """
    if vjp:
        raise NotImplementedError("roofline with vjp=True: count the function that jax.vjp or "
                                  "jax.grad gives")

    @wraps(f)
    def wrapped(*args: Any) -> tuple[Any, RooflineResult]:
        over_mesh = mesh is not None and in_specs is not None
        function = f if not over_mesh else shard_map(
            f, mesh=mesh, in_specs=in_specs, out_specs=out_specs)
        closed, shapes = make_jaxpr(function, return_shape=True)(*args)
        closed = eliminate_dead_code(closed)
        if over_mesh:
            closed = next(eqn.params["jaxpr"] for eqn in closed.jaxpr.eqns
                          if eqn.primitive is shard_map_p)
        if print_jaxpr:
            print(closed)
        counting = Counting(fun_name(f), mesh if over_mesh else None, pin_lhs_in_vmem,
                             pin_rhs_in_vmem)
        return shapes, counting.program(closed)

    return wrapped
