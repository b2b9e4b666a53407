"""Every public function of jax.numpy and jax.lax with a simple signature, eagerly on a million
elements: which are more than three times slower than with JAX?

    python -m benchmarks.eager_million [--only NAME ...] [--limit 3] [--repeats 5]

Tier 0 alone, with the functions of the pack: no program is compiled. Each call ends when its result
is in NumPy's hands.
"""

from __future__ import annotations

import argparse
import operator
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
from rich.console import Console
from rich.table import Table

import maxjax._primitives.all  # noqa: F401  every primitive is registered
from maxjax._ir.primitive import registry
from tests.support.elementwise import TABLE as OPERATIONS

SIZE = 1_000_000
SIDE = 1_000

# Functions of one, two or three arrays of a million elements, by what the elements may be.
UNARY = """abs absolute angle arccos arcsin arcsinh arctan arctanh cbrt ceil conj cos cosh deg2rad
degrees exp exp2 expm1 fabs floor frexp i0 imag isfinite isinf isnan isneginf isposinf log log10
log1p log2 logical_not modf nan_to_num negative positive rad2deg radians real reciprocal rint round
sign signbit sin sinc sinh spacing sqrt square tan tanh trunc
all any argmax argmin average count_nonzero cumprod cumsum cumulative_prod cumulative_sum max mean
median min nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanprod nanstd
nansum nanvar prod ptp std sum var
argsort argwhere atleast_1d atleast_2d atleast_3d copy diff ediff1d flatnonzero flip gradient
histogram nonzero ones_like ravel sort sort_complex trapezoid unique unwrap zeros_like""".split()
BINARY = """add arctan2 array_equal copysign divide divmod equal float_power floor_divide fmax fmin
fmod greater greater_equal heaviside hypot isclose allclose less less_equal logaddexp logaddexp2
logical_and logical_or logical_xor maximum minimum multiply nextafter not_equal power remainder
subtract dot inner vdot append concatenate_pair stack_pair hstack_pair""".split()
OF_INTEGERS = """bitwise_and bitwise_or bitwise_xor gcd lcm left_shift right_shift floor_divide
remainder power""".split()
OF_ONE_INTEGER = "bitwise_count invert bincount abs sign sum max sort argsort cumsum".split()
MATRICES = """diagonal fliplr flipud matrix_transpose rot90 transpose tril triu trace cov""".split()
OF_FLOATS = [row for row in OPERATIONS if row.domain and row.primitives
             and np.dtype(np.float32) in (registry[row.primitives[0]].values.accepts or ())]
LAX_UNARY = [*(row.name for row in OF_FLOATS if row.module == "lax" and row.operands == 1),
             *"reciprocal cumsum_0 cummax_0 cumlogsumexp_0 sort top_k_8".split()]
LAX_BINARY = [row.name for row in OF_FLOATS if row.module == "lax" and row.operands == 2
              and row.tolerance != "iterative"]
SCIPY = [row.name for row in OF_FLOATS if row.module == "scipy.special" and row.kernel is not None]

