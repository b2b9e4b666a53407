"""Every access to a value, under every transformation: JAX's error, or JAX's value.

Code that gets a plain number from a traced value computes outside the transformation. If that would
lose a tangent it is an error, as in JAX, never a number.
"""

from __future__ import annotations

import array
import cmath
import copy
import ctypes
import datetime
import decimal
import fractions
import io
import json
import math
import operator
import pickle
import re
import statistics
import struct
import sys
import warnings

import jax
import ml_dtypes
import numpy as np
import pytest
import scipy.linalg
import scipy.special

import maxjax


def written(write):
    """A NumPy array after ``write``."""
    target = np.zeros(3, np.float32)
    write(target)
    return target


def printed(x):
    print(x, file=io.StringIO())


def saved(x):
    np.save(io.BytesIO(), x)


def matched(x):
    match x:
        case 2.0:
            return 1.0
        case _:
            return 0.0


def unpacked(x):
    first, second, _ = x
    return first - second


def asserted(x):
    assert x > 1
    return 1.0


TABLE = np.array([5.0, 6.0, 7.0, 8.0], np.float32)

# name: (the subject, the access). "scalar" is float32[], "vector" float32[3], "integer" int32[].
LOOKS = {
    # Python's conversions and operators.
    "bool": ("scalar", lambda j, x: bool(x)),
    "not": ("scalar", lambda j, x: not x),
    "if": ("scalar", lambda j, x: x if x > 1 else -x),
    "and": ("scalar", lambda j, x: x and 1.0),
    "assert": ("scalar", lambda j, x: asserted(x)),
    "match": ("scalar", lambda j, x: matched(x)),
    "int": ("scalar", lambda j, x: int(x)),
    "float": ("scalar", lambda j, x: float(x)),
    "complex": ("scalar", lambda j, x: complex(x)),
    "complex of two": ("scalar", lambda j, x: complex(x, 1.0)),
    "index": ("scalar", lambda j, x: operator.index(x)),
    "round": ("scalar", lambda j, x: round(x)),
    "round to digits": ("scalar", lambda j, x: round(x, 1)),
    "divmod": ("scalar", lambda j, x: divmod(x, 1.5)[0]),
    "pow": ("scalar", lambda j, x: pow(1.5, x)),
    "abs": ("scalar", lambda j, x: abs(x)),
    "hash": ("scalar", lambda j, x: hash(x)),
    "key of a dictionary": ("scalar", lambda j, x: {2.0: 1.0}[x]),
    "in a list": ("scalar", lambda j, x: x in [1.0, 2.0]),
    "min": ("scalar", lambda j, x: min(x, 1.0)),
    "sorted": ("scalar", lambda j, x: sorted([x, 1.0])[0]),
    "sum of a list": ("scalar", lambda j, x: sum([x, 1.0])),
    "range": ("scalar", lambda j, x: len(range(x))),
    "list of so many": ("scalar", lambda j, x: [1.0] * x),
    "element of a list": ("scalar", lambda j, x: [1.0, 2.0, 3.0][x]),
    "format": ("scalar", lambda j, x: f"{x:.3f}"),
    "format, nothing said": ("scalar", lambda j, x: type(f"{x}")),
    "percent": ("scalar", lambda j, x: "%.3f" % x),         # noqa: UP031
    "percent d": ("scalar", lambda j, x: "%d" % x),         # noqa: UP031
    "str": ("scalar", lambda j, x: type(str(x))),
    "repr": ("scalar", lambda j, x: type(repr(x))),
    "print": ("scalar", lambda j, x: printed(x)),
    "len": ("scalar", lambda j, x: len(x)),
    "iter": ("scalar", lambda j, x: list(x)),
    # Python's library.
    "math.sin": ("scalar", lambda j, x: math.sin(x)),
    "math.floor": ("scalar", lambda j, x: math.floor(x)),
    "math.ceil": ("scalar", lambda j, x: math.ceil(x)),
    "math.trunc": ("scalar", lambda j, x: math.trunc(x)),
    "math.isnan": ("scalar", lambda j, x: math.isnan(x)),
    "math.fsum": ("scalar", lambda j, x: math.fsum([x, 1.0])),
    "math.prod": ("scalar", lambda j, x: math.prod([x, 2.0])),
    "cmath.sqrt": ("scalar", lambda j, x: cmath.sqrt(x)),
    "decimal": ("scalar", lambda j, x: float(decimal.Decimal(x))),
    "fraction": ("scalar", lambda j, x: float(fractions.Fraction(x))),
    "statistics": ("scalar", lambda j, x: statistics.fmean([x, 1.0])),
    "timedelta": ("scalar", lambda j, x: datetime.timedelta(seconds=x).total_seconds()),
    "array.array": ("scalar", lambda j, x: array.array("f", [x])[0]),
    "struct": ("scalar", lambda j, x: struct.pack("f", x)),
    "ctypes": ("scalar", lambda j, x: ctypes.c_float(x).value),
    "json": ("scalar", lambda j, x: json.dumps(x)),
    # An array's own methods.
    "item": ("scalar", lambda j, x: x.item()),
    "item at": ("vector", lambda j, x: x.item(1)),
    "item of many": ("vector", lambda j, x: x.item()),
    "tolist": ("vector", lambda j, x: x.tolist()),
    "tolist of a scalar": ("scalar", lambda j, x: x.tolist()),
    "tobytes": ("vector", lambda j, x: x.tobytes()),
    "float of many": ("vector", lambda j, x: float(x)),
    "int of many": ("vector", lambda j, x: int(x)),
    "bool of many": ("vector", lambda j, x: bool(x)),
    "bool of a comparison": ("vector", lambda j, x: bool(x > 1)),
    "bool of any": ("vector", lambda j, x: bool((x > 1).any())),
    "index of many": ("vector", lambda j, x: operator.index(x)),
    "len of many": ("vector", lambda j, x: len(x)),
    "iter of many": ("vector", lambda j, x: list(x)),
    "unpacking": ("vector", lambda j, x: unpacked(x)),
    "reversed": ("vector", lambda j, x: next(reversed(x))),
    "zip": ("vector", lambda j, x: [a * b for a, b in zip(x, x, strict=True)]),
    "sum": ("vector", lambda j, x: sum(x)),
    "max": ("vector", lambda j, x: max(x)),
    "floats": ("vector", lambda j, x: [float(element) for element in x]),
    "in": ("vector", lambda j, x: 2.0 in x),
    "setitem": ("vector", lambda j, x: x.__setitem__(0, 1.0)),
    "copy": ("vector", lambda j, x: copy.copy(x)),
    "deepcopy": ("vector", lambda j, x: copy.deepcopy(x)),
    "pickle": ("vector", lambda j, x: type(pickle.dumps(x))),
    "pickle of two": ("vector", lambda j, x: type(pickle.dumps(x, 2))),
    "copied by hand": ("vector", lambda j, x: x.copy()),
    "memoryview": ("vector", lambda j, x: memoryview(x).nbytes),
    "bytes": ("vector", lambda j, x: bytes(x)),
    "bytearray": ("vector", lambda j, x: bytearray(x)),
    "dlpack": ("vector", lambda j, x: type(x.__dlpack__())),
    "dlpack device": ("vector", lambda j, x: [int(n) for n in x.__dlpack_device__()]),
    "np.from_dlpack": ("vector", lambda j, x: np.from_dlpack(x)),
    "numpy.from_dlpack": ("vector", lambda j, x: j.numpy.from_dlpack(x)),
    "array interface": ("vector", lambda j, x: type(x.__array_interface__)),
    "array struct": ("vector", lambda j, x: type(x.__array_struct__)),
    "array ufunc": ("vector", lambda j, x: hasattr(x, "__array_ufunc__")),
    "array function": ("vector", lambda j, x: hasattr(x, "__array_function__")),
    "array": ("vector", lambda j, x: x.__array__()),
    "array of a dtype": ("vector", lambda j, x: x.__array__(np.float64)),
    # Members of arrays with memory.
    "addressable data": ("vector", lambda j, x: x.addressable_data(0)),
    "addressable shards": ("vector", lambda j, x: len(x.addressable_shards)),
    "global shards": ("vector", lambda j, x: len(x.global_shards)),
    "block until ready": ("vector", lambda j, x: x.block_until_ready()),
    "block_until_ready": ("vector", lambda j, x: j.block_until_ready(x)),
    "copy to host": ("vector", lambda j, x: x.copy_to_host_async()),
    "deleted": ("vector", lambda j, x: x.is_deleted()),
    "device": ("vector", lambda j, x: x.device.platform),
    "devices": ("vector", lambda j, x: len(x.devices())),
    "sharding": ("vector", lambda j, x: len(x.sharding.device_set)),
    "fully addressable": ("vector", lambda j, x: x.is_fully_addressable),
    "fully replicated": ("vector", lambda j, x: x.is_fully_replicated),
    "bytes on the device": ("vector", lambda j, x: x.on_device_size_in_bytes()),
    "pointer": ("vector", lambda j, x: type(x.unsafe_buffer_pointer())),
    "device_get": ("vector", lambda j, x: j.device_get(x)),
    "device_put": ("vector", lambda j, x: j.device_put(x)),
    "device_put on a device": ("vector", lambda j, x: j.device_put(x, j.devices()[0])),
    # Conversions to NumPy arrays.
    "np.asarray": ("vector", lambda j, x: np.asarray(x)),
    "np.asarray of a scalar": ("scalar", lambda j, x: np.asarray(x)),
    "np.asarray of a dtype": ("vector", lambda j, x: np.asarray(x, np.float64)),
    "np.array": ("vector", lambda j, x: np.array(x)),
    "np.array of a list": ("vector", lambda j, x: np.array([x, x])),
    "np.array of scalars": ("scalar", lambda j, x: np.array([x, 1.0])),
    "np.array of scalars and a dtype": ("scalar", lambda j, x: np.array([x, 1.0], np.float32)),
    "np.array of objects": ("vector", lambda j, x: np.array(x, dtype=object).shape),
    "np.ascontiguousarray": ("vector", lambda j, x: np.ascontiguousarray(x)),
    "np.float32": ("scalar", lambda j, x: np.float32(x)),
    "np.float64": ("scalar", lambda j, x: np.float64(x)),
    "np.int32": ("scalar", lambda j, x: np.int32(x)),
    "np.bool": ("scalar", lambda j, x: np.bool_(x)),
    "bfloat16": ("scalar", lambda j, x: float(ml_dtypes.bfloat16(x))),
    "np.full": ("scalar", lambda j, x: np.full(3, x)),
    "np.full_like": ("vector", lambda j, x: np.full_like(TABLE[:3], x)),
    "np.zeros_like": ("vector", lambda j, x: np.zeros_like(x)),
    "np.fromiter": ("vector", lambda j, x: np.fromiter(x, np.float32)),
    "np.frombuffer": ("vector", lambda j, x: np.frombuffer(x, np.float32)),
    "np.stack": ("vector", lambda j, x: np.stack([x, x])),
    "np.concatenate": ("vector", lambda j, x: np.concatenate([x, x])),
    "np.save": ("vector", lambda j, x: saved(x)),
    # NumPy's functions.
    "np.sin": ("scalar", lambda j, x: np.sin(x)),
    "np.square": ("vector", lambda j, x: np.square(x)),
    "np.add": ("vector", lambda j, x: np.add(x, 1)),
    "np.add on the right": ("vector", lambda j, x: np.add(np.float32(1), x)),
    "np.add.reduce": ("vector", lambda j, x: np.add.reduce(x)),
    "np.add.at": ("vector", lambda j, x: written(lambda a: np.add.at(a, [0, 1, 2], x))),
    "np.multiply.outer": ("vector", lambda j, x: np.multiply.outer(x, x)),
    "np out": ("vector", lambda j, x: written(lambda a: np.sin(x, out=a))),
    "np.sum": ("vector", lambda j, x: np.sum(x)),
    "np.mean": ("vector", lambda j, x: np.mean(x)),
    "np.max": ("vector", lambda j, x: np.max(x)),
    "np.argmax": ("vector", lambda j, x: np.argmax(x)),
    "np.cumsum": ("vector", lambda j, x: np.cumsum(x)),
    "np.reshape": ("vector", lambda j, x: np.reshape(x, (1, 3))),
    "np.clip": ("vector", lambda j, x: np.clip(x, 0.0, 2.0)),
    "np.round": ("vector", lambda j, x: np.round(x)),
    "np.take": ("vector", lambda j, x: np.take(x, 1)),
    "np.sort": ("vector", lambda j, x: np.sort(x)),
    "np.dot": ("vector", lambda j, x: np.dot(x, x)),
    "np.matmul": ("vector", lambda j, x: np.matmul(x, x)),
    "np.einsum": ("vector", lambda j, x: np.einsum("i,i", x, x)),
    "np.linalg.norm": ("vector", lambda j, x: np.linalg.norm(x)),
    "np.interp": ("scalar", lambda j, x: np.interp(x, [0.0, 4.0], [1.0, 2.0])),
    "np.where": ("vector", lambda j, x: np.where(x > 1, x, 0.0)),
    "np.maximum": ("vector", lambda j, x: np.maximum(x, 0.0)),
    "np.vectorize": ("vector", lambda j, x: np.vectorize(lambda v: v * 2)(x)),
    "np.shape": ("vector", lambda j, x: [*np.shape(x), np.ndim(x), np.size(x)]),
    "np.isscalar": ("scalar", lambda j, x: np.isscalar(x)),
    "np.result_type": ("vector", lambda j, x: str(np.result_type(x))),
    "np.allclose": ("vector", lambda j, x: np.allclose(x, 1.0)),
    "np.array_equal": ("vector", lambda j, x: np.array_equal(x, x)),
    "np.isnan": ("vector", lambda j, x: np.isnan(x).any()),
    "np.testing": ("vector", lambda j, x: np.testing.assert_array_less(x, 1e9)),
    "np.random": ("vector", lambda j, x: np.random.default_rng(0).normal(x)),
    "scipy.special": ("scalar", lambda j, x: scipy.special.gammaln(x)),
    "scipy.linalg": ("vector", lambda j, x: scipy.linalg.norm(x)),
    # NumPy's arrays and scalars in operators.
    "np array * x": ("vector", lambda j, x: TABLE[:3] * x),
    "x * np array": ("vector", lambda j, x: x * TABLE[:3]),
    "np array @ x": ("vector", lambda j, x: TABLE[:3] @ x),
    "np scalar * x": ("vector", lambda j, x: np.float32(2) * x),
    "np array < x": ("vector", lambda j, x: TABLE[:3] < x),
    "np array += x": ("vector", lambda j, x: written(lambda a: operator.iadd(a, x))),
    # Assignments into NumPy arrays, and their elements.
    "a[:] = x": ("vector", lambda j, x: written(lambda a: operator.setitem(a, slice(None), x))),
    "a[0] = x": ("scalar", lambda j, x: written(lambda a: operator.setitem(a, 0, x))),
    "a[x] = 1": ("scalar", lambda j, x: written(lambda a: operator.setitem(a, x, 1.0))),
    "a.flat = x": ("scalar", lambda j, x: written(lambda a: setattr(a, "flat", x))),
    "a.fill(x)": ("scalar", lambda j, x: written(lambda a: a.fill(x))),
    "np.copyto": ("vector", lambda j, x: written(lambda a: np.copyto(a, x))),
    "np.put": ("vector", lambda j, x: written(lambda a: np.put(a, [0, 1, 2], x))),
    "a[x]": ("scalar", lambda j, x: TABLE[x]),
    "a[x > 1]": ("vector", lambda j, x: TABLE[:3][x > 1]),
    "a[x of integers]": ("vector", lambda j, x: TABLE[x.astype(int)]),
    # Where the library itself needs a value.
    "numpy.array of scalars": ("scalar", lambda j, x: j.numpy.array([x, 1.0])),
    "numpy.array of floats": ("scalar", lambda j, x: j.numpy.array([float(x), 1.0])),
    "numpy.arange": ("scalar", lambda j, x: j.numpy.arange(x)),
    "numpy.linspace": ("scalar", lambda j, x: j.numpy.linspace(0.0, x, 3)),
    "numpy.nonzero": ("vector", lambda j, x: j.numpy.nonzero(x)[0]),
    "numpy.where": ("vector", lambda j, x: j.numpy.where(x > 1)[0]),
    "numpy.unique": ("vector", lambda j, x: j.numpy.unique(x)),
    "numpy.interp": ("scalar", lambda j, x: j.numpy.interp(
        x, np.float32([0, 4]), np.float32([1, 2]))),
    "x[x > 1]": ("vector", lambda j, x: x[x > 1]),
}
# Integers have no tangent, so they give a number if it is known.
INTEGER_LOOKS = {
    "index": lambda j, n: operator.index(n),
    "range": lambda j, n: len(range(n)),
    "range over": lambda j, n: list(range(n)),
    "list of so many": lambda j, n: [1.0] * n,
    "element of a list": lambda j, n: [1.0, 2.0, 3.0][n],
    "slice of a list": lambda j, n: [1.0, 2.0, 3.0][:n],
    "element of a string": lambda j, n: "abc"[n],
    "hex": lambda j, n: hex(n),
    "oct": lambda j, n: oct(n),
    "bin": lambda j, n: bin(n),
    "chr": lambda j, n: chr(n),
    "format": lambda j, n: f"{n:03d}",
    "percent": lambda j, n: "%d" % n,       # noqa: UP031
    "round": lambda j, n: round(n),
    "math.factorial": lambda j, n: math.factorial(n),
    "math.gcd": lambda j, n: math.gcd(n, 4),
    "bytes": lambda j, n: bytes(n),
    "a[n]": lambda j, n: TABLE[n],
    "a[:n]": lambda j, n: TABLE[:n],
    "a.reshape": lambda j, n: TABLE.reshape(n, 2),
    "np.zeros": lambda j, n: np.zeros(n),
    "np.eye": lambda j, n: np.eye(n),
    "np.arange": lambda j, n: np.arange(n),
    "np.asarray": lambda j, n: np.asarray(n),
    "np.take": lambda j, n: np.take(TABLE, n),
    "np.bincount": lambda j, n: np.bincount([n]),
    "float": lambda j, n: float(n),
    "int": lambda j, n: int(n),
    "bool": lambda j, n: bool(n),
    "item": lambda j, n: n.item(),
    "tolist": lambda j, n: n.tolist(),
    "math.sin": lambda j, n: math.sin(n),
    "devices": lambda j, n: len(n.devices()),
    "sharding": lambda j, n: len(n.sharding.device_set),
    "pickle": lambda j, n: type(pickle.dumps(n)),
    "dlpack": lambda j, n: type(n.__dlpack__()),
    "numpy.zeros": lambda j, n: j.numpy.zeros(n),
    "numpy.reshape": lambda j, n: j.numpy.ones(4).reshape(n, 2),
    "numpy.arange": lambda j, n: j.numpy.arange(n),
    "numpy.linspace": lambda j, n: j.numpy.linspace(0.0, 1.0, n),
    "numpy.eye": lambda j, n: j.numpy.eye(n),
    "numpy.repeat": lambda j, n: j.numpy.repeat(j.numpy.ones(2), n),
    "numpy.split": lambda j, n: j.numpy.split(j.numpy.arange(4), n),
    "numpy.sum": lambda j, n: j.numpy.sum(j.numpy.ones((1, 2, 3)), axis=n),
    "numpy.full": lambda j, n: j.numpy.full(2, n),
    "numpy.insert": lambda j, n: j.numpy.insert(j.numpy.arange(4), n, 9),
    "numpy.tri": lambda j, n: j.numpy.tri(n),
    "x[:n]": lambda j, n: j.numpy.arange(4)[:n],
    "x[n]": lambda j, n: j.numpy.arange(4)[n],
    "nn.one_hot": lambda j, n: j.nn.one_hot(n, 3),
    "nn.one_hot of classes": lambda j, n: j.nn.one_hot(1, n),
    "lax.fori_loop": lambda j, n: j.lax.fori_loop(0, n, lambda i, c: c * 2.0, 1.0),
    "lax.scan": lambda j, n: j.lax.scan(lambda c, _: (c * 2.0, None), 1.0, None, length=n)[0],
    "lax.slice": lambda j, n: j.lax.slice(j.numpy.arange(4), (0,), (n,)),
    "lax.iota": lambda j, n: j.lax.iota("int32", n),
    "random.split": lambda j, n: j.random.split(j.random.PRNGKey(0), n).shape,
    "random.uniform": lambda j, n: j.random.uniform(j.random.PRNGKey(0), (n,)).shape,
}
# The accesses that are also tried on everything else.
PLAIN_LOOKS = {name: LOOKS[name][1] for name in (
    "bool", "if", "int", "float", "complex", "index", "format", "item", "tolist", "tobytes",
    "deepcopy", "pickle", "dlpack", "np.asarray", "np.sin", "np.add", "a[0] = x", "a[x]",
    "np scalar * x", "hash", "devices", "sharding", "math.sin")}

