"""``jnp.sin.lower(x)``: library functions that JAX jits can be traced and lowered themselves.

They stay plain functions, which cost less to call; the jitted ones are made when asked for. Those
with static arguments refuse, as jitted ones do, values of these that cannot be hashed.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from inspect import Parameter
from types import FunctionType
from typing import Any

from maxjax._base.pytree import PyTree
from maxjax._base.signatures import signature_of
from maxjax._higher_order.jit_function import PjitFunction, make_jit
from maxjax._higher_order.static_arguments import check_hashable

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


_GENERATED = "<checks of "


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


def add_stages(namespace: MutableMapping[str, Any], names: str) -> None:
    """Makes of the functions of these names (separated by spaces) what JAX's jitted ones are: they
    get ``trace``, ``lower``, ``eval_shape`` and ``clear_cache``, and those with static arguments
    become functions that refuse what cannot be hashed."""
    note_jitted(namespace, names)
    for name in names.split():
        function = namespace[name]
        stages = _Stages(function)
        static = static_names(function)
        if static:
            refuse_unhashable(namespace, name, *static)
            function = namespace[name]
        members = ("trace", "lower", "eval_shape", "clear_cache")
        function.__dict__ = _OwnMembers(
            function.__dict__, **{member: getattr(stages, member) for member in members})


def refuse_unhashable(namespace: MutableMapping[str, Any], names: str, *static: str) -> None:
    """Makes the functions of these names (separated by spaces) refuse values of these arguments
    that cannot be hashed, as in JAX, which hands them to a jitted function as static ones."""
    for name in names.split():
        function = namespace[name]
        outermost = getattr(function, "stays_outermost", None)
        if outermost is None:
            function = _refusing(function, static)
        else:
            inner = _refusing(function.__wrapped__, static)
            inner.__name__, inner.__qualname__ = function.__name__, function.__qualname__
            function = outermost(inner)
        # Under this name it is found by what pickles it.
        function.__module__ = namespace["__name__"]
        namespace[name] = function


def _refusing(function: FunctionType, static: Sequence[str]) -> FunctionType:
    """The function, which first raises ValueError where one of these arguments is unhashable.

    It is written out for the parameters that the function has, as a call through ``*args`` and
    ``**kwargs`` takes several times as long:

        def cumsum(a, axis=None, dtype=None, out=None):
            try:
                _hash((axis, dtype))
            except _TypeError:
                _check_hashable(axis, dtype)
            return _function(a, axis, dtype, out)
    """
    signature = signature_of(function)
    assert signature is not None
    parameters = list(signature.parameters.values())
    header: list[str] = []
    passed: list[str] = []
    for parameter, following in zip(parameters, [*parameters[1:], None], strict=True):
        by_name = parameter.kind is Parameter.KEYWORD_ONLY
        if by_name and "*" not in "".join(header):
            header.append("*")
        star = "*" if parameter.kind is Parameter.VAR_POSITIONAL else ""
        default = "" if parameter.default is Parameter.empty else "=None"
        header.append(star + parameter.name + default)
        passed.append(f"{parameter.name}={parameter.name}" if by_name else star + parameter.name)
        if parameter.kind is Parameter.POSITIONAL_ONLY and (
                following is None or following.kind is not Parameter.POSITIONAL_ONLY):
            header.append("/")
    values = ", ".join(static)
    source = "\n".join([
        f"def {function.__name__}({', '.join(header)}):",
        "    try:",
        f"        _hash(({values},))" if len(static) > 1 else f"        _hash({values})",
        "    except _TypeError:",
        f"        _check_hashable({values})",
        f"    return _function({', '.join(passed)})"])
    made: dict[str, Any] = {
        "_hash": hash, "_TypeError": TypeError, "_check_hashable": check_hashable,
        "_function": function, "__name__": function.__module__}
    exec(compile(source, f"{_GENERATED}{function.__name__}>", "exec"), made)
    refusing: FunctionType = made[function.__name__]
    functools.update_wrapper(refusing, function)
    refusing.__defaults__ = tuple(
        [parameter.default for parameter in parameters if parameter.default is not Parameter.empty
         and parameter.kind is not Parameter.KEYWORD_ONLY])
    refusing.__kwdefaults__ = {
        parameter.name: parameter.default for parameter in parameters
        if parameter.default is not Parameter.empty and parameter.kind is Parameter.KEYWORD_ONLY}
    return refusing


def note_jitted(namespace: Mapping[str, object], names: str) -> None:
    """Notes that the functions of these names are jitted in JAX, or call one at once that is."""
    for name in names.split():
        function = namespace[name]
        # A ufunc of JAX calls a jitted function of the same name.
        jitted_functions.setdefault(name, getattr(function, "_func", function))
