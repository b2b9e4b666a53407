"""Options that change checks, numbers and messages, and refused values, against JAX."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import warnings

import jax
import numpy as np
import pytest
from jax._src import config as jax_config

import maxjax
from maxjax._base import variables
from maxjax._higher_order import target
from maxjax._higher_order.xla_options import XLA_OPTIONS
from maxjax._max.mojo import toolchain
from tests.support.against_jax import agree, assert_same_error, errors_of, first_line

LIBRARIES = (maxjax, jax)


def option(j, name):
    """The context manager of an option, by name."""
    return jax_config.config_states[name] if j is jax else maxjax.config.option(name)


def outcome(run, j):
    """The result's dtype, shape and values, or the error; and the first lines of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = run(j)
            found = (str(getattr(result, "dtype", None)), np.asarray(result).tolist())
        except Exception as error:
            found = (type(error).__name__, first_line(error))
    return found, {(w.category.__name__, str(w.message)) for w in caught}


# --- 64 bits that are asked for -------------------------------------------------------------------

WIDE = {
    "zeros": lambda j: j.numpy.zeros(2, "float64"),
    "a dtype": lambda j: j.numpy.zeros(2, np.dtype("float64")),
    "a Python type": lambda j: j.numpy.ones(2, float),
    "arange": lambda j: j.numpy.arange(3, dtype="int64"),
    "asarray": lambda j: j.numpy.asarray(np.ones(2)),
    "asarray with a dtype": lambda j: j.numpy.asarray(np.ones(2), dtype=np.float64),
    "astype": lambda j: j.numpy.ones(2).astype("float64"),
    "convert_element_type": lambda j: j.lax.convert_element_type(1., np.float64),
    "a scalar type": lambda j: j.numpy.float64(1),
    "linspace": lambda j: j.numpy.linspace(0, 1, 3, dtype="float64"),
    "sum": lambda j: j.numpy.sum(j.numpy.ones(2), dtype="float64").astype("float32"),
    "cumsum": lambda j: j.numpy.cumsum(j.numpy.ones(2), dtype="float64"),
    "iota": lambda j: j.lax.iota("int64", 3),
    "full": lambda j: j.lax.full((2,), 1, "int64"),
    "full_like": lambda j: j.numpy.full_like(j.numpy.ones(2), 1, "int64"),
    "zeros_like": lambda j: j.numpy.zeros_like(j.numpy.ones(2), dtype="float64"),
    "eye": lambda j: j.numpy.eye(2, dtype="complex128"),
    "under jit": lambda j: j.jit(lambda: j.numpy.zeros(2, "float64"))(),
    "with a narrow one": lambda j: j.numpy.zeros(2, "float64") + j.numpy.ones(2),
    "unsigned with signed, which nobody asked for": lambda j: (
        j.numpy.ones(2, "uint32") + j.numpy.ones(2, "int32")),
    "a comparison of these": lambda j: j.numpy.ones(2, "uint32") < j.numpy.ones(2, "int8"),
    "a grid of floats and integers": lambda j: j.numpy.mgrid[0:2, 0:1:2j],
    "with a number": lambda j: j.numpy.zeros(2, "float64") + 1,
    "a function": lambda j: j.numpy.sin(j.numpy.zeros(2, "float64")),
    "an argument of jit": lambda j: j.jit(lambda v: v + 1)(j.numpy.ones(2, "float64")),
    "a product": lambda j: j.numpy.ones((2, 2), "float64") @ j.numpy.ones((2, 2)),
    "a derivative": lambda j: j.grad(lambda v: (v.astype("float64") ** 2).sum().astype(
        "float32"))(j.numpy.ones(2)),
}


