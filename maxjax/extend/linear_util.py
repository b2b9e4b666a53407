"""jax.extend.linear_util: nested function transformations, with auxiliary results.

A transformation is a generator. It yields arguments for the inner function, is sent that function's
result, and yields its own.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from maxjax._base import config
from maxjax._base.missing import explain_missing_names


class StoreException(Exception):
    """An auxiliary result was read before it was written, or written twice.

    >>> raise jax.extend.linear_util.StoreException("Store empty")
    Traceback (most recent call last):
    StoreException: Store empty
    """


class Store:
    """A slot for one value; with ``takes_equal``, an equal one may be written again."""

    def __init__(self, takes_equal: bool = False) -> None:
        self._values: list[Any] = []
        self._takes_equal = takes_equal

    def store(self, value: Any) -> None:
        if self._values and not (self._takes_equal and self._values[0] == value):
            raise StoreException("Store occupied")
        self._values[:] = [value]

    def reset(self) -> None:
        self._values.clear()

    @property
    def val(self) -> Any:
        if not self._values:
            raise StoreException("Store empty")
        return self._values[0]


class WrappedFun:
    """A function and the transformations around it; made by ``wrap_init``.

    Two are equal if the function, the transformations and all arguments are.

    Attributes:
      f: the innermost function.
      f_transformed: the transformed function.
      transforms: each transformation with its static arguments, outermost first.
      stores: the transformations' slots for auxiliary results; None for those without.
      params: keyword arguments of ``f``.

    >>> jax.extend.linear_util.wrap_init(lambda x: 2 * x).call_wrapped(3)
    6
    """

    def __init__(self, f: Callable[..., Any], f_transformed: Callable[..., Any],
                 transforms: tuple[tuple[Callable[..., Any], tuple[Hashable, ...]], ...],
                 stores: tuple[Store | None, ...], params: tuple[tuple[str, Any], ...]):
        self.f = f
        self.f_transformed = f_transformed
        self.transforms = transforms
        self.stores = stores
        self.params = params

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed wrapped function>")

    def wrap(self, gen: Callable[..., Any], gen_static_args: tuple[Hashable, ...],
             out_store: Store | None, transformed: Callable[..., Any]) -> WrappedFun:
        """The function with one more transformation around it."""
        return WrappedFun(self.f, transformed, ((gen, gen_static_args), *self.transforms),
                          (out_store, *self.stores), self.params)

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the transformed function."""
        return self.f_transformed(*args, **kwargs)

    def _key(self) -> Any:
        return self.f, self.transforms, self.params

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedFun) and self._key() == other._key()

    def __repr__(self) -> str:
        layers = "".join(
            f"{number}   : {getattr(gen, '__name__', gen)}   {static}\n"
            for number, (gen, static) in enumerate(self.transforms))
        return f"Wrapped function:\n{layers}\nCore: {self.__name__}\n"


def wrap_init(f: Callable[..., Any], params: dict[str, Any] | None = None, *,
              debug_info: Any = None) -> WrappedFun:
    """A function without transformations.

    Args:
      f: the function.
      params: keyword arguments that each call passes to it.
      debug_info: accepted as in JAX; maxjax finds names and lines itself.

    >>> jax.extend.linear_util.wrap_init(lambda x, by: by * x, {"by": 2}).call_wrapped(3)
    6
    """
    given = params or {}
    transformed = functools.partial(f, **given) if given else f
    return WrappedFun(f, transformed, (), (), tuple(sorted(given.items())))


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
    """The same, for generators that yield the result and an auxiliary one.

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
    """The same, with a slot for an auxiliary result:
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
