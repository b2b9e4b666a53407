"""Policies of checkpoint: which residuals of the forward pass are saved anyway."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from maxjax._ir.jaxpr import JaxprEqn
from maxjax._ir.primitive import Primitive
from maxjax._ir.types import ShapedArray
from maxjax._primitives.contraction import dot_general_p
from maxjax._primitives.convolution import conv_general_dilated_p
from maxjax._primitives.identities import name_p

Policy = Callable[..., Any]


class RecomputeType:
    """A policy's answer for a value that is recomputed."""


class SaveableType:
    """A policy's answer for a value that may be saved."""


Recompute = RecomputeType()
Saveable = SaveableType()


class Offloadable(NamedTuple):
    """A policy's answer for a value that may be saved in another memory. There is one memory
    here, and the value is saved in it.

    >>> jax.ad_checkpoint.Offloadable(src="device", dst="pinned_host").dst
    'pinned_host'
    """

    src: Any
    dst: Any


def saves(policy: Policy, eqn: JaxprEqn) -> bool:
    case = policy(eqn.primitive, *[atom.aval for atom in eqn.invars], **eqn.params)
    if isinstance(case, bool):
        return case
    if not isinstance(case, (RecomputeType, SaveableType, Offloadable)):
        raise TypeError(
            "Value returned by a remat policy should be a bool or `ad_checkpoint.Recompute`, "
            f"`ad_checkpoint.Saveable` or `ad_checkpoint.Offloadable(...)`. Got {case} of type "
            f"{type(case)}.")
    return not isinstance(case, RecomputeType)


def everything_saveable(*_: object, **__: object) -> bool:
    """Saves all residuals, as if there were no ``checkpoint``."""
    return True


def nothing_saveable(*_: object, **__: object) -> bool:
    """Saves nothing but the operands: what ``checkpoint`` does without a policy."""
    return False


def dots_saveable(prim: Primitive, *_: ShapedArray, **__: object) -> bool:
    """Saves the results of matrix products and of convolutions."""
    return prim is dot_general_p or prim is conv_general_dilated_p


def dots_with_no_batch_dims_saveable(prim: Primitive, *args: ShapedArray, **params: Any) -> bool:
    """Saves the results of matrix products without batch dimensions."""
    return prim is dot_general_p and not params["dimension_numbers"][1][0]


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Offloads the results of matrix products without batch dimensions."""
    def policy(prim: Primitive, *args: ShapedArray, **params: object) -> Any:
        if dots_with_no_batch_dims_saveable(prim, *args, **params):
            return Offloadable(src=offload_src, dst=offload_dst)
        return Recompute

    return policy


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Saves all values, named or not."""
    return lambda *_, **__: True


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Saves what ``checkpoint_name`` has named, except under these names."""
    excepted = frozenset(names_not_to_save)

    def policy(prim: Primitive, *_: object, **params: object) -> bool:
        return prim is name_p and params["name"] not in excepted

    return policy


def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Saves what ``checkpoint_name`` has given one of these names."""
    saved = frozenset(names_which_can_be_saved)

    def policy(prim: Primitive, *_: object, **params: object) -> bool:
        return prim is name_p and params["name"] in saved

    return policy


def save_and_offload_only_these_names(
        *, names_which_can_be_saved: Sequence[str], names_which_can_be_offloaded: Sequence[str],
        offload_src: str, offload_dst: str) -> Policy:
    """Saves what has one of some names, and offloads what has one of others."""
    saved, offloaded = set(names_which_can_be_saved), set(names_which_can_be_offloaded)
    both = saved & offloaded
    if both:
        raise ValueError(
            "The names should be exclusive and should not intersect in `names_which_can_be_saved` "
            f"and `names_which_can_be_offloaded`. Got names_which_can_be_saved={saved}, "
            f"names_which_can_be_offloaded={offloaded} and the intersection={both}")

    def policy(prim: Primitive, *_: object, **params: object) -> Any:
        if prim is name_p and params["name"] in saved:
            return Saveable
        if prim is name_p and params["name"] in offloaded:
            return Offloadable(src=offload_src, dst=offload_dst)
        return Recompute

    return policy


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Saves what either policy saves."""
    def policy(prim: Primitive, *args: ShapedArray, **params: object) -> bool:
        first, second = policy_1(prim, *args, **params), policy_2(prim, *args, **params)
        if not (isinstance(first, bool) and isinstance(second, bool)):
            raise ValueError(
                f"The return value of the policies should be a boolean. Got: {first} and {second}. "
                "Please write a custom policy function directly, rather than using this helper "
                "function.")
        return first or second

    return policy


checkpoint_policies = types.SimpleNamespace(
    everything_saveable=everything_saveable,
    nothing_saveable=nothing_saveable,
    dots_saveable=dots_saveable,
    checkpoint_dots=dots_saveable,
    dots_with_no_batch_dims_saveable=dots_with_no_batch_dims_saveable,
    checkpoint_dots_with_no_batch_dims=dots_with_no_batch_dims_saveable,
    offload_dot_with_no_batch_dims=offload_dot_with_no_batch_dims,
    save_anything_except_these_names=save_anything_except_these_names,
    save_any_names_but_these=save_any_names_but_these,
    save_only_these_names=save_only_these_names,
    save_from_both_policies=save_from_both_policies,
    save_and_offload_only_these_names=save_and_offload_only_these_names,
)
