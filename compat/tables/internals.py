"""What extensions of JAX use: jaxprs, primitives and their rules, linear_util, ffi."""

from __future__ import annotations

from compat.spec import Case, case, check, floats

TABLE: dict[str, list[Case]] = {}
J = "j = jax.make_jaxpr(lambda x: jnp.sin(x) * 2 + 1)(1.); "
X = "jax.extend.core"
LOAD = (
    "import importlib\nL = lambda n: importlib.import_module(jax.__name__ + '.' + n)\n"
    "core, ad, batching, mlir = L('extend.core'), L('interpreters.ad'), "
    "L('interpreters.batching'), L('interpreters.mlir')\n"
)
PRIMITIVE = LOAD + (
    "p = core.Primitive('twice')\np.def_impl(lambda x: x * 2)\n"
    "p.def_abstract_eval(lambda x: jax.core.ShapedArray(x.shape, x.dtype, x.weak_type))\n"
    "mlir.register_lowering(p, mlir.lower_fun(lambda x: x * 2, multiple_results=False))\n"
    "ad.deflinear(p, lambda ct: [ct * 2])\n"
    "batching.primitive_batchers[p] = lambda a, d: (p.bind(a[0]), d[0])\n"
)
USES = (
    "p.bind(x)",
    "jax.jit(p.bind)(x)",
    "jax.vmap(p.bind)(x)",
    "jax.grad(lambda x: p.bind(x).sum())(x)",
)

TABLE[f"{X}.Literal"] = check(
    J + "[isinstance(v, f) for v in j.jaxpr.eqns[1].invars]",
    J + "[float(v.val) for v in j.jaxpr.eqns[1].invars if isinstance(v, f)]",
    "f.__name__",
)
TABLE[f"{X}.Var"] = check(
    J + "[isinstance(v, f) for v in j.jaxpr.invars]",
    J + "isinstance(j.jaxpr.outvars[0], f)",
    J + "j.jaxpr.invars[0].aval",
    "f.__name__",
)
TABLE[f"{X}.Jaxpr"] = check(
    J + "isinstance(j.jaxpr, f)",
    J + "len(j.jaxpr.eqns)",
    J + "str(j.jaxpr)",
    J + "len(j.jaxpr.constvars)",
    "f.__name__",
    J + "len(j.jaxpr.effects)",
)
TABLE[f"{X}.ClosedJaxpr"] = check(
    J + "isinstance(j, f)",
    J + "f(j.jaxpr, j.consts)",
    J + "j.in_avals, j.out_avals",
    J + "len(j.eqns)",
    J + "j.consts",
    J + "j.literals",
)
TABLE[f"{X}.JaxprEqn"] = check(
    J + "isinstance(j.eqns[0], f)",
    J + "[e.primitive.name for e in j.eqns]",
    J + "len(j.eqns[1].invars), len(j.eqns[1].outvars)",
    J + "j.eqns[0].effects",
)
TABLE[f"{X}.jaxpr_as_fun"] = check(
    J + "f(j)(2.)",
    J + "jax.grad(lambda x: f(j)(x)[0])(2.)",
    "j = jax.make_jaxpr(lambda x, y: (x + y, x))(1., 2); jax.jit(f(j))(3., 4)",
)
TABLE[f"{X}.DropVar"] = check("f.__name__")
TABLE[f"{X}.Primitive"] = check(
    *(PRIMITIVE + "x = jnp.arange(3.)\n" + u for u in USES),
    "f('p').name",
    "f('p').multiple_results",
    "repr(f('p'))",
    PRIMITIVE + "jax.make_jaxpr(p.bind)(1.).eqns[0].primitive is p",
    PRIMITIVE + "jax.eval_shape(p.bind, 1.)",
) + check("f('p').bind(1.)", "jax.jit(f('p').bind)(1.)", raises=None)
for name in ("interpreters.mlir.register_lowering", "interpreters.mlir.lower_fun"):
    TABLE[f"jax.{name}"] = check(
        PRIMITIVE + "jax.jit(p.bind)(jnp.arange(3.))",
        PRIMITIVE + "jax.jit(lambda x: p.bind(x) + p.bind(x * 2))(jnp.ones(2))",
        "f.__name__",
    )
