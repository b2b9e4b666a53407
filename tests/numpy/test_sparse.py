"""Sparse arrays: layouts, padding, jit and vmap; compat compares them with JAX."""

import numpy as np
import pytest

import maxjax as jax
import maxjax.numpy as jnp
from maxjax.experimental import sparse

RNG = np.random.default_rng(0)
M = jnp.asarray(RNG.normal(size=(2, 3, 4, 2)) * (RNG.random((2, 3, 4, 2)) < 0.4), jnp.float32)
LAYOUTS = [(batch, dense) for batch in range(3) for dense in range(3) if batch + dense <= 4]


def same(x, y):
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), 1e-6, 1e-6)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_changes_no_value(layout):
    n_batch, n_dense = layout
    mat = sparse.BCOO.fromdense(M, n_batch=n_batch, n_dense=n_dense)
    assert (mat.n_batch, mat.n_dense, mat.shape) == (n_batch, n_dense, M.shape)
    same(mat.todense(), M)
    same(mat.update_layout(n_batch=0, n_dense=0).todense(), M)
    same(mat.sum_duplicates().todense(), M)
    for axis in range(4):
        same(mat.sum(axis).todense(), M.sum(axis))


def test_padding_adds_nothing():
    mat = sparse.BCOO.fromdense(M, nse=40)
    assert mat.nse == 40
    same(mat.todense(), M)
    same(sparse.bcoo_reshape(mat, new_sizes=(6, 8)).todense(), M.reshape(6, 8))
    same(mat[1, :, ::-2].todense(), M[1, :, ::-2])
    same(sparse.bcoo_concatenate([mat, mat], dimension=2).todense(), jnp.concatenate([M, M], 2))
    same(mat.sum().reshape(1), M.sum().reshape(1))


@pytest.mark.parametrize("dimensions", [
    (((3,), (3,)), ((), ())), (((2, 3), (2, 3)), ((0,), (0,))), (((1,), (1,)), ((0, 3), (0, 3)))])
@pytest.mark.parametrize("sides", ["sd", "ds", "ss"])
def test_dot_general(dimensions, sides):
    mat = sparse.BCOO.fromdense(M)
    operands = [mat if side == "s" else M for side in sides]
    result = sparse.bcoo_dot_general(*operands, dimension_numbers=dimensions)
    assert isinstance(result, sparse.BCOO) == (sides == "ss")
    same(sparse.todense(result), jax.lax.dot_general(M, M, dimensions))


def test_transforms_take_and_give_sparse_arrays():
    mat = sparse.BCOO.fromdense(M, n_batch=1)
    doubled = jax.jit(lambda m: m * 2)(mat)
    same(doubled.todense(), 2 * M)
    mapped = jax.vmap(lambda m: m.T if m.shape == (3, 4, 2) else None)(mat)
    assert mapped.shape == (2, 2, 4, 3) and mapped.n_batch == 1
    same(mapped.todense(), jnp.transpose(M, (0, 3, 2, 1)))
    same(jax.vmap(lambda m: sparse.BCOO.fromdense(m, nse=24))(M).todense(), M)
    slope = sparse.grad(lambda m: (m.todense() ** 3).sum())(mat)
    same(slope.todense(), 3 * M ** 2)


def test_scipy_s_matrices():
    import scipy.sparse as scipy_sparse
    matrix = scipy_sparse.csr_matrix(np.asarray(M[0, :, :, 0]))
    same(sparse.BCOO.from_scipy_sparse(matrix).todense(), M[0, :, :, 0])
    same(sparse.BCSR.from_scipy_sparse(matrix).todense(), M[0, :, :, 0])


def test_what_is_not_there_says_so():
    mat = sparse.BCOO.fromdense(M)
    with pytest.raises(NotImplementedError, match="dense output"):
        sparse.sparsify(jnp.exp)(mat)
    with pytest.raises(sparse.SparseEfficiencyError, match="increasing n_batch"):
        mat.update_layout(n_batch=1)
    with pytest.raises(AttributeError, match="does not have it"):
        sparse.CSR  # noqa: B018
    with pytest.raises(ValueError, match="do not make an array of shape"):
        sparse.BCOO((jnp.ones(2), jnp.zeros((3, 2), int)), shape=(3, 4))
