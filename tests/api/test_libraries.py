"""Features that libraries on top of JAX (Equinox, Flax, Haiku, Lineax, Optax) use, against JAX."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import os
import subprocess
import sys

import jax
import numpy as np
import pytest

import maxjax
import maxjax.core
import maxjax.experimental.colocated_python
import maxjax.experimental.hijax
import maxjax.extend.core
from tests import ROOT
from tests.support.against_jax import agree, assert_same_error


@pytest.mark.parametrize("transform", ["grad", "jit grad", "grad jit", "vmap grad", "grad scan",
                                       "grad checkpoint", "grad grad", "grad cond"])
def test_numbers_among_the_residuals_stay_numbers(transform):
    """A backward rule branches on a residual of the forward rule."""
    def run(j):
        seen = []

        def forward(x):
            return j.numpy.sin(x), (x, True, 2, 3.5, 1j, j.numpy.ones(2))

        def backward(residuals, cotangent):
            x, flag, count, scale, imaginary, array = residuals
            seen.append([isinstance(value, kind) for value, kind in (
                (flag, bool), (count, int), (scale, float), (imaginary, complex),
                (array, (j.Array, j.core.Tracer)))])
            return (cotangent * (j.numpy.cos(x) * scale if flag and count == 2 else x),)

        f = j.custom_vjp(j.numpy.sin)
        f.defvjp(forward, backward)

        def over_scan(x):
            return j.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]

        results = {
            "grad": lambda: j.grad(f)(1.0), "jit grad": lambda: j.jit(j.grad(f))(1.0),
            "grad jit": lambda: j.grad(j.jit(f))(1.0),
            "vmap grad": lambda: j.vmap(j.grad(f))(np.float32([1.0, 2.0])),
            "grad scan": lambda: j.grad(over_scan)(1.0),
            "grad checkpoint": lambda: j.grad(j.checkpoint(f))(1.0),
            "grad grad": lambda: j.grad(j.grad(f))(1.0),
            "grad cond": lambda: j.grad(lambda x: j.lax.cond(x > 0, f, lambda x: x, x))(1.0),
        }[transform]()
        return results, [all(flags) for flags in seen[:1]]

    agree(run)


def test_make_jaxpr_of_a_closure_under_a_trace():
    """Its closed-over values are constants of the jaxpr, and its inputs are its arguments."""
    def run(j):
        found = []

        def g(x):
            closed, shape = j.make_jaxpr(
                lambda y: j.numpy.sin(y) + x, return_shape=True)(1.0)
            found.append((str(closed), len(closed.consts), len(closed.jaxpr.invars), shape.shape))
            return j.core.eval_jaxpr(closed.jaxpr, closed.consts, 3.0 * x)[0]

        results = [j.jit(g)(2.0), j.grad(g)(2.0), j.vmap(g)(np.float32([1.0, 2.0]))]
        return results, [[str(part) == text for part, text in zip(entry, (
            "{ lambda a:f32[]; b:f32[]. let c:f32[] = sin b; d:f32[] = add c a in (d,) }", "1", "1",
            "()"), strict=True)] for entry in found[:2]]     # JAX prints other types under vmap

    agree(run)


def test_shapes_as_results_of_what_is_only_traced():
    def run(j):
        struct = j.ShapeDtypeStruct((2,), np.float32)
        shapes = j.eval_shape(lambda: {"a": struct, "b": j.numpy.ones(3)})
        return [(shape.shape, str(shape.dtype)) for shape in (shapes["a"], shapes["b"])] == [
            ((2,), "float32"), ((3,), "float32")], str(j.make_jaxpr(lambda: struct)()) == (
            "{ lambda a:f32[2]; . let  in (a,) }")

    agree(run)
    assert_same_error(lambda j: j.jit(lambda: j.ShapeDtypeStruct((2,), np.float32))(), whole=True)


def test_a_lowering_to_mlir_is_no_error_until_it_is_needed():
    primitive = maxjax.extend.core.Primitive("lowered")
    primitive.def_abstract_eval(lambda x: x)
    maxjax.interpreters.mlir.register_lowering(primitive, lambda ctx, x: [x])
    with pytest.raises(NotImplementedError, match=r"does not lower to MLIR: give lowered"):
        primitive.bind(1.0)
    primitive.def_impl(lambda x: x + 1)
    assert primitive.bind(1.0) == 2


LIBRARY = """
import jax, jax.numpy as jnp
import jax._src.traceback_util as traceback_util
import jax._src.dispatch
from jax._src import compiler, core, dtypes
from jax._src.ad_util import stop_gradient_p
from jax._src.tree_util import _registry
from jax._src.dtypes import TypePromotionError
from jax.extend import source_info_util
from jax.interpreters import ad

