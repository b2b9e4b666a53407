"""Decompositions and solvers."""

from __future__ import annotations

import numpy as np

from tests.support.harness import Case

RNG = np.random.default_rng(0)


def matrix(*shape, dtype=np.float32):
    x = RNG.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * RNG.normal(size=shape)
    return x.astype(dtype)


def definite(*shape, dtype=np.float32):
    x = matrix(*shape, dtype=dtype)
    return (x @ np.conj(np.swapaxes(x, -1, -2)) + 2 * np.eye(shape[-1])).astype(dtype)


SQUARE, TALL, WIDE = matrix(4, 4), matrix(5, 3), matrix(3, 5)
STACK = matrix(2, 4, 4)
COMPLEX = matrix(3, 3, dtype=np.complex64)
DEFINITE = definite(4, 4)
HERMITIAN = definite(3, 3, dtype=np.complex64)
LOWER = np.tril(matrix(4, 4)) + 3 * np.eye(4, dtype=np.float32)
SINGULAR = np.outer(np.arange(1, 5), np.arange(2, 6)).astype(np.float32)


def row(name, fun, *args, **options):
    return Case(name, fun, args, tolerance="iterative", signed_zeros=False, **options)


def phaseless(j, vectors):
    """What does not depend on the phases of eigenvectors."""
    return j.numpy.abs(vectors)