_SPECIAL: dict[str, Callable[..., Any]] = {
    "concatenate_pair": lambda m, x, y: m.numpy.concatenate([x, y]),
    "stack_pair": lambda m, x, y: m.numpy.stack([x, y]),
    "hstack_pair": lambda m, x, y: m.numpy.hstack([x, y]),
    "cumsum_0": lambda m, x: m.lax.cumsum(x),
    "cummax_0": lambda m, x: m.lax.cummax(x),
    "cumlogsumexp_0": lambda m, x: m.lax.cumlogsumexp(x),
    "top_k_8": lambda m, x: m.lax.top_k(x, 8),
}
# Those with further arguments.
CALLS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "clip": lambda m, a: m.numpy.clip(a["x"], 0.3, 0.6),
    "where": lambda m, a: m.numpy.where(a["x"] > 0.5, a["x"], a["y"]),
    "select": lambda m, a: m.numpy.select([a["x"] > 0.5], [a["x"]], 0.0),
    "percentile": lambda m, a: m.numpy.percentile(a["x"], 30),
    "quantile": lambda m, a: m.numpy.quantile(a["x"], 0.3),
    "sum[axis=0]": lambda m, a: m.numpy.sum(a["matrix"], 0),
    "sum[axis=1]": lambda m, a: m.numpy.sum(a["matrix"], 1),
    "max[axis=0]": lambda m, a: m.numpy.max(a["matrix"], 0),
    "argmax[axis=0]": lambda m, a: m.numpy.argmax(a["matrix"], 0),
    "argmax[axis=1]": lambda m, a: m.numpy.argmax(a["matrix"], 1),
    "var[axis=1]": lambda m, a: m.numpy.var(a["matrix"], 1),
    "cumsum[axis=0]": lambda m, a: m.numpy.cumsum(a["matrix"], 0),
    "sort[axis=0]": lambda m, a: m.numpy.sort(a["matrix"], 0),
    "median[axis=1]": lambda m, a: m.numpy.median(a["matrix"], 1),
    "sum[bfloat16]": lambda m, a: m.numpy.sum(a["half"]),
    "add[bfloat16]": lambda m, a: m.numpy.add(a["half"], a["half"]),
    "exp[bfloat16]": lambda m, a: m.numpy.exp(a["half"]),
    "multiply[complex64]": lambda m, a: m.numpy.multiply(a["z"], a["z"]),
    "exp[complex64]": lambda m, a: m.numpy.exp(a["z"]),
    "abs[complex64]": lambda m, a: m.numpy.abs(a["z"]),
    "take": lambda m, a: m.numpy.take(a["x"], a["i"]),
    "getitem[slice]": lambda m, a: a["x"][10:-10:2],
    "getitem[mask]": lambda m, a: a["x"][np.asarray(a["x"]) > 0.5],
    "at.set": lambda m, a: a["x"].at[a["i"]].set(1.0),
    "at.add": lambda m, a: a["x"].at[a["i"]].add(1.0),
    "searchsorted": lambda m, a: m.numpy.searchsorted(a["ordered"], a["x"]),
    "interp": lambda m, a: m.numpy.interp(a["x"], a["ordered"][::1000], a["x"][::1000]),
    "roll": lambda m, a: m.numpy.roll(a["x"], 7),
    "tile": lambda m, a: m.numpy.tile(a["matrix"], (1, 2)),
    "repeat": lambda m, a: m.numpy.repeat(a["x"], 2),
    "pad": lambda m, a: m.numpy.pad(a["matrix"], 1),
    "reshape": lambda m, a: m.numpy.reshape(a["x"], (SIDE, SIDE)),
    "broadcast_to": lambda m, a: m.numpy.broadcast_to(a["x"], (2, SIZE)),
    "matmul": lambda m, a: m.numpy.matmul(a["matrix"], a["matrix"]),
    "einsum": lambda m, a: m.numpy.einsum("ij,ij->i", a["matrix"], a["matrix"]),
    "outer": lambda m, a: m.numpy.outer(a["x"][:SIDE], a["y"][:SIDE]),
    "convolve": lambda m, a: m.numpy.convolve(a["x"], a["x"][:9]),
    "digitize": lambda m, a: m.numpy.digitize(a["x"], a["ordered"][::1000]),
    "isin": lambda m, a: m.numpy.isin(a["i"], a["i"][:100]),
    "astype[int32]": lambda m, a: a["x"].astype("int32"),
    "astype[bfloat16]": lambda m, a: a["x"].astype("bfloat16"),
    "polyval": lambda m, a: m.numpy.polyval(a["x"][:4], a["x"]),
    "arange": lambda m, a: m.numpy.arange(float(SIZE)),
    "linspace": lambda m, a: m.numpy.linspace(0.0, 1.0, SIZE),
    "eye": lambda m, a: m.numpy.eye(SIDE),
    "meshgrid": lambda m, a: m.numpy.meshgrid(a["x"][:SIDE], a["y"][:SIDE]),
    "lax.clamp": lambda m, a: m.lax.clamp(0.3, a["x"], 0.6),
    "lax.reduce_precision": lambda m, a: m.lax.reduce_precision(a["x"], 5, 10),
    "lax.igamma": lambda m, a: m.lax.igamma(a["x"][:100_000], a["y"][:100_000]),
}


