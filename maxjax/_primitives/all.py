"""All families: importing this registers every primitive."""

from maxjax._primitives import (  # noqa: F401
    arithmetic,
    comparison,
    contraction,
    convert,
    convolution,
    cumulative,
    dynamic_slice,
    fft,
    incomplete,
    indexing,
    linalg,
    random_bits,
    random_rejection,
    reduction,
    shape,
    sorting,
    special,
    transcendental,
    window,
)
