"""What collectives and computations cost: bytes over links, plus a start for each step.

Devices along a mesh axis stand in a ring. With n devices and ``b`` bytes of a shard before the
collective, each link carries

    all-gather          (n - 1) b             every shard passes every link but one
    reduce-scatter      (n - 1) / n b         the same backwards: b is the operand
    all-reduce          2 (n - 1) / n b       a reduce-scatter, then an all-gather
    all-to-all          (n - 1) / n b         each keeps its own block; switched, not stored on
    collective-permute  b
    slice               0                     every device cuts out its own part
"""

from __future__ import annotations

from dataclasses import dataclass

from maxjax._ir.jaxpr import JaxprEqn

KINDS = ("psum", "pmax", "pmin", "all_gather", "reduce_scatter", "all_to_all", "ppermute", "slice")


def link_bytes(kind: str, nbytes: float, size: int) -> float:
    """The bytes that each link of a ring of ``size`` devices carries.

    Args:
      kind: one of KINDS.
      nbytes: of one shard of the operand.
    """
    if size <= 1 or kind == "slice":
        return 0.0
    if kind in ("psum", "pmax", "pmin"):
        return 2 * (size - 1) / size * nbytes
    if kind == "all_gather":
        return (size - 1) * nbytes
    if kind in ("reduce_scatter", "all_to_all"):
        return (size - 1) / size * nbytes
    return nbytes


@dataclass(frozen=True)
class CostModel:
    """Seconds of communication and computation; the defaults are an accelerator's orders of
    magnitude: what counts is their ratio.

    Attributes:
      bandwidth: bytes a second of a link.
      latency: seconds that a collective takes to start.
      flops: floating-point operations a second of a device.
      memory: bytes a second of a device's memory.
    """

    bandwidth: float = 1e11
    latency: float = 1e-6
    flops: float = 1e14
    memory: float = 1e12

    def collective(self, kind: str, nbytes: float, size: int) -> float:
        if size <= 1:
            return 0.0
        if kind == "slice":
            return nbytes / size / self.memory
        return self.latency + link_bytes(kind, nbytes, size) / self.bandwidth

    def computation(self, eqn: JaxprEqn, shards: int) -> float:
        """An equation split evenly over ``shards`` devices."""
        in_avals = [atom.aval for atom in eqn.invars]
        out_avals = [var.aval for var in eqn.outvars]
        flops = eqn.primitive.flops_of(in_avals, out_avals, eqn.params)
        nbytes = sum(aval.nbytes for aval in (*in_avals, *out_avals))
        return (flops / self.flops + nbytes / self.memory) / shards
