"""jax.nn, its initializers, and jax.example_libraries."""

from __future__ import annotations

from compat.spec import Case, array, bools, case, cases, check, elementwise, floats, ints, shaped

TABLE: dict[str, list[Case]] = {}


def put(names: str, rows: list[Case], module: str = "nn") -> None:
    for name in names.split():
        TABLE.setdefault(f"jax.{module}.{name}", []).extend(rows)


# --- activations ----------------------------------------------------------------------------------

put("relu relu6 soft_sign hard_tanh hard_sigmoid hard_silu hard_swish identity squareplus "
    "sparse_plus sparse_sigmoid leaky_relu", elementwise(1, (-3.1, 3.1)))
put("sigmoid silu swish softplus log_sigmoid elu celu selu gelu mish", elementwise(1, tol="loose"))
put("tanh", elementwise(1, (-1.0, 1.0), tol="loose"))
put("log1mexp", elementwise(1, (0.1, 4.0), tol="loose"))
put("gelu", cases("f(x, approximate=False)", "f(x, approximate=True)", x=shaped(2, 3),
                  dtypes="float32 bfloat16", tol="loose"))
put("elu celu leaky_relu", case("f(x, a)", x=floats(2, 3), a=floats(3, low=0.1, high=1.0),
                                tol="loose"))
put("squareplus", case("f(x, 2.0)", x=floats(2, 3)))
put("glu", cases("f(x)", "f(x, axis=0)", x=floats(2, 4), tol="loose")
    + case("f(x)", x=floats(3), raises=True))
put("softmax log_softmax", (
    cases("f(x)", "f(x, axis=0)", "f(x, axis=(0, 1))", "f(x, -1, x > -1)", x=floats(2, 4),
          tol="loose")
    + case("f(x, where=mask)", x=floats(2, 4), mask=bools(2, 4).fix(), tol="loose")
    + case("f(x)", x=shaped(2, 3), dtypes="bfloat16 float16 int32", modes="eager jit", tol="loose",
           raises=None)
    + case("f(x)", x=floats(2, 3), dtypes="float64", x64=True, tol="loose")
    + case("f(x, axis=2)", x=floats(3), raises=True) + case("f([1.0])", raises=True)))
put("logsumexp", (
    cases("f(x)", "f(x, axis=0)", "f(x, axis=(0, 1), keepdims=True)", "f(x, 1, b=x)",
          "f(x, 1, b=x, return_sign=True)", "f(x, 1, where=x > 0)", x=floats(2, 4), tol="loose")
    + case("f(x, 1)", x=array([[1.0, float("-inf")], [float("inf"), 0.0]], "float32"),
           modes="eager jit")
    + case("f(x)", x=shaped(3), dtypes="int32 bfloat16 complex64", modes="eager jit", tol="loose")
    + case("f([1.0])", raises=True)))
put("logmeanexp", cases("f(x)", "f(x, axis=0)", "f(x, 1, keepdims=True)", "f(x, 1, x > 0)",
                        x=floats(2, 4), tol="loose"))
put("standardize", (
    cases("f(x)", "f(x, axis=0)", "f(x, axis=(0, 1), epsilon=0.1)", "f(x, mean=0.5)",
          "f(x, variance=2.0, where=x > -1)", "f(x, algorithm='stable')", x=floats(2, 4),
          tol="accumulate")
    + case("f(x, algorithm='a')", x=floats(3), raises=True)))
put("one_hot", (
    cases("f(i, 3)", "f(i, 3, axis=0)", "f(i, 4, dtype='int8')", i=array([0, 2, 3, -1], "int32"))
    + case("f(i, 3, axis=1)", i=ints(2, 2, low=0, high=2)) + case("f(1, 3)")
    + case("f(x, 3)", x=floats(3), modes="eager jit", raises=None)))

# --- attention ------------------------------------------------------------------------------------

