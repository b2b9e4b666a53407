"""Random calls of public functions with operands of few elements: scalars, none, one.

`j` is jax.numpy, `l` jax.lax, `d` jax and `s` jax.scipy, as in tests/numpy/test_edge_values.py.
"""

from __future__ import annotations

import random

# A pattern over operands {a} and {b}, and the names that it is of.
TEMPLATES = """
j.{f}({a}): abs angle any all amax amin argmax argmin argsort argwhere around astype_ atleast_1d
    atleast_2d atleast_3d average ceil conj copy corrcoef count_nonzero cov cumprod cumsum
    cumulative_prod cumulative_sum deg2rad diag diagflat diagonal diff ediff1d empty_like exp exp2
    fabs fix_ flatnonzero flip fliplr flipud frexp gradient imag invert iscomplex iscomplexobj
    isfinite isneginf isreal isrealobj isscalar log1p logical_not matrix_transpose max mean median
    min modf nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin
    nanprod nanstd nansum nanvar ndim negative nonzero ones_like packbits permute_dims poly polyder
    polyint prod ptp ravel real reciprocal roots rot90 round sign signbit sinc size shape sort
    sort_complex spacing sqrt square squeeze std sum trace transpose trapezoid tril triu trim_zeros
    unique unique_values unpackbits unstack unwrap vander
    var zeros_like i0 bitwise_count diag_indices_from tril_indices_from histogram_bin_edges
    histogram bincount hanning_ kaiser_ block hstack vstack dstack column_stack stack concatenate
    broadcast_arrays meshgrid ix_ logaddexp.reduce add.reduce multiply.accumulate lexsort isinf
    array asarray ascontiguousarray_ float_ iterable
j.{f}({a}, axis=0): any all max min argmax argmin argsort average cumprod cumsum cumulative_sum
    diff expand_dims flip mean median nanargmax nancumsum nanmax nanmean nanmedian nansum ptp prod
    sort squeeze std sum trapezoid unique unstack unwrap gradient count_nonzero nanstd packbits
j.{f}({a}, axis=1): any max argmin argsort cumsum diff flip mean median sort squeeze sum unique
    unstack expand_dims nansum
j.{f}({a}, axis=-1): all min argmax cumprod flip median sort std sum trapezoid expand_dims
j.{f}({a}, axis=()): sum max mean any squeeze std flip expand_dims
j.{f}({a}, keepdims=True): sum max mean any argmax median std nansum average count_nonzero nanargmax
j.{f}({a}, axis=None): sum cumsum argsort sort argmax flip squeeze median unique concatenate
j.{f}({a}, 1): take delete diagonal diag rot90 partition argpartition pad tile repeat roll
    array_split split hsplit vsplit dsplit diff expand_dims swapaxes_ rollaxis vander tril triu
    percentile quantile nanpercentile polyder polyint polyval insert_ full_like append digitize_
    bincount_ resize reshape unravel_index linspace histogram cumsum argmax unstack
j.{f}({a}, 0): take delete array_split split tile repeat roll resize pad full_like vander percentile
    rollaxis
j.{f}({a}, -1): reshape take diagonal roll rollaxis take_along_axis
j.{f}({a}, 2): split array_split tile repeat pad polyint polyder take partition resize histogram
j.{f}({a}, {b}): add subtract multiply divide floor_divide power maximum minimum fmax fmod hypot
    arctan2 logaddexp copysign nextafter heaviside remainder equal less logical_and isclose allclose
    array_equal array_equiv float_power divmod dot matmul inner outer vdot kron cross append
    searchsorted isin setdiff1d setxor1d intersect1d union1d polyval polyadd polysub polymul polydiv
    vecdot matvec vecmat convolve correlate digitize interp_ take compress extract where_ select_
    tensordot gcd lcm left_shift bitwise_and corrcoef cov average linspace logspace geomspace
    choose full_like ldexp broadcast_arrays meshgrid trapezoid histogram histogram2d percentile
    quantile tile repeat roll resize_ lexsort_ ix_ insert_ delete unravel_index
    ravel_multi_index_ polyfit_ bincount fmin mod true_divide place_ unwrap
j.{f}(({a}, {b})): hstack vstack dstack column_stack stack concatenate block broadcast_arrays_
    lexsort linalg.multi_dot ravel_multi_index_
j.{f}(({a}, {b}), axis=-1): stack concatenate
j.{f}([{a}, {b}], axis=0): stack concatenate
j.{f}([{a}, {b}]): block hstack array stack
j.{f}(({a},)): hstack vstack dstack column_stack stack concatenate block linalg.multi_dot
j.{f}([]): hstack vstack dstack column_stack stack concatenate block linalg.multi_dot array sum
    unique meshgrid broadcast_arrays lexsort mean max
j.linalg.{f}({a}): norm det inv eigvalsh cholesky svdvals pinv matrix_rank cond
    matrix_norm vector_norm trace diagonal matrix_transpose eigvals tensorinv
j.linalg.{f}({a}, {b}): solve lstsq cross_ matmul outer vecdot tensordot matrix_power_ tensorsolve
j.fft.{f}({a}): fft ifft rfft irfft hfft ihfft fft2 fftn rfftn irfftn fftshift ifftshift rfft2
l.{f}({a}): abs neg sign floor is_finite erf lgamma exp rsqrt cbrt population_count reduce_and
    stop_gradient cumsum cumlogsumexp cummax sort squeeze argmax_ clz bitwise_not real conj
    integer_pow_ square tan logistic not_
l.{f}({a}, 0): cumsum cummax sort collapse argmin_ broadcast_ expand_dims_ index_in_dim top_k
    full_like integer_pow dynamic_index_in_dim rev_ approx_max_k
l.{f}({a}, (0,)): reduce_max reduce_sum reduce_or expand_dims squeeze rev broadcast reshape
    transpose reduce_min reduce_prod
l.{f}({a}, ()): reduce_sum expand_dims squeeze rev broadcast reshape transpose reduce_max
l.{f}({a}, 1): collapse sort top_k approx_min_k cumsum integer_pow
l.{f}({a}, {b}): add sub mul div rem pow max min atan2 nextafter eq lt and_ igamma_ dot concatenate_
    complex bitwise_or batch_matmul shift_left
l.{f}([{a}, {b}], 0): concatenate
d.nn.{f}({a}): relu softmax log_softmax logsumexp glu standardize gelu sigmoid one_hot_ selu elu
    silu softplus leaky_relu relu6 logmeanexp squareplus
s.special.{f}({a}): gammaln digamma erf logsumexp softmax expit logit entr ndtr i0 i1e factorial
    log_softmax gamma expi spence
s.special.{f}({a}, {b}): xlogy betaln gammainc zeta rel_entr polygamma_ kl_div xlog1py beta boxcox
    comb poch
s.linalg.{f}({a}): det inv cholesky expm lu qr svd block_diag toeplitz hankel circulant companion
    eigh sqrtm lu_factor cho_factor polar hessenberg leslie_ fiedler
s.linalg.{f}({a}, {b}): solve block_diag toeplitz solve_triangular hankel solve_sylvester_ leslie
s.signal.{f}({a}, {b}): convolve correlate fftconvolve convolve2d
s.signal.{f}({a}): detrend welch_ stft_
s.stats.{f}({a}): rankdata sem
[*j.{f}({a})]: unique_all unique_counts unique_inverse linalg.slogdet linalg.eigh linalg.qr
    linalg.svd
[*s.{f}({a})]: stats.mode linalg.schur
d.ops.{f}({a}, {b}): segment_sum segment_max
d.random.{f}(d.random.key(0), {a}): permutation choice bernoulli categorical poisson_ exponential_
    dirichlet gamma
"""

