"""Types above arrays: ``jax.experimental.hijax.HiType`` and ``MutableHiType``.

A value of such a type is a Python object that holds arrays. While a function is being traced, a
mutable one stays so, and an immutable one is a ``HiValue``; a ``HiPrimitive`` on it is what its
``to_lojax`` does, at once. Where a value is an argument of a jitted function, its arrays are the
arguments, and the function gets a value made of tracers.

A mutable value belongs to the trace that made it. A function that is traced and touches one from
outside touches the arrays in it, each as an array reference (``maxjax._ir.refs``): so loops,
branches, cached traces and derivatives treat what it writes as they treat references.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from maxjax._base import dtypes, pytree
from maxjax._base.interrupts import entered_at_once
from maxjax._base.pytree import PyTree
from maxjax._ir.refs import IN_VALUE, AbstractRef, Ref, Storage, read, write
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array, Trace, Tracer, context
from maxjax._primitives.convert import convert_element_type

# The classes of values, and what tells the type of one.
hi_classes: dict[type, Callable[[Any], Any]] = {}


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Declares that values of a class have a type above arrays.

    Raises:
      TypeError: ``val_cls`` is not a class.

    >>> class Pair: ...
    >>> jax.experimental.hijax.register_hitype(Pair, lambda pair: None)
    """
    if not isinstance(val_cls, type):
        raise TypeError(f"register_hitype: val_cls must be a class, got {val_cls!r}")
    hi_classes[val_cls] = typeof_fn


class HiValue:
    """A value of an immutable type in a traced function: see ``maxjax._higher_order.hi_values``.

    Attributes:
      aval: its type.
      arrays: what the type lowers it to.
      carrier: what derivatives by it are derivatives by; None where it has none, or needs none.
    """

    __slots__ = ("aval", "arrays", "carrier")

    def __init__(self, aval: Any, arrays: Sequence[Any], carrier: Any):
        self.aval = aval
        self.arrays = arrays
        self.carrier = carrier

    def __getattr__(self, name: str) -> Any:
        """What the type declares for its values."""
        declared = getattr(type(self.aval), name, None)
        function = getattr(declared, "of_values", None)
        if function is None:
            raise AttributeError(f"DynamicJaxprTracer has no attribute {name}", name=name, obj=self)
        return function(self)

    def __repr__(self) -> str:
        return f"JitTracer({self.aval})"

    def _flatten(self) -> tuple[list[Any], tuple[Any, bool]]:
        carrier = [] if self.carrier is None else [self.carrier]
        return [*self.arrays, *carrier], (self.aval, self.carrier is not None)

    @staticmethod
    def _unflatten(structure: tuple[Any, bool], leaves: Sequence[Any]) -> Any:
        aval, has_carrier = structure
        arrays = list(leaves)
        carrier = arrays.pop() if has_carrier else None
        # Where there is nothing to trace it is an object of the user's again.
        if all(isinstance(leaf, Array) and not isinstance(leaf, Tracer) for leaf in leaves):
            return aval.raise_val(*arrays)
        return HiValue(aval, arrays, carrier)


class _Hooks:
    """What the module of ``HiValue``s does for those that it is built on.

    Attributes:
      lift: a pytree, its values as ``HiValue``s.
      apply: ``(primitive, arguments)`` -> the result of a ``VJPHiPrimitive`` that takes or gives
        values, in a traced function.
    """

    lift: Callable[[PyTree], Any] = staticmethod(lambda tree: tree)
    apply: Callable[[Any, tuple[Any, ...]], Any]


hooks = _Hooks()


def lifted_carry(init: PyTree) -> Any:
    """The first carry of a loop, its values as pytrees of arrays."""
    return hooks.lift(init) if hi_classes else init


pytree.register(HiValue, HiValue._flatten, HiValue._unflatten)


def hi_type_of(x: object) -> Any:
    """The type of a value of a registered class; None for all others."""
    if x.__class__ is HiValue:
        return x.aval       # type: ignore[attr-defined]
    typeof_fn = hi_classes.get(x.__class__)
    return None if typeof_fn is None else typeof_fn(x)


def any_hi_value(leaves: Sequence[object]) -> bool:
    """Whether a value of a registered class is among the leaves."""
    return any(leaf.__class__ in hi_classes for leaf in leaves)


