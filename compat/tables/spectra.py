"""jax.scipy.signal's spectra, interpolation on grids, and rotations."""

from compat.spec import array, case, cases, floats

_X = {"x": floats(50)}
_GRID = ("g = (jnp.array([0., 1., 3.]), jnp.array([0., 1., 2., 4.])); "
         "v = jnp.arange(12.).reshape(3, 4) ** 2; ")
_POINTS = {"p": array([[0.5, 0.5], [1.2, 2.9], [2.9, 3.1]], "float32")}
_ROTATION = "R = jax.scipy.spatial.transform.Rotation; "
_Q = {"q": floats(3, 4)}
_ONE = {"q": floats(4)}


def _methods(inputs):
    return cases(
        "f.from_quat(q).as_quat()", "f.from_quat(q).as_quat(canonical=True, scalar_first=True)",
        "f.from_quat(q).as_matrix()", "f.from_quat(q).as_rotvec()",
        "f.from_quat(q).as_rotvec(degrees=True)", "f.from_quat(q).as_mrp()",
        "f.from_quat(q).magnitude()", "f.from_quat(q).inv().as_quat()",
        "f.from_quat(q).apply(jnp.array([1., 2., 3.]))",
        "f.from_quat(q).apply(jnp.array([1., 2., 3.]), inverse=True)",
        "(f.from_quat(q) * f.from_rotvec(jnp.array([.1, .2, .3]))).as_quat()",
        "f.from_matrix(f.from_quat(q).as_matrix()).as_matrix()",
        "f.from_quat(q).as_euler('xyz')", "f.from_quat(q).as_euler('ZYX', True)",
        tol="loose", **inputs)


TABLE = {
    "jax.scipy.signal.stft": cases(
        "f(x, nperseg=16)", "f(x, fs=10., nperseg=16, noverlap=4, nfft=20)",
        "f(x, nperseg=16, boundary=None, padded=False)", "f(x, nperseg=15, boundary='even')",
        "f(x, nperseg=15, boundary='odd')", "f(x, nperseg=15, boundary='constant')",
        "f(x, nperseg=16, return_onesided=False)", "f(x, nperseg=16, detrend='constant')",
        "f(x, window='boxcar', nperseg=10)", tol="loose", modes="eager jit grad vmap", **_X)
    + cases("f(x, nperseg=8, axis=0)", tol="loose", modes="eager jit", x=floats(20, 3))
    + cases("f(x, nperseg=16, noverlap=20)", "f(x, nperseg=16, nfft=8)",
            "f(x, nperseg=16, boundary='foo')", raises=True, **_X),
    "jax.scipy.signal.istft": cases(
        "jax.scipy.signal.istft(jax.scipy.signal.stft(x, nperseg=16)[2], nperseg=16)",
        "f(jax.scipy.signal.stft(x, nperseg=16)[2], fs=4., nperseg=16)",
        # At its ends is rounding alone, divided by the window's least values.
        "[y[4:-4] for y in f(jax.scipy.signal.stft(x, nperseg=16)[2], nperseg=16, boundary=False)]",
        "f(jax.scipy.signal.stft(x, nperseg=16, noverlap=12)[2], nperseg=16, noverlap=12)",
        "f(jax.scipy.signal.stft(x, nperseg=16, return_onesided=False)[2], nperseg=16, "
        "input_onesided=False)", tol="loose", modes="eager jit grad vmap", **_X)
    + cases("f(x)", "f(x.reshape(5, 10), freq_axis=0, time_axis=0)", raises=True, **_X),
    "jax.scipy.signal.csd": cases(
        "f(x, y, nperseg=16)", "f(x, y, fs=10., nperseg=16, noverlap=4, scaling='spectrum')",
        "f(x, y, nperseg=16, average='median')", "f(x, y, nperseg=16, detrend='linear')",
        "f(x, y, nperseg=16, detrend=False, return_onesided=False)",
        tol="loose", modes="eager jit grad vmap", x=floats(50), y=floats(50))
    + cases("f(x, None, nperseg=16)", tol="loose", modes="eager jit", **_X)
    + cases("f(x, y)", "f(y, x)", "f(y, x, nperseg=100)", tol="loose", x=floats(300), y=floats(90))
    + cases("f(x, None, nperseg=16, nfft=8)", "f(x, None, nperseg=16, average='foo')",
            raises=True, **_X),
    "jax.scipy.signal.welch": cases(
        "f(x, nperseg=16)", "f(x, nperseg=15, nfft=32)", "f(x, window='hamming', nperseg=16)",
        "f(x, nperseg=16, average='median')", "f(x, nperseg=16, detrend='linear')",
        tol="loose", modes="eager jit grad vmap", **_X)
    + cases("f(x)", "f(x, noverlap=10)", tol="loose", x=floats(300))
    + cases("f(x, nfft=256)", raises=True, x=floats(300))
    + cases("f(x, nperseg=8, axis=0)", tol="loose", modes="eager jit", x=floats(20, 3))
    + cases("f(x, nperseg=16, nfft=8)", "f(x, nperseg=16, scaling='foo')", raises=True, **_X),
    "jax.scipy.interpolate.RegularGridInterpolator": cases(
        _GRID + "f(g, v)(p)", _GRID + "f(g, v, method='nearest')(p)",
        _GRID + "f(g, v, fill_value=7.)(10 * p)", _GRID + "f(g, v, fill_value=None)(10 * p)",
        _GRID + "f(g, v)(p, method='nearest')", tol="loose", **_POINTS)
    + cases("f((jnp.arange(3.),), x)(jnp.array([0.5, 1.5]))",
            "f((jnp.arange(3.),), x, fill_value=None)(jnp.array([[0.5], [3.5]]))",
            tol="loose", x=floats(3, 2))
    + cases("f((jnp.arange(3.),), x, method='foo')", "f((jnp.arange(3.),) * 3, x)",
            "f((jnp.arange(3.),), x, bounds_error=True)", raises=True, x=floats(3, 2)),
    "jax.scipy.spatial.transform.Rotation":
        _methods(_Q) + _methods(_ONE) + cases(
            "f.from_euler('x', 30., degrees=True).as_quat()",
            "f.from_rotvec(v).as_quat()", "f.from_rotvec(v, degrees=True).as_quat()",
            "f.from_mrp(v).as_quat()", "f.from_euler('xyz', v).as_quat()",
            "f.from_euler('ZXZ', v).as_quat()", "f.from_euler('XZ', v[:, :2]).as_matrix()",
            "f.concatenate([f.from_rotvec(v), f.from_rotvec(v)]).as_quat()",
            "f.from_rotvec(v)[1].as_quat()", tol="loose", v=floats(2, 3))
        + cases("f.from_rotvec(v).mean().as_matrix()", "len(f.from_rotvec(v))",
                "f.from_rotvec(v).single", tol="loose", modes="eager", v=floats(2, 3))
        + cases("f.from_euler('XyZ', v)", "f.from_euler('abc', v)", "len(f.from_rotvec(v[0]))",
                "f.from_rotvec(v[0])[0]", raises=True, v=floats(2, 3)),
    "jax.scipy.spatial.transform.Slerp": cases(
        _ROTATION + "f.init(jnp.array([0., 1., 3.]), R.from_rotvec(v))(t).as_quat()",
        tol="loose", v=floats(3, 3), t=array([0.0, 0.5, 1.0, 2.5], "float32").fix())
    + case(_ROTATION + "f.init(jnp.array([0., 1.]), R.from_rotvec(v))", raises=True,
           v=floats(3, 3)),
}
