"""The methods and properties of jax.Array; those of jnp's functions by the same name are brief."""

from __future__ import annotations

from compat.spec import Case, array, bools, case, cases, check, floats, ints, matrix, shaped

TABLE: dict[str, list[Case]] = {}


def put(names: str, rows: list[Case]) -> None:
    for name in names.split():
        TABLE.setdefault(f"jax.Array.{name}", []).extend(rows)


# --- the same as a function ---
for _name in "sum prod mean max min all any std var ptp argmax argmin".split():
    _exact = "exact" if _name in ("max", "min", "all", "any", "argmax", "argmin") else "loose"
    put(_name, cases(f"x.{_name}()", f"x.{_name}(1)", f"x.{_name}(axis=0, keepdims=True)",
                     x=floats(3, 4, distinct=True), tol=_exact)
        + case(f"x.{_name}(0)", x=shaped(3, 2), dtypes="int8 bool complex64", modes="eager jit",
               raises=None, tol=_exact))
put("sum", cases("x.sum(dtype='int32')", "x.sum(0, where=x > 0)", "x.sum(initial=2)",
                 x=floats(3, 2), tol="accumulate"))
put("var", case("x.var(ddof=1)", x=floats(4), tol="loose"))
put("cumsum", cases("x.cumsum()", "x.cumsum(1)", x=floats(3, 2), tol="accumulate")
    + case("x.cumsum(0, dtype='float16')", x=floats(3, 2), tol="loose", modes="eager jit"))
put("cumprod", cases("x.cumprod()", "x.cumprod(1)", x=floats(3, 2), tol="accumulate"))
put("argpartition", cases("x.argpartition(2)[..., 2]", "x.argpartition(1, axis=0)[1]",
                          x=floats(3, 4, distinct=True)))
put("argsort", cases("x.argsort()", "x.argsort(0)", "x.argsort(axis=None)",
                     "x.argsort(descending=True)", x=floats(3, 4, distinct=True)))
put("sort", cases("x.sort()", "x.sort(0)", "x.sort(axis=None)", "x.sort(descending=True)",
                  x=floats(3, 4, distinct=True)))
put("searchsorted", cases("jnp.sort(x).searchsorted(y)", "jnp.sort(x).searchsorted(y, 'right')",
                          x=floats(5, distinct=True), y=floats(3)))
put("astype", cases("x.astype('float16')", "x.astype(int)", "x.astype(bool)",
                    "x.astype('complex64')", "x.astype(jnp.bfloat16)", x=shaped(3, 2),
                    dtypes="float32 int8", modes="eager jit grad")
    + case("x.astype('U3')", x=floats(2), raises=True))
put("choose", cases("i.choose([x, y])", "i.choose([x, y], mode='clip')", i=ints(4, high=1),
                    x=floats(4), y=floats(4), modes="jit eager"))
put("clip", cases("x.clip(0, 1)", "x.clip(max=1)", "x.clip()", x=floats(4)))
put("compress", cases("x.compress(np.array([True, False, True]), axis=0)",
                      "x.compress(np.array([True, False, True, True]))", x=floats(3, 2),
                      modes="eager grad")
    + case("x.compress(np.array([True, False, True]), axis=0, size=2)", x=floats(3, 2)))
put("conj conjugate", cases("x.conj()", "x.conjugate()", x=shaped(2, 2),
                            dtypes="complex64 float32"))
put("copy", case("x.copy()", x=shaped(2, 2), dtypes="float32 int32 bool"))
put("diagonal", cases("x.diagonal()", "x.diagonal(1)", x=floats(3, 3)))
put("dot", case("x.dot(y)", x=floats(2, 3), y=floats(3, 2), tol="accumulate"))
put("flatten", cases("x.flatten()", "x.flatten('F')", x=floats(2, 3)))
put("ravel", cases("x.ravel()", "x.ravel('F')", x=floats(2, 3)))
put("item", check("jnp.array(3).item()", "jnp.array([1.5]).item()", "jnp.arange(4).item(2)",
                  "jnp.arange(4).reshape(2, 2).item(1, 0)", "jnp.array(True).item()")
    + check("jnp.arange(2).item()", raises=True) + case("x.item()", x=floats(), raises=None,
                                                        modes="jit"))