traceback_util.register_exclusion(__file__)
source_info_util.register_exclusion(__file__)
ad.primitive_transposes[stop_gradient_p] = lambda cotangent, x: (cotangent,)
class Node: pass
assert dict in _registry and tuple in _registry and Node not in _registry
jax.tree_util.register_pytree_node(Node, lambda n: ((), None), lambda a, c: Node())
assert Node in _registry
assert issubclass(TypePromotionError, ValueError) and isinstance(jax.typeof(1.), core.ShapedArray)

@traceback_util.api_boundary
def apply(x):
    return jnp.sin(x)
"""


def test_private_names_and_frames_of_a_library(tmp_path):
    """Libraries import some of JAX's private names; an equation's line is the user's."""
    (tmp_path / "library.py").write_text(LIBRARY)
    (tmp_path / "script.py").write_text(
        "import library, jax\n"
        "jaxpr = jax.make_jaxpr(lambda x: library.apply(x))(1.)\n"
        "print(jaxpr.eqns[0].source_info and str(jaxpr.pretty_print(source_info=True)))\n"
        "jax._src.dispatch.wait_for_tokens()\n")
    result = subprocess.run(
        [sys.executable, "-m", "maxjax", "script.py"], cwd=tmp_path, capture_output=True, text=True,
        env=dict(os.environ, PYTHONPATH=os.getcwd()), timeout=120)
    assert result.returncode == 0, result.stderr
    assert "script.py:2" in result.stdout and "library.py" not in result.stdout


def test_types_above_arrays_can_be_declared():
    """Libraries declare types of their own on import (tests/api/test_hi_types.py uses some)."""
    hijax = maxjax.experimental.hijax

    class Pair(hijax.HiType):
        @hijax.aval_method
        def swapped(self):
            raise AssertionError

    class PairEffect(maxjax.extend.core.Effect):
        pass

    hijax.control_flow_allowed_effects.add_type(PairEffect)
    hijax.register_hitype(type("Value", (), {}), lambda value: Pair())
    assert str(PairEffect()) == "PairEffect"
    with pytest.raises(NotImplementedError, match="requires Pair to implement the `lo_ty` method"):
        Pair().lo_ty()
    with pytest.raises(TypeError, match="val_cls must be a class"):
        hijax.register_hitype(1, None)


def test_a_trace_has_the_name_that_equinox_tells_tracers_by():
    def run(j):
        ad = importlib.import_module(f"{j.__name__}.interpreters.ad")
        core = importlib.import_module(f"{j.__name__}.extend.core")
        find = getattr(core, "find_top_trace", None) or j.core.find_top_trace
        outside = j.numpy.ones(2)

        def f(x):
            main = find([x]).main
            return x, [isinstance(y, ad.JVPTracer) and y._trace.main is main
                       for y in (x, 2 * x, outside)]

        return j.jvp(f, (1.0,), (2.0,), has_aux=True)

    agree(run)


