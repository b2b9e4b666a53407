"""Sparse arrays: layouts, padding, jit and vmap; compat compares them with JAX."""

import numpy as np
import pytest

import maxjax as jax
import maxjax.experimental.sparse.linalg
import maxjax.numpy as jnp
from maxjax.experimental import sparse
from tests.support.against_jax import agree, errors_of
from tests.support.selection import extended_but

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


@pytest.mark.parametrize("n_batch, dimensions", [
    (0, (((3,), (3,)), ((), ()))), (1, (((2, 3), (2, 3)), ((0,), (0,)))),
    (2, (((2,), (2,)), ((0, 1), (0, 1)))), (2, (((0, 3), (0, 3)), ((1,), (1,))))])
@pytest.mark.parametrize("sides", ["sd", "ds", "ss"])
def test_dot_general(n_batch, dimensions, sides):
    if sides == "ss" and n_batch == 2 and len(dimensions[1][0]) == 1:
        pytest.skip("two sparse arrays are not contracted along batch dimensions, as in JAX")
    mat = sparse.BCOO.fromdense(M, n_batch=n_batch)
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


def test_padding_of_an_operand_does_not_become_an_element_of_the_next():
    mat = sparse.BCOO.fromdense(jnp.array([0., 5.]), nse=2)
    mat = sparse.BCOO((mat.data + 1, mat.indices), shape=(2,))      # what padding holds is ignored
    same(sparse.bcoo_concatenate([mat, mat], dimension=0).todense(), [0, 6, 0, 6])
    same(sparse.bcoo_rev(mat, (0,)).todense(), [6, 0])
    same(sparse.bcoo_reduce_sum(mat, axes=(0,)).todense(), 6)
    same(mat @ jnp.ones(2), 6)
    same((mat * mat).todense(), [0, 36])
    same(mat[1:].todense(), [6])


# --- against JAX ----------------------------------------------------------------------------------

def _sparse(j):
    if j is jax:
        return sparse
    from jax.experimental import sparse as theirs
    return theirs


DENSE = np.asarray(M)
SMALL = np.asarray(M[0, :, :, 0])


def parts(mat):
    """Buffers and what is static, so that layouts are compared too."""
    if isinstance(mat, (tuple, list)):
        return [parts(x) for x in mat]
    if not hasattr(mat, "nse"):
        return mat
    buffers = [mat.data, mat.indices] if hasattr(mat, "indices") else [mat.data, mat.row, mat.col]
    return [*buffers, *([mat.indptr] if hasattr(mat, "indptr") else []), *mat.shape]


OPERATIONS = {
    "transpose": lambda s, m: s.bcoo_transpose(m, permutation=_inside(m, lambda k: k[::-1])),
    "rev": lambda s, m: s.bcoo_rev(m, (0, 2)).todense(),
    "slice": lambda s, m: s.bcoo_slice(m, start_indices=(0, 1, 1, 0), limit_indices=(2, 3, 4, 1),
                                       strides=(1, 1, 2, 1)).todense(),
    "dynamic_slice": lambda s, m: s.bcoo_dynamic_slice(m, (1, 0, -2, 1), (1, 2, 2, 1)).todense(),
    "reduce_sum": lambda s, m: s.bcoo_reduce_sum(m, axes=(0, 2)).todense(),
    "sort_indices": lambda s, m: s.bcoo_sort_indices(m),
    "sum_duplicates": lambda s, m: (m + m).sum_duplicates(nse=30),
    "concatenate": lambda s, m: s.bcoo_concatenate([m, m], dimension=0).todense(),
    "concatenate a row": lambda s, m: s.bcoo_concatenate(
        [m[0, 0, None], m[1, 1:3], m[:1, 2].update_layout(n_batch=0)], dimension=0).todense()
    if not m.n_dense else m,
    "concatenate rows": lambda s, m: s.bcoo_concatenate(
        [m[0, 0, None], m[:1, 2].update_layout(n_batch=0), m[1, 1, None]], dimension=0)
    if not m.n_dense else m,
    "one layout": lambda s, m: m[:1].update_layout(n_batch=1),
    "broadcast": lambda s, m: s.bcoo_broadcast_in_dim(
        m, shape=(3, *m.shape), broadcast_dimensions=(1, 2, 3, 4)),
    "multiply": lambda s, m: ((m * m).todense(), m * DENSE, 2 * m, m / 2.0),
    "dot": lambda s, m: m @ DENSE[0, 0, 0] if not m.n_dense else m,
    "getitem": lambda s, m: (m[1].todense(), m[:, None].todense(), m[..., ::-1].todense()),
    "reshape": lambda s, m: m.reshape(*m.shape[:m.n_batch], -1, *m.shape[m.ndim - m.n_dense:])
    if not m.n_dense else m,
    "update_layout": lambda s, m: m.update_layout(n_batch=0, n_dense=0).sort_indices().todense(),
    "repr": lambda s, m: repr(m),
}


def _inside(mat, change):
    """A permutation of each kind of dimensions."""
    last = mat.n_batch + mat.n_sparse
    kinds = [list(range(mat.n_batch)), list(range(mat.n_batch, last)),
             list(range(last, mat.ndim))]
    return [axis for kind in kinds for axis in change(kind)]