QKV = {"q": floats(2, 3, 4, 8), "k": floats(2, 5, 2, 8), "v": floats(2, 5, 2, 8)}
LENGTHS = {"n": array([1, 2], "int32").fix()}
put("dot_product_attention", (
    cases("f(q, k, v)", "f(q, k, v, is_causal=True)", "f(q, k, v, scale=0.3)",
          "f(q, k, v, local_window_size=1)", "f(q, k, v, local_window_size=(1, 0))",
          "f(q, k, v, is_causal=True, return_residual=True)", "f(q[0], k[0], v[0])",
          "f(q, k, v, mask=(jnp.arange(15) % 3 > 0).reshape(1, 1, 3, 5))",
          "f(q, k, v, implementation='xla')", **QKV, tol="accumulate")
    + cases("f(q, k, v, query_seq_lengths=n)", "f(q, k, v, key_value_seq_lengths=n)",
            "f(q, k, v, query_seq_lengths=n, key_value_seq_lengths=n, return_residual=True)",
            **QKV, **LENGTHS, vmap=False, tol="accumulate", signed_zeros=False)
    + case("f(q, k, v, bias=b)", **QKV, b=floats(1, 4, 1, 5), vmap=False, tol="accumulate")
    + case("f(q, k, v)", q=shaped(2, 3, 4, 8), k=shaped(2, 5, 2, 8), v=shaped(2, 5, 2, 8),
           dtypes="bfloat16 float16", modes="eager jit", tol="accumulate")
    + cases("f(q, k, v[..., :6])", "f(q[:, :, :3], k, v)", "f(q, k, v, implementation='a')",
            "f(q, k, v.astype('bfloat16'))", "f(q, k, v, mask=jnp.ones((3, 5)))",
            "f(q, k, v, bias=jnp.ones((2, 4, 3, 6)))", "f(q, k, v, implementation='cudnn')",
            "f(q, k, v, query_seq_lengths=jnp.ones(2))", "f(q[0, 0], k, v)", **QKV, raises=True)))
put("scaled_dot_general", case("f(x, y, (((1,), (0,)), ((), ())))", x=floats(2, 3), y=floats(3, 4),
                               tol="accumulate"))
put("get_scaled_dot_general_config", check(
    "c = f('mxfp8'); (c.mode, c.block_size, c.data_type, c.scale_type, c.global_scale)",
    "c = f('nvfp4'); (c.mode, c.block_size, c.data_type, c.scale_type, c.global_scale)"))
put("scaled_matmul", (
    case("f(x, x, s, s)", x=floats(2, 4), s=floats(2, 2), raises=True)
    + case("f(x, x[:, :, :2], s, s)", x=floats(1, 2, 4), s=floats(1, 2, 2), raises=True)))

# --- initializers ---------------------------------------------------------------------------------

KEY = "jax.random.key(7)"
init = "nn.initializers"
put("zeros ones", (
    check(f"f({KEY}, (2, 3))", f"f({KEY}, (2,), 'int32')", f"f({KEY}, (), jnp.bfloat16)",
          "f(None, (2,), 'complex64')")
    + check(f"f({KEY}, (2,))", x64=True)), init)
put("constant", check(f"f(3.5)({KEY}, (2, 3))", f"f(2, 'int32')({KEY}, (2,))",
                      f"f(jnp.arange(3.))({KEY}, (2, 3), jnp.bfloat16)"), init)
put("normal uniform", (
    cases(f"f()({KEY}, (3, 4))", f"f(0.5, jnp.bfloat16)({KEY}, (3,))",
          f"f(2)({KEY}, (3,), 'float16')", tol="loose")
    + case(f"f()({KEY}, (3,))", x64=True, tol="loose")), init)
put("normal", case(f"f()({KEY}, (3,), 'complex64')", tol="loose"), init)
put("truncated_normal", cases(f"f()({KEY}, (3, 4))", f"f(0.5, lower=-1.0, upper=0.5)({KEY}, (5,))",
                              f"f(dtype='float16')({KEY}, (3,))", tol="loose"), init)
SCALED = ("glorot_normal glorot_uniform he_normal he_uniform kaiming_normal kaiming_uniform "
          "lecun_normal lecun_uniform xavier_normal xavier_uniform")
put(SCALED, (
    cases(f"f()({KEY}, (4, 6))", f"f(in_axis=0, out_axis=1, batch_axis=2)({KEY}, (2, 3, 4))",
          f"f(dtype=jnp.bfloat16)({KEY}, (3, 3, 2, 4))", f"f()({KEY}, (2, 3), 'complex64')",
          tol="loose")
    + case(f"f()({KEY}, (3,))", raises=True)), init)