CASES = [
    *(row(f"qr-{label}", lambda j, x: tuple(j.numpy.linalg.qr(x)), x)
      for label, x in (("square", SQUARE), ("tall", TALL), ("stack", STACK), ("complex", COMPLEX))),
    row("qr-wide", lambda j, x: tuple(j.numpy.linalg.qr(x)), WIDE, differentiable=False),
    row("qr-complete", lambda j, x: tuple(j.numpy.linalg.qr(x, "complete")), TALL,
        differentiable=False),
    row("qr-r", lambda j, x: j.numpy.linalg.qr(x, "r"), TALL),
    row("qr-empty", lambda j, x: tuple(j.numpy.linalg.qr(x)), TALL[:0], differentiable=False,
        vmappable=False),
    *(row(f"cholesky-{label}", lambda j, x: j.numpy.linalg.cholesky(x), x, vmappable=False)
      for label, x in (("real", DEFINITE), ("complex", HERMITIAN))),
    row("cholesky-batch", lambda j, x: j.vmap(j.numpy.linalg.cholesky)(x),
        np.stack([DEFINITE, 2 * DEFINITE]), vmappable=False),
    row("cholesky-upper", lambda j, x: j.numpy.linalg.cholesky(
        x, upper=True, symmetrize_input=False), DEFINITE, differentiable=False, vmappable=False),
    row("cholesky-indefinite", lambda j, x: j.numpy.linalg.cholesky(x),
        np.stack([-DEFINITE, DEFINITE]), differentiable=False, vmappable=False),
    *(row(f"solve-{label}", lambda j, a, b: j.numpy.linalg.solve(a, b), a, b)
      for label, a, b in (("matrix", SQUARE, matrix(4, 2)), ("vector", SQUARE, matrix(4)),
                          ("stack", STACK, matrix(2, 4, 3)),
                          ("complex", COMPLEX, matrix(3, 2, dtype=np.complex64)))),
    row("solve-broadcast", lambda j, a, b: j.numpy.linalg.solve(a, b), STACK, matrix(4)),
    row("inv", lambda j, x: j.numpy.linalg.inv(x), SQUARE),
    row("inv-complex", lambda j, x: j.numpy.linalg.inv(x), COMPLEX),
    *(row(f"det-{label}", lambda j, x: j.numpy.linalg.det(x), x)
      for label, x in (("1", matrix(1, 1)), ("2", matrix(2, 2)), ("3", matrix(3, 3)),
                       ("4", SQUARE), ("stack", STACK),
                       ("complex", matrix(4, 4, dtype=np.complex64)))),
    row("det-singular", lambda j, x: j.numpy.linalg.det(x), SINGULAR + np.diag(
        np.array([0, 1, 1, 0], np.float32)), smooth=False, vmappable=False),
    *(row(f"slogdet-{label}", lambda j, x: tuple(j.numpy.linalg.slogdet(x)), x)
      for label, x in (("real", SQUARE), ("stack", STACK))),
    row("slogdet-singular", lambda j, x: tuple(j.numpy.linalg.slogdet(x)), 0 * SQUARE,
        differentiable=False),
    *(row(f"eigh-{label}", lambda j, x: (lambda w, v: (w, phaseless(j, v)))(
        *j.numpy.linalg.eigh(x)), x) for label, x in (("real", DEFINITE), ("complex", HERMITIAN))),
    row("eigvalsh", lambda j, x: j.numpy.linalg.eigvalsh(x), DEFINITE),
    *(row(f"svd-{label}", lambda j, x: (lambda u, s, vh: (phaseless(j, u), s, phaseless(j, vh)))(
        *j.numpy.linalg.svd(x, full_matrices=False)), x)
      for label, x in (("square", SQUARE), ("tall", TALL), ("wide", WIDE), ("complex", COMPLEX))),
    row("svd-full", lambda j, x: j.numpy.linalg.svd(x)[1], TALL, differentiable=False),
    row("svd-nan", lambda j, x: tuple(j.numpy.linalg.svd(x)), np.full((2, 2), np.nan, np.float32),
        differentiable=False),
    row("svd-hermitian", lambda j, x: j.numpy.linalg.svd(x, hermitian=True)[1], DEFINITE),
    row("svdvals", lambda j, x: j.numpy.linalg.svdvals(x), TALL),
    *(row(f"pinv-{label}", lambda j, x: j.numpy.linalg.pinv(x), x)
      for label, x in (("tall", TALL), ("wide", WIDE), ("complex", COMPLEX))),
    row("pinv-eye", lambda j, x: j.numpy.linalg.pinv(x), np.eye(3, dtype=np.float32)),
    row("matrix_rank", lambda j, x: j.numpy.linalg.matrix_rank(x), np.stack([SINGULAR, SQUARE]),
        differentiable=False),
    row("lstsq-vector", lambda j, a, b: j.numpy.linalg.lstsq(a, b), TALL, matrix(5),
        differentiable=False),
    row("lstsq-matrix", lambda j, a, b: j.numpy.linalg.lstsq(a, b)[0], TALL, matrix(5, 2)),
    *(row(f"cond-{p}", lambda j, x, p=p: j.numpy.linalg.cond(x, p), SQUARE)
      for p in (None, -2, 1, "fro")),
    row("tensorinv", lambda j, x: j.numpy.linalg.tensorinv(x), matrix(2, 3, 6)),
    row("tensorsolve", lambda j, a, b: j.numpy.linalg.tensorsolve(a, b), matrix(2, 3, 6),
        matrix(2, 3)),
    *(row(f"norm-{order}", lambda j, x, order=order: j.numpy.linalg.norm(
        x, order, (0, 2), keepdims=True), STACK) for order in ("nuc", 2, -2)),
    row("matrix_power-negative", lambda j, x: j.numpy.linalg.matrix_power(x, -3), SQUARE),
    *(row(f"triangular_solve-{left}-{lower}-{transposed}-{unit}",
          lambda j, a, b, left=left, lower=lower, transposed=transposed, unit=unit:
          j.lax.linalg.triangular_solve(a, b, left_side=left, lower=lower, transpose_a=transposed,
                                        unit_diagonal=unit), LOWER if lower else LOWER.T,
          matrix(4, 4))
      for left in (False, True) for lower in (False, True) for transposed in (False, True)
      for unit in (False, True)),
    row("triangular_solve-complex", lambda j, a, b: j.lax.linalg.triangular_solve(
        a, b, left_side=True, transpose_a=True, conjugate_a=True), COMPLEX,
        matrix(3, 2, dtype=np.complex64)),
    row("lu-order", lambda j, x: j.lax.linalg.lu(x)[2], STACK, differentiable=False),
    row("qr-vectors", lambda j, x: j.numpy.linalg.qr(x)[0], STACK),
    row("solve-in-a-loop", lambda j, a, b: j.lax.fori_loop(
        0, 3, lambda i, x: j.numpy.linalg.solve(a, x) + i, b), SQUARE, matrix(4, 2)),
    *(row(f"lu-{label}", lambda j, x: tuple(j.lax.linalg.lu(x)), x)
      for label, x in (("square", SQUARE), ("tall", TALL), ("wide", WIDE), ("stack", STACK))),
]

