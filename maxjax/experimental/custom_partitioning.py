"""jax.experimental.custom_partitioning: functions that say how they are divided over devices."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from maxjax._base import pytree
from maxjax._base.errors import UnexpectedTracerError
from maxjax._base.meshes import get_abstract_mesh
from maxjax._base.missing import explain_missing_names
from maxjax._base.pytree import PyTree
from maxjax._base.tracebacks import boundary
from maxjax._base.treedef import PyTreeDef
from maxjax._higher_order.control import operands_of
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.runtime import installed
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Tracer, context
from maxjax._sharding.custom_partitioning import custom_partitioning_p as custom_partitioning_p
from maxjax._sharding.sharding_rule import BATCHING as BATCHING
from maxjax._sharding.sharding_rule import ArrayMapping as ArrayMapping
from maxjax._sharding.sharding_rule import CompoundFactor as CompoundFactor
from maxjax._sharding.sharding_rule import SdyShardingRule as SdyShardingRule
from maxjax._sharding.sharding_rule import parsed

__all__ = ["custom_partitioning"]


class custom_partitioning:
    """A function, with rules that divide it over a mesh.

    Under ``jit`` over a mesh the rules of ``def_partition`` say how results lie, and what each
    shard computes; elsewhere ``fun`` itself runs. The function has no derivative, and cannot be
    mapped by ``vmap``, unless ``custom_vjp`` and ``custom_vmap`` give it one.

    Args:
      fun: a function of arrays or pytrees of them.
      static_argnums: the positional arguments that are Python values; hashable.

    >>> double = custom_partitioning(lambda x: 2 * x)
    >>> def partition(mesh, args, result):
    ...     return mesh, lambda x: 2 * x, result.sharding, (args[0].sharding,)
    >>> double.def_partition(partition, sharding_rule="i -> i")
    >>> double(jnp.arange(3))
    Array([0, 2, 4], dtype=int32)
    """

    def __init__(self, fun: Callable[..., PyTree], static_argnums: Sequence[int] = ()):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.static_argnums = static_argnums
        self.partition: Callable[..., Any] | None = None
        self.infer_sharding_from_operands: Callable[..., Any] | None = None
        self.propagate_user_sharding: Callable[..., Any] | None = None
        self.sharding_rule: Any = None
        self._has_rules = False

    def def_partition(self, partition: Callable[..., Any] | None,
                      infer_sharding_from_operands: Callable[..., Any] | None = None,
                      propagate_user_sharding: Callable[..., Any] | None = None,
                      decode_shardings: bool = True, sharding_rule: Any = None, *,
                      reduction_factors: Sequence[str] = (),
                      need_replication_factors: Sequence[str] = (),
                      permutation_factors: Sequence[str] = (), **factor_sizes: int
                      ) -> Callable[..., Any] | None:
        """Sets the rules, and gives ``partition``.

        Args:
          partition: ``(*static arguments, mesh, arguments, results)`` -> the mesh, the function of
            one shard, the shardings of the results, and those of the arguments. It is given trees
            of ``ShapeDtypeStruct`` whose shardings say how propagation lets the values lie.
          infer_sharding_from_operands, propagate_user_sharding: kept, and not called, as in JAX.
          decode_shardings: kept; shardings are always ``NamedSharding``.
          sharding_rule: how dimensions correspond, ``"i j, j k -> i k"``; an ``SdyShardingRule``;
            or a function ``(*static arguments, mesh, operand types, result types)`` that gives one
            of these; the types have ``shape``, ``rank`` and ``element_type``.
          reduction_factors, need_replication_factors, permutation_factors, factor_sizes: of a
            rule that is a text; see ``SdyShardingRule``.

        Raises:
          ValueError: the text has no arrow, or its brackets are not balanced.
        """
        self._has_rules = True
        self.partition = partition
        self.infer_sharding_from_operands = infer_sharding_from_operands
        self.propagate_user_sharding = propagate_user_sharding
        self.decode_shardings = decode_shardings
        if isinstance(sharding_rule, str):
            sharding_rule = parsed(
                sharding_rule, reduction_factors=reduction_factors,
                need_replication_factors=need_replication_factors,
                permutation_factors=permutation_factors, **factor_sizes)
        self.sharding_rule = sharding_rule
        return partition

    @boundary
    def __call__(self, *args: PyTree, **kwargs: PyTree) -> Any:
        """Applies the function.

        Raises:
          NotImplementedError: there are callbacks that say where results are, and no
            ``sharding_rule``.
        """
        if self.sharding_rule is None and (
                self.infer_sharding_from_operands or self.propagate_user_sharding):
            raise NotImplementedError(
                "Shardy is used, but sharding propagation callbacks instead of sharding_rule are "
                "provided. Need to provide sharding_rule to migrate to Shardy.")
        if not self._has_rules:
            raise AttributeError("custom_partitioning: def_partition must be called first")
        bound = inspect.signature(self.fun).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError("keyword arguments could not be resolved to positions")
        given = bound.args
        static = {number % len(given) for number in self.static_argnums}
        leaves, tree = pytree.flatten(tuple(
            arg for number, arg in enumerate(given) if number not in static))
        out_tree: Any = None

        def flat(*values: Any) -> list[Any]:
            nonlocal out_tree
            dynamic = iter(pytree.unflatten(tree, values))
            results, out_tree = pytree.flatten(self.fun(*(
                arg if number in static else next(dynamic) for number, arg in enumerate(given))))
            return operands_of(results)

        operands = operands_of(leaves)
        closed = trace_to_jaxpr(flat, [x.aval for x in operands], "custom_partitioning",
                                "custom_partitioning")
        if context.trace is installed.runtime or get_abstract_mesh().manual_axes:
            outs = eval_jaxpr(closed.jaxpr, closed.consts, *operands)
        else:
            outs = self._bind(closed, operands, PyTreeDef(tree), PyTreeDef(out_tree),
                              tuple(given[number] for number in sorted(static)))
        return pytree.unflatten(out_tree, outs)

    def _bind(self, closed: ClosedJaxpr, operands: list[Any], in_tree: PyTreeDef,
              out_tree: PyTreeDef, static: tuple[Any, ...]) -> Any:
        if any(isinstance(value, Tracer) for value in closed.consts):
            raise UnexpectedTracerError(
                "Found a traced value from outside in a function of custom_partitioning: pass it "
                "as an argument.")
        return custom_partitioning_p.bind(
            *operands, call=closed, decode_shardings=self.decode_shardings, in_tree=in_tree,
            infer_sharding_from_operands=self.infer_sharding_from_operands, out_tree=out_tree,
            partition=self.partition, propagate_user_sharding=self.propagate_user_sharding,
            sharding_rule=self.sharding_rule, static_args=static)


explain_missing_names(__name__)
