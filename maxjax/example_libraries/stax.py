"""jax.example_libraries.stax: layers of neural networks as pairs of functions.

A layer is ``(init_fun, apply_fun)``: ``init_fun(key, input_shape)`` returns the output's shape and
the parameters, ``apply_fun(params, inputs, **kwargs)`` the outputs. A size of -1 in a shape means a
batch of any size. Keyword arguments (only ``rng`` is used, by Dropout) are passed on to the inner
layers.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from maxjax import lax, random
from maxjax import numpy as jnp
from maxjax._base.missing import explain_missing_names
from maxjax.nn import elu as elu
from maxjax.nn import gelu as gelu
from maxjax.nn import leaky_relu as leaky_relu
from maxjax.nn import log_softmax as log_softmax
from maxjax.nn import relu as relu
from maxjax.nn import selu as selu
from maxjax.nn import sigmoid as sigmoid
from maxjax.nn import softmax as softmax
from maxjax.nn import softplus as softplus
from maxjax.nn import standardize as standardize
from maxjax.nn.initializers import glorot_normal as glorot_normal
from maxjax.nn.initializers import normal as normal
from maxjax.nn.initializers import ones as ones
from maxjax.nn.initializers import zeros as zeros

explain_missing_names(__name__)

Layer = tuple[Callable[..., Any], Callable[..., Any]]

_GLOROT, _NORMAL, _TINY = glorot_normal(), normal(), normal(1e-6)

logsoftmax = log_softmax
randn = normal
glorot = glorot_normal


# --- layers with parameters -----------------------------------------------------------------------

def Dense(out_dim: int, W_init: Any = _GLOROT, b_init: Any = _NORMAL) -> Layer:
    """``x @ W + b``.

    >>> stax = jax.example_libraries.stax
    >>> init, apply = stax.Dense(2, W_init=stax.ones, b_init=stax.zeros)
    >>> shape, params = init(jax.random.key(0), (-1, 3))
    >>> shape
    (-1, 2)
    >>> apply(params, jnp.ones((1, 3)))
    Array([[3., 3.]], dtype=float32)
    """
    def init_fun(rng: Any, input_shape: Sequence[int]) -> Any:
        first, second = random.split(rng)
        W = W_init(first, (input_shape[-1], out_dim))
        return (*input_shape[:-1], out_dim), (W, b_init(second, (out_dim,)))

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        W, b = params
        return jnp.dot(inputs, W) + b

    return init_fun, apply_fun


def _convolution(convolve: Callable[..., Any], output_shape: Callable[..., Any],
                 dimension_numbers: Any, out_chan: int, filter_shape: Sequence[int],
                 strides: Any, padding: Any, W_init: Any, b_init: Any) -> Layer:
    _, kernel_spec, out_spec = dimension_numbers
    strides = strides or (1,) * len(filter_shape)
    W_init = W_init or glorot_normal(kernel_spec.index("I"), kernel_spec.index("O"))

    def init_fun(rng: Any, input_shape: Sequence[int]) -> Any:
        sizes = iter(filter_shape)
        channels = input_shape[dimension_numbers[0].index("C")]
        shape = [{"O": out_chan, "I": channels}.get(letter) or next(sizes)
                 for letter in kernel_spec]
        first, second = random.split(rng)
        W = W_init(first, shape)
        b = b_init(second, tuple(out_chan if letter == "C" else 1 for letter in out_spec))
        return output_shape(input_shape, shape, strides, padding, dimension_numbers), (W, b)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        W, b = params
        return convolve(inputs, W, strides, padding,
                        dimension_numbers=dimension_numbers) + b

    return init_fun, apply_fun


def GeneralConv(dimension_numbers: Any, out_chan: int, filter_shape: Sequence[int],
                strides: Any = None, padding: Any = "VALID", W_init: Any = None,
                b_init: Any = _TINY) -> Layer:
    """A convolution, with the axes of inputs, kernel and outputs in the order of three strings.

    >>> init, apply = jax.example_libraries.stax.GeneralConv(("NCH", "OIH", "NCH"), 5, (3,))
    >>> [int(size) for size in init(jax.random.key(0), (2, 4, 10))[0]]
    [2, 5, 8]
    """
    return _convolution(lax.conv_general_dilated, lax.conv_general_shape_tuple,
                        dimension_numbers, out_chan, filter_shape, strides, padding, W_init,
                        b_init)


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))


def GeneralConvTranspose(dimension_numbers: Any, out_chan: int, filter_shape: Sequence[int],
                         strides: Any = None, padding: Any = "VALID", W_init: Any = None,
                         b_init: Any = _TINY) -> Layer:
    """A transposed convolution; see ``GeneralConv``.

    >>> layer = jax.example_libraries.stax.GeneralConvTranspose(("NCH", "OIH", "NCH"), 5, (3,))
    >>> [int(size) for size in layer[0](jax.random.key(0), (2, 4, 10))[0]]
    [2, 5, 12]
    """
    return _convolution(lax.conv_transpose, lax.conv_transpose_shape_tuple, dimension_numbers,
                        out_chan, filter_shape, strides, padding, W_init, b_init)


Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(axis: Any = (0, 1, 2), epsilon: float = 1e-5, center: bool = True,
              scale: bool = True, beta_init: Any = zeros, gamma_init: Any = ones) -> Layer:
    """Standardizes along axes, with a learned scale (gamma) and offset (beta).

    >>> init, apply = jax.example_libraries.stax.BatchNorm(axis=0, epsilon=0.0)
    >>> shape, params = init(jax.random.key(0), (2, 1))
    >>> apply(params, jnp.array([[1.], [3.]]))
    Array([[-1.],
           [ 1.]], dtype=float32)
    """
    axis = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng: Any, input_shape: Sequence[int]) -> Any:
        shape = tuple(size for i, size in enumerate(input_shape) if i not in axis)
        first, second = random.split(rng)
        beta = beta_init(first, shape) if center else ()
        gamma = gamma_init(second, shape) if scale else ()
        return tuple(input_shape), (beta, gamma)

    def apply_fun(params: Any, x: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        index = tuple(None if i in axis else slice(None) for i in range(jnp.ndim(x)))
        z = standardize(x, axis, epsilon=epsilon)
        if scale:
            z = gamma[index] * z
        return z + beta[index] if center else z

    return init_fun, apply_fun


# --- layers without -------------------------------------------------------------------------------

def _layer(apply_fun: Callable[..., Any],
           output_shape: Callable[[Any], Any] = lambda shape: shape) -> Layer:
    return (lambda rng, input_shape: (output_shape(input_shape), ())), apply_fun


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """The layer that applies ``fun``.

    >>> init, apply = jax.example_libraries.stax.elementwise(jnp.exp)
    >>> apply((), jnp.zeros(2))
    Array([1., 1.], dtype=float32)
    """
    return _layer(lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs))


Tanh = elementwise(jnp.tanh)
Relu = elementwise(relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Gelu = elementwise(gelu)
Identity = _layer(lambda params, inputs, **kwargs: inputs)
Flatten = _layer(lambda params, inputs, **kwargs: jnp.reshape(inputs, (inputs.shape[0], -1)),
                 lambda shape: (shape[0], math.prod(shape[1:])))


def _pooling(combine: Any, initial: float, mean: bool = False) -> Callable[..., Layer]:
    def pooling_layer(window_shape: Sequence[int], strides: Any = None, padding: Any = "VALID",
                      spec: str | None = None) -> Layer:
        """Combines the elements of each window.

        Args:
          window_shape, strides: along the axes other than N and C; strides of 1 by default.
          padding: "VALID" or "SAME".
          spec: the letters of the axes; N first and C last by default.

        >>> init, apply = jax.example_libraries.stax.SumPool((2,), strides=(2,))
        >>> apply((), jnp.ones((1, 4, 1)))
        Array([[[2.],
                [2.]]], dtype=float32)
        """
        steps = strides or (1,) * len(window_shape)
        batch, channel = (0, len(window_shape) + 1) if spec is None else (
            spec.index("N"), spec.index("C"))

        def full(sizes: Sequence[int]) -> tuple[int, ...]:
            result = list(sizes)
            for i in sorted((batch, channel)):
                result.insert(i, 1)
            return tuple(result)

        dims, full_steps = full(window_shape), full(steps)

        def output_shape(shape: Any) -> Any:
            pads = lax.padtype_to_pads(shape, dims, full_steps, padding)
            return tuple(max(0, (size + sum(pad) - window) // step + 1)
                         for size, window, step, pad in zip(shape, dims, full_steps, pads))

        def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
            out = lax.reduce_window(inputs, initial, combine, dims, full_steps, padding)
            if mean:
                counts = lax.reduce_window(jnp.ones_like(inputs), 0., lax.add, dims, full_steps,
                                           padding)
                out = out / counts
            return out

        return _layer(apply_fun, output_shape)

    return pooling_layer


MaxPool = _pooling(lax.max, -jnp.inf)
SumPool = _pooling(lax.add, 0.)
AvgPool = _pooling(lax.add, 0., mean=True)


def FanOut(num: int) -> Layer:
    """The layer that returns its input ``num`` times.

    >>> jax.example_libraries.stax.FanOut(2)[1]((), 3)
    [3, 3]
    """
    return _layer(lambda params, inputs, **kwargs: [inputs] * num, lambda shape: [shape] * num)


FanInSum = _layer(lambda params, inputs, **kwargs: functools.reduce(operator.add, inputs),
                  lambda shapes: shapes[0])


def FanInConcat(axis: int = -1) -> Layer:
    """The layer that concatenates its inputs along an axis.

    >>> jax.example_libraries.stax.FanInConcat()[1]((), [jnp.ones(1), jnp.zeros(1)])
    Array([1., 0.], dtype=float32)
    """
    def output_shape(shapes: Any) -> Any:
        where = axis % len(shapes[0])
        total = sum(shape[where] for shape in shapes)
        return (*shapes[0][:where], total, *shapes[0][where + 1:])

    return _layer(lambda params, inputs, **kwargs: jnp.concatenate(inputs, axis), output_shape)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Keeps each element with probability ``rate``, divided by ``rate``; the others become 0.

    ``apply_fun`` needs the keyword argument ``rng``. With a ``mode`` other than "train" the layer
    is the identity.

    >>> init, apply = jax.example_libraries.stax.Dropout(0.5, mode="test")
    >>> apply((), jnp.ones(2), rng=jax.random.key(0))
    Array([1., 1.], dtype=float32)
    """
    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "Dropout layer requires apply_fun to be called with a PRNG key argument. That is, "
                "instead of `apply_fun(params, inputs)`, call it like `apply_fun(params, inputs, "
                "rng)` where `rng` is a PRNG key (e.g. from `jax.random.key`).")
        if mode != "train":
            return inputs
        keep = random.bernoulli(rng, rate, inputs.shape)
        return jnp.where(keep, inputs / rate, 0)

    return _layer(apply_fun)


