"""Random calls of functions that JAX 0.12 changed: `j` is jax.numpy, `l` jax.lax, `d` jax."""

from __future__ import annotations

import random

_ARRAYS = ("j.arange(6.)", "j.arange(12).reshape(3, 4)", "j.array([[1, 5], [7, 2]], 'uint8')",
           "j.array([True, False, True])", "j.array([1 + 2j, 0, -3j])", "j.float32(2.5)",
           "j.array([0., -0., j.nan, j.inf, -1.])", "j.zeros((0, 3))", "j.array(3, 'int8')")
_AXES = ("0", "1", "-1", "None", "(0,)")
_STARTS = ("-9", "-1", "0", "1", "2", "9")
_TEMPLATES = (
    "j.{s}({a}, {n})", "j.{s}({a}, [1, {i}])", "j.meshgrid({a}, {b}, indexing='{ij}')",
    "j.atleast_{k}d({a}, {b})", "j.repeat({a}, {k}, axis={x})",
    "j.repeat({a}, {k}, total_repeat_length={n})",
    "d.grad(lambda x: j.sign(x).real.sum())({f})", "d.jvp(j.{m}, ({f}, {f}), ({f}, {f}))",
    "l.top_k({a}, {k})", "l.top_k({a}, {k}, axis={i})",
    "j.{e}({a}, axis={x})", "j.{e}({a}, keepdims=True)",
    "j.arange({k} + 2).at[d.ds({st}, 2)].set(9)",
    "j.arange(4).at[d.ds({st}, 2)].add(1, mode='clip')",
    "{a}.at[{i}].get(mode='{g}')", "j.polyval({a}, {k})", "j.polyval({a}, {b}, unroll={k})",
    "j.polyadd({a}, {b})", "j.polymul({q}, j.arange(6.))",
    "{a}.at[()].power(2)", "{a}.at[()].divide(2)",
)


def calls(seed: int, count: int) -> list[str]:
    """Calls as text, the same for the same seed."""
    choose = random.Random(seed).choice
    return [choose(_TEMPLATES).format(
        a=choose(_ARRAYS), b=choose(_ARRAYS), f=choose(_ARRAYS[:1] + _ARRAYS[6:7]),
        q=choose(_ARRAYS[:5]),        # numbers that are finite: XLA multiplies padding, too
        s=choose(("split", "array_split")), n=choose(("1", "2", "3")), i=choose(("0", "1", "-1")),
        ij=choose(("ij", "xy")), k=choose((1, 2, 3)), x=choose(_AXES), st=choose(_STARTS),
        m=choose(("maximum", "minimum")), e=choose(("max", "min", "argmax", "argmin", "nanmax")),
        g=choose(("fill", "clip", "promise_in_bounds"))) for _ in range(count)]
