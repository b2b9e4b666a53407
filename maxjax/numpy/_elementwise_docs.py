"""The documentation of the functions that ``_elementwise.py`` makes without a ``def``."""

from __future__ import annotations

import textwrap

# name: (summary, an example, its output)
EXAMPLES: dict[str, tuple[str, str, str]] = {
    # --- exponentials and powers ---
    "exp": ("e to the power of each element.",
            "jnp.exp(jnp.array([0, 1])).round(3)", "Array([1.       , 2.7180002], dtype=float32)"),
    "log2": ("The logarithm to base 2 of each element.",
             "jnp.log2(jnp.array([1, 8, 0.25]))", "Array([ 0.,  3., -2.], dtype=float32)"),
    "exp2": ("2 to the power of each element.",
             "jnp.exp2(jnp.array([3., -1.]))", "Array([8. , 0.5], dtype=float32)"),
    "expm1": ("exp(x) - 1, also exact for small x.",
              "float(jnp.expm1(1e-10)), float(jnp.exp(1e-10) - 1)",
              "(1.000000013351432e-10, 0.0)"),
    "log": ("The natural logarithm: NaN below 0, -inf at 0.",
            "jnp.log(jnp.array([1., 0., -1.]))", "Array([  0., -inf,  nan], dtype=float32)"),
    "log1p": ("log(1 + x), also exact for small x.",
              "float(jnp.log1p(1e-10)), float(jnp.log(1 + 1e-10))",
              "(1.000000013351432e-10, 0.0)"),
    "sqrt": ("The non-negative square root: NaN for negative real numbers.",
             "jnp.sqrt(jnp.array([4., -1.])), jnp.sqrt(-1 + 0j)",
             "(Array([ 2., nan], dtype=float32), Array(0.+1.j, dtype=complex64, weak_type=True))"),
    "cbrt": ("The cube root, also of negative numbers.",
             "jnp.cbrt(jnp.array([-8., 27.]))", "Array([-2.,  3.], dtype=float32)"),
    # --- trigonometry ---
    "sin": ("The sine of angles in radians.",
            "jnp.sin(jnp.array([0., jnp.pi / 2]))", "Array([0., 1.], dtype=float32)"),
    "cos": ("The cosine of angles in radians.",
            "jnp.cos(jnp.array([0., jnp.pi]))", "Array([ 1., -1.], dtype=float32)"),
    "tan": ("The tangent of angles in radians.",
            "jnp.tan(jnp.array([0., jnp.pi / 4]))", "Array([0., 1.], dtype=float32)"),
    "arcsin": ("The angle in [-pi/2, pi/2] with this sine; NaN outside [-1, 1].",
               "jnp.arcsin(jnp.array([0., 1., 2.]))",
               "Array([0.       , 1.5707964,       nan], dtype=float32)"),
    "arccos": ("The angle in [0, pi] with this cosine; NaN outside [-1, 1].",
               "jnp.arccos(jnp.array([1., -1., 2.]))",
               "Array([0.       , 3.1415927,       nan], dtype=float32)"),
    "arctan": ("The angle in (-pi/2, pi/2) with this tangent.",
               "jnp.arctan(jnp.array([1., jnp.inf]))",
               "Array([0.7853982, 1.5707964], dtype=float32)"),
    "arctan2": ("The angle of the point with ordinate ``x1`` and abscissa ``x2``, in [-pi, pi].",
                "jnp.arctan2(jnp.array([1., -1.]), -1.)",
                "Array([ 2.3561945, -2.3561945], dtype=float32)"),
    "sinh": ("The hyperbolic sine.",
             "jnp.sinh(jnp.array([0., 1.]))", "Array([0.       , 1.1752012], dtype=float32)"),
    "cosh": ("The hyperbolic cosine.",
             "jnp.cosh(jnp.array([0., 1.])).round(3)",
             "Array([1.       , 1.5430001], dtype=float32)"),
    "tanh": ("The hyperbolic tangent.",
             "jnp.tanh(jnp.array([0., 1., 20.]))",
             "Array([0.       , 0.7615942, 1.       ], dtype=float32)"),
    "arcsinh": ("The inverse hyperbolic sine.",
                "jnp.arcsinh(jnp.array([0., 1.]))",
                "Array([0.       , 0.8813736], dtype=float32)"),
    "arccosh": ("The inverse hyperbolic cosine; NaN below 1.",
                "jnp.arccosh(jnp.array([1., 2., 0.])).round(3)",
                "Array([0.   , 1.317,   nan], dtype=float32)"),
    "arctanh": ("The inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond.",
                "jnp.arctanh(jnp.array([0.5, 1., 2.]))",
                "Array([0.54930615,        inf,        nan], dtype=float32)"),
    # --- arithmetic ---
    "add": ("The sum; for booleans, the disjunction.",
            "jnp.add(jnp.array([1, 2]), jnp.array([[0.5], [0.]]))",
            "Array([[1.5, 2.5],\n           [1. , 2. ]], dtype=float32)"),
    "subtract": ("The difference ``x - y``; TypeError for booleans.",
                 "jnp.subtract(jnp.uint8(1), jnp.uint8(2))", "Array(255, dtype=uint8)"),
    "multiply": ("The product; for booleans, the conjunction.",
                 "jnp.multiply(jnp.array([1, 2]), jnp.array([[3], [4]]))",
                 "Array([[3, 6],\n           [4, 8]], dtype=int32)"),
    "divide": ("The quotient ``x1 / x2``, in floats.",
               "jnp.divide(jnp.array([1, 0, -1]), 0)",
               "Array([ inf,  nan, -inf], dtype=float32)"),
    "negative": ("The negated number; TypeError for booleans.",
                 "jnp.negative(jnp.array([1., -2.]))", "Array([-1.,  2.], dtype=float32)"),
    "sign": ("-1, 0 or 1, with the dtype of the argument; x / |x| for complex numbers.",
             "jnp.sign(jnp.array([-3., 0., 5.]))", "Array([-1.,  0.,  1.], dtype=float32)"),
    "floor": ("The greatest integer not above each element, in the same dtype.",
              "jnp.floor(jnp.array([1.7, -1.2]))", "Array([ 1., -2.], dtype=float32)"),
    "ceil": ("The least integer not below each element, in the same dtype.",
             "jnp.ceil(jnp.array([1.2, -1.7]))", "Array([ 2., -1.], dtype=float32)"),
    "maximum": ("The greater element; NaN if either is NaN.",
                "jnp.maximum(jnp.array([1., 5., jnp.nan]), 3.)",
                "Array([ 3.,  5., nan], dtype=float32)"),
    "minimum": ("The lesser element; NaN if either is NaN.",
                "jnp.minimum(jnp.array([1., 5., jnp.nan]), 3.)",
                "Array([ 1.,  3., nan], dtype=float32)"),
    "nextafter": ("The next float after ``x`` towards ``y``.",
                  "float(jnp.nextafter(jnp.float32(1), 2))", "1.0000001192092896"),
    # --- comparison ---
    "equal": ("Whether the elements are equal; NaN equals nothing.",
              "jnp.equal(jnp.array([1., jnp.nan]), jnp.array([1., jnp.nan]))",
              "Array([ True, False], dtype=bool)"),
    "not_equal": ("Whether the elements differ; NaN differs from everything.",
                  "jnp.not_equal(jnp.array([1., jnp.nan]), jnp.array([1., jnp.nan]))",
                  "Array([False,  True], dtype=bool)"),
    "less": ("Whether ``x < y``; complex numbers by real part, then by imaginary part.",
             "jnp.less(jnp.array([1, 2, 3]), 2)", "Array([ True, False, False], dtype=bool)"),
    "less_equal": ("Whether ``x <= y``; complex numbers by real part, then by imaginary part.",
                   "jnp.less_equal(jnp.array([1, 2, 3]), 2)",
                   "Array([ True,  True, False], dtype=bool)"),
    "greater": ("Whether ``x > y``; complex numbers by real part, then by imaginary part.",
                "jnp.greater(jnp.array([1, 2, 3]), 2)",
                "Array([False, False,  True], dtype=bool)"),
    "greater_equal": ("Whether ``x >= y``; complex numbers by real part, then by imaginary part.",
                      "jnp.greater_equal(jnp.array([1, 2, 3]), 2)",
                      "Array([False,  True,  True], dtype=bool)"),
    # --- bits and truth ---
    "bitwise_and": ("The bits set in both. Integers and booleans.",
                    "jnp.bitwise_and(jnp.array([6, 5]), 3)", "Array([2, 1], dtype=int32)"),
    "bitwise_or": ("The bits set in either. Integers and booleans.",
                   "jnp.bitwise_or(jnp.array([6, 5]), 3)", "Array([7, 7], dtype=int32)"),
    "bitwise_xor": ("The bits in which the two differ. Integers and booleans.",
                    "jnp.bitwise_xor(jnp.array([6, 5]), 3)", "Array([5, 6], dtype=int32)"),
    "bitwise_not": ("Every bit flipped; for booleans, the negation.",
                    "jnp.bitwise_not(jnp.array([0, 5]))", "Array([-1, -6], dtype=int32)"),
    "invert": ("Every bit flipped; for booleans, the negation.",
               "jnp.invert(jnp.array([True, False]))", "Array([False,  True], dtype=bool)"),
    "bitwise_invert": ("Every bit flipped; for booleans, the negation.",
                       "jnp.bitwise_invert(jnp.uint8(5))", "Array(250, dtype=uint8)"),
    "left_shift": ("The bits of ``x`` shifted left by ``y``: ``x * 2**y``.",
                   "jnp.left_shift(jnp.array([1, 2]), 3)", "Array([ 8, 16], dtype=int32)"),
    "logical_and": ("Whether both are nonzero.",
                    "jnp.logical_and(jnp.array([0, 1, 2]), True)",
                    "Array([False,  True,  True], dtype=bool)"),
    "logical_or": ("Whether either is nonzero.",
                   "jnp.logical_or(jnp.array([0, 1, 2]), False)",
                   "Array([False,  True,  True], dtype=bool)"),
    "logical_xor": ("Whether exactly one is nonzero.",
                    "jnp.logical_xor(jnp.array([0, 1, 2]), True)",
                    "Array([ True, False, False], dtype=bool)"),
    # --- angles ---
    "degrees": ("Angles in radians, as degrees.",
                "jnp.degrees(jnp.array([jnp.pi, 1.]))",
                "Array([180.     ,  57.29578], dtype=float32)"),
    "rad2deg": ("Angles in radians, as degrees.",
                "jnp.rad2deg(jnp.pi / 2)", "Array(90., dtype=float32, weak_type=True)"),
    "radians": ("Angles in degrees, as radians.",
                "jnp.radians(jnp.array([180., 90.]))",
                "Array([3.1415927, 1.5707964], dtype=float32)"),
    "deg2rad": ("Angles in degrees, as radians.",
                "jnp.deg2rad(180)", "Array(3.1415927, dtype=float32, weak_type=True)"),
}

