"""vmap, on pytrees."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from maxjax._base import pytree
from maxjax._base.meshes import use as mesh_use
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.signatures import leaf_names, parameter_names, wraps
from maxjax._base.source import VMAP, function_location, transformed
from maxjax._base.specs import AxisName, SpecEntry, entry_axes, spec_axes
from maxjax._base.tracebacks import boundary
from maxjax._ir.refs import Ref
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array, aval_of
from maxjax._ir.typing import BatchAxis, Function, Value
from maxjax._primitives.broadcasting import reduce_sum
from maxjax._transforms import vmappable
from maxjax._transforms.autodiff import check_callable, leaf_operand
from maxjax._transforms.batching import batch_flat, to_axis
from maxjax._transforms.refs import Lent

# Containers whose leaves are not mapped along any axis, with what refuses one:
# ``check(container, axis, is_result)``.
containers: dict[type, Callable[[Any, int, bool], None]] = {}


def vmap(fun: Function, in_axes: int | Sequence[PyTree] | None = 0, out_axes: PyTree = 0,
         axis_name: Hashable | None = None, axis_size: int | None = None,
         spmd_axis_name: Hashable | None = None, sum_match: bool = False) -> Function:
    """A function that applies ``fun`` to each element of its arguments along an axis.

    Args:
      fun: a function of arrays or pytrees of them.
      in_axes: for each positional argument the axis to map (None: the same for all elements); an
        int for all, or a tuple of ints, None and prefix pytrees. Keyword arguments map axis 0.
      out_axes: where the mapped axis goes in the results; a prefix pytree. None: the result is
        the same for all elements.
      axis_name: a name for the axis, for collectives such as ``lax.psum`` inside ``fun``.
      axis_size: the number of elements; needed where no argument is mapped.
      spmd_axis_name: the mesh axis that the elements lie along, for a ``shard_map`` inside.
      sum_match: where ``out_axes`` is None, results that differ between elements are summed.

    Returns:
      A function of the same arguments with one more axis in each that is mapped, whose results have
      one more, too. It runs as one program of larger operations, not as a loop.

    Raises:
      TypeError: ``in_axes`` or ``out_axes`` holds anything but ints and None.
      ValueError: the sizes differ, an axis is out of range, or ``out_axes`` is None for a result
        that differs between elements.

    See also: ``jax.pmap``, ``jax.shard_map``, ``lax.map``, ``lax.scan``, ``jnp.vectorize``,
    ``jax.custom_batching.custom_vmap``.

    >>> jax.vmap(jnp.dot, in_axes=(0, None))(jnp.eye(2), jnp.array([3., 4.]))
    Array([3., 4.], dtype=float32)
    >>> jax.vmap(lambda x: x - jax.lax.pmean(x, "rows"), axis_name="rows")(jnp.array([1., 3.]))
    Array([-1.,  1.], dtype=float32)
    """
    check_callable(fun)
    in_axes = _checked_in_axes(in_axes)
    check_axes("out_axes", out_axes)

    def vmap_f(*args: PyTree, **kwargs: PyTree) -> Any:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(_wrong_length(in_axes, args, kwargs))

        def of_values() -> Any:
            return vmappable.above_arrays.call(
                fun, args, kwargs, in_axes, out_axes, axis_name, axis_size, spmd_axis_name,
                sum_match)

        def with_handlers() -> Any:
            return vmappable.call(fun, args, kwargs, _axes_of_objects, in_axes, out_axes, axis_name,
                                  axis_size, spmd_axis_name)

        above = vmappable.above_arrays.concerns
        if above is not None and above((args, kwargs)):
            return of_values()
        if vmappable.concerns((args, kwargs), (in_axes, out_axes)):
            return with_handlers()
        leaves, tree = pytree.flatten((args, kwargs))
        values, axes, size = _mapped_operands(fun, args, kwargs, leaves, tree, in_axes, axis_size)
        entry = _mapped_entry(values, axes, spmd_axis_name) if mesh_use.ever_set else None
        lent: Lent | None = None
        if any(leaf.__class__ is Ref for leaf in leaves):
            lent = _lent(fun, leaves, tree, axes)
            values = lent.values(values)
        out_tree: Any = None
        outputs: list[Any] = []

        def flat(*xs: Value) -> list[Any]:
            nonlocal out_tree, outputs
            call_args, call_kwargs = pytree.unflatten(tree, lent.given(xs) if lent else xs)
            result = fun(*call_args, **call_kwargs)
            leaves, out_tree = pytree.flatten(result)
            if above is not None and above(result):
                raise vmappable.ValueInResult
            if vmappable.concerns(result, None):
                raise vmappable.InResult
            if containers:
                _check_containers("vmap out_axes", out_axes, result)
            # No tracer outlives the trace.
            outputs = [None if isinstance(x, Array) else x for x in leaves]
            results = [x if isinstance(x, Array) else vmap_output(x) for x in leaves]
            return [*results, *lent.finals()] if lent else results

        try:
            with transformed(VMAP), lent.borrowed() if lent else contextlib.nullcontext():
                outs, dims = batch_flat(flat, size, values, axes, axis_name, spmd_axis_name)
        except vmappable.InResult:
            return with_handlers()
        except vmappable.ValueInResult:
            return of_values()
        if lent:
            count = out_tree.num_leaves
            lent.write([to_axis(out, dim, axes[n], size) for out, dim, n in zip(
                outs[count:], dims[count:], lent.written, strict=True)])
            outs, dims = outs[:count], dims[:count]
        results = _moved_to_targets(outs, dims, outputs, out_tree, out_axes, axis_name, size, entry,
                                    sum_match)
        return pytree.unflatten(out_tree, results)

    typed: Any = wraps(fun)(boundary(vmap_f))     # as ``fun``, of arrays with one dimension more
    typed.__doc__ = vmap_doc(fun)
    return typed


def _checked_in_axes(in_axes: PyTree) -> PyTree:
    """``in_axes``, a list as a tuple.

    Raises:
      TypeError: it is nothing that vmap takes.
    """
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if (type(in_axes) is not int and not isinstance(in_axes, (tuple, type(None)))
            and not vmappable.is_spec(in_axes)):
        raise TypeError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
            f"positional arguments passed to the function, but got {in_axes}.")
    check_axes("in_axes", in_axes)
    return in_axes


def _mapped_operands(fun: Function, args: tuple[PyTree, ...], kwargs: dict[str, PyTree],
                     leaves: Sequence[PyTree], tree: PyTreeSpec, in_axes: PyTree,
                     axis_size: int | None) -> tuple[list[Any], list[Any], int]:
    """The arguments' leaves as operands, the axis of each that is mapped, and the size of these."""
    if not leaves and axis_size is None:
        raise ValueError(
            "vmap wrapped function must be passed at least one argument containing an array or "
            f"axis_size must be specified, got empty *args={args} and **kwargs={kwargs}")
    axes = flatten_axes("vmap in_axes", (in_axes, 0), (args, kwargs), tree)
    if containers:
        _check_containers("vmap in_axes", (in_axes, 0), (args, kwargs))
    # What is not mapped is passed on as it is: it need not be an array.
    values = [leaf if axis is None or leaf.__class__ is Ref else leaf_operand(leaf)
              for leaf, axis in zip(leaves, axes, strict=True)]
    axes = [None if axis is None else normalize_in_axis(axis, value.aval.shape)
            for axis, value in zip(axes, values, strict=True)]
    return values, axes, mapped_size(fun, tree, values, axes, axis_size)


