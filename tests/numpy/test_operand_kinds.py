"""Operands of kinds that programs seldom try, against real JAX: narrow integers and booleans, weak
scalars, empty arrays, infinities, several dtypes at once."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest

import maxjax
from maxjax._base.config import enable_x64
from tests.numpy.test_edge_values import check, expressions


@jax.tree_util.register_dataclass
@maxjax.tree_util.register_dataclass
@dataclasses.dataclass
class Given:
    """What gives an array when asked."""

    array: Any

    def __jax_array__(self) -> Any:
        return self.array


CONSTANTS: dict[str, Any] = {
    "G": Given,
    "np": np, "T": np.eye(3, dtype=bool), "H": np.full((2, 3), 100, np.int8),
    "V": np.array([1, 2, 3], np.int8), "F": np.array([1.5, 2.5, -1], np.float32),
    "C": np.array([1 + 1j, 1, complex(np.nan, 1), complex(1, np.nan), complex(1, np.nan), 1j,
                   complex(-0., 1), complex(1, -np.nan), complex(np.nan, 0)], np.complex64),
    "S": maxjax.lax.ScatterDimensionNumbers((), (0,), (0,)),
    "B": np.array([16777217., 3e10, -300., 300., 1e-300, 2.5]),
    "L": np.array([2**40 + 1, 3, -2**33 - 7, 300, 0]),
    "D": (((0,), (0,)), ((), ())), "W": np.array([1, 0, 1, 1, 0, 0, 1, 1]),
}

# As in test_edge_values: `j` is jax.numpy, `d` jax, `l` jax.lax, `s` jax.scipy.

CLOSENESS = """
j.isclose(j.uint8(100), j.uint8(101), atol=1); j.isclose(j.int32(0), j.int32(-2**31))
j.isclose(j.int8([-128, -127]), j.int8([-128, 1])); j.isclose(j.uint8(0), j.uint8(255), rtol=.1)
j.allclose(j.uint8([7, 200]), j.uint8([8, 201]), atol=1); j.isclose(0, 0, rtol=j.inf)
j.isclose(j.int32([-2**31, 2**24]), j.int32([2**31 - 1, 2**24 + 1]), rtol=0, atol=0)
j.isclose(1, 1, atol=j.nan); j.isclose(True, False); j.isclose(j.int4(-8), j.int4(7), atol=1)
j.isclose(j.arange(2), j.arange(2) + 1, atol=j.array([.5, 1])); j.isclose(j.int32(3), j.float16(3))
j.isclose(d.random.split(d.random.key(0)), d.random.split(d.random.key(0)))
[j.isclose(*np.random.default_rng(0).integers(-99, 99, (2, 99)).astype(t), rtol=.2, atol=a) \
for t in ('int8', 'uint8', 'int16', 'uint32') for a in (0, 5)]
d.jit(j.isclose)(j.uint8(200), j.uint8(201), atol=1)
j.allclose(G(j.ones(3)), G(j.ones(3))); j.allclose(j.ones(3), G(j.ones(3)))
j.isclose(G(j.ones(3)), G(j.arange(3.))); j.allclose(1., G(j.ones(3)))
"""

SUMS = """
j.einsum('b,ba->b', j.ones(2), j.ones((2, 3), bool)); j.einsum('a,b->', j.ones(2), j.ones(3, bool))
j.einsum('b,ba->b', j.ones(2), j.full((2, 3), 100, 'int8')); j.einsum('aa,b->b', T, j.ones(2))
j.einsum('b,ba->b', j.ones(2, 'int8'), H, preferred_element_type='float32')
j.einsum('b,ba->b', j.ones(2, 'int8'), H, preferred_element_type='int32')
j.einsum('b,ba->b', j.ones(2, 'int8'), H); j.einsum('b,ba->b', j.ones(2, 'int16'), H)
j.einsum('ba,b->b', H.astype('uint8') * 2, -j.ones(2, 'int8')); j.einsum('ab->a', H)
j.einsum('ab->a', H, preferred_element_type='int32'); j.einsum('aa', T)
j.einsum('ab->a', T, preferred_element_type='float32')
j.einsum('ab->a', j.full((2, 3), 3e4, 'float16'), preferred_element_type='float32')
j.einsum('b,ba->b', j.ones(2, int), j.full((2, 3), .5), preferred_element_type='int32')
j.einsum('b,ba->b', j.ones(2), j.full((2, 300), 1.0078125, 'bfloat16'))
j.einsum('b,ba->b', j.ones(2), j.full((2, 3), 2**30)); j.einsum(',a->', 2., j.ones(3, bool))
j.einsum('b,ba,bc->b', T[0, :2], T[:2], H[:, :2], preferred_element_type='float32')
j.sum(j.full((2, 3), .5), 1, dtype=bool); j.prod(j.full((2, 3), .5), 1, dtype=bool)
j.sum(j.ones(256), dtype=bool); j.sum(j.full(3, .5), dtype='int32')
"""

PRODUCTS = """
l.dot_general(V, F, D, preferred_element_type='int32')
l.dot_general(F, V, D, preferred_element_type='int32')
l.dot_general(V, F, D, preferred_element_type='int8'); l.dot_general(V, F, D)
l.dot_general(F, F, D, preferred_element_type='int32')
l.dot_general(F, -F, D, preferred_element_type='uint32')
l.dot_general(F, -F, D, preferred_element_type='uint8')
l.dot_general(F, F * j.inf, D, preferred_element_type='int32')
l.dot_general(j.array([300.]), V[:1], D, preferred_element_type='int8')
l.dot_general(F[:2], j.array([True, True]), D, preferred_element_type='int32')
l.dot_general(j.array([1, -1.]), j.array([1, 1]), D, preferred_element_type='bool')
l.dot_general(j.array([1, -1.]), j.array([1., 1]), D, preferred_element_type='bool')
l.dot_general(j.full(1, 7e4), j.full(1, .5, 'float16'), D, preferred_element_type='float16')
l.dot_general(F.astype('bfloat16'), F, D, preferred_element_type='int32')
l.dot_general(j.full(1, 300, 'float16'), j.full(1, 300, 'float16'), D, \
preferred_element_type='int32')
j.dot(V, F, preferred_element_type='int32')
l.conv_general_dilated(j.ones((1, 1, 3), 'int8'), j.ones((1, 1, 2)), (1,), 'VALID', \
preferred_element_type='int32')
l.conv_general_dilated(j.ones((1, 1, 3)), -j.ones((1, 1, 2)), (1,), 'VALID', \
preferred_element_type='uint32')
"""

OTHERS = """
[j.arange(-8, 9).astype(a).astype(b).astype(int) for a in ('int2', 'uint2', 'int4', 'uint4', \
'int8', 'float32') for b in ('int2', 'uint2', 'int4', 'uint4', bool)]
[l.gather(j.arange(10.).reshape(2, 5), j.array([[5], [1], [-3]]), l.GatherDimensionNumbers( \
(), (0, 1), (1,)), slice_sizes=(1, 1), mode=m) for m in ('clip', None, 'fill')]
[j.linspace(a, b, n, e) for a in (j.inf, -j.inf, 2.) for b in (j.inf, -j.inf, j.nan, 2.) \
for n in (1, 2, 5, 20000) for e in (True, False)]
j.linspace(j.array([j.inf, 1, 3]), j.array([2, j.inf, 4.]), 4); j.logspace(-j.inf, 2, 3)
j.linspace(j.inf, 2, 3, dtype=int); j.linspace(-j.inf, 2, 3, dtype=int)
j.linspace(-1, -2, 4, dtype=int); j.linspace(j.bfloat16(j.inf), 2, 3)
l.approx_min_k(j.array([0., 0., -0., -1]), 2)[1]; l.approx_max_k(j.array([-0., 0., 1]), 3)[1]
l.approx_max_k(j.array([-0., 0., -1, -0., 0]), 3)[1]
d.grad(lambda x: l.approx_min_k(x, 2)[0].sum())(j.array([0., 0., -0., -1]))
[f(j.array([1, j.nan, 3, -j.nan, j.inf, j.nan, 0., -0.], t), k)[1] for k in (3, 7, 8) \
for f in (l.approx_max_k, l.approx_min_k) for t in ('float32', 'float16', 'bfloat16')]
[j.unique(C, True, True, True, equal_nan=e) for e in (True, False)]; [*s.stats.mode(C)]
j.unique(C[:, None] + j.zeros(2), axis=0); [*j.unique_all(C)]; j.union1d(C, C[:2])
j.setdiff1d(C, C[:2]); j.setxor1d(C, C[:2]); j.intersect1d(C, C); j.unique(C, size=9, fill_value=7)
[f(j.ones(3, bool), j.array([0]), j.array(True), S) for f in (l.scatter_min, l.scatter_max)]
l.scatter_add(j.ones(3, bool), j.array([0]), j.array(True), S)
l.scatter_sub(j.ones(3, bool), j.array([0]), j.array(True), S)
l.scatter_mul(j.ones(3, bool), j.array([0]), j.array(True), S)
[j.array([2**32 - 5, 3], 'uint32').at[i].max(j.ones(n, 'bfloat16')) for i, n in ((slice(2, 2), 0), \
(j.zeros(0, int), 0), (slice(1), 1))]
"""

DTYPES = """
[getattr(s.stats.norm, f)(j.ones(2, 'bfloat16')) for f in ('pdf', 'logpdf', 'cdf', 'logsf', 'ppf')]
[s.stats.cauchy.logpdf(j.ones(2, t)) for t in ('bfloat16', 'float16')]
[s.stats.multivariate_normal.logpdf(j.ones(2, t), m, 2.) for t in ('bfloat16', 'float16') \
for m in (1., j.ones(2, t))]
s.stats.multivariate_normal.logpdf(.5, .5, .5); s.stats.uniform.cdf(.5)
[s.stats.uniform.cdf(.5, *a) for a in ((0., -1.), (0., 0.), (j.inf,), (0., j.inf))]
s.special.factorial(3); s.special.factorial(j.array(3)); s.special.hyp1f1(1., 2., 3.)
s.special.hyp2f1(1, 1, 2, .5); s.stats.multinomial.logpmf(j.ones(2), 2, j.ones(2))
[f(j.full((2, 2), 2.)) for f in (j.tril, j.triu, lambda x: j.pad(x, 1), d.jit(j.tril))]
j.pad(j.full(2, 2.), 1, constant_values=j.float32(3)); j.pad(j.full(2, 2.), ((1, 2),), 'edge')
j.polyadd(True, j.ones(2, bool)); j.polymul(1, j.ones(2)); j.polyder(1.); j.polyint(1)
j.polysub(True, j.ones(2)); j.polysub(1, j.ones(2)); j.polyadd(j.ones(2, bool), j.ones(2, bool))
"""

EMPTY_AND_SCALAR = """
j.cumsum(j.array(2), axis=0); j.cumprod(j.asarray(2.), axis=-1); j.cumsum(j.float32(2), axis=0)
j.cumsum(2, axis=0); j.cumsum(j.array(2), axis=1); j.nancumsum(j.array(2.), axis=0)
j.diff(j.float32(2), n=0); j.diff(j.float32(2)); j.roll(F, j.zeros(0, int), 0); j.roll(F, (), ())
j.roll(F, ()); j.roll(F, [[1]]); j.roll(H, [1, 2], 0); j.roll(H, (1, 2, 3), (0, 1))
[d.jit(lambda x, s, t: j.roll(x, (s, t), axis=a))(j.asarray(H), 1, -2) for a in (0, 1, (0, 1))]
d.jit(lambda x, s: j.roll(x, (s, 1), (1, 0)))(j.asarray(H), 1)
d.jit(lambda x, s: j.roll(x, [s]))(F, 1)
d.vmap(lambda x, s: j.roll(x, (s[0], s[1]), (0, 1)), (None, 0))(j.asarray(H), T[:, :2] + 1)
d.ops.segment_sum(j.zeros((3, 0)), j.zeros((3, 0), int), 4)
(lambda x: x.at[x].add(x))(j.zeros((0, 1), int)); j.zeros(3).at[j.zeros(0, int)].set(j.ones(5))
j.zeros(0).at[0].add(1); j.zeros(0).at[j.array([0])].set(1); j.zeros((3, 0)).at[:, 0].set(1)
l.scatter_add(j.zeros((0, 3)), j.zeros((0, 1), int), j.zeros(0), l.ScatterDimensionNumbers( \
(), (1,), (1,), (0,), (0,)))
s.fft.dct(j.ones((5, 2)), n=0); s.fft.idct(j.ones((5, 2)), n=0); s.fft.dct(j.ones(0))
s.fft.dct(j.ones((5, 2)), n=-1); s.fft.dctn(j.ones((5, 2)), s=(0, 2)); s.fft.idct(j.ones((0, 5)))
"""

ARGUMENTS = """
[f(j.ones((3, 1)), where=j.arange(4) > n) for f in (j.sum, j.prod, j.any, j.all, j.nansum, \
j.nanprod) for n in (0, 9)]
[f(j.ones(4), where=j.ones((3, 4)) > 0, **k) for f in (j.sum, j.any) for k in ({}, {'axis': 0}, \
{'axis': -1}, {'keepdims': True})]
j.max(j.ones((3, 1)), 1, where=j.ones(4) > 0, initial=0.); j.sum(2., where=j.ones(4) > 0)
j.mean(j.ones((3, 1)), where=j.ones(4) > 0); j.std(j.ones(4), where=j.ones((3, 4)) > 0)
j.var(j.ones((3, 1)), where=j.ones(4) > 0); j.nanmean(j.ones(4), where=j.ones((3, 4)) > 0)
j.nanstd(j.ones((3, 1)), where=j.ones(4) > 0); j.nanmean(j.ones(4, int), where=j.ones((3, 4)) > 0)
j.logaddexp.reduce(j.ones((3, 1)), where=j.ones(4) > 0, initial=0.)
[j.piecewise(F, [F < 1], f) for f in ([lambda v: v.sum(), 1.], [lambda v: v * v.size, 1.], \
[j.ones(4), j.ones(4)], [j.ones(1), j.zeros(1)])]
j.piecewise(F, [F < 1], [j.ones(4), 1.]); j.piecewise(F, [F < 1], [lambda v: v + j.ones(4), 1.])
j.block([j.ones((1, 8)), j.ones(8)]); j.block([[j.ones((1, 1, 2))], [j.ones(2)]])
j.put(j.zeros((37, 41)), j.array([3, 200], 'uint8'), 1, mode='wrap', inplace=False)
[j.ones(3).at[i].get(mode='wrap') for i in (..., slice(None), None)]
j.ones(3).at[0].get(mode='wrap')
j.ones(3).at[1:].get(mode='wrap'); j.ones(3).at[...].set(1, mode='wrap')
[f(j.ones(3), where=m) for f in (d.nn.softmax, d.nn.log_softmax) for m in (H > 0, ~T)]
d.nn.softmax(j.ones(3), 0, where=H > 0); d.nn.softmax(F[None], 0, where=~T)
[[*j.linalg.slogdet(j.asarray(m, t))] for t in ('float16', 'bfloat16') \
for m in ([[2]], [[2, 1], [3, -4]], [[0, 0], [0, 0]])]
j.linalg.slogdet(j.eye(3, dtype='float16'))
j.linalg.slogdet(j.eye(2, dtype='float16'), method='qr')
j.mean(F, dtype=bool); j.mean(F > 0, dtype=bool); j.nanmean(F, dtype=bool); j.var(F, dtype=bool)
j.mean(F > 0); j.average(F > 0); l.cumlogsumexp(V); l.cumlogsumexp(V.astype('uint8'))
l.cumlogsumexp(j.zeros(0, int)); j.array([np.uint8(200), -1], dtype='int8')
j.array([np.int32(200)], dtype='int8'); j.array([np.int64(2**40), 1], dtype='int32')
j.array([np.uint8(200), -1]); j.array([np.int8(20), -1], dtype='uint8'); j.array([np.uint8(3), 1.5])
j.array([-1, np.uint8(3)], dtype='int16'); j.array([np.float32(300), 1], dtype='uint8')
j.array([np.float32(200)], dtype='int8'); j.array([np.array([200], 'uint8')], dtype='int8')
j.array([[np.uint8(200)], [-1]], dtype='int8'); j.array([np.int32(20)], dtype='bfloat16')
j.signbit(j.expm1(j.array([complex(x, y) for x in (0., -0., 1., -1.) for y in (0., 1.)])).real)
"""

SHAPES = "((1, 3), (2, 1), (2, 2), (1, 1))"
SIGNALS = "\n".join(
    f"[s.signal.fftconvolve(j.ones(a), j.ones(b), {mode!r}, axes={axes}).round(3) "
    f"for a in {SHAPES} for b in {SHAPES} if {fits}]" for mode, axes, fits in (
        ("full", None, True), ("same", None, True), ("same", 0, "a[1] == b[1]"),
        ("valid", None, "(a[0] - b[0]) * (a[1] - b[1]) >= 0"), ("same", (), "a == b"))) + """
