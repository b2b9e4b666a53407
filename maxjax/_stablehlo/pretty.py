"""Operations in the pretty form: each is read into what its generic form says."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._stablehlo.literals import read_dense, read_type, read_types
from maxjax._stablehlo.placements import read_names, read_placements
from maxjax._stablehlo.program import (
    Block,
    Dense,
    Operation,
    Symbol,
    Tensor,
    Type,
    Unreadable,
    Value,
)

if TYPE_CHECKING:
    from maxjax._stablehlo.parser import Parser

_DIALECTS = ("stablehlo.", "chlo.", "func.", "sdy.", "mhlo.")
_FORMAT = re.compile(r"e([0-9]{1,4})m([0-9]{1,4})")
# Names that the pretty form has for attributes, where they are not its own.
_NAMES = {
    "stablehlo.broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "stablehlo.dynamic_broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "stablehlo.transpose": {"dims": "permutation"},
    "stablehlo.reverse": {"dims": "dimensions"},
    "stablehlo.concatenate": {"dim": "dimension"},
    "stablehlo.iota": {"dim": "iota_dimension"},
    "stablehlo.dynamic_iota": {"dim": "iota_dimension"},
    "stablehlo.get_dimension_size": {"dim": "dimension"},
    "stablehlo.pad": {"low": "edge_padding_low", "high": "edge_padding_high",
                      "interior": "interior_padding"},
    "stablehlo.dynamic_slice": {"sizes": "slice_sizes"},
    "stablehlo.fft": {"type": "fft_type", "length": "fft_length"},
    "stablehlo.rng": {"distribution": "rng_distribution"},
    "stablehlo.rng_bit_generator": {"algorithm": "rng_algorithm"},
}
# The results of these are of all the types that stand at the end, one for one.
_LISTED = frozenset(("stablehlo.while", "stablehlo.optimization_barrier"))


class Parts:
    """What has been read of an operation."""

    def __init__(self) -> None:
        self.operands: list[Value] = []
        self.attributes: dict[str, Any] = {}
        self.regions: list[Block] = []


def read(parser: Parser, name: str, count: int, where: str) -> Operation:
    """The operation whose name has been read.

    Args:
      count: how many results are named.
    """
    if not name.startswith(_DIALECTS):
        raise Unreadable(where, f"the operation {name[:60]}")
    parts = Parts()
    special = _SPECIAL.get(name)
    if special is not None:
        operation = special(parser, name, parts, where)
        if operation is not None:
            return operation
    else:
        _usual(parser, name, parts)
    if name == "stablehlo.while":
        results = _loop_types(parser, parts, where)
    else:
        results = _types(parser, name, parts, count, where)
    return Operation(name, parts.operands, [Value(type) for type in results], parts.attributes,
                     parts.regions, where)


def _usual(parser: Parser, name: str, parts: Parts) -> None:
    """Operands, with or without parentheses; ``name = value``; a record; up to the colon."""
    words = parser.words
    names = _NAMES.get(name, {})
    close = ")" if words.take("(") else ""
    first = True
    while not words.at(":", "{", "loc", "}") and words.peek().kind != "end":
        if close and words.take(close):
            close = ""
            continue
        if not first:
            words.take(",")
        first = False
        if words.peek().kind == "value":
            parts.operands.append(parser.operand())
            continue
        if words.peek().kind != "name":
            if close and words.at(close):
                continue
            break
        key = words.name()
        if not words.take("="):
            raise words.error(f"{key[:40]!r} in {name}")
        _set(parser, parts, names.get(key, key), _value(parser))
    _record(parser, parts)


def _value(parser: Parser) -> Any:
    """An attribute, or a word that stands for one of a few."""
    token = parser.words.peek()
    if token.kind == "integer":      # the types after it are those of the operation
        return parser.words.integer()
    if token.kind == "name" and token.text.isupper():
        return parser.words.next().text
    return parser.attributes.read()


def _set(parser: Parser, parts: Parts, name: str, value: Any) -> None:
    if name in parts.attributes:
        raise parser.words.error(f"the attribute {name} is given twice")
    parts.attributes[name] = value


def _record(parser: Parser, parts: Parts) -> None:
    for name, value in parser.attributes.optional_record().items():
        _set(parser, parts, name, value)


def _types(parser: Parser, name: str, parts: Parts, count: int, where: str) -> list[Type]:
    """The types of the results; those of the operands are checked."""
    words = parser.words
    if not words.take(":"):
        if parts.operands or count:
            raise words.error(f"{words.shown()} where the types of {name} are expected")
        return []
    if words.at("("):
        types = read_types(words)
        if words.take("->"):
            parser.check_operands(name, parts.operands, types, where)
            return parser.attributes.results()
    else:
        types = [read_type(words)]
        while words.take(","):
            types.append(read_type(words))
        if words.take("->"):
            parser.check_operands(name, parts.operands, types, where)
            return parser.attributes.results()
    if name == "stablehlo.select":
        if len(types) == 2:      # of the predicate, and of the rest
            types = [types[0], types[1], types[1]]
        parser.check_operands(name, parts.operands, types, where)
        return types[-1:]
    if name in _LISTED or not count:
        parser.check_operands(name, parts.operands, types, where)
        return types if count else []
    if len(types) != 1:
        raise Unreadable(where, f"the types of {name}")
    type = types[0]
    if name == "stablehlo.complex" and isinstance(type, Tensor):      # that of the result
        half = np.empty(0, type.dtype).real.dtype
        parser.check_operands(name, parts.operands, [Tensor(type.shape, half)] * 2, where)
        return types
    parser.check_operands(name, parts.operands, types * len(parts.operands), where)
    return types * count


# --- those with forms of their own ----------------------------------------------------------------

def _constant(parser: Parser, name: str, parts: Parts, where: str) -> Operation:
    words = parser.words
    _record(parser, parts)
    if words.take("dense"):
        value = read_dense(words)
        type: Type = Tensor(value.shape, value.elements.dtype)
    else:
        value = parser.attributes.read()
        if not isinstance(value, Dense):
            raise Unreadable(where, "a constant that is no tensor")
        type = Tensor(value.shape, value.elements.dtype)
    parts.attributes["value"] = value
    return Operation(name, [], [Value(type)], parts.attributes, [], where)


def _compare(parser: Parser, name: str, parts: Parts, where: str) -> None:
    """``compare LT, %x, %y, SIGNED``."""
    words = parser.words
    parts.attributes["comparison_direction"] = words.name()
    while words.take(","):
        if words.peek().kind == "value":
            parts.operands.append(parser.operand())
        else:
            _set(parser, parts, "compare_type", words.name())
    _record(parser, parts)


def _slice(parser: Parser, name: str, parts: Parts, where: str) -> None:
    """``slice %x [0:3, 0:4:2]``."""
    words = parser.words
    parts.operands.append(parser.operand())
    words.expect("[")
    bounds: list[list[int]] = []
    for _ in words.items("]"):
        bound = [words.integer()]
        while words.take(":"):
            bound.append(words.integer())
        bounds.append([*bound, 1][:3])
        if len(bound) not in (2, 3):
            raise words.error("the bounds of a slice")
    for number, key in enumerate(("start_indices", "limit_indices", "strides")):
        parts.attributes[key] = [bound[number] for bound in bounds]
    _record(parser, parts)


def _dot_general(parser: Parser, name: str, parts: Parts, where: str) -> None:
    words = parser.words
    parts.operands.append(parser.operand())
    words.expect(",")
    parts.operands.append(parser.operand())
    numbers: dict[str, Any] = {}
    while words.take(","):
        key = words.name()
        words.expect("=")
        if key in ("batching_dims", "contracting_dims"):
            left = parser.attributes.integers()
            words.expect("x")
            kind = key.replace("dims", "dimensions")
            numbers[f"lhs_{kind}"], numbers[f"rhs_{kind}"] = left, parser.attributes.integers()
        elif key == "precision":
            words.expect("[")
            _set(parser, parts, "precision_config",
                 parser.attributes.items(item=lambda: _value(parser)))
        else:
            _set(parser, parts, key, parser.attributes.read())
    parts.attributes["dot_dimension_numbers"] = numbers
    _record(parser, parts)


def _convolution(parser: Parser, name: str, parts: Parts, where: str) -> None:
    words = parser.words
    words.expect("(")
    parts.operands = parser.operands_until(")")
    words.expect("dim_numbers")
    words.expect("=")
    parts.attributes["dimension_numbers"] = parser.attributes.convolution_dimensions()
    words.expect(",")
    words.expect("window")
    words.expect("=")
    words.expect("{")
    keys = {"stride": "window_strides", "pad": "padding", "lhs_dilate": "lhs_dilation",
            "rhs_dilate": "rhs_dilation", "reverse": "window_reversal"}
    for key, value in parser.attributes.record().items():
        if key not in keys:
            raise Unreadable(where, f"{key!r} in the window of a convolution")
        if key == "pad":
            value = _pairs(value, where)
        parts.attributes[keys[key]] = value
    _record(parser, parts)


def _pairs(value: Any, where: str) -> Dense:
    if not isinstance(value, list) or not all(
            isinstance(pair, list) and len(pair) == 2 and
            all(type(number) is int and abs(number) < 1 << 62 for number in pair)
            for pair in value):
        raise Unreadable(where, "the padding of a convolution")
    return Dense(np.array(value, np.int64).reshape(-1, 2), (len(value), 2))


def _custom_call(parser: Parser, name: str, parts: Parts, where: str) -> None:
    words = parser.words
    parts.attributes["call_target_name"] = words.symbol()
    words.expect("(")
    parts.operands = parser.operands_until(")")
    _record(parser, parts)


def _composite(parser: Parser, name: str, parts: Parts, where: str) -> None:
    words = parser.words
    parts.attributes["name"] = words.string()
    while words.peek().kind == "value":
        parts.operands.append(parser.operand())
        words.take(",")
    _record(parser, parts)


def _call(parser: Parser, name: str, parts: Parts, where: str) -> None:
    words = parser.words
    parts.attributes["callee"] = Symbol(words.symbol())
    words.expect("(")
    parts.operands = parser.operands_until(")")
    _record(parser, parts)


def _reduce_precision(parser: Parser, name: str, parts: Parts, where: str) -> None:
    words = parser.words
    parts.operands.append(parser.operand())
    words.expect(",")
    words.expect("format")
    words.expect("=")
    found = words.match(_FORMAT, "a format of floating point")
    parts.attributes.update(exponent_bits=int(found[1]), mantissa_bits=int(found[2]))
    _record(parser, parts)


def _while(parser: Parser, name: str, parts: Parts, where: str) -> None:
    """``while(%a = %x, ...) : types cond {...} do {...}``: the regions follow the types."""
    words = parser.words
    words.expect("(")
    labels: list[str] = []
    for _ in words.items(")"):
        labels.append(words.kind("value", "an argument"))
        words.expect("=")
        parts.operands.append(parser.operand())
    parts.attributes["labels"] = labels


def _loop_types(parser: Parser, parts: Parts, where: str) -> list[Type]:
    words = parser.words
    labels = parts.attributes.pop("labels")
    types: list[Type] = []
    if words.take(":"):
        while not types or words.take(","):
            types.append(read_type(words))
    parser.check_operands("stablehlo.while", parts.operands, types, where)
    if words.take("attributes"):
        words.expect("{")
        parts.attributes.update(parser.attributes.record())
    arguments = list(zip(labels, types, strict=True))
    for word in ("cond", "do"):
        words.expect(word)
        parts.regions.append(parser.region(arguments=arguments))
    return types


def _reduce(parser: Parser, name: str, parts: Parts, where: str) -> Operation | None:
    """``reduce(%x init: %y), ... applies op across dimensions = [0]``, or with a ``reducer``."""
    words = parser.words
    inits: list[Value] = []
    while not inits or words.take(","):
        words.expect("(")
        parts.operands.append(parser.operand())
        words.expect("init")
        words.expect(":")
        inits.append(parser.operand())
        words.expect(")")
    parts.operands += inits
    applied = words.name() if words.take("applies") else None
    for word in ("across", "dimensions", "="):
        words.expect(word)
    parts.attributes["dimensions"] = parser.attributes.integers()
    _record(parser, parts)
    results = _types(parser, name, parts, len(inits), where)
    scalars: list[Type] = []
    for init in inits:
        if not isinstance(init.type, Tensor):
            raise Unreadable(where, "a reduction of what is no tensor")
        scalars.append(Tensor((), init.type.dtype))
    if applied is not None:
        left, right, made = (Value(scalars[0]) for _ in range(3))
        block = Block([left, right], [
            Operation(applied, [left, right], [made], {}, [], where),
            Operation("stablehlo.return", [made], [], {}, [], where)])
    else:
        block = _reducer(parser, scalars, where)
    parts.regions = [block]
    return Operation(name, parts.operands, [Value(type) for type in results], parts.attributes,
                     parts.regions, where)


def _arguments(parser: Parser) -> list[tuple[str, Type]]:
    """``(%a: type, %b: type)``: the arguments of a region that stand before it."""
    words = parser.words
    words.expect("(")
    found: list[tuple[str, Type]] = []
    for _ in words.items(")"):
        label = words.kind("value", "an argument")
        words.expect(":")
        found.append((label, read_type(words)))
        if words.at("loc"):
            parser.attributes.location()
    return found


def _reducer(parser: Parser, scalars: list[Type], where: str) -> Block:
    """``reducer(%a: type, %b: type) (%c: type, %d: type) {...}``: pairs, one for each result."""
    words = parser.words
    words.expect("reducer")
    pairs: list[list[tuple[str, Type]]] = []
    while words.at("("):
        pairs.append(_arguments(parser))
    if any(len(pair) != 2 for pair in pairs) or len(pairs) != len(scalars):
        raise Unreadable(where, "the arguments of a reducer")
    return parser.region(arguments=[pair[0] for pair in pairs] + [pair[1] for pair in pairs])


def _sharding(parser: Parser, name: str, parts: Parts, where: str) -> None:
    """``sharding_constraint %x <@mesh, [...]>``."""
    parts.operands.append(parser.operand())
    parser.words.skip_balanced()
    _record(parser, parts)


def _manual_computation(parser: Parser, name: str, parts: Parts, where: str) -> None:
    """``(%x) in_shardings=[...] out_shardings=[...] manual_axes={...} (%y: type) {...}``."""
    words = parser.words
    words.expect("(")
    parts.operands += parser.operands_until(")")
    for key, read_value in (("in_shardings", read_placements), ("out_shardings", read_placements),
                            ("manual_axes", read_names)):
        words.expect(key)
        words.expect("=")
        parts.attributes[key] = read_value(words)
    parts.regions.append(parser.region(arguments=_arguments(parser)))
    _record(parser, parts)


_SPECIAL: dict[str, Callable[[Parser, str, Parts, str], Operation | None]] = {
    "stablehlo.constant": _constant, "stablehlo.compare": _compare, "stablehlo.slice": _slice,
    "stablehlo.dot_general": _dot_general, "stablehlo.convolution": _convolution,
    "stablehlo.custom_call": _custom_call, "stablehlo.composite": _composite,
    "func.call": _call, "stablehlo.reduce_precision": _reduce_precision,
    "stablehlo.while": _while, "stablehlo.reduce": _reduce,
    "sdy.sharding_constraint": _sharding, "sdy.manual_computation": _manual_computation,
}
