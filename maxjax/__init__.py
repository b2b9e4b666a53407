"""maxjax: JAX, on Modular's MAX."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from maxjax import core as core
from maxjax import errors as errors
from maxjax import lax as lax
from maxjax import numpy as numpy
from maxjax import sharding as sharding
from maxjax import tree as tree
from maxjax import tree_util as tree_util
from maxjax import typing as typing
from maxjax import version as version
from maxjax._base import accepted_options as _accepted_options
from maxjax._base import caches as _caches
from maxjax._base import config as _options
from maxjax._base import source as _source
from maxjax._base import variables as _variables
from maxjax._base.config import config as config
from maxjax._base.dtypes import float0 as float0
from maxjax._base.interrupts import context_manager as _context_manager
from maxjax._base.interrupts import entered_at_once as _entered_at_once
from maxjax._base.lazy import import_module as _import_module
from maxjax._base.missing import attribute_error as _attribute_error
from maxjax._base.missing import explain_missing_names as _explain_missing_names
from maxjax._base.missing import public_names as _public_names
from maxjax._base.processes import job as _job
from maxjax._base.tracebacks import shorten_uncaught as _shorten_uncaught
from maxjax._higher_order import control as _control
from maxjax._higher_order import entries as _entries
from maxjax._higher_order.api import Inline as Inline
from maxjax._higher_order.api import eval_shape as eval_shape
from maxjax._higher_order.api import jit as jit
from maxjax._higher_order.api import make_jaxpr as make_jaxpr
from maxjax._higher_order.custom_jvp import custom_jvp as custom_jvp
from maxjax._higher_order.jacobian import fwd_and_bwd as fwd_and_bwd
from maxjax._higher_order.jacobian import hessian as hessian
from maxjax._higher_order.jacobian import jacfwd as jacfwd
from maxjax._higher_order.jacobian import jacrev as jacrev
from maxjax._higher_order.linear_transpose import linear_transpose as linear_transpose
from maxjax._higher_order.shape_struct import ShapeDtypeStruct as ShapeDtypeStruct
from maxjax._higher_order.shape_struct import typeof as typeof
from maxjax._higher_order.target import CompilerEffortLevel as CompilerEffortLevel
from maxjax._ir.trace import Array as Array
from maxjax._ir.typing import Function as _Function
from maxjax._runtime import cells as _cells
from maxjax._runtime.devices import Device as Device
from maxjax._runtime.devices import devices as devices
from maxjax._runtime.placement import block_until_ready as block_until_ready
from maxjax._runtime.placement import copy_to_host_async as copy_to_host_async
from maxjax._runtime.placement import default_backend as default_backend
from maxjax._runtime.placement import device_count as device_count
from maxjax._runtime.placement import device_get as device_get
from maxjax._runtime.placement import device_put as device_put
from maxjax._runtime.placement import live_arrays as live_arrays
from maxjax._runtime.placement import local_device_count as local_device_count
from maxjax._runtime.placement import local_devices as local_devices
from maxjax._transforms.autodiff import grad as grad
from maxjax._transforms.autodiff import jvp as jvp
from maxjax._transforms.autodiff import linearize as linearize
from maxjax._transforms.autodiff import value_and_grad as value_and_grad
from maxjax._transforms.autodiff import vjp as vjp
from maxjax._transforms.vmap import vmap as vmap
from maxjax.core import ensure_compile_time_eval as ensure_compile_time_eval
from maxjax.version import __version__ as __version__
from maxjax.version import __version_info__ as __version_info__

_variables.cache_max_bytes(0)      # refuse invalid values before anything is stored
_variables.standard_library()
_variables.warn_of_unknown()

jacobian = jacrev

# --- options as context managers ------------------------------------------------------------------

enable_x64 = _options.enable_x64
numpy_rank_promotion = _options.rank_promotion
numpy_dtype_promotion = _options.dtype_promotion
debug_nans = _options.debug_nans
debug_infs = _options.debug_infs
threefry_partitionable = _options.threefry_partitionable
default_prng_impl = _options.default_prng_impl
default_matmul_precision = _options.default_matmul_precision
default_device = _options.default_device
log_compiles = _options.log_compiles
check_tracer_leaks = _options.check_tracer_leaks
no_tracing = _options.no_tracing


def disable_jit(disable: bool = True) -> contextlib.AbstractContextManager[None]:
    """Inside the context, functions under jit run operation by operation.

    Args:
      disable: False enables it again inside.

    Returns:
      A context manager. Then values can be printed and Python's debugger steps through; slowly.

    See also: ``jax.jit``, ``jax.debug.print``, ``jax.ensure_compile_time_eval``.
    """
    return _options.disable_jit(disable)


def checking_leaks() -> contextlib.AbstractContextManager[None]:
    """Inside the context, a trace that ends while its tracers are still referenced is an error.

    Returns:
      A context manager.

    See also: ``jax.check_tracer_leaks``, ``jax.debug_nans``, ``jax.jit``.
    """
    return _options.check_tracer_leaks(True)


def named_scope(name: str) -> contextlib.ContextDecorator:
    """``with named_scope("attention"):`` names a part of a function.

    The names are shown after equations in ``make_jaxpr(f)(x).pretty_print(name_stack=True)``.

    Args:
      name: a text; scopes inside one another are joined by "/".

    Returns:
      A context manager, and a decorator.

    Raises:
      TypeError: the name is no text.

    See also: ``jax.named_call``, ``jax.profiler.TraceAnnotation``, ``jax.make_jaxpr``.
    """
    return _NamedScope(name)


class _NamedScope(contextlib.ContextDecorator):

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise TypeError("named_scope name argument must be a string.")
        self.name = name
        self.previous: list[Any] = []

    def _recreate_cm(self) -> _NamedScope:      # as a decorator: one for each call
        return _NamedScope(self.name)

    def __enter__(self) -> None:
        scopes = _source.scopes
        self.previous.append((scopes.names, scopes.source_line))
        scopes.names, scopes.source_line = _source.inside_scope(self.name)

    @_entered_at_once
    def __exit__(self, *_: Any) -> None:
        scopes = _source.scopes
        *self.previous, (scopes.names, scopes.source_line) = self.previous


def named_call(fun: _Function, *, name: str | None = None) -> _Function:
    """``fun`` inside a ``named_scope`` with that name, or with the function's own.

    Args:
      fun: a function.
      name: a text; None: the name of ``fun``.

    Returns:
      A function of the same arguments.

    See also: ``jax.named_scope``, ``jax.jit``.
    """
    own = getattr(fun, "__name__", "call")
    named: Any = named_scope(name or str(own))(fun)
    return named


# Context managers by option name.
_option = _options.config.option
allow_f16_reductions = _option("jax_allow_f16_reductions")
array_garbage_collection_guard = _option("jax_array_garbage_collection_guard")
auto_pcast = _option("jax_auto_pcast")
debug_key_reuse = _option("jax_debug_key_reuse")
enable_checks = _option("jax_enable_checks")
enable_custom_prng = _option("jax_enable_custom_prng")
explain_cache_misses = _option("jax_explain_cache_misses")
jax2tf_associative_scan_reductions = _option("jax2tf_associative_scan_reductions")
legacy_prng_key = _option("jax_legacy_prng_key")
no_execution = _option("jax_no_execution")
make_user_context = _options.make_user_context
remove_size_one_mesh_axis_from_type = _option("jax_remove_size_one_mesh_axis_from_type")
softmax_custom_jvp = _option("jax_softmax_custom_jvp")
thread_guard = _option("jax_thread_guard")
transfer_guard_device_to_device = _option("jax_transfer_guard_device_to_device")
transfer_guard_device_to_host = _option("jax_transfer_guard_device_to_host")
transfer_guard_host_to_device = _option("jax_transfer_guard_host_to_device")


@_context_manager
def transfer_guard(new_val: str) -> Iterator[None]:
    """Transfers in all directions, and what becomes of them, for a block of code in one thread.

    Args:
      new_val: "allow"; "log" or "disallow" those that are not asked for (a NumPy array as an
        argument, an operand on another device); "log_explicit" or "disallow_explicit" all of them,
        also by ``device_put``.

    Raises:
      ValueError: it is none of these.

    >>> x = jnp.arange(3)
    >>> with jax.transfer_guard("disallow"):
    ...     jax.jit(jnp.sin)(x), jax.device_put(np.ones(3))     # no error
    ...     x + np.ones(3)
    Traceback (most recent call last):
    jax.errors.JaxRuntimeError: INVALID_ARGUMENT: Disallowed host-to-device transfer: ...
    """
    with (_option("jax_transfer_guard")(new_val), transfer_guard_host_to_device(new_val),
          transfer_guard_device_to_device(new_val), transfer_guard_device_to_host(new_val)):
        yield


# --- the process ----------------------------------------------------------------------------------

def process_index(backend: str | None = None) -> int:
    """The number of this process among those that ``jax.distributed`` started; otherwise 0.

    Args:
      backend: accepted; the number is the same for all platforms.

    Returns:
      An int, from 0 to ``process_count() - 1``.

    See also: ``jax.process_count``, ``jax.local_devices``, ``jax.distributed.initialize``.
    """
    devices(backend)      # refuses an unknown one
    return _job.index


def process_count(backend: str | None = None) -> int:
    """The number of processes.

    Args:
      backend: accepted; the number is the same for all platforms.

    Returns:
      An int; 1 without ``jax.distributed``.

    See also: ``jax.process_index``, ``jax.device_count``, ``jax.distributed.initialize``.
    """
    return len(process_indices(backend))


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of all processes."""
    devices(backend)
    return list(range(_job.count))


