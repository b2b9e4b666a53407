"""Configuration: JAX's options by JAX's names, and maxjax's own.

An option is set for the process by ``config.update`` or by its environment variable (its name
in capitals), and for a block of code in one thread by its context manager.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

from maxjax._base import spans, threads

_MISSING = object()


def _parse_bool(name: str, text: str) -> bool:
    lowered = text.lower()
    if lowered in ("y", "yes", "t", "true", "on", "1"):
        return True
    if lowered in ("n", "no", "f", "false", "off", "0"):
        return False
    raise ValueError(f"invalid truth value {text!r} for environment variable {name}")


class _Overrides(threading.local):
    """Values that context managers have set in this thread."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}


_overrides = _Overrides()
_count_lock = threads.lock()


class Option:
    """One option: a process-wide value and, inside ``with option(value):``, a thread's own."""

    def __init__(self, name: str, default: Any, choices: tuple[Any, ...] | None, doc: str):
        self.name = name
        self.choices = choices
        self.is_number = type(default) is int
        self.refuses: Callable[[Any], str] | None = None      # says why, or nothing
        self.__doc__ = doc
        self.on_change: list[Callable[[], None]] = []
        self.process_value = default
        self.overrides = 0      # context managers that are open, in all threads
        # JAX's options answer to their own name in capitals, maxjax's to MAXJAX_ and theirs.
        variable = name.upper() if name.startswith("jax_") else f"MAXJAX_{name.upper()}"
        text = os.environ.get(variable)
        if text:
            value: Any = _parse_bool(variable, text) if isinstance(default, bool) else text
            if isinstance(default, (int, float)) and not isinstance(default, bool):
                value = type(default)(text)
            self.check(value)
            self.process_value = value

    def check(self, value: Any) -> None:
        if self.choices is not None and value not in self.choices:
            allowed = [choice for choice in self.choices if choice is not None]
            none = "None or " if len(allowed) < len(self.choices) else ""
            raise ValueError(f"new enum value must be {none}in {allowed}, got {value} of type "
                             f"{type(value)}.")
        if self.refuses is not None and (reason := self.refuses(value)):
            raise ValueError(reason)
        if self.is_number and value is not None and not isinstance(value, int):
            raise ValueError(f"new int config value must be None or of type int, got {value} of "
                             f"type {type(value)}")

    @property
    def value(self) -> Any:
        override = _overrides.values.get(self.name, _MISSING)
        return self.process_value if override is _MISSING else override

    def set(self, value: Any) -> None:
        self.check(value)
        self.process_value = value
        for callback in self.on_change:
            callback()

    @contextlib.contextmanager
    def __call__(self, new_val: Any = _MISSING) -> Iterator[None]:
        value = True if new_val is _MISSING else new_val
        self.check(value)
        previous = _overrides.values.get(self.name, _MISSING)
        _overrides.values[self.name] = value
        with _count_lock:
            self.overrides += 1
        for callback in self.on_change:
            callback()
        try:
            yield
        finally:
            with _count_lock:
                self.overrides -= 1
            if previous is _MISSING:
                del _overrides.values[self.name]
            else:
                _overrides.values[self.name] = previous
            for callback in self.on_change:
                callback()

    def __bool__(self) -> bool:
        return bool(self.value)

    def __repr__(self) -> str:
        return f"<maxjax option {self.name}={self.value!r}>"


class Config:
    """All options, as attributes; ``update(name, value)`` sets one for the process."""

    _options: dict[str, Option]

    def __init__(self) -> None:
        object.__setattr__(self, "_options", {})

    def define(self, name: str, default: Any, doc: str,
               choices: tuple[Any, ...] | None = None) -> Option:
        option = Option(name, default, choices, doc)
        self._options[name] = option
        return option

    def option(self, name: str) -> Option:
        """The option of a name: also its context manager."""
        return self._options[name]

    def update(self, name: str, value: Any) -> None:
        """Sets an option for the whole process.

        Raises:
          AttributeError: there is no option of that name.
          ValueError: the option does not take that value.
        """
        option = self._options.get(name)
        if option is None:
            raise AttributeError(f"Unrecognized config option: {name}")
        if isinstance(option.process_value, bool) and isinstance(value, int):
            value = bool(value)
        option.set(value)

    def read(self, name: str) -> Any:
        """The present value of an option.

        Raises:
          AttributeError: there is no option of that name.
        """
        option = self._options.get(name)
        if option is None:
            raise AttributeError(f"Unrecognized config option: {name}")
        return option.value

    @property
    def values(self) -> dict[str, Any]:
        return {name: option.value for name, option in self._options.items()}

    def __getattr__(self, name: str) -> Any:
        option = self._options.get(name)
        if option is None:
            raise AttributeError(f"'Config' object has no attribute '{name}'")
        return option.value

    def __setattr__(self, name: str, value: Any) -> None:
        self.update(name, value)


config = Config()

enable_x64 = config.define(
    "jax_enable_x64", False,
    "64-bit integers, floats and complex numbers; when off, they become their 32-bit kin.")
