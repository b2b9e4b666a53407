"""jax.example_libraries.optimizers: optimizers as triples of functions.

``opt_init(params)`` returns a state, ``opt_update(step, gradients, state)`` the next one, and
``get_params(state)`` the parameters. A step size is a number, or a function of the step.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from maxjax import numpy as jnp
from maxjax import tree_util
from maxjax._base.missing import explain_missing_names

explain_missing_names(__name__)

Step = int
Schedule = Callable[[Any], Any]


class OptimizerState(NamedTuple):
    """The leaves of the state of each leaf of the parameters; and the structures of all.

    >>> jax.example_libraries.optimizers.sgd(0.1).init_fn(1.0).packed_state
    ((1.0,),)
    """

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


with warnings.catch_warnings():      # that a named tuple would be a pytree by itself
    warnings.simplefilter("ignore", UserWarning)
    tree_util.register_pytree_node(
        OptimizerState,
        lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
        lambda data, children: OptimizerState(children[0], *data))


class Optimizer(NamedTuple):
    """The three functions of an optimizer.

    >>> jax.example_libraries.optimizers.sgd(0.1)._fields
    ('init_fn', 'update_fn', 'params_fn')
    """

    init_fn: Any
    update_fn: Any
    params_fn: Any


def optimizer(opt_maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """Extends an optimizer for one array to pytrees of arrays.

    Args:
      opt_maker: returns ``init(x)``, ``update(step, gradient, state)`` and ``get_params(state)``
        for an array ``x``; the state may be any pytree.

    >>> optimizers = jax.example_libraries.optimizers
    >>> descent = optimizers.optimizer(lambda rate: (
    ...     lambda x: x, lambda i, g, x: x - rate * g, lambda x: x))
    >>> init, update, get_params = descent(0.5)
    >>> get_params(update(0, {"w": jnp.ones(1)}, init({"w": jnp.ones(1)})))
    {'w': Array([0.5], dtype=float32)}
    """
    @functools.wraps(opt_maker)
    def tree_opt_maker(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def tree_init(x0_tree: Any) -> OptimizerState:
            leaves, tree = tree_util.tree_flatten(x0_tree)
            states = [tree_util.tree_flatten(init(x0)) for x0 in leaves]
            return OptimizerState(tuple(tuple(parts) for parts, _ in states), tree,
                                  tuple(subtree for _, subtree in states))

        def tree_update(i: Any, grad_tree: Any, opt_state: OptimizerState) -> OptimizerState:
            packed, tree, subtrees = opt_state
            grads, grad_structure = tree_util.tree_flatten(grad_tree)
            if grad_structure != tree:
                raise TypeError(
                    "optimizer update function was passed a gradient tree that did not match the "
                    "parameter tree structure with which it was initialized: parameter tree "
                    f"{tree} and grad tree {grad_structure}.")
            new_packed = []
            for parts, subtree, grad in zip(packed, subtrees, grads):
                state = update(i, grad, tree_util.tree_unflatten(subtree, parts))
                new_parts, new_subtree = tree_util.tree_flatten(state)
                if new_subtree != subtree:
                    raise TypeError(
                        "optimizer update function produced an output structure that did not "
                        f"match its input structure: input {subtree} and output {new_subtree}.")
                new_packed.append(tuple(new_parts))
            return OptimizerState(tuple(new_packed), tree, subtrees)

        def tree_get_params(opt_state: OptimizerState) -> Any:
            packed, tree, subtrees = opt_state
            return tree_util.tree_unflatten(tree, [
                get_params(tree_util.tree_unflatten(subtree, parts))
                for parts, subtree in zip(packed, subtrees)])

        return Optimizer(tree_init, tree_update, tree_get_params)

    return tree_opt_maker


# --- optimizers -----------------------------------------------------------------------------------

@optimizer
def sgd(step_size: Any) -> Any:
    """``x - step_size * g``.

    >>> init, update, get_params = jax.example_libraries.optimizers.sgd(0.5)
    >>> get_params(update(0, jnp.array([2.]), init(jnp.array([3.]))))
    Array([2.], dtype=float32)
    """
    step_size = make_schedule(step_size)
    return (lambda x0: x0), (lambda i, g, x: x - step_size(i) * g), (lambda x: x)


def _velocity(x0: Any) -> Any:
    return x0, jnp.zeros_like(x0)


def _first(state: Any) -> Any:
    return state[0]


@optimizer
def momentum(step_size: Any, mass: float) -> Any:
    """Gradient descent along the velocity ``mass * velocity + g``.

    >>> init, update, get_params = jax.example_libraries.optimizers.momentum(0.5, 0.9)
    >>> get_params(update(0, jnp.array([2.]), init(jnp.array([3.]))))
    Array([2.], dtype=float32)
    """
    step_size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - step_size(i) * velocity, velocity

    return _velocity, update, _first


@optimizer
def nesterov(step_size: Any, mass: float) -> Any:
    """Nesterov momentum: steps along ``mass * velocity + g`` with the new velocity.

    >>> init, update, get_params = jax.example_libraries.optimizers.nesterov(0.5, 0.5)
    >>> get_params(update(0, jnp.array([2.]), init(jnp.array([3.]))))
    Array([1.5], dtype=float32)
    """
    step_size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - step_size(i) * (mass * velocity + g), velocity

    return _velocity, update, _first


def _inverse_root(squares: Any, floor: float = 0.0) -> Any:
    """1 / sqrt of the accumulated squares, 0 where there are none."""
    positive = squares > 0
    return jnp.where(positive, 1.0 / jnp.sqrt(jnp.where(positive, squares, 1.0)), 0.0)


@optimizer
def adagrad(step_size: Any, momentum: float = 0.9) -> Any:
    """Adagrad (Duchi et al., 2011): steps divided by the root of the sum of squared gradients.

    >>> init, update, get_params = jax.example_libraries.optimizers.adagrad(1.0)
    >>> get_params(update(0, jnp.array([2.]), init(jnp.array([3.]))))
    Array([2.9], dtype=float32)
    """
    step_size = make_schedule(step_size)

    def init(x0: Any) -> Any:
        return x0, jnp.zeros_like(x0), jnp.zeros_like(x0)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, mean = state
        squares = squares + jnp.square(g)
        mean = (1. - momentum) * (g * _inverse_root(squares)) + momentum * mean
        return x - step_size(i) * mean, squares, mean

    return init, update, _first


@optimizer
def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8) -> Any:
    """RMSProp: steps divided by the root of the mean squared gradient.

    >>> init, update, get_params = jax.example_libraries.optimizers.rmsprop(1.0, gamma=0.75)
    >>> get_params(update(0, jnp.array([2.]), init(jnp.array([3.]))))
    Array([1.], dtype=float32)
    """
    step_size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean_square = state
        mean_square = mean_square * gamma + jnp.square(g) * (1. - gamma)
        return x - step_size(i) * g / jnp.sqrt(mean_square + eps), mean_square

    return _velocity, update, _first


@optimizer
def rmsprop_momentum(step_size: Any, gamma: float = 0.9, eps: float = 1e-8,
                     momentum: float = 0.9) -> Any:
    """RMSProp with momentum.

    >>> init, update, get_params = jax.example_libraries.optimizers.rmsprop_momentum(1.0, 0.75)
    >>> get_params(update(0, jnp.array([2.]), init(jnp.array([3.]))))
    Array([1.], dtype=float32)
    """
    step_size = make_schedule(step_size)

    def init(x0: Any) -> Any:
        return x0, jnp.zeros_like(x0), jnp.zeros_like(x0)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean_square, velocity = state
        mean_square = mean_square * gamma + jnp.square(g) * (1. - gamma)
        velocity = momentum * velocity + step_size(i) * g / jnp.sqrt(mean_square + eps)
        return x - velocity, mean_square, velocity

    return init, update, _first


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Adam (Kingma and Ba, 2014).

    >>> init, update, get_params = jax.example_libraries.optimizers.adam(0.5)
    >>> get_params(update(0, jnp.array([2.]), init(jnp.array([3.])))).round(3)
    Array([2.5], dtype=float32)
    """
    step_size = make_schedule(step_size)

    def init(x0: Any) -> Any:
        return x0, jnp.zeros_like(x0), jnp.zeros_like(x0)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * jnp.square(g) + b2 * v
        unbiased_m = m / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        unbiased_v = v / (1 - jnp.asarray(b2, m.dtype) ** (i + 1))
        return x - step_size(i) * unbiased_m / (jnp.sqrt(unbiased_v) + eps), m, v

    return init, update, _first


