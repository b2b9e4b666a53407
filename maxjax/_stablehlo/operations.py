"""What elementwise operations are called in StableHLO, by the names of kernels and primitives."""

from __future__ import annotations

BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "rem": "remainder",
    "max": "maximum", "min": "minimum", "pow": "power", "atan2": "atan2", "and": "and", "or": "or",
    "xor": "xor", "shift_left": "shift_left",
    "shift_right_arithmetic": "shift_right_arithmetic",
    "shift_right_logical": "shift_right_logical",
}
UNARY = {
    "neg": "negate", "abs": "abs", "sign": "sign", "ceil": "ceil", "floor": "floor",
    "round_half_even": "round_nearest_even", "round": "round_nearest_even",
    "round_half_away": "round_nearest_afz", "exp": "exponential",
    "expm1": "exponential_minus_one", "log": "log", "log1p": "log_plus_one", "sqrt": "sqrt",
    "rsqrt": "rsqrt", "cbrt": "cbrt", "logistic": "logistic", "sin": "sine", "cos": "cosine",
    "tan": "tan", "tanh": "tanh", "not": "not", "population_count": "popcnt",
    "clz": "count_leading_zeros",
}
# The operations of CHLO, the dialect that XLA expands; JAX writes them too.
CLIENT = {
    "acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atan": "atan",
    "atanh": "atanh", "bessel_i1e": "bessel_i1e", "cosh": "cosh", "digamma": "digamma",
    "erf": "erf", "erf_inv": "erf_inv", "erfc": "erfc", "lgamma": "lgamma", "sinh": "sinh",
    "nextafter": "next_after", "zeta": "zeta", "polygamma": "polygamma",
}
