"""Exponentials, logarithms, trigonometric and hyperbolic functions, roots, special functions."""

from __future__ import annotations

import numpy as np

from maxjax._base import dtypes
from maxjax._primitives.arithmetic import INEXACT, constant, div, mul, neg, square, sub
from maxjax._primitives.builders import elementwise
from maxjax._primitives.rules import kernel, native


def _unary(name, function, jvp, lower=None):
    def specialize(in_avals, params, out_avals):
        return function if in_avals[0].dtype in dtypes.FLOATS else None
    return elementwise(name, accepts=INEXACT, evaluate=function, specialize=specialize,
                       lower=lower or kernel(name), jvp=jvp)


exp_p = _unary("exp", np.exp, lambda t, x, out: mul(t, out))
log_p = _unary("log", np.log, lambda t, x, out: div(t, x))
sin_p = _unary("sin", np.sin, lambda t, x, out: mul(t, cos_p.bind(x)), native("sin"))
cos_p = _unary("cos", np.cos, lambda t, x, out: neg(mul(t, sin_p.bind(x))), native("cos"))
tanh_p = _unary("tanh", np.tanh, lambda t, x, out: mul(t, sub(constant(1, out), square(out))))
sqrt_p = _unary("sqrt", np.sqrt, lambda t, x, out: div(t, mul(constant(2, out), out)))
