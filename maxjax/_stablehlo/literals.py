"""Types and constants, read from text."""

from __future__ import annotations

import math
import re

import ml_dtypes
import numpy as np

from maxjax._stablehlo.lexer import Lexer
from maxjax._stablehlo.program import Dense, Other, Tensor, Type, Unreadable, checked_tensor
from maxjax._stablehlo.text import element_names

_DTYPES: dict[str, np.dtype] = {
    text: np.dtype(bool) if name == "bool" else np.dtype(getattr(ml_dtypes, name, None) or name)
    for name, text in element_names().items()}
# An index stands for a position; a signless integer of the text is a signed one.
_DTYPES["index"] = np.dtype(np.int64)
_SIZES = re.compile(r"tensor\s*<\s*((?:(?:[0-9]+|\?)\s*x\s*)*)")
_ELEMENT = re.compile(r"complex\s*<\s*(?:f32|f64)\s*>|[A-Za-z][A-Za-z0-9]*")
_NUMBER = re.compile(
    r"-?0x[0-9A-Fa-f]+|-?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|true|false|[(),\[\]]|\s+")
_SEPARATORS = re.compile(r"[^\[\],]+")
_PAIRS = re.compile(r"\(([^(),\[\]]*),([^(),\[\]]*)\)")


def dtype_of(name: str, where: str) -> np.dtype:
    dtype = _DTYPES.get(re.sub(r"\s", "", name))
    if dtype is None:
        raise Unreadable(where, f"elements of type {name[:40]!r}")
    return dtype


def read_type(words: Lexer) -> Type:
    """A type; what is no tensor's is only named."""
    token = words.peek()
    if token.text == "tensor":
        where = words.where()
        sizes = words.match(_SIZES, "a shape")[1]
        shape = tuple([None if size == "?" else _size(size, where)
                       for size in re.sub(r"\s", "", sizes).split("x") if size])
        dtype = dtype_of(words.match(_ELEMENT, "a type of elements")[0], where)
        if words.take(","):      # bounds, which only tell a compiler more
            words.kind("attribute", "an attribute")
            if words.at("<"):
                words.skip_balanced()
        words.expect(">")
        return checked_tensor(shape, dtype, where)
    if token.kind == "type" or token.text in ("tuple", "none", "index", "memref", "vector"):
        text = words.next().text
        return Other(text + (words.skip_balanced() if words.at("<") else ""))
    if token.kind == "name":
        name = words.next().text
        if name == "complex" and words.at("<"):
            name += words.skip_balanced()
        return Tensor((), dtype_of(name, words.where()))
    raise words.error(f"{words.shown()} where a type is expected")


def _size(text: str, where: str) -> int:
    if len(text) > 19:
        raise Unreadable(where, "a size out of all proportion")
    return int(text)


def read_types(words: Lexer) -> list[Type]:
    """Types between parentheses."""
    words.expect("(")
    return [read_type(words) for _ in words.items(")")]


def read_dense(words: Lexer) -> Dense:
    """``dense<...> : tensor<...>``; the first word has been read."""
    where = words.where()
    words.expect("<")
    quoted = words.peek().kind == "string"
    if quoted:
        content = words.string()
        words.expect(">")
    else:
        content = words.until(">", "a constant")
    words.expect(":")
    type = read_type(words)
    if not isinstance(type, Tensor):
        raise Unreadable(where, "a constant that is no tensor")
    shape = tuple([-1 if size is None else size for size in type.shape])
    if -1 in shape:
        raise Unreadable(where, "a constant of unknown size")
    if quoted:
        return from_bytes(_from_hex(content, where), shape, type.dtype, where)
    return _from_list(content, shape, type.dtype, where)


def _from_hex(text: str, where: str) -> bytes:
    try:
        return bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        raise Unreadable(where, "the bytes of a constant are no hexadecimal number") from None


def from_bytes(content: bytes, shape: tuple[int, ...], dtype: np.dtype, where: str, *,
               packed: bool = False) -> Dense:
    """A constant of its bytes in memory, or of one element's; ``packed``: truth values are bits."""
    count = math.prod(shape)
    if dtype.kind == "b":
        return _booleans(content, shape, count, where, packed)
    size = dtype.itemsize
    if len(content) == size and count != 1:
        return Dense(np.frombuffer(content, dtype)[0:1].reshape(()), shape)
    if len(content) != count * size:
        raise Unreadable(where, f"{len(content)} bytes for {count} elements of {dtype}")
    return Dense(np.frombuffer(content, dtype).reshape(shape), shape)


