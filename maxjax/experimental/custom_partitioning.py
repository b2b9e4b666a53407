"""jax.experimental.custom_partitioning: functions that say how they are divided over devices."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from maxjax._base.pytree import PyTree
from maxjax._base.tracebacks import boundary
from maxjax._higher_order.jit_function import make_jit

__all__ = ["custom_partitioning"]


class custom_partitioning:
    """A function, with rules that divide it over a mesh.

    maxjax divides ``fun`` itself, by the rules of its operations. The rules given to
    ``def_partition`` describe another way to the same result; they are kept, and not called.

    Args:
      fun: a function of arrays or pytrees of them.
      static_argnums: the positional arguments that are Python values; hashable.

    >>> double = custom_partitioning(lambda x: 2 * x)
    >>> double.def_partition(partition=None, sharding_rule="i -> i")
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
        self._jitted = make_jit(fun, static_argnums=tuple(static_argnums) or None)

    def def_partition(self, partition: Callable[..., Any] | None,
                      infer_sharding_from_operands: Callable[..., Any] | None = None,
                      propagate_user_sharding: Callable[..., Any] | None = None,
                      decode_shardings: bool = True, sharding_rule: Any = None, *,
                      reduction_factors: Sequence[str] = (),
                      need_replication_factors: Sequence[str] = (),
                      permutation_factors: Sequence[str] = (), **factor_sizes: int) -> None:
        """Keeps the rules.

        A call raises NotImplementedError, as in JAX, if there are callbacks that say where results
        are, and no ``sharding_rule``.
        """
        self.partition = partition
        self.infer_sharding_from_operands = infer_sharding_from_operands
        self.propagate_user_sharding = propagate_user_sharding
        self.sharding_rule = sharding_rule

    @boundary
    def __call__(self, *args: PyTree, **kwargs: PyTree) -> Any:
        if self.sharding_rule is None and (
                self.infer_sharding_from_operands or self.propagate_user_sharding):
            raise NotImplementedError(
                "Shardy is used, but sharding propagation callbacks instead of sharding_rule are "
                "provided. Need to provide sharding_rule to migrate to Shardy.")
        return self._jitted(*args, **kwargs)
