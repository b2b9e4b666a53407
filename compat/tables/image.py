"""jax.image and jax.ops."""

from __future__ import annotations

from compat.spec import Case, array, case, cases, check, floats, ints, shaped

TABLE: dict[str, list[Case]] = {}
METHODS = "nearest linear cubic lanczos3 lanczos5".split()
CLASS = "jax.image.ResizeMethod"

TABLE["jax.image.ResizeMethod"] = check(
    "list(f)", "f.LINEAR.value", *(f"f.from_string({name!r})" for name in (
        *METHODS, "bilinear", "trilinear", "triangle", "bicubic", "tricubic",
        "cubic-pytorch", "bicubic-pytorch"))) + check(
    "f.from_string('a')", raises=True)
TABLE["jax.image.resize"] = (
    [row for method in METHODS for row in cases(
        f"f(x, (5, 3), {method!r})", f"f(x, (2, 6), {method!r}, antialias=False)",
        x=floats(3, 4), tol="accumulate")]
    + [row for method in ("CUBIC_PYTORCH", "AREA") for row in cases(
        f"f(x, (5, 3), {CLASS}.{method})", f"f(x, (2, 6), {CLASS}.{method}, antialias=False)",
        x=floats(3, 4), tol="accumulate")]
    + case("f(x, (2, 6, 4, 3), 'bilinear')", x=floats(2, 3, 4, 3), tol="accumulate")
    + case("f(x, (2, 6), 'linear')", x=shaped(3, 4), dtypes="int32 uint8 bool bfloat16 complex64",
           modes="eager jit", tol="accumulate", raises=None)
    + case("f(x, (2, 6), 'nearest')", x=shaped(3, 4), dtypes="int32 uint8 bool bfloat16 complex64",
           modes="eager jit")
    + case("f(x, (2, 6), 'linear')", x=floats(3, 4, dtype="float64"), x64=True, tol="accumulate")
    + cases("f(x, (0, 6), 'linear')", "f(x, (3, 4), 'cubic')", "f(x, [3, 5], 'linear')",
            x=floats(3, 4), tol="accumulate")
    + cases("f(x, (2,), 'linear')", "f(x, (2, 6), 'a')", x=floats(3, 4), raises=True)
    + case("f([[1.0]], (2, 6), 'linear')", raises=True))
MOVED = {"s": array([1.7, 0.6], "float32"), "t": array([0.5, -0.3], "float32")}
TABLE["jax.image.scale_and_translate"] = (
    [row for method in METHODS[1:] for row in cases(
        f"f(x, (4, 5), (0, 1), s, t, {method!r})", x=floats(3, 4), **MOVED, vmap="x",
        grad="x" if method[0] == "l" and method != "linear" else None, tol="iterative")]
    + cases("f(x, (4, 5), (0, 1), s, t, 'linear', antialias=False)",
            "f(x, (3, 5), (-1,), s[:1], t[:1], jax.image.ResizeMethod.AREA)",
            x=floats(3, 4), **MOVED, vmap="x", modes="eager jit vmap", tol="accumulate")
    + case("f(x, (4, 5), (0, 1), s, t, 'linear')", x=shaped(3, 4), **MOVED,
           dtypes="int32 bfloat16 complex64", modes="eager jit", tol="accumulate", raises=None)
    + cases("f(x, (4, 5), (0, 1), s, t, 'nearest')", "f(x, (4,), (0, 1), s, t, 'linear')",
            "f(x, (4, 5), (0,), s, t, 'linear')", "f(x, (4, 5), (0, 3), s, t, 'linear')",
            "f(x, (4, 5), (0, 1), 2.0, t, 'linear')", x=floats(3, 4), **MOVED, raises=True))

IDS = {"i": array([0, 1, -1, 5, 1], "int32")}
for _name in ("sum", "prod", "max", "min"):
    TABLE[f"jax.ops.segment_{_name}"] = (
        cases("f(x, i, 3)", "f(x, i, num_segments=7)", "f(x, i, 3, bucket_size=2)",
              "f(x, i, 3, mode='clip')", x=floats(5, low=0.5, high=2.0, distinct=True), **IDS,
              vmap="x", tol="accumulate")
        + case("f(x, i)", x=floats(5), **IDS)
        + case("f(x, i, 3)", x=floats(5, 2, low=0.5, distinct=True), **IDS)
        + case("f(x, i, 3)", x=shaped(5), **IDS, dtypes="int32 uint8 bool bfloat16 complex64",
               modes="eager jit", tol="accumulate", raises=None)
        + case("f(x, i, 3)", x=floats(2, 2), i=ints(2, 2, low=0, high=2), raises=None,
               modes="eager jit")
        + case("f(x, i, 0)", x=floats(5), **IDS, modes="eager jit")
        + cases("f([1.0], [0])", "f(x, i, -1)", "f(x, i.astype(float), 3)", "f(x, i[:2], 3)",
                "f(x, i, 1.5)", x=floats(5), **IDS, raises=True))
