"""The documentation of the operations that ``_elementwise.py`` makes without a ``def``."""

from __future__ import annotations

import textwrap

# Operations that one looks for together: each names the others. The last of each are those of
# jax.numpy, which promote and broadcast.
FAMILIES: tuple[tuple[str, ...], ...] = (
    ("add", "sub", "mul", "div", "rem", "neg", "jnp.add"),
    ("max", "min", "clamp", "jnp.maximum", "jnp.minimum"),
    ("exp", "exp2", "expm1", "log", "log1p", "log2", "pow", "jnp.exp", "jnp.log"),
    ("logistic", "tanh", "jax.nn.sigmoid"),
    ("square", "sqrt", "rsqrt", "cbrt", "integer_pow", "pow", "jnp.sqrt"),
    ("one_minus_square", "square"),
    ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "jnp.sin"),
    ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "jnp.tanh"),
    ("floor", "ceil", "round", "jnp.floor"),
    ("abs", "sign", "neg", "jnp.abs"),
    ("real", "imag", "conj", "complex", "jnp.real"),
    ("erf", "erfc", "erf_inv", "jax.scipy.special.erf"),
    ("lgamma", "digamma", "polygamma", "zeta", "igamma", "igammac", "jax.scipy.special.gammaln"),
    ("bessel_i0e", "bessel_i1e", "jax.scipy.special.i0e"),
    ("eq", "ne", "lt", "le", "gt", "ge", "jnp.equal"),
    ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "jnp.bitwise_and"),
    ("shift_left", "shift_right_arithmetic", "shift_right_logical", "jnp.left_shift"),
    ("population_count", "clz", "jnp.bitwise_count"),
    ("is_finite", "jnp.isfinite"),
    ("nextafter", "jnp.nextafter"),
    ("mulhi", "mul"),
)
_ARGUMENTS = {
    1: ["x: an array or number."],
    2: ["x, y: arrays of one dtype and of one rank, whose dimensions of size 1 are repeated; or "
        "numbers: a float beside floats, an int beside integers."],
}
_ACCURACY = "accuracy: accepted; all functions are as accurate as possible."
_ERRORS = {
    1: "TypeError: ``x`` is no array or number, or of a dtype that has no such function.",
    2: "TypeError: the dtypes differ, or have no such function; the shapes do not fit.",
}


def related(name: str) -> tuple[str, ...]:
    """The names that the documentation of an operation points to."""
    return next((tuple(other for other in family if other != name)
                 for family in FAMILIES if name in family), ())


def docstring(name: str, what: str, example: str, result: str, operands: int,
              results: str = "", accuracy: bool = False) -> str:
    """The documentation of an operation of one or two operands.

    Args:
      results: what its results are of; by default, of booleans if those of the example are, or else
        of the operands' dtype.
    """
    arguments = [*_ARGUMENTS[operands], *([_ACCURACY] if accuracy else [])]
    shape = "of the same shape" if operands == 1 else "of the common shape"
    dtype = results or ("of booleans" if result.endswith("dtype=bool)") else
                        "of the operands' dtype" if operands == 2 else "of the same dtype")
    parts = [what, "Args:\n" + "\n".join(map(_entry, arguments)),
             f"Returns:\n{_entry(f'An array {shape}, {dtype}.')}",
             f"Raises:\n{_entry(_ERRORS[operands])}"]
    if others := related(name):
        parts.append(textwrap.fill(
            f"See also: {', '.join(f'``{other}``' for other in others)}.", 96))
    return "\n\n".join([*parts, f">>> lax.{name}({example})\n{result}\n"])


def _entry(text: str) -> str:
    return textwrap.fill(text, 96, initial_indent="  ", subsequent_indent="    ")