MORE = """
j.where({a} > 0, {b}, 1.)
j.where({a}, size=2)
j.clip({a}, {b}, 2.)
j.select([{a} > 0], [{b}], 0.)
j.piecewise({a}, [{a} > 0], [1., 2.])
j.interp({a}, {b}, {b})
j.take_along_axis({a}, {b}, 0)
j.take_along_axis({a}, {b}, None)
j.insert({a}, 0, {b})
j.insert({a}, {b}, 1.)
j.insert({a}, 0, 1., axis=0)
j.delete({a}, j.array([0]), axis=0)
j.swapaxes({a}, 0, 1)
j.swapaxes({a}, 0, 0)
j.moveaxis({a}, 0, -1)
j.broadcast_to({a}, (2, 3))
j.broadcast_to({a}, ())
j.broadcast_to({a}, 0)
j.reshape({a}, ())
j.reshape({a}, (0, -1))
j.reshape({a}, (-1, 1))
j.squeeze({a}, (0, 1))
j.cross({a}, {b}, axis=0)
j.tensordot({a}, {b}, 0)
j.tensordot({a}, {b}, 1)
j.tensordot({a}, {b}, ([0], [0]))
j.einsum("i,i->i", {a}, {b})
j.einsum("...,...->...", {a}, {b})
j.einsum("ij->ji", {a})
j.einsum("ii", {a})
j.apply_along_axis(j.sum, 0, {a})
j.apply_over_axes(j.sum, {a}, 0)
j.fill_diagonal({a}, 1., inplace=False)
j.put({a}, 0, 1., inplace=False)
j.put({a}, {b}, 1., inplace=False)
j.place({a}, {b} > 0, [1.], inplace=False)
j.histogramdd({a})
j.average({a}, weights={b})
j.average({a}, axis=0, weights={b})
j.nan_to_num({a}, nan=1.)
j.searchsorted({a}, {b}, side="right")
j.unique({a}, size=2)
j.unique({a}, return_inverse=True)
j.nonzero({a}, size=2)
j.polyfit({a}, {b}, 1)
j.ravel_multi_index(({a}, {b}), (2, 3), mode="clip")
j.pad({a}, 1, mode="edge")
j.pad({a}, (1, 0), mode="wrap")
j.pad({a}, 1, mode="reflect")
j.pad({a}, 1, mode="mean")
j.pad({a}, 1, mode="linear_ramp")
j.linspace({a}, {b}, 0)
j.linspace({a}, {b}, 1)
j.sum({a}, where={b} > 0)
j.max({a}, initial=1.)
j.max({a}, where={b} > 0, initial=1.)
j.mean({a}, where={b} > 0)
j.var({a}, ddof=1)
j.quantile({a}, {b}, axis=0)
j.linalg.norm({a}, 1)
j.linalg.norm({a}, axis=0)
j.linalg.norm({a}, "nuc")
j.linalg.matrix_power({a}, 2)
j.linalg.matrix_power({a}, 0)
j.vectorize(lambda x, y: x + y)({a}, {b})
j.array({a}, ndmin=2)
j.asarray({a})[...]
j.asarray({a})[None]
j.asarray({a})[0]
j.asarray({a})[:1]
j.asarray({a})[j.asarray({b}) > 0]
j.asarray({a})[j.asarray({b}, int)]
j.asarray({a}).at[0].set({b})
j.asarray({a}).at[...].add({b})
j.asarray({a}).at[:].mul({b})
j.asarray({a}).at[j.asarray({b}, int)].add(1)
j.asarray({a}).item()
len(j.asarray({a}))
list(j.asarray({a}))
bool(j.asarray({a}))
float(j.asarray({a}))
j.asarray({a}).tolist()
j.asarray({a}) @ j.asarray({b})
j.asarray({a}) // j.asarray({b})
l.reduce({a}, 0., l.add, (0,))
l.slice({a}, (0,), (1,))
l.slice_in_dim({a}, 0, 1)
l.dynamic_slice({a}, (0,), (1,))
l.dynamic_slice_in_dim({a}, 0, 1)
l.dynamic_update_slice({a}, {b}, (0,))
l.pad({a}, 0., [(1, 0, 0)])
l.pad({a}, 0., [])
l.clamp({a}, {b}, 2.)
l.select({a} > 0, {a}, {b})
l.iota(int, 0)
l.broadcast_in_dim({a}, (2, 3), (1,))
l.broadcast_in_dim({a}, (2, 3), ())
l.dot_general({a}, {b}, (((0,), (0,)), ((), ())))
l.scan(lambda c, x: (c, x), 0., {a})
l.map(lambda x: x * 2, {a})
l.associative_scan(j.add, {a})
l.fori_loop(0, 2, lambda i, x: x * 2, {a})
l.sort_key_val({a}, {b})
l.reduce_window({a}, 0., l.add, (1,), (1,), "SAME")
l.argmax({a}, 0, int)
l.betainc({a}, {b}, .5)
l.conv(j.ones((1, 1, 3)), {a}, (1,), "SAME")
d.vmap(j.sin)({a})
d.vmap(j.add)({a}, {b})
d.vmap(j.add, (0, None))({a}, {b})
d.grad(lambda x: j.sum(x ** 2))({a})
d.jvp(lambda x: x ** 2, ({a},), ({a},))
d.jacfwd(lambda x: x * 2)({a})
d.hessian(lambda x: j.sum(x ** 3))({a})
d.jit(lambda x, y: x + y)({a}, {b})
d.nn.one_hot({a}, 3)
d.nn.softmax({a}, where={b} > 0, initial=0.)
d.nn.dot_product_attention({a}, {b}, {b})
d.image.resize({a}, (2, 2), "linear")
d.random.shuffle(d.random.key(0), {a})
d.random.normal(d.random.key(0), {a})
s.linalg.solve_triangular({a}, {b}, lower=True)
s.linalg.cho_solve(({a}, True), {b})
s.interpolate.RegularGridInterpolator(({a},), {b})(j.ones(1))
s.ndimage.map_coordinates({a}, [{b}], 1)
s.integrate.trapezoid({a}, {b})
s.cluster.vq.vq({a}, {b})
s.stats.norm.pdf({a}, {b})
s.stats.gaussian_kde({a})
s.stats.multivariate_normal.pdf({a}, {b}, 1.)
s.optimize.minimize(lambda x: j.sum(x ** 2), {a}, method="BFGS").x
"""

