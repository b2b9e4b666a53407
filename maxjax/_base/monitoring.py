"""Listeners that are told what happens: events, durations, time spans, numbers."""

from __future__ import annotations

from collections.abc import Callable

Listener = Callable[..., None]

event_listeners: list[Listener] = []
duration_listeners: list[Listener] = []
time_span_listeners: list[Listener] = []
scalar_listeners: list[Listener] = []

ALL = (event_listeners, duration_listeners, time_span_listeners, scalar_listeners)


def record_event(event: str, **kwargs: str | int) -> None:
    """Tells the listeners of events that one happened.

    Args:
      event: its name, by custom a path such as "/trainer/checkpoint".
      kwargs: what else there is to know of it.

    >>> from maxjax import monitoring
    >>> monitoring.register_event_listener(lambda event, **more: print(event, more))
    >>> monitoring.record_event("/trainer/saved", step=3)
    /trainer/saved {'step': 3}
    >>> monitoring.clear_event_listeners()
    """
    for listener in tuple(event_listeners):
        listener(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tells the listeners of durations how many seconds something took.

    >>> from maxjax import monitoring
    >>> monitoring.register_event_duration_secs_listener(lambda *event, **more: print(event))
    >>> monitoring.record_event_duration_secs("/trainer/save", 1.5)
    ('/trainer/save', 1.5)
    >>> monitoring.clear_event_listeners()
    """
    for listener in tuple(duration_listeners):
        listener(event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float,
                           **kwargs: str | int) -> None:
    """Tells the listeners of time spans when something began and ended, in seconds.

    >>> from maxjax import monitoring
    >>> monitoring.register_event_time_span_listener(lambda *event, **more: print(event))
    >>> monitoring.record_event_time_span("/trainer/save", 10.0, 11.5)
    ('/trainer/save', 10.0, 11.5)
    >>> monitoring.clear_event_listeners()
    """
    for listener in tuple(time_span_listeners):
        listener(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Tells the listeners of scalars a number.

    >>> from maxjax import monitoring
    >>> monitoring.register_scalar_listener(lambda *event, **more: print(event))
    >>> monitoring.record_scalar("/trainer/loss", 0.25)
    ('/trainer/loss', 0.25)
    >>> monitoring.clear_event_listeners()
    """
    for listener in tuple(scalar_listeners):
        listener(event, value, **kwargs)


def record_phase(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
    """A phase of maxjax's own work, as a duration and as a time span."""
    if duration_listeners:
        record_event_duration_secs(event, end_time - start_time, **kwargs)
    if time_span_listeners:
        record_event_time_span(event, start_time, end_time, **kwargs)