@pytest.mark.parametrize("layout", [(0, 0), (1, 1)])
@pytest.mark.parametrize("name", extended_but([*OPERATIONS][::3], OPERATIONS))
def test_operations_have_the_layouts_of_jax(name, layout):
    n_batch, n_dense = layout

    def run(j):
        mat = _sparse(j).BCOO.fromdense(DENSE, n_batch=n_batch, n_dense=n_dense)
        return parts(OPERATIONS[name](_sparse(j), mat))
    agree(run, weak=False)


@pytest.mark.parametrize("kind", ["COO", "CSR", "CSC", "BCSR"])
def test_matrices_of_each_format_are_as_in_jax(kind):
    def run(j):
        mat = getattr(_sparse(j), kind).fromdense(SMALL)
        more = [mat.T.todense(), parts(mat.T)] if kind != "BCSR" else [parts(mat.to_bcoo())]
        return [parts(mat), mat.todense(), mat @ SMALL[0], mat @ SMALL.T, *more]
    agree(run, weak=False)


@pytest.mark.parametrize("layout", [(1, 0), (1, 1)])
def test_compressed_rows_have_batches(layout):
    n_batch, n_dense = layout
    array = DENSE[(0,) * (2 - n_batch - n_dense)]

    def run(j):
        s = _sparse(j)
        mat = s.BCSR.fromdense(array, n_batch=n_batch, n_dense=n_dense)
        joined = s.bcsr_concatenate([mat, mat], dimension=n_batch)
        return [parts(mat), mat.todense(), joined.todense(),
                s.bcsr_extract(mat.indices, mat.indptr, array + 1),
                parts(s.bcsr_broadcast_in_dim(mat, shape=(2, *array.shape),
                                              broadcast_dimensions=range(1, array.ndim + 1)))]
    agree(run, weak=False)


@pytest.mark.parametrize("format", ["COO", "CSR", "BCOO", "BCSR"])
def test_derivatives_of_products(format):
    mat = getattr(sparse, format).fromdense(jnp.asarray(SMALL))
    leaves, tree = jax.tree.flatten(mat)

    def product(data, x):
        return jax.tree.unflatten(tree, [data, *leaves[1:]]) @ x

    def dense(data, x):
        return jax.tree.unflatten(tree, [data, *leaves[1:]]).todense() @ x

    x = jnp.asarray(SMALL[0])
    for transform in (jax.jacfwd, jax.jacrev):
        ours, theirs = (transform(f, (0, 1))(mat.data, x) for f in (product, dense))
        jax.tree.map(same, ours, theirs)
    many = jnp.stack([x, 2 * x])
    same(jax.jit(jax.vmap(product, (None, 0)))(mat.data, many), many @ SMALL.T)
    same(jax.vmap(jax.grad(lambda d, x: product(d, x).sum()), (None, 0))(mat.data, many)[1],
         2 * jax.grad(lambda d, x: dense(d, x).sum())(mat.data, x))


def test_random_arrays_are_those_of_jax():
    for options in ({}, {"nse": 3}, {"nse": 2, "n_batch": 1}, {"nse": 2, "unique_indices": False},
                    {"nse": 1, "n_batch": 1, "n_dense": 1}, {"sorted_indices": True}):
        agree(lambda j: parts(_sparse(j).random_bcoo(j.random.key(3), (2, 3, 4), dtype="float32",
                                                     **options)))  # noqa: B023


SPARSIFIED = {
    "shared indices": lambda j, x: (x * x, x + x, x - x),
    "functions": lambda j, x: (j.numpy.sin(x), -x, x ** 3, abs(x), x.astype(int)),
    "moves": lambda j, x: (x.T, x[1], x[:, ::2], x.reshape(12), j.numpy.stack([x, x])),
    "sums": lambda j, x: (x.sum(0), x.sum(), j.numpy.linalg.norm(x)),
    "a jitted function": lambda j, x: j.jit(lambda y: (2 * y, y * 3))(x)[1],
    "a loop": lambda j, x: j.lax.fori_loop(0, 3, lambda i, y: 2 * y, x),
    "a branch": lambda j, x: j.lax.cond(x.shape[0] > 2, lambda y: 2 * y, lambda y: -y, x),
    "todense": lambda j, x: _sparse(j).todense(x) + 1,
    "products": lambda j, x: (x @ SMALL.T, SMALL @ x.T, x @ x.T, x * SMALL),
}


@pytest.mark.parametrize("name", SPARSIFIED)
@pytest.mark.parametrize("use_tracer", [False, True])
def test_sparsified_functions_agree_with_jax(name, use_tracer):
    def run(j):
        s = _sparse(j)
        mat = s.BCOO.fromdense(SMALL)
        out = s.sparsify(lambda x: SPARSIFIED[name](j, x), use_tracer=use_tracer)(mat)
        outs = out if isinstance(out, tuple) else [out]
        stored = name == "shared indices" and not use_tracer
        return ([x.todense() if hasattr(x, "nse") else x for x in outs],
                [x.nse for x in outs] if stored else [])
    if use_tracer and name in ("a loop", "a branch"):      # JAX has no rules for them there
        out = run(jax)
        same(out[0][0], (8 if name == "a loop" else 2) * SMALL)
    else:
        agree(run, weak=False)