# The subjects, computed from the traced scalar y.
SUBJECTS = {
    "scalar": lambda j, y: y * 1,
    "vector": lambda j, y: y * np.float32([1, 2, 3]),
    "integer": lambda j, y: y.astype("int32"),
    "a comparison": lambda j, y: y > 1,
    "without a gradient": lambda j, y: j.lax.stop_gradient(y * 1),
    "a constant": lambda j, y: j.numpy.float32(2),
    "zeros like it": lambda j, y: j.numpy.zeros_like(y),
    "a computed sign": lambda j, y: j.numpy.sign(y),
    "complex": lambda j, y: y + 1j,
    "a result of jit": lambda j, y: j.jit(lambda v: v * 2)(y),
    "an integer of jit": lambda j, y: j.jit(lambda v: (v * 2).astype("int32"))(y),
    "a result of vmap": lambda j, y: j.vmap(lambda v: v * 2)(y[None])[0],
}


def with_custom_jvp(j, f):
    fun = j.custom_jvp(f)
    fun.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    return fun


def jvp_rule(j, f):
    fun = j.custom_jvp(lambda y: y * 1)
    fun.defjvp(lambda primals, tangents: (primals[0], tangents[0] * f(primals[0])))
    return fun


def jvp_rule_of_tangents(j, f):
    fun = j.custom_jvp(lambda y: y * 1)
    fun.defjvp(lambda primals, tangents: (primals[0], f(tangents[0])))
    return fun


