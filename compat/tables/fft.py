"""jax.numpy.fft and lax.fft."""

from __future__ import annotations

from compat.spec import case, cases, check, floats, shaped

WIDE = {"tol": "iterative", "signed_zeros": False}
BOTH = "float32 complex64"


def transform(real: str, *, real_only: bool = False) -> list:
    """A transform along one axis: the sizes, axes, norms, dtypes and errors that all share."""
    dtypes = "float32" if real_only else BOTH
    rows = cases("f(x)", "f(x, axis=0)", "f(x, 3)", "f(x, n=8, norm='ortho')",
                 "f(x, None, 0, 'forward')", "f(x, norm='backward')", x=shaped(4, 5),
                 dtypes=dtypes, **WIDE)
    rows += case("f(x)", x=shaped(6), dtypes="int32 bool float16 bfloat16 complex64",
                 modes="eager jit", raises=None, **WIDE)
    rows += case("f(x)", x=shaped(2, 6), dtypes=real, modes="eager jit grad", **WIDE)
    rows += case("f(x)", x=shaped(0, 4), modes="eager jit", **WIDE)
    rows += case("f(x)", x=shaped(5, 4).strided(), modes="eager jit", **WIDE)
    rows += cases("f(x, 0)", "f(x, axis=2)", "f(x, axis=(0, 1))", "f(x, norm='other')",
                  "f(x, 2.5)", x=floats(2, 4), raises=True)
    return rows


def many(real: str, *, two: bool, real_only: bool = False) -> list:
    """A transform along several axes."""
    dtypes = "float32" if real_only else BOTH
    rows = cases("f(x)", "f(x, axes=(1, 0))", "f(x, (2, 6))", "f(x, s=(5, 3), norm='ortho')",
                 "f(x, (4, 4), (0, 2), 'forward')", x=shaped(2, 3, 4), dtypes=dtypes, **WIDE)
    rows += case("f(x)", x=shaped(3, 4), dtypes=real, modes="eager jit grad", **WIDE)
    rows += case("f(x)", x=shaped(3, 4), dtypes="int32 bfloat16 complex64", modes="eager jit",
                 raises=None, **WIDE)
    rows += cases("f(x, (2,), (0, 1))", "f(x, axes=(0, 0))", "f(x, (0, 2))", x=floats(3, 4),
                  raises=True)
    if two:
        rows += cases("f(x, axes=(0,))", "f(x[0])", x=floats(3, 4), raises=True)
    else:
        rows += cases("f(x)", "f(x, axes=(0, 3, 1))", "f(x, s=(3, 2, 2, 5))",
                      x=shaped(2, 3, 2, 4), dtypes=dtypes, **WIDE)
        rows += cases("f(x, axes=())", "f(x, (3,))", "f(x, axes=(-1,))", x=floats(3, 4), **WIDE)
    return rows


def shift() -> list:
    return (cases("f(x)", "f(x, 0)", "f(x, axes=(1,))", "f(x, axes=(-1, 0))", x=shaped(3, 4),
                  dtypes="float32 int32 complex64 bool")
            + case("f(x)", x=shaped(0, 4)) + case("f(x)", x=floats())
            + cases("f([1, 2])", "f(x, axes=5)", x=floats(3), raises=True))


def frequencies() -> list:
    return (check("f(5)", "f(4, 0.5)", "f(1)", "f(0)", "f(n=6, d=2)", "f(5, dtype=jnp.float16)",
                  "f(5, dtype=jnp.complex64)", "f(5.)", "f(-3)")
            + case("f(4, d)", d=floats())
            + check("f([5])", "f(5, [1.])", raises=True))


TABLE = {
    "jax.numpy.fft.fft": transform("float64 complex128"),
    "jax.numpy.fft.ifft": transform("float64 complex128"),
    "jax.numpy.fft.rfft": transform("float64", real_only=True),
    "jax.numpy.fft.irfft": transform("complex128") + case(
        "f(x)", x=shaped(1, 1), modes="eager jit", **WIDE),
    "jax.numpy.fft.hfft": transform("complex128"),
    "jax.numpy.fft.ihfft": transform("float64", real_only=True),
    "jax.numpy.fft.fft2": many("complex128", two=True),
    "jax.numpy.fft.ifft2": many("complex128", two=True),
    "jax.numpy.fft.rfft2": many("float64", two=True, real_only=True),
    "jax.numpy.fft.irfft2": many("complex128", two=True),
    "jax.numpy.fft.fftn": many("complex128", two=False),
    "jax.numpy.fft.ifftn": many("complex128", two=False),
    "jax.numpy.fft.rfftn": many("float64", two=False, real_only=True),
    "jax.numpy.fft.irfftn": many("complex128", two=False),
    "jax.numpy.fft.fftfreq": frequencies() + check("f(5, dtype=int)"),
    "jax.numpy.fft.rfftfreq": frequencies(),
    "jax.numpy.fft.fftshift": shift(),
    "jax.numpy.fft.ifftshift": shift(),
    "jax.lax.fft": (
        cases("f(x, 'FFT', (4,))", "f(x, lax.FftType.IFFT, (3, 4))", "f(x, 'fft', ())",
              x=shaped(2, 3, 4), dtypes=BOTH, **WIDE)
        + cases("f(x, 'RFFT', (4,))", "f(x, 'rfft', (3, 4))", "f(x, 'RFFT', (2, 3, 4))",
                x=floats(2, 3, 4), **WIDE)
        + cases("f(x, 'IRFFT', (6,))", "f(x, 'irfft', (3, 7))", x=shaped(2, 3, 4),
                dtypes=BOTH, **WIDE)
        + cases("f(x, 'FFT', (3,))", "f(x, 'DCT', (4,))", "f(x, 1, (4,))", "f(x, 'FFT', [4])",
                "f(x, 'FFT', (2, 3, 4, 4))", "f(x * 1j, 'RFFT', (4,))",
                "f(x, 'IRFFT', (2, 6))", "f(x.astype('float16'), 'RFFT', (4,))",
                x=floats(2, 3, 4), raises=True)),
    "jax.lax.FftType": check("list(f)", "f.RFFT.name", "int(f.IRFFT)", "f['IFFT'] == 1"),
    "jax.lax.fft_p": cases("f.bind(x, fft_type=lax.FftType.FFT, fft_lengths=(4,))",
                           x=shaped(3, 4), dtypes="complex64", **WIDE)
    + check("f.name", "f.multiple_results"),
}
