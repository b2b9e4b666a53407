"""Native functions of stacks of matrices: each returns the same as its NumPy rule."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

pytest.importorskip("max.engine")

from maxjax._ir.primitive import op_spec
from maxjax._ir.types import ShapedArray
from maxjax._primitives import (
    linalg_factors,
    linalg_solve,
    linalg_spectral,
)
from tests.mojo.native_calls import (
    arrangements,
    both,
)


def matrices(name: str, *shape: int) -> np.ndarray:
    random = np.random.default_rng(shape)
    x = random.standard_normal(shape)
    if name.startswith("complex"):
        x = x + 1j * random.standard_normal(shape)
    return x.astype(name)


def definite(name: str, *shape: int) -> np.ndarray:
    x = matrices(name, *shape)
    return x @ x.conj().swapaxes(-1, -2) + 2 * np.eye(shape[-1], dtype=name)


def close_matrices(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, (list, tuple)):
        for a, b in zip(ours, theirs, strict=True):
            close_matrices(a, b)
        return
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    bound = 2000 * np.finfo(ours.dtype).eps if ours.dtype.kind in "fc" else 0
    np.testing.assert_allclose(ours, theirs, rtol=bound, atol=bound)


def magnitudes(ours: Any, theirs: Any) -> None:
    """Compares the magnitudes of vectors, whose phases are free."""
    close_matrices([np.abs(x) for x in ours], [np.abs(x) for x in theirs])


LINALG_DTYPES = ("float32", "float64", "complex64", "complex128")


@pytest.mark.parametrize("name", LINALG_DTYPES)
@pytest.mark.parametrize("size", (1, 4, 9, 40))
def test_factorizations(calls, name, size):
    """Stacks of matrices, some of which have no factors, in every layout."""
    for shape in ((2, 3, size, size), (70, size, size + 1), (5, size + 2, size)):
        for x in arrangements(matrices(name, *shape)):
            both(linalg_factors.lu_p, [x], close_matrices)
            both(linalg_factors.geqrf_p, [x], close_matrices)
            for full in (False, True):
                both(linalg_factors.qr_p, [x], close_matrices, full_matrices=full,
                     pivoting=False, use_magma=None)
        taus = matrices(name, *shape[:-2], min(shape[-2:]))
        for left in (False, True):
            c = matrices(name, *shape[:-2], *((shape[-2], 3) if left else (3, shape[-2])))
            for transpose in (False, True):
                both(linalg_factors.ormqr_p, [matrices(name, *shape), taus, c], close_matrices,
                     left=left, transpose=transpose)
    x = definite(name, 70, size, size)
    both(linalg_factors.cholesky_p, [x], close_matrices)
    x[3], x[7, 0, 0] = -x[3], np.nan
    x[9] = 0
    both(linalg_factors.cholesky_p, [x], close_matrices)
    both(linalg_factors.lu_p, [x[8:12]], close_matrices)
    bits = np.dtype(name).itemsize * 8
    assert set(calls) == {f"{kind}_{bits}" for kind in (
        "getrf", "geqrf", "orgqr", "ormqr", "potrf")}


@pytest.mark.parametrize("name", LINALG_DTYPES)
@pytest.mark.parametrize("size", (1, 4, 20))
def test_native_solvers_agree_with_scipy(calls, name, size):
    a = definite(name, 70, size, size) / size
    for columns in (1, 3, 20):
        b = matrices(name, 70, size, columns)
        both(linalg_solve.solve_p, [a, b], close_matrices)
        for x in (a, np.asfortranarray(a)):
            for left, lower, transpose, conjugate, unit in itertools.product((False, True),
                                                                              repeat=5):
                both(linalg_solve.triangular_solve_p, [x, b if left else b.swapaxes(1, 2)],
                     close_matrices, left_side=left, lower=lower, transpose_a=transpose,
                     conjugate_a=conjugate, unit_diagonal=unit)
    # Singular matrices divide by zero.
    a[1] = 0
    with np.errstate(all="ignore"):
        ours = op_spec(linalg_solve.solve_p, tuple(
            ShapedArray(x.shape, x.dtype) for x in (a, b)), {}).run(a, b)
    assert not np.isfinite(ours[1]).any() and np.isfinite(ours[2:]).all()
    bits = np.dtype(name).itemsize * 8
    assert set(calls) == {f"trsm_{bits}", f"gesv_{bits}"}


@pytest.mark.parametrize("name", LINALG_DTYPES)
@pytest.mark.parametrize("size", (1, 4, 30))
def test_native_spectra_agree_with_numpy(calls, name, size):
    x = definite(name, 8, size, size) * np.arange(1, size + 1).astype(name)[:, None]
    x = x + x.conj().swapaxes(1, 2)
    for lower in (False, True):
        both(linalg_spectral.eigh_p, [x], magnitudes, lower=lower, sort_eigenvalues=True,
             subset_by_index=None, algorithm=None)
    for shape in ((8, size, size), (2, 3, size + 2, size), (5, size, size + 1)):
        for full, vectors in ((False, True), (True, True), (False, False)):
            a = matrices(name, *shape)
            both(linalg_spectral.svd_p, [a], magnitudes if not full else compare_values,
                 full_matrices=full, compute_uv=vectors, subset_by_index=None, algorithm=None)
    bad = x.copy()
    bad[2] = np.nan
    values = both(linalg_spectral.svd_p, [bad], close_matrices, full_matrices=False,
                  compute_uv=False, subset_by_index=None, algorithm=None)[0]
    assert np.isnan(values[2]).all() and np.isfinite(values[3]).all()
    bits = np.dtype(name).itemsize * 8
    assert set(calls) == {f"{kind}_{bits}" for kind in ("syevd", "gesdd", "gesdd_values")}


@pytest.mark.parametrize("name", LINALG_DTYPES)
@pytest.mark.parametrize("size", (2, 5, 30))
def test_general_matrices(calls, name, size):
    """Eigenvalues and reductions; a matrix that is not finite has none, and spoils no other."""
    x = matrices(name, 400 // size, size, size)
    x[1] = np.diag(np.arange(size))                # real eigenvalues among pairs
    x[2, 0, 0], x[3, -1, 0] = np.nan, np.inf
    for left, right in itertools.product((False, True), repeat=2):
        both(linalg_spectral.eig_p, [x], close_matrices, compute_left_eigenvectors=left,
             compute_right_eigenvectors=right, enable_eigvec_derivs=False, implementation=None)
    finite = np.delete(x, (2, 3), 0)
    for layout in arrangements(finite):
        both(linalg_spectral.hessenberg_p, [layout], close_matrices)
        for vectors in (False, True):
            both(linalg_spectral.schur_p, [layout], close_matrices, compute_schur_vectors=vectors,
                 sort_eig_vals=False, select_callable=None)
        for lower in (False, True):
            both(linalg_spectral.tridiagonal_p, [layout], close_matrices, lower=lower)
    bits = np.dtype(name).itemsize * 8
    assert set(calls) == {f"{kind}_{bits}" for kind in (
        "geev", "geev_values", "geev_both", "gees", "gees_values", "gehrd", "sytrd")}


@pytest.mark.parametrize("name", LINALG_DTYPES)
@pytest.mark.parametrize("size", (1, 2, 3, 12))
def test_tridiagonal_systems(calls, name, size):
    count = 2000 // size
    bands = [matrices(name, count, size) for _ in range(3)]
    bands[1] += 3
    bands[0][:, 0] = bands[2][:, -1] = np.nan       # which are none of the matrix
    bands[1][3], bands[2][3], bands[0][3] = 0, 0, 0    # singular
    bands[1][4, 0] = np.nan
    for columns in (1, 3):
        out = both(linalg_solve.tridiagonal_solve_p, [*bands, matrices(name, count, size, columns)],
                   close_matrices, perturb_singular=False)
        assert np.isnan(out[3]).all() and np.isfinite(out[5:]).all()
    assert set(calls) == {f"gtsv_{np.dtype(name).itemsize * 8}"}


def compare_values(ours: Any, theirs: Any) -> None:
    """Singular values; beyond as many, vectors are any of those that are left."""
    close_matrices(ours[0], theirs[0])
    for x in ours[1:]:
        product = x @ x.conj().swapaxes(-1, -2)
        close_matrices(product, np.broadcast_to(
            np.eye(product.shape[-1], dtype=x.dtype), product.shape).copy())


def test_single_matrices_stay_with_scipy(calls):
    x = matrices("float32", 1, 40, 40)
    both(linalg_factors.lu_p, [x])
    assert not calls