host_id, host_count, host_ids = process_index, process_count, process_indices


def effects_barrier() -> None:
    """Waits until all pending operations have run.

    Returns:
      None.

    See also: ``jax.block_until_ready``, ``jax.debug.callback``, ``jax.debug.print``.
    """
    _cells.pending.flush()


def clear_caches() -> None:
    """Clears all traces, and the caches of eager operations. Compiled kernels remain: see
    MAXJAX_CACHE_DIR.

    Returns:
      None.

    See also: ``jax.jit``, ``jax.live_arrays``.
    """
    _entries.forget_traces()
    _control.forget_traces()
    _caches.clear()


def print_environment_info(return_string: bool = False) -> str | None:
    """Prints, or returns, the versions that a bug report should name."""
    python = sys.version.replace("\n", " ")
    options = [f"{name}={_variables.shown(name, value)}"
               for name, value in sorted(os.environ.items())
               if name.startswith(("JAX_", "MAXJAX_", "XLA_"))]
    lines = [f"maxjax:    {__version__} (the API of JAX {version.JAX_VERSION})",
             f"jaxlib: {version.JAX_VERSION} (its names alone)",
             *(f"{name}:{' ' * (7 - len(name))}{sys.modules[name].__version__}"
               for name in ("numpy", "optree")),
             f"python: {python}", f"device info: {devices()}",
             f"process_count: {process_count()}", f"platform: {platform.uname()}", *options]
    text = "\n".join(lines)
    if return_string:
        return text
    print(text)
    return None


