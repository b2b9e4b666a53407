"""The text of jaxprs: maxjax prints a converted JAX jaxpr as JAX does."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax._src import core as jax_core

from maxjax._base import dtypes
from maxjax._ir import printing
from maxjax._ir.jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var
from maxjax._ir.primitive import registry
from maxjax._ir.types import ShapedArray

# JAX's parameters that maxjax lacks.
ABSENT = {
    "jit": {"in_shardings", "out_shardings", "in_layouts", "out_layouts", "ctx_mesh",
            "compiler_options_kvs", "inline"},
    "reduce_sum": {"out_sharding"}, "reshape": {"sharding"}, "iota": {"sharding"},
    "dot_general": {"out_sharding"}, "custom_jvp_call": {"num_consts"},
}


class Carrier:
    """Converts a JAX jaxpr to a maxjax jaxpr."""

    def __init__(self):
        self.variables, self.jaxprs = {}, {}

    def aval(self, aval):
        dtype = aval.dtype
        if jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key):
            dtype = dtypes.key_dtype("threefry2x32")
        return ShapedArray(aval.shape, dtype, aval.weak_type)

    def atom(self, atom):
        if isinstance(atom, jax_core.Literal):
            value = np.asarray(atom.val, atom.aval.dtype)[()]
            return Literal(value, self.aval(atom.aval))
        return self.variables.setdefault(atom, Var(self.aval(atom.aval)))

    def value(self, value):
        if isinstance(value, jax_core.Jaxpr):
            return ClosedJaxpr(self.jaxpr(value))
        if isinstance(value, tuple):
            return tuple(map(self.value, value))
        return value

    def jaxpr(self, jaxpr):
        if jaxpr in self.jaxprs:
            return self.jaxprs[jaxpr]
        eqns = []
        used = {atom for eqn in jaxpr.eqns for atom in eqn.invars
                if isinstance(atom, jax_core.Var)}
        used.update(atom for atom in jaxpr.outvars if isinstance(atom, jax_core.Var))
        for eqn in jaxpr.eqns:
            name = eqn.primitive.name
            absent = ABSENT.get(name, set())
            params = {key: self.value(value) for key, value in eqn.params.items()
                      if key not in absent and key not in ("accuracy", "out_dtype", "effects")
                      and not (key == "sharding" and value is None)}
            if name == "scan":
                consts, carry, _ = params.pop("ft_in").unpack()
                kept = params.pop("ft_out").unpack()[1]
                params.update(num_consts=len(consts), num_carry=len(carry),
                              computed=tuple(leaf.val.val.is_right for leaf in kept.elts))
            if name == "custom_jvp_call":
                params["jvp"] = Named(eqn.params["jvp_jaxpr_fun"].f.__name__)
                params["name"] = eqn.params.get("name") or "f"
            if name in ("random_seed", "random_wrap"):
                params["impl"] = Named("fry")
            eqns.append(JaxprEqn(registry[name], list(map(self.atom, eqn.invars)), params,
                                 [
                                     self.atom(var) if var in used else DropVar(self.aval(var.aval))
                                     for var in eqn.outvars]))
        result = self.jaxprs[jaxpr] = Jaxpr(
            list(map(self.atom, jaxpr.constvars)), list(map(self.atom, jaxpr.invars)),
            list(map(self.atom, jaxpr.outvars)), eqns)
        return result


class Named:
    def __init__(self, name):
        self.name = name

    def __str__(self):
        return self.name


double = jax.jit(lambda x: x * 2)
both = jax.jit(lambda x: double(x) + double(x + 1))
several = jax.jit(lambda x, y: (x, x, x * y, 1.0))
key = jax.random.key(0)
PROGRAMS = {
    "one line": (lambda x: jnp.sin(x) * 2, 1.0),
    "sum": (lambda x: x.sum(axis=0), np.ones((2, 3), np.float32)),
    "broadcast": (lambda x: jnp.broadcast_to(x, (2, 3)), np.ones(3, np.float32)),
    "reshape": (lambda x: x.reshape(3, 2).T, np.ones((2, 3), np.float32)),
    "convert": (lambda x: x.astype(jnp.int32), np.ones((2, 3), np.float32)),
    "matmul": (lambda x: x @ x, np.ones((2, 2), np.float32)),
    "slice": (lambda x: x[0], np.ones((2, 3), np.float32)),
    "concatenate": (lambda x: jnp.concatenate([x, x]), np.ones((2, 3), np.float32)),
    "where": (lambda x: jnp.where(x > 0, x, 0), np.ones((2, 3), np.float32)),
    "uniform": (lambda k: jax.random.uniform(k, (3,)), key),
    "normal": (lambda k: jax.random.normal(k, (3,)), key),
    "randint": (lambda k: jax.random.randint(k, (3,), 0, 10), key),
    "permutation": (lambda k: jax.random.permutation(k, 8), key),
    "categorical": (lambda k: jax.random.categorical(k, jnp.zeros((3, 4))), key),
    "split": (lambda k: jax.random.split(k), key),
    "seed": (lambda i: jax.random.PRNGKey(i), 0),
    "cond": (lambda x: lax.cond(x > 0, lambda x: x, lambda x: x * 2, x), 1.0),
    "while": (lambda x: lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x)), 1.0),
    "fori": (lambda x: lax.fori_loop(0, 10, lambda i, c: c * 2, x), 1.0),
    "constant": (lambda x: x + np.arange(3.0), np.ones(3, np.float32)),
    "no operands": (lambda x: jnp.ones(3), 1.0),
    "no equations": (lambda x: (x, x, 1.0, 2), 1.0),
    "shared": (lambda x: double(double(x)) + double(double(x)), np.ones(3, np.float32)),
    "shared twice": (lambda x: both(x) + double(x) + both(x), np.ones(3, np.float32)),
    "grad of shared": (jax.grad(lambda x: both(x)), 1.0),
    "several results": (lambda x: several(x, 0.0), 1.0),
    "dropped results": (lambda x: several(x, 0.0)[2], 1.0),
    "one operand twice": (lambda x: several(x, x), 1.0),
    "long": (lambda x: [x + i for i in range(60)], 1.0),
    "many results": (lambda x: lax.split(x, [1] * 30), np.ones(30, np.float32)),
    "many operands": (lambda x: jnp.concatenate([x] * 60), np.ones(3, np.float32)),
    "literals": (lambda x: x + 1e20 + jnp.inf + jnp.nan - 1e-7 + np.float32(0.1) + 1j, 1.0),
    "branches": (lambda x: lax.switch(x, [lambda: 1, lambda: 2, lambda: 3]), 1),
    "scan": (lambda x: lax.scan(lambda c, y: (double(c), c), double(x), None, length=3), 1.0),
    "sort": (lambda x: lax.sort((x, x), num_keys=2), np.ones(3, np.float32)),
    "float8": (lambda x: x.astype(jnp.float8_e4m3fn) * 1, 1.0),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_jax_prints_it(name):
    function, *args = PROGRAMS[name]
    theirs = jax.make_jaxpr(function)(*args)
    ours = Carrier().jaxpr(theirs.jaxpr)
    assert printing.pretty_print(ours) == str(theirs)


def test_an_equation_alone():
    theirs = jax.make_jaxpr(double)(1.0).eqns[0]
    ours = Carrier().jaxpr(jax.make_jaxpr(double)(1.0).jaxpr).eqns[0]
    assert str(ours) == str(theirs)
