"""Random programs over Explicit axes, for either library: functions of ``jax.numpy``, ``lax`` and
``nn`` of arrays that are split along some dimensions."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

MESH = (("x", 4), ("y", 2))

Shape = tuple[int, ...]
Spec = tuple[str | None, ...]

# Text of an expression over the operands, which names ``jnp``, ``lax``, ``jax`` and ``np``.
UNARY = """
jnp.{f}(a): abs sign exp sin tanh isnan isinf isneginf isposinf isfinite iscomplex isreal imag
    real conj angle round floor ceil trunc rint sqrt cbrt square negative positive reciprocal
    degrees deg2rad sinc i0 signbit nan_to_num log1p expm1 exp2 log2 fabs logical_not spacing
    frexp modf copy ravel sum prod max min mean std var median any all argmax argmin ptp nansum
    nanmax nanmean nanstd nanargmax count_nonzero cumsum cumprod nancumsum sort argsort flip
    fliplr flipud transpose atleast_1d atleast_2d atleast_3d squeeze zeros_like ones_like
    empty_like diff trace diagonal triu tril rot90 average nonzero flatnonzero argwhere unique
    gradient ediff1d cov corrcoef diag diagflat iscomplexobj isscalar size shape ndim sort_complex
    trim_zeros asarray array nanmedian nanmin vander packbits invert bitwise_count
    logaddexp.reduce matrix_transpose cumulative_sum permute_dims
jnp.{f}(a, axis=0): sum max mean std argmin cumsum sort argsort flip any all median nansum prod
    diff count_nonzero ptp nanmean var cumprod unstack gradient delete_0 average squeeze
jnp.{f}(a, axis=-1): sum max mean std argmax cumsum sort argsort flip any all median nansum prod
    diff nancumprod cumulative_sum cumulative_prod average nanmedian nanargmin unstack expand_dims
jnp.{f}(a, keepdims=True): sum max mean std median nansum argmax average count_nonzero
jax.nn.{f}(a): relu relu6 sigmoid softplus soft_sign silu gelu elu celu selu log_sigmoid glu
    softmax log_softmax logsumexp standardize hard_tanh hard_sigmoid mish sparse_plus squareplus
    leaky_relu
lax.{f}(a): abs neg sign floor is_finite erf lgamma digamma rsqrt cbrt exp2 population_count sin
    stop_gradient full_like reduce_and optimization_barrier