OPERANDS = (
    "2.", "3", "True", "0", "j.float32(2)", "j.int32(1)", "j.array(True)", "j.complex64(1j)",
    "j.bfloat16(1)", "j.zeros(0)", "j.zeros(0, int)", "j.ones(0, bool)", "j.zeros(0, complex)",
    "j.zeros((0, 3))", "j.zeros((3, 0))", "j.zeros((1, 0))", "j.zeros((0, 0))",
    "j.zeros((2, 0, 3))",
    "j.ones(1)", "j.array([2])", "j.full((1,), 2.)", "j.ones((1, 1))", "j.ones((1, 1, 1))",
    "j.arange(3.)", "j.arange(3)", "j.ones((1, 3))", "j.ones((3, 1))",
    "j.arange(9.).reshape(3, 3) + j.eye(3)")

# Where the libraries differ on purpose: each has a row in compat/known_differences.toml.
LEFT_OUT = (
    "s.linalg.hessenberg(", "s.optimize.minimize(",        # errors of operands of the wrong rank
    "l.slice(", "j.linalg.multi_dot((",
    "j.any(j.complex64(1j)", "j.all(j.complex64(1j)",
    "d.nn.dot_product_attention(",        # of no documented rank
    "j.put(2.", "j.put(3,", "j.put(True", "j.put(0,",      # scalars have one element to put
    "j.put(j.float32", "j.put(j.int32", "j.put(j.array(True)", "j.put(j.complex64",
    "j.put(j.bfloat16",
    "j.unravel_index(",                   # shapes of floats
    "l.broadcast_in_dim(",                # without dimensions
)


def templates() -> list[str]:
    """The patterns; names that end in an underscore are left out."""
    found, pattern = [], ""
    for line in TEMPLATES.strip().split("\n"):
        if not line.startswith(" "):
            pattern, _, line = line.partition(": ")
        found += [pattern.replace("{f}", name) for name in line.split() if not name.endswith("_")]
    return [*found, *MORE.strip().split("\n")]


def calls(seed: int, count: int) -> list[str]:
    """Calls of functions, each with operands of few elements."""
    rng = random.Random(seed)
    patterns = templates()
    found: list[str] = []
    while len(found) < count:
        call = rng.choice(patterns).replace("{a}", rng.choice(OPERANDS)).replace(
            "{b}", rng.choice(OPERANDS))
        if not any(text in call for text in LEFT_OUT):
            found.append(call)
    return found