@pytest.mark.parametrize("mode", ["warn", "error", "allow"])
@pytest.mark.parametrize("name", WIDE)
def test_explicit_x64_dtypes(name, mode):
    def run(j):
        with option(j, "jax_explicit_x64_dtypes")(mode):
            return WIDE[name](j)
    ours, theirs = outcome(run, maxjax), outcome(run, jax)
    if name == "sum":       # JAX warns of one conversion twice, under two names
        ours, theirs = ours[0], theirs[0]
    assert ours == theirs


@pytest.mark.parametrize("run", [
    lambda j, z: j.lax.convert_element_type(z, "float32"),
    lambda j, z: j.lax.convert_element_type(z, "bool"),
    lambda j, z: j.lax.convert_element_type(1j, "float32"),
    lambda j, z: j.lax.convert_element_type(np.ones(2, np.complex64), "int32"),
    lambda j, z: j.jit(lambda z: j.lax.convert_element_type(z, "float16"))(z),
    lambda j, z: j.numpy.asarray(z, "float32"), lambda j, z: z.astype("float32"),
    lambda j, z: z.astype("bool"), lambda j, z: j.numpy.ones(1).at[0].set(z[0]),
    lambda j, z: z.real, lambda j, z: j.lax.convert_element_type(z, "complex64")])
def test_warns_of_discarded_imaginary_parts(run):
    ours, theirs = (outcome(lambda j: run(j, j.numpy.array([1 + 2j])), j) for j in (maxjax, jax))
    assert ours == theirs


def test_the_result_type_under_explicit_x64_dtypes():
    for mode in ("warn", "error", "allow"):
        def run(j, mode=mode):
            with option(j, "jax_explicit_x64_dtypes")(mode):
                return str(j.numpy.result_type("float64"))
        assert outcome(run, maxjax) == outcome(run, jax)


def test_wide_samples_that_are_allowed():
    def run(j):
        with option(j, "jax_explicit_x64_dtypes")("allow"):
            key = j.random.key(0)
            return [j.random.uniform(key, (3,), "float64"), j.random.bits(key, (3,), "uint64")]
    agree(run)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", ["int64", "float64"])
def test_wide_results_that_are_allowed(name, strict):
    """Also of sums and of functions of integers, and what a ShapeDtypeStruct asks for."""
    def run(j):
        n = j.numpy
        with (option(j, "jax_explicit_x64_dtypes")("allow"),
              j.numpy_dtype_promotion("strict" if strict else "standard")):
            x = n.array([1, 1 << 40], name)
            asked = j.ShapeDtypeStruct((2,), name)
            compiled = j.jit(lambda x: x + 1).lower(asked).compile()
            return [n.sum(x), n.prod(x), n.max(x, initial=0), n.sum(x, initial=0), n.mean(x),
                    n.std(x), n.median(x), n.average(x), n.nansum(x), n.trace(x[:, None]),
                    n.tril(x[:, None]), n.nancumsum(x), n.isclose(x, x), n.sin(x * 0),
                    compiled(x), str(j.eval_shape(lambda x: x, asked).dtype)]
    agree(run)