put("variance_scaling", (
    [row for mode in ("fan_in", "fan_out", "fan_avg", "fan_geo_avg")
     for kind in ("truncated_normal", "normal", "uniform")
     for row in case(f"f(2.0, {mode!r}, {kind!r})({KEY}, (3, 4))", tol="loose")]
    + cases(f"f(1.0, 'fan', 'normal')({KEY}, (3, 4))", f"f(1.0, 'fan_in', 'a')({KEY}, (3, 4))",
            raises=True)), init)
put("orthogonal", (
    cases(f"f()({KEY}, (4, 3))", f"f(2.0)({KEY}, (2, 4))", f"f(column_axis=0)({KEY}, (3, 5))",
          f"f()({KEY}, (2, 3, 4))", tol="iterative")
    + case(f"f()({KEY}, (3,))", raises=True)), init)
put("delta_orthogonal", (
    cases(f"f()({KEY}, (3, 2, 4))", f"f(2.0)({KEY}, (3, 3, 2, 2))", tol="iterative")
    + cases(f"f()({KEY}, (3, 4, 2))", f"f()({KEY}, (3, 4))", raises=True)), init)
put("Initializer", check("f is not None"), init)

# --- example_libraries ----------------------------------------------------------------------------

stax = "example_libraries.stax"
S = "S = jax.example_libraries.stax; "
RUN = "i, a = {layer}; s, p = i(jax.random.key(1), {shape}); (s, p, a(p, x))"


def layer(names: str, texts: list[str], *shape: int, tol: str = "loose") -> None:
    for text in texts:
        put(names, case(S + RUN.format(layer=text, shape=(-1, *shape[1:])), x=floats(*shape),
                        vmap=False, tol=tol), stax)


layer("Dense", ["f(3)", "f(2, W_init=S.ones, b_init=S.zeros)"], 2, 4, tol="accumulate")
layer("Conv", ["f(3, (2, 3))", "f(2, (2, 2), strides=(2, 1), padding='SAME')"], 2, 5, 4, 3,
      tol="accumulate")
layer("ConvTranspose", ["f(3, (2, 3))", "f(2, (2, 2), strides=(2, 1), padding='SAME')"], 2, 5, 4,
      3, tol="accumulate")
layer("Conv1DTranspose", ["f(3, (2,), strides=(2,))"], 2, 5, 4, tol="accumulate")
layer("GeneralConv", ["f(('NCHW', 'OIHW', 'NCHW'), 3, (2, 2))"], 2, 3, 5, 4, tol="accumulate")
layer("GeneralConvTranspose", ["f(('NCHW', 'OIHW', 'NCHW'), 3, (2, 2))"], 2, 3, 5, 4,
      tol="accumulate")
layer("BatchNorm", ["f()", "f(axis=(0, 1), epsilon=0.1)", "f(center=False)", "f(scale=False)"],
      2, 3, 3, 2, tol="accumulate")
layer("MaxPool SumPool AvgPool", ["f((2, 2))", "f((2, 3), strides=(2, 1), padding='SAME')",
                                  "f((2,), spec='NCH') if 0 else f((1, 2), (1, 2))"], 2, 4, 5, 2,
      tol="accumulate")
layer("MaxPool SumPool AvgPool", ["f((2,), spec='NCH')"], 2, 3, 4)
layer("Tanh Relu Exp LogSoftmax Softmax Softplus Sigmoid Elu LeakyRelu Selu Gelu Identity Flatten",
      ["f"], 2, 3)
layer("serial", ["f(S.Dense(4), S.Tanh, S.Dense(2), S.LogSoftmax)"], 2, 3, tol="accumulate")
layer("FanOut FanInSum FanInConcat parallel",
      ["S.serial(S.FanOut(2), S.parallel(S.Dense(3), S.serial(S.Dense(3), S.Exp)), S.FanInSum)",
       "S.serial(S.FanOut(2), S.parallel(S.Identity, S.Tanh), S.FanInConcat(0))"], 2, 3,
      tol="accumulate")
