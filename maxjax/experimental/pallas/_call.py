"""``pallas_call``: a kernel run for each point of a grid, on blocks of arrays.

On CPUs JAX interprets kernels, ``interpret=True``, and compiles none. Here that is a program like
any other: a loop over the grid, which slices the blocks, does what the kernel does and puts back
what it wrote; so it is compiled with what is around it, and has all derivatives.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from maxjax import core, lax, tree_util
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._base.interrupts import context_manager
from maxjax._base.source import function_location
from maxjax._higher_order.api import make_jaxpr
from maxjax._higher_order.refs import strong
from maxjax._ir.refs import make_ref, read
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax.experimental.pallas._blocks import Blocks, blocks_of, specs_for, uninitialized
from maxjax.experimental.pallas._grid import at, unraveled
from maxjax.experimental.pallas._specs import (
    CostEstimate,
    GridSpec,
    MemoryRef,
    NoBlockSpec,
    grid_of,
    no_block_spec,
)

_forced = 0      # how many contexts are open that have all kernels interpreted


@context_manager
def interpreted() -> Iterator[None]:
    """Kernels are interpreted, whatever their calls say."""
    global _forced
    _forced += 1
    try:
        yield
    finally:
        _forced -= 1


def pallas_call(kernel: Callable[..., None], out_shape: Any, *, grid_spec: GridSpec | None = None,
                grid: Any = (), in_specs: Any = no_block_spec, out_specs: Any = no_block_spec,
                scratch_shapes: Any = (), input_output_aliases: Mapping[int, int] = {},
                debug: bool = False, interpret: Any = False, name: str | None = None,
                compiler_params: Any = None, cost_estimate: CostEstimate | None = None,
                metadata: dict[str, str] | None = None) -> Callable[..., Any]:
    """A function of arrays that runs a kernel for each point of a grid, one after another.

    Args:
      kernel: takes references to blocks of the inputs, then of the outputs, then scratch, and
        writes to the outputs. It must not close over arrays.
      out_shape: the outputs' shapes and dtypes, a pytree.
      grid: the grid's sizes, integers or traced ones; the last index varies fastest.
      in_specs, out_specs: a ``BlockSpec`` for each input and output; without one the kernel sees
        the whole array. What a block has beyond its array is NaN, or the least integer.
      scratch_shapes: memory that the kernel has for its own use from one point to the next.
      input_output_aliases: numbers of inputs, and of outputs that begin as these.
      interpret: must be true: kernels are not compiled for devices.
      grid_spec: grid, specs and scratch in one.
      debug: print the kernel's jaxpr.
      name, compiler_params, cost_estimate, metadata: ignored.

    Raises:
      ValueError: without ``interpret``, or where specs and arrays do not match.

    >>> pl = jax.experimental.pallas
    >>> def double(x_ref, o_ref):
    ...     o_ref[...] = 2 * x_ref[...]
    >>> block = pl.BlockSpec((2,), lambda i: (i,))
    >>> pl.pallas_call(double, jax.ShapeDtypeStruct((4,), jnp.float32), grid=(2,),
    ...                in_specs=[block], out_specs=block, interpret=True)(jnp.arange(4.))
    Array([0., 2., 4., 6.], dtype=float32)
    """
    if grid_spec is None:
        grid_spec = GridSpec(grid, in_specs, out_specs, scratch_shapes)
    else:
        for word, value, default in (
                ("grid", grid, ()), ("in_specs", in_specs, no_block_spec),
                ("out_specs", out_specs, no_block_spec), ("scratch_shapes", scratch_shapes, ())):
            if value is not default and value != default:
                raise ValueError(f"If `grid_spec` is specified, then `{word}` must be "
                                 f"`{default!r}`. It is {value}")
    if not isinstance(grid_spec.in_specs, (list, tuple, NoBlockSpec)):
        raise ValueError(f"`in_specs` must be a tuple or a list. Found: {grid_spec.in_specs}")
    outs, out_tree = tree_util.tree_flatten(
        tuple(out_shape) if isinstance(out_shape, list) else out_shape)
    for struct in outs:
        if not hasattr(struct, "shape") or not hasattr(struct, "dtype"):
            raise ValueError(f"Invalid out_shape type: {type(struct)}")
    out_avals = [ShapedArray(tuple(struct.shape), dtypes.canonical(struct.dtype))
                 for struct in outs]
    spec = grid_spec

    def call(*args: Any) -> Any:
        arrays, in_tree = tree_util.tree_flatten(args)
        run = _Call(kernel, spec, [strong(jnp.asarray(array)) for array in arrays], in_tree,
                    out_avals, out_tree)
        if not (interpret or _forced):
            raise ValueError("Only interpret mode is supported on CPU backend.")
        results = run.results(_aliases(input_output_aliases, run), debug)
        return tree_util.tree_unflatten(out_tree, results)

    return call


def _aliases(given: Mapping[int, int], run: _Call) -> dict[int, int]:
    """By the number of an output, that of the input it begins as.

    Raises:
      ValueError: there is no such input or output, or it is of another type.
    """
    found = {}
    for source, target in given.items():
        for number, count, word in ((source, len(run.arrays), "input"),
                                    (target, len(run.outs), "output")):
            if number not in range(count):
                raise ValueError(f"input_output_aliases contains the mapping '{source}:{target}' "
                                 f"with {word} index {number} outside the range [0, {count})")
        array, out = run.arrays[source], run.outs[target].aval
        if (array.shape, array.dtype) != (out.shape, out.dtype):
            raise ValueError(
                f"input_output_aliases contains the mapping '{source}:{target}' referring to "
                f"input[{source}] with abstract value {ShapedArray(array.shape, array.dtype)} and "
                f"to output with a different abstract value {out}.")
        found[target] = source
    return found


class _Call:
    """A kernel with the arrays it is called with.

    Attributes:
      arrays: all inputs, the scalars of ``PrefetchScalarGridSpec`` first.
      ins, outs: how the others, and the outputs, are cut.
    """

    def __init__(self, kernel: Callable[..., None], spec: GridSpec, arrays: list[Any],
                 in_tree: Any, out_avals: Sequence[ShapedArray], out_tree: Any):
        self.kernel = kernel
        self.grid = grid_of(spec.grid)
        self.arrays = arrays
        self.in_tree, self.out_tree = in_tree, out_tree
        scalars = getattr(spec, "num_scalar_prefetch", 0)
        trees = in_tree.children()
        self.scalars = sum(tree.num_leaves for tree in trees[:scalars])
        in_specs = spec.in_specs
        if not isinstance(in_specs, NoBlockSpec):
            in_specs = (no_block_spec,) * self.scalars + tuple(in_specs)
        names = [f"args{path}" for path in _paths(in_tree)]
        self.ins = [blocks_of(array.aval, each, name) for array, each, name in zip(
            arrays, specs_for(in_specs, in_tree, len(arrays), "in_specs", "inputs"), names,
            strict=True)]
        self.outs = [blocks_of(aval, each, f"outputs{path}") for aval, each, path in zip(
            out_avals, specs_for(spec.out_specs, out_tree, len(out_avals), "out_specs",
                                 "out_shape"), _paths(out_tree), strict=True)]
        self.scratch, self.scratch_tree = tree_util.tree_flatten(
            spec.scratch_shapes, is_leaf=lambda x: isinstance(x, MemoryRef))
        self.scratch = [shape if isinstance(shape, MemoryRef) else shape.get_ref_aval()
                        for shape in self.scratch]

    @property
    def location(self) -> str:
        return function_location(self.kernel)

    def traced(self, sizes: Sequence[Any]) -> tuple[Any, list[int]]:
        """What the kernel does, ``(indices, sizes, blocks) -> new values``, and of which blocks;
        of the grid's sizes it takes those that are traced.

        Raises:
          ValueError: the kernel gives a result, or closes over an array.
        """
        written: list[int] = []

        def step(indices: Sequence[Any], traced: Sequence[Any], values: Sequence[Any]
                 ) -> list[Any]:
            refs = [make_ref(value) for value in values]
            rest = iter(traced)
            here = [next(rest) if isinstance(size, Array) else size for size in sizes]
            ins, outs = len(self.ins), len(self.ins) + len(self.outs)
            results = tree_util.tree_unflatten(self.out_tree, refs[ins:outs])
            scratch = tree_util.tree_unflatten(self.scratch_tree, refs[outs:])
            with at(indices, here):
                given = self.kernel(
                    *tree_util.tree_unflatten(self.in_tree, refs[:ins]),
                    *(results if isinstance(results, tuple) else (results,)),
                    *(() if isinstance(scratch, dict) else scratch),
                    **(scratch if isinstance(scratch, dict) else {}))
            if given is not None:
                raise ValueError(
                    f"The kernel function in the pallas_call {self.location} should return None. "
                    f"It returns a PyTree: {tree_util.tree_structure(given)}")
            finals = [read(ref) for ref in refs]
            written[:] = [n for n, (value, final) in enumerate(zip(values, finals, strict=True))
                          if final is not value]
            return [strong(finals[n]) for n in written]

        struct = [ShapedArray(blocks.shape, blocks.aval.dtype)
                  for blocks in (*self.ins, *self.outs)]
        index = ShapedArray((), dtypes.as_dtype("int32"))
        closed = make_jaxpr(step)([index] * len(sizes), _traced(sizes),
                                  struct + [ref.inner_aval for ref in self.scratch])
        captured = [const for const in closed.consts if isinstance(const, Array)]
        if captured:
            types = ", ".join(const.aval.str_short(short_dtypes=True) for const in captured)
            raise ValueError(f"The kernel function in the pallas_call {self.location} captures "
                             f"constants [{types}]. You should pass them as inputs.")
        return closed, written

    def results(self, aliases: Mapping[int, int], debug: bool) -> list[Any]:
        sizes = [operator.index(size) if hasattr(size, "__index__") and not isinstance(size, Array)
                 else size for size in self.grid]
        closed, written = self.traced(sizes)
        if debug:
            print(f"The kernel jaxpr for pallas_call {self.location}:\n{closed.jaxpr}")
        values = [blocks.padded(array)
                  for blocks, array in zip(self.ins, self.arrays, strict=True)]
        values += [blocks.padded(self.arrays[aliases[n]] if n in aliases else
                                 uninitialized(blocks.aval.shape, blocks.aval.dtype))
                   for n, blocks in enumerate(self.outs)]
        values += [uninitialized(ref.shape, ref.dtype) for ref in self.scratch]
        places: list[Blocks] = [*self.ins, *self.outs, *(
            Blocks(ref.inner_aval, None, None, "scratch") for ref in self.scratch)]
        # What is written to an input or to the output that begins as it, both hold.
        first = len(self.ins)
        pairs = [(source, first + target) for target, source in aliases.items()]
        pairs = [(source, target) if source in written else (target, source)
                 for source, target in pairs if {source, target} & {*written}]
        changing = sorted({*written, *itertools.chain.from_iterable(pairs)})

        def step(number: Any, carried: Sequence[Any]) -> list[Any]:
            now = list(values)
            for n, value in zip(changing, carried, strict=True):
                now[n] = value
            indices = unraveled(number, sizes)
            more = [make_ref(value) for value in now[:self.scalars]]
            starts = [place.starts(indices, sizes, more) for place in places]
            blocks = [place.take(value, start)
                      for place, value, start in zip(places, now, starts, strict=True)]
            news = core.eval_jaxpr(closed.jaxpr, closed.consts, *indices, *_traced(sizes), *blocks)
            for n, new in zip(written, news, strict=True):
                now[n] = places[n].put(now[n], new, starts[n])
            for source, copy in pairs:
                now[copy] = now[source]
            return [now[n] for n in changing]

        steps: Any = 1
        for size in sizes:
            steps = steps * size
        carried = [values[n] for n in changing]
        if isinstance(steps, int) and steps == 1:
            carried = step(jnp.int32(0), carried)
        elif not (isinstance(steps, int) and steps == 0):
            carried = lax.fori_loop(jnp.int32(0), jnp.int32(steps), step, carried) \
                if not isinstance(steps, int) else lax.fori_loop(0, steps, step, carried)
        for n, value in zip(changing, carried, strict=True):
            values[n] = value
        return [blocks.cropped(value) for blocks, value in zip(
            self.outs, values[first:first + len(self.outs)], strict=True)]


def _traced(sizes: Sequence[Any]) -> list[Any]:
    return [size for size in sizes if isinstance(size, Array)]


def _paths(tree: Any) -> list[str]:
    leaves = tree_util.tree_leaves_with_path(
        tree_util.tree_unflatten(tree, list(range(tree.num_leaves))))
    return [tree_util.keystr(path) for path, _ in leaves]