# --- what is brought in at first use --------------------------------------------------------------
# Names of JAX that are defined in other modules; any other name is tried as a module. Type
# checkers read the imports instead, and see no ``__getattr__``, which has every name.
if TYPE_CHECKING:
    from maxjax import ad as ad
    from maxjax import ad_checkpoint as ad_checkpoint
    from maxjax import api_util as api_util
    from maxjax import custom_batching as custom_batching
    from maxjax import custom_derivatives as custom_derivatives
    from maxjax import debug as debug
    from maxjax import distributed as distributed
    from maxjax import dlpack as dlpack
    from maxjax import dtypes as dtypes
    from maxjax import example_libraries as example_libraries
    from maxjax import experimental as experimental
    from maxjax import export as export
    from maxjax import extend as extend
    from maxjax import ffi as ffi
    from maxjax import flatten_util as flatten_util
    from maxjax import image as image
    from maxjax import interpreters as interpreters
    from maxjax import memory as memory
    from maxjax import monitoring as monitoring
    from maxjax import nn as nn
    from maxjax import ops as ops
    from maxjax import profiler as profiler
    from maxjax import random as random
    from maxjax import ref as ref
    from maxjax import scipy as scipy
    from maxjax import stages as stages
    from maxjax import test_util as test_util
    from maxjax._higher_order.callback import pure_callback as pure_callback
    from maxjax._higher_order.checkpoint import checkpoint as checkpoint
    from maxjax._higher_order.checkpoint import remat as remat
    from maxjax._higher_order.checkpoint_policies import checkpoint_policies as checkpoint_policies
    from maxjax._higher_order.custom_gradient import closure_convert as closure_convert
    from maxjax._higher_order.custom_gradient import custom_gradient as custom_gradient
    from maxjax._higher_order.custom_vjp import custom_vjp as custom_vjp
    from maxjax._runtime.assembly import make_array_from_callback as make_array_from_callback
    from maxjax._runtime.assembly import (
        make_array_from_process_local_data as make_array_from_process_local_data,
    )
    from maxjax._runtime.assembly import (
        make_array_from_single_device_arrays as make_array_from_single_device_arrays,
    )
    from maxjax._sharding.pmap import pmap as pmap
    from maxjax._sharding.shard_map_api import shard_map as shard_map
    from maxjax._sharding.smap import smap as smap
    from maxjax.numpy._array_members import Shard as Shard
    from maxjax.numpy._refs import ds as ds
    from maxjax.ref import Ref as Ref
    from maxjax.ref import empty_ref as empty_ref
    from maxjax.ref import free_ref as free_ref
    from maxjax.ref import freeze as freeze
    from maxjax.ref import new_ref as new_ref
    from maxjax.sharding import NamedSharding as NamedSharding
    from maxjax.sharding import P as P
    from maxjax.sharding import get_abstract_mesh as get_abstract_mesh
    from maxjax.sharding import get_mesh as get_mesh
    from maxjax.sharding import make_mesh as make_mesh
    from maxjax.sharding import reshard as reshard
    from maxjax.sharding import set_mesh as set_mesh
    from maxjax.sharding import use_abstract_mesh as use_abstract_mesh

