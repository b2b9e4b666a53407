"""Users' primitives: JAX's forms of rules, and how they become maxjax's.

Where maxjax's rules have None for a zero tangent, JAX's have ``Zero``; operands to be transposed
are ``Linear`` marks in both, under the name ``UndefinedPrimal``.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes, pytree
from maxjax._base.pytree import PyTree
from maxjax._higher_order.callback import arrays_of, outside_programs
from maxjax._ir.interpret import interpreter
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.primitive import Primitive, forget_specs, registry
from maxjax._ir.rule_groups import Host
from maxjax._ir.runtime import installed
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Array, all_as_given, as_given, aval_of, context
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import ArrayLike, Function, HostValue, Params, Value
from maxjax._primitives.rules import Linear
from maxjax._transforms.autodiff import operands_of
from maxjax._transforms.batching import to_axis
from maxjax._transforms.jvp import instantiate

# A primitive's rule, in JAX's form or in maxjax's.
Rule = Callable[..., Any]


class Zero:
    """A tangent or cotangent that is zero, of which only the type is known.

    >>> jax.interpreters.ad.Zero(jax.core.ShapedArray((3,), jnp.float32))
    Zero(float32[3])
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    @staticmethod
    def from_primal_value(value: ArrayLike) -> Zero:
        """The zero tangent of a value."""
        return Zero(aval_of(operands_of([value])[0]).tangent())

    def instantiate(self) -> Any:
        """Zeros."""
        return instantiate(None, self.aval)

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


# Trees without leaves, as operands that are to be transposed are.
pytree.register(Zero, lambda zero: ((), zero.aval), lambda aval, _: Zero(aval))
pytree.register(Linear, lambda operand: ((), operand.aval), lambda aval, _: Linear(aval))


