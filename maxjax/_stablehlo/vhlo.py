"""Attributes, types and operations of VHLO, whose form stays the same in all versions."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import numpy as np

from maxjax._stablehlo import placements
from maxjax._stablehlo.bytes_reader import Bytes
from maxjax._stablehlo.literals import dtype_of, from_bytes
from maxjax._stablehlo.program import (
    DEEPEST,
    Dense,
    Opaque,
    Other,
    Symbol,
    Tensor,
    Type,
    Unreadable,
    checked_tensor,
)

_UNKNOWN = -(1 << 63)
_ELEMENTS = {
    0: "i1", 2: "bf16", 3: "f16", 4: "f32", 5: "f64", 6: "f8E4M3FN", 7: "f8E5M2", 9: "index",
    10: "i4", 11: "i8", 12: "i16", 13: "i32", 14: "i64", 15: "ui4", 16: "ui8", 17: "ui16",
    18: "ui32", 19: "ui64", 27: "f8E4M3FNUZ", 28: "f8E5M2FNUZ", 29: "f8E4M3B11FNUZ", 31: "i2",
    32: "ui2", 35: "f8E4M3", 36: "f8E3M4", 37: "f4E2M1FN", 40: "f8E8M0FNU",
}
_TOKEN = 22
_BUILTIN = {1: "index", 3: "bf16", 4: "f16", 5: "f32", 6: "f64"}
# Attributes that are one word of a few, in their order.
_WORDS = {
    3: ("EQ", "NE", "GE", "GT", "LE", "LT"),
    4: ("NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"),
    5: ("API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
        "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"),
    7: ("FFT", "IFFT", "RFFT", "IRFFT"),
    11: ("DEFAULT", "HIGH", "HIGHEST"),
    12: ("DEFAULT", "THREE_FRY", "PHILOX"),
    13: ("", "UNIFORM", "NORMAL"),
    16: ("TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"),
}


class FunctionType(NamedTuple):
    arguments: list[Type]
    results: list[Type]


class Entry(NamedTuple):
    """An attribute or a type: whose, whether in the dialect's own form, and its bytes."""

    dialect: str
    is_custom: bool
    content: Bytes


