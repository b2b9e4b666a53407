"""Features that libraries on top of JAX (Equinox, Flax, Haiku, Lineax, Optax) use, against JAX."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import maxjax
import maxjax.core
import maxjax.experimental.hijax
import maxjax.extend.core
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
    """Flax NNX declares its own types on import; using one says what is missing."""
    hijax = maxjax.experimental.hijax

    class Pair(hijax.HiType):
        @hijax.aval_method
        def swapped(self):
            raise AssertionError

    class NewPair(hijax.HiPrimitive):
        pass

    class PairEffect(maxjax.extend.core.Effect):
        pass

    hijax.control_flow_allowed_effects.add_type(PairEffect)
    hijax.register_hitype(type("Value", (), {}), lambda value: Pair())
    assert str(PairEffect()) == "PairEffect"
    with pytest.raises(NotImplementedError, match="new_pair: .* no types above arrays"):
        NewPair("new_pair").bind(1.0)
    with pytest.raises(TypeError, match="val_cls must be a class"):
        hijax.register_hitype(1, None)
