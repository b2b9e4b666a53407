"""The functions that ``vjp`` and ``linearize`` return: linear maps of pytrees.

They are pytrees themselves, whose leaves are the residuals: so they may be results and arguments of
functions under ``jit`` and ``vmap``.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes, pytree, tree_equality
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.source import TRANSPOSE, kept_source_lines, scopes, transformed
from maxjax._base.tracebacks import boundary
from maxjax._base.treedef import PyTreeDef
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.refs import ADD, AbstractRef, Ref, read, write
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array, all_as_given, as_given, context
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Value
from maxjax._primitives.builders import add_tangents
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.rules import Linear
from maxjax._transforms.backward_logs import Logs, collected
from maxjax._transforms.jvp import instantiate
from maxjax._transforms.simplify import called, inline_calls
from maxjax._transforms.transpose import backward_pass, transpose_partly


def operands_of(leaves: Sequence[object]) -> list[Any]:
    runtime = installed.runtime
    return [leaf if isinstance(leaf, Array) else runtime.argument(leaf) for leaf in leaves]


def _delivered(target: object, cotangent: Array, replaces: bool) -> Any:
    """What ``with_refs`` gives for a cotangent; adds it to the target if that is a reference.

    Args:
      replaces: the target's value has gone into the cotangent already.
    """
    if isinstance(target, DontWant):
        return DidntWant()
    if not isinstance(target, Ref):
        return cotangent
    if cotangent.dtype == dtypes.float0:       # of an integer: there is nothing to add
        return GradRef()
    if replaces:
        write(target, cotangent)
    else:
        write(target, add_tangents(read(target), cotangent), ADD)
    return GradRef()


def like_argument(gradient: Value, aval: ShapedArray) -> Any:
    """A gradient is as weakly typed as its argument, whatever it was multiplied by."""
    if not isinstance(gradient, Array) or gradient.aval.weak_type == aval.weak_type:
        return gradient
    return convert_element_type(gradient, gradient.aval.dtype, aval.weak_type)


def like_result(tangent: Value, aval: ShapedArray) -> Any:
    """The tangent of a result that is not weakly typed is not weakly typed either."""
    return tangent if aval.weak_type else like_argument(tangent, aval)


class _OfValues:
    """What tangents and cotangents of values of types above arrays are; unset where there are none.

    Attributes:
      taken: ``(tree of results, cotangent)`` -> a pytree of arrays of that structure.
      found: ``(tree of results, leaves)`` -> the tangent.
      lift: a pytree, its values as pytrees of arrays.
    """

    taken: Callable[[PyTreeSpec, PyTree], Any] | None = None
    found: Callable[[PyTreeSpec, list[Any]], Any] | None = None
    lift: Callable[[PyTree], Any] | None = None


of_values = _OfValues()


def tangent_of(tree: PyTreeSpec, leaves: list[Value]) -> Any:
    """The tangent of results, from that of each array in them."""
    return (pytree.unflatten if of_values.found is None else of_values.found)(tree, leaves)


def _plain_container(kind: type, data: Iterable[Hashable], children: Sequence[PyTree]) -> Any:
    if kind is dict:
        return dict(zip(data, children, strict=True))
    return list(children) if kind is list else tuple(children)


class LinearFunction:
    """A linear map between pytrees.

    Attributes:
      linear: the jaxpr of leaves, inputs -> nonzero outputs; its constants are the residuals.
      nonzero: which outputs depend on the inputs.
      in_tree, in_avals, out_tree, out_avals: of the function that was linearized.
      location: where the function was defined, for messages.
      held: the types of the references among the leaves of its arguments, by their number. The
        function is linear in their values: ``in_avals`` has the types of these.
      finals: which of them the function writes; their values afterwards are the last outputs.
      saved: the leaves of its arguments that the first residuals are, by their number.
    """

    def __init__(self, linear: ClosedJaxpr, nonzero: tuple[bool, ...], in_tree: PyTreeSpec,
                 in_avals: tuple[ShapedArray, ...], out_tree: PyTreeSpec,
                 out_avals: tuple[ShapedArray, ...], location: str, saved: tuple[int, ...] = (),
                 held: tuple[tuple[int, AbstractRef], ...] = (), finals: tuple[int, ...] = ()):
        self.linear = linear
        self.nonzero = nonzero
        self.in_tree = in_tree
        self.in_avals = in_avals
        self.out_tree = out_tree
        self.out_avals = out_avals
        self.location = location
        self.saved = saved
        self.held = held
        self.finals = finals

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.location})"

    @property
    def residuals(self) -> list[Any]:
        """The values of the jaxpr's constants."""
        return self.linear.consts

    @property
    def out_nzs(self) -> Any:
        """Which results have a tangent that may be other than zero: a tree of their structure, with
        tuples in place of containers of other kinds than tuples, lists and dicts."""
        spec: Any = self.out_tree
        return spec.walk(list(self.nonzero), _plain_container)

    def _flatten(self) -> tuple[list[Any], tuple[Any, ...]]:
        return self.residuals, self._structure()

    def _structure(self) -> tuple[Any, ...]:
        return (self.linear.jaxpr, self.nonzero, self.in_tree, self.in_avals, self.out_tree,
                self.out_avals, self.location, self.saved, self.held, self.finals)

    @classmethod
    def _unflatten(cls, structure: tuple[Any, ...], residuals: Sequence[Value]) -> LinearFunction:
        jaxpr, *fields = structure
        return cls(ClosedJaxpr(jaxpr, residuals), *fields)

    def take_references(self, tree: PyTreeSpec, held: Mapping[int, Ref], finals: Sequence[int]
                        ) -> None:
        """Makes arguments of this structure out of flat ones, references in place of some values,
        and a result out of a pair of one and the references' final values."""
        self.in_tree = tree
        self.held = tuple([(number, ref.aval) for number, ref in held.items()])
        self.finals = tuple(finals)
        self.out_tree = self.out_tree.children()[0]
        self.out_avals = self.out_avals[:len(self.out_avals) - len(finals)]

    def check(self, aval: ShapedArray, leaf: object) -> Any:
        """A tangent of a value of that type, or a cotangent, as an operand; None for float0.

        Raises:
          ValueError: it has another shape or dtype.
        """
        expected = self.type_of_direction(aval)
        if isinstance(leaf, np.ndarray) and leaf.dtype == dtypes.float0:
            got, value = ShapedArray(leaf.shape, dtypes.float0), None
        else:
            value = operands_of([leaf])[0]
            got = value.aval
        if got.shape == expected.shape and expected.dtype == dtypes.float0 and self.drops_integers:
            return None
        if (got.shape != expected.shape or got.dtype != expected.dtype
                or got.manual_axis_type != expected.manual_axis_type):
            raise ValueError(self.mismatch(got, expected, aval))
        return value

    # Whether anything may stand where float0 is expected.
    drops_integers = False
    # The type of a tangent or cotangent, for a value of the given type.
    type_of_direction: Callable[[ShapedArray], ShapedArray] = staticmethod(ShapedArray.tangent)

    def mismatch(self, got: ShapedArray, expected: ShapedArray, aval: ShapedArray) -> str:
        """What `check` says of a value of another type than expected."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class GradRef:
    """Stands for a cotangent that was added to a reference.

    >>> total = jax.new_ref(1.)
    >>> _, f_vjp = jax.vjp(lambda x: 3 * x, 2.)
    >>> f_vjp.with_refs(total)(1.), total
    ((GradRef(),), Ref(4., dtype=float32))
    """


@dataclasses.dataclass(frozen=True)
class GradValue:
    """Asks ``with_refs`` for a cotangent as a result.

    >>> _, f_vjp = jax.vjp(lambda x, y: x * y, 2., 3.)
    >>> f_vjp.with_refs(jax.ad.GradValue(), jax.ad.DontWant())(1.)
    (Array(3., dtype=float32, weak_type=True), DidntWant())
    """


@dataclasses.dataclass(frozen=True)
class DontWant:
    """Tells ``with_refs`` that a cotangent is not wanted.

    >>> jax.ad.DontWant()
    DontWant()
    """


@dataclasses.dataclass(frozen=True)
class DidntWant:
    """Stands for a cotangent that was not wanted.

    >>> jax.ad.DidntWant()
    DidntWant()
    """


@dataclasses.dataclass(frozen=True)
class NotNeeded:
    """Stands for an argument that is not kept for the backward pass.

    >>> _, f_vjp = jax.vjp(lambda x, y: x * y, jnp.ones(2), 3.)
    >>> f_vjp.args_res
    [Array([1., 1.], dtype=float32), NotNeeded()]
    """


@dataclasses.dataclass(frozen=True)
class NotSaveable:
    """Stands for an argument that ``saveable_args`` of ``vjp`` excepts from being kept.

    >>> _, f_vjp = jax.vjp(jnp.square, jnp.ones(2), saveable_args=False)
    >>> f_vjp.args_res
    [NotSaveable()]
    """


def _register_mark(kind: type) -> None:
    pytree.register(kind, lambda _: ((), ()), lambda _, __: kind())


_MARKS = (NotNeeded, NotSaveable)
for _mark in (DidntWant, GradRef, *_MARKS):       # results of functions under jit, without arrays
    _register_mark(_mark)


class VJP(LinearFunction):
    """Maps cotangents of a function's results to cotangents of its arguments.

    What is kept for that may be looked at and replaced: arguments in ``args_res``, as the function
    got them, the rest in ``opaque_residuals``.
    """

    type_of_direction = staticmethod(ShapedArray.cotangent)
    drops_integers = True
    # Whether a call also gives what is logged.
    want_logs = False
    _logs: Logs | None = None
    # Both lists, once somebody has asked for one of them.
    _kept: tuple[list[Any], list[Any]] | None = None

    @property
    def args_res(self) -> list[Any]:
        """The arguments, unknown containers as tuples, ``NotNeeded()`` in place of leaves that are
        not kept as they are."""
        return self._lists()[0]

    @args_res.setter
    def args_res(self, arguments: list[PyTree]) -> None:
        self._kept = arguments, self._lists()[1]

    @property
    def opaque_residuals(self) -> list[Any]:
        """What is kept besides arguments."""
        return self._lists()[1]

    @opaque_residuals.setter
    def opaque_residuals(self, residuals: list[Value]) -> None:
        self._kept = self._lists()[0], residuals

    def forget(self, flags: Sequence[bool]) -> None:
        """Keeps no argument of a false flag; whoever calls the function puts it back."""
        arguments, others = self._lists()
        leaves, tree = pytree.flatten(tuple(arguments), lambda x: type(x) is NotNeeded)
        left = [NotSaveable() if number in self.saved and not flag else leaf
                for number, (leaf, flag) in enumerate(zip(leaves, flags, strict=True))]
        self._kept = [*pytree.unflatten(tree, left)], others

    def _lists(self) -> tuple[list[Any], list[Any]]:
        if self._kept is None:
            count = len(self.saved)
            leaves: list[Any] = [NotNeeded()] * self.in_tree.num_leaves
            for number, value in zip(self.saved, self.linear.consts[:count], strict=True):
                leaves[number] = value
            # Containers of other kinds are tuples: a class may refuse what is no value of its own.
            spec: Any = self.in_tree
            arguments = spec.walk(leaves, _plain_container)
            self._kept = [*arguments], [*self.linear.consts[count:]]
        return self._kept

    @property
    def residuals(self) -> list[Any]:
        if self._kept is None:
            return self.linear.consts
        arguments, others = self._kept
        leaves = pytree.leaves(tuple(arguments), lambda x: type(x) in _MARKS)
        if len(leaves) != self.in_tree.num_leaves:
            raise ValueError("args_res must have as many leaves as the arguments, "
                             f"{self.in_tree.num_leaves}, got {len(leaves)}")
        missing = [number for number in self.saved if type(leaves[number]) in _MARKS]
        if forgotten := [x for x in missing if type(leaves[x]) is NotSaveable]:
            raise ValueError(
                "the VJP function was applied before restoring its not-saveable residuals.\n\n"
                "Because `saveable_args` was passed to `jax.vjp`, some argument values that\nwould "
                "have been saved for the backward pass were instead replaced with\n"
                "`NotSaveable()` sentinels. Before the VJP function can be applied, these\nvalues "
                "must be restored, e.g. by assigning to the VJP function's `args_res`\nattribute. "
                "The values not yet restored correspond to:\n" + "\n".join(
                    f"  * {self._name_of(number)};" for number in forgotten))
        if missing:
            raise TypeError("the backward pass needs an argument whose value args_res lacks: leaf "
                            f"{missing[0]} of the arguments")
        return [*operands_of([leaves[number] for number in self.saved]), *others]

    def with_refs(self, *maybe_ct_refs: PyTree) -> Callable[[Any], Any]:
        """The linear function as one that adds cotangents to references.

        Args:
          maybe_ct_refs: pytrees with the structure of the function's arguments. A cotangent is
            added to a leaf that is a reference, dropped where the leaf is ``jax.ad.DontWant()``,
            and returned otherwise.

        Raises:
          ValueError: the structure differs, or the shape or dtype of a reference; a leaf asks for
            the cotangent of a reference as a value.
        """
        targets, tree = pytree.flatten(maybe_ct_refs)
        if tree != self.in_tree:
            raise ValueError(
                "unexpected tree structure in the arguments to a VJP function's `with_refs` "
                "method.\n\nThe arguments to `with_refs` must match the pytree structure of the "
                f"primal\narguments of the differentiated function {self.location},\nwith one "
                "entry for each array argument. Each entry must be a `Ref` (to\naccumulate this "
                "argument's gradient into the ref in-place), a\n`jax.ad.GradValue()` (to have this "
                "argument's gradient returned as a value,\nthe default behavior), or a "
                "`jax.ad.DontWant()` (to skip computing this\nargument's gradient). Note that "
                "`None` is an empty pytree, so it can't be\nused as a placeholder entry.\n\n"
                "But the tree structures differ:\n" + "\n".join(
                    f"  * args{pytree.path_string(path)} was {one} in the primal arguments, but "
                    f"{other} in the `with_refs` arguments, so {why}."
                    for path, one, other, why in tree_equality.structure_differences(
                        pytree.numbered(self.in_tree), maybe_ct_refs, "pytree leaf")))
        held = dict(self.held)
        for number, (target, aval) in enumerate(zip(targets, self.in_avals, strict=True)):
            if isinstance(target, Ref):
                expected = aval.cotangent()
                self._check_target(number, target,
                                   aval if expected.dtype == dtypes.float0 else expected)
            elif number in held and not isinstance(target, DontWant):
                raise ValueError(
                    f"the gradient for {self._name_of(number)}, which is Ref-typed, can't be "
                    "returned as a value. In the arguments to the VJP function's `with_refs` "
                    "method, pass a `Ref` for it, to accumulate the gradient into the ref "
                    "in-place, or pass `jax.ad.DontWant()` to skip computing this argument's "
                    "gradient.")

        def vjp_with_refs(cotangent: PyTree) -> Any:
            given = self._checked(cotangent)
            # The gradient of what a reference holds afterwards becomes that of what it held before.
            after = [read(targets[n]) if isinstance(targets[n], Ref) else None for n in self.finals]
            cotangents = self.transpose([*given, *after], [
                not isinstance(target, DontWant) for target in targets])
            return self._with_logged(pytree.unflatten(tree, [
                _delivered(target, ct, number in self.finals)
                for number, (target, ct) in enumerate(zip(targets, cotangents, strict=True))]))

        return vjp_with_refs

    def _name_of(self, number: int) -> str:
        """What messages call an argument's leaf."""
        path = pytree.flatten_with_path(pytree.numbered(self.in_tree))[0][number]
        return (f"the argument at position args{pytree.path_string(path)} of the differentiated "
                f"function {self.location}")

    def _check_target(self, number: int, target: Ref, expected: ShapedArray) -> None:
        if (target.shape, target.dtype) != (expected.shape, expected.dtype):
            raise ValueError(
                "unexpected JAX type (e.g. shape/dtype) for gradient ref passed to the VJP "
                f"function's `with_refs` method for {self._name_of(number)}: the given ref has "
                f"type {target.aval}, but accumulating this argument's gradient requires a ref of "
                f"type {AbstractRef(expected)}")

    @boundary
    def __call__(self, out_ct: PyTree, *extra: PyTree) -> Any:
        if extra:
            name = self.location.partition(" at ")[0]
            raise TypeError(
                f"The function returned by `jax.vjp` applied to {name} was called with "
                f"{1 + len(extra)} arguments, but functions returned by `jax.vjp` must be called "
                "with a single argument corresponding to the single value returned by the function "
                "being differentiated (even if that returned value is a tuple or other container).")
        if self.held:
            raise ValueError(
                f"{self._name_of(self.held[0][0])} is Ref-typed, so its gradient must be "
                "accumulated into a ref, but no gradient ref was provided. Bind one using the VJP "
                "function's `with_refs` method before applying it, as in "
                "`f_vjp.with_refs(grad_ref)(ct)`; the gradient will be accumulated into `grad_ref` "
                "in-place via addition. Or, to skip computing this argument's gradient, pass "
                "`jax.ad.DontWant()` in place of a gradient ref.")
        given = self._checked(out_ct)
        return self._with_logged(
            pytree.unflatten(self.in_tree, all_as_given(self.transpose(given))))

    @property
    def with_logs(self) -> VJP:
        """The linear function as one that gives a pair: the cotangents, and a dict of what the
        backward rules of ``custom_gradient(with_logs=True)`` and of
        ``custom_vjp.defvjp_with_logs`` log."""
        result = copy.copy(self)
        result.want_logs = True
        return result

    def _with_logged(self, cotangents: PyTree) -> Any:
        """What a call gives."""
        logs, self._logs = self._logs, None
        if not self.want_logs:
            return cotangents
        assert logs is not None
        return cotangents, logs.result()

    def _flatten(self) -> tuple[list[Any], tuple[Any, ...]]:
        # What was replaced, or is missing, is so wherever the function is taken apart.
        leaves, tree = (self.linear.consts, None) if self._kept is None else pytree.flatten(
            self._kept)
        return leaves, (*self._structure(), self.want_logs, tree)

    @classmethod
    def _unflatten(cls, structure: tuple[Any, ...], leaves: Sequence[Value]) -> LinearFunction:
        *fields, want_logs, tree = structure
        result: Any = super()._unflatten(tuple(fields), leaves if tree is None else ())
        if tree is not None:
            result._kept = pytree.unflatten(tree, leaves)
        result.want_logs = want_logs
        return result

    def _checked(self, out_ct: PyTree) -> list[Array | None]:
        """The leaves of a cotangent of the result, as operands."""
        if of_values.taken is not None:
            out_ct = of_values.taken(self.out_tree, out_ct)
        leaves, tree = pytree.flatten(out_ct)
        if tree != self.out_tree:
            raise ValueError(
                "unexpected tree structure.\n\nThe argument to a VJP function returned by "
                "`jax.vjp` must match the pytree\nstructure of the differentiated function "
                f"{self.location}.\n\nBut the tree structures differ:\n" + "\n".join(
                    f"  * out{pytree.path_string(path)} was {one} in the original output, but "
                    f"{other} here, so {why}."
                    for path, one, other, why in tree_equality.structure_differences(
                        pytree.numbered(self.out_tree), out_ct, "pytree leaf")))
        return [self.check(aval, leaf)
                for aval, leaf in zip(self.out_avals, leaves, strict=True)]

    def mismatch(self, got: ShapedArray, expected: ShapedArray, aval: ShapedArray) -> str:
        return ("unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got "
                f"{got.str_short()}, but expected {expected.str_short()} because the corresponding "
                f"output of the differentiated function had JAX type {aval.str_short()}")

    def transpose(self, cotangents: Sequence[Array | None],
                  wanted: Sequence[bool] | None = None) -> list[Any]:
        """Cotangents of all leaves of the arguments; of leaves that are not wanted, anything."""
        of_floats = None if wanted is None else [
            flag for flag, aval in zip(wanted, self.in_avals, strict=True)
            if dtypes.has_tangents(aval.dtype)]
        given = [cotangent for cotangent, depends in zip(cotangents, self.nonzero, strict=True)
                 if depends]
        with transformed(TRANSPOSE), collected() as logs:
            if self.want_logs:
                # A call of a jitted function logs as its equations do.
                inlined = inline_calls(
                    ClosedJaxpr(self.linear.jaxpr, self.residuals),
                    lambda eqn: called(eqn) if eqn.primitive.inner.guarded is None else None)
                results = iter(transpose_partly(
                    inlined.jaxpr, inlined.consts, [*map(Linear, inlined.in_avals)], given))
            else:
                results = iter(backward_pass(
                    self.linear.jaxpr, self.residuals, given, of_floats))
        self._logs = logs
        asked = [True] * len(self.in_avals) if wanted is None else wanted
        found = [next(results) if dtypes.has_tangents(aval.dtype) else np.zeros(
            aval.shape, dtypes.float0) for aval in self.in_avals]
        return [instantiate(x, aval.cotangent()) if x is None and flag else x
                for x, aval, flag in zip(found, self.in_avals, asked, strict=True)]