put("nonzero", case("x.nonzero()", x=array([0, 3, 0, 4], "int32"), modes="eager")
    + case("x.nonzero(size=3, fill_value=9)", x=array([0, 3, 0, 4], "int32"), modes="eager jit"))
put("repeat", cases("x.repeat(2)", "x.repeat(2, axis=1)", x=floats(2, 3)))
put("reshape", cases("x.reshape(3, 2)", "x.reshape((3, -1))", "x.reshape(6, order='F')",
                     "x.reshape(-1)", x=floats(2, 3)) + case("x.reshape(4)", x=floats(2, 3),
                                                             raises=True))
put("round", cases("x.round()", "x.round(1)", x=floats(4)))
put("squeeze", cases("x.squeeze()", "x.squeeze(0)", "x.squeeze((0, 2))", x=floats(1, 3, 1))
    + case("x.squeeze(1)", x=floats(1, 3), raises=True))
put("swapaxes", case("x.swapaxes(0, 1)", x=floats(2, 3)))
put("take", cases("x.take(i)", "x.take(i, axis=1)", x=floats(2, 3), i=ints(2, high=1)))
put("trace", cases("x.trace()", "x.trace(1)", x=matrix(3, 3)))
put("transpose", cases("x.transpose()", "x.transpose(1, 0)", "x.transpose((1, 0))",
                       x=floats(2, 3)))
put("T", case("x.T", x=floats(2, 3, 4)))
put("mT", case("x.mT", x=floats(2, 3, 4)) + case("x.mT", x=floats(3), raises=True))
put("real imag", cases("x.real", "x.imag", x=shaped(3), dtypes="complex64 float32 int32",
                       modes="eager jit"))
put("view", (
    cases("x.view('int32')", "x.view('int8')", "x.view('uint16')", "x.view()",
          x=floats(2, 4), modes="eager jit vmap")
    + cases("x.view('float32')", "x.view('int64')", x=shaped(2, 4), dtypes="int8 int16",
            modes="eager jit", raises=None)
    + cases("x.view(bool)", "x.view('uint8')", "x.view('float16')", x=bools(2, 2),
            modes="eager jit", raises=None)
    + cases("x.view('complex64')", "x.view(jnp.bfloat16)", x=floats(2, 2), modes="eager jit",
            raises=None)
    + case("x.view('int8')", x=floats(), raises=True)
))
put("byteswap", case("x.byteswap()", x=shaped(3), dtypes="int16 int32 uint8 float16 bool",
                     modes="eager jit vmap"))
put("at", check("jnp.arange(3).at[1].get()", "jnp.arange(3).at[1].set(7)",
                "jnp.arange(3).at[1].add(7)"))

# --- operators ---
for _name, _symbol in {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//",
                       "mod": "%", "pow": "**"}.items():
    put(f"__{_name}__ __r{_name}__", (
        case(f"x {_symbol} y", x=floats(2, 3, low=0.5), y=floats(3, low=0.5))
        + cases(f"x {_symbol} 2", f"3 {_symbol} x", f"x {_symbol} np.float32(1.5)",
                f"np.float64(1.5) {_symbol} x", f"np.arange(1, 4) {_symbol} x",
                f"x {_symbol} np.arange(1, 4)", x=shaped(3, low=1, high=4),
                dtypes="float32 int32", modes="eager jit")
        + cases(f"x {_symbol} [1, 2, 3]", f"x {_symbol} None", f"'a' {_symbol} x"
                if _symbol not in "%*" else f"x {_symbol} 'a'", x=floats(3), raises=True)))
for _name, _symbol in {"and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>"}.items():
    put(f"__{_name}__ __r{_name}__", (
        cases(f"x {_symbol} y", f"x {_symbol} 2", f"3 {_symbol} x", f"np.int8(1) {_symbol} x",
              x=ints(3, high=6), y=ints(2, 3, high=6))
        + case(f"x {_symbol} 1.5", x=ints(3), raises=True)))