class HiArguments(Exception):
    """Values of types above arrays are among arguments that are to be arrays."""


def cur_qdd(x: Any) -> Any:
    """What the type of a mutable value does not say, as it is now (quasi-dynamic data).

    >>> class Counter:
    ...     def cur_qdd(self):
    ...         return "three leaves"
    >>> jax.experimental.cur_qdd(Counter())
    'three leaves'
    """
    return x.cur_qdd()


# --- the arrays in a value ------------------------------------------------------------------------


def _arrays_in(aval: Any, qdd: Any, value: Any) -> list[Any]:
    return list(aval.read_loval(qdd, value) if aval.has_qdd else aval.lower_val(value))


class _AsItIs:
    """``with _as_it_is:`` primitives do their work on the objects that they are given."""

    def __enter__(self) -> None:
        self.previous = context.hi_as_it_is
        context.hi_as_it_is = True

    @entered_at_once
    def __exit__(self, *_: object) -> None:
        context.hi_as_it_is = self.previous


def _read(aval: Any, qdd: Any, value: Any) -> list[Any]:
    with _AsItIs():
        return _arrays_in(aval, qdd, value)


def _update(aval: Any, qdd: Any, value: Any, arrays: Sequence[Any]) -> None:
    with _AsItIs():
        aval.update_from_loval(qdd, value, *arrays)


def _made_in(trace: Trace, value: Any) -> None:
    """Notes that a mutable value belongs to a trace, which keeps it alive."""
    if trace is not installed.runtime:
        if trace not in context.hi_traces:
            trace.hi_values = {}
            context.hi_traces.add(trace)
        trace.hi_values[id(value)] = value


def _owner(value: Any) -> Trace:
    """The trace that a mutable value belongs to, or whose arrays it holds meanwhile."""
    key = id(value)
    borrower = context.hi_borrowers.get(key)
    if borrower is not None:
        return borrower
    for trace in context.hi_traces:
        if key in trace.hi_values:
            return trace
    return installed.runtime


class _ArrayIn(Storage):
    """One of the arrays in a mutable value, as what an array reference refers to."""

    __slots__ = ("aval", "of", "position", "qdd")

    def __init__(self, owner: Trace, of: Any, aval: Any, qdd: Any, position: int):
        self.owner = owner
        self.of, self.aval, self.qdd, self.position = of, aval, qdd, position
        self.invalid = ""
        self.lent = None

    def _arrays(self) -> list[Any]:
        if cur_qdd(self.of) != self.qdd:
            raise TypeError(
                f"a value of type {self.aval} held {self.qdd} when a function that closes over it "
                f"was traced, and now holds {cur_qdd(self.of)}: pass it as an argument")
        return _read(self.aval, self.qdd, self.of)

    @property
    def value(self) -> Any:         # type: ignore[override]
        return installed.runtime.operand(self._arrays()[self.position])

    @value.setter
    def value(self, value: Any) -> None:
        arrays = self._arrays()
        arrays[self.position] = value
        _update(self.aval, self.qdd, self.of, arrays)

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, _ArrayIn) and self.of is other.of
                and self.position == other.position)

    def __hash__(self) -> int:
        return hash((id(self.of), self.position))


class _FromOutside:
    """A mutable value of another trace, which holds the current trace's arrays meanwhile."""

    def __init__(self, value: Any, aval: Any, owner: Trace):
        self.value, self.aval, self.qdd = value, aval, cur_qdd(value)
        self.before = _read(aval, self.qdd, value)
        self.refs = [
            None if array.__class__ is Ref else Ref(
                AbstractRef(installed.runtime.operand(array).aval, kind=IN_VALUE),
                _ArrayIn(owner, value, aval, self.qdd, n))
            for n, array in enumerate(self.before)]
        self.given = [array if ref is None else read(ref)
                      for ref, array in zip(self.refs, self.before, strict=True)]
        _update(aval, self.qdd, value, self.given)
        self.borrower = context.hi_borrowers.get(id(value))
        context.hi_borrowers[id(value)] = context.trace

    def restore(self) -> list[Any]:
        """Gives the value its own arrays back.

        Returns:
          Those that it held.

        Raises:
          NotImplementedError: they are of other types than its own.
        """
        if self.borrower is None:
            del context.hi_borrowers[id(self.value)]
        else:
            context.hi_borrowers[id(self.value)] = self.borrower
        qdd = cur_qdd(self.value)
        held = _read(self.aval, qdd, self.value)
        _update(self.aval, self.qdd, self.value, self.before)
        if not _same_types(self.before, held):
            raise NotImplementedError(
                f"a traced function changes a value of type {self.aval} from outside from "
                f"{self.qdd} to {qdd}: pass it as an argument of the jitted function")
        return held

    def write(self, held: Sequence[Any]) -> None:
        """Writes what has changed, under the current trace."""
        for ref, new, old in zip(self.refs, held, self.given, strict=True):
            if ref is None or new is old:
                continue
            array, aval = installed.runtime.operand(new), ref.aval.inner_aval
            if array.weak_type != aval.weak_type:
                array = convert_element_type(array, aval.dtype, aval.weak_type)
            write(ref, array, "a write")