TABLE["jax.interpreters.batching.primitive_batchers"] = check(
    PRIMITIVE + "jax.vmap(p.bind)(jnp.arange(3.))",
    PRIMITIVE + "jax.jit(jax.vmap(p.bind, 1, 1))(jnp.ones((2, 3)))",
)
TABLE["jax.interpreters.ad.deflinear"] = check(
    PRIMITIVE + "jax.grad(p.bind)(3.)",
    PRIMITIVE + "jax.jvp(p.bind, (jnp.ones(2),), (jnp.arange(2.),))",
)
TABLE["jax.interpreters.ad.primitive_jvps"] = check(
    "lax.sin_p in f",
    PRIMITIVE
    + "ad.primitive_jvps[p] = lambda ps, ts: (p.bind(*ps), 5 * ts[0])\njax.jvp(p.bind, "
      "(jnp.ones(2),), (jnp.ones(2),))",
)
TABLE["jax.interpreters.ad.primitive_transposes"] = check(
    "lax.mul_p in f",
    PRIMITIVE
    + "ad.primitive_transposes[p] = lambda ct, x: [7 * ct]\njax.linear_transpose(p.bind, "
      "jnp.ones(2))(jnp.ones(2))",
)
TABLE["jax.interpreters.ad.get_primitive_transpose"] = check("callable(f(lax.mul_p))") + check(
    "f(lax.sin_p)", raises=True
)
A = "t = jax.typeof(jnp.ones(2)); "
TABLE["jax.interpreters.ad.Zero"] = check(
    A + "f(t)", A + "f(t).aval", A + "isinstance(f(t), f)", A + "type(f(t)).__name__"
)
TABLE["jax.interpreters.ad.UndefinedPrimal"] = check(A + "f(t).aval", A + "isinstance(f(t), f)")
TABLE["jax.interpreters.ad.is_undefined_primal"] = check(
    LOAD + A + "f(ad.UndefinedPrimal(t)), f(1.), f(None)"
)
TABLE["jax.interpreters.ad.instantiate_zeros"] = check(LOAD + A + "f(ad.Zero(t)), f(jnp.ones(1))")
TABLE["jax.interpreters.ad.add_tangents"] = check(
    LOAD
    + A
    + "f(jnp.ones(2), ad.Zero(t)), f(ad.Zero(t), jnp.ones(2)), f(jnp.ones(2), jnp.ones(2))",
    LOAD + A + "f(ad.Zero(t), ad.Zero(t))",
)
TABLE["jax.interpreters.ad.add_jaxvals_p"] = check("f.name", "f.bind(jnp.ones(2), jnp.ones(2))")
TABLE["jax.interpreters.ad.JVPTracer"] = check(
    "f.__name__", "s = []; jax.jvp(lambda x: (s.append(isinstance(x, f)), x)[1], (1.,), (1.,)); s"
)
TABLE["jax.core.ShapedArray"] = check(
    "f((2, 3), jnp.dtype('float32'))",
    "f((2,), np.dtype('int8')).shape",
    "f((2,), np.dtype('int8')) == f((2,), np.dtype('int8'))",
    "isinstance(jax.typeof(1.), f)",
    "f((), np.dtype('float32'), weak_type=True)",
    "f((2, 3), np.dtype('bool')).size",
    "f((2, 3), np.dtype('bool')).ndim",
    "hash(f((2,), np.dtype('int8'))) == hash(f((2,), np.dtype('int8')))",
    "f((2,), np.dtype('int8')).update(shape=(3,))",
    "f((2,), np.dtype('int8')).str_short()",
)
TABLE["jax.core.Tracer"] = check(
    "isinstance(1., f)",
    "jax.jit(lambda x: isinstance(x, jax.core.Tracer) * x)(2.)",
    "f.__name__",
    "s = []; jax.vmap(lambda x: (s.append(isinstance(x, f)), x)[1])(jnp.arange(2)); s",
    "s = []; jax.grad(lambda x: (s.append(isinstance(x, f)), x)[1])(1.); s",
)
TABLE["jax.core.AbstractValue"] = check("isinstance(jax.typeof(1.), f)")
TABLE["jax.core.Atom"] = check("f is not None")
TABLE["jax.core.Trace"] = check("f.__name__")
TABLE["jax.core.Value"] = check("f is not None")
TABLE["jax.core.eval_context"] = check(
    "with f():\n    y = jnp.ones(2) + 1\ny", "jax.jit(lambda x: (print, x)[1])(1.)"
)
TABLE["jax.core.eval_jaxpr"] = check(
    J + "f(j.jaxpr, j.consts, 2.)", J + "jax.jit(lambda x: f(j.jaxpr, j.consts, x))(2.)"
)
for name in ("Effect", "no_effects", "gensym", "new_jaxpr_eqn", "mapped_aval", "unmapped_aval"):
    TABLE[f"{X}.{name}"] = {
        "Effect": check("f.__name__"),
        "no_effects": check("f"),
        "gensym": check("g = f(); g(jax.typeof(1.)).aval"),
        "new_jaxpr_eqn": check("f.__name__"),
        "mapped_aval": check(
            "f(3, 0, jax.typeof(jnp.ones((3, 2))))", "f(3, None, jax.typeof(jnp.ones((3, 2))))"
        ),
        "unmapped_aval": check(
            "f(3, 0, jax.typeof(jnp.ones(2)))", "f(3, 1, jax.typeof(jnp.ones(2)))"
        ),
    }[name]