def test_a_trace_knows_what_is_allowed():
    """The mode is part of a jitted function's signature."""
    def run(j):
        zeros = j.jit(lambda: j.numpy.zeros(2, "float64"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            narrow = zeros()
        with option(j, "jax_explicit_x64_dtypes")("allow"):
            return [narrow, zeros()]
    agree(run)


# --- static indices -------------------------------------------------------------------------------

X = np.arange(6, dtype=np.float32).reshape(2, 3)
INDICES = [2, -3, (0, 3), (0, -4), np.int32(5), np.array([5]), np.array(5), slice(0, 9),
           (Ellipsis, 3), (None, 2), (2, slice(None)), ([0], 5), 1, (1, 2), -2, True]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_check_static_indices(index):
    for run in (lambda j: j.numpy.asarray(X)[index],
                lambda j: j.jit(lambda v: v[index])(X),
                lambda j: j.numpy.asarray(X).at[index].get(),
                lambda j: j.numpy.asarray(X).at[index].get(mode="clip"),
                lambda j: j.numpy.asarray(X).at[index].get(
                    mode="promise_in_bounds", wrap_negative_indices=False),
                lambda j: j.numpy.asarray(X).at[index].set(1.)):
        def checked(j, run=run):
            with option(j, "jax_check_static_indices")(True):
                return run(j)
        assert outcome(checked, maxjax) == outcome(checked, jax)


def test_a_trace_knows_that_indices_are_checked():
    def run(j):
        jitted = j.jit(lambda v: v[5])
        jitted(X)
        with option(j, "jax_check_static_indices")(True):
            jitted(X)
    assert_same_error(run, whole=True)


# --- backward rules -------------------------------------------------------------------------------

BACKWARD = {
    "another shape": lambda j, res, g: (g * j.numpy.ones(3), res[0] * j.numpy.ones(2)),
    "a scalar for a vector": lambda j, res, g: (g, j.numpy.ones(())),
    "a longer vector": lambda j, res, g: (g, j.numpy.ones(3)),
    "None and a longer one": lambda j, res, g: (None, j.numpy.ones(3)),
    "too few": lambda j, res, g: (g,),
    "as it should be": lambda j, res, g: (g, res[0] * j.numpy.ones(2)),
}


def product(j, backward):
    @j.custom_vjp
    def f(x, y):
        return x * y.sum()
    f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda res, g: backward(j, res, g))
    return f


@pytest.mark.parametrize("disabled", [False, True])
@pytest.mark.parametrize("name", BACKWARD)
def test_disable_bwd_checks(name, disabled):
    for use in (lambda j, f: j.grad(f, (0, 1)), lambda j, f: j.jit(j.grad(f, (0, 1))),
                lambda j, f: lambda *xs: j.vjp(f, *xs)[1](j.numpy.float32(1))):
        results = []
        for j in LIBRARIES:
            with option(j, "jax_disable_bwd_checks")(disabled):
                try:
                    given = use(j, product(j, BACKWARD[name]))(
                        j.numpy.float32(2), j.numpy.ones(2))
                    results.append([(x.dtype.name, np.asarray(x).tolist()) for x in given])
                except Exception as error:
                    results.append((type(error).__name__, str(error)))
        assert results[0] == results[1]


# --- why a function is traced ---------------------------------------------------------------------

def explanations(j, run):
    """The log output while misses are explained."""
    logger = logging.getLogger("maxjax" if j is maxjax else "jax")
    level = logger.level
    records: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING)      # whatever other tests have set
    try:
        with j.explain_cache_misses(True):
            run(j)
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)
    return [text for text in records if "TRACING CACHE MISS" in text]


@pytest.mark.parametrize("calls,reason", [
    ([((1.,), {})], "never seen function"),
    ([((1.,), {}), ((2.,), {})], None),
    ([((1.,), {}), ((1,), {})], "different input types:\n  * at x, now i32[]"),
    ([((X,), {}), ((X[0],), {})],
     "different input types:\n  * at x, now f32[3]"),
    ([((1.,), {}), ((1.,), {"y": 2.})], "different input pytree"),
    ([(([1.],), {}), (((1.,),), {})], "so their Python types differ"),
    ([(({"a": 1.},), {}), (({"b": 1.},), {})], "so the pytree node metadata does not match"),
])
def test_explain_cache_misses(calls, reason):
    found = []
    for j in LIBRARIES:
        def f(x, y=0.):
            return x

        jitted = j.jit(f)
        for args, kwargs in calls[:-1]:
            jitted(*args, **kwargs)
        found.append(explanations(j, lambda j, f=jitted: f(*calls[-1][0], **calls[-1][1])))
    ours, theirs = found
    assert len(ours) == len(theirs) == (reason is not None)
    if reason is not None:
        assert reason in ours[0] and reason in theirs[0]
        assert f"TRACING CACHE MISS at {__file__}:" in ours[0]
        for line in theirs[0].splitlines()[1:2]:
            assert re.sub(r"id=\d+", "", line) in re.sub(r"id=\d+", "", ours[0])