def with_custom_vjp(j, f):
    fun = j.custom_vjp(f)
    fun.defvjp(lambda y: (y, None), lambda _, cotangent: (cotangent,))
    return fun


def forward_rule(j, f):
    fun = j.custom_vjp(lambda y: y * 1)
    fun.defvjp(lambda y: (f(y), None), lambda _, cotangent: (cotangent,))
    return fun


def backward_rule(j, f):
    fun = j.custom_vjp(lambda y: y * 1)
    fun.defvjp(lambda y: (y, None), lambda _, cotangent: (f(cotangent),))
    return fun


def two(j):
    return j.numpy.float32(2)


def twice(j):
    return j.numpy.full(2, 2, "float32")


def one_device_mesh(j):
    return j.sharding.Mesh(np.array(j.devices()[:1]), ("a",))


def sharded(j, f, **options):
    spec = j.sharding.PartitionSpec()
    return j.shard_map(f, mesh=one_device_mesh(j), in_specs=spec, out_specs=spec, **options)


def scanned(j, f):
    return lambda y: j.lax.scan(lambda c, _: (f(c), None), y, None, length=2)[0]


def looped(j, f):
    return lambda y: j.lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, f(c[1])), (0, y))[1]


def branched(j, f):
    return lambda y: j.lax.cond(y > 0, f, lambda v: v * 1, y)


