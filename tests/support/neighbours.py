"""A plugin of pytest: tier 0 gets, instead of NumPy's transcendental functions, their neighbours.

    NEIGHBOURS=1 python -m pytest -p tests.support.neighbours ...

Each result that is finite and not zero is one unit of the last place further up, or with
``NEIGHBOURS=-1`` further down, as another processor's routine might give it. The functions are
those that maxjax takes when it is imported; tests and JAX keep NumPy's own.
"""

import os
import sys

import ml_dtypes  # noqa: F401 (it adds loops to functions of NumPy's own)
import numpy as np

NAMES = """exp exp2 expm1 log log1p sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh
    arccosh arctanh cbrt power float_power""".split()


def neighbour(ufunc, towards):
    def moved(*operands, out=None, casting="same_kind", **options):
        result = ufunc(*operands, **options)
        if result.dtype.kind == "f":
            result = np.where(np.isfinite(result) & (result != 0),
                              np.nextafter(result, result.dtype.type(towards)), result)
        if out is None:
            return result
        np.copyto(out, result, casting=casting)
        return out

    return moved


def install() -> None:
    """Has maxjax imported with the neighbours."""
    assert "maxjax" not in sys.modules
    own = {name: getattr(np, name) for name in NAMES}
    for name, ufunc in own.items():
        setattr(np, name, neighbour(ufunc, float(os.environ["NEIGHBOURS"]) * np.inf))
    from maxjax._primitives import elementary
    for name, ufunc in own.items():
        setattr(np, name, ufunc)
    assert float(elementary.sin(np.float64(1.0))) != float(np.sin(1.0))


def pytest_configure(config):
    install()