# Functions that one looks for together: each names the others.
FAMILIES: tuple[tuple[str, ...], ...] = (
    ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "power"),
    ("sqrt", "cbrt", "square", "power", "lax.rsqrt"),
    ("sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "sinc"),
    ("sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh"),
    ("floor", "ceil", "trunc", "rint", "round"),
    ("sign", "abs", "copysign", "signbit"),
    ("add", "subtract", "multiply", "divide", "negative", "sum"),
    ("divide", "true_divide", "floor_divide", "remainder", "reciprocal", "add", "subtract",
     "multiply"),
    ("maximum", "minimum", "fmax", "fmin", "clip", "max", "min"),
    ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "array_equal",
     "isclose"),
    ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "left_shift", "right_shift"),
    ("logical_and", "logical_or", "logical_xor", "logical_not", "all", "any"),
    ("logaddexp", "logaddexp2", "jax.scipy.special.logsumexp"),
    ("degrees", "radians", "rad2deg", "deg2rad", "angle"),
    ("nextafter", "spacing"),
    # The names of the array API, and others that are said twice.
    ("asin", "acos", "atan", "atan2", "sin", "cos", "tan"),
    ("asinh", "acosh", "atanh", "sinh", "cosh", "tanh"),
    ("invert", "bitwise_invert", "bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor"),
    ("bitwise_left_shift", "bitwise_right_shift", "left_shift"),
)
# Whose results are booleans.
PREDICATES = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
              "logical_and", "logical_or", "logical_xor")