for _name, _symbol in {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">",
                       "ge": ">="}.items():
    put(f"__{_name}__", (
        cases(f"x {_symbol} y", f"x {_symbol} 2", f"3 {_symbol} x", f"np.arange(3) {_symbol} x",
              x=shaped(3), y=shaped(2, 3), dtypes="float32 int32", modes="eager jit vmap")
        + case(f"x {_symbol} None", x=floats(3), raises=None, modes="eager")
        + case(f"x {_symbol} 'a'", x=floats(3), raises=None, modes="eager")
        + case(f"x {_symbol} [1, 2, 3]", x=floats(3), raises=True)))
put("__divmod__ __rdivmod__", cases("divmod(x, 2)", "divmod(7, x)", "divmod(x, x[::-1])",
                                    x=shaped(3, low=1, high=4), dtypes="float32 int32",
                                    modes="eager jit"))
put("__matmul__ __rmatmul__", cases("x @ y", "np.ones((3, 2), 'float32') @ x", x=floats(2, 3),
                                    y=floats(3, 2), tol="accumulate")
    + cases("x @ 2", "x @ [1, 2, 3]", x=floats(3), raises=True))
put("__abs__", case("abs(x)", x=shaped(3), dtypes="float32 int32 complex64"))
put("__neg__", case("-x", x=shaped(3), dtypes="float32 int32 uint8"))
put("__pos__", case("+x", x=shaped(3), dtypes="float32 int32"))
put("__invert__", case("~x", x=shaped(3), dtypes="bool int32") + case("~x", x=floats(3),
                                                                      raises=True))
put("__round__", check("round(jnp.array(2.5))", "round(jnp.array([1.26, 2.74]), 1)",
                       "round(jnp.array(3))", "round(jnp.array([1.5, 2.5]))"))
put("__pow__", cases("x ** 2", "x ** 0", "x ** -1", "x ** 0.5", x=floats(3, low=0.5)))
put("__getitem__", cases("x[0]", "x[-1, 1:]", "x[..., None]", "x[i]", "x[:, ::-1]", "x[1]",
                         x=floats(3, 4),
                         i=ints(2, high=2)))
put("__setitem__", check("jnp.arange(3).__setitem__(0, 1)", raises="immutable"))
put("__contains__", check("2 in jnp.arange(3)", "7 in jnp.arange(3)")
    + check("2 in jnp.ones((2, 2))", "2 in jnp.ones(())", "jnp.ones(1) in jnp.ones(2)",
            raises=True))
put("__iter__", check("list(jnp.arange(3))", "[r.shape for r in jnp.ones((2, 3))]",
                      "list(reversed(jnp.arange(3)))", "a, b = jnp.arange(2); b",
                      "dict(zip('ab', jnp.arange(2)))['b']")
    + check("iter(jnp.ones(()))", raises=True)
    + case("sum(row * i for i, row in enumerate(x))", x=floats(3, 2)))
put("__len__", check("len(jnp.ones((3, 2)))") + check("len(jnp.ones(()))", raises=True))

# --- conversions ---
put("__bool__", check("bool(jnp.array(2.0))", "bool(jnp.zeros(1))", "not jnp.array(0)",
                      "1 if jnp.array(True) else 2")
    + check("bool(jnp.ones(2))", "bool(jnp.ones(0))", raises=True)
    + case("1 if x > 0 else 2", x=floats(), raises=None, modes="jit"))
put("__float__", check("float(jnp.array(2))", "float(jnp.array(2.5))", "float(jnp.array(True))")
    + check("float(jnp.ones(1))", "float(jnp.array(1j))", raises=True)
    + case("float(x)", x=floats(), modes="jit", raises=None)
    + case("float(x)", x=floats(2), modes="jit", raises=None))
put("__int__", check("int(jnp.array(2.7))", "int(jnp.array(3))") + check("int(jnp.ones(2))",
                                                                        raises=True)
    + case("int(x)", x=floats(), modes="jit", raises=None))
put("__complex__", check("complex(jnp.array(2))", "complex(jnp.array(1j))")
    + check("complex(jnp.ones(2))", raises=True))
put("__index__", check("[1, 2, 3][jnp.array(1)]", "list(range(jnp.array(3)))",
                       "np.arange(4)[jnp.array(2)]")
    + check("[1, 2][jnp.array(1.0)]", "[1, 2][jnp.array([1])]", "[1][jnp.array(0.0)]",
            raises=True)
    + case("[1, 2, 3][x]", x=ints(high=1), modes="jit", raises=None))
