"""``jnp.sin.lower(x)``: library functions that JAX jits can be traced and lowered themselves.

They stay plain functions, which cost less to call; the jitted ones are made when asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import Any

from maxjax._base.pytree import PyTree
from maxjax._base.signatures import signature_of
from maxjax._higher_order.jit_function import PjitFunction, make_jit

# The parameters that are static in every function that has them.
_STATIC = frozenset((
    "N", "UPLO", "algorithm", "allow_negative_indices", "axes", "axis", "axis1", "axis2", "axisa",
    "axisb", "axisc", "bias", "bitorder", "calc_q", "check_finite", "compute_expm", "compute_uv",
    "count", "cov", "decimals", "deg", "descending", "dtype", "edge_order", "eigvals_only",
    "equal_nan", "fft_lengths", "fft_type", "fill_value", "full", "full_matrices", "hermitian",
    "increasing", "inplace", "is_hermitian", "keepdims", "kind", "kth", "max_squarings", "method",
    "mode", "n", "n_iter", "nan_policy", "new_shape", "ord", "order", "out_sharding",
    "overwrite_a", "overwrite_b", "overwrite_input", "permute_l", "precision",
    "preferred_element_type", "rcond", "right", "rowvar", "scale", "select", "select_range",
    "side", "stable", "start", "subset_by_index", "symmetrize_input", "trans", "unroll", "upper",
    "upper_triangular", "wrap_negative_indices"))
# Those that are static in some functions alone.
_STATIC_IN = {
    "cov": "ddof", "diagonal": "offset", "lexsort": "batch_size", "polyder": "m",
    "polyint": "m", "rot90": "k", "tril": "k", "triu": "k", "cond": "p", "bessel_jn": "v",
    "qdwh": "max_iterations eps", "top_k": "k sorted",
}


# By name: what JAX jits, and says so in errors.
jitted_functions: dict[str, object] = {}


class _Stages:
    """The jitted function of a plain one."""

    __slots__ = ("_function", "_jitted")

    def __init__(self, function: FunctionType):
        self._function = function
        self._jitted: PjitFunction | None = None

    def _made(self) -> PjitFunction:
        if self._jitted is None:
            self._jitted = make_jit(
                self._function, static_argnames=static_names(self._function))
        return self._jitted

    def trace(self, *args: PyTree, **kwargs: PyTree) -> Any:
        """Traces the function for arguments of which only the types matter."""
        return self._made().trace(*args, **kwargs)

    def lower(self, *args: PyTree, **kwargs: PyTree) -> Any:
        """Traces and lowers the function."""
        return self._made().lower(*args, **kwargs)

    def eval_shape(self, *args: PyTree, **kwargs: PyTree) -> Any:
        """The shapes and dtypes of the results."""
        return self._made().eval_shape(*args, **kwargs)

    def clear_cache(self) -> None:
        """Forgets all traces."""
        self._made().clear_cache()


class _OwnMembers(dict[str, Any]):
    """The ``__dict__`` of a function, of which ``functools.wraps`` copies nothing.

    ``vmap(jnp.sin)`` must not have the ``lower`` of ``jnp.sin``. Attributes are found as in any
    dict; but what copies it goes by its keys, for ``__iter__`` is overridden.
    """

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def keys(self) -> Any:
        return ().__iter__()


def jitted_form(function: object) -> PjitFunction | None:
    """The jitted function that this is, or of a library function that has stages; else None."""
    if isinstance(function, PjitFunction):
        return function
    stages = getattr(getattr(function, "lower", None), "__self__", None)
    return stages._made() if isinstance(stages, _Stages) else None


def static_names(function: FunctionType) -> list[str]:
    """The names of the parameters that are static when the function is jitted."""
    signature = signature_of(function)
    own = _STATIC_IN.get(function.__name__, "").split()
    return [name for name in (() if signature is None else signature.parameters)
            if name in _STATIC or name in own]


def add_stages(namespace: Mapping[str, Any], names: str) -> None:
    """Gives the functions of these names (separated by spaces) ``trace``, ``lower``,
    ``eval_shape`` and ``clear_cache``."""
    note_jitted(namespace, names)
    for name in names.split():
        function = namespace[name]
        stages = _Stages(function)
        members = ("trace", "lower", "eval_shape", "clear_cache")
        function.__dict__ = _OwnMembers(
            function.__dict__, **{member: getattr(stages, member) for member in members})


def note_jitted(namespace: Mapping[str, Any], names: str) -> None:
    """Notes that the functions of these names are jitted in JAX, or call one at once that is."""
    for name in names.split():
        function = namespace[name]
        # A ufunc of JAX calls a jitted function of the same name.
        jitted_functions.setdefault(name, getattr(function, "_func", function))
