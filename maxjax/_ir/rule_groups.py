"""What is said of a primitive besides its rules, in groups: each is what one part of maxjax reads.

All fields are optional. A group is a value: it is replaced as a whole, never changed.
``maxjax/_ir/primitive.py`` has the rules that most primitives have; ``_ir/rule_protocols.pyi`` has
the signatures of all for type checkers.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from maxjax._ir.control_flow import ControlFlow

if TYPE_CHECKING:
    from maxjax._ir import rule_protocols as rules
    from maxjax._primitives.kernels import Kernel
    from maxjax._primitives.rules import OnShard


@dataclass(frozen=True, slots=True)
class Values:
    """Which values it takes and gives.

    Attributes:
      accepts: the dtypes that operands may have. Operations check it of their operands,
        ``check_operands`` in programs that were read.
      same_dtypes: those of the operands (a slice; None: all) that share one; checked likewise.
      joins_scalars: of elementwise operations: a scalar operand may stand for an array filled with
        it.
      keeps_zero: of functions of one operand that are applied to a sparse array's data alone: they
        give zero for zero (or JAX does as if).
      may_give_nan: ``checkify``'s checks of floats look at the results, as JAX's do.
      known: ``(params)`` -> the value of a primitive without operands, once the sizes in its
        parameters are known.
    """

    accepts: rules.Accepts | None = None
    same_dtypes: slice | None = None
    joins_scalars: bool = False
    keeps_zero: bool = False
    may_give_nan: bool = False
    known: rules.Known | None = None


@dataclass(frozen=True, slots=True)
class Host:
    """How it runs with NumPy, and when it does.

    Attributes:
      reason: why it is a step of the host, where there is no ``lower``; with both, only the graph
        backend leaves it to the host.
      condition: ``(*avals, **params)`` -> why this application is a step of the host, or None.
      specialize: ``(in_avals, params, out_avals)`` -> a faster callable of the arrays for given
        types, or None; ``evaluate`` with its parameters bound if absent.
      alone: as ``specialize``, for an application outside a program, if its values differ there.
      expression: ``(avals, operands)`` -> the application as a Python expression for tier 0, where
        that is cheaper than a call of a NumPy function; None where the NumPy rule is called.
        ``avals`` are of operands and results.
      updates: the result is the first operand but for some of its elements, and ``evaluate`` takes
        ``out``: None, or that operand, whose memory it may write the result to.
      calls_blas: NumPy calls BLAS, whose number of threads follows what else runs. It does not
        survive a fork during a call that uses them: forks wait for it.
      uses_one_thread: ``(in_avals, out_avals, **params)`` -> whether BLAS uses no threads for
        operands of these types.
    """

    reason: str | None = None
    condition: rules.HostCondition | None = None
    specialize: rules.Specialize | None = None
    alone: rules.Specialize | None = None
    expression: rules.Expression | None = None
    updates: bool = False
    calls_blas: bool = False
    uses_one_thread: rules.UsesOneThread | None = None


@dataclass(frozen=True, slots=True)
class Compiled:
    """What compiled programs may do with it.

    Attributes:
      kernels: the elementwise kernels of our own that compute it (``_primitives/kernels.py``).
      cheap: an element takes a few instructions: recomputing a value costs less than storing it.
      takes_complex: the dtypes of complex values that ``lower`` takes as they lie in memory: parts
        become such values, or come of them, a routine of LAPACK is called, or elements are only
        moved. Other applications get parts (``_transforms/complex_parts.py``), or are the host's.
    """

    kernels: tuple[Kernel, ...] = ()
    cheap: bool = False
    takes_complex: Collection[np.dtype] = ()


@dataclass(frozen=True, slots=True)
class Derivative:
    """What differentiation needs besides ``jvp``, ``transpose`` and ``linearity``.

    Attributes:
      linearize: ``(trace, primals, tangents, **params)``, of higher-order primitives, which must be
        split into a known and a linear part.
      partly: ``(trace, primitive, args, **params)`` -> the results of an application of which only
        some operands are known: known results under the trace's parent, the others recorded. If
        absent, none is known.
      zero_is_cotangent: ``transpose`` is called even if the cotangents of all results are zero,
        where that of another primitive would be left out.
      missing: why there is no ``jvp``, as the error says it.
    """

    linearize: rules.Linearize | None = None
    partly: rules.Partly | None = None
    zero_is_cotangent: bool = False
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class Communication:
    """What it does along named axes.

    Attributes:
      axis_names: ``(**params)`` -> the named axes that an application communicates over
        (``maxjax._ir.axes``).
      batch_named: ``(name, size, operands, axes, **params)``, as ``batch``, for an axis whose name
        is one of those; there may be no batched operand.
      varies: ``(axes, **params)`` -> over which manual mesh axes the results vary where the
        operands vary over ``axes``; the same if absent.
    """

    axis_names: rules.AxisNames
    batch_named: rules.BatchNamed | None = None
    varies: rules.Varies | None = None


@dataclass(frozen=True, slots=True)
class Sharded:
    """What the shards of an application do, besides what follows from ``factors``.

    Attributes:
      shard_params: ``(params, in_avals, in_shapes, out_shape)`` -> the parameters on one shard, of
        those shapes, where they hold sizes.
      on_shard: what a shard computes by itself though dimensions do not correspond.
      passes_unreduced: the operands (a slice) that JAX lets be unreduced along mesh axes in types,
        all along the same ones; the results then are too. None: no operand may be.
      split_alike: the operands (a slice) that must lie alike along the Explicit axes of a mesh;
        None: their types decide. Under ``vmap`` those that are not mapped are repeated, and split
        like the mapped axis.
      unsplit: where Explicit axes may split but the dimensions that the rule of factors leaves free
        (batch dimensions of matrices), the name in the error; None: no such limit.
      on_mesh: ``abstract`` itself gives the mesh part of the types of results. Otherwise it gets
        plain types, and ``mesh_rules`` add to its results.
    """

    shard_params: rules.ShardParams | None = None
    on_shard: OnShard | None = None
    passes_unreduced: slice | None = None
    split_alike: slice | None = None
    unsplit: str | None = None
    on_mesh: bool = False


@dataclass(frozen=True, slots=True)
class Effectful:
    """What it does besides computing its results.

    Attributes:
      effects: ``(**params)`` -> the ``Effect``s of an application, which is never dropped, merged
        with another or moved past one, even where there are none of them; None: it is like one of a
        primitive without effects.
      ordered_by_operands: each application takes a result of the one before it, and its last is a
        result of the program: passes need not know of its effects.
    """

    effects: rules.Effects
    ordered_by_operands: bool = False


@dataclass(frozen=True, slots=True)
class Outside:
    """What an application outside programs does.

    Attributes:
      eager: ``(operands, **params)`` -> at once, on arrays: NumPy values of the results.
      program: ``(**params)`` -> what it runs: (a jaxpr of global values, the sharding of each
        result or None).
      placement: ``(**params)`` -> the sharding that the result has, or one for each result; a
        device, or None, where nothing is said.
      stepwise: if the jaxpr puts values on devices, its equations are applied one by one: within a
        program a device has no effect.
    """

    eager: rules.Eager | None = None
    program: rules.Program | None = None
    placement: rules.Placement | None = None
    stepwise: bool = False


@dataclass(frozen=True, slots=True)
class Inner:
    """The jaxprs inside it, or that it stands for.

    Attributes:
      calls: of a primitive that only calls a jaxpr, whose equations replace the call: the parameter
        that holds it, or a function that makes it from the parameters.
      guarded: ``(eqn)`` -> which operands of an inlined call stand behind a barrier, so that a
        recomputation is not merged with the original.
      inlined_late: of calls that compute less where not all of their results are used: they are
        inlined after the others, and after dead code is eliminated.
      scope: of calls: what is told as the scope of the equations inside, a text or a function of
        the parameters; None: the primitive's name.
      expand: ``(in_avals, params)`` -> the jaxpr of a primitive that stands for several operations
        until it is compiled.
      bodies: ``(*avals, **params)`` -> each of its jaxprs, with the types of the operands that it
        is called with and those that its results must have (None: any). For loops and branches
        ``control_flow`` says it.
      control_flow: of loops and branches: what their operands are, and how jaxprs and results
        correspond to them (``maxjax._ir.control_flow``).
      dead_code: ``(eqn, used)`` -> an equation of the used results (and others that they need),
        with only the operands that it needs.
    """

    calls: str | rules.Called | None = None
    guarded: rules.Guarded | None = None
    inlined_late: bool = False
    scope: str | rules.Scope | None = None
    expand: rules.Expand | None = None
    bodies: rules.Bodies | None = None
    control_flow: ControlFlow | None = None
    dead_code: rules.DeadCode | None = None


@dataclass(frozen=True, slots=True)
class Printed:
    """How printed jaxprs show it.

    Attributes:
      params: ``(params)`` -> the parameters that are shown.
      names_inputs: the jaxpr among them is printed with the names of the operands and results.
      name: ``(params)`` -> the name that is shown; the primitive's if absent.
    """

    params: rules.Shown | None = None
    names_inputs: bool = False
    name: rules.ShownName | None = None