def _lent(fun: Function, leaves: Sequence[PyTree], tree: PyTreeSpec, axes: Sequence[int | None]
          ) -> Lent:
    """The references among the leaves that are mapped, lent to the call of ``fun``."""
    return Lent([None if axis is None else leaf for leaf, axis in zip(leaves, axes, strict=True)],
                argument_paths(fun, tree), function_location(fun), "vmap")


def _wrong_length(in_axes: tuple[PyTree, ...], args: tuple[PyTree, ...], kwargs: dict[str, PyTree]
                  ) -> str:
    """The message for ``in_axes`` that are not as many as the positional arguments."""
    return (
        "vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
        f"positional arguments passed to the function, but got {len(in_axes)=}, "
        f"{len(args)=}." + (f" Note that the function was called with keyword arguments "
        f"{list(kwargs)}, which the entries of a tuple in_axes never correspond to: "
        "keyword arguments are always mapped along their leading axis (axis 0). If that is "
        "the intended mapping, make in_axes correspond to the positional arguments only; "
        "otherwise pass the arguments positionally, or bind unmapped keyword arguments "
        "with functools.partial before applying vmap." if kwargs else ""))


def _moved_to_targets(outs: Sequence[Array], dims: Sequence[BatchAxis], outputs: Sequence[object],
                      out_tree: PyTreeSpec, out_axes: PyTree, axis_name: Hashable | None,
                      size: int, entry: SpecEntry | None, sum_match: bool) -> list[Any]:
    """The leaves of the results, with the mapped axes where ``out_axes`` has them.

    Args:
      outputs: leaves that are no tracers, as the function gave them; else None.
      entry: the mesh axes that the mapped dimension is split over.
    """
    # One axis for all needs no pytree.
    dummy = None if out_axes is None or isinstance(out_axes, int) else pytree.numbered(out_tree)
    targets = flatten_axes("vmap out_axes", out_axes, dummy, out_tree)
    results = []
    for number, (out, dim, target) in enumerate(zip(outs, dims, targets, strict=True)):
        if target is None:
            if dim is not None and not sum_match:
                raise ValueError(unmapped_message(axis_name, out_axes, dummy, number, dim))
            if dim is not None:
                out = reduce_sum(out, (dim,))
            results.append(out if outputs[number] is None else outputs[number])
            continue
        rank = len(out.shape) + (dim is None)
        if not -rank <= target < rank:
            raise ValueError(f"axis {target} is out of bounds for array of dimension {rank}")
        # A Python number is on no mesh.
        results.append(to_axis(out, dim, target % rank, size,
                               entry if outputs[number] is None else None))
    return results