class ExactFloat(float):
    """A float among parameters; 0.0 and -0.0 are two."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ExactFloat):
            return self.hex() == other.hex()
        return float(self) == other

    __hash__ = float.__hash__


class CustomPrimitive(Primitive):
    """A user's operation: see ``maxjax.extend.core.Primitive``."""

    def __init__(self, name: str):
        known = registry.get(name)
        if known is not None and not known.cacheable:
            raise ValueError(f"{name!r} is a primitive of maxjax's that holds programs, which many "
                             "places know by its name: choose another name")
        super().__init__(
            name, abstract=self._abstract, registered=False,
            host=Host(reason="it has no kernel", specialize=self._specialize))
        self._abstract_eval: Callable[..., Any] | None = None
        self._impl: Callable[..., Any] | None = None
        self._composition: Callable[..., Any] | None = None
        self.has_mlir_rule = False
        kind = type(self)
        # A class of the user's may say so for all its instances, and have rules as methods.
        self.multiple_results = next(
            (vars(c)["multiple_results"] for c in kind.__mro__ if "multiple_results" in vars(c)
             and c is not Primitive), self.multiple_results)
        if kind.impl is not CustomPrimitive.impl:
            self._impl = self.impl
        if kind.abstract_eval is not CustomPrimitive.abstract_eval:
            self._abstract_eval = lambda *avals, **params: self.abstract_eval(*avals, **params)[0]

    # --- rules ---
    def def_impl(self, impl: Function) -> Function:
        """``impl(*arrays, **params)``: its value, of arrays; NumPy may compute it."""
        self._impl = impl
        forget_specs()
        return impl

    def def_abstract_eval(self, rule: Function) -> Function:
        """``rule(*avals, **params)``: the type of the result, a list of types for several."""
        self._abstract_eval = rule
        forget_specs()
        return rule

    def def_effectful_abstract_eval(self, rule: Function) -> Function:
        """As ``def_abstract_eval``, of a rule that gives the type and a set of effects, which has
        to be empty."""
        def typed(*avals: ShapedArray, **params: object) -> Any:
            result, effects = rule(*avals, **params)
            if effects:
                raise NotImplementedError(
                    f"primitive {self.name}: effects of users' primitives, got {effects}")
            return result

        self.def_abstract_eval(typed)
        return rule

    def def_composition(self, function: Callable[..., PyTree]) -> None:
        """``function(*arrays, **params)``: the same in other maxjax operations, which is
        compiled, and also runs where there is no NumPy rule."""
        self._composition = function
        self.composed = self._as_jaxpr
        self.lower = decomposed = lambda ctx, *xs, **params: ctx.decompose(
            lambda *arrays: function(*arrays, **params), *xs)
        # It is opened into its parts, as only the host may be able to do some of them.
        self.inner = dataclasses.replace(self.inner, expand=lambda in_avals, params: (
            self._opened(in_avals, params) if self.lower is decomposed else None))
        forget_specs()

    def impl(self, *args: Array, **params: object) -> Any:
        """The rule of values."""
        if self._impl is None:
            raise self._without_impl()
        return self._impl(*args, **params)

    def _without_impl(self) -> NotImplementedError:
        hint = (f". maxjax does not lower to MLIR: give {self.name} a kernel with "
                "maxjax.extend.mojo.register_elementwise (a Mojo function), a composition of other "
                "operations with maxjax.extend.mojo.register_composition or mlir.lower_fun, "
                "or only a NumPy rule with def_impl, which then runs on the host. See "
                "examples/custom_op.py" if self.has_mlir_rule else "")
        return NotImplementedError(
            f"Evaluation rule for '{self.name}' not implemented{hint}")

    def without_rule(self) -> Exception:
        return NotImplementedError(
            f"MLIR translation rule for primitive '{self.name}' not found for platform cpu")

    def abstract_eval(self, *avals: ShapedArray, **params: object) -> Any:
        """The types of the results, and effects: none."""
        return self._abstract(*avals, **params), frozenset()

    def _abstract(self, *avals: ShapedArray, **params: object) -> Any:
        if self._abstract_eval is None:
            raise NotImplementedError(f"Abstract evaluation for '{self.name}' not implemented")
        result = self._abstract_eval(*avals, **params)
        if isinstance(result, (tuple, list)) != self.multiple_results:
            raise ValueError(f"{self.name}.abstract_eval() method should return a tuple or a list "
                             f"iff {self.name}.multiple_results.")
        return tuple(result) if self.multiple_results else result

    # --- application ---
    def bind(self, *args: ArrayLike | np.generic, **params: object) -> Any:
        """Applies the primitive to arrays and numbers, under the transformations around it.

        Raises:
          TypeError: an argument is not an array, or a parameter cannot be hashed.
          NotImplementedError: a rule is missing.
        """
        for position, arg in enumerate(args):
            try:
                operands_of([arg])
            except TypeError:
                raise TypeError(
                    f"Error interpreting argument to {self.name} as a JAX value. The problematic "
                    f"value is of type {type(arg)} and was passed to {self.name} at position "
                    f"{position}.") from None
        operands = operands_of(args)
        params = {name: ExactFloat(value) if type(value) is float else value
                  for name, value in params.items()}
        if context.trace is installed.runtime:
            if self._impl is None and self._composition is None:
                raise self._without_impl()
            # A rule of values alone is run at once: it may do more than compute them.
            if self._abstract_eval is None or (
                    self._impl is not None and self._composition is None and self.lower is None):
                return self._run_now(operands, params)
        return super().bind(*operands, **params)

    def _run_now(self, operands: Sequence[Array], params: Params) -> Any:
        """On the values at once, without a rule of types."""
        result = self.impl(*operands, **params)
        results = [_handed_on(x) for x in (result if self.multiple_results else [result])]
        return results if self.multiple_results else results[0]

    def _specialize(self, in_avals: Sequence[ShapedArray], params: Params,
                    out_avals: Sequence[ShapedArray]) -> Callable[..., Any] | None:
        impl = self._impl
        if self._composition is not None and impl in (None, self._composition):
            return self._composed(in_avals, params)
        if impl is None:
            return None
        single = not self.multiple_results

        def run(*values: HostValue) -> Any:
            with outside_programs():
                result = impl(*arrays_of(values, in_avals), **params)
            results = [result] if single else list(result)
            if len(results) != len(out_avals):
                raise TypeError(f"the impl rule of {self.name} gives {len(results)} results, its "
                                f"abstract_eval rule {len(out_avals)}")
            checked = [self._checked(x, aval) for x, aval in zip(results, out_avals, strict=True)]
            return checked[0] if single else checked

        return run

    def _composed(self, in_avals: Sequence[ShapedArray],
                  params: Params) -> Callable[..., Any]:
        run = interpreter(self._as_jaxpr(in_avals, params))
        return run if self.multiple_results else lambda *values: run(*values)[0]

    def _opened(self, in_avals: Sequence[ShapedArray], params: Params) -> ClosedJaxpr | None:
        """The composition, if it can be traced and holds no arrays."""
        try:
            closed = self._as_jaxpr(in_avals, params)
        except Exception:       # it is reported if the primitive is ever compiled
            return None
        return None if closed.consts else closed

    def _as_jaxpr(self, in_avals: Sequence[ShapedArray], params: Params) -> ClosedJaxpr:
        """The composition for operands of these types."""
        function, single = self._composition, not self.multiple_results
        assert function is not None

        def flat(*xs: Value) -> Sequence[Any]:
            result = function(*xs, **params)
            return operands_of([result] if single else result)

        return trace_to_jaxpr(flat, list(in_avals), self.name)

    def _checked(self, result: object, aval: ShapedArray) -> np.ndarray:
        value = result.host() if isinstance(result, Array) else np.array(result)
        if value.shape != aval.shape:
            raise TypeError(f"the impl rule of {self.name} gives a result of shape {value.shape}, "
                            f"its abstract_eval rule says {aval.shape}")
        physical = dtypes.physical(aval.dtype)
        if value.dtype != physical and dtypes.canonical(value.dtype) != aval.dtype:
            raise TypeError(f"the impl rule of {self.name} gives a result of dtype {value.dtype}, "
                            f"its abstract_eval rule says {aval.dtype.name}")
        return value.astype(physical, copy=False)


