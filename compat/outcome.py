"""What an expression gave: values and their types, or an error; and how two such compare."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
import zlib
from typing import Any

import numpy as np

from compat.spec import dtype_of, kind_of
from tests.support import tolerances

DERIVATIVES = ("grad", "jvg")
# What has a shape and a dtype, and is no array.
TYPES = ("ShapeDtypeStruct", "ShapedArray", "OutInfo", "ArgInfo")


class NotApplicable(Exception):
    """A mode that says nothing of a case: no inexact inputs to differentiate, and such."""


@dataclasses.dataclass
class Leaf:
    """An array, or a Python or NumPy number (``container`` says which).

    Attributes:
      data: the bytes of the values in C order.
    """

    container: str
    dtype: str
    shape: tuple[int, ...]
    weak: bool | None
    data: bytes

    @property
    def value(self) -> np.ndarray:
        return np.frombuffer(self.data, dtype_of(self.dtype)).reshape(self.shape)

    def __str__(self) -> str:
        weak = ", weak" if self.weak else ""
        where = "" if self.container == "Array" else f"{self.container} "
        values = np.array2string(self.value, threshold=60, edgeitems=4, max_line_width=96,
                                 precision=9, separator=", ")
        return f"{where}{self.dtype}{list(self.shape)}{weak} {values}"


@dataclasses.dataclass
class Outcome:
    """Attributes:
      structure: containers, and what is no array, as text; arrays are ``*``.
      error: the names of the error's class and of its bases, and the message.
      skipped: why the mode does not apply.
    """

    structure: str = ""
    leaves: list[Leaf] = dataclasses.field(default_factory=list)
    error: tuple[list[str], str] | None = None
    skipped: str = ""

    def __str__(self) -> str:
        if self.skipped:
            return f"not applicable: {self.skipped}"
        if self.error is not None:
            return f"{self.error[0][0]}: {shorten(self.error[1])}"
        text = self.structure
        for leaf in self.leaves:
            text = text.replace("*", str(leaf).replace("*", "\0"), 1)
        return text.replace("\0", "*")

    def dumps(self) -> bytes:
        leaves = [[x.container, x.dtype, x.shape, x.weak, base64.b64encode(x.data).decode()]
                  for x in self.leaves]
        text = json.dumps([self.structure, leaves, self.error, self.skipped])
        return zlib.compress(text.encode(), 1)

    @classmethod
    def loads(cls, data: bytes) -> Outcome:
        structure, leaves, error, skipped = json.loads(zlib.decompress(data))
        return cls(structure,
                   [Leaf(container, dtype, tuple(shape), weak, base64.b64decode(text))
                    for container, dtype, shape, weak, text in leaves],
                   tuple(error) if error else None, skipped)


def shorten(message: str, length: int = 300) -> str:
    # Where the files lie is nobody's concern: names of files alone.
    message = re.sub(r"(?<!\S)/(?:[^/\s]+/)+(?=[^/\s]+\.py\b)", "", " ".join(message.split()))
    return message if len(message) <= length else message[:length] + " ..."


def failed(error: BaseException) -> Outcome:
    names = [kind.__name__ for kind in type(error).__mro__
             if kind not in (object, BaseException, Exception)]
    return Outcome(error=(names or ["Exception"], str(error)))


# --- taking results apart -------------------------------------------------------------------------

def take_apart(result: Any, leaves: list[Any]) -> str:
    """The structure of a result; arrays and numbers are appended to ``leaves``."""
    if is_array(result) or isinstance(result, (bool, int, float, complex, np.generic)):
        leaves.append(result)
        return "*"
    if isinstance(result, (tuple, list)):
        parts = [take_apart(x, leaves) for x in result]
        if hasattr(result, "_fields"):
            fields = ", ".join(f"{n}={p}" for n, p in zip(result._fields, parts))
            return f"{type(result).__name__}({fields})"
        return ("[{}]" if isinstance(result, list) else "({})").format(", ".join(parts))
    if isinstance(result, dict):
        return "{" + ", ".join(f"{k!r}: {take_apart(v, leaves)}" for k, v in result.items()) + "}"
    return plain(result)


def is_array(value: Any) -> bool:
    return (hasattr(value, "dtype") and hasattr(value, "shape") and hasattr(value, "ndim")
            and not isinstance(value, type)
            and type(value).__name__ not in TYPES)


def plain(value: Any) -> str:
    """``repr`` without what must differ: the library's name, addresses, its private modules."""
    text = value if isinstance(value, str) else repr(value)
    text = text.replace("maxjax", "jax").replace("*", "\\u2217")
    text = re.sub(r" at 0x[0-9a-f]+", "", text)
    return re.sub(r"\bjax(?:lib)?(?:\.\w+)*\._\w+(?:\.\w+)*\.(\w+)", r"jax..\1", text)