_ARGUMENTS = {
    (1, True): "x: an array or scalar; integers and booleans become floats.",
    (1, False): "x: an array or scalar.",
    (2, True): "{0}, {1}: arrays or scalars of shapes that broadcast; integers become floats.",
    (2, False): "{0}, {1}: arrays or scalars of shapes that broadcast, promoted to one dtype.",
}
_SHAPES = {1: "of the same shape", 2: "of the common shape"}


def _result(name: str, count: int, inexact: bool) -> str:
    if name in PREDICATES:
        return f"An array of booleans {_SHAPES[count]}."
    if inexact:
        return (f"An array {_SHAPES[count]}, of a float or complex dtype; of the default float for "
                "integers.")
    return f"An array {_SHAPES[count]}{' and' if count == 1 else ', of the promoted'} dtype."


def related(name: str) -> tuple[str, ...]:
    """The names that the documentation of a function points to."""
    return next((tuple(other for other in family if other != name)
                 for family in FAMILIES if name in family), ())


def docstring(name: str, parameters: tuple[str, ...], inexact: bool) -> str | None:
    """The documentation of a function in ``EXAMPLES``; None for any other."""
    if name not in EXAMPLES:
        return None
    summary, example, result = EXAMPLES[name]
    arguments = _ARGUMENTS[len(parameters), inexact].format(*parameters)
    others = related(name)
    pointers = textwrap.fill(", ".join(f"``{other}``" for other in others), 84)
    see = "\n    See also: " + pointers.replace("\n", "\n    ") + ".\n" if others else ""
    shapes = "" if len(parameters) == 1 else ", or the shapes do not broadcast"
    return f"""{summary}

    Args:
      {arguments}

    Returns:
      {_result(name, len(parameters), inexact)}

    Raises:
      TypeError: an argument is no array or number, or of a dtype that has no such
        function{shapes}.
{see}
    >>> {example}
    {result}
    """