def functions() -> Iterator[tuple[str, Callable[[Any, dict[str, Any]], Any]]]:
    """(name, the call of it with a library and its arrays)"""
    def plain(space: str, name: str, *operands: str) -> Callable[[Any, dict[str, Any]], Any]:
        special = _SPECIAL.get(name)
        if special is not None:
            return lambda m, a: special(m, *(a[o] for o in operands))
        found = operator.attrgetter(f"{space}.{name}")
        return lambda m, a: found(m)(*(a[o] for o in operands))

    for name in UNARY:
        yield f"numpy.{name}", plain("numpy", name, "x")
    for name in BINARY:
        yield f"numpy.{name}", plain("numpy", name, "x", "y")
    for name in OF_INTEGERS:
        yield f"numpy.{name}[int32]", plain("numpy", name, "i", "j")
    for name in OF_ONE_INTEGER:
        yield f"numpy.{name}[int32]", plain("numpy", name, "i")
    for name in MATRICES:
        yield f"numpy.{name}", plain("numpy", name, "matrix")
    for name in LAX_UNARY:
        yield f"lax.{name}", plain("lax", name, "x")
    for name in LAX_BINARY:
        yield f"lax.{name}", plain("lax", name, "x", "y")
    for name in SCIPY:
        yield f"scipy.special.{name}", plain("scipy.special", name, "x")
    for name, call in CALLS.items():
        yield name if name.startswith("lax.") else f"numpy.{name}", call


def arrays(module: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x = rng.uniform(0.05, 0.95, SIZE).astype(np.float32)
    y = rng.uniform(0.05, 0.95, SIZE).astype(np.float32)
    held = {
        "x": x, "y": y, "ordered": np.sort(x), "matrix": x.reshape(SIDE, SIDE),
        "i": rng.integers(0, 20, SIZE, dtype=np.int32),
        "j": rng.integers(1, 7, SIZE, dtype=np.int32),
        "z": (x + 1j * y).astype(np.complex64),
    }
    made = {name: module.numpy.asarray(value) for name, value in held.items()}
    made["half"] = made["x"].astype("bfloat16")
    return made


def stay_in_tier_0(console: Console) -> None:
    """Waits for the pack; from then on no program is looked for or compiled."""
    from maxjax._base import native
    from maxjax._runtime.native_functions import functions as provided
    from maxjax._runtime.tiering import tiering

    pack = tiering.mojo.pack
    if not pack.ready:
        console.print("building the pack of kernels ...")
        failure = pack.build()
        if failure:
            console.print(f"without the pack: {failure}")
    for kind, table in native.LEAST.items():
        for dtype in table:
            provided.load(native.function_name(kind, dtype))
    tiering.request = tiering.first_call = lambda program: None     # type: ignore[method-assign]


def finish(module: Any, result: Any) -> None:
    for leaf in module.tree_util.tree_leaves(result):
        np.asarray(leaf)


def compare(call: Callable[[Any, dict[str, Any]], Any], libraries: list[tuple[Any, dict[str, Any]]],
            repeats: int) -> list[float]:
    """The best times, taken in turns."""
    best = [float("inf")] * len(libraries)
    for attempt in range(repeats + 1):
        for which, (module, operands) in enumerate(libraries):
            begin = time.perf_counter()
            finish(module, call(module, operands))
            if attempt:      # the first call compiles
                best[which] = min(best[which], time.perf_counter() - begin)
    return best


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.eager_million",
                                     description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="beginnings of names")
    parser.add_argument("--limit", type=float, default=3.0, help="the ratio that offends")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()

    import jax
    import jax.scipy.special

    import maxjax
    import maxjax.scipy.special
    console = Console(markup=False)
    stay_in_tier_0(console)
    libraries = [(maxjax, arrays(maxjax)), (jax, arrays(jax))]
    offenders, failures, count = [], [], 0
    for name, call in functions():
        if options.only and not any(name.startswith(start) for start in options.only):
            continue
        try:
            ours, theirs = compare(call, libraries, options.repeats)
            if ours > options.limit * theirs:      # once more, in case the machine was busy
                again = compare(call, libraries, options.repeats)
                ours, theirs = min(ours, again[0]), min(theirs, again[1])
        except Exception as error:
            failures.append(f"{name}: {type(error).__name__}: {error}")
            continue
        count += 1
        if ours > options.limit * theirs:
            offenders.append((ours / theirs, name, ours, theirs))
            console.print(f"{name}: {ours / theirs:.1f} times JAX's time")
    table = Table("function", "maxjax", "jax", "ratio")
    for ratio, name, ours, theirs in sorted(offenders, reverse=True):
        table.add_row(name, f"{1e3 * ours:.2f} ms", f"{1e3 * theirs:.2f} ms", f"{ratio:.1f}")
    console.print(f"{len(offenders)} of {count} functions take more than {options.limit:g} times "
                  "JAX's time at a million elements")
    console.print(table)
    for failure in failures:
        console.print(f"failed: {failure}")
    return 1 if offenders or failures else 0


if __name__ == "__main__":
    sys.exit(main())