TABLE[f"{X}.primitives.jit_p"] = check(
    "f.name",
    "jax.make_jaxpr(jax.jit(lambda x: x))(1.).eqns[0].primitive is f",
    "f.multiple_results",
)
TABLE["jax.extend.backend.get_backend"] = check(
    "f().platform", "f('cpu').platform", "len(f().devices()) >= 1"
)
TABLE["jax.experimental.compilation_cache.compilation_cache.set_cache_dir"] = check("f.__name__")
TABLE["jax.experimental.xla_metadata.set_xla_metadata"] = check(
    "with f(a=1):\n    y = jnp.ones(2) + 1\ny"
) + case("f(jnp.sin(x), a='b')", x=floats(3))

# --- tracing by hand ------------------------------------------------------------------------------

PE, API = "jax.interpreters.partial_eval", "jax.api_util"
WRAP = LOAD + (
    "lu, api, pe = L('extend.linear_util'), L('api_util'), L('interpreters.partial_eval')\n"
    "def wrap(g):\n"
    "    return lu.wrap_init(g, debug_info=api.debug_info('f', g, (), {}))\n"
)
TABLE[f"{PE}.trace_to_jaxpr_dynamic"] = check(
    WRAP + "str(f(wrap(lambda x: [x * 2, x]), [jax.typeof(1.)])[0])",
    WRAP + "f(wrap(lambda x: [x * 2, x]), [jax.typeof(1.)])[1:]",
    WRAP + "c = jnp.arange(3.); f(wrap(lambda x: [x + c]), [jax.typeof(c)])[2]",
)
TABLE[f"{PE}.trace_to_jaxpr_nounits"] = check(
    WRAP + "p = pe.PartialVal.unknown(jax.typeof(1.)); f(wrap(lambda x: [-x]), [p])[1]",
    WRAP + "p = [pe.PartialVal.known(2.), pe.PartialVal.unknown(jax.typeof(1.))]; "
           "[x.is_known() for x in f(wrap(lambda x, y: [x, y]), p)[1]]",
    WRAP + "p = [pe.PartialVal.known(2.)]; "
           "[x.is_known() for x in f(wrap(lambda x: [x]), p, instantiate=True)[1]]",
)
TABLE[f"{PE}.PartialVal"] = check(
    "f.known(2.).is_known(), f.known(2.).get_known(), f.known(2.)",
    "f.unknown(jax.typeof(1.)).is_known(), f.unknown(jax.typeof(1.)).get_aval()",
    "f.known(2.).get_aval()",
)
TABLE[f"{PE}.DynamicJaxprTracer"] = check(
    "f.__name__", "s = []; jax.jit(lambda x: (s.append(isinstance(x, f)), x)[1])(1.); s",
    "isinstance(1., f)",
)
for name in ("flatten_fun", "flatten_fun_nokwargs"):
    LEAVES = "((1, {'a': 2}), {})" if name == "flatten_fun" else "(1, {'a': 2})"
    TABLE[f"{API}.{name}"] = check(
        WRAP + f"v, t = jax.tree.flatten({LEAVES}); g, o = f(wrap(lambda x, y: (y, x)), t); "
               "g.call_wrapped(*v), o()")