class Entries:
    """The tables of attributes and types, each read when it is first asked for."""

    def __init__(self, strings: list[bytes], attributes: list[Entry], types: list[Entry]):
        self.strings = strings
        self._attributes = attributes
        self._types = types
        self._known: dict[tuple[bool, int], Any] = {}
        self._depth = 0

    def type(self, words: Bytes, number: int) -> Type:
        found = self._of(words, number, True)
        if not isinstance(found, (Tensor, Other)):
            raise words.error(f"the type {number} is none of a value")
        return found

    def attribute(self, words: Bytes, number: int) -> Any:
        return self._of(words, number, False)

    def record(self, words: Bytes, number: int) -> dict[str, Any]:
        found = self.attribute(words, number)
        if not isinstance(found, dict):
            raise words.error(f"the attribute {number} is no record")
        return found

    def _of(self, words: Bytes, number: int, is_type: bool) -> Any:
        key = is_type, number
        if key in self._known:
            return self._known[key]
        table = self._types if is_type else self._attributes
        if number >= len(table):
            raise words.error(f"there is no {'type' if is_type else 'attribute'} {number}")
        if self._depth > DEEPEST:
            raise words.error("attributes nest too deep")
        self._depth += 1
        entry = table[number]
        content = Bytes(entry.content.content, entry.content.start)
        if not entry.is_custom:
            made: Any = Opaque(bytes(content.content)[:200].decode("utf-8", "replace"))
        elif entry.dialect == "vhlo":
            made = self._type_of(content) if is_type else self._attribute_of(content)
        elif entry.dialect == "builtin":
            made = self._builtin_type(content) if is_type else self._builtin(content)
        elif entry.dialect == "sdy" and not is_type:
            made = placements.decode(self, content)
        else:
            made = Opaque(f"of {entry.dialect}")
        self._depth -= 1
        self._known[key] = made
        return made

    def string(self, words: Bytes) -> str:
        return self._string(words).decode("utf-8", "replace")

    def _string(self, words: Bytes) -> bytes:
        number = words.number()
        if number >= len(self.strings):
            raise words.error(f"there is no string {number}")
        return self.strings[number]

    def _builtin(self, words: Bytes) -> Any:
        """Records of names and attributes, and strings; nothing else of it matters here."""
        code = words.number()
        if code == 1:      # a record
            found = {}
            for _ in range(words.count("attributes")):
                name = self.attribute(words, words.number())
                if not isinstance(name, str):
                    raise words.error("the name of an attribute")
                found[name] = self.attribute(words, words.number())
            return found
        if code == 2:
            return self.string(words)
        if code == 4:
            name = self.attribute(words, words.number())
            if isinstance(name, str):
                return Symbol(name)
        return Opaque("of builtin")

    def _builtin_type(self, words: Bytes) -> Any:
        """The types of values between the operations of other dialects."""
        code = words.number()
        where = f"byte {words.start}"
        if code in _BUILTIN:
            return Tensor((), dtype_of(_BUILTIN[code], where))
        if code == 0:      # an integer, whose last two bits say whether it has a sign
            bits = words.number()
            return Tensor((), dtype_of(f"{'ui' if bits & 3 == 2 else 'i'}{bits >> 2}", where))
        if code == 9:
            return self._complex(words, where)
        if code == 13:
            return self._tensor(words, where)
        return Other(f"builtin's kind {code}")

    # --- VHLO's ---
    def _attribute_of(self, words: Bytes) -> Any:
        code = words.number()
        if code in _WORDS:
            number = words.number()
            if number >= len(_WORDS[code]):
                raise words.error(f"the word {number} of an attribute of kind {code}")
            return _WORDS[code][number]
        match code:
            case 1:
                return words.several(lambda: self.attribute(words, words.number()))
            case 2:
                return bool(words.number())
            case 6:
                return self._pairs(words)
            case 8:
                return self._float(words)
            case 9:
                return self._integer(words)
            case 10:
                return {"output_tuple_indices": words.several(words.signed),
                        "operand_index": words.signed(),
                        "operand_tuple_indices": words.several(words.signed)}
            case 14:
                return self.string(words)
            case 15:
                return self._dense(words)
            case 17:
                return self._of(words, words.number(), True)
            case 18:
                return words.several(words.signed)
            case 22:      # an axis, or a part of it
                name = self.attribute(words, words.number())
                if not words.number():
                    return {"name": name}
            case 23:      # the groups of devices along some axes
                mesh = self.attribute(words, words.number())
                if isinstance(mesh, str):
                    return {"mesh": Symbol(mesh), "axes": self.attribute(words, words.number())}
        return Opaque(f"of kind {code}")

    def _pairs(self, words: Bytes) -> dict[str, Any]:
        found = {}
        for _ in range(words.count("attributes")):
            name = self.attribute(words, words.number())
            value = self.attribute(words, words.number())
            if not isinstance(name, str):
                raise words.error("the name of an attribute")
            found[name] = value
        return found

    def _scalar(self, words: Bytes) -> np.dtype:
        type = self._of(words, words.number(), True)
        if not isinstance(type, Tensor) or type.shape:
            raise words.error("the type of a number")
        return type.dtype

    def _bits(self, words: Bytes, width: int) -> int:
        """An integer: one byte up to 8 bits, a signed number up to 64."""
        if width <= 8:
            return words.byte()
        if width <= 64:
            return words.signed() & ((1 << width) - 1)
        raise words.error(f"an integer of {width} bits")

    def _integer(self, words: Bytes) -> int:
        dtype = self._scalar(words)
        width = 1 if dtype.kind == "b" else _width(dtype)
        value = self._bits(words, width) & ((1 << width) - 1)
        return value - (1 << width) if width > 1 and value >> (width - 1) and (
            not dtype.name.startswith("uint")) else value

    def _float(self, words: Bytes) -> float:
        dtype = self._scalar(words)
        if dtype.kind in "iubc" or dtype.name.startswith(("int", "uint")):
            raise words.error("the type of a number")
        value = self._bits(words, 8 * dtype.itemsize)
        return float(np.frombuffer(value.to_bytes(dtype.itemsize, "little"), dtype)[0])

    def _dense(self, words: Bytes) -> Dense:
        type = self._of(words, words.number(), True)
        if not isinstance(type, Tensor) or not type.is_static:
            raise words.error("a constant that is no tensor of known sizes")
        content = bytes(words.bytes(words.number()))
        shape = tuple([size or 0 for size in type.shape])
        where = f"byte {words.start}"
        if not math.prod(shape):
            return Dense(np.zeros(shape, type.dtype), shape)
        return from_bytes(content, shape, type.dtype, where, packed=True)

    def _type_of(self, words: Bytes) -> Any:
        code = words.number()
        where = f"byte {words.start}"
        if code in _ELEMENTS:
            return Tensor((), dtype_of(_ELEMENTS[code], where))
        match code:
            case 1:
                return self._complex(words, where)
            case 8:      # of a function
                arguments, results = (words.several(
                    lambda: self.type(words, words.number()), "types") for _ in range(2))
                return FunctionType(arguments, results)
            case 20 | 21:      # a tensor; the encoding bounds its sizes
                if code == 21:
                    words.number()
                return self._tensor(words, where)
        return Other("token" if code == _TOKEN else f"kind {code}")

    def _complex(self, words: Bytes, where: str) -> Tensor:
        half = self._scalar(words)
        return Tensor((), dtype_of(
            "complex<f64>" if half.itemsize == 8 else "complex<f32>", where))

    def _tensor(self, words: Bytes, where: str) -> Tensor:
        shape = tuple([None if size == _UNKNOWN else size
                       for size in words.several(words.signed, "sizes")])
        return checked_tensor(shape, self._scalar(words), where)


