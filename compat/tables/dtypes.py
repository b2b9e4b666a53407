"""Dtypes: the scalar types, what is asked of dtypes, and constants."""

from __future__ import annotations

from compat.spec import Case, case, check, constant, scalar_type, shaped

TABLE: dict[str, list[Case]] = {}
SMALL = ("float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 "
         "float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn int2 int4 uint2 uint4")
WIDE = ("float64 double float_ int64 int_ uint uint64 complex128 cdouble complex_")
PLAIN = ("float32 single float16 bfloat16 int8 int16 int32 uint8 uint16 uint32 complex64 csingle "
         "bool bool_")
ABSTRACT = ("generic number inexact integer floating complexfloating signedinteger "
            "unsignedinteger flexible character")


def put(names: str, rows: list[Case]) -> None:
    for name in names.split():
        TABLE.setdefault(f"jax.numpy.{name}", []).extend(rows)


put(f"{PLAIN} {SMALL}", scalar_type())
put(WIDE, check("f.dtype", "repr(f)", "f(1)", "jnp.zeros(2, f)", "f == jnp.dtype(f)")
    + check("f(1)", "f([1, 2])", "jnp.zeros(2, f)", x64=True))
put("float6_e2m3fn float6_e3m2fn int1 uint1", check(
    "f.dtype", "repr(f)", "jnp.dtype(f)", "jnp.issubdtype(f, jnp.number)",
    "jnp.issubdtype(f, jnp.floating)", "jnp.isdtype(f, 'integral')",
    "jnp.isdtype(f, 'real floating')", "jnp.promote_types(f, f)"))
put("float6_e2m3fn float6_e3m2fn", check("f(1)", raises=True))
put(PLAIN, check("f(True)", "f(np.int8(2))", "f([[1, 0]])", "f(jnp.arange(2))", "f('1')",
                 raises=None)
    + check("f(None)", raises=None)
    + case("f(x)", x=shaped(3), dtypes="float32 int32 bool", modes="eager jit vmap",
           raises=None))
put(ABSTRACT, check("f", "jnp.issubdtype(jnp.float32, f)", "jnp.issubdtype(jnp.bfloat16, f)",
                    "jnp.issubdtype(jnp.int4, f)", "jnp.issubdtype(jnp.uint8, f)",
                    "jnp.issubdtype(jnp.complex64, f)", "jnp.issubdtype(jnp.bool_, f)",
                    "jnp.issubdtype(f, jnp.generic)"))
put("object_", check("f is np.object_") + check("jnp.zeros(2, f)", "jnp.array([1], f)",
                                                raises=True))
put("dtype", check("f('float32')", "f(jnp.float32)", "f(jnp.bfloat16)", "f(int)", "f is np.dtype")
    + check("f('nonsense')", raises=True))
put("ComplexWarning", check("f.__name__", "issubclass(f, UserWarning)"))
put("e euler_gamma inf nan newaxis", constant())
put("pi", check("type(f)", "f * jnp.ones(2)"))
put("__array_api_version__", check("f"))
put("__array_namespace_info__", check(
    "f().capabilities()", "f().default_dtypes()", "sorted(f().dtypes())",
    "sorted(f().dtypes(kind='integral'))", "sorted(f().dtypes(kind=('bool', 'real floating')))",
    "f().default_device()", "f().devices()[0]", "len(f().devices())")
    + check("sorted(f().dtypes())", "f().default_dtypes()", x64=True)
    + check("f().dtypes(kind='none')", raises=True))

put("finfo", (
    [row for name in ("float16", "bfloat16", "float32", "float64", "complex64", "float8_e4m3fn",
                      "float8_e5m2", "float4_e2m1fn")
     for row in check(*(f"f({name!r}).{field}" for field in (
         "bits", "eps", "min", "tiny", "smallest_normal", "smallest_subnormal",
         "precision", "resolution", "nmant", "nexp", "machep", "dtype")))]
    + check("f('float16').max", "f('float64').max", "f(jnp.ones(2)).max", "f(float).bits",
            "f(1.0).max", "str(f(jnp.float32))", raises=None)
    + check("f('int32')", "f('bool')", raises=True)))
put("iinfo", (
    [row for name in ("int8", "uint8", "int16", "int32", "uint32", "int64", "int4", "uint2")
     for row in check(*(f"f({name!r}).{field}" for field in ("min", "max", "bits", "dtype")))]
    + check("repr(f('int8'))", "f(jnp.int32).kind", "f(int).max", "f(jnp.array(3)).max",
            "f(3).max", raises=None)
    + check("f(jnp.float32)", raises=True)))
put("issubdtype", check(
    "f('float32', 'float32')", "f('float32', jnp.floating)", "f('bfloat16', np.floating)",
    "f(jnp.bfloat16, jnp.inexact)", "f('int4', jnp.signedinteger)", "f(int, jnp.integer)",
    "f(float, float)", "f('float32', float)", "f('int32', int)", "f(bool, jnp.integer)",
    "f(jnp.integer, jnp.number)", "f(jnp.number, jnp.integer)", "f('float8_e4m3fn', 'bfloat16')",
    "f(np.float32, 'float16')", "f(jnp.ones(2).dtype, jnp.floating)", "f('U3', np.character)",
    "f(np.dtype('datetime64[s]'), np.generic)"))
put("isdtype", check(
    "f('int8', 'integral')", "f('uint8', 'signed integer')", "f('float32', ('bool', 'numeric'))",
    "f('bfloat16', 'real floating')", "f('complex64', 'numeric')", "f('bool', 'bool')",
    "f('int4', 'integral')", "f('float32', 'float32')", "f('float32', (jnp.float32, 'bool'))",
    "f(jnp.float32, jnp.float16)", "f('float32', ('integral', ('bool',)))", raises=None)
    + check("f('int8', 'nonsense')", "f('int8', 3)", raises=None))
_dtypes = ("bool", "int8", "uint8", "int32", "uint32", "float16", "bfloat16", "float32",
           "complex64", "int64", "float64", "int4", "float8_e4m3fn")
put("promote_types", (
    [row for i, a in enumerate(_dtypes) for b in _dtypes[i::3]
     for row in check(f"f({a!r}, {b!r})", raises=None)]
    + check("f(int, 'int8')", "f(float, 'int32')", "f('bfloat16', complex)", "f(int, float)",
            "f('float32', None)", "f(bool, int)", raises=None)))
put("result_type", check(
    "f(1, 'int8')", "f(1.0, 'int8')", "f('bfloat16', 'float16')", "f(jnp.ones(2), 1j)",
    "f(np.float64(1), jnp.ones(2))", "f(1, 2.0)", "f(True)", "f(jnp.asarray(1.0), 'bfloat16')",
    "f('float32', 'complex64', 'int8')", "f(int)", "f([1, 2])", "f(None)", "f()",
    "f(np.arange(2), 3)", "f(jnp.int4, jnp.int4)", "f('float64')", raises=None)
    + check("f(1, 2.0)", "f('int32', 'float32')", "f(np.float64(1), jnp.ones(2))", x64=True))
put("can_cast", check(
    "f('int32', 'float64')", "f('float32', 'int32')", "f('float32', 'int32', 'unsafe')",
    "f('float32', 'float16', 'same_kind')", "f('bool', 'int8')", "f(jnp.ones(2), 'float64')",
    "f('bfloat16', 'float32')", "f('int8', 'bfloat16')", "f(1, 'int8')", "f('int32', 'nope')",
    raises=None))
