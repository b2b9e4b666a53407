"""jax.extend.source_info_util: which code counts as the user's in equations' locations, where the
running code is, and the scopes around it."""

from __future__ import annotations

from collections.abc import Iterator

from maxjax._base import source
from maxjax._base.interrupts import context_manager
from maxjax._base.missing import explain_missing_names
from maxjax._base.source import SourceLine as SourceInfo

__all__ = ["SourceInfo", "current", "current_name_stack", "extend_name_stack", "new_name_stack",
           "new_source_info", "register_exclusion", "reset_name_stack", "summarize",
           "transform_name_stack", "user_context"]


def register_exclusion(path: str) -> None:
    """Excludes code of this file, or below this folder, from the user's: equations and messages
    name the line that called it.

    >>> jax.extend.source_info_util.register_exclusion("my_library/")
    """
    source.exclude(path)


def current() -> SourceInfo:
    """The line of the user's code that runs, with the scopes around it.

    >>> with jax.named_scope("layer"):
    ...     jax.extend.source_info_util.current().name_stack
    'layer'
    """
    return source.current_line(2) or source.UNKNOWN_LINE


def new_source_info() -> SourceInfo:
    """No line, in no scope.

    >>> jax.extend.source_info_util.new_source_info().name_stack
    ''
    """
    return source.UNKNOWN_LINE


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """``file:line:column (function)``.

    >>> info = jax.make_jaxpr(jnp.sin)(1.0).eqns[0].source_info
    >>> ":" in jax.extend.source_info_util.summarize(info)
    True
    """
    return source_info.with_column()


def current_name_stack() -> str:
    """The scopes around the running code, as JAX prints them.

    >>> jax.extend.source_info_util.current_name_stack()
    ''
    """
    return str(source.scopes.names)


def new_name_stack(name: str = "") -> str:
    """The text of a scope of that name.

    >>> jax.extend.source_info_util.new_name_stack("layer")
    'layer'
    """
    return name


@context_manager
def extend_name_stack(name: str) -> Iterator[str]:
    """A scope of that name, as ``jax.named_scope``.

    >>> with jax.extend.source_info_util.extend_name_stack("layer") as names:
    ...     names
    'layer'
    """
    scopes = source.scopes
    previous, inside = (scopes.names, scopes.source_line), source.inside_scope(name)
    try:
        scopes.names, scopes.source_line = inside
        yield current_name_stack()
    finally:
        scopes.names, scopes.source_line = previous


@context_manager
def transform_name_stack(name: str) -> Iterator[str]:
    """What is traced inside is of a function that is transformed so.

    >>> util = jax.extend.source_info_util
    >>> with util.transform_name_stack("vmap"), util.extend_name_stack("layer") as names:
    ...     names
    'vmap(layer)'
    """
    with source.transformed(source.Transformation(name)):
        yield current_name_stack()


@context_manager
def reset_name_stack() -> Iterator[None]:
    """Outside of all scopes.

    >>> with jax.named_scope("layer"), jax.extend.source_info_util.reset_name_stack():
    ...     jax.extend.source_info_util.current_name_stack()
    ''
    """
    scopes = source.scopes
    previous, outside = (scopes.names, scopes.source_line), source.outside_scopes()
    try:
        scopes.names, scopes.source_line = outside
        yield
    finally:
        scopes.names, scopes.source_line = previous


@context_manager
def user_context(traceback: object, *, name_stack: object = None) -> Iterator[None]:
    """Errors inside are of what was traced earlier: they name its line themselves in maxjax.

    >>> with jax.extend.source_info_util.user_context(None):
    ...     pass
    """
    yield


explain_missing_names(__name__)