# --- layers of layers -----------------------------------------------------------------------------

def _keys(rng: Any, count: int) -> Any:
    return (None,) * count if rng is None else random.split(rng, count)


def serial(*layers: Layer) -> Layer:
    """The layers in sequence.

    >>> stax = jax.example_libraries.stax
    >>> init, apply = stax.serial(stax.Dense(2), stax.Relu)
    >>> init(jax.random.key(0), (-1, 3))[0]
    (-1, 2)
    """
    count = len(layers)
    init_funs, apply_funs = zip(*layers)

    def init_fun(rng: Any, input_shape: Any) -> Any:
        params = []
        for init in init_funs:
            rng, own = random.split(rng)
            input_shape, param = init(own, input_shape)
            params.append(param)
        return input_shape, params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        for fun, param, rng in zip(apply_funs, params, _keys(kwargs.pop("rng", None), count)):
            inputs = fun(param, inputs, rng=rng, **kwargs)
        return inputs

    return init_fun, apply_fun


def parallel(*layers: Layer) -> Layer:
    """The layers in parallel, each with its own input.

    >>> stax = jax.example_libraries.stax
    >>> init, apply = stax.parallel(stax.Identity, stax.Exp)
    >>> apply([(), ()], [jnp.zeros(1), jnp.zeros(1)])
    [Array([0.], dtype=float32), Array([1.], dtype=float32)]
    """
    count = len(layers)
    init_funs, apply_funs = zip(*layers)

    def init_fun(rng: Any, input_shape: Any) -> Any:
        made = [init(own, shape)
                for init, own, shape in zip(init_funs, random.split(rng, count), input_shape)]
        return [shape for shape, _ in made], tuple(param for _, param in made)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), count)
        return [fun(param, x, rng=own, **kwargs)
                for fun, param, x, own in zip(apply_funs, params, inputs, keys)]

    return init_fun, apply_fun


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """The layer that ``make_layer`` returns for the input's shape.

    >>> stax = jax.example_libraries.stax
    >>> init, apply = stax.shape_dependent(lambda shape: stax.Dense(shape[-1]))
    >>> init(jax.random.key(0), (-1, 3))[0]
    (-1, 3)
    """
    return (lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape),
            lambda params, inputs, **kwargs: make_layer(inputs.shape)[1](params, inputs, **kwargs))