layer("elementwise", ["f(jnp.sin)", "f(jnp.clip, max=0.5)"], 2, 3)
layer("shape_dependent", ["f(lambda s: S.Dense(s[-1]))"], 2, 3, tol="accumulate")
put("Dropout", (
    cases(S + "i, a = f(0.4); a((), x, rng=jax.random.key(3))",
          S + "i, a = f(0.4, mode='test'); a((), x, rng=jax.random.key(3))",
          S + "i, a = S.serial(f(0.4), f(0.7)); a([(), ()], x, rng=jax.random.key(3))",
          x=floats(3, 4))
    + case("f(0.4)[1]((), x)", x=floats(3), raises=True)), stax)
put("relu elu gelu leaky_relu log_softmax logsoftmax selu sigmoid softmax softplus standardize",
    case("f(x)", x=floats(2, 3), tol="accumulate"), stax)
put("glorot glorot_normal normal randn", case(f"f()({KEY}, (2, 3))", tol="loose"), stax)
put("ones zeros", check(f"f({KEY}, (2, 3))"), stax)

optimizers = "example_libraries.optimizers"
STEPS = ("i, u, g = {made}; p = {{'a': x, 'b': (x[0] * 2, jnp.outer(x, x))}}; s = i(p)\n"
         "for n in range(4): s = u(n, jax.tree.map(lambda v: jnp.sin(v) + n, g(s)), s)\ng(s)")
put("sgd adagrad rmsprop rmsprop_momentum adam adamax sm3", cases(
    STEPS.format(made="f(0.1)"), STEPS.format(made="f(lambda i: 0.3 / (1 + i))"),
    x=floats(3), grad=False, tol="accumulate"), optimizers)
put("momentum nesterov", case(STEPS.format(made="f(0.1, 0.9)"), x=floats(3), tol="accumulate"),
    optimizers)
put("adam adamax", case(STEPS.format(made="f(0.1, 0.8, 0.9, 1e-3)"), x=floats(3), grad=False,
                        tol="accumulate"), optimizers)
SGD = "o = jax.example_libraries.optimizers; i, u, g = o.sgd(0.1); "
put("optimizer", (
    case("i, u, g = f(lambda r: (lambda x: (x, {'n': 0.}), lambda i, g, s: (s[0] - r * g, {'n': "
         "s[1]['n'] + 1}), lambda s: s[0]))(0.5); g(u(0, {'a': x}, i({'a': x})))", x=floats(3))
    + cases(SGD + "u(0, {'b': x}, i({'a': x}))", x=floats(3), raises=True)), optimizers)
put("Optimizer OptimizerState JoinPoint", check("f.__name__", "[*getattr(f, '_fields', ())]"),
    optimizers)
put("unpack_optimizer_state", case(
    SGD.replace("sgd(0.1)", "momentum(0.1, 0.9)") + "t = f(i({'a': x})); (sorted(t), "
    "type(t['a']).__name__, t['a'].subtree)", x=floats(3)), optimizers)
put("pack_optimizer_state", case(
    SGD + "s = i({'a': x}); g(u(1, {'a': x}, f(o.unpack_optimizer_state(s))))", x=floats(3)),
    optimizers)
put("constant make_schedule", check("f(0.5)(3)"), optimizers)
put("make_schedule", check("f(lambda i: i)(3)") + check("f(jnp.ones(2))", raises=True), optimizers)
put("exponential_decay", check("f(0.5, 10, 0.9)(3)", "f(0.5, 10, 0.9)(jnp.int32(3))"), optimizers)
put("inverse_time_decay", check("f(0.5, 10, 0.9)(3)", "f(0.5, 2, 0.9, staircase=True)(3)"),
    optimizers)
put("polynomial_decay", check("f(0.5, 10, 0.1)(3)", "f(0.5, 10, 0.1, power=2)(30)"), optimizers)
put("piecewise_constant", check("[f([2, 5], [1., 2., 3.])(i) for i in (0, 2, 3, 5, 9)]")
    + check("f([2, 5], [1., 2.])", "f(2, [1.])", raises=True), optimizers)
put("l2_norm", case("f({'a': x, 'b': [y]})", x=floats(3), y=floats(2, 2), tol="accumulate"),
    optimizers)
put("clip_grads", cases("f([x, x[0]], 1.0)", "f([x], 100.0)", x=floats(3), tol="accumulate"),
    optimizers)
