"""What is said of arguments that are no arrays, by the way JAX's function meets them.

A function that JAX jits refuses a leaf that is no array before it runs; a list or None, which are
trees, it refuses itself. JAX's check of a function's own arguments lets pass what NumPy calls a
scalar, texts among them.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from maxjax._base import dtypes, pytree
from maxjax._base.signatures import signature_of
from maxjax._higher_order.argument_errors import not_abstract, overflow_of
from maxjax._higher_order.function_stages import jitted_functions
from maxjax._ir.refs import Ref, no_array
from maxjax._runtime.outside_values import leaf_aval, not_numeric

# Jitted functions that others call, which have checked the arguments.
_CHECKED_FIRST = frozenset(
    "add bitwise_and bitwise_or bitwise_xor logaddexp logaddexp2 logical_and logical_or "
    "logical_xor maximum minimum multiply negative subtract".split())


def is_of_no_number(value: Any) -> bool:
    """Whether it is a NumPy array or scalar whose dtype no array here has."""
    if isinstance(value, np.ndarray) and value.dtype in dtypes.CANONICAL:
        return False
    return isinstance(value, (np.ndarray, np.generic)) and leaf_aval(value) is None


def refusal_of(name: str, value: Any, position: int) -> TypeError:
    """The error of a function for an argument that is no array of numbers."""
    if isinstance(value, Ref):
        return no_array(value, name, position)
    passes_check = is_of_no_number(value) or isinstance(value, (str, bytes))
    function = jitted_functions.get(name)
    if function is not None and _is_leaf(value) and (
            passes_check or name not in _CHECKED_FIRST):
        return not_abstract(function, value, _path(function, position))
    if is_of_no_number(value):
        return not_numeric(value)
    if isinstance(value, (str, bytes)) and function is None:
        return TypeError(f"asarray: expected ArrayLike, got {value!s} of type {type(value)}.")
    return TypeError(f"{name} requires ndarray or scalar arguments, got {type(value)} at position "
                     f"{position}.")


def check_width(name: str, value: int, position: int) -> None:
    """Raises OverflowError for an argument of a jitted function that is no default integer."""
    function = jitted_functions.get(name)
    limits = np.iinfo(dtypes.python_scalar(int)[0])
    if function is not None and not limits.min <= value <= limits.max:
        raise overflow_of(value, _path(function, position))


def _is_leaf(value: object) -> bool:
    return pytree.structure(value) == pytree.structure(0)


def _path(function: Any, position: int) -> str:
    """The name of an argument, as paths of a jitted function's arguments have it."""
    signature = signature_of(function)
    parameters = () if signature is None else tuple(signature.parameters.values())
    for index, parameter in enumerate(parameters):
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            return f"{parameter.name}[{position - index}]"
        if index == position:
            return parameter.name
    return f"args[{position}]"