put("__hex__ __oct__", check("jnp.array(10).__hex__()", "jnp.array(10).__oct__()",
                             "hex(jnp.array(10))", "oct(jnp.array(10))", "bin(jnp.array(10))")
    + check("jnp.arange(3).__hex__()", "jnp.array(1.0).__oct__()", raises=True))
put("__array__", check(
    "np.asarray(jnp.arange(3))", "np.array(jnp.arange(3), 'float64')",
    "np.asarray(jnp.ones(2, 'bfloat16')).dtype", "np.asarray(jnp.arange(3)).flags.writeable",
    "np.array(jnp.arange(3)).flags.writeable", "np.add(jnp.ones(2), np.ones(2))",
    "np.add(np.ones(2), jnp.ones(2))", "np.sin(jnp.ones(2))", "np.sum(jnp.ones(3))",
    "np.multiply.outer(jnp.ones(2), jnp.ones(2))", "np.concatenate([jnp.ones(2), np.ones(1)])",
    "np.linalg.norm(jnp.ones(2))", "np.mean(jnp.ones((2, 3)), axis=0)",
    "np.stack([jnp.ones(2), jnp.zeros(2)])", "np.where(jnp.array([True, False]), 1, 2)",
    "np.max(jnp.arange(3))", "np.arange(3) + jnp.arange(3)", "np.float32(2) * jnp.ones(2)",
    "np.float64(2) + jnp.float32(1)", "np.bool_(True) & jnp.array([True])",
    "np.int8(1) + jnp.array(1, 'int8')", "np.zeros(2) == jnp.zeros(2)",
    "np.allclose(jnp.ones(2), 1)", "np.asarray([jnp.array(1.0), jnp.array(2.0)])")
    + case("np.asarray(x)", x=floats(2), modes="jit", raises=None)
    + case("np.sin(x)", x=floats(2), modes="jit", raises=None))
put("__array_priority__", check(
    "jnp.ones(2).__array_priority__",
    "jax.eval_shape(lambda x: jnp.zeros(x.__array_priority__), 1.)"))
put("__array_namespace__", check("jnp.ones(2).__array_namespace__().__name__.split('.')[1]",
                                 "jnp.ones(2).__array_namespace__() is jnp")
    + check("jnp.ones(2).__array_namespace__(api_version='1900')", raises=None))
put("__numpy_dtype__", check("jnp.ones(2).__numpy_dtype__"))
put("__dlpack__ __dlpack_device__", check(
    "np.from_dlpack(jnp.arange(3))", "tuple(jnp.arange(3).__dlpack_device__())[1]",
    "jnp.from_dlpack(jnp.arange(3))", "jnp.from_dlpack(np.arange(3, dtype='int32'))"))
put("__hash__", check("jnp.ones(2).__hash__ is None or True") + check("hash(jnp.ones(2))",
                                                                     raises=True))
put("__copy__ __deepcopy__", check("import copy\ncopy.copy(jnp.arange(3))",
                                   "import copy\ncopy.deepcopy(jnp.arange(3))",
                                   "import copy\ncopy.deepcopy({'a': jnp.float32(1)})['a']"))
put("__reduce__", check("import pickle\npickle.loads(pickle.dumps(jnp.arange(3)))",
                        "import pickle\npickle.loads(pickle.dumps(jnp.ones(2, 'bfloat16')))",
                        "import pickle\npickle.loads(pickle.dumps(jnp.array(1) * 1))",
                        "import pickle\npickle.loads(pickle.dumps(jnp.asarray(2.0))).weak_type"))
put("__format__", check(
    "f'{jnp.float32(1.5):.3f}'", "f'{jnp.array(3):05d}'", "f'{jnp.arange(3)}'",
    "format(jnp.array(1.5), '')", "'{:.1e}'.format(jnp.float32(12345))", "f'{jnp.array(2.5)}'",
    "f'{jnp.array(True)}'", "'%d' % jnp.array(3)", "'%.2f' % jnp.array(3.14159)")
    + check("f'{jnp.arange(3):.2f}'", raises=True))
