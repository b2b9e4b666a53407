"""All families: importing this registers every primitive."""

from maxjax._primitives import (  # noqa: F401
    arithmetic,
    comparison,
    contraction,
    convert,
    cumulative,
    indexing,
    reduction,
    shape,
    transcendental,
)
