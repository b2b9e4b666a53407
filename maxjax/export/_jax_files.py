"""The files that real JAX's ``jax.export`` writes: their layout is read off such files.

A file is a FlatBuffer with the types of arguments and results, the structures of both, and a
portable artifact of StableHLO, which has the program.
"""

from __future__ import annotations

import base64
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from maxjax import lax, random
from maxjax._base import dtypes
from maxjax._base.config import enable_x64
from maxjax._base.flatbuffer import Buffer, Damaged, Table
from maxjax._base.specs import PartitionSpec
from maxjax._base.tree_format import UnregisteredType, decode_tree
from maxjax._base.treedef import PyTreeDef
from maxjax._higher_order import export_format, export_jax
from maxjax._higher_order.exported import Exported
from maxjax._higher_order.exporting import without_rules
from maxjax._higher_order.safety_checks import DisabledSafetyCheck
from maxjax._ir.dimensions import is_dimension
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.shape_parser import parse_dimension
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.symbolic import SymbolicScope, solve
from maxjax._ir.types import ShapedArray
from maxjax._stablehlo.bytecode import MAGIC
from maxjax._transforms.autodiff import leaf_operand
from maxjax.export._stablehlo import Program, read_module

# The version of files of JAX 0.12.0.1, which is in all of them.
VERSIONS = range(2, export_jax.NEWEST + 1)

_IMPLEMENTATIONS = ("threefry2x32", "rbg", "unsafe_rbg")


def is_jax_file(content: bytes) -> bool:
    """Whether bytes look like a file that JAX has exported."""
    return not content.startswith(export_format.MAGIC) and (
        MAGIC in content or b"func.func" in content)


def read_jax_file(content: bytes) -> Exported:
    """The function of a file.

    Raises:
      ValueError: the file is damaged, is of another version, or has what is not supported.
    """
    try:
        return _read(Buffer(content).root())
    except UnregisteredType:
        raise
    except Damaged as error:
        raise ValueError(f"cannot deserialize: the file of JAX's jax.export is damaged: {error}"
                         ) from error
    except RecursionError:
        raise ValueError("cannot deserialize: the file of JAX's jax.export nests too deep"
                         ) from None


def _read(table: Table) -> Exported:
    version = table.number(export_jax.VERSION, "H")
    if version not in VERSIONS:
        raise ValueError(f"cannot deserialize: a file of JAX's jax.export of version {version}; "
                         f"those up to {VERSIONS[-1]} can be read")
    name = table.text(export_jax.NAME)
    if table.texts(export_jax.ORDERED_EFFECTS) or table.texts(export_jax.UNORDERED_EFFECTS):
        raise ValueError(f"cannot deserialize: the function {name} has effects")
    scope = SymbolicScope(())
    ins, outs = ([_type_of(part, scope) for part in table.tables(field)]
                 for field in (export_jax.IN_TYPES, export_jax.OUT_TYPES))
    in_tree, out_tree = _tree(table, export_jax.IN_TREE), _tree(table, export_jax.OUT_TREE)
    if (in_tree.num_leaves, out_tree.num_leaves) != (len(ins), len(outs)):
        raise Damaged("its structures are not those of its types")
    in_node = in_tree.node_data()
    if in_node is None or in_node[0] is not tuple or len(in_tree.children()) != 2:
        raise Damaged("its arguments are no pair of positional ones and keywords")
    program = _Module(table, name, ins, outs)
    is_static = not any(is_dimension(size) for aval in (*ins, *outs) for size in aval.shape)
    derivative = table.table(export_jax.DERIVATIVE)
    known = None if derivative is None else _read(derivative)
    in_specs, out_specs, axes = _shardings(table, ins, outs)
    return Exported(
        fun_name=name, in_tree=in_tree, in_avals=tuple(ins), out_tree=out_tree,
        out_avals=tuple(outs), platforms=program.platforms,
        disabled_safety_checks=tuple(map(_check, table.tables(export_jax.DISABLED_CHECKS))),
        program=program.at([aval for aval in ins if aval.dtype != dtypes.float0])
        if is_static else None,      # type: ignore[arg-type]  # made for each call's sizes
        _get_vjp=None if known is None else lambda _: known,
        calling_convention_version=table.number(export_jax.CALLING_CONVENTION, "H"),
        nr_devices=table.number(export_jax.DEVICES, "I", 1) if axes else 1,
        in_specs=in_specs, out_specs=out_specs, mesh_axes=axes,
        _read_module=program)