_LATE = {
    "custom_vjp": "maxjax._higher_order.custom_vjp",
    "custom_gradient": "maxjax._higher_order.custom_gradient",
    "closure_convert": "maxjax._higher_order.custom_gradient",
    "checkpoint": "maxjax._higher_order.checkpoint",
    "remat": "maxjax._higher_order.checkpoint",
    "checkpoint_policies": "maxjax._higher_order.checkpoint_policies",
    "pure_callback": "maxjax._higher_order.callback",
    "pmap": "maxjax._sharding.pmap",
    "shard_map": "maxjax._sharding.shard_map_api",
    "smap": "maxjax._sharding.smap",
    "make_mesh": "maxjax.sharding",
    "set_mesh": "maxjax.sharding",
    "get_mesh": "maxjax.sharding",
    "get_abstract_mesh": "maxjax.sharding",
    "use_abstract_mesh": "maxjax.sharding",
    "NamedSharding": "maxjax.sharding",
    "P": "maxjax.sharding",
    "reshard": "maxjax.sharding",
    "Shard": "maxjax.numpy._array_members",
    "Ref": "maxjax.ref",
    "new_ref": "maxjax.ref",
    "empty_ref": "maxjax.ref",
    "free_ref": "maxjax.ref",
    "freeze": "maxjax.ref",
    "ds": "maxjax.numpy._refs",
    "make_array_from_callback": "maxjax._runtime.assembly",
    "make_array_from_single_device_arrays": "maxjax._runtime.assembly",
    "make_array_from_process_local_data": "maxjax._runtime.assembly",
}

if not TYPE_CHECKING:
    def __getattr__(name: str) -> Any:
        module = _LATE.get(name)
        target = f"{__name__}.{name}" if module is None else module
        if name.startswith("_"):
            raise _attribute_error(__name__, name)
        if name in ("device_put_sharded", "device_put_replicated"):
            raise AttributeError(
                f"jax.{name} is deprecated; use jax.device_put instead. See "
                "https://docs.jax.dev/en/latest/migrate_pmap.html#drop-in-replacements for a "
                "drop-in replacement.", name=name)
        try:
            found = _import_module(target)
        except ModuleNotFoundError as error:
            if error.name != target:
                raise
            raise _attribute_error(__name__, name) from None
        value = found if module is None else getattr(found, name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        modules = {entry.removesuffix(".py") for entry in os.listdir(__path__[0])}
        return sorted({*_public_names(__name__), *_LATE, *(name for name in modules
                                             if name.isidentifier() and name[0] != "_")})


# A program may meet references before it makes one: they are indexed from the start.
_import_module("maxjax.numpy._refs")

for _module in (lax, numpy, tree, tree_util, typing):
    if "__getattr__" not in vars(_module):
        _explain_missing_names(_module.__name__)

_shorten_uncaught()
