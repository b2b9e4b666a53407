"""What the backward pass of a function needs of its forward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from maxjax._base import pytree
from maxjax._base.pytree import PyTree
from maxjax._base.signatures import argument_names
from maxjax._base.source import user_frame
from maxjax._higher_order.control import operands_of
from maxjax._higher_order.jit import jit_p
from maxjax._ir.jaxpr import Atom, Jaxpr, JaxprEqn, Literal
from maxjax._ir.staging import StagingTrace
from maxjax._ir.trace import current_trace
from maxjax._ir.types import ShapedArray
from maxjax._primitives.identities import name_p
from maxjax._transforms.autodiff import FlatFunction
from maxjax._transforms.linearize import linearize_flat


def saved_residuals(f: Callable[..., PyTree], *args: PyTree, **kwargs: PyTree
                    ) -> list[tuple[Any, str]]:
    """What the backward pass of ``f`` needs of the forward pass: types, and where they come from.
    """
    leaves, tree = pytree.flatten((args, kwargs))
    values = operands_of(leaves)

    def call(args: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> Any:
        return f(*args, **kwargs)

    trace = StagingTrace()
    inputs = [trace.new_input(x.aval) for x in values]
    with current_trace(trace):
        _, linear, _ = linearize_flat(FlatFunction(call, tree), inputs)
    literals = {id(atom.val): atom.val for eqn in linear.eqns for atom in eqn.invars
                if isinstance(atom, Literal)}
    jaxpr = trace.close([*literals.values(), *linear.consts]).jaxpr
    return _sources(jaxpr, argument_names(f, tree), user_frame())


def _sources(jaxpr: Jaxpr, names: Sequence[str], caller: FrameType | None
             ) -> list[tuple[Any, str]]:
    """``caller``: what is recorded at its present line lies outside of the function."""
    results: list[tuple[Any, str]] = [
        (atom.aval, "from a literal") for atom in jaxpr.outvars if isinstance(atom, Literal)]
    saved = set(jaxpr.outvars)
    inner_constants: list[Any] = []
    for eqn in reversed(jaxpr.eqns):
        if eqn.primitive is jit_p:
            inner_constants[:0] = _seen_through(eqn, saved)
    results += [(var.aval, "from a constant") for var in jaxpr.constvars if var in saved]
    results += [(aval, "from a constant") for aval in inner_constants]
    results += [(var.aval, f"from the argument {name}")
                for var, name in zip(jaxpr.invars, names, strict=True) if var in saved]
    for eqn in jaxpr.eqns:
        for var in eqn.outvars:
            if var in saved:
                results.append((var.aval, f"{_description(eqn)} from {_place(eqn, caller)}"))
    return results


def _seen_through(eqn: JaxprEqn, saved: set[Atom]) -> list[ShapedArray]:
    """Replaces what a jitted function passes on by what was passed to it; the types of constants.
    """
    inner = eqn.params["jaxpr"].jaxpr
    given = dict(zip(inner.invars, eqn.invars, strict=True))
    constants = []
    for var, atom in zip(eqn.outvars, inner.outvars, strict=True):
        if var in saved and atom in given:
            saved.remove(var)
            saved.add(given[atom])
        elif var in saved and (isinstance(atom, Literal) or atom in inner.constvars):
            saved.remove(var)
            if not isinstance(atom, Literal):
                constants.append(var.aval)
    return constants


def _place(eqn: JaxprEqn, caller: FrameType | None) -> str:
    line = eqn.source
    if line is None or (caller is not None and line.code is caller.f_code
                        and line.instruction == caller.f_lasti):
        return ""
    return line.with_column()


def _description(eqn: JaxprEqn) -> str:
    if eqn.primitive is name_p:
        return f"named '{eqn.params['name']}'"
    if eqn.primitive is jit_p:
        return f"output of jitted function '{eqn.params['name']}'"
    return f"output of {eqn.primitive.name}"


def print_saved_residuals(f: Callable[..., PyTree], *args: PyTree, **kwargs: PyTree) -> None:
    """Prints what the backward pass of ``f`` needs of the forward pass.

    Args:
      f: a function of arrays or pytrees of them; it is traced, not run.
      args, kwargs: its arguments.

    Returns:
      None.

    See also: ``jax.checkpoint``, ``jax.ad_checkpoint.checkpoint_name``, ``jax.vjp``.

    >>> jax.ad_checkpoint.print_saved_residuals(lambda x, y: x * y, jnp.ones(()), jnp.ones(2))
    f32[] from the argument x
    f32[2] from the argument y
    """
    for aval, source in saved_residuals(f, *args, **kwargs):
        print(f"{aval.str_short(short_dtypes=True)} {source}")