def test_the_options_that_a_trace_was_made_under_are_explained():
    def run(j):
        jitted = j.jit(lambda x: x + 1)
        jitted(X)
        with j.numpy_rank_promotion("warn"):
            jitted(X)
    for j in LIBRARIES:
        assert "Tracing context doesn't match" in explanations(j, run)[1]
        assert "jax_numpy_rank_promotion differs: now warn and before allow" in (
            explanations(j, run)[1])


def test_a_function_that_is_made_again_is_told_of():
    def run(j):
        for _ in range(2):
            j.jit(lambda x: x + 1)(X)
    for j in LIBRARIES:
        assert "but seen another function defined on the same line" in explanations(j, run)[1]


# --- random keys, softmax, constants, meshes ------------------------------------------------------

KEY = np.array([0, 1], np.uint32)


@pytest.mark.parametrize("state", ["allow", "warn", "error"])
@pytest.mark.parametrize("use", [
    lambda j, key: j.random.uniform(key), lambda j, key: j.random.split(key),
    lambda j, key: j.random.fold_in(key, 1), lambda j, key: j.random.key_data(key),
    lambda j, key: j.random.bits(key), lambda j, key: j.random.PRNGKey(0),
    lambda j, key: j.random.uniform(j.random.key(0))])
def test_legacy_prng_keys(use, state):
    def run(j):
        with j.legacy_prng_key(state):
            return use(j, j.numpy.asarray(KEY))
    assert outcome(run, maxjax) == outcome(run, jax)


@pytest.mark.parametrize("use", [
    lambda j: j.random.key_data(j.random.PRNGKey(3)), lambda j: j.random.uniform(KEY),
    lambda j: j.random.key_data(j.random.split(j.numpy.asarray(KEY))),
    lambda j: str(j.random.PRNGKey(0).dtype), lambda j: j.random.key_data(KEY)])
def test_enable_custom_prng(use):
    def run(j):
        with j.enable_custom_prng(True):
            return use(j)
    assert outcome(run, maxjax) == outcome(run, jax)


def test_high_dynamic_range_gumbel():
    def run(j):
        with option(j, "jax_high_dynamic_range_gumbel")(True):
            key = j.random.key(0)
            return [j.random.gumbel(key, (3,)), j.random.categorical(key, j.numpy.zeros((3, 4))),
                    j.jit(lambda k: j.random.gumbel(k, (3,)))(key)]
    agree(run)


@pytest.mark.parametrize("where", [None, np.array([True, False, True])])
def test_softmax_custom_jvp(where):
    def run(j):
        with j.softmax_custom_jvp(True):
            jaxpr = str(j.make_jaxpr(lambda x: j.nn.softmax(x, where=where))(X))
            assert "custom_jvp_call" in jaxpr
            return [j.nn.softmax(X, where=where), j.nn.softmax(X, axis=0),
                    j.jacobian(lambda x: j.nn.softmax(x, where=where))(X),
                    j.jacobian(j.jacfwd(j.nn.softmax))(X[0])]
    agree(run)


@pytest.mark.parametrize("limit,size,warns", [
    (100, 26, True), (105, 26, False), (100, 24, False), (-1, 100, False), (4000, 1000, True)])
def test_captured_constants(limit, size, warns):
    messages = []
    for j in LIBRARIES:
        constant = j.numpy.arange(float(size))
        with option(j, "jax_captured_constants_warn_bytes")(limit), warnings.catch_warnings(
                record=True) as caught:
            warnings.simplefilter("always")
            jitted = j.jit(lambda x, constant=constant: x + constant)
            jitted(1.)
            jitted(2.)
        messages.append([str(w.message).split(". To obtain")[0].rstrip(".") for w in caught])
    assert messages[0] == messages[1] and len(messages[0]) == warns


