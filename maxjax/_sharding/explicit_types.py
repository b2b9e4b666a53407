"""Sharding in types: the sharding of results along Explicit axes follows from the operands'.

The factor rules decide, as in propagation, but only forwards and without any choice: where operands
disagree, a sharded dimension is contracted, or a result would be split twice over one axis, it is
an error, and the caller has to say what is wanted by ``reshard`` or ``out_sharding``.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from maxjax._base.errors import ShardingTypeError
from maxjax._base.meshes import AbstractMesh, get_abstract_mesh
from maxjax._base.shardings import NamedSharding
from maxjax._base.source import occurs_at
from maxjax._base.specs import PartitionSpec, entry_axes
from maxjax._ir.jaxpr import JaxprEqn, Params, Var
from maxjax._ir.primitive import Primitive, mesh_rules
from maxjax._ir.types import ShapedArray
from maxjax._primitives.collective import reduce_scatter_p
from maxjax._primitives.comparison import (
    clamp_p,
    select_n_p,
)
from maxjax._primitives.contraction import dot_general_p
from maxjax._primitives.convolution import conv_general_dilated_p
from maxjax._primitives.cumulative import (
    cumlogsumexp_p,
    cummax_p,
    cummin_p,
    cumprod_p,
    cumsum_p,
)
from maxjax._primitives.dynamic_slice import (
    dynamic_slice_p,
    dynamic_update_slice_p,
)
from maxjax._primitives.fft import fft_p
from maxjax._primitives.indexing import gather_p
from maxjax._primitives.joining import concatenate_p, split_p
from maxjax._primitives.layout import reshape_p, rev_p
from maxjax._primitives.slicing import pad_p, slice_p
from maxjax._primitives.sorting import sort_p, top_k_p
from maxjax._primitives.window import (
    reduce_window_max_p,
    reduce_window_min_p,
    reduce_window_sum_p,
)
from maxjax._sharding.projection import project, rule_of
from maxjax._sharding.specs import Dims, product
from maxjax._sharding.unreduced_types import axes_of_results, kind_of_results

# A dimension that these shorten or lengthen stays split where its new size is divisible.
RESIZED = (slice_p, dynamic_slice_p, concatenate_p, pad_p, rev_p, dynamic_update_slice_p, split_p,
           reduce_window_sum_p, reduce_window_max_p, reduce_window_min_p)
# What messages call them.
_RESIZING = {slice_p: "slicing", dynamic_slice_p: "dynamic_slice", pad_p: "padding",
             split_p: "split", conv_general_dilated_p: "conv_general_dilated",
             reduce_window_sum_p: "reduce_window",
             reduce_window_max_p: "reduce_window", reduce_window_min_p: "reduce_window"}
CUMULATIVE = (cumsum_p, cumprod_p, cummax_p, cummin_p, cumlogsumexp_p)
INDEXED = (slice_p, dynamic_slice_p, gather_p)


def result_types(primitive: Primitive, in_avals: tuple[ShapedArray, ...], params: Params,
                 out_avals: tuple[ShapedArray, ...]) -> tuple[ShapedArray, ...]:
    """The types of the results with their specs.

    Raises:
      ValueError: the operands are on different meshes.
      ShardingTypeError: the operands' types do not determine the results'.
    """
    mesh = _mesh(primitive.name, in_avals)
    if mesh is None:
        return out_avals
    ins = [_dims(aval) for aval in in_avals]
    unreduced, reduced = axes_of_results(primitive, in_avals)
    if not (unreduced or reduced or mesh.explicit_axes):
        return out_avals
    kind = kind_of_results(primitive, in_avals) if unreduced else None
    if not any(axes for dims in ins for axes in dims):
        unsplit = PartitionSpec(unreduced=unreduced, reduced=reduced, unreduced_kind=kind)
        return tuple(aval.on_mesh(mesh, unsplit) for aval in out_avals)
    if primitive.communication is not None and len(in_avals) == len(out_avals) == 1:
        outs = [_of_collective(primitive, params, ins[0], out_avals[0].ndim)]
    else:
        outs = _Application(
            primitive, in_avals, params, out_avals, dict(mesh.shape_tuple), ins).run()
    return tuple(
        aval.on_mesh(mesh, PartitionSpec(
            *dims, unreduced=unreduced, reduced=reduced, unreduced_kind=kind))
        for aval, dims in zip(out_avals, outs, strict=True))


mesh_rules.sharding = result_types


def _of_collective(primitive: Primitive, params: Params, dims: Dims, ndim: int) -> Dims:
    """Communication along a manual axis leaves the sharding of the remaining dimensions."""
    if ndim == len(dims):
        return dims
    if ndim > len(dims):
        dim = params["all_gather_dimension"]
        return *dims[:dim], (), *dims[dim:]
    gone = ([params["scatter_dimension"]] if primitive is reduce_scatter_p else
            [axis for axis in params["axes"] if isinstance(axis, int)])
    return tuple(axes for dim, axes in enumerate(dims) if dim not in gone)


def _mesh(name: str, avals: Sequence[ShapedArray]) -> AbstractMesh | None:
    """The mesh of the operands' types.

    Raises:
      ValueError: they are over several, or the mesh that is set has another number of devices.
    """
    found: AbstractMesh | None = None
    for aval in avals:
        if aval.mesh_spec is not None:
            mesh = aval.mesh_spec[0]
            if found is not None and mesh != found:
                raise ValueError("Mesh for all inputs should be equal. Got one mesh: "
                                 f"{found} and another mesh: {mesh}")
            found = mesh
    if found is None:
        return None
    around = get_abstract_mesh()
    if not around.empty and around.size != found.size:
        aval = next(aval for aval in avals if aval.mesh_spec is not None)
        raise ValueError(
            f"For primitive {name}, context mesh {around} should match the aval mesh {found} for "
            f"shape {aval.str_short()}." + occurs_at())
    return found


def _dims(aval: ShapedArray) -> Dims:
    if aval.mesh_spec is None:
        return ((),) * aval.ndim
    return tuple(entry_axes(entry) for entry in aval.mesh_spec[1].partitions)


def _entries(dims: Dims) -> tuple[Any, ...]:
    """As a partition spec shows them."""
    return PartitionSpec(*dims).partitions


class _Application:
    """One application, of operands of which some are sharded."""

    def __init__(self, primitive: Primitive, in_avals: Sequence[ShapedArray],
                 params: Params, out_avals: Sequence[ShapedArray],
                 sizes: Mapping[str, int], ins: Sequence[Dims]):
        self.primitive = primitive
        self.name = primitive.name
        self.in_avals = in_avals
        self.out_avals = out_avals
        self.params = params
        self.sizes = sizes
        self.ins = ins
        self.rule = rule_of(JaxprEqn(
            primitive, [Var(aval.off_mesh()) for aval in in_avals], params,
            [Var(aval.off_mesh()) for aval in out_avals]))

    def run(self) -> list[Dims]:
        if self.primitive.sharded.split_alike is not None:
            self._check_alike()
        if self.primitive is clamp_p:
            return [self.ins[1]]
        if self.primitive in RESIZED:
            return self._resized()
        if self.primitive is conv_general_dilated_p:
            return self._convolved()
        if self.primitive is fft_p:
            return [self.ins[0]]      # which gathers what it transforms, and splits it again
        if self.primitive is dot_general_p:
            self._check_contraction()
            # The first operand alone says how batch dimensions are split.
            batch = self.params["dimension_numbers"][1][1]
            self.ins = [self.ins[0], tuple(
                () if dim in batch else axes for dim, axes in enumerate(self.ins[1]))]
        if self.primitive.sharded.unsplit is not None:
            self._check_unsplit()
        factors = self._factors()
        outs = []
        for dims in self.rule.results:
            entries = []
            for names in dims:
                axes: tuple[str, ...] = ()
                for number, name in enumerate(names):
                    if factors.get(name) and number and not factors.get(names[number - 1]):
                        raise self._not_supported()
                    axes += factors.get(name, ())
                entries.append(axes)
            outs.append(tuple(entries))
        if self.primitive is reshape_p:
            outs = [self._with_split_ones(outs[0])]
        self._check_results(outs)
        return outs

    def _with_split_ones(self, dims: Dims) -> Dims:
        """The result of a reshape, whose dimensions of one element are split (over axes of one
        device) as the operand's in the same places are: not where it only adds or removes such."""
        old, new = self.in_avals[0].shape, self.out_avals[0].shape
        if [size for size in old if size != 1] == [size for size in new if size != 1]:
            return dims
        return tuple(
            own if size == 1 and was == 1 else axes
            for size, axes, was, own in itertools.zip_longest(
                new, dims, old[:len(new)], self.ins[0][:len(new)], fillvalue=()))

    def _factors(self) -> dict[Any, tuple[str, ...]]:
        """The axes that split each factor."""
        found: dict[Any, tuple[str, ...]] = {}
        kept = {name for dims in self.rule.results for names in dims for name in names}
        for dims, names, aval in zip(self.ins, self.rule.operands, self.in_avals, strict=True):
            projected = project(dims, names, self.rule.sizes, self.sizes)
            for axes, factors, size in zip(dims, names, aval.shape, strict=True):
                # A dimension of one element has no factor.
                if sum(len(projected.get(f, ())) for f in factors) != len(axes) and size != 1:
                    raise self._not_supported()
            for factor, axes in projected.items():
                if not axes:
                    continue
                if found.setdefault(factor, axes) != axes:
                    raise self._incompatible()
                if self._is_gathered(factor) or (
                        factor in self.rule.replicated
                        and (factor in kept or self.primitive in (*INDEXED, top_k_p))):
                    raise self._needs_unsplit(aval, [factor in f for f in names].index(True))
        return found

    def _is_gathered(self, factor: Any) -> bool:
        """Whether a gather reads along the factor, or for each index along it.

        Only a dimension along which the operand and the indices both go on can stay split.
        """
        if self.primitive is not gather_p:
            return False
        of_operand, of_indices = (
            {name for names in dims for name in names} for dims in self.rule.operands)
        return factor in self.rule.reduction or factor in of_indices - of_operand

    def _resized(self) -> list[Dims]:
        first = self.ins[0]
        if self.primitive in _RESIZING and all(aval.size == 1 for aval in self.out_avals):
            return [((),) * aval.ndim for aval in self.out_avals]      # one element, everywhere
        for aval in self.out_avals:
            self._check_divisible(aval.shape, first)
        return [first] * len(self.out_avals)

    def _check_divisible(self, shape: Sequence[int], dims: Sequence[tuple[str, ...]]) -> None:
        for dim, (axes, size) in enumerate(zip(dims, shape, strict=True)):
            count = product(axes, self.sizes)
            if not size % count:
                continue
            what = _RESIZING.get(self.primitive)
            if what is None:      # a join with an operand that is on no mesh
                raise ValueError(
                    f"Sharding spec {_entries(self.ins[0])} implies that dimension {dim} of the "
                    f"result of {self.name} is split into {count} parts, which do not divide its "
                    f"size {size}.")
            entry = axes[0] if len(axes) == 1 else axes
            raise ShardingTypeError(
                f"{what} on sharded dims where out dim ({size}) is not divisible by mesh axes "
                f"({count}) with spec ({entry}) is not implemented. Got input "
                f"type={_short(self.in_avals[0])} and output shape={shape}")

    def _convolved(self) -> list[Dims]:
        """Split are batch and positions, as in the first operand; features are not."""
        of_lhs, _, of_result = self.params["dimension_numbers"]
        (lhs, kernel), shape = self.ins, self.out_avals[0].shape
        if any(kernel) or lhs[of_lhs[1]]:
            raise ShardingTypeError("Please specify the output sharding via `out_sharding` "
                                    f"parameter of `{self.name}`")
        dims: list[tuple[str, ...]] = [()] * len(shape)
        for source, target in zip(of_lhs, of_result, strict=True):
            dims[target] = lhs[source]
        self._check_divisible(shape, dims)
        return [tuple(dims)]

    def _check_results(self, outs: Sequence[Dims]) -> None:
        for dims, aval in zip(outs, self.out_avals, strict=True):
            used = [axis for axes in dims for axis in axes]
            if len(set(used)) < len(used):
                sizes = ",".join(
                    f"{size}@{axes[0] if len(axes) == 1 else '(' + ','.join(axes) + ')'}"
                    if axes else str(size) for size, axes in zip(aval.shape, dims, strict=True))
                name = aval.off_mesh().str_short(short_dtypes=True).partition("[")[0]
                raise ShardingTypeError(
                    f"{self.name} operation with inputs: {', '.join(map(_short, self.in_avals))} "
                    f"produces an illegally sharded result: {name}[{sizes}]")

    def _check_alike(self) -> None:
        group = self.in_avals[self.primitive.sharded.split_alike or slice(None)]
        # Operands that are on no mesh may have any sharding.
        dims = [_dims(aval) for aval in group if aval.ndim and aval.mesh_spec is not None]
        if all(other == dims[0] for other in dims):
            if self.primitive is select_n_p and dims:
                self._check_choice(dims[0])
            return
        shown = [_sharding(aval) for aval in group]
        if self.primitive is select_n_p:
            raise ShardingTypeError(
                f"select cases must have the same shardings, got [{', '.join(shown)}].")
        raise ShardingTypeError("All operands should have the same sharding. Got shardings "
                                + ", ".join(shown))

    def _check_choice(self, cases: Dims) -> None:
        which = self.in_avals[0]
        if which.ndim and which.mesh_spec is not None and self.ins[0] != cases:
            raise ShardingTypeError(
                "select `which` must be scalar or have the same sharding as cases, got `which` "
                f"sharding {_sharding(which)} but case sharding {_sharding(self.in_avals[1])}.")

    def _check_contraction(self) -> None:
        contracted, batched = self.params["dimension_numbers"]
        left, right = self._specs_of(batched)
        if left != right:
            raise ShardingTypeError(
                "dot_general requires lhs batch dimensions and rhs batch dimensions to have the "
                f"same sharding, got {left} and {right}.")
        left, right = self._specs_of(contracted)
        if any(a is not None and b is not None for a, b in zip(left, right, strict=True)):
            raise ShardingTypeError(
                "Contracting dimensions are sharded and it is ambiguous how the output should be "
                "sharded. Please specify the output sharding via the `out_sharding` parameter. "
                f"Got lhs_contracting_spec={left} and rhs_contracting_spec={right}")

    def _specs_of(self, dims: Sequence[Sequence[int]]) -> Sequence[tuple[Any, ...]]:
        """How the given dimensions of both operands are split."""
        return [_entries(tuple(self.ins[n][dim] for dim in own)) for n, own in enumerate(dims)]

    def _check_unsplit(self) -> None:
        for number, (dims, names) in enumerate(zip(self.ins, self.rule.operands, strict=True)):
            if any(axes and not self.rule.replicated.isdisjoint(factors)
                   for axes, factors in zip(dims, names, strict=True)):
                raise ShardingTypeError(
                    f"Input {number} to {self.primitive.sharded.unsplit} must be unsharded on "
                    f"non-batch dimensions, but got {PartitionSpec(*dims)}.")

    def _incompatible(self) -> ShardingTypeError:
        shown = ", ".join(str(_entries(dims)) for dims in self.ins if dims)
        return ShardingTypeError(
            f"{self.name} got incompatible shardings for broadcasting: {shown}.")

    def _not_supported(self) -> ShardingTypeError:
        operand = self.in_avals[0]
        if self.primitive is reshape_p:
            return ShardingTypeError(
                "This reshape is not supported. Please specify the sharding of the output via the "
                f"`out_sharding` argument of jax.lax.reshape. Got operand type: {operand}, new "
                f"sizes: {self.out_avals[0].shape}")
        return ShardingTypeError(
            f"{self.name} cannot keep its operands' shardings, {', '.join(map(str, self.in_avals))}"
            f", in a result of shape {self.out_avals[0].shape}: use `reshard` on the operands.")

    def _needs_unsplit(self, aval: ShapedArray, dim: int) -> ShardingTypeError:
        if self.primitive is sort_p:
            return ShardingTypeError(
                "Arguments to sort must be unsharded over the sorting dimension. Got arg "
                f"sharding={_sharding(aval)} and sorting dimension={dim}")
        if self.primitive is top_k_p:
            return ShardingTypeError(
                "The input should be unsharded over the axis along which to compute the top_k "
                f"values. Got input type={aval} and axis={dim}")
        if self.primitive in CUMULATIVE:
            return ShardingTypeError("Input should be unsharded over the axis being reduced. Got "
                                     f"input type={aval} and axis={dim}")
        if self.primitive in INDEXED:
            return ShardingTypeError(
                "Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather "
                "indexing as out sharding could not be resolved unambiguously (or would require "
                f"collectives on inputs). Got operand={self.in_avals[0]!r}"
                + (f", indices={self.in_avals[1]!r}" if self.primitive is gather_p else ""))
        return ShardingTypeError(
            f"{self.name} needs dimension {dim} of {aval} whole: use `reshard` on the operand.")


def _short(aval: ShapedArray) -> str:
    return aval.str_short(short_dtypes=True)


def _sharding(aval: ShapedArray) -> str:
    if aval.mesh_spec is None:
        return "replicated"
    return repr(NamedSharding(*aval.mesh_spec))