def called_back(j, f):
    def on_host(y):
        return np.asarray(f(j.numpy.asarray(y)))
    return lambda y: j.pure_callback(
        on_host, j.ShapeDtypeStruct((), "float32"), y, vmap_method="sequential")


def without_jit(j, f):
    with j.disable_jit():
        return f()


TRANSFORMATIONS = {
    "nothing": lambda j, f: f(two(j)),
    "jvp": lambda j, f: j.jvp(f, (two(j),), (two(j),)),
    "grad": lambda j, f: j.grad(f)(two(j)),
    "value_and_grad": lambda j, f: j.value_and_grad(f)(two(j)),
    "vjp": lambda j, f: j.vjp(f, two(j))[1](two(j)),
    "linearize": lambda j, f: j.linearize(f, two(j))[1](two(j)),
    "hessian": lambda j, f: j.hessian(f)(two(j)),
    "jacfwd": lambda j, f: j.jacfwd(f)(two(j)),
    "jacrev": lambda j, f: j.jacrev(f)(two(j)),
    "grad of grad": lambda j, f: j.grad(j.grad(f))(two(j)),
    "jvp of jvp": lambda j, f: j.jvp(
        lambda y: j.jvp(f, (y,), (two(j),))[1], (two(j),), (two(j),)),
    "vmap": lambda j, f: j.vmap(f)(twice(j)),
    "vmap of what is not mapped": lambda j, f: j.vmap(
        lambda y, z: f(y) + z, in_axes=(None, 0))(two(j), twice(j)),
    "jit": lambda j, f: j.jit(f)(two(j)),
    "grad of jit": lambda j, f: j.grad(j.jit(f))(two(j)),
    "jit of grad": lambda j, f: j.jit(j.grad(f))(two(j)),
    "jit of vmap": lambda j, f: j.jit(j.vmap(f))(twice(j)),
    "grad of vmap": lambda j, f: j.grad(lambda y: j.vmap(f)(y).sum())(twice(j)),
    "vmap of grad": lambda j, f: j.vmap(j.grad(f))(twice(j)),
    "vmap of jvp": lambda j, f: j.vmap(lambda y: j.jvp(f, (y,), (y,)))(twice(j)),
    "custom_jvp": lambda j, f: with_custom_jvp(j, f)(two(j)),
    "grad of custom_jvp": lambda j, f: j.grad(with_custom_jvp(j, f))(two(j)),
    "jvp of custom_jvp": lambda j, f: j.jvp(with_custom_jvp(j, f), (two(j),), (two(j),)),
    "jvp of a jvp rule": lambda j, f: j.jvp(jvp_rule(j, f), (two(j),), (two(j),)),
    "grad of a jvp rule": lambda j, f: j.grad(jvp_rule(j, f))(two(j)),
    "jvp of a jvp rule, tangents": lambda j, f: j.jvp(
        jvp_rule_of_tangents(j, f), (two(j),), (two(j),)),
    "grad of a jvp rule, tangents": lambda j, f: j.grad(jvp_rule_of_tangents(j, f))(two(j)),
    "custom_vjp": lambda j, f: with_custom_vjp(j, f)(two(j)),
    "grad of a forward rule": lambda j, f: j.grad(forward_rule(j, f))(two(j)),
    "grad of a backward rule": lambda j, f: j.grad(backward_rule(j, f))(two(j)),
    "hessian of a backward rule": lambda j, f: j.hessian(backward_rule(j, f))(two(j)),
    "checkpoint": lambda j, f: j.checkpoint(f)(two(j)),
    "grad of checkpoint": lambda j, f: j.grad(j.checkpoint(f))(two(j)),
    "scan": lambda j, f: scanned(j, f)(two(j)),
    "grad of scan": lambda j, f: j.grad(scanned(j, f))(two(j)),
    "while": lambda j, f: looped(j, f)(two(j)),
    "jvp of while": lambda j, f: j.jvp(looped(j, f), (two(j),), (two(j),)),
    "cond": lambda j, f: branched(j, f)(two(j)),
    "grad of cond": lambda j, f: j.grad(branched(j, f))(two(j)),
    "make_jaxpr": lambda j, f: len(j.make_jaxpr(f)(two(j)).out_avals),
    "make_jaxpr of grad": lambda j, f: len(j.make_jaxpr(j.grad(f))(two(j)).out_avals),
    "eval_shape": lambda j, f: j.eval_shape(f, two(j)).shape,
    "eval_shape of grad": lambda j, f: j.eval_shape(j.grad(f), two(j)).shape,
    "jit of shard_map": lambda j, f: j.jit(sharded(j, f))(two(j)),
    "grad of jit of shard_map": lambda j, f: j.grad(j.jit(sharded(j, f)))(two(j)),
    "pure_callback": lambda j, f: called_back(j, f)(two(j)),
    "jit of pure_callback": lambda j, f: j.jit(called_back(j, f))(two(j)),
    "vmap of pure_callback": lambda j, f: j.vmap(called_back(j, f))(twice(j)),
    "linear_transpose": lambda j, f: j.linear_transpose(f, two(j))(two(j)),
    "closed over by grad": lambda j, f: (lambda y: j.grad(lambda z: f(y) * z)(two(j)))(two(j)),
    "closed over by jit": lambda j, f: (lambda y: j.jit(lambda z: f(y) * z)(two(j)))(two(j)),
    "closed over by vmap": lambda j, f: (lambda y: j.vmap(lambda z: f(y) * z)(twice(j)))(two(j)),
    "grad, closed over by grad": lambda j, f: j.grad(
        lambda y: j.grad(lambda z: f(y) * z)(two(j)))(two(j)),
    "grad, closed over by jit": lambda j, f: j.grad(
        lambda y: j.jit(lambda z: f(y) * z)(two(j)))(two(j)),
    "grad, closed over by vmap": lambda j, f: j.grad(
        lambda y: j.vmap(lambda z: f(y) * z)(twice(j)).sum())(two(j)),
    "vmap, closed over by grad": lambda j, f: j.vmap(
        lambda y: j.grad(lambda z: f(y) * z)(two(j)))(twice(j)),
    "jit, closed over by grad": lambda j, f: j.jit(
        lambda y: j.grad(lambda z: f(y) * z)(two(j)))(two(j)),
    "grad, another argument": lambda j, f: j.grad(
        lambda y, z: f(y) * z, argnums=1)(two(j), two(j)),
    "grad of an auxiliary value": lambda j, f: j.grad(
        lambda y: (y * 2, f(y)), has_aux=True)(two(j)),
    "jit, disabled": lambda j, f: without_jit(j, lambda: j.jit(f)(two(j))),
    "grad of jit, disabled": lambda j, f: without_jit(j, lambda: j.grad(j.jit(f))(two(j))),
    "scan, disabled": lambda j, f: without_jit(j, lambda: scanned(j, f)(two(j))),
    "grad of scan, disabled": lambda j, f: without_jit(j, lambda: j.grad(scanned(j, f))(two(j))),
}

