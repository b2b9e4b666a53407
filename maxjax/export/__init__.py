"""jax.export: functions for one signature, without their Python code: to save, load and call.

The saved form is a jaxpr, in maxjax's own format. Functions that JAX has saved, which are of
StableHLO, are read too.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from maxjax._base import pytree
from maxjax._base.missing import explain_missing_names
from maxjax._base.tree_format import (
    register_namedtuple_serialization as register_namedtuple_serialization,
)
from maxjax._base.tree_format import (
    register_pytree_node_serialization as register_pytree_node_serialization,
)
from maxjax._higher_order.exported import Exported as Exported
from maxjax._higher_order.exported import deserialize as _deserialize
from maxjax._higher_order.exported import (
    maximum_supported_calling_convention_version as maximum_supported_calling_convention_version,
)
from maxjax._higher_order.exported import (
    minimum_supported_calling_convention_version as minimum_supported_calling_convention_version,
)
from maxjax._higher_order.exporting import export_function as _export_function
from maxjax._higher_order.function_stages import jitted_form
from maxjax._higher_order.safety_checks import DisabledSafetyCheck as DisabledSafetyCheck
from maxjax._higher_order.shape_struct import ShapeDtypeStruct, abstract_leaf
from maxjax._ir.dimensions import is_dimension
from maxjax._ir.symbolic import SymbolicScope as SymbolicScope
from maxjax._ir.symbolic import symbolic_shape as symbolic_shape
from maxjax._runtime.placement import default_backend
from maxjax.export._jax_files import is_jax_file as _is_jax_file
from maxjax.export._jax_files import read_jax_file as _read_jax_file
from maxjax.export._library import library as library
from maxjax.export._stablehlo import from_stablehlo as from_stablehlo

__all__ = ["DisabledSafetyCheck", "Exported", "SymbolicScope", "default_export_platform",
           "deserialize", "export", "from_stablehlo", "is_symbolic_dim", "library",
           "maximum_supported_calling_convention_version",
           "minimum_supported_calling_convention_version", "register_namedtuple_serialization",
           "register_pytree_node_serialization", "symbolic_args_specs", "symbolic_dim_bounds",
           "symbolic_shape"]

explain_missing_names(__name__)


def deserialize(blob: bytearray | bytes | memoryview) -> Exported:
    """Reads what ``Exported.serialize`` gave, here or in JAX.

    Nothing of it is run before it is called; users' classes must be registered again.

    Args:
      blob: the bytes.

    Raises:
      ValueError: they are no exported function, are damaged, or are of a newer version.

    >>> exported = jax.export.export(jax.jit(lambda x: 2 * x))(1.)
    >>> jax.export.deserialize(exported.serialize()).call(3.)
    Array(6., dtype=float32)
    """
    content = bytes(memoryview(blob))
    return _read_jax_file(content) if _is_jax_file(content) else _deserialize(content)


def default_export_platform() -> str:
    """The platform that functions are exported for if none is named.

    >>> jax.export.default_export_platform()
    'cpu'
    """
    return default_backend()


def symbolic_dim_bounds(dimension: Any) -> tuple[float, float]:
    """The least and the greatest value that a size is known to have; infinite where none is known.

    Raises:
      TypeError: it is neither an integer nor symbolic.

    >>> a, = jax.export.symbolic_shape("a")
    >>> jax.export.symbolic_dim_bounds(2 * a + 1)
    (3, inf)
    """
    if is_dimension(dimension):
        return dimension.scope.bounds_of(dimension)
    number = operator.index(dimension)
    return number, number


def export(fun_jit: Callable[..., Any], *, platforms: Sequence[str] | None = None,
           disabled_checks: Sequence[DisabledSafetyCheck] = (),
           _override_lowering_rules: Any = None) -> Callable[..., Exported]:
    """A function that traces ``fun_jit`` for its arguments and returns an ``Exported``.

    Args:
      fun_jit: a function under ``jit``.
      platforms: where it will run; maxjax's programs are the same for all.
      disabled_checks: the checks that calls omit.

    Returns:
      A function of arguments of which only the types matter: arrays or ``ShapeDtypeStruct``, whose
      sizes may be symbolic (``symbolic_shape``).

    Raises:
      ValueError: ``fun_jit`` is not the result of ``jit``; or the sizes of the arguments do not
        determine the symbols.
      UnexpectedDimVar: the function, or a constraint, has a symbol that no argument has.
      NotImplementedError: the function calls back into Python.
      InconclusiveDimensionOperation: its control flow differs between sizes.

    >>> batch, = jax.export.symbolic_shape("batch")
    >>> exported = jax.export.export(jax.jit(lambda x: x.mean(0)))(
    ...     jax.ShapeDtypeStruct((batch, 2), np.float32))
    >>> exported.in_avals
    (ShapedArray(float32[batch,2]),)
    >>> exported.call(np.array([[1, 2], [3, 4], [5, 6]], np.float32))
    Array([3., 4.], dtype=float32)
    """
    function = jitted_form(fun_jit)
    if function is None:
        raise ValueError(f"Function to be exported must be the result of `jit` but is: {fun_jit}")
    chosen = tuple(platforms or (default_export_platform(),))
    for check in disabled_checks:
        if not isinstance(check, DisabledSafetyCheck):
            raise TypeError(f"disabled_checks must hold DisabledSafetyCheck, got {check!r}")

    @functools.wraps(fun_jit)
    def do_export(*args: Any, **kwargs: Any) -> Exported:
        return _export_function(function, args, kwargs, chosen, disabled_checks)

    return do_export


def is_symbolic_dim(p: Any) -> bool:
    """Whether a size is symbolic.

    >>> [jax.export.is_symbolic_dim(size) for size in jax.export.symbolic_shape("b + 1, 3")]
    [True, False]
    """
    return is_dimension(p)


def symbolic_args_specs(args: Any, shapes_specs: Any, constraints: Sequence[str] = (),
                        scope: SymbolicScope | None = None) -> Any:
    """Types with symbolic sizes, for arguments to ``export``.

    Args:
      args: a pytree of arrays or anything with a shape and a dtype.
      shapes_specs: what ``symbolic_shape`` takes: a string or None, or a pytree of them that is a
        prefix of ``args``. ``_`` and ``...`` mean the sizes of ``args``.
      constraints, scope: as for ``symbolic_shape``.

    Returns:
      ``args`` with ``ShapeDtypeStruct`` leaves, of one scope.

    Raises:
      ValueError: ``shapes_specs`` does not fit, or cannot be read.

    >>> jax.export.symbolic_args_specs((np.ones((4, 2)), np.ones(4)), ("b, ...", "b"))
    (ShapeDtypeStruct(shape=(b, 2), dtype=float32), ShapeDtypeStruct(shape=(b,), dtype=float32))
    """
    if scope is not None and constraints:
        raise ValueError("Cannot specify both a `scope` and `constraints`.")
    if scope is None:
        scope = SymbolicScope(constraints)
    leaves, tree = pytree.flatten(args)
    if isinstance(args, tuple) and isinstance(shapes_specs, list):
        shapes_specs = tuple(shapes_specs)

    def is_spec(value: Any) -> bool:
        return value is None or isinstance(value, str)

    try:
        texts = pytree.broadcast_prefix(shapes_specs, args, is_spec)
    except ValueError:
        raise pytree.structure_error(
            shapes_specs, args, "export.symbolic_args_specs shapes_specs", is_spec) from None
    avals = [abstract_leaf(leaf) for leaf in leaves]
    return pytree.unflatten(tree, [
        ShapeDtypeStruct(symbolic_shape(text, scope=scope, like=aval.shape), aval.dtype)
        for text, aval in zip(texts, avals, strict=True)])
