"""Rules of one's own for derivatives and vmap, and checkpoint."""

from __future__ import annotations

from compat.spec import case, cases, check, floats, ints

# The rules are wrong by a factor, so that it shows where one is not used.
VJP = ("g = f(lambda x: jnp.sin(x)); "
       "g.defvjp(lambda x: (jnp.sin(x), x), lambda r, ct: (2 * ct * jnp.cos(r),)); ")
JVP = ("g = f(lambda x: jnp.sin(x)); "
       "g.defjvp(lambda p, t: (jnp.sin(p[0]), 3 * t[0] * jnp.cos(p[0]))); ")
PAIR = ("g = f(lambda x, y: x * y); "
        "g.defvjp(lambda x, y: (x * y, (x, y)), lambda r, ct: (ct * r[1], {second})); ")
VMAP = "g = f(lambda x: jnp.sin(x)); g.def_vmap(lambda n, b, x: (n * jnp.sin(x), True)); "
POLICY = ("g = lambda w, x: jnp.tanh(jnp.tanh(x @ w) @ w).sum(); "
          "jax.checkpoint(g, policy={policy})(w, x)")

ad = "jax.ad_checkpoint"


def policies(policy: str):
    return (case(POLICY.format(policy=policy), w=floats(3, 3), x=floats(2, 3), tol="accumulate")
            + case("g = jax.ad_checkpoint.checkpoint_name; h = lambda x: "
                   f"jnp.sin(g(jnp.cos(x), 'c')); jax.checkpoint(h, policy={policy})(x)",
                   x=floats(3))
            + case(f"g = lambda x: jnp.sin(jnp.exp(x)); lax.scan(lambda c, _: "
                   f"(jax.checkpoint(g, policy={policy})(c), c), x, None, length=3)",
                   x=floats(2, low=-1, high=1), tol="loose"))