def of_checked_classes(j):
    """A class and a dataclass that refuse numbers as leaves, as those of typed libraries do."""
    @j.tree_util.register_pytree_node_class
    class Matrix:
        def __init__(self, x):
            if len(x.shape) < 1:
                raise ValueError("rank at least 1")
            self.x = x

        def tree_flatten(self):
            return (self.x,), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

    @j.tree_util.register_dataclass
    @dataclasses.dataclass
    class Layer:
        w: object

        def __post_init__(self):
            if isinstance(self.w, int):
                raise TypeError("an int")

    return Matrix(j.numpy.ones((2, 3))), Layer(j.numpy.ones((2, 3)))


CHECKED = {
    "jit": lambda j, x: j.jit(lambda x: x)(x),
    "jit ahead of time": lambda j, x: j.jit(lambda x: x).lower(x).compile()(x),
    "jit donates": lambda j, x: j.jit(lambda x: x, donate_argnums=0)(x),
    "jit of another argument": lambda j, x: j.jit(lambda x, n: x, static_argnums=1)(x, 2),
    "vmap": lambda j, x: j.vmap(lambda x: x)(x),
    "scan": lambda j, x: j.lax.scan(lambda c, _: (c, None), x, None, length=2)[0],
    "map": lambda j, x: j.lax.map(lambda x: x, x),
    "switch": lambda j, x: j.lax.switch(1, [lambda x: x, lambda x: x], x),
    "vjp": lambda j, x: j.vjp(lambda x: x, x)[1](x),
    "linearize": lambda j, x: j.linearize(lambda x: x, x)[1](x),
    "make_jaxpr": lambda j, x: str(j.make_jaxpr(lambda x: x)(x)).count(":f32"),
}


@pytest.mark.parametrize("transform", CHECKED)
def test_classes_that_check_their_leaves(transform):
    agree(lambda j: [j.tree_util.tree_leaves(CHECKED[transform](j, x))
                     for x in of_checked_classes(j)])