def _width(dtype: np.dtype) -> int:
    found = re.search(r"\d+$", dtype.name)
    return int(found[0]) if found else 8 * dtype.itemsize


# --- operations -----------------------------------------------------------------------------------

_VERSION = re.compile(r"_v\d+$")

_WINDOW = "base_dilations padding window_dilations window_dimensions window_strides"
_CONVOLUTION = (
    "batch_group_count feature_group_count input_batch_dimension input_feature_dimension "
    "input_spatial_dimensions kernel_input_feature_dimension kernel_output_feature_dimension "
    "kernel_spatial_dimensions lhs_dilation output_batch_dimension output_feature_dimension "
    "output_spatial_dimensions padding precision_config rhs_dilation window_reversal "
    "window_strides")
_GATHER = ("collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims "
           "operand_batching_dims slice_sizes start_index_map start_indices_batching_dims")
# The attributes of operations, in the order in which they are stored: by name.
_STORED = {name: tuple(names.split()) for name, names in {
    # Of Shardy's dialect.
    "mesh": "mesh sym_name",
    "manual_computation": "in_shardings manual_axes out_shardings",
    "sharding_constraint": "sharding",
    # Of VHLO.
    **{f"all_gather_v{version}": "all_gather_dim channel_id replica_groups use_global_device_ids"
       for version in (1, 2)},
    **{f"all_reduce_v{version}": "channel_id replica_groups use_global_device_ids"
       for version in (1, 2)},
    **{f"all_to_all_v{version}": "channel_id concat_dimension replica_groups split_count "
                                 "split_dimension" for version in (1, 2)},
    "broadcast_in_dim_v1": "broadcast_dimensions",
    "call_v1": "callee",
    "collective_permute_v1": "channel_id source_target_pairs",
    "compare_v1": "compare_type comparison_direction",
    "composite_v1": "composite_attributes decomposition name version",
    "composite_v2": "composite_attributes decomposition name version",
    "concatenate_v1": "dimension",
    "constant_v1": "value",
    "convolution_v1": _CONVOLUTION,
    "custom_call_v1": "api_version backend_config call_target_name called_computations "
                      "has_side_effect operand_layouts output_operand_aliases result_layouts",
    "custom_call_v2": "api_version backend_config call_target_name called_computations "
                      "has_side_effect operand_layouts output_operand_aliases result_layouts ?",
    "dot_general_v1": "lhs_batching_dimensions lhs_contracting_dimensions precision_config "
                      "rhs_batching_dimensions rhs_contracting_dimensions",
    "dot_general_v2": "accumulation_type allow_imprecise_accumulation lhs_batching_dimensions "
                      "lhs_component_count lhs_contracting_dimensions lhs_precision_type "
                      "num_primitive_operations precision_config rhs_batching_dimensions "
                      "rhs_component_count rhs_contracting_dimensions rhs_precision_type",
    "dynamic_broadcast_in_dim_v1": "broadcast_dimensions known_expanding_dimensions "
                                   "known_nonexpanding_dimensions",
    "dynamic_conv_v2": _CONVOLUTION.replace("padding ", ""),
    "dynamic_gather_v2": _GATHER.replace("slice_sizes ", ""),
    "dynamic_iota_v1": "iota_dimension",
    "dynamic_slice_v1": "slice_sizes",
    "fft_v1": "fft_length fft_type",
    "func_v1": "arg_attrs function_type res_attrs sym_name sym_visibility",
    "gather_v1": _GATHER.replace("operand_batching_dims ", "").replace(
        " start_indices_batching_dims", ""),
    "gather_v2": _GATHER,
    "get_dimension_size_v1": "dimension",
    "iota_v1": "iota_dimension",
    "pad_v1": "edge_padding_high edge_padding_low interior_padding",
    "reduce_precision_v1": "exponent_bits mantissa_bits",
    "reduce_scatter_v1": "channel_id replica_groups scatter_dimension use_global_device_ids",
    "reduce_v1": "dimensions",
    "reduce_window_v1": _WINDOW,
    "reverse_v1": "dimensions",
    "rng_bit_generator_v1": "rng_algorithm",
    "rng_v1": "rng_distribution",
    "scatter_v1": "index_vector_dim indices_are_sorted inserted_window_dims "
                  "scatter_dims_to_operand_dims unique_indices update_window_dims",
    "scatter_v2": "index_vector_dim indices_are_sorted input_batching_dims inserted_window_dims "
                  "scatter_dims_to_operand_dims scatter_indices_batching_dims unique_indices "
                  "update_window_dims",
    "select_and_scatter_v1": "padding window_dimensions window_strides",
    "slice_v1": "limit_indices start_indices strides",
    "sort_v1": "dimension is_stable",
    "transpose_v1": "permutation",
    **{f"{name}_v2": "result_accuracy" for name in (
        "cbrt cosine exponential exponential_minus_one log log_plus_one logistic rsqrt sine sqrt "
        "tan tanh").split()},
}.items()}