a.{f}: T mT real imag at size ndim flat shape dtype nbytes
a.{f}(): sum copy ravel flatten squeeze transpose mean argmax sort astype max any round conj trace
"""

MORE = """
jnp.where(a > 0, a, 0.)
jnp.where(a > 0)
jnp.where(a > 0, size=3)
jnp.nonzero(a, size=3)
jnp.argwhere(a, size=3)
jnp.flatnonzero(a, size=3)
jnp.unique(a, size=3)
jnp.clip(a, 0., 1.)
jnp.clip(a, 0.)
jnp.tile(a, 0)
jnp.tile(a, 2)
jnp.tile(a, (2, 1))
jnp.tile(a, (1, 1))
jnp.repeat(a, 2)
jnp.repeat(a, 2, axis=0)
jnp.repeat(a, 2, axis=-1)
jnp.roll(a, 1)
jnp.roll(a, 1, axis=0)
jnp.roll(a, (1, 1), axis=(0, -1))
jnp.roll(a, 4, axis=0)
jnp.roll(a, 4)
jnp.fft.ifftshift(a, axes=-1)
jnp.pad(a, 1)
jnp.pad(a, [(0, 0)] * (a.ndim - 1) + [(1, 1)])
jnp.pad(a, 1, mode="edge")
jnp.pad(a, 1, mode="wrap")
jnp.reshape(a, -1)
jnp.reshape(a, (2, -1))
jnp.reshape(a, (*a.shape, 1))
jnp.reshape(a, (1, *a.shape))
jnp.reshape(a[:, None], (*a.shape[:-1], 2, 1, -1))
jnp.reshape(a[..., None, :], (-1, *a.shape[1:], 1))
jnp.kron(jnp.ones(2), a)
jnp.kron(a, jnp.ones((2, 2)))
jnp.expand_dims(a, 0)
jnp.expand_dims(a, (0, -1))
jnp.swapaxes(a, 0, -1)
jnp.moveaxis(a, 0, -1)
jnp.rollaxis(a, -1)
jnp.split(a, 2)
jnp.split(a, 2, axis=-1)
jnp.array_split(a, 3)
jnp.broadcast_to(a, (2, *a.shape))
jnp.full_like(a, 2)
jnp.full_like(a, 2, dtype=int)
jnp.take(a, 0)
jnp.take(a, 0, axis=0)
jnp.take(a, jnp.array([0, 1]), axis=-1)
jnp.take(a, jnp.array([0, 1]))
jnp.take_along_axis(a, jnp.argsort(a, -1), -1)
jnp.compress(np.array([True, False, True, True]), a, axis=-1)
jnp.delete(a, 0, axis=0)
jnp.insert(a, 0, 1., axis=0)
jnp.append(a, 1.)
jnp.percentile(a, 30.)
jnp.quantile(a, .3, axis=0)
jnp.quantile(a, jnp.array([.3, .5]), axis=-1)
jnp.histogram(a)
jnp.bincount(a.ravel().astype(int), length=4)
jnp.digitize(a, jnp.array([0., 1.]))
jnp.searchsorted(jnp.array([0., 1.]), a)
jnp.partition(a, 1)
jnp.argpartition(a, 1, axis=0)
jnp.piecewise(a, [a < 0, a >= 0], [-1., 1.])
jnp.piecewise(a, [a < 0], [lambda a: -a, lambda a: a])
jnp.select([a < 0, a > 1], [a, a * 2], 0.)
jnp.choose((a > 0).astype(int), [a, -a])
jnp.apply_along_axis(jnp.sum, 0, a)
jnp.apply_along_axis(jnp.cumsum, -1, a)
jnp.apply_over_axes(jnp.sum, a, (0,))
jnp.einsum("...->...", a)
jnp.einsum("i...->...", a)
jnp.kron(a, jnp.ones(2))
jnp.outer(a, jnp.ones(3))
jnp.trace(a, offset=1)
jnp.triu(a, 1)
jnp.fft.fft(a)
jnp.fft.fft(a, axis=0)
jnp.fft.fftshift(a)
jnp.linalg.norm(a)
jnp.linalg.norm(a, axis=0)
jnp.linalg.vector_norm(a, axis=-1)
jnp.heaviside(a, 1.)
jnp.hypot(a, 2.)
jnp.fmax(a, 0.)
jnp.isclose(a, 1.)
jnp.allclose(a, 1.)
jnp.interp(a, jnp.array([0., 1.]), jnp.array([0., 2.]))
jnp.polyval(jnp.array([1., 2.]), a)
jnp.stack([a, a])
jnp.stack([a, a], axis=-1)
jnp.concatenate([a, a])
jnp.concatenate([a, a], axis=-1)
jnp.vstack([a, a])
jnp.hstack([a, a])
jnp.dstack([a, a])
jnp.column_stack([a, a])
jnp.block([a, a])
jnp.meshgrid(a.ravel(), jnp.ones(2))
jnp.convolve(a.ravel(), jnp.ones(2))
jnp.correlate(a.ravel(), jnp.ones(2))
jnp.unwrap(a)
jnp.nanquantile(a, .4)
jnp.floor_divide(a, 2.)
jnp.divmod(a, 2.)
jnp.ldexp(a, 2)
jnp.float_power(a, 2.)
jnp.unravel_index(a.astype(int), (8, 8))
jnp.astype(a, int)
jnp.view(a) if hasattr(jnp, "view") else a
a.astype("bfloat16")
a.view("int32")
a[0]
a[-1]
a[..., 0]
a[1:3]
a[::2]
a[:, None] if a.ndim else a
a[None]
a[..., ::-1]
a[jnp.array([0, 1])]
a[jnp.array([[0], [1]])]
a[..., jnp.array([0, 1])]
a[a > 0] if a.ndim == 1 else a
a.at[0].set(1.)
a.at[0].add(1.)
a.at[..., 0].mul(2.)
a.at[jnp.array([0, 1])].set(0.)
a.at[1:3].get()
a.reshape(-1, 2)
a.sum(0, where=a > 0)
a.max(initial=0.)
a.mean(-1, keepdims=True)
a.sum(-1, dtype=int)
a ** 2
2. ** a
-a
a > 1
a // 2
a % 3
lax.top_k(a, 2)
lax.approx_max_k(a, 2)
lax.approx_min_k(a, 2)
lax.approx_max_k(a, 2, reduction_dimension=0)
lax.cumsum(a)
lax.cumlogsumexp(a, a.ndim - 1)
lax.rev(a, (0,))
lax.sort(a)
lax.slice_in_dim(a, 0, 2)
lax.dynamic_slice_in_dim(a, 1, 2)
lax.dynamic_update_slice_in_dim(a, a[:1], 1, 0)
lax.dynamic_index_in_dim(a, 1)
lax.squeeze(a[None], (0,))
lax.broadcast(a, (2,))
lax.expand_dims(a, (0,))
lax.reduce_max(a, (0,))
lax.reduce_precision(a, 5, 10)
lax.reduce(a, 0., lax.add, (0,))
lax.argmax(a, 0, int)
lax.collapse(a, 0)
lax.pad(a, 0., [(0, 0, 0)] * a.ndim)
lax.pad(a, 0., [(1, 0, 0)] * a.ndim)
lax.clamp(0., a, 1.)
lax.select(a > 0, a, a)
lax.integer_pow(a, 3)
lax.convert_element_type(a, "int32")
lax.bitcast_convert_type(a, "int32")
lax.bitcast_convert_type(a, "int16")
lax.map(lambda x: x * 2, a)
lax.scan(lambda c, x: (c, x), 0., a)
lax.fori_loop(0, 2, lambda i, c: c * 2, a)
lax.while_loop(lambda c: c.sum() < 3, lambda c: c * 2, a)
lax.cond(True, lambda x: x, lambda x: -x, a)
lax.associative_scan(jnp.add, a)
lax.reduce_window(a, 0., lax.add, (1,) * a.ndim, (1,) * a.ndim, "SAME")
lax.reduce_window(a, 0., lax.add, (2,) * a.ndim, (1,) * a.ndim, "SAME")
jax.vmap(lambda x: x * 2)(a)
jax.vmap(jnp.sum)(a)
jax.vmap(jnp.sin, in_axes=-1, out_axes=-1)(a)
jax.jit(jnp.sin)(a)
jax.grad(lambda a: jnp.sin(a).sum())(a)
jax.jvp(jnp.sin, (a,), (a,))
jax.checkpoint(jnp.sin)(a)
jax.nn.one_hot(a.astype(int), 4)
jax.nn.softmax(a, axis=0)
jax.nn.logsumexp(a, axis=-1)
jax.nn.standardize(a, axis=0)
jax.scipy.special.logsumexp(a)
jax.scipy.special.xlogy(a, 2.)
jax.scipy.stats.norm.pdf(a)
jax.ops.segment_sum(a, jnp.zeros(a.shape[0], int), 2)
jax.random.normal(jax.random.key(0), a.shape) + a
jax.random.permutation(jax.random.key(0), a)
jax.random.bernoulli(jax.random.key(0), a)
jax.random.categorical(jax.random.key(0), a)
"""

BINARY = """
jnp.{f}(a, b): add subtract multiply divide floor_divide power maximum minimum fmax fmin hypot
    arctan2 logaddexp logaddexp2 copysign nextafter heaviside fmod remainder mod equal less
    greater_equal not_equal logical_and logical_or logical_xor isclose allclose array_equal
    array_equiv float_power ldexp_ divmod dot matmul inner outer vdot kron cross tensordot_1
    convolve_ append searchsorted_ isin setdiff1d_ polyval true_divide gcd_ bitwise_and_ where_
    cov_ vecdot matvec vecmat interp_ unwrap_ broadcast_arrays union1d_ polyadd polymul_ take_
    compress_ digitize_ cross_ select_ trapezoid average_ corrcoef_
