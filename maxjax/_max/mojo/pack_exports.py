"""The exports of the pack that are one generic Mojo function for several dtypes: a table.

Each takes the slots and the integers of a call. What the generic functions do, and which operands
and integers they have, is at the head of the files of ``pack/``; exports of any other kind stand
there by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from maxjax._base import dtypes
from maxjax._base.dtypes import name_of
from maxjax._max.mojo.emitter import BOOL, kind_name, stored_name
from maxjax._max.mojo.vector_functions import signed

_NUMBERS = (*dtypes.FLOATS, *dtypes.INTS)
_ALL = (*_NUMBERS, BOOL)


def _as_bits(dtype: np.dtype) -> str:
    return f"DType.uint{8 * dtype.itemsize}"


# The parameters of generic functions, by what stands for a dtype in the names of exports.
_OWN = {name_of(dtype): stored_name(dtype) for dtype in _ALL}
_OWN_NUMBERS = {name_of(dtype): kind_name(dtype) for dtype in _NUMBERS}
_OWN_FLOATS = {name_of(dtype): kind_name(dtype) for dtype in dtypes.FLOATS}
_OWN_INTEGERS = {name_of(dtype): kind_name(dtype) for dtype in dtypes.INTS}
# What wraps around is the same bits with and without a sign.
_WRAPPING = {name_of(dtype): kind_name(signed(dtype)) for dtype in _NUMBERS}
# Extremes: of integers with a sign, into which the others are turned, as bool is.
_ORDERED = {name: f"{kind}, {_WRAPPING[name]}" for name, kind in _OWN_NUMBERS.items()}
_EXTREMES = {**_ORDERED, "bool": "DType.uint8, DType.int8"}
# What is only moved.
_MOVED = {name_of(dtype): _as_bits(dtype) for dtype in _ALL}
_BITS = {f"{8 * dtype.itemsize}": kind_name(dtype) for dtype in dtypes.UNSIGNED}
# Elements of matrices: words, and how many; some need to know what real numbers are.
_MATRICES = {"32": "DType.uint32, 1", "64": "DType.uint64, 1", "128": "DType.uint64, 2"}
_REAL = {"32": "DType.float32", "64": "DType.float64", "128": "DType.float64"}
_MATRICES_AND_REAL = {bits: f"{words}, {_REAL[bits]}" for bits, words in _MATRICES.items()}
# The dtypes of matrix products: of the operands, and of the accumulator.
_GATHERED = {**{name: (kind, kind) for name, kind in _WRAPPING.items()},
             **{name: (_WRAPPING[name], "DType.float32") for name in ("float16", "bfloat16")},
             **{name: (_WRAPPING[name], "DType.int16") for name in ("int8", "uint8")}}
_PRODUCTS = {name: ", ".join(kinds) for name, kinds in _GATHERED.items()}

_REDUCERS = {"add": "Summing", "mul": "Multiplying", "min": "Minimizing", "max": "Maximizing"}


class Family(NamedTuple):
    """Exports that are one generic function.

    Attributes:
      name: theirs, with ``{}`` in the place of what tells dtypes apart.
      function: the generic function, with ``{}`` in the place of a dtype's parameters.
      parameters: those, by what stands in names.
    """

    name: str
    function: str
    parameters: Mapping[str, str]

    @property
    def calls(self) -> dict[str, str]:
        """What each export calls, by the exports' names."""
        return {self.name.format(kind): self.function.format(parameters)
                for kind, parameters in self.parameters.items()}


def _own(*names: str) -> dict[str, str]:
    return {name: _OWN[name] for name in names}


def _lapack(name: str, routine: str, numbers: str, parameters: Mapping[str, str] = _MATRICES
            ) -> Family:
    """A routine for each matrix of a stack; ``numbers`` are the further parameters of ``run`` of
    ``kernels/stacks.mojo``."""
    return Family(f"{name}_{{}}", f"run[{routine}[{{}}], {numbers}]", parameters)