def stored_attributes(name: str, values: list[Any], where: str) -> dict[str, Any]:
    """An operation's attributes by their names."""
    names = _STORED.get(name)
    if names is None and values:
        raise Unreadable(where, f"the operation {name} with attributes is not supported")
    if names is not None and len(names) != len(values):
        raise Unreadable(where, f"{len(values)} attributes of {name}")
    return {key: value for key, value in zip(names or (), values, strict=True) if key != "?"}


def name_of(name: str) -> str:
    """``add_v1`` is ``stablehlo.add``."""
    bare = _VERSION.sub("", name)
    return f"func.{bare}" if bare in ("call",) else f"stablehlo.{bare}"


def attributes_of(name: str, attributes: dict[str, Any], where: str) -> dict[str, Any]:
    """An operation's attributes, as StableHLO has them."""
    bare = _VERSION.sub("", name)
    found = dict(attributes)
    if bare == "call" and isinstance(found.get("callee"), str):
        found["callee"] = Symbol(found["callee"])
    if bare == "composite" and isinstance(found.get("decomposition"), str):
        found["decomposition"] = Symbol(found["decomposition"])
    if bare == "custom_call" and isinstance(found.get("called_computations"), list):
        found["called_computations"] = [
            Symbol(item) if isinstance(item, str) else item
            for item in found["called_computations"]]
    if bare == "dot_general" and isinstance(found.get("accumulation_type"), Tensor):
        found["algorithm"] = {key: found[key] for key in (
            "lhs_precision_type", "rhs_precision_type", "accumulation_type") if key in found}
    record = _RECORDS.get(bare)
    if record is not None:
        found[record[0]] = {key: _integers(found.pop(key)) for key in record[1] if key in found}
    if bare in ("convolution", "dynamic_conv"):
        found["dimension_numbers"] = _convolution(found, where)
    return found


_RECORDS = {
    "dot_general": ("dot_dimension_numbers", (
        "lhs_batching_dimensions", "rhs_batching_dimensions", "lhs_contracting_dimensions",
        "rhs_contracting_dimensions")),
    "gather": ("dimension_numbers", (
        "offset_dims", "collapsed_slice_dims", "operand_batching_dims",
        "start_indices_batching_dims", "start_index_map", "index_vector_dim")),
    "dynamic_gather": ("dimension_numbers", (
        "offset_dims", "collapsed_slice_dims", "operand_batching_dims",
        "start_indices_batching_dims", "start_index_map", "index_vector_dim")),
    "scatter": ("scatter_dimension_numbers", (
        "update_window_dims", "inserted_window_dims", "input_batching_dims",
        "scatter_indices_batching_dims", "scatter_dims_to_operand_dims", "index_vector_dim")),
}


def _integers(value: Any) -> Any:
    """A constant of integers as a list."""
    if isinstance(value, Dense) and len(value.shape) == 1 and value.shape[0] < 1 << 12:
        return [int(item) for item in value.array()]
    return value


def _convolution(found: dict[str, Any], where: str) -> tuple[list[Any], ...]:
    specs: list[list[Any]] = []
    for prefix, names in (("input", "bf"), ("kernel", "oi"), ("output", "bf")):
        long = {"b": "batch", "f": "feature", "o": "output_feature", "i": "input_feature"}
        space = _integers(found.pop(f"{prefix}_spatial_dimensions", None))
        places = [found.pop(f"{prefix}_{long[name]}_dimension", None) for name in names]
        if not isinstance(space, list) or any(type(place) is not int for place in places):
            raise Unreadable(where, "the dimensions of a convolution")
        labels: list[Any] = [None] * (len(space) + 2)
        for place, label in zip([*places, *space], [*names, *range(len(space))], strict=True):
            if not 0 <= place < len(labels):
                raise Unreadable(where, "the dimensions of a convolution")
            labels[place] = label
        specs.append(labels)
    return tuple(specs)