def _handed_on(result: ArrayLike) -> Any:
    """A result of an ``impl``; an operand that was a number of Python's as that number."""
    operand = operands_of([result])[0]
    number = as_given(operand)
    return operand if number is operand else dtypes.typed_number(number)


# --- JAX's tables of rules ------------------------------------------------------------------------


def check_own(primitive: object) -> None:
    """Raises where something is not a user's primitive."""
    if not isinstance(primitive, CustomPrimitive):
        raise TypeError("rules are given to primitives made with maxjax.extend.core.Primitive, "
                        f"not to {primitive!r}")


class RuleTable(MutableMapping):
    """Rules by primitive: a view of what the primitives hold, in JAX's form."""

    def __init__(self, attribute: str, to_ours: Callable[[Primitive, Rule], Rule],
                 to_theirs: Callable[[Primitive, Rule], Rule]):
        self._attribute = attribute
        self._to_ours = to_ours
        self._to_theirs = to_theirs
        self._given: dict[Primitive, Any] = {}

    def __getitem__(self, primitive: Primitive) -> Any:
        rule = getattr(primitive, self._attribute)
        if rule is None:
            raise KeyError(primitive)
        given = self._given.get(primitive)
        return self._to_theirs(primitive, rule) if given is None else given

    def __setitem__(self, primitive: Primitive, rule: Rule) -> None:
        check_own(primitive)
        if not callable(rule):
            raise TypeError(f"Expected a callable value, got {rule}")
        self._given[primitive] = rule
        setattr(primitive, self._attribute, self._to_ours(primitive, rule))

    def __delitem__(self, primitive: Primitive) -> None:
        self[primitive]
        self._given.pop(primitive, None)
        setattr(primitive, self._attribute, None)

    def __iter__(self) -> Iterator[Primitive]:
        for primitive in (*registry.values(), *self._given):
            if getattr(primitive, self._attribute) is not None:
                yield primitive

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _with_zeros(values: Sequence[Value | None], avals: Sequence[ShapedArray]) -> list[Any]:
    return [Zero(aval) if x is None else x for x, aval in zip(values, avals, strict=True)]


def without_zero(value: object) -> Any:
    """None for a zero."""
    return None if value is None or type(value) is Zero else operands_of([value])[0]


def _our_jvp(primitive: Primitive, rule: Rule) -> Callable[..., Any]:
    def jvp(primals: Sequence[Array], tangents: Sequence[Array | None], /, **params: object) -> Any:
        avals = [aval_of(x).tangent() for x in primals]
        out, tangent = rule(tuple(all_as_given(primals)),
                            tuple(_with_zeros(all_as_given(tangents), avals)), **params)
        if primitive.multiple_results:
            return operands_of(out), [without_zero(t) for t in tangent]
        return operands_of([out])[0], without_zero(tangent)

    return jvp


