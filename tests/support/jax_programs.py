"""Programs that real JAX writes, with their arguments and JAX's results."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.export
import numpy as np

from tests.support import harness
from tests.support.harness import Case

MODES = ("value", "gradient", "vmap")


def plain(value: Any) -> np.ndarray:
    """An array as a module takes and gives it: keys as their words."""
    if jax.dtypes.issubdtype(getattr(value, "dtype", None), jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    return np.asarray(value)


@dataclasses.dataclass
class JaxProgram:
    """A function that JAX has lowered.

    Attributes:
      lowered: what JAX makes of it.
      arguments, results: those of the module, flat.
      function, operands: what has been lowered.
    """

    lowered: Any
    arguments: list[np.ndarray]
    results: list[np.ndarray]
    function: Callable[..., Any]
    operands: tuple[Any, ...]

    def text(self, generic: bool = False) -> str:
        module = self.lowered.compiler_ir("stablehlo")
        return module.operation.get_asm(print_generic_op_form=generic)

    def bytecode(self) -> bytes | None:
        """A portable artifact; None where JAX warrants none."""
        try:
            exported = jax.export.export(jax.jit(self.function, keep_unused=True))(*self.operands)
        except ValueError:
            return None
        return bytes(exported.mlir_module_serialized)


def program_of(function: Callable[..., Any], *operands: Any) -> JaxProgram:
    lowered = jax.jit(function, keep_unused=True).lower(*operands)
    results = jax.tree.leaves(lowered.compile()(*operands))
    return JaxProgram(lowered, [*map(plain, jax.tree.leaves(operands))], [*map(plain, results)],
                      function, operands)


def modes_of(case: Case) -> list[str]:
    if case.raises or not case.jittable:
        return []
    return ["value", *["gradient"] * case.differentiable, *["vmap"] * case.vmappable]


def program_of_case(case: Case, mode: str) -> JaxProgram:
    """A case's program, that of its cotangents, or of two at a time."""
    fun, args = case.on(jax), case.args
    if mode == "value":
        return program_of(fun, *args)
    if mode == "vmap":
        return program_of(jax.vmap(fun), *jax.tree.map(lambda x: np.stack([x, x]), args))
    rng = np.random.default_rng(case.seed())
    cotangents = jax.tree.map(
        lambda x: harness.random_like(rng, np.zeros(x.shape, x.dtype)),
        jax.eval_shape(fun, *args))

    def gradient(*values: Any) -> list[Any]:
        found = jax.tree.leaves(jax.vjp(fun, *values)[1](cotangents))
        return [x for x in found if x.dtype != harness.FLOAT0]

    return program_of(gradient, *args)
