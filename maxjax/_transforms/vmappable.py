"""Classes of the user's own that ``vmap`` maps by handlers of theirs, and not as pytrees.

An object of such a class is a leaf of arguments and results; an object of another class, in
``in_axes`` and ``out_axes``, says how it is mapped. The handlers take it apart and put it together,
and leave the arrays inside to a function that they are given.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any

import numpy as np

from maxjax._base import pytree
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._ir.trace import Array, context, current_trace
from maxjax._ir.typing import Value
from maxjax._transforms.autodiff import leaf_operand
from maxjax._transforms.batching import BatchTrace, batch_flat, to_axis

ToElement = Callable[[Callable[..., Any], Callable[[], Any], Any, Any], Any]
FromElement = Callable[[Callable[..., Any], Any, Any, Any], Any]


@dataclasses.dataclass(frozen=True)
class Handlers:
    """How objects of one class are mapped.

    Attributes:
      to_element: ``(continue_, index, x, spec)`` gives an element of ``x``; ``continue_(y, axis)``
        is an element of an array, or of another such object, inside it, ``index()`` which one it
        is.
      from_element: ``(continue_, size, x, spec)`` gives all of what ``x`` is an element of;
        ``continue_(size, y, axis)`` is all of an array or object inside it.
      spec_type: of what stands in the place of an axis.
    """

    to_element: ToElement
    from_element: FromElement
    spec_type: type


registered: dict[type, Handlers] = {}
spec_types: set[type] = set()


def register_vmappable(data_type: type, spec_type: type, axis_size_type: type,
                       to_elt: ToElement | None, from_elt: FromElement | None,
                       make_iota: Callable[[int], object] | None) -> None:
    """Has ``vmap`` map objects of a class by handlers.

    Args:
      data_type: the class.
      spec_type: of what ``in_axes`` and ``out_axes`` have in the place of an axis.
      axis_size_type: ``int``; other sizes are not supported.
      to_elt: see ``Handlers.to_element``.
      from_elt: see ``Handlers.from_element``.
      make_iota: for sizes that are no ints.

    Raises:
      NotImplementedError: sizes of another type than int.

    >>> class Named:
    ...     def __init__(self, name, data):
    ...         self.name, self.data = name, data
    >>> class Along:
    ...     def __init__(self, axis):
    ...         self.axis = axis
    >>> jax.interpreters.batching.register_vmappable(
    ...     Named, Along, int, lambda go, index, x, spec: Named(x.name, go(x.data, spec.axis)),
    ...     lambda go, size, x, spec: Named(x.name, go(size, x.data, spec.axis)), None)
    >>> double = jax.vmap(lambda x: Named(x.name, x.data.sum()), Along(1), Along(0), axis_size=3)
    >>> double(Named("n", jnp.ones((2, 3)))).data
    Array([2., 2., 2.], dtype=float32)
    """
    if axis_size_type is not int or make_iota is not None:
        raise NotImplementedError(
            "register_vmappable: sizes of a mapped axis are ints in maxjax, got "
            f"axis_size_type={axis_size_type} and make_iota={make_iota}")
    if to_elt is None or from_elt is None:
        raise NotImplementedError("register_vmappable needs to_elt and from_elt")
    registered[data_type] = Handlers(to_elt, from_elt, spec_type)
    spec_types.add(spec_type)


def unregister_vmappable(data_type: type) -> None:
    """Has ``vmap`` take objects of a class as it did before ``register_vmappable``.

    Raises:
      KeyError: the class is not registered.

    >>> class Named:
    ...     pass
    >>> jax.interpreters.batching.register_vmappable(
    ...     Named, str, int, lambda go, index, x, spec: x, lambda go, size, x, spec: x, None)
    >>> jax.interpreters.batching.unregister_vmappable(Named)
    """
    gone = registered.pop(data_type).spec_type
    if all(handlers.spec_type is not gone for handlers in registered.values()):
        spec_types.discard(gone)


class MappingSpec:
    """The base of what says how values of a type above arrays are mapped.

    >>> class Leading(jax.experimental.hijax.MappingSpec):
    ...     pass
    """


class _AboveArrays:
    """What ``vmap`` does for types above arrays (``maxjax._higher_order.hi_vmap``).

    Attributes:
      concerns: whether values of such types are among arguments, or None.
      call: ``vmap`` of a function with such values: the function, its arguments, and those of
        ``vmap``.
    """

    concerns: Callable[[PyTree], bool] | None = None
    call: Callable[..., Any]


above_arrays = _AboveArrays()


def is_spec(axis: object) -> bool:
    """Whether it may stand among axes, without being one."""
    return type(axis) in spec_types or isinstance(axis, MappingSpec)


def is_mapped(x: object) -> bool:
    return type(x) in registered


def concerns(values: PyTree, axes: PyTree) -> bool:
    """Whether objects of these classes are among values, or what only they have among axes."""
    return bool(registered) and (
        any(map(is_mapped, pytree.leaves(values, is_mapped)))
        or any(type(axis) is not int and not isinstance(axis, MappingSpec)
               for axis in pytree.leaves(axes)))


class InResult(Exception):
    """A function that is mapped gave an object of these classes: ``call`` is for it."""


class ValueInResult(Exception):
    """A function that is mapped gave a value of a type above arrays."""


def call(fun: Callable[..., PyTree], args: tuple[PyTree, ...], kwargs: dict[str, PyTree],
         axes_of: Callable[[str, PyTree, PyTreeSpec], list[Any]], in_axes: PyTree, out_axes: PyTree,
         axis_name: Hashable | None, axis_size: int | None, spmd_axis_name: Hashable | None
         ) -> Any:
    """What ``vmap`` does where classes are registered.

    Args:
      axes_of: an axis or spec for each leaf: ``(what, axes, tree of leaves)``.

    Raises:
      ValueError: the sizes of the mapped axes differ, or there are none.
    """
    leaves, tree = pytree.flatten((args, kwargs), is_mapped)
    axes = axes_of("vmap in_axes", (in_axes, 0), tree)
    plain = [(leaf_operand(leaf), axis) for leaf, axis in zip(leaves, axes, strict=True)
             if axis is not None and not is_mapped(leaf)]
    size = _size(axis_size, plain, leaves, axes)
    iota = leaf_operand(np.arange(size, dtype=np.int32))
    results: PyTree = None

    def flat(index: Value, *_: Value) -> list[Any]:
        nonlocal results
        trace = context.trace
        assert isinstance(trace, BatchTrace)

        def element(x: object, axis: Any) -> Any:
            if axis is None:
                return x
            if is_mapped(x):
                return registered[type(x)].to_element(element, lambda: index, x, axis)
            operand = leaf_operand(x)
            dim = _dim(operand, axis)
            if operand.aval.shape[dim] != size:
                raise ValueError(_inconsistent({size, operand.aval.shape[dim]}))
            return trace.box(operand, dim)

        # What handlers compute with elements is mapped as the function is; with what `whole` gives
        # them, which is no tracer of this trace, it is not.
        def whole(_: object, x: object, axis: Any) -> Any:
            if is_mapped(x):
                return x if axis is None else registered[type(x)].from_element(whole, size, x, axis)
            out, dim = trace.unbox(x if isinstance(x, Array) else leaf_operand(x))
            if axis is None:
                if dim is not None:
                    raise ValueError("vmap has mapped output but out_axes is None")
                return out
            with current_trace(trace.parent):
                return to_axis(out, dim, axis % (len(out.shape) + (dim is None)), size)

        call_args, call_kwargs = pytree.unflatten(tree, list(map(element, leaves, axes)))
        out_leaves, out_tree = pytree.flatten(fun(*call_args, **call_kwargs), is_mapped)
        results = pytree.unflatten(out_tree, [
            whole(size, leaf, axis) for leaf, axis in zip(
                out_leaves, axes_of("vmap out_axes", out_axes, out_tree), strict=True)])
        return []

    batch_flat(flat, size, [iota, *(x for x, _ in plain)], [0, *(_dim(*pair) for pair in plain)],
               axis_name, spmd_axis_name)
    return results


def _size(axis_size: int | None, plain: Sequence[tuple[Array, int]], leaves: Sequence[object],
          axes: Sequence[Any]) -> int:
    """How many elements there are: objects are asked where nothing else says so."""
    sizes = {x.aval.shape[_dim(x, axis)] for x, axis in plain}
    if axis_size is not None:
        sizes.add(axis_size)

    def note(x: object, axis: Any) -> Any:
        if is_mapped(x) and axis is not None:
            return registered[type(x)].to_element(note, lambda: np.int32(0), x, axis)
        if axis is not None:
            operand = leaf_operand(x)
            sizes.add(operand.aval.shape[_dim(operand, axis)])
        return x

    if not sizes:
        for leaf, axis in zip(leaves, axes, strict=True):
            note(leaf, axis)
    if len(sizes) != 1:
        raise ValueError(_inconsistent(sizes) if sizes else (
            "vmap must have at least one non-None value in in_axes or axis_size must be specified"))
    return sizes.pop()


def _dim(operand: Array, axis: int) -> int:
    return axis % max(len(operand.shape), 1)


def _inconsistent(sizes: Collection[int]) -> str:
    return f"vmap got inconsistent sizes for array axes to be mapped: {sorted(sizes)}"