ADDRESS = re.compile(r"0x[0-9a-f]+")
ARRAY = re.compile(r"[\w.]*Tracer\b(?:\([^()]*\))?|Traced<[^>]*>|[\w.]*ArrayImpl")
# Each library has its own message for static arguments of its functions.
OF_THE_LIBRARY = re.compile(r"(?:numpy|lax|random|nn)\.")


def text_of(error, look=""):
    """The class and the first line, without each library's own names."""
    name = type(error).__name__
    if isinstance(error, AttributeError):
        return "AttributeError: "
    if isinstance(error, TypeError) and OF_THE_LIBRARY.match(look):
        return "TypeError: "
    line = ARRAY.sub("an array", ADDRESS.sub("0x0", str(error).split("\n")[0]))
    return f"{name}: {line}"


def plain(value):
    """Python's view of a value: nothing for a traced one."""
    if isinstance(value, (list, tuple)):
        return [plain(element) for element in value]
    if isinstance(value, (jax.core.Tracer, maxjax.core.Tracer)):
        return "traced"
    if isinstance(value, (jax.Array, maxjax.Array)):
        return plain(np.asarray(value))
    if isinstance(value, (np.ndarray, np.generic)):
        return f"{value.dtype}{value.shape}{np.round(np.asarray(value), 5).tolist()}"
    return value