lax.{f}(a, b): add sub mul div rem pow max min atan2 nextafter eq lt and_ complex igamma dot
jnp.{f}([a, b]): concatenate stack vstack hstack dstack column_stack block
jnp.{f}([a, b], axis=-1): concatenate stack
"""

MORE_BINARY = """
jnp.where(a > 0, a, b)
jnp.where(a > 0, b, 0.)
jnp.where(b > 0, a, b)
jnp.where(a > 0, 1., b)
jnp.clip(a, b, 3.)
jnp.clip(a, None, b)
jnp.select([a < 0], [b], 0.)
jnp.piecewise(a, [a < 0], [b[0] if b.ndim else b, 1.])
jnp.einsum("...,...->...", a, b)
jnp.einsum("...i,...i->...", a, b)
jnp.einsum("i...,i...->...", a, b)
jnp.tensordot(a, b, 1)
jnp.tensordot(a, b, 0)
jnp.average(a, weights=b)
jnp.average(a, axis=-1, weights=b)
jnp.take_along_axis(a, b.astype(int), 0)
jnp.broadcast_arrays(a, b)
jnp.linalg.vecdot(a, b)
jnp.sum(a, where=b > 0)
jnp.max(a, where=b > 0, initial=0.)
jnp.mean(a, 0, where=b > 0)
a + b
a @ b
a > b
a.at[0].set(b[0])
a.at[:].set(b)
a.at[:].add(b)
lax.select(a > 0, a, b)
lax.clamp(a, b, a)
lax.dynamic_update_slice(a, b, (0,) * a.ndim)
jax.vmap(jnp.add)(a, b)
jax.vmap(jnp.add, (0, None))(a, b)
jax.grad(lambda a: (a * b).sum())(a)
jax.vjp(jnp.multiply, a, b)[1](a * b)
jax.nn.softmax(a, where=b > 0)
jax.nn.logsumexp(a, b=b)
jax.scipy.special.xlogy(a, b)
lax.cond(True, lambda a, b: a, lambda a, b: b, a, b)
lax.scan(lambda c, x: (c + b, x), b, a)
"""

SHAPES: tuple[Shape, ...] = ((8,), (4, 8), (8, 8), (8, 4, 8), (1, 8), (8, 1), (2, 8))


def expressions(table: str, more: str) -> list[str]:
    """The expressions of a table, whose lines are patterns with names, or names that go on."""
    found, pattern = [], ""
    for line in table.strip().split("\n"):
        if not line.startswith(" "):
            pattern, _, line = line.partition(": ")
        found += [pattern.replace("{f}", name) for name in line.split()
                  if not name.endswith(("_", "_0", "_1"))]
    return [*found, *more.strip().split("\n")]


def random_spec(rng: random.Random, shape: Shape) -> Spec:
    """What splits each dimension: a mesh axis divides it, and is used once."""
    axes = [*MESH]
    rng.shuffle(axes)
    spec: list[str | None] = []
    for size in shape:
        axis = next((name for name, parts in axes if size % parts == 0), None)
        if axis is not None and rng.random() < 0.55:
            axes = [pair for pair in axes if pair[0] != axis]
            spec.append(axis)
        else:
            spec.append(None)
    return tuple(spec)


def programs(seed: int, count: int) -> list[tuple[str, list[tuple[Shape, Spec]]]]:
    """Expressions, with the shapes and specs of their operands."""
    rng = random.Random(seed)
    unary, binary = expressions(UNARY, MORE), expressions(BINARY, MORE_BINARY)
    found = []
    for _ in range(count):
        two = rng.random() < 0.4
        shape = rng.choice(SHAPES)
        shapes = [shape]
        if two:
            shapes.append(rng.choice([shape, shape, shape, shape[1:] or shape, shape[-1:],
                                      (1, *shape[1:]), (*shape[:-1], 1), rng.choice(SHAPES)]))
        found.append((rng.choice(binary if two else unary),
                      [(each, random_spec(rng, each)) for each in shapes]))
    return found


def outcomes(jax: Any, cases: list[tuple[str, list[tuple[Shape, Spec]]]]) -> list[str]:
    """The types of each program's results, or the class of its error."""
    import numpy as np
    jnp, lax = jax.numpy, jax.lax
    S = jax.sharding
    mesh = S.AbstractMesh(tuple(size for _, size in MESH), tuple(name for name, _ in MESH),
                          axis_types=(S.AxisType.Explicit,) * len(MESH))
    answers = []
    with S.use_abstract_mesh(mesh):
        for text, operands in cases:
            args = [jax.ShapeDtypeStruct(shape, "float32", sharding=S.NamedSharding(
                mesh, S.PartitionSpec(*spec))) for shape, spec in operands]
            names = {"jax": jax, "jnp": jnp, "lax": lax, "np": np}
            function: Callable[..., Any] = eval(f"lambda a, b=None: {text}", names)
            try:
                closed = jax.make_jaxpr(function)(*args)
            except Exception as error:
                answers.append(type(error).__name__)
            else:
                answers.append(", ".join(aval.str_short(True) for aval in closed.out_avals))
    return answers
