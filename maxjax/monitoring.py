"""jax.monitoring: listeners for events, durations, time spans and numbers.

maxjax itself reports "/jax/core/compile/jaxpr_trace_duration", a function traced for ``jit``, and
"/jax/core/compile/backend_compile_duration", a program compiled, each with its ``fun_name``.
"""

from __future__ import annotations

from maxjax._base import monitoring as _monitoring
from maxjax._base.missing import explain_missing_names
from maxjax._base.monitoring import record_event as record_event
from maxjax._base.monitoring import record_event_duration_secs as record_event_duration_secs
from maxjax._base.monitoring import record_event_time_span as record_event_time_span
from maxjax._base.monitoring import record_scalar as record_scalar


def register_event_listener(callback: _monitoring.Listener) -> None:
    """Registers ``callback(event, **kwargs)``, called at each ``record_event``.

    >>> seen = []
    >>> listen = lambda event, **more: seen.append(event)
    >>> register_event_listener(listen)
    >>> jax.monitoring.record_event("/started")
    >>> seen
    ['/started']
    >>> jax.monitoring.unregister_event_listener(listen)
    """
    _monitoring.event_listeners.append(callback)


def register_event_duration_secs_listener(callback: _monitoring.Listener) -> None:
    """Registers ``callback(event, seconds, **kwargs)``, called at ``record_event_duration_secs``.

    >>> def listen(event, seconds, **more):
    ...     print(event, more)
    >>> register_event_duration_secs_listener(listen)
    >>> x = jax.jit(lambda x: x + 1)(1)
    /jax/core/compile/jaxpr_trace_duration {'fun_name': '<lambda>'}
    >>> jax.monitoring.unregister_event_duration_listener(listen)
    """
    _monitoring.duration_listeners.append(callback)


def register_event_time_span_listener(callback: _monitoring.Listener) -> None:
    """Registers ``callback(event, start, end, **kwargs)``, called at ``record_event_time_span``.

    >>> listen = lambda event, start, end, **more: print(event, end - start)
    >>> register_event_time_span_listener(listen)
    >>> jax.monitoring.record_event_time_span("/save", 1.0, 3.5)
    /save 2.5
    >>> jax.monitoring.unregister_event_time_span_listener(listen)
    """
    _monitoring.time_span_listeners.append(callback)


def register_scalar_listener(callback: _monitoring.Listener) -> None:
    """Registers ``callback(event, value, **kwargs)``, called at each ``record_scalar``.

    >>> listen = lambda event, value, **more: print(event, value)
    >>> register_scalar_listener(listen)
    >>> jax.monitoring.record_scalar("/loss", 0.5)
    /loss 0.5
    >>> jax.monitoring.unregister_scalar_listener(listen)
    """
    _monitoring.scalar_listeners.append(callback)


def _remove(listeners: list[_monitoring.Listener], callback: _monitoring.Listener) -> None:
    # JAX's own error, though ValueError would be more fitting.
    assert callback in listeners, f"{callback} is not registered"
    listeners.remove(callback)


def unregister_event_listener(callback: _monitoring.Listener) -> None:
    """Undoes ``register_event_listener``.

    Raises:
      AssertionError: it was not registered.

    >>> listen = lambda event, **more: print(event)
    >>> jax.monitoring.register_event_listener(listen)
    >>> unregister_event_listener(listen)
    >>> jax.monitoring.record_event("/nobody/hears")
    """
    _remove(_monitoring.event_listeners, callback)


def unregister_event_duration_listener(callback: _monitoring.Listener) -> None:
    """Undoes ``register_event_duration_secs_listener``.

    Raises:
      AssertionError: it was not registered.

    >>> unregister_event_duration_listener(print)
    Traceback (most recent call last):
    AssertionError: <built-in function print> is not registered
    """
    _remove(_monitoring.duration_listeners, callback)


def unregister_event_time_span_listener(callback: _monitoring.Listener) -> None:
    """Undoes ``register_event_time_span_listener``.

    Raises:
      AssertionError: it was not registered.

    >>> unregister_event_time_span_listener(print)
    Traceback (most recent call last):
    AssertionError: <built-in function print> is not registered
    """
    _remove(_monitoring.time_span_listeners, callback)


def unregister_scalar_listener(callback: _monitoring.Listener) -> None:
    """Undoes ``register_scalar_listener``.

    Raises:
      AssertionError: it was not registered.

    >>> unregister_scalar_listener(print)
    Traceback (most recent call last):
    AssertionError: <built-in function print> is not registered
    """
    _remove(_monitoring.scalar_listeners, callback)


def clear_event_listeners() -> None:
    """Removes all listeners of all four kinds.

    >>> jax.monitoring.register_event_listener(lambda event, **more: print(event))
    >>> clear_event_listeners()
    >>> jax.monitoring.record_event("/nobody/hears")
    """
    for listeners in _monitoring.ALL:
        listeners.clear()


explain_missing_names(__name__)
