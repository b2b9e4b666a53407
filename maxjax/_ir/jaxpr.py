"""The intermediate representation: a jaxpr is a typed, straight list of equations.

    { lambda ; a:f32[3]. let b:f32[3] = sin a; c:f32[3] = mul b 2.0:f32[] in (c,) }

Every variable is assigned once. Higher-order primitives hold jaxprs in their parameters.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from maxjax._base.source import UNKNOWN_LINE, SourceLine, inherited_source_lines
from maxjax._ir.effects import Effect, EffectSet
from maxjax._ir.types import ShapedArray

if TYPE_CHECKING:
    from maxjax._ir.primitive import Primitive
    from maxjax._ir.refs import RefUse
    from maxjax._ir.typing import Function, StaticScalar, Value


class Var:
    """A variable: an identity and a type.

    >>> x = jax.extend.core.Var(jax.core.ShapedArray((3,), jnp.float32))
    >>> x.aval
    ShapedArray(float32[3])
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval.str_short()}"


class DropVar(Var):
    """A result that nothing uses; prints as ``_``.

    >>> unused = jax.extend.core.DropVar(jax.core.ShapedArray((), jnp.float32))
    >>> isinstance(unused, jax.extend.core.Var)
    True
    """

    __slots__ = ()


class Literal:
    """A scalar constant that stands in the program itself.

    >>> _, two = jax.make_jaxpr(lambda x: x * 2)(1.0).eqns[0].invars
    >>> isinstance(two, jax.extend.core.Literal), float(two.val)
    (True, 2.0)
    """

    __slots__ = ("aval", "val")

    def __init__(self, val: Value | StaticScalar, aval: ShapedArray):
        self.val: Any = val
        self.aval = aval

    def __repr__(self) -> str:
        return f"Literal({self.val})"


Atom = Var | Literal
# An application's parameters by name; each primitive says what they are.
Params = dict[str, Any]


def replaced(atoms: Iterable[Atom], env: Mapping[Any, Atom]) -> list[Atom]:
    """The atoms, some replaced by others."""
    return [env.get(atom, atom) for atom in atoms]


class JaxprEqn:
    """One equation: ``outvars = primitive[params] invars``.

    >>> equation, = jax.make_jaxpr(jnp.sum)(jnp.ones(3)).eqns
    >>> equation.primitive, equation.params["axes"]
    (reduce_sum, (0,))
    """

    __slots__ = ("invars", "outvars", "params", "primitive", "source")

    def __init__(self, primitive: Primitive, invars: Sequence[Atom], params: Params,
                 outvars: Sequence[Var], source: SourceLine | None = None):
        self.primitive = primitive
        self.invars = [*invars]
        self.params = params
        self.outvars = [*outvars]
        self.source = source

    @property
    def effects(self) -> frozenset[Effect]:
        """What the equation, or a jaxpr inside it, does besides computing its results."""
        rule = self.primitive.effects
        inner = [jaxpr.effects for jaxpr in subjaxprs(self.params)]
        own = None if rule is None else rule.effects(**self.params)
        return frozenset().union(own or (), *inner)

    @property
    def source_info(self) -> SourceLine:
        """Where the equation was traced."""
        return self.source or UNKNOWN_LINE

    ctx = None      # where JAX keeps settings of its own

    def replace(self, **changes: Any) -> JaxprEqn:
        new = JaxprEqn(self.primitive, self.invars, self.params, self.outvars, self.source)
        for name, value in changes.items():
            setattr(new, name, list(value) if name in ("invars", "outvars") else value)
        return new


class Jaxpr:
    """Constants, inputs, equations, outputs; one that is traced has the constants' values, too.

    ``debug_info`` is the traced function's name and location, for messages.

    >>> jaxpr = jax.make_jaxpr(lambda x: x + np.arange(2))(1.0)
    >>> jaxpr.consts
    [Array([0, 1], dtype=int32)]

    Also ``Jaxpr(jaxpr, consts)``, which gives a jaxpr its values.
    """

    __slots__ = ("__weakref__", "constvars", "debug_info", "eqns", "invars", "outvars")

    def __new__(cls, constvars: object, *rest: object, **named: object) -> Jaxpr:
        return object.__new__(ClosedJaxpr if isinstance(constvars, Jaxpr) else cls)

    def __init__(self, constvars: Sequence[Var], invars: Sequence[Var], outvars: Sequence[Atom],
                 eqns: Sequence[JaxprEqn], debug_info: str = "", *, effects: object = None):
        # JAX's constructor takes the effects; here they follow from the equations.
        self.constvars = [*constvars]
        self.invars = [*invars]
        self.outvars = [*outvars]
        self.eqns = [*eqns]
        self.debug_info = debug_info

    @property
    def jaxpr(self) -> Jaxpr:
        """Without values of the constants."""
        return self

    @property
    def consts(self) -> list[Any]:
        return []

    @property
    def literals(self) -> list[Any]:
        return self.consts

    @property
    def num_consts(self) -> int:
        return len(self.consts)

    @property
    def all_invars(self) -> list[Var]:
        return [*self.constvars, *self.invars]

    @property
    def in_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.outvars]

    is_high = False     # types above arrays are lowered while a function is traced

    @property
    def effects(self) -> frozenset[Effect]:
        return EffectSet(frozenset().union(*[eqn.effects for eqn in self.eqns]))

    def with_consts(self, consts: Sequence[Value]) -> ClosedJaxpr:
        return ClosedJaxpr(self.jaxpr, consts)

    def replace(self, *, constvars: Sequence[Var] | None = None,
                invars: Sequence[Var] | None = None, outvars: Sequence[Atom] | None = None,
                eqns: Sequence[JaxprEqn] | None = None, debug_info: str | None = None,
                effects: object = None) -> Jaxpr:
        return Jaxpr(self.constvars if constvars is None else constvars,
                     self.invars if invars is None else invars,
                     self.outvars if outvars is None else outvars,
                     self.eqns if eqns is None else eqns,
                     self.debug_info if debug_info is None else debug_info)