# By the files that the generic functions are in.
FAMILIES: dict[str, tuple[Family, ...]] = {
    "cumulative": (
        Family("cumsum_{}", "accumulate[Summing, {}]", _WRAPPING),
        Family("cumprod_{}", "accumulate[Multiplying, {}]", _WRAPPING),
        Family("cummax_{}", "accumulate_extremes[True, {}]", _EXTREMES),
        Family("cummin_{}", "accumulate_extremes[False, {}]", _EXTREMES),
        Family("cumlogsumexp_{}", "accumulate[AddingExponentials, {}]", _OWN_FLOATS),
    ),
    "elementwise": (
        Family("spacing_{}", "apply[Spacing, {}]", _own("float32")),
        Family("hypot_{}", "apply_to_pairs[Hypot, {}]", _own("float32")),
        Family("logaddexp_{}", "apply_to_pairs[Logaddexp, {}]", _own("float32")),
        Family("logaddexp2_{}", "apply_to_pairs[Logaddexp2, {}]", _own("float32")),
        Family("integer_power_{}", "apply_to_pairs[IntegerPower, {}]", _own("int32", "uint32")),
        Family("select_{}", "select[{}]", _BITS),
    ),
    "fourier": (Family("fourier_{}", "transform[{}]", _own("float32", "float64")),),
    "indexing": (
        Family("gather_rows_{}", "gather_rows[{}]", _BITS),
        Family("scatter_rows_set_{}", "scatter_rows[Replacing, {}]", _MOVED),
        *(Family(f"scatter_rows_{name}_{{}}", f"scatter_rows[{_REDUCERS[name]}, {{}}]", parameters)
          for name, parameters in {
              "add": _WRAPPING, "mul": _WRAPPING, "min": _OWN, "max": _OWN}.items()),
    ),
    "linalg": (
        _lapack("getrf", "Lu", "4, 4, 1, 2"),
        _lapack("potrf", "Cholesky", "2, 4, 1, 1"),
        _lapack("geqrf", "Reflections", "3, 5, 1, 2"),
        _lapack("orgqr", "Product", "3, 6, 1, 2"),
        _lapack("ormqr", "Reflected", "4, 11, 1, 2"),
        _lapack("trsm", "Triangular", "3, 10, 1, 2", _MATRICES_AND_REAL),
        _lapack("gesv", "Solve", "3, 7, 1, 1", _MATRICES_AND_REAL),
        _lapack("gtsv", "Tridiagonal", "5, 5, 1, 2, True"),
    ),
    "matmul": (
        Family("convolve_{}", "convolve[{}]", _own("float32", "float64")),
        Family("matmul_{}", "matmul[{}]", _PRODUCTS),
    ),
    "movement": tuple(Family(f"{name}_{{}}", f"{name}[{{}}]", _BITS) for name in (
        "copy", "fill", "transpose", "read_window", "write_window")),
    "ordering": (
        Family("argsort_{}", "argsort[{}]", _OWN),
        Family("sort_{}", "sort[{}]", _OWN),
        Family("argmax_{}", "position[True, {}]", _EXTREMES),
        Family("argmin_{}", "position[False, {}]", _EXTREMES),
        Family("argsort_few_{}", "argsort_few[{}]", _OWN_INTEGERS),
    ),
    "searching": (
        Family("searchsorted_{}", "search[{}]", _own("float32", "float64", "int32")),),
    "spectra": (
        _lapack("syevd", "Hermitian", "3, 9, 1, 1"),
        _lapack("gesdd", "Singular", "4, 9, 1, 2"),
        _lapack("gesdd_values", "Singular", "2, 9, 1, 2"),
        _lapack("geev", "General", "3, 8, 1, 1"),
        _lapack("geev_values", "General", "2, 8, 1, 1"),
        _lapack("geev_both", "General", "4, 8, 1, 1"),
        _lapack("gees", "Schur", "3, 6, 1, 1"),
        _lapack("gees_values", "Schur", "2, 6, 1, 1"),
        _lapack("gehrd", "Hessenberg", "3, 5, 1, 1"),
        _lapack("sytrd", "ToTridiagonal", "5, 7, 1, 1"),
    ),
    "windows": (
        Family("unfold_{}", "unfold[{}]", _BITS),
        Family("window_sum_{}", "window[Summing, True, {}]", _WRAPPING),
        Family("window_max_{}", "window_extreme[True, {}]", _ORDERED),
        Family("window_min_{}", "window_extreme[False, {}]", _ORDERED),
        Family("select_scatter_ge_{}", "select_scatter[True, {}]", _ORDERED),
        Family("select_scatter_le_{}", "select_scatter[False, {}]", _ORDERED),
    ),
}


def text(unit: str) -> str:
    """The exports of a file of the pack, to be written behind it."""
    return "".join(
        f'\n\n@export("{name}")\ndef {name}(slots: Slots, args: Args) abi("C"):\n'
        f"    {function}(slots, args)\n"
        for family in FAMILIES.get(unit, ()) for name, function in family.calls.items())
