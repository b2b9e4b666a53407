"""StableHLO as the text of HLO, XLA's own form of programs.

What differs: an operation of several values takes and gives a tuple; a region is a computation of
its own, which sees its parameters alone; a broadcast keeps the sizes of its operand's dimensions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from maxjax._stablehlo.parser import parse
from maxjax._stablehlo.program import Block, Dense, Operation, Tensor, Type, Value
from maxjax._stablehlo.text import element_type

_LOCATION = re.compile(r'\(("(?:[^"\\]|\\.)*")(?:\(("(?:[^"\\]|\\.)*"):(\d+):\d+\))?\)', re.DOTALL)
_ELEMENTS = {"i1": "pred", "complex<f32>": "c64", "complex<f64>": "c128"}
# HLO has an operation for these of CHLO; the others are calls of their names.
_CLIENT = frozenset(("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "sinh"))
_RETURNS = ("stablehlo.return", "func.return")


def hlo_text(stablehlo: str) -> str:
    """The text of a module that ``module_text`` has written, as HLO.

    Raises:
      NotImplementedError: HLO has no form for an operation: sizes are symbolic.
    """
    module = parse(stablehlo)
    main = module.functions["main"].block
    writer = _Writer()
    writer.computation("main", main.arguments, main, label="Arg")
    layout = ", ".join([_type(value.type) for value in main.arguments])
    results = [_type(kind) for kind in module.functions["main"].results]
    returned = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return "\n\n".join([
        f"HloModule {module.name}, entry_computation_layout={{({layout})->{returned}}}",
        *writer.computations[:-1], f"ENTRY {writer.computations[-1]}"]) + "\n"


# --- types and numbers ----------------------------------------------------------------------------

def _type(kind: Type, order: Sequence[int] | None = None) -> str:
    """A type with its layout: dimensions from the fastest on, by rows unless it is said."""
    if not isinstance(kind, Tensor) or None in kind.shape:
        raise NotImplementedError("HLO has no symbolic sizes: as_text(dialect='stablehlo')")
    name = element_type(kind.dtype)
    name = _ELEMENTS.get(name) or name.lower().replace("ui", "u")
    if name.startswith("i"):
        name = f"s{name[1:]}"
    rank = len(kind.shape)
    layout = _braced(range(rank)[::-1] if order is None else order) if rank else ""
    return f"{name}[{','.join(map(str, kind.shape))}]{layout}"


def _tuple(kinds: Iterable[str]) -> str:
    return f"({', '.join(kinds)})"


def _braced(values: Iterable[object]) -> str:
    return f"{{{','.join(map(str, values))}}}"


def _literal(value: np.ndarray) -> str:
    if value.ndim:
        parts = ", ".join([_literal(part) for part in value])
        return f"{{ {parts} }}" if value.ndim > 1 else f"{{{parts}}}"
    number: Any = value[()]
    if value.dtype == np.bool_:
        return "true" if number else "false"
    if value.dtype.kind == "c":
        return f"({_literal(value.real)}, {_literal(value.imag)})"
    return str(number).removesuffix(".0")


def _ints(value: Any) -> list[int]:
    return [int(number) for number in (value.array().reshape(-1) if isinstance(value, Dense)
                                       else value)]


# --- attributes, by operation ---------------------------------------------------------------------

def _listed(**names: str) -> Callable[[Operation], list[str]]:
    """Lists of integers, by what they are called in HLO and in StableHLO."""
    return lambda operation: [f"{ours}={_braced(_ints(operation.attributes[theirs]))}"
                              for ours, theirs in names.items()]


def _numbers(**names: str) -> Callable[[Operation], list[str]]:
    return lambda operation: [f"{ours}={operation.attributes[theirs]}"
                              for ours, theirs in names.items()]


def _flags(operation: Operation, *names: str) -> list[str]:
    return [f"{name}=true" for name in names if operation.attributes.get(name)]


def _compare(operation: Operation) -> list[str]:
    said = [f"direction={operation.attributes['comparison_direction']}"]
    return [*said, "order=TOTAL"] if (
        operation.attributes.get("compare_type") == "TOTALORDER") else said


def _slice(operation: Operation) -> list[str]:
    starts, limits, strides = (_ints(operation.attributes[name])
                               for name in ("start_indices", "limit_indices", "strides"))
    ranges = [f"[{start}:{limit}]" if step == 1 else f"[{start}:{limit}:{step}]"
              for start, limit, step in zip(starts, limits, strides, strict=True)]
    return [f"slice={{{', '.join(ranges)}}}"]


def _pad(operation: Operation) -> list[str]:
    low, high, interior = (_ints(operation.attributes[name]) for name in (
        "edge_padding_low", "edge_padding_high", "interior_padding"))
    said = [f"{before}_{after}" + (f"_{between}" if between else "")
            for before, after, between in zip(low, high, interior, strict=True)]
    return [f"padding={'x'.join(said)}"] if said else []


def _records(name: str, **names: str) -> Callable[[Operation], list[str]]:
    """The lists of a record; of those that may be left out, what is there."""
    def said(operation: Operation) -> list[str]:
        record = operation.attributes[name]
        return [f"{ours}={_braced(_ints(record[theirs]))}" for ours, theirs in names.items()
                if record.get(theirs) or ours in _ALWAYS]
    return said


_ALWAYS = frozenset(("offset_dims", "collapsed_slice_dims", "start_index_map",
                     "update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims",
                     "lhs_contracting_dims", "rhs_contracting_dims"))


def _dot(operation: Operation) -> list[str]:
    return _records("dot_dimension_numbers", **{
        f"{side}_{kind}_dims": f"{side}_{long}_dimensions" for kind, long in (
            ("batch", "batching"), ("contracting", "contracting")) for side in ("lhs", "rhs")
        })(operation)


def _gather(operation: Operation) -> list[str]:
    numbers = operation.attributes["dimension_numbers"]
    return [*_records("dimension_numbers", **{name: name for name in (
        "offset_dims", "collapsed_slice_dims", "start_index_map", "operand_batching_dims",
        "start_indices_batching_dims")})(operation),
        f"index_vector_dim={numbers['index_vector_dim']}",
        f"slice_sizes={_braced(_ints(operation.attributes['slice_sizes']))}",
        *_flags(operation, "indices_are_sorted")]


def _scatter(operation: Operation) -> list[str]:
    numbers = operation.attributes["scatter_dimension_numbers"]
    return [*_records("scatter_dimension_numbers", **{name: name for name in (
        "update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims",
        "input_batching_dims", "scatter_indices_batching_dims")})(operation),
        f"index_vector_dim={numbers['index_vector_dim']}",
        *_flags(operation, "indices_are_sorted", "unique_indices")]


def _window(sizes: Sequence[int], operation: Operation, strides: str, lhs: str, rhs: str
            ) -> list[str]:
    """How windows lie, in HLO's words; what says nothing is left out."""
    if not sizes:
        return []
    given = operation.attributes
    parts = [f"size={'x'.join(map(str, sizes))}"]
    for name, key in (("stride", strides), ("lhs_dilate", lhs), ("rhs_dilate", rhs)):
        values = _ints(given[key]) if key in given else []
        if any(value != 1 for value in values):
            parts.append(f"{name}={'x'.join(map(str, values))}")
    pads = given["padding"].array() if "padding" in given else np.zeros((0, 2), int)
    if pads.any():
        parts.insert(1, f"pad={'x'.join([f'{low}_{high}' for low, high in pads])}")
    return [f"window={{{' '.join(parts)}}}"]


