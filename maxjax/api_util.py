"""jax.api_util: functions of pytrees as functions of their leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from maxjax._base import pytree
from maxjax._base.missing import explain_missing_names
from maxjax._base.signatures import argument_names
from maxjax._base.source import function_location
from maxjax._base.treedef import PyTreeDef
from maxjax._higher_order.shape_struct import ShapeDtypeStruct, typeof
from maxjax._ir.trace import aval_of
from maxjax._ir.types import ShapedArray
from maxjax._transforms.autodiff import operands_of
from maxjax.extend.core import DebugInfo
from maxjax.extend.linear_util import WrappedFun, transformation2, transformation_with_aux2
from maxjax.tree_util import tree_flatten, tree_unflatten

__all__ = ["argnums_partial", "debug_info", "donation_vector", "flatten_axes", "flatten_fun",
           "flatten_fun_nokwargs", "rebase_donate_argnums", "safe_map", "shaped_abstractify"]


_NOT_KNOWN = object()


def debug_info(traced_for: str, fun: Callable[..., Any], args: Sequence[Any],
               kwargs: dict[str, Any], *, static_argnums: Sequence[int] = (),
               static_argnames: Sequence[str] = (), result_paths_thunk: Any = _NOT_KNOWN,
               sourceinfo: str | None = None, signature: Any = None) -> DebugInfo:
    """The description of a function in messages, from its arguments; static ones are not named.

    >>> jax.api_util.debug_info("jit", lambda x, y: x, (1, {"a": 2}), {}).arg_names
    ('x', "y['a']")
    """
    fixed = {number % len(args) for number in static_argnums} if args else set()
    given = [x for number, x in enumerate(args) if number not in fixed]
    named = {name: x for name, x in kwargs.items() if name not in static_argnames}
    tree = pytree.flatten((tuple(given), named))[1]
    return DebugInfo(traced_for, sourceinfo or function_location(fun),
                     None if fixed else tuple(argument_names(fun, tree)),
                     None if result_paths_thunk is _NOT_KNOWN else result_paths_thunk)


def flatten_fun(fun: WrappedFun, *gen_static_args: Any, use_eq_store: bool = False,
                unk_names: bool = False) -> tuple[WrappedFun, Callable[[], Any]]:
    """A function of the leaves of ``(args, kwargs)`` that returns the leaves of the result.

    Args:
      gen_static_args: the structure of ``(args, kwargs)``.
      use_eq_store: whether it may be called again if the result has the same structure.
      unk_names: accepted as in JAX.

    Returns:
      The function, and a function that returns the result's structure after a call.

    >>> lu = jax.extend.linear_util
    >>> leaves, tree = jax.tree.flatten(((1, {"a": 2}), {}))
    >>> flat, out_tree = jax.api_util.flatten_fun(lu.wrap_init(lambda x, y: (x, y["a"])), tree)
    >>> flat.call_wrapped(*leaves), out_tree()
    ([1, 2], PyTreeDef((*, *)))
    """
    return _flat(fun, *gen_static_args, use_eq_store=use_eq_store)


@transformation_with_aux2
def _flat(fun: Callable[..., Any], store: Any, in_tree: Any, *args_flat: Any) -> list[Any]:
    args, kwargs = tree_unflatten(in_tree, args_flat)
    leaves, tree = tree_flatten(fun(*args, **kwargs))
    store.store(tree)
    return leaves


def flatten_fun_nokwargs(fun: WrappedFun, *gen_static_args: Any, use_eq_store: bool = False,
                         unk_names: bool = False) -> tuple[WrappedFun, Callable[[], Any]]:
    """A function of the leaves of ``args`` that returns the leaves of the result.

    >>> lu = jax.extend.linear_util
    >>> leaves, tree = jax.tree.flatten(((1, 2),))
    >>> flat, _ = jax.api_util.flatten_fun_nokwargs(lu.wrap_init(sum), tree)
    >>> flat.call_wrapped(*leaves)
    [3]
    """
    return _flat_args(fun, *gen_static_args, use_eq_store=use_eq_store)


@transformation_with_aux2
def _flat_args(fun: Callable[..., Any], store: Any, in_tree: Any, *args_flat: Any) -> list[Any]:
    leaves, tree = tree_flatten(fun(*tree_unflatten(in_tree, args_flat)))
    store.store(tree)
    return leaves


def argnums_partial(f: WrappedFun, dyn_argnums: int | tuple[int, ...], args: tuple[Any, ...],
                    require_static_args_hashable: bool = True) -> tuple[WrappedFun, list[Any]]:
    """A function of some of its arguments, with the others fixed.

    Args:
      dyn_argnums: the positions of those that remain.
      require_static_args_hashable: whether the others must be hashable.

    Returns:
      The function, and the arguments that remain.

    Raises:
      ValueError: one of the others is not hashable.

    >>> lu = jax.extend.linear_util
    >>> fun, rest = jax.api_util.argnums_partial(lu.wrap_init(lambda x, y: x - y), 1, (5, 3))
    >>> fun.call_wrapped(4), rest
    (1, [3])
    """
    positions = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    moving = sorted({position % len(args) for position in positions})
    if require_static_args_hashable:
        for position, arg in enumerate(args):
            if position not in moving:
                try:
                    hash(arg)
                except TypeError:
                    raise ValueError(
                        "Non-hashable static arguments are used in a jit function: argument "
                        f"{position} is {arg!r}") from None
    return _with_fixed(f, args, tuple(moving)), [args[position] for position in moving]


@transformation2
def _with_fixed(fun: Callable[..., Any], fixed: tuple[Any, ...], moving: tuple[int, ...],
                *given: Any) -> Any:
    whole = list(fixed)
    for position, arg in zip(moving, given, strict=True):
        whole[position] = arg
    return fun(*whole)


def safe_map(f: Callable[..., Any], *iterables: Iterable[Any]) -> list[Any]:
    """``list(map(...))`` of iterables of equal length.

    Raises:
      ValueError: the lengths differ.

    >>> jax.api_util.safe_map(max, [1, 5], [4, 2])
    [4, 5]
    """
    return [f(*values) for values in zip(*iterables, strict=True)]


def flatten_axes(name: str, treedef: PyTreeDef, axis_tree: Any, *, kws: bool = False,
                 tupled_args: bool = False) -> list[Any]:
    """The axis of each leaf of a tree, by a prefix of the tree; None is an axis like others.

    Args:
      name: of the axes, in messages.
      kws: whether tree and prefix are of ``(args, kwargs)``: the message is about ``args``.
      tupled_args: whether the tree is of a tuple of arguments: the message says so.

    Raises:
      ValueError: it is no prefix.

    >>> tree = jax.tree.structure({"a": 1, "b": (2, 3)})
    >>> jax.api_util.flatten_axes("in_axes", tree, {"a": 1, "b": None})
    [1, None, None]
    """
    whole = treedef.unflatten([pytree.PytreeLeaf()] * treedef.num_leaves)

    def is_axis(node: Any) -> bool:
        return node is None

    try:
        return pytree.broadcast_prefix(axis_tree, whole, is_axis)
    except ValueError:
        if kws:
            (axis_tree, _), (whole, _) = axis_tree, whole
        hint = _axes_hint(name, axis_tree, whole) if tupled_args else ""
        raise pytree.prefix_error(axis_tree, whole, name, is_axis, hint=hint) from None


def _axes_hint(name: str, axis_tree: Any, args: Any) -> str:
    """What is often wrong with axes of a tuple of arguments."""
    text = (f" Note that {name} that are non-trivial pytrees should always be wrapped in a tuple "
            "representing the argument list.")
    if len(args) == 1:
        text += (f" In particular, you're passing in a single argument which means that {name} "
                 "might need to be wrapped in a singleton tuple.")
    return text


def donation_vector(donate_argnums: Iterable[int], donate_argnames: Iterable[str],
                    in_tree: PyTreeDef, kws: bool = True) -> tuple[bool, ...]:
    """Which leaves of ``(args, kwargs)`` are donated, by the numbers and names of arguments.

    Args:
      kws: whether there are keyword arguments; else the tree is that of the arguments alone.

    >>> tree = jax.tree.structure(((1, (2, 3)), {}))
    >>> jax.api_util.donation_vector((1,), (), tree)
    (False, True, True)
    """
    numbers, names = set(donate_argnums), set(donate_argnames)
    whole = in_tree.unflatten(range(in_tree.num_leaves))
    args, kwargs = whole if kws else (whole, {})
    marks = [(number in numbers, arg) for number, arg in enumerate(args)]
    marks += [(key in names, kwargs[key]) for key in sorted(kwargs)]
    return tuple(mark for mark, arg in marks for _ in pytree.leaves(arg))


def rebase_donate_argnums(donate_argnums: Iterable[int], static_argnums: Iterable[int]
                          ) -> tuple[int, ...]:
    """The numbers of donated arguments among those that are not static.

    Raises:
      ValueError: an argument is both.

    >>> jax.api_util.rebase_donate_argnums((0, 2, 3), (1,))
    (0, 1, 2)
    """
    static, donated = sorted(set(static_argnums)), sorted(set(donate_argnums))
    if not set(static).isdisjoint(donated):
        raise ValueError(f"`static_argnums` {static} and `donate_argnums` {donated} cannot "
                         "intersect.")
    return tuple(number - sum(other < number for other in static) for number in donated)


def shaped_abstractify(x: Any) -> ShapedArray:
    """The type of an array or number.

    >>> jax.api_util.shaped_abstractify(1.0)
    ShapedArray(float32[], weak_type=True)
    """
    if isinstance(x, ShapedArray):
        return x
    if isinstance(x, ShapeDtypeStruct):
        return typeof(x)
    return aval_of(operands_of([x])[0])


explain_missing_names(__name__)