def _same_types(before: Sequence[Any], after: Sequence[Any]) -> bool:
    if len(before) != len(after):
        return False
    for old, new in zip(before, after, strict=True):
        if old.__class__ is Ref or new.__class__ is Ref:
            if old is not new:
                return False
            continue
        old, new = map(installed.runtime.operand, (old, new))
        if old.shape != new.shape or old.dtype != new.dtype:
            return False
    return True


# --- primitives -----------------------------------------------------------------------------------


class HiPrimitive:
    """A primitive on values of types above arrays; a subclass defines what it does.

    In a traced function it is the operations of its ``to_lojax``, whose derivatives and batching
    rules are used.

    Args:
      name: used in errors.

    >>> class Twice(jax.experimental.hijax.HiPrimitive):
    ...     def to_lojax(self, x):
    ...         return 2 * x
    >>> Twice("twice").bind(1.0)
    2.0
    """

    multiple_results = False

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name

    # --- what subclasses define ---
    def is_high(self, *avals: Any, **params: Any) -> bool:
        """Whether an operand or result is of a type above arrays."""
        return True

    def is_effectful(self, params: Any) -> bool:
        """Whether it has effects."""
        return False

    def abstract_eval(self, *arg_avals: Any, **params: Any) -> Any:
        """The types of the results."""
        raise AssertionError("must override")

    def to_lojax(self, *lotypes_wrapped_in_hitypes: Any, **params: Any) -> Any:
        """What the primitive does, by operations on arrays."""
        raise AssertionError(f"must override for {self}")

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        """The results and their tangents. Not used: those of ``to_lojax`` are."""
        raise AssertionError("must override")

    def transpose(self, *args: Any, **params: Any) -> Any:
        """The cotangents of linear operands. Not used: those of ``to_lojax`` are."""
        raise AssertionError("must override")

    # --- application ---
    def bind(self, *args: Any, **params: Any) -> Any:
        """Applies it.

        Raises:
          NotImplementedError: it has a derivative of its own, and derivatives may be wanted.
        """
        # What it does, it does with the user's objects.
        args = tuple([x.aval.raise_val(*x.arrays) if x.__class__ is HiValue else x for x in args])
        if context.hi_as_it_is or context.trace is installed.runtime:
            return self.to_lojax(*args, **params)
        outside: list[_FromOutside] = []
        mutable = False
        for value in args:
            aval = hi_type_of(value)
            if aval is not None and aval.has_qdd:
                mutable = True
                owner = _owner(value)
                if owner is not context.trace and all(x.value is not value for x in outside):
                    outside.append(_FromOutside(value, aval, owner))
        try:
            result = self.to_lojax(*args, **params)
        finally:
            held = [x.restore() for x in outside]
        for one, arrays in zip(outside, held, strict=True):
            one.write(arrays)
        several = isinstance(result, (tuple, list))
        outs = list(result) if several else [result]
        for n, out in enumerate(outs):
            aval = hi_type_of(out)
            if aval is not None and aval.has_qdd:
                mutable = True
                _made_in(context.trace, out)
            elif aval is not None:
                outs[n] = HiValue(aval, aval.lower_val(out), None)
        if not mutable and type(self).jvp is not HiPrimitive.jvp:
            self._refuse_own_derivative(args)
        return type(result)(outs) if several else outs[0]

    def _refuse_own_derivative(self, args: Sequence[Any]) -> None:
        if any(isinstance(x, Tracer) and dtypes.has_tangents(x.dtype) for x in args):
            refuse_hitypes(f"{self.name} on traced arrays, with a derivative of its own")