def _type_of(table: Table, scope: SymbolicScope) -> ShapedArray:
    """A type: sizes are texts, as they may be symbolic."""
    code = table.number(2, "B")
    if code >= len(export_jax.DTYPES):
        raise Damaged(f"a dtype of the number {code}")
    name = export_jax.DTYPES[code]
    if name.startswith("key"):
        keys = len(export_jax.DTYPES) - len(_IMPLEMENTATIONS)
        dtype: Any = random.key(0, impl=_IMPLEMENTATIONS[code - keys]).dtype
    else:
        dtype = dtypes.float0 if name == "float0" else np.dtype(
            getattr(ml_dtypes, name, None) or name)
    sizes = []
    for text in table.texts(1):
        if not export_format.is_proportionate(text):
            raise Damaged(f"the size {text[:60]} is out of all proportion")
        try:
            sizes.append(int(text) if text.isdecimal() else parse_dimension(text, scope))
        except Exception:      # of all that a text may be
            raise Damaged(f"the size {text[:60]}") from None
    known = [size for size in sizes if isinstance(size, int)]
    if any(size < 0 for size in known) or math.prod(known) > 1 << 40 or len(sizes) > 64:
        raise Damaged(f"the shape {sizes}")
    return ShapedArray(sizes, dtype)


def _tree(table: Table, field: int) -> PyTreeDef:
    found = table.table(field)
    if found is None:
        raise Damaged("it has no structure")
    try:
        return decode_tree(_node(found))
    except UnregisteredType:
        raise
    except Damaged:
        raise
    except Exception as error:      # a class's own function may raise anything
        raise Damaged(f"its structure: {type(error).__name__}: {error}") from error


def _node(table: Table) -> Any:
    """A node of a structure, as ``encode_tree`` has it."""
    kind = table.number(0, "B")
    children = [_node(child) for child in table.tables(1)]
    if kind in (export_jax.LEAF, export_jax.NONE):
        return "*" if kind == export_jax.LEAF else None
    if kind in (export_jax.TUPLE, export_jax.LIST):
        return ["tuple" if kind == export_jax.TUPLE else "list", children]
    if kind == export_jax.DICT:
        names = table.texts(2)
        if len(names) != len(children):
            raise Damaged("a dictionary with other keys than values")
        return ["dict", children, names]
    if kind != export_jax.CUSTOM:
        raise Damaged(f"a node of the kind {kind}")
    return ["custom", children, table.text(3), base64.b64encode(table.bytes(4)).decode()]


def _check(table: Table) -> DisabledSafetyCheck:
    if table.number(0, "B") == 0:
        return DisabledSafetyCheck.platform()
    return DisabledSafetyCheck.custom_call(table.text(1))


# --- shardings ------------------------------------------------------------------------------------

