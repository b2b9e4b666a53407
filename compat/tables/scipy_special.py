"""jax.scipy.special."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat.spec import Case, Input, array, case, cases, check, floats, shaped
from tests.support.elementwise import SPECIAL, Operation

TABLE: dict[str, list[Case]] = {}


def put(names: str, rows: list[Case]) -> None:
    for name in names.split():
        TABLE.setdefault(f"jax.scipy.special.{name}", []).extend(rows)


def function(row: Operation) -> list[Case]:
    """A function of arrays: values, modes, broadcasting, dtypes, float64."""
    names = "abcx"[:row.operands] if row.operands > 1 else "x"
    text = f"f({', '.join(names)})"
    limits = [{"low": low, "high": high} for low, high in row.domain]

    def inputs(make: Callable[..., Input], *shape: int, **options: Any) -> dict[str, Any]:
        return {name: make(*shape, **limit, **options) for name, limit in zip(names, limits)}

    derivative = None if row.differentiable else False
    rows = case(text, **inputs(floats, 2, 3), grad=derivative, tol=row.tolerance)
    rows += case(text, **inputs(floats), grad=False, tol=row.tolerance)
    # JAX computes owens_t of bfloat16 partly in bfloat16, and its result is float32.
    kinds = "int32 complex64" + " bfloat16" * (row.name != "owens_t")
    rows += case(text, **inputs(shaped, 3), dtypes=kinds, modes="eager jit",
                 tol="accumulate", raises=None)
    rows += case(text, **inputs(floats, 3, dtype="float64"), x64=True, modes="eager jit",
                 tol="accumulate")
    rows += case(f"f({', '.join(['[1.]'] * row.operands)})", raises=None)
    return rows


for _row in SPECIAL.values():
    if _row.domain:
        put(_row.name, function(_row))
put("wofz", case("f(z)", z=floats(3, dtype="complex64"), modes="eager jit", tol="accumulate"))
put("zeta", case("f(x)", x=floats(2), raises=True))
put("comb", case("f(a, b)", a=array([5.0, 4.0, 3.0], "float32"),
                 b=array([2.0, 4.0, 5.0], "float32"),
                 modes="eager jit", tol="accumulate")
    + check("f(5, 2).dtype"))
put("betainc", case("f(a, b, x)", a=floats(3, low=0.5, high=3.0).fix(),
                    b=floats(3, low=0.5, high=3.0).fix(), x=floats(3, low=0.1, high=0.9),
                    tol="accumulate"))
put("hyp1f1", case("f(a, b, x)", a=floats(3, low=0.5, high=2.0), b=floats(3, low=1.0, high=3.0),
                   x=floats(3, low=-1.0, high=2.0), tol="iterative"))
put("hyp2f1", case("f(1.5, 2.5, 4.0, x)", x=floats(3, low=-0.4, high=0.6), tol="iterative"))
put("expn", case("f(2, x)", x=floats(3, low=0.5, high=4.0), tol="loose")
    + case("f(x, 3.0)", x=array([0, 1, 5], "int32"), modes="eager jit", tol="loose"))
put("polygamma", case("f(1, x)", x=floats(3, low=0.6, high=4.0), tol="loose")
    + case("f(1.0, x)", x=floats(3), raises="must be of integer type"))
put("multigammaln", case("f(x, 2)", x=floats(3, low=1.6, high=4.0), tol="loose"))
put("bernoulli", check("f(8)[:4]") + check("f(-1)", "f(2.5)", raises=True))
put("factorial", check("f(3, exact=True)", raises=True))
put("log_ndtr", check("f(1.0, 40)", "f(1.0, 2.0)", raises=True))
put("bessel_jn", case("f(x, v=3)", x=array([0.5, 1.0, 2.0, 8.0], "float32"), modes="eager",
                      tol="accumulate")
    + case("f(x, v=2.5)", x=floats(2), raises=True))
put("lpmn", case("f(3, 3, z)", z=floats(4, low=-0.9, high=0.9), modes="eager jit", tol="iterative",
                 signed_zeros=False)
    + case("f(1, 2, z)", z=floats(4), raises=True))
put("lpmn_values", cases("f(3, 3, z, True)", "f(3, 3, z, False)", z=floats(4, low=-0.9, high=0.9),
                         modes="eager jit", tol="iterative"))
put("sph_harm_y", case("f(n, m, t, p, n_max=4)", n=array([2, 3, 4], "int32"),
                       m=array([1, -2, 0], "int32"), t=floats(3, low=0.2, high=3.0),
                       p=floats(3, low=0.0, high=6.0), modes="eager jit", tol="iterative"))
put("logsumexp", cases("f(x)", "f(x, axis=1, keepdims=True)", "f(x, b=x, return_sign=True)",
                       x=floats(2, 3), tol="loose"))
put("softmax log_softmax", cases("f(x)", "f(x, axis=0)", x=floats(2, 3), tol="loose"))
put("gamma gammasgn gammaln", case("f(x)", x=array(
    [0.0, -0.0, -1.0, -1.5, -2.5, float("inf"), float("nan")], "float32"), modes="eager jit",
    tol="loose"))
put("logit ndtri", case("f(x)", x=array([0.0, 1.0, -1.0, 2.0, float("nan")], "float32"),
                        modes="eager jit"))
put("entr", case("f(x)", x=array([0.0, -1.0, 1.0, float("inf")], "float32"), modes="eager jit"))
EDGES = {"a": array([0.0, 0.0, -1.0, 1.0], "float32"), "b": array([0.0, 1.0, 1.0, 0.0], "float32")}
put("rel_entr kl_div xlogy", case("f(a, b)", **EDGES, modes="eager jit"))
