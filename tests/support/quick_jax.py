"""JAX under test compiles quickly: most of the tests' time would be XLA's optimizing.

Such code computes the same functions, but rounds otherwise: without contracted multiply-adds, and
with other polynomials behind some functions. What has to agree with JAX's own rounding, bit for
bit, is asked of JAX with ``as_by_default``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

# XLA's options, as a test run sets them and as they are by default.
OPTIONS = {
    "xla_backend_optimization_level": (0, 3),
    "xla_llvm_disable_expensive_passes": (True, False),
    "xla_cpu_parallel_codegen_split_count": (1, 32),
}
# Processors with AVX-512 compute in half precision, and contract otherwise: all do without it here,
# so that JAX's results are the same on each.
_SAME_EVERYWHERE = "--xla_cpu_max_isa=AVX2"
BY_DEFAULT = {name: default for name, (_, default) in OPTIONS.items()}


def flags(chosen: str) -> str:
    """XLA's flags, to be set before JAX is imported; those that the user chose stay as they are."""
    return " ".join([*chosen.split(), *(
        [] if "xla_cpu_max_isa" in chosen else [_SAME_EVERYWHERE]), *(
        f"--{name}={str(quick).lower()}" for name, (quick, _) in OPTIONS.items()
        if name not in chosen)])


def as_by_default(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The function under ``jax.jit``, compiled as JAX does where nobody has set flags."""
    import jax
    return jax.jit(function, compiler_options=BY_DEFAULT, **options)


_CONTEXT_USES = 100     # a context keeps what was made in it: types, attributes, locations


def share_contexts() -> None:
    """Lets JAX write many programs in one MLIR context, a thread: to make one takes milliseconds,
    and JAX makes one for each program. What it writes is the same."""
    from jax._src.interpreters import mlir

    make, own = mlir.make_ir_context, threading.local()

    def shared() -> Any:
        uses = getattr(own, "uses", 0)
        if uses % _CONTEXT_USES == 0:
            own.context = make()
        own.uses = uses + 1
        return own.context

    mlir.make_ir_context = shared
