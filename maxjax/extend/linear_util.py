"""jax.extend.linear_util: nested function transformations, with auxiliary results.

A transformation is a generator. It yields arguments for the inner function, is sent that function's
result, and yields its own.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from maxjax._base import config
from maxjax._base.missing import explain_missing_names
from maxjax._base.wrapped_function import Store as Store
from maxjax._base.wrapped_function import StoreException as StoreException
from maxjax._base.wrapped_function import WrappedFun as WrappedFun
from maxjax._base.wrapped_function import wrap_init as wrap_init


def _run(gen: Callable[..., Iterator[Any]], inner: Callable[..., Any], static: tuple[Any, ...],
         args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    layer: Any = gen(*static, *args, **kwargs)
    inner_args, inner_kwargs = next(layer)
    try:
        result = inner(*inner_args, **inner_kwargs)
    except BaseException as error:
        layer.throw(error)      # lets the generator clean up
        raise
    outcome = layer.send(result)
    layer.close()
    return outcome


def transformation(gen: Callable[..., Any]) -> Callable[..., WrappedFun]:
    """A transformation from a generator ``gen(*static_args, *args, **kwargs)``.

    Returns:
      A function ``(fun, *static_args)`` that applies it to ``fun``.

    >>> lu = jax.extend.linear_util
    >>> @lu.transformation
    ... def scaled(by, x):
    ...     result = yield (by * x,), {}
    ...     yield result / by
    >>> scaled(lu.wrap_init(lambda x: x + 1), 2).call_wrapped(3)
    3.5
    """
    def wrap(fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
        inner = fun.f_transformed

        def transformed(*args: Any, **kwargs: Any) -> Any:
            return _run(gen, inner, gen_static_args, args, kwargs)

        return fun.wrap(gen, gen_static_args, None, transformed)

    return functools.update_wrapper(wrap, gen)


def transformation_with_aux(gen: Callable[..., Any]
                            ) -> Callable[..., tuple[WrappedFun, Callable[[], Any]]]:
    """A transformation from a generator that yields the result with an auxiliary one.

    Returns:
      A function ``(fun, *static_args)`` that returns the function and another one, without
      arguments, that returns the last call's auxiliary result.

    >>> lu = jax.extend.linear_util
    >>> @lu.transformation_with_aux
    ... def counted(*args):
    ...     result = yield args, {}
    ...     yield result, len(args)
    >>> fun, count = counted(lu.wrap_init(max))
    >>> fun.call_wrapped(3, 5, 4), count()
    (5, 3)
    """
    def wrap(fun: WrappedFun, *gen_static_args: Any) -> tuple[WrappedFun, Callable[[], Any]]:
        inner, store = fun.f_transformed, Store()

        def transformed(*args: Any, **kwargs: Any) -> Any:
            result, aux = _run(gen, inner, gen_static_args, args, kwargs)
            store.store(aux)
            return result

        return fun.wrap(gen, gen_static_args, store, transformed), lambda: store.val

    return functools.update_wrapper(wrap, gen)


def transformation2(gen: Callable[..., Any]) -> Callable[..., WrappedFun]:
    """A transformation from a function ``gen(fun, *static_args, *args, **kwargs)``.

    >>> lu = jax.extend.linear_util
    >>> @lu.transformation2
    ... def twice(fun, x):
    ...     return fun(fun(x))
    >>> twice(lu.wrap_init(lambda x: x + 1)).call_wrapped(3)
    5
    """
    def wrap(fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
        transformed = functools.partial(gen, fun.f_transformed, *gen_static_args)
        return fun.wrap(gen, gen_static_args, None, transformed)

    return functools.update_wrapper(wrap, gen)


def transformation_with_aux2(gen: Callable[..., Any]
                             ) -> Callable[..., tuple[WrappedFun, Callable[[], Any]]]:
    """A transformation from a function that also gets a slot for an auxiliary result:
    ``gen(fun, store, *static_args, *args, **kwargs)``, which calls ``store.store(value)``.

    >>> lu = jax.extend.linear_util
    >>> @lu.transformation_with_aux2
    ... def counted(fun, store, *args):
    ...     store.store(len(args))
    ...     return fun(*args)
    >>> fun, count = counted(lu.wrap_init(max))
    >>> fun.call_wrapped(3, 5, 4), count()
    (5, 3)
    """
    def wrap(fun: WrappedFun, *gen_static_args: Any, use_eq_store: bool = False
             ) -> tuple[WrappedFun, Callable[[], Any]]:
        store = Store(use_eq_store)
        transformed = functools.partial(gen, fun.f_transformed, store, *gen_static_args)
        return fun.wrap(gen, gen_static_args, store, transformed), lambda: store.val

    return functools.update_wrapper(wrap, gen)


def cache(call: Callable[..., Any], *, explain: Any = None) -> Callable[..., Any]:
    """Caches the results of ``call(fun, *args)`` as long as the function of ``fun`` lives.

    Auxiliary results are also cached.

    Args:
      call: a function of a ``WrappedFun`` and hashable arguments.
      explain: accepted as in JAX, and not called.

    >>> lu = jax.extend.linear_util
    >>> def call(fun, x):
    ...     print("called")
    ...     return fun.call_wrapped(x)
    >>> kept, double = lu.cache(call), lambda x: 2 * x
    >>> kept(lu.wrap_init(double), 3)
    called
    6
    >>> kept(lu.wrap_init(double), 3)
    6
    """
    known: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()

    @functools.wraps(call)
    def cached(fun: WrappedFun, *args: Any) -> Any:
        results = known.setdefault(fun.f, {})
        key = (fun.transforms, fun.params, args, config.trace_state())
        if key in results:
            result, stored = results[key]
            for store, values in zip(fun.stores, stored, strict=True):
                if store is not None:
                    store._values = list(values)
            return result
        result = call(fun, *args)
        results[key] = result, [None if store is None else list(store._values)
                                for store in fun.stores]
        return result

    cached.cache_clear = known.clear      # type: ignore[attr-defined]
    return cached


def merge_linear_aux(aux1: Callable[[], Any], aux2: Callable[[], Any]) -> tuple[bool, Any]:
    """The one of two auxiliary results that was written, and whether it is the first.

    Raises:
      StoreException: neither was written, or both.

    >>> lu = jax.extend.linear_util
    >>> def empty():
    ...     raise lu.StoreException("Store empty")
    >>> lu.merge_linear_aux(empty, lambda: 3)
    (False, 3)
    """
    try:
        first = aux1()
    except StoreException:
        try:
            return False, aux2()
        except StoreException:
            raise StoreException("neither store occupied") from None
    try:
        aux2()
    except StoreException:
        return True, first
    raise StoreException("both stores occupied")


explain_missing_names(__name__)
