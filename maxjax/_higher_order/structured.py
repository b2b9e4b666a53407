"""Rules of loops and choices that follow from what their operands are (``ControlFlow``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from maxjax._base.fixpoint import rounds
from maxjax._higher_order.control import chosen, either, merged, rearranged
from maxjax._ir.control_flow import Body, ControlFlow, Operands, Role, Structure, structure_of
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Var, derived
from maxjax._ir.liveness import eliminate_dead_code, needed_inputs
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Inner
from maxjax._ir.trace import Array, aval_of
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Params, Value
from maxjax._primitives.layout import move_axis
from maxjax._primitives.rules import call_factors
from maxjax._transforms.batching import batch_jaxpr, to_axis
from maxjax._transforms.jvp import instantiate, jvp_jaxpr


def structured(name: str, flow: ControlFlow, **rules: Any) -> Primitive:
    """A loop or a choice. ``rules`` are those that do not follow from ``flow``, or replace one.
    """
    primitive: Primitive

    def jvp(primals: Sequence[Array], tangents: Sequence[Array | None],
            **params: object) -> tuple[list[Any], list[Any]]:
        return bind_jvp(primitive, primals, tangents, params, Differentiated(
            flow.structure(params, len(primals)), tangents))

    def batch(size: int, operands: Sequence[Array], axes: Sequence[int | None],
              **params: object) -> tuple[list[Any], list[int | None]]:
        batched = Batched(flow.structure(params, len(operands)), size, axes)
        results = primitive.bind(*batched.operands(operands),
                                 **flow.with_jaxprs(params, batched.jaxprs))
        return results, batched.out_axes

    primitive = Primitive(
        name,
        abstract=lambda *avals, **params: flow.structure(params, len(avals)).out_avals(),
        lower=lambda ctx, *values, **params: ctx.control_flow(
            name, flow.structure(params, len(values)), values),
        **{"jvp": jvp, "batch": batch, **rules},
        factors=call_factors,
        multiple_results=True,
        cacheable=False,
        inner=Inner(control_flow=flow, dead_code=without_dead_code),
    )
    return primitive


def without_dead_code(eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
    """Without the carries, results and operands that neither a used result nor a predicate needs.
    """
    flow = structure_of(eqn)
    count = len(flow.carries)
    live = tuple(used)
    for _ in rounds(len(live), f"the live results of {eqn.primitive.name}"):
        needed = [flow.roles[number] is Role.INDEX for number in range(len(eqn.invars))]
        for body in flow.bodies:
            found = needed_inputs(body.jaxpr.jaxpr, (True,) if body.decides else live)
            for number, flag in zip(body.takes, found, strict=True):
                needed[number] = needed[number] or flag
        new = (*either(live[:count], [needed[number] for number in flow.carries]), *live[count:])
        if new == live:
            break
        live = new
    for number, flag in zip(flow.carries, live[:count], strict=True):
        needed[number] = flag
    if all(live) and all(needed):
        return eqn
    outputs = tuple(chosen(range(len(live)), live))
    jaxprs = [
        eliminate_dead_code(rearranged(
            body.jaxpr, tuple(n for n, number in enumerate(body.takes) if needed[number]),
            None if body.decides else outputs)) for body in flow.bodies]
    return eqn.replace(
        invars=chosen(eqn.invars, needed), outvars=chosen(eqn.outvars, live),
        params=flow.regrouped(eqn.params, list(map(sum, flow.parts(needed))), jaxprs))


def bind_known(primitive: Primitive, operands: Sequence[Value], params: Params,
               known: Sequence[bool]) -> list[Any]:
    """Applies a loop or a choice for the results that are marked; the others are None.

    Args:
      operands: those that the marked results do not need may be anything where one is not marked,
        and None where all are.
    """
    if all(known) and all(operand is not None for operand in operands):
        return list(primitive.bind(*operands, **params))
    flow = primitive.inner.control_flow
    assert flow is not None
    first, *others = flow.jaxprs(params)
    if not any(known) and not any(jaxpr.effects for jaxpr in (first, *others)):
        return [None] * len(known)
    rest = flow.with_jaxprs(params, [None] * (1 + len(others)))      # type: ignore[list-item]
    numbers, pruned = _for_results(
        first, tuple(others), primitive, len(operands), tuple(known), tuple(rest.items()))
    return merged(known, primitive.bind(*[operands[number] for number in numbers], **pruned))


@derived
def _for_results(first: ClosedJaxpr, others: tuple[ClosedJaxpr, ...], primitive: Primitive,
                 count: int, known: tuple[bool, ...], rest: tuple[tuple[str, object], ...]
                 ) -> tuple[list[int], dict[str, Any]]:
    """The operands and the parameters of an application for the results that are marked."""
    assert primitive.inner.control_flow is not None
    params = primitive.inner.control_flow.with_jaxprs(dict(rest), [first, *others])
    # Which variables these are is all that matters.
    operands: list[Atom] = [Var(first.out_avals[0]) for _ in range(count)]
    eqn = without_dead_code(JaxprEqn(
        primitive, operands, params, [Var(aval) for aval in primitive.inner.control_flow.structure(
            params, count).out_avals()]), known)
    return [operands.index(atom) for atom in eqn.invars], eqn.params


# --- derivatives ----------------------------------------------------------------------------------


class Differentiated:
    """The jaxprs of a loop or a choice of operands that have tangents.

    The operands of each group are followed by their tangents, the carries by those of the carries,
    and the other results by theirs.

    Attributes:
      flow: the loop or choice itself.
      jaxprs: in the order of its bodies.
      operands: which of the operands have a tangent, carries that the body gives one included.
      results: which of the results have one.
    """

    __slots__ = ("flow", "jaxprs", "operands", "results")

    def __init__(self, flow: Structure, tangents: Sequence[Value | None]):
        self.flow = flow
        first, *others = [body.jaxpr for body in flow.bodies]
        self.jaxprs, self.operands, self.results = _differentiated(
            first, tuple(others), flow.operands, tuple([x is not None for x in tangents]))


@derived
def _differentiated(first: ClosedJaxpr, others: tuple[ClosedJaxpr, ...], numbers: Operands,
                    nonzero: tuple[bool, ...]) -> tuple[
                        tuple[ClosedJaxpr, ...], tuple[bool, ...], tuple[bool, ...]]:
    """What a ``Differentiated`` holds."""
    flow = Structure(numbers, (first, *others))
    producers, count = flow.producers, len(flow.carries)
    taken = {number for body in producers for number in body.takes}
    operands = [flag and number in taken for number, flag in enumerate(nonzero)]
    wanted = (*[operands[number] for number in flow.carries],
              *(False,) * (len(producers[0].jaxpr.out_avals) - count))
    for _ in rounds(len(wanted), "the tangents of a loop or branches"):
        pairs = [jvp_jaxpr(body.jaxpr, tuple([operands[number] for number in body.takes]), wanted)
                 for body in producers]
        results = wanted
        for _, found in pairs:
            results = either(results, found)
        if results[:count] == wanted[:count] and all(found == results for _, found in pairs):
            break
        wanted = results
        for number, flag in zip(flow.carries, wanted[:count], strict=True):
            operands[number] = flag
    total, carried = len(results), sum(results[:count])
    outputs = (*range(count), *range(total, total + carried), *range(count, total),
               *range(total + carried, total + sum(results)))
    carry_avals = producers[0].jaxpr.out_avals
    both = iter(pairs)
    jaxprs = []
    for body in flow.bodies:
        if body.decides:      # it takes the carries' tangents, and uses none
            jaxprs.append(rearranged(body.jaxpr, _by_groups(body, {
                number: carry_avals[place].tangent() for place, number in enumerate(flow.carries)
                if operands[number]})))
        else:                 # tangents follow all primals
            tangents = [number for number in body.takes if operands[number]]
            start = len(body.takes)
            jaxprs.append(rearranged(next(both)[0], _by_groups(body, {
                number: start + place for place, number in enumerate(tangents)}), outputs))
    return tuple(jaxprs), tuple(operands), results


def _by_groups(body: Body, tangents: Mapping[int, int | ShapedArray]) -> tuple[Any, ...]:
    """The inputs of a jaxpr with tangents after each group."""
    inputs: list[Any] = []
    start = 0
    for group in body.groups:
        inputs += range(start, start + len(group))
        inputs += [tangents[number] for number in group if number in tangents]
        start += len(group)
    return tuple(inputs)


def bind_jvp(primitive: Primitive, primals: Sequence[Array], tangents: Sequence[Array | None],
             params: Params, both: Differentiated) -> tuple[list[Any], list[Any]]:
    """Applies a loop or a choice to operands with their tangents."""
    flow = both.flow
    operands: list[Any] = []
    counts = []
    for group in flow.groups:
        given = [*[primals[number] for number in group],
                 *[instantiate(tangents[number], aval_of(primals[number])) for number in group
                   if both.operands[number]]]
        operands += given
        counts.append(len(given))
    results = primitive.bind(*operands, **flow.regrouped(params, counts, both.jaxprs))
    count, total = len(flow.carries), len(both.results)
    carried = sum(both.results[:count])
    end = total + carried
    return ([*results[:count], *results[count + carried:end]],
            merged(both.results, [*results[count:count + carried], *results[end:]]))


# --- batching -------------------------------------------------------------------------------------


class Batched:
    """The jaxprs of a loop or a choice over operands with batch axes; an index has none.

    Attributes:
      jaxprs: in the order of its bodies.
      axes: of the operands.
      carried: which of the carries are batched; all where the predicate is.
      out_axes: of the results.
      predicate: whether the predicate differs between the elements.
    """

    __slots__ = ("axes", "carried", "flow", "jaxprs", "out_axes", "predicate", "size")

    def __init__(self, flow: Structure, size: int, axes: Sequence[int | None]):
        self.flow = flow
        self.size = size
        self.axes = axes
        producers, count = flow.producers, len(flow.carries)
        carried = tuple([axes[number] is not None for number in flow.carries])
        wanted = (*carried, *(False,) * (len(producers[0].jaxpr.out_avals) - count))
        inner = list(axes)
        for number in flow.scanned:
            inner[number] = None if axes[number] is None else 0
        for _ in rounds(len(wanted) + 1, "the batched results of a loop or branches"):
            self.carried = wanted[:count]
            for number, flag in zip(flow.carries, self.carried, strict=True):
                inner[number] = 0 if flag else None
            decisions = [
                batch_jaxpr(body.jaxpr, size, tuple([inner[number] for number in body.takes]))
                for body in flow.bodies if body.decides]
            self.predicate = any(found[0] for _, found in decisions)
            if self.predicate and not all(self.carried):
                wanted = (*(True,) * count, *wanted[count:])
                continue
            pairs = [
                batch_jaxpr(body.jaxpr, size, tuple([inner[number] for number in body.takes]),
                            wanted) for body in producers]
            results = wanted
            for _, found in pairs:
                results = either(results, found)
            if results[:count] == wanted[:count] and all(found == results for _, found in pairs):
                break
            wanted = results
        given, deciding = iter(pairs), iter(decisions)
        self.jaxprs = [_like(next(deciding if body.decides else given)[0], body.jaxpr)
                       for body in flow.bodies]
        self.out_axes: list[int | None] = [
            (1 if flow.is_loop and number >= count else 0) if flag else None
            for number, flag in enumerate(results)]

    def operands(self, values: Sequence[Array]) -> list[Any]:
        """The operands as the jaxprs take them: carries along axis 0, slices along axis 1."""
        result = list(values)
        for number, flag in zip(self.flow.carries, self.carried, strict=True):
            if flag:
                result[number] = to_axis(values[number], self.axes[number], 0, self.size)
        for number in self.flow.scanned:
            axis = self.axes[number]
            if axis is not None:
                result[number] = move_axis(values[number], axis, 1)
        return result


def _like(batched: ClosedJaxpr, body: ClosedJaxpr) -> ClosedJaxpr:
    """A batched body with the fact that still holds of it."""
    return batched.with_facts(batched.facts._replace(
        is_batched_predicate=body.facts.is_batched_predicate))