def test_what_libraries_import():
    """Names that numpyro, blackjax, distrax, orbax and others look for."""
    source = """
import jax, jax.interpreters.xla
from jax.extend.core.primitives import call_p, closed_call_p, jit_p
from jax._src.flatten_util import ravel_pytree
from jax._src.util import safe_map, safe_zip
from jax._src.tree_util import prefix_errors
from jax._src.core import trace_state_clean
from jax._src.lax import lax
from jax._src import api, config, xla_bridge
import jax
import numpy as np
print(xla_bridge.backends_are_initialized(), dict(xla_bridge._backends or {}))
len(jax.devices())
print(xla_bridge.backends_are_initialized(), list(xla_bridge._backends))
print(len({call_p, closed_call_p, jit_p}), ravel_pytree([jax.numpy.ones(2)])[0])
print(safe_map(lambda x, y: x + y, [1, 2], [3, 4]), safe_zip([1], [2]))
for error in prefix_errors([(1, 2), (3,)], [1, 2]):
    print(error("in_axes"))
print(prefix_errors((1, 2), (3, (4, 5))))
print(trace_state_clean(), jax.jit(lambda x: x + trace_state_clean())(1.))
print(jax._src.distributed.global_state.process_id, jax._src.distributed.global_state.client)
print(len(jax._src.tree_util.flatten_one_level([1, 2])[0]), xla_bridge.backends_are_initialized())
print(lax.sin(0.), api.jit(lambda x: x)(1.), config.enable_x64.value)
print(callable(jax.interpreters.xla.canonicalize_dtype_handlers[np.ndarray]))
import jaxlib, collections
from jaxlib import xla_client
from jax._src.lib import xla_client as same
from jax._src import literals, pjit
from jax._src.interpreters.batching import is_vmappable
from jax._src.lax.control_flow import scan, scan_p
from jax._src.numpy.ufuncs import ufunc
from jax._src.numpy.util import promote_dtypes, promote_dtypes_complex, promote_dtypes_inexact
from jax._src.public_test_util import check_close
from jax._src.sharding_impls import UNSPECIFIED
from jax._src.tree_util import _registry
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel
print(xla_client is same, xla_client.XlaRuntimeError is jax.errors.JaxRuntimeError,
      isinstance(jax.devices()[0], xla_client.Device),
      type(jax.jit(abs)) is jaxlib._jax.PjitFunction)
print(pjit.jit_p is jit_p, scan is jax.lax.scan, scan_p.name, isinstance(jax.numpy.add, ufunc))
print([x.dtype for f in (promote_dtypes, promote_dtypes_inexact, promote_dtypes_complex)
       for x in f(np.int32(1), np.int8(2))], is_vmappable(1), UNSPECIFIED is None)
print(literals.TypedInt(3, np.dtype("int32")), literals.TypedFloat(0.5, np.dtype("float32")) * 2)
check_close({"a": np.ones(2)}, {"a": np.ones(2) + 1e-9})
try:
    check_close(np.ones(2), np.zeros(2))
except AssertionError:
    print("differ")
for node in ((1, 2), [3], {"b": 1, "a": 2}, None, collections.OrderedDict(b=1, a=2),
             collections.defaultdict(int, b=1), jax.tree_util.Partial(max, 1)):
    entry = _registry[type(node)]
    children, metadata = entry.to_iter(node)
    print(entry.from_iter(metadata, list(children)))
from jax._src.lax import linalg
from jax._src.numpy import array_methods, vectorize
from jax._src.numpy.index_tricks import CClass, RClass
class Rows(RClass):
    def __getitem__(self, key):
        return super().__getitem__(key) * 2
print(Rows()[1:3, 7], CClass()[np.ones(2), np.ones(2)], linalg.qr_p.name)
class Helper(array_methods._IndexUpdateHelper):
    def __getitem__(self, index):
        return array_methods._IndexUpdateRef(self.array, index)
print(Helper(jax.numpy.ones(2))[0].set(3), Helper(1), Helper(1)[0])
function, args, kwargs = vectorize._apply_excluded(
    lambda *args, **kwargs: (args, kwargs), {1, "b"}, (1, 2, 3), {"a": 4, "b": 5})
print(function(10, 30, **kwargs), args, kwargs, vectorize._parse_gufunc_signature("(n,m),(m)->(n)"))
print(vectorize._parse_input_dimensions((np.ones((5, 2, 3)), np.ones(3)), [("n", "m"), ("m",)]))
for f in (lambda: vectorize._parse_input_dimensions((np.ones(3), np.ones(2)), [("m",)] * 2, "here"),
          lambda: vectorize._check_output_dims(lambda: np.ones(2), {"n": 3}, [("n",)], "there")(),
          lambda: vectorize._check_output_dims(lambda: np.ones(3), {"n": 3}, [("n",)])()):
    try:
        print(f())
    except ValueError as error:
        print(error)
kinds = [type(jax.numpy.ones(2))]
jax.jit(lambda x: kinds.append(type(x)))(1.)
jax.vmap(lambda x: kinds.append(type(x)))(jax.numpy.ones(2))
jax.jvp(lambda x: (kinds.append(type(x)), x)[1], (1.,), (1.,))
print([kind.__module__ for kind in (*kinds, jax.Array)])
"""
    outputs = [subprocess.run([sys.executable, *flags, "-c", source], capture_output=True,
                              text=True, timeout=120, check=True).stdout
               for flags in ((), ("-m", "maxjax"))]
    # A partial function prints its class with the class's module.
    assert outputs[0] == outputs[1].replace("maxjax.tree_util.", "jax.tree_util.")


