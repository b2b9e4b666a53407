"""The base class of sparse arrays."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._ir.dimensions import size_index
from maxjax._ir.trace import Array, Tracer


def shape_of_rank(kind: str, shape: tuple[int, ...], before: int, now: int,
                  children: Sequence[Any]) -> tuple[int, ...]:
    """The shape of an array whose buffers have lost, or gained, a batch axis, as under ``vmap``.

    Args:
      before, now: the numbers of batch dimensions.

    Raises:
      ValueError: there is no batch axis.
    """
    if now < 0:
        raise ValueError(f"Cannot map in_axis={before} for {kind} array with n_batch={before}. "
                         f"in_axes for batched {kind} operations must correspond to a batch "
                         "dimension.")
    sizes = np.broadcast_shapes(*[child.shape[:now] for child in children])
    old, rest = shape[:before], shape[before:]
    if now == before - 1:     # the axis that is gone; a size of 1 may stand for more
        for axis in range(before):
            kept = old[:axis] + old[axis + 1:]
            if all(size in (1, whole) for size, whole in zip(sizes, kept, strict=True)):
                return kept + rest
    return (*sizes, *rest)


def check_mapped_axis(array: Any, axis: int, is_result: bool) -> None:
    """Refuses an axis of ``vmap`` that is no batch dimension of a BCOO or BCSR array.

    Raises:
      ValueError: it is none.
    """
    kind, count = type(array).__name__, array.n_batch
    if is_result and not 0 <= axis <= count:
        raise ValueError(f"{kind}: cannot add out_axis={axis} for {kind} array with "
                         f"n_batch={count}. {kind} batch axes must be a contiguous block of "
                         "leading dimensions.")
    if not is_result and not 0 <= axis < count:
        noun = "batched" if kind == "BCSR" else "batch"
        raise ValueError(f"Cannot map in_axis={axis} for {kind} array with n_batch={count}. "
                         f"in_axes for batched {kind} operations must correspond to a {noun} "
                         "dimension.")


class JAXSparse(abc.ABC):
    """The base class of sparse arrays.

    Attributes:
      data: the stored values.
      shape: the shape of the array they represent.
      nse: how many elements are stored, padding included.
      dtype: of the values.

    >>> from maxjax.experimental import sparse
    >>> issubclass(sparse.BCOO, sparse.JAXSparse)
    True
    """

    data: Any
    shape: tuple[int, ...]
    nse: Any
    dtype: Any
    __hash__ = None      # type: ignore[assignment]
    # NumPy and the arrays' own operators defer ``dense @ sparse`` to this class.
    __array_priority__ = 100

    def __init__(self, args: tuple[Any, ...], *, shape: Sequence[int]):
        self.shape = tuple(map(size_index, shape))

    @property
    def size(self) -> int:
        """The number of elements of the array, zeros included."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """Its rank."""
        return len(self.shape)

    @property
    def T(self) -> Any:
        """The transpose."""
        return self.transpose()

    @property
    def _bufs(self) -> tuple[Any, ...]:
        """The arrays of which it is made."""
        return tuple(self.tree_flatten()[0])

    @abc.abstractmethod
    def tree_flatten(self) -> tuple[Any, Any]:
        """Its arrays, and what else it is made of."""

    @classmethod
    @abc.abstractmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> Any:
        """From what ``tree_flatten`` gives."""

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The array with its axes in another order, where the format has it."""
        return self._refuse("transpose")

    @abc.abstractmethod
    def todense(self) -> Array:
        """The dense array."""

    def block_until_ready(self) -> Any:
        """Waits until the values are computed."""
        for buffer in self._bufs:
            buffer.block_until_ready()
        return self

    def _refuse(self, name: str) -> Any:
        raise NotImplementedError(f"{type(self)}.{name}")

    def sum(self, axis: Any = None) -> Any:
        """The sums along axes, where the format has them."""
        return self._refuse("sum")

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            text = (f"{name}({self.dtype}{list(self.shape)}, nse={self.nse}"
                    f"{self._layout_text()})")
        except (AttributeError, AssertionError, IndexError, TypeError, ValueError):
            return f"{name}(<invalid>)"
        return f"{type(self.data).__name__}[{text}]" if isinstance(self.data, Tracer) else text

    def _layout_text(self) -> str:
        return ""


def _refused(name: str) -> Any:
    def refuse(self: JAXSparse, *_: Any) -> Any:
        return self._refuse(name)
    return refuse


for _name in ("neg", "pos", "matmul", "rmatmul", "mul", "rmul", "add", "radd", "sub", "rsub",
              "truediv", "getitem"):
    setattr(JAXSparse, f"__{_name}__", _refused(f"__{_name}__"))
