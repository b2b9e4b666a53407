"""The jaxprs of derivatives, batches and loops, and what simplification makes of one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._transforms.simplify import simplify
from tests.golden.programs import golden


def jaxpr(function: Callable[..., Any], *args: Any) -> str:
    return str(maxjax.make_jaxpr(function)(*args))


def simplified(function: Callable[..., Any], *args: Any) -> str:
    closed = maxjax.make_jaxpr(function)(*args)
    return f"{closed}\n\nsimplified\n{simplify(closed)}"


def linearized(function: Callable[..., Any], *args: Any) -> str:
    known = maxjax.make_jaxpr(lambda *args: maxjax.linearize(function, *args))(*args)
    linear = maxjax.make_jaxpr(maxjax.linearize(function, *args)[1])(*args)
    return f"value and residuals\n{known}\n\nlinear in the tangents\n{linear}"


program = functools.partial(golden, jaxpr, "jaxpr")
program_simplified = functools.partial(golden, simplified, "jaxpr")
program_linearized = functools.partial(golden, linearized, "jaxpr")


# --- derivatives ----------------------------------------------------------------------------------

@program((4, 3), (3,))
def grad_of_a_layer(w, x):
    """Forward keeps what backward reads: the derivative of tanh, and x. The transpose of the
    product is an outer product."""
    return maxjax.grad(lambda w: jnp.tanh(w @ x).sum())(w)


@program((3,))
def grad_of_a_value_used_twice(x):
    """Each use of y gives a cotangent; add_any sums them before y's own rule runs."""
    def loss(x):
        y = jnp.sin(x)
        return (y * jnp.exp(y)).sum()
    return maxjax.grad(loss)(x)


@program((3,), (2, 3))
def grad_of_a_broadcast(bias, x):
    """The transpose of a broadcast is a sum over the dimensions that it made."""
    return maxjax.grad(lambda bias: jnp.sum((x + bias) ** 2))(bias)


@program((3,))
def grad_of_where(x):
    """A choice transposes to a choice against zero. The derivative of sqrt is computed everywhere:
    where it is NaN, so is zero times it."""
    return maxjax.grad(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0).sum())(x)


@program((5,), np.int32(2))
def grad_of_an_index(x, i):
    """Reading one element transposes to writing one into zeros."""
    return maxjax.grad(lambda x: x[i] ** 2)(x)


@program((3,))
def grad_of_custom_vjp(x):
    """The backward pass is the user's: clipped, and no derivative of the function itself."""
    @maxjax.custom_vjp
    def identity(x):
        return x

    identity.defvjp(lambda x: (x, None), lambda _, cotangent: (jnp.clip(cotangent, -1, 1),))
    return maxjax.grad(lambda x: (identity(x) ** 2).sum())(x)


@program((3,))
def grad_of_checkpoint(x):
    """Nothing is kept of the body but its argument: the backward pass, remat2, computes the inner
    sin again."""
    return maxjax.grad(lambda x: maxjax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))(x).sum())(x)


@program(np.float32(1))
def jvp_of_while(x):
    """Forward mode carries the tangent beside the value; the condition reads values alone."""
    def doubled(x):
        return lax.while_loop(lambda x: x < 100, lambda x: x * x, x)
    return maxjax.jvp(doubled, (x,), (x,))


@program_linearized((3,))
def linearize_of_a_product(x):
    """The residuals of the first program are the constants of the second, which has only products
    by them and sums."""
    return jnp.tanh(x) * x


@program_linearized((3,))
def linearize_of_cond(x):
    """Both branches give residuals of the same types; where one has none of a kind, it gives
    zeros. The linear program chooses again."""
    return lax.cond(x.sum() > 0, jnp.sin, lambda x: x * 2, x)


# --- batches --------------------------------------------------------------------------------------

@program((8, 4, 3), (8, 3))
def vmap_of_matmul(w, x):
    """A product of a batch is one dot_general with a batch dimension; no loop."""
    return maxjax.vmap(lambda w, x: w @ x)(w, x)


@program((4, 3), (8, 3))
def vmap_of_a_shared_operand(w, x):
    """Where one operand has no batch, the product stays a plain one, and its result is turned."""
    return maxjax.vmap(lambda x: w @ x)(x)