class Family:
    """Programs of one trace at several sizes: when one of them is hot, all are.

    Attributes:
      heat: the nanoseconds that tier 0 has spent on one of them, the one with most.
    """

    __slots__ = ("heat",)

    def __init__(self) -> None:
        self.heat = 0


class Facts(NamedTuple):
    """What holds of a jaxpr and cannot be seen in it. A rebuilt jaxpr keeps its facts
    (``ClosedJaxpr.replace``), but for those about inputs where the inputs change.

    Attributes:
      name, qualname: those of the function under jit that the jaxpr was traced from, or empty.
      family: the programs that it belongs to, if it is one trace at one of several sizes.
      is_batched_predicate: it is a loop's predicate that ``vmap`` made from the elements' ones.
      argument_names: the names of its inputs, for messages.
      keeps_inputs: all inputs count as read: the program runs where any of its operands is.
      captured: for a jaxpr some of whose constants became its first inputs: a flag for each
        constant, in their original order, whether it is an input now.
    """

    name: str = ""
    qualname: str = ""
    family: Family | None = None
    is_batched_predicate: bool = False
    argument_names: Sequence[str] = ()
    keeps_inputs: bool = False
    captured: Sequence[bool] | None = None

    def of_other_inputs(self) -> Facts:
        return self._replace(argument_names=(), keeps_inputs=False, captured=None)


_NO_FACTS = Facts()


class ClosedJaxpr(Jaxpr):
    """A jaxpr and the values of its constants, which JAX calls a jaxpr as well. Compared by
    identity."""

    __slots__ = ("consts", "facts", "jaxpr", "known", "made", "refs")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Value] = (), refs: tuple[RefUse, ...] = (),
                 facts: Facts = _NO_FACTS):
        self.jaxpr = jaxpr = jaxpr.jaxpr      # type: ignore[misc]
        self.constvars, self.invars, self.outvars = jaxpr.constvars, jaxpr.invars, jaxpr.outvars
        self.eqns, self.debug_info = jaxpr.eqns, jaxpr.debug_info
        self.consts = [*consts]       # type: ignore[misc]
        self.facts = facts
        # The array references whose values the last inputs are; the new values of those that are
        # written are the last outputs.
        self.refs = refs
        # Two caches, which live as long as the jaxpr and change nothing but how long things take:
        # what has been derived from it (``derived``), by function and arguments, and what the
        # runtime has made to run it (``maxjax._runtime.made``).
        self.known: dict[Any, Any] = {}
        self.made: Any = None

    def replace(self, **changes: Any) -> ClosedJaxpr:
        """A changed copy with the same facts; those about inputs are dropped if inputs change."""
        jaxpr, consts = changes.pop("jaxpr", self.jaxpr), changes.pop("consts", self.consts)
        jaxpr = jaxpr.jaxpr.replace(**changes) if changes else jaxpr.jaxpr
        facts = self.facts
        if facts is not _NO_FACTS and jaxpr.invars != self.invars:
            facts = facts.of_other_inputs()
        return ClosedJaxpr(jaxpr, consts, facts=facts)

    def with_facts(self, facts: Facts) -> ClosedJaxpr:
        """The jaxpr with other facts; itself where they are the same."""
        return self if facts == self.facts else ClosedJaxpr(
            self.jaxpr, self.consts, self.refs, facts)


# As JAX calls it.
ClosedJaxpr.__name__ = ClosedJaxpr.__qualname__ = "Jaxpr"


_UNKNOWN: Any = object()      # what is derived may be None


def derived(function: Function) -> Function:
    """Decorates ``function(closed_jaxpr, *hashable)``: its results are cached with the jaxpr."""

    def cached(closed: ClosedJaxpr, *arguments: Hashable) -> Any:
        key = (function, arguments)
        result = closed.known.get(key, _UNKNOWN)
        if result is _UNKNOWN:
            with inherited_source_lines():
                result = closed.known[key] = function(closed, *arguments)
        return result

    cached.__doc__ = function.__doc__
    cached.__name__ = function.__name__
    typed: Any = cached
    typed.__wrapped__ = function
    return typed


def note(closed: ClosedJaxpr, function: Function, result: object) -> None:
    """Lets a function that is decorated with ``derived`` give this result for a jaxpr alone."""
    wrapped: Any = function
    closed.known[wrapped.__wrapped__, ()] = result


def subjaxprs(params: Params) -> Iterator[Jaxpr]:
    """The jaxprs among a primitive's parameters, those within tuples included."""
    for value in params.values():
        if isinstance(value, Jaxpr):
            yield value
        elif isinstance(value, tuple):
            for item in value:
                if isinstance(item, Jaxpr):
                    yield item


def every_equation(jaxpr: Jaxpr) -> Iterator[JaxprEqn]:
    """The equations of a jaxpr, each before those of the jaxprs inside it."""
    for eqn in jaxpr.eqns:
        yield eqn
        if not eqn.primitive.cacheable:      # else its parameters hold no jaxprs
            for inner in subjaxprs(eqn.params):
                yield from every_equation(inner)