def _shardings(table: Table, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> tuple[
        tuple[PartitionSpec | None, ...], tuple[PartitionSpec | None, ...],
        tuple[tuple[str, int, bool], ...]]:
    """The specifications of arguments and results, and the axes of the mesh of all of them."""
    meshes, listed = table.tables(export_jax.MESHES), table.tables(export_jax.SHARDINGS)
    if len(meshes) != 1 or not listed:
        return (), (), ()
    names, sizes = meshes[0].texts(1), meshes[0].numbers(0, "I")
    kinds = meshes[0].numbers(2, "B") or [0] * len(names)
    if len({len(names), len(sizes), len(kinds)}) > 1 or len(set(names)) < len(names) or (
            math.prod(sizes) != table.number(export_jax.DEVICES, "I", 1)):
        raise Damaged("a mesh that is none of its devices")
    found = []
    for sharding in listed:
        spec = sharding.table(1)
        parts = [] if spec is None else [tuple(part.texts(0)) for part in spec.tables(0)]
        used = [name for part in parts for name in part]
        if not set(used) <= set(names) or len(set(used)) < len(used):
            raise Damaged(f"the specification {parts} is none of the axes {names}")
        found.append(PartitionSpec(*[
            None if not part else part[0] if len(part) == 1 else part for part in parts]))
    specs = []
    for field, avals in ((export_jax.IN_SHARDINGS, ins), (export_jax.OUT_SHARDINGS, outs)):
        places = table.numbers(field, "I")
        if len(places) != len(avals) or any(place > len(found) for place in places):
            raise Damaged("the shardings are not those of its types")
        chosen = [None if not place else found[place - 1] for place in places]
        if any(spec is not None and len(spec) > aval.ndim
               for spec, aval in zip(chosen, avals, strict=True)):
            raise Damaged("a specification is of more dimensions than its array")
        specs.append(tuple(chosen))
    return specs[0], specs[1], tuple([
        (name, size, kind == export_jax.EXPLICIT)
        for name, size, kind in zip(names, sizes, kinds, strict=True)])


# --- programs -------------------------------------------------------------------------------------

class _Module:
    """A file's program, for arguments of the sizes of a call.

    Attributes:
      artifact: the bytes of StableHLO.
      kept: the arguments that the program takes.
    """

    def __init__(self, table: Table, name: str, ins: Sequence[ShapedArray],
                 outs: Sequence[ShapedArray]):
        self.name = name
        self.artifact = table.bytes(export_jax.MODULE)
        self.platforms = tuple(table.texts(export_jax.PLATFORMS))
        self.kept = tuple(table.numbers(export_jax.KEPT, "H"))
        self.ins, self.outs = ins, outs
        if list(self.kept) != sorted(set(self.kept)) or any(
                number >= len(ins) or ins[number].dtype == dtypes.float0
                and not table.number(export_jax.HAS_SIZES, "B") for number in self.kept):
            raise Damaged("the arguments that its program takes")
        if not self.platforms:
            raise Damaged("it is for no platform")
        self.program = Program(read_module(self.artifact))

    def at(self, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
        """The program of all arguments but those of float0, for these types."""
        try:
            with enable_x64(True):
                closed = trace_to_jaxpr(self._run, avals, self.name)
        except (TypeError, AttributeError) as error:      # types that are not the program's
            raise ValueError(f"cannot deserialize: the function {self.name}: {error}") from error
        wanted = [aval for aval in self.outs if aval.dtype != dtypes.float0]
        found = closed.out_avals
        if len(wanted) != len(found) or any(
                a.dtype != b.dtype or a.ndim != b.ndim or any(
                    not is_dimension(size) and size != actual
                    for size, actual in zip(a.shape, b.shape, strict=True))
                for a, b in zip(wanted, found, strict=True)):
            raise ValueError("cannot deserialize: the results of the program are not of the types "
                             "that the file names")
        return without_rules(closed)

    def _run(self, *operands: Any) -> list[Any]:
        arrays = iter(operands)
        given = [None if aval.dtype == dtypes.float0 else next(arrays) for aval in self.ins]
        if any(given[number] is None for number in self.kept):
            # Where sizes are symbolic those of float0 are taken, too, as truth values.
            known = [(f"args[{number}]", self.ins[number].shape, np.shape(x))
                     for number, x in enumerate(given) if x is not None]
            sizes = solve(*zip(*known, strict=True)) if known else {}
            given = [lax.full(_shape_at(aval.shape, sizes), False, bool) if x is None else x
                     for aval, x in zip(self.ins, given, strict=True)]
        taken = [_words(given[number]) for number in self.kept]
        if len(self.platforms) > 1:
            place = self.platforms.index("cpu") if "cpu" in self.platforms else 0
            taken.insert(0, leaf_operand(np.int32(place)))
        # Those of float0 are truth values in the program.
        results = self.program(*taken)
        return [leaf_operand(_of_words(x, aval))
                for x, aval in zip(results, self.outs, strict=True)
                if aval.dtype != dtypes.float0]


def _shape_at(shape: Sequence[Any], sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple([size.value(sizes) if is_dimension(size) else size for size in shape])


def _words(x: Any) -> Any:
    """Keys as their words."""
    return random.key_data(x) if isinstance(x.dtype, dtypes.KeyDType) else x


@functools.cache
def _implementation(dtype: Any) -> str:
    return next(name for name in _IMPLEMENTATIONS if random.key(0, impl=name).dtype == dtype)


def _of_words(x: Any, aval: ShapedArray) -> Any:
    if not isinstance(aval.dtype, dtypes.KeyDType):
        return x
    return random.wrap_key_data(x, impl=_implementation(aval.dtype))
