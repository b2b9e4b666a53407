"""Configuration: JAX's options by JAX's names, and maxjax's own.

An option is set for the process by ``config.update`` or by its environment variable (its name
in capitals), and for a block of code in one thread by its context manager.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from maxjax._base import logs, option_kinds, spans
from maxjax._base.interrupts import entered_at_once
from maxjax._base.option_kinds import Kind, one_of
from maxjax._base.options import (
    Config,
    ExplicitX64Mode,
    LegacyPrngKeyState,
    NumpyDtypePromotion,
    Option,
    OptionContext,
)

config = Config()

enable_x64 = config.define(
    "jax_enable_x64", False,
    "64-bit integers, floats and complex numbers; when off, they become their 32-bit kin.",
    by_read=True)
rank_promotion = config.define(
    "jax_numpy_rank_promotion", "allow",
    "What an implicit rank promotion does.", one_of(("allow", "warn", "raise")))
dtype_promotion = config.define(
    "jax_numpy_dtype_promotion", NumpyDtypePromotion.STANDARD,
    "Whether arrays of different dtypes promote implicitly.")
explicit_x64_dtypes = config.define(
    "jax_explicit_x64_dtypes", ExplicitX64Mode.WARN,
    "Whether 64-bit dtypes that are asked for by name while they are off become 32-bit ones, with "
    "a warning, are an error, or are allowed.")
traceback_filtering = config.define(
    "jax_traceback_filtering", "auto",
    "What becomes of maxjax's frames in tracebacks of errors: they stay (off), are marked for "
    "IPython (tracebackhide), are taken out, the whole traceback becoming that of a cause "
    "(remove_frames), or are taken out with a note (quiet_remove_frames). auto: tracebackhide in "
    "IPython, elsewhere quiet_remove_frames.",
    one_of(("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto")))
_GUARD = one_of((None, "allow", "log", "disallow", "log_explicit", "disallow_explicit"))
_TRANSFERS = ("What becomes of transfers {}: they are allowed, logged or refused; those that are "
              "asked for by device_put only by log_explicit and disallow_explicit.")
transfer_guard = config.define(
    "jax_transfer_guard", None, _TRANSFERS.format("in any direction"), _GUARD)
transfer_guard_host_to_device = config.define(
    "jax_transfer_guard_host_to_device", None, _TRANSFERS.format("to a device"), _GUARD)
transfer_guard_device_to_device = config.define(
    "jax_transfer_guard_device_to_device", None, _TRANSFERS.format("between devices"), _GUARD)
transfer_guard_device_to_host = config.define(
    "jax_transfer_guard_device_to_host", None,
    "Accepted: arrays are read where they are.", _GUARD)


def _set_each_direction() -> None:
    """``jax_transfer_guard`` for the process is the level of each direction."""
    level = transfer_guard.process_value
    for direction in (transfer_guard_host_to_device, transfer_guard_device_to_device,
                      transfer_guard_device_to_host):
        direction.process_value = level


transfer_guard.on_change.append(_set_each_direction)
disable_jit = config.define("jax_disable_jit", False, "Run functions under jit op by op.")
debug_nans = config.define("jax_debug_nans", False, "Raise when a computation gives a NaN.")
debug_infs = config.define("jax_debug_infs", False, "Raise when a computation gives an infinity.")
debug_key_reuse = config.define(
    "jax_debug_key_reuse", False, "Raise when a random key is used twice.")
threefry_partitionable = config.define(
    "jax_threefry_partitionable", True, "The counter layout of the threefry generator.")
default_prng_impl = config.define(
    "jax_default_prng_impl", "threefry2x32", "The generator behind jax.random.key.",
    one_of(("threefry2x32", "threefry4x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32")))
default_matmul_precision = config.define(
    "jax_default_matmul_precision", None,
    "The precision that products are written down with; each runs at full precision.",
    one_of((
     None, "default", "high", "highest", "bfloat16", "tensorfloat32", "float32",
     "ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM", "ANY_F8_ANY_F8_ANY",
     "ANY_F8_ANY_F8_ANY_FAST_ACCUM", "F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16",
     "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9",
     "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64")))
default_device = config.define(
    "jax_default_device", None, "The device of new arrays.", option_kinds.ANYTHING)
log_compiles = config.define("jax_log_compiles", False, "Log each trace and each compile.")
check_tracer_leaks = config.define(
    "jax_check_tracer_leaks", False, "Raise where a trace ends and somebody holds its tracers.")
no_tracing = config.define(
    "jax_no_tracing", False, "Raise where a function under jit would be traced.")
random_seed_offset = config.define(
    "jax_random_seed_offset", 0, "Added to the seeds of jax.random.key and PRNGKey.")
raise_on_ppermute_sort_diff = config.define(
    "jax_raise_on_ppermute_sort_diff", True,
    "Whether ppermute over axes in another order than the mesh's is an error.")
check_static_indices = config.define(
    "jax_check_static_indices", False,
    "Raise where a static index that is promised to be in bounds is not.")
allow_f16_reductions = config.define(
    "jax_allow_f16_reductions", True,
    "Whether float16 and bfloat16 may be summed in their own precision by reduce_sum.")
auto_pcast = config.define(
    "jax_auto_pcast", True, "Inside shard_map operands vary as the others do, by themselves.")
disable_bwd_checks = config.define(
    "jax_disable_bwd_checks", False, "Take what backward rules return without a look at its type.")
disable_vmap_shmap_error = config.define(
    "jax_disable_vmap_shmap_error", False,
    "vmap with the spmd_axis_name that a shard_map inside cuts its other arguments by is no error.")
explain_cache_misses = config.define(
    "jax_explain_cache_misses", False, "Log why a function under jit is traced once more.")
legacy_prng_key = config.define(
    "jax_legacy_prng_key", LegacyPrngKeyState.ALLOW,
    "Whether arrays of integers may be random keys.")
enable_custom_prng = config.define(
    "jax_enable_custom_prng", False, "Whether PRNGKey makes typed keys, as key does.")
high_dynamic_range_gumbel = config.define(
    "jax_high_dynamic_range_gumbel", False,
    "Whether Gumbel samples, and what is chosen by them, have mode \"high\" if not told.")
softmax_custom_jvp = config.define(
    "jax_softmax_custom_jvp", False, "Whether softmax has a derivative written down for it.")
captured_constants_warn_bytes = config.define(
    "jax_captured_constants_warn_bytes", 2 * 10 ** 9,
    "From how many bytes of constants on a function under jit gives a warning; -1: never.")
no_execution = config.define("jax_no_execution", False, "Raise where something would be computed.")
disallow_mesh_context_manager = config.define(
    "jax_disallow_mesh_context_manager", False, "Whether ``with mesh:`` is an error.")
logging_level = config.define(
    "jax_logging_level", "NOTSET", "The level of maxjax's loggers; None leaves it as it is.",
    one_of((None, "NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")))
debug_log_modules = config.define(
    "jax_debug_log_modules", "",
    "Loggers, separated by commas, whose debug messages are written to the error stream: jax for "
    "all, jax._src.dispatch for traces, jax._src.interpreters.pxla for what is compiled.")
platforms = config.define(
    "jax_platforms", None, "The platforms to compute on, the default one first.",
    option_kinds.OPTIONAL_STRING)
platform_name = config.define_flag(
    "jax_platform_name", "", "The platform to compute on.", "JAX_PLATFORM_NAME",
    Kind(option_kinds.ANYTHING.parse, lambda name, variable, text: text.lower()))
xla_backend = config.define_flag("jax_xla_backend", "", "The platform to compute on.")
compile_mode = config.define_own(
    "compile", "auto",
    "auto: MAX compiles hot programs in the background. always: each program waits for MAX. "
    "never: all programs are interpreted.", one_of(("auto", "always", "never")))
backend = config.define_own(
    "backend", "mojo",
    "What compiles programs for a CPU. mojo: our own compiler, in seconds. graph: MAX's graph "
    "compiler, in minutes.", one_of(("mojo", "graph")))
detached_builds = config.define_own(
    "detached_builds", os.environ.get("CI", "").lower() in ("", "0", "false"),
    "What is compiled in the background goes on when the process has ended, for a limited time. "
    "Off by default where the variable CI says that nobody comes back.")
check_tiers = config.define_own(
    "check_tiers", False,
    "Run both tiers on every call of a compiled program, and raise where they differ.")

logging_level.on_change.append(lambda: logs.set_level(logging_level.process_value))
debug_log_modules.on_change.append(lambda: logs.debug_modules(debug_log_modules.process_value))
if debug_log_modules.process_value:
    logs.debug_modules(debug_log_modules.process_value)
if logging_level.process_value != "NOTSET":
    logs.set_level(logging_level.process_value)


class _Status:
    """What follows from the options: one look, where there would be several.

    Attributes:
      accelerated: whether an accelerator is the default device.
      accelerators: whether there are accelerators that somebody has asked for.
      runs_compiled: whether compiled programs run without further question.
      checks_keys: whether random keys are used once at most.
      checks_values: whether anybody wants values looked at.
      guards_transfers: whether a transfer guard may be set.
      started: whether the platforms that are asked for are there.
      watched: whether there is anything to see to before an operation or a program runs, values
        included; True until the first has run.
      generation: how many times an option has changed that traced programs depend on.
    """

    __slots__ = ("accelerated", "accelerators", "checks_keys", "checks_values", "generation",
                 "guards_transfers",
                 "runs_compiled", "started", "watched")

    def __init__(self) -> None:
        self.accelerated = False
        self.accelerators = False
        self.runs_compiled = False
        self.checks_keys = False
        self.checks_values = False
        self.guards_transfers = False
        self.started = False
        self.watched = True
        self.generation = 0


status = _Status()


def _decide_runs_compiled() -> None:
    status.runs_compiled = (
        not compile_mode.overrides and not check_tiers.overrides
        and compile_mode.process_value != "never" and not check_tiers.process_value
        and spans.state.record is None)


for _option in (compile_mode, check_tiers):
    _option.on_change.append(_decide_runs_compiled)
spans.on_change.append(_decide_runs_compiled)
_decide_runs_compiled()


# Names of platforms under which everything is on the CPU anyway.
_OF_HOST = (None, "", "cpu")


def _decide_checks_values() -> None:
    status.checks_values = any(option.overrides or option.process_value
                                for option in (debug_nans, debug_infs))
    status.checks_keys = bool(debug_key_reuse.overrides or debug_key_reuse.process_value)
    status.guards_transfers = any(
        option.overrides or option.process_value not in (None, "allow")
        for option in (transfer_guard_host_to_device, transfer_guard_device_to_device))
    status.watched = bool(
        not status.started or status.checks_keys or status.checks_values or status.accelerated
        or xla_backend.value not in _OF_HOST or platform_name.value not in _OF_HOST
        or status.guards_transfers or no_execution.overrides or no_execution.process_value
        or default_device.overrides or default_device.process_value is not None)


def set_accelerated(accelerated: bool) -> None:
    """Whether an accelerator is the default device."""
    status.accelerated = accelerated
    _decide_checks_values()


def set_started() -> None:
    """The platforms that are asked for are there."""
    status.started = True
    _decide_checks_values()


for _option in (transfer_guard, transfer_guard_host_to_device, transfer_guard_device_to_device,
                debug_key_reuse, debug_nans, debug_infs, no_execution, default_device, xla_backend,
                platform_name):
    _option.on_change.append(_decide_checks_values)
_decide_checks_values()

_TRACE_OPTIONS = [enable_x64, rank_promotion, dtype_promotion, threefry_partitionable,
                  default_prng_impl, disable_jit, default_matmul_precision, default_device,
                  random_seed_offset, explicit_x64_dtypes, check_static_indices,
                  high_dynamic_range_gumbel, softmax_custom_jvp, allow_f16_reductions]


class _TraceState(threading.local):
    value: tuple[Any, ...] | None = None
    meshes: Any = None      # what maxjax._base.meshes has set around the running code
    metadata: Any = None    # and maxjax.experimental.xla_metadata


_trace_state = _TraceState()


def trace_state() -> tuple[Any, ...]:
    """The values of the options that a traced program depends on; part of jit's cache key."""
    cached = _trace_state.value
    if cached is None or cached[0] != status.generation:
        cached = _trace_state.value = (
            status.generation,
            (*(option.value for option in _TRACE_OPTIONS), _trace_state.metadata,
             _trace_state.meshes))
    return cached[1]