TABLE = {
    "jax.custom_vjp": (
        cases(VJP + "g(x)", VJP + "jax.checkpoint(g)(x)", VJP + "jax.jit(g)(x) + g(2 * x)",
              VJP + "lax.scan(lambda c, _: (g(c), c), x, None, length=3)[0]",
              VJP + "lax.cond(x.sum() > 0, g, lambda x: x, x)", VJP + "jax.vmap(g)(x)",
              VJP + "jax.grad(lambda x: jax.grad(lambda x: g(x).sum())(x).sum())(x)",
              x=floats(3))
        + cases(PAIR.format(second="5 * ct * r[0]") + "g(x, y)",
                PAIR.format(second="None") + "g(x, y)",
                PAIR.format(second="5 * ct * r[0]") + "jax.vmap(g, (0, None))(x, y[0])",
                x=floats(3), y=floats(3))
        + case(PAIR.format(second="ct") + "g(n, jnp.sin(x))", x=floats(3), n=ints(3))
        + case("g = f(lambda h, x: h(x), nondiff_argnums=(0,)); g.defvjp(lambda h, x: (h(x), x), "
               "lambda h, r, ct: (ct * h(r),)); g(jnp.sin, x)", x=floats(3))
        + case("g = f(lambda d: d['a'] * d['b']); g.defvjp(lambda d: (d['a'] * d['b'], d), "
               "lambda d, ct: ({'a': ct * d['b'], 'b': None},)); g({'a': x, 'b': x})", x=floats(3))
        + case(VJP + "jax.jvp(g, (x,), (x,))", x=floats(3), raises="forward-mode")
        + case("f(lambda x: x)(x)", x=floats(3), raises="No VJP defined")
        + case("g = f(lambda x: x); g.defvjp(lambda x: (x, None), lambda r, ct: ct); "
               "jax.grad(g)(x)", x=floats(), raises="Custom VJP bwd rule")
    ),
    "jax.custom_jvp": (
        cases(JVP + "g(x)", JVP + "jax.checkpoint(g)(x)", JVP + "jax.jit(g)(x)",
              JVP + "jax.jvp(g, (x,), (x,))", JVP + "jax.vmap(g)(x)",
              JVP + "lax.scan(lambda c, _: (g(c), c), x, None, length=3)[0]", x=floats(3))
        + cases("g = f(lambda x, y: x * y); g.defjvps(lambda t, o, x, y: t * y, None); g(x, y)",
                "g = f(lambda x, y: x * y, nondiff_argnums=(1,)); "
                "g.defjvp(lambda y, p, t: (p[0] * y, 7 * t[0])); g(x, 2.)",
                x=floats(3), y=floats(3))
        + case("f(lambda x: x)(x)", x=floats(3), raises="No JVP defined")
        + case("g = f(lambda x: x); g.defjvp(lambda p, t: p[0]); jax.jvp(g, (x,), (x,))",
               x=floats(), raises="must produce a pair")
    ),
    "jax.custom_gradient": (
        cases("f(lambda x: (x ** 2, lambda ct: (5 * ct * x,)))(x)",
              "f(lambda x: (jnp.sin(x), lambda ct: ct * jnp.cos(x)))(x)",
              "jax.jit(f(lambda x: (x, lambda ct: 3 * ct)))(x)", x=floats(3))
        + case("f(lambda x, y: (x * y, lambda ct: (ct * y, 2 * ct * x)))(x, y)",
               x=floats(3), y=floats(3))
    ),
    "jax.closure_convert": (
        case("g, consts = f(lambda y: x * y, x); g(2 * x, *consts)", x=floats(3))
        + case("g, consts = f(lambda y: x * y, (x,)); g(2 * x, *consts)", x=floats(3), raises=True)
    ),
    "jax.checkpoint": (
        cases("f(lambda x: jnp.sin(jnp.sin(x)))(x)", "f(lambda x: x)(x)",
              "jax.jit(f(lambda x: (x, jnp.exp(x))))(x)",
              "lax.scan(lambda c, _: (f(jnp.sin)(c), c), x, None, length=3)[0]",
              "f(lambda x: lax.scan(lambda c, _: (jnp.sin(c), c), x, None, length=3))(x)",
              "f(f(lambda x: jnp.sin(x) * x), prevent_cse=False)(x)",
              "f(lambda x, n: x ** n, static_argnums=(1,))(x, 3)",
              "f(lambda x, y: x * y['a'])(x, y={'a': x})",
              "jax.grad(lambda x: jax.grad(f(lambda x: jnp.sin(x * x).sum()))(x).sum())(x)",
              x=floats(3))
        + case("f(lambda n, x: x * n)(n, x)", n=ints(3), x=floats(3))
        + case("f(lambda x: x if x > 0 else -x)(x)", x=floats(), raises=True)
        + case("f(lambda x: x, concrete=True)(x)", x=floats(), raises="concrete")
        + case("f(lambda x: x, static_argnums=[0])(x)", x=floats(), raises="static_argnums")
    ),
    "jax.remat": cases("f(lambda x: jnp.sin(jnp.sin(x)))(x)",
                       "f(lambda x, n: x ** n, static_argnums=1)(x, 3)", x=floats(3)),
    f"{ad}.checkpoint_name": (
        cases("f(x, 'a')", "f({'a': x, 'b': (x,)}, 'a')", "f(jnp.sin(x), 'a') * 2", x=floats(3))),
    f"{ad}.checkpoint_name_fwd": (
        cases("f(x, 'a')", "f({'a': x, 'b': (x,)}, 'a')", "f(jnp.sin(x), 'a') * 2", x=floats(3))),
    f"{ad}.print_saved_residuals": check(
        "f(lambda x: x * 2, 1.)", "f(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x))), 1.)"),
    f"{ad}.Offloadable": check("f('device', 'pinned_host')", "f(src=1, dst=2).dst"),
    f"{ad}.Recompute": check("type(f).__name__"),
    f"{ad}.Saveable": check("type(f).__name__"),
    f"{ad}.checkpoint_policies": check("sorted(vars(f))", "f.dots_saveable"),
    **{f"jax.checkpoint_policies.{name}": policies("f") for name in (
        "everything_saveable", "nothing_saveable", "dots_saveable", "checkpoint_dots",
        "dots_with_no_batch_dims_saveable", "checkpoint_dots_with_no_batch_dims")},
    **{f"jax.checkpoint_policies.{name}": policies("f('c')") for name in (
        "save_anything_except_these_names", "save_any_names_but_these", "save_only_these_names")},
    "jax.checkpoint_policies.save_from_both_policies": (
        policies("f(jax.checkpoint_policies.dots_saveable, "
                 "jax.checkpoint_policies.save_only_these_names('c'))")
        + case("f(lambda *_, **__: 1, lambda *_, **__: True)(None)", raises="boolean")),
    "jax.checkpoint_policies.offload_dot_with_no_batch_dims": check(
        "f('device', 'pinned_host')(None) is jax.ad_checkpoint.Recompute",
        "f('a', 'b')(lax.dot_general_p, dimension_numbers=(((1,), (0,)), ((), ())))"),
    "jax.checkpoint_policies.save_and_offload_only_these_names": (
        check("f(names_which_can_be_saved=['a'], names_which_can_be_offloaded=['b'], "
              "offload_src=1, offload_dst=2)(None) is jax.ad_checkpoint.Recompute")
        + case("f(names_which_can_be_saved=['a'], names_which_can_be_offloaded=['a'], "
               "offload_src=1, offload_dst=2)", raises="intersect")),
    "jax.custom_derivatives.SymbolicZero": check(
        "repr(f(jax.typeof(jnp.ones(3))))", "f(jax.typeof(jnp.ones(3))).shape",
        "f.from_primal_value(jnp.ones((2, 3))).ndim"),
    "jax.custom_derivatives.zero_from_primal": (
        cases("f(x)", "f({'a': x, 'b': x[0]})", x=floats(3))
        + check("repr(f(jnp.ones(2), symbolic_zeros=True))")),
    "jax.custom_derivatives.CustomVJPPrimal": check("f(1, True)", "f(value=2, perturbed=False)"),
    "jax.custom_derivatives.custom_vjp_primal_tree_values": (
        check("f({'a': jax.custom_derivatives.CustomVJPPrimal(1, True)})")
        + case("f((1, 2))", raises="unexpected leaf type")),
    "jax.custom_derivatives.linear_call": (
        case("f(lambda r, x: x / r, lambda r, ct: 7 * ct / r, 2., x)", x=floats(3), vmap=False)
        + case("f(lambda r, x: {'y': r * x}, lambda r, ct: r * ct['y'], y, x)", x=floats(3),
               y=floats(3), grad="x", vmap=False)
        + case("jax.vmap(lambda x: f(lambda r, x: x, lambda r, ct: ct, (), x))(x)", x=floats(3),
               raises="Batching rule")),
    "jax.custom_derivatives.custom_jvp_call_p": check("f.name", "f.multiple_results"),
    "jax.custom_derivatives.custom_vjp_call_p": check("f.name", "f.multiple_results"),
    "jax.custom_derivatives.remat_opt_p": check("f.name", "f.multiple_results"),
    **{f"jax.custom_derivatives.{name}": check(f"f is jax.{name}") for name in (
        "custom_jvp", "custom_vjp", "custom_gradient", "closure_convert")},
    "jax.custom_batching.custom_vmap": (
        cases(VMAP + "g(x)", VMAP + "jax.vmap(g)(x)", VMAP + "jax.jit(jax.vmap(g))(x)",
              VMAP + "jax.jvp(jax.vmap(g), (x,), (x,))",
              VMAP + "lax.map(lambda _: jax.vmap(g)(x), jnp.arange(2))", x=floats(3), grad=False)
        + case(VMAP + "h = jax.custom_vjp(g); h.defvjp(lambda x: (g(x), x), "
               "lambda r, ct: (ct * r,)); h(x)", x=floats(3))
        + case(VMAP + "jax.grad(g)(x)", x=floats(), raises="reverse-mode")
        + case("f(lambda x: x)(x)", x=floats(3), raises="No batching rule")
    ),
    "jax.custom_batching.sequential_vmap": cases(
        "f(lambda x: 2 * x)(x)", "jax.vmap(f(lambda x, y: x * y + 1), (0, None))(x, 2.)",
        "jax.vmap(f(lambda d: {'y': d['a'] * 2}))({'a': x})", x=floats(3), grad=False),
}
