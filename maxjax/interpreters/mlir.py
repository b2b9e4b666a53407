"""jax.interpreters.mlir: maxjax lowers to Mojo, not to MLIR; this is the applicable part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maxjax._base.missing import explain_missing_names
from maxjax._higher_order.custom_primitive import CustomPrimitive, check_own


class _Composition:
    """The result of ``lower_fun``: a lowering to other operations."""

    def __init__(self, function: Callable[..., Any], multiple_results: bool):
        self.function = function
        self.multiple_results = multiple_results


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> Any:
    """A lowering to the operations of ``fun``, written with ``maxjax.numpy`` and ``maxjax.lax``.

    >>> cube_p = jax.extend.core.Primitive("cube")
    >>> rule = cube_p.def_abstract_eval(lambda x: x)
    >>> jax.interpreters.mlir.register_lowering(
    ...     cube_p, jax.interpreters.mlir.lower_fun(lambda x: x ** 3, multiple_results=False))
    >>> jax.jit(cube_p.bind)(2.0)
    Array(8., dtype=float32, weak_type=True)
    """
    return _Composition(fun, multiple_results)


def register_lowering(prim: CustomPrimitive, rule: Any, platform: str | None = None,
                      inline: bool = True, cacheable: bool = True) -> None:
    """Gives a primitive a lowering made by ``lower_fun``.

    A rule that emits MLIR cannot be used here: the primitive then runs by its ``def_impl``, and if
    that is missing raises an error that says so.

    >>> half_p = jax.extend.core.Primitive("half")
    >>> rule = half_p.def_abstract_eval(lambda x: x)
    >>> jax.interpreters.mlir.register_lowering(
    ...     half_p, jax.interpreters.mlir.lower_fun(lambda x: x / 2, multiple_results=False))
    >>> half_p.bind(3.0)
    Array(1.5, dtype=float32, weak_type=True)
    """
    check_own(prim)
    if isinstance(rule, _Composition):
        prim.def_composition(rule.function)
    else:
        prim.has_mlir_rule = True


class LoweringRuleContext:
    """What rules that emit MLIR are given: a name for annotations, of which there are no instances.

    >>> def rule(context: jax.interpreters.mlir.LoweringRuleContext, *operands): ...
    """


explain_missing_names(__name__, {
    name: f"module {__name__!r} has no attribute {name!r}: maxjax emits no MLIR. Give a primitive "
          "a NumPy rule with def_impl, a composition with lower_fun, or a kernel with "
          "maxjax.extend.mojo"
    for name in ("LoweringRule", "ModuleContext", "aval_to_ir_type",
                 "custom_call", "emit_python_callback", "flatten_ir_values", "func_dialect", "hlo",
                 "ir", "ir_constant", "ir_constants", "jaxpr_subcomp", "dtype_to_ir_type",
                 "lower_jaxpr_to_fun", "lower_jaxpr_to_module", "make_ir_context")})