put("tolist", check("jnp.arange(4).reshape(2, 2).tolist()", "jnp.array(1.5).tolist()",
                    "jnp.ones(2, 'bfloat16').tolist()", "jnp.array([True]).tolist()")
    + case("x.tolist()", x=floats(2), modes="jit", raises=None))
put("tobytes", check("jnp.arange(3, dtype='int16').tobytes()",
                     "jnp.arange(4).reshape(2, 2).tobytes('F')")
    + case("x.tobytes()", x=floats(2), modes="jit", raises=None))

# --- what an array knows of itself ---
put("shape dtype ndim size itemsize nbytes weak_type aval", check(
    "jnp.ones((2, 3)).shape", "jnp.ones(2, 'int8').dtype", "jnp.ones((2, 3)).ndim",
    "jnp.ones((2, 3)).size", "jnp.ones(2, 'bfloat16').itemsize", "jnp.ones((2, 3)).nbytes",
    "jnp.asarray(1.0).weak_type", "jnp.ones(2).weak_type", "(jnp.ones(2) * 2).weak_type",
    "str(jnp.ones((2, 3)).aval)", "jnp.arange(3).aval.shape")
    + case("jnp.zeros(x.shape, x.dtype) + x.ndim + x.size + x.nbytes + x.itemsize",
           x=floats(2, 3), modes="jit vmap"))
put("device devices platform committed sharding", check(
    "str(jnp.ones(2).device)", "repr(jnp.ones(2).device)", "len(jnp.ones(2).devices())",
    "jnp.ones(2).platform()", "jnp.ones(2).committed", "repr(jnp.ones(2).sharding)",
    "jax.device_put(jnp.ones(2), jax.devices()[0]).committed",
    "(jax.device_put(jnp.ones(2), jax.devices()[0]) + 1).committed",
    "jnp.ones(2).to_device(jax.devices()[0])", "jnp.ones(2).sharding.device_set"))
put("to_device", check("jnp.ones(2).to_device(jax.devices('cpu')[0])"))
put("addressable_shards global_shards addressable_data", check(
    "len(jnp.arange(3).addressable_shards)", "jnp.arange(3).addressable_shards[0].data",
    "jnp.arange(3).addressable_shards[0].index", "jnp.arange(3).global_shards[0].replica_id",
    "repr(jnp.arange(3).addressable_shards[0])", "jnp.arange(3).addressable_data(0)",
    "jnp.ones(()).addressable_shards[0].index"))
put("is_fully_addressable is_fully_replicated is_ready is_deleted", check(
    "jnp.ones(2).is_fully_addressable", "jnp.ones(2).is_fully_replicated",
    "jnp.ones(2).block_until_ready().is_ready()", "jnp.ones(2).is_deleted()",
    "x = jnp.ones(2); x.delete(); x.is_deleted()"))
put("delete", check("x = jnp.ones(2); x.delete(); x.shape", "x = jnp.ones(2); x.delete()")
    + check("x = jnp.ones(2); x.delete(); x + 1", "x = jnp.ones(2); x.delete(); np.asarray(x)",
            "x = jnp.ones(2); x.delete(); x.tolist()", raises="deleted"))
put("block_until_ready copy_to_host_async clone", check(
    "jnp.arange(3).block_until_ready()", "jnp.arange(3).copy_to_host_async()",
    "jnp.arange(3).clone()"))
put("on_device_size_in_bytes unsafe_buffer_pointer", check(
    "jnp.arange(3).on_device_size_in_bytes()", "jnp.arange(3).unsafe_buffer_pointer() > 0"))
put("device_buffer device_buffers", check("jnp.ones(2).device_buffer", raises=True)
    + check("jnp.ones(2).device_buffers", raises=True))
put("flat", check("jnp.ones(2).flat", raises="flatten"))
for _name in ("addressable_data(0)", "addressable_shards", "block_until_ready()", "clone()",
              "committed", "copy_to_host_async()", "delete()", "device", "device_buffer",
              "devices()", "flat", "global_shards", "is_deleted()", "is_fully_addressable",
              "is_fully_replicated", "is_ready()", "on_device_size_in_bytes()", "platform()",
              "unsafe_buffer_pointer()"):
    put(_name.removesuffix("()").removesuffix("(0)"),
        case(f"x.{_name}", x=floats(2), modes="jit", raises=None))
