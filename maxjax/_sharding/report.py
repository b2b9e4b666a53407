"""What sharding did: each value's layout and where it is from, each collective and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from maxjax._ir.printing import Names
from maxjax._ir.types import ShapedArray
from maxjax._sharding.partitioner import Collective
from maxjax._sharding.specs import Dims, Mesh, local_aval, show


@dataclass(frozen=True)
class Row:
    """One value of the program.

    Attributes:
      name: as the program prints.
      maker: the primitive, or ``input`` or ``constant``.
      dims: the axes of each dimension.
      origins: for each dimension that is split what brought that about: ``given``, a constraint,
        or the operation that it was propagated through.
      operands: the names of the values that it is made of.
    """

    name: str
    aval: ShapedArray
    maker: str
    dims: Dims
    origins: tuple[str, ...]
    operands: tuple[str, ...] = ()

    @property
    def why(self) -> str:
        parts = [f"dimension {number} {origin}" if origin in ("given", "constraint")
                 or origin.startswith("asked") else f"dimension {number} through {origin}"
                 for number, (axes, origin) in enumerate(zip(self.dims, self.origins, strict=False))
                 if axes and origin]
        return "; ".join(parts)


@dataclass
class Report:
    """The account of one partitioning.

    Attributes:
      mesh: as given.
      axes: as used, with parts of axes.
      rows: the values.
      collectives: in order; local slices among them.
      computation: seconds of computing on one device, by the cost model.
    """

    mesh: Mesh
    axes: Mesh
    rows: list[Row]
    collectives: list[Collective]
    computation: float
    names: Names = field(repr=False)

    @property
    def moves(self) -> list[Collective]:
        """The collectives that communicate."""
        return [collective for collective in self.collectives if collective.kind != "slice"]

    @property
    def communication(self) -> float:
        """Seconds, by the cost model."""
        return sum(move.times * move.seconds for move in self.collectives)

    @property
    def seconds(self) -> float:
        return self.communication + self.computation

    @property
    def link_bytes(self) -> float:
        """What each link carries in all."""
        return sum(move.times * move.links for move in self.moves)

    def counts(self) -> dict[str, int]:
        """How many collectives of each kind the program holds; those in a loop count once."""
        return dict(Counter(move.kind for move in self.moves))

    def text(self) -> str:
        """The account, a line for each value and each collective."""
        lines = [f"mesh {_mesh(self.mesh)}" + (
            "" if dict(self.axes) == dict(self.mesh) else f", in parts {_mesh(self.axes)}"),
            "values"]
        for row in self.rows:
            kind = row.aval.str_short(short_dtypes=True)
            local = local_aval(row.aval, row.dims, self.axes).str_short(short_dtypes=True)
            line = f"  {row.name}:{kind} = {row.maker}  {show(row.dims)}"
            if local != kind:
                line += f"  shard {local}"
            lines.append(line + (f"  ({row.why})" if row.why else ""))
        lines.append("collectives" if self.moves else "no collectives")
        for move in self.moves:
            often = f" {move.times} times" if move.times > 1 else ""
            name = self.names.of(move.var)
            also = "".join(f", {self.names.of(var)}" for var in move.also)
            together = f" (with{also[1:]})" if also else ""
            lines.append(
                f"  {move.kind} over {', '.join(move.axes)}{often}: {name} {move.before} -> "
                f"{move.after}{together}, {move.nbytes} bytes a shard ({move.reason})")
        lines.append(f"total: {len(self.moves)} collectives, {self.link_bytes:.0f} bytes a link, "
                     f"{1e6 * self.communication:.2f} us of communication and "
                     f"{1e6 * self.computation:.2f} us of computation by the cost model")
        return "\n".join(lines)

    def dot(self) -> str:
        """The account as a graph in Graphviz's language: values along the flow of the program, and
        the collectives between a value and those made of it."""
        lines = ["digraph sharding {", "  rankdir=TB; node [shape=box, fontname=monospace];"]
        # What uses a value uses it after its collectives.
        after: dict[str, str] = {}
        for number, move in enumerate(self.moves):
            for var in (move.var, *move.also):
                after[self.names.of(var)] = f"c{number}"
        for row in self.rows:
            label = f"{row.name}:{row.aval.str_short(short_dtypes=True)}\\n{row.maker}\\n" \
                    f"{show(row.dims)}"
            filled = ', style=filled, fillcolor="#cfe8ff"' if any(row.dims) else ""
            lines.append(f'  "{row.name}" [label="{label}"{filled}];')
            lines += [f'  "{after.get(operand, operand)}" -> "{row.name}";'
                      for operand in row.operands]
        for number, move in enumerate(self.moves):
            label = f"{move.kind}({', '.join(move.axes)})\\n{move.nbytes} bytes\\n{move.reason}"
            lines.append(f'  "c{number}" [label="{label}", shape=ellipse, color=red];')
            lines += [f'  "{self.names.of(var)}" -> "c{number}" [color=red];'
                      for var in (move.var, *move.also)]
        return "\n".join([*lines, "}"])


def _mesh(mesh: Mesh) -> str:
    return "{" + ", ".join(f"{name}: {size}" for name, size in mesh.items()) + "}"