def seen_by(j, transform, looks):
    """The outcome of each access in the transformed function: a value or an error."""
    seen = {}

    def looking(y):
        for subject, named in () if seen else looks.items():
            x = SUBJECTS[subject](j, y)
            for name, look in named.items():
                try:
                    seen[f"{name}, {subject}"] = plain(look(j, x))
                except Exception as error:
                    seen[f"{name}, {subject}"] = text_of(error, name)
        return y * 1

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transform(j, looking)
    assert seen
    return seen


def of_all_subjects():
    """subject: {name: access}, for all subjects."""
    looks = {subject: dict(PLAIN_LOOKS) for subject in SUBJECTS if subject not in (
        "scalar", "vector", "integer")}
    for name, (subject, look) in LOOKS.items():
        looks.setdefault(subject, {})[name] = look
    looks["integer"] = INTEGER_LOOKS
    return looks


# Classes written in Python support buffers only from Python 3.12 on.
BUFFERS = () if sys.version_info >= (3, 12) else (
    "memoryview", "bytes", "bytearray", "np.frombuffer")
# Values independent of the argument are known here, but traced under jit in JAX.
CONSTANT = ("a constant", "zeros like it")
# JAX returns the elements as constants, without their derivative: see
# compat/known_differences.toml.
DERIVATIVE_LOST_IN_JAX = ("numpy.unique, vector",)
# All results of a function that JAX jits are traced under grad; here indices, which have no
# derivative, are known.
KNOWN_HERE = ("numpy.nonzero, vector",)