def test_private_modules_need_no_import():
    """JAX has imported them all by the time that a library names one, as JAXopt's tests do."""
    source = """
import jax

@jax.checkpoint
def closes_over(y):
    inner = jax.custom_vjp(lambda x: x * y)
    inner.defvjp(lambda x: (x * y, None), lambda _, g: (g,))
    return inner(1.)

try:
    jax.grad(closes_over)(2.)
except jax._src.interpreters.ad.CustomVJPException as error:
    print(type(error).__name__)
print(jax._src.lax.control_flow.scan is jax.lax.scan, jax._src.lax.lax.sin is jax.lax.sin,
      isinstance(jax.numpy.add, jax._src.numpy.ufuncs.ufunc), jax._src.state.types.__name__,
      jax._src.dtypes.TypePromotionError.__name__, jax._src.core.ShapedArray.__name__)
for package in (jax._src, jax._src.interpreters):
    print(hasattr(package, "nowhere"))
"""
    outputs = [subprocess.run([sys.executable, *flags, "-c", source], capture_output=True,
                              text=True, timeout=120, check=True).stdout
               for flags in ((), ("-m", "maxjax"))]
    assert outputs[0] == outputs[1].replace("maxjax._internals", "jax._src")


class Quantity:
    """A pytree that says its shape, as wrappers of arrays in libraries do."""

    def __init__(self, value, unit):
        self.value, self.unit = value, unit

    shape = property(lambda self: self.value.shape)


for _module in ("jax", "maxjax"):
    importlib.import_module(_module).tree_util.register_pytree_node(
        Quantity, lambda q: ((q.value,), q.unit), lambda unit, values: Quantity(*values, unit))


@pytest.mark.parametrize("signature, x", [
    ("(n)->(n)", np.ones((2, 3), np.float32)), ("(n)->(n)", np.ones(3, np.float32)),
    ("(n)->()", np.ones((2, 3), np.float32)), (None, np.ones((2, 3), np.float32))])
def test_vectorize_of_what_wraps_arrays(signature, x):
    def run(j):
        found = j.numpy.vectorize(lambda x: Quantity(x * 2, "m"), signature=signature)(x)
        return found.value, found.unit

    if signature == "(n)->()":
        assert_same_error(run)
    else:
        agree(run)


def test_vectorize_over_dimensions_of_no_argument():
    def run(j):
        return j.numpy.vectorize(lambda x, y: {"a": x, "b": y}, signature="(),()->()")(
            np.ones((2, 1), np.float32), np.ones((1, 3), np.float32))

    agree(run)


def test_python_beside_devices():
    """JAX's does not come back on its CPU backend; see its documentation for what it gives."""
    colocated = maxjax.experimental.colocated_python
    add = colocated.colocated_python(lambda x: x + 1)
    assert add(maxjax.numpy.ones(2)).tolist() == [2, 2]
    five = colocated.colocated_python(lambda: 5)
    with pytest.raises(ValueError, match="must be first specialized with devices"):
        five()
    assert five.specialize(devices=maxjax.devices())() == 5
    with pytest.raises(ValueError, match="devices already specified"):
        five.specialize(devices=maxjax.devices()).specialize(devices=maxjax.devices())

    @colocated.colocated_python_class
    class Count:
        def __init__(self, start):
            self.value = start

        def add(self, x):
            self.value = self.value + x
            return self.value

    count = Count(1)
    assert (count.add(maxjax.numpy.int32(2)), count.add(3)) == (3, 6)


def test_objects_beside_devices():
    """They are made when a method is first called, and go when the object goes."""
    events = []

    @maxjax.experimental.colocated_python.colocated_python_class
    class Object:
        "What it is."

        def __init__(self, value):
            events.append("made")
            self.value = value

        def __del__(self):
            events.append("gone")

        def get(self):
            return self.double() / 2

        def double(self):
            return 2 * self.value

        def keep(self, x):
            self.value = x
            return x

    Object(1)
    assert events == [] and Object.__doc__ == "What it is."
    made = Object(maxjax.numpy.int32(3))
    with pytest.raises(ValueError, match="must be first specialized with devices"):
        made.get()
    assert events == []
    made.get = made.get.specialize(devices=maxjax.devices()[:1])
    assert made.get() == 3 and events == ["made"]
    assert made.keep(maxjax.numpy.int32(5)) == 5 and made.get() == 5
    del made
    assert events == ["made", "gone"]


