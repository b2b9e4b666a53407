"""Random keys: creation, splitting, folding, and access to their words."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from maxjax._base import config, dtypes, source
from maxjax._higher_order.jit_function import make_jit
from maxjax._ir.dimensions import size_index
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array, Tracer
from maxjax._ir.typing import ArrayLike, DTypeLike
from maxjax._primitives import random_rbg as _random_rbg  # noqa: F401  (it adds its generators)
from maxjax._primitives.generators import (
    AnyGenerator,
    DefinedGenerator,
    Generator,
    defined_generators,
    generator_of_keys,
    generators,
)
from maxjax._primitives.random_bits import (
    random_clone_p,
    random_fold_in_p,
    random_seed_p,
    random_split_p,
    random_wrap_p,
)
from maxjax.random import _defined

_KNOWN = ("philox2x32", "philox4x32", "threefry2x32", "rbg", "unsafe_rbg", "threefry4x32")


def jitted(*static: str) -> Callable[..., Any]:
    """Decorates a sampler: traced once for each shape and dtype, and named in jaxprs."""
    def decorate(sampler: Callable[..., Any]) -> Any:
        @functools.wraps(sampler)
        def sample(*args: Any, **kwargs: Any) -> Any:
            # A wide dtype allowed by ``jax_explicit_x64_dtypes`` needs wide arithmetic.
            wide = any(isinstance(value, np.dtype) and dtypes.canonical(value) != value
                       for value in (*args, *kwargs.values()))
            with config.enable_x64(True) if wide else contextlib.nullcontext():
                return sampler(*args, **kwargs)

        return make_jit(sample, static_argnames=static)

    return decorate


def generator_of(impl: Any) -> AnyGenerator:
    """The generator that ``impl`` names; the configured one if it is None.

    Raises:
      ValueError: the name is unknown.
      TypeError: it is neither a name, nor a generator, nor a dtype of keys.
    """
    if impl is None:
        impl = config.default_prng_impl.value
    if isinstance(impl, (Generator, DefinedGenerator)):
        return impl
    if dtypes.is_key(impl):
        return generator_of_keys(impl)
    name = getattr(impl, "_impl", impl)
    if not isinstance(name, str):
        raise TypeError(f"unrecognized type {type(impl)} for specifying PRNG implementation.")
    if name in generators:
        return generators[name]
    known = ", ".join(f'"{name}"' for name in _KNOWN)
    raise ValueError(f'unrecognized PRNG implementation "{impl}". Did you mean one of: {known}?')


def partitionable() -> bool:
    """Whether counters have a layout that can be computed in parts."""
    return bool(config.threefry_partitionable.value)


# --- arguments ------------------------------------------------------------------------------------

def is_key_array(value: Any) -> bool:
    return isinstance(value, Array) and dtypes.is_key(value.dtype)


def typed_key(key: Any) -> tuple[Any, bool]:
    """A key array, and whether it was given as raw words.

    Raises:
      TypeError: it is neither.
    """
    if is_key_array(key):
        return key, False
    if key is None or isinstance(key, (list, tuple, dict)):
        raise TypeError(f"unexpected PRNG key type {type(key)}")
    impl = generator_of(None)
    words = wrap_words(key, impl)
    _judge_raw_key(impl.name)
    return words, not config.enable_custom_prng.value


def _judge_raw_key(generator: str) -> None:
    """Raises or warns about keys that are arrays of integers, if options ask for it."""
    state = config.legacy_prng_key.value
    message = ("Legacy uint32 key array passed as key to jax.random function. Please create keys "
               "using jax.random.key(). If use of a raw key array was intended, set "
               'jax_legacy_prng_key="allow".')
    if state == "error":
        raise ValueError(message)
    if state == "warn":
        source.warn(message)
    elif config.enable_custom_prng.value:
        source.warn(f"Raw arrays as random keys to jax.random functions are deprecated. Assuming "
                    f"valid {generator} key for now.", FutureWarning)


def wrap_words(words: Any, impl: AnyGenerator) -> Any:
    if not isinstance(words, (Array, np.ndarray)):
        raise TypeError("JAX encountered invalid PRNG key data: expected key_data to have ndim, "
                        f"shape, and dtype attributes. Got {words}")
    shape = impl.dtype.key_shape
    if words.ndim < len(shape):
        raise TypeError("JAX encountered invalid PRNG key data: expected key_data.ndim >= "
                        f"{len(shape)}; got ndim={words.ndim}")
    batch = words.shape[:words.ndim - len(shape)]
    if words.shape[len(batch):] != shape:
        raise TypeError("JAX encountered invalid PRNG key data: expected key_data.shape to end "
                        f"with {shape}; got shape={words.shape} for impl={impl.name}")
    if words.dtype != dtypes.uint32:
        raise TypeError("JAX encountered invalid PRNG key data: expected key_data.dtype = uint32; "
                        f"got dtype={words.dtype}")
    operand = installed.runtime.operand(words)
    return random_wrap_p.bind(
        operand if len(shape) == 1 else operand.reshape(*batch, impl.dtype.words), impl=impl)


def single_key(name: str, key: Any) -> Any:
    """One key, for a sampler with that name.

    Raises:
      TypeError: it is not a key.
      ValueError: it is an array of keys.
    """
    return checked_key(name, key)[0]


def checked_key(name: str, key: Any) -> tuple[Any, bool]:
    typed, raw = typed_key(key)
    if typed.shape:
        raise ValueError(
            f"{name} accepts a single key, but was given a key array of shape {key.shape} != (). "
            "Use jax.vmap for batching.")
    return typed, raw


def _like_given(key: Any, raw: bool) -> Any:
    return _defined.words_of(key) if raw else key


# --- making keys ----------------------------------------------------------------------------------

def key(seed: Any, *, impl: Any = None, dtype: DTypeLike | None = None) -> Array:
    """A typed random key from an integer.

    Args:
      seed: an integer, or a scalar array of one.
      impl: the name of the generator: "threefry2x32", the default, "rbg" or "unsafe_rbg".
      dtype: in its place, the dtype of its keys.

    Returns:
      An array of shape () and dtype ``key<fry>``.

    Raises:
      TypeError: the seed is no integer, or not a scalar.
      ValueError: there is no such generator.

    See also: ``split``, ``fold_in``, ``PRNGKey``, ``key_data``, ``wrap_key_data``.

    >>> jax.random.key(0)
    Array((), dtype=key<fry>) overlaying:
    [0 0]
    """
    return _seeded("key", seed, _one_of("key", impl, dtype))


def PRNGKey(seed: Any, *, impl: Any = None) -> Array:
    """A raw random key from an integer: an array of shape (2,) and dtype uint32.

    Where a function takes a key, either kind will do; ``key`` gives the typed one, which
    ``jax.vmap`` and shapes see as one element.

    Args:
      seed: an integer, or a scalar array of one.
      impl: the name of the generator: "threefry2x32", the default, "rbg" or "unsafe_rbg".

    Returns:
      An array of uint32, of shape (2,), or (4,) for the other generators.

    Raises:
      TypeError: the seed is no integer, or not a scalar.
      ValueError: there is no such generator.

    See also: ``key``, ``split``, ``fold_in``.

    >>> jax.random.PRNGKey(1)
    Array([0, 1], dtype=uint32)
    """
    typed = _seeded("PRNGKey", seed, impl)
    return typed if config.enable_custom_prng.value else _defined.words_of(typed)


def _one_of(name: str, impl: Any, dtype: Any) -> Any:
    """What names the generator.

    Raises:
      ValueError: both do.
    """
    if impl is not None and dtype is not None:
        raise ValueError(
            f"Cannot specify both `impl` and `dtype` arguments to jax.random.{name}")
    return dtype if impl is None else impl


def _seeded(name: str, seed: Any, impl: Any) -> Any:
    generator = generator_of(impl)
    if is_key_array(seed):
        raise TypeError(f"{name} accepts a scalar seed, but was given a PRNG key.")
    if np.shape(seed):
        raise TypeError(
            f"{name} accepts a scalar seed, but was given an array of shape {np.shape(seed)} != ()."
            " Use jax.vmap for batching")
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        if not -(1 << 63) <= int(seed) < 1 << 63:
            raise OverflowError("Python int too large to convert to C long")
        # As a 64-bit integer, of which only the low half is used without 64-bit types.
        wide = np.asarray(int(seed), np.int64)
        seed = wide if config.enable_x64.value else wide.astype(np.int32)
    operand = installed.runtime.operand(seed)
    if operand.dtype == dtypes.bool_:
        operand = installed.runtime.operand(np.asarray(operand).astype(np.int32)) if not isinstance(
            operand, Tracer) else operand.astype(dtypes.int32)
    if not dtypes.is_integer(operand.dtype):
        raise TypeError(f"PRNG key seed must be an integer; got {operand!r}")
    offset = config.random_seed_offset.value
    if offset:
        operand = operand + np.asarray(offset, operand.dtype)[()]
    if isinstance(generator, DefinedGenerator):
        return _defined.seed(generator, operand)
    return random_seed_p.bind(operand, impl=generator)


def wrap_key_data(key_bits_array: Any, *, impl: Any = None,
                  dtype: DTypeLike | None = None) -> Array:
    """Typed keys from raw words, shape ``(..., 2)`` and dtype uint32.

    >>> jax.random.wrap_key_data(jnp.array([0, 1], 'uint32'))
    Array((), dtype=key<fry>) overlaying:
    [0 1]
    """
    return wrap_words(key_bits_array, generator_of(_one_of("wrap_key_data", impl, dtype)))


def key_data(keys: ArrayLike) -> Array:
    """The words of keys: shape ``keys.shape + (2,)`` and dtype uint32.

    Args:
      keys: typed keys; raw ones are returned as they are.

    Returns:
      An array of uint32 of shape ``keys.shape + (2,)``; 4 words for "rbg".

    Raises:
      TypeError: they are no keys.

    See also: ``wrap_key_data``, ``key``, ``key_impl``, ``clone``.

    >>> jax.random.key_data(jax.random.key(1))
    Array([0, 1], dtype=uint32)
    """
    typed, raw = typed_key(keys)
    return installed.runtime.operand(keys) if raw else _defined.words_of(typed)


def key_impl(keys: ArrayLike) -> Hashable:
    """The name of the keys' generator, or what ``define_prng_impl`` returned.

    Args:
      keys: keys, typed or raw.

    Returns:
      The generator's name, such as "threefry2x32", which ``key`` takes as ``impl``.

    Raises:
      TypeError: they are no keys.

    See also: ``key``, ``key_data``, ``wrap_key_data``.

    >>> str(jax.random.key_impl(jax.random.key(1)))
    'threefry2x32'
    """
    typed, _ = typed_key(keys)
    generator = generator_of_keys(typed.dtype)
    return generator.name if generator.name in generators else generator


def key_dtype(impl_spec: Any = None) -> Any:
    """The dtype of keys of a generator.

    >>> jax.random.key(0).dtype == jax.random.key_dtype()
    True
    """
    return generator_of(impl_spec).dtype


def clone(key: ArrayLike) -> Any:
    """A copy of a key, for code that deliberately uses it twice; any other array unchanged.

    Args:
      key: keys, typed or raw, or any array.

    Returns:
      An array of the same values.

    See also: ``key``, ``split``.

    >>> key = jax.random.key(0)
    >>> jax.random.clone(key) == key
    Array(True, dtype=bool)
    """
    value = installed.runtime.operand(key)
    return random_clone_p.bind(value) if is_key_array(value) else value


# --- new keys from old ----------------------------------------------------------------------------

def split(key: ArrayLike, num: int | tuple[int, ...] = 2) -> Array:
    """New keys from one.

    A key is not to be used again once it is split: ``key, subkey = split(key)``.

    Args:
      key: one key, typed or raw.
      num: the number of keys, or the shape of their array.

    Returns:
      Keys of shape ``(num,)``; raw if ``key`` is. Deterministic, and the same as JAX's.

    Raises:
      TypeError: ``key`` is no key, or ``num`` no integer.

    See also: ``fold_in``, ``key``, ``clone``.

    >>> jax.random.key_data(jax.random.split(jax.random.key(0)))
    Array([[1797259609, 2579123966],
           [ 928981903, 3453687069]], dtype=uint32)
    """
    typed, raw = checked_key("split", key)
    shape = tuple(map(size_index, num)) if isinstance(num, (tuple, list)) else (
        size_index(num),)
    if math.prod(shape) < 0 or any(size < 0 for size in shape):
        raise ValueError(f"split needs a number of keys that is not negative, got {num}")
    return _like_given(split_typed(typed, shape), raw)


def split_typed(key: Any, shape: tuple[int, ...] = (2,)) -> Any:
    generator = defined_generators.get(key.dtype)
    if generator is not None:
        return _defined.split(generator, key, shape)
    return random_split_p.bind(key, shape=shape, partitionable=partitionable())


def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """A new key from a key and an integer.

    For a key of each step or of each device, without splitting as many at once.

    Args:
      key: one key, typed or raw.
      data: a scalar, converted to uint32.

    Returns:
      A key of the kind of ``key``.

    Raises:
      TypeError: ``key`` is no key, or ``data`` is no scalar; under ``vmap`` it may be mapped.

    See also: ``split``, ``key``, ``lax.axis_index``.

    >>> jax.random.key_data(jax.random.fold_in(jax.random.key(0), 3))
    Array([2467461003, 3840466878], dtype=uint32)
    """
    typed, raw = checked_key("fold_in", key)
    if np.shape(data):
        raise TypeError(f"fold_in accepts a scalar, but was given an array ofshape {np.shape(data)}"
                        " != (). Use jax.vmap for batching.")
    if isinstance(data, Array):
        data = data.astype(dtypes.uint32)
    elif isinstance(data, (int, np.integer)) and not isinstance(data, bool):
        if not 0 <= int(data) < 1 << 32 and isinstance(data, int):
            raise OverflowError(f"Python integer {data} out of bounds for uint32")
        data = np.asarray(int(data) & 0xFFFFFFFF, np.uint32)
    else:
        data = np.asarray(data).astype(np.uint32)
    operand = installed.runtime.operand(data)
    generator = defined_generators.get(typed.dtype)
    return _like_given(random_fold_in_p.bind(typed, operand) if generator is None
                       else _defined.fold_in(generator, typed, operand), raw)