def mismatches(actual, expected, allowed=lambda name, value: False):
    assert actual.keys() == expected.keys()
    return [f"{name}\n    JAX:    {value}\n    maxjax: {actual[name]}"
            for name, value in expected.items()
            if in_order(repr(actual[name])) != in_order(repr(value))
            and not allowed(name, actual[name])]


def in_order(text):
    """The dtypes that an error lists, sorted: JAX takes them out of a set."""
    return re.sub(r"(?<=subtypes of )[\w, ]+",
                  lambda found: ", ".join(sorted(found.group().split(", "))), text)


def is_error(value):
    return isinstance(value, str) and "Error: " in value


@pytest.fixture(scope="module")
def untransformed():
    return seen_by(maxjax, TRANSFORMATIONS["nothing"], of_all_subjects())


MADE_OF_OTHERS = ("value_and_grad", "hessian", "jacfwd", "jacrev")


# One transformation inside another looks at what each alone does, and JAX compiles it all.
@pytest.mark.parametrize("transformation", [
    pytest.param(name, marks=[pytest.mark.extended] if " of " in name or name in MADE_OF_OTHERS
                 else []) for name in TRANSFORMATIONS])
def test_looks_at_tracers_are_as_in_jax(transformation, untransformed):
    def allowed(name, value):
        look, subject = name.rsplit(", ", 1)
        return (subject in CONSTANT and repr(value) == repr(untransformed[name])
                or subject in CONSTANT and transformation == "linear_transpose"     # stages all
                or name in KNOWN_HERE and repr(value) == repr(untransformed[name])
                or look in BUFFERS and is_error(value)
                or name in DERIVATIVE_LOST_IN_JAX and value == "traced")

    actual, expected = (seen_by(j, TRANSFORMATIONS[transformation], of_all_subjects())
                        for j in (maxjax, jax))
    found = mismatches(actual, expected, allowed)
    assert not found, f"{len(found)} looks\n" + "\n".join(found)