PRIVATE = {
    "api": "ShapeDtypeStruct clear_caches disable_jit grad jit named_call named_scope vmap",
    "api_util": "debug_info flatten_fun flatten_fun_nokwargs infer_argnums_and_argnames",
    "core": "Jaxpr JaxprEqn Literal Primitive ShapedArray Tracer Var eval_jaxpr typeof",
    "dtypes": "bfloat16 float0 issubdtype result_type",
    "linear_util": "WrappedFun wrap_init",
    "source_info_util": "SourceInfo current current_name_stack new_source_info user_context",
    "tree_util": "PyTreeDef register_pytree_node tree_flatten tree_map tree_unflatten",
}


@pytest.mark.parametrize("module", PRIVATE)
def test_private_names_of_tutorials(module):
    theirs = importlib.import_module(f"jax._src.{module}")
    ours = importlib.import_module(f"maxjax._internals.{module}")
    for name in PRIVATE[module].split():
        assert hasattr(theirs, name) and hasattr(ours, name), name
    assert not hasattr(ours, "nothing_of_this_name")


@pytest.mark.parametrize("given", [(None, "b"), (1, None), ((0, 1), None), (None, ("k", "a"))])
def test_arguments_by_number_and_by_name(given):
    signature = inspect.signature(lambda a, b=2, *, k=3: a)
    results = [importlib.import_module(name).infer_argnums_and_argnames(signature, *given)
               for name in ("jax._src.api_util", "maxjax._internals.api_util")]
    theirs, ours = [(tuple(numbers), sorted(names)) for numbers, names in results]
    assert ours == theirs


@pytest.mark.parametrize("axes", [0, None, (0, None), (1, {"a": 0, "b": None}), (0,), [0, 1]])
def test_flatten_axes(axes):
    results = []
    for j, module in ((jax, "jax._src.api_util"), (maxjax, "maxjax._internals.api_util")):
        tree = j.tree_util.tree_structure((1, {"a": 2, "b": 3}))
        try:
            results.append(importlib.import_module(module).flatten_axes("f in_axes", tree, axes))
        except ValueError as error:
            results.append(str(error))
    assert results[0] == results[1]


def test_inputs_that_a_function_makes_while_it_is_traced():
    """As BrainState has it for the states that a function reads."""
    def program(j):
        private = importlib.import_module(
            "maxjax._internals.core" if j is maxjax else "jax._src.core")
        info = importlib.import_module(
            "maxjax._internals.source_info_util" if j is maxjax else "jax._src.source_info_util")

        def function(x):
            made = private.trace_ctx.trace.new_arg(
                j.core.ShapedArray((3,), np.dtype("float32")), source_info=info.current())
            return x + made

        closed = j.make_jaxpr(function)(2.0)
        return str(closed), private.eval_jaxpr(
            closed.jaxpr, closed.consts, np.float32(1), np.arange(3, dtype=np.float32))

    agree(program)


@pytest.mark.parametrize("leaf", [
    lambda j: 1.5, lambda j: np.arange(3), lambda j: j.core.ShapedArray((2,), np.dtype("int8")),
    lambda j: j.ShapeDtypeStruct((2,), np.dtype("int8"))],
    ids=["number", "array", "type", "struct"])
def test_shaped_abstractify(leaf):
    agree(lambda j: j.api_util.shaped_abstractify(leaf(j)).str_short())


def test_modules_that_were_used_are_found():
    """As after `import jax`, which imports them."""
    code = ("import jax, sys; jax.tree_util.SequenceKey; jax.numpy.ones; jax.random; "
            "print([f'jax.{name}' in sys.modules for name in ('tree_util', 'numpy', 'random')], "
            "sys.modules['jax.tree_util'] is jax.tree_util)")
    done = subprocess.run([sys.executable, "-m", "maxjax", "-c", code], text=True,
                          capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.stdout.strip() == "[True, True, True] True", done.stderr


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.bool_])
def test_types_of_tangents(dtype):
    """Distrax's derivative of `mul_exp` asks for them."""
    agree(lambda j: [str(getattr(j.core.ShapedArray((2,), dtype), name)()) for name in (
        "at_least_vspace", "to_tangent_aval")])


