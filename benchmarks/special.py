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

mpmath: Any = (
    importlib.import_module("mpmath") if importlib.util.find_spec("mpmath") else None)

POINTS, WIDE_POINTS = 20_000, 400
R, RR = (-30.0, 30.0), (-4.0, 4.0)
P, PROB = (1e-3, 50.0), (1e-6, 1 - 1e-6)
# function -> the ranges of its arguments
DOMAINS: dict[str, list[tuple[float, float]]] = {
    "gammaln": [P], "loggamma": [P], "gamma": [(-8.0, 30.0)], "digamma": [P],
    "polygamma": [(0.0, 6.0), P], "zeta": [(1.1, 20.0), P], "multigammaln": [(4.0, 50.0)],
    "beta": [P, P], "betaln": [P, P], "poch": [P, (1e-3, 15.0)], "comb": [P, P],
    "factorial": [(0.0, 30.0)], "betainc": [P, P, PROB], "gammainc": [P, P], "gammaincc": [P, P],
    "erf": [RR], "erfc": [(-4.0, 9.0)], "erfinv": [(-0.999, 0.999)], "erfcx": [RR], "dawsn": [R],
    "ndtr": [(-12.0, 8.0)], "ndtri": [PROB], "log_ndtr": [R], "owens_t": [RR, RR],
    "fresnel": [(0.0, 5.0)], "expit": [R], "logit": [PROB], "entr": [P], "rel_entr": [P, P],
    "kl_div": [P, P], "xlogy": [P, P], "xlog1py": [P, P], "boxcox": [P, RR], "boxcox1p": [P, RR],
    "i0": [R], "i0e": [R], "i1": [R], "i1e": [R], "exp1": [P], "expi": [P], "expn": [(0.0, 9.0), P],
    "sici": [P], "spence": [P], "hyp1f1": [P[:1] + (9.0,), P[:1] + (9.0,), RR],
}
WHOLE = ("polygamma", "expn")      # of these the first argument is an integer
mp: dict[str, Any] = {} if mpmath is None else {
    "gammaln": mpmath.loggamma, "gamma": mpmath.gamma, "digamma": mpmath.digamma,
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


def points(name: str, dtype: Any) -> list[np.ndarray]:
    """Half of each argument uniform in its range, half of them log-uniform where it is positive."""
    rng = np.random.default_rng(7)
    count = POINTS if dtype == np.float32 else WIDE_POINTS
    args = []
    for low, high in DOMAINS[name]:
        x = rng.uniform(low, high, count)
        if low > 0 and high > 1:
            x[::2] = np.exp(rng.uniform(np.log(low), np.log(high), len(x[::2])))
        args.append(x.astype(dtype))
    if name in WHOLE:
        args[0] = np.floor(args[0]).astype(np.int32)
    return [np.maximum(*args), np.minimum(*args)] if name == "comb" else args


def truth(name: str, args: list[np.ndarray]) -> Any:
    if args[-1].dtype == np.float32:
        extra = (2,) if name == "multigammaln" else ()
        function = getattr(scipy.special, {"digamma": "psi"}.get(name, name))
        wide = [x.astype(np.float64) if x.dtype.kind == "f" else x for x in args]
        value = function(*wide, *extra)
        return np.asarray(value[0] if isinstance(value, tuple) else value)
    if name not in mp:
        return None
    return [mp[name](*map(mpmath.mpf, row)) for row in zip(*(x.tolist() for x in args))]


def off(library: Any, name: str, args: list[np.ndarray], true: Any) -> float:
    """The greatest distance in ulp; results outside of the normal numbers do not count."""
    dtype = args[-1].dtype
    extra = (2,) if name == "multigammaln" else ()
    with library.enable_x64(dtype == np.float64):
        value = library.jit(lambda *xs: getattr(library.scipy.special, name)(*xs, *extra))(*args)
        value = np.asarray(value[0] if isinstance(value, tuple) else value)
    worst, info = 0.0, np.finfo(dtype)
    for ours, real in zip(value.tolist(), true):
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
    for name in sys.argv[1:] or DOMAINS:
        row = [f"`{name}`"]
        for dtype in (np.float32, np.float64):
            args = points(name, dtype)
            with np.errstate(all="ignore"):
                true = truth(name, args)
            row += ["", ""] if true is None else [
                shown(off(library, name, args, true)) for library in (maxjax, jax)]
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