def _booleans(content: bytes, shape: tuple[int, ...], count: int, where: str,
              packed: bool) -> Dense:
    found = np.frombuffer(content, np.uint8)
    if len(content) == 1 and count > 8 and found[0] in (0, 1, 255):
        return Dense(np.array(bool(found[0])), shape)
    if len(content) == count and not packed:
        return Dense((found != 0).reshape(shape), shape)
    if len(content) == -(-count // 8):
        return Dense(np.unpackbits(found, bitorder="little")[:count].astype(bool).reshape(shape),
                     shape)
    raise Unreadable(where, f"{len(content)} bytes for {count} truth values")


def _from_list(text: str, shape: tuple[int, ...], dtype: np.dtype, where: str) -> Dense:
    """Numbers, nested as the shape has it, or one for all."""
    count = math.prod(shape)
    text = re.sub(r"\s", "", text)
    if not text:
        if count:
            raise Unreadable(where, f"no elements for the shape {shape}")
        return Dense(np.zeros(shape, dtype), shape)
    if not count:
        raise Unreadable(where, f"elements of a constant of the shape {shape}")
    if any(not _NUMBER.fullmatch(part) for part in re.split(r"(?<=[\[\](),])|(?=[\[\](),])", text)
           if part):
        raise Unreadable(where, f"elements of a constant: {text[:40]!r}")
    if dtype.kind == "c":
        pairs = _PAIRS.findall(text)
        numbers = [part for pair in pairs for part in pair]
        text = _PAIRS.sub("x", text)
        half = np.empty(0, dtype).real.dtype
        elements = _parsed(numbers, half, where).view(dtype)
    else:
        elements = _parsed([part for part in re.split(r"[\[\],]+", text) if part], dtype, where)
    if "[" not in text:
        if len(elements) != 1:
            raise Unreadable(where, f"elements of a constant: {text[:40]!r}")
        return Dense(elements.reshape(()), shape)
    if len(elements) != count or _SEPARATORS.sub("", text) != _skeleton(shape):
        raise Unreadable(where, f"the elements of a constant are not of the shape {shape}")
    return Dense(elements.reshape(shape), shape)


def _skeleton(shape: tuple[int, ...]) -> str:
    """The brackets and commas of a list of the shape, whose elements have been counted."""
    inner = ""
    for size in reversed(shape):
        inner = f"[{','.join([inner] * size)}]"
    return inner


def _parsed(numbers: list[str], dtype: np.dtype, where: str) -> np.ndarray:
    try:
        if dtype.kind == "b":
            return np.array([{"true": True, "1": True, "-1": True, "false": False, "0": False}[
                number] for number in numbers], bool)
        if dtype.kind in "iu" or dtype.name.startswith(("int", "uint")):
            return _integers(numbers, dtype)
        found = np.array([0.0 if "x" in number else float(number) for number in numbers],
                         np.float64)
        with np.errstate(all="ignore"):
            result = found.astype(dtype)
        bits = result.view(f"uint{8 * dtype.itemsize}")
        for place, number in enumerate(numbers):
            if "x" in number:
                bits[place] = int(number, 16)
        return result
    except (KeyError, ValueError, OverflowError):
        raise Unreadable(where, f"the elements of a constant are none of {dtype}") from None


def _integers(numbers: list[str], dtype: np.dtype) -> np.ndarray:
    """Integers; a signed one may be written as the unsigned one of its bits."""
    values = [int(number, 0) if "x" in number else int(number) for number in numbers]
    info = ml_dtypes.iinfo(dtype)
    if any(not info.min <= value <= info.max for value in values):
        span = int(info.max) - int(info.min) + 1
        if any(not -span // 2 <= value < span for value in values):
            raise OverflowError
        values = [value - span if value > info.max else value for value in values]
        if any(value < info.min for value in values):
            raise OverflowError
    wide = np.array(values, np.uint64 if info.min >= 0 else np.int64)
    return wide.astype(dtype)