TAUS = matrix(3)
BANDS = [matrix(4), matrix(4) + 4, matrix(4)]
HOST = {"differentiable": False}
CASES += [
    row("eigvals", lambda j, x: j.numpy.linalg.eigvals(x), SQUARE, smooth=False),
    row("eig", lambda j, x: j.lax.linalg.eig(x), SQUARE, **HOST),
    row("eig-vectors", lambda j, x: j.lax.linalg.eig(
        x, enable_eigvec_derivs=True), SQUARE + np.diag([0, 9, 18, 27]).astype(np.float32),
        smooth=False),
    row("schur", lambda j, x: j.lax.linalg.schur(x), SQUARE, **HOST),
    row("hessenberg", lambda j, x: j.lax.linalg.hessenberg(x), SQUARE, **HOST),
    row("tridiagonal", lambda j, x: j.lax.linalg.tridiagonal(x), DEFINITE, **HOST),
    row("tridiagonal_solve", lambda j, *xs: j.lax.linalg.tridiagonal_solve(*xs), *BANDS,
        matrix(4, 2)),
    row("householder_product", lambda j, a, t: j.lax.linalg.householder_product(a, t), TALL, TAUS,
        **HOST),
    row("ormqr", lambda j, a, t, c: j.lax.linalg.ormqr(a, t, c), TALL, TAUS, matrix(5, 2), **HOST),
    *(row(f"ormqr-{left}-{transpose}-{label}",
          lambda j, a, t, c, left=left, transpose=transpose: j.lax.linalg.ormqr(
              a, t, c, left=left, transpose=transpose),
          a, t, c if left else c.swapaxes(-1, -2).copy(), **HOST)
      for left in (False, True) for transpose in (False, True)
      for label, a, t, c in (
          ("stack", matrix(3, 5, 4), matrix(3, 4), matrix(3, 5, 2)),
          ("few", matrix(5, 4), matrix(2), matrix(5, 1)),
          ("wide", WIDE, TAUS, matrix(3, 4)),
          ("complex", matrix(5, 2, dtype=np.complex64), matrix(2, dtype=np.complex64),
           matrix(5, 3, dtype=np.complex64)),
          ("none", TALL, matrix(0), matrix(5, 2)),
          ("empty", TALL, TAUS, matrix(5, 0)))),
    row("qr-raw", lambda j, x: tuple(j.numpy.linalg.qr(x, "raw")), TALL, **HOST),
    row("qr-pivoting", lambda j, x: j.lax.linalg.qr(x, pivoting=True), TALL),
    row("cholesky_update", lambda j, r, w: j.lax.linalg.cholesky_update(r, w), LOWER.T.copy(),
        matrix(4), vmappable=False, **HOST),
    row("lu_pivots_to_permutation", lambda j, p: j.lax.linalg.lu_pivots_to_permutation(p, 4),
        np.array([2, 2, 3], np.int32), **HOST),
    row("symmetric_product", lambda j, a, c: j.lax.linalg.symmetric_product(
        a, c, alpha=2.0, beta=3.0), matrix(3, 2), matrix(3, 3), **HOST),
    row("slogdet-qr", lambda j, x: tuple(j.numpy.linalg.slogdet(x, method="qr")), SQUARE),
    row("det-zero", lambda j, x: j.numpy.linalg.det(x), 0 * SQUARE, smooth=False),
]

ERRORS = {
    "qr-rank": lambda l: l.qr(SQUARE[0]), "qr-mode": lambda l: l.qr(SQUARE, "x"),
    "inv-shape": lambda l: l.inv(TALL), "det-shape": lambda l: l.det(TALL),
    "slogdet-shape": lambda l: l.slogdet(TALL), "svd-rank": lambda l: l.svd(SQUARE[0]),
    "solve-shape": lambda l: l.solve(TALL, TALL),
    "solve-size": lambda l: l.solve(SQUARE, TALL[:, 0]),
    "lstsq-rows": lambda l: l.lstsq(TALL, SQUARE), "tensorinv-ind": lambda l: l.tensorinv(TALL, 0),
    "cond-vector": lambda l: l.cond(SQUARE[0]),
}
CASES += [Case(f"error-{label}", lambda j, fun=fun: fun(j.numpy.linalg), (), raises=True)
          for label, fun in ERRORS.items()]
