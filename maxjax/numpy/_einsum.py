"""Einstein summation: ``einsum``, and the order of its contractions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.lazy import opt_einsum
from maxjax._base.tracebacks import boundary
from maxjax._higher_order.constraints import with_out_sharding
from maxjax._ir.trace import Array
from maxjax._primitives import layout
from maxjax._primitives.convert import convert_element_type
from maxjax.lax._over_mesh import explicit_mesh
from maxjax.numpy import _reductions as reductions
from maxjax.numpy import _shape as shapes
from maxjax.numpy._contraction import contract
from maxjax.numpy._matrices import diagonal
from maxjax.numpy._promotion import as_array, check_out, promote_dtypes, resolve, type_of

__all__ = ["einsum", "einsum_path"]


@boundary
def einsum(subscripts: Any, /, *operands: Any, out: Any = None, optimize: Any = "auto",
           precision: Any = None, preferred_element_type: Any = None,
           _dot_general: Any = None, out_sharding: Any = None) -> Array:
    """Einstein summation: products summed over the indices that the result lacks.

    Args:
      subscripts: the indices of each operand, and of the result, as "ij,jk->ik".
      operands: arrays (or, without a string, each array followed by a list of its indices).
      out: None: arrays are immutable.
      optimize: the order of contractions: "auto", "optimal", "greedy", a path, or False.
      precision: of the products on accelerators, ``None`` or a ``lax.Precision``; two for the two
        operands.
      preferred_element_type: the dtype of accumulation and of the result; None: the promoted one.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array with a dimension for each index of the result, of the dtype to which the operands
      promote. Without "->" the indices are those that occur once, in alphabetical order.

    Raises:
      ValueError: the subscripts do not fit the operands.
      NotImplementedError: ``out`` is given.

    See also: ``einsum_path``, ``tensordot``, ``matmul``, ``dot``, ``trace``, ``lax.dot_general``.

    >>> x = jnp.array([[1, 2], [3, 4]])
    >>> jnp.einsum("ij,jk->ik", x, x)
    Array([[ 7, 10],
           [15, 22]], dtype=int32)
    >>> jnp.einsum("ii", x)
    Array(5, dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(einsum, out_sharding, subscripts, *operands, out=out,
            optimize=optimize, precision=precision, preferred_element_type=preferred_element_type,
            _dot_general=_dot_general)
    check_out("einsum", out)
    inputs, output, values = _parse(subscripts, operands)
    preferred = (None if preferred_element_type is None
                 else dtypes.argument(preferred_element_type, "einsum"))
    # A product of two takes operands of different dtypes; sums, and products of more, do not.
    arrays = [as_array(x) for x in (
        values if len(values) == 2 else promote_dtypes("einsum", *values))]
    sizes: dict[str, int] = {}
    for position, (labels, x) in enumerate(zip(inputs, arrays, strict=True)):
        for label, size in zip(labels, x.shape, strict=True):
            known = sizes.get(label, 1)
            if known != 1 and size not in (1, known):
                raise ValueError(f"Size of label {label!r} for operand {position} ({known}) does "
                                 f"not match previous terms ({size}).")
            sizes[label] = size if known == 1 or size == 0 else known
    if len(arrays) > 2:
        order = _path(inputs, output, arrays, optimize)
    else:
        order = [tuple(range(len(arrays)))]
    terms = list(zip(inputs, arrays, strict=True))
    for number, positions in enumerate(order):
        chosen = [terms.pop(i) for i in sorted(positions, reverse=True)]
        last = number == len(order) - 1
        if last:
            kept = output
        else:
            later = set(output).union(*(labels for labels, _ in terms))
            kept = "".join(dict.fromkeys(
                label for labels, _ in chosen[::-1] for label in labels if label in later))
        chosen.reverse()
        terms.append((kept, _contract_terms(chosen, kept, precision, preferred)))
    return terms[0][1]


def _path(inputs: Sequence[str], output: str, arrays: Sequence[Array],
          optimize: Any) -> list[tuple[int, ...]]:
    """The order of contractions: positions in the list of terms, to which results are appended."""
    if optimize is False:
        return [(0, 1)] * (len(arrays) - 1)
    optimize = "optimal" if optimize is True else optimize
    text = f"{','.join(inputs)}->{output}"
    path, _ = opt_einsum.contract_path(
        text, *[x.shape for x in arrays], shapes=True, optimize=optimize)
    pairs: list[tuple[int, ...]] = []
    for positions in path:
        if len(positions) <= 2:
            pairs.append(tuple(positions))
            continue
        raise NotImplementedError(
            "jax.numpy.einsum does not support simultaneous contraction of 3 or more operands. "
            "Typically this means you've passed an unsupported path to the einsum optimize "
            "parameter.")
    return pairs


def einsum_path(subscripts: Any, /, *operands: Any, optimize: Any = "auto") -> Any:
    """The order of contractions that ``einsum`` would use, and a description of it.

    >>> jnp.einsum_path("ij,jk,kl", jnp.ones((9, 2)), jnp.ones((2, 9)), jnp.ones((9, 2)))[0]
    [(1, 2), (0, 1)]
    """
    if optimize is False:       # from left to right
        count = sum(hasattr(x, "shape") for x in operands)
        optimize = [(0,)] if count == 1 else [(0, 1)] * (count - 1)
    return opt_einsum.contract_path(
        subscripts, *operands, optimize="optimal" if optimize is True else optimize)


def _parse(subscripts: Any, operands: Sequence[Any]) -> tuple[list[str], str, list[Any]]:
    """(labels of each operand, labels of the result, the operands)"""
    if not isinstance(subscripts, str):
        subscripts, operands = _from_lists([subscripts, *operands])
    text = subscripts.replace(" ", "")
    left, arrow, output = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(operands):
        raise ValueError(f"Number of einsum subscripts, {len(inputs)}, must be equal to the number "
                         f"of operands, {len(operands)}.")
    operands = resolve("einsum", operands)
    ranks = [len(x.shape) if hasattr(x, "shape") else np.ndim(x) for x in operands]
    if "..." in text:
        unused = [c for c in _LETTERS if c not in text]
        most = 0
        counts = []
        for labels, rank in zip(inputs, ranks, strict=True):
            count = rank - len(labels.replace("...", "")) if "..." in labels else 0
            if count < 0:
                raise ValueError("Ellipses lengths do not match.")
            counts.append(count)
            most = max(most, count)
        names = "".join(unused[:most])
        inputs = [labels.replace("...", names[most - count:])
                  for labels, count in zip(inputs, counts, strict=True)]
        if arrow:
            output = output.replace("...", names)
        else:
            once = "".join(inputs)
            output = names + "".join(sorted(
                c for c in set(once) if once.count(c) == 1 and c not in names))
            arrow = "->"
    if not arrow:
        once = "".join(inputs)
        output = "".join(sorted(c for c in set(once) if once.count(c) == 1))
    for labels, rank in zip(inputs, ranks, strict=True):
        if len(labels) != rank:
            raise ValueError(f"Einstein sum subscript {labels!r} does not contain the correct "
                             "number of indices for operand.")
    for label in output:
        if not any(label in labels for labels in inputs):
            raise ValueError(f"Output character {label!r} did not appear in the input")
        if output.count(label) > 1:
            raise ValueError(f"Output character {label!r} appeared more than once in the output.")
    return inputs, output, list(operands)


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _from_lists(arguments: list[Any]) -> tuple[str, list[Any]]:
    """The form ``einsum(x, [0, 1], y, [1, 2], [0, 2])`` as subscripts."""
    output = arguments.pop() if len(arguments) % 2 else None
    operands, lists = arguments[::2], arguments[1::2]
    names: dict[Any, str] = {}
    labels = sorted({n for labels in lists for n in labels if n is not Ellipsis})
    for name, label in zip(_LETTERS, labels, strict=False):
        names[label] = name

    def spell(labels: Sequence[Any]) -> str:
        return "".join("..." if n is Ellipsis else names[n] for n in labels)

    text = ",".join(spell(labels) for labels in lists)
    return (text if output is None else f"{text}->{spell(output)}"), operands


def _without_repeats(labels: str, x: Array) -> tuple[str, Array]:
    """Takes diagonals until no label is repeated."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            x = diagonal(x, 0, first, second)
            labels = labels[:first] + labels[first + 1:second] + labels[second + 1:] + label
    return labels, x


def _sum_labels(labels: str, x: Array, drop: set[str], result: tuple[Any, bool]
                ) -> tuple[str, Array]:
    """Sums over labels; promoted to the result's type, which holds what the operand's may not."""
    axes = tuple(i for i, label in enumerate(labels) if label in drop)
    if not axes:
        return labels, x
    dtype, weak = dtypes.promote((type_of(x), result))
    x = reductions.sum(x, axes, dtype=dtypes.int32 if dtype == dtypes.bool_ else dtype)
    return "".join(c for c in labels if c not in drop), convert_element_type(x, dtype, weak)


def _contract_terms(terms: list[tuple[str, Array]], output: str, precision: Any,
                    preferred: Any) -> Array:
    terms = [_without_repeats(labels, x) for labels, x in terms]
    dtype = (preferred, False)
    if preferred is None:
        dtype = dtypes.promote(tuple(type_of(x) for _, x in terms))
    if len(terms) == 1:
        labels, x = _sum_labels(*terms[0], set(terms[0][0]) - set(output), dtype)
        if preferred is not None:
            x = convert_element_type(x, preferred)
        return layout.transpose(x, tuple(labels.index(c) for c in output))
    (left, x), (right, y) = terms
    # A size of 1 against a larger one broadcasts: it is not contracted.
    for label in set(left) & set(right):
        a, b = x.shape[left.index(label)], y.shape[right.index(label)]
        if a != b:
            if a == 1:
                left, x = _squeezed(left, x, label)
            else:
                right, y = _squeezed(right, y, label)
    left, x = _sum_labels(left, x, set(left) - set(right) - set(output), dtype)
    right, y = _sum_labels(right, y, set(right) - set(left) - set(output), dtype)
    shared = [label for label in left if label in right]
    batch = [label for label in shared if label in output]
    summed = [label for label in shared if label not in output]
    # Operands in the order of the result need no transposition afterwards.
    free = [c for c in left if c not in shared], [c for c in right if c not in shared]
    position = {label: i for i, label in enumerate(output)}
    batch.sort(key=lambda label: position[label])
    if explicit_mesh(x, y) is not None:
        # The first operand says how batch dimensions are split: JAX's order counts.
        swapped = [*batch, *free[0], *free[1]] != list(output)
    else:
        swapped = bool(free[0] and free[1]) and position[free[0][-1]] > position[free[1][0]]
    if swapped:
        (left, x), (right, y), free = (right, y), (left, x), free[::-1]
    result = contract(
        x, y, (tuple(left.index(c) for c in summed), tuple(right.index(c) for c in summed)),
        (tuple(left.index(c) for c in batch), tuple(right.index(c) for c in batch)),
        precision, preferred)
    order = [*batch, *free[0], *free[1]]
    return layout.transpose(result, tuple(order.index(c) for c in output))


def _squeezed(labels: str, x: Array, label: str) -> tuple[str, Array]:
    axis = labels.index(label)
    return labels.replace(label, ""), shapes.squeeze(x, axis)