def _reduce_window(operation: Operation) -> list[str]:
    return _window(_ints(operation.attributes["window_dimensions"]), operation, "window_strides",
                   "base_dilations", "window_dilations")


def _convolution(operation: Operation) -> list[str]:
    labels: Any = operation.attributes["dimension_numbers"]
    kernel = operation.operands[1].type
    assert isinstance(kernel, Tensor)
    sizes = [kernel.shape[labels[1].index(number)] or 0 for number in range(len(kernel.shape) - 2)]
    said = ["".join(map(str, part)) for part in labels]
    groups = [f"{name}={operation.attributes[name]}"
              for name in ("feature_group_count", "batch_group_count")
              if operation.attributes.get(name, 1) != 1]
    return [*_window(sizes, operation, "window_strides", "lhs_dilation", "rhs_dilation"),
            f"dim_labels={said[0]}_{said[1]}->{said[2]}", *groups]


def _custom_call(operation: Operation) -> list[str]:
    given = operation.attributes
    said = [f"custom_call_target={json.dumps(given['call_target_name'])}"]
    if "operand_layouts" in given:
        kinds = [_type(x.type, _ints(order)) for x, order in zip(
            operation.operands, given["operand_layouts"], strict=True)]
        said.append(f"operand_layout_constraints={{{', '.join(kinds)}}}")
    if "mhlo.backend_config" in given:
        # LAPACK's options are letters, which are bytes, and numbers and flags.
        options = ", ".join([f"{key} = {_option(value)}"
                             for key, value in given["mhlo.backend_config"].items()])
        said += ["api_version=API_VERSION_TYPED_FFI", f"backend_config={{{options}}}"]
    return said