def test_disallow_mesh_context_manager():
    def run(j):
        with option(j, "jax_disallow_mesh_context_manager")(True), j.make_mesh((1,), ("x",)):
            pass
    assert_same_error(run, whole=True)


# --- nothing is to run ----------------------------------------------------------------------------

@pytest.mark.parametrize("use", [
    lambda j, x: x + 1, lambda j, x: j.jit(lambda v: v * 2)(x), lambda j, x: j.grad(
        lambda v: v * 2)(1.)])
def test_no_execution(use):
    x = {j: j.numpy.asarray(X) for j in LIBRARIES}

    def run(j):
        with j.no_execution(True):
            return use(j, x[j])
    ours, theirs = errors_of(run)
    assert type(ours) is type(theirs) is RuntimeError
    assert re.sub(r"\(\w+\)", "", str(ours)) == re.sub(r"\(\w+\)", "", str(theirs))


def test_what_no_execution_allows():
    def run(j):
        x = j.numpy.asarray(X)
        with j.no_execution(True):
            return [np.asarray(x), str(j.make_jaxpr(lambda v: v * 2)(1.))]
    agree(run)


# --- platforms ------------------------------------------------------------------------------------

PLATFORMS = ("cpu", "gpu", "cuda", "rocm", "foo", "", "CPU")


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("use", [
    lambda j, p: len(j.devices(p)), lambda j, p: len(j.local_devices(backend=p)),
    lambda j, p: j.device_count(p), lambda j, p: j.local_device_count(p),
    lambda j, p: j.process_index(p), lambda j, p: j.process_count(p),
    lambda j, p: j.process_indices(p), lambda j, p: len(j.live_arrays(p)) >= 0,
    lambda j, p: j.device_put(1., p), lambda j, p: j.jit(lambda x: x + 1, backend=p)(1.),
    lambda j, p: j.jit(lambda x: x + 1, backend=p).lower(1.) and None,
    lambda j, p: j.jit(lambda y: j.jit(lambda x: x + 1, backend=p)(y))(1.),
    lambda j, p: j.pmap(lambda x: x + 1, backend=p)(np.ones((1, 2), np.float32))])
def test_platforms(use, platform):
    def run(j):
        return use(j, platform)
    assert outcome(run, maxjax) == outcome(run, jax)


@pytest.mark.parametrize("device", [*PLATFORMS, None, 3])
def test_the_default_device(device):
    def inside(j):
        with j.default_device(device):
            return [j.numpy.ones(2) + 1, j.jit(lambda x: x)(1.)] and None

    def updated(j):
        try:
            j.config.update("jax_default_device", device)
            return j.numpy.add(1, 2)
        finally:
            j.config.update("jax_default_device", None)
    for run in (inside, updated):
        assert outcome(run, maxjax) == outcome(run, jax)


PLACES = """
import numpy as np
import {library} as jax
jnp = jax.numpy
jax.config.update("jax_num_cpu_devices", 3)
x = jnp.ones(3)
def made():
    return {{
        "ones": jnp.ones(3), "asarray": jnp.asarray(np.ones(3)), "array": jnp.array([1., 2.]),
        "a scalar": jnp.float32(1), "a number": jnp.asarray(1.), "an operation": x + 1,
        "a program without arguments": jax.jit(lambda: jnp.ones(3))(),
        "a program": jax.jit(lambda v: v + 1)(x), "an index": x[0],
        "device_put": jax.device_put(np.ones(3)), "itself": jax.device_put(x),
        "put elsewhere": jax.device_put(x, jax.devices()[2]) + 1,
        "zeros_like": jnp.zeros_like(x), "uniform": jax.random.uniform(jax.random.key(0)),
        "a derivative": jax.grad(lambda v: v * 2)(1.), "mapped": jax.vmap(lambda v: v * 2)(x),
        "a loop": jax.lax.scan(lambda c, a: (c + a, c), 0., x)[0]}}
with jax.default_device(jax.devices()[1]):
    inside = made()
jax.config.update("jax_default_device", jax.devices()[1])
updated = made()
jax.config.update("jax_default_device", None)
for name, value in [*inside.items(), *updated.items()]:
    print(name, value.devices(), value.committed, (value + 0).devices(), (value + x[0]).devices())
print(x.devices())
"""