def refuse_hitypes(what: str) -> NoReturn:
    """Raises NotImplementedError for what needs more of types above arrays."""
    raise NotImplementedError(
        f"{what}: of types above arrays (jax.experimental.hijax) maxjax has those whose values "
        "jitted functions take and close over, carry through loops and differentiate by, if they "
        "are immutable, or change. Register a class of several arrays as a pytree for the rest")


# --- arguments of jitted functions ----------------------------------------------------------------


class _Type(NamedTuple):
    """What is known of a value when a function is traced."""

    aval: Any
    qdd: Any


class _Taken:
    """A value taken apart: a pytree of the arrays in it."""

    def __init__(self, type_: _Type, arrays: Sequence[Any]):
        self.type = type_
        self.arrays = arrays

    def value(self) -> Any:
        """The value, under the current trace."""
        aval, qdd = self.type
        if not aval.has_qdd:
            return HiValue._unflatten((aval, False), self.arrays)
        with _AsItIs():
            value = aval.new_from_loval(qdd, *self.arrays)
        _made_in(context.trace, value)
        return value


pytree.register(_Taken, lambda x: (x.arrays, x.type),
                lambda type_, arrays: _Taken(type_, list(arrays)))


def _is_whole(x: object) -> bool:
    return x.__class__ in hi_classes or x.__class__ is _Taken


def _take(x: Any) -> Any:
    """A value taken apart, under the current trace; all else as it is."""
    aval = hi_type_of(x)
    if aval is None:
        return x
    if not aval.has_qdd:
        return _Taken(_Type(aval, None), _arrays_in(aval, None, x))
    owner = _owner(x)
    qdd = cur_qdd(x)
    if owner is context.trace:
        return _Taken(_Type(aval, qdd), _read(aval, qdd, x))
    outside = _FromOutside(x, aval, owner)
    return _Taken(_Type(aval, qdd), outside.restore())


def _put(x: Any) -> Any:
    return x.value() if x.__class__ is _Taken else x


def _assign(value: Any, new: _Taken) -> None:
    """Gives a mutable value what a function has left in it, under the current trace."""
    aval, qdd = new.type
    owner = _owner(value)
    outside = None if owner is context.trace else _FromOutside(value, aval, owner)
    _update(aval, qdd, value, new.arrays)
    if outside is not None:
        outside.write(outside.restore())


def on_arrays(function: Callable[..., PyTree]) -> Callable[..., Any]:
    """A function of values taken apart.

    Returns:
      A function that gives the result, of values taken apart as well, and what the mutable values
      among its arguments hold at its end.
    """
    @functools.wraps(function)
    def flat(*args: PyTree, **kwargs: PyTree) -> tuple[Any, list[_Taken]]:
        mutable: list[Any] = []

        def put(x: Any) -> Any:
            value = _put(x)
            if x.__class__ is _Taken and x.type.aval.has_qdd:
                mutable.append(value)
            return value

        try:
            args, kwargs = pytree.map(put, (args, kwargs), is_leaf=_is_whole)
            result = function(*args, **kwargs)
            return pytree.map(_take, result, is_leaf=_is_whole), [_take(x) for x in mutable]
        finally:
            mutable.clear()     # nothing else outlives the trace by it

    return flat


def taken_apart(args: Any, kwargs: Any) -> tuple[Any, Any, list[Any]]:
    """Arguments with their values taken apart, and the mutable ones among these."""
    mutable: list[Any] = []

    def take(x: Any) -> Any:
        taken = _take(x)
        if taken is not x and taken.type.aval.has_qdd:
            mutable.append(x)
        return taken

    args, kwargs = pytree.map(take, (args, kwargs), is_leaf=_is_whole)
    return args, kwargs, mutable


def put_together(result: Any, mutable: Sequence[Any]) -> Any:
    """The result of a function ``on_arrays``; the mutable arguments get what it leaves in them."""
    result, finals = result
    for value, new in zip(mutable, finals, strict=True):
        _assign(value, new)
    return pytree.map(_put, result, is_leaf=_is_whole)
