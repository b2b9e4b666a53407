"""Native functions that the NumPy rules call for large operands, where there are any.

The runtime installs a provider of them; without one, and wherever `find` gives None, NumPy
computes. Results are the same: to the bit, but for the rounding of sums, products and
transcendental functions of floats, and the sign of a zero that is the extreme of zeros of both
signs.

When a native function is worth its call (``LEAST``), on one thread of a processor with AVX-512.
Elementwise primitives say it in their blocks; what was measured of them stands here too.
The ratios are NumPy's best time over the native one's, of the whole rule of a primitive:

    function                  dtypes                           from       ratio      at 1e6
    sort                      8, 16 bits; not bfloat16         4,096 *    2.3 - 3.8  6 - 8
    argsort, in a sort of     float16, float64                 4,096 *    1.5 - 1.8  1.5 - 2.2
      two operands            bool, int64, uint64              16,384 *   1.5 - 1.9  1.7
                              bfloat16                         65,536 *   1.6        1.8
    cumsum, cumprod           8, 16-bit integers, float16      16,384     1.9 - 2.6  2.7 - 6
                              float32, float64                 16,384     2.2 - 2.5  3.7 - 10
    cummax, cummin            8 to 32 bits, float64            16,384     1.4 - 2.7  2.3 - 8
    the same, not last axis   all                              65,536     1.8 - 20   1.5 - 50
    top_k                     all                              1,024      1 - 1.8    7
    argmax, argmin            float16                          16,384     2.8        9
      rows up to 128          all                              32,768                1.9 - 14
      not last axis           integers, float16, float32       65,536     3.2 - 7    1.4 - 21
    scatter_rows, combining   all, rows wider than one         16,384     1.7 - 4    3.5 - 28
      rows of one             float16, bfloat16                16,384     2.0 - 2.9  2.2 - 4.4
    scatter_rows, setting     all, 2 to 8 wide                 65,536     1.5 - 8    2.3 - 34
    matmul                    int32, uint32                    262,144 +  1.6 - 7    1.7 - 100
                              uint16                           524,288 +  1.6 - 3
      beyond 2**53            int64, uint64                    262,144 +  1.7 - 4    6 - 30
    copy, last axis moved     up to 32 bits                    65,536     1.5 - 3.7  1.6 - 6
    threefry2x32              uint32                           1,024      2.1        2.9 - 6
    gamma, Poisson variates   float32                          1          130 - 150  2.5 - 13
    acosh, asinh, atanh, cosh float32                          16,384 #   8 - 30     20 - 60
      exp2, expm1, log1p, sinh
      tanh
    exp, log, logistic, tan   float32                          16,384 #   4 - 9      5 - 29
      pow
    sin, cos                  float32                          4,096 #    5          23
    bessel_i0e, bessel_i1e    float32                          1,024      3.4 - 3.9  20 - 80
    erf_inv                   float32                          1,024      13         15
    erfcx                     float32                          1,024      3          50
    log_ndtr, ndtri           float32                          4,096      1.3 - 2    10 - 20
    erf, erfc                 float32                          16,384 #   2 - 8      11 - 15
    rem                       float32                          16,384 #   1.6 - 2.8  3 - 10
    nextafter, hypot, frexp   float32                          16,384 #   2.3 - 4    9 - 40
      logaddexp, logaddexp2
    spacing                   float32                          65,536 #   1.3 - 2.5  2.2 - 3.6
    digamma, lgamma           float32                          65,536 #   1.2 - 1.6  1.2 - 1.6
    integer_power             int32, uint32                    16,384 #   7          40 - 300
    LAPACK's factorizations   float32, float64, complex        1,024      1 - 9      1.3 - 15
    searchsorted              int32, float32, float64          16,384 #   7          12
    select                    8, 16 bits                       65,536 #   10         25 - 100
                              32, 64 bits                      65,536 #   1.6 - 2    3

    *  elements of a row      +  products      #  on a processor with AVX2; where NumPy has
    routines for AVX-512, elementary functions 1.1 - 2.4 times and 1.4 - 7 times

Left to NumPy, which is as fast or faster: sorting 32 and 64 bits (it has vector code for that);
argsort of the other dtypes; cumulative sums of 32 and 64-bit integers along the last axis;
positions of other extremes; gathering rows; combining and setting single elements; copies of
64 bits; products of float16 and bfloat16 (by BLAS in float32), of bytes, and of 64-bit integers
that float64 holds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

from maxjax._base import config, dtypes

# (operands, results last; then the integers that follow them; elements that it handles)
Function = Callable[[Sequence[np.ndarray], Sequence[int], int], None]

# A large operand, for which more than one thread may be worth it.
PARALLEL = 1 << 17

# No operand with fewer elements is ever worth it: what a rule compares first.
FEWEST = 1024
# But of samplers by rejection, whose NumPy rules loop over all of them.
SAMPLERS = ("gamma_cubes", "poisson_counts")

# The functions of stacks of matrices, which exist by the size of an element.
SPECTRA = ("syevd", "gesdd", "gesdd_values", "geev", "geev_values", "geev_both", "gees",
           "gees_values", "gehrd", "sytrd")
MATRICES = ("getrf", "potrf", "geqrf", "orgqr", "ormqr", "trsm", "gesv", "gtsv", *SPECTRA)

_ALL = ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
        "float16 bfloat16 float32 float64")
_SHORT = "int8 int16 uint8 uint16"


def _from(least: int, names: str) -> dict[np.dtype, int]:
    return {np.dtype(getattr(dtypes, "bool_" if name == "bool" else name)): least
            for name in names.split()}


# The least size from which a function is used. A second word tells its layouts apart. Elementwise
# primitives add the functions that are their kernels (``offer``).
LEAST: dict[str, dict[np.dtype, int]] = {
    "sort": _from(4096, f"{_SHORT} float16") | _from(16384, "bool"),
    "argsort": _from(4096, "float16 float64")
    | _from(16384, "bool int64 uint64") | _from(65536, "bfloat16"),
    "argsort_few": _from(1024, f"{_SHORT} int32 int64 uint32 uint64"),
    **{name: _from(16384, f"{_SHORT} float16 float32 float64") for name in ("cumsum", "cumprod")},
    **{name: _from(16384, f"{_SHORT} int32 uint32 float16 float32 float64")
       for name in ("cummax", "cummin")},
    **{f"{name} columns": _from(65536, _ALL) for name in ("cummax", "cummin")},
    **{f"{name} columns": _from(65536, _ALL.removeprefix("bool ")) for name in (
        "cumsum", "cumprod")},
    "cumlogsumexp": {},
    "cumlogsumexp columns": _from(65536, "float16 bfloat16 float32 float64"),
    **{name: _from(16384, "float16") for name in ("argmax", "argmin")},
    **{f"{name} columns": _from(65536, f"{_SHORT} int32 uint32 int64 float16 float32")
       for name in ("argmax", "argmin")},
    **{f"{name} short": _from(32768, _ALL) for name in ("argmax", "argmin")},
    **{f"scatter_rows_{kind}": _from(16384, _ALL.removeprefix("bool "))
       for kind in ("add", "mul", "min", "max")},
    **{f"scatter_rows_{kind} elements": _from(16384, "float16 bfloat16")
       for kind in ("add", "mul", "min", "max")},
    "scatter_rows_set": _from(65536, _ALL.removeprefix("bool ")),
    "matmul": _from(262144, "int32 uint32") | _from(524288, "uint16"),
    "matmul wide": _from(262144, "int64 uint64"),
    "copy": _from(65536, f"bool {_SHORT} int32 uint32 float16 bfloat16 float32"),
    "threefry2x32": _from(1024, "uint32"),
    **{name: _from(1, "float32") for name in SAMPLERS},
    "select": _from(65536, _ALL),
    "searchsorted": _from(16384, "int32 float32 float64"),
    **{name: _from(16384, "float32") for name in ("isclose", "reduce_precision")},
    **{name: _from(1024, "float32 float64 complex64 complex128") for name in MATRICES},
    "integer_power": _from(16384, "int32 uint32"),
    **{name: _from(16384, "float32") for name in ("frexp", "hypot", "logaddexp", "logaddexp2")},
    "spacing": _from(65536, "float32"),
    **{name: _from(16384, "complex64") for name in ("abs", "exp")},
}
# How many elements must lie side by side for another axis than the last, for cumulative
# functions and for positions of extremes.
COLUMNS = 16
WIDE_COLUMNS = 256
# Rows up to this length have their extremes found several rows at a time.
SHORT_ROWS = 128
# The widths of rows that are set faster: others NumPy copies as well, or better.
SET_WIDTHS = range(2, 9)

_provider: Callable[[str], Function | None] | None = None
_functions: dict[str, dict[np.dtype, Function]] = {kind: {} for kind in LEAST}
_generation = 0     # of the options


class _Allowed(threading.local):
    generation = -1     # for which native functions are known to be allowed in this thread


_allowed = _Allowed()


def offer(kind: str, dtype: np.dtype, least: int) -> None:
    """Says that there is a function of that kind and dtype, and from which size it is used."""
    LEAST.setdefault(kind, {})[dtype] = least
    _functions.setdefault(kind, {})


def install(provider: Callable[[str], Function | None] | None) -> None:
    """Sets who knows native functions by their names; None: nobody."""
    global _provider
    _provider = provider
    for known in _functions.values():
        known.clear()


def find(kind: str, dtype: np.dtype, size: int) -> Function | None:
    """The native function for operands of that dtype and size, or None: NumPy is to compute.

    All arrays that it is given lie row by row in memory, but where it takes strides.
    """
    least = LEAST[kind].get(dtype)
    if least is None or size < least:
        return None
    if _allowed.generation != _generation and not _is_allowed():
        return None
    return _functions[kind].get(dtype) or _ask(kind, dtype)


def _is_allowed() -> bool:
    generation = _generation
    allowed = config.compile_mode.value != "never" and not config.check_tiers.value
    if allowed:
        _allowed.generation = generation
    return allowed


def _ask(kind: str, dtype: np.dtype) -> Function | None:
    if _provider is None:
        return None
    try:
        function = _provider(function_name(kind, dtype))
    except Exception:       # NumPy can do without, whatever has gone wrong
        install(None)
        return None
    if function is not None:
        _functions[kind][dtype] = function
    return function


def function_name(kind: str, dtype: np.dtype) -> str:
    """What the provider knows a function by."""
    name = kind.partition(" ")[0]
    if name in ("copy", "select", *MATRICES):
        return f"{name}_{8 * dtype.itemsize}"
    return name if name == "threefry2x32" else f"{name}_{dtype.name}"


def _advance_generation() -> None:
    global _generation
    _generation += 1


for _option in (config.compile_mode, config.check_tiers):
    _option.on_change.append(_advance_generation)