TABLE[f"{API}.debug_info"] = check(
    "f('jit', lambda x, y, k: x, (1, {'a': 2}), {'k': 3}).arg_names",
    "f('jit', lambda x, y: x, (1, 2), {}).traced_for",
    "f('jit', lambda x, y: x, (1, 2), {}).func_src_info.split()[0]")
TABLE[f"{X}.DebugInfo"] = check(
    "f('jit', 'f at x.py:1', ('x',), None).arg_names", "f('jit', 'f at x.py:1', None, None)[:2]")
TABLE[f"{API}.safe_map"] = check("f(max, [1, 5], [4, 2])", "f(abs, [])") + check(
    "f(max, [1, 5], [4])", raises=True)
TABLE[f"{API}.shaped_abstractify"] = check(
    "f(1.)", "f(np.ones(3, np.int8))", "f(jnp.ones((2, 0)))", "f(True)") + check(
    "f('text')", raises=True)
TABLE[f"{X}.get_opaque_trace_state"] = check(
    "f() == f()", "s = f(); r = []; jax.jit(lambda x: (r.append(f() == s), x)[1])(1.); r")
TABLE[f"{X}.find_top_trace"] = check("isinstance(f([1.]), jax.core.Trace)")
TABLE["jax.interpreters.pxla.thread_resources"] = check("f.env.physical_mesh.empty")
TABLE["jax.interpreters.xla.apply_primitive"] = check("f(lax.neg_p, jnp.ones(2))")
TABLE[f"{X}.take_current_trace"] = check(
    "with f() as trace:\n    t = isinstance(trace, jax.core.Trace)\nt")
TABLE[f"{X}.set_current_trace"] = check(
    "r = []\ndef g(x):\n    with jax.extend.core.take_current_trace() as trace:\n"
    "        with f(trace):\n            r.append(isinstance(x + 1, jax.core.Tracer))\n"
    "    return x\njax.jit(g)(1.); r",
)
TABLE["jax.extend.source_info_util.register_exclusion"] = check("f('/nowhere/') is None")
TABLE["jax.interpreters.batching.axis_primitive_batchers"] = check(
    LOAD + "batching, core = L('interpreters.batching'), L('extend.core')\n"
    "p = core.Primitive('pairs')\n"
    "p.def_impl(lambda x: x * 2)\np.def_abstract_eval(lambda x: x)\nseen = []\n"
    "def rule(size, name, kind, args, axes):\n"
    "    seen.append((size, axes))\n    return args[0] * 2, axes[0]\n"
    "f[p] = rule\njax.vmap(p.bind)(jnp.arange(3.)), seen")
