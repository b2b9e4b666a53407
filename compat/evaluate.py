"""Running a case on a library, in each mode."""

from __future__ import annotations

import contextlib
import functools
import importlib
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from compat import followed
from compat.outcome import NotApplicable, Outcome, failed, succeeded, take_apart
from compat.spec import BATCH, Case, dtype_of, kind_of
from tests.support import quick_jax

# Modules that ``import jax`` does not bring in.
SEPARATE = ("example_libraries.optimizers", "example_libraries.stax", "experimental.jet",
            "experimental.ode", "experimental.sparse", "experimental.sparse.linalg", "image",
            "scipy.cluster.vq", "scipy.fft", "scipy.integrate", "scipy.interpolate",
            "scipy.linalg", "scipy.ndimage", "scipy.optimize", "scipy.signal",
            "scipy.sparse.linalg", "scipy.spatial.transform", "scipy.special", "scipy.stats")
FLOAT0 = np.dtype([("float0", np.void)])


def _member(owner: Any, name: str) -> Any:
    """An attribute, or a module that nobody has imported yet."""
    try:
        return getattr(owner, name)
    except AttributeError:
        if isinstance(owner, types.ModuleType):
            with contextlib.suppress(ModuleNotFoundError):
                return importlib.import_module(f"{owner.__name__}.{name}")
        raise


class Library:
    """Real JAX or maxjax, as the tables see it."""

    def __init__(self, package: Any):
        self.package = package
        self.name = package.__name__
        self.numpy, self.lax = package.numpy, package.lax

    def find(self, name: str) -> Any:
        """What a public name stands for; AttributeError if there is none."""
        value = self.package
        if name.startswith("jax.Array."):
            return None
        for part in name.split(".")[1:]:
            value = _member(value, part)
        return value

    def namespace(self, case: Case) -> dict[str, Any]:
        return {"jnp": self.numpy, "lax": self.lax, "jax": self.package, "np": np,
                "f": self.find(case.name)}


@functools.cache
def real() -> Library:
    import jax
    import jax.ad_checkpoint
    import jax.custom_batching
    import jax.custom_derivatives
    import jax.lax
    import jax.numpy
    import jax.test_util
    for name in SEPARATE:
        importlib.import_module(f"jax.{name}")
    assert jax.__version__ == followed(), f"JAX {followed()} is what counts, not {jax.__version__}"
    quick_jax.share_contexts()
    return Library(jax)


@functools.cache
def own() -> Library:
    import maxjax
    import maxjax.lax
    import maxjax.numpy
    for name in SEPARATE:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(f"maxjax.{name}")
    return Library(maxjax)


@contextlib.contextmanager
def surroundings(library: Library, x64: bool) -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"), library.package.enable_x64(x64):
        warnings.simplefilter("ignore")
        yield


# --- functions ------------------------------------------------------------------------------------

class Prepared:
    """A case on a library: its function, its arguments, and what the modes make of them.

    Use within ``surroundings``.
    """

    def __init__(self, library: Library, case: Case):
        self.library, self.case = library, case
        self.names = list(case.inputs)
        values = case.values()
        self.args = [self.passed(name, values[name]) for name in self.names]
        self.structure = ""

    def passed(self, name: str, value: Any) -> Any:
        made = self.case.inputs[name]
        return value if made.held or made.weak else self.library.numpy.asarray(value)

    def result(self, *args: Any) -> Any:
        before, expression = self.case.code
        space = self.library.namespace(self.case)
        space.update(zip(self.names, args))
        if before is not None:
            exec(before, space)
        return eval(expression, space)

    def flat(self, *args: Any) -> list[Any]:
        """The leaves of the result; their structure is noted."""
        leaves: list[Any] = []
        self.structure = take_apart(self.result(*args), leaves)
        return leaves

    # Which arguments a mode is about.

    def differentiable(self) -> list[int]:
        chosen = self.case.differentiable
        found = []
        for number, name in enumerate(self.names):
            made = self.case.inputs[name]
            if chosen is not None:
                if name in chosen:
                    found.append(number)
            elif (not made.weak and not made.fixed
                  and kind_of(made.dtype or self.case.dtype) in "fc"):
                found.append(number)
        return found

    def mapped(self) -> list[int]:
        chosen = self.case.mapped
        return [number for number, name in enumerate(self.names)
                if (name in chosen if chosen is not None else
                    not self.case.inputs[name].weak and not self.case.inputs[name].fixed)]

    # What each mode calls.

    def gradient(self, *args: Any) -> list[Any]:
        """The pullback of fixed cotangents, to the differentiable arguments."""
        numbers = self.differentiable()

        def function(*given: Any) -> list[Any]:
            full = list(args)
            for number, value in zip(numbers, given):
                full[number] = value
            return self.flat(*full)

        outputs, pullback = self.library.package.vjp(function, *(args[n] for n in numbers))
        cotangents = [cotangent(number, x) for number, x in enumerate(outputs)]
        if all(x.dtype == FLOAT0 for x in cotangents):
            raise NotApplicable("no result is inexact")
        return list(pullback(cotangents))

    def batches(self) -> tuple[list[Any], list[int | None]]:
        """Arguments with a batch axis, the first one's in front, the others' at the end."""
        numbers = self.mapped()
        variants = [self.case.values(variant) for variant in range(BATCH)]
        args = list(self.args)
        axes: list[int | None] = [None] * len(args)
        for position, number in enumerate(numbers):
            name = self.names[number]
            axis = 0 if position == 0 else np.ndim(variants[0][name])
            args[number] = self.passed(name, np.stack([v[name] for v in variants], axis))
            axes[number] = axis
        return args, axes

    def call(self, mode: str) -> tuple[Callable[..., Any], list[Any]]:
        """A function of arrays, and its arguments; jit is left to the caller."""
        if mode in ("grad", "jvg") and not self.differentiable():
            raise NotApplicable("no input is inexact")
        if mode in ("vmap", "jvg") and not self.mapped():
            raise NotApplicable("no input to map")
        function = self.gradient if mode in ("grad", "jvg") else self.flat
        if mode in ("vmap", "jvg"):
            args, axes = self.batches()
            return self.library.package.vmap(function, in_axes=tuple(axes)), args
        return function, list(self.args)


def cotangent(number: int, output: Any) -> np.ndarray:
    """Numbers between 1/2 and 2, the same for both libraries."""
    shape = tuple(np.shape(output))
    dtype = getattr(output, "dtype", None) or np.asarray(output).dtype
    if not isinstance(dtype, np.dtype) or kind_of(dtype.name) not in "fc":
        return np.zeros(shape, FLOAT0)
    rng = np.random.default_rng(number)
    value = rng.uniform(0.5, 2.0, shape)
    if kind_of(dtype.name) == "c":
        value = value + 1j * rng.uniform(-1.0, 1.0, shape)
    return np.asarray(value).astype(dtype_of(dtype.name))


def run(library: Library, case: Case, mode: str) -> Outcome:
    """The outcome of a case in a mode."""
    with surroundings(library, case.x64):
        try:
            prepared = Prepared(library, case)
            function, args = prepared.call(mode)
            if mode in ("jit", "jvg"):
                function = library.package.jit(function)
            outputs = function(*args)
            structure = prepared.structure if mode in ("eager", "jit", "vmap") else (
                f"[{', '.join('*' for _ in outputs)}]")
            return succeeded(structure, outputs)
        except NotApplicable as reason:
            return Outcome(skipped=str(reason))
        except Exception as error:
            return failed(error)