def _mapped_entry(values: Sequence[Value | Ref], axes: Sequence[int | None], spmd_axis: AxisName
                  ) -> Any:
    """The Explicit axes that the mapped dimensions are split over.

    Raises:
      ValueError: not all by the same, or the elements lie along another axis.
    """
    entries = []
    for value, axis in zip(values, axes, strict=True):
        if axis is not None:
            aval = value.aval.inner_aval if isinstance(value, Ref) else aval_of(value)
            found = aval.mesh_spec
            entries.append(None if found is None else found[1].partitions[axis])
    for entry in entries:
        if entry != entries[0]:
            raise ValueError(
                "Mapped away dimension of inputs passed to vmap should be sharded the same. Got "
                f"inconsistent axis specs: {entries[0]} vs {entry}")
    found = entries[0] if entries else None
    for value, axis in zip(values, axes, strict=True):
        if found is None or axis is not None or isinstance(value, Ref):
            continue
        aval = aval_of(value)
        if aval.mesh_spec is not None and not set(entry_axes(found)).isdisjoint(
                spec_axes(aval.mesh_spec[1])):
            raise ValueError(
                "Unmapped values passed to vmap cannot be sharded along the mesh axis you are "
                f"vmapping over. Got type: {aval.str_short(True)}, in_axes: None and vmapped mesh "
                f"axis: {entry_axes(found)}")
    if found is not None and spmd_axis is not None and entry_axes(found) != entry_axes(spmd_axis):
        raise ValueError(
            "Only one of spmd_axis_name or arrays sharded on `Explicit` mesh axis type is allowed. "
            f"Got spmd_axis_name={entry_axes(spmd_axis)} and arrays sharded on "
            f"explicit_mesh_axis={entry_axes(found)}")
    return found


def vmap_doc(fun: Callable[..., PyTree]) -> str:
    name = getattr(fun, "__name__", str(fun))
    text = (f"Vectorized version of {name}. Takes similar arguments as {name} but with additional "
            f"array axes over which {name} is mapped.")
    original = getattr(fun, "__doc__", None)
    return f"{text}\n\nOriginal documentation:\n\n{original}" if original else text


def check_axes(what: str, axes: PyTree) -> None:
    if not all(type(leaf) is int or vmappable.is_spec(leaf)
               for leaf in pytree.leaves(axes)):
        raise TypeError(
            f"vmap {what} must be an int, None, or (nested) container with those types as leaves, "
            f"but got {axes}.")


def unmapped_message(axis_name: AxisName, out_axes: PyTree, outputs: PyTree, number: int, axis: int
                     ) -> str:
    """``out_axes`` is None for the output of that number, which has a batch axis."""
    if axis_name is not None:
        return f"vmap has mapped output (axis_name={axis_name}) but out_axes is None"
    path = ""
    if out_axes is not None:
        path = pytree.path_string(pytree.flatten_with_path(outputs)[0][number])
    return f"at vmap out_axes{path}, got axis spec None but output was batched on axis {axis}"


