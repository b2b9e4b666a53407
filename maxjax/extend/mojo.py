"""Kernels for custom primitives; maxjax's counterpart of JAX's ``mlir.register_lowering``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from maxjax._higher_order.custom_primitive import CustomPrimitive, check_own


def register_elementwise(primitive: CustomPrimitive, source: str | Callable[..., str],
                         function: str | None = None) -> None:
    """Gives a primitive a kernel in Mojo, compiled into the loops of the programs that use it.

    Args:
      primitive: has one result; operands and result have the same shape.
      source: Mojo text that defines a function of SIMD vectors,
        ``def NAME[dtype: DType, width: SIMDLength](x: SIMD[dtype, width], ...)``, and what it
        needs: other functions, structs and comptime values, imports inside functions. ``dtype`` is
        the first operand's. For a primitive with parameters: a function of them that returns the
        text.
      function: the name, if the text defines several functions; by default the last.

    Raises:
      ValueError: the text defines no such function, or the primitive has several results.

    >>> cube_p = jax.extend.core.Primitive("cube")
    >>> impl = cube_p.def_impl(lambda x: x ** 3)
    >>> rule = cube_p.def_abstract_eval(lambda x: x)
    >>> jax.extend.mojo.register_elementwise(cube_p, '''
    ... @always_inline
    ... def cube[dtype: DType, width: SIMDLength](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    ...     return x * x * x
    ... ''')
    >>> jax.jit(cube_p.bind)(2.0)
    Array(8., dtype=float32, weak_type=True)
    """
    check_own(primitive)
    if primitive.multiple_results:
        raise ValueError(f"an elementwise kernel has one result; {primitive.name} has several")
    if not callable(source):
        _entry(source, function)

    def lower(ctx: Any, *xs: Any, **params: Any) -> Any:
        text = source(**params) if callable(source) else source
        return ctx.custom(text, _entry(text, function), ctx.out_avals[0].dtype, *xs)

    primitive.lower = lower


def _entry(source: str, function: str | None) -> str:
    names = re.findall(r"^def +(\w+)\[", source, re.MULTILINE)
    if not names or (function is not None and function not in names):
        raise ValueError(
            f"the Mojo text defines no function {function or 'NAME'}[dtype: DType, "
            "width: SIMDLength](...) at its top level")
    return function or names[-1]


def register_composition(primitive: CustomPrimitive, function: Callable[..., Any]) -> None:
    """Gives a primitive an equivalent composition of maxjax operations, to be compiled.

    Args:
      function: ``(*arrays, **params)``, written with ``maxjax.numpy`` and ``maxjax.lax``. It also
        replaces a missing NumPy rule.

    >>> cube_p = jax.extend.core.Primitive("cube")
    >>> rule = cube_p.def_abstract_eval(lambda x: x)
    >>> jax.extend.mojo.register_composition(cube_p, lambda x: x * jnp.square(x))
    >>> cube_p.bind(2.0)
    Array(8., dtype=float32, weak_type=True)
    """
    check_own(primitive)
    primitive.def_composition(function)
