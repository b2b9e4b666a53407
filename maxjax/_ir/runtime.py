"""The runtime, as the layers above it see it: what it offers, and the one that is installed.

Nothing here runs an array program. ``maxjax._runtime`` does; it stands above the transformations,
which call it through ``installed.runtime``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from maxjax._base import dtypes
from maxjax._base.layouts import Layout
from maxjax._base.shardings import NamedSharding, Sharding
from maxjax._base.specs import PartitionSpec
from maxjax._ir.dimensions import is_dimension
from maxjax._ir.jaxpr import ClosedJaxpr, derived
from maxjax._ir.trace import Array, Trace, set_base
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import StaticScalar, Value


class Call:
    """Repeated calls of a jaxpr: all that is decided before the operands are known.

    Attributes:
      closed: the jaxpr.
      donated: the positions of operands that cannot be used afterwards.
      asked: the requested sharding of each result (None: any); None: none is requested.
      operation: the name of the primitive, if the jaxpr is one application of it.
      name: the name in messages.
      out_types: the types of the results.
      ways: what the runtime remembers of the last calls (``maxjax._runtime.calls``).
    """

    __slots__ = ("asked", "closed", "donated", "name", "operation", "out_types", "ways")

    def __init__(self, closed: ClosedJaxpr, donated: tuple[int, ...] = (),
                 asked: Sequence[Sharding | None] | None = None, operation: str = ""):
        self.closed = closed
        self.donated = donated
        self.asked = asked
        self.operation = operation
        self.name = operation or closed.facts.name or closed.debug_info
        self.out_types = tuple(closed.out_avals)
        self.ways: Any = None


@derived
def call_of(closed: ClosedJaxpr, operation: str = "",
            asked: tuple[Sharding | None, ...] | None = None) -> Call:
    """The ``Call`` of a jaxpr without donation, cached with the jaxpr."""
    return Call(closed, (), asked, operation)


class Runtime(Trace, ABC):
    """The trace at the bottom, and what transformations ask of it besides.

    Operations outside of transformations come to it as to any trace (``apply`` and its kin); here
    they meet concrete arrays.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def platform(self) -> str:
        """That of the default device."""

    @abstractmethod
    def devices(self, backend: str | None) -> Sequence[Any]:
        """All devices of a platform; None: of the default one.

        Raises:
          RuntimeError: there is no such platform.
        """

    # --- values ---
    @abstractmethod
    def operand(self, leaf: object) -> Array:
        """A leaf as an operand of primitives: an array, or the tracer that it is; what is not one
        becomes, while a program is traced, a constant of that.

        Raises:
          TypeError: it is neither a number nor an array.
          ValueError: it is a masked array.
        """

    @abstractmethod
    def concrete(self, leaf: object) -> Array:
        """As ``operand``, which while a program is traced gives a value of the program: an array
        whose value is known."""

    def argument(self, leaf: object) -> Array:
        """A leaf of an argument of a transformed function, or of its result, as an operand.

        Raises:
          TypeError: it is neither a number nor an array.
          ValueError: it is a masked array, or says itself how it becomes an array.
        """
        if hasattr(leaf, "__jax_array__") and not is_dimension(leaf):
            raise ValueError(
                "Triggering __jax_array__() during abstractification is no longer supported. To "
                "avoid this error, either explicitly convert your object using jax.numpy.array(), "
                "or register your object as a pytree.")
        operand = self.concrete(leaf)
        if leaf.__class__ in dtypes.PYTHON_SCALARS:
            operand._number = leaf      # type: ignore[attr-defined]
        return operand

    @abstractmethod
    def constant(self, value: np.ndarray, aval: ShapedArray) -> Array:
        """An array of a NumPy value, which nobody else writes to."""

    @abstractmethod
    def put(self, leaf: Value | StaticScalar, sharding: Sharding) -> Array:
        """A concrete leaf as an array with a sharding.

        Raises:
          ValueError: it cannot have that sharding.
        """

    @abstractmethod
    def lay_out(self, x: Array, layout: Layout) -> Array:
        """A concrete array in the order of axes of a layout, which is one for its shape.

        Raises:
          NotImplementedError: it is not in this host's memory alone.
        """

    @abstractmethod
    def spread(self, leaf: Value | StaticScalar, sharding: NamedSharding) -> Array:
        """An array over several processes, from what this process's devices hold together."""

    @abstractmethod
    def collected(self, array: object) -> Array:
        """What this process's devices hold together of an array over several processes; any other
        array as it is."""

    # --- types ---
    @abstractmethod
    def array_types(self, values: Sequence[object]) -> tuple[object, ...] | None:
        """What determines the types of values that are all concrete arrays or numbers; or None."""

    @abstractmethod
    def placed_types(self, values: Sequence[object]) -> tuple[object, ...] | None:
        """What ``array_types`` gives, with where arrays have been put: it decides whether, and how,
        a call that went through may be repeated."""

    @abstractmethod
    def signature(self, leaves: Sequence[object]) -> tuple[ShapedArray, ...] | None:
        """The types of concrete leaves; None if one is a tracer or not an array."""

    # --- programs ---
    @abstractmethod
    def call(self, call: Call, leaves: Sequence[Any]) -> Sequence[Array]:
        """Runs a call on concrete leaves, one for each input of its jaxpr; the jaxpr's program is
        made at the first.

        Raises:
          JaxRuntimeError: a donated leaf is given twice, or memory runs out.
        """

    @abstractmethod
    def compile(self, call: Call, in_shardings: Sequence[Sharding | None]
                ) -> tuple[Sequence[Sharding], Sequence[Sharding]]:
        """Compiles a call's jaxpr ahead of time, as far as the mode allows, and waits for it.

        Args:
          call: the call.
          in_shardings: the sharding of each operand (None: any).

        Returns:
          the shardings of all operands, and of all results.

        Raises:
          CompileError: it cannot be compiled.
        """

    @abstractmethod
    def stablehlo(self, name: str, closed: ClosedJaxpr, results: Sequence[str],
                  located: bool = False, arguments: Sequence[str] = (),
                  devices: Devices | None = None) -> str:
        """A jaxpr as the text of a StableHLO module.

        Args:
          name: that of the function.
          results: what each result is called.
          located: operations say the scopes and the line that they come from.
          arguments: what each argument is called in messages about symbolic sizes.
          devices: the axes of a mesh, and the specs of arguments and results along them.

        Raises:
          NotImplementedError: an operation cannot be written with its symbolic sizes.
        """

    @abstractmethod
    def hlo(self, stablehlo: str) -> str:
        """The text of a StableHLO module as that of HLO.

        Raises:
          NotImplementedError: its sizes are symbolic.
        """


class Devices(NamedTuple):
    """The devices of a program.

    Attributes:
      axes: the names and sizes of the mesh's axes.
      arguments, results: of each the spec along them; None: left open.
    """

    axes: Sequence[tuple[str, int]]
    arguments: Sequence[PartitionSpec | None]
    results: Sequence[PartitionSpec | None]


class _Installed:
    """The place of the one runtime of the process."""

    __slots__ = ("runtime",)
    runtime: Runtime


installed = _Installed()


def install(runtime: Runtime) -> None:
    """Puts the runtime below all transformations, in every thread."""
    installed.runtime = runtime
    set_base(runtime)