def trace_state_changes(now: tuple[object, ...],
                        before: tuple[object, ...]) -> list[tuple[str, Any, Any]]:
    """What differs between two values of ``trace_state``: names, with both values."""
    names = [*(option.name for option in _TRACE_OPTIONS), "the metadata", "the mesh"]
    return [change for change in zip(names, now, before, strict=True) if change[1] != change[2]]


@entered_at_once
def set_trace_meshes(meshes: object) -> None:
    """What this thread's programs are traced under, besides the options."""
    _trace_state.meshes = meshes
    cached = _trace_state.value
    if cached is not None:
        generation, values = cached
        _trace_state.value = generation, (*values[:-1], meshes)


def trace_metadata() -> Any:
    """What ``set_trace_metadata`` has set for this thread."""
    return _trace_state.metadata


@entered_at_once
def set_trace_metadata(metadata: object) -> None:
    """What this thread's programs say to XLA, besides the meshes."""
    _trace_state.metadata = metadata
    _trace_state.value = None


def _advance_generation() -> None:
    status.generation += 1


for _option in _TRACE_OPTIONS:
    _option.on_change.append(_advance_generation)


class UserConfig:
    """A value of a program's own that traced functions depend on. Made by ``make_user_context``."""

    __slots__ = ("_option",)

    def __init__(self, option: Option):
        self._option = option

    @property
    def value(self) -> Any:
        return self._option.value

    def __call__(self, value: object) -> OptionContext:
        """Has this value for a block of code in one thread."""
        return OptionContext(self._option, value)


def make_user_context(default_value: object = None) -> UserConfig:
    """A value that is set by ``with context(value):`` and read as ``context.value``; a function
    under jit is traced anew where it differs.

    Args:
      default_value: what it is outside such blocks; hashable, as are the others.

    >>> scale = jax.make_user_context(1)
    >>> scaled = jax.jit(lambda x: x * scale.value)
    >>> with scale(3):
    ...     print(scaled(2))
    6
    >>> print(scaled(2))
    2
    """
    option = Option(f"user_context_{len(_TRACE_OPTIONS)}", default_value, "A program's own.",
                    option_kinds.ANYTHING, None)
    option.on_change.append(_advance_generation)
    _TRACE_OPTIONS.append(option)
    _advance_generation()
    return UserConfig(option)