def _option(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value} : {'ui8' if value >= ord('A') else 'i32'}"


_SAID: dict[str, Callable[[Operation], list[str]]] = {
    "broadcast_in_dim": _listed(dimensions="broadcast_dimensions"),
    "transpose": _listed(dimensions="permutation"),
    "reverse": _listed(dimensions="dimensions"),
    "reduce": _listed(dimensions="dimensions"),
    "dynamic_slice": _listed(dynamic_slice_sizes="slice_sizes"),
    "concatenate": lambda operation: [f"dimensions={{{operation.attributes['dimension']}}}"],
    "iota": _numbers(iota_dimension="iota_dimension"),
    "reduce_precision": _numbers(exponent_bits="exponent_bits", mantissa_bits="mantissa_bits"),
    "sort": lambda operation: [f"dimensions={{{operation.attributes['dimension']}}}",
                               *_flags(operation, "is_stable")],
    "fft": lambda operation: [f"fft_type={operation.attributes['fft_type']}",
                              *_listed(fft_length="fft_length")(operation)],
    "rng": lambda operation: [
        f"distribution=rng_{operation.attributes['rng_distribution'].lower()}"],
    "rng_bit_generator": lambda operation: [
        f"algorithm=rng_{operation.attributes['rng_algorithm'].lower()}"],
    "compare": _compare, "slice": _slice, "pad": _pad, "dot_general": _dot, "gather": _gather,
    "scatter": _scatter, "reduce_window": _reduce_window, "select_and_scatter": _reduce_window,
    "convolution": _convolution, "custom_call": _custom_call,
}
_NAMES = {"broadcast_in_dim": "broadcast", "dot_general": "dot", "case": "conditional",
          "optimization_barrier": "opt-barrier"}
_ELEMENTWISE = frozenset((
    "add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "power", "atan2",
    "and", "or", "xor", "not", "shift_left", "shift_right_arithmetic", "shift_right_logical",
    "negate", "abs", "sign", "ceil", "floor", "round_nearest_even", "round_nearest_afz",
    "exponential", "exponential_minus_one", "log", "log_plus_one", "sqrt", "rsqrt", "cbrt",
    "logistic", "sine", "cosine", "tan", "tanh", "popcnt", "count_leading_zeros", "is_finite",
    "real", "imag", "complex", "select", "clamp", "convert", "bitcast_convert", "reshape",
    "dynamic_update_slice"))
# What takes a tuple of its operands.
_ON_TUPLES = frozenset(("while", "optimization_barrier"))


