"""The operations that lowerings use: what a backend defines, on values of its own.

Those without a body each backend has; type checkers name what one lacks. The others some have: a
lowering that uses one where it is missing has failed, as one that raises ``LoweringError``.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.control_flow import Structure
from maxjax._ir.typing import DType, StaticScalar

if TYPE_CHECKING:
    from maxjax._max.host_step import Called
    from maxjax._primitives import fourier

# What stands for an array while a program is lowered: a node, a value of a graph, a name in a text.
V = TypeVar("V")


class LoweringError(Exception):
    """An equation could not be lowered."""


class Operations(abc.ABC, Generic[V]):
    """What lowerings compose.

    Attributes:
      selects_in_windows: whether ``sliding`` has kernels that select an element of each window.
    """

    selects_in_windows = True

    def _lacks(self, operation: str) -> NoReturn:
        raise LoweringError(f"the {type(self).__name__} has no operation {operation}")

    # --- what is known of a value -----------------------------------------------------------------
    @abc.abstractmethod
    def shape(self, x: V) -> tuple[int, ...]:
        """Its sizes."""

    @abc.abstractmethod
    def dtype(self, x: V) -> np.dtype:
        """Its dtype in memory."""

    @abc.abstractmethod
    def is_float(self, x: V) -> bool:
        """Whether its elements are real floating-point numbers."""

    def memory_dtype(self, dtype: DType) -> np.dtype:
        """The dtype that values of a dtype have here."""
        return dtypes.physical(dtype)

    def is_column_index(self, x: V) -> bool:
        """Whether each element of a matrix is known to be its column's number."""
        return False

    # --- constants --------------------------------------------------------------------------------
    @abc.abstractmethod
    def constant(self, value: np.ndarray) -> V:
        """A NumPy array."""

    @abc.abstractmethod
    def scalar(self, value: StaticScalar, like: V) -> V:
        """A number of the dtype of another value."""

    @abc.abstractmethod
    def full(self, shape: Sequence[int], value: StaticScalar, dtype: DType) -> V:
        """An array of one number."""

    @abc.abstractmethod
    def full_like(self, x: V, value: StaticScalar) -> V:
        """An array of one number, of the shape and dtype of another."""

    @abc.abstractmethod
    def iota(self, dtype: DType, shape: Sequence[int], dimension: int) -> V:
        """Each element is its position along a dimension."""

    # --- elementwise ------------------------------------------------------------------------------
    @abc.abstractmethod
    def native(self, name: str, *xs: V) -> V:
        """The backend's own operation of that name, or a better kernel of ours."""

    @abc.abstractmethod
    def kernel(self, name: str, *xs: V, out_dtype: DType | None = None) -> V:
        """Our kernel of that name; its result is of the operands' dtype if nothing is said."""

    def custom(self, source: str, name: str, dtype: DType, *xs: V) -> V:
        """An elementwise function of the user's: ``name``, defined by a Mojo text."""
        self._lacks("custom")

    def multiply_add(self, x: V, y: V, z: V) -> V:
        """``x * y + z``; a backend may round once."""
        return self.native("add", self.native("mul", x, y), z)

    @abc.abstractmethod
    def select(self, which: V, cases: Sequence[V]) -> V:
        """Each element from the case that ``which``, of booleans or int32, numbers."""

    @abc.abstractmethod
    def convert(self, x: V, dtype: DType) -> V:
        """The elements as those of another dtype."""

    @abc.abstractmethod
    def bitcast(self, x: V, dtype: DType) -> V:
        """The bits as a dtype: a narrower one adds a last dimension, a wider one takes it away."""

    def part(self, x: V, number: int) -> V:
        """The real (0) or the imaginary (1) parts of complex numbers."""
        self._lacks("part")

    def pair(self, x: V, y: V) -> V:
        """Complex numbers of their parts."""
        self._lacks("pair")

    # --- shapes -----------------------------------------------------------------------------------
    @abc.abstractmethod
    def reshape(self, x: V, shape: Sequence[int]) -> V:
        """The same elements in row-major order."""

    @abc.abstractmethod
    def broadcast(self, x: V, shape: Sequence[int], dims: Sequence[int]) -> V:
        """Repeated along the dimensions of ``shape`` that ``dims`` does not name; it names where
        each dimension of ``x`` is."""

    @abc.abstractmethod
    def transpose(self, x: V, permutation: Sequence[int]) -> V:
        """Dimension i of the result is dimension ``permutation[i]`` of ``x``."""

    @abc.abstractmethod
    def concatenate(self, xs: Sequence[V], axis: int) -> V:
        """Joined along an axis."""

    @abc.abstractmethod
    def slice(self, x: V, starts: Sequence[int], limits: Sequence[int],
              strides: Sequence[int] | None) -> V:
        """The part between positions that are known."""

    @abc.abstractmethod
    def pad(self, x: V, value: V, config: Sequence[tuple[int, int, int]]) -> V:
        """With elements ahead, behind and between those of each dimension; negative ones are cut
        off."""

    @abc.abstractmethod
    def reverse(self, x: V, dimensions: Sequence[int]) -> V:
        """In the opposite order along dimensions."""

    # --- reductions -------------------------------------------------------------------------------
    @abc.abstractmethod
    def reduce(self, kind: str, x: V, axes: Sequence[int]) -> V:
        """``sum``, ``prod``, ``max``, ``min``, ``and``, ``or`` or ``xor`` along axes."""

    @abc.abstractmethod
    def argreduce(self, kind: str, x: V, axis: int, dtype: DType) -> V:
        """The first position of the greatest (``max``) or least (``min``) element, or of a NaN."""

    @abc.abstractmethod
    def cumulative(self, kind: str, x: V, axis: int, reverse: bool) -> V:
        """``sum``, ``prod``, ``max`` or ``min`` of all up to each element, or from it."""

    # --- products and windows ---------------------------------------------------------------------
    @abc.abstractmethod
    def matmul(self, a: V, b: V, transpose_a: bool = False, transpose_b: bool = False) -> V:
        """The product of two matrices, or of two equal stacks of them along leading dimensions."""

    def matrices(self, kind: str, operands: Sequence[V], integers: Sequence[Any],
                 results: Sequence[tuple[Sequence[int], DType]]) -> list[V]:
        """A function of stacks of matrices (``mojo/pack/linalg.mojo``)."""
        self._lacks("matrices")

    def fourier(self, x: V, kind: fourier.Kind, n: int, axis: int, inverse: bool, scale: float
                ) -> V:
        """The Fourier transform of lines of ``n`` numbers along an axis, times a number; of real
        numbers, or to them, along the last one."""
        self._lacks("fourier")

    def sliding(self, kernel: str, operands: Sequence[V], shape: Sequence[int],
                window: Sequence[int], strides: Sequence[int], low: Sequence[int],
                window_dilation: Sequence[int], base_dilation: Sequence[int]) -> V:
        """``unfold``, ``window_<kind>`` or ``select_scatter_<comparison>``: windows of two sizes,
        over the middle of (outer, height, width, inner); ``shape`` is the result's."""
        self._lacks("sliding")

    def convolve(self, x: V, weights: V, result: Sequence[int], window: Sequence[int],
                 strides: Sequence[int], low: Sequence[int], window_dilation: Sequence[int]
                 ) -> V | None:
        """The windows of x (outer, height, width, inner), each ``window`` high and wide, times
        ``weights`` (K inner, outputs): (outer, rows, columns, outputs); None where unfolding and
        a product are to be used."""
        return None

    # --- indexing ---------------------------------------------------------------------------------
    def read_window(self, x: V, starts: Sequence[V], shape: Sequence[int]) -> V | None:
        """The part of ``x`` of a shape that begins at ``starts``, or as near as it fits; None where
        a gather is to be used."""
        return None

    def write_window(self, x: V, update: V, starts: Sequence[V]) -> V | None:
        """``x`` with an update in the place that ``read_window`` reads; None where a scatter is to
        be used."""
        return None

    @abc.abstractmethod
    def gather_rows(self, x: V, indices: V | np.ndarray, axis: int) -> V:
        """Slices of ``x`` along ``axis`` at indices that are in bounds."""

    @abc.abstractmethod
    def scatter_rows(self, kind: str, x: V, rows: V, updates: V) -> V:
        """``x`` (rows, width) with updates (count, width) combined in at int32 positions (count,).

        ``kind``: set, add, mul, min or max. Updates of equal positions apply in order; an
        out-of-bounds position drops its update.
        """

    def permutation_of_exchanges(self, places: V, count: int) -> V:
        """The order that results from exchanging element i with that at place i, one by one."""
        self._lacks("permutation_of_exchanges")

    # --- sorting ----------------------------------------------------------------------------------
    @abc.abstractmethod
    def sort_permutation(self, x: V) -> V:
        """The int32 permutation that sorts each row of a matrix, stably."""

    def sort_values(self, x: V) -> V | None:
        """Each row of a matrix sorted; None where ``sort_permutation`` must be used."""
        return None

    def first_of_sorted(self, x: V, count: int) -> V:
        """The first ``count`` columns of the permutation that sorts each row, of integers."""
        return self.slice(self.sort_permutation(x), (0, 0), (self.shape(x)[0], count), None)

    # --- random numbers ---------------------------------------------------------------------------
    @abc.abstractmethod
    def threefry(self, key0: V, key1: V, counter0: V, counter1: V) -> list[V]:
        """threefry2x32 of uint32 vectors; the keys' have size 1 or the counters'."""

    def gamma_cubes(self, keys: V, alpha: V) -> list[V]:
        """For each key of a vector what a gamma variate is made of: a cube, a uniform number."""
        self._lacks("gamma_cubes")

    def poisson_counts(self, keys: V, rates: V) -> list[V]:
        """For each rate, a count by Knuth's method and one by rejection."""
        self._lacks("poisson_counts")

    # --- control flow and the host ----------------------------------------------------------------
    def control_flow(self, name: str, flow: Structure, operands: Sequence[V]) -> list[V]:
        """A loop or a choice; ``flow`` describes its operands and results."""
        self._lacks("control_flow")

    def called_on_host(self, called: Called, operands: Sequence[V],
                       results: Sequence[tuple[tuple[int, ...], np.dtype]], reason: str) -> list[V]:
        """What the host, or the pack in its place, writes to results."""
        self._lacks("called_on_host")
