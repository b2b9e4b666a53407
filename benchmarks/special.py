"""How many ulp each function of ``scipy.special`` is off, in maxjax and in JAX.

``python -m benchmarks.special`` prints the table of docs/special.md. The truth of float32 is
SciPy's float64 value; that of float64 is mpmath's, for the functions it has, where it is installed.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import jax
import jax.scipy.special
import numpy as np
import scipy.special

import maxjax
from tests.support.elementwise import SPECIAL, Operation

mpmath: Any = (
    importlib.import_module("mpmath") if importlib.util.find_spec("mpmath") else None)

POINTS, WIDE_POINTS = 20_000, 400
FUNCTIONS = {name: row for name, row in SPECIAL.items() if row.ranges}
mp: dict[str, Any] = {} if mpmath is None else {
    "gammaln": lambda x: mpmath.loggamma(x).real, "gamma": mpmath.gamma, "digamma": mpmath.digamma,
    "beta": mpmath.beta, "poch": mpmath.rf, "comb": mpmath.binomial, "factorial": mpmath.factorial,
    "betaln": lambda a, b: mpmath.log(mpmath.beta(a, b)), "erf": mpmath.erf, "erfc": mpmath.erfc,
    "erfinv": mpmath.erfinv, "ndtr": mpmath.ncdf, "expit": mpmath.sigmoid,
    "log_ndtr": lambda x: mpmath.log1p(-mpmath.ncdf(-x)) if x > 0 else mpmath.log(mpmath.ncdf(x)),
    "logit": lambda p: mpmath.log(p / (1 - p)), "entr": lambda x: -x * mpmath.log(x),
    "rel_entr": lambda p, q: p * mpmath.log(p / q), "xlogy": lambda x, y: x * mpmath.log(y),
    "kl_div": lambda p, q: p * mpmath.log(p / q) - p + q,
    "xlog1py": lambda x, y: x * mpmath.log1p(y), "i0": lambda x: mpmath.besseli(0, x),
    "boxcox": lambda x, k: (x ** k - 1) / k, "boxcox1p": lambda x, k: ((1 + x) ** k - 1) / k,
    "i1": lambda x: mpmath.besseli(1, x), "exp1": mpmath.e1, "expi": mpmath.ei,
}
if mpmath is not None:
    mpmath.mp.dps = 60
    mp["expit"] = lambda x: 1 / (1 + mpmath.exp(-x))


def operands(row: Operation, dtype: Any) -> list[np.ndarray]:
    """Points of all of the row's ranges."""
    count = POINTS if dtype == np.float32 else WIDE_POINTS
    return [np.concatenate(parts) if parts[0].dtype == np.int32
            else np.concatenate(parts).astype(dtype)
            for parts in zip(*row.measured(count // len(row.ranges)))]


def leaves(value: Any) -> list[np.ndarray]:
    return [np.asarray(part) for part in (value if isinstance(value, tuple) else (value,))]


def truth(row: Operation, args: list[np.ndarray]) -> list[Any] | None:
    """The results, of operands of float32 in float64, else by mpmath if that has the function."""
    if args[-1].dtype == np.float32:
        wide = [x.astype(np.float64) if x.dtype.kind == "f" else x for x in args]
        return leaves(getattr(scipy.special, row.name)(*wide, *row.static))
    if row.name not in mp:
        return None
    return [[mp[row.name](*map(mpmath.mpf, point)) for point in zip(*(x.tolist() for x in args))]]


def off(library: Any, row: Operation, args: list[np.ndarray], true: list[Any]) -> float:
    """The greatest distance in ulp; results outside of the normal numbers do not count."""
    dtype = args[-1].dtype
    with library.enable_x64(dtype == np.float64):
        function = getattr(library.scipy.special, row.name)
        results = leaves(library.jit(lambda *xs: function(*xs, *row.static))(*args))
    worst, info = 0.0, np.finfo(dtype)
    for result, exact in zip(results, true, strict=True):
        for ours, real in zip(result.tolist(), exact, strict=True):
            size = abs(float(real))
            if info.tiny <= size <= info.max:
                ulp = 2.0 ** (np.floor(np.log2(size)) - info.nmant)
                distance = abs(float(real - ours)) / ulp
                worst = max(worst, distance if distance == distance else np.inf)
    return worst


def shown(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:.3g}"


def main() -> None:
    print("| function | float32 | JAX | float64 | JAX |\n| --- | --- | --- | --- | --- |")
    for name in sys.argv[1:] or FUNCTIONS:
        row, cells = FUNCTIONS[name], [f"`{name}`"]
        for dtype in (np.float32, np.float64):
            args = operands(row, dtype)
            with np.errstate(all="ignore"):
                true = truth(row, args)
            cells += ["", ""] if true is None else [
                shown(off(library, row, args, true)) for library in (maxjax, jax)]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