class _Writer:
    """Writes the computations of a module, each after those that it names."""

    def __init__(self) -> None:
        self.computations: list[str] = []
        self._names: dict[str, int] = {}
        self._lines: list[str] = []

    def name(self, stem: str) -> str:
        number = self._names[stem] = self._names.get(stem, 0) + 1
        return f"{stem}.{number}"

    def line(self, stem: str, kind: str, operation: str, operands: Iterable[str],
             more: Iterable[str] = ()) -> str:
        name = self.name(stem)
        said = "".join([f", {text}" for text in more])
        self._lines.append(f"{name} = {kind} {operation}({', '.join(operands)}){said}")
        return name

    # --- computations ---
    def computation(self, stem: str, parameters: Sequence[Value], block: Block, *,
                    label: str = "parameter", packed: bool = False,
                    kept: Sequence[Value] = ()) -> str:
        """Writes a block as a computation, and returns its name.

        Args:
          parameters: the values that it takes, those from around it included.
          packed: they come, if there is not exactly one, as a tuple.
          kept: values that are returned behind the block's own.
        """
        outer, self._lines = self._lines, []
        names: dict[Value, str] = {}
        if packed and len(parameters) != 1:
            whole = self.line("arg_tuple", _tuple([_type(x.type) for x in parameters]),
                              "parameter", ["0"])
            for number, x in enumerate(parameters):
                names[x] = self.element(whole, _type(x.type), number)
        else:
            for number, x in enumerate(parameters):
                names[x] = self.line(label, _type(x.type), "parameter", [str(number)])
        returned: Sequence[Value] = ()
        for operation in block.operations:
            if operation.name in _RETURNS:
                returned = operation.operands
            else:
                self.operation(operation, names)
        results = [*returned, *kept]
        if len(results) == 1:
            root = names[results[0]]
            place = next(number for number, line in enumerate(self._lines)
                         if line.startswith(f"{root} = "))
        else:
            self.line("tuple", _tuple([_type(x.type) for x in results]), "tuple",
                      [names[x] for x in results])
            place = len(self._lines) - 1
        self._lines[place] = f"ROOT {self._lines[place]}"
        name = self.name(stem)
        self.computations.append("\n".join([f"{name} {{", *[f"  {line}" for line in self._lines],
                                            "}"]))
        self._lines = outer
        return name

    def element(self, whole: str, kind: str, number: int) -> str:
        return self.line("get-tuple-element", kind, "get-tuple-element", [whole],
                         [f"index={number}"])

    # --- operations ---
    def operation(self, operation: Operation, names: dict[Value, str]) -> None:
        """Writes an operation, and notes what its results are called."""
        dialect, _, name = operation.name.partition(".")
        said = [*_frontend(operation), *_metadata(operation)]
        operands = [names[x] for x in operation.operands]
        orders = operation.attributes.get("result_layouts") or [None] * len(operation.results)
        kinds = [_type(x.type, None if order is None else _ints(order))
                 for x, order in zip(operation.results, orders, strict=True)]
        kind = kinds[0] if len(kinds) == 1 else _tuple(kinds)
        if name == "constant":
            value = operation.attributes["value"].array()
            whole = self.constant(value, kind)
        elif dialect == "chlo":
            whole = self._client(name, kind, operands, said)
        elif name == "case":
            whole = self._conditional(operation, names, kind, said)
        elif name == "while":
            self._while(operation, names, said)
            return
        elif name in _ON_TUPLES:
            whole = self._on_tuple(name, kinds, operands, said)
        elif name in _ELEMENTWISE or name in _SAID:
            if name == "broadcast_in_dim":
                operands, more = self._broadcast(operation, operands[0])
            else:
                more = _SAID[name](operation) if name in _SAID else []
            if name == "rng":
                del operands[2:]        # the shape, which the type of the result tells
            opcode = (_NAMES.get(name) or name).replace("_", "-")
            whole = self.line(opcode, kind, opcode, operands,
                              [*more, *self._called(name, operation), *said])
        else:
            raise NotImplementedError(f"HLO has no form for {operation.name}: "
                                      "as_text(dialect='stablehlo')")
        if len(kinds) == 1:
            names[operation.results[0]] = whole
        else:
            for number, (x, part) in enumerate(zip(operation.results, kinds, strict=True)):
                names[x] = self.element(whole, part, number)

    def constant(self, value: np.ndarray, kind: str) -> str:
        """A constant; one whose elements are all the same is broadcast."""
        scalar = value.reshape(-1)[:1]
        if value.ndim and value.size > 1 and value.tobytes() == scalar.tobytes() * value.size:
            one = self.constant(scalar.reshape(()), _type(Tensor((), value.dtype)))
            return self.line("broadcast", kind, "broadcast", [one], ["dimensions={}"])
        return self.line("constant", kind, "constant", [_literal(value)])

    def _client(self, name: str, kind: str, operands: list[str], said: Sequence[str]) -> str:
        if name == "atan":
            scalar = re.sub(r"\[.*", "[]", kind)
            one = self.line("constant", scalar, "constant", ["1" if "c" not in scalar
                                                             else "(1, 0)"])
            if kind != scalar:
                one = self.line("broadcast", kind, "broadcast", [one], ["dimensions={}"])
            return self.line("atan2", kind, "atan2", [operands[0], one], said)
        if name in _CLIENT:
            return self.line(name, kind, name, operands, said)
        return self.line("custom-call", kind, "custom-call", operands,
                         [f'custom_call_target="chlo.{name}"', *said])

    def _broadcast(self, operation: Operation, operand: str) -> tuple[list[str], list[str]]:
        """Dimensions of size 1 that grow are reshaped away beforehand."""
        x, result = operation.operands[0].type, operation.results[0].type
        dims = _ints(operation.attributes["broadcast_dimensions"])
        assert isinstance(x, Tensor) and isinstance(result, Tensor)
        kept = [number for number, dim in enumerate(dims) if x.shape[number] == result.shape[dim]]
        if len(kept) < len(dims):
            small = Tensor(tuple([x.shape[number] for number in kept]), x.dtype)
            operand = self.line("reshape", _type(small), "reshape", [operand])
        return [operand], [f"dimensions={_braced([dims[number] for number in kept])}"]

    def _called(self, name: str, operation: Operation) -> list[str]:
        """The computations of regions that combine elements."""
        made = [self.computation("region", region.arguments, region)
                for region in operation.regions]
        words = ("select", "scatter") if name == "select_and_scatter" else ("to_apply",)
        return [f"{word}={region}" for word, region in zip(words, made, strict=bool(made))
                ] if made else []

    def _on_tuple(self, name: str, kinds: Sequence[str], operands: Sequence[str],
                  said: Iterable[str]) -> str:
        opcode = _NAMES.get(name) or name
        if len(kinds) != 1:
            operands = [self.line("tuple", _tuple(kinds), "tuple", operands)]
        return self.line(opcode, kinds[0] if len(kinds) == 1 else _tuple(kinds), opcode, operands,
                         said)

    def _while(self, operation: Operation, names: dict[Value, str], said: Iterable[str]) -> None:
        """A loop carries what its regions use from around them as well."""
        condition, body = operation.regions
        around = [*dict.fromkeys(_free(condition, body))]
        inner = [self.computation(
            f"while_{stem}", [*region.arguments, *around], region, packed=True, kept=kept)
            for stem, region, kept in (("body", body, around), ("cond", condition, ()))]
        kinds = [_type(x.type) for x in (*operation.operands, *around)]
        whole = self._on_tuple("while", kinds,
                               [names[x] for x in (*operation.operands, *around)],
                               [f"condition={inner[1]}", f"body={inner[0]}", *said])
        for number, x in enumerate(operation.results):
            names[x] = whole if len(kinds) == 1 else self.element(whole, kinds[number], number)

    def _conditional(self, operation: Operation, names: dict[Value, str], kind: str,
                     said: Iterable[str]) -> str:
        branches, given = [], []
        for region in operation.regions:
            around = [*dict.fromkeys(_free(region))]
            branches.append(self.computation("branch", around, region, packed=True))
            given.append(names[around[0]] if len(around) == 1 else self.line(
                "tuple", _tuple([_type(x.type) for x in around]), "tuple",
                [names[x] for x in around]))
        return self.line("conditional", kind, "conditional",
                         [names[operation.operands[0]], *given],
                         [f"branch_computations={{{', '.join(branches)}}}", *said])


def _free(*blocks: Block) -> Iterator[Value]:
    """The values that blocks use and do not define."""
    for block in blocks:
        known = {*block.arguments}
        for operation in block.operations:
            for x in (*operation.operands, *_free(*operation.regions)):
                if x not in known:
                    yield x
            known.update(operation.results)


def _frontend(operation: Operation) -> list[str]:
    """What a user says of an operation."""
    given = operation.attributes.get("mhlo.frontend_attributes")
    if not given:
        return []
    said = _braced([f"{key}={json.dumps(value)}" for key, value in given.items()])
    return [f"frontend_attributes={said}"]


def _metadata(operation: Operation) -> list[str]:
    """The scopes and the line that an operation comes from."""
    found = _LOCATION.fullmatch(operation.location)
    if found is None:
        return []
    said = [f"op_name={found[1]}"]
    if found[2]:
        said.append(f"source_file={found[2]} source_line={found[3]}")
    return [f"metadata={{{' '.join(said)}}}"]