@optimizer
def adamax(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Adamax: Adam with the maximum norm.

    >>> init, update, get_params = jax.example_libraries.optimizers.adamax(0.5)
    >>> get_params(update(0, jnp.array([2.]), init(jnp.array([3.]))))
    Array([2.5], dtype=float32)
    """
    step_size = make_schedule(step_size)

    def init(x0: Any) -> Any:
        return x0, jnp.zeros_like(x0), jnp.zeros_like(x0)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, largest = state
        m = (1 - b1) * g + b1 * m
        largest = jnp.maximum(b2 * largest, jnp.abs(g))
        rate = step_size(i) / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        return x - rate * m / (largest + eps), m, largest

    return init, update, _first


@optimizer
def sm3(step_size: Any, momentum: float = 0.9) -> Any:
    """SM3 (Anil et al., 2019): Adagrad with one accumulator for each index of each axis.

    >>> init, update, get_params = jax.example_libraries.optimizers.sm3(1.0)
    >>> get_params(update(0, jnp.array([2.]), init(jnp.array([3.]))))
    Array([2.9], dtype=float32)
    """
    step_size = make_schedule(step_size)

    def init(x0: Any) -> Any:
        shape = jnp.shape(x0) or (1,)
        return x0, jnp.zeros_like(x0), [jnp.zeros(size, jnp.asarray(x0).dtype) for size in shape]

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, accumulators = state
        rank = jnp.ndim(x)
        if not rank:
            squares = accumulators[0][0] + jnp.square(g)
            mean = (1. - momentum) * (g * _inverse_root(squares)) + momentum * mean
            return x - step_size(i) * mean, mean, [squares[None]]
        spread = [part.reshape([-1 if dim == axis else 1 for dim in range(rank)])
                  for axis, part in enumerate(accumulators)]
        squares = functools.reduce(jnp.minimum, spread) + jnp.square(g)
        mean = (1. - momentum) * (g * _inverse_root(squares)) + momentum * mean
        accumulators = [
            squares.max(axis=tuple(dim for dim in range(rank) if dim != axis))
            for axis in range(rank)]
        return x - step_size(i) * mean, mean, accumulators

    return init, update, _first


# --- step sizes -----------------------------------------------------------------------------------

def constant(step_size: Any) -> Schedule:
    """The schedule with a constant step size.

    >>> jax.example_libraries.optimizers.constant(0.5)(7)
    0.5
    """
    def schedule(i: Any) -> Any:
        return step_size

    return schedule


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """``step_size * decay_rate ** (i / decay_steps)``.

    >>> jax.example_libraries.optimizers.exponential_decay(1.0, 1, 0.5)(2)
    0.25
    """
    def schedule(i: Any) -> Any:
        return step_size * decay_rate ** (i / decay_steps)

    return schedule


def inverse_time_decay(step_size: Any, decay_steps: Any, decay_rate: Any,
                       staircase: bool = False) -> Schedule:
    """``step_size / (1 + decay_rate * i / decay_steps)``; with the quotient's floor if a staircase.

    >>> jax.example_libraries.optimizers.inverse_time_decay(1.0, 1, 0.5)(2)
    0.5
    """
    def schedule(i: Any) -> Any:
        if staircase:
            return step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
        return step_size / (1 + decay_rate * i / decay_steps)

    return schedule


def polynomial_decay(step_size: Any, decay_steps: Any, final_step_size: Any,
                     power: float = 1.0) -> Schedule:
    """From ``step_size`` to ``final_step_size`` in the given number of steps.

    >>> jax.example_libraries.optimizers.polynomial_decay(1.0, 4, 0.0)(1)
    Array(0.75, dtype=float32, weak_type=True)
    """
    def schedule(i: Any) -> Any:
        step = jnp.minimum(i, decay_steps)
        return (1 - step / decay_steps) ** power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """``values[k]`` once ``k`` of the ascending ``boundaries`` have been passed.

    Raises:
      ValueError: the number of values is not one more than the number of boundaries.

    >>> jax.example_libraries.optimizers.piecewise_constant([2], [1.0, 0.1])(3)
    Array(0.1, dtype=float32)
    """
    boundaries, values = jnp.array(boundaries), jnp.array(values)
    if not boundaries.ndim == values.ndim == 1:
        raise ValueError("boundaries and values must be sequences")
    if not boundaries.shape[0] == values.shape[0] - 1:
        raise ValueError("boundaries length must be one shorter than values length")

    def schedule(i: Any) -> Any:
        return values[jnp.sum(i > boundaries)]

    return schedule


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A schedule unchanged, or a number's constant schedule.

    Raises:
      TypeError: it is neither.

    >>> jax.example_libraries.optimizers.make_schedule(0.1)(5)
    0.1
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if np.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(type(scalar_or_schedule))


# --- gradients and states -------------------------------------------------------------------------

def l2_norm(tree: Any) -> Any:
    """The root of the sum of the squares of all elements of a pytree.

    >>> jax.example_libraries.optimizers.l2_norm({"a": jnp.array([3.]), "b": 4.})
    Array(5., dtype=float32)
    """
    leaves = tree_util.tree_leaves(tree)
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in leaves))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """The gradients, scaled so that their norm is at most ``max_norm``.

    >>> jax.example_libraries.optimizers.clip_grads([jnp.array([3., 4.])], 1.0)
    [Array([0.6, 0.8], dtype=float32)]
    """
    norm = l2_norm(grad_tree)
    return tree_util.tree_map(
        lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


class JoinPoint:
    """Marks where the state of a parameter begins in an unpacked state.

    >>> jax.example_libraries.optimizers.JoinPoint((1, 2)).subtree
    (1, 2)
    """

    def __init__(self, subtree: Any):
        self.subtree = subtree

    def __iter__(self) -> Any:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """A state as a pytree like the parameters, with a JoinPoint around each one's state.

    >>> optimizers = jax.example_libraries.optimizers
    >>> state = optimizers.sgd(0.1)[0]({"w": jnp.ones(1)})
    >>> optimizers.unpack_optimizer_state(state)["w"].subtree
    Array([1.], dtype=float32)
    """
    packed, tree, subtrees = opt_state
    return tree_util.tree_unflatten(tree, [
        JoinPoint(tree_util.tree_unflatten(subtree, parts))
        for parts, subtree in zip(packed, subtrees)])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The inverse of ``unpack_optimizer_state``.

    >>> optimizers = jax.example_libraries.optimizers
    >>> state = optimizers.sgd(0.1)[0]({"w": jnp.ones(1)})
    >>> optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state)) == state
    True
    """
    points, tree = tree_util.tree_flatten(marked_pytree)
    assert all(isinstance(point, JoinPoint) for point in points)
    states: Sequence[Any] = [tree_util.tree_flatten(point.subtree) for point in points]
    return OptimizerState(tuple(tuple(parts) for parts, _ in states), tree,
                          tuple(subtree for _, subtree in states))