def leaf_of(value: Any) -> Leaf:
    container = type(value).__name__
    if is_array(value) and not isinstance(value, (np.ndarray, np.generic)):
        container = "Array"
    if not hasattr(value, "dtype"):
        value = np.asarray(value)
    dtype, shape = value.dtype, tuple(value.shape)
    weak = bool(value.weak_type) if hasattr(value, "weak_type") else None
    if not isinstance(dtype, np.dtype):      # PRNG keys
        return Leaf(f"Array{list(shape)} of {plain(dtype)}", "bool", (), None, b"\0")
    if dtype.name.startswith("void") or dtype.kind in "OSU":
        return Leaf(f"{container} of {dtype}", "bool", (), weak, b"\0")
    return Leaf(container, dtype.name, shape, weak,
                np.ascontiguousarray(np.asarray(value)).tobytes())


def succeeded(structure: str, leaves: list[Any]) -> Outcome:
    return Outcome(structure, [leaf_of(x) for x in leaves])


# --- comparing ------------------------------------------------------------------------------------

def difference(ours: Outcome, theirs: Outcome, mode: str, tolerance: str,
               signed_zeros: bool = True, said: str | None = None) -> str | None:
    """What is wrong with maxjax's outcome, JAX's being right; None if nothing is.

    Args:
      said: what the message of an error contains.
    """
    if theirs.skipped or ours.skipped:
        if bool(theirs.skipped) == bool(ours.skipped):
            return None
        return f"the mode applies to {'maxjax' if theirs.skipped else 'JAX'} alone"
    if theirs.error is not None:
        wanted = theirs.error[0][0]
        if ours.error is None:
            return f"raises nothing, not {wanted}"
        if wanted not in ours.error[0]:
            return f"raises {ours.error[0][0]}, not {wanted}"
        if said and said.lower() not in ours.error[1].lower():
            return f"the message does not say {said!r}"
        return None
    if ours.error is not None:
        return f"raises {ours.error[0][0]}"
    if ours.structure != theirs.structure:
        return f"structure {shorten(ours.structure)}, not {shorten(theirs.structure)}"
    for number, (mine, other) in enumerate(zip(ours.leaves, theirs.leaves, strict=True)):
        wrong = leaf_difference(mine, other, mode, tolerance, signed_zeros)
        if wrong:
            return f"result {number}: {wrong}" if len(ours.leaves) > 1 else wrong
    return None


def leaf_difference(ours: Leaf, theirs: Leaf, mode: str, tolerance: str,
                    signed_zeros: bool) -> str | None:
    if ours.container != theirs.container:
        return f"{ours.container}, not {theirs.container}"
    if ours.dtype != theirs.dtype:
        return f"dtype {ours.dtype}, not {theirs.dtype}"
    if ours.shape != theirs.shape:
        return f"shape {list(ours.shape)}, not {list(theirs.shape)}"
    if mode in ("eager", "jit") and bool(ours.weak) != bool(theirs.weak):
        return f"weak_type {ours.weak}, not {theirs.weak}"
    return value_difference(ours.value, theirs.value, mode, tolerance, signed_zeros,
                            narrow=theirs.container in ("float", "complex"))


def value_difference(ours: np.ndarray, theirs: np.ndarray, mode: str, tolerance: str,
                     signed_zeros: bool, narrow: bool = False) -> str | None:
    """``narrow``: a Python number, which mostly is what a float32 was read into."""
    derivative = mode in DERIVATIVES
    dtype = theirs.dtype
    if kind_of(dtype.name) in "biu":
        wrong = np.asarray(ours != theirs)
    else:
        bound = np.dtype(np.complex64 if dtype.kind == "c" else np.float32) if narrow else dtype
        relative, absolute = tolerances.bounds(tolerance, bound, derivative)
        with np.errstate(all="ignore"):
            if dtype.kind == "c":
                wrong = _complex_wrong(ours, theirs, relative, absolute)
            else:
                a, e = ours.astype(np.float64), theirs.astype(np.float64)
                wrong = ~((np.abs(a - e) <= relative * np.abs(e) + absolute)
                          | (a == e) | (np.isnan(a) & np.isnan(e)))
                if signed_zeros and not derivative:
                    wrong |= (a == 0) & (e == 0) & (np.signbit(a) != np.signbit(e))
        wrong = np.asarray(wrong)
    if not wrong.any():
        return None
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    where = f"[{', '.join(map(str, index))}]" if index else ""
    return (f"{int(wrong.sum())} of {wrong.size} values differ: {ours[index]!r}, "
            f"not {theirs[index]!r}{' at ' + where if where else ''}")


def _complex_wrong(ours: np.ndarray, theirs: np.ndarray, relative: float,
                   absolute: float) -> np.ndarray:
    """Finite numbers by their distance; NaN and infinities part by part."""
    finite = np.isfinite(ours) & np.isfinite(theirs)
    wrong = finite & (np.abs(ours - theirs) > relative * np.abs(theirs) + absolute)
    for part in (np.real, np.imag):
        a, e = part(ours), part(theirs)
        wrong |= ~finite & ((np.isnan(a) != np.isnan(e))
                            | (np.isinf(e) & ~np.isnan(a) & (a != e)))
    return wrong
