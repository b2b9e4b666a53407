"""Mutable array references: an array under a name that stays, read and written in place.

A reference belongs to the trace that it was made under, which simply holds its present value. A
function that is traced to a jaxpr and touches a reference from outside captures it: the value there
becomes one more input of the jaxpr and, if the function writes, the last value one more output
(``ClosedJaxpr.refs``). The code that binds the jaxpr reads and writes the reference itself. So
jaxprs stay pure, and transformations of them need not know of references.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from maxjax._base.errors import UnexpectedTracerError
from maxjax._base.source import SourceLine, current_line
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Trace, Tracer, context
from maxjax._ir.types import ShapedArray

if TYPE_CHECKING:
    from maxjax._ir.trace import Array
    from maxjax._ir.typing import Value


class AbstractRef:
    """The type of a reference.

    Attributes:
      inner_aval: the type of the array.
      memory_space, kind: stored and compared.

    >>> jax.ref.AbstractRef(jax.core.ShapedArray((3,), jnp.float32))
    Ref{float32[3]}
    """

    __slots__ = ("inner_aval", "kind", "memory_space")

    def __init__(self, inner_aval: ShapedArray, memory_space: Hashable = None,
                 kind: Hashable = None):
        self.inner_aval = inner_aval
        self.memory_space = memory_space
        self.kind = kind

    shape = property(lambda self: self.inner_aval.shape, doc="The sizes of the dimensions.")
    dtype = property(lambda self: self.inner_aval.dtype, doc="The type of the elements.")
    ndim = property(lambda self: len(self.inner_aval.shape), doc="The number of dimensions.")
    size = property(lambda self: self.inner_aval.size, doc="The number of elements.")
    weak_type = property(lambda self: self.inner_aval.weak_type)
    sharding = property(lambda self: self.inner_aval.sharding)

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        return f"Ref{{{self.inner_aval.str_short(short_dtypes=short_dtypes)}}}"

    __repr__ = str_short

    def update(self, inner_aval: ShapedArray | None = None, memory_space: Hashable = None,
               kind: Hashable = None) -> AbstractRef:
        """A copy with changes."""
        return AbstractRef(self.inner_aval if inner_aval is None else inner_aval,
                           memory_space or self.memory_space, kind or self.kind)

    # As for arrays: a reference in a value of a type above arrays is itself.
    def lo_ty(self) -> list[AbstractRef]:
        return [self]

    def lower_val(self, value: object) -> list[Any]:
        return [value]

    def raise_val(self, value: object) -> Any:
        return value

    def _key(self) -> Any:
        return self.inner_aval, self.memory_space, self.kind

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractRef) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


class Storage:
    """What a reference refers to: the trace that it was made under, and its value there.

    An argument of a function that is being traced has no trace of its own (None): whatever trace it
    is used in captures it.
    """

    __slots__ = ("invalid", "lent", "owner", "value")

    def __init__(self, owner: Trace | None, value: Value | None = None):
        self.owner = owner
        self.value = value
        self.invalid = ""       # "frozen" or "freed", once it is
        # While a function has references to its slices: that function, the kind of its trace and
        # the name of the argument. Meanwhile nobody else may use it.
        self.lent: tuple[str, str, str] | None = None


def no_array(ref: Ref, name: str, position: int | None = None) -> TypeError:
    """The error of a function of arrays that is given a reference."""
    where = "" if position is None else f" at position {position}"
    return TypeError(
        f"{name} got a Ref of type {ref.aval!r}{where}, but a Ref can't be passed where an array "
        "is expected. Did you forget to read its value with `ref[...]`?")


class Ref:
    """A mutable array reference; made by ``jax.new_ref``.

    It is read and written by indexing, as NumPy's arrays are. Nothing else is done with it:
    operations take its value, ``ref[...]``.

    >>> ref = jax.new_ref(jnp.zeros(3))
    >>> ref[1] += 2.
    >>> ref
    Ref([0., 2., 0.], dtype=float32)
    """

    __module__ = "maxjax"
    __slots__ = ("__dict__", "__weakref__", "_argument", "_line", "_storage", "aval")
    __array_priority__ = 0

    def __init__(self, aval: AbstractRef, refs: Storage):
        self.aval = aval
        self._storage = refs
        self._argument: Argument | None = None
        self._line: SourceLine | None = None      # where a traced function made it

    shape = property(lambda self: self.aval.shape, doc="The sizes of the dimensions.")
    dtype = property(lambda self: self.aval.dtype, doc="The type of the elements.")
    ndim = property(lambda self: self.aval.ndim, doc="The number of dimensions.")
    size = property(lambda self: self.aval.size, doc="The number of elements.")
    sharding = property(lambda self: read(self).sharding, doc="Where the value lies.")
    committed = property(lambda self: True, doc="Whether the value has to stay there.")
    format = property(lambda self: read(self).format, doc="Layout and sharding of the value.")

    if TYPE_CHECKING:
        # What maxjax.numpy installs.
        def __getitem__(self, index: object) -> Any: ...
        def __setitem__(self, index: object, value: object) -> None: ...
        def addupdate(self, x: object, idx: object = ()) -> None: ...
        at: Any

    def unsafe_buffer_pointer(self) -> int:
        """The address of the present value; a write changes it."""
        return int(read(self).unsafe_buffer_pointer())

    def __len__(self) -> int:
        return len(self.aval.inner_aval)

    def __repr__(self) -> str:
        value = self._storage.value
        if value is None or isinstance(value, Tracer):
            kind = "JitTracer" if value is None else repr(value).partition("(")[0]
            return f"{kind}({self.aval!r})"
        return f"Ref{repr(value).removeprefix('Array')}"

    def __copy__(self) -> Ref:
        return Ref(self.aval, self._storage)


class Argument(NamedTuple):
    """Which argument of a traced function a reference stands for."""

    position: int
    name: str
    serial: int
    of: Ref | None      # the caller's reference, where it is the same storage


_serials = itertools.count()


def make_ref(value: Array, memory_space: Hashable = None, kind: Hashable = None) -> Ref:
    """A new reference that belongs to the current trace."""
    ref = Ref(AbstractRef(value.aval, memory_space, kind), Storage(context.trace, value))
    if context.trace is not installed.runtime:
        ref._line = current_line()
    return ref


def argument_ref(aval: AbstractRef, position: int, name: str, of: Ref | None = None,
                 storage: Storage | None = None) -> Ref:
    """What a traced function is given for an argument that is a reference.

    Args:
      of: the caller's reference, whose storage it shares where only that will do: the rules of
        custom derivatives remember references, and use them once the trace has ended.
    """
    if storage is None:
        storage = Storage(None) if of is None else of._storage
    ref = Ref(aval, storage)
    ref._argument = Argument(position, name, next(_serials), of)
    return ref


class RefUse(NamedTuple):
    """A reference that a jaxpr reads, and that it writes if there is an ``operation``."""

    ref: Ref
    operation: str


class RefState:
    """The value of a reference from outside in a trace to a jaxpr.

    ``ref`` is the name that the function uses; ``initial`` the input that stands for the value, or
    None where that is given by other means.
    """

    __slots__ = ("initial", "operation", "ref", "value")

    def __init__(self, ref: Ref | None, value: Any, initial: Any = None):
        self.ref = ref
        self.initial = initial
        self.value = value
        self.operation = ""


class RefsTouched(NotImplementedError):
    """A function that should have been traced to a pure jaxpr touches references from outside.

    Attributes:
      uses: the references.
      traced: what it was traced to, if the caller may go on with that: with the references' values
        as further inputs, and the new ones of those that are written as further outputs.
    """

    def __init__(self, kind: Hashable, uses: tuple[RefUse, ...], traced: Any = None):
        super().__init__(
            f"a function traced for {kind} touches array references from outside, of types "
            f"{', '.join(repr(use.ref.aval) for use in uses)}: not supported")
        self.uses = uses
        self.traced = traced


SET, ADD = "a set/swap", "an addupdate"
# The kind of references whose writes have no derivatives.
NO_DERIVATIVES = "no_grad_no_remat"


def read(ref: Ref) -> Any:
    """The value of a reference, under the current trace."""
    storage = ref._storage
    if storage.lent is not None:
        raise both_ways(ref, *storage.lent)
    trace: Any = context.trace
    while trace is not storage.owner:
        state = trace.reference(ref)
        if state is not None:
            return state.value
        trace = trace.outwards()
        if trace is None:
            _check_live(ref)
            break
    return storage.value


def write(ref: Ref, value: Value, operation: str = SET) -> None:
    """Replaces the value of a reference, under the current trace.

    Raises:
      Exception: the value belongs to a transformation that the reference is outside of.
    """
    storage = ref._storage
    if storage.lent is not None:
        raise both_ways(ref, *storage.lent)
    trace: Any = context.trace
    while trace is not storage.owner:
        state = trace.reference(ref)
        if state is not None:
            state.value = value
            state.operation = operation
            return
        outer = trace.outwards()
        if outer is None:
            _check_live(ref)
            break
        value = trace.write_outside(ref, value, operation)
        trace = outer
    storage.value = value


def both_ways(ref: Ref, debug_info: str, kind: str, name: str) -> ValueError:
    return ValueError(
        f"when tracing {debug_info} for {kind}, a mutable array reference of type {ref.aval} was "
        f"both closed over and passed as the argument {name}")


def check_not_both(one: Ref, other: Ref, debug_info: str, kind: str) -> None:
    """Raises ValueError where a function also uses an argument under another name."""
    arguments = [ref._argument for ref in (one, other) if ref._argument is not None]
    if arguments:
        # The youngest is the function's own; those of functions around it are closed over.
        raise both_ways(one, debug_info, kind, max(arguments, key=lambda x: x.serial).name)


def check_distinct(refs: Sequence[tuple[Ref, str]], debug_info: str, kind: str) -> None:
    """Raises ValueError where one reference is passed under two names."""
    names: dict[Storage, str] = {}
    for ref, name in refs:
        if ref._storage in names:
            raise ValueError(
                "only one reference to a mutable array may be passed as an argument to a function, "
                f"but when tracing {debug_info} for {kind} the mutable array reference of type "
                f"{ref.aval} appeared at both {names[ref._storage]} and {name}.")
        names[ref._storage] = name


def read_all(uses: Sequence[RefUse]) -> list[Any]:
    """The values of references, under the current trace."""
    return [read(use.ref) for use in uses]


def write_back(uses: Sequence[RefUse], results: Sequence[Value]) -> list[Any]:
    """Writes the last results to the references that a jaxpr writes; gives the other results."""
    written = [use for use in uses if use.operation]
    count = len(results) - len(written)
    for use, value in zip(written, results[count:], strict=True):
        write(use.ref, value, use.operation)
    return list(results[:count])


def _check_live(ref: Ref) -> None:
    owner, value = ref._storage.owner, ref._storage.value
    if owner is None or not owner.live:
        raise UnexpectedTracerError(
            "Encountered an unexpected tracer. A function transformed by JAX had a side effect, "
            f"allowing for a reference to an intermediate value with type {ref.aval} wrapped in a "
            f"{type(value).__name__ if isinstance(value, Tracer) else 'DynamicJaxprTracer'} to "
            "escape the scope of the transformation.\nJAX transformations require that functions "
            "explicitly return their outputs, and disallow saving intermediate values to global "
            "state.")