def test_where_arrays_lie_that_were_made_on_the_default_device():
    ours, theirs = [subprocess.run(
        [sys.executable, "-c", PLACES.format(library=library)], capture_output=True, text=True,
        env={**os.environ, "XLA_FLAGS": ""}, timeout=120, check=True).stdout.splitlines()
        for library in ("maxjax", "jax")]
    assert ours == theirs and len(ours) == 35


def test_a_tpu_is_refused():
    """JAX's message is about its own library."""
    for use in (lambda j: j.devices("tpu"), lambda j: j.jit(lambda x: x, backend="tpu")(1.)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours, theirs = errors_of(use)
        assert type(ours) is type(theirs) is RuntimeError


def test_renamed_arguments():
    def run(j):
        return len(j.local_devices(host_id=0))
    assert outcome(run, maxjax) == outcome(run, jax)
    assert_same_error(lambda j: j.local_devices(7), whole=True)


PROGRAM = """
import sys
import {library} as jax
try:
    if {before!r}:
        jax.config.update(*{before!r})
    x = jax.numpy.arange(3) + 1
    print(int(x.sum()), len(jax.devices()))
    jax.config.update("jax_num_cpu_devices", 7)
except Exception as error:
    print(type(error).__name__, str(error))
"""


def in_a_process(library, before=None, **environment):
    """The output and log of a program in a separate process."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(library=library, before=before)],
        env={**os.environ, "JAX_PLATFORMS": "", "XLA_FLAGS": "", **environment},
        capture_output=True, text=True, timeout=120, check=False)
    return done.stdout.splitlines(), done.stderr


TOO_LATE = "RuntimeError jax_num_cpu_devices config should be updated before backends are"


@pytest.mark.parametrize("before,environment,error", [
    (None, {"JAX_NUM_CPU_DEVICES": "4"}, TOO_LATE),
    (("jax_num_cpu_devices", 3), {}, TOO_LATE),
    (None, {"JAX_PLATFORMS": "bogus"}, "RuntimeError Unable to initialize backend 'bogus'"),
    (("jax_platform_name", "gpu"), {"JAX_PLATFORMS": "cuda,cpu"},
     "RuntimeError Unknown backend: 'gpu' requested, but no platforms"),
    (None, {"JAX_ENABLE_X64": "maybe"},
     "ValueError: invalid truth value 'maybe' for environment 'JAX_ENABLE_X64'"),
    (None, {"JAX_EXPLICIT_X64_DTYPES": "ERROR"},
     'ValueError: Invalid value "ERROR" for JAX flag jax_explicit_x64_dtypes'),
])
def test_variables_of_jax(before, environment, error):
    results = [in_a_process(library, before, **environment) for library in ("maxjax", "jax")]
    (ours, log), (theirs, their_log) = results
    assert ours[:-1] == theirs[:-1]
    for lines, text in ((ours, log), (theirs, their_log)):
        assert error in (lines[-1] if lines else text.splitlines()[-1])


def test_no_platform_that_is_there():
    """JAX raises an AssertionError without a message."""
    ours, _ = in_a_process("maxjax", JAX_PLATFORMS="cuda")
    assert ours == ["RuntimeError Unable to initialize backend 'cuda': there is no accelerator "
                    "that MAX finds, and maxjax computes on the CPU (set JAX_PLATFORMS='' to "
                    "automatically choose an available backend)"]


def test_variables_of_maxjax():
    ours, log = in_a_process("maxjax", MAXJAX_COMPIL="never", MAXJAX_CACHE_MAXBYTES="1")
    assert ours[0] == "6 1"
    assert log.splitlines() == [
        "environment variable MAXJAX_CACHE_MAXBYTES has no effect: did you mean "
        "MAXJAX_CACHE_MAX_BYTES?",
        "environment variable MAXJAX_COMPIL has no effect: did you mean MAXJAX_COMPILE?"]


@pytest.mark.parametrize("name,text,message", [
    ("MAXJAX_CACHE_MAX_BYTES", "1GB", "is '1GB', and needs to be a whole number of bytes"),
    ("MAXJAX_COMPILE", "nevr", 'Invalid value "nevr" for environment variable MAXJAX_COMPILE')])
def test_variables_that_are_refused(name, text, message):
    _, log = in_a_process("maxjax", **{name: text})
    assert message in log.splitlines()[-1]


def test_the_bytes_of_the_cache(monkeypatch):
    monkeypatch.delenv("MAXJAX_CACHE_MAX_BYTES", raising=False)
    assert variables.cache_max_bytes(5) == 5
    monkeypatch.setenv("MAXJAX_CACHE_MAX_BYTES", " 1000 ")
    assert variables.cache_max_bytes(5) == 1000


# --- options of the compiler ----------------------------------------------------------------------

@pytest.mark.parametrize("options", [
    {"foo": 1}, {"max_iters": 3}, {}, {"xla_embed_ir_in_executable": True},
    {"exec_time_optimization_effort": 0.1}, {"xla_embed_ir_in_executable": "false"},
    {"xla_embed_ir_in_executable": 2}, {"xla_backend_optimization_level": "3.5"},
    {"xla_backend_optimization_level": True}, {"xla_backend_optimization_level": 2**31},
    {"xla_gpu_autotune_gemm_rtol": "x"}, {"xla_no_such": 1}])
def test_compiler_options(options):
    for run in (lambda j: j.jit(lambda x: x + 1, compiler_options=options)(1.),
                lambda j: j.jit(lambda x: x + 1).lower(1.).compile(
                    compiler_options=options) and None):
        ours, theirs = outcome(run, maxjax), outcome(run, jax)
        assert ours == theirs

    def nested(j):
        inner = j.jit(lambda x: x + 1, compiler_options=options)
        return j.jit(lambda x: inner(x))(1.)
    ours, theirs = outcome(nested, maxjax)[0], outcome(nested, jax)[0]
    assert ours[0] == theirs[0]
    assert str(ours[1]).split("source info")[0] == str(theirs[1]).split("source info")[0]


@pytest.mark.parametrize("level", ["O1", "foo", 2, 19, None, True, "enum"])
def test_levels_of_effort(level):
    def run(j):
        chosen = j.CompilerEffortLevel.O3 if level == "enum" else level
        return j.jit(lambda x: x + 1, compiler_options={"optimization_level": chosen})(1.)
    assert outcome(run, maxjax) == outcome(run, jax)


def test_the_options_of_xla():
    """Each is of the type that XLA says it is."""
    lowered = jax.jit(lambda x: x).lower(1.)
    for name, kind in XLA_OPTIONS.items():
        wrong = 1 if kind == "string" else "wrong"
        with pytest.raises(jax.errors.JaxRuntimeError, match=f"{name}, '{wrong}' is not a valid "
                                                             f"{kind} value"):
            lowered.compile(compiler_options={name: wrong})


@pytest.mark.parametrize("options", ["foo", [("xla_dump_to", "x")], {3: 4},
                                     {"xla_dump_to": object()}])
def test_what_compiler_options_are_not(options):
    for use in (lambda j: j.jit(lambda x: x + 1, compiler_options=options)(1.),
                lambda j: j.jit(lambda x: x + 1).lower(1.).compile(compiler_options=options)):
        ours, theirs = errors_of(use)
        assert type(ours) is type(theirs)


def test_options_of_xla_are_told_once_to_have_no_effect(monkeypatch, caplog):
    monkeypatch.setattr(target, "_warned", set())
    with caplog.at_level(logging.WARNING, "maxjax"):
        for _ in range(2):
            maxjax.jit(lambda x: x, compiler_options={"xla_cpu_enable_fast_math": True})(1.)
    assert [record.getMessage() for record in caplog.records] == [
        "compiler option xla_cpu_enable_fast_math=True has no effect: XLA is not what compiles "
        "here"]


# --- what a machine does not have -----------------------------------------------------------------

@pytest.mark.parametrize("use", [
    lambda j: j.numpy.broadcast_to(j.numpy.float32(1), (1 << 40, 4)) + 1,
    lambda j: j.numpy.ones((1 << 20, 1)) @ j.numpy.ones((1, 1 << 22)),
    lambda j: j.jit(lambda a, b: a @ b)(j.numpy.ones((1 << 20, 1)), j.numpy.ones((1, 1 << 22)))])
def test_out_of_memory(use):
    def run(j):
        return j.block_until_ready(use(j))
    error = assert_same_error(run, whole=True)
    assert str(error) == "RESOURCE_EXHAUSTED: Out of memory allocating 17592186044416 bytes."
    assert float(maxjax.numpy.ones(3).sum()) == 3.0


@pytest.mark.tier1
@pytest.mark.xdist_group("mojo")
@pytest.mark.extended
def test_out_of_memory_in_a_compiled_program():
    column, row = maxjax.numpy.ones((1 << 20, 1)), maxjax.numpy.ones((1, 1 << 22))
    with option(maxjax, "compile")("always"), pytest.raises(
            maxjax.errors.JaxRuntimeError, match="Out of memory allocating 17592186044416 bytes"):
        maxjax.jit(lambda a, b: a @ b)(column, row).block_until_ready()


def test_no_c_compiler(monkeypatch, tmp_path):
    """The Mojo compiler would only report it after it has compiled everything."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("MAXJAX_STANDARD_LIBRARY", "max")
    with pytest.raises(toolchain.ToolchainError, match="no C compiler") as caught:
        toolchain.build_library("", tmp_path / "library.so")
    assert caught.value.kind == "missing"       # nothing else is tried
    assert not list(tmp_path.iterdir())


def test_programs_without_a_c_compiler_are_interpreted_at_once(tmp_path):
    """``compile="always"`` does not wait for the graph backend, which would take minutes. (With the
    small standard library none is needed: ``tests/mojo/test_slim.py``.)"""
    (tmp_path / "bin").mkdir()
    (tmp_path / "cache").mkdir(mode=0o700)
    program = """
import warnings
import maxjax
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for scale in (2., 3.):
        jitted = maxjax.jit(lambda x: maxjax.numpy.exp(x) * scale)
        print(float(jitted(maxjax.numpy.zeros(8)).sum()))
print(*[str(w.message) for w in caught], sep="\\n")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True,
        env={**os.environ, "PATH": str(tmp_path / "bin"), "MAXJAX_COMPILE": "always",
             "MAXJAX_BACKEND": "mojo", "MAXJAX_CACHE_DIR": str(tmp_path / "cache"),
             "MAXJAX_STANDARD_LIBRARY": "max"})
    assert done.stdout.splitlines() == [
        "16.0", "24.0", "maxjax: no C compiler, which the Mojo compiler links with: PATH has no cc"]


def test_a_c_compiler_that_mojo_does_not_find():
    said = "mojo: error: unable to find suitable c compiler for linking"
    with pytest.raises(toolchain.ToolchainError, match="no C compiler") as caught:
        toolchain._judge(1, said)
    assert caught.value.kind == "missing"