RAISING_LIBRARY = """
from jax._src import traceback_util
import jax

traceback_util.register_exclusion(__file__)

def inner(function, x):
    return jax.jit(function)(x)

@traceback_util.api_boundary
def apply(function, x):
    return inner(function, x)
"""
RAISING_SCRIPT = """
import traceback

import jax
import library
from jax._src import traceback_util

def fail(x):
    raise ValueError("here")

def names(mode):
    jax.config.update("jax_traceback_filtering", mode)
    try:
        library.apply(fail, 1.)
    except ValueError as error:
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)
                  if "__tracebackhide__" not in frame.f_locals]
        print(mode, [frame.f_code.co_name for frame in frames],
              isinstance(error.__cause__, traceback_util.UnfilteredStackTrace))

names("tracebackhide")
names("remove_frames")
traceback_util._exclude_paths.remove(library.__file__)
names("quiet_remove_frames")

def stack(x):
    print([frame.f_code.co_name for frame, _ in traceback.walk_stack(None)
           if traceback_util.include_frame(frame)])
    return x

jax.jit(lambda x: jax.lax.cond(x > 0, jax.grad(stack), stack, x))(1.)
"""


def test_tracebacks_without_a_librarys_frames(tmp_path):
    (tmp_path / "library.py").write_text(RAISING_LIBRARY)
    (tmp_path / "script.py").write_text(RAISING_SCRIPT)
    printed = [subprocess.run(
        [sys.executable, *runner, "script.py"], cwd=tmp_path, capture_output=True, text=True,
        env=dict(os.environ, PYTHONPATH=os.getcwd()), timeout=120).stdout
        for runner in ([], ["-m", "maxjax"])]
    assert printed[0] == printed[1] != ""


def test_functions_that_compute_on_the_host():
    """``compute_on`` says for each result in which memory it lies."""
    def run(j):
        compute_on = importlib.import_module(f"{j.__name__}.experimental.compute_on").compute_on
        device, host = j.memory.Space.Device, j.memory.Space.Host
        x = np.float32([1.0, 2.0])

        @compute_on(compute_type="device_host", out_memory_spaces=(device, host))
        def both(x, y):
            return x + y, {"a": 2 * x}

        results = []
        first, second = both(x, 3.0)
        results.append([first.sharding.memory_kind, second["a"].sharding.memory_kind])
        results.extend([first, second, *j.jit(both)(x, 3.0), *both(x, y=3.0)])
        on_device = compute_on(lambda x, y: x * y, compute_type="device_host",
                               out_memory_spaces=device)
        grad = j.grad(lambda x: on_device(x, 3.0).sum())(x)
        return results, grad, j.vmap(on_device, (0, None))(x, 1.0)

    agree(run)


@pytest.mark.parametrize("run", [
    lambda j, f, device: f(lambda x: x, compute_type="elsewhere", out_memory_spaces=device),
    lambda j, f, device: f(lambda x: x, compute_type=3, out_memory_spaces=device),
    lambda j, f, device: f("device_host"),
    lambda j, f, device: f(lambda x: [x, x], compute_type="device",
                           out_memory_spaces=(device, device))(1.0),
], ids=["compute type", "no string", "a context manager", "prefix"])
def test_errors_of_functions_that_compute_on_the_host(run):
    def called(j):
        module = importlib.import_module(f"{j.__name__}.experimental.compute_on")
        return run(j, module.compute_on, j.memory.Space.Device)

    assert_same_error(called)


def test_variables_and_literals_of_jaxprs_print_as_in_jax():
    def run(j):
        closed = j.make_jaxpr(lambda x: x * 2.0)(np.float32([1, 2]))
        eqn, = closed.eqns
        return [str(x).replace(str(id(x)), "number") for x in (*eqn.invars, *eqn.outvars)]

    agree(run)
