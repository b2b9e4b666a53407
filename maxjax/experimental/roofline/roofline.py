"""jax.experimental.roofline.roofline: what a program computes and moves, counted on its jaxpr."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maxjax import numpy as jnp
from maxjax._base import pytree, shardings
from maxjax._base.missing import explain_missing_names
from maxjax._base.signatures import fun_name, wraps
from maxjax._higher_order.api import make_jaxpr
from maxjax._higher_order.roofline import Counting
from maxjax._higher_order.roofline import RooflineResult as RooflineResult
from maxjax._higher_order.roofline import RooflineRuleContext as RooflineRuleContext
from maxjax._higher_order.roofline import RooflineShape as RooflineShape
from maxjax._higher_order.roofline import register_roofline as register_roofline
from maxjax._higher_order.roofline import register_standard_roofline as register_standard_roofline
from maxjax._higher_order.shape_struct import ShapeDtypeStruct
from maxjax._ir.liveness import eliminate_dead_code
from maxjax._sharding.shard_map import shard_map_p
from maxjax._sharding.shard_map_api import shard_map
from maxjax._transforms.autodiff import vjp as _vjp
from maxjax.tree_util import tree_flatten, tree_map, tree_unflatten

explain_missing_names(__name__)


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
      vjp: counts the function and its backward pass, of cotangents that are results in bfloat16.
      print_jaxpr: prints what is counted.

    >>> _, result = jax.experimental.roofline.roofline(jnp.dot)(jnp.ones((4, 5)), jnp.ones((5, 6)))
    >>> result.flops, result.hbm_bytes
    (240, 296)
    """
    @wraps(f)
    def wrapped(*args: Any) -> tuple[Any, RooflineResult]:
        over_mesh = mesh is not None and in_specs is not None
        function = f if not over_mesh else shard_map(
            f, mesh=mesh, in_specs=in_specs, out_specs=out_specs)
        if vjp:
            function = _with_backward_pass(function)
        closed, shapes = make_jaxpr(function, return_shape=True)(*args)
        if mesh is not None and out_specs is not None:
            leaves, tree = tree_flatten(shapes)
            shapes = tree_unflatten(tree, [
                ShapeDtypeStruct(x.shape, x.dtype, sharding=shardings.NamedSharding(mesh, spec))
                for x, spec in zip(
                    leaves, pytree.broadcast_prefix(out_specs, shapes), strict=True)])
        closed = eliminate_dead_code(closed)
        if over_mesh:
            # The last is the backward pass, where there is one.
            closed = [eqn.params["jaxpr"] for eqn in closed.jaxpr.eqns
                      if eqn.primitive is shard_map_p][-1]
        if print_jaxpr:
            print(closed)
        counting = Counting(fun_name(f), mesh if over_mesh else None, pin_lhs_in_vmem,
                             pin_rhs_in_vmem)
        return shapes, counting.program(closed)

    return wrapped


def _with_backward_pass(f: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(f)
    def wrapped(*args: Any) -> Any:
        results, f_vjp = _vjp(f, *args)
        return f_vjp(tree_map(lambda x: x.astype(jnp.bfloat16), results))

    return wrapped


def roofline_and_grad(f: Callable[..., Any], mesh: Any, in_specs: Any, out_specs: Any, *,
                      pin_lhs_in_vmem: bool = False, pin_rhs_in_vmem: bool = False,
                      print_jaxpr: bool = False
                      ) -> Callable[..., tuple[Any, RooflineResult, RooflineResult]]:
    """A function that gives the types of the results of ``f``, what ``f`` costs, and what its
    backward pass costs, of arguments in bfloat16 (those of int32 stay).

    Args:
      f, mesh, in_specs, out_specs, pin_lhs_in_vmem, pin_rhs_in_vmem, print_jaxpr: see ``roofline``.

    >>> mesh, spec = jax.make_mesh((1,), ("x",)), jax.P()
    >>> count = jax.experimental.roofline.roofline_and_grad(lambda x: x @ x, mesh, spec, spec)
    >>> _, forward, backward = count(jax.ShapeDtypeStruct((4, 4), jnp.float32))
    >>> forward.flops, backward.flops
    (128, 256)
    """
    options = {"pin_lhs_in_vmem": pin_lhs_in_vmem, "pin_rhs_in_vmem": pin_rhs_in_vmem,
               "print_jaxpr": print_jaxpr}

    @wraps(f)
    def wrapped(*args: Any) -> tuple[Any, RooflineResult, RooflineResult]:
        shapes, forward = roofline(f, mesh, in_specs, out_specs, **options)(*args)
        narrow = tree_map(lambda x: ShapeDtypeStruct(
            x.shape, jnp.int32 if x.dtype == jnp.int32 else jnp.bfloat16, sharding=x.sharding),
            args)
        backward = roofline(f, mesh, in_specs, out_specs, vjp=True, **options)(*narrow)[1]
        return shapes, forward, backward

    return wrapped