@pytest.mark.parametrize("differentiated", [False, True])
def test_looks_in_an_eager_shard_map(differentiated, untransformed):
    def run(j, f):
        fun = sharded(j, f)
        return (j.grad(fun) if differentiated else fun)(two(j))

    def allowed(name, value):
        look, subject = name.rsplit(", ", 1)
        return (subject in CONSTANT and repr(value) == repr(untransformed[name])
                or name == "x[x > 1], vector" and value == "traced"     # JAX refuses its own mask
                or look in BUFFERS and is_error(value))

    # JAX compiles each operation, so only some of the accesses.
    subjects = ("scalar", "vector", "integer")
    looks = dict.fromkeys(subjects, PLAIN_LOOKS) if differentiated else {
        subject: {name: look for name, look in of_all_subjects()[subject].items()
                  if not OF_THE_LIBRARY.match(name)} for subject in subjects}
    actual, expected = (seen_by(j, run, looks) for j in (maxjax, jax))
    found = mismatches(actual, expected, allowed)
    assert not found, f"{len(found)} looks\n" + "\n".join(found)


def number(j, value, y):
    """A scalar from the result of an access and the traced scalar."""
    return y * j.numpy.sum(j.numpy.asarray(value).real.astype("float32"))


# Accesses whose result is part of the function's result.
COMPUTED = {
    "bool": lambda j, x: bool(x),
    "if": lambda j, x: x * x if x > 1 else -x,
    "int": lambda j, x: int(x),
    "float": lambda j, x: float(x),
    "item": lambda j, x: x.item(),
    "np.asarray": lambda j, x: np.asarray(x),
    "np scalar * x": lambda j, x: np.float32(2) * x,
    "assignment": lambda j, x: written(lambda a: operator.setitem(a, 0, x)),
    "element of a list": lambda j, x: [1.0, 2.0, 3.0][x.astype(int)],
    "numpy.array": lambda j, x: j.numpy.array([x, 2.0]),
}


def result_of(j, transformation, look):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return j.tree.map(np.asarray, TRANSFORMATIONS[transformation](
                j, lambda y: number(j, look(j, y), y)))
        except Exception as error:
            return text_of(error)


@pytest.mark.parametrize("transformation", [name for name in TRANSFORMATIONS if name not in (
    "linear_transpose", "grad of a jvp rule, tangents",     # of linear functions
    "grad of custom_jvp", "grad of a jvp rule")])           # JAX fails with an AttributeError
def test_results_of_looks_are_those_of_jax(transformation):
    found = []
    for name, look in COMPUTED.items():
        actual, expected = (result_of(j, transformation, look) for j in (maxjax, jax))
        if isinstance(actual, str) or isinstance(expected, str):
            agreed = isinstance(actual, str) and actual == expected
        else:
            pairs = list(zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True))
            agreed = all(a.shape == e.shape and np.allclose(a, e, 1e-5) for a, e in pairs)
        if not agreed:
            found.append(f"{name}\n    JAX:    {expected}\n    maxjax: {actual}")
    assert not found, "\n".join(found)
