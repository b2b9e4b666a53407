"""Functions from programs of StableHLO that others have written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from maxjax._base.config import enable_x64
from maxjax._higher_order.jit import jit_p
from maxjax._higher_order.jit_function import make_jit
from maxjax._ir.check import check_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import aval_of
from maxjax._ir.types import ShapedArray
from maxjax._stablehlo.bytecode import MAGIC, parse_bytecode
from maxjax._stablehlo.parser import parse
from maxjax._stablehlo.program import Function, Module, Operation, Tensor, Unreadable
from maxjax._transforms.autodiff import leaf_operand
from maxjax.export._control_flow import CONTROL_FLOW
from maxjax.export._custom_calls import custom_call
from maxjax.export._elementwise import ELEMENTWISE
from maxjax.export._reader import Reader, Rule
from maxjax.export._sharded import SHARDED
from maxjax.export._sorting import sort
from maxjax.export._structured import STRUCTURED

_RULES: dict[str, Rule] = {
    **ELEMENTWISE, **STRUCTURED, **CONTROL_FLOW, **SHARDED, "stablehlo.sort": sort,
    "stablehlo.custom_call": custom_call}
# Programs for so many different sizes of arguments are kept.
_MOST_SIZES = 64


def from_stablehlo(program: str | bytes | bytearray | memoryview) -> Callable[..., Any]:
    """A function from a program of StableHLO: one that JAX, PyTorch or TensorFlow has written.

    It takes the program's arguments and gives its result, a tuple where there are several, and is
    jitted. Its operations have the derivatives that they have in ``jax.lax``; those of functions
    with rules of their own (``jax.custom_vjp``) are not in a program. A loop that counts to a
    constant is a scan. Calls of LAPACK as JAX makes them are operations of ``jax.lax.linalg``.

    Nothing in a program is run but operations on arrays, so that one of unknown origin can be read.

    Args:
      program: text, in MLIR's generic or pretty form, or MLIR bytecode.

    Raises:
      ValueError: it is malformed, or has an operation that is not supported; the message says
        which, and where.

    >>> text = jax.jit(lambda x: 2 * x + 1).lower(jnp.ones(3)).as_text()
    >>> jax.export.from_stablehlo(text)(jnp.arange(3.))
    Array([1., 3., 5.], dtype=float32)
    """
    module = read_module(program)
    return Program(module).jitted()


def read_module(program: str | bytes | bytearray | memoryview) -> Module:
    if isinstance(program, str):
        return parse(program)
    content = bytes(program)
    if content.startswith(MAGIC):
        return parse_bytecode(content)
    try:
        return parse(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise Unreadable("byte 0", "this is neither text nor MLIR bytecode") from None


class Program:
    """A module's main function, for arguments of whatever sizes it takes."""

    def __init__(self, module: Module, name: str | None = None):
        self.module = module
        self.main = _main(module, name)
        self.reader = Reader(module, _RULES)
        self.name = module.name.removeprefix("jit_") or self.main.name
        self.known: dict[Any, ClosedJaxpr] = {}
        self.types: list[Tensor] = []
        for value in self.main.block.arguments:
            if not isinstance(value.type, Tensor):
                raise Unreadable(self.main.where, f"an argument of type {value.type.text[:60]}")
            self.types.append(value.type)
        if all(type.is_static for type in self.types):
            self.traced([ShapedArray([size or 0 for size in type.shape], type.dtype)
                         for type in self.types])
        else:
            self._check_names()

    def _check_names(self) -> None:
        """What is not supported is said at once, not by the first call."""
        for function in self.module.functions.values():
            self._check_block(function.block.operations)

    def _check_block(self, operations: Sequence[Operation]) -> None:
        for operation in operations:
            if operation.name not in _RULES and not operation.name.endswith(".return"):
                raise Unreadable(operation.where,
                                 f"the operation {operation.name} is not supported")
            for region in operation.regions:
                self._check_block(region.operations)

    def traced(self, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
        """The program for arguments of these types."""
        key = tuple([aval.shape for aval in avals])
        known = self.known.get(key)
        if known is None:
            with enable_x64(True):
                known = trace_to_jaxpr(self._run, avals, self.name)
            check_jaxpr(known)
            while len(self.known) >= _MOST_SIZES:
                self.known.pop(next(iter(self.known)))
            self.known[key] = known
        return known

    def _run(self, *operands: Any) -> list[Any]:
        try:
            results = self.reader.call(self.main.name, operands, self.main.where)
        except RecursionError:
            raise Unreadable(self.main.where, "it nests too deep") from None
        return [*map(leaf_operand, results)]

    def jitted(self) -> Any:
        def function(*arguments: Any) -> Any:
            results = self(*arguments)
            return results[0] if len(results) == 1 else tuple(results)

        function.__name__ = function.__qualname__ = self.name
        return make_jit(function)

    def __call__(self, *arguments: Any) -> list[Any]:
        operands = [leaf_operand(x) for x in arguments]
        avals = [aval_of(x).strip_weak_type() for x in operands]
        self._check(avals)
        closed = self.traced(avals)
        return list(jit_p.bind(*operands, jaxpr=closed, name=self.name))

    def _check(self, avals: Sequence[ShapedArray]) -> None:
        if len(avals) != len(self.types):
            raise TypeError(f"{self.name} takes {len(self.types)} arguments, got {len(avals)}")
        for number, (aval, type) in enumerate(zip(avals, self.types, strict=True)):
            if aval.dtype != type.dtype or aval.ndim != len(type.shape) or any(
                    want is not None and want != size
                    for want, size in zip(type.shape, aval.shape, strict=True)):
                hint = "; jax.enable_x64 allows 64 bits" if type.dtype.itemsize == 8 and (
                    aval.dtype.itemsize == 4) else ""
                raise TypeError(
                    f"{self.name}: its argument {number} is {_shown(type)}, got "
                    f"{aval.str_short()}{hint}")


def _shown(type: Tensor) -> str:
    sizes = ",".join(["?" if size is None else str(size) for size in type.shape])
    return f"{type.dtype.name}[{sizes}]"


def _main(module: Module, name: str | None) -> Function:
    if name is None:
        name = "main" if "main" in module.functions or len(module.functions) != 1 else next(
            iter(module.functions))
    found = module.functions.get(name)
    if found is None:
        raise Unreadable("the module", f"there is no function {name}")
    return found