rank_promotion = config.define(
    "jax_numpy_rank_promotion", "allow",
    "What an implicit rank promotion does.", ("allow", "warn", "raise"))
dtype_promotion = config.define(
    "jax_numpy_dtype_promotion", "standard",
    "Whether arrays of different dtypes promote implicitly.", ("standard", "strict"))
disable_jit = config.define("jax_disable_jit", False, "Run functions under jit op by op.")
debug_nans = config.define("jax_debug_nans", False, "Raise when a computation gives a NaN.")
debug_infs = config.define("jax_debug_infs", False, "Raise when a computation gives an infinity.")
threefry_partitionable = config.define(
    "jax_threefry_partitionable", True, "The counter layout of the threefry generator.")
default_prng_impl = config.define(
    "jax_default_prng_impl", "threefry2x32", "The generator behind jax.random.key.",
    ("threefry2x32", "threefry4x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32"))
default_matmul_precision = config.define(
    "jax_default_matmul_precision", None,
    "The precision that products are written down with; each runs at full precision.",
    (None, "default", "high", "highest", "bfloat16", "tensorfloat32", "float32",
     "ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM", "ANY_F8_ANY_F8_ANY",
     "ANY_F8_ANY_F8_ANY_FAST_ACCUM", "F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16",
     "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9",
     "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64"))
default_device = config.define("jax_default_device", None, "The device of new arrays.")
default_device.refuses = lambda value: "" if (
    value is None or hasattr(value, "platform")
    or value in ("cpu", "gpu", "cuda", "rocm", "tpu")) else (
    "jax.default_device must be passed either a Device object (e.g. `jax.devices('cpu')[0]`) or a "
    f"platform name string like 'cpu' or 'gpu', got: {value!r}")
log_compiles = config.define("jax_log_compiles", False, "Log each trace and each compile.")
check_tracer_leaks = config.define(
    "jax_check_tracer_leaks", False, "Raise where a trace ends and somebody holds its tracers.")
no_tracing = config.define(
    "jax_no_tracing", False, "Raise where a function under jit would be traced.")
random_seed_offset = config.define(
    "jax_random_seed_offset", 0, "Added to the seeds of jax.random.key and PRNGKey.")
platforms = config.define("jax_platforms", None, "Accepted; maxjax runs where MAX runs.")
platform_name = config.define("jax_platform_name", "", "Accepted; maxjax runs where MAX runs.")
traceback_filtering = config.define(
    "jax_traceback_filtering", "auto", "Accepted; maxjax's own frames stay in tracebacks.",
    ("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto"))
compile_mode = config.define(
    "compile", "auto",
    "auto: MAX compiles hot programs in the background. always: each program waits for MAX. "
    "never: all programs are interpreted.", ("auto", "always", "never"))
backend = config.define(
    "backend", "mojo",
    "What compiles programs for a CPU. mojo: our own compiler, in seconds. graph: MAX's graph "
    "compiler, in minutes.", ("mojo", "graph"))
check_tiers = config.define(
    "check_tiers", False,
    "Run both tiers on every call of a compiled program, and raise where they differ.")

# Whether compiled programs run without further question: one look, in place of two at options.
runs_compiled = [False]


def _decide_runs_compiled() -> None:
    runs_compiled[0] = (
        not compile_mode.overrides and not check_tiers.overrides
        and compile_mode.process_value != "never" and not check_tiers.process_value
        and spans.wanted[0] is None)


for _option in (compile_mode, check_tiers):
    _option.on_change.append(_decide_runs_compiled)
spans.on_change.append(_decide_runs_compiled)
_decide_runs_compiled()

# Whether anybody wants values looked at: one look for each operation outside of programs.
checks_values = [False]


def _decide_checks_values() -> None:
    checks_values[0] = any(option.overrides or option.process_value
                           for option in (debug_nans, debug_infs))


for _option in (debug_nans, debug_infs):
    _option.on_change.append(_decide_checks_values)
_decide_checks_values()

_TRACE_OPTIONS = (enable_x64, rank_promotion, dtype_promotion, threefry_partitionable,
                  default_prng_impl, disable_jit, default_matmul_precision, default_device,
                  random_seed_offset)


class _TraceState(threading.local):
    value: tuple[Any, ...] | None = None
    meshes: Any = None      # what maxjax._base.meshes has set around the running code


_trace_state = _TraceState()
_generation = [0]


def trace_state() -> tuple[Any, ...]:
    """The values of the options that a traced program depends on; part of jit's cache key."""
    cached = _trace_state.value
    if cached is None or cached[0] != _generation[0]:
        cached = _trace_state.value = (
            _generation[0],
            (*(option.value for option in _TRACE_OPTIONS), _trace_state.meshes))
    return cached[1]


def set_trace_meshes(meshes: Any) -> None:
    """What this thread's programs are traced under, besides the options."""
    _trace_state.meshes = meshes
    _trace_state.value = None


def _advance_generation() -> None:
    _generation[0] += 1


for _option in _TRACE_OPTIONS:
    _option.on_change.append(_advance_generation)