def vmap_output(leaf: object) -> Any:
    try:
        return installed.runtime.argument(leaf)
    except TypeError:
        raise TypeError(f"Output from batched function {leaf!r} with type {type(leaf)} is not a "
                        "valid JAX type") from None


def flatten_axes(what: str, axes: PyTree, value: PyTree, tree: PyTreeSpec) -> list[Any]:
    """One axis (or None) for each leaf of ``value``."""
    if isinstance(axes, int) or axes is None:
        return [axes] * tree.num_leaves
    try:
        return pytree.broadcast_prefix(axes, value, what=what)
    except ValueError:
        if what == "vmap in_axes":
            axes, value = axes[0], value[0]
        else:
            value = pytree.map(lambda _: pytree.PytreeLeaf(), value)
        raise pytree.prefix_error(axes, value, what, lambda node: node is None) from None


def _axes_of_objects(what: str, axes: PyTree, tree: PyTreeSpec) -> list[Any]:
    if type(axes) in vmappable.spec_types:
        return [axes] * tree.num_leaves
    if what == "vmap in_axes" and type(axes[0]) in vmappable.spec_types:
        places = pytree.numbered(tree)
        return [axes[0]] * len(pytree.leaves(places[0])) + [0] * len(pytree.leaves(places[1]))
    return flatten_axes(what, axes, pytree.numbered(tree), tree)


def _check_containers(what: str, axes: PyTree, value: PyTree) -> None:
    """Raises where a container cannot be mapped along its axis."""
    found, tree = pytree.flatten(value, lambda node: type(node) in containers)
    if not any(type(node) in containers for node in found):
        return
    places = pytree.numbered(tree)
    for node, axis in zip(found, flatten_axes(what, axes, places, tree), strict=True):
        check = containers.get(type(node))
        if check is not None and axis is not None:
            check(node, axis, what == "vmap out_axes")


def normalize_in_axis(axis: int, shape: tuple[int, ...]) -> int:
    rank = len(shape)
    if not -rank <= axis < rank:
        if axis < 0:
            implied = -axis
        else:
            implied = axis + 1
        raise ValueError(
            f"vmap was requested to map its argument along axis {axis}, which implies that its "
            f"rank should be at least {implied}, but is only {rank} (its shape is {shape})")
    return axis % rank


def mapped_size(fun: Callable[..., PyTree], tree: PyTreeSpec, values: list[Array],
                axes: list[BatchAxis], axis_size: int | None) -> int:
    """The size that all mapped axes share."""
    sizes = [value.aval.shape[axis] for value, axis in zip(values, axes, strict=True)
             if axis is not None]
    if axis_size is not None:
        sizes.append(axis_size)
    if not sizes:
        raise ValueError(
            "vmap must have at least one non-None value in in_axes or axis_size must be specified")
    # An array is not a size, even if it compares equal.
    if all(size == sizes[0] for size in sizes) and not isinstance(axis_size, Array):
        return sizes[0]
    raise ValueError(size_message(fun, tree, values, axes, axis_size))


def argument_paths(fun: Callable[..., PyTree], tree: PyTreeSpec, prefix: str = "") -> list[str]:
    """Where each leaf of ``(args, kwargs)`` stands."""
    names = parameter_names(fun)
    return leaf_names(
        tree, lambda n: prefix + names[n] if n < len(names) else f"args[{n}]",
        lambda name: f"kwargs['{name}']")


def size_message(fun: Callable[..., PyTree], tree: PyTreeSpec, values: list[Array],
                 axes: list[BatchAxis], axis_size: int | None) -> str:
    paths = argument_paths(fun, tree, "argument ")
    groups: dict[int, list[str]] = {}
    for where, value, axis in zip(paths, values, axes, strict=True):
        if axis is not None:
            groups.setdefault(value.aval.shape[axis], []).append(
                f"axis {axis} of {where} of type {value.aval.str_short()}")
    lines = [] if axis_size is None else [f"  * the `axis_size` argument was {axis_size}"]
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))
    for number, (size, places) in enumerate(ordered):
        if len(places) == 1:
            lines.append(f"  * one axis had size {size}: {places[0]}")
        else:
            lines.append(f"  * {'some' if number else 'most'} axes ({len(places)} of them) had "
                         f"size {size}, e.g. {places[0]}")
    return "vmap got inconsistent sizes for array axes to be mapped:\n" + ";\n".join(lines)