@program((8, 5), np.zeros(8, np.int32))
def vmap_of_dynamic_slice(x, start):
    """Slices that begin elsewhere for each row are a gather."""
    return maxjax.vmap(lambda x, i: lax.dynamic_slice(x, (i,), (2,)))(x, start)


@program((8, 3))
def vmap_of_cond(x):
    """A predicate that differs by row: both branches run, and select_n chooses in the end. The rows
    that a branch was not chosen for enter it without derivatives."""
    return maxjax.vmap(lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x))(x)


@program(np.zeros(8, np.float32))
def vmap_of_while(x):
    """It runs until no row wants to go on; rows that are done keep what they have."""
    return maxjax.vmap(lambda x: lax.while_loop(lambda x: x < 100, lambda x: x * 2, x))(x)


@program((3,), (8, 3))
def vmap_of_grad(w, x):
    """Gradients by example: the batch goes through the backward pass as through the forward one."""
    return maxjax.vmap(maxjax.grad(lambda w, x: jnp.tanh(w @ x)), (None, 0))(w, x)


# --- loops ----------------------------------------------------------------------------------------

@program((5, 3), (3,))
def scan_of_a_decay(x, rate):
    """Operands are constants, carries, then what is scanned, in this order; num_consts and
    num_carry tell them apart."""
    return lax.scan(lambda c, row: (c * rate + row, c.sum()), jnp.zeros(3), x)


@program((5, 3), (3,))
def grad_of_scan(x, rate):
    """The forward loop stacks what the backward loop reads, which runs in reverse. The gradient of
    a constant is a carry of it."""
    def loss(rate):
        carry, _ = lax.scan(lambda c, row: (jnp.tanh(c * rate + row), None), jnp.zeros(3), x)
        return carry.sum()
    return maxjax.grad(loss)(rate)


@program((8, 5), (8,))
def vmap_of_scan(x, start):
    """One loop over batches: the scanned dimension stays in front, the batch stands behind it."""
    return maxjax.vmap(lambda x, start: lax.scan(lambda c, e: (c + e, c), start, x))(x, start)


# --- simplification -------------------------------------------------------------------------------

@program_simplified((3,))
def simplify_common_parts(x):
    """sin is computed once, and exp, which nobody reads, not at all."""
    y, _ = jnp.sin(x), jnp.exp(x)
    return y + jnp.sin(x)


@program_simplified((3, 4))
def simplify_calls_and_shapes(x):
    """Calls are inlined, two reshapes are one, and one to the same shape is none."""
    flat = maxjax.jit(lambda x: x.reshape(-1))(x)
    return flat.reshape(4, 3), flat.reshape(3, 4)


@program_simplified((4, 3), (3, 5))
def simplify_a_transposed_product(x, y):
    """The transpose of a product is the product the other way round."""
    return (x @ y).T


@program_simplified((4, 3), (5, 3))
def simplify_a_mapped_product(w, x):
    """The product gives (4, 5); what follows wants (5, 4). It and the elementwise operations after
    it are turned, and nothing is transposed."""
    def gradient(x):
        return maxjax.grad(lambda h: jnp.exp(h).sum())(jnp.tanh(w @ x)) - 2
    return maxjax.vmap(gradient)(x)


@program_simplified((3,))
def simplify_what_changes_nothing(x):
    """Minus minus x, x times one, x minus zero are x; x plus zero is not, where x is -0."""
    return jnp.negative(-x) * 1, (x - 0) + 0.0


@program_simplified((4, 3), np.float32(2))
def simplify_broadcast_scalars(x, scale):
    """A scalar that was broadcast joins an elementwise operation as a scalar, and a choice between
    one value and itself is that value."""
    y = x * jnp.broadcast_to(scale, x.shape)
    return jnp.where(x > 0, y, y)


@program_simplified((5, 3), (3,), (3,))
def simplify_loop_invariants(a, w, x):
    """What no iteration changes is computed before the loop; what only moves elements stays."""
    return lax.fori_loop(0, 4, lambda _, x: jnp.tanh(a @ w) @ a + x @ (a.T @ a), x)
