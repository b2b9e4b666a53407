"""maxjax.sharding.explain and auto: what the engine does with a function, and what it would choose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from maxjax._base import pytree
from maxjax._base.meshes import AbstractMesh, Mesh
from maxjax._base.pytree import PyTree
from maxjax._base.shardings import NamedSharding, Sharding
from maxjax._base.specs import PartitionSpec
from maxjax._higher_order.jit_function import PjitFunction, make_jit
from maxjax._higher_order.shape_struct import ShapeDtypeStruct
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array
from maxjax._runtime import on_mesh
from maxjax._runtime.array import ArrayImpl
from maxjax._sharding.auto import Choice
from maxjax._sharding.auto import auto as choose
from maxjax._sharding.report import Report
from maxjax._sharding.report_picture import svg


class Explanation:
    """How a function is spread over a mesh; prints as text.

    Attributes:
      report: each value's sharding, and each collective, as data.
      jaxpr: the program of one shard.
    """

    def __init__(self, report: Report, jaxpr: ClosedJaxpr):
        self.report = report
        self.jaxpr = jaxpr

    def text(self) -> str:
        """Each value's spec and where it is from, each collective, its reason and its bytes."""
        return self.report.text()

    def dot(self) -> str:
        """What ``text`` says, as a graph in Graphviz's language."""
        return self.report.dot()

    def svg(self) -> str:
        """What ``text`` says, as a picture in SVG."""
        return svg(self.report)

    __repr__ = text
    _repr_svg_ = svg      # notebooks


def explain(f: Callable[..., PyTree], *args: PyTree, **kwargs: PyTree) -> Explanation:
    """How the engine spreads a function over the mesh that its arguments are on.

    Args:
      f: a function, jitted or not.
      *args, **kwargs: its arguments, of which some lie over a mesh; else one has to be set, or
        named in the function.

    Raises:
      ValueError: there is no mesh.

    >>> from maxjax.sharding import AxisType, NamedSharding, PartitionSpec as P
    >>> mesh = jax.make_mesh((1,), ("x",), axis_types=(AxisType.Auto,))
    >>> x = jax.device_put(np.ones((4, 4), np.float32), NamedSharding(mesh, P("x")))
    >>> print(explain(lambda x: jnp.tanh(x).sum(), x).text().split(chr(10))[0])
    mesh {x: 1}
    """
    function = f if isinstance(f, PjitFunction) else make_jit(f)
    leaves, entry = function._prepared(args, kwargs)
    outs = entry.call.asked
    mesh = _mesh(entry.closed, leaves, outs)
    made = on_mesh.program_on_mesh(
        entry.closed, mesh, on_mesh.shardings_on(mesh, leaves), outs)
    return Explanation(made.partitioned.report, made.partitioned.jaxpr)


def _mesh(closed: ClosedJaxpr, leaves: Sequence[Array], outs: Sequence[Sharding | None] | None
          ) -> Mesh:
    for leaf in leaves:
        if leaf.__class__ is ArrayImpl and isinstance(leaf._placement, NamedSharding):
            return leaf._placement.mesh      # type: ignore[return-value]
    mesh = on_mesh.mesh_for(closed, leaves, None, outs or [])
    if mesh is None:
        raise ValueError("explain needs a mesh: put an argument on one by device_put, or set one "
                         "by jax.set_mesh")
    return mesh


class AutoSharding:
    """What automatic sharding chose; prints as text.

    Attributes:
      in_shardings: a sharding for each leaf of the arguments, as their tuple.
      name: which candidate it is: the integer program's, or a plain one that is as good.
      seconds: of every candidate, by the cost model.
      report: each value's sharding, and each collective.
    """

    def __init__(self, choice: Choice, in_shardings: PyTree):
        self.in_shardings = in_shardings
        self.name: str = choice.name
        self.seconds: Mapping[str, float] = choice.seconds
        self.report: Report = choice.partitioned.report
        self._choice = choice

    def text(self) -> str:
        """The choice, the candidates and their prices, and what the engine makes of it."""
        return f"{self._choice.text()}\n{self.report.text()}"

    def dot(self) -> str:
        """The program as a graph in Graphviz's language."""
        return self.report.dot()

    def svg(self) -> str:
        """The program as a picture in SVG."""
        return svg(self.report)

    __repr__ = text


def auto(f: Callable[..., PyTree], mesh: Mesh | AbstractMesh, *args: PyTree,
         by_hand: Mapping[str, PyTree] | None = None, seconds: float = 10.0) -> AutoSharding:
    """Chooses how the arguments of a function are best spread over a mesh.

    An integer program over the engine's rules and prices; never dearer by the model than whole
    values, than first dimensions split over one axis, or than what is given by hand.

    Args:
      f: a function, jitted or not.
      mesh: its axes; nothing runs on it.
      *args: its arguments, or their types (``ShapeDtypeStruct``).
      by_hand: by name, pytrees of ``PartitionSpec``s for the arguments, a tuple each.
      seconds: the solver's limit.

    >>> from maxjax.sharding import AbstractMesh
    >>> large = jax.ShapeDtypeStruct((4096, 4096), np.float32)
    >>> choice = auto(jnp.dot, AbstractMesh((4, 2), ("x", "y")), large, large)
    >>> [sharding.spec for sharding in choice.in_shardings]
    [P('x', None), P(None, 'y')]
    """
    function = f if isinstance(f, PjitFunction) else make_jit(f)
    leaves, tree, static = function._flatten(args, {})
    avals = tuple([leaf._aval if isinstance(leaf, ShapeDtypeStruct)
                   else installed.runtime.operand(leaf).aval for leaf in leaves])
    entry = function._entry(avals, tree, static)
    sizes = dict(mesh.shape_tuple)
    hands = {name: [on_mesh.engine_spec(spec, aval.ndim) for spec, aval in zip(
        pytree.broadcast_prefix(specs, args, lambda x: isinstance(x, PartitionSpec), name),
        entry.closed.in_avals, strict=True)] for name, specs in (by_hand or {}).items()}
    choice = choose(entry.closed, sizes, by_hand=hands, seconds=seconds)
    shardings = [NamedSharding(mesh, PartitionSpec(*on_mesh.entries_of(
        dims, choice.partitioned.mesh, sizes))) for dims in choice.in_specs]
    return AutoSharding(choice, pytree.unflatten(pytree.structure(args), shardings))