@pytest.mark.parametrize("call", [
    lambda j, s, m: s.sparsify(j.numpy.exp)(m), lambda j, s, m: s.sparsify(j.lax.sort)(m),
    lambda j, s, m: m + 1, lambda j, s, m: m - SMALL, lambda j, s, m: 2 / m, lambda j, s, m: m ** 0,
    lambda j, s, m: m == m, lambda j, s, m: m @ m, lambda j, s, m: m.reshape(5, 5),
    lambda j, s, m: s.bcoo_transpose(m, permutation=(0, 0)), lambda j, s, m: m[:, 0, 0],
    lambda j, s, m: s.BCOO((m.data[1:], m.indices), shape=m.shape),
    lambda j, s, m: s.bcoo_concatenate([m, SMALL], dimension=0),
    lambda j, s, m: s.bcoo_squeeze(m, dimensions=(0,)), lambda j, s, m: j.vmap(lambda m: m)(m),
    lambda j, s, m: j.jit(lambda m: m.sum_duplicates())(m),
    lambda j, s, m: s.BCSR.fromdense(SMALL).T, lambda j, s, m: s.COO.fromdense(SMALL) * 2,
    lambda j, s, m: s.empty((2, 3), sparse_format="none"),
    lambda j, s, m: s.random_bcoo(j.random.key(0), (2, 3), nse=20)])
def test_errors_are_those_of_jax(call):
    ours, theirs = errors_of(lambda j: call(j, _sparse(j), _sparse(j).BCOO.fromdense(SMALL)))
    assert type(ours).__name__ == type(theirs).__name__
    first = [str(error).split("\n")[0].replace("maxjax", "jax") for error in (ours, theirs)]
    assert first[0].split("[")[0] == first[1].split("[")[0]


def test_jaxprs_show_jax_s_primitives():
    mat = sparse.BCOO.fromdense(jnp.asarray(SMALL))
    text = str(jax.make_jaxpr(lambda m, x: (m @ x, m.todense(), m.T, m.sort_indices(), m @ m.T))(
        mat, jnp.ones(4)))
    for name in ("bcoo_dot_general", "bcoo_todense", "bcoo_transpose", "bcoo_sort_indices",
                 "bcoo_spdot_general"):
        assert f"{name}[" in text
    assert "spinfo=SparseInfo(shape=(3, 4), indices_sorted=True, unique_indices=True)" in text
    bufs, tree = jax.tree.flatten(mat)
    same(sparse.todense_p.bind(*bufs, tree=tree), SMALL)


def test_linear_systems_are_differentiable():
    mat = sparse.CSR.fromdense(jnp.asarray(SMALL[:, :3] + 3 * np.eye(3, dtype="float32")))
    b = jnp.asarray(SMALL[1, :3]) + 1

    def solved(data, b):
        return sparse.linalg.spsolve(data, mat.indices, mat.indptr, b)

    def dense(data, b):
        return jnp.linalg.solve(sparse.CSR((data, mat.indices, mat.indptr),
                                           shape=(3, 3)).todense(), b)

    np.testing.assert_allclose(solved(mat.data, b), dense(mat.data, b), 1e-5, 1e-6)
    for transform in (jax.jacfwd, jax.jacrev):
        ours, theirs = (transform(f, (0, 1))(mat.data, b) for f in (solved, dense))
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, 1e-4, 1e-5), ours, theirs)


@pytest.mark.parametrize("spectrum", [np.ones(40), np.arange(1.0, 41), 1.2 ** np.arange(40)])
def test_greatest_eigenvalues(spectrum):
    basis, _ = np.linalg.qr(RNG.normal(size=(40, 40)))
    matrix = jnp.asarray(basis * spectrum @ basis.T, jnp.float32)
    start = jnp.asarray(RNG.normal(size=(40, 3)), jnp.float32)
    theta, vectors, steps = sparse.linalg.lobpcg_standard(matrix, start)
    np.testing.assert_allclose(theta, np.sort(spectrum)[::-1][:3], 1e-5)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-5)
    np.testing.assert_allclose(matrix @ vectors, vectors * theta, atol=1e-3 * spectrum.max())
    assert 0 < steps < 100


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("kind", ["BCOO", "BCSR"])
@pytest.mark.parametrize("place", ["in_axes", "out_axes"])
def test_axes_of_vmap_that_are_no_batch_dimensions(place, kind, axis):
    """The buffers have axes there, which mean something else."""
    def call(j):
        array = getattr(_sparse(j), kind).fromdense(j.numpy.arange(24.).reshape(2, 3, 4), n_batch=1)
        return j.vmap(lambda x: x, **{place: axis})(array)

    ours, theirs = errors_of(call)
    assert (type(ours), str(ours)) == (type(theirs), str(theirs))