s.signal.fftconvolve(j.ones((1, 3)), j.ones((2, 1)), 'valid')
s.optimize.minimize(lambda x: j.sum(x ** 2), j.arange(3), method='BFGS').x
s.signal.convolve(j.ones((1, 3)), j.ones((2, 1)))
s.signal.correlate2d(j.ones((3, 1)), j.ones((2, 2)), 'same')
s.signal.convolve2d(j.ones((3, 1)), j.ones((2, 2)), 'valid')
s.signal.convolve(j.ones((2, 3)), j.ones((2, 1)), 'same')
"""

WEAK = """
[f(j.full((3, 3), 2.)) for f in (j.linalg.eigvalsh, j.linalg.cholesky, j.diagonal, j.diag, j.sinc, \
j.rad2deg, j.deg2rad, j.angle, j.logical_not, j.isreal, j.iscomplex, s.signal.detrend)]
[f(2.) for f in (j.sinc, j.rad2deg, j.angle, j.logical_not, j.isreal, s.special.logit)]
[j.diagonal(j.full(n, 2.), k) for n in ((3, 3), (2, 3), (2, 3, 3)) for k in (0, 1, 5)]
[abs(x) for x in j.linalg.eigh(j.full((2, 2), 2.) + j.eye(2))]
d.jit(j.linalg.eigvalsh)(j.full((2, 2), 2.))
[l.reduce_window(j.full(3, 2.), i, f, (2,), (1,), 'SAME') for f, i in ((l.add, 0.), (l.add, 5.), \
(l.max, -j.inf), (l.min, j.inf), (l.mul, 1.), (lambda x, y: x + 2 * y, 0.))]
[f(j.full(3, 2), (0,)) for f in (l.reduce_and, l.reduce_or, l.reduce_xor, l.reduce_max)]
[l.reduce(j.full(3, 2), 0, f, (0,)) for f in (l.bitwise_or, l.bitwise_xor, l.add)]
l.dynamic_update_slice(j.full(3, 2.), j.full(2, 1.), (0,)); j.full(3, 2.).at[:2].set(1.)
j.full(3, 2.).at[0].add(1.); j.full((3, 3), 2.).at[0].set(j.full(3, 1.))
l.psum(j.full(2, 2.), (0,))
[d.jit(lambda x: f(x, 1j))(j.array([1])) for f in (j.less, j.greater_equal, j.equal)]
[d.jvp(f, (x,), (x,)) for f in (l.square, lambda x: x ** 3, lambda x: x ** -2, l.exp2, j.sin, \
lambda x: x * 2) for x in (2., j.full(2, 2.))]
d.grad(lambda x: j.sum(x ** 2))(j.full(2, 2.)); d.grad(lambda x: (x ** 2)[0])(j.full(1, 2.))
d.jit(d.grad(lambda x: j.sum(x ** 2)))(j.full(1, 2.))
j.isfinite(j.full(2, 2j)); j.logaddexp2(j.full(2, 2.), 1.); j.logaddexp2(2., 1.)
j.logaddexp(2j, 2j)
j.logical_and(j.full(2, 2.), 1); j.logical_or(j.full(2, 2.) > 0, True); j.logical_and(2., 1)
j.cross(j.full(3, 2.), j.full(3, 1.)); j.cross(j.full(2, 2.), j.full(2, 1.)); j.gcd(j.full(2, 4), 2)
j.lcm(j.full(2, 4), 3); j.lcm(4, 3); j.insert(j.full(3, 2.), 0, 1.); j.round(j.full(2, 2.), 1)
j.insert(j.full(3, 2.), j.array([0, 1]), j.zeros(2)); j.insert(j.zeros(3), 0, 1.); j.round(2., 1)
j.angle(j.full(2, 2j), deg=True); j.argpartition(j.full(3, 2.), 1); l.approx_min_k(j.full(3, 2.), 2)
j.polydiv(j.full(3, 2.), j.full(2, 2.)); j.resize(j.full(2, 2.), (0,))
j.sort_complex(j.full(2, 2j))
j.unravel_index(j.full(2, 1), (3, 2)); j.unravel_index(j.full(2, 1), j.array([3, 2]))
l.dot(j.full(3, 2.), j.full(3, 2)); j.rad2deg(d.nn.relu6(j.array([1], 'int16')))
s.linalg.block_diag(j.full((2, 2), 2.)); s.linalg.toeplitz(j.full(3, 2.))
s.linalg.hankel(j.full(3, 2.))
s.linalg.convolution_matrix(j.full(3, 2.), 2); s.linalg.fiedler_companion(j.full(1, 2.))
[s.linalg.polar(j.full((2, 2), 2.) + 2 * j.full((2, 2), 1.) * j.asarray(np.eye(2)).astype(float), \
method=m)[0] for m in ('qdwh', 'svd')]
[f(j.full(2, 2.), 1.) for f in (s.special.rel_entr, s.special.kl_div)]
s.special.logit(j.full(2, .5))
s.special.loggamma(2j); s.special.wofz(2j); [*s.stats.mode(j.full(2, 2j))]
[d.grad(f)(3.) for f in (lambda x: x ** 2., lambda x: j.power(x, 3.), lambda x: x * x, j.sin, abs, \
lambda x: x ** x, lambda x: 2. ** x, lambda x: x * np.float32(2), lambda x: l.mul(x, \
np.float32(2)), \
d.nn.relu, lambda x: j.where(x > 0, x, 1.), lambda x: l.max(x, np.float32(1)), j.sinc, \
l.bessel_i1e, \
lambda x: j.dot(j.full(2, 1.) * x, np.ones(2, 'float32')), lambda x: j.mod(x, 2.))]
[d.vjp(f, 3.)[1](np.float32(1)) for f in (j.sin, lambda x: l.mul(x, np.float32(2)))]
[d.jvp(f, (x,), (x,)) for f in (l.log1p, l.expm1, l.acosh, l.logistic, l.bessel_i1e, l.erf, \
l.erfc, l.tan, l.atan, lambda x: 2. ** x) for x in (2., j.full(2, .5))]
[d.jvp(f, (x,), (x,)) for f in (j.reciprocal, d.nn.elu, d.nn.selu, d.nn.sigmoid, d.nn.silu, \
d.nn.log1mexp) for x in (2., j.full(2, .5))]
[d.jacfwd(f)(x) for f in (lambda x: x ** 2., l.erf, d.nn.celu, lambda x: j.maximum(x, 2.), \
lambda x: x - np.float32(1), lambda x: x * np.ones(2, 'float16'), lambda x: 2. ** x) \
for x in (3., j.full(2, 3.))]
d.grad(d.nn.logsumexp)(j.full(2, 3.)); d.grad(lambda x: j.dot(x, x))(j.full(2, 3.))
d.vjp(j.dot, 2., j.full(2, .5))[1](j.full(2, 1.)); d.vjp(j.dot, 2., j.ones(2, 'float16'))[1]( \
j.ones(2, 'float16')); d.vjp(l.dot, j.full(2, 2.), j.ones(2, 'int8') * 1.)[1](1.)
"""

# NumPy's numbers that no array holds: what reads them as they are, and what reads 32 bits of them.
OUT_OF_RANGE = """
[l.convert_element_type(B, t) for t in ('int8', 'uint8', 'int16', 'int32', 'uint32', 'float16', \
'bfloat16', 'float32', 'complex64', 'bool', 'int4', 'uint4', int, float)]
[l.convert_element_type(L, t) for t in ('int8', 'uint8', 'int16', 'int32', 'uint32', 'float16', \
'bfloat16', 'float32', 'complex64', 'bool', 'int4', 'uint4', int, float)]
[l.convert_element_type(x, 'int8') for x in (np.float32(300), np.float64(-300), np.int64(300), \
np.array([[300.] * 2] * 2)[::-1].T, np.array([]), np.array([300, 9.], j.bfloat16))]
d.jit(lambda x: x + l.convert_element_type(B, 'int32'))(j.zeros(6, 'int32'))
d.jit(lambda x: l.convert_element_type(x, 'int32'))(B[:3])
d.vmap(lambda x: l.convert_element_type(x, 'int32'))(B[:3])
[j.full(6, B, t) for t in ('int8', 'int32', 'float32', 'bool', None)]
[j.full(5, L, t) for t in ('int8', 'float32', 'float16')]
[j.full_like(j.ones(6, t), B) for t in ('int8', 'float32')]
[l.full((2,), x, t) for x in (L[0], B[0]) for t in ('int8', 'float32')]
[l.full_like(j.ones(2, t), x) for x in (L[0], B[0]) for t in ('int8', 'float32')]
j.arange(3.) * L[0]; j.arange(3.) + np.uint64(2**40 + 5); j.arange(3) * L[0]; j.linspace(0, L[0], 3)
j.fill_diagonal(j.ones((3, 3)), L[0], inplace=False); j.where(T, L[0], 1.5); j.maximum(1.5, L[0])
j.concatenate([L, j.ones(1)]); j.piecewise(j.arange(3.), [j.arange(3) > 0], [L[0], 1.])
[j.roll(j.arange(9), s) for s in (1.5, 3e9, -3e9, j.nan, np.array([3e9, 1.5]), j.float16(-2.5), \
(3e9, 1), np.uint32(2**32 - 1)) for _ in range(7)]
[j.roll(j.arange(9), j.asarray(s, t)) for s, t in ((3e9, 'float32'), (2**32 - 1, 'uint32'), \
(-1.5, 'float16')) for _ in range(7)]
[d.jit(j.roll)(j.arange(9), s) for s in (1.5, -3e9, j.float32(3e9), j.uint32(2**32 - 1), j.inf)]
[d.jit(lambda x: j.roll(x, s))(j.arange(9)) for s in (1.5, 3e9, -3e9, np.float64(3.7), \
np.array([3e9, 1.5]), (2.5, 1))]
d.vmap(lambda x: j.roll(x, 2.5))(j.arange(9).reshape(3, 3)); d.grad(lambda x: j.roll(x, 1.5)[0])(F)
"""

# How many values there are is computed in the dtypes that the arguments have.
RANGES = """
[j.arange(t(-1 if t is not np.uint8 else 3), t(100 if t is not np.uint8 else 1), t(2)) \
for t in (np.int8, np.uint8, np.float16, np.float32, np.int64)]
[j.arange(a, b) for a, b in ((np.int64(2**40), np.int64(2**40 + 3)), (2**40, 2**40 + 2), \
(2**31, 2**31 + 2), (-2**31 - 1, -2**31 + 2), (np.array(2**40), np.array(2**40 + 2)))]
j.arange(0, np.int64(2**33), np.int64(2**32)); j.arange(np.uint64(2**63), np.uint64(2**63 + 2))
[j.arange(*(j.asarray(x, t) for x in (81, -59, -7)), u) for t in ('int8', 'int32', 'float16', \
'bfloat16') for u in (None, 'float32', 'float16')]
[j.arange(a, b, c) for a, b, c in ((0, 46, np.float16(.1)), (j.uint8(3), j.uint8(1), np.uint8(2)), \
(j.bfloat16(.7), np.int8(48), .1), (np.float64(.1), j.float32(.1), np.float64(1.33)), \
(j.int32(0), j.float16(38), 1.27), (j.uint8(74), 7, j.int8(21)), (j.int8(-92), j.uint8(58), .7))]
[j.arange(np.float16(-3), 9, .7, t) for t in ('float16', 'bfloat16', 'float32', 'int8')]
j.arange(81, j.int8(-59)); j.arange(np.uint8(3), -5); j.arange(np.uint8(30), -58, 98.)
j.arange(0, 3, 0); j.arange(0., 3, 0); j.arange(0, 3, np.float32(0)); j.arange(j.nan)
j.arange(0, 3, j.inf); j.arange(1, -j.inf, .5); j.arange(2.5, dtype='bfloat16')
j.arange(.1, 300, dtype='bfloat16')
d.jit(lambda: j.arange(T[0].astype('int8'), np.int8(5), 2))()
"""

X64 = """
[f(T, T[0]) for f in (j.power, j.floor_divide, j.fmod, j.remainder, j.divmod, j.left_shift, \
j.right_shift, j.bitwise_left_shift, j.pow, j.mod, j.add, j.multiply, j.gcd, j.hypot)]
[f(j.asarray(T)) for f in (j.square, lambda b: b // True, lambda b: True % b, lambda b: b ** b, \
lambda b: divmod(b, b), lambda b: b << b, lambda b: b ** 2, lambda b: b ** True, j.cumsum, j.sum)]
j.tri(3); j.tri(3, dtype=float); [*s.stats.mode(j.array([1, 2, 2]))]; [*s.stats.mode(T, None)]
[*s.stats.mode(j.zeros((0, 2)))]; [*s.stats.mode(j.zeros((2, 0)))]
[s.stats.multivariate_normal.logpdf(j.ones(2, t), m, c) for t in ('float32', 'float64') \
for m, c in ((1., 2.), (j.ones(2, t), 2.), (j.ones(2, t), j.eye(2, dtype=t)))]
[d.random.choice(d.random.key(1), 8, (6,), p=W.astype(t)) for t in \
('bool', 'float32', 'float64', 'int32', 'int64', 'uint8')]
[d.random.choice(d.random.key(3), 8, (5,), False, p=W.astype(t)) for t in \
('bool', 'float32', 'float64', 'int32', 'int64', 'uint8')]
[f(j.arange(9), s) for s in (-1.5, 3e9, j.asarray(-1.5), j.inf) for f in (j.roll, d.jit(j.roll))]
j.isclose(j.int64(-2**63), j.int64(2**63 - 1)); j.isclose(j.uint64(2**64 - 1), j.uint64(2**64 - 2))
"""


@pytest.mark.parametrize("expression", [
    text for group in (CLOSENESS, SUMS, PRODUCTS, DTYPES, OTHERS, EMPTY_AND_SCALAR, ARGUMENTS,
                       SIGNALS, WEAK, OUT_OF_RANGE, RANGES) for text in expressions(group)])
def test_operands_of_each_kind_give_what_jax_gives(expression: str) -> None:
    check(expression, CONSTANTS)


@pytest.mark.parametrize("expression", expressions(X64))
def test_with_64_bits(expression: str) -> None:
    with enable_x64(True), jax.enable_x64(True):
        check(expression, CONSTANTS)


def test_softmax_of_an_operand_below_its_mask() -> None:
    """JAX subtracts a largest element of the wrong axis, and all elements become equal."""
    x, mask = CONSTANTS["F"], ~CONSTANTS["T"]
    for ours, theirs in ((maxjax.nn.softmax, jax.nn.softmax),
                         (maxjax.nn.log_softmax, jax.nn.log_softmax)):
        np.testing.assert_allclose(
            ours(x, where=mask), theirs(np.broadcast_to(x, mask.shape), where=mask), 1e-5)


def test_divisors_of_the_least_integer() -> None:
    """JAX does not return; NumPy does."""
    least = np.array([-128, -128, 0, -128, 6, -128, -7], np.int8)
    other = np.array([6, -128, -128, -1, -128, 0, -128], np.int8)
    np.testing.assert_array_equal(maxjax.numpy.gcd(least, other), np.gcd(least, other))