class Linearized(LinearFunction):
    """Maps tangents of a function's arguments to tangents of its results."""

    @boundary
    def __call__(self, *tangents: PyTree) -> Any:
        leaves, tree = pytree.flatten(
            tangents if of_values.lift is None else of_values.lift(tangents))
        if tree != self.in_tree:
            raise TypeError(f"expected {PyTreeDef(self.in_tree)}, got {PyTreeDef(tree)}")
        directions = dict(self._directions(leaves))
        leaves = [read(directions[number]) if number in directions else leaf
                  for number, leaf in enumerate(leaves)]
        given = [value for aval, leaf in zip(self.in_avals, leaves, strict=True)
                 if (value := self.check(aval, leaf)) is not None]
        with kept_source_lines():
            if all(eqn.source is not None for eqn in self.linear.eqns):
                scopes.source_line = None       # the equations', in the scopes that are open
            results = iter(eval_jaxpr(self.linear.jaxpr, self.linear.consts, *given))
        found = [next(results) if depends else None for depends in self.nonzero]
        count = len(self.out_avals)
        for number, tangent in zip(self.finals, found[count:], strict=True):
            write(directions[number], instantiate(tangent, self.in_avals[number]))
        return tangent_of(self.out_tree, [
            as_given(like_result(instantiate(tangent, aval), aval))
            for tangent, aval in zip(found[:count], self.out_avals, strict=True)])

    def _directions(self, leaves: Sequence[object]) -> Iterator[tuple[int, Ref]]:
        """The references that the tangents of references are, by their number."""
        for number, kind in self.held:
            leaf = leaves[number]
            if isinstance(leaf, Ref) and (leaf.shape, leaf.dtype) == (
                    kind.inner_aval.shape, kind.inner_aval.tangent().dtype):
                yield number, leaf
                continue
            got = leaf.aval if isinstance(leaf, Ref) else operands_of([leaf])[0].aval
            raise ValueError(
                "linearized function called on tangent values inconsistent with the original "
                f"primal values:\nGot tangent aval {got} for primal aval {kind} but expected "
                f"{kind}.")

    def mismatch(self, got: ShapedArray, expected: ShapedArray, aval: ShapedArray) -> str:
        return ("linearized function called on tangent values inconsistent with the original "
                f"primal values:\nGot tangent aval {got} for primal aval {aval} but expected "
                f"{expected}.{_cast_hint(got, expected)}")


def _cast_hint(got: ShapedArray, expected: ShapedArray) -> str:
    """What to do about a tangent that varies along other manual axes."""
    if context.manual is None or got.vma == expected.vma:
        return ""
    hints = []
    for missing, what in (
            (got.vma - expected.vma, "primal value passed to `jax.linearize`"),
            (expected.vma - got.vma, "tangent value passed to the callable `f_jvp` returned by "
                                     "`jax.linearize`")):
        if missing:
            hints.append(f"  * applying `jax.lax.pcast(..., {context.manual.ordered(missing)}, "
                         f"to='varying')` to the {what};")
    return " \nThis might be fixed by:\n" + "\n".join(hints)


for _kind in (VJP, Linearized):
    pytree.register(_kind, _kind._flatten, _kind._unflatten)
