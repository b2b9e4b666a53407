"""The signatures of a primitive's rules, for annotations. What they do is said by ``Primitive`` and
its groups.

After the arguments named here a rule takes the primitive's parameters, each by its name, or all of
them as ``**params``: a type checker takes ``*args: Any, **params: Any`` for any that follow.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from maxjax._base.shardings import Sharding
from maxjax._ir.effects import Effect
from maxjax._ir.jaxpr import ClosedJaxpr, JaxprEqn
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import AxisName, DType, HostValue, Params, Shape
from maxjax._max.lowering import Lowering
from maxjax._primitives.rules import FactorRule
from maxjax._runtime.devices import Device

Types = ShapedArray | Sequence[ShapedArray]

# An argument of each operand's own, if the primitive has but one, is never None: no axis of the
# batch, no tangent. Rules of one operand say so, those of several do not.
PerOperand = Sequence[Any]


class Abstract(Protocol):
    """``(*avals, **params)`` -> the type of the result, or those of all results."""

    def __call__(self, *avals: Any, **params: Any) -> Types: ...


class Evaluate(Protocol):
    """``(*arrays, **params)`` -> the result on the host, or all of them."""

    def __call__(self, *arrays: Any, **params: Any) -> HostValue | Sequence[HostValue]: ...


class Specialize(Protocol):
    """A NumPy rule for given types; None: the general one."""

    def __call__(self, in_avals: tuple[ShapedArray, ...], params: Params,
                 out_avals: tuple[ShapedArray, ...], /) -> Callable[..., Any] | None: ...


class Lower(Protocol):
    """Values of the backend's own: of the operands, and of the result or all results."""

    def __call__(self, ctx: Lowering, /, *values: Any, **params: Any) -> Any: ...


class HostCondition(Protocol):
    """``(*avals, **params)`` -> why this application runs on the host, or None."""

    def __call__(self, *avals: Any, **params: Any) -> str | None: ...


class Jvp(Protocol):
    """(result, tangent), or the lists of all results and their tangents."""

    def __call__(self, primals: Sequence[Array], tangents: PerOperand, /, *args: Any,
                 **params: Any) -> tuple[Any, Any]: ...


class Linearize(Protocol):
    """(results, their tangents), split in a known and a linear part."""

    def __call__(self, trace: Any, primals: Sequence[Array], tangents: PerOperand, /, *args: Any,
                 **params: Any) -> tuple[Any, Any]: ...


class Partly(Protocol):
    """The results of known operands and of tangents that a ``LinearTrace`` records."""

    def __call__(self, trace: Any, primitive: Any, args: PerOperand, /, *rest: Any,
                 **params: Any) -> Sequence[Any]: ...


class Transpose(Protocol):
    """``(cotangent, *operands, **params)`` -> the cotangents of the operands. ``cotangent`` is that
    of the result, or the list of those of all results."""

    def __call__(self, cotangent: Any, /, *operands: Any, **params: Any
                 ) -> Sequence[Array | None]: ...


class Batch(Protocol):
    """(result, its batch axis), or the lists of all results and their axes."""

    def __call__(self, size: int, operands: Sequence[Array], axes: PerOperand, /, *args: Any,
                 **params: Any) -> tuple[Any, Any]: ...


class BatchNamed(Protocol):
    """As ``Batch``, of the axis of that name."""

    def __call__(self, name: Any, size: int, operands: Sequence[Array], axes: PerOperand, /,
                 *args: Any, **params: Any) -> tuple[Any, Any]: ...


class AxisNames(Protocol):
    def __call__(self, *args: Any, **params: Any) -> Collection[AxisName]: ...


class Varies(Protocol):
    def __call__(self, axes: frozenset[Any], /, *args: Any, **params: Any
                 ) -> frozenset[AxisName]: ...


class Factors(Protocol):
    def __call__(self, in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], /,
                 *args: Any, **params: Any) -> FactorRule: ...


class ShardParams(Protocol):
    def __call__(self, params: Params, in_avals: Sequence[ShapedArray], in_shapes: Sequence[Shape],
                 out_shape: Shape, /) -> Params: ...


class Flops(Protocol):
    def __call__(self, in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], /,
                 *args: Any, **params: Any) -> float: ...


class UsesOneThread(Protocol):
    def __call__(self, in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], /,
                 *args: Any, **params: Any) -> bool: ...


class Effects(Protocol):
    def __call__(self, *args: Any, **params: Any) -> frozenset[Effect] | None: ...


class Placement(Protocol):
    """One for the result or one for each result; None where nothing is said."""

    def __call__(self, *args: Any, **params: Any) -> (
        Sharding | Device | Sequence[Sharding | Device | None] | None): ...


class Eager(Protocol):
    """Values of all results."""

    def __call__(self, operands: Sequence[Any], /, *args: Any, **params: Any
                 ) -> Sequence[np.ndarray]: ...


class Program(Protocol):
    """A jaxpr of whole values, and the sharding of each of its results."""

    def __call__(self, *args: Any, **params: Any
                 ) -> tuple[ClosedJaxpr, Sequence[Any]]: ...


class Scope(Protocol):
    """What a call is named among scopes."""

    def __call__(self, params: Params, /) -> str: ...


class Called(Protocol):
    """The jaxpr that an application calls."""

    def __call__(self, params: Params, /) -> ClosedJaxpr: ...


class Guarded(Protocol):
    """For each operand of an inlined call whether it stands behind a barrier."""

    def __call__(self, eqn: JaxprEqn, /) -> Sequence[bool]: ...


class Expand(Protocol):
    """The jaxpr of what an application stands for; None if it is to stay as it is."""

    def __call__(self, in_avals: Sequence[ShapedArray], params: Params, /
                 ) -> ClosedJaxpr | None: ...


class DeadCode(Protocol):
    """The equation of the results that are used, with the operands that they need."""

    def __call__(self, eqn: JaxprEqn, used: Sequence[bool], /) -> JaxprEqn: ...


class Bodies(Protocol):
    """Each jaxpr inside, with the types that its operands have and its results must have."""

    def __call__(self, *avals: Any, **params: Any
                 ) -> Iterable[tuple[ClosedJaxpr, Sequence[ShapedArray] | None,
                                     Sequence[ShapedArray] | None]]: ...


class Expression(Protocol):
    """Python's expression for an application, of the operands' expressions; None: there is none."""

    def __call__(self, avals: Sequence[ShapedArray], operands: Sequence[str], /) -> str | None: ...


class Known(Protocol):
    """The value of what has no operands."""

    def __call__(self, params: Params, /) -> Any: ...


class Shown(Protocol):
    """The parameters that a printed jaxpr shows."""

    def __call__(self, params: Params, /) -> Params: ...


class ShownName(Protocol):
    """The name that a printed jaxpr shows."""

    def __call__(self, params: Params, /) -> str: ...


# The dtypes that operands may have.
Accepts = tuple[DType, ...]