def _their_jvp(primitive: Primitive, rule: Rule) -> Callable[..., Any]:
    def jvp(primals: Sequence[ArrayLike], tangents: Sequence[ArrayLike | Zero], /, **params: object
            ) -> Any:
        out, tangent = rule(operands_of(primals), [without_zero(t) for t in tangents], **params)
        if primitive.multiple_results:
            avals = [aval_of(x).tangent() for x in out]
            return out, _with_zeros([None] * len(out) if tangent is None else tangent, avals)
        return out, Zero(aval_of(out).tangent()) if tangent is None else tangent

    return jvp


def _our_transpose(primitive: Primitive, rule: Rule) -> Callable[..., Any]:
    def transpose(cotangent: Any, /, *operands: Array | Linear, **params: object) -> list[Any]:
        if primitive.multiple_results:
            avals: Any = primitive.abstract(*[aval_of(x) if isinstance(x, Array) else x.aval
                                              for x in operands], **params)
            cotangent = _with_zeros(cotangent, [aval.tangent() for aval in avals])
        results = rule(cotangent, *operands, **params)
        if len(results) != len(operands):
            raise TypeError(f"the transpose rule of {primitive.name} gives {len(results)} "
                            f"cotangents for {len(operands)} operands")
        return [without_zero(x) for x in results]

    return transpose


def _their_transpose(primitive: Primitive, rule: Rule) -> Callable[..., Any]:
    def transpose(cotangent: Any, /, *operands: Array | Linear, **params: object) -> Any:
        if primitive.multiple_results:
            cotangent = [without_zero(x) for x in cotangent]
        return rule(cotangent, *operands, **params)

    return transpose


def _our_batch(primitive: Primitive, rule: Rule) -> Callable[..., Any]:
    def batch(size: int, operands: Sequence[Array], axes: Sequence[int | None],
              /, **params: object) -> tuple[Any, Any]:
        out, axis = rule(tuple(operands), tuple(axes), **params)
        if primitive.multiple_results:
            return operands_of(out), list(axis)
        return operands_of([out])[0], axis

    return batch


def _their_batch(primitive: Primitive, rule: Rule) -> Callable[..., Any]:
    def batch(operands: Sequence[Array], axes: Sequence[int | None], /, **params: object) -> Any:
        size, = {x.shape[axis] for x, axis in zip(operands, axes, strict=True) if axis is not None}
        return rule(size, list(operands), list(axes), **params)

    return batch


def _their_axis_batch(primitive: Primitive, rule: Rule) -> Callable[..., Any]:
    def batch(size: int, axis_name: object, main_type: object, operands: Sequence[Array],
              axes: Sequence[int | None], /, **params: object) -> Any:
        return rule(size, list(operands), list(axes), **params)

    return batch


def _our_axis_batch(primitive: Primitive, rule: Rule) -> Callable[..., Any]:
    def batch(size: int, operands: Sequence[Array], axes: Sequence[int | None],
              /, **params: object) -> tuple[Any, Any]:
        # In place of the axis' name: no axis that a rule could ask for is known here.
        sized = functools.partial(rule, size, None, None)
        return _our_batch(primitive, sized)(size, operands, axes, **params)

    return batch


primitive_jvps = RuleTable("jvp", _our_jvp, _their_jvp)
primitive_transposes = RuleTable("transpose", _our_transpose, _their_transpose)
primitive_batchers = RuleTable("batch", _our_batch, _their_batch)
# Rules (size, axis name, None, operands, axes, **params).
axis_primitive_batchers = RuleTable("batch", _our_axis_batch, _their_axis_batch)


def batch_elementwise(primitive: Primitive) -> None:
    """Gives a primitive whose operands and results have one shape its batching rule."""
    def batch(size: int, operands: Sequence[Array], axes: Sequence[int | None],
              /, **params: object) -> tuple[Any, Any]:
        moved = [to_axis(x, axis, 0, size) for x, axis in zip(operands, axes, strict=True)]
        out = primitive.bind(*moved, **params)
        return out, [0] * len(out) if primitive.multiple_results else 0

    check_own(primitive)
    primitive.batch = batch
